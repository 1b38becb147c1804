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
    /// A random formula of at most this height. `paths` is whether it may have path quantifiers.
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

    /// The states of a graph from which some fair path satisfies it, a path formula without quantifiers. `labels` has
    /// for each edge a bit for each group of actions that it is of. By guessing which groups the path neglects: under
    /// strong fairness it visits no state in which one of these is enabled; under weak fairness it visits for each of
    /// them a state in which it is disabled; and it takes edges of all others.
    pub fn on_fair_graph(&self, graph: &Explicit, labels: &[Vec<u64>], groups: usize, strong: bool) -> Vec<bool> {
        let guesses = Guesses::new(self, graph);
        let product = guesses.product(graph, labels);
        let enabled: Vec<u64> = labels.iter().map(|row| row.iter().fold(0, |all, label| all | label)).collect();
        let mut found = vec![false; graph.edges.len()];
        let all = reach_of(&product);
        for neglected in 0..1u64 << groups {
            let stays = |node: usize| !strong || enabled[node / guesses.count()] & neglected == 0;
            let kept: Vec<Vec<(usize, u64)>> = (0..product.len())
                .map(|node| product[node].iter().copied().filter(|edge| stays(node) && stays(edge.0)).collect())
                .collect();
            let reach = reach_of(&kept);
            let is_good = |home: usize| {
                let component: Vec<usize> =
                    (0..kept.len()).filter(|&other| reach[home][other] && reach[other][home]).collect();
                let inside = |node: &usize| reach[home][*node] && reach[*node][home];
                let edges = component.iter().flat_map(|&node| kept[node].iter().filter(|edge| inside(&edge.0)));
                let taken = edges.fold(0, |taken, edge| taken | edge.1);
                let disabled = component.iter().fold(0, |all, &node| all | !enabled[node / guesses.count()]);
                (0..groups).all(|group| {
                    let bit = 1 << group;
                    if neglected & bit == 0 { taken & bit != 0 } else { strong || disabled & bit != 0 }
                }) && guesses.fulfils(&component, graph)
            };
            let good: Vec<bool> = (0..kept.len()).map(is_good).collect();
            for (state, found) in found.iter_mut().enumerate() {
                *found |= guesses.starts(state, graph, &all, &good);
            }
        }
        found
    }
}

/// What each node leads to in one step or more.
fn reach_of(edges: &[Vec<(usize, u64)>]) -> Vec<Vec<bool>> {
    let plain: Vec<Vec<usize>> = edges.iter().map(|row| row.iter().map(|edge| edge.0).collect()).collect();
    (0..plain.len()).map(|from| reached(&plain, from)).collect()
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

    /// How many guesses there are.
    fn count(&self) -> usize {
        1 << self.temporal.len()
    }

    /// The nodes, pairs `state * count + guess`, with their edges and the labels of these.
    fn product(&self, graph: &Explicit, labels: &[Vec<u64>]) -> Vec<Vec<(usize, u64)>> {
        let guesses = self.count();
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
        let mut edges = vec![Vec::new(); graph.edges.len() * guesses];
        for (state, (row, labels)) in graph.edges.iter().zip(labels).enumerate() {
            for guess in 0..guesses {
                for (&next, &label) in row.iter().zip(labels) {
                    let agreeing = (0..guesses).filter(|&then| agrees(state, guess, next, then));
                    edges[state * guesses + guess].extend(agreeing.map(|then| (next * guesses + then, label)));
                }
            }
        }
        edges
    }

    /// Whether a component fulfils every until that is guessed, and refutes every release that is not. One without
    /// nodes is none.
    fn fulfils(&self, component: &[usize], graph: &Explicit) -> bool {
        let guesses = self.count();
        let value = |formula: &Dull, at: usize| {
            let state = at / guesses;
            self.value(formula, state, graph.letters[state], at % guesses)
        };
        !component.is_empty()
            && self.temporal.iter().all(|&formula| match formula {
                Dull::Until(_, b) => component.iter().any(|&at| !value(formula, at) || value(b, at)),
                Dull::Release(_, b) => component.iter().any(|&at| value(formula, at) || !value(b, at)),
                _ => true,
            })
    }

    /// Whether a node of this state that guesses the whole formula true is good or leads to a good one.
    fn starts(&self, state: usize, graph: &Explicit, reach: &[Vec<bool>], good: &[bool]) -> bool {
        (0..self.count()).any(|guess| {
            let at = state * self.count() + guess;
            self.value(self.whole, state, graph.letters[state], guess)
                && (0..good.len()).any(|end| good[end] && (end == at || reach[at][end]))
        })
    }

    fn some_path(&self, graph: &Explicit) -> Vec<bool> {
        let labels: Vec<Vec<u64>> = graph.edges.iter().map(|row| vec![0; row.len()]).collect();
        let reach = reach_of(&self.product(graph, &labels));
        let fulfils = |home: usize| {
            let component: Vec<usize> =
                (0..reach.len()).filter(|&other| reach[home][other] && reach[other][home]).collect();
            self.fulfils(&component, graph)
        };
        let good: Vec<bool> = (0..reach.len()).map(fulfils).collect();
        (0..graph.edges.len()).map(|state| self.starts(state, graph, &reach, &good)).collect()
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
