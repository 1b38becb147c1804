//! A file that is read, and the same with one element or attribute renamed: it is refused, or the net is the same,
//! because the name was a harmless one. The first two bytes choose the name.
#![no_main]

use deltamark_nets::{pnml, xml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[low, high], text)) = bytes.split_first_chunk::<2>() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(before) = pnml::parse(text) else { return };
    let renamed = renamed(text, usize::from(u16::from_le_bytes([low, high])));
    if let Some(after) = renamed.and_then(|renamed| pnml::parse(&renamed).ok()) {
        assert_eq!(after, before);
    }
});

/// The text with one name made another that means nothing anywhere.
fn renamed(text: &str, choice: usize) -> Option<String> {
    let document = xml::open(text).ok()?;
    let mut places: Vec<Vec<usize>> = Vec::new();
    for node in document.descendants().filter(|node| node.is_element()) {
        let range = node.range();
        let tag = xml::tag_span(text, range.start);
        let name = &text[tag.start + 1..tag.end];
        let closing = format!("</{name}");
        let whole = text[range.clone()].trim_end_matches('>').trim_end();
        let mut ends = vec![tag.end];
        ends.extend(whole.ends_with(&closing).then(|| range.start + whole.len()));
        places.push(ends);
        // An attribute with a prefix is of another vocabulary.
        let own = node.attributes().filter(|attribute| attribute.namespace().is_none());
        places.extend(own.map(|attribute| vec![attribute.range().start + attribute.name().len()]));
    }
    let mut renamed = text.to_string();
    for &end in places[choice % places.len()].iter().rev() {
        renamed.insert_str(end, "_renamed");
    }
    Some(renamed)
}
