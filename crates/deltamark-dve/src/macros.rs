//! `.mdve`: DVE with macros and parameters.
//!
//! In: a text with macros, and parameters (`N=3`). Out: plain DVE ([`Expanded`]), in which every byte has its
//! origin in the file, so that errors in the plain text are reported at their position in the file. What stays
//! true: expansion terminates (its work in bytes is limited), and a parameter that the file never uses is refused.
//!
//! BEEM's parameterised models are preprocessed by GNU m4 with a prelude. This is an expander of our own with the
//! part of m4 that such files rely on, and a prelude of our own in that language (`prelude.m4`) with the same
//! macros:
//!
//! | macro | expansion |
//! |---|---|
//! | `default(P, v)` | nothing; parameter P is v unless it is given |
//! | `true`, `false`, `bool` | `1`, `0`, `byte` |
//! | `forloop(i, a, b, body)` | the body for i from a to b |
//! | `myloop(i, a, b, body, sep)` | the same with a separator between two of them |
//! | `forallx(body)` | the body for x from 0 to N-1 |
//! | `queue(q, n)`, `stack(q, n)` | an array with its fill level `q_act`; `full`, `empty`, `top`, `front`, `push`, `pop`, `pop_front` |
//! | `async_channel(c)`, `buffer_channel(c, n)`, `loosy_channel(c)`, `bounded_loosy_channel(c, k)` | a process between `c!` and `c?`, written before `system` |
//!
//! # How macros are expanded
//! The text is read word by word. A word that is a macro is replaced, with its arguments if a `(` follows
//! immediately, and *the replacement is scanned again*. So the input is a stack of texts:
//!
//! ```text
//!   input   [ ...rest of a replacement | rest of an outer one | rest of the file ]
//!   calls   [ define( `a', | ifelse( x, ]      arguments being collected, innermost last
//!   output  plain text, or the argument of the innermost call
//! ```
//!
//! Text in quotes (`` `like this' ``, they nest) is not expanded; one pair is removed. From `//` to the end of the
//! line nothing is expanded either. A word may end in `!` or `?` if there is a macro of exactly that name: this is
//! how channels are redirected. Arguments in a body: `$1` to `$9`, `$0`, `$#`, `$*`, `$@`.
//!
//! Nothing here is recursive, so that no nesting is too deep.

mod builtin;
mod eval;

use builtin::Builtin;
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Control, Diagnostic, Span};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// The predefined macros.
const PRELUDE: &str = include_str!("macros/prelude.m4");

/// The maximum number of bytes that macros may produce in all, including replacements of replacements.
const MOST_WORK: usize = 1 << 24;
/// The maximum number of replacements.
const MOST_REPLACEMENTS: usize = 1 << 19;
/// The maximum length of the plain text in bytes.
const MOST_OUTPUT: usize = 1 << 22;
/// The maximum number of calls whose arguments are being collected at once.
const MOST_CALLS: usize = 1 << 16;

/// Plain DVE, and the origin of each byte.
#[derive(Clone, Debug)]
pub struct Expanded {
    /// The text.
    pub text: String,
    /// For each byte of the text its offset in the file.
    origins: Vec<u32>,
    /// The length of the file: no span goes beyond it.
    length: usize,
}

impl Expanded {
    /// The span in the file of a span in the text. The expansion of a prelude macro has the span of the call.
    pub fn origin(&self, span: Span) -> Span {
        let last = self.origins.last().map_or(0, |&last| last as usize + 1);
        let at = |offset: usize| self.origins.get(offset).map_or(last, |&origin| origin as usize);
        let start = at(span.start).min(self.length);
        if span.end <= span.start || start == self.length {
            return Span::at(start);
        }
        // A piece that begins and ends in different macros is reported where it begins.
        let end = (at(span.end - 1) + 1).min(self.length);
        Span::new(start, if end > start && end - start <= 4 * (span.end - span.start) { end } else { start + 1 })
    }

    /// The diagnostics of the text, at their spans in the file.
    pub fn explain(&self, mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        for diagnostic in &mut diagnostics {
            diagnostic.span = diagnostic.span.map(|span| self.origin(span));
        }
        // An error in a body occurs at each use.
        let mut told = HashSet::new();
        diagnostics.retain(|diagnostic| told.insert((diagnostic.span, diagnostic.message.clone())));
        diagnostics
    }
}

/// Expands a text with macros, with these parameters.
pub fn expand(bytes: &[u8], parameters: &[(String, String)]) -> Result<Expanded, Vec<Diagnostic>> {
    expand_under(bytes, parameters, &Control::new())
}

/// The same, unless `control` stops it.
pub fn expand_under(
    bytes: &[u8],
    parameters: &[(String, String)],
    control: &Control,
) -> Result<Expanded, Vec<Diagnostic>> {
    let text = deltamark_core::text::utf8(bytes)?;
    let bytes_read = bytes.len();
    let mut machine = Machine::new();
    machine.read_prelude();
    for (name, value) in parameters {
        if !is_word(name.as_bytes()) {
            return Err(Diagnostic::new(format!("`{name}` cannot be a parameter"))
                .help("the name of a parameter is a letter, then letters, digits and `_`")
                .into());
        }
        machine.define(name.as_bytes(), Meaning::Text(Rc::new(TracedText::placed(value.as_bytes(), 0))), Bare::Yes);
        machine.parameters.insert(name.as_bytes().to_vec(), false);
    }
    machine.control = control.clone();
    machine.push(TracedText::counted(text.as_bytes()));
    machine.run()?;
    let unused = machine.parameters.iter().find(|(_, used)| !**used).map(|(name, _)| shown(name));
    if let Some(unused) = unused {
        let known: Vec<String> = machine.defaults.iter().map(|name| shown(name)).collect();
        let diagnostic = Diagnostic::new(format!("the model has no parameter `{unused}`"));
        let help = match did_you_mean(&unused, known.iter().map(String::as_str)) {
            Some(close) => format!("did you mean `{close}`?"),
            None if known.is_empty() => "parameters are declared by `default(NAME, VALUE)`".into(),
            None => format!("its parameters are {}", known.join(", ")),
        };
        return Err(diagnostic.help(help).into());
    }
    let TracedText { bytes, origins } = machine.output;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Expanded { text, origins, length: bytes_read }),
        Err(_) => Err(Diagnostic::new("a macro cuts a character in two").into()),
    }
}

/// A text with the origin of each byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TracedText {
    bytes: Vec<u8>,
    origins: Vec<u32>,
}

impl TracedText {
    /// A text with a single origin.
    fn placed(bytes: &[u8], origin: u32) -> Self {
        TracedText { bytes: bytes.to_vec(), origins: vec![origin; bytes.len()] }
    }

    /// The text of the file itself.
    fn counted(bytes: &[u8]) -> Self {
        TracedText { bytes: bytes.to_vec(), origins: (0..bytes.len() as u32).collect() }
    }

    fn push(&mut self, byte: u8, origin: u32) {
        self.bytes.push(byte);
        self.origins.push(origin);
    }

    fn extend(&mut self, other: &TracedText) {
        self.bytes.extend_from_slice(&other.bytes);
        self.origins.extend_from_slice(&other.origins);
    }

    fn slice(&self, range: std::ops::Range<usize>) -> TracedText {
        TracedText { bytes: self.bytes[range.clone()].to_vec(), origins: self.origins[range].to_vec() }
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The definition of a macro.
#[derive(Clone)]
enum Meaning {
    Builtin(Builtin),
    Text(Rc<TracedText>),
}

/// Whether a macro is expanded without a `(` after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bare {
    Yes,
    No,
}

#[derive(Clone)]
struct Macro {
    meaning: Meaning,
    bare: Bare,
}

/// A macro whose arguments are being collected.
struct Call {
    name: Vec<u8>,
    called: Macro,
    arguments: Vec<TracedText>,
    current: TracedText,
    /// The number of open parentheses, including that of the call.
    depth: usize,
    /// Whether blanks before an argument are still being skipped.
    fresh: bool,
    origin: u32,
}

struct Machine {
    /// Each name with its definitions, the current one last.
    macros: HashMap<Vec<u8>, Vec<Macro>>,
    /// The remaining input, the next piece last.
    input: Vec<(Rc<TracedText>, usize)>,
    calls: Vec<Call>,
    output: TracedText,
    /// Where output goes: 0 is the text itself, a negative number discards.
    diversion: i32,
    diverted: BTreeMap<i32, TracedText>,
    /// Parameters that were given, and whether the file used them.
    parameters: BTreeMap<Vec<u8>, bool>,
    /// Parameters that the file declares.
    defaults: Vec<Vec<u8>>,
    open: Vec<u8>,
    close: Vec<u8>,
    work: usize,
    replacements: usize,
    /// The origin of everything read, while the prelude is read or one of its macros is expanded.
    place: u32,
    control: Control,
}

type MacroStep = Result<(), Vec<Diagnostic>>;

impl Machine {
    fn new() -> Self {
        let macros = Builtin::ALL.iter().map(|&(name, builtin, bare)| {
            (name.as_bytes().to_vec(), vec![Macro { meaning: Meaning::Builtin(builtin), bare }])
        });
        Machine {
            macros: macros.collect(),
            input: Vec::new(),
            calls: Vec::new(),
            output: TracedText::default(),
            diversion: 0,
            diverted: BTreeMap::new(),
            parameters: BTreeMap::new(),
            defaults: Vec::new(),
            open: b"`".to_vec(),
            close: b"'".to_vec(),
            work: 0,
            replacements: 0,
            place: 0,
            control: Control::new(),
        }
    }

    /// Reads the prelude. Its macros with arguments are macros only if a `(` follows, so that models may have
    /// variables called `top` or `full`.
    fn read_prelude(&mut self) {
        self.push(TracedText::placed(PRELUDE.as_bytes(), NOWHERE));
        let read = self.run();
        assert!(read.is_ok(), "the prelude is right: {read:?}");
        for meanings in self.macros.values_mut().flatten() {
            if let Meaning::Text(body) = &meanings.meaning
                && body.bytes.contains(&b'$')
            {
                meanings.bare = Bare::No;
            }
        }
        self.output = TracedText::default();
        self.work = 0;
        self.replacements = 0;
    }

    fn define(&mut self, name: &[u8], meaning: Meaning, bare: Bare) {
        self.macros.insert(name.to_vec(), vec![Macro { meaning, bare }]);
    }

    /// Makes this text the next input.
    fn push(&mut self, text: TracedText) {
        self.push_shared(Rc::new(text));
    }

    fn push_shared(&mut self, text: Rc<TracedText>) {
        // Exhausted texts are removed first: a macro that ends in a call of itself is a loop and must not pile up.
        while self.input.last().is_some_and(|(text, at)| *at >= text.len()) {
            self.input.pop();
        }
        self.work += text.len() + 1;
        if text.len() > 0 {
            self.input.push((text, 0));
        }
    }

    /// The byte `ahead` bytes from here, and its origin.
    fn peek(&self, mut ahead: usize) -> Option<(u8, u32)> {
        for (text, at) in self.input.iter().rev() {
            let rest = text.len() - at;
            if ahead < rest {
                return Some((text.bytes[at + ahead], text.origins[at + ahead]));
            }
            ahead -= rest;
        }
        None
    }

    fn advance(&mut self) -> Option<(u8, u32)> {
        while let Some((text, at)) = self.input.last_mut() {
            if *at < text.len() {
                *at += 1;
                return Some((text.bytes[*at - 1], text.origins[*at - 1]));
            }
            self.input.pop();
        }
        None
    }

    fn follows(&self, what: &[u8]) -> bool {
        !what.is_empty()
            && what.iter().enumerate().all(|(ahead, &byte)| self.peek(ahead).map(|found| found.0) == Some(byte))
    }

    /// Reads all input.
    fn run(&mut self) -> MacroStep {
        while let Some((byte, origin)) = self.peek(0) {
            self.control.ask()?;
            self.place = origin;
            if self.work > MOST_WORK || self.replacements > MOST_REPLACEMENTS {
                return Err(Diagnostic::at(point(origin), "the macros do not come to an end")
                    .help(
                        "is a macro defined by itself? At most half a million of them are replaced, by 16 MiB of text",
                    )
                    .into());
            }
            if self.follows(b"//") {
                self.comment();
            } else if self.follows(&self.open) {
                self.quoted(origin)?;
            } else if byte.is_ascii_alphabetic() || byte == b'_' {
                self.word(origin)?;
            } else {
                self.advance();
                self.other(byte, origin)?;
            }
        }
        if let Some(call) = self.calls.first() {
            return Err(Diagnostic::at(
                Span::new(call.origin as usize, call.origin as usize + call.name.len()),
                format!("the arguments of `{}` have no end", shown(&call.name)),
            )
            .help("a `)` is missing, or a quote that opens with ` and closes with '")
            .into());
        }
        // Diverted output that was never undiverted comes last.
        for (number, text) in std::mem::take(&mut self.diverted) {
            if number > 0 {
                self.output.extend(&text);
            }
        }
        Ok(())
    }

    /// A comment, to the end of its line.
    fn comment(&mut self) {
        while let Some((byte, origin)) = self.advance() {
            self.emit_byte(byte, origin);
            if byte == b'\n' {
                return;
            }
        }
    }

    /// Text in quotes.
    fn quoted(&mut self, origin: u32) -> MacroStep {
        let mut text = TracedText::default();
        let mut depth = 0;
        loop {
            if self.follows(&self.close) {
                depth -= 1;
                let length = self.close.len();
                self.take(length, (depth > 0).then_some(&mut text));
                if depth == 0 {
                    break;
                }
            } else if self.follows(&self.open) {
                depth += 1;
                let length = self.open.len();
                self.take(length, (depth > 1).then_some(&mut text));
            } else if let Some((byte, origin)) = self.advance() {
                text.push(byte, origin);
            } else {
                let message = "this quote is never closed";
                let help = format!("it ends with `{}`, and quotes inside it count", shown(&self.close));
                return Err(Diagnostic::at(point(origin), message).help(help).into());
            }
        }
        if let Some(call) = self.calls.last_mut() {
            call.fresh = false;
        }
        self.emit(&text)
    }

    fn take(&mut self, length: usize, mut to: Option<&mut TracedText>) {
        for _ in 0..length {
            if let (Some((byte, origin)), Some(to)) = (self.advance(), to.as_deref_mut()) {
                to.push(byte, origin);
            }
        }
    }

    fn word(&mut self, origin: u32) -> MacroStep {
        let mut word = TracedText::default();
        while let Some((byte, origin)) = self.peek(0).filter(|&(byte, _)| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            self.advance();
            word.push(byte, origin);
        }
        if let Some((mark @ (b'!' | b'?'), origin)) = self.peek(0) {
            word.push(mark, origin);
            if self.macros.contains_key(&word.bytes) {
                self.advance();
            } else {
                word.bytes.pop();
                word.origins.pop();
            }
        }
        if let Some(call) = self.calls.last_mut() {
            call.fresh = false;
        }
        // The argument of `default` is the name of a parameter, even if that already has a value.
        let declares = |call: &Call| {
            matches!(call.called.meaning, Meaning::Builtin(Builtin::Default)) && call.arguments.is_empty()
        };
        if self.calls.last().is_some_and(declares) {
            return self.emit(&word);
        }
        let Some(called) = self.lookup(&word.bytes) else {
            return self.emit(&word);
        };
        if self.follows(b"(") {
            self.advance();
            if self.calls.len() >= MOST_CALLS {
                return Err(Diagnostic::at(point(origin), "macros are nested too deeply here").into());
            }
            self.calls.push(Call {
                name: word.bytes,
                called,
                arguments: Vec::new(),
                current: TracedText::default(),
                depth: 1,
                fresh: true,
                origin,
            });
            return Ok(());
        }
        if called.bare == Bare::No {
            return self.emit(&word);
        }
        self.call(&word.bytes, &called, Vec::new(), origin)
    }

    /// The definition of a name. A parameter that is looked up counts as used.
    fn lookup(&mut self, name: &[u8]) -> Option<Macro> {
        let found = self.macros.get(name)?.last()?.clone();
        if let Some(used) = self.parameters.get_mut(name) {
            *used = true;
        }
        Some(found)
    }

    fn other(&mut self, byte: u8, origin: u32) -> MacroStep {
        let Some(call) = self.calls.last_mut() else {
            self.emit_byte(byte, origin);
            return if self.output.len() > MOST_OUTPUT { Err(too_long(origin)) } else { Ok(()) };
        };
        match byte {
            b'(' => call.depth += 1,
            b')' if call.depth == 1 => {
                let last = std::mem::take(&mut call.current);
                call.arguments.push(last);
                let call = self.calls.pop().expect("it was there");
                return self.call(&call.name, &call.called, call.arguments, call.origin);
            }
            b')' => call.depth -= 1,
            b',' if call.depth == 1 => {
                let argument = std::mem::take(&mut call.current);
                call.arguments.push(argument);
                call.fresh = true;
                return Ok(());
            }
            _ if call.fresh && byte.is_ascii_whitespace() => return Ok(()),
            _ => {}
        }
        call.fresh = false;
        call.current.push(byte, origin);
        Ok(())
    }

    fn emit_byte(&mut self, byte: u8, origin: u32) {
        match self.calls.last_mut() {
            Some(call) => call.current.push(byte, origin),
            None if self.diversion == 0 => self.output.push(byte, origin),
            None if self.diversion > 0 => self.diverted.entry(self.diversion).or_default().push(byte, origin),
            None => {}
        }
    }

    fn emit(&mut self, text: &TracedText) -> MacroStep {
        self.work += text.len();
        match self.calls.last_mut() {
            Some(call) => call.current.extend(text),
            None if self.diversion == 0 => self.output.extend(text),
            None if self.diversion > 0 => self.diverted.entry(self.diversion).or_default().extend(text),
            None => {}
        }
        if self.output.len() > MOST_OUTPUT { Err(too_long(self.place)) } else { Ok(()) }
    }

    /// Expands a macro.
    fn call(&mut self, name: &[u8], called: &Macro, arguments: Vec<TracedText>, origin: u32) -> MacroStep {
        self.replacements += 1;
        match &called.meaning {
            Meaning::Builtin(builtin) => self.builtin(*builtin, arguments, origin),
            Meaning::Text(body) if arguments.is_empty() && !body.bytes.contains(&b'$') => {
                if body.origins.first() == Some(&NOWHERE) {
                    self.push(TracedText::placed(&body.bytes, origin));
                } else {
                    self.push_shared(body.clone());
                }
                Ok(())
            }
            Meaning::Text(body) => {
                let text = self.filled(name, body, &arguments, origin)?;
                self.push(text);
                Ok(())
            }
        }
    }

    /// A body with its arguments substituted.
    fn filled(
        &self,
        name: &[u8],
        body: &TracedText,
        arguments: &[TracedText],
        origin: u32,
    ) -> Result<TracedText, Vec<Diagnostic>> {
        let mut text = TracedText::default();
        let mut at = 0;
        while at < body.len() {
            self.control.ask()?;
            let byte = body.bytes[at];
            let place = if body.origins[at] == NOWHERE { origin } else { body.origins[at] };
            let next = body.bytes.get(at + 1).copied().filter(|_| byte == b'$');
            match next {
                Some(b'0') => text.extend(&TracedText::placed(name, place)),
                Some(digit @ b'1'..=b'9') => {
                    if let Some(argument) = arguments.get(usize::from(digit - b'1')) {
                        text.extend(argument);
                    }
                }
                Some(b'#') => text.extend(&TracedText::placed(arguments.len().to_string().as_bytes(), place)),
                Some(all @ (b'*' | b'@')) => {
                    for (number, argument) in arguments.iter().enumerate() {
                        if number > 0 {
                            text.push(b',', place);
                        }
                        if all == b'@' {
                            text.extend(&TracedText::placed(&self.open, place));
                        }
                        text.extend(argument);
                        if all == b'@' {
                            text.extend(&TracedText::placed(&self.close, place));
                        }
                    }
                }
                _ => {
                    text.push(byte, place);
                    at += 1;
                    continue;
                }
            }
            at += 2;
            if text.len() > MOST_OUTPUT {
                return Err(too_long(origin));
            }
        }
        Ok(text)
    }
}

/// The origin of the prelude's own text, until one of its macros is called.
const NOWHERE: u32 = u32::MAX;

fn too_long(origin: u32) -> Vec<Diagnostic> {
    Diagnostic::at(point(origin), "the text grows beyond 4 MiB").help("is a loop longer than it should be?").into()
}

fn point(origin: u32) -> Span {
    if origin == NOWHERE { Span::at(0) } else { Span::new(origin as usize, origin as usize + 1) }
}

fn is_word(name: &[u8]) -> bool {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.first().is_some_and(|first| !first.is_ascii_digit()) && name.iter().all(word)
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
