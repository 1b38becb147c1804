//! Expressions over markings, for properties: `size (Mark Buffer) <= 3`.
//!
//! In: a text in CPN ML in which `Mark` stands for the marking of a place: `Mark Buffer`, `Mark "Top'Buffer 1"`,
//! `Mark Top'Buffer 1`, or as CPN Tools writes it `Mark.Top'Buffer 1`. Out: an expression of the host whose variables are
//! these markings, as multisets. What stays true: a text is one of ours if and only if the word `Mark` is in it.

use std::collections::BTreeMap;

use deltamark_coloured::net::PlaceId;
use deltamark_core::{Diagnostic, Span};

use crate::infer::{Model, Ready};
use crate::lexer::{Word, Wrong, words, wrong};
use crate::parse::Parser;
use crate::syntax::{Clause, Dec, Exp, ExpKind};

/// A place as properties name it.
#[derive(Clone, Debug)]
pub(crate) struct MarkedPlace {
    /// `Page'Name`, `1`, and `Name`; of every member of a fusion set.
    pub names: Vec<(String, usize, String)>,
    pub place: PlaceId,
    pub colour: u32,
}

/// An expression over markings.
pub(crate) struct MarkExpression {
    pub ready: Ready,
    pub places: Vec<PlaceId>,
    pub truth: bool,
}

/// Whether a text speaks of markings.
pub(crate) fn speaks(text: &str) -> bool {
    match words(text) {
        Ok(words) => words.iter().any(|(word, _)| matches!(word, Word::Name(name) if is_mark(name))),
        // What is wrong is said by the reader of such texts.
        Err(_) => text.contains("Mark ") || text.contains("Mark."),
    }
}

fn is_mark(name: &str) -> bool {
    name == "Mark" || name.starts_with("Mark.")
}

/// Reads an expression.
pub(crate) fn read(model: &mut Model, places: &[MarkedPlace], text: &str) -> Result<MarkExpression, Vec<Diagnostic>> {
    read_wrong(model, places, text).map_err(|wrong| {
        let at = wrong.at.min(text.len());
        let end = text[at..].chars().next().map_or(at, |letter| at + letter.len_utf8());
        vec![crate::file::advised(Diagnostic::at(Span::new(at, end), wrong.message.clone()), &wrong)]
    })
}

fn read_wrong(model: &mut Model, places: &[MarkedPlace], text: &str) -> Result<MarkExpression, Wrong> {
    let Some(mut exp) = Parser::inscription(text)? else { return wrong(0, "the expression is empty") };
    let mut marks = Marks { places, used: BTreeMap::new() };
    marks.exp(&mut exp)?;
    let names = marks.used.iter().map(|(name, &at)| (name.clone(), places[at].colour)).collect::<Vec<_>>();
    let (bool_, int) = (model.bool(), model.int());
    let (ready, truth) = match model.ready_with(&names, &exp, bool_) {
        Ok(ready) => (ready, true),
        Err(as_truth) => match model.ready_with(&names, &exp, int) {
            Ok(ready) => (ready, false),
            Err(_) => return Err(as_truth),
        },
    };
    let place = |(name, _): &(String, u32)| marks.used.get(name).map(|&at| places[at].place);
    match ready.given.iter().map(place).collect::<Option<Vec<_>>>() {
        Some(places) => Ok(MarkExpression { ready, places, truth }),
        None => {
            let free = ready.given.iter().find(|(name, _)| !marks.used.contains_key(name));
            let name = free.map_or("", |(name, _)| name.as_str());
            wrong(0, format!("`{name}` is a variable of the net and has no value in a marking"))
        }
    }
}

/// Replaces `Mark P` by names that no text can have.
struct Marks<'a> {
    places: &'a [MarkedPlace],
    used: BTreeMap<String, usize>,
}

impl Marks<'_> {
    /// The place of this name, with or without page and instance.
    fn place(&mut self, name: &str, instance: Option<i64>, at: usize) -> Result<ExpKind, Wrong> {
        let name = name.split_whitespace().collect::<Vec<_>>().join("_");
        let (name, instance) = match (name.rsplit_once('_'), instance) {
            // `Top'Buffer 1` as one text.
            (Some((before, number)), None) if name.contains('\'') => match number.parse::<i64>() {
                Ok(number) if self.places.iter().any(|place| place.is(before, Some(number))) => {
                    (before.to_string(), Some(number))
                }
                _ => (name, None),
            },
            _ => (name, instance),
        };
        let found: Vec<usize> = (0..self.places.len()).filter(|&at| self.places[at].is(&name, instance)).collect();
        match found.as_slice() {
            &[only] => {
                let mark = format!("mark {only}");
                self.used.insert(mark.clone(), only);
                Ok(ExpKind::Name(mark))
            }
            [] => {
                let known: Vec<&str> = self
                    .places
                    .iter()
                    .flat_map(|place| &place.names)
                    .map(|known| if name.contains('\'') { known.0.as_str() } else { known.2.as_str() })
                    .collect();
                let close = deltamark_core::diagnostic::did_you_mean(&name, known);
                let close = close.map(|close| format!("; did you mean `{close}`?")).unwrap_or_default();
                wrong(at, format!("there is no place `{name}`{close}"))
            }
            several => {
                let some: Vec<String> = several
                    .iter()
                    .take(5)
                    .filter_map(|&at| self.places[at].names.first())
                    .map(|(full, number, _)| format!("`Mark.{full} {number}`"))
                    .collect();
                wrong(at, format!("several places are called `{name}`; write {}", some.join(" or ")))
            }
        }
    }

    fn exp(&mut self, exp: &mut Exp) -> Result<(), Wrong> {
        let at = exp.at;
        if let ExpKind::App(function, argument) = &exp.kind {
            let instance = if let ExpKind::Int(number) = argument.kind { Some(number) } else { None };
            let found = match (&function.kind, &argument.kind) {
                (ExpKind::Name(mark), ExpKind::Name(name) | ExpKind::Str(name)) if mark == "Mark" => {
                    Some(self.place(name, None, argument.at)?)
                }
                (ExpKind::Name(mark), ExpKind::Int(_)) if mark.starts_with("Mark.") => {
                    Some(self.place(&mark["Mark.".len()..], instance, function.at)?)
                }
                (ExpKind::App(mark, name), ExpKind::Int(_)) => match (&mark.kind, &name.kind) {
                    (ExpKind::Name(mark), ExpKind::Name(page)) if mark == "Mark" => {
                        Some(self.place(page, instance, name.at)?)
                    }
                    _ => None,
                },
                _ => None,
            };
            if let Some(kind) = found {
                *exp = Exp { kind, at };
                return Ok(());
            }
        }
        match &mut exp.kind {
            ExpKind::Name(name) if is_mark(name) => {
                wrong(at, "`Mark` is followed by the name of a place: `Mark Buffer`")
            }
            ExpKind::Int(_)
            | ExpKind::Str(_)
            | ExpKind::Char(_)
            | ExpKind::Name(_)
            | ExpKind::Select(_)
            | ExpKind::Refused(_) => Ok(()),
            ExpKind::Tuple(parts) | ExpKind::List(parts) | ExpKind::Seq(parts) => {
                parts.iter_mut().try_for_each(|part| self.exp(part))
            }
            ExpKind::Record(fields) => fields.iter_mut().try_for_each(|field| self.exp(&mut field.1)),
            ExpKind::Let(decs, body) => {
                decs.iter_mut().try_for_each(|dec| self.dec(dec))?;
                self.exp(body)
            }
            ExpKind::App(one, other) | ExpKind::And(one, other) | ExpKind::Or(one, other) => {
                self.exp(one)?;
                self.exp(other)
            }
            ExpKind::If(one, two, three) => {
                self.exp(one)?;
                self.exp(two)?;
                self.exp(three)
            }
            ExpKind::Case(of, rules) | ExpKind::Handle(of, rules) => {
                self.exp(of)?;
                rules.iter_mut().try_for_each(|rule| self.exp(&mut rule.1))
            }
            ExpKind::Fn(rules) => rules.iter_mut().try_for_each(|rule| self.exp(&mut rule.1)),
            ExpKind::Raise(of) | ExpKind::Typed(of, _) => self.exp(of),
        }
    }

    fn dec(&mut self, dec: &mut Dec) -> Result<(), Wrong> {
        let clause = |marks: &mut Self, clause: &mut Clause| marks.exp(&mut clause.body);
        match dec {
            Dec::Val(bindings) => bindings.iter_mut().try_for_each(|binding| self.exp(&mut binding.1)),
            Dec::Fun(functions) => functions.iter_mut().flatten().try_for_each(|one| clause(self, one)),
            Dec::Local(inner, outer) => inner.iter_mut().chain(outer).try_for_each(|dec| self.dec(dec)),
            _ => Ok(()),
        }
    }
}

impl MarkedPlace {
    fn is(&self, name: &str, instance: Option<i64>) -> bool {
        self.names.iter().any(|(full, number, short)| {
            (full == name || short == name && instance.is_none())
                && instance.is_none_or(|wanted| wanted == *number as i64)
        })
    }
}
