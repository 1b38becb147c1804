//! Which crate may depend on which, and where `unsafe` is allowed.
//!
//! In: the manifests and sources of the workspace. Out: a failure that names the rule of ARCHITECTURE.md that
//! is broken, and what to do. Dev-dependencies are free, as is everything from outside the workspace, except
//! for `deltamark-core`, which takes nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// Every crate of the workspace, in the order of the root manifest, with all the crates of
/// the workspace that it may use. A new language is a row here and a name in the row of `deltamark`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("deltamark-core", &[]),
    ("deltamark-store", &["deltamark-core"]),
    ("deltamark-search", &["deltamark-core"]),
    ("deltamark-graph", &["deltamark-core"]),
    ("deltamark-logic", &["deltamark-core"]),
    ("deltamark-nets", &["deltamark-core"]),
    ("deltamark-coloured", &["deltamark-core", "deltamark-nets"]),
    ("deltamark-cpn", &["deltamark-core", "deltamark-nets", "deltamark-coloured"]),
    ("deltamark-dve", &["deltamark-core"]),
    ("deltamark-so", &["deltamark-core"]),
    ("deltamark-derive", &[]),
    // It checks what the others answer, so it must share no code with them.
    ("deltamark-verify", &[]),
    (
        "deltamark",
        &[
            "deltamark-core",
            "deltamark-store",
            "deltamark-search",
            "deltamark-graph",
            "deltamark-logic",
            "deltamark-nets",
            "deltamark-coloured",
            "deltamark-cpn",
            "deltamark-dve",
            "deltamark-so",
            "deltamark-derive",
        ],
    ),
    ("deltamark-testkit", &["deltamark-core", "deltamark-nets", "deltamark-search"]),
    ("deltamark-reproduce", &["deltamark", "deltamark-core", "deltamark-search", "deltamark-store"]),
    ("deltamark-cli", &["deltamark", "deltamark-reproduce", "deltamark-verify"]),
    (
        "deltamark-bench",
        &[
            "deltamark",
            "deltamark-core",
            "deltamark-nets",
            "deltamark-dve",
            "deltamark-search",
            "deltamark-store",
            "deltamark-testkit",
            "deltamark-reproduce",
        ],
    ),
];

/// How the paths of files that may contain `unsafe` begin, below `crates`: the tables of the stores, the code
/// generator, the border to C, the mapping of a file into memory, and the allocator of the command.
const MAY_BE_UNSAFE: &[&str] = &[
    "deltamark-store/src/",
    "deltamark-dve/src/native",
    "deltamark-so/src/",
    "deltamark-graph/src/map.rs",
    "deltamark-cli/src/allocator.rs",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// The crates listed as members in a root manifest, in its order.
fn members(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "members = [").skip(1);
    let lines = lines.take_while(|line| line.trim() != "]");
    lines.filter_map(|line| line.trim().strip_prefix("\"crates/")?.strip_suffix("\",")).collect()
}

/// The `[dependencies]` and `[build-dependencies]` of a manifest, including those of single platforms.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']').rsplit_once("dependencies").map(|(before, name)| {
                // `[dependencies.NAME]` names the dependency in its heading.
                let name = name.trim_start_matches('.');
                (!before.ends_with("dev-")).then_some(name)
            });
            inside = matches!(section, Some(Some("")));
            if let Some(Some(name)) = section.filter(|name| !matches!(name, Some(""))) {
                found.push(name);
            }
        } else if inside && let Some((name, _)) = line.split_once('=') {
            found.push(name.split('.').next().unwrap_or(name).trim().trim_matches('"'));
        }
    }
    found
}

fn allowed(member: &str) -> Option<&'static [&'static str]> {
    MAY_USE.iter().find(|(name, _)| *name == member).map(|(_, allowed)| *allowed)
}

/// The rules that the manifest of `member` breaks, in sentences.
fn broken(member: &str, manifest: &str) -> Vec<String> {
    let Some(allowed) = allowed(member) else {
        return vec![format!("`{member}` is new: say in {} what it may use, and in ARCHITECTURE.md why", file!())];
    };
    let ours = |name: &&str| *name == "deltamark" || name.starts_with("deltamark-");
    let wrong = dependencies(manifest).into_iter().filter(|name| match member {
        "deltamark-core" => true,
        _ => ours(name) && !allowed.contains(name),
    });
    wrong
        .map(|name| {
            let may = match allowed {
                [] => "no crate of the workspace".to_string(),
                some => some.join(", "),
            };
            let std_only = if member == "deltamark-core" { " and nothing but the standard library" } else { "" };
            format!(
                "`{member}` depends on `{name}`, but it may use {may}{std_only}. Dependencies point from the command \
                 towards the core: move what is shared into `deltamark-core` (a shape), or join the two in \
                 `deltamark` (the façade), or, for tests, list it under [dev-dependencies]"
            )
        })
        .collect()
}

/// Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Lines of a source that use the keyword, with their numbers.
fn unsafe_lines(source: &str) -> Vec<usize> {
    let uses = |line: &str| {
        let code = line.split("//").next().unwrap_or(line);
        ["unsafe {", "unsafe fn", "unsafe impl", "unsafe trait", "unsafe extern", "unsafe("]
            .iter()
            .any(|use_of| code.contains(use_of))
    };
    source.lines().enumerate().filter(|(_, line)| uses(line)).map(|(number, _)| number + 1).collect()
}

#[test]
fn dependencies_point_towards_the_core() {
    let root_manifest = read(&root().join("Cargo.toml"));
    let manifest = |member: &str| read(&root().join("crates").join(member).join("Cargo.toml"));
    let wrong: Vec<String> =
        members(&root_manifest).iter().flat_map(|member| broken(member, &manifest(member))).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn members_are_listed_in_topological_order() {
    let manifest = read(&root().join("Cargo.toml"));
    let members = members(&manifest);
    assert_eq!(
        members,
        MAY_USE.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "the root Cargo.toml (left) and the table MAY_USE of this file (right) list the same crates in the same order"
    );
    for (place, member) in members.iter().enumerate() {
        for used in allowed(member).unwrap_or_default() {
            let before = members[..place].contains(used);
            assert!(before, "in the root Cargo.toml `{used}` must stand above `{member}`, which may use it");
        }
    }
    let mut folders: Vec<String> = fs::read_dir(root().join("crates"))
        .expect("the folder of crates")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    let mut listed = members.clone();
    listed.sort_unstable();
    assert_eq!(folders, listed, "every folder in crates/ is a member of the workspace");
}

#[test]
fn unsafe_code_is_where_it_is_allowed() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    assert!(files.len() > 50, "the sources were found");
    for file in files {
        let below = file.strip_prefix(root().join("crates")).expect("a file below crates").to_string_lossy();
        let lines = unsafe_lines(&read(&file));
        let may = MAY_BE_UNSAFE.iter().any(|start| below.starts_with(start));
        // This file contains the keyword as text.
        if lines.is_empty() || may || file.ends_with("tests/direction.rs") {
            continue;
        }
        panic!(
            "{}:{} uses `unsafe`; only the tables in crates/deltamark-store/src may, because only there is it \
             measured to pay and checked by Miri, what calls code that rustc did not make (deltamark-dve, \
             deltamark-so), the mapping of files (deltamark-graph/src/map.rs), and the allocator of the command \
             (deltamark-cli/src/allocator.rs). Find a safe way, or move the table there",
            file.display(),
            lines[0]
        );
    }
}

#[test]
fn the_rules_above_catch_what_they_should() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\nserde.workspace = true\ndeltamark-store = { path = \"y\" }\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n[dependencies.deltamark-cli]\nversion = \"0\"\n\
                    [dev-dependencies]\ndeltamark-testkit.workspace = true\n[build-dependencies]\ncc = \"1\"\n";
    assert_eq!(dependencies(manifest), ["serde", "deltamark-store", "libc", "deltamark-cli", "cc"]);
    assert_eq!(broken("deltamark-search", manifest).len(), 2);
    assert_eq!(broken("deltamark-core", manifest).len(), 5);
    assert_eq!(broken("deltamark-new", manifest).len(), 1);
    assert!(broken("deltamark-search", "[dev-dependencies]\ndeltamark-testkit = \"1\"\n").is_empty());
    let source = "fn f() {}\n// unsafe { } in a comment\nlet x = unsafe { y() };\nunsafe impl Send for X {}\n";
    assert_eq!(unsafe_lines(source), [3, 4]);
}
