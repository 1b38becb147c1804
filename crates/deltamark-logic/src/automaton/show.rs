//! Automata as text: HOA, DOT, and a drawing for people.
//!
//! In: an automaton and the names of its atoms. Out: text. The Hanoi Omega-Automata format is that of
//! <http://adl.github.io/hoaf/>, version 1.

use super::{Automaton, Transition};
use std::fmt::Write;

impl Transition {
    /// Its condition, with atoms as `atom` writes them.
    fn condition(&self, and: &str, not: &str, always: &str, atom: &dyn Fn(u32) -> String) -> String {
        let bits = |word: u64| (0..64).filter(move |bit| word >> bit & 1 == 1);
        let positive = bits(self.positive).map(atom);
        let negative = bits(self.negative).map(|number| format!("{not}{}", atom(number)));
        let parts: Vec<String> = positive.chain(negative).collect();
        if parts.is_empty() { always.into() } else { parts.join(and) }
    }

    fn marks(&self) -> Vec<String> {
        (0..64).filter(|set| self.accepting >> set & 1 == 1).map(|set| set.to_string()).collect()
    }
}

impl Automaton {
    /// The number of transitions.
    pub fn transitions(&self) -> usize {
        self.states.iter().map(Vec::len).sum()
    }

    /// In the Hanoi Omega-Automata format.
    pub fn to_hoa(&self, name: &str, atoms: &[String]) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let mut out = format!("HOA: v1\nname: {}\nStates: {}\n", quoted(name), self.states.len());
        if !self.is_empty() {
            let _ = writeln!(out, "Start: {}", self.initial);
        }
        let names: String = atoms.iter().map(|atom| format!(" {}", quoted(atom))).collect();
        let _ = writeln!(out, "AP: {}{names}", atoms.len());
        let sets: Vec<String> = (0..self.sets).map(|set| format!("Inf({set})")).collect();
        let acceptance = if sets.is_empty() { "t".to_string() } else { sets.join("&") };
        let word = if self.sets == 0 { "all".to_string() } else { format!("generalized-Buchi {}", self.sets) };
        let _ = writeln!(out, "acc-name: {word}\nAcceptance: {} {acceptance}", self.sets);
        out.push_str("properties: trans-labels explicit-labels trans-acc\n--BODY--\n");
        for (state, row) in self.states.iter().enumerate() {
            let _ = writeln!(out, "State: {state}");
            for one in row {
                let condition = one.condition("&", "!", "t", &|atom| atom.to_string());
                let marks = one.marks();
                let marks = if marks.is_empty() { String::new() } else { format!(" {{{}}}", marks.join(" ")) };
                let _ = writeln!(out, "[{condition}] {}{marks}", one.to);
            }
        }
        out.push_str("--END--\n");
        out
    }

    /// As a graph for Graphviz.
    pub fn to_dot(&self, name: &str, atoms: &[String]) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut out =
            format!("digraph automaton {{\n  label=\"{}\"\n  rankdir=LR\n  node [shape=circle]\n", quoted(name));
        if !self.is_empty() {
            let _ = writeln!(out, "  start [shape=point]\n  start -> {}", self.initial);
        }
        for (state, row) in self.states.iter().enumerate() {
            let _ = writeln!(out, "  {state}");
            for one in row {
                let condition = one.condition(" & ", "!", "true", &|atom| atoms[atom as usize].clone());
                let marks: String = one.marks().iter().map(|mark| format!(" ({mark})")).collect();
                let _ = writeln!(out, "  {state} -> {} [label=\"{}{marks}\"]", one.to, quoted(&condition));
            }
        }
        out.push_str("}\n");
        out
    }

    /// For people: the states, and under each its transitions.
    pub fn drawing(&self, atoms: &[String]) -> String {
        if self.is_empty() {
            return "no word is accepted\n".into();
        }
        let mut out = String::new();
        for (state, row) in self.states.iter().enumerate() {
            let (arrow, loops) =
                (if state as u32 == self.initial { "─▶" } else { "  " }, self.accepts_all(state as u32));
            let _ = writeln!(out, "{arrow} ({state}){}", if loops { "   accepts every word from here" } else { "" });
            for (index, one) in row.iter().enumerate() {
                let branch = if index + 1 == row.len() { "└─" } else { "├─" };
                let condition = one.condition(" and ", "not ", "true", &|atom| atoms[atom as usize].clone());
                let marks = one.marks();
                let marks = if marks.is_empty() { String::new() } else { format!("   accepting: {}", marks.join(" ")) };
                let _ = writeln!(out, "     {branch} {condition} ─▶ ({}){marks}", one.to);
            }
        }
        out
    }
}
