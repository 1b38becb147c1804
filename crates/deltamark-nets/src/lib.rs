//! P/T nets: from file to [`System`](deltamark_core::System).
//!
//! ```text
//! .pnml ─┐
//!        ├─▶ Net ─compile─▶ NetSystem (packed states, firing by blocks)
//! .net  ─┘    ▲
//! generators ─┘
//! ```

mod ahead;
mod automorphism;
mod build;
mod compile;
mod facts;
mod fire;
pub mod generate;
mod growth;
mod known;
mod net;
mod number;
mod planes;
pub mod pnml;
mod portable;
mod progress;
pub mod reduce;
mod sample;
mod step;
mod survey;
pub mod symmetry;
mod system;
mod tapaal;
pub mod tina;
mod walk;
pub mod workflow;
pub mod write;
pub mod xml;

pub use ahead::Ahead;
pub use net::{Arc, Net, Place, Transition, unique_names};
pub use system::NetSystem;
