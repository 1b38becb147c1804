//! Condensed graphs give the answers of a full run: counts, verdicts, lengths of traces, figures, whatever the language, the store
//! and the way the graph is walked.

use deltamark::condensed::OpenOptions;
use deltamark::graph::{Graph, GraphFormat};
use deltamark::{Check, CheckError, Condensed, CondensedError, LoadOptions, Loaded, Report, Unfold, load_with};
use deltamark_core::Limits;
use deltamark_graph::Way;
use deltamark_search::{Search, Strategy};
use deltamark_testkit::Corpus;
use std::path::{Path, PathBuf};

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("condensed").join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder to write to");
    folder
}

fn model(name: &str, options: &LoadOptions) -> Loaded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
    load_with(&path.to_string_lossy(), options).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Writes the graph of a model, and opens it.
fn written(loaded: &Loaded, path: &Path, check: impl FnOnce(Check<'_>) -> Check<'_>) -> Condensed {
    let path = path.to_string_lossy();
    let report = check(Check::loaded(loaded)).graph(path.as_ref()).explore().unwrap_or_else(|error| panic!("{error}"));
    let contents = report.graph.and_then(|graph| graph.contents).expect("a graph was written");
    assert_eq!((contents.states, contents.edges), (report.statistics.states, report.statistics.edges));
    Condensed::open(&path, &OpenOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// An answer: name, verdict, steps of its trace, whether there is a message.
type Told = (String, &'static str, Option<usize>, bool);

/// What must be the same.
fn essence(report: &Report) -> (Vec<u64>, Vec<Told>) {
    let found = &report.statistics;
    let answer = |answer: &deltamark::Answer| {
        let steps = answer.story.as_ref().map(|story| story.len());
        (answer.name.clone(), answer.verdict.word(), steps, answer.message().is_some())
    };
    (vec![found.states, found.edges, found.deadlocks, found.depth], report.answers.iter().map(answer).collect())
}

/// Compares a graph's answers with those of full runs.
fn agree(name: &str, loaded: &Loaded, graph: &Condensed, ways: &[Way]) {
    let full = Check::loaded(loaded).stats().expect("a run");
    for &way in ways {
        let walked = Check::along(graph, way).stats().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(essence(&walked.report).0, essence(&full.report).0, "{name}, {way:?}");
        assert_eq!(walked.survey, full.survey, "{name}, {way:?}");
    }
    // Each bound as a property that holds, and one that does not; and the goals that belong to them.
    let mut texts: Vec<(bool, String)> = Vec::new();
    for (place, bound) in full.survey.bounds.iter().take(6) {
        let observable = loaded.system.observe().and_then(|observe| observe.resolve(place)).expect("a name");
        let place = format!("\"{place}\"");
        if observable.kind == deltamark_core::ObservableKind::Bool {
            texts.push((true, format!("{place} or not {place}")));
            texts.push((true, format!("not {place}")));
            texts.push((false, place));
            continue;
        }
        texts.push((true, format!("{place} <= {}", bound.most)));
        texts.push((true, format!("{place} < {}", bound.most)));
        texts.push((false, format!("{place} == {}", bound.most)));
        texts.push((false, format!("{place} > {}", bound.most)));
    }
    fn ask<'a>(check: Check<'a>, texts: &[(bool, String)]) -> Check<'a> {
        let ask = |check: Check<'a>, (invariant, text): &(bool, String)| {
            let asked = if *invariant { check.invariant(text) } else { check.reachable(text) };
            asked.unwrap_or_else(|error| panic!("{error}"))
        };
        texts.iter().fold(check.deadlock_free(), ask)
    }
    let asked = ask(Check::loaded(loaded), &texts);
    let full_report = asked.explore_all(true).run().expect("a run");
    let by_default = Check::loaded(loaded).explore_all(true).run().expect("a run");
    for &way in ways {
        let report = ask(Check::along(graph, way), &texts).run().expect("a walk");
        assert_eq!(essence(&report), essence(&full_report), "{name}, {way:?}");
        let report = Check::along(graph, way).run().expect("a walk");
        assert_eq!(essence(&report), essence(&by_default), "{name}, {way:?}");
    }
}

#[test]
fn graphs_of_all_our_models_answer_as_a_full_run() {
    let folder = folder("models");
    let param = |text: &str| {
        let pairs = text.split_whitespace().filter_map(|word| word.split_once('='));
        pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect::<Vec<_>>()
    };
    let cases = [
        ("mutex.net", "", Unfold::Auto),
        ("producer-consumer.net", "", Unfold::Auto),
        ("philosophers-5.pnml", "", Unfold::Auto),
        ("peterson.dve", "", Unfold::Auto),
        ("alternating-bit.dve", "", Unfold::Auto),
        ("overflow.dve", "", Unfold::Auto),
        ("anderson.mdve", "", Unfold::Auto),
        ("philosophers.lna", "", Unfold::Auto),
        ("philosophers.lna", "", Unfold::No),
        ("database-managers.lna", "", Unfold::No),
        ("mutual-exclusion.lna", "", Unfold::No),
        ("client-server.lna", "", Unfold::No),
        ("leader-election.lna", "", Unfold::No),
        ("telephones.lna", "", Unfold::No),
        ("sieve.lna", "", Unfold::No),
    ];
    for (name, parameters, unfold) in cases {
        let options = LoadOptions { parameters: param(parameters), unfold, ..LoadOptions::default() };
        let loaded = model(name, &options);
        let graph = written(&loaded, &folder.join(format!("{name}.dmg")), |check| check);
        agree(name, &loaded, &graph, Way::ALL);
    }
}

#[test]
fn every_store_that_tells_ids_and_both_searches_write_the_same_graph() {
    let folder = folder("stores");
    let loaded = model("philosophers-5.pnml", &LoadOptions::default());
    let expected = written(&loaded, &folder.join("first.dmg"), |check| check.threads(1));
    let (mut row, mut other) = (Vec::new(), Vec::new());
    for store in ["plain", "collapse", "tree", "compact", "difference", "delta", "comback"] {
        for (search, threads) in [(Search::Bfs, 1), (Search::Dfs, 1), (Search::Bfs, 3)] {
            let path = folder.join(format!("{store}-{}-{threads}.dmg", search.name()));
            let spec: deltamark_store::StoreSpec = store.parse().expect("a store");
            let check = Check::loaded(&loaded).store(spec).search(search).threads(threads);
            match check.graph(path.to_string_lossy()).explore() {
                Ok(_) => {}
                Err(CheckError::Graph(message)) => {
                    assert!(message.contains("does not tell which state is which"), "{store}: {message}");
                    assert!(!matches!(store, "plain" | "tree" | "collapse" | "compact"), "{store}: {message}");
                    continue;
                }
                Err(CheckError::Threads(_) | CheckError::Store(_)) => continue,
                Err(error) => panic!("{store}: {error}"),
            }
            let graph = Condensed::open(&path.to_string_lossy(), &OpenOptions::default()).expect("a graph");
            // Numbers are given breadth first, whoever recorded it.
            assert_eq!(graph.graph.states(), expected.graph.states(), "{store}");
            for state in 0..graph.graph.states() {
                graph.graph.edges(state, &mut row).expect("edges");
                expected.graph.edges(state, &mut other).expect("edges");
                assert_eq!(row, other, "{store}, {}, state {state}", search.name());
            }
        }
    }
    for store in ["bitstate", "compaction", "breadcrumb"] {
        let path = folder.join("lossy.dmg");
        let check = Check::loaded(&loaded).store(store.parse().expect("a store")).graph(path.to_string_lossy());
        assert!(matches!(check.explore(), Err(CheckError::Graph(_))), "{store}");
        assert!(!path.exists());
    }
}

#[test]
fn edges_take_few_bits() {
    let folder = folder("size");
    let size = |name: &str, unfold| {
        let loaded = model(name, &LoadOptions { unfold, ..LoadOptions::default() });
        let graph = written(&loaded, &folder.join("size.dmg"), |check| check);
        let (meta, contents) = (graph.graph.meta(), graph.contents());
        let bits = |count: u64| u64::from(64 - count.saturating_sub(1).leading_zeros());
        let allowed = (meta.edges * (bits(meta.states) + bits(meta.actions.into()))).div_ceil(8) + meta.states;
        assert!(contents.packed <= allowed, "{name}: {} bytes, {allowed} allowed", contents.packed);
        contents.bits_per_edge()
    };
    let kanban = size("kanban-3.pnml", Unfold::Auto);
    assert!(kanban < 7.5, "{kanban} bits an edge");
    for name in ["philosophers-5.pnml", "alternating-bit.dve", "anderson.mdve"] {
        size(name, Unfold::Auto);
    }
    for name in ["database-managers.lna", "stop-and-wait.lna", "telephones.lna", "leader-election.lna"] {
        size(name, Unfold::No);
    }
}

/// Half of what the paper needs for the states alone.
#[test]
fn the_graphs_of_the_paper_take_less_than_half_of_what_they_take_there() {
    let folder = folder("paper");
    for (name, number, states, most) in
        [("database-managers.lna", "9", 59_050, 993_093 / 2), ("stop-and-wait.mdve", "100", 26_848, 149_766 / 2)]
    {
        let parameters = vec![("N".to_string(), number.to_string())];
        let loaded = model(name, &LoadOptions { parameters, ..LoadOptions::default() });
        let graph = written(&loaded, &folder.join("paper.dmg"), |check| check.search(Strategy::Sweep));
        assert_eq!(graph.graph.states(), states, "{name}");
        assert!(graph.contents().bytes <= most, "{name}: {} bytes", graph.contents().bytes);
    }
}

#[test]
fn a_run_that_ends_early_writes_no_graph_and_leaves_nothing() {
    let folder = folder("early");
    let loaded = model("kanban-3.pnml", &LoadOptions::default());
    let path = folder.join("early.dmg");
    let limits = Limits { states: Some(1000), ..Limits::default() };
    let report = Check::loaded(&loaded).limits(limits).graph(path.to_string_lossy()).explore().expect("a run");
    assert!(report.graph.is_some_and(|graph| graph.contents.is_none()));
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 0);
}

#[test]
fn properties_that_are_answered_early_do_not_cut_the_graph() {
    let folder = folder("answered");
    let loaded = model("philosophers-5.pnml", &LoadOptions::default());
    let path = folder.join("all.dmg");
    let report = Check::loaded(&loaded).deadlock_free().graph(path.to_string_lossy()).run().expect("a run");
    assert_eq!(report.answers[0].verdict.word(), "violated");
    let graph = Condensed::open(&path.to_string_lossy(), &OpenOptions::default()).expect("a graph");
    assert_eq!(graph.graph.states(), 243);
}

#[test]
fn a_graph_belongs_to_the_text_it_was_made_from() {
    let folder = folder("text");
    let net = folder.join("ring.net");
    std::fs::write(&net, "tr t1 p -> q\ntr t2 q -> p\npl p (1)\n").expect("a file");
    let loaded = load_with(&net.to_string_lossy(), &LoadOptions::default()).expect("a net");
    let path = folder.join("ring.dmg");
    drop(written(&loaded, &path, |check| check));
    let open = |model: Option<&Path>| {
        let model = model.map(|model| model.to_string_lossy().into_owned());
        Condensed::open(&path.to_string_lossy(), &OpenOptions { model, ..OpenOptions::default() }).err()
    };
    // Moved together with its model, it is found beside it.
    let moved = folder.join("moved");
    std::fs::create_dir_all(&moved).expect("a folder");
    std::fs::copy(&net, moved.join("ring.net")).expect("a copy");
    std::fs::write(&net, "tr t1 p -> q\ntr t2 q -> p\npl p (2)\n").expect("a file");
    assert!(matches!(open(None), Some(CondensedError::Changed { .. })));
    assert!(open(Some(&moved.join("ring.net"))).is_none());
    std::fs::remove_file(&net).expect("the file");
    assert!(matches!(open(None), Some(CondensedError::Gone { .. })));
    std::fs::copy(&path, moved.join("ring.dmg")).expect("a copy");
    assert!(Condensed::open(&moved.join("ring.dmg").to_string_lossy(), &OpenOptions::default()).is_ok());
}

#[test]
fn drawings_from_a_graph_are_those_from_the_model() {
    let folder = folder("drawings");
    let loaded = model("mutex.net", &LoadOptions::default());
    let graph = written(&loaded, &folder.join("mutex.dmg"), |check| check);
    let limits = Limits::default;
    let silent = || std::sync::Arc::new(deltamark_core::Silent);
    let from_model = Graph::explore(&loaded, 1000, limits(), Default::default(), silent()).expect("a graph");
    let from_graph = Graph::rebuild(&graph, 1000, limits(), Default::default(), silent()).expect("a graph");
    for &format in GraphFormat::ALL {
        let drawn = |graph: &Graph<'_>| {
            let mut out = Vec::new();
            graph.write(format, &mut out).expect("memory");
            let mut lines: Vec<String> = String::from_utf8(out).expect("text").lines().map(String::from).collect();
            lines.sort();
            lines.len()
        };
        assert_eq!(drawn(&from_model), drawn(&from_graph), "{format:?}");
    }
    assert_eq!((from_graph.states(), from_graph.edges()), (from_model.states(), from_model.edges()));
    assert!(Graph::rebuild(&graph, 5, limits(), Default::default(), silent()).is_err());
}

#[test]
fn graphs_of_outside_nets_answer_as_a_full_run() {
    let Some(corpus) = Corpus::find("graphs_of_outside_nets_answer_as_a_full_run") else { return };
    let folder = folder("corpus");
    let small = |row: &deltamark_testkit::corpus::Row| row.number("states").is_some_and(|states| states <= 5_000);
    let rows: Vec<_> = corpus.expected("pnml").into_iter().filter(small).collect();
    assert!(rows.len() >= 10, "only {} nets", rows.len());
    for row in rows {
        let name = row.text("model").expect("a name");
        let path = corpus.file("pnml", &format!("{name}.pnml"));
        let loaded = load_with(&path.to_string_lossy(), &LoadOptions::default()).expect("a net");
        let graph = written(&loaded, &folder.join("net.dmg"), |check| check);
        assert_eq!(Some(graph.graph.states()), row.number("states"), "{name}");
        agree(name, &loaded, &graph, Way::ALL);
    }
}

#[test]
fn graphs_recorded_by_sweeps_answer_as_a_full_run() {
    let folder = folder("sweeps");
    let (mut same, mut unfolded) = (0, 0);
    for name in [
        "mutex.net",
        "producer-consumer.net",
        "philosophers-5.pnml",
        "peterson.dve",
        "alternating-bit.dve",
        "database-managers.lna",
        "stop-and-wait.lna",
        "leader-election.lna",
        "sieve.lna",
    ] {
        let loaded = model(name, &LoadOptions { unfold: Unfold::Auto, ..LoadOptions::default() });
        let path = folder.join(format!("{name}.dmg"));
        let check = Check::loaded(&loaded).search(Strategy::Sweep).graph(path.to_string_lossy());
        match check.explore() {
            Ok(report) => assert!(report.graph.is_some_and(|graph| graph.contents.is_some()), "{name}"),
            Err(CheckError::Sweep { .. }) => continue,
            Err(error) => panic!("{name}: {error}"),
        }
        let graph =
            Condensed::open(&path.to_string_lossy(), &OpenOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        let full = Check::loaded(&loaded).explore_all(true).run().expect("a run");
        if graph.graph.meta().unfolding {
            unfolded += 1;
            assert!(graph.graph.states() >= full.statistics.states, "{name}");
            for &way in Way::ALL {
                let walked = Check::along(&graph, way).run().expect("a walk");
                assert_eq!(essence(&walked).1, essence(&full).1, "{name}, {way:?}");
                let bounds = Check::along(&graph, way).stats().expect("a walk").survey;
                assert_eq!(bounds, Check::loaded(&loaded).stats().expect("a run").survey, "{name}, {way:?}");
            }
        } else {
            same += 1;
            agree(name, &loaded, &graph, Way::ALL);
        }
    }
    assert!(same >= 1 && unfolded >= 1, "{same} graphs and {unfolded} unfoldings");
}

#[test]
fn faults_are_counted_while_a_sweep_records() {
    let folder = folder("faults");
    // A measure that never decreases, one that often does, and one that says nothing.
    for (number, progress) in ["counter", "-counter", "7"].into_iter().enumerate() {
        let loaded = model("overflow.dve", &LoadOptions::default());
        let searched = written(&loaded, &folder.join("searched.dmg"), |check| check);
        let swept = written(&loaded, &folder.join(format!("{number}.dmg")), |check| {
            check.search(Strategy::Sweep).progress("--progress", progress).expect("a measure")
        });
        let faulty = searched.graph.meta().faulty.expect("they are counted");
        let meta = swept.graph.meta();
        assert!(
            faulty > 0 && meta.faulty.is_some_and(|count| count == faulty || meta.unfolding && count > 0),
            "{meta:?}"
        );
        let full = Check::loaded(&loaded).explore_all(true).run().expect("a run");
        for &way in Way::ALL {
            let walked = Check::along(&swept, way).run().expect("a walk");
            assert_eq!(essence(&walked).1, essence(&full).1, "{progress}, {way:?}");
        }
    }
    let loaded = model("peterson.dve", &LoadOptions::default());
    let swept = written(&loaded, &folder.join("peterson.dmg"), |check| {
        check.search(Strategy::Sweep).progress("--progress", "turn").expect("a measure")
    });
    assert_eq!(swept.graph.meta().faulty, Some(0), "so no state is expanded again to look for them");
}
