//! DVE models with answers from outside: every one agrees in states and edges, and on deadlocks; and our own keep what
//! models/README.md promises.
//!
//! | states up to | regular run, breadth-first | depth-first too |
//! |---|---|---|
//! | 20,000 | native code with every exact store; the interpreter | `plain` |
//! | 100,000 | native code with `plain`, `tree` and `compact`; the interpreter | `plain` |
//! | 300,000 | the same | |
//!
//! What is above is part of the long run (see `scripts/long`): every store up to a million states, and both engines up to
//! 32 million.

use deltamark::{Check, EngineChoice, LoadOptions, Loaded, load, load_with};
use deltamark_search::Search;
use deltamark_store::{CATALOGUE, Need, StoreInfo};
use deltamark_testkit::Corpus;
use deltamark_testkit::corpus::Row;
use std::ops::RangeInclusive;
use std::path::Path;

/// Models up to this many states are searched depth-first too.
const TWICE: u64 = 100_000;

/// What models are run with, breadth-first.
#[derive(Clone, Copy)]
enum With {
    /// The plain store.
    Plain,
    /// That and the two that share parts of states.
    Shared,
    /// Every exact store that does not undo steps, which DVE cannot.
    AllStores,
    /// Every one but the three.
    OtherStores,
}

impl With {
    fn stores(self) -> impl Iterator<Item = &'static StoreInfo> {
        let exact = |store: &&StoreInfo| store.guarantee.starts_with("exact") && !store.needs.contains(&Need::Undo);
        let common = |store: &StoreInfo| ["plain", "tree", "compact"].contains(&store.name);
        CATALOGUE.iter().filter(exact).filter(move |store| match self {
            With::Plain => store.name == "plain",
            With::Shared => common(store),
            With::AllStores => true,
            With::OtherStores => !common(store),
        })
    }
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

/// Checks all models with this many states, of which there must be `count`, on two threads.
fn agree(test: &str, engine: EngineChoice, sizes: RangeInclusive<u64>, count: usize, with: With) {
    let Some(corpus) = Corpus::find(test) else { return };
    let states = |row: &Row| row.number("states").expect("every row has its states");
    corpus.check_rows(
        "dve",
        count,
        |row| sizes.contains(&states(row)),
        |row| {
            let name = row.text("model").expect("every row names its model");
            let path = corpus.file("dve", &format!("{name}.dve"));
            let options = LoadOptions { engine: Some(engine), ..LoadOptions::default() };
            let model = load_with(&path.to_string_lossy(), &options).unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut wrong = Vec::new();
            for store in with.stores() {
                let twice = states(row) <= TWICE && store.name == "plain";
                let searches = if twice { Search::ALL } else { &[Search::Bfs] };
                for &search in searches.iter().filter(|search| store.takes(search.order())) {
                    wrong.extend(run(&model, name, row, store, search));
                }
            }
            wrong
        },
    );
}

/// Native code where this build has it.
const NATIVE: EngineChoice = if cfg!(feature = "native") { EngineChoice::Native } else { EngineChoice::Auto };

#[test]
fn small_models_agree_with_every_store() {
    agree("small_models_agree_with_every_store", NATIVE, 0..=20_000, 38, With::AllStores);
}

#[test]
fn models_of_middle_size_agree() {
    agree("models_of_middle_size_agree", NATIVE, 20_001..=300_000, 25, With::Shared);
}

#[test]
fn models_of_middle_size_agree_by_the_interpreter() {
    let test = "models_of_middle_size_agree_by_the_interpreter";
    agree(test, EngineChoice::Interpreter, 0..=300_000, 63, With::Plain);
}

#[test]
#[ignore = "long: minutes; part of scripts/long"]
fn models_up_to_three_million_states_agree() {
    agree("models_up_to_three_million_states_agree", NATIVE, 300_001..=3_000_000, 27, With::Shared);
}

#[test]
#[ignore = "long: minutes; part of scripts/long"]
fn models_up_to_three_million_states_agree_by_the_interpreter() {
    let test = "models_up_to_three_million_states_agree_by_the_interpreter";
    agree(test, EngineChoice::Interpreter, 300_001..=3_000_000, 27, With::Plain);
}

#[test]
#[ignore = "long: minutes; part of scripts/long"]
fn models_up_to_a_million_states_agree_with_every_store() {
    agree("models_up_to_a_million_states_agree_with_every_store", NATIVE, 20_001..=1_000_000, 40, With::OtherStores);
}

#[test]
#[ignore = "long: minutes and a gigabyte; part of scripts/long"]
fn large_models_agree() {
    agree("large_models_agree", NATIVE, 3_000_001..=u64::MAX, 5, With::Shared);
}

#[test]
#[ignore = "long: minutes and a gigabyte; part of scripts/long"]
fn large_models_agree_by_the_interpreter() {
    agree("large_models_agree_by_the_interpreter", EngineChoice::Interpreter, 3_000_001..=u64::MAX, 5, With::Plain);
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
