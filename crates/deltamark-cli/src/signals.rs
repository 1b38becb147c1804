//! Ctrl-C, SIGTERM and SIGHUP.
//!
//! In: a signal, at any moment from the first line of `main` on. Out: a flag that the run looks at; then it ends with its report. What
//! stays true: a second signal ends the process at once, and so does the first where no run looks at the flag; nothing that was
//! being written is left behind.

use crate::exit::Exit;
use deltamark::condensed::unfinished;
use deltamark::control::{Cancel, Control};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

static FLAG: OnceLock<Cancel> = OnceLock::new();
/// Whether nobody looks at the flag.
static UNWATCHED: AtomicBool = AtomicBool::new(false);

/// Takes care of signals from now on. Until a command says that it does not look, the flag is set.
pub fn install() {
    let handler = || {
        if UNWATCHED.load(SeqCst) || cancel().is_cancelled() {
            end();
        }
        cancel().cancel();
        // Whoever closed standard error does not want to know.
        let _ = std::io::stderr().write_all(b"\nstopping; once more to end at once\n");
        // The command may have said in between that it does not look.
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

/// What steers a command without limits: until a signal comes.
pub fn control() -> Control {
    Control { cancel: cancel(), ..Control::new() }
}

/// Says that nobody will look at the flag, so that a signal ends the process; also one that came before.
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
