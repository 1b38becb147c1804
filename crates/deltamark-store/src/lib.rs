//! The stores: sets of visited states, interchangeable behind [`deltamark_core::Store`].
//!
//! In: a [`StoreSpec`], usually from the command line, a system, the order in which states will
//! come, and a budget. Out: a store. What stays true: stores name no language and no search; one
//! technique a file; the table [`CATALOGUE`] knows them all.
//!
//! # The stores
//! | store | keeps of a state | rests on |
//! |---|---|---|
//! | [`plain`] | all of it | `vectors`, `index` |
//! | [`collapse`] | the numbers of its parts | `tuples` (`intern`, `bits`), `index`, `vectors` |
//! | `tree` | the numbers of its parts, and these of theirs | `dense`, `shape`, `fields` |
//! | [`compact`] | its pair of halves, as a bit or a few | `dense`, `plan` (`cuts`, `sample`), `roots` (`tiles`, `pairs`), `past`, `retrace` |
//! | [`difference`] | what changed since its predecessor | `journal`, `coder`, `lists`, `patch`, `path`, `quotient`, `unpacked` |
//! | `delta` | predecessor and action | `numbered`, with `plain` or `collapse` for levels kept in full |
//! | `comback` | signature, predecessor and action | `numbered` |
//! | [`breadcrumb`] | bits of hash, level modulo three, action | `quotient`, and `plain` for levels kept in full |
//! | [`compaction`] | a signature; may miss states | `pairs` |
//! | [`bitstate`] | bits set in an array; may miss states | `region` |
//!
//! # The helpers
//! * Memory: `region` (pages of the system), `arena` (items that never move), `grant` (what was
//!   granted).
//! * Sweeps: [`layers`] (states by rank, forgotten behind a line), `layer` (those of one rank).
//! * States in full: `vectors` (numbered), `unpacked` and `window` (those of the levels in
//!   hand), `kept` (some among many), `cache` (a few, by number).
//! * Tables: `bucket`, `index` and `claim` (from states to numbers, filled again from the states when it
//!   grows), `gate` and `help` (growing, by all threads), `quotient` (from keys to a few bits, grows without the states), `intern` (values,
//!   each once).
//! * Trees: `dense` (keys, each once, numbered), `shape` and `plan` (which part is where), `cuts` and
//!   `sample` (where to cut), `code` (numbers of pairs), `roots`, `tiles`, `pairs` and `enter` (sets of
//!   them), `retrace` (how a state was reached), `fields` (values that hang on
//!   states).
//! * Lists: `packed` (numbers in few bits), `unary` (numbers that never decrease), `bits` (a
//!   long string of bits), `tuples` (states in just enough bits), `journal` (records of bytes).
//! * Records of differences: `patch` (changes as bytes), `lists` (those that occur again),
//!   `coder` (what a record says), `path` (states expanded from their records).
//! * Rebuilding: `spanning` (parents and actions), `rebuild` (walks along them), `numbered` (the
//!   store made of these).

mod arena;
mod bits;
pub mod bitstate;
pub mod breadcrumb;
mod bucket;
mod cache;
mod catalogue;
mod claim;
mod code;
mod coder;
pub mod collapse;
mod comback;
pub mod compact;
pub mod compaction;
mod cuts;
mod delta;
mod dense;
pub mod difference;
mod enter;
mod fields;
mod gate;
mod grant;
mod help;
mod index;
mod intern;
mod journal;
mod kept;
mod layer;
pub mod layers;
mod lists;
mod narrow;
mod numbered;
mod packed;
mod pairs;
mod patch;
mod path;
pub mod plain;
mod plan;
mod quotient;
mod rebuild;
mod region;
mod retrace;
mod room;
mod roots;
mod sample;
mod shape;
mod spanning;
#[cfg(test)]
mod threads;
mod tiles;
mod tree;
mod tuples;
mod unary;
mod unpacked;
mod vectors;
mod window;

pub use catalogue::{AUTO, CATALOGUE, Need, OptionInfo, SpecError, StoreInfo, StoreSpec, Traffic, build};
