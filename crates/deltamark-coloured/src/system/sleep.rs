//! Sleep sets of native coloured nets.
//!
//! In: the action that reached a state, and one that is enabled there. Out: whether the second is skipped.
//! What stays true: it is skipped only if the two can be exchanged ([`Exchange`]); [`deltamark_core::sleep`]
//! proves that no state is lost.
//!
//! Actions are bindings, numbered as they are found, so there is no relation over all of them to build before
//! the run: a thread memoises the pairs it has compared.
//!
//! # What is compared
//! Tokens, not places: two actions of one transition with different bindings mostly have no token in common. `b`
//! after `a` can be exchanged if
//!
//! - `a` adds no token that `b` requires: `b` was enabled before `a`;
//! - `b` takes no token that `a` requires: `a` is enabled after `b`;
//! - `a` takes no token that `b` adds: if `b` exceeds no capacity after `a`, it exceeds none before;
//! - neither changes a place that an inhibitor of the other reads;
//! - neither depends on the state in another way: no guard that reads the marking, no inhibitor with variables of
//!   its own. Nets with priorities skip nothing.
//! - neither resets a place: what is lost depends on the state.
//!
//! A fault is never skipped: neither an action that always is one, nor one that exceeds a capacity, which is
//! tested in the state ([`ActionRef::ceilings`]).
//!
//! # Layout in memory
//! ```text
//! row a    [ 0 0 2 1 … ]    two bits for each b > a: unknown, skipped, not skipped, skipped if it is no fault
//! ```
//! A thread has its own rows, allocated on demand. Actions from number [`MOST`] on are never skipped, so a
//! thread needs 8 MiB at most.
//!
//! [`ActionRef::ceilings`]: crate::tables::actions::ActionRef::ceilings
//! [`Exchange`]: deltamark_core::Exchange

use deltamark_core::Action;

use crate::engine::Engine;
use crate::tables::actions::ActionRef;

/// Actions from this number on are never skipped.
const MOST: u32 = 8192;
const PER_WORD: u32 = 32;
const SKIPPED: u64 = 1;
const NEEDED: u64 = 2;
/// Skipped if no place exceeds its capacity.
const IF_FITS: u64 = 3;

/// The pairs of actions that a thread has compared.
#[derive(Default)]
pub(crate) struct Sleep {
    rows: Vec<Vec<u64>>,
    grown: usize,
}

impl Sleep {
    /// Whether `action`, which is enabled in the state with these markings, is skipped there
    /// when the state was reached by `arrival`.
    #[inline]
    pub fn skips(&mut self, engine: &Engine, arrival: Action, action: u32, markings: &[u32]) -> bool {
        if action <= arrival.0 || action >= MOST {
            return false;
        }
        let (word, shift) = ((action / PER_WORD) as usize, 2 * (action % PER_WORD));
        let known = self.rows.get(arrival.0 as usize).and_then(|row| row.get(word)).map_or(0, |bits| bits >> shift & 3);
        let answer = if known == 0 { self.work_out(engine, arrival.0, action) } else { known };
        match answer {
            SKIPPED => true,
            IF_FITS => fits(engine, engine.actions.get(action), markings),
            _ => false,
        }
    }

    #[cold]
    #[inline(never)]
    fn work_out(&mut self, engine: &Engine, arrival: u32, action: u32) -> u64 {
        let (before, after) = (engine.actions.get(arrival), engine.actions.get(action));
        let answer = match exchangeable(engine, before, after) {
            true if after.ceilings().next().is_none() => SKIPPED,
            true => IF_FITS,
            false => NEEDED,
        };
        if self.rows.len() <= arrival as usize {
            self.rows.resize(arrival as usize + 1, Vec::new());
            self.grown += size_of::<Vec<u64>>();
        }
        let row = &mut self.rows[arrival as usize];
        let word = (action / PER_WORD) as usize;
        if row.len() <= word {
            // For all actions so far: they are likely to follow.
            let words = engine.actions.count().min(MOST).div_ceil(PER_WORD) as usize;
            self.grown += 8 * (words - row.len());
            row.reserve_exact(words - row.len());
            row.resize(words, 0);
        }
        row[word] |= answer << (2 * (action % PER_WORD));
        answer
    }

    /// Bytes allocated since the last call.
    pub fn take_grown(&mut self) -> usize {
        std::mem::take(&mut self.grown)
    }

    /// The bytes held.
    pub fn bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(|row| row.capacity() * size_of::<u64>()).sum();
        rows + self.rows.capacity() * size_of::<Vec<u64>>()
    }
}

/// Whether no place exceeds its capacity.
#[inline]
fn fits(engine: &Engine, action: ActionRef<'_>, markings: &[u32]) -> bool {
    action.ceilings().all(|(place, token, count)| {
        count > 0 && !engine.places[place as usize].holds(markings[place as usize], token, count)
    })
}

/// Whether `b`, if it is enabled after `a`, is enabled before it too, and `a` after `b`; neither is a fault.
pub(crate) fn exchangeable(engine: &Engine, a: ActionRef<'_>, b: ActionRef<'_>) -> bool {
    if a.is_late() || b.is_late() || a.is_fault() || b.is_fault() || a.resets() || b.resets() {
        return false;
    }
    let gains = |action: ActionRef<'_>| {
        let changes = action.changes().collect::<Vec<_>>();
        changes
            .into_iter()
            .flat_map(|(place, effect)| engine.effects.get(effect).map(move |(token, gain)| (place, token, gain)))
            .collect::<Vec<_>>()
    };
    let requires = |action: ActionRef<'_>, place: u32, token: u32| {
        action.requirements().any(|known| (known.0, known.1) == (place, token))
    };
    let (of_a, of_b) = (gains(a), gains(b));
    let inhibits = |action: ActionRef<'_>, gains: &[(u32, u32, i32)]| {
        action.inhibitors().any(|(place, ..)| gains.iter().any(|gain| gain.0 == place))
    };
    let adds = |gains: &[(u32, u32, i32)], place: u32, token: u32| {
        gains.iter().any(|&gain| (gain.0, gain.1) == (place, token) && gain.2 > 0)
    };
    !inhibits(a, &of_b)
        && !inhibits(b, &of_a)
        && !of_b.iter().any(|&(place, token, gain)| gain < 0 && requires(a, place, token))
        && !of_a.iter().any(
            |&(place, token, gain)| {
                if gain > 0 { requires(b, place, token) } else { adds(&of_b, place, token) }
            },
        )
}
