//! The protocol by which threads enter states into the index of the store `plain` (its file
//! `claim.rs`), as a model, checked by Deltamark itself.
//!
//! Each access to something that threads share is a step of its own. The model has one bucket
//! of a few entries, all states have the same tag, and a thread's group is short: enough for all
//! that can go wrong, as the variants show that leave a rule out.

use deltamark::{Model, ModelReport, Pack, Step};

/// Entries of the bucket, and vectors.
const ENTRIES: usize = 3;
/// States of a group.
const GROUP: usize = 2;

/// What is omitted of the protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Variant {
    /// Nothing.
    Whole,
    /// C1: an entry is claimed without having read the ones before it anew.
    ClaimsWhatIsEmptyNow,
    /// C2: an entry that is being written is passed over.
    DoesNotWait,
    /// C3: claims are held while waiting.
    WaitsWithClaims,
    /// A number is published before its vector is written.
    TellsTooEarly,
}

#[derive(Clone, Copy, Debug, PartialEq, Pack)]
enum Entry {
    Empty,
    Claimed,
    Settled(#[pack(bits = 2)] u8),
}

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
enum At {
    /// Reads entry by entry, for its own copy of the bucket.
    Read(#[pack(bits = 2)] u8),
    /// Looks at a hit of its copy, as it is now.
    Look(#[pack(bits = 2)] u8),
    /// Waits for an entry.
    Wait(#[pack(bits = 2)] u8),
    /// Claims the first empty entry of its copy.
    Claim,
    /// Takes numbers for its claims.
    Take,
    /// Writes the vector of its n-th claim, and the number into the entry.
    Write(#[pack(bits = 2)] u8),
    Tell(#[pack(bits = 2)] u8),
    Done,
}

#[derive(Clone, Debug, PartialEq, Pack)]
struct Thread {
    at: At,
    /// The current state of its group.
    #[pack(bits = 2)]
    state: u8,
    copy: [Entry; ENTRIES],
    /// For each state of the group the entry claimed for it.
    claims: [Option<Place>; GROUP],
    /// The first number taken.
    #[pack(bits = 2)]
    first: u8,
    /// Where to go on when claims are settled in the middle of a group.
    back: Option<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Pack)]
struct Place {
    #[pack(bits = 2)]
    entry: u8,
}

#[derive(Clone, Debug, PartialEq, Pack)]
struct Board {
    entries: [Entry; ENTRIES],
    /// States by number; 0 is one that was not written.
    vectors: [u8; ENTRIES],
    #[pack(bits = 2)]
    len: u8,
    threads: Vec<Thread>,
}

struct Protocol {
    /// The states that each thread inserts.
    groups: Vec<[u8; GROUP]>,
    variant: Variant,
}

impl Protocol {
    /// Goes on to the next state of the group, or settles the claims.
    fn next_state(&self, thread: &mut Thread) {
        thread.state += 1;
        thread.copy = [Entry::Empty; ENTRIES];
        thread.at = if usize::from(thread.state) < GROUP { At::Read(0) } else { At::Take };
    }

    /// Goes on with the hit after this one, or claims.
    fn next_hit(&self, thread: &mut Thread, entry: u8) {
        let hit = (entry..ENTRIES as u8).find(|&entry| thread.copy[usize::from(entry)] != Entry::Empty);
        thread.at = hit.map_or(At::Claim, At::Look);
    }
}

impl Model for Protocol {
    type State = Board;
    /// The thread that takes a step.
    type Action = usize;

    fn initial(&self) -> Vec<Board> {
        let thread = Thread {
            at: At::Read(0),
            state: 0,
            copy: [Entry::Empty; ENTRIES],
            claims: [None; GROUP],
            first: 0,
            back: None,
        };
        let threads = vec![thread; self.groups.len()];
        vec![Board { entries: [Entry::Empty; ENTRIES], vectors: [0; ENTRIES], len: 0, threads }]
    }

    fn actions(&self, board: &Board, actions: &mut Vec<usize>) {
        actions.extend(0..board.threads.len());
    }

    fn next(&self, board: &mut Board, number: usize) -> Step {
        let mut thread = board.threads[number].clone();
        let group = self.groups[number];
        match thread.at {
            At::Read(entry) => {
                thread.copy[usize::from(entry)] = board.entries[usize::from(entry)];
                if usize::from(entry) + 1 < ENTRIES {
                    thread.at = At::Read(entry + 1);
                } else {
                    self.next_hit(&mut thread, 0);
                }
            }
            At::Look(entry) | At::Wait(entry) => match board.entries[usize::from(entry)] {
                Entry::Empty => return Step::fault("an entry is never emptied"),
                Entry::Settled(number) => match board.vectors[usize::from(number)] {
                    0 => return Step::fault("a number is told after its vector was written"),
                    vector if vector == group[usize::from(thread.state)] => self.next_state(&mut thread),
                    _ => self.next_hit(&mut thread, entry + 1),
                },
                Entry::Claimed if self.variant == Variant::DoesNotWait => self.next_hit(&mut thread, entry + 1),
                Entry::Claimed if matches!(thread.at, At::Wait(_)) => return Step::Disabled,
                Entry::Claimed => {
                    let claims = thread.claims.iter().any(Option::is_some);
                    if claims && self.variant != Variant::WaitsWithClaims {
                        (thread.at, thread.back) = (At::Take, Some(Place { entry }));
                    } else {
                        thread.at = At::Wait(entry);
                    }
                }
            },
            At::Claim => {
                let read = if self.variant == Variant::ClaimsWhatIsEmptyNow { &board.entries } else { &thread.copy };
                let Some(entry) = read.iter().position(|&entry| entry == Entry::Empty) else {
                    return Step::fault("there is room for all states");
                };
                if board.entries[entry] == Entry::Empty {
                    board.entries[entry] = Entry::Claimed;
                    thread.claims[usize::from(thread.state)] = Some(Place { entry: entry as u8 });
                    self.next_state(&mut thread);
                } else {
                    thread.at = At::Read(0);
                }
            }
            At::Take => {
                let claims = thread.claims.iter().flatten().count() as u8;
                thread.first = board.len;
                board.len += claims;
                thread.at = match (claims, self.variant) {
                    (0, _) => At::Done,
                    (_, Variant::TellsTooEarly) => At::Tell(0),
                    _ => At::Write(0),
                };
            }
            At::Write(claim) | At::Tell(claim) => {
                let (state, place) = thread
                    .claims
                    .iter()
                    .enumerate()
                    .filter_map(|(state, place)| Some((state, (*place)?)))
                    .nth(usize::from(claim))
                    .expect("a claim");
                let writes = matches!(thread.at, At::Write(_));
                if writes {
                    board.vectors[usize::from(thread.first + claim)] = group[state];
                } else {
                    board.entries[usize::from(place.entry)] = Entry::Settled(thread.first + claim);
                }
                let early = self.variant == Variant::TellsTooEarly;
                let last = usize::from(claim) + 1 == thread.claims.iter().flatten().count();
                thread.at = match (writes != early, last) {
                    // The first half of a claim: the other half follows.
                    (true, _) => {
                        if writes {
                            At::Tell(claim)
                        } else {
                            At::Write(claim)
                        }
                    }
                    (false, false) => {
                        if early {
                            At::Tell(claim + 1)
                        } else {
                            At::Write(claim + 1)
                        }
                    }
                    (false, true) => {
                        thread.claims = [None; GROUP];
                        match thread.back.take() {
                            Some(place) => At::Wait(place.entry),
                            None => At::Done,
                        }
                    }
                };
            }
            // When all are done the model goes on as it is: what stands still before is stuck.
            At::Done if board.threads.iter().all(|thread| thread.at == At::Done) => {}
            At::Done => return Step::Disabled,
        }
        board.threads[number] = thread;
        Step::Taken
    }
}

/// Checks a variant with groups that meet in all ways.
fn check(variant: Variant) -> Vec<ModelReport<Protocol>> {
    let cases: [&[[u8; GROUP]]; 4] =
        [&[[1, 2], [1, 2]], &[[1, 2], [2, 1]], &[[1, 1], [1, 2]], &[[1, 2], [2, 3], [3, 1]]];
    let run = |groups: &[[u8; GROUP]]| {
        deltamark::check(Protocol { groups: groups.to_vec(), variant })
            .invariant("no state twice", |board| {
                let written = |number: usize| board.vectors[number] != 0;
                (0..ENTRIES).all(|one| {
                    (0..one).all(|other| !written(one) || !written(other) || board.vectors[one] != board.vectors[other])
                })
            })
            .deadlock_free()
            .run()
            .expect("a run")
    };
    cases.iter().map(|groups| run(groups)).collect()
}

#[test]
fn the_protocol_holds() {
    for report in check(Variant::Whole) {
        report.assert_holds();
        assert!(report.complete() && report.states() > 300, "{} states", report.states());
    }
}

#[test]
fn every_rule_of_the_protocol_is_needed() {
    for (variant, property) in [
        (Variant::ClaimsWhatIsEmptyNow, "no state twice"),
        (Variant::DoesNotWait, "no state twice"),
        (Variant::WaitsWithClaims, "deadlock-free"),
        (Variant::TellsTooEarly, "fault-free"),
    ] {
        let reports = check(variant);
        let broken = |report: &ModelReport<Protocol>| report.trace(property).is_some();
        assert!(reports.iter().any(broken), "{variant:?} breaks `{property}`");
    }
}
