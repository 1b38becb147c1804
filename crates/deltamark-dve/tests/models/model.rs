//! A model as an independent syntax tree, and its text.
//!
//! In: the result of the generator or the shrinker. Out: DVE, one transition and one assertion a line, so that a
//! line identifies it. What stays true: the types share nothing with the crate under test.

use std::fmt::{self, Display, Formatter};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableType {
    Byte,
    Int,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub kind: VariableType,
    pub constant: bool,
    /// The number of elements, for an array.
    pub length: Option<usize>,
    /// The first values; the others are 0.
    pub initial: Vec<i32>,
}

/// A variable by its number among the globals (`g3`), or among those of the process that it is read in (`x3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Global(usize),
    Local(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    Number(i32),
    Read(Name, Option<Box<Expr>>),
    /// `P1.s2`
    At(usize, usize),
    /// `P1->x2` or `P1->x2[e]`
    Of(usize, usize, Option<Box<Expr>>),
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub name: Name,
    pub index: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sync {
    None,
    Send(usize, Vec<Expr>),
    Receive(usize, Vec<Place>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub from: usize,
    pub to: usize,
    pub guards: Vec<Expr>,
    pub sync: Sync,
    pub effects: Vec<(Place, Expr)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub variables: Vec<Variable>,
    /// For each state whether it is committed.
    pub states: Vec<bool>,
    pub initial: usize,
    pub asserts: Vec<(usize, Expr)>,
    pub transitions: Vec<Transition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub arity: usize,
    pub types: Option<Vec<VariableType>>,
    pub capacity: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub globals: Vec<Variable>,
    pub channels: Vec<Channel>,
    pub processes: Vec<Process>,
    pub synchronous: bool,
}

impl VariableType {
    pub fn word(self) -> &'static str {
        match self {
            VariableType::Byte => "byte",
            VariableType::Int => "int",
        }
    }

    pub fn range(self) -> (i32, i32) {
        match self {
            VariableType::Byte => (0, 255),
            VariableType::Int => (-32768, 32767),
        }
    }
}

impl Model {
    /// A variable, read or assigned in this process.
    pub fn variable(&self, process: usize, name: Name) -> &Variable {
        match name {
            Name::Global(number) => &self.globals[number],
            Name::Local(number) => &self.processes[process].variables[number],
        }
    }

    /// The line of the first assertion of a process; the others follow, then its transitions.
    pub fn first_line(&self, process: usize) -> u32 {
        let lines = |process: &Process| 2 + process.asserts.len() + process.transitions.len();
        3 + self.processes[..process].iter().map(lines).sum::<usize>() as u32
    }

    /// The line of a transition.
    pub fn line(&self, process: usize, transition: usize) -> u32 {
        self.first_line(process) + (self.processes[process].asserts.len() + transition) as u32
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Name::Global(number) => write!(f, "g{number}"),
            Name::Local(number) => write!(f, "x{number}"),
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Number(value) => write!(f, "{value}"),
            Expr::Read(name, None) => write!(f, "{name}"),
            Expr::Read(name, Some(index)) => write!(f, "{name}[{index}]"),
            Expr::At(process, state) => write!(f, "P{process}.s{state}"),
            Expr::Of(process, number, None) => write!(f, "P{process}->x{number}"),
            Expr::Of(process, number, Some(index)) => write!(f, "P{process}->x{number}[{index}]"),
            Expr::Unary(operator, operand) => write!(f, "({operator} {operand})"),
            Expr::Binary(operator, left, right) => write!(f, "({left} {operator} {right})"),
        }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.index {
            None => write!(f, "{}", self.name),
            Some(index) => write!(f, "{}[{index}]", self.name),
        }
    }
}

/// Items separated by commas.
fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

fn declaration(name: Name, variable: &Variable) -> String {
    let Variable { kind, constant, length, initial } = variable;
    let constant = if *constant { "const " } else { "" };
    let size = length.map_or(String::new(), |length| format!("[{length}]"));
    let values = match (length, initial.is_empty()) {
        (_, true) => String::new(),
        (None, _) => format!(" = {}", initial[0]),
        (Some(_), _) => format!(" = {{{}}}", list(initial)),
    };
    format!("{constant}{} {name}{size}{values}; ", kind.word())
}

impl Display for Transition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "s{} -> s{} {{ ", self.from, self.to)?;
        if !self.guards.is_empty() {
            write!(f, "guard {}; ", list(&self.guards))?;
        }
        let message = |items: Vec<String>| match &items[..] {
            [one] => one.clone(),
            [] => String::new(),
            several => format!("{{{}}}", several.join(", ")),
        };
        match &self.sync {
            Sync::None => {}
            Sync::Send(channel, values) => {
                write!(f, "sync c{channel}!{}; ", message(values.iter().map(Expr::to_string).collect()))?;
            }
            Sync::Receive(channel, places) => {
                write!(f, "sync c{channel}?{}; ", message(places.iter().map(Place::to_string).collect()))?;
            }
        }
        if !self.effects.is_empty() {
            write!(f, "effect {}; ", list(self.effects.iter().map(|(place, value)| format!("{place} = {value}"))))?;
        }
        write!(f, "}}")
    }
}

impl Display for Model {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (number, variable) in self.globals.iter().enumerate() {
            write!(f, "{}", declaration(Name::Global(number), variable))?;
        }
        for (number, channel) in self.channels.iter().enumerate() {
            match &channel.types {
                None => write!(f, "channel c{number}; ")?,
                Some(types) => {
                    let types = list(types.iter().map(|kind| kind.word()));
                    write!(f, "channel {{{types}}} c{number}[{}]; ", channel.capacity)?;
                }
            }
        }
        for (number, process) in self.processes.iter().enumerate() {
            write!(f, "\nprocess P{number} {{ ")?;
            for (local, variable) in process.variables.iter().enumerate() {
                write!(f, "{}", declaration(Name::Local(local), variable))?;
            }
            let states = list((0..process.states.len()).map(|state| format!("s{state}")));
            write!(f, "state {states}; init s{};", process.initial)?;
            let committed: Vec<usize> = (0..process.states.len()).filter(|&state| process.states[state]).collect();
            if !committed.is_empty() {
                write!(f, " commit {};", list(committed.iter().map(|state| format!("s{state}"))))?;
            }
            let end = |place: usize, length: usize| if place + 1 == length { ";" } else { "," };
            for (place, (state, condition)) in process.asserts.iter().enumerate() {
                let (word, end) = (if place == 0 { "assert " } else { "" }, end(place, process.asserts.len()));
                write!(f, "\n  {word}s{state}: {condition}{end}")?;
            }
            for (place, transition) in process.transitions.iter().enumerate() {
                let (word, end) = (if place == 0 { "trans " } else { "" }, end(place, process.transitions.len()));
                write!(f, "\n  {word}{transition}{end}")?;
            }
            write!(f, "\n}}")?;
        }
        write!(f, "\nsystem {};", if self.synchronous { "sync" } else { "async" })
    }
}
