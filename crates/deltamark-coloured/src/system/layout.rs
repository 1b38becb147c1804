//! The layout of a coloured net: one field a place, for the number of its marking.
//!
//! In: how many bits each place needs. Out: a [`Layout`] whose fields cross no slot, with free bits given away.

use deltamark_core::{Layout, layout};

/// How many bits numbers below `count` need; a place that changes has at least one.
pub(crate) fn bits_for(count: u32) -> u8 {
    layout::bits_for(count.saturating_sub(1).into()).max(1)
}

/// Fields of these sizes in at least `slots` slots. `constants` are the numbers of places without bits.
pub(crate) fn lay_out(bits: &[u8], constants: &[u32], slots: usize) -> Layout {
    let sizes =
        bits.iter().zip(constants).map(|(&bits, &constant)| (bits, if bits == 0 { constant.into() } else { 0 }));
    Layout::in_slots(sizes, slots)
}

/// The same with a bit more for each of the places in `order`, one after the other and at most twice each, as long
/// as that takes no further slot: what is free anyway may save a translation of all states later.
pub(crate) fn fill(mut bits: Vec<u8>, constants: &[u32], slots: usize, order: &[usize]) -> Layout {
    let slots = lay_out(&bits, constants, slots).slots;
    for &place in order.iter().chain(order) {
        if (1..32).contains(&bits[place]) {
            bits[place] += 1;
            if lay_out(&bits, constants, slots).slots > slots {
                bits[place] -= 1;
            }
        }
    }
    lay_out(&bits, constants, slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_given_away() {
        let layout = fill(vec![20, 10, 0, 30], &[0; 4], 0, &[1, 0, 2, 3]);
        let bits: Vec<u8> = layout.fields.iter().map(|field| field.bits()).collect();
        assert_eq!((layout.slots, bits), (2, vec![21, 11, 0, 32]));
    }

    #[test]
    fn a_field_has_room_for_its_numbers() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(bits_for), [1, 1, 1, 2, 2, 3, 8, 9]);
    }
}
