//! Any bytes as a symmetric net in PNML: a net that can be run and unfolded, or diagnostics that
//! point into the text. Never a panic.
#![no_main]

use deltamark_coloured::{ColouredSystem, UnfoldLimits, UnfoldedSystem, pnml};
use deltamark_core::{Batch, System};
use libfuzzer_sys::fuzz_target;

const SMALL: UnfoldLimits = UnfoldLimits { transitions: 200, places: 200, arcs: 2_000, effort: 10_000 };

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = deltamark_core::text::utf8(bytes) else { return };
    match pnml::parse(text) {
        Ok(net) => {
            assert_eq!(net.validate(), Ok(()));
            if let Ok(system) = ColouredSystem::new(net.clone(), text) {
                step(&system);
            }
            if let Ok(system) = UnfoldedSystem::new(net, text, SMALL) {
                step(&system);
            }
        }
        Err(diagnostics) => {
            assert!((1..=20).contains(&diagnostics.len()));
            for span in diagnostics.iter().filter_map(|diagnostic| diagnostic.span) {
                assert!(span.start <= span.end && span.end <= bytes.len());
            }
        }
    }
});

/// Expands the initial state, in as many layouts as it takes.
fn step(system: &dyn System) {
    let mut scratch = system.scratch();
    loop {
        let mut first = Batch::new(system.width());
        let mut next = Batch::new(system.width());
        let done = system.initial(&mut scratch, &mut first).is_ok()
            && system.successors(&mut scratch, first.target(0), &mut next).is_ok();
        if done {
            return;
        }
        system.widen();
    }
}
