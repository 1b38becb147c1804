//! The values of options.
//!
//! In: the tables of stores, searches, formats, families and papers. Out: parsers of their names, which the
//! shell completions use as well. What stays true: a new row of a table is completed too; an unknown name is
//! refused with the nearest one.

use clap::builder::{PossibleValue, TypedValueParser};
use deltamark::condensed::Way;
use deltamark::diagnostic::did_you_mean;
use deltamark::graph::GraphFormat;
use deltamark::load::FORMATS;
use deltamark::nets::{FAMILIES, Family};
use deltamark::store::{AUTO, CATALOGUE, StoreSpec};
use deltamark::{EngineChoice, Strategy, Unfold};
use deltamark_reproduce::Paper;
use std::ffi::OsStr;

/// The possible values, and their parser. More may be parsed than is offered: options after the name of a
/// store.
#[derive(Clone)]
pub struct Offered<T> {
    words: fn() -> Vec<(&'static str, &'static str)>,
    read: fn(&str) -> Result<T, String>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Offered<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        // A function is a parser too, and words the error as for all other options.
        self.read.parse_ref(command, argument, value)
    }

    /// For help texts and completions.
    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        let offer = |(name, about): (&'static str, &'static str)| match about {
            "" => PossibleValue::new(name),
            about => PossibleValue::new(name).help(about),
        };
        Some(Box::new((self.words)().into_iter().map(offer)))
    }
}

/// The message for an unknown name.
fn unknown(what: &str, plural: &str, text: &str, names: &[&str]) -> String {
    match did_you_mean(text, names.iter().copied()) {
        Some(close) => format!("there is no {what} `{text}`; did you mean `{close}`?"),
        None => format!("there is no {what} `{text}`; known {plural}: {}", names.join(", ")),
    }
}

/// Stores, with their options after a colon.
pub fn stores() -> Offered<StoreSpec> {
    Offered {
        words: || {
            std::iter::once(&AUTO).chain(CATALOGUE).map(|store| (store.name, first_sentence(store.idea))).collect()
        },
        read: |text| text.parse().map_err(|error: deltamark::store::SpecError| error.to_string()),
    }
}

/// Shells show one line.
fn first_sentence(text: &'static str) -> &'static str {
    text.split_once(". ").map_or(text, |(first, _)| first)
}

/// Orders in which states are visited.
pub fn searches() -> Offered<Strategy> {
    Offered {
        words: || Strategy::ALL.iter().map(|search| (search.name(), "")).collect(),
        read: |text| {
            let names: Vec<&str> = Strategy::ALL.iter().map(|search| search.name()).collect();
            let found = Strategy::ALL.iter().copied().find(|search| search.name() == text);
            found.ok_or_else(|| unknown("search", "searches", text, &names))
        },
    }
}

/// Formats of models. Whether there is such a format is checked when the model is loaded, which knows more.
pub fn formats() -> Offered<String> {
    Offered {
        words: || FORMATS.iter().map(|format| (format.name, format.help)).collect(),
        read: |text| Ok(text.into()),
    }
}

/// Formats that nets are written in.
pub fn net_formats() -> Offered<String> {
    Offered { words: || vec![("pnml", ""), ("tina", "")], read: |text| Ok(text.into()) }
}

/// Formats that graphs are written in.
pub fn graph_formats() -> Offered<String> {
    Offered {
        words: || {
            let drawings = GraphFormat::ALL.iter().map(|format| (format.name(), ""));
            std::iter::once(("dmg", "the condensed graph")).chain(drawings).collect()
        },
        read: |text| Ok(text.into()),
    }
}

/// Orders in which the states of a graph are reconstructed.
pub fn walks() -> Offered<Way> {
    Offered {
        words: || Way::ALL.iter().map(|way| (way.name(), "")).collect(),
        read: |text| {
            let found = Way::ALL.iter().copied().find(|way| way.name() == text);
            found.ok_or_else(|| "write auto, file or depth".into())
        },
    }
}

/// Whether coloured nets are unfolded.
pub fn unfoldings() -> Offered<Unfold> {
    Offered { words: || vec![("yes", ""), ("no", ""), ("auto", "")], read: str::parse }
}

/// Engines that compute successors.
pub fn engines() -> Offered<EngineChoice> {
    Offered { words: || EngineChoice::ALL.iter().map(|choice| (choice.name(), "")).collect(), read: str::parse }
}

/// Families of models.
pub fn families() -> Offered<&'static Family> {
    static KNOWN: [Family; FAMILIES.len()] = FAMILIES;
    Offered {
        words: || KNOWN.iter().map(|family| (family.name, family.about)).collect(),
        read: |text| {
            let found = KNOWN.iter().find(|family| family.name == text);
            found.ok_or_else(|| unknown("family", "families", text, &FAMILIES.map(|family| family.name)))
        },
    }
}

/// Papers whose tables are measured.
pub fn papers() -> Offered<&'static Paper> {
    Offered {
        words: || Paper::ALL.iter().map(|paper| (paper.name, paper.about)).collect(),
        read: |text| {
            let names: Vec<&str> = Paper::ALL.iter().map(|paper| paper.name).collect();
            Paper::by_name(text).ok_or_else(|| unknown("paper", "papers", text, &names))
        },
    }
}
