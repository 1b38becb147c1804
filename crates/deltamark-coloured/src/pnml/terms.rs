//! Terms of a symmetric net: multisets on arcs and in markings, conditions on transitions.
//!
//! In: elements such as `numberof`, `tuple`, `all`, `equality`. Out: labels and expressions. What stays true:
//! a label has as many components as its place, and no more terms than a limit.

use std::collections::{HashMap, HashSet};

use deltamark_core::Findings;
use deltamark_core::{Diagnostic, Span};
use deltamark_nets::pnml::{elements, name_of};
use deltamark_nets::xml;
use roxmltree::Node;

use super::sorts::{Declarations, unknown};
use crate::net::{
    Binary, Domain, Expr, ExprKind, FaultKind, Iteration, Label, Term, TypeId, Unary, Value, ValueShape, Var,
};

/// The maximum number of terms of a label.
const MOST_TERMS: usize = 100_000;

/// Elements that are truth values.
const CONDITIONS: [&str; 17] = [
    "and",
    "or",
    "not",
    "imply",
    "booleanconstant",
    "equality",
    "inequality",
    "lessthan",
    "lt",
    "ltp",
    "lessthanorequal",
    "leq",
    "greaterthan",
    "gt",
    "gtp",
    "greaterthanorequal",
    "geq",
];

/// A term under construction: factor, iterations, and typed components.
#[derive(Clone)]
struct PartialTerm {
    factor: i64,
    iterations: Vec<Iteration>,
    components: Vec<(Expr, TypeId)>,
}

/// Reads the terms of one frame: a transition, or an initial marking.
pub(super) struct Terms<'a, 'd> {
    text: &'a str,
    declarations: &'d Declarations<'a>,
    /// Names and types of variables, which are the first of the frame.
    pub variables: Vec<(String, TypeId)>,
    numbers: HashMap<&'a str, Vec<Var>>,
    /// Undeclared variables that have been reported.
    unknown: HashSet<&'a str>,
    /// The length of the frame so far.
    pub frame: u32,
}

impl<'a, 'd> Terms<'a, 'd> {
    /// An empty frame.
    pub fn new(text: &'a str, declarations: &'d Declarations<'a>) -> Self {
        let (numbers, unknown) = Default::default();
        Terms { text, declarations, variables: Vec::new(), numbers, unknown, frame: 0 }
    }

    fn span(&self, node: Node<'a, 'a>) -> Span {
        xml::tag_span(self.text, node.range().start)
    }

    /// Numbers all variables in a term. Must be called for all terms before the first is read.
    pub fn declare_variables(&mut self, term: Node<'a, 'a>, findings: &mut Findings) {
        for node in term.descendants().filter(|&node| name_of(node) == "variable") {
            let Some(id) = node.attribute("refvariable") else { continue };
            if self.numbers.contains_key(id) {
                continue;
            }
            let Some((name, row)) = self.declarations.variables.get(id) else {
                if !self.unknown.insert(id) {
                    continue;
                }
                let span = self.span(node);
                findings.add(|| unknown(span, "variable", id, self.declarations.variables.keys().copied()));
                continue;
            };
            let first = self.variables.len() as u32;
            for (position, &of) in row.iter().enumerate() {
                let name = if row.len() == 1 { name.clone() } else { format!("{name}.{}", position + 1) };
                self.variables.push((name, of));
            }
            self.frame = self.variables.len() as u32;
            self.numbers.insert(id, (first..self.frame).map(Var).collect());
        }
    }

    /// One black token.
    pub fn dot(&self, span: Span) -> Label {
        vec![Term { iterations: Vec::new(), condition: None, factor: 1, token: Vec::new(), spread: false, span }]
    }

    /// The label that a multiset term denotes, with tokens of this domain.
    pub fn label(&mut self, node: Node<'a, 'a>, domain: &[TypeId], findings: &mut Findings) -> Label {
        let span = self.span(node);
        let Ok(parts) = self.multiset(node, 0, findings) else { return Vec::new() };
        let mut label = Vec::new();
        for part in parts {
            let types: Vec<TypeId> = part.components.iter().map(|&(_, of)| of).collect();
            if !self.fits(&types, domain) {
                findings.add(|| {
                    let message = "the tokens of this term are not those of the place";
                    let (here, there) = (self.declarations.shown(&types), self.declarations.shown(domain));
                    Diagnostic::at(span, message).label(format!("of sort {here}, and the place has sort {there}"))
                });
                return Vec::new();
            }
            // A range may be used where another is expected, as long as the values are in it.
            let token = part.components.into_iter().zip(domain).map(|((expression, of), &wanted)| {
                if of == wanted { expression } else { self.checked(expression, wanted) }
            });
            let token = token.collect();
            label.push(Term {
                iterations: part.iterations,
                condition: None,
                factor: part.factor,
                token,
                spread: false,
                span,
            });
        }
        label
    }

    fn fits(&self, types: &[TypeId], domain: &[TypeId]) -> bool {
        let plain = |of: TypeId| {
            matches!(self.declarations.types[of.0 as usize].shape, ValueShape::Discrete { names: None, .. })
        };
        types.len() == domain.len()
            && types.iter().zip(domain).all(|(&one, &other)| one == other || plain(one) && plain(other))
    }

    fn checked(&self, of: Expr, wanted: TypeId) -> Expr {
        let ValueShape::Discrete { low, high, .. } = self.declarations.types[wanted.0 as usize].shape else {
            return of;
        };
        let span = of.span;
        Expr::new(ExprKind::Check { of: Box::new(of), low, high, fault: FaultKind::OutOfRange }, span)
    }

    fn wrong<T>(&self, node: Node<'a, 'a>, message: impl Into<String>, findings: &mut Findings) -> Result<T, ()> {
        let span = self.span(node);
        findings.add(|| Diagnostic::at(span, message));
        Err(())
    }

    /// The operands of an element: the contents of its `subterm`s. Anything else in it would be lost.
    fn operands(&self, node: Node<'a, 'a>, findings: &mut Findings) -> Result<Vec<Node<'a, 'a>>, ()> {
        let mut operands = Vec::new();
        for child in elements(node) {
            if name_of(child) != "subterm" {
                let span = self.span(child);
                let message = format!("`{}` stands directly in `{}`", name_of(child), name_of(node));
                findings.add(|| Diagnostic::at(span, message).help("operands stand in `<subterm>`, one in each"));
                return Err(());
            }
            let inside: Vec<Node<'a, 'a>> = elements(child).collect();
            let &[operand] = inside.as_slice() else {
                return self.wrong(child, format!("a `subterm` holds one term, not {}", inside.len()), findings);
            };
            operands.push(operand);
        }
        Ok(operands)
    }

    fn multiset(&mut self, node: Node<'a, 'a>, depth: usize, findings: &mut Findings) -> Result<Vec<PartialTerm>, ()> {
        if depth > 200 {
            return self.wrong(node, "terms are nested too deeply", findings);
        }
        match name_of(node) {
            "add" => {
                let mut sum = Vec::new();
                for operand in self.operands(node, findings)? {
                    sum.extend(self.multiset(operand, depth + 1, findings)?);
                    self.limit(node, sum.len(), findings)?;
                }
                Ok(sum)
            }
            "subtract" => {
                let mut sum = Vec::new();
                for (position, operand) in self.operands(node, findings)?.into_iter().enumerate() {
                    let sign = if position == 0 { 1 } else { -1 };
                    let parts = self.multiset(operand, depth + 1, findings)?;
                    sum.extend(parts.into_iter().map(|part| PartialTerm { factor: sign * part.factor, ..part }));
                    self.limit(node, sum.len(), findings)?;
                }
                Ok(sum)
            }
            "numberof" | "scalarproduct" => {
                let operands = self.operands(node, findings)?;
                let &[number, of] = operands.as_slice() else {
                    return match operands.as_slice() {
                        [of] => self.multiset(*of, depth + 1, findings),
                        _ => self.wrong(node, "a number and a term are expected here", findings),
                    };
                };
                let factor = self.number(number, findings)?;
                let mut parts = self.multiset(of, depth + 1, findings)?;
                for part in &mut parts {
                    match part.factor.checked_mul(factor).filter(|factor| factor.abs() <= i64::from(i32::MAX)) {
                        Some(factor) => part.factor = factor,
                        None => return self.wrong(node, "this is more than 2147483647 tokens", findings),
                    }
                }
                parts.retain(|part| part.factor != 0);
                Ok(parts)
            }
            "tuple" => {
                let mut product = vec![PartialTerm { factor: 1, iterations: Vec::new(), components: Vec::new() }];
                for operand in self.operands(node, findings)? {
                    let parts = self.multiset(operand, depth + 1, findings)?;
                    self.limit(node, product.len().saturating_mul(parts.len()), findings)?;
                    product = product
                        .iter()
                        .flat_map(|known| {
                            parts.iter().map(move |part| {
                                let mut joined = known.clone();
                                joined.factor *= part.factor;
                                joined.iterations.extend(part.iterations.iter().cloned());
                                joined.components.extend(part.components.iter().cloned());
                                joined
                            })
                        })
                        .collect();
                    if product.iter().any(|part| part.factor.abs() > i64::from(i32::MAX)) {
                        return self.wrong(node, "this is more than 2147483647 tokens", findings);
                    }
                }
                Ok(product)
            }
            "empty" => Ok(Vec::new()),
            "all" => self.all(node, findings),
            _ => {
                let components = self.components(node, depth, findings)?;
                Ok(vec![PartialTerm { factor: 1, iterations: Vec::new(), components }])
            }
        }
    }

    fn limit(&self, node: Node<'a, 'a>, terms: usize, findings: &mut Findings) -> Result<(), ()> {
        if terms <= MOST_TERMS {
            Ok(())
        } else {
            self.wrong(node, format!("this comes to more than {MOST_TERMS} terms"), findings)
        }
    }

    fn number(&self, node: Node<'a, 'a>, findings: &mut Findings) -> Result<i64, ()> {
        let value = node.attribute("value").and_then(|value| value.trim().parse::<i64>().ok());
        match value.filter(|_| name_of(node) == "numberconstant") {
            Some(number) if (0..=i64::from(i32::MAX)).contains(&number) => Ok(number),
            _ => self.wrong(node, "a number from 0 to 2147483647 is expected here", findings),
        }
    }

    fn boolean(&self, node: Node<'a, 'a>, findings: &mut Findings) -> Result<bool, ()> {
        match node.attribute("value").map(str::trim) {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            _ => self.wrong(node, "this `booleanconstant` has neither the value `true` nor `false`", findings),
        }
    }

    /// Every value of a sort, once.
    fn all(&mut self, node: Node<'a, 'a>, findings: &mut Findings) -> Result<Vec<PartialTerm>, ()> {
        let span = self.span(node);
        let sort = elements(node).next();
        // Only named sorts and `dot` occur here; others have no name to agree with.
        let row = match sort.map(|sort| (name_of(sort), sort.attribute("declaration"))) {
            Some(("dot", _)) => Vec::new(),
            Some(("usersort", Some(id))) => match self.declarations.row_of(id) {
                Some(row) => row,
                None => {
                    let span = self.span(node);
                    findings.add(|| unknown(span, "sort", id, self.declarations.sort_ids()));
                    return Err(());
                }
            },
            _ => return self.wrong(node, "`all` needs a sort with a name", findings),
        };
        let mut part = PartialTerm { factor: 1, iterations: Vec::new(), components: Vec::new() };
        for of in row {
            let ValueShape::Discrete { low, high, .. } = self.declarations.types[of.0 as usize].shape else { continue };
            let variable = Var(self.frame);
            self.frame += 1;
            let domain = Domain::Range(Expr::int(low, span), Expr::int(high, span));
            part.iterations.push(Iteration { variable, domain });
            part.components.push((Expr::new(ExprKind::Var(variable), span), of));
        }
        Ok(vec![part])
    }

    /// A term that denotes one value.
    fn components(
        &mut self,
        node: Node<'a, 'a>,
        depth: usize,
        findings: &mut Findings,
    ) -> Result<Vec<(Expr, TypeId)>, ()> {
        let span = self.span(node);
        if depth > 200 {
            return self.wrong(node, "terms are nested too deeply", findings);
        }
        match name_of(node) {
            "dotconstant" => Ok(Vec::new()),
            "variable" => {
                let id = node.attribute("refvariable").unwrap_or_default();
                let Some(numbers) = self.numbers.get(id) else {
                    return match self.unknown.contains(id) {
                        true => Err(()),
                        false => self.wrong(node, "an initial marking has no variables", findings),
                    };
                };
                let typed = |&var: &Var| (Expr::new(ExprKind::Var(var), span), self.variables[var.0 as usize].1);
                Ok(numbers.iter().map(typed).collect())
            }
            "useroperator" | "feconstant" => {
                let id = node.attribute("declaration").or_else(|| node.attribute("id")).unwrap_or_default();
                match self.declarations.constants.get(id) {
                    Some(&(of, value)) => Ok(vec![(Expr::int(value, span), of)]),
                    None => {
                        findings.add(|| unknown(span, "constant", id, self.declarations.constants.keys().copied()));
                        Err(())
                    }
                }
            }
            "finiteintrangeconstant" => {
                let range = elements(node).find(|&child| name_of(child) == "finiteintrange");
                let bound = |name: &str| range.and_then(|range| range.attribute(name)?.trim().parse::<i32>().ok());
                let value = node.attribute("value").and_then(|value| value.trim().parse::<i32>().ok());
                let (Some(value), Some(low), Some(high)) = (value, bound("start"), bound("end")) else {
                    return self.wrong(node, "a value and a range are expected here", findings);
                };
                let same = |known: &crate::net::Type| known.shape == ValueShape::Discrete { low, high, names: None };
                match self.declarations.types.iter().position(same) {
                    Some(of) if (low..=high).contains(&value) => Ok(vec![(Expr::int(value, span), TypeId(of as u32))]),
                    Some(_) => self.wrong(node, "the value is outside its range", findings),
                    None => self.wrong(node, "no sort has this range", findings),
                }
            }
            "booleanconstant" => match self.declarations.boolean {
                Some(of) => {
                    let value = self.boolean(node, findings)?;
                    Ok(vec![(Expr::int(i32::from(value), span), of)])
                }
                None => self.wrong(node, "no sort of truth values is declared", findings),
            },
            "successor" | "predecessor" => {
                let by = if name_of(node) == "successor" { 1 } else { -1 };
                let &[operand] = self.operands(node, findings)?.as_slice() else {
                    return self.wrong(node, "one term is expected here", findings);
                };
                let of = self.components(operand, depth + 1, findings)?;
                let around = |(of, sort): (Expr, TypeId)| match self.declarations.types[sort.0 as usize].shape {
                    ValueShape::Discrete { low, high, .. } => {
                        (Expr::new(ExprKind::Cycle { of: Box::new(of), low, high, by }, span), sort)
                    }
                    _ => (of, sort),
                };
                Ok(of.into_iter().map(around).collect())
            }
            "tuple" => {
                let mut row = Vec::new();
                for operand in self.operands(node, findings)? {
                    row.extend(self.components(operand, depth + 1, findings)?);
                }
                Ok(row)
            }
            "partitionelementof" => {
                let id = node.attribute("refpartition").unwrap_or_default();
                let Some(partition) = self.declarations.partitions.get(id) else {
                    findings.add(|| unknown(span, "partition", id, self.declarations.partitions.keys().copied()));
                    return Err(());
                };
                let &[operand] = self.operands(node, findings)?.as_slice() else {
                    return self.wrong(node, "one term is expected here", findings);
                };
                let value = self.components(operand, depth + 1, findings)?;
                let Ok([(value, sort)]) = <[_; 1]>::try_from(value) else {
                    return self.wrong(node, "a single value is expected here", findings);
                };
                let ValueShape::Discrete { low, .. } = self.declarations.types[partition.of.0 as usize].shape else {
                    return Err(());
                };
                if sort != partition.of && !self.fits(&[sort], &[partition.of]) {
                    let (here, there) = (self.declarations.shown(&[sort]), self.declarations.shown(&[partition.of]));
                    let message = format!("`{id}` is a partition of another sort");
                    let label = format!("of sort {here}, and the partition is of {there}");
                    findings.add(|| Diagnostic::at(span, message).label(label));
                    return Err(());
                }
                let parts = partition.parts.iter().map(|&part| Value::Int(part)).collect();
                let table = Expr::new(ExprKind::Const(Value::Seq(parts)), span);
                let index = binary(Binary::Sub, value, Expr::int(low, span), span);
                let kind = ExprKind::Item { of: Box::new(table), index: Box::new(index), fault: FaultKind::Index };
                Ok(vec![(Expr::new(kind, span), partition.own)])
            }
            other => self.wrong(node, format!("a `{other}` is not supported here"), findings),
        }
    }

    /// A condition.
    pub fn truth(&mut self, node: Node<'a, 'a>, findings: &mut Findings) -> Option<Expr> {
        self.condition(node, 0, findings).ok()
    }

    fn condition(&mut self, node: Node<'a, 'a>, depth: usize, findings: &mut Findings) -> Result<Expr, ()> {
        let span = self.span(node);
        if depth > 200 {
            return self.wrong(node, "conditions are nested too deeply", findings);
        }
        // A truth value in a token.
        if name_of(node) == "variable" {
            let row = self.components(node, depth, findings)?;
            return match <[_; 1]>::try_from(row) {
                Ok([(value, of)]) if Some(of) == self.declarations.boolean => Ok(value),
                _ => self.wrong(node, "this variable is no truth value, and a condition is expected here", findings),
            };
        }
        if !CONDITIONS.contains(&name_of(node)) {
            return self.wrong(node, format!("a condition is expected here, not a `{}`", name_of(node)), findings);
        }
        let operands = self.operands(node, findings)?;
        let op = match name_of(node) {
            "and" | "or" if operands.is_empty() => {
                return self.wrong(node, "conditions are expected here", findings);
            }
            "and" | "or" => {
                let op = if name_of(node) == "and" { Binary::And } else { Binary::Or };
                let mut result = None;
                for operand in operands {
                    let part = self.condition(operand, depth + 1, findings)?;
                    result = Some(match result {
                        None => part,
                        Some(known) => binary(op, known, part, span),
                    });
                }
                return Ok(result.unwrap_or_else(|| Expr::int(i32::from(op == Binary::And), span)));
            }
            "not" => {
                let &[operand] = operands.as_slice() else {
                    return self.wrong(node, "one condition is expected here", findings);
                };
                let of = self.condition(operand, depth + 1, findings)?;
                return Ok(Expr::new(ExprKind::Unary(Unary::Not, Box::new(of)), span));
            }
            "imply" => {
                let &[one, other] = operands.as_slice() else {
                    return self.wrong(node, "two conditions are expected here", findings);
                };
                let one = self.condition(one, depth + 1, findings)?;
                let other = self.condition(other, depth + 1, findings)?;
                return Ok(binary(
                    Binary::Or,
                    Expr::new(ExprKind::Unary(Unary::Not, Box::new(one)), span),
                    other,
                    span,
                ));
            }
            "booleanconstant" => {
                let value = self.boolean(node, findings)?;
                return Ok(Expr::int(i32::from(value), span));
            }
            "equality" => Binary::Eq,
            "inequality" => Binary::Ne,
            "lessthan" | "lt" | "ltp" => Binary::Lt,
            "lessthanorequal" | "leq" => Binary::Le,
            "greaterthan" | "gt" | "gtp" => Binary::Gt,
            _ => Binary::Ge,
        };
        let &[one, other] = operands.as_slice() else {
            return self.wrong(node, "two terms are expected here", findings);
        };
        // Computed truth values.
        if [one, other].iter().any(|&operand| CONDITIONS.contains(&name_of(operand)))
            && matches!(op, Binary::Eq | Binary::Ne)
        {
            let one = self.condition(one, depth + 1, findings)?;
            let other = self.condition(other, depth + 1, findings)?;
            return Ok(binary(op, one, other, span));
        }
        let (one, other) = (self.components(one, depth + 1, findings)?, self.components(other, depth + 1, findings)?);
        let types = |row: &[(Expr, TypeId)]| row.iter().map(|&(_, of)| of).collect::<Vec<_>>();
        if !self.fits(&types(&one), &types(&other)) {
            return self.wrong(node, "values of different sorts are compared", findings);
        }
        let ordered = !matches!(op, Binary::Eq | Binary::Ne);
        if ordered && one.len() != 1 {
            return self.wrong(node, "only single values have an order", findings);
        }
        let pairs = one.into_iter().zip(other).map(|((one, _), (other, _))| binary(op, one, other, span));
        let join = if op == Binary::Ne { Binary::Or } else { Binary::And };
        Ok(pairs
            .reduce(|one, other| binary(join, one, other, span))
            .unwrap_or_else(|| Expr::int(i32::from(op == Binary::Eq), span)))
    }
}

fn binary(op: Binary, one: Expr, other: Expr, span: Span) -> Expr {
    Expr::new(ExprKind::Binary(op, Box::new(one), Box::new(other)), span)
}
