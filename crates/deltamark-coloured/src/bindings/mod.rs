//! The enabled bindings of a transition: a plan made once, a search along it, and a cache of its results.
//!
//! ```text
//! Transition ─plan─▶ BindingPlan ─bind─▶ actions ◀─reuse─ markings seen before
//!                                  ├─ postings    tokens by the values of their components
//!                                  └─ doubt       whether a fault on the way counts
//! ```

pub(crate) mod bind;
pub(crate) mod doubt;
pub(crate) mod plan;
pub(crate) mod postings;
pub(crate) mod reuse;
