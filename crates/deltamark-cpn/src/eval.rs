//! Values of CPN ML, and the evaluator.
//!
//! In: code whose names are resolved and whose types are right. Out: a value, an exception, or the limit that was
//! reached. What stays true: steps, depth and the elements made are bounded, so every evaluation ends.

use std::sync::Arc;

use crate::basis;
use crate::colours::{ColourFn, Colours};
use crate::values::{Inner, Parts};

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    Unit,
    Bool(bool),
    Int(i64),
    Char(char),
    Str(Arc<str>),
    Tuple(Parts),
    /// Labels ascending, and their values.
    Record(Arc<[String]>, Parts),
    /// The elements from a position on.
    List(Parts, usize),
    Con(u32, Option<Inner>),
    /// A constructor as a function.
    ConFn(u32),
    Select(Arc<str>),
    Closure(Arc<Closure>),
    /// A function of the basis, and its arguments so far.
    Builtin(u16, Parts),
    Colour(ColourFn, u32),
    /// A reference that nobody writes.
    Ref(Inner),
}

/// A function with the frame it was made in; `member` of a recursive group.
#[derive(Debug)]
pub(crate) struct Closure {
    group: Arc<ClosureGroup>,
    member: usize,
}

#[derive(Debug)]
struct ClosureGroup {
    frame: Vec<Val>,
    functions: Arc<[Arc<Lambda>]>,
    recursive: bool,
    depth: u32,
}

/// The code of a function.
#[derive(Debug)]
pub(crate) struct Lambda {
    pub rules: Vec<(Pattern, Code)>,
    /// The length of the frame outside.
    pub base: usize,
    /// The length of the frame inside.
    pub size: usize,
}

#[derive(Debug)]
pub(crate) enum Pattern {
    Wild,
    Bind(usize),
    Int(i64),
    Str(String),
    Char(char),
    Bool(bool),
    Con(u32, Option<Box<Pattern>>),
    Tuple(Vec<Pattern>),
    Record(Vec<(String, Pattern)>),
    List(Vec<Pattern>),
    Cons(Box<Pattern>, Box<Pattern>),
    As(usize, Box<Pattern>),
}

#[derive(Debug)]
pub(crate) enum Code {
    Const(Val),
    Local(usize),
    Global(usize),
    /// A variable of the net.
    Given(usize),
    Tuple(Vec<Code>),
    Record(Arc<[String]>, Vec<Code>),
    List(Vec<Code>),
    App(Box<Code>, Box<Code>),
    If(Box<Code>, Box<Code>, Box<Code>),
    Case(Box<Code>, Vec<(Pattern, Code)>),
    Fn(Arc<Lambda>),
    LetVal(Pattern, Box<Code>, Box<Code>),
    /// The first slot, the functions, what follows.
    LetFun(usize, Arc<[Arc<Lambda>]>, Box<Code>),
    And(Box<Code>, Box<Code>),
    Or(Box<Code>, Box<Code>),
    Raise(Box<Code>),
    Handle(Box<Code>, Vec<(Pattern, Code)>),
    Seq(Vec<Code>),
}

/// Why there is no value.
#[derive(Debug)]
pub(crate) enum Halt {
    Raise(Val),
    Limit(&'static str),
}

pub(crate) type Evaluated = Result<Val, Halt>;

/// What code can see.
pub(crate) struct World<'a> {
    pub globals: &'a [Val],
    pub colours: &'a Colours,
    /// Whether this number of further bytes may be taken; asked for 0 now and then, as the run may have ended.
    pub room: &'a dyn Fn(u64) -> bool,
}

/// One evaluation.
pub(crate) struct Machine<'a> {
    pub world: &'a World<'a>,
    pub given: &'a [Val],
    /// Whether values outside a colour set are let through: a token that nobody can have is not there.
    pub lenient: bool,
    steps: u64,
    /// The steps after which it is asked whether to go on, or after which there are too many.
    until: u64,
    made: u64,
    /// The bytes allocated since memory was asked for.
    unasked: u64,
    depth: u32,
}

const MOST_STEPS: u64 = 20_000_000;
/// The steps between two questions whether to go on: some milliseconds.
const POLLED_STEPS: u64 = 1 << 18;
const MOST_MADE: u64 = 4_000_000;
/// The bytes of an element: a list is made once as it grows, and once as it stays.
pub(crate) const ELEMENT: usize = 2 * size_of::<Val>();
/// The bytes of a letter: likewise.
const LETTER: usize = 2;
/// The bytes allocated between two requests for memory.
const UNASKED: u64 = 1 << 18;
const DEEPEST: u32 = 1_200;
/// The maximum nesting of values; a function counts twice.
const DEEPEST_VALUE: u32 = 1_000;

pub(crate) fn list(items: Vec<Val>) -> Val {
    Val::List(items.into(), 0)
}

impl Val {
    /// The elements of a list.
    pub fn items(&self) -> &[Val] {
        match self {
            Val::List(items, from) => &items[*from..],
            _ => &[],
        }
    }

    pub fn int(&self) -> i64 {
        if let Val::Int(number) = self { *number } else { 0 }
    }

    pub fn truth(&self) -> bool {
        matches!(self, Val::Bool(true))
    }

    pub fn text(&self) -> &str {
        if let Val::Str(text) = self { text } else { "" }
    }

    /// Component number `at` of a tuple.
    pub fn part(&self, at: usize) -> Val {
        match self {
            Val::Tuple(parts) => parts.get(at).cloned().unwrap_or(Val::Unit),
            _ => Val::Unit,
        }
    }

    /// How deep values are nested in it.
    pub fn depth(&self) -> u32 {
        match self {
            Val::Closure(closure) => closure.group.depth,
            Val::Tuple(parts) | Val::Record(_, parts) | Val::List(parts, _) | Val::Builtin(_, parts) => parts.depth(),
            Val::Con(_, Some(of)) | Val::Ref(of) => of.depth(),
            _ => 0,
        }
    }
}

impl<'a> Machine<'a> {
    pub fn new(world: &'a World<'a>, given: &'a [Val]) -> Self {
        Machine { world, given, lenient: false, steps: 0, until: POLLED_STEPS, made: 0, unasked: 0, depth: 0 }
    }

    /// Charges steps.
    pub fn charge(&mut self, steps: usize) -> Result<(), Halt> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > self.until { self.poll() } else { Ok(()) }
    }

    #[cold]
    fn poll(&mut self) -> Result<(), Halt> {
        if self.steps > MOST_STEPS {
            return Err(Halt::Limit("the evaluation takes more than 20 million steps"));
        }
        if !(self.world.room)(0) {
            return Err(Halt::Limit("the run ended during the evaluation"));
        }
        self.until = (self.steps + POLLED_STEPS).min(MOST_STEPS);
        Ok(())
    }

    /// Charges elements that are made.
    pub fn make(&mut self, elements: usize) -> Result<(), Halt> {
        self.count(elements)?;
        self.want(elements.saturating_mul(ELEMENT))
    }

    /// Charges letters of a string that is made.
    pub fn make_text(&mut self, letters: usize) -> Result<(), Halt> {
        self.count(letters)?;
        self.want(letters.saturating_mul(LETTER))
    }

    fn count(&mut self, elements: usize) -> Result<(), Halt> {
        self.made = self.made.saturating_add(elements as u64);
        self.charge(elements)?;
        if self.made > MOST_MADE {
            Err(Halt::Limit("the evaluation makes more than 4 million elements"))
        } else {
            Ok(())
        }
    }

    /// Asks for memory before it is allocated. Only large requests, and many small ones, cost more than an addition.
    pub fn want(&mut self, bytes: usize) -> Result<(), Halt> {
        self.unasked = self.unasked.saturating_add(bytes as u64);
        if self.unasked >= UNASKED && !(self.world.room)(std::mem::take(&mut self.unasked)) {
            return Err(Halt::Limit("the evaluation takes more memory than the limit leaves"));
        }
        Ok(())
    }

    pub fn run(&mut self, code: &Code, size: usize) -> Evaluated {
        let mut frame = vec![Val::Unit; size];
        self.eval(code, &mut frame)
    }

    pub fn eval(&mut self, code: &Code, frame: &mut Vec<Val>) -> Evaluated {
        match code {
            Code::Const(value) => return Ok(value.clone()),
            Code::Local(slot) => return Ok(frame[*slot].clone()),
            Code::Global(number) => return Ok(self.world.globals[*number].clone()),
            Code::Given(number) => return Ok(self.given[*number].clone()),
            _ => {}
        }
        self.charge(1)?;
        if self.depth >= DEEPEST {
            return Err(Halt::Limit("calls are nested too deeply"));
        }
        self.depth += 1;
        let result = self.compute(code, frame).and_then(shallow);
        self.depth -= 1;
        result
    }

    fn all(&mut self, parts: &[Code], frame: &mut Vec<Val>) -> Result<Vec<Val>, Halt> {
        self.make(parts.len())?;
        let mut values = Vec::with_capacity(parts.len());
        for part in parts {
            values.push(self.eval(part, frame)?);
        }
        Ok(values)
    }

    fn compute(&mut self, code: &Code, frame: &mut Vec<Val>) -> Evaluated {
        match code {
            Code::Const(_) | Code::Local(_) | Code::Global(_) | Code::Given(_) => self.eval(code, frame),
            Code::Tuple(parts) => Ok(Val::Tuple(self.all(parts, frame)?.into())),
            Code::Record(labels, parts) => Ok(Val::Record(labels.clone(), self.all(parts, frame)?.into())),
            Code::List(parts) => Ok(list(self.all(parts, frame)?)),
            Code::App(function, argument) => {
                let function = self.eval(function, frame)?;
                let argument = self.eval(argument, frame)?;
                self.apply(&function, argument)
            }
            Code::If(condition, one, other) => {
                let chosen = if self.eval(condition, frame)?.truth() { one } else { other };
                self.eval(chosen, frame)
            }
            Code::And(one, other) => {
                if self.eval(one, frame)?.truth() {
                    self.eval(other, frame)
                } else {
                    Ok(Val::Bool(false))
                }
            }
            Code::Or(one, other) => {
                if self.eval(one, frame)?.truth() {
                    Ok(Val::Bool(true))
                } else {
                    self.eval(other, frame)
                }
            }
            Code::Case(of, rules) => {
                let value = self.eval(of, frame)?;
                self.rules(rules, &value, frame)?.unwrap_or_else(|| raise(basis::MATCH))
            }
            Code::Fn(lambda) => self.close(frame[..lambda.base].to_vec(), Arc::new([lambda.clone()]), false, 0),
            Code::LetVal(pattern, value, body) => {
                let value = self.eval(value, frame)?;
                if !self.matches(pattern, &value, frame)? {
                    return raise(basis::BIND);
                }
                self.eval(body, frame)
            }
            Code::LetFun(first, functions, body) => {
                for member in 0..functions.len() {
                    let closure = self.close(frame[..*first].to_vec(), functions.clone(), true, member)?;
                    frame[first + member] = closure;
                }
                self.eval(body, frame)
            }
            Code::Raise(of) => Err(Halt::Raise(self.eval(of, frame)?)),
            Code::Handle(of, rules) => {
                let depth = self.depth;
                match self.eval(of, frame) {
                    Err(Halt::Raise(exception)) => {
                        self.depth = depth;
                        self.rules(rules, &exception, frame)?.unwrap_or(Err(Halt::Raise(exception)))
                    }
                    other => other,
                }
            }
            Code::Seq(parts) => {
                let mut last = Val::Unit;
                for part in parts {
                    last = self.eval(part, frame)?;
                }
                Ok(last)
            }
        }
    }

    fn close(&mut self, frame: Vec<Val>, functions: Arc<[Arc<Lambda>]>, recursive: bool, member: usize) -> Evaluated {
        self.make(frame.len() + 1)?;
        let depth = frame.iter().map(Val::depth).max().unwrap_or(0) + 2;
        let group = Arc::new(ClosureGroup { frame, functions, recursive, depth });
        Ok(Val::Closure(Arc::new(Closure { group, member })))
    }

    fn rules(
        &mut self,
        rules: &[(Pattern, Code)],
        value: &Val,
        frame: &mut Vec<Val>,
    ) -> Result<Option<Evaluated>, Halt> {
        for (pattern, body) in rules {
            if self.matches(pattern, value, frame)? {
                return Ok(Some(self.eval(body, frame)));
            }
        }
        Ok(None)
    }

    /// Applies a function.
    pub fn apply(&mut self, function: &Val, argument: Val) -> Evaluated {
        self.result(function, argument).and_then(shallow)
    }

    fn result(&mut self, function: &Val, argument: Val) -> Evaluated {
        self.charge(1)?;
        match function {
            Val::Closure(closure) => {
                if self.depth >= DEEPEST {
                    return Err(Halt::Limit("calls are nested too deeply"));
                }
                let lambda = &closure.group.functions[closure.member];
                self.charge(lambda.size)?;
                let mut frame = Vec::with_capacity(lambda.size);
                frame.extend_from_slice(&closure.group.frame);
                if closure.group.recursive {
                    for member in 0..closure.group.functions.len() {
                        frame.push(Val::Closure(Arc::new(Closure { group: closure.group.clone(), member })));
                    }
                }
                frame.resize(lambda.size, Val::Unit);
                self.depth += 1;
                let result = self.rules(&lambda.rules, &argument, &mut frame);
                self.depth -= 1;
                result?.unwrap_or_else(|| raise(basis::MATCH))
            }
            Val::ConFn(number) => {
                self.make(1)?;
                Ok(Val::Con(*number, Some(Inner::new(argument))))
            }
            Val::Select(label) => match &argument {
                Val::Tuple(parts) => {
                    let at = label.parse::<usize>().unwrap_or(0);
                    Ok(parts.get(at.wrapping_sub(1)).cloned().unwrap_or(Val::Unit))
                }
                Val::Record(labels, parts) => {
                    let at = labels.iter().position(|known| **known == **label);
                    Ok(at.map_or(Val::Unit, |at| parts[at].clone()))
                }
                _ => Err(Halt::Limit("a field is taken of something that has none")),
            },
            Val::Builtin(number, before) => basis::apply(self, *number, before, argument),
            Val::Colour(which, of) => self.world.colours.apply(self, *which, *of, &argument),
            _ => Err(Halt::Limit("something that is no function is applied")),
        }
    }

    fn matches(&mut self, pattern: &Pattern, value: &Val, frame: &mut Vec<Val>) -> Result<bool, Halt> {
        self.charge(1)?;
        Ok(match (pattern, value) {
            (Pattern::Wild, _) => true,
            (Pattern::Bind(slot), _) => {
                frame[*slot] = value.clone();
                true
            }
            (Pattern::As(slot, inner), _) => {
                frame[*slot] = value.clone();
                self.matches(inner, value, frame)?
            }
            (Pattern::Int(one), Val::Int(other)) => one == other,
            (Pattern::Str(one), Val::Str(other)) => **one == **other,
            (Pattern::Char(one), Val::Char(other)) => one == other,
            (Pattern::Bool(one), Val::Bool(other)) => one == other,
            (Pattern::Con(one, inner), Val::Con(other, argument)) => {
                one == other
                    && match (inner, argument) {
                        (Some(inner), Some(argument)) => self.matches(inner, argument, frame)?,
                        (None, _) => true,
                        _ => false,
                    }
            }
            (Pattern::Tuple(parts), Val::Unit) => parts.is_empty(),
            (Pattern::Tuple(parts), Val::Tuple(values)) => {
                for (part, value) in parts.iter().zip(values.iter()) {
                    if !self.matches(part, value, frame)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Pattern::Record(fields), Val::Record(labels, values)) => {
                for (label, part) in fields {
                    let Some(at) = labels.iter().position(|known| known == label) else { return Ok(false) };
                    if !self.matches(part, &values[at], frame)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Pattern::Record(fields), Val::Tuple(values)) => {
                for (label, part) in fields {
                    let at = label.parse::<usize>().unwrap_or(0).wrapping_sub(1);
                    let Some(value) = values.get(at) else { return Ok(false) };
                    if !self.matches(part, value, frame)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Pattern::List(parts), Val::List(..)) => {
                let items = value.items();
                if parts.len() != items.len() {
                    return Ok(false);
                }
                for (part, item) in parts.iter().zip(items) {
                    if !self.matches(part, item, frame)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Pattern::Cons(head, tail), Val::List(items, from)) => match items.get(*from) {
                Some(first) => {
                    self.matches(head, first, frame)?
                        && self.matches(tail, &Val::List(items.clone(), from + 1), frame)?
                }
                None => false,
            },
            _ => false,
        })
    }

    /// Whether two values are equal.
    pub fn equal(&mut self, one: &Val, other: &Val) -> Result<bool, Halt> {
        self.charge(1)?;
        let mut each = |one: &[Val], other: &[Val]| -> Result<bool, Halt> {
            if one.len() != other.len() {
                return Ok(false);
            }
            for (one, other) in one.iter().zip(other) {
                if !self.equal(one, other)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match (one, other) {
            (Val::Unit, Val::Unit) => Ok(true),
            (Val::Bool(a), Val::Bool(b)) => Ok(a == b),
            (Val::Int(a), Val::Int(b)) => Ok(a == b),
            (Val::Char(a), Val::Char(b)) => Ok(a == b),
            (Val::Str(a), Val::Str(b)) => Ok(a == b),
            (Val::Tuple(a), Val::Tuple(b)) | (Val::Record(_, a), Val::Record(_, b)) => each(a, b),
            (Val::List(..), Val::List(..)) => each(one.items(), other.items()),
            (Val::Con(a, None), Val::Con(b, None)) => Ok(a == b),
            (Val::Con(a, Some(x)), Val::Con(b, Some(y))) => Ok(a == b && self.equal(x, y)?),
            (Val::Con(..), Val::Con(..)) => Ok(false),
            _ => Err(Halt::Limit("functions are compared")),
        }
    }
}

/// A value, unless it is nested too deeply. As every step is asked, no value is much deeper than the limit.
fn shallow(value: Val) -> Evaluated {
    match value.depth() {
        0..=DEEPEST_VALUE => Ok(value),
        _ if matches!(value, Val::Closure(_)) => Err(Halt::Limit("functions are nested too deeply")),
        _ => Err(Halt::Limit("values are nested too deeply")),
    }
}

/// Raises an exception of the basis.
pub(crate) fn raise<T>(exception: u32) -> Result<T, Halt> {
    Err(Halt::Raise(Val::Con(exception, None)))
}
