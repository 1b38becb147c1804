//! States, actions and observables, in the modeller's words.
//!
//! In: markings and actions. Out: markings as `1'(1,idle) ++ 2'(3,busy)`, actions as `take(x=1,y=idle)`, and
//! values for properties. What stays true: names are resolved once, not on each read; coloured and unfolded
//! nets are described alike.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use deltamark_core::{Action, Describe, Diagnostic, NoValue, Observable, Observe, Progress, Scratch, Slot, Value};

use crate::engine::{Engine, Marking};
use crate::expressions::eval::{Eval, Look};
use crate::net::{Piece, PlaceId, TypeId, ValueShape};
use crate::observe::observables::Observed;
use crate::system::ColouredSystem;
use crate::tables::values::Code;

/// The part of [`Observe`] that is about names: the same for coloured and unfolded nets, which both
/// have an `engine`.
macro_rules! names_of_the_net {
    () => {
        fn resolve(&self, name: &str) -> Option<Observable> {
            self.engine.resolve(name)
        }

        fn own_expression(&self, text: &str) -> Option<Result<Observable, Vec<Diagnostic>>> {
            self.engine.own_expression(text)
        }

        fn fireable(&self, name: &str) -> Option<Observable> {
            self.engine.fireable(name)
        }

        fn resolve_id(&self, id: &str) -> Option<Observable> {
            self.engine.resolve_id(id)
        }

        fn fireable_id(&self, id: &str) -> Option<Observable> {
            self.engine.fireable_id(id)
        }

        fn names(&self) -> Vec<String> {
            self.engine.net.places.iter().map(|place| place.name.clone()).collect()
        }

        fn action_names(&self) -> Vec<String> {
            self.engine.net.transitions.iter().map(|transition| transition.name.clone()).collect()
        }

        // Names of the unfolded net are internal.
        fn namesakes(&self, _name: &str) -> Vec<String> {
            Vec::new()
        }

        fn action_namesakes(&self, _name: &str) -> Vec<String> {
            Vec::new()
        }
    };
}
pub(crate) use names_of_the_net;

/// A piece of a text, ordered as people sort.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Number(u64),
    Letter(char),
}

/// A component of a token, ordered as people sort: numbers and names in the order of their types.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum SortKey {
    Discrete(Code),
    Text(Vec<Word>),
}

/// Splits a text into words and numbers, so that 9 sorts before 10.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for character in text.chars() {
        match (character.to_digit(10), words.last_mut()) {
            (Some(digit), Some(Word::Number(number))) => {
                *number = number.saturating_mul(10).saturating_add(digit.into())
            }
            (Some(digit), _) => words.push(Word::Number(digit.into())),
            (None, _) => words.push(Word::Letter(character)),
        }
    }
    words
}

impl Engine {
    /// All places that are not empty, with their tokens.
    pub fn tell_all(&self, look: &dyn Look) -> Vec<(String, Value)> {
        let places = 0..self.net.places.len();
        places.filter_map(|place| self.tell(place, &look.tokens(PlaceId(place as u32)))).collect()
    }

    /// The largest count of each token, for the places whose tokens have values.
    pub fn tell_bounds(&self, most: impl Fn(usize) -> BTreeMap<u32, u64>) -> Vec<(String, Vec<(String, u64)>)> {
        let coloured = self.net.places.iter().enumerate().filter(|(_, place)| !place.domain.is_empty());
        let bound = |number: usize, (token, count): (u32, u64)| {
            let mut shown = String::new();
            self.print_token(number, token, &mut shown);
            (shown, count)
        };
        coloured
            .map(|(number, place)| {
                let mut bounds: Vec<(u32, u64)> = most(number).into_iter().collect();
                bounds.sort_by_cached_key(|&(token, _)| self.parts(number, token));
                (place.name.clone(), bounds.into_iter().map(|most| bound(number, most)).collect())
            })
            .collect()
    }

    /// The components of a token as a sort key: token numbers depend on the order of discovery, which may
    /// differ in another run or another form of the net.
    fn parts(&self, place: usize, token: u32) -> Vec<SortKey> {
        let typed = self.places[place].components(token).zip(&self.net.places[place].domain);
        let part = |(code, of): (Code, &TypeId)| match self.net.types[of.0 as usize].shape {
            ValueShape::Discrete { .. } => SortKey::Discrete(code),
            _ => {
                let mut shown = String::new();
                self.print_value(*of, code, &mut shown);
                SortKey::Text(words(&shown))
            }
        };
        typed.map(part).collect()
    }

    /// A place and its tokens; `None` if it is empty.
    fn tell(&self, place: usize, tokens: &[(u32, u64)]) -> Option<(String, Value)> {
        if tokens.is_empty() {
            return None;
        }
        let known = &self.net.places[place];
        if known.domain.is_empty() {
            let total: u64 = tokens.iter().map(|&(_, count)| count).sum();
            return Some((known.name.clone(), Value::Int(total as i64)));
        }
        let mut out = String::new();
        let mut sorted = tokens.to_vec();
        sorted.sort_by_cached_key(|&(token, _)| self.parts(place, token));
        for (token, count) in sorted {
            // CPN Tools writes a coefficient with a backquote, and no blanks.
            let (plus, times) = if self.net.host.is_some() { ("++", '`') } else { (" ++ ", '\'') };
            if !out.is_empty() {
                out.push_str(plus);
            }
            out.push_str(&format!("{count}{times}"));
            self.print_token(place, token, &mut out);
        }
        Some((known.name.clone(), Value::Text(out)))
    }

    /// An action by its transition and binding: `take(x=1,y=idle)`.
    pub fn action_name(&self, action: u32) -> String {
        let known = self.actions.get(action);
        let transition = &self.net.transitions[known.transition() as usize];
        let plan = &self.plans[known.transition() as usize];
        let mut out = transition.name.clone();
        for (position, (var, code)) in plan.binding.iter().zip(known.binding()).enumerate() {
            let variable = &transition.variables[var.0 as usize];
            out.push(if position == 0 { '(' } else { ',' });
            out.push_str(&variable.name);
            out.push('=');
            self.print_value(variable.of, code, &mut out);
        }
        if !plan.binding.is_empty() {
            out.push(')');
        }
        out
    }

    /// An action by its name, followed by the model's description: two bindings may have the same
    /// description.
    pub fn tell_action(&self, action: u32) -> String {
        let transition = &self.net.transitions[self.actions.get(action).transition() as usize];
        let mut out = self.action_name(action);
        let (Some(pieces), Ok(mut frame)) = (&transition.description, self.frame_of(action)) else { return out };
        out.push_str(": ");
        let mut eval = Eval::new(&self.net.functions, &self.values, None);
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Value(value, of) => match eval.eval(value, &mut frame) {
                    Ok(code) => self.print_value(*of, code, &mut out),
                    Err(_) => out.push('?'),
                },
            }
        }
        out
    }

    /// The message when a place exceeds its capacity for a token.
    pub fn exceeded(&self, place: u32) -> String {
        let place = &self.net.places[place as usize];
        let fault = crate::net::Fault { kind: crate::net::FaultKind::Capacity, span: place.span };
        let named = format!("capacity of place `{}`", place.name);
        self.message(&fault, None).replacen("capacity", &named, 1)
    }

    /// The observable of this name.
    pub fn resolve(&self, name: &str) -> Option<Observable> {
        let net = &self.net;
        let place = |name: &str| net.places.iter().position(|place| place.name == name).map(|at| at as u32);
        if let Some(place) = place(name) {
            return Some(Observed::Tokens(place).observable());
        }
        // A proposition with the name of a place can be distinguished from it.
        let bare = name.strip_prefix("proposition ").unwrap_or(name);
        if let Some(at) = net.propositions.iter().position(|proposition| proposition.name == bare) {
            return Some(Observed::Proposition(at as u32).observable());
        }
        if let Some(place) = name.strip_suffix("'card").and_then(place) {
            return Some(Observed::Distinct(place).observable());
        }
        if let Some(place) = name.strip_suffix("'mult").and_then(place) {
            return Some(Observed::Tokens(place).observable());
        }
        // The sum of a component over the tokens of a place: `p->1`.
        if let Some((before, component)) = name.split_once("->")
            && let (Some(place), Ok(component)) = (place(before), component.parse::<usize>())
        {
            return self.sum(place, component.checked_sub(1)?);
        }
        if let Some(Ok(observable)) = self.own_expression(name) {
            return Some(observable);
        }
        // Tokens of a place: `p(1,idle)`, or `p(*,idle)` for all that have this component.
        let (before, inside) = name.strip_suffix(')')?.split_once('(')?;
        let place = place(before)?;
        let pattern = (place, self.pattern(place as usize, inside)?);
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let at = named.iter().position(|known| *known == pattern).unwrap_or_else(|| {
            named.push(pattern);
            named.len() - 1
        });
        Some(Observed::Matching(at as u32).observable())
    }

    /// The number of tokens in the place of this id in the file.
    pub fn resolve_id(&self, id: &str) -> Option<Observable> {
        if self.net.place_ids.is_empty() {
            return self.resolve(id);
        }
        let place = self.net.place_ids.iter().position(|known| known == id)?;
        Some(Observed::Tokens(place as u32).observable())
    }

    /// Whether the transition of this id in the file is enabled.
    pub fn fireable_id(&self, id: &str) -> Option<Observable> {
        if self.net.transition_ids.is_empty() {
            return self.fireable(id);
        }
        let at = self.net.transition_ids.iter().position(|known| known == id)?;
        Some(Observed::Fireable(at as u32).observable())
    }

    /// The observable of an expression in the front end's language.
    pub fn own_expression(&self, text: &str) -> Option<Result<Observable, Vec<Diagnostic>>> {
        let found = match self.net.host.as_ref()?.0.over_markings(text)? {
            Ok(found) => found,
            Err(wrong) => return Some(Err(wrong)),
        };
        let truth = found.truth;
        let mut known = self.over_markings.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|one| *one == found).unwrap_or_else(|| {
            known.push(found);
            known.len() - 1
        });
        Some(Ok(Observed::OverMarkings(at as u32, truth).observable()))
    }

    /// The sum of a component over the tokens of a place, if it is of a discrete type.
    pub fn sum(&self, place: u32, component: usize) -> Option<Observable> {
        let of = self.net.places[place as usize].domain.get(component)?;
        let discrete = matches!(self.net.types[of.0 as usize].shape, ValueShape::Discrete { .. });
        Some(Observed::sum(place, component).filter(|_| discrete)?.observable())
    }

    /// The values that tokens of a place must have, all of discrete types; `*` matches any.
    fn pattern(&self, place: usize, components: &str) -> Option<Vec<Option<Code>>> {
        let domain = &self.net.places[place].domain;
        let words: Vec<&str> = components.split(',').map(str::trim).collect();
        if words.len() != domain.len() {
            return None;
        }
        let code = |(word, of): (&&str, &crate::net::TypeId)| -> Option<Option<Code>> {
            if *word == "*" {
                return Some(None);
            }
            let ValueShape::Discrete { low, high, names } = &self.net.types[of.0 as usize].shape else { return None };
            let code = match names {
                Some(names) => names.iter().position(|name| name == word)? as i64,
                None => word.parse::<i64>().ok()?,
            };
            (i64::from(*low)..=i64::from(*high)).contains(&code).then_some(Some(code))
        };
        words.iter().zip(domain).map(code).collect()
    }

    /// Whether the transition of this name is enabled, as an observable.
    pub fn fireable(&self, name: &str) -> Option<Observable> {
        let at = self.net.transitions.iter().position(|transition| transition.name == name)?;
        Some(Observed::Fireable(at as u32).observable())
    }
}

/// The sum of values, each with a multiplicity, saturating at 64 bits.
pub(crate) fn total(terms: impl Iterator<Item = (i64, i64)>) -> i64 {
    let sum: i128 = terms.map(|(value, times)| i128::from(value) * i128::from(times)).sum();
    sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Candidates for a progress measure beside places: sums of components.
pub(crate) fn features(engine: &Engine) -> Vec<(String, Observable)> {
    let places = (0u32..).zip(&engine.net.places);
    places
        .flat_map(|(number, place)| {
            (0..place.domain.len()).filter_map(move |component| {
                Some((format!("{}->{}", place.name, component + 1), engine.sum(number, component)?))
            })
        })
        .collect()
}

impl Progress for ColouredSystem {
    fn features(&self) -> Vec<(String, Observable)> {
        features(&self.engine)
    }
}

impl Describe for ColouredSystem {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let current = self.current();
        let mut markings = Vec::new();
        current.markings(state, &mut markings);
        self.engine.tell_all(&Marking { engine: &self.engine, markings: &markings })
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        self.engine.tell_action(action.0)
    }
}

impl Observe for ColouredSystem {
    names_of_the_net!();

    fn groups_actions(&self) -> bool {
        true
    }

    fn name_of_action(&self, action: Action) -> usize {
        self.engine.actions.get(action.0).transition() as usize
    }

    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        let work = self.work(scratch);
        match Observed::of(observable) {
            Observed::Sum { place, component } => {
                let table = &self.engine.places[place as usize];
                let tokens = table.tokens(work.current.marking(state, place));
                let component = component as usize;
                total(tokens.map(|(token, count)| (table.component(token, component), i64::from(count))))
            }
            Observed::Tokens(place) => {
                let marking = work.current.marking(state, place);
                self.engine.places[place as usize].tokens(marking).map(|(_, count)| i64::from(count)).sum()
            }
            Observed::Fireable(transition) => {
                self.look(work, state);
                let of = |&action: &u32| self.engine.actions.get(action).transition() == transition;
                i64::from(work.found.iter().any(of))
            }
            other => {
                work.markings.clear();
                work.current.markings(state, &mut work.markings);
                self.engine.read(other, &Marking { engine: &self.engine, markings: &work.markings })
            }
        }
    }

    fn why_undefined(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> NoValue {
        let work = self.work(scratch);
        work.markings.clear();
        work.current.markings(state, &mut work.markings);
        self.engine.why_undefined(Observed::of(observable), &Marking { engine: &self.engine, markings: &work.markings })
    }
}
