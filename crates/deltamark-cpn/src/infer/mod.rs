//! Types of expressions, and their code: one pass over the syntax tree.
//!
//! In: syntax trees. Out: code with resolved names, and types. Inference is Hindley and Milner's with let-polymorphism.
//! Fields of records that are not known yet wait until the end of the declaration, as in SML; names for `<` and its
//! kind default to integers.

mod colours;
mod declarations;
mod expressions;
mod names;
mod patterns;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use deltamark_core::{Control, Stop};

use crate::basis;
use crate::colours::{Colour, ColourFn, Colours, Form};
use crate::eval::{Code, Halt, Lambda, Machine, Pattern, Val, World};
use crate::lexer::{Wrong, wrong};
use crate::parse::Parser;
use crate::syntax::*;
use crate::types::{Node, Scheme, Ty, Types, label_order};

use self::names::Names;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    Local(usize),
    Global(usize),
    /// A constructor, and whether it has an argument.
    Con(u32, bool),
    Bool(bool),
    /// A variable of the net, of this colour set.
    NetVar(u32),
    /// Its declaration is not supported, for this reason.
    Refused(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub scheme: Scheme,
    pub meaning: Meaning,
}

/// A field of a record whose type is not known yet.
struct Pending {
    record: Ty,
    label: String,
    field: Ty,
    at: usize,
}

/// The memory and time that evaluations may take while a file is read, and why they were refused some.
#[derive(Default)]
pub(crate) struct LoadingRoom {
    control: Option<Control>,
    refused: OnceLock<Stop>,
}

impl LoadingRoom {
    /// As much as this control leaves.
    pub fn under(control: &Control) -> Self {
        LoadingRoom { control: Some(control.clone()), refused: OnceLock::new() }
    }

    pub fn grants(&self, bytes: u64) -> bool {
        let stop = self.control.as_ref().and_then(|control| control.ask_for(bytes).err());
        // The first reason counts.
        stop.map(|stop| self.refused.get_or_init(|| stop)).is_none()
    }

    /// Why the file is read no further.
    pub fn refused(&self) -> Option<Stop> {
        self.refused.get().copied()
    }
}

/// All that is declared.
pub(crate) struct Model {
    /// What evaluations may take while the file is read.
    pub room: LoadingRoom,
    pub types: Types,
    pub colours: Colours,
    pub globals: Vec<Val>,
    names: Names,
    /// Colour sets by name; the last of a name counts.
    colour_names: HashMap<String, u32>,
    /// Types by name, with their parameters.
    type_names: Vec<(String, Scheme)>,
    /// How often a name was given to a new type.
    type_counts: HashMap<String, u32>,
    pending: Vec<Pending>,
    ordered: Vec<(Ty, usize)>,
    /// Slots in use, and the most so far, of the function in work.
    slots: usize,
    most: usize,
    /// Whether declarations are of the model, not of a `let`.
    top: bool,
    /// The variables of the net that the expression in work uses.
    pub given: Vec<(String, u32)>,
    /// Values that replace those of `val` declarations, and whether they were used.
    pub parameters: Vec<(String, String, bool)>,
}

type Done<T> = Result<T, Wrong>;

/// An expression with its code.
pub(crate) struct Ready {
    pub code: Code,
    pub size: usize,
    /// The variables it uses, in order: names and colour sets.
    pub given: Vec<(String, u32)>,
}

impl Model {
    pub fn new() -> Self {
        let mut model = Model {
            room: LoadingRoom::default(),
            types: Types::default(),
            colours: Colours::default(),
            globals: Vec::new(),
            names: Names::default(),
            colour_names: HashMap::new(),
            type_names: Vec::new(),
            type_counts: HashMap::new(),
            pending: Vec::new(),
            ordered: Vec::new(),
            slots: 0,
            most: 0,
            top: true,
            given: Vec::new(),
            parameters: Vec::new(),
        };
        for name in ["list", "option", "ref"] {
            model.new_type(name);
        }
        for name in ["int", "string", "bool", "unit", "char", "exn", "real", "time"] {
            let ty = model.new_con(name);
            model.name_type(name, ty);
        }
        // Characters of strings, and integers, always have a colour set.
        let int = model.basic(0);
        let form = || Form::Int(None);
        model.colours.list.push(Colour { name: "int".into(), form: form(), ty: int, timed: false, depth: 0 });
        let exn = model.basic(5);
        for name in basis::EXCEPTIONS {
            model.constructor(name, None, exn);
        }
        let string = model.basic(1);
        model.constructor("Fail", Some(string), exn);
        model.types.level = 1;
        let any = model.types.fresh();
        let option = model.types.add(Node::Con("option".into(), vec![any]));
        model.constructor("NONE", None, option);
        model.constructor("SOME", Some(any), option);
        model.types.level = 0;
        let order = model.new_con("order");
        model.name_type("order", order);
        for name in ["LESS", "EQUAL", "GREATER"] {
            model.constructor(name, None, order);
        }
        debug_assert_eq!(model.colours.constructors[basis::GREATER as usize], "GREATER");
        debug_assert_eq!(model.colours.constructors[basis::SOME as usize], "SOME");
        debug_assert_eq!(model.colours.constructors[basis::FAIL as usize], "Fail");
        debug_assert_eq!(model.colours.constructors[basis::NONE as usize], "NONE");
        let bool_ = model.basic(2);
        for (name, truth) in [("false", false), ("true", true)] {
            let scheme = Scheme { any: Vec::new(), ty: bool_ };
            model.names.push(name.into(), Entry { scheme, meaning: Meaning::Bool(truth) });
        }
        for (number, (name, _, text)) in basis::functions().enumerate() {
            model.types.level = 1;
            let mut vars = Vec::new();
            let parsed = Parser::new(text).and_then(|mut parser| parser.type_exp());
            let ty = parsed.and_then(|ty| model.type_of(&ty, &mut vars)).unwrap_or(0);
            let any = vars.into_iter().map(|(_, ty)| ty).collect();
            model.types.level = 0;
            model.global(name, Scheme { any, ty }, Val::Builtin(number as u16, Vec::new().into()));
        }
        for name in ["empty", "nil"] {
            model.types.level = 1;
            let any = model.types.fresh();
            model.types.level = 0;
            let ty = model.types.list(any);
            model.global(name, Scheme { any: vec![any], ty }, crate::eval::list(Vec::new()));
        }
        model
    }

    fn global(&mut self, name: &str, scheme: Scheme, value: Val) {
        self.globals.push(value);
        let meaning = Meaning::Global(self.globals.len() - 1);
        self.names.push(name.into(), Entry { scheme, meaning });
    }

    fn constructor(&mut self, name: &str, of: Option<Ty>, result: Ty) -> u32 {
        self.colours.constructors.push(name.into());
        let number = self.colours.constructors.len() as u32 - 1;
        let ty = of.map_or(result, |of| self.types.arrow(of, result));
        let mut any = Vec::new();
        self.types.variables(ty, &mut any);
        let meaning = Meaning::Con(number, of.is_some());
        self.names.push(name.into(), Entry { scheme: Scheme { any, ty }, meaning });
        number
    }

    pub fn lookup(&self, name: &str) -> Option<&Entry> {
        self.names.get(name)
    }

    /// The colour set of this name.
    pub fn colour(&self, name: &str) -> Option<u32> {
        self.colour_names.get(name).copied()
    }

    /// That there is no such colour set.
    pub fn no_colour(&self, name: &str, at: usize) -> Wrong {
        let mut known: Vec<&str> = self.colour_names.keys().map(String::as_str).collect();
        known.sort_unstable();
        let close = known.iter().copied().find(|known| known.eq_ignore_ascii_case(name));
        let close = close.or_else(|| deltamark_core::diagnostic::did_you_mean(name, known));
        let help = close.map(|name| format!("did you mean `{name}`?"));
        Wrong::new(at, format!("there is no colour set `{name}`")).advise(help)
    }

    fn basic(&self, at: usize) -> Ty {
        self.type_names[at].1.ty
    }

    fn name_type(&mut self, name: &str, ty: Ty) {
        self.type_names.push((name.into(), Scheme { any: Vec::new(), ty }));
    }

    /// A type that is no other.
    fn new_con(&mut self, name: &str) -> Ty {
        let name = self.new_type(name);
        self.types.con(&name)
    }

    /// A name that no other type has.
    fn new_type(&mut self, name: &str) -> String {
        let count = self.type_counts.entry(name.into()).or_default();
        *count += 1;
        if *count == 1 { name.into() } else { format!("{name}#{count}") }
    }
    pub fn int(&self) -> Ty {
        self.basic(0)
    }
    pub fn bool(&self) -> Ty {
        self.basic(2)
    }

    /// The same; `what` says what the types are of.
    fn unify_in(&mut self, what: &str, expected: Ty, found: Ty, at: usize) -> Done<()> {
        self.unify(expected, found, at)
            .map_err(|wrong| Wrong { message: format!("{what}: {}", wrong.message), ..wrong })
    }

    fn unify(&mut self, expected: Ty, found: Ty, at: usize) -> Done<()> {
        if self.types.is_full() {
            return wrong(at, "the types of this declaration are too large");
        }
        let mut trail = Vec::new();
        if self.types.unify(expected, found, &mut trail) {
            return Ok(());
        }
        self.types.undo(trail);
        let (expected, found) = (self.types.show(expected), self.types.show(found));
        wrong(at, format!("expected the type {expected}, found {found}"))
    }

    fn type_of(&mut self, ty: &TypeExp, vars: &mut Vec<(String, Ty)>) -> Done<Ty> {
        Ok(match ty {
            TypeExp::Var(name) => match vars.iter().find(|known| known.0 == *name) {
                Some(known) => known.1,
                None => {
                    let equal = name.starts_with("''");
                    let fresh = if equal { self.types.fresh_equal() } else { self.types.fresh() };
                    vars.push((name.clone(), fresh));
                    fresh
                }
            },
            TypeExp::Name(name, arguments, at) => {
                let mut parts = Vec::new();
                for argument in arguments {
                    parts.push(self.type_of(argument, vars)?);
                }
                let known = self.type_names.iter().rev().find(|known| known.0 == *name).map(|known| known.1.clone());
                match (name.as_str(), parts.as_slice(), known) {
                    (_, parts, Some(known)) if known.any.len() == parts.len() => self.types.applied(&known, parts),
                    ("list" | "ms", [of], None) => self.types.list(*of),
                    ("option" | "ref", [_], None) => self.types.add(Node::Con(name.clone(), parts)),
                    (_, [], None) => return wrong(*at, format!("there is no type `{name}`")),
                    _ => return wrong(*at, format!("there is no type `{name}` with {} arguments", parts.len())),
                }
            }
            TypeExp::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.type_of(part, vars)).collect::<Done<Vec<_>>>()?;
                self.types.tuple(parts)
            }
            TypeExp::Record(fields) => {
                let mut out = Vec::new();
                for (label, field) in fields {
                    out.push((label.clone(), self.type_of(field, vars)?));
                }
                self.types.record(out)
            }
            TypeExp::Arrow(from, to) => {
                let (from, to) = (self.type_of(from, vars)?, self.type_of(to, vars)?);
                self.types.arrow(from, to)
            }
        })
    }

    fn slot(&mut self) -> usize {
        self.slots += 1;
        self.most = self.most.max(self.slots);
        self.slots - 1
    }

    fn bind(&mut self, name: &str, ty: Ty) -> usize {
        let slot = self.slot();
        let scheme = Scheme { any: Vec::new(), ty };
        self.names.push(name.into(), Entry { scheme, meaning: Meaning::Local(slot) });
        slot
    }

    /// Makes the names declared since then polymorphic.
    fn generalise(&mut self, before: usize) {
        let mut waiting = Vec::new();
        for pending in &self.pending {
            self.types.variables(pending.record, &mut waiting);
            self.types.variables(pending.field, &mut waiting);
        }
        for (ty, _) in &self.ordered {
            self.types.variables(*ty, &mut waiting);
        }
        for at in before..self.names.len() {
            let ty = self.names.at_mut(at).scheme.ty;
            let mut any = Vec::new();
            self.types.variables(ty, &mut any);
            let level = self.types.level;
            any.retain(|&var| {
                !waiting.contains(&var) && matches!(self.types.node(var), Node::Var(own, _) if *own > level)
            });
            self.names.at_mut(at).scheme.any = any;
        }
    }

    /// Resolves the fields whose records are known now.
    fn settle(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        for one in pending {
            let field = match self.types.node(one.record) {
                Node::Record(fields) => fields.iter().find(|field| field.0 == one.label).map(|field| field.1),
                _ => None,
            };
            let done = field.is_some_and(|field| self.unify(field, one.field, one.at).is_ok());
            if !done {
                self.pending.push(one);
            }
        }
    }

    /// Resolves everything that waits, or says what cannot be.
    fn finish(&mut self) -> Done<()> {
        loop {
            let before = self.pending.len();
            self.settle();
            if self.pending.len() == before {
                break;
            }
        }
        let (int, string, char_) = (self.int(), self.basic(1), self.basic(4));
        for (ty, at) in std::mem::take(&mut self.ordered) {
            match self.types.node(ty) {
                Node::Var(..) => self.unify(int, ty, at)?,
                _ => {
                    let found = self.types.find(ty);
                    let name = |of: Ty| matches!((self.types.node(of), self.types.node(found)), (Node::Con(a, _), Node::Con(b, _)) if a == b);
                    if !(name(int) || name(string) || name(char_)) {
                        let found = self.types.show(found);
                        self.pending.clear();
                        return wrong(at, format!("values of the type {found} have no order"));
                    }
                }
            }
        }
        let pending = std::mem::take(&mut self.pending);
        match pending.first() {
            None => Ok(()),
            Some(one) => {
                let message = match self.types.node(one.record) {
                    Node::Var(..) => format!("it is not known which record has the field `{}` here", one.label),
                    _ => {
                        let found = self.types.show(one.record);
                        format!("no fitting field `{}` in the type {found}", one.label)
                    }
                };
                wrong(one.at, message)
            }
        }
    }

    /// Clears what an expression that failed has left behind.
    fn forget(&mut self, names: usize) {
        self.names.truncate(names);
        self.pending.clear();
        self.ordered.clear();
        (self.slots, self.types.level, self.top) = (0, 0, true);
    }

    /// An expression of this type, with the variables of the net.
    pub fn ready(&mut self, exp: &Exp, wanted: Ty) -> Done<Ready> {
        let names = self.names.len();
        (self.slots, self.most, self.top) = (0, 0, false);
        self.given.clear();
        let result = self.exp(exp).and_then(|(code, ty)| {
            self.unify(wanted, ty, exp.at)?;
            self.finish()?;
            Ok(code)
        });
        self.forget(names);
        let given = std::mem::take(&mut self.given);
        result.map(|code| Ready { code, size: self.most, given })
    }

    /// The type of an expression, in words; `None` if it has none by itself.
    pub fn type_text(&mut self, exp: &Exp) -> Option<String> {
        let names = self.names.len();
        (self.slots, self.most, self.top) = (0, 0, false);
        self.given.clear();
        let result = self.exp(exp).and_then(|(_, ty)| {
            self.finish()?;
            Ok(self.types.show(ty))
        });
        self.forget(names);
        result.ok()
    }

    /// The same, where these names stand for multisets of colour sets.
    pub fn ready_with(&mut self, marks: &[(String, u32)], exp: &Exp, wanted: Ty) -> Done<Ready> {
        let before = self.names.len();
        for (name, of) in marks {
            let element = self.colours.get(*of).ty;
            let ty = self.types.list(element);
            let scheme = Scheme { any: Vec::new(), ty };
            self.names.push(name.clone(), Entry { scheme, meaning: Meaning::NetVar(*of) });
        }
        let result = self.ready(exp, wanted);
        self.names.truncate(before);
        result
    }

    /// Evaluates code at the top.
    fn value(&mut self, code: &Code, at: usize) -> Done<Val> {
        let world = World { globals: &self.globals, colours: &self.colours, room: &|bytes| self.room.grants(bytes) };
        let size = self.most;
        Machine::new(&world, &[]).run(code, size).map_err(|halt| Wrong::new(at, self.why(&halt)))
    }

    /// Why there is no value.
    pub fn why(&self, halt: &Halt) -> String {
        why(&self.colours, halt)
    }

    fn constant(&mut self, exp: &Exp, wanted: Ty) -> Done<Val> {
        let names = self.names.len();
        (self.slots, self.most) = (0, 0);
        let result = self.exp(exp).and_then(|(code, ty)| {
            self.unify(wanted, ty, exp.at)?;
            self.finish()?;
            Ok(code)
        });
        self.forget(names);
        let code = result?;
        self.value(&code, exp.at)
    }
}

/// Why there is no value.
pub(crate) fn why(colours: &Colours, halt: &Halt) -> String {
    match halt {
        Halt::Limit(why) => (*why).into(),
        Halt::Raise(Val::Con(number, argument)) => {
            // One that the expression declares itself has no name here.
            let name = colours.constructors.get(*number as usize).map_or("of the expression", String::as_str);
            match argument.as_deref() {
                Some(Val::Str(text)) => format!("the exception {name} \"{text}\" is raised"),
                _ => format!("the exception {name} is raised"),
            }
        }
        Halt::Raise(_) => "an exception is raised".into(),
    }
}
