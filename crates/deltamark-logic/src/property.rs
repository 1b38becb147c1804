//! Expressions as properties.
//!
//! In: the text of an expression and the kind of property. Out: a [`Property`] that a search can decide.

use deltamark_core::{Diagnostic, Goal, Observe, Property};

use crate::parse::shortened;
use crate::{Compiled, compile};

/// The kind of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyKind {
    /// It is true in every reachable state.
    Invariant,
    /// It is true in some reachable state.
    Reachable,
}

impl PropertyKind {
    /// The property of this kind for the expression `text`. Without a name of its own it is named by its text.
    pub fn property(
        self,
        name: Option<String>,
        text: &str,
        observe: &dyn Observe,
    ) -> Result<Property, Vec<Diagnostic>> {
        Ok(self.ask(name, compile(text, observe)?))
    }

    fn ask(self, name: Option<String>, compiled: Compiled) -> Property {
        let text = compiled.text().to_string();
        let predicate = Box::new(compiled);
        Property {
            name: name.unwrap_or_else(|| shortened(&text)),
            text,
            goal: match self {
                PropertyKind::Invariant => Goal::Invariant(predicate),
                PropertyKind::Reachable => Goal::Reachable(predicate),
            },
        }
    }
}

/// The property that the expression is true in every reachable state.
pub fn invariant(name: Option<String>, text: &str, observe: &dyn Observe) -> Result<Property, Vec<Diagnostic>> {
    PropertyKind::Invariant.property(name, text, observe)
}

/// The property that the expression is true in some reachable state.
pub fn reachable(name: Option<String>, text: &str, observe: &dyn Observe) -> Result<Property, Vec<Diagnostic>> {
    PropertyKind::Reachable.property(name, text, observe)
}
