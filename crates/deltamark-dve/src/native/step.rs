//! Emits the effects of a step.
//!
//! In: transitions. Out: instructions that make the target from the source, or jump to the block for faults. What
//! stays true: the order is that of [`ir`](crate::ir): transfer, receiver, sender; every check that the program
//! requires is made.

use super::emitter::{Emitter, Number};
use crate::ir::{ArrayId, Buffer, Cell, CellId, ChannelId, ExprId, Sync, Target, Transition};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};

/// The target of an assignment, with its index evaluated.
#[derive(Clone, Copy)]
enum EvaluatedTarget {
    Cell(CellId),
    Element(ArrayId, Value),
}

impl Emitter<'_, '_> {
    /// One transition alone; over a buffer that holds `length` messages, if it uses one.
    pub fn alone(&mut self, transition: &Transition, length: Option<u32>) {
        if let (Some(buffer), Some(length)) = (self.program.buffer_of(transition), length) {
            match &transition.sync {
                Sync::Send(channel, values) => self.put_message(buffer, length, *channel, values),
                Sync::Receive(channel, targets) => self.take_message(buffer, length, *channel, targets),
                Sync::None => {}
            }
        }
        self.move_process(transition);
    }

    /// Appends a message to the buffer.
    fn put_message(&mut self, buffer: Buffer, length: u32, channel: ChannelId, values: &[ExprId]) {
        let program = self.program;
        let channel = &program.channels[channel.0 as usize];
        let types = channel.types.as_deref().unwrap_or_default();
        let mut passed = Vec::with_capacity(values.len());
        for (&value, &kind) in values.iter().zip(types) {
            let value = self.register(value);
            passed.push(self.cast(kind, value));
        }
        for (number, value) in passed.into_iter().enumerate() {
            let cell = CellId(buffer.first.0 + length * channel.arity + number as u32);
            self.assign(cell, Number::Computed(value));
        }
        self.assign(buffer.length, Number::Known(length as i32 + 1));
    }

    /// Takes the first message; the others move up.
    fn take_message(&mut self, buffer: Buffer, length: u32, channel: ChannelId, targets: &[Target]) {
        let arity = self.program.channels[channel.0 as usize].arity;
        // All of this is read in the source, before any assignment.
        let items: Vec<Number> = (0..length * arity).map(|item| self.cell(CellId(buffer.first.0 + item))).collect();
        let places: Vec<EvaluatedTarget> = targets.iter().map(|&target| self.place(target)).collect();
        for ((&target, place), &item) in targets.iter().zip(places).zip(&items) {
            self.check_range(target, item);
            self.put(place, item);
            self.loose = true;
        }
        for item in 0..length * arity {
            let value = items.get((item + arity) as usize).copied().unwrap_or(Number::Known(0));
            self.assign(CellId(buffer.first.0 + item), value);
        }
        self.assign(buffer.length, Number::Known(length as i32 - 1));
    }

    /// A send and a receive together.
    pub fn pair(&mut self, send: &Transition, receive: &Transition) {
        if let (Sync::Send(channel, values), Sync::Receive(_, targets)) = (&send.sync, &receive.sync) {
            let types = self.program.channels[channel.0 as usize].types.as_ref();
            let mut passed = Vec::with_capacity(values.len());
            for (number, (&value, &target)) in values.iter().zip(targets).enumerate() {
                let mut sent = self.value(value);
                let mut fits = false;
                if let Some(types) = types {
                    let register = self.computed(sent);
                    sent = Number::Computed(self.cast(types[number], register));
                } else {
                    let (least, most) = self.allowed(target);
                    fits = self.facts.within(value, least, most);
                }
                let tight = types.is_none() && self.facts.fits(value, self.about(target));
                passed.push((self.place(target), sent, target, fits, tight));
            }
            for (place, sent, target, fits, tight) in passed {
                if !fits {
                    self.check_range(target, sent);
                }
                self.put(place, sent);
                self.loose |= !tight;
            }
        }
        self.move_process(receive);
        self.move_process(send);
    }

    /// A process moves to its new location and executes its effects.
    fn move_process(&mut self, transition: &Transition) {
        let location = self.program.processes[transition.process.0 as usize].location;
        self.assign(location, Number::Known(transition.to as i32));
        for effect in &transition.effects {
            let place = self.place(effect.target);
            let value = self.value(effect.value);
            let (least, most) = self.allowed(effect.target);
            if effect.checked && !self.facts.within(effect.value, least, most) {
                self.check_range(effect.target, value);
            }
            self.put(place, value);
            self.loose |= !self.facts.fits(effect.value, self.about(effect.target));
        }
    }

    fn place(&mut self, target: Target) -> EvaluatedTarget {
        match target {
            Target::Cell(cell) => EvaluatedTarget::Cell(cell),
            Target::Element { array, index, checked } => {
                let length = self.program.arrays[array.0 as usize].length;
                EvaluatedTarget::Element(array, self.index(index, length, checked))
            }
        }
    }

    fn put(&mut self, place: EvaluatedTarget, value: Number) {
        match place {
            EvaluatedTarget::Cell(cell) => self.assign(cell, value),
            EvaluatedTarget::Element(array, index) => {
                let value = self.computed(value);
                self.assign_element(array, index, value);
            }
        }
    }

    /// A cell with the range of the target.
    fn about(&self, target: Target) -> &Cell {
        let cell = match target {
            Target::Cell(cell) => cell,
            Target::Element { array, .. } => self.program.arrays[array.0 as usize].first,
        };
        &self.program.cells[cell.0 as usize]
    }

    /// The range of the target.
    fn allowed(&self, target: Target) -> (i32, i32) {
        self.about(target).allowed
    }

    fn check_range(&mut self, target: Target, value: Number) {
        let (least, most) = self.allowed(target);
        match value {
            Number::Known(value) if (least..=most).contains(&value) => {}
            _ => {
                let value = self.computed(value);
                let low = self.number(least);
                let above = self.builder.ins().isub(value, low);
                let width = self.number(most.wrapping_sub(least));
                let outside = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, above, width);
                self.fail_if(outside);
            }
        }
    }
}
