//! Rebuilds a program with the results of the analysis.
//!
//! In: a program and the sets of its cells. Out: the same program with smaller expressions: an expression of one
//! value is that value, indices and divisors that cannot fail are no longer `checked`, transitions that are never
//! enabled have a guard of 0. What stays true: in every reachable state it behaves the same.

use crate::ir::{CellId, Effect, Expr, ExprId, Monitor, Program, Sync, Target, Timing, Transition};
use crate::moment::{FUEL, KnownValues, Moment, RangeFacts, Sets, assume, exact};
use crate::pool::Pool;
use crate::values::Values;

/// Rebuilds all expressions of a program.
pub(crate) fn simplify(program: &mut Program, facts: &RangeFacts) {
    let mut pool = Pool::default();
    let mut transitions = std::mem::take(&mut program.transitions);
    for one in &mut transitions {
        let known = KnownValues { program, facts };
        transition(&known, &mut pool, one, Source::default());
    }
    let mut processes = std::mem::take(&mut program.processes);
    for (number, process) in processes.iter_mut().enumerate() {
        for (location, place) in process.locations.iter_mut().enumerate() {
            for (condition, _) in &mut place.asserts {
                let known = KnownValues { program, facts };
                let mut moment = Moment::new(Some((number as u32, location as u32)));
                *condition = rebuild(&known, &mut moment, &mut pool, *condition).0;
            }
        }
    }
    let mut monitor = program.monitor.take();
    if let Some(Monitor { transitions, process, .. }) = &mut monitor {
        let known = KnownValues { program, facts };
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

/// What is known of the source of a transition beside its location.
#[derive(Clone, Copy, Default)]
pub(crate) struct Source<'a> {
    /// The values of some cells.
    pub pinned: &'a [(CellId, i32)],
    /// What is received, of each value that is known.
    pub received: &'a [Option<i32>],
}

/// Rebuilds a transition. Returns whether it may be enabled in such a source.
pub(crate) fn transition(known: &KnownValues<'_>, pool: &mut Pool, one: &mut Transition, source: Source<'_>) -> bool {
    let program = known.program;
    let reached = known.facts.reached[one.process.0 as usize][one.from as usize];
    let mut moment = Moment::new(reached.then_some((one.process.0, one.from)));
    source.pinned.iter().for_each(|&(cell, value)| moment.set(cell.0, Values::one(value)));
    let guard = one.guard;
    one.guard = rebuild(known, &mut moment, pool, guard).0;
    moment.fuel = FUEL;
    let possible = reached && assume(known, &mut moment, guard, true);
    if !possible {
        // It is never enabled: that implies nothing for its effects.
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
                // A received value is anything in the range of its variable.
                for (number, place) in targets.iter().enumerate() {
                    received(known, &mut moment, *place, source.received.get(number).copied().flatten());
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
    possible || pool.faulty(one.guard)
}

/// Resets a target into which something was received to the values that the analysis allows, or to the one that is known.
fn received(known: &KnownValues<'_>, moment: &mut Moment, place: Target, value: Option<i32>) {
    match place {
        Target::Cell(cell) => {
            let set = &known.facts.sets[known.facts.owner[cell.0 as usize] as usize];
            moment.set(cell.0, value.filter(|&value| set.contains(value)).map_or_else(|| set.clone(), Values::one));
        }
        Target::Element { array, .. } => {
            let array = &known.program.arrays[array.0 as usize];
            let range = array.first.0..array.first.0 + array.length;
            moment.known.retain(|(cell, _)| !range.contains(cell));
        }
    }
}

/// The same for a transition of the monitor, which observes any state.
fn transition_of_monitor(known: &KnownValues<'_>, pool: &mut Pool, one: &mut Transition) {
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

/// Rebuilds an expression, and returns its possible values.
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
        // It is never evaluated, or only if nothing is known of it.
        (rebuild(sets, &mut Moment::new(moment.process), pool, right).0, Values::none())
    };
    moment.fuel = there.fuel;
    rebuilt
}
