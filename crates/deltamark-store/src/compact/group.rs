//! Batched insertion into `compact`: the successors of a block, a group at a time, position by
//! position, so that look-ups overlap.
//!
//! In: a block of sources whose node numbers are known, and a batch of their successors. Out:
//! whether each is new. Invariant: only changed leaves are looked up, and only nodes above them;
//! the others have the numbers of their sources.

use super::tables::CompactTables;
use super::{GROUP, MANY_LEAVES, Working};
use crate::compact::roots::Roots;
use crate::tables::bucket::Lanes;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::bucket::x86;
use crate::tables::dense::{DenseTable, Keys, key_hash, pair};
use crate::tables::index::BASELINE;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::tables::pair_code::Bmi2;
use crate::tables::pair_code::{Pick, Portable, encode};
use crate::tables::tiles::Added;
use deltamark_core::{BLOCK, Batch, Block, Insert};
use std::ops::Range;

/// Successors of a batch that are inserted together. Room for their halves has been set aside.
pub(super) struct InsertGroup<'g> {
    pub tables: &'g CompactTables,
    pub roots: &'g Roots,
    pub working: &'g mut Working,
    pub block: &'g Block,
    pub batch: &'g Batch,
    /// Their numbers in the batch, [`GROUP`] at most.
    pub range: Range<usize>,
    pub out: &'g mut Vec<Insert>,
    /// Whether lines of roots are to be fetched for writing.
    pub expects_new: bool,
}

/// Those of a group that changed at one position, and what they are looked up by.
struct Changes {
    keys: [u64; GROUP],
    mixed: [u64; GROUP],
    slots: [u8; GROUP],
    len: usize,
}

impl Changes {
    /// Adds one, if it `differs`.
    #[inline(always)]
    fn note(&mut self, slot: usize, differs: bool) {
        self.slots[self.len % GROUP] = slot as u8;
        self.len += usize::from(differs);
    }

    /// Writes the numbers of those that changed to `own`.
    #[inline(always)]
    fn look_up<L: Lanes, S: Keys<2>>(&mut self, lanes: L, table: &DenseTable<2, S>, own: &mut [u32]) {
        for &slot in &self.slots[..self.len] {
            let slot = slot as usize % GROUP;
            self.mixed[slot] = key_hash(pair(self.keys[slot]));
            table.prefetch(self.mixed[slot], false);
        }
        for &slot in &self.slots[..self.len] {
            let slot = slot as usize % GROUP;
            own[slot] = table.intern(lanes, pair(self.keys[slot]), self.mixed[slot]).0;
        }
    }
}

impl InsertGroup<'_> {
    /// Inserts them, up to the first that finds no room. Gives how many are new.
    pub fn insert(self) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let (Some(avx512), Some(bmi2)) = (x86::Avx512::detect(), Bmi2::detect()) {
            // SAFETY: `detect` says that the processor has these instructions.
            return unsafe { self.insert_avx512(avx512, bmi2) };
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let (Some(avx2), Some(bmi2)) = (x86::Avx2::detect(), Bmi2::detect()) {
            // SAFETY: `detect` says that the processor has these instructions.
            return unsafe { self.insert_avx2(avx2, bmi2) };
        }
        self.insert_with(BASELINE, Portable)
    }

    /// [`insert_with`](Self::insert_with) the instructions of AVX-512.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn insert_avx512(self, lanes: x86::Avx512, pick: Bmi2) -> u64 {
        self.insert_with(lanes, pick)
    }

    /// [`insert_with`](Self::insert_with) the instructions of AVX2.
    ///
    /// # Safety
    /// The processor has them.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    unsafe fn insert_avx2(self, lanes: x86::Avx2, pick: Bmi2) -> u64 {
        self.insert_with(lanes, pick)
    }

    /// In rounds: for each leaf, then for each node, those that changed are looked up together;
    /// the others have the numbers of their sources.
    #[inline(always)]
    fn insert_with<L: Lanes, P: Pick>(self, lanes: L, pick: P) -> u64 {
        let InsertGroup { tables, roots, working, block, batch, range, out, expects_new } = self;
        let (plan, start, count) = (&tables.plan, range.start, range.len().min(GROUP));
        let Working { parents, numbers, differing, .. } = working;
        let many = plan.leaves() >= MANY_LEAVES;
        if many {
            differing.resize(plan.leaves(), Vec::new());
            differing.iter_mut().for_each(Vec::clear);
            for slot in 0..count {
                let source = block.state(batch.source(start + slot));
                plan.each_differing(source, batch.target(start + slot), |leaf| {
                    if differing[leaf].last() != Some(&(slot as u8)) {
                        differing[leaf].push(slot as u8);
                    }
                });
            }
        }
        let mut changes = Changes { keys: [0; GROUP], mixed: [0; GROUP], slots: [0; GROUP], len: 0 };
        for (leaf, table) in tables.leaves.iter().enumerate() {
            let inherited = &parents[leaf * BLOCK..(leaf + 1) * BLOCK];
            let own = &mut numbers[leaf * GROUP..(leaf + 1) * GROUP];
            for slot in 0..count {
                own[slot] = inherited[batch.source(start + slot) % BLOCK];
            }
            changes.len = 0;
            if many {
                changes.len = differing[leaf].len();
                changes.slots[..changes.len].copy_from_slice(&differing[leaf]);
            } else {
                for slot in 0..count {
                    let source = block.state(batch.source(start + slot));
                    changes.note(slot, plan.differ(leaf, source, batch.target(start + slot)));
                }
            }
            for &slot in &changes.slots[..changes.len] {
                let slot = slot as usize % GROUP;
                changes.keys[slot] = plan.key(pick, leaf, batch.target(start + slot));
            }
            changes.look_up(lanes, table, own);
        }
        for (position, table) in (plan.leaves()..).zip(&tables.nodes) {
            let inherited = &parents[position * BLOCK..(position + 1) * BLOCK];
            let (left, right) = plan.children(position);
            let (below, own) = numbers.split_at_mut(position * GROUP);
            let (lefts, rights) = (&below[left * GROUP..][..GROUP], &below[right * GROUP..][..GROUP]);
            let (old_lefts, old_rights) = (&parents[left * BLOCK..][..BLOCK], &parents[right * BLOCK..][..BLOCK]);
            changes.len = 0;
            for slot in 0..count {
                let source = batch.source(start + slot) % BLOCK;
                own[slot] = inherited[source];
                changes.note(slot, lefts[slot] != old_lefts[source] || rights[slot] != old_rights[source]);
                changes.keys[slot] = u64::from(lefts[slot]) | u64::from(rights[slot]) << 32;
            }
            changes.look_up(lanes, table, own);
        }
        let codes = &mut changes.keys;
        for slot in 0..count {
            let (left, right) = (numbers[plan.left * GROUP + slot], numbers[plan.right * GROUP + slot]);
            codes[slot] = encode(plan.skew, left, right);
            roots.prefetch(codes[slot], expects_new);
        }
        let mut new = 0;
        for &code in &codes[..count] {
            match roots.insert(code) {
                Added::New => {
                    new += 1;
                    out.push(Insert::New(tables.past.new_id(code)));
                }
                Added::Seen => out.push(Insert::Seen(tables.past.seen_id(code))),
                Added::Full => {
                    out.push(Insert::Full);
                    break;
                }
            }
        }
        new
    }
}
