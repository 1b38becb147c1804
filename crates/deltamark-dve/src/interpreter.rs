//! The interpreter: the portable engine, and the reference for the others.
//!
//! In: a program. Out: successors. What stays true: every check of the language is made; a step allocates nothing.
//!
//! # How a state is expanded
//! The cells of the source are unpacked once. Only the transitions of the current locations are tried; a send or
//! receive only if another process is in a location with the other half (one bit a channel, see `LocationSteps`). A step
//! changes the unpacked cells and, at the same time, a packed copy of the source, writes the copy into the batch,
//! and restores the changed cells from an undo log.
//!
//! ```text
//! source ─unpack─▶ cells ─guards─▶ ready ─┬─ alone ─▶ effects on cells and copy ─▶ batch ─▶ undo by log
//!                                         └─ send × receive of other processes ─▶ the same
//! ```

use crate::code::{ExprCode, Failed, NodeId};
use crate::engine::{Engine, Taken};
use crate::ir::{Program, Step, Sync, Target, Timing, Transition, TransitionId, Type};
use deltamark_core::{Action, Batch, Scratch, Slot};

/// A program, prepared for interpretation.
pub struct Interpreter {
    code: ExprCode,
    cells: Vec<Cell>,
    /// Cells that are stored in the state; the others are constant.
    held: Vec<u32>,
    constants: Vec<i32>,
    processes: Vec<Process>,
    spots: Vec<LocationSteps>,
    moves: Vec<CompiledStep>,
    effects: Vec<Assignment>,
    /// Whether some location is committed.
    committed: bool,
    timing: Timing,
    slots: usize,
}

/// How a cell is packed, and its range.
#[derive(Clone, Copy)]
struct Cell {
    slot: u32,
    shift: u8,
    wraps: bool,
    mask: u32,
    least: i32,
    /// The largest code of a value that the analysis allows.
    limit: u32,
    allowed: (i32, i32),
}

struct Process {
    /// The cell of its location.
    location: u32,
    /// Its first spot.
    first: u32,
}

/// A location: its transitions, and one bit (the number modulo 64) for each unbuffered channel it sends to or
/// receives from. Two channels may share a bit: it is only a filter.
struct LocationSteps {
    start: u32,
    end: u32,
    sends: u64,
    receives: u64,
    committed: bool,
}

/// A transition.
struct CompiledStep {
    guard: Option<NodeId>,
    kind: CompiledStepKind,
    process: u32,
    location: u32,
    to: i32,
    effects: (u32, u32),
    action: u32,
    own_receives: u32,
    /// The values sent.
    values: Vec<NodeId>,
    /// The targets of a receive.
    places: Vec<TargetCode>,
    /// The types to which sent values are cast.
    types: Option<Vec<Type>>,
    channel: u32,
    bit: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum CompiledStepKind {
    Alone,
    Send,
    Receive,
    /// The buffer's length, first item, capacity, arity.
    Put(Queue),
    Take(Queue),
}

#[derive(Clone, Copy, PartialEq)]
struct Queue {
    length: u32,
    first: u32,
    capacity: u32,
    arity: u32,
}

#[derive(Clone, Copy)]
enum TargetCode {
    Cell(u32),
    /// First cell, length, index.
    Element(u32, u32, NodeId),
}

#[derive(Clone, Copy)]
struct Assignment {
    place: TargetCode,
    value: NodeId,
}

/// Working memory of one thread.
struct InterpreterWorkspace {
    values: Vec<i32>,
    target: Vec<Slot>,
    /// The undo log: changed cells with their previous values.
    log: Vec<(u32, i32)>,
    /// Transitions ready to send or receive, and whether their guard failed.
    sends: Vec<(u32, bool)>,
    receives: Vec<(u32, bool)>,
    /// Values in transfer, with their target cells.
    passed: Vec<(u32, i32)>,
    /// For synchronous systems: the ready transitions of each process, and the one chosen.
    ready: Vec<Vec<(u32, bool)>>,
    chosen: Vec<usize>,
    assigned: Vec<u32>,
    merged: Vec<(u32, i32)>,
}

impl Interpreter {
    /// An interpreter of this program.
    pub fn new(program: &Program) -> Self {
        let mut code = ExprCode::new(program);
        let cells: Vec<Cell> = program.state_cells().iter().map(Cell::new).collect();
        let held = (0..cells.len() as u32).filter(|&cell| cells[cell as usize].mask != 0).collect();
        let mut effects = Vec::new();
        let mut moves = Vec::with_capacity(program.transitions.len());
        for transition in &program.transitions {
            moves.push(compile(program, transition, &mut code, &mut effects));
        }
        let (mut spots, mut processes) = (Vec::new(), Vec::new());
        for process in &program.processes {
            processes.push(Process { location: process.location.0, first: spots.len() as u32 });
            for location in &process.locations {
                let range = location.transitions.start as usize..location.transitions.end as usize;
                let bits = |kind: CompiledStepKind| {
                    moves[range.clone()].iter().filter(|one| one.kind == kind).fold(0, |bits, one| bits | one.bit)
                };
                spots.push(LocationSteps {
                    start: location.transitions.start,
                    end: location.transitions.end,
                    sends: bits(CompiledStepKind::Send),
                    receives: bits(CompiledStepKind::Receive),
                    committed: location.committed,
                });
            }
        }
        Interpreter {
            constants: cells.iter().map(|cell| cell.least).collect(),
            code,
            cells,
            held,
            processes,
            spots,
            moves,
            effects,
            committed: program.has_commit && program.timing == Timing::Asynchronous,
            timing: program.timing,
            slots: program.slots,
        }
    }

    fn work(&self) -> InterpreterWorkspace {
        InterpreterWorkspace {
            values: self.constants.clone(),
            target: vec![0; self.slots],
            log: Vec::new(),
            sends: Vec::new(),
            receives: Vec::new(),
            passed: Vec::new(),
            ready: self.processes.iter().map(|_| Vec::new()).collect(),
            chosen: vec![0; self.processes.len()],
            assigned: Vec::new(),
            merged: Vec::new(),
        }
    }

    /// Unpacks a state.
    #[inline]
    fn unpack(&self, state: &[Slot], values: &mut [i32]) {
        for &number in &self.held {
            let cell = &self.cells[number as usize];
            let value = cell.least.wrapping_add((state[cell.slot as usize] >> cell.shift & cell.mask) as i32);
            values[number as usize] = if cell.wraps { value & 255 } else { value };
        }
    }

    /// The location of a process.
    #[inline]
    fn spot(&self, process: &Process, values: &[i32]) -> &LocationSteps {
        &self.spots[(process.first + values[process.location as usize] as u32) as usize]
    }

    /// Whether only committed locations may be left.
    #[inline]
    fn only_committed(&self, values: &[i32]) -> bool {
        self.committed && self.processes.iter().any(|process| self.spot(process, values).committed)
    }

    /// Whether a transition is ready; one whose guard fails is, and the step will be a fault.
    #[inline]
    fn guard(&self, one: &CompiledStep, values: &[i32]) -> Result<bool, Failed> {
        match one.guard {
            None => Ok(true),
            Some(guard) => self.code.holds(guard, values),
        }
    }

    /// Assigns a cell, in the values and in the target.
    #[inline]
    fn store(&self, work: &mut InterpreterWorkspace, number: u32, value: i32) -> Result<(), Failed> {
        let cell = &self.cells[number as usize];
        let stored = cell.code(value);
        if stored > cell.limit {
            return cell.refuse(number, value);
        }
        self.put(work, number, value, stored);
        Ok(())
    }

    /// Assigns a cell whose range contains the value.
    #[inline]
    fn put(&self, work: &mut InterpreterWorkspace, number: u32, value: i32, stored: u32) {
        let cell = &self.cells[number as usize];
        work.log.push((number, work.values[number as usize]));
        work.values[number as usize] = value;
        if cell.mask != 0 {
            let slot = &mut work.target[cell.slot as usize];
            *slot = *slot & !(cell.mask << cell.shift) | stored << cell.shift;
        }
    }

    #[inline]
    fn place(&self, place: TargetCode, values: &[i32]) -> Result<u32, Failed> {
        match place {
            TargetCode::Cell(cell) => Ok(cell),
            TargetCode::Element(first, length, index) => {
                let index = self.code.value(index, values)? as u32;
                if index < length { Ok(first + index) } else { Err(Failed) }
            }
        }
    }

    /// Moves a process and executes its effects.
    #[inline]
    fn effects(&self, work: &mut InterpreterWorkspace, one: &CompiledStep) -> Result<(), Failed> {
        let stored = self.cells[one.location as usize].code(one.to);
        self.put(work, one.location, one.to, stored);
        for effect in &self.effects[one.effects.0 as usize..one.effects.1 as usize] {
            let cell = self.place(effect.place, &work.values)?;
            let value = self.code.value(effect.value, &work.values)?;
            self.store(work, cell, value)?;
        }
        Ok(())
    }

    /// Executes a transition alone. Whether the buffer allows it was checked before.
    fn alone(&self, work: &mut InterpreterWorkspace, one: &CompiledStep) -> Result<(), Failed> {
        match one.kind {
            CompiledStepKind::Put(queue) => {
                let length = work.values[queue.length as usize] as u32;
                work.passed.clear();
                let types = one.types.as_deref().unwrap_or_default();
                for (number, (&value, kind)) in one.values.iter().zip(types).enumerate() {
                    let cell = queue.first + length * queue.arity + number as u32;
                    work.passed.push((cell, kind.cast(self.code.value(value, &work.values)?)));
                }
                work.passed.push((queue.length, length as i32 + 1));
                self.passed(work)?;
            }
            CompiledStepKind::Take(queue) => {
                work.passed.clear();
                for (number, &place) in one.places.iter().enumerate() {
                    let value = work.values[queue.first as usize + number];
                    work.passed.push((self.place(place, &work.values)?, value));
                }
                let length = work.values[queue.length as usize] as u32;
                let items = queue.first..queue.first + length * queue.arity;
                for item in items.clone() {
                    let next = item + queue.arity;
                    let value = if next < items.end { work.values[next as usize] } else { 0 };
                    work.passed.push((item, value));
                }
                work.passed.push((queue.length, length as i32 - 1));
                self.passed(work)?;
            }
            CompiledStepKind::Alone | CompiledStepKind::Send | CompiledStepKind::Receive => {}
        }
        self.effects(work, one)
    }

    /// Executes a send and a receive together.
    fn pair(&self, work: &mut InterpreterWorkspace, send: &CompiledStep, receive: &CompiledStep) -> Result<(), Failed> {
        work.passed.clear();
        for (number, (&value, &place)) in send.values.iter().zip(&receive.places).enumerate() {
            let value = self.code.value(value, &work.values)?;
            let value = send.types.as_ref().map_or(value, |types| types[number].cast(value));
            let place = self.place(place, &work.values)?;
            work.passed.push((place, value));
        }
        self.passed(work)?;
        self.effects(work, receive)?;
        self.effects(work, send)
    }

    /// Stores the values in transfer.
    fn passed(&self, work: &mut InterpreterWorkspace) -> Result<(), Failed> {
        for number in 0..work.passed.len() {
            let (cell, value) = work.passed[number];
            self.store(work, cell, value)?;
        }
        Ok(())
    }

    /// Restores the changed cells and the copy of the source.
    #[inline]
    fn undo(&self, work: &mut InterpreterWorkspace, source: &[Slot]) {
        while let Some((cell, value)) = work.log.pop() {
            work.values[cell as usize] = value;
        }
        work.target.copy_from_slice(source);
    }

    /// Whether the buffer allows the transition.
    #[inline]
    fn has_room(&self, one: &CompiledStep, values: &[i32]) -> bool {
        match one.kind {
            CompiledStepKind::Put(queue) => (values[queue.length as usize] as u32) < queue.capacity,
            CompiledStepKind::Take(queue) => values[queue.length as usize] > 0,
            CompiledStepKind::Alone | CompiledStepKind::Send | CompiledStepKind::Receive => true,
        }
    }

    fn asynchronous(
        &self,
        program: &Program,
        work: &mut InterpreterWorkspace,
        source: &[Slot],
        out: &mut Batch,
        faults: &mut Vec<Action>,
    ) {
        let only_committed = self.only_committed(&work.values);
        let (mut sends, mut receives) = (0, 0);
        for process in &self.processes {
            let spot = self.spot(process, &work.values);
            if !only_committed || spot.committed {
                sends |= spot.sends;
                receives |= spot.receives;
            }
        }
        let active = sends & receives;
        work.sends.clear();
        work.receives.clear();
        for process in &self.processes {
            let spot = self.spot(process, &work.values);
            if only_committed && !spot.committed {
                continue;
            }
            for number in spot.start..spot.end {
                if out.is_stopped() {
                    return;
                }
                let one = &self.moves[number as usize];
                match one.kind {
                    CompiledStepKind::Send | CompiledStepKind::Receive => {
                        if one.bit & active == 0 {
                            continue;
                        }
                        let failed = match self.guard(one, &work.values) {
                            Ok(false) => continue,
                            Ok(true) => false,
                            Err(Failed) => true,
                        };
                        let list =
                            if one.kind == CompiledStepKind::Send { &mut work.sends } else { &mut work.receives };
                        list.push((number, failed));
                    }
                    _ => {
                        if !self.has_room(one, &work.values) {
                            continue;
                        }
                        let done = match self.guard(one, &work.values) {
                            Ok(false) => continue,
                            Ok(true) => self.alone(work, one),
                            Err(Failed) => Err(Failed),
                        };
                        match done {
                            Ok(()) => out.push(Action(one.action), &work.target),
                            Err(Failed) => faults.push(Action(one.action)),
                        }
                        self.undo(work, source);
                    }
                }
            }
        }
        for first in 0..work.sends.len() {
            let (number, send_failed) = work.sends[first];
            let send = &self.moves[number as usize];
            for second in 0..work.receives.len() {
                let (number, receive_failed) = work.receives[second];
                let receive = &self.moves[number as usize];
                if receive.channel != send.channel || receive.process == send.process {
                    continue;
                }
                if out.is_stopped() {
                    return;
                }
                let own = if receive.process > send.process { send.own_receives } else { 0 };
                let action = Action(send.action + receive.action - own);
                let wrong = send_failed || receive_failed || conflict(program, action);
                if !wrong && self.pair(work, send, receive).is_ok() {
                    out.push(action, &work.target);
                } else {
                    faults.push(action);
                }
                self.undo(work, source);
            }
        }
    }

    /// Fills the lists of ready transitions of a synchronous system; returns whether every process has one.
    fn ready(&self, work: &mut InterpreterWorkspace) -> bool {
        for (number, process) in self.processes.iter().enumerate() {
            let spot = self.spot(process, &work.values);
            work.ready[number].clear();
            for index in spot.start..spot.end {
                match self.guard(&self.moves[index as usize], &work.values) {
                    Ok(false) => {}
                    Ok(true) => work.ready[number].push((index, false)),
                    Err(Failed) => work.ready[number].push((index, true)),
                }
            }
            if work.ready[number].is_empty() {
                return false;
            }
        }
        true
    }

    /// Takes the chosen transition of every process. Each reads the source; their assignments are merged.
    fn together(&self, program: &Program, work: &mut InterpreterWorkspace, source: &[Slot]) -> Result<(), Failed> {
        work.assigned.clear();
        work.merged.clear();
        for process in 0..self.processes.len() {
            let (number, failed) = work.ready[process][work.chosen[process]];
            if failed {
                return Err(Failed);
            }
            let one = &self.moves[number as usize];
            let own = work.assigned.len();
            for effect in &program.transitions[number as usize].effects {
                let variable = crate::ir::assigned(program, effect.target);
                if work.assigned[..own].contains(&variable) {
                    return Err(Failed);
                }
                work.assigned.push(variable);
            }
            self.effects(work, one)?;
            for index in 0..work.log.len() {
                let cell = work.log[index].0;
                work.merged.push((cell, work.values[cell as usize]));
            }
            self.undo(work, source);
        }
        for index in 0..work.merged.len() {
            let (cell, value) = work.merged[index];
            let stored = self.cells[cell as usize].code(value);
            self.put(work, cell, value, stored);
        }
        Ok(())
    }

    fn synchronous(
        &self,
        program: &Program,
        work: &mut InterpreterWorkspace,
        source: &[Slot],
        out: &mut Batch,
        faults: &mut Vec<Action>,
    ) {
        if !self.ready(work) {
            return;
        }
        work.chosen.fill(0);
        while !out.is_stopped() {
            let action = Action(self.combination(program, work));
            match self.together(program, work, source) {
                Ok(()) => out.push(action, &work.target),
                Err(Failed) => faults.push(action),
            }
            self.undo(work, source);
            // Counts in mixed radix, the first process fastest.
            let Some(process) = (0..work.chosen.len()).find(|&p| work.chosen[p] + 1 < work.ready[p].len()) else {
                return;
            };
            work.chosen[..process].fill(0);
            work.chosen[process] += 1;
        }
    }

    /// The action of the chosen transitions.
    fn combination(&self, program: &Program, work: &InterpreterWorkspace) -> u32 {
        let mut action = 0;
        for (number, process) in self.processes.iter().enumerate() {
            let (chosen, _) = work.ready[number][work.chosen[number]];
            action += (chosen - self.spot(process, &work.values).start) * program.radix[number];
        }
        action
    }

    fn fire_asynchronous(&self, program: &Program, work: &mut InterpreterWorkspace, action: Action) -> Taken {
        let Some(&step) = program.steps.get(action.0 as usize) else { return Taken::Disabled };
        let only_committed = self.only_committed(&work.values);
        let stands = |id: TransitionId| {
            let one = &self.moves[id.0 as usize];
            let spot = self.spot(&self.processes[one.process as usize], &work.values);
            (spot.start..spot.end).contains(&id.0) && (!only_committed || spot.committed)
        };
        let done = match step {
            Step::Alone(id) => {
                let one = &self.moves[id.0 as usize];
                if !stands(id) || !self.has_room(one, &work.values) {
                    return Taken::Disabled;
                }
                match self.guard(one, &work.values) {
                    Ok(false) => return Taken::Disabled,
                    Ok(true) => self.alone(work, one),
                    Err(Failed) => Err(Failed),
                }
            }
            Step::Pair { send, receive, conflict } => {
                if !stands(send) || !stands(receive) {
                    return Taken::Disabled;
                }
                let (send, receive) = (&self.moves[send.0 as usize], &self.moves[receive.0 as usize]);
                match (self.guard(send, &work.values), self.guard(receive, &work.values)) {
                    (Ok(false), _) | (_, Ok(false)) => return Taken::Disabled,
                    (Ok(true), Ok(true)) if conflict.is_none() => self.pair(work, send, receive),
                    _ => Err(Failed),
                }
            }
        };
        if done.is_ok() { Taken::Done } else { Taken::Fault }
    }

    fn fire_synchronous(
        &self,
        program: &Program,
        work: &mut InterpreterWorkspace,
        source: &[Slot],
        action: Action,
    ) -> Taken {
        if action.0 >= program.action_count || !self.ready(work) {
            return Taken::Disabled;
        }
        let mut rest = action.0;
        for (number, process) in self.processes.iter().enumerate().rev() {
            let digit = rest / program.radix[number];
            rest %= program.radix[number];
            let wanted = self.spot(process, &work.values).start + digit;
            match work.ready[number].iter().position(|&(index, _)| index == wanted) {
                Some(place) => work.chosen[number] = place,
                None => return Taken::Disabled,
            }
        }
        if self.together(program, work, source).is_ok() { Taken::Done } else { Taken::Fault }
    }
}

/// Whether both sides of a pair assign the same global.
#[inline]
fn conflict(program: &Program, action: Action) -> bool {
    matches!(program.steps[action.0 as usize], Step::Pair { conflict: Some(_), .. })
}

impl Cell {
    fn new(cell: &crate::ir::Cell) -> Self {
        let limit = match cell.wraps {
            true => cell.mask(),
            false => cell.values.1.wrapping_sub(cell.least()) as u32,
        };
        Cell {
            slot: cell.field.slot(),
            shift: cell.field.shift(),
            wraps: cell.wraps,
            mask: cell.mask(),
            least: cell.least(),
            limit,
            allowed: cell.allowed,
        }
    }

    /// What is stored for a value; beyond the limit for one that is not allowed, see [`Cell::code`](crate::ir::Cell::code).
    #[inline]
    fn code(&self, value: i32) -> u32 {
        let stored = value.wrapping_sub(self.least) as u32;
        match (self.wraps, (value as u32) < 256) {
            (false, _) => stored,
            (true, true) => stored & 255,
            (true, false) => u32::MAX,
        }
    }

    /// A value that is not stored: a fault, or an error of the analysis.
    #[cold]
    fn refuse(&self, number: u32, value: i32) -> Result<(), Failed> {
        let allowed = self.allowed.0 <= value && value <= self.allowed.1;
        assert!(!allowed, "I4: the analysis says that cell {number} never holds {value}");
        Err(Failed)
    }
}

fn compile(
    program: &Program,
    transition: &Transition,
    code: &mut ExprCode,
    effects: &mut Vec<Assignment>,
) -> CompiledStep {
    let place = |code: &mut ExprCode, target: Target| match target {
        Target::Cell(cell) => TargetCode::Cell(cell.0),
        Target::Element { array, index, .. } => {
            let array = &program.arrays[array.0 as usize];
            TargetCode::Element(array.first.0, array.length, code.compile(program, index))
        }
    };
    let start = effects.len() as u32;
    for effect in &transition.effects {
        effects.push(Assignment { place: place(code, effect.target), value: code.compile(program, effect.value) });
    }
    let guard = match program.expr(transition.guard) {
        crate::ir::Expr::Const(1) => None,
        _ => Some(code.compile(program, transition.guard)),
    };
    let queue = |channel: crate::ir::ChannelId| {
        let channel = &program.channels[channel.0 as usize];
        channel.buffer.map(|buffer| Queue {
            length: buffer.length.0,
            first: buffer.first.0,
            capacity: buffer.capacity,
            arity: channel.arity,
        })
    };
    let (kind, channel) = match transition.sync {
        Sync::None => (CompiledStepKind::Alone, u32::MAX),
        Sync::Send(channel, _) => (queue(channel).map_or(CompiledStepKind::Send, CompiledStepKind::Put), channel.0),
        Sync::Receive(channel, _) => {
            (queue(channel).map_or(CompiledStepKind::Receive, CompiledStepKind::Take), channel.0)
        }
    };
    let (mut values, mut places) = (Vec::new(), Vec::new());
    match &transition.sync {
        Sync::None => {}
        Sync::Send(_, sent) => values.extend(sent.iter().map(|&value| code.compile(program, value))),
        Sync::Receive(_, targets) => places.extend(targets.iter().map(|&target| place(code, target))),
    }
    CompiledStep {
        guard,
        kind,
        process: transition.process.0,
        location: program.processes[transition.process.0 as usize].location.0,
        to: transition.to as i32,
        effects: (start, effects.len() as u32),
        action: transition.action,
        own_receives: transition.own_receives,
        values,
        places,
        types: program.channels.get(channel as usize).and_then(|channel| channel.types.clone()),
        channel,
        bit: if channel == u32::MAX { 0 } else { 1 << (channel % 64) },
    }
}

impl Engine for Interpreter {
    fn name(&self) -> &'static str {
        "interpreter"
    }

    fn scratch(&self, _: &Program) -> Scratch {
        Scratch::new(self.work())
    }

    fn successors(
        &self,
        program: &Program,
        scratch: &mut Scratch,
        source: &[Slot],
        out: &mut Batch,
        faults: &mut Vec<Action>,
    ) {
        let work = scratch.get::<InterpreterWorkspace>();
        self.unpack(source, &mut work.values);
        work.target.copy_from_slice(source);
        match self.timing {
            Timing::Asynchronous => self.asynchronous(program, work, source, out, faults),
            Timing::Synchronous => self.synchronous(program, work, source, out, faults),
        }
    }

    fn fire(
        &self,
        program: &Program,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut [Slot],
    ) -> Taken {
        let work = scratch.get::<InterpreterWorkspace>();
        self.unpack(source, &mut work.values);
        work.target.copy_from_slice(source);
        let taken = match self.timing {
            Timing::Asynchronous => self.fire_asynchronous(program, work, action),
            Timing::Synchronous => self.fire_synchronous(program, work, source, action),
        };
        target.copy_from_slice(&work.target);
        work.log.clear();
        taken
    }
}
