//! Where each place's marking number lies in a state.
//!
//! In: how many bits each place needs. Out: fields in slots. What stays true: no field crosses
//! a slot; bits that belong to no field are zero; a place that never changes takes no
//! bits.

use deltamark_core::Slot;

/// The place of one number in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Which slot.
    pub slot: u32,
    /// The lowest bit.
    pub shift: u8,
    /// How many bits, at most 32; 0 for a place that never changes.
    pub bits: u8,
    /// The largest number the field can hold, which is also its bits.
    pub limit: u32,
    /// The number of a place that takes no bits.
    pub constant: u32,
}

impl Field {
    /// The number, out of a state.
    #[inline]
    pub fn read(&self, state: &[Slot]) -> u32 {
        if self.bits == 0 { self.constant } else { state[self.slot as usize] >> self.shift & self.limit }
    }

    /// Replaces the number in a state.
    #[inline]
    pub fn write(&self, state: &mut [Slot], number: u32) {
        let slot = &mut state[self.slot as usize];
        *slot = *slot & !(self.limit << self.shift) | number << self.shift;
    }
}

/// How many bits numbers below `count` need; a place that changes has at least one.
pub(crate) fn bits_for(count: u32) -> u8 {
    (32 - count.saturating_sub(1).leading_zeros()).max(1) as u8
}

/// Where every place's number lies.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub fields: Vec<Field>,
    pub slots: usize,
}

impl Layout {
    /// Lays out fields of these widths in the order of places, each in the first slot that has room.
    /// There are at least `least` slots. `constants` are the numbers of places without bits.
    pub fn new(bits: &[u8], constants: &[u32], least: usize) -> Self {
        let mut used: Vec<u8> = vec![0];
        let mut fields = Vec::with_capacity(bits.len());
        for (&bits, &constant) in bits.iter().zip(constants) {
            if bits == 0 {
                fields.push(Field { slot: 0, shift: 0, bits, limit: 0, constant });
                continue;
            }
            let slot = used.iter().position(|&used| used + bits <= 32).unwrap_or(used.len());
            if slot == used.len() {
                used.push(0);
            }
            let limit = u32::MAX >> (32 - bits);
            fields.push(Field { slot: slot as u32, shift: used[slot], bits, limit, constant });
            used[slot] += bits;
        }
        Layout { fields, slots: used.len().max(least) }
    }

    /// Gives the places in `order`, one after the other and at most twice each, a bit more as long as that
    /// takes no further slot: what is free anyway may save a translation of all states later.
    pub fn fill(&mut self, order: &[usize], constants: &[u32]) {
        let mut bits: Vec<u8> = self.fields.iter().map(|field| field.bits).collect();
        for &place in order.iter().chain(order).filter(|&&place| self.fields[place].bits > 0) {
            if bits[place] < 32 {
                bits[place] += 1;
                let wider = Layout::new(&bits, constants, self.slots);
                if wider.slots > self.slots {
                    bits[place] -= 1;
                }
            }
        }
        *self = Layout::new(&bits, constants, self.slots);
    }

    /// Replaces the contents of `out` by the state with these numbers.
    pub fn pack(&self, numbers: &[u32], out: &mut Vec<Slot>) {
        out.clear();
        out.resize(self.slots, 0);
        for (field, &number) in self.fields.iter().zip(numbers).filter(|(field, _)| field.bits > 0) {
            field.write(out, number);
        }
    }

    /// Appends the numbers of a state.
    #[inline]
    pub fn unpack(&self, state: &[Slot], numbers: &mut Vec<u32>) {
        numbers.extend(self.fields.iter().map(|field| field.read(state)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_packing_at_every_width() {
        let bits: Vec<u8> = (0..100).map(|place| (place * 7 % 33) as u8).collect();
        let constants: Vec<u32> = (0..100).collect();
        let layout = Layout::new(&bits, &constants, 0);
        let numbers: Vec<u32> =
            layout.fields.iter().map(|field| if field.bits == 0 { field.constant } else { field.limit }).collect();
        let (mut state, mut read) = (Vec::new(), Vec::new());
        layout.pack(&numbers, &mut state);
        layout.unpack(&state, &mut read);
        assert_eq!(read, numbers);
    }

    #[test]
    fn what_is_free_is_given_away() {
        let constants = [0; 4];
        let mut layout = Layout::new(&[20, 10, 0, 30], &constants, 0);
        layout.fill(&[1, 0, 2, 3], &constants);
        let bits: Vec<u8> = layout.fields.iter().map(|field| field.bits).collect();
        assert_eq!((layout.slots, bits), (2, vec![21, 11, 0, 32]));
    }

    #[test]
    fn a_field_has_room_for_its_numbers() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(bits_for), [1, 1, 1, 2, 2, 3, 8, 9]);
    }
}
