//! Checkpoints: what a run keeps in a directory so that another process can go on from there.
//!
//! In: a directory, and what the run was asked. Out: checkpoints as the run goes on; later the run again. What stays true: all
//! that is needed to go on is in the directory, the model's file included; the last two checkpoints stay, and each is complete
//! or not there; nothing is read that was not compared with its checksum. What a checkpoint holds is for the search to say
//! (`checkpoint.rs` of deltamark-search), how it is cut into files for `files`.
//!
//! A checkpoint that cannot be written does not end the run: the one before stays, and the report says so.

mod files;

use crate::load::{self, Format, LoadError, ModelInfo};
use deltamark_core::{Control, Stop};
pub use deltamark_search::Kept;
use deltamark_search::{Keeper, Keeping};
use files::{Image, Manifest, Unusable};
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time from one checkpoint to the next, where none is given.
pub const EVERY: Duration = Duration::from_secs(600);
/// How many times what a checkpoint took passes before the next.
const RARELY: u32 = 50;
/// Bytes of an image that are read together.
const BUFFER: usize = 1 << 18;

/// Why a run cannot keep checkpoints, or not go on from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointError {
    /// What is wrong, and what to do.
    Unusable {
        /// Why: a sentence without a full stop.
        message: String,
        /// What to do; empty, if there is nothing.
        help: String,
    },
    /// A limit was reached, or the user asked for it, before all was checked.
    Stopped(Stop),
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::Unusable { message, .. } => f.write_str(message),
            CheckpointError::Stopped(stop) => write!(f, "the run had to end before all was checked ({})", stop.word()),
        }
    }
}

impl std::error::Error for CheckpointError {}

fn unusable(message: String, help: impl Into<String>) -> CheckpointError {
    CheckpointError::Unusable { message, help: help.into() }
}

fn unwritable(directory: &str, error: &io::Error) -> CheckpointError {
    let message = format!("no checkpoints can be kept in `{directory}`: {error}");
    unusable(message, "give a directory that can be written to")
}

/// A file that the run has read.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// What it is: the name of the folder it is copied to, `model` or `properties`.
    pub role: &'static str,
    /// Its path.
    pub path: String,
}

/// Where the checkpoints of a run go.
pub struct Checkpoints {
    directory: PathBuf,
    every: Duration,
    inputs: Vec<InputFile>,
    /// What every manifest of this run has.
    manifest: Manifest,
    /// Held as long as this is used.
    lock: Option<File>,
    /// The numbers of those that stay.
    kept: Vec<u64>,
    next: u64,
    written: u64,
    newest: Option<Kept>,
    resumed: Option<Resumed>,
    /// Whether the run has moved to another store, in which it goes on from the newest one.
    moved: bool,
    trouble: Option<String>,
    since: Instant,
    took: Duration,
}

/// Which checkpoint a run went on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Its file.
    pub from: String,
    /// The states that it holds.
    pub states: u64,
}

/// What became of the checkpoints of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointReport {
    /// The directory.
    pub directory: String,
    /// How many were written.
    pub written: u64,
    /// What is in the newest one; `None` if there is none.
    pub newest: Option<Kept>,
    /// Why the last one could not be written, if it could not.
    pub trouble: Option<String>,
}

impl Checkpoints {
    /// Checkpoints of a new run in this directory; nothing is written before the run begins. `words` is all that is needed to
    /// make the run again, as the caller writes it; `inputs` are the files that it read. There must be no checkpoints in
    /// the directory.
    pub fn new(
        directory: &str,
        every: Option<Duration>,
        words: Vec<String>,
        inputs: Vec<InputFile>,
    ) -> Result<Self, CheckpointError> {
        if let Some(input) = inputs.iter().find(|input| input.path == "-") {
            let message =
                format!("what comes from standard input cannot be kept, so the {} must be a file", input.role);
            return Err(unusable(message, "write it into a file first"));
        }
        let path = PathBuf::from(directory);
        match files::list(&path) {
            Ok(found) if found.is_empty() => {}
            Ok(_) => {
                return Err(unusable(
                    format!("`{directory}` holds the checkpoints of a run"),
                    format!("go on with it by `deltamark resume {directory}`, or give another directory"),
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unusable(format!("`{directory}` cannot be read: {error}"), "")),
        }
        let kept = Kept { states: 0, expanded: 0, depth: 0 };
        let (tool, store) = (version(), String::new());
        let manifest = Manifest { tool, words, store, inputs: Vec::new(), kept, parts: Vec::new() };
        Ok(Self::with(path, every, inputs, manifest))
    }

    fn with(directory: PathBuf, every: Option<Duration>, inputs: Vec<InputFile>, manifest: Manifest) -> Self {
        Checkpoints {
            directory,
            every: every.unwrap_or(EVERY),
            inputs,
            manifest,
            lock: None,
            kept: Vec::new(),
            next: 1,
            written: 0,
            newest: None,
            resumed: None,
            moved: false,
            trouble: None,
            since: Instant::now(),
            took: Duration::ZERO,
        }
    }

    /// The newest checkpoint in a directory, or the one before it, checked from the first byte to the last.
    pub fn resume(directory: &str, older: bool, control: &Control) -> Result<Self, CheckpointError> {
        let path = PathBuf::from(directory);
        let begin = "begin with `deltamark check MODEL --checkpoint DIR`";
        let found = files::list(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => unusable(format!("there is no directory `{directory}`"), begin),
            _ => unusable(format!("`{directory}` cannot be read: {error}"), ""),
        })?;
        let Some(&number) = found.get(usize::from(older)) else {
            let which = if older && !found.is_empty() { "older checkpoint" } else { "checkpoint" };
            return Err(unusable(format!("there is no {which} in `{directory}`"), begin));
        };
        let lock = locked(&path)?;
        let read = |number| {
            Manifest::read(&path, number, control).and_then(|manifest| match manifest.tool == version() {
                true => Ok(manifest),
                false => Err(Unusable::Because(format!(
                    "Deltamark {} wrote it, and this is Deltamark {}",
                    manifest.tool,
                    version()
                ))),
            })
        };
        let name = files::manifest_path(&path, number).display().to_string();
        let manifest = read(number).map_err(|why| match why {
            Unusable::Stopped(stop) => CheckpointError::Stopped(stop),
            Unusable::Because(why) => {
                let other = found.get(1).filter(|_| !older).and_then(|&other| read(other).ok());
                let help = match other {
                    Some(Manifest { kept, .. }) => format!(
                        "`deltamark resume {directory} --older` goes on from the one before, at depth {}",
                        kept.depth
                    ),
                    None => format!("there is no other one that is whole; {begin}"),
                };
                unusable(format!("the checkpoint `{name}` cannot be used: {why}"), help)
            }
        })?;
        let resumed = Some(Resumed { from: name, states: manifest.kept.states });
        let (newest, next) = (Some(manifest.kept), found[0] + 1);
        let all = Self::with(path, None, Vec::new(), manifest);
        Ok(Checkpoints { kept: vec![number], next, newest, resumed, lock: Some(lock), ..all })
    }

    /// The same with this time between two checkpoints; an interval of zero means at the end of every level.
    pub fn every(mut self, every: Option<Duration>) -> Self {
        self.every = every.unwrap_or(EVERY);
        self
    }

    /// What is needed to make the run again, as its caller wrote it.
    pub fn words(&self) -> &[String] {
        &self.manifest.words
    }

    /// The store to go on in, where no other is asked for.
    pub fn store(&self) -> &str {
        &self.manifest.store
    }

    /// Has the run go on in this store, as its name on the command line.
    pub(crate) fn keep_in(&mut self, store: String) {
        self.manifest.store = store;
    }

    /// Has the run go on from the newest one in another store, and whoever resumes it too, from now on; `false` if there
    /// is none.
    pub(crate) fn move_to(&mut self, store: String) -> bool {
        let Some(&newest) = self.kept.last() else { return false };
        (self.moved, self.manifest.store) = (true, store);
        if let Err(error) = files::write_manifest(&self.directory, newest, &self.manifest) {
            self.trouble = Some(error.to_string());
        }
        true
    }

    /// The copy of the first file with this role, whose checksum was compared.
    pub fn input(&self, role: &str) -> Option<String> {
        let of_role = |name: &String| name.split_once('/').is_some_and(|(folder, _)| folder == role);
        let (name, _) = self.manifest.inputs.iter().find(|(name, _)| of_role(name))?;
        Some(self.directory.join(name).display().to_string())
    }

    /// Which checkpoint the run goes on from, if it does.
    pub fn resumed(&self) -> Option<&Resumed> {
        self.resumed.as_ref()
    }

    /// What became of them.
    pub fn report(&self) -> CheckpointReport {
        CheckpointReport {
            directory: self.directory.display().to_string(),
            written: self.written,
            newest: self.newest,
            trouble: self.trouble.clone(),
        }
    }

    /// Makes the directory and copies what the run has read, if it is a new run of this model.
    pub(crate) fn begin(&mut self, model: &ModelInfo, control: &Control) -> Result<(), CheckpointError> {
        if self.resumed.is_some() || self.moved {
            return Ok(());
        }
        if Format::by_name(model.format).is_some_and(Format::is_code) || model.path.is_none() {
            return Err(unusable(
                "a model that is code has no file that could be kept beside its checkpoints".into(),
                "leave `--checkpoint` out",
            ));
        }
        let directory = self.directory.display().to_string();
        let failed = |error: io::Error| unwritable(&directory, &error);
        std::fs::create_dir_all(&self.directory).map_err(failed)?;
        self.lock = Some(locked(&self.directory)?);
        files::remove(&self.directory, |_| true);
        for InputFile { role, path } in &self.inputs {
            let bytes = load::read_under(path, load::LARGEST_FILE, control).map_err(|error| match error {
                LoadError::Stopped { stop, .. } => CheckpointError::Stopped(stop),
                error => unusable(error.to_string(), "start again"),
            })?;
            if model.path.as_ref() == Some(path)
                && model.text != Some((bytes.len() as u64, deltamark_graph::text_hash([&bytes[..]])))
            {
                return Err(unusable(format!("`{path}` has changed since it was read"), "start again"));
            }
            let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or("input").to_string();
            let folder = self.directory.join(role);
            std::fs::create_dir_all(&folder).map_err(failed)?;
            let seal = files::write(folder.join(&name), &bytes).map_err(failed)?;
            files::sync(&folder).map_err(failed)?;
            self.manifest.inputs.push((format!("{role}/{name}"), seal));
        }
        files::sync(&self.directory).map_err(failed)
    }

    /// The bytes of the checkpoint to go on from.
    pub(crate) fn image(&self) -> Option<impl Read + use<>> {
        let number = *self.kept.last().filter(|_| self.resumed.is_some() || self.moved)?;
        Some(BufReader::with_capacity(BUFFER, Image::new(&self.directory, number, &self.manifest)))
    }

    /// What a search is given; `image` is where it goes on.
    pub(crate) fn keeping<'k>(&'k mut self, image: Option<&'k mut (impl Read + 'k)>) -> Keeping<'k> {
        Keeping { keeper: Some(self), from: image.map(|image| image as &mut dyn Read) }
    }
}

impl Keeper for Checkpoints {
    fn is_due(&mut self) -> bool {
        // The first one shows at once whether they can be written.
        let first = self.resumed.is_none() && self.written == 0 && self.trouble.is_none();
        first || self.every.is_zero() || self.since.elapsed() >= self.every.max(RARELY * self.took)
    }

    fn keep(&mut self, kept: Kept, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) {
        let began = Instant::now();
        let number = self.next;
        self.next += 1;
        // That of the newest one stays as it is if this one cannot be written.
        let mut manifest = Manifest { kept, ..self.manifest.clone() };
        match files::keep(&self.directory, number, &mut manifest, write) {
            Ok(()) => {
                self.manifest = manifest;
                (self.newest, self.trouble) = (Some(kept), None);
                self.written += 1;
                self.kept.push(number);
                self.kept.drain(..self.kept.len().saturating_sub(2));
                let stays = &self.kept;
                files::remove(&self.directory, |number| !stays.contains(&number));
            }
            Err(error) => self.trouble = Some(error.to_string()),
        }
        (self.since, self.took) = (Instant::now(), began.elapsed());
    }
}

/// Sees to it that no other run uses the directory.
fn locked(directory: &Path) -> Result<File, CheckpointError> {
    let shown = directory.display();
    let failed = |error: io::Error| unwritable(&shown.to_string(), &error);
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).open(directory.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(unusable(format!("another run keeps its checkpoints in `{shown}`"), "wait for its end"))
        }
        // A file system that knows no locks.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_that_a_run_has_moved_to_is_in_the_directory_at_once() {
        let directory = std::env::temp_dir().join(format!("deltamark-moved-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a folder");
        let kept = Kept { states: 7, expanded: 3, depth: 1 };
        let (tool, store, words) = (version(), "auto".into(), vec!["check".into()]);
        let manifest = Manifest { tool, words, store, inputs: Vec::new(), kept, parts: Vec::new() };
        let mut checkpoints = Checkpoints::with(directory.clone(), None, Vec::new(), manifest);
        assert!(!checkpoints.move_to("compact".into()), "there is none to go on from");
        checkpoints.keep(kept, &mut |out| out.write_all(b"states"));
        // The next one cannot be written, so the first stays as it is.
        checkpoints.keep(Kept { states: 9, ..kept }, &mut |_| Err(io::Error::other("full")));
        assert!(checkpoints.move_to("compact".into()));
        let shown = directory.display().to_string();
        let again = Checkpoints::resume(&shown, false, &Control::new()).expect("it is whole");
        assert_eq!((again.store(), again.newest), ("compact", Some(kept)));
        let mut bytes = Vec::new();
        checkpoints.image().expect("one").read_to_end(&mut bytes).expect("a file");
        assert_eq!(bytes, b"states");
        std::fs::remove_dir_all(&directory).expect("a folder");
    }
}
