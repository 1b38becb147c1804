//! Transitions: arcs, guards, code segments, priorities.

use super::*;

impl Lowering<'_> {
    pub(super) fn transition(
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
                    if !out.resets.contains(&at) {
                        out.resets.push(at);
                    }
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
            if self.findings.is_full() {
                break;
            }
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
                        let model = &self.model;
                        let room = |bytes| model.room.grants(bytes);
                        let world = World { globals: &model.globals, colours: &model.colours, room: &room };
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
}
