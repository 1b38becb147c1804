//! The abstract state at one point of a step.
//!
//! In: sets for all cells, and what guards and assignments have established so far within one step. Out: the
//! values an expression may have at that point, and what follows from its being true or false. What stays true:
//! every value that an expression has in a reachable state at that point is in its set.

use crate::arithmetic;
use crate::ir::{Binary, Expr, ExprId, Owner, Program, Unary};
use crate::pool::opposite;
use crate::values::Values;

/// The maximum number of nodes visited to find what a guard implies.
pub(crate) const FUEL: u32 = 3_000;

/// The result of the analysis.
pub(crate) struct RangeFacts {
    pub sets: Vec<Values>,
    /// The set of each cell: arrays share one.
    pub owner: Vec<u32>,
    pub locals: Locals,
    /// The locations each process reaches.
    pub reached: Vec<Vec<bool>>,
}

impl RangeFacts {
    /// The number of cells of the state.
    pub fn reached_cells(&self) -> usize {
        self.locals.cells
    }
}

/// The variables of processes that have a set for each location.
pub(crate) struct Locals {
    /// For each cell: its process and its index among that process's variables.
    pub place: Vec<Option<(u32, u32)>>,
    /// The cells of each process.
    pub of: Vec<Vec<u32>>,
    /// By process, location, index.
    pub sets: Vec<Vec<Vec<Values>>>,
    /// The number of cells of the state.
    pub cells: usize,
}

/// The abstract state at one point of one step.
#[derive(Clone)]
pub(crate) struct Moment {
    /// The process that moves, and its source location.
    pub process: Option<(u32, u32)>,
    /// Refinements of the general sets.
    pub known: Vec<(u32, Values)>,
    pub fuel: u32,
}

/// Access to the sets.
pub(crate) trait Sets {
    fn program(&self) -> &Program;
    /// The values of a cell without refinements.
    fn general(&self, process: Option<(u32, u32)>, cell: u32) -> Values;

    fn get(&self, moment: &Moment, cell: u32) -> Values {
        match moment.known.iter().find(|(known, _)| *known == cell) {
            Some((_, values)) => values.clone(),
            None => self.general(moment.process, cell),
        }
    }
}

pub(crate) fn general(
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

pub(crate) struct KnownValues<'p> {
    pub program: &'p Program,
    pub facts: &'p RangeFacts,
}

impl Sets for KnownValues<'_> {
    fn program(&self) -> &Program {
        self.program
    }

    fn general(&self, process: Option<(u32, u32)>, cell: u32) -> Values {
        let RangeFacts { sets, owner, locals, reached } = self.facts;
        general(self.program, sets, owner, locals, reached, process, cell)
    }
}

impl Moment {
    pub fn new(process: Option<(u32, u32)>) -> Self {
        Moment { process, known: Vec::new(), fuel: FUEL }
    }

    pub fn set(&mut self, cell: u32, values: Values) {
        match self.known.iter_mut().find(|(known, _)| *known == cell) {
            Some((_, old)) => *old = values,
            None => self.known.push((cell, values)),
        }
    }

    /// Drops all refinements but those of cells that only the process itself can change.
    pub fn forget(&mut self, own: impl Fn(u32) -> bool) {
        self.known.retain(|(cell, _)| own(*cell));
    }

    /// The join: keeps refinements that both have.
    pub fn join(&mut self, other: &Moment) {
        self.known.retain_mut(|(cell, values)| match other.known.iter().find(|(known, _)| known == cell) {
            Some((_, others)) => {
                *values = values.union(others);
                true
            }
            None => false,
        });
    }
}

/// The values of an expression. Empty: it is always a fault.
pub(crate) fn evaluate(sets: &dyn Sets, moment: &mut Moment, id: ExprId) -> Values {
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
                    // All elements share one set; refinements of single ones at this point may have been assigned
                    // within this step, so they are in that set too.
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

/// The maximum number of combinations of values that are enumerated.
const COMBINATIONS: usize = 512;
/// The maximum number of nodes of an expression that is enumerated.
const SMALL: usize = 48;

/// The same, more precisely where that is cheap: a small expression over few cells with few values each is
/// evaluated for each combination, so that `(t - 1) | (t == 255) * 255` is known to keep 255.
pub(crate) fn closely(sets: &dyn Sets, moment: &mut Moment, id: ExprId) -> Values {
    exact(sets, moment, id).unwrap_or_else(|| evaluate(sets, moment, id))
}

pub(crate) fn exact(sets: &dyn Sets, moment: &Moment, id: ExprId) -> Option<Values> {
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

/// The value of an expression over these cells; `None` for a fault.
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

/// The values of `right` if `left` is true, or false.
fn behind(sets: &dyn Sets, moment: &mut Moment, left: ExprId, truth: bool, right: ExprId) -> Values {
    if moment.fuel == 0 {
        return evaluate(sets, moment, right);
    }
    let mut there = moment.clone();
    let values = if assume(sets, &mut there, left, truth) { evaluate(sets, &mut there, right) } else { Values::none() };
    moment.fuel = there.fuel;
    values
}

/// Refines by an expression being true, or false. Returns whether that is possible.
pub(crate) fn assume(sets: &dyn Sets, moment: &mut Moment, id: ExprId, truth: bool) -> bool {
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
        (Expr::Unary(Unary::Not, operand), _) => assume(sets, moment, operand, !truth),
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

/// The comparison with its operands exchanged.
fn mirror(comparison: Binary) -> Binary {
    use Binary::{AtLeast, AtMost, Less, More};
    match comparison {
        Less => More,
        More => Less,
        AtMost => AtLeast,
        AtLeast => AtMost,
        other => other,
    }
}
