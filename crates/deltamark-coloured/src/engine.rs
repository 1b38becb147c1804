//! What all threads share: the net, its plans, and the tables that grow during a run.
//!
//! In: a net. Out: numbers of tokens, markings, actions and effects. What stays true: a number never changes
//! its meaning, so all reads are lock-free.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use deltamark_core::diagnostic::line_column;
use deltamark_core::{Control, Diagnostic, Stop};

use crate::bindings::plan::{BindingPlan, FlatTerm, MOST_TERMS, PlanStep, flatten};
use crate::cache_room::CacheRoom;
use crate::expressions::eval::{Eval, Look};
use crate::net::{
    Expr, ExprKind, Fault, FaultKind, Net, OverMarkings, PlaceId, Role, Transition, Type, ValueShape, Var,
};
use crate::tables::actions::{Actions, Claim, Effects, NewAction, RESET};
use crate::tables::chunks::Meter;
use crate::tables::place::PlaceTable;
use crate::tables::values::{Code, Values};

/// The net and its tables.
pub(crate) struct Engine {
    pub net: Net,
    pub values: Values,
    pub places: Vec<PlaceTable>,
    pub plans: Vec<BindingPlan>,
    pub actions: Actions,
    pub effects: Effects,
    /// The initial marking of each place.
    pub initial: Vec<u32>,
    /// Whether any transition has a priority.
    pub prioritised: bool,
    /// Whether any transition resets a place.
    pub resets: bool,
    /// Tokens named in properties: the place, and for each component a value or any.
    pub named: Mutex<Vec<(u32, Vec<Option<Code>>)>>,
    /// Expressions of the front end named in properties.
    pub over_markings: Mutex<Vec<OverMarkings>>,
    /// The text that spans point into.
    text: String,
    /// The bytes of the tables, as they grow.
    pub meter: Meter,
    /// What lets the caches of threads grow.
    pub room: CacheRoom,
}

/// The tokens of a label: place, token, count.
pub(crate) type Counts = BTreeMap<(u32, u32), i64>;

impl Engine {
    /// Prepares a net, unless `control` stops it; `text` is what spans point into.
    pub fn new(net: Net, text: &str, control: &Control) -> Result<Self, Vec<Diagnostic>> {
        net.validate().map_err(Diagnostic::new)?;
        let meter = Meter::default();
        let values = Values::new(&meter);
        values.limit(control);
        // An empty place takes some 20 kB.
        let mut places: Vec<PlaceTable> = Vec::with_capacity(net.places.len());
        for (number, place) in net.places.iter().enumerate() {
            control.check()?;
            places.push(PlaceTable::new(number, place.domain.len(), &meter));
        }
        let mut wrong = Vec::new();
        let mut plans = Vec::new();
        let mut terms = 0;
        for transition in &net.transitions {
            match BindingPlan::new(&net, &values, transition, control) {
                Ok(plan) => {
                    terms += plan.terms;
                    plans.push(plan);
                }
                Err(diagnostic) => wrong.push(diagnostic),
            }
            if terms > 4 * MOST_TERMS {
                let message = format!("the labels of the net come to more than {} terms", 4 * MOST_TERMS);
                wrong.push(Diagnostic::at(transition.span, message));
                break;
            }
        }
        let prioritised = net.transitions.iter().any(|transition| transition.priority.is_some());
        let resets = net.transitions.iter().any(|transition| !transition.resets.is_empty());
        let mut engine = Engine {
            values,
            places,
            plans,
            actions: Actions::new(&meter),
            effects: Effects::new(&meter),
            initial: Vec::new(),
            prioritised,
            resets,
            named: Mutex::default(),
            over_markings: Mutex::default(),
            text: text.into(),
            meter,
            room: CacheRoom::new(control),
            net,
        };
        for number in 0..engine.net.places.len() {
            control.check()?;
            match engine.initial_marking(number, control) {
                Ok(marking) => engine.initial.push(marking),
                Err(diagnostic) => wrong.push(diagnostic),
            }
        }
        if wrong.is_empty() { Ok(engine) } else { Err(wrong) }
    }

    fn initial_marking(&self, number: usize, control: &Control) -> Result<u32, Diagnostic> {
        let place = &self.net.places[number];
        let mut terms = Vec::new();
        let id = PlaceId(number as u32);
        flatten(&self.net.functions, &self.values, id, &place.initial, place.frame as usize, control, &mut terms)?;
        let mut frame = vec![0; place.frame as usize];
        let mut counts = Counts::new();
        for term in &terms {
            control.ask()?;
            self.count(term, &mut frame, &mut counts, Some(control)).map_err(|fault| match fault.kind {
                FaultKind::Memory => Stop::Memory.into(),
                FaultKind::Stopped => control.stop_without_memory().unwrap_or(Stop::Cancelled).into(),
                _ => self.wrong_initially(number, term, &fault),
            })?;
        }
        let mut list = Vec::new();
        for ((_, token), count) in counts {
            let most = i64::from(place.capacity.unwrap_or(u32::MAX));
            if !(0..=most).contains(&count) {
                let mut shown = String::new();
                self.print_token(number, token, &mut shown);
                let name = &place.name;
                let message = match place.domain.is_empty() {
                    _ if count < 0 => {
                        format!("the initial marking of place `{name}` takes away more of {shown} than there is")
                    }
                    true => {
                        let tokens = if count == 1 { "token" } else { "tokens" };
                        format!(
                            "the initial marking of place `{name}` has {count} {tokens}, and its capacity is {most}"
                        )
                    }
                    false => {
                        format!(
                            "the initial marking of place `{name}` has {count} of {shown}, and its capacity is {most}"
                        )
                    }
                };
                let diagnostic = Diagnostic::at(place.span, message);
                return Err(match place.capacity.filter(|_| (0..=i64::from(i32::MAX)).contains(&count)) {
                    Some(_) => diagnostic.help(format!("write `capacity : {count};`, or more")),
                    None => diagnostic,
                });
            }
            if count > 0 {
                list.push((token, count as u32));
            }
        }
        Ok(self.places[number].marking(&list))
    }

    /// The diagnostic for a faulty term of a place's initial marking.
    fn wrong_initially(&self, number: usize, term: &FlatTerm, fault: &Fault) -> Diagnostic {
        let place = format!("in the initial marking of place `{}`", self.net.places[number].name);
        let words = self.words(fault.kind);
        // Code says itself where it is.
        let message = if words.ends_with(&place) { words } else { format!("{words}, {place}") };
        let diagnostic = Diagnostic::at(fault.span, message);
        let within =
            |part: &Expr| (part.span.start..part.span.end.max(part.span.start + 1)).contains(&fault.span.start);
        let at = term.token.iter().position(within).filter(|_| fault.kind == FaultKind::OutOfRange);
        match at.map(|at| &self.net.types[self.net.places[number].domain[at].0 as usize]) {
            Some(Type { name, shape: ValueShape::Discrete { low, high, names: None } }) => {
                diagnostic.help(format!("values of `{name}` go from {low} to {high}"))
            }
            _ => diagnostic,
        }
    }

    /// For each place whether some transition can change it: one that always puts back what it takes does
    /// not.
    pub fn changing(&self) -> Vec<bool> {
        let mut changing = vec![false; self.places.len()];
        for transition in &self.net.transitions {
            for (number, changes) in changing.iter_mut().enumerate() {
                let label = |arcs: &[crate::net::Arc]| -> Vec<crate::net::Label> {
                    let here = arcs.iter().filter(|arc| arc.place.0 as usize == number);
                    here.map(|arc| arc.label.clone()).collect()
                };
                let resets = transition.resets.iter().any(|place| place.0 as usize == number);
                *changes = *changes || resets || !same_labels(&label(&transition.inputs), &label(&transition.outputs));
            }
        }
        changing
    }

    /// Adds the tokens of a term to `counts`, unless `watch` ends the run; with factor 0 an entry of 0.
    pub fn count(
        &self,
        term: &FlatTerm,
        frame: &mut [Code],
        counts: &mut Counts,
        watch: Option<&Control>,
    ) -> Result<(), Fault> {
        for &(var, value) in &term.given {
            frame[var.0 as usize] = value;
        }
        let mut eval = Eval::new(&self.net.functions, &self.values, None).under(watch);
        if let Some(condition) = &term.condition
            && !eval.truth(condition, frame)?
        {
            return Ok(());
        }
        if term.spread {
            let component = &term.token[0];
            let list = eval.eval(component, frame)?;
            let table = &self.places[term.place.0 as usize];
            for code in self.values.elements(list).collect::<Vec<_>>() {
                self.storable(code, component.span)?;
                *counts.entry((term.place.0, table.token(&self.values, &[code]))).or_default() += term.factor;
            }
            return Ok(());
        }
        let token = self.token_of(term, &mut eval, frame)?;
        let count = counts.entry((term.place.0, token)).or_default();
        *count = count.checked_add(term.factor).ok_or(Fault { kind: FaultKind::NegativeCount, span: term.span })?;
        Ok(())
    }

    fn token_of(&self, term: &FlatTerm, eval: &mut Eval<'_>, frame: &mut [Code]) -> Result<u32, Fault> {
        let mut components = Vec::with_capacity(term.token.len());
        for component in &term.token {
            let code = eval.eval(component, frame)?;
            self.storable(code, component.span)?;
            components.push(code);
        }
        Ok(self.places[term.place.0 as usize].token(&self.values, &components))
    }

    /// Integers in tokens have 32 bits.
    fn storable(&self, code: Code, span: deltamark_core::Span) -> Result<(), Fault> {
        let integer = i32::try_from(code).is_ok();
        if integer || Values::is_sequence(code) { Ok(()) } else { Err(Fault { kind: FaultKind::OutOfRange, span }) }
    }

    /// The action of a transition whose variables are all bound. `claims` are the tokens its inputs take. If `watch` ends
    /// the run, there is none: what was not evaluated to its end must not be known to later runs.
    pub fn action(
        &self,
        transition: u32,
        frame: &mut [Code],
        claims: &[Claim],
        watch: Option<&Control>,
    ) -> Result<u32, Fault> {
        let plan = &self.plans[transition as usize];
        let binding: Vec<Code> = plan.binding.iter().map(|var| frame[var.0 as usize]).collect();
        if let Some(known) = self.actions.find(transition, &binding) {
            return Ok(known);
        }
        let requirements: Vec<Claim> =
            claims.iter().map(|&(place, token, count)| (place, token, count.max(1))).collect();
        let mut new = NewAction { transition, binding: &binding, requirements: &requirements, ..NewAction::default() };
        let mut gains = Counts::new();
        let mut fault = None;
        for term in &plan.outputs {
            fault = fault.or_else(|| self.count(term, frame, &mut gains, watch).err());
        }
        if let Some(stopped) = fault.take_if(|fault| fault.kind == FaultKind::Stopped) {
            return Err(stopped);
        }
        if let Some((&(place, _), _)) = gains.iter().find(|&(_, &count)| count < 0) {
            let span = plan.outputs.iter().find(|term| term.place.0 == place).map(|term| term.span);
            fault = fault.or(span.map(|span| Fault { kind: FaultKind::NegativeCount, span }));
        }
        let resets = &self.net.transitions[transition as usize].resets;
        let is_reset = |place: u32| resets.contains(&PlaceId(place));
        // What is taken from a place that is emptied is gone with the rest.
        for &(place, token, count) in claims.iter().filter(|claim| !is_reset(claim.0)) {
            *gains.entry((place, token)).or_default() -= i64::from(count);
        }
        let mut effects: BTreeMap<u32, Vec<(u32, i32)>> = BTreeMap::new();
        effects.extend(resets.iter().map(|place| (place.0, vec![(RESET, 0)])));
        let mut ceilings = Vec::new();
        for (&(place, token), &gain) in gains.iter().filter(|&(_, &gain)| gain != 0) {
            match i32::try_from(gain) {
                Ok(gain) => effects.entry(place).or_default().push((token, gain)),
                Err(_) => {
                    let span = self.net.transitions[transition as usize].span;
                    fault = fault.or(Some(Fault { kind: FaultKind::Capacity, span }));
                }
            }
            if let Some(capacity) = self.net.places[place as usize].capacity.filter(|_| gain > 0) {
                // More than `capacity - gain` is too much.
                let count = (i64::from(capacity) - gain + 1).max(0);
                if let Ok(count) = u32::try_from(count) {
                    ceilings.push((place, token, count));
                }
            }
        }
        let changes: Vec<(u32, u32)> =
            effects.iter().map(|(&place, gains)| (place, self.effect(place, gains))).collect();
        new.changes = &changes;
        new.resets = !resets.is_empty();
        new.hash = self.hash_of_changes(&changes);
        new.ceilings = &ceilings;
        let mut eval = Eval::new(&self.net.functions, &self.values, None);
        if let Some(priority) = plan.priority.as_ref().filter(|_| !plan.late_priority) {
            match eval.eval(priority, frame) {
                Ok(priority) => new.priority = priority,
                // Reported in the state where it occurs.
                Err(_) => new.late = true,
            }
        }
        new.late |= plan.late_priority || plan.late_guard.is_some() || plan.existential;
        let mut inhibitors = Vec::new();
        if !plan.existential {
            let mut open = false;
            for term in &plan.inhibitors {
                let mut one = Counts::new();
                match self.count(term, frame, &mut one, None) {
                    Ok(()) => {
                        inhibitors.extend(one.keys().map(|&(place, token)| (place, token, (term.factor.max(1)) as u32)))
                    }
                    // Whether the fault matters depends on the tokens present.
                    Err(_) => open = true,
                }
            }
            if open {
                new.late = true;
                inhibitors.clear();
            }
        }
        new.inhibitors = &inhibitors;
        new.fault = fault;
        Ok(self.actions.add(&new))
    }

    /// The number of an effect on a place: tokens, ascending, and how many are gained of each; [`RESET`] is first if the
    /// place is emptied before.
    pub fn effect(&self, place: u32, gains: &[(u32, i32)]) -> u32 {
        let table = &self.places[place as usize];
        let added = |&(token, gain): &(u32, i32)| table.coefficient(token).wrapping_mul(i64::from(gain) as u64);
        let tokens = gains.iter().filter(|gain| gain.0 != RESET);
        self.effects.add(place, gains, tokens.map(added).fold(0, u64::wrapping_add))
    }

    /// What changes of places add to the hash of a state.
    pub fn hash_of_changes(&self, changes: &[(u32, u32)]) -> u64 {
        changes.iter().fold(0, |hash, &(_, effect)| hash.wrapping_add(self.effects.hash(effect)))
    }

    /// The values of all variables of an action, those computed by a let included.
    pub fn frame_of(&self, action: u32) -> Result<Vec<Code>, Fault> {
        let action = self.actions.get(action);
        let plan = &self.plans[action.transition() as usize];
        let mut frame = vec![0; plan.frame];
        for (var, code) in plan.binding.iter().zip(action.binding()) {
            frame[var.0 as usize] = code;
        }
        let mut eval = Eval::new(&self.net.functions, &self.values, None);
        for step in &plan.steps {
            if let PlanStep::Let(var, value) = step {
                frame[var.0 as usize] = eval.eval(value, &mut frame)?;
            }
        }
        Ok(frame)
    }

    /// Whether the state-dependent conditions allow an action whose requirements are met.
    pub fn allowed(&self, action: u32, markings: &[u32], watch: Option<&Control>) -> Result<bool, Fault> {
        let known = self.actions.get(action);
        if known.inhibited()
            && known
                .inhibitors()
                .all(|(place, token, count)| self.places[place as usize].holds(markings[place as usize], token, count))
        {
            return Ok(false);
        }
        let plan = &self.plans[known.transition() as usize];
        // Inhibitors whose tokens are not known.
        let open = plan.existential || !known.inhibited() && !plan.inhibitors.is_empty();
        if known.is_late() && (open || plan.late_guard.is_some()) {
            let look = Marking { engine: self, markings };
            if open && self.inhibited(plan, action, &look)? {
                return Ok(false);
            }
            if let Some(guard) = &plan.late_guard {
                let mut frame = self.frame_of(action)?;
                return Eval::new(&self.net.functions, &self.values, Some(&look)).under(watch).truth(guard, &mut frame);
            }
        }
        Ok(true)
    }

    /// The priority of an action in a state.
    pub fn priority(&self, action: u32, markings: &[u32]) -> Result<i64, Fault> {
        let known = self.actions.get(action);
        let plan = &self.plans[known.transition() as usize];
        match &plan.priority {
            Some(priority) if known.is_late() => {
                let look = Marking { engine: self, markings };
                let mut frame = self.frame_of(action)?;
                Eval::new(&self.net.functions, &self.values, Some(&look)).eval(priority, &mut frame)
            }
            _ => Ok(known.priority()),
        }
    }

    /// Whether inhibitors with variables of their own all match.
    pub fn inhibited(&self, plan: &BindingPlan, action: u32, look: &Marking<'_>) -> Result<bool, Fault> {
        let transition = &self.net.transitions[self.actions.get(action).transition() as usize];
        let own = |var: Var| {
            transition.variables.get(var.0 as usize).is_some_and(|variable| matches!(variable.role, Role::Inhibitor))
        };
        // Whether the place is empty: the common case.
        if let [term] = plan.inhibitors.as_slice()
            && term.condition.is_none()
            && let Some(variables) = term
                .token
                .iter()
                .map(|component| match component.kind {
                    ExprKind::Var(var) if own(var) => Some(var),
                    _ => None,
                })
                .collect::<Option<Vec<_>>>()
            && (1..variables.len()).all(|at| !variables[..at].contains(&variables[at]))
        {
            let (place, factor) = (term.place.0 as usize, term.factor.max(1));
            return Ok(self.places[place].tokens(look.markings[place]).any(|(_, count)| i64::from(count) >= factor));
        }
        let mut frame: Vec<Option<Code>> = self.frame_of(action)?.into_iter().map(Some).collect();
        for (slot, variable) in frame.iter_mut().zip(&transition.variables) {
            if matches!(variable.role, Role::Inhibitor) {
                *slot = None;
            }
        }
        let loose = loose(&plan.inhibitors, own);
        self.any_value(&plan.inhibitors, &loose, transition, &mut frame, look)
    }

    /// Whether all terms match together for some values of the loose variables.
    fn any_value(
        &self,
        terms: &[FlatTerm],
        loose: &[Var],
        transition: &Transition,
        frame: &mut Vec<Option<Code>>,
        look: &Marking<'_>,
    ) -> Result<bool, Fault> {
        let Some((&first, rest)) = loose.split_first() else { return self.all_match(terms, frame, look, false) };
        let of = transition.variables[first.0 as usize].of;
        let ValueShape::Discrete { low, high, .. } = self.net.types[of.0 as usize].shape else {
            return Err(Fault { kind: FaultKind::OutOfRange, span: transition.span });
        };
        if i64::from(high) - i64::from(low) >= MOST_LOOSE {
            return Err(Fault { kind: FaultKind::Untried, span: transition.span });
        }
        for value in low..=high {
            frame[first.0 as usize] = Some(Code::from(value));
            if self.any_value(terms, rest, transition, frame, look)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether all terms match together, trying values for unbound variables.
    fn all_match(
        &self,
        terms: &[FlatTerm],
        frame: &mut Vec<Option<Code>>,
        look: &Marking<'_>,
        counted: bool,
    ) -> Result<bool, Fault> {
        let Some((term, rest)) = terms.split_first() else { return Ok(counted) };
        let mut values: Vec<Code> = frame.iter().map(|value| value.unwrap_or(0)).collect();
        for &(var, value) in &term.given {
            values[var.0 as usize] = value;
        }
        let mut eval = Eval::new(&self.net.functions, &self.values, None);
        if let Some(condition) = &term.condition
            && !eval.truth(condition, &mut values)?
        {
            return self.all_match(rest, frame, look, counted);
        }
        let place = term.place.0 as usize;
        for (token, count) in self.places[place].tokens(look.markings[place]) {
            if i64::from(count) < term.factor.max(1) {
                continue;
            }
            let before = frame.clone();
            let mut values = values.clone();
            let mut matches = true;
            let given = |var: &Var| term.given.iter().any(|(known, _)| known == var);
            for bind in [true, false] {
                for (component, code) in term.token.iter().zip(self.places[place].components(token)) {
                    match &component.kind {
                        ExprKind::Var(var) if !given(var) && bind && frame[var.0 as usize].is_none() => {
                            frame[var.0 as usize] = Some(code);
                            values[var.0 as usize] = code;
                        }
                        _ if !bind => matches = matches && eval.eval(component, &mut values)? == code,
                        _ => {}
                    }
                }
            }
            if matches && self.all_match(rest, frame, look, true)? {
                return Ok(true);
            }
            *frame = before;
        }
        Ok(false)
    }

    /// The marking of a place after an effect, or with `undo` before it.
    pub fn after(&self, place: usize, marking: u32, effect: u32, undo: bool) -> After {
        let table = &self.places[place];
        let mut list: Vec<(u32, u32)> = Vec::with_capacity(table.length(marking) + 4);
        let capacity = self.net.places[place].capacity.unwrap_or(u32::MAX);
        let mut gains = self.effects.get(effect).peekable();
        let resets = gains.next_if(|&(token, _)| token == RESET).is_some();
        if resets && undo {
            return After::Impossible;
        }
        let signed = |gain: i32| if undo { -i64::from(gain) } else { i64::from(gain) };
        let mut exceeded = false;
        let mut put = |list: &mut Vec<(u32, u32)>, token: u32, count: i64| match u32::try_from(count) {
            Ok(0) => true,
            Ok(count) => {
                exceeded |= count > capacity;
                list.push((token, count));
                true
            }
            Err(_) if count > 0 => {
                exceeded = true;
                true
            }
            Err(_) => false,
        };
        for (token, count) in table.tokens(marking).filter(|_| !resets) {
            while let Some(&(new, gain)) = gains.peek().filter(|(new, _)| *new < token) {
                gains.next();
                if !put(&mut list, new, signed(gain)) {
                    return After::Impossible;
                }
            }
            let mut count = i64::from(count);
            if let Some(&(_, gain)) = gains.peek().filter(|(new, _)| *new == token) {
                gains.next();
                count += signed(gain);
            }
            if !put(&mut list, token, count) {
                return After::Impossible;
            }
        }
        for (new, gain) in gains {
            if !put(&mut list, new, signed(gain)) {
                return After::Impossible;
            }
        }
        if exceeded {
            return After::Exceeded;
        }
        let change = self.effects.hash(effect);
        let before = if resets { 0 } else { table.marking_hash(marking) };
        if undo {
            let found = table.find_marking(&list, before.wrapping_sub(change));
            return found.map_or(After::Impossible, After::Marking);
        }
        After::Marking(table.marking_of_hash(&list, before.wrapping_add(change)))
    }

    /// What a fault is; the code of the front end knows its own.
    fn words(&self, kind: FaultKind) -> String {
        match (kind, &self.net.host) {
            (FaultKind::Host(number) | FaultKind::HostLimit(number), Some(host)) => host.0.message(number),
            _ => kind.message().into(),
        }
    }

    /// Prints a value of this type.
    pub fn print_value(&self, of: crate::net::TypeId, code: Code, out: &mut String) {
        match &self.net.host {
            Some(host) => host.0.print(of, &self.values.value(code), out),
            None => self.values.print(&self.net.types, of, code, out),
        }
    }

    /// A fault as a message to the modeller.
    pub fn message(&self, fault: &Fault, transition: Option<u32>) -> String {
        let mut message = self.words(fault.kind);
        if let Some(transition) = transition {
            message.push_str(&format!(" in transition `{}`", self.net.transitions[transition as usize].name));
        }
        if fault.span.start < self.text.len() {
            let (line, column) = line_column(&self.text, fault.span.start);
            message.push_str(&format!(" (line {line}, column {column})"));
        }
        message
    }

    /// A token as people write it: `(1,idle)`, or `1` if it has one component.
    pub fn print_token(&self, place: usize, token: u32, out: &mut String) {
        let domain = &self.net.places[place].domain;
        let several = domain.len() != 1;
        if several {
            out.push('(');
        }
        for (position, (&of, code)) in domain.iter().zip(self.places[place].components(token)).enumerate() {
            if position > 0 {
                out.push(',');
            }
            self.print_value(of, code, out);
        }
        if several {
            out.push(')');
        }
    }

    /// The bytes of the tables, by part.
    pub fn bytes(&self) -> deltamark_core::Bytes {
        let mut bytes = deltamark_core::Bytes::new();
        let (tokens, markings) = self
            .places
            .iter()
            .map(PlaceTable::bytes)
            .fold((0, 0), |(tokens, markings), place| (tokens + place.0, markings + place.1));
        bytes.add("values", self.values.bytes());
        bytes.add("tokens", tokens);
        bytes.add("markings", markings);
        bytes.add("actions", self.actions.bytes() + self.effects.bytes());
        bytes.add("text", self.text.len() as u64);
        bytes
    }
}

/// The maximum number of values of a loose variable of an inhibitor.
const MOST_LOOSE: i64 = 1 << 20;

/// Orders the terms of inhibitors so that those whose tokens bind variables come before those that use them.
pub(crate) fn givers_first(terms: Vec<FlatTerm>, transition: &Transition) -> Vec<FlatTerm> {
    let own = |var: Var| {
        transition.variables.get(var.0 as usize).is_some_and(|variable| matches!(variable.role, Role::Inhibitor))
    };
    let mut ordered: Vec<FlatTerm> = Vec::with_capacity(terms.len());
    let mut bound: BTreeSet<Var> = BTreeSet::new();
    let mut waiting = terms;
    loop {
        let before = waiting.len();
        for term in std::mem::take(&mut waiting) {
            let (given, used) = given_and_used(&term, own);
            if used.is_subset(&bound) {
                // A condition that may be false binds nothing for certain.
                bound.extend(given.into_iter().filter(|_| term.condition.is_none()));
                ordered.push(term);
            } else {
                waiting.push(term);
            }
        }
        if waiting.len() == before {
            ordered.append(&mut waiting);
            return ordered;
        }
    }
}

/// The variables of inhibitors that are used inside an expression before any token binds them. Such a
/// variable is tried with every value of its type.
fn loose(terms: &[FlatTerm], own: impl Fn(Var) -> bool + Copy) -> Vec<Var> {
    let (mut bound, mut loose) = (BTreeSet::new(), Vec::new());
    for term in terms {
        let (given, used) = given_and_used(term, own);
        let free = used.into_iter().filter(|var| !bound.contains(var));
        let free: Vec<Var> = free.filter(|var| !loose.contains(var)).collect();
        loose.extend(free);
        bound.extend(given);
    }
    loose
}

/// The variables of inhibitors that the token of a term binds, and those that must be bound before.
fn given_and_used(term: &FlatTerm, own: impl Fn(Var) -> bool) -> (BTreeSet<Var>, BTreeSet<Var>) {
    let mut given = BTreeSet::new();
    let (mut first, mut inside) = (BTreeSet::new(), BTreeSet::new());
    let visit = |expression: &Expr, into: &mut BTreeSet<Var>| {
        expression.visit(&mut |part| {
            if let ExprKind::Var(var) = part.kind
                && own(var)
            {
                into.insert(var);
            }
        });
    };
    for component in &term.token {
        match component.kind {
            ExprKind::Var(var) if own(var) => drop(given.insert(var)),
            _ => visit(component, &mut inside),
        }
    }
    // The condition is evaluated before the token.
    term.condition.iter().for_each(|condition| visit(condition, &mut first));
    first.extend(inside.difference(&given));
    (given, first)
}

/// Whether two lists of labels are equal apart from their spans.
fn same_labels(one: &[crate::net::Label], other: &[crate::net::Label]) -> bool {
    let terms = |labels: &[crate::net::Label]| -> Vec<crate::net::Term> { labels.iter().flatten().cloned().collect() };
    let (one, other) = (terms(one), terms(other));
    one.len() == other.len()
        && one.iter().zip(&other).all(|(one, other)| {
            let plain = |term: &crate::net::Term| term.iterations.is_empty() && term.condition.is_none();
            plain(one)
                && plain(other)
                && one.spread == other.spread
                && one.factor == other.factor
                && one.token.iter().zip(&other.token).all(|(one, other)| match (&one.kind, &other.kind) {
                    (ExprKind::Var(one), ExprKind::Var(other)) => one == other,
                    (ExprKind::Const(one), ExprKind::Const(other)) => one == other,
                    _ => false,
                })
        })
}

/// The marking of a place after an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// This marking.
    Marking(u32),
    /// A token would exceed the place's capacity.
    Exceeded,
    /// The tokens to take are absent, or with `undo` the marking was never seen.
    Impossible,
}

/// A marking that expressions can read.
pub(crate) struct Marking<'a> {
    pub engine: &'a Engine,
    pub markings: &'a [u32],
}

impl Look for Marking<'_> {
    fn tokens(&self, place: PlaceId) -> Vec<(u32, u64)> {
        let place = place.0 as usize;
        let tokens = self.engine.places[place].tokens(self.markings[place]);
        tokens.map(|(token, count)| (token, u64::from(count))).collect()
    }

    fn distinct(&self, place: PlaceId) -> u64 {
        let place = place.0 as usize;
        self.engine.places[place].tokens(self.markings[place]).count() as u64
    }

    fn total(&self, place: PlaceId) -> u64 {
        let place = place.0 as usize;
        self.engine.places[place].tokens(self.markings[place]).map(|(_, count)| u64::from(count)).sum()
    }

    fn component(&self, place: PlaceId, token: u32, index: u32) -> Code {
        self.engine.places[place.0 as usize].component(token, index as usize)
    }
}
