//! Arithmetic on 64 numbers at once.
//!
//! In: two arrays of numbers, one for each state of a block. Out: their sum, product and so on, and a mask of the
//! lanes that failed. What stays true: nothing panics, whatever the numbers are; where a bit is set the number is
//! arbitrary.
//!
//! Loops run over all 64 lanes without branches, so that they are vectorised; only after an overflow is a second
//! pass made to find the lanes.

use deltamark_core::BLOCK;

use crate::ast::Comparison;

/// A number for each state of a block.
pub(crate) type Lanes = [i64; BLOCK];

/// The mask of lanes in which the test is true.
#[inline]
pub(crate) fn mask(test: impl Fn(usize) -> bool) -> u64 {
    (0..BLOCK).fold(0, |mask, index| mask | (u64::from(test(index)) << index))
}

/// Applies `operation` (a result, and a number that is negative if it overflowed).
#[inline]
fn apply(left: &mut Lanes, right: &Lanes, operation: impl Fn(i64, i64) -> (i64, i64)) -> u64 {
    let before = *left;
    let mut wrong = 0;
    for (left, &right) in left.iter_mut().zip(right) {
        let (result, sign) = operation(*left, right);
        *left = result;
        wrong |= sign;
    }
    if wrong >= 0 {
        return 0;
    }
    mask(|index| operation(before[index], right[index]).1 < 0)
}

/// `left += right`.
pub(crate) fn add(left: &mut Lanes, right: &Lanes) -> u64 {
    apply(left, right, |a, b| {
        let sum = a.wrapping_add(b);
        (sum, (a ^ sum) & (b ^ sum))
    })
}

/// `left -= right`.
pub(crate) fn subtract(left: &mut Lanes, right: &Lanes) -> u64 {
    apply(left, right, |a, b| {
        let difference = a.wrapping_sub(b);
        (difference, (a ^ b) & (a ^ difference))
    })
}

/// `left *= right`.
pub(crate) fn multiply(left: &mut Lanes, right: &Lanes) -> u64 {
    apply(left, right, |a, b| {
        let (product, overflow) = a.overflowing_mul(b);
        (product, -i64::from(overflow))
    })
}

/// `left /= right`. Fails where `right` is 0, and for the one quotient that overflows.
pub(crate) fn divide(left: &mut Lanes, right: &Lanes) -> u64 {
    let mut wrong = 0;
    for (index, (left, &right)) in left.iter_mut().zip(right).enumerate() {
        match left.checked_div(right) {
            Some(quotient) => *left = quotient,
            None => wrong |= 1 << index,
        }
    }
    wrong
}

/// `left %= right`. Fails where `right` is 0.
pub(crate) fn remainder(left: &mut Lanes, right: &Lanes) -> u64 {
    let mut wrong = 0;
    for (index, (left, &right)) in left.iter_mut().zip(right).enumerate() {
        match right {
            0 => wrong |= 1 << index,
            // Also right for the smallest number % -1, which is 0.
            _ => *left = left.wrapping_rem(right),
        }
    }
    wrong
}

/// `lanes = -lanes`.
pub(crate) fn negate(lanes: &mut Lanes) -> u64 {
    let wrong = mask(|index| lanes[index] == i64::MIN);
    for number in lanes {
        *number = number.wrapping_neg();
    }
    wrong
}

/// The mask of lanes in which the comparison holds.
pub(crate) fn compare(comparison: Comparison, left: &Lanes, right: impl Fn(usize) -> i64) -> u64 {
    match comparison {
        Comparison::Equal => mask(|index| left[index] == right(index)),
        Comparison::Differ => mask(|index| left[index] != right(index)),
        Comparison::Less => mask(|index| left[index] < right(index)),
        Comparison::AtMost => mask(|index| left[index] <= right(index)),
        Comparison::More => mask(|index| left[index] > right(index)),
        Comparison::AtLeast => mask(|index| left[index] >= right(index)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: [i64; 8] = [i64::MIN, i64::MIN + 1, -1, 0, 1, 2, i64::MAX - 1, i64::MAX];

    /// All pairs of edge cases: 64 of them, one a lane.
    fn pairs() -> (Lanes, Lanes) {
        (std::array::from_fn(|index| EDGES[index / 8]), std::array::from_fn(|index| EDGES[index % 8]))
    }

    #[test]
    fn lanes_agree_with_checked_arithmetic() {
        type Case = (fn(&mut Lanes, &Lanes) -> u64, fn(i64, i64) -> Option<i64>);
        let cases: [Case; 6] = [
            (add, i64::checked_add),
            (subtract, i64::checked_sub),
            (multiply, i64::checked_mul),
            (divide, i64::checked_div),
            (remainder, |a, b| (b != 0).then(|| (i128::from(a) % i128::from(b)) as i64)),
            (|lanes, _| negate(lanes), |a, _| a.checked_neg()),
        ];
        for (number, (lanes, single)) in cases.into_iter().enumerate() {
            let (left, right) = pairs();
            let mut result = left;
            let wrong = lanes(&mut result, &right);
            for index in 0..BLOCK {
                let got = (wrong >> index & 1 == 0).then_some(result[index]);
                assert_eq!(got, single(left[index], right[index]), "case {number}: {} {}", left[index], right[index]);
            }
        }
    }
}
