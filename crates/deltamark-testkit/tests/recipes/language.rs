//! A language: lamps, and switches that turn some of them on or off.
//!
//! In: a text. Out: a system, or diagnostics. A state is one bit a lamp; switch `n` is action `n`.
//!
//! ```text
//! # A comment.
//! lamp hall on
//! lamp stairs off
//! switch first hall
//! switch second hall stairs
//! ```

use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{
    Action, Batch, Control, Describe, Diagnostic, Findings, Observable, ObservableKind, Observe, Scratch, Slot, Span,
    System, Value, Widen, Width,
};

/// Lamps and switches.
#[derive(Debug, Default)]
pub struct Lamps {
    /// Each lamp, and whether it is on at first.
    lamps: Vec<(String, bool)>,
    /// Each switch, and the lamps that it turns.
    switches: Vec<(String, Vec<usize>)>,
}

/// Reads a model.
pub fn parse(bytes: &[u8]) -> Result<Lamps, Vec<Diagnostic>> {
    parse_under(bytes, &Control::new())
}

/// Approximate bytes of a model for each byte of its text.
const BYTES_A_BYTE: u64 = 16;

/// The same, unless `control` stops it.
pub fn parse_under(bytes: &[u8], control: &Control) -> Result<Lamps, Vec<Diagnostic>> {
    let text = deltamark_core::text::utf8(bytes)?;
    // Before memory is taken that grows with the text.
    control.ask_for(text.len() as u64 * BYTES_A_BYTE)?;
    let mut model = Lamps::default();
    let mut findings = Findings::under(control);
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        // Ends the loop after many errors, and when the run must end.
        if findings.is_full() {
            break;
        }
        let span = Span::new(start, start + line.trim_end().len());
        start += line.len();
        if let Err(diagnostic) = model.read_line(line, span) {
            findings.add(|| diagnostic);
        }
    }
    findings.or(model)
}

impl Lamps {
    fn read_line(&mut self, line: &str, span: Span) -> Result<(), Diagnostic> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["lamp", name, state @ ("on" | "off")] => {
                self.refuse_known(name, span)?;
                self.lamps.push((name.into(), state == "on"));
            }
            ["switch", name, ref lamps @ ..] => {
                self.refuse_known(name, span)?;
                let lamps = lamps.iter().map(|lamp| self.lamp(lamp, span)).collect::<Result<_, _>>()?;
                self.switches.push((name.into(), lamps));
            }
            _ => {
                let help = "write `lamp NAME on`, `lamp NAME off` or `switch NAME LAMP …`";
                return Err(Diagnostic::at(span, "this is neither a lamp nor a switch").help(help));
            }
        }
        Ok(())
    }

    /// Everything later finds things by name, so a name is declared once.
    fn refuse_known(&self, name: &str, span: Span) -> Result<(), Diagnostic> {
        let mut known = self.lamps.iter().map(|(name, _)| name).chain(self.switches.iter().map(|(name, _)| name));
        match known.any(|known| known == name) {
            true => Err(Diagnostic::at(span, format!("`{name}` is declared twice"))),
            false => Ok(()),
        }
    }

    fn lamp(&self, name: &str, span: Span) -> Result<usize, Diagnostic> {
        self.lamps.iter().position(|(known, _)| known == name).ok_or_else(|| {
            let diagnostic = Diagnostic::at(span, format!("there is no lamp `{name}`"));
            match did_you_mean(name, self.lamps.iter().map(|(known, _)| known.as_str())) {
                Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
                None => diagnostic,
            }
        })
    }
}

fn is_on(state: &[Slot], lamp: usize) -> bool {
    state[lamp / 32] >> (lamp % 32) & 1 == 1
}

fn turn(state: &mut [Slot], lamp: usize) {
    state[lamp / 32] ^= 1 << (lamp % 32);
}

impl System for Lamps {
    fn width(&self) -> Width {
        Width::Fixed(self.lamps.len().div_ceil(32))
    }

    fn initial(&self, _: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        let mut state = vec![0; self.lamps.len().div_ceil(32)];
        let on = self.lamps.iter().enumerate().filter(|(_, (_, on))| *on);
        on.for_each(|(lamp, _)| turn(&mut state, lamp));
        out.push(Action(0), &state);
        Ok(())
    }

    fn successors(&self, _: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        for (number, (_, lamps)) in (0..).zip(&self.switches) {
            let mut target = source.to_vec();
            lamps.iter().for_each(|&lamp| turn(&mut target, lamp));
            out.push(Action(number), &target);
        }
        Ok(())
    }

    fn action_count(&self) -> Option<u32> {
        Some(self.switches.len() as u32)
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn observe(&self) -> Option<&dyn Observe> {
        Some(self)
    }
}

impl Describe for Lamps {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let lamps = self.lamps.iter().enumerate();
        lamps.map(|(lamp, (name, _))| (name.clone(), Value::Int(is_on(state, lamp).into()))).collect()
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        self.switches[action.0 as usize].0.clone()
    }
}

impl Observe for Lamps {
    fn resolve(&self, name: &str) -> Option<Observable> {
        let lamp = self.lamps.iter().position(|(known, _)| known == name)?;
        Some(Observable { index: lamp as u32, kind: ObservableKind::Int })
    }

    fn fireable(&self, _name: &str) -> Option<Observable> {
        None
    }

    fn names(&self) -> Vec<String> {
        self.lamps.iter().map(|(name, _)| name.clone()).collect()
    }

    fn action_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn read(&self, _: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        is_on(state, observable.index as usize).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_testkit::{check_system, explore};

    #[test]
    fn models_pass_the_suite() {
        // More lamps than a slot has bits, and switches for those in the second slot.
        let lamps: String = (0..40).map(|lamp| format!("lamp lamp{lamp} off\n")).collect();
        let switches: String = (34..40).map(|lamp| format!("switch switch{lamp} lamp{lamp} lamp0\n")).collect();
        let wide = lamps + &switches;
        for (text, states) in [
            ("lamp hall on\n", 1),
            ("lamp hall on\nlamp stairs off\nswitch first hall\nswitch second hall stairs\n", 4),
            ("lamp a on\nlamp b on\nswitch both a b\nswitch nothing\n", 2),
            (&wide, 64),
        ] {
            let model = parse(text.as_bytes()).expect("a model");
            check_system(&model);
            assert_eq!(explore(&model).states.len(), states, "{text}");
        }
    }

    #[test]
    fn a_run_that_is_over_ends_the_reading() {
        let control = Control::new();
        control.cancel.cancel();
        let stopped = parse_under(b"lamp hall on\n", &control).expect_err("the run is over");
        assert!(stopped[0].stop.is_some(), "{stopped:?}");
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_place() {
        let cases: [(&str, &[(&str, &str)]); 4] = [
            ("", &[("", "the file is empty")]),
            ("lamp hall\nlamp a on\n", &[("lamp hall", "this is neither a lamp nor a switch")]),
            ("lamp a on\nlamp a off\n", &[("lamp a off", "`a` is declared twice")]),
            (
                "lamp hall on\nswitch s hell\nswitch t hall x\n",
                &[("switch s hell", "there is no lamp `hell`"), ("switch t hall x", "there is no lamp `x`")],
            ),
        ];
        for (text, expected) in cases {
            let wrong = parse(text.as_bytes()).expect_err(text);
            let found: Vec<(&str, &str)> =
                wrong.iter().map(|one| (&text[one.span.expect("a place").range()], one.message.as_str())).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
