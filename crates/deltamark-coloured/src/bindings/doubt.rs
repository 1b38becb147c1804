//! Whether a fault found early in a plan counts.
//!
//! In: a fault found after some steps of a plan, and a marking. Out: whether it is a fault of that marking.
//! What stays true: the answer does not depend on the order of the plan.
//!
//! A plan evaluates guards as early as it can, before it knows whether there are tokens for the remaining
//! inputs. A binding without its tokens is not evaluated, so a fault counts only if the marking has tokens
//! for all inputs. They are searched by following the rest of the plan, token by token:
//!
//! ```text
//! steps   bind a: <(x)>   test 1 / x > 0   bind b: <(y)>
//!                         ^ fails          ^ is there a token in b? If not, there is no fault
//! ```
//!
//! Whatever has no value because of the fault matches everything: a variable that a `let` failed to compute,
//! and whatever uses it. A guard that is false without the failed part rules the binding out as usual; a
//! guard that failed itself is not evaluated again.
//!
//! This is slow and rare: the faults of a net are found in few places.

use std::collections::BTreeSet;

use crate::bindings::bind::{claim, picked};
use crate::bindings::plan::{BindingPlan, ComponentMatch, FlatTerm, PlanStep, used, used_by_domain};
use crate::engine::{Counts, Engine};
use crate::expressions::eval::Eval;
use crate::net::{Domain, Expr, Fault};
use crate::tables::actions::Claim;
use crate::tables::values::Code;

/// The maximum number of steps of the search, after which the fault is reported in any case.
const MOST_STEPS: usize = 1 << 20;

/// A fault, and how far the plan had come.
pub(crate) struct Doubt {
    pub fault: Fault,
    /// The tokens claimed so far.
    pub claims: Box<[Claim]>,
    /// The step to continue with.
    step: u32,
    /// Whether it is a fault of the guard.
    of_guard: bool,
    frame: Box<[Code]>,
}

impl Doubt {
    /// A fault found with these values; the plan continues at `step`.
    pub fn new(fault: Fault, step: usize, frame: &[Code], claims: &[Claim]) -> Self {
        Doubt { fault, claims: claims.into(), step: step as u32, of_guard: false, frame: frame.into() }
    }

    /// The same, as a fault of the guard.
    pub fn of_guard(self) -> Self {
        Doubt { of_guard: true, ..self }
    }

    /// The bytes held.
    pub fn bytes(&self) -> usize {
        size_of::<Doubt>() + size_of_val(&*self.frame) + size_of_val(&*self.claims)
    }

    /// Whether it is a fault of this marking, which has the tokens claimed so far.
    pub fn counts(&self, engine: &Engine, transition: usize, markings: &[u32]) -> bool {
        let plan = &engine.plans[transition];
        let mut search = DoubtSearch { engine, plan, markings, left: MOST_STEPS };
        let binding = Binding {
            frame: self.frame.to_vec(),
            unknown: BTreeSet::new(),
            claims: self.claims.to_vec(),
            tests: !self.of_guard,
        };
        search.rest(self.step as usize, binding)
    }
}

/// A partial binding.
#[derive(Clone)]
struct Binding {
    frame: Vec<Code>,
    /// Variables that have no value.
    unknown: BTreeSet<u32>,
    claims: Vec<Claim>,
    /// Whether the guard still has to be tested.
    tests: bool,
}

impl Binding {
    fn knows(&self, expression: &Expr) -> bool {
        let mut variables = BTreeSet::new();
        used(expression, &mut variables);
        self.unknown.is_disjoint(&variables)
    }

    fn knows_domain(&self, domain: &Domain) -> bool {
        self.unknown.is_disjoint(&used_by_domain(domain))
    }
}

struct DoubtSearch<'a> {
    engine: &'a Engine,
    plan: &'a BindingPlan,
    markings: &'a [u32],
    left: usize,
}

impl DoubtSearch<'_> {
    /// The value of an expression, if it has one.
    fn value(&self, expression: &Expr, binding: &mut Binding) -> Option<Code> {
        if !binding.knows(expression) {
            return None;
        }
        Eval::new(&self.engine.net.functions, &self.engine.values, None).eval(expression, &mut binding.frame).ok()
    }

    /// Whether there are tokens for the steps from `step` on.
    fn rest(&mut self, step: usize, mut binding: Binding) -> bool {
        if self.left == 0 {
            return true;
        }
        self.left -= 1;
        let plan = self.plan;
        let Some(this) = plan.steps.get(step) else { return true };
        match this {
            PlanStep::Test(test) => {
                if binding.tests && binding.knows(test) {
                    match self.value(test, &mut binding) {
                        Some(0) => return false,
                        Some(_) => {}
                        None => binding.tests = false,
                    }
                }
                self.rest(step + 1, binding)
            }
            PlanStep::Let(var, value) => {
                match self.value(value, &mut binding) {
                    Some(value) => binding.frame[var.0 as usize] = value,
                    None => {
                        binding.unknown.insert(var.0);
                    }
                }
                self.rest(step + 1, binding)
            }
            PlanStep::Pick(var, domain) => {
                let mut eval = Eval::new(&self.engine.net.functions, &self.engine.values, None);
                let known = binding.knows_domain(domain);
                let values = known.then(|| picked(self.engine, &mut eval, domain, &mut binding.frame).ok()).flatten();
                let Some(values) = values else {
                    binding.unknown.insert(var.0);
                    return self.rest(step + 1, binding);
                };
                values.into_iter().any(|value| {
                    let mut next = binding.clone();
                    next.frame[var.0 as usize] = value;
                    self.rest(step + 1, next)
                })
            }
            PlanStep::Require(terms) => self.require(terms, &mut binding) && self.rest(step + 1, binding),
            PlanStep::Bind { place, factor, parts, given } => {
                for &(var, value) in given {
                    binding.frame[var.0 as usize] = value;
                }
                let table = &self.engine.places[place.0 as usize];
                table.tokens(self.markings[place.0 as usize]).any(|(token, count)| {
                    let mut next = binding.clone();
                    let components = || table.components(token);
                    take(&mut next.claims, place.0, token, *factor, count)
                        && self.bind(parts, components, &mut next)
                        && self.rest(step + 1, next)
                })
            }
        }
    }

    /// Binds variables by a token; returns whether it matches.
    fn bind<I: Iterator<Item = Code>>(
        &self,
        parts: &[ComponentMatch],
        token: impl Fn() -> I,
        binding: &mut Binding,
    ) -> bool {
        let mut wanted = Vec::new();
        for (part, code) in parts.iter().zip(token()) {
            match part {
                ComponentMatch::Bind(var) => binding.frame[var.0 as usize] = code,
                ComponentMatch::Parts(pattern) => {
                    let mut equal = Vec::new();
                    if !pattern.take(&self.engine.values, code, &mut binding.frame, &mut equal) {
                        return false;
                    }
                    wanted.append(&mut equal);
                }
                ComponentMatch::Back { variable, low, high, by } => {
                    let (low, high) = (Code::from(*low), Code::from(*high));
                    if !(low..=high).contains(&code) {
                        return false;
                    }
                    binding.frame[variable.0 as usize] =
                        low + (code - low - Code::from(*by)).rem_euclid(high - low + 1);
                }
                ComponentMatch::Key(_) | ComponentMatch::Match(_) => {}
            }
        }
        if !wanted.into_iter().all(|(value, code)| self.value(value, binding).is_none_or(|value| value == code)) {
            return false;
        }
        parts.iter().zip(token()).all(|(part, code)| match part {
            ComponentMatch::Bind(_) | ComponentMatch::Back { .. } | ComponentMatch::Parts(_) => true,
            ComponentMatch::Key(value) | ComponentMatch::Match(value) => {
                self.value(value, binding).is_none_or(|value| value == code)
            }
        })
    }

    /// Claims the tokens of terms whose variables are bound; returns whether they are present.
    fn require(&self, terms: &[FlatTerm], binding: &mut Binding) -> bool {
        let mut counts = Counts::new();
        for term in terms {
            for &(var, value) in &term.given {
                binding.frame[var.0 as usize] = value;
            }
            // If it is unknown whether the term counts, it requires nothing.
            if let Some(None | Some(0)) = term.condition.as_ref().map(|condition| self.value(condition, binding)) {
                continue;
            }
            let values: Vec<Option<Code>> = term.token.iter().map(|part| self.value(part, binding)).collect();
            if values.iter().all(Option::is_some) {
                // Numbers beyond 32 bits are in no token.
                if self.engine.count(term, &mut binding.frame, &mut counts, None).is_err() {
                    return false;
                }
            } else if term.factor >= 0 && !term.spread && !self.any(term, &values, &binding.claims) {
                return false;
            }
        }
        let subtracts = terms.iter().any(|term| term.factor < 0);
        counts.iter().filter(|&(_, &count)| count > 0 || count == 0 && !subtracts).all(|(&(place, token), &count)| {
            let there = self.engine.places[place as usize].count(self.markings[place as usize], token);
            take(&mut binding.claims, place, token, u32::try_from(count).unwrap_or(u32::MAX), there)
        })
    }

    /// Whether any token has the known values, beyond those already claimed.
    fn any(&self, term: &FlatTerm, values: &[Option<Code>], claims: &[Claim]) -> bool {
        let place = term.place.0 as usize;
        let table = &self.engine.places[place];
        table.tokens(self.markings[place]).any(|(token, count)| {
            let fits = |(value, code): (&Option<Code>, Code)| value.is_none_or(|value| value == code);
            let claimed = claims.iter().find(|claim| (claim.0, claim.1) == (term.place.0, token));
            let claimed = claimed.map_or(0, |claim| i64::from(claim.2));
            i64::from(count) >= (claimed + term.factor).max(1) && values.iter().zip(table.components(token)).all(fits)
        })
    }
}

/// Claims a token that is present this many times; returns whether there are enough.
fn take(claims: &mut Vec<Claim>, place: u32, token: u32, factor: u32, there: u32) -> bool {
    claim(claims, place, token, factor);
    let known = claims.iter().find(|known| (known.0, known.1) == (place, token));
    known.is_some_and(|&(_, _, count)| count.max(1) <= there)
}
