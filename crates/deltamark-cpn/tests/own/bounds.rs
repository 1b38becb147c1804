//! Evaluations that take long: they end with the run, and what they would have found is not made up.

use std::time::{Duration, Instant};

use deltamark_core::{Cancel, Stop};

use crate::*;

/// Some ten million steps, below the bound of an evaluation.
const LONG: &str = "fun spin 0 = 0 | spin k = spin (k-1); \
                    fun long k = foldl (fn (i, a) => a + spin 100) 0 (List.tabulate (k, fn i => i));";

/// All of these evaluations together take minutes, one a few tenths of a second.
const SLOW: &str = "long 10000";

/// A control whose deadline is that far away.
fn within(time: Duration) -> Control {
    Control { deadline: Some(Instant::now() + time), clock: || Some(Instant::now()), ..Control::new() }
}

/// The net whose guard, and what it produces, are these; any of `tokens` numbers is taken.
fn net(tokens: u32, guard: &str, label: &str) -> String {
    file(
        &format!("{BASE} {LONG}"),
        &[("P", "INT", &format!("List.tabulate ({tokens}, fn i => i)")), ("Q", "INT", "")],
        &[("T", guard, "")],
        &[("PtoT", "T", "P", "n"), ("TtoP", "T", "Q", label)],
    )
}

#[test]
fn bindings_end_with_the_run() {
    let (guard, label) = (format!("{SLOW} + n >= 0"), format!("{SLOW} + n"));
    for (guard, label) in [(guard.as_str(), "n"), ("", label.as_str())] {
        let text = net(2000, guard, label);
        let system = load(&text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        let began = Instant::now();
        let outcome = explore_under(&system, &within(Duration::from_millis(200)));
        // A single evaluation that is not ended would pass; of 64, the distance of polls before, none does.
        assert!(began.elapsed() < Duration::from_secs(10), "{guard} {label}: {:?}", began.elapsed());
        assert_eq!(outcome.stopped_by, Some(Stop::Time), "{guard} {label}");
        let cancel = Cancel::new();
        let cancelled = Control { cancel: cancel.clone(), ..Control::new() };
        let stopped_by = std::thread::scope(|scope| {
            let run = scope.spawn(|| explore_under(&system, &cancelled).stopped_by);
            std::thread::sleep(Duration::from_millis(50));
            cancel.cancel();
            run.join().expect("it ends")
        });
        assert_eq!(stopped_by, Some(Stop::Cancelled), "{guard} {label}");
    }
}

/// A run that was ended leaves nothing behind: a later run of the same net finds everything.
#[test]
fn what_was_not_evaluated_to_its_end_is_evaluated_anew() {
    for (guard, label) in [("long 400 + n >= 0", "n"), ("", "long 400 + n")] {
        let text = net(3, guard, label);
        let system = load(&text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        let stopped = explore_under(&system, &within(Duration::from_millis(1))).stopped_by;
        assert_eq!(stopped, Some(Stop::Time), "{guard} {label}");
        let outcome = explore_under(&system, &Control::new());
        let found = (outcome.stopped_by, outcome.statistics.states, outcome.statistics.edges);
        assert_eq!(found, (None, 8, 12), "{guard} {label}");
    }
}

#[test]
fn reading_ends_with_the_run() {
    let many = |what: &dyn Fn(u32) -> String| (0..500).map(what).collect::<String>();
    let values = many(&|number| format!("val x{number} = {SLOW}; "));
    let places: Vec<(String, String)> = (0..500).map(|number| (format!("P{number}"), SLOW.to_string())).collect();
    let places: Vec<(&str, &str, &str)> =
        places.iter().map(|(name, marking)| (name.as_str(), "INT", marking.as_str())).collect();
    let subsets = many(&|number| {
        format!("colset S{number} = subset R by (fn k => {SLOW} = k); val n{number} = S{number}.size (); ")
    });
    let one = [("P", "INT", "1`1")];
    for text in [
        file(&format!("{BASE} {LONG} {values}"), &one, &[], &[]),
        file(&format!("{BASE} {LONG}"), &places, &[], &[]),
        file(&format!("{BASE} {LONG} colset R = int with 0..50; {subsets}"), &one, &[], &[]),
    ] {
        let began = Instant::now();
        let control = within(Duration::from_millis(100));
        let net = deltamark_cpn::parse_under(&text, &[], &[], &control);
        let system = net.and_then(|net| ColouredSystem::under(net, &text, &control));
        let wrong = system.err().expect("it is ended");
        assert_eq!(wrong[0].stop, Some(Stop::Time), "{}", wrong[0].message);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

/// A test of a subset that raises says no. One that takes too long says nothing: its value was left out in silence.
#[test]
fn a_test_of_a_subset_that_takes_too_long_leaves_the_answer_open() {
    let states = |test: &str| {
        let text = file(
            &format!("{BASE} {LONG} exception Bad; fun few n = {test}; colset S = subset INT by few; var s : S;"),
            &[("P", "INT", "1`1++1`9")],
            &[("T", "", "")],
            &[("PtoT", "T", "P", "s")],
        );
        let system = load(&text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        let outcome = explore_under(&system, &Control::new());
        (outcome.statistics.states, outcome.stopped_by)
    };
    assert_eq!(states("n < 5"), (2, None));
    assert_eq!(states("n < 5 orelse raise Bad"), (2, None));
    let (_, stopped_by) = states("n < 5 orelse long 1000000 = 0");
    assert!(stopped_by.is_some(), "what is not known is left out");
}
