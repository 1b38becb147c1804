//! Expressions and functions of a net: evaluation, the temporaries of calls, and which expressions cannot fault.

pub(crate) mod drafts;
pub(crate) mod eval;
pub(crate) mod faults;
