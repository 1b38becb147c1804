//! Coloured Petri nets: from file to [`System`](deltamark_core::System).
//!
//! ```text
//! .lna ───┐
//!         ├─▶ Net ─┬─▶ ColouredSystem   one marking number a place, effects memoised
//! .pnml ──┘        └─▶ deltamark_nets::Net, unfolded
//! ```

mod bindings;
mod engine;
mod expressions;
pub mod lna;
pub mod net;
mod observe;
pub mod pnml;
mod system;
mod tables;
mod unfolding;

pub use expressions::eval::constant;
pub use net::Net;
pub use observe::tokens::{TokenSurvey, token_survey};
pub use system::ColouredSystem;
pub use unfolding::unfold::UnfoldLimits;
pub use unfolding::unfolded::{NotUnfolded, UnfoldedSystem};
