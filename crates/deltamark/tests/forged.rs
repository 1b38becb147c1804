//! Graphs whose files were made to mislead: their checksums are right and what they say is not. Each is refused with a
//! sentence, or whatever is answered with a trace is true of the model. Nothing panics, hangs or takes memory by a
//! stranger's word.

use deltamark::condensed::OpenOptions;
use deltamark::graph::{Graph, GraphFormat};
use deltamark::{Check, CheckError, Condensed, LoadOptions, Loaded, Unfold, load_with};
use deltamark_core::{Limits, Property, Verdict};
use deltamark_graph::graph::{forge, seal};
use deltamark_graph::{Meta, Way};
use deltamark_testkit::random::Rng;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const RING: &str = "tr t1 p -> q\ntr t2 q -> r\ntr t3 r -> p\ntr stop r -> s\npl p (2)\n";

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("forged").join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A model in a file, its graph, and expressions about it.
struct Case {
    loaded: Loaded,
    path: PathBuf,
    bytes: Vec<u8>,
    expressions: &'static [&'static str],
}

impl Case {
    fn new(folder: &Path, name: &str, unfold: Unfold, expressions: &'static [&'static str]) -> Case {
        let model = folder.join(name);
        let text = match name {
            "ring.net" => RING.into(),
            name => std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name))
                .expect(name),
        };
        std::fs::write(&model, text).expect("a file");
        let options = LoadOptions { unfold, ..LoadOptions::default() };
        let loaded = load_with(&model.to_string_lossy(), &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let path = folder.join(format!("{name}.dmg"));
        Check::loaded(&loaded).graph(path.to_string_lossy()).explore().expect("a run");
        let bytes = std::fs::read(&path).expect("the graph");
        Case { loaded, path, bytes, expressions }
    }

    /// The answers of the model itself, by a search: for each question whether it is answered with a trace.
    fn truths(&self) -> Vec<bool> {
        let report = asked(Check::loaded(&self.loaded), self.expressions).explore_all(true).run().expect("a run");
        report.answers.iter().map(|answer| shown(&answer.verdict)).collect()
    }

    /// Opens other bytes as the graph; what is wrong with them, if they are refused.
    fn open(&self, bytes: &[u8]) -> Result<Condensed, String> {
        std::fs::write(&self.path, bytes).expect("a file");
        Condensed::open(&self.path.to_string_lossy(), &OpenOptions::default()).map_err(|error| error.to_string())
    }

    /// Asks everything of a graph that was opened; what is wrong with it, if it is refused on the way.
    fn ask(&self, graph: &Condensed, truths: &[bool]) -> Result<(), String> {
        let limits = || Limits { time: Some(Duration::from_secs(5)), ..Limits::default() };
        let told = |error: CheckError| match error {
            CheckError::Graph(message) => message,
            other => panic!("a forged file leads to {other:?}"),
        };
        for way in [Way::File, Way::Depth] {
            let report = asked(Check::along(graph, way), self.expressions).limits(limits()).run().map_err(told)?;
            for (answer, truth) in report.answers.iter().zip(truths) {
                assert!(*truth || !shown(&answer.verdict), "{}: {:?}", answer.name, answer.verdict);
            }
        }
        Check::along(graph, Way::Auto).limits(limits()).stats().map_err(told)?;
        graph.components(limits(), Default::default()).map_err(told)?;
        let silent = std::sync::Arc::new(deltamark_core::Silent);
        match Graph::rebuild(graph, 1000, limits(), Default::default(), silent) {
            Ok(drawn) => drawn.write(GraphFormat::Json, &mut std::io::sink()).expect("a sink"),
            Err(deltamark::graph::GraphError::Check(error)) => return Err(told(error)),
            Err(_) => {}
        }
        Ok(())
    }

    fn try_all(&self, bytes: &[u8], truths: &[bool]) -> Result<(), String> {
        let began = Instant::now();
        let tried = self.open(bytes).and_then(|graph| self.ask(&graph, truths));
        assert!(began.elapsed() < Duration::from_secs(5), "{tried:?}");
        tried
    }
}

fn asked<'a>(check: Check<'a>, expressions: &[&str]) -> Check<'a> {
    let ask = |check: Check<'a>, text: &&str| {
        check.invariant(text).and_then(|check| check.reachable(text)).unwrap_or_else(|error| panic!("{error}"))
    };
    expressions.iter().fold(check.deadlock_free().property(Property::fault_free()), ask)
}

/// Whether an answer is one that a trace shows: a violation, or a goal that is reached.
fn shown(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Violated(Some(_), _) | Verdict::Holds(Some(_)))
}

fn cases(folder: &Path) -> Vec<Case> {
    vec![
        Case::new(folder, "ring.net", Unfold::Auto, &["p + q + r + s = 2", "s = 2", "p > 2"]),
        Case::new(folder, "peterson.dve", Unfold::Auto, &["true", "false"]),
        Case::new(folder, "overflow.dve", Unfold::Auto, &["true", "false"]),
        Case::new(folder, "philosophers.lna", Unfold::No, &["true", "deadlock", "false"]),
        Case::new(folder, "mutual-exclusion.lna", Unfold::No, &["true", "deadlock", "false"]),
    ]
}

#[test]
fn every_field_of_the_head_is_a_strangers_word() {
    let folder = folder("head");
    let case = Case::new(&folder, "ring.net", Unfold::Auto, &["p + q + r + s = 2", "s = 2", "p > 2"]);
    let truths = case.truths();
    assert_eq!(case.try_all(&case.bytes, &truths), Ok(()));
    let away = folder.join("away");
    std::fs::create_dir_all(&away).expect("a folder");
    std::fs::write(away.join("ring.net"), RING).expect("a file");
    let (away, twin) = (away.display().to_string(), format!("{}/ring.net", away.display()));
    type Forged<'a> = (&'a str, Box<dyn Fn(&mut Meta) + 'a>, &'a str);
    let row = |name, change: Box<dyn Fn(&mut Meta)>, expected| -> Forged { (name, change, expected) };
    let path = |text: String| -> Box<dyn Fn(&mut Meta)> { Box::new(move |meta| meta.model.path = text.clone()) };
    let options = |name: &'static str, value: &'static str| -> Box<dyn Fn(&mut Meta)> {
        Box::new(move |meta| meta.model.options = vec![(name.into(), value.into())])
    };
    let format =
        |name: &'static str| -> Box<dyn Fn(&mut Meta)> { Box::new(move |meta| meta.model.format = name.into()) };
    let fit = "the numbers in its head do not fit together";
    let edges = "another number of edges";
    let ends = "another number of states without edges";
    let as_it_says = "its model cannot be loaded as it says";
    let rows = [
        row("states less", Box::new(|meta| meta.states -= 1), "damaged"),
        row("states more", Box::new(|meta| meta.states += 1), "damaged"),
        row("no states", Box::new(|meta| meta.states = 0), fit),
        row("many states", Box::new(|meta| meta.states = 1 << 40), "its index is not where it should be"),
        row("states beyond", Box::new(|meta| meta.states = u64::MAX), fit),
        row("edges less", Box::new(|meta| meta.edges -= 1), edges),
        row("edges more", Box::new(|meta| meta.edges += 1), edges),
        row("no edges", Box::new(|meta| meta.edges = 0), edges),
        row("many edges", Box::new(|meta| meta.edges = 1 << 55), edges),
        row("edges beyond", Box::new(|meta| meta.edges = u64::MAX), fit),
        row("ends less", Box::new(|meta| meta.ends = 0), ends),
        row("ends more", Box::new(|meta| meta.ends += 1), ends),
        row("ends beyond", Box::new(|meta| meta.ends = meta.states + 1), fit),
        row("actions less", Box::new(|meta| meta.actions = 1), "damaged"),
        row("actions of no model", Box::new(|meta| meta.actions = 8), "damaged"),
        row("many actions", Box::new(|meta| meta.actions = u32::MAX), "damaged"),
        row("depth less", Box::new(|meta| meta.depth = Some(0)), "another depth"),
        row("depth more", Box::new(|meta| meta.depth = meta.depth.map(|depth| depth + 1)), "another depth"),
        row("depth beyond", Box::new(|meta| meta.depth = Some(meta.states)), fit),
        row("depth not known", Box::new(|meta| meta.depth = None), ""),
        row("depth without levels", Box::new(|meta| meta.levels = false), "another depth"),
        row("not in levels", Box::new(|meta| (meta.levels, meta.depth) = (false, None)), ""),
        row("faults beyond", Box::new(|meta| meta.faulty = Some(meta.states + 1)), fit),
        row("faults that are none", Box::new(|meta| meta.faulty = Some(3)), ""),
        row("unfolding", Box::new(|meta| meta.unfolding = true), ""),
        row("nowhere to begin", Box::new(|meta| meta.initial.clear()), fit),
        row("another beginning", Box::new(|meta| meta.initial = vec![1]), "not numbered level by level"),
        row("beginning beyond", Box::new(|meta| meta.initial = vec![meta.states]), fit),
        row("two beginnings", Box::new(|meta| meta.initial = vec![0, 0]), "more initial states than the model"),
        row("many beginnings", Box::new(|meta| meta.initial = vec![0; 100_000]), "more initial states than the model"),
        row("shorter text", Box::new(|meta| meta.model.length -= 1), "another text"),
        row("text of no length", Box::new(|meta| meta.model.length = 0), "another text"),
        row("text beyond", Box::new(|meta| meta.model.length = u64::MAX), "another text"),
        row("another text", Box::new(|meta| meta.model.hash ^= 1), "another text"),
        row("no path", path(String::new()), "is not there"),
        row("standard input", path("-".into()), "came from standard input"),
        row("a folder", path("..".into()), "is not there"),
        row("a device", path("/dev/zero".into()), "is not there"),
        row("another file", path("/etc/passwd".into()), "another text"),
        row("a long path", path("x".repeat(1 << 20)), "is not there"),
        row("a path of no text", path("\0\u{1b}[2J\n".into()), "is not there"),
        row("the same text elsewhere", path(twin.clone()), ""),
        row("no such format", format("xyz"), "a format `xyz`, which this program does not know"),
        row("no format", format(""), "which this program does not know"),
        row("an ending for a format", format("net"), "which this program does not know"),
        row("another format", format("pnml"), as_it_says),
        row("yet another format", format("dve"), as_it_says),
        row("code", format("so"), "is a shared library, "),
        row("a parameter", options("param", "N=3"), as_it_says),
        row("half a parameter", options("param", "N"), "options that this program does not know"),
        row("unfolding nothing", options("unfold", "yes"), as_it_says),
        row("unfolding nonsense", options("unfold", "maybe"), "options that this program does not know"),
        row("an engine", options("engine", "native"), as_it_says),
        row("an engine of no name", options("engine", "steam"), "options that this program does not know"),
        row("another option", options("format", "so"), "options that this program does not know"),
        row(
            "many options",
            Box::new(|meta| meta.model.options = vec![("param".into(), "N=3".into()); 100_000]),
            as_it_says,
        ),
    ];
    for (name, change, expected) in rows {
        let bytes = forge(&case.bytes, change).expect("a graph");
        match case.try_all(&bytes, &truths) {
            Ok(()) => assert_eq!(expected, "", "{name} was not noticed"),
            Err(message) => {
                assert!(!expected.is_empty() && message.contains(expected), "{name}: {message:?}");
                assert!(!message.contains("a bug"), "{name}: {message}");
            }
        }
    }
    let forged =
        case.open(&forge(&case.bytes, |meta| meta.model.path = twin.clone()).expect("a graph")).expect("a graph");
    assert_eq!(forged.led_away(), Some(twin.as_str()));
    assert!(twin.starts_with(&away));
}

#[test]
fn a_format_is_the_one_that_the_file_has() {
    let folder = folder("format");
    let case = Case::new(&folder, "ring.net", Unfold::Auto, &[]);
    let open = |format: &str| {
        let asked = OpenOptions { format: Some(format.into()), ..OpenOptions::default() };
        Condensed::open(&case.path.to_string_lossy(), &asked).err().map(|error| error.to_string())
    };
    assert_eq!((open("tina"), open("net")), (None, None));
    for other in ["pnml", "so", "nonsense"] {
        let told = open(other).unwrap_or_default();
        assert!(told.contains(&format!("its model is in the format `tina`, not `{other}`")), "{told}");
    }
}

#[test]
fn whatever_bytes_are_changed_no_trace_is_wrong() {
    let folder = folder("bytes");
    let mut random = Rng::new(25);
    for case in cases(&folder) {
        let truths = case.truths();
        assert_eq!(case.try_all(&case.bytes, &truths), Ok(()));
        let mut accepted = 0;
        for _ in 0..400 {
            let mut bytes = case.bytes.clone();
            for _ in 0..1 + random.below(4) {
                let at = 16 + random.below(bytes.len() - 16);
                bytes[at] = match random.below(4) {
                    0 => bytes[at] ^ 1 << random.below(8),
                    1 => 0,
                    2 => 0xff,
                    _ => random.below(256) as u8,
                };
            }
            seal(&mut bytes);
            accepted += u32::from(case.try_all(&bytes, &truths).is_ok());
        }
        // Some changes make another graph that the model takes for one of its own.
        assert!(accepted < 200, "{}: {accepted} of 400 were accepted", case.path.display());
        for cut in (0..case.bytes.len()).step_by(1 + case.bytes.len() / 40) {
            assert!(case.try_all(&case.bytes[..cut], &truths).is_err(), "cut at {cut}");
        }
    }
}

#[test]
fn a_graph_of_another_model_is_refused() {
    let folder = folder("other");
    let case = Case::new(&folder, "ring.net", Unfold::Auto, &["s = 2"]);
    let truths = case.truths();
    // The same places, and other steps: the head is that of the ring's graph, the edges are not.
    let texts = [
        "tr t1 p -> q\ntr t2 q -> r\ntr t3 r -> p\ntr stop r -> s\npl p (3)\n",
        "tr t1 p -> s\ntr t2 q -> r\ntr t3 r -> p\ntr stop r -> s\npl p (2)\n",
        "tr t1 p -> s*9\ntr t2 q -> r\ntr t3 r -> p\ntr stop s -> u\npl p (2)\n",
    ];
    for text in texts {
        let path = folder.join("other.net");
        std::fs::write(&path, text).expect("a file");
        let other = load_with(&path.to_string_lossy(), &LoadOptions::default()).expect("a net");
        let graph = folder.join("other.dmg");
        Check::loaded(&other).graph(graph.to_string_lossy()).explore().expect("a run");
        let mut model = None;
        forge(&case.bytes, |meta| model = Some(meta.model.clone()));
        let bytes = std::fs::read(&graph).expect("a graph");
        let forged = forge(&bytes, |meta| meta.model = model.clone().unwrap_or_default()).expect("a graph");
        let told = case.try_all(&forged, &truths).expect_err(text);
        assert!(told.contains("does not belong to this model"), "{text}: {told}");
    }
}
