//! How threads share a table.
//!
//! * `claim`: an entry is claimed by compare-and-swap and settled once its contents are written.
//! * `gate`: insertions hold it shared, growth holds it exclusively.
//! * `cooperate`: threads that arrive at the gate during growth take a part of the work.
//! * `reserve`: capacity for many insertions is reserved at once, so that no insertion grows a table midway.

pub(crate) mod claim;
pub(crate) mod cooperate;
pub(crate) mod gate;
pub(crate) mod reserve;
#[cfg(test)]
mod tests;
