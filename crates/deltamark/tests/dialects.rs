//! Files as tools write them: each is answered, and rightly, or refused with a sentence that says what it is.
//!
//! The counts were found by an explorer written apart from this project, which reads the XML by itself; the answers to queries are
//! those that the files of TAPAAL's engine state.

use deltamark::{Check, load};
use deltamark_core::{Limits, Verdict};
use deltamark_testkit::Corpus;

/// File, places, transitions, states, edges, deadlocks.
const ANSWERED: &[(&str, [u64; 5])] = &[
    ("pipe/ClassicGSPN.xml", [3, 3, 6, 9, 0]),
    ("pipe/Dining_philosophers.xml", [15, 10, 11, 30, 0]),
    ("pipe/Producer_&_Consumer.xml", [8, 6, 26, 34, 0]),
    ("pipe/fms.xml", [22, 20, 108, 209, 0]),
    ("pipe/gspn3.xml", [7, 8, 10, 16, 0]),
    ("woped/Ballgame.pnml", [2, 3, 9, 14, 1]),
    ("woped/Example-Workflow.pnml", [8, 7, 7, 7, 1]),
    ("woped/Example.pnml", [9, 8, 8, 8, 1]),
    ("woped/Insurance.pnml", [8, 8, 18, 26, 4]),
    ("woped/LoanApplicationResources.pnml", [16, 15, 24, 41, 1]),
    ("woped/MailboxBounded.pnml", [6, 4, 20, 36, 0]),
    ("woped/TwoTrafficLightsSafeFair.pnml", [8, 6, 6, 6, 0]),
    ("pm4py/a12.pnml", [14, 14, 15, 18, 1]),
    ("pm4py/a32.pnml", [32, 32, 471, 1579, 1]),
    ("pm4py/ex2.pnml", [10, 9, 12, 14, 1]),
    ("pm4py/receipt_one_variant.pnml", [6, 5, 6, 5, 1]),
    ("pm4py/running-example.pnml", [9, 10, 9, 13, 1]),
    ("epnk/Loop1.pnml", [2, 2, 3, 4, 0]),
    ("epnk/samplePTnetAdjustedPositions.pnml", [1, 1, 2, 1, 1]),
    ("tapaal/ERK.tapn", [11, 11, 13, 30, 0]),
    ("tapaal/home-construction.tapn", [27, 18, 1501, 4780, 1]),
    ("tapaal-engine/000-untimed-MAPK-test001.xml", [22, 30, 3505, 24078, 0]),
    ("tapaal-engine/000-untimed-exercise-test002.xml", [5, 6, 4, 6, 0]),
    ("tapaal-engine/000-untimed-prime-test0019.xml", [12, 12, 478, 942, 0]),
    ("tapaal-engine/000-untimed-transport-test007.xml", [9, 5, 70, 138, 1]),
    ("tapaal-engine/000-untimed-untimed-test001.xml", [6, 3, 5, 4, 2]),
    ("tapaal-engine/AGNoDeadlock-0-All.xml", [2, 2, 2, 2, 0]),
    ("tapaal-engine/Deadlock-1-All.xml", [2, 2, 2, 2, 0]),
    ("tapaal-engine/InhibitorArcs-0-All.xml", [4, 2, 2, 1, 1]),
    ("tapaal-engine/TransportArc-0-All.xml", [2, 1, 2, 1, 1]),
    ("tapaal-engine/True-0-All.xml", [2, 2, 2, 2, 0]),
    ("tapaal-engine/WeightedInhibitorArc-0-All.xml", [3, 1, 2, 1, 1]),
    ("tapaal-engine/reduction-004.xml", [8, 5, 3, 2, 1]),
    ("tapaal-engine/reduction-036.xml", [5, 4, 14, 16, 1]),
];

/// File, a state to reach, and whether the file says that it can be reached. One query is omitted: `exercise-test002` says of
/// P19 = 1 what was true before the intervals were taken out of it; T26, T28, T30 lead there.
const QUERIES: &[(&str, &str, bool)] = &[
    ("MAPK-test001", "ERKPP >= 1 and Raf >= 1 and ERK >= 1 and ERKPP_Phase3 >= 1 and Phase3 >= 2", false),
    ("MAPK-test001", "ERK_MEKPP >= 0 and Raf >= 1 and ERK >= 1 and ERKPP_Phase3 >= 1 and Phase3 >= 2", false),
    ("MAPK-test001", "ERK_MEKPP >= 0 and Raf >= 1 and ERK >= 1 and ERKPP_Phase3 >= 1 and Phase3 >= 1", true),
    ("exercise-test002", "P18 = 1", true),
    ("prime-test0019", "notprime > 1", false),
    ("simple-test010", "Holder >= 2 and P0 = 2", true),
    ("transport-test007", "Final >= 3", true),
    ("untimed-test001", "P4 = 1", true),
    ("untimed-test001", "P5 = 3", false),
    ("untimed-test001", "not (P5 < 2 or P3 >= 1)", true),
    ("untimed-test001", "not (P5 < 2 or P3 = 0)", false),
    ("reduction-004", "P7 = 1", false),
    ("reduction-036", "P26 = 1", true),
    ("AGNoDeadlock-0-All", "deadlock", false),
    ("Deadlock-1-All", "deadlock", false),
    ("InhibitorArcs-0-All", "P1 = 1", true),
    ("TransportArc-0-All", "P0 = 1", true),
    ("True-0-All", "P0 = 1 and true", true),
    ("WeightedInhibitorArc-0-All", "P1 = 1", true),
];

const TIME: &str = "timed nets are not supported";

/// File, and part of the sentence that refuses it.
const REFUSED: &[(&str, &str)] = &[
    ("pm4py/data_petri_net.pnml", "this is a data Petri net"),
    ("epnk/samplePTnet-notokengraphics.pnml", "text has no meaning in `place`"),
    ("epnk/samplePTnetX.pnml", "what the tool `xxx.pnml.tool` keeps in `toolspecific` is not known"),
    ("epnk/My6.pnml", "`object` is not known in `page`"),
    ("epnk/customer-registration.pnml", "nets of type `http://se.compute.dtu.dk/mbse/yawl` are not known"),
    ("tapaal/alternating-bit-protocol-transport.tapn", TIME),
    ("tapaal/cpn-packet.tapn", "this is a coloured net of TAPAAL"),
    ("tapaal/fair-coin-from-unfair.tapn", "stochastic nets are not supported"),
    ("tapaal/fischer-protocol.tapn", TIME),
    ("tapaal/package-delivery.tapn", "this is a game of TAPAAL"),
    ("tapaal/producer-consumer.tapn", TIME),
    ("tapaal/referendum-timed-colored.tapn", "this is a coloured net of TAPAAL"),
    ("tapaal/stochastic-consumer-producer.tapn", "stochastic nets are not supported"),
    ("tapaal/train-level-crossing.tapn", TIME),
    ("tapaal/untimedGame.tapn", "this is a game of TAPAAL"),
    ("tapaal/workflow-advanced.tapn", TIME),
    ("tapaal/workflow-medical.tapn", TIME),
    ("tapaal/workflow-simple.tapn", TIME),
    ("tapaal-engine/000-untimed-composition-prime-test001.xml", TIME),
    ("tapaal-engine/000-untimed-composition-test012.xml", TIME),
    ("tapaal-engine/000-untimed-deadlock-test002.xml", TIME),
    ("tapaal-engine/000-untimed-discrete-test-009.xml", TIME),
    ("tapaal-engine/000-untimed-extra-test-007-liveness.xml", TIME),
    ("tapaal-engine/000-untimed-invariants-test004.xml", TIME),
    ("tapaal-engine/000-untimed-other-test001.xml", TIME),
    ("tapaal-engine/000-untimed-prime-test014.xml", TIME),
    ("tapaal-engine/000-untimed-query-test003.xml", TIME),
    ("tapaal-engine/000-untimed-train-simple-test001.xml", TIME),
    ("tapaal-engine/000-untimed-urgency-test010.xml", TIME),
    ("tapaal-engine/000-untimed-workflow-test006.xml", TIME),
    ("tapaal-engine/reduction-020-deadlock.xml", TIME),
];

/// Nets without bound, and one too large for this test.
const READ: &[(&str, [u64; 2])] = &[
    ("woped/MinimalCoverabilitySet.pnml", [5, 5]),
    ("tapaal-engine/000-untimed-simple-test010.xml", [5, 4]),
    ("tapaal-engine/kanban10-0-BestFS.xml", [16, 16]),
];

/// What is wrong with how a file is read.
fn sizes(corpus: &Corpus, file: &str, expected: &[u64]) -> Result<deltamark::Loaded, String> {
    let path = corpus.file("dialects", file);
    let loaded = load(&path.to_string_lossy(), None).map_err(|error| format!("{file}: {error}"))?;
    let found: Vec<u64> = loaded.info.sizes.iter().map(|(_, count)| *count).collect();
    if found == expected { Ok(loaded) } else { Err(format!("{file}: sizes {found:?}, expected {expected:?}")) }
}

#[test]
fn files_of_other_tools_are_answered_or_refused() {
    let Some(corpus) = Corpus::find("files_of_other_tools_are_answered_or_refused") else { return };
    let mut wrong: Vec<String> = Vec::new();
    for (file, [places, transitions, counts @ ..]) in ANSWERED {
        match sizes(&corpus, file, &[*places, *transitions]) {
            Ok(loaded) => {
                let statistics = Check::loaded(&loaded).deadlock_free().explore().expect("a run").statistics;
                let found = [statistics.states, statistics.edges, statistics.deadlocks];
                if found != *counts {
                    wrong.push(format!("{file}: {found:?}, expected {counts:?}"));
                }
            }
            Err(error) => wrong.push(error),
        }
    }
    wrong.extend(READ.iter().filter_map(|(file, expected)| sizes(&corpus, file, expected).err()));
    for (file, expected) in REFUSED {
        match load(&corpus.file("dialects", file).to_string_lossy(), None) {
            Ok(_) => wrong.push(format!("{file} is read, but should be refused")),
            Err(error) if error.to_string().contains(expected) => {}
            Err(error) => wrong.push(format!("{file}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn queries_of_tapaals_engine_are_answered_as_its_files_say() {
    let Some(corpus) = Corpus::find("queries_of_tapaals_engine_are_answered_as_its_files_say") else { return };
    let mut wrong: Vec<String> = Vec::new();
    for (file, goal, expected) in QUERIES {
        let names = [format!("tapaal-engine/000-untimed-{file}.xml"), format!("tapaal-engine/{file}.xml")];
        let path = names.map(|name| corpus.file("dialects", &name)).into_iter().find(|path| path.is_file());
        let loaded = load(&path.expect("a file of this name").to_string_lossy(), None);
        let loaded = loaded.unwrap_or_else(|error| panic!("{file}: {error}"));
        let limits = Limits { states: Some(100_000), ..Limits::default() };
        let check = Check::loaded(&loaded).reachable(goal).expect("an expression").limits(limits);
        let report = check.run().expect("a run");
        let found = matches!(report.answers[0].verdict, Verdict::Holds(_));
        // A goal that is reached ends the run.
        if found != *expected || (!found && report.stopped_by.is_some()) {
            wrong.push(format!("{file}: {goal} is {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whatever else is in the folder is read, or refused with a sentence.
#[test]
fn every_file_is_read_or_refused_with_a_sentence() {
    let Some(corpus) = Corpus::find("every_file_is_read_or_refused_with_a_sentence") else { return };
    let mut seen = 0;
    for tool in std::fs::read_dir(corpus.file("dialects", "")).expect("the folder of dialects") {
        for file in std::fs::read_dir(tool.expect("a folder").path()).expect("a folder") {
            let path = file.expect("a file").path();
            if path.extension().is_some_and(|ending| ending == "q") {
                continue;
            }
            seen += 1;
            if let Err(error) = load(&path.to_string_lossy(), None) {
                let sentence = error.to_string();
                assert!(sentence.len() > 20 && !sentence.contains("bug"), "{}: {sentence}", path.display());
            }
        }
    }
    assert!(seen >= 82, "{seen}");
}

#[test]
fn a_name_that_two_nodes_have_is_refused_in_properties() {
    let place = |id: &str, name: &str| format!("<place id='{id}'><name><text>{name}</text></name></place>");
    let places: String = [("p1", "idle"), ("p2", "idle"), ("p3", "p4"), ("p4", "busy"), ("p5", "p5")]
        .map(|(id, name)| place(id, name))
        .concat();
    let text = format!(
        "<pnml><net id='n'>{places}<transition id='t1'><name><text>go</text></name></transition>\
         <transition id='t2'><name><text>go</text></name></transition></net></pnml>"
    );
    let format = deltamark::load::Format::by_name("pnml").expect("a format");
    let loaded = deltamark::load::parse("x", format, text.as_bytes(), &deltamark::LoadOptions::default());
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    let cases = [
        ("idle = 0", Some("the model has 2 things called `idle`")),
        ("p1 = 0 and p2 = 0 and p3 = 0 and p5 = 0 and busy = 0", None),
        // The name of one place and the id of another.
        ("p4 = 0", Some("the model has 2 things called `p4`")),
        ("fireable(go)", Some("the model has 2 things called `go`")),
        ("fireable(t1, t2)", None),
    ];
    for (expression, expected) in cases {
        let refused = Check::loaded(&loaded).invariant(expression).err().map(|error| error.to_string());
        match expected {
            Some(words) => {
                assert!(refused.as_deref().is_some_and(|told| told.contains(words)), "{expression}: {refused:?}")
            }
            None => assert_eq!(refused, None, "{expression}"),
        }
    }
}

/// The same net in every wrapping gives the same counts.
#[test]
fn models_are_known_by_their_words_packed_or_not() {
    use std::io::Write;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let folder = std::env::temp_dir().join(format!("deltamark-dialects-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, format) in [
        ("philosophers-5.pnml", "pnml"),
        ("mutex.net", "tina"),
        ("peterson.dve", "dve"),
        ("anderson.mdve", "mdve"),
        ("philosophers.lna", "lna"),
    ] {
        let bytes = std::fs::read(root.join(name)).expect("an example model");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&bytes).expect("memory takes everything");
        let gzip = gzip.finish().expect("memory takes everything");
        let wide: Vec<u8> = "\u{FEFF}"
            .encode_utf16()
            .chain(String::from_utf8_lossy(&bytes).encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
        let expected = load(&root.join(name).to_string_lossy(), None).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (ending, bytes) in [("xml", &bytes), ("gz", &gzip), ("txt", &wide)] {
            let path = folder.join(format!("{name}-model.{ending}"));
            std::fs::write(&path, bytes).expect("a file");
            let loaded = load(&path.to_string_lossy(), None).unwrap_or_else(|error| panic!("{name}.{ending}: {error}"));
            assert_eq!((loaded.info.format, &loaded.info.sizes), (format, &expected.info.sizes), "{name}.{ending}");
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder is gone");
}

/// Stores undo steps, take them again one by one, and skip those that sleep: none of it may forget priorities.
#[test]
fn every_store_agrees_on_nets_with_priorities() {
    use deltamark_nets::{NetSystem, generate::generate};
    use deltamark_search::Search;
    use deltamark_store::CATALOGUE;
    use deltamark_testkit::net_oracle::explore_net;
    for (family, size, modulus) in [("kanban", 2, 3), ("philosophers", 5, 2), ("database-managers", 4, 5)] {
        let mut net = generate(family, size).expect("a family");
        for (number, transition) in (0..).zip(&mut net.transitions) {
            transition.priority = number * 7 % modulus;
        }
        let expected = explore_net(&net, 100_000);
        assert!(expected.complete && net.has_priorities());
        let expected = (expected.markings.len() as u64, expected.edges, expected.deadlocks);
        let system = NetSystem::new(net);
        for store in CATALOGUE.iter().filter(|store| store.guarantee.starts_with("exact")) {
            for &search in Search::ALL.iter().filter(|search| store.takes(search.order())) {
                let spec = store.name.parse().expect("a name of the catalogue");
                let report = Check::new(&system).deadlock_free().explore_all(true).store(spec).search(search).run();
                let found = report.unwrap_or_else(|error| panic!("{family}, {}: {error}", store.name)).statistics;
                let found = (found.states, found.edges, found.deadlocks);
                assert_eq!(found, expected, "{family}, {}, {}", store.name, search.name());
            }
        }
    }
}
