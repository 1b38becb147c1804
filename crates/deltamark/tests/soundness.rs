//! Soundness of workflow nets against a dull oracle, and final states in every search, store and language.

use deltamark::load::{self, Format, LoadOptions};
use deltamark::{Check, CheckError, Loaded, PropertyKind, Report};
use deltamark_core::{Limits, Verdict};
use deltamark_nets::{Arc, Net, Place, Transition, write};
use deltamark_search::{Search, Strategy};
use deltamark_testkit::Rng;
use std::collections::HashMap;

fn loaded(format: &str, text: &str) -> Loaded {
    let format = Format::by_name(format).expect("a known format");
    load::parse("model", format, text.as_bytes(), &LoadOptions::default()).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn words(report: &Report) -> Vec<&'static str> {
    report.answers.iter().map(|answer| answer.verdict.word()).collect()
}

/// The verdicts of the three questions, or why they cannot be asked.
fn sound(text: &str) -> Result<Vec<&'static str>, String> {
    let model = loaded("tina", text);
    Check::loaded(&model).soundness().map(|report| words(&report)).map_err(|error| error.to_string())
}

#[test]
fn the_three_questions_are_answered() {
    const YES: &str = "holds";
    const NO: &str = "violated";
    let cases: &[(&str, [&str; 3])] = &[
        ("pl i (1)\ntr a i -> o", [YES, YES, YES]),
        // Two branches, joined as they were split.
        ("pl i (1)\ntr a i -> p q\ntr b p -> r\ntr c q -> s\ntr d r s -> o", [YES, YES, YES]),
        // A choice that is joined as if both branches had been taken: stuck in p or q.
        ("pl i (1)\ntr a i -> p\ntr b i -> q\ntr c p q -> o", [NO, YES, NO]),
        // Two branches, each of which ends the case: a token is left behind.
        ("pl i (1)\ntr a i -> p q\ntr b p -> o\ntr c q -> o", [NO, NO, YES]),
        // A loop with a way out, and one without.
        ("pl i (1)\ntr a i -> p\ntr b p -> q\ntr c q -> p\ntr d q -> o", [YES, YES, YES]),
        ("pl i (1)\ntr a i -> p\ntr b i -> q\ntr c q -> r\ntr d r -> q\ntr e p -> o\ntr f p q -> o", [NO, YES, NO]),
        // A dead transition and nothing else.
        ("pl i (1)\ntr a i -> p\ntr b p -> o\ntr c p*2 -> o", [YES, YES, NO]),
        // No marking in the file: one token in the source is assumed.
        ("tr a i -> o", [YES, YES, YES]),
        // An inhibitor arc orders the branches.
        ("pl i (1)\ntr a i -> p q\ntr b p q?-1 -> o\ntr c q -> r\ntr d r -> p\ntr e p r -> q", [NO, NO, YES]),
    ];
    for (text, expected) in cases {
        assert_eq!(sound(text), Ok(expected.to_vec()), "{text}");
    }
}

#[test]
fn what_is_no_workflow_net_is_refused() {
    let cases = [
        (
            "tr a i -> p\ntr b p -> i",
            "this is no workflow net: one place must be without incoming arcs, and none is; one place must be without outgoing arcs, and none is",
        ),
        (
            "pl i (1)\ntr a i -> o\ntr b p -> q\ntr c q -> p",
            "this is no workflow net: these are on no path from `i` to `o`: `p`, `q`, `b`, `c`",
        ),
        (
            "pl i (2)\ntr a i -> o",
            "a workflow net begins with one token in `i` and none elsewhere, and the file has `i`: 2",
        ),
        (
            "pl i (1)\npl o (1)\ntr a i -> o",
            "a workflow net begins with one token in `i` and none elsewhere, and the file has `i`: 1, `o`: 1",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(sound(text), Err(expected.to_string()), "{text}");
    }
    let dve = loaded("dve", "process P { state s; init s; trans s -> s {}; } system async;");
    let refused = Check::loaded(&dve).soundness().map_err(|error| error.to_string()).err();
    assert_eq!(refused.as_deref(), Some("soundness is asked of P/T nets, and this model is none"));
    let net = loaded("tina", "pl i (1)\ntr a i -> o");
    let mixed: [(Check<'_>, &str); 3] = [
        (Check::loaded(&net).deadlock_free(), "other properties"),
        (Check::loaded(&net).search(Strategy::Sweep), "the search `sweep`"),
        (Check::loaded(&net).graph("never.dmg"), "`--graph`"),
    ];
    for (check, what) in mixed {
        let refused = check.soundness().map_err(|error| error.to_string()).err();
        assert_eq!(refused, Some(format!("soundness cannot be asked together with {what}")));
    }
    let lossy = Check::loaded(&net).store("bitstate".parse().expect("a store")).soundness();
    assert!(matches!(lossy, Err(CheckError::Misfit { message, .. }) if message.contains("`bitstate` does not")));
}

#[test]
fn a_limit_ends_without_an_answer_but_with_what_was_shown() {
    // It grows without end, and a case may end with tokens left.
    let net = loaded("tina", "pl i (1)\ntr a i -> p\ntr b p -> p q\ntr c p -> r\ntr d r q -> o\ntr e r*9 -> o");
    let limits = Limits { states: Some(50), ..Limits::default() };
    let report = Check::loaded(&net).limits(limits).soundness().expect("it runs");
    assert_eq!(words(&report), ["violated", "violated", "unknown"]);
    assert!(report.growth.is_some(), "it is told what grows");
    let grows = loaded("tina", "pl i (1)\ntr a i -> p\ntr b p -> p q\ntr c p q -> p\ntr d p q?-1 -> o");
    let limits = Limits { states: Some(50), ..Limits::default() };
    let report = Check::loaded(&grows).limits(limits).soundness().expect("it runs");
    assert_eq!(words(&report), ["unknown", "unknown", "holds"]);
}

#[test]
fn a_final_marking_may_be_given() {
    // The log may keep its token: improper by the book, right where `--final` says so.
    let text = "pl i (1)\ntr a i -> p log\ntr b p log -> o log\ntr c p log -> o";
    let net = loaded("tina", text);
    let plain = Check::loaded(&net).soundness().expect("it runs");
    assert_eq!(words(&plain), ["violated", "violated", "holds"]);
    let given = Check::loaded(&net).ends_in("o = 1").expect("an expression").soundness().expect("it runs");
    assert_eq!(words(&given), ["holds", "holds", "holds"]);
    let mut of_file = loaded("tina", text);
    of_file.info.final_markings = vec!["o = 1 and log = 1".into(), "o = 1 and log = 0".into()];
    let told = Check::loaded(&of_file).soundness().expect("it runs");
    assert_eq!(words(&told), ["holds", "holds", "holds"]);
    assert!(told.notes.iter().any(|note| note.ends_with("as the file says")), "{:?}", told.notes);
}

/// A net grown from one transition by rules that keep it a workflow net; then perhaps an arc is added or its weight changed.
fn random_workflow(rng: &mut Rng) -> Net {
    let place = |name: String, initial| Place { id: name.clone(), name, initial };
    let arc = |place: usize| Arc { place: place as u32, weight: 1 };
    let mut net =
        Net { name: "random".into(), places: vec![place("i".into(), 1), place("o".into(), 0)], ..Net::default() };
    let add = |net: &mut Net, inputs: Vec<Arc>, outputs: Vec<Arc>| {
        let name = format!("t{}", net.transitions.len());
        net.transitions.push(Transition { id: name.clone(), name, inputs, outputs, ..Transition::default() });
    };
    let inner = |net: &mut Net| {
        let name = format!("p{}", net.places.len());
        net.places.push(place(name, 0));
        net.places.len() - 1
    };
    let first = inner(&mut net);
    add(&mut net, vec![arc(0)], vec![arc(first)]);
    add(&mut net, vec![arc(first)], vec![arc(1)]);
    for _ in 0..rng.below(5) {
        let chosen = rng.below(net.transitions.len());
        match rng.below(4) {
            // In sequence: a transition becomes two.
            0 => {
                let middle = inner(&mut net);
                let outputs = std::mem::replace(&mut net.transitions[chosen].outputs, vec![arc(middle)]);
                add(&mut net, vec![arc(middle)], outputs);
            }
            // A choice: the same transition once more.
            1 => {
                let one = net.transitions[chosen].clone();
                add(&mut net, one.inputs, one.outputs);
            }
            // A loop on an inner place.
            2 => {
                let at = 2 + rng.below(net.places.len() - 2);
                add(&mut net, vec![arc(at)], vec![arc(at)]);
            }
            // Side by side: a transition becomes a split, two branches and a join.
            _ => {
                let ends: Vec<usize> = (0..4).map(|_| inner(&mut net)).collect();
                let outputs = std::mem::replace(&mut net.transitions[chosen].outputs, vec![arc(ends[0]), arc(ends[1])]);
                add(&mut net, vec![arc(ends[0])], vec![arc(ends[2])]);
                add(&mut net, vec![arc(ends[1])], vec![arc(ends[3])]);
                add(&mut net, vec![arc(ends[2]), arc(ends[3])], outputs);
            }
        }
    }
    for _ in 0..rng.below(3) {
        let (chosen, at) = (rng.below(net.transitions.len()), 2 + rng.below(net.places.len() - 2));
        let transition = &mut net.transitions[chosen];
        match rng.below(4) {
            0 if transition.inputs.iter().all(|arc| arc.place as usize != at) => transition.inputs.push(arc(at)),
            1 if transition.outputs.iter().all(|arc| arc.place as usize != at) => transition.outputs.push(arc(at)),
            2 => transition.inputs[0].weight = 2,
            _ if transition.outputs.len() > 1 => drop(transition.outputs.pop()),
            _ => {}
        }
    }
    net
}

/// What the oracle finds: the three answers, and how far the nearest marking is from which the end cannot be reached.
type Told = ([bool; 3], Option<usize>);

/// Everything by brute force; nothing, if there are too many markings.
fn oracle(net: &Net) -> Option<Told> {
    let start: Vec<u32> = net.places.iter().map(|place| place.initial).collect();
    let (mut numbers, mut markings, mut depths) = (HashMap::from([(start.clone(), 0)]), vec![start], vec![0]);
    let mut edges: Vec<(usize, usize)> = Vec::new();
    let mut fired = vec![false; net.transitions.len()];
    let mut at = 0;
    while at < markings.len() {
        for (number, transition) in net.transitions.iter().enumerate() {
            let mut next = markings[at].clone();
            if transition.inputs.iter().any(|arc| next[arc.place as usize] < arc.weight) {
                continue;
            }
            transition.inputs.iter().for_each(|arc| next[arc.place as usize] -= arc.weight);
            transition.outputs.iter().for_each(|arc| next[arc.place as usize] += arc.weight);
            fired[number] = true;
            let known = markings.len();
            let target = *numbers.entry(next.clone()).or_insert(known);
            if target == known {
                markings.push(next);
                depths.push(depths[at] + 1);
            }
            edges.push((at, target));
        }
        at += 1;
        if markings.len() > 400 {
            return None;
        }
    }
    let is_final = |marking: &[u32]| marking[1] == 1 && marking.iter().sum::<u32>() == 1;
    let mut completes: Vec<bool> = markings.iter().map(|marking| is_final(marking)).collect();
    while let Some(&(from, _)) = edges.iter().find(|&&(from, to)| !completes[from] && completes[to]) {
        completes[from] = true;
    }
    let proper = markings.iter().all(|marking| marking[1] == 0 || is_final(marking));
    let lost = completes.iter().zip(&depths).filter(|(completes, _)| !**completes).map(|(_, &depth)| depth).min();
    Some(([lost.is_none(), proper, fired.iter().all(|fired| *fired)], lost))
}

#[test]
fn random_workflow_nets_are_answered_as_by_the_oracle() {
    let mut rng = Rng::new(25);
    let mut seen: HashMap<[bool; 3], usize> = HashMap::new();
    for round in 0..600 {
        let net = random_workflow(&mut rng);
        let Some((expected, lost)) = oracle(&net) else { continue };
        let text = write::to_tina(&net);
        let model = loaded("tina", &text);
        let (search, store) = [(Search::Bfs, "plain"), (Search::Dfs, "tree"), (Search::Bfs, "collapse")][round % 3];
        let check = Check::loaded(&model).search(search).store(store.parse().expect("a store"));
        let report = match check.threads(1).soundness() {
            Ok(report) => report,
            // An output that was taken away may leave nodes on no path.
            Err(CheckError::Misfit { message, .. }) if message.starts_with("this is no workflow net") => continue,
            Err(error) => panic!("{error}\n{text}"),
        };
        let found: Vec<bool> = report.answers.iter().map(|one| matches!(one.verdict, Verdict::Holds(_))).collect();
        assert_eq!(found, expected, "{text}");
        assert!(report.answers.iter().all(|one| one.kind == PropertyKind::Soundness));
        assert_eq!(report.answers[0].story.as_ref().map(|story| story.len()), lost, "{text}");
        *seen.entry(expected).or_default() += 1;
    }
    let often = |answers: [bool; 3]| seen.get(&answers).copied().unwrap_or(0) > 10;
    assert!(often([true; 3]) && often([false, false, true]) && often([false, true, false]), "{seen:?}");
}

/// Where ending is right, by language, with the verdict without and with it.
#[test]
fn a_deadlock_in_a_final_state_is_no_violation() {
    let dve = "byte x = 0; process P { state s, e; init s; trans s -> s { guard x < 3; effect x = x + 1; }, s -> e { guard x == 3; }; } system async;";
    let lna = "n { place p { dom: epsilon; init: 2 * epsilon; capacity: 2; } place q { dom: epsilon; capacity: 2; } transition t { in { p: epsilon; } out { q: epsilon; } } }";
    let tina = "pl p (2)\ntr t p -> q";
    // The language, its text, and expressions of final states with what deadlock freedom is worth under them.
    type Rows<'a> = &'a [(&'a [&'a str], &'a str)];
    let cases: &[(&str, &str, Rows)] = &[
        (
            "tina",
            tina,
            &[(&[], "violated"), (&["q = 2"], "holds"), (&["q = 1"], "violated"), (&["q = 1", "p = 0"], "holds")],
        ),
        ("lna", lna, &[(&[], "violated"), (&["q = 2"], "holds"), (&["p > 0"], "violated")]),
        ("dve", dve, &[(&[], "violated"), (&["P.e"], "holds"), (&["x < 3"], "violated"), (&["deadlock"], "holds")]),
        // A division by zero matters only in a deadlock, and there only if nothing before it settles the matter.
        (
            "tina",
            tina,
            &[
                (&["4 / (q - 1) = 4"], "holds"),
                (&["4 / (q - 2) = 4"], "violated"),
                (&["q = 2", "4 / (q - 2) = 4"], "holds"),
            ],
        ),
    ];
    for (format, text, rows) in cases {
        let model = loaded(format, text);
        for (finals, expected) in *rows {
            let (bfs, dfs) = (Strategy::Over(Search::Bfs), Strategy::Over(Search::Dfs));
            for (search, store) in [(bfs, "plain"), (bfs, "compact"), (dfs, "tree"), (Strategy::Sweep, "auto")] {
                for threads in if search == bfs { 1..3 } else { 1..2 } {
                    let check = Check::loaded(&model).search(search).store(store.parse().expect("a store"));
                    let check = finals.iter().fold(check.deadlock_free(), |check, text| {
                        check.ends_in(text).unwrap_or_else(|wrong| panic!("{wrong}"))
                    });
                    let report = check.threads(threads).explore_all(true).run().expect("it runs");
                    assert_eq!(words(&report), [*expected], "{format} {finals:?} {search:?} {store} {threads}");
                    assert_eq!(report.answers[0].kind, PropertyKind::DeadlockFree);
                    assert_eq!(report.statistics.deadlocks, 1, "a right end is counted as a deadlock");
                    assert_eq!(report.notes.len(), usize::from(!finals.is_empty()), "{:?}", report.notes);
                }
            }
        }
    }
}

#[test]
fn final_markings_of_the_file_count_and_are_told() {
    let mut model = loaded("tina", "pl p (2)\ntr t p -> q");
    model.info.final_markings = vec!["p = 0 and q = 2".into()];
    let report = Check::loaded(&model).run().expect("it runs");
    assert_eq!(words(&report), ["holds"]);
    assert!(report.to_json().contains("a deadlock where p = 0 and q = 2 is a right end"), "{}", report.to_json());
    // They are of no use to other questions, which stay as they are.
    let other = Check::loaded(&model).invariant("q <= 1").expect("an expression").run().expect("it runs");
    assert_eq!((words(&other), other.notes.len()), (vec!["violated"], 0));
    let useless = Check::loaded(&model).invariant("q <= 1").and_then(|check| check.ends_in("q = 2")?.run());
    assert!(matches!(useless, Err(CheckError::Misfit { .. })), "an option that does nothing is refused");
}

#[test]
fn a_property_process_is_told_and_not_explored() {
    let text = "byte x = 0; process A { state q; init q; trans q -> q { guard x < 3; effect x = x + 1; }; }
        process P { state a, b; init a; accept b; trans a -> a {}, a -> b { guard x == 2; }, b -> b {}; } system async";
    let (with, without) = (loaded("dve", &format!("{text} property P;")), loaded("dve", &format!("{text};")));
    let report = Check::loaded(&with).explore_all(true).run().expect("it runs");
    assert_eq!(report.statistics.states, 4);
    assert_eq!(report.notes, ["`P` asks for temporal logic, which this run leaves out"]);
    // It is answered by default: once `x` is 2, `P` stays in `b`, where it accepts. The last state repeats.
    let report = Check::loaded(&with).run().expect("it runs");
    let told: Vec<(&str, &str)> =
        report.answers.iter().map(|answer| (answer.name.as_str(), answer.verdict.word())).collect();
    assert_eq!(told, [("deadlock-free", "violated"), ("fault-free", "holds"), ("P", "violated")]);
    let story = report.answers[2].story.as_ref().expect("a path shows it");
    assert_eq!((story.len(), story.cycle(), report.notes.len()), (3, None, 0));
    // As an ordinary process it takes part, and its acceptance condition is what remains.
    let report = Check::loaded(&without).explore_all(true).run().expect("it runs");
    assert!(report.statistics.states > 4);
    let told = "the acceptance condition of process `P` is not checked, because it is no property process; `--ltl` asks \
                about infinite paths";
    assert_eq!(report.notes, [told]);
}
