//! Random models with numbers at and beyond the limits of types.
//!
//! In: a random generator. Out: a model that the language accepts. What stays true: the same seed gives the same
//! model.
//!
//! Constants are next to the ends of `byte`, `int` and 32 bits; indices and divisors fail now and then; there are
//! several effects in sequence, so that one may fail after others that did not. Most numbers are small
//! nevertheless: a model in which everything fails has one state.

use crate::model::{Channel, Expr, Model, Name, Place, Process, Sync, Transition, Variable, VariableType};
use deltamark_testkit::Rng;

const SMALL: [i32; 6] = [0, 1, 1, 2, 2, 3];
const EDGES: [i32; 22] = [
    4,
    5,
    7,
    8,
    31,
    32,
    33,
    100,
    127,
    128,
    254,
    255,
    256,
    257,
    32767,
    32768,
    32769,
    65535,
    65536,
    65537,
    i32::MAX,
    i32::MAX - 1,
];
const OPERATORS: [&str; 26] = [
    "imply", "or", "||", "and", "&&", "and", "or", "|", "^", "&", "==", "!=", "<", "<=", ">", ">=", "<<", ">>", "+",
    "-", "+", "-", "*", "/", "%", "%",
];

/// The size of models.
struct Scale {
    processes: usize,
    globals: usize,
    locals: usize,
    states: usize,
    transitions: usize,
    effects: usize,
    length: usize,
    depth: usize,
}

struct Generator<'r> {
    rng: &'r mut Rng,
    scale: Scale,
    model: Model,
    /// Expressions of the current process: some are repeated, so that sharing between transitions matters.
    before: Vec<(usize, Expr)>,
}

/// A random model.
pub fn generate(rng: &mut Rng) -> Model {
    // Most are small: the larger they are, the harder a failure is to shrink.
    let size = if rng.below(150) == 0 { 3 } else { [0, 0, 0, 1, 1, 2][rng.below(6)] };
    let scale = Scale {
        processes: 1 + rng.below(2 + size),
        globals: 1 + rng.below(3 + size),
        locals: rng.below(2 + size),
        states: 1 + rng.below(2 + size),
        transitions: 2 + rng.below([3, 5, 7, 90][size]),
        effects: 1 + rng.below(3 + size),
        length: 2 + rng.below([3, 6, 40, 300][size]),
        depth: 1 + rng.below(3 + size),
    };
    // All combinations of very many transitions would take too long.
    let synchronous = size < 3 && rng.below(10) == 0;
    let model = Model { globals: Vec::new(), channels: Vec::new(), processes: Vec::new(), synchronous };
    let mut generator = Generator { rng, scale, model, before: Vec::new() };
    generator.declare();
    generator.behave();
    generator.model
}

impl Generator<'_> {
    fn chance(&mut self, one_in: usize) -> bool {
        self.rng.below(one_in) == 0
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.rng.below(list.len())]
    }

    /// A number that can be written: not negative.
    fn number(&mut self) -> i32 {
        if self.chance(3) { self.pick(&EDGES) } else { self.pick(&SMALL) }
    }

    fn variable(&mut self) -> Variable {
        let kind = if self.chance(3) { VariableType::Int } else { VariableType::Byte };
        let length = self.chance(2).then(|| 1 + self.rng.below(self.scale.length));
        let constant = self.chance(8);
        let few = length.unwrap_or(1).min(6) + usize::from(self.chance(4) && length.is_some());
        let values = if constant || self.chance(2) { 1 + self.rng.below(few) } else { 0 };
        let (least, most) = kind.range();
        let initial = (0..values).map(|_| {
            let value = self.number();
            let value = if kind == VariableType::Int && self.chance(3) { -value } else { value };
            if (least..=most).contains(&value) { value } else { self.pick(&[least, most, most - 1, most / 2]) }
        });
        let initial = initial.collect();
        Variable { kind, constant, length, initial }
    }

    fn declare(&mut self) {
        for _ in 0..self.scale.globals {
            let variable = self.variable();
            self.model.globals.push(variable);
        }
        for _ in 0..self.rng.below(3) {
            let types = self.chance(2).then(|| {
                let count = 1 + self.rng.below(2);
                (0..count)
                    .map(|_| self.pick(&[VariableType::Byte, VariableType::Byte, VariableType::Int]))
                    .collect::<Vec<_>>()
            });
            let arity = types.as_ref().map_or_else(|| self.rng.below(3), Vec::len);
            let most = if self.chance(30) { 20 } else { 3 };
            let capacity = if types.is_some() { self.rng.below(most + 1) } else { 0 };
            self.model.channels.push(Channel { arity, types, capacity });
        }
        for _ in 0..self.scale.processes {
            let variables = (0..self.scale.locals).map(|_| self.variable()).collect();
            let count = 1 + self.rng.below(self.scale.states);
            let states = (0..count).map(|_| self.chance(20)).collect();
            let initial = self.rng.below(count);
            let process = Process { variables, states, initial, asserts: Vec::new(), transitions: Vec::new() };
            self.model.processes.push(process);
        }
    }

    fn behave(&mut self) {
        for process in 0..self.model.processes.len() {
            let states = self.model.processes[process].states.len();
            self.before.clear();
            for _ in 0..if self.chance(4) { 1 + self.rng.below(2) } else { 0 } {
                let assert = (self.rng.below(states), self.expr(process, self.scale.depth));
                self.model.processes[process].asserts.push(assert);
            }
            for _ in 0..1 + self.rng.below(self.scale.transitions) {
                let transition = self.transition(process, states);
                self.model.processes[process].transitions.push(transition);
            }
        }
    }

    fn transition(&mut self, process: usize, states: usize) -> Transition {
        let (from, to) = (self.rng.below(states), self.rng.below(states));
        let guards = if self.chance(3) { 1 + self.rng.below(2) } else { 0 };
        let guards = (0..guards).map(|_| self.expr(process, self.scale.depth)).collect();
        let sync = if self.chance(3) { self.sync(process) } else { Sync::None };
        let count = self.rng.below(self.scale.effects + 1);
        let effects = (0..count).filter_map(|_| self.effect(process)).collect();
        Transition { from, to, guards, sync, effects }
    }

    fn sync(&mut self, process: usize) -> Sync {
        if self.model.channels.is_empty() {
            return Sync::None;
        }
        let channel = self.rng.below(self.model.channels.len());
        let arity = self.model.channels[channel].arity;
        if self.chance(2) {
            return Sync::Send(channel, (0..arity).map(|_| self.expr(process, self.scale.depth - 1)).collect());
        }
        let places: Option<Vec<Place>> = (0..arity).map(|_| self.place(process)).collect();
        places.map_or(Sync::None, |places| Sync::Receive(channel, places))
    }

    /// A variable that this process may read, or assign.
    fn name(&mut self, process: usize, assigned: bool) -> Option<Name> {
        let globals = 0..self.model.globals.len();
        let locals = 0..self.model.processes[process].variables.len();
        let names: Vec<Name> = globals.map(Name::Global).chain(locals.map(Name::Local)).collect();
        let name = self.pick(&names);
        (!assigned || !self.model.variable(process, name).constant).then_some(name)
    }

    /// An index of an array of this length: mostly inside it.
    fn index(&mut self, process: usize, length: usize, depth: usize) -> Expr {
        let length = length as i32;
        match self.rng.below(8) {
            0 | 1 => Expr::Number(self.rng.below(length as usize) as i32),
            2 => {
                let edges = [length, length - 1, 255, 65535];
                Expr::Number(self.pick(&edges))
            }
            3 => {
                let other = self.rng.below(self.model.processes.len());
                Expr::At(other, self.rng.below(self.model.processes[other].states.len()))
            }
            4 | 5 => {
                let inside = self.expr(process, depth);
                Expr::Binary("%", inside.into(), Expr::Number(length).into())
            }
            6 => Expr::Binary(self.pick(&["and", "or", "imply", "==", "<"]), self.expr(process, depth).into(), {
                self.expr(process, depth).into()
            }),
            _ => self.expr(process, depth),
        }
    }

    fn place(&mut self, process: usize) -> Option<Place> {
        let name = self.name(process, true)?;
        let length = self.model.variable(process, name).length;
        let index = match length {
            Some(length) if !self.chance(6) => Some(self.index(process, length, self.scale.depth - 1)),
            _ => None,
        };
        Some(Place { name, index })
    }

    fn effect(&mut self, process: usize) -> Option<(Place, Expr)> {
        let place = self.place(process)?;
        let read = Expr::Read(place.name, place.index.clone().map(Box::new));
        let binary = |operator, left: Expr, right: Expr| Expr::Binary(operator, left.into(), right.into());
        let value = match self.rng.below(8) {
            0 => binary("-", Expr::Number(1), read),
            1 => {
                let modulus = self.pick(&[2, 3, 4]);
                binary("%", binary("+", read, Expr::Number(1)), Expr::Number(modulus))
            }
            2 => {
                let one = self.pick(&[1, 1, 2, 127]);
                binary(self.pick(&["+", "-"]), read, Expr::Number(one))
            }
            3 => Expr::Number(self.number()),
            4 | 5 => {
                let mask = self.pick(&[1, 3, 3, 255, 256]);
                binary("&", self.expr(process, self.scale.depth), Expr::Number(mask))
            }
            _ => self.expr(process, self.scale.depth),
        };
        Some((place, value))
    }

    fn expr(&mut self, process: usize, depth: usize) -> Expr {
        if !self.before.is_empty() && self.chance(8) {
            let (size, expr) = &self.before[self.rng.below(self.before.len())];
            if *size <= depth {
                return expr.clone();
            }
        }
        let expr = self.fresh(process, depth);
        if depth > 0 {
            self.before.push((depth, expr.clone()));
        }
        expr
    }

    fn fresh(&mut self, process: usize, depth: usize) -> Expr {
        match self.rng.below(if depth == 0 { 6 } else { 14 }) {
            0 if self.chance(3) => Expr::Unary(self.pick(&["-", "~"]), Expr::Number(self.number()).into()),
            0 | 1 => Expr::Number(self.number()),
            2..=4 => self.read(process, depth),
            5 => {
                let other = self.rng.below(self.model.processes.len());
                if self.chance(3) {
                    return self.foreign(process, other, depth);
                }
                Expr::At(other, self.rng.below(self.model.processes[other].states.len()))
            }
            6 | 7 => {
                let operator = self.pick(&["-", "~", "not", "not"]);
                Expr::Unary(operator, self.expr(process, depth - 1).into())
            }
            _ => {
                let operator = self.pick(&OPERATORS);
                let (left, right) = (self.expr(process, depth - 1), self.expr(process, depth - 1));
                Expr::Binary(operator, left.into(), right.into())
            }
        }
    }

    fn read(&mut self, process: usize, depth: usize) -> Expr {
        let Some(name) = self.name(process, false) else { return Expr::Number(0) };
        let length = self.model.variable(process, name).length;
        match length {
            Some(length) if !self.chance(6) => {
                Expr::Read(name, Some(self.index(process, length, depth.saturating_sub(1)).into()))
            }
            _ => Expr::Read(name, None),
        }
    }

    /// A variable of another process.
    fn foreign(&mut self, process: usize, other: usize, depth: usize) -> Expr {
        let count = self.model.processes[other].variables.len();
        if count == 0 {
            return Expr::Number(self.number());
        }
        let number = self.rng.below(count);
        let length = self.model.processes[other].variables[number].length;
        match length {
            Some(length) if !self.chance(6) => {
                Expr::Of(other, number, Some(self.index(process, length, depth.saturating_sub(1)).into()))
            }
            _ => Expr::Of(other, number, None),
        }
    }
}
