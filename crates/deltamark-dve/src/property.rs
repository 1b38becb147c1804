//! The property process of a model as an automaton.
//!
//! In: a model with `system async property P`. Out: the locations of `P`, its transitions, and their guards as predicates
//! of the model's states ([`PropertyProcess`]). What stays true: `P` reads the state before a step and takes part in
//! none, so the automaton and the model run side by side; a process that does more than to move under guards is
//! refused with the reason.

use crate::DveSystem;
use crate::facts::walk;
use crate::ir::{Accept, Expr, ExprId, Program, Sync, Timing};
use crate::reference;
use deltamark_core::property::Undefined;
use deltamark_core::{Block, Predicate, Scratch, System};
use std::collections::HashMap;
use std::sync::Arc;

/// A property process, which accepts the paths that violate the property.
pub struct PropertyProcess {
    /// Its name.
    pub name: String,
    /// The number of its locations.
    pub locations: u32,
    /// The one in which it begins.
    pub initial: u32,
    /// Sets of locations: a path is accepted if it visits one of each set infinitely often.
    pub sets: Vec<Vec<u32>>,
    /// Its transitions: from where, to where, and the number of the guard.
    pub transitions: Vec<(u32, u32, usize)>,
    /// The distinct guards.
    pub guards: Vec<PropertyGuard>,
}

/// A guard, as a predicate of the model's states.
pub struct PropertyGuard {
    program: Arc<Program>,
    guard: ExprId,
    /// Whether it may have no value in some state: a division by zero, an index out of bounds.
    pub may_fail: bool,
}

impl Predicate for PropertyGuard {
    fn evaluate(&self, _: &dyn System, _: &mut Scratch, block: &Block, _: u64) -> Result<u64, Undefined> {
        let mut truths = 0;
        for (index, state) in block.states().iter().enumerate() {
            let values = reference::unpack(&self.program, state);
            match reference::evaluate(&self.program, &values, self.guard) {
                Ok(value) => truths |= u64::from(value != 0) << index,
                Err(message) => return Err(Undefined { state: index, message, limit: false }),
            }
        }
        Ok(truths)
    }
}

impl DveSystem {
    /// The property process as an automaton, or why it is none: a clause. `None` if the model has no such process.
    pub fn property_process(&self) -> Option<Result<PropertyProcess, String>> {
        self.program().monitor.is_some().then(|| automaton(self.program()))
    }
}

fn automaton(program: &Program) -> Result<PropertyProcess, String> {
    let Some(monitor) = &program.monitor else { return Err("there is none".into()) };
    if program.timing == Timing::Synchronous {
        return Err("the system is synchronous".into());
    }
    let sets = match &monitor.process.accept {
        Accept::Buchi(set) => vec![set.clone()],
        Accept::Generalised(sets) => sets.clone(),
        Accept::None => return Err("it has no acceptance condition".into()),
        _ => return Err("its acceptance condition is not one of Büchi".into()),
    };
    let shared = Arc::new(program.clone());
    let (mut transitions, mut guards) = (Vec::new(), Vec::<PropertyGuard>::new());
    let mut numbers: HashMap<ExprId, usize> = HashMap::new();
    for (from, location) in (0..).zip(&monitor.process.locations) {
        for transition in &monitor.transitions[location.transitions.start as usize..location.transitions.end as usize] {
            let line = transition.place.line;
            if transition.sync != Sync::None {
                return Err(format!("it takes part in a synchronisation in line {line}"));
            }
            if !transition.effects.is_empty() {
                return Err(format!("it has an effect in line {line}"));
            }
            if !reads_the_model_alone(program, transition.guard) {
                return Err(format!("a guard in line {line} reads the process itself"));
            }
            let number = *numbers.entry(transition.guard).or_insert_with(|| {
                let may_fail = may_fail(program, transition.guard);
                guards.push(PropertyGuard { program: Arc::clone(&shared), guard: transition.guard, may_fail });
                guards.len() - 1
            });
            transitions.push((from, transition.to, number));
        }
    }
    Ok(PropertyProcess {
        name: monitor.process.name.clone(),
        locations: monitor.process.locations.len() as u32,
        initial: program.cells[monitor.process.location.0 as usize].initial as u32,
        sets,
        transitions,
        guards,
    })
}

/// Whether an expression reads no cell of the property process.
fn reads_the_model_alone(program: &Program, id: ExprId) -> bool {
    let cells = program.state_cells().len();
    let mut alone = true;
    walk(program, id, |expr| match expr {
        Expr::Cell(cell) => alone &= (cell.0 as usize) < cells,
        Expr::Element { array, .. } => alone &= (program.arrays[array.0 as usize].first.0 as usize) < cells,
        _ => {}
    });
    alone
}

fn may_fail(program: &Program, id: ExprId) -> bool {
    let mut fails = false;
    walk(program, id, |expr| match expr {
        Expr::Element { checked, .. } | Expr::Lookup { checked, .. } | Expr::Divide { checked, .. } => fails |= checked,
        _ => {}
    });
    fails
}
