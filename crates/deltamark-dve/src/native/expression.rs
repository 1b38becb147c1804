//! Emits expressions.
//!
//! In: expressions of the intermediate representation. Out: instructions that evaluate them. What stays true:
//! `and` and `or` short-circuit, *unless the difference is unobservable*: a right side that cannot fail and is
//! cheap is evaluated eagerly, because a mispredicted branch costs more.
//!
//! Values computed in the source are memoised, so that transitions of one location share them; entries made inside
//! a branch are dropped at its end.

use super::emitter::{Emitter, Number, ValueKind};
use crate::ir::{Binary, CellId, Expr, ExprId, Unary};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, Value};

/// The right side of `and` and `or` is evaluated eagerly up to this cost.
const CHEAP: u16 = 12;

impl Emitter<'_, '_> {
    /// The value of an expression.
    pub fn value(&mut self, id: ExprId) -> Number {
        match self.program.expr(id) {
            Expr::Const(value) => Number::Known(value),
            Expr::Cell(cell) if self.known(cell).is_some() => self.cell(cell),
            _ => Number::Computed(self.memoised(id, ValueKind::Number, Self::compute)),
        }
    }

    /// The value of an expression, in a register.
    pub fn register(&mut self, id: ExprId) -> Value {
        let value = self.value(id);
        self.computed(value)
    }

    /// Whether an expression is not zero.
    fn holds(&mut self, id: ExprId) -> Value {
        self.memoised(id, ValueKind::Truth, Self::decide)
    }

    fn memoised(&mut self, id: ExprId, kind: ValueKind, compute: fn(&mut Self, ExprId) -> Value) -> Value {
        if !self.pristine() {
            return compute(self, id);
        }
        if let Some(&value) = self.memo.get(&(id, kind)) {
            return value;
        }
        let value = compute(self, id);
        // Evaluating it may have branched and joined; the value itself dominates every path.
        if self.memo.insert((id, kind), value).is_none() {
            self.memoised.push((id, kind));
        }
        value
    }

    /// Drops the entries made since there were `mark`.
    pub fn forget_since(&mut self, mark: usize) {
        for key in self.memoised.drain(mark..) {
            self.memo.remove(&key);
        }
    }

    fn compute(&mut self, id: ExprId) -> Value {
        match self.program.expr(id) {
            Expr::Const(value) => self.number(value),
            Expr::Cell(cell) => {
                let number = self.cell(cell);
                self.computed(number)
            }
            Expr::Element { array, index, checked } => {
                let length = self.program.arrays[array.0 as usize].length;
                let index = self.index(index, length, checked);
                self.element(array, index)
            }
            Expr::Lookup { table, index, checked } => {
                let length = self.program.tables[table.0 as usize].values.len() as u32;
                let index = self.index(index, length, checked);
                let table = self.address(self.facts.value_table(table));
                self.entry(table, index)
            }
            Expr::Unary(Unary::Negate, of) => {
                let value = self.register(of);
                self.builder.ins().ineg(value)
            }
            Expr::Unary(Unary::Complement, of) => {
                let value = self.register(of);
                self.builder.ins().bnot(value)
            }
            Expr::Binary(operator, left, right) if comparison(operator).is_none() => {
                let (left, right) = (self.register(left), self.register(right));
                let ins = self.builder.ins();
                match operator {
                    Binary::Add => ins.iadd(left, right),
                    Binary::Subtract => ins.isub(left, right),
                    Binary::Multiply => ins.imul(left, right),
                    // Only the low five bits of the right side count, here as there.
                    Binary::ShiftLeft => ins.ishl(left, right),
                    Binary::ShiftRight => ins.sshr(left, right),
                    Binary::BitAnd => ins.band(left, right),
                    Binary::BitOr => ins.bor(left, right),
                    _ => ins.bxor(left, right),
                }
            }
            Expr::Divide { remainder, left, right, checked } => self.divide(remainder, left, right, checked),
            Expr::Unary(Unary::Not, _) | Expr::Binary(..) | Expr::And(..) | Expr::Or(..) => {
                let truth = self.holds(id);
                self.builder.ins().uextend(I32, truth)
            }
        }
    }

    /// Whether all values of an expression are between these two, whatever the state and the assignments so far.
    fn always_within(&self, id: ExprId, least: i32, most: i32) -> bool {
        !self.loose && self.facts.within(id, least, most)
    }

    /// An index of an array of this length, within bounds whatever the state.
    pub fn index(&mut self, id: ExprId, length: u32, checked: bool) -> Value {
        let index = self.register(id);
        if self.always_within(id, 0, length as i32 - 1) {
            return index;
        }
        if checked {
            let length = self.number(length as i32);
            let outside = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, length);
            self.fail_if(outside);
            return index;
        }
        // Proved for reachable states. For others the element is arbitrary, but within our memory.
        let last = self.number(length as i32 - 1);
        let below = self.builder.ins().icmp(IntCC::UnsignedLessThan, index, last);
        self.builder.ins().select(below, index, last)
    }

    fn divide(&mut self, remainder: bool, left: ExprId, right: ExprId, checked: bool) -> Value {
        let dividend = self.register(left);
        let mut divisor = self.register(right);
        let positive = self.always_within(right, 1, i32::MAX);
        if !positive && !self.always_within(right, i32::MIN, -1) {
            let zero = self.number(0);
            let fails = self.builder.ins().icmp(IntCC::Equal, divisor, zero);
            if checked {
                self.fail_if(fails);
            } else {
                // It is never zero in a reachable state; in others it must not trap.
                let one = self.number(1);
                divisor = self.builder.ins().select(fails, one, divisor);
            }
        }
        if positive && self.always_within(left, 0, i32::MAX) {
            return match remainder {
                true => self.builder.ins().urem(dividend, divisor),
                false => self.builder.ins().udiv(dividend, divisor),
            };
        }
        if positive {
            return match remainder {
                true => self.builder.ins().srem(dividend, divisor),
                false => self.builder.ins().sdiv(dividend, divisor),
            };
        }
        // In 64 bits, where the least number divided by -1 fits.
        let dividend = self.builder.ins().sextend(I64, dividend);
        let divisor = self.builder.ins().sextend(I64, divisor);
        let result = match remainder {
            true => self.builder.ins().srem(dividend, divisor),
            false => self.builder.ins().sdiv(dividend, divisor),
        };
        self.builder.ins().ireduce(I32, result)
    }

    fn decide(&mut self, id: ExprId) -> Value {
        match self.program.expr(id) {
            Expr::Const(value) => self.truth(value != 0),
            Expr::Unary(Unary::Not, of) => {
                let truth = self.holds(of);
                let one = self.truth(true);
                self.builder.ins().bxor(truth, one)
            }
            Expr::Binary(operator, left, right) if let Some(comparison) = comparison(operator) => {
                self.compare(comparison, left, right)
            }
            Expr::And(left, right) => self.connect(left, right, false),
            Expr::Or(left, right) => self.connect(left, right, true),
            _ => {
                let value = self.register(id);
                let zero = self.number(0);
                self.builder.ins().icmp(IntCC::NotEqual, value, zero)
            }
        }
    }

    fn compare(&mut self, comparison: IntCC, left: ExprId, right: ExprId) -> Value {
        if let IntCC::Equal | IntCC::NotEqual = comparison
            && let Some((cell, value)) = self.cell_and_constant(left, right)
        {
            let same = match self.known(cell) {
                Some(Number::Known(known)) => return self.truth((known == value) == (comparison == IntCC::Equal)),
                Some(Number::Computed(known)) => {
                    let value = self.number(value);
                    return self.builder.ins().icmp(comparison, known, value);
                }
                None => self.cell_equals(cell, value),
            };
            if comparison == IntCC::Equal {
                return same;
            }
            let one = self.truth(true);
            return self.builder.ins().bxor(same, one);
        }
        let (left, right) = (self.register(left), self.register(right));
        self.builder.ins().icmp(comparison, left, right)
    }

    fn cell_and_constant(&self, left: ExprId, right: ExprId) -> Option<(CellId, i32)> {
        match (self.program.expr(left), self.program.expr(right)) {
            (Expr::Cell(cell), Expr::Const(value)) | (Expr::Const(value), Expr::Cell(cell)) => Some((cell, value)),
            _ => None,
        }
    }

    /// Whether the right side of `and` or `or` is evaluated eagerly.
    fn eager(&self, right: ExprId) -> bool {
        !self.facts.faulty(right) && self.facts.cost(right) <= CHEAP
    }

    /// `and`, or `or` if `settles`: a left side of this value is the result.
    fn connect(&mut self, left: ExprId, right: ExprId, settles: bool) -> Value {
        let left = self.holds(left);
        if self.eager(right) {
            let right = self.holds(right);
            return match settles {
                true => self.builder.ins().bor(left, right),
                false => self.builder.ins().band(left, right),
            };
        }
        // Memory must be the same on both paths to the join: what the right side would write to the target on its
        // path only is written before the branch.
        if self.reads_assigned(right) {
            self.materialise();
        }
        let progress = self.progress();
        let (other, join) = (self.builder.create_block(), self.builder.create_block());
        let result = self.builder.append_block_param(join, I8);
        let settled = self.truth(settles);
        let ins = self.builder.ins();
        match settles {
            true => ins.brif(left, join, &[settled.into()], other, &[]),
            false => ins.brif(left, other, &[], join, &[settled.into()]),
        };
        self.enter(other);
        let mark = self.memoised.len();
        let right = self.holds(right);
        self.forget_since(mark);
        assert_eq!(self.progress(), progress, "a branch of an expression writes nothing to the target");
        self.builder.ins().jump(join, &[right.into()]);
        self.enter(join);
        result
    }

    /// Whether evaluating an expression reads an element, by an index that is not static, of an array with an
    /// assigned cell not yet written: such a read goes to memory.
    fn reads_assigned(&self, id: ExprId) -> bool {
        let mut open = if self.has_assigned() { vec![id] } else { Vec::new() };
        while let Some(id) = open.pop() {
            match self.program.expr(id) {
                Expr::Const(_) | Expr::Cell(_) => {}
                Expr::Element { array, .. } if self.is_assigned(array) => return true,
                Expr::Element { index: operand, .. }
                | Expr::Lookup { index: operand, .. }
                | Expr::Unary(_, operand) => {
                    open.push(operand);
                }
                Expr::Binary(_, left, right)
                | Expr::Divide { left, right, .. }
                | Expr::And(left, right)
                | Expr::Or(left, right) => open.extend([left, right]),
            }
        }
        false
    }

    /// Branches on an expression. Entries memoised before the first branch are kept.
    pub fn branch_on(&mut self, id: ExprId, then: Block, otherwise: Block) {
        match self.program.expr(id) {
            Expr::Const(value) => self.jump(if value != 0 { then } else { otherwise }),
            Expr::Unary(Unary::Not, of) => self.branch_on(of, otherwise, then),
            Expr::And(left, right) if !self.eager(right) => {
                let both = self.builder.create_block();
                self.branch_on(left, both, otherwise);
                self.branch_further(both, right, then, otherwise);
            }
            Expr::Or(left, right) if !self.eager(right) => {
                let neither = self.builder.create_block();
                self.branch_on(left, then, neither);
                self.branch_further(neither, right, then, otherwise);
            }
            _ => {
                let condition = self.holds(id);
                self.branch(condition, then, otherwise);
            }
        }
    }

    fn branch_further(&mut self, from: Block, right: ExprId, then: Block, otherwise: Block) {
        self.enter(from);
        let mark = self.memoised.len();
        self.branch_on(right, then, otherwise);
        self.forget_since(mark);
    }
}

fn comparison(operator: Binary) -> Option<IntCC> {
    Some(match operator {
        Binary::Equal => IntCC::Equal,
        Binary::Differ => IntCC::NotEqual,
        Binary::Less => IntCC::SignedLessThan,
        Binary::AtMost => IntCC::SignedLessThanOrEqual,
        Binary::More => IntCC::SignedGreaterThan,
        Binary::AtLeast => IntCC::SignedGreaterThanOrEqual,
        _ => return None,
    })
}
