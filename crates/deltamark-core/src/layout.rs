//! Where the numbers of a packed state are.
//!
//! In: how many bits each number needs. Out: a [`Field`] for each, and the number of slots. Invariants:
//!
//! * I1: fields do not overlap, and none reaches beyond two neighbouring slots, so one load reads it.
//! * I2: bits that belong to no field are zero, so equal states have equal slots.
//! * I3: a number that never changes takes no bits: its field holds it as a constant.
//!
//! ```text
//! slots     [ 0          | 1          | 2          ]   32 bits each
//! words     [ 0                       | 1          ]   pairs of slots; the last may be half a word
//! fields    [ a | b | c  |  d  |  e   | f | g      ]   value = least + bits
//! ```
//!
//! Languages pack in different ways. Nets add to all fields of a word at once, so their fields cross slots
//! but no words ([`Layout::in_words`]). Others read and write one field at a time, so theirs stay within a
//! slot ([`Layout::in_slots`], [`FirstFit`]).

use crate::Slot;
use crate::packed::bits_of;

/// Some bits of a packed state, and which number they hold: [`least`](Self::least) plus their value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    slot: u32,
    shift: u8,
    bits: u8,
    /// As many ones as there are bits.
    mask: u64,
    least: i64,
}

impl Field {
    /// The most bits of a field: values less [`least`](Self::least) are below 2^63.
    pub const MAX_BITS: u8 = 63;

    /// `bits` bits from bit `shift` of slot `slot` on, whose value is counted from `least`.
    ///
    /// # Panics
    /// If the shift is not below 32, or the bits reach beyond the next slot: a bug of the caller.
    pub const fn new(slot: u32, shift: u8, bits: u8, least: i64) -> Self {
        assert!(shift < 32 && bits <= Self::MAX_BITS && shift + bits <= 64, "I1");
        Field { slot, shift, bits, mask: (1 << bits) - 1, least }
    }

    /// The field of a number that never changes.
    pub const fn constant(number: i64) -> Self {
        Field::new(0, 0, 0, number)
    }

    /// The slot of the lowest bit; of no meaning if there are no bits.
    #[inline]
    pub const fn slot(self) -> u32 {
        self.slot
    }

    /// The lowest bit within the slot.
    #[inline]
    pub const fn shift(self) -> u8 {
        self.shift
    }

    /// The number of bits; 0 for a number that never changes.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.bits
    }

    /// The bits of the field, moved to the bottom of a word.
    #[inline]
    pub const fn mask(self) -> u64 {
        self.mask
    }

    /// The number that is stored as zero; the number itself if there are no bits.
    #[inline]
    pub const fn least(self) -> i64 {
        self.least
    }

    /// The largest number that it can hold.
    #[inline]
    pub const fn most(self) -> i64 {
        self.least.wrapping_add(self.mask as i64)
    }

    /// The word of the lowest bit.
    #[inline]
    pub const fn word(self) -> u32 {
        self.slot / 2
    }

    /// The lowest bit within the word.
    #[inline]
    pub const fn word_shift(self) -> u8 {
        (self.slot % 2) as u8 * 32 + self.shift
    }

    /// Its bits, out of the word that they are in.
    #[inline]
    pub const fn of_word(self, word: u64) -> u64 {
        word >> self.word_shift() & self.mask
    }

    /// Whether it reaches into the next slot.
    #[inline]
    const fn crosses(self) -> bool {
        self.shift + self.bits > 32
    }

    /// The number of slots up to its end.
    const fn reach(self) -> usize {
        match self.bits {
            0 => 0,
            _ if self.crosses() => self.slot as usize + 2,
            _ => self.slot as usize + 1,
        }
    }

    /// The number of its lowest bit within the state.
    const fn first_bit(self) -> u64 {
        self.slot as u64 * 32 + self.shift as u64
    }

    /// Whether its bits fit a state of `slots` slots.
    pub(crate) const fn fits(self, slots: usize) -> bool {
        self.reach() <= slots
    }

    /// The bits that it takes of a state, by their numbers.
    pub(crate) fn range(self) -> std::ops::Range<u64> {
        self.first_bit()..self.first_bit() + u64::from(self.bits)
    }

    /// The number that a state holds.
    #[inline]
    pub fn read(self, state: &[Slot]) -> i64 {
        if self.bits == 0 {
            return self.least;
        }
        let mut word = u64::from(state[self.slot as usize]);
        if self.crosses() {
            word |= u64::from(state[self.slot as usize + 1]) << 32;
        }
        self.least.wrapping_add((word >> self.shift & self.mask) as i64)
    }

    /// Makes a state hold a number, which fits.
    #[inline]
    pub fn write(self, state: &mut [Slot], number: i64) {
        let code = self.code(number);
        debug_assert!(code <= self.mask, "{number} fits {self:?}");
        self.put(state, code);
    }

    /// The bits that stand for a number; more than the [mask](Self::mask) if it does not fit.
    #[inline]
    pub const fn code(self, number: i64) -> u64 {
        number.wrapping_sub(self.least) as u64
    }

    /// Replaces its bits in a state by the lowest of `code`.
    #[inline]
    pub fn put(self, state: &mut [Slot], code: u64) {
        if self.bits == 0 {
            return;
        }
        let (clear, set) = (self.mask << self.shift, (code & self.mask) << self.shift);
        let low = &mut state[self.slot as usize];
        *low = *low & !(clear as Slot) | set as Slot;
        if self.crosses() {
            let high = &mut state[self.slot as usize + 1];
            *high = *high & !((clear >> 32) as Slot) | (set >> 32) as Slot;
        }
    }

    /// [`read`](Self::read) for a field within one slot of a state that has slots.
    #[inline]
    pub fn read_slot(self, state: &[Slot]) -> u32 {
        debug_assert!(!self.crosses());
        (state[self.slot as usize] >> self.shift & self.mask as u32).wrapping_add(self.least as u32)
    }

    /// [`write`](Self::write) for a field of at least one bit within one slot.
    #[inline]
    pub fn write_slot(self, state: &mut [Slot], number: u32) {
        debug_assert!(self.bits > 0 && !self.crosses());
        let slot = &mut state[self.slot as usize];
        let code = number.wrapping_sub(self.least as u32);
        *slot = *slot & !((self.mask as u32) << self.shift) | code << self.shift;
    }
}

/// The number of bits that numbers from 0 to `largest` need.
pub fn bits_for(largest: u64) -> u8 {
    bits_of(largest) as u8
}

/// Word `index` of a state; the upper half of the last one may be missing.
#[inline]
pub fn word(slots: &[Slot], index: usize) -> u64 {
    let low = u64::from(slots[2 * index]);
    match slots.get(2 * index + 1) {
        Some(&high) => low | u64::from(high) << 32,
        None => low,
    }
}

/// Where every number of a state is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// A field for each number.
    pub fields: Vec<Field>,
    /// The number of slots of a state.
    pub slots: usize,
}

impl Layout {
    /// Fields of these sizes that cross no word, each with its least number, in order: the next field goes into
    /// the last word where it fits, or else into the earliest earlier word that has room. There is at least one
    /// slot.
    pub fn in_words(sizes: impl IntoIterator<Item = (u8, i64)>) -> Self {
        let mut used: Vec<u8> = vec![0];
        let mut first_with_room = 0;
        let mut fields = Vec::new();
        for (bits, least) in sizes {
            if bits == 0 {
                fields.push(Field::constant(least));
                continue;
            }
            let last = used.len() - 1;
            let fits = |word: &usize| used[*word] + bits <= 64;
            let word = Some(last).filter(fits).or_else(|| (first_with_room..last).find(fits)).unwrap_or(last + 1);
            if word == used.len() {
                used.push(0);
            }
            let slot = 2 * word as u32 + u32::from(used[word] / 32);
            fields.push(Field::new(slot, used[word] % 32, bits, least));
            used[word] += bits;
            while first_with_room < used.len() && used[first_with_room] == 64 {
                first_with_room += 1;
            }
        }
        let words = used.len();
        Layout { fields, slots: 2 * words - usize::from(used[words - 1] <= 32) }
    }

    /// Fields of these sizes that cross no slot, each with its least number, in order, each in the first slot
    /// that has room. There are at least `slots` slots, and at least one.
    pub fn in_slots(sizes: impl IntoIterator<Item = (u8, i64)>, slots: usize) -> Self {
        let mut bins = FirstFit::default();
        let field = |(bits, least)| match bits {
            0 => Field::constant(least),
            bits => bins.put(bits, least),
        };
        let fields = sizes.into_iter().map(field).collect();
        Layout { fields, slots: bins.slots().max(slots).max(1) }
    }

    /// The number of words of a state.
    pub fn words(&self) -> usize {
        self.slots.div_ceil(2)
    }

    /// Replaces the contents of `out` by the state with these numbers, which all fit.
    pub fn pack(&self, numbers: impl Iterator<Item = i64>, out: &mut Vec<Slot>) {
        out.clear();
        out.resize(self.slots, 0);
        self.fields.iter().zip(numbers).for_each(|(field, number)| field.write(out, number));
    }

    /// The numbers of a state.
    pub fn unpack<'a>(&'a self, state: &'a [Slot]) -> impl Iterator<Item = i64> + 'a {
        self.fields.iter().map(|field| field.read(state))
    }
}

/// Slots that are being filled, each field in the first one that has room.
#[derive(Clone, Debug)]
pub struct FirstFit {
    used: Vec<u8>,
    /// For each size of a field, a slot before which none has room for it. Slots only fill up, so these only
    /// grow, and packing takes time in proportion to the number of fields.
    from: [usize; Slot::BITS as usize + 1],
}

impl Default for FirstFit {
    fn default() -> Self {
        FirstFit { used: Vec::new(), from: [0; Slot::BITS as usize + 1] }
    }
}

impl FirstFit {
    /// A field of at most 32 bits.
    pub fn put(&mut self, bits: u8, least: i64) -> Field {
        let from = &mut self.from[usize::from(bits)];
        while self.used.get(*from).is_some_and(|used| u32::from(used + bits) > Slot::BITS) {
            *from += 1;
        }
        let slot = *from;
        if slot == self.used.len() {
            self.used.push(0);
        }
        let field = Field::new(slot as u32, self.used[slot], bits, least);
        self.used[slot] += bits;
        field
    }

    /// The number of slots that have been begun.
    pub fn slots(&self) -> usize {
        self.used.len()
    }

    /// The number of bits that are used of each slot.
    pub fn used(&self) -> &[u8] {
        &self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_least(bits: &[u8]) -> impl Iterator<Item = (u8, i64)> + '_ {
        bits.iter().map(|&bits| (bits, 0))
    }

    /// Every second field at its largest number, the others at their least: neighbours must not disturb each other.
    fn survives(layout: &Layout) {
        for parity in 0..2 {
            let edge = |(index, field): (usize, &Field)| if index % 2 == parity { field.most() } else { field.least() };
            let numbers: Vec<i64> = layout.fields.iter().enumerate().map(edge).collect();
            let mut state = Vec::new();
            layout.pack(numbers.iter().copied(), &mut state);
            assert_eq!(layout.unpack(&state).collect::<Vec<_>>(), numbers);
            for (field, &number) in layout.fields.iter().zip(&numbers) {
                let word = if field.bits() > 0 { word(&state, field.word() as usize) } else { 0 };
                if field.word_shift() + field.bits() <= 64 {
                    assert_eq!(field.of_word(word), field.code(number));
                }
                if field.shift() + field.bits() <= 32 {
                    assert_eq!(field.read_slot(&state), number as u32);
                }
            }
        }
    }

    #[test]
    fn numbers_survive_packing_at_every_width() {
        let sizes = |widest: u8| {
            (0..200).map(move |number: i64| ((number * 7 % (i64::from(widest) + 1)) as u8, number * 5 - 300))
        };
        for layout in [Layout::in_words(sizes(63)), Layout::in_slots(sizes(32), 0)] {
            survives(&layout);
            let total: usize = layout.fields.iter().map(|field| usize::from(field.bits())).sum();
            assert!(layout.slots * 32 < total + total / 5, "{} slots for {total} bits", layout.slots);
        }
    }

    #[test]
    fn a_field_is_written_over_what_was_there() {
        let fields = [Field::new(0, 3, 5, 7), Field::new(0, 31, 33, -4), Field::new(1, 0, 63, 0), Field::constant(9)];
        for field in fields {
            for number in [field.least(), field.most()] {
                let mut state = vec![u32::MAX; 3];
                field.write(&mut state, number);
                assert_eq!(field.read(&state), number, "{field:?}");
                let zeros: u32 = state.iter().map(|slot| slot.count_zeros()).sum();
                assert_eq!(zeros, if number == field.least() { u32::from(field.bits()) } else { 0 }, "{field:?}");
            }
        }
    }

    #[test]
    fn the_last_word_may_be_half_a_word() {
        let cases: [(&[u8], usize); 5] = [(&[1; 65], 3), (&[3; 21], 2), (&[1; 32], 1), (&[0; 4], 1), (&[63, 1, 2], 3)];
        for (bits, slots) in cases {
            let layout = Layout::in_words(without_least(bits));
            assert_eq!((layout.slots, layout.words()), (slots, slots.div_ceil(2)));
        }
    }

    #[test]
    fn a_field_goes_to_the_first_slot_with_room() {
        let sizes: Vec<u8> = (0..4000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 27) as u8 + 1).collect();
        let mut used: Vec<u8> = Vec::new();
        let layout = Layout::in_slots(without_least(&sizes), 0);
        for (field, bits) in layout.fields.iter().zip(sizes) {
            // Found by looking at all.
            let slot = used.iter().position(|used| used + bits <= 32).unwrap_or(used.len());
            if slot == used.len() {
                used.push(0);
            }
            assert_eq!(*field, Field::new(slot as u32, used[slot], bits, 0));
            used[slot] += bits;
        }
        assert_eq!(layout.slots, used.len());
    }

    #[test]
    fn numbers_need_their_bits() {
        assert_eq!([0, 1, 2, 3, 4, 255, 256, u64::MAX].map(bits_for), [0, 1, 2, 2, 3, 8, 9, 64]);
    }
}
