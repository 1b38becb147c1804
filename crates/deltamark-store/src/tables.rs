//! Hash tables and dense tables, each independent of the store that uses it.
//!
//! | table | maps | grows |
//! |---|---|---|
//! | `index`, of cache lines (`bucket`) | hashes to numbers of items kept elsewhere | filled again from the items |
//! | `dense`, `narrow` | keys to consecutive ids, and back; `narrow` in just enough bits | filled again from its keys |
//! | `intern` | values of any length to consecutive ids, and back | filled again from its values |
//! | `quotient` | keys to a few bits; stores remainders only (Cleary) | from the table alone |
//! | `pairs`, over codes of pairs (`pair_code`) | a set of numbers; stores remainders only | from the table alone |
//! | `tiles` | a set of pairs, as a bitmap of tiles | a tile at a time |
//!
//! `entrance` enters groups of states or keys into an `index`. `quotient` and `pairs` share their shape
//! and their stash.

pub(crate) mod bucket;
pub(crate) mod dense;
pub(crate) mod entrance;
pub(crate) mod index;
pub(crate) mod intern;
pub(crate) mod narrow;
pub(crate) mod pair_code;
pub(crate) mod pairs;
pub(crate) mod quotient;
pub(crate) mod tiles;
