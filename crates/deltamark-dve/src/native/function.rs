//! Functions: all steps that begin in one location of one process.
//!
//! In: a location and some of its transitions. Out: a function that *expands* every state of a block in which the
//! process is there, or one that *fires* one action. What stays true: a function writes no more than the
//! [`Context`] has room for.
//!
//! ```text
//! expand(context, mask, count):                 fire(source, target, action):
//!   for each bit i of mask                        somewhere else?  → disabled
//!     source = sources[i]                         switch action
//!     for each transition of the location           step: guard, write target → done or fault
//!       guard?
//!         alone:  write targets[count], count += 1, or 0 if the step is asleep
//!         send:   for each receive, partner there and ready?  write …
//!   return count
//! ```
//!
//! A send belongs to the function of the sender's location; it tests where each receiver is.

use super::emitter::{Emitter, Number};
use super::facts::NativeFacts;
use crate::facts::possible;
use crate::ir::{ChannelId, Program, Step, Sync, Transition, TransitionId};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use cranelift_frontend::{FunctionBuilder, Switch, Variable};
use deltamark_core::Action;
use std::mem::offset_of;

/// The arguments of an expanding function.
#[repr(C)]
pub(super) struct Context {
    /// The states of the block.
    pub sources: *const u32,
    /// Room for targets.
    pub targets: *mut u32,
    /// Room for the action of each.
    pub actions: *mut u32,
    /// Room for the number of the source of each.
    pub origins: *mut u8,
    /// Room for faults: source number times 2^32, plus action.
    pub faults: *mut u64,
    /// The number of faults.
    pub fault_count: u64,
    /// For each state of the block its sleep set, a bit a step.
    pub asleep: *const *const u64,
    /// For each state of the block the number of steps skipped, counted here.
    pub left_out: *mut u32,
}

/// Expands: context, mask of sources, number of targets before; returns the number of targets after.
pub(super) type Expand = unsafe extern "C" fn(*mut Context, u64, u64) -> u64;
/// Fires: source, target, action; returns one of the codes below.
pub(super) type Fire = unsafe extern "C" fn(*const u32, *mut u32, u32) -> u32;

/// The target was written.
pub(super) const DONE: u32 = 0;
/// The action cannot happen.
pub(super) const DISABLED: u32 = 1;
/// It is a fault.
pub(super) const FAULT: u32 = 2;

/// A location and some of its transitions.
#[derive(Clone, Copy)]
pub(super) struct LocationPart {
    pub process: u32,
    pub location: u32,
    /// The first transition, and the one after the last.
    pub transitions: (u32, u32),
}

impl LocationPart {
    fn transitions(self, program: &Program) -> impl Iterator<Item = &Transition> {
        program.transitions[self.transitions.0 as usize..self.transitions.1 as usize].iter()
    }
}

/// Receives by process, and within it by location.
pub(super) type Partners = Vec<(u32, Vec<(u32, Vec<TransitionId>)>)>;

/// The receives that can be partners of a send. If some location is committed, sender and receiver are committed
/// both or neither: others never move together.
pub(super) fn partners(program: &Program, send: &Transition, channel: ChannelId) -> Partners {
    let committed = |transition: &Transition| {
        program.processes[transition.process.0 as usize].locations[transition.from as usize].committed
    };
    let mut found: Partners = Vec::new();
    for &id in &program.channels[channel.0 as usize].receives {
        let receive = program.transition(id);
        if receive.process == send.process || committed(receive) != committed(send) {
            continue;
        }
        if found.last().is_none_or(|(process, _)| *process != receive.process.0) {
            found.push((receive.process.0, Vec::new()));
        }
        let locations = &mut found.last_mut().expect("it was pushed").1;
        if locations.last().is_none_or(|(location, _)| *location != receive.from) {
            locations.push((receive.from, Vec::new()));
        }
        locations.last_mut().expect("it was pushed").1.push(id);
    }
    found
}

/// The number of steps that a transition initiates.
pub(super) fn steps(program: &Program, transition: &Transition) -> usize {
    match starts(program, transition) {
        Starts::Alone => 1,
        Starts::Pairs(channel) => {
            let partners = partners(program, transition, channel);
            partners.iter().flat_map(|(_, locations)| locations).map(|(_, receives)| receives.len()).sum()
        }
        Starts::Nothing => 0,
    }
}

/// The steps that a transition initiates.
pub(super) enum Starts {
    /// A step of its own.
    Alone,
    /// Steps with partners that receive.
    Pairs(ChannelId),
    /// None: the sender does.
    Nothing,
}

/// The steps that this transition initiates.
pub(super) fn starts(program: &Program, transition: &Transition) -> Starts {
    match transition.sync {
        _ if program.buffer_of(transition).is_some() => Starts::Alone,
        Sync::None => Starts::Alone,
        Sync::Send(channel, _) => Starts::Pairs(channel),
        Sync::Receive(..) => Starts::Nothing,
    }
}

/// Values common to all steps of an expanding function.
struct Loop {
    context: Value,
    targets: Value,
    actions: Value,
    origins: Value,
    /// The number of the source.
    origin: Value,
    /// The number of targets.
    count: Variable,
    /// If steps may be skipped: the sleep set, and the address of the count of skipped steps.
    asleep: Option<(Value, Value)>,
}

/// Begins a function with three parameters.
fn parameters(builder: &mut FunctionBuilder<'_>) -> [Value; 3] {
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.seal_block(entry);
    let &[first, second, third] = builder.block_params(entry) else { unreachable!("three parameters") };
    [first, second, third]
}

/// Emits the expanding function.
pub(super) fn expand<'f>(
    program: &Program,
    facts: &NativeFacts,
    mut builder: FunctionBuilder<'f>,
    part: LocationPart,
) -> FunctionBuilder<'f> {
    let [context, first_mask, first_count] = parameters(&mut builder);
    let pointer = |builder: &mut FunctionBuilder<'_>, offset: usize| {
        builder.ins().load(I64, MemFlagsData::trusted(), context, offset as i32)
    };
    let sources = pointer(&mut builder, offset_of!(Context, sources));
    let targets = pointer(&mut builder, offset_of!(Context, targets));
    let actions = pointer(&mut builder, offset_of!(Context, actions));
    let origins = pointer(&mut builder, offset_of!(Context, origins));
    let sets = possible(program).then(|| {
        let sets = pointer(&mut builder, offset_of!(Context, asleep));
        (sets, pointer(&mut builder, offset_of!(Context, left_out)))
    });
    let (mask, count) = (builder.declare_var(I64), builder.declare_var(I64));
    builder.def_var(mask, first_mask);
    builder.def_var(count, first_count);
    let (head, end) = (builder.create_block(), builder.create_block());
    builder.ins().jump(head, &[]);
    builder.switch_to_block(head);
    let rest = builder.use_var(mask);
    let origin = builder.ins().ctz(rest);
    let one = builder.ins().iconst(I64, 1);
    let below = builder.ins().isub(rest, one);
    let rest = builder.ins().band(rest, below);
    builder.def_var(mask, rest);
    let width = builder.ins().iconst(I64, (program.slots * 4) as i64);
    let offset = builder.ins().imul(origin, width);
    let source = builder.ins().iadd(sources, offset);
    let asleep = sets.map(|(sets, numbers)| {
        let [set, number] = [(sets, 3), (numbers, 2)].map(|(start, shift)| {
            let shift = builder.ins().iconst(I64, shift);
            let offset = builder.ins().ishl(origin, shift);
            builder.ins().iadd(start, offset)
        });
        (builder.ins().load(I64, MemFlagsData::trusted(), set, 0), number)
    });

    let mut emitter = Emitter::new(program, facts, builder, source);
    emitter.read_from(source);
    let process = &program.processes[part.process as usize];
    emitter.know(process.location, part.location as i32);
    let around = Loop { context, targets, actions, origins, origin, count, asleep };
    for transition in part.transitions(program) {
        match starts(program, transition) {
            Starts::Alone => emitter.expand_alone(&around, transition),
            Starts::Pairs(channel) => emitter.expand_send(&around, transition, channel),
            Starts::Nothing => {}
        }
    }
    let builder = &mut emitter.builder;
    let rest = builder.use_var(mask);
    builder.ins().brif(rest, head, &[], end, &[]);
    builder.seal_block(head);
    emitter.enter(end);
    let count = emitter.builder.use_var(count);
    emitter.builder.ins().return_(&[count]);
    emitter.builder
}

impl Emitter<'_, '_> {
    fn expand_alone(&mut self, around: &Loop, transition: &Transition) {
        let (ready, next) = (self.builder.create_block(), self.builder.create_block());
        let action = Action(transition.action);
        let mark = self.memoised.len();
        let buffered = self.require_room(transition, next);
        let ((), fault) = self.attempt(|emitter| emitter.branch_on(transition.guard, ready, next));
        // A value computed after a branch does not exist on the other path.
        let shared = if fault.is_some() || buffered { mark } else { self.memoised.len() };
        self.enter(ready);
        self.for_each_length(transition, next, |emitter, length| {
            emitter.write(around, action, next, |emitter| emitter.alone(transition, length));
        });
        if let Some(fault) = fault {
            self.record(around, fault, action, next);
        }
        self.forget_since(shared);
        self.enter(next);
    }

    /// Jumps to `otherwise` if the buffer does not allow a transition. Returns whether it uses one.
    fn require_room(&mut self, transition: &Transition, otherwise: Block) -> bool {
        let Some(buffer) = self.program.buffer_of(transition) else { return false };
        // Neither full for a send nor empty for a receive.
        let wrong = if let Sync::Send(..) = transition.sync { buffer.capacity as i32 } else { 0 };
        let length = self.cell(buffer.length);
        let length = self.computed(length);
        let wrong = self.number(wrong);
        let stuck = self.builder.ins().icmp(IntCC::Equal, length, wrong);
        let go_on = self.builder.create_block();
        self.branch(stuck, otherwise, go_on);
        self.enter(go_on);
        true
    }

    /// Emits code for each length that the buffer of a transition may have, or once if it uses none. The code ends
    /// its block; an impossible length leads to `otherwise`.
    fn for_each_length(
        &mut self,
        transition: &Transition,
        otherwise: Block,
        mut write: impl FnMut(&mut Self, Option<u32>),
    ) {
        let Some(buffer) = self.program.buffer_of(transition) else { return write(self, None) };
        let lengths = if let Sync::Send(..) = transition.sync { 0..buffer.capacity } else { 1..buffer.capacity + 1 };
        let length = self.cell(buffer.length);
        let length = self.computed(length);
        let blocks: Vec<(u32, Block)> = lengths.map(|length| (length, self.builder.create_block())).collect();
        let mut switch = Switch::new();
        blocks.iter().for_each(|&(length, block)| switch.set_entry(u128::from(length), block));
        switch.emit(&mut self.builder, length, otherwise);
        for (length, block) in blocks {
            self.enter(block);
            self.know(buffer.length, length as i32);
            let mark = self.memoised.len();
            write(self, Some(length));
            self.forget_since(mark);
            self.forget();
        }
    }

    fn expand_send(&mut self, around: &Loop, send: &Transition, channel: ChannelId) {
        let partners = partners(self.program, send, channel);
        if partners.is_empty() {
            return;
        }
        let (ready, next) = (self.builder.create_block(), self.builder.create_block());
        let mark = self.memoised.len();
        let ((), fault) = self.attempt(|emitter| emitter.branch_on(send.guard, ready, next));
        let shared = self.memoised.len();
        self.enter(ready);
        self.expand_partners(around, send, &partners, false);
        self.jump(next);
        self.forget_since(shared);
        if let Some(fault) = fault {
            // The guard fails, so that every step with a ready partner is a fault.
            self.forget_since(mark);
            self.enter(fault);
            self.expand_partners(around, send, &partners, true);
            self.jump(next);
            self.forget_since(mark);
        }
        self.enter(next);
    }

    fn expand_partners(&mut self, around: &Loop, send: &Transition, partners: &Partners, fails: bool) {
        for (process, locations) in partners {
            let cell = self.program.processes[*process as usize].location;
            let after = self.builder.create_block();
            let blocks: Vec<Block> = locations.iter().map(|_| self.builder.create_block()).collect();
            match self.known(cell) {
                // It has one location only.
                Some(Number::Known(at)) => {
                    let found = locations.iter().position(|(location, _)| *location as i32 == at);
                    self.jump(found.map_or(after, |found| blocks[found]));
                }
                _ if locations.len() == 1 => {
                    let there = self.cell_equals(cell, locations[0].0 as i32);
                    self.branch(there, blocks[0], after);
                }
                _ => {
                    let at = self.cell(cell);
                    let at = self.computed(at);
                    let mut switch = Switch::new();
                    for ((location, _), &block) in locations.iter().zip(&blocks) {
                        switch.set_entry(u128::from(*location), block);
                    }
                    switch.emit(&mut self.builder, at, after);
                }
            }
            for ((location, receives), block) in locations.iter().zip(blocks) {
                self.enter(block);
                self.know(cell, *location as i32);
                let mark = self.memoised.len();
                for &id in receives {
                    self.expand_pair(around, send, id, fails);
                }
                self.forget_since(mark);
                self.forget();
                self.jump(after);
            }
            self.enter(after);
        }
    }

    fn expand_pair(&mut self, around: &Loop, send: &Transition, id: TransitionId, fails: bool) {
        let receive = self.program.transition(id);
        let action = self.program.pair_action(send, receive);
        let (ready, next) = (self.builder.create_block(), self.builder.create_block());
        let mark = self.memoised.len();
        let ((), fault) = self.attempt(|emitter| emitter.branch_on(receive.guard, ready, next));
        let shared = if fault.is_some() { mark } else { self.memoised.len() };
        if fails || conflict(self.program, action) {
            self.record(around, ready, action, next);
        } else {
            self.enter(ready);
            self.write(around, action, next, |emitter| emitter.pair(send, receive));
        }
        if let Some(fault) = fault {
            self.record(around, fault, action, next);
        }
        self.forget_since(shared);
        self.enter(next);
    }

    /// Emits the writing of a target, or a fault, and continues in `next`.
    fn write(&mut self, around: &Loop, action: Action, next: Block, step: impl FnOnce(&mut Self)) {
        let mark = self.memoised.len();
        let count = self.builder.use_var(around.count);
        let width = self.builder.ins().iconst(I64, (self.program.slots * 4) as i64);
        let offset = self.builder.ins().imul(count, width);
        let target = self.builder.ins().iadd(around.targets, offset);
        self.begin_step(target);
        let ((), fault) = self.attempt(|emitter| {
            step(emitter);
            emitter.end_step();
        });
        let flags = MemFlagsData::trusted();
        let number = self.number(action.0 as i32);
        let two = self.builder.ins().iconst(I64, 2);
        let offset = self.builder.ins().ishl(count, two);
        let place = self.builder.ins().iadd(around.actions, offset);
        self.builder.ins().store(flags, number, place, 0);
        let place = self.builder.ins().iadd(around.origins, count);
        self.builder.ins().istore8(flags, around.origin, place, 0);
        let written = match around.asleep {
            Some((set, number)) => self.awake(set, number, action),
            None => self.builder.ins().iconst(I64, 1),
        };
        let more = self.builder.ins().iadd(count, written);
        self.builder.def_var(around.count, more);
        self.jump(next);
        self.drop_step();
        self.forget_since(mark);
        if let Some(fault) = fault {
            self.record(around, fault, action, next);
        }
    }

    /// 1 if a step is awake. If it is asleep it is counted, and 0: the target will be overwritten. Branch-free,
    /// because the branch would be unpredictable; and only here, because a fault is never skipped.
    fn awake(&mut self, set: Value, number: Value, action: Action) -> Value {
        let flags = MemFlagsData::trusted();
        let word = self.builder.ins().load(I64, flags.with_readonly(), set, (action.0 / 64 * 8) as i32);
        let place = self.builder.ins().iconst(I64, i64::from(action.0 % 64));
        let moved = self.builder.ins().ushr(word, place);
        let one = self.builder.ins().iconst(I64, 1);
        let bit = self.builder.ins().band(moved, one);
        let more = self.builder.ins().ireduce(I32, bit);
        let before = self.builder.ins().load(I32, flags, number, 0);
        let after = self.builder.ins().iadd(before, more);
        self.builder.ins().store(flags, after, number, 0);
        self.builder.ins().bxor(bit, one)
    }

    /// In `block`: records a fault and continues in `next`.
    fn record(&mut self, around: &Loop, block: Block, action: Action, next: Block) {
        self.enter(block);
        self.builder.set_cold_block(block);
        let flags = MemFlagsData::trusted();
        let at = offset_of!(Context, fault_count) as i32;
        let count = self.builder.ins().load(I64, flags, around.context, at);
        let faults = self.builder.ins().load(I64, flags, around.context, offset_of!(Context, faults) as i32);
        let three = self.builder.ins().iconst(I64, 3);
        let offset = self.builder.ins().ishl(count, three);
        let place = self.builder.ins().iadd(faults, offset);
        let half = self.builder.ins().iconst(I64, 32);
        let high = self.builder.ins().ishl(around.origin, half);
        let low = self.builder.ins().iconst(I64, i64::from(action.0));
        let fault = self.builder.ins().bor(high, low);
        self.builder.ins().store(flags, fault, place, 0);
        let one = self.builder.ins().iconst(I64, 1);
        let more = self.builder.ins().iadd(count, one);
        self.builder.ins().store(flags, more, around.context, at);
        self.jump(next);
    }
}

/// Whether both sides of a pair assign the same global, so that the step is a fault.
fn conflict(program: &Program, action: Action) -> bool {
    matches!(program.steps[action.0 as usize], Step::Pair { conflict: Some(_), .. })
}

/// Emits the firing function.
pub(super) fn fire<'f>(
    program: &Program,
    facts: &NativeFacts,
    mut builder: FunctionBuilder<'f>,
    part: LocationPart,
) -> FunctionBuilder<'f> {
    let [source, target, action] = parameters(&mut builder);
    let mut emitter = Emitter::new(program, facts, builder, source);
    emitter.read_from(source);
    let (here, disabled, fault) =
        (emitter.builder.create_block(), emitter.builder.create_block(), emitter.builder.create_block());
    emitter.builder.set_cold_block(disabled);
    emitter.builder.set_cold_block(fault);
    let location = program.processes[part.process as usize].location;
    match emitter.known(location) {
        Some(_) => emitter.jump(here),
        None => {
            let there = emitter.cell_equals(location, part.location as i32);
            emitter.branch(there, here, disabled);
        }
    }
    emitter.enter(here);
    emitter.know(location, part.location as i32);

    let mut wanted = Vec::new();
    for (transition, number) in part.transitions(program).zip(part.transitions.0..) {
        match starts(program, transition) {
            Starts::Alone => wanted.push((transition.action, number, None)),
            Starts::Pairs(channel) => {
                for (_, locations) in partners(program, transition, channel) {
                    for id in locations.into_iter().flat_map(|(_, receives)| receives) {
                        wanted.push((program.pair_action(transition, program.transition(id)).0, number, Some(id)));
                    }
                }
            }
            Starts::Nothing => {}
        }
    }
    let mut switch = Switch::new();
    let blocks: Vec<Block> = wanted.iter().map(|_| emitter.builder.create_block()).collect();
    for ((number, ..), &block) in wanted.iter().zip(&blocks) {
        switch.set_entry(u128::from(*number), block);
    }
    switch.emit(&mut emitter.builder, action, disabled);
    for ((number, first, second), block) in wanted.into_iter().zip(blocks) {
        emitter.enter(block);
        let first = &program.transitions[first as usize];
        let second = second.map(|id| program.transition(id));
        emitter.fire_step(target, Action(number), first, second, disabled, fault);
    }
    for (block, code) in [(disabled, DISABLED), (fault, FAULT)] {
        emitter.enter(block);
        let code = emitter.builder.ins().iconst(I32, i64::from(code));
        emitter.builder.ins().return_(&[code]);
    }
    emitter.builder
}

impl Emitter<'_, '_> {
    fn fire_step(
        &mut self,
        target: Value,
        action: Action,
        first: &Transition,
        second: Option<&Transition>,
        disabled: Block,
        fault: Block,
    ) {
        if let Some(receive) = second {
            let cell = self.program.processes[receive.process.0 as usize].location;
            if self.known(cell).is_none() {
                let there = self.cell_equals(cell, receive.from as i32);
                let go_on = self.builder.create_block();
                self.branch(there, go_on, disabled);
                self.enter(go_on);
            }
            self.know(cell, receive.from as i32);
        }
        if second.is_none() {
            self.require_room(first, disabled);
        }
        // A guard that fails makes the step a fault, unless the other guard does not hold.
        let guards: Vec<_> = [Some(first), second].into_iter().flatten().map(|one| one.guard).collect();
        let ready = self.builder.create_block();
        self.fire_guards(&guards, ready, disabled, fault);
        self.enter(ready);
        if second.is_some() && conflict(self.program, action) {
            self.jump(fault);
        } else {
            let step = |emitter: &mut Self, length| {
                emitter.begin_step(target);
                let ((), failed) = emitter.attempt(|emitter| {
                    match second {
                        Some(receive) => emitter.pair(first, receive),
                        None => emitter.alone(first, length),
                    }
                    emitter.end_step();
                });
                emitter.drop_step();
                let code = emitter.builder.ins().iconst(I32, i64::from(DONE));
                emitter.builder.ins().return_(&[code]);
                if let Some(failed) = failed {
                    emitter.enter(failed);
                    emitter.jump(fault);
                }
            };
            match second {
                Some(_) => step(self, None),
                None => self.for_each_length(first, disabled, step),
            }
        }
        self.forget_since(0);
        if second.is_some() {
            self.forget();
        }
    }

    /// Jumps to `ready` if all guards hold, to `disabled` if one does not, and otherwise to `fault`.
    fn fire_guards(&mut self, guards: &[crate::ir::ExprId], ready: Block, disabled: Block, fault: Block) {
        let Some((&guard, rest)) = guards.split_first() else { return self.jump(ready) };
        let go_on = self.builder.create_block();
        let mark = self.memoised.len();
        let ((), failed) = self.attempt(|emitter| emitter.branch_on(guard, go_on, disabled));
        if let Some(failed) = failed {
            self.forget_since(mark);
            self.enter(failed);
            self.fire_guards(rest, fault, disabled, fault);
            self.forget_since(mark);
        }
        self.enter(go_on);
        self.fire_guards(rest, ready, disabled, fault);
    }
}
