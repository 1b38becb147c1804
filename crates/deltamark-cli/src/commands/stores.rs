//! `deltamark stores`.
//!
//! In: the catalogue of stores. Out: what each is, what its verdicts are worth, when to choose it, and its
//! options.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{Colour, Look, print, wrap};
use deltamark::store::{AUTO, CATALOGUE, OptionInfo, StoreInfo};
use serde_json::json;

/// Lists the stores.
pub fn run(arguments: &args::Stores) -> Result<Exit, Failure> {
    let text = if arguments.json { as_json() } else { as_text(&Look::stdout()) };
    print(&crate::signals::control(), |out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Good)
}

fn as_text(look: &Look) -> String {
    let one = |store: &StoreInfo| {
        let mut text = format!("{}\n", look.paint(Colour::Bold, store.name));
        text += &listed("  idea       ", store.idea, look);
        text += &listed("  guarantee  ", store.guarantee, look);
        text += &listed("  choose it  ", store.when, look);
        if !store.needs.is_empty() {
            let needs: Vec<&str> = store.needs.iter().map(|need| need.words()).collect();
            text += &listed("  needs      ", &needs.join("; "), look);
        }
        text += &listed("  threads    ", if store.threads { "several" } else { "one" }, look);
        let given = |option: &OptionInfo| format!("{}={}", option.name, option.default);
        let width = store.options.iter().map(|option| given(option).chars().count()).max().unwrap_or(0);
        for (index, option) in store.options.iter().enumerate() {
            let head = if index == 0 { "  options    " } else { "             " };
            text += &listed(&format!("{head}{:width$}  ", given(option)), option.help, look);
        }
        text
    };
    let stores: Vec<String> = std::iter::once(&AUTO).chain(CATALOGUE).map(one).collect();
    let example = CATALOGUE.iter().find_map(|store| Some((store.name, store.options.first()?)));
    let example = example.map_or(String::new(), |(name, option)| {
        format!(", for instance `--store {name}:{}={}`", option.name, option.default)
    });
    let usage = format!(
        "Options are shown with their defaults. Choose a store with `--store NAME`, with options \
         `--store NAME:option=value,option=value`{example}. docs/study.md has a guide, with what was measured."
    );
    format!("{}\n{}\n", stores.join("\n"), wrap(&usage, "", look.width))
}

/// A heading and its text, wrapped so that the text stays in its column.
fn listed(head: &str, text: &str, look: &Look) -> String {
    let column = head.chars().count();
    let wrapped = wrap(text, &" ".repeat(column), look.width.max(column + 30));
    format!("{head}{}\n", wrapped.trim_start())
}

fn as_json() -> String {
    let option = |option: &OptionInfo| json!({"name": option.name, "default": option.default, "help": option.help});
    let one = |store: &StoreInfo| {
        json!({
            "name": store.name,
            "idea": store.idea,
            "guarantee": store.guarantee,
            "when": store.when,
            "threads": store.threads,
            "needs": store.needs.iter().map(|need| need.words()).collect::<Vec<_>>(),
            "options": store.options.iter().map(option).collect::<Vec<_>>(),
        })
    };
    format!(
        "{}\n",
        json!({"schema": 1, "stores": std::iter::once(&AUTO).chain(CATALOGUE).map(one).collect::<Vec<_>>()})
    )
}
