//! Arbitrary use of the command: whatever its input, it prints a sentence and ends with an exit code of the
//! contract, never a panic.

mod common;

use common::{folder, run_in};
use std::path::Path;
use std::process::Command;

const NET: &str = "net x\npl a (1)\ntr t a -> a\n";

/// Runs a line of the shell, in which `$D` is the command: exit code, standard output and standard error.
fn shell(folder: &Path, line: &str) -> (i32, String, String) {
    let mut sh = Command::new("sh");
    sh.args(["-c", line]).current_dir(folder).env("D", env!("CARGO_BIN_EXE_deltamark")).env_remove("COLUMNS");
    let output = sh.output().expect("a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn prepared(test: &str) -> std::path::PathBuf {
    let folder = folder(test);
    std::fs::create_dir_all(folder.join("folder.net")).expect("a folder");
    std::fs::write(folder.join("good.net"), NET).expect("a file");
    std::fs::write(folder.join("two\nlines.net"), NET).expect("a file");
    for ending in ["net", "pnml", "lna", "dve", "mdve", "dmg"] {
        std::fs::write(folder.join(format!("empty.{ending}")), "").expect("a file");
        std::fs::write(folder.join(format!("blank.{ending}")), " \n\t\n").expect("a file");
        let binary: Vec<u8> = (0..4096u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        std::fs::write(folder.join(format!("binary.{ending}")), binary).expect("a file");
        std::fs::write(folder.join(format!("zeros.{ending}")), [0; 512]).expect("a file");
    }
    folder
}

#[test]
fn a_wrong_input_is_told_in_a_sentence() {
    let folder = prepared("strangers_inputs");
    let mut cases: Vec<(String, i32, &str)> = vec![
        ("$D".into(), 2, "Usage: deltamark <COMMAND>"),
        ("$D check".into(), 2, "<MODEL>"),
        ("$D check ''".into(), 2, "cannot read ``: there is no such file"),
        ("$D check nowhere.net".into(), 2, "there is no such file"),
        ("$D check nowhere/good.net".into(), 2, "there is no such file"),
        ("$D check good.net/x".into(), 2, "cannot read `good.net/x`"),
        ("$D check folder.net".into(), 2, "it is a folder"),
        ("$D check .".into(), 2, "it is a folder"),
        ("$D check /dev/null".into(), 2, "the file is empty"),
        ("$D check /dev/null --format net".into(), 2, "the file is empty"),
        ("$D graph folder.net -o x.dot".into(), 2, "it is a folder"),
        ("$D graph /dev/null --format net -o x.dot".into(), 2, "the file is empty"),
        ("$D graph empty.dmg".into(), 2, "it is no graph written by Deltamark"),
        ("$D check - --format net </dev/null".into(), 2, "the file is empty"),
        ("$D check - --format net <&-".into(), 2, "error"),
        ("$D check - --format net <folder.net".into(), 2, "cannot read standard input"),
        ("$D check \"$(printf 'caf\\351.net')\"".into(), 2, "not a text in UTF-8"),
        ("$D check good.net --invariant \"$(printf 'caf\\351')\"".into(), 2, "not a text in UTF-8"),
        ("$D check good.net --properties folder.net".into(), 2, "it is a folder"),
        ("$D check good.net --properties nowhere".into(), 2, "there is no such file"),
        ("$D check good.net --properties empty.net".into(), 2, "holds no property"),
        ("$D check good.net --invariant ''".into(), 2, "error"),
        ("$D check good.net --invariant --json".into(), 2, "`--json` looks like an option"),
        ("$D check good.net --reach --quiet".into(), 2, "`--quiet` looks like an option"),
        ("$D check good.net --invariant".into(), 2, "a value is required"),
        ("$D check good.net --store ''".into(), 2, "there is no store"),
        ("$D simulate nowhere.net".into(), 2, "there is no such file"),
        ("$D stats good.net --progress '('".into(), 2, "--progress:1:"),
        ("$D reproduce tree -o out".into(), 3, "--models DIR"),
        ("$D reproduce tree --models good.net".into(), 2, "there is no folder"),
    ];
    for ending in ["net", "pnml", "lna", "dve", "mdve"] {
        for kind in ["empty", "blank", "binary", "zeros"] {
            cases.push((format!("$D check {kind}.{ending}"), 2, "error: "));
            cases.push((format!("$D check good.net --format {ending} --properties {kind}.net"), 2, "error: "));
        }
    }
    for kind in ["empty", "blank", "binary", "zeros"] {
        cases.push((format!("$D graph {kind}.dmg --deadlock"), 2, "it is no graph written by Deltamark"));
    }
    for (line, exit, expected) in cases {
        let (found, stdout, stderr) = shell(&folder, &line);
        assert_eq!((found, stdout.as_str()), (exit, ""), "{line}: {stderr}");
        assert!(stderr.contains(expected), "{line}: {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("bug in Deltamark"), "{line}: {stderr}");
        assert!(stderr.lines().count() <= 60, "{line} takes more than a screen:\n{stderr}");
    }
    // An odd name is a name.
    assert_eq!(run_in(&folder, &["check", "two\nlines.net", "-q"], "").exit, 0);
}

#[test]
fn what_cannot_be_read_is_told() {
    let folder = prepared("strangers_rights");
    let locked = folder.join("locked.net");
    std::fs::write(&locked, NET).expect("a file");
    let (exit, ..) = shell(&folder, "chmod 000 locked.net && ! cat locked.net");
    if exit != 0 {
        // A privileged user cannot be refused.
        return deltamark_testkit::corpus::skipped("what_cannot_be_read_is_told", "this user may read every file");
    }
    let (exit, stdout, stderr) = shell(&folder, "$D check locked.net");
    assert_eq!((exit, stdout.as_str()), (2, ""));
    assert!(stderr.contains("cannot read `locked.net`: you have no permission to read it"), "{stderr}");
}

#[test]
fn what_cannot_be_written_is_told() {
    let folder = prepared("strangers_outputs");
    let full = "No space left on device";
    let folderless = "its folder does not exist";
    let itself = "is the model itself and would be overwritten";
    let cases: &[(&str, i32, &str)] = &[
        ("$D graph good.net -o no/such/x.dot", 2, folderless),
        ("$D graph good.net -o no/such/x.dmg", 2, folderless),
        ("$D check good.net --graph no/such/x.dmg", 2, folderless),
        ("$D check good.net --trace no/such/x.json", 2, folderless),
        ("$D generate kanban 2 -o no/such/x.net", 2, folderless),
        ("$D graph good.net -o folder.net --to dot", 2, "it is a folder"),
        ("$D check good.net --graph folder.net", 2, "it is a folder"),
        ("$D generate kanban 2 -o folder.net", 2, "it is a folder"),
        ("$D graph good.net -o good.net --to dot", 2, itself),
        ("$D graph good.net -o ./good.net --to dmg", 2, itself),
        ("$D check good.net --graph good.net", 2, itself),
        ("$D stats good.net --graph good.net", 2, itself),
        ("$D check good.net --trace good.net", 2, itself),
        ("ln -s good.net link.net; $D graph good.net -o link.net --to dot", 2, itself),
        (
            "cp good.net m.net; echo x > m.prop.lna; $D check m.net --trace m.prop.lna",
            2,
            "is the property file beside the model itself and would be overwritten",
        ),
        ("$D check good.net --json --trace folder.net", 2, "it is a folder"),
        ("$D man --dir good.net", 2, "cannot make the folder `good.net`"),
        ("$D graph good.net -o /dev/full --to dot", 2, full),
        ("$D generate kanban 2 -o /dev/full --format tina", 2, full),
        ("$D check good.net --trace /dev/full", 2, full),
        ("$D check good.net >/dev/full", 2, full),
        ("$D check good.net --json >/dev/full", 2, full),
        ("$D stats good.net >/dev/full", 2, full),
        ("$D stores >/dev/full", 2, full),
        ("$D man >/dev/full", 2, full),
        ("$D completions bash >/dev/full", 2, full),
        ("$D --help >/dev/full", 2, full),
        ("$D --version >/dev/full", 2, full),
        ("$D simulate good.net --random 3 >/dev/full", 2, full),
        ("mkfifo pipe.dmg; $D check good.net --graph pipe.dmg", 2, "it is no regular file"),
        ("mkfifo unread.dmg; $D graph unread.dmg --stats --time 2s", 2, "it is no regular file"),
        // Nothing can be reported; the exit code is that of the answer.
        ("$D check nowhere.net 2>/dev/full", 2, ""),
        ("$D check nowhere.net 2>&-", 2, ""),
        ("$D check good.net -v 2>/dev/full >answer", 0, ""),
        ("$D check good.net --graph x.dmg 2>/dev/full >answer", 0, ""),
        ("$D graph good.net -o x.aut 2>/dev/full", 0, ""),
        ("$D nonsense 2>/dev/full", 2, ""),
        // An answer that was not read is none; who has closed standard output did not want any.
        ("{ sleep .5; $D check good.net; echo $? >code; } | true; exit $(cat code)", 3, ""),
        ("{ sleep .5; $D --help; echo $? >code; } | true; exit $(cat code)", 3, ""),
        ("$D check good.net >&-", 0, ""),
    ];
    for (line, exit, expected) in cases {
        let (found, _, stderr) = shell(&folder, line);
        assert_eq!(found, *exit, "{line}: {stderr}");
        assert!(stderr.contains(expected), "{line}: {stderr}");
        assert!(!stderr.contains("panicked"), "{line}: {stderr}");
    }
    assert_eq!(std::fs::read_to_string(folder.join("good.net")).expect("the model"), NET);
    let left: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains(".part") || name.contains(".new"))
        .collect();
    assert_eq!(left, [] as [&str; 0], "nothing is left of what was not written");
}

#[test]
fn quiet_runs_print_answers_warnings_and_errors_only() {
    let folder = prepared("strangers_quiet");
    // Its note says what counts as final.
    let net = r#"<pnml><net id="n" type="http://www.pnml.org/version-2009/grammar/ptnet"><page id="g">
        <place id="p"><initialMarking><text>1</text></initialMarking></place><place id="q"/><transition id="t"/>
        <arc id="a" source="p" target="t"/><arc id="b" source="t" target="q"/></page>
        <finalmarkings><marking><place idref="q"><text>1</text></place></marking></finalmarkings></net></pnml>"#;
    std::fs::write(folder.join("final.pnml"), net).expect("the net is written");
    let (exit, loud, _) = shell(&folder, "$D check final.pnml");
    assert!(exit == 0 && loud.contains("Note:"), "{exit}: {loud}");
    let (exit, stdout, stderr) = shell(&folder, "$D check final.pnml -q --trace none.json");
    assert_eq!((exit, stderr.as_str()), (0, ""));
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    // What was asked for and not done is a warning.
    std::fs::write(folder.join("two.net"), "pl a (1)\ntr t a -> b\n").expect("the net is written");
    let (exit, _, stderr) = shell(&folder, "$D check two.net -q --max-states 1 --graph x.dmg");
    assert!(exit == 3 && stderr.contains("warning: the run was not complete, so no graph was written"), "{stderr}");
}

#[test]
fn a_small_stack_breaks_no_reader() {
    let folder = prepared("strangers_stack");
    let deep = |depth: usize| {
        let (open, close) = ("(".repeat(depth), ")".repeat(depth));
        format!(
            "byte x; process P {{ state s; init s; trans s -> s {{ guard {open}x{close} == 1; }}; }} system async;\n"
        )
    };
    for depth in [10, 60, 100, 200, 100_000] {
        std::fs::write(folder.join("deep.dve"), deep(depth)).expect("the model is written");
        let ample = shell(&folder, "$D check deep.dve -q");
        for kib in [128, 256, 400, 600] {
            assert_eq!(shell(&folder, &format!("ulimit -s {kib}; $D check deep.dve -q")), ample, "{depth}, {kib} KiB");
        }
    }
}

#[test]
fn text_in_utf_32_is_called_so() {
    let folder = prepared("strangers_utf32");
    for (name, text) in [("n.net", "pl p (1)\n"), ("n.pnml", "<?xml version='1.0'?><pnml/>"), ("n.dve", "byte x;")] {
        for mark in ["", "\u{FEFF}"] {
            let bytes: Vec<u8> = format!("{mark}{text}").chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
            std::fs::write(folder.join(name), bytes).expect("the file is written");
            let (exit, _, stderr) = shell(&folder, &format!("$D check {name}"));
            assert!(exit == 2 && stderr.contains("the file is in UTF-32"), "{name}: {stderr}");
        }
    }
}

#[test]
fn an_expression_may_begin_with_a_minus() {
    let folder = prepared("strangers_minus");
    let cases: &[(&[&str], i32)] = &[
        (&["--invariant", "-a <= 0"], 0),
        (&["--invariant", "-a < -1"], 1),
        (&["--reach", "-a == -1"], 0),
        (&["--invariant=-a <= 0"], 0),
        (&["--invariant", "- -a >= 0"], 0),
        (&["--invariant", "--1 > 0"], 0),
    ];
    for (asked, exit) in cases {
        let run = run_in(&folder, &[&["check", "good.net", "-q"], *asked].concat(), "");
        assert_eq!(run.exit, *exit, "{asked:?}: {}{}", run.stdout, run.stderr);
    }
    let meant = run_in(&folder, &["check", "good.net", "--invariant", "-a"], "");
    assert!(meant.exit == 2 && meant.stderr.contains("this is a number"), "{}", meant.stderr);
}

#[test]
fn shells_complete_what_options_take() {
    // The completions of fish know values of options only.
    let arguments = ["philosophers", "database-managers", "difference"];
    for (shell, positional) in [("bash", &arguments[..]), ("zsh", &arguments), ("fish", &[])] {
        let script = common::run(&["completions", shell]).stdout;
        let options = ["breadcrumb", "collapse", "compaction", "mdve", "tina", "sweep", "dmg", "interpreter", "depth"];
        for word in options.iter().chain(positional) {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
}
