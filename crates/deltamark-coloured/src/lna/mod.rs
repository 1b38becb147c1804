//! Helena's language: files ending in `.lna`, and `NAME.prop.lna` beside them.
pub(crate) mod expressions;
pub(crate) mod findings;
pub(crate) mod parse;
pub(crate) mod preprocess;
pub(crate) mod syntax;
pub(crate) mod token;
