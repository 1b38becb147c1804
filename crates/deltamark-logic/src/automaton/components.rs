//! Strongly connected components of an automaton, and what follows from them.
//!
//! In: an automaton. Out: the same language with fewer states and less acceptance. What stays true: a run stays in one
//! component from some point on, so acceptance outside of components, and inside of one that lacks a set, is void;
//! and a state from which no accepting component can be reached accepts nothing.

use super::{Automaton, Shape, Transition};

impl Automaton {
    /// The component of each state, by Tarjan's algorithm. A component has a larger number than those reached from it.
    fn components(&self) -> (Vec<u32>, usize) {
        const NONE: u32 = u32::MAX;
        let count = self.states.len();
        let (mut order, mut low, mut of) = (vec![NONE; count], vec![0u32; count], vec![NONE; count]);
        let (mut next, mut components) = (0u32, 0u32);
        let mut live: Vec<usize> = Vec::new();
        let mut calls: Vec<(usize, usize)> = Vec::new();
        for root in 0..count {
            if order[root] != NONE {
                continue;
            }
            calls.push((root, 0));
            while let Some(&(state, at)) = calls.last() {
                if at == 0 {
                    (order[state], low[state]) = (next, next);
                    next += 1;
                    live.push(state);
                }
                if let Some(one) = self.states[state].get(at) {
                    if let Some(call) = calls.last_mut() {
                        call.1 += 1;
                    }
                    let target = one.to as usize;
                    if order[target] == NONE {
                        calls.push((target, 0));
                    } else if of[target] == NONE {
                        low[state] = low[state].min(order[target]);
                    }
                    // A state without transitions left over is closed below; `at` is never 0 again.
                    continue;
                }
                calls.pop();
                if let Some(&(caller, _)) = calls.last() {
                    low[caller] = low[caller].min(low[state]);
                }
                if low[state] == order[state] {
                    while let Some(member) = live.pop() {
                        of[member] = components;
                        if member == state {
                            break;
                        }
                    }
                    components += 1;
                }
            }
        }
        (of, components as usize)
    }

    /// Which components have an accepting cycle: a transition inside, and one of each set.
    fn accepting(&self, of: &[u32], count: usize) -> Vec<bool> {
        let (mut sets, mut cyclic) = (vec![0u64; count], vec![false; count]);
        for (state, row) in self.states.iter().enumerate() {
            for one in row.iter().filter(|one| of[one.to as usize] == of[state]) {
                sets[of[state] as usize] |= one.accepting;
                cyclic[of[state] as usize] = true;
            }
        }
        let all = self.all_sets();
        sets.iter().zip(&cyclic).map(|(&sets, &cyclic)| cyclic && sets == all).collect()
    }

    /// Keeps the states that are reachable and accept some word, numbered breadth first.
    pub(super) fn keep_useful(&mut self) {
        if self.states.is_empty() {
            return;
        }
        let (of, count) = self.components();
        let mut good = self.accepting(&of, count);
        // Components are in reverse topological order, so one pass by component suffices.
        let mut by_component: Vec<usize> = (0..self.states.len()).collect();
        by_component.sort_by_key(|&state| of[state]);
        for state in by_component {
            let reaches = self.states[state].iter().any(|one| good[of[one.to as usize] as usize]);
            good[of[state] as usize] |= reaches;
        }
        let useful = |state: u32| good[of[state as usize] as usize];
        let mut numbers = vec![u32::MAX; self.states.len()];
        let mut order = Vec::new();
        if useful(self.initial) {
            numbers[self.initial as usize] = 0;
            order.push(self.initial);
        }
        let mut at = 0;
        let mut states = Vec::new();
        while at < order.len() {
            let mut row: Vec<Transition> = Vec::new();
            for one in self.states[order[at] as usize].iter().filter(|one| useful(one.to)) {
                let number = &mut numbers[one.to as usize];
                if *number == u32::MAX {
                    *number = order.len() as u32;
                    order.push(one.to);
                }
                row.push(Transition { to: *number, ..*one });
            }
            states.push(row);
            at += 1;
        }
        self.states = states;
        self.initial = 0;
        if self.states.is_empty() {
            self.sets = 0;
        }
    }

    /// Drops acceptance that decides nothing: outside of accepting components; sets that contain another one; sets
    /// that contain every transition of all cycles.
    pub(super) fn limit_acceptance(&mut self) {
        let (of, count) = self.components();
        let accepting = self.accepting(&of, count);
        let all = self.all_sets();
        // Per set, which others are taken on every transition of accepting components that takes it.
        let mut with: Vec<u64> = vec![all; self.sets as usize];
        // The sets that every transition of an accepting component takes.
        let mut always = all;
        let mut any_rejecting_cycle = false;
        for (state, row) in self.states.iter_mut().enumerate() {
            for one in row {
                let inside = of[one.to as usize] == of[state];
                if !inside || !accepting[of[state] as usize] {
                    one.accepting = 0;
                    any_rejecting_cycle |= inside;
                    continue;
                }
                always &= one.accepting;
                for (set, with) in with.iter_mut().enumerate() {
                    if one.accepting >> set & 1 == 1 {
                        *with &= one.accepting;
                    }
                }
            }
        }
        let mut kept: Vec<u32> = Vec::new();
        for set in 0..self.sets {
            // A set that contains a kept one is visited whenever that is. Rejecting cycles are in no set at all, so one
            // set must remain to tell them from accepting ones.
            let full = always >> set & 1 == 1 && !any_rejecting_cycle;
            let wider = kept.iter().any(|&other| with[other as usize] >> set & 1 == 1)
                || (set + 1..self.sets)
                    .any(|other| with[other as usize] >> set & 1 == 1 && with[set as usize] >> other & 1 == 0);
            if !full && !wider {
                kept.push(set);
            }
        }
        for one in self.states.iter_mut().flatten() {
            let bits = one.accepting;
            one.accepting = kept.iter().enumerate().fold(0, |sets, (new, &old)| sets | (bits >> old & 1) << new);
        }
        self.sets = kept.len() as u32;
    }

    /// Of each state whether it is in a component with an accepting cycle.
    pub fn recurring(&self) -> Vec<bool> {
        let (of, count) = self.components();
        let accepting = self.accepting(&of, count);
        of.iter().map(|&component| accepting[component as usize]).collect()
    }

    /// Whether all states on accepting cycles accept everything, so that a run is accepting if and only if it comes to
    /// one of them.
    pub fn is_terminal(&self) -> bool {
        let (of, count) = self.components();
        let accepting = self.accepting(&of, count);
        let is_final = |state: usize| !accepting[of[state] as usize] || self.accepts_all(state as u32);
        (0..self.states.len()).all(is_final)
    }

    /// What the automaton is by its shape.
    pub fn shape(&self) -> Shape {
        if self.is_empty() {
            return Shape::Empty;
        }
        if self.sets == 0 {
            return Shape::Safety;
        }
        if self.is_terminal() {
            return Shape::Terminal;
        }
        let (of, count) = self.components();
        let accepting = self.accepting(&of, count);
        let all = self.all_sets();
        let whole = |(state, row): (usize, &Vec<Transition>)| {
            let inside = |one: &&Transition| accepting[of[state] as usize] && of[one.to as usize] == of[state];
            row.iter().filter(inside).all(|one| one.accepting == all)
        };
        if self.states.iter().enumerate().all(whole) { Shape::Weak } else { Shape::General }
    }
}
