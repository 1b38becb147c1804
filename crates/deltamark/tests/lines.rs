//! The protocol by which threads enter values into a line of the store `compact` (its file
//! `enter.rs`), as a model, checked by Deltamark itself.
//!
//! Each access to something that threads share is a step of its own. The model has one line of
//! two values, and a set elsewhere for what does not fit; a thread inserts a few values and looks
//! each up again. Enough for all that can go wrong, as the variants show that leave a rule out.

use deltamark::{Model, ModelReport, Pack, Step};

/// Values that fit into the line.
const SLOTS: usize = 2;
/// Values that a thread inserts.
const VALUES: usize = 2;

/// What is omitted of the protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Variant {
    /// Nothing.
    Whole,
    /// E1: a line is claimed as it is now, not as it was searched.
    ClaimsWhatWasNotSearched,
    /// E2: a value is counted before it is written.
    CountsTooEarly,
    /// E3: values go elsewhere before the line says so.
    MarksTooLate,
}

/// The first word of the line.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
struct First {
    #[pack(bits = 2)]
    count: u8,
    marked: bool,
    busy: bool,
}

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
enum At {
    /// Reads the first word.
    Begin,
    /// Compares with a value of the line.
    Compare(#[pack(bits = 2)] u8),
    /// Claims the line, or marks it as full.
    Claim,
    /// Writes the value, and counts it.
    Write,
    Count,
    /// Puts the value elsewhere; marks the line after that, if it is too late.
    Elsewhere,
    Mark,
    /// Looks the value up again: the first word, the values, and elsewhere.
    Find,
    FindCompare(#[pack(bits = 2)] u8),
    FindElsewhere,
    Done,
}

#[derive(Clone, Debug, PartialEq, Pack)]
struct Thread {
    at: At,
    /// The current one of its values.
    #[pack(bits = 2)]
    value: u8,
    /// The first word as it was read.
    read: First,
}

#[derive(Clone, Debug, PartialEq, Pack)]
struct Board {
    first: First,
    /// 0 is one that was not written.
    slots: [u8; SLOTS],
    elsewhere: Vec<u8>,
    threads: Vec<Thread>,
}

struct Lines {
    /// The values that each thread inserts.
    lists: Vec<[u8; VALUES]>,
    variant: Variant,
}

impl Model for Lines {
    type State = Board;
    /// The thread that takes a step.
    type Action = usize;

    fn initial(&self) -> Vec<Board> {
        let first = First { count: 0, marked: false, busy: false };
        let thread = Thread { at: At::Begin, value: 0, read: first };
        let threads = vec![thread; self.lists.len()];
        vec![Board { first, slots: [0; SLOTS], elsewhere: Vec::new(), threads }]
    }

    fn actions(&self, board: &Board, actions: &mut Vec<usize>) {
        actions.extend(0..board.threads.len());
    }

    fn next(&self, board: &mut Board, number: usize) -> Step {
        let mut thread = board.threads[number].clone();
        let value = self.lists[number][usize::from(thread.value) % VALUES];
        match thread.at {
            At::Begin | At::Find => {
                thread.read = board.first;
                thread.at = if thread.at == At::Begin { At::Compare(0) } else { At::FindCompare(0) };
            }
            At::Compare(slot) | At::FindCompare(slot) => {
                let inserting = matches!(thread.at, At::Compare(_));
                if slot < thread.read.count {
                    match board.slots[usize::from(slot)] {
                        0 => return Step::fault("what is counted is written"),
                        held if held == value && inserting => thread.at = At::Find,
                        held if held == value => thread.next_value(),
                        _ if inserting => thread.at = At::Compare(slot + 1),
                        _ => thread.at = At::FindCompare(slot + 1),
                    }
                } else if inserting {
                    // Somebody is changing the line: it is read again, when it has changed.
                    if thread.read.busy && board.first == thread.read {
                        return Step::Disabled;
                    }
                    thread.at = if thread.read.busy { At::Begin } else { At::Claim };
                } else if thread.read.marked {
                    thread.at = At::FindElsewhere;
                } else {
                    return Step::fault("what was inserted is found");
                }
            }
            At::Claim => {
                if self.variant == Variant::ClaimsWhatWasNotSearched && !board.first.busy {
                    thread.read = board.first;
                }
                let full = usize::from(thread.read.count) == SLOTS;
                thread.at = if board.first != thread.read {
                    At::Begin
                } else if !full {
                    board.first.busy = true;
                    if self.variant == Variant::CountsTooEarly { At::Count } else { At::Write }
                } else {
                    board.first.marked |= self.variant != Variant::MarksTooLate;
                    At::Elsewhere
                };
            }
            At::Write => {
                board.slots[usize::from(thread.read.count)] = value;
                thread.at = if self.variant == Variant::CountsTooEarly { At::Find } else { At::Count };
            }
            At::Count => {
                board.first = First { count: thread.read.count + 1, ..thread.read };
                thread.at = if self.variant == Variant::CountsTooEarly { At::Write } else { At::Find };
            }
            At::Elsewhere => {
                if !board.elsewhere.contains(&value) {
                    board.elsewhere.push(value);
                    board.elsewhere.sort_unstable();
                }
                thread.at = if self.variant == Variant::MarksTooLate { At::Mark } else { At::Find };
            }
            At::Mark => {
                board.first.marked = true;
                thread.at = At::Find;
            }
            At::FindElsewhere => {
                if !board.elsewhere.contains(&value) {
                    return Step::fault("what was inserted is found elsewhere");
                }
                thread.next_value();
            }
            // When all are done the model goes on as it is: what stands still before is stuck.
            At::Done if board.threads.iter().all(|thread| thread.at == At::Done) => {}
            At::Done => return Step::Disabled,
        }
        board.threads[number] = thread;
        Step::Taken
    }
}

impl Thread {
    fn next_value(&mut self) {
        self.value += 1;
        self.at = if usize::from(self.value) < VALUES { At::Begin } else { At::Done };
        self.read = First { count: 0, marked: false, busy: false };
    }
}

/// Whether no value is in two places.
fn once(board: &Board) -> bool {
    let mut held: Vec<u8> = board.slots.iter().copied().filter(|&value| value != 0).collect();
    held.extend(&board.elsewhere);
    held.sort_unstable();
    held.windows(2).all(|two| two[0] != two[1])
}

/// Whether the line says so when values are elsewhere.
fn marked(board: &Board) -> bool {
    board.elsewhere.is_empty() || board.first.marked
}

/// Checks a variant with lists that meet in all ways.
fn check(variant: Variant) -> Vec<ModelReport<Lines>> {
    let cases: [&[[u8; VALUES]]; 4] =
        [&[[1, 2], [1, 2]], &[[1, 2], [2, 1]], &[[1, 2], [3, 1]], &[[1, 2], [2, 3], [3, 1]]];
    let run = |lists: &[[u8; VALUES]]| {
        deltamark::check(Lines { lists: lists.to_vec(), variant })
            .invariant("no value twice", once)
            .invariant("marked", marked)
            .deadlock_free()
            .run()
            .expect("a run")
    };
    cases.iter().map(|lists| run(lists)).collect()
}

#[test]
fn the_protocol_holds() {
    for report in check(Variant::Whole) {
        report.assert_holds();
        assert!(report.complete() && report.states() > 100, "{} states", report.states());
    }
}

#[test]
fn every_rule_of_the_protocol_is_needed() {
    for (variant, property) in [
        (Variant::ClaimsWhatWasNotSearched, "no value twice"),
        (Variant::CountsTooEarly, "fault-free"),
        (Variant::MarksTooLate, "marked"),
    ] {
        let reports = check(variant);
        let broken = |report: &ModelReport<Lines>| report.trace(property).is_some();
        assert!(reports.iter().any(broken), "{variant:?} breaks `{property}`");
    }
}
