//! The suite for systems: it accepts what is right and rejects what is broken.

use deltamark_core::{
    Action, BLOCK, Batch, Block, Bound, Components, Describe, Fired, Observable, ObservableKind, Observe, Recoding,
    Reversible, Scratch, Slot, States, System, Undone, Value, Widen, Width,
};
use deltamark_nets::{NetSystem, generate::generate};
use deltamark_testkit::conformance::system::{check_poor_system, check_system_up_to};
use deltamark_testkit::systems::{Cells, Counters, Odometer, Stacks, Workers};
use deltamark_testkit::{Forward, PoorHash, RandomGraph, Renamed, check_system};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn the_systems_of_the_kit_pass() {
    check_system(&Workers::new(2, 2, 2));
    check_system(&Workers::new(3, 1, 2));
    check_system(&Cells::new(83, 3));
    check_system(&Counters::new(3, 9));
    check_system(&Counters::new(12, 3));
    check_system(&Counters::new(1, 40));
    check_system_up_to(&Counters::endless(2), 500);
}

#[test]
fn systems_of_which_every_step_can_be_undone_pass() {
    check_system(&Odometer::new(&[11, 9, 8], 1));
    check_system(&Stacks::new(3, 2, 2));
    for seed in 0..20 {
        check_system(&Odometer::random(seed, 500));
        check_system(&Stacks::random(seed, 500));
    }
}

#[test]
fn wrapped_systems_pass() {
    let systems: [fn() -> Box<dyn System>; 5] = [
        || Box::new(Workers::new(2, 2, 2)),
        || Box::new(Counters::new(3, 9)),
        || Box::new(Odometer::new(&[11, 9, 8], 1)),
        || Box::new(Stacks::new(2, 3, 2)),
        || Box::new(NetSystem::new(generate("kanban", 1).expect("a family"))),
    ];
    for fresh in systems {
        check_system(&Forward::new(fresh()));
        check_system(&Renamed::new(fresh()));
        for bits in [0, 2, 6] {
            check_poor_system(&PoorHash::new(fresh(), bits));
        }
    }
}

#[test]
fn random_graphs_pass() {
    for seed in 0..20 {
        check_system(&RandomGraph::new(seed, 1 + seed as usize * 40));
    }
}

/// The flaw of a broken system.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    Nothing,
    HashOfBatch,
    HashOfMany,
    BlockLosesOne,
    Unsteady,
    SameActionTwice,
    FireLeadsElsewhere,
    FireTooWilling,
    UnfireRefuses,
    UnfireLeadsElsewhere,
    PredecessorsLoseOne,
    FireEachMixesUp,
    FireEachClears,
    UnfireEachLosesOne,
    UnfireEachMixesUp,
    UnfireEachKeepsHash,
    RecodingMerges,
    LooksAlike,
    ShownTwice,
    InitialNumbers,
    BoundariesBeyond,
    BoundariesBackwards,
    BlockReadsWrongly,
    NameUnknown,
    KnowsEveryName,
    SurveysWrongly,
    SumsWrongly,
}

/// Counters with a flaw.
struct Flawed {
    inner: Counters,
    flaw: Flaw,
    calls: std::sync::atomic::AtomicU64,
}

impl Flawed {
    fn new(flaw: Flaw) -> Self {
        Flawed { inner: Counters::new(3, 5), flaw, calls: Default::default() }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn copy(&self, from: &Batch, out: &mut Batch, skip: impl Fn(usize) -> bool) {
        for index in (0..from.len()).filter(|&index| !skip(index)) {
            let wrong = u64::from(self.is(Flaw::HashOfBatch) && from.hash(index) % 11 == 3);
            let action =
                if self.is(Flaw::SameActionTwice) { Action(from.action(index).0 / 2) } else { from.action(index) };
            out.push_hashed(action, from.target(index), from.hash(index) ^ wrong);
        }
    }
}

impl System for Flawed {
    fn width(&self) -> Width {
        self.inner.width()
    }

    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        if !self.is(Flaw::InitialNumbers) {
            return self.inner.initial(scratch, out);
        }
        let mut batch = Batch::new(self.width());
        self.inner.initial(scratch, &mut batch)?;
        out.push_hashed(Action(1), batch.target(0), batch.hash(0));
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let mut batch = Batch::new(self.width());
        self.inner.successors(scratch, source, &mut batch)?;
        let call = self.calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.copy(&batch, out, |index| self.is(Flaw::Unsteady) && call % 50 == 49 && index == 0);
        Ok(())
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        for (number, state) in block.states().iter().enumerate() {
            let mut batch = Batch::new(self.width());
            self.inner.successors(scratch, state, &mut batch)?;
            out.begin(number);
            self.copy(&batch, out, |index| self.is(Flaw::BlockLosesOne) && number == 40 && index == 1);
        }
        Ok(())
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn fire(&self, scratch: &mut Scratch, source: &[Slot], action: Action, to: &mut Vec<Slot>) -> Result<Fired, Widen> {
        let fired = self.inner.fire(scratch, source, action, to)?;
        if self.is(Flaw::FireLeadsElsewhere) && action == Action(3) {
            to[0] ^= 1;
        }
        if self.is(Flaw::FireTooWilling) && fired == Fired::Disabled {
            return Ok(Fired::Done);
        }
        Ok(fired)
    }

    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        if self.is(Flaw::FireEachClears) {
            targets.clear();
        }
        self.inner.fire_each(scratch, sources, actions, targets);
        if self.is(Flaw::FireEachMixesUp) {
            let last = targets.get(targets.len() - 2).to_vec();
            targets.truncate(targets.len() - 1);
            targets.push(&last);
        }
    }

    fn hash(&self, scratch: &mut Scratch, state: &[Slot]) -> u64 {
        self.inner.hash(scratch, state)
    }

    fn hashes(&self, scratch: &mut Scratch, states: &States, out: &mut Vec<u64>) {
        self.inner.hashes(scratch, states, out);
        if self.is(Flaw::HashOfMany) {
            out.swap(1, 2);
        }
    }

    fn widen(&self) -> Recoding {
        let right = self.inner.widen();
        if !self.is(Flaw::RecodingMerges) {
            return right;
        }
        let (Width::Fixed(from), Width::Fixed(to)) = (right.from, right.to) else {
            unreachable!("counters do not vary")
        };
        Recoding::new(from, to, "merges".into(), [])
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        Some(self)
    }

    fn components(&self) -> Option<&dyn Components> {
        Some(self)
    }

    fn observe(&self) -> Option<&dyn Observe> {
        Some(self)
    }
}

impl Components for Flawed {
    fn boundaries(&self, state: &[Slot], out: &mut Vec<usize>) {
        out.push(0);
        if self.is(Flaw::BoundariesBeyond) {
            out.push(state.len());
        }
        if self.is(Flaw::BoundariesBackwards) {
            out.push(0);
        }
    }
}

impl Observe for Flawed {
    fn resolve(&self, name: &str) -> Option<Observable> {
        let known = self.inner.resolve(name).filter(|_| !(self.is(Flaw::NameUnknown) && name == "c2"));
        known.or_else(|| self.is(Flaw::KnowsEveryName).then_some(Observable { index: 0, kind: ObservableKind::Int }))
    }

    fn fireable(&self, name: &str) -> Option<Observable> {
        self.inner.fireable(name)
    }

    fn names(&self) -> Vec<String> {
        self.inner.names()
    }

    fn action_names(&self) -> Vec<String> {
        self.inner.action_names()
    }

    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        self.inner.read(scratch, state, observable)
    }

    fn read_block(&self, scratch: &mut Scratch, block: &Block, observable: Observable, out: &mut [i64; BLOCK]) {
        self.inner.read_block(scratch, block, observable, out);
        if self.is(Flaw::BlockReadsWrongly) {
            out[30] += 1;
        }
    }

    fn survey_block(&self, scratch: &mut Scratch, block: &Block, of: &[Observable], bounds: &mut [Bound]) -> i64 {
        let most = self.inner.survey_block(scratch, block, of, bounds);
        if self.is(Flaw::SurveysWrongly) {
            bounds[1].most += 1;
        }
        most + i64::from(self.is(Flaw::SumsWrongly))
    }
}

impl Reversible for Flawed {
    fn unfire(&self, scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool {
        let done = self.inner.unfire(scratch, target, action, source);
        if self.is(Flaw::UnfireLeadsElsewhere) && action == Action(1) {
            *source = target.to_vec();
        }
        done && !(self.is(Flaw::UnfireRefuses) && action == Action(2))
    }

    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        let mut batch = Batch::new(self.width());
        self.inner.predecessors(scratch, target, &mut batch);
        self.copy(&batch, out, |index| self.is(Flaw::PredecessorsLoseOne) && index == 2);
    }

    fn unfire_each(
        &self,
        scratch: &mut Scratch,
        targets: &States,
        hashes: &[u64],
        actions: &[Action],
        out: &mut Undone,
    ) {
        self.inner.unfire_each(scratch, targets, hashes, actions, out);
        let last = out.from.len() - 1;
        if self.is(Flaw::UnfireEachLosesOne) {
            out.states.truncate(last);
            out.hashes.truncate(last);
            out.from.truncate(last);
        }
        if self.is(Flaw::UnfireEachMixesUp) {
            out.states.truncate(last);
            out.states.push(targets.get(out.from[last] as usize));
        }
        if self.is(Flaw::UnfireEachKeepsHash) {
            out.hashes[last] = hashes[out.from[last] as usize];
        }
    }
}

impl Describe for Flawed {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let mut shown = self.inner.describe().state(state);
        if self.is(Flaw::LooksAlike) {
            shown.pop();
        }
        if self.is(Flaw::ShownTwice) {
            shown.push(("c1".into(), Value::Int(7)));
        }
        shown
    }

    fn action(&self, source: &[Slot], action: Action) -> String {
        self.inner.describe().action(source, action)
    }
}

/// The suite's complaint about a system with this flaw.
fn complaint(flaw: Flaw) -> Option<String> {
    complaint_about(&Flawed::new(flaw))
}

fn complaint_about(system: &dyn System) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| check_system(system))).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default())
}

#[test]
fn every_flaw_is_found_and_named() {
    assert_eq!(complaint(Flaw::Nothing), None);
    let cases = [
        (Flaw::HashOfBatch, "a batch carries the hash"),
        (Flaw::HashOfMany, "the same alone and among many"),
        (Flaw::BlockLosesOne, "a block gives the successors of each of its states"),
        (Flaw::Unsteady, "alone"),
        (Flaw::SameActionTwice, "names exactly one successor"),
        (Flaw::FireLeadsElsewhere, "leads where successors say"),
        (Flaw::FireTooWilling, "cannot happen in"),
        (Flaw::UnfireRefuses, "is undone"),
        (Flaw::UnfireLeadsElsewhere, "leads back"),
        (Flaw::PredecessorsLoseOne, "predecessors of"),
        (Flaw::FireEachMixesUp, "leads to the same alone and among many"),
        (Flaw::FireEachClears, "targets of many steps are appended"),
        (Flaw::UnfireEachLosesOne, "is undone among many if it is undone alone"),
        (Flaw::UnfireEachMixesUp, "gives the same alone and among many"),
        (Flaw::UnfireEachKeepsHash, "sources of many steps carry the hash"),
        (Flaw::RecodingMerges, "a hash outlives a recoding"),
        (Flaw::LooksAlike, "different states look different"),
        (Flaw::ShownTwice, "is shown once: [(\"c1\", Int(1)), (\"c1\", Int(7))]"),
        (Flaw::InitialNumbers, "initial states have actions 0, 1, 2"),
        (Flaw::BoundariesBeyond, "lie within it"),
        (Flaw::BoundariesBackwards, "ascend"),
        (Flaw::BlockReadsWrongly, "is the same in a block and alone"),
        (Flaw::NameUnknown, "the name `c2` is known and resolves"),
        (Flaw::KnowsEveryName, "an unknown name is unknown"),
        (Flaw::SurveysWrongly, "a survey of a block gives the bounds of"),
        (Flaw::SumsWrongly, "a survey of a block gives the largest sum"),
    ];
    for (flaw, expected) in cases {
        let complaint = complaint(flaw).unwrap_or_else(|| panic!("{flaw:?} was not found"));
        assert!(complaint.contains(expected), "{flaw:?}: {complaint}");
    }
}

#[test]
fn a_poor_hash_is_shown_by_two_states_that_have_the_same() {
    let poor = PoorHash::new(Box::new(Odometer::new(&[11, 9, 8], 1)), 2);
    let complaint = complaint_about(&poor).expect("four hashes are too few");
    assert!(complaint.contains("these 792 have 4: ") && complaint.ends_with(" have the same"), "{complaint}");
}
