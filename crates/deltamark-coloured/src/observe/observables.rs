//! The observables of a coloured net.
//!
//! In: the parts of a net. Out: an [`Observable`] for each, and back. What stays true: only this file knows
//! the numbering.
//!
//! ```text
//! 31    29 28                     0
//! [  tag ][        number         ]       a sum: place 21 bits, component 8 bits
//! ```

use deltamark_core::{Observable, ObservableKind};

const TAG_SHIFT: u32 = 29;
const COMPONENT_BITS: u32 = 8;
const NUMBER: u32 = (1 << TAG_SHIFT) - 1;

/// A quantity of a marking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    /// The number of tokens in a place.
    Tokens(u32),
    /// Whether a transition is enabled under some binding.
    Fireable(u32),
    /// Whether a proposition holds.
    Proposition(u32),
    /// The number of distinct tokens in a place.
    Distinct(u32),
    /// The number of tokens that match a pattern of [`Engine::named`](crate::engine::Engine::named).
    Matching(u32),
    /// The sum of one component over the tokens of a place.
    Sum {
        /// The place.
        place: u32,
        /// The component.
        component: u32,
    },
    /// The number of tokens in a place of the unfolded net.
    Unfolded(u32),
    /// An expression of the front end: its number among those asked for, and whether it is a truth value.
    OverMarkings(u32, bool),
}

impl Observed {
    /// The sum of one component over the tokens of a place; `None` if the numbers do not fit.
    pub fn sum(place: u32, component: usize) -> Option<Self> {
        let fits = component < 1 << COMPONENT_BITS && place < 1 << (TAG_SHIFT - COMPONENT_BITS);
        fits.then_some(Observed::Sum { place, component: component as u32 })
    }

    /// The observable of this meaning.
    pub fn observable(self) -> Observable {
        let (tag, number, kind) = match self {
            Observed::Tokens(place) => (0, place, ObservableKind::Int),
            Observed::Fireable(transition) => (1, transition, ObservableKind::Bool),
            Observed::Proposition(number) => (2, number, ObservableKind::Bool),
            Observed::Distinct(place) => (3, place, ObservableKind::Int),
            Observed::Matching(pattern) => (4, pattern, ObservableKind::Int),
            Observed::Sum { place, component } => (5, place << COMPONENT_BITS | component, ObservableKind::Int),
            Observed::Unfolded(place) => (6, place, ObservableKind::Int),
            Observed::OverMarkings(number, truth) => {
                (7, number, if truth { ObservableKind::Bool } else { ObservableKind::Int })
            }
        };
        debug_assert!(number <= NUMBER, "a net has fewer parts than that");
        Observable { index: tag << TAG_SHIFT | number, kind }
    }

    /// The meaning of an observable made by [`observable`](Self::observable).
    pub fn of(observable: Observable) -> Self {
        let number = observable.index & NUMBER;
        match observable.index >> TAG_SHIFT {
            0 => Observed::Tokens(number),
            1 => Observed::Fireable(number),
            2 => Observed::Proposition(number),
            3 => Observed::Distinct(number),
            4 => Observed::Matching(number),
            5 => Observed::Sum { place: number >> COMPONENT_BITS, component: number & ((1 << COMPONENT_BITS) - 1) },
            6 => Observed::Unfolded(number),
            _ => Observed::OverMarkings(number, observable.kind == ObservableKind::Bool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observables_mean_what_they_were_made_of() {
        let sums = [(0, 0), (7, 255), ((1 << 21) - 1, 3)].map(|(place, component)| Observed::Sum { place, component });
        let kinds = [Observed::Tokens, Observed::Fireable, Observed::Proposition, Observed::Distinct];
        let more = [Observed::Matching, Observed::Unfolded];
        let numbered = kinds.iter().chain(&more).flat_map(|kind| [0, 1, NUMBER].map(kind));
        for observed in numbered.chain(sums) {
            assert_eq!(Observed::of(observed.observable()), observed);
        }
        assert_eq!(Observed::sum(0, 256), None);
        assert_eq!(Observed::sum(1 << 21, 0), None);
    }
}
