//! What people and properties see of a coloured net, the same for its coloured and its unfolded form: descriptions,
//! observables, and the largest count of each token.

pub(crate) mod describe;
pub(crate) mod observables;
pub(crate) mod tokens;
