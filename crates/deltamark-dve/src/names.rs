//! States and steps in the modeller's words, and the observables of properties.
//!
//! In: a program. Out: [`Describe`] and [`Observe`]. What stays true: different states have different
//! descriptions; every name that is listed can be resolved.
//!
//! # Names
//! | what | name | value |
//! |---|---|---|
//! | a global variable, an element | `x`, `a[3]` | number |
//! | a variable of a process | `P.x`, `P.a[3]`, also `P->x` | number |
//! | whether a process is in a state | `P.q` | truth value |
//! | the messages in a buffer | `c.length` | number |
//! | a value in a buffer | `c[0]`, or `c[0].1` if a message has several | number |
//!
//! An array alone is its first element, as in the language.

use crate::engine::Taken;
use crate::ir::{Owner, Program, Step, Sync, Target, Timing, Transition, TransitionId};
use crate::reference;
use crate::system::{DveSystem, DveWorkspace};
use deltamark_core::{
    Action, BLOCK, Block, Control, Describe, Observable, ObservableKind, Observe, Scratch, Slot, Stop, Value,
};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::OnceLock;

/// Names of a model. Observables are numbered: cells, then locations, then actions.
pub(crate) struct Names {
    /// The file of the model.
    pub file: Option<String>,
    /// In the order of the model.
    listed: Vec<(String, Observable)>,
    known: HashMap<String, Observable>,
    /// The process and number of each location.
    locations: Vec<(u32, u32)>,
    cells: u32,
    actions: OnceLock<HashMap<String, u32>>,
}

impl Names {
    /// The names of a program, unless `control` stops it: there may be millions.
    pub fn new(program: &Program, control: &Control) -> Result<Self, Stop> {
        let cells = program.state_cells();
        let mut names = Names {
            file: None,
            listed: Vec::new(),
            known: HashMap::new(),
            locations: Vec::new(),
            cells: cells.len() as u32,
            actions: OnceLock::new(),
        };
        for (number, cell) in cells.iter().enumerate() {
            control.ask()?;
            let number = Observable { index: number as u32, kind: ObservableKind::Int };
            match cell.owner {
                Owner::Location(process) => {
                    let process_number = process.0;
                    let process = &program.processes[process.0 as usize];
                    for (location, place) in process.locations.iter().enumerate() {
                        let index = names.cells + names.locations.len() as u32;
                        names.locations.push((process_number, location as u32));
                        let observable = Observable { index, kind: ObservableKind::Bool };
                        names.listed.push((format!("{}.{}", process.name, place.name), observable));
                    }
                }
                Owner::Variable(variable, index) => {
                    let name = reference::name_of(program, variable);
                    let variable = &program.variables[variable as usize];
                    let element = variable.length.map_or_else(String::new, |_| format!("[{index}]"));
                    if let Some(process) = variable.process {
                        let process = &program.processes[process.0 as usize].name;
                        names.known.insert(format!("{process}->{}{element}", variable.name), number);
                    }
                    if index == 0 {
                        names.known.insert(name.clone(), number);
                    }
                    names.listed.push((name + &element, number));
                }
                Owner::Length(channel) => {
                    names.listed.push((format!("{}.length", program.channels[channel.0 as usize].name), number));
                }
                Owner::Item(channel, message, value) => {
                    let channel = &program.channels[channel.0 as usize];
                    let value = if channel.arity == 1 { String::new() } else { format!(".{value}") };
                    names.listed.push((format!("{}[{message}]{value}", channel.name), number));
                }
                Owner::Monitor => {}
            }
        }
        for (name, observable) in &names.listed {
            control.ask()?;
            names.known.insert(name.clone(), *observable);
        }
        Ok(names)
    }

    /// A position in the text: `file:line`, or `line 12`.
    fn line(&self, line: u32) -> String {
        match &self.file {
            Some(file) => format!("{file}:{line}"),
            None => format!("line {line}"),
        }
    }
}

impl Describe for DveSystem {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let program = &self.program;
        let mut shown = Vec::new();
        let cells = program.state_cells();
        for cell in cells {
            let value = cell.read(state);
            match cell.owner {
                Owner::Location(process) => {
                    let process = &program.processes[process.0 as usize];
                    let location = process.locations[value as usize].name.clone();
                    shown.push((process.name.clone(), Value::Text(location)));
                }
                Owner::Variable(variable, index) => {
                    let name = reference::name_of(program, variable);
                    match program.variables[variable as usize].length {
                        None => shown.push((name, Value::Int(value.into()))),
                        Some(_) if value != 0 => shown.push((format!("{name}[{index}]"), Value::Int(value.into()))),
                        Some(_) => {}
                    }
                }
                Owner::Length(channel) => {
                    let channel = &program.channels[channel.0 as usize];
                    let first = channel.buffer.map_or(0, |buffer| buffer.first.0) as usize;
                    let message = |number: i32| {
                        let start = first + number as usize * channel.arity as usize;
                        let values = cells[start..start + channel.arity as usize].iter();
                        let values: Vec<String> = values.map(|cell| cell.read(state).to_string()).collect();
                        if values.len() == 1 { values.concat() } else { format!("{{{}}}", values.join(", ")) }
                    };
                    let messages: Vec<String> = (0..value).map(message).collect();
                    shown.push((channel.name.clone(), Value::Text(format!("[{}]", messages.join(", ")))));
                }
                Owner::Item(..) | Owner::Monitor => {}
            }
        }
        shown
    }

    fn action(&self, source: &[Slot], action: Action) -> String {
        let program = &self.program;
        let values = reference::unpack(program, source);
        match program.timing {
            Timing::Asynchronous => match program.steps.get(action.0 as usize) {
                Some(&step) => self.words(step, Some(&values)),
                None => format!("no step {}", action.0),
            },
            Timing::Synchronous => {
                let mut rest = action.0;
                let mut words = Vec::new();
                for (process, &radix) in program.processes.iter().zip(&program.radix).rev() {
                    let location = &process.locations[values[process.location.0 as usize] as usize];
                    let number = location.transitions.start + rest / radix;
                    rest %= radix;
                    match program.transitions.get(number as usize) {
                        Some(one) => words.push(self.arrow(one) + &format!(" ({})", self.names.line(one.place.line))),
                        None => words.push(format!("{}: no such transition", process.name)),
                    }
                }
                words.reverse();
                words.join(" | ")
            }
        }
    }
}

impl DveSystem {
    /// `P: a -> b`
    fn arrow(&self, one: &Transition) -> String {
        let process = &self.program.processes[one.process.0 as usize];
        let name = |location: u32| &process.locations[location as usize].name;
        format!("{}: {} -> {}", process.name, name(one.from), name(one.to))
    }

    /// A step in words; given the values of cells, including the values sent.
    fn words(&self, step: Step, values: Option<&[i32]>) -> String {
        let program = &self.program;
        let transition = |id: TransitionId| program.transition(id);
        let mut words;
        match step {
            Step::Alone(id) => {
                let one = transition(id);
                words = self.arrow(one);
                self.message(&mut words, one, values);
                let _ = write!(words, " ({})", self.names.line(one.place.line));
            }
            Step::Pair { send, receive, .. } => {
                let (send, receive) = (transition(send), transition(receive));
                words = self.arrow(send);
                self.message(&mut words, send, values);
                let _ = write!(words, " to {}", self.arrow(receive));
                self.message(&mut words, receive, None);
                let (from, to) = (self.names.line(send.place.line), self.names.line(receive.place.line));
                let _ = write!(words, " ({from}, {to})");
            }
        }
        words
    }

    /// Adds `, c!5` or `, c?x`.
    fn message(&self, words: &mut String, one: &Transition, values: Option<&[i32]>) {
        let program = &self.program;
        let list = match &one.sync {
            Sync::None => return,
            Sync::Send(channel, sent) => {
                let _ = write!(words, ", {}!", program.channels[channel.0 as usize].name);
                let Some(values) = values else { return };
                // If the guard faults, the sent values were never evaluated, and the analysis does not cover them.
                let ready = reference::evaluate(program, values, one.guard).is_ok_and(|guard| guard != 0);
                let value = |&sent| match reference::evaluate(program, values, sent) {
                    Ok(value) => value.to_string(),
                    Err(_) => "?".into(),
                };
                let value = |sent| if ready { value(sent) } else { "?".into() };
                sent.iter().map(value).collect::<Vec<String>>()
            }
            Sync::Receive(channel, targets) => {
                let _ = write!(words, ", {}?", program.channels[channel.0 as usize].name);
                let name = |target: &Target| {
                    let name = &program.variables[crate::ir::assigned(program, *target) as usize].name;
                    match target {
                        Target::Cell(cell) => match program.cells[cell.0 as usize].owner {
                            Owner::Variable(variable, index)
                                if program.variables[variable as usize].length.is_some() =>
                            {
                                format!("{name}[{index}]")
                            }
                            _ => name.clone(),
                        },
                        Target::Element { .. } => format!("{name}[…]"),
                    }
                };
                targets.iter().map(name).collect()
            }
        };
        match list.as_slice() {
            [one] => words.push_str(one),
            [] => {}
            many => {
                let _ = write!(words, "{{{}}}", many.join(", "));
            }
        }
    }

    fn action_words(&self) -> Vec<String> {
        let mut names: Vec<String> = self.program.steps.iter().map(|&step| self.words(step, None)).collect();
        // Two transitions in one line may have the same text.
        let mut seen: HashMap<String, u32> = HashMap::new();
        for name in &mut names {
            let count = seen.entry(name.clone()).or_insert(0);
            *count += 1;
            if *count > 1 {
                let _ = write!(name, " #{count}");
            }
        }
        names
    }

    /// The meaning of an observable.
    pub(crate) fn observed(&self, index: u32) -> Observed {
        let (cells, locations) = (self.names.cells, self.names.locations.len() as u32);
        if index < cells {
            Observed::Cell(index as usize)
        } else if index < cells + locations {
            let (process, location) = self.names.locations[(index - cells) as usize];
            Observed::At(self.program.processes[process as usize].location.0 as usize, location as i32)
        } else {
            Observed::Fireable(Action(index - cells - locations))
        }
    }
}

/// The meaning of an observable.
pub(crate) enum Observed {
    Cell(usize),
    At(usize, i32),
    Fireable(Action),
}

impl Observe for DveSystem {
    fn resolve(&self, name: &str) -> Option<Observable> {
        self.names.known.get(name).copied()
    }

    fn fireable(&self, name: &str) -> Option<Observable> {
        let actions = self.names.actions.get_or_init(|| {
            self.action_words().into_iter().enumerate().map(|(number, name)| (name, number as u32)).collect()
        });
        let first = self.names.cells + self.names.locations.len() as u32;
        actions.get(name).map(|&number| Observable { index: first + number, kind: ObservableKind::Bool })
    }

    fn names(&self) -> Vec<String> {
        self.names.listed.iter().map(|(name, _)| name.clone()).collect()
    }

    fn action_names(&self) -> Vec<String> {
        self.action_words()
    }

    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        match self.observed(observable.index) {
            Observed::Cell(cell) => self.program.cells[cell].read(state).into(),
            Observed::At(cell, location) => (self.program.cells[cell].read(state) == location).into(),
            Observed::Fireable(action) => {
                let work = scratch.get::<DveWorkspace>();
                let mut target = vec![0; self.program.slots];
                let taken = self.engine.fire(&self.program, &mut work.engine, state, action, &mut target);
                (taken != Taken::Disabled).into()
            }
        }
    }

    fn read_block(&self, scratch: &mut Scratch, block: &Block, observable: Observable, out: &mut [i64; BLOCK]) {
        let states = block.states().iter().zip(out);
        match self.observed(observable.index) {
            Observed::Cell(cell) => {
                let cell = self.program.cells[cell];
                states.for_each(|(state, value)| *value = cell.read(state).into());
            }
            Observed::At(cell, location) => {
                let cell = self.program.cells[cell];
                states.for_each(|(state, value)| *value = (cell.read(state) == location).into());
            }
            Observed::Fireable(_) => {
                states.for_each(|(state, value)| *value = self.read(scratch, state, observable));
            }
        }
    }
}
