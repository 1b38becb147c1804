//! Any bytes as a net in Helena's language: a net, or diagnostics that point into the text. Never a panic. What
//! is a net is made ready to run, and the same bytes are read as a property file.
#![no_main]

use deltamark_coloured::ColouredSystem;
use deltamark_coloured::lna::{parse, parse_properties};
use deltamark_core::Diagnostic;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match parse(bytes, &[]) {
        Ok(mut net) => {
            assert_eq!(net.validate(), Ok(()));
            check(parse_properties(&mut net, bytes), bytes);
            if let Ok(text) = std::str::from_utf8(bytes) {
                check(ColouredSystem::new(net, text).map(|_| ()), bytes);
            }
        }
        Err(diagnostics) => check(Err(diagnostics), bytes),
    }
});

fn check(result: Result<(), Vec<Diagnostic>>, bytes: &[u8]) {
    let Err(diagnostics) = result else { return };
    assert!((1..=20).contains(&diagnostics.len()));
    for span in diagnostics.iter().filter_map(|diagnostic| diagnostic.span) {
        assert!(span.start <= span.end && span.end <= bytes.len());
    }
}
