//! The file: XML to declarations, pages, and a flat net of place and transition instances.
//!
//! In: the XML tree. Out: [`File`]. Texts keep their position, so that errors point into the file. `layout`, monitors and
//! drawings are skipped.

use std::collections::HashMap;

use deltamark_core::{Diagnostic, Span};
use roxmltree::Node;

use crate::lexer::Wrong;
use crate::parse::Parser;
use crate::syntax::{ColourSpec, Dec, Exp};

/// A text of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inscription {
    pub text: String,
    pub start: usize,
    pub end: usize,
}

/// A piece of the declarations.
pub(crate) enum Declaration {
    /// Parsed, with the text that positions are in.
    Known(Vec<Dec>, Inscription),
    /// Text in CPN ML.
    Text(Inscription),
    /// Another file.
    Use(String, Inscription),
    /// Refused, for this reason.
    Refused(String, Span),
}

pub(crate) struct PlaceText {
    pub id: String,
    pub name: String,
    pub of: Option<Inscription>,
    pub initial: Inscription,
    pub fusion: Option<String>,
    pub span: Span,
}

#[derive(Default)]
pub(crate) struct TransText {
    pub id: String,
    pub name: String,
    pub guard: Inscription,
    pub time: Inscription,
    pub code: Inscription,
    pub priority: Inscription,
    pub channel: bool,
    /// The subpage, and pairs of port and socket.
    pub subst: Option<(String, Vec<(String, String)>)>,
    pub span: (usize, usize),
}

pub(crate) struct ArcText {
    pub orientation: String,
    pub place: String,
    pub trans: String,
    pub label: Inscription,
    pub span: Span,
}

pub(crate) struct Page {
    pub id: String,
    pub name: String,
    pub places: Vec<PlaceText>,
    pub transitions: Vec<TransText>,
    pub arcs: Vec<ArcText>,
}

impl Page {
    /// For the id of each place its number; ids are unique.
    pub fn place_numbers(&self) -> HashMap<&str, usize> {
        (0..).zip(&self.places).map(|(at, place)| (place.id.as_str(), at)).collect()
    }
}

#[derive(Default)]
pub(crate) struct File {
    pub declarations: Vec<Declaration>,
    pub pages: Vec<Page>,
    /// Fusion sets by the ids of their places.
    pub fusions: Vec<Vec<String>>,
}

impl Inscription {
    fn of(node: Option<Node<'_, '_>>) -> Self {
        // A text may be behind an element `layout`.
        let texts = || node.into_iter().flat_map(|node| node.children()).filter(|child| child.is_text());
        let says = |text: &Node<'_, '_>| text.text().is_some_and(|words| !words.trim().is_empty());
        let Some(text) = texts().find(says).or_else(|| texts().next()) else {
            let at = node.map_or(0, |node| node.range().start);
            return Inscription { text: String::new(), start: at, end: at };
        };
        let range = text.range();
        Inscription { text: text.text().unwrap_or_default().into(), start: range.start, end: range.end }
    }

    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Where a position of the text is in the file: references like `&lt;` are longer there.
    pub fn span(&self, source: &str, at: usize) -> Span {
        let mut place = self.start.min(source.len());
        let end = self.end.min(source.len());
        let mut done = 0;
        for c in self.text.chars() {
            if done >= at || place >= end {
                break;
            }
            done += c.len_utf8();
            let rest = &source[place..end];
            place += if rest.starts_with('&') {
                rest.find(';').map_or(1, |semicolon| semicolon + 1)
            } else if rest.starts_with("\r\n") {
                2
            } else {
                rest.chars().next().map_or(1, char::len_utf8)
            };
        }
        Span::new(place.min(end), place.min(end))
    }

    /// What is wrong in this text, as a diagnostic.
    pub fn diagnose(&self, source: &str, what: &str, wrong: &Wrong) -> Diagnostic {
        advised(Diagnostic::at(self.span(source, wrong.at), format!("{}, in {what}", wrong.message)), wrong)
    }
}

/// A diagnostic with the advice that there is.
pub(crate) fn advised(diagnostic: Diagnostic, wrong: &Wrong) -> Diagnostic {
    match &wrong.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}

fn span(node: Node<'_, '_>) -> Span {
    let range = node.range();
    Span::new(range.start, range.end.min(range.start + 1 + node.tag_name().name().len()))
}

fn child<'a>(node: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
    node.children().find(|child| child.has_tag_name(name))
}

fn label<'a>(node: Node<'a, 'a>, name: &str) -> Inscription {
    Inscription::of(child(node, name).and_then(|inner| child(inner, "text")))
}

/// A name as reports show it.
fn shown(node: Node<'_, '_>) -> String {
    let text = Inscription::of(node.children().find(|child| child.has_tag_name("text"))).text;
    text.split_whitespace().collect::<Vec<_>>().join("_")
}

/// Reads a file.
pub(crate) fn read(root: Node<'_, '_>) -> Result<File, Diagnostic> {
    let Some(net) = root.descendants().find(|node| node.has_tag_name("cpnet")) else {
        return Err(Diagnostic::at(span(root), "there is no `cpnet` in this file"));
    };
    let mut file = File::default();
    for part in net.children().filter(Node::is_element) {
        match part.tag_name().name() {
            "globbox" => declarations(part, &mut file)?,
            "page" => file.pages.push(page(part)),
            "fusion" => {
                let members = part.children().filter(|one| one.has_tag_name("fusion_elm"));
                file.fusions.push(members.filter_map(|one| one.attribute("idref")).map(str::to_string).collect());
            }
            _ => {}
        }
    }
    Ok(file)
}

fn declarations(globbox: Node<'_, '_>, file: &mut File) -> Result<(), Diagnostic> {
    for part in globbox.children().filter(Node::is_element) {
        match part.tag_name().name() {
            "block" => declarations(part, file)?,
            "ml" | "errordecl" => file.declarations.push(Declaration::Text(Inscription::of(Some(part)))),
            "color" => file.declarations.push(colour(part)),
            "var" => file.declarations.push(variables(part)),
            "globref" => {
                let texts = ids(part);
                let value = ml(part);
                let whole = value.first().cloned().unwrap_or_default();
                file.declarations.push(match (texts.first(), exps(&value)) {
                    (Some(name), Ok(exps)) if exps.len() == 1 => {
                        Declaration::Known(exps.into_iter().map(|exp| Dec::Globref(name.clone(), exp)).collect(), whole)
                    }
                    _ => Declaration::Refused(
                        "this reference is declared in a way that is not understood".into(),
                        span(part),
                    ),
                });
            }
            "use" => {
                let text = ml(part).into_iter().next().unwrap_or_else(|| Inscription::of(Some(part)));
                let path = text.text.trim().trim_matches('"').to_string();
                file.declarations.push(Declaration::Use(path, text));
            }
            _ => {}
        }
    }
    Ok(())
}

fn ids(node: Node<'_, '_>) -> Vec<String> {
    let ids = node.children().filter(|child| child.has_tag_name("id"));
    ids.map(|id| Inscription::of(Some(id)).text.trim().to_string()).collect()
}

/// The expressions below a node.
fn ml(node: Node<'_, '_>) -> Vec<Inscription> {
    node.descendants().filter(|child| child.has_tag_name("ml")).map(|child| Inscription::of(Some(child))).collect()
}

fn exps(texts: &[Inscription]) -> Result<Vec<Exp>, Wrong> {
    let mut out = Vec::new();
    for text in texts {
        out.extend(Parser::inscription(&text.text)?);
    }
    Ok(out)
}

fn variables(part: Node<'_, '_>) -> Declaration {
    let of = child(part, "type").map(|of| ids(of)).unwrap_or_default();
    let names = ids(part).into_iter().map(|name| (name, 0)).collect();
    let position = Inscription { start: part.range().start, end: part.range().start, ..Inscription::default() };
    match of.first() {
        Some(of) => Declaration::Known(vec![Dec::Vars { names, of: of.clone(), at: 0 }], position),
        None => Declaration::Refused("these variables have no colour set".into(), span(part)),
    }
}

fn colour(part: Node<'_, '_>) -> Declaration {
    let at = span(part);
    let refused = |why: String| Declaration::Refused(why, at);
    let name = ids(part).into_iter().next().unwrap_or_default();
    let timed = child(part, "timed").is_some();
    let kinds = ["id", "timed", "layout", "declare"];
    let kind = part.children().find(|child| child.is_element() && !kinds.contains(&child.tag_name().name()));
    let Some(kind) = kind else { return refused(format!("the colour set `{name}` has no form")) };
    let names = ids(kind);
    let texts = ml(kind);
    let with = child(kind, "with");
    let exps = match exps(&texts) {
        Ok(exps) => exps,
        Err(wrong) => return refused(format!("the colour set `{name}` is not understood: {}", wrong.message)),
    };
    let mut exps = exps.into_iter();
    let pair = |exps: &mut dyn Iterator<Item = Exp>| exps.next().zip(exps.next());
    let spec = match kind.tag_name().name() {
        "unit" => Some(ColourSpec::Unit(with.map(|with| ids(with)).unwrap_or(names).first().cloned())),
        "bool" => {
            let names = with.map(|with| ids(with)).unwrap_or(names);
            Some(ColourSpec::Bool(if let [no, yes] = names.as_slice() {
                Some((no.clone(), yes.clone()))
            } else {
                None
            }))
        }
        "int" => Some(ColourSpec::Int(pair(&mut exps))),
        "string" => {
            let range = pair(&mut exps);
            Some(ColourSpec::Str(range.map(|(low, high)| Box::new((low, high, pair(&mut exps))))))
        }
        "enum" => Some(ColourSpec::Enum(names)),
        "index" => {
            names.first().cloned().zip(pair(&mut exps)).map(|(name, (low, high))| ColourSpec::Index(name, low, high))
        }
        "product" => Some(ColourSpec::Product(names)),
        "record" => {
            let fields = kind.children().filter(|child| child.has_tag_name("recordfield")).map(ids);
            let pair =
                |ids: Vec<String>| if let [label, of] = &ids[..] { Some((label.clone(), of.clone())) } else { None };
            fields.map(pair).collect::<Option<Vec<_>>>().map(ColourSpec::Record)
        }
        "list" => names.first().cloned().map(|of| ColourSpec::List(of, pair(&mut exps))),
        "union" => {
            let fields = kind.children().filter(|child| child.has_tag_name("unionfield"));
            let one = |field: Node<'_, '_>| {
                let name = ids(field).into_iter().next()?;
                let of = field.children().find(|child| child.has_tag_name("type"));
                Some((name, of.and_then(|of| ids(of).into_iter().next())))
            };
            fields.map(one).collect::<Option<Vec<_>>>().map(ColourSpec::Union)
        }
        "subset" => {
            let by = child(kind, "by").is_some();
            names
                .first()
                .cloned()
                .zip(exps.next())
                .map(|(of, exp)| if by { ColourSpec::SubsetBy(of, exp) } else { ColourSpec::SubsetWith(of, exp) })
        }
        "alias" => names.first().cloned().map(ColourSpec::Alias),
        kind @ ("real" | "time" | "intinf") => Some(ColourSpec::Other(kind.into())),
        // Refused where it is used.
        other => Some(ColourSpec::Other(other.into())),
    };
    let position = Inscription { start: at.start, end: at.start, ..Inscription::default() };
    match spec {
        Some(ColourSpec::Enum(names)) if names.is_empty() => refused(format!("the colour set `{name}` has no values")),
        Some(ColourSpec::Union(names)) if names.is_empty() => refused(format!("the colour set `{name}` has no values")),
        Some(ColourSpec::Product(parts)) if parts.len() < 2 => {
            refused(format!("the colour set `{name}` has too few parts"))
        }
        Some(ColourSpec::Record(parts)) if parts.is_empty() => {
            refused(format!("the colour set `{name}` has no fields"))
        }
        Some(spec) => {
            Declaration::Known(vec![Dec::Colour { name, spec, timed, declared: Vec::new(), at: 0 }], position)
        }
        None => refused(format!("the colour set `{name}` is declared in a way that is not understood")),
    }
}

fn page(node: Node<'_, '_>) -> Page {
    let name = node.children().find(|child| child.has_tag_name("pageattr"));
    let name = name.and_then(|attr| attr.attribute("name")).unwrap_or("Page");
    let id = |node: Node<'_, '_>| node.attribute("id").unwrap_or_default().to_string();
    let mut page = Page {
        id: id(node),
        name: name.split_whitespace().collect::<Vec<_>>().join("_"),
        places: Vec::new(),
        transitions: Vec::new(),
        arcs: Vec::new(),
    };
    for part in node.children().filter(Node::is_element) {
        match part.tag_name().name() {
            "place" => page.places.push(PlaceText {
                id: id(part),
                name: shown(part),
                of: Some(label(part, "type")).filter(|of| !of.is_blank()),
                initial: label(part, "initmark"),
                fusion: child(part, "fusioninfo").and_then(|info| info.attribute("name")).map(str::to_string),
                span: span(part),
            }),
            "trans" => {
                let subst = child(part, "subst").map(|subst| {
                    let pairs = subst.attribute("portsock").unwrap_or_default();
                    let pair = |text: &str| -> Option<(String, String)> {
                        let (port, socket) = text.trim_start_matches('(').split_once(',')?;
                        Some((port.trim().into(), socket.trim().into()))
                    };
                    (subst.attribute("subpage").unwrap_or_default().into(), pairs.split(')').filter_map(pair).collect())
                });
                page.transitions.push(TransText {
                    id: id(part),
                    name: shown(part),
                    guard: label(part, "cond"),
                    time: label(part, "time"),
                    code: label(part, "code"),
                    priority: label(part, "priority"),
                    channel: child(part, "channel")
                        .is_some_and(|channel| !Inscription::of(child(channel, "text")).is_blank()),
                    subst,
                    span: (span(part).start, span(part).end),
                });
            }
            "arc" => {
                let end = |name: &str| child(part, name).and_then(|end| end.attribute("idref")).unwrap_or_default();
                page.arcs.push(ArcText {
                    orientation: part.attribute("orientation").unwrap_or_default().to_ascii_lowercase(),
                    place: end("placeend").into(),
                    trans: end("transend").into(),
                    label: label(part, "annot"),
                    span: span(part),
                });
            }
            _ => {}
        }
    }
    page
}
