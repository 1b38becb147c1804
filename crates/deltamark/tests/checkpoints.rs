//! Runs that go on from a checkpoint, against runs that nobody interrupted.
//!
//! In: models of every language, random nets at the edges of sizes. Out: nothing, or a panic that names the model and the
//! figure that differs. What stays true: every checkpoint of a run is gone on from, in a system of its own, in another store,
//! with another number of threads.

use deltamark::checkpoint::{CheckpointError, Checkpoints, InputFile, Kept};
use deltamark::control::Control;
use deltamark::{Check, Limits, LoadOptions, Loaded, Report, Search, Stop, StoreSpec, Unfold, load_with};
use deltamark_core::property::Undefined;
use deltamark_core::{Block, Budget, Goal, Outcome, Predicate, Property, Scratch, Store, System};
use deltamark_nets::NetSystem;
use deltamark_search::{Keeper, Keeping, Task, Threads, Unresumed, run_kept, run_on};
use deltamark_store::CATALOGUE;
use deltamark_testkit::net_oracle::explore_net;
use deltamark_testkit::scaled::scaled_net;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The stores that keep checkpoints.
const STORES: [&str; 4] = ["plain", "collapse", "tree", "compact"];
/// Of these threads every level is shared, however small.
const THREADS: [Threads; 2] = [Threads::ONE, Threads { count: 3, small: 0 }];

fn store<'a>(name: &str, system: &'a dyn System) -> Box<dyn Store + 'a> {
    let spec = StoreSpec::named(name);
    deltamark_store::build(&spec, system, Search::Bfs.order(), Arc::new(Budget::unlimited())).expect("a store")
}

fn task<'t>(
    system: &'t dyn System,
    store: &'t dyn Store,
    properties: &'t [Property],
    control: &'t Control,
    explore_all: bool,
) -> Task<'t> {
    Task { system, store, properties, control, explore_all, observer: None }
}

/// Keeps every checkpoint in memory.
#[derive(Default)]
struct All(Vec<(Kept, Vec<u8>)>);

impl Keeper for All {
    fn is_due(&mut self) -> bool {
        true
    }

    fn keep(&mut self, kept: Kept, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) {
        let mut bytes = Vec::new();
        write(&mut bytes).expect("memory takes all");
        self.0.push((kept, bytes));
    }
}

fn properties() -> [Property; 3] {
    // Named once more, so that one is decided early and the others are there too.
    [Property::deadlock_free(), Property::fault_free(), Property { name: "again".into(), ..Property::deadlock_free() }]
}

/// What must not depend on interruptions: why the run ended; states, edges, deadlocks, depth, expanded states; verdicts, with the
/// lengths of their traces and their messages.
fn figures(outcome: &Outcome) -> impl PartialEq + std::fmt::Debug + use<> {
    let counted = &outcome.statistics;
    let counts = [counted.states, counted.edges, counted.deadlocks, counted.depth, counted.expanded];
    let answers: Vec<String> = outcome
        .properties
        .iter()
        .map(|found| format!("{:?} {:?}", found.verdict.word(), found.verdict.trace().map(|trace| trace.len())))
        .collect();
    (outcome.stopped_by, counts, answers)
}

/// Compares all ways to interrupt a run of this system with one that is not interrupted. Returns how many were compared.
fn agrees(name: &str, fresh: &dyn Fn() -> Box<dyn System>, explore_all: bool) -> usize {
    let properties = properties();
    let control = Control::new();
    let system = fresh();
    let plain = store("plain", &*system);
    let expected =
        figures(&run_on(Threads::ONE, Search::Bfs, task(&*system, &*plain, &properties, &control, explore_all)));
    let mut compared = 0;
    for (number, first) in STORES.into_iter().enumerate() {
        let kept_by = THREADS[number % 2];
        let (system, mut all) = (fresh(), All::default());
        let keeping = Keeping { keeper: Some(&mut all), from: None };
        let kept_in = store(first, &*system);
        let outcome =
            run_kept(keeping, kept_by, task(&*system, &*kept_in, &properties, &control, explore_all)).expect("a run");
        assert_eq!(figures(&outcome), expected, "{name}, {first}: keeping checkpoints changes nothing");
        // Of long runs some, the first and the last among them.
        let step = all.0.len().div_ceil(6).max(1);
        let chosen = all.0.iter().enumerate().filter(|(at, _)| at % step == 0 || at + 1 == all.0.len());
        for (at, (kept, bytes)) in chosen {
            // What `compact` kept has no levels, which the others need.
            let then = if first == "compact" { first } else { STORES[(number + at) % STORES.len()] };
            let threads = THREADS[(number + at + 1) % 2];
            let system = fresh();
            let into = store(then, &*system);
            let keeping = Keeping { keeper: None, from: Some(&mut &bytes[..]) };
            let outcome = run_kept(keeping, threads, task(&*system, &*into, &properties, &control, explore_all));
            let outcome = outcome.unwrap_or_else(|why| panic!("{name}, {first}, {kept:?}: {why}"));
            let label = format!("{name}, {first} to {then}, {kept:?}, {} threads", threads.count);
            assert_eq!(figures(&outcome), expected, "{label}");
            compared += 1;
        }
    }
    compared
}

fn model(path: &str, unfold: Unfold) -> Loaded {
    let path = format!("../../models/{path}");
    load_with(&path, &LoadOptions { unfold, ..LoadOptions::default() }).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_run_that_goes_on_ends_like_one_that_was_not_interrupted_in_every_language() {
    let models = [
        ("kanban-3.pnml", Unfold::Auto),
        ("philosophers-5.pnml", Unfold::Auto),
        ("orders.net", Unfold::Auto),
        ("peterson.dve", Unfold::Auto),
        ("overflow.dve", Unfold::Auto),
        ("stop-and-wait.mdve", Unfold::Auto),
        ("database-managers.lna", Unfold::Yes),
        ("database-managers.lna", Unfold::No),
        ("leader-election.lna", Unfold::No),
        ("resources.cpn", Unfold::Auto),
    ];
    for (path, unfold) in models {
        for explore_all in [true, false] {
            let name = format!("{path}, unfold {unfold:?}, all {explore_all}");
            let compared = agrees(&name, &|| model(path, unfold).system, explore_all);
            assert!(compared >= 3, "{name}: {compared}");
        }
    }
}

#[test]
fn a_run_that_a_limit_ended_within_a_level_goes_on_in_every_store() {
    let fresh = || model("kanban-3.pnml", Unfold::Auto).system;
    let properties = properties();
    let mut rng = deltamark_testkit::Rng::new(3);
    for first in STORES {
        for threads in THREADS {
            let mut all = All::default();
            let mut limit = 1 + rng.below(3_000) as u64;
            let (mut rounds, mut left) = (0, None);
            while left.is_none() {
                let system = fresh();
                let kept_in = store(first, &*system);
                let limits = Limits { states: Some(limit), ..Limits::default() };
                let control = Control { limits, ..Control::new() };
                let task = task(&*system, &*kept_in, &properties, &control, true);
                let bytes = all.0.pop().map(|(_, bytes)| bytes);
                let mut bytes = bytes.as_deref();
                let from = bytes.as_mut().map(|bytes| bytes as &mut dyn std::io::Read);
                let mut ends = Ends(All::default());
                let keeping = Keeping { keeper: Some(&mut ends), from };
                let outcome = run_kept(keeping, threads, task).unwrap_or_else(|why| panic!("{first}: {why}"));
                assert!(ends.0.0.len() <= 1, "one at the end, if at all");
                all = ends.0;
                left = Some(outcome).filter(|outcome| outcome.stopped_by.is_none());
                limit += 500 + rng.below(12_000) as u64;
                rounds += 1;
            }
            let found = left.expect("it has ended").statistics;
            let counts = (found.states, found.edges, found.deadlocks, found.depth, found.expanded);
            assert_eq!(counts, (58_400, 446_400, 0, 42, 58_400), "{first}, {} threads", threads.count);
            assert!(rounds > 3, "{rounds}");
        }
    }
}

/// Whether the clock of the next test is past every deadline.
static LATE: AtomicBool = AtomicBool::new(false);

/// False in states without successors; the time is over as soon as one was seen, if `ends` says so.
struct Alive {
    ends: bool,
}

impl Predicate for Alive {
    fn evaluate(&self, _: &dyn System, _: &mut Scratch, block: &Block, dead: u64) -> Result<u64, Undefined> {
        if self.ends && dead & block.mask() != 0 {
            LATE.store(true, Relaxed);
        }
        Ok(block.mask() & !dead)
    }
}

#[test]
fn a_trace_that_a_limit_left_no_time_to_find_is_found_by_the_run_that_goes_on() {
    let alive = |ends| {
        let goal = Goal::Invariant(Box::new(Alive { ends }));
        [Property { name: "alive".into(), text: "alive".into(), goal }, Property::fault_free()]
    };
    let fresh = || model("philosophers-5.pnml", Unfold::Auto).system;
    let hour = Duration::from_secs(3600);
    for (number, first) in STORES.into_iter().enumerate() {
        for explore_all in [false, true] {
            let threads = THREADS[number % 2];
            let system = fresh();
            let (properties, kept_in) = (alive(true), store(first, &*system));
            let clock: fn() -> Option<Instant> =
                || Some(Instant::now() + Duration::from_secs(if LATE.load(Relaxed) { 7200 } else { 0 }));
            LATE.store(false, Relaxed);
            let control = Control { deadline: Some(Instant::now() + hour), clock, ..Control::new() };
            let mut all = All::default();
            let keeping = Keeping { keeper: Some(&mut all), from: None };
            let task_of_first = task(&*system, &*kept_in, &properties, &control, explore_all);
            let outcome = run_kept(keeping, threads, task_of_first).expect("a run");
            let told = (outcome.properties[0].verdict.word(), outcome.properties[0].untraced, outcome.stopped_by);
            assert_eq!(told, ("violated", Some(Stop::Time), Some(Stop::Time)), "{first}");
            assert!(all.0.len() > 3, "{first}: {}", all.0.len());
            for (kept, bytes) in all.0 {
                let (system, properties) = (fresh(), alive(false));
                let into = store(first, &*system);
                let keeping = Keeping { keeper: None, from: Some(&mut &bytes[..]) };
                let control = Control::new();
                let task = task(&*system, &*into, &properties, &control, explore_all);
                let outcome = run_kept(keeping, threads, task).expect("a run");
                let steps = outcome.properties[0].verdict.trace().map(|trace| trace.len());
                assert_eq!((steps, outcome.stopped_by), (Some(5), None), "{first}, {kept:?}");
            }
        }
    }
}

/// Keeps those of runs that ended, and no others.
struct Ends(All);

impl Keeper for Ends {
    fn is_due(&mut self) -> bool {
        false
    }

    fn keep(&mut self, kept: Kept, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) {
        self.0.keep(kept, write);
    }
}

/// Random nets: layouts that widen before and after.
fn random_nets(seeds: std::ops::Range<u64>) {
    let mut compared = 0;
    for seed in seeds {
        let net = scaled_net(seed);
        if explore_net(&net, 300).complete {
            compared += agrees(&net.name, &|| Box::new(NetSystem::new(net.clone())), seed % 2 == 0);
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn random_nets_go_on_too() {
    random_nets(0..50);
}

#[test]
#[ignore = "minutes; run by scripts/long"]
fn very_many_random_nets_go_on_too() {
    random_nets(1_000..8_000);
}

#[test]
fn these_stores_keep_checkpoints_and_no_others() {
    let net = model("kanban-3.pnml", Unfold::Auto);
    let able = |name: &&str| Keeping::unfit(&*net.system, &*store(name, &*net.system)).is_none();
    let found: Vec<&str> = CATALOGUE.iter().map(|info| info.name).filter(able).collect();
    assert_eq!(found, STORES);
}

#[test]
fn bytes_of_something_else_are_refused() {
    let (net, other) = (model("kanban-3.pnml", Unfold::Auto), model("philosophers-5.pnml", Unfold::Auto));
    let control = Control::new();
    let mut all = All::default();
    let keeping = Keeping { keeper: Some(&mut all), from: None };
    let asked = properties();
    run_kept(keeping, Threads::ONE, task(&*net.system, &*store("plain", &*net.system), &asked, &control, true))
        .expect("a run");
    let bytes = &all.0[all.0.len() / 2].1;
    let resumed = |system: &dyn System, properties: &[Property], bytes: &[u8]| {
        let keeping = Keeping { keeper: None, from: Some(&mut &bytes[..]) };
        run_kept(keeping, Threads::ONE, task(system, &*store("plain", system), properties, &control, true)).map(|_| ())
    };
    let why = |result: Result<(), Unresumed>| result.expect_err("it is refused").to_string();
    assert!(why(resumed(&*other.system, &asked, bytes)).contains("another model"));
    assert!(why(resumed(&*net.system, &asked[..1], bytes)).contains("other properties"));
    let fewer = [Property::deadlock_free(), Property::deadlock_free(), Property::fault_free()];
    assert!(why(resumed(&*net.system, &fewer, bytes)).contains("other properties"));
    for cut in (0..bytes.len()).step_by(bytes.len() / 50) {
        why(resumed(&*net.system, &asked, &bytes[..cut]));
    }
}

#[test]
fn reading_arbitrary_bytes_ends() {
    let net = model("kanban-3.pnml", Unfold::Auto);
    // Nothing is explored, and nothing asked that a state which cannot be reached would answer.
    let control = Control { limits: Limits { states: Some(1), ..Limits::default() }, ..Control::new() };
    let open = Control::new();
    let asked = [Property::fault_free()];
    let mut rng = deltamark_testkit::Rng::new(1);
    for name in ["plain", "compact"] {
        let mut all = All::default();
        let keeping = Keeping { keeper: Some(&mut all), from: None };
        let kept_in = store(name, &*net.system);
        run_kept(keeping, Threads::ONE, task(&*net.system, &*kept_in, &asked, &open, true)).expect("a run");
        let bytes = &all.0[10].1;
        let mut refused = 0;
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            let at = rng.below(bytes.len());
            damaged[at] ^= 1 << rng.below(8);
            let system = model("kanban-3.pnml", Unfold::Auto).system;
            let into = store(name, &*system);
            let keeping = Keeping { keeper: None, from: Some(&mut &damaged[..]) };
            let read = run_kept(keeping, Threads::ONE, task(&*system, &*into, &asked, &control, true));
            refused += u32::from(read.is_err());
        }
        assert!(refused > 30, "{name}: {refused}");
    }
}

/// A folder that is not there yet.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

const KANBAN: &str = "../../models/kanban-3.pnml";

fn kept_in(folder: &Path) -> Checkpoints {
    let inputs = vec![InputFile { role: "model", path: KANBAN.into() }];
    let words = vec!["some".to_string(), "words".into()];
    Checkpoints::new(folder.to_str().expect("a name"), Some(Duration::ZERO), words, inputs).expect("an empty folder")
}

fn check(model: &Loaded, checkpoints: &mut Checkpoints, states: Option<u64>) -> Report {
    let limits = Limits { states, ..Limits::default() };
    let check = Check::loaded(model).deadlock_free().explore_all(true).limits(limits).checkpoints(checkpoints);
    check.run().unwrap_or_else(|error| panic!("{error}"))
}

fn resume(folder: &Path, older: bool) -> Result<Checkpoints, CheckpointError> {
    Checkpoints::resume(folder.to_str().expect("a name"), older, &Control::new())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

#[test]
fn a_directory_holds_all_that_is_needed_and_the_last_two_checkpoints() {
    let folder = folder("checkpoints_directory");
    let model = deltamark::load(KANBAN, None).expect("a model");
    let mut checkpoints = kept_in(&folder);
    let report = check(&model, &mut checkpoints, Some(20_000));
    assert_eq!((report.stopped_by, report.statistics.states), (Some(Stop::States), 20_000));
    let told = report.checkpoint.expect("checkpoints");
    let newest = told.newest.expect("one").states;
    assert!(told.written > 10 && newest < 20_000 && told.trouble.is_none(), "{told:?}");
    let found = names(&folder);
    assert_eq!(found.iter().filter(|name| name.ends_with(".checkpoint")).count(), 2, "{found:?}");
    assert_eq!(found.len(), 6, "{found:?}");
    // Nobody else can use it meanwhile, nor begin in it afterwards.
    let error = resume(&folder, false).err().expect("it is in use");
    assert!(error.to_string().contains("another run keeps its checkpoints"), "{error}");
    drop(checkpoints);
    let again = Checkpoints::new(folder.to_str().expect("a name"), None, Vec::new(), Vec::new());
    let error = again.err().expect("there are checkpoints");
    assert!(error.to_string().contains("holds the checkpoints of a run"), "{error}");
    for (older, states) in [(false, newest), (true, 0)] {
        let mut checkpoints = resume(&folder, older).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(checkpoints.words(), ["some", "words"]);
        let copy = checkpoints.input("model").expect("a copy");
        assert_eq!(std::fs::read(&copy).expect("a file"), std::fs::read(KANBAN).expect("a file"));
        let model = deltamark::load(&copy, None).expect("a model");
        let report = check(&model, &mut checkpoints, None);
        let counts = &report.statistics;
        assert_eq!((counts.states, counts.edges, counts.depth, report.stopped_by), (58_400, 446_400, 42, None));
        let resumed = report.resumed.expect("it went on");
        assert!(states == 0 || resumed.states == states, "{resumed:?}");
        assert_eq!(names(&folder).iter().filter(|name| name.ends_with(".checkpoint")).count(), 2);
    }
}

#[test]
fn damaged_checkpoints_are_refused_and_the_one_before_is_offered() {
    let folder = folder("checkpoints_damaged");
    let model = deltamark::load(KANBAN, None).expect("a model");
    check(&model, &mut kept_in(&folder), Some(20_000));
    let newest = |ending: &str| {
        let mut found: Vec<String> = names(&folder).into_iter().filter(|name| name.ends_with(ending)).collect();
        found.sort_by_key(|name| name.split(['-', '.']).next().and_then(|number| number.parse::<u64>().ok()));
        folder.join(found.pop().expect("one"))
    };
    let refused = |label: &str, offers: bool| {
        let Err(CheckpointError::Unusable { message, help }) = resume(&folder, false) else {
            panic!("{label}: it is taken");
        };
        assert!(message.contains("cannot be used"), "{label}: {message}");
        assert_eq!(help.contains("--older"), offers, "{label}: {help}");
        assert_eq!(resume(&folder, true).is_ok(), offers, "{label}");
    };
    let mut rng = deltamark_testkit::Rng::new(7);
    for (path, offers) in [
        (newest(".image"), true),
        (newest(".checkpoint"), true),
        // The model is that of both.
        (folder.join("model/kanban-3.pnml"), false),
    ] {
        let whole = std::fs::read(&path).expect("a file");
        let write = |bytes: &[u8]| std::fs::write(&path, bytes).expect("a file");
        for cut in (0..whole.len()).step_by(4096) {
            write(&whole[..cut]);
            refused(&format!("{} cut at {cut}", path.display()), offers);
        }
        for _ in 0..40 {
            let mut damaged = whole.clone();
            let at = rng.below(whole.len());
            damaged[at] ^= 1 << rng.below(8);
            write(&damaged);
            refused(&format!("{} flipped at {at}", path.display()), offers);
        }
        write(b"something else");
        refused("foreign", offers);
        std::fs::remove_file(&path).expect("a file");
        // Without its manifest a checkpoint is none, and the one before is the newest.
        if !path.ends_with("kanban-3.pnml") && path.extension().is_some_and(|ending| ending == "checkpoint") {
            resume(&folder, false).unwrap_or_else(|error| panic!("{error}"));
        } else {
            refused("absent", offers);
        }
        write(&whole);
        resume(&folder, false).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn a_checkpoint_that_cannot_be_written_does_not_end_the_run() {
    let folder = folder("checkpoints_unwritable");
    let model = deltamark::load(KANBAN, None).expect("a model");
    let mut checkpoints = kept_in(&folder);
    // The directory goes away while the run goes on.
    let gone = folder.clone();
    let check = Check::loaded(&model).deadlock_free().explore_all(true).checkpoints(&mut checkpoints);
    let removed = std::sync::atomic::AtomicBool::new(false);
    let check = check.on_progress(move |snapshot| {
        if snapshot.states > 1_000 && !removed.swap(true, std::sync::atomic::Ordering::SeqCst) {
            let _ = std::fs::remove_dir_all(&gone);
        }
    });
    let report = check.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((report.statistics.states, report.stopped_by), (58_400, None));
    // A file in place of the directory is refused before anything is explored.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::write(&folder, "a file").expect("a file");
    let inputs = vec![InputFile { role: "model", path: KANBAN.into() }];
    let error = Checkpoints::new(folder.to_str().expect("a name"), None, Vec::new(), inputs);
    assert!(error.is_err());
    std::fs::remove_file(&folder).expect("a file");
}

#[test]
fn what_no_checkpoint_is_kept_of_is_refused_by_name() {
    let model = deltamark::load(KANBAN, None).expect("a model");
    let refused = |what: &str, choose: &dyn for<'c> Fn(Check<'c>) -> Check<'c>| {
        let folder = folder("checkpoints_refused");
        let mut checkpoints = kept_in(&folder);
        let check = choose(Check::loaded(&model).deadlock_free()).checkpoints(&mut checkpoints);
        let error = check.run().err().unwrap_or_else(|| panic!("{what} is taken")).to_string();
        assert!(error.contains("checkpoints"), "{what}: {error}");
        assert!(!folder.exists(), "{what}: nothing was written");
    };
    refused("dfs", &|check| check.search(Search::Dfs));
    refused("a sweep", &|check| check.search(deltamark::Strategy::Sweep));
    refused("stubborn sets", &|check| check.reduce(deltamark::Reduce::Stubborn));
    refused("a formula", &|check| check.ltl("G(true)").expect("a formula"));
    refused("a graph", &|check| check.graph("x.dmg"));
    for store in CATALOGUE.iter().filter(|info| !STORES.contains(&info.name)) {
        refused(store.name, &|check| check.store(StoreSpec::named(store.name)));
    }
}
