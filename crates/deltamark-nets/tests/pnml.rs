//! The contents of PNML files, and how they are read.

mod common;

use deltamark_nets::{Net, pnml, write};

/// A file with one net of this content.
fn read(content: &str) -> Net {
    let text =
        format!("<pnml><net id=\"n\" type=\"http://www.pnml.org/version-2009/grammar/ptnet\">{content}</net></pnml>");
    let net = pnml::parse(&text).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}\n{text}"));
    assert_eq!(net.validate(), Ok(()));
    net
}

/// Checks the net against its TINA text, which is easy to read.
#[track_caller]
fn check(content: &str, expected: &str) {
    let lines: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let written = write::to_tina(&read(content));
    let written: Vec<&str> = written.lines().skip(1).collect();
    assert_eq!(written, lines, "for {content}");
}

#[test]
fn markings_weights_and_names() {
    check(
        r#"<page id="g">
             <place id="p1"><name><text>idle</text></name><initialMarking><text> 3 </text></initialMarking></place>
             <place id="p2"/>
             <transition id="t1"><name><text>go</text></name></transition>
             <arc id="a1" source="p1" target="t1"><inscription><text>2</text></inscription></arc>
             <arc id="a2" source="t1" target="p2"/>
           </page>"#,
        "pl idle (3)
         pl p2
         tr go idle*2 -> p2",
    );
}

#[test]
fn arcs_between_the_same_nodes_are_merged() {
    check(
        r#"<place id="p"/><transition id="t"/>
           <arc source="p" target="t"/><arc source="p" target="t"><inscription><text>2</text></inscription></arc>
           <arc source="t" target="p"/><arc source="t" target="p"/>
           <arc source="p" target="t"><type value="read"/></arc>
           <arc source="p" target="t"><type value="test"/><inscription><text>4</text></inscription></arc>
           <arc source="p" target="t"><type value="inhibitor"/><inscription><text>9</text></inscription></arc>
           <arc source="p" target="t"><type value="inhibitor"/><inscription><text>7</text></inscription></arc>"#,
        "pl p
         tr t p*3 p?4 p?-7 -> p*2",
    );
}

#[test]
fn arc_types_as_several_tools_write_them() {
    for kind in [
        r#"><type value="inhibitor"/></arc>"#,
        r#" type="inhibitor"/>"#,
        "><arctype><text>inhibitor</text></arctype></arc>",
    ] {
        let content = format!(r#"<place id="p"/><transition id="t"/><arc source="p" target="t"{kind}"#);
        check(&content, "pl p\n tr t p?-1 ->");
    }
    check(r#"<place id="p"/><transition id="t"/><arc source="p" target="t" type="normal"/>"#, "pl p\n tr t p ->");
}

#[test]
fn pages_and_references_are_resolved() {
    check(
        r#"<page id="one">
             <page id="inner"><place id="p"/><referenceTransition id="rt" ref="t"/></page>
             <referencePlace id="r1" ref="r2"/>
             <arc source="r1" target="rt"/>
           </page>
           <page id="two"><referencePlace id="r2" ref="p"/><transition id="t"/><arc source="t" target="r2"/></page>"#,
        "pl p
         tr t p -> p",
    );
}

#[test]
fn names_are_used_where_they_tell_nodes_apart() {
    let name = |id: &str, name: &str| format!(r#"<place id="{id}"><name><text>{name}</text></name></place>"#);
    type Case = (&'static [(&'static str, &'static str)], &'static [&'static str]);
    let cases: &[Case] = &[
        (&[("a", "x"), ("b", "y")], &["x", "y"]),
        (&[("a", "x"), ("b", "x"), ("c", "z")], &["a", "b", "z"]),
        (&[("a", "b"), ("b", "a")], &["a", "b"]),
        (&[("a", "x"), ("b", "x"), ("c", "a")], &["a", "b", "c"]),
        (&[("a", ""), ("b", "  ")], &["a", "b"]),
        (&[("a", "\n  two\n  lines\n"), ("b", " kept ")], &["two lines", " kept "]),
        (&[("a", "&lt;&#65;&amp;"), ("b", "<![CDATA[<b>]]>")], &["<A&", "<b>"]),
        (&[("a", "one<!-- no -->name")], &["onename"]),
    ];
    for (nodes, expected) in cases {
        let net = read(&nodes.iter().map(|(id, text)| name(id, text)).collect::<String>());
        let names: Vec<&str> = net.places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(&names, expected, "{nodes:?}");
        assert_eq!(net.places[0].id, nodes[0].0);
    }
}

#[test]
fn transitions_and_places_may_share_a_name() {
    let net = read(
        r#"<place id="p"><name><text>x</text></name></place><transition id="t"><name><text>x</text></name></transition>"#,
    );
    assert_eq!((net.places[0].name.as_str(), net.transitions[0].name.as_str()), ("x", "x"));
}

#[test]
fn safety_is_taken_from_nupn_alone() {
    let tool = |tool: &str, safe: &str| {
        read(&format!(r#"<page id="g"><place id="p"/></page><toolspecific tool="{tool}" version="1.1"><structure units="1" root="u" safe="{safe}"><unit id="u"/></structure></toolspecific>"#))
            .declared_safe
    };
    assert!(tool("nupn", "true"));
    assert!(!tool("nupn", "false"));
    assert!(!tool("org.pnml.tool.text", "true"));
}

#[test]
fn layout_and_strange_but_sound_xml_are_accepted() {
    for text in [
        "\u{FEFF}<?xml version='1.0'?><!-- <net> --><pnml><net id='n'><place id='p'/></net></pnml>",
        "<!DOCTYPE pnml SYSTEM \"pnml.dtd\"><pnml><net id='n' type='P/T net'><place id='p'/></net></pnml>",
        "<x:pnml xmlns:x='http://www.pnml.org/version-2009/grammar/pnml'><x:net id='n'><x:place id='p'/></x:net></x:pnml>",
        "<pnml><net id='n' type='http://www.informatik.hu-berlin.de/top/pntd/ptNetb'><place id='p'><graphics><position x='1' y='2'/></graphics></place></net></pnml>",
        "<pnml><?go now?><net id='n'><place id='p>'><name><text><![CDATA[<place>]]></text></name></place></net></pnml>\n\n",
    ] {
        let net = pnml::parse(text).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}\n{text}"));
        assert_eq!((net.name.as_str(), net.places.len()), ("n", 1), "{text}");
    }
}

#[test]
fn final_markings_are_read_and_written() {
    let places = "<place id='p'/><place id='q'/><place id='r'/><transition id='t'/>";
    let place = |id: &str, tokens: &str| format!("<place idref='{id}'><text>{tokens}</text></place>");
    type Markings<T> = &'static [&'static [(T, T)]];
    let cases: &[(Markings<&str>, Markings<u32>)] = &[
        (&[], &[]),
        (&[&[]], &[&[]]),
        (&[&[("p", "0"), ("r", "1"), ("q", "2")]], &[&[(1, 2), (2, 1)]]),
        (&[&[("p", "1")], &[("q", "4294967295")]], &[&[(0, 1)], &[(1, u32::MAX)]]),
    ];
    for (markings, expected) in cases {
        let one = |marking: &&[(&str, &str)]| -> String {
            let places: String = marking.iter().map(|(id, tokens)| place(id, tokens)).collect();
            format!("<marking>{places}</marking>")
        };
        let net =
            read(&format!("{places}<finalmarkings>{}</finalmarkings>", markings.iter().map(one).collect::<String>()));
        assert_eq!(net.final_markings, *expected);
        assert_eq!(
            pnml::parse(&write::to_pnml(&net)).map(|net| net.final_markings),
            Ok(expected.iter().map(|marking| marking.to_vec()).collect())
        );
    }
}
