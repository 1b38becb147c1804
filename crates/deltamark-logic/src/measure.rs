//! Expressions as progress measures.
//!
//! In: the text of a number, or of several in parentheses: `sent + received`, `(round, sent)`. Out: a [`Measure`].
//! What stays true: any text that compiles is a measure; where an expression has no value (a division by zero) it
//! counts as less than any number, because a sweep needs a rank for every state, and any rank is valid.
//!
//! Several numbers are ordered lexicographically. A rank has 128 bits, which they share: a number that is too
//! large for its share saturates.
//!
//! If all numbers are sums whose change by each action the system knows, so is the rank, and only the ranks of
//! initial states have to be evaluated.

use crate::ast::{Arithmetic, Expr, Node};
use crate::check::compile_as;
use crate::lanes::Lanes;
use crate::program::{Compiled, Operation};
use deltamark_core::{
    Batch, Block, Diagnostic, Measure, Observable, ObservableKind, Observe, Rank, Scratch, Span, StateId, System,
};

/// The maximum number of components of a measure.
pub const MAX_PARTS: usize = 8;

/// Compiles a progress measure.
pub fn measure(text: &str, system: &dyn System) -> Result<Box<dyn Measure>, Vec<Diagnostic>> {
    let Some(observe) = system.observe() else {
        return Err(vec![Diagnostic::new("this model has no names that a measure could speak of")]);
    };
    let pieces = pieces(text);
    if pieces.len() > MAX_PARTS {
        return Err(vec![Diagnostic::new(format!("a measure is made of {MAX_PARTS} numbers at most"))]);
    }
    let (mut parts, mut findings, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        let inner = &text[piece.range()];
        match compile_as(ObservableKind::Int, inner, observe) {
            Ok((expr, compiled)) => {
                if compiled.operations.iter().any(|operation| matches!(operation, Operation::Deadlock)) {
                    findings.push(
                        Diagnostic::at(piece, "`deadlock` cannot be part of a progress measure")
                            .help("ranks are needed before successors are known"),
                    );
                }
                let mut sum = Vec::new();
                sums.push(linear(&expr, 1, observe, &mut sum).map(|()| sum));
                parts.push(compiled);
            }
            Err(wrong) => findings.extend(wrong.into_iter().map(|mut finding| {
                let place = finding.span.unwrap_or(Span::new(0, inner.len()));
                finding.span = Some(Span::new(piece.start + place.start, piece.start + place.end));
                finding
            })),
        }
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let gains = gains(&sums, &parts, system);
    Ok(Box::new(Numbers { parts, gains }))
}

/// The logarithm of the consecutive steps for which ranks have room. A sweep that gets further ends where a rank
/// would overflow.
const STEPS: u32 = 32;

/// What each action adds to the rank, if all numbers are sums whose change the system knows, and ranks have room
/// for a long run: otherwise a rank is evaluated state by state, and a number too large for its share saturates.
fn gains(sums: &[Option<Vec<(Observable, i64)>>], parts: &[Compiled], system: &dyn System) -> Option<Vec<Rank>> {
    let progress = system.progress()?;
    let bits = share(sums.len());
    let mut all: Vec<Rank> = Vec::new();
    for (number, (sum, part)) in (1..).zip(sums.iter().zip(parts)) {
        let gains = progress.gains_of(sum.as_ref()?)?;
        let largest = gains.iter().map(|gain| gain.unsigned_abs()).max().unwrap_or(0);
        let least = (u128::from(largest) << STEPS) + u128::from(initially(part, system)?);
        // The sum of all parts has a bit to spare, and so has the sign.
        if 128 - least.leading_zeros() + bits * (sums.len() as u32 - number) > 125 {
            return None;
        }
        all.resize(gains.len(), 0);
        for (rank, gain) in all.iter_mut().zip(gains) {
            *rank = (*rank << bits) + Rank::from(gain);
        }
    }
    Some(all)
}

/// The largest absolute value of a number in the initial states; `None` if it has no value there.
fn initially(part: &Compiled, system: &dyn System) -> Option<u64> {
    let mut scratch = system.scratch();
    let mut batch = Batch::new(system.width());
    while system.initial(&mut scratch, &mut batch).is_err() {
        drop(system.widen());
        batch.reset(system.width());
    }
    let mut most = 0;
    for index in 0..batch.len() {
        let mut block = Block::new(system.width());
        block.push(StateId::NAMELESS, batch.target(index));
        let mut values: Lanes = [0; 64];
        part.numbers(system, &mut scratch, &block, &mut values).ok()?;
        most = most.max(values[0].unsigned_abs());
    }
    Some(most)
}

/// The bits of a rank for each of `parts` numbers. One is unused, so that no rank is the maximum.
fn share(parts: usize) -> u32 {
    (127 / parts.max(1) as u32).min(64)
}

/// The pieces of a text: one, or those between the commas of an outer pair of parentheses.
fn pieces(text: &str) -> Vec<Span> {
    let start = text.len() - text.trim_start().len();
    let end = text.trim_end().len();
    let whole = vec![Span::new(0, text.len())];
    if !text[start..].starts_with('(') || !text.ends_with(')') && !text[..end].ends_with(')') || end < start + 2 {
        return whole;
    }
    let (mut depth, mut quote, mut comment, mut skip) = (0usize, None, false, false);
    let mut cuts = vec![start];
    for (at, character) in text[start..end].char_indices().map(|(at, character)| (start + at, character)) {
        match (character, quote) {
            _ if skip => skip = false,
            ('\n', _) => comment = false,
            _ if comment => {}
            ('\\', Some(_)) => skip = true,
            (_, Some(open)) => quote = quote.filter(|_| character != open),
            ('"' | '\'', None) => quote = Some(character),
            ('#', None) => comment = true,
            ('(' | '[', None) => depth += 1,
            (')' | ']', None) => {
                depth = depth.saturating_sub(1);
                // The outer pair ends before the text does: it is part of a sum, say.
                if depth == 0 && at + 1 < end {
                    return whole;
                }
            }
            (',', None) if depth == 1 => cuts.push(at),
            _ => {}
        }
    }
    if cuts.len() == 1 {
        return whole;
    }
    cuts.push(end - 1);
    cuts.windows(2).map(|pair| Span::new(pair[0] + 1, pair[1])).collect()
}

/// Adds the terms of a sum, each with its factor; `None` if it is no sum. A constant does not change the order.
fn linear(expr: &Expr, factor: i64, observe: &dyn Observe, sum: &mut Vec<(Observable, i64)>) -> Option<()> {
    match &expr.node {
        Node::Number(_) => Some(()),
        Node::Name(name) => {
            sum.push((observe.resolve(&name.text).filter(|found| found.kind == ObservableKind::Int)?, factor));
            Some(())
        }
        Node::Tokens(names) => {
            for name in names {
                sum.push((observe.resolve(&name.text).filter(|found| found.kind == ObservableKind::Int)?, factor));
            }
            Some(())
        }
        Node::Negate(inner) => linear(inner, factor.checked_neg()?, observe, sum),
        Node::Arithmetic(first, rest) => match &rest[..] {
            [(Arithmetic::Multiply, right)] => match (&first.node, &right.node) {
                (Node::Number(number), _) => linear(right, factor.checked_mul(*number)?, observe, sum),
                (_, Node::Number(number)) => linear(first, factor.checked_mul(*number)?, observe, sum),
                _ => None,
            },
            _ => {
                linear(first, factor, observe, sum)?;
                rest.iter().try_for_each(|(operator, right)| match operator {
                    Arithmetic::Add => linear(right, factor, observe, sum),
                    Arithmetic::Subtract => linear(right, factor.checked_neg()?, observe, sum),
                    _ => None,
                })
            }
        },
        _ => None,
    }
}

/// Numbers, ordered lexicographically.
struct Numbers {
    parts: Vec<Compiled>,
    /// What each action adds to the rank.
    gains: Option<Vec<Rank>>,
}

impl Measure for Numbers {
    fn text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().map(Compiled::text).collect();
        if let [one] = texts[..] { one.into() } else { format!("({})", texts.join(", ")) }
    }

    fn ranks(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, out: &mut Vec<Rank>) {
        let start = out.len();
        out.resize(start + block.len(), 0);
        let bits = share(self.parts.len());
        let most = (1i128 << (bits - 1)) - 1;
        let mut values: Lanes = [0; 64];
        for part in &self.parts {
            if part.numbers(system, scratch, block, &mut values).is_err() {
                one_by_one(part, system, scratch, block, &mut values);
            }
            for (rank, &value) in out[start..].iter_mut().zip(&values) {
                // If actions add to a rank, it is a sum, and must not saturate.
                let value = Rank::from(value);
                let value = if self.gains.is_some() { value } else { value.clamp(-most - 1, most) };
                *rank = (*rank << bits).wrapping_add(value + most + 1);
            }
        }
    }

    fn gains(&self) -> Option<&[Rank]> {
        self.gains.as_deref()
    }
}

/// The values where there are any, and the minimum elsewhere.
#[cold]
fn one_by_one(part: &Compiled, system: &dyn System, scratch: &mut Scratch, block: &Block, values: &mut Lanes) {
    let mut single = Block::new(system.width());
    let mut value: Lanes = [0; 64];
    for (index, state) in block.states().iter().enumerate() {
        single.reset(system.width());
        single.push(StateId::NAMELESS, state);
        let found = part.numbers(system, scratch, &single, &mut value);
        values[index] = if found.is_ok() { value[0] } else { i64::MIN };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_cut_at_their_own_commas() {
        let cut = |text: &'static str| -> Vec<&str> { pieces(text).iter().map(|piece| &text[piece.range()]).collect() };
        for (text, expected) in [
            ("p", &["p"][..]),
            ("(p, q)", &["p", " q"]),
            (" ( p + 1 , tokens(a, b) ) ", &[" p + 1 ", " tokens(a, b) "]),
            ("(p) + (q)", &["(p) + (q)"]),
            ("(p)", &["(p)"]),
            ("(\"a,b\", 'c)')", &["\"a,b\"", " 'c)'"]),
            ("(", &["("]),
            ("()", &["()"]),
            ("(,)", &["", ""]),
        ] {
            assert_eq!(cut(text), expected, "{text}");
        }
    }
}
