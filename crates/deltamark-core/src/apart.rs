//! What several threads change, on lines of the cache of its own.
//!
//! A counter that all threads write to takes its line away from all others each time. What lies
//! beside it and is only read would be fetched again and again.

use std::ops::{Deref, DerefMut};

/// A value on lines of its own: two, because processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> Deref for Apart<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Apart<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
