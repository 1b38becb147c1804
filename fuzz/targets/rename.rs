//! A file that is read, and the same with one element or attribute renamed: it is refused, or the net is the same,
//! because the name was a harmless one. The first two bytes choose the name. P/T nets of all dialects in XML, and nets of
//! CPN Tools; symmetric nets are renamed by the target `renamed`.
#![no_main]

use deltamark_coloured::ColouredSystem;
use deltamark_core::{Batch, Control, Slot, System, Widen};
use deltamark_nets::{Net, pnml, xml};
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;

/// States of a net of CPN Tools that are explored.
const STATES: usize = 100;

/// What a text means.
#[derive(Debug, PartialEq)]
enum Meaning {
    Net(Box<Net>),
    /// States and edges, as far as was explored.
    Explored(usize, usize),
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[low, high], text)) = bytes.split_first_chunk::<2>() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Some(before) = meaning(text) else { return };
    let renamed = renamed(text, usize::from(u16::from_le_bytes([low, high])));
    if let Some(after) = renamed.and_then(|renamed| meaning(&renamed)) {
        assert_eq!(after, before);
    }
});

fn meaning(text: &str) -> Option<Meaning> {
    if let Ok(net) = pnml::parse(text) {
        return Some(Meaning::Net(Box::new(net)));
    }
    let net = deltamark_cpn::parse_under(text, &[], &[], &Control::new()).ok()?;
    let system = ColouredSystem::new(net, text).ok()?;
    loop {
        match explored(&system) {
            Ok((states, edges)) => return Some(Meaning::Explored(states, edges)),
            Err(Widen) => drop(system.widen()),
        }
    }
}

fn explored(system: &dyn System) -> Result<(usize, usize), Widen> {
    let (mut scratch, mut batch) = (system.scratch(), Batch::new(system.width()));
    system.initial(&mut scratch, &mut batch)?;
    let mut waiting: Vec<Vec<Slot>> = (0..batch.len()).map(|index| batch.target(index).to_vec()).collect();
    let mut seen: HashSet<Vec<Slot>> = waiting.iter().cloned().collect();
    let mut edges = 0;
    while let Some(state) = waiting.pop() {
        batch.reset(system.width());
        system.successors(&mut scratch, &state, &mut batch)?;
        edges += batch.len();
        for index in 0..batch.len() {
            let target = batch.target(index).to_vec();
            if seen.len() < STATES && seen.insert(target.clone()) {
                waiting.push(target);
            }
        }
    }
    Ok((seen.len(), edges))
}

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
