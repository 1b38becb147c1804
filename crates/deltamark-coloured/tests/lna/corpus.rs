//! Nets that others wrote, with the counts that Helena gives for them.

use std::time::{Duration, Instant};

use super::{explore, parameters, system};
use deltamark_coloured::ColouredSystem;
use deltamark_coloured::lna::{parse, parse_properties};
use deltamark_testkit::corpus::{Corpus, Row};

fn text_of(corpus: &Corpus, model: &str) -> String {
    std::fs::read_to_string(corpus.file("lna", &format!("{model}.lna"))).expect("the model is there")
}

fn check(rows: impl Iterator<Item = (Corpus, Row)>) -> usize {
    let mut checked = 0;
    for (corpus, row) in rows {
        let model = row.text("model").expect("a model");
        let given = row.text("parameters").unwrap_or_default();
        let found = explore(&text_of(&corpus, model), given);
        assert_eq!(Some(found.states), row.number("states"), "states of {model} with {given}");
        assert!(
            row.number("edges").is_none_or(|edges| edges == found.edges),
            "edges of {model} with {given}: {found:?}"
        );
        let deadlocks = row.number("dead_states");
        assert!(deadlocks.is_none_or(|dead| dead == found.deadlocks), "deadlocks of {model} with {given}: {found:?}");
        assert_eq!(found.fault, None, "{model} with {given}");
        checked += 1;
    }
    checked
}

fn rows(test: &str, states: std::ops::RangeInclusive<u64>) -> Option<impl Iterator<Item = (Corpus, Row)>> {
    let corpus = Corpus::find(test)?;
    let rows = corpus.expected("lna").into_iter();
    let rows = rows.filter(move |row| row.number("states").is_some_and(|count| states.contains(&count)));
    Some(rows.map(move |row| (corpus.clone(), row)))
}

#[test]
fn counts_agree_with_helena() {
    let Some(rows) = rows("counts_agree_with_helena", 0..=350_000) else { return };
    assert!(check(rows) > 40);
}

#[test]
#[ignore = "long: two minutes"]
fn counts_agree_with_helena_up_to_three_million_states() {
    let Some(rows) = rows("counts_agree_with_helena_up_to_three_million_states", 350_001..=3_000_000) else { return };
    assert!(check(rows) > 5);
}

#[test]
#[ignore = "long: several minutes and a gigabyte"]
fn counts_agree_with_helena_up_to_six_million_states() {
    let Some(rows) = rows("counts_agree_with_helena_up_to_six_million_states", 3_000_001..=6_000_000) else { return };
    assert!(check(rows) > 2);
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
        assert_eq!(net.temporal, *temporal, "{model}");
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
