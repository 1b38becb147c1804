//! Layouts that change while states keep their width: what a store remembers in the old layout
//! must not be taken for something in the new one.

use deltamark_core::hash::mix;
use deltamark_core::{
    Action, Batch, Control, Describe, Field, Recoding, Reversible, Scratch, Slot, System, Value, Widen, Width,
};
use deltamark_search::{SAMPLERS, Search, Task, run};
use deltamark_store::{CATALOGUE, StoreSpec, Traffic, build};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const HALF: u32 = 1 << 15;
const ALL: u32 = 2 * HALF;
const CHILDREN: u32 = 4;
const BACK: u32 = CHILDREN;
/// How far a step back leads: mostly to the level before.
const FAR: u32 = 5_000;

/// A tree of numbers with long steps back. The upper half of them does not
/// fit the first layout; in the second it reads as the lower half did in the first, slot for
/// slot and with the same hashes.
struct Halves {
    wide: AtomicBool,
}

impl Halves {
    fn read(&self, state: &[Slot]) -> u32 {
        if self.wide.load(Relaxed) { (state[0] + HALF) % ALL } else { state[0] }
    }

    fn write(&self, number: u32) -> Result<Slot, Widen> {
        match self.wide.load(Relaxed) {
            true => Ok((number + HALF) % ALL),
            false if number < HALF => Ok(number),
            false => Err(Widen),
        }
    }

    fn hash_of(number: u32) -> u64 {
        mix(u64::from(number % HALF)) % 4096
    }

    fn after(number: u32, action: u32) -> Option<u32> {
        match action {
            BACK => number.checked_sub(FAR),
            child => Some(CHILDREN * number + child + 1).filter(|&target| target < ALL),
        }
    }

    fn before(number: u32, action: u32) -> Option<u32> {
        match action {
            BACK => Some(number + FAR).filter(|&source| source < ALL),
            child => number.checked_sub(child + 1).filter(|rest| rest % CHILDREN == 0).map(|rest| rest / CHILDREN),
        }
    }
}

impl Describe for Halves {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        vec![("number".into(), Value::Int(self.read(state).into()))]
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        action.0.to_string()
    }
}

impl System for Halves {
    fn width(&self) -> Width {
        Width::Fixed(1)
    }

    fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        out.push_hashed(Action(0), &[self.write(0)?], Self::hash_of(0));
        Ok(())
    }

    fn successors(&self, _scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        for action in 0..=BACK {
            if let Some(target) = Self::after(self.read(source), action) {
                out.push_hashed(Action(action), &[self.write(target)?], Self::hash_of(target));
            }
        }
        Ok(())
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn hash(&self, _scratch: &mut Scratch, state: &[Slot]) -> u64 {
        Self::hash_of(self.read(state))
    }

    fn widen(&self) -> Recoding {
        assert!(!self.wide.swap(true, Relaxed), "everything fits the second layout");
        let field = |least| Field::new(0, 0, ALL.ilog2() as u8, least);
        Recoding::new(1, 1, "the upper half".into(), [(field(0), field(-i64::from(HALF)))])
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        Some(self)
    }
}

impl Reversible for Halves {
    fn unfire(&self, _scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool {
        source.clear();
        let before = Self::before(self.read(target), action.0).and_then(|before| self.write(before).ok());
        source.extend(before);
        before.is_some()
    }

    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        let mut source = Vec::new();
        for action in 0..=BACK {
            if self.unfire(scratch, target, Action(action), &mut source) {
                let hash = self.hash(scratch, &source);
                out.push_hashed(Action(action), &source, hash);
            }
        }
    }
}

/// Every exact store finds all states, in every search it takes.
#[test]
fn what_was_remembered_in_one_layout_is_not_found_in_the_next() {
    let more = ["breadcrumb:k=3,near=0", "comback:cache=200,full=3", "comback:cache=200,waiting=ids", "delta:k=3"];
    let names = CATALOGUE.iter().filter(|info| info.guarantee == "exact").map(|info| info.name).chain(more);
    for text in names {
        for &search in Search::ALL {
            let system = Halves { wide: AtomicBool::new(false) };
            let control = Control::new();
            let spec: StoreSpec = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            let traffic = Traffic { samplers: SAMPLERS, ..search.order().into() };
            let Ok(store) = build(&spec, &system, traffic, control.budget.clone()) else { continue };
            let task = Task {
                system: &system,
                store: &*store,
                properties: &[],
                control: &control,
                explore_all: true,
                observer: None,
            };
            let found = run(search, task).statistics;
            assert_eq!((found.states, found.widenings), (ALL.into(), 1), "{text}, {}", search.name());
        }
    }
}
