//! `deltamark stores`.
//!
//! In: the catalogue of stores. Out: what each is, what its answers are worth, when to
//! choose it, and its options.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{Colour, Look, print, wrap};
use deltamark::store::{CATALOGUE, StoreInfo};
use serde_json::json;

/// Lists the stores.
pub fn run(arguments: &args::Stores) -> Result<Exit, Failure> {
    let text = if arguments.json { as_json() } else { as_text(&Look::stdout()) };
    print(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Good)
}

fn as_text(look: &Look) -> String {
    let one = |store: &StoreInfo| {
        let mut text = format!("{}\n{}\n", look.paint(Colour::Bold, store.name), wrap(store.idea, "    ", look.width));
        text += &format!("{}\n", wrap(store.when, "    ", look.width));
        text += &format!("{}\n", wrap(&format!("Guarantee: {}", store.guarantee), "    ", look.width));
        for option in store.options {
            let line = format!("{}={}  {}", option.name, option.default, option.help);
            text += &format!("{}\n", wrap(&line, "      ", look.width));
        }
        text
    };
    let stores: Vec<String> = CATALOGUE.iter().map(one).collect();
    let usage = "Choose one with `--store NAME`, or with options `--store NAME:option=value,option=value`.";
    format!("{}\n{}\n", stores.join("\n"), wrap(usage, "", look.width))
}

fn as_json() -> String {
    let option = |option: &deltamark::store::OptionInfo| json!({"name": option.name, "default": option.default, "help": option.help});
    let one = |store: &StoreInfo| {
        json!({
            "name": store.name,
            "idea": store.idea,
            "guarantee": store.guarantee,
            "when": store.when,
            "options": store.options.iter().map(option).collect::<Vec<_>>(),
        })
    };
    format!("{}\n", json!({"schema": 1, "stores": CATALOGUE.iter().map(one).collect::<Vec<_>>()}))
}
