//! Systems written by hand, each different from nets in its own way.
//!
//! In: a size. Out: a system. What stays true: they share no code with any front end.

mod cells;
mod counters;
mod still;
mod workers;

pub use cells::Cells;
pub use counters::Counters;
pub use still::Still;
pub use workers::Workers;
