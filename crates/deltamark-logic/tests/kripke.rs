//! Formulas answered on graphs, against an evaluation by definition; and the paths that show the answers.

use deltamark_core::{BitSet, Control};
use deltamark_logic::kripke::{Edges, Evaluator, Kripke, NumberedPath, StateSet};
use deltamark_logic::temporal::{END, FormulaId, Pool, holds_on_lasso};
use deltamark_testkit::random::Rng;
use deltamark_testkit::temporal::{Dull, Explicit};

/// The atom that is true where no edge begins, for the oracle.
const DEAD: u32 = 3;
const ATOMS: usize = 3;

fn lowered(formula: &Dull, pool: &mut Pool) -> FormulaId {
    match formula {
        Dull::True => pool.truth(true),
        Dull::Atom(DEAD) => pool.atom(END),
        Dull::Atom(atom) => pool.atom(*atom),
        Dull::Not(a) => {
            let a = lowered(a, pool);
            pool.not(a)
        }
        Dull::Next(a) => {
            let a = lowered(a, pool);
            pool.next(a)
        }
        Dull::And(a, b) | Dull::Or(a, b) | Dull::Until(a, b) | Dull::Release(a, b) => {
            let (a, b) = (lowered(a, pool), lowered(b, pool));
            match formula {
                Dull::And(..) => pool.and([a, b]),
                Dull::Or(..) => pool.or([a, b]),
                Dull::Until(..) => pool.until(a, b),
                _ => pool.release(a, b),
            }
        }
        Dull::Exists(a) => {
            let a = lowered(a, pool);
            pool.exists(a)
        }
    }
}

/// A random graph of which all states are reachable from the first; some have no edges.
fn graph(random: &mut Rng) -> Vec<Vec<u32>> {
    let count = 1 + random.below(7);
    let mut edges: Vec<Vec<u32>> = vec![Vec::new(); count];
    for state in 1..count {
        edges[random.below(state)].push(state as u32);
    }
    for _ in 0..random.below(2 * count) {
        let (from, to) = (random.below(count), random.below(count));
        // Most ends of the tree stay ends.
        if !edges[from].is_empty() || random.below(3) == 0 {
            edges[from].push(to as u32);
        }
    }
    edges
}

struct Case {
    kripke: Kripke,
    explicit: Explicit,
}

fn case(random: &mut Rng) -> Case {
    let rows = graph(random);
    let control = Control::new();
    let mut edges = Edges::new(&control.budget).expect("memory");
    edges
        .append(rows.len(), rows.iter().enumerate().flat_map(|(from, row)| row.iter().map(move |&to| (from, to))))
        .expect("memory");
    let letters: Vec<u64> = rows.iter().map(|row| (random.number() & 7) | u64::from(row.is_empty()) << DEAD).collect();
    let atoms = (0..ATOMS).map(|atom| {
        let mut set = BitSet::new(rows.len() as u64, &control.budget).expect("memory");
        (0..rows.len()).filter(|&state| letters[state] >> atom & 1 == 1).for_each(|state| _ = set.insert(state as u64));
        set
    });
    let kripke = Kripke { edges, initial: vec![0], atoms: atoms.collect() };
    let repeated = |(state, row): (usize, &Vec<u32>)| match row.is_empty() {
        true => vec![state],
        false => row.iter().map(|&to| to as usize).collect(),
    };
    Case { kripke, explicit: Explicit { edges: rows.iter().enumerate().map(repeated).collect(), letters } }
}

/// Whether a path follows the edges; a lasso closes, and another path ends in a state without edges.
fn is_path(kripke: &Kripke, path: &NumberedPath) -> bool {
    let last = path.states[path.states.len() - 1];
    kripke.initial.contains(&path.states[0])
        && path.states.windows(2).all(|pair| kripke.edges.of(pair[0]).contains(&pair[1]))
        && path.back.is_none_or(|back| kripke.edges.of(last).contains(&path.states[back]))
}

fn compare(seeds: std::ops::Range<u64>, most: usize) {
    for seed in seeds {
        let mut random = Rng::new(seed);
        let Case { kripke, explicit } = case(&mut random);
        let height = 1 + random.below(4);
        let formula = Dull::random(&mut random, height, ATOMS + 1, seed % 2 == 0);
        if temporal(&formula) > most {
            continue;
        }
        let path = Dull::Exists(Box::new(formula.clone()));
        let expected = path.on_graph(&explicit);
        let control = Control::new();
        let mut pool = Pool::new();
        let root = lowered(&path, &mut pool);
        let told = format!("seed {seed}: {path:?} on {explicit:?}");

        let mut evaluator = Evaluator::new(&kripke, pool.clone(), &control);
        let states: StateSet = evaluator.states(root).expect("no limit");
        let found: Vec<bool> = (0..kripke.states()).map(|state| states.contains(state)).collect();
        assert_eq!(found, expected, "sets, {told}");

        let mut evaluator = Evaluator::new(&kripke, pool.clone(), &control);
        assert_eq!(evaluator.holds(root).expect("no limit"), expected[0], "initial, {told}");
        let witness = evaluator.witness(root, expected[0]).expect("no limit");
        assert!(witness.iter().all(|path| is_path(&kripke, path)), "witness {witness:?}, {told}");

        // As a formula of LTL: its negation is violated by a path that satisfies it.
        if !has_quantifier(&formula) {
            let plain = lowered(&formula, &mut pool);
            let mut evaluator = Evaluator::new(&kripke, pool.clone(), &control);
            let lasso = evaluator.lasso(plain).expect("no limit");
            assert_eq!(lasso.is_some(), expected[0], "lasso, {told}");
            if let Some(lasso) = lasso {
                assert!(is_path(&kripke, &lasso), "lasso {lasso:?}, {told}");
                let last = lasso.states.len() - 1;
                assert_eq!(lasso.back.is_none(), kripke.edges.of(lasso.states[last]).is_empty(), "{lasso:?}, {told}");
                let holds = |atom: u32, at: usize| {
                    let atom = if atom == END { DEAD } else { atom };
                    explicit.letters[lasso.states[at] as usize] >> atom & 1 == 1
                };
                let back = lasso.back.unwrap_or(last);
                let satisfied = holds_on_lasso(&pool, plain, lasso.states.len(), back, &holds);
                assert_eq!(satisfied, Some(true), "lasso {lasso:?}, {told}");
            }
        }
    }
}

/// How many temporal operators a formula has: the oracle's work grows exponentially with them.
fn temporal(formula: &Dull) -> usize {
    match formula {
        Dull::True | Dull::Atom(_) => 0,
        Dull::Not(a) | Dull::Exists(a) => temporal(a),
        Dull::And(a, b) | Dull::Or(a, b) => temporal(a) + temporal(b),
        Dull::Next(a) => 1 + temporal(a),
        Dull::Until(a, b) | Dull::Release(a, b) => 1 + temporal(a) + temporal(b),
    }
}

fn has_quantifier(formula: &Dull) -> bool {
    match formula {
        Dull::True | Dull::Atom(_) => false,
        Dull::Exists(_) => true,
        Dull::Not(a) | Dull::Next(a) => has_quantifier(a),
        Dull::And(a, b) | Dull::Or(a, b) | Dull::Until(a, b) | Dull::Release(a, b) => {
            has_quantifier(a) || has_quantifier(b)
        }
    }
}

#[test]
fn answers_on_graphs_are_those_by_definition() {
    compare(0..4000, 3);
}

#[test]
#[ignore = "takes a minute in a release build"]
fn answers_on_graphs_are_those_by_definition_many_times() {
    compare(4000..200_000, 4);
}
