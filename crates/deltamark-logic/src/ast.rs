//! Expressions as syntax trees.
//!
//! In: what the parser has read. Out: [`Expr`], with its span in the text. What stays true: equality is structural
//! and ignores spans; chains of one operator are one node, so the height of a tree is bounded by the nesting depth
//! of its text.

use deltamark_core::Span;

/// An expression and its span. Equality ignores the span.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The operation and its operands.
    pub node: Node,
    /// Its span.
    pub span: Span,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl Eq for Expr {}

/// A name and its span. Equality ignores the span.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name itself, without quotes and escapes.
    pub text: String,
    /// Its span, including quotes.
    pub span: Span,
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Name {}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// `true` or `false`.
    Truth(bool),
    /// A number, with its sign.
    Number(i64),
    /// An observable of the model.
    Name(Name),
    /// The state has no successor.
    Deadlock,
    /// Some of these transitions are enabled.
    Fireable(Vec<Name>),
    /// The sum of these numbers.
    Tokens(Vec<Name>),
    /// The state is an initial one; in temporal formulas only, as are all that follow.
    Initial,
    /// `X a`, `F a` or `G a`.
    Along(PathOperator, Box<Expr>),
    /// `a U b`, `a R b`, `a W b` or `a M b`.
    Until(UntilOperator, Box<Expr>, Box<Expr>),
    /// `A a` or `E a`.
    Paths(PathQuantifier, Box<Expr>),
    /// `not a`.
    Not(Box<Expr>),
    /// `a and b and c`: at least two.
    And(Vec<Expr>),
    /// `a or b or c`: at least two.
    Or(Vec<Expr>),
    /// `a iff b iff c`, left-associative: at least two.
    Iff(Vec<Expr>),
    /// `a implies b`.
    Implies(Box<Expr>, Box<Expr>),
    /// `a = b` and the other comparisons.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// `-a`, where `a` is no literal.
    Negate(Box<Expr>),
    /// `a + b - c` or `a * b / c`, left-associative: at least one operator, all of them of equal precedence.
    Arithmetic(Box<Expr>, Vec<(Arithmetic, Expr)>),
}

/// Temporal operators before a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOperator {
    /// `X`: from the next state on.
    Next,
    /// `F`: from some state on.
    Finally,
    /// `G`: from every state on.
    Globally,
}

impl PathOperator {
    /// Its letter.
    pub fn symbol(self) -> &'static str {
        match self {
            PathOperator::Next => "X",
            PathOperator::Finally => "F",
            PathOperator::Globally => "G",
        }
    }
}

/// Temporal operators between formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UntilOperator {
    /// `a U b`: `b` comes, and until then `a` holds.
    Until,
    /// `a R b`: `b` holds up to and including the first state with `a`, for ever if there is none.
    Release,
    /// `a W b`: as `U`, but `b` need not come.
    Weak,
    /// `a M b`: as `R`, but `a` must come.
    Strong,
}

impl UntilOperator {
    /// Its letter.
    pub fn symbol(self) -> &'static str {
        match self {
            UntilOperator::Until => "U",
            UntilOperator::Release => "R",
            UntilOperator::Weak => "W",
            UntilOperator::Strong => "M",
        }
    }

    /// The operator of this letter.
    pub(crate) fn by_symbol(symbol: &str) -> Option<Self> {
        [Self::Until, Self::Release, Self::Weak, Self::Strong].into_iter().find(|one| one.symbol() == symbol)
    }
}

/// Path quantifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathQuantifier {
    /// `A`: on all paths.
    All,
    /// `E`: on some path.
    Exists,
}

impl PathQuantifier {
    /// Its letter.
    pub fn symbol(self) -> &'static str {
        match self {
            PathQuantifier::All => "A",
            PathQuantifier::Exists => "E",
        }
    }
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    Differ,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// Its symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::Differ => "!=",
            Comparison::Less => "<",
            Comparison::AtMost => "<=",
            Comparison::More => ">",
            Comparison::AtLeast => ">=",
        }
    }
}

/// Arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, rounding towards zero.
    Divide,
    /// `%`, with the sign of the dividend.
    Remainder,
}

impl Arithmetic {
    /// Its symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Remainder => "%",
        }
    }
}

/// Precedence levels, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Iff,
    Implies,
    Or,
    And,
    Until,
    Not,
    Compare,
    Sum,
    Product,
    Sign,
    Atom,
}

impl Level {
    /// The next tighter level.
    pub(crate) fn tighter(self) -> Level {
        match self {
            Level::Iff => Level::Implies,
            Level::Implies => Level::Or,
            Level::Or => Level::And,
            Level::And => Level::Until,
            Level::Until => Level::Not,
            Level::Not => Level::Compare,
            Level::Compare => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product => Level::Sign,
            Level::Sign | Level::Atom => Level::Atom,
        }
    }
}

impl Arithmetic {
    /// Its precedence.
    pub(crate) fn level(self) -> Level {
        match self {
            Arithmetic::Add | Arithmetic::Subtract => Level::Sum,
            Arithmetic::Multiply | Arithmetic::Divide | Arithmetic::Remainder => Level::Product,
        }
    }
}

impl Node {
    /// The precedence of its outermost operator.
    pub(crate) fn level(&self) -> Level {
        match self {
            Node::Iff(_) => Level::Iff,
            Node::Implies(..) => Level::Implies,
            Node::Or(_) => Level::Or,
            Node::And(_) => Level::And,
            Node::Until(..) => Level::Until,
            Node::Not(_) | Node::Along(..) | Node::Paths(..) => Level::Not,
            Node::Compare(..) => Level::Compare,
            Node::Arithmetic(_, rest) => rest.first().map_or(Level::Atom, |(operator, _)| operator.level()),
            Node::Negate(_) => Level::Sign,
            Node::Number(number) if *number < 0 => Level::Sign,
            Node::Truth(_)
            | Node::Number(_)
            | Node::Name(_)
            | Node::Deadlock
            | Node::Initial
            | Node::Fireable(_)
            | Node::Tokens(_) => Level::Atom,
        }
    }
}
