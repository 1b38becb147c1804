//! Coloured Petri nets: from file to [`System`](deltamark_core::System).
//!
//! ```text
//! .lna ───┐
//!         ├─▶ Net ─┬─▶ ColouredSystem   one index a place, steps remembered
//! .pnml ──┘        └─▶ deltamark_nets::Net, unfolded
//! ```

mod chunks;
mod eval;
pub mod lna;
pub mod net;
mod values;

pub use eval::constant;
pub use net::Net;
