//! The smallest system: one state without slots, and a step that leads back to it.
//!
//! In: nothing. Out: a system of width 0, which stores and searches take like any other.

use deltamark_core::{Action, Batch, Describe, Scratch, Slot, System, Value, Widen, Width};

/// One state of no slots with a loop.
pub struct Still;

impl System for Still {
    fn width(&self) -> Width {
        Width::Fixed(0)
    }

    fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        out.push(Action(0), &[]);
        Ok(())
    }

    fn successors(&self, _scratch: &mut Scratch, _source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        out.push(Action(0), &[]);
        Ok(())
    }

    fn describe(&self) -> &dyn Describe {
        self
    }
}

impl Describe for Still {
    fn state(&self, _state: &[Slot]) -> Vec<(String, Value)> {
        Vec::new()
    }

    fn action(&self, _source: &[Slot], _action: Action) -> String {
        "stay".into()
    }
}
