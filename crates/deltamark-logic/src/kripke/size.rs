//! Whether a formula is too large to be answered, before there is a graph.
//!
//! In: a formula of states. Out: whether some path formula in it has no automaton within the bounds. What stays true: a
//! formula is taken apart as [`super::sets`] does it, and letters are formed as in [`super::letters`], except that the
//! values of atoms are not known. So a graph in which atoms are constant or equal may allow more than is said here,
//! and no graph allows less.

use crate::automaton::Automaton;
use crate::temporal::{Formula, FormulaId, Pool};
use deltamark_core::{Control, Stop};
use std::collections::HashMap;
use std::convert::Infallible;

/// The most parts of a formula in which every part is written as often as it occurs. Each `iff` doubles what is in it.
const MOST_PARTS: u64 = 1 << 20;

/// Whether a formula of states takes an automaton that is too large, or is too long itself once it is written out.
///
/// # Errors
/// Why it is not known.
pub fn is_too_large(pool: &Pool, root: FormulaId, control: &Control) -> Result<bool, Stop> {
    if pool.length(root) > MOST_PARTS {
        return Ok(true);
    }
    // Alone: the pool may be that of thousands of formulas.
    let mut alone = Pool::new();
    let Ok(root) = alone.copy(pool, root, &mut |_, _| Ok::<_, Infallible>(None));
    Size { pool: alone, control }.of_state(root)
}

struct Size<'c> {
    pool: Pool,
    control: &'c Control,
}

impl Size<'_> {
    fn of_state(&mut self, id: FormulaId) -> Result<bool, Stop> {
        match self.pool.get(id).clone() {
            Formula::And(list) | Formula::Or(list) => self.any(&list, Self::of_state),
            Formula::Exists(path) => self.of_path(path),
            Formula::All(path) => {
                let negation = self.pool.not(path);
                self.of_path(negation)
            }
            _ => Ok(false),
        }
    }

    fn any(
        &mut self,
        list: &[FormulaId],
        mut of: impl FnMut(&mut Self, FormulaId) -> Result<bool, Stop>,
    ) -> Result<bool, Stop> {
        for &one in list {
            if of(self, one)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same of the question whether some path satisfies a formula.
    fn of_path(&mut self, id: FormulaId) -> Result<bool, Stop> {
        if self.pool.is_state(id) {
            return self.of_state(id);
        }
        match self.pool.get(id).clone() {
            Formula::Or(list) => self.any(&list, Self::of_path),
            Formula::And(list) => {
                let (here, rest): (Vec<_>, Vec<_>) = list.iter().partition(|&&one| self.pool.is_state(one));
                if self.any(&here, Self::of_state)? {
                    return Ok(true);
                }
                match rest[..] {
                    [one] => self.of_path(one),
                    _ => {
                        let rest = self.pool.and(rest);
                        self.of_automaton(rest)
                    }
                }
            }
            Formula::Next(inner) => self.of_path(inner),
            Formula::Until(through, goal) if self.pool.is_state(through) => {
                Ok(self.of_state(through)? || self.of_path(goal)?)
            }
            Formula::Release(end, inside) if self.pool.is_state(end) && self.pool.is_state(inside) => {
                self.any(&[end, inside], Self::of_state)
            }
            Formula::Release(never, inner)
                if matches!(self.pool.get(never), Formula::Truth(false))
                    && matches!(*self.pool.get(inner), Formula::Until(always, goal)
                        if matches!(self.pool.get(always), Formula::Truth(true)) && self.pool.is_state(goal)) =>
            {
                let Formula::Until(_, goal) = *self.pool.get(inner) else { return Ok(false) };
                self.of_state(goal)
            }
            _ => self.of_automaton(id),
        }
    }

    fn of_automaton(&mut self, id: FormulaId) -> Result<bool, Stop> {
        let (source, mut pool) = (self.pool.clone(), Pool::new());
        let mut letters = LetterNumbers { numbers: HashMap::new(), parts: Vec::new(), negations: source.clone() };
        let formula = letters.whole(&source, &mut pool, id);
        let LetterNumbers { parts, .. } = letters;
        if self.any(&parts, Self::of_state)? {
            return Ok(true);
        }
        Automaton::is_too_large(&mut pool, formula, parts.len() as u32, self.control)
    }
}

/// The parts that speak of one state, each distinct one a letter.
struct LetterNumbers {
    numbers: HashMap<FormulaId, u32>,
    parts: Vec<FormulaId>,
    /// The formulas, and their negations.
    negations: Pool,
}

impl LetterNumbers {
    fn letter(&mut self, source: &Pool, pool: &mut Pool, id: FormulaId) -> FormulaId {
        if let Formula::Truth(truth) = source.get(id) {
            return pool.truth(*truth);
        }
        let negation = self.negations.not(id);
        if let Some(&known) = self.numbers.get(&negation) {
            let atom = pool.atom(known);
            return pool.not(atom);
        }
        let parts = &mut self.parts;
        let number = *self.numbers.entry(id).or_insert_with(|| {
            parts.push(id);
            parts.len() as u32 - 1
        });
        pool.atom(number)
    }

    fn whole(&mut self, source: &Pool, pool: &mut Pool, id: FormulaId) -> FormulaId {
        let Ok(copied) = pool.copy(source, id, &mut |pool, part| {
            Ok::<_, Infallible>(source.is_state(part).then(|| self.letter(source, pool, part)))
        });
        copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::path_formula;

    fn too_large(text: &str) -> bool {
        let (mut pool, path, _) = path_formula(text).expect("a formula");
        let root = pool.all(path);
        is_too_large(&pool, root, &Control::new()).expect("an answer")
    }

    fn joined(count: usize, between: &str, part: impl Fn(usize) -> String) -> String {
        (0..count).map(part).collect::<Vec<_>>().join(between)
    }

    #[test]
    fn what_is_taken_apart_may_be_as_long_as_one_likes() {
        assert!(!too_large("G (p -> F q)"));
        assert!(!too_large(&joined(100, " and ", |i| format!("G (p{i} -> F q{i})"))));
        assert!(!too_large(&joined(100, " and ", |i| format!("p{i} U q{i}"))));
    }

    #[test]
    fn what_doubles_with_every_level_has_bounds() {
        // Both took time exponential in their length before anything was asked.
        assert!(too_large(&joined(60, " iff ", |i| format!("F p{i}"))));
        let nested = (0..100).fold("F p".to_string(), |inner, i| format!("({inner} iff F p{i})"));
        assert!(too_large(&nested));
        assert!(!too_large("F p iff F q"));
    }

    #[test]
    fn atoms_and_steps_have_bounds() {
        assert!(!too_large(&joined(3, " or ", |i| format!("F G p{i}"))));
        // Sixteen thousand ways to go on: each is awaited first or later.
        assert!(too_large(&joined(20, " or ", |i| format!("F G p{i}"))));
        assert!(!too_large(&joined(5, " or ", |i| format!("p{i} U q{i}"))));
        assert!(too_large(&joined(33, " or ", |i| format!("p{i} U q{i}"))));
        assert!(too_large(&format!("p or G ({})", joined(33, " or ", |i| format!("p{i} U q{i}")))));
    }
}
