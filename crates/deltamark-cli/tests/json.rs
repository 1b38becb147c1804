//! The JSON contract: `--json` prints one object with every field of the contract.

mod common;

use common::{folder, run};
use serde_json::Value;

fn object(arguments: &[&str]) -> Value {
    let run = run(arguments);
    assert_eq!(run.stderr, "", "{arguments:?}");
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{}", run.stdout))
}

/// The fields of the contract, as paths, with the types they may have.
const CONTRACT: &[(&str, &str)] = &[
    ("/schema", "number"),
    ("/tool/name", "string"),
    ("/tool/version", "string"),
    ("/model/path", "string"),
    ("/model/format", "string"),
    ("/model/places", "number"),
    ("/model/transitions", "number"),
    ("/states", "number"),
    ("/edges", "number"),
    ("/deadlocks", "number"),
    ("/depth", "number"),
    ("/complete", "boolean"),
    ("/stopped_by", "string or null"),
    ("/properties", "array"),
    ("/store/name", "string"),
    ("/store/options", "object"),
    ("/store/guarantee", "string"),
    ("/store/bytes", "number"),
    ("/store/bytes_per_state", "number"),
    ("/store/parts", "object"),
    ("/frontier/peak_bytes", "number"),
    ("/peak_rss_bytes", "number or null"),
    ("/seconds/total", "number"),
    ("/seconds/search", "number"),
    ("/states_per_second", "number"),
];

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[test]
fn every_field_of_the_contract_is_there() {
    let runs: [&[&str]; 5] = [
        &["check", "handover.net", "--json"],
        &["check", "ring.net", "--json", "--quiet"],
        &["check", "grow.net", "--json", "--max-states", "100"],
        &["check", "ring.net", "--json", "--reach", "b >= 2", "--search", "dfs"],
        &["stats", "ring.net", "--json"],
    ];
    for arguments in runs {
        let value = object(arguments);
        for (path, kinds) in CONTRACT {
            let found = value.pointer(path).unwrap_or_else(|| panic!("{arguments:?} lacks {path}"));
            assert!(kinds.split(" or ").any(|allowed| allowed == kind(found)), "{arguments:?} {path}: {found}");
        }
        assert_eq!(value["complete"], value["stopped_by"].is_null(), "{arguments:?}");
    }
}

#[test]
fn a_store_that_may_miss_states_says_so() {
    let value = object(&["check", "ring.net", "--json", "--store", "compaction:bits=40"]);
    assert_eq!((&value["store"]["guarantee"], &value["store"]["options"]["bits"]), (&"omission".into(), &40.into()));
    let probability = value["store"]["omission_probability"].as_f64().expect("a number");
    // Six states: fifteen pairs, each equal with probability 2^-40.
    assert!((probability - 15.0 / 2f64.powi(40)).abs() < 1e-16, "{probability}");
    assert_eq!(value["properties"][0]["verdict"], "no violation found");
    assert_eq!(value["properties"][0]["omission_probability"], value["store"]["omission_probability"]);
    assert_eq!(value["notes"], serde_json::json!([]));
    let exact = object(&["check", "ring.net", "--json", "--store", "collapse"]);
    assert_eq!(exact["properties"][0]["omission_probability"], Value::Null);
}

#[test]
fn a_store_that_is_too_full_is_noted() {
    let run = run(&["check", "crowd.net", "--json", "--store", "bitstate:bits=13", "--reduce", "off"]);
    let value: Value = serde_json::from_str(&run.stdout).expect("one object");
    let note = value["notes"][0].as_str().expect("a note");
    assert!(note.contains("too full to mean much"), "{note}");
    assert!(run.stderr.contains(&format!("warning: {}", &note[..40])), "{}", run.stderr);
    assert_eq!(run.exit, 3);
}

#[test]
fn a_violation_found_by_a_store_that_may_miss_states_is_a_violation() {
    for store in ["compaction", "bitstate:bits=20"] {
        for search in ["bfs", "dfs"] {
            let arguments = ["check", "handover.net", "--json", "--store", store, "--search", search];
            let value = object(&arguments);
            assert_eq!(run(&arguments).exit, 1, "{arguments:?}");
            assert_eq!(value["properties"][0]["verdict"], "violated", "{arguments:?}");
            let exact = object(&["check", "handover.net", "--json", "--search", search]);
            assert_eq!(value["properties"][0]["trace"], exact["properties"][0]["trace"], "{arguments:?}");
        }
    }
}

#[test]
fn a_violation_comes_with_its_states() {
    let value = object(&["check", "handover.net", "--json"]);
    assert_eq!(value["schema"], 1);
    assert_eq!(
        value["model"],
        serde_json::json!({"path": "handover.net", "format": "tina", "places": 3, "transitions": 2})
    );
    assert_eq!(value["deadlocks"], 1);
    let expected = serde_json::json!([
        {"action": null, "state": {"idle": 1, "stock": 2}},
        {"action": "take", "state": {"stock": 1, "busy": 1}},
        {"action": "finish", "state": {"idle": 1, "stock": 1}},
        {"action": "take", "state": {"busy": 1}},
        {"action": "finish", "state": {"idle": 1}},
    ]);
    let property = &value["properties"][0];
    assert_eq!((&property["name"], &property["verdict"]), (&"deadlock-free".into(), &"violated".into()));
    assert_eq!(property["trace"], expected);
}

#[test]
fn an_early_end_says_why() {
    let cases: [(&[&str], Value); 4] = [
        (&["check", "grow.net", "--json", "--max-states", "100"], "states".into()),
        (&["check", "grow.net", "--json", "--depth", "5"], "depth".into()),
        (&["check", "grow.net", "--json", "--reach", "heap >= 5"], "answered".into()),
        (&["check", "ring.net", "--json"], Value::Null),
    ];
    for (arguments, expected) in cases {
        assert_eq!(object(arguments)["stopped_by"], expected, "{arguments:?}");
    }
}

#[test]
fn stats_add_bounds_and_dead_transitions() {
    let value = object(&["stats", "ring.net", "--json"]);
    assert_eq!((&value["states"], &value["edges"]), (&6.into(), &9.into()));
    assert_eq!(value["bounds"]["a"], serde_json::json!({"min": 0, "max": 2}));
    assert_eq!(value["dead_transitions"], serde_json::json!(["never"]));
    assert_eq!((&value["max_tokens_in_place"], &value["max_tokens_in_marking"]), (&2.into(), &2.into()));
}

#[test]
fn a_transition_of_a_coloured_net_is_dead_if_none_of_its_bindings_happens() {
    for unfold in ["yes", "no"] {
        let value = object(&["stats", "never.lna", "--unfold", unfold, "--json"]);
        assert_eq!((&value["states"], &value["edges"]), (&4.into(), &4.into()));
        assert_eq!(value["dead_transitions"], serde_json::json!(["third"]), "--unfold {unfold}");
        let tokens = serde_json::json!({"a": {"1": 1, "2": 1}, "b": {"1": 1, "2": 1}});
        assert_eq!(value["token_bounds"], tokens, "--unfold {unfold}");
    }
}

#[test]
fn traces_are_written_to_a_file() {
    let path = folder("traces").join("t.json").to_string_lossy().into_owned();
    let arguments =
        ["check", "handover.net", "--trace", &path, "--deadlock", "--reach", "busy >= 1", "--invariant", "stock <= 2"];
    assert_eq!(run(&arguments).exit, 1);
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("the file")).expect("JSON");
    let traces = value["traces"].as_array().expect("a list");
    let lengths: Vec<usize> = traces.iter().map(|trace| trace["trace"].as_array().expect("a list").len()).collect();
    assert_eq!(lengths, [5, 2]);
    assert_eq!(traces[1]["verdict"], "holds");
}

#[test]
fn very_long_traces_carry_changes_between_their_ends() {
    let value = object(&["check", "grow.net", "--json", "--reach", "heap >= 10001", "--reduce", "off"]);
    let trace = value["properties"][0]["trace"].as_array().expect("a list");
    assert_eq!(trace.len(), 10_002);
    assert_eq!(trace[0], serde_json::json!({"action": null, "state": {"go": 1}}));
    assert_eq!(trace[7], serde_json::json!({"action": "add", "changes": {"heap": 7}}));
    assert_eq!(trace[10_001], serde_json::json!({"action": "add", "state": {"go": 1, "heap": 10_001}}));
}

#[test]
fn the_stores_are_listed_for_scripts_too() {
    let value = object(&["stores", "--json"]);
    assert!(value["stores"].as_array().expect("a list").iter().any(|store| store["name"] == "plain"));
}

#[test]
fn soundness_is_three_properties_and_its_notes() {
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models");
    let claims = object(&["check", &format!("{models}/claims.net"), "--soundness", "--json"]);
    let properties = claims["properties"].as_array().expect("a list");
    let expected = [("option to complete", 3), ("proper completion", 4), ("no dead transitions", 0)];
    for (property, (name, steps)) in properties.iter().zip(expected) {
        let found = (property["name"].as_str(), property["verdict"].as_str(), property["kind"].as_str());
        assert_eq!(found, (Some(name), Some("violated"), Some("soundness")));
        assert_eq!(property["trace"].as_array().map_or(0, Vec::len), steps, "{property}");
    }
    assert_eq!(properties[2]["message"], "never fires: `appeal`");
    assert_eq!(
        claims["notes"],
        serde_json::json!(["a marking is final where one token is in `closed` and none elsewhere"])
    );
    let orders = object(&["check", &format!("{models}/orders.net"), "--final", "done = 1", "--json"]);
    assert_eq!((&orders["deadlocks"], &orders["properties"][0]["verdict"]), (&1.into(), &"holds".into()));
    assert_eq!(orders["properties"][0]["kind"], "deadlock-free");
}

#[test]
fn a_graph_knows_where_a_run_may_end() {
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models");
    let model = format!("{models}/orders.net");
    let path = std::env::temp_dir().join(format!("deltamark-ends-{}.dmg", std::process::id()));
    let graph = path.to_str().expect("a path");
    assert_eq!(run(&["graph", &model, "-o", graph, "-q"]).exit, 0);
    let cases = [("done = 1", "holds"), ("packed = 1", "violated"), ("4 / (done - 1) = 1", "violated")];
    for (expression, verdict) in cases {
        let found = object(&["graph", graph, "--final", expression, "--json", "-q"]);
        assert_eq!(found["properties"][0]["verdict"], verdict, "{expression}");
        assert_eq!((&found["properties"][0]["kind"], &found["deadlocks"]), (&"deadlock-free".into(), &1.into()));
    }
    std::fs::remove_file(path).expect("the graph is there");
}

#[test]
fn answers_come_in_the_order_of_the_command_line() {
    let file = std::env::temp_dir().join(format!("deltamark-order-{}.prop", std::process::id()));
    std::fs::write(&file, "reach second: busy >= 1\ninvariant first: stock <= 9\n").expect("a file");
    let path = file.display().to_string();
    let orders: &[(&[&str], &[&str])] = &[
        (
            &["--reach", "busy >= 1", "--deadlock", "--invariant", "stock <= 7", "--reach", "busy >= 2"],
            &["busy >= 1", "deadlock-free", "stock <= 7", "busy >= 2"],
        ),
        (
            &["--invariant", "stock <= 7", "--properties", &path, "--invariant=stock <= 8", "--deadlock"],
            &["stock <= 7", "second", "first", "stock <= 8", "deadlock-free"],
        ),
    ];
    for (options, expected) in orders {
        let arguments: Vec<&str> = ["check", "handover.net", "--json"].iter().chain(*options).copied().collect();
        let found = object(&arguments);
        let names = found["properties"].as_array().expect("an array").iter().map(|one| one["name"].as_str());
        assert_eq!(names.collect::<Option<Vec<_>>>().expect("names"), *expected, "{options:?}");
    }
    std::fs::remove_file(&file).expect("the file");
}

/// The survey sees every state that is counted as expanded, those at the depth limit too.
#[test]
fn a_survey_covers_the_states_at_the_depth_limit() {
    let folder = folder("survey_depth");
    let net = folder.join("grow.net").display().to_string();
    std::fs::write(&net, "pl p (0)\ntr a -> p\ntr b p*2 -> q\n").expect("a file");
    for (depth, search, tokens, dead) in
        [("0", "bfs", 0, 1), ("1", "bfs", 1, 1), ("2", "bfs", 2, 0), ("2", "dfs", 2, 0), ("1", "dfs", 1, 1)]
    {
        let run = run(&["stats", &net, "--depth", depth, "--search", search, "--json"]);
        let found: Value = serde_json::from_str(&run.stdout).expect("an object");
        let what = format!("depth {depth}, {search}: {}", run.stdout);
        assert_eq!(found["expanded"], found["states"], "{what}");
        assert_eq!(found["bounds"]["p"]["max"], tokens, "{what}");
        assert_eq!(found["dead_transitions"].as_array().map(Vec::len), Some(dead), "{what}");
    }
}
