//! States stored in full, temporarily or for the whole run.
//!
//! * `vectors`: all of them, numbered.
//! * `window`, `unpacked`: those of the current level and the next.
//! * `checkpoints`: some levels among many.
//! * `cache`: a few, by number.

pub(crate) mod cache;
pub(crate) mod checkpoints;
pub(crate) mod unpacked;
pub(crate) mod vectors;
pub(crate) mod window;

use deltamark_core::{Slot, Width};

/// The most bytes of states that are copied or rebuilt together. Nobody asks the budget for them.
const TOGETHER_BYTES: usize = 1 << 20;

/// How many states of this width are copied or rebuilt together: `most`, or as many as take a mebibyte.
pub(crate) fn together(width: Width, most: usize) -> usize {
    match width {
        Width::Fixed(slots) => (TOGETHER_BYTES / (size_of::<Slot>() * slots.max(1))).clamp(16.min(most), most),
        Width::Varies => most,
    }
}
