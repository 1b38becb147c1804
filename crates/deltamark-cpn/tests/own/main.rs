//! Small nets of our own: features and traps of the language, properties, and texts that are damaged.

mod bounds;
mod damaged;
#[path = "../../../deltamark-coloured/tests/common/explore.rs"]
mod explored;
mod features;
mod mistakes;
mod properties;
mod traps;

use deltamark_coloured::ColouredSystem;
use deltamark_core::{Control, Diagnostic, Outcome, System};
use deltamark_search::{Search, Task};
use deltamark_store::{StoreSpec, build};
use deltamark_testkit::{check_portable, check_system, explore};

/// Name, colour set, marking.
type Places<'a> = &'a [(&'a str, &'a str, &'a str)];
/// Name, guard, priority.
type Transitions<'a> = &'a [(&'a str, &'a str, &'a str)];
/// Orientation, transition, place, inscription.
type Arcs<'a> = &'a [(&'a str, &'a str, &'a str, &'a str)];

/// A net of one page: declarations, places (name, colour set, marking), transitions (name, guard, priority), arcs
/// (orientation, transition, place, inscription).
fn file(ml: &str, places: Places<'_>, transitions: Transitions<'_>, arcs: Arcs<'_>) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let text = |tag: &str, inner: &str| format!("<{tag}><text>{}</text></{tag}>", escape(inner));
    let mut out = format!(
        "<workspaceElements><cpnet><globbox><ml>{}</ml></globbox><page id='g'><pageattr name='Top'/>",
        escape(ml)
    );
    for (name, of, marking) in places {
        out +=
            &format!("<place id='{name}'><text>{name}</text>{}{}</place>", text("type", of), text("initmark", marking));
    }
    for (name, guard, priority) in transitions {
        out += &format!(
            "<trans id='{name}'><text>{name}</text>{}{}</trans>",
            text("cond", guard),
            text("priority", priority)
        );
    }
    for (orientation, transition, place, label) in arcs {
        out += &format!(
            "<arc orientation='{orientation}'><transend idref='{transition}'/><placeend idref='{place}'/>{}</arc>",
            text("annot", label)
        );
    }
    out + "</page></cpnet></workspaceElements>"
}

fn load(text: &str) -> Result<ColouredSystem, Vec<Diagnostic>> {
    ColouredSystem::new(deltamark_cpn::parse_under(text, &[], &[], &Control::new())?, text)
}

/// The states and edges of a net, which must be a sound system.
fn counts(text: &str) -> (usize, usize) {
    let system = load(text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    check_system(&system);
    check_portable(|| load(text).unwrap_or_else(|wrong| panic!("{wrong:?}")));
    let explored = explore(&system);
    (explored.states.len(), explored.edges.len())
}

/// Explores a net as far as the control lets it.
fn explore_under(system: &dyn System, control: &Control) -> Outcome {
    let store = build(&StoreSpec::named("plain"), system, Search::Bfs.order(), control.budget.clone());
    let store = store.unwrap_or_else(|error| panic!("{error:?}"));
    let store = store.as_ref();
    deltamark_search::run(
        Search::Bfs,
        Task { system, store, properties: &[], control, explore_all: true, observer: None },
    )
}

const BASE: &str = "colset INT = int; colset UNIT = unit; var n, m : INT;";

#[test]
fn brackets_are_a_token_at_a_place_of_lists() {
    let ml = format!("{BASE} colset L = list INT; var l : L;");
    let net = file(
        &ml,
        &[("P", "L", "[]"), ("N", "INT", "1`1++1`2")],
        &[("T", "", "")],
        &[("PtoT", "T", "P", "l"), ("ttop", "T", "P", "l^^[n]"), ("PtoT", "T", "N", "n")],
    );
    // The empty list, one of two numbers, both in either order.
    assert_eq!(counts(&net), (5, 4));
}

#[test]
fn variables_take_legal_values_only() {
    let ml = format!("{BASE} colset S = int with 1..2; var s : S;");
    let net = file(&ml, &[("P", "INT", "1`1++1`2++1`3")], &[("T", "", "")], &[("PtoT", "T", "P", "s")]);
    assert_eq!(counts(&net), (4, 4));
}

#[test]
fn the_smallest_priority_goes_first_and_inhibitors_want_an_empty_place() {
    let net = file(
        BASE,
        &[("P", "UNIT", "2`()"), ("Q", "UNIT", "")],
        &[("A", "", "100"), ("B", "", "")],
        &[("PtoT", "A", "P", ""), ("PtoT", "B", "P", ""), ("TtoP", "B", "Q", "()")],
    );
    assert_eq!(counts(&net), (3, 2));
    let net = file(
        BASE,
        &[("P", "UNIT", "2`()"), ("Q", "UNIT", "1`()")],
        &[("A", "", ""), ("B", "", "")],
        &[("Inhibitor", "A", "P", ""), ("PtoT", "A", "Q", "()"), ("PtoT", "B", "P", "()")],
    );
    assert_eq!(counts(&net), (4, 3));
}

#[test]
fn records_unions_equations_and_functions_work_together() {
    let ml = format!(
        "{BASE} colset B = bool; colset R = record n:INT * b:B; colset U = union A:R + C; var b : B; var r : R; \
         fun next {{n=k,b=c}} = {{b=not c, n=(k+1) mod 3}}; fun id x = x; val two = id (fn x => x) 2;"
    );
    let net = file(
        &ml,
        &[("P", "U", "A{n=0,b=false}")],
        &[("T", "[r = next {n=n,b=b}]", "")],
        &[("PtoT", "T", "P", "A({n=n,b=b})"), ("TtoP", "T", "P", "if #n r >= 0 then 1`A(r) else empty")],
    );
    // Six records in a cycle.
    assert_eq!(counts(&net), (6, 6));
}

#[test]
fn what_is_wrong_is_said_with_its_element() {
    let one = |label: &str| {
        let net = file(BASE, &[("P", "INT", "1`1")], &[("T", "", "")], &[("PtoT", "T", "P", label)]);
        load(&net).err().unwrap_or_default().first().map(|wrong| wrong.message.clone()).unwrap_or_default()
    };
    for (label, part) in [
        ("\"a\"", "expected the type int"),
        ("zz", "there is no `zz`"),
        ("INT.ran()", "random functions are not supported"),
        ("n @+ 3", "time"),
        ("(n", "expected `)`"),
        ("2`n+1", "expected the type int"),
    ] {
        let message = one(label);
        assert!(
            message.contains(part) && message.contains("Top'T 1") && message.contains("Top'P 1"),
            "{label}: {message}"
        );
    }
}

#[test]
fn endless_evaluations_end_and_damaged_texts_never_panic() {
    let ml = format!("{BASE} fun deep n = 1 + deep (n+1); fun long n = long n;");
    for call in ["deep 0", "long 0"] {
        let net = file(&ml, &[("P", "INT", call)], &[], &[]);
        let wrong = load(&net).err().map(|wrong| wrong[0].message.clone()).unwrap_or_default();
        assert!(wrong.contains("initial marking"), "{call}: {wrong}");
    }
    let ml = format!("{BASE} fun f (x::xs) = x + f xs | f [] = 0; val k = let val (a,b) = (1,2) in a+b end;");
    let net = file(
        &ml,
        &[("P", "INT", "1`(f [1,2])")],
        &[("T", "n > 0 andalso m = n", "")],
        &[("BOTHDIR", "T", "P", "1`n"), ("TtoP", "T", "P", "m div k")],
    );
    let signs =
        ["(", ")", "`", "~", "\"", "let", "end", "case", "of", "::", "[", "{", "#", "9999999999", "_", "fn", ";"];
    for (number, sign) in signs.iter().cycle().take(1500).enumerate() {
        let at = number * 7919 % net.len();
        let damaged = format!("{}{sign}{}", &net[..at], &net[(at + number % 5).min(net.len())..]);
        let _ = load(&damaged);
    }
}

/// The models of `models/`, against a search of their own written apart from the rules of the nets.
#[test]
fn our_models_have_the_counts_of_an_independent_search() {
    for (name, expected) in [("alternating-bit.cpn", (1032, 4123, 1)), ("resources.cpn", (92, 156, 0))] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let system = load(&text).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        check_system(&system);
        let found = explored::explore_system(&system, "plain");
        assert_eq!((found.states, found.edges, found.deadlocks), expected, "{name}");
        assert_eq!(found.fault, None, "{name}");
    }
}
