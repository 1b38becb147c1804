//! The examinations of the Model Checking Contest: against the answers that its tools gave in 2023, and on a net whose
//! answers are worked out by hand.

use deltamark::control::Silent;
use deltamark::mcc::{Exam, Examination};
use deltamark::{Cancel, Check, Limits, RouteKind, Verdict, load};
use deltamark_testkit::Corpus;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The lines of an examination, by id: the second word of each, and the third.
fn answers(model: &str, examination: &str, file: Option<(&str, &str)>, time: Option<u64>) -> HashMap<String, String> {
    let model = load(model, None).unwrap_or_else(|error| panic!("{model}: {error}"));
    let exam = Exam {
        model: &model,
        examination: Examination::by_name(examination).expect("the contest's name"),
        id: examination.into(),
        file,
        limits: Limits { time: time.map(Duration::from_secs), memory: Some(4 << 30), ..Limits::default() },
        cancel: Cancel::new(),
        listener: Arc::new(Silent),
        since: Instant::now(),
    };
    let answers = exam.run().unwrap_or_else(|error| panic!("{examination}: {error}"));
    let words = |line: String| {
        let mut words = line.split(' ').skip(1).map(String::from);
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    };
    answers.iter().map(|answer| words(answer.line())).collect()
}

/// The answers to the formulas of a file, each on the fly over this store by this number of threads.
fn on_the_fly(model: &str, store: &str, threads: usize, file: (&str, &str), time: u64) -> HashMap<String, String> {
    let model = load(model, None).unwrap_or_else(|error| panic!("{model}: {error}"));
    let limits = Limits { time: Some(Duration::from_secs(time)), memory: Some(4 << 30), ..Limits::default() };
    let check = Check::loaded(&model).contest_properties(file.0, file.1);
    let check = check.unwrap_or_else(|error| panic!("{}: {error}", file.0)).limits(limits);
    let check = if threads > 1 { check.threads(threads) } else { check };
    let run = check.store(store.parse().expect("a store")).route(RouteKind::Fly).run();
    let report = run.unwrap_or_else(|error| panic!("{}: {error}", file.0));
    let word = |verdict: &Verdict| match verdict {
        Verdict::Holds(_) => "TRUE",
        Verdict::Violated(..) => "FALSE",
        _ => "CANNOT_COMPUTE",
    };
    report.answers.iter().map(|answer| (answer.name.clone(), word(&answer.verdict).to_string())).collect()
}

/// Compares the answers for all nets of these sizes; each examination has this many seconds.
fn compare(states: std::ops::RangeInclusive<u64>, examinations: &[&str], least: usize, time: u64) {
    compare_by(states, examinations, least, time, None);
}

/// The same; formulas are answered on the fly over a store, if there is one.
fn compare_by(
    states: std::ops::RangeInclusive<u64>,
    examinations: &[&str],
    least: usize,
    time: u64,
    store: Option<(&str, usize)>,
) {
    let Some(corpus) = Corpus::find("the contest's answers") else { return };
    let table = corpus.file("logic", "mcc2023/verdicts.tsv");
    let Ok(text) = std::fs::read_to_string(&table) else {
        return deltamark_testkit::corpus::skipped("the contest's answers", &table.display().to_string());
    };
    let mut expected: BTreeMap<(&str, &str), Vec<(&str, &str)>> = BTreeMap::new();
    for row in text.lines().skip(1) {
        let cells: Vec<&str> = row.split('\t').collect();
        if cells[3] != "?" && examinations.contains(&cells[0]) {
            expected.entry((cells[1], cells[0])).or_default().push((cells[2], cells[3]));
        }
    }
    let (compared, missing) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let sized =
        |row: &deltamark_testkit::corpus::Row| row.number("states").is_some_and(|count| states.contains(&count));
    corpus.check_rows("pnml", 1, sized, |row| {
        let net = row.text("model").unwrap_or_default();
        let model = corpus.file("pnml", &format!("{net}.pnml")).display().to_string();
        let mut wrong = Vec::new();
        for &examination in examinations {
            let Some(rows) = expected.get(&(net, examination)) else { continue };
            let path = corpus.file("logic", &format!("mcc2023/{net}/{examination}.xml"));
            let file = std::fs::read_to_string(&path).ok();
            let name = path.display().to_string();
            let found = match (store, &file) {
                (Some((store, threads)), Some(text)) => on_the_fly(&model, store, threads, (&name, text), time),
                _ => answers(&model, examination, file.as_deref().map(|text| (name.as_str(), text)), Some(time)),
            };
            for (id, verdict) in rows {
                let given = found.get(*id).or_else(|| found.get(examination)).map_or("nothing", String::as_str);
                match given {
                    "CANNOT_COMPUTE" => _ = missing.fetch_add(1, Relaxed),
                    _ if given == *verdict => _ = compared.fetch_add(1, Relaxed),
                    _ => wrong.push(format!("{net} {id}: {given} instead of {verdict}")),
                }
            }
        }
        wrong
    });
    let (compared, missing) = (compared.into_inner(), missing.into_inner());
    println!("{compared} answers are those of the contest, {missing} were not found in time");
    assert!(compared >= least, "{compared} answers were compared");
}

const ALL: &[&str] = &[
    "StateSpace",
    "ReachabilityDeadlock",
    "ReachabilityCardinality",
    "ReachabilityFireability",
    "UpperBounds",
    "CTLCardinality",
    "CTLFireability",
    "LTLCardinality",
    "LTLFireability",
    "OneSafe",
    "QuasiLiveness",
    "StableMarking",
    "Liveness",
];

#[test]
fn small_nets_have_the_answers_of_the_contest() {
    compare(2..=400, ALL, 1000, 60);
}

const LTL: &[&str] = &["LTLCardinality", "LTLFireability"];

#[test]
fn small_nets_have_the_answers_of_the_contest_on_the_fly() {
    compare_by(2..=150, LTL, 200, 60, Some(("plain", 1)));
    compare_by(2..=150, LTL, 200, 60, Some(("plain", 2)));
    compare_by(2..=150, LTL, 200, 60, Some(("delta", 1)));
}

#[test]
#[ignore = "takes minutes in a release build"]
fn larger_nets_have_the_answers_of_the_contest_on_the_fly() {
    compare_by(2..=20_000, LTL, 1_000, 300, Some(("plain", 1)));
    compare_by(2..=20_000, LTL, 1_000, 300, Some(("plain", 2)));
    compare_by(2..=2_000, LTL, 500, 300, Some(("compact", 2)));
    compare_by(2..=2_000, LTL, 500, 300, Some(("delta", 1)));
    compare_by(2..=2_000, LTL, 500, 300, Some(("difference", 1)));
}

#[test]
#[ignore = "takes a quarter of an hour in a release build"]
fn nets_up_to_three_million_states_have_the_answers_of_the_contest() {
    compare(2..=3_000_000, ALL, 15_000, 60);
}

#[test]
fn a_file_is_read_by_ids_and_deadlocks_are_those_of_its_logic() {
    // One step, from a place called by the id of the other one, into a deadlock.
    let net = r#"<pnml xmlns="http://www.pnml.org/version-2009/grammar/pnml"><net id="n" type="http://www.pnml.org/version-2009/grammar/ptnet"><page id="g">
        <place id="a"><name><text>b</text></name><initialMarking><text>1</text></initialMarking></place>
        <place id="b"><name><text>a</text></name></place>
        <transition id="t"><name><text>u</text></name></transition>
        <arc id="x" source="a" target="t"/><arc id="y" source="t" target="b"/></page></net></pnml>"#;
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcc");
    std::fs::create_dir_all(&folder).expect("a folder");
    let model = folder.join("model.pnml");
    std::fs::write(&model, net).expect("a file");
    let count = |place: &str| format!("<tokens-count><place>{place}</place></tokens-count>");
    let least = |number: u32, place: &str| {
        format!("<integer-le><integer-constant>{number}</integer-constant>{}</integer-le>", count(place))
    };
    let rows = [
        ("CTL-00", "<exists-path><finally>{b}</finally></exists-path>", "TRUE"),
        ("CTL-01", "<all-paths><globally>{a}</globally></all-paths>", "FALSE"),
        ("CTL-02", "<all-paths><finally><all-paths><next>{a}</next></all-paths></finally></all-paths>", "TRUE"),
        ("CTL-03", "<all-paths><next><exists-path><next>{b}</next></exists-path></next></all-paths>", "FALSE"),
        (
            "CTL-04",
            "<exists-path><next><negation><exists-path><next>{b}</next></exists-path></negation></next></exists-path>",
            "TRUE",
        ),
        ("LTL-05", "<all-paths><finally><globally>{b}</globally></finally></all-paths>", "TRUE"),
        ("LTL-06", "<all-paths><next><next>{b}</next></next></all-paths>", "TRUE"),
        (
            "LTL-07",
            "<all-paths><until><before>{a}</before><reach><is-fireable><transition>t</transition></is-fireable></reach></until></all-paths>",
            "TRUE",
        ),
        (
            "LTL-08",
            "<all-paths><globally><is-fireable><transition>t</transition></is-fireable></globally></all-paths>",
            "FALSE",
        ),
    ];
    let properties: String = rows
        .iter()
        .map(|(id, formula, _)| {
            let formula = formula.replace("{a}", &least(1, "a")).replace("{b}", &least(1, "b"));
            format!("<property><id>{id}</id><formula>{formula}</formula></property>")
        })
        .collect();
    let file = format!(r#"<property-set xmlns="http://mcc.lip6.fr/">{properties}</property-set>"#);
    let path = model.display().to_string();
    let found = answers(&path, "CTLCardinality", Some(("file", &file)), None);
    for (id, formula, expected) in rows {
        assert_eq!(found.get(id).map(String::as_str), Some(expected), "{id}: {formula}");
    }
    for (examination, expected) in [
        ("OneSafe", "TRUE"),
        ("QuasiLiveness", "TRUE"),
        ("StableMarking", "FALSE"),
        ("Liveness", "FALSE"),
        ("ReachabilityDeadlock", "TRUE"),
    ] {
        assert_eq!(answers(&path, examination, None, None)[examination], expected, "{examination}");
    }
    let figures = answers(&path, "StateSpace", None, None);
    let figure = |name: &str| figures[name].as_str();
    let all = ["STATES", "TRANSITIONS", "MAX_TOKEN_PER_MARKING", "MAX_TOKEN_IN_PLACE"].map(figure);
    assert_eq!(all, ["2", "1", "1", "1"]);
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn wrong_files_are_refused_by_name() {
    let model = load("../../models/philosophers-5.pnml", None).expect("a net");
    let rows = [
        ("<exists-path><eventually/></exists-path>", "<eventually> is not known here"),
        ("<exists-path></exists-path>", "<exists-path> has exactly one element inside"),
        ("<finally><is-fireable><transition>no</transition></is-fireable></finally>", "no transition of the id `no`"),
        (
            "<integer-le><integer-constant>1</integer-constant></integer-le>",
            "<integer-le> has exactly two elements inside",
        ),
        (
            "<integer-le><integer-constant>x</integer-constant><integer-constant>1</integer-constant></integer-le>",
            "`x` is no number of 32 bits",
        ),
        (
            "<finally><is-fireable><transition>take_left_1</transition></is-fireable></finally>",
            "has no path quantifier around it",
        ),
        ("<until><before/></until>", "<until> has <before> and <reach> inside"),
    ];
    for (formula, expected) in rows {
        let file = format!("<property-set><property><id>x</id><formula>{formula}</formula></property></property-set>");
        let error = deltamark::Check::loaded(&model).properties("file", &file).map(|_| ()).expect_err(formula);
        assert!(error.to_string().contains(expected), "{formula}: {error}");
    }
    let ltl = "<property-set><property><id>LTL</id><formula><all-paths><exists-path><finally><is-fireable>\
               <transition>take_left_1</transition></is-fireable></finally></exists-path></all-paths></formula></property></property-set>";
    let error = deltamark::Check::loaded(&model).properties("file", ltl).map(|_| ()).expect_err("two quantifiers");
    assert!(error.to_string().contains("one path quantifier"), "{error}");
    let bound = "<property-set><property><id>b</id><formula><place-bound><place>eating_1</place></place-bound>\
                 </formula></property></property-set>";
    let error = deltamark::Check::loaded(&model).properties("file", bound).map(|_| ()).expect_err("a number");
    assert!(error.to_string().contains("asks for a number"), "{error}");
    let twice = bound.replace("</property-set>", &bound.replace("<property-set>", ""));
    let error = deltamark::Check::loaded(&model).properties("file", &twice).map(|_| ()).expect_err("the same id");
    assert!(error.to_string().contains("two properties called `b`"), "{error}");
}

#[test]
fn formulas_of_another_kind_are_not_left_out() {
    let model = load("../../models/philosophers-5.pnml", None).expect("a net");
    let file = |formula: &str| {
        format!("<property-set><property><id>x</id><formula>{formula}</formula></property></property-set>")
    };
    let number = file("<place-bound><place>eating_1</place></place-bound>");
    let truth = file(
        "<all-paths><globally><is-fireable><transition>take_left_1</transition></is-fireable></globally></all-paths>",
    );
    for (examination, text) in
        [("LTLCardinality", &number), ("ReachabilityCardinality", &number), ("UpperBounds", &truth)]
    {
        let exam = Exam {
            model: &model,
            examination: Examination::by_name(examination).expect("an examination"),
            id: "x".into(),
            file: Some(("file", text)),
            limits: Limits::default(),
            cancel: Cancel::new(),
            listener: Arc::new(Silent),
            since: Instant::now(),
        };
        let error = exam.run().expect_err(examination);
        assert!(error.to_string().contains("`x` of file asks"), "{examination}: {error}");
    }
}

#[test]
fn nothing_in_a_file_is_skipped_in_silence() {
    let model = load("../../models/philosophers-5.pnml", None).expect("a net");
    let whole = "<property-set xmlns='http://mcc.lip6.fr/'><property><id>CTL-1</id><description>for <b>people</b></description>\
                 <formula><exists-path><until><before><negation><conjunction><is-fireable><transition>take_left_1</transition>\
                 </is-fireable></conjunction></negation></before><reach><integer-le><integer-constant>12</integer-constant>\
                 <tokens-count><place>eating_1</place></tokens-count></integer-le></reach></until></exists-path></formula>\
                 </property></property-set>";
    let read = |text: &str| deltamark::Check::loaded(&model).properties("file", text).map(|_| ());
    read(whole).expect("it is right");
    let rows = [
        ("<formula>", "<formula negated='true'>", "the attribute `negated` has no meaning in <formula>"),
        (
            "<integer-constant>",
            "<integer-constant value='3'>",
            "the attribute `value` has no meaning in <integer-constant>",
        ),
        (">12<", ">1<!-- -->2<", "the text of <integer-constant> is in several parts"),
        (">12<", ">1<a/>2<", "<a> has no meaning in <integer-constant>"),
        (">12<", "><", "the text of <integer-constant> is empty"),
        ("<conjunction>", "<conjunction>not", "text has no meaning in <conjunction>"),
        ("<place>eating_1</place>", "", "<tokens-count> has nothing inside"),
        ("<transition>take_left_1</transition>", "", "<is-fireable> has nothing inside"),
        ("<id>", "<id>CTL-0</id><id>", "<id> is there twice"),
        (
            "<formula>",
            "<formula><is-fireable><transition>take_left_1</transition></is-fireable></formula><formula>",
            "<formula> is there twice",
        ),
        ("<reach>", "<reach><integer-le/></reach><reach>", "<reach> is there twice"),
        ("<tokens-count>", "<tokens-count xmlns='else'>", "<tokens-count> is of another namespace"),
        ("</property-set>", "<question/></property-set>", "<question> is not known here"),
    ];
    for (from, to, expected) in rows {
        assert!(whole.contains(from), "{from}");
        let error = read(&whole.replacen(from, to, 1)).expect_err(to);
        assert!(error.to_string().contains(expected), "{to}: {error}");
    }
    let error = read("<property-set/>").expect_err("no property");
    assert!(error.to_string().contains("this file holds no property"), "{error}");
    // Every renamed element is refused, but those for people.
    let (mut refused, mut harmless) = (0, 0);
    for (at, _) in whole.match_indices('<').filter(|(at, _)| !whole[at + 1..].starts_with(['/', '!'])) {
        let name = whole[at + 1..].split(|c: char| c != '-' && !c.is_ascii_alphabetic()).next().expect("a name");
        let (before, after) = whole.split_at(at);
        let close = format!("</{name}>");
        let changed = after.replacen(name, &format!("{name}s"), 1).replacen(&close, &format!("</{name}s>"), 1);
        match read(&format!("{before}{changed}")) {
            Err(_) => refused += 1,
            Ok(()) => {
                assert_eq!(name, "b");
                harmless += 1;
            }
        }
    }
    assert_eq!((refused, harmless), (17, 1));
}

#[test]
fn a_run_that_must_end_while_formulas_are_read_has_no_answer() {
    let model = load("../../models/philosophers-5.pnml", None).expect("a net");
    let file = "<property-set><property><id>CTL-1</id><formula><exists-path><finally><is-fireable><transition>take_left_1\
                </transition></is-fireable></finally></exists-path></formula></property></property-set>";
    let cancel = Cancel::new();
    cancel.cancel();
    let exam = Exam {
        model: &model,
        examination: Examination::by_name("CTLFireability").expect("the contest's name"),
        id: "x".into(),
        file: Some(("file", file)),
        limits: Limits::default(),
        cancel,
        listener: Arc::new(Silent),
        since: Instant::now(),
    };
    let error = exam.run().expect_err("it must end");
    assert!(matches!(error, deltamark::CheckError::Stopped(_)), "{error}");
}
