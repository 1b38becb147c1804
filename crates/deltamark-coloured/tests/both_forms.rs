//! Places, labels, bindings, faults and properties of Helena's language, net by net: `both_forms.txt` has nets and
//! answers, and each net runs as coloured and unfolded.
//!
//! ```text
//! ## A heading
//! # A sentence of the language.
//! the text of the net
//! > N=3: 4/3/1; 2 steps: division by zero    with this parameter; states/edges/deadlocks, and a fault
//! > 1/0/0; stopped by count                  beyond the bounds of evaluations
//! > wrong 1:11 message (advice)              what is refused, a line for each diagnostic
//! > not unfolded: a reason                   otherwise it must unfold, to the same answers
//! ```

#[path = "common/explore.rs"]
mod explored;

use deltamark_coloured::lna::parse;
use deltamark_coloured::{ColouredSystem, NotUnfolded, UnfoldLimits, UnfoldedSystem};
use deltamark_core::diagnostic::line_column;
use deltamark_core::{Diagnostic, System};
use explored::{Found, explore_system, stopped};

/// A net and the expected answers.
struct Case<'t> {
    sentence: &'t str,
    net: String,
    answers: Vec<&'t str>,
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("## ")) {
        if let Some(sentence) = line.strip_prefix("# ") {
            cases.push(Case { sentence, net: String::new(), answers: Vec::new() });
            continue;
        }
        let case = cases.last_mut().expect("a sentence stands first");
        match line.strip_prefix("> ") {
            Some(answer) => case.answers.push(answer),
            None => case.net.push_str(&format!("{line}\n")),
        }
    }
    cases
}

fn said(net: &str, diagnostics: &[Diagnostic]) -> Vec<String> {
    let one = |diagnostic: &Diagnostic| {
        let place = diagnostic.span.map_or(String::new(), |span| {
            let (line, column) = line_column(net, span.start);
            format!("{line}:{column} ")
        });
        let help = diagnostic.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
        format!("wrong {place}{}{help}", diagnostic.message)
    };
    diagnostics.iter().map(one).collect()
}

fn answer(system: &dyn System) -> String {
    let Found { states, edges, deadlocks, fault } = explore_system(system, "plain");
    let counts = format!("{states}/{edges}/{deadlocks}");
    match fault {
        None => stopped(system).map_or(counts.clone(), |by| format!("{counts}; stopped by {}", by.word())),
        Some((message, 1)) => format!("{counts}; 1 step: {message}"),
        Some((message, steps)) => format!("{counts}; {steps} steps: {message}"),
    }
}

/// The expected answers for a net with these parameters.
fn answers(net: &str, given: &str) -> Vec<String> {
    let pairs = given.split(',').filter_map(|pair| pair.split_once('='));
    let parameters: Vec<(String, String)> = pairs.map(|(name, value)| (name.into(), value.into())).collect();
    let read = match parse(net.as_bytes(), &parameters) {
        Ok(read) => read,
        Err(diagnostics) => return said(net, &diagnostics),
    };
    let coloured = match ColouredSystem::new(read.clone(), net) {
        Ok(system) => answer(&system),
        Err(diagnostics) => return said(net, &diagnostics),
    };
    let prefix = if given.is_empty() { String::new() } else { format!("{given}: ") };
    let mut all = vec![format!("{prefix}{coloured}")];
    match UnfoldedSystem::new(read, net, UnfoldLimits::DEMANDED) {
        Ok(system) => assert_eq!(answer(&system), coloured, "unfolded: {net}"),
        Err(NotUnfolded::Refused(why)) => all.push(format!("not unfolded: {why}")),
        Err(NotUnfolded::Wrong(_)) => all.push("the unfolded form is refused".into()),
        Err(NotUnfolded::Stopped(stop)) => panic!("{stop:?}"),
    }
    all
}

#[test]
fn every_sentence_holds_in_both_forms() {
    let text = include_str!("both_forms.txt");
    let mut wrong = Vec::new();
    for Case { sentence, net, answers: expected } in cases(text) {
        let mut given: Vec<&str> = expected
            .iter()
            .filter_map(|line| line.split_once(": "))
            .map(|(before, _)| before)
            .filter(|before| before.contains('=') && !before.contains(' '))
            .collect();
        if given.is_empty() {
            given.push("");
        }
        let found: Vec<String> = given.into_iter().flat_map(|given| answers(&net, given)).collect();
        if found != expected {
            wrong.push(format!("# {sentence}\n{net}> {}\n", found.join("\n> ")));
        }
    }
    assert!(wrong.is_empty(), "these say something else:\n{}", wrong.join("\n"));
}

/// State properties: no state that is rejected and not accepted.
#[test]
fn properties_of_states_become_invariants() {
    let net = "n { place a { dom : int; init : <( 2 )>; } proposition deadlock : false; proposition a : a'card = 0;
        proposition low : exists (x in a | x->1 < 1); }";
    let rows = [
        ("state property p : reject deadlock;", "not deadlock"),
        ("state property p : reject low; accept deadlock;", "not low or deadlock"),
        ("state property p : reject deadlock; accept low; accept a;", "not deadlock or low or \"proposition a\""),
    ];
    for (property, expected) in rows {
        let read = parse(format!("{net} {property}").as_bytes(), &[]).expect("a net");
        // The word `deadlock` is reserved in properties, whatever a proposition is called.
        assert_eq!(read.property_texts(), [("p".to_string(), expected.to_string())], "{property}");
    }
}

/// Markings in the order of their types, whichever tokens were found first; steps with their bindings,
/// followed by the model's description.
#[test]
fn both_forms_are_told_alike() {
    let net = "n { type site : range 1 .. 12; type state : enum (idle, busy); type some : set of site with capacity 2;
        place p { dom : site * state; init : <( 10, idle )> + <( 9, busy )> + 2 * <( 9, idle )>; capacity : 2; }
        place s { dom : some; init : <( | 2, 1 | )>; } place e { dom : epsilon; init : 3 * epsilon; capacity : 3; }
        place o { dom : site; }
        transition go { in { p : <( x, idle )>; } out { p : <( x - 8, busy )>; } let { int y := int(x) * 2; }
           description : \"%d%% of %s\", y, idle; }
        transition take { in { s : <( m )>; e : epsilon; } out { o : <( z )>; } pick { z in m; } } }";
    let read = parse(net.as_bytes(), &[]).expect("a net");
    let unfolded = match UnfoldedSystem::new(read.clone(), net, UnfoldLimits::DEMANDED) {
        Ok(system) => system,
        Err(NotUnfolded::Refused(why)) => panic!("{why}"),
        Err(NotUnfolded::Wrong(wrong)) => panic!("{wrong:?}"),
        Err(NotUnfolded::Stopped(stop)) => panic!("{stop:?}"),
    };
    let coloured = ColouredSystem::new(read, net).expect("it runs");
    let systems: [&dyn System; 2] = [&coloured, &unfolded];
    for system in systems {
        let found = deltamark_testkit::explore(system);
        let told = |state: &[u32]| -> Vec<String> {
            system.describe().state(state).iter().map(|(name, value)| format!("{name}: {value}")).collect()
        };
        assert_eq!(told(&found.states[0]), ["p: 2'(9,idle) ++ 1'(9,busy) ++ 1'(10,idle)", "s: 1'|1,2|", "e: 3"]);
        let steps = found.edges.iter().filter(|edge| edge.source == 0);
        let mut steps: Vec<String> = steps
            .map(|edge| {
                let name = system.describe().action(&found.states[0], edge.action);
                format!("{name} -> {}", told(&found.states[edge.target]).join(", "))
            })
            .collect();
        steps.sort();
        let expected = [
            "go(x=10): 20% of idle -> p: 1'(2,busy) ++ 2'(9,idle) ++ 1'(9,busy), s: 1'|1,2|, e: 3",
            "go(x=9): 18% of idle -> p: 1'(1,busy) ++ 1'(9,idle) ++ 1'(9,busy) ++ 1'(10,idle), s: 1'|1,2|, e: 3",
            "take(m=|1,2|,z=1) -> p: 2'(9,idle) ++ 1'(9,busy) ++ 1'(10,idle), e: 2, o: 1'1",
            "take(m=|1,2|,z=2) -> p: 2'(9,idle) ++ 1'(9,busy) ++ 1'(10,idle), e: 2, o: 1'2",
        ];
        assert_eq!(steps, expected);
    }
}
