//! An oracle for temporal logic: formulas as trees, and their values on words and on small explicit graphs.
//!
//! In: a [`Dull`] formula; a lasso of letters, or a graph with letters at its states. Out: its value, by definition. What
//! stays true: nothing is simplified and there is no automaton. A quantified path formula is decided as by
//! O. Lichtenstein and A. Pnueli (*Checking that finite state concurrent programs satisfy their linear specification*,
//! POPL 1985): nodes are pairs of a state and a guess of the values of all temporal subformulas; edges are those that
//! agree with the one-step laws; some path satisfies the formula if a component in which every guessed until is
//! fulfilled can be reached from a node that guesses the formula true.

use crate::random::Rng;

/// A formula of CTL*, of which LTL is the part without [`Dull::Exists`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dull {
    /// An atom.
    Atom(u32),
    /// `true`.
    True,
    /// Negation.
    Not(Box<Dull>),
    /// Conjunction.
    And(Box<Dull>, Box<Dull>),
    /// Disjunction.
    Or(Box<Dull>, Box<Dull>),
    /// `X a`.
    Next(Box<Dull>),
    /// `a U b`.
    Until(Box<Dull>, Box<Dull>),
    /// `a R b`.
    Release(Box<Dull>, Box<Dull>),
    /// Some path.
    Exists(Box<Dull>),
}

/// An explicit graph; every state has a successor.
#[derive(Clone, Debug)]
pub struct Explicit {
    /// The successors of each state.
    pub edges: Vec<Vec<usize>>,
    /// A bit for each atom that is true in a state.
    pub letters: Vec<u64>,
}

impl Dull {
    /// A random formula of at most this height. `paths` says whether it may have path quantifiers.
    pub fn random(random: &mut Rng, height: usize, atoms: usize, paths: bool) -> Dull {
        if height == 0 || random.below(8) == 0 {
            return if random.below(12) == 0 { Dull::True } else { Dull::Atom(random.below(atoms) as u32) };
        }
        let inner = |random: &mut Rng| Box::new(Dull::random(random, height - 1, atoms, paths));
        match random.below(if paths { 12 } else { 10 }) {
            0 | 1 => Dull::Not(inner(random)),
            2 => Dull::And(inner(random), inner(random)),
            3 => Dull::Or(inner(random), inner(random)),
            4 => Dull::Next(inner(random)),
            5 => Dull::Until(inner(random), inner(random)),
            6 => Dull::Release(inner(random), inner(random)),
            7 => Dull::Until(Box::new(Dull::True), inner(random)),
            8 | 9 => Dull::Release(Box::new(Dull::Not(Box::new(Dull::True))), inner(random)),
            _ => Dull::Exists(inner(random)),
        }
    }

    /// Its value at each position of a word after whose last letter that at `back` follows. Without path quantifiers.
    pub fn on_lasso(&self, letters: &[u64], back: usize) -> Vec<bool> {
        let count = letters.len();
        let follow = |position: usize| if position + 1 < count { position + 1 } else { back };
        // Enough steps to have seen every position from every other.
        let ahead = |position: usize| {
            let mut list = vec![position];
            (0..2 * count).for_each(|_| list.push(follow(list[list.len() - 1])));
            list
        };
        match self {
            Dull::True => vec![true; count],
            Dull::Atom(atom) => letters.iter().map(|letter| letter >> atom & 1 == 1).collect(),
            Dull::Not(a) => a.on_lasso(letters, back).into_iter().map(|value| !value).collect(),
            Dull::And(a, b) | Dull::Or(a, b) => {
                let both = matches!(self, Dull::And(..));
                let (a, b) = (a.on_lasso(letters, back), b.on_lasso(letters, back));
                a.into_iter().zip(b).map(|(a, b)| if both { a && b } else { a || b }).collect()
            }
            Dull::Next(a) => {
                let a = a.on_lasso(letters, back);
                (0..count).map(|position| a[follow(position)]).collect()
            }
            Dull::Until(a, b) => {
                let (a, b) = (a.on_lasso(letters, back), b.on_lasso(letters, back));
                let value = |position: usize| {
                    let path = ahead(position);
                    (0..path.len()).any(|end| b[path[end]] && path[..end].iter().all(|&before| a[before]))
                };
                (0..count).map(value).collect()
            }
            Dull::Release(a, b) => {
                let (a, b) = (a.on_lasso(letters, back), b.on_lasso(letters, back));
                let value = |position: usize| {
                    let path = ahead(position);
                    (0..path.len()).all(|end| b[path[end]] || path[..end].iter().any(|&before| a[before]))
                };
                (0..count).map(value).collect()
            }
            Dull::Exists(_) => panic!("a word has one path"),
        }
    }

    /// Whether it has an operator that looks at paths, outside of quantifiers.
    pub fn is_path(&self) -> bool {
        match self {
            Dull::True | Dull::Atom(_) | Dull::Exists(_) => false,
            Dull::Not(a) => a.is_path(),
            Dull::And(a, b) | Dull::Or(a, b) => a.is_path() || b.is_path(),
            Dull::Next(_) | Dull::Until(..) | Dull::Release(..) => true,
        }
    }

    /// The states of a graph from which some path satisfies it.
    pub fn on_graph(&self, graph: &Explicit) -> Vec<bool> {
        match self {
            Dull::True => vec![true; graph.edges.len()],
            Dull::Atom(atom) => graph.letters.iter().map(|letter| letter >> atom & 1 == 1).collect(),
            Dull::Exists(a) => a.on_graph(graph),
            Dull::Not(a) if !a.is_path() => a.on_graph(graph).into_iter().map(|value| !value).collect(),
            Dull::And(a, b) | Dull::Or(a, b) if !self.is_path() => {
                let both = matches!(self, Dull::And(..));
                let (a, b) = (a.on_graph(graph), b.on_graph(graph));
                a.into_iter().zip(b).map(|(a, b)| if both { a && b } else { a || b }).collect()
            }
            _ => Guesses::new(self, graph).some_path(graph),
        }
    }
}

/// What Lichtenstein and Pnueli's construction knows of a path formula.
struct Guesses<'f> {
    whole: &'f Dull,
    /// The temporal subformulas, each a bit of a guess.
    temporal: Vec<&'f Dull>,
    /// The values of quantified subformulas.
    quantified: Vec<(&'f Dull, Vec<bool>)>,
}

impl<'f> Guesses<'f> {
    fn new(whole: &'f Dull, graph: &Explicit) -> Self {
        let mut guesses = Guesses { whole, temporal: Vec::new(), quantified: Vec::new() };
        guesses.collect(whole, graph);
        guesses
    }

    fn collect(&mut self, formula: &'f Dull, graph: &Explicit) {
        match formula {
            Dull::True | Dull::Atom(_) => {}
            Dull::Not(a) => self.collect(a, graph),
            Dull::And(a, b) | Dull::Or(a, b) => {
                self.collect(a, graph);
                self.collect(b, graph);
            }
            Dull::Next(a) => {
                self.temporal.push(formula);
                self.collect(a, graph);
            }
            Dull::Until(a, b) | Dull::Release(a, b) => {
                self.temporal.push(formula);
                self.collect(a, graph);
                self.collect(b, graph);
            }
            Dull::Exists(a) => self.quantified.push((formula, a.on_graph(graph))),
        }
    }

    /// The value of a subformula in a state under a guess.
    fn value(&self, formula: &Dull, state: usize, letter: u64, guess: usize) -> bool {
        let of = |formula: &Dull| self.value(formula, state, letter, guess);
        match formula {
            Dull::True => true,
            Dull::Atom(atom) => letter >> atom & 1 == 1,
            Dull::Not(a) => !of(a),
            Dull::And(a, b) => of(a) && of(b),
            Dull::Or(a, b) => of(a) || of(b),
            Dull::Next(_) | Dull::Until(..) | Dull::Release(..) => {
                let place = self.temporal.iter().position(|&one| one == formula).expect("it was collected");
                guess >> place & 1 == 1
            }
            Dull::Exists(_) => self.quantified.iter().any(|(one, values)| *one == formula && values[state]),
        }
    }

    fn some_path(&self, graph: &Explicit) -> Vec<bool> {
        let (states, guesses) = (graph.edges.len(), 1usize << self.temporal.len());
        let node = |state: usize, guess: usize| state * guesses + guess;
        let value =
            |formula: &Dull, state: usize, guess: usize| self.value(formula, state, graph.letters[state], guess);
        let agrees = |state: usize, guess: usize, next: usize, then: usize| {
            self.temporal.iter().all(|&formula| {
                let now = value(formula, state, guess);
                now == match formula {
                    Dull::Next(a) => value(a, next, then),
                    Dull::Until(a, b) => {
                        value(b, state, guess) || (value(a, state, guess) && value(formula, next, then))
                    }
                    Dull::Release(a, b) => {
                        value(b, state, guess) && (value(a, state, guess) || value(formula, next, then))
                    }
                    _ => unreachable!("only temporal formulas are guessed"),
                }
            })
        };
        let mut edges = vec![Vec::new(); states * guesses];
        for state in 0..states {
            for guess in 0..guesses {
                for &next in &graph.edges[state] {
                    let agreeing = (0..guesses).filter(|&then| agrees(state, guess, next, then));
                    edges[node(state, guess)].extend(agreeing.map(|then| node(next, then)));
                }
            }
        }
        let reach: Vec<Vec<bool>> = (0..edges.len()).map(|from| reached(&edges, from)).collect();
        // A node on a cycle whose component fulfils every until that is guessed, and refutes every release that is not.
        let fulfils = |home: usize| {
            let component: Vec<usize> =
                (0..edges.len()).filter(|&other| reach[home][other] && reach[other][home]).collect();
            !component.is_empty()
                && self.temporal.iter().all(|&formula| match formula {
                    Dull::Until(_, b) => component.iter().any(|&at| {
                        let (state, guess) = (at / guesses, at % guesses);
                        !value(formula, state, guess) || value(b, state, guess)
                    }),
                    Dull::Release(_, b) => component.iter().any(|&at| {
                        let (state, guess) = (at / guesses, at % guesses);
                        value(formula, state, guess) || !value(b, state, guess)
                    }),
                    _ => true,
                })
        };
        let good: Vec<bool> = (0..edges.len()).map(fulfils).collect();
        let starts = |state: usize| {
            (0..guesses).any(|guess| {
                let at = node(state, guess);
                value(self.whole, state, guess)
                    && (0..edges.len()).any(|end| good[end] && (end == at || reach[at][end]))
            })
        };
        (0..states).map(starts).collect()
    }
}

/// What one step or more lead to.
fn reached(edges: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut waiting = edges[from].clone();
    while let Some(node) = waiting.pop() {
        if !std::mem::replace(&mut seen[node], true) {
            waiting.extend(&edges[node]);
        }
    }
    seen
}
