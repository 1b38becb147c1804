//! Types: their values, and which types are compatible.
//!
//! In: type definitions, already evaluated. Out: a table of types, whose numbers are those of the net. What
//! stays true: a type's root is no subtype; two types are compatible exactly if they have the same root; the
//! predefined types have the numbers of the constants below.

use crate::net::{Type, TypeId, Value, ValueShape};
use std::sync::Arc;

/// `int`.
pub(crate) const INT: TypeId = TypeId(0);
/// `bool`.
pub(crate) const BOOL: TypeId = TypeId(4);

/// The maximum number of elements of a vector, list or set.
pub(crate) const MOST_ELEMENTS: i64 = 65536;

/// The form and arithmetic of a root type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Numbers in a range.
    Range,
    /// Numbers modulo this one.
    Mod(i32),
    /// Names.
    Enum,
    /// A value for each combination of indices; this many values.
    Vector { indices: Vec<TypeId>, element: TypeId, size: usize },
    /// Named fields.
    Struct { fields: Vec<(String, TypeId)> },
    /// Elements in sequence.
    List { index: TypeId, element: TypeId, capacity: u32 },
    /// Distinct elements.
    Set { element: TypeId, capacity: u32 },
}

/// What the checker knows of a type.
#[derive(Clone, Debug)]
pub(crate) struct TypeInfo {
    pub name: String,
    pub root: TypeId,
    pub class: Class,
    /// The first value of a discrete type.
    pub low: i64,
    /// The last value of a discrete type.
    pub high: i64,
    /// The names of an enumeration, by value.
    names: Option<Arc<[String]>>,
    /// The maximum number of integers in a value.
    pub leaves: u64,
}

/// All types of a net.
pub(crate) struct Types(Vec<TypeInfo>);

impl Types {
    /// The predefined types.
    pub fn new() -> Self {
        let mut types = Types(Vec::new());
        let int = types.discrete("int", None, Class::Range, i64::from(i32::MIN), i64::from(i32::MAX), None);
        for (name, low, high) in [("nat", 0, i64::from(i32::MAX)), ("short", -32768, 32767), ("ushort", 0, 65535)] {
            types.discrete(name, Some(int), Class::Range, low, high, None);
        }
        types.enumeration("bool", vec!["false".into(), "true".into()]);
        types
    }

    pub fn get(&self, of: TypeId) -> &TypeInfo {
        &self.0[of.0 as usize]
    }

    /// All types with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (TypeId, &TypeInfo)> {
        (0..).map(TypeId).zip(&self.0)
    }

    /// All types that are their own root.
    pub fn roots(&self) -> impl Iterator<Item = TypeId> + '_ {
        self.iter().filter(|(id, info)| info.root == *id).map(|(id, _)| id)
    }

    pub fn root(&self, of: TypeId) -> TypeId {
        self.get(of).root
    }

    pub fn name(&self, of: TypeId) -> &str {
        &self.get(of).name
    }

    /// The class of a type's root.
    pub fn class(&self, of: TypeId) -> &Class {
        &self.get(of).class
    }

    pub fn is_discrete(&self, of: TypeId) -> bool {
        matches!(self.class(of), Class::Range | Class::Mod(_) | Class::Enum)
    }

    pub fn is_numeric(&self, of: TypeId) -> bool {
        matches!(self.class(of), Class::Range | Class::Mod(_))
    }

    /// The number of values of a discrete type.
    pub fn card(&self, of: TypeId) -> i64 {
        self.get(of).high - self.get(of).low + 1
    }

    fn add(&mut self, info: TypeInfo) -> TypeId {
        let id = TypeId(u32::try_from(self.0.len()).unwrap_or(u32::MAX));
        self.0.push(TypeInfo { root: if info.root == NEW { id } else { info.root }, ..info });
        id
    }

    /// Adds a range, a modular type, or a part of a discrete type.
    pub fn discrete(
        &mut self,
        name: &str,
        parent: Option<TypeId>,
        class: Class,
        low: i64,
        high: i64,
        names: Option<Arc<[String]>>,
    ) -> TypeId {
        let root = parent.map_or(NEW, |parent| self.root(parent));
        self.add(TypeInfo { name: name.into(), root, class, low, high, names, leaves: 1 })
    }

    /// Adds a part of a discrete type.
    pub fn subtype(&mut self, name: &str, parent: TypeId, low: i64, high: i64) -> TypeId {
        let info = self.get(parent).clone();
        self.discrete(name, Some(parent), info.class, low, high, info.names)
    }

    /// Adds an enumeration.
    pub fn enumeration(&mut self, name: &str, names: Vec<String>) -> TypeId {
        let high = i64::try_from(names.len()).unwrap_or(i64::MAX) - 1;
        self.discrete(name, None, Class::Enum, 0, high, Some(names.into()))
    }

    /// Adds a type of structured values.
    pub fn composite(&mut self, name: &str, class: Class) -> TypeId {
        let leaves = |of: &TypeId| self.get(*of).leaves;
        let leaves = match &class {
            Class::Vector { element, size, .. } => leaves(element).saturating_mul(*size as u64),
            Class::Struct { fields } => fields.iter().fold(0u64, |sum, (_, field)| sum.saturating_add(leaves(field))),
            Class::List { element, capacity, .. } | Class::Set { element, capacity } => {
                leaves(element).saturating_mul(u64::from(*capacity))
            }
            Class::Range | Class::Mod(_) | Class::Enum => 1,
        };
        self.add(TypeInfo { name: name.into(), root: NEW, class, low: 0, high: 0, names: None, leaves })
    }

    /// The initial value of a variable: 0 if the type has it, otherwise the first value; lists and sets are
    /// empty.
    pub fn default_value(&self, of: TypeId) -> Value {
        let info = self.get(of);
        match &info.class {
            Class::Range | Class::Mod(_) | Class::Enum => {
                Value::Int(i32::try_from(0i64.clamp(info.low, info.high)).unwrap_or(0))
            }
            Class::Vector { element, size, .. } => Value::Seq(vec![self.default_value(*element); *size]),
            Class::Struct { fields } => {
                Value::Seq(fields.iter().map(|(_, field)| self.default_value(*field)).collect())
            }
            Class::List { .. } | Class::Set { .. } => Value::Seq(Vec::new()),
        }
    }

    /// The table in the form of the net.
    pub fn lower(&self) -> Vec<Type> {
        let clamp = |value: i64| i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX });
        let lower = |info: &TypeInfo| {
            let shape = match &info.class {
                Class::Range | Class::Mod(_) | Class::Enum => {
                    ValueShape::Discrete { low: clamp(info.low), high: clamp(info.high), names: info.names.clone() }
                }
                Class::Vector { indices, element, .. } => {
                    ValueShape::Vector { indices: indices.clone(), element: *element }
                }
                Class::Struct { fields } => ValueShape::Struct { fields: fields.clone() },
                Class::List { element, capacity, .. } => ValueShape::List { element: *element, capacity: *capacity },
                Class::Set { element, capacity } => ValueShape::Set { element: *element, capacity: *capacity },
            };
            Type { name: info.name.clone(), shape }
        };
        self.0.iter().map(lower).collect()
    }
}

/// Marks a type that is its own root.
const NEW: TypeId = TypeId(u32::MAX);
