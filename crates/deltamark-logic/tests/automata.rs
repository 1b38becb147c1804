//! Automata against the formulas they come from: on random words, and in size.

use deltamark_core::Control;
use deltamark_logic::automaton::{Automaton, Shape};
use deltamark_logic::temporal::{FormulaId, Pool, holds_on_lasso, path_formula};
use deltamark_testkit::Corpus;
use deltamark_testkit::random::Rng;
use deltamark_testkit::temporal::Dull;

fn lowered(formula: &Dull, pool: &mut Pool) -> FormulaId {
    match formula {
        Dull::True => pool.truth(true),
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
        Dull::Exists(_) => panic!("a word has one path"),
    }
}

fn compare(seeds: std::ops::Range<u64>, words: usize) {
    const ATOMS: usize = 3;
    for seed in seeds {
        let mut random = Rng::new(seed);
        let height = 2 + random.below(4);
        let formula = Dull::random(&mut random, height, ATOMS, false);
        let mut pool = Pool::new();
        let id = lowered(&formula, &mut pool);
        let automaton = Automaton::new(&mut pool, id, ATOMS as u32, &Control::new()).expect("an automaton");
        for _ in 0..words {
            let length = 1 + random.below(6);
            let letters: Vec<u64> = (0..length).map(|_| random.number() & 7).collect();
            let back = random.below(length);
            let expected = formula.on_lasso(&letters, back)[0];
            let told = format!("seed {seed}, {formula:?} on {letters:?} back to {back}");
            let by_pool = holds_on_lasso(&pool, id, length, back, &|atom, at| letters[at] >> atom & 1 == 1);
            assert_eq!(by_pool, Some(expected), "simplified: {told}");
            assert_eq!(automaton.accepts_lasso(&letters, back), expected, "automaton: {told}");
        }
    }
}

#[test]
fn automata_accept_the_words_on_which_their_formulas_are_true() {
    compare(0..1500, 12);
}

#[test]
#[ignore = "a million words take a minute in a release build"]
fn automata_accept_the_words_on_which_their_formulas_are_true_a_million_times() {
    compare(0..50_000, 20);
}

fn automaton(text: &str) -> (Automaton, Vec<String>) {
    let (mut pool, formula, atoms) = path_formula(text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
    let automaton = Automaton::new(&mut pool, formula, atoms.len() as u32, &Control::new()).expect("an automaton");
    (automaton, atoms)
}

#[test]
fn shapes_are_recognised() {
    let shapes = [
        ("G p", Shape::Safety, 1),
        ("p U q", Shape::Terminal, 2),
        ("F p", Shape::Terminal, 2),
        ("F G p", Shape::Weak, 2),
        ("G F p", Shape::General, 1),
        ("G (p -> F q)", Shape::General, 2),
        ("p and not p", Shape::Empty, 0),
        ("G F p and G F q and G F r", Shape::General, 1),
    ];
    for (text, shape, states) in shapes {
        let (automaton, _) = automaton(text);
        assert_eq!((automaton.shape(), automaton.states.len()), (shape, states), "{text}: {automaton:?}");
    }
}

#[test]
fn automata_are_drawn() {
    let (automaton, atoms) = automaton("F (p >= 1)");
    let drawing = "─▶ (0)\n     ├─ true ─▶ (0)\n     └─ p >= 1 ─▶ (1)\n   (1)   accepts every word from here\n     └─ true ─▶ (1)   accepting: 0\n";
    assert_eq!(automaton.drawing(&atoms), drawing);
    let hoa = automaton.to_hoa("F (p >= 1)", &atoms);
    for part in ["HOA: v1", "AP: 1 \"p >= 1\"", "Acceptance: 1 Inf(0)", "[t] 1 {0}", "--END--"] {
        assert!(hoa.contains(part), "{hoa}");
    }
}

/// The sizes that Spot 2.9.4 publishes, as data from outside.
#[test]
fn pattern_formulas_take_about_as_many_states_as_with_spot() {
    let Some(corpus) = Corpus::find("pattern formulas") else { return };
    let file = corpus.file("logic/ltl-formulas", "patterns-spot-2.9.4.tsv");
    let Ok(text) = std::fs::read_to_string(&file) else {
        deltamark_testkit::corpus::skipped("pattern formulas", "no table of formulas");
        return;
    };
    let (mut ours, mut spots, mut count) = (0, 0, 0);
    let mut larger = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let expected: usize = cells[4].parse().expect("a number");
        let (automaton, _) = automaton(cells[3]);
        // Spot counts the one state of an automaton that accepts nothing.
        let states = automaton.states.len().max(1);
        if states > expected {
            larger.push(format!("{} {}: {states} for {expected}: {}", cells[0], cells[1], cells[3]));
        }
        ours += states;
        spots += expected;
        count += 1;
    }
    println!("{count} formulas: {ours} states, Spot {spots}\n{}", larger.join("\n"));
    assert_eq!((count, spots), (320, 1128));
    assert!(ours * 100 <= spots * 105, "{ours} states for {spots}:\n{}", larger.join("\n"));
}
