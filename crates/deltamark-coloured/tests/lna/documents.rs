//! Nets in the documents are nets.

use super::explore;

#[test]
fn nets_on_the_page_about_the_language_can_be_run() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lna.md");
    let page = std::fs::read_to_string(path).expect("docs/lna.md");
    let blocks: Vec<&str> = page.split("\n```lna\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let found = explore(block, "");
        assert_eq!((found.states, found.edges, found.deadlocks, found.fault), (27, 54, 1, None), "{block}");
    }
}
