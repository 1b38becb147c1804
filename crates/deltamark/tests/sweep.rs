//! Sweeps of models with answers from outside: where nothing was explored twice, states, edges and deadlocks are those of any
//! other search; elsewhere verdicts are. And the two models of the paper hold no more states at once than there.

use deltamark::{Check, LoadOptions, Report, load, load_with};
use deltamark_core::{Block, Control, Measure, Property, Remember, StateId, System, Verdict, Window};
use deltamark_search::{Strategy, SweepTask, run_sweep};
use deltamark_store::sweep::layers::Layers;
use deltamark_testkit::Corpus;
use deltamark_testkit::corpus::Row;
use deltamark_testkit::oracle::explore;
use std::path::Path;

/// What is wrong with a sweep, if anything.
fn differences(report: &Report, row: &Row) -> Vec<String> {
    let swept = report.sweep.as_ref().and_then(|sweep| sweep.swept.clone()).expect("a sweep is told");
    let found = [
        ("states", report.statistics.states),
        ("edges", report.statistics.edges),
        ("deadlock_states", report.statistics.deadlocks),
    ];
    let mut wrong = Vec::new();
    for (column, found) in found {
        let Some(expected) = row.number(column) else { continue };
        if if swept.unfolding { found < expected } else { found != expected } {
            wrong.push(format!("{column}: found {found}, expected {expected}, unfolding: {}", swept.unfolding));
        }
    }
    let dead = matches!(report.answers[0].verdict, Verdict::Violated(Some(_), _));
    if row.truth("deadlock").is_some_and(|expected| expected != dead) {
        wrong.push(format!("deadlock: {:?}", report.answers[0].verdict));
    }
    if report.stopped_by.is_some() || swept.unfolding != (swept.persistent > 0) {
        wrong.push(format!("{swept:?}"));
    }
    wrong
}

/// Sweeps over all models of a folder of up to this many states, with the measure that is found.
fn agree(test: &str, folder: &str, ending: &str, most: u64, least: usize) {
    let Some(corpus) = Corpus::find(test) else { return };
    let (mut wrong, mut count) = (Vec::new(), 0);
    for row in corpus.expected(folder) {
        let name = row.text("model").expect("every row names its model").to_string();
        if row.number("states").is_none_or(|states| states > most) {
            continue;
        }
        let path = corpus.file(folder, &format!("{name}.{ending}"));
        let Ok(model) = load(&path.to_string_lossy(), None) else { continue };
        match Check::loaded(&model).deadlock_free().search(Strategy::Sweep).explore_all(true).run() {
            Ok(report) => {
                count += 1;
                wrong.extend(differences(&report, &row).into_iter().map(|what| format!("{name}: {what}")));
            }
            // Some models have nothing that progresses.
            Err(error) => assert!(error.to_string().contains("progress measure"), "{name}: {error}"),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= least, "only {count} models were swept");
}

#[test]
fn nets_agree() {
    agree("nets_agree", "pnml", "pnml", 30_000, 60);
}

#[test]
#[ignore = "long: nets of up to a million states"]
fn larger_nets_agree() {
    agree("larger_nets_agree", "pnml", "pnml", 1_000_000, 100);
}

#[test]
fn processes_agree() {
    agree("processes_agree", "dve", "dve", 20_000, 20);
}

/// Sums, and several of them, of which it is known what each action adds: the same as working ranks out.
#[test]
fn what_actions_add_is_the_difference_of_ranks() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    for (name, texts) in [
        (
            "philosophers-5.pnml",
            &["fork_1 + 2 * fork_2 - 3", "(fork_1 - has_left_2, 7 * tokens(fork_3, has_left_1), fork_2)"][..],
        ),
        ("database-managers.lna", &["messages->1", "(messages->1, messages->3)", "(managers, -(3 * messages->3))"]),
    ] {
        let model = load(&models.join(name).to_string_lossy(), None).expect("a model");
        let system = model.system.as_ref();
        let explored = explore(system);
        let mut scratch = system.scratch();
        for text in texts {
            let measure = deltamark_logic::measure(text, system).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
            let mut ranks = Vec::new();
            for state in &explored.states {
                let mut block = Block::new(system.width());
                block.push(StateId::NAMELESS, state);
                measure.ranks(system, &mut scratch, &block, &mut ranks);
            }
            let gains = measure.gains().unwrap_or_else(|| panic!("{text}: nothing is known"));
            for edge in &explored.edges {
                assert_eq!(ranks[edge.target] - ranks[edge.source], gains[edge.action.0 as usize], "{text}");
            }
            assert_eq!(measure.text(), *text);
        }
    }
}

/// With every measure that is proposed, monotone or not: edges are skipped with some.
#[test]
fn every_measure_of_a_net_agrees() {
    let Some(corpus) = Corpus::find("every_measure_of_a_net_agrees") else { return };
    let (mut monotone, mut others) = (0, 0);
    for row in corpus.expected("pnml") {
        let name = row.text("model").expect("every row names its model").to_string();
        let Some(states) = row.number("states").filter(|&states| states <= 8000) else { continue };
        let model = load(&corpus.file("pnml", &format!("{name}.pnml")).to_string_lossy(), None).expect("a net");
        let system = model.system.as_ref();
        for measure in deltamark_search::linear::measures(system, &Control::new()).unwrap() {
            let (found, swept) = sweep(system, &*measure);
            let label = format!("{name}, {}", measure.text());
            let never = measure.directions().is_some_and(|directions| directions.regress == 0);
            if never {
                monotone += 1;
                assert!(!swept.unfolding && swept.regress_edges == 0, "{label}: {swept:?}");
            } else {
                others += 1;
            }
            if !swept.unfolding {
                assert_eq!(found.0, states, "{label}");
                assert_eq!(Some(found.1), row.number("edges").or(Some(found.1)), "{label}");
            }
            assert!(found.0 >= states, "{label}");
            assert!(row.truth("deadlock").is_none_or(|expected| expected == (found.2 > 0)), "{label}");
        }
    }
    assert!(monotone > 20 && others > 60, "{monotone} monotone measures, {others} others");
}

fn sweep(system: &dyn System, measure: &dyn Measure) -> ((u64, u64, u64), deltamark_search::Swept) {
    let control = Control::new();
    let window = |remember: Remember| Box::new(Layers::new(system, &control.budget, remember)) as Box<dyn Window>;
    let (outcome, swept) = run_sweep(SweepTask {
        system,
        window: &window,
        measure,
        properties: &[Property::deadlock_free()],
        control: &control,
        explore_all: true,
        observer: None,
        recorder: None,
    });
    assert!(outcome.complete());
    let found = &outcome.statistics;
    ((found.states, found.edges, found.deadlocks), swept)
}

fn ours(name: &str, parameters: &[(&str, &str)]) -> deltamark::Loaded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
    let parameters = parameters.iter().map(|&(name, value)| (name.to_string(), value.to_string())).collect();
    load_with(&path.to_string_lossy(), &LoadOptions { parameters, ..LoadOptions::default() }).expect("a model")
}

#[test]
fn the_models_of_the_paper_hold_no_more_states_than_there() {
    let cases = [
        ("database-managers.lna", "9", "(messages->1, messages->3)", 59_050, 2197),
        ("stop-and-wait.mdve", "100", "Receiver.expected + Sender.packet", 26_848, 287),
        ("stop-and-wait.mdve", "1000", "Receiver.expected + Sender.packet", 269_848, 287),
    ];
    for (name, number, progress, states, peak) in cases {
        let model = ours(name, &[("N", number)]);
        let check = Check::loaded(&model).deadlock_free().search(Strategy::Sweep).explore_all(true);
        let report = check.progress("--progress", progress).expect("a measure").run().expect("a run");
        let swept = report.sweep.and_then(|sweep| sweep.swept).expect("a sweep is told");
        assert_eq!(report.statistics.states, states, "{name}, N = {number}");
        assert!(swept.peak_states <= peak && !swept.unfolding, "{name}: {swept:?}");
    }
}

#[test]
fn what_does_not_go_with_a_sweep_is_refused() {
    let model = ours("peterson.dve", &[]);
    let sweep = || Check::loaded(&model).search(Strategy::Sweep);
    let message = |check: Check<'_>| check.run().expect_err("it is refused").to_string();
    assert!(message(sweep().store("tree".parse().expect("a store"))).contains("`tree` cannot be used"));
    assert!(message(sweep().threads(2)).contains("runs with one thread"));
    let limits = deltamark_core::Limits { depth: Some(3), ..Default::default() };
    assert!(message(sweep().limits(limits)).contains("no distances"));
    let bfs = Check::loaded(&model).progress("--progress", "turn").expect("a measure");
    assert!(message(bfs).contains("of no use to the search `bfs`"));
    for wrong in ["deadlock", "nobody", "", "(turn, )", "(turn,turn,turn,turn,turn,turn,turn,turn,turn)"] {
        assert!(sweep().progress("--progress", wrong).is_err(), "{wrong}");
    }
}
