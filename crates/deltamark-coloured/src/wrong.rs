//! What goes wrong while the bindings of a transition are looked for.
//!
//! In: a fault of an expression. Out: whether a state meets it. What stays true: a fault of a guard, a let or a
//! condition is met by every state that comes so far; one of an expression that tokens are compared with only
//! where there is a token to compare, as in Helena: with nothing in `b`, `b : <( 1 / x )>` is not looked at.

use crate::actions::Claim;
use crate::net::Fault;
use crate::place::{PlaceTable, View};
use crate::values::Code;

/// What goes wrong, and when it does.
pub(crate) struct Wrong {
    pub fault: Fault,
    /// None if it does in any case.
    pub compared: Option<Compared>,
}

/// A token that is compared with an expression: what goes wrong in the expression matters if there is one.
pub(crate) struct Compared {
    pub place: u32,
    /// How many of it there must be, beside what other terms take.
    pub factor: u32,
    pub claims: Vec<Claim>,
    /// What components of it must be, by their positions.
    pub known: Vec<(usize, Code)>,
}

impl Compared {
    /// Whether such a token lies in the place.
    pub fn lies(&self, table: &PlaceTable, view: View) -> bool {
        table.tokens_of(view).any(|(token, count)| {
            let claimed = self.claims.iter().find(|claim| (claim.0, claim.1) == (self.place, token));
            count >= self.factor.saturating_add(claimed.map_or(0, |claim| claim.2)).max(1)
                && self.known.iter().all(|&(at, code)| table.component(token, at) == code)
        })
    }
}
