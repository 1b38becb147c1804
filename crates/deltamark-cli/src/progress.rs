//! The live line.
//!
//! In: events of a run. Out: one line on standard error that is redrawn in place, and removed when the run
//! ends. What stays true: it is drawn on a terminal only, and not before the run has lasted long enough.

use crate::output::tell;
use crate::units::{show_bytes, show_short};
use deltamark::{Event, Listener, Snapshot};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};

/// Shows the progress of a run.
pub struct Live {
    /// Whether there is a terminal to draw on and the user wants it.
    draw: bool,
    verbose: bool,
    memory_limit: Option<u64>,
    bar: OnceLock<ProgressBar>,
}

impl Live {
    /// A line for a run under this memory limit.
    pub fn new(quiet: bool, verbose: bool, memory_limit: Option<u64>) -> Arc<Self> {
        let draw = !quiet && std::io::stderr().is_terminal();
        Arc::new(Live { draw, verbose, memory_limit, bar: OnceLock::new() })
    }

    /// Removes the line.
    pub fn clear(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }

    fn bar(&self) -> &ProgressBar {
        self.bar.get_or_init(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            match ProgressStyle::with_template("{spinner} {wide_msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        })
    }

    fn say(&self, line: String) {
        match self.bar.get() {
            Some(bar) => bar.suspend(|| tell(line)),
            None => tell(line),
        }
    }
}

impl Listener for Live {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Progress(snapshot) if self.draw => {
                let bar = self.bar();
                bar.set_message(line(snapshot, self.memory_limit));
                bar.tick();
            }
            Event::Widened(reason) if self.verbose => self.say(format!("widened: {reason}")),
            Event::Answered(name, word) if self.verbose => self.say(format!("{name}: {word}")),
            _ => {}
        }
    }
}

fn line(snapshot: &Snapshot, memory_limit: Option<u64>) -> String {
    let seconds = snapshot.elapsed.as_secs_f64();
    let rate = if seconds > 0.0 { (snapshot.states as f64 / seconds) as u64 } else { 0 };
    let stored = snapshot.store_bytes.total();
    let per_state = stored as f64 / snapshot.states.max(1) as f64;
    let held = show_bytes(snapshot.resident_bytes.unwrap_or(stored + snapshot.frontier_bytes));
    let memory = match memory_limit {
        Some(limit) => format!("{held} of {}", show_bytes(limit)),
        None => held,
    };
    let whole = snapshot.elapsed.as_secs();
    // The most important first: a narrow terminal truncates the line.
    format!(
        "{:02}:{:02}:{:02}  {} states  {}/s  {memory}  {per_state:.1} B/state  frontier {}  depth {}",
        whole / 3600,
        whole / 60 % 60,
        whole % 60,
        show_short(snapshot.states),
        show_short(rate),
        show_short(snapshot.frontier),
        show_short(snapshot.depth),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark::store::Bytes;
    use std::time::Duration;

    #[test]
    fn the_line_tells_all_figures() {
        let snapshot = Snapshot {
            states: 2_000_000,
            edges: 0,
            frontier: 1_500,
            depth: 17,
            store_bytes: Bytes::new().with("table", 25_000_000),
            frontier_bytes: 0,
            resident_bytes: Some(30 << 20),
            elapsed: Duration::from_secs(80),
        };
        let expected = "00:01:20  2.00M states  25.0k/s  30 MiB of 4 GiB  12.5 B/state  frontier 1500  depth 17";
        assert_eq!(line(&snapshot, Some(4 << 30)), expected);
    }
}
