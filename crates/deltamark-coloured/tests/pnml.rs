//! Symmetric nets in PNML: every construct, what is refused, and how states are described.

#[path = "common/explore.rs"]
mod explored;

use deltamark_coloured::{ColouredSystem, NotUnfolded, UnfoldLimits, UnfoldedSystem, pnml};
use deltamark_core::{Batch, Fired, Stop, System};
use deltamark_testkit::{check_portable, check_system, explore};

const SORTS: &str = r#"
  <namedsort id="dot" name="dot"><dot/></namedsort>
  <namedsort id="col" name="Colour"><cyclicenumeration>
    <feconstant id="r" name="red"/><feconstant id="g" name="green"/><feconstant id="b" name="blue"/></cyclicenumeration></namedsort>
  <namedsort id="num" name="Num"><finiteintrange start="1" end="4"/></namedsort>
  <namedsort id="pair" name="Pair"><productsort><usersort declaration="col"/><usersort declaration="num"/></productsort></namedsort>
  <partition id="warm" name="warm"><usersort declaration="col"/>
    <partitionelement id="hot" name="hot"><useroperator declaration="r"/></partitionelement>
    <partitionelement id="cold" name="cold"><useroperator declaration="g"/><useroperator declaration="b"/></partitionelement></partition>
  <namedsort id="truth" name="Truth"><bool/></namedsort>
  <namedsort id="below" name="Below"><finiteintrange start="-2" end="1"/></namedsort>
  <namedsort id="triple" name="Triple"><productsort><usersort declaration="pair"/><usersort declaration="col"/></productsort></namedsort>
  <variabledecl id="t" name="t"><usersort declaration="truth"/></variabledecl>
  <variabledecl id="k" name="k"><usersort declaration="below"/></variabledecl>
  <variabledecl id="x" name="x"><usersort declaration="col"/></variabledecl>
  <variabledecl id="y" name="y"><usersort declaration="col"/></variabledecl>
  <variabledecl id="n" name="n"><usersort declaration="num"/></variabledecl>
  <variabledecl id="p" name="p"><usersort declaration="pair"/></variabledecl>
"#;

fn document(body: &str) -> String {
    document_with("", body)
}

/// A document that declares something more.
fn document_with(declared: &str, body: &str) -> String {
    format!(
        r#"<pnml><net id="net" type="http://www.pnml.org/version-2009/grammar/symmetricnet">
<declaration><structure><declarations>{SORTS}{declared}</declarations></structure></declaration>
<page id="page">{body}</page></net></pnml>"#
    )
}

fn place(id: &str, sort: &str, marking: &str) -> String {
    let marking = if marking.is_empty() {
        String::new()
    } else {
        format!("<hlinitialMarking><structure>{marking}</structure></hlinitialMarking>")
    };
    format!(r#"<place id="{id}"><type><structure><usersort declaration="{sort}"/></structure></type>{marking}</place>"#)
}

fn transition(id: &str, condition: &str) -> String {
    let condition = if condition.is_empty() {
        String::new()
    } else {
        format!("<condition><structure>{condition}</structure></condition>")
    };
    format!(r#"<transition id="{id}">{condition}</transition>"#)
}

fn arc(source: &str, target: &str, inscription: &str) -> String {
    format!(
        r#"<arc id="{source}-{target}" source="{source}" target="{target}"><hlinscription><structure>{inscription}</structure></hlinscription></arc>"#
    )
}

fn op(name: &str, operands: &[&str]) -> String {
    let operands: String = operands.iter().map(|operand| format!("<subterm>{operand}</subterm>")).collect();
    format!("<{name}>{operands}</{name}>")
}

fn number_of(number: u32, of: &str) -> String {
    op("numberof", &[&format!(r#"<numberconstant value="{number}"><positive/></numberconstant>"#), of])
}

fn variable(id: &str) -> String {
    format!(r#"<variable refvariable="{id}"/>"#)
}

fn constant(id: &str) -> String {
    format!(r#"<useroperator declaration="{id}"/>"#)
}

fn all(sort: &str) -> String {
    format!(r#"<all><usersort declaration="{sort}"/></all>"#)
}

/// States and edges, coloured and unfolded.
fn counts(body: &str) -> (usize, usize) {
    counts_of(&document(body))
}

fn counts_of(text: &str) -> (usize, usize) {
    let net = pnml::parse(text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    assert_eq!(net.validate(), Ok(()));
    let system = ColouredSystem::new(net.clone(), text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    check_system(&system);
    check_portable(|| ColouredSystem::new(net.clone(), text).unwrap_or_else(|wrong| panic!("{wrong:?}")));
    let found = explore(&system);
    match UnfoldedSystem::new(net.clone(), text, UnfoldLimits::AUTO) {
        Ok(system) => {
            check_system(&system);
            check_portable(|| {
                UnfoldedSystem::new(net.clone(), text, UnfoldLimits::AUTO).unwrap_or_else(|_| panic!("unfolded"))
            });
            let unfolded = explore(&system);
            assert_eq!((unfolded.states.len(), unfolded.edges.len()), (found.states.len(), found.edges.len()));
        }
        Err(NotUnfolded::Refused(_)) => {}
        Err(NotUnfolded::Wrong(wrong)) => panic!("{wrong:?}"),
        Err(NotUnfolded::Stopped(stop)) => panic!("{stop:?}"),
    }
    (found.states.len(), found.edges.len())
}

#[test]
fn conditions_choose_bindings() {
    let in_range = |number: i32| {
        format!(
            r#"<finiteintrangeconstant value="{number}"><finiteintrange start="1" end="4"/></finiteintrangeconstant>"#
        )
    };
    let (x, n, red, two) = (variable("x"), variable("n"), constant("r"), in_range(2));
    let hot = op("partitionelementof refpartition=\"warm\"", &[&x])
        .replace("</partitionelementof refpartition=\"warm\">", "</partitionelementof>");
    let equal = op("equality", &[&x, &red]);
    let less = op("lessthan", &[&n, &two]);
    // The number of the twelve tokens that may go.
    let cases = [
        ("".to_string(), 12),
        (equal.clone(), 4),
        (op("inequality", &[&x, &red]), 8),
        (less.clone(), 3),
        (op("lessthanorequal", &[&n, &two]), 6),
        (op("greaterthan", &[&n, &two]), 6),
        (op("greaterthanorequal", &[&n, &two]), 9),
        (op("lt", &[&n, &two]), 3),
        (op("leq", &[&n, &two]), 6),
        (op("gt", &[&n, &two]), 6),
        (op("geq", &[&n, &two]), 9),
        (op("ltp", &[&hot, &constant("cold")]), 4),
        (op("gtp", &[&hot, &constant("hot")]), 8),
        (op("inequality", &[&hot, &constant("hot")]), 8),
        // Truth values are compared like others.
        (op("equality", &[&equal, &less]), 7),
        (op("inequality", &[&equal, &less]), 5),
        (op("lessthan", &[&x, &constant("g")]), 4),
        (op("equality", &[&op("tuple", &[&x, &n]), &op("tuple", &[&red, &two])]), 1),
        (op("inequality", &[&op("tuple", &[&x, &n]), &op("tuple", &[&red, &two])]), 11),
        (op("and", &[&equal, &less]), 1),
        (op("or", &[&equal, &less]), 6),
        (op("not", &[&equal]), 8),
        (op("imply", &[&equal, &less]), 9),
        (op("equality", &[&hot, &constant("cold")]), 8),
        (op("equality", &[&op("successor", &[&x]), &red]), 4),
        ("<booleanconstant value=\"false\"/>".to_string(), 0),
    ];
    for (condition, edges) in cases {
        // The token returns, so that each binding is one edge of the one state.
        let tuple = number_of(1, &op("tuple", &[&x, &n]));
        let body = place("a", "pair", &number_of(1, &op("tuple", &[&all("col"), &all("num")])))
            + &transition("t", &condition)
            + &arc("a", "t", &tuple)
            + &arc("t", "a", &tuple);
        assert_eq!(counts(&body), (1, edges), "{condition}");
    }
}

#[test]
fn labels_of_every_kind_are_read() {
    let (x, y, p) = (variable("x"), variable("y"), variable("p"));
    let one = |of: &str| number_of(1, of);
    let round = |input: &str, output: &str| {
        place("a", "col", &one(&all("col"))) + &transition("t", "") + &arc("a", "t", input) + &arc("t", "a", output)
    };
    // A token stays; it becomes the next; two exchange; all go and come back; all but one.
    assert_eq!(counts(&round(&one(&x), &one(&x))), (1, 3));
    assert_eq!(counts(&round(&one(&x), &op("successor", &[&x]))), (10, 18));
    assert_eq!(counts(&round(&one(&x), &op("predecessor", &[&x]))), (10, 18));
    let two = op("add", &[&one(&x), &one(&y)]);
    assert_eq!(counts(&round(&two, &two)), (1, 6));
    assert_eq!(counts(&round(&one(&all("col")), &one(&all("col")))), (1, 1));
    let rest = op("subtract", &[&one(&all("col")), &one(&x)]);
    assert_eq!(counts(&round(&rest, &rest)), (1, 3));
    // A variable that nothing binds takes every value.
    assert_eq!(counts(&round(&one(&x), &one(&y))), (10, 54));
    // A variable of a product.
    let body = place("a", "pair", &one(&op("tuple", &[&constant("r"), &all("num")])))
        + &place("b", "pair", "")
        + &transition("t", "")
        + &arc("a", "t", &one(&p))
        + &arc("t", "b", &one(&p));
    assert_eq!(counts(&body), (16, 32));
    // Black tokens, several at once.
    let dots = |number| number_of(number, "<dotconstant/>");
    let body = place("a", "dot", &dots(5))
        + &place("b", "dot", "")
        + &transition("t", "")
        + &arc("a", "t", &dots(2))
        + &arc("t", "b", &dots(1));
    assert_eq!(counts(&body), (3, 2));
}

#[test]
fn sorts_of_every_kind_are_read() {
    let one = |of: &str| number_of(1, of);
    let taken = |sort: &str, marking: &str, input: &str, condition: &str| {
        place("a", sort, marking) + &transition("t", condition) + &arc("a", "t", input)
    };
    let t = variable("t");
    assert_eq!(counts(&taken("truth", &one(&all("truth")), &one(&t), "")), (4, 4));
    assert_eq!(counts(&taken("truth", &one(&all("truth")), &one(&t), &t)), (2, 1));
    assert_eq!(counts(&taken("truth", &one(&all("truth")), &one(&t), &op("not", &[&t]))), (2, 1));
    let yes = r#"<booleanconstant value="true"/>"#;
    assert_eq!(counts(&taken("truth", &one(yes), &one(&t), &op("equality", &[&t, yes]))), (2, 1));
    // Ranges below zero.
    assert_eq!(counts(&taken("below", &one(&all("below")), &one(&variable("k")), "")), (16, 32));
    // Products of products.
    let token = op("tuple", &[&op("tuple", &[&all("col"), &all("num")]), &constant("g")]);
    assert_eq!(counts(&taken("triple", &one(&token), &one(&token), "")), (2, 1));
    let parts = op("tuple", &[&variable("p"), &variable("x")]);
    let red = op("tuple", &[&op("tuple", &[&constant("r"), &all("num")]), &constant("g")]);
    assert_eq!(counts(&taken("triple", &one(&red), &one(&parts), "")), (16, 32));
    assert_eq!(counts(&taken("pair", &one(&all("pair")), &one(&all("pair")), "")), (2, 1));
    // Partitions of ranges.
    let halves = r#"<partition id="halves" name="halves"><usersort declaration="num"/>
        <partitionelement id="low"><finiteintrangeconstant value="1"><finiteintrange start="1" end="4"/></finiteintrangeconstant>
          <finiteintrangeconstant value="2"><finiteintrange start="1" end="4"/></finiteintrangeconstant></partitionelement>
        <partitionelement id="high"><finiteintrangeconstant value="3"><finiteintrange start="1" end="4"/></finiteintrangeconstant>
          <finiteintrangeconstant value="4"><finiteintrange start="1" end="4"/></finiteintrangeconstant></partitionelement></partition>"#;
    let part = format!(
        r#"<partitionelementof refpartition="halves"><subterm>{}</subterm></partitionelementof>"#,
        variable("n")
    );
    let body = taken("num", &one(&all("num")), &one(&variable("n")), &op("equality", &[&part, &constant("high")]));
    assert_eq!(counts_of(&document_with(halves, &body)), (4, 4));
}

#[test]
fn tests_references_and_pages_are_followed() {
    let x = number_of(1, &variable("x"));
    let body = place("a", "col", &number_of(1, &all("col")))
        + r#"<page id="inner"><referencePlace id="ref" ref="a"/>"#
        + &transition("t", "")
        + &arc("ref", "t", &x)
        + "</page>"
        + &place("b", "col", &number_of(1, &constant("r")))
        + &arc("b", "t", &x).replace("<hlinscription>", r#"<type value="test"/><hlinscription>"#);
    // Only red may go, and only once.
    assert_eq!(counts(&body), (2, 1));
}

#[test]
fn states_and_actions_are_told_in_the_words_of_the_model() {
    let (x, n) = (variable("x"), variable("n"));
    let tuple = number_of(1, &op("tuple", &[&x, &n]));
    let body = place("a", "pair", &number_of(2, &op("tuple", &[&constant("g"), &all("num")])))
        + &place("d", "dot", &number_of(3, "<dotconstant/>"))
        + &transition("take", "")
        + &arc("a", "take", &tuple)
        + &arc("take", "d", &number_of(1, "<dotconstant/>"));
    let text = document(&body);
    let net = pnml::parse(&text).expect("it is right");
    let coloured: Box<dyn System> = Box::new(ColouredSystem::new(net.clone(), &text).expect("it runs"));
    let unfolded: Box<dyn System> = match UnfoldedSystem::new(net, &text, UnfoldLimits::AUTO) {
        Ok(system) => {
            assert!(system.net().places.iter().any(|place| place.name == "a(green,3)"));
            Box::new(system)
        }
        Err(_) => panic!("it unfolds"),
    };
    for system in [coloured, unfolded] {
        let mut scratch = system.scratch();
        let mut batch = Batch::new(system.width());
        while system.initial(&mut scratch, &mut batch).is_err() {
            system.widen();
            batch.reset(system.width());
        }
        let mut state = batch.target(0).to_vec();
        let tell = |state: &[u32]| -> Vec<String> {
            system.describe().state(state).iter().map(|(name, value)| format!("{name}: {value}")).collect()
        };
        assert_eq!(tell(&state), ["a: 2'(green,1) ++ 2'(green,2) ++ 2'(green,3) ++ 2'(green,4)", "d: 3"]);
        let observe = system.observe().expect("nets can be observed");
        let read = |scratch: &mut deltamark_core::Scratch, name: &str, state: &[u32]| {
            observe.resolve(name).map(|observable| observe.read(scratch, state, observable))
        };
        let names = [
            ("a", Some(8)),
            ("a'card", Some(4)),
            ("a(green,2)", Some(2)),
            ("a(red,2)", Some(0)),
            ("a(*,2)", Some(2)),
            ("a(green,*)", Some(8)),
            ("d", Some(3)),
            ("a(pink,2)", None),
        ];
        for (name, value) in names {
            assert_eq!(read(&mut scratch, name, &state), value, "{name}");
        }
        // The successors may need a wider layout than the initial state.
        let mut next = Batch::new(system.width());
        while system.successors(&mut scratch, &state, &mut next).is_err() {
            let recoding = system.widen();
            let mut wider = Vec::new();
            recoding.translate(&state, &mut wider);
            state = wider;
            next.reset(system.width());
        }
        let names: Vec<String> =
            next.actions().iter().map(|&action| system.describe().action(&state, action)).collect();
        assert_eq!(names, ["take(x=green,n=1)", "take(x=green,n=2)", "take(x=green,n=3)", "take(x=green,n=4)"]);
        let mut target = Vec::new();
        assert_eq!(system.fire(&mut scratch, &state, next.action(1), &mut target), Ok(Fired::Done));
        assert_eq!(tell(&target), ["a: 2'(green,1) ++ 1'(green,2) ++ 2'(green,3) ++ 2'(green,4)", "d: 4"]);
    }
}

#[test]
fn what_is_wrong_is_told() {
    let x = number_of(1, &variable("x"));
    let fine = place("a", "col", "") + &transition("t", "");
    let cases = [
        (place("a", "hue", ""), "there is no sort `hue`"),
        (fine.clone() + &arc("a", "u", &x), "the arc leads nowhere: there is no node `u`"),
        (fine.clone() + &arc("a", "t", &variable("z")), "there is no variable `z`"),
        (fine.clone() + &arc("a", "t", &variable("n")), "the tokens of this term are not those of the place"),
        (fine.clone() + &arc("a", "t", &op("concatenation", &[])), "a `concatenation` is not supported here"),
        (fine.clone() + &arc("a", "a", &x), "an arc leads from a place to a place"),
        (place("a", "col", "") + &place("a", "col", ""), "the id `a` is used twice"),
        (place("a", "col", "") + &transition("t", &op("maybe", &[])), "a condition is expected here, not a `maybe`"),
        (
            fine + &arc("a", "t", &x).replace("<hlinscription>", r#"<type value="inhibitor"/><hlinscription>"#),
            "symmetric nets have no arcs of type `inhibitor`",
        ),
    ];
    for (body, message) in cases {
        let wrong = pnml::parse(&document(&body)).expect_err(message);
        assert!(wrong.iter().any(|diagnostic| diagnostic.message == message && diagnostic.span.is_some()), "{wrong:?}");
    }
}

/// Each would change the net if it were skipped: each is the only diagnostic.
#[test]
fn nothing_is_lost_in_silence() {
    let x = variable("x");
    let fine = || place("a", "col", "") + &transition("t", "");
    let plain = |arc: &str| place("d", "dot", "") + &transition("t", "") + arc;
    let of_part = |id: &str, of: &str| {
        let part = format!(r#"<partitionelementof refpartition="{id}"><subterm>{of}</subterm></partitionelementof>"#);
        place("a", "col", "") + &transition("t", &op("equality", &[&part, &constant("hot")]))
    };
    let cases = [
        // Operands have a place.
        (fine() + &arc("a", "t", &format!("<add>{x}</add>")), "`variable` stands directly in `add`"),
        (fine() + &arc("a", "t", "<add><subterm/></add>"), "a `subterm` holds one term, not 0"),
        (
            fine() + &arc("a", "t", &format!("<add><subterm>{x}{x}</subterm></add>")),
            "a `subterm` holds one term, not 2",
        ),
        (place("a", "col", "") + &transition("t", "<and/>"), "conditions are expected here"),
        (
            place("a", "col", "") + &transition("t", &x),
            "this variable is no truth value, and a condition is expected here",
        ),
        // Text is for people.
        (
            place("a", "dot", "").replace("</place>", "<hlinitialMarking><text>2</text></hlinitialMarking></place>"),
            "this `hlinitialMarking` has nothing in a `structure`",
        ),
        (
            place("a", "dot", "") + r#"<transition id="t"><condition><text>x = red</text></condition></transition>"#,
            "this `condition` has nothing in a `structure`",
        ),
        (
            plain(r#"<arc id="i" source="d" target="t"><hlinscription><text>2</text></hlinscription></arc>"#),
            "this `hlinscription` has nothing in a `structure`",
        ),
        (
            place("a", "col", &(constant("r") + &constant("g"))),
            "the `structure` of this `hlinitialMarking` holds more than one term",
        ),
        // What belongs to other nets.
        (
            plain(r#"<arc id="i" source="d" target="t"><inscription><text>2</text></inscription></arc>"#),
            "an arc of a coloured net has its tokens in `hlinscription`",
        ),
        (plain(r#"<arc id="i" type="reset" source="d" target="t"/>"#), "symmetric nets have no arcs of type `reset`"),
        (
            plain(r#"<arc id="i" source="t" target="d"><type value="test"/></arc>"#),
            "a test arc leads from a place to a transition",
        ),
        (plain(r#"<graphics><arc id="i" source="d" target="t"/></graphics>"#), "`arc` has no meaning in `graphics`"),
        (
            plain(r#"<x:arc xmlns:x="urn:other" id="i" source="d" target="t"/>"#),
            "`arc` is of another namespace than `page`: \"urn:other\"",
        ),
        (
            plain(r#"<arc id="i" source="d" target="t"/><arc id="j" source="d" target="t"><type value="test"/></arc>"#),
            "a test arc beside another arc from the same place is not supported in coloured nets",
        ),
        (place("a", "dot", "") + r#"<transition id="t"><delay/></transition>"#, "timed transitions are not supported"),
        // References lead to nodes of the right kind.
        (plain(r#"<referencePlace id="r1" ref="t"/>"#), "this reference to a place leads to `t`, which is none"),
        (plain(r#"<referencePlace id="r1" ref="u"/>"#), "the reference leads nowhere: there is no node `u`"),
        (
            plain(r#"<referencePlace id="r1" ref="r2"/><referencePlace id="r2" ref="r1"/>"#),
            "the reference to `r1` goes round in a circle",
        ),
        (fine() + &arc("a", "t", &variable("z")), "there is no variable `z`"),
        (place("a", "col", &x), "an initial marking has no variables"),
        (of_part("wrm", &x), "there is no partition `wrm`"),
        (of_part("warm", &variable("n")), "`warm` is a partition of another sort"),
    ];
    for (body, message) in cases {
        let wrong = pnml::parse(&document(&body)).expect_err(message);
        let told: Vec<&str> = wrong.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
        assert!(told == [message] && wrong[0].span.is_some(), "{told:?}, where {message} is expected");
    }
}

#[test]
fn wrong_declarations_are_told() {
    let part = |elements: &str| format!(r#"<partition id="parts"><usersort declaration="col"/>{elements}</partition>"#);
    let element = |id: &str, values: &[&str]| {
        let values: String = values.iter().map(|value| constant(value)).collect();
        format!(r#"<partitionelement id="{id}">{values}</partitionelement>"#)
    };
    let sort = |inside: &str| format!(r#"<namedsort id="new">{inside}</namedsort>"#);
    let chain: String = (0..100_000)
        .map(|at| format!(r#"<namedsort id="s{at}"><usersort declaration="s{}"/></namedsort>"#, at + 1))
        .collect();
    let cases = [
        (r#"<namedsort id="col"><dot/></namedsort>"#.to_string(), "the sort `col` is declared twice"),
        ("<namedsort><dot/></namedsort>".into(), "this `namedsort` has no attribute `id`"),
        (sort(""), "the sort `new` says nothing about its values"),
        (sort(r#"<usersort declaration="new"/>"#), "the sort `new` is made of itself"),
        (sort("<cyclicenumeration/>"), "an enumeration has no values"),
        (sort("<cyclicenumeration><feconstant/></cyclicenumeration>"), "this `feconstant` has no attribute `id`"),
        (sort(r#"<cyclicenumeration><feconstant id="r"/></cyclicenumeration>"#), "the constant `r` is declared twice"),
        (sort(r#"<finiteintrange start="4" end="1"/>"#), "the bounds of this range make no sense"),
        (sort(r#"<finiteintrange start="0" end="2000000000"/>"#), "this range has more than 16777216 values"),
        (sort("<string/>"), "sorts of kind `string` are not supported"),
        (part(&element("one", &["r", "g"])), "no element of the partition has the value `blue`"),
        (part(&(element("one", &["r", "g", "b"]) + &element("two", &["g"]))), "this value is in the partition twice"),
        (part(&element("one", &["r", "g", "b", "hot"])), "this is no value of the sort that is partitioned"),
        (part(&element("r", &["r", "g", "b"])), "the constant `r` is declared twice"),
        (part(""), "a partition has no elements"),
        (
            r#"<partition id="parts"><usersort declaration="pair"/></partition>"#.into(),
            "a partition needs an id and a sort of single values",
        ),
        (
            r#"<variabledecl id="x"><usersort declaration="col"/></variabledecl>"#.into(),
            "the variable `x` is declared twice",
        ),
        (r#"<namedoperator id="f"/>"#.into(), "a `namedoperator` does not belong in a symmetric net"),
        (r#"<feconstant id="f"/>"#.into(), "a `feconstant` cannot be declared"),
        (chain, "the sort `s201` is made of sorts that are nested too deeply"),
    ];
    for (declared, message) in cases {
        let wrong = pnml::parse(&document_with(&declared, &place("a", "dot", ""))).expect_err(message);
        assert!(wrong[0].message == message && wrong[0].span.is_some(), "{:?}, where {message} is expected", wrong[0]);
    }
}

/// Whatever is changed in a file, it is read or refused, and what is read can be run.
#[test]
fn mutilated_files_do_no_harm() {
    let (x, n) = (variable("x"), variable("n"));
    let tuple = number_of(1, &op("tuple", &[&x, &n]));
    let body = place("a", "pair", &number_of(1, &op("tuple", &[&all("col"), &all("num")])))
        + &place("b", "col", &number_of(2, &constant("r")))
        + &transition("t", &op("equality", &[&op("successor", &[&x]), &constant("r")]))
        + &arc("a", "t", &tuple)
        + &arc("t", "b", &op("subtract", &[&all("col"), &number_of(1, &x)]));
    let text = document(&body);
    let pieces: Vec<&str> = text.split_inclusive('>').collect();
    let mut rng = deltamark_testkit::Rng::new(5);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..3000 {
        let mut changed: Vec<&str> = pieces.clone();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(changed.len());
            match rng.below(3) {
                0 => drop(changed.remove(at)),
                1 => changed.insert(at, pieces[rng.below(pieces.len())]),
                _ => changed[at] = pieces[rng.below(pieces.len())],
            }
        }
        let text = changed.concat();
        match pnml::parse(&text) {
            Ok(net) => {
                read += 1;
                if let Ok(system) = ColouredSystem::new(net, &text) {
                    let _ = deltamark_testkit::explore_up_to(&system, 50);
                }
            }
            Err(wrong) => {
                refused += 1;
                assert!((1..=20).contains(&wrong.len()));
                for span in wrong.iter().filter_map(|diagnostic| diagnostic.span) {
                    assert!(span.start <= span.end && span.end <= text.len());
                }
            }
        }
    }
    assert!(read > 20 && refused > 500, "{read} read, {refused} refused");
}

/// A place has no capacity, so there is no fault: an exploration that reaches more tokens of a colour than
/// are counted stops, without a verdict on what it did not see. Unfolded, the net is counted further.
#[test]
fn counts_end_and_do_not_wrap() {
    const MOST: u32 = i32::MAX as u32;
    let dot = "<dotconstant/>";
    // (tokens of p, number t takes, number it adds to q; what ends the exploration, states and edges
    // unfolded)
    let cases = [
        (2, 1, MOST, None, 3, 2),
        (3, 1, MOST, Some(Stop::Count), 4, 3),
        (MOST, MOST, MOST, None, 2, 1),
        (MOST, MOST - 1, 1, None, 2, 1),
    ];
    for (tokens, taken, added, stop, states, edges) in cases {
        let text = document(
            &[
                place("p", "dot", &number_of(tokens, dot)),
                place("q", "dot", ""),
                transition("t", ""),
                arc("p", "t", &number_of(taken, dot)),
                arc("t", "q", &number_of(added, dot)),
            ]
            .concat(),
        );
        let net = pnml::parse(&text).expect("a net");
        let coloured = ColouredSystem::new(net.clone(), &text).expect("it runs");
        assert_eq!(explored::stopped(&coloured), stop, "{tokens} {taken} {added}");
        let Ok(unfolded) = UnfoldedSystem::new(net, &text, UnfoldLimits::DEMANDED) else { panic!("it unfolds") };
        let found = explored::explore_system(&unfolded, "plain");
        assert_eq!((found.states, found.edges, found.deadlocks), (states, edges, 1), "{tokens} {taken} {added}");
    }
    // The tokens of a label at a place are counted in 31 bits.
    let sum = op("add", &[&number_of(MOST, dot), &number_of(1, dot)]);
    for (taken, added) in [(sum.as_str(), dot), (dot, sum.as_str())] {
        let text = document(
            &[
                place("p", "dot", dot),
                place("q", "dot", ""),
                transition("t", ""),
                arc("p", "t", taken),
                arc("t", "q", added),
            ]
            .concat(),
        );
        let net = pnml::parse(&text).expect("a net");
        let Err(told) = ColouredSystem::new(net, &text) else { panic!("it is refused") };
        assert!(told[0].message.ends_with("come to more than 2147483647 tokens"), "{told:?}");
    }
}
