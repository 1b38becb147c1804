//! A compiled expression as a postfix program, and its interpreter.
//!
//! In: operations in postfix order, emitted by the checker, and a block of states. Out: a mask of the states in
//! which the expression is true.
//!
//! What stays true while a program runs:
//! * I1: the stacks have the depth that the program needs, so pushing never allocates; the
//!   checker computed it.
//! * I2: `active` holds the states whose value still matters. Only an error in an active
//!   state counts; of these the first error in the first state of the block is kept.
//! * I3: truth values and numbers of states that are not active are arbitrary.

use std::cell::Cell;

use deltamark_core::property::Undefined;
use deltamark_core::{Block, Formula, NoValue, Observable, Observe, Predicate, Scratch, Span, System, UNDEFINED};

use crate::ast::{Arithmetic, Comparison};
use crate::lanes::{self, Lanes};
use crate::parse::shortened;

/// Which truth value of the left side short-circuits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Junction {
    And,
    Or,
}

impl Junction {
    /// The states that `truths` does not decide.
    #[inline]
    fn open(self, truths: u64) -> u64 {
        match self {
            Junction::And => truths,
            Junction::Or => !truths,
        }
    }
}

/// An instruction. `T` is the stack of truth values, `N` that of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    /// T: → constant
    Truth(bool),
    /// T: → states without successors
    Deadlock,
    /// T: → observed truth value
    ReadTruth(Observable),
    /// T: a → not a
    Not,
    /// T: a b → a or b, where evaluating b cannot fail
    Either,
    /// T: a b → a iff b
    Same,
    /// Reads T: a, and keeps active only the states that a does not decide. Jumps to the given
    /// [`Leave`](Self::Leave) if none are left.
    Enter(Junction, u32),
    /// T: a b → a combined with b; then as [`Enter`](Self::Enter).
    Fold(Junction, u32),
    /// Restores the active states of before [`Enter`](Self::Enter).
    Leave,
    /// N: → constant
    Number(i64),
    /// N: → observed number
    Read(Observable),
    /// N: a → -a
    Negate,
    /// N: a b → a combined with b
    Arithmetic(Arithmetic),
    /// N: a b → and T: → whether the comparison holds
    Compare(Comparison),
    /// N: a → and T: → whether the comparison with a constant holds
    CompareWith(Comparison, i64),
}

/// The depth of a program's stacks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Depths {
    pub(crate) truths: usize,
    pub(crate) numbers: usize,
    pub(crate) active: usize,
}

/// An expression compiled against a system.
#[derive(Debug)]
pub struct Compiled {
    /// The text it was compiled from; `places` point into it.
    pub(crate) source: String,
    /// The same for display: on one line, without surrounding comments.
    pub(crate) text: String,
    pub(crate) operations: Vec<Operation>,
    /// For each operation the span of the text it computes.
    pub(crate) places: Vec<Span>,
    pub(crate) depths: Depths,
    /// Whether it leaves a number instead of a truth value.
    pub(crate) numeric: bool,
}

/// What an expression computes, whatever its text: equal ones have equal values in every state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meaning(Vec<Operation>);

impl Compiled {
    /// What it computes. Its text does not say that: parts of an expanded pattern all have the text of the pattern.
    pub fn meaning(&self) -> Meaning {
        Meaning(self.operations.clone())
    }

    /// The expression on one line: as the user wrote it, or printed again if it took several lines.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether its value depends on whether a state has successors.
    pub fn asks_deadlock(&self) -> bool {
        self.operations.iter().any(|operation| matches!(operation, Operation::Deadlock))
    }

    /// Whether it may have no value in some state, as far as that is known without looking at states: `undefined` is
    /// asked which observables may have none. Numbers that are read, and sums of them, are taken to fit 64 bits if
    /// `small`.
    pub fn may_fail(&self, small: bool, undefined: &dyn Fn(Observable) -> bool) -> bool {
        self.operations.iter().any(|operation| match operation {
            Operation::Read(observable) | Operation::ReadTruth(observable) => undefined(*observable),
            Operation::Negate | Operation::Arithmetic(Arithmetic::Add | Arithmetic::Subtract) => !small,
            Operation::Number(number) => number.unsigned_abs() > 1 << 48,
            Operation::Arithmetic(_) => true,
            _ => false,
        })
    }
}

impl Predicate for Compiled {
    fn evaluate(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, dead: u64) -> Result<u64, Undefined> {
        // Taken and put back rather than borrowed: should reading an observable ever lead back here, the inner
        // call merely uses a stack of its own.
        let mut stacks = STACKS.take();
        stacks.fit(self.depths);
        let result = self.run(&mut stacks, system, scratch, block, dead);
        STACKS.set(stacks);
        result
    }

    fn formula(&self, wanted: bool) -> Option<Formula> {
        crate::formula::formula(self, wanted)
    }
}

impl Compiled {
    /// The values of a number in the states of a block; truth values count as 0 and 1.
    pub(crate) fn numbers(
        &self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        out: &mut Lanes,
    ) -> Result<(), Undefined> {
        let mut stacks = STACKS.take();
        stacks.fit(self.depths);
        let result = self.run(&mut stacks, system, scratch, block, 0);
        let done = result.map(|truths| match self.numeric {
            true => *out = stacks.numbers[0],
            false => out.iter_mut().enumerate().for_each(|(lane, value)| *value = (truths >> lane & 1) as i64),
        });
        STACKS.set(stacks);
        done
    }
}

thread_local! {
    /// The stacks of this thread, reused from block to block.
    static STACKS: Cell<Stacks> = const { Cell::new(Stacks { truths: Vec::new(), numbers: Vec::new(), active: Vec::new() }) };
}

#[derive(Default)]
struct Stacks {
    truths: Vec<u64>,
    /// May be longer than needed: the program tracks how many are in use.
    numbers: Vec<Lanes>,
    active: Vec<u64>,
}

impl Stacks {
    fn fit(&mut self, depths: Depths) {
        self.truths.clear();
        self.truths.reserve(depths.truths);
        self.active.clear();
        self.active.reserve(depths.active);
        if self.numbers.len() < depths.numbers {
            self.numbers.resize(depths.numbers, [0; 64]);
        }
    }
}

/// The first state of the block that has failed, and at which operation.
struct Failure {
    state: u32,
    operation: usize,
    why: Why,
}

/// Why there is no value.
#[derive(Clone, Copy)]
enum Why {
    Zero,
    Overflow,
    /// This observable has no value.
    Unread(Observable),
}

impl Compiled {
    fn run(
        &self,
        stacks: &mut Stacks,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        dead: u64,
    ) -> Result<u64, Undefined> {
        let Some(observe) = system.observe() else {
            return Err(Undefined { state: 0, message: "the system lets nothing be observed".into(), limit: false });
        };
        let Stacks { truths, numbers, active: outer } = stacks;
        let mut active = block.mask();
        let mut failure: Option<Failure> = None;
        // The number of entries of `numbers` in use.
        let mut used = 0;
        let mut next = 0;
        while let Some(&operation) = self.operations.get(next) {
            let current = next;
            next += 1;
            let mut wrong = 0;
            let mut zero = 0;
            let mut unread = None;
            match operation {
                Operation::Truth(truth) => truths.push(if truth { u64::MAX } else { 0 }),
                Operation::Deadlock => truths.push(dead),
                Operation::ReadTruth(observable) => {
                    let lanes = &mut numbers[used];
                    observe.read_block(scratch, block, observable, lanes);
                    truths.push(lanes::compare(Comparison::Differ, lanes, |_| 0));
                    wrong = lanes::compare(Comparison::Equal, lanes, |_| UNDEFINED);
                    unread = Some(observable);
                }
                Operation::Not => {
                    let top = pop(truths);
                    truths.push(!top);
                }
                Operation::Either => {
                    let right = pop(truths);
                    let left = pop(truths);
                    truths.push(left | right);
                }
                Operation::Same => {
                    let right = pop(truths);
                    let left = pop(truths);
                    truths.push(!(left ^ right));
                }
                Operation::Enter(junction, leave) => {
                    outer.push(active);
                    let left = pop(truths);
                    truths.push(left);
                    active &= junction.open(left);
                    if active == 0 {
                        next = leave as usize;
                    }
                }
                Operation::Fold(junction, leave) => {
                    let right = pop(truths);
                    let left = pop(truths);
                    let joined = match junction {
                        Junction::And => left & right,
                        Junction::Or => left | right,
                    };
                    truths.push(joined);
                    active &= junction.open(joined);
                    if active == 0 {
                        next = leave as usize;
                    }
                }
                Operation::Leave => active = pop(outer),
                Operation::Number(number) => {
                    numbers[used] = [number; 64];
                    used += 1;
                }
                Operation::Read(observable) => {
                    observe.read_block(scratch, block, observable, &mut numbers[used]);
                    wrong = lanes::compare(Comparison::Equal, &numbers[used], |_| UNDEFINED);
                    unread = Some(observable);
                    used += 1;
                }
                Operation::Negate => wrong = lanes::negate(&mut numbers[used - 1]),
                Operation::Arithmetic(arithmetic) => {
                    used -= 1;
                    let (left, right) = numbers.split_at_mut(used);
                    let (left, right) = (&mut left[used - 1], &right[0]);
                    wrong = match arithmetic {
                        Arithmetic::Add => lanes::add(left, right),
                        Arithmetic::Subtract => lanes::subtract(left, right),
                        Arithmetic::Multiply => lanes::multiply(left, right),
                        Arithmetic::Divide => lanes::divide(left, right),
                        Arithmetic::Remainder => lanes::remainder(left, right),
                    };
                    if wrong != 0 && matches!(arithmetic, Arithmetic::Divide | Arithmetic::Remainder) {
                        zero = lanes::compare(Comparison::Equal, right, |_| 0);
                    }
                }
                Operation::Compare(comparison) => {
                    used -= 2;
                    let (left, right) = (&numbers[used], &numbers[used + 1]);
                    truths.push(lanes::compare(comparison, left, |index| right[index]));
                }
                Operation::CompareWith(comparison, number) => {
                    used -= 1;
                    truths.push(lanes::compare(comparison, &numbers[used], |_| number));
                }
            }
            let counts = wrong & active;
            if counts != 0 {
                let state = counts.trailing_zeros();
                // I2: a later error in the same state does not replace the first.
                if failure.as_ref().is_none_or(|first| state < first.state) {
                    let why = match unread {
                        Some(observable) => Why::Unread(observable),
                        None if zero >> state & 1 == 1 => Why::Zero,
                        None => Why::Overflow,
                    };
                    failure = Some(Failure { state, operation: current, why });
                }
            }
        }
        match failure {
            None if self.numeric => Ok(0),
            None => Ok(pop(truths) & block.mask()),
            Some(failure) => Err(self.undefined(failure, observe, scratch, block)),
        }
    }

    #[cold]
    fn undefined(&self, failure: Failure, observe: &dyn Observe, scratch: &mut Scratch, block: &Block) -> Undefined {
        let fault = |message: &str| NoValue { message: message.into(), limit: false };
        let NoValue { message: why, limit } = match failure.why {
            Why::Zero => fault("division by zero"),
            Why::Overflow => fault("overflow of 64 bits"),
            Why::Unread(observable) => {
                let state = block.states().iter().nth(failure.state as usize).unwrap_or_default();
                observe.why_undefined(scratch, state, observable)
            }
        };
        let piece = self.places.get(failure.operation).and_then(|place| self.source.get(place.range())).unwrap_or("");
        Undefined { state: failure.state as usize, message: format!("{why} in `{}`", shortened(piece)), limit }
    }
}

#[inline]
fn pop(stack: &mut Vec<u64>) -> u64 {
    match stack.pop() {
        Some(top) => top,
        None => unreachable!("I1: the checker makes programs that pop only what they pushed"),
    }
}
