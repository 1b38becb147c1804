//! The models of the papers: our own, and those that authors published.
//!
//! In: the name of a model and values of its parameters. Out: the model, loaded. The texts of ours are part of the
//! program, so that a table can be measured anywhere; published ones are in a folder that the user names.

use deltamark::load::{Format, LoadOptions, Loaded, load_with, parse};
use std::path::{Path, PathBuf};

const COLOURED: &[(&str, &str)] = &[
    ("client-server", include_str!("../../../models/client-server.lna")),
    ("database-managers", include_str!("../../../models/database-managers.lna")),
    ("leader-election", include_str!("../../../models/leader-election.lna")),
    ("mutual-exclusion", include_str!("../../../models/mutual-exclusion.lna")),
    ("peterson", include_str!("../../../models/peterson.lna")),
    ("philosophers", include_str!("../../../models/philosophers.lna")),
    ("sieve", include_str!("../../../models/sieve.lna")),
    ("stop-and-wait", include_str!("../../../models/stop-and-wait.lna")),
    ("telephones", include_str!("../../../models/telephones.lna")),
];

const PROCESSES: &[(&str, &str)] = &[("stop-and-wait", include_str!("../../../models/stop-and-wait.mdve"))];

/// A coloured net of ours with these parameters.
pub(crate) fn coloured(name: &str, parameters: &[(&str, u64)]) -> Result<Loaded, String> {
    load(COLOURED, "lna", name, parameters)
}

/// Processes of ours, in DVE, with these parameters.
pub(crate) fn process(name: &str, parameters: &[(&str, u64)]) -> Result<Loaded, String> {
    load(PROCESSES, "mdve", name, parameters)
}

/// The file of a published model, if the folder, or its folder `cpn`, has it.
pub(crate) fn published(folder: Option<&Path>, file: &str) -> Option<PathBuf> {
    let folder = folder?;
    [folder.join(file), folder.join("cpn").join(file)].into_iter().find(|path| path.is_file())
}

/// A published model with these initial markings.
pub(crate) fn with_markings(path: &Path, markings: &[(&str, String)]) -> Result<Loaded, String> {
    let markings = markings.iter().map(|(place, value)| (place.to_string(), value.clone())).collect();
    let options = LoadOptions { markings, ..LoadOptions::default() };
    load_with(&path.to_string_lossy(), &options).map_err(|error| error.to_string())
}

fn load(texts: &[(&str, &str)], format: &str, name: &str, parameters: &[(&str, u64)]) -> Result<Loaded, String> {
    let (_, text) = texts.iter().find(|(known, _)| *known == name).ok_or_else(|| format!("no model `{name}`"))?;
    let format = Format::by_name(format).ok_or("not in this build")?;
    let parameters = parameters.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let options = LoadOptions { parameters, ..LoadOptions::default() };
    parse(name, format, text.as_bytes(), &options).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_can_be_made() {
        for (name, _) in COLOURED {
            assert!(coloured(name, &[("N", 3)]).is_ok(), "{name}");
        }
        assert!(process("stop-and-wait", &[("N", 3)]).is_ok());
        assert!(coloured("none", &[]).is_err());
    }
}
