//! Work that does not poll, under a control.
//!
//! In: work that may take long in one step, such as a parser of somebody else. Out: its result, or why the run must end. What
//! stays true: when the run must end, nobody waits for the work; its thread is left to itself, and ends with the process at the latest.

use deltamark_core::{Control, Stop};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often it is asked whether to wait on. Memory is filled by about a megabyte in this time.
const ASKED: Duration = Duration::from_millis(1);
/// How long the work may take to notice by itself that the run must end: what it reports then is more precise.
const GRACE: Duration = Duration::from_millis(300);
/// The same where memory is the reason, which it may go on taking.
const SHORT_GRACE: Duration = Duration::from_millis(2);
/// The stack of a main thread.
const STACK: usize = 8 << 20;

/// Does the work on a thread of its own; on this one, if there can be no other.
pub(crate) fn watched<T: Send + 'static>(
    control: &Control,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stop> {
    let (sender, result) = sync_channel(1);
    // Whoever comes first does it; a thread that cannot be started never comes.
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let theirs = Arc::clone(&work);
    let run = move || {
        if let Some(work) = take(&theirs) {
            // Nobody waits any more if this fails.
            let _ = sender.send(work());
        }
    };
    let thread = match std::thread::Builder::new().name("loading".into()).stack_size(STACK).spawn(run) {
        Ok(thread) => thread,
        Err(_) => {
            let work = take(&work).expect("no thread took the work");
            return Ok(work());
        }
    };
    let mut ending: Option<(Stop, Instant)> = None;
    loop {
        match result.recv_timeout(ASKED) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("the thread sends a result before it ends"),
            },
            Err(RecvTimeoutError::Timeout) => {}
        }
        if ending.is_none() {
            let grace = |stop| if stop == Stop::Memory { SHORT_GRACE } else { GRACE };
            ending = control.check().err().map(|stop| (stop, Instant::now() + grace(stop)));
        }
        if let Some((stop, _)) = ending.filter(|(_, until)| Instant::now() >= *until) {
            return Err(stop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_unless_the_run_must_end() {
        let control = Control::new();
        assert_eq!(watched(&control, || 7), Ok(7));
        control.cancel.cancel();
        let began = Instant::now();
        let work = || std::thread::sleep(Duration::from_secs(600));
        assert_eq!(watched(&control, work), Err(Stop::Cancelled));
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    #[should_panic(expected = "a bug")]
    fn a_panic_is_passed_on() {
        let _ = watched(&Control::new(), || panic!("a bug"));
    }
}
