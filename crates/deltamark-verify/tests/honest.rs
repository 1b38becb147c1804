//! Certificates of right answers are accepted, and say what the run said.
//!
//! In: the project's own nets, random nets with every kind of arc, nets from outside. Out: for each a run with a
//! certificate, whose check must count the states and edges that the run counted.

mod common;

use common::{certified, loaded, parts, sealed, verified};
use deltamark::{Answer, Check, Limits, Report, Search, Verdict};
use deltamark_nets::write::{to_pnml, to_tina};
use deltamark_testkit::Corpus;
use deltamark_testkit::corpus::Row;
use deltamark_testkit::random::{Rng, bounded_nets, with_priorities};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::path::Path;
use std::time::Instant;

/// What is wrong with the certificate of a report: whether its check fails, or says something else.
fn differences(report: &Report, certificate: &[u8], text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let contents = report.certificate.as_ref().and_then(|certificate| certificate.contents);
    let Some(contents) = contents else {
        // Then nothing can be certified.
        let open = |verdict: &Verdict| !matches!(verdict, Verdict::Unknown);
        let open = report.answers.iter().filter(|answer| open(&answer.verdict)).count();
        return if open == 0 { wrong } else { vec![format!("no certificate: {:?}", report.certificate)] };
    };
    let accepted = match verified(certificate, text) {
        Ok(accepted) => accepted,
        Err(failure) => return vec![format!("{failure:?}")],
    };
    let uncertified = report.certificate.as_ref().map_or(0, |certificate| certificate.uncertified.len());
    if accepted.claims.len() + uncertified != report.answers.len() {
        wrong.push(format!("{} answers, {} claims", report.answers.len(), accepted.claims.len()));
    }
    for claim in &accepted.claims {
        let same = |answer: &&Answer| (answer.name.as_str(), answer.kind.word()) == (claim.name.as_str(), claim.kind);
        let answer = report.answers.iter().find(same).expect("an answer of this name");
        let verdict = if claim.holds { "holds" } else { "violated" };
        if answer.verdict.word() != verdict {
            wrong.push(format!("{}: {} by the run, {verdict} by the check", answer.name, answer.verdict.word()));
        }
        if claim.path.is_some() && claim.path != answer.verdict.trace().map(|trace| trace.len() as u64) {
            wrong.push(format!("{}: the paths differ in length", answer.name));
        }
    }
    if let Some(states) = accepted.states {
        let steps: u64 = accepted.claims.iter().filter_map(|claim| claim.path).sum();
        let (found, expected) = ((states, accepted.steps - steps), (report.statistics.states, report.statistics.edges));
        if found != expected || contents.states != Some(states) {
            wrong.push(format!("states and edges: {found:?} by the check, {expected:?} by the run"));
        }
    }
    wrong
}

/// Questions about a net, some true, some false, some undefined.
fn asked<'a>(check: Check<'a>, places: &[String], transitions: &[String], rng: &mut Rng) -> Check<'a> {
    let place = |rng: &mut Rng| places[rng.below(places.len())].clone();
    let transition = |rng: &mut Rng| match transitions {
        [] => "deadlock".to_string(),
        some => format!("fireable({})", some[rng.below(some.len())]),
    };
    let mut check = check.deadlock_free();
    for number in 0..4 {
        let (a, b, c) = (place(rng), place(rng), place(rng));
        let (k, fires) = (rng.below(4), transition(rng));
        let text = match rng.below(7) {
            0 => format!("{a} <= {k}"),
            1 => format!("tokens({a}, {b}) - {c} < {k} or not ({a} = {b})"),
            2 => format!("{fires} implies {a} + {b} >= {k}"),
            3 => format!("deadlock iff {a} * 2 % 3 != {k} and {b} >= 1"),
            4 => format!("{b} = 0 or {a} / {b} <= {k}"),
            5 => format!("{a} / {b} >= {k} and -{c} > -{k}"),
            _ => format!("(deadlock or {fires}) -> ({a} <> {b} <-> true)"),
        };
        check = match number % 2 {
            0 => check.invariant(&text),
            _ => check.reachable(&text),
        }
        .expect("an expression");
    }
    check
}

#[test]
fn the_projects_own_nets_are_certified() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("models") {
        let path = entry.expect("an entry").path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !matches!(ending, "net" | "pnml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let model = loaded(&text, ending);
        for store in ["auto", "compact", "breadcrumb"] {
            let check = Check::loaded(&model).deadlock_free().reachable("false").expect("an expression");
            let (report, certificate) = certified(check.store(store.parse().expect("a store")));
            let wrong = differences(&report, &certificate, &text);
            assert!(wrong.is_empty(), "{} {store}: {wrong:?}", path.display());
            assert!(verified(&certificate, &text).expect("accepted").states.is_some(), "{}", path.display());
            assert_eq!(sealed(&parts(&certificate)), certificate, "{}", path.display());
        }
        count += 1;
    }
    assert!(count >= 6, "only {count} nets");
}

fn random_nets(count: usize, seed: u64) {
    let mut runner = TestRunner::deterministic();
    let mut rng = Rng::new(seed);
    let stores = ["plain", "tree", "compact", "collapse", "difference", "delta:k=2", "comback", "breadcrumb"];
    let (mut sets, mut paths) = (0, 0);
    for number in 0..count {
        let net = bounded_nets(5, 6).new_tree(&mut runner).expect("a net").current();
        for (format, text) in [("pnml", to_pnml(&net)), ("tina", to_tina(&net))] {
            let model = loaded(&text, format);
            let names = |names: Vec<String>| -> Vec<String> {
                names.iter().map(|name| format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))).collect()
            };
            let observe = model.system.observe().expect("names");
            let (places, transitions) = (names(observe.names()), names(observe.action_names()));
            let store = stores[rng.below(stores.len())];
            // Some stores work level by level.
            let depth_first = rng.below(2) == 0 && store != "breadcrumb" && store != "difference";
            let search = if depth_first { Search::Dfs } else { Search::Bfs };
            let check = asked(Check::loaded(&model), &places, &transitions, &mut rng);
            let limits = Limits { states: Some(20_000), ..Limits::default() };
            let check = check.store(store.parse().expect("a store")).search(search).limits(limits);
            let (report, certificate) = certified(check);
            let wrong = differences(&report, &certificate, &text);
            assert!(wrong.is_empty(), "net {number}, {store}, {search:?}: {wrong:?}\n{text}");
            if let Ok(accepted) = verified(&certificate, &text) {
                sets += usize::from(accepted.states.is_some());
                paths += accepted.claims.iter().filter(|claim| claim.path.is_some()).count();
            }
        }
    }
    assert!(sets > count / 4 && paths > count, "{sets} sets and {paths} paths of {count} nets");
}

#[test]
fn random_nets_are_certified() {
    random_nets(150, 1);
}

#[test]
#[ignore = "takes minutes; run by scripts/long"]
fn very_many_random_nets_are_certified() {
    random_nets(5000, 2);
}

#[test]
fn what_cannot_be_certified_is_refused_by_name() {
    let text = "pl a (1)\ntr t a -> b\ntr u b -> a\n";
    let model = loaded(text, "tina");
    let why = |check: Check<'_>| {
        let (report, bytes) = certified(check);
        let file = report.certificate.expect("it was asked for");
        assert_eq!(file.contents.is_some(), !bytes.is_empty());
        file.uncertified.into_iter().map(|(_, why)| why).collect::<Vec<_>>().join("; ")
    };
    let check = || Check::loaded(&model).deadlock_free();
    assert_eq!(why(check()), "");
    assert_eq!(why(check().store("compaction".parse().expect("a store"))), "the store may have missed states");
    assert_eq!(why(check().limits(Limits { states: Some(1), ..Limits::default() })), "it has no answer");
    let formula = check().ltl("G F a = 1").expect("a formula");
    let expected = "formulas of temporal logic are asked in the same run; it asks for more than single states show";
    assert_eq!(why(formula), expected);
    assert_eq!(why(check().search(deltamark::Strategy::Sweep)), "a sweep does not keep the states");
    let priorities = with_priorities(bounded_nets(4, 5));
    let mut runner = TestRunner::deterministic();
    let net = (0..100).map(|_| priorities.new_tree(&mut runner).expect("a net").current());
    let net = net.into_iter().find(|net| net.has_priorities()).expect("one with priorities");
    let system = deltamark_nets::NetSystem::new(net);
    assert_eq!(why(Check::new(&system).deadlock_free()), "the model does not come from a file");
    let other = loaded("process P { state a; init a; }\nsystem async;\n", "dve");
    let expected = "certificates are for P/T nets, and this model is none";
    assert_eq!(why(Check::loaded(&other).deadlock_free()), expected);
}

#[test]
fn texts_of_several_lines_are_certified_on_one() {
    let text = "pl a (1)\npl {b # c  d} (0)\ntr t a -> {b # c  d}\ntr u {b # c  d} -> a\n";
    let model = loaded(text, "tina");
    let asked = "\ta <= 1 # one\ttoken\r\n\tand\t\"b # c  d\" <=\u{a0}1\r\n # \u{1b}[2K \u{202e}\n  and 'a' = 1 - \"b # c  d\"\n";
    let check = Check::loaded(&model).deadlock_free().ends_in("deadlock\tand # no\ntrue").expect("an end");
    let (report, certificate) = certified(check.named_invariant("kept", asked).expect("an expression"));
    let wrong = differences(&report, &certificate, text);
    assert!(wrong.is_empty(), "{wrong:?}");
    let claims = verified(&certificate, text).expect("accepted").claims;
    assert_eq!(claims[0].ends, ["deadlock and true"]);
    assert_eq!(claims[1].text, "a <= 1 and \"b # c  d\" <= 1 and a = 1 - \"b # c  d\"");
}

#[test]
fn what_a_certificate_cannot_show_or_hold_is_refused_by_name() {
    let text = "pl a (1)\ntr t a -> b\ntr u b -> a\n";
    let model = loaded(text, "tina");
    let why = |check: Check<'_>| {
        let (report, bytes) = certified(check.deadlock_free());
        assert_eq!(verified(&bytes, text).expect("accepted").claims.len(), 1);
        report.certificate.expect("it was asked for").uncertified.into_iter().map(|(_, why)| why).collect::<String>()
    };
    let named = |name: &str| why(Check::loaded(&model).named_invariant(name, "true").expect("an expression"));
    for name in ["one\ntwo", "one\ttwo", "one\u{202e}two", "one\u{1b}[2Ktwo"] {
        assert!(named(name).contains("can disguise what `verify` shows"), "{name:?}");
    }
    let long = "a + 0 <= 1 and ".repeat(2_000) + "true";
    let mut several = Check::loaded(&model);
    for _ in 0..40 {
        several = several.named_invariant("long", &long).expect("an expression");
    }
    let (report, bytes) = certified(several);
    let held = verified(&bytes, text).expect("accepted").claims.len();
    let left = report.certificate.expect("it was asked for").uncertified;
    assert!(held > 20 && !left.is_empty() && held + left.len() == 40, "{held} and {}", left.len());
    assert_eq!(left[0].1, "a certificate holds at most 10000 claims, with 1 MiB of names and texts");
    let mut many = Check::loaded(&model);
    for _ in 0..10_001 {
        many = many.named_invariant("one", "true").expect("an expression");
    }
    let (report, bytes) = certified(many);
    assert_eq!(verified(&bytes, text).expect("accepted").claims.len(), 10_000);
    assert_eq!(report.certificate.expect("it was asked for").uncertified.len(), 1);
}

#[test]
fn the_least_and_the_largest_number_are_certified() {
    let text = "pl a (1)\ntr t a -> b\ntr u b -> a\n";
    let model = loaded(text, "tina");
    let mut check = Check::loaded(&model).deadlock_free();
    for asked in [
        "-9223372036854775808 < a",
        "- 9223372036854775808 + a < 9223372036854775807",
        "(-9223372036854775808) = -9223372036854775807 - 1",
        "--9223372036854775808 = 0",
        "a - -9223372036854775808 > 0",
        "a * -9223372036854775808 <= a",
    ] {
        check = check.invariant(asked).expect("an expression");
    }
    let (report, certificate) = certified(check);
    let wrong = differences(&report, &certificate, text);
    assert!(wrong.is_empty(), "{wrong:?}");
    let mut wrong = parts(&certificate);
    wrong.claims[1].text = "a < 9223372036854775808".into();
    assert!(verified(&sealed(&wrong), text).is_err());
}

/// Checks the certificate of a net from outside; gives what is wrong, and processor-independent figures in a line.
fn outside(corpus: &Corpus, row: &Row) -> Vec<String> {
    let name = row.text("model").expect("every row names its model");
    let text = std::fs::read_to_string(corpus.file("pnml", &format!("{name}.pnml"))).expect("the net is there");
    let model = loaded(&text, "pnml");
    let begun = Instant::now();
    let check = Check::loaded(&model).deadlock_free().reachable("false").expect("an expression").threads(1);
    let (report, certificate) = certified(check.explore_all(true));
    let ran = begun.elapsed();
    let begun = Instant::now();
    let mut wrong = differences(&report, &certificate, &text);
    let verified = begun.elapsed();
    if row.number("states").is_some_and(|states| states != report.statistics.states) {
        wrong.push("the number of states is another one".into());
    }
    println!(
        "{name:<34} {:>8} states {:>9} edges {:>9} bytes  run {:>7.3} s  check {:>7.3} s  ratio {:>5.1}",
        report.statistics.states,
        report.statistics.edges,
        certificate.len(),
        ran.as_secs_f64(),
        verified.as_secs_f64(),
        verified.as_secs_f64() / ran.as_secs_f64(),
    );
    wrong.into_iter().map(|wrong| format!("{name}: {wrong}")).collect()
}

fn nets_from_outside(test: &str, most: u64, count: usize) {
    let Some(corpus) = Corpus::find(test) else { return };
    let wanted =
        |row: &Row| row.text("kind") == Some("PT") && row.number("states").is_some_and(|states| states <= most);
    corpus.check_rows("pnml", count, wanted, |row| outside(&corpus, row));
}

#[test]
fn small_nets_from_outside_are_certified() {
    nets_from_outside("small_nets_from_outside_are_certified", 2_000, 20);
}

#[test]
#[ignore = "takes minutes; run by scripts/long"]
fn nets_from_outside_are_certified() {
    nets_from_outside("nets_from_outside_are_certified", 1_000_000, 80);
}
