//! Damaged files: every model of ours and of the corpus, its XML and each of its inscriptions replaced.
//!
//! Never a panic, never endless: what comes out is a net, or diagnostics that point into the file. A net is made ready to
//! run and its first states are expanded, as far as a small limit goes.

use crate::*;
use deltamark_core::Limits;
use deltamark_testkit::Corpus;

const SIGNS: &[&str] = &[
    "(",
    ")",
    "`",
    "~",
    "\"",
    " let ",
    " end ",
    " case ",
    " of ",
    "::",
    "[",
    "{",
    "#",
    "99999999999",
    "_",
    " fn ",
    ";",
    "<",
    ">",
    "&lt;",
    "&#0;",
    "^^",
    "=",
    "\u{e9}",
    "-1",
    "empty",
    ".all()",
    "0",
    "++",
    " raise ",
    "(*",
];

/// Inscriptions that are wrong or evil.
const RUBBISH: &[&str] = &[
    ")",
    "1`",
    "zz qq",
    "fn x => x",
    "let fun f x = f x in f 0 end",
    "let fun f x = 1 + f (x+1) in f 0 end",
    "1000000000`1",
    "List.tabulate (100000000, fn k => k)",
    "raise Match",
    "hd []",
    "\"text\"",
    "1.5",
    "((((((((((",
    "1 div 0",
    "[[[[]]]]",
    "#x y",
    "let val x = (fn x => (x,x)) in x (x (x (x (x (x (x (x 1))))))) end",
];

fn read(text: &str) {
    let limits = Limits { states: Some(20), ..Limits::default() };
    let control = Control { limits, ..Control::new() };
    let net = match deltamark_cpn::parse_under(text, &[], &[], &control) {
        Ok(net) => net,
        Err(wrong) => return check(&wrong, text),
    };
    assert_eq!(net.validate(), Ok(()));
    match ColouredSystem::under(net, text, &control) {
        Err(wrong) => check(&wrong, text),
        Ok(system) => {
            let spec = deltamark_store::StoreSpec::named("plain");
            let order = deltamark_search::Search::Bfs.order();
            let Ok(store) = deltamark_store::build(&spec, &system, order, control.budget.clone()) else { return };
            deltamark_search::run(
                deltamark_search::Search::Bfs,
                deltamark_search::Task {
                    system: &system,
                    store: store.as_ref(),
                    properties: &[],
                    control: &control,
                    explore_all: false,
                    observer: None,
                },
            );
        }
    }
}

fn check(wrong: &[Diagnostic], text: &str) {
    assert!((1..=20).contains(&wrong.len()), "{}", wrong.len());
    for span in wrong.iter().filter_map(|one| one.span) {
        assert!(span.start <= span.end && span.end <= text.len(), "{span:?}");
        assert!(text.is_char_boundary(span.start), "{span:?}");
    }
}

/// Pieces of a text replaced by signs, `times` times.
fn damage(text: &str, times: usize) {
    let mut random = 88172645463325252u64 ^ text.len() as u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below.max(1) as u64) as usize
    };
    for _ in 0..times {
        let (mut at, mut end) = (next(text.len()), 0);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        end = (at + next(6)).min(text.len()).max(end);
        while !text.is_char_boundary(end) {
            end += 1;
        }
        read(&format!("{}{}{}", &text[..at], SIGNS[next(SIGNS.len())], &text[end..]));
    }
}

/// The starts and ends of texts between `<text…>` and `</text>`, and of `<ml>`.
fn inscriptions(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for tag in ["text", "ml"] {
        for (at, _) in text.match_indices(&format!("<{tag}")) {
            let Some(open) = text[at..].find('>').map(|end| at + end + 1) else { continue };
            if text[..open].ends_with("/>") {
                continue;
            }
            if let Some(close) = text[open..].find('<') {
                found.push((open, open + close));
            }
        }
    }
    found
}

/// Each inscription replaced by rubbish; `every` takes a part of them.
fn replace(text: &str, every: usize) {
    for (number, (from, to)) in inscriptions(text).into_iter().enumerate() {
        for (other, rubbish) in RUBBISH.iter().enumerate() {
            if (number + other) % every == 0 {
                let rubbish = rubbish.replace('<', "&lt;").replace('>', "&gt;");
                read(&format!("{}{rubbish}{}", &text[..from], &text[to..]));
            }
        }
    }
}

fn own() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    ["alternating-bit.cpn", "resources.cpn"]
        .iter()
        .map(|name| std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}")))
        .collect()
}

#[test]
fn our_models_damaged_are_refused_or_run() {
    for text in own() {
        damage(&text, 60);
        replace(&text, 17);
    }
}

#[test]
#[ignore = "long: every file of the corpus and every inscription"]
fn every_file_damaged_is_refused_or_runs() {
    for text in own() {
        damage(&text, 2000);
        replace(&text, 1);
    }
    let Some(corpus) = Corpus::find("every_file_damaged_is_refused_or_runs") else { return };
    let mut names: Vec<_> = std::fs::read_dir(corpus.file("cpn", "")).expect("a folder").flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    for entry in names.iter().filter(|entry| entry.path().extension().is_some_and(|ending| ending == "cpn")) {
        let bytes = std::fs::read(entry.path()).expect("a file");
        let latin = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
        let text = String::from_utf8(bytes).unwrap_or_else(|error| latin(error.as_bytes()));
        damage(&text, 200);
        replace(&text, 5);
    }
}

/// Code goes down into values and types: what is nested beyond reason is refused, and what is long is not nested.
#[test]
fn what_is_nested_or_very_long_never_overflows_the_stack() {
    let told = |ml: &str, exp: &str| {
        let text = file(&format!("{BASE} {ml}"), &[("P", "INT", exp)], &[], &[]);
        load(&text).err().map(|wrong| wrong[0].message.clone()).unwrap_or_default()
    };
    let tree = "datatype t = A of t | L of t list | B;";
    let many = "List.tabulate (200000, fn k => k)";
    for build in ["A t", "L [t]"] {
        let exp = format!("case foldl (fn (k, t) => {build}) B ({many}) of _ => 1");
        assert!(told(tree, &exp).contains("values are nested too deeply"), "{build}");
    }
    // Each function applies the one before twice: 2^19 lists, one in the other.
    let twice = (1..20).map(|k| format!("fun f{k} x = f{} (f{} x);", k - 1, k - 1)).collect::<String>();
    assert!(told(&format!("fun f0 x = [x]; {twice}"), "(f19 1; 1)").contains("values are nested too deeply"));
    let chain = (1..2000).map(|k| format!("val p{k} = [p{}];", k - 1)).collect::<String>();
    assert!(told(&format!("val p0 = [1]; {chain}"), "size p1999").contains("cannot be used"));
    let sets = (1..2000).map(|k| format!("colset Z{k} = list Z{};", k - 1)).collect::<String>();
    assert!(told(&format!("colset Z0 = int; {sets}"), "1").contains("nested too deeply"));
    // A function that knows a long list is not nested.
    assert_eq!(told("", &format!("let val all = {many} in (fn k => cf (k, all)) 7 end")), "");
    assert!(told(&format!("fun f {} = 1;", "x ".repeat(20_000)), "f 1").contains("more than 200 arguments in a row"));
    let with = |body: &str, many: usize| {
        let more = (1..many).map(|k| format!("val p{k} = p{}", k - 1)).collect::<Vec<_>>().join(" ");
        format!("let val p0 = 1 {more} in {body} end")
    };
    assert_eq!(told("", &with("p149", 150)), "");
    for exp in [with("1", 20_000), with(&with("1", 150), 150)] {
        assert!(told("", &exp).contains("more than 200 declarations in a row"), "{exp:.50}");
    }
    let fields = (0..20_000).map(|k| format!("a{k}={k}")).collect::<Vec<_>>().join(",");
    assert_eq!(told("", &format!("#a7 {{{fields}}}")), "");
    let guard = format!("[{}]", vec!["n = n"; 5_000].join(","));
    let text = file(BASE, &[("P", "INT", "1`1")], &[("T", &guard, "")], &[("PtoT", "T", "P", "n")]);
    assert_eq!(explore(&load(&text).unwrap_or_else(|wrong| panic!("{wrong:?}"))).edges.len(), 1);
}

#[test]
fn long_chains_are_read_or_refused_and_never_overflow_the_stack() {
    let chain = |one: &str, operator: &str, times: usize| vec![one; times].join(operator);
    let refused = |exp: &str| {
        let text = file(BASE, &[("P", "INT", exp)], &[], &[]);
        load(&text).err().map(|wrong| wrong[0].message.clone()).unwrap_or_default()
    };
    for (one, operator) in [("1", "+"), ("1", "*"), ("1", " : INT :"), ("1", " handle _ =>"), ("1", "::"), ("1", "=")] {
        assert!(!refused(&chain(one, operator, 40_000)).is_empty(), "{operator}");
    }
    for exp in [chain("INT", " : INT", 2), format!("1 : {}", chain("INT", " list ", 10_000)), "(".repeat(50_000)] {
        assert!(!refused(&exp).is_empty());
    }
    // Associative operators have no such limit.
    assert_eq!(refused(&chain("1`1", "++", 20_000)), "");
    let truths = format!("if {} then 1 else {}", chain("true", " andalso ", 20_000), "2");
    assert_eq!(refused(&truths), "");
    assert_eq!(refused(&format!("size ({})", chain("1`1", "++", 5_000))), "");
}
