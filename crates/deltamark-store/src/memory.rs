//! Memory that never moves, and its accounting.
//!
//! ```text
//! arena ── items that never move ──▶ region ── pages of the operating system
//! grant ── bytes that the budget granted, returned when dropped
//! ```

pub(crate) mod arena;
pub(crate) mod grant;
pub(crate) mod region;
