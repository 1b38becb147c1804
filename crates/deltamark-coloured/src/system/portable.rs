//! States and actions in bytes that mean the same in every run.
//!
//! In: a state or an action, or bytes. Out: bytes, or the state or action as this run numbers it. What stays true:
//! whatever the bytes say, places, transitions, tokens and values that the net has not are refused; tokens are identified by
//! their values, never by their numbers.
//!
//! ```text
//! state    [ marking ]…                       of each place that changes, in order
//! marking  [ distinct tokens ] [ value… | count ]…        tokens ascending by value
//! value    [ integer, signed ]  or  [ length ] [ value ]…       as its type says; all numbers are varints
//!
//! action   [ transition:4 | late:1 | priority:8 | values | claims | effects | claims | claims ]
//!          binding, requirements, changes, inhibitors, ceilings
//! claims   [ count:4 ] [ place:4 | values | multiplicity:4 ]…
//! effects  [ count:4 ] [ place:4 | tokens:4 ] [ values | gain:4 ]…
//! values   [ count:4 ] [ 0 | integer:8 ]  or  [ 1 | values ]
//! ```
//! An action that is a fault leads nowhere and is never fired again: it has no bytes.

use std::cmp::Ordering;

use deltamark_core::varint;
use deltamark_core::{Action, Misread, Portable, PortableActions, Scratch, Slot};

use crate::engine::Engine;
use crate::net::{TypeId, ValueShape};
use crate::system::ColouredSystem;
use crate::tables::actions::{Claim, NewAction};
use crate::tables::values::{Code, Values};
use crate::unfolding::unfolded::UnfoldedSystem;

/// The maximum nesting of values: types are written by people.
const DEEPEST: u32 = 200;
/// The most elements of a sequence.
const LONGEST: u64 = (1 << 24) - 1;

impl Portable for ColouredSystem {
    fn write_state(&self, scratch: &mut Scratch, state: &[Slot], out: &mut Vec<u8>) {
        let (engine, current) = (&self.engine, &self.work(scratch).current);
        for &place in self.changing() {
            let table = &engine.places[place as usize];
            let components = |token: u32| table.components(token).collect::<Vec<Code>>();
            let tokens = table.tokens(current.marking(state, place));
            let mut tokens: Vec<(Vec<Code>, u32)> = tokens.map(|(token, count)| (components(token), count)).collect();
            tokens.sort_unstable_by(|one, other| engine.compare(&one.0, &other.0));
            varint::write(tokens.len() as u64, out);
            for (components, count) in tokens {
                components.into_iter().for_each(|code| engine.write_value(code, out));
                varint::write(count.into(), out);
            }
        }
    }

    fn read_state(
        &self,
        scratch: &mut Scratch,
        bytes: &mut varint::Reader<'_>,
        out: &mut Vec<Slot>,
    ) -> Result<(), Misread> {
        let engine = &self.engine;
        let mut markings = engine.initial.clone();
        for &place in self.changing() {
            markings[place as usize] = engine.read_marking(place as usize, bytes)?;
        }
        let layout = &self.work(scratch).current.layout;
        let fits = |place: &u32| u64::from(markings[*place as usize]) <= layout.fields[*place as usize].mask();
        if !self.changing().iter().all(fits) {
            // Widening looks at how many markings there are, so nothing else need be noted.
            return Err(Misread::Widen);
        }
        layout.pack(markings.into_iter().map(i64::from), out);
        Ok(())
    }

    fn actions(&self) -> Option<&dyn PortableActions> {
        // What empties a place has no bytes.
        if self.engine.resets { None } else { Some(self) }
    }
}

/// The P/T net's markings, as far as capacities allow them.
impl Portable for UnfoldedSystem {
    fn write_state(&self, scratch: &mut Scratch, state: &[Slot], out: &mut Vec<u8>) {
        self.inner.write_state(scratch, state, out);
    }

    fn read_state(
        &self,
        scratch: &mut Scratch,
        bytes: &mut varint::Reader<'_>,
        out: &mut Vec<Slot>,
    ) -> Result<(), Misread> {
        self.inner.read_state(scratch, bytes, out)?;
        match self.is_exceeded(scratch, out) {
            true => Err(Misread::Wrong(EXCEEDED)),
            false => Ok(()),
        }
    }
}

const EXCEEDED: &str = "a place holds more tokens than its capacity allows";

impl Engine {
    /// The order of tokens of one place, by their values.
    fn compare(&self, one: &[Code], other: &[Code]) -> Ordering {
        let pairs = one.iter().zip(other).map(|(&one, &other)| self.values.compare(one, other));
        pairs.fold(Ordering::Equal, Ordering::then)
    }

    fn write_value(&self, code: Code, out: &mut Vec<u8>) {
        if Values::is_sequence(code) {
            varint::write(self.values.len(code) as u64, out);
            self.values.elements(code).for_each(|element| self.write_value(element, out));
        } else {
            varint::write_signed(code, out);
        }
    }

    /// A value of this type.
    fn read_value(&self, of: TypeId, bytes: &mut varint::Reader<'_>, depth: u32) -> Result<Code, Misread> {
        const FOREIGN: Misread = Misread::Wrong("a value is none of its type");
        let shape = &self.net.types[of.0 as usize].shape;
        let length = match shape {
            ValueShape::Discrete { low, high, .. } => {
                let code = bytes.signed().ok_or(Misread::SHORT)?;
                return if (i64::from(*low)..=i64::from(*high)).contains(&code) { Ok(code) } else { Err(FOREIGN) };
            }
            _ if depth >= DEEPEST => return Err(FOREIGN),
            _ => bytes.at_most(LONGEST).ok_or(Misread::SHORT)?,
        };
        let right = match shape {
            ValueShape::Struct { fields } => length == fields.len() as u64,
            ValueShape::Vector { indices, .. } => Some(length) == self.vector_length(indices),
            ValueShape::List { capacity, .. } | ValueShape::Set { capacity, .. } => length <= u64::from(*capacity),
            ValueShape::Union { alternatives } => {
                let tag = bytes.signed().ok_or(Misread::SHORT)?;
                let of = usize::try_from(tag).ok().and_then(|tag| alternatives.get(tag)).ok_or(FOREIGN)?;
                if length != 1 + u64::from(of.is_some()) {
                    return Err(FOREIGN);
                }
                let mut elements = vec![tag];
                if let Some(of) = of {
                    elements.push(self.read_value(*of, bytes, depth + 1)?);
                }
                return Ok(self.values.sequence(&elements));
            }
            ValueShape::Discrete { .. } => false,
        };
        if !right {
            return Err(FOREIGN);
        }
        let mut elements: Vec<Code> = Vec::new();
        for number in 0..length as usize {
            let of = match shape {
                ValueShape::Struct { fields } => fields[number].1,
                ValueShape::Vector { element, .. }
                | ValueShape::List { element, .. }
                | ValueShape::Set { element, .. } => *element,
                ValueShape::Union { .. } | ValueShape::Discrete { .. } => return Err(FOREIGN),
            };
            let element = self.read_value(of, bytes, depth + 1)?;
            // The elements of a set are in order, each once.
            let ordered = |&last: &Code| self.values.compare(last, element) == Ordering::Less;
            if matches!(shape, ValueShape::Set { .. }) && !elements.last().is_none_or(ordered) {
                return Err(FOREIGN);
            }
            elements.push(element);
        }
        Ok(self.values.sequence(&elements))
    }

    /// The number of elements of a vector, if it has an end.
    fn vector_length(&self, indices: &[TypeId]) -> Option<u64> {
        indices.iter().try_fold(1u64, |length, index| match self.net.types[index.0 as usize].shape {
            ValueShape::Discrete { low, high, .. } => {
                length.checked_mul(u64::try_from(i64::from(high) - i64::from(low) + 1).ok()?)
            }
            _ => None,
        })
    }

    /// The number of a marking of this place.
    fn read_marking(&self, place: usize, bytes: &mut varint::Reader<'_>) -> Result<u32, Misread> {
        let (table, of) = (&self.places[place], &self.net.places[place]);
        let most = of.capacity.unwrap_or(u32::MAX);
        let (mut tokens, mut last) = (Vec::new(), None::<Vec<Code>>);
        for _ in 0..bytes.number().ok_or(Misread::SHORT)? {
            let components = of.domain.iter().map(|&of| self.read_value(of, bytes, 0));
            let components = components.collect::<Result<Vec<Code>, Misread>>()?;
            if last.is_some_and(|last| self.compare(&last, &components) != Ordering::Less) {
                return Err(Misread::Wrong("the tokens of a place are not in order"));
            }
            let count = bytes.number().filter(|&count| count > 0).ok_or(Misread::SHORT)?;
            if count > u64::from(most) {
                return Err(Misread::Wrong(EXCEEDED));
            }
            tokens.push((table.token(&self.values, &components), count as u32));
            last = Some(components);
        }
        tokens.sort_unstable();
        Ok(table.marking(&tokens))
    }
}

impl PortableActions for ColouredSystem {
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
            put_sorted(&mut out, engine.effects.get(effect), |(token, gain), out| {
                put_values(engine, out, engine.places[place as usize].components(token));
                put(out, gain as u32);
            });
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
            changes.push((place, engine.effect(place, &gains)));
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
            hash: engine.hash_of_changes(&changes),
            late,
            resets: false,
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
    put_sorted(out, claims, |(place, token, count), out| {
        put(out, place);
        put_values(engine, out, engine.places[place as usize].components(token));
        put(out, count);
    });
}

/// The number of items and each of them, in the order of their bytes: that of tokens differs from run to run.
fn put_sorted<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, one: impl Fn(T, &mut Vec<u8>)) {
    let bytes = |item| {
        let mut bytes = Vec::new();
        one(item, &mut bytes);
        bytes
    };
    let mut all: Vec<Vec<u8>> = items.map(bytes).collect();
    all.sort_unstable();
    put(out, all.len() as u32);
    out.extend(all.into_iter().flatten());
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
