//! Coloured Petri nets: from file to [`System`](deltamark_core::System).
//!
//! ```text
//! .lna ───┐
//!         ├─▶ Net ─┬─▶ ColouredSystem   one index a place, steps remembered
//! .pnml ──┘        └─▶ deltamark_nets::Net, unfolded
//! ```

pub mod lna;
pub mod net;

pub use net::Net;
