//! States, actions and what properties may speak of, in the modeller's words.
//!
//! In: states. Out: markings as `1'(1,idle) ++ 2'(3,busy)`, actions as `take(x=1,y=idle)`, and numbers for
//! properties. What stays true: names are resolved once; reading takes no look at a name.
//!
//! Observables are numbered places first, then transitions, then propositions, then distinct
//! tokens a place, and last single tokens that properties named.

use deltamark_core::{Action, Describe, Kind, Observable, Observe, Scratch, Slot, Value};

use crate::engine::Marking;
use crate::eval::Eval;
use crate::net::{Piece, PlaceId};
use crate::system::ColouredSystem;

impl ColouredSystem {
    /// A local marking as people write it.
    fn print_marking(&self, place: usize, marking: u32) -> String {
        let mut out = String::new();
        for (token, count) in self.engine.places[place].tokens(marking) {
            if !out.is_empty() {
                out.push_str(" ++ ");
            }
            out.push_str(&format!("{count}'"));
            self.engine.print_token(place, token, &mut out);
        }
        out
    }

    fn total(&self, place: usize, marking: u32) -> i64 {
        self.engine.places[place].tokens(marking).map(|(_, count)| i64::from(count)).sum()
    }
}

impl Describe for ColouredSystem {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let current = self.current();
        let mut told = Vec::new();
        for (number, (place, field)) in self.engine.net.places.iter().zip(&current.layout.fields).enumerate() {
            let marking = field.read(state);
            if marking != 0 {
                let value = if place.domain.is_empty() {
                    Value::Int(self.total(number, marking))
                } else {
                    Value::Text(self.print_marking(number, marking))
                };
                told.push((place.name.clone(), value));
            }
        }
        told
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        let known = self.engine.actions.get(action.0);
        let transition = &self.engine.net.transitions[known.transition() as usize];
        let types = &self.engine.net.types;
        if let Some(pieces) = &transition.description
            && let Ok(mut frame) = self.engine.frame_of(action.0)
        {
            let mut out = format!("{}: ", transition.name);
            let mut eval = Eval::new(&self.engine.net.functions, &self.engine.values, None);
            for piece in pieces {
                match piece {
                    Piece::Text(text) => out.push_str(text),
                    Piece::Value(value, of) => match eval.eval(value, &mut frame) {
                        Ok(code) => self.engine.values.print(types, *of, code, &mut out),
                        Err(_) => out.push('?'),
                    },
                }
            }
            return out;
        }
        let mut out = transition.name.clone();
        let plan = &self.engine.plans[known.transition() as usize];
        for (position, (var, code)) in plan.binding.iter().zip(known.binding()).enumerate() {
            let variable = &transition.variables[var.0 as usize];
            out.push(if position == 0 { '(' } else { ',' });
            out.push_str(&variable.name);
            out.push('=');
            self.engine.values.print(types, variable.of, code, &mut out);
        }
        if !plan.binding.is_empty() {
            out.push(')');
        }
        out
    }
}

impl Observe for ColouredSystem {
    fn resolve(&self, name: &str) -> Option<Observable> {
        let net = &self.engine.net;
        let (places, transitions) = (net.places.len() as u32, net.transitions.len() as u32);
        let place = |name: &str| net.places.iter().position(|place| place.name == name).map(|at| at as u32);
        if let Some(index) = place(name) {
            return Some(Observable { index, kind: Kind::Int });
        }
        let proposition = net.propositions.iter().position(|proposition| proposition.name == name);
        if let Some(at) = proposition {
            return Some(Observable { index: places + transitions + at as u32, kind: Kind::Bool });
        }
        let propositions = net.propositions.len() as u32;
        if let Some(index) = name.strip_suffix("'card").and_then(place) {
            return Some(Observable { index: places + transitions + propositions + index, kind: Kind::Int });
        }
        name.strip_suffix("'mult").and_then(place).map(|index| Observable { index, kind: Kind::Int })
    }

    fn fireable(&self, name: &str) -> Option<Observable> {
        let net = &self.engine.net;
        let at = net.transitions.iter().position(|transition| transition.name == name)?;
        Some(Observable { index: (net.places.len() + at) as u32, kind: Kind::Bool })
    }

    fn names(&self) -> Vec<String> {
        self.engine.net.places.iter().map(|place| place.name.clone()).collect()
    }

    fn action_names(&self) -> Vec<String> {
        self.engine.net.transitions.iter().map(|transition| transition.name.clone()).collect()
    }

    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        let net = &self.engine.net;
        let work = self.work(scratch);
        let mut index = observable.index as usize;
        if index < net.places.len() {
            return self.total(index, work.current.layout.fields[index].read(state));
        }
        index -= net.places.len();
        if index < net.transitions.len() {
            self.look(work, state);
            let of = |&action: &u32| self.engine.actions.get(action).transition() as usize == index;
            return i64::from(work.found.iter().any(of));
        }
        index -= net.transitions.len();
        work.current.layout.unpack(state, &mut work.markings);
        let look = Marking { engine: &self.engine, markings: &work.markings };
        if let Some(proposition) = net.propositions.get(index) {
            let mut frame = vec![0; proposition.frame as usize];
            let mut eval = Eval::new(&net.functions, &self.engine.values, Some(&look));
            return i64::from(eval.truth(&proposition.holds, &mut frame) == Ok(true));
        }
        index -= net.propositions.len();
        crate::eval::Look::distinct(&look, PlaceId(index as u32)) as i64
    }
}
