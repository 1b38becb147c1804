//! Our own models, as the papers need them.
//!
//! In: the name of a model and values of its parameters. Out: the model, loaded. The texts are part of the
//! program, so that a table can be measured anywhere.

use deltamark::load::{Format, LoadOptions, Loaded, parse};

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
