//! Maps the number a state was found under to its position in the order of recording.
//!
//! In: numbers, in the order their states are recorded. Out: the position of each. What stays true: every number
//! has one position; the memory was granted by the budget.
//!
//! # Layout in memory
//! ```text
//! chunk    1024 numbers:  open     a word each, while some of them are still to come
//!                         packed   position - number within the chunk - smallest, in just enough bits
//! ```
//! A search records states about in the order it finds them, so few chunks are open at a time, and a packed number
//! takes as many bits as the window of states between finding and recording. If both orders are equal
//! (breadth-first search by one thread) it takes none.

use deltamark_core::packed::{Packed, bits_of};
use deltamark_core::{Budget, Grant};
use std::sync::Arc;

/// Numbers in a chunk.
const CHUNK: u64 = 1024;
/// The position of a number not recorded yet.
const MISSING: u64 = u64::MAX;

enum PositionChunk {
    Open { places: Box<[u64]>, left: u32 },
    Packed { base: i64, shifts: Packed },
}

/// Positions by number.
pub(crate) struct Order {
    chunks: Vec<Option<PositionChunk>>,
    recorded: u64,
    grant: Grant,
    refused: bool,
}

impl Order {
    /// An empty order.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Order { chunks: Vec::new(), recorded: 0, grant: Grant::new(budget), refused: false }
    }

    /// The number of recorded states.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Whether the budget refused what a number needed.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    fn request(&mut self, bytes: usize) -> Result<(), String> {
        let granted = self.grant.ask(bytes as u64);
        self.refused |= !granted;
        granted
            .then_some(())
            .ok_or_else(|| "the memory limit leaves no room for the order of the graph's states".into())
    }

    /// Assigns a number the next position.
    pub fn record(&mut self, number: u64) -> Result<(), String> {
        let index = usize::try_from(number / CHUNK).map_err(|_| "too many states".to_string())?;
        while self.chunks.len() <= index {
            if self.chunks.len() == self.chunks.capacity() {
                let more = self.chunks.capacity().max(64);
                self.request(more * size_of::<Option<PositionChunk>>())?;
                self.chunks.reserve_exact(more);
            }
            self.chunks.push(None);
        }
        if self.chunks[index].is_none() {
            self.request(8 * CHUNK as usize)?;
            let places = vec![MISSING; CHUNK as usize].into_boxed_slice();
            self.chunks[index] = Some(PositionChunk::Open { places, left: CHUNK as u32 });
        }
        let again = || format!("state {number} was recorded twice");
        let Some(PositionChunk::Open { places, left }) = &mut self.chunks[index] else { return Err(again()) };
        let place = &mut places[(number % CHUNK) as usize];
        if *place != MISSING {
            return Err(again());
        }
        *place = self.recorded;
        self.recorded += 1;
        *left -= 1;
        if *left == 0 {
            self.pack(index)?;
        }
        Ok(())
    }

    fn pack(&mut self, index: usize) -> Result<(), String> {
        let Some(PositionChunk::Open { places, .. }) = &self.chunks[index] else { return Ok(()) };
        let shift = |(within, &place): (usize, &u64)| place as i64 - within as i64;
        let shifts = || places.iter().enumerate().map(shift);
        let base = shifts().min().unwrap_or(0);
        let largest = shifts().map(|shift| (shift - base) as u64).max().unwrap_or(0);
        let mut packed = Packed::new(CHUNK as usize, bits_of(largest));
        for (within, shift) in shifts().enumerate() {
            packed.set(within, (shift - base) as u64);
        }
        self.request(packed.held_bytes() as usize)?;
        self.chunks[index] = Some(PositionChunk::Packed { base, shifts: packed });
        self.grant.give_back(8 * CHUNK);
        Ok(())
    }

    /// The position of a number, if it has one.
    #[inline]
    pub fn place(&self, number: u64) -> Option<u64> {
        let within = (number % CHUNK) as usize;
        match self.chunks.get((number / CHUNK) as usize)?.as_ref()? {
            PositionChunk::Open { places, .. } => Some(places[within]).filter(|&place| place != MISSING),
            PositionChunk::Packed { base, shifts } => Some((base + within as i64 + shifts.get(within) as i64) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_the_place_it_was_recorded_at() {
        // Windows of various sizes: within each, numbers come backwards.
        for window in [1, 2, 7, 1000, 5000, 20_000] {
            let budget = Arc::new(Budget::unlimited());
            let mut order = Order::new(&budget);
            let len = 20_000u64;
            let numbers: Vec<u64> = (0..len.div_ceil(window))
                .flat_map(|part| (part * window..((part + 1) * window).min(len)).rev())
                .collect();
            numbers.iter().for_each(|&number| order.record(number).expect("memory"));
            for (place, &number) in numbers.iter().enumerate() {
                assert_eq!(order.place(number), Some(place as u64), "window {window}");
            }
            assert_eq!(order.recorded(), len);
            assert_eq!(order.place(len), None);
            assert!(order.record(5).is_err());
            drop(order);
            assert_eq!(budget.used(), 0);
        }
    }

    #[test]
    fn the_same_order_takes_next_to_nothing() {
        let budget = Arc::new(Budget::unlimited());
        let mut order = Order::new(&budget);
        (0..1 << 20).for_each(|number| order.record(number).expect("memory"));
        assert!(budget.peak() < 100_000, "{} bytes", budget.peak());
    }

    #[test]
    fn no_memory_is_told() {
        let mut order = Order::new(&Arc::new(Budget::new(100)));
        assert!(order.record(0).is_err_and(|message| message.contains("memory limit")));
    }
}
