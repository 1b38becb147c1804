//! A net compiled for one layout.
//!
//! In: a net and a layout. Out: [`Compiled`]: the tests and additions of each transition. What stays true:
//!
//! * A state's *truths* are words with one bit for each of the 64 states of a block.
//!   The first `64 × words` of them are the bit planes of the states themselves; after
//!   them come the thresholds `count ≥ k` that fields of several bits need. A transition
//!   is enabled where all its conditions are true, and leaves the layout where one of
//!   its overflow conditions is true.
//! * Groups are in order of decreasing priority. A step is fired where its conditions are true and no step of a
//!   group of higher priority has all of its conditions true.
//! * Firing adds one number a word: no field crosses a word, so [fields](deltamark_core::layout) never disturb each other.
//! * The hash of a marking is the sum of count × coefficient over all places, so firing
//!   adds one number to it as well, and it does not depend on the layout.

use crate::Net;
use crate::step::Steps;
use deltamark_core::hash::coefficient;
use deltamark_core::layout::word;
use deltamark_core::{Control, Field, Layout, Stop};
use std::collections::HashMap;

/// `count ≥ threshold`, computed over the planes of a field of several bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    /// The truth of the field's lowest bit.
    pub plane: u32,
    /// The number of bits of the field.
    pub bits: u8,
    /// The bound, at least 1 and at most the field's maximum.
    pub at_least: u64,
}

/// A truth that must hold or, for inhibitors, must not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Index of the truth.
    pub truth: u32,
    /// All ones if the truth must not hold, zero otherwise.
    pub flip: u64,
}

/// A transition that can fire in this layout.
#[derive(Clone, Debug)]
pub(crate) struct CompiledStep {
    /// The number of the transition.
    pub transition: u32,
    /// Its conditions except the first, which its group holds.
    pub conditions: std::ops::Range<u32>,
    /// Truths that mean that a count would overflow its field.
    pub overflows: std::ops::Range<u32>,
    /// What firing adds: a range of [`Compiled::changes`].
    pub changes: std::ops::Range<u32>,
    /// What firing adds to the hash.
    pub hash: u64,
}

/// Steps that share their first condition: if it is false for a whole block, none of them is tried.
#[derive(Clone, Debug)]
pub(crate) struct StepGroup {
    /// The shared condition.
    pub condition: Condition,
    /// A range of [`Compiled::steps`].
    pub steps: std::ops::Range<u32>,
    /// The priority of all of them.
    pub priority: u32,
}

/// The addition to one word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// Which word.
    pub word: u32,
    /// The addend, wrapping.
    pub add: u64,
}

/// A net compiled for one layout.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub layout: Layout,
    /// How many words a state takes.
    pub words: usize,
    /// Changes with every widening.
    pub version: u64,
    /// Whether some field has the maximum width, so that counts may be cut off there.
    pub widest: bool,
    pub thresholds: Vec<Threshold>,
    /// The index of the truth that always holds.
    pub always: u32,
    /// The number of truths of a block.
    pub truths: usize,
    pub groups: Vec<StepGroup>,
    pub steps: Vec<CompiledStep>,
    pub conditions: Vec<Condition>,
    pub overflows: Vec<u32>,
    pub changes: Vec<Change>,
    /// All transitions, for steps that are taken one by one.
    pub single: Steps,
    /// What each bit of a state adds to the hash, by bit number.
    pub bit_hash: Vec<u64>,
    /// What each part of a word of a state adds to the hash: of a byte, 256 entries each; of four bits, 16 entries each,
    /// for wide states, where the tables of bytes would not stay in the cache; empty for still wider ones.
    pub part_hash: Vec<u64>,
    /// The bits of such a part.
    part_bits: usize,
    /// Words with fewer bits set are hashed bit by bit, which is quicker for them.
    sparse: u32,
    /// The part of the hash that never changes.
    pub base_hash: u64,
}

/// What a word adds to the hash, looked up in tables of 256 entries for each of its bytes.
#[inline(always)]
fn hash_by_bytes(tables: &[u64; 2048], value: u64) -> u64 {
    let mut sum = 0u64;
    for byte in 0..8 {
        sum = sum.wrapping_add(tables[256 * byte + (value >> (8 * byte) & 255) as usize]);
    }
    sum
}

/// States of more words are not hashed bytewise.
const BYTE_TABLE_WORDS: usize = 16;
/// States of more words are hashed bit by bit.
const NIBBLE_TABLE_WORDS: usize = 256;

impl Compiled {
    /// Compiles the net for this layout.
    pub fn new(net: &Net, layout: Layout, version: u64) -> Self {
        Self::under(net, layout, version, &Control::new()).unwrap_or_else(|_| unreachable!("nobody asks it to stop"))
    }

    /// The same, unless `control` stops it.
    pub fn under(net: &Net, layout: Layout, version: u64, control: &Control) -> Result<Self, Stop> {
        let mut truths = Truths {
            first: 64 * layout.words() as u32 + 1,
            thresholds: Vec::new(),
            known: HashMap::new(),
            always: 64 * layout.words() as u32,
        };
        let mut drafts = Vec::new();
        for (number, transition) in net.transitions.iter().enumerate() {
            control.ask()?;
            if let Some(draft) = Draft::new(net, &layout, &mut truths, number as u32, transition) {
                drafts.push(draft);
            }
        }
        // The rarest truth first: it is the most likely to be false for a whole block.
        let mut uses: HashMap<u32, u32> = HashMap::new();
        for condition in drafts.iter().flat_map(|draft| &draft.conditions) {
            *uses.entry(condition.truth).or_default() += 1;
        }
        for draft in &mut drafts {
            draft.conditions.sort_by_key(|condition| (condition.flip, uses[&condition.truth]));
        }
        let first = |draft: &Draft| (draft.conditions[0].truth, draft.conditions[0].flip);
        drafts.sort_by_key(|draft| (std::cmp::Reverse(draft.priority), first(draft)));

        let mut compiled = Compiled {
            version,
            widest: layout.fields.iter().any(|field| field.bits() == Field::MAX_BITS),
            always: truths.always,
            truths: truths.first as usize + truths.thresholds.len(),
            thresholds: truths.thresholds,
            groups: Vec::new(),
            steps: Vec::new(),
            conditions: Vec::new(),
            overflows: Vec::new(),
            changes: Vec::new(),
            bit_hash: Vec::new(),
            part_hash: Vec::new(),
            part_bits: 8,
            sparse: u32::MAX,
            base_hash: 0,
            single: Steps::under(net, &layout, control)?,
            words: layout.words(),
            layout,
        };
        for draft in drafts {
            control.ask()?;
            compiled.add_step(draft);
        }
        compiled.prepare_hash();
        Ok(compiled)
    }

    /// The bytes that it takes to compile the net for another layout of about this size: of the result, whose lists may
    /// have grown by doubling, and of the drafts of all steps.
    pub fn bytes_to_compile(&self) -> u64 {
        let conditions = size_of_val(&self.conditions[..]);
        let lists = size_of_val(&self.groups[..])
            + size_of_val(&self.steps[..])
            + conditions
            + size_of_val(&self.overflows[..])
            + size_of_val(&self.changes[..])
            + size_of_val(&self.thresholds[..]);
        let tables = size_of_val(&self.bit_hash[..]) + size_of_val(&self.part_hash[..]);
        // Each draft has three lists of its own, which an allocator rounds up.
        let drafts = lists + self.steps.len() * (size_of::<Draft>() + 48);
        (2 * lists + tables + drafts) as u64 + 2 * self.single.bytes()
    }

    fn add_step(&mut self, draft: Draft) {
        let index = self.steps.len() as u32;
        match self.groups.last_mut() {
            Some(group) if group.condition == draft.conditions[0] && group.priority == draft.priority => {
                group.steps.end = index + 1;
            }
            _ => self.groups.push(StepGroup {
                condition: draft.conditions[0],
                steps: index..index + 1,
                priority: draft.priority,
            }),
        }
        let step = CompiledStep {
            transition: draft.transition,
            conditions: extend(&mut self.conditions, draft.conditions[1..].iter().copied()),
            overflows: extend(&mut self.overflows, draft.overflows),
            changes: extend(&mut self.changes, draft.changes),
            hash: draft.hash,
        };
        self.steps.push(step);
    }

    fn prepare_hash(&mut self) {
        let words = self.layout.words();
        self.bit_hash = vec![0; 64 * words];
        for (place, field) in self.layout.fields.iter().enumerate() {
            let unit = coefficient(place as u64);
            self.base_hash = self.base_hash.wrapping_add(unit.wrapping_mul(field.least() as u64));
            for bit in 0..usize::from(field.bits()) {
                self.bit_hash[64 * field.word() as usize + usize::from(field.word_shift()) + bit] =
                    unit.wrapping_shl(bit as u32);
            }
        }
        if words <= NIBBLE_TABLE_WORDS {
            (self.part_bits, self.sparse) = match words {
                ..=2 => (8, 0),
                3..=BYTE_TABLE_WORDS => (8, 6),
                _ => (4, 12),
            };
            let (bits, values) = (self.part_bits, 1 << self.part_bits);
            self.part_hash = vec![0; 64 / bits * words * values];
            for (table, units) in self.part_hash.chunks_exact_mut(values).zip(self.bit_hash.chunks_exact(bits)) {
                for value in 1..values {
                    let lowest = value.trailing_zeros() as usize;
                    table[value] = table[value & (value - 1)].wrapping_add(units[lowest]);
                }
            }
        }
    }

    /// What word `index` with this value adds to the hash.
    #[inline(always)]
    pub fn word_hash(&self, index: usize, mut value: u64) -> u64 {
        if self.sparse != 0 && value.count_ones() < self.sparse {
            let units = &self.bit_hash[64 * index..64 * index + 64];
            let mut sum = 0u64;
            while value != 0 {
                sum = sum.wrapping_add(units[value.trailing_zeros() as usize]);
                value &= value - 1;
            }
            sum
        } else if self.part_bits == 8 {
            let tables = &self.part_hash[2048 * index..2048 * index + 2048];
            hash_by_bytes(tables.try_into().expect("eight tables"), value)
        } else {
            self.hash_by_nibbles(index, value)
        }
    }

    /// The same for wide states. Not inline: with sixteen more look-ups in them the loops that hash narrow states become
    /// too large for the compiler to inline.
    #[inline(never)]
    fn hash_by_nibbles(&self, index: usize, value: u64) -> u64 {
        let tables = &self.part_hash[256 * index..256 * index + 256];
        (0..16).fold(0u64, |sum, nibble| sum.wrapping_add(tables[16 * nibble + (value >> (4 * nibble) & 15) as usize]))
    }

    /// The hash of a marking.
    #[inline(always)]
    pub fn hash(&self, slots: &[u32]) -> u64 {
        let mut hash = self.base_hash;
        for index in 0..self.words {
            hash = hash.wrapping_add(self.word_hash(index, word(slots, index)));
        }
        hash
    }

    /// Appends the hashes of markings that follow each other.
    pub fn hash_all(&self, states: &[u32], out: &mut Vec<u64>) {
        let states = states.chunks_exact(self.layout.slots);
        if self.sparse != 0 {
            return out.extend(states.map(|state| self.hash(state)));
        }
        // One or two words, always by bytes.
        let (base, tables) = (self.base_hash, self.part_hash.as_chunks::<2048>().0);
        match tables {
            [first] => out.extend(states.map(|state| base.wrapping_add(hash_by_bytes(first, word(state, 0))))),
            [first, second] => out.extend(states.map(|state| {
                let hash = base.wrapping_add(hash_by_bytes(first, word(state, 0)));
                hash.wrapping_add(hash_by_bytes(second, word(state, 1)))
            })),
            _ => out.extend(states.map(|_| base)),
        }
    }
}

fn extend<T>(list: &mut Vec<T>, items: impl IntoIterator<Item = T>) -> std::ops::Range<u32> {
    let start = list.len() as u32;
    list.extend(items);
    start..list.len() as u32
}

/// The truths named so far.
struct Truths {
    first: u32,
    always: u32,
    thresholds: Vec<Threshold>,
    known: HashMap<(u32, u64), u32>,
}

/// A condition, as far as the layout decides it.
enum Known {
    True,
    False,
    Open(u32),
}

impl Truths {
    fn at_least(&mut self, layout: &Layout, place: u32, count: u64) -> Known {
        let field = layout.fields[place as usize];
        if count == 0 {
            return Known::True;
        }
        if field.bits() == 0 {
            return if field.least() as u64 >= count { Known::True } else { Known::False };
        }
        if count > field.mask() {
            return Known::False;
        }
        let plane = 64 * field.word() + u32::from(field.word_shift());
        if field.bits() == 1 {
            return Known::Open(plane);
        }
        let next = self.first + self.thresholds.len() as u32;
        Known::Open(*self.known.entry((place, count)).or_insert_with(|| {
            self.thresholds.push(Threshold { plane, bits: field.bits(), at_least: count });
            next
        }))
    }
}

/// A transition before it becomes a [`CompiledStep`].
struct Draft {
    transition: u32,
    conditions: Vec<Condition>,
    overflows: Vec<u32>,
    changes: Vec<Change>,
    hash: u64,
    priority: u32,
}

impl Draft {
    /// `None` if the transition cannot fire in any state of this layout.
    fn new(
        net: &Net,
        layout: &Layout,
        truths: &mut Truths,
        number: u32,
        transition: &crate::Transition,
    ) -> Option<Draft> {
        let mut conditions = Vec::new();
        for arc in transition.inputs.iter().chain(&transition.reads) {
            match truths.at_least(layout, arc.place, u64::from(arc.weight)) {
                Known::True => {}
                Known::False => return None,
                Known::Open(truth) => conditions.push(Condition { truth, flip: 0 }),
            }
        }
        for arc in &transition.inhibitors {
            match truths.at_least(layout, arc.place, u64::from(arc.weight)) {
                Known::True => return None,
                Known::False => {}
                Known::Open(truth) => conditions.push(Condition { truth, flip: u64::MAX }),
            }
        }
        if conditions.is_empty() {
            conditions.push(Condition { truth: truths.always, flip: 0 });
        }
        let mut overflows = Vec::new();
        let mut hash = 0u64;
        let mut adds: HashMap<u32, u64> = HashMap::new();
        for (place, gain) in net.effect(transition) {
            let field = layout.fields[place as usize];
            hash = hash.wrapping_add(coefficient(u64::from(place)).wrapping_mul(gain as u64));
            let add = adds.entry(field.word()).or_default();
            *add = add.wrapping_add((gain as u64).wrapping_shl(u32::from(field.word_shift())));
            if gain > 0 {
                let room = (field.most() as u64 + 1).saturating_sub(gain as u64);
                match truths.at_least(layout, place, room) {
                    Known::True => overflows.push(truths.always),
                    Known::False => {}
                    Known::Open(truth) => overflows.push(truth),
                }
            }
        }
        let mut changes: Vec<Change> = adds.into_iter().map(|(word, add)| Change { word, add }).collect();
        changes.sort_by_key(|change| change.word);
        Some(Draft { transition: number, conditions, overflows, changes, hash, priority: transition.priority })
    }
}
