//! The oracle: the semantics of a model, evaluated on its tree, naively.
//!
//! In: a model and the numbers of a state. Out: every step with the numbers after it or the message of its fault,
//! and the assertions that fail. What stays true: arithmetic is in 64 bits, truncated to 32; variables are checked
//! against their declared types; nothing is analysed, folded, packed or taken from the crate under test.
//!
//! The numbers of a state come in the order of the text: globals, buffers (length, then values), and for each process its
//! state and its variables.

use crate::arithmetic;
use crate::model::{Expr, Model, Name, Place, Process, Sync, Variable, VariableType};

/// Which transitions a step takes, by their lines: sender before receiver, or all processes in their order.
pub type Label = Vec<u32>;

/// The numbers after a step, or its fault.
pub type Behind = Result<Vec<i32>, String>;

/// The positions of a model's numbers.
pub struct Oracle<'m> {
    model: &'m Model,
    globals: Vec<usize>,
    buffers: Vec<usize>,
    /// For each process its state, then its variables.
    processes: Vec<(usize, Vec<usize>)>,
    pub initial: Vec<i32>,
}

/// A transition of a process, by their numbers.
type Taken = (usize, usize);

impl<'m> Oracle<'m> {
    pub fn new(model: &'m Model) -> Self {
        let mut initial: Vec<i32> = Vec::new();
        let place = |initial: &mut Vec<i32>, variable: &Variable| {
            let first = initial.len();
            if !variable.constant {
                let length = variable.length.unwrap_or(1);
                initial.extend((0..length).map(|element| variable.initial.get(element).copied().unwrap_or(0)));
            }
            first
        };
        let globals = model.globals.iter().map(|variable| place(&mut initial, variable)).collect();
        let mut buffers = Vec::new();
        for channel in &model.channels {
            buffers.push(initial.len());
            if channel.capacity > 0 && !model.synchronous {
                initial.resize(initial.len() + 1 + channel.capacity * channel.arity, 0);
            }
        }
        let mut processes = Vec::new();
        for process in &model.processes {
            let location = initial.len();
            initial.push(process.initial as i32);
            let variables = process.variables.iter().map(|variable| place(&mut initial, variable)).collect();
            processes.push((location, variables));
        }
        Oracle { model, globals, buffers, processes, initial }
    }

    fn at(&self, state: &[i32], process: usize) -> usize {
        state[self.processes[process].0] as usize
    }

    /// The first number of a variable.
    fn first(&self, process: usize, name: Name) -> usize {
        match name {
            Name::Global(number) => self.globals[number],
            Name::Local(number) => self.processes[process].1[number],
        }
    }

    /// The name in messages: with that of its process, but for constants.
    fn named(&self, process: usize, name: Name) -> String {
        let constant = self.model.variable(process, name).constant;
        match name {
            Name::Local(_) if !constant => format!("P{process}.{name}"),
            _ => name.to_string(),
        }
    }

    /// The element that an index names.
    fn element(&self, state: &[i32], process: usize, owner: usize, name: Name, index: &Expr) -> Result<usize, String> {
        let index = self.value(state, process, index)?;
        let length = self.model.variable(owner, name).length.expect("an array");
        if 0 <= index && (index as usize) < length {
            return Ok(index as usize);
        }
        let name = self.named(owner, name);
        Err(format!("index {index} is outside of `{name}`, which has elements 0 to {}", length - 1))
    }

    /// The value of a variable of `owner`, read in `process`.
    fn read(
        &self,
        state: &[i32],
        process: usize,
        owner: usize,
        name: Name,
        index: Option<&Expr>,
    ) -> Result<i32, String> {
        let element = index.map_or(Ok(0), |index| self.element(state, process, owner, name, index))?;
        let variable = self.model.variable(owner, name);
        Ok(match variable.constant {
            true => variable.initial.get(element).copied().unwrap_or(0),
            false => state[self.first(owner, name) + element],
        })
    }

    fn value(&self, state: &[i32], process: usize, expr: &Expr) -> Result<i32, String> {
        match expr {
            Expr::Number(value) => Ok(*value),
            Expr::Read(name, index) => self.read(state, process, process, *name, index.as_deref()),
            Expr::Of(owner, number, index) => self.read(state, process, *owner, Name::Local(*number), index.as_deref()),
            Expr::At(other, location) => Ok((self.at(state, *other) == *location).into()),
            Expr::Unary(operator, operand) => Ok(arithmetic::unary(operator, self.value(state, process, operand)?)),
            Expr::Binary(operator, left, right) => {
                let left = self.value(state, process, left)?;
                match arithmetic::decided(operator, left) {
                    Some(value) => Ok(value),
                    None => {
                        let right = self.value(state, process, right)?;
                        arithmetic::binary(operator, left, right).ok_or_else(|| "division by zero".into())
                    }
                }
            }
        }
    }

    /// The variable and the element that is assigned.
    fn place(&self, state: &[i32], process: usize, place: &Place) -> Result<(Name, usize), String> {
        let element = place.index.as_ref().map_or(Ok(0), |i| self.element(state, process, process, place.name, i))?;
        Ok((place.name, element))
    }

    fn store(
        &self,
        state: &mut [i32],
        process: usize,
        (name, element): (Name, usize),
        value: i32,
    ) -> Result<(), String> {
        let variable = self.model.variable(process, name);
        let (least, most) = variable.kind.range();
        if value < least || value > most {
            let named = self.named(process, name);
            let named = if variable.length.is_some() { format!("{named}[{element}]") } else { named };
            let kind = if variable.kind == VariableType::Byte { "a byte" } else { "an int" };
            return Err(format!("{value} does not fit `{named}`, {kind} ({least} to {most})"));
        }
        state[self.first(process, name) + element] = value;
        Ok(())
    }

    /// Whether all guards hold; a fault with its place.
    fn guard(&self, state: &[i32], (process, number): Taken) -> Result<bool, String> {
        for guard in &self.model.processes[process].transitions[number].guards {
            match self.value(state, process, guard) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(why) => return Err(format!("{why}, in the guard in line {}", self.model.line(process, number))),
            }
        }
        Ok(true)
    }

    /// Moves a process, then executes its effects in order.
    fn effects(&self, state: &mut [i32], (process, number): Taken) -> Result<(), String> {
        let transition = &self.model.processes[process].transitions[number];
        state[self.processes[process].0] = transition.to as i32;
        for (place, value) in &transition.effects {
            let mut assign = || {
                let place = self.place(state, process, place)?;
                let value = self.value(state, process, value)?;
                self.store(state, process, place, value)
            };
            assign().map_err(|why| format!("{why}, in an effect in line {}", self.model.line(process, number)))?;
        }
        Ok(())
    }

    fn cast(kind: VariableType, value: i32) -> i32 {
        match kind {
            VariableType::Byte => value.rem_euclid(256),
            VariableType::Int => (value as i64 + 32768).rem_euclid(65536) as i32 - 32768,
        }
    }

    /// The values sent, cast if the channel has types.
    fn sent(&self, state: &[i32], process: usize, channel: usize, values: &[Expr]) -> Result<Vec<i32>, String> {
        let types = &self.model.channels[channel].types;
        let values = values.iter().enumerate().map(|(number, value)| {
            let value = self.value(state, process, value)?;
            Ok(types.as_ref().map_or(value, |types| Self::cast(types[number], value)))
        });
        values.collect()
    }

    fn receive(&self, state: &mut [i32], process: usize, places: &[Place], values: &[i32]) -> Result<(), String> {
        // All indices are evaluated before the first value is stored.
        let places = places.iter().map(|place| self.place(state, process, place)).collect::<Result<Vec<_>, _>>()?;
        places.into_iter().zip(values).try_for_each(|(place, &value)| self.store(state, process, place, value))
    }

    /// A transition without a partner. `None`: its buffer or its guard does not allow it.
    fn alone(&self, source: &[i32], taken: Taken) -> Option<Behind> {
        let transition = &self.model.processes[taken.0].transitions[taken.1];
        let channel = match transition.sync {
            Sync::None => None,
            Sync::Send(channel, _) | Sync::Receive(channel, _) => Some(channel),
        };
        let buffer = channel.map(|channel| (&self.model.channels[channel], self.buffers[channel]));
        match (&transition.sync, buffer) {
            (Sync::Send(..), Some((channel, first))) if source[first] as usize == channel.capacity => return None,
            (Sync::Receive(..), Some((_, first))) if source[first] == 0 => return None,
            _ => {}
        }
        match self.guard(source, taken) {
            Ok(false) => return None,
            Ok(true) => {}
            Err(why) => return Some(Err(why)),
        }
        let step = || {
            let mut state = source.to_vec();
            let line = |why: String| format!("{why}, in line {}", self.model.line(taken.0, taken.1));
            match (&transition.sync, buffer) {
                (Sync::Send(channel, values), Some((about, first))) => {
                    let values = self.sent(source, taken.0, *channel, values).map_err(line)?;
                    let end = first + 1 + source[first] as usize * about.arity;
                    state[end..end + about.arity].copy_from_slice(&values);
                    state[first] += 1;
                }
                (Sync::Receive(_, places), Some((about, first))) => {
                    let mut messages = source[first + 1..first + 1 + about.capacity * about.arity].to_vec();
                    self.receive(&mut state, taken.0, places, &messages[..about.arity]).map_err(line)?;
                    messages.drain(..about.arity);
                    messages.resize(about.capacity * about.arity, 0);
                    state[first + 1..first + 1 + messages.len()].copy_from_slice(&messages);
                    state[first] -= 1;
                }
                _ => {}
            }
            self.effects(&mut state, taken)?;
            Ok(state)
        };
        Some(step())
    }

    /// A send and a receive together.
    fn pair(&self, source: &[i32], send: Taken, receive: Taken) -> Option<Behind> {
        let (one, other) = (self.guard(source, send), self.guard(source, receive));
        if one == Ok(false) || other == Ok(false) {
            return None;
        }
        let step = || {
            one?;
            other?;
            let (sender, receiver) = (
                &self.model.processes[send.0].transitions[send.1],
                &self.model.processes[receive.0].transitions[receive.1],
            );
            let (Sync::Send(channel, values), Sync::Receive(_, places)) = (&sender.sync, &receiver.sync) else {
                unreachable!("a send and a receive");
            };
            let lines = (self.model.line(send.0, send.1), self.model.line(receive.0, receive.1));
            for (place, _) in &sender.effects {
                let both = receiver.effects.iter().any(|(other, _)| other.name == place.name);
                if both && matches!(place.name, Name::Global(_)) {
                    let (one, other) = lines;
                    return Err(format!(
                        "sender (line {one}) and receiver (line {other}) both assign `{}`",
                        place.name
                    ));
                }
            }
            let mut state = source.to_vec();
            let values = self.sent(source, send.0, *channel, values);
            let values = values.map_err(|why| format!("{why}, in the value sent in line {}", lines.0))?;
            let received = self.receive(&mut state, receive.0, places, &values);
            received.map_err(|why| format!("{why}, in what is received in line {}", lines.1))?;
            self.effects(&mut state, receive)?;
            self.effects(&mut state, send)?;
            Ok(state)
        };
        Some(step())
    }

    /// One transition of every process at once; all guards hold or fail.
    fn together(&self, source: &[i32], taken: &[Taken]) -> Behind {
        for &one in taken {
            self.guard(source, one)?;
        }
        let mut merged = source.to_vec();
        let mut assigned: Vec<(usize, Name)> = Vec::new();
        for &(process, number) in taken {
            let mut own = source.to_vec();
            self.effects(&mut own, (process, number))?;
            merged[self.processes[process].0] = own[self.processes[process].0];
            for (place, _) in &self.model.processes[process].transitions[number].effects {
                let name = place.name;
                if matches!(name, Name::Global(_)) && assigned.iter().any(|&(p, other)| p != process && other == name) {
                    let line = self.model.line(process, number);
                    return Err(format!("two processes assign `{name}` at once (one of them in line {line})"));
                }
                assigned.push((process, name));
                let first = self.first(process, name);
                let length = self.model.variable(process, name).length.unwrap_or(1);
                merged[first..first + length].copy_from_slice(&own[first..first + length]);
            }
        }
        Ok(merged)
    }

    /// All steps of a state, in the order of their labels.
    pub fn steps(&self, source: &[i32]) -> Vec<(Label, Behind)> {
        let here = |process: usize| {
            let about: &Process = &self.model.processes[process];
            let at = self.at(source, process);
            let numbers = (0..about.transitions.len()).filter(move |&number| about.transitions[number].from == at);
            numbers.map(move |number| (process, number))
        };
        let label = |taken: &[Taken]| taken.iter().map(|&(process, number)| self.model.line(process, number)).collect();
        let processes = 0..self.model.processes.len();
        let mut found: Vec<(Label, Behind)> = Vec::new();
        if self.model.synchronous {
            let mut combinations: Vec<Vec<Taken>> = vec![Vec::new()];
            for process in processes {
                let ready: Vec<Taken> = here(process).filter(|&one| self.guard(source, one) != Ok(false)).collect();
                let longer = combinations.iter().flat_map(|combination| {
                    ready.iter().map(move |&one| combination.iter().copied().chain([one]).collect())
                });
                combinations = longer.collect();
            }
            found.extend(combinations.iter().map(|taken| (label(taken), self.together(source, taken))));
        } else {
            let committed = |process: usize| self.model.processes[process].states[self.at(source, process)];
            let any = processes.clone().any(committed);
            let may_move: Vec<Taken> = processes.filter(|&p| !any || committed(p)).flat_map(here).collect();
            let sync = |(process, number): Taken| &self.model.processes[process].transitions[number].sync;
            let unbuffered = |taken: Taken| match sync(taken) {
                Sync::Send(channel, _) | Sync::Receive(channel, _) => self.model.channels[*channel].capacity == 0,
                Sync::None => false,
            };
            for &one in &may_move {
                if !unbuffered(one) {
                    found.extend(self.alone(source, one).map(|behind| (label(&[one]), behind)));
                    continue;
                }
                for &other in may_move.iter().filter(|other| other.0 != one.0) {
                    if let (Sync::Send(channel, _), Sync::Receive(same, _)) = (sync(one), sync(other))
                        && channel == same
                    {
                        found.extend(self.pair(source, one, other).map(|behind| (label(&[one, other]), behind)));
                    }
                }
            }
        }
        found.sort();
        found
    }

    /// The messages of the assertions that fail, in the order of the text.
    pub fn assertions(&self, state: &[i32]) -> Vec<String> {
        let mut found = Vec::new();
        for (process, about) in self.model.processes.iter().enumerate() {
            for (place, (location, condition)) in about.asserts.iter().enumerate() {
                if self.at(state, process) != *location {
                    continue;
                }
                let why = match self.value(state, process, condition) {
                    Ok(0) => "does not hold",
                    Ok(_) => continue,
                    Err(_) => "divides by zero or goes outside of an array",
                };
                let line = self.model.first_line(process) + place as u32;
                found.push(format!("the assertion of P{process} for state `s{location}` in line {line} {why}"));
            }
        }
        found
    }
}
