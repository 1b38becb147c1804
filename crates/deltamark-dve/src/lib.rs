//! DVE, the language of the BEEM models.

pub mod engine;
pub mod ir;
pub mod macros;
