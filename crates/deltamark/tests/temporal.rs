//! Formulas of temporal logic asked of whole models: of random nets, against an evaluation by definition, along a
//! search and along a written graph; and the paths that come with the answers.

use deltamark::condensed::{OpenOptions, Way};
use deltamark::{Check, CheckError, Condensed, Fair, Loaded, Report, RouteKind, Search, Verdict, load};
use deltamark_core::System;
use deltamark_logic::temporal::{holds_on_lasso, path_formula};
use deltamark_testkit::oracle::explore_up_to;
use deltamark_testkit::random::Rng;
use deltamark_testkit::temporal::{Dull, Explicit};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The atoms as texts; the last is true where no step is possible.
const ATOMS: [&str; 4] = ["p0 >= 1", "p1 = p2", "fireable(t0, t1)", "deadlock"];
const DEAD: u32 = 3;

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("temporal").join(test);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A random net of three places and a few transitions that move tokens.
fn net(random: &mut Rng) -> String {
    let mut text = String::new();
    for place in 0..3 {
        let _ = writeln!(text, "pl p{place} ({})", random.below(3));
    }
    for transition in 0..2 + random.below(4) {
        let (from, to) = (random.below(3), random.below(3));
        let _ = write!(text, "tr t{transition} p{from}");
        if random.below(4) == 0 {
            let _ = write!(text, " p{}", (from + 1) % 3);
        }
        let _ = writeln!(text, " -> p{to}");
    }
    text
}

fn written(formula: &Dull) -> String {
    match formula {
        Dull::True => "true".into(),
        Dull::Atom(atom) => format!("({})", ATOMS[*atom as usize]),
        Dull::Not(a) => format!("not ({})", written(a)),
        Dull::And(a, b) => format!("(({}) and ({}))", written(a), written(b)),
        Dull::Or(a, b) => format!("(({}) or ({}))", written(a), written(b)),
        Dull::Next(a) => format!("X ({})", written(a)),
        Dull::Until(a, b) => format!("(({}) U ({}))", written(a), written(b)),
        Dull::Release(a, b) => format!("(({}) R ({}))", written(a), written(b)),
        Dull::Exists(a) => format!("E ({})", written(a)),
    }
}

/// What a formula of CTL means on the graph in which ends repeat: `X` needs a next state where some path is asked for.
fn meaning(formula: &Dull, strong: bool) -> Dull {
    let boxed = |formula: &Dull| Box::new(meaning(formula, strong));
    match formula {
        Dull::True | Dull::Atom(_) => formula.clone(),
        Dull::Not(a) => Dull::Not(Box::new(meaning(a, !strong))),
        Dull::And(a, b) => Dull::And(boxed(a), boxed(b)),
        Dull::Or(a, b) => Dull::Or(boxed(a), boxed(b)),
        Dull::Until(a, b) => Dull::Until(boxed(a), boxed(b)),
        Dull::Release(a, b) => Dull::Release(boxed(a), boxed(b)),
        Dull::Exists(a) => Dull::Exists(Box::new(meaning(a, true))),
        Dull::Next(a) if strong => {
            let goes_on = Box::new(Dull::Not(Box::new(Dull::Atom(DEAD))));
            Dull::And(goes_on, Box::new(Dull::Next(boxed(a))))
        }
        Dull::Next(a) => Dull::Or(Box::new(Dull::Atom(DEAD)), Box::new(Dull::Next(boxed(a)))),
    }
}

fn temporal(formula: &Dull) -> usize {
    match formula {
        Dull::True | Dull::Atom(_) => 0,
        Dull::Not(a) | Dull::Exists(a) => temporal(a),
        Dull::And(a, b) | Dull::Or(a, b) => temporal(a) + temporal(b),
        Dull::Next(a) => 1 + temporal(a),
        Dull::Until(a, b) | Dull::Release(a, b) => 1 + temporal(a) + temporal(b),
    }
}

/// The graph of a system, its ends repeating; `None` if it is large.
fn explicit(system: &dyn System) -> Option<Explicit> {
    let explored = explore_up_to(system, 40)?;
    let observe = system.observe().expect("a net");
    let mut edges = vec![Vec::new(); explored.states.len()];
    explored.edges.iter().for_each(|edge| edges[edge.source].push(edge.target));
    let mut scratch = system.scratch();
    let letter = |(number, state): (usize, &Vec<u32>)| {
        let mut tokens = |place: &str| observe.read(&mut scratch, state, observe.resolve(place).expect("a place"));
        let (p0, p1, p2) = (tokens("p0"), tokens("p1"), tokens("p2"));
        let mut fires = |name: &str| observe.read(&mut scratch, state, observe.fireable(name).expect("it is there"));
        let fireable = fires("t0") + fires("t1") > 0;
        let truths = [p0 >= 1, p1 == p2, fireable, edges[number].is_empty()];
        truths.iter().enumerate().fold(0, |letter, (atom, &truth)| letter | u64::from(truth) << atom)
    };
    let letters = explored.states.iter().enumerate().map(letter).collect();
    for (state, row) in edges.iter_mut().enumerate().filter(|(_, row)| row.is_empty()) {
        row.push(state);
    }
    Some(Explicit { edges, letters })
}

fn formula(random: &mut Rng, paths: bool) -> Dull {
    loop {
        let height = 1 + random.below(4);
        let formula = Dull::random(random, height, ATOMS.len(), paths);
        if temporal(&formula) <= 3 {
            return formula;
        }
    }
}

/// Whether each answer is the expected one.
fn same(report: &Report, asked: &[(bool, String, bool)], told: &str) {
    assert_eq!(report.answers.len(), asked.len());
    for (answer, (_, text, expected)) in report.answers.iter().zip(asked) {
        assert_eq!(&answer.text, text, "answers come in the order of questions");
        let holds = match answer.verdict {
            Verdict::Holds(_) => true,
            Verdict::Violated(..) => false,
            ref other => panic!("{other:?} for {text} of {told}"),
        };
        assert_eq!(holds, *expected, "{text} of {told}");
        // A formula of LTL that is violated comes with a lasso, or a path into a deadlock.
        let refuted = !holds && answer.kind.word() == "ltl";
        assert!(!refuted || answer.story.is_some(), "{text} of {told}");
    }
}

fn ask<'a>(check: Check<'a>, asked: &[(bool, String, bool)]) -> Check<'a> {
    asked.iter().fold(check, |check, (ctl, text, _)| {
        let with = if *ctl { check.ctl(text) } else { check.ltl(text) };
        with.unwrap_or_else(|error| panic!("{text}: {error}"))
    })
}

fn graph_of(model: &Loaded, path: &Path) -> Condensed {
    let path = path.display().to_string();
    Check::loaded(model).graph(path.as_str()).explore().expect("a graph");
    Condensed::open(&path, &OpenOptions::default()).expect("it was written")
}

#[test]
fn formulas_of_random_nets_have_the_values_of_an_evaluation_by_definition() {
    let folder = folder("random");
    let mut compared = 0;
    for seed in 0..150 {
        let mut random = Rng::new(seed);
        let text = net(&mut random);
        let path = folder.join("random.net");
        std::fs::write(&path, &text).expect("a file");
        let model = load(&path.display().to_string(), None).unwrap_or_else(|error| panic!("{text}: {error}"));
        let Some(graph) = explicit(model.system.as_ref()) else { continue };
        let mut asked: Vec<(bool, String, bool)> = Vec::new();
        for index in 0..8 {
            let ctl = index % 2 == 0;
            let one = formula(&mut random, ctl);
            if ctl {
                let state = Dull::Exists(Box::new(one));
                asked.push((ctl, written(&state), meaning(&state, false).on_graph(&graph)[0]));
            } else {
                let refuted = Dull::Exists(Box::new(Dull::Not(Box::new(one.clone()))));
                asked.push((ctl, written(&one), !refuted.on_graph(&graph)[0]));
            }
        }
        compared += asked.len();
        let report = ask(Check::loaded(&model), &asked).run().unwrap_or_else(|error| panic!("{text}: {error}"));
        same(&report, &asked, &text);
        if seed % 5 == 0 {
            let condensed = graph_of(&model, &folder.join("random.dmg"));
            let along = ask(Check::along(&condensed, Way::Auto), &asked).run();
            same(&along.unwrap_or_else(|error| panic!("{text}: {error}")), &asked, &format!("the graph of {text}"));
        }
    }
    assert!(compared > 600, "{compared}");
    std::fs::remove_dir_all(folder).expect("it is there");
}

/// Whether the answer of a run on the fly is the expected one; `false` if the run was refused for a reason that is known.
fn same_on_the_fly(check: Check<'_>, asked: &(bool, String, bool), told: &str) -> bool {
    let report = match ask(check.route(RouteKind::Fly), std::slice::from_ref(asked)).run() {
        Ok(report) => report,
        Err(CheckError::Misfit { message, .. }) if message.contains("cannot serve") => return false,
        Err(error) => panic!("{error} for {} of {told}", asked.1),
    };
    if matches!(report.answers[0].verdict, Verdict::NoViolationFound(_)) {
        assert!(asked.2, "{} of {told}", asked.1);
        return true;
    }
    same(&report, std::slice::from_ref(asked), told);
    true
}

#[test]
fn every_store_gives_the_same_answers_on_the_fly() {
    let folder = folder("fly");
    let mut compared = [0; 2];
    for seed in 0..60 {
        let mut random = Rng::new(1000 + seed);
        let text = net(&mut random);
        let path = folder.join("random.net");
        std::fs::write(&path, &text).expect("a file");
        let model = load(&path.display().to_string(), None).unwrap_or_else(|error| panic!("{text}: {error}"));
        let Some(graph) = explicit(model.system.as_ref()) else { continue };
        for _ in 0..4 {
            let one = formula(&mut random, false);
            let refuted = Dull::Exists(Box::new(Dull::Not(Box::new(one.clone()))));
            let asked = (false, written(&one), !refuted.on_graph(&graph)[0]);
            for store in deltamark::store::CATALOGUE {
                // Breadth-first cycles are searched for in passes.
                for (threads, search) in [(1, Search::Bfs), (1, Search::Dfs), (2, Search::Bfs), (2, Search::Dfs)] {
                    let rebuilds = ["delta", "comback", "difference"].contains(&store.name);
                    let alone = threads == 1 || search == Search::Bfs || !rebuilds;
                    let fits = (store.threads || threads == 1) && store.name != "breadcrumb";
                    if !fits || !alone {
                        continue;
                    }
                    let told = format!("{text} with {} by {} and {threads} threads", store.name, search.name());
                    let spec = store.name.parse().expect("a store");
                    let check = Check::loaded(&model).store(spec).search(search).threads(threads);
                    compared[usize::from(asked.2)] += usize::from(same_on_the_fly(check, &asked, &told));
                }
            }
        }
    }
    assert!(compared.iter().all(|&count| count > 1000), "{compared:?}");
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn formulas_of_ctl_have_the_same_answers_on_the_fly() {
    let folder = folder("local");
    let mut compared = [0; 2];
    for seed in 0..200 {
        let mut random = Rng::new(9000 + seed);
        let text = net(&mut random);
        let path = folder.join("random.net");
        std::fs::write(&path, &text).expect("a file");
        let model = load(&path.display().to_string(), None).unwrap_or_else(|error| panic!("{text}: {error}"));
        let Some(graph) = explicit(model.system.as_ref()) else { continue };
        for _ in 0..4 {
            let state = Dull::Exists(Box::new(formula(&mut random, true)));
            let state = if random.below(2) == 0 { state } else { Dull::Not(Box::new(state)) };
            let asked = [(true, written(&state), meaning(&state, false).on_graph(&graph)[0])];
            for store in ["auto", "tree", "collapse", "delta", "comback"] {
                let check = ask(Check::loaded(&model).store(store.parse().expect("a store")), &asked);
                match check.route(RouteKind::Fly).run() {
                    Ok(report) => same(&report, &asked, &format!("{text} over {store}")),
                    Err(CheckError::Misfit { message, .. }) if message.contains("needs an automaton") => break,
                    Err(error) => panic!("{error} for {} of {text}", asked[0].1),
                }
                compared[usize::from(asked[0].2)] += 1;
            }
        }
    }
    assert!(compared.iter().all(|&count| count > 200), "{compared:?}");
    std::fs::remove_dir_all(folder).expect("it is there");
}

/// Of each edge of the graph of a system, in the order of [`explicit`], its transition as a bit.
fn labels(system: &dyn System) -> Option<Vec<Vec<u64>>> {
    let explored = explore_up_to(system, 40)?;
    let mut labels = vec![Vec::new(); explored.states.len()];
    explored.edges.iter().for_each(|edge| labels[edge.source].push(1 << edge.action.0));
    // An end repeats, by no transition.
    labels.iter_mut().filter(|row| row.is_empty()).for_each(|row| row.push(0));
    Some(labels)
}

#[test]
fn formulas_of_fair_paths_have_the_values_of_an_evaluation_by_definition() {
    let folder = folder("fair");
    let (mut compared, mut changed) = ([0; 2], [0; 2]);
    for seed in 0..400 {
        let mut random = Rng::new(5000 + seed);
        let text = net(&mut random);
        let path = folder.join("random.net");
        std::fs::write(&path, &text).expect("a file");
        let model = load(&path.display().to_string(), None).unwrap_or_else(|error| panic!("{text}: {error}"));
        let (Some(graph), Some(labels)) = (explicit(model.system.as_ref()), labels(model.system.as_ref())) else {
            continue;
        };
        let groups = model.system.action_count().expect("a net") as usize;
        for index in 0..4 {
            let one = loop {
                let one = formula(&mut random, false);
                if temporal(&one) <= 2 {
                    break one;
                }
            };
            let strong = index % 2 == 0;
            let negation = Dull::Not(Box::new(one.clone()));
            let refuted = negation.on_fair_graph(&graph, &labels, groups, strong)[0];
            let by_any = Dull::Exists(Box::new(negation)).on_graph(&graph)[0];
            compared[usize::from(strong)] += 1;
            changed[usize::from(strong)] += usize::from(refuted != by_any);
            let asked = (false, written(&one), !refuted);
            let told = format!("{text} with {} fairness", if strong { "strong" } else { "weak" });
            let fair = if strong { "strong" } else { "weak:transition" }.parse::<Fair>().expect("an option");
            for store in ["plain", "compact", "comback"] {
                let check = Check::loaded(&model).store(store.parse().expect("a store")).fair(fair);
                let report = ask(check, std::slice::from_ref(&asked)).run();
                same(&report.unwrap_or_else(|error| panic!("{text}: {error}")), std::slice::from_ref(&asked), &told);
            }
        }
    }
    assert!(compared.iter().all(|&count| count > 300), "{compared:?}");
    assert!(changed.iter().all(|&count| count > 10), "{changed:?} answers depend on fairness");
    std::fs::remove_dir_all(folder).expect("it is there");
}

/// A net with one path, which goes round: the atoms of a pattern are compiled one by one, and none may be taken for another.
#[test]
fn patterns_of_a_whole_model_have_the_values_of_its_only_path() {
    let folder = folder("patterns");
    let path = folder.join("cycle.net");
    std::fs::write(&path, "pl a (1)\npl never\ntr t0 a -> b\ntr t1 b -> c\ntr t2 c -> b\n").expect("a file");
    let model = load(&path.display().to_string(), None).expect("a net");
    let atoms = ["a = 1", "b = 1", "c = 1", "never = 1"];
    // After `a` come `b` and `c` for ever.
    let letters: [[bool; 4]; 3] = std::array::from_fn(|place| std::array::from_fn(|atom| atom == place));
    let mut asked: Vec<(bool, String, bool)> = Vec::new();
    for pattern in ["absence(P)", "existence(P)", "universality(P)", "precedence(S, P)", "response(P, S)"] {
        for scope in ["", " before R", " after Q", " between Q and R", " after Q until R"] {
            let text = format!("{pattern}{scope}");
            let letters_of_text: Vec<char> =
                ['P', 'S', 'Q', 'R'].into_iter().filter(|&one| text.contains(one)).collect();
            for choice in 0..4usize.pow(letters_of_text.len() as u32) {
                let chosen = |number: usize| atoms[choice / 4usize.pow(number as u32) % 4];
                let fill = |text: String, (number, one): (usize, &char)| text.replace(*one, chosen(number));
                let text = letters_of_text.iter().enumerate().fold(text.clone(), fill);
                let (pool, root, parts) = path_formula(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
                let holds = |part: u32, place: usize| {
                    let atom = atoms.iter().position(|atom| *atom == parts[part as usize]).expect("an atom");
                    letters[place][atom]
                };
                let expected = holds_on_lasso(&pool, root, 3, 1, &holds).expect("it has a value");
                asked.push((false, text, expected));
            }
        }
    }
    let values = asked.iter().filter(|one| one.2).count();
    assert!(asked.len() > 1000 && values > 100 && asked.len() - values > 100, "{} of {}", values, asked.len());
    let report = ask(Check::loaded(&model), &asked).run().expect("a run");
    same(&report, &asked, "the cycle");
    for one in asked.iter().step_by(7) {
        assert!(same_on_the_fly(Check::loaded(&model), one, "the cycle"), "{}", one.1);
    }
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn answers_come_with_paths_as_far_as_one_shows_them() {
    let folder = folder("paths");
    let path = folder.join("ring.net");
    // Goes round for ever, until it is left.
    std::fs::write(&path, "pl a (1)\ntr t0 a -> b\ntr t1 b -> a\ntr leave b -> c\n").expect("a file");
    let model = load(&path.display().to_string(), None).expect("a net");
    // The formula, the verdict, the steps of its path, and where that goes back to.
    type Row = (bool, &'static str, &'static str, Option<usize>, Option<usize>);
    let rows: [Row; 13] = [
        (false, "F c = 1", "violated", Some(2), Some(0)),
        (false, "G F a = 1", "violated", Some(2), None),
        (false, "F deadlock -> F c = 1", "holds", None, None),
        (false, "a = 1", "holds", None, None),
        (true, "EF c = 1", "holds", Some(2), None),
        (true, "EX EX c = 1", "holds", Some(2), None),
        (true, "EG c = 0", "holds", Some(2), Some(0)),
        (true, "AG EF initial", "violated", Some(2), None),
        (true, "AF c = 1", "violated", Some(2), Some(0)),
        (true, "EF (c = 1 and EX true)", "violated", None, None),
        (true, "AG (c = 1 -> AX false)", "holds", None, None),
        (true, "E (G F a = 1)", "holds", Some(2), Some(0)),
        (true, "A (G F b = 1 -> F c = 1)", "violated", Some(2), Some(0)),
    ];
    let texts: Vec<(bool, String, bool)> =
        rows.iter().map(|&(ctl, text, verdict, ..)| (ctl, text.into(), verdict == "holds")).collect();
    let report = ask(Check::loaded(&model), &texts).run().expect("a run");
    same(&report, &texts, "the ring");
    for (answer, (_, text, verdict, steps, back)) in report.answers.iter().zip(rows) {
        let story = answer.story.as_ref();
        let told = (answer.verdict.word(), story.map(|story| story.len()), story.and_then(|story| story.cycle()));
        assert_eq!(told, (verdict, steps, back), "{text}");
    }
    assert!(report.answers[9].message().is_some_and(|message| message.contains("no single path")));
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn a_limit_leaves_formulas_without_an_answer() {
    let model = load("../../models/philosophers-5.pnml", None).expect("a net");
    let limits = deltamark::Limits { states: Some(20), ..Default::default() };
    let check = Check::loaded(&model).ltl("G F deadlock").expect("a formula").deadlock_free().limits(limits);
    let report = check.run().expect("a run");
    assert_eq!(report.answers[0].verdict.word(), "unknown");
    assert_eq!(report.stopped_by, Some(deltamark::Stop::States));
}
