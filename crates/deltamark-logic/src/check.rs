//! Compiles expressions: resolves names, checks kinds, emits code.
//!
//! In: an [`Expr`] and the observables of the model. Out: a [`Compiled`] program, or every wrong name and every
//! mix-up of numbers and truth values, up to a limit. What stays true: [`Checker::truth`] emits code that pushes
//! exactly one truth value, [`Checker::number`] code that pushes exactly one number, so the depth of the stacks is
//! known statically. After a finding the code may be anything; it is discarded.

use std::collections::HashMap;

use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Diagnostic, Findings, Observable, ObservableKind, Observe, Span};

use crate::ast::{Arithmetic, Comparison, Expr, Level, Name, Node};
use crate::parse::{parse, shortened};
use crate::program::{Compiled, Depths, Junction, Operation};
use crate::token::quote;

/// Parses an expression, resolves its names, and compiles it.
pub fn compile(text: &str, observe: &dyn Observe) -> Result<Compiled, Vec<Diagnostic>> {
    compile_as(ObservableKind::Bool, text, observe).map(|(_, compiled)| compiled)
}

/// The same for an expression whose value is of this kind; a truth value is accepted as a number. Also returns the
/// expression.
pub(crate) fn compile_as(
    kind: ObservableKind,
    text: &str,
    observe: &dyn Observe,
) -> Result<(Expr, Compiled), Vec<Diagnostic>> {
    let expr = match observe.own_expression(text) {
        // The whole text is the name of an observable.
        Some(Ok(_)) => {
            let span = Span::new(0, text.len());
            Expr { node: Node::Name(Name { text: text.into(), span }), span }
        }
        Some(Err(wrong)) => return Err(wrong),
        None => parse(text)?,
    };
    let compiled = compile_expr(kind, text, &expr, observe)?;
    Ok((expr, compiled))
}

/// Compiles an expression that was parsed from `text`, or from a part of it.
pub(crate) fn compile_expr(
    kind: ObservableKind,
    text: &str,
    expr: &Expr,
    observe: &dyn Observe,
) -> Result<Compiled, Vec<Diagnostic>> {
    let mut checker = Checker {
        text,
        observe,
        names: Sort::default(),
        actions: Sort::default(),
        findings: Findings::default(),
        operations: Vec::new(),
        places: Vec::new(),
        now: Depths::default(),
        most: Depths::default(),
    };
    let numeric = kind == ObservableKind::Int && checker.kind(expr) != Some(ObservableKind::Bool);
    if numeric {
        checker.number(expr);
    } else {
        checker.truth(expr);
    }
    checker.findings.or(())?;
    let written = &text[expr.span.range()];
    Ok(Compiled {
        // Of a long text only the part that it was compiled from.
        source: written.to_string(),
        // Comments inside end with their lines, so printing the expression again drops them.
        text: if written.contains('\n') { expr.to_string() } else { written.to_string() },
        operations: checker.operations,
        places: checker.places.iter().map(|place| within(*place, expr.span)).collect(),
        depths: checker.most,
        numeric,
    })
}

/// A span in the text of an expression, as one in that expression.
fn within(place: Span, whole: Span) -> Span {
    Span::new(place.start.saturating_sub(whole.start), place.end.saturating_sub(whole.start))
}

/// One of the two namespaces: observables and transitions.
#[derive(Default)]
struct Sort {
    /// Resolved names; `None` for a name that is unknown and reported.
    found: HashMap<String, Option<Observable>>,
    /// All names, fetched when the first one is wrong.
    all: Option<Vec<String>>,
    /// Whether the names have been listed to the user.
    listed: bool,
}

struct Checker<'a> {
    text: &'a str,
    observe: &'a dyn Observe,
    names: Sort,
    actions: Sort,
    findings: Findings,
    operations: Vec<Operation>,
    places: Vec<Span>,
    /// The depth of the stacks at this point of the program, and the maximum.
    now: Depths,
    most: Depths,
}

impl Checker<'_> {
    fn wrong(&mut self, diagnostic: Diagnostic) {
        self.findings.add(|| diagnostic);
    }

    /// Emits code for an expression that must be a truth value.
    fn truth(&mut self, expr: &Expr) {
        if self.findings.is_full() {
            return;
        }
        let span = expr.span;
        match &expr.node {
            Node::Truth(truth) => self.emit(Operation::Truth(*truth), span),
            Node::Deadlock => self.emit(Operation::Deadlock, span),
            Node::Fireable(names) => {
                for (index, name) in names.iter().enumerate() {
                    if let Some(observable) = self.action(name) {
                        self.emit(Operation::ReadTruth(observable), name.span);
                    }
                    if index > 0 {
                        self.emit(Operation::Either, span);
                    }
                }
            }
            Node::Name(name) => match self.name(name) {
                Some(observable) if observable.kind == ObservableKind::Bool => {
                    self.emit(Operation::ReadTruth(observable), span)
                }
                Some(_) => self.no_truth(expr),
                None => {}
            },
            Node::Not(inner) => {
                self.truth(inner);
                self.emit(Operation::Not, span);
            }
            Node::And(list) => self.junction(Junction::And, list, span),
            Node::Or(list) => self.junction(Junction::Or, list, span),
            Node::Implies(left, right) => self.implication(left, right, span),
            Node::Iff(list) => {
                for (index, operand) in list.iter().enumerate() {
                    self.truth(operand);
                    if index > 0 {
                        self.emit(Operation::Same, span);
                    }
                }
            }
            Node::Compare(comparison, left, right) => self.comparison(*comparison, left, right, span),
            Node::Initial | Node::Along(..) | Node::Until(..) | Node::Paths(..) => self.wrong(
                Diagnostic::at(span, "this speaks of paths, so it cannot be part of a comparison")
                    .help("compare the values of formulas by `<->`"),
            ),
            Node::Number(_) | Node::Tokens(_) | Node::Negate(_) | Node::Arithmetic(..) => {
                // Checked all the same, so that wrong names inside are found as well.
                self.number(expr);
                self.no_truth(expr);
            }
        }
    }

    /// Emits code for an expression that must be a number.
    fn number(&mut self, expr: &Expr) {
        if self.findings.is_full() {
            return;
        }
        let span = expr.span;
        match &expr.node {
            Node::Number(number) => self.emit(Operation::Number(*number), span),
            Node::Name(name) => match self.name(name) {
                Some(observable) if observable.kind == ObservableKind::Int => {
                    self.emit(Operation::Read(observable), span)
                }
                Some(_) => self.no_number(expr, None),
                None => {}
            },
            Node::Tokens(names) => {
                for (index, name) in names.iter().enumerate() {
                    match self.name(name) {
                        Some(observable) if observable.kind == ObservableKind::Int => {
                            self.emit(Operation::Read(observable), name.span);
                        }
                        Some(_) => self.no_number(&Expr { node: Node::Name(name.clone()), span: name.span }, None),
                        None => {}
                    }
                    if index > 0 {
                        self.emit(Operation::Arithmetic(Arithmetic::Add), span);
                    }
                }
            }
            Node::Negate(inner) => {
                self.number(inner);
                self.emit(Operation::Negate, span);
            }
            Node::Arithmetic(first, rest) => {
                self.number(first);
                for (operator, right) in rest {
                    self.number(right);
                    // The expression's own span may begin with a parenthesis.
                    self.emit(Operation::Arithmetic(*operator), Span::new(first.span.start, right.span.end));
                }
            }
            // Listed one by one: `truth` delegates numbers here, so delegating back in a catch-all would recurse
            // for ever.
            Node::Truth(_)
            | Node::Deadlock
            | Node::Fireable(_)
            | Node::Not(_)
            | Node::And(_)
            | Node::Or(_)
            | Node::Implies(..)
            | Node::Iff(_)
            | Node::Initial
            | Node::Along(..)
            | Node::Until(..)
            | Node::Paths(..)
            | Node::Compare(..) => {
                self.truth(expr);
                self.no_number(expr, None);
            }
        }
    }

    fn junction(&mut self, junction: Junction, list: &[Expr], span: Span) {
        let Some((first, rest)) = list.split_first() else {
            return;
        };
        self.truth(first);
        let mut jumps = vec![self.operations.len()];
        self.emit(Operation::Enter(junction, 0), span);
        for operand in rest {
            self.truth(operand);
            jumps.push(self.operations.len());
            self.emit(Operation::Fold(junction, 0), span);
        }
        self.leave(&jumps, span);
    }

    /// `a implies b` is `(not a) or b`.
    fn implication(&mut self, left: &Expr, right: &Expr, span: Span) {
        // A number on the left and the operator spelt `=>` is most likely a wrong `>=`.
        if self.kind(left) == Some(ObservableKind::Int) && self.kind(right) == Some(ObservableKind::Int) {
            let between = self.text.get(left.span.end..right.span.start).unwrap_or("");
            if between.trim() == "=>" {
                let start = left.span.end + between.find("=>").unwrap_or(0);
                self.wrong(
                    Diagnostic::at(Span::new(start, start + 2), "`=>` means `implies`, which joins truth values")
                        .help("for \"at least\" write `>=`"),
                );
                return;
            }
        }
        self.truth(left);
        self.emit(Operation::Not, left.span);
        let enter = self.operations.len();
        self.emit(Operation::Enter(Junction::Or, 0), span);
        self.truth(right);
        let fold = self.operations.len();
        self.emit(Operation::Fold(Junction::Or, 0), span);
        self.leave(&[enter, fold], span);
    }

    /// Ends a junction and patches the operations at `jumps` with the position of its end.
    fn leave(&mut self, jumps: &[usize], span: Span) {
        let end = self.operations.len() as u32;
        self.emit(Operation::Leave, span);
        for &jump in jumps {
            if let Operation::Enter(_, target) | Operation::Fold(_, target) = &mut self.operations[jump] {
                *target = end;
            }
        }
    }

    fn comparison(&mut self, comparison: Comparison, left: &Expr, right: &Expr, span: Span) {
        if let Some(meant) = self.dotted(comparison, left, right) {
            self.wrong(
                Diagnostic::at(span, "a process has no value to compare; whether it is in a state is a truth value")
                    .help(format!("did you mean `{}`?", shortened(&meant))),
            );
            return;
        }
        let kinds = (self.kind(left), self.kind(right));
        let orders = !matches!(comparison, Comparison::Equal | Comparison::Differ);
        match kinds {
            (Some(ObservableKind::Bool), Some(ObservableKind::Bool))
            | (Some(ObservableKind::Bool), None)
            | (None, Some(ObservableKind::Bool))
                if !orders =>
            {
                self.truth(left);
                self.truth(right);
                self.emit(Operation::Same, span);
                if comparison == Comparison::Differ {
                    self.emit(Operation::Not, span);
                }
            }
            // One side is a truth value where a number is needed: the other side often shows the intention.
            (Some(ObservableKind::Bool), other) => {
                self.truth(left);
                self.no_number(left, instead(comparison, left, right));
                if other == Some(ObservableKind::Int) {
                    self.number(right);
                }
            }
            (other, Some(ObservableKind::Bool)) => {
                if other == Some(ObservableKind::Int) {
                    self.number(left);
                }
                self.truth(right);
                self.no_number(right, instead(comparison, right, left));
            }
            _ => {
                self.number(left);
                if let Node::Number(number) = right.node {
                    self.emit(Operation::CompareWith(comparison, number), span);
                } else {
                    self.number(right);
                    self.emit(Operation::Compare(comparison), span);
                }
            }
        }
    }

    /// The likely intention of comparing a process with one of its states: `P = critical` for `P.critical`.
    fn dotted(&self, comparison: Comparison, left: &Expr, right: &Expr) -> Option<String> {
        let (Node::Name(process), Node::Name(state)) = (&left.node, &right.node) else { return None };
        let known = |name: &str| self.observe.resolve(name);
        let dotted = format!("{}.{}", process.text, state.text);
        let truth = known(&dotted).is_some_and(|observable| observable.kind == ObservableKind::Bool);
        if !truth || known(&process.text).is_some() || known(&state.text).is_some() {
            return None;
        }
        match comparison {
            Comparison::Equal => Some(quote(&dotted)),
            Comparison::Differ => Some(format!("not {}", quote(&dotted))),
            _ => None,
        }
    }

    /// The kind of an expression, as far as it is evident.
    fn kind(&mut self, expr: &Expr) -> Option<ObservableKind> {
        match &expr.node {
            Node::Name(name) => self.name(name).map(|observable| observable.kind),
            Node::Number(_) | Node::Tokens(_) | Node::Negate(_) | Node::Arithmetic(..) => Some(ObservableKind::Int),
            Node::Truth(_)
            | Node::Deadlock
            | Node::Fireable(_)
            | Node::Not(_)
            | Node::And(_)
            | Node::Or(_)
            | Node::Implies(..)
            | Node::Iff(_)
            | Node::Initial
            | Node::Along(..)
            | Node::Until(..)
            | Node::Paths(..)
            | Node::Compare(..) => Some(ObservableKind::Bool),
        }
    }

    fn emit(&mut self, operation: Operation, span: Span) {
        let now = &mut self.now;
        // A truth value is read through a number.
        let mut borrowed = 0;
        match operation {
            Operation::Truth(_) | Operation::Deadlock => now.truths += 1,
            Operation::ReadTruth(_) => {
                now.truths += 1;
                borrowed = 1;
            }
            Operation::Not | Operation::Negate => {}
            Operation::Either | Operation::Same | Operation::Fold(..) => now.truths = now.truths.saturating_sub(1),
            Operation::Enter(..) => now.active += 1,
            Operation::Leave => now.active = now.active.saturating_sub(1),
            Operation::Number(_) | Operation::Read(_) => now.numbers += 1,
            Operation::Arithmetic(_) => now.numbers = now.numbers.saturating_sub(1),
            Operation::Compare(_) => {
                now.numbers = now.numbers.saturating_sub(2);
                now.truths += 1;
            }
            Operation::CompareWith(..) => {
                now.numbers = now.numbers.saturating_sub(1);
                now.truths += 1;
            }
        }
        self.most.truths = self.most.truths.max(now.truths);
        self.most.numbers = self.most.numbers.max(now.numbers + borrowed);
        self.most.active = self.most.active.max(now.active);
        self.operations.push(operation);
        self.places.push(span);
    }

    fn name(&mut self, name: &Name) -> Option<Observable> {
        if let Some(&found) = self.names.found.get(&name.text) {
            return found;
        }
        let namesakes = self.observe.namesakes(&name.text);
        let found = self.observe.resolve(&name.text).filter(|_| namesakes.is_empty());
        self.names.found.insert(name.text.clone(), found);
        if !namesakes.is_empty() {
            self.ambiguous(name, &namesakes);
        } else if found.is_none() {
            let help = if self.observe.fireable(&name.text).is_some() {
                Some(format!("it is a transition: did you mean `fireable({})`?", shortened(&quote(&name.text))))
            } else {
                let observe = self.observe;
                let near = self.names.suggest(self.text, name, || observe.names()).or_else(|| spaced_arrow(name));
                near.or_else(|| self.names.list("`deltamark stats MODEL --all` lists the names"))
            };
            self.unknown(name, "the model has nothing called", help);
        }
        found
    }

    fn action(&mut self, name: &Name) -> Option<Observable> {
        if let Some(&found) = self.actions.found.get(&name.text) {
            return found;
        }
        let namesakes = self.observe.action_namesakes(&name.text);
        let found = self.observe.fireable(&name.text).filter(|_| namesakes.is_empty());
        self.actions.found.insert(name.text.clone(), found);
        if !namesakes.is_empty() {
            self.ambiguous(name, &namesakes);
        } else if found.is_none() {
            let observe = self.observe;
            let help = if observe.resolve(&name.text).is_some() {
                Some("it has a value, but it is no transition".to_string())
            } else {
                let near = self.actions.suggest(self.text, name, || observe.action_names());
                near.or_else(|| self.actions.list("`deltamark simulate MODEL` shows transitions by name"))
            };
            self.unknown(name, "the model has no transition called", help);
        }
        found
    }

    /// The file gives this name to several nodes, and a guess could be wrong.
    fn ambiguous(&mut self, name: &Name, namesakes: &[String]) {
        let message = format!("the model has {} things called `{}`", namesakes.len(), shortened(&name.text));
        let some: Vec<String> = namesakes.iter().take(5).map(|name| format!("`{}`", shortened(&quote(name)))).collect();
        let help =
            format!("say which, by its id: {}; where an id is also a name, rename one in the file", some.join(", "));
        self.wrong(Diagnostic::at(name.span, message).help(help));
    }

    fn unknown(&mut self, name: &Name, what: &str, help: Option<String>) {
        let mut finding = Diagnostic::at(name.span, format!("{what} `{}`", shortened(&name.text)));
        finding.help = help;
        self.wrong(finding);
    }

    #[cold]
    fn no_truth(&mut self, expr: &Expr) {
        let piece = shortened(self.text.get(expr.span.range()).unwrap_or(""));
        self.wrong(
            Diagnostic::at(expr.span, "this is a number, but a truth value is needed here")
                .label("a number")
                .help(format!("did you mean `{piece} >= 1`?")),
        );
    }

    #[cold]
    fn no_number(&mut self, expr: &Expr, instead: Option<String>) {
        let help = match instead {
            Some(instead) => format!("did you mean `{}`?", shortened(&instead)),
            None => "truth values are joined by `and`, `or`, `not`, and compared by `=` and `!=` only".to_string(),
        };
        self.wrong(
            Diagnostic::at(expr.span, "this is a truth value, but a number is needed here")
                .label("a truth value")
                .help(help),
        );
    }
}

/// The likely intention of comparing a truth value with 0 or 1.
fn instead(comparison: Comparison, truth: &Expr, number: &Expr) -> Option<String> {
    let plain = match (comparison, &number.node) {
        (Comparison::Equal | Comparison::AtLeast, Node::Number(1)) => true,
        (Comparison::Differ | Comparison::More, Node::Number(0)) => true,
        (Comparison::Equal, Node::Number(0)) | (Comparison::Differ, Node::Number(1)) => false,
        _ => return None,
    };
    Some(match (plain, truth.node.level() >= Level::Not) {
        (true, _) => truth.to_string(),
        (false, true) => format!("not {truth}"),
        (false, false) => format!("not ({truth})"),
    })
}

/// `a->b` was read as one name; perhaps an implication was intended.
fn spaced_arrow(name: &Name) -> Option<String> {
    let bare = name.span.end - name.span.start == name.text.len();
    let spaced = name.text.replace("->", " -> ");
    (bare && spaced != name.text)
        .then(|| format!("if it is an implication, put spaces around the arrow: `{}`", shortened(&spaced)))
}

impl Sort {
    /// All names, if they are few, or else where to find them; once is enough.
    fn list(&mut self, elsewhere: &str) -> Option<String> {
        const FEW: usize = 10;
        if std::mem::replace(&mut self.listed, true) {
            return None;
        }
        let all = self.all.as_ref()?;
        let names: Vec<String> = all.iter().take(FEW).map(|name| shortened(&quote(name))).collect();
        match all.len() {
            0 => None,
            1..=FEW => Some(format!("there are: {}", names.join(", "))),
            _ => Some(elsewhere.to_string()),
        }
    }

    /// A suggestion for an unknown name.
    fn suggest(&mut self, text: &str, name: &Name, fetch: impl FnOnce() -> Vec<String>) -> Option<String> {
        // Comparing very long names takes long, and they are not typed by hand.
        const LONGEST: usize = 200;
        if name.text.len() > LONGEST {
            return None;
        }
        let all = self.all.get_or_insert_with(fetch);
        // `P-1` was read as a subtraction, but perhaps it is a name that needs quotes.
        let here = text.get(name.span.start..).unwrap_or("");
        let longer = all
            .iter()
            .filter(|known| known.len() > name.text.len() && here.starts_with(known.as_str()))
            .max_by_key(|known| known.len());
        if let Some(known) = longer {
            return Some(format!("the name `{known}` needs quotes: {}", quote(known)));
        }
        // A state of a process, without its process; a process, without one of its states.
        let (behind, before) = (format!(".{}", name.text), format!("{}.", name.text));
        if let Some(known) = all.iter().find(|known| known.ends_with(&behind)) {
            return Some(format!("did you mean `{}`?", quote(known)));
        }
        if let Some(known) = all.iter().find(|known| known.starts_with(&before)) {
            return Some(format!("what belongs to it is named with a dot, for instance `{}`", quote(known)));
        }
        let near = did_you_mean(&name.text, all.iter().map(String::as_str).filter(|known| known.len() <= LONGEST))?;
        Some(format!("did you mean `{}`?", quote(near)))
    }
}
