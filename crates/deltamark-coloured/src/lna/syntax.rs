//! The syntax tree of `.lna`, with spans, before name resolution.
//!
//! In: nothing; this file is data. Out: what the parser builds and the checker reads. What stays true: names
//! are slices of the text; no tree is higher than [`MAX_DEPTH`], so that walking and dropping one cannot
//! overflow the stack.

use deltamark_core::Span;

/// The maximum depth of expressions and statements. A chain such as `a + b + c` nests too.
pub(crate) const MAX_DEPTH: usize = 200;

/// A name and its span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'t> {
    pub text: &'t str,
    pub span: Span,
}

/// A whole file.
#[derive(Debug)]
pub(crate) struct Net<'t> {
    pub name: Name<'t>,
    pub parameters: Vec<Parameter<'t>>,
    pub definitions: Vec<Definition<'t>>,
    pub properties: Vec<Property<'t>>,
}

/// `N := 10` after the net's name.
#[derive(Debug)]
pub(crate) struct Parameter<'t> {
    pub name: Name<'t>,
    pub value: i64,
}

/// A declaration of a net.
#[derive(Debug)]
pub(crate) enum Definition<'t> {
    Type(TypeDef<'t>),
    Subtype(SubtypeDef<'t>),
    Constant(ConstantDef<'t>),
    Function(FunctionDef<'t>),
    Place(PlaceDef<'t>),
    Transition(TransitionDef<'t>),
    Proposition(PropositionDef<'t>),
}

#[derive(Debug)]
pub(crate) struct TypeDef<'t> {
    pub name: Name<'t>,
    pub shape: TypeShape<'t>,
    pub span: Span,
}

/// The definition after `type T :`.
#[derive(Debug)]
pub(crate) enum TypeShape<'t> {
    Range(Range<'t>),
    Mod(Expr<'t>),
    Enum(Vec<Name<'t>>),
    Vector { index: Vec<Name<'t>>, element: Name<'t> },
    Struct(Vec<(Name<'t>, Name<'t>)>),
    List { index: Name<'t>, element: Name<'t>, capacity: Expr<'t> },
    Set { element: Name<'t>, capacity: Expr<'t> },
}

/// `range a .. b`.
#[derive(Debug)]
pub(crate) struct Range<'t> {
    pub low: Expr<'t>,
    pub high: Expr<'t>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct SubtypeDef<'t> {
    pub name: Name<'t>,
    pub parent: Name<'t>,
    pub range: Option<Range<'t>>,
}

#[derive(Debug)]
pub(crate) struct ConstantDef<'t> {
    pub type_name: Name<'t>,
    pub name: Name<'t>,
    pub value: Expr<'t>,
}

#[derive(Debug)]
pub(crate) struct FunctionDef<'t> {
    pub name: Name<'t>,
    /// Type and name of each parameter.
    pub parameters: Vec<(Name<'t>, Name<'t>)>,
    pub result: Name<'t>,
    pub body: FunctionBody<'t>,
    /// From `function` to the result.
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum FunctionBody<'t> {
    Prototype,
    Imported,
    Statement(Statement<'t>),
}

#[derive(Debug)]
pub(crate) struct Statement<'t> {
    pub node: StatementNode<'t>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum StatementNode<'t> {
    /// The target is a name, an index or a field.
    Assign(Expr<'t>, Expr<'t>),
    If(Expr<'t>, Box<Statement<'t>>, Option<Box<Statement<'t>>>),
    Case {
        subject: Expr<'t>,
        arms: Vec<(Expr<'t>, Statement<'t>)>,
        default: Option<Box<Statement<'t>>>,
    },
    While(Expr<'t>, Box<Statement<'t>>),
    For(Vec<Iteration<'t>>, Box<Statement<'t>>),
    Return(Expr<'t>),
    Assert(Expr<'t>),
    Print,
    Block(Vec<Local<'t>>, Vec<Statement<'t>>),
}

/// A variable or constant at the head of a block.
#[derive(Debug)]
pub(crate) struct Local<'t> {
    pub is_constant: bool,
    pub type_name: Name<'t>,
    pub name: Name<'t>,
    pub value: Option<Expr<'t>>,
}

/// `x in domain range a .. b`.
#[derive(Debug)]
pub(crate) struct Iteration<'t> {
    pub name: Name<'t>,
    pub domain: Expr<'t>,
    pub range: Option<Range<'t>>,
}

#[derive(Debug)]
pub(crate) struct PlaceDef<'t> {
    pub name: Name<'t>,
    /// Empty for `epsilon`.
    pub domain: Vec<Name<'t>>,
    pub initial: Option<Label<'t>>,
    pub capacity: Option<Expr<'t>>,
    pub role: Option<Name<'t>>,
}

#[derive(Debug)]
pub(crate) struct TransitionDef<'t> {
    pub name: Name<'t>,
    pub inputs: Vec<Arc<'t>>,
    pub outputs: Vec<Arc<'t>>,
    pub inhibitors: Vec<Arc<'t>>,
    pub picks: Vec<Iteration<'t>>,
    pub lets: Vec<ConstantDef<'t>>,
    pub guard: Option<Expr<'t>>,
    pub priority: Option<Expr<'t>>,
    pub description: Option<(Name<'t>, Vec<Expr<'t>>)>,
}

#[derive(Debug)]
pub(crate) struct Arc<'t> {
    pub place: Name<'t>,
    pub label: Label<'t>,
    pub span: Span,
}

/// A sum of tuples.
pub(crate) type Label<'t> = Vec<Tuple<'t>>;

/// `for (…) if (…) 2 * <( x, y )>`.
#[derive(Debug)]
pub(crate) struct Tuple<'t> {
    pub iterations: Vec<Iteration<'t>>,
    pub condition: Option<Expr<'t>>,
    pub factor: Option<Expr<'t>>,
    /// None for `epsilon`.
    pub components: Option<Vec<Expr<'t>>>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct PropositionDef<'t> {
    pub name: Name<'t>,
    pub value: Expr<'t>,
}

/// `state property …` or `ltl property …`.
#[derive(Debug)]
pub(crate) struct Property<'t> {
    pub name: Name<'t>,
    pub goal: PropertyGoal<'t>,
}

#[derive(Debug)]
pub(crate) enum PropertyGoal<'t> {
    State {
        reject: Name<'t>,
        accept: Vec<Name<'t>>,
    },
    /// A formula of linear temporal logic, in the property language.
    Ltl(Vec<LtlPiece<'t>>),
}

/// A piece of the text of a formula.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LtlPiece<'t> {
    /// Operators and parentheses.
    Text(&'static str),
    /// A proposition, or `deadlock`.
    Name(Name<'t>),
}

/// An expression and its span.
#[derive(Debug)]
pub(crate) struct Expr<'t> {
    pub node: Node<'t>,
    pub span: Span,
    /// The height of the tree, including this node.
    pub height: u16,
}

#[derive(Debug)]
pub(crate) enum Node<'t> {
    Number(i64),
    Name(&'t str),
    Call(Name<'t>, Vec<Expr<'t>>),
    Binary(Binary, Box<Expr<'t>>, Box<Expr<'t>>),
    Unary(Unary, Box<Expr<'t>>),
    Conditional(Box<[Expr<'t>; 3]>),
    Struct(Vec<Expr<'t>>),
    Vector(Vec<Expr<'t>>),
    Empty,
    Container(Vec<Expr<'t>>),
    Field(Box<Expr<'t>>, Name<'t>),
    Index(Box<Expr<'t>>, Vec<Expr<'t>>),
    Slice(Box<[Expr<'t>; 3]>),
    FieldUpdate(Box<Expr<'t>>, Name<'t>, Box<Expr<'t>>),
    IndexUpdate(Box<Expr<'t>>, Vec<Expr<'t>>, Box<Expr<'t>>),
    /// `t->2`: a component of a token.
    Component(Name<'t>, u32),
    Attribute(Box<Expr<'t>>, Name<'t>),
    Quantified(Quantifier, Vec<Iteration<'t>>, Option<Box<Expr<'t>>>, Option<Box<Expr<'t>>>),
}

/// Operators between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    In,
    Equal,
    Differ,
    Less,
    AtMost,
    More,
    AtLeast,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Concatenate,
}

impl Binary {
    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Binary::Or => "or",
            Binary::And => "and",
            Binary::In => "in",
            Binary::Equal => "=",
            Binary::Differ => "!=",
            Binary::Less => "<",
            Binary::AtMost => "<=",
            Binary::More => ">",
            Binary::AtLeast => ">=",
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Remainder => "%",
            Binary::Concatenate => "&",
        }
    }

    /// Its binding power; higher is tighter.
    pub fn level(self) -> u8 {
        match self {
            Binary::Or => 1,
            Binary::And => 2,
            Binary::In => 3,
            Binary::Equal | Binary::Differ => 4,
            Binary::Less | Binary::AtMost | Binary::More | Binary::AtLeast => 5,
            Binary::Add | Binary::Subtract => 6,
            Binary::Multiply | Binary::Divide | Binary::Remainder => 7,
            Binary::Concatenate => 8,
        }
    }
}

/// Operators before an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Minus,
    Plus,
    Not,
    Succ,
    Pred,
}

impl Unary {
    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Unary::Minus => "-",
            Unary::Plus => "+",
            Unary::Not => "not",
            Unary::Succ => "succ",
            Unary::Pred => "pred",
        }
    }
}

/// Quantifiers and other folds over all values of some variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantifier {
    Forall,
    Exists,
    Card,
    Mult,
    Min,
    Max,
    Sum,
    Product,
}

impl Quantifier {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Quantifier::Forall => "forall",
            Quantifier::Exists => "exists",
            Quantifier::Card => "card",
            Quantifier::Mult => "mult",
            Quantifier::Min => "min",
            Quantifier::Max => "max",
            Quantifier::Sum => "sum",
            Quantifier::Product => "product",
        }
    }

    /// The quantifier of a word.
    pub fn of(word: &str) -> Option<Self> {
        use Quantifier::{Card, Exists, Forall, Max, Min, Mult, Product, Sum};
        [Forall, Exists, Card, Mult, Min, Max, Sum, Product].into_iter().find(|quantifier| quantifier.word() == word)
    }

    /// Whether it has an expression after a colon.
    pub fn has_body(self) -> bool {
        !matches!(self, Quantifier::Exists | Quantifier::Card | Quantifier::Mult)
    }
}
