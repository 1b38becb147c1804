//! Two-phase commit: participants that prepare, a manager that commits once all of them have.
//!
//! After Gray and Lamport, *Consensus on transaction commit*, ACM TODS 2006. Messages are a set: one that was sent can be
//! received at any later time, and again. Three participants give 288 states. Nine give 10,340,352; but participants are alike, so that
//! it does not matter which of them have done what, only how many: of these states 1 of 700 is enough.
use deltamark::{Model, ModelError, ModelReport, Pack, Step, Symmetric};

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

#[derive(Clone, Debug, Pack, Symmetric)]
#[symmetric(participants = N)]
struct State<const N: usize> {
    #[symmetric(each = participants)]
    participants: [Participant; N],
    manager: Manager,
    /// Whose message the manager has received.
    #[symmetric(each = participants)]
    received: [bool; N],
    /// Messages that were sent.
    #[symmetric(each = participants)]
    prepared: [bool; N],
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

/// With this many participants.
struct TwoPhaseCommit<const N: usize>;

impl<const N: usize> Model for TwoPhaseCommit<N> {
    type State = State<N>;
    type Action = Action;

    fn initial(&self) -> Vec<State<N>> {
        vec![State {
            participants: [Participant::Working; N],
            manager: Manager::Undecided,
            received: [false; N],
            prepared: [false; N],
            commit: false,
            abort: false,
        }]
    }

    fn actions(&self, _: &State<N>, actions: &mut Vec<Action>) {
        actions.extend([Action::Commit, Action::Abort]);
        for who in 0..N {
            actions.extend([
                Action::Receive(who),
                Action::Prepare(who),
                Action::AbortAlone(who),
                Action::HearCommit(who),
                Action::HearAbort(who),
            ]);
        }
    }

    fn next(&self, s: &mut State<N>, action: Action) -> Step {
        let undecided = s.manager == Manager::Undecided;
        match action {
            Action::Receive(who) if undecided && s.prepared[who] => s.received[who] = true,
            Action::Commit if undecided && s.received == [true; N] => {
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

    fn canonical(&self, state: &mut State<N>) {
        state.canonise();
    }
}

fn check<const N: usize>() -> deltamark::ModelCheck<TwoPhaseCommit<N>> {
    deltamark::check(TwoPhaseCommit::<N>)
        .invariant("all commit or all abort", |s| {
            !(s.participants.contains(&Participant::Committed) && s.participants.contains(&Participant::Aborted))
        })
        .reachable("all commit", |s| s.participants == [Participant::Committed; N])
        .reachable("all abort", |s| s.participants == [Participant::Aborted; N])
        .explore_all()
}

fn shown<const N: usize>(report: ModelReport<TwoPhaseCommit<N>>) -> (u64, u64) {
    report.assert_holds();
    println!("{report}");
    (report.states(), report.edges())
}

/// Checks the protocol with three participants and returns its states and edges.
pub fn explore() -> Result<(u64, u64), ModelError> {
    check::<3>().run().map(shown)
}

/// Checks it with three and with nine participants, of which it does not matter who is who, and returns states and edges of the
/// quotients.
pub fn explore_quotients() -> Result<[(u64, u64); 2], ModelError> {
    Ok([check::<3>().symmetry().run().map(shown)?, check::<9>().symmetry().run().map(shown)?])
}

fn main() -> Result<(), ModelError> {
    explore()?;
    explore_quotients().map(drop)
}
