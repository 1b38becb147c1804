//! Static facts about expressions and arrays, for the code generator.
//!
//! In: a program. Out: for each expression whether it may fail, its cost, its depth and its interval; for each
//! array the arrangement of its elements. What stays true: intervals follow from the *bits* of fields alone, not
//! from what the analysis proved of reachable states. So an index found to be within bounds is so whatever bits a
//! state holds, and code without a check stays within memory even for an unreachable state. A value that a step
//! has assigned and holds in a register may have more bits than its field: see
//! [`Emitter::loose`](super::emitter::Emitter::loose).

use crate::ir::{ArrayId, Binary, Cell, Expr, ExprId, Program, Unary};
use deltamark_core::Field;

/// Facts about a program.
pub(super) struct NativeFacts {
    exprs: Vec<Fact>,
    shapes: Vec<ArrayShape>,
    /// The positions of the elements of arrays of shape [`ArrayShape::Table`]: byte offset of the slot, times 256, plus
    /// shift.
    positions: Vec<Box<[u32]>>,
    /// Constant arrays.
    tables: Vec<Box<[i32]>>,
}

#[derive(Clone, Copy)]
struct Fact {
    faulty: bool,
    cost: u16,
    depth: u16,
    range: (i64, i64),
}

/// The arrangement of an array's elements in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrayShape {
    /// They take no bits.
    Nowhere,
    /// One byte each, contiguous, from this byte of the state on.
    Bytes(i32),
    /// All in one slot, each `stride` bits above the one before.
    Slot { slot: u32, shift: u8, stride: u8 },
    /// Anywhere: see [`NativeFacts::position_table`].
    Table,
}

impl NativeFacts {
    pub fn new(program: &Program) -> Self {
        let mut exprs: Vec<Fact> = Vec::with_capacity(program.exprs.len());
        for &expr in &program.exprs {
            let fact = Fact::of(program, expr, &exprs);
            exprs.push(fact);
        }
        let mut positions = Vec::new();
        let mut shapes = Vec::new();
        for array in &program.arrays {
            let first = array.first.0 as usize;
            let fields: Vec<Field> =
                program.cells[first..first + array.length as usize].iter().map(|cell| cell.field).collect();
            shapes.push(ArrayShape::of(&fields));
            positions.push(fields.iter().map(|field| (field.slot() * 4) << 8 | u32::from(field.shift())).collect());
        }
        let tables = program.tables.iter().map(|table| table.values.clone().into()).collect();
        NativeFacts { exprs, shapes, positions, tables }
    }

    /// Whether its evaluation may fault.
    pub fn faulty(&self, id: ExprId) -> bool {
        self.exprs[id.0 as usize].faulty
    }

    /// The approximate number of instructions.
    pub fn cost(&self, id: ExprId) -> u16 {
        self.exprs[id.0 as usize].cost
    }

    /// The depth of its tree.
    pub fn depth(&self, id: ExprId) -> u16 {
        self.exprs[id.0 as usize].depth
    }

    /// Whether all its values are between these two, whatever the state.
    pub fn within(&self, id: ExprId, least: i32, most: i32) -> bool {
        let (from, to) = self.exprs[id.0 as usize].range;
        i64::from(least) <= from && to <= i64::from(most)
    }

    /// Whether all its values fit the bits of a cell.
    pub fn fits(&self, id: ExprId, cell: &Cell) -> bool {
        let (from, to) = self.exprs[id.0 as usize].range;
        let (least, most) = cell_range(cell);
        least <= from && to <= most
    }

    pub fn shape(&self, array: ArrayId) -> ArrayShape {
        self.shapes[array.0 as usize]
    }

    /// The address of the positions of an array's elements. It is stable as long as the facts live.
    pub fn position_table(&self, array: ArrayId) -> i64 {
        self.positions[array.0 as usize].as_ptr() as i64
    }

    /// The address of the values of a constant array, which is stable too.
    pub fn value_table(&self, table: crate::ir::TableId) -> i64 {
        self.tables[table.0 as usize].as_ptr() as i64
    }
}

impl ArrayShape {
    fn of(fields: &[Field]) -> ArrayShape {
        let first = fields[0];
        if first.bits() == 0 {
            return ArrayShape::Nowhere;
        }
        let byte = |field: &Field| field.slot() * 4 + u32::from(field.shift() / 8);
        let bytes =
            |(number, field): (usize, &Field)| field.shift() % 8 == 0 && byte(field) == byte(&first) + number as u32;
        if cfg!(target_endian = "little") && first.bits() == 8 && fields.iter().enumerate().all(bytes) {
            return ArrayShape::Bytes(byte(&first) as i32);
        }
        let stride = fields.get(1).map_or(0, |second| second.shift().wrapping_sub(first.shift()));
        let regular = |(number, field): (usize, &Field)| {
            field.slot() == first.slot()
                && usize::from(field.shift()) == usize::from(first.shift()) + number * usize::from(stride)
        };
        if fields.iter().enumerate().all(regular) {
            return ArrayShape::Slot { slot: first.slot(), shift: first.shift(), stride };
        }
        ArrayShape::Table
    }
}

/// The interval of a cell by its bits alone.
fn cell_range(cell: &Cell) -> (i64, i64) {
    let least = cell.field.least();
    if cell.field.bits() == 0 {
        (least, least)
    } else if cell.wraps {
        (0, 255)
    } else {
        let most = cell.field.most();
        if most > i64::from(i32::MAX) { ANY } else { (least, most) }
    }
}

const ANY: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);
const TRUTH: (i64, i64) = (0, 1);

/// An interval of 32-bit numbers, or all numbers if it does not fit: then the result may have wrapped around.
fn fitting(range: (i64, i64)) -> (i64, i64) {
    if range.0 >= ANY.0 && range.1 <= ANY.1 { range } else { ANY }
}

impl Fact {
    fn of(program: &Program, expr: Expr, before: &[Fact]) -> Fact {
        let leaf = |range| Fact { faulty: false, cost: 1, depth: 1, range };
        let over = |parts: &[ExprId], own_cost: u16, faulty: bool, range: (i64, i64)| {
            let parts = parts.iter().map(|part| before[part.0 as usize]);
            parts.fold(Fact { faulty, cost: own_cost, depth: 1, range }, |all, part| Fact {
                faulty: all.faulty || part.faulty,
                cost: all.cost.saturating_add(part.cost),
                depth: all.depth.max(part.depth.saturating_add(1)),
                range,
            })
        };
        let range = |id: ExprId| before[id.0 as usize].range;
        match expr {
            Expr::Const(value) => leaf((value.into(), value.into())),
            Expr::Cell(cell) => leaf(cell_range(&program.cells[cell.0 as usize])),
            Expr::Element { array, index, checked } => {
                let first = program.arrays[array.0 as usize].first;
                over(&[index], 4, checked, cell_range(&program.cells[first.0 as usize]))
            }
            Expr::Lookup { table, index, checked } => {
                let values = &program.tables[table.0 as usize].values;
                let least = values.iter().copied().min().unwrap_or(0);
                let most = values.iter().copied().max().unwrap_or(0);
                over(&[index], 3, checked, (least.into(), most.into()))
            }
            Expr::Unary(operator, of) => {
                let (least, most) = range(of);
                let result = match operator {
                    Unary::Negate => fitting((-most, -least)),
                    Unary::Complement => (-1 - most, -1 - least),
                    Unary::Not => TRUTH,
                };
                over(&[of], 1, false, result)
            }
            Expr::Binary(operator, left, right) => {
                let ((a, b), (c, d)) = (range(left), range(right));
                let result = match operator {
                    Binary::Add => fitting((a + c, b + d)),
                    Binary::Subtract => fitting((a - d, b - c)),
                    Binary::Multiply => {
                        let products = [a * c, a * d, b * c, b * d];
                        fitting((
                            products.into_iter().fold(i64::MAX, i64::min),
                            products.into_iter().fold(i64::MIN, i64::max),
                        ))
                    }
                    Binary::BitAnd if a >= 0 && c >= 0 => (0, b.min(d)),
                    Binary::BitAnd if c >= 0 => (0, d),
                    Binary::BitAnd if a >= 0 => (0, b),
                    Binary::BitOr | Binary::BitXor if a >= 0 && c >= 0 => {
                        (0, (b.max(d) as u64 + 1).next_power_of_two() as i64 - 1)
                    }
                    Binary::Equal | Binary::Differ | Binary::Less | Binary::AtMost | Binary::More | Binary::AtLeast => {
                        TRUTH
                    }
                    _ => ANY,
                };
                over(&[left, right], 1, false, result)
            }
            Expr::Divide { remainder, left, right, checked } => {
                let ((a, b), (c, d)) = (range(left), range(right));
                let result = match remainder {
                    true if a >= 0 && c > 0 => (0, b.min(d - 1)),
                    false if a >= 0 && c > 0 => (0, b),
                    _ => ANY,
                };
                over(&[left, right], 8, checked, result)
            }
            Expr::And(left, right) | Expr::Or(left, right) => over(&[left, right], 1, false, TRUTH),
        }
    }
}
