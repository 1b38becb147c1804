//! Nets at the edges of sizes: every store, every search and several threads against the dull explorer.

use deltamark::{Check, CheckError, Report};
use deltamark_nets::{NetSystem, tina};
use deltamark_search::{Search, Strategy};
use deltamark_store::{CATALOGUE, StoreSpec};
use deltamark_testkit::net_oracle::{ExploredNet, explore_net};
use deltamark_testkit::scaled::scaled_net;

/// Nets of more markings are left out.
const MOST: usize = 300;

/// Options that bring out other code than the defaults do.
const OPTIONS: &[&str] = &[
    "tree:arity=4",
    "difference:every=2",
    "delta:k=3",
    "delta:base=collapse",
    "delta:update=off",
    "delta:backward=off",
    "comback:signature=4",
    "comback:signature=8,cache=8,actions=2",
    "comback:paths=off,backward=off",
    "comback:delayed=off,full=2",
    "breadcrumb:k=3",
    "breadcrumb:near=0",
    "breadcrumb:tag=4",
];

fn specs() -> Vec<StoreSpec> {
    let names = CATALOGUE.iter().filter(|info| info.guarantee == "exact").map(|info| info.name);
    names.chain(OPTIONS.iter().copied()).chain(["auto"]).map(|text| text.parse().expect("a store")).collect()
}

fn same(report: &Report, expected: &ExploredNet, label: &str) {
    let found = &report.statistics;
    assert!(report.stopped_by.is_none(), "{label}: {:?}", report.stopped_by);
    let counts = (found.states, found.edges, found.deadlocks);
    assert_eq!(counts, (expected.markings.len() as u64, expected.edges, expected.deadlocks), "{label}");
    if report.search.is_shortest() {
        assert_eq!(found.depth, expected.depth, "{label}");
    }
}

/// Compares every way to explore the net, each with a system of its own: layouts widen as runs go on.
fn agrees(net: &deltamark_nets::Net, label: &str, specs: &[StoreSpec]) -> bool {
    let expected = explore_net(net, MOST);
    if !expected.complete {
        return false;
    }
    for spec in specs {
        let mut ways = vec![(Search::Dfs, 1), (Search::Bfs, 1)];
        let threads = CATALOGUE.iter().any(|info| info.name == spec.name && info.threads);
        ways.extend((threads || spec.is_auto()).then_some((Search::Bfs, 2)));
        for (search, threads) in ways {
            let system = NetSystem::new(net.clone());
            let check = Check::new(&system).deadlock_free().store(spec.clone()).search(search).threads(threads);
            let label = format!("{label}, {spec}, {}, {threads} threads", search.name());
            match check.explore() {
                Ok(report) => same(&report, &expected, &label),
                // Some stores take one order only.
                Err(CheckError::Store(error)) => assert_eq!(search, Search::Dfs, "{label}: {error}"),
                Err(error) => panic!("{label}: {error}"),
            }
        }
    }
    // A measure that is found, and such as are no good; some of them beyond what a rank can hold.
    let large = "(4611686018427387904 * p0, p0)";
    for given in [None, Some("p0"), Some("(-p0, 3 * p0)"), Some("(p0, p0, p0, p0, p0, p0, p0)"), Some(large)] {
        let system = NetSystem::new(net.clone());
        let mut check = Check::new(&system).deadlock_free().search(Strategy::Sweep);
        if let Some(text) = given {
            check = check.progress("--progress", text).expect("a measure");
        }
        match check.explore() {
            Ok(report)
                if report
                    .sweep
                    .as_ref()
                    .and_then(|sweep| sweep.swept.as_ref())
                    .is_some_and(|swept| swept.unfolding) => {}
            Ok(report) => same(&report, &expected, &format!("{label}, sweep {given:?}")),
            Err(CheckError::Sweep { message, .. }) => assert!(given.is_none(), "{label}: {message}"),
            Err(error) => panic!("{label}: {error}"),
        }
    }
    true
}

fn compare(seeds: std::ops::Range<u64>, system_every: u64) -> usize {
    let specs = specs();
    let mut compared = 0;
    for seed in seeds {
        let net = scaled_net(seed);
        compared += usize::from(agrees(&net, &format!("seed {seed}"), &specs));
        if seed % system_every == 0 && net.places.len() < 200 {
            deltamark_testkit::conformance::system::check_system_up_to(&NetSystem::new(net), 100);
        }
    }
    compared
}

#[test]
fn scaled_nets_agree_with_the_dull_explorer() {
    let compared = compare(0..60, 4);
    assert!(compared > 40, "{compared} nets compared");
}

/// Many more, for the long run; `DELTAMARK_SEEDS=FROM..TO` chooses others.
#[test]
#[ignore = "long: two minutes"]
fn very_many_scaled_nets_agree_with_the_dull_explorer() {
    let given = std::env::var("DELTAMARK_SEEDS").unwrap_or_else(|_| "1000..3000".into());
    let (from, to) = given.split_once("..").expect("FROM..TO");
    let seeds = from.parse().expect("a number")..to.parse().expect("a number");
    println!("{} nets compared", compare(seeds, 10));
}

/// More than 64 bits of a half change together: `compact` cut them into an empty part and all of them, for ever.
#[test]
fn transitions_that_change_very_many_places_at_once() {
    let all = |first: usize, weight: u32| (first..first + 40).map(|n| format!(" p{n}*{weight}")).collect::<String>();
    let moved = |weight: u32| {
        let marked: String = (0..40).map(|n| format!("pl p{n} ({weight})\n")).collect();
        format!(
            "{marked}tr there{} ->{}\ntr back{} ->{}\n",
            all(0, weight),
            all(40, weight),
            all(40, weight),
            all(0, weight)
        )
    };
    let heavy = "pl p2 (1)\npl p5 (65535)\ntr t p2*1 p5*65535 -> p7*65535 p1*65535 p0*65535\n";
    for (text, states, edges, deadlocks) in
        [(moved(1), 2, 2, 0), (moved(u32::MAX), 2, 2, 0), (heavy.to_string(), 2, 1, 1)]
    {
        let net = tina::parse_bytes(text.as_bytes()).expect("a net");
        let expected = explore_net(&net, MOST);
        assert_eq!((expected.markings.len(), expected.edges, expected.deadlocks), (states, edges, deadlocks), "{text}");
        assert!(agrees(&net, &text, &specs()));
    }
}
