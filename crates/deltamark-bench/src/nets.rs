//! The benchmark's nets.
//!
//! In: `FAMILY-N` (from our generators), `cells-N` (a system with states of N slots) or the name of a net of the
//! outside corpus. Out: its system, and its known numbers of states and edges.

use deltamark::{LoadOptions, load_with};
use deltamark_core::System;
use deltamark_nets::{Net, NetSystem, generate::generate, pnml};
use deltamark_testkit::{Corpus, systems::Cells};

/// Nets that every machine can generate.
pub const GENERATED: &[&str] = &[
    "philosophers-11",
    "philosophers-13",
    "philosophers-15",
    "kanban-4",
    "kanban-5",
    "kanban-6",
    "database-managers-10",
    "database-managers-11",
    "database-managers-12",
];

/// Nets of the outside corpus, measured if it is present.
pub const CORPUS: &[&str] =
    &["EisenbergMcGuire-PT-04", "JoinFreeModules-PT-0004", "Solitaire-PT-SqrNC5x5", "Anderson-PT-06"];

/// The larger ones.
pub const LONG: &[&str] = &["SwimmingPool-PT-03", "ShieldIIPs-PT-002A"];

/// Nets on which all stores are compared: those that every machine can generate, with states of 1 to 200 slots.
/// The last one's steps cannot be undone.
pub const COMPARED: &[&str] = &["kanban-5", "philosophers-13", "database-managers-11", "cells-200"];

/// Further ones of the outside corpus: of many levels and of few, with bits and with counts, of 33 to 369 places.
pub const COMPARED_CORPUS: &[&str] = &[
    "EisenbergMcGuire-PT-04",
    "ParamProductionCell-PT-3",
    "GPPP-PT-C0001N0000000010",
    "AirplaneLD-PT-0050",
    "JoinFreeModules-PT-0004",
    "Solitaire-PT-SqrNC5x5",
    "Anderson-PT-06",
];

/// States and edges.
pub type Counts = (u64, u64);

/// The system of this name, and its counts if they are known.
pub fn system(name: &str) -> Result<(Box<dyn System>, Option<Counts>), String> {
    /// 13⁵ states.
    const PLACES: usize = 13;
    let width = name.strip_prefix("cells-").and_then(|width| width.parse::<usize>().ok());
    if let Some(width) = width.filter(|width| (100..=100_000).contains(width)) {
        let cells = Cells::new(width, PLACES);
        let counts = cells.counts();
        return Ok((Box::new(cells), Some(counts)));
    }
    if let Some(model) = name.strip_prefix("corpus:") {
        return Ok((of_corpus(model)?, None));
    }
    if let Some(model) = name.strip_prefix("dve:") {
        return dve(model);
    }
    let (net, counts) = load(name)?;
    Ok((Box::new(NetSystem::new(net)), counts))
}

/// Any model of the corpus, as every user loads it: `pnml/Anderson-PT-06`, `lna/dbm?N=10,M=3`.
fn of_corpus(name: &str) -> Result<Box<dyn System>, String> {
    let corpus = Corpus::find(name).ok_or("there is no corpus")?;
    let (path, parameters) = name.split_once('?').unwrap_or((name, ""));
    let (folder, model) = path.split_once('/').ok_or_else(|| format!("`{name}` names no folder"))?;
    let parameters = parameters.split(',').filter_map(|text| text.split_once('='));
    let options = LoadOptions {
        parameters: parameters.map(|(name, value)| (name.into(), value.into())).collect(),
        ..LoadOptions::default()
    };
    let file = corpus.file(folder, &format!("{model}.{folder}"));
    let loaded = load_with(&file.to_string_lossy(), &options).map_err(|error| format!("{name}: {error}"))?;
    Ok(loaded.system)
}

/// A model of the corpus in DVE, or a file: `lamport.5`, `lamport.5@interpreter`, `my/model.dve`.
fn dve(name: &str) -> Result<(Box<dyn System>, Option<Counts>), String> {
    let (model, engine) = name.split_once('@').unwrap_or((name, "native"));
    let (text, counts) = crate::dve::text(model)?;
    let program =
        if model.ends_with(".mdve") { deltamark_dve::parse_macros(&text, &[]) } else { deltamark_dve::parse(&text) };
    let program = program.map_err(|problems| format!("{model}: {}", problems[0].message))?;
    let engine: deltamark_dve::EngineChoice = engine.parse()?;
    Ok((Box::new(deltamark_dve::DveSystem::run_by(program, engine)?), counts))
}

/// The net of this name, and its counts if they are known.
fn load(name: &str) -> Result<(Net, Option<Counts>), String> {
    if let Some((family, size)) = name.rsplit_once('-')
        && let Ok(size) = size.parse()
        && let Ok(net) = generate(family, size)
    {
        return Ok((net, known(family, u64::from(size))));
    }
    let corpus = Corpus::find(name).ok_or_else(|| format!("`{name}` is no generated net, and there is no corpus"))?;
    let path = corpus.file("pnml", &format!("{name}.pnml"));
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let net = pnml::parse_bytes(&bytes).map_err(|problems| format!("{name}: {}", problems[0].message))?;
    let rows = corpus.expected("pnml");
    let row = rows.iter().find(|row| row.text("model") == Some(name));
    Ok((net, row.and_then(|row| Some((row.number("states")?, row.number("edges")?)))))
}

fn known(family: &str, size: u64) -> Option<Counts> {
    match (family, size) {
        // Each philosopher is in one of three states, all combinations occur.
        ("philosophers", 13) => Some((1_594_323, 16_120_377)),
        ("kanban", 5) => Some((2_546_432, 24_460_016)),
        ("database-managers", 11) => Some((649_540, 4_330_282)),
        _ => None,
    }
}
