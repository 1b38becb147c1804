//! The interfaces that all parts of Deltamark share.
//!
//! In: nothing. Out: the traits and plain data between languages, stores and searches. Invariant:
//! this crate uses only the standard library, does no input or output, and names no language, no
//! store and no search.
//!
//! ```text
//! System ──expand──▶ Batch ──insert_batch──▶ Store
//!   ▲                                          │
//!   └────────── Block ◀──────recall────────────┘        Outcome{verdicts, statistics, stop}
//! ```
//!
//! * [`System`] is a model that can be run: initial states and successors.
//! * [`Block`] is the input that a search passes to a system, [`Batch`] the result.
//! * [`Store`] is the set of visited states.
//! * [`Outcome`] is what a search returns; [`Property::outcome`] gives the answer that follows from what
//!   was found; a [`Trace`] can only be shown by replaying it.

pub mod apart;
pub mod batch;
pub mod bitset;
pub mod budget;
pub mod bytes;
pub mod capability;
pub mod control;
pub mod diagnostic;
pub mod facts;
pub mod findings;
pub mod formula;
pub mod hash;
pub mod layer;
pub mod layout;
pub mod numbers;
pub mod outcome;
pub mod packed;
pub mod parser;
pub mod portable;
pub mod progress;
pub mod property;
pub mod quotient;
pub mod recoding;
pub mod record;
pub mod sample;
pub mod scratch;
pub mod sleep;
pub mod state;
pub mod store;
pub mod stubborn;
pub mod system;
pub mod text;
pub mod trace;
pub mod values;
pub mod varint;
pub mod verdict;
pub mod window;

pub use apart::Apart;
pub use batch::{BLOCK, Batch, Block, Fault, Room};
pub use bitset::BitSet;
pub use budget::{Budget, Grant};
pub use bytes::Bytes;
pub use capability::{
    Bound, Components, Describe, Exchange, Growth, NoValue, Observable, ObservableKind, Observe, Reversible, UNDEFINED,
    Undone, Value, survey_by_reading,
};
pub use control::{Cancel, Control, Event, Limits, Listener, Pace, Silent, Snapshot};
pub use diagnostic::{Diagnostic, Span};
pub use facts::{ActionFact, ActionFacts, Change, Facts};
pub use findings::Findings;
pub use formula::Formula;
pub use layer::Layer;
pub use layout::{Field, Layout};
pub use numbers::Numbers;
pub use outcome::{Again, Outcome, PropertyOutcome, Statistics, Stop, Verdict};
pub use packed::Packed;
pub use portable::{Misread, Portable, PortableActions};
pub use progress::{Directions, Effects, Measure, Progress, Rank, Weighted};
pub use property::{Goal, Predicate, Property};
pub use quotient::{Asymmetry, Quotient, Symmetry, Unnamed};
pub use recoding::Recoding;
pub use record::{Edge, Recorder};
pub use sample::Sampler;
pub use scratch::Scratch;
pub use sleep::Sleep;
pub use state::{Action, Slot, StateId, States, Width};
pub use store::{Arrival, Guarantee, Image, Insert, Listed, Order, Recall, Store};
pub use stubborn::{Allowance, Manner, Strength, Stubborn};
pub use system::{Fired, System, Widen};
pub use trace::{Ending, Replay, ReplayError, Trace};
pub use values::{Attached, Ids, Values};
pub use verdict::{Decided, Evidence, Witness};
pub use window::{Entrants, Remember, Window};
