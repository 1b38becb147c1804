//! Hashes of states.
//!
//! In: slots. Out: 64 well-mixed bits. Invariant: equal states have equal hashes on every machine
//! and in every run, so runs are reproducible.
//!
//! A system may define its own hash (see [`System::hash`](crate::System::hash)), for example one
//! that is linear in the state, so that an action updates it by one addition. Such a hash has weak
//! low bits; stores pass it through [`mix`].

use crate::{Slot, States, Width};

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiplies to 128 bits and folds the halves together.
#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The default hash of a state: folded multiplication, two slots at a time.
#[inline]
pub fn slots(state: &[Slot]) -> u64 {
    let mut hash = SEED ^ (state.len() as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let pairs = state.chunks_exact(2);
    if let [last] = pairs.remainder() {
        hash = fold(hash ^ u64::from(*last), 0xa076_1d64_78bd_642f);
    }
    for pair in pairs {
        let word = u64::from(pair[0]) | u64::from(pair[1]) << 32;
        hash = fold(hash ^ word, 0xe703_7ed1_a0b4_28db).wrapping_add(SEED);
    }
    hash
}

/// The provided hashes of the states of a list of fixed width, from number `start` on.
pub(crate) fn all(states: &States, start: usize, out: &mut [u64]) {
    /// With the width known, several states are hashed side by side.
    fn narrow<const W: usize>(slots: &[Slot], out: &mut [u64]) {
        let (states, _) = slots.as_chunks::<W>();
        for (state, hash) in states.iter().zip(out) {
            *hash = self::slots(state);
        }
    }
    let Width::Fixed(width) = states.width() else { unreachable!("only lists of fixed width are hashed as a whole") };
    let slots = &states.slots()[start * width..];
    match width {
        0 => out.fill(self::slots(&[])),
        1 => narrow::<1>(slots, out),
        2 => narrow::<2>(slots, out),
        3 => narrow::<3>(slots, out),
        4 => narrow::<4>(slots, out),
        5 => narrow::<5>(slots, out),
        6 => narrow::<6>(slots, out),
        7 => narrow::<7>(slots, out),
        8 => narrow::<8>(slots, out),
        _ => slots.chunks_exact(width).zip(out).for_each(|(state, hash)| *hash = self::slots(state)),
    }
}

/// A bijection of 64-bit words in which every input bit affects all output bits.
#[inline]
pub const fn mix(hash: u64) -> u64 {
    let mut x = hash ^ (hash >> 32);
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

/// The `index`-th word of a fixed pseudo-random sequence, for hash coefficients. The hash of a net is a sum of these:
/// whoever adds something to it takes other numbers.
pub const fn coefficient(index: u64) -> u64 {
    // Odd, so that no coefficient loses information about its own field.
    mix(mix(index.wrapping_add(1)).wrapping_add(SEED)) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn close_states_of_all_lengths_hash_apart() {
        let mut seen = HashSet::new();
        for length in 0..6usize {
            for value in 0..200u32 {
                for place in 0..length {
                    let mut state = vec![0; length];
                    state[place] = value + 1;
                    assert!(seen.insert(slots(&state)), "{state:?}");
                }
            }
        }
    }

    #[test]
    fn mixing_spreads_single_bits() {
        for bit in 0..64 {
            let changed = (mix(12345) ^ mix(12345 ^ (1 << bit))).count_ones();
            assert!((12..=52).contains(&changed), "bit {bit} changes {changed} bits");
        }
    }
}
