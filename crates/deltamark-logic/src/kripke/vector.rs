//! A vector whose memory is granted by the budget.
//!
//! In: elements. Out: the same. What stays true: memory is requested before it is taken and returned when the vector
//! is dropped. It grows by a quarter; large ones are moved by the kernel without a second copy.

use deltamark_core::{Budget, Grant, Stop};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A vector that the budget knows of.
#[derive(Debug)]
pub struct Counted<T> {
    items: Vec<T>,
    grant: Grant,
}

impl<T: Copy + Default> Counted<T> {
    /// An empty one.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Counted { items: Vec::new(), grant: Grant::new(budget) }
    }

    /// One of `count` default elements.
    pub fn zeroed(count: usize, budget: &Arc<Budget>) -> Result<Self, Stop> {
        let mut grant = Grant::new(budget);
        if !grant.ask((count * size_of::<T>()) as u64) {
            return Err(Stop::Memory);
        }
        Ok(Counted { items: vec![T::default(); count], grant })
    }

    /// Appends an element.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), Stop> {
        if self.items.len() == self.items.capacity() {
            self.more(1)?;
        }
        self.items.push(item);
        Ok(())
    }

    /// Appends default elements, `count` of them.
    pub fn extend_zeroed(&mut self, count: usize) -> Result<(), Stop> {
        if self.items.capacity() - self.items.len() < count {
            self.more(count)?;
        }
        self.items.resize(self.items.len() + count, T::default());
        Ok(())
    }

    #[cold]
    fn more(&mut self, count: usize) -> Result<(), Stop> {
        let more = count.max(self.items.capacity() / 4).max(64);
        let fits = self.grant.ask((more * size_of::<T>()) as u64);
        if !fits && (more == count || !self.grant.ask((count * size_of::<T>()) as u64)) {
            return Err(Stop::Memory);
        }
        let spare = self.items.capacity() - self.items.len();
        self.items.reserve_exact(spare + if fits { more } else { count });
        Ok(())
    }

    /// Removes the last element.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.items.pop()
    }

    /// Removes all elements and keeps the memory.
    pub fn clear(&mut self) {
        self.items.clear();
    }
}

impl<T> Deref for Counted<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for Counted<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_requested_before_it_is_taken_and_given_back() {
        let budget = Arc::new(Budget::new(1000));
        let mut list: Counted<u32> = Counted::new(&budget);
        let taken = (0..).take_while(|&number| list.push(number).is_ok()).count();
        assert!((200..=250).contains(&taken), "{taken}");
        assert_eq!((list.len(), list[taken - 1]), (taken, taken as u32 - 1));
        assert_eq!(list.pop(), Some(taken as u32 - 1));
        assert_eq!(list.extend_zeroed(1000), Err(Stop::Memory));
        drop(list);
        assert_eq!(budget.used(), 0);
        assert!(Counted::<u64>::zeroed(126, &budget).is_err());
        assert_eq!(Counted::<u64>::zeroed(125, &budget).expect("memory").len(), 125);
    }
}
