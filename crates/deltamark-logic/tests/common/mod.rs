//! A fake system to be observed, and a small generator of random numbers.

#![allow(dead_code, reason = "every test file uses a part of this")]

use deltamark_core::{
    Action, Batch, Block, Describe, Diagnostic, Observable, ObservableKind, Observe, Scratch, Slot, StateId, System,
    Value, Widen, Width,
};

/// The possible numbers of the fake system; a slot holds an index into this.
pub const VALUES: [i64; 10] = [0, 1, 2, 3, 7, -1, -2, i64::MAX, i64::MIN + 1, 1 << 40];

/// The fake's numbers, truth values and transitions. Each takes one slot, in this order.
pub const NUMBERS: [&str; 8] = ["p", "q", "r", "P_0.CS", "a[0]", "P->x", "odd name-1", "x-1"];
pub const TRUTHS: [&str; 4] = ["b", "c", "deadlock", "Q.cs"];
pub const ACTIONS: [&str; 3] = ["t", "u", "go \"on\""];

pub const WIDTH: usize = NUMBERS.len() + TRUTHS.len() + ACTIONS.len();

pub struct Fake;

impl Observe for Fake {
    fn resolve(&self, name: &str) -> Option<Observable> {
        let find = |list: &[&str], start: usize, kind| {
            let index = list.iter().position(|&known| known == name)?;
            Some(Observable { index: (start + index) as u32, kind })
        };
        find(&NUMBERS, 0, ObservableKind::Int).or_else(|| find(&TRUTHS, NUMBERS.len(), ObservableKind::Bool))
    }

    fn fireable(&self, name: &str) -> Option<Observable> {
        let index = ACTIONS.iter().position(|&known| known == name)?;
        Some(Observable { index: (NUMBERS.len() + TRUTHS.len() + index) as u32, kind: ObservableKind::Bool })
    }

    fn names(&self) -> Vec<String> {
        NUMBERS.iter().chain(&TRUTHS).map(|name| name.to_string()).collect()
    }

    fn action_names(&self) -> Vec<String> {
        ACTIONS.iter().map(|name| name.to_string()).collect()
    }

    fn read(&self, _: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        let slot = state[observable.index as usize];
        match observable.kind {
            ObservableKind::Int => VALUES[slot as usize],
            ObservableKind::Bool => i64::from(slot % 2),
        }
    }
}

impl Describe for Fake {
    fn state(&self, _: &[Slot]) -> Vec<(String, Value)> {
        Vec::new()
    }

    fn action(&self, _: &[Slot], _: Action) -> String {
        String::new()
    }
}

impl System for Fake {
    fn width(&self) -> Width {
        Width::Fixed(WIDTH)
    }

    fn initial(&self, _: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        out.push(Action(0), &[0; WIDTH]);
        Ok(())
    }

    fn successors(&self, _: &mut Scratch, _: &[Slot], _: &mut Batch) -> Result<(), Widen> {
        Ok(())
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn observe(&self) -> Option<&dyn Observe> {
        Some(self)
    }
}

/// A block of these states.
pub fn block(states: &[[Slot; WIDTH]]) -> Block {
    let mut block = Block::new(Width::Fixed(WIDTH));
    for (id, state) in states.iter().enumerate() {
        block.push(StateId::new(id as u64), state);
    }
    block
}

/// Random numbers (splitmix64), deterministic.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }
}

/// A finding as people see it: the line, carets below the span, message and help.
pub fn rendered(text: &str, finding: &Diagnostic) -> String {
    let mut out = String::new();
    if let Some(span) = finding.span {
        assert!(span.start <= span.end && span.end <= text.len(), "{span:?} lies outside the text");
        assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{span:?} cuts a character");
        let line_start = text[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[span.start..].find('\n').map_or(text.len(), |newline| span.start + newline);
        let end = span.end.clamp(span.start, line_end);
        let indent = text[line_start..span.start].chars().count();
        let carets = text[span.start..end].chars().count().max(1);
        out += &format!("{}\n{}{}\n", &text[line_start..line_end], " ".repeat(indent), "^".repeat(carets));
    }
    out += &finding.message;
    if let Some(help) = &finding.help {
        out += &format!("\n= {help}");
    }
    out
}

/// All findings, in sequence.
pub fn all_rendered(text: &str, findings: &[Diagnostic]) -> String {
    findings.iter().map(|finding| rendered(text, finding)).collect::<Vec<_>>().join("\n")
}
