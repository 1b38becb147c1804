//! Where each place's count lies in a packed state.
//!
//! In: how many bits each place needs. Out: fields in 64-bit words, words as pairs of
//! slots. What stays true:
//!
//! * I1: no field crosses a word, so that adding to one field of a word never disturbs
//!   another as long as no count leaves its field.
//! * I2: bits that belong to no field are zero, so that equal markings have equal slots.
//! * I3: a place that no transition changes takes no bits.

use deltamark_core::Slot;

/// The place of one count in a packed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Which word.
    pub word: u32,
    /// The lowest bit.
    pub shift: u8,
    /// How many bits; 0 for a place whose count never changes.
    pub bits: u8,
    /// The count of a place that takes no bits.
    pub constant: u64,
}

impl Field {
    /// The largest count the field can hold.
    pub fn limit(self) -> u64 {
        if self.bits == 0 { self.constant } else { (1 << self.bits) - 1 }
    }

    /// The count, out of the slots of a state.
    #[inline]
    pub fn read(self, slots: &[Slot]) -> u64 {
        if self.bits == 0 {
            return self.constant;
        }
        self.of_word(word(slots, self.word as usize))
    }

    /// The count, out of the word it lies in; the field takes bits.
    #[inline]
    pub fn of_word(self, word: u64) -> u64 {
        (word >> self.shift) & ((1 << self.bits) - 1)
    }

    /// Writes a count that fits into words that are zero there.
    fn put(self, words: &mut [u64], count: u64) {
        debug_assert!(count <= self.limit());
        if self.bits > 0 {
            words[self.word as usize] |= count << self.shift;
        }
    }
}

/// Word `index` of a state; the upper half of the last one may be missing.
#[inline]
pub(crate) fn word(slots: &[Slot], index: usize) -> u64 {
    let low = u64::from(slots[2 * index]);
    match slots.get(2 * index + 1) {
        Some(&high) => low | u64::from(high) << 32,
        None => low,
    }
}

/// Writes the words of a state as slots.
#[inline]
pub(crate) fn store_words(words: &[u64], slots: &mut [Slot]) {
    for (pair, &word) in slots.chunks_mut(2).zip(words) {
        pair[0] = word as Slot;
        if let Some(high) = pair.get_mut(1) {
            *high = (word >> 32) as Slot;
        }
    }
}

/// How many bits a count needs; a place that changes has at least one.
pub(crate) fn bits_for(count: u64) -> u8 {
    (64 - count.leading_zeros()).max(1) as u8
}

/// The most bits a field may take. By adding weights of 32 bits it takes 2^31 steps to get there; a run ends then.
pub(crate) const MAX_BITS: u8 = 63;

/// Where every place's count lies.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// One field a place.
    pub fields: Vec<Field>,
    /// How many words a state takes.
    pub words: usize,
    /// How many slots a state takes: twice the words, or one less.
    pub slots: usize,
}

impl Layout {
    /// Lays out fields of these widths (0 for places that never change, whose counts are
    /// `constants`). Fields keep the order of places: the next field goes into the last
    /// word where it fits, or else into the earliest earlier word that has room.
    pub fn new(bits: &[u8], constants: &[u64]) -> Self {
        let mut used: Vec<u8> = vec![0];
        let mut first_with_room = 0;
        let mut fields = Vec::with_capacity(bits.len());
        for (&bits, &constant) in bits.iter().zip(constants) {
            if bits == 0 {
                fields.push(Field { word: 0, shift: 0, bits, constant });
                continue;
            }
            assert!(bits <= MAX_BITS);
            let last = used.len() - 1;
            let fits = |word: &usize| used[*word] + bits <= 64;
            let word = Some(last).filter(fits).or_else(|| (first_with_room..last).find(fits)).unwrap_or(last + 1);
            if word == used.len() {
                used.push(0);
            }
            fields.push(Field { word: word as u32, shift: used[word], bits, constant });
            used[word] += bits;
            while first_with_room < used.len() && used[first_with_room] == 64 {
                first_with_room += 1;
            }
        }
        let words = used.len();
        let slots = 2 * words - usize::from(used[words - 1] <= 32);
        Layout { fields, words, slots }
    }

    /// Packs a marking whose counts all fit.
    pub fn pack(&self, counts: impl Iterator<Item = u64>, out: &mut Vec<Slot>) {
        let mut words = vec![0; self.words];
        for (field, count) in self.fields.iter().zip(counts) {
            field.put(&mut words, count);
        }
        out.clear();
        out.resize(self.slots, 0);
        store_words(&words, out);
    }

    /// The counts of a packed marking, place by place.
    pub fn unpack<'a>(&'a self, state: &'a [Slot]) -> impl Iterator<Item = u64> + 'a {
        self.fields.iter().map(|field| field.read(state))
    }
}

/// How states of one layout read in another whose fields are no narrower.
///
/// Neighbouring fields that stay neighbours move together, so that a translation takes a few
/// shifts a word, however many places there are.
pub(crate) struct Moves {
    slots: usize,
    moves: Vec<Move>,
}

/// Bits that move together.
struct Move {
    from: Field,
    to: Field,
}

impl Moves {
    /// From the fields of `old` to those of `new`.
    pub fn new(old: &Layout, new: &Layout) -> Self {
        let mut moves: Vec<Move> = Vec::new();
        let pairs = old.fields.iter().zip(&new.fields).filter(|(from, _)| from.bits > 0);
        for (&from, &to) in pairs {
            let follows = |run: &Field, next: &Field| run.word == next.word && run.shift + run.bits == next.shift;
            match moves.last_mut() {
                Some(last)
                    if follows(&last.from, &from) && follows(&last.to, &to) && last.from.bits + from.bits < 64 =>
                {
                    last.from.bits += from.bits;
                    last.to.bits += from.bits;
                }
                // A field that got wider keeps its count in its low bits.
                _ => moves.push(Move { from, to: Field { bits: from.bits, ..to } }),
            }
        }
        Moves { slots: new.slots, moves }
    }

    /// Replaces the contents of `new` by the translation of `old`.
    pub fn translate(&self, old: &[Slot], new: &mut Vec<Slot>) {
        new.clear();
        new.resize(self.slots, 0);
        for Move { from, to } in &self.moves {
            let value = from.read(old) << to.shift;
            let low = 2 * to.word as usize;
            new[low] |= value as Slot;
            if let Some(high) = new.get_mut(low + 1) {
                *high |= (value >> 32) as Slot;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_packing_at_every_width() {
        let bits: Vec<u8> = (0..200).map(|place| (place * 7 % 64) as u8).collect();
        let constants: Vec<u64> = (0..200).collect();
        let layout = Layout::new(&bits, &constants);
        let counts: Vec<u64> = layout.fields.iter().map(|field| field.limit()).collect();
        let mut state = Vec::new();
        layout.pack(counts.iter().copied(), &mut state);
        assert_eq!(layout.unpack(&state).collect::<Vec<_>>(), counts);
        let total: usize = bits.iter().map(|&bits| usize::from(bits)).sum();
        assert!(layout.slots * 32 < total + total / 5, "{} slots for {total} bits", layout.slots);
    }

    #[test]
    fn counts_survive_a_change_of_layout() {
        let constants = [0; 150];
        let mut bits: Vec<u8> = (0..150).map(|place| (place * 5 % 9) as u8).collect();
        let mut layout = Layout::new(&bits, &constants);
        let counts: Vec<u64> =
            layout.fields.iter().enumerate().map(|(place, field)| field.limit() & (place as u64 * 77)).collect();
        let mut state = Vec::new();
        layout.pack(counts.iter().copied(), &mut state);
        for round in 0..40 {
            for bits in bits.iter_mut().skip(round).step_by(37).filter(|bits| **bits > 0) {
                *bits += (round % 3) as u8;
            }
            bits[149] = 63;
            let wider = Layout::new(&bits, &constants);
            let mut translated = Vec::new();
            Moves::new(&layout, &wider).translate(&state, &mut translated);
            assert_eq!(wider.unpack(&translated).collect::<Vec<_>>(), counts, "round {round}");
            (layout, state) = (wider, translated);
        }
    }

    #[test]
    fn the_last_word_may_be_half_a_word() {
        assert_eq!(Layout::new(&[1; 65], &[0; 65]).slots, 3);
        assert_eq!(Layout::new(&[3; 21], &[0; 21]).slots, 2);
        assert_eq!(Layout::new(&[1; 32], &[0; 32]).slots, 1);
        assert_eq!(Layout::new(&[0; 4], &[0; 4]).slots, 1);
    }
}
