//! A bounded queue with one condition variable, and the bug that comes with it.
//!
//! Producers and consumers wait on the same condition, and whoever puts or takes an element wakes *one* waiting thread. With
//! more threads than twice the capacity the wake-up can reach a thread that has nothing to do while the right one sleeps for
//! ever. Waking all of them is right.
use deltamark::{Model, Pack, Step};

const PRODUCERS: usize = 2;
const THREADS: usize = 3;
const CAPACITY: u8 = 1;

#[derive(Clone, Debug, PartialEq, Pack)]
struct State {
    #[pack(bits = 2)]
    length: u8,
    /// Which threads wait on the condition; the first ones are producers.
    waits: [bool; THREADS],
}

#[derive(Debug)]
enum Action {
    /// A thread takes the lock and finds that it has to wait.
    Wait(usize),
    /// A thread takes the lock, puts or takes an element, and wakes another, if one waits.
    Pass(usize, Option<usize>),
}

struct Queue {
    wake_all: bool,
}

impl Model for Queue {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        vec![State { length: 0, waits: [false; THREADS] }]
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        for who in (0..THREADS).filter(|&who| !s.waits[who]) {
            let blocked = if who < PRODUCERS { s.length == CAPACITY } else { s.length == 0 };
            if blocked {
                actions.push(Action::Wait(who));
            } else if self.wake_all || s.waits == [false; THREADS] {
                actions.push(Action::Pass(who, None));
            } else {
                actions
                    .extend((0..THREADS).filter(|&other| s.waits[other]).map(|other| Action::Pass(who, Some(other))));
            }
        }
    }

    fn next(&self, s: &mut State, action: Action) -> Step {
        match action {
            Action::Wait(who) => s.waits[who] = true,
            Action::Pass(who, woken) => {
                if who < PRODUCERS {
                    s.length += 1;
                } else {
                    s.length -= 1;
                }
                match woken {
                    Some(other) => s.waits[other] = false,
                    None => s.waits = [false; THREADS],
                }
            }
        }
        Step::Taken
    }
}

/// Checks both queues; returns states and edges of the right one, and the length of the trace into the other's deadlock.
pub fn explore() -> Result<(u64, u64, usize), deltamark::ModelError> {
    let right = deltamark::check(Queue { wake_all: true }).deadlock_free().run()?;
    right.assert_holds();
    let wrong = deltamark::check(Queue { wake_all: false }).deadlock_free().run()?;
    println!("waking one: {wrong}\nwaking all: {right}");
    let trace = wrong.trace("deadlock-free").expect("waking one thread only ends in a deadlock");
    assert_eq!(trace.last().waits, [true; THREADS], "in a deadlock every thread waits");
    Ok((right.states(), right.edges(), trace.steps.len()))
}

fn main() -> Result<(), deltamark::ModelError> {
    explore().map(drop)
}
