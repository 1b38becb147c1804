//! That nothing in a file is dropped silently.

use deltamark_coloured::ColouredSystem;
use deltamark_core::{Control, Diagnostic};
use deltamark_nets::xml;
use deltamark_testkit::explore;

/// A file with every element that is read and most of the harmless ones.
const COMPLETE: &str = include_str!("data/complete.cpn");

fn load(text: &str) -> Result<ColouredSystem, Vec<Diagnostic>> {
    ColouredSystem::new(deltamark_cpn::parse_under(text, &[], &[], &Control::new())?, text)
}

/// States and edges; `None` if the text is refused.
fn counts(text: &str) -> Option<(usize, usize)> {
    let explored = explore(&load(text).ok()?);
    Some((explored.states.len(), explored.edges.len()))
}

fn complaint(text: &str) -> String {
    load(text).err().and_then(|wrong| wrong.into_iter().next()).map(|wrong| wrong.message).unwrap_or_default()
}

/// The text after each renaming of one element or one attribute, and the old name.
fn renamings(text: &str) -> Vec<(String, String)> {
    let document = xml::open(text).expect("well-formed");
    let mut found = Vec::new();
    for node in document.descendants().filter(|node| node.is_element()) {
        let (range, name) = (node.range(), node.tag_name().name());
        let opened = format!("<{name}x{}", &text[range.start + 1 + name.len()..range.end]);
        let closed = match opened.strip_suffix(&format!("</{name}>")) {
            Some(open) => format!("{open}</{name}x>"),
            None => opened,
        };
        found.push((format!("{}{closed}{}", &text[..range.start], &text[range.end..]), name.to_string()));
        for attribute in node.attributes() {
            let end = attribute.range().start + attribute.name().len();
            found.push((format!("{}x{}", &text[..end], &text[end..]), attribute.name().to_string()));
        }
    }
    found
}

#[test]
fn a_name_that_is_changed_never_changes_the_net_in_silence() {
    let expected = counts(COMPLETE);
    assert_eq!(expected, Some((18, 66)), "{}", complaint(COMPLETE));
    let mut refused = 0;
    for (renamed, name) in renamings(COMPLETE) {
        match counts(&renamed) {
            None => refused += 1,
            found => assert_eq!(found, expected, "`{name}` was renamed in {renamed}"),
        }
    }
    assert!(refused > 150, "{refused}");
}

#[test]
fn what_used_to_vanish_is_used_or_refused() {
    let cases = [
        ("<trans id='T'", "<trans id='T9'", "the arc leads nowhere: the page has no node `T`"),
        ("<transend idref='T'/>", "", "the arc leads nowhere: the page has no node ``"),
        ("<initmark>", "<initmark><!-- --><text>2`()</text>", "`text` is there twice, where one is expected"),
        (
            "<text>Loop</text>",
            "<text>Lo<!-- -->op</text>",
            "the text in `text` is in two parts; only one would be read",
        ),
        ("<arc id='a1'", "3 tokens<arc id='a1'", "text has no meaning in `page`: \"3 tokens\""),
        ("<place id='Q'", "<place id='P'", "another node has the id `P`"),
        ("<place id='Q'", "<place", "this `place` has no `id`"),
        ("(I,P)", "(I;P)", "`portsock` is not a list of pairs `(port,socket)`: `(I;P)(O,Q)`"),
        ("insts='0'", "insts='2'", "several instances of a page that is no subpage are not supported"),
        ("<options>", "<options><page id='h'/>", "`page` has no meaning in `options`"),
        (
            "<cpnet>",
            "<x:cpnet xmlns:x='u'></x:cpnet><cpnet>",
            "`cpnet` is of another namespace than `workspaceElements`",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(COMPLETE.contains(from), "{from}");
        assert_eq!(complaint(&COMPLETE.replacen(from, to, 1)), expected, "{to}");
    }
}

/// CPN Tools puts a declaration before or behind the form that it shows, and so do programs.
#[test]
fn a_declaration_may_be_behind_its_layout() {
    let from = "val two = 2;<layout>val two = 2;</layout>";
    assert!(COMPLETE.contains(from));
    assert_eq!(counts(&COMPLETE.replacen(from, "\n<layout>val two = 2;</layout>\nval two = 2;", 1)), Some((18, 66)));
    assert_eq!(counts(&COMPLETE.replacen(from, "\n<layout>val two = 2;</layout>\nval three = 2;", 1)), None);
}
