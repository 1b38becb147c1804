//! CPN Tools' functions on lists that are no sets of SML: with `mem` and `rm` they define each other.
//!
//! In: the name and all arguments. Out: the value; `None` if the function is not here. The order of what is left is that
//! of CPN Tools, which defines them by recursion over the lists.

use super::{NONE, SOME, SUBTRACT, has, subtract};
use crate::eval::{Evaluated, Machine, Val, list, raise};
use crate::values::Inner;

/// Name, number of arguments, type.
pub(super) const FUNCTIONS: &[(&str, usize, &str)] = &[
    ("remdupl", 1, "''a list -> ''a list"),
    ("contains", 2, "''a list -> ''a list -> bool"),
    ("contains_all", 2, "''a list -> ''a list -> bool"),
    ("intersect", 2, "''a list -> ''a list -> ''a list"),
    ("union", 2, "'a list -> 'a list -> 'a list"),
    ("listsub", 2, "''a list -> ''a list -> ''a list"),
    ("app", 2, "('a -> unit) -> 'a list -> unit"),
    ("List.app", 2, "('a -> unit) -> 'a list -> unit"),
    ("List.mapPartial", 2, "('a -> 'b option) -> 'a list -> 'b list"),
    ("List.getItem", 1, "'a list -> ('a * 'a list) option"),
    ("List.revAppend", 1, "'a list * 'a list -> 'a list"),
    ("ListPair.zip", 1, "'a list * 'b list -> ('a * 'b) list"),
    ("ListPair.unzip", 1, "('a * 'b) list -> 'a list * 'b list"),
    ("ListPair.map", 2, "('a * 'b -> 'c) -> 'a list * 'b list -> 'c list"),
    ("ListPair.all", 2, "('a * 'b -> bool) -> 'a list * 'b list -> bool"),
    ("ListPair.exists", 2, "('a * 'b -> bool) -> 'a list * 'b list -> bool"),
];

fn some(value: Val) -> Val {
    Val::Con(SOME, Some(Inner::new(value)))
}

fn pairs(both: &Val) -> Vec<Val> {
    let (x, y) = (both.part(0), both.part(1));
    x.items().iter().zip(y.items()).map(|(x, y)| Val::Tuple(vec![x.clone(), y.clone()].into())).collect()
}

pub(super) fn apply(machine: &mut Machine<'_>, name: &str, all: &[Val]) -> Option<Evaluated> {
    compute(machine, name, all.first()?, all.get(1)).transpose()
}

fn compute(machine: &mut Machine<'_>, name: &str, a: &Val, b: Option<&Val>) -> Result<Option<Val>, crate::eval::Halt> {
    let empty = list(Vec::new());
    let b = b.unwrap_or(&empty);
    machine.make(a.items().len() + b.items().len())?;
    Ok(Some(match name {
        // Of equal elements the last one stays.
        "remdupl" => {
            let items = a.items();
            let mut out = Vec::new();
            for (at, item) in items.iter().enumerate() {
                if !has(machine, &items[at + 1..], item)? {
                    out.push(item.clone());
                }
            }
            list(out)
        }
        "contains" => {
            let mut all = true;
            for item in b.items() {
                all = all && has(machine, a.items(), item)?;
            }
            Val::Bool(all)
        }
        "contains_all" => Val::Bool(subtract(machine, a.items(), b.items())?.is_some()),
        // As often as in both, in the order of the first.
        "intersect" => {
            let (mut rest, mut out) = (b.items().to_vec(), Vec::new());
            for item in a.items() {
                if let Some(without) = subtract(machine, &rest, std::slice::from_ref(item))? {
                    rest = without;
                    out.push(item.clone());
                }
            }
            list(out)
        }
        "union" => list([a.items(), b.items()].concat()),
        "listsub" => match subtract(machine, a.items(), b.items())? {
            Some(rest) => list(rest),
            None => return raise(SUBTRACT),
        },
        "app" | "List.app" => {
            for item in b.items() {
                machine.apply(a, item.clone())?;
            }
            Val::Unit
        }
        "List.mapPartial" => {
            let mut out = Vec::new();
            for item in b.items() {
                if let Val::Con(SOME, Some(of)) = machine.apply(a, item.clone())? {
                    out.push((*of).clone());
                }
            }
            list(out)
        }
        "List.getItem" => match a.items().split_first() {
            Some((first, rest)) => some(Val::Tuple(vec![first.clone(), list(rest.to_vec())].into())),
            None => Val::Con(NONE, None),
        },
        "List.revAppend" => {
            let (x, y) = (a.part(0), a.part(1));
            machine.make(x.items().len() + y.items().len())?;
            list(x.items().iter().rev().chain(y.items()).cloned().collect())
        }
        "ListPair.zip" => {
            machine.make(a.part(0).items().len())?;
            list(pairs(a))
        }
        "ListPair.unzip" => {
            let part = |at: usize| list(a.items().iter().map(|pair| pair.part(at)).collect());
            Val::Tuple(vec![part(0), part(1)].into())
        }
        "ListPair.map" | "ListPair.all" | "ListPair.exists" => {
            machine.make(b.part(0).items().len())?;
            let mut out = Vec::new();
            for pair in pairs(b) {
                let value = machine.apply(a, pair)?;
                match name {
                    "ListPair.all" if !value.truth() => return Ok(Some(value)),
                    "ListPair.exists" if value.truth() => return Ok(Some(value)),
                    _ => out.push(value),
                }
            }
            if name == "ListPair.map" { list(out) } else { Val::Bool(name == "ListPair.all") }
        }
        _ => return Ok(None),
    }))
}
