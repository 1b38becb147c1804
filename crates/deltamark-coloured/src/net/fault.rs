//! What can go wrong when an expression is evaluated.
//!
//! In: nothing. Out: kinds of faults, with their messages. What stays true: a [limit](FaultKind::is_limit) of the evaluation
//! is distinguished from a fault of the model.

use deltamark_core::Span;

/// The faults of a running net.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// A value is outside the range of the required type.
    OutOfRange,
    /// A value cannot be cast.
    Cast,
    /// Division by zero.
    DivisionByZero,
    /// An index outside a vector or list.
    Index,
    /// A slice of a list begins or ends outside it.
    Slice,
    /// A list exceeds its capacity.
    ListOverflow,
    /// A set exceeds its capacity, or a literal of a list or set is too large.
    ContainerOverflow,
    /// The first or last element, or all but one, of an empty list.
    EmptyList,
    /// A function reached its end without a result.
    NoReturn,
    /// An assertion is false.
    Assertion,
    /// Calls are nested too deeply.
    Recursion,
    /// An evaluation takes too many steps.
    Endless,
    /// An evaluation takes more memory than the limit leaves.
    Memory,
    /// The run ended while something was evaluated. Nothing that holds afterwards remembers it.
    Stopped,
    /// There are more values, or combinations of values, than are tried. It says nothing about the model: see
    /// [`Batch::cut_off`](deltamark_core::Batch::cut_off).
    Untried,
    /// A place holds more copies of a token than its capacity allows.
    Capacity,
    /// A label subtracts more of a token than it adds: `x - y` with unexpected values.
    NegativeCount,
    /// The code of the front end has no value; it knows why.
    Host(u32),
    /// The same, because it reached a bound.
    HostLimit(u32),
}

/// A failed evaluation: its kind and position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// Its position in the text.
    pub span: Span,
}

impl FaultKind {
    /// Whether it is a bound of the evaluation, not a fault of the model: what follows is unknown.
    pub fn is_limit(self) -> bool {
        matches!(
            self,
            FaultKind::Recursion
                | FaultKind::Endless
                | FaultKind::Untried
                | FaultKind::Memory
                | FaultKind::Stopped
                | FaultKind::HostLimit(_)
        )
    }

    /// The message, as a sentence without a full stop.
    pub fn message(self) -> &'static str {
        match self {
            FaultKind::OutOfRange => "expression out of range",
            FaultKind::Cast => "cast failed",
            FaultKind::DivisionByZero => "division by zero",
            FaultKind::Index => "invalid index",
            FaultKind::Slice => "invalid first or last index of a slice",
            FaultKind::ListOverflow => "list overflow",
            FaultKind::ContainerOverflow => "container capacity exceeded",
            FaultKind::EmptyList => "an element of an empty list is asked for",
            FaultKind::NoReturn => "no value returned",
            FaultKind::Assertion => "assertion failed",
            FaultKind::Recursion => "calls are nested too deeply",
            FaultKind::Endless => "the evaluation takes more than 50 million steps",
            FaultKind::Memory => "the evaluation takes more memory than the limit leaves",
            FaultKind::Stopped => "the run ended during the evaluation",
            FaultKind::Untried => "there are more values to pick from than are tried",
            FaultKind::Capacity => "capacity exceeded",
            FaultKind::Host(_) | FaultKind::HostLimit(_) => "an expression has no value",
            FaultKind::NegativeCount => "a label takes away more tokens than it has",
        }
    }
}
