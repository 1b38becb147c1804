//! The edges of 64 states, packed.
//!
//! In: the edges of up to 64 consecutive states. Out: a bit string, and the edges again, of one state or of all.
//! What stays true: within a state edges are sorted by action, each action once; a damaged string decodes to
//! numbers within the bounds of the graph, or to an error, whatever its bits.
//!
//! # Layout
//! `n` is a number of any size: six bits with its width, then as many bits; *action* is as many bits as the
//! largest action of the graph needs. Of the two encodings of a block the shorter is used.
//!
//! ```text
//! rows     [0] [n least degree] [6: degree bits] [n least target] [6: target bits] [2: kind]
//!          kind 0   [n least action] [6: action bits]       actions minus the least
//!          kind 1   [n actions - 1] [action]…               actions by their index in a list
//!          kind 2   [n actions - 1] [action]…               the same; a bit for each state and action
//!          [degree]…        one a state, minus the least; not in kind 2
//!          [action]…        one an edge; in kind 2 a row of bits for each state
//!          [target]…        one an edge, minus the least
//!
//! columns  [1] …            action by action: see `columns.rs`
//! ```

use crate::bits::{BitReader, BitWriter, MOST_BITS, read};
use crate::columns::{Columns, Reading};
use crate::meta::{FileError, damaged};
use deltamark_core::packed::bits_of;
use deltamark_core::{Action, Edge};

/// States in a block.
pub const STATES: usize = 64;

/// Bits of a width field.
pub(crate) const WIDTH: u32 = 6;

/// Parameters shared by all blocks of a graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub states: u64,
    pub actions: u32,
}

impl Bounds {
    pub fn action_bits(&self) -> u32 {
        bits_of(u64::from(self.actions.saturating_sub(1)))
    }

    /// A decoded edge, if it is within bounds.
    #[inline]
    pub fn edge(&self, action: u64, target: u64) -> Result<Edge, FileError> {
        if action >= u64::from(self.actions) || target >= self.states {
            return Err(odd());
        }
        Ok(Edge { action: Action(action as u32), target })
    }
}

/// The size in bits of a number of any size.
pub(crate) fn n(number: u64) -> u32 {
    WIDTH + bits_of(number)
}

pub(crate) fn put_n(out: &mut BitWriter, number: u64) {
    out.push(u64::from(bits_of(number)), WIDTH);
    out.push(number, bits_of(number));
}

/// Encodes blocks.
#[derive(Default)]
pub(crate) struct Encoder {
    out: BitWriter,
    columns: Columns,
}

/// The three encodings of the actions of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ActionCoding {
    Plain = 0,
    Listed = 1,
    Bitmap = 2,
}

/// The least of some numbers, and the number of bits of the largest difference to it.
pub(crate) fn span(numbers: impl Iterator<Item = u64>) -> (u64, u32) {
    let (least, most) = numbers.fold((u64::MAX, 0), |(least, most), number| (least.min(number), most.max(number)));
    if least > most { (0, 0) } else { (least, bits_of(most - least)) }
}

impl Encoder {
    /// Appends a block: the edges of all states, sorted by action within each, and where those of each state end.
    pub fn encode(&mut self, bounds: Bounds, edges: &[Edge], ends: &[u32], out: &mut Vec<u8>) {
        debug_assert!(ends.len() <= STATES);
        self.columns.gather(bounds, edges, ends);
        let columns = self.columns.plan(bounds);
        let actions = &self.columns.actions;
        let rows = RowCoding::plan(bounds, edges, ends, actions);
        if rows.size < columns {
            rows.write(bounds, edges, ends, actions, &mut self.out);
            self.out.finish(out);
        } else {
            self.out.push(1, 1);
            self.columns.write(bounds, &mut self.out, out);
        }
    }
}

/// A block to be encoded as rows.
struct RowCoding {
    degree: (u64, u32),
    target: (u64, u32),
    action: (u64, u32),
    kind: ActionCoding,
    size: u32,
}

impl RowCoding {
    fn plan(bounds: Bounds, edges: &[Edge], ends: &[u32], actions: &[u32]) -> RowCoding {
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
            (plain, ActionCoding::Plain)
        } else if listed <= bitmap {
            (listed, ActionCoding::Listed)
        } else {
            (bitmap, ActionCoding::Bitmap)
        };
        let head = 1 + n(degree.0) + WIDTH + n(target.0) + WIDTH + 2;
        RowCoding { degree, target, action, kind, size: head + size + count * target.1 }
    }

    fn write(&self, bounds: Bounds, edges: &[Edge], ends: &[u32], actions: &[u32], out: &mut BitWriter) {
        out.push(0, 1);
        put_n(out, self.degree.0);
        out.push(self.degree.1.into(), WIDTH);
        put_n(out, self.target.0);
        out.push(self.target.1.into(), WIDTH);
        out.push(self.kind as u64, 2);
        if self.kind == ActionCoding::Plain {
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
        if self.kind != ActionCoding::Bitmap {
            rows().for_each(|row| out.push(row.len() as u64 - self.degree.0, self.degree.1));
        }
        match self.kind {
            ActionCoding::Plain => {
                edges.iter().for_each(|edge| out.push(u64::from(edge.action.0) - self.action.0, self.action.1));
            }
            ActionCoding::Listed => {
                let bits = bits_of(actions.len() as u64 - 1);
                for edge in edges {
                    let place = actions.partition_point(|&action| action < edge.action.0);
                    out.push(place as u64, bits);
                }
            }
            ActionCoding::Bitmap => {
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

/// The edges of a block, decoded.
#[derive(Clone, Debug, Default)]
pub struct Unpacked {
    /// All edges: of columns action by action, of rows state by state.
    edges: Vec<(u8, Edge)>,
    /// The states that have an edge.
    moved: u64,
}

impl Unpacked {
    /// The edges, each with the index of its source in the block; those of a state are in order.
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

/// A block to be decoded.
#[derive(Clone, Copy)]
pub(crate) struct PackedBlock<'a> {
    bytes: &'a [u8],
    bounds: Bounds,
    /// The number of states in it.
    states: usize,
}

/// The header of rows, before the edges.
struct RowsHead {
    degree: (u64, u32),
    target: (u64, u32),
    kind: u64,
    action: (u64, u32),
    /// The number of listed actions, and the position of the list.
    listed: (u64, u64),
    /// The position of degrees, or of rows of bits.
    at: u64,
}

pub(crate) fn odd() -> FileError {
    damaged("a block holds edges that cannot be")
}

/// A number of any size.
pub(crate) fn get_n(reader: &mut BitReader<'_>) -> Result<u64, FileError> {
    let bits = reader.next(WIDTH) as u32;
    if bits > MOST_BITS { Err(odd()) } else { Ok(reader.next(bits)) }
}

pub(crate) fn get_width(reader: &mut BitReader<'_>) -> Result<u32, FileError> {
    let bits = reader.next(WIDTH) as u32;
    if bits > MOST_BITS { Err(odd()) } else { Ok(bits) }
}

impl<'a> PackedBlock<'a> {
    /// A block of `states` states in these bytes, which may extend beyond it.
    pub fn new(bytes: &'a [u8], bounds: Bounds, states: usize) -> Self {
        PackedBlock { bytes, bounds, states }
    }

    /// Calls `each` with every edge and the index of its source: of all states, or of one.
    #[inline]
    fn visit(&self, one: Option<usize>, each: &mut impl FnMut(u8, Edge)) -> Result<(), FileError> {
        let mut reader = BitReader::new(self.bytes);
        if reader.next(1) == 1 {
            let PackedBlock { bytes, bounds, states } = *self;
            Reading { bytes, bounds, states }.visit(reader, one, each)
        } else {
            self.rows(reader, one, each)
        }
    }

    fn rows_head(&self, reader: &mut BitReader<'_>) -> Result<RowsHead, FileError> {
        let degree = (get_n(reader)?, get_width(reader)?);
        let target = (get_n(reader)?, get_width(reader)?);
        let kind = reader.next(2);
        let (mut action, mut listed) = ((0, 0), (0, 0));
        if kind == ActionCoding::Plain as u64 {
            action = (get_n(reader)?, get_width(reader)?);
        } else {
            let count = get_n(reader)? + 1;
            let bits = self.bounds.action_bits();
            if kind > ActionCoding::Bitmap as u64 || count > u64::from(self.bounds.actions) {
                return Err(odd());
            }
            listed = (count, reader.at());
            action.1 = bits_of(count - 1);
            reader.skip(count * u64::from(bits));
        }
        // Edges of a state differ in their actions; so an edge takes a bit, or there is at most one. This bounds
        // the work that a damaged block can cause.
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
        if head.kind == ActionCoding::Bitmap as u64 {
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
                            each(source as u8, self.bounds.edge(in_list(place), target(targets, edge))?);
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
                    each(source as u8, self.bounds.edge(action, target(targets, edge))?);
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

    /// Decodes all edges.
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

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::hash::mix;

    /// Blocks of all shapes: many actions and few, targets near each other, far, ascending, and an outlier among
    /// near ones.
    #[test]
    fn blocks_come_back_state_by_state_and_as_a_whole() {
        let mut encoder = Encoder::default();
        for case in 0..4000u64 {
            let number = |index: u64| mix(case << 20 | index);
            let states = 1 + number(0) as usize % STATES;
            let bounds = Bounds { states: 1 << 50, actions: [1, 2, 9, 60, 70_000, u32::MAX][number(1) as usize % 6] };
            let reach = 1 << (number(2) % 48);
            let slope = [0, 1, 3, 40][number(3) as usize % 4];
            let (mut edges, mut ends) = (Vec::new(), Vec::new());
            for source in 0..states as u64 {
                let mut actions: Vec<u32> = (0..number(source + 10) % 12)
                    .map(|index| (number(source * 64 + index + 100) % u64::from(bounds.actions).min(1 << 20)) as u32)
                    .map(|action| if bounds.actions > 1 << 30 { action * 4001 } else { action })
                    .collect();
                actions.sort_unstable();
                actions.dedup();
                for action in actions {
                    let noise = number(source * 64 + u64::from(action) + 10_000);
                    let far = if noise % 97 == 0 { 1 << 49 } else { 0 };
                    edges.push(Edge { action: Action(action), target: far + source * slope + (noise >> 8) % reach });
                }
                ends.push(edges.len() as u32);
            }
            let mut bytes = Vec::new();
            encoder.encode(bounds, &edges, &ends, &mut bytes);
            let packed = PackedBlock::new(&bytes, bounds, states);
            let mut unpacked = Unpacked::default();
            packed.unpack(&mut unpacked).expect("a block");
            let mut start = 0;
            for (source, &end) in ends.iter().enumerate() {
                let row = &edges[start..end as usize];
                let mut one = Vec::new();
                packed.edges_of(source, &mut one).expect("a state");
                assert_eq!(one, row, "case {case}, state {source}");
                let all = unpacked.edges().iter().filter(|edge| edge.0 as usize == source).map(|edge| edge.1);
                assert!(all.eq(row.iter().copied()), "case {case}, state {source}");
                assert_eq!(unpacked.moved() >> source & 1 == 1, !row.is_empty());
                start = end as usize;
            }
        }
    }
}
