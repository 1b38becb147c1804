//! What compound values share: their parts, with the depth of nesting.
//!
//! In: values. Out: parts that are shared, not copied. What stays true: the depth of every value is known without looking
//! into it, so evaluation can refuse what is nested too deeply for the code that goes down into values (comparing, printing,
//! giving back memory) and would otherwise overflow the stack.

use std::ops::Deref;
use std::sync::Arc;

use crate::eval::Val;

/// The parts of a tuple, a record or a list.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    of: Arc<[Val]>,
    depth: u32,
}

impl Parts {
    /// The depth of a value with these parts.
    pub fn depth(&self) -> u32 {
        self.depth
    }
}

impl From<Vec<Val>> for Parts {
    fn from(values: Vec<Val>) -> Self {
        let depth = values.iter().map(Val::depth).max().unwrap_or(0) + 1;
        Parts { of: values.into(), depth }
    }
}

impl FromIterator<Val> for Parts {
    fn from_iter<I: IntoIterator<Item = Val>>(values: I) -> Self {
        values.into_iter().collect::<Vec<_>>().into()
    }
}

impl Deref for Parts {
    type Target = [Val];

    fn deref(&self) -> &[Val] {
        &self.of
    }
}

/// The argument of a constructor, or what a reference holds.
#[derive(Clone, Debug)]
pub(crate) struct Inner {
    of: Arc<Val>,
    depth: u32,
}

impl Inner {
    pub fn new(value: Val) -> Self {
        let depth = value.depth() + 1;
        Inner { of: Arc::new(value), depth }
    }

    /// The depth of a value with this argument.
    pub fn depth(&self) -> u32 {
        self.depth
    }
}

impl Deref for Inner {
    type Target = Val;

    fn deref(&self) -> &Val {
        &self.of
    }
}
