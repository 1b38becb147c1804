//! The list of what is wrong with one file.
//!
//! In: diagnostics, in any order. Out: at most [`LIMIT`] of them, in the order of the
//! text. What stays true: a file with many mistakes gives a short list, at a bounded cost.

use deltamark_core::Diagnostic;

/// More than this nobody reads.
pub const LIMIT: usize = 20;

/// Collects diagnostics.
#[derive(Default)]
pub struct Findings(Vec<Diagnostic>);

impl Findings {
    /// Adds one, unless the list is full. Takes a closure because a suggestion may be
    /// costly to find.
    pub fn add(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        if !self.is_full() {
            self.0.push(diagnostic());
        }
    }

    /// Whether nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are so far.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Forgets all but the first `count`, for a parser that tries another reading.
    pub fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }

    /// Whether further diagnostics would be dropped.
    pub fn is_full(&self) -> bool {
        self.0.len() >= LIMIT
    }

    /// The value if nothing is wrong, otherwise the list.
    pub fn or<T>(mut self, value: T) -> Result<T, Vec<Diagnostic>> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by_key(|diagnostic| diagnostic.span.map_or(0, |span| span.start));
        Err(self.0)
    }
}
