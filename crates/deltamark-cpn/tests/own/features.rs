//! Each feature of the language page has a small net with a count worked out by hand: the comment says how.

use crate::*;

fn count(ml: &str, places: Places<'_>, transitions: Transitions<'_>, arcs: Arcs<'_>) -> (usize, usize) {
    counts(&file(&format!("{BASE} {ml}"), places, transitions, arcs))
}

#[test]
fn reset_arcs_empty_their_place() {
    // Q fills up with up to 2 of 2 tokens; R may empty it at any time, as long as S has its one token.
    let places: Places<'_> = &[("P", "UNIT", "2`()"), ("Q", "UNIT", ""), ("S", "UNIT", "()")];
    let arcs: Arcs<'_> =
        &[("PtoT", "A", "P", "()"), ("TtoP", "A", "Q", "()"), ("PtoT", "R", "S", "()"), ("Reset", "R", "Q", "")];
    // (p, q, s): (2,0,1) (1,1,1) (0,2,1), and without s (2,0) (1,1) (0,2) (1,0) (0,1) (0,0).
    // Steps: A from (2,0,1) (1,1,1); R from three; A from (2,0) (1,1) (1,0).
    assert_eq!(count("", places, &[("A", "", ""), ("R", "", "")], arcs), (9, 8));
}

#[test]
fn what_a_transition_adds_to_a_place_that_it_resets_stays() {
    let places: Places<'_> = &[("P", "INT", "1`1++1`2"), ("Q", "INT", "1`7")];
    let arcs: Arcs<'_> = &[("PtoT", "T", "P", "n"), ("Reset", "T", "Q", ""), ("TtoP", "T", "Q", "n")];
    // P = {1,2}, Q = {7}; either is taken, then the other: Q holds the last one only.
    assert_eq!(count("", places, &[("T", "", "")], arcs), (5, 4));
}

#[test]
fn priorities_of_several_levels() {
    let places: Places<'_> = &[("P", "INT", "1`1++1`2++1`3"), ("Q", "INT", "")];
    let arcs: Arcs<'_> = &[
        ("PtoT", "A", "P", "1"),
        ("PtoT", "B", "P", "2"),
        ("TtoP", "B", "Q", "2"),
        ("PtoT", "C", "P", "3"),
        ("PtoT", "C", "Q", "2"),
    ];
    // A chain: first A (10), then B (20), then C (30).
    assert_eq!(count("", places, &[("A", "", "10"), ("B", "", "5+15"), ("C", "", "30")], arcs), (4, 3));
}

#[test]
fn all_colour_sets_hold_their_values() {
    // Each of the values is taken once, in any order: 2^k subsets, k * 2^(k-1) steps.
    let cube = |k: usize| (1 << k, k << (k - 1));
    for (ml, of, marking, k) in [
        ("colset C = unit with e;", "C", "e", 1),
        ("colset C = bool with (no, yes);", "C", "1`no++1`yes", 2),
        ("colset C = with red | green | blue;", "C", "C.all()", 3),
        ("colset C = index i with 2..4;", "C", "C.all()", 3),
        ("colset B = bool; colset C = product B * B;", "C", "C.all()", 4),
        ("colset B = bool; colset C = product B * B;", "C", "C.mult(1`true,B.all())", 2),
        ("colset B = bool; colset C = record y:B * x:B;", "C", "1`{x=true,y=false}++1`{y=true,x=false}", 2),
        ("colset B = bool; colset C = list B with 1..2;", "C", "1`[true]++1`[false,true]", 2),
        ("colset C = union a:INT + b;", "C", "1`a(3)++1`a 4++1`b", 3),
        ("fun even k = k mod 2 = 0; colset S = int with 1..6; colset C = subset S by even;", "C", "C.all()", 3),
        ("colset C = subset INT with [7,9];", "C", "C.all()", 2),
        ("colset A = int with 1..3; colset C = A;", "C", "C.all()", 3),
        ("colset C = string with \"a\"..\"c\" and 1..2;", "C", "1`\"a\"++1`\"cb\"", 2),
        ("colset C = string;", "C", "1`\"\"++1`\"x\\\"y\"", 2),
    ] {
        let ml = format!("{ml} var v : C;");
        let found = count(&ml, &[("P", of, marking)], &[("T", "", "")], &[("PtoT", "T", "P", "v")]);
        assert_eq!(found, cube(k), "{ml}");
    }
}

#[test]
fn functions_of_lists_and_strings_have_their_values() {
    for (exp, value) in [
        ("length (remdupl [1,2,3,2,4,2,5,3])", "5"),
        ("hd (remdupl [1,2,1])", "2"),
        ("if contains [1,2,3] [3,2,3] then 1 else 0", "1"),
        ("if contains_all [1,2,3] [3,2,3] then 1 else 0", "0"),
        ("length (intersect [1,2,3] [2,3,2])", "2"),
        ("length (union [1] [1])", "2"),
        ("hd (listsub [1,2,1] [1])", "2"),
        ("hd (listsub [1] [2]) handle Subtract => ~1", "~1"),
        ("hd (sort (fn (a,b) => a < b) [3,1,2])", "1"),
        ("length (ins_new [1,2] 2)", "2"),
        ("String.size (implode (rev (explode \"abc\")))", "3"),
        ("valOf (Int.fromString \"~12x\")", "~12"),
        ("length (String.tokens (fn c => c = #\",\") \",a,,b\")", "2"),
        ("length (String.fields (fn c => c = #\",\") \",a,,b\")", "4"),
        ("ord (String.sub (\"abc\", 1))", "98"),
        ("case Int.compare (1,2) of LESS => 1 | _ => 0", "1"),
        ("#2 (hd (ListPair.zip ([1,2],[3,4])))", "3"),
        ("foldr (fn (a,b) => a - b) 0 [1,2,3]", "2"),
        ("~7 div 2", "~4"),
        ("~7 mod 2", "1"),
        ("Int.quot (~7, 2)", "~3"),
        ("cf (2, 3`2++1`1)", "3"),
        ("size (3`2--1`2)", "2"),
        ("if 1`1++1`2 == 1`2++1`1 then 1 else 0", "1"),
        ("if 1`1 <<= 2`1 then 1 else 0", "1"),
        ("size (2 ** (1`1++1`2))", "4"),
        ("(op + o (fn k => (k,k))) 4", "8"),
        ("let val rec f = fn 0 => 1 | k => k * f (k-1) in f 5 end", "120"),
        ("String.size (INT.mkstr_ms (1`3++2`7))", "8"),
        ("case SOME 3 of NONE => 0 | SOME k => k", "3"),
        ("(hd []) handle Empty => 4", "4"),
        ("1073741823 + 1 handle Overflow => 5", "5"),
    ] {
        let places: Places<'_> = &[("P", "INT", exp), ("Q", "INT", "")];
        let net = file(BASE, places, &[("T", &format!("n = {value}"), "")], &[("PtoT", "T", "P", "n")]);
        assert_eq!(counts(&net), (2, 1), "{exp} is not {value}");
    }
}

#[test]
fn datatypes_exceptions_and_polymorphism() {
    let ml = "datatype 'a tree = Leaf | Node of 'a tree * 'a * 'a tree; exception Bad of int; \
              type 'a pair = 'a * 'a; \
              fun insert (Leaf, x) = Node (Leaf, x, Leaf) \
                | insert (Node (l, y, r), x) = if x < y then Node (insert (l, x), y, r) else Node (l, y, insert (r, x)); \
              fun flat Leaf = [] | flat (Node (l, x, r)) = flat l ^^ [x] ^^ flat r; \
              fun twice (p : 'a pair) = #1 p; \
              fun bad k = if k > 2 then raise Bad k else k;";
    // The least of three numbers is taken first.
    let exp = "hd (flat (foldl (fn (x, t) => insert (t, x)) Leaf [3,1,2])) + twice (5,6) + (bad 9 handle Bad k => k)";
    let net = file(&format!("{BASE} {ml}"), &[("P", "INT", exp)], &[("T", "n = 15", "")], &[("PtoT", "T", "P", "n")]);
    assert_eq!(counts(&net), (2, 1));
}

#[test]
fn free_variables_take_all_values_of_small_colour_sets() {
    // Whether the packet is lost is free: two bindings for each of two tokens, one of them with each effect.
    let ml = "colset B = bool; var ok : B;";
    let places: Places<'_> = &[("P", "INT", "1`1"), ("Q", "INT", "")];
    let arcs: Arcs<'_> = &[("PtoT", "T", "P", "n"), ("TtoP", "T", "Q", "if ok then 1`n else empty")];
    assert_eq!(count(ml, places, &[("T", "", "")], arcs), (3, 2));
    // Bindings with the same effect are two steps.
    let arcs: Arcs<'_> = &[("PtoT", "T", "P", "n"), ("TtoP", "T", "Q", "if ok then n else n")];
    assert_eq!(count(ml, places, &[("T", "", "")], arcs), (2, 2));
}

#[test]
fn code_without_output_is_a_log_and_code_with_output_is_refused() {
    let net = |code: &str| {
        file(BASE, &[("P", "INT", "1`1")], &[("T", "", "")], &[("PtoT", "T", "P", "n")])
            .replace("</trans>", &format!("<code><text>{code}</text></code></trans>"))
    };
    assert_eq!(counts(&net("input (n); action print (Int.toString n);")), (2, 1));
    let wrong = load(&net("input (n); output (m); action n+1;")).err().expect("it is refused");
    assert!(wrong[0].message.contains("code of transition `Top'T 1` has outputs"), "{}", wrong[0].message);
}

#[test]
fn an_arc_in_both_directions_needs_its_token_and_changes_nothing() {
    // Either of two numbers is looked at while the lock is there; who takes the lock ends it.
    let places: Places<'_> = &[("P", "INT", "1`1++1`2"), ("L", "UNIT", "()")];
    let arcs: Arcs<'_> = &[("BOTHDIR", "Look", "P", "n"), ("BOTHDIR", "Look", "L", "()"), ("PtoT", "End", "L", "()")];
    assert_eq!(count("", places, &[("Look", "", ""), ("End", "", "")], arcs), (2, 3));
    // Two tokens are needed, and only one is there.
    let arcs: Arcs<'_> = &[("BOTHDIR", "Look", "P", "2`n")];
    assert_eq!(count("", &[("P", "INT", "1`1")], &[("Look", "", "")], arcs), (1, 0));
}

#[test]
fn two_arcs_to_one_place_add_up() {
    // Any two of three, one after the other in either order: 3 * 2 bindings; one is left.
    let arcs: Arcs<'_> = &[("PtoT", "T", "P", "n"), ("PtoT", "T", "P", "m")];
    assert_eq!(count("", &[("P", "INT", "1`1++1`2++1`3")], &[("T", "", "")], arcs), (4, 6));
}

#[test]
fn references_that_nobody_writes_are_constants() {
    let places: Places<'_> = &[("P", "INT", "1`1++1`2++1`3")];
    // Of three numbers those above the limit can be taken, one after the other.
    let arcs: Arcs<'_> = &[("PtoT", "T", "P", "n")];
    assert_eq!(count("globref limit = 1;", places, &[("T", "n > !limit", "")], arcs), (4, 4));
}

#[test]
fn functions_of_multisets_are_inscriptions() {
    // Someone's messages go to all others at once; each may then be taken.
    let ml = "colset PH = index ph with 1..3; var p, q : PH; fun others p = PH.all() -- 1`p; \
              colset MES = product PH * PH; \
              fun messages p = ext_col (fn q => (p, q)) (others p);";
    let places: Places<'_> = &[("Idle", "PH", "PH.all()"), ("Sent", "MES", "")];
    let arcs: Arcs<'_> = &[
        ("PtoT", "Send", "Idle", "PH.all()"),
        ("TtoP", "Send", "Sent", "messages p"),
        ("PtoT", "Take", "Sent", "(p, q)"),
    ];
    // Three senders; the four subsets of two messages each, of which the empty one is the same for all.
    assert_eq!(count(ml, places, &[("Send", "", ""), ("Take", "", "")], arcs), (11, 15));
}

#[test]
fn names_of_priorities_are_constants_of_the_file() {
    let places: Places<'_> = &[("P", "UNIT", "2`()"), ("Q", "UNIT", "")];
    let arcs: Arcs<'_> = &[("PtoT", "A", "P", "()"), ("TtoP", "A", "Q", "()"), ("PtoT", "B", "Q", "()")];
    let ml = "val P_HIGH = 100; val P_LOW = 10000;";
    // (p, q): B is urgent, so q never exceeds one: (2,0) (1,1) (1,0) (0,1) (0,0).
    assert_eq!(count(ml, places, &[("A", "", ""), ("B", "", "P_HIGH")], arcs), (5, 4));
    // B waits until A can do no more: (2,0) (1,1) (0,2) (0,1) (0,0).
    assert_eq!(count(ml, places, &[("A", "", ""), ("B", "", "P_LOW")], arcs), (5, 4));
    // Without priorities: all q <= 2 - p.
    assert_eq!(count(ml, places, &[("A", "", ""), ("B", "", "")], arcs), (6, 6));
}

#[test]
fn a_subpage_of_a_subpage_has_its_own_places_and_shares_its_ports() {
    // Two instances of the middle page, each with one of the lowest; the lowest moves the token of the top's places.
    let middle = "<page id='m'><pageattr name='Middle'/>\
        <place id='mp'><text>In</text><type><text>UNIT</text></type><port type='I/O'/></place>\
        <trans id='mt'><text>Down</text><subst subpage='s' portsock='(sp,mp)'/></trans></page>";
    let text = hierarchy("")
        .replace("subpage='s' portsock='(sp,a)'", "subpage='m' portsock='(mp,a)'")
        .replace("subpage='s' portsock='(sp,b)'", "subpage='m' portsock='(mp,b)'")
        .replace("</cpnet>", &format!("{middle}</cpnet>"));
    assert_eq!(counts(&text), (4, 4));
    let system = load(&text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let names: Vec<&str> = system.net().places.iter().map(|place| place.name.as_str()).collect();
    assert_eq!(names, ["Top'A 1", "Top'B 1", "Sub'Done 1", "Sub'Done 2"]);
}

#[test]
fn parameters_and_markings_change_all_that_depends_on_them() {
    let text = file(
        &format!("{BASE} val n0 = 2; val twice = 2 * n0; colset PH = index ph with 1..twice; var p : PH;"),
        &[("P", "PH", "PH.all()"), ("Q", "INT", "1`1")],
        &[("T", "", "")],
        &[("PtoT", "T", "P", "p"), ("BOTHDIR", "T", "Q", "n")],
    );
    let counts = |parameters: &[(&str, &str)], markings: &[(&str, &str)]| {
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        let net = deltamark_cpn::parse_under(&text, &owned(parameters), &owned(markings), &Control::new());
        let system = net.and_then(|net| ColouredSystem::new(net, &text)).map_err(|wrong| wrong[0].message.clone())?;
        let found = explore(&system);
        Ok::<_, String>((found.states.len(), found.edges.len()))
    };
    // All subsets of 2 * n0 tokens; each step once for each number in Q.
    assert_eq!(counts(&[], &[]), Ok((16, 32)));
    assert_eq!(counts(&[("n0", "1")], &[]), Ok((4, 4)));
    assert_eq!(counts(&[("twice", "1")], &[]), Ok((2, 1)));
    assert_eq!(counts(&[("n0", "1")], &[("Q", "1`7++1`8")]), Ok((4, 8)));
    assert_eq!(counts(&[], &[("Top'P 1", "1`ph 1")]), Ok((2, 1)));
    for (parameter, marking, message) in [
        (("x", "1"), ("Q", "1`1"), "no `val x`"),
        (("n0", "\"a\""), ("Q", "1`1"), "expected the type int"),
        (("n0", "1"), ("R", "1`1"), "`R`"),
        (("n0", "1"), ("Q", "()"), "expected the type int"),
    ] {
        let wrong = counts(&[parameter], &[marking]).expect_err("it is refused");
        assert!(wrong.contains(message), "{wrong}");
    }
}

/// A page with a port `In` and one place of its own, as a text.
fn subpage(id: &str, fusion: &str) -> String {
    format!(
        "<page id='{id}'><pageattr name='Sub'/>\
         <place id='{id}p'><text>In</text><type><text>UNIT</text></type><initmark><text>5`()</text></initmark>\
         <port type='In'/></place>\
         <place id='{id}q'><text>Done</text><type><text>UNIT</text></type>{fusion}</place>\
         <trans id='{id}t'><text>Move</text></trans>\
         <arc orientation='PtoT'><transend idref='{id}t'/><placeend idref='{id}p'/><annot><text>()</text></annot></arc>\
         <arc orientation='TtoP'><transend idref='{id}t'/><placeend idref='{id}q'/><annot><text>()</text></annot></arc>\
         </page>"
    )
}

fn hierarchy(fusion: &str) -> String {
    let top = "<page id='t'><pageattr name='Top'/>\
        <place id='a'><text>A</text><type><text>UNIT</text></type><initmark><text>1`()</text></initmark></place>\
        <place id='b'><text>B</text><type><text>UNIT</text></type><initmark><text>1`()</text></initmark></place>\
        <trans id='x'><text>X</text><subst subpage='s' portsock='(sp,a)'/></trans>\
        <trans id='y'><text>Y</text><subst subpage='s' portsock='(sp,b)'/></trans></page>";
    let set = if fusion.is_empty() { "" } else { "<fusion id='f' name='F'><fusion_elm idref='sq'/></fusion>" };
    format!(
        "<workspaceElements><cpnet><globbox><ml>{BASE}</ml></globbox>{top}{}{set}</cpnet></workspaceElements>",
        subpage("s", fusion)
    )
}

#[test]
fn a_page_used_twice_is_there_twice_and_ports_are_their_sockets() {
    // Two independent moves; the marking of the port is ignored.
    assert_eq!(counts(&hierarchy("")), (4, 4));
    let system = load(&hierarchy("")).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let names: Vec<&str> = system.net().transitions.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["Sub'Move 1", "Sub'Move 2"]);
}

#[test]
fn a_fusion_set_is_one_place_in_all_instances() {
    let text = hierarchy("<fusioninfo name='F'/>");
    assert_eq!(counts(&text), (4, 4));
    let system = load(&text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    // A and B and the one fused place.
    assert_eq!(system.net().places.len(), 3);
}

#[test]
fn a_port_with_two_sockets_makes_them_one_place() {
    let text = hierarchy("")
        .replace("portsock='(sp,a)'", "portsock='(sp,a)(sp,b)'")
        .replace("<trans id='y'><text>Y</text><subst subpage='s' portsock='(sp,b)'/></trans>", "");
    // A and B have the same marking and are one place with one token; Move takes it.
    assert_eq!(counts(&text), (2, 1));
}

#[test]
fn files_beside_the_model_are_used() {
    let net = file(
        &format!("{BASE} use \"lib/more.sml\";"),
        &[("P", "INT", "twice 3")],
        &[("T", "n = 6", "")],
        &[("PtoT", "T", "P", "n")],
    );
    let beside = |path: &str| match path {
        "lib/more.sml" => Ok("fun twice k = 2 * k; use \"again.sml\";".to_string()),
        "again.sml" => Ok("val unused = 1".to_string()),
        other => Err(format!("there is no `{other}`")),
    };
    let parsed = deltamark_cpn::parse_beside(&net, &[], &[], &beside, &Control::new());
    let system =
        parsed.and_then(|parsed| ColouredSystem::new(parsed, &net)).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let found = explore(&system);
    assert_eq!((found.states.len(), found.edges.len()), (2, 1));
    let endless = |_: &str| Ok("use \"self.sml\";".to_string());
    let text = file(&format!("{BASE} use \"self.sml\";"), &[("P", "INT", "1`1")], &[], &[]);
    let wrong = deltamark_cpn::parse_beside(&text, &[], &[], &endless, &Control::new()).expect_err("it is refused");
    assert!(wrong[0].message.contains("files name each other"), "{}", wrong[0].message);
    // In a file that is used, errors say where.
    let broken = |_: &str| Ok("fun f x =\n  )".to_string());
    let wrong = deltamark_cpn::parse_beside(&text, &[], &[], &broken, &Control::new()).expect_err("it is refused");
    assert!(wrong[0].message.contains("line 2, column 3 of `self.sml`"), "{}", wrong[0].message);
}
