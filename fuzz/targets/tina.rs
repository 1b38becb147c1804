//! Any bytes as a file in the format `tina`: a sound net that can be written and read back,
//! or diagnostics that point into the text. Never a panic.
#![no_main]

use deltamark_nets::{Net, tina, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| match tina::parse_bytes(bytes) {
    Ok(net) => {
        assert_eq!(net.validate(), Ok(()));
        let text = write::to_tina(&net);
        let again = tina::parse_bytes(text.as_bytes()).expect("what we write we can read");
        assert_eq!(without_ids(again), without_ids(net));
    }
    Err(diagnostics) => {
        assert!((1..=20).contains(&diagnostics.len()));
        for span in diagnostics.iter().filter_map(|diagnostic| diagnostic.span) {
            assert!(span.start <= span.end && span.end <= bytes.len());
        }
    }
});

/// What writing keeps: everything but ids and the name of a net that has none.
fn without_ids(mut net: Net) -> Net {
    net.name.clear();
    net.places.iter_mut().for_each(|place| place.id.clear());
    net.transitions.iter_mut().for_each(|transition| transition.id.clear());
    net
}
