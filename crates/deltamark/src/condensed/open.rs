//! Opening the file of a graph, and the model it was made from.
//!
//! In: a path. Out: a [`Condensed`], or why the file cannot be used. What stays true: a graph is used with the very
//! text it was made from, or not at all.

use super::Condensed;
use crate::load::{Format, LARGEST_FILE, LoadError, LoadOptions, load_same};
use deltamark_core::{Action, Budget, Control};
use deltamark_graph::{FileError, Graph};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CondensedError {
    /// Something is wrong with the file.
    File {
        /// Its path.
        path: String,
        /// What is wrong.
        error: FileError,
    },
    /// Its model cannot be loaded.
    Model(LoadError),
    /// It belongs to another text.
    Changed {
        /// The path of the graph.
        path: String,
        /// The path of the model.
        model: String,
    },
    /// The file says that its model is a shared library, which is code, and nobody asked to run that.
    Code {
        /// The path of the graph.
        path: String,
        /// The path of the library, as the file has it.
        model: String,
    },
    /// The model is not where the file says.
    Gone {
        /// The path of the graph.
        path: String,
        /// The path of the model, as the file has it.
        model: String,
    },
    /// The model cannot be run as the graph has it.
    Misfit(String),
}

impl fmt::Display for CondensedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CondensedError::File { path, error: FileError::Unreadable(reason) } => {
                write!(f, "cannot read `{path}`: {reason}")
            }
            CondensedError::File { path, error } => write!(f, "`{path}` cannot be used: {error}"),
            CondensedError::Model(error) => error.fmt(f),
            CondensedError::Changed { path, model } => {
                write!(f, "`{path}` belongs to another text than `{model}` holds now")
            }
            CondensedError::Code { path, model } => {
                write!(f, "the model of `{path}` is a shared library, `{model}`, which is code that would be run")
            }
            CondensedError::Gone { path, model } => write!(f, "`{model}`, the model of `{path}`, is not there"),
            CondensedError::Misfit(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for CondensedError {}

/// Whether a file begins as a graph does.
pub fn is_graph(path: &Path) -> bool {
    let mut start = [0; deltamark_graph::meta::MAGIC.len()];
    // To open a pipe would wait for whoever writes to it, and it gives its bytes once.
    let file = path.is_file().then(|| std::fs::File::open(path).ok()).flatten();
    file.is_some_and(|mut file| io::Read::read_exact(&mut file, &mut start).is_ok())
        && start == deltamark_graph::meta::MAGIC
}

/// What the user says about a graph, beside its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Where its model is now; `None` if it is beside the graph or where it was.
    pub model: Option<String>,
    /// The format of its model, which the file has as well; code is loaded only if it is named here.
    pub format: Option<String>,
    /// The most bytes of the model that are read, and the most memory for the numbers of states.
    pub limit: Option<u64>,
}

impl Condensed {
    /// Opens a file, and loads the model that it names: from the file's own folder, or from where it was; or from where
    /// the user says it is.
    ///
    /// A file is the word of whoever wrote it. So its numbers are compared with its edges; of the model nothing is parsed,
    /// and no library loaded, before the text is known to be the one; and a library is loaded only if the user names the format.
    pub fn open(path: &str, asked: &OpenOptions) -> Result<Self, CondensedError> {
        Self::open_under(path, asked, &Control::new())
    }

    /// The same, as far as `control` lets it.
    pub fn open_under(path: &str, asked: &OpenOptions, control: &Control) -> Result<Self, CondensedError> {
        let limit = asked.limit.unwrap_or(LARGEST_FILE);
        let wrong = |error| CondensedError::File { path: path.into(), error };
        let misfit = |what: String| CondensedError::Misfit(format!("`{path}` cannot be used: {what}"));
        let graph = Graph::open(Path::new(path), control).map_err(wrong)?;
        let within = Control { budget: Arc::new(Budget::new(limit)), ..control.clone() };
        graph.audit(&within).map_err(wrong)?;
        let id = &graph.meta().model;
        let Some(format) = Format::by_name(&id.format).filter(|format| format.name == id.format) else {
            return Err(misfit(format!("its model is in a format `{}`, which this program does not know", id.format)));
        };
        match asked.format.as_deref() {
            Some(given) if Format::by_name(given).map(|format| format.name) != Some(format.name) => {
                return Err(misfit(format!("its model is in the format `{}`, not `{given}`", format.name)));
            }
            None if format.is_code() => {
                return Err(CondensedError::Code { path: path.into(), model: id.path.clone() });
            }
            _ => {}
        }
        let options = LoadOptions { format: Some(format.name.into()), limit, ..LoadOptions::default() };
        let options = options
            .with_words(&id.options)
            .ok_or_else(|| misfit("it was made with options that this program does not know".into()))?;
        let model = match &asked.model {
            Some(given) => given.clone(),
            None if id.path == "-" => {
                return Err(CondensedError::Misfit(format!(
                    "the model of `{path}` came from standard input; `--model FILE` tells where it is now"
                )));
            }
            None => found_model(path, &id.path)
                .ok_or_else(|| CondensedError::Gone { path: path.into(), model: id.path.clone() })?,
        };
        let loaded = load_same(&model, &options, (id.length, id.hash), control).map_err(|error| match error {
            LoadError::Changed { path: model } => CondensedError::Changed { path: path.into(), model },
            LoadError::Unreadable { .. } | LoadError::TooBig { .. } | LoadError::Stopped { .. } => {
                CondensedError::Model(error)
            }
            error => {
                let told = error.to_string();
                let words: String = id.options.iter().map(|(name, value)| format!(" --{name} {value}")).collect();
                misfit(format!(
                    "its model cannot be loaded as it says, by `--format {}{words}`: {}",
                    format.name,
                    told.lines().next().unwrap_or_default()
                ))
            }
        })?;
        let actions =
            match (loaded.system.portable().and_then(|portable| portable.actions()), graph.actions().map_err(wrong)?) {
                (Some(portable), Some(table)) => {
                    let actions = table.iter().map(|bytes| portable.receive(bytes)).collect::<Option<Vec<Action>>>();
                    Some(actions.ok_or_else(|| misfit("it has actions that the model does not know".into()))?)
                }
                (None, None) => None,
                _ => {
                    return Err(misfit(
                        "it was made by a version of this program that runs its model differently".into(),
                    ));
                }
            };
        Ok(Condensed { graph, model: loaded, path: path.into(), actions })
    }
}

/// Where the model of a graph is: beside it, or where it was. What is no regular file (a pipe, a device) is not opened.
fn found_model(graph: &str, model: &str) -> Option<String> {
    let folder = Path::new(graph).parent().unwrap_or(Path::new(""));
    let name = Path::new(model).file_name().map(PathBuf::from).unwrap_or_default();
    let candidates = [folder.join(model), PathBuf::from(model), folder.join(name)];
    candidates.iter().find(|path| path.is_file()).map(|path| path.display().to_string())
}
