//! Nets that others wrote, with the counts that Helena reports for them.

use std::time::{Duration, Instant};

use super::explored::for_each;
use super::{explore, explore_system, parameters, system};
use deltamark_coloured::lna::{parse, parse_properties};
use deltamark_coloured::{ColouredSystem, UnfoldLimits, UnfoldedSystem};
use deltamark_testkit::corpus::Corpus;

fn text_of(corpus: &Corpus, model: &str) -> String {
    std::fs::read_to_string(corpus.file("lna", &format!("{model}.lna"))).expect("the model is there")
}

/// In which form a net is explored.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Coloured,
    /// Unfolded if that is the default, otherwise coloured.
    Unfolded,
}

/// Compares all models with a number of states in `states` with the expected counts; returns how many there
/// were.
fn check(test: &str, states: std::ops::RangeInclusive<u64>, form: Form, store: &str) -> usize {
    let Some(corpus) = Corpus::find(test) else { return usize::MAX };
    let mut rows = corpus.expected("lna");
    rows.retain(|row| row.number("states").is_some_and(|count| states.contains(&count)));
    rows.sort_by_key(|row| row.number("states"));
    for_each(&rows, |row| {
        let model = row.text("model").expect("a model");
        let given = row.text("parameters").unwrap_or_default();
        let text = text_of(&corpus, model);
        let begin = Instant::now();
        let coloured = || system(&text, given);
        let unfolded = || {
            let net = parse(text.as_bytes(), &parameters(given)).expect("a net");
            UnfoldedSystem::new(net, &text, UnfoldLimits::AUTO).ok()
        };
        let (found, shown) = match Some(()).filter(|()| form == Form::Unfolded).and_then(|()| unfolded()) {
            Some(system) => (explore_system(&system, store), "unfolded"),
            None => (explore_system(&coloured(), store), "coloured"),
        };
        println!("{model} {given}, {shown}, {store}: {found:?}, {:.1?}", begin.elapsed());
        let case = format!("{model} with {given}, {shown}: {found:?}");
        assert_eq!(Some(found.states), row.number("states"), "states of {case}");
        assert!(row.number("edges").is_none_or(|edges| edges == found.edges), "edges of {case}");
        assert!(row.number("dead_states").is_none_or(|dead| dead == found.deadlocks), "deadlocks of {case}");
        assert_eq!(found.fault, None, "{case}");
    });
    rows.len()
}

#[test]
fn counts_agree_with_helena() {
    assert!(check("counts_agree_with_helena", 0..=350_000, Form::Coloured, "plain") > 40);
}

#[test]
fn counts_agree_with_helena_up_to_three_million_states_unfolded() {
    let test = "counts_agree_with_helena_up_to_three_million_states_unfolded";
    assert!(check(test, 0..=3_000_000, Form::Unfolded, "plain") >= 50);
}

#[test]
#[ignore = "long: a minute, in release mode"]
fn counts_agree_with_helena_up_to_seven_million_states() {
    let test = "counts_agree_with_helena_up_to_seven_million_states";
    assert!(check(test, 350_001..=7_000_000, Form::Coloured, "plain") > 8);
}

#[test]
#[ignore = "long: two minutes, in release mode"]
fn counts_agree_with_helena_up_to_twenty_million_states_unfolded() {
    let test = "counts_agree_with_helena_up_to_twenty_million_states_unfolded";
    assert!(check(test, 3_000_001..=20_000_000, Form::Unfolded, "compact") > 5);
}

#[test]
#[ignore = "long: many minutes and several gigabytes, in release mode"]
fn counts_agree_with_helena_on_the_largest_models() {
    let test = "counts_agree_with_helena_on_the_largest_models";
    assert!(check(test, 20_000_001..=u64::MAX, Form::Unfolded, "compact") > 2);
}

#[test]
fn every_model_is_ready_in_a_tenth_of_a_second() {
    let Some(corpus) = Corpus::find("every_model_is_ready_in_a_tenth_of_a_second") else { return };
    for row in corpus.expected("lna") {
        let model = row.text("model").expect("a model");
        let given = row.text("parameters").unwrap_or_default();
        let text = text_of(&corpus, model);
        // The best of three: the machine may be busy.
        let once = || {
            let begin = Instant::now();
            let net = parse(text.as_bytes(), &parameters(given)).expect("a net");
            let ready = ColouredSystem::new(net, &text).is_ok();
            (ready, begin.elapsed())
        };
        let best = (0..3).map(|_| once()).min_by_key(|(_, time)| *time).expect("three");
        assert!(best.0 && best.1 < Duration::from_millis(100), "{model} with {given}: {best:?}");
    }
}

#[test]
fn property_files_are_read() {
    let Some(corpus) = Corpus::find("property_files_are_read") else { return };
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        ("bakery", &[("cs_ok", "not cs_not_ok")], &[]),
        ("dining", &[("not_dead", "not deadlock")], &["p0_no_starvation"]),
        ("leader", &[], &["leader_elected", "leader_remains"]),
        ("eratosthene", &[("prime_ok", "not bad_prime")], &["proper_termination"]),
    ];
    for (model, properties, temporal) in cases {
        let text = text_of(&corpus, model);
        let mut net = parse(text.as_bytes(), &[]).expect("a net");
        let file = std::fs::read(corpus.file("lna", &format!("{model}.prop.lna"))).expect("the file is there");
        parse_properties(&mut net, &file).expect("properties");
        let texts = net.property_texts();
        let found: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(&found[..], *properties, "{model}");
        let found: Vec<&str> = net.temporal.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(&found[..], *temporal, "{model}");
    }
}

#[test]
fn a_symbol_adds_a_place() {
    let Some(corpus) = Corpus::find("a_symbol_adds_a_place") else { return };
    let text = text_of(&corpus, "dbm");
    let places = |given: &str| parse(text.as_bytes(), &parameters(given)).expect("a net").places.len();
    assert_eq!((places(""), places("UNUSED=1")), (7, 8));
    // The place that is added follows from the others.
    assert_eq!(explore(&text, "N=4,UNUSED=1").states, 109);
    drop(system(&text, "UNUSED=1"));
}
