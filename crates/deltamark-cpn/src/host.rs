//! The code of a model, as coloured nets call it.
//!
//! In: the values of an expression's variables, as the state has them. Out: a value of the state, or the number of a
//! message that names the exception and the element.

use std::sync::{Mutex, PoisonError};

use deltamark_coloured::net::{HostCode, TypeId, Value};

use crate::colours::Colours;
use crate::eval::{Halt, Machine, Val, World};
use crate::infer::{Ready, why};

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
    pub messages: Mutex<Vec<String>>,
}

impl std::fmt::Debug for CpnHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} expressions in CPN ML", self.expressions.len())
    }
}

impl CpnHost {
    /// Evaluates an expression; the error is why it has no value.
    pub fn evaluate(&self, number: u32, arguments: &[Value]) -> Result<Value, String> {
        let expression = &self.expressions[number as usize];
        let say = |halt: Halt| format!("{}, in {}", why(&self.colours, &halt), expression.what);
        let outside = |of: u32| {
            format!("a value is outside the colour set `{}`, in {}", self.colours.get(of).name, expression.what)
        };
        let world = World { globals: &self.globals, colours: &self.colours };
        if let Gives::Legal(of) = expression.gives {
            let mut machine = Machine::new(&world, &[]);
            let value = self.colours.of_state(of, &arguments[0]);
            // A test of a subset that raises is no value of the colour set.
            let legal = matches!(self.colours.to_state(&mut machine, of, &value), Ok(Some(_)));
            return Ok(Value::Int(legal.into()));
        }
        let Some(ready) = &expression.ready else { return Ok(Value::Int(0)) };
        let given: Vec<Val> =
            ready.given.iter().zip(arguments).map(|((_, of), value)| self.colours.of_state(*of, value)).collect();
        let mut machine = Machine::new(&world, &given);
        let value = machine.run(&ready.code, ready.size).map_err(say)?;
        let mut each = |of: u32, skip: bool| -> Result<Value, String> {
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
    fn eval(&self, number: u32, arguments: &[Value]) -> Result<Value, u32> {
        self.evaluate(number, arguments).map_err(|message| {
            let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
            // As many as there are elements and exceptions, at most some.
            const MOST: usize = 1000;
            let known = messages.iter().position(|known| *known == message);
            let at = known.unwrap_or_else(|| {
                if messages.len() < MOST {
                    messages.push(message);
                }
                messages.len() - 1
            });
            at as u32
        })
    }

    fn message(&self, fault: u32) -> String {
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.get(fault as usize).cloned().unwrap_or_else(|| "an expression has no value".into())
    }

    fn print(&self, of: TypeId, value: &Value, out: &mut String) {
        self.colours.print(of.0, value, out);
    }
}
