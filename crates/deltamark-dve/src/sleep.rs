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

/// What may be left out after what.
#[derive(Debug)]
pub(crate) struct Sleep {
    /// Words of a row.
    words: usize,
    /// A row for each step, a bit for each later step that does not concern it.
    rows: Vec<u64>,
}

impl Sleep {
    /// What may be left out; nothing, if nothing can be.
    pub fn new(program: &Program) -> Option<Self> {
        let count = program.steps.len();
        if program.timing == Timing::Synchronous || program.has_commit || count > MOST_STEPS {
            return None;
        }
        let touched: Vec<Touched> = program.steps.iter().map(|step| Touched::of(program, step)).collect();
        let words = count.div_ceil(64);
        let mut rows = vec![0u64; words * count];
        for (a, one) in touched.iter().enumerate() {
            for (b, other) in touched.iter().enumerate().skip(a + 1) {
                if one.apart_from(other) {
                    rows[a * words + b / 64] |= 1 << (b % 64);
                }
            }
        }
        rows.iter().any(|&row| row != 0).then_some(Sleep { words, rows })
    }

    /// Whether `action` may be left out in a state that was reached by `arrival`.
    #[inline]
    pub fn leaves_out(&self, arrival: Action, action: Action) -> bool {
        arrival != Action::NONE
            && self.rows[arrival.0 as usize * self.words + action.0 as usize / 64] >> (action.0 % 64) & 1 == 1
    }
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

    fn apart_from(&self, other: &Touched) -> bool {
        let meet = |one: &[u64], other: &[u64]| one.iter().zip(other).any(|(one, other)| one & other != 0);
        !meet(&self.writes, &other.writes) && !meet(&self.writes, &other.reads) && !meet(&self.reads, &other.writes)
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
