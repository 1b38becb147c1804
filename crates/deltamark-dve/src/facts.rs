//! What steps need and change.
//!
//! In: a program. Out: [`Facts`]. What stays true: the facts are a conservative reading of the intermediate
//! representation; of a value only assigned constants are known.
//!
//! * The conditions of a step are the locations of its processes, room or a message in its buffer, and
//!   the conjuncts of its guards. A conjunct that is a fault holds: it makes the step a fault, not
//!   disabled. Hence what comes after a conjunct that may fail is no condition of its own.
//! * A condition over one cell is decided by the constant that a step assigns to it. Every other condition may become true
//!   and may become false by any step that writes one of its cells.
//! * Variables are *classes* of cells: maximal runs of cells that no step and no condition distinguishes. An
//!   array that is only accessed by computed indices is one class, however long.
//! * Guards count as read only where they may fail: otherwise the conditions suffice.
//! * What assigns a value that a cell is known to have already writes nothing.
//! * A state is broken by a step that enters a location with an assertion, or writes a cell that an assertion reads.
//!
//! Refined facts are those of the [parts](crate::parts) of steps. That a cell has the value of a part is a condition of it.
//!
//! Synchronous systems, and those with committed locations, state nothing: there every process decides on
//! every step.

use crate::code::{ExprCode, NodeId};
use crate::ir::{
    Binary, CellId, Effect, Expr, ExprId, Location, Process, Program, Step, Sync, Target, Timing, Transition,
    TransitionId,
};
use crate::names::Observed;
use crate::parts::{self, Parts};
use crate::system::{DveSystem, DveWorkspace};
use deltamark_core::facts::{Lists, joined};
use deltamark_core::{Action, ActionFact, ActionFacts, Block, Change, Control, Facts, Observable, Scratch, Slot, Stop};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Sleep sets of more steps would be larger than 8 MiB.
const MOST_STEPS: usize = 8192;
/// With more cells, finding facts would take longer than they save.
const MOST_CELLS: usize = 1 << 14;
/// The maximum number of entries of all lists together, for the same reason.
const MOST_ENTRIES: usize = 1 << 22;

/// Words in a set of steps.
#[cfg(feature = "native")]
pub(crate) fn words(program: &Program) -> usize {
    program.steps.len().div_ceil(64)
}

/// Whether a program may state facts, and so have steps that are skipped.
pub(crate) fn possible(program: &Program) -> bool {
    let bearable = (1..=MOST_STEPS).contains(&program.steps.len()) && program.cells.len() <= MOST_CELLS;
    bearable && program.timing == Timing::Asynchronous && !program.has_commit
}

/// The most parts of a step.
const PARTS: usize = 32;

/// A condition of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Condition {
    /// A cell has a value: a process is in a location, for one.
    Is(CellId, i32),
    /// The buffer whose length is in this cell holds fewer than this many messages.
    Room(CellId, i32),
    /// A buffer is not empty.
    Message(CellId),
    /// An expression is not zero.
    Guard(ExprId),
}

/// The value that a step writes to a cell.
#[derive(Clone, Copy, Debug)]
enum Written {
    Constant(i32),
    /// One more than before.
    Incremented,
    /// One less than before.
    Decremented,
    Unknown,
}

type Cells = Range<u32>;

fn cell(CellId(number): CellId) -> Cells {
    number..number + 1
}

/// The conditions, reads and writes of a step.
#[derive(Default)]
struct Accesses {
    needs: Vec<Condition>,
    reads: Vec<Cells>,
    /// In the order of the assignments.
    writes: Vec<(Cells, Written)>,
    may_fail: bool,
}

impl Accesses {
    /// Those of a step, or of the part of it that needs these values of cells.
    fn of(program: &Program, step: &Step, pinned: &[(CellId, i32)]) -> Self {
        let mut accesses = Accesses::default();
        accesses.needs.extend(pinned.iter().map(|&(cell, value)| Condition::Is(cell, value)));
        match *step {
            Step::Alone(id) => {
                let transition = program.transition(id);
                accesses.transfer(program, transition, &[]);
                accesses.transition(program, transition);
            }
            Step::Pair { send, receive, conflict } => {
                let [send, receive] = [send, receive].map(|id: TransitionId| program.transition(id));
                accesses.may_fail |= conflict.is_some();
                accesses.transfer(program, send, &[]);
                let sent = match &send.sync {
                    Sync::Send(_, values) => values.as_slice(),
                    _ => &[],
                };
                accesses.transfer(program, receive, sent);
                accesses.transition(program, receive);
                accesses.transition(program, send);
            }
        }
        let all = accesses.writes.clone();
        accesses.writes.retain(|(cells, written)| {
            // A cell that is written more than once has no one value.
            let again = |other: &&(Cells, Written)| other.0.start < cells.end && cells.start < other.0.end;
            let Written::Constant(value) = *written else { return true };
            let known = accesses.needs.contains(&Condition::Is(CellId(cells.start), value));
            !(known && cells.len() == 1 && all.iter().filter(again).count() == 1)
        });
        accesses
    }

    /// Conditions, location and effects.
    fn transition(&mut self, program: &Program, transition: &Transition) {
        let location = program.processes[transition.process.0 as usize].location;
        self.needs.push(Condition::Is(location, transition.from as i32));
        self.writes.push((cell(location), Written::Constant(transition.to as i32)));
        let mut conjuncts = vec![transition.guard];
        while let Some(id) = conjuncts.pop() {
            match program.expr(id) {
                Expr::Const(value) if value != 0 => {}
                Expr::And(left, right) if !may_fail(program, left) => conjuncts.extend([right, left]),
                Expr::Binary(Binary::Equal, left, right) => {
                    self.needs.push(match (program.expr(left), program.expr(right)) {
                        (Expr::Cell(cell), Expr::Const(value)) | (Expr::Const(value), Expr::Cell(cell)) => {
                            Condition::Is(cell, value)
                        }
                        _ => Condition::Guard(id),
                    });
                }
                _ => self.needs.push(Condition::Guard(id)),
            }
        }
        if may_fail(program, transition.guard) {
            self.read(program, transition.guard);
        }
        for &Effect { target, value, checked } in &transition.effects {
            self.may_fail |= checked;
            self.read(program, value);
            let written = match program.expr(value) {
                Expr::Const(value) => Written::Constant(value),
                _ => Written::Unknown,
            };
            self.write(program, target, written);
        }
    }

    /// The cells that a send or receive accesses; `sent` are the values that arrive, if there is no buffer.
    fn transfer(&mut self, program: &Program, transition: &Transition, sent: &[ExprId]) {
        let (channel, sends) = match &transition.sync {
            Sync::None => return,
            Sync::Send(channel, values) => {
                values.iter().for_each(|&value| self.read(program, value));
                (channel, true)
            }
            Sync::Receive(channel, targets) => {
                let types = program.channels[channel.0 as usize].types.as_deref();
                for (number, &target) in targets.iter().enumerate() {
                    let first = match target {
                        Target::Cell(cell) => cell,
                        Target::Element { array, .. } => program.arrays[array.0 as usize].first,
                    };
                    let allowed = program.cells[first.0 as usize].allowed;
                    let fits = |(least, most)| allowed.0 <= least && most <= allowed.1;
                    let value = match sent.get(number).map(|&value| program.expr(value)) {
                        Some(Expr::Const(value)) => Some(types.map_or(value, |types| types[number].cast(value))),
                        _ => None,
                    };
                    let always = value.is_some_and(|value| fits((value, value)));
                    self.may_fail |= !always && !types.is_some_and(|types| fits(types[number].range()));
                    self.write(program, target, value.map_or(Written::Unknown, Written::Constant));
                }
                (channel, false)
            }
        };
        let channel = &program.channels[channel.0 as usize];
        if let Some(buffer) = channel.buffer {
            let items = buffer.first.0..buffer.first.0 + buffer.capacity * channel.arity;
            self.reads.extend([items.clone(), cell(buffer.length)]);
            let (needed, length) = match sends {
                true => (Condition::Room(buffer.length, buffer.capacity as i32), Written::Incremented),
                false => (Condition::Message(buffer.length), Written::Decremented),
            };
            self.needs.push(needed);
            self.writes.extend([(items, Written::Unknown), (cell(buffer.length), length)]);
        }
    }

    fn write(&mut self, program: &Program, target: Target, written: Written) {
        match target {
            Target::Cell(number) => self.writes.push((cell(number), written)),
            Target::Element { array, index, checked } => {
                self.may_fail |= checked;
                self.read(program, index);
                let array = &program.arrays[array.0 as usize];
                self.writes.push((array.first.0..array.first.0 + array.length, Written::Unknown));
            }
        }
    }

    fn read(&mut self, program: &Program, id: ExprId) {
        self.may_fail |= may_fail(program, id);
        cells_of(program, id, &mut self.reads);
    }

    /// The value of a cell after the step, if it writes it.
    fn written(&self, number: u32) -> Option<Written> {
        let last = self.writes.iter().rev().find(|(cells, _)| cells.contains(&number));
        last.map(|(_, written)| *written)
    }
}

/// Calls `visit` with an expression and all its subexpressions.
pub(crate) fn walk(program: &Program, id: ExprId, mut visit: impl FnMut(Expr)) {
    // Operands have smaller numbers than their expression (I1), so this terminates.
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        let expr = program.expr(id);
        visit(expr);
        match expr {
            Expr::Const(_) | Expr::Cell(_) => {}
            Expr::Element { index, .. } | Expr::Lookup { index, .. } => open.push(index),
            Expr::Unary(_, operand) => open.push(operand),
            Expr::Binary(_, left, right)
            | Expr::Divide { left, right, .. }
            | Expr::And(left, right)
            | Expr::Or(left, right) => open.extend([left, right]),
        }
    }
}

/// Whether an expression may fault.
fn may_fail(program: &Program, id: ExprId) -> bool {
    let mut found = false;
    walk(program, id, |expr| {
        found |= matches!(
            expr,
            Expr::Element { checked: true, .. }
                | Expr::Lookup { checked: true, .. }
                | Expr::Divide { checked: true, .. }
        );
    });
    found
}

/// Appends the cells that an expression reads.
fn cells_of(program: &Program, id: ExprId, out: &mut Vec<Cells>) {
    walk(program, id, |expr| match expr {
        Expr::Cell(number) => out.push(cell(number)),
        Expr::Element { array, .. } => {
            let array = &program.arrays[array.0 as usize];
            out.push(array.first.0..array.first.0 + array.length);
        }
        _ => {}
    });
}

/// Classes of cells: the start of each.
struct Classes(Vec<u32>);

impl Classes {
    fn new<'a>(cells: impl Iterator<Item = &'a Cells>) -> Self {
        let mut cuts: Vec<u32> = cells.flat_map(|cells| [cells.start, cells.end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        Classes(cuts)
    }

    /// The classes of these cells, which are between two cuts.
    fn of(&self, cells: &Cells) -> Range<u32> {
        let class = |cell: u32| self.0.partition_point(|&cut| cut < cell) as u32;
        class(cells.start)..class(cells.end)
    }

    /// The class of any cell; `None` for one that is never accessed.
    fn of_cell(&self, number: u32) -> Option<u32> {
        self.0.partition_point(|&cut| cut <= number).checked_sub(1).map(|class| class as u32)
    }
}

/// The facts of a DVE model.
pub(crate) struct DveFacts<'s> {
    system: &'s DveSystem,
    program: Cow<'s, Program>,
    /// For each step the values of cells that it needs, and the step of the system that it is a part of; empty if steps are whole.
    pinned: Vec<Vec<(CellId, i32)>>,
    owners: Vec<u32>,
    conditions: Vec<Condition>,
    /// The conditions that compare a cell with a constant: the cell, and the values with the conditions, ascending.
    by_cell: Vec<(u32, Vec<(i32, u32)>)>,
    /// All others.
    others: Vec<u32>,
    /// The guards among the conditions.
    code: ExprCode,
    nodes: HashMap<ExprId, NodeId>,
    classes: Classes,
    actions: ActionFacts,
}

impl<'s> DveFacts<'s> {
    /// The facts about a model; `None` if it states none.
    pub fn new(system: &'s DveSystem, control: &Control) -> Result<Option<Self>, Stop> {
        match possible(&system.program) {
            true => Self::of(system, Cow::Borrowed(&system.program), Vec::new(), Vec::new(), control),
            false => Ok(None),
        }
    }

    /// The same about parts of steps.
    pub fn refined(system: &'s DveSystem, control: &Control) -> Result<Option<Self>, Stop> {
        if possible(&system.program)
            && let Some(Parts { program, pinned, owners }) = parts::split(&system.program, PARTS, control)?
            && let Some(facts) = Self::of(system, Cow::Owned(program), pinned, owners, control)?
        {
            return Ok(Some(facts));
        }
        Self::new(system, control)
    }

    fn of(
        system: &'s DveSystem,
        program: Cow<'s, Program>,
        pinned: Vec<Vec<(CellId, i32)>>,
        owners: Vec<u32>,
        control: &Control,
    ) -> Result<Option<Self>, Stop> {
        let mut steps = Vec::new();
        for (number, step) in program.steps.iter().enumerate() {
            control.ask()?;
            steps.push(Accesses::of(&program, step, pinned.get(number).map_or(&[], Vec::as_slice)));
        }
        let (mut conditions, mut numbers) = (Vec::new(), HashMap::new());
        for &condition in steps.iter().flat_map(|step| &step.needs) {
            numbers.entry(condition).or_insert_with(|| {
                conditions.push(condition);
                conditions.len() as u32 - 1
            });
        }
        let looked_at: Vec<Vec<Cells>> = conditions.iter().map(|&condition| looked_at(&program, condition)).collect();
        let written = |step: &'_ Accesses| step.writes.iter().map(|(cells, _)| cells.clone()).collect::<Vec<_>>();
        let written: Vec<Vec<Cells>> = steps.iter().map(written).collect();
        let accessed = steps.iter().map(|step| &step.reads).chain(&written).chain(&looked_at);
        let classes = Classes::new(accessed.flatten());
        let (mut code, mut nodes) = (ExprCode::new(&program), HashMap::new());
        let (mut by_cell, mut others) = (BTreeMap::new(), Vec::new());
        for (number, &condition) in (0..).zip(&conditions) {
            match condition {
                Condition::Is(CellId(cell), value) => {
                    by_cell.entry(cell).or_insert_with(Vec::new).push((value, number));
                    continue;
                }
                Condition::Guard(id) => {
                    nodes.insert(id, code.compile(&program, id));
                }
                Condition::Room(..) | Condition::Message(_) => {}
            }
            others.push(number);
        }
        by_cell.values_mut().for_each(|list: &mut Vec<_>| list.sort_unstable());
        let by_cell = by_cell.into_iter().collect();
        // The classes of each condition, and the inverse.
        let (mut seen, mut entries) = (Lists::default(), 0);
        for cells in &looked_at {
            let mut list: Vec<u32> = cells.iter().flat_map(|cells| classes.of(cells)).collect();
            list.sort_unstable();
            list.dedup();
            entries += list.len();
            if entries > MOST_ENTRIES {
                return Ok(None);
            }
            seen.push(&list);
        }
        // A part has the assertions of its model.
        let asserted = asserted(&system.program);
        let count = classes.0.len() as u32;
        let seen_by = seen.inverted(count, 0..conditions.len());
        let actions = ActionFacts::new(conditions.len() as u32, count);
        let mut values = vec![0; program.cells.len()];
        let mut facts =
            DveFacts { system, program, pinned, owners, conditions, by_cell, others, code, nodes, classes, actions };
        let mut fact = ActionFact::default();
        for (step, written) in steps.iter().zip(&written) {
            control.ask()?;
            fact.clear();
            fact.needs.extend(step.needs.iter().map(|condition| numbers[condition]));
            fact.reads.extend(step.reads.iter().flat_map(|cells| facts.classes.of(cells)));
            fact.writes.extend(written.iter().flat_map(|cells| facts.classes.of(cells)));
            for &condition in fact.writes.iter().flat_map(|&class| seen_by.row(class as usize)) {
                let after = facts.after(step, condition, &looked_at[condition as usize], &mut values);
                if after != Some(false) {
                    fact.enables.push(condition);
                }
                if after != Some(true) {
                    fact.disables.push(condition);
                }
            }
            fact.may_fail = step.may_fail;
            fact.may_break = asserted.iter().any(|one| one.may_break(step));
            entries += fact.reads.len() + fact.writes.len() + fact.enables.len() + fact.disables.len();
            if entries > MOST_ENTRIES {
                return Ok(None);
            }
            facts.actions.push(&mut fact);
        }
        Ok(Some(facts))
    }

    /// What a step makes of a condition: true, false, or unchanged; `None` if that is unknown. `values` is scratch
    /// for the values of all cells.
    fn after(&self, step: &Accesses, condition: u32, looked_at: &[Cells], values: &mut [i32]) -> Option<bool> {
        let one = looked_at.first()?;
        if looked_at.iter().any(|cells| cells != one) || one.len() != 1 {
            return None;
        }
        match (self.conditions[condition as usize], step.written(one.start)?) {
            (Condition::Room(..), Written::Decremented) | (Condition::Message(_), Written::Incremented) => Some(true),
            (Condition::Room(..), Written::Incremented) | (Condition::Message(_), Written::Decremented) => Some(false),
            (condition, Written::Constant(value)) => {
                values[one.start as usize] = value;
                Some(self.truth(condition, |number| values[number], |node| self.code.holds(node, values) != Ok(false)))
            }
            _ => None,
        }
    }

    /// Whether a condition holds for these values of cells and nodes.
    fn truth(&self, condition: Condition, value: impl Fn(usize) -> i32, holds: impl FnOnce(NodeId) -> bool) -> bool {
        match condition {
            Condition::Is(location, number) => value(location.0 as usize) == number,
            Condition::Room(length, capacity) => value(length.0 as usize) < capacity,
            Condition::Message(length) => value(length.0 as usize) > 0,
            Condition::Guard(id) => holds(self.nodes[&id]),
        }
    }

    /// What is stated of a step, once more.
    fn accesses(&self, Action(number): Action) -> Accesses {
        let number = number as usize;
        Accesses::of(&self.program, &self.program.steps[number], self.pinned.get(number).map_or(&[], Vec::as_slice))
    }

    fn writers(&self, number: usize) -> impl Iterator<Item = Action> {
        let class = self.classes.of_cell(number as u32);
        let writes = move |&action: &usize| class.is_some_and(|class| self.actions.writes.row(action).contains(&class));
        (0..self.actions.len()).filter(writes).map(|action| Action(action as u32))
    }
}

/// The assertions of a location.
struct Asserted {
    /// The cell of the process's location, and the location's number.
    cell: CellId,
    number: i32,
    /// The cells that they read.
    reads: Vec<Cells>,
}

impl Asserted {
    /// Whether they may fail after a step where they did not before.
    fn may_break(&self, step: &Accesses) -> bool {
        let enters = match step.written(self.cell.0) {
            None => false,
            Some(Written::Constant(number)) => number == self.number,
            Some(_) => true,
        };
        let meet = |one: &Cells, other: &Cells| one.start < other.end && other.start < one.end;
        enters || step.writes.iter().any(|(written, _)| self.reads.iter().any(|read| meet(written, read)))
    }
}

/// The locations with assertions.
fn asserted(program: &Program) -> Vec<Asserted> {
    let of = |process: &'_ Process| {
        let asserted = (0..).zip(&process.locations).filter(|(_, location)| !location.asserts.is_empty());
        let of = |(number, location): (i32, &Location)| {
            let mut reads = Vec::new();
            location.asserts.iter().for_each(|&(condition, _)| cells_of(program, condition, &mut reads));
            Asserted { cell: process.location, number, reads }
        };
        asserted.map(of).collect::<Vec<_>>()
    };
    program.processes.iter().flat_map(of).collect()
}

/// The cells that determine whether a condition holds.
fn looked_at(program: &Program, condition: Condition) -> Vec<Cells> {
    match condition {
        Condition::Is(number, _) | Condition::Room(number, _) | Condition::Message(number) => vec![cell(number)],
        Condition::Guard(id) => {
            let mut cells = Vec::new();
            cells_of(program, id, &mut cells);
            cells
        }
    }
}

impl Facts for DveFacts<'_> {
    fn actions(&self) -> &ActionFacts {
        &self.actions
    }

    fn holds(&self, scratch: &mut Scratch, state: &[Slot], condition: u32) -> bool {
        let program = &self.system.program;
        let guard = |node| {
            let values = &mut scratch.get::<DveWorkspace>().values;
            values.clear();
            values.extend(program.state_cells().iter().map(|cell| cell.read(state)));
            self.code.holds(node, values) != Ok(false)
        };
        self.truth(self.conditions[condition as usize], |number| program.cells[number].read(state), guard)
    }

    fn truths(&self, scratch: &mut Scratch, block: &Block, out: &mut Vec<u64>) {
        out.clear();
        out.resize(self.conditions.len(), 0);
        let cells = self.system.program.state_cells();
        let values = &mut scratch.get::<DveWorkspace>().values;
        for (lane, state) in block.states().iter().enumerate() {
            values.clear();
            values.extend(cells.iter().map(|cell| cell.read(state)));
            for (cell, conditions) in &self.by_cell {
                let value = values[*cell as usize];
                let first = conditions.partition_point(|condition| condition.0 < value);
                for &(_, condition) in conditions[first..].iter().take_while(|condition| condition.0 == value) {
                    out[condition as usize] |= 1 << lane;
                }
            }
            for &condition in &self.others {
                let guard = |node| self.code.holds(node, values) != Ok(false);
                let holds = self.truth(self.conditions[condition as usize], |number| values[number], guard);
                out[condition as usize] |= u64::from(holds) << lane;
            }
        }
    }

    fn pins(&self, condition: u32) -> Option<(u32, i64)> {
        match self.conditions[condition as usize] {
            Condition::Is(CellId(cell), value) => Some((cell, value.into())),
            Condition::Room(..) | Condition::Message(_) | Condition::Guard(_) => None,
        }
    }

    fn changes(&self, observable: Observable) -> Option<Vec<(Action, Change)>> {
        Some(match self.system.observed(observable.index) {
            Observed::Cell(number) => self.writers(number).map(|action| (action, Change::Either)).collect(),
            Observed::At(number, location) => {
                let change = |action: Action| match self.accesses(action).written(number as u32) {
                    Some(Written::Constant(value)) if value == location => Change::Increases,
                    Some(Written::Constant(_)) => Change::Decreases,
                    _ => Change::Either,
                };
                joined(self.writers(number).map(|action| (action, change(action))).collect())
            }
            Observed::Fireable(action) => {
                let parts = (0..self.actions.len() as u32).filter(|&part| self.action(part) == action);
                joined(parts.flat_map(|part| self.actions.changes_of_enabled(Action(part))).collect())
            }
        })
    }

    fn action(&self, number: u32) -> Action {
        Action(self.owners.get(number as usize).copied().unwrap_or(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_decide_what_a_step_makes_of_a_condition() {
        let text = "byte x, y;
            process P { state s, t; init s; trans s -> t { guard x == 0; effect x = 1; }; }
            process Q { state s; init s; trans s -> s { guard x == 1; effect x = 0; }; }
            process R { state s; init s; trans s -> s { effect x = y; }; }
            process S { state s; init s; trans s -> s { effect y = 1 - y; }; }
            system async;";
        let system = DveSystem::new(crate::parse(text.as_bytes()).expect("a model"));
        let facts = DveFacts::new(&system, &Control::new()).expect("no limit").expect("facts");
        // 0: P.s, 1: x == 0, 2: Q.s, 3: x == 1, 4: R.s, 5: S.s
        let expected: [(&[u32], &[u32], &[u32]); 4] =
            [(&[0, 1], &[3], &[0, 1]), (&[2, 3], &[1], &[3]), (&[4], &[1, 3], &[1, 3]), (&[5], &[], &[])];
        for (action, expected) in expected.into_iter().enumerate() {
            let ActionFacts { needs, enables, disables, .. } = &facts.actions;
            assert_eq!((needs.row(action), enables.row(action), disables.row(action)), expected, "action {action}");
        }
        let competing: Vec<(u32, u32)> = (0..4)
            .flat_map(|one| (one + 1..4).map(move |other| (one, other)))
            .filter(|&(one, other)| facts.actions.compete(Action(one), Action(other)))
            .collect();
        assert_eq!(competing, [(0, 1), (0, 2), (1, 2), (2, 3)], "who writes what another reads or writes");
    }
}
