//! Which fields to widen before they ask for it.
//!
//! In: which fields outgrew their widths, widening after widening. Out: further fields to widen with them. Every
//! widening translates all states; where fields outgrow the same width one after the other, translating for each of
//! them alone would make a run quadratic. So after [`FEW`] widenings of fields of one width, neighbours of this width
//! are widened too: one, two, four, and so on.
//!
//! What stays true: of one width there are at most `FEW` widenings and a logarithmic number in the number of fields.
//! Where at most `FEW` happen, no field gets a bit that it has not asked for; so a few counters that grow and grow do
//! not make others grow.

/// Widenings of fields of one width that each widen only the fields that outgrew it.
const FEW: u32 = 32;

/// How often fields of each width were outgrown.
#[derive(Debug, Default)]
pub struct Ahead {
    /// By width in bits.
    widenings: Vec<u32>,
}

impl Ahead {
    /// Widens by one bit, but not beyond `most` bits, fields near those in `outgrown`. `bits` are the widths of all
    /// fields; those in `outgrown` are given with the widths that they had, and have their new widths already.
    pub fn widen(&mut self, bits: &mut [u8], outgrown: &[(usize, u8)], most: u8) {
        let mut done: Vec<u8> = Vec::new();
        for &(place, width) in outgrown {
            if done.contains(&width) {
                continue;
            }
            done.push(width);
            let index = usize::from(width);
            self.widenings.resize(self.widenings.len().max(index + 1), 0);
            self.widenings[index] += 1;
            let Some(beyond) = self.widenings[index].checked_sub(FEW + 1) else { continue };
            let number = 1usize.checked_shl(beyond).unwrap_or(usize::MAX);
            if width >= most {
                continue;
            }
            let mut near: Vec<usize> = (0..bits.len()).filter(|&other| bits[other] == width).collect();
            near.sort_by_key(|&other| place.abs_diff(other));
            for other in near.into_iter().take(number) {
                bits[other] += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields outgrow every width from 1 on, one field after the other.
    fn widenings(fields: usize, widest: u8) -> (usize, Vec<u8>) {
        let mut ahead = Ahead::default();
        let mut bits = vec![1; fields];
        let mut widenings = 0;
        for width in 1..widest {
            for place in 0..fields {
                if bits[place] == width {
                    bits[place] += 1;
                    ahead.widen(&mut bits, &[(place, width)], 63);
                    widenings += 1;
                }
            }
        }
        (widenings, bits)
    }

    #[test]
    fn widenings_are_logarithmic_in_the_number_of_fields() {
        for (fields, widest, most) in [(5, 2, 5), (20, 2, 20), (100, 2, 39), (10_000, 2, 46), (10_000, 5, 184)] {
            let (widenings, bits) = widenings(fields, widest);
            assert!(widenings <= most, "{fields} fields of up to {widest} bits: {widenings} widenings");
            assert!(bits.iter().all(|&bits| bits == widest), "{fields} fields of up to {widest} bits: {bits:?}");
        }
    }

    #[test]
    fn a_few_counters_that_grow_leave_other_fields_alone() {
        let mut ahead = Ahead::default();
        let mut bits = vec![1; 100];
        for width in 1..60 {
            for counter in (0..100).step_by(9) {
                bits[counter] += 1;
                ahead.widen(&mut bits, &[(counter, width)], 63);
            }
        }
        assert_eq!(bits.iter().filter(|&&bits| bits > 1).count(), 12);
    }

    #[test]
    fn no_field_gets_more_bits_than_allowed() {
        let mut ahead = Ahead::default();
        let mut bits = vec![62; 100];
        for place in 0..50 {
            bits[place] = 63;
            ahead.widen(&mut bits, &[(place, 62)], 62);
        }
        assert_eq!(bits.iter().filter(|&&bits| bits == 63).count(), 50);
    }
}
