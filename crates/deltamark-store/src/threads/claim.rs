//! Concurrent insertion into one index: the protocol of `plain`.
//!
//! In: a group of states, each with the bucket where its search begins. Out: for each, whether it
//! is new, and its number. Invariants, under every interleaving: no state gets two numbers, no
//! number is returned before its vector is written, and there is no deadlock.
//!
//! ```text
//! entry   0 ──claim──▶ tag|1…1 ──settle──▶ tag|number+1
//!         empty        being written       for all to read
//! ```
//! * C1: a thread claims an entry only after comparing its state with all entries before it, in the
//!   bucket as it was read and in all full buckets from the state's home on. Entries are filled in
//!   order and never cleared, so if the claim succeeds the state is in no other entry.
//! * C2: a thread that finds an entry with its own tag being written waits until it is settled: it
//!   may be the same state.
//! * C3: no thread waits while it holds claims: it settles them first. So there is no cycle of
//!   waiting threads, and a thread that finds its own claim continues.
//!
//! Claims of a group are settled together: numbers are taken from the shared counter once per
//! group, not once per state, and consecutive numbers mean contiguous vectors.
//!
//! The protocol is independent of vectors and processors: it is written against [`Site`], so that a
//! test can run it on atomics whose schedule it controls.

use deltamark_core::{Insert, StateId};

/// How many states are inserted together, at most.
pub(crate) const GROUP: usize = 64;

/// What became of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    New(u64),
    Seen(u64),
}

impl From<Answer> for Insert {
    #[inline(always)]
    fn from(answer: Answer) -> Insert {
        match answer {
            Answer::New(number) => Insert::New(StateId::new(number)),
            Answer::Seen(number) => Insert::Seen(StateId::new(number)),
        }
    }
}

/// Where states of a group are entered. States are known by their number in the group.
pub(crate) trait Site {
    /// The bucket where the search for a state begins.
    fn home(&self, state: usize) -> u64;

    /// The bucket after this one.
    fn next(&self, bucket: u64) -> u64;

    /// Reads every entry of a bucket once: those that carry the state's tag, and the empty ones,
    /// a bit each.
    fn scan(&self, bucket: u64, state: usize) -> (u32, u32);

    /// The number in an entry that carries a tag, unless it is being written. What was written
    /// before it was settled can be read after this.
    fn number(&self, bucket: u64, lane: usize) -> Option<u64>;

    /// Claims an entry for a state, if it is empty.
    fn claim(&self, bucket: u64, lane: usize, state: usize) -> bool;

    /// Takes this many numbers that nobody else has; gives the first.
    fn take(&self, count: u64) -> u64;

    /// Writes the vectors of these states, whose numbers count up from `first`.
    fn write(&self, first: u64, states: impl Iterator<Item = usize>);

    /// Writes a number, whose vector is [written](Self::write), into the entry that was claimed.
    fn settle(&self, bucket: u64, lane: usize, state: usize, number: u64);

    /// Whether the vector of a published number is this state.
    fn same(&self, number: u64, state: usize) -> bool;

    /// Notes what became of a state.
    fn answer(&mut self, state: usize, answer: Answer);

    /// Lets others go on; it is the `rounds`-th time of one wait.
    fn wait(&self, rounds: u32);
}

/// Entries that were claimed and not settled.
pub(crate) struct Claims {
    len: usize,
    claims: [Claim; GROUP],
}

#[derive(Clone, Copy)]
struct Claim {
    bucket: u64,
    lane: u8,
    state: u8,
}

impl Claims {
    #[inline(always)]
    pub fn new() -> Self {
        Claims { len: 0, claims: [Claim { bucket: 0, lane: 0, state: 0 }; GROUP] }
    }

    /// Settles all claims. Call at the end of a group.
    #[inline(always)]
    pub fn settle<S: Site>(&mut self, site: &mut S) {
        if self.len == 0 {
            return;
        }
        let first = site.take(self.len as u64);
        let claims = &self.claims[..self.len.min(GROUP)];
        site.write(first, claims.iter().map(|claim| claim.state.into()));
        for (claim, number) in claims.iter().zip(first..) {
            site.settle(claim.bucket, claim.lane.into(), claim.state.into(), number);
            site.answer(claim.state.into(), Answer::New(number));
        }
        self.len = 0;
    }

    /// Inserts a state; if it is new its answer comes when the claims are settled.
    #[inline(always)]
    pub fn insert<S: Site>(&mut self, site: &mut S, state: usize) {
        let mut bucket = site.home(state);
        loop {
            let (mut hits, empty) = site.scan(bucket, state);
            while hits != 0 {
                let lane = hits.trailing_zeros() as usize;
                let number = match site.number(bucket, lane) {
                    Some(number) => number,
                    None => self.await_number(site, bucket, lane),
                };
                if site.same(number, state) {
                    return site.answer(state, Answer::Seen(number));
                }
                hits &= hits - 1;
            }
            if empty == 0 {
                bucket = site.next(bucket);
                continue;
            }
            // C1. If others were quicker, the search goes on in the same bucket, read anew.
            let lane = empty.trailing_zeros() as usize;
            if site.claim(bucket, lane, state) {
                self.claims[self.len % GROUP] = Claim { bucket, lane: lane as u8, state: state as u8 };
                self.len += 1;
                return;
            }
        }
    }

    /// Waits for an entry that is being written (C2, C3).
    #[cold]
    #[inline(never)]
    fn await_number<S: Site>(&mut self, site: &mut S, bucket: u64, lane: usize) -> u64 {
        self.settle(site);
        let mut rounds = 0;
        loop {
            if let Some(number) = site.number(bucket, lane) {
                return number;
            }
            site.wait(rounds);
            rounds += 1;
        }
    }
}

/// Waits a moment for another thread: at first without giving up the processor, and then, if
/// that thread may have lost its own, by giving it up.
#[inline(always)]
pub(crate) fn relax(rounds: u32) {
    if rounds < 64 {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    //! The protocol under a scheduler that tries many orders: every access to a common entry is
    //! a point where another thread may go on.

    use super::*;
    use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
    use std::collections::HashMap;
    use std::sync::Arc;

    const BUCKETS: usize = 4;
    /// Few, so that buckets overflow.
    const LANES: usize = 2;
    const BUSY: u32 = 0xffff;

    /// An index, and vectors of one word; 0 is one that was not written.
    struct Board {
        entries: [[AtomicU32; LANES]; BUCKETS],
        vectors: [AtomicU32; 8],
        len: AtomicU64,
    }

    impl Board {
        fn new() -> Self {
            Board {
                entries: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU32::new(0))),
                vectors: std::array::from_fn(|_| AtomicU32::new(0)),
                len: AtomicU64::new(0),
            }
        }
    }

    /// A group of one thread.
    struct ClaimGroup<'b> {
        board: &'b Board,
        states: Vec<u32>,
        answers: Vec<Option<Answer>>,
    }

    impl ClaimGroup<'_> {
        /// States of the same remainder have the same tag and the same home.
        fn tag(&self, state: usize) -> u32 {
            (self.states[state] % 2 + 1) << 16
        }
    }

    impl Site for ClaimGroup<'_> {
        fn home(&self, state: usize) -> u64 {
            u64::from(self.states[state] % 2) * 3
        }

        fn next(&self, bucket: u64) -> u64 {
            (bucket + 1) % BUCKETS as u64
        }

        fn scan(&self, bucket: u64, state: usize) -> (u32, u32) {
            let read = self.board.entries[bucket as usize].each_ref().map(|entry| entry.load(SeqCst));
            let bits = |of: &dyn Fn(u32) -> bool| {
                read.iter().enumerate().fold(0, |bits, (lane, &entry)| bits | u32::from(of(entry)) << lane)
            };
            (bits(&|entry| entry & !BUSY == self.tag(state)), bits(&|entry| entry == 0))
        }

        fn number(&self, bucket: u64, lane: usize) -> Option<u64> {
            let number = self.board.entries[bucket as usize][lane].load(SeqCst) & BUSY;
            (number != BUSY).then(|| u64::from(number) - 1)
        }

        fn claim(&self, bucket: u64, lane: usize, state: usize) -> bool {
            let entry = &self.board.entries[bucket as usize][lane];
            entry.compare_exchange(0, self.tag(state) | BUSY, SeqCst, SeqCst).is_ok()
        }

        fn take(&self, count: u64) -> u64 {
            self.board.len.fetch_add(count, SeqCst)
        }

        fn write(&self, first: u64, states: impl Iterator<Item = usize>) {
            for (number, state) in (first as usize..).zip(states) {
                assert_eq!(self.board.vectors[number].swap(self.states[state], SeqCst), 0, "written once");
            }
        }

        fn settle(&self, bucket: u64, lane: usize, state: usize, number: u64) {
            self.board.entries[bucket as usize][lane].store(self.tag(state) | (number as u32 + 1), SeqCst);
        }

        fn same(&self, number: u64, state: usize) -> bool {
            let vector = self.board.vectors[number as usize].load(SeqCst);
            assert_ne!(vector, 0, "a number is told after its vector was written");
            vector == self.states[state]
        }

        fn answer(&mut self, state: usize, answer: Answer) {
            assert_eq!(self.answers[state].replace(answer), None, "one answer for each");
        }

        fn wait(&self, _: u32) {
            shuttle::thread::yield_now();
        }
    }

    /// Has a thread insert each of these groups and checks their answers.
    fn insert(groups: &[&[u32]]) {
        let board = Arc::new(Board::new());
        let threads: Vec<_> = groups
            .iter()
            .map(|states| {
                let (board, states) = (Arc::clone(&board), states.to_vec());
                shuttle::thread::spawn(move || {
                    let answers = vec![None; states.len()];
                    let mut group = ClaimGroup { board: &board, states, answers };
                    let mut claims = Claims::new();
                    (0..group.states.len()).for_each(|state| claims.insert(&mut group, state));
                    claims.settle(&mut group);
                    (group.states, group.answers)
                })
            })
            .collect();
        let mut numbers: HashMap<u32, u64> = HashMap::new();
        let mut new = 0;
        for thread in threads {
            let (states, answers) = thread.join().expect("no panic");
            for (state, answer) in states.into_iter().zip(answers) {
                let number = match answer.expect("an answer for each") {
                    Answer::Seen(number) => number,
                    Answer::New(number) => {
                        new += 1;
                        number
                    }
                };
                assert_eq!(*numbers.entry(state).or_insert(number), number, "one number for each state");
                assert_eq!(board.vectors[number as usize].load(SeqCst), state);
            }
        }
        assert_eq!((new, board.len.load(SeqCst)), (numbers.len(), numbers.len() as u64), "each is new to one thread");
    }

    /// Groups that meet: equal states, equal tags, equal states twice in a group, the same states
    /// in another order.
    const CASES: [&[&[u32]]; 5] = [
        &[&[2], &[2], &[2]],
        &[&[2, 4], &[4, 2]],
        &[&[2, 3, 2], &[3, 2], &[2, 4]],
        &[&[2, 4, 6], &[6, 4, 2], &[4, 8]],
        &[&[3, 5, 2, 7], &[7, 2, 5], &[2, 3]],
    ];

    #[test]
    fn no_order_of_steps_enters_a_state_twice_or_waits_for_ever() {
        for groups in CASES {
            shuttle::check_random(|| insert(groups), 1500);
            shuttle::check_pct(|| insert(groups), 1500, 3);
        }
    }
}
