//! # The idea
//! States encoded as bytes: a difference as the list of changed slots, a full state as its
//! difference from one fixed state, the *reference*. Constant parts of a model cost nothing in
//! either form.
//!
//! In: a state, and the state it is encoded against. Out: bytes, and back. Invariants: decoding
//! inverts encoding; a slot past the end of a state counts as 0, so states of different lengths
//! have differences too.
//!
//! # Layout in memory
//! ```text
//! list    change change change … padding       bits, the low ones first; less than a byte of padding
//! change  slot | class | value                 ⌈log2 length⌉ bits (3 at least), 2 bits, and
//!                class 0: 3 bits               ± 1 … 4
//!                class 1: 8 bits               ± 1 … 128
//!                class 2: 1 + 5 + 10 bits      ± an odd number of 11 bits, shifted
//!                class 3: 32 bits              anything
//! dense   groups | group group …               a bit for each 16 slots: whether any differs
//! group   width | 16 × width bits              slots ^ reference
//! ```
//! A change is an increment of the old value, because that is shorter than the new value: counters
//! move by one, and fields that share a slot with others leave those unchanged. (Bit flips were
//! tried: they depend on the old value, so one action has many lists.) It can be applied and
//! reverted, so a state can be built forwards, and a candidate can be walked back, step by step, to
//! a full state.
//!
//! A change has at least 8 bits, so a shorter remainder ends a list.

use deltamark_core::Slot;
use deltamark_core::packed::bits_of;

/// Bytes that must follow what is read: words are read whole.
pub(crate) const SLACK: usize = 8;
/// Slots of a group of the dense form.
const GROUP: usize = 16;
/// The bits of a value, by class.
const VALUE_BITS: [u32; 4] = [3, 8, 16, 32];

/// How many bits name one of this many slots.
#[inline(always)]
fn slot_bits(slots: usize) -> u32 {
    bits_of(slots.saturating_sub(1) as u64).max(3)
}

/// How a slot changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Which slot.
    slot: u32,
    /// What is added to it.
    add: Slot,
}

impl Change {
    /// Makes the change, in a state that has the slot.
    #[inline(always)]
    pub fn make(self, state: &mut [Slot]) {
        let slot = &mut state[self.slot as usize];
        *slot = slot.wrapping_add(self.add);
    }

    /// Undoes the change. Returns whether the state has the slot.
    #[inline(always)]
    pub fn undo(self, state: &mut [Slot]) -> bool {
        let slot = state.get_mut(self.slot as usize);
        if let Some(slot) = slot {
            *slot = slot.wrapping_sub(self.add);
            return true;
        }
        false
    }
}

/// The class and the value that lead from `old` to `new`, which differ.
#[inline(always)]
fn class(old: Slot, new: Slot) -> (u32, u32) {
    let add = new.wrapping_sub(old) as i32;
    let (size, negative) = (add.unsigned_abs(), u32::from(add < 0));
    // 1, -1, 2, -2 … as 0, 1, 2, 3 …
    if size <= 4 {
        return (0, (size - 1) << 1 | negative);
    }
    if size <= 128 {
        return (1, (size - 1) << 1 | negative);
    }
    let shift = size.trailing_zeros();
    let odd = size >> shift;
    if odd < 1 << 11 { (2, negative | shift << 1 | odd >> 1 << 6) } else { (3, add as u32) }
}

/// The bits at `bit` of `bytes`, 57 of them at least.
#[inline(always)]
fn bits_at(bytes: &[u8], bit: usize) -> u64 {
    let word: [u8; 8] = bytes[bit / 8..bit / 8 + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(word) >> (bit % 8)
}

/// The changes of a list.
#[derive(Clone, Debug)]
pub(crate) struct Changes<'a> {
    bytes: &'a [u8],
    bit: usize,
    end: usize,
    slot_bits: u32,
}

impl<'a> Changes<'a> {
    /// Reads the list of `len` bytes at the beginning of `bytes`, which go on for [`SLACK`]
    /// more, between states of at most `slots` slots.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], len: usize, slots: usize) -> Self {
        Changes { bytes, bit: 0, end: len * 8, slot_bits: slot_bits(slots) }
    }
}

impl Iterator for Changes<'_> {
    type Item = Change;

    #[inline(always)]
    fn next(&mut self) -> Option<Change> {
        if self.bit + 8 > self.end {
            return None;
        }
        let word = bits_at(self.bytes, self.bit);
        let slot = (word & ((1 << self.slot_bits) - 1)) as u32;
        let class = (word >> self.slot_bits & 3) as usize;
        let value_at = self.bit + self.slot_bits as usize + 2;
        let bits = VALUE_BITS[class];
        self.bit = value_at + bits as usize;
        // A list that is read with states of another length in mind makes no sense.
        if self.bit > self.end {
            return None;
        }
        let mut value = word >> (self.slot_bits + 2);
        if self.slot_bits + 2 + bits > 57 {
            value = bits_at(self.bytes, value_at);
        }
        let value = (value & ((1 << bits) - 1)) as u32;
        let size = match class {
            0 | 1 => (value >> 1) + 1,
            2 => (value >> 6 << 1 | 1) << (value >> 1 & 31),
            _ => return Some(Change { slot, add: value }),
        };
        Some(Change { slot, add: if value & 1 == 0 { size } else { size.wrapping_neg() } })
    }
}

/// Writes bits to bytes.
struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    held: u64,
    count: u32,
}

impl Writer<'_> {
    /// Appends the low `count` bits of a value that has no others, 32 at most.
    #[inline(always)]
    fn put(&mut self, value: u64, count: u32) {
        self.held |= value << self.count;
        self.count += count;
        if self.count >= 32 {
            self.bytes.extend_from_slice(&(self.held as u32).to_le_bytes());
            self.held >>= 32;
            self.count -= 32;
        }
    }

    fn finish(self) {
        let bytes = self.count.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.held.to_le_bytes()[..bytes]);
    }
}

/// Calls `found` with each slot in which two states of at most `slots` slots differ, until it
/// says `false`.
#[inline(always)]
fn differing(old: &[Slot], new: &[Slot], slots: usize, mut found: impl FnMut(usize, Slot, Slot) -> bool) {
    const STRIDE: usize = 16;
    let both = old.len().min(new.len()).min(slots);
    let (olds, news) = (old[..both].chunks_exact(STRIDE), new[..both].chunks_exact(STRIDE));
    let whole = both / STRIDE * STRIDE;
    for (at, (old, new)) in (0..).step_by(STRIDE).zip(olds.zip(news)) {
        // The compiler compares the stride as a whole.
        if (0..STRIDE).fold(0, |sum, slot| sum | (old[slot] ^ new[slot])) != 0 {
            for slot in 0..STRIDE {
                if old[slot] != new[slot] && !found(at + slot, old[slot], new[slot]) {
                    return;
                }
            }
        }
    }
    for slot in whole..slots {
        let value = |state: &[Slot]| state.get(slot).copied().unwrap_or(0);
        let (old, new) = (value(old), value(new));
        if old != new && !found(slot, old, new) {
            return;
        }
    }
}

/// Appends the list of changes that lead from `old` to `new` in the first `slots` slots. Returns
/// whether it has at most `most` bytes; if not, `out` is as it was.
pub(crate) fn write_list(old: &[Slot], new: &[Slot], slots: usize, most: usize, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let slot_bits = slot_bits(slots);
    let mut writer = Writer { bytes: out, held: 0, count: 0 };
    let mut fits = true;
    differing(old, new, slots, |slot, old, new| {
        let (class, value) = class(old, new);
        writer.put(slot as u64 | u64::from(class) << slot_bits, slot_bits + 2);
        writer.put(u64::from(value), VALUE_BITS[class as usize]);
        fits = writer.bytes.len() - start <= most;
        fits
    });
    writer.finish();
    fits &= out.len() - start <= most;
    if !fits {
        out.truncate(start);
    }
    fits
}

/// Appends `state` in the dense form.
pub(crate) fn write_dense(reference: &[Slot], state: &[Slot], out: &mut Vec<u8>) {
    let start = out.len();
    let groups = state.len().div_ceil(GROUP);
    out.resize(start + groups.div_ceil(8), 0);
    for (group, slots) in state.chunks(GROUP).enumerate() {
        let mut flips = [0; GROUP];
        for (slot, flip) in flips[..slots.len()].iter_mut().enumerate() {
            *flip = slots[slot] ^ reference.get(group * GROUP + slot).copied().unwrap_or(0);
        }
        let width = bits_of(flips.iter().fold(0, |sum, flip| sum | flip));
        if width > 0 {
            out[start + group / 8] |= 1 << (group % 8);
            out.push(width as u8);
            let mut writer = Writer { bytes: out, held: 0, count: 0 };
            flips.iter().take(slots.len()).for_each(|&flip| writer.put(flip.into(), width));
            writer.finish();
        }
    }
}

/// Appends a state of `slots` slots that was written in the dense form to `state`; [`SLACK`]
/// more bytes follow it.
pub(crate) fn read_dense(reference: &[Slot], bytes: &[u8], slots: usize, state: &mut Vec<Slot>) {
    let start = state.len();
    let shared = slots.min(reference.len());
    state.extend_from_slice(&reference[..shared]);
    state.resize(start + slots, 0);
    xor_dense(bytes, &mut state[start..]);
}

/// Turns the reference into the state that was written in the dense form, and back.
fn xor_dense(bytes: &[u8], state: &mut [Slot]) {
    let mut at = state.len().div_ceil(GROUP).div_ceil(8);
    for (group, slots) in state.chunks_mut(GROUP).enumerate() {
        if bytes[group / 8] >> (group % 8) & 1 == 0 {
            continue;
        }
        let width = usize::from(bytes[at]).min(32);
        let mask = (1u64 << width) - 1;
        for (slot, value) in slots.iter_mut().enumerate() {
            *value ^= (bits_at(bytes, (at + 1) * 8 + slot * width) & mask) as Slot;
        }
        at += 1 + (slots.len() * width).div_ceil(8);
    }
}

/// Whether a state is the one that was written in the dense form. The state is of no use after.
pub(crate) fn same_dense(reference: &[Slot], bytes: &[u8], state: &mut [Slot]) -> bool {
    xor_dense(bytes, state);
    let shared = state.len().min(reference.len());
    state[..shared] == reference[..shared] && state[shared..].iter().all(|&slot| slot == 0)
}

/// Appends a number as a varint (LEB128).
#[inline(always)]
pub(crate) fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A number, and how many bytes it takes.
#[inline(always)]
pub(crate) fn read_number(bytes: &[u8]) -> (u64, usize) {
    let mut number = u64::from(bytes[0] & 127);
    let mut len = 1;
    while bytes[len - 1] & 128 != 0 {
        number |= u64::from(bytes[len] & 127) << (7 * len);
        len += 1;
    }
    (number, len)
}

/// A number that may be negative as one that is not.
#[inline(always)]
pub(crate) fn fold(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// The number that was [folded](fold).
#[inline(always)]
pub(crate) fn unfold(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Values of all sizes; many are 0, and many are close to others.
    fn slot() -> impl Strategy<Value = Slot> {
        (0..4u8, any::<Slot>(), 0..32u32).prop_map(|(kind, value, shift)| match kind {
            0 => 0,
            1 => value % 8,
            _ => value >> shift,
        })
    }

    /// A state, and one that differs from it in some slots, perhaps in length too.
    fn pair() -> impl Strategy<Value = (Vec<Slot>, Vec<Slot>)> {
        (vec(slot(), 0..300), vec((any::<usize>(), slot(), any::<bool>()), 0..12), prop::option::of(0..300usize))
            .prop_map(|(old, changes, length)| {
                let mut new = old.clone();
                new.resize(length.unwrap_or(old.len()), 5);
                for (at, value, relative) in changes {
                    if !new.is_empty() {
                        let at = at % new.len();
                        new[at] = if relative { new[at].wrapping_add(value) } else { value };
                    }
                }
                (old, new)
            })
    }

    fn padded(state: &[Slot], slots: usize) -> Vec<Slot> {
        let mut state = state.to_vec();
        state.resize(slots, 0);
        state
    }

    /// A few cases under Miri, which is slow and has no files for those that fail.
    pub(crate) fn cases() -> ProptestConfig {
        let usual = ProptestConfig::default();
        if cfg!(miri) { ProptestConfig { cases: 2, failure_persistence: None, ..usual } } else { usual }
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn a_list_leads_from_one_state_to_the_other_and_back((old, new) in pair()) {
            let slots = old.len().max(new.len());
            let mut bytes = vec![7];
            prop_assert!(write_list(&old, &new, slots, usize::MAX, &mut bytes));
            let len = bytes.len() - 1;
            bytes.extend([0xff; SLACK]);
            let (mut forwards, mut back) = (padded(&old, slots), padded(&new, slots));
            let mut last = None;
            for change in Changes::new(&bytes[1..], len, slots) {
                prop_assert!(last < Some(change.slot), "slots ascend");
                last = Some(change.slot);
                change.make(&mut forwards);
                prop_assert!(change.undo(&mut back));
            }
            prop_assert_eq!(forwards, padded(&new, slots));
            prop_assert_eq!(back, padded(&old, slots));
        }

        #[test]
        fn a_list_that_would_be_too_long_leaves_nothing((old, new) in pair(), most in 0..40usize) {
            let slots = old.len().max(new.len());
            let (mut whole, mut cut) = (Vec::new(), vec![1, 2]);
            prop_assert!(write_list(&old, &new, slots, usize::MAX, &mut whole));
            let fits = write_list(&old, &new, slots, most, &mut cut);
            prop_assert_eq!(fits, whole.len() <= most);
            prop_assert_eq!(&cut[2..], if fits { &whole[..] } else { &[] });
        }

        #[test]
        fn the_dense_form_gives_the_state_back((reference, state) in pair()) {
            let mut bytes = Vec::new();
            write_dense(&reference, &state, &mut bytes);
            let groups = state.len().div_ceil(GROUP);
            prop_assert!(bytes.len() <= state.len() * 4 + groups + groups.div_ceil(8));
            bytes.extend([0xff; SLACK]);
            let mut read = vec![9];
            read_dense(&reference, &bytes, state.len(), &mut read);
            prop_assert_eq!(&read[1..], &state[..]);
            prop_assert!(same_dense(&reference, &bytes, &mut read[1..]));
            let mut other = state.clone();
            if let Some(slot) = other.last_mut() {
                *slot ^= 1 << 31;
                prop_assert!(!same_dense(&reference, &bytes, &mut other));
            }
        }

        #[test]
        fn numbers_come_back(number in any::<u64>(), shift in 0..64u32, signed in any::<i64>()) {
            let mut bytes = Vec::new();
            write_number(number >> shift, &mut bytes);
            prop_assert_eq!(read_number(&bytes), (number >> shift, bytes.len()));
            prop_assert_eq!(unfold(fold(signed >> shift)), signed >> shift);
        }
    }

    #[test]
    fn changes_of_all_classes_have_the_bits_they_are_said_to_have() {
        let cases =
            [(7, 8, 0), (7, 3, 0), (7, 2, 1), (0, 128, 1), (0, 129, 2), (0, 0x07ff_0000, 2), (1, 0x1234_5678, 3)];
        for (old, new, expected) in cases {
            let mut bytes = Vec::new();
            assert_eq!(class(old, new).0, expected, "{old} to {new}");
            assert!(write_list(&[old], &[new], 1, usize::MAX, &mut bytes));
            assert_eq!(bytes.len(), (5 + VALUE_BITS[expected as usize] as usize).div_ceil(8));
        }
        assert_eq!([0, 1, 8, 9, 200, 256, 257].map(slot_bits), [3, 3, 3, 4, 8, 8, 9]);
    }
}
