//! Parser: expressions.
//!
//! In: the tokens of the parser, from its current position. Out: an [`Expr`]. What stays true: no tree is
//! higher than [`MAX_DEPTH`], whether by parentheses or by a long chain of operators.
//!
//! Precedence, loosest first: `? :` (to the right), `or`, `and`, `in`, `= !=`, `< <= > >=`,
//! `+ -` (also before an operand, so that `-a * b` is `-(a * b)`), `* / % mod`, `&`,
//! `pred succ not`, and then what follows an operand: `:: . [ ] '`. Levels are climbed by [`Pratt`].

use super::parse::{Parsed, Parser, Stuck};
use super::syntax::*;
use super::token::TokenKind;
use deltamark_core::parser::Pratt;
use deltamark_core::{Diagnostic, Span};

/// The level above the tightest operator between operands.
const SUM: u8 = 6;
const PRODUCT: u8 = 7;

/// Attributes whose names are reserved words.
const ATTRIBUTES: [&str; 4] = ["card", "mult", "empty", "capacity"];

impl<'t> Pratt for Parser<'t, '_> {
    type Level = u8;
    type Operator = Binary;
    type Expr = Expr<'t>;
    type Error = Stuck;

    fn nest(&mut self) -> Parsed<()> {
        self.enter()
    }

    fn unnest(&mut self) {
        self.depth -= 1;
    }

    fn operand(&mut self, _: u8) -> Parsed<Expr<'t>> {
        self.prefix()
    }

    fn operator(&self) -> Option<(u8, Binary)> {
        self.joining().map(|operator| (operator.level(), operator))
    }

    fn extend(&mut self, left: Expr<'t>, level: u8, operator: Binary) -> Parsed<Expr<'t>> {
        self.cursor.at += 1;
        let right = self.climb(level + 1)?;
        let start = left.span.start;
        self.build(start, Node::Binary(operator, Box::new(left), Box::new(right)))
    }
}

impl<'t> Parser<'t, '_> {
    pub(super) fn expressions(&mut self) -> Parsed<Vec<Expr<'t>>> {
        self.list(",", Self::expression)
    }

    /// Reads an expression of any kind.
    pub(super) fn expression(&mut self) -> Parsed<Expr<'t>> {
        self.enter()?;
        let condition = self.climb(1)?;
        let expr = if self.sign("?").is_some() {
            let then = self.expression()?;
            self.expect(":")?;
            let otherwise = self.expression()?;
            let start = condition.span.start;
            self.build(start, Node::Conditional(Box::new([condition, then, otherwise])))?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expr)
    }

    /// Parses the factor of a tuple, up to the `*` that joins the two.
    pub(super) fn factor(&mut self) -> Parsed<Expr<'t>> {
        self.climb(PRODUCT)
    }

    /// The variable on the left of `:=`.
    pub(super) fn assigned(&mut self) -> Parsed<Expr<'t>> {
        let name = self.name("a variable")?;
        let mut target = self.build(name.span.start, Node::Name(name.text))?;
        loop {
            if self.sign("[").is_some() {
                let index = self.expressions()?;
                self.expect("]")?;
                target = self.build(name.span.start, Node::Index(Box::new(target), index))?;
            } else if self.sign(".").is_some() {
                let field = self.name("the name of a field")?;
                target = self.build(name.span.start, Node::Field(Box::new(target), field))?;
            } else {
                return Ok(target);
            }
        }
    }

    /// The operator that is next. The `*` between a factor and its tuple is none.
    fn joining(&self) -> Option<Binary> {
        Some(match self.cursor.slice(0) {
            "or" => Binary::Or,
            "and" => Binary::And,
            "in" => Binary::In,
            "=" => Binary::Equal,
            "!=" => Binary::Differ,
            "<" => Binary::Less,
            "<=" => Binary::AtMost,
            ">" => Binary::More,
            ">=" => Binary::AtLeast,
            "+" => Binary::Add,
            "-" => Binary::Subtract,
            "*" if self.at_tuple(1) => return None,
            "*" => Binary::Multiply,
            "/" => Binary::Divide,
            "%" | "mod" => Binary::Remainder,
            "&" => Binary::Concatenate,
            _ => return None,
        })
    }

    fn prefix(&mut self) -> Parsed<Expr<'t>> {
        let start = self.cursor.here().start;
        let operator = match self.cursor.slice(0) {
            "-" => Unary::Minus,
            "+" => Unary::Plus,
            "not" => Unary::Not,
            "succ" => Unary::Succ,
            "pred" => Unary::Pred,
            _ => return self.postfix(),
        };
        self.enter()?;
        self.cursor.at += 1;
        let operand = match operator {
            Unary::Minus | Unary::Plus => self.climb(SUM + 1)?,
            _ => self.prefix()?,
        };
        self.depth -= 1;
        self.build(start, Node::Unary(operator, Box::new(operand)))
    }

    fn postfix(&mut self) -> Parsed<Expr<'t>> {
        let start = self.cursor.here().start;
        let mut expr = self.atom()?;
        loop {
            expr = if self.sign("'").is_some() {
                let word = self.cursor.slice(0);
                let name = if ATTRIBUTES.contains(&word) {
                    self.cursor.at += 1;
                    Name { text: word, span: Span::new(self.cursor.last_end() - word.len(), self.cursor.last_end()) }
                } else {
                    self.name("the name of an attribute")?
                };
                self.build(start, Node::Attribute(Box::new(expr), name))?
            } else if self.sign(".").is_some() {
                let field = self.name("the name of a field")?;
                self.build(start, Node::Field(Box::new(expr), field))?
            } else if self.sign("[").is_some() {
                self.index(start, expr)?
            } else if self.sign("::").is_some() {
                self.update(start, expr)?
            } else {
                return Ok(expr);
            };
        }
    }

    /// After `[`: an index, several, or a slice.
    fn index(&mut self, start: usize, of: Expr<'t>) -> Parsed<Expr<'t>> {
        let mut index = self.expressions()?;
        if index.len() == 1 && self.sign("..").is_some() {
            let last = self.expression()?;
            self.expect("]")?;
            let Some(first) = index.pop() else { return self.missing("an index") };
            return self.build(start, Node::Slice(Box::new([of, first, last])));
        }
        self.expect("]")?;
        self.build(start, Node::Index(Box::new(of), index))
    }

    /// After `::`.
    fn update(&mut self, start: usize, of: Expr<'t>) -> Parsed<Expr<'t>> {
        self.expect("(")?;
        if self.sign("[").is_some() {
            let index = self.expressions()?;
            self.expect("]")?;
            self.expect(":=")?;
            let value = self.expression()?;
            self.expect(")")?;
            return self.build(start, Node::IndexUpdate(Box::new(of), index, Box::new(value)));
        }
        let field = self.name("the name of a field or `[`")?;
        self.expect(":=")?;
        let value = self.expression()?;
        self.expect(")")?;
        self.build(start, Node::FieldUpdate(Box::new(of), field, Box::new(value)))
    }

    fn atom(&mut self) -> Parsed<Expr<'t>> {
        let start = self.cursor.here().start;
        match self.cursor.ahead(0) {
            Some(TokenKind::Number) => {
                let value = self.number("a number")?;
                self.build(start, Node::Number(value))
            }
            Some(TokenKind::Name) => self.named(start),
            Some(TokenKind::Sign) => self.bracketed(start),
            Some(TokenKind::Keyword) => {
                let word = self.cursor.slice(0);
                if self.keyword("empty") {
                    return self.build(start, Node::Empty);
                }
                match Quantifier::of(word) {
                    Some(quantifier) => self.quantified(start, quantifier),
                    None => self.no_expression(),
                }
            }
            Some(TokenKind::Text) | None => self.missing("an expression"),
        }
    }

    /// A name, a call, or a component of a token.
    fn named(&mut self, start: usize) -> Parsed<Expr<'t>> {
        let name = self.name("a name")?;
        if self.sign("(").is_some() {
            let mut arguments = Vec::new();
            if self.sign(")").is_none() {
                arguments = self.expressions()?;
                self.expect(")")?;
            }
            return self.build(start, Node::Call(name, arguments));
        }
        if self.sign("->").is_some() {
            let number = self.number("the number of a component")?;
            return self.build(start, Node::Component(name, u32::try_from(number).unwrap_or(u32::MAX)));
        }
        self.build(start, Node::Name(name.text))
    }

    /// Parentheses, or a value of a struct, vector, list or set.
    fn bracketed(&mut self, start: usize) -> Parsed<Expr<'t>> {
        if self.sign("(").is_some() {
            let mut inner = self.expression()?;
            self.expect(")")?;
            inner.span = Span::new(start, self.cursor.last_end());
            return Ok(inner);
        }
        if self.sign("{").is_some() {
            let parts = self.expressions()?;
            self.expect("}")?;
            return self.build(start, Node::Struct(parts));
        }
        if self.sign("[").is_some() {
            let parts = self.expressions()?;
            self.expect("]")?;
            return self.build(start, Node::Vector(parts));
        }
        if self.sign("|").is_some() {
            // An element may be a list itself, unless nothing that could be one follows.
            if self.cursor.slice(0) == "|" && !self.at_operand(1) {
                self.cursor.at += 1;
                let span = Span::new(start, self.cursor.last_end());
                return self.stuck(
                    Diagnostic::at(span, "a list or set without elements is written `empty`").help("write `empty`"),
                );
            }
            let parts = self.expressions()?;
            self.expect("|")?;
            return self.build(start, Node::Container(parts));
        }
        self.no_expression()
    }

    /// Whether an expression may begin `ahead` tokens further on.
    fn at_operand(&self, ahead: usize) -> bool {
        let word = self.cursor.slice(ahead);
        match self.cursor.ahead(ahead) {
            Some(TokenKind::Number | TokenKind::Name) => true,
            Some(TokenKind::Sign) => matches!(word, "(" | "{" | "[" | "|" | "+" | "-"),
            Some(TokenKind::Keyword) => {
                matches!(word, "empty" | "not" | "succ" | "pred") || Quantifier::of(word).is_some()
            }
            Some(TokenKind::Text) | None => false,
        }
    }

    /// Reports that there is no expression here. Operators of other languages are translated.
    fn no_expression<T>(&mut self) -> Parsed<T> {
        let spellings = [("==", "="), ("&&", "and"), ("<>", "!="), ("/=", "!="), ("=<", "<="), ("=>", ">=")];
        let end = self.cursor.here().end;
        let found = spellings.into_iter().find(|(symbol, _)| self.cursor.text[..end].ends_with(symbol));
        self.unexpected("an expression", found.map(|(_, spelling)| format!("write `{spelling}`")))
    }

    fn quantified(&mut self, start: usize, quantifier: Quantifier) -> Parsed<Expr<'t>> {
        self.cursor.at += 1;
        self.expect("(")?;
        let iterations = self.iterations()?;
        let filter = if self.sign("|").is_some() { Some(Box::new(self.expression()?)) } else { None };
        let mut body = None;
        if quantifier.has_body() {
            if self.cursor.slice(0) != ":" {
                let help = format!("`{}` takes an expression behind a colon", quantifier.word());
                return self.unexpected("`:`", Some(help));
            }
            self.cursor.at += 1;
            body = Some(Box::new(self.expression()?));
        } else if self.cursor.slice(0) == ":" {
            let help = format!("`{}` takes a condition behind `|`", quantifier.word());
            return self.unexpected("`)`", Some(help));
        }
        self.expect(")")?;
        self.build(start, Node::Quantified(quantifier, iterations, filter, body))
    }

    /// An expression that begins at `start` and ends after the last token, unless it is too high.
    fn build(&mut self, start: usize, node: Node<'t>) -> Parsed<Expr<'t>> {
        let height = height(&node);
        let span = Span::new(start, self.cursor.last_end());
        if usize::from(height) > MAX_DEPTH {
            return self.too_deep(span);
        }
        Ok(Expr { node, span, height })
    }
}

fn height(node: &Node) -> u16 {
    let all = |parts: &[Expr]| parts.iter().map(|part| part.height).max().unwrap_or(0);
    let domains = |iterations: &[Iteration]| {
        let of = |iteration: &Iteration| {
            let range = iteration.range.as_ref().map_or(0, |range| range.low.height.max(range.high.height));
            iteration.domain.height.max(range)
        };
        iterations.iter().map(of).max().unwrap_or(0)
    };
    let optional = |part: &Option<Box<Expr>>| part.as_ref().map_or(0, |part| part.height);
    1 + match node {
        Node::Number(_) | Node::Name(_) | Node::Empty | Node::Component(..) => 0,
        Node::Call(_, parts) | Node::Struct(parts) | Node::Vector(parts) | Node::Container(parts) => all(parts),
        Node::Binary(_, left, right) | Node::FieldUpdate(left, _, right) => left.height.max(right.height),
        Node::Unary(_, inner) | Node::Field(inner, _) | Node::Attribute(inner, _) => inner.height,
        Node::Conditional(parts) | Node::Slice(parts) => all(&parts[..]),
        Node::Index(of, index) => of.height.max(all(index)),
        Node::IndexUpdate(of, index, value) => of.height.max(value.height).max(all(index)),
        Node::Quantified(_, iterations, filter, body) => domains(iterations).max(optional(filter)).max(optional(body)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Findings;

    /// An expression with parentheses around every operation.
    fn shown(expr: &Expr) -> String {
        let all = |parts: &[Expr]| parts.iter().map(shown).collect::<Vec<_>>().join(", ");
        match &expr.node {
            Node::Number(value) => value.to_string(),
            Node::Name(name) => (*name).into(),
            Node::Empty => "empty".into(),
            Node::Component(name, number) => format!("{}->{number}", name.text),
            Node::Call(name, parts) => format!("{}({})", name.text, all(parts)),
            Node::Struct(parts) => format!("{{{}}}", all(parts)),
            Node::Vector(parts) => format!("[{}]", all(parts)),
            Node::Container(parts) => format!("|{}|", all(parts)),
            Node::Binary(operator, left, right) => format!("({} {} {})", shown(left), operator.sign(), shown(right)),
            Node::Unary(operator, of) => format!("({} {})", operator.sign(), shown(of)),
            Node::Conditional(parts) => {
                format!("({} ? {} : {})", shown(&parts[0]), shown(&parts[1]), shown(&parts[2]))
            }
            Node::Field(of, field) => format!("{}.{}", shown(of), field.text),
            Node::FieldUpdate(of, field, value) => format!("({} :: {} := {})", shown(of), field.text, shown(value)),
            Node::Index(of, index) => format!("{}[{}]", shown(of), all(index)),
            Node::IndexUpdate(of, index, value) => format!("({} :: [{}] := {})", shown(of), all(index), shown(value)),
            Node::Slice(parts) => format!("{}[{} .. {}]", shown(&parts[0]), shown(&parts[1]), shown(&parts[2])),
            Node::Attribute(of, attribute) => format!("{}'{}", shown(of), attribute.text),
            Node::Quantified(quantifier, iterations, filter, body) => {
                let names: Vec<String> = iterations
                    .iter()
                    .map(|iteration| {
                        let range = iteration.range.as_ref();
                        let range = range.map(|range| format!(" {} .. {}", shown(&range.low), shown(&range.high)));
                        format!("{} in {}{}", iteration.name.text, shown(&iteration.domain), range.unwrap_or_default())
                    })
                    .collect();
                let part = |sign: &str, part: &Option<Box<Expr>>| {
                    part.as_ref().map_or(String::new(), |part| format!(" {sign} {}", shown(part)))
                };
                format!("{}({}{}{})", quantifier.word(), names.join(", "), part("|", filter), part(":", body))
            }
        }
    }

    fn read(text: &str) -> String {
        let mut findings = Findings::default();
        let text = format!("n {{ proposition p : {text}; }}");
        let net = super::super::parse::net(&text, &mut findings).expect("a net");
        assert!(findings.is_empty(), "{text}");
        match &net.definitions[..] {
            [Definition::Proposition(proposition)] => shown(&proposition.value),
            _ => panic!("{text}"),
        }
    }

    #[test]
    fn each_operator_binds_as_the_language_says() {
        // Loosest first; operators in one row have the same level.
        let levels: &[&[&str]] =
            &[&["or"], &["and"], &["in"], &["=", "!="], &["<", "<=", ">", ">="], &["+", "-"], &["*", "/", "%"], &["&"]];
        for (level, row) in levels.iter().enumerate() {
            for one in *row {
                for other in *row {
                    assert_eq!(read(&format!("a {one} b {other} c")), format!("((a {one} b) {other} c)"));
                }
                for other in levels[level + 1..].iter().copied().flatten() {
                    assert_eq!(read(&format!("a {one} b {other} c")), format!("(a {one} (b {other} c))"));
                    assert_eq!(read(&format!("a {other} b {one} c")), format!("((a {other} b) {one} c)"));
                }
                // Looser than all of them.
                assert_eq!(read(&format!("a {one} b ? c : d")), format!("((a {one} b) ? c : d)"));
                assert_eq!(read(&format!("a ? b : c {one} d")), format!("(a ? b : (c {one} d))"));
                // Tighter than all of them.
                for prefix in ["not", "succ", "pred"] {
                    assert_eq!(read(&format!("{prefix} a {one} b")), format!("(({prefix} a) {one} b)"));
                    assert_eq!(read(&format!("a {one} {prefix} b")), format!("(a {one} ({prefix} b))"));
                }
                // A sign in front is as tight as a sum.
                for sign in ["-", "+"] {
                    let whole = format!("({sign} (a {one} b))");
                    let first = format!("(({sign} a) {one} b)");
                    let expected = if level > 5 { whole } else { first };
                    assert_eq!(read(&format!("{sign} a {one} b")), expected);
                }
            }
        }
    }

    #[test]
    fn operands_of_every_kind() {
        let rows = [
            ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
            ("a ? b ? c : d : e", "(a ? (b ? c : d) : e)"),
            ("a mod b", "(a % b)"),
            ("2 * - 3 * 4", "(2 * (- (3 * 4)))"),
            ("- - a", "(- (- a))"),
            ("not - a", "(not (- a))"),
            ("succ pred not a", "(succ (pred (not a)))"),
            ("not a.b", "(not a.b)"),
            ("- a'size", "(- a'size)"),
            ("succ a :: (b := c)", "(succ (a :: b := c))"),
            ("a :: (b := c or d) :: ([e, f] := g)", "((a :: b := (c or d)) :: [e, f] := g)"),
            ("a :: (b := c).d", "(a :: b := c).d"),
            ("a.b[c, d].e'size", "a.b[c, d].e'size"),
            ("a'first'prefix[b]", "a'first'prefix[b]"),
            ("a[b .. c + 1][d]", "a[b .. (c + 1)][d]"),
            ("a & b'first & c[1]", "((a & b'first) & c[1])"),
            ("f() + f(a) + f(a, b + c)", "((f() + f(a)) + f(a, (b + c)))"),
            ("{a, b or c}.d", "{a, (b or c)}.d"),
            ("[a, b][c]", "[a, b][c]"),
            ("|a, b|'size", "|a, b|'size"),
            // A list of lists, also without blanks.
            ("| |a, b|, |c| |", "||a, b|, |c||"),
            ("||a|,empty|", "||a|, empty|"),
            ("|||a|||'size", "|||a|||'size"),
            ("empty'size", "empty'size"),
            ("a->1 + a->20", "(a->1 + a->20)"),
            ("p'card + p'mult + l'empty + l'capacity", "(((p'card + p'mult) + l'empty) + l'capacity)"),
            ("forall (x in t : a or b)", "forall(x in t : (a or b))"),
            ("exists (x in t range 1 .. a + 1, y in p | a = b)", "exists(x in t 1 .. (a + 1), y in p | (a = b))"),
            ("card (x in t) = mult (y in p | a)", "(card(x in t) = mult(y in p | a))"),
            ("min (x in t : a) + max (x in t | b : c)", "(min(x in t : a) + max(x in t | b : c))"),
            ("sum (x in t : a) * product (x in t : b)", "(sum(x in t : a) * product(x in t : b))"),
            // The bar of a quantifier, and those of a list.
            ("exists (x in t | x in |a, b|)", "exists(x in t | (x in |a, b|))"),
            ("exists (x in |a| | b)", "exists(x in |a| | b)"),
            // Helena reads these as the ends of tuples.
            ("a <(b)", "(a < b)"),
            ("(a)>b", "(a > b)"),
            ("a '\nsize", "a'size"),
        ];
        for (text, expected) in rows {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
