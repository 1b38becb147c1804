//! A layout is widened only if the budget has room for the work.

use deltamark_core::{Budget, Control, Layer, Outcome, Stop, System};
use deltamark_search::{Search, Task, run};
use deltamark_testkit::stores::KINDS;
use deltamark_testkit::systems::Counters;

/// A system that takes this much memory to widen its layout.
struct Costly<'a>(&'a dyn System, u64);

impl Layer for Costly<'_> {
    fn inner(&self) -> &dyn System {
        self.0
    }

    fn widening_bytes(&self) -> u64 {
        self.1
    }
}

fn explored(bytes: u64, search: Search) -> Outcome {
    let counters = Counters::new(3, 9);
    let system = Costly(&counters, bytes);
    let control = Control { budget: Budget::new(1 << 20).into(), ..Control::new() };
    let store = KINDS[0].1(&system, control.budget.clone());
    let task =
        Task { system: &system, store: &*store, properties: &[], control: &control, explore_all: true, observer: None };
    run(search, task)
}

#[test]
fn a_layout_widens_if_there_is_room_for_the_work() {
    for &search in Search::ALL {
        let whole = explored(0, search);
        assert!(whole.complete() && whole.statistics.widenings > 0, "{search:?}: {:?}", whole.stopped_by);
        let within = explored(1000, search);
        assert_eq!((within.stopped_by, within.statistics.states), (None, whole.statistics.states), "{search:?}");
        let beyond = explored(1 << 21, search);
        assert_eq!((beyond.stopped_by, beyond.statistics.widenings), (Some(Stop::Memory), 0), "{search:?}");
        assert!(beyond.statistics.states < whole.statistics.states, "{search:?}");
    }
}
