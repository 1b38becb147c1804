//! P/T nets: from file to [`System`](deltamark_core::System).
//!
//! ```text
//! .pnml ─┐
//!        ├─▶ Net ─compile─▶ NetSystem (packed states, firing by blocks)
//! .net  ─┘    ▲
//! generators ─┘
//! ```

mod build;
mod compile;
mod findings;
mod fire;
mod format;
pub mod generate;
mod growth;
mod layout;
mod net;
mod number;
mod planes;
pub mod pnml;
mod sample;
mod sleep;
mod step;
mod survey;
mod system;
pub mod tina;
mod walk;
pub mod write;
mod xml;

pub use format::{Format, LARGEST_FILE, parse_bytes};
pub use net::{Arc, Net, Place, Transition};
pub use system::NetSystem;
