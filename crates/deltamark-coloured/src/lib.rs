//! Coloured Petri nets: from file to [`System`](deltamark_core::System).
//!
//! ```text
//! .lna ───┐
//!         ├─▶ Net ─┬─▶ ColouredSystem   one index a place, steps remembered
//! .pnml ──┘        └─▶ deltamark_nets::Net, unfolded
//! ```

mod actions;
mod arrange;
mod bind;
mod chunks;
mod describe;
mod doubt;
mod drafts;
mod engine;
mod eval;
mod faults;
mod layout;
pub mod lna;
pub mod net;
mod observables;
mod order;
mod owners;
mod place;
mod plan;
pub mod pnml;
mod portable;
mod postings;
mod reuse;
mod sleep;
mod slot_hashes;
mod steps;
mod system;
mod tokens;
mod unfold;
mod unfolded;
mod values;

pub use eval::constant;
pub use net::Net;
pub use system::ColouredSystem;
pub use tokens::{TokenSurvey, token_survey};
pub use unfold::UnfoldLimits;
pub use unfolded::{NotUnfolded, UnfoldedSystem};
