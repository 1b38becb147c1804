//! Types of expressions, and their code: one pass over the syntax tree.
//!
//! In: syntax trees. Out: code with resolved names, and types. Inference is Hindley and Milner's with let-polymorphism.
//! Fields of records that are not known yet wait until the end of the declaration, as in SML; names for `<` and its
//! kind default to integers.

use std::sync::Arc;

use crate::basis;
use crate::colours::{Colour, ColourFn, Colours, Form};
use crate::eval::{Code, Halt, Lambda, Machine, Pattern, Val, World};
use crate::lexer::{Wrong, wrong};
use crate::parse::Parser;
use crate::syntax::*;
use crate::types::{Node, Scheme, Ty, Types, label_order};

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

/// All that is declared.
pub(crate) struct Model {
    pub types: Types,
    pub colours: Colours,
    pub globals: Vec<Val>,
    names: Vec<(String, Entry)>,
    type_names: Vec<(String, Ty)>,
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
            types: Types::default(),
            colours: Colours::default(),
            globals: Vec::new(),
            names: Vec::new(),
            type_names: Vec::new(),
            pending: Vec::new(),
            ordered: Vec::new(),
            slots: 0,
            most: 0,
            top: true,
            given: Vec::new(),
            parameters: Vec::new(),
        };
        for name in ["int", "string", "bool", "unit", "char", "exn", "real", "time"] {
            let ty = model.types.con(name);
            model.type_names.push((name.into(), ty));
        }
        // Characters of strings, and integers, always have a colour set.
        let int = model.type_names[0].1;
        let form = || Form::Int(None);
        model.colours.list.push(Colour { name: "int".into(), form: form(), ty: int, timed: false });
        let exn = model.type_names[5].1;
        for name in basis::EXCEPTIONS {
            model.constructor(name, None, exn);
        }
        let string = model.type_names[1].1;
        model.constructor("Fail", Some(string), exn);
        model.types.level = 1;
        let any = model.types.fresh();
        let option = model.types.add(Node::Con("option".into(), vec![any]));
        model.constructor("NONE", None, option);
        model.constructor("SOME", Some(any), option);
        model.types.level = 0;
        debug_assert_eq!(model.colours.constructors[basis::SOME as usize], "SOME");
        debug_assert_eq!(model.colours.constructors[basis::FAIL as usize], "Fail");
        debug_assert_eq!(model.colours.constructors[basis::NONE as usize], "NONE");
        let bool_ = model.type_names[2].1;
        for (name, truth) in [("false", false), ("true", true)] {
            let scheme = Scheme { any: Vec::new(), ty: bool_ };
            model.names.push((name.into(), Entry { scheme, meaning: Meaning::Bool(truth) }));
        }
        for (number, (name, _, text)) in basis::FUNCTIONS.iter().enumerate() {
            model.types.level = 1;
            let mut vars = Vec::new();
            let parsed = Parser::new(text).and_then(|mut parser| parser.type_exp());
            let ty = parsed.and_then(|ty| model.type_of(&ty, &mut vars)).unwrap_or(0);
            let any = vars.into_iter().map(|(_, ty)| ty).collect();
            model.types.level = 0;
            model.global(name, Scheme { any, ty }, Val::Builtin(number as u16, Arc::new([])));
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
        self.names.push((name.into(), Entry { scheme, meaning }));
    }

    fn constructor(&mut self, name: &str, of: Option<Ty>, result: Ty) -> u32 {
        self.colours.constructors.push(name.into());
        let number = self.colours.constructors.len() as u32 - 1;
        let ty = of.map_or(result, |of| self.types.arrow(of, result));
        let mut any = Vec::new();
        self.types.variables(ty, &mut any);
        self.names
            .push((name.into(), Entry { scheme: Scheme { any, ty }, meaning: Meaning::Con(number, of.is_some()) }));
        number
    }

    pub fn lookup(&self, name: &str) -> Option<&Entry> {
        self.names.iter().rev().find(|known| known.0 == name).map(|known| &known.1)
    }

    /// The colour set of this name.
    pub fn colour(&self, name: &str) -> Option<u32> {
        self.colours.list.iter().rposition(|colour| colour.name == name && colour.name != "int").map(|at| at as u32)
    }

    fn basic(&self, at: usize) -> Ty {
        self.type_names[at].1
    }
    pub fn int(&self) -> Ty {
        self.basic(0)
    }
    pub fn bool(&self) -> Ty {
        self.basic(2)
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
                    let fresh = self.types.fresh();
                    vars.push((name.clone(), fresh));
                    fresh
                }
            },
            TypeExp::Name(name, arguments, at) => {
                let mut parts = Vec::new();
                for argument in arguments {
                    parts.push(self.type_of(argument, vars)?);
                }
                match (name.as_str(), parts.as_slice()) {
                    ("list" | "ms", [of]) => self.types.list(*of),
                    ("option" | "ref", [_]) => self.types.add(Node::Con(name.clone(), parts)),
                    (_, []) => match self.type_names.iter().rev().find(|known| known.0 == *name) {
                        Some(known) => known.1,
                        None => return wrong(*at, format!("there is no type `{name}`")),
                    },
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
        self.names.push((name.into(), Entry { scheme, meaning: Meaning::Local(slot) }));
        slot
    }

    fn pattern(&mut self, pattern: &Pat) -> Done<(Pattern, Ty)> {
        let at = pattern.at;
        Ok(match &pattern.kind {
            PatKind::Wild => (Pattern::Wild, self.types.fresh()),
            PatKind::Int(number) => (Pattern::Int(*number), self.int()),
            PatKind::Str(text) => (Pattern::Str(text.clone()), self.basic(1)),
            PatKind::Char(letter) => (Pattern::Char(*letter), self.basic(4)),
            PatKind::Name(name) => {
                let meaning = self.lookup(name).map(|entry| (entry.meaning.clone(), entry.scheme.clone()));
                match meaning {
                    Some((Meaning::Con(number, false), scheme)) => {
                        (Pattern::Con(number, None), self.types.instance(&scheme))
                    }
                    Some((Meaning::Con(_, true), _)) => return wrong(at, format!("`{name}` needs an argument")),
                    Some((Meaning::Bool(truth), _)) => (Pattern::Bool(truth), self.bool()),
                    _ if name == "nil" => {
                        let of = self.types.fresh();
                        (Pattern::List(Vec::new()), self.types.list(of))
                    }
                    _ => {
                        let ty = self.types.fresh();
                        (Pattern::Bind(self.bind(name, ty)), ty)
                    }
                }
            }
            PatKind::Apply(name, argument) => {
                let entry = self.lookup(name).cloned();
                let Some(Entry { scheme, meaning: Meaning::Con(number, true) }) = entry else {
                    return wrong(at, format!("`{name}` is no constructor with an argument"));
                };
                let function = self.types.instance(&scheme);
                let (inner, of) = self.pattern(argument)?;
                let result = self.types.fresh();
                let wanted = self.types.arrow(of, result);
                self.unify(function, wanted, at)?;
                (Pattern::Con(number, Some(Box::new(inner))), result)
            }
            PatKind::Tuple(parts) => {
                let (mut out, mut types) = (Vec::new(), Vec::new());
                for part in parts {
                    let (part, ty) = self.pattern(part)?;
                    out.push(part);
                    types.push(ty);
                }
                (Pattern::Tuple(out), self.types.tuple(types))
            }
            PatKind::Record(fields, open) => {
                let (mut out, mut types) = (Vec::new(), Vec::new());
                for (label, part) in fields {
                    let (part, ty) = self.pattern(part)?;
                    out.push((label.clone(), part));
                    types.push((label.clone(), ty));
                }
                if *open {
                    let record = self.types.fresh();
                    for (label, field) in types {
                        self.pending.push(Pending { record, label, field, at });
                    }
                    (Pattern::Record(out), record)
                } else if fields.is_empty() {
                    (Pattern::Tuple(Vec::new()), self.basic(3))
                } else {
                    (Pattern::Record(out), self.types.record(types))
                }
            }
            PatKind::List(parts) => {
                let of = self.types.fresh();
                let mut out = Vec::new();
                for part in parts {
                    let (pattern, ty) = self.pattern(part)?;
                    self.unify(of, ty, part.at)?;
                    out.push(pattern);
                }
                (Pattern::List(out), self.types.list(of))
            }
            PatKind::Cons(head, tail) => {
                let (first, of) = self.pattern(head)?;
                let (rest, ty) = self.pattern(tail)?;
                let list = self.types.list(of);
                self.unify(list, ty, tail.at)?;
                (Pattern::Cons(Box::new(first), Box::new(rest)), list)
            }
            PatKind::As(name, inner) => {
                let ty = self.types.fresh();
                let slot = self.bind(name, ty);
                let (inner, of) = self.pattern(inner)?;
                self.unify(ty, of, at)?;
                (Pattern::As(slot, Box::new(inner)), ty)
            }
            PatKind::Typed(inner, ty) => {
                let (pattern, found) = self.pattern(inner)?;
                let wanted = self.type_of(ty, &mut Vec::new())?;
                self.unify(wanted, found, at)?;
                (pattern, wanted)
            }
        })
    }

    /// Rules whose patterns have the type `from` and whose results have the type `to`.
    fn rules(&mut self, rules: &[(Pat, Exp)], from: Ty, to: Ty) -> Done<Vec<(Pattern, Code)>> {
        let mut out = Vec::new();
        for (pattern, body) in rules {
            let (names, slots) = (self.names.len(), self.slots);
            let (shape, ty) = self.pattern(pattern)?;
            self.unify(from, ty, pattern.at)?;
            let (code, ty) = self.exp(body)?;
            self.unify(to, ty, body.at)?;
            out.push((shape, code));
            self.names.truncate(names);
            self.slots = slots;
        }
        Ok(out)
    }

    /// A function of these rules; `reserved` slots come before its arguments.
    fn lambda(&mut self, rules: &[(Pat, Exp)], from: Ty, to: Ty) -> Done<Lambda> {
        let base = self.slots;
        let most = std::mem::replace(&mut self.most, base);
        let rules = self.rules(rules, from, to)?;
        let size = std::mem::replace(&mut self.most, most);
        Ok(Lambda { rules, base, size })
    }

    pub fn exp(&mut self, exp: &Exp) -> Done<(Code, Ty)> {
        let at = exp.at;
        Ok(match &exp.kind {
            ExpKind::Int(number) => (Code::Const(Val::Int(*number)), self.int()),
            ExpKind::Str(text) => (Code::Const(Val::Str(Arc::from(text.as_str()))), self.basic(1)),
            ExpKind::Char(letter) => (Code::Const(Val::Char(*letter)), self.basic(4)),
            ExpKind::Name(name) => {
                let Some(entry) = self.lookup(name).cloned() else {
                    if let Some(why) = basis::refused(name) {
                        return wrong(at, format!("`{name}`: {why}"));
                    }
                    let known = self.names.iter().map(|known| known.0.as_str());
                    let help = deltamark_core::diagnostic::did_you_mean(name, known);
                    let help = help.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
                    return wrong(at, format!("there is no `{name}`{help}"));
                };
                let ty = self.types.instance(&entry.scheme);
                if matches!(name.as_str(), "<" | ">" | "<=" | ">=")
                    && let Node::Arrow(from, _) = self.types.node(ty).clone()
                    && let Node::Record(parts) = self.types.node(from).clone()
                {
                    self.ordered.push((parts[0].1, at));
                }
                let code = match entry.meaning {
                    Meaning::Local(slot) => Code::Local(slot),
                    Meaning::Global(number) => Code::Global(number),
                    Meaning::Con(number, false) => Code::Const(Val::Con(number, None)),
                    Meaning::Con(number, true) => Code::Const(Val::ConFn(number)),
                    Meaning::Bool(truth) => Code::Const(Val::Bool(truth)),
                    Meaning::Refused(why) => return wrong(at, format!("`{name}` cannot be used: {why}")),
                    Meaning::NetVar(of) => {
                        if self.top {
                            return wrong(at, format!("`{name}` is a variable of the net and has no value here"));
                        }
                        let known = self.given.iter().position(|known| known.0 == *name);
                        Code::Given(known.unwrap_or_else(|| {
                            self.given.push((name.clone(), of));
                            self.given.len() - 1
                        }))
                    }
                };
                (code, ty)
            }
            ExpKind::Tuple(parts) if parts.is_empty() => (Code::Const(Val::Unit), self.basic(3)),
            ExpKind::Tuple(parts) => {
                let (mut codes, mut types) = (Vec::new(), Vec::new());
                for part in parts {
                    let (code, ty) = self.exp(part)?;
                    codes.push(code);
                    types.push(ty);
                }
                (Code::Tuple(codes), self.types.tuple(types))
            }
            ExpKind::Record(fields) => {
                let mut all = Vec::new();
                for (label, part) in fields {
                    if all.iter().any(|(known, _, _)| known == label) {
                        return wrong(part.at, format!("the field `{label}` is given twice"));
                    }
                    let (code, ty) = self.exp(part)?;
                    all.push((label.clone(), code, ty));
                }
                if all.is_empty() {
                    return Ok((Code::Const(Val::Unit), self.basic(3)));
                }
                all.sort_by(|one, other| label_order(&one.0, &other.0));
                let types = all.iter().map(|(label, _, ty)| (label.clone(), *ty)).collect();
                let labels: Arc<[String]> = all.iter().map(|(label, _, _)| label.clone()).collect();
                (Code::Record(labels, all.into_iter().map(|(_, code, _)| code).collect()), self.types.record(types))
            }
            ExpKind::List(parts) => {
                let of = self.types.fresh();
                let mut codes = Vec::new();
                for part in parts {
                    let (code, ty) = self.exp(part)?;
                    self.unify(of, ty, part.at)?;
                    codes.push(code);
                }
                (Code::List(codes), self.types.list(of))
            }
            ExpKind::Select(label) => {
                let (record, field) = (self.types.fresh(), self.types.fresh());
                self.pending.push(Pending { record, label: label.clone(), field, at });
                (Code::Const(Val::Select(Arc::from(label.as_str()))), self.types.arrow(record, field))
            }
            ExpKind::App(function, argument) => {
                let (code, ty) = self.exp(function)?;
                let (given, from) = self.exp(argument)?;
                let to = self.types.fresh();
                let wanted = self.types.arrow(from, to);
                if let Node::Arrow(parameter, result) = self.types.node(ty).clone() {
                    self.unify(parameter, from, argument.at)?;
                    self.unify(to, result, at)?;
                } else {
                    self.unify(ty, wanted, at)?;
                }
                self.settle();
                (Code::App(Box::new(code), Box::new(given)), to)
            }
            ExpKind::If(condition, one, other) => {
                let (test, ty) = self.exp(condition)?;
                let bool_ = self.bool();
                self.unify(bool_, ty, condition.at)?;
                let (then, ty) = self.exp(one)?;
                let (otherwise, found) = self.exp(other)?;
                self.unify(ty, found, other.at)?;
                (Code::If(Box::new(test), Box::new(then), Box::new(otherwise)), ty)
            }
            ExpKind::And(one, other) | ExpKind::Or(one, other) => {
                let bool_ = self.bool();
                let (left, ty) = self.exp(one)?;
                self.unify(bool_, ty, one.at)?;
                let (right, ty) = self.exp(other)?;
                self.unify(bool_, ty, other.at)?;
                let (left, right) = (Box::new(left), Box::new(right));
                (
                    if matches!(exp.kind, ExpKind::And(..)) { Code::And(left, right) } else { Code::Or(left, right) },
                    bool_,
                )
            }
            ExpKind::Case(of, rules) => {
                let (code, from) = self.exp(of)?;
                let to = self.types.fresh();
                let rules = self.rules(rules, from, to)?;
                (Code::Case(Box::new(code), rules), to)
            }
            ExpKind::Fn(rules) => {
                let (from, to) = (self.types.fresh(), self.types.fresh());
                let lambda = self.lambda(rules, from, to)?;
                (Code::Fn(Arc::new(lambda)), self.types.arrow(from, to))
            }
            ExpKind::Raise(of) => {
                let (code, ty) = self.exp(of)?;
                let exn = self.basic(5);
                self.unify(exn, ty, of.at)?;
                (Code::Raise(Box::new(code)), self.types.fresh())
            }
            ExpKind::Handle(of, rules) => {
                let (code, ty) = self.exp(of)?;
                let exn = self.basic(5);
                let rules = self.rules(rules, exn, ty)?;
                (Code::Handle(Box::new(code), rules), ty)
            }
            ExpKind::Seq(parts) => {
                let (mut codes, mut last) = (Vec::new(), self.basic(3));
                for part in parts {
                    let (code, ty) = self.exp(part)?;
                    codes.push(code);
                    last = ty;
                }
                (Code::Seq(codes), last)
            }
            ExpKind::Typed(of, ty) => {
                let (code, found) = self.exp(of)?;
                let wanted = self.type_of(ty, &mut Vec::new())?;
                self.unify(wanted, found, at)?;
                (code, wanted)
            }
            ExpKind::Let(decs, body) => {
                let (names, slots, types) = (self.names.len(), self.slots, self.type_names.len());
                let result = self.let_in(decs, body);
                self.names.truncate(names);
                self.type_names.truncate(types);
                self.slots = slots;
                result?
            }
        })
    }

    fn let_in(&mut self, decs: &[Dec], body: &Exp) -> Done<(Code, Ty)> {
        let Some((first, rest)) = decs.split_first() else { return self.exp(body) };
        match first {
            Dec::Val(bindings) => {
                let mut parts = Vec::new();
                for (pattern, value) in bindings {
                    self.types.level += 1;
                    let result = self.exp(value);
                    self.types.level -= 1;
                    let (code, ty) = result?;
                    let before = self.names.len();
                    let (shape, found) = self.pattern(pattern)?;
                    self.unify(found, ty, value.at)?;
                    if is_value(value) {
                        self.generalise(before);
                    }
                    parts.push((shape, code));
                }
                let (mut code, ty) = self.let_in(rest, body)?;
                for (shape, value) in parts.into_iter().rev() {
                    code = Code::LetVal(shape, Box::new(value), Box::new(code));
                }
                Ok((code, ty))
            }
            Dec::Fun(functions) => {
                let first = self.slots;
                let lambdas = self.functions(functions, None)?;
                let (code, ty) = self.let_in(rest, body)?;
                Ok((Code::LetFun(first, lambdas.into(), Box::new(code)), ty))
            }
            Dec::Exception(..) | Dec::Type(..) => {
                self.declare(std::slice::from_ref(first))?;
                self.let_in(rest, body)
            }
            Dec::Local(inner, outer) => {
                let all: Vec<Dec> = inner.iter().chain(outer).chain(rest).cloned().collect();
                self.let_in(&all, body)
            }
            Dec::Colour { at, .. } | Dec::Vars { at, .. } => wrong(*at, "this can be declared at the top only"),
            Dec::Globref(_, exp) => wrong(exp.at, "this can be declared at the top only"),
        }
    }

    /// Declares functions that may call each other, in slots or as globals from a number on.
    fn functions(&mut self, functions: &[Vec<Clause>], globals: Option<usize>) -> Done<Vec<Arc<Lambda>>> {
        self.types.level += 1;
        let before = self.names.len();
        let mut types = Vec::new();
        for (number, clauses) in functions.iter().enumerate() {
            let ty = self.types.fresh();
            match globals {
                Some(first) => {
                    let scheme = Scheme { any: Vec::new(), ty };
                    let meaning = Meaning::Global(first + number);
                    self.names.push((clauses[0].name.clone(), Entry { scheme, meaning }));
                }
                None => {
                    self.bind(&clauses[0].name, ty);
                }
            }
            types.push(ty);
        }
        let mut lambdas = Vec::new();
        for (clauses, ty) in functions.iter().zip(types) {
            let exp = curried(clauses)?;
            let ExpKind::Fn(rules) = &exp.kind else { return wrong(exp.at, "a function without arguments") };
            let (from, to) = (self.types.fresh(), self.types.fresh());
            let arrow = self.types.arrow(from, to);
            self.unify(ty, arrow, exp.at)?;
            lambdas.push(Arc::new(self.lambda(rules, from, to)?));
        }
        self.settle();
        if globals.is_some() {
            self.finish()?;
        }
        self.types.level -= 1;
        self.generalise(before);
        Ok(lambdas)
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
            let ty = self.names[at].1.scheme.ty;
            let mut any = Vec::new();
            self.types.variables(ty, &mut any);
            let level = self.types.level;
            any.retain(|&var| {
                !waiting.contains(&var) && matches!(self.types.node(var), Node::Var(own) if *own > level)
            });
            self.names[at].1.scheme.any = any;
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
                Node::Var(_) => self.unify(int, ty, at)?,
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
                    Node::Var(_) => format!("it is not known which record has the field `{}` here", one.label),
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

    /// Evaluates code at the top.
    fn value(&mut self, code: &Code, at: usize) -> Done<Val> {
        let world = World { globals: &self.globals, colours: &self.colours };
        let size = self.most;
        Machine::new(&world, &[]).run(code, size).map_err(|halt| Wrong { at, message: self.why(&halt) })
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

    /// Declares what a declaration that is not supported would have declared, so that who uses it is told why.
    pub fn refuse(&mut self, decs: &[Dec], why: &str) {
        let mut names = Vec::new();
        for dec in decs {
            match dec {
                Dec::Val(bindings) => names.extend(bindings.iter().filter_map(|(pattern, _)| match &pattern.kind {
                    PatKind::Name(name) => Some(name.clone()),
                    _ => None,
                })),
                Dec::Fun(functions) => names.extend(functions.iter().map(|clauses| clauses[0].name.clone())),
                Dec::Globref(name, _) => names.push(name.clone()),
                Dec::Local(_, outer) => self.refuse(outer, why),
                _ => {}
            }
        }
        for name in names {
            let ty = self.int();
            let scheme = Scheme { any: Vec::new(), ty };
            self.names.push((name, Entry { scheme, meaning: Meaning::Refused(why.into()) }));
        }
    }

    /// Declarations at the top.
    pub fn declare(&mut self, decs: &[Dec]) -> Done<()> {
        for dec in decs {
            match dec {
                Dec::Val(bindings) => {
                    for (pattern, value) in bindings {
                        self.declare_val(pattern, value)?;
                    }
                }
                Dec::Fun(functions) => {
                    let first = self.globals.len();
                    self.globals.extend(functions.iter().map(|_| Val::Unit));
                    let before = self.names.len();
                    match self.functions(functions, Some(first)) {
                        Ok(lambdas) => {
                            for (number, lambda) in lambdas.into_iter().enumerate() {
                                let code = Code::Fn(lambda);
                                self.most = 0;
                                self.globals[first + number] = self.value(&code, 0)?;
                            }
                        }
                        Err(wrong) => {
                            self.forget(before);
                            return Err(wrong);
                        }
                    }
                }
                Dec::Exception(name, of) => {
                    let exn = self.basic(5);
                    let of = of.as_ref().map(|of| self.type_of(of, &mut Vec::new())).transpose()?;
                    self.constructor(name, of, exn);
                }
                Dec::Local(inner, outer) => {
                    let before = self.names.len();
                    self.declare(inner)?;
                    let middle = self.names.len();
                    self.declare(outer)?;
                    self.names.drain(before..middle);
                }
                Dec::Type(name, ty) => {
                    let ty = self.type_of(ty, &mut Vec::new())?;
                    self.type_names.push((name.clone(), ty));
                }
                Dec::Globref(name, value) => {
                    let ty = self.types.fresh();
                    let value = self.constant(value, ty)?;
                    let ty = self.types.add(Node::Con("ref".into(), vec![ty]));
                    self.global(name, Scheme { any: Vec::new(), ty }, Val::Ref(Arc::new(value)));
                }
                Dec::Vars { names, of, at } => {
                    let Some(colour) = self.colour(of) else {
                        return wrong(*at, format!("there is no colour set `{of}`"));
                    };
                    let ty = self.colours.get(colour).ty;
                    for (name, _) in names {
                        let scheme = Scheme { any: Vec::new(), ty };
                        self.names.push((name.clone(), Entry { scheme, meaning: Meaning::NetVar(colour) }));
                    }
                }
                Dec::Colour { name, spec, timed, at } => self.declare_colour(name, spec, *timed, *at)?,
            }
        }
        Ok(())
    }

    fn declare_val(&mut self, pattern: &Pat, value: &Exp) -> Done<()> {
        let replaced = match &pattern.kind {
            PatKind::Name(name) => self.parameters.iter_mut().find(|known| known.0 == *name).map(|known| {
                known.2 = true;
                known.1.clone()
            }),
            _ => None,
        };
        let parsed = match &replaced {
            Some(text) => Parser::inscription(text).map_err(|wrong| Wrong { at: value.at, message: wrong.message })?,
            None => None,
        };
        let value = parsed.as_ref().unwrap_or(value);
        let names = self.names.len();
        (self.slots, self.most) = (0, 0);
        self.types.level = 1;
        let result = self.exp(value).and_then(|(code, ty)| {
            self.finish()?;
            Ok((code, ty))
        });
        self.forget(names);
        let (code, ty) = result?;
        let value_of = self.value(&code, value.at)?;
        // The pattern is matched by code that gives each name in turn.
        self.types.level = 1;
        (self.slots, self.most) = (0, 0);
        let (shape, found) = self.pattern(pattern)?;
        let united = self.unify(found, ty, value.at).and_then(|()| self.finish());
        let bound: Vec<(String, Entry)> = self.names.drain(names..).collect();
        self.forget(names);
        united?;
        let shape = Arc::new(shape);
        let _ = &shape;
        let mut values = Vec::new();
        {
            let world = World { globals: &self.globals, colours: &self.colours };
            let slots: Vec<Code> =
                bound
                    .iter()
                    .map(|(_, entry)| {
                        if let Meaning::Local(slot) = entry.meaning {
                            Code::Local(slot)
                        } else {
                            Code::Const(Val::Unit)
                        }
                    })
                    .collect();
            if let Ok(shape) = Arc::try_unwrap(shape) {
                let code = Code::LetVal(shape, Box::new(Code::Const(value_of)), Box::new(Code::List(slots)));
                let found = Machine::new(&world, &[]).run(&code, self.most);
                match found {
                    Ok(found) => values.extend_from_slice(found.items()),
                    Err(halt) => return wrong(value.at, why(&self.colours, &halt)),
                }
            }
        }
        let before = self.names.len();
        for ((name, entry), value) in bound.into_iter().zip(values) {
            self.global(&name, entry.scheme, value);
        }
        self.generalise(before);
        Ok(())
    }

    fn declare_colour(&mut self, name: &str, spec: &ColourSpec, timed: bool, at: usize) -> Done<()> {
        let int = self.int();
        let known = |model: &Self, name: &str| -> Done<u32> {
            model.colour(name).map_or_else(|| wrong(at, format!("there is no colour set `{name}`")), Ok)
        };
        let range = |model: &mut Self, bounds: &Option<(Exp, Exp)>| -> Done<Option<(i64, i64)>> {
            let Some((low, high)) = bounds else { return Ok(None) };
            let (low, high) = (model.constant(low, int)?.int(), model.constant(high, int)?.int());
            if low > high {
                return wrong(at, format!("the colour set `{name}` has no values: {low} is above {high}"));
            }
            Ok(Some((low, high)))
        };
        let (form, ty) = match spec {
            ColourSpec::Unit(None) => (Form::Unit, self.basic(3)),
            ColourSpec::Unit(Some(one)) => {
                let ty = self.types.con(&format!("{name}@{at}"));
                (Form::Enum(vec![self.constructor(one, None, ty)]), ty)
            }
            ColourSpec::Bool(None) => (Form::Bool, self.bool()),
            ColourSpec::Bool(Some((no, yes))) => {
                let ty = self.bool();
                for (name, truth) in [(no, false), (yes, true)] {
                    let scheme = Scheme { any: Vec::new(), ty };
                    self.names.push((name.clone(), Entry { scheme, meaning: Meaning::Bool(truth) }));
                }
                (Form::Bool, ty)
            }
            ColourSpec::Int(bounds) => (Form::Int(range(self, bounds)?), int),
            ColourSpec::Str(false) => (Form::Str, self.basic(1)),
            ColourSpec::Str(true) => (
                Form::Refused(format!("the colour set `{name}` restricts strings, which is not supported")),
                self.basic(1),
            ),
            ColourSpec::Enum(names) => {
                let ty = self.types.con(name);
                (Form::Enum(names.iter().map(|one| self.constructor(one, None, ty)).collect()), ty)
            }
            ColourSpec::Index(con, low, high) => {
                let ty = self.types.con(name);
                let bounds = range(self, &Some((low.clone(), high.clone())))?;
                let (low, high) = bounds.unwrap_or((0, 0));
                (Form::Index { con: self.constructor(con, Some(int), ty), low, high }, ty)
            }
            ColourSpec::Product(parts) => {
                let parts = parts.iter().map(|part| known(self, part)).collect::<Done<Vec<_>>>()?;
                let types = parts.iter().map(|&part| self.colours.get(part).ty).collect();
                (Form::Product(parts), self.types.tuple(types))
            }
            ColourSpec::Record(fields) => {
                let mut out = Vec::new();
                for (label, of) in fields {
                    out.push((label.clone(), known(self, of)?));
                }
                let types = out.iter().map(|(label, of)| (label.clone(), self.colours.get(*of).ty)).collect();
                (Form::Record(out), self.types.record(types))
            }
            ColourSpec::List(of, bounds) => {
                let of = known(self, of)?;
                let element = self.colours.get(of).ty;
                (Form::List(of, range(self, bounds)?), self.types.list(element))
            }
            ColourSpec::Union(alternatives) => {
                let ty = self.types.con(name);
                let mut out = Vec::new();
                for (con, of) in alternatives {
                    let of = of.as_ref().map(|of| known(self, of)).transpose()?;
                    let argument = of.map(|of| self.colours.get(of).ty);
                    out.push((self.constructor(con, argument, ty), of));
                }
                (Form::Union(out), ty)
            }
            ColourSpec::SubsetBy(of, test) => {
                let of = known(self, of)?;
                let ty = self.colours.get(of).ty;
                let bool_ = self.bool();
                let arrow = self.types.arrow(ty, bool_);
                (Form::By(of, self.constant(test, arrow)?), ty)
            }
            ColourSpec::SubsetWith(of, values) => {
                let of = known(self, of)?;
                let ty = self.colours.get(of).ty;
                let wanted = self.types.list(ty);
                let all = self.constant(values, wanted)?;
                let world = World { globals: &self.globals, colours: &self.colours };
                let mut machine = Machine::new(&world, &[]);
                let mut out = Vec::new();
                for value in all.items() {
                    match self.colours.to_state(&mut machine, of, value) {
                        Ok(Some(value)) => out.push(value),
                        Ok(None) => return wrong(at, "a value of the subset is outside its colour set"),
                        Err(halt) => return wrong(at, why(&self.colours, &halt)),
                    }
                }
                (Form::With(of, out), ty)
            }
            ColourSpec::Alias(of) => return self.declare_alias(name, of, timed, at),
            ColourSpec::Other(kind) => {
                let ty = self.types.con(if kind == "intinf" { "int" } else { kind });
                (Form::Refused(format!("the colour set `{name}` is of {kind}, which is not supported")), ty)
            }
        };
        self.add_colour(name, form, ty, timed);
        Ok(())
    }

    fn declare_alias(&mut self, name: &str, of: &str, timed: bool, at: usize) -> Done<()> {
        let Some(known) = self.colour(of) else { return wrong(at, format!("there is no colour set `{of}`")) };
        let colour = self.colours.get(known);
        let (ty, timed) = (colour.ty, timed || colour.timed);
        let form = match &colour.form {
            Form::Unit => Form::Unit,
            Form::Bool => Form::Bool,
            Form::Int(range) => Form::Int(*range),
            Form::Str => Form::Str,
            Form::Enum(names) => Form::Enum(names.clone()),
            Form::Index { con, low, high } => Form::Index { con: *con, low: *low, high: *high },
            Form::Product(parts) => Form::Product(parts.clone()),
            Form::Record(fields) => Form::Record(fields.clone()),
            Form::List(of, range) => Form::List(*of, *range),
            Form::Union(alternatives) => Form::Union(alternatives.clone()),
            Form::By(of, test) => Form::By(*of, test.clone()),
            Form::With(of, values) => Form::With(*of, values.clone()),
            Form::Refused(why) => Form::Refused(why.clone()),
        };
        self.add_colour(name, form, ty, timed);
        Ok(())
    }

    fn add_colour(&mut self, name: &str, form: Form, ty: Ty, timed: bool) {
        let product = if let Form::Product(parts) = &form { Some(parts.clone()) } else { None };
        self.colours.list.push(Colour { name: name.into(), form, ty, timed });
        self.type_names.push((name.into(), ty));
        let number = self.colours.list.len() as u32 - 1;
        let (unit, int, bool_, string) = (self.basic(3), self.int(), self.bool(), self.basic(1));
        let set = self.types.list(ty);
        let pair = self.types.tuple(vec![ty, ty]);
        let mut functions = vec![
            ("all", ColourFn::All, unit, set),
            ("size", ColourFn::Size, unit, int),
            ("ord", ColourFn::Ord, ty, int),
            ("col", ColourFn::Col, int, ty),
            ("lt", ColourFn::Lt, pair, bool_),
            ("mkstr", ColourFn::MkStr, ty, string),
            ("legal", ColourFn::Legal, ty, bool_),
        ];
        if let Some(parts) = product {
            let sets = parts.iter().map(|&part| {
                let of = self.colours.get(part).ty;
                self.types.list(of)
            });
            let sets = sets.collect();
            functions.push(("mult", ColourFn::Mult, self.types.tuple(sets), set));
        }
        for (last, which, from, to) in functions {
            let ty = self.types.arrow(from, to);
            self.global(&format!("{name}.{last}"), Scheme { any: Vec::new(), ty }, Val::Colour(which, number));
        }
    }
}

/// Why there is no value.
pub(crate) fn why(colours: &Colours, halt: &Halt) -> String {
    match halt {
        Halt::Limit(why) => (*why).into(),
        Halt::Raise(Val::Con(number, argument)) => {
            let name = &colours.constructors[*number as usize];
            match argument.as_deref() {
                Some(Val::Str(text)) => format!("the exception {name} \"{text}\" is raised"),
                _ => format!("the exception {name} is raised"),
            }
        }
        Halt::Raise(_) => "an exception is raised".into(),
    }
}

/// Whether an expression may be generalised: evaluating it does nothing.
fn is_value(exp: &Exp) -> bool {
    match &exp.kind {
        ExpKind::Fn(_)
        | ExpKind::Name(_)
        | ExpKind::Int(_)
        | ExpKind::Str(_)
        | ExpKind::Char(_)
        | ExpKind::Select(_) => true,
        ExpKind::Tuple(parts) | ExpKind::List(parts) => parts.iter().all(is_value),
        ExpKind::Typed(of, _) => is_value(of),
        _ => false,
    }
}

/// The clauses of a function as a `fn`: several arguments become nested ones, matched as a tuple in the innermost.
fn curried(clauses: &[Clause]) -> Done<Exp> {
    let first = &clauses[0];
    let count = first.patterns.len();
    if let Some(other) = clauses.iter().find(|clause| clause.patterns.len() != count || clause.name != first.name) {
        return wrong(other.at, format!("the clauses of `{}` differ in their name or number of arguments", first.name));
    }
    let at = first.at;
    let body = |clause: &Clause| match &clause.result {
        Some(ty) => Exp { kind: ExpKind::Typed(Box::new(clause.body.clone()), ty.clone()), at: clause.body.at },
        None => clause.body.clone(),
    };
    if count == 1 {
        let rules = clauses.iter().map(|clause| (clause.patterns[0].clone(), body(clause))).collect();
        return Ok(Exp { kind: ExpKind::Fn(rules), at });
    }
    if let [only] = clauses {
        let mut exp = body(only);
        for pattern in only.patterns.iter().rev() {
            exp = Exp { kind: ExpKind::Fn(vec![(pattern.clone(), exp)]), at };
        }
        return Ok(exp);
    }
    // Names that no model can have.
    let name = |number: usize| format!("argument {number}");
    let tuple =
        Exp { kind: ExpKind::Tuple((0..count).map(|n| Exp { kind: ExpKind::Name(name(n)), at }).collect()), at };
    let rule = |clause: &Clause| (Pat { kind: PatKind::Tuple(clause.patterns.clone()), at: clause.at }, body(clause));
    let mut exp = Exp { kind: ExpKind::Case(Box::new(tuple), clauses.iter().map(rule).collect()), at };
    for number in (0..count).rev() {
        exp = Exp { kind: ExpKind::Fn(vec![(Pat { kind: PatKind::Name(name(number)), at }, exp)]), at };
    }
    Ok(exp)
}
