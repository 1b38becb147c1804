//! What is asked of a run.
//!
//! In: properties, as values or as text. Out: a [`Check`] that asks them. What stays true: text is read against the
//! names of the model before anything is explored, and questions keep the order in which they were asked.

use super::{Check, CheckError};
use crate::ends::FinalStates;
use crate::load::Source;
use crate::temporal::atoms::Atom;
use crate::temporal::contest;
use deltamark_core::{Control, Diagnostic, Observe, Property, System};
use deltamark_logic::Asked;
use deltamark_logic::temporal::{FormulaId, Logic, Pool, Temporal};

impl Check<'_> {
    /// Asks for this property too.
    pub fn property(mut self, property: Property) -> Self {
        self.properties.push(property);
        self
    }

    /// Reads texts of properties as far as `control` lets it: where it does not, they are answered by
    /// [`CheckError::Stopped`].
    pub fn reading_under(mut self, control: &Control) -> Self {
        self.reading = control.clone();
        self
    }

    /// How many properties were asked for so far.
    pub fn property_count(&self) -> usize {
        self.properties.len() + self.formulas.1.len()
    }

    /// Asks whether every reachable state has a successor.
    pub fn deadlock_free(self) -> Self {
        self.property(Property::deadlock_free())
    }

    /// Asks whether an expression is true in every reachable state.
    pub fn invariant(self, text: &str) -> Result<Self, CheckError> {
        self.expression("--invariant", text, |observe| deltamark_logic::invariant(None, text, observe))
    }

    /// Asks whether an expression is true in every reachable state, and calls that by a name.
    pub fn named_invariant(self, name: &str, text: &str) -> Result<Self, CheckError> {
        self.expression(name, text, |observe| deltamark_logic::invariant(Some(name.into()), text, observe))
    }

    /// Asks whether an expression is true in some reachable state.
    pub fn reachable(self, text: &str) -> Result<Self, CheckError> {
        self.expression("--reach", text, |observe| deltamark_logic::reachable(None, text, observe))
    }

    /// Asks whether a formula of LTL is true on all paths.
    pub fn ltl(self, text: &str) -> Result<Self, CheckError> {
        self.formula(Logic::Ltl, "--ltl", text)
    }

    /// Asks whether a formula of CTL, or of CTL*, is true in all initial states.
    pub fn ctl(self, text: &str) -> Result<Self, CheckError> {
        self.formula(Logic::Ctl, "--ctl", text)
    }

    /// Asks whether a formula of LTL is true on all paths, and calls that by a name.
    pub fn named_ltl(self, name: &str, text: &str) -> Result<Self, CheckError> {
        let formula = self.read(name, text, |observe| Temporal::new(Logic::Ltl, text, observe))?;
        Ok(self.temporal(name, name.into(), formula))
    }

    /// Asks whether a path formula is true on all paths.
    pub(crate) fn path_formula(
        mut self,
        name: String,
        text: String,
        formula: (&Pool, FormulaId),
        atoms: Vec<Atom>,
    ) -> Self {
        let place = self.property_count();
        self.formulas.0.add_path(name, text, formula, atoms);
        self.formulas.1.push(place);
        self
    }

    fn formula(self, logic: Logic, name: &str, text: &str) -> Result<Self, CheckError> {
        let formula = self.read(name, text, |observe| Temporal::new(logic, text, observe))?;
        Ok(self.temporal(name, formula.text.clone(), formula))
    }

    /// Asks for a formula; `origin` is how errors call where it comes from.
    fn temporal(mut self, origin: &str, name: String, formula: Temporal) -> Self {
        let place = self.property_count();
        self.written.push((self.formulas.0.list.len(), origin.into()));
        self.formulas.0.add(name, formula);
        self.formulas.1.push(place);
        self
    }

    /// Asks all formulas of a file of the Model Checking Contest; `name` is how errors call it.
    pub fn contest_properties(mut self, name: &str, text: &str) -> Result<Self, CheckError> {
        let (before, place) = (self.formulas.0.list.len(), self.property_count());
        let (questions, control) = (&mut self.formulas.0, &self.reading);
        let bounds = parsed(name, text, self.system, |observe| contest::read(text, observe, questions, control))
            .map_err(stopped_reading)?;
        if let Some(bound) = bounds.first() {
            return Err(CheckError::Misfit {
                message: format!("`{}` asks for a number, and not whether something is true", bound.name),
                help: "`deltamark mcc MODEL UpperBounds` answers such a file".into(),
            });
        }
        let more = self.formulas.0.list.len() - before;
        self.formulas.1.extend(place..place + more);
        Ok(self)
    }

    /// Says that a run may end where this expression is true: a deadlock there does not violate deadlock freedom. Several say so each. The
    /// model's own [final markings](crate::ModelInfo::final_markings) count too.
    pub fn ends_in(mut self, text: &str) -> Result<Self, CheckError> {
        let predicate = Box::new(self.read("--final", text, |observe| deltamark_logic::compile(text, observe))?);
        self.finals.push(FinalStates { text: text.into(), predicate });
        Ok(self)
    }

    /// Asks for all properties of a text; `name` is how errors call it.
    pub fn properties(self, name: &str, text: &str) -> Result<Self, CheckError> {
        if contest::is_contest(text) {
            return self.contest_properties(name, text);
        }
        let parse = |observe: &dyn Observe| deltamark_logic::parse_file_under(text, observe, &self.reading);
        let found = parsed(name, text, self.system, parse).map_err(stopped_reading)?;
        let origin = name;
        Ok(found.into_iter().fold(self, |check, asked| match asked {
            Asked::State(property) => check.property(property),
            Asked::Temporal(name, formula) => {
                let origin = format!("{origin}, {name}");
                check.temporal(&origin, name, formula)
            }
        }))
    }

    /// Asks for all properties of a text in Helena's language; `name` is how errors call it.
    pub fn helena_properties(self, name: &str, text: &str) -> Result<Self, CheckError> {
        let places = self.system.observe().map_or_else(Vec::new, |observe| observe.names());
        let source = || Source { name: name.into(), text: text.into() };
        let found = deltamark_coloured::lna::property_texts(text.as_bytes(), &self.info.propositions, &places)
            .map_err(|diagnostics| CheckError::Property { source: source(), diagnostics })?;
        let (states, formulas) = found;
        let check = states.iter().try_fold(self, |check, (name, text)| check.named_invariant(name, text))?;
        formulas.iter().try_fold(check, |check, (name, text)| check.named_ltl(name, text))
    }

    fn expression(
        self,
        name: &str,
        text: &str,
        parse: impl FnOnce(&dyn Observe) -> Result<Property, Vec<Diagnostic>>,
    ) -> Result<Self, CheckError> {
        let property = self.read(name, text, parse)?;
        Ok(self.property(property))
    }

    /// Reads an expression or a formula, if there is room for it.
    fn read<T>(
        &self,
        name: &str,
        text: &str,
        parse: impl FnOnce(&dyn Observe) -> Result<T, Vec<Diagnostic>>,
    ) -> Result<T, CheckError> {
        self.reading.ask_for(deltamark_logic::room(text)).map_err(CheckError::Stopped)?;
        parsed(name, text, self.system, parse)
    }
}

/// An expression over the states of a system; `name` is how errors call it.
pub(crate) fn compiled(name: &str, text: &str, system: &dyn System) -> Result<deltamark_logic::Compiled, CheckError> {
    parsed(name, text, system, |observe| deltamark_logic::compile(text, observe))
}

/// A reading that was ended by a limit, as such.
pub(crate) fn stopped_reading(error: CheckError) -> CheckError {
    match &error {
        CheckError::Property { diagnostics, .. } => {
            diagnostics.iter().find_map(|one| one.stop).map_or(error, CheckError::Stopped)
        }
        _ => error,
    }
}

pub(crate) fn parsed<T>(
    name: &str,
    text: &str,
    system: &dyn System,
    parse: impl FnOnce(&dyn Observe) -> Result<T, Vec<Diagnostic>>,
) -> Result<T, CheckError> {
    let result = match system.observe() {
        Some(observe) => parse(observe),
        None => Err(vec![Diagnostic::new("this model has no names that a property could speak of")]),
    };
    result.map_err(|diagnostics| {
        // Where reading was ended nothing in the text is shown, and there may be no memory for it.
        let ended = diagnostics.iter().any(|one| one.stop.is_some());
        let text = if ended { String::new() } else { text.into() };
        CheckError::Property { source: Source { name: name.into(), text }, diagnostics }
    })
}
