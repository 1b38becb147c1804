//! External control of a run, and its events.
//!
//! In: limits, a cancel flag, a listener. Out: [`Event`]s that any user interface can show, and
//! [`Control::ask`], which all long computations poll: loading, unfolding, searches, trace
//! reconstruction. Invariants: a run checks its limits at least every few thousand states, and
//! events cost nothing without a listener.

use crate::{Budget, Bytes, Stop};
use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How many calls of [`Control::ask`] pass from one look at the clock to the next.
const CLOCK_EVERY: u32 = 32;
/// The least time from one look at what the process holds to the next, in microseconds. Filling memory takes about
/// half a second a GiB, so the limit is overrun by a megabyte or two at most.
const MEMORY_EVERY: u64 = 500;

/// The limits of a run.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The maximum resident bytes of the process.
    pub memory: Option<u64>,
    /// The maximum time of a search, from its own start. The limit of the whole run is
    /// [`Control::deadline`].
    pub time: Option<Duration>,
    /// The maximum number of states.
    pub states: Option<u64>,
    /// The maximum distance from an initial state.
    pub depth: Option<u64>,
}

/// A flag that requests a run to stop, for example from a signal handler.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// A flag that counts as well.
    above: Option<Arc<Cancel>>,
}

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the run to stop soon.
    pub fn cancel(&self) {
        self.flag.store(true, Relaxed);
    }

    /// A child flag for a part of the run: it is set when this one is set, and can be set
    /// independently.
    pub fn below(&self) -> Self {
        Cancel { flag: Arc::default(), above: Some(Arc::new(self.clone())) }
    }

    /// Whether a stop was requested.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Relaxed) || self.above.as_ref().is_some_and(|above| above.is_cancelled())
    }
}

/// The progress of a run.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// States found.
    pub states: u64,
    /// Edges seen.
    pub edges: u64,
    /// States found but not expanded.
    pub frontier: u64,
    /// The current distance from the initial states.
    pub depth: u64,
    /// The bytes of the store, by part.
    pub store_bytes: Bytes,
    /// The bytes of the frontier.
    pub frontier_bytes: u64,
    /// The resident bytes of the process, if known.
    pub resident_bytes: Option<u64>,
    /// Time since the search began.
    pub elapsed: Duration,
}

/// An event of a run.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The run continues. Sent several times a second.
    Progress(&'a Snapshot),
    /// The system changed its layout: why.
    Widened(&'a str),
    /// A property was answered: its name and the verdict's word.
    Answered(&'a str, &'static str),
}

/// A receiver of events.
pub trait Listener: Send + Sync {
    /// Handles an event. Called from the threads of the search, so it must be fast.
    fn event(&self, event: &Event<'_>);
}

/// A listener that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Listener for Silent {
    fn event(&self, _event: &Event<'_>) {}
}

/// The external control of a run.
#[derive(Clone)]
pub struct Control {
    /// The limits of a run.
    pub limits: Limits,
    /// The cancel flag.
    pub cancel: Cancel,
    /// The receiver of events.
    pub listener: Arc<dyn Listener>,
    /// The memory budget.
    pub budget: Arc<Budget>,
    /// Returns the resident bytes of the process. This crate does no input or output, so the front
    /// end supplies the function that queries the operating system.
    pub resident: fn() -> Option<u64>,
    /// The deadline of the whole run, including loading and trace reconstruction.
    pub deadline: Option<Instant>,
    /// Reads the clock, also supplied by the front end. Without one there is no deadline.
    pub clock: fn() -> Option<Instant>,
    /// When clock and memory were last checked.
    pub pace: Arc<Pace>,
}

/// When clock and memory were last checked, shared by all who [poll](Control::ask) the same
/// control.
#[derive(Debug, Default)]
pub struct Pace {
    asked: AtomicU32,
    began: OnceLock<Instant>,
    /// When memory is to be looked at again, in microseconds since the beginning.
    next_look: AtomicU64,
}

impl Control {
    /// No limits, no listener.
    pub fn new() -> Self {
        Control {
            limits: Limits::default(),
            cancel: Cancel::new(),
            listener: Arc::new(Silent),
            budget: Arc::new(Budget::unlimited()),
            resident: || None,
            deadline: None,
            clock: || None,
            pace: Arc::default(),
        }
    }

    /// Whether all work must end now, and why: on request, at the deadline, or because the process
    /// exceeds its memory limit. Reads the clock and queries the operating system, which takes
    /// microseconds.
    pub fn stop(&self) -> Option<Stop> {
        self.stop_without_memory().or_else(|| self.over(0).then_some(Stop::Memory))
    }

    /// The same without the memory limit, for work that allocates nothing or only granted memory.
    pub fn stop_without_memory(&self) -> Option<Stop> {
        if self.cancel.is_cancelled() {
            return Some(Stop::Cancelled);
        }
        let deadline = self.deadline?;
        (self.clock)().is_some_and(|now| now >= deadline).then_some(Stop::Time)
    }

    /// The same as [`stop`](Self::stop), and cheap enough for every iteration of a loop: most calls
    /// only read the cancel flag. Between two calls a caller should spend less than some 10
    /// microseconds, and allocate less than some 100 kilobytes.
    pub fn ask(&self) -> Result<(), Stop> {
        if self.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        if !self.pace.asked.fetch_add(1, Relaxed).is_multiple_of(CLOCK_EVERY) {
            return Ok(());
        }
        self.check()
    }

    /// Why the run ends where a store has no room: it may also have given up growing because the run
    /// [is over](Budget::is_over).
    pub fn stop_when_full(&self) -> Stop {
        self.stop_without_memory().unwrap_or(Stop::Memory)
    }

    /// The same as [`ask`](Self::ask), for longer iterations: the clock is read in every call, and
    /// memory checked every half a millisecond.
    #[cold]
    pub fn check(&self) -> Result<(), Stop> {
        if self.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        let Some(now) = (self.clock)() else { return if self.over(0) { Err(Stop::Memory) } else { Ok(()) } };
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(Stop::Time);
        }
        if self.limits.memory.is_some() {
            let began = self.pace.began.get_or_init(|| now);
            let passed = now.saturating_duration_since(*began).as_micros() as u64;
            if passed >= self.pace.next_look.load(Relaxed) {
                self.pace.next_look.store(passed + MEMORY_EVERY, Relaxed);
                if self.over(0) {
                    return Err(Stop::Memory);
                }
            }
        }
        Ok(())
    }

    /// The same as [`stop`](Self::stop), before an allocation of this many bytes: it is refused if
    /// the process would exceed its memory limit.
    pub fn ask_for(&self, bytes: u64) -> Result<(), Stop> {
        match self.stop_without_memory() {
            Some(stop) => Err(stop),
            None if self.over(bytes) => Err(Stop::Memory),
            None => Ok(()),
        }
    }

    /// Whether the process would hold more than it may with this many bytes more.
    fn over(&self, more: u64) -> bool {
        let Some(limit) = self.limits.memory else { return false };
        (self.resident)().is_some_and(|resident| resident.saturating_add(more) > limit)
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("limits", &self.limits)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control whose process holds 100 bytes.
    fn control(memory: Option<u64>) -> Control {
        let limits = Limits { memory, ..Limits::default() };
        Control { limits, resident: || Some(100), ..Control::new() }
    }

    #[test]
    fn a_request_a_deadline_and_a_limit_on_memory_stop() {
        let cancelled = Control::new();
        cancelled.cancel.cancel();
        let past = Instant::now();
        let over = Control { deadline: Some(past), clock: || Some(Instant::now()), ..Control::new() };
        let open = Control { deadline: Some(past), ..Control::new() };
        let cases: [(&str, Control, Option<Stop>); 6] = [
            ("nothing", Control::new(), None),
            ("cancelled", cancelled, Some(Stop::Cancelled)),
            ("time", over, Some(Stop::Time)),
            ("a deadline without a clock", open, None),
            ("memory that is too small", control(Some(99)), Some(Stop::Memory)),
            ("memory that is just enough", control(Some(100)), None),
        ];
        for (what, control, expected) in cases {
            assert_eq!(control.stop(), expected, "{what}");
            // At the latest after as many calls as the clock is left alone for.
            let asked = (0..CLOCK_EVERY).find_map(|_| control.ask().err());
            assert_eq!(asked, expected, "{what}");
        }
        assert_eq!(control(Some(150)).ask_for(50), Ok(()));
        assert_eq!(control(Some(150)).ask_for(51), Err(Stop::Memory));
    }
}
