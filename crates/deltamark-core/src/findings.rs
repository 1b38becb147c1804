//! The list of errors in one text.
//!
//! In: diagnostics, in any order. Out: at most [`MOST_DIAGNOSTICS`] of them. Invariant: a text with
//! many errors gives a short list, at a bounded cost.

use crate::diagnostic::MOST_DIAGNOSTICS;
use crate::{Control, Diagnostic, Stop};
use std::cell::Cell;

/// Collects diagnostics. A reader whose list is full gives up; so does one whose run must end, which looks the same to it.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Diagnostic>,
    /// Who is asked whether to go on.
    control: Option<Control>,
    /// Why not.
    stop: Cell<Option<Stop>>,
}

impl Findings {
    /// An empty list for a reader that ends when `control` says so.
    pub fn under(control: &Control) -> Self {
        Findings { control: Some(control.clone()), ..Findings::default() }
    }

    /// Adds one, unless the list is full. Takes a closure because a suggestion may be
    /// costly to find.
    pub fn add(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        if !self.is_full() {
            self.list.push(diagnostic());
        }
    }

    /// Whether nothing is wrong so far, and the run goes on.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.stop.get().is_none()
    }

    /// How many there are so far.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Forgets all but the first `count`, for a parser that tries another reading.
    pub fn truncate(&mut self, count: usize) {
        self.list.truncate(count);
    }

    /// Whether further diagnostics would be dropped, because there are many or because the run must end. Whoever reads in a
    /// loop asks in every round.
    pub fn is_full(&self) -> bool {
        if self.stop.get().is_none()
            && let Some(control) = &self.control
        {
            self.stop.set(control.ask().err());
        }
        self.list.len() >= MOST_DIAGNOSTICS || self.stop.get().is_some()
    }

    /// The same as [`is_full`](Self::is_full), before one more entry of so many bytes comes to a table that holds `len` of
    /// them and has room for `capacity`: a table that must grow takes its new memory at once.
    pub fn is_full_for(&self, len: usize, capacity: usize, entry: usize) -> bool {
        /// Smaller tables grow unasked.
        const SMALL: usize = 1 << 16;
        if len == capacity
            && capacity * entry >= SMALL
            && let Some(control) = self.control.as_ref().filter(|_| self.stop.get().is_none())
        {
            self.stop.set(control.ask_for((2 * capacity * entry) as u64).err());
        }
        self.is_full()
    }

    /// Whether the run must end, asked before `bytes` of memory are taken at once.
    pub fn is_stopped_for(&self, bytes: u64) -> bool {
        if let Some(control) = self.control.as_ref().filter(|_| self.stop.get().is_none()) {
            self.stop.set(control.ask_for(bytes).err());
        }
        self.stop.get().is_some()
    }

    /// The value if nothing is wrong, otherwise the list in the order of the text.
    pub fn or<T>(mut self, value: T) -> Result<T, Vec<Diagnostic>> {
        self.list.sort_by_key(|diagnostic| diagnostic.span.map_or(0, |span| span.start));
        self.or_as_found(value)
    }

    /// The value if nothing is wrong, otherwise the list in the order of the search.
    pub fn or_as_found<T>(self, value: T) -> Result<T, Vec<Diagnostic>> {
        match self.stop.get() {
            Some(stop) => Err(stop.into()),
            None if self.list.is_empty() => Ok(value),
            None => Err(self.list),
        }
    }
}
