//! A program as text, to show what a model was compiled to.
//!
//! In: a program. Out: text, with everything that engines read: cells and their fields, processes with their
//! transitions, what may fault (marked `?`), and the table of actions. It is not meant to be parsed.

use crate::ir::{
    Binary, Cell, CellId, Effect, Expr, ExprId, Location, Owner, Program, Step, Sync, Target, Timing, Transition, Unary,
};
use crate::reference::name_of;
use std::fmt::{self, Display, Formatter};

/// Shows a program.
pub struct Dump<'p>(pub &'p Program);

impl Display for Dump<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let program = self.0;
        let state = program.state_cells();
        let bits: u32 = state.iter().map(|cell| u32::from(cell.field.bits())).sum();
        writeln!(
            f,
            "processes: {}; transitions: {}; actions: {}; bits of a state: {bits}; slots: {}; components begin at slots {:?}",
            program.processes.len(),
            program.transitions.len(),
            program.action_count,
            program.slots,
            program.boundaries
        )?;
        writeln!(f, "a `?` marks what may be a fault: an index `a[i]?`, a divisor `x /? y`, an assignment `x =? e`")?;
        writeln!(f, "\ncells")?;
        for (number, cell) in program.cells.iter().enumerate() {
            let name = self.cell(CellId(number as u32));
            let (least, most) = cell.values;
            write!(f, "  #{number:<4} {name:<24} {least}..{most:<6} initially {:<6} ", cell.initial)?;
            self.field(f, cell)?;
        }
        for table in &program.tables {
            writeln!(f, "  constants {} = {:?}", table.name, table.values)?;
        }
        for channel in &program.channels {
            let types = channel.types.as_ref().map(|types| types.iter().map(|kind| kind.word()).collect::<Vec<_>>());
            let types = types.map_or("untyped".into(), |types| types.join(", "));
            let buffer = channel.buffer.map_or("handed over".into(), |buffer| format!("buffer of {}", buffer.capacity));
            writeln!(f, "  channel {}: {types}, {} values, {buffer}", channel.name, channel.arity)?;
        }
        for process in &program.processes {
            writeln!(f, "\nprocess {}", process.name)?;
            let initial = program.cells[process.location.0 as usize].initial;
            for (number, location) in process.locations.iter().enumerate() {
                self.location(f, location, number as i32 == initial, &process.locations, &program.transitions)?;
            }
        }
        if let Some(monitor) = &program.monitor {
            writeln!(
                f,
                "\nproperty process {}, {:?}, left out of steps",
                monitor.process.name, monitor.process.accept
            )?;
            let locations = &monitor.process.locations;
            for (number, location) in locations.iter().enumerate() {
                let initial = program.cells[monitor.process.location.0 as usize].initial;
                self.location(f, location, number as i32 == initial, locations, &monitor.transitions)?;
            }
        }
        match program.timing {
            Timing::Asynchronous => {
                writeln!(f, "\nactions")?;
                for (number, step) in program.steps.iter().enumerate() {
                    match step {
                        Step::Alone(one) => writeln!(f, "  {number:<5} t{}", one.0)?,
                        Step::Pair { send, receive, conflict } => {
                            let wrong = conflict
                                .map(|variable| format!(", a fault: both assign {}", name_of(program, variable)));
                            writeln!(f, "  {number:<5} t{} to t{}{}", send.0, receive.0, wrong.unwrap_or_default())?;
                        }
                    }
                }
            }
            Timing::Synchronous => {
                writeln!(f, "\nall processes move at once; action = sum of transition × {:?}", program.radix)?
            }
        }
        Ok(())
    }
}

impl Dump<'_> {
    fn field(&self, f: &mut Formatter<'_>, cell: &Cell) -> fmt::Result {
        let (field, least) = (cell.field, cell.least());
        if field.bits() == 0 {
            return writeln!(f, "always {least}");
        }
        let (slot, first, last) = (field.slot(), field.shift(), field.shift() + field.bits() - 1);
        let wraps = if cell.wraps { ", modulo 256" } else { "" };
        writeln!(f, "slot {slot} bits {first}..{last} hold it less {least}{wraps}")
    }

    /// The name of a cell.
    fn cell(&self, cell: CellId) -> String {
        let program = self.0;
        match program.cells[cell.0 as usize].owner {
            Owner::Location(process) => program.processes[process.0 as usize].name.clone(),
            Owner::Variable(variable, index) => {
                let name = name_of(program, variable);
                let array = program.variables[variable as usize].length.is_some();
                if array { format!("{name}[{index}]") } else { name }
            }
            Owner::Length(channel) => format!("{}.length", program.channels[channel.0 as usize].name),
            Owner::Item(channel, message, value) => {
                format!("{}[{message}].{value}", program.channels[channel.0 as usize].name)
            }
            Owner::Monitor => program.monitor.as_ref().map_or_else(String::new, |m| m.process.name.clone()),
        }
    }

    fn location(
        &self,
        f: &mut Formatter<'_>,
        location: &Location,
        initial: bool,
        all: &[Location],
        transitions: &[Transition],
    ) -> fmt::Result {
        let marks = [(initial, " initial"), (location.committed, " committed")];
        let marks: String = marks.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
        writeln!(f, "  state {}{marks}", location.name)?;
        for (condition, place) in &location.asserts {
            writeln!(f, "    assert {} (line {})", self.expr(*condition), place.line)?;
        }
        for number in location.transitions.clone() {
            let one = &transitions[number as usize];
            writeln!(f, "    t{number} -> {} (line {})", all[one.to as usize].name, one.place.line)?;
            if self.0.expr(one.guard) != Expr::Const(1) {
                writeln!(f, "      guard {}", self.expr(one.guard))?;
            }
            match &one.sync {
                Sync::None => {}
                Sync::Send(channel, values) => {
                    let values: Vec<String> = values.iter().map(|&value| self.expr(value)).collect();
                    writeln!(f, "      sync {}!{{{}}}", self.0.channels[channel.0 as usize].name, values.join(", "))?;
                }
                Sync::Receive(channel, targets) => {
                    let targets: Vec<String> = targets.iter().map(|&target| self.target(target)).collect();
                    writeln!(f, "      sync {}?{{{}}}", self.0.channels[channel.0 as usize].name, targets.join(", "))?;
                }
            }
            for &Effect { target, value, checked } in &one.effects {
                let sign = if checked { "=?" } else { "=" };
                writeln!(f, "      {} {sign} {}", self.target(target), self.expr(value))?;
            }
        }
        Ok(())
    }

    fn target(&self, target: Target) -> String {
        match target {
            Target::Cell(cell) => self.cell(cell),
            Target::Element { array, index, checked } => {
                let name = name_of(self.0, self.0.arrays[array.0 as usize].variable);
                format!("{name}[{}]{}", self.expr(index), if checked { "?" } else { "" })
            }
        }
    }

    /// An expression; binary operations are in parentheses.
    fn expr(&self, id: ExprId) -> String {
        let mark = |checked: bool| if checked { "?" } else { "" };
        match self.0.expr(id) {
            Expr::Const(value) => value.to_string(),
            Expr::Cell(cell) => self.cell(cell),
            Expr::Element { array, index, checked } => {
                let name = name_of(self.0, self.0.arrays[array.0 as usize].variable);
                format!("{name}[{}]{}", self.expr(index), mark(checked))
            }
            Expr::Lookup { table, index, checked } => {
                format!("{}[{}]{}", self.0.tables[table.0 as usize].name, self.expr(index), mark(checked))
            }
            Expr::Unary(operator, operand) => {
                let sign = match operator {
                    Unary::Negate => "-",
                    Unary::Complement => "~",
                    Unary::Not => "not ",
                };
                format!("{sign}{}", self.expr(operand))
            }
            Expr::Binary(operator, left, right) => {
                // A location is shown by its name.
                if let (Expr::Cell(cell), Expr::Const(value)) = (self.0.expr(left), self.0.expr(right))
                    && let Owner::Location(process) = self.0.cells[cell.0 as usize].owner
                    && let Some(location) = self.0.processes[process.0 as usize].locations.get(value as usize)
                {
                    return format!("({} {} .{})", self.cell(cell), sign(operator), location.name);
                }
                format!("({} {} {})", self.expr(left), sign(operator), self.expr(right))
            }
            Expr::Divide { remainder, left, right, checked } => {
                let sign = if remainder { "%" } else { "/" };
                format!("({} {sign}{} {})", self.expr(left), mark(checked), self.expr(right))
            }
            Expr::And(left, right) => format!("({} and {})", self.expr(left), self.expr(right)),
            Expr::Or(left, right) => format!("({} or {})", self.expr(left), self.expr(right)),
        }
    }
}

fn sign(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::ShiftLeft => "<<",
        Binary::ShiftRight => ">>",
        Binary::BitAnd => "&",
        Binary::BitOr => "|",
        Binary::BitXor => "^",
        Binary::Equal => "==",
        Binary::Differ => "!=",
        Binary::Less => "<",
        Binary::AtMost => "<=",
        Binary::More => ">",
        Binary::AtLeast => ">=",
    }
}
