//! The suite for stores: it accepts what is right and rejects what is broken.

use deltamark_core::{
    Arrival, Attached, Budget, Bytes, Guarantee, Insert, Order, Recall, Recoding, Scratch, Slot, StateId, States, Store,
};
use deltamark_testkit::stores::{KINDS, LossyStore, ReferenceStore};
use deltamark_testkit::{check_reversible_store, check_store};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

#[test]
fn the_reference_stores_pass() {
    for (_, make) in KINDS {
        check_store(Order::Any, make);
        check_store(Order::Levels, make);
    }
}

#[test]
fn a_reference_store_passes_on_reversible_systems() {
    let (_, make) = KINDS[0];
    check_reversible_store(Order::Any, make);
    check_reversible_store(Order::Levels, make);
}

#[test]
fn a_store_that_omits_many_and_says_so_passes() {
    check_store(Order::Any, |_, budget| Box::new(LossyStore::new(budget, 12)));
}

/// The flaw of a broken store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    Nothing,
    ForgetsEvery1000th,
    ConfusesTwoIds,
    RecallsAnother,
    FindsNothing,
    FindsTooMuch,
    CountsWrongly,
    LiesAboutBytes,
    KeepsMemory,
    NotSequential,
    FullWhenSeen,
    DropsWhenFull,
    BatchLosesAnswers,
    RecodesNothing,
    RacesWithItself,
    CallsLossyExact,
    TrustsHashes,
    HasNoValues,
    CountsNoValues,
}

/// A reference store with a flaw.
struct Flawed {
    inner: ReferenceStore,
    flaw: Flaw,
    budget: Arc<Budget>,
    /// How often it was full.
    full: AtomicU64,
    /// The id it gives the state with this hash.
    hashes: Mutex<HashMap<u64, StateId>>,
}

impl Flawed {
    fn new(flaw: Flaw, budget: Arc<Budget>) -> Self {
        let inner = ReferenceStore::new(Arc::clone(&budget));
        Flawed { inner, flaw, budget, full: AtomicU64::default(), hashes: Mutex::default() }
    }
}

impl Store for Flawed {
    fn insert(&self, scratch: &mut Scratch, state: &[Slot], hash: u64, arrival: &Arrival<'_>) -> Insert {
        if self.flaw == Flaw::RacesWithItself && self.inner.find(scratch, state, hash).is_none() {
            // Between look-up and insertion other threads get their chance.
            std::thread::yield_now();
            let answer = self.inner.insert(scratch, state, hash, arrival);
            return match answer {
                Insert::Seen(id) => Insert::New(id),
                other => other,
            };
        }
        if self.flaw == Flaw::TrustsHashes {
            let mut hashes = self.hashes.lock().expect("no thread failed");
            if let Some(&id) = hashes.get(&hash) {
                return Insert::Seen(id);
            }
            let answer = self.inner.insert(scratch, state, hash, arrival);
            if let Insert::New(id) = answer {
                hashes.insert(hash, id);
            }
            return answer;
        }
        let answer = self.inner.insert(scratch, state, hash, arrival);
        match (self.flaw, answer) {
            (Flaw::ForgetsEvery1000th, Insert::Seen(id)) if id.get() % 1000 == 999 => Insert::New(id),
            (Flaw::ConfusesTwoIds, Insert::Seen(id)) if id.get() == 70 => Insert::Seen(StateId::new(71)),
            (Flaw::NotSequential, Insert::New(id)) => Insert::New(StateId::new(id.get() ^ 1)),
            (Flaw::FullWhenSeen, Insert::Seen(_)) if self.full.load(Relaxed) > 0 => Insert::Full,
            (Flaw::DropsWhenFull, Insert::Full) => Insert::Seen(StateId::new(0)),
            (Flaw::CallsLossyExact, Insert::New(_)) if hash.is_multiple_of(100) => Insert::Seen(StateId::new(0)),
            (_, Insert::Full) => {
                self.full.fetch_add(1, Relaxed);
                answer
            }
            _ => answer,
        }
    }

    fn insert_batch(
        &self,
        scratch: &mut Scratch,
        block: &deltamark_core::Block,
        batch: &deltamark_core::Batch,
        out: &mut Vec<Insert>,
    ) {
        let last = if self.flaw == Flaw::BatchLosesAnswers { batch.len().saturating_sub(1) } else { batch.len() };
        for index in 0..last {
            let source = batch.source(index);
            let parent = Some((block.id(source), block.state(source)));
            let arrival = Arrival { parent, action: batch.action(index) };
            out.push(self.insert(scratch, batch.target(index), batch.hash(index), &arrival));
        }
    }

    fn find(&self, scratch: &mut Scratch, state: &[Slot], hash: u64) -> Option<StateId> {
        let found = self.inner.find(scratch, state, hash);
        match self.flaw {
            Flaw::FindsNothing if hash.is_multiple_of(64) => None,
            Flaw::FindsTooMuch => found.or(Some(StateId::new(0))),
            _ => found,
        }
    }

    fn len(&self) -> u64 {
        self.inner.len() + u64::from(self.flaw == Flaw::CountsWrongly && self.inner.len() > 100)
    }

    fn bytes(&self) -> Bytes {
        let bytes = self.inner.bytes();
        match self.flaw {
            Flaw::LiesAboutBytes => Bytes::new().with("states", bytes.total() / 2),
            Flaw::CountsNoValues => Bytes::new().with("states", bytes.parts()[0].1),
            _ => bytes,
        }
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::Exact
    }

    fn recall(&self) -> Option<&dyn Recall> {
        Some(self)
    }

    fn attached(&self) -> Option<&Attached> {
        self.inner.attached().filter(|_| self.flaw != Flaw::HasNoValues)
    }

    fn recode(&self, recoding: &Recoding) -> bool {
        self.flaw == Flaw::RecodesNothing || self.inner.recode(recoding)
    }
}

impl Recall for Flawed {
    fn recall(&self, scratch: &mut Scratch, ids: &[StateId], out: &mut States) {
        let wrong = |id: &StateId| self.flaw == Flaw::RecallsAnother && id.get() == 50;
        let ids: Vec<StateId> = ids.iter().map(|id| if wrong(id) { StateId::new(51) } else { *id }).collect();
        Store::recall(&self.inner).expect("it recalls").recall(scratch, &ids, out);
    }

    fn sequential(&self) -> bool {
        true
    }
}

impl Drop for Flawed {
    fn drop(&mut self) {
        // It never returns what it requests now.
        let _kept = self.flaw == Flaw::KeepsMemory && self.budget.request(1);
    }
}

/// The suite's complaint about a store with this flaw.
fn complaint(flaw: Flaw) -> Option<String> {
    let check = || check_store(Order::Any, |_, budget| Box::new(Flawed::new(flaw, budget)));
    let panic = catch_unwind(AssertUnwindSafe(check)).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default())
}

#[test]
fn every_flaw_is_found_and_named() {
    assert_eq!(complaint(Flaw::Nothing), None);
    let cases = [
        (Flaw::ForgetsEvery1000th, "a state is new once"),
        (Flaw::ConfusesTwoIds, "ids are stable"),
        (Flaw::RecallsAnother, "is recalled as it went in"),
        (Flaw::FindsNothing, "what was inserted is found"),
        (Flaw::FindsTooMuch, "nothing is found in it"),
        (Flaw::CountsWrongly, "its length is the number of new states"),
        (Flaw::LiesAboutBytes, "it accounts for exactly what it was granted"),
        (Flaw::KeepsMemory, "gives back all its memory"),
        (Flaw::NotSequential, "sequential ids are 0, 1, 2"),
        (Flaw::FullWhenSeen, "a state that is there needs no room"),
        (Flaw::DropsWhenFull, "a state that was never inserted is not called seen"),
        (Flaw::BatchLosesAnswers, "every state has an answer"),
        (Flaw::RecodesNothing, "counters 3, 12: what was inserted is found"),
        (Flaw::RacesWithItself, "is new"),
        (Flaw::TrustsHashes, "hash of 2 bits: a state that was never inserted is not called seen"),
        (Flaw::HasNoValues, "a store that recalls all states has values"),
        (Flaw::CountsNoValues, "the bytes of values are among its own"),
        (Flaw::CallsLossyExact, "a state that was never inserted is not called seen"),
    ];
    for (flaw, expected) in cases {
        let complaint = complaint(flaw).unwrap_or_else(|| panic!("{flaw:?} was not found"));
        assert!(complaint.contains(expected), "{flaw:?}: {complaint}");
    }
}
