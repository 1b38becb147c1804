//! Any bytes as a DVE model with macros: a model, or diagnostics that point into the text. Never a panic, and always an end.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let parameters = [("N".to_string(), "3".to_string())];
    for parameters in [&parameters[..], &[]] {
        if let Err(diagnostics) = deltamark_dve::parse_macros(bytes, parameters) {
            assert!(!diagnostics.is_empty());
            for span in diagnostics.iter().filter_map(|diagnostic| diagnostic.span) {
                assert!(span.start <= span.end && span.end <= bytes.len());
            }
        }
    }
});
