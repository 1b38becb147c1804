//! Built-in macros.
//!
//! In: a built-in macro and its arguments. Out: text to scan again, or a change of the expander's state. What
//! stays true: names and meanings are those of m4, with two differences. What m4 only warns about (`eval` of
//! something that is no number) is an error here, and what would reach outside the text (`include`, `syscmd`) does
//! not exist.

use super::{Bare, Machine, Macro, MacroStep, Meaning, NOWHERE, TracedText, eval, point, shown};
use deltamark_core::Diagnostic;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builtin {
    Changecom,
    Changequote,
    Changeword,
    Default,
    Decr,
    Define,
    Defn,
    Divert,
    Dnl,
    Eval,
    Ifdef,
    Ifelse,
    Incr,
    Index,
    Len,
    Popdef,
    Pushdef,
    Shift,
    Substr,
    Translit,
    Undefine,
    Undivert,
    Outside,
}

impl Builtin {
    /// Name, meaning, and whether it is expanded without arguments.
    pub(super) const ALL: &'static [(&'static str, Builtin, Bare)] = &[
        ("changecom", Builtin::Changecom, Bare::No),
        ("changequote", Builtin::Changequote, Bare::Yes),
        ("changeword", Builtin::Changeword, Bare::No),
        ("default", Builtin::Default, Bare::No),
        ("decr", Builtin::Decr, Bare::No),
        ("define", Builtin::Define, Bare::No),
        ("defn", Builtin::Defn, Bare::No),
        ("divert", Builtin::Divert, Bare::Yes),
        ("dnl", Builtin::Dnl, Bare::Yes),
        ("eval", Builtin::Eval, Bare::No),
        ("ifdef", Builtin::Ifdef, Bare::No),
        ("ifelse", Builtin::Ifelse, Bare::No),
        ("incr", Builtin::Incr, Bare::No),
        ("index", Builtin::Index, Bare::No),
        ("len", Builtin::Len, Bare::No),
        ("popdef", Builtin::Popdef, Bare::No),
        ("pushdef", Builtin::Pushdef, Bare::No),
        ("shift", Builtin::Shift, Bare::No),
        ("substr", Builtin::Substr, Bare::No),
        ("translit", Builtin::Translit, Bare::No),
        ("undefine", Builtin::Undefine, Bare::No),
        ("undivert", Builtin::Undivert, Bare::Yes),
        ("include", Builtin::Outside, Bare::No),
        ("sinclude", Builtin::Outside, Bare::No),
        ("syscmd", Builtin::Outside, Bare::No),
        ("esyscmd", Builtin::Outside, Bare::No),
    ];
}

impl Machine {
    pub(super) fn builtin(&mut self, builtin: Builtin, arguments: Vec<TracedText>, origin: u32) -> MacroStep {
        let empty = TracedText::default();
        let argument = |number: usize| arguments.get(number).unwrap_or(&empty);
        let first = argument(0);
        match builtin {
            Builtin::Define => self.set(first, argument(1), origin, false)?,
            Builtin::Pushdef => self.set(first, argument(1), origin, true)?,
            Builtin::Popdef => {
                for name in &arguments {
                    if let Some(meanings) = self.macros.get_mut(&name.bytes) {
                        meanings.pop();
                        if meanings.is_empty() {
                            self.macros.remove(&name.bytes);
                        }
                    }
                }
            }
            Builtin::Undefine => arguments.iter().for_each(|name| drop(self.macros.remove(&name.bytes))),
            Builtin::Default => {
                self.defaults.push(first.bytes.clone());
                if self.lookup(&first.bytes).is_none() {
                    self.set(first, argument(1), origin, false)?;
                }
            }
            Builtin::Defn => {
                if let Some(Macro { meaning: Meaning::Text(body), .. }) = self.lookup(&first.bytes) {
                    // As if quoted: straight to the output.
                    self.emit(&body)?;
                }
            }
            Builtin::Ifdef => {
                let chosen = if self.lookup(&first.bytes).is_some() { 1 } else { 2 };
                self.push(argument(chosen).clone());
            }
            Builtin::Ifelse => {
                let mut rest = &arguments[..];
                while rest.len() >= 3 {
                    if rest[0].bytes == rest[1].bytes {
                        self.push(rest[2].clone());
                        return Ok(());
                    }
                    rest = &rest[3..];
                    if let [otherwise] | [otherwise, _] = rest {
                        self.push(otherwise.clone());
                        return Ok(());
                    }
                }
            }
            Builtin::Eval => {
                if arguments.len() > 1 {
                    return Err(Diagnostic::at(point(origin), "`eval` takes one argument here").into());
                }
                let value = self.number(first, origin)?;
                self.answer(&value.to_string(), origin);
            }
            Builtin::Incr | Builtin::Decr => {
                let by = if builtin == Builtin::Incr { 1 } else { -1 };
                let value = self.number(first, origin)?.wrapping_add(by);
                self.answer(&value.to_string(), origin);
            }
            Builtin::Len => self.answer(&first.len().to_string(), origin),
            Builtin::Index => {
                let wanted = &argument(1).bytes;
                let found = match wanted.len() {
                    0 => Some(0),
                    length => first.bytes.windows(length).position(|window| window == wanted),
                };
                self.answer(&found.map_or(-1, |at| at as i64).to_string(), origin);
            }
            Builtin::Substr => {
                let from = self.number(argument(1), origin)?;
                let length = if arguments.len() > 2 { self.number(argument(2), origin)? } else { i32::MAX };
                if from >= 0 && length > 0 && (from as usize) < first.len() {
                    let end = (from as usize).saturating_add(length as usize).min(first.len());
                    self.push(first.slice(from as usize..end));
                }
            }
            Builtin::Translit => {
                let (from, to) = (ranges(&argument(1).bytes), ranges(&argument(2).bytes));
                let mut text = TracedText::default();
                for (&byte, &origin) in first.bytes.iter().zip(&first.origins) {
                    match from.iter().position(|&wanted| wanted == byte) {
                        Some(at) => to.get(at).iter().for_each(|&&byte| text.push(byte, origin)),
                        None => text.push(byte, origin),
                    }
                }
                self.push(text);
            }
            Builtin::Shift => {
                let mut text = TracedText::default();
                for (number, argument) in arguments.iter().skip(1).enumerate() {
                    if number > 0 {
                        text.push(b',', origin);
                    }
                    text.extend(&TracedText::placed(&self.open, origin));
                    text.extend(argument);
                    text.extend(&TracedText::placed(&self.close, origin));
                }
                self.push(text);
            }
            Builtin::Dnl => while self.advance().is_some_and(|(byte, _)| byte != b'\n') {},
            Builtin::Divert => {
                self.diversion = if first.bytes.is_empty() { 0 } else { self.number(first, origin)? };
            }
            Builtin::Undivert => {
                let numbers = match arguments[..] {
                    [] => self.diverted.keys().copied().collect(),
                    _ => arguments.iter().map(|number| self.number(number, origin)).collect::<Result<Vec<_>, _>>()?,
                };
                for number in numbers {
                    // Output that is diverted into itself is not moved.
                    if number > 0
                        && number != self.diversion
                        && let Some(text) = self.diverted.remove(&number)
                    {
                        self.emit(&text)?;
                    }
                }
            }
            Builtin::Changequote => {
                let or = |given: &TracedText, standard: &[u8]| {
                    if given.bytes.is_empty() { standard.to_vec() } else { given.bytes.clone() }
                };
                let word =
                    |quote: &[u8]| quote.iter().any(|byte| byte.is_ascii_alphanumeric() || b"_(),".contains(byte));
                let (open, close) = (or(first, b"`"), or(argument(1), b"'"));
                if word(&open) || word(&close) || open == close {
                    return Err(Diagnostic::at(point(origin), "these cannot be quotes")
                        .help("two different marks that are neither letters, digits, commas nor parentheses")
                        .into());
                }
                (self.open, self.close) = (open, close);
            }
            Builtin::Changecom => {
                if first.bytes != b"//" {
                    return Err(
                        Diagnostic::at(point(origin), "comments begin with `//` here and with nothing else").into()
                    );
                }
            }
            // Words may end in `!` and `?`, which is what files use this for.
            Builtin::Changeword => {}
            Builtin::Outside => {
                return Err(Diagnostic::at(point(origin), "a model is one file: macros reach nothing outside it")
                    .help("put the text of the other file here")
                    .into());
            }
        }
        Ok(())
    }

    /// Defines a name, replacing its definition or on top of it.
    fn set(&mut self, name: &TracedText, body: &TracedText, origin: u32, on_top: bool) -> MacroStep {
        // A name that is no word can never be used, and m4 accepts it: `forloop(i, …)` within a loop over i comes
        // to that.
        if name.bytes.is_empty() {
            return Err(Diagnostic::at(point(origin), "a macro must have a name")
                .help("if the name is a macro already, quote it: `name'")
                .into());
        }
        let defined = Macro { meaning: Meaning::Text(Rc::new(body.clone())), bare: Bare::Yes };
        let meanings = self.macros.entry(name.bytes.clone()).or_default();
        if !on_top {
            meanings.pop();
        }
        meanings.push(defined);
        self.work += body.len() + 1;
        Ok(())
    }

    fn answer(&mut self, text: &str, origin: u32) {
        self.push(TracedText::placed(text.as_bytes(), origin));
    }

    fn number(&self, text: &TracedText, origin: u32) -> Result<i32, Vec<Diagnostic>> {
        eval::evaluate(&text.bytes).map_err(|error| {
            let place = text.origins.first().copied().filter(|&place| place != NOWHERE).unwrap_or(origin);
            let known = shown(&text.bytes);
            Diagnostic::at(point(place), format!("`{}` {error}", known.trim()))
                .help("a number is wanted here; is a parameter missing? Give it with `--param NAME=VALUE`")
                .into()
        })
    }
}

/// The characters that an argument of `translit` names: `a-c` are three.
fn ranges(text: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match text[at..] {
            [from, b'-', to, ..] if from <= to => {
                all.extend(from..=to);
                at += 3;
            }
            _ => {
                all.push(text[at]);
                at += 1;
            }
        }
    }
    all
}
