//! The tables that all threads share and that only grow: values, tokens and markings of a place, actions and
//! effects. Whatever has a number keeps it, in chunks that never move.

pub(crate) mod actions;
pub(crate) mod chunks;
pub(crate) mod place;
pub(crate) mod values;
