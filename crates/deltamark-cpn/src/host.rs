//! The code of a model, as coloured nets call it.
//!
//! In: the values of an expression's variables, as the state has them. Out: a value of the state, or the number of a
//! message that names the exception and the element.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deltamark_coloured::net::{HostCode, OverMarkings, TypeId, Value};
use deltamark_core::Diagnostic;

use crate::colours::Colours;
use crate::eval::{ELEMENT, Halt, Machine, Val, World, list};
use crate::infer::{Model, Ready, why};
use crate::marks::{self, MarkExpression, MarkedPlace};

/// What an expression gives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gives {
    Truth,
    /// A token that is produced, of this colour set.
    Token(u32),
    /// A token that is consumed.
    Taken(u32),
    /// A multiset that is produced.
    Tokens(u32),
    /// A multiset that is consumed.
    AllTaken(u32),
    /// Values that a variable may have; others are left out.
    Choices(u32),
    /// Whether the first variable is in its colour set.
    Legal(u32),
}

/// An expression of the net.
pub(crate) struct HostExpression {
    pub ready: Option<Ready>,
    pub gives: Gives,
    /// The element it belongs to.
    pub what: String,
}

/// All code of a model.
pub(crate) struct CpnHost {
    pub globals: Vec<Val>,
    pub colours: Colours,
    pub expressions: Vec<HostExpression>,
    /// Why evaluations failed, and whether a bound was the reason.
    messages: Mutex<Vec<(String, bool)>>,
    /// What properties need: the names that are declared, and the places.
    model: Mutex<Model>,
    marks: Vec<MarkedPlace>,
    /// Expressions of properties, by their texts; their numbers follow those of the net.
    over: Mutex<Vec<(String, Arc<MarkExpression>)>>,
}

impl std::fmt::Debug for CpnHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} expressions in CPN ML", self.expressions.len())
    }
}

/// Whether there is room for the arguments as values of CPN ML, which are made twice as lists are.
fn given_has_room(arguments: &[Value], room: &dyn Fn(u64) -> bool) -> Result<(), (String, bool)> {
    const FEW: usize = 4096;
    fn elements(value: &Value) -> usize {
        match value {
            Value::Int(_) => 1,
            Value::Seq(elements_of) => elements_of.iter().map(elements).sum(),
        }
    }
    let count: usize = arguments.iter().map(elements).sum();
    if count < FEW || room((count * ELEMENT) as u64) {
        return Ok(());
    }
    Err(("the evaluation takes more memory than the limit leaves".into(), true))
}

/// A lock that another thread's panic does not take away: what it holds is whole after each step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CpnHost {
    pub fn new(model: Model, expressions: Vec<HostExpression>, marks: Vec<MarkedPlace>) -> Self {
        CpnHost {
            globals: model.globals.clone(),
            colours: model.colours.clone(),
            expressions,
            messages: Mutex::default(),
            model: Mutex::new(model),
            marks,
            over: Mutex::default(),
        }
    }

    /// Evaluates an expression of a property in a marking.
    fn evaluate_over(
        &self,
        expression: &MarkExpression,
        arguments: &[Value],
        room: &dyn Fn(u64) -> bool,
    ) -> Result<Value, (String, bool)> {
        let world = World { globals: &self.globals, colours: &self.colours, room };
        given_has_room(arguments, room)?;
        let given: Vec<Val> = (expression.ready.given.iter().zip(arguments))
            .map(|((_, of), tokens)| match tokens {
                Value::Seq(tokens) => list(tokens.iter().map(|token| self.colours.of_state(*of, token)).collect()),
                Value::Int(_) => list(Vec::new()),
            })
            .collect();
        match Machine::new(&world, &given).run(&expression.ready.code, expression.ready.size) {
            Ok(Val::Int(number)) => Ok(Value::Int(number as i32)),
            Ok(value) => Ok(Value::Int(value.truth().into())),
            Err(halt) => Err((why(&self.colours, &halt), matches!(halt, Halt::Limit(_)))),
        }
    }

    /// Evaluates an expression; the error is why it has no value, and whether a bound is the reason.
    pub fn evaluate(
        &self,
        number: u32,
        arguments: &[Value],
        room: &dyn Fn(u64) -> bool,
    ) -> Result<Value, (String, bool)> {
        let Some(expression) = self.expressions.get(number as usize) else {
            let over =
                locked(&self.over).get(number as usize - self.expressions.len()).map(|known| Arc::clone(&known.1));
            return over.map_or(Ok(Value::Int(0)), |over| self.evaluate_over(&over, arguments, room));
        };
        let say = |halt: Halt| {
            (format!("{}, in {}", why(&self.colours, &halt), expression.what), matches!(halt, Halt::Limit(_)))
        };
        let outside = |of: u32| {
            let name = &self.colours.get(of).name;
            (format!("a value is outside the colour set `{name}`, in {}", expression.what), false)
        };
        let world = World { globals: &self.globals, colours: &self.colours, room };
        given_has_room(arguments, room)?;
        if let Gives::Legal(of) = expression.gives {
            let mut machine = Machine::new(&world, &[]);
            let value = self.colours.of_state(of, &arguments[0]);
            let legal = match self.colours.to_state(&mut machine, of, &value) {
                Ok(found) => found.is_some(),
                // A value whose test raises is none of the subset. What a test that takes too long would say is not known.
                Err(Halt::Raise(_)) => false,
                Err(limit) => return Err(say(limit)),
            };
            return Ok(Value::Int(legal.into()));
        }
        let Some(ready) = &expression.ready else { return Ok(Value::Int(0)) };
        let given: Vec<Val> =
            ready.given.iter().zip(arguments).map(|((_, of), value)| self.colours.of_state(*of, value)).collect();
        let mut machine = Machine::new(&world, &given);
        let value = machine.run(&ready.code, ready.size).map_err(say)?;
        let mut each = |of: u32, skip: bool| -> Result<Value, (String, bool)> {
            let mut out = Vec::new();
            for item in value.items() {
                match self.colours.to_state(&mut machine, of, item).map_err(say)? {
                    Some(value) => out.push(value),
                    None if skip => {}
                    None => return Err(outside(of)),
                }
            }
            Ok(Value::Seq(out))
        };
        match expression.gives {
            Gives::Truth => Ok(Value::Int(value.truth().into())),
            Gives::Token(of) => {
                self.colours.to_state(&mut machine, of, &value).map_err(say)?.ok_or_else(|| outside(of))
            }
            Gives::Taken(of) => {
                machine.lenient = true;
                self.colours.to_state(&mut machine, of, &value).map_err(say)?.ok_or_else(|| outside(of))
            }
            Gives::Tokens(of) => each(of, false),
            Gives::AllTaken(of) => {
                let mut machine = Machine::new(&world, &given);
                machine.lenient = true;
                let mut out = Vec::new();
                for item in value.items() {
                    out.push(self.colours.to_state(&mut machine, of, item).map_err(say)?.ok_or_else(|| outside(of))?);
                }
                Ok(Value::Seq(out))
            }
            Gives::Choices(of) => each(of, true),
            Gives::Legal(_) => Ok(Value::Int(0)),
        }
    }
}

impl HostCode for CpnHost {
    fn eval(&self, number: u32, arguments: &[Value], room: &dyn Fn(u64) -> bool) -> Result<Value, u32> {
        self.evaluate(number, arguments, room).map_err(|message| {
            let mut messages = locked(&self.messages);
            // As many as there are elements and exceptions, at most some.
            const MOST: usize = 1000;
            let known = messages.iter().position(|known| *known == message);
            let at = known.unwrap_or_else(|| {
                // Beyond, the last of the kind stands for all.
                if messages.len() >= MOST {
                    return messages.iter().rposition(|known| known.1 == message.1).unwrap_or(0);
                }
                messages.push(message);
                messages.len() - 1
            });
            at as u32
        })
    }

    fn message(&self, fault: u32) -> String {
        let messages = locked(&self.messages);
        messages.get(fault as usize).map_or_else(|| "an expression has no value".into(), |known| known.0.clone())
    }

    fn is_limit(&self, fault: u32) -> bool {
        locked(&self.messages).get(fault as usize).is_some_and(|known| known.1)
    }

    fn over_markings(&self, text: &str) -> Option<Result<OverMarkings, Vec<Diagnostic>>> {
        if !marks::speaks(text) {
            return None;
        }
        let expression = match marks::read(&mut locked(&self.model), &self.marks, text) {
            Ok(expression) => expression,
            Err(wrong) => return Some(Err(wrong)),
        };
        let mut over = locked(&self.over);
        let at = over.iter().position(|known| known.0 == text).unwrap_or_else(|| {
            over.push((text.into(), Arc::new(expression)));
            over.len() - 1
        });
        let MarkExpression { places, truth, .. } = &*over[at].1;
        Some(Ok(OverMarkings { number: (self.expressions.len() + at) as u32, places: places.clone(), truth: *truth }))
    }

    fn print(&self, of: TypeId, value: &Value, out: &mut String) {
        self.colours.print(of.0, value, out);
    }
}
