//! Places, and the labels of arcs.
//!
//! In: places and labels of the syntax tree. Out: places and labels of the net. What stays true: factors,
//! capacities and the ranges of `for` are static, given the parameters of this run; a label's tuples are as
//! long as the place's domain.

use super::check::{Assign, Checker, LocalName, What};
use super::composite::small_int;
use super::fold::number;
use super::lower::counted;
use super::roots::Over;
use super::syntax::{Expr, Iteration, Node, PlaceDef, Tuple};
use super::types::{BOOL, INT};
use crate::net::{self, Domain, ExprKind, Label, Place, PlaceId, Term, TypeId, Var};
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Span};
use std::collections::BTreeSet;

/// Roles of places, which are hints for Helena's reductions.
const ROLES: [&str; 6] = ["process", "local", "shared", "protected", "buffer", "ack"];

/// The maximum number of tuples that one `for` may expand to.
const MOST_TUPLES: i64 = 1 << 20;

/// The use of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabelUse {
    /// Tokens are produced: every component is checked.
    Makes,
    /// Tokens are matched: a variable alone is compared and not checked.
    Matches,
}

impl<'t> Checker<'t, '_> {
    pub(super) fn place(&mut self, definition: &PlaceDef<'t>) {
        let name = definition.name;
        let domain: Vec<Option<TypeId>> = definition.domain.iter().map(|name| self.type_called(*name)).collect();
        let capacity = match &definition.capacity {
            None => 1,
            Some(capacity) => {
                let value = self.static_number(capacity).unwrap_or(1);
                if value < 0 {
                    self.error(capacity.span, format!("a capacity is not negative; this is {value}"));
                }
                u32::try_from(value.max(0)).unwrap_or(u32::MAX)
            }
        };
        if let Some(role) = definition.role.filter(|role| !ROLES.contains(&role.text)) {
            self.findings.add(|| {
                let diagnostic = Diagnostic::at(role.span, format!("there is no role `{}` of a place", role.text));
                match did_you_mean(role.text, ROLES) {
                    Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
                    None => diagnostic.help(format!("the roles are {}", ROLES.join(", "))),
                }
            });
        }
        let id = PlaceId(u32::try_from(self.net.places.len()).unwrap_or(u32::MAX));
        let unknown = (0..domain.len()).filter(|&at| domain[at].is_none());
        self.guessed.extend(unknown.map(|at| (id, at)));
        self.net.places.push(Place {
            name: name.text.into(),
            domain: domain.into_iter().map(|of| of.unwrap_or(INT)).collect(),
            initial: Vec::new(),
            frame: 0,
            capacity: Some(capacity),
            span: name.span,
        });
        if let Some(initial) = &definition.initial {
            let label = self.label(initial, id, LabelUse::Makes, &BTreeSet::new());
            let place = &mut self.net.places[id.0 as usize];
            place.initial = label;
            place.frame = self.frame;
        }
        if self.places.insert(name.text, id).is_some() {
            self.twice("place", name);
        }
    }

    /// Lowers a label. A tuple with a `for` in which one of `loose` is a component by itself is expanded,
    /// tuple by tuple, because such a variable is bound by one of them.
    pub(super) fn label(
        &mut self,
        tuples: &[Tuple<'t>],
        place: PlaceId,
        side: LabelUse,
        loose: &BTreeSet<&'t str>,
    ) -> Label {
        let mut label = Vec::new();
        for tuple in tuples {
            let depth = self.locals.len();
            let is_loose = |part: &Expr<'t>| matches!(part.node, Node::Name(name) if loose.contains(name));
            let unrolls = tuple.condition.is_none()
                && tuple.components.as_ref().is_some_and(|components| components.iter().any(is_loose));
            if tuple.iterations.is_empty() || !unrolls {
                if let Some(iterations) = self.tuple_iterations(tuple) {
                    label.extend(self.term(tuple, iterations, place, side));
                }
            } else {
                self.unrolled(tuple, place, side, &mut label);
            }
            self.locals.truncate(depth);
        }
        label
    }

    fn tuple_iterations(&mut self, tuple: &Tuple<'t>) -> Option<Vec<net::Iteration>> {
        let ranges = self.static_ranges(tuple)?;
        self.few_enough(&ranges, tuple.span)?;
        let spans = tuple.iterations.iter().map(|iteration| iteration.domain.span);
        let lowered = ranges.iter().zip(spans).zip(&tuple.iterations).map(|((&(of, low, high), span), iteration)| {
            let variable = self.fresh();
            let what = What::Variable(variable, Assign::Iteration);
            self.locals.push(LocalName { name: iteration.name.text, of, what });
            let bound = |value: i64| net::Expr::int(small_int(value), span);
            net::Iteration { variable, domain: Domain::Range(bound(low), bound(high)) }
        });
        Some(lowered.collect())
    }

    fn few_enough(&mut self, ranges: &[(TypeId, i64, i64)], span: Span) -> Option<i64> {
        let count = ranges.iter().fold(1i64, |count, (_, low, high)| count.saturating_mul((high - low + 1).max(0)));
        if count > MOST_TUPLES {
            self.error(span, format!("this `for` stands for {count} tuples; the most is {MOST_TUPLES}"));
            return None;
        }
        Some(count)
    }

    /// The types and bounds of all iterations of a tuple.
    fn static_ranges(&mut self, tuple: &Tuple<'t>) -> Option<Vec<(TypeId, i64, i64)>> {
        let depth = self.locals.len();
        let mut ranges = Vec::new();
        for iteration in &tuple.iterations {
            let range = self.static_range(iteration);
            // The name is in scope further in, so that the diagnostic for a range that uses it is about the
            // range.
            if let Some((of, ..)) = range {
                let what = What::Variable(Var(0), Assign::Iteration);
                self.locals.push(LocalName { name: iteration.name.text, of, what });
            }
            ranges.push(range);
        }
        self.locals.truncate(depth);
        ranges.into_iter().collect()
    }

    /// The type and the bounds of an iteration of a label.
    fn static_range(&mut self, iteration: &Iteration<'t>) -> Option<(TypeId, i64, i64)> {
        let is_type = matches!(self.over(iteration), Some(Over::Type(_)));
        let before = self.findings.count();
        let (domain, of) = self.domain(iteration)?;
        if !is_type {
            let span = iteration.domain.span;
            self.findings.add(|| {
                Diagnostic::at(span, "a `for` in a label goes over a discrete type")
                    .help("compute a set in a `let`, or use one tuple for each value")
            });
            return None;
        }
        let Domain::Range(low, high) = domain else { return None };
        match (number(&low), number(&high)) {
            (Some(low), Some(high)) => Some((of, low, high)),
            _ => {
                let span = iteration.range.as_ref().map_or(iteration.domain.span, |range| range.span);
                if self.findings.count() == before {
                    self.findings.add(|| {
                        Diagnostic::at(span, "the range of a `for` in a label must be known before the net runs")
                            .help("go over the whole type, and leave out tuples by `if (…)`")
                    });
                }
                None
            }
        }
    }

    /// Expands a tuple for every combination of its iterations.
    fn unrolled(&mut self, tuple: &Tuple<'t>, place: PlaceId, side: LabelUse, label: &mut Label) {
        let Some(ranges) = self.static_ranges(tuple) else { return };
        let Some(count) = self.few_enough(&ranges, tuple.span) else { return };
        let size = tuple.components.as_ref().map_or(1, |components| {
            components.iter().map(|component| 1u64 << component.height.min(16)).sum::<u64>().max(1)
        });
        if count == 0 || !self.expand(size.saturating_mul(count.unsigned_abs()), tuple.span) {
            return;
        }
        let mut values: Vec<i64> = ranges.iter().map(|&(_, low, _)| low).collect();
        for _ in 0..count {
            let depth = self.locals.len();
            for ((&(of, _, _), iteration), &value) in ranges.iter().zip(&tuple.iterations).zip(&values) {
                self.locals.push(LocalName { name: iteration.name.text, of, what: What::Known(value) });
            }
            label.extend(self.term(tuple, Vec::new(), place, side));
            self.locals.truncate(depth);
            // The last iteration varies fastest.
            for (value, &(_, low, high)) in values.iter_mut().zip(&ranges).rev() {
                *value += 1;
                if *value <= high {
                    break;
                }
                *value = low;
            }
        }
    }

    fn term(
        &mut self,
        tuple: &Tuple<'t>,
        iterations: Vec<net::Iteration>,
        place: PlaceId,
        side: LabelUse,
    ) -> Option<Term> {
        let condition = tuple.condition.as_ref().map(|condition| self.lower(condition, BOOL).expr);
        let factor = match &tuple.factor {
            None => Some(1),
            Some(factor) => {
                let value = self.static_number(factor);
                if let Some(value) = value.filter(|value| *value < 0) {
                    self.error(factor.span, format!("a factor is not negative; this is {value}"));
                }
                value
            }
        };
        let domain = self.net.places[place.0 as usize].domain.clone();
        let token = match &tuple.components {
            None if domain.is_empty() => Some(Vec::new()),
            Some(components) if components.len() == domain.len() => {
                let parts = components.iter().zip(&domain).enumerate();
                let mut token = Vec::new();
                for (at, (part, &of)) in parts {
                    let before = self.guessing;
                    self.guessing |= self.guessed.contains(&(place, at));
                    token.push(self.component(part, of, side));
                    self.guessing = before;
                }
                Some(token)
            }
            found => {
                self.wrong_length(tuple.span, found.as_ref().map(Vec::len), place);
                None
            }
        };
        Some(Term { iterations, condition, factor: factor?, token: token?, spread: false, span: tuple.span })
    }

    fn component(&mut self, part: &Expr<'t>, of: TypeId, side: LabelUse) -> net::Expr {
        let lowered = self.lower(part, self.types.root(of));
        // A variable is bound by the token or compared with it: neither can be out of range.
        if side == LabelUse::Matches && matches!(lowered.expr.kind, ExprKind::Var(_)) {
            return lowered.expr;
        }
        self.checked(lowered, of, net::FaultKind::OutOfRange).expr
    }

    fn wrong_length(&mut self, span: Span, found: Option<usize>, place: PlaceId) {
        let known = &self.net.places[place.0 as usize];
        let names: Vec<&str> = known.domain.iter().map(|&of| self.types.name(of)).collect();
        let (message, help) = match (found, names.is_empty()) {
            (None, _) => (
                format!("`epsilon` is no token of `{}`", known.name),
                format!(
                    "its domain is {}: write `<( … )>` with {}",
                    names.join(" * "),
                    counted(names.len(), "component")
                ),
            ),
            (Some(_), true) => {
                (format!("tokens of `{}` have no components", known.name), "write `epsilon`".to_string())
            }
            (Some(found), false) => (
                format!("tokens of `{}` have {}, not {found}", known.name, counted(names.len(), "component")),
                format!("its domain is {}", names.join(" * ")),
            ),
        };
        // The domain shown would be a guess if a type is unknown.
        let known = (0..names.len()).all(|at| !self.guessed.contains(&(place, at)));
        self.findings.add(|| {
            let diagnostic = Diagnostic::at(span, message);
            if known { diagnostic.help(help) } else { diagnostic }
        });
    }
}
