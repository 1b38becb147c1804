//! Round trips: random nets with random names.

use deltamark_nets::{Arc, Net, Place, Transition, pnml, tina, write};
use proptest::collection::{hash_set, vec};
use proptest::prelude::*;
use proptest::sample::select;

/// Names that look like ours, like keywords, like ids the writer makes, like numbers, and names with characters
/// that are special in the formats.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "[a-z_]{1,3}",
        1 => select(vec!["tr", "pl", "net", "p0", "p1", "t0", "t1", "a0", "page0", "net0", "1", "0", "12K", "w"])
            .prop_map(String::from),
        2 => r#"[ {}\\<>&"'#*?!\-:;\[\]()a]{1,5}"#,
        1 => r"\PC{1,6}",
        1 => select(vec!["\\", "{", "}", "\\{", "]]>", "&amp;", "<!--", "-->", " a ", "ä ö", "日本", "\u{FEFF}x", "a\u{A0}"])
            .prop_map(String::from),
    ]
    .prop_filter("PNML has no blank names and XML excludes two code points", |name| {
        !name.trim().is_empty() && !name.contains(['\u{FFFE}', '\u{FFFF}']) && !name.contains(char::is_control)
    })
}

fn arcs(places: usize) -> impl Strategy<Value = Vec<Arc>> {
    let weight = prop_oneof![4 => 1..4_u32, 1 => Just(u32::MAX)];
    proptest::collection::btree_map(0..places as u32, weight, 0..places.min(4))
        .prop_map(|arcs| arcs.into_iter().map(|(place, weight)| Arc { place, weight }).collect())
}

fn net() -> impl Strategy<Value = Net> {
    (hash_set(name(), 1..8), hash_set(name(), 0..6), name(), any::<bool>()).prop_flat_map(
        |(places, transitions, name, declared_safe)| {
            let count = places.len();
            let tokens = prop_oneof![3 => 0..3_u32, 1 => any::<u32>()];
            let places = (Just(places), vec(tokens, count)).prop_map(|(names, tokens)| {
                names.into_iter().zip(tokens).map(|(name, initial)| Place { id: name.clone(), name, initial }).collect()
            });
            let all = move || (arcs(count), arcs(count), arcs(count), arcs(count), proptest::option::of(self::name()));
            let size = transitions.len();
            let transitions = (Just(transitions), vec(all(), size)).prop_map(|(names, all)| {
                let built = names.into_iter().zip(all);
                let transition = |(name, (inputs, outputs, reads, inhibitors, label)): (String, (_, _, _, _, _))| {
                    Transition { id: name.clone(), name, label, inputs, outputs, reads, inhibitors, priority: 0 }
                };
                built.map(transition).collect()
            });
            (places, transitions).prop_map(move |(places, transitions)| Net {
                name: name.clone(),
                places,
                transitions,
                declared_safe,
                ..Net::default()
            })
        },
    )
}

/// The net with its ids made equal to its names.
fn without_ids(mut net: Net) -> Net {
    net.places.iter_mut().for_each(|place| place.id.clone_from(&place.name));
    net.transitions.iter_mut().for_each(|transition| transition.id.clone_from(&transition.name));
    net
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn pnml(net in net()) {
        prop_assert_eq!(net.validate(), Ok(()));
        let text = write::to_pnml(&net);
        let read = pnml::parse(&text);
        prop_assert_eq!(read.map(without_ids), Ok(net), "{}", text);
    }

    #[test]
    fn tina(net in net()) {
        let text = write::to_tina(&net);
        let read = tina::parse(&text);
        prop_assert_eq!(read, Ok(Net { declared_safe: false, ..net }), "{}", text);
    }
}
