//! How states of one layout read in another, as data.
//!
//! In: pairs of fields: the number that is in the first is then in the second. Out: translated states, or the
//! recoding as bytes. Invariants:
//!
//! * I1: all fields are within their states, and no two targets overlap, whatever bytes a recoding was read from.
//! * I2: recodings that were made from equal fields are equal, and so are their bytes.
//!
//! Being data, a recoding can be kept in a file with the states that it is for, sent to another process, and
//! compared. It is applied as it is written: neighbouring fields that stay neighbours are one move, so a translation
//! takes a few shifts a word, whatever the number of fields.
//!
//! # As bytes
//! All numbers are [varints](crate::varint).
//!
//! ```text
//! recoding  [ slots before | slots after | length | reason | moves ] [ move ]…
//! move      [ field before | field after ]
//! field     [ slot | shift | bits | least, signed ]
//! ```

use crate::varint::{self, Reader};
use crate::{Field, Layout, Slot, States, Width};
use std::sync::Arc;

/// A translation of states from the old layout to the new one.
///
/// The translations that systems return are injective and preserve [`System::hash`](crate::System::hash). A state
/// may become longer or, if the new layout packs better, shorter. Only states of fixed width are ever recoded: those
/// of varying width have nothing to widen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recoding {
    /// The width before.
    pub from: Width,
    /// The width from now on.
    pub to: Width,
    /// What was widened, for the log, in one line.
    pub reason: String,
    moves: Arc<[FieldMove]>,
}

/// The number in one field goes to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldMove {
    from: Field,
    to: Field,
}

impl Recoding {
    /// The recoding from states of `from` slots to states of `to` slots in which the number of the first field of
    /// each pair is in the second one. All other bits are zero.
    ///
    /// # Panics
    /// If a field is outside of its state, or two targets overlap: a bug of the caller.
    pub fn new(from: usize, to: usize, reason: String, pairs: impl IntoIterator<Item = (Field, Field)>) -> Self {
        match Self::checked(from, to, reason, joined(pairs)) {
            Ok(recoding) => recoding,
            Err(why) => panic!("I1: {why}"),
        }
    }

    /// The recoding from one layout to another of the same numbers.
    pub fn between(old: &Layout, new: &Layout, reason: String) -> Self {
        debug_assert_eq!(old.fields.len(), new.fields.len());
        // What takes no bits in the new layout is the same in every state.
        let pairs = old.fields.iter().copied().zip(new.fields.iter().copied()).filter(|(_, to)| to.bits() > 0);
        Self::new(old.slots, new.slots, reason, pairs)
    }

    /// The same recoding for states that have `tail` more slots at their end, which stay as they are: for a
    /// [layer](crate::Layer) that appends slots to the states of the system below.
    pub fn with_tail(&self, tail: usize) -> Self {
        let (from, to) = (Self::slots(self.from), Self::slots(self.to));
        let slot = |slot: usize| Field::new(slot as u32, 0, Slot::BITS as u8, 0);
        let tails = (0..tail).map(|index| (slot(from + index), slot(to + index)));
        let pairs = self.moves.iter().map(|step| (step.from, step.to)).chain(tails);
        Self::new(from + tail, to + tail, self.reason.clone(), pairs)
    }

    fn checked(from: usize, to: usize, reason: String, moves: Vec<FieldMove>) -> Result<Self, &'static str> {
        if !moves.iter().all(|step| step.from.fits(from) && step.to.fits(to)) {
            return Err("a field is outside of its state");
        }
        let mut targets: Vec<_> = moves.iter().map(|step| step.to.range()).collect();
        targets.sort_unstable_by_key(|range| range.start);
        if targets.windows(2).any(|pair| pair[0].end > pair[1].start) {
            return Err("two fields overlap");
        }
        Ok(Recoding { from: Width::Fixed(from), to: Width::Fixed(to), reason, moves: moves.into() })
    }

    fn slots(width: Width) -> usize {
        match width {
            Width::Fixed(slots) => slots,
            Width::Varies => unreachable!("`checked` makes recodings of fixed width alone"),
        }
    }

    /// Replaces the contents of `new` by the translation of `old`.
    pub fn translate(&self, old: &[Slot], new: &mut Vec<Slot>) {
        new.clear();
        new.resize(Self::slots(self.to), 0);
        for FieldMove { from, to } in &*self.moves {
            to.put(new, to.code(from.read(old)));
        }
    }

    /// Translates a whole list.
    pub fn translate_all(&self, states: &mut States) {
        let mut translated = States::new(self.to);
        let mut state = Vec::new();
        for old in states.iter() {
            self.translate(old, &mut state);
            translated.push(&state);
        }
        *states = translated;
    }

    /// Appends the recoding as bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        for number in [Self::slots(self.from), Self::slots(self.to), self.reason.len()] {
            varint::write(number as u64, out);
        }
        out.extend(self.reason.bytes());
        varint::write(self.moves.len() as u64, out);
        for field in self.moves.iter().flat_map(|step| [step.from, step.to]) {
            varint::write(field.slot().into(), out);
            varint::write(field.shift().into(), out);
            varint::write(field.bits().into(), out);
            varint::write_signed(field.least(), out);
        }
    }

    /// Takes a recoding off the front of bytes, which may be arbitrary; an error says what is wrong with them.
    pub fn read(bytes: &mut Reader<'_>) -> Result<Self, &'static str> {
        const SHORT: &str = "a recoding ends early";
        let mut slots = || bytes.at_most(MOST_SLOTS).map(|slots| slots as usize).ok_or("a state is too wide");
        let (from, to) = (slots()?, slots()?);
        let length = bytes.number().and_then(|length| usize::try_from(length).ok()).ok_or(SHORT)?;
        let reason = bytes.take(length).ok_or(SHORT)?.to_vec();
        let reason = String::from_utf8(reason).map_err(|_| "the reason of a recoding is no text")?;
        let count = bytes.number().ok_or(SHORT)?;
        let mut moves = Vec::new();
        for _ in 0..count {
            let mut field = || -> Option<Field> {
                let slot = bytes.at_most(MOST_SLOTS)? as u32;
                let (shift, bits) = (bytes.at_most(31)? as u8, bytes.at_most(Field::MAX_BITS.into())? as u8);
                let least = bytes.signed()?;
                (shift + bits <= 64).then(|| Field::new(slot, shift, bits, least))
            };
            let (from, to) = field().zip(field()).ok_or("a field of a recoding is wrong")?;
            moves.push(FieldMove { from, to });
        }
        Self::checked(from, to, reason, moves)
    }
}

/// The most slots of states that a recoding which is read is for: lying bytes must not take all memory.
const MOST_SLOTS: u64 = 1 << 24;

/// These moves, with neighbours that stay neighbours as one.
fn joined(pairs: impl IntoIterator<Item = (Field, Field)>) -> Vec<FieldMove> {
    let mut moves: Vec<FieldMove> = Vec::new();
    for (from, to) in pairs {
        let plain = from.least() == to.least() && from.bits() > 0 && from.bits() <= to.bits();
        if !plain {
            moves.push(FieldMove { from, to });
            continue;
        }
        // Bits move as they are. A field that got wider keeps its number in its low bits.
        let bits = |field: Field, bits: u8| Field::new(field.slot(), field.shift(), bits, 0);
        let (from, to) = (bits(from, from.bits()), bits(to, from.bits()));
        let follows = |run: Field, next: Field| run.range().end == next.range().start;
        if let Some(last) = moves.last_mut()
            && last.from.least() == 0
            && last.to.least() == 0
            && last.from.bits() == last.to.bits()
            && follows(last.from, from)
            && follows(last.to, to)
            && last.from.bits() + from.bits() <= Field::MAX_BITS
            && [last.from, last.to].iter().all(|run| run.shift() + run.bits() + from.bits() <= 64)
        {
            let all = last.from.bits() + from.bits();
            *last = FieldMove { from: bits(last.from, all), to: bits(last.to, all) };
        } else {
            moves.push(FieldMove { from, to });
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    fn numbers(layout: &Layout, seed: u64) -> Vec<i64> {
        let number = |(index, field): (usize, &Field)| {
            let code = mix(seed + index as u64) & field.mask();
            field.least() + code as i64
        };
        layout.fields.iter().enumerate().map(number).collect()
    }

    fn packed(layout: &Layout, numbers: &[i64]) -> Vec<Slot> {
        let mut state = Vec::new();
        layout.pack(numbers.iter().copied(), &mut state);
        state
    }

    fn through_bytes(recoding: &Recoding) -> Recoding {
        let mut bytes = Vec::new();
        recoding.write(&mut bytes);
        bytes.push(77);
        let mut reader = Reader::new(&bytes);
        let read = Recoding::read(&mut reader).expect("what was written can be read");
        assert_eq!(reader.rest(), [77], "what follows is left");
        assert_eq!(read, *recoding);
        read
    }

    /// Fields that widen, in words and in slots, with constants and with least numbers that fall.
    #[test]
    fn numbers_survive_a_change_of_layout() {
        for in_words in [true, false] {
            let mut sizes: Vec<(u8, i64)> = (0..150).map(|number| ((number * 5 % 9) as u8, number - 70)).collect();
            let lay_out = |sizes: &[(u8, i64)]| match in_words {
                true => Layout::in_words(sizes.iter().copied()),
                false => Layout::in_slots(sizes.iter().copied(), 0),
            };
            let mut layout = lay_out(&sizes);
            let counts = numbers(&layout, 5);
            let mut state = packed(&layout, &counts);
            for round in 0..40 {
                for (bits, least) in sizes.iter_mut().skip(round).step_by(37) {
                    // Room for one more at the lower end, or twice the numbers at the upper one.
                    *bits = (*bits + (round % 3) as u8).min(if in_words { 63 } else { 32 });
                    if round % 3 == 1 && *bits > 1 {
                        *least -= 1;
                    }
                }
                let wider = lay_out(&sizes);
                let recoding = Recoding::between(&layout, &wider, format!("round {round}"));
                let mut translated = vec![7; 3];
                recoding.translate(&state, &mut translated);
                assert_eq!(translated, packed(&wider, &counts), "round {round}");
                let mut again = Vec::new();
                through_bytes(&recoding).translate(&state, &mut again);
                assert_eq!(again, translated);
                (layout, state) = (wider, translated);
            }
        }
    }

    #[test]
    fn a_tail_stays_as_it_is() {
        let sizes: Vec<(u8, i64)> = (0..40).map(|number| (1 + (number % 7) as u8, number - 9)).collect();
        let wider = sizes.iter().map(|&(bits, least)| (bits + 1, least - 1));
        let (old, new) = (Layout::in_words(sizes.iter().copied()), Layout::in_words(wider));
        let below = Recoding::between(&old, &new, "wider".into());
        let state = packed(&old, &numbers(&old, 3));
        let mut expected = Vec::new();
        below.translate(&state, &mut expected);
        for tail in [&[][..], &[Slot::MAX], &[1, 0, 0x8000_0001]] {
            let above = through_bytes(&below.with_tail(tail.len()));
            assert_eq!(above.reason, below.reason);
            let mut translated = vec![7; 3];
            above.translate(&[&state, tail].concat(), &mut translated);
            assert_eq!(translated, [&expected, tail].concat());
        }
    }

    #[test]
    fn neighbours_move_together() {
        let layout = |bits: u8| Layout::in_words([(bits, 0)].into_iter().chain([(1, 0); 200]));
        let recoding = Recoding::between(&layout(1), &layout(2), "a bit more".into());
        assert!(recoding.moves.len() < 12, "{} moves for 201 fields", recoding.moves.len());
        let other = Recoding::between(&layout(1), &layout(3), "a bit more".into());
        assert_ne!(recoding, other);
    }

    #[test]
    fn a_number_without_bits_gets_its_field() {
        let pairs = [(Field::constant(9), Field::new(1, 4, 7, 2)), (Field::new(0, 0, 32, 0), Field::new(0, 0, 32, -1))];
        let recoding = through_bytes(&Recoding::new(1, 2, "more".into(), pairs));
        let mut new = Vec::new();
        recoding.translate(&[4], &mut new);
        assert_eq!(new, [5, 7 << 4]);
    }

    #[test]
    fn bytes_that_lie_are_refused() {
        let field = |slot, bits| Field::new(slot, 0, bits, 0);
        let bytes = |from: usize, to: usize, moves: &[(Field, Field)]| {
            let moves = moves.iter().map(|&(from, to)| FieldMove { from, to }).collect();
            let recoding = Recoding { from: Width::Fixed(from), to: Width::Fixed(to), reason: "r".into(), moves };
            let mut bytes = Vec::new();
            recoding.write(&mut bytes);
            bytes
        };
        let error = |bytes: Vec<u8>| Recoding::read(&mut Reader::new(&bytes)).expect_err("a lie");
        assert_eq!(error(bytes(1, 1, &[(field(1, 3), field(0, 3))])), "a field is outside of its state");
        assert_eq!(error(bytes(1, 1, &[(field(0, 3), field(0, 33))])), "a field is outside of its state");
        let twice = [(field(0, 3), field(0, 3)), (field(0, 1), Field::new(0, 2, 1, 0))];
        assert_eq!(error(bytes(1, 1, &twice)), "two fields overlap");
        let good = bytes(2, 3, &[(field(0, 3), field(1, 4)), (field(1, 20), field(0, 20))]);
        for length in 0..good.len() {
            assert!(Recoding::read(&mut Reader::new(&good[..length])).is_err(), "cut to {length}");
        }
        // Whatever is read can be applied.
        for seed in 0..20_000u64 {
            let mut bytes = good.clone();
            for change in 0..1 + seed % 3 {
                let random = mix(seed * 3 + change);
                let at = random as usize % bytes.len();
                bytes[at] ^= 1 << (random >> 32 & 7);
            }
            if let Ok(recoding) = Recoding::read(&mut Reader::new(&bytes)) {
                let old = vec![u32::MAX; Recoding::slots(recoding.from)];
                recoding.translate(&old, &mut Vec::new());
            }
        }
    }
}
