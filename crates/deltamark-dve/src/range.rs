//! Which numbers each cell can hold.
//!
//! In: a program. Out: for each cell a set of numbers that contains all it holds in any reachable state (I4), so
//! that fields can be narrow; and the program anew, with what is then constant folded, and checks that cannot fail taken out. What
//! stays true: the sets only grow, and at most a fixed number of times, so that the end is reached.
//!
//! # How
//! An abstract interpretation (Cousot and Cousot 1977, *Abstract interpretation*) with small sets and spans of numbers, see
//! [`Values`]. Variables of a process that are no arrays have a set for each location of the process: nobody else assigns
//! them. All other cells have one set for all states, and an array has one for all its elements. Guards narrow the sets
//! for the effects behind them. A set that keeps growing is
//! widened to the next number that the model mentions, then to its type.
//!
//! # Why it is sound
//! Every step is one of: a transition alone, a receive behind a send, a send behind a receive. For each transition, its effects are
//! worked out over sets that contain all values the cells have when they happen. For a receive these are the source's,
//! changed by the transfer. For a send they are what the receiver has left behind: so only the sender's own
//! variables keep what its guard says. Values outside a type are dropped, for storing them is a fault and leads nowhere.

use crate::arithmetic;
use crate::ir::{
    Cell, CellId, Effect, Expr, ExprId, Monitor, Owner, Program, Sync, Target, Timing, Transition, TransitionId,
};
use crate::layout::{self, Code};
use crate::pool::{Pool, opposite};
use crate::values::Values;
use std::collections::VecDeque;

/// How often a span may grow to a number that the model mentions before it takes its whole type.
const PATIENCE: u8 = 6;
/// How many nodes may be looked at for what a guard implies.
const FUEL: u32 = 3_000;

/// Narrows the cells of a program and simplifies its expressions. Gives how each cell is to be stored.
pub(crate) fn narrow(program: &mut Program) -> Vec<Code> {
    let mut analysis = Analysis::new(program);
    analysis.run();
    let Analysis { sets, owner, locals, reached, .. } = analysis;
    let facts = Facts { sets, owner, locals, reached };
    let mut codes: Vec<Code> = Vec::with_capacity(program.cells.len());
    for (number, cell) in program.cells.iter_mut().enumerate() {
        let set = &facts.sets[facts.owner[number] as usize];
        let of_monitor = number >= facts.reached_cells();
        let hull = if of_monitor { cell.allowed } else { set.hull().unwrap_or((cell.initial, cell.initial)) };
        cell.values = hull;
        codes.push(if of_monitor { layout::plain(hull.0, hull.1) } else { code(cell, set, hull) });
    }
    simplify(program, &facts);
    codes
}

/// How a cell is stored that holds numbers of this set.
fn code(cell: &Cell, set: &Values, hull: (i32, i32)) -> Code {
    let plain = layout::plain(hull.0, hull.1);
    let (Values::Few(list), Owner::Variable(..) | Owner::Item(..), (0, 255)) = (set, cell.owner, cell.allowed) else {
        return plain;
    };
    // Around the circle of 256 numbers: the widest gap is left out.
    let next = |place: usize| list.get(place + 1).copied().unwrap_or(list[0] + 256);
    let Some(widest) = (0..list.len()).max_by_key(|&place| next(place) - list[place]) else { return plain };
    let (least, count) = (next(widest) & 255, 256 - (next(widest) - list[widest]));
    let around = layout::plain(0, count);
    if around.bits < plain.bits { Code { bits: around.bits, least, wraps: true } } else { plain }
}

/// What is known when the analysis has ended.
struct Facts {
    sets: Vec<Values>,
    /// The set of each cell: arrays share one.
    owner: Vec<u32>,
    locals: Locals,
    /// The locations each process reaches.
    reached: Vec<Vec<bool>>,
}

impl Facts {
    /// How many cells belong to the state.
    fn reached_cells(&self) -> usize {
        self.locals.cells
    }
}

/// The variables of processes that have a set for each location.
struct Locals {
    /// For each cell: its process and its place among that process's variables.
    place: Vec<Option<(u32, u32)>>,
    /// The cells of each process.
    of: Vec<Vec<u32>>,
    /// By process, location, place.
    sets: Vec<Vec<Vec<Values>>>,
    /// How many cells belong to the state.
    cells: usize,
}

struct Analysis<'p> {
    program: &'p Program,
    sets: Vec<Values>,
    owner: Vec<u32>,
    locals: Locals,
    reached: Vec<Vec<bool>>,
    /// What is sent over each channel, and whether anything is.
    sent: Vec<(bool, Vec<Values>)>,
    /// How often each set, each set of what is sent, and each local set, has grown as a span.
    growths: Vec<u8>,
    sent_growths: Vec<Vec<u8>>,
    local_growths: Vec<Vec<Vec<u8>>>,
    /// Numbers that the model mentions, and their neighbours, ascending.
    mentioned: Vec<i32>,
    /// Transitions that read each set.
    readers: Vec<Vec<u32>>,
    queue: VecDeque<u32>,
    queued: Vec<bool>,
}

/// What is known at one moment of one step.
#[derive(Clone)]
struct Moment {
    /// The process that moves, and where it was.
    process: Option<(u32, u32)>,
    /// What differs from what is known of all states.
    known: Vec<(u32, Values)>,
    fuel: u32,
}

/// What sets can be read from.
trait Sets {
    fn program(&self) -> &Program;
    /// What a cell may hold when nothing special is known.
    fn general(&self, process: Option<(u32, u32)>, cell: u32) -> Values;

    fn get(&self, moment: &Moment, cell: u32) -> Values {
        match moment.known.iter().find(|(known, _)| *known == cell) {
            Some((_, values)) => values.clone(),
            None => self.general(moment.process, cell),
        }
    }
}

fn general(
    program: &Program,
    sets: &[Values],
    owner: &[u32],
    locals: &Locals,
    reached: &[Vec<bool>],
    process: Option<(u32, u32)>,
    cell: u32,
) -> Values {
    if cell as usize >= locals.cells {
        let allowed = program.cells[cell as usize].allowed;
        return Values::span(allowed.0.into(), allowed.1.into());
    }
    if let (Some((own, place)), Some((process, location))) = (locals.place[cell as usize], process)
        && own == process
    {
        return locals.sets[process as usize][location as usize][place as usize].clone();
    }
    if let Owner::Location(other) = program.cells[cell as usize].owner {
        if let Some((process, location)) = process
            && process == other.0
        {
            return Values::one(location as i32);
        }
        let mut values = Values::none();
        for (location, _) in reached[other.0 as usize].iter().enumerate().filter(|(_, reached)| **reached) {
            values = values.union(&Values::one(location as i32));
        }
        return values;
    }
    sets[owner[cell as usize] as usize].clone()
}

impl Sets for Analysis<'_> {
    fn program(&self) -> &Program {
        self.program
    }

    fn general(&self, process: Option<(u32, u32)>, cell: u32) -> Values {
        general(self.program, &self.sets, &self.owner, &self.locals, &self.reached, process, cell)
    }
}

struct Known<'p> {
    program: &'p Program,
    facts: &'p Facts,
}

impl Sets for Known<'_> {
    fn program(&self) -> &Program {
        self.program
    }

    fn general(&self, process: Option<(u32, u32)>, cell: u32) -> Values {
        let Facts { sets, owner, locals, reached } = self.facts;
        general(self.program, sets, owner, locals, reached, process, cell)
    }
}

impl Moment {
    fn new(process: Option<(u32, u32)>) -> Self {
        Moment { process, known: Vec::new(), fuel: FUEL }
    }

    fn set(&mut self, cell: u32, values: Values) {
        match self.known.iter_mut().find(|(known, _)| *known == cell) {
            Some((_, old)) => *old = values,
            None => self.known.push((cell, values)),
        }
    }

    /// Forgets all but what belongs to the process itself and nobody else can change.
    fn forget(&mut self, own: impl Fn(u32) -> bool) {
        self.known.retain(|(cell, _)| own(*cell));
    }

    /// Keeps what is known in both.
    fn join(&mut self, other: &Moment) {
        self.known.retain_mut(|(cell, values)| match other.known.iter().find(|(known, _)| known == cell) {
            Some((_, others)) => {
                *values = values.union(others);
                true
            }
            None => false,
        });
    }
}

/// What an expression may be. Nothing: it is always a fault.
fn evaluate(sets: &dyn Sets, moment: &mut Moment, id: ExprId) -> Values {
    match sets.program().expr(id) {
        Expr::Const(value) => Values::one(value),
        Expr::Cell(cell) => sets.get(moment, cell.0),
        Expr::Element { array, index, .. } => {
            let array = &sets.program().arrays[array.0 as usize];
            let (first, length) = (array.first.0, array.length);
            match evaluate(sets, moment, index).clip(0, length as i32 - 1) {
                index if index.is_empty() => Values::none(),
                index => match index.single() {
                    Some(index) => sets.get(moment, first + index as u32),
                    // All elements share one set; what is known of single ones at this moment may
                    // have been assigned within this step, so it is in that set too.
                    None => sets.general(moment.process, first),
                },
            }
        }
        Expr::Lookup { table, index, .. } => {
            let index = evaluate(sets, moment, index);
            let table = &sets.program().tables[table.0 as usize].values;
            let found = table.iter().enumerate().filter(|&(place, _)| index.contains(place as i32));
            found.fold(Values::none(), |values, (_, &value)| values.union(&Values::one(value)))
        }
        Expr::Unary(operator, operand) => evaluate(sets, moment, operand).unary(operator),
        Expr::Binary(operator, left, right) => {
            let left = evaluate(sets, moment, left);
            left.binary(operator, &evaluate(sets, moment, right))
        }
        Expr::Divide { remainder, left, right, .. } => {
            let left = evaluate(sets, moment, left);
            left.divide(remainder, &evaluate(sets, moment, right))
        }
        Expr::And(left, right) => {
            let (one, other) = (evaluate(sets, moment, left), behind(sets, moment, left, true, right));
            Values::truth(one.may_be_false() || other.may_be_false(), one.may_be_true() && other.may_be_true())
        }
        Expr::Or(left, right) => {
            let (one, other) = (evaluate(sets, moment, left), behind(sets, moment, left, false, right));
            Values::truth(one.may_be_false() && other.may_be_false(), one.may_be_true() || other.may_be_true())
        }
    }
}

/// The most combinations of values that are tried one by one.
const COMBINATIONS: usize = 512;
/// The most nodes of an expression that is tried so.
const SMALL: usize = 48;

/// The same, more closely where that is cheap: a small expression over few cells with few values each is worked out for
/// each of them, so that `(t - 1) | (t == 255) * 255` is known to keep 255.
fn closely(sets: &dyn Sets, moment: &mut Moment, id: ExprId) -> Values {
    exact(sets, moment, id).unwrap_or_else(|| evaluate(sets, moment, id))
}

fn exact(sets: &dyn Sets, moment: &Moment, id: ExprId) -> Option<Values> {
    let program = sets.program();
    let mut cells: Vec<(u32, Vec<i32>)> = Vec::new();
    let (mut rest, mut nodes, mut combinations) = (vec![id], 0, 1);
    while let Some(id) = rest.pop() {
        nodes += 1;
        match program.expr(id) {
            _ if nodes > SMALL => return None,
            Expr::Const(_) => {}
            Expr::Cell(cell) if cells.iter().any(|(known, _)| *known == cell.0) => {}
            Expr::Cell(cell) => {
                let Values::Few(list) = sets.get(moment, cell.0) else { return None };
                combinations *= list.len();
                if combinations > COMBINATIONS {
                    return None;
                }
                cells.push((cell.0, list));
            }
            Expr::Element { .. } => return None,
            Expr::Lookup { index: operand, .. } | Expr::Unary(_, operand) => rest.push(operand),
            Expr::Binary(_, left, right)
            | Expr::Divide { left, right, .. }
            | Expr::And(left, right)
            | Expr::Or(left, right) => rest.extend([left, right]),
        }
    }
    let mut results = Values::none();
    for number in 0..combinations {
        let mut digits = number;
        let values: Vec<(u32, i32)> = cells
            .iter()
            .map(|(cell, list)| {
                let value = list[digits % list.len()];
                digits /= list.len();
                (*cell, value)
            })
            .collect();
        if let Some(value) = concrete(program, id, &values) {
            results = results.union(&Values::one(value));
        }
    }
    Some(results)
}

/// The value of an expression over these cells; nothing when it is a fault.
fn concrete(program: &Program, id: ExprId, values: &[(u32, i32)]) -> Option<i32> {
    let value = |id: ExprId| concrete(program, id, values);
    match program.expr(id) {
        Expr::Const(value) => Some(value),
        Expr::Cell(cell) => values.iter().find(|(known, _)| *known == cell.0).map(|(_, value)| *value),
        Expr::Element { .. } => None,
        Expr::Lookup { table, index, .. } => {
            program.tables[table.0 as usize].values.get(usize::try_from(value(index)?).ok()?).copied()
        }
        Expr::Unary(operator, operand) => Some(arithmetic::unary(operator, value(operand)?)),
        Expr::Binary(operator, left, right) => Some(arithmetic::binary(operator, value(left)?, value(right)?)),
        Expr::Divide { remainder, left, right, .. } => arithmetic::divide(remainder, value(left)?, value(right)?),
        Expr::And(left, right) => Some(i32::from(value(left)? != 0 && value(right)? != 0)),
        Expr::Or(left, right) => Some(i32::from(value(left)? != 0 || value(right)? != 0)),
    }
}

/// What `right` may be where `left` is true, or false.
fn behind(sets: &dyn Sets, moment: &mut Moment, left: ExprId, truth: bool, right: ExprId) -> Values {
    if moment.fuel == 0 {
        return evaluate(sets, moment, right);
    }
    let mut there = moment.clone();
    let values = if assume(sets, &mut there, left, truth) { evaluate(sets, &mut there, right) } else { Values::none() };
    moment.fuel = there.fuel;
    values
}

/// Narrows what is known by an expression being true, or false. Says whether that can be.
fn assume(sets: &dyn Sets, moment: &mut Moment, id: ExprId, truth: bool) -> bool {
    if moment.fuel == 0 {
        return true;
    }
    moment.fuel -= 1;
    match (sets.program().expr(id), truth) {
        (Expr::Const(value), _) => (value != 0) == truth,
        (Expr::And(left, right), true) | (Expr::Or(left, right), false) => {
            assume(sets, moment, left, truth) && assume(sets, moment, right, truth)
        }
        (Expr::And(left, right), false) | (Expr::Or(left, right), true) => {
            let (mut one, mut other) = (moment.clone(), moment.clone());
            let first = assume(sets, &mut one, left, truth);
            other.fuel = one.fuel;
            let second = assume(sets, &mut other, right, truth);
            match (first, second) {
                (true, true) => {
                    one.join(&other);
                    *moment = one;
                }
                (true, false) => *moment = one,
                (false, true) => *moment = other.clone(),
                (false, false) => {}
            }
            moment.fuel = other.fuel;
            first || second
        }
        (Expr::Unary(crate::ir::Unary::Not, operand), _) => assume(sets, moment, operand, !truth),
        (Expr::Cell(cell), _) => {
            let values = sets.get(moment, cell.0);
            let values = if truth { values.without(0) } else { values.clip(0, 0) };
            let possible = !values.is_empty();
            moment.set(cell.0, values);
            possible
        }
        (Expr::Binary(operator, left, right), _) if opposite(operator).is_some() => {
            let operator = if truth { operator } else { opposite(operator).unwrap_or(operator) };
            let (one, other) = (evaluate(sets, moment, left), evaluate(sets, moment, right));
            let (narrowed, swapped) = (one.compared(operator, &other), other.compared(mirror(operator), &one));
            let possible = !narrowed.is_empty() && !swapped.is_empty();
            if let Expr::Cell(cell) = sets.program().expr(left) {
                moment.set(cell.0, narrowed);
            }
            if let Expr::Cell(cell) = sets.program().expr(right) {
                moment.set(cell.0, swapped);
            }
            possible
        }
        _ => {
            let values = evaluate(sets, moment, id);
            if truth { values.may_be_true() } else { values.may_be_false() }
        }
    }
}

/// The comparison that says the same with the sides exchanged.
fn mirror(comparison: crate::ir::Binary) -> crate::ir::Binary {
    use crate::ir::Binary::{AtLeast, AtMost, Less, More};
    match comparison {
        Less => More,
        More => Less,
        AtMost => AtLeast,
        AtLeast => AtMost,
        other => other,
    }
}

impl<'p> Analysis<'p> {
    fn new(program: &'p Program) -> Self {
        let cells = program.state_cells().len();
        let mut owner: Vec<u32> = (0..program.cells.len() as u32).collect();
        for array in &program.arrays {
            owner[layout::cells(array.first, array.length)].fill(array.first.0);
        }
        for channel in &program.channels {
            // The items of a buffer at the same place in their messages share a set.
            let Some(buffer) = channel.buffer else { continue };
            for item in 0..buffer.capacity * channel.arity {
                owner[(buffer.first.0 + item) as usize] = buffer.first.0 + item % channel.arity;
            }
        }
        let mut sets = vec![Values::none(); program.cells.len()];
        for (number, cell) in program.cells.iter().enumerate() {
            let set = &mut sets[owner[number] as usize];
            *set = match cell.owner {
                Owner::Length(_) | Owner::Location(_) => Values::span(cell.allowed.0.into(), cell.allowed.1.into()),
                _ => set.union(&Values::one(cell.initial)),
            };
        }
        let mut place = vec![None; program.cells.len()];
        let mut of: Vec<Vec<u32>> = program.processes.iter().map(|_| Vec::new()).collect();
        for variable in &program.variables {
            if let (Some(process), None) = (variable.process, variable.length) {
                let list = &mut of[process.0 as usize];
                place[variable.first.0 as usize] = Some((process.0, list.len() as u32));
                list.push(variable.first.0);
            }
        }
        let mut reached: Vec<Vec<bool>> = program.processes.iter().map(|p| vec![false; p.locations.len()]).collect();
        let mut local_sets: Vec<Vec<Vec<Values>>> = Vec::new();
        let mut local_growths = Vec::new();
        for (number, process) in program.processes.iter().enumerate() {
            let mut by_location = vec![vec![Values::none(); of[number].len()]; process.locations.len()];
            let initial = program.cells[process.location.0 as usize].initial as usize;
            reached[number][initial] = true;
            for (place, &cell) in of[number].iter().enumerate() {
                by_location[initial][place] = Values::one(program.cells[cell as usize].initial);
            }
            local_growths.push(vec![vec![0; of[number].len()]; process.locations.len()]);
            local_sets.push(by_location);
        }
        let mut mentioned: Vec<i32> = Vec::new();
        for expr in &program.exprs {
            if let Expr::Const(value) = *expr {
                mentioned.extend([value.saturating_sub(1), value, value.saturating_add(1)]);
            }
        }
        mentioned.extend(program.arrays.iter().flat_map(|array| [array.length as i32 - 1, array.length as i32]));
        mentioned.sort_unstable();
        mentioned.dedup();
        let sent = program.channels.iter().map(|c| (false, vec![Values::none(); c.arity as usize])).collect();
        let mut analysis = Analysis {
            program,
            growths: vec![0; sets.len()],
            sets,
            owner,
            locals: Locals { place, of, sets: local_sets, cells },
            reached,
            sent,
            sent_growths: program.channels.iter().map(|channel| vec![0; channel.arity as usize]).collect(),
            local_growths,
            mentioned,
            readers: vec![Vec::new(); program.cells.len()],
            queue: VecDeque::new(),
            queued: vec![false; program.transitions.len()],
        };
        analysis.find_readers();
        analysis
    }

    /// Which transitions depend on which sets.
    fn find_readers(&mut self) {
        let program = self.program;
        let mut stamp = vec![u32::MAX; program.exprs.len()];
        for (number, transition) in program.transitions.iter().enumerate() {
            let number = number as u32;
            let mut rest = vec![transition.guard];
            let place = |target: &Target, rest: &mut Vec<ExprId>| {
                if let Target::Element { index, .. } = target {
                    rest.push(*index);
                }
            };
            for effect in &transition.effects {
                rest.push(effect.value);
                place(&effect.target, &mut rest);
            }
            match &transition.sync {
                Sync::None => {}
                Sync::Send(_, values) => rest.extend(values),
                Sync::Receive(channel, targets) => {
                    targets.iter().for_each(|target| place(target, &mut rest));
                    if let Some(buffer) = program.channels[channel.0 as usize].buffer {
                        for item in 0..program.channels[channel.0 as usize].arity {
                            self.readers[(buffer.first.0 + item) as usize].push(number);
                        }
                    }
                }
            }
            while let Some(id) = rest.pop() {
                if std::mem::replace(&mut stamp[id.0 as usize], number) == number {
                    continue;
                }
                let mut reads = |cell: CellId| self.readers[self.owner[cell.0 as usize] as usize].push(number);
                match program.expr(id) {
                    Expr::Const(_) => {}
                    Expr::Cell(cell) => reads(cell),
                    Expr::Element { array, index, .. } => {
                        reads(program.arrays[array.0 as usize].first);
                        rest.push(index);
                    }
                    Expr::Lookup { index: operand, .. } | Expr::Unary(_, operand) => rest.push(operand),
                    Expr::Binary(_, left, right)
                    | Expr::Divide { left, right, .. }
                    | Expr::And(left, right)
                    | Expr::Or(left, right) => rest.extend([left, right]),
                }
            }
        }
    }

    fn run(&mut self) {
        for process in 0..self.program.processes.len() {
            for location in 0..self.reached[process].len() {
                if self.reached[process][location] {
                    self.wake_location(process, location);
                }
            }
        }
        while let Some(number) = self.queue.pop_front() {
            self.queued[number as usize] = false;
            self.transition(number);
        }
    }

    fn wake(&mut self, number: u32) {
        if !std::mem::replace(&mut self.queued[number as usize], true) {
            self.queue.push_back(number);
        }
    }

    fn wake_location(&mut self, process: usize, location: usize) {
        for number in self.program.processes[process].locations[location].transitions.clone() {
            self.wake(number);
        }
    }

    fn wake_readers(&mut self, set: usize) {
        for index in 0..self.readers[set].len() {
            let number = self.readers[set][index];
            let Transition { process, from, .. } = self.program.transitions[number as usize];
            if self.reached[process.0 as usize][from as usize] {
                self.wake(number);
            }
        }
    }

    /// Works out what a transition may do.
    fn transition(&mut self, number: u32) {
        let program = self.program;
        let one = program.transition(TransitionId(number));
        let mut moment = Moment::new(Some((one.process.0, one.from)));
        if !assume(self, &mut moment, one.guard, true) {
            return;
        }
        moment.fuel = FUEL;
        match &one.sync {
            _ if program.timing == Timing::Synchronous => {}
            Sync::None => {}
            Sync::Send(channel, values) => {
                let (number, about) = (channel.0 as usize, &program.channels[channel.0 as usize]);
                let mut sent = Vec::with_capacity(values.len());
                for (place, &value) in values.iter().enumerate() {
                    let value = closely(self, &mut moment, value);
                    let kind = about.types.as_ref().map(|types| types[place]);
                    let cast = kind.map(|kind| {
                        let (least, most) = kind.range();
                        if value.within(least, most) { value.clone() } else { Values::span(least.into(), most.into()) }
                    });
                    sent.push(cast.unwrap_or(value));
                }
                if sent.iter().any(Values::is_empty) {
                    return;
                }
                match about.buffer {
                    Some(buffer) => {
                        for (place, values) in sent.into_iter().enumerate() {
                            self.add(buffer.first.0 + place as u32, values);
                        }
                    }
                    None => {
                        let mut changed = !std::mem::replace(&mut self.sent[number].0, true);
                        let sums = self.sent[number].1.iter_mut().zip(&mut self.sent_growths[number]);
                        for ((old, growths), new) in sums.zip(sent) {
                            // A receiver clips to what its variables take; wider makes no difference.
                            let union = old.union(&new.clip(-32768, 32767));
                            if union != *old {
                                *old = widened(old, union, growths, &self.mentioned, (-32768, 32767));
                                changed = true;
                            }
                        }
                        if changed {
                            for &receive in &about.receives {
                                let Transition { process, from, .. } = program.transition(receive);
                                if self.reached[process.0 as usize][*from as usize] {
                                    self.wake(receive.0);
                                }
                            }
                        }
                        let locals = &self.locals;
                        moment.forget(|cell| {
                            locals.place[cell as usize].is_some_and(|(process, _)| process == one.process.0)
                        });
                    }
                }
            }
            Sync::Receive(channel, targets) => {
                let about = &program.channels[channel.0 as usize];
                let values: Vec<Values> = match about.buffer {
                    Some(buffer) => {
                        (0..about.arity).map(|place| self.sets[(buffer.first.0 + place) as usize].clone()).collect()
                    }
                    None if !self.sent[channel.0 as usize].0 => return,
                    None => self.sent[channel.0 as usize].1.clone(),
                };
                // All indices are worked out before the first store.
                let mut places = Vec::with_capacity(targets.len());
                for &target in targets {
                    places.push(self.place(&mut moment, target));
                }
                for (place, values) in places.into_iter().zip(values) {
                    let Some(place) = place else { return };
                    if !self.assign(&mut moment, place, values) {
                        return;
                    }
                }
            }
        }
        if self.effects(&mut moment, one) {
            self.arrive(&mut moment, one);
        }
    }

    /// Where a process moves, and what its effects assign. Says whether they can all succeed.
    fn effects(&mut self, moment: &mut Moment, one: &Transition) -> bool {
        let location = self.program.processes[one.process.0 as usize].location;
        moment.set(location.0, Values::one(one.to as i32));
        for &Effect { target, value, .. } in &one.effects {
            let value = closely(self, moment, value);
            let Some(place) = self.place(moment, target) else { return false };
            if !self.assign(moment, place, value) {
                return false;
            }
        }
        true
    }

    /// The cells that may be assigned; nothing when the index is always wrong.
    fn place(&mut self, moment: &mut Moment, target: Target) -> Option<Spot> {
        match target {
            Target::Cell(cell) => Some(Spot::Cell(cell.0)),
            Target::Element { array, index, .. } => {
                let array = &self.program.arrays[array.0 as usize];
                let index = evaluate(self, moment, index).clip(0, array.length as i32 - 1);
                match index.single() {
                    _ if index.is_empty() => None,
                    Some(index) => Some(Spot::Cell(array.first.0 + index as u32)),
                    None => Some(Spot::Some(array.first.0, array.length)),
                }
            }
        }
    }

    /// Assigns. Says whether some value fits.
    fn assign(&mut self, moment: &mut Moment, place: Spot, values: Values) -> bool {
        let cell = match place {
            Spot::Cell(cell) | Spot::Some(cell, _) => cell,
        };
        let (least, most) = self.program.cells[cell as usize].allowed;
        let values = values.clip(least, most);
        if values.is_empty() {
            return false;
        }
        self.add(cell, values.clone());
        match place {
            Spot::Cell(cell) => moment.set(cell, values),
            Spot::Some(first, length) => moment.known.retain(|(cell, _)| !(first..first + length).contains(cell)),
        }
        true
    }

    /// Adds to what a cell may hold in some state.
    fn add(&mut self, cell: u32, values: Values) {
        let set = self.owner[cell as usize] as usize;
        let old = &self.sets[set];
        let union = old.union(&values);
        if union == *old {
            return;
        }
        // What is local is widened location by location, so that here it ends by itself.
        self.sets[set] = if self.locals.place[cell as usize].is_some() {
            union
        } else {
            let allowed = self.program.cells[cell as usize].allowed;
            widened(old, union, &mut self.growths[set], &self.mentioned, allowed)
        };
        self.wake_readers(set);
    }

    /// The process is where the transition leads to.
    fn arrive(&mut self, moment: &mut Moment, one: &Transition) {
        let (process, to) = (one.process.0 as usize, one.to as usize);
        let first = !std::mem::replace(&mut self.reached[process][to], true);
        let mut changed = first;
        for place in 0..self.locals.of[process].len() {
            let cell = self.locals.of[process][place];
            let values = self.get(moment, cell);
            let old = &self.locals.sets[process][to][place];
            let union = old.union(&values);
            if union != *old {
                let allowed = self.program.cells[cell as usize].allowed;
                let growths = &mut self.local_growths[process][to][place];
                let union = widened(old, union, growths, &self.mentioned, allowed);
                self.add(cell, union.clone());
                self.locals.sets[process][to][place] = union;
                changed = true;
            }
        }
        if changed {
            self.wake_location(process, to);
        }
        if first {
            let location = self.program.processes[process].location;
            self.wake_readers(self.owner[location.0 as usize] as usize);
        }
    }
}

/// Cells that are assigned.
#[derive(Clone, Copy)]
enum Spot {
    Cell(u32),
    /// Some elements of an array: its first cell and its length.
    Some(u32, u32),
}

/// A set that has grown to `union`; spans grow in large steps, so that they do so seldom.
fn widened(old: &Values, union: Values, growths: &mut u8, mentioned: &[i32], allowed: (i32, i32)) -> Values {
    let Values::Span(least, most) = union else { return union };
    let before = old.hull().unwrap_or((least, most));
    *growths = growths.saturating_add(1);
    let impatient = *growths > PATIENCE;
    let below = || match mentioned.partition_point(|&number| number <= least).checked_sub(1) {
        Some(place) if !impatient => mentioned[place].max(allowed.0),
        _ => allowed.0,
    };
    let above = || match mentioned.get(mentioned.partition_point(|&number| number < most)) {
        Some(&number) if !impatient => number.min(allowed.1),
        _ => allowed.1,
    };
    let least = if least < before.0 || !matches!(old, Values::Span(..)) { below() } else { least };
    let most = if most > before.1 || !matches!(old, Values::Span(..)) { above() } else { most };
    Values::span(least.into(), most.into())
}

/// Rebuilds all expressions of a program with what is known.
fn simplify(program: &mut Program, facts: &Facts) {
    let mut pool = Pool::default();
    let mut transitions = std::mem::take(&mut program.transitions);
    for one in &mut transitions {
        let known = Known { program, facts };
        transition(&known, &mut pool, one);
    }
    let mut processes = std::mem::take(&mut program.processes);
    for (number, process) in processes.iter_mut().enumerate() {
        for (location, place) in process.locations.iter_mut().enumerate() {
            for (condition, _) in &mut place.asserts {
                let known = Known { program, facts };
                let mut moment = Moment::new(Some((number as u32, location as u32)));
                *condition = rebuild(&known, &mut moment, &mut pool, *condition).0;
            }
        }
    }
    let mut monitor = program.monitor.take();
    if let Some(Monitor { transitions, process, .. }) = &mut monitor {
        let known = Known { program, facts };
        transitions.iter_mut().for_each(|one| transition_of_monitor(&known, &mut pool, one));
        for (condition, _) in process.locations.iter_mut().flat_map(|location| &mut location.asserts) {
            *condition = rebuild(&known, &mut Moment::new(None), &mut pool, *condition).0;
        }
    }
    program.transitions = transitions;
    program.processes = processes;
    program.monitor = monitor;
    program.exprs = pool.into_exprs();
}

fn target(sets: &dyn Sets, moment: &mut Moment, pool: &mut Pool, target: Target) -> Target {
    let Target::Element { array, index, .. } = target else { return target };
    let (index, values) = rebuild(sets, moment, pool, index);
    let about = &sets.program().arrays[array.0 as usize];
    match pool.value(index) {
        Some(value) if (0..about.length as i32).contains(&value) => Target::Cell(CellId(about.first.0 + value as u32)),
        _ => Target::Element { array, index, checked: !values.within(0, about.length as i32 - 1) },
    }
}

/// Rebuilds a transition.
fn transition(known: &Known<'_>, pool: &mut Pool, one: &mut Transition) {
    let program = known.program;
    let reached = known.facts.reached[one.process.0 as usize][one.from as usize];
    let mut moment = Moment::new(reached.then_some((one.process.0, one.from)));
    let guard = one.guard;
    one.guard = rebuild(known, &mut moment, pool, guard).0;
    moment.fuel = FUEL;
    let possible = reached && assume(known, &mut moment, guard, true);
    if !possible {
        // It never moves: nothing may be concluded from that for its effects.
        if !pool.faulty(one.guard) || !reached {
            one.guard = pool.constant(0);
        }
        moment = Moment::new(None);
    }
    moment.fuel = FUEL;
    match &mut one.sync {
        Sync::None => {}
        Sync::Send(_, values) => {
            for value in values.iter_mut() {
                *value = rebuild(known, &mut moment, pool, *value).0;
            }
        }
        Sync::Receive(_, targets) => {
            for place in targets.iter_mut() {
                *place = target(known, &mut moment, pool, *place);
            }
        }
    }
    if program.timing == Timing::Asynchronous {
        match &one.sync {
            Sync::None => {}
            Sync::Send(channel, _) if program.channels[channel.0 as usize].buffer.is_none() => {
                let locals = &known.facts.locals;
                moment.forget(|cell| locals.place[cell as usize].is_some_and(|(process, _)| process == one.process.0));
            }
            Sync::Send(..) => {}
            Sync::Receive(_, targets) => {
                // What was received is anything that its variable may hold.
                for place in targets {
                    received(known, &mut moment, *place);
                }
            }
        }
    }
    if possible {
        let location = program.processes[one.process.0 as usize].location;
        moment.set(location.0, Values::one(one.to as i32));
    }
    for effect in &mut one.effects {
        let values = exact(known, &moment, effect.value);
        let (value, broad) = rebuild(known, &mut moment, pool, effect.value);
        let values = values.unwrap_or(broad);
        let place = target(known, &mut moment, pool, effect.target);
        let (first, range) = match place {
            Target::Cell(cell) => (cell, None),
            Target::Element { array, .. } => {
                let array = &program.arrays[array.0 as usize];
                (array.first, Some(array.first.0..array.first.0 + array.length))
            }
        };
        let allowed = program.cells[first.0 as usize].allowed;
        *effect = Effect { target: place, value, checked: !values.within(allowed.0, allowed.1) };
        let stored = values.clip(allowed.0, allowed.1);
        match range {
            Some(range) => moment.known.retain(|(cell, _)| !range.contains(cell)),
            None if possible && !stored.is_empty() => moment.set(first.0, stored),
            None => moment.known.retain(|(cell, _)| *cell != first.0),
        }
    }
}

/// What is known of a place once something was received into it: what its type and the analysis allow.
fn received(known: &Known<'_>, moment: &mut Moment, place: Target) {
    match place {
        Target::Cell(cell) => {
            let set = &known.facts.sets[known.facts.owner[cell.0 as usize] as usize];
            moment.set(cell.0, set.clone());
        }
        Target::Element { array, .. } => {
            let array = &known.program.arrays[array.0 as usize];
            let range = array.first.0..array.first.0 + array.length;
            moment.known.retain(|(cell, _)| !range.contains(cell));
        }
    }
}

/// The same for a transition of the monitor, which watches any state.
fn transition_of_monitor(known: &Known<'_>, pool: &mut Pool, one: &mut Transition) {
    let mut moment = Moment::new(None);
    one.guard = rebuild(known, &mut moment, pool, one.guard).0;
    if let Sync::Receive(_, targets) = &mut one.sync {
        for place in targets {
            *place = target(known, &mut Moment::new(None), pool, *place);
        }
    }
    for effect in &mut one.effects {
        effect.value = rebuild(known, &mut Moment::new(None), pool, effect.value).0;
        effect.target = target(known, &mut Moment::new(None), pool, effect.target);
    }
}

/// Rebuilds an expression with what is known, and says what it may be.
fn rebuild(sets: &dyn Sets, moment: &mut Moment, pool: &mut Pool, id: ExprId) -> (ExprId, Values) {
    let (new, values) = match sets.program().expr(id) {
        Expr::Const(value) => (pool.constant(value), Values::one(value)),
        Expr::Cell(cell) => (pool.add(Expr::Cell(cell)), sets.get(moment, cell.0)),
        Expr::Element { array, index, .. } => {
            let about = &sets.program().arrays[array.0 as usize];
            let (first, length) = (about.first.0, about.length as i32);
            let (index, at) = rebuild(sets, moment, pool, index);
            match pool.value(index) {
                Some(value) if (0..length).contains(&value) => {
                    let cell = first + value as u32;
                    (pool.add(Expr::Cell(CellId(cell))), sets.get(moment, cell))
                }
                _ => {
                    let checked = !at.within(0, length - 1);
                    let values = if at.clip(0, length - 1).is_empty() {
                        Values::none()
                    } else {
                        sets.general(moment.process, first)
                    };
                    (pool.add(Expr::Element { array, index, checked }), values)
                }
            }
        }
        Expr::Lookup { table, index, .. } => {
            let (index, at) = rebuild(sets, moment, pool, index);
            let list = &sets.program().tables[table.0 as usize].values;
            let found = list.iter().enumerate().filter(|&(place, _)| at.contains(place as i32));
            let values = found.fold(Values::none(), |values, (_, &value)| values.union(&Values::one(value)));
            let checked = !at.within(0, list.len() as i32 - 1);
            (pool.add(Expr::Lookup { table, index, checked }), values)
        }
        Expr::Unary(operator, operand) => {
            let (operand, values) = rebuild(sets, moment, pool, operand);
            (pool.unary(operator, operand), values.unary(operator))
        }
        Expr::Binary(operator, left, right) => {
            let (left, one) = rebuild(sets, moment, pool, left);
            let (right, other) = rebuild(sets, moment, pool, right);
            (pool.binary(operator, left, right), one.binary(operator, &other))
        }
        Expr::Divide { remainder, left, right, .. } => {
            let (left, one) = rebuild(sets, moment, pool, left);
            let (right, other) = rebuild(sets, moment, pool, right);
            let values = one.divide(remainder, &other);
            (pool.divide(remainder, left, right, other.contains(0)), values)
        }
        Expr::And(left, right) => {
            let (one, first) = rebuild(sets, moment, pool, left);
            let (other, second) = rebuild_behind(sets, moment, pool, left, true, right);
            let no = first.may_be_false() || second.may_be_false();
            (pool.and(one, other), Values::truth(no, first.may_be_true() && second.may_be_true()))
        }
        Expr::Or(left, right) => {
            let (one, first) = rebuild(sets, moment, pool, left);
            let (other, second) = rebuild_behind(sets, moment, pool, left, false, right);
            let no = first.may_be_false() && second.may_be_false();
            (pool.or(one, other), Values::truth(no, first.may_be_true() || second.may_be_true()))
        }
    };
    match values.single() {
        Some(value) if !pool.faulty(new) => (pool.constant(value), values),
        _ => (new, values),
    }
}

fn rebuild_behind(
    sets: &dyn Sets,
    moment: &mut Moment,
    pool: &mut Pool,
    left: ExprId,
    truth: bool,
    right: ExprId,
) -> (ExprId, Values) {
    if moment.fuel == 0 {
        return rebuild(sets, moment, pool, right);
    }
    let mut there = moment.clone();
    let possible = assume(sets, &mut there, left, truth);
    let rebuilt = if possible {
        rebuild(sets, &mut there, pool, right)
    } else {
        // It is never worked out, or only where nothing is known of it.
        (rebuild(sets, &mut Moment::new(moment.process), pool, right).0, Values::none())
    };
    moment.fuel = there.fuel;
    rebuilt
}
