//! Records of states: whole ones, and differences from a predecessor.
//!
//! In: a state, its number, and optionally its predecessor. Out: the bytes of a record; from such
//! bytes the state, or one step back towards it. Invariants: a difference refers to a smaller
//! number, so walking back terminates; no list of changes is longer than the full state.
//!
//! # Layout in memory
//! ```text
//! difference   3 + predecessor | growth* | list         the predecessor less the base of its share
//! marked       3 + predecessor | number                 growth and list have a number
//! whole        0 | length* | dense                       against the reference
//! whole        2 | length* | list                        against the reference, where that is shorter
//! ```
//! *only where states differ in length.

use crate::difference::journal::{ELSEWHERE, Record};
use crate::difference::lists::Lists;
use crate::difference::patch::{
    Changes, fold, read_dense, read_number, same_dense, unfold, write_dense, write_list, write_number,
};
use deltamark_core::{Budget, Slot, Width};
use std::sync::Arc;

/// First numbers of a record. The one between them is [`ELSEWHERE`].
const DENSE: u64 = 0;
const LIST: u64 = 2;
const DIFFERENCE: u64 = 3;
const _: () = assert!(ELSEWHERE == 1);

/// From a list of this many bytes on it is worth trying whether the whole state is shorter.
const LONG_LIST: usize = 10;
/// States of so few slots are quickly tried.
const FEW_SLOTS: usize = 16;

/// What a record holds of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// It differs from the state of this number.
    Difference(u64),
    /// All of it.
    Whole,
}

/// The current position of a walk back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// The states are the same if the current one now is that of this number.
    To(u64),
    /// The states are the same if the current one is the one of this record.
    Whole,
    /// The states differ.
    Differs,
}

/// Writes and reads records.
pub(crate) struct Coder {
    /// Whether states differ in length.
    varies: bool,
    /// The state that whole states are compared with.
    pub reference: Vec<Slot>,
    /// Lists of changes that have a number.
    pub lists: Lists,
}

/// A record that was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// Its contents.
    pub kind: RecordKind,
    /// Whether it is to be marked.
    pub marked: bool,
}

impl Written {
    const WHOLE: Written = Written { kind: RecordKind::Whole, marked: false };
}

/// At most one list in this many states gets a number, so that numbers cost little even where they
/// are of no use.
const STATES_A_LIST: u64 = 32;

impl Coder {
    /// For states of this width, compared with this one.
    pub fn new(width: Width, reference: Vec<Slot>, budget: Arc<Budget>) -> Self {
        Coder { varies: width == Width::Varies, reference, lists: Lists::new(budget) }
    }

    /// Replaces `out` by the record of state `number`, as a difference from `parent` unless that
    /// is absent or longer. `other` is working memory. Returns what it has written.
    pub fn write(
        &mut self,
        number: u64,
        state: &[Slot],
        parent: Option<(u64, &[Slot])>,
        base: u64,
        out: &mut Vec<u8>,
        other: &mut Vec<u8>,
    ) -> Written {
        out.clear();
        if let Some((parent_number, parent)) = parent {
            let mut difference = Written { kind: RecordKind::Difference(parent_number), marked: false };
            write_number(fold(parent_number.wrapping_sub(base) as i64) + DIFFERENCE, out);
            let head = out.len();
            if self.varies {
                write_number(fold(state.len() as i64 - parent.len() as i64), out);
            }
            let slots = state.len().max(parent.len());
            let slots_of_all = (!self.varies).then_some(slots);
            if write_list(parent, state, slots, state.len() * 4, out) {
                if let Some(listed) = self.lists.number(&out[head..], 64 + number / STATES_A_LIST, slots_of_all) {
                    out.truncate(head);
                    write_number(listed, out);
                    difference.marked = true;
                }
                if out.len() < LONG_LIST && state.len() > FEW_SLOTS {
                    return difference;
                }
                self.write_whole(state, other);
                if out.len() < other.len() {
                    return difference;
                }
                std::mem::swap(out, other);
                return Written::WHOLE;
            }
        }
        self.write_whole(state, out);
        Written::WHOLE
    }

    /// Growth and list of a difference whose first number takes `at` bytes.
    #[inline(always)]
    fn list<'r>(&'r self, record: Record<'r>, at: usize) -> (&'r [u8], usize) {
        if record.marked {
            self.lists.get(read_number(&record.bytes[at..]).0)
        } else {
            (&record.bytes[at..], record.len - at)
        }
    }

    /// Replaces `out` by the record of a whole state.
    fn write_whole(&self, state: &[Slot], out: &mut Vec<u8>) {
        out.clear();
        out.push(DENSE as u8);
        if self.varies {
            write_number(state.len() as u64, out);
        }
        let head = out.len();
        write_dense(&self.reference, state, out);
        // The list follows the dense form for a moment, and takes its place if it is shorter.
        let dense = out.len();
        if dense > head + 1 && write_list(&self.reference, state, state.len(), dense - head - 1, out) {
            out[0] = LIST as u8;
            out.copy_within(dense.., head);
            out.truncate(head + out.len() - dense);
        }
    }

    /// The contents of a record.
    #[inline(always)]
    pub fn kind(record: Record<'_>) -> RecordKind {
        match read_number(record.bytes).0 {
            DENSE | LIST => RecordKind::Whole,
            number => RecordKind::Difference(record.base.wrapping_add(unfold(number - DIFFERENCE) as u64)),
        }
    }

    /// Takes the current state one step back, if the record's state may be the same.
    #[inline(always)]
    pub fn back(&self, record: Record<'_>, state: &mut Vec<Slot>) -> Back {
        let (first, at) = read_number(record.bytes);
        if first == DENSE || first == LIST {
            return Back::Whole;
        }
        let parent = record.base.wrapping_add(unfold(first - DIFFERENCE) as u64);
        if record.marked && !self.varies {
            for change in self.lists.changes(read_number(&record.bytes[at..]).0) {
                change.undo(state);
            }
            return Back::To(parent);
        }
        let (mut bytes, mut len) = self.list(record, at);
        let mut before = state.len();
        if self.varies {
            let (growth, skip) = read_number(bytes);
            (bytes, len) = (&bytes[skip..], len - skip);
            let Ok(length) = usize::try_from(state.len() as i64 - unfold(growth)) else { return Back::Differs };
            before = length;
            state.resize(state.len().max(before), 0);
        }
        for change in Changes::new(bytes, len, state.len()) {
            // A list between longer states may name a slot that this one does not have.
            if !change.undo(state) {
                return Back::Differs;
            }
        }
        if self.varies {
            if state[before..].iter().any(|&slot| slot != 0) {
                return Back::Differs;
            }
            state.truncate(before);
        }
        Back::To(parent)
    }

    /// Whether the current state is the whole one of a record. It is of no use after that.
    pub fn is_whole(&self, record: Record<'_>, state: &mut [Slot]) -> bool {
        let (form, mut at) = read_number(record.bytes);
        if self.varies {
            let (length, skip) = read_number(&record.bytes[at..]);
            at += skip;
            if length != state.len() as u64 {
                return false;
            }
        }
        if form == DENSE {
            return same_dense(&self.reference, &record.bytes[at..], state);
        }
        for change in Changes::new(&record.bytes[at..], record.len - at, state.len()) {
            change.undo(state);
        }
        let shared = state.len().min(self.reference.len());
        state[..shared] == self.reference[..shared] && state[shared..].iter().all(|&slot| slot == 0)
    }

    /// Makes the state that a difference is from into the state of the record.
    pub fn forward(&self, record: Record<'_>, state: &mut Vec<Slot>) {
        let (_, at) = read_number(record.bytes);
        if record.marked && !self.varies {
            let changes = self.lists.changes(read_number(&record.bytes[at..]).0);
            return changes.iter().for_each(|change| change.make(state));
        }
        let (mut bytes, mut len) = self.list(record, at);
        let before = state.len();
        let mut after = before;
        if self.varies {
            let (growth, skip) = read_number(bytes);
            (bytes, len) = (&bytes[skip..], len - skip);
            after = (before as i64 + unfold(growth)) as usize;
            state.resize(before.max(after), 0);
        }
        for change in Changes::new(bytes, len, state.len()) {
            change.make(state);
        }
        state.truncate(after);
    }

    /// Replaces `state` by the whole state of a record.
    pub fn whole(&self, record: Record<'_>, state: &mut Vec<Slot>) {
        state.clear();
        let (form, mut at) = read_number(record.bytes);
        let mut slots = self.reference.len();
        if self.varies {
            let (length, skip) = read_number(&record.bytes[at..]);
            at += skip;
            slots = length as usize;
        }
        if form == DENSE {
            return read_dense(&self.reference, &record.bytes[at..], slots, state);
        }
        state.extend_from_slice(&self.reference[..slots.min(self.reference.len())]);
        state.resize(slots, 0);
        for change in Changes::new(&record.bytes[at..], record.len - at, slots) {
            change.make(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::patch::SLACK;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn state() -> impl Strategy<Value = Vec<Slot>> {
        vec(prop_oneof![Just(0), 0..9u32, any::<Slot>()], 0..60)
    }

    /// A state and one that shares most of it.
    fn pair() -> impl Strategy<Value = (Vec<Slot>, Vec<Slot>)> {
        (state(), vec((any::<usize>(), any::<Slot>()), 0..4), 0..60usize, any::<bool>()).prop_map(
            |(old, changes, length, shorter)| {
                let mut new = old.clone();
                if shorter {
                    new.resize(length, 3);
                }
                for (at, value) in changes {
                    if !new.is_empty() {
                        let at = at % new.len();
                        new[at] = value;
                    }
                }
                (old, new)
            },
        )
    }

    proptest! {
        #![proptest_config(crate::difference::patch::tests::cases())]

        #[test]
        fn records_lead_forwards_and_back(
            (parent, state) in pair(), other in state(), reference in state(),
            number in 0..1u64 << 40, base in 0..1u64 << 40,
        ) {
            let mut coder = Coder::new(Width::Varies, reference, Arc::new(Budget::unlimited()));
            coder.write(0, &other, Some((1, &parent)), 0, &mut Vec::new(), &mut Vec::new());
            let (mut bytes, mut other) = (Vec::new(), Vec::new());
            let written = coder.write(0, &state, Some((number, &parent)), base, &mut bytes, &mut other);
            let kind = written.kind;
            let len = bytes.len();
            prop_assert!(len <= state.len() * 4 + 16, "never longer than the state");
            bytes.extend([0xff; SLACK]);
            let record = Record { bytes: &bytes, len, marked: written.marked, base };
            prop_assert_eq!(Coder::kind(record), kind);
            let mut back = state.clone();
            match kind {
                RecordKind::Difference(_) => {
                    prop_assert_eq!(coder.back(record, &mut back), Back::To(number));
                    prop_assert_eq!(&back, &parent);
                    coder.forward(record, &mut back);
                }
                RecordKind::Whole => {
                    prop_assert_eq!(coder.back(record, &mut back), Back::Whole);
                    prop_assert!(coder.is_whole(record, &mut state.clone()));
                    prop_assert_eq!(coder.is_whole(record, &mut parent.clone()), parent == state);
                    back.clear();
                    coder.whole(record, &mut back);
                }
            }
            prop_assert_eq!(back, state);
        }

        #[test]
        fn walking_back_another_state_never_panics((parent, state) in pair(), other in state()) {
            let mut coder = Coder::new(Width::Varies, Vec::new(), Arc::new(Budget::unlimited()));
            let (mut bytes, mut spare) = (Vec::new(), Vec::new());
            let Written { kind, marked } = coder.write(0, &state, Some((5, &parent)), 0, &mut bytes, &mut spare);
            let len = bytes.len();
            bytes.extend([0xff; SLACK]);
            let mut back = other.clone();
            let answer = coder.back(Record { bytes: &bytes, len, marked, base: 0 }, &mut back);
            if kind != RecordKind::Whole && other != state {
                prop_assert!(answer == Back::Differs || back != parent, "another state leads elsewhere");
            }
        }
    }
}
