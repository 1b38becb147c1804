//! The diagnostics of one file.
//!
//! In: diagnostics, in any order. Out: at most [`MOST_DIAGNOSTICS`] of them, in the order of the text. What stays
//! true: a file with many errors yields a short list, at a bounded cost.

use crate::diagnostic::MOST_DIAGNOSTICS;
use crate::{Control, Diagnostic, Stop};
use std::cell::Cell;

/// Collects diagnostics. A parser whose list is full gives up; so does one whose run was stopped, which looks the
/// same to it.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Diagnostic>,
    /// Polled whether to go on.
    control: Option<Control>,
    /// Why the run was stopped.
    stop: Cell<Option<Stop>>,
}

impl Findings {
    /// An empty list for a parser that ends when `control` stops it.
    pub fn under(control: &Control) -> Self {
        Findings { control: Some(control.clone()), ..Findings::default() }
    }

    /// Adds one, unless the list is full. Takes a closure because a suggestion may be costly to find.
    pub fn add(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        if !self.is_full() {
            self.list.push(diagnostic());
        }
    }

    /// Whether there are no diagnostics so far, and the run was not stopped.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.stop.get().is_none()
    }

    /// The number of diagnostics so far.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Drops all but the first `count`, for a parser that backtracks.
    pub fn truncate(&mut self, count: usize) {
        self.list.truncate(count);
    }

    /// Whether further diagnostics would be dropped, because there are many or because the run was stopped. Every
    /// loop of a parser checks it.
    pub fn is_full(&self) -> bool {
        if self.stop.get().is_none()
            && let Some(control) = &self.control
        {
            self.stop.set(control.ask().err());
        }
        self.list.len() >= MOST_DIAGNOSTICS || self.stop.get().is_some()
    }

    /// The same as [`is_full`](Self::is_full), before an entry of `entry` bytes is added to a table that holds
    /// `len` of them and has capacity for `capacity`: a table that must grow allocates at once.
    pub fn is_full_for(&self, len: usize, capacity: usize, entry: usize) -> bool {
        /// Smaller tables grow without a check.
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

    /// The value if there are no diagnostics, otherwise the list in the order of the text.
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
