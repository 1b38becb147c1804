//! The edges of 64 states, packed.
//!
//! In: the edges of up to 64 states in a row. Out: a string of bits, and the edges again, of one state or
//! of all. What stays true: within a state edges are sorted by action, each action once; what is read
//! from a damaged string are numbers within the bounds of the graph, or an error, whatever the bits say.
//!
//! # Layout
//! `n` stands for a number of any size: six bits that tell its width, then as many bits. Of the two ways a block
//! can be written the shorter is taken.
//!
//! ```text
//! rows     [0] [n least degree] [6: degree bits] [n least target] [6: target bits] [2: kind]
//!          kind 0   [n least action] [6: action bits]       actions as they are, less the least
//!          kind 1   [n actions - 1] [action]…               actions by their place in a list
//!          kind 2   [n actions - 1] [action]…               the same; a bit for each state and action
//!          [degree]…        one a state, less the least; not of kind 2
//!          [action]…        one an edge; of kind 2 a row of bits for each state
//!          [target]…        one an edge, less the least
//!
//! columns  [1] [n least base] [6: base bits] [n columns]
//!          head    [action] [base] [6: offset bits] [6: states - 1] [1: list] [1: sloping]      one a column
//!          body    64 bits, one a state, or a list of 6 bits each; then an offset for each state
//! ```
//! A column holds all edges of one action. Its targets are `least base + base + offset`, and, if it is sloping,
//! the place of the source in the block beside: where states are numbered as a search finds them, one action leads
//! from neighbours to states that are not far from each other. An action of few states lists them; the
//! others have a bit for each state, which is also what the walk needs to fire all of them at once.

use crate::bits::{BitReader, BitWriter, MOST_BITS, bits_of, read};
use crate::meta::{FileError, damaged};
use deltamark_core::{Action, Edge};

/// States in a block.
pub const STATES: usize = 64;

/// Bits of a width.
const WIDTH: u32 = 6;
/// Columns of at most this many states list them.
const LISTED: usize = 10;

/// What all blocks of a graph have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub states: u64,
    pub actions: u32,
}

impl Bounds {
    fn action_bits(&self) -> u32 {
        bits_of(u64::from(self.actions.saturating_sub(1)))
    }
}

fn n(number: u64) -> u32 {
    WIDTH + bits_of(number)
}

fn put_n(out: &mut BitWriter, number: u64) {
    out.push(u64::from(bits_of(number)), WIDTH);
    out.push(number, bits_of(number));
}

/// An edge of a block, as columns want it.
#[derive(Clone, Copy, Default)]
struct Cell {
    action: u32,
    source: u8,
    target: u64,
}

/// Packs blocks.
#[derive(Default)]
pub(crate) struct Encoder {
    out: BitWriter,
    cells: Vec<Cell>,
    actions: Vec<u32>,
    next: Vec<usize>,
    columns: Vec<Column>,
}

/// A column that is to be written.
#[derive(Clone, Copy)]
struct Column {
    start: usize,
    end: usize,
    base: u64,
    bits: u32,
    sloping: bool,
}

impl Column {
    fn len(&self) -> usize {
        self.end - self.start
    }

    fn body(&self) -> u32 {
        let states = if self.len() <= LISTED { WIDTH * self.len() as u32 } else { STATES as u32 };
        states + self.len() as u32 * self.bits
    }
}

/// Which of the three ways to write the actions of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain = 0,
    Listed = 1,
    Bitmap = 2,
}

/// The least of some numbers, and how many bits the others need above it.
fn span(numbers: impl Iterator<Item = u64>) -> (u64, u32) {
    let (least, most) = numbers.fold((u64::MAX, 0), |(least, most), number| (least.min(number), most.max(number)));
    if least > most { (0, 0) } else { (least, bits_of(most - least)) }
}

impl Encoder {
    /// Appends a block: the edges of all states, sorted by action within each, and where those of each state end.
    pub fn encode(&mut self, bounds: Bounds, edges: &[Edge], ends: &[u32], out: &mut Vec<u8>) {
        debug_assert!(ends.len() <= STATES);
        self.actions.clear();
        self.actions.extend(edges.iter().map(|edge| edge.action.0));
        self.actions.sort_unstable();
        // How many edges an action has, then where its next cell goes.
        self.next.clear();
        let mut counted = 0;
        for run in self.actions.chunk_by(|one, other| one == other) {
            self.next.push(counted);
            counted += run.len();
        }
        self.actions.dedup();
        self.cells.clear();
        self.cells.resize(edges.len(), Cell::default());
        let mut start = 0;
        for (source, &end) in ends.iter().enumerate() {
            let mut place = 0;
            for edge in &edges[start..end as usize] {
                // Edges of a state are sorted, so the search begins where the last one ended.
                place += self.actions[place..].partition_point(|&action| action < edge.action.0);
                let cell = Cell { action: edge.action.0, source: source as u8, target: edge.target };
                self.cells[self.next[place]] = cell;
                self.next[place] += 1;
            }
            start = end as usize;
        }
        let (base, base_bits) = self.plan_columns();
        let columns = self.columns_size(bounds, base, base_bits);
        let rows = Rows::plan(bounds, edges, ends, &self.actions);
        if rows.size < columns {
            rows.write(bounds, edges, ends, &self.actions, &mut self.out);
        } else {
            self.write_columns(bounds, base, base_bits);
        }
        self.out.finish(out);
    }

    /// Finds the columns. Gives the least base, and the bits of the others above it.
    fn plan_columns(&mut self) -> (u64, u32) {
        self.columns.clear();
        let mut start = 0;
        while start < self.cells.len() {
            let action = self.cells[start].action;
            let len = self.cells[start..].iter().take_while(|cell| cell.action == action).count();
            let cells = &self.cells[start..start + len];
            let (base, bits) = span(cells.iter().map(|cell| cell.target));
            let slope = |cell: &Cell| cell.target.checked_sub(u64::from(cell.source));
            let (slope_base, slope_bits) = span(cells.iter().filter_map(slope));
            let sloping = cells.iter().all(|cell| slope(cell).is_some()) && slope_bits < bits;
            let (base, bits) = if sloping { (slope_base, slope_bits) } else { (base, bits) };
            self.columns.push(Column { start, end: start + len, base, bits, sloping });
            start += len;
        }
        span(self.columns.iter().map(|column| column.base))
    }

    fn columns_size(&self, bounds: Bounds, base: u64, base_bits: u32) -> u32 {
        let head = bounds.action_bits() + base_bits + 2 * WIDTH + 2;
        let bodies: u32 = self.columns.iter().map(Column::body).sum();
        1 + n(base) + WIDTH + n(self.columns.len() as u64) + head * self.columns.len() as u32 + bodies
    }

    fn write_columns(&mut self, bounds: Bounds, base: u64, base_bits: u32) {
        let out = &mut self.out;
        out.push(1, 1);
        put_n(out, base);
        out.push(base_bits.into(), WIDTH);
        put_n(out, self.columns.len() as u64);
        for column in &self.columns {
            out.push(self.cells[column.start].action.into(), bounds.action_bits());
            out.push(column.base - base, base_bits);
            out.push(column.bits.into(), WIDTH);
            out.push(column.len() as u64 - 1, WIDTH);
            out.push(u64::from(column.len() <= LISTED), 1);
            out.push(column.sloping.into(), 1);
        }
        for column in &self.columns {
            let cells = &self.cells[column.start..column.end];
            if column.len() <= LISTED {
                cells.iter().for_each(|cell| out.push(cell.source.into(), WIDTH));
            } else {
                let mask = cells.iter().fold(0u64, |mask, cell| mask | 1 << cell.source);
                out.push(mask & 0xffff_ffff, 32);
                out.push(mask >> 32, 32);
            }
            for cell in cells {
                let slope = if column.sloping { u64::from(cell.source) } else { 0 };
                out.push(cell.target - slope - column.base, column.bits);
            }
        }
    }
}

/// A block that is to be written as rows.
struct Rows {
    degree: (u64, u32),
    target: (u64, u32),
    action: (u64, u32),
    kind: Kind,
    size: u32,
}

impl Rows {
    fn plan(bounds: Bounds, edges: &[Edge], ends: &[u32], actions: &[u32]) -> Rows {
        let starts = std::iter::once(&0).chain(ends);
        let degree = span(ends.iter().zip(starts).map(|(end, start)| u64::from(end - start)));
        let target = span(edges.iter().map(|edge| edge.target));
        let action = span(actions.iter().map(|&action| u64::from(action)));
        let (states, count) = (ends.len() as u32, edges.len() as u32);
        let list = n(actions.len().saturating_sub(1) as u64) + actions.len() as u32 * bounds.action_bits();
        let plain = n(action.0) + WIDTH + states * degree.1 + count * action.1;
        let listed = list + states * degree.1 + count * bits_of(actions.len().saturating_sub(1) as u64);
        let bitmap = list + states * actions.len() as u32;
        let (size, kind) = if actions.is_empty() || plain <= listed.min(bitmap) {
            (plain, Kind::Plain)
        } else if listed <= bitmap {
            (listed, Kind::Listed)
        } else {
            (bitmap, Kind::Bitmap)
        };
        let head = 1 + n(degree.0) + WIDTH + n(target.0) + WIDTH + 2;
        Rows { degree, target, action, kind, size: head + size + count * target.1 }
    }

    fn write(&self, bounds: Bounds, edges: &[Edge], ends: &[u32], actions: &[u32], out: &mut BitWriter) {
        out.push(0, 1);
        put_n(out, self.degree.0);
        out.push(self.degree.1.into(), WIDTH);
        put_n(out, self.target.0);
        out.push(self.target.1.into(), WIDTH);
        out.push(self.kind as u64, 2);
        if self.kind == Kind::Plain {
            put_n(out, self.action.0);
            out.push(self.action.1.into(), WIDTH);
        } else {
            put_n(out, actions.len() as u64 - 1);
            actions.iter().for_each(|&action| out.push(action.into(), bounds.action_bits()));
        }
        let rows = || {
            let starts = std::iter::once(&0).chain(ends);
            ends.iter().zip(starts).map(|(&end, &start)| &edges[start as usize..end as usize])
        };
        if self.kind != Kind::Bitmap {
            rows().for_each(|row| out.push(row.len() as u64 - self.degree.0, self.degree.1));
        }
        match self.kind {
            Kind::Plain => {
                edges.iter().for_each(|edge| out.push(u64::from(edge.action.0) - self.action.0, self.action.1));
            }
            Kind::Listed => {
                let bits = bits_of(actions.len() as u64 - 1);
                for edge in edges {
                    let place = actions.partition_point(|&action| action < edge.action.0);
                    out.push(place as u64, bits);
                }
            }
            Kind::Bitmap => {
                for row in rows() {
                    let mut row = row.iter().peekable();
                    for &action in actions {
                        out.push(row.next_if(|edge| edge.action.0 == action).is_some().into(), 1);
                    }
                }
            }
        }
        edges.iter().for_each(|edge| out.push(edge.target - self.target.0, self.target.1));
    }
}

/// The edges of a block, unpacked.
#[derive(Clone, Debug, Default)]
pub struct Unpacked {
    /// All edges: of columns one action after the other, of rows one state after the other.
    edges: Vec<(u8, Edge)>,
    /// The states that have an edge.
    moved: u64,
}

impl Unpacked {
    /// The edges, each with the place of its source in the block; those of a state are in order.
    #[inline]
    pub fn edges(&self) -> &[(u8, Edge)] {
        &self.edges
    }

    /// A word with a bit for each state that has an edge.
    #[inline]
    pub fn moved(&self) -> u64 {
        self.moved
    }
}

/// A block that is read.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    bytes: &'a [u8],
    bounds: Bounds,
    /// The number of states in it.
    states: usize,
}

/// What stands before the edges of rows.
struct RowsHead {
    degree: (u64, u32),
    target: (u64, u32),
    kind: u64,
    action: (u64, u32),
    /// How many actions are listed, and where.
    listed: (u64, u64),
    /// Where degrees, or rows of bits, begin.
    at: u64,
}

fn odd() -> FileError {
    damaged("a block holds edges that cannot be")
}

/// A number of any size.
fn get_n(reader: &mut BitReader<'_>) -> Result<u64, FileError> {
    let bits = reader.next(WIDTH) as u32;
    if bits > MOST_BITS { Err(odd()) } else { Ok(reader.next(bits)) }
}

fn get_width(reader: &mut BitReader<'_>) -> Result<u32, FileError> {
    let bits = reader.next(WIDTH) as u32;
    if bits > MOST_BITS { Err(odd()) } else { Ok(bits) }
}

impl<'a> Packed<'a> {
    /// A block of so many states in these bytes, which may go on behind it.
    pub fn new(bytes: &'a [u8], bounds: Bounds, states: usize) -> Self {
        Packed { bytes, bounds, states }
    }

    #[inline]
    fn edge(&self, action: u64, target: u64) -> Result<Edge, FileError> {
        if action >= u64::from(self.bounds.actions) || target >= self.bounds.states {
            return Err(odd());
        }
        Ok(Edge { action: Action(action as u32), target })
    }

    /// Calls `each` with every edge and the place of its source: of all states, or of one.
    #[inline]
    fn visit(&self, one: Option<usize>, each: &mut impl FnMut(u8, Edge)) -> Result<(), FileError> {
        let mut reader = BitReader::new(self.bytes);
        if reader.next(1) == 1 { self.columns(reader, one, each) } else { self.rows(reader, one, each) }
    }

    #[inline]
    fn columns(
        &self,
        mut reader: BitReader<'_>,
        one: Option<usize>,
        each: &mut impl FnMut(u8, Edge),
    ) -> Result<(), FileError> {
        let least = get_n(&mut reader)?;
        let base_bits = get_width(&mut reader)?;
        let count = get_n(&mut reader)?;
        let action_bits = self.bounds.action_bits();
        let head = u64::from(action_bits + base_bits + 2 * WIDTH + 2);
        // Every column takes some bits, so that this bounds the work.
        if count > 8 * self.bytes.len() as u64 {
            return Err(odd());
        }
        let mut body = reader.at() + count * head;
        for _ in 0..count {
            let action = reader.next(action_bits);
            let base = least + reader.next(base_bits);
            let bits = get_width(&mut reader)?;
            let states = reader.next(WIDTH) as u32 + 1;
            let listed = reader.next(1) == 1;
            let sloping = reader.next(1);
            let offsets = body + u64::from(if listed { WIDTH * states } else { STATES as u32 });
            if offsets + u64::from(states * bits) > 8 * self.bytes.len() as u64 {
                return Err(odd());
            }
            let target = |place: u32, source: u64| {
                base + read(self.bytes, offsets + u64::from(place * bits), bits) + source * sloping
            };
            if listed {
                for place in 0..states {
                    let source = read(self.bytes, body + u64::from(place * WIDTH), WIDTH);
                    if source >= self.states as u64 {
                        return Err(odd());
                    }
                    if one.is_none_or(|one| one as u64 == source) {
                        each(source as u8, self.edge(action, target(place, source))?);
                    }
                }
            } else {
                let mask = read(self.bytes, body, 32) | read(self.bytes, body + 32, 32) << 32;
                if mask.count_ones() != states || (self.states < 64 && mask >> self.states != 0) {
                    return Err(odd());
                }
                match one {
                    Some(one) if mask >> one & 1 == 0 => {}
                    Some(one) => {
                        let place = (mask & ((1 << one) - 1)).count_ones();
                        each(one as u8, self.edge(action, target(place, one as u64))?);
                    }
                    None => {
                        let mut rest = mask;
                        for place in 0..states {
                            let source = u64::from(rest.trailing_zeros());
                            rest &= rest.wrapping_sub(1);
                            each(source as u8, self.edge(action, target(place, source))?);
                        }
                    }
                }
            }
            body = offsets + u64::from(states * bits);
        }
        Ok(())
    }

    fn rows_head(&self, reader: &mut BitReader<'_>) -> Result<RowsHead, FileError> {
        let degree = (get_n(reader)?, get_width(reader)?);
        let target = (get_n(reader)?, get_width(reader)?);
        let kind = reader.next(2);
        let (mut action, mut listed) = ((0, 0), (0, 0));
        if kind == Kind::Plain as u64 {
            action = (get_n(reader)?, get_width(reader)?);
        } else {
            let count = get_n(reader)? + 1;
            let bits = self.bounds.action_bits();
            if kind > Kind::Bitmap as u64 || count > u64::from(self.bounds.actions) {
                return Err(odd());
            }
            listed = (count, reader.at());
            action.1 = bits_of(count - 1);
            reader.skip(count * u64::from(bits));
        }
        // Edges of a state differ in their actions; so an edge takes a bit, or there is one at most. This
        // bounds the work that a damaged block can ask for.
        let most = if action.1 == 0 { 1 } else { 8 * self.bytes.len() as u64 };
        if degree.0 > most || reader.at() > 8 * self.bytes.len() as u64 {
            return Err(odd());
        }
        Ok(RowsHead { degree, target, kind, action, listed, at: reader.at() })
    }

    #[inline]
    fn rows(
        &self,
        mut reader: BitReader<'_>,
        one: Option<usize>,
        each: &mut impl FnMut(u8, Edge),
    ) -> Result<(), FileError> {
        let head = self.rows_head(&mut reader)?;
        let all = 8 * self.bytes.len() as u64;
        let in_list = |place: u64| {
            let bits = self.bounds.action_bits();
            read(self.bytes, head.listed.1 + place * u64::from(bits), bits)
        };
        let target = |targets: u64, edge: u64| {
            head.target.0 + read(self.bytes, targets + edge * u64::from(head.target.1), head.target.1)
        };
        if head.kind == Kind::Bitmap as u64 {
            let count = head.listed.0;
            let targets = head.at + self.states as u64 * count;
            if targets > all {
                return Err(odd());
            }
            let mut edge = 0;
            for source in 0..self.states {
                let row = head.at + source as u64 * count;
                for place in 0..count {
                    if read(self.bytes, row + place, 1) == 1 {
                        if one.is_none_or(|one| one == source) {
                            each(source as u8, self.edge(in_list(place), target(targets, edge))?);
                        }
                        edge += 1;
                    }
                }
                if one == Some(source) {
                    break;
                }
            }
            return Ok(());
        }
        let mut degrees = [0; STATES];
        let mut count = 0;
        for degree in &mut degrees[..self.states] {
            *degree = head.degree.0 + reader.next(head.degree.1);
            count += *degree;
        }
        let actions = reader.at();
        // Widths of 56 bits and degrees of as many cannot overflow once the number of edges is bounded.
        let too_many = degrees.iter().any(|&degree| degree > if head.action.1 == 0 { 1 } else { all });
        if too_many || actions + count * u64::from(head.action.1 + head.target.1) > all {
            return Err(odd());
        }
        let targets = actions + count * u64::from(head.action.1);
        let mut edge = 0;
        for (source, &degree) in degrees[..self.states].iter().enumerate() {
            if one.is_none_or(|one| one == source) {
                for edge in edge..edge + degree {
                    let action = read(self.bytes, actions + edge * u64::from(head.action.1), head.action.1);
                    let action = match head.kind {
                        0 => head.action.0 + action,
                        _ if action < head.listed.0 => in_list(action),
                        _ => return Err(odd()),
                    };
                    each(source as u8, self.edge(action, target(targets, edge))?);
                }
            }
            edge += degree;
            if one == Some(source) {
                break;
            }
        }
        Ok(())
    }

    /// Appends the edges of one state, sorted by action.
    #[inline]
    pub fn edges_of(&self, state: usize, out: &mut Vec<Edge>) -> Result<(), FileError> {
        self.visit(Some(state), &mut |_, edge| out.push(edge))
    }

    /// Unpacks all edges.
    pub fn unpack(&self, out: &mut Unpacked) -> Result<(), FileError> {
        let Unpacked { edges, moved } = out;
        edges.clear();
        *moved = 0;
        self.visit(None, &mut |source, edge| {
            edges.push((source, edge));
            *moved |= 1 << source;
        })
    }
}
