//! Reductions: states and time, by question and by what is reduced.
//!
//! In: the P/T nets and the DVE models of the outside corpus, how large they may be, a time limit. Out: for each model and question the states explored and
//! the processor time by each kind of reduction, then means over all. What stays true: every run is a process of its own; a verdict that differs from that of the
//! full run makes the command fail; times include finding the reduction and taking samples.
//!
//! The questions: whether there is a deadlock; whether a place can hold more than any place ever does (at two places; never, so all is explored); whether
//! two places can be marked together; whether a transition in the middle of the list can fire where the one that is listed last cannot. Of a DVE model variables are asked
//! about instead of places, and locations of processes where places are marked together.
//!
//! ```text
//! cargo run --release -p deltamark-bench -- reduce                              deadlock and four goals, models up to a million states
//! cargo run --release -p deltamark-bench -- reduce --of dve --questions deadlock --kinds stubborn,auto
//! cargo run --release -p deltamark-bench -- reduce --questions deadlock --most 50000000 --limit 120
//! ```

use crate::process::Failure;
use crate::stores::{markdown, table, thousands};
use deltamark::{Check, Limits, Reduce, Report};
use deltamark_core::ObservableKind;
use deltamark_reproduce::thread_time;
use deltamark_store::StoreSpec;
use deltamark_testkit::Corpus;
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What to measure.
#[derive(clap::Args)]
pub struct ReduceOptions {
    /// Parts of the corpus: `pnml`, `dve`
    #[arg(long, value_delimiter = ',', default_value = "pnml,dve")]
    of: Vec<String>,
    /// Models whose names contain one of these words, instead of all
    #[arg(long, value_delimiter = ',')]
    models: Vec<String>,
    /// Models of at least this many states
    #[arg(long, default_value_t = 0)]
    least: u64,
    /// Models of at most this many states
    #[arg(long, default_value_t = 1_000_000)]
    most: u64,
    /// Questions to ask, of `deadlock`, `goal1` to `goal4`
    #[arg(long, value_delimiter = ',', default_value = "deadlock,goal1,goal2,goal3,goal4")]
    questions: Vec<String>,
    /// What to reduce by; `off` is what all others are compared with
    #[arg(long, value_delimiter = ',', default_value = "stubborn,structure,all,auto")]
    kinds: Vec<Reduce>,
    /// Seconds a run may take
    #[arg(long, default_value_t = 20)]
    limit: u64,
    /// Print the tables as Markdown
    #[arg(long)]
    markdown: bool,
}

/// One question.
#[derive(clap::Args)]
pub struct QuestionOptions {
    /// A model of the corpus, with its ending
    model: String,
    /// `deadlock`, or a goal
    question: String,
    /// What to reduce by
    kind: Reduce,
    /// Seconds it may take
    #[arg(default_value_t = 60)]
    limit: u64,
}

/// What one run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answered {
    verdict: String,
    states: u64,
    /// Processor seconds of the run, with loading.
    seconds: f64,
    /// What was reduced by, if anything.
    kind: Option<String>,
    stopped: bool,
}

/// Asks, and prints one line of JSON.
pub fn single(options: &QuestionOptions) -> Result<(), Failure> {
    let corpus = Corpus::find("deltamark-bench question").ok_or_else(|| "there is no corpus".to_string())?;
    let (_, part) = options.model.rsplit_once('.').ok_or_else(|| "the model has no ending".to_string())?;
    let path = corpus.file(part, &options.model);
    let model = deltamark::load(&path.to_string_lossy(), None).map_err(|error| error.to_string())?;
    let check = asked(Check::loaded(&model), &model, &options.question)?;
    let limits = Limits { time: Some(Duration::from_secs(options.limit)), ..Limits::default() };
    let check = check.reduce(options.kind).store(StoreSpec::named("plain")).threads(1).limits(limits);
    let report: Report = check.run().map_err(|error| error.to_string())?;
    let seconds = thread_time().unwrap_or_default();
    let answered = Answered {
        verdict: report.answers[0].verdict.word().into(),
        states: report.statistics.states,
        seconds,
        kind: report.reduction.as_ref().map(|reduction| reduction.kind.into()),
        stopped: report.overall() == deltamark::Overall::NoAnswer,
    };
    println!("{}", serde_json::to_string(&answered).map_err(|error| error.to_string())?);
    Ok(())
}

/// The same check with a question.
fn asked<'a>(check: Check<'a>, model: &'a deltamark::Loaded, question: &str) -> Result<Check<'a>, String> {
    let observe = model.system.observe().ok_or("the model has no names")?;
    let of_kind = |kind: ObservableKind| -> Vec<String> {
        let is = |name: &String| observe.resolve(name).is_some_and(|found| found.kind == kind);
        observe.names().into_iter().filter(is).collect()
    };
    let (numbers, truths, transitions) =
        (of_kind(ObservableKind::Int), of_kind(ObservableKind::Bool), observe.action_names());
    if numbers.is_empty() || transitions.is_empty() {
        return Err("NOT ASKED: the model has no number or no action to ask about".into());
    }
    let at = |list: &[String], part: usize, of: usize| quoted(&list[(list.len() - 1) * part / of]);
    let more = u32::MAX;
    let text = match question {
        "deadlock" => return Ok(check.deadlock_free()),
        "goal1" => format!("{} >= {more}", at(&numbers, 1, 4)),
        "goal2" => format!("{} >= {more}", at(&numbers, 3, 4)),
        "goal3" if truths.is_empty() => format!("{} >= 1 and {} >= 1", at(&numbers, 1, 3), at(&numbers, 2, 3)),
        "goal3" => format!("{} and {}", at(&truths, 1, 3), at(&truths, 2, 3)),
        "goal4" => format!("fireable({}) and not fireable({})", at(&transitions, 1, 2), at(&transitions, 1, 1)),
        other => return Err(format!("there is no question `{other}`")),
    };
    check.reachable(&text).map_err(|error| error.to_string())
}

/// A name as it is written in properties.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

fn measure(net: &str, question: &str, kind: Reduce, limit: u64) -> Result<Answered, Failure> {
    let broken = |error: std::io::Error| Failure::Broken(error.to_string());
    let program = std::env::current_exe().map_err(broken)?;
    let arguments = ["question", net, question, kind.name(), &limit.to_string()];
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(broken)?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(Failure::Refused(format!("{net}, {question}, {kind}: {message}")));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Failure::Broken(error.to_string()))
}

/// Factors of one kind of reduction over models and questions of one sort.
#[derive(Default)]
struct Factors {
    states: Vec<f64>,
    times: Vec<f64>,
    /// The worst times, with what was asked.
    worst: Option<(f64, String)>,
    /// Answers where the full run had none.
    gained: usize,
}

/// Measures and prints.
pub fn run(options: &ReduceOptions) -> Result<(), Failure> {
    let corpus = Corpus::find("deltamark-bench reduce").ok_or_else(|| "there is no corpus".to_string())?;
    let mut rows: Vec<(&str, u64, String)> = Vec::new();
    for part in &options.of {
        for row in corpus.expected(part) {
            let (Some(model), Some(states)) = (row.text("model"), row.number("states")) else { continue };
            let wanted = options.models.is_empty() || options.models.iter().any(|word| model.contains(word));
            let reducible = row.text("kind").is_none_or(|kind| kind == "PT");
            if wanted && reducible && (options.least..=options.most).contains(&states) {
                rows.push((part, states, format!("{model}.{part}")));
            }
        }
    }
    rows.sort();
    let mut cells = Vec::new();
    let mut sums: Vec<(String, Reduce, Factors)> = Vec::new();
    let mut wrong = Vec::new();
    for (number, (part, _, net)) in rows.iter().enumerate() {
        for question in &options.questions {
            let full = match measure(net, question, Reduce::Off, options.limit) {
                Err(Failure::Refused(message)) if message.contains("NOT ASKED") => continue,
                found => found?,
            };
            let sort = format!("{part}, {}", if question == "deadlock" { "deadlock" } else { "goals" });
            let mut line = vec![net.clone(), question.clone(), full.verdict.clone(), show(&full)];
            for &kind in &options.kinds {
                let found = match measure(net, question, kind, options.limit) {
                    Err(Failure::Refused(message)) if message.contains("is not possible here") => {
                        line.push("–".into());
                        continue;
                    }
                    found => found?,
                };
                line.push(show(&found));
                if !(found.stopped || full.stopped) && found.verdict != full.verdict {
                    wrong.push(format!("{net}, {question}, {kind}: {} and not {}", found.verdict, full.verdict));
                }
                count(&mut sums, &sort, kind, &full, &found, &format!("{net}, {question}"));
            }
            cells.push(line);
        }
        eprintln!("{}/{} {net}", number + 1, rows.len());
    }
    let mut header: Vec<String> = ["model", "question", "verdict", "full"].map(String::from).to_vec();
    header.extend(options.kinds.iter().map(|kind| kind.to_string()));
    print(options, &header, cells);
    summarise(options, &sums);
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Wrong(wrong.join("\n"))) }
}

fn show(found: &Answered) -> String {
    let kind = found.kind.as_ref().map_or(String::new(), |kind| format!(" {kind}"));
    let stopped = if found.stopped { " so far" } else { "" };
    format!("{}{stopped}, {:.3} s{kind}", thousands(found.states), found.seconds)
}

fn count(
    sums: &mut Vec<(String, Reduce, Factors)>,
    sort: &str,
    kind: Reduce,
    full: &Answered,
    found: &Answered,
    what: &str,
) {
    let at = sums.iter().position(|sum| sum.0 == sort && sum.1 == kind).unwrap_or_else(|| {
        sums.push((sort.into(), kind, Factors::default()));
        sums.len() - 1
    });
    let factors = &mut sums[at].2;
    if full.stopped {
        factors.gained += usize::from(!found.stopped);
        return;
    }
    if !found.stopped {
        factors.states.push(full.states as f64 / found.states.max(1) as f64);
    }
    let times = found.seconds / full.seconds.max(1e-6);
    factors.times.push(times);
    if factors.worst.as_ref().is_none_or(|(worst, _)| times > *worst) {
        factors.worst = Some((times, format!("{what}: {:.3} s and not {:.3} s", found.seconds, full.seconds)));
    }
}

fn summarise(options: &ReduceOptions, sums: &[(String, Reduce, Factors)]) {
    let mut lines = Vec::new();
    for (sort, kind, factors) in sums {
        let mut states = factors.states.clone();
        states.sort_by(f64::total_cmp);
        let mean = |values: &[f64]| (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp();
        let at_least = |least: f64| states.iter().filter(|&&factor| factor >= least).count();
        lines.push(vec![
            sort.clone(),
            kind.to_string(),
            states.len().to_string(),
            format!("{:.1}", mean(&states)),
            format!("{:.1}", states.get(states.len() / 2).copied().unwrap_or(f64::NAN)),
            at_least(10.0).to_string(),
            at_least(2.0).to_string(),
            format!("{:.2}", mean(&factors.times)),
            factors.worst.as_ref().map_or(String::new(), |(times, what)| format!("{times:.2} ({what})")),
            factors.gained.to_string(),
        ]);
    }
    let header = [
        "questions",
        "reduced by",
        "runs",
        "fewer states, geometric mean",
        "median",
        "10 times and more",
        "2 times and more",
        "time, geometric mean",
        "worst time",
        "answers that the full run has not",
    ];
    print(options, &header.map(String::from), lines);
}

fn print(options: &ReduceOptions, header: &[String], lines: Vec<Vec<String>>) {
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    if options.markdown {
        println!("{}", markdown(&header, &lines));
    } else {
        println!("{}\n", table(&header, lines));
    }
}
