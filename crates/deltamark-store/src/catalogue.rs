//! The stores by name, with their options, for the command line and for reports.
//!
//! In: text such as `plain` or `delta:k=20,base=collapse`. Out: a store, or an error that lists the
//! known ones. Invariants: [`CATALOGUE`] is the only list of stores, one row per store; every
//! accepted option has an effect.

use crate::bitstate::Bitstate;
use crate::breadcrumb::{Anchors, Breadcrumb};
use crate::collapse::Collapse;
use crate::compact::Compact;
use crate::compaction::Compaction;
use crate::difference::Difference;
use crate::plain::Plain;
use crate::tree::{ARITIES, make as make_tree};
use crate::{comback, delta};
use deltamark_core::{Budget, Control, Order, Sampler, Store, System, diagnostic::did_you_mean};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

/// What the user should know about a store.
#[derive(Debug)]
pub struct StoreInfo {
    /// Its name on the command line.
    pub name: &'static str,
    /// How it works, in a sentence or two.
    pub idea: &'static str,
    /// What its answers are worth.
    pub guarantee: &'static str,
    /// When to choose it.
    pub when: &'static str,
    /// Whether several threads can use it at once in a breadth-first search.
    pub threads: bool,
    /// Whether it returns every visited state by its id.
    pub recalls: bool,
    /// Whether it compares and returns most states by rebuilding them, step by step.
    pub rebuilds: bool,
    /// What it cannot do without.
    pub needs: &'static [Need],
    /// Its options.
    pub options: &'static [OptionInfo],
    make: Make,
}

/// What a store may need of a search or a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// States that come level by level.
    Levels,
    /// Steps that can be undone.
    Undo,
    /// States that all take the same number of slots.
    FixedWidth,
}

impl Need {
    /// The need in words.
    pub fn words(self) -> &'static str {
        match self {
            Need::Levels => "breadth-first search",
            Need::FixedWidth => "a model whose states all have the same width, such as a Petri net",
            Need::Undo => "a model whose steps can be undone, such as a Petri net",
        }
    }
}

/// What a store has to expect.
#[derive(Clone)]
pub struct Traffic {
    /// In what order states will come.
    pub order: Order,
    /// How many threads will bring them.
    pub threads: usize,
    /// How it may look at the system beforehand; without a way to, a store that learns from a sample is
    /// right, and larger than it need be.
    pub samplers: &'static [&'static dyn Sampler],
    /// Who is asked how long that may take.
    pub control: Control,
}

impl From<Order> for Traffic {
    /// By one thread, without samples.
    fn from(order: Order) -> Self {
        Traffic { order, threads: 1, samplers: &[], control: Control::new() }
    }
}

/// Makes a store. The options of the specification are known to exist; whether their values
/// make sense is for the store to say.
type Make = for<'a> fn(&StoreSpec, &'a dyn System, Traffic, Arc<Budget>) -> Result<Box<dyn Store + 'a>, SpecError>;

/// An option of a store.
#[derive(Debug)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// The value it has when not given.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// What the answers of a store that misses no state are worth.
const EXACT: &str = "exact";

/// All stores there are: the exact ones from the most memory to the least, then the lossy ones.
pub static CATALOGUE: &[StoreInfo] = &[
    StoreInfo {
        name: "plain",
        idea: "Every state in full, packed, numbered in the order found; beside them an index of 4 bytes an entry.",
        guarantee: EXACT,
        when: "Whenever the run fits into memory: it is the fastest, and the yardstick for the others.",
        threads: true,
        recalls: true,
        rebuilds: false,
        needs: &[],
        options: &[],
        make: |_, system, _, budget| Ok(Box::new(Plain::new(system, budget))),
    },
    StoreInfo {
        name: "collapse",
        idea: "Each value of each component is kept once; a state is the tuple of their numbers, in as few bits as \
               they need.",
        guarantee: EXACT,
        when: "When states are made of parts that repeat and memory is short by a factor of two: 80 per cent of the \
               memory of `plain` or less, in about twice its time, for any model and any search.",
        threads: true,
        recalls: true,
        rebuilds: false,
        needs: &[],
        options: &[],
        make: |_, system, _, budget| Ok(Box::new(Collapse::new(system, budget))),
    },
    StoreInfo {
        name: "tree",
        idea: "A state is cut into parts, these again, down to single slots; every part is kept once, as the tuple of \
               the numbers of its parts. A successor shares all but a few nodes with its source.",
        guarantee: EXACT,
        when: "When states are wide or vary in length and little of them changes in a step: some 14 bytes a state \
               whatever the width, in about the time of `plain`, for any model and any search.",
        threads: true,
        recalls: true,
        rebuilds: false,
        needs: &[],
        options: &[OptionInfo {
            name: "arity",
            default: "2",
            help: "how many parts a part is cut into; 2, 3, 4 or 8. More means fewer look-ups and less sharing",
        }],
        make: tree,
    },
    StoreInfo {
        name: "compact",
        idea: "A state is cut into two halves, each kept once and numbered densely; a state is one bit for its pair of \
               numbers, or a few where pairs are sparse. Where to cut is learnt from a short sample.",
        guarantee: EXACT,
        when: "When a state is made of parts that move on their own, as in nets: less than a byte a state at best, \
               often in less than twice the time of `plain`, for any search.",
        threads: true,
        recalls: true,
        rebuilds: false,
        needs: &[Need::FixedWidth],
        options: &[],
        make: compact,
    },
    StoreInfo {
        name: "difference",
        idea: "A state as the slots that changed since its predecessor; every n-th state of a path is whole. A \
               state that may be known is taken back, change by change, to a whole one and compared there.",
        guarantee: EXACT,
        when: "When states are very wide (200 slots and more), a step changes little of them, and actions are costly: \
               it never runs the model to rebuild a state. A twentieth of the memory of `plain` or less, in up to \
               twice its time; narrow states take up to six times as long.",
        threads: false,
        recalls: true,
        rebuilds: true,
        needs: &[],
        options: &[OptionInfo {
            name: "every",
            default: "20",
            help: "every n-th state of a path is whole; 1 to 4096. More saves memory, fewer saves time",
        }],
        make: |spec, system, Traffic { order, .. }, budget| {
            Ok(Box::new(Difference::new(system, order, spec.number("every", 1..=4096)?, budget)))
        },
    },
    StoreInfo {
        name: "delta",
        idea: "A state as its predecessor and an action; every k-th level is kept in full. A state that may be known \
               is walked back to a level kept in full and compared there.",
        guarantee: EXACT,
        when: "When any other model does not fit, or depth-first: 6 to 7 bytes a state breadth-first, whatever its \
               width, in one to three times the time of `plain`; depth-first some 9, in about ten times.",
        threads: false,
        recalls: true,
        rebuilds: true,
        needs: &[],
        options: &[
            OptionInfo {
                name: "k",
                default: "50",
                help: "every k-th level is kept in full; 1 to 1000000. More saves memory, fewer saves time",
            },
            OptionInfo { name: "base", default: "plain", help: "store of the states kept in full; plain or collapse" },
            OptionInfo {
                name: "update",
                default: "on",
                help: "point states to predecessors that are rebuilt in fewer steps; on or off",
            },
            OptionInfo {
                name: "backward",
                default: "on",
                help: "walk back by undoing steps, where the model can; on or off (rebuild forwards)",
            },
            OptionInfo {
                name: "forget",
                default: "off",
                help: "levels that are forgotten; off, short (some, when memory is short) or how many of every k",
            },
        ],
        make: delta::make,
    },
    StoreInfo {
        name: "comback",
        idea: "Of a state a hash signature, its number, its predecessor and the action; a state whose signature is \
               known is walked back to one kept in full and compared there.",
        guarantee: EXACT,
        when: "As `delta`, with more to choose: 5 to 6 bytes a state breadth-first, some 9 depth-first, in about the \
               same time, for any model and any search.",
        threads: false,
        recalls: true,
        rebuilds: true,
        needs: &[],
        options: &[
            OptionInfo {
                name: "signature",
                default: "auto",
                help: "bits of the hash that are told apart; 1 to 32, or auto (24, growing with the states)",
            },
            OptionInfo { name: "cache", default: "0", help: "states that are cached in full; 0 to 1073741824" },
            OptionInfo {
                name: "paths",
                default: "on",
                help: "point states to predecessors that are rebuilt in fewer steps, depth-first; on or off",
            },
            OptionInfo {
                name: "backward",
                default: "on",
                help: "walk back by undoing steps, where the model can; on or off (rebuild forwards)",
            },
            OptionInfo {
                name: "waiting",
                default: "auto",
                help: "how states wait to be expanded; ids (rebuilt), states (kept in full) or auto (states \
                       breadth-first, ids depth-first)",
            },
            OptionInfo {
                name: "delayed",
                default: "on",
                help: "confirm the candidates of a batch together; on or off (one by one)",
            },
            OptionInfo {
                name: "full",
                default: "auto",
                help: "every n-th level is kept in full; 1 to 1000000, off (none) or auto (an eighth of a \
                       byte a state, and more where walks are long)",
            },
            OptionInfo {
                name: "actions",
                default: "0",
                help: "bits of an action that are stored; 1 to 31, or 0 (all). Fewer are smaller and much slower",
            },
        ],
        make: comback::make,
    },
    StoreInfo {
        name: "breadcrumb",
        idea: "Of a state only a few bits of its hash, its level modulo three and the action that led to it. A state \
               that may be known is confirmed by undoing actions back to a level kept in full.",
        guarantee: EXACT,
        when: "When a Petri net does not fit into memory: 2.5 to 4.5 bytes a state, whatever its width, the least of the \
               exact stores, in one to three times the time of `plain`.",
        threads: false,
        recalls: false,
        rebuilds: true,
        needs: &[Need::Levels, Need::Undo],
        options: &[
            OptionInfo {
                name: "k",
                default: "auto",
                help: "every k-th level is kept in full; 1 to 1000000, or auto (about half a byte a state, and \
                       more where walks are long)",
            },
            OptionInfo {
                name: "near",
                default: "1",
                help: "levels before the current one that are kept in full, for speed; 0 to 64",
            },
            OptionInfo {
                name: "tag",
                default: "10",
                help: "bits of hash a state keeps at a million states; 1 to 15. Each doubling spends one",
            },
        ],
        make: breadcrumb,
    },
    StoreInfo {
        name: "compaction",
        idea: "Of a state only a signature, some bits of its hash; the table keeps what their place there does not \
               say. Two states of one signature are taken for one.",
        guarantee: "may miss states; tells the probability that it did",
        when: "To look for errors, faster than the small exact stores: 4 bytes a state for 40 bits, 7 for 56, in \
               one to two times the time of `plain`, for any model and any search. The search keeps states that wait \
               in full and, breadth-first, a few bytes a state for traces.",
        threads: true,
        recalls: false,
        rebuilds: false,
        needs: &[],
        options: &[OptionInfo {
            name: "bits",
            default: "56",
            help: "bits of a signature; 16 to 64. A million states are all told apart with probability 0.6 by 40 \
                   bits, 0.998 by 48, 0.99999 by 56",
        }],
        make: |spec, _, _, budget| {
            let bits = spec.number("bits", Compaction::BITS)? as u32;
            Ok(Box::new(Compaction::new(bits, budget)))
        },
    },
    StoreInfo {
        name: "bitstate",
        idea: "A state sets some bits of one large array, at places its hash names; one that finds all of them set is \
               taken as seen.",
        guarantee: "may miss states; tells the probability that it did",
        when: "To look for errors where nothing else fits: it takes the memory you give it, however many states there \
               are. The search keeps states that wait in full and, breadth-first, a few bytes a state for traces.",
        threads: true,
        recalls: false,
        rebuilds: false,
        needs: &[],
        options: &[
            OptionInfo {
                name: "bits",
                default: "30",
                help: "size of the array as a power of two; 13 to 43. 30 are 2^30 bits, 128 MiB, taken at once",
            },
            OptionInfo { name: "hashes", default: "3", help: "bits that a state sets; 1 to 16" },
        ],
        make: bitstate,
    },
];

fn tree<'a>(
    spec: &StoreSpec,
    system: &'a dyn System,
    _traffic: Traffic,
    budget: Arc<Budget>,
) -> Result<Box<dyn Store + 'a>, SpecError> {
    let arity = spec.choice("arity", &ARITIES)?;
    Ok(make_tree(system, arity, budget).expect("an arity that there is"))
}

fn compact<'a>(
    _spec: &StoreSpec,
    system: &'a dyn System,
    traffic: Traffic,
    budget: Arc<Budget>,
) -> Result<Box<dyn Store + 'a>, SpecError> {
    match Compact::new(system, budget, &traffic) {
        Some(store) => Ok(Box::new(store)),
        None => Err(SpecError(
            "the store `compact` takes states of fixed width, and those of this model vary; use `tree`".into(),
        )),
    }
}

fn breadcrumb<'a>(
    spec: &StoreSpec,
    system: &'a dyn System,
    _traffic: Traffic,
    budget: Arc<Budget>,
) -> Result<Box<dyn Store + 'a>, SpecError> {
    let which = spec.number_or("k", &[("auto", Anchors::Auto)], 1..=1_000_000, Anchors::Every)?;
    let tag = spec.number("tag", 1..=15)? as u32;
    let near = spec.number("near", 0..=64)? as usize;
    let store = Breadcrumb::new(system, which, near, tag, budget);
    Ok(Box::new(store.ok_or_else(|| cannot_undo(spec))?))
}

fn bitstate<'a>(
    spec: &StoreSpec,
    _system: &'a dyn System,
    _traffic: Traffic,
    budget: Arc<Budget>,
) -> Result<Box<dyn Store + 'a>, SpecError> {
    let bits = spec.number("bits", Bitstate::BITS)? as u32;
    let hashes = spec.number("hashes", Bitstate::HASHES)? as u32;
    let store = Bitstate::new(bits, hashes, budget);
    if !store.is_open() {
        let bytes = Bitstate::array_bytes(bits);
        let size = if bytes >> 20 > 0 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) };
        return Err(SpecError(format!(
            "the store `bitstate` takes its array of {size} at once, and there is not as much memory; \
             give it a smaller `bits` than {bits}, or the run a larger `--memory`"
        )));
    }
    Ok(Box::new(store))
}

/// No store, but the way to one: whoever makes a run tries some and chooses. Not in the [`CATALOGUE`], because it
/// cannot be built.
pub static AUTO: StoreInfo = StoreInfo {
    name: "auto",
    idea: "plain, as long as memory lasts; when it is full, smaller exact stores are tried on the first states, and \
           the run is repeated with the best",
    guarantee: EXACT,
    when: "it is the default; `--explain` shows what was tried",
    threads: true,
    recalls: true,
    rebuilds: false,
    needs: &[],
    options: &[],
    make: |_, _, _, _| Err(SpecError("`auto` chooses a store for a run; name one here".into())),
};

impl StoreInfo {
    /// The store of this name.
    pub fn by_name(name: &str) -> Option<&'static StoreInfo> {
        CATALOGUE.iter().chain([&AUTO]).find(|info| info.name == name)
    }

    /// Whether it misses no state.
    pub fn is_exact(&self) -> bool {
        self.guarantee == EXACT
    }

    /// Whether it takes states that come in this order.
    pub fn takes(&self, order: Order) -> bool {
        order == Order::Levels || !self.needs.contains(&Need::Levels)
    }
}

/// A store by name, with options: `NAME[:option=value,…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSpec {
    /// Its name.
    pub name: String,
    /// The options given, in order.
    pub options: Vec<(String, String)>,
}

impl Default for StoreSpec {
    fn default() -> Self {
        StoreSpec::named(AUTO.name)
    }
}

impl fmt::Display for StoreSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, (name, value)) in self.options.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

/// Why a text names no store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpecError(pub String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

impl FromStr for StoreSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let Some(info) = StoreInfo::by_name(name) else {
            return Err(misplaced_options(text).unwrap_or_else(|| unknown(name)));
        };
        let mut options: Vec<(String, String)> = Vec::new();
        for option in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let Some((key, value)) = option.split_once('=') else {
                return Err(SpecError(format!("`{option}` is not an option of a store; write `{name}:option=value`")));
            };
            if !info.options.iter().any(|known| known.name == key) {
                let known: Vec<&str> = info.options.iter().map(|known| known.name).collect();
                return Err(SpecError(match known.as_slice() {
                    [] => format!("the store `{name}` has no options, so `{key}` means nothing to it"),
                    known => {
                        let hint = match did_you_mean(key, known.iter().copied()) {
                            Some(close) => format!("did you mean `{close}`?"),
                            None => format!("it has: {}", known.join(", ")),
                        };
                        format!("the store `{name}` has no option `{key}`; {hint}")
                    }
                }));
            }
            if options.iter().any(|(given, _)| given == key) {
                return Err(SpecError(format!("the option `{key}` of the store `{name}` is given twice")));
            }
            options.push((key.into(), value.into()));
        }
        Ok(StoreSpec { name: name.into(), options })
    }
}

impl StoreSpec {
    /// The store of this name, without options.
    pub fn named(name: &str) -> Self {
        StoreSpec { name: name.into(), options: Vec::new() }
    }

    /// Whether the run is to choose the store.
    pub fn is_auto(&self) -> bool {
        self.name == AUTO.name
    }

    /// The value of an option of this store: what was given, or its default.
    ///
    /// # Panics
    /// When the catalogue lists no such option for this store: a bug of the caller.
    pub fn value(&self, option: &str) -> &str {
        match self.options.iter().find(|(given, _)| given == option) {
            Some((_, value)) => value,
            None => {
                let known = StoreInfo::by_name(&self.name).map_or(&[][..], |info| info.options);
                let info = known.iter().find(|known| known.name == option);
                info.unwrap_or_else(|| panic!("the store `{}` has an option `{option}`", self.name)).default
            }
        }
    }

    /// The value of an option that is `on` or `off`.
    ///
    /// # Panics
    /// As [`value`](Self::value).
    pub fn switch(&self, option: &str) -> Result<bool, SpecError> {
        self.choice(option, &[("on", true), ("off", false)])
    }

    /// The value of an option that is one of these words, each with what it means, or a number
    /// from `range`.
    ///
    /// # Panics
    /// As [`value`](Self::value).
    pub fn number_or<T: Copy>(
        &self,
        option: &str,
        words: &[(&str, T)],
        range: RangeInclusive<u64>,
        meaning: impl FnOnce(u64) -> T,
    ) -> Result<T, SpecError> {
        let text = self.value(option);
        if let Some(&(_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(meaning);
        }
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.map(meaning).ok_or_else(|| {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let (words, least, most, name) = (words.join(", "), range.start(), range.end(), &self.name);
            SpecError(format!(
                "`{text}` is no value for the option `{option}` of the store `{name}`; \
                 it takes {words} or a number from {least} to {most}"
            ))
        })
    }

    /// The value of an option that is one of these words, each with what it means.
    ///
    /// # Panics
    /// As [`value`](Self::value).
    pub fn choice<T: Copy>(&self, option: &str, words: &[(&str, T)]) -> Result<T, SpecError> {
        let text = self.value(option);
        words.iter().find(|(word, _)| *word == text).map(|&(_, meaning)| meaning).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let hint = match did_you_mean(text, known.iter().copied()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!(
                    "it takes {}",
                    known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
                ),
            };
            let name = &self.name;
            SpecError(format!("`{text}` is no value for the option `{option}` of the store `{name}`; {hint}"))
        })
    }

    /// The value of an option that is a number from `range`.
    ///
    /// # Panics
    /// As [`value`](Self::value).
    pub fn number(&self, option: &str, range: RangeInclusive<u64>) -> Result<u64, SpecError> {
        let text = self.value(option);
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            let name = &self.name;
            SpecError(format!(
                "`{text}` is no value for the option `{option}` of the store `{name}`; \
                 it takes a number from {least} to {most}"
            ))
        })
    }
}

/// What to say of options that follow a store's name without the colon: `delta,k=20`.
fn misplaced_options(text: &str) -> Option<SpecError> {
    let end = text.find([',', ';', ' ', '='])?;
    let (name, rest) = (&text[..end], text[end + 1..].trim());
    StoreInfo::by_name(name)?;
    let meant = format!("{name}:{rest}");
    Some(match meant.parse::<StoreSpec>() {
        Ok(_) => SpecError(format!("options of a store follow a colon; write `{meant}`")),
        Err(error) => error,
    })
}

fn cannot_undo(spec: &StoreSpec) -> SpecError {
    let name = &spec.name;
    SpecError(format!(
        "the store `{name}` undoes steps, and those of this model cannot be undone; choose another store"
    ))
}

fn unknown(name: &str) -> SpecError {
    let known = CATALOGUE.iter().chain([&AUTO]).map(|info| info.name);
    let hint = match did_you_mean(name, known.clone()) {
        Some(close) => format!("did you mean `{close}`?"),
        None => format!("known stores: {}", known.collect::<Vec<_>>().join(", ")),
    };
    SpecError(format!("there is no store `{name}`; {hint}"))
}

/// Makes the store that `spec` describes, for this system, for states that come in this order,
/// and within this budget.
pub fn build<'a>(
    spec: &StoreSpec,
    system: &'a dyn System,
    traffic: impl Into<Traffic>,
    budget: Arc<Budget>,
) -> Result<Box<dyn Store + 'a>, SpecError> {
    let traffic = traffic.into();
    let info = StoreInfo::by_name(&spec.name).ok_or_else(|| unknown(&spec.name))?;
    if !info.takes(traffic.order) {
        let name = info.name;
        return Err(SpecError(format!("the store `{name}` works level by level; search with `--search bfs`")));
    }
    if info.needs.contains(&Need::Undo) && system.reversible().is_none() {
        return Err(cannot_undo(spec));
    }
    (info.make)(spec, system, traffic, budget)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::{Action, Arrival, Cancel, Field, Insert, Recoding, Width};
    use deltamark_testkit::RandomGraph;

    /// Growth fills an index again from all states, which may take longer than the run may.
    #[test]
    fn stores_give_up_growing_when_the_run_is_over() {
        const MANY: u32 = if cfg!(miri) { 100 } else { 5000 };
        let system = RandomGraph::of_width(1, Width::Fixed(2), 2);
        for name in ["plain", "collapse", "tree", "compact"] {
            let cancel = Cancel::new();
            let budget = Arc::new(Budget::unlimited().until(cancel.clone(), None, || None));
            let store = build(&StoreSpec::named(name), &system, Order::Levels, Arc::clone(&budget)).expect(name);
            let (mut scratch, mut system_scratch) = (store.scratch(), system.scratch());
            let mut insert = |number: u32| {
                let state = [number, number.wrapping_mul(0x9E37_79B9)];
                let hash = system.hash(&mut system_scratch, &state);
                store.insert(&mut scratch, &state, hash, &Arrival { parent: None, action: Action(0) })
            };
            assert!((0..MANY).all(|number| matches!(insert(number), Insert::New(_))), "{name}");
            cancel.cancel();
            let full = (MANY..200 * MANY).find(|&number| insert(number) == Insert::Full);
            let len = u64::from(full.unwrap_or_else(|| panic!("{name} went on growing")));
            assert_eq!(store.len(), len, "{name}");
            assert_eq!(insert(300 * MANY), Insert::Full, "{name}");
            let slots = (0..2).map(|slot| (Field::new(slot, 0, 32, 0), Field::new(slot, 0, 32, 0)));
            let recoding = Recoding::new(2, 2, String::new(), slots);
            assert!(!store.recode(&recoding), "{name}");
            assert_eq!(store.len(), len, "{name}");
            drop(store);
            assert_eq!(budget.used(), 0, "{name}");
        }
    }

    #[test]
    fn words_that_an_option_takes_are_told() {
        let spec = |value: &str| StoreSpec { name: "bitstate".into(), options: vec![("hashes".into(), value.into())] };
        assert_eq!(spec("on").switch("hashes"), Ok(true));
        assert_eq!(spec("off").switch("hashes"), Ok(false));
        assert_eq!(spec("plain").choice("hashes", &[("plain", 1), ("collapse", 2)]), Ok(1));
        let begin = "is no value for the option `hashes` of the store `bitstate`;";
        let error = spec("yes").switch("hashes").expect_err("no switch").to_string();
        assert_eq!(error, format!("`yes` {begin} it takes `on` or `off`"));
        let error =
            spec("colapse").choice("hashes", &[("plain", 1), ("collapse", 2)]).expect_err("no word").to_string();
        assert_eq!(error, format!("`colapse` {begin} did you mean `collapse`?"));
    }
}
