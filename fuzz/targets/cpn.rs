//! Any bytes as a model of CPN Tools: a net that can be run, or diagnostics that point into the text. Never a panic. What is
//! a net is made ready to run, and the rest of the bytes are read as a property over its markings.
#![no_main]

use deltamark_coloured::ColouredSystem;
use deltamark_core::{Control, Diagnostic, System};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match deltamark_cpn::parse_under(text, &[], &[], &Control::new()) {
        Ok(net) => {
            assert_eq!(net.validate(), Ok(()));
            match ColouredSystem::new(net, text) {
                Ok(system) => {
                    let property = text.rsplit('>').next().unwrap_or("");
                    if let Some(observe) = system.observe()
                        && let Some(Err(wrong)) = observe.own_expression(property)
                    {
                        check(&wrong, property);
                    }
                }
                Err(wrong) => check(&wrong, text),
            }
        }
        Err(wrong) => check(&wrong, text),
    }
});

fn check(wrong: &[Diagnostic], text: &str) {
    assert!((1..=20).contains(&wrong.len()));
    for span in wrong.iter().filter_map(|diagnostic| diagnostic.span) {
        assert!(span.start <= span.end && span.end <= text.len());
    }
}
