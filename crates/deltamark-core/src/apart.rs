//! Cache-line padding against false sharing.
//!
//! A write to a counter shared by all threads invalidates its cache line in all other processors.
//! Read-only data on the same line would be fetched again each time.

use std::ops::{Deref, DerefMut};

/// A value on cache lines of its own: two, because processors prefetch lines in pairs.
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
