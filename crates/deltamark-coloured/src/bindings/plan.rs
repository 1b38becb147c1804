//! The order in which a transition's variables are bound.
//!
//! In: a transition. Out: a [`BindingPlan`]: steps that bind, test and require, in an order computed once. What
//! stays true: whatever a step uses has been bound before it.
//!
//! # The order
//! Repeatedly the first possible one of these is done: a conjunct of the guard whose variables are bound; a
//! term whose variables are all bound (its token is known and only has to be looked up); the best term that
//! binds something; a pick; a let; a variable that nothing binds and whose type can be enumerated. Of the
//! terms that bind, the best is the one that makes most other terms known; ties go to one with known
//! components, because matching tokens can be looked up by them.
//!
//! A conjunct that may fault is not moved before an earlier conjunct, nor is another moved before it: `x != 0
//! and 10 / x > 2 and y > 0` stays in order. [`faults`](crate::expressions::faults) decides what may fault.

use std::collections::{BTreeMap, BTreeSet};

use deltamark_core::{Control, Diagnostic, Span};

use crate::expressions::eval::Eval;
use crate::expressions::faults::Faults;
use crate::net::{
    Arc, Binary, Domain, Expr, ExprKind, Fault, Function, Label, Net, PlaceId, Role, Transition, ValueShape, Var,
};
use crate::tables::values::{Code, Values};

/// The maximum number of terms of a net's labels after expanding iterations.
pub(crate) const MOST_TERMS: usize = 200_000;

/// The maximum number of iterations of one term: they are expanded recursively.
const MOST_ITERATIONS: usize = 256;
/// The maximum number of picks of a transition: bindings are found by recursion over them.
const MOST_PICKS: usize = 256;
/// The maximum number of terms of a transition's inhibitors, and of variables local to them: both are matched
/// recursively.
const MOST_INHIBITORS: usize = 1024;

/// A term whose iterations have been expanded.
#[derive(Clone, Debug)]
pub(crate) struct FlatTerm {
    pub place: PlaceId,
    /// The values of its iteration variables.
    pub given: Vec<(Var, Code)>,
    pub condition: Option<Expr>,
    pub factor: i64,
    pub token: Vec<Expr>,
    /// Whether the component is a list of tokens.
    pub spread: bool,
    pub span: Span,
}

/// How a component of a binding term is matched with that of a token.
#[derive(Clone, Debug)]
pub(crate) enum ComponentMatch {
    /// Gives its value to a variable.
    Bind(Var),
    /// Binds a variable to the value from which `by` steps in a cycle lead to the component.
    Back { variable: Var, low: i32, high: i32, by: i32 },
    /// Must equal a value that is known beforehand: tokens are looked up by it.
    Key(Expr),
    /// Must equal a value that is known once the others are bound.
    Match(Expr),
    /// Is taken apart.
    Parts(Pattern),
}

/// How a value is taken apart.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    /// Gives its value to a variable.
    Bind(Var),
    /// Must equal a value that is known once the others are bound.
    Equal(Expr),
    /// A sequence of exactly these elements.
    Row(Vec<Pattern>),
    /// A list of a first element and the others.
    Cons(Box<Pattern>, Box<Pattern>),
}

impl Pattern {
    /// Binds the variables of the pattern; appends what must be equal. Returns whether the value has the form.
    pub fn take<'p>(
        &'p self,
        values: &Values,
        code: Code,
        frame: &mut [Code],
        equal: &mut Vec<(&'p Expr, Code)>,
    ) -> bool {
        match self {
            Pattern::Bind(var) => frame[var.0 as usize] = code,
            Pattern::Equal(expression) => equal.push((expression, code)),
            _ if !Values::is_sequence(code) => return false,
            Pattern::Row(parts) => {
                return values.len(code) == parts.len()
                    && parts
                        .iter()
                        .zip(values.elements(code))
                        .all(|(part, code)| part.take(values, code, frame, equal));
            }
            Pattern::Cons(head, tail) => {
                let elements: Vec<Code> = values.elements(code).collect();
                let Some((&first, rest)) = elements.split_first() else { return false };
                return head.take(values, first, frame, equal)
                    && tail.take(values, values.sequence(rest), frame, equal);
            }
        }
        true
    }
}

/// The parts of an expression that builds a value, if it can be taken apart: rows, lists, and lists with a first element.
fn parts_of(expression: &Expr) -> Option<(bool, Vec<&Expr>)> {
    match &expression.kind {
        ExprKind::Row(parts) | ExprKind::List(parts, _) => Some((false, parts.iter().collect())),
        ExprKind::Concat(head, tail, _) => match &head.kind {
            ExprKind::List(one, _) if one.len() == 1 => Some((true, vec![&one[0], tail])),
            _ => None,
        },
        _ => None,
    }
}

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum PlanStep {
    /// Tries the matching tokens of a place.
    Bind { place: PlaceId, factor: u32, parts: Vec<ComponentMatch>, given: Vec<(Var, Code)> },
    /// Requires the tokens of a label, all of whose variables are bound.
    Require(Vec<FlatTerm>),
    /// Tries all values of a domain.
    Pick(Var, Domain),
    /// Computes a variable.
    Let(Var, Expr),
    /// Goes on only if this is true.
    Test(Expr),
}

/// How the bindings of a transition are found, and its effect.
#[derive(Debug)]
pub(crate) struct BindingPlan {
    pub steps: Vec<PlanStep>,
    /// The number of variables.
    pub frame: usize,
    /// The variables that make up a binding.
    pub binding: Vec<Var>,
    pub outputs: Vec<FlatTerm>,
    pub inhibitors: Vec<FlatTerm>,
    /// Whether inhibitors have variables of their own.
    pub existential: bool,
    /// A guard that reads the marking, tested in each state.
    pub late_guard: Option<Expr>,
    pub priority: Option<Expr>,
    /// Whether the priority reads the marking.
    pub late_priority: bool,
    /// The number of terms of its labels.
    pub terms: usize,
    /// The places whose markings determine which bindings are enabled, ascending.
    pub reads: Vec<u32>,
    /// Places that must not be empty for any binding to be enabled or a fault, ascending.
    pub needs: Vec<u32>,
}

/// Whether an expression reads the marking.
pub(crate) fn looks(expression: &Expr) -> bool {
    let mut found = false;
    expression.visit(&mut |part| {
        found |= match &part.kind {
            ExprKind::Component { .. } | ExprKind::Distinct(_) | ExprKind::Total(_) => true,
            ExprKind::Fold { iterations, .. } => {
                iterations.iter().any(|iteration| matches!(iteration.domain, Domain::Place(_)))
            }
            _ => false,
        };
    });
    found
}

/// The free variables of an expression.
pub(crate) fn used(expression: &Expr, into: &mut BTreeSet<u32>) {
    let mut own = BTreeSet::new();
    let mut all = BTreeSet::new();
    expression.visit(&mut |part| match &part.kind {
        ExprKind::Var(var) => {
            all.insert(var.0);
        }
        ExprKind::Component { token, .. } => {
            all.insert(token.0);
        }
        ExprKind::Fold { iterations, .. } => own.extend(iterations.iter().map(|iteration| iteration.variable.0)),
        _ => {}
    });
    into.extend(all.difference(&own));
}

pub(crate) fn used_by_domain(domain: &Domain) -> BTreeSet<u32> {
    let mut into = BTreeSet::new();
    match domain {
        Domain::Range(low, high) => {
            used(low, &mut into);
            used(high, &mut into);
        }
        Domain::Elements(of) => used(of, &mut into),
        Domain::Place(_) => {}
    }
    into
}

impl FlatTerm {
    fn used(&self) -> BTreeSet<u32> {
        let mut into = BTreeSet::new();
        self.condition.iter().chain(&self.token).for_each(|expression| used(expression, &mut into));
        self.given.iter().for_each(|(var, _)| {
            into.remove(&var.0);
        });
        into
    }
}

/// The diagnostic of a net that cannot be run.
fn diagnose(fault: &Fault) -> Diagnostic {
    Diagnostic::at(fault.span, fault.kind.message())
}

/// Expands the iterations of a label.
pub(crate) fn flatten(
    functions: &[Function],
    values: &Values,
    place: PlaceId,
    label: &Label,
    frame: usize,
    control: &Control,
    out: &mut Vec<FlatTerm>,
) -> Result<(), Diagnostic> {
    for term in label {
        if term.iterations.len() > MOST_ITERATIONS {
            let message =
                format!("this goes over {} variables at once; the most is {MOST_ITERATIONS}", term.iterations.len());
            return Err(Diagnostic::at(term.span, message));
        }
        let mut frame = vec![0; frame];
        let mut given = Vec::new();
        flatten_from(functions, values, place, term, 0, &mut frame, &mut given, control, out)?;
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn flatten_from(
    functions: &[Function],
    values: &Values,
    place: PlaceId,
    term: &crate::net::Term,
    depth: usize,
    frame: &mut Vec<Code>,
    given: &mut Vec<(Var, Code)>,
    control: &Control,
    out: &mut Vec<FlatTerm>,
) -> Result<(), Diagnostic> {
    control.ask()?;
    let mut eval = Eval::new(functions, values, None);
    let Some(iteration) = term.iterations.get(depth) else {
        let mut condition = term.condition.clone();
        if let Some(known) = &condition {
            let mut variables = BTreeSet::new();
            used(known, &mut variables);
            if variables.iter().all(|var| given.iter().any(|(known, _)| known.0 == *var)) {
                match eval.truth(known, frame) {
                    Ok(false) => return Ok(()),
                    Ok(true) => condition = None,
                    // Reported when it occurs.
                    Err(_) => {}
                }
            }
        }
        if out.len() >= MOST_TERMS {
            let message = format!("the label comes to more than {MOST_TERMS} terms");
            return Err(Diagnostic::at(term.span, message));
        }
        out.push(FlatTerm {
            place,
            given: given.clone(),
            condition,
            factor: term.factor,
            token: term.token.clone(),
            spread: term.spread,
            span: term.span,
        });
        return Ok(());
    };
    let domain: Box<dyn Iterator<Item = Code>> = match &iteration.domain {
        Domain::Range(low, high) => {
            let low = eval.eval(low, frame).map_err(|fault| diagnose(&fault))?;
            let high = eval.eval(high, frame).map_err(|fault| diagnose(&fault))?;
            Box::new(low..=high)
        }
        Domain::Elements(of) => {
            let container = eval.eval(of, frame).map_err(|fault| diagnose(&fault))?;
            Box::new(values.elements(container).collect::<Vec<_>>().into_iter())
        }
        Domain::Place(_) => return Err(Diagnostic::at(term.span, "a label cannot look at the marking")),
    };
    let mut passes = 0;
    for value in domain {
        passes += 1;
        if passes > 4 * MOST_TERMS {
            return Err(Diagnostic::at(term.span, "the label iterates over too many values"));
        }
        frame[iteration.variable.0 as usize] = value;
        given.push((iteration.variable, value));
        flatten_from(functions, values, place, term, depth + 1, frame, given, control, out)?;
        given.pop();
    }
    Ok(())
}

/// The conjuncts of a guard, left to right.
fn conjuncts<'a>(guard: &'a Expr, out: &mut Vec<&'a Expr>) {
    match &guard.kind {
        ExprKind::Binary(Binary::And, one, other) => {
            conjuncts(one, out);
            conjuncts(other, out);
        }
        _ => out.push(guard),
    }
}

/// Above this number of terms the first that binds something is taken: comparing all would take too long.
const MOST_WEIGHED: usize = 256;

/// A term not yet in the plan.
struct Pending {
    term: FlatTerm,
    used: BTreeSet<u32>,
}

impl BindingPlan {
    /// Plans a transition, unless `control` stops it.
    pub fn new(
        net: &Net,
        values: &Values,
        transition: &Transition,
        control: &Control,
    ) -> Result<BindingPlan, Diagnostic> {
        let frame = transition.frame as usize;
        let flat = |arcs: &[Arc]| -> Result<Vec<Vec<FlatTerm>>, Diagnostic> {
            let label = |arc: &Arc| {
                let mut terms = Vec::new();
                flatten(&net.functions, values, arc.place, &arc.label, frame, control, &mut terms)?;
                Ok(terms)
            };
            arcs.iter().map(label).collect()
        };
        let inputs = flat(&transition.inputs)?;
        let outputs: Vec<FlatTerm> = flat(&transition.outputs)?.into_iter().flatten().collect();
        let inhibitors: Vec<FlatTerm> = flat(&transition.inhibitors)?.into_iter().flatten().collect();
        let inhibitors = crate::engine::givers_first(inhibitors, transition);
        let total = inputs.iter().map(Vec::len).sum::<usize>() + outputs.len() + inhibitors.len();
        if total > MOST_TERMS {
            let message = format!("the labels of transition `{}` come to {total} terms", transition.name);
            return Err(Diagnostic::at(transition.span, message));
        }
        let many = |what: &str, count: usize, most: usize| {
            let message = format!("transition `{}` has {count} {what}; the most is {most}", transition.name);
            if count > most { Err(Diagnostic::at(transition.span, message)) } else { Ok(()) }
        };
        let with_role = |is: fn(&Role) -> bool| transition.variables.iter().filter(|known| is(&known.role)).count();
        many("picks", with_role(|role| matches!(role, Role::Pick(_))), MOST_PICKS)?;
        many("terms of inhibitors", inhibitors.len(), MOST_INHIBITORS)?;
        let own = with_role(|role| matches!(role, Role::Inhibitor));
        many("variables that only inhibitors know", own, MOST_INHIBITORS)?;
        few_tokens(net, transition, inputs.iter().flatten())?;
        few_tokens(net, transition, &outputs)?;
        let late_guard = transition.guard.clone().filter(looks);
        let mut planner = Planner {
            net,
            transition,
            bound: BTreeSet::new(),
            steps: Vec::new(),
            tests: Vec::new(),
            terms: Vec::new(),
            whole: Vec::new(),
        };
        if let Some(guard) = transition.guard.as_ref().filter(|guard| !looks(guard)) {
            conjuncts(guard, &mut planner.tests);
        }
        for label in &inputs {
            // Subtraction needs all variables of the label.
            if label.iter().any(|term| term.factor < 0) {
                let all = label.iter().flat_map(FlatTerm::used).collect();
                planner.whole.push((label.clone(), all));
            } else {
                let pending = |term: &FlatTerm| Pending { used: term.used(), term: term.clone() };
                planner.terms.extend(label.iter().map(pending));
            }
        }
        planner.run()?;
        let Planner { steps, bound, .. } = planner;
        let known = |variables: &BTreeSet<u32>| variables.is_subset(&bound);
        let existential = inhibitors.iter().any(|term| !known(&term.used()));
        let outside = outputs.iter().find(|term| !known(&term.used()));
        if let Some(term) = outside {
            return Err(Diagnostic::at(term.span, "this uses a variable that has no value"));
        }
        let binding = |variable: &crate::net::Variable| matches!(variable.role, Role::Bound | Role::Pick(_));
        let binding = (0..).zip(&transition.variables).filter(|(_, variable)| binding(variable));
        Ok(BindingPlan {
            frame,
            binding: binding.map(|(number, _)| Var(number)).collect(),
            outputs,
            inhibitors,
            existential,
            late_guard,
            terms: total,
            reads: reads(transition),
            needs: needs(&steps),
            late_priority: transition.priority.as_ref().is_some_and(looks),
            priority: transition.priority.clone(),
            steps,
        })
    }
}

/// The maximum number of tokens of one place in the labels on one side of a transition: gains have 32 bits.
const MOST_TOKENS: u64 = i32::MAX as u64;

/// Refuses labels with more tokens of a place than can be counted, whatever their colours. Below a smaller
/// capacity they are harmless: such inputs are never present, and such outputs exceed the capacity.
fn few_tokens<'t>(
    net: &Net,
    transition: &Transition,
    terms: impl IntoIterator<Item = &'t FlatTerm>,
) -> Result<(), Diagnostic> {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for term in terms {
        let place = &net.places[term.place.0 as usize];
        if place.capacity.is_some_and(|capacity| u64::from(capacity) <= MOST_TOKENS) {
            continue;
        }
        let sum = sums.entry(term.place.0).or_default();
        *sum = sum.saturating_add(term.factor.unsigned_abs());
        if *sum > MOST_TOKENS {
            let message = format!(
                "the labels of transition `{}` at place `{}` come to more than {MOST_TOKENS} tokens",
                transition.name, place.name
            );
            return Err(Diagnostic::at(term.span, message).help("divide all factors at this place by a common number"));
        }
    }
    Ok(())
}

/// The places that determine which bindings of a transition are enabled.
fn reads(transition: &Transition) -> Vec<u32> {
    let arcs = transition.inputs.iter().chain(&transition.inhibitors);
    let mut places: BTreeSet<u32> = arcs.map(|arc| arc.place.0).collect();
    if let Some(guard) = &transition.guard {
        guard.visit(&mut |part| match &part.kind {
            ExprKind::Component { place, .. } | ExprKind::Distinct(place) | ExprKind::Total(place) => {
                places.insert(place.0);
            }
            ExprKind::Fold { iterations, .. } => places.extend(iterations.iter().filter_map(|one| match one.domain {
                Domain::Place(place) => Some(place.0),
                _ => None,
            })),
            _ => {}
        });
    }
    places.into_iter().collect()
}

/// The places that must not be empty for a binding to be enabled or a fault.
fn needs(steps: &[PlanStep]) -> Vec<u32> {
    let mut places = BTreeSet::new();
    for step in steps {
        match step {
            PlanStep::Bind { place, .. } => {
                places.insert(place.0);
            }
            PlanStep::Require(terms) if terms.iter().all(|term| term.factor >= 0) => {
                let certain = |term: &&FlatTerm| term.condition.is_none() && !term.spread;
                places.extend(terms.iter().filter(certain).map(|term| term.place.0));
            }
            PlanStep::Require(_) | PlanStep::Test(_) | PlanStep::Let(..) | PlanStep::Pick(..) => {}
        }
    }
    places.into_iter().collect()
}

struct Planner<'a> {
    net: &'a Net,
    transition: &'a Transition,
    bound: BTreeSet<u32>,
    steps: Vec<PlanStep>,
    tests: Vec<&'a Expr>,
    terms: Vec<Pending>,
    /// Labels that are required as a whole.
    whole: Vec<(Vec<FlatTerm>, BTreeSet<u32>)>,
}

impl Planner<'_> {
    fn run(&mut self) -> Result<(), Diagnostic> {
        let wanted: BTreeSet<u32> = (0..)
            .zip(&self.transition.variables)
            .filter(|(_, variable)| !matches!(variable.role, Role::Inhibitor))
            .map(|(number, _)| number)
            .collect();
        loop {
            self.test();
            self.require();
            if self.bind() || self.pick() || self.compute() || self.enumerate()? {
                continue;
            }
            break;
        }
        let done = self.tests.is_empty() && self.terms.is_empty() && self.whole.is_empty();
        if !done || !wanted.is_subset(&self.bound) {
            let missing = wanted.difference(&self.bound).next();
            let name = missing.map(|&number| self.transition.variables[number as usize].name.as_str());
            let message = format!("transition `{}` cannot be evaluated", self.transition.name);
            let help = match name {
                Some(name) => format!("no input, pick or let that comes first gives a value to `{name}`"),
                None => "a guard or an input uses a variable that has no value".into(),
            };
            return Err(Diagnostic::at(self.transition.span, message).help(help));
        }
        Ok(())
    }

    /// Adds conjuncts of the guard whose variables are bound.
    fn test(&mut self) {
        let (mut earlier_waits, mut faulty_waits) = (false, false);
        let faults = Faults { types: &self.net.types, variables: &self.transition.variables };
        let bound = &self.bound;
        let steps = &mut self.steps;
        self.tests.retain(|test| {
            let mut variables = BTreeSet::new();
            used(test, &mut variables);
            let faulty = faults.possible(test);
            let ready = variables.is_subset(bound) && !faulty_waits && !(earlier_waits && faulty);
            if ready {
                steps.push(PlanStep::Test((*test).clone()));
            } else {
                earlier_waits = true;
                faulty_waits |= faulty;
            }
            !ready
        });
    }

    /// Adds terms and labels whose variables are all bound.
    fn require(&mut self) {
        let (ready, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.terms).into_iter().partition(|pending| pending.used.is_subset(&self.bound));
        self.terms = waiting;
        // One step for each place, so that an empty place ends the search early.
        if !ready.is_empty() {
            self.steps.push(PlanStep::Require(ready.into_iter().map(|pending| pending.term).collect()));
        }
        let bound = &self.bound;
        let steps = &mut self.steps;
        self.whole.retain(|(label, variables)| {
            let ready = variables.is_subset(bound);
            if ready {
                steps.push(PlanStep::Require(label.clone()));
            }
            !ready
        });
    }

    /// Whether a term may bind a variable: picks and lets have other sources.
    fn bindable(&self, term: &FlatTerm, var: Var) -> bool {
        let role = self.transition.variables.get(var.0 as usize).map(|variable| &variable.role);
        matches!(role, Some(Role::Bound))
            && !self.bound.contains(&var.0)
            && term.given.iter().all(|(known, _)| *known != var)
    }

    /// The variables a term would bind, if it can: plain variables, or with `back` also those one step of a
    /// cycle away.
    fn binds(&self, pending: &Pending, back: bool) -> Option<BTreeSet<u32>> {
        let term = &pending.term;
        if term.condition.is_some() || term.factor < 0 || term.spread {
            return None;
        }
        let mut new = BTreeSet::new();
        let mut components: Vec<&Expr> = term.token.iter().collect();
        while let Some(component) = components.pop() {
            if let Some((_, parts)) = parts_of(component) {
                components.extend(parts);
                continue;
            }
            match &component.kind {
                ExprKind::Var(var) if self.bindable(term, *var) => {
                    new.insert(var.0);
                }
                ExprKind::Cycle { of, .. } if back => {
                    if let ExprKind::Var(var) = &of.kind
                        && self.bindable(term, *var)
                    {
                        new.insert(var.0);
                    }
                }
                _ => {}
            }
        }
        // All other components must be known then.
        let known = |var: &u32| self.bound.contains(var) || new.contains(var);
        (!new.is_empty() && pending.used.iter().all(known)).then_some(new)
    }

    fn bind(&mut self) -> bool {
        [false, true].into_iter().any(|back| self.bind_best(back))
    }

    fn bind_best(&mut self, back: bool) -> bool {
        let many = self.terms.len() > MOST_WEIGHED;
        let score = |pending: &Pending| {
            let new = self.binds(pending, back)?;
            if many {
                return Some((0, 0, 0));
            }
            let known = |var: &u32| self.bound.contains(var) || new.contains(var);
            let after = self.terms.iter().filter(|other| other.used.iter().all(known)).count();
            let keys = pending.term.token.len().saturating_sub(new.len());
            Some((after, usize::from(keys > 0), keys))
        };
        let mut best = None;
        for (number, pending) in self.terms.iter().enumerate() {
            if let Some(score) = score(pending)
                && best.as_ref().is_none_or(|(known, _)| score > *known)
            {
                best = Some((score, number));
                if many {
                    break;
                }
            }
        }
        let Some((_, number)) = best else { return false };
        let term = self.terms.remove(number).term;
        let mut new = BTreeSet::new();
        let mut parts: Vec<ComponentMatch> = Vec::new();
        let given = |var: &Var| term.given.iter().any(|(known, _)| known == var);
        for component in &term.token {
            let fresh = |var: &Var, new: &BTreeSet<u32>| self.bindable(&term, *var) && !new.contains(&var.0);
            let part = match &component.kind {
                ExprKind::Var(var) if fresh(var, &new) => {
                    new.insert(var.0);
                    ComponentMatch::Bind(*var)
                }
                _ if parts_of(component).is_some() => {
                    ComponentMatch::Parts(self.take_apart(&term, component, &mut new))
                }
                _ => ComponentMatch::Match(component.clone()),
            };
            parts.push(part);
        }
        for (part, component) in parts.iter_mut().zip(&term.token) {
            let fresh = |var: &Var, new: &BTreeSet<u32>| self.bindable(&term, *var) && !new.contains(&var.0);
            if let (ComponentMatch::Match(_), true, ExprKind::Cycle { of, low, high, by }) =
                (&*part, back, &component.kind)
                && let ExprKind::Var(var) = &of.kind
                && fresh(var, &new)
            {
                new.insert(var.0);
                *part = ComponentMatch::Back { variable: *var, low: *low, high: *high, by: *by };
            }
        }
        for part in &mut parts {
            if let ComponentMatch::Match(expression) = part {
                let mut variables = BTreeSet::new();
                used(expression, &mut variables);
                let known = |var: &u32| self.bound.contains(var) || given(&Var(*var));
                if variables.iter().all(known) {
                    *part = ComponentMatch::Key(expression.clone());
                }
            }
        }
        self.bound.extend(new);
        self.steps.push(PlanStep::Bind { place: term.place, factor: term.factor as u32, parts, given: term.given });
        true
    }

    /// How a component is taken apart, `new` being the variables bound before.
    fn take_apart(&self, term: &FlatTerm, component: &Expr, new: &mut BTreeSet<u32>) -> Pattern {
        match (&component.kind, parts_of(component)) {
            (ExprKind::Var(var), _) if self.bindable(term, *var) && new.insert(var.0) => Pattern::Bind(*var),
            (_, Some((cons, parts))) => {
                let mut parts = parts.into_iter().map(|part| self.take_apart(term, part, new)).collect::<Vec<_>>();
                match (cons, parts.pop()) {
                    (true, Some(tail)) => {
                        let head = parts.pop().unwrap_or(Pattern::Row(Vec::new()));
                        Pattern::Cons(Box::new(head), Box::new(tail))
                    }
                    (_, last) => {
                        parts.extend(last);
                        Pattern::Row(parts)
                    }
                }
            }
            _ => Pattern::Equal(component.clone()),
        }
    }

    fn pick(&mut self) -> bool {
        for (number, variable) in (0..).zip(&self.transition.variables) {
            if let Role::Pick(domain) = &variable.role
                && !self.bound.contains(&number)
                && used_by_domain(domain).is_subset(&self.bound)
            {
                self.bound.insert(number);
                self.steps.push(PlanStep::Pick(Var(number), domain.clone()));
                return true;
            }
        }
        false
    }

    fn compute(&mut self) -> bool {
        for (number, variable) in (0..).zip(&self.transition.variables) {
            if let Role::Let(value) = &variable.role
                && !self.bound.contains(&number)
            {
                let mut variables = BTreeSet::new();
                used(value, &mut variables);
                if variables.is_subset(&self.bound) {
                    self.bound.insert(number);
                    self.steps.push(PlanStep::Let(Var(number), value.clone()));
                    return true;
                }
            }
        }
        false
    }

    /// Enumerates the values of a variable that nothing binds.
    fn enumerate(&mut self) -> Result<bool, Diagnostic> {
        for (number, variable) in (0..).zip(&self.transition.variables) {
            if matches!(variable.role, Role::Bound) && !self.bound.contains(&number) {
                let ValueShape::Discrete { low, high, .. } = self.net.types[variable.of.0 as usize].shape else {
                    let message =
                        format!("variable `{}` of transition `{}` has no value", variable.name, self.transition.name);
                    return Err(Diagnostic::at(self.transition.span, message));
                };
                let span = self.transition.span;
                self.bound.insert(number);
                let domain = Domain::Range(Expr::int(low, span), Expr::int(high, span));
                self.steps.push(PlanStep::Pick(Var(number), domain));
                return Ok(true);
            }
        }
        Ok(false)
    }
}
