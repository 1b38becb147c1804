//! The reference: one step, slow and plain, with messages for faults.
//!
//! In: a program, the values of its cells, an action. Out: the values after the step, or why there are none. What
//! stays true: this follows the intermediate representation literally, with no tables of its own, so that it is
//! the oracle in tests; and since faults are rare, it produces their messages. What the analysis has proved
//! impossible is asserted here. It reads the program after folding and analysis; an oracle that shares nothing
//! with them is in `tests/models`.

use crate::arithmetic;
use crate::ir::{
    Buffer, CellId, Effect, Expr, ExprId, Owner, Program, Step, Sync, Target, Timing, Transition, TransitionId,
};

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The values of all cells after it.
    Done(Vec<i32>),
    /// It is not enabled.
    Disabled,
    /// It is a fault, and why: a sentence without a full stop.
    Fault(String),
}

/// The values of all cells in a state.
pub fn unpack(program: &Program, state: &[deltamark_core::Slot]) -> Vec<i32> {
    program.state_cells().iter().map(|cell| cell.read(state)).collect()
}

/// Takes a step.
pub fn step(program: &Program, source: &[i32], action: u32) -> Outcome {
    let outcome = match program.timing {
        Timing::Asynchronous => asynchronous(program, source, action),
        Timing::Synchronous => synchronous(program, source, action),
    };
    match outcome {
        Ok(Some(values)) => Outcome::Done(values),
        Ok(None) => Outcome::Disabled,
        Err(why) => Outcome::Fault(why),
    }
}

/// The message of a fault.
type Why = String;

/// An error of our own analysis.
const UNCHECKED: &str = "the analysis says that this cannot fail in a reachable state";

fn asynchronous(program: &Program, source: &[i32], action: u32) -> Result<Option<Vec<i32>>, Why> {
    let Some(&step) = program.steps.get(action as usize) else { return Ok(None) };
    let mut values;
    match step {
        Step::Alone(id) => {
            let transition = program.transition(id);
            let buffer = program.buffer_of(transition);
            if !stands(program, source, transition) || !has_room(program, source, transition, buffer) {
                return Ok(None);
            }
            if !guard(program, source, transition)? {
                return Ok(None);
            }
            values = source.to_vec();
            if let Some(buffer) = buffer {
                transfer(program, source, &mut values, transition, buffer)?;
            }
            effects(program, &mut values, transition)?;
        }
        Step::Pair { send, receive, conflict } => {
            let (send, receive) = (program.transition(send), program.transition(receive));
            if !stands(program, source, send) || !stands(program, source, receive) {
                return Ok(None);
            }
            let (one, other) = (guard(program, source, send), guard(program, source, receive));
            if one == Ok(false) || other == Ok(false) {
                return Ok(None);
            }
            one?;
            other?;
            if let Some(variable) = conflict {
                let name = &program.variables[variable as usize].name;
                let lines = (send.place.line, receive.place.line);
                return Err(format!("sender (line {}) and receiver (line {}) both assign `{name}`", lines.0, lines.1));
            }
            values = source.to_vec();
            handshake(program, source, &mut values, send, receive)?;
            effects(program, &mut values, receive)?;
            effects(program, &mut values, send)?;
        }
    }
    Ok(Some(values))
}

fn synchronous(program: &Program, source: &[i32], action: u32) -> Result<Option<Vec<i32>>, Why> {
    let mut taken: Vec<&Transition> = Vec::with_capacity(program.processes.len());
    let mut rest = action;
    for (process, &radix) in program.processes.iter().zip(&program.radix).rev() {
        let digit = rest / radix;
        rest %= radix;
        let location = &process.locations[source[process.location.0 as usize] as usize];
        if digit >= location.transitions.len() as u32 {
            return Ok(None);
        }
        taken.push(program.transition(TransitionId(location.transitions.start + digit)));
    }
    taken.reverse();
    let mut wrong = None;
    for transition in &taken {
        match guard(program, source, transition) {
            Ok(false) => return Ok(None),
            Ok(true) => {}
            Err(why) => wrong = wrong.or(Some(why)),
        }
    }
    if let Some(why) = wrong {
        return Err(why);
    }
    let mut merged = source.to_vec();
    let mut assigners: Vec<Option<u32>> = vec![None; program.variables.len()];
    for transition in taken {
        let mut own = source.to_vec();
        effects(program, &mut own, transition)?;
        merged[program.processes[transition.process.0 as usize].location.0 as usize] = transition.to as i32;
        for effect in &transition.effects {
            let variable = crate::ir::assigned(program, effect.target);
            let line = transition.place.line;
            let before = assigners[variable as usize].replace(transition.process.0);
            if before.is_some_and(|before| before != transition.process.0) {
                let name = &program.variables[variable as usize].name;
                return Err(format!("two processes assign `{name}` at once (one of them in line {line})"));
            }
            let Variables { first, length } = variables(program, variable);
            merged[first..first + length].copy_from_slice(&own[first..first + length]);
        }
    }
    Ok(Some(merged))
}

struct Variables {
    first: usize,
    length: usize,
}

fn variables(program: &Program, variable: u32) -> Variables {
    let variable = &program.variables[variable as usize];
    Variables { first: variable.first.0 as usize, length: variable.length.unwrap_or(1) as usize }
}

/// Whether the process is in the source location of the transition, and may leave it.
fn stands(program: &Program, values: &[i32], transition: &Transition) -> bool {
    let at = |process: &crate::ir::Process| values[process.location.0 as usize] as u32;
    let process = &program.processes[transition.process.0 as usize];
    let committed = |process: &crate::ir::Process| process.locations[at(process) as usize].committed;
    let bound = program.has_commit && program.processes.iter().any(committed);
    at(process) == transition.from && (committed(process) || !bound)
}

/// Whether the buffer allows the transition.
fn has_room(program: &Program, values: &[i32], transition: &Transition, buffer: Option<Buffer>) -> bool {
    let Some(buffer) = buffer else {
        debug_assert!(program.buffer_of(transition).is_none());
        return true;
    };
    let length = values[buffer.length.0 as usize];
    match transition.sync {
        Sync::Send(..) => length < buffer.capacity as i32,
        _ => length > 0,
    }
}

fn guard(program: &Program, values: &[i32], transition: &Transition) -> Result<bool, Why> {
    match evaluate(program, values, transition.guard) {
        Ok(value) => Ok(value != 0),
        Err(why) => Err(format!("{why}, in the guard in line {}", transition.place.line)),
    }
}

/// Sends to or receives from a buffer.
fn transfer(
    program: &Program,
    source: &[i32],
    values: &mut [i32],
    transition: &Transition,
    buffer: Buffer,
) -> Result<(), Why> {
    let at = |why: Why| format!("{why}, in line {}", transition.place.line);
    let length = source[buffer.length.0 as usize] as usize;
    let first = buffer.first.0 as usize;
    match &transition.sync {
        Sync::Send(channel, sent) => {
            let channel = &program.channels[channel.0 as usize];
            let types = channel.types.as_deref().unwrap_or_default();
            for (number, (&sent, kind)) in sent.iter().zip(types).enumerate() {
                let value = evaluate(program, source, sent).map_err(at)?;
                values[first + length * types.len() + number] = kind.cast(value);
            }
            values[buffer.length.0 as usize] += 1;
        }
        Sync::Receive(channel, targets) => {
            let arity = program.channels[channel.0 as usize].arity as usize;
            let places = targets.iter().map(|&target| place(program, source, target)).collect::<Result<Vec<_>, _>>();
            for (number, cell) in places.map_err(at)?.into_iter().enumerate() {
                store(program, values, cell, source[first + number]).map_err(at)?;
            }
            let end = first + buffer.capacity as usize * arity;
            values.copy_within(first + arity..end, first);
            values[first + (length - 1) * arity..first + length * arity].fill(0);
            values[buffer.length.0 as usize] -= 1;
        }
        Sync::None => {}
    }
    Ok(())
}

/// Transfers the sent values.
fn handshake(
    program: &Program,
    source: &[i32],
    values: &mut [i32],
    send: &Transition,
    receive: &Transition,
) -> Result<(), Why> {
    let (Sync::Send(channel, sent), Sync::Receive(_, targets)) = (&send.sync, &receive.sync) else { return Ok(()) };
    let types = program.channels[channel.0 as usize].types.as_deref();
    let sent = sent.iter().enumerate().map(|(number, &sent)| {
        let value = evaluate(program, source, sent)?;
        Ok(types.map_or(value, |types| types[number].cast(value)))
    });
    let sent = sent.collect::<Result<Vec<i32>, Why>>();
    let sent = sent.map_err(|why| format!("{why}, in the value sent in line {}", send.place.line))?;
    let at = |why: Why| format!("{why}, in what is received in line {}", receive.place.line);
    let places = targets.iter().map(|&target| place(program, source, target)).collect::<Result<Vec<_>, _>>();
    for (cell, value) in places.map_err(at)?.into_iter().zip(sent) {
        store(program, values, cell, value).map_err(at)?;
    }
    Ok(())
}

/// Moves a process and executes its effects.
fn effects(program: &Program, values: &mut [i32], transition: &Transition) -> Result<(), Why> {
    let process = &program.processes[transition.process.0 as usize];
    values[process.location.0 as usize] = transition.to as i32;
    for &Effect { target, value, checked } in &transition.effects {
        let at = |why: Why| format!("{why}, in an effect in line {}", transition.place.line);
        let cell = place(program, values, target).map_err(at)?;
        let value = evaluate(program, values, value).map_err(at)?;
        let stored = store(program, values, cell, value);
        assert!(stored.is_ok() || checked, "{UNCHECKED}: {stored:?}");
        stored.map_err(at)?;
    }
    Ok(())
}

/// The cell that is assigned.
fn place(program: &Program, values: &[i32], target: Target) -> Result<CellId, Why> {
    match target {
        Target::Cell(cell) => Ok(cell),
        Target::Element { array, index, checked } => {
            let array = &program.arrays[array.0 as usize];
            let index = evaluate(program, values, index)?;
            within(index, array.length as usize, checked, || name_of(program, array.variable))?;
            Ok(CellId(array.first.0 + index as u32))
        }
    }
}

fn within(index: i32, length: usize, checked: bool, name: impl Fn() -> String) -> Result<(), Why> {
    if usize::try_from(index).is_ok_and(|index| index < length) {
        return Ok(());
    }
    assert!(checked, "{UNCHECKED}: index {index} of `{}`", name());
    Err(format!("index {index} is outside of `{}`, which has elements 0 to {}", name(), length - 1))
}

/// A variable's name with that of its process.
pub fn name_of(program: &Program, variable: u32) -> String {
    let variable = &program.variables[variable as usize];
    match (variable.process, &program.monitor) {
        (Some(process), _) => format!("{}.{}", program.processes[process.0 as usize].name, variable.name),
        (None, Some(monitor)) if variable.of_monitor => format!("{}.{}", monitor.process.name, variable.name),
        _ => variable.name.clone(),
    }
}

fn store(program: &Program, values: &mut [i32], cell: CellId, value: i32) -> Result<(), Why> {
    let allowed = program.cells[cell.0 as usize].allowed;
    if value < allowed.0 || value > allowed.1 {
        let (name, kind) = match program.cells[cell.0 as usize].owner {
            Owner::Variable(variable, index) => {
                let name = name_of(program, variable);
                let variable = &program.variables[variable as usize];
                let name = if variable.length.is_some() { format!("{name}[{index}]") } else { name };
                (name, format!("{} {}", variable.kind.article(), variable.kind.word()))
            }
            other => (format!("{other:?}"), "a number".into()),
        };
        return Err(format!("{value} does not fit `{name}`, {kind} ({} to {})", allowed.0, allowed.1));
    }
    values[cell.0 as usize] = value;
    Ok(())
}

/// The value of an expression.
pub fn evaluate(program: &Program, values: &[i32], id: ExprId) -> Result<i32, Why> {
    Ok(match program.expr(id) {
        Expr::Const(value) => value,
        Expr::Cell(cell) => values[cell.0 as usize],
        Expr::Element { array, index, checked } => {
            let array = &program.arrays[array.0 as usize];
            let index = evaluate(program, values, index)?;
            within(index, array.length as usize, checked, || name_of(program, array.variable))?;
            values[array.first.0 as usize + index as usize]
        }
        Expr::Lookup { table, index, checked } => {
            let table = &program.tables[table.0 as usize];
            let index = evaluate(program, values, index)?;
            within(index, table.values.len(), checked, || table.name.clone())?;
            table.values[index as usize]
        }
        Expr::Unary(operator, operand) => arithmetic::unary(operator, evaluate(program, values, operand)?),
        Expr::Binary(operator, left, right) => {
            let left = evaluate(program, values, left)?;
            arithmetic::binary(operator, left, evaluate(program, values, right)?)
        }
        Expr::Divide { remainder, left, right, checked } => {
            let left = evaluate(program, values, left)?;
            let right = evaluate(program, values, right)?;
            assert!(right != 0 || checked, "{UNCHECKED}: a division by zero");
            arithmetic::divide(remainder, left, right).ok_or("division by zero")?
        }
        Expr::And(left, right) => {
            i32::from(evaluate(program, values, left)? != 0 && evaluate(program, values, right)? != 0)
        }
        Expr::Or(left, right) => {
            i32::from(evaluate(program, values, left)? != 0 || evaluate(program, values, right)? != 0)
        }
    })
}
