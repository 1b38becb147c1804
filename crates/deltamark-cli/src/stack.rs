//! A stack of sufficient size for the command.
//!
//! In: the command's work. Out: its result. Invariant: the work has a stack of [`STACK`] bytes, whatever `ulimit -s`
//! says. Readers of nested texts bound their depth, not by what the caller of the command left them: with less than
//! 512 KiB they would overflow before.

use std::panic::resume_unwind;
use std::thread::Builder;

/// What the work may rely on.
const STACK: u64 = 4 << 20;

/// Does the work, on a thread of its own where the stack of the main thread is too small. Where there can be no thread
/// it is done here all the same.
pub fn ample<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let limit = std::fs::read_to_string("/proc/self/limits").ok().and_then(|limits| stack_limit(&limits));
    if limit.is_none_or(|limit| limit >= STACK) {
        return work();
    }
    let work = std::sync::Mutex::new(Some(work));
    let take = || work.lock().ok().and_then(|mut work| work.take());
    std::thread::scope(|scope| {
        match Builder::new().stack_size(STACK as usize).spawn_scoped(scope, || take().map(|work| work())) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => take().map(|work| work()),
        }
    })
    .expect("the work is taken once")
}

/// The limit on stacks in the text of `/proc/self/limits`, if there is one.
fn stack_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max stack size"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_read() {
        let text = |limit: &str| format!("Max cpu time 1 2 s\nMax stack size            {limit}  unlimited  bytes\n");
        for (limit, expected) in [("262144", Some(262_144)), ("unlimited", None)] {
            assert_eq!(stack_limit(&text(limit)), expected);
        }
        assert_eq!(stack_limit(""), None);
    }

    #[test]
    fn work_is_done() {
        assert_eq!(ample(|| 7), 7);
    }
}
