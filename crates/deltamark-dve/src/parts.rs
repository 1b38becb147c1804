//! Steps, split by the values of what they read.
//!
//! In: a program, as the analysis of ranges left it. Out: a program with a step for each *part* of a step: for some cells that it reads, and each value that these
//! may have, the step rebuilt for that value. What stays true: in every reachable state in which a step is enabled exactly one of its
//! parts is, the one whose cells have their values, and it does there what the step does.
//!
//! ```text
//! q -> q { guard j < 3 and b[j] == 0; effect j = j + 1; }        reads all of b, writes any j
//!   j = 0    q -> q { guard b[0] == 0; effect j = 1; }           reads b[0], writes j = 1
//!   j = 1    q -> q { guard b[1] == 0; effect j = 2; }
//!   j = 2    q -> q { guard b[2] == 0; effect j = 3; }
//! ```
//!
//! So facts about parts are more exact: which element of an array is accessed, and which constants are assigned, is
//! known.
//!
//! # Which cells
//! Variables that are indices, first of all; then variables of a process that moves. The analysis knows what values these may have in the
//! location that the process leaves. A cell with many of them is left alone.

use crate::ir::{CellId, Effect, Expr, ExprId, Owner, Program, Step, Sync, Target, Transition, TransitionId};
use crate::moment::{KnownValues, Moment, RangeFacts, Sets};
use crate::pool::Pool;
use crate::simplify::{self, Source};
use crate::values::Values;
use deltamark_core::{Control, Stop};

/// The most parts of all steps together, unless there are more steps.
const MOST_PARTS: usize = 4096;

/// A program of parts.
pub(crate) struct Parts {
    pub program: Program,
    /// For each step the values of cells that it needs.
    pub pinned: Vec<Vec<(CellId, i32)>>,
    /// For each step the step of the original program that it is a part of.
    pub owners: Vec<u32>,
}

/// Splits the steps of a program into at most this many parts each; `None` if nothing is known of its cells, or there would be too many parts.
pub(crate) fn split(program: &Program, most: usize, control: &Control) -> Result<Option<Parts>, Stop> {
    let Some(facts) = program.proved.facts() else { return Ok(None) };
    let known = KnownValues { program, facts };
    let mut pool = Pool::default();
    let (mut transitions, mut steps) = (Vec::new(), Vec::new());
    let (mut pinned, mut owners) = (Vec::new(), Vec::new());
    // What the parts so far take: as much more is asked for, since vectors double.
    let mut bytes = 0;
    for (number, step) in (0..).zip(&program.steps) {
        control.ask()?;
        control.ask_for(bytes)?;
        let choices = choices(program, facts, step, most);
        let count: usize = choices.iter().map(|(_, values)| values.len()).product();
        for part in 0..count {
            let mut digits = part;
            let pins: Vec<(CellId, i32)> = choices
                .iter()
                .map(|(cell, values)| {
                    let value = values[digits % values.len()];
                    digits /= values.len();
                    (*cell, value)
                })
                .collect();
            let before = transitions.len();
            let Some(step) = rebuilt(&known, &mut pool, &mut transitions, step, &pins) else { continue };
            let effects: usize = transitions[before..].iter().map(|one| one.effects.len()).sum();
            bytes += (256 + 2 * size_of::<Transition>() + effects * size_of::<Effect>()) as u64;
            steps.push(step);
            pinned.push(pins);
            owners.push(number);
        }
        if steps.len() > MOST_PARTS.max(program.steps.len()) {
            return Ok(None);
        }
    }
    let program = Program { exprs: pool.into_exprs(), transitions, steps, monitor: None, ..program.clone() };
    Ok(Some(Parts { program, pinned, owners }))
}

/// A step where cells have these values; `None` if it is never enabled there.
fn rebuilt(
    known: &KnownValues<'_>,
    pool: &mut Pool,
    transitions: &mut Vec<Transition>,
    step: &Step,
    pinned: &[(CellId, i32)],
) -> Option<Step> {
    let program = known.program;
    let before = transitions.len();
    let mut rebuild = |id: TransitionId, received: &[Option<i32>]| {
        let mut one = program.transition(id).clone();
        let possible = simplify::transition(known, pool, &mut one, Source { pinned, received });
        let sent: Vec<Option<i32>> = match &one.sync {
            Sync::Send(channel, values) => {
                let types = program.channels[channel.0 as usize].types.as_deref();
                let cast = |number: usize, value| types.map_or(value, |types| types[number].cast(value));
                let sent = values.iter().map(|&value| pool.value(value));
                sent.enumerate().map(|(number, value)| Some(cast(number, value?))).collect()
            }
            _ => Vec::new(),
        };
        transitions.push(one);
        possible.then(|| (TransitionId(transitions.len() as u32 - 1), sent))
    };
    let step = match *step {
        Step::Alone(id) => rebuild(id, &[]).map(|(id, _)| Step::Alone(id)),
        Step::Pair { send, receive, conflict } => rebuild(send, &[]).and_then(|(send, sent)| {
            let (receive, _) = rebuild(receive, &sent)?;
            Some(Step::Pair { send, receive, conflict })
        }),
    };
    if step.is_none() {
        transitions.truncate(before);
    }
    step
}

/// The cells by which a step is split, with their values.
fn choices(program: &Program, facts: &RangeFacts, step: &Step, most: usize) -> Vec<(CellId, Vec<i32>)> {
    let moving = match *step {
        Step::Alone(id) => vec![id],
        Step::Pair { send, receive, .. } => vec![send, receive],
    };
    let mut read = Reads { program, indices: Vec::new(), others: Vec::new(), assigned: Vec::new() };
    moving.iter().for_each(|&id| read.transition(program.transition(id)));
    let (known, mut chosen) = (KnownValues { program, facts }, Vec::new());
    let Reads { indices, others, .. } = read;
    let mut count = 1;
    let first = indices.iter().map(|&cell| (cell, true));
    for (cell, is_index) in first.chain(others.iter().map(|&cell| (cell, false))) {
        if chosen.iter().any(|(other, _)| *other == cell) {
            continue;
        }
        let own = moving
            .iter()
            .map(|&id| program.transition(id))
            .find(|one| facts.locals.place[cell.0 as usize].is_some_and(|(process, _)| process == one.process.0));
        if own.is_none() && !is_index {
            continue;
        }
        let moment = Moment::new(own.map(|one| (one.process.0, one.from)));
        if let Values::Few(values) = known.get(&moment, cell.0)
            && values.len() > 1
            && count * values.len() <= most
        {
            count *= values.len();
            chosen.push((cell, values));
        }
    }
    chosen
}

/// The cells of no array that a step reads before it writes them.
struct Reads<'p> {
    program: &'p Program,
    /// Those that indices of arrays depend on.
    indices: Vec<CellId>,
    others: Vec<CellId>,
    assigned: Vec<CellId>,
}

impl Reads<'_> {
    fn transition(&mut self, transition: &Transition) {
        self.expression(transition.guard, false);
        match &transition.sync {
            Sync::None => {}
            Sync::Send(_, values) => values.iter().for_each(|&value| self.expression(value, false)),
            Sync::Receive(_, targets) => {
                targets.iter().for_each(|&target| self.indices_of(target));
                targets.iter().for_each(|&target| self.assign(target));
            }
        }
        for &Effect { target, value, .. } in &transition.effects {
            self.indices_of(target);
            self.expression(value, false);
            self.assign(target);
        }
    }

    fn indices_of(&mut self, target: Target) {
        if let Target::Element { index, .. } = target {
            self.expression(index, true);
        }
    }

    fn assign(&mut self, target: Target) {
        if let Target::Cell(cell) = target {
            self.assigned.push(cell);
        }
    }

    fn expression(&mut self, id: ExprId, in_index: bool) {
        let mut open = vec![(id, in_index)];
        while let Some((id, in_index)) = open.pop() {
            match self.program.expr(id) {
                Expr::Const(_) => {}
                Expr::Cell(cell) => {
                    let owner = self.program.cells[cell.0 as usize].owner;
                    let alone = matches!(owner, Owner::Variable(variable, _)
                        if self.program.variables[variable as usize].length.is_none());
                    if alone && !self.assigned.contains(&cell) {
                        if in_index { &mut self.indices } else { &mut self.others }.push(cell);
                    }
                }
                Expr::Element { index, .. } | Expr::Lookup { index, .. } => open.push((index, true)),
                Expr::Unary(_, operand) => open.push((operand, in_index)),
                Expr::Binary(_, left, right)
                | Expr::Divide { left, right, .. }
                | Expr::And(left, right)
                | Expr::Or(left, right) => open.extend([(left, in_index), (right, in_index)]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_over_an_array_reads_one_element_at_a_time() {
        let text = "byte b[3]; byte shared;
            process P { byte j; state q; init q; trans
                q -> q { guard j < 3 and b[j] == 0; effect j = j + 1; },
                q -> q { guard j == 3; effect b[0] = shared, j = 0; },
                q -> q { guard shared == 0; effect shared = 1 - shared; }; }
            process Q { state s; init s; trans s -> s { effect b[1] = 1 - b[1]; }; }
            system async;";
        let program = crate::parse(text.as_bytes()).expect("a model");
        let parts = split(&program, 8, &Control::new()).expect("no limit").expect("parts");
        // No part is enabled where `j` is 3, but that of the second step.
        assert_eq!(parts.owners, [0, 0, 0, 1, 2, 3]);
        let values: Vec<Vec<i32>> = parts.pinned.iter().map(|pins| pins.iter().map(|pin| pin.1).collect()).collect();
        assert_eq!(values[..4], [[0], [1], [2], [3]]);
        for (number, step) in parts.program.steps.iter().enumerate().take(3) {
            let Step::Alone(id) = *step else { panic!("{step:?}") };
            let one = parts.program.transition(id);
            let Expr::Binary(_, read, _) = parts.program.expr(one.guard) else { panic!("one comparison is left") };
            assert!(matches!(parts.program.expr(read), Expr::Cell(_)), "an element is known");
            assert_eq!(parts.program.expr(one.effects[0].value), Expr::Const(number as i32 + 1));
        }
    }

    #[test]
    fn there_are_never_more_parts_than_allowed() {
        let text = "byte b[3];
            process P { byte i, j; state q; init q; trans
                q -> q { guard i < 2 and j < 2; effect b[i + j] = 1, i = i + 1; },
                q -> q { effect i = 0, j = 1 - j; }; }
            system async;";
        let program = crate::parse(text.as_bytes()).expect("a model");
        // `i` has three values and `j` two; where `i` is 2 the first step is disabled.
        for (most, expected) in [(1, vec![0, 1]), (3, vec![0, 0, 1, 1]), (6, vec![0, 0, 0, 0, 1, 1])] {
            let parts = split(&program, most, &Control::new()).expect("no limit").expect("parts");
            assert_eq!(parts.owners, expected, "at most {most}");
        }
    }
}
