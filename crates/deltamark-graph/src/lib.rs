//! The condensed reachability graph: numbered states, packed edges, in a file.
//!
//! In: states by number with their edges, from a search ([`Recording`]); later a file ([`Graph`]). Out: edges of
//! any state, states reconstructed by firing along them ([`walk`]), and graph algorithms: paths, components. What
//! stays true: no state is stored, in the file or beside it, except the current ones of a walk; this crate names
//! no language, no store and no search.
//!
//! From T. Mailund and M. Westergaard, *Obtaining Memory-Efficient Reachability Graph Representations Using the
//! Sweep-Line Method*, TACAS 2004. We keep the idea: states are numbers, an edge is an action and a number, and
//! every marking can be reconstructed by firing along edges. The paper spends ⌈log2 R⌉ + ⌈log2 T⌉ bits an edge and
//! two words a state; blocks of 64 states with widths of their own take less for both, see [`block`].
//!
//! ```text
//! search ──Recorder──▶ Recording ──finish──▶ FILE.dmg ──open──▶ Graph ──edges──▶ walk ──Block──▶ predicates, figures
//!                                                                 └─ levels, components, Reverse, BitSet
//! ```
//! The format is described in `docs/graph-file.md`.

mod audit;
pub mod bits;
pub mod block;
mod columns;
pub mod components;
pub mod graph;
mod index;
pub mod levels;
mod map;
pub mod meta;
mod order;
pub mod packed;
pub mod recording;
pub mod reverse;
mod table;
mod trail;
pub mod unfinished;
pub mod walk;

pub use components::{Components, components};
pub use deltamark_core::BitSet;
pub use graph::Graph;
pub use meta::{FileError, Meta, ModelId, text_hash};
pub use packed::Packed;
pub use recording::{About, Recording, Unwritten, Written};
pub use reverse::Reverse;
pub use walk::{Visitor, Walk, WalkError, Way};
