//! Coloured Petri nets: from file to [`System`](deltamark_core::System).
//!
//! ```text
//! .lna ───┐
//!         ├─▶ Net ─┬─▶ ColouredSystem   one marking number a place, effects memoised
//! .pnml ──┘        └─▶ deltamark_nets::Net, unfolded
//! ```
//!
//! | path | what |
//! |---|---|
//! | [`lna`], [`pnml`] | front ends: Helena's language, symmetric nets |
//! | [`net`] | the net as data, names and types resolved |
//! | `expressions` | evaluation of expressions and functions |
//! | `engine`, `tables` | what threads share: values, tokens, markings, actions |
//! | `bindings` | the enabled bindings of a state |
//! | `cache_room` | whether the caches of threads may grow |
//! | `system` | states, successors, layout, sleep sets |
//! | `unfolding` | the P/T net, and the system that runs it |
//! | `observe` | descriptions, observables, largest counts |

mod bindings;
mod cache_room;
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
pub use observe::tokens::{TokenBounds, TokenSurvey, token_survey};
pub use system::ColouredSystem;
pub use unfolding::unfold::UnfoldLimits;
pub use unfolding::unfolded::{NotUnfolded, UnfoldedSystem};
