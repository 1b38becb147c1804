//! One element or attribute of a good symmetric net gets another name: it is refused, or the net is the same. Never is the
//! net another one in silence.
#![no_main]

use deltamark_coloured::{Net, pnml};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

const TEXT: &str = include_str!("../seeds/coloured/complete.pnml");

/// Where names of elements begin (with where the same name closes it, if it does) and where names of attributes do.
struct Name {
    at: usize,
    length: usize,
    close: Option<usize>,
}

fn names() -> &'static Vec<Name> {
    static NAMES: OnceLock<Vec<Name>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let document = deltamark_nets::xml::open(TEXT).expect("it is XML");
        let mut names = Vec::new();
        for node in document.descendants().filter(|node| node.is_element()) {
            let (range, length) = (node.range(), node.tag_name().name().len());
            let close = range.end - 1 - length;
            let closed = TEXT[..close].ends_with("</");
            names.push(Name { at: range.start + 1, length, close: closed.then_some(close) });
            for attribute in node.attributes() {
                let range = attribute.range_qname();
                names.push(Name { at: range.start, length: range.len(), close: None });
            }
        }
        names
    })
}

/// A net without what only people read.
fn meaning(mut net: Net) -> String {
    net.name.clear();
    format!("{net:?}")
}

fuzz_target!(|bytes: &[u8]| {
    let [low, high, word @ ..] = bytes else { return };
    let Ok(word) = std::str::from_utf8(word) else { return };
    let valid = word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.bytes().all(|c| c.is_ascii_alphanumeric());
    let Name { at, length, close } = names()[usize::from(u16::from_le_bytes([*low, *high])) % names().len()];
    let old = &TEXT[at..at + length];
    // A name that the reader knows may well mean something else.
    if !valid || TEXT.contains(word) || deltamark_coloured::pnml::is_known(word) {
        return;
    }
    let mut text = TEXT.to_string();
    if let Some(close) = close {
        text.replace_range(close..close + length, word);
    }
    text.replace_range(at..at + length, word);
    if let Ok(net) = pnml::parse(&text) {
        // Places in the text move with the length of the name, so compare names of the same length only.
        if word.len() == old.len() {
            let before = pnml::parse(TEXT).expect("the file is right");
            assert_eq!(meaning(net), meaning(before), "`{old}` became `{word}`");
        }
    }
});
