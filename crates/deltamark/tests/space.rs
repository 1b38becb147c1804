//! State space reports, against properties worked out by hand.

use deltamark::graph::Graph;
use deltamark::load::{Format, LoadOptions, Loaded, load_with, parse};
use deltamark::space::{Fairness, SpaceReport};
use deltamark_core::{Cancel, Control, Limits, Silent};
use std::sync::Arc;

fn report(model: &Loaded) -> SpaceReport {
    let graph = Graph::explore(model, 100_000, Limits::default(), Cancel::new(), Arc::new(Silent));
    let graph = graph.unwrap_or_else(|error| panic!("{error}"));
    SpaceReport::new(&graph, &Control::new()).expect("no limit is reached").expect("nets name their transitions")
}

fn net(text: &str) -> SpaceReport {
    let format = Format::by_name("tina").expect("a format");
    report(&parse("x", format, text.as_bytes(), &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}")))
}

/// An arc of a net of CPN Tools.
fn arc(orientation: &str, trans: &str, place: &str, label: &str) -> String {
    format!(
        "<arc orientation='{orientation}'><transend idref='{trans}'/><placeend idref='{place}'/>\
         <annot><text>{label}</text></annot></arc>"
    )
}

/// A place of a net of CPN Tools.
fn place(name: &str, of: &str, initial: &str) -> String {
    format!(
        "<place id='{name}'><text>{name}</text><type><text>{of}</text></type>\
         <initmark><text>{initial}</text></initmark></place>"
    )
}

#[test]
fn a_cycle_with_an_exit() {
    // p and q alternate until c leads from q to r, for ever.
    let found = net("tr a p -> q\ntr b q -> p\ntr c q -> r\npl p (1)\n");
    assert_eq!((found.nodes, found.arcs, found.components, found.component_arcs), (3, 3, 2, 1));
    assert_eq!((found.home.as_slice(), found.dead.as_slice()), ([3].as_slice(), [3].as_slice()));
    assert_eq!((found.dead_transitions.len(), found.live_transitions.len()), (0, 0));
    // Without a or b there is no cycle; c is enabled in every other marking of the cycle, and never for long.
    assert_eq!(found.fairness, Some(vec![Fairness::Impartial, Fairness::Impartial, Fairness::Just]));
    assert_eq!(found.bounds.iter().map(|(_, bound)| (bound.least, bound.most)).collect::<Vec<_>>(), [(0, 1); 3]);
}

#[test]
fn two_exits_have_no_home() {
    let found = net("tr a p -> q\ntr b p -> r\ntr never s -> s\npl p (1)\n");
    assert_eq!((found.components, found.home.len(), found.dead.len()), (3, 0, 2));
    assert_eq!((found.dead_transitions.as_slice(), found.fairness), ([2].as_slice(), None));
}

#[test]
fn a_live_cycle_beside_a_loop_that_starves_it() {
    // The loop can go on for ever while a is enabled: no fairness for a, and none for the loop while a and b go on.
    let found = net("tr a p -> q\ntr b q -> p\ntr loop p -> p\npl p (1)\n");
    assert_eq!(found.home, [1, 2]);
    assert_eq!(found.live_transitions, [0, 1, 2]);
    // b: without it the loop is a cycle on which b is never enabled. The loop: a and b alternate; where only the loop is
    // enabled without a break, it is p alone, on no cycle without the loop.
    assert_eq!(found.fairness, Some(vec![Fairness::No, Fairness::Fair, Fairness::Just]));
}

/// Small colour sets: `auto` unfolds. The report is that of the coloured net, with bounds for each token.
#[test]
fn a_net_of_cpn_tools_with_few_values_is_unfolded_and_reports_the_same() {
    let net = |of: &str| {
        let places = [place("Ready", "WHO", "WHO.all()"), place("Busy", "WHO", ""), place("Lock", of, "2`1")].concat();
        let arcs = [
            arc("PtoT", "Take", "Ready", "w"),
            arc("TtoP", "Take", "Busy", "w"),
            arc("PtoT", "Take", "Lock", "1"),
            arc("PtoT", "Give", "Busy", "w"),
            arc("TtoP", "Give", "Ready", "w"),
            arc("TtoP", "Give", "Lock", "1"),
        ];
        format!(
            "<workspaceElements><cpnet><globbox><ml>colset INT = int; colset FEW = int with 0..3; \
             colset WHO = index who with 1..3; var w : WHO;</ml></globbox><page id='g'><pageattr name='Top'/>{places}\
             <trans id='Take'><text>Take</text></trans><trans id='Give'><text>Give</text></trans>{}</page></cpnet>\
             </workspaceElements>",
            arcs.concat()
        )
    };
    let format = Format::by_name("cpn").expect("a format");
    let found = ["FEW", "INT"].map(|of| {
        let model = parse("x", format, net(of).as_bytes(), &LoadOptions::default());
        let model = model.unwrap_or_else(|error| panic!("{error}"));
        (model.info.note.clone().unwrap_or_default(), report(&model))
    });
    let [(unfolded, few), (coloured, many)] = &found;
    assert!(unfolded.contains("unfolded to a P/T net of 7 places and 6 transitions"), "{unfolded}");
    assert!(coloured.contains("not unfolded: a colour set has more than 6000 values"), "{coloured}");
    // At most two of three are busy; none always is.
    assert_eq!((few.nodes, few.arcs, few.components, few.home.len()), (7, 18, 1, 7));
    assert_eq!(few.text(), many.text());
    assert!(few.text().contains("Top'Lock 1          2`1\n"), "{}", few.text());
    assert!(few.text().contains("Best Lower Multi-set Bounds"), "{}", few.text());
}

#[test]
fn the_report_of_a_net_of_cpn_tools() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/resources.cpn");
    let model = load_with(path, &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let found = report(&model);
    assert_eq!((found.nodes, found.arcs, found.dead.len()), (92, 156, 0));
    let text = found.text();
    for part in
        ["Nodes:  92\n     Arcs:   156", "Allocation'Free 1", "1`{who=p(1),held=2,urgent=true}", "Best Lower Multi-set"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Five dining philosophers, whose report by CPN Tools itself was published (with other names): all of its sections.
#[test]
fn the_report_of_philosophers_is_that_of_cpn_tools() {
    let arcs = [
        arc("PtoT", "Pick", "Hungry", "p"),
        arc("PtoT", "Pick", "Table", "forks p"),
        arc("TtoP", "Pick", "Busy", "p"),
        arc("PtoT", "Drop", "Busy", "p"),
        arc("TtoP", "Drop", "Hungry", "p"),
        arc("TtoP", "Drop", "Table", "forks p"),
    ];
    let places = [place("Busy", "PH", ""), place("Hungry", "PH", "PH.all()"), place("Table", "ST", "ST.all()")];
    let text = format!(
        "<workspaceElements><cpnet><globbox><ml>val n = 5; colset PH = index ph with 1..n; \
         colset ST = index st with 1..n; var p : PH; fun forks (ph i) = 1`st i ++ 1`st (i mod n + 1);</ml></globbox>\
         <page id='g'><pageattr name='Top'/>{}<trans id='Drop'><text>Drop</text></trans>\
         <trans id='Pick'><text>Pick</text></trans>{}</page></cpnet></workspaceElements>",
        places.concat(),
        arcs.concat()
    );
    let model = parse("x", Format::by_name("cpn").expect("a format"), text.as_bytes(), &LoadOptions::default());
    let found = report(&model.unwrap_or_else(|error| panic!("{error}"))).text();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = words(&found);
    let all = |name: &str| (1..=5).map(|number| format!("1`{name}({number})")).collect::<Vec<_>>().join("++ ");
    for part in [
        "Nodes: 11 Arcs: 30 Status: Full".into(),
        "Scc Graph Nodes: 1 Arcs: 0".into(),
        "Upper Lower Top'Busy 1 2 0 Top'Hungry 1 5 3 Top'Table 1 5 1".into(),
        format!(
            "Best Upper Multi-set Bounds Top'Busy 1 {} Top'Hungry 1 {} Top'Table 1 {}",
            all("ph"),
            all("ph"),
            all("st")
        ),
        "Best Lower Multi-set Bounds Top'Busy 1 empty Top'Hungry 1 empty Top'Table 1 empty".into(),
        "Home Markings All".into(),
        "Dead Markings None".into(),
        "Dead Transition Instances None".into(),
        "Live Transition Instances All".into(),
        "Top'Drop 1 Impartial Top'Pick 1 Impartial".into(),
    ] {
        assert!(found.contains(&part), "{part}: {found}");
    }
}
