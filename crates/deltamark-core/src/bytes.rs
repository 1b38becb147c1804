//! Exact accounting of memory, by part.
//!
//! In: parts and their sizes, as reported by their owners. Out: the sum and the list, for reports.
//! Invariant: a part counts allocated bytes, not used ones: empty slots of a table and the unused
//! end of a buffer are included.

/// Bytes held, by part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    parts: Vec<(&'static str, u64)>,
}

impl Bytes {
    /// Nothing held.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `bytes` to the part of this name.
    pub fn add(&mut self, part: &'static str, bytes: u64) {
        match self.parts.iter_mut().find(|(name, _)| *name == part) {
            Some((_, sum)) => *sum += bytes,
            None => self.parts.push((part, bytes)),
        }
    }

    /// The same with one more part.
    pub fn with(mut self, part: &'static str, bytes: u64) -> Self {
        self.add(part, bytes);
        self
    }

    /// Adds all parts of `other`.
    pub fn merge(&mut self, other: &Bytes) {
        for &(name, bytes) in &other.parts {
            self.add(name, bytes);
        }
    }

    /// The parts, in the order they were first named.
    pub fn parts(&self) -> &[(&'static str, u64)] {
        &self.parts
    }

    /// The sum of all parts.
    pub fn total(&self) -> u64 {
        self.parts.iter().map(|(_, bytes)| bytes).sum()
    }
}
