//! `deltamark automaton`.
//!
//! In: a formula of linear temporal logic. Out: its automaton, as a drawing, in HOA or in DOT.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::print;
use crate::signals;
use deltamark::automaton::{Drawing, automaton};
use deltamark::control::steering;
use std::time::Instant;

/// Shows an automaton.
pub fn run(arguments: &args::Automaton, since: Instant) -> Result<Exit, Failure> {
    let drawing = match (arguments.hoa, arguments.dot) {
        (true, _) => Drawing::Hoa,
        (_, true) => Drawing::Dot,
        _ => Drawing::Text,
    };
    let control = steering(&arguments.limits.limits(), &signals::cancel(), since);
    let text = automaton(&arguments.formula, drawing, &control)?;
    print(&control, |out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Good)
}
