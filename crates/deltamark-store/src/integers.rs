//! Sequences of integers in few bits.
//!
//! * `packed`: integers of a common width, which grows.
//! * `unary`: integers that never decrease, in about two bits each.
//! * `bits`: a long string of bits.

pub(crate) mod bits;
pub(crate) mod packed;
pub(crate) mod unary;
