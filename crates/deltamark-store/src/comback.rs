//! # The idea
//! Of a state only a hash signature, its number and its back edge: the parent and the action that
//! led from it. A state with a signature that is known is a candidate, no more: the known one is
//! rebuilt along its back edges, or the new one walked back along them, and only if they are the
//! same the state is called seen. So the method has the size of hash compaction and covers
//! everything.
//!
//! From Westergaard, Kristensen, Brodal and Arge, *The ComBack method: extending hash compaction
//! with backtracking*, ICATPN 2007, and on delayed duplicate detection Evangelista, Westergaard
//! and Kristensen, *The ComBack method revisited*, 2009. The paper pays three numbers, a signature
//! and an action for a state. Here the table stores of signature and number what the place does
//! not say (`quotient.rs`), and in level order a parent costs 2 bits (`unary.rs`).
//!
//! # Layout in memory
//! ```text
//! table     place | rest of the signature | number      signature + number - log2(places) bits
//! parents   10110 01101 …                               2.3 bits; depth-first: log2 of the states
//! actions   packed                                      log2 of their number
//! in full   some levels, vectors only                   an eighth of a byte a state, by default, or more
//! cache     a few states by number
//! ```
//!
//! # The variants of the paper, and the options they became
//! 1. Path optimisation, `paths`: a state met again from a parent that is rebuilt in fewer steps
//!    is pointed to that parent. In level order paths are shortest as they are, and nothing
//!    changes. No cycle comes about: see `delta.rs`.
//! 2. Caching, `cache=N`: the last states that were inserted or confirmed, in full, direct-mapped
//!    by number; a walk that meets one ends there.
//! 3. Backward reconstruction, `backward`: see `rebuilding/walk.rs`.
//! 4. Reconstruction of waiting states, `waiting=ids`: states to be expanded are rebuilt. With
//!    `states` they are kept in full until they are expanded: in level order here, in a window
//!    that also answers most look-ups; depth-first by the search. `auto` is `states` level by
//!    level and `ids` depth-first.
//! 5. Non-deterministic actions, `actions=bits`: see below.
//!
//! Ours: `full=K` keeps every K-th level in full (depth-first: states that would take K steps to
//! rebuild), so that walks are short; `auto` keeps as many levels as an eighth of a byte a state
//! allows (the window answers so many look-ups that walks hardly count as a rule), and more where
//! they do count, as long as everything stays below six bytes a state. They need no index: a level is a range of numbers. `delayed`: all candidates of a batch are
//! confirmed in one walk over the tree and share what they have in common.
//!
//! # Signatures
//! A signature of `signature` bits is kept as it is, however many states share it; that is exact
//! and slow when they are many. By default it has 24 bits and grows by 2 whenever there are a
//! quarter more states than it has values: the table is given up, and all states are rebuilt once
//! and signed again, so there are never two tables.
//!
//! # Back edges that do not say which successor is meant
//! With `actions=b` only the lowest `b` bits of an action are stored, so a back edge stands for
//! several actions, as a label of a language with non-deterministic transitions does. The paper
//! then rebuilds a set: all successors of the parent under the label whose signature has the
//! number in its list, and calls a state seen that is in the set. That is unsound: of two
//! successors of one state that share label and signature only one may have been inserted, and
//! the other one would be called seen. Here, when a state is inserted, its siblings are looked
//! at: if one under the same bits has the same signature and is another state, the whole action
//! is noted beside. Signatures only ever grow where that does not matter (with this option they
//! do not grow at all), so siblings told apart once stay told apart, and for a state without a
//! note exactly one successor of its parent fits bits and number: by induction from the initial
//! states, which are kept in full, the set that is rebuilt has one element, the right one.
//! Rebuilding goes forwards and computes all successors of each state on the way: small and slow.
//!
//! # When to choose it
//! When memory is what is missing, also for narrow states: 5 to 6 bytes a state level by level,
//! some 9 in any order, in the time of `delta`.

use crate::catalogue::{SpecError, StoreSpec, Traffic};
use crate::rebuilding::numbered::{Config, Full, MOST_SIGNATURE, Numbered};
use deltamark_core::{Budget, Order, Store, System};
use std::sync::Arc;

/// Makes the store that the options describe.
pub(crate) fn make<'a>(
    spec: &StoreSpec,
    system: &'a dyn System,
    Traffic { order, .. }: Traffic,
    budget: Arc<Budget>,
) -> Result<Box<dyn Store + 'a>, SpecError> {
    let action_bits = spec.number("actions", 0..=31)? as u32;
    if action_bits > 0 {
        for option in ["backward", "paths"] {
            if spec.options.iter().any(|(given, value)| given == option && value == "on") {
                return Err(SpecError(format!(
                    "the store `comback` with `actions={action_bits}` rebuilds forwards along the first path, \
                     so `{option}=on` means nothing to it"
                )));
            }
        }
    }
    let bits = spec.number_or("signature", &[("auto", None)], 1..=MOST_SIGNATURE.into(), Some)?;
    let (signature, grows) = match bits {
        // Signing again needs whole actions.
        None if action_bits > 0 => (MOST_SIGNATURE, false),
        None => (Config::USUAL.signature, true),
        Some(bits) => (bits as u32, false),
    };
    let full = spec.number_or("full", &[("auto", Full::Share), ("off", Full::Never)], 1..=1_000_000, Full::Every)?;
    let in_levels = order == Order::Levels;
    let states = spec.choice("waiting", &[("auto", in_levels), ("ids", false), ("states", true)])?;
    let config = Config {
        signature,
        grows,
        full,
        backward: spec.switch("backward")?,
        shorten: spec.switch("paths")? && order == Order::Any,
        window: states,
        // Where the search holds states, it does not ask for them.
        recalls: !states || order == Order::Levels,
        together: spec.switch("delayed")?,
        cache: spec.number("cache", 0..=1 << 30)?,
        action_bits,
    };
    Ok(Box::new(Numbered::new(config, system, order, None, budget)))
}
