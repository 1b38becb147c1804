//! Families and example models with known counts.

mod common;

use std::fs;

use common::{Counts, explore, root};
use deltamark_nets::{generate::generate, pnml, tina, write};

#[test]
fn families_have_the_state_spaces_of_their_closed_forms() {
    for n in 2..=7_u32 {
        let counts = explore(&generate("philosophers", n).unwrap());
        assert_eq!((counts.states, counts.deadlocks), (3_usize.pow(n), 2), "philosophers {n}");
    }
    for n in 2..=6_u32 {
        let counts = explore(&generate("database-managers", n).unwrap());
        assert_eq!((counts.states, counts.deadlocks), (1 + n as usize * 3_usize.pow(n - 1), 0), "managers {n}");
    }
}

/// From Ciardo and Tilgner for Kanban, from Helena's runs for the managers, from the Model
/// Checking Contest for the philosophers.
#[test]
fn families_have_the_counts_others_found() {
    for (family, n, states, edges) in [
        ("kanban", 1, 160, 616),
        ("kanban", 2, 4600, 28120),
        ("kanban", 3, 58400, 446400),
        ("philosophers", 5, 243, 945),
        ("database-managers", 4, 109, 224),
        ("database-managers", 5, 406, 1090),
    ] {
        let counts = explore(&generate(family, n).unwrap());
        assert_eq!((counts.states, counts.edges), (states, edges), "{family} {n}");
    }
}

#[test]
fn every_family_gives_sound_nets_at_its_ends() {
    for family in &deltamark_nets::generate::FAMILIES {
        let net = generate(family.name, family.smallest).unwrap();
        assert_eq!(net.validate(), Ok(()), "{}", family.name);
        assert_eq!(net.name, format!("{}-{}", family.name, family.smallest));
        assert!(generate(family.name, family.largest.min(2000)).unwrap().validate().is_ok());
        for n in [family.smallest - 1, family.largest + 1] {
            let diagnostic = generate(family.name, n).unwrap_err();
            assert_eq!(diagnostic.message, format!("{n} is out of range for `{}`", family.name));
        }
    }
    let help = |name| generate(name, 5).unwrap_err().help.unwrap();
    assert_eq!(help("philosopher"), "did you mean `philosophers`?");
    let names = deltamark_nets::generate::FAMILIES.map(|family| family.name);
    assert_eq!(help("elevator"), format!("known families are {}", names.join(", ")));
}

/// The rows of the table of nets in models/README.md: file, states, edges, deadlocks.
fn promised() -> Vec<(String, Counts)> {
    let text = fs::read_to_string(root().join("models/README.md")).expect("models/README.md");
    let number = |cell: &str| cell.replace(',', "").parse().expect("a number");
    text.lines()
        .filter_map(|line| line.strip_prefix("| ["))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let file = cells[0].split(']').next().unwrap().to_string();
            (file, Counts { states: number(cells[2]), edges: number(cells[3]), deadlocks: number(cells[4]) })
        })
        .filter(|(file, _)| is_net(file))
        .collect()
}

fn is_net(file: &str) -> bool {
    file.ends_with(".pnml") || file.ends_with(".net")
}

#[test]
fn example_models_keep_what_their_readme_promises() {
    let rows = promised();
    let mut listed: Vec<_> = rows.iter().map(|(file, _)| file.clone()).collect();
    for (file, expected) in rows {
        let bytes = fs::read(root().join("models").join(&file)).expect("a listed model is there");
        let parse = if file.ends_with(".net") { tina::parse_bytes } else { pnml::parse_bytes };
        let net = parse(&bytes).expect(&file);
        assert_eq!(explore(&net), expected, "{file}");
    }
    let mut there: Vec<_> = fs::read_dir(root().join("models"))
        .expect("models/")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .filter(|name| is_net(name))
        .collect();
    listed.sort();
    there.sort();
    assert_eq!(listed, there, "every model is listed");
}

#[test]
fn generated_example_models_are_up_to_date() {
    for (family, n) in [("philosophers", 5), ("kanban", 3)] {
        let path = root().join(format!("models/{family}-{n}.pnml"));
        let text = write::to_pnml(&generate(family, n).unwrap());
        assert!(fs::read_to_string(&path).is_ok_and(|file| file == text), "generate {} anew", path.display());
    }
}
