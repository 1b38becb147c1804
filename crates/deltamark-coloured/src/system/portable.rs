//! Actions as bytes, independent of the run.
//!
//! In: an action, or bytes. Out: bytes, or the action's number in this run. What stays true: bytes that name
//! places, transitions or tokens the net does not have are refused; tokens are written by value, never by
//! number.
//!
//! ```text
//! action   [ transition:4 | late:1 | priority:8 | values | claims | effects | claims | claims ]
//!          binding, requirements, changes, inhibitors, ceilings
//! claims   [ count:4 ] [ place:4 | values | multiplicity:4 ]…
//! effects  [ count:4 ] [ place:4 | tokens:4 ] [ values | gain:4 ]…
//! values   [ count:4 ] [ 0 | integer:8 ]  or  [ 1 | values ]
//! ```
//! An action that is a fault leads nowhere and is never fired again: it has no bytes.

use deltamark_core::{Action, Portable};

use crate::engine::Engine;
use crate::system::ColouredSystem;
use crate::tables::actions::{Claim, NewAction};
use crate::tables::values::{Code, Values};

/// The maximum nesting of values: types are written by people.
const DEEPEST: u32 = 200;

impl Portable for ColouredSystem {
    fn carry(&self, action: Action) -> Vec<u8> {
        let engine = &self.engine;
        let mut out = Vec::new();
        if action.0 >= engine.actions.count() {
            return out;
        }
        let known = engine.actions.get(action.0);
        if known.is_fault() {
            return out;
        }
        put(&mut out, known.transition());
        out.push(known.is_late().into());
        out.extend(known.priority().to_le_bytes());
        put_values(engine, &mut out, known.binding());
        put_claims(engine, &mut out, known.requirements());
        put(&mut out, known.changes().count() as u32);
        for (place, effect) in known.changes() {
            put(&mut out, place);
            put(&mut out, engine.effects.get(effect).count() as u32);
            for (token, gain) in engine.effects.get(effect) {
                put_values(engine, &mut out, engine.places[place as usize].components(token));
                put(&mut out, gain as u32);
            }
        }
        put_claims(engine, &mut out, known.inhibitors());
        put_claims(engine, &mut out, known.ceilings());
        out
    }

    fn receive(&self, bytes: &[u8]) -> Option<Action> {
        if bytes.is_empty() {
            return Some(Action::NONE);
        }
        let engine = &self.engine;
        let mut reader = ActionReader { engine, bytes };
        let transition = reader.word()?;
        let plan = engine.plans.get(transition as usize)?;
        let late = reader.byte()? != 0;
        let priority = reader.long()?;
        let binding = reader.values(0)?;
        if binding.len() != plan.binding.len() {
            return None;
        }
        let requirements = reader.claims()?;
        let mut changes = Vec::new();
        for _ in 0..reader.word()? {
            let place = reader.place()?;
            let mut gains = Vec::new();
            for _ in 0..reader.word()? {
                let token = reader.token(place)?;
                let gain = reader.word()? as i32;
                gains.push((token, gain));
            }
            gains.sort_unstable();
            let sound = gains.windows(2).all(|pair| pair[0].0 < pair[1].0) && gains.iter().all(|&(_, gain)| gain != 0);
            if !sound || changes.iter().any(|&(known, _)| known == place) {
                return None;
            }
            changes.push((place, engine.effects.add(place, &gains)));
        }
        let inhibitors = reader.claims()?;
        let ceilings = reader.claims()?;
        if !reader.bytes.is_empty() {
            return None;
        }
        Some(Action(engine.actions.add(&NewAction {
            transition,
            binding: &binding,
            requirements: &requirements,
            changes: &changes,
            inhibitors: &inhibitors,
            ceilings: &ceilings,
            priority,
            late,
            fault: None,
        })))
    }
}

fn put(out: &mut Vec<u8>, word: u32) {
    out.extend(word.to_le_bytes());
}

fn put_values(engine: &Engine, out: &mut Vec<u8>, codes: impl Iterator<Item = Code>) {
    let codes: Vec<Code> = codes.collect();
    put(out, codes.len() as u32);
    for code in codes {
        if Values::is_sequence(code) {
            out.push(1);
            put_values(engine, out, engine.values.elements(code));
        } else {
            out.push(0);
            out.extend(code.to_le_bytes());
        }
    }
}

fn put_claims(engine: &Engine, out: &mut Vec<u8>, claims: impl Iterator<Item = Claim>) {
    let claims: Vec<Claim> = claims.collect();
    put(out, claims.len() as u32);
    for (place, token, count) in claims {
        put(out, place);
        put_values(engine, out, engine.places[place as usize].components(token));
        put(out, count);
    }
}

/// Decodes the bytes.
struct ActionReader<'a> {
    engine: &'a Engine,
    bytes: &'a [u8],
}

impl ActionReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.bytes.split_first_chunk::<4>()?;
        self.bytes = rest;
        Some(u32::from_le_bytes(*word))
    }

    fn long(&mut self) -> Option<i64> {
        let (long, rest) = self.bytes.split_first_chunk::<8>()?;
        self.bytes = rest;
        Some(i64::from_le_bytes(*long))
    }

    fn values(&mut self, depth: u32) -> Option<Vec<Code>> {
        let count = self.word()?;
        let mut codes = Vec::new();
        for _ in 0..count {
            codes.push(match self.byte()? {
                0 => self.long().filter(|&code| !Values::is_sequence(code))?,
                1 if depth < DEEPEST => {
                    let elements = self.values(depth + 1)?;
                    self.engine.values.sequence(&elements)
                }
                _ => return None,
            });
        }
        Some(codes)
    }

    fn place(&mut self) -> Option<u32> {
        self.word().filter(|&place| (place as usize) < self.engine.places.len())
    }

    fn token(&mut self, place: u32) -> Option<u32> {
        let components = self.values(0)?;
        let place = &self.engine.places[place as usize];
        (components.len() == place.arity()).then(|| place.token(&self.engine.values, &components))
    }

    fn claims(&mut self) -> Option<Vec<Claim>> {
        let count = self.word()?;
        let mut claims = Vec::new();
        for _ in 0..count {
            let place = self.place()?;
            let token = self.token(place)?;
            claims.push((place, token, self.word()?));
        }
        Some(claims)
    }
}
