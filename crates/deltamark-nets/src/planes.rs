//! Transposes 64 words into 64 bit planes.
//!
//! In: word `i` of each of 64 states. Out: for each of its bits, one word that holds that
//! bit of all 64 states. The method is the recursive exchange of quadrants (Warren,
//! *Hacker's Delight*, 7-3): six rounds, each of which works on whole words and which
//! the compiler turns into vector instructions.

/// Transposes a matrix of 64 × 64 bits in place: bit `s` of word `b` becomes what bit `b`
/// of word `s` was.
#[inline]
pub(crate) fn transpose(matrix: &mut [u64; 64]) {
    round::<32>(matrix, 0x0000_0000_ffff_ffff);
    round::<16>(matrix, 0x0000_ffff_0000_ffff);
    round::<8>(matrix, 0x00ff_00ff_00ff_00ff);
    round::<4>(matrix, 0x0f0f_0f0f_0f0f_0f0f);
    round::<2>(matrix, 0x3333_3333_3333_3333);
    round::<1>(matrix, 0x5555_5555_5555_5555);
}

#[inline]
fn round<const HALF: usize>(matrix: &mut [u64; 64], mask: u64) {
    for pair in matrix.chunks_exact_mut(2 * HALF) {
        let (low, high) = pair.split_at_mut(HALF);
        for (a, b) in low.iter_mut().zip(high) {
            let exchange = ((*a >> HALF) ^ *b) & mask;
            *a ^= exchange << HALF;
            *b ^= exchange;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;

    #[test]
    fn every_bit_lands_where_it_belongs() {
        let before: [u64; 64] = std::array::from_fn(|row| mix(row as u64 + 1));
        let mut after = before;
        transpose(&mut after);
        for (row, &old) in before.iter().enumerate() {
            for (column, &new) in after.iter().enumerate() {
                assert_eq!(new >> row & 1, old >> column & 1, "bit {column} of word {row}");
            }
        }
    }
}
