//! The syntax tree of CPN ML.

/// An expression and its position.
#[derive(Clone, Debug)]
pub(crate) struct Exp {
    pub kind: ExpKind,
    pub at: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum ExpKind {
    Int(i64),
    Str(String),
    Char(char),
    Name(String),
    Tuple(Vec<Exp>),
    Record(Vec<(String, Exp)>),
    List(Vec<Exp>),
    Select(String),
    Let(Vec<Dec>, Box<Exp>),
    App(Box<Exp>, Box<Exp>),
    If(Box<Exp>, Box<Exp>, Box<Exp>),
    Case(Box<Exp>, Vec<(Pat, Exp)>),
    Fn(Vec<(Pat, Exp)>),
    And(Box<Exp>, Box<Exp>),
    Or(Box<Exp>, Box<Exp>),
    Raise(Box<Exp>),
    Handle(Box<Exp>, Vec<(Pat, Exp)>),
    Seq(Vec<Exp>),
    Typed(Box<Exp>, TypeExp),
    /// Understood but not supported, for this reason, which is reported where it is used.
    Refused(String),
}

/// A pattern and its position.
#[derive(Clone, Debug)]
pub(crate) struct Pat {
    pub kind: PatKind,
    pub at: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum PatKind {
    Wild,
    Int(i64),
    Str(String),
    Char(char),
    /// A variable, or a constructor without argument.
    Name(String),
    Apply(String, Box<Pat>),
    Tuple(Vec<Pat>),
    /// Fields; whether there may be others.
    Record(Vec<(String, Pat)>, bool),
    List(Vec<Pat>),
    Cons(Box<Pat>, Box<Pat>),
    As(String, Box<Pat>),
    Typed(Box<Pat>, TypeExp),
}

/// A type as written.
#[derive(Clone, Debug)]
pub(crate) enum TypeExp {
    Var(String),
    Name(String, Vec<TypeExp>, usize),
    Tuple(Vec<TypeExp>),
    Record(Vec<(String, TypeExp)>),
    Arrow(Box<TypeExp>, Box<TypeExp>),
}

/// One clause of a function.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub name: String,
    pub patterns: Vec<Pat>,
    pub result: Option<TypeExp>,
    pub body: Exp,
    pub at: usize,
}

/// One type of a `datatype`.
#[derive(Clone, Debug)]
pub(crate) struct DataSpec {
    pub parameters: Vec<String>,
    pub name: String,
    /// Constructors, with the types of their arguments.
    pub alternatives: Vec<(String, Option<TypeExp>)>,
}

/// A range of characters, and one of lengths.
pub(crate) type StringRange = (Exp, Exp, Option<(Exp, Exp)>);

/// A colour set as declared.
#[derive(Clone, Debug)]
pub(crate) enum ColourSpec {
    Unit(Option<String>),
    Bool(Option<(String, String)>),
    Int(Option<(Exp, Exp)>),
    Str(Option<Box<StringRange>>),
    Enum(Vec<String>),
    Index(String, Exp, Exp),
    Product(Vec<String>),
    Record(Vec<(String, String)>),
    List(String, Option<(Exp, Exp)>),
    Union(Vec<(String, Option<String>)>),
    SubsetBy(String, Exp),
    SubsetWith(String, Exp),
    Alias(String),
    /// Declared, but not usable for a place: `real`, `time`, `intinf`.
    Other(String),
}

/// A declaration.
#[derive(Clone, Debug)]
pub(crate) enum Dec {
    Val(Vec<(Pat, Exp)>),
    Fun(Vec<Vec<Clause>>),
    Exception(String, Option<TypeExp>),
    Local(Vec<Dec>, Vec<Dec>),
    /// Parameters, name, meaning.
    Type(Vec<String>, String, TypeExp),
    Datatype(Vec<DataSpec>),
    /// Another file, and the position of its name.
    Use(String, usize),
    /// `declared` lists what `declare` asks for.
    Colour {
        name: String,
        spec: ColourSpec,
        timed: bool,
        declared: Vec<String>,
        at: usize,
    },
    Vars {
        names: Vec<(String, usize)>,
        of: String,
        at: usize,
    },
    Globref(String, Exp),
}
