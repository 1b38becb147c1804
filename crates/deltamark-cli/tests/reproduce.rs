//! `deltamark reproduce` measures, prints and writes.

mod common;

use common::{folder, run};
use serde_json::Value;

#[test]
fn a_paper_is_measured_printed_and_written() {
    let folder = folder("reproduce");
    let path = folder.join("difference").display().to_string();
    let run = run(&["reproduce", "difference", "--quick", "--quiet", "--output", &path]);
    assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    let report = std::fs::read_to_string(folder.join("difference/report.json")).expect("it was written");
    let report: Value = serde_json::from_str(&report).expect("it is JSON");
    assert_eq!((&report["paper"], &report["complete"]), (&"difference".into(), &true.into()));
    let grids = report["grids"].as_array().expect("tables");
    for grid in &grids[..3] {
        let rows = grid["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 6, "every net of the paper");
        for row in rows {
            assert_eq!(row["states"], 500, "{row}");
            let cells = row["cells"].as_array().expect("cells");
            assert!(cells.len() == 6 && cells.iter().all(|cell| cell["ours"]["value"].is_number()), "{row}");
        }
    }
    // The paper saves 95 per cent of large states; so do we, at least.
    let large = &grids[0]["rows"][5]["cells"];
    let bytes = |cell: usize| large[cell]["ours"]["value"].as_f64().expect("a number");
    assert!(bytes(5) < bytes(0) / 20.0, "{large}");
    let page = std::fs::read_to_string(folder.join("difference/report.html")).expect("it was written");
    for part in ["1500 places, 2000 tokens", "201,896", "3,992,000"] {
        assert!(page.contains(part) && run.stdout.contains(part), "{part}");
    }
}

#[test]
fn what_cannot_be_measured_is_told() {
    let folder = folder("reproduce-not");
    let path = folder.join("tree").display().to_string();
    let without = run(&["reproduce", "tree", "--quiet", "--output", &path]);
    assert_eq!(without.exit, 3);
    assert_eq!(without.stdout, "", "no table of nothing");
    assert!(without.stderr.contains("`tree` is measured with the models of BEEM"), "{}", without.stderr);
    assert!(without.stderr.contains("--models DIR"), "{}", without.stderr);
    let other = run(&["reproduce", "tree", "--models", ".", "--output", &path]);
    assert_eq!((other.exit, other.stdout.as_str()), (2, ""));
    assert!(other.stderr.contains("the folder `.` holds none of the models of BEEM"), "{}", other.stderr);
    assert!(other.stderr.contains("files such as anderson.5.dve"), "{}", other.stderr);
    assert!(!folder.join("tree").exists(), "nothing was begun");
    let wrong = run(&["reproduce", "tree", "--models", "/no/such/folder", "--output", &path]);
    assert_eq!(wrong.exit, 2);
    assert!(wrong.stderr.contains("no folder"), "{}", wrong.stderr);
    let paper = run(&["reproduce", "combak"]);
    assert_eq!(paper.exit, 2);
    assert!(paper.stderr.contains("comback"), "{}", paper.stderr);
}
