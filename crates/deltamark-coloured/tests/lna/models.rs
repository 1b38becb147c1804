//! Our own models: their counts, which the README lists, and larger ones from papers and closed forms.

use std::path::{Path, PathBuf};

use super::{Found, explore};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

fn text_of(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).expect("a listed model is there")
}

#[test]
fn models_keep_what_their_readme_promises() {
    let readme = std::fs::read_to_string(folder().join("README.md")).expect("models/README.md");
    let mut listed = Vec::new();
    for line in readme.lines().filter_map(|line| line.strip_prefix("| [")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let file = cells[0].split(']').next().expect("a file");
        if !file.ends_with(".lna") {
            continue;
        }
        let number = |cell: &str| cell.replace(',', "").parse().expect("a number");
        let (states, edges, deadlocks) = (number(cells[2]), number(cells[3]), number(cells[4]));
        assert_eq!(explore(&text_of(file), ""), Found { states, edges, deadlocks, fault: None }, "{file}");
        listed.push(file.to_string());
    }
    let mut there: Vec<String> = std::fs::read_dir(folder())
        .expect("models/")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter(|name| name.ends_with(".lna"))
        .collect();
    listed.sort();
    there.sort();
    assert_eq!(listed, there, "every model is listed");
}

/// Counts from elsewhere: closed forms, Helena's runs of nets that do the same, and for the last three
/// an exploration by other code.
#[test]
fn larger_models_have_the_counts_that_are_known() {
    let managers = |n: u64| 1 + n * 3u64.pow(n as u32 - 1);
    let guarded = |n: u64| (5 * n + 2) * 2u64.pow(n as u32 - 1);
    let rows: &[(&str, &str, u64, Option<u64>)] = &[
        ("database-managers.lna", "N=7", managers(7), None),
        ("database-managers.lna", "N=10", managers(10), Some(1_181_000)),
        ("philosophers.lna", "N=2", 7, None),
        ("philosophers.lna", "N=3", 31, None),
        ("philosophers.lna", "N=6", 1843, None),
        ("philosophers.lna", "N=10", 321_667, Some(2_633_980)),
        ("peterson.lna", "N=2", 158, Some(316)),
        ("mutual-exclusion.lna", "N=8", guarded(8), Some(25_088)),
        ("mutual-exclusion.lna", "N=12", guarded(12), None),
        ("leader-election.lna", "N=2", 9, Some(13)),
        ("leader-election.lna", "N=8", 4407, Some(24_596)),
        ("leader-election.lna", "N=10", 31_302, Some(218_407)),
        ("sieve.lna", "N=15", 2267, Some(6324)),
        ("sieve.lna", "N=25", 48_561, Some(180_710)),
        ("stop-and-wait.lna", "N=4,K=1", 36, Some(76)),
        ("stop-and-wait.lna", "N=6,K=3", 370, Some(1338)),
        ("telephones.lna", "N=4", 3625, Some(28_164)),
        ("client-server.lna", "N=4,M=4", 2541, Some(9624)),
        ("client-server.lna", "N=5,M=3", 7623, Some(34_395)),
    ];
    for &(file, given, states, edges) in rows {
        let found = explore(&text_of(file), given);
        assert_eq!((found.states, &found.fault), (states, &None), "{file} with {given}");
        assert!(edges.is_none_or(|edges| edges == found.edges), "{file} with {given}: {found:?}");
    }
}

/// What Evangelista and Pradat-Peyre measured (*Memory efficient state space storage in explicit software
/// model checking*, SPIN 2005, table 1), as far as it ends soon.
#[test]
#[ignore = "long: two minutes"]
fn counts_of_the_paper_on_delta_markings() {
    let rows = [
        ("database-managers.lna", "N=12", 2_125_765),
        ("peterson.lna", "N=4", 3_407_946),
        ("mutual-exclusion.lna", "N=17", 5_701_632),
    ];
    std::thread::scope(|scope| {
        for (file, given, states) in rows {
            let check = move || assert_eq!(explore(&text_of(file), given).states, states, "{file} with {given}");
            scope.spawn(check);
        }
    });
}
