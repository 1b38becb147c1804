//! States and actions as bytes that mean the same in every run of a model.
//!
//! In: a state or an action of one run, or bytes. Out: bytes, or the state or action of this run. Invariants:
//!
//! * I1: bytes depend on what a state means alone, neither on the layout in use nor on numbers that were assigned
//!   in the course of a run. So two runs of one model agree on them, and equal states have equal bytes.
//! * I2: bytes say where they end, so states can be written one after the other.
//! * I3: bytes may be arbitrary. Whatever is read without an error is a state that the system can expand: not
//!   necessarily a reachable one, but one in which all that it relies on holds.
//!
//! Checkpoints and searches on several machines are made of these: a state that was kept by one process is continued
//! by another one, whose tables and layout differ.

use crate::varint::{self, Reader};
use crate::{Action, Scratch, Slot, Widen, Width};
use std::fmt;

/// A system whose states can be written as bytes and read in another run of the same model.
pub trait Portable {
    /// Appends a state.
    fn write_state(&self, scratch: &mut Scratch, state: &[Slot], out: &mut Vec<u8>);

    /// Takes a state off the front of bytes, which may be arbitrary, and replaces the contents of `out` by it.
    ///
    /// After [`Misread::Widen`] the caller lets the system [widen](crate::System::widen) and reads the same bytes
    /// again. After an error, what is left of `bytes` is unspecified.
    fn read_state(&self, scratch: &mut Scratch, bytes: &mut Reader<'_>, out: &mut Vec<Slot>) -> Result<(), Misread>;

    /// How actions are transferred, if their numbers differ between runs; `None` if an action has the same number
    /// in every run.
    fn actions(&self) -> Option<&dyn PortableActions> {
        None
    }
}

/// Actions that are numbered in the course of a run, and so differently in each.
pub trait PortableActions {
    /// A serialised action, with the same meaning in every run.
    fn carry(&self, action: Action) -> Vec<u8>;

    /// The number of the serialised action, assigned now if it has none. `None` if the bytes, which
    /// may be arbitrary, are no action.
    fn receive(&self, bytes: &[u8]) -> Option<Action>;
}

/// Why bytes were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misread {
    /// They are a state that the layout in use cannot hold.
    Widen,
    /// They are no state: why, as a sentence without a full stop.
    Wrong(&'static str),
}

impl Misread {
    /// The bytes end before the state does, or hold what is no number.
    pub const SHORT: Misread = Misread::Wrong("the bytes of a state end early, or hold what is no number");
}

impl From<Widen> for Misread {
    fn from(Widen: Widen) -> Self {
        Misread::Widen
    }
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Misread::Widen => "the layout in use cannot hold the state",
            Misread::Wrong(why) => why,
        })
    }
}

impl std::error::Error for Misread {}

/// Appends the slots of a state as they are, for systems whose slots mean the same in every run. The number of slots
/// comes first if it varies.
pub fn write_slots(width: Width, state: &[Slot], out: &mut Vec<u8>) {
    if width == Width::Varies {
        varint::write(state.len() as u64, out);
    }
    out.extend(state.iter().flat_map(|slot| slot.to_le_bytes()));
}

/// Reads what [`write_slots`] wrote; `None` if the bytes end early. At most `most` slots are read.
pub fn read_slots(width: Width, most: usize, bytes: &mut Reader<'_>, out: &mut Vec<Slot>) -> Option<()> {
    let count = match width {
        Width::Fixed(slots) => slots,
        Width::Varies => bytes.at_most(most as u64)? as usize,
    };
    let (slots, []) = bytes.take(count.checked_mul(size_of::<Slot>())?)?.as_chunks() else { return None };
    out.clear();
    out.extend(slots.iter().map(|&slot| Slot::from_le_bytes(slot)));
    Some(())
}
