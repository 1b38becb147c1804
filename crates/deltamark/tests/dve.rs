//! DVE models with answers from outside: every one agrees in states and edges, and on deadlocks; and our own keep what
//! models/README.md promises.
//!
//! Models of up to 300,000 states are part of every run, breadth-first and depth-first, small ones with every exact store; larger
//! ones are part of the long run (see `scripts/long`).

use deltamark::search::Search;
use deltamark::store::{CATALOGUE, Need, StoreInfo};
use deltamark::{Check, Loaded, load};
use deltamark_testkit::Corpus;
use deltamark_testkit::corpus::Row;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Mutex;

/// Models up to this many states are tried with every exact store.
const SMALL: u64 = 20_000;
/// Models up to this many states are searched depth-first too.
const TWICE: u64 = 100_000;

/// Exact stores that do not undo steps, which DVE cannot.
fn stores(states: u64) -> impl Iterator<Item = &'static StoreInfo> {
    let exact = |store: &&StoreInfo| store.guarantee.starts_with("exact") && !store.needs.contains(&Need::Undo);
    CATALOGUE.iter().filter(exact).filter(move |store| store.name == "plain" || states <= SMALL)
}

/// What is wrong with a run, a line each.
fn run(model: &Loaded, name: &str, row: &Row, store: &StoreInfo, search: Search) -> Vec<String> {
    let spec = store.name.parse().expect("a name of the catalogue");
    let run = Check::loaded(model).explore_all(true).store(spec).search(search).run();
    let report = match run {
        Ok(report) => report,
        Err(error) => return vec![format!("{name}, {}: {error}", store.name)],
    };
    let mut wrong = Vec::new();
    let found = (report.statistics.states, report.statistics.edges);
    let expected = (row.number("states").unwrap_or(0), row.number("edges").unwrap_or(found.1));
    if found != expected {
        wrong.push(format!("{name}, {}, {}: found {found:?}, expected {expected:?}", store.name, search.name()));
    }
    let dead = report.answers[0].verdict.word() == "violated";
    if row.truth("deadlock").is_some_and(|expected| expected != dead) {
        wrong.push(format!("{name}, {}, {}: deadlock is {dead}", store.name, search.name()));
    }
    if report.answers[1].verdict.word() != "holds" {
        wrong.push(format!("{name}, {}: there is a fault", store.name));
    }
    wrong
}

fn check(corpus: &Corpus, row: &Row) -> Vec<String> {
    let name = row.text("model").expect("every row names its model");
    let path = corpus.file("dve", &format!("{name}.dve"));
    let model = load(&path.to_string_lossy(), None).unwrap_or_else(|error| panic!("{name}: {error}"));
    let states = row.number("states").expect("every row has its states");
    let mut wrong = Vec::new();
    for store in stores(states) {
        let searches = if states <= TWICE && store.name == "plain" { Search::ALL } else { &[Search::Bfs] };
        for &search in searches.iter().filter(|search| store.takes(search.order())) {
            wrong.extend(run(&model, name, row, store, search));
        }
    }
    wrong
}

/// Checks all models with so many states, of which there must be `count`, on two threads.
fn agree(test: &str, sizes: RangeInclusive<u64>, count: usize) {
    let Some(corpus) = Corpus::find(test) else { return };
    let wanted = |row: &Row| row.number("states").is_some_and(|states| sizes.contains(&states));
    let rows: Vec<Row> = corpus.expected("dve").into_iter().filter(wanted).collect();
    assert!(rows.len() >= count, "only {} models with {sizes:?} states", rows.len());
    let (rows, wrong) = (Mutex::new(rows), Mutex::new(Vec::new()));
    let next = || rows.lock().expect("no panic").pop();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(row) = next() {
                    let found = check(&corpus, &row);
                    wrong.lock().expect("no panic").extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn models_up_to_300_000_states_agree() {
    agree("models_up_to_300_000_states_agree", 0..=300_000, 60);
}

#[test]
#[ignore = "long: a minute; part of scripts/long"]
fn models_up_to_three_million_states_agree() {
    agree("models_up_to_three_million_states_agree", 300_001..=3_000_000, 20);
}

#[test]
#[ignore = "long: minutes and a gigabyte; part of scripts/long"]
fn large_models_agree() {
    agree("large_models_agree", 3_000_001..=u64::MAX, 5);
}

#[test]
fn example_models_keep_what_their_readme_promises() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let text = std::fs::read_to_string(root.join("README.md")).expect("models/README.md");
    let number = |cell: &str| cell.replace(',', "").parse::<u64>().expect("a number");
    let mut listed = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("| [")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let file = cells[0].split(']').next().unwrap_or_default();
        if !file.ends_with(".dve") {
            continue;
        }
        let model = load(&root.join(file).to_string_lossy(), None).unwrap_or_else(|error| panic!("{error}"));
        let report = Check::loaded(&model).deadlock_free().explore_all(true).run().expect("a run");
        let found = [report.statistics.states, report.statistics.edges, report.statistics.deadlocks];
        assert_eq!(found, [number(cells[2]), number(cells[3]), number(cells[4])], "{file}");
        listed.push(file.to_string());
    }
    let entries = std::fs::read_dir(&root).expect("models/");
    let mut there: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".dve"))
        .collect();
    listed.sort();
    there.sort();
    assert_eq!(listed, there, "every model is listed");
}

/// Properties over locations and variables, as users write them.
#[test]
fn properties_speak_of_locations_and_variables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let model = load(&root.join("peterson.dve").to_string_lossy(), None).unwrap_or_else(|error| panic!("{error}"));
    let cases = [
        ("not (P_0.CS and P_1.CS)", "holds"),
        ("P_0.CS implies wants[0] = 1", "holds"),
        ("turn <= 1 and wants[1] <= 1", "holds"),
        ("not P_1.CS", "violated"),
    ];
    for (text, expected) in cases {
        let report = Check::loaded(&model).invariant(text).and_then(|check| check.run()).expect("a run");
        assert_eq!(report.answers[0].verdict.word(), expected, "{text}");
    }
}
