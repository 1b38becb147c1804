//! Shared test support: a naive oracle, systems of many kinds, and conformance suites.
//!
//! In: a system, a store or a search that claims to satisfy the contracts of `deltamark-core`. Out: a panic
//! that names the contract that was broken. What stays true: nothing here is clever; each piece is written to
//! be obviously right, and each suite has been shown to fail on something broken.
//!
//! * [`oracle`] explores any system with a hash map; [`net_oracle`] any net.
//! * [`systems`] are written by hand, [`random`] ones come from a seed ([`scaled`] nets at the limits of sizes), [`wrappers`] change one
//!   thing about a system.
//! * [`stores`] are reference stores, one of each kind a search may meet.
//! * [`conformance`] holds the suites: [`check_system`], [`check_symmetry`], [`check_portable`], [`check_store`] (or
//!   [`check_reversible_store`], [`check_fixed_store`], [`check_threads`]), [`check_search`].
//! * [`corpus`] finds models with known results from outside.

pub mod conformance;
pub mod corpus;
pub mod net_oracle;
pub mod oracle;
pub mod random;
pub mod scaled;
pub mod stores;
pub mod systems;
pub mod temporal;
pub mod wrappers;

pub use conformance::portable::check_portable;
pub use conformance::search::check_search;
pub use conformance::store::{check_fixed_store, check_reversible_store, check_store, check_threads};
pub use conformance::symmetry::check_symmetry;
pub use conformance::system::check_system;
pub use corpus::Corpus;
pub use oracle::{Explored, explore, explore_up_to};
pub use random::{RandomGraph, Rng};
pub use stores::is_chosen_store;
pub use wrappers::{Forward, PoorHash, Renamed};
