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

mod declare;
mod pieces;
mod places;
mod roles;
mod tokens;
mod transitions;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc as Shared;

use deltamark_coloured::net::{
    Arc, Binary, Domain, Expr, ExprKind, Host, Net, Place, PlaceId, Role, Term, Transition, Type, TypeId, Value, Var,
    Variable,
};
use deltamark_core::{Control, Diagnostic, Findings, Span};

use crate::Beside;
use crate::colours::{Colours, Form, field_order};
use crate::eval::{Machine, World};
use crate::file::{ArcText, Declaration, File, Inscription, TransText};
use crate::flatten::{Flat, flatten};
use crate::host::{CpnHost, Gives, HostExpression};
use crate::infer::{LoadingRoom, Meaning, Model};
use crate::lexer::{Word, Wrong, words};
use crate::marks::MarkedPlace;
use crate::parse::Parser;
use crate::syntax::{Exp, ExpKind, Pat, PatKind};
use crate::types::MOST_NODES;

use self::pieces::{FlatPlace, FlatTransition, PickFrom, Piece, PieceTerm, build_term};

/// Reads the model.
pub(crate) struct Lowering<'a> {
    pub source: &'a str,
    /// Reads what `use` names.
    beside: Beside<'a>,
    pub model: Model,
    expressions: Vec<HostExpression>,
    findings: Findings,
    /// Places by the names that properties use.
    marks: Vec<MarkedPlace>,
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
    pub fn new(source: &'a str, parameters: &[(String, String)], beside: Beside<'a>, control: &Control) -> Self {
        let mut model = Model::new();
        model.room = LoadingRoom::under(control);
        // A node with its labels takes less; other tables need room too.
        const BYTES_A_NODE: u64 = 512;
        let allowed = control.limits.memory.and_then(|memory| usize::try_from(memory / BYTES_A_NODE).ok());
        model.types.most = allowed.filter(|allowed| *allowed < MOST_NODES);
        model.parameters = parameters.iter().map(|(name, value)| (name.clone(), value.clone(), false)).collect();
        Lowering {
            source,
            beside,
            model,
            expressions: Vec::new(),
            findings: Findings::under(control),
            marks: Vec::new(),
        }
    }

    fn wrong(&mut self, text: &Inscription, what: &str, wrong: &Wrong) {
        // The place of a mistake is found by going through the text.
        let source = self.source;
        self.findings.add(|| text.diagnose(source, what, wrong));
    }

    fn refuse(&mut self, span: Span, message: String) {
        self.findings.add(|| Diagnostic::at(span, message));
    }

    /// The net, and the code it calls.
    pub fn net(mut self, file: &File, markings: &[(String, String)]) -> Result<Net, Vec<Diagnostic>> {
        self.declare(file);
        if let Some(stop) = self.model.room.refused() {
            return Err(stop.into());
        }
        if !self.findings.is_empty() {
            return Err(self.findings.or(()).err().unwrap_or_default());
        }
        let flat = flatten(file)?;
        let (places, numbers) = self.places(file, &flat, markings);
        let mut transitions = Vec::new();
        for (number, instance) in flat.instances.iter().enumerate() {
            let page = &file.pages[instance.page];
            let on_page = page.place_numbers();
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
                    let at = *on_page.get(id)?;
                    debug_assert_eq!(flat.places[instance.first + at].0, number);
                    numbers.get(&flat.group[instance.first + at]).copied()
                };
                let arcs = arcs.get(trans.id.as_str()).map(Vec::as_slice).unwrap_or_default();
                if let Some(transition) = self.transition(trans, name, arcs, &place, &places) {
                    transitions.push(transition);
                }
            }
        }
        let Lowering { model, expressions, findings, marks, .. } = self;
        if let Some(stop) = model.room.refused() {
            return Err(stop.into());
        }
        findings.or(())?;
        let host = Shared::new(CpnHost::new(model, expressions, marks));
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
