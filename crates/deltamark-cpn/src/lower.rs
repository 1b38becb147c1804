//! From pages and code to a coloured net.
//!
//! In: a [`File`], flattened, and the declarations. Out: a [`Net`] whose inscriptions are patterns where they can be
//! taken apart, and calls of the [host](crate::host) everywhere else.
//!
//! # Where the values of variables come from
//! From tokens, where an input is a pattern; from an equation in the guard once the other side is known; otherwise from
//! all values of the colour set, which must be small. Whatever the source, the guard is tested as a whole and every value
//! must be legal, so the source decides the cost and not the result.
//!
//! An inhibitor arc is a conjunct of the guard: the place is empty. The most urgent priority is the smallest number, and
//! that of coloured nets the largest, hence the sign.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc as Shared, Mutex};

use deltamark_coloured::net::{
    Arc, Binary, Domain, Expr, ExprKind, Host, Net, Place, PlaceId, Role, Term, Transition, Type, TypeId, Value, Var,
    Variable,
};
use deltamark_core::{Control, Diagnostic, Findings, Span};

use crate::colours::{Colours, Form, field_order};
use crate::eval::{Machine, World};
use crate::file::{ArcText, Declaration, File, Inscription, TransText};
use crate::flatten::{Flat, flatten};
use crate::host::{CpnHost, Gives, HostExpression};
use crate::infer::{Meaning, Model};
use crate::lexer::{Word, Wrong, words};
use crate::parse::Parser;
use crate::syntax::{Exp, ExpKind, Pat, PatKind};

/// A part of an arc's inscription, before the host exists.
#[derive(Clone, Debug)]
enum Piece {
    Var(usize),
    Const(Value),
    Row(Vec<Piece>),
    Cons(Box<Piece>, Box<Piece>),
    /// Expression of the host, and its variables.
    Host(u32, Vec<usize>),
}

#[derive(Clone, Debug)]
struct PieceTerm {
    factor: i64,
    token: Piece,
    spread: bool,
}

/// Reads the model.
pub(crate) struct Lowering<'a> {
    pub source: &'a str,
    pub model: Model,
    expressions: Vec<HostExpression>,
    findings: Findings,
}

/// The variables of a transition in work.
#[derive(Default)]
struct Frame {
    names: Vec<(String, u32)>,
}

impl Frame {
    fn var(&mut self, name: &str, of: u32) -> usize {
        self.names.iter().position(|known| known.0 == name).unwrap_or_else(|| {
            self.names.push((name.into(), of));
            self.names.len() - 1
        })
    }
}

fn priority_default() -> i64 {
    1000
}

impl<'a> Lowering<'a> {
    pub fn new(source: &'a str, parameters: &[(String, String)], control: &Control) -> Self {
        let mut model = Model::new();
        model.parameters = parameters.iter().map(|(name, value)| (name.clone(), value.clone(), false)).collect();
        Lowering { source, model, expressions: Vec::new(), findings: Findings::under(control) }
    }

    fn wrong(&mut self, text: &Inscription, what: &str, wrong: &Wrong) {
        let diagnostic = text.diagnose(self.source, what, wrong);
        self.findings.add(|| diagnostic);
    }

    fn refuse(&mut self, span: Span, message: String) {
        self.findings.add(|| Diagnostic::at(span, message));
    }

    fn declare(&mut self, file: &File) {
        for declaration in &file.declarations {
            match declaration {
                Declaration::Known(decs, text) => {
                    if let Err(wrong) = self.model.declare(decs) {
                        self.wrong(text, "the declarations", &wrong);
                    }
                }
                Declaration::Refused(why, span) => self.refuse(*span, why.clone()),
                Declaration::Text(text) => match Parser::declarations(&text.text) {
                    Ok(decs) => {
                        for dec in decs {
                            let one = std::slice::from_ref(&dec);
                            if let Err(wrong) = self.model.declare(one) {
                                // Functions for monitors and logging are often not for us: only who uses them is told.
                                let refusable = matches!(
                                    dec,
                                    crate::syntax::Dec::Val(_)
                                        | crate::syntax::Dec::Fun(_)
                                        | crate::syntax::Dec::Globref(..)
                                        | crate::syntax::Dec::Local(..)
                                );
                                if refusable {
                                    let at = text.span(self.source, wrong.at).start;
                                    let (line, column) = deltamark_core::diagnostic::line_column(self.source, at);
                                    let why = format!("{} (line {line}, column {column})", wrong.message);
                                    self.model.refuse(one, &why);
                                } else {
                                    self.wrong(text, "the declarations", &wrong);
                                }
                            }
                        }
                    }
                    Err(wrong) => self.wrong(text, "the declarations", &wrong),
                },
            }
        }
        let unused: Vec<String> =
            self.model.parameters.iter().filter(|known| !known.2).map(|known| known.0.clone()).collect();
        for name in unused {
            self.findings.add(|| {
                Diagnostic::new(format!("the model has no `val {name}` that `--param {name}=…` could change"))
                    .help("initial markings are changed with `--marking PLACE=EXPR`")
            });
        }
    }

    /// Adds an expression to the host; its variables as numbers of the frame.
    fn host(&mut self, exp: &Exp, ty: u32, gives: Gives, what: &str, frame: &mut Frame) -> Result<Piece, Wrong> {
        let ready = self.model.ready(exp, ty)?;
        let used = ready.given.iter().map(|(name, of)| frame.var(name, *of)).collect();
        self.expressions.push(HostExpression { ready: Some(ready), gives, what: what.into() });
        Ok(Piece::Host(self.expressions.len() as u32 - 1, used))
    }

    /// A token of a colour set, taken apart as far as it is built of variables and constructors.
    fn token(&mut self, exp: &Exp, of: u32, taken: bool, what: &str, frame: &mut Frame) -> Result<Piece, Wrong> {
        let form = &self.model.colours.get(of).form;
        let form = match form {
            Form::By(of, _) | Form::With(of, _) => &self.model.colours.get(*of).form,
            other => other,
        };
        match (&exp.kind, form) {
            (ExpKind::Name(name), _) => {
                if let Some(entry) = self.model.lookup(name)
                    && let Meaning::NetVar(colour) = entry.meaning
                {
                    return Ok(Piece::Var(frame.var(name, colour)));
                }
            }
            (ExpKind::Typed(inner, _), _) => return self.token(inner, of, taken, what, frame),
            (ExpKind::Tuple(parts), Form::Product(colours)) if parts.len() == colours.len() => {
                let colours = colours.clone();
                let parts = parts.iter().zip(colours).map(|(part, of)| self.token(part, of, taken, what, frame));
                return Ok(Piece::Row(parts.collect::<Result<Vec<_>, _>>()?));
            }
            (ExpKind::Record(given), Form::Record(fields)) if given.len() == fields.len() => {
                let order: Vec<(String, u32)> = field_order(fields).into_iter().map(|at| fields[at].clone()).collect();
                let mut parts = Vec::new();
                for (label, of) in order {
                    if let Some((_, part)) = given.iter().find(|known| known.0 == label) {
                        parts.push(self.token(part, of, taken, what, frame)?);
                    }
                }
                return Ok(Piece::Row(parts));
            }
            (ExpKind::List(parts), Form::List(of, _)) => {
                let of = *of;
                let parts = parts.iter().map(|part| self.token(part, of, taken, what, frame));
                return Ok(Piece::Row(parts.collect::<Result<Vec<_>, _>>()?));
            }
            (ExpKind::App(function, argument), form) => {
                if let ExpKind::Name(name) = &function.kind {
                    match (name.as_str(), &argument.kind, form) {
                        ("::", ExpKind::Tuple(pair), Form::List(element, _)) if pair.len() == 2 => {
                            let element = *element;
                            let head = self.token(&pair[0], element, taken, what, frame)?;
                            let tail = self.token(&pair[1], of, taken, what, frame)?;
                            return Ok(Piece::Cons(Box::new(head), Box::new(tail)));
                        }
                        (_, _, Form::Union(alternatives)) => {
                            if let Some(entry) = self.model.lookup(name)
                                && let Meaning::Con(con, true) = entry.meaning
                                && let Some(at) = alternatives.iter().position(|one| one.0 == con)
                                && let Some(inner) = alternatives[at].1
                            {
                                let argument = self.token(argument, inner, taken, what, frame)?;
                                return Ok(Piece::Row(vec![Piece::Const(Value::Int(at as i32)), argument]));
                            }
                        }
                        (_, _, Form::Index { con, .. }) => {
                            if let Some(entry) = self.model.lookup(name)
                                && matches!(entry.meaning, Meaning::Con(own, true) if own == *con)
                            {
                                // Colour set 0 is that of all integers.
                                return self.token(argument, 0, taken, what, frame);
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        let ty = self.model.colours.get(of).ty;
        self.host(exp, ty, if taken { Gives::Taken(of) } else { Gives::Token(of) }, what, frame)
    }

    /// The terms of a multiset.
    fn terms(
        &mut self,
        exp: &Exp,
        of: u32,
        taken: bool,
        what: &str,
        frame: &mut Frame,
        out: &mut Vec<PieceTerm>,
    ) -> Result<(), Wrong> {
        match &exp.kind {
            ExpKind::Name(name) if name == "empty" => return Ok(()),
            ExpKind::List(items) => {
                for item in items {
                    let token = self.token(item, of, taken, what, frame)?;
                    out.push(PieceTerm { factor: 1, token, spread: false });
                }
                return Ok(());
            }
            ExpKind::App(function, argument) => {
                if let (ExpKind::Name(name), ExpKind::Tuple(pair)) = (&function.kind, &argument.kind)
                    && pair.len() == 2
                {
                    if name == "++" {
                        self.terms(&pair[0], of, taken, what, frame, out)?;
                        return self.terms(&pair[1], of, taken, what, frame, out);
                    }
                    if let ("`", ExpKind::Int(count)) = (name.as_str(), &pair[0].kind) {
                        if *count > 0 {
                            let token = self.token(&pair[1], of, taken, what, frame)?;
                            out.push(PieceTerm { factor: *count, token, spread: false });
                        }
                        return Ok(());
                    }
                }
            }
            _ => {}
        }
        let ty = self.model.colours.get(of).ty;
        let ty = self.model.types.list(ty);
        let gives = if taken { Gives::AllTaken(of) } else { Gives::Tokens(of) };
        let token = self.host(exp, ty, gives, what, frame)?;
        out.push(PieceTerm { factor: 1, token, spread: true });
        Ok(())
    }

    /// The terms of an inscription at a place of this colour set: one token if it has the type of one, else a multiset.
    fn inscription(
        &mut self,
        exp: &Exp,
        of: u32,
        taken: bool,
        what: &str,
        frame: &mut Frame,
    ) -> Result<Vec<PieceTerm>, Wrong> {
        let ty = self.model.colours.get(of).ty;
        let set = self.model.types.list(ty);
        // What is produced is checked as a whole where the colour set leaves values out.
        let whole = !taken && self.model.colours.is_restricted(of);
        match self.model.ready(exp, ty) {
            Ok(_) if whole => {
                let token = self.host(exp, ty, Gives::Token(of), what, frame)?;
                Ok(vec![PieceTerm { factor: 1, token, spread: false }])
            }
            Ok(_) => {
                let token = self.token(exp, of, taken, what, frame)?;
                Ok(vec![PieceTerm { factor: 1, token, spread: false }])
            }
            Err(as_token) => {
                if let Err(as_set) = self.model.ready(exp, set) {
                    let operator = matches!(&exp.kind, ExpKind::App(function, _) if matches!(&function.kind, ExpKind::Name(name) if ["`", "++", "--", "**", "%", "//"].contains(&name.as_str())));
                    return Err(if operator { as_set } else { as_token });
                }
                if whole {
                    let token = self.host(exp, set, Gives::Tokens(of), what, frame)?;
                    return Ok(vec![PieceTerm { factor: 1, token, spread: true }]);
                }
                let mut out = Vec::new();
                self.terms(exp, of, taken, what, frame, &mut out)?;
                Ok(out)
            }
        }
    }

    /// The net, and the code it calls.
    pub fn net(mut self, file: &File, markings: &[(String, String)]) -> Result<Net, Vec<Diagnostic>> {
        self.declare(file);
        if !self.findings.is_empty() {
            return Err(self.findings.or(()).err().unwrap_or_default());
        }
        let flat = flatten(file)?;
        let (places, numbers) = self.places(file, &flat, markings);
        let mut transitions = Vec::new();
        for (number, instance) in flat.instances.iter().enumerate() {
            let page = &file.pages[instance.page];
            let mut arcs: HashMap<&str, Vec<&ArcText>> = HashMap::new();
            for arc in &page.arcs {
                arcs.entry(arc.trans.as_str()).or_default().push(arc);
            }
            for trans in page.transitions.iter().filter(|trans| trans.subst.is_none()) {
                if self.findings.is_full() {
                    break;
                }
                let name = format!("{}'{} {}", page.name, trans.name, instance.number);
                let place = |id: &str| {
                    let at = page.places.iter().position(|place| place.id == id)?;
                    debug_assert_eq!(flat.places[instance.first + at].0, number);
                    numbers.get(&flat.group[instance.first + at]).copied()
                };
                let arcs = arcs.get(trans.id.as_str()).map(Vec::as_slice).unwrap_or_default();
                if let Some(transition) = self.transition(trans, name, arcs, &place, &places) {
                    transitions.push(transition);
                }
            }
        }
        let Lowering { model, expressions, findings, source, .. } = self;
        findings.or(())?;
        let _ = source;
        let Model { colours, globals, .. } = model;
        let host = Shared::new(CpnHost { globals, colours, expressions, messages: Mutex::default() });
        let mut net = Net { name: "net".into(), host: Some(Host(host.clone())), ..Net::default() };
        net.types = host
            .colours
            .list
            .iter()
            .enumerate()
            .map(|(number, colour)| Type { name: colour.name.clone(), shape: host.colours.shape(number as u32) })
            .collect();
        let handle = Host(host.clone());
        let mut names = BTreeSet::new();
        let mut unique = |name: String, id: &str| {
            let name = if names.contains(&name) { format!("{name} ({id})") } else { name };
            names.insert(name.clone());
            name
        };
        for place in places {
            let label = |terms: &[PieceTerm]| terms.iter().map(|term| build_term(term, &handle, place.span)).collect();
            net.places.push(Place {
                name: unique(place.name, &place.id),
                domain: vec![TypeId(place.of)],
                initial: label(&place.initial),
                frame: 0,
                capacity: None,
                span: place.span,
            });
        }
        names_again(&mut transitions);
        let urgent: BTreeSet<i64> = transitions.iter().map(|transition| transition.priority).collect();
        for transition in transitions {
            net.transitions.push(transition.build(&handle, urgent.len() > 1));
        }
        Ok(net)
    }

    fn places(
        &mut self,
        file: &File,
        flat: &Flat,
        markings: &[(String, String)],
    ) -> (Vec<FlatPlace>, HashMap<usize, u32>) {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); flat.places.len()];
        for (number, &group) in flat.group.iter().enumerate() {
            members[group].push(number);
        }
        let mut used = vec![false; markings.len()];
        let (mut out, mut numbers) = (Vec::new(), HashMap::new());
        for (group, members) in members.iter().enumerate().filter(|(_, members)| !members.is_empty()) {
            if self.findings.is_full() {
                break;
            }
            let text = |number: usize| {
                let (instance, at) = flat.places[number];
                let instance = &flat.instances[instance];
                (&file.pages[instance.page], instance.number, &file.pages[instance.page].places[at])
            };
            let own: Vec<usize> = members.iter().copied().filter(|&number| !flat.assigned[number]).collect();
            let own = if own.is_empty() { members.clone() } else { own };
            let (page, number, place) = text(own[0]);
            let name = format!("{}'{} {number}", page.name, place.name);
            let what = format!("the initial marking of place `{name}`");
            let span = place.span;
            let mut flat_place =
                FlatPlace { name: name.clone(), id: place.id.clone(), of: 0, initial: Vec::new(), span };
            numbers.insert(group, out.len() as u32);
            match own.iter().find_map(|&number| text(number).2.of.as_ref()) {
                None => self.refuse(span, format!("place `{name}` has no colour set")),
                Some(of) => match self.model.colour(of.text.trim()) {
                    None => {
                        let message = format!("there is no colour set `{}`, at place `{name}`", of.text.trim());
                        self.refuse(of.span(self.source, 0), message);
                    }
                    Some(colour) => {
                        flat_place.of = colour;
                        let refusal = self.model.colours.refusal(colour);
                        let refusal = refusal.or_else(|| {
                            timed(&self.model.colours, colour)
                                .then(|| "its colour set is timed, and time is not supported".into())
                        });
                        if let Some(why) = refusal {
                            self.refuse(span, format!("place `{name}`: {why}"));
                        }
                        for &other in &own[1..] {
                            let Some(other) = text(other).2.of.as_ref() else { continue };
                            let same = self.model.colour(other.text.trim()).is_some_and(|other| {
                                self.model.colours.shape(other) == self.model.colours.shape(colour)
                            });
                            if !same {
                                self.refuse(span, format!("place `{name}` is fused with one of another colour set"));
                            }
                        }
                    }
                },
            }
            if !self.findings.is_empty() {
                out.push(flat_place);
                continue;
            }
            let texts: Vec<&Inscription> =
                own.iter().map(|&number| &text(number).2.initial).filter(|text| !text.is_blank()).collect();
            let squeeze = |text: &str| text.split_whitespace().collect::<String>();
            if texts.iter().any(|one| squeeze(&one.text) != squeeze(&texts[0].text)) {
                self.refuse(
                    span,
                    format!("the members of the fusion set of place `{name}` have different initial markings"),
                );
            }
            let mut initial = texts.first().map(|text| (*text).clone()).unwrap_or_default();
            // Any member's name is good.
            for (at, (wanted, exp)) in markings.iter().enumerate() {
                let called = |&member: &usize| {
                    let (page, number, place) = text(member);
                    let (full, first) = (format!("{}'{} {number}", page.name, place.name), number == 1);
                    full == *wanted
                        || first
                            && (format!("{}'{}", page.name, place.name) == *wanted
                                || place.name == *wanted && only_name(file, wanted))
                };
                if members.iter().any(called) {
                    used[at] = true;
                    initial = Inscription { text: exp.clone(), ..Inscription::default() };
                }
            }
            match Parser::inscription(&initial.text) {
                Err(wrong) => self.wrong(&initial, &what, &wrong),
                Ok(None) => {}
                Ok(Some(exp)) => {
                    let mut frame = Frame::default();
                    match self.inscription(&exp, flat_place.of, false, &what, &mut frame) {
                        Ok(_) if !frame.names.is_empty() => {
                            self.refuse(initial.span(self.source, 0), format!("variables have no value in {what}"));
                        }
                        Ok(terms) => flat_place.initial = terms,
                        Err(wrong) => self.wrong(&initial, &what, &wrong),
                    }
                }
            }
            out.push(flat_place);
        }
        if self.findings.is_empty() {
            for ((name, _), used) in markings.iter().zip(used) {
                if !used {
                    let known: Vec<&str> = out.iter().map(|place| place.name.as_str()).collect();
                    let close = deltamark_core::diagnostic::did_you_mean(name, known);
                    let help = close
                        .map_or("places are called `Page'Name 1`".into(), |close| format!("did you mean `{close}`?"));
                    let message = format!("`--marking` names `{name}`, and there is no such place, or several");
                    self.findings.add(|| Diagnostic::new(message).help(help));
                }
            }
        }
        (out, numbers)
    }

    fn transition(
        &mut self,
        trans: &TransText,
        name: String,
        arcs: &[&ArcText],
        place: &dyn Fn(&str) -> Option<u32>,
        places: &[FlatPlace],
    ) -> Option<FlatTransition> {
        let before = self.findings.count();
        let span = Span::new(trans.span.0, trans.span.1);
        let named = format!("transition `{name}`");
        if !trans.time.is_blank() {
            self.refuse(trans.time.span(self.source, 0), format!("{named} takes time, and time is not supported"));
        }
        if trans.channel {
            self.refuse(span, format!("{named} has a channel, which is not supported"));
        }
        if !trans.code.is_blank() {
            let output = words(&trans.code.text).map_or(true, |words| {
                let reference = |name: &str| {
                    let entry = self.model.lookup(name);
                    entry.is_some_and(|entry| matches!(self.model.types.node(entry.scheme.ty), crate::types::Node::Con(name, _) if name == "ref"))
                };
                words.iter().any(|(word, _)| matches!(word, Word::Name(name) if name == "output" || reference(name)))
            });
            if output {
                let message = format!(
                    "the code of {named} has outputs or uses references, which is not supported: it is more than a log"
                );
                self.refuse(trans.code.span(self.source, 0), message);
            }
        }
        let mut frame = Frame::default();
        let mut out =
            FlatTransition { name, id: trans.id.clone(), priority: priority_default(), span, ..FlatTransition::new() };
        for arc in arcs {
            let Some(at) = place(&arc.place) else {
                self.refuse(arc.span, format!("an arc of {named} leads to no place"));
                continue;
            };
            let target = &places[at as usize];
            let what = format!("the arc between {named} and place `{}`", target.name);
            let (input, output) = match arc.orientation.as_str() {
                "ptot" => (true, false),
                "ttop" => (false, true),
                "bothdir" => (true, true),
                "inhibitor" => {
                    out.empty.push(at);
                    continue;
                }
                "reset" => {
                    self.refuse(arc.span, format!("{what} is a reset arc, which is not supported"));
                    continue;
                }
                other => {
                    self.refuse(arc.span, format!("{what} has the orientation `{other}`, which is not known"));
                    continue;
                }
            };
            let exp = match Parser::inscription(&arc.label.text) {
                Ok(Some(exp)) => exp,
                Ok(None) if matches!(self.model.colours.get(target.of).form, Form::Unit) => {
                    Exp { kind: ExpKind::Tuple(Vec::new()), at: 0 }
                }
                Ok(None) => {
                    self.refuse(arc.span, format!("{what} has no inscription"));
                    continue;
                }
                Err(wrong) => {
                    self.wrong(&arc.label, &what, &wrong);
                    continue;
                }
            };
            let span = arc.label.span(self.source, 0);
            if input {
                match self.inscription(&exp, target.of, true, &what, &mut frame) {
                    Ok(terms) => out.inputs.push((at, terms, span)),
                    Err(wrong) => {
                        self.wrong(&arc.label, &what, &wrong);
                        continue;
                    }
                }
            }
            if output {
                match self.inscription(&exp, target.of, false, &what, &mut frame) {
                    Ok(terms) => out.outputs.push((at, terms, span)),
                    Err(wrong) => self.wrong(&arc.label, &what, &wrong),
                }
            }
        }
        let what = format!("the guard of {named}");
        let mut items = Vec::new();
        match Parser::inscription(&trans.guard.text) {
            Err(wrong) => self.wrong(&trans.guard, &what, &wrong),
            Ok(None) => {}
            Ok(Some(Exp { kind: ExpKind::List(all), .. })) => items = all,
            Ok(Some(exp)) => items.push(exp),
        }
        let bool_ = self.model.bool();
        for item in &items {
            match self.host(item, bool_, Gives::Truth, &what, &mut frame) {
                Ok(piece) => out.tests.push((piece, false)),
                Err(wrong) => self.wrong(&trans.guard, &what, &wrong),
            }
        }
        out.guard_span = trans.guard.span(self.source, 0);
        match Parser::inscription(&trans.priority.text) {
            Err(wrong) => self.wrong(&trans.priority, &format!("the priority of {named}"), &wrong),
            Ok(None) => {}
            Ok(Some(exp)) => {
                let int = self.model.int();
                let ready = self.model.ready(&exp, int);
                match ready {
                    Ok(ready) if ready.given.is_empty() => {
                        let world = World { globals: &self.model.globals, colours: &self.model.colours };
                        match Machine::new(&world, &[]).run(&ready.code, ready.size) {
                            Ok(value) => out.priority = value.int(),
                            Err(halt) => {
                                let message = format!("{}, in the priority of {named}", self.model.why(&halt));
                                self.refuse(trans.priority.span(self.source, 0), message);
                            }
                        }
                    }
                    Ok(_) => self.refuse(
                        trans.priority.span(self.source, 0),
                        format!("the priority of {named} uses variables, which is not supported"),
                    ),
                    Err(wrong) => self.wrong(&trans.priority, &format!("the priority of {named}"), &wrong),
                }
            }
        }
        if self.findings.count() > before || self.findings.is_full() {
            return None;
        }
        self.roles(&mut out, &items, &mut frame, &named)?;
        Some(out)
    }

    /// Decides where the values of variables come from.
    fn roles(&mut self, out: &mut FlatTransition, items: &[Exp], frame: &mut Frame, named: &str) -> Option<()> {
        let mut bound: BTreeSet<usize> = BTreeSet::new();
        let mut picks: HashMap<usize, PickFrom> = HashMap::new();
        let terms: Vec<(BTreeSet<usize>, BTreeSet<usize>)> = out
            .inputs
            .iter()
            .flat_map(|(_, terms, _)| terms)
            .filter(|term| !term.spread)
            .map(|term| {
                let (mut gives, mut needs) = (BTreeSet::new(), BTreeSet::new());
                term.token.variables(&mut gives, &mut needs);
                (gives, needs)
            })
            .collect();
        loop {
            let count = bound.len();
            for (gives, needs) in &terms {
                let mut fresh = gives.clone();
                fresh.retain(|var| !picks.contains_key(var));
                if needs.iter().all(|var| bound.contains(var) || fresh.contains(var)) {
                    bound.extend(fresh);
                }
            }
            if bound.len() > count {
                continue;
            }
            if bound.len() == frame.names.len() {
                break;
            }
            if self.equation(items, frame, &mut bound, &mut picks, named) {
                continue;
            }
            // The first that is left over, by all its values.
            let next = (0..frame.names.len()).find(|var| !bound.contains(var));
            let Some(var) = next else { break };
            let mut small = None;
            for var in (0..frame.names.len()).filter(|var| !bound.contains(var)) {
                let of = frame.names[var].1;
                let world = World { globals: &self.model.globals, colours: &self.model.colours };
                if let Ok(Some(all)) = self.model.colours.small(&mut Machine::new(&world, &[]), of) {
                    small = Some((var, all));
                    break;
                }
            }
            match small {
                Some((var, all)) => {
                    picks.insert(var, PickFrom::All(all));
                    bound.insert(var);
                }
                None => {
                    let (name, of) = &frame.names[var];
                    let colour = &self.model.colours.get(*of).name;
                    let message =
                        format!("{named} cannot bind the variable `{name}` from the large colour set `{colour}`");
                    self.findings.add(|| {
                        Diagnostic::at(out.span, message)
                            .help("an input arc or an equation in the guard must give its value")
                    });
                    return None;
                }
            }
        }
        for (var, (name, of)) in frame.names.iter().enumerate() {
            out.variables.push((name.clone(), *of, picks.remove(&var)));
            // Values that come from the colour set itself are legal.
            if self.model.colours.is_restricted(*of) {
                let what = format!("the variable `{name}`");
                self.expressions.push(HostExpression { ready: None, gives: Gives::Legal(*of), what });
                out.tests.insert(0, (Piece::Host(self.expressions.len() as u32 - 1, vec![var]), true));
            }
        }
        Some(())
    }

    /// Finds an equation of the guard with one side known and a pattern on the other.
    fn equation(
        &mut self,
        items: &[Exp],
        frame: &mut Frame,
        bound: &mut BTreeSet<usize>,
        picks: &mut HashMap<usize, PickFrom>,
        named: &str,
    ) -> bool {
        let mut equations = Vec::new();
        for item in items {
            conjuncts(item, &mut equations);
        }
        for (left, right) in equations {
            for (pattern, value) in [(left, right), (right, left)] {
                let mut names = Vec::new();
                let Some(shape) = self.as_pattern(pattern, &mut names) else { continue };
                let unknown = |name: &String| {
                    let at = frame.names.iter().position(|known| known.0 == *name);
                    at.filter(|at| !bound.contains(at))
                };
                let Some((name, var)) = names.iter().find_map(|name| unknown(name).map(|at| (name.clone(), at))) else {
                    continue;
                };
                let of = frame.names[var].1;
                let at = value.at;
                let choice = Exp { kind: ExpKind::List(vec![Exp { kind: ExpKind::Name(name), at }]), at };
                let none = Exp { kind: ExpKind::List(Vec::new()), at };
                let rules = vec![(shape, choice), (Pat { kind: PatKind::Wild, at }, none)];
                let case = Exp { kind: ExpKind::Case(Box::new(value.clone()), rules), at };
                let ty = self.model.colours.get(of).ty;
                let ty = self.model.types.list(ty);
                let Ok(ready) = self.model.ready(&case, ty) else { continue };
                let known = |(name, _): &(String, u32)| {
                    frame.names.iter().position(|known| known.0 == *name).filter(|at| bound.contains(at))
                };
                let Some(used) = ready.given.iter().map(known).collect::<Option<Vec<_>>>() else { continue };
                let what = format!("the guard of {named}");
                self.expressions.push(HostExpression { ready: Some(ready), gives: Gives::Choices(of), what });
                picks.insert(var, PickFrom::Host(self.expressions.len() as u32 - 1, used));
                bound.insert(var);
                return true;
            }
        }
        false
    }

    /// An expression as a pattern, and the variables of the net in it.
    fn as_pattern(&self, exp: &Exp, names: &mut Vec<String>) -> Option<Pat> {
        let at = exp.at;
        let mut all = |parts: &[Exp]| parts.iter().map(|part| self.as_pattern(part, names)).collect::<Option<Vec<_>>>();
        let kind = match &exp.kind {
            ExpKind::Int(number) => PatKind::Int(*number),
            ExpKind::Str(text) => PatKind::Str(text.clone()),
            ExpKind::Char(letter) => PatKind::Char(*letter),
            ExpKind::Name(name) => match self.model.lookup(name)?.meaning {
                Meaning::NetVar(_) if names.contains(name) => PatKind::Wild,
                Meaning::NetVar(_) => {
                    names.push(name.clone());
                    PatKind::Name(name.clone())
                }
                Meaning::Con(_, false) | Meaning::Bool(_) => PatKind::Name(name.clone()),
                _ => return None,
            },
            ExpKind::Tuple(parts) => PatKind::Tuple(all(parts)?),
            ExpKind::List(parts) => PatKind::List(all(parts)?),
            ExpKind::Record(fields) => {
                let mut out = Vec::new();
                for (label, part) in fields {
                    out.push((label.clone(), self.as_pattern(part, names)?));
                }
                PatKind::Record(out, false)
            }
            ExpKind::App(function, argument) => {
                let ExpKind::Name(name) = &function.kind else { return None };
                if name == "::" {
                    let ExpKind::Tuple(pair) = &argument.kind else { return None };
                    let mut pair = all(pair)?;
                    let tail = pair.pop()?;
                    PatKind::Cons(Box::new(pair.pop()?), Box::new(tail))
                } else {
                    let Meaning::Con(_, true) = self.model.lookup(name)?.meaning else { return None };
                    PatKind::Apply(name.clone(), Box::new(self.as_pattern(argument, names)?))
                }
            }
            _ => return None,
        };
        Some(Pat { kind, at })
    }
}

/// Whether a colour set or a part of it is timed.
fn timed(colours: &Colours, of: u32) -> bool {
    colours.get(of).timed
}

/// Whether a place of this name is on one page only.
fn only_name(file: &File, name: &str) -> bool {
    file.pages.iter().filter(|page| page.places.iter().any(|place| place.name == *name)).count() == 1
}

/// The equations that must all hold for an expression to be true.
fn conjuncts<'e>(exp: &'e Exp, out: &mut Vec<(&'e Exp, &'e Exp)>) {
    match &exp.kind {
        ExpKind::And(one, other) => {
            conjuncts(one, out);
            conjuncts(other, out);
        }
        ExpKind::App(function, argument) => {
            if let (ExpKind::Name(name), ExpKind::Tuple(pair)) = (&function.kind, &argument.kind)
                && name == "="
                && let [left, right] = pair.as_slice()
            {
                out.push((left, right));
            }
        }
        _ => {}
    }
}

/// Transitions of one name on a page get their ids.
fn names_again(transitions: &mut [FlatTransition]) {
    let mut seen = BTreeSet::new();
    for transition in transitions {
        if !seen.insert(transition.name.clone()) {
            transition.name = format!("{} ({})", transition.name, transition.id);
            seen.insert(transition.name.clone());
        }
    }
}

/// The source of a variable that no token gives.
enum PickFrom {
    All(Vec<Value>),
    Host(u32, Vec<usize>),
}

struct FlatPlace {
    name: String,
    id: String,
    of: u32,
    initial: Vec<PieceTerm>,
    span: Span,
}

struct FlatTransition {
    name: String,
    id: String,
    variables: Vec<(String, u32, Option<PickFrom>)>,
    inputs: Vec<(u32, Vec<PieceTerm>, Span)>,
    outputs: Vec<(u32, Vec<PieceTerm>, Span)>,
    /// Conjuncts of the guard, and whether they always have a value.
    tests: Vec<(Piece, bool)>,
    /// Places that must be empty.
    empty: Vec<u32>,
    priority: i64,
    span: Span,
    guard_span: Span,
}

impl Piece {
    /// The variables that a token with this form gives, and those that must be known.
    fn variables(&self, gives: &mut BTreeSet<usize>, needs: &mut BTreeSet<usize>) {
        match self {
            Piece::Var(var) => drop(gives.insert(*var)),
            Piece::Const(_) => {}
            Piece::Row(parts) => parts.iter().for_each(|part| part.variables(gives, needs)),
            Piece::Cons(head, tail) => {
                head.variables(gives, needs);
                tail.variables(gives, needs);
            }
            Piece::Host(_, used) => needs.extend(used),
        }
    }

    fn build(&self, host: &Host, span: Span, total: bool) -> Expr {
        let var = |var: usize| Expr::new(ExprKind::Var(Var(var as u32)), span);
        let kind = match self {
            Piece::Var(number) => return var(*number),
            Piece::Const(value) => ExprKind::Const(value.clone()),
            Piece::Row(parts) => ExprKind::Row(parts.iter().map(|part| part.build(host, span, total)).collect()),
            Piece::Cons(head, tail) => {
                let head = Expr::new(ExprKind::List(vec![head.build(host, span, total)], u32::MAX), span);
                ExprKind::Concat(Box::new(head), Box::new(tail.build(host, span, total)), u32::MAX)
            }
            Piece::Host(number, used) => ExprKind::Host {
                host: host.clone(),
                number: *number,
                arguments: used.iter().map(|&used| var(used)).collect(),
                total,
            },
        };
        Expr::new(kind, span)
    }
}

fn build_term(term: &PieceTerm, host: &Host, span: Span) -> Term {
    Term {
        iterations: Vec::new(),
        condition: None,
        factor: term.factor,
        token: vec![term.token.build(host, span, false)],
        spread: term.spread,
        span,
    }
}

impl FlatTransition {
    fn new() -> Self {
        FlatTransition {
            name: String::new(),
            id: String::new(),
            variables: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            tests: Vec::new(),
            empty: Vec::new(),
            priority: 0,
            span: Span::at(0),
            guard_span: Span::at(0),
        }
    }

    fn build(self, host: &Host, prioritised: bool) -> Transition {
        let span = self.guard_span;
        let arcs = |arcs: &[(u32, Vec<PieceTerm>, Span)]| -> Vec<Arc> {
            let arc = |(place, terms, span): &(u32, Vec<PieceTerm>, Span)| Arc {
                place: PlaceId(*place),
                label: terms.iter().map(|term| build_term(term, host, *span)).collect(),
            };
            arcs.iter().map(arc).collect()
        };
        let mut tests: Vec<Expr> = self.tests.iter().map(|(piece, total)| piece.build(host, span, *total)).collect();
        for &place in &self.empty {
            let total = Expr::new(ExprKind::Total(PlaceId(place)), span);
            let zero = Expr::int(0, span);
            tests.push(Expr::new(ExprKind::Binary(Binary::Eq, Box::new(total), Box::new(zero)), span));
        }
        let guard = tests
            .into_iter()
            .reduce(|one, other| Expr::new(ExprKind::Binary(Binary::And, Box::new(one), Box::new(other)), span));
        let variable = |(name, of, from): &(String, u32, Option<PickFrom>)| {
            let elements = |expr: Expr| Role::Pick(Domain::Elements(expr));
            let role = match from {
                None => Role::Bound,
                Some(PickFrom::All(all)) => elements(Expr::new(ExprKind::Const(Value::Seq(all.clone())), span)),
                Some(PickFrom::Host(number, used)) => {
                    elements(Piece::Host(*number, used.clone()).build(host, span, false))
                }
            };
            Variable { name: name.clone(), of: TypeId(*of), role }
        };
        let variables: Vec<Variable> = self.variables.iter().map(variable).collect();
        Transition {
            name: self.name,
            frame: variables.len() as u32,
            variables,
            inputs: arcs(&self.inputs),
            outputs: arcs(&self.outputs),
            inhibitors: Vec::new(),
            guard,
            priority: prioritised.then(|| Expr::int(-self.priority as i32, self.span)),
            description: None,
            span: self.span,
        }
    }
}
