//! A coloured net as data: what front ends produce, and what the engine, the unfolding and the
//! printer take.
//!
//! ```text
//! .lna ──lna──┐
//!             ├─▶ Net ─┬─compile─▶ ColouredSystem   (one marking number a place, effects memoised)
//! .pnml ─pnml─┘        └─unfold──▶ deltamark_nets::Net
//! ```
//!
//! A front end has resolved all names, checked all types and inserted every check that its language requires,
//! so that nothing downstream knows the language. Types are kept as far as printing and enumerating need
//! them.
//!
//! # Values
//! A value is a 32-bit integer (numbers, enumerations as the position of the name, truth values as 0 and 1)
//! or a sequence of values (structures, vectors with the last index varying fastest, lists, sets in ascending
//! order without duplicates). Two values of one type are equal exactly when they are equal as data.
//!
//! # Variables and frames
//! A transition, a function, a proposition each has a *frame*: a numbered array of variables ([`Variable`]
//! gives names and types where there are any). Expressions refer to variables by number. Iterations use
//! numbers of the same frame; no two variables that are live at the same time share one. Arguments of a
//! function are its variables 0, 1, 2 ….
//!
//! # What stays true of a net that [`Net::validate`] accepts
//! Every number (type, place, function, variable) is in range, labels have as many components as the place's
//! domain, and only priorities, propositions and guards read the marking.

use std::sync::Arc as Shared;

use deltamark_core::Span;

/// The number of a type in [`Net::types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// The number of a place in [`Net::places`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlaceId(pub u32);

/// The number of a function in [`Net::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// The number of a variable in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(pub u32);

/// A value as a tree, for constants. At run time values are codes of one word.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// A number, an enumeration's position, a truth value.
    Int(i32),
    /// A structure, vector, list or set.
    Seq(Vec<Value>),
}

/// A type, as far as printing and enumerating its values need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Its name, for messages.
    pub name: String,
    /// The form of its values.
    pub shape: ValueShape,
}

/// The form of a type's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueShape {
    /// Integers from `low` to `high`, both included: range, mod, enum, and subtypes of these. Expressions
    /// determine whether arithmetic wraps ([`ExprKind::Wrap`], [`ExprKind::Cycle`]).
    Discrete {
        /// The first value.
        low: i32,
        /// The last value, not less than the first.
        high: i32,
        /// For enumerations the names, indexed by value. A subtype shares its parent's.
        names: Option<Shared<[String]>>,
    },
    /// A value of `element` for each combination of the index types (all discrete).
    Vector {
        /// The index types; the last varies fastest.
        indices: Vec<TypeId>,
        /// The elements' type.
        element: TypeId,
    },
    /// Named fields.
    Struct {
        /// Names and types, in order.
        fields: Vec<(String, TypeId)>,
    },
    /// A sequence of at most `capacity` elements.
    List {
        /// The elements' type.
        element: TypeId,
        /// The maximum number of elements.
        capacity: u32,
    },
    /// One of several alternatives: the sequence of its number, and its value if it has one.
    Union {
        /// The type of each alternative's value.
        alternatives: Vec<Option<TypeId>>,
    },
    /// At most `capacity` distinct elements.
    Set {
        /// The elements' type.
        element: TypeId,
        /// The maximum number of elements.
        capacity: u32,
    },
}

/// An expression and its span in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The operation and its operands.
    pub kind: ExprKind,
    /// The position that faults report.
    pub span: Span,
}

/// The kinds of expressions.
///
/// Integers are computed in 64 bits; overflow is a fault. The range of a type is checked only by
/// [`ExprKind::Check`]. Truth values are the integers 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Const(Value),
    /// The value of a variable.
    Var(Var),
    /// Component `index` (from 0) of the token that the variable of a [`Domain::Place`] denotes.
    Component {
        /// The variable.
        token: Var,
        /// The place of the token.
        place: PlaceId,
        /// Which component, from 0.
        index: u32,
    },

    /// An integer operation.
    Unary(Unary, Box<Expr>),
    /// An operation on two integers; `Eq` and `Ne` compare any two values of one type.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// The value itself if it is an integer from `low` to `high`, otherwise a fault.
    Check {
        /// The value.
        of: Box<Expr>,
        /// The least value allowed.
        low: i32,
        /// The largest value allowed.
        high: i32,
        /// The fault if the value is outside.
        fault: FaultKind,
    },
    /// The value modulo a positive number, never negative: `-1` modulo 5 is 4.
    Wrap(Box<Expr>, i32),
    /// The next (`by` = 1) or previous (`by` = -1) value from `low` to `high`, cyclically.
    Cycle {
        /// The value; one outside is first reduced modulo the number of values.
        of: Box<Expr>,
        /// The first value.
        low: i32,
        /// The last value.
        high: i32,
        /// The distance, forward or back.
        by: i32,
    },
    /// `if` condition `then` one `else` other; only one is evaluated.
    If(Box<Expr>, Box<Expr>, Box<Expr>),

    /// A structure or vector of these elements.
    Row(Vec<Expr>),
    /// A list of these elements; a fault if there are more than `capacity`.
    List(Vec<Expr>, u32),
    /// A set of these elements, which need not be distinct or in order.
    Set(Vec<Expr>, u32),
    /// Element number `index` (from 0) of a sequence; a fault of this kind if there is none. A front end
    /// subtracts the first value of the index type, and combines several indices into one number.
    Item {
        /// The structure, vector or list.
        of: Box<Expr>,
        /// Which element, from 0.
        index: Box<Expr>,
        /// The fault if there is none.
        fault: FaultKind,
    },
    /// The same sequence with element number `index` (from 0) replaced.
    Replace {
        /// The structure, vector or list.
        of: Box<Expr>,
        /// Which element, from 0.
        index: Box<Expr>,
        /// The new element.
        value: Box<Expr>,
        /// The fault if there is no such element.
        fault: FaultKind,
    },
    /// The elements `from` to `to` of a list (from 0, both included); empty if `to` is less
    /// than `from`.
    Slice {
        /// The list.
        of: Box<Expr>,
        /// The first element, from 0.
        from: Box<Expr>,
        /// The last element, from 0.
        to: Box<Expr>,
    },
    /// Concatenation of lists; a fault ([`FaultKind::ListOverflow`]) above `capacity`. A single element is
    /// written as a [`ExprKind::List`] of one.
    Concat(Box<Expr>, Box<Expr>, u32),
    /// Union of sets; a fault ([`FaultKind::ContainerOverflow`]) above `capacity`.
    Union(Box<Expr>, Box<Expr>, u32),
    /// Intersection of sets.
    Intersect(Box<Expr>, Box<Expr>),
    /// Difference of sets.
    Difference(Box<Expr>, Box<Expr>),
    /// Whether the first is an element of the second, a list or a set.
    In(Box<Expr>, Box<Expr>),
    /// Whether the first set is a subset of the second; with `true` a proper one.
    Subset(Box<Expr>, Box<Expr>, bool),
    /// The number of elements of a list or set.
    Size(Box<Expr>),
    /// The first or last element of a list, or all but one; faults on an empty list.
    End(End, Box<Expr>),

    /// The result of a function.
    Call(FunctionId, Vec<Expr>),
    /// A quantifier or a sum over one or more iterations.
    Fold {
        /// How the values are combined.
        fold: Fold,
        /// Nested, the first outermost. A domain may use the variables before it.
        iterations: Vec<Iteration>,
        /// The combinations that count; `None` for all.
        filter: Option<Box<Expr>>,
        /// The value of one combination. [`Fold::Exists`] and [`Fold::Count`] have none.
        body: Option<Box<Expr>>,
    },
    /// A value that the code of the front end computes.
    Host {
        /// The code.
        host: Host,
        /// Which of its expressions.
        number: u32,
        /// What it is given.
        arguments: Vec<Expr>,
        /// Whether it always has a value.
        total: bool,
    },
    /// The number of distinct tokens in a place.
    Distinct(PlaceId),
    /// The number of tokens in a place, with multiplicity.
    Total(PlaceId),
}

/// Code of a front end whose language has more than this one: higher-order functions, exceptions. It has no side
/// effects, and the same arguments give the same result.
pub trait HostCode: std::fmt::Debug + Send + Sync {
    /// The value of expression `number`; the error is the number of a message. Bounded in time, depth and memory.
    fn eval(&self, number: u32, arguments: &[Value]) -> Result<Value, u32>;
    /// A message, as a sentence without a full stop.
    fn message(&self, fault: u32) -> String;
    /// Prints a value of this type.
    fn print(&self, of: TypeId, value: &Value, out: &mut String);
}

/// Shared [`HostCode`]. Two are equal if they are one.
#[derive(Clone, Debug)]
pub struct Host(pub Shared<dyn HostCode>);

impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }
}

/// Operations on one integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// Negation of a number.
    Neg,
    /// Negation of a truth value.
    Not,
}

/// Operations on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, truncated toward zero; division by zero is a fault.
    Div,
    /// Remainder, with the sign of the dividend; division by zero is a fault.
    Rem,
    /// Conjunction; the second operand is evaluated only if the first is true.
    And,
    /// Disjunction; the second operand is evaluated only if the first is false.
    Or,
    /// Equal, of values of any type.
    Eq,
    /// Not equal, of values of any type.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// The part of a list that [`ExprKind::End`] selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first element.
    First,
    /// The last element.
    Last,
    /// All but the last.
    Prefix,
    /// All but the first.
    Suffix,
    /// The number of the last element, from 0; a fault on an empty list.
    LastIndex,
}

/// How [`ExprKind::Fold`] combines the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Universal quantifier over the body.
    Forall,
    /// Whether any combination counts.
    Exists,
    /// The number of combinations that count.
    Count,
    /// The number of tokens with multiplicity. Exactly one iteration, over a place.
    Mult,
    /// The least value, or this one if there are none.
    Min(i32),
    /// The greatest value, or this one if there are none.
    Max(i32),
    /// The sum of all values; 0 if there are none.
    Sum,
    /// The product of all values; 1 if there are none.
    Product,
}

/// A variable that takes the values of a domain in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Iteration {
    /// The variable.
    pub variable: Var,
    /// Its values.
    pub domain: Domain,
}

/// The domain of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// Integers from the first to the second, both included; empty if the first is larger. A discrete type is
    /// written with constants.
    Range(Expr, Expr),
    /// The elements of a list or set, in order.
    Elements(Expr),
    /// The distinct tokens in a place; the variable may be used in [`ExprKind::Component`] only. Only in
    /// propositions, priorities and guards.
    Place(PlaceId),
}

/// A statement of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum Stat {
    /// Assigns to a variable. Assignment to a part is written with [`ExprKind::Replace`].
    Assign(Var, Expr),
    /// One or the other.
    If(Expr, Vec<Stat>, Vec<Stat>),
    /// The statements of the matching value; the last list if no value matches.
    Case(Expr, Vec<(i32, Vec<Stat>)>, Vec<Stat>),
    /// As long as the condition is true.
    While(Expr, Vec<Stat>),
    /// Once for each combination of values.
    For(Vec<Iteration>, Vec<Stat>),
    /// The function's result.
    Return(Expr),
    /// A fault ([`FaultKind::Assertion`]) if it is false.
    Assert(Expr),
}

/// A function without side effects.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The number of arguments; they are its variables 0, 1, 2 ….
    pub arguments: u32,
    /// The number of variables of its frame, including arguments and iterations.
    pub frame: u32,
    /// Its body. Reaching the end is a fault ([`FaultKind::NoReturn`]).
    pub body: Vec<Stat>,
    /// Where it is defined.
    pub span: Span,
}

/// The faults of a running net.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// A value is outside the range of the required type.
    OutOfRange,
    /// A value cannot be cast.
    Cast,
    /// Division by zero.
    DivisionByZero,
    /// An index outside a vector or list.
    Index,
    /// A slice of a list begins or ends outside it.
    Slice,
    /// A list exceeds its capacity.
    ListOverflow,
    /// A set exceeds its capacity, or a literal of a list or set is too large.
    ContainerOverflow,
    /// The first or last element, or all but one, of an empty list.
    EmptyList,
    /// A function reached its end without a result.
    NoReturn,
    /// An assertion is false.
    Assertion,
    /// Calls are nested too deeply.
    Recursion,
    /// An evaluation takes too many steps.
    Endless,
    /// An evaluation takes more memory than the limit leaves.
    Memory,
    /// There are more values, or combinations of values, than are tried. It says nothing about the model: see
    /// [`Batch::cut_off`](deltamark_core::Batch::cut_off).
    Untried,
    /// A place holds more copies of a token than its capacity allows.
    Capacity,
    /// A label subtracts more of a token than it adds: `x - y` with unexpected values.
    NegativeCount,
    /// The code of the front end has no value; it knows why.
    Host(u32),
}

/// One term of a label: a token with a factor, perhaps for several values and under a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The term is repeated for each combination of these values (over ranges without variables). The
    /// condition and the token may use the iteration variables.
    pub iterations: Vec<Iteration>,
    /// Whether the term counts.
    pub condition: Option<Expr>,
    /// The multiplicity of the token. Negative if the term is subtracted: the sum of all terms of a label
    /// must not be negative for any token. 0 in an input requires the token to be present.
    pub factor: i64,
    /// The components, one for each type of the place's domain.
    pub token: Vec<Expr>,
    /// Whether the one component is a list of tokens, each with this factor. Such a term binds nothing.
    pub spread: bool,
    /// Its position in the text.
    pub span: Span,
}

/// The label of an arc, or an initial marking: a sum of terms.
pub type Label = Vec<Term>;

/// A place.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its name, unique among places.
    pub name: String,
    /// The types of its tokens' components; none for `epsilon` and `dot`.
    pub domain: Vec<TypeId>,
    /// The initial marking; its expressions use no variables but those of its iterations.
    pub initial: Label,
    /// The number of variables that the iterations of the initial marking use.
    pub frame: u32,
    /// The maximum multiplicity of each distinct token; more is a fault.
    pub capacity: Option<u32>,
    /// Where it is defined.
    pub span: Span,
}

/// An arc, seen from its transition.
#[derive(Clone, Debug, PartialEq)]
pub struct Arc {
    /// The place.
    pub place: PlaceId,
    /// The tokens.
    pub label: Label,
}

/// A variable of a transition.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub of: TypeId,
    /// The source of its value.
    pub role: Role,
}

/// The source of the value of a transition's variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Role {
    /// Bound by a token: the variable alone is a component of an unconditional term, with positive factor and
    /// without iterations, of an input. Languages that allow variables bound by no input (PNML) use this role
    /// too: such a variable takes every value of its type, which must be discrete. Part of the binding.
    Bound,
    /// Every value of a domain, which may use other variables. Part of the binding.
    Pick(Domain),
    /// Computed from other variables; not part of the binding.
    Let(Expr),
    /// Bound by some token that an inhibitor matches: existential, not part of the binding, and visible in
    /// inhibitors only.
    Inhibitor,
}

/// A transition.
///
/// A binding gives a value to every variable. It is enabled if its input tokens are present (for each place
/// the sum of the label's terms), the guard is true and the inhibitors do not all match together; among all
/// enabled bindings of all transitions only those of the highest priority may fire. Firing removes the inputs
/// and then adds the outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// Its name, unique among transitions.
    pub name: String,
    /// Its variables; they are the first of its frame.
    pub variables: Vec<Variable>,
    /// The number of variables of its frame, including those of iterations.
    pub frame: u32,
    /// Input arcs; several arcs from one place add up.
    pub inputs: Vec<Arc>,
    /// Output arcs; several arcs to one place add up.
    pub outputs: Vec<Arc>,
    /// Inhibitor arcs: they disable the transition if every term of every arc matches. A term with factor k
    /// matches a token with multiplicity at least k. A term whose condition is false does not count, and if
    /// none counts nothing is disabled.
    pub inhibitors: Vec<Arc>,
    /// The guard.
    pub guard: Option<Expr>,
    /// The priority; 0 if absent. May read the binding and the marking.
    pub priority: Option<Expr>,
    /// The description shown in traces: pieces of text and values. If absent, the transition's name and its
    /// binding.
    pub description: Option<Vec<Piece>>,
    /// Where it is defined.
    pub span: Span,
}

/// A piece of a description.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// A value, printed according to its type.
    Value(Expr, TypeId),
}

/// A named predicate on markings.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposition {
    /// Its name.
    pub name: String,
    /// The predicate.
    pub holds: Expr,
    /// The number of variables of its frame.
    pub frame: u32,
}

/// A state predicate of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// No transition is enabled.
    Deadlock,
    /// The proposition of this number holds.
    Proposition(u32),
}

/// A property given with the model: no reachable state is rejected without being accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// The states rejected.
    pub reject: Predicate,
    /// Exceptions: states accepted even if rejected.
    pub accept: Vec<Predicate>,
}

/// A coloured net.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Net {
    /// Its name.
    pub name: String,
    /// Its types.
    pub types: Vec<Type>,
    /// Its functions.
    pub functions: Vec<Function>,
    /// Its places.
    pub places: Vec<Place>,
    /// Its transitions.
    pub transitions: Vec<Transition>,
    /// Its propositions.
    pub propositions: Vec<Proposition>,
    /// Properties given with the net.
    pub properties: Vec<Property>,
    /// Names of temporal properties given with the net, which cannot be checked yet.
    pub temporal: Vec<String>,
    /// The code of the front end, which also prints values.
    pub host: Option<Host>,
}

/// A failed evaluation: its kind and position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// Its position in the text.
    pub span: Span,
}

impl Value {
    /// The integer, if it is one.
    pub fn int(&self) -> Option<i32> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Seq(_) => None,
        }
    }
}

impl Expr {
    /// An expression with its span.
    pub fn new(kind: ExprKind, span: Span) -> Self {
        Expr { kind, span }
    }

    /// An integer constant.
    pub fn int(number: i32, span: Span) -> Self {
        Expr::new(ExprKind::Const(Value::Int(number)), span)
    }
}

impl Net {
    /// The properties given with the net, as invariants in the property language: name and expression.
    pub fn property_texts(&self) -> Vec<(String, String)> {
        let predicate = |predicate: &Predicate| match predicate {
            Predicate::Deadlock => "deadlock".to_string(),
            Predicate::Proposition(number) => {
                let name = self.propositions[*number as usize].name.as_str();
                // A place of the same name would take precedence.
                let is_place = self.places.iter().any(|place| place.name == name);
                match name {
                    _ if is_place => format!("\"proposition {name}\""),
                    "true" | "false" | "deadlock" | "implies" | "iff" | "fireable" | "tokens" => format!("\"{name}\""),
                    _ => name.to_string(),
                }
            }
        };
        let text = |property: &Property| {
            let accepted =
                property.accept.iter().map(|accept| format!(" or {}", predicate(accept))).collect::<String>();
            (property.name.clone(), format!("not {}{accepted}", predicate(&property.reject)))
        };
        self.properties.iter().map(text).collect()
    }

    /// Whether a step may fault, conservatively.
    pub fn can_fault(&self) -> bool {
        let faults = |transition: &'_ Transition, expression: &Expr| {
            crate::expressions::faults::Faults { types: &self.types, variables: &transition.variables }
                .possible(expression)
        };
        let arcs = |transition: &Transition| {
            let arcs = transition.inputs.iter().chain(&transition.outputs).chain(&transition.inhibitors);
            arcs.flat_map(|arc| arc.label.iter()).any(|term| {
                let mut parts = term.condition.iter().chain(&term.token);
                term.factor < 0 || parts.any(|part| faults(transition, part))
            })
        };
        self.places.iter().any(|place| place.capacity.is_some())
            || self.transitions.iter().any(|transition| {
                let computed =
                    transition.variables.iter().any(|variable| !matches!(variable.role, Role::Bound | Role::Inhibitor));
                computed
                    || arcs(transition)
                    || transition.guard.iter().chain(&transition.priority).any(|part| faults(transition, part))
            })
    }

    /// Checks that the net is well-formed; the error is a sentence.
    pub fn validate(&self) -> Result<(), String> {
        if self.places.is_empty() {
            return Err("the net has no places".into());
        }
        for place in &self.places {
            let what = format!("place `{}`", place.name);
            place.domain.iter().try_for_each(|of| self.knows_type(*of, &what))?;
            self.check_label(&place.initial, place.domain.len(), place.frame, &what)?;
        }
        for transition in &self.transitions {
            let what = format!("transition `{}`", transition.name);
            if transition.variables.len() > transition.frame as usize {
                return Err(format!("the frame of {what} has no room for its variables"));
            }
            for variable in &transition.variables {
                self.knows_type(variable.of, &what)?;
                match &variable.role {
                    Role::Pick(domain) => {
                        let mut wrong = None;
                        domain.visit(&mut |part| {
                            wrong = wrong.take().or(self.check_part(part, transition.frame, &what).err())
                        });
                        wrong.map_or(Ok(()), Err)?;
                    }
                    Role::Let(value) => self.check(value, transition.frame, &what)?,
                    Role::Bound | Role::Inhibitor => {}
                }
            }
            for arc in transition.inputs.iter().chain(&transition.outputs).chain(&transition.inhibitors) {
                let Some(place) = self.places.get(arc.place.0 as usize) else {
                    return Err(format!("an arc of {what} leads nowhere"));
                };
                self.check_label(&arc.label, place.domain.len(), transition.frame, &what)?;
            }
            let guarded = transition.guard.iter().chain(&transition.priority);
            guarded.into_iter().try_for_each(|expression| self.check(expression, transition.frame, &what))?;
        }
        for proposition in &self.propositions {
            self.check(&proposition.holds, proposition.frame, &format!("proposition `{}`", proposition.name))?;
        }
        Ok(())
    }

    fn knows_type(&self, of: TypeId, what: &str) -> Result<(), String> {
        if (of.0 as usize) < self.types.len() { Ok(()) } else { Err(format!("{what} has a type that is not there")) }
    }

    fn check_label(&self, label: &Label, components: usize, frame: u32, what: &str) -> Result<(), String> {
        for term in label {
            if term.spread && components != 1 {
                return Err(format!("a label at {what} is a list, and the place has {components} components"));
            }
            if term.token.len() != components {
                return Err(format!("a label at {what} has {} components, not {components}", term.token.len()));
            }
            if term.factor.unsigned_abs() > i32::MAX as u64 {
                return Err(format!("a label at {what} has the factor {}", term.factor));
            }
            if term.iterations.iter().any(|iteration| iteration.variable.0 >= frame) {
                return Err(format!("{what} uses a variable beyond its frame"));
            }
            for expression in term.condition.iter().chain(&term.token) {
                self.check(expression, frame, what)?;
            }
        }
        Ok(())
    }

    fn check(&self, expression: &Expr, frame: u32, what: &str) -> Result<(), String> {
        let mut wrong = None;
        expression.visit(&mut |part| wrong = wrong.take().or(self.check_part(part, frame, what).err()));
        wrong.map_or(Ok(()), Err)
    }

    fn check_part(&self, part: &Expr, frame: u32, what: &str) -> Result<(), String> {
        let place = |place: PlaceId| (place.0 as usize) < self.places.len();
        let fine = match &part.kind {
            ExprKind::Var(var) => var.0 < frame,
            ExprKind::Component { token, place: of, index } => {
                token.0 < frame && self.places.get(of.0 as usize).is_some_and(|of| (*index as usize) < of.domain.len())
            }
            ExprKind::Distinct(of) | ExprKind::Total(of) => place(*of),
            ExprKind::Call(function, arguments) => {
                let function = self.functions.get(function.0 as usize);
                function.is_some_and(|function| function.arguments as usize == arguments.len())
            }
            ExprKind::Fold { iterations, .. } => iterations.iter().all(|iteration| {
                let fine = |domain: &Domain| if let Domain::Place(of) = domain { place(*of) } else { true };
                iteration.variable.0 < frame && fine(&iteration.domain)
            }),
            _ => true,
        };
        if fine { Ok(()) } else { Err(format!("{what} uses something that is not there")) }
    }
}

impl FaultKind {
    /// Whether it is a bound of the evaluation, not a fault of the model: what follows is unknown.
    pub fn is_limit(self) -> bool {
        matches!(self, FaultKind::Recursion | FaultKind::Endless | FaultKind::Untried | FaultKind::Memory)
    }

    /// The message, as a sentence without a full stop.
    pub fn message(self) -> &'static str {
        match self {
            FaultKind::OutOfRange => "expression out of range",
            FaultKind::Cast => "cast failed",
            FaultKind::DivisionByZero => "division by zero",
            FaultKind::Index => "invalid index",
            FaultKind::Slice => "invalid first or last index of a slice",
            FaultKind::ListOverflow => "list overflow",
            FaultKind::ContainerOverflow => "container capacity exceeded",
            FaultKind::EmptyList => "an element of an empty list is asked for",
            FaultKind::NoReturn => "no value returned",
            FaultKind::Assertion => "assertion failed",
            FaultKind::Recursion => "calls are nested too deeply",
            FaultKind::Endless => "the evaluation takes more than 50 million steps",
            FaultKind::Memory => "the evaluation takes more memory than the limit leaves",
            FaultKind::Untried => "there are more values to pick from than are tried",
            FaultKind::Capacity => "capacity exceeded",
            FaultKind::Host(_) => "an expression has no value",
            FaultKind::NegativeCount => "a label takes away more tokens than it has",
        }
    }
}

impl Expr {
    /// Calls `see` for this expression and all its subexpressions.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        see(self);
        match &self.kind {
            ExprKind::Const(_)
            | ExprKind::Var(_)
            | ExprKind::Component { .. }
            | ExprKind::Distinct(_)
            | ExprKind::Total(_) => {}
            ExprKind::Unary(_, of)
            | ExprKind::Check { of, .. }
            | ExprKind::Wrap(of, _)
            | ExprKind::Cycle { of, .. }
            | ExprKind::Size(of)
            | ExprKind::End(_, of) => of.visit(see),
            ExprKind::Binary(_, one, other)
            | ExprKind::Concat(one, other, _)
            | ExprKind::Union(one, other, _)
            | ExprKind::Intersect(one, other)
            | ExprKind::Difference(one, other)
            | ExprKind::In(one, other)
            | ExprKind::Subset(one, other, _)
            | ExprKind::Item { of: one, index: other, .. } => {
                one.visit(see);
                other.visit(see);
            }
            ExprKind::If(one, two, three)
            | ExprKind::Replace { of: one, index: two, value: three, .. }
            | ExprKind::Slice { of: one, from: two, to: three } => {
                one.visit(see);
                two.visit(see);
                three.visit(see);
            }
            ExprKind::Row(several)
            | ExprKind::List(several, _)
            | ExprKind::Set(several, _)
            | ExprKind::Host { arguments: several, .. }
            | ExprKind::Call(_, several) => {
                several.iter().for_each(|one| one.visit(see));
            }
            ExprKind::Fold { iterations, filter, body, .. } => {
                iterations.iter().for_each(|iteration| iteration.domain.visit(see));
                filter.iter().chain(body).for_each(|one| one.visit(see));
            }
        }
    }
}

impl Domain {
    /// Calls `see` for all its expressions and their subexpressions.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        match self {
            Domain::Range(low, high) => {
                low.visit(see);
                high.visit(see);
            }
            Domain::Elements(of) => of.visit(see),
            Domain::Place(_) => {}
        }
    }
}
