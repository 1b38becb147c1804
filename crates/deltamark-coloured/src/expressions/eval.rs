//! Evaluates expressions and functions.
//!
//! In: an expression, the values of its variables, perhaps a marking. Out: a value, or a [`Fault`] with its
//! span. What stays true: every evaluation terminates. Steps, nesting
//! depth and memory are bounded; exceeding a bound says nothing about the model ([`FaultKind::is_limit`]).
//!
//! Temporaries of functions are freed when they return, and collected in loops ([`Drafts`]); only the result
//! enters the table of values.
//!
//! A tree-walking interpreter. The engine memoises the results by token, so an expression is evaluated once
//! for each combination of tokens and not once for each state.

use std::cmp::Ordering;

use deltamark_core::{Control, Span};

use crate::expressions::drafts::{Drafts, bounded};
use crate::net::{
    Binary, Domain, End, Expr, ExprKind, Fault, FaultKind, Fold, Function, FunctionId, Iteration, PlaceId, Stat, Unary,
    Value,
};
use crate::tables::chunks::Meter;
use crate::tables::values::{Code, Room, Values};

/// The maximum depth of nested expressions and calls. A level takes a few hundred bytes of stack, and a
/// thread has at least two megabytes.
const DEEPEST: u32 = 2_000;
/// The maximum number of steps of one evaluation: about a second.
const MOST_STEPS: u64 = 50_000_000;
/// The steps between two polls of the control: some ten milliseconds.
const POLLED_STEPS: u64 = 1 << 19;
/// The steps charged for making a structure, vector, list or set, and for each of its elements.
const SEQUENCE_STEPS: u64 = 16;
const ELEMENT_STEPS: u64 = 4;
/// The words allocated between two requests for memory: 256 kilobytes.
const ASKED_WORDS: usize = 1 << 15;
/// The words of an element of a [`Value`].
const WORDS_OF_VALUE: usize = size_of::<Value>() / size_of::<Code>();
/// Elements read in one step.
const LOOKED_AT: u64 = 8;

/// A marking that expressions can read.
pub(crate) trait Look {
    /// The tokens of a place: number and multiplicity.
    fn tokens(&self, place: PlaceId) -> Vec<(u32, u64)>;
    /// The number of distinct tokens in a place.
    fn distinct(&self, place: PlaceId) -> u64;
    /// The number of tokens in a place.
    fn total(&self, place: PlaceId) -> u64;
    /// A component of a token.
    fn component(&self, place: PlaceId, token: u32, index: u32) -> Code;
}

/// The evaluator.
pub(crate) struct Eval<'a> {
    functions: &'a [Function],
    drafts: Drafts<'a>,
    marking: Option<&'a dyn Look>,
    watch: Option<&'a Control>,
    steps: u64,
    /// The steps after which the control is polled, or after which there are too many.
    until: u64,
    depth: u32,
    /// The number of function calls in progress.
    calls: u32,
    /// The number of drafts that callers and loops over elements may refer to.
    floor: usize,
    /// The words allocated since memory was asked for.
    unasked: usize,
}

type Evaluated = Result<Code, Fault>;

/// The body of an iteration, called for each combination of values while it returns true.
type Visit<'v, 'a> = dyn FnMut(&mut Eval<'a>, &mut [Code]) -> Result<bool, Fault> + 'v;

/// The outcome of a statement.
enum Flow {
    Next,
    Return(Code),
}

/// Evaluates an expression that uses no variables and no marking, as front ends need for
/// constants, bounds of types and the like. The functions it calls must be defined.
pub fn constant(functions: &[Function], expression: &Expr) -> Result<Value, Fault> {
    let values = Values::new(&Meter::default());
    let mut frame = vec![0; variables_of(expression)];
    let code = Eval::new(functions, &values, None).eval(expression, &mut frame)?;
    Ok(values.value(code))
}

/// The length of the frame that an expression needs.
fn variables_of(expression: &Expr) -> usize {
    let mut most = 0;
    expression.visit(&mut |expression| {
        let mut see = |var: crate::net::Var| most = most.max(var.0 as usize + 1);
        match &expression.kind {
            ExprKind::Var(var) => see(*var),
            ExprKind::Fold { iterations, .. } => iterations.iter().for_each(|iteration| see(iteration.variable)),
            _ => {}
        }
    });
    most
}

impl<'a> Eval<'a> {
    /// An evaluator, perhaps with a marking.
    pub fn new(functions: &'a [Function], values: &'a Values, marking: Option<&'a dyn Look>) -> Self {
        let (drafts, until) = (Drafts::new(values), POLLED_STEPS);
        Eval { functions, drafts, marking, watch: None, steps: 0, until, depth: 0, calls: 0, floor: 0, unasked: 0 }
    }

    /// The same, which ends when this control does.
    pub fn under(mut self, control: Option<&'a Control>) -> Self {
        self.watch = control;
        self
    }

    /// Charges steps.
    #[inline]
    fn count(&mut self, steps: u64, span: Span) -> Result<(), Fault> {
        self.steps += steps;
        if self.steps > self.until { self.poll(span) } else { Ok(()) }
    }

    #[cold]
    fn poll(&mut self, span: Span) -> Result<(), Fault> {
        if self.steps > MOST_STEPS {
            return fault(FaultKind::Endless, span);
        }
        if self.watch.is_some_and(|control| control.stop_without_memory().is_some()) {
            return fault(FaultKind::Stopped, span);
        }
        self.until = (self.steps + POLLED_STEPS).min(MOST_STEPS);
        Ok(())
    }

    /// The value of a boolean expression.
    pub fn truth(&mut self, expression: &Expr, frame: &mut [Code]) -> Result<bool, Fault> {
        Ok(self.eval(expression, frame)? != 0)
    }

    /// The value of an expression. Inside a function it may be a draft.
    pub fn eval(&mut self, expression: &Expr, frame: &mut [Code]) -> Evaluated {
        // The two most frequent kinds are not counted as steps.
        match &expression.kind {
            ExprKind::Var(var) => return Ok(frame[var.0 as usize]),
            ExprKind::Const(Value::Int(number)) => return Ok(Code::from(*number)),
            _ => {}
        }
        let span = expression.span;
        self.count(1, span)?;
        if self.depth >= DEEPEST {
            return fault(FaultKind::Recursion, span);
        }
        self.depth += 1;
        let result = self.compute(&expression.kind, span, frame);
        self.depth -= 1;
        result
    }

    fn compute(&mut self, kind: &ExprKind, span: Span, frame: &mut [Code]) -> Evaluated {
        match kind {
            ExprKind::Var(var) => Ok(frame[var.0 as usize]),
            ExprKind::Const(value) => {
                self.charge(size_of_value(value), span)?;
                Ok(self.drafts.values.code(value))
            }
            ExprKind::Unary(op, of) => {
                let value = self.eval(of, frame)?;
                match op {
                    Unary::Neg => bounded(value.checked_neg()).map_or_else(|| fault(FaultKind::OutOfRange, span), Ok),
                    Unary::Not => Ok(Code::from(value == 0)),
                }
            }
            ExprKind::Binary(op, one, other) => self.binary(*op, one, other, span, frame),
            ExprKind::Check { of, low, high, fault: kind } => {
                let value = self.eval(of, frame)?;
                if (Code::from(*low)..=Code::from(*high)).contains(&value) { Ok(value) } else { fault(*kind, span) }
            }
            ExprKind::Wrap(of, modulus) => Ok(self.eval(of, frame)?.rem_euclid(Code::from((*modulus).max(1)))),
            ExprKind::Cycle { of, low, high, by } => {
                let (low, high) = (Code::from(*low), Code::from(*high));
                let value = self.eval(of, frame)?;
                let moved = value.wrapping_sub(low).wrapping_add(Code::from(*by));
                Ok(low + moved.rem_euclid((high - low + 1).max(1)))
            }
            ExprKind::If(condition, one, other) => {
                let chosen = if self.truth(condition, frame)? { one } else { other };
                self.eval(chosen, frame)
            }
            ExprKind::Call(function, arguments) => self.call(*function, arguments, span, frame),
            ExprKind::Fold { fold, iterations, filter, body } => {
                self.fold(*fold, iterations, filter.as_deref(), body.as_deref(), span, frame)
            }
            ExprKind::Host { host, number, arguments, .. } => {
                let codes = self.all(arguments, frame)?;
                let mut arguments = Vec::with_capacity(codes.len());
                for code in codes {
                    if Values::is_sequence(code) {
                        self.ask(WORDS_OF_VALUE * self.drafts.len(code), span)?;
                    }
                    arguments.push(self.drafts.values.value(code));
                }
                let room = Room::of(self.drafts.values, self.watch);
                match host.0.eval(*number, &arguments, &|bytes| room.grants(bytes)) {
                    Ok(value) => {
                        // The code of each element, in a list and in the table.
                        self.ask(2 * size_of_value(&value), span)?;
                        Ok(self.drafts.values.code(&value))
                    }
                    Err(number) => fault(room.why(host, number), span),
                }
            }
            ExprKind::Component { token, place, index } => {
                let token = frame[token.0 as usize] as u32;
                Ok(self.look().map_or(0, |marking| marking.component(*place, token, *index)))
            }
            ExprKind::Distinct(place) => Ok(self.look().map_or(0, |marking| marking.distinct(*place) as Code)),
            ExprKind::Total(place) => Ok(self.look().map_or(0, |marking| marking.total(*place) as Code)),
            _ => self.sequence(kind, span, frame),
        }
    }

    fn look(&self) -> Option<&'a dyn Look> {
        debug_assert!(self.marking.is_some(), "front ends let only those look at the marking who may");
        self.marking
    }

    fn binary(&mut self, op: Binary, one: &Expr, other: &Expr, span: Span, frame: &mut [Code]) -> Evaluated {
        let left = self.eval(one, frame)?;
        match op {
            Binary::And if left == 0 => return Ok(0),
            Binary::Or if left != 0 => return Ok(1),
            _ => {}
        }
        let right = self.eval(other, frame)?;
        let checked = |result: Option<Code>| bounded(result).map_or_else(|| fault(FaultKind::OutOfRange, span), Ok);
        match op {
            Binary::Add => checked(left.checked_add(right)),
            Binary::Sub => checked(left.checked_sub(right)),
            Binary::Mul => checked(left.checked_mul(right)),
            Binary::Div | Binary::Rem if right == 0 => fault(FaultKind::DivisionByZero, span),
            Binary::Div => checked(left.checked_div(right)),
            Binary::Rem => checked(left.checked_rem(right)),
            Binary::And | Binary::Or => Ok(Code::from(right != 0)),
            Binary::Eq => Ok(Code::from(self.drafts.same(left, right))),
            Binary::Ne => Ok(Code::from(!self.drafts.same(left, right))),
            Binary::Lt => Ok(Code::from(left < right)),
            Binary::Le => Ok(Code::from(left <= right)),
            Binary::Gt => Ok(Code::from(left > right)),
            Binary::Ge => Ok(Code::from(left >= right)),
        }
    }

    fn all(&mut self, expressions: &[Expr], frame: &mut [Code]) -> Result<Vec<Code>, Fault> {
        expressions.iter().map(|expression| self.eval(expression, frame)).collect()
    }

    /// A sequence of these elements.
    fn make(&mut self, elements: &[Code], span: Span) -> Evaluated {
        self.ask(elements.len() + self.drafts.growth(elements.len()), span)?;
        self.count(SEQUENCE_STEPS + ELEMENT_STEPS * elements.len() as u64, span)?;
        // Outside functions most sequences are kept anyway.
        Ok(if self.calls == 0 { self.drafts.values.sequence(elements) } else { self.drafts.make(elements) })
    }

    /// Charges the steps for reading elements.
    fn charge(&mut self, elements: usize, span: Span) -> Result<(), Fault> {
        self.count(elements as u64 / LOOKED_AT, span)
    }

    /// Asks for memory before words are allocated. Only large requests, and many small ones, cost more than
    /// an addition.
    #[inline]
    fn ask(&mut self, words: usize, span: Span) -> Result<(), Fault> {
        self.unasked += words;
        if self.unasked >= ASKED_WORDS {
            let bytes = size_of::<Code>() * std::mem::take(&mut self.unasked);
            if !self.drafts.values.allows(bytes as u64) {
                return fault(FaultKind::Memory, span);
            }
        }
        Ok(())
    }

    fn elements(&mut self, sequence: Code, span: Span) -> Result<Vec<Code>, Fault> {
        let len = self.drafts.len(sequence);
        self.charge(len, span)?;
        self.ask(len, span)?;
        Ok(self.drafts.elements(sequence))
    }

    /// A set of these elements, unordered and possibly with duplicates.
    fn set(&mut self, mut elements: Vec<Code>, capacity: Option<u32>, span: Span) -> Evaluated {
        elements.sort_by(|&one, &other| self.drafts.compare(one, other));
        elements.dedup_by(|one, other| self.drafts.same(*one, *other));
        if capacity.is_some_and(|capacity| elements.len() > capacity as usize) {
            return fault(FaultKind::ContainerOverflow, span);
        }
        self.make(&elements, span)
    }

    /// Whether a sorted set contains this element.
    fn has(&self, sorted: &[Code], element: Code) -> bool {
        sorted.binary_search_by(|&known| self.drafts.compare(known, element)).is_ok()
    }

    fn sequence(&mut self, kind: &ExprKind, span: Span, frame: &mut [Code]) -> Evaluated {
        match kind {
            ExprKind::Row(elements) => {
                let elements = self.all(elements, frame)?;
                self.make(&elements, span)
            }
            ExprKind::List(elements, capacity) => {
                let elements = self.all(elements, frame)?;
                if elements.len() > *capacity as usize {
                    return fault(FaultKind::ContainerOverflow, span);
                }
                self.make(&elements, span)
            }
            ExprKind::Set(elements, capacity) => {
                let elements = self.all(elements, frame)?;
                self.set(elements, Some(*capacity), span)
            }
            // One element of a constant does not need the whole constant.
            ExprKind::Item { of, index, fault: kind } if matches!(of.kind, ExprKind::Const(Value::Seq(_))) => {
                let index = self.eval(index, frame)?;
                let ExprKind::Const(Value::Seq(elements)) = &of.kind else { return fault(*kind, span) };
                match usize::try_from(index).ok().and_then(|index| elements.get(index)) {
                    Some(element) => {
                        self.charge(size_of_value(element), span)?;
                        Ok(self.drafts.values.code(element))
                    }
                    None => fault(*kind, span),
                }
            }
            ExprKind::Item { of, index, fault: kind } => {
                let of = self.eval(of, frame)?;
                let index = self.eval(index, frame)?;
                self.drafts.element(of, index).map_or_else(|| fault(*kind, span), Ok)
            }
            ExprKind::Replace { of, index, value, fault: kind } => {
                let mut elements = {
                    let of = self.eval(of, frame)?;
                    self.elements(of, span)?
                };
                let index = self.eval(index, frame)?;
                let value = self.eval(value, frame)?;
                match usize::try_from(index).ok().and_then(|index| elements.get_mut(index)) {
                    Some(element) => *element = value,
                    None => return fault(*kind, span),
                }
                self.make(&elements, span)
            }
            ExprKind::Slice { of, from, to } => {
                let of = self.eval(of, frame)?;
                let (from, to) = (self.eval(from, frame)?, self.eval(to, frame)?);
                if to < from {
                    return self.make(&[], span);
                }
                let elements = self.elements(of, span)?;
                let chosen = usize::try_from(from).ok().zip(usize::try_from(to).ok());
                match chosen.and_then(|(from, to)| elements.get(from..=to)) {
                    Some(chosen) => self.make(chosen, span),
                    None => fault(FaultKind::Slice, span),
                }
            }
            ExprKind::Concat(one, other, capacity) => {
                let (one, other) = (self.eval(one, frame)?, self.eval(other, frame)?);
                let mut elements = self.elements(one, span)?;
                elements.extend(self.elements(other, span)?);
                if elements.len() > *capacity as usize {
                    return fault(FaultKind::ListOverflow, span);
                }
                self.make(&elements, span)
            }
            ExprKind::Union(one, other, capacity) => {
                let (one, other) = (self.eval(one, frame)?, self.eval(other, frame)?);
                let mut elements = self.elements(one, span)?;
                elements.extend(self.elements(other, span)?);
                self.set(elements, Some(*capacity), span)
            }
            ExprKind::Intersect(one, other) | ExprKind::Difference(one, other) => {
                let (one, other) = (self.eval(one, frame)?, self.eval(other, frame)?);
                let (mut kept, others) = (self.elements(one, span)?, self.elements(other, span)?);
                let keep = matches!(kind, ExprKind::Intersect(..));
                kept.retain(|&element| self.has(&others, element) == keep);
                self.make(&kept, span)
            }
            ExprKind::In(element, of) => {
                let (element, of) = (self.eval(element, frame)?, self.eval(of, frame)?);
                self.charge(self.drafts.len(of), span)?;
                Ok(Code::from(self.drafts.contains(of, element)))
            }
            ExprKind::Subset(one, other, proper) => {
                let (one, other) = (self.eval(one, frame)?, self.eval(other, frame)?);
                let (some, others) = (self.elements(one, span)?, self.elements(other, span)?);
                let subset = some.into_iter().all(|element| self.has(&others, element));
                Ok(Code::from(subset && !(*proper && self.drafts.same(one, other))))
            }
            ExprKind::Size(of) => {
                let of = self.eval(of, frame)?;
                Ok(self.drafts.len(of) as Code)
            }
            ExprKind::End(end, of) => {
                let of = self.eval(of, frame)?;
                let last = self.drafts.len(of) as Code - 1;
                if last < 0 {
                    return fault(FaultKind::EmptyList, span);
                }
                let element =
                    |index: Code| self.drafts.element(of, index).map_or_else(|| fault(FaultKind::EmptyList, span), Ok);
                match end {
                    End::First => element(0),
                    End::Last => element(last),
                    End::LastIndex => Ok(last),
                    End::Prefix => {
                        let elements = self.elements(of, span)?;
                        self.make(&elements[..elements.len() - 1], span)
                    }
                    End::Suffix => {
                        let elements = self.elements(of, span)?;
                        self.make(&elements[1..], span)
                    }
                }
            }
            _ => unreachable!("every other kind is no matter of sequences"),
        }
    }

    fn call(&mut self, function: FunctionId, arguments: &[Expr], span: Span, frame: &mut [Code]) -> Evaluated {
        let function = &self.functions[function.0 as usize];
        let mut inner = vec![0; (function.frame as usize).max(arguments.len())];
        for (slot, argument) in inner.iter_mut().zip(arguments) {
            *slot = self.eval(argument, frame)?;
        }
        let before = self.drafts.count();
        let floor = std::mem::replace(&mut self.floor, before);
        self.calls += 1;
        let flow = self.run(&function.body, &mut inner);
        self.calls -= 1;
        self.floor = floor;
        match flow? {
            Flow::Return(value) => {
                let value = if self.calls == 0 { self.drafts.keep(value) } else { value };
                // No other value refers to the temporaries of the call.
                self.drafts.forget(before, value);
                Ok(value)
            }
            Flow::Next => fault(FaultKind::NoReturn, span),
        }
    }

    fn run(&mut self, body: &[Stat], frame: &mut [Code]) -> Result<Flow, Fault> {
        for stat in body {
            self.steps += 1;
            let flow = match stat {
                Stat::Assign(var, value) => {
                    frame[var.0 as usize] = self.eval(value, frame)?;
                    if self.drafts.is_due() {
                        self.ask(self.drafts.count() - self.floor, value.span)?;
                        self.drafts.collect(self.floor, frame);
                    }
                    Flow::Next
                }
                Stat::If(condition, one, other) => {
                    let chosen = if self.truth(condition, frame)? { one } else { other };
                    self.nested(chosen, condition.span, frame)?
                }
                Stat::Case(of, cases, default) => {
                    let value = self.eval(of, frame)?;
                    let chosen = cases.iter().find(|(label, _)| Code::from(*label) == value);
                    self.nested(chosen.map_or(default, |(_, body)| body), of.span, frame)?
                }
                Stat::While(condition, body) => {
                    let mut flow = Flow::Next;
                    while matches!(flow, Flow::Next) && self.truth(condition, frame)? {
                        self.count(1, condition.span)?;
                        flow = self.nested(body, condition.span, frame)?;
                    }
                    flow
                }
                Stat::For(iterations, body) => {
                    let mut flow = Flow::Next;
                    self.iterate(iterations, frame, &mut |eval, frame| {
                        flow = eval.run(body, frame)?;
                        Ok(matches!(flow, Flow::Next))
                    })?;
                    flow
                }
                Stat::Return(value) => Flow::Return(self.eval(value, frame)?),
                Stat::Assert(condition) => {
                    if !self.truth(condition, frame)? {
                        return Err(Fault { kind: FaultKind::Assertion, span: condition.span });
                    }
                    Flow::Next
                }
            };
            if let Flow::Return(_) = flow {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn nested(&mut self, body: &[Stat], span: Span, frame: &mut [Code]) -> Result<Flow, Fault> {
        if self.depth >= DEEPEST {
            return Err(Fault { kind: FaultKind::Recursion, span });
        }
        self.depth += 1;
        let flow = self.run(body, frame);
        self.depth -= 1;
        flow
    }

    /// Calls `visit` for each combination of values until it returns false.
    fn iterate(
        &mut self,
        iterations: &[Iteration],
        frame: &mut [Code],
        visit: &mut Visit<'_, 'a>,
    ) -> Result<bool, Fault> {
        let Some((first, rest)) = iterations.split_first() else { return visit(self, frame) };
        let slot = first.variable.0 as usize;
        let (span, values): (Span, Box<dyn Iterator<Item = Code>>) = match &first.domain {
            Domain::Range(low, high) => (low.span, Box::new(self.eval(low, frame)?..=self.eval(high, frame)?)),
            Domain::Elements(of) => {
                let container = self.eval(of, frame)?;
                (of.span, Box::new(self.elements(container, of.span)?.into_iter()))
            }
            Domain::Place(place) => {
                let tokens = self.look().map_or_else(Vec::new, |marking| marking.tokens(*place));
                (Span::at(0), Box::new(tokens.into_iter().map(|(token, _)| Code::from(token))))
            }
        };
        if self.depth >= DEEPEST {
            return Err(Fault { kind: FaultKind::Recursion, span });
        }
        self.depth += 1;
        // The values to come may be drafts.
        let floor = std::mem::replace(&mut self.floor, self.drafts.count());
        let mut goes_on = true;
        for value in values {
            self.count(1, span)?;
            frame[slot] = value;
            goes_on = self.iterate(rest, frame, visit)?;
            if !goes_on {
                break;
            }
        }
        self.floor = floor;
        self.depth -= 1;
        Ok(goes_on)
    }

    fn fold(
        &mut self,
        fold: Fold,
        iterations: &[Iteration],
        filter: Option<&Expr>,
        body: Option<&Expr>,
        span: Span,
        frame: &mut [Code],
    ) -> Evaluated {
        let mut result = match fold {
            Fold::Forall | Fold::Product => 1,
            Fold::Exists | Fold::Count | Fold::Mult | Fold::Sum => 0,
            Fold::Min(none) | Fold::Max(none) => Code::from(none),
        };
        let multiplicities = match (fold, iterations) {
            (Fold::Mult, [Iteration { domain: Domain::Place(place), .. }]) => {
                self.look().map_or_else(Vec::new, |marking| marking.tokens(*place))
            }
            _ => Vec::new(),
        };
        let mut first = true;
        self.iterate(iterations, frame, &mut |eval, frame| {
            if let Some(filter) = filter
                && !eval.truth(filter, frame)?
            {
                return Ok(true);
            }
            let value = match body {
                Some(body) => eval.eval(body, frame)?,
                None => 1,
            };
            let overflow = Fault { kind: FaultKind::OutOfRange, span };
            match fold {
                Fold::Forall => result = Code::from(value != 0),
                Fold::Exists => result = 1,
                Fold::Count => result += 1,
                Fold::Mult => {
                    let token = iterations.first().map_or(0, |iteration| frame[iteration.variable.0 as usize]);
                    let found = multiplicities.iter().find(|&&(known, _)| Code::from(known) == token);
                    result += found.map_or(0, |&(_, count)| count as Code);
                }
                Fold::Min(_) => {
                    if first || value.cmp(&result) == Ordering::Less {
                        result = value;
                    }
                }
                Fold::Max(_) => {
                    if first || value.cmp(&result) == Ordering::Greater {
                        result = value;
                    }
                }
                Fold::Sum => result = bounded(result.checked_add(value)).ok_or(overflow)?,
                Fold::Product => result = bounded(result.checked_mul(value)).ok_or(overflow)?,
            }
            first = false;
            Ok(match fold {
                Fold::Forall => result != 0,
                Fold::Exists => false,
                _ => true,
            })
        })?;
        Ok(result)
    }
}

/// The number of nodes of a value's tree.
fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Int(_) => 1,
        Value::Seq(elements) => elements.iter().map(size_of_value).sum::<usize>() + 1,
    }
}

fn fault<T>(kind: FaultKind, span: Span) -> Result<T, Fault> {
    Err(Fault { kind, span })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Var;

    fn expr(kind: ExprKind) -> Expr {
        Expr::new(kind, Span::at(7))
    }

    fn call(argument: Expr) -> Expr {
        expr(ExprKind::Call(FunctionId(0), vec![argument]))
    }

    fn function(frame: u32, body: Vec<Stat>) -> Function {
        Function { name: "f".into(), arguments: 1, frame, body, span: Span::at(0) }
    }

    fn binary(op: Binary, one: Expr, other: Expr) -> Expr {
        expr(ExprKind::Binary(op, Box::new(one), Box::new(other)))
    }

    fn number(value: i32) -> Expr {
        Expr::int(value, Span::at(7))
    }

    fn argument() -> Expr {
        expr(ExprKind::Var(Var(0)))
    }

    /// f(n) = if n = 0 then 0 else 1 + f(n - 1)
    fn recursive() -> Function {
        let less = binary(Binary::Sub, argument(), number(1));
        let more = binary(Binary::Add, number(1), call(less));
        let chosen =
            ExprKind::If(Box::new(binary(Binary::Eq, argument(), number(0))), Box::new(number(0)), Box::new(more));
        function(1, vec![Stat::Return(expr(chosen))])
    }

    #[test]
    fn functions_call_themselves_and_not_for_ever() {
        assert_eq!(constant(&[recursive()], &call(number(300))), Ok(Value::Int(300)));
        // Test threads have two megabytes of stack: the depth limit must come first.
        let fault = constant(&[recursive()], &call(number(1_000_000)));
        assert_eq!(fault.map_err(|fault| fault.kind), Err(FaultKind::Recursion));
    }

    #[test]
    fn loops_end() {
        let forever = function(1, vec![Stat::While(number(1), Vec::new())]);
        let fault = constant(&[forever], &call(number(0)));
        assert_eq!(fault.map_err(|fault| fault.kind), Err(FaultKind::Endless));
    }

    #[test]
    fn what_goes_wrong_is_told_with_its_place() {
        let list = |elements: &[i32]| expr(ExprKind::List(elements.iter().copied().map(number).collect(), 3));
        let cases = [
            (binary(Binary::Div, number(1), number(0)), FaultKind::DivisionByZero),
            (list(&[1, 2, 3, 4]), FaultKind::ContainerOverflow),
            (expr(ExprKind::Concat(Box::new(list(&[1, 2])), Box::new(list(&[3, 4])), 3)), FaultKind::ListOverflow),
            (expr(ExprKind::End(End::First, Box::new(list(&[])))), FaultKind::EmptyList),
            (
                expr(ExprKind::Item { of: Box::new(list(&[5])), index: Box::new(number(1)), fault: FaultKind::Index }),
                FaultKind::Index,
            ),
            (
                expr(ExprKind::Check { of: Box::new(number(9)), low: 0, high: 3, fault: FaultKind::Cast }),
                FaultKind::Cast,
            ),
        ];
        for (expression, kind) in cases {
            assert_eq!(constant(&[], &expression), Err(Fault { kind, span: Span::at(7) }));
        }
    }

    #[test]
    fn sets_are_in_order_without_duplicates() {
        let set = |elements: &[i32]| expr(ExprKind::Set(elements.iter().copied().map(number).collect(), 9));
        let ints = |elements: &[i32]| Ok(Value::Seq(elements.iter().copied().map(Value::Int).collect()));
        assert_eq!(constant(&[], &set(&[3, 1, 3, 2])), ints(&[1, 2, 3]));
        let (one, other) = (|| Box::new(set(&[1, 2, 3])), || Box::new(set(&[3, 4])));
        assert_eq!(constant(&[], &expr(ExprKind::Union(one(), other(), 9))), ints(&[1, 2, 3, 4]));
        assert_eq!(constant(&[], &expr(ExprKind::Intersect(one(), other()))), ints(&[3]));
        assert_eq!(constant(&[], &expr(ExprKind::Difference(one(), other()))), ints(&[1, 2]));
        assert_eq!(constant(&[], &expr(ExprKind::Subset(Box::new(set(&[3])), other(), true))), Ok(Value::Int(1)));
        assert_eq!(constant(&[], &expr(ExprKind::Subset(other(), other(), true))), Ok(Value::Int(0)));
    }

    #[test]
    fn values_go_round() {
        let cycle = |of: i32, by: i32| expr(ExprKind::Cycle { of: Box::new(number(of)), low: 2, high: 4, by });
        for (of, by, result) in [(2, 1, 3), (4, 1, 2), (2, -1, 4), (3, -1, 2)] {
            assert_eq!(constant(&[], &cycle(of, by)), Ok(Value::Int(result)));
        }
        assert_eq!(constant(&[], &expr(ExprKind::Wrap(Box::new(number(-1)), 5))), Ok(Value::Int(4)));
    }
}
