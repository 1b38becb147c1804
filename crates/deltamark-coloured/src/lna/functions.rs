//! Functions and their statements.
//!
//! In: a function of the syntax tree. Out: a function of the net. What stays true: a function is declared
//! before its body is checked, so that it may be recursive; a prototype and its body agree; every variable
//! has a number of its own in the frame.

use super::check::{Assign, Checker, LocalName, Signature, What};
use super::composite::{element, replaced};
use super::fold::{fault_of, number};
use super::roots::{field_of, indexed};
use super::syntax::{Expr, FunctionBody, FunctionDef, Iteration, Node, Statement, StatementNode};
use super::types::{BOOL, Class, INT};
use crate::net::{self, ExprKind, Function, FunctionId, Stat, TypeId, Var};
use deltamark_core::{Diagnostic, Span};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The maximum total time for evaluating a net's constants; the rest are evaluated at run time.
const LONGEST_EVALUATION: Duration = Duration::from_secs(1);

/// The function whose body is being checked.
struct Body {
    result: TypeId,
}

impl<'t> Checker<'t, '_> {
    pub(super) fn function(&mut self, definition: &FunctionDef<'t>) {
        let name = definition.name;
        let parameters: Vec<TypeId> =
            definition.parameters.iter().map(|(of, _)| self.type_called(*of).unwrap_or(INT)).collect();
        let result = self.type_called(definition.result).unwrap_or(INT);
        let statement = match &definition.body {
            FunctionBody::Prototype => None,
            FunctionBody::Statement(statement) => Some(statement),
            FunctionBody::Imported => {
                self.findings.add(|| {
                    Diagnostic::at(definition.span, format!("imported C functions are not supported: `{}`", name.text))
                        .help("write the function in the language of the net")
                });
                // As if it had a body, so that its callers are checked and not reported.
                None
            }
        };
        let imported = matches!(definition.body, FunctionBody::Imported);
        let Some(id) = self.declare_function(definition, parameters.clone(), result, statement.is_some() || imported)
        else {
            return;
        };
        let Some(statement) = statement else { return };
        let mut seen = BTreeSet::new();
        for ((_, parameter), of) in definition.parameters.iter().zip(parameters) {
            if !seen.insert(parameter.text) {
                self.twice("parameter", *parameter);
            }
            let what = What::Variable(self.fresh(), Assign::Parameter);
            self.locals.push(LocalName { name: parameter.text, of, what });
        }
        let mut body = Vec::new();
        self.statement(statement, &Body { result }, &mut body);
        let function = &mut self.net.functions[id.0 as usize];
        function.body = body;
        function.frame = self.frame;
        function.span = definition.span;
    }

    /// The number of a function. `None` if it has been declared differently.
    fn declare_function(
        &mut self,
        definition: &FunctionDef<'t>,
        parameters: Vec<TypeId>,
        result: TypeId,
        has_body: bool,
    ) -> Option<FunctionId> {
        let name = definition.name;
        if let Some(known) = self.functions.get_mut(name.text) {
            if known.has_body && has_body {
                self.twice("function", name);
                return None;
            }
            if known.parameters != parameters || known.result != result {
                known.has_body = true;
                let message = format!("function `{}` was declared with other types", name.text);
                self.error(definition.span, message);
                return None;
            }
            known.has_body |= has_body;
            return Some(known.id);
        }
        let id = FunctionId(u32::try_from(self.net.functions.len()).unwrap_or(u32::MAX));
        let arguments = u32::try_from(parameters.len()).unwrap_or(u32::MAX);
        let span = definition.span;
        self.net.functions.push(Function {
            name: name.text.into(),
            arguments,
            frame: arguments,
            body: Vec::new(),
            span,
        });
        self.functions.insert(name.text, Signature { id, parameters, result, span, has_body });
        Some(id)
    }

    fn statement(&mut self, statement: &Statement<'t>, body: &Body, out: &mut Vec<Stat>) {
        match &statement.node {
            StatementNode::Assign(target, value) => {
                if let Some(assignment) = self.assignment(target, value) {
                    out.push(assignment);
                }
            }
            StatementNode::If(condition, then, otherwise) => {
                let condition = self.lower(condition, BOOL).expr;
                let then = self.nested(then, body);
                let otherwise = otherwise.as_ref().map_or_else(Vec::new, |otherwise| self.nested(otherwise, body));
                out.push(Stat::If(condition, then, otherwise));
            }
            StatementNode::Case { subject, arms, default } => self.case(subject, arms, default.as_deref(), body, out),
            StatementNode::While(condition, inner) => {
                let condition = self.lower(condition, BOOL).expr;
                let inner = self.nested(inner, body);
                out.push(Stat::While(condition, inner));
            }
            StatementNode::For(iterations, inner) => {
                let depth = self.locals.len();
                let lowered: Option<Vec<net::Iteration>> = self.all_iterations(iterations);
                let inner = self.nested(inner, body);
                self.locals.truncate(depth);
                if let Some(iterations) = lowered {
                    out.push(Stat::For(iterations, inner));
                }
            }
            StatementNode::Return(value) => out.push(Stat::Return(self.coerce(value, body.result))),
            StatementNode::Assert(value) => out.push(Stat::Assert(self.lower(value, BOOL).expr)),
            StatementNode::Print => self.findings.add(|| {
                Diagnostic::at(statement.span, "`print` is not supported")
                    .help("functions have no side effects; a transition's `description` shows values in traces")
            }),
            StatementNode::Block(locals, statements) => {
                let depth = self.locals.len();
                for local in locals {
                    let of = self.type_called(local.type_name).unwrap_or(INT);
                    let value = match &local.value {
                        Some(value) => self.coerce(value, of),
                        None if local.is_constant => {
                            self.error(local.name.span, format!("constant `{}` has no value", local.name.text));
                            continue;
                        }
                        None => {
                            let leaves = self.types.get(of).leaves;
                            if !self.expand(leaves, local.name.span) {
                                continue;
                            }
                            net::Expr::new(ExprKind::Const(self.types.default_value(of)), local.name.span)
                        }
                    };
                    if self.locals[depth..].iter().any(|other| other.name == local.name.text) {
                        self.twice("variable", local.name);
                    }
                    let var = self.fresh();
                    let assign = if local.is_constant { Assign::Constant } else { Assign::Free };
                    self.locals.push(LocalName { name: local.name.text, of, what: What::Variable(var, assign) });
                    out.push(Stat::Assign(var, value));
                }
                for statement in statements {
                    self.statement(statement, body, out);
                }
                self.locals.truncate(depth);
            }
        }
    }

    fn nested(&mut self, statement: &Statement<'t>, body: &Body) -> Vec<Stat> {
        let mut out = Vec::new();
        self.statement(statement, body, &mut out);
        out
    }

    /// All iterations, each in the scope of those before it. All are checked, even if one is wrong.
    pub(super) fn all_iterations(&mut self, iterations: &[Iteration<'t>]) -> Option<Vec<net::Iteration>> {
        let lowered: Vec<Option<net::Iteration>> =
            iterations.iter().map(|iteration| self.iteration(iteration)).collect();
        lowered.into_iter().collect()
    }

    fn case(
        &mut self,
        subject: &Expr<'t>,
        arms: &[(Expr<'t>, Statement<'t>)],
        default: Option<&Statement<'t>>,
        body: &Body,
        out: &mut Vec<Stat>,
    ) {
        let discrete = |class: &Class| matches!(class, Class::Range | Class::Mod(_) | Class::Enum);
        let Some((subject, root)) = self.lower_open(subject, "a value of a discrete type", discrete) else { return };
        let mut seen = BTreeSet::new();
        let mut lowered = Vec::new();
        for (label, statement) in arms {
            let value = self.static_of(label, root);
            let statements = self.nested(statement, body);
            let Some(value) = value else { continue };
            if !seen.insert(value) {
                self.error(label.span, "this case was listed before");
            }
            lowered.push((super::composite::small_int(value), statements));
        }
        let default = default.map_or_else(Vec::new, |default| self.nested(default, body));
        out.push(Stat::Case(subject.expr, lowered, default));
    }

    /// `v[i].f := e` assigns `v` a new value with one part replaced.
    fn assignment(&mut self, target: &Expr<'t>, value: &Expr<'t>) -> Option<Stat> {
        let mut parts = Vec::new();
        let mut inner = target;
        while let Node::Index(of, _) | Node::Field(of, _) = &inner.node {
            parts.push(inner);
            inner = of;
        }
        parts.reverse();
        let Node::Name(name) = inner.node else { return None };
        let Some((var, of)) = self.assignable(name, inner.span) else {
            // The value is checked all the same, for its own errors.
            let roots = self.roots(value);
            if let Some(root) = roots.one() {
                self.lower(value, root);
            }
            return None;
        };
        let variable = net::Expr::new(ExprKind::Var(var), inner.span);
        let value = self.part(variable, of, &parts, value)?;
        Some(Stat::Assign(var, value))
    }

    /// The value of `whole`, of type `of`, with the part at `path` replaced.
    fn part(&mut self, whole: net::Expr, of: TypeId, path: &[&Expr<'t>], value: &Expr<'t>) -> Option<net::Expr> {
        let Some((step, rest)) = path.split_first() else { return Some(self.coerce(value, of)) };
        let span = step.span;
        let class = self.types.class(of).clone();
        let (index, inner) = match &step.node {
            Node::Field(_, field) => match field_of(&class, field.text) {
                Some((position, inner)) => (net::Expr::int(i32::try_from(position).unwrap_or(0), field.span), inner),
                None => {
                    // The same finding as for reading the field.
                    self.lower_open(step, "a value", |_| true);
                    return None;
                }
            },
            Node::Index(_, index) => match indexed(&class, index.len()) {
                Some(inner) => (self.position(index, of, span), inner),
                None => {
                    self.lower_open(step, "a value", |_| true);
                    return None;
                }
            },
            _ => return None,
        };
        let value = self.part(element(whole.clone(), index.clone(), span), inner, rest, value)?;
        Some(replaced(whole, index, value, span))
    }

    fn assignable(&mut self, name: &'t str, span: Span) -> Option<(Var, TypeId)> {
        let what = match self.local(name) {
            Some(LocalName { of, what: What::Variable(var, Assign::Free), .. }) => return Some((var, of)),
            Some(LocalName { what: What::Variable(_, Assign::Parameter), .. }) => "a parameter of the function",
            Some(LocalName { what: What::Variable(_, Assign::Constant), .. }) => "a constant",
            Some(_) => "the variable of a `for`",
            None if self.constants.contains_key(name) => "a constant of the net",
            None => {
                let known: Vec<&str> = self.locals.iter().map(|local| local.name).collect();
                self.unknown("variable", name, span, &known);
                return None;
            }
        };
        self.findings.add(|| {
            Diagnostic::at(span, format!("`{name}` cannot be given a value: it is {what}"))
                .help("copy it to a variable of your own")
        });
        None
    }

    /// A constant's value, evaluated now if functions are called and all have their bodies.
    pub(super) fn evaluated(&mut self, value: net::Expr) -> net::Expr {
        if number(&value).is_some() || matches!(value.kind, ExprKind::Const(_)) || !self.findings.is_empty() {
            return value;
        }
        if fault_of(&value).is_some() || self.functions.values().any(|signature| !signature.has_body) {
            return value;
        }
        // A constant that is not evaluated now is evaluated where it is used.
        if self.evaluating > LONGEST_EVALUATION {
            return value;
        }
        let begin = Instant::now();
        let computed = crate::constant(&self.net.functions, &value);
        self.evaluating += begin.elapsed();
        match computed {
            Ok(constant) => net::Expr::new(ExprKind::Const(constant), value.span),
            Err(fault) => {
                self.findings.add(|| {
                    Diagnostic::at(
                        value.span,
                        format!("the value of this constant cannot be computed: {}", fault.kind.message()),
                    )
                });
                value
            }
        }
    }
}
