//! Error messages: each states what, where, and what to do, on standard error alone, and the exit code is the
//! one of the contract.

mod common;

use common::run;

/// Arguments, exit code, and what standard error must contain.
type Case<'a> = (&'a [&'a str], i32, &'a [&'a str]);

fn check(cases: &[Case<'_>]) {
    for (arguments, exit, expected) in cases {
        let run = run(arguments);
        assert_eq!(run.exit, *exit, "{arguments:?}\n{}", run.stderr);
        assert_eq!(run.stdout, "", "{arguments:?}");
        for text in *expected {
            assert!(run.stderr.contains(text), "{arguments:?} lacks {text:?}:\n{}", run.stderr);
        }
        assert!(run.stderr.len() < 4000, "{arguments:?} takes more than a screen:\n{}", run.stderr);
    }
}

#[test]
fn a_wrong_file_is_told() {
    let formats = deltamark::load::Format::list();
    check(&[
        (&["check", "nowhere.pnml"], 2, &["cannot read `nowhere.pnml`: there is no such file"]),
        (&["check", "handovr.net"], 2, &["there is no such file", "did you mean `handover.net`?"]),
        (&["check", "../data"], 2, &["cannot read `../data`: it is a folder"]),
        (&["check", "notes.txt"], 2, &["the ending `.txt`", &formats]),
        (&["check", "net.xml"], 2, &["--> net.xml:4:1", "`</pnml>` closes an element that was opened as `<net>`"]),
        (&["check", "nope.net"], 2, &["there is no such file"]),
        (&["check", "ring.pnml"], 2, &["there is no such file", "did you mean `ring.net`?"]),
        (&["check", "net.xml", "--format", "tina"], 2, &["this looks like PNML (XML)", "`--format pnml`"]),
        (&["check", "ring.net", "--format", "pnml"], 2, &["this is not XML", "is it a TINA net?"]),
        (&["check", "-", "--format", "tina"], 2, &["--> <stdin>:1:1", "the file is empty"]),
        (&["check", "-", "--properties", "-"], 2, &["cannot both come from standard input"]),
        (&["check", "-"], 2, &["the file is empty"]),
        (&["check", "ring.net", "--format", "pmnl"], 2, &["there is no format `pmnl`", "did you mean `pnml`?"]),
        (&["stats", "nowhere.pnml"], 2, &["there is no such file"]),
        (&["graph", "nowhere.pnml", "-o", "x.dot"], 2, &["there is no such file"]),
        (&["simulate", "nowhere.pnml"], 2, &["there is no such file"]),
    ]);
}

#[test]
fn a_malformed_model_is_told_with_its_place() {
    check(&[
        (&["check", "broken.net"], 2, &["error: ", "--> broken.net:4:1", "4 | nonsense here", "^"]),
        (&["check", "broken.net", "--json"], 2, &["--> broken.net:4:1"]),
        (&["check", "binary.net"], 2, &["error: ", "--> binary.net:1:5"]),
        (&["check", "unclosed.pnml"], 2, &["error: ", "--> unclosed.pnml:"]),
    ]);
}

#[test]
fn a_wrong_option_is_told() {
    check(&[
        (&[], 2, &["Usage: deltamark"]),
        (&["chek", "ring.net"], 2, &["a similar subcommand exists: 'check'"]),
        (&["check"], 2, &["<MODEL>"]),
        (&["check", "ring.net", "--stor", "plain"], 2, &["a similar argument exists: '--store'"]),
        (
            &["check", "ring.net", "--store", "plain", "--explain"],
            2,
            &["`--explain` shows how a store is chosen", "`--store plain`, which names one", "leave one of them out"],
        ),
        (&["check", "ring.net", "--search", "sweep", "--explain"], 2, &["`--search sweep`, which takes none"]),
        (&["check", "ring.net", "--store", "auto:k=1"], 2, &["the store `auto` has no options"]),
        (&["check", "ring.net", "--store", "plian"], 2, &["there is no store `plian`", "did you mean `plain`?"]),
        (&["check", "ring.net", "--store", "plain:bogus=1"], 2, &["the store `plain`", "`bogus`"]),
        (&["check", "ring.net", "--store", "plain:bogus"], 2, &["`bogus` is not an option of a store"]),
        (&["check", "ring.net", "--search", "zigzag"], 2, &["invalid value 'zigzag'", "bfs, dfs"]),
        (&["check", "ring.net", "--search", "bsf"], 2, &["there is no search `bsf`", "did you mean `bfs`?"]),
        (&["check", "ring.net", "--store", "plain,k=1"], 2, &["the store `plain` has no options"]),
        (&["stats", "ring.net", "--invariant", "a <= 1"], 2, &["properties belong to `deltamark check`"]),
        (
            &["graph", "ring.net", "-o", "-", "--deadlock"],
            2,
            &["properties are checked of a graph", "`deltamark check`"],
        ),
        (&["check", "ring.net", "--json", "--trace", "-"], 2, &["the traces are already in it"]),
        (&["simulate", "ring.net", "--random", "x"], 2, &["`x` is not a number of steps"]),
        (&["simulate", "ring.net", "--random", "-1"], 2, &["`-1` is not a number of steps"]),
        (&["simulate", "ring.net", "--random", "99999999999999999999"], 2, &["is too large"]),
        (&["simulate", "ring.net", "--random", "3", "--seed", "-1"], 2, &["`-1` is not a seed"]),
        (&["generate", "philosopher", "3"], 2, &["did you mean `philosophers`?"]),
        (&["generate", "philosophers", "-3", "-o", "-"], 2, &["`-3` is no number of philosophers", "from 2 to 100000"]),
        (&["generate", "kanban", "9999999999", "-o", "-"], 2, &["`9999999999` is no number", "from 1 to 1000000"]),
        (&["check", "ring.net", "--threads", "0"], 2, &["`0` is not a number of threads"]),
        (&["check", "ring.net", "--threads", "many"], 2, &["`many` is not a number of threads"]),
        (&["check", "ring.net", "--threads", "9999"], 2, &["at most 1024 threads"]),
        (
            &["check", "ring.net", "--threads", "2", "--store", "breadcrumb"],
            2,
            &["the store `breadcrumb` runs with one thread; several can share plain", "leave `--threads` out"],
        ),
        (
            &["stats", "ring.net", "--threads", "2", "--search", "dfs"],
            2,
            &["the search `dfs` runs with one thread; several can share `--search bfs`"],
        ),
        (
            &["check", "../../../../models/philosophers.lna", "--param", "N=2", "--param", "N=3"],
            2,
            &["`--param` gives `N` two values", "leave one of them out"],
        ),
        (&["check", "ring.net", "--final", "nope = 1"], 2, &["the model has nothing called `nope`", "--final:1:1"]),
        (&["check", "ring.net", "--final", "a"], 2, &["this is a number, but a truth value is needed here"]),
        (
            &["check", "ring.net", "--final", "a = 1", "--reach", "a = 1"],
            2,
            &["deadlock freedom is not asked for", "add `--deadlock`"],
        ),
        (&["stats", "ring.net", "--final", "a = 1"], 2, &["properties belong to `deltamark check`"]),
        (
            &["check", "ring.net", "--soundness"],
            2,
            &["this is no workflow net: one place must be without incoming arcs"],
        ),
        (&["check", "ring.net", "--soundness", "--deadlock"], 2, &["cannot be asked together with other properties"]),
        (&["check", "ring.net", "--soundness", "--search", "sweep"], 2, &["together with the search `sweep`"]),
        (&["check", "ring.net", "--ltl", "G a"], 2, &["this is a number, but a truth value is needed"]),
        (&["check", "ring.net", "--ltl", "A G (a > 0)"], 2, &["an LTL formula has none"]),
        (&["check", "ring.net", "--ctl", "F (a > 0)"], 2, &["in CTL a path quantifier says of which"]),
        (&["check", "ring.net", "--ctl", "E G F (a > 0)", "--search", "dfs"], 2, &["after a search by `bfs`"]),
        (&["check", "ring.net", "--ctl", "E G F (a > 0)", "--store", "tree"], 2, &["over `plain`"]),
        (
            &["check", "ring.net", "--ctl", "EF (a > 0)", "--route", "fly", "--store", "compact"],
            2,
            &["the store `compact` cannot serve a formula of CTL on the fly: it does not number states"],
        ),
        (
            &["check", "ring.net", "--ltl", "G F (a > 0)", "--store", "breadcrumb"],
            2,
            &["the store `breadcrumb` cannot serve this formula on the fly", "plain"],
        ),
        (
            &["check", "ring.net", "--ltl", "G F (a > 0)", "--fair", "weak", "--threads", "2"],
            2,
            &["fair cycles are searched for by one thread"],
        ),
        (&["check", "ring.net", "--ctl", "E G F (a > 0)", "--route", "fly"], 2, &["`--route fly` is not possible"]),
        (
            &["check", "ring.net", "--ctl", "EF (a > 0)", "--route", "fly", "--threads", "2"],
            2,
            &["`--route fly` is not possible", "by one thread"],
        ),
        (
            &["check", "ring.net", "--ctl", "EF (a > 0)", "--route", "fly", "--search", "bfs"],
            2,
            &["`--route fly` is not possible", "depth-first"],
        ),
        (&["check", "ring.net", "--fair", "weak"], 2, &["`--fair` restricts the paths of formulas of LTL"]),
        (&["check", "ring.net", "--deadlock", "--route", "fly"], 2, &["`--route` says how", "none is asked"]),
        (&["check", "ring.net", "--shortest", "--store", "compaction"], 2, &["`compaction` may miss states"]),
        (&["mcc", "ring.net", "StateSpace", "--properties", "x.xml"], 2, &["`StateSpace` asks for no formulas"]),
        (
            &["check", "ring.net", "--ctl", "EF (a > 0)", "--fair", "weak"],
            2,
            &["a formula of CTL is answered for all paths"],
        ),
        (&["check", "ring.net", "--ltl", "F (a > 0)", "--fair", "weak:process"], 2, &["for models in DVE"]),
        (&["check", "ring.net", "--ltl", "F (a > 0)", "--fair", "feeble"], 2, &["it is `weak` or `strong`"]),
        (&["check", "ring.net", "--ltl", "response(a = 1)"], 2, &["1 of 2 formulas", "response(p, s)"]),
        (
            &["check", "ring.net", "--ltl", "F (a > 0)", "--reduce", "all"],
            2,
            &["with all states", "leave out `--reduce`"],
        ),
        (&["check", "ring.net", "--ctl", "EF (a > 0)", "--reduce", "structure"], 2, &["leave out `--reduce`"]),
        (&["mcc", "ring.net", "UpperBounds"], 2, &["UpperBounds.xml"]),
        (&["mcc", "ring.net", "CTLCardinality"], 2, &["CTLCardinality.xml"]),
        (&["automaton", "G (p U"], 2, &["expected a name"]),
        (&["check", "ring.net", "--param", "N=3"], 2, &["has no parameters"]),
        (&["check", "ring.net", "-q", "-v"], 2, &["cannot be used with"]),
        (&["simulate", "ring.net", "--seed", "3"], 2, &["--random"]),
        (&["graph", "ring.net"], 2, &["--output"]),
        (&["graph", "ring.net", "-o", "x.png"], 2, &["does not tell the graph's format", ".dot, .aut or .json"]),
        (&["graph", "ring.net", "-o", "-"], 2, &["--to NAME"]),
        (&["graph", "ring.net", "-o", "no/such/folder/x.dot"], 2, &["its folder does not exist"]),
        (&["generate", "philosofers", "3", "-o", "-"], 2, &["did you mean `philosophers`?"]),
        (&["generate", "philosophers", "3", "-o", "x.foo"], 2, &["let it end in .pnml or .net"]),
        (&["completions", "tcsh"], 2, &["invalid value 'tcsh'"]),
    ]);
}

#[test]
fn a_formula_that_is_too_large_is_told() {
    let part = |number: u32| format!("(a = {number} U b = {number})");
    let formula = (0..33).map(part).collect::<Vec<_>>().join(" or ");
    // Each member of this conjunction is small.
    let conjunction = formula.replace(" or ", " and ");
    let too_large = &["the formula is too large for an automaton", "64 atoms", "^^^^", "asked one by one"];
    check(&[
        (&["check", "ring.net", "--ltl", &formula], 2, &[&too_large[..], &["--ltl:1:1"]].concat()),
        (&["check", "ring.net", "--ctl", &format!("A ({formula})")], 2, &[&too_large[..], &["--ctl:1:1"]].concat()),
        (&["automaton", &formula], 2, too_large),
    ]);
    assert_eq!(run(&["check", "ring.net", "--ltl", &conjunction]).exit, 1);
}

#[test]
fn a_meaningless_limit_is_told() {
    check(&[
        (&["check", "ring.net", "--memory", "0"], 2, &["a limit of 0 bytes"]),
        (
            &["check", "ring.net", "--memory", "4"],
            2,
            &["a memory limit of 4 B leaves no room", "give at least `--memory "],
        ),
        (&["check", "ring.net", "--memory", "1MiB"], 2, &["leaves no room to search", "give at least `--memory "]),
        (&["stats", "ring.net", "--memory", "1MiB"], 2, &["leaves no room to search"]),
        (&["graph", "ring.net", "-o", "-", "--to", "dot", "--memory", "1MiB"], 2, &["leaves no room to search"]),
        (&["check", "ring.net", "--memory", "4gigs"], 2, &["`4gigs` is not a size", "4GiB, 512MB or 2G"]),
        (&["check", "ring.net", "--memory", "-4"], 2, &["`-4` is not a size"]),
        (&["check", "ring.net", "--time", "-1s"], 2, &["`-1s` is not a duration"]),
        (&["check", "ring.net", "--max-states", "99999999999999999999"], 2, &["is too large"]),
        (&["check", "ring.net", "--time", "0s"], 2, &["a time limit of 0"]),
        (&["check", "ring.net", "--time", "soon"], 2, &["`soon` is not a duration"]),
        (&["check", "ring.net", "--max-states", "0"], 2, &["a limit of 0 states"]),
        (&["check", "ring.net", "--max-states", "lots"], 2, &["`lots` is not a number of states"]),
        (&["check", "ring.net", "--depth", "-1"], 2, &["`-1` is not a number of steps"]),
    ]);
}

#[test]
fn a_wrong_property_is_told_with_its_place() {
    check(&[
        (
            &["check", "ring.net", "--invariant", "a <= 2 and bb <= 2"],
            2,
            &["--> --invariant:1:12", "a <= 2 and bb <= 2", "^^", "did you mean `b`?"],
        ),
        (&["check", "ring.net", "--reach", "a >="], 2, &["--> --reach:1:"]),
        (&["check", "ring.net", "--properties", "nowhere.prop"], 2, &["cannot read `nowhere.prop`"]),
        (
            &["check", "ring.net", "--properties", "binary.net"],
            2,
            &["not a text in UTF-8", "--> binary.net:1:", "invariant mutex:"],
        ),
        (&["check", "ring.net", "--properties", "-"], 2, &["--> <stdin>:1:1", "holds no property", "invariant mutex:"]),
        (&["check", "ring.net", "--invariant", "qqqqq <= 2"], 2, &["nothing called `qqqqq`", "there are: a, "]),
    ]);
}

#[test]
fn the_memory_limit_that_is_advised_is_enough() {
    let told = run(&["check", "ring.net", "--memory", "4"]).stderr;
    let advised = told.split("--memory ").nth(1).and_then(|rest| rest.split('`').next()).expect("advice");
    assert_eq!(run(&["check", "ring.net", "--memory", advised]).exit, 0, "{told}");
}

#[test]
fn an_output_never_replaces_an_input() {
    let folder = common::folder("inputs");
    let net = "net x\npl a (1)\ntr t a -> a\n";
    let properties = "invariant: a <= 0\n";
    std::fs::write(folder.join("own.net"), net).expect("the model");
    std::fs::write(folder.join("own.prop"), properties).expect("the properties");
    let cases: [(&[&str], &str); 3] = [
        (&["check", "own.net", "--trace", "../inputs/own.net"], "is the model itself"),
        (&["check", "own.net", "--properties", "own.prop", "--trace", "./own.prop"], "is the property file itself"),
        (&["graph", "own.net", "--to", "dot", "-o", "own.net"], "is the model itself"),
    ];
    for (arguments, expected) in cases {
        let run = common::run_in(&folder, arguments, "");
        assert!(run.exit == 2 && run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    }
    let kept = ["own.net", "own.prop"].map(|name| std::fs::read_to_string(folder.join(name)).expect("a file"));
    assert_eq!(kept, [net, properties]);
}

#[test]
fn traces_on_standard_output_stand_there_alone() {
    let run = run(&["check", "handover.net", "--trace", "-"]);
    assert_eq!(run.exit, 1);
    serde_json::from_str::<serde_json::Value>(&run.stdout).expect("JSON and nothing else");
    assert!(run.stderr.contains("deadlock-free"), "{}", run.stderr);
}

#[test]
fn a_graph_too_large_is_refused() {
    check(&[(
        &["graph", "ring.net", "-o", "-", "--to", "dot", "--max-states", "5"],
        3,
        &["more than 5 states, so no graph was written", "--max-states"],
    )]);
    // Exactly as many as there are is no more than allowed.
    assert_eq!(run(&["graph", "ring.net", "-o", "-", "--to", "dot", "--max-states", "6"]).exit, 0);
}

#[test]
fn a_limit_that_is_reached_is_an_answer() {
    let cases: [(&[&str], &[&str]); 4] = [
        (&["--max-states", "1000"], &["the limit on the number of states was reached", "`--depth N`"]),
        (&["--depth", "9"], &["there are states beyond the limit on the depth", "`--depth`"]),
        (&["--time", "100ms"], &["the time limit was reached", "place `heap` grows"]),
        (&["--memory", "40MiB", "--store", "plain"], &["the memory limit of 40 MiB was reached", "bound the net"]),
    ];
    for (limit, expected) in cases {
        // Reduced, the net would be seen to have no deadlock before any limit is reached.
        for command in [&["check", "grow.net", "--reduce", "off"][..], &["stats", "grow.net"]] {
            let arguments = [command, limit].concat();
            let run = run(&arguments);
            assert_eq!((run.exit, run.stderr.as_str()), (3, ""), "{arguments:?}");
            for text in expected {
                assert!(run.stdout.contains(text), "{arguments:?} lacks {text:?}:\n{}", run.stdout);
            }
        }
    }
}

#[test]
fn exit_codes_are_those_of_the_contract() {
    let cases: [(&[&str], i32); 9] = [
        (&["check", "ring.net"], 0),
        (&["check", "ring.net", "--deadlock"], 0),
        (&["check", "handover.net"], 1),
        (&["check", "handover.net", "--invariant", "stock <= 2"], 0),
        (&["check", "handover.net", "--invariant", "stock <= 1"], 1),
        (&["check", "handover.net", "--reach", "busy >= 1"], 0),
        (&["check", "handover.net", "--reach", "busy >= 2"], 1),
        // A violation that was found counts, whatever else has no answer.
        (&["check", "grow.net", "--invariant", "heap <= 3", "--deadlock", "--max-states", "1000"], 1),
        (&["stats", "handover.net"], 0),
    ];
    for (arguments, exit) in cases {
        assert_eq!(run(arguments).exit, exit, "{arguments:?}");
    }
}

#[test]
fn what_does_not_go_with_a_sweep_is_told() {
    check(&[
        (
            &["check", "ring.net", "--progress", "a"],
            2,
            &["`--progress` is of no use to the search `bfs`", "`--search sweep`"],
        ),
        (&["check", "ring.net", "--search", "sweep", "--store", "tree"], 2, &["the store `tree` cannot be used"]),
        (&["check", "ring.net", "--search", "sweep", "--depth", "3"], 2, &["knows no distances"]),
        (&["check", "ring.net", "--search", "sweep", "--threads", "2"], 2, &["`sweep` runs with one thread"]),
        (&["check", "ring.net", "--search", "sweep", "--progress", "nobody"], 2, &["--progress:1:1", "nobody"]),
        (&["check", "ring.net", "--search", "sweep", "--progress", "(1, deadlock)"], 2, &["`deadlock` cannot be part"]),
        (&["check", "ring.net", "--search", "sweep", "--progress", "@nowhere"], 2, &["there is no such file"]),
        (&["check", "ring.net", "--search", "swep"], 2, &["did you mean `sweep`?"]),
    ]);
}
