//! Peterson's mutual exclusion for two processes.
use deltamark::{Model, Pack, Step};

#[derive(Clone, Copy, Debug, PartialEq, Pack)]
enum At {
    Idle,
    Asking,
    Waiting,
    Critical,
}

#[derive(Clone, Debug, Pack)]
struct State {
    at: [At; 2],
    wants: [bool; 2],
    #[pack(bits = 1)]
    turn: usize,
}

struct Peterson;
impl Model for Peterson {
    type State = State;
    type Action = usize; // the process that moves
    fn initial(&self) -> Vec<State> {
        vec![State { at: [At::Idle; 2], wants: [false; 2], turn: 0 }]
    }
    fn actions(&self, _: &State, actions: &mut Vec<usize>) {
        actions.extend([0, 1]);
    }
    fn next(&self, s: &mut State, me: usize) -> Step {
        let other = 1 - me;
        match s.at[me] {
            At::Idle => (s.wants[me], s.at[me]) = (true, At::Asking),
            At::Asking => (s.turn, s.at[me]) = (other, At::Waiting),
            At::Waiting if s.wants[other] && s.turn == other => return Step::Disabled,
            At::Waiting => s.at[me] = At::Critical,
            At::Critical => (s.wants[me], s.at[me]) = (false, At::Idle),
        }
        Step::Taken
    }
}

fn main() -> Result<(), deltamark::ModelError> {
    let check = deltamark::check(Peterson).invariant("mutual exclusion", |s| s.at != [At::Critical; 2]);
    let report = check.deadlock_free().store("plain").run()?; // or any other store, by its name
    report.assert_holds();
    println!("{report}");
    Ok(())
}
