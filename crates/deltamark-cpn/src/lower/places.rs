//! Places, their colour sets and initial markings.

use super::*;

impl Lowering<'_> {
    pub(super) fn places(
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
                        let wrong = self.model.no_colour(of.text.trim(), 0);
                        self.wrong(of, &format!("the type of place `{name}`"), &wrong);
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
            let called = members.iter().map(|&member| {
                let (page, number, place) = text(member);
                (format!("{}'{}", page.name, place.name), number, place.name.clone())
            });
            let (names, id) = (called.collect(), PlaceId(out.len() as u32));
            self.marks.push(MarkedPlace { names, place: id, colour: flat_place.of });
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
}

/// Whether a colour set is timed; one of timed parts is not, unless it says so.
fn timed(colours: &Colours, of: u32) -> bool {
    colours.get(of).timed
}

/// Whether a place of this name is on one page only.
fn only_name(file: &File, name: &str) -> bool {
    file.pages.iter().filter(|page| page.places.iter().any(|place| place.name == *name)).count() == 1
}
