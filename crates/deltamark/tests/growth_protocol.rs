//! How tables that several threads use grow, as two models, checked by Deltamark itself: room that is set aside
//! (`room.rs` of the stores), and help (`help.rs`).
//!
//! Each access to something that threads share is a step of its own. Variants that leave a rule out show that it is
//! needed.

use deltamark::{Model, ModelReport, Pack, Step};

/// Threads.
const THREADS: usize = 2;

mod room {
    use super::*;

    /// States of a batch, those that room is set aside for at once, and batches of a thread.
    const BATCH: u8 = 2;
    const AHEAD: u8 = 3;
    const BATCHES: u8 = 3;

    /// What is omitted.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Variant {
        /// Nothing.
        Whole,
        /// Room that was set aside stays good when the tables have grown.
        KeepsOldRoom,
        /// What is promised is compared before it is added to.
        ComparesFirst,
        /// Whoever grows does not wait for those who insert.
        DoesNotWait,
    }

    /// What a thread does next.
    #[derive(Clone, Copy, Debug, PartialEq, Pack)]
    enum At {
        /// Passes the gate.
        Pass,
        /// Adds to what is promised, and then compares it with what there is room for.
        Add,
        Compare(#[pack(bits = 6)] u8),
        /// Takes back what it has added, and leaves.
        Subtract,
        /// Waits for the tables, alone.
        Wait,
        Grow,
        /// Inserts `n` more.
        Insert(#[pack(bits = 2)] u8),
        Done,
    }

    #[derive(Clone, Debug, PartialEq, Pack)]
    struct Thread {
        at: At,
        inside: bool,
        /// Room that it has set aside, and the growth after which it did.
        #[pack(bits = 4)]
        room: u8,
        #[pack(bits = 4)]
        growth: u8,
        #[pack(bits = 2)]
        batches: u8,
    }

    #[derive(Clone, Debug, PartialEq, Pack)]
    pub struct Board {
        #[pack(bits = 6)]
        len: u8,
        #[pack(bits = 6)]
        promised: u8,
        #[pack(bits = 6)]
        room: u8,
        #[pack(bits = 4)]
        growth: u8,
        alone: bool,
        threads: Vec<Thread>,
    }

    pub struct Tables(pub Variant);

    impl Tables {
        fn held(&self, board: &Board, thread: &Thread) -> u8 {
            let good = thread.growth == board.growth || self.0 == Variant::KeepsOldRoom;
            if good { thread.room } else { 0 }
        }
    }

    impl Model for Tables {
        type State = Board;
        /// The thread that takes a step, and whether what it inserts is new.
        type Action = (usize, bool);

        fn initial(&self) -> Vec<Board> {
            let thread = Thread { at: At::Pass, inside: false, room: 0, growth: 0, batches: BATCHES };
            let threads = vec![thread; THREADS];
            vec![Board { len: 0, promised: 0, room: 4, growth: 0, alone: false, threads }]
        }

        fn actions(&self, board: &Board, actions: &mut Vec<(usize, bool)>) {
            for (number, thread) in board.threads.iter().enumerate() {
                actions.push((number, true));
                if matches!(thread.at, At::Insert(_)) {
                    actions.push((number, false));
                }
            }
        }

        fn next(&self, board: &mut Board, (number, new): (usize, bool)) -> Step {
            let mut thread = board.threads[number].clone();
            let held = self.held(board, &thread);
            match thread.at {
                At::Pass if board.alone => return Step::Disabled,
                At::Pass => {
                    thread.inside = true;
                    thread.at = if held >= BATCH {
                        At::Insert(BATCH)
                    } else if self.0 == Variant::ComparesFirst {
                        At::Compare(board.promised + AHEAD - held)
                    } else {
                        At::Add
                    };
                }
                At::Add => {
                    board.promised += AHEAD - held;
                    thread.at = At::Compare(board.promised);
                }
                At::Compare(promised) => {
                    let fits = promised.max(board.len) <= board.room;
                    if fits {
                        if self.0 == Variant::ComparesFirst {
                            board.promised += AHEAD - held;
                        }
                        (thread.room, thread.growth, thread.at) = (AHEAD, board.growth, At::Insert(BATCH));
                    } else if self.0 == Variant::ComparesFirst {
                        (thread.inside, thread.at) = (false, At::Wait);
                    } else {
                        thread.at = At::Subtract;
                    }
                }
                At::Subtract => {
                    board.promised -= AHEAD - held;
                    (thread.inside, thread.at) = (false, At::Wait);
                }
                At::Wait => {
                    let used = board.threads.iter().any(|thread| thread.inside) && self.0 != Variant::DoesNotWait;
                    if board.alone || used {
                        return Step::Disabled;
                    }
                    (board.alone, thread.at) = (true, At::Grow);
                }
                At::Grow => {
                    (board.growth, board.promised) = (board.growth + 1, board.len);
                    board.room = board.room.max(board.len + THREADS as u8 * AHEAD);
                    (board.alone, thread.at) = (false, At::Pass);
                }
                At::Insert(0) => {
                    thread.batches -= 1;
                    thread.inside = false;
                    thread.at = if thread.batches == 0 { At::Done } else { At::Pass };
                }
                At::Insert(left) => {
                    if new {
                        if board.len == board.room || thread.room == 0 {
                            return Step::fault("there is room for what is inserted");
                        }
                        board.len += 1;
                        thread.room -= 1;
                    }
                    thread.at = At::Insert(left - 1);
                }
                // When all are done the model goes on as it is: what stands still before is stuck.
                At::Done if board.threads.iter().all(|thread| thread.at == At::Done) => {}
                At::Done => return Step::Disabled,
            }
            board.threads[number] = thread;
            Step::Taken
        }
    }

    pub fn check(variant: Variant) -> ModelReport<Tables> {
        deltamark::check(Tables(variant))
            .invariant("all that is there was promised", |board| board.alone || board.len <= board.promised)
            .deadlock_free()
            .run()
            .expect("a run")
    }
}

mod help {
    use super::*;

    /// What is omitted.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Variant {
        /// Nothing.
        Whole,
        /// A helper counts itself after it has got the job.
        CountsLate,
        /// The grower looks for helpers before it withdraws the job.
        LooksEarly,
        /// The job is withdrawn and nobody is waited for.
        DoesNotWait,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Pack)]
    enum At {
        /// Wants the tables to grow, or helps whoever is at it.
        Begin,
        /// The grower: offers a job, does its part, withdraws the offer, waits, ends.
        Offer,
        Work,
        Withdraw,
        Await,
        End,
        /// The helper: looks whether there is a job, counts itself, takes it, does its part, leaves.
        Look,
        Count,
        Take,
        Help,
        Leave,
        Done,
    }

    #[derive(Clone, Debug, PartialEq, Pack)]
    pub struct Board {
        busy: bool,
        /// Whether a job is offered, and whether it is still there.
        offered: bool,
        there: bool,
        #[pack(bits = 2)]
        helpers: u8,
        threads: Vec<At>,
    }

    pub struct Offers(pub Variant);

    impl Model for Offers {
        type State = Board;
        type Action = usize;

        fn initial(&self) -> Vec<Board> {
            let threads = vec![At::Begin; THREADS + 1];
            vec![Board { busy: false, offered: false, there: false, helpers: 0, threads }]
        }

        fn actions(&self, board: &Board, actions: &mut Vec<usize>) {
            actions.extend(0..board.threads.len());
        }

        fn next(&self, board: &mut Board, number: usize) -> Step {
            let late = self.0 == Variant::CountsLate;
            let next = match board.threads[number] {
                At::Begin if board.busy => At::Look,
                At::Begin => {
                    board.busy = true;
                    At::Offer
                }
                At::Offer => {
                    (board.offered, board.there) = (true, true);
                    At::Work
                }
                At::Work if self.0 == Variant::LooksEarly && board.helpers > 0 => return Step::Disabled,
                At::Work => At::Withdraw,
                At::Withdraw => {
                    board.offered = false;
                    if matches!(self.0, Variant::LooksEarly | Variant::DoesNotWait) { At::End } else { At::Await }
                }
                At::Await if board.helpers > 0 => return Step::Disabled,
                At::Await => At::End,
                At::End => {
                    (board.busy, board.there) = (false, false);
                    At::Done
                }
                At::Look if !board.busy => At::Begin,
                At::Look if !board.offered => return Step::Disabled,
                At::Look if late => At::Take,
                At::Look => At::Count,
                At::Count => {
                    board.helpers += 1;
                    if late { At::Help } else { At::Take }
                }
                At::Take => match (board.offered, late) {
                    (true, true) => At::Count,
                    (true, false) => At::Help,
                    (false, true) => At::Look,
                    (false, false) => At::Leave,
                },
                At::Help if !board.there => return Step::fault("the job is there until its helpers have left"),
                At::Help => At::Leave,
                At::Leave => {
                    board.helpers -= 1;
                    At::Look
                }
                At::Done if board.threads.iter().all(|at| *at == At::Done) => At::Done,
                At::Done => return Step::Disabled,
            };
            board.threads[number] = next;
            Step::Taken
        }
    }

    pub fn check(variant: Variant) -> ModelReport<Offers> {
        deltamark::check(Offers(variant)).deadlock_free().run().expect("a run")
    }
}

#[test]
fn room_that_is_set_aside_is_there() {
    let report = room::check(room::Variant::Whole);
    report.assert_holds();
    assert!(report.complete() && report.states() > 1000, "{} states", report.states());
    use room::Variant::*;
    for variant in [KeepsOldRoom, ComparesFirst, DoesNotWait] {
        let report = room::check(variant);
        let broken = ["fault-free", "all that is there was promised"].iter().any(|name| report.trace(name).is_some());
        assert!(broken, "{variant:?} breaks something");
    }
}

#[test]
fn a_job_is_there_until_its_helpers_have_left() {
    let report = help::check(help::Variant::Whole);
    report.assert_holds();
    assert!(report.complete() && report.states() > 100, "{} states", report.states());
    use help::Variant::*;
    for variant in [CountsLate, LooksEarly, DoesNotWait] {
        assert!(help::check(variant).trace("fault-free").is_some(), "{variant:?} breaks something");
    }
}
