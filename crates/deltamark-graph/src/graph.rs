//! A condensed graph, read from a file.
//!
//! In: a file, or its bytes. Out: the edges of any state. What stays true: all checksums are compared before
//! anything is reported about the graph, at memory bandwidth; what they cannot detect (a forged file) leads to an
//! error and never to an access outside of the file.

use crate::block::{Bounds, PackedBlock, STATES, Unpacked};
use crate::index::Index;
use crate::map::Mapped;
use crate::meta::{FileError, Meta, Places, damaged, go_on};
use crate::table;
use deltamark_core::{Budget, Control, Edge};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A condensed graph: states are numbers, edges are packed.
pub struct Graph {
    bytes: Mapped,
    meta: Meta,
    places: Places,
    index: Index,
    head: usize,
    /// The bytes in memory that the budget granted.
    granted: Option<Granted>,
}

/// Bytes that are returned to the budget with the graph.
pub(crate) struct Granted(pub Arc<Budget>, pub u64);

impl Drop for Granted {
    fn drop(&mut self) {
        self.0.release(self.1);
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph")
            .field("meta", &self.meta)
            .field("held", &self.granted.as_ref().map(|granted| granted.1))
            .finish_non_exhaustive()
    }
}

impl Graph {
    /// Opens a file and compares its checksums, unless `control` stops it.
    pub fn open(path: &Path, control: &Control) -> Result<Self, FileError> {
        let bytes = Mapped::open(path).map_err(|error| {
            FileError::Unreadable(match error.kind() {
                io::ErrorKind::NotFound => "there is no such file".into(),
                io::ErrorKind::IsADirectory => "it is a folder".into(),
                io::ErrorKind::PermissionDenied => "you have no permission to read it".into(),
                _ => error.to_string(),
            })
        })?;
        Self::from_bytes(bytes, control)
    }

    /// Reads a graph from bytes in memory.
    pub fn read(bytes: Vec<u8>) -> Result<Self, FileError> {
        Self::from_bytes(Mapped::Memory(bytes), &Control::new())
    }

    pub(crate) fn from_bytes(bytes: Mapped, control: &Control) -> Result<Self, FileError> {
        let (meta, places, head) = Meta::decode(&bytes)?;
        if places.end != bytes.len() as u64 {
            let how = if places.end > bytes.len() as u64 { "shorter" } else { "longer" };
            return Err(damaged(format!("it is {how} than its head says")));
        }
        let (index, end) = Index::new(&bytes, head, places.index, meta.states.div_ceil(STATES as u64))?;
        let graph = Graph { bytes, meta, places, index, head, granted: None };
        match places.table {
            Some(at) if at != end as u64 => return Err(damaged("its table of actions is not where it should be")),
            Some(_) => drop(graph.actions()?),
            None if end as u64 != places.end => return Err(damaged("something stands behind its index")),
            None => {}
        }
        graph.verify(control)?;
        Ok(graph)
    }

    /// The same graph, whose bytes in memory the budget granted.
    pub(crate) fn granted(mut self, granted: Granted) -> Self {
        self.granted = Some(granted);
        self
    }

    /// Compares the checksum of every block.
    fn verify(&self, control: &Control) -> Result<(), FileError> {
        let mut at = self.head;
        for number in 0..self.blocks() {
            go_on(control)?;
            let (block, sum) = self.index.block(&self.bytes, number)?;
            let start = block.as_ptr() as usize - self.bytes.as_ptr() as usize;
            if start != at {
                return Err(damaged(format!("block {number} is not where it should be")));
            }
            if crc32fast::hash(block).to_le_bytes() != sum {
                return Err(damaged(format!("the checksum of block {number} is wrong")));
            }
            at = start + block.len() + sum.len();
        }
        if at as u64 == self.places.index { Ok(()) } else { Err(damaged("something stands between blocks and index")) }
    }

    /// The header.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The number of states.
    #[inline]
    pub fn states(&self) -> u64 {
        self.meta.states
    }

    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The bytes of blocks and index.
    pub fn packed_bytes(&self) -> u64 {
        self.places.table.unwrap_or(self.places.end) - self.head as u64
    }

    /// The number of blocks of [`STATES`] states; the last may have fewer.
    pub fn blocks(&self) -> u64 {
        self.meta.states.div_ceil(STATES as u64)
    }

    /// The bytes by which a system identifies its actions, if their numbers differ from run to run.
    pub fn actions(&self) -> Result<Option<Vec<&[u8]>>, FileError> {
        let Some(at) = self.places.table else { return Ok(None) };
        let table = table::decode(&self.bytes[at as usize..])?;
        if table.len() < self.meta.actions as usize {
            return Err(damaged("its table of actions is too short"));
        }
        Ok(Some(table))
    }

    #[inline]
    fn block(&self, number: u64) -> Result<PackedBlock<'_>, FileError> {
        let (block, _) = self.index.block(&self.bytes, number)?;
        let states = (self.meta.states - number * STATES as u64).min(STATES as u64) as usize;
        Ok(PackedBlock::new(block, Bounds { states: self.meta.states, actions: self.meta.actions }, states))
    }

    /// Replaces the contents of `out` by the edges of a state, sorted by action.
    #[inline]
    pub fn edges(&self, state: u64, out: &mut Vec<Edge>) -> Result<(), FileError> {
        out.clear();
        if state >= self.meta.states {
            return Err(damaged("an edge leads to a state that is not there"));
        }
        self.block(state / STATES as u64)?.edges_of((state % STATES as u64) as usize, out)
    }

    /// Decodes all edges of a block.
    #[inline]
    pub fn unpack(&self, block: u64, out: &mut Unpacked) -> Result<(), FileError> {
        self.block(block)?.unpack(out)
    }
}

/// The bytes of a file with another header and a correct checksum: for tests of readers with forged files. `None`
/// if the bytes are no graph.
pub fn forge(bytes: &[u8], change: impl FnOnce(&mut Meta)) -> Option<Vec<u8>> {
    let (mut meta, places, head) = Meta::decode(bytes).ok()?;
    change(&mut meta);
    let longer = meta.encode(&places).len() as u64;
    let moved = |place: u64| place - head as u64 + longer;
    let places = Places { index: moved(places.index), table: places.table.map(moved), end: moved(places.end) };
    Some([&meta.encode(&places), &bytes[head..]].concat())
}

/// Corrects the checksums of an altered file, as far as its parts can be found: for tests of readers with files
/// that no writer made.
pub fn seal(bytes: &mut [u8]) {
    fn sealed(part: Option<&mut [u8]>) {
        if let Some((body, sum)) = part.and_then(|part| part.split_last_chunk_mut::<4>()) {
            *sum = crc32fast::hash(body).to_le_bytes();
        }
    }
    let length = bytes.get(12..16).map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]) as usize);
    sealed(bytes.get_mut(..length));
    let Ok((meta, places, head)) = Meta::decode(bytes) else { return };
    if let Some(table) = places.table.and_then(|at| usize::try_from(at).ok()) {
        sealed(bytes.get_mut(table..));
    }
    let blocks = meta.states.div_ceil(STATES as u64);
    let after = places.table.unwrap_or(places.end);
    if let (Ok(from), Ok(to)) = (usize::try_from(places.index), usize::try_from(after)) {
        sealed(bytes.get_mut(from..to));
    }
    let Ok((index, _)) = Index::new(bytes, head, places.index, blocks) else { return };
    for number in 0..blocks {
        let Ok((block, _)) = index.block(bytes, number) else { return };
        let start = block.as_ptr() as usize - bytes.as_ptr() as usize;
        let end = start + block.len() + 4;
        sealed(bytes.get_mut(start..end));
    }
}
