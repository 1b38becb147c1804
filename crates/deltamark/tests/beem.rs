//! The LTL properties of the BEEM models: as the property process that a model has, by every search for accepting cycles,
//! and as the formula that the process stands for, on the graph. No answers are published; all ways must agree.

use deltamark::{Check, Loaded, RouteKind, Search, Verdict, load};
use deltamark_core::Limits;
use deltamark_testkit::corpus::Corpus;
use std::fs::{read_dir, read_to_string};

/// Whether a property holds; `None` if the limit on states left it without an answer.
fn answer(check: Check<'_>, states: u64, told: &str) -> Option<bool> {
    let limits = Limits { states: Some(states), ..Limits::default() };
    let report = check.limits(limits).run().unwrap_or_else(|error| panic!("{told}: {error}"));
    let answer = report.answers.last().expect("a property was asked");
    match answer.verdict {
        Verdict::Holds(_) => Some(true),
        Verdict::Violated(..) => {
            assert!(answer.story.is_some(), "{told}: a violation is shown");
            Some(false)
        }
        Verdict::Unknown => None,
        ref other => panic!("{told}: {other:?}"),
    }
}

/// The property process by every search.
fn by_searches(model: &Loaded, states: u64, told: &str) -> Vec<Option<bool>> {
    let ways = [
        ("plain", Some(Search::Dfs), 1),
        ("plain", Some(Search::Bfs), 1),
        ("plain", Some(Search::Bfs), 2),
        ("plain", None, 2),
        ("tree", None, 2),
        ("compact", None, 2),
        ("delta", None, 1),
    ];
    let one = |(store, search, threads): (&str, Option<Search>, usize)| {
        let check = Check::loaded(model).route(RouteKind::Fly).store(store.parse().expect("a store")).threads(threads);
        let check = search.into_iter().fold(check, |check, search| check.search(search));
        answer(check, states, &format!("{told} over {store} by {search:?} and {threads} threads"))
    };
    ways.into_iter().map(one).collect()
}

/// A formula of BEEM with its abbreviations written out; `None` if it is written with macros.
fn written_out(formula: &str, abbreviations: &str) -> Option<String> {
    let mut meanings = Vec::new();
    for one in abbreviations.split(';') {
        let (name, meaning) = one.split_once('=')?;
        meanings.push((name.trim(), meaning.trim()));
    }
    if abbreviations.contains(['`', '\'']) {
        return None;
    }
    let mut text = String::new();
    let mut rest = formula;
    while let Some(first) = rest.chars().next() {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c| letter(c) != letter(first)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        match meanings.iter().find(|(name, _)| *name == word) {
            Some((_, meaning)) => text.push_str(&format!("({meaning})")),
            None => text.push_str(word),
        }
        rest = behind;
    }
    Some(text)
}

/// Asks every `step`-th model, up to so many states. At least so many must be violated, hold, and be compared with formulas.
fn agree(step: usize, states: u64, least: [usize; 3], test: &str) {
    let Some(corpus) = Corpus::find(test) else { return };
    let formulas = read_to_string(corpus.file("logic/beem", "formulas.tsv")).expect("a table");
    let (mut answered, mut compared) = ([0; 2], 0);
    let mut files: Vec<String> = read_dir(corpus.file("logic", "beem"))
        .expect("a folder")
        .map(|file| file.expect("a file").file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(".dve"))
        .collect();
    files.sort();
    for name in files.into_iter().step_by(step) {
        let path = corpus.file("logic/beem", &name).display().to_string();
        let model = load(&path, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut answers = by_searches(&model, states, &name);
        let parts: Vec<&str> = name.split('.').collect();
        let row = formulas
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>())
            .find(|row| row[0] == parts[0] && format!("prop{}", row[1]) == parts[2] && row[2] == "LTL");
        if let Some(text) = row.and_then(|row| written_out(row[3], row[4]))
            && let Ok(check) = Check::loaded(&model).ltl(&text)
        {
            let on_graph = answer(check.route(RouteKind::Graph), states, &format!("{name}: {text}"));
            compared += usize::from(on_graph.is_some());
            answers.push(on_graph);
        }
        let known: Vec<bool> = answers.iter().copied().flatten().collect();
        assert!(known.windows(2).all(|pair| pair[0] == pair[1]), "{name}: {answers:?}");
        if let Some(&holds) = known.first() {
            answered[usize::from(holds)] += 1;
        }
    }
    println!("{} violated, {} hold, {compared} compared with formulas", answered[0], answered[1]);
    let enough = answered[0] >= least[0] && answered[1] >= least[1] && compared >= least[2];
    assert!(enough, "{answered:?} answered, {compared} compared with formulas");
}

#[test]
fn small_beem_properties_have_one_answer_by_every_way() {
    agree(12, 4_000, [5, 1, 1], "small_beem_properties_have_one_answer_by_every_way");
}

#[test]
#[ignore = "minutes; run by scripts/long"]
fn beem_properties_have_one_answer_by_every_way() {
    agree(1, 300_000, [100, 10, 20], "beem_properties_have_one_answer_by_every_way");
}
