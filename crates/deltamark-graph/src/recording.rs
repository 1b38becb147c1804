//! Taking down a graph while a search finds it, and writing it when it is complete.
//!
//! In: states by number, each with its edges, in the order a search finishes them. Out: a file, or a graph in
//! memory. What stays true: a file is there complete or not at all; what was written on the way is removed
//! whatever happens, but for the end of the process by force.
//!
//! ```text
//! search ──record──▶ FILE.dmg.PID.part    number, edges: as they come, a few bytes an edge
//!              └───▶ order                the place of each number, see order.rs
//! finish: .part, once from its beginning ──▶ FILE.dmg.PID.new ──rename──▶ FILE.dmg
//! ```
//! Targets may be recorded after their sources, so the final numbers are known at the end only. They are the
//! places in the order of recording, so that the second pass reads and writes from front to back and holds a block.

use crate::block::{Bounds, Encoder, STATES};
use crate::graph::Graph;
use crate::map::Mapped;
use crate::meta::{Meta, ModelId, Places};
use crate::order::Order;
use deltamark_core::{Action, Budget, Edge, Recorder};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are written or read at once.
const BUFFER: usize = 1 << 18;

/// What a search cannot tell while it records.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The numbers of the initial states, as they were given out, in the order of the system.
    pub initial: Vec<u64>,
    /// Whether some states were recorded under several numbers.
    pub unfolding: bool,
    /// Whether states were recorded level by level, and whether those of a level were so too.
    pub levels: bool,
    /// In how many states the model declares something wrong, if that is known.
    pub faulty: Option<u64>,
    /// The model.
    pub model: ModelId,
    /// What each action means, where numbers differ from run to run.
    pub actions: Option<Vec<Vec<u8>>>,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// States of the graph.
    pub states: u64,
    /// Edges of the graph.
    pub edges: u64,
    /// One more than the largest action.
    pub actions: u32,
    /// Bytes of everything.
    pub bytes: u64,
    /// Bytes of the edges with what belongs to them: blocks and index, without head and table of actions.
    pub packed: u64,
}

impl Written {
    /// What ⌈log2 states⌉ + ⌈log2 actions⌉ bits an edge and a byte a state come to, in bytes.
    pub fn allowance(&self) -> u64 {
        let bits = |count: u64| u64::from(crate::bits::bits_of(count.saturating_sub(1)));
        (self.edges * (bits(self.states) + bits(self.actions.into()))).div_ceil(8) + self.states
    }
}

/// Takes down a graph.
pub struct Recording {
    part: Option<Part>,
    path: Option<PathBuf>,
    order: Order,
    budget: Arc<Budget>,
    edges: u64,
    ends: u64,
    actions: u32,
    last: u64,
    record: Vec<u8>,
}

/// Where records wait for the end of the search.
enum Part {
    File(BufWriter<File>, PathBuf),
    Memory(Vec<Vec<u8>>, u64),
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Numbers near zero of either sign as small numbers.
fn fold(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

fn unfold(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// A name beside the file, for what is not complete.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(format!(".{}.{ending}", std::process::id()));
    PathBuf::from(name)
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "its folder does not exist".into(),
        io::ErrorKind::PermissionDenied => "you have no permission to write there".into(),
        io::ErrorKind::IsADirectory => "it is a folder".into(),
        io::ErrorKind::StorageFull => "the disk is full".into(),
        _ => error.to_string(),
    };
    format!("cannot write `{}`: {reason}", path.display())
}

impl Recording {
    /// A graph that will be written to this file.
    ///
    /// # Errors
    /// What is wrong with the place, in a sentence.
    pub fn to_file(path: &Path, budget: Arc<Budget>) -> Result<Self, String> {
        if path.is_dir() {
            return Err(cannot_write(path, &io::ErrorKind::IsADirectory.into()));
        }
        if !budget.request(2 * BUFFER as u64) {
            return Err("the memory limit leaves no room for writing a graph".into());
        }
        let beside = beside(path, "part");
        let options = File::options().read(true).write(true).create(true).truncate(true).open(&beside);
        let file = options.map_err(|error| {
            budget.release(2 * BUFFER as u64);
            cannot_write(path, &error)
        })?;
        let part = Part::File(BufWriter::with_capacity(BUFFER, file), beside);
        Ok(Self::new(Some(part), Some(path.into()), budget))
    }

    /// A graph that stays in memory.
    pub fn in_memory(budget: Arc<Budget>) -> Self {
        Self::new(Some(Part::Memory(Vec::new(), 0)), None, budget)
    }

    fn new(part: Option<Part>, path: Option<PathBuf>, budget: Arc<Budget>) -> Self {
        let order = Order::new(Arc::clone(&budget));
        Recording { part, path, order, budget, edges: 0, ends: 0, actions: 0, last: 0, record: Vec::new() }
    }

    /// How many states were recorded.
    pub fn states(&self) -> u64 {
        self.order.recorded()
    }

    /// How many edges were recorded.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// One more than the largest action that was recorded.
    pub fn actions(&self) -> u32 {
        self.actions
    }

    /// Writes the file, and opens it.
    ///
    /// # Errors
    /// Why there is no file, in a sentence. There is none either when this is never called.
    pub fn finish(mut self, about: About) -> Result<(Graph, Written), String> {
        let part = self.part.take().ok_or("a graph is written once")?;
        match part {
            Part::Memory(pieces, granted) => {
                let mut out = Vec::new();
                let written = {
                    let chain: Vec<u8> = pieces.concat();
                    self.write(&mut io::Cursor::new(chain), &mut io::Cursor::new(&mut out), about)
                };
                self.budget.release(granted);
                let written = written.map_err(|why| why.to_string())?;
                let graph = Graph::from_bytes(Mapped::Memory(out)).map_err(|error| error.to_string())?;
                Ok((graph, written))
            }
            Part::File(writer, part_path) => {
                let _part = Removed(&part_path);
                let path = self.path.clone().ok_or("a graph in a file has a path")?;
                let wrong = |error: io::Error| cannot_write(&path, &error);
                let mut records = writer.into_inner().map_err(|error| wrong(error.into_error()))?;
                records.seek(SeekFrom::Start(0)).map_err(wrong)?;
                let new_path = beside(&path, "new");
                let new = Removed(&new_path);
                let written = File::create(new.0).and_then(|file| {
                    let mut out = BufWriter::with_capacity(BUFFER, file);
                    let written = self.write(&mut BufReader::with_capacity(BUFFER, records), &mut out, about)?;
                    out.flush()?;
                    Ok(written)
                });
                let written = written.map_err(wrong)?;
                fs::rename(&new_path, &path).map_err(wrong)?;
                let graph = Graph::open(&path).map_err(|error| error.to_string())?;
                Ok((graph, written))
            }
        }
    }

    /// The second pass: records in, file out.
    fn write(&self, records: &mut dyn Read, out: &mut (impl Write + Seek), about: About) -> io::Result<Written> {
        let states = self.order.recorded();
        let place = |number: u64| {
            // Numbers have no gaps, so a place for each below the count is a place for all.
            self.order.place(number).ok_or_else(|| io::Error::other(format!("state {number} was never recorded")))
        };
        let initial = about.initial.iter().map(|&number| place(number)).collect::<io::Result<Vec<_>>>()?;
        let actions = self.actions.max(about.actions.as_ref().map_or(0, |table| table.len() as u32));
        let meta = Meta {
            states,
            edges: self.edges,
            actions,
            ends: self.ends,
            faulty: about.faulty,
            initial,
            unfolding: about.unfolding,
            levels: about.levels,
            model: about.model,
        };
        let mut places = Places { table: about.actions.is_some().then_some(0), ..Places::default() };
        let head = meta.encode(&places);
        out.write_all(&head)?;
        let mut at = head.len() as u64;
        let mut index: Vec<u64> = Vec::new();
        let mut encoder = Encoder::default();
        let (mut edges, mut ends, mut block) = (Vec::new(), Vec::new(), Vec::new());
        let mut reader = Records { bytes: records, last: 0, row: Vec::new() };
        let bounds = Bounds { states, actions };
        for number in 0..states {
            let row = reader.next()?;
            for edge in row.iter_mut() {
                edge.target = place(edge.target)?;
            }
            row.sort_unstable();
            if row.windows(2).any(|pair| pair[0].action == pair[1].action) {
                return Err(io::Error::other("a state has two edges of one action"));
            }
            edges.extend_from_slice(row);
            ends.push(edges.len() as u32);
            if ends.len() == STATES || number + 1 == states {
                block.clear();
                encoder.encode(bounds, &edges, &ends, &mut block);
                block.extend(crc32fast::hash(&block).to_le_bytes());
                index.push(at);
                out.write_all(&block)?;
                at += block.len() as u64;
                edges.clear();
                ends.clear();
            }
        }
        places.index = at;
        let section = crate::index::encode(&index, head.len() as u64, at);
        out.write_all(&section)?;
        at += section.len() as u64;
        let packed = at - head.len() as u64;
        if let Some(table) = &about.actions {
            places.table = Some(at);
            let section = crate::table::encode(table);
            out.write_all(&section)?;
            at += section.len() as u64;
        }
        places.end = at;
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&meta.encode(&places))?;
        Ok(Written { states, edges: self.edges, actions, bytes: at, packed })
    }
}

impl Recorder for Recording {
    fn record(&mut self, number: u64, edges: &[Edge]) -> Result<(), String> {
        self.order.record(number)?;
        self.record.clear();
        put(&mut self.record, fold(number.wrapping_sub(self.last) as i64));
        self.last = number + 1;
        put(&mut self.record, edges.len() as u64);
        for edge in edges {
            put(&mut self.record, edge.action.0.into());
            put(&mut self.record, fold(edge.target.wrapping_sub(number) as i64));
            self.actions = self.actions.max(edge.action.0 + 1);
        }
        self.edges += edges.len() as u64;
        self.ends += u64::from(edges.is_empty());
        match self.part.as_mut() {
            Some(Part::File(out, _)) => {
                let path = self.path.as_deref().unwrap_or(Path::new("?"));
                out.write_all(&self.record).map_err(|error| cannot_write(path, &error))
            }
            Some(Part::Memory(pieces, granted)) => {
                let room = pieces.last().map_or(0, |piece| piece.capacity() - piece.len());
                if room < self.record.len() {
                    let size = BUFFER.max(self.record.len());
                    if !self.budget.request(size as u64) {
                        return Err("the memory limit leaves no room for the graph".into());
                    }
                    *granted += size as u64;
                    pieces.push(Vec::with_capacity(size));
                }
                pieces.last_mut().into_iter().for_each(|piece| piece.extend_from_slice(&self.record));
                Ok(())
            }
            None => Err("a graph is recorded before it is written".into()),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        match self.part.take() {
            Some(Part::File(_, path)) => drop(Removed(&path)),
            Some(Part::Memory(_, granted)) => self.budget.release(granted),
            None => {}
        }
        if self.path.is_some() {
            self.budget.release(2 * BUFFER as u64);
        }
    }
}

/// A file that is gone when this is dropped.
struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        // It may have been renamed; and nothing can be done about one that cannot be removed.
        let _ = fs::remove_file(self.0);
    }
}

/// Reads records.
struct Records<'a> {
    bytes: &'a mut dyn Read,
    last: u64,
    row: Vec<Edge>,
}

impl Records<'_> {
    fn number(&mut self) -> io::Result<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let mut byte = [0];
            self.bytes.read_exact(&mut byte)?;
            number |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    fn next(&mut self) -> io::Result<&mut Vec<Edge>> {
        let number = self.last.wrapping_add(unfold(self.number()?) as u64);
        self.last = number + 1;
        self.row.clear();
        for _ in 0..self.number()? {
            let action = Action(self.number()? as u32);
            let target = number.wrapping_add(unfold(self.number()?) as u64);
            self.row.push(Edge { action, target });
        }
        Ok(&mut self.row)
    }
}
