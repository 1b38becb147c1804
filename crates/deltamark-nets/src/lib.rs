//! P/T nets: from file to [`System`](deltamark_core::System).
//!
//! ```text
//! .pnml ─┐
//!        ├─▶ Net ─compile─▶ NetSystem (packed states, firing by blocks)
//! .net  ─┘    ▲
//! generators ─┘
//! ```

mod compile;
mod fire;
mod layout;
mod net;
mod planes;
mod sample;
mod system;

pub use net::{Arc, Net, Place, Transition};
pub use system::NetSystem;
