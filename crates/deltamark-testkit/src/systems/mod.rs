//! Hand-written systems, each different from nets in its own way.
//!
//! In: a size. Out: a system. What stays true: they share no code with any front end.

mod cells;
mod counters;
mod odometer;
mod stacks;
mod still;
mod workers;

pub use cells::Cells;
pub use counters::Counters;
pub use odometer::Odometer;
pub use stacks::Stacks;
pub use still::Still;
pub use workers::Workers;
