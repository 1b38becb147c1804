//! Colour sets: their values, in CPN ML and in the state.
//!
//! | colour set | in the state |
//! |---|---|
//! | unit, bool, int, enum, index | an integer: 0, 0 or 1, itself, the position, the index |
//! | string | the sequence of its characters |
//! | product, record | the sequence of the parts, a record's by ascending label |
//! | list | the sequence of its elements |
//! | union | the sequence of the alternative's number and its value, if it has one |

use std::sync::Arc;

use deltamark_coloured::net::{TypeId, Value, ValueShape};

use crate::eval::{Evaluated, Halt, Machine, Val, list, raise};
use crate::types::Ty;
use crate::values::Inner;

/// The form of a colour set.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    Unit,
    Bool,
    Int(Option<(i64, i64)>),
    Str(Option<StringRange>),
    /// The constructors.
    Enum(Vec<u32>),
    Index {
        con: u32,
        low: i64,
        high: i64,
    },
    Product(Vec<u32>),
    /// Labels as declared, and their colour sets.
    Record(Vec<(String, u32)>),
    List(u32, Option<(i64, i64)>),
    Union(Vec<(u32, Option<u32>)>),
    /// A subset by a function.
    By(u32, Val),
    /// A subset by a list of values.
    With(u32, Vec<Value>),
    /// Why it cannot be used.
    Refused(String),
}

/// The characters and the lengths of a string, from the first to the second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringRange {
    pub letters: (char, char),
    pub lengths: Option<(i64, i64)>,
}

impl StringRange {
    fn holds(&self, text: &str) -> bool {
        let (low, high) = self.letters;
        let len = text.chars().count() as i64;
        text.chars().all(|letter| (low..=high).contains(&letter))
            && self.lengths.is_none_or(|(least, most)| (least..=most).contains(&len))
    }
}

/// A colour set.
#[derive(Clone, Debug)]
pub(crate) struct Colour {
    pub name: String,
    pub form: Form,
    pub ty: Ty,
    pub timed: bool,
    /// How deep colour sets are nested in it.
    pub depth: u32,
}

/// The functions that each colour set has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColourFn {
    All,
    Size,
    Ord,
    Col,
    Lt,
    MkStr,
    Legal,
    Mult,
    MkStrMs,
}

/// All colour sets, and the names of constructors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Colours {
    pub list: Vec<Colour>,
    pub constructors: Vec<String>,
}

/// The maximum nesting of colour sets: code goes down into their values.
pub(crate) const DEEPEST: u32 = 200;
/// Colour sets of up to this many values are small.
/// The bytes of an element of a value in the state, as a list of them grows.
const VALUE: usize = 2 * size_of::<Value>();
const SMALL: usize = 100;
/// The most values that `all` gives.
pub(crate) const MOST: usize = 100_000;

/// The order of a record's fields in the state.
pub(crate) fn field_order(fields: &[(String, u32)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.sort_by(|&a, &b| crate::types::label_order(&fields[a].0, &fields[b].0));
    order
}

impl Colours {
    pub fn get(&self, of: u32) -> &Colour {
        &self.list[of as usize]
    }

    /// The depth of a colour set of this form.
    pub fn depth_of(&self, form: &Form) -> u32 {
        let of = |part: u32| self.get(part).depth + 1;
        match form {
            Form::Product(parts) => parts.iter().map(|&part| of(part)).max().unwrap_or(0),
            Form::Record(fields) => fields.iter().map(|field| of(field.1)).max().unwrap_or(0),
            Form::List(part, _) | Form::By(part, _) | Form::With(part, _) => of(*part),
            Form::Union(alternatives) => alternatives.iter().filter_map(|one| one.1).map(of).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Why a place or variable cannot have this colour set.
    pub fn refusal(&self, of: u32) -> Option<String> {
        let colour = self.get(of);
        match &colour.form {
            Form::Refused(why) => Some(why.clone()),
            Form::Product(parts) => parts.iter().find_map(|&part| self.refusal(part)),
            Form::Record(fields) => fields.iter().find_map(|field| self.refusal(field.1)),
            Form::List(of, _) | Form::By(of, _) | Form::With(of, _) => self.refusal(*of),
            Form::Union(alternatives) => alternatives.iter().find_map(|one| self.refusal(one.1?)),
            _ => None,
        }
    }

    /// Whether a value of the type can be outside the colour set.
    pub fn is_restricted(&self, of: u32) -> bool {
        match &self.get(of).form {
            Form::Int(range) | Form::List(_, range) if range.is_some() => true,
            Form::Str(range) => range.is_some(),
            Form::List(of, _) => self.is_restricted(*of),
            Form::Product(parts) => parts.iter().any(|&part| self.is_restricted(part)),
            Form::Record(fields) => fields.iter().any(|field| self.is_restricted(field.1)),
            Form::Union(alternatives) => alternatives.iter().any(|one| one.1.is_some_and(|of| self.is_restricted(of))),
            Form::By(..) | Form::With(..) | Form::Index { .. } => true,
            _ => false,
        }
    }

    /// The type of the state's values.
    pub fn shape(&self, of: u32) -> ValueShape {
        let discrete = |low: i64, high: i64| ValueShape::Discrete { low: low as i32, high: high as i32, names: None };
        match &self.get(of).form {
            Form::Unit | Form::Refused(_) => discrete(0, 0),
            Form::Bool => discrete(0, 1),
            Form::Int(range) => {
                let (low, high) = range.unwrap_or((-(1 << 30), (1 << 30) - 1));
                discrete(low, high)
            }
            // Characters; see `Colours::character`.
            Form::Str(_) => ValueShape::List { element: TypeId(0), capacity: u32::MAX },
            Form::Enum(names) => discrete(0, names.len() as i64 - 1),
            Form::Index { low, high, .. } => discrete(*low, *high),
            Form::Product(parts) => {
                ValueShape::Struct { fields: parts.iter().map(|&part| (String::new(), TypeId(part))).collect() }
            }
            Form::Record(fields) => {
                let field = |at: usize| (fields[at].0.clone(), TypeId(fields[at].1));
                ValueShape::Struct { fields: field_order(fields).into_iter().map(field).collect() }
            }
            Form::List(of, _) => ValueShape::List { element: TypeId(*of), capacity: u32::MAX },
            Form::Union(alternatives) => {
                ValueShape::Union { alternatives: alternatives.iter().map(|one| one.1.map(TypeId)).collect() }
            }
            Form::By(of, _) | Form::With(of, _) => self.shape(*of),
        }
    }

    /// The value in the state; `None` if it is outside the colour set.
    pub fn to_state(&self, machine: &mut Machine<'_>, of: u32, value: &Val) -> Result<Option<Value>, Halt> {
        machine.charge(1)?;
        let int = |number: i64| Value::Int(number as i32);
        Ok(match (&self.get(of).form, value) {
            (Form::Unit, _) => Some(int(0)),
            (Form::Bool, Val::Bool(truth)) => Some(int((*truth).into())),
            (Form::Int(range), Val::Int(number)) => {
                (machine.lenient || range.is_none_or(|(low, high)| (low..=high).contains(number))).then(|| int(*number))
            }
            (Form::Str(range), Val::Str(text)) => {
                machine.make_text(text.len())?;
                if !machine.lenient && range.is_some_and(|range| !range.holds(text)) {
                    return Ok(None);
                }
                machine.want(text.len() * VALUE)?;
                Some(Value::Seq(text.chars().map(|c| Value::Int(c as i32)).collect()))
            }
            (Form::Enum(names), Val::Con(con, None)) => {
                names.iter().position(|name| name == con).map(|at| int(at as i64))
            }
            (Form::Index { con, low, high }, Val::Con(own, Some(of))) if own == con => {
                let number = of.int();
                (machine.lenient || (*low..=*high).contains(&number)).then(|| int(number))
            }
            (Form::Product(parts), Val::Tuple(values)) => {
                self.each(machine, parts.iter().copied().zip(values.iter()))?
            }
            (Form::Record(fields), Val::Record(labels, values)) => {
                let order = field_order(fields);
                debug_assert_eq!(labels.len(), order.len());
                self.each(machine, order.iter().map(|&at| fields[at].1).zip(values.iter()))?
            }
            (Form::List(of, range), Val::List(..)) => {
                let items = value.items();
                if !machine.lenient && range.is_some_and(|(low, high)| !(low..=high).contains(&(items.len() as i64))) {
                    return Ok(None);
                }
                self.each(machine, items.iter().map(|item| (*of, item)))?
            }
            (Form::Union(alternatives), Val::Con(con, argument)) => {
                let Some(at) = alternatives.iter().position(|one| one.0 == *con) else { return Ok(None) };
                let mut parts = vec![int(at as i64)];
                if let (Some(of), Some(argument)) = (alternatives[at].1, argument) {
                    match self.to_state(machine, of, argument)? {
                        Some(value) => parts.push(value),
                        None => return Ok(None),
                    }
                }
                Some(Value::Seq(parts))
            }
            (Form::By(of, test), _) => {
                let Some(inner) = self.to_state(machine, *of, value)? else { return Ok(None) };
                (machine.lenient || machine.apply(test, value.clone())?.truth()).then_some(inner)
            }
            (Form::With(of, values), _) => {
                self.to_state(machine, *of, value)?.filter(|inner| machine.lenient || values.contains(inner))
            }
            _ => None,
        })
    }

    fn each<'v>(
        &self,
        machine: &mut Machine<'_>,
        parts: impl Iterator<Item = (u32, &'v Val)>,
    ) -> Result<Option<Value>, Halt> {
        let mut out = Vec::new();
        for (of, value) in parts {
            machine.want(VALUE)?;
            match self.to_state(machine, of, value)? {
                Some(value) => out.push(value),
                None => return Ok(None),
            }
        }
        Ok(Some(Value::Seq(out)))
    }

    /// The value in CPN ML of one in the state, in the colour set or not.
    pub fn of_state(&self, of: u32, value: &Value) -> Val {
        let number = |value: &Value| i64::from(value.int().unwrap_or(0));
        let empty = Vec::new();
        let parts = if let Value::Seq(parts) = value { parts } else { &empty };
        match &self.get(of).form {
            Form::Unit | Form::Refused(_) => Val::Unit,
            Form::Bool => Val::Bool(number(value) != 0),
            Form::Int(_) => Val::Int(number(value)),
            Form::Str(_) => {
                let letter = |part: &Value| u32::try_from(number(part)).ok().and_then(char::from_u32);
                Val::Str(Arc::from(parts.iter().filter_map(letter).collect::<String>()))
            }
            Form::Enum(names) => {
                let at = usize::try_from(number(value)).unwrap_or(0);
                Val::Con(names.get(at).copied().unwrap_or(names[0]), None)
            }
            Form::Index { con, .. } => Val::Con(*con, Some(Inner::new(Val::Int(number(value))))),
            Form::Product(of) => Val::Tuple(of.iter().zip(parts).map(|(&of, part)| self.of_state(of, part)).collect()),
            Form::Record(fields) => {
                let order = field_order(fields);
                let labels: Arc<[String]> = order.iter().map(|&at| fields[at].0.clone()).collect();
                let values = order.iter().zip(parts).map(|(&at, part)| self.of_state(fields[at].1, part)).collect();
                Val::Record(labels, values)
            }
            Form::List(of, _) => list(parts.iter().map(|part| self.of_state(*of, part)).collect()),
            Form::Union(alternatives) => {
                let at = parts.first().map_or(0, |tag| usize::try_from(number(tag)).unwrap_or(0));
                let (con, of) = alternatives[at.min(alternatives.len() - 1)];
                let argument = of.zip(parts.get(1)).map(|(of, part)| Inner::new(self.of_state(of, part)));
                Val::Con(con, argument)
            }
            Form::By(of, _) | Form::With(of, _) => self.of_state(*of, value),
        }
    }

    /// All values in their order, if there are at most `most`.
    pub fn all(&self, machine: &mut Machine<'_>, of: u32, most: usize) -> Result<Option<Vec<Val>>, Halt> {
        let some = |low: i64, high: i64| -> Option<Vec<i64>> {
            let count = usize::try_from(high.checked_sub(low)?.checked_add(1)?).ok()?;
            (count <= most).then(|| (low..=high).collect())
        };
        let values = match &self.get(of).form {
            Form::Unit => Some(vec![Val::Unit]),
            Form::Bool => Some(vec![Val::Bool(false), Val::Bool(true)]),
            Form::Int(Some((low, high))) => some(*low, *high).map(|all| all.into_iter().map(Val::Int).collect()),
            Form::Enum(names) => Some(names.iter().map(|&con| Val::Con(con, None)).collect()),
            Form::Index { con, low, high } => {
                let value = |number| Val::Con(*con, Some(Inner::new(Val::Int(number))));
                some(*low, *high).map(|all| all.into_iter().map(value).collect())
            }
            Form::Product(parts) => {
                let parts = parts.clone();
                self.combined(machine, &parts, most)?
                    .map(|all| all.into_iter().map(|all| Val::Tuple(all.into())).collect())
            }
            Form::Record(fields) => {
                let order = field_order(fields);
                let labels: Arc<[String]> = order.iter().map(|&at| fields[at].0.clone()).collect();
                let of: Vec<u32> = fields.iter().map(|field| field.1).collect();
                let value =
                    |all: Vec<Val>| Val::Record(labels.clone(), order.iter().map(|&at| all[at].clone()).collect());
                self.combined(machine, &of, most)?.map(|all| all.into_iter().map(value).collect())
            }
            Form::Union(alternatives) => {
                let mut out = Vec::new();
                for &(con, of) in alternatives {
                    match of {
                        None => out.push(Val::Con(con, None)),
                        Some(of) => match self.all(machine, of, most)? {
                            Some(all) => out.extend(all.into_iter().map(|one| Val::Con(con, Some(Inner::new(one))))),
                            None => return Ok(None),
                        },
                    }
                }
                Some(out)
            }
            Form::By(inner, test) => {
                let Some(all) = self.all(machine, *inner, MOST)? else { return Ok(None) };
                let mut out = Vec::new();
                for value in all {
                    if machine.apply(test, value.clone())?.truth() {
                        out.push(value);
                    }
                }
                Some(out)
            }
            Form::With(inner, values) => Some(values.iter().map(|value| self.of_state(*inner, value)).collect()),
            Form::Int(None) | Form::Str(_) | Form::List(..) | Form::Refused(_) => None,
        };
        if let Some(values) = &values {
            machine.make(values.len())?;
        }
        Ok(values.filter(|values| values.len() <= most))
    }

    /// All combinations, the last varying fastest.
    fn combined(&self, machine: &mut Machine<'_>, of: &[u32], most: usize) -> Result<Option<Vec<Vec<Val>>>, Halt> {
        let mut out = vec![Vec::new()];
        for &of in of {
            let Some(all) = self.all(machine, of, most)? else { return Ok(None) };
            if out.len().saturating_mul(all.len()) > most {
                return Ok(None);
            }
            machine.make(out.len() * all.len())?;
            let add = |before: &Vec<Val>| {
                all.iter().map(|one| [&before[..], std::slice::from_ref(one)].concat()).collect::<Vec<_>>()
            };
            out = out.iter().flat_map(add).collect();
        }
        Ok(Some(out))
    }

    /// All values of a small colour set, in the state.
    pub fn small(&self, machine: &mut Machine<'_>, of: u32) -> Result<Option<Vec<Value>>, Halt> {
        let Some(all) = self.all(machine, of, SMALL)? else { return Ok(None) };
        let mut out = Vec::new();
        for value in &all {
            out.extend(self.to_state(machine, of, value)?);
        }
        Ok(Some(out))
    }

    /// Applies a function of a colour set.
    pub fn apply(&self, machine: &mut Machine<'_>, which: ColourFn, of: u32, argument: &Val) -> Evaluated {
        let large = Halt::Limit("a colour set is too large for `all`, `size`, `ord` or `col`");
        match which {
            ColourFn::MkStr => {
                let mut out = String::new();
                match self.to_state(machine, of, argument)? {
                    Some(value) => self.print(of, &value, &mut out),
                    None => return Err(Halt::Limit("`mkstr` is asked for a value outside the colour set")),
                }
                Ok(Val::Str(Arc::from(out)))
            }
            ColourFn::MkStrMs => {
                let mut counted: Vec<(Value, u64)> = Vec::new();
                for item in argument.items() {
                    let Some(value) = self.to_state(machine, of, item)? else {
                        return Err(Halt::Limit("`mkstr_ms` is asked for a value outside the colour set"));
                    };
                    machine.charge(counted.len())?;
                    match counted.iter_mut().find(|known| known.0 == value) {
                        Some(known) => known.1 += 1,
                        None => counted.push((value, 1)),
                    }
                }
                counted.sort();
                let part = |(value, count): &(Value, u64)| {
                    let mut out = format!("{count}`");
                    self.print(of, value, &mut out);
                    out
                };
                let text = if counted.is_empty() {
                    "empty".to_string()
                } else {
                    counted.iter().map(part).collect::<Vec<_>>().join("++")
                };
                machine.make_text(text.len())?;
                Ok(Val::Str(Arc::from(text)))
            }
            ColourFn::Legal => Ok(Val::Bool(self.to_state(machine, of, argument)?.is_some())),
            ColourFn::Mult => {
                let Val::Tuple(sets) = argument else { return Ok(list(Vec::new())) };
                let mut out = vec![Vec::new()];
                for set in sets.iter() {
                    machine.make(out.len().saturating_mul(set.items().len()))?;
                    let add = |before: &Vec<Val>| {
                        set.items()
                            .iter()
                            .map(|one| [&before[..], std::slice::from_ref(one)].concat())
                            .collect::<Vec<_>>()
                    };
                    out = out.iter().flat_map(add).collect();
                }
                Ok(list(out.into_iter().map(|all| Val::Tuple(all.into())).collect()))
            }
            ColourFn::All | ColourFn::Size | ColourFn::Ord | ColourFn::Col | ColourFn::Lt => {
                let all = self.all(machine, of, MOST)?.ok_or(large)?;
                let mut position = |value: &Val| -> Result<usize, Halt> {
                    for (at, known) in all.iter().enumerate() {
                        if machine.equal(known, value)? {
                            return Ok(at);
                        }
                    }
                    raise(5)
                };
                Ok(match which {
                    ColourFn::Size => Val::Int(all.len() as i64),
                    ColourFn::Ord => Val::Int(position(argument)? as i64),
                    ColourFn::Lt => Val::Bool(position(&argument.part(0))? < position(&argument.part(1))?),
                    ColourFn::Col => {
                        let at = usize::try_from(argument.int()).ok().and_then(|at| all.get(at).cloned());
                        return at.map_or_else(|| raise(5), Ok);
                    }
                    _ => list(all),
                })
            }
        }
    }

    /// Prints a value as CPN Tools does.
    pub fn print(&self, of: u32, value: &Value, out: &mut String) {
        let number = |value: &Value| i64::from(value.int().unwrap_or(0));
        let empty = Vec::new();
        let parts = if let Value::Seq(parts) = value { parts } else { &empty };
        let tilde = |number: i64| if number < 0 { format!("~{}", -number) } else { number.to_string() };
        let name = |con: u32| self.constructors[con as usize].as_str();
        match &self.get(of).form {
            Form::Unit | Form::Refused(_) => out.push_str("()"),
            Form::Bool => out.push_str(if number(value) != 0 { "true" } else { "false" }),
            Form::Int(_) => out.push_str(&tilde(number(value))),
            Form::Str(_) => {
                out.push('"');
                for part in parts {
                    match u32::try_from(number(part)).ok().and_then(char::from_u32) {
                        Some('"') => out.push_str("\\\""),
                        Some('\\') => out.push_str("\\\\"),
                        Some('\n') => out.push_str("\\n"),
                        Some('\t') => out.push_str("\\t"),
                        other => out.extend(other),
                    }
                }
                out.push('"');
            }
            Form::Enum(names) => {
                out.push_str(
                    usize::try_from(number(value)).ok().and_then(|at| names.get(at)).map_or("?", |&con| name(con)),
                );
            }
            Form::Index { con, .. } => out.push_str(&format!("{}({})", name(*con), tilde(number(value)))),
            Form::Product(of) => self.print_list("(", ")", &mut of.iter().copied().zip(parts), out),
            Form::List(of, _) => self.print_list("[", "]", &mut parts.iter().map(|part| (*of, part)), out),
            Form::Record(fields) => {
                let order = field_order(fields);
                out.push('{');
                for (at, (label, of)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    out.push_str(label);
                    out.push('=');
                    if let Some(part) = order.iter().position(|&place| place == at).and_then(|place| parts.get(place)) {
                        self.print(*of, part, out);
                    }
                }
                out.push('}');
            }
            Form::Union(alternatives) => {
                let at = parts.first().map_or(0, |tag| usize::try_from(number(tag)).unwrap_or(0));
                let (con, of) = alternatives[at.min(alternatives.len() - 1)];
                out.push_str(name(con));
                if let Some((of, part)) = of.zip(parts.get(1)) {
                    self.print_list("(", ")", &mut std::iter::once((of, part)), out);
                }
            }
            Form::By(of, _) | Form::With(of, _) => self.print(*of, value, out),
        }
    }

    fn print_list(&self, open: &str, close: &str, parts: &mut dyn Iterator<Item = (u32, &Value)>, out: &mut String) {
        out.push_str(open);
        for (at, (of, part)) in parts.enumerate() {
            if at > 0 {
                out.push(',');
            }
            self.print(of, part, out);
        }
        out.push_str(close);
    }
}
