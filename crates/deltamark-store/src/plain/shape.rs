//! Access to states in a batch and among the vectors, and their comparison.
//!
//! In: vectors or a list of states, of a width known at compile time, or of any. Out: state number
//! `i`. Invariant: for narrow states the loops of `tables.rs` keep all they need in registers.

use crate::memory::arena::ArenaView;
use crate::states::vectors::Vectors;
use deltamark_core::{Slot, States};

/// The layout of states, and their comparison.
pub(crate) trait VectorShape: Copy {
    /// What leads to a vector.
    type VectorView<'v>: Copy;

    /// What leads to these vectors.
    fn view(vectors: &Vectors) -> Self::VectorView<'_>;

    /// The address to prefetch before a vector is read.
    fn hint(view: Self::VectorView<'_>, number: u64) -> *const u32;

    /// Whether the vector of this number is this state.
    ///
    /// # Safety
    /// As for [`Vectors::get`].
    unsafe fn same(view: Self::VectorView<'_>, number: u64, state: &[Slot]) -> bool;

    /// State `index` of a list.
    ///
    /// # Safety
    /// There is one, and the shape is that of the list.
    unsafe fn target(states: &States, index: usize) -> &[Slot];
}

/// States of `W` slots.
#[derive(Clone, Copy)]
pub(crate) struct FixedWidth<const W: usize>;

impl<const W: usize> VectorShape for FixedWidth<W> {
    type VectorView<'v> = ArenaView<'v>;

    #[inline(always)]
    fn view(vectors: &Vectors) -> ArenaView<'_> {
        match vectors {
            Vectors::Fixed(arena) if arena.item() == W => arena.view(),
            _ => unreachable!("the shape is that of the vectors"),
        }
    }

    #[inline(always)]
    fn hint(view: ArenaView<'_>, number: u64) -> *const u32 {
        view.address::<W>(number)
    }

    #[inline(always)]
    unsafe fn same(view: ArenaView<'_>, number: u64, state: &[Slot]) -> bool {
        // SAFETY: the caller's promise, and `view` was made for items of `W` slots.
        let stored = unsafe { &*view.address::<W>(number).cast::<[Slot; W]>() };
        let Some(state) = state.first_chunk::<W>() else { return false };
        (0..W).fold(0, |sum, slot| sum | (stored[slot] ^ state[slot])) == 0
    }

    #[inline(always)]
    unsafe fn target(states: &States, index: usize) -> &[Slot] {
        // SAFETY: the caller's promise: the list holds more than `index` states of `W` slots.
        unsafe { states.slots().get_unchecked(index * W..index * W + W) }
    }
}

/// Makes a call for the shape of states of some width.
macro_rules! shaped {
    ($width:expr, $shape:ident => $call:expr) => {{
        macro_rules! with {
            ($of:expr) => {{
                let $shape = $of;
                $call
            }};
        }
        match $width {
            deltamark_core::Width::Fixed(1) => with!(crate::plain::shape::FixedWidth::<1>),
            deltamark_core::Width::Fixed(2) => with!(crate::plain::shape::FixedWidth::<2>),
            deltamark_core::Width::Fixed(3) => with!(crate::plain::shape::FixedWidth::<3>),
            deltamark_core::Width::Fixed(4) => with!(crate::plain::shape::FixedWidth::<4>),
            deltamark_core::Width::Fixed(8) => with!(crate::plain::shape::FixedWidth::<8>),
            _ => with!(crate::plain::shape::AnyWidth),
        }
    }};
}
pub(crate) use shaped;

/// States of any width.
#[derive(Clone, Copy)]
pub(crate) struct AnyWidth;

impl VectorShape for AnyWidth {
    type VectorView<'v> = &'v Vectors;

    #[inline(always)]
    fn view(vectors: &Vectors) -> &Vectors {
        vectors
    }

    #[inline(always)]
    fn hint(view: &Vectors, number: u64) -> *const u32 {
        view.hint(number)
    }

    #[inline(always)]
    unsafe fn same(view: &Vectors, number: u64, state: &[Slot]) -> bool {
        // SAFETY: the caller's promise.
        unsafe { view.get(number) == state }
    }

    #[inline(always)]
    unsafe fn target(states: &States, index: usize) -> &[Slot] {
        states.get(index)
    }
}
