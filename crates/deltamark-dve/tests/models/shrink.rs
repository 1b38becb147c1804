//! Shrinks a model that fails a test.
//!
//! In: a model, and a predicate that still fails. Out: a model that none of the reductions below makes smaller.
//! What stays true: every model that is tried is one the language accepts.

use crate::model::{Expr, Model, Sync};

/// Shrinks as long as a reduction applies.
pub fn shrink(mut model: Model, trouble: impl Fn(&Model) -> bool) -> Model {
    loop {
        let Some(smaller) = smaller(&model).into_iter().find(|smaller| trouble(smaller)) else { return model };
        model = smaller;
    }
}

/// The models with one thing less, large things first.
fn smaller(model: &Model) -> Vec<Model> {
    let mut found = Vec::new();
    let mut offer = |change: &dyn Fn(&mut Model)| {
        let mut changed = model.clone();
        change(&mut changed);
        if changed != *model && accepted(&changed) {
            found.push(changed);
        }
    };
    offer(&|model| {
        model.processes.pop();
    });
    for (number, process) in model.processes.iter().enumerate() {
        for transition in 0..process.transitions.len() {
            offer(&|model| {
                model.processes[number].transitions.remove(transition);
            });
        }
        offer(&|model| model.processes[number].asserts.clear());
        offer(&|model| {
            model.processes[number].states.pop();
        });
        offer(&|model| {
            model.processes[number].variables.pop();
        });
        offer(&|model| model.processes[number].states.fill(false));
        for (place, transition) in process.transitions.iter().enumerate() {
            offer(&|model| model.processes[number].transitions[place].guards.clear());
            offer(&|model| model.processes[number].transitions[place].sync = Sync::None);
            offer(&|model| model.processes[number].transitions[place].to = transition.from);
            for effect in 0..transition.effects.len() {
                offer(&|model| {
                    model.processes[number].transitions[place].effects.remove(effect);
                });
            }
        }
    }
    offer(&|model| {
        model.globals.pop();
    });
    offer(&|model| {
        model.channels.pop();
    });
    offer(&|model| model.synchronous = false);
    for number in 0.. {
        let Some(expr) = part(&mut model.clone(), number).cloned() else { break };
        let simple = match expr {
            Expr::Number(_) => vec![],
            Expr::Unary(_, operand) => vec![Expr::Number(0), Expr::Number(1), *operand],
            Expr::Binary(_, left, right) => vec![Expr::Number(0), Expr::Number(1), *left, *right],
            _ => vec![Expr::Number(0), Expr::Number(1)],
        };
        for simple in &simple {
            offer(&|model| {
                if let Some(expr) = part(model, number) {
                    *expr = simple.clone();
                }
            });
        }
    }
    found
}

/// Whether all names are declared.
fn accepted(model: &Model) -> bool {
    deltamark_dve::parse(model.to_string().as_bytes()).is_ok()
        && model.processes.iter().all(|process| process.transitions.iter().all(|one| one.to < process.states.len()))
}

/// An expression or a part of one, by its number: each comes before its parts.
fn part(model: &mut Model, mut number: usize) -> Option<&mut Expr> {
    let mut roots: Vec<&mut Expr> = Vec::new();
    for process in &mut model.processes {
        roots.extend(process.asserts.iter_mut().map(|(_, condition)| condition));
        for transition in &mut process.transitions {
            roots.extend(&mut transition.guards);
            match &mut transition.sync {
                Sync::None => {}
                Sync::Send(_, values) => roots.extend(values),
                Sync::Receive(_, places) => roots.extend(places.iter_mut().filter_map(|place| place.index.as_mut())),
            }
            for (place, value) in &mut transition.effects {
                roots.extend(place.index.as_mut());
                roots.push(value);
            }
        }
    }
    roots.into_iter().find_map(|root| within(root, &mut number))
}

fn within<'e>(expr: &'e mut Expr, number: &mut usize) -> Option<&'e mut Expr> {
    if *number == 0 {
        return Some(expr);
    }
    *number -= 1;
    match expr {
        Expr::Read(_, Some(operand)) | Expr::Of(_, _, Some(operand)) | Expr::Unary(_, operand) => {
            within(operand, number)
        }
        Expr::Binary(_, left, right) => within(left, number).or_else(|| within(right, number)),
        _ => None,
    }
}
