//! Which types an expression can have.
//!
//! In: an expression of the syntax tree and the names in scope. Out: the root types that it can have,
//! regardless of context. What stays true: nothing is reported here; if a name is unknown the answer is
//! [`Roots::Any`], and lowering reports it.
//!
//! A number, and every count, has every numeric type; a name may belong to several enumerations; `empty`, `|
//! … |`, `[ … ]` and `{ … }` have every type that they fit. The context decides, and if it does not, numbers
//! are of type `int`.

use super::check::{Checker, LocalName, Sight, What};
use super::syntax::{Binary, Expr, Iteration, Name, Node, Quantifier, Unary};
use super::types::{BOOL, Class, INT, Types};
use crate::net::{PlaceId, TypeId, Var};

/// The root types that an expression can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Unknown: a part of it is wrong.
    Any,
    /// Every numeric type.
    Numeric,
    /// These.
    Only(Vec<TypeId>),
}

impl Roots {
    /// The intersection.
    pub fn and(self, other: Roots, types: &Types) -> Roots {
        match (self, other) {
            (Roots::Any, other) | (other, Roots::Any) => other,
            (Roots::Numeric, other) | (other, Roots::Numeric) => other.numeric(types),
            (Roots::Only(mut one), Roots::Only(other)) => {
                one.retain(|root| other.contains(root));
                Roots::Only(one)
            }
        }
    }

    /// Only those that `is` accepts. For numbers of any type it is applied to `int`.
    pub fn only(self, is: impl Fn(TypeId) -> bool) -> Roots {
        match self {
            Roots::Only(mut list) => {
                list.retain(|&root| is(root));
                Roots::Only(list)
            }
            Roots::Numeric if !is(INT) => Roots::Only(Vec::new()),
            other => other,
        }
    }

    /// Only numeric ones.
    pub fn numeric(self, types: &Types) -> Roots {
        self.only(|root| types.is_numeric(root))
    }

    /// Whether this root is among them.
    pub fn has(&self, root: TypeId, types: &Types) -> bool {
        match self {
            Roots::Any => true,
            Roots::Numeric => types.is_numeric(root),
            Roots::Only(list) => list.contains(&root),
        }
    }

    /// The type if the context leaves it open: the only one, or `int`.
    pub fn one(&self) -> Option<TypeId> {
        match self {
            Roots::Numeric => Some(INT),
            Roots::Only(list) => match list[..] {
                [one] => Some(one),
                _ if list.contains(&INT) => Some(INT),
                _ => None,
            },
            Roots::Any => None,
        }
    }

    pub fn is_none(&self) -> bool {
        matches!(self, Roots::Only(list) if list.is_empty())
    }

    fn map(self, types: &Types, to: impl Fn(TypeId) -> Option<TypeId>) -> Roots {
        match self {
            Roots::Only(list) => {
                let mut mapped: Vec<TypeId> = list.into_iter().filter_map(to).map(|of| types.root(of)).collect();
                mapped.sort_unstable();
                mapped.dedup();
                Roots::Only(mapped)
            }
            Roots::Numeric => Roots::Only(Vec::new()),
            Roots::Any => Roots::Any,
        }
    }
}

/// The domain of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The values of a discrete type.
    Type(TypeId),
    /// The tokens of a place.
    Place(PlaceId),
    /// The elements of a list or set of this root type.
    Container(TypeId),
}

impl<'t> Checker<'t, '_> {
    /// The root types that an expression can have.
    pub fn roots(&mut self, expr: &Expr<'t>) -> Roots {
        let only = |root: TypeId| Roots::Only(vec![root]);
        match &expr.node {
            Node::Number(_) => Roots::Numeric,
            Node::Name(name) => self.roots_of_name(name),
            Node::Call(name, _) => {
                let of = self.functions.get(name.text).map(|signature| signature.result);
                match of.or_else(|| self.type_names.get(name.text).copied()) {
                    Some(of) => only(self.types.root(of)),
                    None => Roots::Any,
                }
            }
            Node::Binary(operator, left, right) => self.roots_of_binary(*operator, left, right),
            Node::Unary(Unary::Not, _) => only(BOOL),
            Node::Unary(Unary::Minus | Unary::Plus, of) => self.roots(of).numeric(&self.types),
            Node::Unary(Unary::Succ | Unary::Pred, of) => {
                let roots = self.roots(of);
                roots.only(|root| self.types.is_discrete(root))
            }
            Node::Conditional(parts) => {
                let then = self.roots(&parts[1]);
                let otherwise = self.roots(&parts[2]);
                then.and(otherwise, &self.types)
            }
            Node::Struct(parts) => self.fitting(parts, |class, count| match class {
                Class::Struct { fields } if fields.len() == count => Some(fields.iter().map(|field| field.1).collect()),
                _ => None,
            }),
            Node::Vector(parts) => self.fitting(parts, |class, count| match class {
                Class::Vector { element, size, .. } if count <= *size => Some(vec![*element; count]),
                _ => None,
            }),
            Node::Container(parts) => self.fitting(parts, |class, count| match class {
                Class::List { element, .. } | Class::Set { element, .. } => Some(vec![*element; count]),
                _ => None,
            }),
            Node::Empty => self.fitting(&[], |class, _| is_container(class).then(Vec::new)),
            Node::Field(of, field) => {
                let roots = self.roots(of);
                roots.map(&self.types, |root| field_of(self.types.class(root), field.text).map(|(_, of)| of))
            }
            Node::FieldUpdate(of, field, _) => {
                let roots = self.roots(of);
                roots.only(|root| field_of(self.types.class(root), field.text).is_some())
            }
            Node::Index(of, index) => {
                let roots = self.roots(of);
                roots.map(&self.types, |root| indexed(self.types.class(root), index.len()))
            }
            Node::IndexUpdate(of, index, _) => {
                let roots = self.roots(of);
                roots.only(|root| indexed(self.types.class(root), index.len()).is_some())
            }
            Node::Slice(parts) => {
                let roots = self.roots(&parts[0]);
                roots.only(|root| matches!(self.types.class(root), Class::List { .. }))
            }
            Node::Component(name, number) => match self.component_type(name.text, *number) {
                Some(of) => only(self.types.root(of)),
                None => Roots::Any,
            },
            Node::Attribute(of, attribute) => self.roots_of_attribute(of, *attribute),
            Node::Quantified(quantifier, iterations, _, body) => match (quantifier, body) {
                (Quantifier::Forall | Quantifier::Exists, _) => only(BOOL),
                (Quantifier::Card | Quantifier::Mult, _) | (_, None) => Roots::Numeric,
                (_, Some(body)) => {
                    let depth = self.locals.len();
                    for iteration in iterations {
                        self.suppose(iteration);
                    }
                    let roots = self.roots(body).numeric(&self.types);
                    self.locals.truncate(depth);
                    roots
                }
            },
        }
    }

    fn roots_of_name(&self, name: &str) -> Roots {
        if let Some(local) = self.local(name) {
            return match local.what {
                What::Token(..) => Roots::Any,
                _ => Roots::Only(vec![self.types.root(local.of)]),
            };
        }
        if let Some(constant) = self.constants.get(name) {
            return Roots::Only(vec![self.types.root(constant.of)]);
        }
        match self.enumerated.get(name) {
            Some(all) => Roots::Only(all.iter().map(|&(root, _)| root).collect()),
            None => Roots::Any,
        }
    }

    fn roots_of_binary(&mut self, operator: Binary, left: &Expr<'t>, right: &Expr<'t>) -> Roots {
        match operator {
            Binary::In
            | Binary::Equal
            | Binary::Differ
            | Binary::Less
            | Binary::AtMost
            | Binary::More
            | Binary::AtLeast => return Roots::Only(vec![BOOL]),
            _ => {}
        }
        let (left, right) = (self.roots(left), self.roots(right));
        let both = left.clone().and(right.clone(), &self.types);
        match operator {
            Binary::Or | Binary::And => {
                if left == Roots::Any && right == Roots::Any {
                    return Roots::Any;
                }
                let mut found = self.set_roots(&left, &right, true);
                if both.has(BOOL, &self.types) {
                    found.push(BOOL);
                }
                Roots::Only(found)
            }
            Binary::Subtract => {
                let sets = self.set_roots(&left, &right, false);
                match both.numeric(&self.types) {
                    // An unknown name is more likely a number than a set.
                    Roots::Any | Roots::Numeric if !sets.is_empty() && left != Roots::Numeric => Roots::Only(sets),
                    Roots::Only(mut numeric) => {
                        numeric.extend(sets);
                        Roots::Only(numeric)
                    }
                    other => other,
                }
            }
            Binary::Concatenate => {
                let lists: Vec<TypeId> = self
                    .types
                    .roots()
                    .filter(|&root| {
                        let Class::List { element, .. } = self.types.class(root) else { return false };
                        let element = self.types.root(*element);
                        let fits = |roots: &Roots| roots.has(root, &self.types) || roots.has(element, &self.types);
                        fits(&left) && fits(&right)
                    })
                    .collect();
                // A list on one side determines which of several list types it is.
                let named: Vec<TypeId> = lists
                    .iter()
                    .copied()
                    .filter(|root| {
                        let says = |roots: &Roots| matches!(roots, Roots::Only(list) if list.contains(root));
                        says(&left) || says(&right)
                    })
                    .collect();
                Roots::Only(if named.is_empty() { lists } else { named })
            }
            _ => both.numeric(&self.types),
        }
    }

    /// The set types of which one operand is a value and the other a value or an element; the left one may be
    /// the element only if `either`.
    fn set_roots(&self, left: &Roots, right: &Roots, either: bool) -> Vec<TypeId> {
        let sets = self.types.roots().filter(|&root| {
            let Class::Set { element, .. } = self.types.class(root) else { return false };
            let element = self.types.root(*element);
            let is = |roots: &Roots| matches!(roots, Roots::Only(list) if list.contains(&root));
            let may = |roots: &Roots| roots.has(root, &self.types) || roots.has(element, &self.types);
            (is(left) && may(right)) || (is(right) && if either { may(left) } else { left.has(root, &self.types) })
        });
        sets.collect()
    }

    /// The roots whose parts, given by `parts_of`, match those of a literal.
    fn fitting(&mut self, parts: &[Expr<'t>], parts_of: impl Fn(&Class, usize) -> Option<Vec<TypeId>>) -> Roots {
        let candidates: Vec<(TypeId, Vec<TypeId>)> = self
            .types
            .roots()
            .filter_map(|root| Some((root, parts_of(self.types.class(root), parts.len())?)))
            .collect();
        if candidates.len() < 2 {
            return Roots::Only(candidates.into_iter().map(|(root, _)| root).collect());
        }
        let roots: Vec<Roots> = parts.iter().map(|part| self.roots(part)).collect();
        let fits = |wanted: &[TypeId]| {
            wanted.iter().zip(&roots).all(|(&of, roots)| roots.has(self.types.root(of), &self.types))
        };
        Roots::Only(candidates.iter().filter(|(_, wanted)| fits(wanted)).map(|&(root, _)| root).collect())
    }

    /// The type of a component (from 1) of a token in scope.
    pub fn component_type(&self, name: &str, number: u32) -> Option<TypeId> {
        let What::Token(_, place) = self.local(name)?.what else { return None };
        let index = (number as usize).checked_sub(1)?;
        self.net.places[place.0 as usize].domain.get(index).copied()
    }

    fn roots_of_attribute(&mut self, of: &Expr<'t>, attribute: Name<'t>) -> Roots {
        if let Node::Name(name) = of.node {
            if matches!(attribute.text, "card" | "mult") && self.places.contains_key(name) {
                return Roots::Numeric;
            }
            if let Some(&id) = self.type_names.get(name) {
                match attribute.text {
                    "first" | "last" => return Roots::Only(vec![self.types.root(id)]),
                    "card" => return Roots::Numeric,
                    _ => {}
                }
            }
        }
        let list = |class: &Class| match class {
            Class::List { index, element, .. } => Some((*index, *element)),
            _ => None,
        };
        match attribute.text {
            "size" | "space" | "capacity" => Roots::Numeric,
            "full" | "empty" => Roots::Only(vec![BOOL]),
            "first" | "last" => {
                let roots = self.roots(of);
                roots.map(&self.types, |root| list(self.types.class(root)).map(|(_, element)| element))
            }
            "prefix" | "suffix" => {
                let roots = self.roots(of);
                roots.only(|root| list(self.types.class(root)).is_some())
            }
            "first_index" | "last_index" => {
                let roots = self.roots(of);
                roots.map(&self.types, |root| list(self.types.class(root)).map(|(index, _)| index))
            }
            _ => Roots::Any,
        }
    }

    /// The domain of an iteration; `None` if that is unclear.
    pub fn over(&mut self, iteration: &Iteration<'t>) -> Option<Over> {
        if let Node::Name(name) = iteration.domain.node {
            if let Some(&id) = self.type_names.get(name) {
                return Some(Over::Type(id));
            }
            if let Some(&place) = self.places.get(name).filter(|_| self.sight == Sight::Marking) {
                return Some(Over::Place(place));
            }
        }
        let roots = self.roots(&iteration.domain);
        let containers = roots.only(|root| is_container(self.types.class(root)));
        containers.one().filter(|&root| is_container(self.types.class(root))).map(Over::Container)
    }

    /// Puts the variable of an iteration in scope, only for its type.
    fn suppose(&mut self, iteration: &Iteration<'t>) {
        let (of, what) = match self.over(iteration) {
            Some(Over::Type(id)) => (id, What::Known(0)),
            Some(Over::Place(place)) => (INT, What::Token(Var(0), place)),
            Some(Over::Container(root)) => (self.element_of(root), What::Known(0)),
            None => return,
        };
        self.locals.push(LocalName { name: iteration.name.text, of, what });
    }

    /// The type of the elements of a list or set.
    pub fn element_of(&self, container: TypeId) -> TypeId {
        match self.types.class(container) {
            Class::List { element, .. } | Class::Set { element, .. } => *element,
            _ => INT,
        }
    }
}

pub(crate) fn is_container(class: &Class) -> bool {
    matches!(class, Class::List { .. } | Class::Set { .. })
}

/// The position and type of a field.
pub(crate) fn field_of(class: &Class, field: &str) -> Option<(usize, TypeId)> {
    let Class::Struct { fields } = class else { return None };
    fields.iter().position(|(name, _)| name == field).map(|position| (position, fields[position].1))
}

/// The type of the elements selected by this many indices.
pub(crate) fn indexed(class: &Class, count: usize) -> Option<TypeId> {
    match class {
        Class::Vector { indices, element, .. } if indices.len() == count => Some(*element),
        Class::List { element, .. } if count == 1 => Some(*element),
        _ => None,
    }
}
