//! A formula of LTL answered while states are found, without the graph.
//!
//! In: a system and a formula. Out: the product of the system and an automaton for the negation of the formula
//! ([`Fly`]), and what a path of the product says of the system. What stays true: the formula is violated if and only if
//! some path of the product is accepted; every path that is shown is one of the system below, replayed there, and the
//! formula was evaluated on its states by definition.
//!
//! ```text
//! formula ─letters─▶ negation ─▶ Automaton ─┬─ product   a Layer ─▶ any store, any search
//!                                           └─ needs_cycles: whether faults of the product decide alone
//! ```
//!
//! # When a plain search decides
//! If all accepting cycles of the automaton are in states that accept everything ([`Automaton::is_terminal`]), a path is accepted if and
//! only if it comes to such a state, which is a fault of the product. So a search for faults decides, breadth-first or
//! depth-first, with one thread or many, over any store; a lossy one answers "no violation found". An automaton that
//! accepts nothing needs no search, but for atoms without a value.

pub(crate) mod fairness;
mod letters;
pub(crate) mod product;

use super::answer::refutes;
use super::atoms::Atom;
use super::{Question, Questions};
use crate::check::CheckError;
use deltamark_core::{Batch, Control, Observable, Slot, Stop, System, Trace, Verdict, Widen};
use deltamark_dve::DveSystem;
use deltamark_logic::automaton::{Automaton, NoAutomaton};
use deltamark_nets::NetSystem;
use fairness::{Fair, Grouping};
use letters::Letters;
use product::{ACCEPTED, Product};
use std::collections::HashMap;
use std::sync::Arc;

/// A formula to be answered on the fly.
pub(crate) struct Fly<'s> {
    pub product: Product<'s>,
    /// Whether an accepted path may have to be found by its cycle.
    pub needs_cycles: bool,
    /// Which paths count.
    pub fairness: Option<Grouping<'s>>,
    system: &'s dyn System,
    questions: Arc<Questions>,
    index: usize,
}

/// The most steps by which a path that decides is extended to a lasso.
const EXTENSION: usize = 1 << 14;

/// Whether some atom of a formula may have no value in some state, as far as is known beforehand.
pub(crate) fn may_lack_values(
    questions: &Questions,
    atoms: &[usize],
    system: &dyn System,
    control: &Control,
) -> Result<bool, Stop> {
    let any = system.as_any();
    // Their numbers have 32 bits, and every one has a value.
    let simple = any.is_some_and(|any| any.is::<NetSystem>() || any.is::<DveSystem>());
    let facts = if simple { None } else { system.facts(control)? };
    let undefined = |observable: Observable| match &facts {
        _ if simple => false,
        Some(facts) => facts.may_be_undefined(observable),
        None => true,
    };
    let may_fail = |&atom: &usize| match &questions.atoms.list[atom] {
        Atom::Expression(compiled) => compiled.may_fail(simple, &undefined),
        Atom::Predicate { may_fail, .. } => *may_fail,
        Atom::AtMost(..) | Atom::Fireable(_) | Atom::Deadlock => false,
    };
    Ok(atoms.iter().any(may_fail))
}

impl<'s> Fly<'s> {
    /// The product for a question, which is one of LTL; or why there is none.
    pub fn new(
        system: &'s dyn System,
        questions: &Arc<Questions>,
        index: usize,
        fair: Option<Fair>,
        control: &Control,
    ) -> Result<Result<Self, Stop>, CheckError> {
        let fairness = fair.map(|fair| Grouping::new(system, fair)).transpose()?;
        Ok(Self::product(system, questions, index, fairness, control))
    }

    fn product(
        system: &'s dyn System,
        questions: &Arc<Questions>,
        index: usize,
        fairness: Option<Grouping<'s>>,
        control: &Control,
    ) -> Result<Self, Stop> {
        let question = &questions.list[index];
        let (letters, automaton) = match &question.automaton {
            Some(known) => (Letters::of_atoms(questions, question.root), Automaton::clone(known)),
            None => {
                let (letters, mut pool, negation) = Letters::of_negation(questions, question.root);
                let automaton = Automaton::new(&mut pool, negation, letters.list.len() as u32, control);
                let automaton = automaton.map_err(|error| match error {
                    NoAutomaton::Stopped(stop) => stop,
                    NoAutomaton::TooLarge => Stop::Count,
                })?;
                (letters, automaton)
            }
        };
        let covers = may_lack_values(questions, &letters.atoms, system, control)?;
        let needs_cycles = !automaton.is_terminal();
        let product = Product::new(system, questions, letters, &automaton, covers);
        Ok(Fly { product, needs_cycles, fairness, system, questions: Arc::clone(questions), index })
    }

    /// The question.
    pub fn question(&self) -> &Question {
        &self.questions.list[self.index]
    }

    /// The path below of a path of the product. Where the last state repeats the path ends.
    pub fn below(&self, trace: &Trace) -> Trace {
        let initial = self.product.initial_below(trace.initial);
        let mut actions = Vec::with_capacity(trace.len());
        for &action in &trace.actions {
            match self.product.below(action) {
                Some(below) => actions.push(below),
                None => return Trace::path(initial, actions),
            }
        }
        Trace { initial, actions, ending: trace.ending }
    }

    /// What a fault of the product says of the formula.
    pub fn faulty(
        &self,
        trace: Option<&Trace>,
        message: Option<String>,
        control: &Control,
    ) -> Result<(Verdict, Option<Stop>), CheckError> {
        let below = trace.map(|trace| self.below(trace));
        if message.as_deref() != Some(ACCEPTED) {
            return Ok((Verdict::Violated(below, message), None));
        }
        let Some(below) = below else { return Ok((Verdict::Violated(None, None), None)) };
        // Some continuation is fair, and this one need not be.
        let whole = if self.fairness.is_some() { Ok(None) } else { self.extended(&below, control)? };
        match whole {
            Ok(Some(whole)) => self.refuted(whole, control),
            // Any continuation serves; one in which the last state repeats shows the formula's value.
            Ok(None) => match refutes(&self.questions, self.question(), &below, true, self.system, control)? {
                Ok(true) => Ok((Verdict::Violated(Some(below), message), None)),
                Ok(false) => self.contradicted(),
                Err(stop) => Ok((Verdict::Violated(None, None), Some(stop))),
            },
            Err(stop) => Ok((Verdict::Violated(None, None), Some(stop))),
        }
    }

    /// The verdict that a path or lasso of the system shows, which is evaluated on it by definition.
    pub fn refuted(&self, trace: Trace, control: &Control) -> Result<(Verdict, Option<Stop>), CheckError> {
        match refutes(&self.questions, self.question(), &trace, false, self.system, control)? {
            Ok(true) => {
                if let Some(fairness) = &self.fairness {
                    match fairness.is_fair(&trace, self.system, control)? {
                        Ok(fair) => assert!(fair, "the path of `{}` is fair", self.question().name),
                        Err(stop) => return Ok((Verdict::Violated(None, None), Some(stop))),
                    }
                }
                let message = trace.cycle().is_none();
                let message = message.then(|| "no step is possible here, so the last state repeats for ever".into());
                Ok((Verdict::Violated(Some(trace), message), None))
            }
            Ok(false) => self.contradicted(),
            Err(stop) => Ok((Verdict::Violated(None, None), Some(stop))),
        }
    }

    fn contradicted(&self) -> ! {
        let name = &self.question().name;
        panic!("the path of `{name}` was found by an automaton for its negation, and does not satisfy it")
    }

    /// A path continued until it ends or closes; `None` if neither comes soon.
    fn extended(&self, path: &Trace, control: &Control) -> Result<Result<Option<Trace>, Stop>, CheckError> {
        loop {
            match self.attempt(path, control) {
                Ok(result) => return result,
                Err(Widen) => drop(self.system.widen()),
            }
        }
    }

    fn attempt(
        &self,
        path: &Trace,
        control: &Control,
    ) -> Result<Result<Result<Option<Trace>, Stop>, CheckError>, Widen> {
        let mut states: Vec<Vec<Slot>> = Vec::new();
        let followed = path.follow(self.system, |number, state| {
            states.truncate(number);
            states.push(state.to_vec());
            control.ask()
        });
        match followed {
            Ok(Ok(_)) => {}
            Ok(Err(stop)) => return Ok(Ok(Err(stop))),
            Err(error) => return Ok(Err(CheckError::Replay { property: self.question().name.clone(), error })),
        }
        let mut places: HashMap<Vec<Slot>, usize> = HashMap::new();
        for (place, state) in states.iter().enumerate() {
            places.insert(state.clone(), place);
        }
        let Some(mut state) = states.pop() else { unreachable!("a replay has an initial state") };
        let (mut scratch, mut batch) = (self.system.scratch(), Batch::new(self.system.width()).under(control));
        let mut actions = path.actions.clone();
        for _ in 0..EXTENSION {
            batch.reset(self.system.width());
            self.system.successors(&mut scratch, &state, &mut batch)?;
            if let Some(stop) = batch.stop() {
                return Ok(Ok(Err(stop)));
            }
            if batch.cut_off_sources() != 0 {
                break;
            }
            if batch.is_empty() {
                return Ok(Ok(Ok(Some(Trace::path(path.initial, actions)))));
            }
            let closing = (0..batch.len()).find_map(|index| Some((index, *places.get(batch.target(index))?)));
            actions.push(batch.action(closing.map_or(0, |found| found.0)));
            if let Some((_, place)) = closing {
                return Ok(Ok(Ok(Some(Trace::lasso(path.initial, actions, place)))));
            }
            state = batch.target(0).to_vec();
            places.insert(state.clone(), actions.len());
        }
        Ok(Ok(Ok(None)))
    }
}
