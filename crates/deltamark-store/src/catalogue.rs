//! The stores by name, with their options, for the command line and for reports.
//!
//! In: text such as `plain` or `delta:k=20,base=collapse`. Out: a store, or an error
//! that names what is known. What stays true: one table, [`CATALOGUE`], knows which stores
//! there are, and whoever adds a store adds a row; an option that is accepted has an effect.

use crate::breadcrumb::{Anchors, Breadcrumb};
use crate::difference::Difference;
use crate::plain::Plain;
use crate::{comback, delta};
use deltamark_core::{Budget, Order, Store, System, diagnostic::did_you_mean};
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
    /// Its options.
    pub options: &'static [OptionInfo],
    make: Make,
}

/// Makes a store. The options of the specification are known to exist; whether their values
/// make sense is for the store to say.
type Make = for<'a> fn(&StoreSpec, &'a dyn System, Order, Arc<Budget>) -> Result<Box<dyn Store + 'a>, SpecError>;

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

/// All stores there are.
pub static CATALOGUE: &[StoreInfo] = &[
    StoreInfo {
        name: "plain",
        idea: "Every state in full, packed, numbered in the order found; beside them an index of 4 bytes an entry.",
        guarantee: "exact",
        when: "The fastest, and the yardstick for the others. Choose it whenever the run fits into memory.",
        options: &[],
        make: |_, system, _, budget| Ok(Box::new(Plain::new(system, budget))),
    },
    StoreInfo {
        name: "delta",
        idea: "A state is its predecessor and an action; every k-th level is kept in full. A repeated state is \
           recognised by walking back to a level kept in full.",
        guarantee: "exact",
        when: "For wide states that do not fit as they are: 6 to 7 bytes a state whatever their width, in two to \
           three times the time of `plain`.",
        options: &[
            OptionInfo { name: "k", default: "50", help: "every k-th level is kept in full, 1 to 1000000" },
            OptionInfo { name: "base", default: "plain", help: "the store of the states kept in full: plain" },
            OptionInfo {
                name: "update",
                default: "on",
                help: "point states to predecessors that are rebuilt in fewer steps: on, off",
            },
            OptionInfo {
                name: "backward",
                default: "on",
                help: "walk back by undoing steps, where the model can; off: rebuild forwards",
            },
        ],
        make: delta::make,
    },
    StoreInfo {
        name: "comback",
        idea: "Of a state a hash signature, its number and its back edge; a state whose signature is known is walked \
               back along the edges to one kept in full and compared there.",
        guarantee: "exact",
        when: "When memory is what is missing: 6 to 7 bytes a state, for narrow states too, in two to three times \
               the time of `plain`.",
        options: &[
            OptionInfo {
                name: "signature",
                default: "auto",
                help: "bits of the hash that are told apart, 1 to 32; auto: 24, growing with the states",
            },
            OptionInfo { name: "cache", default: "0", help: "how many full states are cached" },
            OptionInfo {
                name: "paths",
                default: "on",
                help: "point states to parents that are rebuilt in fewer steps (depth-first only): on, off",
            },
            OptionInfo {
                name: "backward",
                default: "on",
                help: "walk back by undoing steps, where the model can; off: rebuild forwards",
            },
            OptionInfo {
                name: "waiting",
                default: "auto",
                help: "states to be expanded: ids (rebuilt), states (kept), auto (kept breadth-first only)",
            },
            OptionInfo {
                name: "delayed",
                default: "on",
                help: "confirm the candidates of a batch together; off: one by one",
            },
            OptionInfo {
                name: "full",
                default: "auto",
                help: "every so many levels one is kept in full; auto: as an eighth of a byte a state allows; off: none",
            },
            OptionInfo { name: "actions", default: "0", help: "bits of an action that are stored, 0 for all" },
        ],
        make: comback::make,
    },
    StoreInfo {
        name: "difference",
        idea: "A state as the slots that changed since its predecessor, every δ-th state on a path whole.",
        guarantee: "exact",
        when: "When states are wide and a step changes little of them: a twentieth of what `plain` takes, or less, in up \
            to twice the time.",
        options: &[OptionInfo {
            name: "every",
            default: "20",
            help: "every so many states of a path one is whole: more saves memory, fewer saves time",
        }],
        make: |spec, system, order, budget| {
            Ok(Box::new(Difference::new(system, order, spec.number("every", 1..=4096)?, budget)))
        },
    },
    StoreInfo {
        name: "breadcrumb",
        idea: "Of a state only a few bits of its hash, its level modulo three and the action that led to it; a hit is \
           confirmed by undoing actions back to a level kept in full.",
        guarantee: "exact",
        when: "When states are wide and their steps can be undone, as in every Petri net: 2 to 4 bytes a state \
           whatever their width, for two to three times the time. Breadth-first search only.",
        options: &[
            OptionInfo {
                name: "k",
                default: "auto",
                help: "keep every k-th level in full; `auto` spends about a byte a state on them",
            },
            OptionInfo {
                name: "near",
                default: "1",
                help: "levels before the one in hand that are kept in full, for speed",
            },
            OptionInfo {
                name: "tag",
                default: "10",
                help: "bits of hash a state keeps at a million states; each doubling spends one",
            },
        ],
        make: breadcrumb,
    },
];

fn breadcrumb<'a>(
    spec: &StoreSpec,
    system: &'a dyn System,
    order: Order,
    budget: Arc<Budget>,
) -> Result<Box<dyn Store + 'a>, SpecError> {
    let which = match spec.value("k") {
        "auto" => Anchors::Auto,
        _ => Anchors::Every(spec.number("k", 1..=1_000_000)?),
    };
    let tag = spec.number("tag", 1..=15)? as u32;
    if order != Order::Levels {
        return Err(SpecError("the store `breadcrumb` works level by level; choose `--search bfs`".into()));
    }
    let near = spec.number("near", 0..=64)? as usize;
    let store = Breadcrumb::new(system, which, near, tag, budget);
    let store = store.ok_or_else(|| {
        SpecError(
            "the store `breadcrumb` undoes steps, and those of this model cannot be undone; choose another store"
                .into(),
        )
    })?;
    Ok(Box::new(store))
}

impl StoreInfo {
    /// The store of this name.
    pub fn by_name(name: &str) -> Option<&'static StoreInfo> {
        CATALOGUE.iter().find(|info| info.name == name)
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
        StoreSpec { name: "plain".into(), options: Vec::new() }
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
        Ok(_) => SpecError(format!("options of a store stand behind a colon; write `{meant}`")),
        Err(error) => error,
    })
}

fn unknown(name: &str) -> SpecError {
    let known = CATALOGUE.iter().map(|info| info.name);
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
    order: Order,
    budget: Arc<Budget>,
) -> Result<Box<dyn Store + 'a>, SpecError> {
    let info = StoreInfo::by_name(&spec.name).ok_or_else(|| unknown(&spec.name))?;
    (info.make)(spec, system, order, budget)
}
