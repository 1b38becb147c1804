//! Value analysis: which numbers each cell can hold.
//!
//! In: a program. Out: for each cell a set of numbers that contains all it holds in any reachable state (I4), so
//! that fields can be narrow; and the program rebuilt, with constants folded and checks that cannot fail removed.
//! What stays true: the sets only grow, and at most a fixed number of times, so that the fixpoint is reached.
//!
//! # How
//! An abstract interpretation (Cousot and Cousot 1977, *Abstract interpretation*) with small sets and intervals,
//! see [`Values`]. Scalar variables of a process have a set for each location of the process: no other process
//! assigns them. All other cells have one set for all states, and an array has one for all its elements. Guards
//! refine the sets for the effects after them. A set that keeps growing is widened to the next number that the
//! model mentions, then to its type.
//!
//! # Why it is sound
//! Every step is one of: a transition alone, a receive after a send, a send after a receive. For each transition,
//! its effects are evaluated over sets that contain all values the cells have at that time. For a receive these
//! are the source's, changed by the transfer. For a send they are those after the receiver: so only the sender's
//! own variables keep the refinements of its guard. Values outside a type are dropped, because storing them is a
//! fault and leads nowhere.

use crate::ir::{Cell, CellId, Effect, Expr, ExprId, Owner, Program, Sync, Target, Timing, Transition, TransitionId};
use crate::layout::{self, Code};
use crate::moment::{FUEL, Locals, Moment, RangeFacts, Sets, assume, closely, evaluate, general};
use crate::portable::Proved;
use crate::simplify::simplify;
use crate::values::Values;
use deltamark_core::{Control, Stop};
use std::collections::VecDeque;

/// How often an interval may be widened to a number that the model mentions before it becomes its whole type.
const PATIENCE: u8 = 6;

/// Narrows the cells of a program and simplifies its expressions, unless `control` stops it. Returns how each cell
/// is to be stored.
pub(crate) fn narrow(program: &mut Program, control: &Control) -> Result<Vec<Code>, Stop> {
    control.ask_for((program.cells.len() * (size_of::<Values>() + 64)) as u64)?;
    let mut analysis = Analysis::new(program);
    analysis.run(control)?;
    let Analysis { sets, owner, locals, reached, .. } = analysis;
    let facts = RangeFacts { sets, owner, locals, reached };
    let mut codes: Vec<Code> = Vec::with_capacity(program.cells.len());
    for (number, cell) in program.cells.iter_mut().enumerate() {
        let set = &facts.sets[facts.owner[number] as usize];
        let of_monitor = number >= facts.reached_cells();
        let hull = if of_monitor { cell.allowed } else { set.hull().unwrap_or((cell.initial, cell.initial)) };
        cell.values = hull;
        codes.push(if of_monitor { layout::plain(hull.0, hull.1) } else { code(cell, set, hull) });
    }
    simplify(program, &facts);
    program.proved = Proved::new(facts);
    Ok(codes)
}

/// The code of a cell that holds the numbers of this set.
fn code(cell: &Cell, set: &Values, hull: (i32, i32)) -> Code {
    let plain = layout::plain(hull.0, hull.1);
    let (Values::Few(list), Owner::Variable(..) | Owner::Item(..), (0, 255)) = (set, cell.owner, cell.allowed) else {
        return plain;
    };
    // On the cycle of 256 numbers: the widest gap is excluded.
    let next = |place: usize| list.get(place + 1).copied().unwrap_or(list[0] + 256);
    let Some(widest) = (0..list.len()).max_by_key(|&place| next(place) - list[place]) else { return plain };
    let (least, count) = (next(widest) & 255, 256 - (next(widest) - list[widest]));
    let around = layout::plain(0, count);
    if around.bits < plain.bits { Code { bits: around.bits, least, wraps: true } } else { plain }
}

struct Analysis<'p> {
    program: &'p Program,
    sets: Vec<Values>,
    owner: Vec<u32>,
    locals: Locals,
    reached: Vec<Vec<bool>>,
    /// The values sent over each channel, and whether there is a send.
    sent: Vec<(bool, Vec<Values>)>,
    /// How often each set, each set of sent values, and each local set has grown as an interval.
    growths: Vec<u8>,
    sent_growths: Vec<Vec<u8>>,
    local_growths: Vec<Vec<Vec<u8>>>,
    /// Numbers mentioned in the model, and their neighbours, ascending.
    mentioned: Vec<i32>,
    /// The transitions that read each set.
    readers: Vec<Vec<u32>>,
    queue: VecDeque<u32>,
    queued: Vec<bool>,
}

impl Sets for Analysis<'_> {
    fn program(&self) -> &Program {
        self.program
    }

    fn general(&self, process: Option<(u32, u32)>, cell: u32) -> Values {
        general(self.program, &self.sets, &self.owner, &self.locals, &self.reached, process, cell)
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
            // Buffer items at the same position in their messages share a set.
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

    /// Determines which transitions depend on which sets.
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

    fn run(&mut self, control: &Control) -> Result<(), Stop> {
        for process in 0..self.program.processes.len() {
            for location in 0..self.reached[process].len() {
                if self.reached[process][location] {
                    self.wake_location(process, location);
                }
            }
        }
        while let Some(number) = self.queue.pop_front() {
            self.queued[number as usize] = false;
            control.ask()?;
            self.transition(number);
        }
        Ok(())
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

    /// Evaluates a transition.
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
                            // A receiver clips to the range of its variables; more makes no difference.
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
                // All indices are evaluated before the first store.
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

    /// Moves a process and evaluates its effects. Returns whether they can all succeed.
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

    /// The cells that may be assigned; `None` if the index is always out of bounds.
    fn place(&mut self, moment: &mut Moment, target: Target) -> Option<AssignedCells> {
        match target {
            Target::Cell(cell) => Some(AssignedCells::Cell(cell.0)),
            Target::Element { array, index, .. } => {
                let array = &self.program.arrays[array.0 as usize];
                let index = evaluate(self, moment, index).clip(0, array.length as i32 - 1);
                match index.single() {
                    _ if index.is_empty() => None,
                    Some(index) => Some(AssignedCells::Cell(array.first.0 + index as u32)),
                    None => Some(AssignedCells::Some(array.first.0, array.length)),
                }
            }
        }
    }

    /// Assigns. Returns whether some value fits.
    fn assign(&mut self, moment: &mut Moment, place: AssignedCells, values: Values) -> bool {
        let cell = match place {
            AssignedCells::Cell(cell) | AssignedCells::Some(cell, _) => cell,
        };
        let (least, most) = self.program.cells[cell as usize].allowed;
        let values = values.clip(least, most);
        if values.is_empty() {
            return false;
        }
        self.add(cell, values.clone());
        match place {
            AssignedCells::Cell(cell) => moment.set(cell, values),
            AssignedCells::Some(first, length) => {
                moment.known.retain(|(cell, _)| !(first..first + length).contains(cell))
            }
        }
        true
    }

    /// Adds to the values of a cell in all states.
    fn add(&mut self, cell: u32, values: Values) {
        let set = self.owner[cell as usize] as usize;
        let old = &self.sets[set];
        let union = old.union(&values);
        if union == *old {
            return;
        }
        // Local sets are widened by location, so this one terminates without.
        self.sets[set] = if self.locals.place[cell as usize].is_some() {
            union
        } else {
            let allowed = self.program.cells[cell as usize].allowed;
            widened(old, union, &mut self.growths[set], &self.mentioned, allowed)
        };
        self.wake_readers(set);
    }

    /// Joins the sets of the transition's target location.
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
enum AssignedCells {
    Cell(u32),
    /// Some elements of an array: its first cell and its length.
    Some(u32, u32),
}

/// A set that has grown to `union`; intervals grow in large steps, and so rarely.
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
