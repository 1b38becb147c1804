//! The value of a path formula on an ultimately periodic word, by definition.
//!
//! In: a formula without path quantifiers, and for each position of a lasso which atoms are true. Out: its value at
//! position 0. What stays true: no automaton is involved, so this checks what automata answer. Untils are least
//! fixpoints and releases greatest ones of their one-step unfolding; on a lasso of `n` positions two passes backwards
//! reach them.

use super::pool::{Formula, FormulaId, Pool};
use std::collections::HashMap;

/// The value of `formula` on the word of `len` letters, after whose last one `back` follows. `holds` reads an atom at
/// a position. `None` if the formula has path quantifiers or the word is no lasso.
pub fn holds_on_lasso(
    pool: &Pool,
    formula: FormulaId,
    len: usize,
    back: usize,
    holds: &dyn Fn(u32, usize) -> bool,
) -> Option<bool> {
    if back >= len {
        return None;
    }
    let mut values: HashMap<FormulaId, Vec<bool>> = HashMap::new();
    let mut stack = vec![(formula, false)];
    let follow = |position: usize| if position + 1 < len { position + 1 } else { back };
    while let Some((id, ready)) = stack.pop() {
        if values.contains_key(&id) {
            continue;
        }
        let children: Vec<FormulaId> = match pool.get(id) {
            Formula::Truth(_) | Formula::Literal(..) => Vec::new(),
            Formula::And(list) | Formula::Or(list) => list.to_vec(),
            Formula::Next(one) => vec![*one],
            Formula::Until(one, two) | Formula::Release(one, two) => vec![*one, *two],
            Formula::Exists(_) | Formula::All(_) => return None,
        };
        if !ready {
            stack.push((id, true));
            stack.extend(children.into_iter().map(|child| (child, false)));
            continue;
        }
        let of = |child: &FormulaId, position: usize| values[child][position];
        let row: Vec<bool> = match pool.get(id) {
            Formula::Truth(truth) => vec![*truth; len],
            Formula::Literal(atom, positive) => (0..len).map(|position| holds(*atom, position) == *positive).collect(),
            Formula::And(list) => (0..len).map(|position| list.iter().all(|one| of(one, position))).collect(),
            Formula::Or(list) => (0..len).map(|position| list.iter().any(|one| of(one, position))).collect(),
            Formula::Next(one) => (0..len).map(|position| of(one, follow(position))).collect(),
            Formula::Until(one, two) => {
                let mut row = vec![false; len];
                for _ in 0..2 {
                    for position in (0..len).rev() {
                        row[position] = of(two, position) || (of(one, position) && row[follow(position)]);
                    }
                }
                row
            }
            Formula::Release(one, two) => {
                let mut row = vec![true; len];
                for _ in 0..2 {
                    for position in (0..len).rev() {
                        row[position] = of(two, position) && (of(one, position) || row[follow(position)]);
                    }
                }
                row
            }
            Formula::Exists(_) | Formula::All(_) => return None,
        };
        values.insert(id, row);
    }
    values.get(&formula).map(|row| row[0])
}
