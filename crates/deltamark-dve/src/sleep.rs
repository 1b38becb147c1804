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
        // For each cell the steps that read it, and those that write it: so a step meets only those that it has a cell
        // in common with, and not all others.
        let mut readers = vec![0u64; words * program.cells.len()];
        let mut writers = readers.clone();
        for (step, Touched { reads, writes }) in touched.iter().enumerate() {
            members(reads).for_each(|cell| readers[cell * words + step / 64] |= 1 << (step % 64));
            members(writes).for_each(|cell| writers[cell * words + step / 64] |= 1 << (step % 64));
        }
        let mut rows = vec![0u64; words * (count + 1)];
        for (step, (Touched { reads, writes }, row)) in touched.iter().zip(rows.chunks_exact_mut(words)).enumerate() {
            let mut concerns = |steps: &[u64], cell: usize| {
                let of_cell = &steps[cell * words..][..words];
                row.iter_mut().zip(of_cell).for_each(|(word, other)| *word |= other);
            };
            members(writes).for_each(|cell| concerns(&readers, cell));
            members(writes).chain(members(reads)).for_each(|cell| concerns(&writers, cell));
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

/// The numbers in a set that has a bit for each.
fn members(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().zip((0..).step_by(64)).flat_map(|(&word, first)| {
        let rest = std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
        rest.take_while(|&rest| rest != 0).map(move |rest| first + rest.trailing_zeros() as usize)
    })
}

/// The numbers below a bound, in a word that begins with the number `first`.
fn below(bound: usize, first: usize) -> u64 {
    1u64.checked_shl(bound.saturating_sub(first) as u32).map_or(u64::MAX, |bit| bit - 1)
}

/// The cells that a step reads and writes: a bit each.
struct Touched {
    reads: Vec<u64>,
    writes: Vec<u64>,
}

impl Touched {
    fn of(program: &Program, step: &Step) -> Self {
        let words = program.cells.len().div_ceil(64);
        let mut touched = Touched { reads: vec![0; words], writes: vec![0; words] };
        match *step {
            Step::Alone(transition) => touched.transition(program, transition),
            Step::Pair { send, receive, .. } => {
                touched.transition(program, send);
                touched.transition(program, receive);
            }
        }
        touched
    }

    fn read(&mut self, cell: CellId) {
        self.reads[cell.0 as usize / 64] |= 1 << (cell.0 % 64);
    }

    fn write(&mut self, cell: CellId) {
        self.writes[cell.0 as usize / 64] |= 1 << (cell.0 % 64);
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
                let array = &program.arrays[array.0 as usize];
                (0..array.length).for_each(|element| self.write(CellId(array.first.0 + element)));
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
                    let array = &program.arrays[array.0 as usize];
                    (0..array.length).for_each(|element| self.read(CellId(array.first.0 + element)));
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

    /// Seventy processes, so that a row has several words: each has a variable of its own and one that it shares with a
    /// neighbour, and every tenth sends to the next.
    fn model() -> String {
        let mut text = String::from("byte shared[70]; channel c;\n");
        for number in 0..70 {
            let next = (number + 1) % 70;
            let sync = match number % 10 {
                0 => "sync c!own;",
                1 => "sync c?own;",
                _ => "",
            };
            text += &format!(
                "process P_{number} {{ byte own; state s, t; init s; trans
                   s -> t {{ guard shared[{next}] == 0; {sync} effect shared[{number}] = 1; }},
                   t -> s {{ effect own = 1 - own; }}; }}\n"
            );
        }
        text + "system async;"
    }

    #[test]
    fn rows_hold_the_later_steps_that_have_nothing_in_common() {
        let program = crate::parse(model().as_bytes()).expect("a model");
        let sleep = Sleep::new(&program).expect("some steps do not concern each other");
        let touched: Vec<Touched> = program.steps.iter().map(|step| Touched::of(&program, step)).collect();
        let meet = |one: &[u64], other: &[u64]| one.iter().zip(other).any(|(one, other)| one & other != 0);
        let mut left_out = 0;
        for (a, one) in touched.iter().enumerate() {
            for (b, other) in touched.iter().enumerate() {
                let apart = !meet(&one.writes, &other.writes)
                    && !meet(&one.writes, &other.reads)
                    && !meet(&one.reads, &other.writes);
                let expected = a < b && apart;
                assert_eq!(sleep.row(Action(a as u32))[b / 64] >> (b % 64) & 1 == 1, expected, "{a} and {b}");
                left_out += u32::from(expected);
            }
        }
        assert!(touched.len() > 128 && left_out > 5_000, "{} steps, {left_out} pairs", touched.len());
        assert!(sleep.row(Action::NONE).iter().all(|&word| word == 0));
    }
}
