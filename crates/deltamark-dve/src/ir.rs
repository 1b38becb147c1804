//! The intermediate representation: a checked model, ready to run.
//!
//! In: the checked model. Out: a [`Program`], which the engines (see [`engine`](crate::engine)), the dump, the
//! description of states and the properties read. What stays true: I1 to I7 below; builders of a program maintain
//! them, readers rely on them.
//!
//! # Cells and fields
//! A *cell* holds one number: a variable, an element of an array, the location of a process, the
//! length or an item of a buffer. Cells are numbered; the elements of an array have consecutive
//! numbers. Each cell has a *field*, a few bits of one slot of the state:
//!
//! ```text
//! slot 0   [ P: location 2 | P: x 8 | P: i 3 | turn 1 |  unused ]
//! slot 1   [ a[0] 8 | a[1] 8 | a[2] 8 | a[3] 8 ]
//! ```
//!
//! A field of `b` bits holds `value - least` (modulo 256 if it [wraps](Cell::wraps)), for values that the analysis (`range.rs`) proved
//! to be the only ones. One of no bits holds nothing: its cell always has the value `least`.
//!
//! # Steps
//! An [`Action`] of an asynchronous system is an index into
//! [`Program::steps`]: one transition alone, or a pair of a send and a receive over an unbuffered
//! channel. In a system that is synchronous an action is a number in mixed radix, see
//! [`Program::radix`].
//!
//! # What a step does
//! To a copy of the source, in this order:
//!
//! 1. *Transfer.* All sent values and all indices of receiving targets are evaluated in the source.
//!    Values of a typed channel are cast to its item types, see [`Type::cast`]. Then they are stored into the
//!    targets, left to right, each with a check of the target's range. A buffered send stores into the
//!    buffer's first unused items instead and adds one to its length; a buffered receive takes the
//!    first items, moves the others up, zeroes the items that become unused, and subtracts one.
//! 2. *Receiver*, for a pair: its location becomes `to`, then its effects are executed in order, each seeing
//!    the earlier ones; in `a[i] = e` both `i` and `e` are evaluated before the store.
//! 3. *Sender* (or the one transition): likewise.
//!
//! # Arithmetic
//! Numbers are `i32`. `+ - *` and negation wrap around. Shifts use the low five bits of their right operand, and
//! `>>` is arithmetic. Comparisons and `Not`, `And`, `Or` yield 0 or 1; `And` and `Or` short-circuit. Everything
//! else may be evaluated in any order, or not at all if it is not needed, as long as no fault is lost.
//!
//! # Faults
//! A division or remainder by zero, an index outside its array, and storing a number outside the type of a target
//! are faults: the step is a fault, and leads to no state. A fault in a guard makes its transition ready, and the
//! step a fault; a fault in the guard of a send or receive counts only with a ready partner. An engine need not
//! determine which fault: the [reference](crate::reference::step) does. `checked: false` means that the analysis
//! has proved that no fault can happen there in a reachable state; an engine may omit the check.
//!
//! # Invariants
//! - I1: an expression's operands have smaller numbers than itself.
//! - I2: equal expressions have equal numbers.
//! - I3: no expression that has a constant value is anything but [`Expr::Const`], unless it is a fault.
//! - I4: in every reachable state each cell's value is in its [`Cell::values`] and fits its field.
//! - I5: fields of different cells do not overlap; bits that belong to no field are zero.
//! - I6: the elements of one array have fields that differ in `slot` and `shift` alone.
//! - I7: the transitions of a location are consecutive, in the order of the text; so
//!   are the receives of one channel in one location within [`Channel::receives`].

use crate::portable::Proved;
use deltamark_core::{Action, Field, Slot, Span};
use std::ops::Range;

/// A whole model.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// All expressions; some may be unused.
    pub exprs: Vec<Expr>,
    /// All cells: those of the state first, then those of the monitor.
    pub cells: Vec<Cell>,
    /// Arrays of cells.
    pub arrays: Vec<Array>,
    /// Arrays of constants.
    pub tables: Vec<Table>,
    /// Variables in the order of the text, globals first, for names and types. Constants are not among them.
    pub variables: Vec<Variable>,
    /// Channels in the order of the text.
    pub channels: Vec<Channel>,
    /// Processes in the order of the text; the monitor is not among them.
    pub processes: Vec<Process>,
    /// The transitions of all processes, location by location.
    pub transitions: Vec<Transition>,
    /// The steps: action `i` is `steps[i]`. Empty if the system is synchronous.
    pub steps: Vec<Step>,
    /// Whether all processes move at once.
    pub timing: Timing,
    /// For a synchronous system: action = Σ digit(p) · radix\[p\], where digit(p) is the number of the
    /// transition within its location, counted from that location's first. Empty otherwise.
    pub radix: Vec<u32>,
    /// The number of actions.
    pub action_count: u32,
    /// Whether some location is committed.
    pub has_commit: bool,
    /// Whether some location has an assertion.
    pub has_asserts: bool,
    /// The number of slots of a state, without the monitor's.
    pub slots: usize,
    /// The slots at which a component begins, ascending, the first is 0.
    pub boundaries: Vec<usize>,
    /// The property process of `system async property P`, if there is one. It takes no part in steps.
    pub monitor: Option<Monitor>,
    /// What holds in every reachable state, by the analysis.
    pub(crate) proved: Proved,
}

/// The number of an expression in [`Program::exprs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// The number of a cell in [`Program::cells`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellId(pub u32);

/// The number of an array in [`Program::arrays`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayId(pub u32);

/// The number of a table in [`Program::tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// The number of a transition in [`Program::transitions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransitionId(pub u32);

/// The number of a channel in [`Program::channels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId(pub u32);

/// The number of a process in [`Program::processes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// An expression. Locations of processes are cells, so `P.q` is a comparison of a cell with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A number.
    Const(i32),
    /// The value of a cell.
    Cell(CellId),
    /// An element of an array; a fault if the index is out of bounds.
    Element {
        /// The array.
        array: ArrayId,
        /// Which element.
        index: ExprId,
        /// Whether the index may be out of bounds.
        checked: bool,
    },
    /// An element of a constant array; a fault if the index is out of bounds.
    Lookup {
        /// The table.
        table: TableId,
        /// Which element.
        index: ExprId,
        /// Whether the index may be out of bounds.
        checked: bool,
    },
    /// An operator with one operand.
    Unary(Unary, ExprId),
    /// An operator with two operands that needs both.
    Binary(Binary, ExprId, ExprId),
    /// `/` or `%`; a fault if the divisor is zero. `i32::MIN / -1` wraps, `i32::MIN % -1` is 0.
    Divide {
        /// Whether it is the remainder.
        remainder: bool,
        /// The dividend.
        left: ExprId,
        /// The divisor.
        right: ExprId,
        /// Whether the divisor may be zero.
        checked: bool,
    },
    /// Whether both are non-zero; short-circuiting.
    And(ExprId, ExprId),
    /// Whether one is non-zero; short-circuiting.
    Or(ExprId, ExprId),
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-`
    Negate,
    /// `~`
    Complement,
    /// `not`: 1 for zero, 0 otherwise.
    Not,
}

/// An operator with two operands that needs both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `==`
    Equal,
    /// `!=`
    Differ,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

/// The type of a variable or of an item of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// 0 to 255.
    Byte,
    /// -32768 to 32767.
    Int,
}

impl Type {
    /// The least and the greatest number of this type.
    pub fn range(self) -> (i32, i32) {
        match self {
            Type::Byte => (0, 255),
            Type::Int => (-32768, 32767),
        }
    }

    /// The number truncated to this type, as in C.
    pub fn cast(self, value: i32) -> i32 {
        match self {
            Type::Byte => i32::from(value as u8),
            Type::Int => i32::from(value as i16),
        }
    }

    /// Its keyword.
    pub fn word(self) -> &'static str {
        match self {
            Type::Byte => "byte",
            Type::Int => "int",
        }
    }

    /// The article of the keyword.
    pub(crate) fn article(self) -> &'static str {
        match self {
            Type::Byte => "a",
            Type::Int => "an",
        }
    }
}

/// A storage cell for one number.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// What it represents.
    pub owner: Owner,
    /// The numbers that may be stored; storing another is a fault. Locations are always valid.
    pub allowed: (i32, i32),
    /// The least and the greatest number that it ever holds, as far as the analysis knows.
    pub values: (i32, i32),
    /// Where it is in the state: at most 32 bits, all in one slot.
    pub field: Field,
    /// Whether values are taken modulo 256. A byte that holds 0, 1, 2 and, for "none", 255 then takes
    /// two bits: its least value is 255. Never set for an `int` or a location.
    pub wraps: bool,
    /// What it holds in the initial state.
    pub initial: i32,
}

impl Cell {
    /// The value that is stored as zero.
    #[inline]
    pub fn least(self) -> i32 {
        self.field.least() as i32
    }

    /// The bits of its field, moved to the bottom of a word.
    #[inline]
    pub fn mask(self) -> u32 {
        self.field.mask() as u32
    }

    /// The value that the state holds.
    #[inline]
    pub fn read(self, state: &[Slot]) -> i32 {
        let value = self.field.read(state) as i32;
        if self.wraps { value & 255 } else { value }
    }

    /// What is stored for a value; more than [`mask`](Self::mask) for one that does not fit. Where values are taken modulo
    /// 256, only those of a byte have a code: 256 must not be taken for 0.
    #[inline]
    pub fn code(self, value: i32) -> u32 {
        let raw = value.wrapping_sub(self.least()) as u32;
        match (self.wraps, (0..256).contains(&value)) {
            (false, _) => raw,
            (true, true) => raw & 255,
            (true, false) => u32::MAX,
        }
    }

    /// Makes the state hold `value`, which fits.
    #[inline]
    pub fn write(self, state: &mut [Slot], value: i32) {
        let raw = self.code(value);
        debug_assert!(raw <= self.mask(), "I4: {value} fits its field {:?}", self.field);
        self.field.put(state, raw.into());
    }
}

/// What a cell belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The location of a process, numbered as in [`Process::locations`].
    Location(ProcessId),
    /// An element of a variable: the number of the variable, and the index (0 for one that is no array).
    Variable(u32, u32),
    /// The number of messages in the buffer of a channel.
    Length(ChannelId),
    /// Part of a message in the buffer of a channel: which message, and which value of it.
    Item(ChannelId, u32, u32),
    /// The location of the monitor.
    Monitor,
}

/// An array in the state.
#[derive(Clone, Debug)]
pub struct Array {
    /// Its first element; the others follow.
    pub first: CellId,
    /// The number of its elements, at least 1.
    pub length: u32,
    /// Its number among the variables.
    pub variable: u32,
}

/// An array of constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, with that of its process.
    pub name: String,
    /// Its elements, at least one.
    pub values: Vec<i32>,
}

/// A variable, for names.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name, without that of its process.
    pub name: String,
    /// Its process; `None` if it is global.
    pub process: Option<ProcessId>,
    /// Whether it belongs to the monitor.
    pub of_monitor: bool,
    /// The type of its values.
    pub kind: Type,
    /// Its first cell.
    pub first: CellId,
    /// The number of its elements, for an array.
    pub length: Option<u32>,
}

/// A channel.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// The types of the values in a message; `None` for an untyped channel.
    pub types: Option<Vec<Type>>,
    /// The number of values in a message.
    pub arity: u32,
    /// Its buffer; `None` for a handshake channel.
    pub buffer: Option<Buffer>,
    /// The transitions that send over it, by process, then location, then the order of the text.
    pub sends: Vec<TransitionId>,
    /// The transitions that receive from it, in the same order.
    pub receives: Vec<TransitionId>,
}

/// The buffer of a channel: a queue. Unused items are zero.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// The maximum number of messages, at least 1.
    pub capacity: u32,
    /// The cell with the number of messages.
    pub length: CellId,
    /// The first cell of the first message; value `v` of message `m` is in cell `first + m * arity + v`.
    pub first: CellId,
}

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// The cell with its location.
    pub location: CellId,
    /// Its locations.
    pub locations: Vec<Location>,
    /// Its acceptance condition; meaningless except in a monitor.
    pub accept: Accept,
}

/// A location (a `state`) of a process.
#[derive(Clone, Debug, Default)]
pub struct Location {
    /// Its name.
    pub name: String,
    /// Whether it is committed.
    pub committed: bool,
    /// Its transitions, as a range of [`TransitionId`].
    pub transitions: Range<u32>,
    /// Assertions: must be non-zero whenever the process is here. With their positions.
    pub asserts: Vec<(ExprId, TextPlace)>,
}

/// A position in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPlace {
    /// The span in bytes.
    pub span: Span,
    /// The line of its first byte, from 1.
    pub line: u32,
}

/// A transition.
#[derive(Clone, Debug)]
pub struct Transition {
    /// Its process.
    pub process: ProcessId,
    /// The location it leaves, by its number in the process.
    pub from: u32,
    /// The location it leads to.
    pub to: u32,
    /// The guard: must be non-zero for it to be ready.
    pub guard: ExprId,
    /// Its send or receive.
    pub sync: Sync,
    /// Its assignments, in order.
    pub effects: Vec<Effect>,
    /// Its position in the text.
    pub place: TextPlace,
    /// Alone: its action. A send over an unbuffered channel: the action of its pair with the
    /// first possible partner. A receive from one: its index in [`Channel::receives`]. See [`Program::pair_action`].
    pub action: u32,
    /// For a send over an unbuffered channel: the number of receives of the channel in its own process.
    pub own_receives: u32,
}

/// The send or receive of a transition. Ignored in synchronous systems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Neither.
    None,
    /// `c!values`
    Send(ChannelId, Vec<ExprId>),
    /// `c?targets`
    Receive(ChannelId, Vec<Target>),
}

/// The target of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A cell.
    Cell(CellId),
    /// An element of an array; a fault if the index is out of bounds.
    Element {
        /// The array.
        array: ArrayId,
        /// Which element.
        index: ExprId,
        /// Whether the index may be out of bounds.
        checked: bool,
    },
}

/// An assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The target.
    pub target: Target,
    /// The new value.
    pub value: ExprId,
    /// Whether the value may be outside the range of the target's type, which is a fault.
    pub checked: bool,
}

/// The effect of one action of an asynchronous system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One process moves; also over a buffered channel.
    Alone(TransitionId),
    /// Two processes move.
    Pair {
        /// The sending transition.
        send: TransitionId,
        /// The receiving one, of another process.
        receive: TransitionId,
        /// The number of a global variable that the effects of both assign: then the step is a fault.
        conflict: Option<u32>,
    },
}

/// How processes move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// Interleaving: one at a time, or two by a handshake.
    #[default]
    Asynchronous,
    /// All at once. Each executes its effects on its own copy of the source; all assignments are then merged. It
    /// is a fault if two assign the same global variable (an array is one variable). `sync` and committed
    /// locations have no effect.
    Synchronous,
}

/// The property process. Its cells are the last of [`Program::cells`]; their fields are in slots after those of
/// the state, so that a state of the product is a state followed by `slots` more slots.
#[derive(Clone, Debug)]
pub struct Monitor {
    /// Name, locations and acceptance. Its transitions are `transitions[i]` for `i` in [`Location::transitions`];
    /// their `process` and `action` are meaningless.
    pub process: Process,
    /// Its transitions.
    pub transitions: Vec<Transition>,
    /// The number of slots of its own cells.
    pub slots: usize,
}

/// An acceptance condition over locations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Accept {
    /// None given.
    #[default]
    None,
    /// Büchi: some of these infinitely often.
    Buchi(Vec<u32>),
    /// Generalised Büchi: some of each set infinitely often.
    Generalised(Vec<Vec<u32>>),
    /// Muller: the set of locations visited infinitely often is one of these.
    Muller(Vec<Vec<u32>>),
    /// Rabin, for some pair: none of the first and some of the second infinitely often.
    Rabin(Vec<(Vec<u32>, Vec<u32>)>),
    /// Streett, for each pair: some of the first infinitely often, or none of the second.
    Streett(Vec<(Vec<u32>, Vec<u32>)>),
}

impl Program {
    /// The expression of this number.
    #[inline]
    pub fn expr(&self, id: ExprId) -> Expr {
        self.exprs[id.0 as usize]
    }

    /// The transition of this number.
    #[inline]
    pub fn transition(&self, id: TransitionId) -> &Transition {
        &self.transitions[id.0 as usize]
    }

    /// The cells of the state, without the monitor's.
    pub fn state_cells(&self) -> &[Cell] {
        let monitor = |cell: &Cell| match cell.owner {
            Owner::Monitor => true,
            Owner::Variable(variable, _) => self.variables[variable as usize].of_monitor,
            _ => false,
        };
        let end = self.cells.iter().position(monitor).unwrap_or(self.cells.len());
        &self.cells[..end]
    }

    /// The buffer that a transition uses when it moves alone over a channel.
    pub fn buffer_of(&self, transition: &Transition) -> Option<Buffer> {
        match transition.sync {
            Sync::Send(channel, _) | Sync::Receive(channel, _) => self.channels[channel.0 as usize].buffer,
            Sync::None => None,
        }
    }

    /// The action of a pair of transitions of different processes, over the same unbuffered channel.
    #[inline]
    pub fn pair_action(&self, send: &Transition, receive: &Transition) -> Action {
        let own = if receive.process > send.process { send.own_receives } else { 0 };
        Action(send.action + receive.action - own)
    }
}

/// The number of the variable that is assigned, whole or in part.
pub fn assigned(program: &Program, target: Target) -> u32 {
    let cell = match target {
        Target::Cell(cell) => cell,
        Target::Element { array, .. } => program.arrays[array.0 as usize].first,
    };
    match program.cells[cell.0 as usize].owner {
        Owner::Variable(variable, _) => variable,
        other => unreachable!("only variables are assigned, not {other:?}"),
    }
}
