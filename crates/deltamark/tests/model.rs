//! Models written in Rust, as systems: against the oracle and the suite for systems.

use deltamark::{Model, ModelError, ModelSystem, Pack, Step};
use deltamark_core::{Action, Batch, Fired, System, Value, Width};
use deltamark_testkit::{check_portable, check_system, explore};
use std::collections::VecDeque;

/// A sender and a receiver with the alternating-bit protocol over lossy channels.
struct AlternatingBit {
    capacity: usize,
}

#[derive(Clone, Debug, PartialEq, Pack)]
struct Link {
    sending: bool,
    expecting: bool,
    data: VecDeque<bool>,
    acks: VecDeque<bool>,
}

#[derive(Clone, Copy, Debug)]
enum Happens {
    Send,
    Lose,
    Receive,
    LoseAck,
    ReceiveAck,
}

impl Model for AlternatingBit {
    type State = Link;
    type Action = Happens;

    fn initial(&self) -> Vec<Link> {
        let link = Link { sending: false, expecting: false, data: VecDeque::new(), acks: VecDeque::new() };
        vec![link.clone(), Link { data: VecDeque::from([true]), ..link.clone() }, link]
    }

    fn actions(&self, _: &Link, actions: &mut Vec<Happens>) {
        actions.extend([Happens::Send, Happens::Lose, Happens::Receive, Happens::LoseAck, Happens::ReceiveAck]);
    }

    fn next(&self, link: &mut Link, action: Happens) -> Step {
        match action {
            Happens::Send => {
                link.data.push_back(link.sending);
                (link.data.len() <= self.capacity).into()
            }
            Happens::Lose => link.data.pop_front().is_some().into(),
            Happens::LoseAck => link.acks.pop_front().is_some().into(),
            Happens::Receive => match link.data.pop_front() {
                _ if link.acks.len() == self.capacity => Step::Disabled,
                None => Step::Disabled,
                Some(bit) => {
                    link.expecting ^= bit == link.expecting;
                    link.acks.push_back(bit);
                    Step::Taken
                }
            },
            Happens::ReceiveAck => match link.acks.pop_front() {
                None => Step::Disabled,
                Some(bit) => {
                    link.sending ^= bit == link.sending;
                    Step::Taken
                }
            },
        }
    }
}

#[test]
fn a_model_of_varying_width_is_a_system() {
    let system = ModelSystem::new(AlternatingBit { capacity: 2 }).expect("it has initial states");
    assert_eq!(system.width(), Width::Varies);
    check_system(&system);
    check_portable(|| ModelSystem::new(AlternatingBit { capacity: 2 }).expect("it has initial states"));
    let found = explore(&system);
    assert_eq!(found.initial, 2, "an initial state listed twice is one state");
    assert!(found.states.len() > 50 && found.deadlocks.is_empty());
}

/// Counts to a limit that may be too much for its bits, or fails on the way.
struct Count {
    start: u32,
    fail: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Pack)]
struct Number {
    #[pack(bits = 3)]
    value: u32,
}

impl Model for Count {
    type State = Number;
    type Action = &'static str;

    fn initial(&self) -> Vec<Number> {
        (self.start < 100).then_some(Number { value: self.start }).into_iter().collect()
    }

    fn actions(&self, number: &Number, actions: &mut Vec<&'static str>) {
        assert!(number.value != 6, "six is not listed");
        actions.extend(["stay away", "count", "divide"]);
    }

    fn next(&self, number: &mut Number, action: &'static str) -> Step {
        match action {
            "count" if Some(number.value) == self.fail => Step::fault("it was told to fail"),
            "count" => {
                number.value += 1;
                Step::Taken
            }
            "divide" if number.value == 4 => {
                // A panic of the model, as an index out of range would be.
                number.value = 12 / (number.value - 4);
                Step::Taken
            }
            _ => Step::Disabled,
        }
    }
}

/// The faults and targets of the state with this value.
fn steps(model: Count, value: u32) -> (Vec<(Option<Action>, String)>, Vec<u32>) {
    let system = ModelSystem::new(model).expect("it has an initial state");
    let mut batch = Batch::new(system.width());
    let source = deltamark::pack::pack(&Number { value }).expect("it fits");
    system.successors(&mut system.scratch(), &source, &mut batch).expect("the width is fixed");
    let faults = batch.faults().iter().map(|fault| (fault.action, fault.message.clone())).collect();
    let targets = batch.targets().iter().map(|slots| deltamark::pack::unpack::<Number>(slots).value).collect();
    (faults, targets)
}

#[test]
fn whatever_goes_wrong_in_a_step_is_a_fault() {
    let fault = |action: Option<u32>, message: &str| vec![(action.map(Action), message.to_string())];
    let count = |fail| Count { start: 0, fail };
    assert_eq!(steps(count(None), 1), (vec![], vec![2]));
    assert_eq!(steps(count(Some(1)), 1), (fault(Some(1), "it was told to fail"), vec![]));
    let misfit = "Number.value is 8, which does not fit into 3 bits";
    assert_eq!(steps(count(None), 7), (fault(Some(1), misfit), vec![]));
    let panic = "the model panicked: attempt to divide by zero";
    assert_eq!(steps(count(None), 4), (fault(Some(2), panic), vec![5]));
    let listing = "the model panicked: six is not listed";
    assert_eq!(steps(count(None), 6), (fault(None, listing), vec![]));
}

#[test]
fn a_model_with_faults_is_a_system() {
    check_system(&ModelSystem::new(Count { start: 0, fail: None }).expect("it has an initial state"));
    check_system(&ModelSystem::new(Count { start: 7, fail: None }).expect("it has an initial state"));
    let found = explore(&ModelSystem::new(Count { start: 0, fail: Some(3) }).expect("it has an initial state"));
    assert_eq!((found.states.len(), found.faults.len(), found.deadlocks.len()), (4, 1, 0));
}

#[test]
fn models_without_a_start_are_refused() {
    let refused = |start| ModelSystem::new(Count { start, fail: None }).err().map(|error| error.to_string());
    assert_eq!(refused(100).as_deref(), Some("the model has no initial state"));
    let misfit = "initial state 0 cannot be packed: Number.value is 8, which does not fit into 3 bits";
    assert_eq!(refused(8).as_deref(), Some(misfit));
    assert!(matches!(ModelSystem::new(Count { start: 9, fail: None }), Err(ModelError::Initial(0, _))));
}

#[test]
fn states_and_actions_are_shown_in_the_models_words() {
    let system = ModelSystem::new(Count { start: 5, fail: None }).expect("it has an initial state");
    let state = deltamark::pack::pack(&Number { value: 5 }).expect("it fits");
    assert_eq!(system.describe().state(&state), [("value".to_string(), Value::Int(5))]);
    assert_eq!(system.describe().action(&state, Action(1)), "\"count\"");
    assert_eq!(system.describe().action(&state, Action(9)), "action 9");
    let fired = system.fire(&mut system.scratch(), &state, Action(9), &mut Vec::new());
    assert_eq!(fired, Ok(Fired::Disabled));
}
