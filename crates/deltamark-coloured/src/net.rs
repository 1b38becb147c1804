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

mod expression;
mod fault;

pub use expression::{Binary, Domain, End, Expr, ExprKind, Fold, Host, HostCode, Iteration, OverMarkings, Unary};
pub use fault::{Fault, FaultKind};

use deltamark_core::Span;
use std::sync::Arc as Shared;

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
/// and then adds the outputs; in places that it resets it removes all that is left before it adds.
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
    /// Places emptied by firing, before outputs are added; whether it is enabled does not depend on them.
    pub resets: Vec<PlaceId>,
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
    /// The ids of its places in the file, where the format has ids.
    pub place_ids: Vec<String>,
    /// The same of its transitions.
    pub transition_ids: Vec<String>,
    /// Its propositions.
    pub propositions: Vec<Proposition>,
    /// Properties given with the net.
    pub properties: Vec<Property>,
    /// Temporal properties given with the net: the name of each, and its formula of LTL in the property language.
    pub temporal: Vec<(String, String)>,
    /// The code of the front end, which also prints values.
    pub host: Option<Host>,
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

impl Net {
    /// A predicate in the property language.
    pub(crate) fn predicate_text(&self, predicate: &Predicate) -> String {
        match predicate {
            Predicate::Deadlock => "deadlock".to_string(),
            Predicate::Proposition(number) => {
                let name = self.propositions[*number as usize].name.as_str();
                // A place of the same name would take precedence.
                let is_place = self.places.iter().any(|place| place.name == name);
                // A single letter may be a temporal operator.
                match name {
                    _ if is_place => format!("\"proposition {name}\""),
                    "true" | "false" | "deadlock" | "implies" | "iff" | "fireable" | "tokens" | "initial" => {
                        format!("\"{name}\"")
                    }
                    _ if name.bytes().all(|letter| b"AEFGXURWM".contains(&letter)) => format!("\"{name}\""),
                    _ => name.to_string(),
                }
            }
        }
    }

    /// The properties given with the net, as invariants in the property language: name and expression.
    pub fn property_texts(&self) -> Vec<(String, String)> {
        let text = |property: &Property| {
            let accepted = property.accept.iter();
            let accepted = accepted.map(|accept| format!(" or {}", self.predicate_text(accept))).collect::<String>();
            (property.name.clone(), format!("not {}{accepted}", self.predicate_text(&property.reject)))
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

    /// Whether each place has at most `most` different tokens. A type that is declared before its parts has too many.
    pub fn has_few_tokens(&self, most: u64) -> bool {
        let mut values: Vec<u64> = Vec::with_capacity(self.types.len());
        for ty in &self.types {
            let of = |part: &TypeId| values.get(part.0 as usize).copied().unwrap_or(u64::MAX);
            let count = match &ty.shape {
                ValueShape::Discrete { low, high, .. } => (i64::from(*high) - i64::from(*low) + 1) as u64,
                ValueShape::Struct { fields } => {
                    fields.iter().fold(1, |count: u64, (_, part)| count.saturating_mul(of(part)))
                }
                ValueShape::Union { alternatives } => {
                    let values = alternatives.iter().map(|part| part.as_ref().map_or(1, of));
                    values.fold(0, |count: u64, more| count.saturating_add(more))
                }
                ValueShape::Vector { .. } | ValueShape::List { .. } | ValueShape::Set { .. } => u64::MAX,
            };
            values.push(count);
        }
        self.places.iter().all(|place| {
            let of = |part: &TypeId| values.get(part.0 as usize).copied().unwrap_or(u64::MAX);
            place.domain.iter().fold(1, |count: u64, part| count.saturating_mul(of(part))) <= most
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
            if transition.resets.iter().any(|place| place.0 as usize >= self.places.len()) {
                return Err(format!("{what} resets a place that is not there"));
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
