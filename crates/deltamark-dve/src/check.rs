//! Name resolution: a syntax tree into a program with names, sizes and initial values.
//!
//! In: the syntax tree. Out: a [`Program`] whose cells have no fields yet, or diagnostics. What stays true: every
//! name has one meaning; after an error, checking continues with whatever can still be checked.
//!
//! This file handles declarations; [`lower`](crate::lower) turns expressions and transitions into the intermediate
//! representation.

use crate::ast;
use crate::ir::{
    Accept, Array, ArrayId, Buffer, Cell, CellId, Channel, ChannelId, Location, Monitor, Owner, Process, ProcessId,
    Program, Table, TableId, TextPlace, Timing, Type, Variable,
};
use crate::pool::Pool;
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Control, Diagnostic, Field, Findings, Span};
use std::collections::HashMap;

/// The maximum number of cells of a state: a mistyped size should not exhaust memory.
pub const MAX_CELLS: usize = 1 << 20;

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    Constant(i32),
    Table(TableId),
    /// By its number among the variables.
    Variable(u32),
    Channel(ChannelId),
    /// By its number in the text.
    Process(usize),
    /// A location, by its number in its process.
    State(u32),
}

impl Symbol {
    pub fn what(self) -> &'static str {
        match self {
            Symbol::Constant(_) | Symbol::Table(_) => "a constant",
            Symbol::Variable(_) => "a variable",
            Symbol::Channel(_) => "a channel",
            Symbol::Process(_) => "a process",
            Symbol::State(_) => "a state",
        }
    }
}

/// Names and their meanings.
pub(crate) type Scope<'t> = HashMap<&'t str, (Symbol, Span)>;

/// A process as the checker sees it.
pub(crate) struct KnownProcess<'t> {
    pub scope: Scope<'t>,
    /// Its number in the program; `None` for the monitor.
    pub id: Option<ProcessId>,
    /// The cell of its location.
    pub location: CellId,
}

pub(crate) struct Checker<'t> {
    /// The offsets of line starts.
    lines: Vec<usize>,
    pub findings: Findings,
    pub program: Program,
    pub pool: Pool,
    pub globals: Scope<'t>,
    /// The processes in the order of the text.
    pub known: Vec<KnownProcess<'t>>,
    /// The names of the process that is being declared.
    pub local: Scope<'t>,
    /// The process whose behaviour is being checked, by its number in the text.
    pub inside: Option<usize>,
    /// Whether a variable denotes its initial value.
    pub initially: bool,
}

/// Checks a model, unless `control` stops it.
pub(crate) fn check(text: &str, model: &ast::Model<'_>, control: &Control) -> Result<(Program, Pool), Vec<Diagnostic>> {
    let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut checker = Checker {
        lines,
        findings: Findings::under(control),
        program: Program::default(),
        pool: Pool::default(),
        globals: Scope::new(),
        known: Vec::new(),
        local: Scope::new(),
        inside: None,
        initially: false,
    };
    checker.model(model);
    checker.findings.or_as_found((checker.program, checker.pool))
}

/// The bytes of a cell.
const CELL: u64 = size_of::<Cell>() as u64;
/// For longer arrays, `control` is asked before they are allocated.
const LONG: u32 = 1000;

impl<'t> Checker<'t> {
    pub fn place(&self, span: Span) -> TextPlace {
        TextPlace { span, line: self.lines.partition_point(|&start| start <= span.start) as u32 }
    }

    pub fn wrong(&mut self, diagnostic: Diagnostic) {
        self.findings.add(|| diagnostic);
    }

    /// Whether the limit of diagnostics is reached. Checked before searching names to suggest, which takes time.
    pub fn is_full(&self) -> bool {
        self.findings.is_full()
    }

    /// Whether the run must end; then nothing of what is made here is used.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped_for(0)
    }

    /// The same, before this many bytes are allocated at once.
    pub fn is_stopped_for(&self, bytes: u64) -> bool {
        self.findings.is_stopped_for(bytes)
    }

    fn model(&mut self, model: &ast::Model<'t>) {
        self.program.timing = if model.synchronous { Timing::Synchronous } else { Timing::Asynchronous };
        // Channels and processes first: variables may not take their names, and initial values may not use them.
        for (number, channel) in model.channels.iter().enumerate() {
            self.define(false, channel.name, Symbol::Channel(ChannelId(number as u32)));
        }
        for (number, process) in model.processes.iter().enumerate() {
            self.define(false, process.name, Symbol::Process(number));
        }
        for declaration in &model.declarations {
            self.declare(declaration, None);
        }
        for channel in &model.channels {
            self.channel(channel, model);
        }
        if model.processes.is_empty() && self.findings.is_empty() {
            self.wrong(Diagnostic::new("the model has no process").help("a model has at least one"));
        }
        let monitor = model.property.and_then(|name| {
            let found = model.processes.iter().position(|process| process.name.text == name.text);
            if found.is_none() {
                let names = model.processes.iter().map(|process| process.name.text);
                let diagnostic = Diagnostic::at(name.span, format!("there is no process `{}`", name.text));
                let help = did_you_mean(name.text, names).map(|near| format!("did you mean `{near}`?"));
                self.wrong(Diagnostic { help, ..diagnostic });
            }
            found
        });
        // The monitor's cells come last, wherever it is in the text.
        let mut order: Vec<usize> = (0..model.processes.len()).filter(|&number| Some(number) != monitor).collect();
        order.extend(monitor);
        let mut knowns: Vec<Option<KnownProcess<'t>>> = model.processes.iter().map(|_| None).collect();
        for (id, &number) in order.iter().enumerate() {
            let is_monitor = Some(number) == monitor;
            let id = (!is_monitor).then_some(ProcessId(id as u32));
            knowns[number] = Some(self.declare_process(&model.processes[number], id));
        }
        self.known = knowns.into_iter().flatten().collect();
        if self.program.cells.len() > MAX_CELLS {
            self.wrong(Diagnostic::new(format!(
                "a state has {} variables, array elements and buffered values; at most {MAX_CELLS} are accepted",
                self.program.cells.len()
            )));
            return;
        }
        for &number in &order {
            if self.is_stopped() {
                return;
            }
            self.behaviour(&model.processes[number], number, Some(number) == monitor);
        }
        if self.findings.is_empty() {
            self.steps();
        }
    }

    /// Defines a name in the process that is being declared, or globally.
    fn define(&mut self, local: bool, name: ast::Name<'t>, symbol: Symbol) {
        let scope = if local { &mut self.local } else { &mut self.globals };
        if let Some(&(before, span)) = scope.get(name.text) {
            let line = self.lines.partition_point(|&start| start <= span.start);
            self.wrong(
                Diagnostic::at(name.span, format!("`{}` is declared twice", name.text))
                    .help(format!("it is {} already, in line {line}", before.what())),
            );
            return;
        }
        scope.insert(name.text, (symbol, name.span));
    }

    /// A constant of at least `least`.
    fn size(&mut self, size: &ast::Expr<'t>, least: i32, what: &str) -> Option<u32> {
        let value = self.constant(size)?;
        if (least..=MAX_CELLS as i32).contains(&value) {
            return Some(value as u32);
        }
        self.wrong(Diagnostic::at(size.span, format!("{what} {value} is not between {least} and {MAX_CELLS}")));
        None
    }

    /// An expression whose value is known statically; variables have their initial values.
    fn constant(&mut self, expr: &ast::Expr<'t>) -> Option<i32> {
        let before = std::mem::replace(&mut self.initially, true);
        let id = self.lower(expr);
        self.initially = before;
        let id = id?;
        let value = self.pool.value(id);
        if value.is_none() {
            self.wrong(Diagnostic::at(expr.span, "this divides by zero, or goes outside of an array"));
        }
        value
    }

    /// Adds a cell without a field.
    fn cell(&mut self, owner: Owner, allowed: (i32, i32), initial: i32) -> CellId {
        let id = CellId(self.program.cells.len() as u32);
        // More are counted, for the message, but not kept.
        self.program.cells.push(Cell {
            owner,
            allowed,
            values: allowed,
            field: Field::default(),
            wraps: false,
            initial,
        });
        id
    }

    /// Declares a variable or constant: global, of a process or, if that has no number, of the monitor.
    fn declare(&mut self, declaration: &ast::Declaration<'t>, owner: Option<Option<ProcessId>>) {
        let ast::Declaration { constant, kind, name, size, initial } = declaration;
        let length = match size {
            None => None,
            Some(size) => match self.size(size, 1, "the size") {
                Some(length) => Some(length),
                // Declared all the same, so that its uses are not reported.
                None => Some(1),
            },
        };
        if self.program.cells.len() + length.unwrap_or(1) as usize > MAX_CELLS {
            self.wrong(Diagnostic::at(name.span, format!("a state holds at most {MAX_CELLS} numbers")));
            return;
        }
        // Vectors grow by doubling, so twice as much is held for a moment.
        if length.is_some_and(|length| length > LONG && self.is_stopped_for(3 * u64::from(length) * CELL)) {
            return;
        }
        let mut values = match (initial, length) {
            (ast::Initial::None, _) if *constant => {
                self.wrong(
                    Diagnostic::at(name.span, format!("the constant `{}` has no value", name.text))
                        .help("write `= value` behind it"),
                );
                vec![0; length.unwrap_or(1) as usize]
            }
            (ast::Initial::None, _) => Vec::new(),
            (ast::Initial::One(value), None) => vec![self.initial(value, *kind, name)],
            (ast::Initial::One(value), Some(_)) => {
                self.wrong(
                    Diagnostic::at(value.span, format!("the array `{}` begins with one number", name.text))
                        .help("write a list: `{1, 2, 3}`; what it leaves out is 0"),
                );
                Vec::new()
            }
            (ast::Initial::List(_, span), None) => {
                self.wrong(
                    Diagnostic::at(*span, format!("`{}` is no array, but begins with a list", name.text))
                        .help(format!("write `{}[…]` to make it one", name.text)),
                );
                Vec::new()
            }
            (ast::Initial::List(list, _), Some(length)) => {
                // Surplus values are dropped; they need not even fit.
                list.iter().take(length as usize).map(|value| self.initial(value, *kind, name)).collect()
            }
        };
        values.resize(length.unwrap_or(1) as usize, 0);
        let symbol = match (*constant, length) {
            (true, None) => Symbol::Constant(values[0]),
            (true, Some(_)) => {
                self.program.tables.push(Table { name: name.text.into(), values });
                Symbol::Table(TableId(self.program.tables.len() as u32 - 1))
            }
            (false, _) => {
                let variable = self.program.variables.len() as u32;
                let first = CellId(self.program.cells.len() as u32);
                for (index, &value) in values.iter().enumerate() {
                    self.cell(Owner::Variable(variable, index as u32), kind.range(), value);
                }
                if let Some(length) = length {
                    self.program.arrays.push(Array { first, length, variable });
                }
                self.program.variables.push(Variable {
                    name: name.text.into(),
                    process: owner.flatten(),
                    of_monitor: owner == Some(None),
                    kind: *kind,
                    first,
                    length,
                });
                Symbol::Variable(variable)
            }
        };
        self.define(owner.is_some(), *name, symbol);
    }

    fn initial(&mut self, expr: &ast::Expr<'t>, kind: Type, name: &ast::Name<'t>) -> i32 {
        let Some(value) = self.constant(expr) else { return 0 };
        let (least, most) = kind.range();
        if (least..=most).contains(&value) {
            return value;
        }
        self.wrong(Diagnostic::at(expr.span, format!("`{}` cannot begin with {value}", name.text)).help(format!(
            "{} `{}` holds {least} to {most}",
            kind.article(),
            kind.word()
        )));
        0
    }

    fn channel(&mut self, channel: &ast::Channel<'t>, model: &ast::Model<'t>) {
        let id = ChannelId(self.program.channels.len() as u32);
        let size = channel.size.as_ref().and_then(|size| Some((self.size(size, 0, "the size")?, size.span)));
        if let (None, Some((_, span))) = (&channel.types, size) {
            self.wrong(
                Diagnostic::at(span, format!("the channel `{}` has a size but no types", channel.name.text))
                    .help(format!("write `channel {{byte}} {}[…]`", channel.name.text)),
            );
        }
        let arity = match &channel.types {
            Some(types) => types.len() as u32,
            None => first_use(channel.name.text, model),
        };
        let capacity = size.map_or(0, |(size, _)| size);
        let mut buffer = None;
        if let (Some(types), 1..) = (&channel.types, capacity) {
            let cells = (capacity as usize).saturating_mul(types.len()) + self.program.cells.len();
            // In a synchronous system no message is ever sent.
            if cells > MAX_CELLS {
                self.wrong(Diagnostic::at(channel.name.span, format!("a state holds at most {MAX_CELLS} numbers")));
            } else if self.program.timing == Timing::Asynchronous
                && !(capacity > LONG && self.is_stopped_for(3 * cells as u64 * CELL))
            {
                let length = self.cell(Owner::Length(id), (0, capacity as i32), 0);
                let first = CellId(length.0 + 1);
                for message in 0..capacity {
                    for (value, kind) in types.iter().enumerate() {
                        self.cell(Owner::Item(id, message, value as u32), kind.range(), 0);
                    }
                }
                buffer = Some(Buffer { capacity, length, first });
            }
        }
        self.program.channels.push(Channel {
            name: channel.name.text.into(),
            types: channel.types.clone(),
            arity,
            buffer,
            sends: Vec::new(),
            receives: Vec::new(),
        });
    }

    /// Declares the states and variables of a process; one without a number is the monitor.
    fn declare_process(&mut self, process: &ast::Process<'t>, id: Option<ProcessId>) -> KnownProcess<'t> {
        let owner = id.map_or(Owner::Monitor, Owner::Location);
        let mut locations = Vec::with_capacity(process.states.len());
        for &state in &process.states {
            self.define(true, state, Symbol::State(locations.len() as u32));
            locations.push(Location { name: state.text.into(), ..Location::default() });
        }
        if locations.is_empty() {
            self.wrong(
                Diagnostic::at(process.name.span, format!("process `{}` has no states", process.name.text))
                    .help("list them behind `state`"),
            );
        }
        let find = |checker: &mut Self, state: ast::Name<'t>| match checker.local.get(state.text) {
            Some((Symbol::State(number), _)) => Some(*number),
            _ => {
                checker.no_state(state, process);
                None
            }
        };
        let initial = match process.init {
            Some(state) => find(self, state),
            None => {
                self.wrong(
                    Diagnostic::at(process.name.span, format!("process `{}` has no `init`", process.name.text))
                        .help("name the state it begins in: `init q;`"),
                );
                None
            }
        };
        for &state in &process.commit {
            if let Some(number) = find(self, state) {
                locations[number as usize].committed = true;
                self.program.has_commit |= id.is_some();
            }
        }
        let set = |checker: &mut Self, states: &[ast::Name<'t>]| -> Vec<u32> {
            states.iter().filter_map(|&state| find(checker, state)).collect()
        };
        let accept = match &process.accept {
            ast::Accept::None => Accept::None,
            ast::Accept::Buchi(states) => Accept::Buchi(set(self, states)),
            ast::Accept::Generalised(sets) => Accept::Generalised(sets.iter().map(|s| set(self, s)).collect()),
            ast::Accept::Muller(sets) => Accept::Muller(sets.iter().map(|s| set(self, s)).collect()),
            ast::Accept::Rabin(pairs) => {
                Accept::Rabin(pairs.iter().map(|p| (set(self, &p.0), set(self, &p.1))).collect())
            }
            ast::Accept::Streett(pairs) => {
                Accept::Streett(pairs.iter().map(|p| (set(self, &p.0), set(self, &p.1))).collect())
            }
        };
        let last = locations.len().saturating_sub(1) as i32;
        let location = self.cell(owner, (0, last), initial.unwrap_or(0) as i32);
        let done = Process { name: process.name.text.into(), location, locations, accept };
        match id {
            Some(_) => self.program.processes.push(done),
            None => self.program.monitor = Some(Monitor { process: done, transitions: Vec::new(), slots: 0 }),
        }
        for declaration in &process.declarations {
            self.declare(declaration, Some(id));
        }
        KnownProcess { scope: std::mem::take(&mut self.local), id, location }
    }

    /// Reports that a process has no such state.
    pub fn no_state(&mut self, state: ast::Name<'t>, process: &ast::Process<'t>) {
        if self.is_full() {
            return;
        }
        let names = process.states.iter().map(|state| state.text);
        let help = match did_you_mean(state.text, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "add it behind `state`".into(),
        };
        let message = format!("process `{}` has no state `{}`", process.name.text, state.text);
        self.wrong(Diagnostic::at(state.span, message).help(help));
    }

    /// The array of a variable.
    pub fn array_of(&self, variable: u32) -> Option<ArrayId> {
        let found = self.program.arrays.binary_search_by_key(&variable, |array| array.variable);
        found.ok().map(|index| ArrayId(index as u32))
    }
}

/// The number of values that the first use of an untyped channel carries.
fn first_use(channel: &str, model: &ast::Model<'_>) -> u32 {
    let transitions = model.processes.iter().flat_map(|process| &process.transitions);
    let uses = transitions.filter_map(|transition| match transition.sync.as_ref()? {
        ast::Sync::Send(name, values) => (name.text == channel).then_some(values.len()),
        ast::Sync::Receive(name, targets) => (name.text == channel).then_some(targets.len()),
    });
    uses.map(|count| count as u32).next().unwrap_or(0)
}
