//! Any bytes as a DVE model: a model that takes its first steps, which the reference confirms, or diagnostics that point
//! into the text. Never a panic.
#![no_main]

use deltamark_core::{Batch, System};
use deltamark_dve::reference::{self, Outcome};
use deltamark_dve::{DveSystem, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| match parse(bytes) {
    Ok(program) => {
        // A model may declare states and steps that take a while; those are no bugs.
        if program.cells.len() < 10_000 && program.action_count < 10_000 {
            steps(&DveSystem::new(program));
        }
    }
    Err(diagnostics) => {
        assert!((1..=20).contains(&diagnostics.len()));
        for span in diagnostics.iter().filter_map(|diagnostic| diagnostic.span) {
            assert!(span.start <= span.end && span.end <= bytes.len());
        }
    }
});

/// Takes a few steps, the last successor first.
fn steps(system: &DveSystem) {
    let mut scratch = system.scratch();
    let mut batch = Batch::new(system.width());
    system.initial(&mut scratch, &mut batch).expect("no layout widens");
    let mut state = batch.target(0).to_vec();
    for _ in 0..8 {
        batch.reset(system.width());
        system.successors(&mut scratch, &state, &mut batch).expect("no layout widens");
        let values = reference::unpack(system.program(), &state);
        for index in 0..batch.len() {
            let target = reference::unpack(system.program(), batch.target(index));
            assert_eq!(reference::step(system.program(), &values, batch.action(index).0), Outcome::Done(target));
        }
        match batch.len() {
            0 => return,
            count => state = batch.target(count - 1).to_vec(),
        }
    }
}
