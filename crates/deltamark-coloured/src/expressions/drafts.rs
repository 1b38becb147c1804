//! Temporary sequences of a function call.
//!
//! In: elements. Out: a code, valid until the call returns. What stays true: temporaries of a function are
//! freed when it returns; what is [kept](Drafts::keep) has its one code in the table of values.
//!
//! A loop makes temporaries that no variable holds any more. They are [collected](Drafts::collect) between
//! two statements, where the variables of the call are the only roots: expressions under evaluation in the
//! callers refer only to drafts that were made before the call. An element of a draft is an older draft, so
//! one pass from the youngest to the oldest marks, and one in the other direction compacts.
//!
//! ```text
//! code   i64::MIN + k       draft number k
//!        all others         as in the table of values
//!
//! ends   [ 2 | 5 | … ]      where the elements of each end
//! words  [ a b | c d e | …  drafts, contiguous
//! ```
//!
//! Drafts are not interned: two with the same elements have two codes, so they are compared by their
//! elements. Integers never come near the codes of drafts ([`bounded`]).

use std::cmp::Ordering;

use crate::tables::values::{Code, Values};

/// The code of draft number 0.
const DRAFT: Code = Code::MIN;
/// No integer has a larger absolute value.
const FURTHEST: u64 = 1 << 62;
/// The number of words from which on a collection is worth its time.
const WORTH_COLLECTING: usize = 1 << 15;

/// An integer, unless it is the code of a draft.
pub(crate) fn bounded(number: Option<Code>) -> Option<Code> {
    number.filter(|number| number.unsigned_abs() <= FURTHEST)
}

/// The drafts of the calls in progress, and the table of values.
pub(crate) struct Drafts<'a> {
    pub values: &'a Values,
    ends: Vec<usize>,
    words: Vec<Code>,
    /// The number of words at which drafts are collected next.
    due: usize,
}

impl<'a> Drafts<'a> {
    /// None yet.
    pub fn new(values: &'a Values) -> Self {
        Drafts { values, ends: Vec::new(), words: Vec::new(), due: WORTH_COLLECTING }
    }

    fn is_draft(code: Code) -> bool {
        code < -(FURTHEST as Code)
    }

    fn words_of(&self, draft: Code) -> &[Code] {
        let number = (draft - DRAFT) as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.words[start..self.ends[number]]
    }

    /// A sequence of these elements.
    pub fn make(&mut self, elements: &[Code]) -> Code {
        self.words.extend_from_slice(elements);
        self.ends.push(self.words.len());
        DRAFT + (self.ends.len() - 1) as Code
    }

    /// The number of elements of a sequence.
    pub fn len(&self, sequence: Code) -> usize {
        if Self::is_draft(sequence) { self.words_of(sequence).len() } else { self.values.len(sequence) }
    }

    /// Element number `index`, if there is one.
    pub fn element(&self, sequence: Code, index: Code) -> Option<Code> {
        if Self::is_draft(sequence) {
            self.words_of(sequence).get(usize::try_from(index).ok()?).copied()
        } else {
            self.values.element(sequence, index)
        }
    }

    /// The elements of a sequence.
    pub fn elements(&self, sequence: Code) -> Vec<Code> {
        if Self::is_draft(sequence) {
            self.words_of(sequence).to_vec()
        } else {
            self.values.elements(sequence).collect()
        }
    }

    /// Whether a list or set has this element.
    pub fn contains(&self, sequence: Code, element: Code) -> bool {
        if Self::is_draft(sequence) {
            self.words_of(sequence).iter().any(|&known| self.same(known, element))
        } else {
            self.values.elements(sequence).any(|known| self.same(known, element))
        }
    }

    /// The order of values of one type: integers by size, sequences by their first difference.
    pub fn compare(&self, one: Code, other: Code) -> Ordering {
        if !Self::is_draft(one) && !Self::is_draft(other) {
            return self.values.compare(one, other);
        }
        let pairs = self.len(one).min(self.len(other)) as Code;
        let differ = (0..pairs).find_map(|at| {
            let order = self.compare(self.element(one, at)?, self.element(other, at)?);
            (order != Ordering::Equal).then_some(order)
        });
        differ.unwrap_or_else(|| self.len(one).cmp(&self.len(other)))
    }

    /// Whether two values of one type are the same.
    #[inline]
    pub fn same(&self, one: Code, other: Code) -> bool {
        one == other || (Self::is_draft(one) || Self::is_draft(other)) && self.compare(one, other) == Ordering::Equal
    }

    /// The code of a value in the table, which outlives the call.
    pub fn keep(&self, code: Code) -> Code {
        if !Self::is_draft(code) {
            return code;
        }
        let elements: Vec<Code> = self.words_of(code).iter().map(|&element| self.keep(element)).collect();
        self.values.sequence(&elements)
    }

    /// The number of drafts.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The number of words in use.
    fn size(&self) -> usize {
        self.words.len() + self.ends.len()
    }

    /// Whether there are twice as many words as after the last collection.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.size() >= self.due
    }

    /// The words that are allocated anew when a draft of this many elements is made: a list that grows is
    /// copied to one of twice the size.
    #[inline]
    pub fn growth(&self, elements: usize) -> usize {
        let of = |len: usize, capacity: usize, more: usize| if len + more > capacity { 2 * capacity } else { 0 };
        of(self.words.len(), self.words.capacity(), elements) + of(self.ends.len(), self.ends.capacity(), 1)
    }

    /// Frees those drafts from number `floor` on that none of the `roots` is made of, and renumbers the
    /// others, in the roots as well.
    #[cold]
    pub fn collect(&mut self, floor: usize, roots: &mut [Code]) {
        const DEAD: usize = usize::MAX;
        const LIVE: usize = usize::MAX - 1;
        let number_of = |code: Code| {
            Self::is_draft(code).then(|| (code - DRAFT) as usize).and_then(|number| number.checked_sub(floor))
        };
        let mut numbers = vec![DEAD; self.ends.len() - floor];
        roots.iter().copied().filter_map(number_of).for_each(|number| numbers[number] = LIVE);
        for number in (0..numbers.len()).rev() {
            if numbers[number] == LIVE {
                let elements = self.words_of(DRAFT + (floor + number) as Code);
                elements.iter().copied().filter_map(number_of).for_each(|number| numbers[number] = LIVE);
            }
        }
        let (mut count, mut end) = (floor, floor.checked_sub(1).map_or(0, |before| self.ends[before]));
        let mut start = end;
        for number in 0..numbers.len() {
            let elements = start..self.ends[floor + number];
            start = elements.end;
            if numbers[number] == LIVE {
                numbers[number] = count;
                for from in elements {
                    let word = self.words[from];
                    self.words[end] = number_of(word).map_or(word, |element| DRAFT + numbers[element] as Code);
                    end += 1;
                }
                self.ends[count] = end;
                count += 1;
            }
        }
        self.ends.truncate(count);
        self.words.truncate(end);
        for root in roots {
            if let Some(number) = number_of(*root) {
                *root = DRAFT + numbers[number] as Code;
            }
        }
        self.due = 2 * self.size() + WORTH_COLLECTING;
    }

    /// Frees all drafts but the first `count`, unless `result` may be made of the others.
    pub fn forget(&mut self, count: usize, result: Code) {
        if !Self::is_draft(result) {
            self.ends.truncate(count);
            self.words.truncate(self.ends.last().copied().unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::chunks::Meter;

    #[test]
    fn drafts_are_the_values_they_become() {
        let values = Values::new(&Meter::default());
        let mut drafts = Drafts::new(&values);
        let kept = values.sequence(&[1, 2]);
        let (one, other, longer) = (drafts.make(&[1, 2]), drafts.make(&[1, 2]), drafts.make(&[1, 2, 3]));
        assert!(one != other && drafts.same(one, other) && drafts.same(one, kept) && drafts.same(kept, other));
        assert!(!drafts.same(one, longer) && drafts.compare(kept, longer) == Ordering::Less);
        let (nested, same) = (drafts.make(&[one, kept]), values.sequence(&[kept, kept]));
        assert!(drafts.same(nested, same));
        assert!(drafts.contains(nested, other) && drafts.contains(same, one) && !drafts.contains(nested, longer));
        assert_eq!((drafts.keep(one), drafts.keep(nested), drafts.keep(7)), (kept, same, 7));
        assert_eq!(drafts.elements(longer), values.elements(drafts.keep(longer)).collect::<Vec<_>>());
        assert_eq!((drafts.len(longer), drafts.element(longer, 2), drafts.element(longer, 3)), (3, Some(3), None));
    }

    #[test]
    fn what_is_forgotten_makes_room() {
        let values = Values::new(&Meter::default());
        let mut drafts = Drafts::new(&values);
        let first = drafts.make(&[1]);
        let count = drafts.count();
        let second = drafts.make(&[2, 3]);
        drafts.forget(count, second);
        assert_eq!(drafts.elements(second), [2, 3]);
        drafts.forget(count, 5);
        assert_eq!((drafts.count(), drafts.elements(first)), (1, vec![1]));
        assert_eq!(drafts.make(&[4]), second);
        assert_eq!((drafts.elements(first), drafts.elements(second)), (vec![1], vec![4]));
    }

    #[test]
    fn integers_are_no_drafts() {
        assert_eq!(bounded(Some(1 << 62)), Some(1 << 62));
        assert_eq!(bounded(Some(-(1 << 62))), Some(-(1 << 62)));
        assert_eq!(bounded(Some(Code::MIN)), None);
        assert_eq!(bounded(None), None);
    }

    #[test]
    fn what_no_root_is_made_of_is_collected() {
        let values = Values::new(&Meter::default());
        let mut drafts = Drafts::new(&values);
        let kept = values.sequence(&[7]);
        let below = drafts.make(&[1, 2]);
        let floor = drafts.count();
        let (dead, inner) = (drafts.make(&[3; 100]), drafts.make(&[4, 5]));
        let also_dead = drafts.make(&[dead, inner]);
        let outer = drafts.make(&[inner, below, kept, inner]);
        assert!(drafts.same(dead, dead) && drafts.len(also_dead) == 2);
        let mut roots = [outer, 12, kept, below, inner, 0];
        assert!(!drafts.is_due(), "too few to be worth it");
        drafts.collect(floor, &mut roots);
        assert_eq!((drafts.count(), drafts.words.len()), (3, 2 + 2 + 4));
        assert_eq!([roots[1], roots[2], roots[3], roots[5]], [12, kept, below, 0]);
        let elements = drafts.elements(roots[0]);
        assert_eq!(elements, [roots[4], below, kept, roots[4]]);
        assert_eq!((drafts.elements(roots[4]), drafts.elements(below)), (vec![4, 5], vec![1, 2]));
    }
}
