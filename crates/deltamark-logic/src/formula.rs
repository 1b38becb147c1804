//! What a compiled expression depends on.
//!
//! In: a program. Out: the [`Formula`] that a state must satisfy for it to be true, or false. What stays true: where the program
//! may have no value, which counts as an answer too, or where its structure is beyond what a formula expresses, the
//! result is a function of all that it reads, of which nothing else is stated.

use deltamark_core::{Formula, Observable};

use crate::ast::{Arithmetic, Comparison};
use crate::program::{Compiled, Junction, Operation};

/// The most atoms: equivalences double what they compare.
const MOST_ATOMS: usize = 1 << 12;
/// The largest sum of factors, and the largest number. Values have 32 bits, so sums stay below 2^63.
const LARGEST: i64 = 1 << 30;

/// A sum of observables with factors, and a number.
type Sum = (Vec<(Observable, i64)>, i64);

/// The formula that is satisfied where the expression is true, if `wanted`, or is not.
pub(crate) fn formula(compiled: &Compiled, wanted: bool) -> Option<Formula> {
    if compiled.numeric {
        return None;
    }
    let known = structure(&compiled.operations);
    Some(match known {
        Some(formula) if wanted => formula,
        Some(formula) => formula.negated(),
        None => {
            let read = compiled.operations.iter().filter_map(|operation| match *operation {
                Operation::Read(observable) | Operation::ReadTruth(observable) => Some(Formula::Of(vec![observable])),
                Operation::Deadlock => Some(Formula::Deadlock(true)),
                _ => None,
            });
            Formula::Some(read.collect()).obscured()
        }
    })
}

fn structure(operations: &[Operation]) -> Option<Formula> {
    // With each formula the number of its atoms.
    let mut truths: Vec<(Formula, usize)> = Vec::new();
    let mut sums: Vec<Sum> = Vec::new();
    for &operation in operations {
        match operation {
            Operation::Truth(truth) => truths.push((Formula::constant(truth), 1)),
            Operation::Deadlock => truths.push((Formula::Deadlock(true), 1)),
            Operation::ReadTruth(observable) => truths.push((Formula::Is(observable, true), 1)),
            Operation::Not => {
                let (formula, atoms) = truths.pop()?;
                truths.push((formula.negated(), atoms));
            }
            Operation::Either => join(&mut truths, Junction::Or)?,
            Operation::Fold(junction, _) => join(&mut truths, junction)?,
            Operation::Enter(..) | Operation::Leave => {}
            Operation::Same => {
                let ((right, more), (left, atoms)) = (truths.pop()?, truths.pop()?);
                let atoms = 2 * (atoms + more);
                if atoms > MOST_ATOMS {
                    return None;
                }
                let both = Formula::All(vec![left.clone(), right.clone()]);
                let neither = Formula::All(vec![left.negated(), right.negated()]);
                truths.push((Formula::Some(vec![both, neither]), atoms));
            }
            Operation::Number(number) => sums.push((Vec::new(), number)),
            Operation::Read(observable) => sums.push((vec![(observable, 1)], 0)),
            Operation::Negate => {
                let sum = sums.pop()?;
                sums.push(times(sum, -1)?);
            }
            Operation::Arithmetic(arithmetic) => {
                let (right, left) = (sums.pop()?, sums.pop()?);
                sums.push(match arithmetic {
                    Arithmetic::Add => plus(left, right)?,
                    Arithmetic::Subtract => plus(left, times(right, -1)?)?,
                    Arithmetic::Multiply if right.0.is_empty() => times(left, right.1)?,
                    Arithmetic::Multiply if left.0.is_empty() => times(right, left.1)?,
                    _ => return None,
                });
            }
            Operation::Compare(comparison) => {
                let (right, left) = (sums.pop()?, sums.pop()?);
                truths.push((compare(comparison, plus(left, times(right, -1)?)?)?, 2));
            }
            Operation::CompareWith(comparison, number) => {
                let left = sums.pop()?;
                truths.push((compare(comparison, plus(left, (Vec::new(), number.checked_neg()?))?)?, 2));
            }
        }
    }
    truths.pop().map(|(formula, _)| formula)
}

fn join(truths: &mut Vec<(Formula, usize)>, junction: Junction) -> Option<()> {
    let ((right, more), (left, atoms)) = (truths.pop()?, truths.pop()?);
    let flat = |formula| match (formula, junction) {
        (Formula::All(parts), Junction::And) | (Formula::Some(parts), Junction::Or) => parts,
        (other, _) => vec![other],
    };
    let mut parts = flat(left);
    parts.extend(flat(right));
    let joined = if junction == Junction::And { Formula::All(parts) } else { Formula::Some(parts) };
    truths.push((joined, atoms + more));
    Some(())
}

fn plus((mut terms, number): Sum, (more, other): Sum) -> Option<Sum> {
    for (observable, factor) in more {
        match terms.iter_mut().find(|term| term.0 == observable) {
            Some(term) => term.1 += factor,
            None => terms.push((observable, factor)),
        }
    }
    within((terms, number.checked_add(other)?))
}

fn times((terms, number): Sum, by: i64) -> Option<Sum> {
    let product = |(observable, factor): (Observable, i64)| Some((observable, factor.checked_mul(by)?));
    within((terms.into_iter().map(product).collect::<Option<_>>()?, number.checked_mul(by)?))
}

fn within((terms, number): Sum) -> Option<Sum> {
    let total = terms.iter().try_fold(0i64, |total, term| total.checked_add(term.1.checked_abs()?))?;
    (total <= LARGEST && number.checked_abs()? <= LARGEST).then_some((terms, number))
}

/// The comparison of a sum with 0.
fn compare(comparison: Comparison, sum: Sum) -> Option<Formula> {
    let at_least = |(terms, number): Sum, least: i64| Formula::AtLeast(terms, least - number);
    let negative = times(sum.clone(), -1)?;
    Some(match comparison {
        Comparison::AtLeast => at_least(sum, 0),
        Comparison::More => at_least(sum, 1),
        Comparison::AtMost => at_least(negative, 0),
        Comparison::Less => at_least(negative, 1),
        Comparison::Equal => Formula::All(vec![at_least(sum, 0), at_least(negative, 0)]),
        Comparison::Differ => Formula::Some(vec![at_least(sum, 1), at_least(negative, 1)]),
    })
}
