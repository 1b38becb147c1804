//! Derives `Pack`.
