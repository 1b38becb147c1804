//! One control is asked from the first byte of a model to the last state of a trace: what it says ends loading, unfolding and
//! looking for traces, and what was found by then is reported.

use deltamark::control::steering;
use deltamark::{Check, LoadError, LoadOptions, Unfold, load_under};
use deltamark_core::property::Undefined;
use deltamark_core::{Block, Cancel, Control, Goal, Limits, Predicate, Property, Scratch, Stop, System, Verdict};
use deltamark_nets::generate::generate;
use deltamark_nets::write::{to_pnml, to_tina};
use deltamark_search::{Search, Strategy};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// True until a state comes that is far from the first one; then false, and the run is asked to stop.
struct StopsThere {
    after: std::sync::atomic::AtomicUsize,
    cancel: Cancel,
}

impl Predicate for StopsThere {
    fn evaluate(&self, _: &dyn System, _: &mut Scratch, block: &Block, _: u64) -> Result<u64, Undefined> {
        use std::sync::atomic::Ordering::Relaxed;
        if self.after.fetch_sub(1, Relaxed) > 1 {
            return Ok(block.mask());
        }
        self.after.store(1, Relaxed);
        self.cancel.cancel();
        Ok(0)
    }
}

#[test]
fn a_violation_whose_trace_cannot_be_found_is_told_without_it() {
    let system = deltamark_nets::NetSystem::new(generate("kanban", 3).expect("a net"));
    let bfs = Strategy::from(Search::Bfs);
    // Every way to find a trace: undoing, a second search, back edges, crumbs, stacks, a second sweep.
    let cases = [
        ("plain", bfs),
        ("tree", bfs),
        ("compact", bfs),
        ("breadcrumb", bfs),
        ("comback", bfs),
        ("compaction", bfs),
        ("plain", Search::Dfs.into()),
        ("plain", Strategy::Sweep),
    ];
    for (store, search) in cases {
        let cancel = Cancel::new();
        let goal = StopsThere { after: 50.into(), cancel: cancel.clone() };
        let property = Property { name: "near".into(), text: "near".into(), goal: Goal::Invariant(Box::new(goal)) };
        let check = Check::new(&system).property(property).search(search).threads(1).cancel(cancel);
        let check = if search == Strategy::Sweep { check } else { check.store(store.parse().expect("a store")) };
        let report = check.run().unwrap_or_else(|error| panic!("{store}: {error}"));
        let answer = &report.answers[0];
        let label = format!("{store}, {}", search.name());
        assert!(matches!(answer.verdict, Verdict::Violated(None, _)), "{label}: {:?}", answer.verdict);
        assert_eq!((answer.story.is_none(), answer.untraced), (true, Some(Stop::Cancelled)), "{label}");
        assert!(report.to_json().contains(r#""untraced_by":"cancelled""#), "{label}: {}", report.to_json());
    }
}

/// A file with this text.
fn file(name: &str, text: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("control");
    std::fs::create_dir_all(&folder).expect("a folder to write to");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("the file is written");
    path.to_string_lossy().into_owned()
}

/// Models of each kind, each large enough that loading it takes a while.
fn models() -> Vec<(String, Unfold)> {
    let net = generate("philosophers", 2000).expect("a net");
    let own = |name: &str| format!("{}/../../models/{name}", env!("CARGO_MANIFEST_DIR"));
    let processes: String = (0..2000)
        .map(|n| format!("process P{n} {{ state a, b; init a; trans a -> b {{ effect x = {n} % 2; }}; }}\n"))
        .collect();
    vec![
        (file("large.net", &to_tina(&net)), Unfold::Auto),
        (file("large.pnml", &to_pnml(&net)), Unfold::Auto),
        (file("large.dve", &format!("byte x;\n{processes}system async;\n")), Unfold::Auto),
        (own("anderson.mdve"), Unfold::Auto),
        (own("sieve.lna"), Unfold::Yes),
        (own("philosophers.lna"), Unfold::No),
    ]
}

#[test]
fn loading_ends_when_the_control_says_so() {
    let past = Instant::now();
    let cancelled = Control::new();
    cancelled.cancel.cancel();
    let over = Control { deadline: Some(past), clock: || Some(Instant::now()), ..Control::new() };
    let limits = Limits { memory: Some(1 << 30), ..Limits::default() };
    let full = Control { limits, resident: || Some(u64::MAX), ..Control::new() };
    for (path, unfold) in models() {
        for (control, expected) in [(&cancelled, Stop::Cancelled), (&over, Stop::Time), (&full, Stop::Memory)] {
            let options = LoadOptions { unfold, ..LoadOptions::default() };
            match load_under(&path, &options, control) {
                Err(LoadError::Stopped { stop, .. }) => assert_eq!(stop, expected, "{path}"),
                Err(other) => panic!("{path}: {other}"),
                Ok(_) => panic!("{path} was loaded"),
            }
        }
    }
}

#[test]
fn loading_asks_again_and_again() {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static ASKED: AtomicU64 = AtomicU64::new(0);
    // A clock that counts how often it is read, and is over in the end.
    fn clock() -> Option<Instant> {
        let asked = ASKED.fetch_add(1, Relaxed);
        static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        Some(*BEGAN.get_or_init(Instant::now) + Duration::from_secs(asked))
    }
    let deadline = clock().map(|began| began + Duration::from_secs(40));
    let control = Control { deadline, clock, ..Control::new() };
    for (path, unfold) in models().into_iter().filter(|(path, _)| path.contains("large") || path.contains("sieve")) {
        ASKED.store(0, Relaxed);
        let options = LoadOptions { unfold, ..LoadOptions::default() };
        let loaded = load_under(&path, &options, &control);
        assert!(
            matches!(loaded, Err(LoadError::Stopped { stop: Stop::Time, .. })),
            "{path}: {} times",
            ASKED.load(Relaxed)
        );
    }
}

#[test]
fn what_is_unfolded_unasked_runs_as_it_is_where_memory_is_short() {
    // The process holds little at first and much after some looks at it, but never more than it may. When that happens while the
    // net is being unfolded, it is more than the half that unfolding may take.
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static LEFT: AtomicU64 = AtomicU64::new(0);
    fn resident() -> Option<u64> {
        let small = LEFT.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        Some(if small { 10 << 20 } else { 700 << 20 })
    }
    let limits = Limits { memory: Some(1000 << 20), ..Limits::default() };
    let control = Control { limits, resident, ..Control::new() };
    let path = format!("{}/../../models/database-managers.lna", env!("CARGO_MANIFEST_DIR"));
    let mut fell_back = 0;
    for looks in 0..200 {
        LEFT.store(looks, Relaxed);
        let loaded = load_under(&path, &LoadOptions::default(), &control);
        let loaded = loaded.unwrap_or_else(|error| panic!("after {looks} looks: {error}"));
        let note = loaded.info.note.as_deref();
        fell_back += u32::from(note == Some("not unfolded: the memory limit leaves too little room"));
    }
    assert!((1..200).contains(&fell_back), "{fell_back}");
}

#[test]
fn the_time_of_a_run_counts_from_its_first_moment() {
    let system = deltamark_nets::NetSystem::new(generate("kanban", 4).expect("a net"));
    let long_ago = Instant::now().checked_sub(Duration::from_secs(10)).expect("the machine has run for a while");
    let limits = Limits { time: Some(Duration::from_secs(5)), ..Limits::default() };
    assert_eq!(steering(&limits, &Cancel::new(), long_ago).stop(), Some(Stop::Time));
    for (store, search) in [("auto", Search::Bfs), ("plain", Search::Bfs), ("plain", Search::Dfs)] {
        let check = Check::new(&system).limits(limits.clone()).search(search).store(store.parse().expect("a store"));
        let report = check.since(long_ago).run().expect("a report");
        assert_eq!(report.stopped_by, Some(Stop::Time), "{store}");
        assert!(report.statistics.states < 454_475, "{store}: {}", report.statistics.states);
    }
}
