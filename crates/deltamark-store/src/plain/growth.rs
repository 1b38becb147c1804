//! How the tables of `plain` grow, by all threads that are there.
//!
//! In: how many states there should be room for. Out: room, or a budget that has none. What
//! stays true: one thread grows at a time; it holds the gate alone, and those that help it are
//! gone before it opens the gate (I3 of `plain.rs`).
//!
//! ```text
//! grower   flag ── gate alone ── new index ── offer ── enter ─ enter ─ enter ── withdraw ── open
//! others     └ batch ends, gate closed …        └──── enter ─ enter ─ enter ──── wait ──────┘
//! ```
//! Helpers reach the tables through a pointer that the grower offers and withdraws. A helper
//! counts itself before it looks at the pointer, and the grower withdraws the pointer before it
//! looks at the count: so a helper that has got the pointer is waited for.

use super::tables::Tables;
use super::{Plain, VECTOR_STEP};
use crate::bucket::prefetch_to_write;
use crate::claim::relax;
use crate::index::{Index, IndexView};
use deltamark_core::{States, System, hash::mix};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, Ordering::SeqCst};

/// States that are hashed together.
const STRETCH: u64 = 256;
/// Buckets whose pages are made together: two megabytes.
const TOUCHED: u64 = 1 << 15;

/// An offer to help.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Help {
    /// The tables whose index is empty; null, while there is nothing to help with.
    tables: AtomicPtr<Tables>,
    /// The first number that nobody has taken upon himself to enter.
    next: AtomicU64,
    /// The first bucket whose page nobody has taken upon himself to touch.
    untouched: AtomicU64,
    helpers: AtomicU32,
}

/// Withdraws an offer when it is dropped, and waits for those who have taken it.
struct Offer<'h>(&'h Help);

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        self.0.tables.store(null_mut(), SeqCst);
        let mut rounds = 0;
        while self.0.helpers.load(SeqCst) != 0 {
            relax(rounds);
            rounds += 1;
        }
    }
}

/// Says that the tables no longer grow, when it is dropped.
struct Growing<'p, 'a>(&'p Plain<'a>);

impl Drop for Growing<'_, '_> {
    fn drop(&mut self) {
        self.0.growing.store(false, Ordering::Release);
    }
}

impl Plain<'_> {
    /// Makes room for what is pending, or at least for `states` more states of `slots` slots in
    /// all, unless another thread is at it: then it helps. On `false` there is no room.
    pub(super) fn grow_or_help(&self, pending: u64, pending_slots: u64, states: u64, slots: u64) -> bool {
        if self.growing.swap(true, Ordering::AcqRel) {
            self.help_growing();
            return true;
        }
        let _growing = Growing(self);
        let mut guard = self.alone();
        let tables = &mut guard.0;
        let many = [(pending, pending_slots), (states, slots)];
        many.into_iter().any(|(states, slots)| self.grow(tables, states, slots))
    }

    /// Makes room for `states` more states of `slots` slots in all.
    fn grow(&self, tables: &mut Tables, states: u64, slots: u64) -> bool {
        let len = self.len.0.load(Ordering::Acquire);
        let used = tables.vectors.used_bytes(len) + tables.vectors.needed_bytes(states, slots);
        if used > tables.granted {
            // In large steps while there is plenty, by the page when there is not.
            let missing = used - tables.granted;
            let step = if used > VECTOR_STEP { VECTOR_STEP } else { 4096 };
            let asked = [missing.next_multiple_of(step), missing].into_iter().find(|&bytes| self.budget.request(bytes));
            let Some(asked) = asked else { return false };
            tables.granted += asked;
        }
        // All that is granted may be used without coming back here.
        if !tables.vectors.extend(len, states, slots) || !tables.vectors.extend_to(len, tables.granted) {
            return false;
        }
        len + states <= tables.index.room || self.grow_index(tables, len + states)
    }

    /// Replaces the index by one with room for `wanted` numbers.
    fn grow_index(&self, tables: &mut Tables, wanted: u64) -> bool {
        let old = tables.index.buckets;
        if old == 0 {
            return false;
        }
        for buckets in tables.index.next_sizes(wanted).into_iter().flatten() {
            if !self.budget.request(Index::bytes(buckets) - Index::bytes(old)) {
                continue;
            }
            if !tables.index.resize(buckets) {
                self.budget.release(Index::bytes(buckets) - Index::bytes(old));
            }
            self.enter_all(tables);
            return wanted <= tables.index.room;
        }
        // No memory to grow: fill the last entries instead.
        tables.index.fill_up();
        wanted <= tables.index.room
    }

    /// Enters every state into an empty index.
    fn enter_all(&self, tables: &mut Tables) {
        if self.threads.load(Ordering::Relaxed) < 2 {
            // Nobody can help, so entries need no atomic exchange.
            let Tables { vectors, index, .. } = tables;
            let read = |range, states: &mut States| {
                // SAFETY: the gate is held alone and all numbers below `len` are written.
                unsafe { vectors.read(range, states) }
            };
            let mut start = 0;
            let mut next = || {
                start += STRETCH;
                start - STRETCH
            };
            index.view().touch(0..index.buckets);
            return enter(self.system, self.len.0.load(Ordering::Acquire), read, &mut next, index);
        }
        self.help.next.store(0, SeqCst);
        self.help.untouched.store(0, SeqCst);
        // From here to the end of the offer the tables are only read, but for atomics.
        self.help.tables.store(tables, SeqCst);
        let _offer = Offer(&self.help);
        self.enter_shared(tables);
    }

    /// Helps the thread that grows the tables, or waits for it.
    #[cold]
    pub(super) fn help_growing(&self) {
        let mut rounds = 0u32;
        while self.growing.load(Ordering::Acquire) {
            // Looked at first, so that who waits does not take the line away from who works.
            if !self.help.tables.load(SeqCst).is_null() {
                self.help.helpers.fetch_add(1, SeqCst);
                let tables = self.help.tables.load(SeqCst);
                if !tables.is_null() {
                    // SAFETY: the grower made the pointer from its exclusive borrow and withdraws
                    // it before that ends; it then waits until `helpers` is zero, and this thread
                    // was counted before it loaded the pointer. Until then nobody writes the
                    // tables but through atomics.
                    self.enter_shared(unsafe { &*tables });
                }
                self.help.helpers.fetch_sub(1, SeqCst);
            }
            relax(rounds);
            rounds += 1;
        }
    }

    /// Enters stretches of numbers until none is left.
    fn enter_shared(&self, tables: &Tables) {
        let read = |range, states: &mut States| {
            // SAFETY: nobody inserts while the tables grow, and all numbers below `len` are written.
            unsafe { tables.vectors.read(range, states) }
        };
        let mut next = || self.help.next.fetch_add(STRETCH, Ordering::Relaxed);
        let len = self.len.0.load(Ordering::Acquire);
        if self.help.next.load(Ordering::Relaxed) < len {
            let view = tables.index.view();
            while self.help.untouched.load(Ordering::Relaxed) < view.len() {
                let start = self.help.untouched.fetch_add(TOUCHED, Ordering::Relaxed);
                view.touch(start..start + TOUCHED);
            }
            enter(self.system, len, read, &mut next, &mut tables.index.view());
        }
    }
}

/// Takes a number into an index.
trait Enter {
    fn view(&self) -> IndexView<'_>;
    fn enter(&mut self, mixed: u64, number: u64);
}

impl Enter for Index {
    fn view(&self) -> IndexView<'_> {
        Index::view(self)
    }

    #[inline(always)]
    fn enter(&mut self, mixed: u64, number: u64) {
        Index::enter(self, mixed, number);
    }
}

impl Enter for IndexView<'_> {
    fn view(&self) -> IndexView<'_> {
        *self
    }

    #[inline(always)]
    fn enter(&mut self, mixed: u64, number: u64) {
        self.enter_among_others(mixed, number);
    }
}

/// Enters the numbers below `len`, stretch by stretch as `next` says.
fn enter(
    system: &dyn System,
    len: u64,
    read: impl Fn(std::ops::Range<u64>, &mut States),
    next: &mut impl FnMut() -> u64,
    index: &mut impl Enter,
) {
    let mut scratch = system.scratch();
    let mut states = States::new(system.width());
    let mut hashes = Vec::new();
    loop {
        let mut start = next();
        if start >= len {
            return;
        }
        let end = len.min(start + STRETCH);
        // Vectors are read as they lie; a stretch may cross the end of a chunk.
        while start < end {
            states.clear();
            hashes.clear();
            read(start..end, &mut states);
            system.hashes(&mut scratch, &states, &mut hashes);
            let view = index.view();
            for hash in &mut hashes {
                *hash = mix(*hash);
                prefetch_to_write(view.bucket(view.home(*hash)));
            }
            for (number, &mixed) in (start..).zip(&hashes) {
                index.enter(mixed, number);
            }
            start += hashes.len() as u64;
        }
    }
}
