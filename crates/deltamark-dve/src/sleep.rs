//! Which steps of a search by levels may be left out.
//!
//! In: a program. Out: for each two steps whether the second may be left out in a state that was
//! reached by the first. What stays true: when it may, the two do not concern each other.
//!
//! Let `s` have been reached from `p` by `a`. If neither of `a` and `b` writes what the other
//! reads or writes, `b` could happen in `p` as well, then `a` after it, and both orders end in the
//! same state. So one of them is enough: `b` is left out in `s` if `a` has the smaller number. Why
//! no state gets lost by that is shown in `sleep.rs` of the crate `deltamark-nets`; the argument
//! does not depend on the language.
//!
//! A step reads the location of its processes, its guards, and all that its assignments and
//! messages are made of; it writes locations, assigned variables, places of receipt, and buffers. An array with an
//! index that is no constant counts as a whole. Synchronous systems and those with committed
//! locations have no such steps: there everything depends on everything.

use crate::ir::{CellId, Effect, Expr, ExprId, Program, Step, Sync, Target, Timing, TransitionId};
use deltamark_core::Action;

/// More steps than these would make the table larger than 8 MiB.
const MOST_STEPS: usize = 8192;
/// With more cells than these, what steps have in common would take longer to find than it is worth.
const MOST_CELLS: usize = 1 << 14;

/// What may be left out after what.
#[derive(Debug)]
pub(crate) struct Sleep {
    /// Words of a row.
    words: usize,
    /// A row for each step, a bit for each later step that does not concern it; then a row without any.
    rows: Vec<u64>,
}

/// Words in a set of steps.
pub(crate) fn words(program: &Program) -> usize {
    program.steps.len().div_ceil(64)
}

/// Whether there may be steps that do not concern each other.
pub(crate) fn possible(program: &Program) -> bool {
    let bearable = (1..=MOST_STEPS).contains(&program.steps.len()) && program.cells.len() <= MOST_CELLS;
    bearable && program.timing == Timing::Asynchronous && !program.has_commit
}

impl Sleep {
    /// What may be left out; nothing, if nothing can be.
    pub fn new(program: &Program) -> Option<Self> {
        if !possible(program) {
            return None;
        }
        let (count, words) = (program.steps.len(), words(program));
        let touched: Vec<Touched> = program.steps.iter().map(|step| Touched::of(program, step)).collect();
        // For each cell and array the steps that read it, and those that write it: so a step meets only those that it has one
        // in common with, and not all others.
        let readers = Users::new(program, touched.iter().map(|touched| &touched.reads[..]));
        let writers = Users::new(program, touched.iter().map(|touched| &touched.writes[..]));
        let mut rows = vec![0u64; words * (count + 1)];
        for (step, (Touched { reads, writes }, row)) in touched.iter().zip(rows.chunks_exact_mut(words)).enumerate() {
            writes.iter().for_each(|&unit| readers.add_to(row, unit));
            writes.iter().chain(reads).for_each(|&unit| writers.add_to(row, unit));
            // Those that it does not concern, if they come later.
            for (word, first) in row.iter_mut().zip((0..).step_by(64)) {
                *word = !*word & below(count, first) & !below(step + 1, first);
            }
        }
        rows.iter().any(|&row| row != 0).then_some(Sleep { words, rows })
    }

    /// The steps that may be left out in a state that was reached by `arrival`: a bit each.
    #[inline]
    pub fn row(&self, arrival: Action) -> &[u64] {
        let row = if arrival == Action::NONE { self.rows.len() / self.words - 1 } else { arrival.0 as usize };
        &self.rows[row * self.words..][..self.words]
    }
}

/// The numbers below a bound, in a word that begins with the number `first`.
fn below(bound: usize, first: usize) -> u64 {
    1u64.checked_shl(bound.saturating_sub(first) as u32).map_or(u64::MAX, |bit| bit - 1)
}

/// What a step reads or writes: a cell, or some element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Cell(u32),
    Array(u32),
}

/// The steps that use each unit. What this takes is in proportion to what steps use, not to the number of cells times that of steps.
struct Users {
    /// By cell, then by array the steps that use it as a whole.
    units: Vec<StepSet>,
    /// For each array the steps that use it or any of its elements.
    any: Vec<StepSet>,
    /// The array of each cell.
    array_of: Vec<Option<u32>>,
    cells: usize,
}

/// A set of steps: a list while that is shorter than a bit for each.
#[derive(Clone, Debug)]
enum StepSet {
    List(Vec<u32>),
    Bits(Vec<u64>),
}

impl StepSet {
    /// Takes in a step, the last so far, of a set of so many words.
    fn push(&mut self, step: u32, words: usize) {
        if let StepSet::List(list) = self {
            if list.last() == Some(&step) {
                return;
            }
            if list.len() < 2 * words {
                return list.push(step);
            }
            let mut bits = vec![0; words];
            list.iter().for_each(|&step| bits[step as usize / 64] |= 1 << (step % 64));
            *self = StepSet::Bits(bits);
        }
        if let StepSet::Bits(bits) = self {
            bits[step as usize / 64] |= 1 << (step % 64);
        }
    }

    fn add_to(&self, row: &mut [u64]) {
        match self {
            StepSet::List(list) => list.iter().for_each(|&step| row[step as usize / 64] |= 1 << (step % 64)),
            StepSet::Bits(bits) => row.iter_mut().zip(bits).for_each(|(word, other)| *word |= other),
        }
    }
}

impl Users {
    /// The users, where each step in order uses these units.
    fn new<'a>(program: &Program, used: impl Iterator<Item = &'a [Unit]>) -> Self {
        let (cells, words) = (program.cells.len(), words(program));
        let mut array_of = vec![None; cells];
        for (number, array) in program.arrays.iter().enumerate() {
            array_of[array.first.0 as usize..(array.first.0 + array.length) as usize].fill(Some(number as u32));
        }
        let empty = || StepSet::List(Vec::new());
        let mut units = vec![empty(); cells + program.arrays.len()];
        let mut any = vec![empty(); program.arrays.len()];
        for (step, used) in (0..).zip(used) {
            for &unit in used {
                let (place, array) = match unit {
                    Unit::Cell(cell) => (cell as usize, array_of[cell as usize]),
                    Unit::Array(array) => (cells + array as usize, Some(array)),
                };
                units[place].push(step, words);
                if let Some(array) = array {
                    any[array as usize].push(step, words);
                }
            }
        }
        Users { units, any, array_of, cells }
    }

    /// Adds to a row the steps that may use what this unit is.
    fn add_to(&self, row: &mut [u64], unit: Unit) {
        match unit {
            Unit::Cell(cell) => {
                self.units[cell as usize].add_to(row);
                if let Some(array) = self.array_of[cell as usize] {
                    self.units[self.cells + array as usize].add_to(row);
                }
            }
            Unit::Array(array) => self.any[array as usize].add_to(row),
        }
    }
}

/// What a step reads and writes, each once.
struct Touched {
    reads: Vec<Unit>,
    writes: Vec<Unit>,
}

impl Touched {
    fn of(program: &Program, step: &Step) -> Self {
        let mut touched = Touched { reads: Vec::new(), writes: Vec::new() };
        match *step {
            Step::Alone(transition) => touched.transition(program, transition),
            Step::Pair { send, receive, .. } => {
                touched.transition(program, send);
                touched.transition(program, receive);
            }
        }
        for units in [&mut touched.reads, &mut touched.writes] {
            units.sort_unstable();
            units.dedup();
            units.shrink_to_fit();
        }
        touched
    }

    fn read(&mut self, cell: CellId) {
        self.reads.push(Unit::Cell(cell.0));
    }

    fn write(&mut self, cell: CellId) {
        self.writes.push(Unit::Cell(cell.0));
    }

    fn transition(&mut self, program: &Program, id: TransitionId) {
        let transition = program.transition(id);
        let location = program.processes[transition.process.0 as usize].location;
        self.read(location);
        self.write(location);
        self.expr(program, transition.guard);
        match &transition.sync {
            Sync::None => {}
            Sync::Send(_, values) => values.iter().for_each(|&value| self.expr(program, value)),
            Sync::Receive(_, targets) => targets.iter().for_each(|&target| self.target(program, target)),
        }
        if let Some(buffer) = program.buffer_of(transition) {
            let (Sync::Send(channel, _) | Sync::Receive(channel, _)) = transition.sync else { return };
            let items = buffer.capacity * program.channels[channel.0 as usize].arity;
            let cells = (0..items).map(|item| CellId(buffer.first.0 + item)).chain([buffer.length]);
            for cell in cells {
                self.read(cell);
                self.write(cell);
            }
        }
        for &Effect { target, value, .. } in &transition.effects {
            self.target(program, target);
            self.expr(program, value);
        }
    }

    fn target(&mut self, program: &Program, target: Target) {
        match target {
            Target::Cell(cell) => self.write(cell),
            Target::Element { array, index, .. } => {
                self.expr(program, index);
                self.writes.push(Unit::Array(array.0));
            }
        }
    }

    fn expr(&mut self, program: &Program, id: ExprId) {
        // Operands have smaller numbers than what is made of them, so this ends.
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            match program.expr(id) {
                Expr::Const(_) => {}
                Expr::Cell(cell) => self.read(cell),
                Expr::Element { array, index, .. } => {
                    self.reads.push(Unit::Array(array.0));
                    open.push(index);
                }
                Expr::Lookup { index, .. } => open.push(index),
                Expr::Unary(_, operand) => open.push(operand),
                Expr::Binary(_, left, right)
                | Expr::Divide { left, right, .. }
                | Expr::And(left, right)
                | Expr::Or(left, right) => open.extend([left, right]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Seventy processes, so that a row has several words: each has a variable of its own and one that it shares with a
    /// neighbour, and every tenth sends to the next.
    fn model() -> String {
        let mut text = String::from("byte shared[70]; byte rare[3]; channel c;\n");
        for number in 0..70 {
            let next = (number + 1) % 70;
            let sync = match number % 10 {
                0 => "sync c!own;",
                1 => "sync c?own;",
                _ => "",
            };
            // Some that read or write any element.
            let any = match number % 35 {
                17 => ", s -> s { guard shared[own] == 1; }",
                34 => ", s -> s { effect rare[own] = rare[1]; }",
                _ => "",
            };
            text += &format!(
                "process P_{number} {{ byte own; state s, t; init s; trans
                   s -> t {{ guard shared[{next}] == 0; {sync} effect shared[{number}] = 1; }},
                   t -> s {{ effect own = 1 - own; }}{any}; }}\n"
            );
        }
        text + "system async;"
    }

    #[test]
    fn rows_hold_the_later_steps_that_have_nothing_in_common() {
        let program = crate::parse(model().as_bytes()).expect("a model");
        let sleep = Sleep::new(&program).expect("some steps do not concern each other");
        let touched: Vec<Touched> = program.steps.iter().map(|step| Touched::of(&program, step)).collect();
        let cells = |units: &[Unit]| -> HashSet<u32> {
            let cells = units.iter().flat_map(|unit| match *unit {
                Unit::Cell(cell) => cell..cell + 1,
                Unit::Array(array) => {
                    let array = &program.arrays[array as usize];
                    array.first.0..array.first.0 + array.length
                }
            });
            cells.collect()
        };
        let touched: Vec<_> = touched.iter().map(|one| (cells(&one.reads), cells(&one.writes))).collect();
        let meet = |one: &HashSet<u32>, other: &HashSet<u32>| !one.is_disjoint(other);
        let mut left_out = 0;
        for (a, one) in touched.iter().enumerate() {
            for (b, other) in touched.iter().enumerate() {
                let apart = !meet(&one.1, &other.1) && !meet(&one.1, &other.0) && !meet(&one.0, &other.1);
                let expected = a < b && apart;
                assert_eq!(sleep.row(Action(a as u32))[b / 64] >> (b % 64) & 1 == 1, expected, "{a} and {b}");
                left_out += u32::from(expected);
            }
        }
        assert!(touched.len() > 128 && left_out > 5_000, "{} steps, {left_out} pairs", touched.len());
        assert!(sleep.row(Action::NONE).iter().all(|&word| word == 0));
    }
}
