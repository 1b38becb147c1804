//! The tree of `compact` as an array: positions in sequence, children before parents.
//!
//! In: the cuts chosen from a sample. Out: for each leaf the positions of its bits in a state; for
//! each inner node its two children. Invariants: leaves come first, a parent comes after its
//! children, and the root has no position: it is the pair of the two halves.

use crate::compact::cuts::{Cut, Cuts};
use crate::tables::pair_code::Pick;
use deltamark_core::Slot;

/// Bits of one word of a state that go to a leaf, side by side.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Which word of the state.
    word: u32,
    /// Where they begin in the leaf's key.
    shift: u32,
    mask: u64,
}

/// A tree over the bits of states of one width.
#[derive(Clone)]
pub(crate) struct Plan {
    slots: usize,
    parts: Box<[Part]>,
    /// For each leaf where its parts end.
    ends: Box<[u32]>,
    /// For each word of a state, contiguously, the leaves it has bits of, and which; and
    /// where those of each word end.
    words: Box<[(u32, u64)]>,
    word_ends: Box<[u32]>,
    /// The children of each inner node.
    nodes: Box<[(u32, u32)]>,
    /// The positions of the two halves.
    pub left: usize,
    pub right: usize,
    /// See `tables/pair_code.rs`.
    pub skew: u32,
}

/// Word `index` of a state; the upper half of the last one may be missing.
#[inline(always)]
fn word(state: &[Slot], index: usize) -> u64 {
    let low = u64::from(state[2 * index]);
    match state.get(2 * index + 1) {
        Some(&high) => low | u64::from(high) << 32,
        None => low,
    }
}

impl Plan {
    /// The tree of these cuts.
    pub fn new(cuts: &Cuts, slots: usize) -> Self {
        let mut leaves = Vec::new();
        let mut nodes = Vec::new();
        // First all leaves, so that nodes are numbered behind them.
        collect(&cuts.left, &mut leaves);
        collect(&cuts.right, &mut leaves);
        let count = leaves.len();
        let mut next_leaf = 0;
        let left = number(&cuts.left, count, &mut next_leaf, &mut nodes);
        let right = number(&cuts.right, count, &mut next_leaf, &mut nodes);
        let mut parts = Vec::new();
        let mut ends = Vec::new();
        for bits in leaves {
            let mut shift = 0;
            let mut rest = bits.as_slice();
            while let Some(&first) = rest.first() {
                let index = first / 64;
                let count = rest.iter().take_while(|&&bit| bit / 64 == index).count();
                let mask = rest[..count].iter().fold(0, |mask, bit| mask | 1 << (bit % 64));
                parts.push(Part { word: index as u32, shift, mask });
                shift += count as u32;
                rest = &rest[count..];
            }
            ends.push(parts.len() as u32);
        }
        let mut of_word = vec![Vec::new(); slots.div_ceil(2)];
        for (leaf, &end) in ends.iter().enumerate() {
            let start = if leaf == 0 { 0 } else { ends[leaf - 1] };
            for part in &parts[start as usize..end as usize] {
                of_word[part.word as usize].push((leaf as u32, part.mask));
            }
        }
        let (mut words, mut word_ends) = (Vec::new(), Vec::new());
        for leaves in of_word {
            words.extend(leaves);
            word_ends.push(words.len() as u32);
        }
        Plan {
            slots,
            words: words.into(),
            word_ends: word_ends.into(),
            parts: parts.into(),
            ends: ends.into(),
            nodes: nodes.into(),
            left: left as usize,
            right: right as usize,
            skew: cuts.skew,
        }
    }

    /// Slots of a state.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// How many leaves there are.
    #[inline(always)]
    pub fn leaves(&self) -> usize {
        self.ends.len()
    }

    /// How many positions there are.
    #[inline(always)]
    pub fn positions(&self) -> usize {
        self.ends.len() + self.nodes.len()
    }

    /// The children of the inner node at a position.
    #[inline(always)]
    pub fn children(&self, position: usize) -> (usize, usize) {
        let (left, right) = self.nodes[position - self.ends.len()];
        (left as usize, right as usize)
    }

    #[inline(always)]
    fn parts(&self, leaf: usize) -> &[Part] {
        let start = if leaf == 0 { 0 } else { self.ends[leaf - 1] };
        &self.parts[start as usize..self.ends[leaf] as usize]
    }

    /// The key of a leaf.
    #[inline(always)]
    pub fn key<P: Pick>(&self, pick: P, leaf: usize, state: &[Slot]) -> u64 {
        self.parts(leaf)
            .iter()
            .fold(0, |key, part| key | pick.pick(word(state, part.word as usize), part.mask) << part.shift)
    }

    /// Whether two states differ in a leaf.
    #[inline(always)]
    pub fn differ(&self, leaf: usize, one: &[Slot], other: &[Slot]) -> bool {
        let difference = self.parts(leaf).iter().fold(0, |difference, part| {
            difference | (word(one, part.word as usize) ^ word(other, part.word as usize)) & part.mask
        });
        difference != 0
    }

    /// Calls `visit` with every leaf in which two states differ, perhaps more than once: for states
    /// of many leaves, of which few differ.
    #[inline(always)]
    pub fn each_differing(&self, one: &[Slot], other: &[Slot], mut visit: impl FnMut(usize)) {
        let mut start = 0;
        for (index, &end) in self.word_ends.iter().enumerate() {
            let difference = word(one, index) ^ word(other, index);
            if difference != 0 {
                for &(leaf, mask) in &self.words[start..end as usize] {
                    if difference & mask != 0 {
                        visit(leaf as usize);
                    }
                }
            }
            start = end as usize;
        }
    }

    /// Writes the bits of a leaf into a state that is zero there.
    #[inline(always)]
    pub fn place<P: Pick>(&self, pick: P, leaf: usize, key: u64, state: &mut [Slot]) {
        for part in self.parts(leaf) {
            let bits = pick.place(key >> part.shift, part.mask);
            state[2 * part.word as usize] |= bits as Slot;
            if let Some(high) = state.get_mut(2 * part.word as usize + 1) {
                *high |= (bits >> 32) as Slot;
            }
        }
    }
}

fn collect<'c>(cut: &'c Cut, leaves: &mut Vec<&'c Vec<usize>>) {
    match cut {
        Cut::Leaf(bits) => leaves.push(bits),
        Cut::Node(left, right) => {
            collect(left, leaves);
            collect(right, leaves);
        }
    }
}

/// The position of a tree, whose leaves come in the order they were collected.
fn number(cut: &Cut, leaves: usize, next_leaf: &mut u32, nodes: &mut Vec<(u32, u32)>) -> u32 {
    match cut {
        Cut::Leaf(_) => {
            *next_leaf += 1;
            *next_leaf - 1
        }
        Cut::Node(left, right) => {
            let left = number(left, leaves, next_leaf, nodes);
            let right = number(right, leaves, next_leaf, nodes);
            nodes.push((left, right));
            (leaves + nodes.len() - 1) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::pair_code::Portable;

    #[test]
    fn leaves_say_all_of_a_state() {
        // Three slots, so that the last word is half there; bits are dealt out in turn.
        let deal = |of: usize| (0..96).filter(|bit| bit % 3 == of).collect::<Vec<_>>();
        let node = |one: Cut, other: Cut| Cut::Node(Box::new(one), Box::new(other));
        let cuts = Cuts { left: node(Cut::Leaf(deal(0)), Cut::Leaf(deal(1))), right: Cut::Leaf(deal(2)), skew: 0 };
        let plan = Plan::new(&cuts, 3);
        assert_eq!((plan.leaves(), plan.positions(), plan.left, plan.right), (3, 4, 3, 2));
        assert_eq!(plan.children(3), (0, 1));
        let state = [0xdead_beef, 0x1234_5678, 0x9abc_def0];
        let mut again = [0; 3];
        for leaf in 0..3 {
            plan.place(Portable, leaf, plan.key(Portable, leaf, &state), &mut again);
        }
        assert_eq!(again, state);
        // Bit 64 is dealt to the second leaf.
        let other = [state[0], state[1], state[2] ^ 1];
        assert_eq!([0, 1, 2].map(|leaf| plan.differ(leaf, &state, &other)), [false, true, false]);
        let mut differing = Vec::new();
        plan.each_differing(&state, &[!state[0], state[1], state[2] ^ 1], |leaf| differing.push(leaf));
        assert_eq!(differing, [0, 1, 2, 1]);
    }
}
