//! Working memory of one thread.
//!
//! In: whatever a system or a store needs between two calls on the same thread: buffers, caches,
//! the current layout. Out: the same, by type. Invariant: a scratch is used by one thread at a time
//! and only with the system or store that created it, so systems and stores can be shared without
//! locks.

use std::any::Any;

/// The working memory that a system or a store keeps per thread.
pub struct Scratch(Box<dyn Any + Send>);

impl Scratch {
    /// Working memory holding `value`.
    pub fn new<T: Any + Send>(value: T) -> Self {
        Scratch(Box::new(value))
    }

    /// An empty scratch.
    pub fn none() -> Self {
        Scratch::new(())
    }

    /// The value given to [`new`](Self::new).
    ///
    /// # Panics
    /// If the scratch was created by another system or store: a bug of the caller.
    #[inline]
    pub fn get<T: Any + Send>(&mut self) -> &mut T {
        match self.0.downcast_mut() {
            Some(value) => value,
            None => panic!("a scratch is used with the system or store that made it"),
        }
    }
}
