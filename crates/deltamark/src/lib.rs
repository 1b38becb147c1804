//! Deltamark, the library.
