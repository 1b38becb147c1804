//! P/T nets: from file to [`System`](deltamark_core::System).
//!
//! ```text
//! .pnml ─┐
//!        ├─▶ Net ─compile─▶ NetSystem (packed states, firing by blocks)
//! .net  ─┘    ▲
//! generators ─┘
//! ```

mod net;

pub use net::{Arc, Net, Place, Transition};
