//! No text makes the property language panic, and what it accepts prints and reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match deltamark_logic::parse(text) {
        Ok(expr) => {
            let printed = expr.to_string();
            // Printing can lengthen a text (`&` becomes `and`), past the cap at the very end.
            if printed.len() <= deltamark_logic::MAX_LENGTH {
                assert_eq!(deltamark_logic::parse(&printed).as_ref(), Ok(&expr));
            }
        }
        Err(findings) => {
            assert!(!findings.is_empty());
            for span in findings.iter().filter_map(|finding| finding.span) {
                assert!(text.get(span.range()).is_some());
            }
        }
    }
});
