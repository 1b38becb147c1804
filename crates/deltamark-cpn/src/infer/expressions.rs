//! Expressions, and the declarations of a `let`.

use super::*;
use crate::parse::infix;

impl Model {
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
                    let known = self.names.all();
                    let help = deltamark_core::diagnostic::did_you_mean(name, known);
                    let help = help.map(|name| format!("did you mean `{name}`?"));
                    return Err(Wrong::new(at, format!("there is no `{name}`")).advise(help));
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
                let (mut all, mut given) = (Vec::new(), HashSet::new());
                for (label, part) in fields {
                    if !given.insert(label.as_str()) {
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
                    self.unify_in("the elements have different types", of, ty, part.at)?;
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
                let to = self.applied(function, ty, argument, from)?;
                self.settle();
                (Code::App(Box::new(code), Box::new(given)), to)
            }
            ExpKind::If(condition, one, other) => {
                let (test, ty) = self.exp(condition)?;
                let bool_ = self.bool();
                self.unify(bool_, ty, condition.at)?;
                let (then, ty) = self.exp(one)?;
                let (otherwise, found) = self.exp(other)?;
                self.unify_in("`then` and `else` give different types", ty, found, other.at)?;
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
            ExpKind::Refused(why) => return wrong(at, why.clone()),
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

    /// The result of a function of the type `ty`, applied to an argument of the type `from`.
    fn applied(&mut self, function: &Exp, ty: Ty, argument: &Exp, from: Ty) -> Done<Ty> {
        let to = self.types.fresh();
        let (parameter, result) = match self.types.node(ty).clone() {
            Node::Arrow(parameter, result) => (parameter, result),
            Node::Var(..) => {
                let wanted = self.types.arrow(from, to);
                self.unify(ty, wanted, function.at)?;
                return Ok(to);
            }
            _ => {
                let ty = self.types.show(ty);
                let what = match &function.kind {
                    ExpKind::Name(name) => quoted(name),
                    _ => "this".into(),
                };
                return wrong(start(function), format!("{what} is no function: it has the type {ty}"));
            }
        };
        self.unify(to, result, function.at)?;
        let name = if let ExpKind::Name(name) = &function.kind { Some(name.as_str()) } else { None };
        let records = (self.types.node(parameter).clone(), self.types.node(from).clone());
        let (ExpKind::Tuple(parts), (Node::Record(wanted), Node::Record(found))) = (&argument.kind, records) else {
            let what = name.map_or("the argument".into(), |name| format!("the argument of {}", quoted(name)));
            self.unify_in(&what, parameter, from, argument.at)?;
            return Ok(to);
        };
        if wanted.len() != parts.len() || found.len() != parts.len() {
            self.unify(parameter, from, argument.at)?;
        }
        // Part by part, so that what is wrong is pointed at.
        let operator = name.filter(|name| infix(name).is_some());
        for (number, (part, (wanted, found))) in parts.iter().zip(wanted.iter().zip(&found)).enumerate() {
            let what = match (operator, name) {
                (Some(operator), _) => {
                    format!("the {} of {}", if number == 0 { "left side" } else { "right side" }, quoted(operator))
                }
                (None, Some(name)) => format!("part {} of the argument of {}", number + 1, quoted(name)),
                (None, None) => format!("part {} of the argument", number + 1),
            };
            let Err(wrong) = self.unify_in(&what, wanted.1, found.1, part.at) else { continue };
            let list = matches!(self.types.node(found.1), Node::Con(name, _) if name == "list");
            return Err(wrong.advise(operator.and_then(|operator| advice(operator, part, list))));
        }
        Ok(to)
    }

    pub(super) fn let_in(&mut self, decs: &[Dec], body: &Exp) -> Done<(Code, Ty)> {
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
            Dec::Exception(..) | Dec::Type(..) | Dec::Datatype(_) => {
                self.declare(std::slice::from_ref(first))?;
                self.let_in(rest, body)
            }
            Dec::Local(inner, outer) => {
                let all: Vec<Dec> = inner.iter().chain(outer).chain(rest).cloned().collect();
                self.let_in(&all, body)
            }
            Dec::Colour { at, .. } | Dec::Vars { at, .. } => wrong(*at, "this can be declared at the top only"),
            Dec::Globref(_, exp) => wrong(exp.at, "this can be declared at the top only"),
            Dec::Use(_, at) => wrong(*at, "`use` stands at the top only"),
        }
    }
}

/// A name in quotes; those of signs like a backquote are others.
fn quoted(name: &str) -> String {
    if name.contains('`') { format!("\"{name}\"") } else { format!("`{name}`") }
}

/// What to do about an operand of a wrong type.
fn advice(operator: &str, operand: &Exp, list: bool) -> Option<String> {
    let coefficient = match &operand.kind {
        ExpKind::App(function, _) => matches!(&function.kind, ExpKind::Name(name) if name == "`"),
        _ => false,
    };
    if coefficient && infix(operator).is_some_and(|(strength, _)| strength < 8) && !operator.contains("++") {
        Some(format!("a coefficient is applied before `{operator}`: put what follows it in parentheses"))
    } else if ["==", "<><>", "<<", ">>", "<<=", ">>="].contains(&operator) {
        Some(format!("`{operator}` compares multisets; tokens are compared with `=`, `<>`, `<` and so on"))
    } else if ["++", "--"].contains(&operator) && !list {
        Some(format!("`{operator}` is between multisets; that of one token has a coefficient: ``1`TOKEN``"))
    } else {
        None
    }
}

/// The position of the first function where one is applied to several arguments.
fn start(mut exp: &Exp) -> usize {
    let mut at = exp.at;
    while let ExpKind::App(function, _) = &exp.kind {
        exp = function;
        at = at.min(exp.at);
    }
    at
}

/// Whether an expression may be generalised: evaluating it does nothing.
pub(super) fn is_value(exp: &Exp) -> bool {
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
