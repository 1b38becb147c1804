//! Wrong files: messages and spans. Nothing here may panic or take long.

mod common;

use common::{complaints, shown};
use deltamark_nets::{pnml, tina};

const PT: &str = r#"type="http://www.pnml.org/version-2009/grammar/ptnet""#;

/// Checks all diagnostics of a PNML file, each as "line:column message".
#[track_caller]
fn xml(text: &str, expected: &[&str]) {
    assert_eq!(complaints(text, pnml::parse(text)), expected, "for {text:.300}");
}

/// The same for a net, which starts in line 2.
#[track_caller]
fn net(content: &str, expected: &[&str]) {
    xml(&format!("<pnml><net id=\"n\" {PT}>\n{content}\n</net></pnml>"), expected);
}

/// Checks all diagnostics of a TINA file.
#[track_caller]
fn text(text: &str, expected: &[&str]) {
    assert_eq!(complaints(text, tina::parse(text)), expected, "for {text}");
}

#[track_caller]
fn bytes(bytes: &[u8], expected: &str) {
    for parse in [pnml::parse_bytes, tina::parse_bytes] {
        let diagnostics = parse(bytes).expect_err("it is no net");
        assert_eq!(diagnostics.len(), 1);
        assert_eq!(shown(&String::from_utf8_lossy(bytes), &diagnostics[0]), expected);
    }
}

#[test]
fn files_that_are_no_text() {
    bytes(b"", "1:1 the file is empty");
    bytes(b" \n\t\n", "1:1 the file is empty");
    bytes(b"\x89PNG\r\n\x1A\n\0", "1:1 the file is not UTF-8 text: byte 0x89 makes no sense here");
    bytes(b"\x7FELF\0\0\xFF", "1:5 the file is not a text file: it has a zero byte");
    bytes(b"pl a\npl b\0", "2:5 the file is not a text file: it has a zero byte");
    bytes(b"pl a\npl \xE9t\xE9", "2:4 the file is not UTF-8 text: byte 0xE9 makes no sense here");
    bytes(b"\xFF\xFE<\0p\0", "1:1 the file is in UTF-16");
    bytes(b"\xFE\xFF\0<\0p", "1:1 the file is in UTF-16");
    bytes(b"<\0p\0n\0m\0l\0>\0", "1:2 the file is not a text file: it has a zero byte");
    let help = |bytes: &[u8]| pnml::parse_bytes(bytes).unwrap_err()[0].help.clone();
    assert_eq!(help(b"<\0p\0n\0m\0l\0>\0").as_deref(), Some("it looks like UTF-16; save it as UTF-8"));
    assert_eq!(help(b"<pnml>\0</pnml>"), None);
}

#[test]
fn malformed_xml() {
    xml("hello", &["1:1 this is not XML: it does not start with `<`"]);
    xml("<pnml>\n  <net>\n</pnml>", &["3:1 `</pnml>` closes an element that was opened as `<net>`"]);
    xml("<pnml>\n  <net id='a' id='b'/></pnml>", &["2:15 the attribute `id` stands twice in one element"]);
    xml("<pnml>\n <net>\n", &["2:7 the XML ends before its elements are closed"]);
    xml("<pnml", &["1:6 the XML ends before its elements are closed"]);
    xml("<pnml>a & b</pnml>", &["1:9 a bare `&` has no meaning in XML"]);
    xml("<pnml>ä&uuml;</pnml>", &["1:8 the entity `&uuml;` is not known"]);
    xml("<!-- only a comment -->", &["1:1 this is not XML: there is no element in it"]);
    xml("<pnml/><pnml/>", &["1:8 malformed XML: unknown token"]);
    xml("<pnml>\u{1}</pnml>", &["1:7 malformed XML: a non-XML character '\\u{1}' found"]);
}

#[test]
fn entity_bombs() {
    let laughs: String =
        (1..10).map(|i| format!("  <!ENTITY l{i} \"{}\">\n", format!("&l{};", i - 1).repeat(10))).collect();
    let bomb =
        format!("<?xml version=\"1.0\"?>\n<!DOCTYPE pnml [\n  <!ENTITY l0 \"lol\">\n{laughs}]>\n<pnml>&l9;</pnml>");
    xml(&bomb, &["3:3 the file declares an XML entity; entities are not expanded"]);
    let long = format!("<!DOCTYPE x [<!ENTITY a \"{}\">]><x>{}</x>", "a".repeat(100_000), "&a;".repeat(100_000));
    xml(&long, &["1:14 the file declares an XML entity; entities are not expanded"]);
    xml(
        "<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><pnml>&a;</pnml>",
        &["1:14 the file declares an XML entity; entities are not expanded"],
    );
    xml("<!DOCTYPE x [\n<!ELEMENT x ANY>]><x/>", &["1:13 the file has declarations inside its document type"]);
    xml("<!DOCTYPE x SYSTEM 'a[b]'><x/>", &["1:27 this is XML, but not PNML: its outermost element is `x`"]);
}

#[test]
fn nesting_and_other_excess() {
    let deep = |open: &str, close: &str, n: usize| format!("<pnml><net id='n'>\n{}{}", open.repeat(n), close.repeat(n));
    let refused = ["2:2995 elements are nested more than 1000 deep"];
    xml(&deep("<a>", "</a>", 100_000), &refused);
    xml(&deep("<a>", "", 100_000), &refused);
    xml(
        &deep("<page><!-- </page> --><![CDATA[</page>]]><?x </page>?>", "</page>", 100_000).replace("page", "a"),
        &["2:41917 elements are nested more than 1000 deep"],
    );
    // Pages within the limit are traversed.
    let pages = format!("{}<place id='p'/>{}</net></pnml>", deep("<page>", "", 990), "</page>".repeat(990));
    assert!(pnml::parse(&pages).is_ok());
    let attributes: String = (0..100_000).map(|i| format!(" a{i}='1'")).collect();
    xml(&format!("<pnml>\n<net{attributes}/></pnml>"), &["2:1 an element has more than 256 attributes"]);
    let prefixes: String = (0..60_000).map(|i| format!("<a xmlns:n{i:05}='1'/>")).collect();
    xml(&format!("<pnml>\n{prefixes}</pnml>"), &["2:1348 the document declares more than 64 namespace prefixes"]);
}

#[test]
fn other_kinds_of_nets() {
    let kind = |kind: &str, expected: &str| xml(&format!("<pnml>\n<net id='n' type='{kind}'/></pnml>"), &[expected]);
    let url = "http://www.pnml.org/version-2009/grammar";
    kind(&format!("{url}/symmetricnet"), "2:19 this is a coloured net (`symmetricnet`), not a P/T net");
    kind(&format!("{url}/highlevelnet"), "2:19 this is a coloured net (`highlevelnet`), not a P/T net");
    kind(&format!("{url}/pt-hlpng"), "2:19 this is a coloured net (`pt-hlpng`), not a P/T net");
    kind("http://www.laas.fr/tina/tpn", "2:19 this is a timed net (`tpn`), not a P/T net");
    kind("x", "2:19 nets of type `x` are not known");
    xml("<nets/>", &["1:1 this is XML, but not PNML: its outermost element is `nets`"]);
    xml("\n<pnml/>", &["2:1 the file holds no nets, where one is expected"]);
    for rest in ["more", "<pnml/>"] {
        xml(&format!("<pnml></pnml>\n{rest}"), &["2:1 something is left after `</pnml>`, where the file should end"]);
    }
    xml(
        "<pnml><net id='a'/>\n<net id='b'/><net id='c'/></pnml>",
        &["2:1 the file holds 3 nets, where one is expected"],
    );
    xml("<pnml>\n<net id='a'/></pnml>", &["2:1 the net has no places"]);
    net("<place id='p'><hlinitialMarking/></place>", &["2:15 coloured tokens do not belong in a P/T net"]);
    net("<place id='p'/><transition id='t'><delay/></transition>", &["2:35 timed transitions are not supported"]);
    net(
        "<place id='p'><capacity><value>2</value></capacity></place>",
        &["2:15 places with a capacity are not supported"],
    );
}

#[test]
fn arcs_and_references_that_do_not_fit() {
    let nodes = "<place id='place1'/><place id='q'/><transition id='t'/><transition id='u'/>\n";
    let with = |content: &str, expected: &[&str]| net(&format!("{nodes}{content}"), expected);
    with("<arc source='plase1' target='t'/>", &["3:14 the arc leads nowhere: there is no node `plase1`"]);
    with("<arc source='place1' target='q'/>", &["3:1 an arc leads from a place to a place"]);
    with("<arc source='t' target='u'/>", &["3:1 an arc leads from a transition to a transition"]);
    with("<arc source='t'/>", &["3:1 this `arc` has no attribute `target`"]);
    with("<arc/>", &["3:1 this `arc` has no attribute `source`", "3:1 this `arc` has no attribute `target`"]);
    with(
        "<arc source='t' target='q'><type value='inhibitor'/></arc>",
        &["3:1 an inhibitor or read arc must lead from a place to a transition"],
    );
    with("<arc source='q' target='t'><type value='reset'/></arc>", &["3:41 arcs of type `reset` are not supported"]);
    with("<arc source='q' target='t' type='transport'/>", &["3:34 arcs of type `transport` are not supported"]);
    with("<referencePlace id='r' ref='x'/>", &["3:29 the reference leads nowhere: there is no node `x`"]);
    with("<referencePlace id='r' ref='t'/>", &["3:29 a reference to a place leads to `t`, which is none"]);
    with("<referenceTransition id='r' ref='q'/>", &["3:34 a reference to a transition leads to `q`, which is none"]);
    with("<referencePlace id='r' ref='r'/>", &["3:29 the reference to `r` goes round in a circle"]);
    with(
        "<referencePlace id='r' ref='s'/><referencePlace id='s' ref='r'/><arc source='r' target='t'/>",
        &["3:29 the reference to `s` goes round in a circle"],
    );
    with("<referencePlace id='r'/>", &["3:1 this `referencePlace` has no attribute `ref`"]);
    with("<arc id='a' source='a' target='t'/>", &["3:21 the arc leads nowhere: there is no node `a`"]);
    let text = format!("<pnml><net id='n'>{nodes}<arc source='plase1' target='t'/></net></pnml>");
    assert_eq!(pnml::parse(&text).unwrap_err()[0].help.as_deref(), Some("did you mean `place1`?"));
    let chain: String = (0..50_000).map(|i| format!("<referencePlace id='r{i}' ref='r{}'/>", i + 1)).collect();
    with(
        &format!("{chain}<referencePlace id='r50000' ref='r7'/>"),
        &["3:268 the reference to `r8` goes round in a circle"],
    );
}

#[test]
fn ids() {
    net("<place id='p'/>\n<place id='p'/>", &["3:12 the id `p` is used twice"]);
    net("<place id='p'/>\n<transition id='p'/>", &["3:17 the id `p` is used twice"]);
    net("<place/>", &["2:1 this `place` has no attribute `id`"]);
    net("<place id=''/>", &["2:12 an id must not be empty or contain control characters"]);
    net("<place id='a&#10;b'/>", &["2:12 an id must not be empty or contain control characters"]);
}

#[test]
fn numbers() {
    for (number, message) in [
        ("-1", "the marking `-1` is negative"),
        ("4294967296", "the marking `4294967296` is too large"),
        ("9223372036854775808", "the marking `9223372036854775808` is too large"),
        ("99999999999999999999", "the marking `99999999999999999999` is too large"),
        ("1.5", "`1.5` is not a whole number"),
        ("one", "`one` is not a whole number"),
        ("0x10", "`0x10` is not a whole number"),
    ] {
        net(
            &format!("<place id='p'><initialMarking><text>\n  {number} </text></initialMarking></place>"),
            &[&format!("3:3 {message}")],
        );
        let weight = message.replace("marking", "weight");
        net(
            &format!(
                "<place id='p'/><transition id='t'/>\n<arc source='p' target='t'><inscription><text>{number}</text></inscription></arc>"
            ),
            &[&format!("3:47 {weight}")],
        );
    }
    let arc =
        |weight: &str| format!("<arc source='p' target='t'><inscription><text>{weight}</text></inscription></arc>\n");
    let nodes = "<place id='p'/><transition id='t'/>\n";
    net(&format!("{nodes}{}", arc("0")), &["3:47 the weight `0` is too small"]);
    net(&format!("{nodes}{}", arc("")), &["3:41 `` is not a whole number"]);
    net(
        &format!("{nodes}{}{}", arc("4294967295"), arc("1")),
        &["4:1 the weights of the arcs between these two nodes add up to more than 4294967295"],
    );
}

#[test]
fn several_mistakes_are_reported_at_once_but_not_too_many() {
    net(
        "<arc source='x' target='y'/>\n<place id='p'/><place id='p'/>\n<place/>",
        &[
            "2:14 the arc leads nowhere: there is no node `x`",
            "2:25 the arc leads nowhere: there is no node `y`",
            "3:27 the id `p` is used twice",
            "4:1 this `place` has no attribute `id`",
        ],
    );
    let many = format!("<pnml><net id='n'>{}</net></pnml>", "<place/>".repeat(1000));
    assert_eq!(pnml::parse(&many).unwrap_err().len(), 20);
    assert_eq!(tina::parse(&"x\n".repeat(1000)).unwrap_err().len(), 20);
}

#[test]
fn wrong_tina_files() {
    text("# nothing", &["1:1 the net has no places"]);
    text("net n", &["1:1 the net has no places"]);
    text("place a", &["1:1 no declaration starts with `place`"]);
    text("<pnml/>", &["1:1 this looks like PNML (XML), not like a TINA net"]);
    text("pl", &["1:3 expected the name of a place, but the line ends"]);
    text("pl\nq", &["1:3 expected the name of a place, but the line ends", "2:1 no declaration starts with `q`"]);
    text("pl a (1\ntr t a -> a", &["1:8 expected `)`, but the line ends"]);
    text("pl a 1)", &["1:7 expected `->`, found `)`"]);
    text("pl a (x)", &["1:7 `x` is not a whole number"]);
    text("pl a ()", &["1:7 expected a marking, found `)`"]);
    text("pl a (-1)", &["1:7 the marking `-1` is negative"]);
    text("pl a (9223372036854775808)", &["1:7 the marking `9223372036854775808` is too large"]);
    text("pl a (5G)", &["1:7 the marking `5G` is too large"]);
    text("pl a (1E)", &["1:7 the marking `1E` is too large"]);
    text("pl a (1KK)", &["1:7 `1KK` is not a whole number"]);
    text("pl a (4G)\npl a (4G)", &["2:4 the markings given for this place add up to more than 4294967295"]);
    text("tr t a b", &["1:9 expected `->`, but the line ends"]);
    text("tr t a -> b -> c", &["1:13 a declaration has only one `->`"]);
    text("tr t a*0 -> b", &["1:8 the weight `0` is too small"]);
    text("tr t a*-3 -> b", &["1:8 the weight `-3` is negative"]);
    text("tr t a*99999999999999999999 -> b", &["1:8 the weight `99999999999999999999` is too large"]);
    text("tr t a*b -> b", &["1:8 `b` is not a whole number"]);
    text("tr t a? -> b", &["1:9 expected a weight, found `->`"]);
    text("tr t a -> b?1", &["1:12 a read or inhibitor arc must lead from a place to a transition"]);
    text("pl p t?-1 -> u", &["1:7 a read or inhibitor arc must lead from a place to a transition"]);
    text("tr t a!1 b!-2 -> b", &["1:7 stopwatch arcs are not supported", "1:11 stopwatch arcs are not supported"]);
    text(
        "tr t a*4G a*4G -> b",
        &["1:11 the weights of the arcs between these two nodes add up to more than 4294967295"],
    );
    text("tr t [0,4] a -> b", &["1:6 timed transitions are not supported"]);
    text("tr t ]0,w[ a -> b", &["1:6 timed transitions are not supported"]);
    text("tr t [1,w[ a -> b", &["1:6 timed transitions are not supported"]);
    text("tr t [0,x] a -> b", &["1:6 `x` is not a bound of a time interval"]);
    text("tr t [0 w[ a -> b", &["1:9 expected `,`, found `w`"]);
    text("tr t [0,w a -> b", &["1:11 expected `[` or `]`, found `a`"]);
    text("tr t : -> b", &["1:8 expected a label, found `->`"]);
    text(
        "tr t a -> b\ntr u a -> b\npr t > u\npr t u",
        &["3:1 priorities between transitions are not supported", "4:7 expected `<` or `>`, but the line ends"],
    );
    text("pl a\nlb b x", &["2:4 there is no place or transition `b` to give a label to"]);
    text("pl a\nnt n 2 x", &["2:6 expected `0` or `1`, found `2`"]);
    text("pl a\nnt n 1", &["2:7 expected the text of a note, but the line ends"]);
    text("pl {a b", &["1:4 this brace is never closed"]);
    text("pl {a b\npl c (", &["1:4 this brace is never closed", "2:7 expected a marking, but the line ends"]);
    text("pl {a\nb}", &["1:4 the name of a place must not contain line breaks or control characters"]);
    text("pl {}", &["1:4 the name of a place must not be empty"]);
    text("tr t : {a\nb} p -> p", &["1:8 a label must not contain line breaks or control characters"]);
    text("pl a.1", &["1:5 the character `.` has no meaning here", "1:7 expected `->`, but the line ends"]);
    text("pl a \"", &["1:6 the character `\"` has no meaning here"]);
    text("pl a\u{1}", &["1:5 the character `\\u{1}` has no meaning here"]);
    text("tr t pl -> b", &["1:9 expected the name of a place, found `->`"]);
    text(
        "tr t a -> b\n\ntr u $ -> b\npl x (",
        &["3:6 the character `$` has no meaning here", "4:7 expected a marking, but the line ends"],
    );
    let help = |text: &str| tina::parse(text).unwrap_err()[0].help.clone().unwrap_or_default();
    assert_eq!(help("pl a\nlp b"), "did you mean `pl`?");
    assert_eq!(help("net tr"), "to use the keyword as a name, write {tr}");
}

/// Each would take minutes if something were repeated for every line, node or error.
#[test]
fn long_files_full_of_mistakes_are_refused_soon() {
    let start = std::time::Instant::now();
    assert_eq!(tina::parse(&"pl {\n".repeat(400_000)).unwrap_err().len(), 20);
    assert_eq!(tina::parse(&"tr t a\n".repeat(300_000)).unwrap_err().len(), 20);
    let places: String = (0..100_000).map(|i| format!("<place id='p{i}'/>")).collect();
    let arcs: String = (0..100_000).map(|i| format!("<arc source='q{i}x' target='p{i}'/>")).collect();
    assert_eq!(pnml::parse(&format!("<pnml><net id='n'>{places}{arcs}</net></pnml>")).unwrap_err().len(), 20);
    let comments = format!("<pnml>{}", "<!-- ".repeat(1_000_000));
    assert_eq!(pnml::parse(&comments).unwrap_err().len(), 1);
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[test]
fn files_cut_off_anywhere() {
    let model = |name: &str| std::fs::read_to_string(common::root().join("models").join(name)).unwrap();
    let small = deltamark_nets::write::to_pnml(&deltamark_nets::generate::generate("philosophers", 2).unwrap());
    for end in (0..small.trim_end().len()).filter(|&end| small.is_char_boundary(end)) {
        let cut = &small[..end];
        let diagnostics = pnml::parse_bytes(cut.as_bytes()).expect_err("half a file is no net");
        diagnostics.iter().for_each(|diagnostic| drop(shown(cut, diagnostic)));
    }
    for name in ["mutex.net", "producer-consumer.net"] {
        let whole = model(name);
        for end in 0..whole.len() {
            if let Err(diagnostics) = tina::parse_bytes(&whole.as_bytes()[..end]) {
                diagnostics.iter().for_each(|diagnostic| drop(shown(&whole[..end], diagnostic)));
            }
        }
    }
}
