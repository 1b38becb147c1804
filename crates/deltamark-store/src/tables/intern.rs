//! A table of interned values.
//!
//! In: slices of slots. Out: for each a number, the same for equal slices; and the slice of a
//! number. Invariants: numbers are 0, 1, 2 … in the order of first occurrence; values never move;
//! every byte was granted by the budget first.
//!
//! # Layout in memory
//! ```text
//! values   [ 65,536 ] [ 65,536 ] [ 131,072 ] [ 262,144 ] …   growing copies nothing
//! index    [ tag|1  tag|0 … ]                                as in `plain`
//! ```
//! Values of one length are in chunks of doubling size; values of varying length as in
//! [`Vectors`](crate::states::vectors::Vectors). The index can be freed: numbers then still map to
//! values, but not vice versa.

use crate::memory::region::Region;
use crate::states::vectors::Vectors;
use crate::tables::index::{BASELINE, Index};
use deltamark_core::{Budget, Slot, Width, hash};

/// Values in the first chunk, as a power of two.
#[cfg(not(miri))]
const FIRST: u32 = 16;
#[cfg(miri)]
const FIRST: u32 = 6;
/// Buckets of a new index: one page.
const BUCKETS: u64 = if cfg!(miri) { 2 } else { 64 };
/// Memory for values is asked for in pages, of a large table in larger steps.
const PAGE: u64 = 4096;

enum InternedValues {
    /// All of this many slots.
    Fixed { item: usize, chunks: Vec<Region> },
    /// Of any length.
    Varying(Vectors),
}

/// A table of values.
pub(crate) struct InternTable {
    values: InternedValues,
    len: u32,
    /// Bytes of values that the budget granted.
    granted: u64,
    index: Option<Index>,
}

impl InternTable {
    /// A table of values of this length, or of any, without an index.
    pub fn new(width: Width) -> Self {
        let values = match width {
            Width::Fixed(item) => InternedValues::Fixed { item, chunks: Vec::new() },
            Width::Varies => InternedValues::Varying(Vectors::new(width)),
        };
        InternTable { values, len: 0, granted: 0, index: None }
    }

    /// How many values there are.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// How many slots its values have; as many as there are, if that varies.
    #[inline]
    pub fn item(&self) -> usize {
        match &self.values {
            InternedValues::Fixed { item, .. } => *item,
            InternedValues::Varying(_) => usize::MAX,
        }
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.granted + self.index.as_ref().map_or(0, |index| Index::bytes(index.buckets))
    }

    /// The value of a number that was given.
    #[inline]
    pub fn get(&self, number: u32) -> &[Slot] {
        assert!(number < self.len, "value {number} of {}", self.len);
        match &self.values {
            InternedValues::Fixed { item, chunks } => {
                // SAFETY: a number below `len`, so the value was written, and it is never
                // written again.
                unsafe { std::slice::from_raw_parts(address(chunks, *item, number), *item) }
            }
            // SAFETY: as above.
            InternedValues::Varying(vectors) => unsafe { vectors.get(number.into()) },
        }
    }

    /// The values, if each is a single slot and all numbers up to `largest` are
    /// contiguous; otherwise null. Those below [`len`](Self::len) may be read, as long as the table
    /// is there.
    pub fn singles(&self, largest: u32) -> *const Slot {
        match &self.values {
            InternedValues::Fixed { item: 1, chunks } if largest < 1 << FIRST => {
                chunks.first().map_or(std::ptr::null(), |chunk| chunk.as_ptr().cast_const())
            }
            _ => std::ptr::null(),
        }
    }

    /// Gives it an index, if it has none. Returns whether there was memory for it.
    #[must_use]
    pub fn open(&mut self, budget: &Budget) -> bool {
        if self.index.is_some() {
            return true;
        }
        if !budget.request(Index::bytes(BUCKETS)) {
            return false;
        }
        let Some(index) = Index::new(BUCKETS) else {
            budget.release(Index::bytes(BUCKETS));
            return false;
        };
        self.index = Some(index);
        let opened = self.len == 0 || self.grow_index(u64::from(self.len) + 1, budget);
        if !opened {
            self.close(budget);
        }
        opened
    }

    /// Gives the index back.
    pub fn close(&mut self, budget: &Budget) {
        if let Some(index) = self.index.take() {
            budget.release(Index::bytes(index.buckets));
        }
    }

    /// The number of a value, and whether it is new. `None` if it is new and there is no
    /// memory for it.
    ///
    /// # Panics
    /// When the table was not [opened](Self::open).
    #[inline]
    pub fn intern(&mut self, value: &[Slot], budget: &Budget) -> Option<(u32, bool)> {
        let mixed = mixed(value);
        let view = self.index.as_ref().expect("the table was opened").view();
        match view.search(BASELINE, mixed, view.home(mixed), |number| equal(self.get(number as u32), value)) {
            Ok(number) => Some((number as u32, false)),
            Err(_) => self.add(value, mixed, budget).map(|number| (number, true)),
        }
    }

    /// Adds a value that is not there.
    fn add(&mut self, value: &[Slot], mixed: u64, budget: &Budget) -> Option<u32> {
        let wanted = u64::from(self.len) + 1;
        if self.index.as_ref().is_some_and(|index| index.room < wanted) && !self.grow_index(wanted, budget) {
            return None;
        }
        if !self.extend(value, budget) {
            return None;
        }
        let number = self.len;
        match &mut self.values {
            InternedValues::Fixed { item, chunks } => {
                assert_eq!(value.len(), *item, "a value has the length of its table");
                // SAFETY: `extend` has made the chunk; `&mut self`.
                unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), address(chunks, *item, number), *item) };
            }
            InternedValues::Varying(vectors) => {
                vectors.check(value);
                // SAFETY: it was checked, `extend` made room, and the number is not published yet.
                unsafe { vectors.write(number.into(), value) };
            }
        }
        self.len += 1;
        self.index.as_mut().expect("the table was opened").enter(mixed, number.into());
        Some(number)
    }

    /// Makes room for one more value.
    fn extend(&mut self, value: &[Slot], budget: &Budget) -> bool {
        let needed = match &self.values {
            InternedValues::Fixed { item, .. } => (u64::from(self.len) + 1) * *item as u64 * 4,
            InternedValues::Varying(vectors) => {
                vectors.used_bytes(self.len.into()) + vectors.needed_bytes(1, value.len() as u64)
            }
        };
        if needed > self.granted {
            let missing = needed - self.granted;
            let step = (self.granted / 16).next_multiple_of(PAGE).clamp(PAGE, 64 * PAGE);
            let asked = [missing.next_multiple_of(step), missing].into_iter().find(|&bytes| budget.request(bytes));
            let Some(asked) = asked else { return false };
            self.granted += asked;
        }
        match &mut self.values {
            InternedValues::Fixed { item, chunks } => {
                let (chunk, _) = place(self.len);
                if chunk < chunks.len() {
                    return true;
                }
                let count = 1usize << (FIRST as usize + chunk.saturating_sub(1));
                let Some(region) = Region::zeroed(count * (*item).max(1) * 4) else { return false };
                chunks.push(region);
                true
            }
            InternedValues::Varying(vectors) => vectors.extend(self.len.into(), 1, value.len() as u64),
        }
    }

    /// Replaces the index by one with room for `wanted` values.
    fn grow_index(&mut self, wanted: u64, budget: &Budget) -> bool {
        let index = self.index.as_mut().expect("the table was opened");
        let old = index.buckets;
        if index.room >= wanted {
            self.enter_all();
            return true;
        }
        for buckets in index.next_sizes(wanted).into_iter().flatten() {
            if !budget.request(Index::bytes(buckets) - Index::bytes(old)) {
                continue;
            }
            if !index.resize(buckets) {
                budget.release(Index::bytes(buckets) - Index::bytes(old));
            }
            let enough = index.room >= wanted;
            self.enter_all();
            return enough;
        }
        false
    }

    /// Enters every value into an empty index that has room for them.
    fn enter_all(&mut self) {
        let Some(mut index) = self.index.take() else { return };
        for number in 0..self.len {
            index.enter(mixed(self.get(number)), number.into());
        }
        self.index = Some(index);
    }

    /// Gives everything back.
    pub fn clear(&mut self, budget: &Budget) {
        self.close(budget);
        budget.release(self.granted);
        *self = InternTable::new(match &self.values {
            InternedValues::Fixed { item, .. } => Width::Fixed(*item),
            InternedValues::Varying(_) => Width::Varies,
        });
    }
}

/// The chunk of a value, and its place there.
#[inline(always)]
fn place(number: u32) -> (usize, usize) {
    if number < 1 << FIRST {
        return (0, number as usize);
    }
    let top = number.ilog2();
    ((top - FIRST + 1) as usize, (number - (1 << top)) as usize)
}

/// The address of a value whose chunk is there.
#[inline(always)]
fn address(chunks: &[Region], item: usize, number: u32) -> *mut u32 {
    let (chunk, place) = place(number);
    chunks[chunk].as_ptr().wrapping_add(place * item)
}

/// Whether two values are the same; most are single slots.
#[inline(always)]
pub(crate) fn equal(one: &[Slot], other: &[Slot]) -> bool {
    match (one, other) {
        ([one], [other]) => one == other,
        _ => one == other,
    }
}

#[inline(always)]
fn mixed(value: &[Slot]) -> u64 {
    match value {
        &[slot] => hash::mix(u64::from(slot) ^ 0x9e37_79b9_7f4a_7c15),
        _ => hash::mix(hash::slots(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: u32, width: Width) -> Vec<Slot> {
        match width {
            Width::Fixed(item) => (0..item as u32).map(|slot| number.wrapping_mul(slot + 3)).collect(),
            Width::Varies => vec![number; number as usize % 5],
        }
    }

    #[test]
    fn equal_values_have_one_number_over_growth_and_closing() {
        for width in [Width::Fixed(1), Width::Fixed(3), Width::Varies] {
            let budget = Budget::unlimited();
            let mut table = InternTable::new(width);
            let count = if cfg!(miri) { 100 } else { 300_000 };
            assert!(table.open(&budget));
            let mut numbers = Vec::new();
            for number in 0..count {
                numbers.push(table.intern(&value(number, width), &budget).expect("there is no limit").0);
                assert_eq!(table.bytes(), budget.used());
            }
            table.close(&budget);
            assert!(table.open(&budget));
            for number in 0..count {
                let found = table.intern(&value(number, width), &budget);
                assert_eq!(found, Some((numbers[number as usize], false)));
                assert_eq!(table.get(numbers[number as usize]), value(number, width));
                let singles = table.singles((1 << FIRST) - 1);
                assert_eq!(singles.is_null(), width != Width::Fixed(1));
                if !singles.is_null() && numbers[number as usize] < 1 << FIRST {
                    // SAFETY: a number that was given, within those asked for.
                    assert_eq!(unsafe { *singles.add(numbers[number as usize] as usize) }, value(number, width)[0]);
                }
            }
            assert_eq!(numbers.iter().max().map(|&most| most + 1), Some(table.len()));
            table.clear(&budget);
            assert_eq!(budget.used(), 0);
        }
    }

    #[test]
    fn without_memory_nothing_is_added_and_all_is_found() {
        let (limit, least) = if cfg!(miri) { (1_000, 20) } else { (20_000, 1000) };
        let budget = Budget::new(limit);
        let mut table = InternTable::new(Width::Fixed(2));
        assert!(table.open(&budget));
        let value = |number: u32| [number, !number];
        let added = (0..).find(|&number| table.intern(&value(number), &budget).is_none()).expect("it ends");
        assert!(added > least && table.len() == added);
        for number in 0..added {
            assert_eq!(table.intern(&value(number), &budget), Some((number, false)));
        }
        assert_eq!(table.bytes(), budget.used());
    }
}
