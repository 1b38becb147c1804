//! The shape of states of one length in `tree`: a tree over their slots.
//!
//! In: a length, and the component boundaries. Out: an array of nodes, children before parents, the
//! root last. Invariants: every slot is a child of exactly one node; nodes have at most `K`
//! children; a state of up to `K` slots is a root only.
//!
//! ```text
//! slots   a b | c d e f                 components begin at a and c; K = 2
//! tree    (a b) ((c d) (e f))           each node is cut where a component begins,
//!                                       as near to the middle as there is one
//! ```

use std::ops::Range;

/// A child of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// A slot of the state.
    Slot(u32),
    /// Another node.
    Node(u32),
    /// None: the node has fewer children.
    None,
}

/// A tree over the slots of states of one length.
pub(crate) struct TreeShape<const K: usize> {
    pub slots: usize,
    /// The nodes but for the root, children before parents.
    pub nodes: Vec<[Child; K]>,
    pub root: [Child; K],
    /// For each slot its node, and which child of it; for each node the one above it. The root has
    /// the number of the others.
    slot_node: Vec<u32>,
    slot_child: Vec<u8>,
    above: Vec<u32>,
    /// For each node how many there are on the longest way down from it: those of one height
    /// know nothing of each other.
    heights: Vec<u32>,
}

impl<const K: usize> TreeShape<K> {
    /// The tree over states of `slots` slots, with components that begin at `boundaries`.
    pub fn new(slots: usize, boundaries: &[usize]) -> Self {
        let mut shape = TreeShape {
            slots,
            nodes: Vec::new(),
            root: [Child::None; K],
            slot_node: vec![0; slots],
            slot_child: vec![0; slots],
            above: Vec::new(),
            heights: Vec::new(),
        };
        shape.root = shape.children(0..slots, boundaries);
        let root = shape.nodes.len() as u32;
        shape.above = vec![root; shape.nodes.len()];
        for (number, children) in shape.nodes.iter().chain([&shape.root]).enumerate() {
            let mut height = 0;
            for (place, child) in children.iter().enumerate() {
                match *child {
                    Child::Slot(slot) => {
                        shape.slot_node[slot as usize] = number as u32;
                        shape.slot_child[slot as usize] = place as u8;
                    }
                    Child::Node(node) => {
                        shape.above[node as usize] = number as u32;
                        height = height.max(shape.heights[node as usize] + 1);
                    }
                    Child::None => {}
                }
            }
            shape.heights.push(height);
        }
        shape
    }

    /// The children of a node over these slots; the nodes below it are added.
    fn children(&mut self, slots: Range<usize>, boundaries: &[usize]) -> [Child; K] {
        let mut children = [Child::None; K];
        if slots.len() <= K {
            for (child, slot) in children.iter_mut().zip(slots) {
                *child = Child::Slot(slot as u32);
            }
            return children;
        }
        let mut start = slots.start;
        for (number, child) in children.iter_mut().enumerate() {
            // Each part has at least one slot, and leaves one for each part behind it.
            let most = slots.end - (K - 1 - number);
            let end =
                if number + 1 == K { slots.end } else { cut(&slots, number + 1, K, start + 1..most + 1, boundaries) };
            *child = self.child(start..end, boundaries);
            start = end;
        }
        children
    }

    fn child(&mut self, slots: Range<usize>, boundaries: &[usize]) -> Child {
        if slots.len() == 1 {
            return Child::Slot(slots.start as u32);
        }
        let children = self.children(slots, boundaries);
        self.nodes.push(children);
        Child::Node(self.nodes.len() as u32 - 1)
    }

    /// How many nodes there are, without the root.
    #[inline(always)]
    pub fn inner(&self) -> usize {
        self.nodes.len()
    }

    /// The height of the root.
    #[inline(always)]
    pub fn height(&self) -> usize {
        self.heights[self.nodes.len()] as usize
    }

    /// Which children of the root, and which of any other node, are nodes.
    pub fn above_nodes(&self) -> [[bool; K]; 2] {
        let mut above = [[false; K]; 2];
        for (number, children) in self.nodes.iter().chain([&self.root]).enumerate() {
            let of = usize::from(number < self.nodes.len());
            for (above, child) in above[of].iter_mut().zip(children) {
                *above |= matches!(child, Child::Node(_));
            }
        }
        above
    }

    /// Whether a slot is a child of the root, and which child of its node it is.
    #[inline(always)]
    pub fn place(&self, slot: usize) -> (bool, usize) {
        (self.slot_node[slot] as usize == self.nodes.len(), self.slot_child[slot].into())
    }

    /// Calls `visit` with the node over a slot and with all above it but the root, with the
    /// height of each, as long as it says that it has not seen them.
    #[inline(always)]
    pub fn climb(&self, slot: usize, mut visit: impl FnMut(usize, usize) -> bool) {
        let mut node = self.slot_node[slot] as usize;
        while node < self.nodes.len() && visit(node, self.heights[node] as usize) {
            node = self.above[node] as usize;
        }
    }

    /// The bytes it takes.
    pub fn bytes(slots: usize) -> u64 {
        // At most as many nodes as slots.
        (slots * (size_of::<[Child; K]>() + 3 * size_of::<u32>() + 1) + size_of::<Self>()) as u64
    }
}

/// Where to cut: as near as possible to the end of part `part` of `parts` equal ones, where a
/// component begins, if one begins near there at all.
fn cut(slots: &Range<usize>, part: usize, parts: usize, within: Range<usize>, boundaries: &[usize]) -> usize {
    let ideal = (slots.start + slots.len() * part / parts).clamp(within.start, within.end - 1);
    let behind = boundaries.partition_point(|&boundary| boundary < ideal);
    // Further away it would not be worth the balance.
    let far = slots.len() / (2 * parts);
    let near = |index: usize| {
        let boundary = boundaries.get(index).copied()?;
        (within.contains(&boundary) && boundary.abs_diff(ideal) <= far).then_some(boundary)
    };
    let after = near(behind);
    let before = behind.checked_sub(1).and_then(near);
    match (before, after) {
        (Some(before), Some(after)) if ideal - before < after - ideal => before,
        (_, Some(after)) => after,
        (Some(before), None) => before,
        (None, None) => ideal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<const K: usize>(shape: &TreeShape<K>, children: &[Child; K]) -> String {
        let child = |child: &Child| match *child {
            Child::Slot(slot) => slot.to_string(),
            Child::Node(node) => format!("({})", text(shape, &shape.nodes[node as usize])),
            Child::None => String::new(),
        };
        children.iter().map(child).filter(|child| !child.is_empty()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn trees_are_balanced_and_cut_where_components_begin() {
        let cases: &[(usize, &[usize], &str)] = &[
            (0, &[], ""),
            (1, &[0], "0"),
            (2, &[0], "0 1"),
            (3, &[0], "0 (1 2)"),
            (6, &[0], "(0 (1 2)) (3 (4 5))"),
            (6, &[0, 2], "(0 1) ((2 3) (4 5))"),
            (5, &[0, 1, 2, 3, 4], "(0 1) (2 (3 4))"),
            (4, &[0, 3], "(0 (1 2)) 3"),
        ];
        for &(slots, boundaries, expected) in cases {
            let shape = TreeShape::<2>::new(slots, boundaries);
            assert_eq!(text(&shape, &shape.root), expected);
        }
        let wide = TreeShape::<4>::new(10, &[0, 5]);
        assert_eq!(text(&wide, &wide.root), "(0 1) (2 3 4) (5 6) (7 8 9)");
    }

    #[test]
    fn every_slot_leads_to_the_root() {
        for slots in 1..if cfg!(miri) { 20 } else { 200 } {
            let shape = TreeShape::<3>::new(slots, &[0, slots / 3]);
            for slot in 0..slots {
                let mut last = None;
                shape.climb(slot, |node, height| {
                    assert!(last.is_none_or(|last| last < node) && height < shape.height());
                    last = Some(node);
                    true
                });
            }
            assert!(shape.inner() <= slots && shape.height() <= 6);
        }
    }
}
