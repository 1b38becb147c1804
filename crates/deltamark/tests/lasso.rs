//! Traces that end in a cycle, made by hand on systems of several kinds: those that close are replayed and put into words,
//! all others are refused.

use deltamark::story::Story;
use deltamark::{Model, ModelSystem, Pack, Step};
use deltamark_core::{Action, Batch, Ending, Layer, Recoding, ReplayError, System, Trace};
use deltamark_nets::{NetSystem, tina};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts changes of the layout.
struct Widened<'s> {
    inner: &'s dyn System,
    times: AtomicUsize,
}

impl Layer for Widened<'_> {
    fn inner(&self) -> &dyn System {
        self.inner
    }

    fn widen(&self) -> Recoding {
        self.times.fetch_add(1, Relaxed);
        self.inner.widen()
    }
}

/// A number that is stepped round and round, and a start that is left for good.
struct Round;

#[derive(Clone, Debug, Pack)]
struct Place {
    started: bool,
    at: u8,
}

#[derive(Debug)]
enum Move {
    Start,
    Step,
    Stay,
}

impl Model for Round {
    type State = Place;
    type Action = Move;

    fn initial(&self) -> Vec<Place> {
        vec![Place { started: false, at: 0 }]
    }

    fn actions(&self, _: &Place, actions: &mut Vec<Move>) {
        actions.extend([Move::Start, Move::Step, Move::Stay]);
    }

    fn next(&self, state: &mut Place, action: Move) -> Step {
        match action {
            Move::Start if state.started => return Step::Disabled,
            Move::Start => state.started = true,
            Move::Step => state.at = (state.at + 1) % 3,
            Move::Stay if state.at == 2 => return Step::fault("nobody stays here"),
            Move::Stay => {}
        }
        Step::Taken
    }
}

/// The actions of a path, each given by the beginning of its name and how often it happens.
fn actions(system: &dyn System, path: &str) -> Vec<Action> {
    let names = path.split_whitespace().flat_map(|word| {
        let (name, times) = word.split_once('*').unwrap_or((word, "1"));
        std::iter::repeat_n(name, times.parse().expect("a number"))
    });
    let (mut scratch, mut batch) = (system.scratch(), Batch::new(system.width()));
    system.initial(&mut scratch, &mut batch).expect("it has an initial state");
    let mut state = batch.target(0).to_vec();
    let mut actions = Vec::new();
    for name in names {
        batch.reset(system.width());
        system.successors(&mut scratch, &state, &mut batch).expect("no wider layout is needed");
        let number = (0..batch.len())
            .find(|&number| system.describe().action(&state, batch.action(number)).starts_with(name))
            .unwrap_or_else(|| panic!("`{name}` can happen"));
        actions.push(batch.action(number));
        state = batch.target(number).to_vec();
    }
    actions
}

/// Replays a lasso that should close, puts it into words, and refuses it with every other start of its cycle in `open`.
fn check(system: &dyn System, actions: &[Action], start: usize, open: &[usize]) {
    let lasso = |start: usize| Trace::lasso(0, actions.to_vec(), start);
    let replay = lasso(start).replay(system).expect("the lasso closes");
    assert_eq!((replay.states.len(), replay.cycle), (actions.len() + 1, Some(start)));
    assert_eq!(replay.states.last(), replay.states.get(start));
    let story = Story::tell(system, &lasso(start)).expect("the lasso closes");
    assert_eq!((story.len(), story.cycle()), (actions.len(), Some(start)));
    let mut walk = story.walk();
    let states: Vec<_> =
        std::iter::once(walk.state()).chain(std::iter::from_fn(|| walk.next().map(|_| walk.state()))).collect();
    assert_eq!(states.last(), states.get(start), "the words are those of one state");
    for &open in open {
        assert_eq!(lasso(open).replay(system), Err(ReplayError::Open(open)));
        assert_eq!(Story::tell(system, &lasso(open)).err(), Some(ReplayError::Open(open)));
    }
    for beyond in [actions.len(), actions.len() + 1, usize::MAX] {
        assert_eq!(lasso(beyond).replay(system), Err(ReplayError::NoCycle(beyond)));
    }
    assert_eq!(Trace::path(0, actions.to_vec()).replay(system).expect("a path").cycle, None);
}

#[test]
fn a_lasso_of_a_net_closes_or_is_refused() {
    let net = tina::parse("pl a (1)\ntr begin a -> b\ntr there b -> c\ntr back c -> b\n").expect("a net");
    let system = NetSystem::new(net);
    check(&system, &actions(&system, "begin there back"), 1, &[0, 2]);
    check(&system, &actions(&system, "begin there back there back"), 3, &[0, 2, 4]);
    check(&system, &actions(&system, "begin there back there back"), 1, &[]);
}

#[test]
fn a_lasso_whose_counts_outgrow_the_layout_on_the_way_closes() {
    // A random walk hardly ever gets through thirty gates, so no first layout has room for what comes behind them.
    const GATES: u32 = 30;
    let gates = (0..GATES).map(|gate| format!("tr through{gate} s{gate} -> s{}\n", gate + 1));
    let ends = (0..GATES).map(|gate| format!("tr end{gate} s{gate} -> over\n"));
    let counts = format!("tr more s{GATES} -> s{GATES} c*100000\ntr less s{GATES} c*100000 -> s{GATES}\n");
    let text: String = std::iter::once("pl s0 (1)\n".to_owned()).chain(gates).chain(ends).chain([counts]).collect();
    let net = || NetSystem::new(tina::parse(&text).expect("a net"));
    let (more, less) = (Action(2 * GATES), Action(2 * GATES + 1));
    let path: Vec<Action> = (0..GATES).map(Action).chain([more; 3000]).chain([less; 3000]).collect();
    let fresh = net();
    let system = Widened { inner: &fresh, times: AtomicUsize::new(0) };
    assert_eq!(Trace::lasso(0, path.clone(), 0).replay(&system), Err(ReplayError::Open(0)));
    assert!(system.times.load(Relaxed) > 0, "three hundred million tokens do not fit at first");
    check(&system, &path, 30, &[0, 31, 3029, 6029]);
    let fresh = net();
    let system = Widened { inner: &fresh, times: AtomicUsize::new(0) };
    check(&system, &path, 30, &[]);
    assert!(system.times.load(Relaxed) > 0, "the layout widens between the two ends of the cycle");
}

#[test]
fn a_lasso_of_processes_closes_or_is_refused() {
    let text = "byte x; process P { state a, b, c; init a; trans a -> b { effect x = 7; }, b -> c { effect x = 1; }, \
                c -> b { effect x = 7; }, c -> c { effect x = 2; }; } system async;";
    let system = deltamark_dve::DveSystem::new(deltamark_dve::parse(text.as_bytes()).expect("a model"));
    check(&system, &[0, 1, 2].map(Action), 1, &[0, 2]);
    // The same locations with another value of `x` are another state.
    let round = [0, 1, 3].map(Action);
    assert_eq!(Trace::lasso(0, round.to_vec(), 2).replay(&system), Err(ReplayError::Open(2)));
    check(&system, &[0, 1, 3, 3].map(Action), 3, &[2]);
}

#[test]
fn a_lasso_of_a_rust_model_closes_or_is_refused() {
    let system = ModelSystem::new(Round).expect("a model");
    check(&system, &actions(&system, "Start Step*3"), 1, &[0, 2, 3]);
    check(&system, &actions(&system, "Step*7"), 1, &[0, 2, 3]);
    check(&system, &actions(&system, "Start Stay"), 1, &[0]);
}

#[test]
fn a_trace_that_ends_otherwise_than_it_says_is_refused() {
    let system = ModelSystem::new(Round).expect("a model");
    let [start, step, stay] = [0, 1, 2].map(Action);
    let cases = [
        (Trace::path(0, vec![step, step]).with_fault(stay), None),
        (Trace::path(0, vec![step]).with_fault(stay), Some(ReplayError::FaultExpected(1))),
        (Trace { ending: Ending::Fault, ..Trace::path(0, Vec::new()) }, Some(ReplayError::FaultExpected(0))),
        (Trace::path(0, vec![step, step, stay]), Some(ReplayError::FaultExpected(2))),
        (Trace::lasso(0, vec![step, step, stay], 2), Some(ReplayError::FaultExpected(2))),
        (Trace::lasso(0, vec![start, start], 0), Some(ReplayError::Disabled(1))),
        (Trace::lasso(1, vec![stay], 0), Some(ReplayError::NoSuchInitial(1))),
        (Trace::lasso(0, Vec::new(), 0), Some(ReplayError::NoCycle(0))),
        (Trace::lasso(0, vec![stay], 0), None),
    ];
    for (trace, expected) in cases {
        assert_eq!(trace.replay(&system).err(), expected, "{trace:?}");
    }
}
