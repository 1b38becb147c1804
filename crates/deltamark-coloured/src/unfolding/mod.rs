//! The P/T net of a coloured net, the system that runs it, and the order of its places.
//!
//! ```text
//! Net ─unfold─▶ deltamark_nets::Net ─order (owners, arrange)─▶ UnfoldedSystem
//! ```

pub(crate) mod arrange;
pub(crate) mod order;
pub(crate) mod owners;
pub(crate) mod unfold;
pub(crate) mod unfolded;
