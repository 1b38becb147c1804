//! What tools write beyond the standard, and that no name in a file is skipped silently.

mod common;

use common::{complaints, explore};
use deltamark_nets::{Net, pnml, write, xml};

fn read(text: &str) -> Net {
    let net = pnml::parse(text).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}\n{text}"));
    assert_eq!(net.validate(), Ok(()));
    net
}

/// The net in TINA's format, without its name.
fn shown(text: &str) -> Vec<String> {
    write::to_tina(&read(text)).lines().filter(|line| !line.starts_with("net ")).map(String::from).collect()
}

/// The text after each renaming of one element or one attribute.
fn renamings(text: &str) -> Vec<String> {
    let document = xml::open(text).expect("well-formed");
    let mut found = Vec::new();
    for node in document.descendants().filter(|node| node.is_element()) {
        let (range, name) = (node.range(), node.tag_name().name());
        let whole = &text[range.clone()];
        let opened = format!("<{name}x{}", &whole[1 + name.len()..]);
        let closed = match opened.strip_suffix(&format!("</{name}>")) {
            Some(open) => format!("{open}</{name}x>"),
            None => opened,
        };
        found.push(format!("{}{closed}{}", &text[..range.start], &text[range.end..]));
        for attribute in node.attributes() {
            let end = attribute.range().start + attribute.name().len();
            found.push(format!("{}x{}", &text[..end], &text[end..]));
        }
    }
    found
}

const PIPE: &str = r#"<?xml version="1.0" encoding="iso-8859-1"?><pnml><net id="Net-One" type="P/T net">
<token id="Default" enabled="true" red="0" green="0" blue="0"/><labels x="1" y="2" width="3" height="4" border="false"><text>note</text></labels>
<place id="P0"><graphics><position x="1" y="2"/></graphics><name><value>P0</value><graphics/></name>
<initialMarking><value>Default,2</value><graphics/></initialMarking><capacity><value>0</value></capacity></place>
<place id="P1"><name><value>P1</value></name><initialMarking><value>0</value></initialMarking></place>
<transition id="T0"><name><value>T0</value></name><orientation><value>0</value></orientation><rate><value>1.0</value></rate>
<timed><value>true</value></timed><infiniteServer><value>false</value></infiniteServer><priority><value>1</value></priority></transition>
<transition id="T1"><timed><value>false</value></timed><priority><value>1</value></priority></transition>
<transition id="T2"><timed><value>false</value></timed><priority><value>3</value></priority></transition>
<arc id="a" source="P0" target="T0"><inscription><value>Default,1</value></inscription><tagged><value>false</value></tagged><arcpath id="0" x="1" y="2" curvePoint="false"/><type value="normal"/></arc>
<arc id="a" source="T0" target="P1"/>
<arc id="c" source="P1" target="T1"/><arc id="d" source="P1" target="T2"><inscription><value>2</value></inscription></arc>
</net></pnml>"#;

#[test]
fn a_name_that_is_changed_never_changes_the_net_in_silence() {
    let files = [PIPE.to_string(), TAPN.to_string(), ENGINE.to_string(), WORKFLOW.to_string()];
    let mut refused = 0;
    for text in files {
        let before = read(&text);
        for renamed in renamings(&text) {
            match pnml::parse(&renamed) {
                Ok(net) => assert_eq!(net, before, "{renamed}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 150, "{refused}");
}

#[test]
fn what_used_to_vanish_is_used_or_refused() {
    let nodes = "<place id='p'/><place id='q'/><transition id='t'/>\n";
    let refused: &[(&str, &[&str])] = &[
        ("<ark source='p' target='t'/>", &["2:1 `ark` is not known in `net`"]),
        (
            "<arc source='p' target='t' weight='2'/>",
            &["2:28 in PNML a weight is written `<inscription><text>2</text></inscription>`"],
        ),
        (
            "<arc source='p' target='t'><inscription>2</inscription></arc>",
            &["2:41 text has no meaning in `inscription`: \"2\""],
        ),
        (
            "<arc source='p' target='t'><inscription><text>2</text><value>3</value></inscription></arc>",
            &["2:55 `value` is there twice, where one is expected"],
        ),
        ("<place id='r'><marking>3</marking></place>", &["2:15 `marking` is not known in `place`"]),
        (
            "<place id='r'><initialMarking><text>1</text></initialMarking><initialMarking><text>1</text></initialMarking></place>",
            &["2:62 `initialMarking` is there twice, where one is expected"],
        ),
        (
            "<place id='r'><initialMarking><text>Default,1,Red,2</text></initialMarking></place>",
            &["2:37 `1,Red,2` is not a whole number"],
        ),
        (
            "<token id='Red'/>",
            &["2:8 tokens of the class `Red` are coloured; PIPE's nets are read with the class Default only"],
        ),
        (
            "<transition id='u' guard='x &gt; 1'/>",
            &["2:20 this is a data Petri net: guards and variables are not supported"],
        ),
        (
            "<transition id='u'><timed><value>true</value></timed></transition>",
            &["1:49 this transition does not say whether it is timed, as others of the file do"],
        ),
        (
            "<transition id='u'><priority><value>2</value></priority></transition>",
            &["2:20 priorities of transitions are not supported here"],
        ),
        (
            "<arc source='p' target='t' type='read'><type value='inhibitor'/></arc>",
            &["2:53 the arc has two types, which differ"],
        ),
        (
            "<finalmarkings><marking><place idref='x'><text>1</text></place></marking></finalmarkings>",
            &["2:39 the final marking leads nowhere: there is no node `x`"],
        ),
        ("3 tokens", &["2:1 text has no meaning in `net`: \"3 tokens\""]),
    ];
    for (content, expected) in refused {
        let text = format!("<pnml><net id='n'>{nodes}{content}</net></pnml>");
        assert_eq!(complaints(&text, pnml::parse(&text)), *expected, "{content}");
    }
    // An arc as TAPAAL's engine writes it, and a marking as an attribute, are read.
    let text = "<pnml><net id='n'><place id='p' initialMarking='1'/><place id='q'/><transition id='t'/>\
                <inputArc source='p' target='t'/><outputArc source='t' target='q'/></net></pnml>";
    assert_eq!(shown(text), ["pl p (1)", "pl q", "tr t p -> q"]);
}

#[test]
fn immediate_transitions_of_pipe_have_priority() {
    assert_eq!(
        shown(PIPE),
        ["pl P0 (2)", "pl P1", "tr T0 P0 -> P1", "tr T1 P1 ->", "tr T2 P1*2 ->", "pr T1 > T0", "pr T2 > T1"]
    );
    let net = read(PIPE);
    assert_eq!(
        net.notes,
        ["2 immediate transitions have priority over 1 timed ones, by their priorities; rates are not looked at"]
    );
    // (2,0) -T0-> (1,1) -T1-> (1,0) -T0-> (0,1) -T1-> (0,0); nothing else can fire in between.
    let counts = explore(&net);
    assert_eq!((counts.states, counts.edges, counts.deadlocks), (5, 4, 1));
    assert_eq!(pnml::parse(&write::to_pnml(&net)).map(|again| Net { name: net.name.clone(), ..again }), Ok(net));
    // All timed, or all immediate with the same priority: there are no priorities.
    for (from, to) in
        [("false</value></timed>", "true</value></timed>"), ("true</value></timed>", "false</value></timed>")]
    {
        let alike = PIPE.replace(from, to).replace("<priority><value>3", "<priority><value>1");
        let net = read(&alike);
        assert!(!net.has_priorities() && net.notes.is_empty());
    }
}

#[test]
fn priorities_that_pipe_leaves_out_are_one() {
    let transition = |id: &str, priority: &str| {
        format!("<transition id='{id}'><timed><value>false</value></timed>{priority}</transition>")
    };
    let net = |first: &str, second: &str| {
        format!(
            "<pnml><net id='n'><place id='P'><initialMarking><value>Default,1</value></initialMarking></place>{}{}\
             <arc id='1' source='P' target='A'/><arc id='2' source='P' target='B'/></net></pnml>",
            transition("A", first),
            transition("B", second)
        )
    };
    let one = "<priority><value>1</value></priority>";
    let none = "<priority><value>0</value></priority>";
    for (first, second, edges) in [(one, "", 2), ("", "", 2), (none, "", 1), ("", none, 1), (one, none, 1)] {
        assert_eq!(explore(&read(&net(first, second))).edges, edges, "{first} {second}");
    }
}

#[test]
fn transitions_of_tapaal_without_arcs_are_left_out_and_told() {
    let cases = [
        ("<shared-transition name='U' urgent='false'/>", "", ""),
        (
            "<shared-transition name='U' urgent='false'/>",
            "",
            "<net active='false' id='B' type='P/T net'><place id='Q' initialMarking='0' name='Q'/><transition id='U' name='U'/>\
             <arc id='x' inscription='[0,inf)' source='Q' target='U' type='timed' weight='1'/></net>",
        ),
        ("", "<transition id='U' name='U'/>", ""),
    ];
    for (shared, local, other) in cases {
        let text = format!(
            "<pnml>{shared}<net active='true' id='A' type='P/T net'><place id='P' initialMarking='1' name='P'/><transition id='T' name='T'/>{local}\
             <arc id='a' inscription='[0,inf)' source='P' target='T' type='timed' weight='1'/></net>{other}<k-bound bound='3'/></pnml>"
        );
        let net = read(&text);
        let counts = explore(&net);
        assert_eq!((counts.states, counts.edges, counts.deadlocks), (2, 1, 1), "{text}");
        assert!(net.notes.iter().any(|note| note.contains("no arc leads to them")), "{:?}", net.notes);
    }
}

const TAPN: &str = r#"<pnml xmlns="http://www.informatik.hu-berlin.de/top/pnml/ptNetb">
<shared-place initialMarking="1" invariant="&lt; inf" name="key"/><shared-transition name="meet" urgent="true" player="0"/>
<constant name="two" value="2"/>
<net active="true" id="A" type="P/T net"><labels positionX="1" positionY="2" border="true" height="3" width="4">a note</labels>
<place displayName="true" id="P" initialMarking="2" invariant="&lt; inf" name="P" nameOffsetX="0" nameOffsetY="0" positionX="1" positionY="2"/>
<place id="K" initialMarking="1" invariant="&lt; inf" name="key"/>
<transition angle="0" displayName="true" id="T" infiniteServer="false" name="T" player="0" priority="0" urgent="false"/><transition id="M" name="meet"/>
<arc id="a" inscription="[0,inf):1" source="P" target="T" type="transport" weight="1" transportID="1"/><arc id="a" inscription="[0,inf):1" source="T" target="K" type="transport" weight="1"><arcpath id="0"/></arc>
<arc id="b" inscription="[0,inf)" source="K" target="M" type="timed" weight="two"/></net>
<net active="true" id="B" type="P/T net"><place id="P" initialMarking="1" invariant="&lt; inf" name="P"/><place id="k" name="key"/><transition id="m" name="meet"/>
<arc id="c" inscription="[0,inf)" source="P" target="m" type="timed" weight="1"/><arc id="d" inscription="1" source="m" target="P" type="normal" weight="3"/>
<arc id="e" inscription="[0,inf)" source="k" target="m" type="tapnInhibitor" weight="5"/></net>
<net active="false" id="C" type="P/T net"><place id="never" initialMarking="9" name="never"/></net>
<query active="true" name="q" query="EF A.P = 0"/><k-bound bound="3"/><feature isGame="false" isTimed="true" isColored="false"/></pnml>"#;

/// A file for TAPAAL's engine.
const ENGINE: &str = r#"<pnml><net id="ComposedModel" type="P/T net">
<place id="P0" name="P0" invariant="&lt; inf" initialMarking="1"/><place id="P1" name="P1" invariant="&lt; inf" initialMarking="0"/>
<transition id="T0" name="T0"/><transition id="T1" name="T1" urgent="false"/>
<inputArc inscription="[0,inf)" source="P0" target="T0"/><outputArc inscription="1" source="T0" target="P1"/>
<inhibitorArc source="P1" target="T0"><inscription><value>2</value></inscription></inhibitorArc>
<transportArc inscription="[0,inf)" source="P1" transition="T1" target="P0"/></net></pnml>"#;

/// As ProM writes it.
const WORKFLOW: &str = r#"<pnml><net id="net1" type="http://www.pnml.org/version-2009/grammar/pnmlcoremodel"><name><text>a</text></name><page id="n0">
<place id="n1"><name><text>start</text></name><toolspecific tool="ProM" version="6.4" localNodeID="1"/><initialMarking><text>1</text></initialMarking></place>
<place id="n2"><name><text>end</text></name></place><transition id="n3"><name><text>do</text></name><toolspecific tool="ProM" version="6.4" activity="do" localNodeID="2"/></transition>
<arc id="x" source="n1" target="n3"><name><text>1</text></name><arctype><text>normal</text></arctype></arc><arc id="x" source="n3" target="n2"/></page>
<finalmarkings><marking><place idref="n1"><text>0</text></place><place idref="n2"><text>1</text></place></marking></finalmarkings></net></pnml>"#;

#[test]
fn files_of_tapaal_and_of_process_mining_are_read() {
    assert_eq!(
        shown(TAPN),
        ["pl key (1)", "pl A.P (2)", "pl B.P (1)", "tr meet key*2 B.P key?-5 -> B.P*3", "tr T A.P -> key"]
            .map(|line| line.replace("A.P", "{A.P}").replace("B.P", "{B.P}"))
    );
    assert_eq!(
        read(TAPN).notes,
        [
            "1 query of the file not read; ask with `--invariant`, `--reach`",
            "left out as the file says, because not active: C"
        ]
    );
    assert_eq!(shown(ENGINE), ["pl P0 (1)", "pl P1", "tr T0 P0 P1?-2 -> P1", "tr T1 P1 -> P0"]);
    assert_eq!(shown(WORKFLOW), ["pl start (1)", "pl end", "tr do start -> end"]);
    assert_eq!(read(WORKFLOW).final_markings, [[(1, 1)]]);
}

#[test]
fn what_tapaal_has_beyond_nets_is_refused_by_name() {
    let cases = [
        ("query=\"EF", "query2=\"EF", None),
        (
            "[0,inf):1\" source=\"P\"",
            "[1,inf):1\" source=\"P\"",
            Some("8:26 the arc has the time interval `[1,inf):1`: timed nets are not supported"),
        ),
        (
            "inscription=\"1\"",
            "inscription=\"2\"",
            Some("11:107 the arc has the time interval `2`: timed nets are not supported"),
        ),
        (
            "invariant=\"&lt; inf\" name=\"key\"/><shared",
            "invariant=\"&lt;= 3\" name=\"key\"/><shared",
            Some("2:34 the invariant `<= 3` limits the age of tokens: timed nets are not supported"),
        ),
        (
            "player=\"0\"/>\n<const",
            "player=\"1\"/>\n<const",
            Some("2:112 this is a game of TAPAAL, with two players; only nets without players are read"),
        ),
        (
            "isColored=\"false\"",
            "isColored=\"true\"",
            Some("14:110 this is a coloured net of TAPAAL; only its nets without colours are read"),
        ),
        (
            "type=\"timed\" weight=\"two\"",
            "type=\"reset\" weight=\"two\"",
            Some("9:1 arcs of type `reset` are not supported"),
        ),
        ("weight=\"two\"", "weight=\"three\"", Some("9:78 `three` is not a whole number")),
        (
            "id=\"k\" name=\"key\"",
            "id=\"k\" name=\"key\" initialMarking=\"7\"",
            Some("10:106 the marking of this shared place differs from what the shared place says"),
        ),
        ("active=\"false\"", "active=\"no\"", Some("13:14 a net is active, `true`, or not, `false`")),
        (
            "source=\"P\" target=\"m\"",
            "source=\"p\" target=\"m\"",
            Some("11:43 the arc leads nowhere: there is no node `p`"),
        ),
    ];
    for (from, to, expected) in cases {
        assert!(TAPN.contains(from), "{from}");
        let text = TAPN.replacen(from, to, 1);
        match expected {
            None => assert_eq!(read(&text), read(TAPN)),
            Some(expected) => assert_eq!(complaints(&text, pnml::parse(&text)), [expected], "{to}"),
        }
    }
}

#[test]
fn the_halves_of_transport_arcs_pair() {
    let start =
        "<pnml><net id='n' active='true'><place id='p' initialMarking='3'/><place id='q'/><transition id='t'/>\n";
    let enters = "<arc source='p' target='t' type='transport' inscription='[0,inf):1' weight='2'/>\n";
    let leaves = "<arc source='t' target='q' type='transport' inscription='[0,inf):1' weight='2'/>\n";
    let unpaired = "this half of transport arc";
    let cases: &[(String, &[&str])] = &[
        (format!("{enters}{leaves}"), &[]),
        (format!("{leaves}{enters}"), &[]),
        (format!("{enters}{leaves}{}{}", enters.replace(":1", ":2"), leaves.replace(":1", ":2")), &[]),
        (
            format!("{}{}", enters.replace(":1'", "' transportID='7'"), leaves.replace(":1'", ":7' transportID='7'")),
            &[],
        ),
        (enters.into(), &["2:1 @ 1 enters a transition, but none of that number leaves it"]),
        (leaves.into(), &["2:1 @ 1 leaves a transition, but none of that number enters it"]),
        (
            format!("{enters}{}", leaves.replace(":1", ":2")),
            &[
                "2:1 @ 1 enters a transition, but none of that number leaves it",
                "3:1 @ 2 leaves a transition, but none of that number enters it",
            ],
        ),
        (
            format!("{enters}{}", leaves.replace("weight='2'", "weight='1'")),
            &["3:1 the two halves of transport arc 1 have different weights, 2 and 1"],
        ),
        (
            format!("{enters}{leaves}{leaves}"),
            &[
                "4:1 the number 1 has more than one transport arc of this transition, so that nothing says which belong \
                together",
            ],
        ),
        (
            format!("{enters}{}", leaves.replace(":1", "")),
            &[
                "3:1 this transport arc has no number (`transportID`, or `:1` after its interval), so that nothing says \
                which other half belongs to it",
            ],
        ),
        (
            format!("{}{leaves}", enters.replace(":1'", ":1' transportID='2'")),
            &["2:82 this transport arc has two numbers, `1` after its interval and `2`"],
        ),
        (
            enters.replace("type='transport'", "type='timed'"),
            &["2:54 this arc has the number of a transport arc, but is of another type"],
        ),
    ];
    for (arcs, expected) in cases {
        let text = format!("{start}{arcs}</net></pnml>");
        let expected: Vec<String> = expected.iter().map(|words| words.replace('@', unpaired)).collect();
        match expected.as_slice() {
            [] => drop(read(&text)),
            expected => assert_eq!(complaints(&text, pnml::parse(&text)), expected, "{arcs}"),
        }
    }
}

#[test]
fn very_many_mistakes_are_told_in_short_and_soon() {
    let began = std::time::Instant::now();
    let element = "<ark/>".repeat(100_000);
    let place: String = (0..50_000).map(|number| format!("<place id='p{number}' hue='red'/>")).collect();
    let arc = "<arc source='nowhere' target='there'/>".repeat(50_000);
    let words = "words<place/>".repeat(50_000);
    let tool = format!("<toolspecific tool='ProM'>{element}</toolspecific>");
    for inner in [element, place, arc, words, tool] {
        for kind in ["", " active='true'"] {
            let text = format!("<pnml><net id='n'{kind}>{inner}</net></pnml>");
            let found = pnml::parse(&text).expect_err("very much is wrong");
            assert_eq!(found.len(), deltamark_core::diagnostic::MOST_DIAGNOSTICS);
        }
    }
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}
