//! Checking models by one call: verdicts, traces and limits, with every store and search.

use deltamark::{Model, ModelError, Pack, Step};
use deltamark_core::{Guarantee, Stop, Verdict};
use deltamark_search::Search;
use deltamark_store::{CATALOGUE, Need};

/// Two processes that share a critical section, with or without asking for a turn.
struct Mutex {
    takes_turns: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Pack)]
enum At {
    Idle,
    Waiting,
    Critical,
}

#[derive(Clone, Debug, PartialEq, Pack)]
struct State {
    at: [At; 2],
    #[pack(bits = 1)]
    turn: usize,
}

#[derive(Debug, PartialEq)]
struct Moves(usize);

impl Model for Mutex {
    type State = State;
    type Action = Moves;

    fn initial(&self) -> Vec<State> {
        vec![State { at: [At::Idle; 2], turn: 0 }]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Moves>) {
        actions.extend([Moves(0), Moves(1)]);
    }

    fn next(&self, state: &mut State, Moves(me): Moves) -> Step {
        match state.at[me] {
            At::Idle => (state.at[me], state.turn) = (At::Waiting, 1 - me),
            At::Waiting if self.takes_turns && state.turn != me && state.at[1 - me] != At::Idle => {
                return Step::Disabled;
            }
            At::Waiting => state.at[me] = At::Critical,
            At::Critical => state.at[me] = At::Idle,
        }
        Step::Taken
    }
}

fn exclusive(state: &State) -> bool {
    state.at != [At::Critical; 2]
}

#[test]
fn every_store_and_search_gives_the_same_answer() {
    for info in CATALOGUE {
        let store = info.name;
        for &search in Search::ALL {
            let check = deltamark::check(Mutex { takes_turns: true }).invariant("exclusion", exclusive);
            let run = check.deadlock_free().store(store).search(search).run();
            if info.needs.contains(&Need::Undo) {
                assert!(run.is_err(), "{store}: the steps of this model cannot be undone");
                continue;
            }
            let report = run.expect("the model runs");
            let exact = report.report().guarantee == Guarantee::Exact;
            assert_eq!(report.holds(), exact, "{store}: only an exact store proves anything");
            assert!(report.complete());
            assert_eq!(
                (report.states(), report.edges(), report.deadlocks()),
                (10, 16, 0),
                "{store}, {}",
                search.name()
            );
        }
    }
}

#[test]
fn a_violation_comes_with_its_states() {
    let check = deltamark::check(Mutex { takes_turns: false }).invariant("exclusion", exclusive);
    let report = check.reachable("inside", |state| state.at[1] == At::Critical).run().expect("the model runs");
    assert!(!report.holds());
    assert!(matches!(report.verdict("exclusion"), Some(Verdict::Violated(Some(_), None))));
    let path = report.trace("exclusion").expect("a violation has a trace");
    assert_eq!(path.steps.len(), 4);
    assert_eq!(path.initial, State { at: [At::Idle; 2], turn: 0 });
    assert_eq!(path.last().at, [At::Critical; 2]);
    // Actions are values: replayed by the model itself, they give the states of the path.
    let mut state = path.initial.clone();
    let mut states = vec![state.clone()];
    for action in path.actions() {
        assert_eq!(Mutex { takes_turns: false }.next(&mut state, Moves(action.0)), Step::Taken);
        states.push(state.clone());
    }
    assert!(path.states().eq(&states));
    let moves = |who: usize| path.actions().filter(|action| **action == Moves(who)).count();
    assert_eq!((moves(0), moves(1)), (2, 2));
    assert_eq!(report.trace("inside").expect("a goal reached has a trace").steps.len(), 2);
    assert!(report.verdict("no such property").is_none() && report.trace("fault-free").is_none());
    let text = report.to_string();
    assert!(text.contains("exclusion: violated") && text.contains("1. Moves(0)  at = [Waiting, Idle]"), "{text}");
}

/// Counts down and then divides by zero.
struct Countdown;

impl Model for Countdown {
    type State = (u8,);
    type Action = ();

    fn initial(&self) -> Vec<(u8,)> {
        vec![(3,)]
    }

    fn actions(&self, _: &(u8,), actions: &mut Vec<()>) {
        actions.push(());
    }

    fn next(&self, state: &mut (u8,), (): ()) -> Step {
        state.0 = if state.0 > 0 { state.0 - 1 } else { 6 / state.0 };
        Step::Taken
    }
}

#[test]
fn a_panic_in_a_model_is_a_fault_with_a_trace() {
    let report = deltamark::check(Countdown).invariant("true", |_| true).run().expect("the model runs");
    let path = report.trace("fault-free").expect("a fault has a trace");
    assert_eq!((path.initial, path.last().0), ((3,), 0));
    assert_eq!(path.fault, Some(((), "the model panicked: attempt to divide by zero".into())));
    let report =
        deltamark::check(Countdown).invariant("no value at 0", |state| 3 / state.0 > 0).run().expect("the model runs");
    assert!(matches!(report.verdict("no value at 0"), Some(Verdict::Violated(Some(_), Some(_)))));
}

#[test]
fn limits_end_a_run_without_an_answer() {
    let report = deltamark::check(Mutex { takes_turns: true }).max_states(5).run().expect("the model runs");
    assert_eq!((report.states(), report.report().stopped_by), (5, Some(Stop::States)));
    assert!(!report.holds() && matches!(report.verdict("deadlock-free"), Some(Verdict::Unknown)));
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let check = || deltamark::check(Mutex { takes_turns: true });
    assert!(matches!(check().store("plian").run(), Err(ModelError::Store(_))));
    let twice = check().invariant("same", |_| true).reachable("same", |_| true).run();
    assert_eq!(twice.err(), Some(ModelError::SameName("same".into())));
}

#[test]
fn a_goal_without_a_value_somewhere_is_undecided_until_all_is_seen() {
    use deltamark_core::Limits;
    let format = deltamark::load::Format::by_name("tina").expect("a format");
    let text = b"pl p (1)\npl q (0)\ntr t p -> q\n";
    let net =
        deltamark::load::parse("r.net", format, text, &Default::default()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let whole = Limits::default;
    let depth = || Limits { depth: Some(0), ..whole() };
    let states = || Limits { states: Some(1), ..whole() };
    // The goal, the store, the limits, and what the answer is. `p % q` has no value in the first state.
    let cases = [
        ("p % q = 0", "plain", whole(), "holds"),
        ("p % q = 1", "plain", whole(), "violated"),
        ("p % q = 0", "plain", depth(), "unknown"),
        ("p % q = 0", "plain", states(), "unknown"),
        ("p % q = 0", "compaction", depth(), "unknown"),
        ("p % q = 1", "compaction", whole(), "unknown"),
    ];
    for (goal, store, limits, expected) in cases {
        for search in [Search::Bfs, Search::Dfs] {
            let check =
                deltamark::Check::loaded(&net).reachable(goal).expect("a goal").search(search).limits(limits.clone());
            let report = check.store(store.parse().expect("a store")).run().expect("it runs");
            assert_eq!(report.answers[0].verdict.word(), expected, "{goal}, {store}, {search:?}");
        }
    }
}

#[test]
fn more_values_to_pick_from_than_are_tried_leave_the_answer_open() {
    let format = deltamark::load::Format::by_name("lna").expect("a format");
    // The last value, whether the run comes to its end, and its states.
    for (last, stop, states) in [(999, None, 3), (4_000_000, Some(Stop::Count), 1)] {
        let text = format!(
            "a {{ type t : range 0 .. {last}; place p {{ dom : t; init : <( 0 )>; }} transition x {{ in {{ p : <( v )>; }} \
             out {{ p : <( w )>; }} pick {{ w in t; }} guard : w < 3; }} }}"
        );
        let options = deltamark::LoadOptions { unfold: deltamark::Unfold::No, ..Default::default() };
        let net = deltamark::load::parse("a.lna", format, text.as_bytes(), &options)
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        let report = deltamark::Check::loaded(&net).run().expect("it runs");
        assert_eq!((report.stopped_by, report.statistics.states), (stop, states), "{last}");
        let word = if stop.is_none() { "holds" } else { "unknown" };
        assert!(report.answers.iter().all(|answer| answer.verdict.word() == word), "{last}");
    }
}

#[test]
fn a_run_is_heard_of_and_written_as_json() {
    use deltamark::{Event, Listener};
    use std::sync::{Arc, Mutex as Lock};

    #[derive(Default)]
    struct Heard(Lock<Vec<String>>);

    impl Listener for Heard {
        fn event(&self, event: &Event<'_>) {
            if let Event::Answered(name, word) = event {
                self.0.lock().expect("a list").push(format!("{name}: {word}"));
            }
        }
    }

    let heard = Arc::new(Heard::default());
    let check = deltamark::check(Mutex { takes_turns: false }).invariant("exclusion", exclusive);
    let report = check.listener(heard.clone()).run().expect("the model runs");
    assert_eq!(*heard.0.lock().expect("a list"), ["exclusion: violated"]);
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).expect("JSON");
    assert_eq!(json["model"]["format"], "rust");
    assert_eq!(json["states"], report.states());
    let found = &json["properties"][0];
    assert_eq!((&found["name"], &found["verdict"]), (&"exclusion".into(), &"violated".into()));
    assert_eq!(found["trace"].as_array().map(Vec::len), Some(5));
    assert_eq!(found["trace"][1]["action"], "Moves(0)");
    let mut written = Vec::new();
    report.write_json(&mut written).expect("memory takes all");
    assert_eq!(written, report.to_json().as_bytes());
}

/// Counts for ever.
struct Endless;

impl Model for Endless {
    type State = (u64,);
    type Action = ();

    fn initial(&self) -> Vec<(u64,)> {
        vec![(0,)]
    }

    fn actions(&self, _: &(u64,), actions: &mut Vec<()>) {
        actions.push(());
    }

    fn next(&self, state: &mut (u64,), (): ()) -> Step {
        state.0 += 1;
        Step::Taken
    }
}

#[test]
fn progress_can_end_a_run() {
    let cancel = deltamark::Cancel::new();
    let seen = cancel.clone();
    let stop = move |now: &deltamark::Snapshot| {
        if now.states > 1 {
            seen.cancel();
        }
    };
    let report = deltamark::check(Endless).store("plain").cancel(&cancel).on_progress(stop).run().expect("it runs");
    assert_eq!(report.report().stopped_by, Some(Stop::Cancelled));
}

/// What takes too many steps, or calls too deep, to evaluate says nothing about the model, wherever it is: in a
/// property, a guard, a priority, or the tokens that a step makes.
#[test]
fn evaluations_beyond_their_bounds_leave_the_answer_open() {
    let format = deltamark::load::Format::by_name("lna").expect("a format");
    let bodies = ["int y := 0; while (x < 2) y := 1; return y;", "return f(x) + 1;"];
    let bindings = [("f(x)", ""), ("x", "guard : f(x) = 0;"), ("x", "priority : f(x);")];
    for body in bodies {
        for (token, attribute) in bindings {
            let text = format!(
                "a {{ function f (int x) -> int {{ {body} }} place p {{ dom : int; init : <( 0 )>; }} \
                 place q {{ dom : int; }} \
                 transition t {{ in {{ p : <( x )>; }} out {{ q : <( {token} )>; }} {attribute} }} }}"
            );
            let net = deltamark::load::parse("a.lna", format, text.as_bytes(), &Default::default())
                .unwrap_or_else(|wrong| panic!("{wrong}"));
            let report = deltamark::Check::loaded(&net).run().expect("it runs");
            let words: Vec<_> = report.answers.iter().map(|answer| answer.verdict.word()).collect();
            assert!(words.iter().all(|&word| word == "unknown") && !words.is_empty(), "{text}: {words:?}");
            assert_eq!(report.stopped_by, Some(Stop::Count), "{text}");
        }
        let text = format!(
            "a {{ function f (int x) -> int {{ {body} }} place p {{ dom : int; init : <( 0 )>; }} \
             proposition odd : forall (x in p : f(x->1) = 1); }}"
        );
        let net = deltamark::load::parse("a.lna", format, text.as_bytes(), &Default::default())
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        let asked = deltamark::Check::loaded(&net).invariant("odd").and_then(|check| check.reachable("not odd"));
        let report = asked.expect("properties").run().expect("it runs");
        let words: Vec<_> = report.answers.iter().map(|answer| answer.verdict.word()).collect();
        assert_eq!((words, report.stopped_by), (vec!["unknown"; 2], Some(Stop::Count)), "{text}");
    }
}
