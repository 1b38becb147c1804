//! Entering a group into an index: the three rounds that `plain` and `collapse` share, and the
//! protocol of `threads/claim.rs` on an index.
//!
//! In: states or keys of a group, with their hashes. Out: for each its number, and whether it is
//! new. Invariants: those of `threads/claim.rs`.
//!
//! # Rounds
//! Fetch the buckets; scan them and fetch what the first matches lead to; compare, and insert what
//! is new. Each round waits for memory once for the whole group, not once for each state.

use crate::tables::bucket::{LANES, Lanes, prefetch, prefetch_as, prefetch_to_write};
use crate::tables::index::{IndexView, settled};
use crate::threads::claim::{Answer, Claims, GROUP, Site, relax};
use deltamark_core::hash::mix;
use std::sync::atomic::Ordering;

/// No number.
pub(crate) const NONE: u64 = u64::MAX;

/// States or keys that are entered together, known by their position in the group.
pub(crate) trait Entrants {
    /// Takes `count` numbers that nobody else has; returns the first.
    fn take(&self, count: u64) -> u64;

    /// Writes members whose numbers count up from `first`: numbers that only this thread has, and
    /// that are in no entry yet.
    fn write(&self, first: u64, members: impl Iterator<Item = usize>);

    /// Whether the number of a settled entry is that of this member.
    fn same(&self, number: u64, member: usize) -> bool;

    /// Records what became of a member.
    fn answer(&mut self, member: usize, answer: Answer);

    /// Fetches what the number of a guess leads to.
    #[inline(always)]
    fn hint(&self, _number: u64) {}

    /// Whether all members are compared with their guesses at once, by [`confirm`](Self::confirm),
    /// and not one by one.
    const TOGETHER: bool = false;

    /// Compares members with their guesses, and replaces wrong ones by [`NONE`].
    #[inline(always)]
    fn confirm(&self, _guesses: &mut [u64]) {}
}

/// An index into which a group is entered.
pub(crate) struct Entrance<'g, L, G> {
    pub lanes: L,
    pub index: IndexView<'g>,
    /// The mixed hash of each member.
    pub mixed: &'g [u64],
    pub group: G,
}

impl<L: Lanes, G: Entrants> Site for Entrance<'_, L, G> {
    #[inline(always)]
    fn home(&self, member: usize) -> u64 {
        self.index.home(self.mixed[member])
    }

    #[inline(always)]
    fn next(&self, bucket: u64) -> u64 {
        self.index.next(bucket)
    }

    #[inline(always)]
    fn scan(&self, bucket: u64, member: usize) -> (u32, u32) {
        self.index.scan(self.lanes, bucket, self.mixed[member])
    }

    #[inline(always)]
    fn number(&self, bucket: u64, lane: usize) -> Option<u64> {
        self.index.number(bucket, lane)
    }

    #[inline(always)]
    fn claim(&self, bucket: u64, lane: usize, member: usize) -> bool {
        self.index.claim(bucket, lane, self.mixed[member])
    }

    #[inline(always)]
    fn take(&self, count: u64) -> u64 {
        self.group.take(count)
    }

    #[inline(always)]
    fn write(&self, first: u64, members: impl Iterator<Item = usize>) {
        self.group.write(first, members);
    }

    #[inline(always)]
    fn settle(&self, bucket: u64, lane: usize, member: usize, number: u64) {
        self.index.settle(bucket, lane, self.mixed[member], number);
    }

    #[inline(always)]
    fn same(&self, number: u64, member: usize) -> bool {
        self.group.same(number, member)
    }

    #[inline(always)]
    fn answer(&mut self, member: usize, answer: Answer) {
        self.group.answer(member, answer);
    }

    #[inline(always)]
    fn wait(&self, rounds: u32) {
        relax(rounds);
    }
}

/// The working memory of the rounds.
pub(crate) struct Rounds {
    pub mixed: [u64; GROUP],
    pub guesses: [u64; GROUP],
}

impl Rounds {
    #[inline(always)]
    pub fn new() -> Self {
        Rounds { mixed: [0; GROUP], guesses: [NONE; GROUP] }
    }

    /// The first two rounds, for at most [`GROUP`] hashes: mixes them, and finds for each the
    /// number in the first entry of its tag, or [`NONE`]. `hint` is called with each number, to
    /// fetch what is compared.
    #[inline(always)]
    pub fn guess<L: Lanes>(
        &mut self,
        lanes: L,
        index: IndexView<'_>,
        hashes: &[u64],
        expects_new: bool,
        hint: impl Fn(u64),
    ) {
        let Rounds { mixed, guesses } = self;
        let mut further = [0u8; GROUP];
        for (slot, &hash) in hashes.iter().enumerate() {
            mixed[slot] = mix(hash);
            prefetch_as(index.bucket(index.home(mixed[slot])), expects_new);
        }
        let mut overflown = 0;
        for slot in 0..hashes.len() {
            let home = index.home(mixed[slot]);
            let bucket = index.bucket(home);
            let hits = lanes.hits(bucket, index.tag(mixed[slot]), index.mask);
            guesses[slot] = NONE;
            if hits != 0 {
                guesses[slot] = settled(&bucket.0[hits.trailing_zeros() as usize % LANES], index.mask);
                hint(guesses[slot]);
            } else if bucket.0[LANES - 1].load(Ordering::Relaxed) == 0 {
                // Most probably it is new.
                if !expects_new {
                    prefetch_to_write(bucket);
                }
            } else {
                prefetch(index.bucket(index.next(home)));
                further[overflown] = slot as u8;
                overflown += 1;
            }
        }
        for &slot in &further[..overflown] {
            let slot = slot as usize % GROUP;
            let bucket = index.bucket(index.next(index.home(mixed[slot])));
            let hits = lanes.hits(bucket, index.tag(mixed[slot]), index.mask);
            if hits != 0 {
                guesses[slot] = settled(&bucket.0[hits.trailing_zeros() as usize % LANES], index.mask);
                hint(guesses[slot]);
            }
        }
    }

    /// Inserts a group, at most [`GROUP`] members. Room for them has been set aside.
    #[inline(always)]
    pub fn insert<L: Lanes, G: Entrants>(
        &mut self,
        lanes: L,
        index: IndexView<'_>,
        hashes: &[u64],
        expects_new: bool,
        claims: &mut Claims,
        group: G,
    ) {
        self.guess(lanes, index, hashes, expects_new, |number| group.hint(number));
        let guesses = &mut self.guesses[..hashes.len()];
        if G::TOGETHER {
            group.confirm(guesses);
        }
        let mut entrance = Entrance { lanes, index, mixed: &self.mixed[..hashes.len()], group };
        for (member, &guess) in guesses.iter().enumerate() {
            if guess != NONE && (G::TOGETHER || entrance.same(guess, member)) {
                entrance.answer(member, Answer::Seen(guess));
            } else {
                claims.insert(&mut entrance, member);
            }
        }
        claims.settle(&mut entrance);
    }
}
