//! Builds a net arc by arc.
//!
//! In: places, transitions and arcs as a parser or generator finds them. Out: a [`Net`]. What stays true: a place
//! occurs at most once in each arc list of a transition, because arcs between the same two nodes are merged:
//! weights of inputs and outputs add up, of several reads the maximum counts and of several inhibitors the
//! minimum, since the transition must satisfy all of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::net::{Arc, Net, Place, Transition};

/// The kind of an arc, seen from its transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ArcKind {
    /// Takes tokens.
    Input,
    /// Adds tokens.
    Output,
    /// Needs tokens.
    Read,
    /// Needs the absence of tokens.
    Inhibitor,
}

/// The weights of arcs between the same two nodes overflow a token count.
#[derive(Debug)]
pub(crate) struct TooHeavy;

/// A net under construction.
#[derive(Default)]
pub(crate) struct Builder {
    /// The net so far.
    pub net: Net,
    /// The index in its list of the arc of a transition, place and kind.
    arcs: HashMap<(u32, u32, ArcKind), u32>,
}

impl Builder {
    /// Adds a place named by its id.
    pub fn place(&mut self, id: impl Into<String>, initial: u32) -> u32 {
        let id = id.into();
        self.net.places.push(Place { name: id.clone(), id, initial });
        index(self.net.places.len())
    }

    /// Adds a transition named by its id.
    pub fn transition(&mut self, id: impl Into<String>) -> u32 {
        let id = id.into();
        self.net.transitions.push(Transition { name: id.clone(), id, ..Transition::default() });
        index(self.net.transitions.len())
    }

    /// Approximate bytes of an arc's entry in the table.
    pub const ARC_BYTES: usize = size_of::<((u32, u32, ArcKind), u32)>() + 1;

    /// The number of arcs in the table, and its capacity.
    pub fn arcs_held(&self) -> (usize, usize) {
        (self.arcs.len(), self.arcs.capacity())
    }

    /// Adds an arc of weight at least 1 between an existing transition and place.
    pub fn arc(&mut self, transition: u32, place: u32, kind: ArcKind, weight: u32) -> Result<(), TooHeavy> {
        let node = &mut self.net.transitions[transition as usize];
        let list = match kind {
            ArcKind::Input => &mut node.inputs,
            ArcKind::Output => &mut node.outputs,
            ArcKind::Read => &mut node.reads,
            ArcKind::Inhibitor => &mut node.inhibitors,
        };
        match self.arcs.entry((transition, place, kind)) {
            Entry::Vacant(entry) => {
                entry.insert(list.len() as u32);
                list.push(Arc { place, weight });
            }
            Entry::Occupied(entry) => {
                let known = &mut list[*entry.get() as usize].weight;
                *known = match kind {
                    ArcKind::Input | ArcKind::Output => known.checked_add(weight).ok_or(TooHeavy)?,
                    ArcKind::Read => weight.max(*known),
                    ArcKind::Inhibitor => weight.min(*known),
                };
            }
        }
        Ok(())
    }
}

/// The index of the last of `len` items. Inputs are capped far below 2^32 bytes, so it fits.
fn index(len: usize) -> u32 {
    u32::try_from(len - 1).expect("a net has fewer than 2^32 nodes")
}
