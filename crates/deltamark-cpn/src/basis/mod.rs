//! The functions that every model has: those of Standard ML that models use, and CPN Tools' own on multisets and lists.
//!
//! Multisets are lists. What is random, reads a clock or writes is not here, so a model that uses it is refused by name.

mod lists;
mod strings;

use std::sync::Arc;

use crate::eval::{Evaluated, Halt, Machine, Val, list, raise};
use crate::values::{Inner, Parts};

/// The exceptions that exist beforehand, by their numbers as constructors.
pub(crate) const EXCEPTIONS: &[&str] =
    &["Match", "Bind", "Div", "Overflow", "Empty", "Subscript", "Subtract", "Chr", "Size", "Option", "Domain"];
pub(crate) const MATCH: u32 = 0;
pub(crate) const BIND: u32 = 1;
const DIV: u32 = 2;
const OVERFLOW: u32 = 3;
const EMPTY: u32 = 4;
const SUBSCRIPT: u32 = 5;
const SUBTRACT: u32 = 6;
const CHR: u32 = 7;
const OPTION: u32 = 9;
/// `Fail`, which has an argument; `NONE` and `SOME`.
pub(crate) const FAIL: u32 = 11;
pub(crate) const NONE: u32 = 12;
pub(crate) const SOME: u32 = 13;
/// The values of the type `order`.
pub(crate) const LESS: u32 = 14;
pub(crate) const EQUAL: u32 = 15;
pub(crate) const GREATER: u32 = 16;

/// All functions: name, number of arguments, type.
pub(crate) fn functions() -> impl Iterator<Item = (&'static str, usize, &'static str)> {
    FUNCTIONS.iter().chain(lists::FUNCTIONS).chain(strings::FUNCTIONS).copied()
}

/// The function of this number.
fn function(number: u16) -> (&'static str, usize) {
    let number = number as usize;
    let (first, second) = (FUNCTIONS.len(), FUNCTIONS.len() + lists::FUNCTIONS.len());
    let (name, arity, _) = match number {
        _ if number < first => FUNCTIONS[number],
        _ if number < second => lists::FUNCTIONS[number - first],
        _ => strings::FUNCTIONS[number - second],
    };
    (name, arity)
}

/// Name, number of arguments, type. In a type, `''a` has an equality and `''o` an order.
const FUNCTIONS: &[(&str, usize, &str)] = &[
    ("+", 1, "int * int -> int"),
    ("-", 1, "int * int -> int"),
    ("*", 1, "int * int -> int"),
    ("div", 1, "int * int -> int"),
    ("mod", 1, "int * int -> int"),
    ("~", 1, "int -> int"),
    ("abs", 1, "int -> int"),
    ("=", 1, "''a * ''a -> bool"),
    ("<>", 1, "''a * ''a -> bool"),
    ("<", 1, "''o * ''o -> bool"),
    (">", 1, "''o * ''o -> bool"),
    ("<=", 1, "''o * ''o -> bool"),
    (">=", 1, "''o * ''o -> bool"),
    ("not", 1, "bool -> bool"),
    ("^", 1, "string * string -> string"),
    ("::", 1, "'a * 'a list -> 'a list"),
    ("^^", 1, "'a list * 'a list -> 'a list"),
    ("`", 1, "int * 'a -> 'a list"),
    ("++", 1, "'a list * 'a list -> 'a list"),
    ("--", 1, "''a list * ''a list -> ''a list"),
    ("**", 1, "int * 'a list -> 'a list"),
    ("%", 1, "bool list * 'a -> 'a list"),
    ("//", 1, "bool list * 'a list -> 'a list"),
    ("==", 1, "''a list * ''a list -> bool"),
    ("<><>", 1, "''a list * ''a list -> bool"),
    ("<<", 1, "''a list * ''a list -> bool"),
    (">>", 1, "''a list * ''a list -> bool"),
    ("<<=", 1, "''a list * ''a list -> bool"),
    (">>=", 1, "''a list * ''a list -> bool"),
    ("o", 1, "('b -> 'c) * ('a -> 'b) -> 'a -> 'c"),
    ("!", 1, "'a ref -> 'a"),
    ("size", 1, "'a list -> int"),
    ("cf", 1, "''a * ''a list -> int"),
    ("ext_col", 2, "('a -> 'b) -> 'a list -> 'b list"),
    ("ext_ms", 2, "('a -> 'b list) -> 'a list -> 'b list"),
    ("filter", 2, "('a -> bool) -> 'a list -> 'a list"),
    ("list_to_ms", 1, "'a list -> 'a list"),
    ("ms_to_list", 1, "'a list -> 'a list"),
    ("ms_to_col", 1, "'a list -> 'a"),
    ("mem", 2, "''a list -> ''a -> bool"),
    ("rm", 2, "''a -> ''a list -> ''a list"),
    ("rmall", 2, "''a -> ''a list -> ''a list"),
    ("ins", 2, "'a list -> 'a -> 'a list"),
    ("ins_new", 2, "''a list -> ''a -> ''a list"),
    ("sort", 2, "('a * 'a -> bool) -> 'a list -> 'a list"),
    ("length", 1, "'a list -> int"),
    ("hd", 1, "'a list -> 'a"),
    ("tl", 1, "'a list -> 'a list"),
    ("rev", 1, "'a list -> 'a list"),
    ("map", 2, "('a -> 'b) -> 'a list -> 'b list"),
    ("foldl", 3, "('a * 'b -> 'b) -> 'b -> 'a list -> 'b"),
    ("foldr", 3, "('a * 'b -> 'b) -> 'b -> 'a list -> 'b"),
    ("null", 1, "'a list -> bool"),
    ("explode", 1, "string -> char list"),
    ("implode", 1, "char list -> string"),
    ("concat", 1, "string list -> string"),
    ("str", 1, "char -> string"),
    ("ord", 1, "char -> int"),
    ("chr", 1, "int -> char"),
    ("substring", 1, "string * int * int -> string"),
    ("List.length", 1, "'a list -> int"),
    ("List.hd", 1, "'a list -> 'a"),
    ("List.tl", 1, "'a list -> 'a list"),
    ("List.last", 1, "'a list -> 'a"),
    ("List.rev", 1, "'a list -> 'a list"),
    ("List.null", 1, "'a list -> bool"),
    ("List.nth", 1, "'a list * int -> 'a"),
    ("List.take", 1, "'a list * int -> 'a list"),
    ("List.drop", 1, "'a list * int -> 'a list"),
    ("List.concat", 1, "'a list list -> 'a list"),
    ("List.map", 2, "('a -> 'b) -> 'a list -> 'b list"),
    ("List.filter", 2, "('a -> bool) -> 'a list -> 'a list"),
    ("List.exists", 2, "('a -> bool) -> 'a list -> bool"),
    ("List.all", 2, "('a -> bool) -> 'a list -> bool"),
    ("List.find", 2, "('a -> bool) -> 'a list -> 'a option"),
    ("List.partition", 2, "('a -> bool) -> 'a list -> 'a list * 'a list"),
    ("List.foldl", 3, "('a * 'b -> 'b) -> 'b -> 'a list -> 'b"),
    ("List.foldr", 3, "('a * 'b -> 'b) -> 'b -> 'a list -> 'b"),
    ("List.tabulate", 1, "int * (int -> 'a) -> 'a list"),
    ("ListMergeSort.sort", 2, "('a * 'a -> bool) -> 'a list -> 'a list"),
    ("Int.toString", 1, "int -> string"),
    ("Int.min", 1, "int * int -> int"),
    ("Int.max", 1, "int * int -> int"),
    ("Int.abs", 1, "int -> int"),
    ("Int.quot", 1, "int * int -> int"),
    ("Int.rem", 1, "int * int -> int"),
    ("String.size", 1, "string -> int"),
    ("String.concat", 1, "string list -> string"),
    ("String.substring", 1, "string * int * int -> string"),
    ("String.isPrefix", 2, "string -> string -> bool"),
    ("String.isSubstring", 2, "string -> string -> bool"),
    ("Bool.toString", 1, "bool -> string"),
    ("Char.toString", 1, "char -> string"),
    ("valOf", 1, "'a option -> 'a"),
    ("isSome", 1, "'a option -> bool"),
    ("ignore", 1, "'a -> unit"),
];

/// Why a name that models use is not there.
pub(crate) fn refused(name: &str) -> Option<&'static str> {
    let last = name.rsplit('.').next().unwrap_or(name);
    Some(match last {
        "ran" | "random" | "discrete" | "uniform" | "exponential" | "poisson" | "bernoulli" | "binomial" | "chisq"
        | "erlang" | "normal" | "student" | "rint" => "random functions are not supported: a step must have one result",
        "time" | "intTime" | "ModelTime" => "time is not supported",
        ":=" | "ref" => "references that are written are not supported: they are state outside the marking",
        "@" | "@+" | "@++" | "+++" => "time stamps are not supported; lists are appended with `^^`",
        "real" | "floor" | "ceil" | "round" | "trunc" | "/" => "numbers with a point are not supported",
        "print" => "output is not supported",
        _ if name.starts_with("TextIO.") || name.starts_with("OS.") => "input and output are not supported",
        _ if name.starts_with("Real.") || name.starts_with("Math.") => "numbers with a point are not supported",
        _ => return None,
    })
}

fn int(number: i64) -> Evaluated {
    if (-(1 << 30)..1 << 30).contains(&number) { Ok(Val::Int(number)) } else { raise(OVERFLOW) }
}

fn text(text: impl Into<String>) -> Val {
    Val::Str(Arc::from(text.into()))
}

fn shown(number: i64) -> String {
    if number < 0 { format!("~{}", -number) } else { number.to_string() }
}

/// Removes `other` from `one`, one by one; `None` if something is missing.
fn subtract(machine: &mut Machine<'_>, one: &[Val], other: &[Val]) -> Result<Option<Vec<Val>>, Halt> {
    let mut rest = one.to_vec();
    machine.make(rest.len())?;
    for item in other {
        let mut found = None;
        for (at, known) in rest.iter().enumerate() {
            if machine.equal(known, item)? {
                found = Some(at);
                break;
            }
        }
        match found {
            Some(at) => drop(rest.remove(at)),
            None => return Ok(None),
        }
    }
    Ok(Some(rest))
}

fn has(machine: &mut Machine<'_>, items: &[Val], one: &Val) -> Result<bool, Halt> {
    for item in items {
        if machine.equal(item, one)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn less(one: &Val, other: &Val) -> std::cmp::Ordering {
    match (one, other) {
        (Val::Int(a), Val::Int(b)) => a.cmp(b),
        (Val::Char(a), Val::Char(b)) => a.cmp(b),
        (Val::Str(a), Val::Str(b)) => a.cmp(b),
        _ => std::cmp::Ordering::Equal,
    }
}

/// A stable sort where `greater` says that the first belongs behind the second.
fn merge_sort(machine: &mut Machine<'_>, items: Vec<Val>, behind: &Val) -> Result<Vec<Val>, Halt> {
    machine.make(items.len())?;
    if items.len() < 2 {
        return Ok(items);
    }
    let right = items[items.len() / 2..].to_vec();
    let left = items[..items.len() / 2].to_vec();
    let mut left = merge_sort(machine, left, behind)?.into_iter().peekable();
    let mut right = merge_sort(machine, right, behind)?.into_iter().peekable();
    let mut out = Vec::new();
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let pair = Val::Tuple(vec![a.clone(), b.clone()].into());
        let swap = machine.apply(behind, pair)?.truth();
        out.extend(if swap { right.next() } else { left.next() });
    }
    out.extend(left);
    out.extend(right);
    Ok(out)
}

/// Applies a function of the basis to one more argument.
pub(crate) fn apply(machine: &mut Machine<'_>, number: u16, before: &Parts, argument: Val) -> Evaluated {
    let (name, arity) = function(number);
    let mut all: Vec<Val> = before.to_vec();
    all.push(argument);
    // Composition gives a function, so it takes its argument later.
    if name == "o" && all.len() == 1 || all.len() < arity {
        return Ok(Val::Builtin(number, all.into()));
    }
    let a = all[0].clone();
    let (x, y) = (a.part(0), a.part(1));
    let b = all.get(1).cloned().unwrap_or(Val::Unit);
    let truth = |truth: bool| Ok(Val::Bool(truth));
    match name {
        "+" => int(x.int() + y.int()),
        "-" => int(x.int() - y.int()),
        "*" => int(x.int() * y.int()),
        "div" | "mod" | "Int.quot" | "Int.rem" if y.int() == 0 => raise(DIV),
        "div" => {
            let (x, y) = (x.int(), y.int());
            int(x / y - i64::from(x % y != 0 && (x < 0) != (y < 0)))
        }
        "mod" => {
            let (x, y) = (x.int(), y.int());
            let rest = x % y;
            int(if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest })
        }
        "Int.quot" => int(x.int() / y.int()),
        "Int.rem" => int(x.int() % y.int()),
        "~" => int(-a.int()),
        "abs" | "Int.abs" => int(a.int().abs()),
        "Int.min" => int(x.int().min(y.int())),
        "Int.max" => int(x.int().max(y.int())),
        "=" => truth(machine.equal(&x, &y)?),
        "<>" => truth(!machine.equal(&x, &y)?),
        "<" => truth(less(&x, &y).is_lt()),
        ">" => truth(less(&x, &y).is_gt()),
        "<=" => truth(less(&x, &y).is_le()),
        ">=" => truth(less(&x, &y).is_ge()),
        "not" => truth(!a.truth()),
        "^" => {
            machine.make_text(x.text().len() + y.text().len())?;
            Ok(text(format!("{}{}", x.text(), y.text())))
        }
        "::" => {
            machine.make(y.items().len() + 1)?;
            let mut items = vec![x];
            items.extend_from_slice(y.items());
            Ok(list(items))
        }
        "^^" | "++" => {
            machine.make(x.items().len() + y.items().len())?;
            Ok(list([x.items(), y.items()].concat()))
        }
        "`" => {
            let count = x.int().max(0) as usize;
            machine.make(count)?;
            Ok(list(vec![y; count]))
        }
        "**" => {
            let count = x.int().max(0) as usize;
            machine.make(count.saturating_mul(y.items().len()))?;
            Ok(list(y.items().iter().flat_map(|item| std::iter::repeat_n(item.clone(), count)).collect()))
        }
        "--" => match subtract(machine, x.items(), y.items())? {
            Some(rest) => Ok(list(rest)),
            None => raise(SUBTRACT),
        },
        "%" => Ok(list(if x.items().iter().all(Val::truth) { vec![y] } else { Vec::new() })),
        "//" => Ok(if x.items().iter().all(Val::truth) { y } else { list(Vec::new()) }),
        "==" | "<><>" => {
            let same = x.items().len() == y.items().len() && subtract(machine, x.items(), y.items())?.is_some();
            truth(same == (name == "=="))
        }
        "<<=" => truth(subtract(machine, y.items(), x.items())?.is_some()),
        ">>=" => truth(subtract(machine, x.items(), y.items())?.is_some()),
        "<<" => truth(x.items().len() < y.items().len() && subtract(machine, y.items(), x.items())?.is_some()),
        ">>" => truth(x.items().len() > y.items().len() && subtract(machine, x.items(), y.items())?.is_some()),
        "o" => {
            let inner = machine.apply(&y, b)?;
            machine.apply(&x, inner)
        }
        "!" => Ok(if let Val::Ref(value) = &a { (**value).clone() } else { Val::Unit }),
        "size" | "length" | "List.length" => int(a.items().len() as i64),
        "cf" => {
            let mut count = 0;
            for item in y.items() {
                count += i64::from(machine.equal(item, &x)?);
            }
            int(count)
        }
        "map" | "List.map" | "ext_col" => {
            let mut out = Vec::new();
            for item in b.items() {
                machine.make(1)?;
                out.push(machine.apply(&a, item.clone())?);
            }
            Ok(list(out))
        }
        "ext_ms" => {
            let mut out = Vec::new();
            for item in b.items() {
                let more = machine.apply(&a, item.clone())?;
                machine.make(more.items().len())?;
                out.extend_from_slice(more.items());
            }
            Ok(list(out))
        }
        "filter" | "List.filter" | "List.partition" => {
            let (mut yes, mut no) = (Vec::new(), Vec::new());
            for item in b.items() {
                machine.make(1)?;
                let kept = machine.apply(&a, item.clone())?.truth();
                if kept { &mut yes } else { &mut no }.push(item.clone());
            }
            Ok(if name == "List.partition" { Val::Tuple(vec![list(yes), list(no)].into()) } else { list(yes) })
        }
        "List.exists" | "List.all" | "List.find" => {
            for item in b.items() {
                let found = machine.apply(&a, item.clone())?.truth();
                match name {
                    "List.exists" if found => return truth(true),
                    "List.all" if !found => return truth(false),
                    "List.find" if found => return Ok(Val::Con(SOME, Some(Inner::new(item.clone())))),
                    _ => {}
                }
            }
            Ok(if name == "List.find" { Val::Con(NONE, None) } else { Val::Bool(name == "List.all") })
        }
        "foldl" | "List.foldl" | "foldr" | "List.foldr" => {
            let mut sum = b;
            let items = all[2].items().to_vec();
            machine.make(items.len())?;
            let ordered: Vec<Val> = if name.ends_with('r') { items.into_iter().rev().collect() } else { items };
            for item in ordered {
                sum = machine.apply(&a, Val::Tuple(vec![item, sum].into()))?;
            }
            Ok(sum)
        }
        // Multisets are lists.
        "list_to_ms" | "ms_to_list" => Ok(a),
        "ms_to_col" => match a.items() {
            [one] => Ok(one.clone()),
            _ => raise(EMPTY),
        },
        "mem" => truth(has(machine, a.items(), &b)?),
        "rm" | "rmall" => {
            let (mut out, mut done) = (Vec::new(), false);
            machine.make(b.items().len())?;
            for item in b.items() {
                let same = !(done && name == "rm") && machine.equal(item, &a)?;
                done |= same;
                if !same {
                    out.push(item.clone());
                }
            }
            Ok(list(out))
        }
        "ins" | "ins_new" => {
            machine.make(a.items().len() + 1)?;
            if name == "ins_new" && has(machine, a.items(), &b)? {
                return Ok(a);
            }
            Ok(list([a.items(), &[b]].concat()))
        }
        "ListMergeSort.sort" => Ok(list(merge_sort(machine, b.items().to_vec(), &a)?)),
        "sort" => {
            // CPN Tools' `sort` takes an order, SML/NJ's says what belongs behind.
            let mut items = b.items().to_vec();
            let mut sorted: Vec<Val> = Vec::new();
            machine.make(items.len())?;
            for item in items.drain(..) {
                let mut at = sorted.len();
                while at > 0 {
                    let pair = Val::Tuple(vec![item.clone(), sorted[at - 1].clone()].into());
                    if !machine.apply(&a, pair)?.truth() {
                        break;
                    }
                    at -= 1;
                }
                sorted.insert(at, item);
            }
            Ok(list(sorted))
        }
        "hd" | "List.hd" => a.items().first().cloned().map_or_else(|| raise(EMPTY), Ok),
        "List.last" => a.items().last().cloned().map_or_else(|| raise(EMPTY), Ok),
        "tl" | "List.tl" => match &a {
            Val::List(items, from) if *from < items.len() => Ok(Val::List(items.clone(), from + 1)),
            _ => raise(EMPTY),
        },
        "rev" | "List.rev" => {
            machine.make(a.items().len())?;
            Ok(list(a.items().iter().rev().cloned().collect()))
        }
        "null" | "List.null" => truth(a.items().is_empty()),
        "List.nth" => {
            usize::try_from(y.int()).ok().and_then(|at| x.items().get(at).cloned()).map_or_else(|| raise(SUBSCRIPT), Ok)
        }
        "List.take" | "List.drop" => {
            let items = x.items();
            let Some(at) = usize::try_from(y.int()).ok().filter(|at| *at <= items.len()) else {
                return raise(SUBSCRIPT);
            };
            machine.make(items.len())?;
            Ok(list(if name == "List.take" { items[..at].to_vec() } else { items[at..].to_vec() }))
        }
        "List.concat" => {
            let mut out = Vec::new();
            for item in a.items() {
                machine.make(item.items().len())?;
                out.extend_from_slice(item.items());
            }
            Ok(list(out))
        }
        "List.tabulate" => {
            let Ok(count) = usize::try_from(x.int()) else { return raise(8) };
            machine.make(count)?;
            let mut out = Vec::with_capacity(count);
            for at in 0..count {
                out.push(machine.apply(&y, Val::Int(at as i64))?);
            }
            Ok(list(out))
        }
        "explode" => {
            machine.make_text(a.text().len())?;
            Ok(list(a.text().chars().map(Val::Char).collect()))
        }
        "implode" => {
            machine.make(a.items().len())?;
            Ok(text(
                a.items()
                    .iter()
                    .filter_map(|item| if let Val::Char(c) = item { Some(*c) } else { None })
                    .collect::<String>(),
            ))
        }
        "concat" | "String.concat" => {
            let mut out = String::new();
            for item in a.items() {
                machine.make_text(item.text().len())?;
                out.push_str(item.text());
            }
            Ok(text(out))
        }
        "str" | "Char.toString" => Ok(text(if let Val::Char(c) = a { c.to_string() } else { String::new() })),
        "ord" => int(if let Val::Char(c) = a { i64::from(c as u32) } else { 0 }),
        "chr" => u8::try_from(a.int()).map_or_else(|_| raise(CHR), |code| Ok(Val::Char(char::from(code)))),
        "substring" | "String.substring" => {
            let letters: Vec<char> = x.text().chars().collect();
            machine.make_text(letters.len())?;
            let (from, len) = (usize::try_from(y.int()).ok(), usize::try_from(a.part(2).int()).ok());
            let part = from.zip(len).and_then(|(from, len)| letters.get(from..from.checked_add(len)?));
            part.map_or_else(|| raise(SUBSCRIPT), |part| Ok(text(part.iter().collect::<String>())))
        }
        "String.size" => int(a.text().chars().count() as i64),
        "String.isPrefix" => truth(b.text().starts_with(a.text())),
        "String.isSubstring" => truth(b.text().contains(a.text())),
        "Int.toString" => Ok(text(shown(a.int()))),
        "Bool.toString" => Ok(text(if a.truth() { "true" } else { "false" })),
        "valOf" => {
            if let Val::Con(SOME, Some(of)) = &a {
                Ok((**of).clone())
            } else {
                raise(OPTION)
            }
        }
        "isSome" => truth(matches!(a, Val::Con(SOME, _))),
        "ignore" => Ok(Val::Unit),
        _ => match lists::apply(machine, name, &all).or_else(|| strings::apply(machine, name, &all)) {
            Some(value) => value,
            None => Err(Halt::Limit("a function of the basis is missing")),
        },
    }
}
