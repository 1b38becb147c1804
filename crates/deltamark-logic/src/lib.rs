//! The property language.
