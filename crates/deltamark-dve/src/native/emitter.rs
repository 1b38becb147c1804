//! Emits reads and writes of states.
//!
//! In: cells, elements, their bit fields. Out: instructions. What stays true: while a step is being emitted, a
//! cell's *current* value is, in this order, the one assigned and not yet written ([`Emitter::assigned`]), the one
//! known statically ([`Emitter::known`]), or the one in memory at [`Emitter::base`].
//!
//! A step begins with the source as its base. Assignments to cells stay in registers, and at the end the target is
//! the source, copied sixteen bytes at a time, with the changed slots overwritten. Only an assignment to an
//! element whose index is not static needs memory: then everything so far is written to the target first, and the
//! target becomes the base ([`Emitter::materialise`]). That happens on every path or on none: code that may be
//! jumped over (the right side of `and` and `or`) leaves assignments and base unchanged.
//!
//! ```text
//!   source ──copy──▶ target          slot 0 = source 0 with location and x replaced
//!                                    slot 2 = source 2 with a[1] replaced
//! ```

use super::facts::{ArrayShape, NativeFacts};
use crate::ir::{ArrayId, Cell, CellId, ExprId, Program};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I8X16, I16, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Type, Value};
use cranelift_frontend::FunctionBuilder;
use deltamark_core::Field;
use std::collections::HashMap;

/// A number while code is generated.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Known(i32),
    Computed(Value),
}

/// Whether a value is a 32-bit number or an 8-bit truth value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ValueKind {
    Number,
    Truth,
}

/// Emits one function.
pub(super) struct Emitter<'a, 'f> {
    pub program: &'a Program,
    pub facts: &'a NativeFacts,
    pub builder: FunctionBuilder<'f>,
    /// The source state.
    pub source: Value,
    /// The address of the target.
    pub target: Value,
    /// The memory that holds cells neither assigned nor known: the source or the target.
    base: Value,
    copied: bool,
    assigned: Vec<(CellId, Number)>,
    /// Whether something assigned in this step may not fit the bits of its cell: in no reachable state, but
    /// [`NativeFacts`] hold for any.
    pub loose: bool,
    known: Vec<(CellId, i32)>,
    /// Expressions evaluated in the source, in blocks that dominate the current one.
    pub memo: HashMap<(ExprId, ValueKind), Value>,
    pub memoised: Vec<(ExprId, ValueKind)>,
    /// The block for faults; created when it is first needed.
    fault: Option<Option<Block>>,
}

impl<'a, 'f> Emitter<'a, 'f> {
    pub fn new(program: &'a Program, facts: &'a NativeFacts, builder: FunctionBuilder<'f>, nothing: Value) -> Self {
        Emitter {
            program,
            facts,
            builder,
            source: nothing,
            target: nothing,
            base: nothing,
            copied: false,
            assigned: Vec::new(),
            loose: false,
            known: Vec::new(),
            memo: HashMap::new(),
            memoised: Vec::new(),
            fault: None,
        }
    }

    /// Reads states from this address from now on.
    pub fn read_from(&mut self, source: Value) {
        self.source = source;
        self.base = source;
    }

    /// Begins a step that writes to this address.
    pub fn begin_step(&mut self, target: Value) {
        self.target = target;
        self.base = self.source;
        self.copied = false;
        self.assigned.clear();
        self.loose = false;
    }

    /// Ends a step: the target is complete.
    pub fn end_step(&mut self) {
        self.write_back();
        self.base = self.source;
        self.copied = false;
    }

    /// Abandons a step.
    pub fn drop_step(&mut self) {
        self.assigned.clear();
        self.loose = false;
        self.base = self.source;
        self.copied = false;
    }

    /// Whether expressions are evaluated in the source itself.
    pub fn pristine(&self) -> bool {
        self.assigned.is_empty() && !self.copied
    }

    pub fn number(&mut self, value: i32) -> Value {
        self.builder.ins().iconst(I32, i64::from(value as u32))
    }

    pub fn truth(&mut self, value: bool) -> Value {
        self.builder.ins().iconst(I8, i64::from(value))
    }

    pub fn address(&mut self, value: i64) -> Value {
        self.builder.ins().iconst(I64, value)
    }

    /// The value, in a register.
    pub fn computed(&mut self, number: Number) -> Value {
        match number {
            Number::Known(value) => self.number(value),
            Number::Computed(value) => value,
        }
    }

    /// Continues in a block that gets no further predecessors.
    pub fn enter(&mut self, block: Block) {
        self.builder.seal_block(block);
        self.builder.switch_to_block(block);
    }

    pub fn jump(&mut self, block: Block) {
        self.builder.ins().jump(block, &[]);
    }

    pub fn branch(&mut self, condition: Value, then: Block, otherwise: Block) {
        self.builder.ins().brif(condition, then, &[], otherwise, &[]);
    }

    /// Lets `emit` emit code that may fail; returns the block for failures, if there is one.
    pub fn attempt<R>(&mut self, emit: impl FnOnce(&mut Self) -> R) -> (R, Option<Block>) {
        let outer = self.fault.replace(None);
        let result = emit(self);
        let fault = std::mem::replace(&mut self.fault, outer).flatten();
        (result, fault)
    }

    /// Jumps to the block for faults if the condition holds.
    pub fn fail_if(&mut self, condition: Value) {
        let fault = self.fault_block();
        let go_on = self.builder.create_block();
        self.branch(condition, fault, go_on);
        self.enter(go_on);
    }

    pub fn fault_block(&mut self) -> Block {
        let Some(place) = &mut self.fault else { unreachable!("code that may fail is attempted") };
        if let Some(block) = *place {
            return block;
        }
        let block = self.builder.create_block();
        self.builder.set_cold_block(block);
        self.fault = Some(Some(block));
        block
    }

    /// Assumes that a cell of the source has this value, until [`forget`](Self::forget).
    pub fn know(&mut self, cell: CellId, value: i32) {
        self.known.push((cell, value));
    }

    pub fn forget(&mut self) {
        self.known.pop();
    }

    /// The value of a cell, if it is known without a load.
    pub fn known(&self, cell: CellId) -> Option<Number> {
        if let Some(&(_, number)) = self.assigned.iter().find(|(one, _)| *one == cell) {
            return Some(number);
        }
        if !self.copied
            && let Some(&(_, value)) = self.known.iter().find(|(one, _)| *one == cell)
        {
            return Some(Number::Known(value));
        }
        let cell = self.of(cell);
        (cell.field.bits() == 0).then_some(Number::Known(cell.least()))
    }

    /// How a cell is stored.
    pub fn of(&self, cell: CellId) -> Cell {
        self.program.cells[cell.0 as usize]
    }

    /// The value of a cell.
    pub fn cell(&mut self, cell: CellId) -> Number {
        if let Some(number) = self.known(cell) {
            return number;
        }
        let cell = self.of(cell);
        let raw = self.raw(cell.field);
        Number::Computed(self.decoded(cell, raw))
    }

    /// The bits of a field of at least one bit, in the base.
    fn raw(&mut self, field: Field) -> Value {
        let flags = self.reading();
        let offset = (field.slot() * 4) as i32;
        let byte = offset + i32::from(field.shift() / 8);
        if cfg!(target_endian = "little") && field.bits() == 8 && field.shift().is_multiple_of(8) {
            return self.builder.ins().uload8(I32, flags, self.base, byte);
        }
        if cfg!(target_endian = "little") && field.bits() == 16 && field.shift().is_multiple_of(16) {
            return self.builder.ins().uload16(I32, flags, self.base, byte);
        }
        let slot = self.builder.ins().load(I32, flags, self.base, offset);
        self.bits(slot, field)
    }

    /// The bits of a field, from its slot.
    fn bits(&mut self, slot: Value, field: Field) -> Value {
        let mut value = slot;
        if field.shift() > 0 {
            let shift = self.number(field.shift().into());
            value = self.builder.ins().ushr(value, shift);
        }
        if field.shift() + field.bits() < 32 {
            let mask = self.number(field.mask() as i32);
            value = self.builder.ins().band(value, mask);
        }
        value
    }

    /// Whether a cell in memory equals a number: one test of its slot.
    pub fn cell_equals(&mut self, cell: CellId, number: i32) -> Value {
        let cell = self.of(cell);
        let (field, mask, code) = (cell.field, cell.mask(), cell.code(number));
        if code > mask {
            return self.truth(false);
        }
        if cfg!(target_endian = "little") && field.bits() == 8 && field.shift().is_multiple_of(8) {
            let raw = self.raw(field);
            let code = self.number(code as i32);
            return self.builder.ins().icmp(IntCC::Equal, raw, code);
        }
        let flags = self.reading();
        let slot = self.builder.ins().load(I32, flags, self.base, (field.slot() * 4) as i32);
        let mask = self.number((mask << field.shift()) as i32);
        let bits = self.builder.ins().band(slot, mask);
        let code = self.number((code << field.shift()) as i32);
        self.builder.ins().icmp(IntCC::Equal, bits, code)
    }

    fn decoded(&mut self, cell: Cell, raw: Value) -> Value {
        let mut value = raw;
        if cell.least() != 0 {
            let least = self.number(cell.least());
            value = self.builder.ins().iadd(value, least);
        }
        if cell.wraps {
            let mask = self.number(255);
            value = self.builder.ins().band(value, mask);
        }
        value
    }

    fn encoded(&mut self, cell: Cell, value: Value) -> Value {
        let mut raw = value;
        if cell.least() != 0 {
            let least = self.number(cell.least());
            raw = self.builder.ins().isub(raw, least);
        }
        if cell.wraps {
            let mask = self.number(255);
            raw = self.builder.ins().band(raw, mask);
        }
        raw
    }

    /// Assigns a cell.
    pub fn assign(&mut self, cell: CellId, number: Number) {
        match self.assigned.iter_mut().find(|(one, _)| *one == cell) {
            Some(place) => place.1 = number,
            None => self.assigned.push((cell, number)),
        }
    }

    /// Whether there are assignments not yet written.
    pub fn has_assigned(&self) -> bool {
        !self.assigned.is_empty()
    }

    /// Whether a cell of an array is among them.
    pub fn is_assigned(&self, array: ArrayId) -> bool {
        let place = &self.program.arrays[array.0 as usize];
        let cells = place.first.0..place.first.0 + place.length;
        self.assigned.iter().any(|(cell, _)| cells.contains(&cell.0))
    }

    /// How far a step has been emitted: equal before and after code that may be jumped over.
    pub fn progress(&self) -> (bool, usize) {
        (self.copied, self.assigned.len())
    }

    /// An element; the index is within bounds.
    pub fn element(&mut self, array: ArrayId, index: Value) -> Value {
        if self.is_assigned(array) {
            self.materialise();
        }
        let first = self.of(self.program.arrays[array.0 as usize].first);
        let flags = self.reading();
        match self.facts.shape(array) {
            ArrayShape::Nowhere => self.number(first.least()),
            ArrayShape::Bytes(offset) => {
                let address = self.offset(self.base, index);
                let raw = self.builder.ins().uload8(I32, flags, address, offset);
                self.decoded(first, raw)
            }
            shape => {
                let (address, offset, shift) = self.position(shape, array, index);
                let slot = self.builder.ins().load(I32, flags, address, offset);
                let moved = self.builder.ins().ushr(slot, shift);
                let mask = self.number(first.mask() as i32);
                let raw = self.builder.ins().band(moved, mask);
                self.decoded(first, raw)
            }
        }
    }

    /// Assigns an element; the index is within bounds.
    pub fn assign_element(&mut self, array: ArrayId, index: Value, value: Value) {
        let first = self.of(self.program.arrays[array.0 as usize].first);
        self.materialise();
        let raw = self.encoded(first, value);
        let flags = MemFlagsData::trusted();
        match self.facts.shape(array) {
            ArrayShape::Nowhere => {}
            ArrayShape::Bytes(offset) => {
                let address = self.offset(self.base, index);
                self.builder.ins().istore8(flags, raw, address, offset);
            }
            shape => {
                let (address, offset, shift) = self.position(shape, array, index);
                let old = self.builder.ins().load(I32, flags, address, offset);
                let mask = self.number(first.mask() as i32);
                let cleared = self.builder.ins().ishl(mask, shift);
                let kept = self.builder.ins().band_not(old, cleared);
                let moved = self.builder.ins().ishl(raw, shift);
                let new = self.builder.ins().bor(kept, moved);
                self.builder.ins().store(flags, new, address, offset);
            }
        }
    }

    /// The address and offset of the slot of an element, and its lowest bit there.
    fn position(&mut self, shape: ArrayShape, array: ArrayId, index: Value) -> (Value, i32, Value) {
        if let ArrayShape::Slot { slot, shift, stride } = shape {
            let stride = self.number(stride.into());
            let moved = self.builder.ins().imul(index, stride);
            let first = self.number(shift.into());
            let shift = self.builder.ins().iadd(moved, first);
            return (self.base, (slot * 4) as i32, shift);
        }
        let table = self.address(self.facts.position_table(array));
        let entry = self.entry(table, index);
        let eight = self.number(8);
        let offset = self.builder.ins().ushr(entry, eight);
        let low = self.number(255);
        let shift = self.builder.ins().band(entry, low);
        (self.offset(self.base, offset), 0, shift)
    }

    /// An entry of a constant table of 32-bit numbers; the index is within bounds.
    pub fn entry(&mut self, table: Value, index: Value) -> Value {
        let four = self.number(4);
        let bytes = self.builder.ins().imul(index, four);
        let address = self.offset(table, bytes);
        // Not `can_move`: such a load is assumed to have no effects, and may be hoisted above the check of its
        // index.
        let flags = MemFlagsData::trusted().with_readonly();
        self.builder.ins().load(I32, flags, address, 0)
    }

    fn offset(&mut self, address: Value, bytes: Value) -> Value {
        let bytes = self.builder.ins().uextend(I64, bytes);
        self.builder.ins().iadd(address, bytes)
    }

    /// The flags of loads from the base: the source never changes while a function runs.
    fn reading(&self) -> MemFlagsData {
        let flags = MemFlagsData::trusted();
        if self.copied { flags } else { flags.with_readonly() }
    }

    /// Writes the assignments so far to the target, which becomes the base.
    pub fn materialise(&mut self) {
        self.write_back();
        self.base = self.target;
    }

    /// Writes the current state to the target.
    fn write_back(&mut self) {
        let mut assigned = std::mem::take(&mut self.assigned);
        assigned.retain(|(cell, _)| self.of(*cell).field.bits() > 0);
        assigned.sort_by_key(|(cell, _)| self.of(*cell).field.slot());
        let mut changed = Vec::new();
        let program = self.program;
        let slot_of = |(cell, _): &(CellId, Number)| program.cells[cell.0 as usize].field.slot();
        for cells in assigned.chunk_by(|one, other| slot_of(one) == slot_of(other)) {
            let slot = slot_of(&cells[0]);
            let new = self.slot(slot, cells);
            changed.push((slot, new));
        }
        if !self.copied {
            self.copy();
        }
        for (slot, value) in changed {
            self.builder.ins().store(MemFlagsData::trusted(), value, self.target, (slot * 4) as i32);
        }
        self.copied = true;
    }

    /// A slot of the base with some of its cells replaced.
    fn slot(&mut self, slot: u32, cells: &[(CellId, Number)]) -> Value {
        let (mut replaced, mut constant) = (0, 0);
        let mut moved = Vec::new();
        for &(cell, number) in cells {
            let cell = self.of(cell);
            let shift = cell.field.shift();
            replaced |= cell.mask() << shift;
            match number {
                Number::Known(value) => constant |= (cell.code(value) & cell.mask()) << shift,
                Number::Computed(value) => {
                    let raw = self.encoded(cell, value);
                    let bits = self.number(shift.into());
                    moved.push(if shift > 0 { self.builder.ins().ishl(raw, bits) } else { raw });
                }
            }
        }
        let mut parts = moved;
        if replaced != u32::MAX {
            let flags = self.reading();
            let old = self.builder.ins().load(I32, flags, self.base, (slot * 4) as i32);
            let kept = self.number(!replaced as i32);
            parts.push(self.builder.ins().band(old, kept));
        }
        if constant != 0 || parts.is_empty() {
            parts.push(self.number(constant as i32));
        }
        let mut value = parts[0];
        for &part in &parts[1..] {
            value = self.builder.ins().bor(value, part);
        }
        value
    }

    /// Copies the source to the target.
    fn copy(&mut self) {
        let bytes = (self.program.slots * 4) as i32;
        let mut at = 0;
        let mut piece = |emitter: &mut Self, kind: Type, size: i32| {
            while bytes - at >= size {
                let flags = MemFlagsData::trusted().with_readonly();
                // Slots are aligned to four bytes, not more.
                let flags = if size > 4 { MemFlagsData::new().with_notrap() } else { flags };
                let value = emitter.builder.ins().load(kind, flags, emitter.source, at);
                emitter.builder.ins().store(flags_of_store(size), value, emitter.target, at);
                at += size;
            }
        };
        piece(self, I8X16, 16);
        piece(self, I64, 8);
        piece(self, I32, 4);
    }

    /// The number truncated to 8 or 16 bits, as in C.
    pub fn cast(&mut self, kind: crate::ir::Type, value: Value) -> Value {
        match kind {
            crate::ir::Type::Byte => {
                let mask = self.number(255);
                self.builder.ins().band(value, mask)
            }
            crate::ir::Type::Int => {
                let low = self.builder.ins().ireduce(I16, value);
                self.builder.ins().sextend(I32, low)
            }
        }
    }
}

fn flags_of_store(size: i32) -> MemFlagsData {
    if size > 4 { MemFlagsData::new().with_notrap() } else { MemFlagsData::trusted() }
}
