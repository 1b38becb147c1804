//! Puts a net together arc by arc.
//!
//! In: places, transitions and arcs as a parser or generator meets them. Out: a [`Net`].
//! What stays true: a place stands at most once in each arc list of a transition, because
//! arcs between the same two nodes are merged: weights of inputs and outputs add up, of
//! several reads the largest counts and of several inhibitors the smallest, since the
//! transition must satisfy all of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::net::{Arc, Net, Place, Transition};

/// What an arc does, seen from its transition.
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

/// Weights of arcs between the same two nodes came to more than a token count can hold.
#[derive(Debug)]
pub(crate) struct TooHeavy;

/// A net under construction.
#[derive(Default)]
pub(crate) struct Builder {
    /// What is there so far.
    pub net: Net,
    /// Where in its list the arc of a transition, place and kind stands.
    arcs: HashMap<(u32, u32, ArcKind), u32>,
}

impl Builder {
    /// Adds a place called by its id.
    pub fn place(&mut self, id: impl Into<String>, initial: u32) -> u32 {
        let id = id.into();
        self.net.places.push(Place { name: id.clone(), id, initial });
        index(self.net.places.len())
    }

    /// Adds a transition called by its id.
    pub fn transition(&mut self, id: impl Into<String>) -> u32 {
        let id = id.into();
        self.net.transitions.push(Transition { name: id.clone(), id, ..Transition::default() });
        index(self.net.transitions.len())
    }

    /// Bytes of an arc's place in the table, about.
    pub const ARC_BYTES: usize = size_of::<((u32, u32, ArcKind), u32)>() + 1;

    /// How many arcs are in the table that finds them again, and for how many it has room.
    pub fn arcs_held(&self) -> (usize, usize) {
        (self.arcs.len(), self.arcs.capacity())
    }

    /// Adds an arc of at least weight 1 between a transition and a place that are there.
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

/// The index of the last of so many. Inputs are capped far below 2^32 bytes, so it fits.
fn index(len: usize) -> u32 {
    u32::try_from(len - 1).expect("a net has fewer than 2^32 nodes")
}
