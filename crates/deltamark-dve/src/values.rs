//! An abstract domain: small sets and intervals of numbers.
//!
//! In: the sets of operands. Out: the set of the result. What stays true: a result contains every number that the
//! operator yields for numbers of the operands (divisions by zero yield none); it may contain more.
//!
//! A set is a short list, or an interval. Lists keep sentinels apart: a byte that is 0, 1 or, for "none", 255 is
//! three numbers, not 256.

use crate::arithmetic;
use crate::ir::{Binary, Unary};

/// The maximum length of a list.
const FEW: usize = 24;
/// The maximum number of pairs of operands that are enumerated.
const PAIRS: usize = FEW * FEW;

/// A set of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// These, ascending.
    Few(Vec<i32>),
    /// From the first to the second, the first being less.
    Span(i32, i32),
}

impl Values {
    pub const ANY: Values = Values::Span(i32::MIN, i32::MAX);

    pub fn none() -> Self {
        Values::Few(Vec::new())
    }

    pub fn one(value: i32) -> Self {
        Values::Few(vec![value])
    }

    pub fn truth(no: bool, yes: bool) -> Self {
        Values::Few([(no, 0), (yes, 1)].into_iter().filter(|&(may, _)| may).map(|(_, value)| value).collect())
    }

    /// All from `least` to `most`.
    pub fn span(least: i64, most: i64) -> Self {
        if least < i64::from(i32::MIN) || most > i64::from(i32::MAX) {
            return Self::ANY;
        }
        if most - least < FEW as i64 {
            return Values::Few((least as i32..=most as i32).collect());
        }
        Values::Span(least as i32, most as i32)
    }

    fn list(mut values: Vec<i32>) -> Self {
        values.sort_unstable();
        values.dedup();
        match (values.first(), values.last()) {
            (Some(&least), Some(&most)) if values.len() > FEW => Values::Span(least, most),
            _ => Values::Few(values),
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Values::Few(list) if list.is_empty())
    }

    /// The interval hull.
    pub fn hull(&self) -> Option<(i32, i32)> {
        match self {
            Values::Few(list) => Some((*list.first()?, *list.last()?)),
            Values::Span(least, most) => Some((*least, *most)),
        }
    }

    /// The number, if there is only one.
    pub fn single(&self) -> Option<i32> {
        match self {
            Values::Few(list) if list.len() == 1 => Some(list[0]),
            _ => None,
        }
    }

    pub fn contains(&self, value: i32) -> bool {
        match self {
            Values::Few(list) => list.binary_search(&value).is_ok(),
            Values::Span(least, most) => (*least..=*most).contains(&value),
        }
    }

    /// Whether all numbers are between these two.
    pub fn within(&self, least: i32, most: i32) -> bool {
        self.hull().is_none_or(|hull| least <= hull.0 && hull.1 <= most)
    }

    pub fn may_be_true(&self) -> bool {
        !self.is_empty() && self.single() != Some(0)
    }

    pub fn may_be_false(&self) -> bool {
        self.contains(0)
    }

    pub fn union(&self, other: &Values) -> Values {
        match (self, other) {
            (Values::Few(one), Values::Few(two)) => Self::list(one.iter().chain(two).copied().collect()),
            _ => match (self.hull(), other.hull()) {
                (Some(one), Some(two)) => Values::Span(one.0.min(two.0), one.1.max(two.1)),
                (_, None) => self.clone(),
                (None, _) => other.clone(),
            },
        }
    }

    /// The numbers between these two.
    pub fn clip(&self, least: i32, most: i32) -> Values {
        match self {
            Values::Few(list) => Values::Few(list.iter().copied().filter(|v| (least..=most).contains(v)).collect()),
            Values::Span(from, to) if *from.max(&least) <= *to.min(&most) => {
                Self::span((*from.max(&least)).into(), (*to.min(&most)).into())
            }
            Values::Span(..) => Self::none(),
        }
    }

    fn intersect(&self, other: &Values) -> Values {
        match (self, other) {
            (Values::Few(list), _) => Values::Few(list.iter().copied().filter(|&v| other.contains(v)).collect()),
            (_, Values::Few(list)) => Values::Few(list.iter().copied().filter(|&v| self.contains(v)).collect()),
            (_, Values::Span(least, most)) => self.clip(*least, *most),
        }
    }

    pub fn without(&self, value: i32) -> Values {
        match self {
            Values::Few(list) => Values::Few(list.iter().copied().filter(|&v| v != value).collect()),
            Values::Span(least, most) if *least == value => Self::span(i64::from(*least) + 1, (*most).into()),
            Values::Span(least, most) if *most == value => Self::span((*least).into(), i64::from(*most) - 1),
            Values::Span(..) => self.clone(),
        }
    }

    /// The numbers for which the comparison with some number of `other` is true.
    pub fn compared(&self, comparison: Binary, other: &Values) -> Values {
        let Some((least, most)) = other.hull() else { return Self::none() };
        match comparison {
            Binary::Equal => self.intersect(other),
            Binary::Differ => other.single().map_or_else(|| self.clone(), |value| self.without(value)),
            Binary::Less if most == i32::MIN => Self::none(),
            Binary::Less => self.clip(i32::MIN, most - 1),
            Binary::AtMost => self.clip(i32::MIN, most),
            Binary::More if least == i32::MAX => Self::none(),
            Binary::More => self.clip(least + 1, i32::MAX),
            Binary::AtLeast => self.clip(least, i32::MAX),
            _ => self.clone(),
        }
    }

    pub fn unary(&self, operator: Unary) -> Values {
        match (self, operator) {
            (Values::Few(list), _) => {
                Self::list(list.iter().map(|&value| arithmetic::unary(operator, value)).collect())
            }
            (_, Unary::Not) => Self::truth(self.may_be_true(), self.may_be_false()),
            (Values::Span(least, most), Unary::Complement) => Values::Span(!most, !least),
            (Values::Span(least, most), Unary::Negate) => Self::span(-i64::from(*most), -i64::from(*least)),
        }
    }

    /// The results of an operator for all pairs, if there are few.
    fn pairs(&self, other: &Values, operator: impl Fn(i32, i32) -> Option<i32>) -> Option<Values> {
        let (Values::Few(left), Values::Few(right)) = (self, other) else { return None };
        if left.len() * right.len() > PAIRS {
            return None;
        }
        let results = left.iter().flat_map(|&l| right.iter().map(move |&r| (l, r)));
        Some(Self::list(results.filter_map(|(l, r)| operator(l, r)).collect()))
    }

    pub fn binary(&self, operator: Binary, other: &Values) -> Values {
        if let Some(values) = self.pairs(other, |left, right| Some(arithmetic::binary(operator, left, right))) {
            return values;
        }
        let (Some(left), Some(right)) = (self.hull(), other.hull()) else { return Self::none() };
        let (a, b) = ((i64::from(left.0), i64::from(left.1)), (i64::from(right.0), i64::from(right.1)));
        let natural = left.0 >= 0 && right.0 >= 0;
        match operator {
            Binary::Add => Self::span(a.0 + b.0, a.1 + b.1),
            Binary::Subtract => Self::span(a.0 - b.1, a.1 - b.0),
            Binary::Multiply => corners(a, b, |x, y| x.saturating_mul(y)),
            Binary::ShiftLeft if left.0 >= 0 && right.0 >= 0 && right.1 < 32 => Self::span(a.0 << b.0, a.1 << b.1),
            Binary::ShiftLeft => Self::ANY,
            Binary::ShiftRight if right.0 >= 0 && right.1 < 32 => corners(a, b, |x, y| x >> y),
            Binary::ShiftRight => Self::span(a.0.min(0), a.1.max(0)),
            Binary::BitAnd => match (left.0 >= 0, right.0 >= 0) {
                (true, true) => Self::span(0, a.1.min(b.1)),
                (true, false) => Self::span(0, a.1),
                (false, true) => Self::span(0, b.1),
                (false, false) => Self::ANY,
            },
            Binary::BitOr | Binary::BitXor if natural => {
                let most = (left.1 | right.1) as u32;
                Self::span(0, (1i64 << (u32::BITS - most.leading_zeros())) - 1)
            }
            Binary::BitOr | Binary::BitXor => Self::ANY,
            Binary::Equal | Binary::Differ => {
                let (may_equal, may_differ) = (!self.intersect(other).is_empty(), true);
                match operator {
                    Binary::Equal => Self::truth(may_differ, may_equal),
                    _ => Self::truth(may_equal, may_differ),
                }
            }
            Binary::Less => Self::truth(left.1 >= right.0, left.0 < right.1),
            Binary::AtMost => Self::truth(left.1 > right.0, left.0 <= right.1),
            Binary::More => Self::truth(left.0 <= right.1, left.1 > right.0),
            Binary::AtLeast => Self::truth(left.0 < right.1, left.1 >= right.0),
        }
    }

    pub fn divide(&self, remainder: bool, other: &Values) -> Values {
        if let Some(values) = self.pairs(other, |left, right| arithmetic::divide(remainder, left, right)) {
            return values;
        }
        let (Some(left), Some(right)) = (self.hull(), other.hull()) else { return Self::none() };
        let (a, b) = ((i64::from(left.0), i64::from(left.1)), (i64::from(right.0), i64::from(right.1)));
        let largest = a.0.abs().max(a.1.abs());
        if remainder {
            let below = b.0.abs().max(b.1.abs()) - 1;
            let most = largest.min(below.max(0));
            return Self::span(if a.0 < 0 { -most } else { 0 }, if a.1 > 0 { most } else { 0 });
        }
        if b.0 > 0 { corners(a, b, |x, y| x / y) } else { Self::span(-largest, largest) }
    }
}

/// The interval of an operator that is monotone in each operand: its extremes are in the corners.
fn corners(a: (i64, i64), b: (i64, i64), operator: impl Fn(i64, i64) -> i64) -> Values {
    let all = [operator(a.0, b.0), operator(a.0, b.1), operator(a.1, b.0), operator(a.1, b.1)];
    let (least, most) = all.iter().fold((i64::MAX, i64::MIN), |(l, m), &v| (l.min(v), m.max(v)));
    Values::span(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A set, and one of its numbers.
    fn values() -> impl Strategy<Value = (Values, i32)> {
        let number = prop_oneof![-3..4i32, -300..300i32, any::<i32>(), Just(i32::MIN), Just(i32::MAX), 0..40i32];
        let few =
            proptest::collection::vec(number.clone(), 1..6).prop_map(|list| (Values::list(list.clone()), list[0]));
        let span = (number.clone(), number.clone(), number).prop_map(|(a, b, c)| {
            let mut sorted = [a, b, c];
            sorted.sort_unstable();
            (Values::span(sorted[0].into(), sorted[2].into()), sorted[1])
        });
        prop_oneof![few, span]
    }

    const OPERATORS: [Binary; 14] = [
        Binary::Add,
        Binary::Subtract,
        Binary::Multiply,
        Binary::ShiftLeft,
        Binary::ShiftRight,
        Binary::BitAnd,
        Binary::BitOr,
        Binary::BitXor,
        Binary::Equal,
        Binary::Differ,
        Binary::Less,
        Binary::AtMost,
        Binary::More,
        Binary::AtLeast,
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn results_lie_in_the_set_of_results((a, x) in values(), (b, y) in values()) {
            for operator in OPERATORS {
                let result = arithmetic::binary(operator, x, y);
                prop_assert!(a.binary(operator, &b).contains(result), "{operator:?} {a:?} {b:?}: {result}");
                if result != 0 {
                    prop_assert!(a.compared(operator, &b).contains(x), "{operator:?} {a:?} {b:?} keeps {x}");
                }
            }
            for remainder in [false, true] {
                if let Some(result) = arithmetic::divide(remainder, x, y) {
                    prop_assert!(a.divide(remainder, &b).contains(result), "{remainder} {a:?} {b:?}: {result}");
                }
            }
            for operator in [Unary::Negate, Unary::Complement, Unary::Not] {
                let result = arithmetic::unary(operator, x);
                prop_assert!(a.unary(operator).contains(result), "{operator:?} {a:?}: {result}");
            }
            prop_assert!(a.union(&b).contains(x) && a.union(&b).contains(y));
            prop_assert!(a.without(y).contains(x) || x == y);
            prop_assert!(a.clip(y, i32::MAX).contains(x) == (x >= y));
        }
    }
}
