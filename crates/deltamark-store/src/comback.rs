//! # The idea
//! Stores a hash signature of a state, its number and its back edge: the parent and the action that
//! led from it. A known signature only makes a stored state a candidate: the stored state is
//! rebuilt along its back edges, or the new one walked back along them, and only if they are equal
//! is the new state a duplicate. So the method has the size of hash compaction and full coverage.
//!
//! From Westergaard, Kristensen, Brodal and Arge, *The ComBack method: extending hash compaction
//! with backtracking*, ICATPN 2007, and on delayed duplicate detection Evangelista, Westergaard and
//! Kristensen, *The ComBack method revisited*, 2009. The paper stores three numbers, a signature
//! and an action per state. Here the table stores only the remainder of the signature and the
//! number (quotienting, `quotient.rs`), and in level order a parent costs 2 bits (`unary.rs`).
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
//! # The variants of the paper as options
//! 1. Path optimisation, `paths`: a state revisited from a parent that is rebuilt in fewer steps
//!    gets that parent. In level order paths are shortest already, and nothing changes. No cycle
//!    arises: see `delta.rs`.
//! 2. Caching, `cache=N`: the last inserted or confirmed states, in full, direct-mapped by number;
//!    a walk that hits one ends there.
//! 3. Backward reconstruction, `backward`: see `rebuilding/walk.rs`.
//! 4. Reconstruction of frontier states, `waiting=ids`: states to be expanded are rebuilt. With
//!    `states` they are kept in full until they are expanded: in level order here, in a window that
//!    also answers most look-ups; depth-first by the search. `auto` is `states` level by level and
//!    `ids` depth-first.
//! 5. Non-deterministic actions, `actions=bits`: see below.
//!
//! Ours: `full=K` stores every K-th level in full (depth-first: states that would take K steps to
//! rebuild), so walks are short. `auto` stores as many levels as an eighth of a byte per state
//! allows (the window usually answers most look-ups, so walks hardly matter), and more where
//! walks do matter, as long as the total stays below six bytes per state. These levels need no
//! index: a level is a range of numbers. `delayed`: all candidates of a batch are confirmed in one
//! walk over the tree, with common ancestors shared.
//!
//! # Signatures
//! A fixed signature of `signature` bits is exact for any number of collisions, but slow if there
//! are many. By default it has 24 bits and grows by 2 whenever there are a quarter more states than
//! it has values: the table is freed, and all states are rebuilt once and rehashed, so there are
//! never two tables.
//!
//! # Ambiguous back edges
//! With `actions=b` only the lowest `b` bits of an action are stored, so a back edge represents
//! several actions, like a label of a language with non-deterministic transitions. The paper then
//! rebuilds a set: all successors of the parent under the label whose signature has the number in
//! its list; a state in the set counts as a duplicate. That is unsound: of two successors of one
//! state with equal label and signature only one may have been inserted, and the other one would be
//! reported as a duplicate. Here, when a state is inserted, its siblings are examined: if a
//! different sibling under the same bits has the same signature, the whole action is stored
//! separately. Signatures only grow where that does not matter (with this option they do not grow
//! at all), so siblings once distinguished stay distinguished, and for a state without a stored
//! action exactly one successor of its parent matches bits and number: by induction from the
//! initial states, which are stored in full, the rebuilt set has one element, the right one.
//! Rebuilding goes forwards and computes all successors of each state on the path: small and slow.
//!
//! # When to choose it
//! When memory is the bottleneck, also for narrow states: 5 to 6 bytes per state level by level,
//! some 9 in any order, in the time of `delta`.

use crate::catalogue::{SpecError, StoreSpec, Traffic};
use crate::rebuilding::numbered::{Config, Forget, Full, MOST_SIGNATURE, Numbered};
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
        forget: Forget::Never,
    };
    Ok(Box::new(Numbered::new(config, system, order, None, budget)))
}
