//! Group interning: numbers are taken from the shared counter once per group instead of once per
//! key.
//!
//! In: keys and their hashes. Out: for each its number, and whether it is new. Invariants: those of
//! the protocol of `threads/claim.rs`, which this implements.

use super::{DenseTable, Keys};
use crate::tables::bucket::{Bucket, LANES, Lanes, prefetch, prefetch_to_write};
use crate::tables::entrance::{Entrance, Entrants};
use crate::threads::claim::{Answer, Claims, GROUP, Site};
use std::sync::atomic::Ordering;

struct Interned<'g, const K: usize, S> {
    table: &'g DenseTable<K, S>,
    keys: &'g [[u32; K]],
    told: &'g mut [(u32, bool); GROUP],
}

impl<const K: usize, S: Keys<K>> Entrants for Interned<'_, K, S> {
    #[inline(always)]
    fn take(&self, count: u64) -> u64 {
        self.table.len.fetch_add(count, Ordering::AcqRel)
    }

    #[inline(always)]
    fn write(&self, first: u64, keys: impl Iterator<Item = usize>) {
        self.table.keys.put_all(first, keys.map(|key| self.keys[key]));
    }

    #[inline(always)]
    fn same(&self, number: u64, key: usize) -> bool {
        self.table.get(number as u32) == self.keys[key]
    }

    #[inline(always)]
    fn answer(&mut self, key: usize, answer: Answer) {
        self.told[key % GROUP] = match answer {
            Answer::New(number) => (number as u32, true),
            Answer::Seen(number) => (number as u32, false),
        };
    }
}

impl<const K: usize, S: Keys<K>> DenseTable<K, S> {
    /// The numbers of keys, of which there are [`GROUP`] at most; those that have none are given
    /// one. Room has been set aside (I3).
    #[inline(always)]
    pub fn intern_group<L: Lanes>(&self, lanes: L, keys: &[[u32; K]], mixed: &[u64], told: &mut [(u32, bool); GROUP]) {
        let mut group =
            Entrance { lanes, index: self.index.view(), mixed, group: Interned { table: self, keys, told } };
        // Asks for the key in the first of these entries.
        let await_key = |bucket: &Bucket, hits: u32, mask: u32| {
            let entry = bucket.0[hits.trailing_zeros() as usize % LANES].load(Ordering::Relaxed);
            self.keys.prefetch((entry & !mask).wrapping_sub(1));
        };
        // The keys of those that are there, or the buckets after full ones: other things to wait for.
        let (mut further, mut overflown) = ([0u8; GROUP], 0);
        for key in 0..keys.len().min(GROUP) {
            let home = group.home(key);
            let bucket = group.index.bucket(home);
            let (hits, empty) = group.scan(home, key);
            if hits != 0 {
                await_key(bucket, hits, group.index.mask);
            } else if empty != 0 {
                // It will be claimed, and another processor may have the line.
                prefetch_to_write(bucket);
            } else {
                prefetch(group.index.bucket(group.index.next(home)));
                further[overflown % GROUP] = key as u8;
                overflown += 1;
            }
        }
        for &key in &further[..overflown.min(GROUP)] {
            let next = group.index.next(group.home(key.into()));
            let (hits, _) = group.scan(next, key.into());
            if hits != 0 {
                await_key(group.index.bucket(next), hits, group.index.mask);
            }
        }
        let mut claims = Claims::new();
        for key in 0..keys.len().min(GROUP) {
            claims.insert(&mut group, key);
        }
        claims.settle(&mut group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::dense::{Dense, key_hash};
    use crate::tables::index::BASELINE;
    use crate::threads::cooperate::Help;
    use deltamark_core::Budget;

    #[test]
    fn threads_that_intern_groups_agree_on_numbers() {
        const COUNT: u32 = if cfg!(miri) { 130 } else { 50_000 };
        let budget = Budget::unlimited();
        let mut table = Dense::<2>::new(&budget).expect("there is no limit");
        assert!(table.make_room(u64::from(COUNT), &budget, &Help::default()));
        let begin = std::sync::Barrier::new(3);
        let told: Vec<(Vec<u32>, usize)> = std::thread::scope(|scope| {
            let (table, begin) = (&table, &begin);
            let intern = move || {
                begin.wait();
                let (mut numbers, mut new) = (Vec::new(), 0);
                for first in (0..COUNT).step_by(GROUP) {
                    // Every key twice, in a group and across groups.
                    let keys: Vec<[u32; 2]> =
                        (first..COUNT.min(first + GROUP as u32)).map(|number| [number / 2 * 7, number / 4]).collect();
                    let mixed: Vec<u64> = keys.iter().map(|&key| key_hash(key)).collect();
                    let mut told = [(0, false); GROUP];
                    table.intern_group(BASELINE, &keys, &mixed, &mut told);
                    for (&key, &(number, was_new)) in keys.iter().zip(&told) {
                        assert_eq!(table.get(number), key);
                        numbers.push(number);
                        new += usize::from(was_new);
                    }
                }
                (numbers, new)
            };
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(intern)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(told.iter().all(|(numbers, _)| *numbers == told[0].0));
        assert_eq!(told.iter().map(|&(_, new)| new as u64).sum::<u64>(), table.len());
        assert_eq!(table.len(), u64::from(COUNT / 2));
    }
}
