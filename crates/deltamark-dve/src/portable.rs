//! States as bytes, by the values of their cells.
//!
//! In: a state, or bytes. Out: bytes, or a state. What stays true: a state that was read satisfies what the analysis
//! of ranges proved of all reachable ones ([`Proved`]), on which code without checks relies.
//!
//! ```text
//! state    [ value, signed ]…       of each cell that takes bits, in order; varints
//! ```
//!
//! # Why lying bytes do no harm
//! Checks of indices, divisors and assignments are left out where no reachable state needs them. The sets that this was
//! derived from are an inductive invariant: they contain the initial state, and a step from any state within them leads
//! to a state within them, reachable or not. So it is enough to compare each cell with its set.

use crate::DveSystem;
use crate::ir::Owner;
use crate::moment::RangeFacts;
use deltamark_core::varint::{self, Reader};
use deltamark_core::{Misread, Portable, Scratch, Slot};
use std::fmt;
use std::sync::Arc;

/// What the analysis of ranges proved of all reachable states.
#[derive(Clone, Default)]
pub(crate) struct Proved(Option<Arc<RangeFacts>>);

impl Proved {
    /// These facts.
    pub fn new(facts: RangeFacts) -> Self {
        Proved(Some(Arc::new(facts)))
    }

    /// The facts, if there are any.
    pub fn facts(&self) -> Option<&RangeFacts> {
        self.0.as_deref()
    }

    /// Whether a state with these values satisfies it.
    fn holds(&self, values: &[i32], owners: impl Iterator<Item = Owner>) -> bool {
        let Some(facts) = &self.0 else { return false };
        let mut locations = vec![0; facts.reached.len()];
        let possible = |number: usize, value: i32| facts.sets[facts.owner[number] as usize].contains(value);
        for (number, (owner, &value)) in owners.zip(values).enumerate() {
            if !possible(number, value) {
                return false;
            }
            if let Owner::Location(process) = owner {
                let reached = &facts.reached[process.0 as usize];
                match usize::try_from(value).ok().filter(|&location| reached.get(location) == Some(&true)) {
                    Some(location) => locations[process.0 as usize] = location,
                    None => return false,
                }
            }
        }
        values.iter().enumerate().all(|(number, &value)| match facts.locals.place[number] {
            Some((process, place)) => {
                let process = process as usize;
                facts.locals.sets[process][locations[process]][place as usize].contains(value)
            }
            None => true,
        })
    }
}

impl fmt::Debug for Proved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proved")
    }
}

impl Portable for DveSystem {
    fn write_state(&self, _: &mut Scratch, state: &[Slot], out: &mut Vec<u8>) {
        for cell in self.program.state_cells().iter().filter(|cell| cell.field.bits() > 0) {
            varint::write_signed(cell.read(state).into(), out);
        }
    }

    fn read_state(&self, _: &mut Scratch, bytes: &mut Reader<'_>, out: &mut Vec<Slot>) -> Result<(), Misread> {
        const FOREIGN: Misread = Misread::Wrong("a cell holds what no cell of the model ever holds");
        let cells = self.program.state_cells();
        let mut values = Vec::with_capacity(cells.len());
        for cell in cells {
            values.push(match cell.field.bits() {
                0 => cell.least(),
                _ => bytes.signed().ok_or(Misread::SHORT)?.try_into().map_err(|_| FOREIGN)?,
            });
        }
        let fits =
            cells.iter().zip(&values).all(|(cell, &value)| cell.field.bits() == 0 || cell.code(value) <= cell.mask());
        if !fits || !self.program.proved.holds(&values, cells.iter().map(|cell| cell.owner)) {
            return Err(FOREIGN);
        }
        out.clear();
        out.resize(self.program.slots, 0);
        cells.iter().zip(values).for_each(|(cell, value)| cell.write(out, value));
        Ok(())
    }
}
