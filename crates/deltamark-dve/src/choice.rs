//! The choice of an engine.
//!
//! In: the user's choice. Out: an engine, or why there is none. What stays true: `auto` always finds one, and an
//! engine chosen by name is used or refused.

use crate::engine::Engine;
use crate::interpreter::Interpreter;
use crate::ir::Program;
use crate::system::DveSystem;
use std::fmt;
use std::str::FromStr;

/// The engine that runs a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// Native code where possible, once the model turns out not to be tiny; the interpreter otherwise.
    #[default]
    Auto,
    /// Native code.
    Native,
    /// The interpreter.
    Interpreter,
}

impl EngineChoice {
    /// All choices.
    pub const ALL: [EngineChoice; 3] = [EngineChoice::Auto, EngineChoice::Native, EngineChoice::Interpreter];

    /// Its name, for the command line.
    pub fn name(self) -> &'static str {
        match self {
            EngineChoice::Auto => "auto",
            EngineChoice::Native => "native",
            EngineChoice::Interpreter => "interpreter",
        }
    }

    /// The engine for a program, or why there is none.
    pub fn engine(self, program: &Program) -> Result<Box<dyn Engine>, String> {
        match self {
            EngineChoice::Interpreter => Ok(Box::new(Interpreter::new(program))),
            EngineChoice::Native => native(program, 0),
            EngineChoice::Auto => native(program, WARM_UP).or_else(|_| Ok(Box::new(Interpreter::new(program)))),
        }
    }
}

#[cfg(feature = "native")]
use crate::native::WARM_UP;
#[cfg(not(feature = "native"))]
const WARM_UP: u64 = 0;

#[cfg(feature = "native")]
fn native(program: &Program, warm_up: u64) -> Result<Box<dyn Engine>, String> {
    Ok(Box::new(crate::native::Native::after(program, warm_up)?))
}

#[cfg(not(feature = "native"))]
fn native(_: &Program, _: u64) -> Result<Box<dyn Engine>, String> {
    Err("this program was built without native code".into())
}

impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EngineChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|choice| choice.name() == name);
        found.ok_or_else(|| format!("there is no engine `{name}`; there are auto, native and interpreter"))
    }
}

impl DveSystem {
    /// The model, run by the engine of this choice, or why that is impossible.
    pub fn run_by(program: Program, choice: EngineChoice) -> Result<Self, String> {
        let engine = choice.engine(&program)?;
        Ok(Self::with_engine(program, engine))
    }
}
