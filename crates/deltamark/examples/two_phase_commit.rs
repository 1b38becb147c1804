//! Two-phase commit: participants that prepare, a manager that commits once all of them have.
//!
//! After Gray and Lamport, *Consensus on transaction commit*, ACM TODS 2006. Messages are a set: one that was sent can be
//! received at any later time, and again. Three participants give 288 states.
use deltamark::{Model, Pack, Step};

const PARTICIPANTS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Pack)]
enum Participant {
    Working,
    Prepared,
    Committed,
    Aborted,
}

#[derive(Clone, Copy, Debug, PartialEq, Pack)]
enum Manager {
    Undecided,
    Committed,
    Aborted,
}

#[derive(Clone, Debug, Pack)]
struct State {
    participants: [Participant; PARTICIPANTS],
    manager: Manager,
    /// Whose message the manager has received.
    received: [bool; PARTICIPANTS],
    /// Messages that were sent.
    prepared: [bool; PARTICIPANTS],
    commit: bool,
    abort: bool,
}

#[derive(Debug)]
enum Action {
    Receive(usize),
    Commit,
    Abort,
    Prepare(usize),
    AbortAlone(usize),
    HearCommit(usize),
    HearAbort(usize),
}

struct TwoPhaseCommit;

impl Model for TwoPhaseCommit {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        vec![State {
            participants: [Participant::Working; PARTICIPANTS],
            manager: Manager::Undecided,
            received: [false; PARTICIPANTS],
            prepared: [false; PARTICIPANTS],
            commit: false,
            abort: false,
        }]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Action>) {
        actions.extend([Action::Commit, Action::Abort]);
        for who in 0..PARTICIPANTS {
            actions.extend([
                Action::Receive(who),
                Action::Prepare(who),
                Action::AbortAlone(who),
                Action::HearCommit(who),
                Action::HearAbort(who),
            ]);
        }
    }

    fn next(&self, s: &mut State, action: Action) -> Step {
        let undecided = s.manager == Manager::Undecided;
        match action {
            Action::Receive(who) if undecided && s.prepared[who] => s.received[who] = true,
            Action::Commit if undecided && s.received == [true; PARTICIPANTS] => {
                (s.manager, s.commit) = (Manager::Committed, true);
            }
            Action::Abort if undecided => (s.manager, s.abort) = (Manager::Aborted, true),
            Action::Prepare(who) if s.participants[who] == Participant::Working => {
                (s.participants[who], s.prepared[who]) = (Participant::Prepared, true);
            }
            Action::AbortAlone(who) if s.participants[who] == Participant::Working => {
                s.participants[who] = Participant::Aborted;
            }
            Action::HearCommit(who) if s.commit => s.participants[who] = Participant::Committed,
            Action::HearAbort(who) if s.abort => s.participants[who] = Participant::Aborted,
            _ => return Step::Disabled,
        }
        Step::Taken
    }
}

/// Checks the protocol and returns its states and edges.
pub fn explore() -> Result<(u64, u64), deltamark::ModelError> {
    let report = deltamark::check(TwoPhaseCommit)
        .invariant("all commit or all abort", |s| {
            !(s.participants.contains(&Participant::Committed) && s.participants.contains(&Participant::Aborted))
        })
        .reachable("all commit", |s| s.participants == [Participant::Committed; PARTICIPANTS])
        .reachable("all abort", |s| s.participants == [Participant::Aborted; PARTICIPANTS])
        .explore_all()
        .run()?;
    report.assert_holds();
    println!("{report}");
    Ok((report.states(), report.edges()))
}

fn main() -> Result<(), deltamark::ModelError> {
    explore().map(drop)
}
