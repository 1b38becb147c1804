//! Every row of the tables does what it says.

use super::{Empty, Harmless, Once, Only, PNML, Question, Refused, Row, TAPAAL, TOOLS, Tool, Used};
use crate::pnml::{name_of, parse};
use crate::{Net, xml};
use roxmltree::{Document, Node};

/// A file in which every name of the table for PNML is used.
const STANDARD: &str = r#"<pnml><net id="n" type="ptnet"><token id="Default"/><page id="g">
<place id="p"><name><text>idle</text></name><initialMarking><text>3</text></initialMarking></place><place id="q"/>
<referencePlace id="r" ref="p"/><referenceTransition id="s" ref="t"/>
<transition id="t"><name><text>go</text></name><label><text>a</text></label><timed><text>false</text></timed><priority><text>2</text></priority></transition>
<transition id="u"><timed><text>true</text></timed></transition>
<transition id="v"><timed><text>false</text></timed></transition>
<arc id="a" source="r" target="s"><inscription><text>2</text></inscription></arc>
<arc id="b" source="q" target="t"><type><text>inhibitor</text></type></arc>
<arc id="c" source="q" target="u"><arctype><text>read</text></arctype></arc>
<arc id="d" source="q" target="u" type="inhibitor"/>
<arc id="e" source="p" target="u"><type value="inhibitor"/></arc><arc id="f" source="p" target="v"><arctype value="read"/></arc>
</page><finalmarkings><marking><place idref="q"><text>1</text></place></marking></finalmarkings></net></pnml>"#;

/// A net with a name of its own.
const NAMED: &str = r#"<pnml><net id="n"><name><text>net</text></name><page><place id="p"/></page></net></pnml>"#;

const TAPN: &str = r#"<pnml><constant name="C" value="2"/><shared-place name="s" initialMarking="1" invariant="&lt; inf"/>
<shared-transition name="x" urgent="true"/><feature isTimed="false"/><k-bound bound="3"/>
<net id="A" type="P/T net" active="true"><labels positionX="1">note</labels>
<place id="p" name="idle" initialMarking="1"/><place id="s" name="s"/>
<transition id="t" name="go" priority="1" timed="true"/><transition id="u" name="u" priority="1" timed="true"/><transition id="x" name="x"/>
<arc id="a" source="p" target="t" type="timed" inscription="[0,inf)" weight="C"/><arc id="b" source="t" target="s" type="normal" inscription="1"/>
<arc source="p" target="u" type="transport" transportID="4"/><arc source="u" target="s" type="transport" transportID="4"/>
<arc id="c" source="p" target="x" type="tapnInhibitor" inscription="[0,inf)"/></net>
<net id="B" active="true"><place id="q" name="q" initialMarking="4"/><place id="s" name="s"/><transition id="x" name="x"/>
<transition id="y" name="y" priority="1" timed="true"/>
<inputArc source="q" target="x" inscription="[0,inf)" weight="2"/><outputArc source="x" target="s" inscription="1" weight="3"/>
<inhibitorArc source="s" target="y" inscription="[0,inf)" weight="2"/>
<transportArc source="q" transition="y" target="s" inscription="[0,inf)" weight="2"/></net></pnml>"#;

/// The same words where they are elements.
const INNER: &str = r#"<pnml><net id="A"><place id="p" initialMarking="3"/><place id="q"/><transition id="t"/><transition id="u"/>
<arc source="p" target="t"><inscription><value>2</value></inscription></arc>
<inputArc source="p" target="t"><inscription><text>2</text></inscription></inputArc><outputArc source="t" target="p"><inscription><value>2</value></inscription></outputArc>
<inhibitorArc source="q" target="t"><inscription><value>2</value></inscription></inhibitorArc>
<transportArc source="p" transition="u" target="q"><inscription><value>2</value></inscription></transportArc></net></pnml>"#;

fn read(text: &str) -> Result<Net, String> {
    let parsed = parse(text).map(|net| Net { notes: Vec::new(), ..net });
    parsed.map_err(|found| found.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; "))
}

/// The elements of this context.
fn of<'a>(document: &'a Document<'a>, context: &str) -> Vec<Node<'a, 'a>> {
    let (parent, name) = match context.split_once('/') {
        Some((parent, name)) => (Some(parent), name),
        None => (None, context),
    };
    let inside = |node: &Node<'a, 'a>| node.parent_element().map(name_of);
    let found = document.descendants().filter(|node| node.is_element() && name_of(*node) == name);
    found.filter(|node| parent.map_or(inside(node) != Some("marking"), |parent| inside(node) == Some(parent))).collect()
}

/// Texts in which one use of the row's name is taken away or, if an attribute, garbled.
fn without(text: &str, parent: &str, name: &str) -> Vec<String> {
    let document = xml::open(text).expect("well-formed");
    let mut found = Vec::new();
    for node in of(&document, parent) {
        let range = match name.strip_prefix('@') {
            Some(name) => node.attribute_node(name).map(|attribute| attribute.range_value()),
            None => node.children().find(|part| part.is_element() && name_of(*part) == name).map(|part| part.range()),
        };
        if let Some(range) = range {
            let garbled = if name.starts_with('@') { "zzz" } else { "" };
            found.push(format!("{}{garbled}{}", &text[..range.start], &text[range.end..]));
        }
    }
    found
}

/// Texts with the row's name in an element that did not have it.
fn with(text: &str, parent: &str, name: &str, value: &str) -> Vec<String> {
    let document = xml::open(text).expect("well-formed");
    let mut found = Vec::new();
    for node in of(&document, parent) {
        let start = node.range().start;
        let tag = xml::tag_span(text, start).end;
        let whole = &text[node.range()];
        match name.strip_prefix('@') {
            Some(name) if node.has_attribute(name) => {
                let range = node.attribute_node(name).expect("it is there").range_value();
                found.push(format!("{}{value}{}", &text[..range.start], &text[range.end..]));
            }
            Some(name) => found.push(format!("{} {name}=\"{value}\"{}", &text[..tag], &text[tag..])),
            None => {
                let child = format!("<{name}><value>{value}</value></{name}>");
                let inner = match whole.strip_suffix("/>") {
                    Some(open) => format!("{open}>{child}</{}>", name_of(node)),
                    None => {
                        let close = whole.rfind("</").expect("a closing tag");
                        format!("{}{child}{}", &whole[..close], &whole[close..])
                    }
                };
                found.push(format!("{}{inner}{}", &text[..start], &text[node.range().end..]));
            }
        }
    }
    found
}

/// Whether a row's own rows say all there is to say about it.
fn is_only_a_holder(table: &[Row], name: &str) -> bool {
    let inner: Vec<&Row> = table.iter().filter(|(parents, ..)| parents.contains(&name)).collect();
    !inner.is_empty() && inner.iter().all(|(.., role)| !matches!(role, Used | Once))
}

#[test]
fn every_row_does_what_it_says() {
    let values = STANDARD.replace("text>", "value>").replacen(
        "<value>1</value></place></marking>",
        "<text>1</text></place></marking>",
        1,
    );
    let flat = STANDARD.replace("<page id=\"g\">", "").replace("</page>", "");
    let nested =
        STANDARD.replace("<page id=\"g\">", "<page id=\"h\"><page id=\"g\">").replace("</page>", "</page></page>");
    let standard: [&str; 5] = [STANDARD, &values, &flat, &nested, NAMED];
    let tables: [(&[Row], &[&str]); 2] = [(PNML, &standard), (TAPAAL, &[TAPN, INNER])];
    let mut wrong = Vec::new();
    for (table, texts) in tables {
        for text in texts {
            assert!(read(text).is_ok(), "{:?}\n{text}", read(text));
        }
        for (parents, name, role) in table {
            for parent in *parents {
                let (mut tried, mut told) = (0, 0);
                for text in texts {
                    let before = read(text);
                    match role {
                        Used | Once if is_only_a_holder(table, name) => (tried, told) = (1, 1),
                        Used | Once => {
                            for changed in without(text, parent, name) {
                                tried += 1;
                                told += usize::from(read(&changed) != before);
                            }
                        }
                        Harmless(_) | Question(_) | Only(..) | Empty(_) => {
                            let value =
                                if let Only(values, _) = role { values[0].replace('<', "&lt;") } else { "7".into() };
                            for changed in with(text, parent, name, &value) {
                                tried += 1;
                                let changed =
                                    if let Empty(_) = role { changed.replace("<value>7</value>", "") } else { changed };
                                if read(&changed) != before {
                                    wrong.push(format!(
                                        "`{name}` in `{parent}` is harmless: {:?}
{changed}",
                                        read(&changed)
                                    ));
                                }
                                told += 1;
                            }
                            if let Only(..) | Empty(_) = role {
                                for changed in with(text, parent, name, "zzz") {
                                    if read(&changed).is_ok() {
                                        wrong.push(format!(
                                            "`{name}` in `{parent}` is refused
{changed}"
                                        ));
                                    }
                                }
                            }
                        }
                        Refused(reason) => {
                            for changed in with(text, parent, name, "7") {
                                tried += 1;
                                let refused = read(&changed).err();
                                told += usize::from(refused.as_ref().is_some_and(|told| told.contains(reason)));
                                if refused.is_none() {
                                    wrong.push(format!("`{name}` in `{parent}` is refused\n{changed}"));
                                }
                            }
                        }
                    }
                }
                if told == 0 {
                    wrong.push(format!("`{name}` in `{parent}`: {told} of {tried} told"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_tools_keep_is_known_or_refused() {
    let file = |tool: &str, inner: &str| {
        format!(
            "<pnml><net id='n'><place id='p'><toolspecific tool='{tool}' version='1'>{inner}</toolspecific></place></net></pnml>"
        )
    };
    for (tool, kept) in TOOLS {
        match kept {
            Tool::Nupn | Tool::Decoration(None, _) => assert!(read(&file(tool, "<x/>")).is_ok(), "{tool}"),
            Tool::Decoration(Some(known), _) => {
                let inner: String = known.iter().map(|name| format!("<{name}/>")).collect();
                assert!(read(&file(tool, &inner)).is_ok(), "{tool}");
                let refused = read(&file(tool, "<subprocess/>")).expect_err("it is refused");
                assert!(refused.starts_with("`subprocess` is not known in what"), "{refused}");
            }
            Tool::Semantics(reason) => assert_eq!(read(&file(tool, "")), Err(reason.to_string()), "{tool}"),
        }
    }
    let refused = read(&file("Unheard", "<x/>")).expect_err("it is refused");
    assert_eq!(refused, "what the tool `Unheard` keeps in `toolspecific` is not known");
}

#[test]
fn parts_of_a_net_are_never_skipped() {
    let arc = "<arc source='t' target='p'/>";
    let cases = [
        (format!("<graphics>{arc}</graphics>"), "`arc` has no meaning in `graphics`"),
        (format!("<page><name><x>{arc}</x></name></page>"), "`arc` has no meaning in `name`"),
        (
            "<place id='q'><graphics><initialMarking><text>1</text></initialMarking></graphics></place>".into(),
            "`initialMarking` has no meaning in `graphics`",
        ),
        (
            "<toolspecific tool='WoPeD'><trigger><initialMarking/></trigger></toolspecific>".into(),
            "`initialMarking` has no meaning in `toolspecific`",
        ),
        (
            "<x:arc xmlns:x='urn:other' source='t' target='p'/>".into(),
            "`arc` is of another namespace than `net`: \"urn:other\"",
        ),
        ("<place xmlns='urn:other' id='q'/>".into(), "`place` is of another namespace than `net`: \"urn:other\""),
    ];
    for (part, message) in cases {
        let text = format!("<pnml><net id='n'><place id='p'/><transition id='t'/>{part}</net></pnml>");
        assert_eq!(read(&text), Err(message.into()));
    }
}
