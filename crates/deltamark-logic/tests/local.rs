//! Formulas of CTL evaluated locally, against their sets of states on the whole graph.

use deltamark_core::{BitSet, Control, Stop};
use deltamark_logic::kripke::{Edges, Evaluator, Kripke, NumberedPath};
use deltamark_logic::local::{Local, OnDemand, are_local};
use deltamark_logic::temporal::{END, FormulaId, INITIAL, Pool};
use deltamark_testkit::random::Rng;
use std::collections::HashSet;

const ATOMS: usize = 3;

/// A graph that notes which of its states were expanded.
struct Space<'k> {
    kripke: &'k Kripke,
    expanded: HashSet<u32>,
}

impl OnDemand for Space<'_> {
    fn successor(&mut self, state: u32, index: usize) -> Result<Option<u32>, Stop> {
        self.expanded.insert(state);
        Ok(self.kripke.edges.of(state).get(index).copied())
    }

    fn atom(&mut self, atom: u32, state: u32) -> Result<bool, Stop> {
        Ok(self.kripke.atoms[atom as usize].contains(state.into()))
    }

    fn is_initial(&self, state: u32) -> bool {
        self.kripke.initial.contains(&state)
    }

    fn states(&self) -> u32 {
        self.kripke.states()
    }
}

/// A graph of these edges; an atom is true in a random half of the states, in most or in few.
fn kripke(rows: &[Vec<u32>], random: &mut Rng) -> Kripke {
    let control = Control::new();
    let mut edges = Edges::new(&control.budget).expect("memory");
    let list = rows.iter().enumerate().flat_map(|(from, row)| row.iter().map(move |&to| (from, to)));
    edges.append(rows.len(), list).expect("memory");
    let atoms = (0..ATOMS).map(|_| {
        let (of, among) = (1 + random.below(9), 10);
        let mut set = BitSet::new(rows.len() as u64, &control.budget).expect("memory");
        (0..rows.len()).filter(|_| random.below(among) < of).for_each(|state| _ = set.insert(state as u64));
        set
    });
    Kripke { atoms: atoms.collect(), edges, initial: vec![0] }
}

/// Some of it goes round; some states have no edges.
fn graph(random: &mut Rng) -> Vec<Vec<u32>> {
    let count = 1 + random.below(60);
    let far = 1 + random.below(12);
    let row = |state: usize, random: &mut Rng| {
        let degree = random.below(4);
        (0..degree).map(|_| ((state + random.below(far)) % count) as u32).collect()
    };
    (0..count).map(|state| row(state, random)).collect()
}

/// A state formula of CTL.
fn formula(random: &mut Rng, height: usize, pool: &mut Pool) -> FormulaId {
    if height == 0 {
        let atom = match random.below(8) {
            0 => END,
            1 => INITIAL,
            number => (number % ATOMS) as u32,
        };
        let atom = pool.atom(atom);
        return if random.below(2) == 0 { atom } else { pool.not(atom) };
    }
    let below = random.below(height);
    let (one, two) = (formula(random, height - 1, pool), formula(random, below, pool));
    let path = match random.below(8) {
        0 => return pool.and([one, two]),
        1 => return pool.or([one, two]),
        2 => pool.next(one),
        3 => pool.finally(one),
        4 => pool.always(one),
        5 => pool.until(one, two),
        6 => pool.release(one, two),
        _ => {
            // What the laws take apart.
            let until = pool.until(one, two);
            let next = pool.next(until);
            pool.or([next, one])
        }
    };
    if random.below(2) == 0 { pool.exists(path) } else { pool.all(path) }
}

#[test]
fn local_values_are_those_of_sets() {
    let (mut compared, mut shown) = (0, [0; 2]);
    for seed in 0..6000 {
        let mut random = Rng::new(seed);
        let rows = graph(&mut random);
        let kripke = kripke(&rows, &mut random);
        let mut pool = Pool::new();
        let height = 1 + random.below(4);
        let root = formula(&mut random, height, &mut pool);
        if !are_local(&pool, std::iter::once(root)) {
            continue;
        }
        let control = Control::new();
        let mut evaluator = Evaluator::new(&kripke, pool.clone(), &control);
        let expected = evaluator.states(root).expect("no limit");
        let mut space = Space { kripke: &kripke, expanded: HashSet::new() };
        let mut local = Local::new(&pool, root, &mut space, &control).expect("memory").expect("it is local");
        let mut states: Vec<u32> = (0..kripke.states()).collect();
        random.shuffle(&mut states);
        for state in states {
            let found = local.holds(state).expect("no limit");
            assert_eq!(found, expected.contains(state), "state {state} of seed {seed}");
            compared += 1;
            if let Some(path) = local.witness(state, found).expect("no limit") {
                assert!(is_path(&kripke, state, &path), "{path:?} of seed {seed}");
                shown[usize::from(path.back.is_some())] += 1;
            }
        }
    }
    assert!(compared > 50_000 && shown.iter().all(|&count| count > 1000), "{compared} {shown:?}");
}

fn is_path(kripke: &Kripke, first: u32, path: &NumberedPath) -> bool {
    let last = path.states[path.states.len() - 1];
    path.states[0] == first
        && path.states.windows(2).all(|pair| kripke.edges.of(pair[0]).contains(&pair[1]))
        && path.back.is_none_or(|back| kripke.edges.of(last).contains(&path.states[back]))
}

#[test]
fn what_is_near_is_found_without_the_rest() {
    // A long chain; the atom is true in every third state.
    let count = 10_000;
    let rows: Vec<Vec<u32>> =
        (0..count).map(|state| if state + 1 < count { vec![state + 1] } else { vec![] }).collect();
    let mut kripke = kripke(&rows, &mut Rng::new(1));
    let mut set = BitSet::new(count.into(), &Control::new().budget).expect("memory");
    (0..count).filter(|state| state % 3 == 2).for_each(|state| _ = set.insert(state.into()));
    kripke.atoms[0] = set;
    let mut pool = Pool::new();
    let atom = pool.atom(0);
    let some_day = pool.finally(atom);
    let rows = [(pool.exists(some_day), true, 2), (pool.all(some_day), true, 2)];
    let always = pool.always(atom);
    let rows = rows.into_iter().chain([(pool.all(always), false, 0), (pool.exists(always), false, 0)]);
    for (root, expected, expanded) in rows {
        let mut space = Space { kripke: &kripke, expanded: HashSet::new() };
        let control = Control::new();
        let mut local = Local::new(&pool, root, &mut space, &control).expect("memory").expect("it is local");
        assert_eq!(local.holds(0), Ok(expected));
        assert_eq!(space.expanded.len(), expanded);
    }
}

#[test]
fn what_needs_an_automaton_is_not_local() {
    let mut pool = Pool::new();
    let (one, two) = (pool.atom(0), pool.atom(1));
    let (some_day, other_day) = (pool.finally(one), pool.finally(two));
    let again = pool.always(some_day);
    let both = pool.and([some_day, other_day]);
    for path in [again, both] {
        let root = pool.exists(path);
        assert!(!are_local(&pool, std::iter::once(root)));
    }
    let nested = pool.exists(some_day);
    let always = pool.always(nested);
    let root = pool.all(always);
    assert!(are_local(&pool, std::iter::once(root)));
}
