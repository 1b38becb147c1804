//! Nets that others wrote with CPN Tools, against published and independent answers.

#[path = "../../deltamark-coloured/tests/common/explore.rs"]
mod explored;

use deltamark_coloured::ColouredSystem;
use deltamark_core::{Control, Diagnostic};
use deltamark_testkit::Corpus;
use explored::explore_system;

type Pairs<'a> = &'a [(&'a str, &'a str)];

/// The text of a file, in either encoding.
fn text(path: &std::path::Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8(bytes).unwrap_or_else(|error| error.into_bytes().iter().map(|&byte| char::from(byte)).collect())
}

fn load(text: &str, markings: Pairs<'_>) -> Result<ColouredSystem, Vec<Diagnostic>> {
    let markings: Vec<(String, String)> =
        markings.iter().map(|(place, exp)| ((*place).into(), (*exp).into())).collect();
    let net = deltamark_cpn::parse_under(text, &[], &markings, &Control::new())?;
    ColouredSystem::new(net, text)
}

/// File, markings, nodes, arcs, dead markings.
type Row = (&'static str, Pairs<'static>, u64, u64, u64);

const ROWS: &[Row] = &[
    ("SimpleProtocol_OG.cpn", &[], 428, 1130, 1),
    ("SimpleProtocol_OG.cpn", &[("Limit", "1`e")], 33, 44, 1),
    ("SimpleProtocol-SimpleProtocol_OG.cpn", &[], 428, 1130, 1),
    ("DiningPhilosophers.cpn", &[], 11, 30, 0),
    ("DistributedDataBase-DistributedDataBase.cpn", &[], 109, 224, 0),
    ("database.cpn", &[], 110, 225, 0),
    ("database.cpn", &[("p", "5")], 407, 1091, 0),
    ("database.cpn", &[("p", "6")], 1460, 4873, 0),
    ("database.cpn", &[("p", "7")], 5105, 20427, 0),
    ("protocol.cpn", &[], 8967, 24699, 1),
    ("telephones.cpn", &[], 6507, 47020, 0),
    ("erdp.cpn", &[], 4173, 14558, 1),
    ("ExampleProtocol.cpn", &[], 385, 798, 25),
    ("2-1DeterministicProtocol.cpn", &[], 31, 30, 1),
    ("DiningPhilosophers_ASKCTL.cpn", &[], 8, 10, 2),
    ("drawing.cpn", &[], 58, 134, 0),
    ("lecture1-introduction_r2.cpn", &[], 43, 64, 0),
    ("lecture3-cpns-simulation_r1.cpn", &[], 43, 64, 0),
    ("lecture4-cpnmodules_r3.cpn", &[], 43, 64, 0),
    ("lecture6-statespaces-cyclic.cpn", &[], 43, 64, 0),
    ("lecture2-background-tpc-ptnets.cpn", &[], 5940, 30420, 0),
    ("lecture2-ptnets-tpc-firstpart.cpn", &[], 6, 6, 1),
    ("mynet-sub-1.cpn", &[], 40, 164, 1),
    ("DEBUG-mynet-sub-1.cpn", &[], 40, 164, 1),
    ("TEST-mynet.cpn", &[], 40, 82, 1),
    ("test.cpn", &[], 2, 1, 1),
];

fn check(test: &str, rows: &[Row], stores: &[&str]) {
    let Some(corpus) = Corpus::find(test) else { return };
    let mut wrong = Vec::new();
    for (file, markings, nodes, arcs, dead) in rows {
        let text = text(&corpus.file("cpn", file));
        for store in stores {
            let system = match load(&text, markings) {
                Ok(system) => system,
                Err(diagnostics) => {
                    wrong.push(format!("{file}: {}", diagnostics[0].message));
                    break;
                }
            };
            let found = explore_system(&system, store);
            let found_all = (found.states, found.edges, found.deadlocks);
            if found_all != (*nodes, *arcs, *dead) || found.fault.is_some() {
                wrong.push(format!(
                    "{file} {markings:?} {store}: {found_all:?} {:?}, not {nodes}/{arcs}/{dead}",
                    found.fault
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn state_spaces_are_those_of_cpn_tools() {
    check("state_spaces_are_those_of_cpn_tools", ROWS, &["plain", "compact", "comback", "delta", "breadcrumb"]);
}

/// Where what a file means is not certain, it is not guessed.
#[test]
fn ports_with_two_sockets_are_refused() {
    let Some(corpus) = Corpus::find("ports_with_two_sockets_are_refused") else { return };
    let wrong = load(&text(&corpus.file("cpn", "mynet-for-sim-sub-2.cpn")), &[]).err().expect("it is refused");
    assert!(wrong[0].message.contains("has two sockets"), "{}", wrong[0].message);
}

#[test]
#[ignore = "long: larger nets, in release mode"]
fn larger_state_spaces_are_those_of_others() {
    const FIVE: &str = "1`0++1`1++1`2++1`3++1`4";
    const LARGE: &[Row] = &[
        ("database.cpn", &[("p", "10")], 196832, 1181001, 0),
        ("protocol.cpn", &[("no", "7"), ("Limit", "4`e")], 215196, 1133846, 1),
        ("telephones.cpn", &[("Phone'Inactive 1", FIVE), ("Dialing'All 1", FIVE)], 107648, 1017490, 0),
    ];
    check("larger_state_spaces_are_those_of_others", LARGE, &["plain", "compact"]);
}

/// Prints which files load and why others do not: for reports.
#[test]
#[ignore = "a list for people"]
fn which_files_load() {
    let Some(corpus) = Corpus::find("which_files_load") else { return };
    let mut names: Vec<_> = std::fs::read_dir(corpus.file("cpn", "")).expect("a folder").flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    for entry in names.iter().filter(|entry| entry.path().extension().is_some_and(|ending| ending == "cpn")) {
        match load(&text(&entry.path()), &[]) {
            Ok(_) => println!("loads    {}", entry.file_name().to_string_lossy()),
            Err(wrong) => println!("refused  {}: {}", entry.file_name().to_string_lossy(), wrong[0].message),
        }
    }
}
