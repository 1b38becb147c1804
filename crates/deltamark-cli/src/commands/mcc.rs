//! `deltamark mcc`.
//!
//! In: a net, an examination, the contest's environment. Out: the contest's lines on standard output, and nothing else
//! there. What stays true: a formula without an answer is `CANNOT_COMPUTE`, and an examination that is not known here
//! `DO_NOT_COMPETE`; the exit code is 3 then, and 0 if everything was answered, true or false. Wrong input is
//! refused, as everywhere, before there is a line.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{print, tell};
use crate::progress::Live;
use crate::signals;
use deltamark::control::{Limits, steering};
use deltamark::load::{self, LARGEST_FILE, LoadError, Source};
use deltamark::mcc::{Answer, Exam, Examination, Known};
use deltamark::{CheckError, LoadOptions, Unfold};
use std::path::Path;
use std::time::{Duration, Instant};

/// What the contest sets for each run: seconds, and mebibytes.
const TIME: &str = "BK_TIME_CONFINEMENT";
const MEMORY: &str = "BK_MEMORY_CONFINEMENT";

/// Answers an examination.
pub fn run(arguments: &args::Mcc, since: Instant) -> Result<Exit, Failure> {
    let limits = limits(arguments)?;
    let control = steering(&limits, &signals::cancel(), since);
    let Some(examination) = Examination::by_name(&arguments.examination) else {
        let known: Vec<&str> = Examination::ALL.iter().map(|(name, _)| *name).collect();
        tell(format_args!("`{}` is none of {}", arguments.examination, known.join(", ")));
        print(&control, |out| writeln!(out, "DO_NOT_COMPETE"))?;
        return Ok(Exit::NoAnswer);
    };
    if arguments.properties.is_some() && !examination.reads_file() {
        return Err(Failure::new(format!(
            "`{}` asks for no formulas, so `--properties` is of no use",
            examination.name()
        ))
        .help("leave it out"));
    }
    let path = match arguments.properties.clone() {
        None if examination.reads_file() => {
            let beside = Path::new(&arguments.model).with_file_name(format!("{}.xml", examination.name()));
            Some(beside.to_string_lossy().into_owned())
        }
        given => given,
    };
    let ended = |error: LoadError| match error {
        // The contest's lines do not say why.
        stopped @ LoadError::Stopped { .. } => {
            tell(&stopped);
            Ok(())
        }
        other => Err(Failure::from(other)),
    };
    let options = LoadOptions {
        format: None,
        parameters: Vec::new(),
        markings: Vec::new(),
        unfold: Unfold::Auto,
        engine: None,
        limit: limits.memory.unwrap_or(u64::MAX),
    };
    let model = match deltamark::load_under(&arguments.model, &options, &control) {
        Ok(model) => model,
        Err(error) => {
            ended(error)?;
            return show(None, &control);
        }
    };
    let text = match path.map(|path| load::read_under(&path, LARGEST_FILE, &control).map(|bytes| (path, bytes))) {
        None => None,
        Some(Ok((path, bytes))) => Some(Source::of_bytes(path, bytes)),
        Some(Err(error)) => {
            ended(error)?;
            return show(None, &control);
        }
    };
    let live = Live::new(false, false, limits.memory);
    let exam = Exam {
        model: &model,
        examination,
        id: format!("{}-{}", instance(&arguments.model), examination.name()),
        file: text.as_ref().map(|source| (source.name.as_str(), source.text.as_str())),
        limits,
        cancel: signals::cancel(),
        listener: live.clone(),
        since,
    };
    let answers = exam.run();
    live.clear();
    match answers {
        Ok(answers) => show(Some(&answers), &control),
        Err(stopped @ CheckError::Stopped(_)) => {
            tell(&stopped);
            show(None, &control)
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints answers; without any, that there are none.
fn show(answers: Option<&[Answer]>, control: &deltamark::control::Control) -> Result<Exit, Failure> {
    let Some(answers) = answers else {
        print(control, |out| writeln!(out, "CANNOT_COMPUTE"))?;
        return Ok(Exit::NoAnswer);
    };
    print(control, |out| answers.iter().try_for_each(|answer| writeln!(out, "{}", answer.line())))?;
    let all = answers.iter().all(|answer| answer.known != Known::Nothing);
    Ok(if all { Exit::Good } else { Exit::NoAnswer })
}

/// The name of the net in the contest: that of its folder, where the file is called `model.pnml`.
fn instance(path: &str) -> String {
    let path = Path::new(path);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = || Some(path.canonicalize().ok()?.parent()?.file_name()?.to_string_lossy().into_owned());
    if stem == "model" { folder().unwrap_or(stem) } else { stem }
}

/// The limits of the command line, and those of the contest where there are none.
fn limits(arguments: &args::Mcc) -> Result<Limits, Failure> {
    let given = |name: &str| match std::env::var(name) {
        Ok(text) if !text.trim().is_empty() => match text.trim().parse::<u64>() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => {
                Err(Failure::new(format!("`{text}` in {name} is no limit")).help("write a number above 0, or unset it"))
            }
        },
        _ => Ok(None),
    };
    let mut limits = arguments.limits.limits();
    if arguments.limits.time.is_none() {
        // The last lines must be out before the contest ends the process.
        let left = |seconds: u64| seconds.saturating_sub(seconds / 20).max(1);
        limits.time = given(TIME)?.map(|seconds| Duration::from_secs(left(seconds)));
    }
    if arguments.limits.memory.is_none()
        && let Some(mebibytes) = given(MEMORY)?
    {
        limits.memory = limits.memory.map(|known| known.min(mebibytes.saturating_mul(1 << 20) / 20 * 19));
    }
    Ok(limits)
}
