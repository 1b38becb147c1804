//! # The idea
//! A state is a predecessor and an action; only every `k`-th level is stored in full. Membership is
//! checked by backtracking along the actions to a stored state, and comparing there.
//!
//! From Evangelista and Pradat-Peyre, *Memory efficient state space storage in explicit software
//! model checking*, SPIN 2005 (Δ-markings). Kept: every `k`-th level in full, in a base store; both
//! optimisations, below. Better: the predecessor costs 2 bits in level order instead of a pointer;
//! an entry of the table holds only a remainder (quotienting); the candidates of a batch are walked
//! together; the current levels are compared directly; no size must be guessed before the run.
//!
//! # Layout in memory
//! ```text
//! table     place | rest of a 24 to 32 bit key | number        about 4 bytes   (quotient.rs)
//! parents   10110 01101 …                                      2.3 bits        (spanning.rs)
//! actions   packed                                             log2 of their number
//! in full   level 0, k, 2k … in the base store                 1/k of plain    (kept.rs)
//! ```
//! In any order (depth-first) a predecessor is a packed number, and a state is stored in full if
//! its chain of predecessors would reach `k` steps.
//!
//! # The two optimisations of the paper
//! * `update`: a state that is revisited from a predecessor with a shorter chain gets that
//!   predecessor. In level order chains differ only next to a full level (a state one level before
//!   it, revisited from it, has one step instead of `k`-1); such edges are exceptions beside the
//!   two bits, and at most one state in 256 may be one. In any order every edge may change.
//! * `backward`: equality is checked by undoing actions from the new state, for reversible systems.
//!   For a different state the walk mostly ends early, at an action that cannot be undone. Other
//!   systems rebuild forwards and compare; see `rebuilding/walk.rs` for why both are exact.
//!
//! # Chains are acyclic
//! Let `c(x)` be the number of steps from `x` along predecessors to a state stored in full;
//! initially it is finite for all states, since a new state points to an existing one. The
//! predecessor of `s` is changed to `t` only if `c(t) + 1 < c(s)`, both counted along the current
//! edges. If `s` were on the chain of `t`, `c(t)` would be more than `c(s)`. So it is not, the
//! chain of `t` is unchanged, and `c` stays finite for `s` and for all whose chains go through `s`:
//! they become shorter. In particular no chain ever exceeds `k - 1` in any order.
//!
//! # Forgetting
//! With `forget` levels that are not kept in full are taken out of the table, and explored again where they are revisited: see
//! `rebuilding/numbered/forget.rs`.
//!
//! # When to choose it
//! When `plain` does not fit, for any system and any search: 6 to 7 bytes per state level by level,
//! regardless of width, in up to four times the time of `plain` for narrow states and in about its
//! time for states of hundreds of slots; in any order some 9 bytes, in about ten times. A small `k`
//! is faster and takes more.

use crate::catalogue::{SpecError, StoreSpec, Traffic};
use crate::collapse::Collapse;
use crate::plain::Plain;
use crate::rebuilding::numbered::{Config, Forget, Full, Numbered};
use deltamark_core::{Budget, Order, Store, System};
use std::sync::Arc;

/// Makes the store that the options describe.
pub(crate) fn make<'a>(
    spec: &StoreSpec,
    system: &'a dyn System,
    Traffic { order, .. }: Traffic,
    budget: Arc<Budget>,
) -> Result<Box<dyn Store + 'a>, SpecError> {
    let collapsed = spec.choice("base", &[("plain", false), ("collapse", true)])?;
    let base: Box<dyn Store + 'a> = if collapsed {
        Box::new(Collapse::new(system, Arc::clone(&budget)))
    } else {
        Box::new(Plain::new(system, Arc::clone(&budget)))
    };
    let k = spec.number("k", 1..=1_000_000)?;
    let words = [("off", Forget::Never), ("short", Forget::Short(k))];
    let forget = spec.number_or("forget", &words, 1..=1_000_000, |levels| Forget::Always { levels, of: k })?;
    let most = match forget {
        Forget::Never => 0,
        Forget::Short(_) => 1,
        Forget::Always { levels, .. } => levels,
    };
    if most >= k {
        return Err(SpecError(format!(
            "of every {k} levels one is kept, so not {most} can be forgotten: the option `forget` takes less than `k`"
        )));
    }
    if most > 0 && order != Order::Levels {
        return Err(SpecError(
            "levels can be forgotten in a breadth-first search only: leave out `forget`, or the other search".into(),
        ));
    }
    let config = Config {
        full: Full::Every(k),
        forget,
        shorten: spec.switch("update")?,
        backward: spec.switch("backward")?,
        ..Config::USUAL
    };
    Ok(Box::new(Numbered::new(config, system, order, Some(base), budget)))
}
