//! What steers a run: limits, a flag to stop it, and listeners.
//!
//! In: limits and when the run began. Out: a [`Control`], which all that a run does asks. Invariant:
//! a memory limit is always set where the machine's memory is known, by the user or from what is
//! available.

use crate::check::CheckError;
use crate::memory::{self, AddressSpace};
use deltamark_core::Budget;
pub use deltamark_core::{Cancel, Control, Event, Limits, Listener, Silent, Snapshot, Stop};
use std::sync::Arc;
use std::time::Instant;

/// A function as a listener that is interested in progress alone.
pub(crate) struct OnProgress<F>(pub F);

impl<F: Fn(&Snapshot) + Send + Sync> Listener for OnProgress<F> {
    fn event(&self, event: &Event<'_>) {
        if let Event::Progress(snapshot) = event {
            (self.0)(snapshot);
        }
    }
}

/// What steers a run that began at `since` before there is anything to search: while a model is loaded. Its deadline and its
/// cancel flag are those of the check that follows, if that is given the same. Where no memory limit is given, there is the
/// same as for a check.
pub fn steering(limits: &Limits, cancel: &Cancel, since: Instant) -> Control {
    let memory = limits.memory.or_else(memory::default_limit);
    Control {
        deadline: limits.time.and_then(|time| since.checked_add(time)),
        limits: Limits { memory, ..limits.clone() },
        cancel: cancel.clone(),
        resident: memory::resident,
        clock: || Some(Instant::now()),
        ..Control::new()
    }
}

/// What steers a run under these limits, and the memory limit that holds. The budget is
/// what the limit leaves beside what the process holds already and a reserve; half of
/// the reserve is kept from the search too, which looks at what is resident only now
/// and then.
pub(crate) fn control(
    limits: Limits,
    cancel: Cancel,
    listener: Arc<dyn Listener>,
    since: Instant,
) -> Result<(Control, Option<u64>), CheckError> {
    let before = steering(&limits, &cancel, since);
    let memory_limit = limits.memory.or_else(memory::default_limit);
    let held = memory::resident().unwrap_or(0);
    // Less room than this and not even the smallest tables fit.
    const ROOM: u64 = 3 << 20;
    let space = AddressSpace::of_this_process();
    if let Some(AddressSpace { limit, mapped }) = space.filter(|space| space.grantable() < ROOM) {
        return Err(CheckError::AddressSpaceTooSmall { limit, mapped });
    }
    let most = space.map_or(u64::MAX, |space| space.grantable());
    let (budget, search_limit) = match memory_limit {
        None => (Budget::new(most), None),
        Some(limit) => {
            let reserve = memory::reserve(limit);
            let least = memory::least_limit(held + ROOM);
            match limit.checked_sub(held + reserve).filter(|room| *room >= ROOM) {
                // Of the reserve, the last quarter is for what is taken between two looks at what is resident.
                Some(room) => (Budget::beside(room.min(most), held + reserve / 4 * 3), Some(limit - reserve / 2)),
                None => return Err(CheckError::MemoryTooSmall { limit, held, least }),
            }
        }
    };
    let limits = Limits { memory: search_limit, ..limits };
    let budget = budget.until(cancel, before.deadline, before.clock);
    let control = Control { limits, listener, budget: Arc::new(budget), ..before };
    Ok((control, memory_limit))
}
