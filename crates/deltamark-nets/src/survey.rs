//! Largest, smallest and total counts of 64 markings at once.
//!
//! In: bit planes, lowest bit first, and a mask of the markings that count. Out: numbers. What stays true: nothing
//! is unpacked; the work is a few instructions a bit of a marking, whatever the number of markings.

/// The least and the greatest of the numbers in these planes, at most 64 of them. From the highest bit down, the
/// remaining candidates are those that agree with the answer so far.
pub(crate) fn extremes(planes: &[u64], live: u64) -> (u64, u64) {
    let (mut lowest, mut highest) = (live, live);
    let (mut least, mut most) = (0, 0);
    for &plane in planes.iter().rev() {
        least = least << 1 | u64::from(lowest & !plane == 0);
        lowest = if lowest & !plane == 0 { lowest } else { lowest & !plane };
        most = most << 1 | u64::from(highest & plane != 0);
        highest = if highest & plane == 0 { highest } else { highest & plane };
    }
    (least, most)
}

/// Enough for the sum of 2^32 numbers of 64 bits.
const PLANES: usize = 96;

/// Sums of numbers, one for each of 64 markings, as bit planes.
pub(crate) struct Sums {
    planes: [u64; PLANES],
    /// What is added to all of them.
    constant: u128,
}

impl Sums {
    /// All zero.
    pub fn new() -> Self {
        Sums { planes: [0; PLANES], constant: 0 }
    }

    /// Adds to every marking's sum its number in these planes.
    #[inline]
    pub fn add(&mut self, planes: &[u64]) {
        for (bit, &plane) in planes.iter().enumerate() {
            let mut carry = plane;
            for sum in &mut self.planes[bit..] {
                if carry == 0 {
                    break;
                }
                (*sum, carry) = (*sum ^ carry, *sum & carry);
            }
        }
    }

    /// Adds the same to all sums.
    pub fn add_to_all(&mut self, number: u64) {
        self.constant += u128::from(number);
    }

    /// The largest sum of the markings in `live`, saturating.
    pub fn most(&self, live: u64) -> i64 {
        let (low, high) = self.planes.split_at(PLANES / 2);
        // Those with the largest upper half, and among them the largest lower half.
        let (_, upper) = extremes(high, live);
        let same = |(bit, &plane): (usize, &u64)| if upper >> bit & 1 == 1 { plane } else { !plane };
        let chosen = high.iter().enumerate().map(same).fold(live, |chosen, agrees| chosen & agrees);
        let (_, lower) = extremes(low, chosen);
        let most = (u128::from(upper) << (PLANES / 2) | u128::from(lower)) + self.constant;
        i64::try_from(most).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;

    /// The planes of numbers of this many bits, one for each marking.
    fn planes(numbers: &[u64], bits: usize) -> Vec<u64> {
        let plane = |bit| numbers.iter().enumerate().map(|(lane, number)| (number >> bit & 1) << lane).sum();
        (0..bits).map(plane).collect()
    }

    fn numbers(seed: u64, bits: usize) -> Vec<u64> {
        (0..64).map(|lane| mix(seed * 64 + lane) >> (64 - bits)).collect()
    }

    fn chosen(numbers: &[u64], live: u64) -> impl Iterator<Item = u64> + '_ {
        numbers.iter().enumerate().filter(move |(lane, _)| live >> lane & 1 == 1).map(|(_, &number)| number)
    }

    #[test]
    fn extremes_are_those_of_the_numbers_one_by_one() {
        for (seed, bits) in (1..64).flat_map(|bits| [(1, bits), (2, bits)]) {
            let numbers = numbers(seed, bits);
            for live in [u64::MAX, 1, 1 << 63, 0xff00, mix(seed) | 1] {
                let expected = (chosen(&numbers, live).min().unwrap(), chosen(&numbers, live).max().unwrap());
                assert_eq!(extremes(&planes(&numbers, bits), live), expected, "{bits} bits, {live:x}");
            }
        }
    }

    #[test]
    fn sums_are_those_of_the_numbers_one_by_one() {
        for (count, bits) in [(1, 1), (500, 1), (40, 3), (9, 17), (3, 50), (2, 62), (3, 63), (7, 63)] {
            let mut sums = Sums::new();
            let mut expected = [5u64; 64].map(u128::from);
            sums.add_to_all(5);
            for seed in 0..count {
                let numbers = numbers(seed, bits);
                sums.add(&planes(&numbers, bits));
                expected.iter_mut().zip(&numbers).for_each(|(sum, &number)| *sum += u128::from(number));
            }
            for live in [u64::MAX, 1 << 7, 0xf0f0] {
                let most = (0..64).filter(|lane| live >> lane & 1 == 1).map(|lane| expected[lane]).max().unwrap();
                let most = i64::try_from(most).unwrap_or(i64::MAX);
                assert_eq!(sums.most(live), most, "{count} numbers of {bits} bits");
            }
        }
    }
}
