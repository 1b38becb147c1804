//! Ctrl-C, SIGTERM and SIGHUP.
//!
//! In: a signal, at any time from the first line of `main` on. Out: a flag that the run polls; then it ends
//! with its report. What stays true: a second signal ends the process at once, and so does the first if no
//! run polls the flag; temporary files are removed.

use crate::exit::Exit;
use deltamark::condensed::unfinished;
use deltamark::control::{Cancel, Control};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

static FLAG: OnceLock<Cancel> = OnceLock::new();
/// Whether no run polls the flag.
static UNWATCHED: AtomicBool = AtomicBool::new(false);

/// Installs the handler. Until a command calls [`unwatched`], a signal sets the flag.
pub fn install() {
    let handler = || {
        if UNWATCHED.load(SeqCst) || cancel().is_cancelled() {
            end();
        }
        cancel().cancel();
        // If standard error is closed, the message is dropped.
        let _ = std::io::stderr().write_all(b"\nstopping; once more to end at once\n");
        // The command may have called [`unwatched`] in between.
        if UNWATCHED.load(SeqCst) {
            end();
        }
    };
    // Without a handler a signal ends the process, which is less but not wrong.
    let _ = ctrlc::set_handler(handler);
}

/// The flag that a signal sets.
pub fn cancel() -> Cancel {
    FLAG.get_or_init(Cancel::new).clone()
}

/// The control of a command without limits: until a signal comes.
pub fn control() -> Control {
    Control { cancel: cancel(), ..Control::new() }
}

/// From now on no run polls the flag, so that a signal ends the process; also one that came before.
pub fn unwatched() {
    UNWATCHED.store(true, SeqCst);
    if cancel().is_cancelled() {
        end();
    }
}

fn end() -> ! {
    unfinished::remove_all();
    std::process::exit(Exit::Interrupted.number().into())
}
