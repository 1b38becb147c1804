//! `deltamark dump`.
//!
//! In: a model. Out: what it was compiled to, as text on standard output; or a refusal, for a language
//! without a dump.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::print;
use deltamark::Limits;
use std::time::Instant;

/// Prints the dump.
pub fn run(arguments: &args::Dump) -> Result<Exit, Failure> {
    let model = arguments.model.load(&Limits::default(), None, Instant::now())?;
    let Some(text) = model.system.dump() else {
        let message = format!("models in the format `{}` have no dump", model.info.format);
        return Err(Failure::new(message).help("there is one for languages that are compiled: dve"));
    };
    print(&crate::signals::control(), |out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Good)
}
