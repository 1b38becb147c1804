//! The reader of symmetric nets refuses what it does not know: renaming an element or an attribute, adding
//! one, or duplicating one never changes the net silently.

use deltamark_coloured::{ColouredSystem, pnml};
use deltamark_core::diagnostic::line_column;
use deltamark_testkit::explore;
use roxmltree::{Document, Node};

/// A file that has every construct.
const COMPLETE: &str = include_str!("../../../fuzz/seeds/coloured/complete.pnml");

fn counts(text: &str) -> Option<(usize, usize)> {
    let net = pnml::parse(text).ok()?;
    let found = explore(&ColouredSystem::new(net, text).ok()?);
    Some((found.states.len(), found.edges.len()))
}

/// Whether everything in an element is decoration.
fn is_decoration(node: Node<'_, '_>) -> bool {
    node.ancestors().skip(1).any(|around| matches!(around.tag_name().name(), "graphics" | "toolspecific"))
}

/// The text with the element renamed.
fn renamed(text: &str, node: Node<'_, '_>, name: &str) -> String {
    let (range, old) = (node.range(), node.tag_name().name());
    let inside = &text[range.start + 1 + old.len()..range.end];
    let inside = match inside.strip_suffix(&format!("</{old}>")) {
        Some(inside) => format!("{inside}</{name}>"),
        None => inside.to_string(),
    };
    format!("{}<{name}{inside}{}", &text[..range.start], &text[range.end..])
}

#[test]
fn every_renamed_element_and_attribute_is_refused() {
    let document = Document::parse(COMPLETE).expect("it is XML");
    let expected = counts(COMPLETE);
    assert_eq!(expected, Some((16, 25)));
    let (mut refused, mut harmless) = (0, 0);
    let mut check = |what: &str, changed: &str, decoration: bool| match counts(changed) {
        None => refused += 1,
        same if decoration => {
            assert_eq!(same, expected, "{what}");
            harmless += 1;
        }
        Some(_) => panic!("{what} is renamed, and the file is read all the same"),
    };
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        for new in [format!("{name}s"), name[..name.len() - 1].to_string(), name.to_ascii_uppercase()] {
            if !new.is_empty() {
                check(name, &renamed(COMPLETE, node, &new), is_decoration(node));
            }
        }
        for attribute in node.attributes() {
            let range = attribute.range_qname();
            let changed = format!("{}{}x{}", &COMPLETE[..range.start], attribute.name(), &COMPLETE[range.end..]);
            let decoration = is_decoration(node) || (name == "toolspecific" && attribute.name() == "version");
            check(&format!("{name}/@{}", attribute.name()), &changed, decoration);
        }
    }
    assert!(refused > 500 && harmless > 10, "{refused} refused, {harmless} harmless");
}

#[test]
fn every_second_copy_of_what_is_read_once_is_refused() {
    let document = Document::parse(COMPLETE).expect("it is XML");
    let once = ["name", "type", "hlinitialMarking", "hlinscription", "condition", "structure", "text", "declarations"];
    for node in document.descendants().filter(|node| once.contains(&node.tag_name().name())) {
        let range = node.range();
        let changed = format!("{}{}{}", &COMPLETE[..range.end], &COMPLETE[range.clone()], &COMPLETE[range.end..]);
        assert_eq!(counts(&changed), None, "a second `{}` at {range:?}", node.tag_name().name());
    }
}

#[test]
fn what_is_not_known_is_named_with_its_place() {
    // Put into the complete file in place of something, on its line 6.
    let cases: &[(&str, &str, &str)] = &[
        (
            "<structure>",
            "<structure weight=\"2\">",
            "6:18 `weight` is no attribute of `structure` | attributes that are known here: none",
        ),
        ("<structure>", "<structures>", "6:7 `structures` is not known in `declaration` | did you mean `structure`?"),
        (
            "<structure>",
            "words<structure>",
            "6:7 there is text in `declaration`, which nothing reads | terms are elements in `<structure>`; names are in `<text>`",
        ),
        (
            "<structure>",
            "<toolspecific tool=\"Clock\"/><structure>",
            "6:7 it is not known what `toolspecific` of `Clock` means for the net | remove the element if it changes nothing",
        ),
    ];
    for (old, new, expected) in cases {
        let mut text = COMPLETE.replacen(old, new, 1);
        if *new == "<structures>" {
            text = text.replacen("</structure>\n    </declaration>", "</structures>\n    </declaration>", 1);
        }
        let wrong = pnml::parse(&text).expect_err(new);
        let told: Vec<String> = wrong
            .iter()
            .map(|one| {
                let (line, column) = line_column(&text, one.span.expect("it has a place").start);
                format!("{line}:{column} {} | {}", one.message, one.help.as_deref().unwrap_or_default())
            })
            .collect();
        assert!(told.iter().any(|told| told == expected), "{told:#?}, where {expected} is expected");
    }
    assert_eq!(counts(&COMPLETE.replace("</cyclicenumeration>", "</cyclicenumeration>$")), counts(COMPLETE));
    let truth = COMPLETE.replace("<booleanconstant value=\"true\"/>", "<booleanconstant value=\"True\"/>");
    let wrong = pnml::parse(&truth).expect_err("`True` is no value");
    assert_eq!(wrong[0].message, "this `booleanconstant` has neither the value `true` nor `false`");
}
