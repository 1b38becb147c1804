//! P/T nets: from file to [`System`](deltamark_core::System).
//!
//! ```text
//! .pnml ─┐
//!        ├─▶ Net ─compile─▶ NetSystem (packed states, firing by blocks)
//! .net  ─┘    ▲
//! generators ─┘
//! ```

mod build;
mod findings;
mod format;
pub mod generate;
mod net;
mod number;
pub mod pnml;
pub mod tina;
pub mod write;
mod xml;

pub use format::{Format, LARGEST_FILE, parse_bytes};
pub use net::{Arc, Net, Place, Transition};
