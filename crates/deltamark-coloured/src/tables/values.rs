//! Values at run time: one word each.
//!
//! In: integers and sequences of words. Out: a [`Code`] for each. What stays true: two codes of values of one
//! type are equal exactly when the values are; a code never changes its meaning.
//!
//! ```text
//! code   -2^31 … 2^31-1     the integer itself
//!        SEQUENCE + k       sequence number k of the table
//!
//! table  heads  [ start:40 | len:24 ]  one a sequence
//!        words  [ code | code | … ]    elements of the sequences, contiguous
//!        index  hash of the elements ─▶ number, under a lock
//! ```
//!
//! The code itself shows whether it is a sequence, so that values can be compared and hashed without their
//! type. The hash of a value depends on the value alone, not on its number.

use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use deltamark_core::hash::mix;
use deltamark_core::{Control, Stop};

use crate::net::{FaultKind, Host, Type, TypeId, Value, ValueShape};
use crate::tables::chunks::{Chunks, Index, Meter};

/// A value in one word.
pub(crate) type Code = i64;

/// The code of sequence number 0. All integers are far below.
const SEQUENCE: Code = 1 << 40;
const LENGTH_BITS: u32 = 24;

/// The memory and time that code of a front end may take, and whether it was refused some.
pub(crate) struct Room<'a> {
    values: &'a Values,
    watch: Option<&'a Control>,
    refused: Cell<Option<FaultKind>>,
}

impl<'a> Room<'a> {
    /// As much as [`Values::allows`], until `watch` ends the run.
    pub fn of(values: &'a Values, watch: Option<&'a Control>) -> Self {
        Room { values, watch, refused: Cell::new(None) }
    }

    /// Whether the evaluation may go on with this number of bytes.
    pub fn grants(&self, bytes: u64) -> bool {
        if self.watch.is_some_and(|control| control.stop_without_memory().is_some()) {
            self.refused.set(Some(FaultKind::Stopped));
        } else if !self.values.allows(bytes) {
            self.refused.set(Some(FaultKind::Memory));
        }
        self.refused.get().is_none()
    }

    /// Why code of a front end has no value, where it gives this reason.
    pub fn why(&self, host: &Host, number: u32) -> FaultKind {
        self.refused.get().unwrap_or_else(|| match host.0.is_limit(number) {
            true => FaultKind::HostLimit(number),
            false => FaultKind::Host(number),
        })
    }
}

/// The table of sequences.
pub(crate) struct Values {
    heads: Chunks<AtomicU64>,
    words: Chunks<AtomicU64>,
    hashes: Chunks<AtomicU64>,
    growing: Mutex<Growing>,
    /// What limits the memory of the process, if anything does.
    limited: OnceLock<Control>,
}

struct Growing {
    len: usize,
    used: usize,
    index: Index,
}

impl Values {
    /// An empty table.
    pub fn new(meter: &Meter) -> Self {
        let growing = Growing { len: 0, used: 0, index: Index::new(meter) };
        let [heads, words, hashes] = [(); 3].map(|()| Chunks::new(meter));
        Values { heads, words, hashes, growing: Mutex::new(growing), limited: OnceLock::new() }
    }

    /// Lets evaluations ask this control for memory, unless they have one already or it has no limit.
    #[inline]
    pub fn limit(&self, control: &Control) {
        if control.limits.memory.is_some() && self.limited.get().is_none() {
            let _ = self.limited.set(control.clone());
        }
    }

    /// Whether an evaluation may allocate this many bytes.
    #[cold]
    pub fn allows(&self, bytes: u64) -> bool {
        self.limited.get().is_none_or(|control| control.ask_for(bytes) != Err(Stop::Memory))
    }

    /// The code of the sequence of these elements.
    ///
    /// # Panics
    /// If the table is full, at billions of elements: memory is exhausted long before.
    pub fn sequence(&self, elements: &[Code]) -> Code {
        let hash = self.hash_elements(elements);
        let mut growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |number: u32| {
            let known = self.elements_at(number);
            known.len() == elements.len() && known.iter().zip(elements).all(|(a, &b)| a.load(Relaxed) as Code == b)
        };
        if let Some(number) = growing.index.find(hash, same) {
            return SEQUENCE + Code::from(number);
        }
        let start = self.words.room(growing.used, elements.len()).expect("memory ends before the table of values");
        for (word, &code) in self.words.slice(start, elements.len()).iter().zip(elements) {
            word.store(code as u64, Relaxed);
        }
        growing.used = start + elements.len();
        let number = growing.len;
        let head = (start as u64) << LENGTH_BITS | elements.len() as u64;
        for (row, value) in [(&self.heads, head), (&self.hashes, hash)] {
            row.room(number, 1).expect("memory ends before the table of values");
            row.at(number).store(value, Relaxed);
        }
        growing.len += 1;
        growing.index.add(hash, number as u32, |known| self.hashes.get(known as usize));
        SEQUENCE + number as Code
    }

    fn elements_at(&self, number: u32) -> &[AtomicU64] {
        let head = self.heads.get(number as usize);
        self.words.slice((head >> LENGTH_BITS) as usize, (head & ((1 << LENGTH_BITS) - 1)) as usize)
    }

    /// Whether a code is that of a sequence.
    pub fn is_sequence(code: Code) -> bool {
        code >= SEQUENCE
    }

    /// The number of elements of a sequence.
    pub fn len(&self, sequence: Code) -> usize {
        (self.heads.get((sequence - SEQUENCE) as usize) & ((1 << LENGTH_BITS) - 1)) as usize
    }

    /// The elements of a sequence.
    pub fn elements(&self, sequence: Code) -> impl ExactSizeIterator<Item = Code> + DoubleEndedIterator + '_ {
        self.elements_at((sequence - SEQUENCE) as u32).iter().map(|word| word.load(Relaxed) as Code)
    }

    /// Element number `index`, if there is one.
    pub fn element(&self, sequence: Code, index: Code) -> Option<Code> {
        let elements = self.elements_at((sequence - SEQUENCE) as u32);
        Some(elements.get(usize::try_from(index).ok()?)?.load(Relaxed) as Code)
    }

    /// A hash of the value, independent of its number.
    pub fn hash(&self, code: Code) -> u64 {
        if code < SEQUENCE {
            mix(code as u64 ^ 0x517c_c1b7_2722_0a95)
        } else {
            self.hashes.get((code - SEQUENCE) as usize)
        }
    }

    /// The hash of the sequence of these elements.
    pub fn hash_elements(&self, elements: &[Code]) -> u64 {
        elements
            .iter()
            .fold(mix(elements.len() as u64 + 7), |hash, &code| mix(hash.rotate_left(5).wrapping_add(self.hash(code))))
    }

    /// The order of values of one type: integers by size, sequences by their first difference.
    pub fn compare(&self, one: Code, other: Code) -> Ordering {
        if one < SEQUENCE || other < SEQUENCE || one == other {
            return one.cmp(&other);
        }
        let (mut left, mut right) = (self.elements(one), self.elements(other));
        loop {
            match (left.next(), right.next()) {
                (Some(a), Some(b)) => match self.compare(a, b) {
                    Ordering::Equal => {}
                    different => return different,
                },
                (a, b) => return a.is_some().cmp(&b.is_some()),
            }
        }
    }

    /// The code of a constant.
    pub fn code(&self, value: &Value) -> Code {
        match value {
            Value::Int(number) => Code::from(*number),
            Value::Seq(elements) => {
                let codes: Vec<Code> = elements.iter().map(|element| self.code(element)).collect();
                self.sequence(&codes)
            }
        }
    }

    /// The value as a tree.
    pub fn value(&self, code: Code) -> Value {
        if code < SEQUENCE {
            Value::Int(code as i32)
        } else {
            Value::Seq(self.elements(code).map(|element| self.value(element)).collect())
        }
    }

    /// The bytes held.
    pub fn bytes(&self) -> u64 {
        let index = self.growing.lock().unwrap_or_else(PoisonError::into_inner).index.bytes();
        self.heads.bytes() + self.words.bytes() + self.hashes.bytes() + index
    }

    /// Prints the value.
    pub fn print(&self, types: &[Type], of: TypeId, code: Code, out: &mut String) {
        let list = |open: &str, close: &str, out: &mut String, pairs: &mut dyn Iterator<Item = (TypeId, Code)>| {
            out.push_str(open);
            for (position, (of, code)) in pairs.enumerate() {
                if position > 0 {
                    out.push(',');
                }
                self.print(types, of, code, out);
            }
            out.push_str(close);
        };
        match &types[of.0 as usize].shape {
            ValueShape::Discrete { names, .. } => {
                let name = names.as_ref().and_then(|names| names.get(usize::try_from(code).ok()?));
                match name {
                    Some(name) => out.push_str(name),
                    None => out.push_str(&code.to_string()),
                }
            }
            ValueShape::Struct { fields } => {
                list("{", "}", out, &mut fields.iter().map(|&(_, of)| of).zip(self.elements(code)));
            }
            ValueShape::Union { alternatives } => {
                let tag = self.element(code, 0).unwrap_or_default();
                out.push_str(&tag.to_string());
                let of = usize::try_from(tag).ok().and_then(|tag| *alternatives.get(tag)?);
                if let Some((of, code)) = of.zip(self.element(code, 1)) {
                    list("(", ")", out, &mut std::iter::once((of, code)));
                }
            }
            ValueShape::Vector { element, .. } => {
                list("[", "]", out, &mut self.elements(code).map(|code| (*element, code)))
            }
            ValueShape::List { element, .. } | ValueShape::Set { element, .. } => {
                if self.len(code) == 0 {
                    out.push_str("empty");
                } else {
                    list("|", "|", out, &mut self.elements(code).map(|code| (*element, code)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_equal_codes_and_others_do_not() {
        let values = Values::new(&Meter::default());
        let tree = |a: i32| Value::Seq(vec![Value::Int(a), Value::Seq(vec![Value::Int(-1), Value::Int(a / 2)])]);
        let codes: Vec<Code> = (0..500).map(|a| values.code(&tree(a))).collect();
        for (a, &code) in codes.iter().enumerate() {
            assert_eq!(values.code(&tree(a as i32)), code);
            assert_eq!(values.value(code), tree(a as i32));
        }
        assert!(codes.windows(2).all(|pair| values.compare(pair[0], pair[1]) == Ordering::Less));
    }

    #[test]
    fn hashes_depend_on_the_value_alone() {
        let (one, other) = (Values::new(&Meter::default()), Values::new(&Meter::default()));
        other.sequence(&[5, 6]);
        let hash = |values: &Values| {
            let inner = values.sequence(&[1, 2]);
            let outer = values.sequence(&[inner, 3]);
            values.hash(outer)
        };
        assert_eq!(hash(&one), hash(&other));
    }
}
