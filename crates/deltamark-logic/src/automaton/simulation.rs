//! Direct and reverse simulation.
//!
//! In: an automaton. Out: an equivalent one in which no two states simulate each other, and no transition is covered by
//! a better one of the same source.
//!
//! `s` is *directly simulated* by `t` if each transition of `s` is answered by one of `t` that can be taken wherever
//! the first can, is in all of its acceptance sets, and leads to a state that simulates its target. `t` then accepts
//! what `s` accepts: it imitates every run step by step, and takes every set whenever the run does. States that
//! simulate each other are merged; of two transitions of one state the answered one is dropped (K. Etessami,
//! T. Wilke, R. Schuller, *Fair Simulation Relations, Parity Games, and State Space Reduction for Büchi Automata*,
//! SIAM J. Comput. 2005; R. Mayr, L. Clemente, *Advanced Automata Minimization*, POPL 2013, for dropping).
//!
//! *Reverse* simulation is the same for the transitions that lead to a state, where an initial state is simulated by the
//! initial state only. Merging states that reverse-simulate each other keeps the language: a run of the merged automaton
//! is, prefix by prefix, one of the original that is in as many sets (Kőnig's lemma gives an infinite one).

use super::{Automaton, Transition};
use deltamark_core::{Control, Stop};

/// Automata with more states are left as they are: the relation has a bit for each pair.
const MOST: usize = 2000;

/// Whether `s` is simulated by `t`, for each pair.
struct Relation {
    count: usize,
    holds: Vec<bool>,
}

impl Relation {
    fn get(&self, s: u32, t: u32) -> bool {
        self.holds[s as usize * self.count + t as usize]
    }
}

/// The largest relation such that each step of `s` is answered by one of `t`.
fn simulation(
    rows: &[Vec<Transition>],
    related: impl Fn(u32, u32) -> bool,
    control: &Control,
) -> Result<Relation, Stop> {
    let count = rows.len();
    let pairs = || (0..count as u32).flat_map(|s| (0..count as u32).map(move |t| (s, t)));
    let mut relation = Relation { count, holds: pairs().map(|(s, t)| related(s, t)).collect() };
    loop {
        let mut changed = false;
        for (s, t) in pairs() {
            if t == 0 {
                control.ask()?;
            }
            if s == t || !relation.get(s, t) {
                continue;
            }
            let answered = |one: &Transition| rows[t as usize].iter().any(|other| is_better(&relation, other, one));
            if !rows[s as usize].iter().all(answered) {
                relation.holds[s as usize * count + t as usize] = false;
                changed = true;
            }
        }
        if !changed {
            return Ok(relation);
        }
    }
}

/// Whether `other` answers `one`.
fn is_better(relation: &Relation, other: &Transition, one: &Transition) -> bool {
    other.covers(one) && one.accepting & !other.accepting == 0 && relation.get(one.to, other.to)
}

impl Automaton {
    /// Merges states that simulate each other, directly and then in reverse, and drops transitions that are answered by
    /// others.
    pub(super) fn merge_similar(&mut self, control: &Control) -> Result<(), Stop> {
        if self.is_empty() || self.states.len() > MOST || self.states.iter().map(Vec::len).sum::<usize>() > 10 * MOST {
            return Ok(());
        }
        let relation = simulation(&self.states, |_, _| true, control)?;
        self.merge(&relation);
        // The states have new numbers, and simulation is an order now.
        let relation = simulation(&self.states, |_, _| true, control)?;
        for row in &mut self.states {
            row.sort_unstable();
            row.dedup();
            // Of two that answer each other the first is kept.
            let answered = |place: usize| {
                row.iter().enumerate().any(|(index, other)| {
                    index != place
                        && is_better(&relation, other, &row[place])
                        && (index < place || !is_better(&relation, &row[place], other))
                })
            };
            let kept = (0..row.len()).filter(|&place| !answered(place)).map(|place| row[place]).collect();
            *row = kept;
        }
        let relation = simulation(&self.reversed(), |s, t| s != self.initial || t == self.initial, control)?;
        self.merge(&relation);
        Ok(())
    }

    /// The transitions that lead to each state, with their sources as targets.
    fn reversed(&self) -> Vec<Vec<Transition>> {
        let mut rows = vec![Vec::new(); self.states.len()];
        for (state, row) in self.states.iter().enumerate() {
            for one in row {
                rows[one.to as usize].push(Transition { to: state as u32, ..*one });
            }
        }
        rows
    }

    /// Merges states that are related in both directions. The transitions of all of them are kept: those that are
    /// answered by others are dropped later.
    fn merge(&mut self, relation: &Relation) {
        let count = self.states.len() as u32;
        let first = |s: u32| (0..count).find(|&t| relation.get(s, t) && relation.get(t, s)).unwrap_or(s);
        let firsts: Vec<u32> = (0..count).map(first).collect();
        let mut numbers = vec![0u32; count as usize];
        let mut states: Vec<Vec<Transition>> = Vec::new();
        for state in 0..count {
            if firsts[state as usize] == state {
                numbers[state as usize] = states.len() as u32;
                states.push(Vec::new());
            }
        }
        let number = |state: u32| numbers[firsts[state as usize] as usize];
        for (state, row) in self.states.iter().enumerate() {
            states[number(state as u32) as usize]
                .extend(row.iter().map(|one| Transition { to: number(one.to), ..*one }));
        }
        for row in &mut states {
            row.sort_unstable();
            row.dedup();
        }
        self.initial = number(self.initial);
        self.states = states;
    }
}
