//! Lowers expressions, transitions and steps over declared names.
//!
//! In: the syntax tree, and the meanings of its names ([`check`](crate::check)). Out: the behaviour of the
//! program: transitions by location, channels with their senders and receivers, and the table of steps.

use crate::ast::{self, Node, Operator};
use crate::check::{Checker, Symbol};
use crate::ir::{
    Binary, ChannelId, Effect, Expr, ExprId, Location, ProcessId, Step, Sync, Target, Timing, Transition, TransitionId,
    Unary,
};
use deltamark_core::Diagnostic;
use deltamark_core::diagnostic::did_you_mean;

/// The maximum number of actions of a model: a model with more is a mistake, and a table of as many is affordable.
pub const MAX_ACTIONS: u64 = 1 << 24;

impl<'t> Checker<'t> {
    /// The meaning of a name: in the process first, then globally.
    fn lookup(&self, name: &str) -> Option<Symbol> {
        let inside = self.inside.and_then(|number| self.known[number].scope.get(name));
        self.local.get(name).or(inside).or_else(|| self.globals.get(name)).map(|&(symbol, _)| symbol)
    }

    /// The same, and reports an undeclared name.
    fn find(&mut self, name: ast::Name<'t>) -> Option<Symbol> {
        if let Some(symbol) = self.lookup(name.text) {
            return Some(symbol);
        }
        if self.is_full() {
            return None;
        }
        let inside = self.inside.map(|number| &self.known[number].scope);
        let names =
            self.local.keys().chain(inside.into_iter().flat_map(|scope| scope.keys())).chain(self.globals.keys());
        let mut names: Vec<&str> = names.copied().collect();
        names.sort_unstable();
        let help = did_you_mean(name.text, names).map(|near| format!("did you mean `{near}`?"));
        self.wrong(Diagnostic {
            help,
            ..Diagnostic::at(name.span, format!("there is no variable or constant `{}`", name.text))
        });
        None
    }

    /// Lowers an expression. `None`: an error has been reported.
    pub fn lower(&mut self, expr: &ast::Expr<'t>) -> Option<ExprId> {
        if self.is_full() {
            return None;
        }
        match &expr.node {
            Node::Number(value) => Some(self.pool.constant(*value)),
            Node::Name(name) => {
                let symbol = self.find(*name)?;
                self.read(symbol, *name, None)
            }
            Node::Index(name, index) => {
                let symbol = self.find(*name);
                let index = (self.lower(index), index.span);
                self.read(symbol?, *name, Some((index.0?, index.1)))
            }
            Node::At(names) => self.at(names.0, names.1),
            Node::Of(parts) => self.of(parts.0, parts.1, parts.2.as_ref()),
            Node::Unary(operator, operand) => {
                let operand = self.lower(operand)?;
                Some(self.pool.unary(*operator, operand))
            }
            Node::Binary(operator, left, right) => {
                let (left, right) = (self.lower(left), self.lower(right));
                let (left, right) = (left?, right?);
                Some(match operator {
                    Operator::Plain(operator) => self.pool.binary(*operator, left, right),
                    Operator::Divide => self.pool.divide(false, left, right, true),
                    Operator::Remainder => self.pool.divide(true, left, right, true),
                    Operator::And => self.pool.and(left, right),
                    Operator::Or => self.pool.or(left, right),
                    Operator::Imply => {
                        let not = self.pool.unary(Unary::Not, left);
                        self.pool.or(not, right)
                    }
                })
            }
        }
    }

    /// The value of a variable or constant.
    fn read(
        &mut self,
        symbol: Symbol,
        name: ast::Name<'t>,
        index: Option<(ExprId, deltamark_core::Span)>,
    ) -> Option<ExprId> {
        match symbol {
            Symbol::Constant(value) if index.is_none() => Some(self.pool.constant(value)),
            Symbol::Table(table) => {
                let index = match index {
                    Some((index, _)) => index,
                    None => self.pool.constant(0),
                };
                let values = &self.program.tables[table.0 as usize].values;
                let known = self.pool.value(index).and_then(|index| values.get(usize::try_from(index).ok()?).copied());
                Some(match known {
                    Some(value) => self.pool.constant(value),
                    None => self.pool.add(Expr::Lookup { table, index, checked: true }),
                })
            }
            Symbol::Variable(number) => {
                let target = self.target(number, name, index)?;
                let known = |checker: &mut Self, cell: u32| {
                    let cells = &checker.program.cells;
                    checker.initially.then(|| cells[cell as usize].initial)
                };
                Some(match target {
                    Target::Cell(cell) => match known(self, cell.0) {
                        Some(value) => self.pool.constant(value),
                        None => self.pool.add(Expr::Cell(cell)),
                    },
                    Target::Element { array, index, checked } => self.pool.add(Expr::Element { array, index, checked }),
                })
            }
            Symbol::Constant(_) => {
                self.wrong(Diagnostic::at(name.span, format!("the constant `{}` is no array", name.text)));
                None
            }
            Symbol::State(_) => {
                let own = self.inside.map(|number| self.program_name(number)).unwrap_or_else(|| "P".into());
                self.wrong(
                    Diagnostic::at(name.span, format!("`{}` is a state, not a number", name.text))
                        .help(format!("write `{own}.{}` for whether the process is in it", name.text)),
                );
                None
            }
            Symbol::Channel(_) | Symbol::Process(_) => {
                let diagnostic =
                    Diagnostic::at(name.span, format!("`{}` is {}, not a number", name.text, symbol.what()));
                self.wrong(match symbol {
                    Symbol::Process(_) => {
                        diagnostic.help(format!("write `{}.q` for whether it is in state `q`", name.text))
                    }
                    _ => diagnostic.help("an expression cannot look into a channel; use it behind `sync`"),
                });
                None
            }
        }
    }

    /// The name of a process, by its number in the text.
    fn program_name(&self, number: usize) -> String {
        match (self.known[number].id, &self.program.monitor) {
            (Some(id), _) => self.program.processes[id.0 as usize].name.clone(),
            (None, Some(monitor)) => monitor.process.name.clone(),
            (None, None) => "P".into(),
        }
    }

    /// A variable, or an element of one; a bare array is its first element.
    fn target(
        &mut self,
        variable: u32,
        name: ast::Name<'t>,
        index: Option<(ExprId, deltamark_core::Span)>,
    ) -> Option<Target> {
        let first = self.program.variables[variable as usize].first;
        let Some((index, span)) = index else { return Some(Target::Cell(first)) };
        let (Some(array), Some(length)) = (self.array_of(variable), self.program.variables[variable as usize].length)
        else {
            self.wrong(Diagnostic::at(name.span, format!("`{}` is no array", name.text)));
            return None;
        };
        match self.pool.value(index) {
            Some(value) if (0..length as i32).contains(&value) => {
                Some(Target::Cell(crate::ir::CellId(first.0 + value as u32)))
            }
            Some(value) if self.initially => {
                self.wrong(Diagnostic::at(span, format!("`{}` has no element {value}", name.text)));
                None
            }
            // An index that is always out of bounds is a fault when it is reached, not before.
            _ => Some(Target::Element { array, index, checked: true }),
        }
    }

    /// The process of this name, by its number in the text, unless it may not be used here.
    fn other(&mut self, name: ast::Name<'t>) -> Option<usize> {
        if self.initially {
            self.wrong(Diagnostic::at(name.span, "an initial value or size cannot depend on a process"));
            return None;
        }
        let Some(&(Symbol::Process(number), _)) = self.globals.get(name.text) else {
            let processes = self.globals.iter().filter(|(_, (symbol, _))| matches!(symbol, Symbol::Process(_)));
            let mut names: Vec<&str> = processes.map(|(&name, _)| name).collect();
            names.sort_unstable();
            let help = did_you_mean(name.text, names).map(|near| format!("did you mean `{near}`?"));
            self.wrong(Diagnostic {
                help,
                ..Diagnostic::at(name.span, format!("there is no process `{}`", name.text))
            });
            return None;
        };
        let own = self.inside == Some(number);
        if self.known[number].id.is_none() && !own {
            self.wrong(
                Diagnostic::at(name.span, format!("`{}` is the property process, which only watches", name.text))
                    .help("other processes cannot depend on it"),
            );
            return None;
        }
        Some(number)
    }

    /// `P.q`
    fn at(&mut self, process: ast::Name<'t>, state: ast::Name<'t>) -> Option<ExprId> {
        let number = self.other(process)?;
        let known = &self.known[number];
        let Some(&(Symbol::State(location), _)) = known.scope.get(state.text) else {
            let states = known.scope.iter().filter(|(_, (symbol, _))| matches!(symbol, Symbol::State(_)));
            let mut names: Vec<&str> = states.map(|(&name, _)| name).collect();
            names.sort_unstable();
            let message = format!("process `{}` has no state `{}`", process.text, state.text);
            let help = match known.scope.get(state.text) {
                Some((Symbol::Variable(_), _)) => {
                    Some(format!("read its variable as `{}->{}`", process.text, state.text))
                }
                _ => did_you_mean(state.text, names).map(|near| format!("did you mean `{near}`?")),
            };
            self.wrong(Diagnostic { help, ..Diagnostic::at(state.span, message) });
            return None;
        };
        let cell = self.pool.add(Expr::Cell(known.location));
        let location = self.pool.constant(location as i32);
        Some(self.pool.binary(Binary::Equal, cell, location))
    }

    /// `P->x` and `P->a[e]`
    fn of(&mut self, process: ast::Name<'t>, variable: ast::Name<'t>, index: Option<&ast::Expr<'t>>) -> Option<ExprId> {
        let number = self.other(process)?;
        let index = match index {
            Some(index) => Some((self.lower(index)?, index.span)),
            None => None,
        };
        let found = self.known[number].scope.get(variable.text).or_else(|| self.globals.get(variable.text));
        match found {
            Some(&(symbol @ (Symbol::Variable(_) | Symbol::Constant(_) | Symbol::Table(_)), _)) => {
                self.read(symbol, variable, index)
            }
            other => {
                let message = format!("process `{}` has no variable `{}`", process.text, variable.text);
                let help = match other {
                    Some((Symbol::State(_), _)) => {
                        Some(format!("write `{}.{}` for whether it is in that state", process.text, variable.text))
                    }
                    _ => None,
                };
                self.wrong(Diagnostic { help, ..Diagnostic::at(variable.span, message) });
                None
            }
        }
    }

    /// The target of an effect or a receive.
    fn lvalue(&mut self, lvalue: &ast::Lvalue<'t>, monitor: bool) -> Option<Target> {
        let name = lvalue.name;
        let symbol = self.find(name);
        let index = match &lvalue.index {
            Some(index) => Some((self.lower(index)?, index.span)),
            None => None,
        };
        match symbol? {
            Symbol::Variable(variable) => {
                if monitor && !self.program.variables[variable as usize].of_monitor {
                    self.wrong(
                        Diagnostic::at(name.span, format!("the property process assigns the global `{}`", name.text))
                            .help("it only watches: it may assign its own variables"),
                    );
                    return None;
                }
                self.target(variable, name, index)
            }
            symbol => {
                self.wrong(Diagnostic::at(
                    name.span,
                    format!("`{}` is {} and cannot be assigned", name.text, symbol.what()),
                ));
                None
            }
        }
    }

    /// Checks the transitions and assertions of a process.
    pub fn behaviour(&mut self, process: &ast::Process<'t>, number: usize, monitor: bool) {
        self.inside = Some(number);
        let id = self.known[number].id.unwrap_or(ProcessId(u32::MAX));
        let mut transitions: Vec<Transition> = Vec::with_capacity(process.transitions.len());
        for transition in &process.transitions {
            if self.is_full() {
                return;
            }
            let mut state = |name: ast::Name<'t>| match self.known[number].scope.get(name.text) {
                Some((Symbol::State(location), _)) => Some(*location),
                _ => {
                    self.no_state(name, process);
                    None
                }
            };
            let (from, to) = (state(transition.from), state(transition.to));
            let mut guard = Some(self.pool.constant(1));
            for expr in &transition.guards {
                let next = self.lower(expr);
                guard = guard.zip(next).map(|(guard, next)| self.pool.and(guard, next));
            }
            let sync = self.sync(transition.sync.as_ref(), monitor);
            let mut effects = Vec::with_capacity(transition.effects.len());
            for (lvalue, value) in &transition.effects {
                let (target, value) = (self.lvalue(lvalue, monitor), self.lower(value));
                if let (Some(target), Some(value)) = (target, value) {
                    effects.push(Effect { target, value, checked: true });
                }
            }
            let place = self.place(transition.span);
            if let (Some(from), Some(to), Some(guard), Some(sync)) = (from, to, guard, sync) {
                transitions.push(Transition {
                    process: id,
                    from,
                    to,
                    guard,
                    sync,
                    effects,
                    place,
                    action: 0,
                    own_receives: 0,
                });
            }
        }
        // A stable sort: within a location the order of the text is kept.
        transitions.sort_by_key(|transition| transition.from);
        let mut asserts = Vec::new();
        for (state, expr) in &process.asserts {
            let condition = self.lower(expr);
            match (self.known[number].scope.get(state.text), condition) {
                (Some((Symbol::State(location), _)), Some(condition)) => {
                    asserts.push((*location, condition, self.place(expr.span)));
                }
                (Some((Symbol::State(_), _)), None) => {}
                _ => self.no_state(*state, process),
            }
        }
        let first = if monitor { 0 } else { self.program.transitions.len() as u32 };
        let locations: &mut [Location] = match self.known[number].id {
            Some(id) => &mut self.program.processes[id.0 as usize].locations,
            None => self.program.monitor.as_mut().map_or(&mut [], |monitor| &mut monitor.process.locations),
        };
        for (number, location) in locations.iter_mut().enumerate() {
            let start = transitions.partition_point(|transition| transition.from < number as u32) as u32;
            let end = transitions.partition_point(|transition| transition.from <= number as u32) as u32;
            location.transitions = first + start..first + end;
        }
        for (location, condition, place) in asserts {
            locations[location as usize].asserts.push((condition, place));
            self.program.has_asserts |= !monitor;
        }
        match &mut self.program.monitor {
            Some(kept) if monitor => kept.transitions = transitions,
            _ => self.program.transitions.extend(transitions),
        }
        self.inside = None;
    }

    fn sync(&mut self, sync: Option<&ast::Sync<'t>>, monitor: bool) -> Option<Sync> {
        let (name, count) = match sync {
            None => return Some(Sync::None),
            Some(ast::Sync::Send(name, values)) => (*name, values.len()),
            Some(ast::Sync::Receive(name, targets)) => (*name, targets.len()),
        };
        let channel = match self.lookup(name.text) {
            Some(Symbol::Channel(channel)) => channel,
            Some(symbol) => {
                self.wrong(Diagnostic::at(name.span, format!("`{}` is {}, no channel", name.text, symbol.what())));
                return None;
            }
            None => {
                let names = self.program.channels.iter().map(|channel| channel.name.as_str());
                let help = match did_you_mean(name.text, names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("declare it: `channel {};`", name.text),
                };
                self.wrong(Diagnostic::at(name.span, format!("there is no channel `{}`", name.text)).help(help));
                return None;
            }
        };
        let arity = self.program.channels[channel.0 as usize].arity;
        if count as u32 != arity {
            let typed = self.program.channels[channel.0 as usize].types.is_some();
            let why = if typed { "its declaration says so" } else { "its first use does" };
            let values = |count: u32| if count == 1 { "1 value".to_string() } else { format!("{count} values") };
            self.wrong(
                Diagnostic::at(name.span, format!("`{}` has {} here", name.text, values(count as u32)))
                    .help(format!("a message over it has {}: {why}", values(arity))),
            );
            return None;
        }
        match sync {
            Some(ast::Sync::Send(_, values)) => {
                if monitor {
                    self.wrong(Diagnostic::at(name.span, "the property process cannot send").help("it only watches"));
                    return None;
                }
                let values: Vec<Option<ExprId>> = values.iter().map(|value| self.lower(value)).collect();
                Some(Sync::Send(channel, values.into_iter().collect::<Option<_>>()?))
            }
            Some(ast::Sync::Receive(_, targets)) => {
                let targets: Vec<Option<Target>> = targets.iter().map(|target| self.lvalue(target, monitor)).collect();
                Some(Sync::Receive(channel, targets.into_iter().collect::<Option<_>>()?))
            }
            None => Some(Sync::None),
        }
    }

    /// Numbers the steps.
    pub fn steps(&mut self) {
        match self.program.timing {
            Timing::Asynchronous => self.asynchronous(),
            Timing::Synchronous => self.synchronous(),
        }
    }

    fn asynchronous(&mut self) {
        let program = &mut self.program;
        for (number, transition) in program.transitions.iter().enumerate() {
            let id = TransitionId(number as u32);
            match transition.sync {
                Sync::None => {}
                Sync::Send(channel, _) => program.channels[channel.0 as usize].sends.push(id),
                Sync::Receive(channel, _) => program.channels[channel.0 as usize].receives.push(id),
            }
        }
        let unbuffered = program.channels.iter().filter(|channel| channel.buffer.is_none());
        let pairs: u64 = unbuffered.map(|channel| channel.sends.len() as u64 * channel.receives.len() as u64).sum();
        if pairs + program.transitions.len() as u64 > MAX_ACTIONS {
            self.wrong(Diagnostic::new(format!(
                "the model has up to {pairs} pairs of a send and a receive; at most {MAX_ACTIONS} are accepted"
            )));
            return;
        }
        if self.is_stopped_for(pairs * size_of::<Step>() as u64) {
            return;
        }
        let program = &mut self.program;
        let mut steps: Vec<Step> = Vec::new();
        let assigned: Vec<Vec<u32>> = (0..program.transitions.len()).map(|number| globals(program, number)).collect();
        for number in 0..program.transitions.len() {
            let id = TransitionId(number as u32);
            let channel = match program.transitions[number].sync {
                Sync::Send(channel, _) | Sync::Receive(channel, _) => Some(channel),
                Sync::None => None,
            };
            let Some(channel) = channel.filter(|&ChannelId(c)| program.channels[c as usize].buffer.is_none()) else {
                program.transitions[number].action = steps.len() as u32;
                steps.push(Step::Alone(id));
                continue;
            };
            let receives = &program.channels[channel.0 as usize].receives;
            if matches!(program.transitions[number].sync, Sync::Receive(..)) {
                let rank = receives.partition_point(|&other| other < id);
                program.transitions[number].action = rank as u32;
                continue;
            }
            let process = program.transitions[number].process;
            program.transitions[number].action = steps.len() as u32;
            let mut own = 0;
            for &receive in receives {
                if program.transitions[receive.0 as usize].process == process {
                    own += 1;
                    continue;
                }
                let other = &assigned[receive.0 as usize];
                let conflict = assigned[number].iter().copied().find(|variable| other.contains(variable));
                steps.push(Step::Pair { send: id, receive, conflict });
            }
            program.transitions[number].own_receives = own;
        }
        program.action_count = steps.len() as u32;
        program.steps = steps;
    }

    fn synchronous(&mut self) {
        let mut radix = Vec::with_capacity(self.program.processes.len());
        let mut product = 1u64;
        for process in &self.program.processes {
            radix.push(product as u32);
            let most = process.locations.iter().map(|location| location.transitions.len()).max().unwrap_or(0);
            product = product.saturating_mul(most.max(1) as u64);
            if product > u64::from(u32::MAX) {
                self.wrong(Diagnostic::new(
                    "the processes of this synchronous system have more combinations of transitions than can be numbered",
                ));
                return;
            }
        }
        self.program.radix = radix;
        self.program.action_count = product as u32;
    }
}

/// The global variables that the effects of a transition assign.
fn globals(program: &crate::ir::Program, transition: usize) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    for effect in &program.transitions[transition].effects {
        let variable = crate::ir::assigned(program, effect.target);
        if program.variables[variable as usize].process.is_none() && !found.contains(&variable) {
            found.push(variable);
        }
    }
    found
}
