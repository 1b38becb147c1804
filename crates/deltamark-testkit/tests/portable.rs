//! The suite for states as bytes passes what is right, and fails on each way of being wrong.

use deltamark_core::varint::Reader;
use deltamark_core::{Batch, Layer, Misread, Portable, Recoding, Scratch, Slot, System, Value, Widen, Width};
use deltamark_testkit::systems::Counters;
use deltamark_testkit::{Forward, Renamed, check_portable};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    None,
    /// Slots are written as the layout in use has them.
    Layout,
    /// All states are written alike.
    Merged,
    /// Whatever follows is read too.
    Open,
    /// What is missing is taken for zero.
    Half,
    /// A byte of 128 or more may come first.
    TwoForms,
    /// Bytes with false contents are a panic.
    Panics,
    /// No layout is wide enough.
    Stuck,
    /// Each run has another description, hash, or number of steps.
    Shown,
    Hash,
    Steps,
}

struct Flawed {
    inner: Counters,
    flaw: Flaw,
    instance: usize,
}

impl Layer for Flawed {
    fn inner(&self) -> &dyn System {
        &self.inner
    }

    fn portable(&self) -> Option<&dyn Portable> {
        Some(self)
    }

    fn widen(&self) -> Recoding {
        match (self.flaw, self.inner.width()) {
            (Flaw::Stuck, Width::Fixed(slots)) if self.instance > 0 => {
                Recoding::new(slots, slots, "nothing changes".into(), [])
            }
            _ => self.inner.widen(),
        }
    }

    fn describe_state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let mut shown = self.inner.describe().state(state);
        if self.flaw == Flaw::Shown {
            shown.push(("instance".into(), Value::Int(self.instance as i64)));
        }
        shown
    }

    fn hash(&self, scratch: &mut Scratch, state: &[Slot]) -> u64 {
        let hash = self.inner.hash(scratch, state);
        if self.flaw == Flaw::Hash { hash + self.instance as u64 } else { hash }
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let mut all = Batch::new(self.inner.width());
        self.inner.successors(scratch, source, &mut all)?;
        let lost = if self.flaw == Flaw::Steps { self.instance.min(all.len()) } else { 0 };
        (lost..all.len()).for_each(|index| out.push_hashed(all.action(index), all.target(index), all.hash(index)));
        Ok(())
    }
}

impl Portable for Flawed {
    fn write_state(&self, scratch: &mut Scratch, state: &[Slot], out: &mut Vec<u8>) {
        match self.flaw {
            Flaw::Layout => out.extend(state.iter().flat_map(|slot| slot.to_le_bytes())),
            Flaw::Merged => out.push(0),
            _ => self.inner.write_state(scratch, state, out),
        }
    }

    fn read_state(&self, scratch: &mut Scratch, bytes: &mut Reader<'_>, out: &mut Vec<Slot>) -> Result<(), Misread> {
        match self.flaw {
            Flaw::Layout => {
                out.clear();
                let slot = bytes.take(4).ok_or(Misread::SHORT)?;
                out.push(slot.iter().rev().fold(0, |slot, &byte| slot << 8 | Slot::from(byte)));
                return Ok(());
            }
            Flaw::Stuck if self.instance > 0 => return Err(Misread::Widen),
            Flaw::TwoForms if bytes.rest().first() >= Some(&128) => drop(bytes.byte()),
            Flaw::Half => {
                let padded = [bytes.rest(), &[0; 5]].concat();
                bytes.take(bytes.rest().len().min(5));
                return self.inner.read_state(scratch, &mut Reader::new(&padded), out);
            }
            _ => {}
        }
        let read = self.inner.read_state(scratch, bytes, out);
        if self.flaw == Flaw::Open {
            bytes.take(bytes.rest().len());
        }
        assert!(self.flaw != Flaw::Panics || !matches!(read, Err(Misread::Wrong(_))), "lied to");
        read
    }
}

fn check(flaw: Flaw) {
    let instances = AtomicUsize::new(0);
    check_portable(|| Flawed { inner: Counters::new(5, 4), flaw, instance: instances.fetch_add(1, Relaxed) });
}

#[test]
fn counters_and_layers_over_them_pass() {
    check(Flaw::None);
    check_portable(|| Counters::new(3, 17));
    check_portable(|| Counters::endless(2));
    check_portable(|| Renamed::new(Box::new(Forward::new(Box::new(Counters::new(4, 5))))));
}

#[test]
fn each_flaw_is_found() {
    let cases = [
        (Flaw::Layout, "in every run"),
        (Flaw::Merged, "different states have different bytes"),
        (Flaw::Open, "bytes say where they end"),
        (Flaw::Half, "half a state is no state"),
        (Flaw::TwoForms, "a state has one form"),
        (Flaw::Panics, "lied to"),
        (Flaw::Stuck, "a layout is widened for what was read"),
        (Flaw::Shown, "a state is shown alike in every run"),
        (Flaw::Hash, "a state has the same hash in every run"),
        (Flaw::Steps, "a state has the same steps in every run"),
    ];
    for (flaw, expected) in cases {
        let panic = catch_unwind(AssertUnwindSafe(|| check(flaw))).expect_err("a flaw is found");
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("a panic without words");
        assert!(text.contains(expected), "{flaw:?} is found, but as: {text}");
    }
}
