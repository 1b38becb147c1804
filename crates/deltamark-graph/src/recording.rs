//! Records a graph while a search finds it, and writes it when it is complete.
//!
//! In: states by number, each with its edges, in the order a search finishes them. Out: a file, or a graph in
//! memory. What stays true: a file is complete or does not exist; temporary files are removed whatever happens,
//! unless the process is killed.
//!
//! ```text
//! search ──record──▶ FILE.dmg.PID.part    number, edges: in order of arrival, a few bytes an edge
//!              └───▶ order                the position of each number, see order.rs
//! finish: .part ──▶ FILE.dmg.PID.new ──rename──▶ FILE.dmg
//! ```
//! Targets may be recorded after their sources, so the final numbers are known at the end only. There are two ways
//! to assign them:
//! * Breadth first, if the budget has room for three packed numbers a state: from the initial states on, targets are
//!   numbered as the edges of their sources mention them, sorted by action. One pass suffices, because all targets of a state
//!   have their numbers when it is processed. Neighbours then lead to neighbours by the same action, and edges take half the
//!   bits or less: 13.9 → 6.4 bits on 13 philosophers, 12.5 → 8.5 on kanban 5, 11.7 → 5.8 on 11 database managers
//!   (whose states breadth-first search numbers in batches of 64, transition by transition).
//! * As recorded, from front to back, holding one block.

use crate::block::{Bounds, Encoder, STATES};
use crate::graph::{Granted, Graph};
use crate::map::Mapped;
use crate::meta::{FileError, Meta, ModelId, Places};
use crate::order::Order;
use crate::packed::Packed;
use crate::unfinished::Unfinished;
use deltamark_core::{Action, Budget, Control, Edge, Recorder, Stop};
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes written or read at once.
const BUFFER: usize = 1 << 18;

/// What is known only when the search has ended.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The numbers of the initial states, as assigned, in the order of the system.
    pub initial: Vec<u64>,
    /// Whether some states were recorded under several numbers.
    pub unfolding: bool,
    /// Whether states were recorded level by level.
    pub levels: bool,
    /// The number of states in which the model declares a fault, if that is known.
    pub faulty: Option<u64>,
    /// The model.
    pub model: ModelId,
    /// The meaning of each action, if numbers differ from run to run.
    pub actions: Option<Vec<Vec<u8>>>,
}

/// Statistics of what was written.
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
    /// Bytes of the edges: blocks and index, without header and table of actions.
    pub packed: u64,
}

impl Written {
    /// The size in bytes at ⌈log2 states⌉ + ⌈log2 actions⌉ bits an edge and a byte a state.
    pub fn allowance(&self) -> u64 {
        let bits = |count: u64| u64::from(deltamark_core::packed::bits_of(count.saturating_sub(1)));
        (self.edges * (bits(self.states) + bits(self.actions.into()))).div_ceil(8) + self.states
    }
}

/// Why a graph was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The reason, in a sentence.
    pub why: String,
    /// Whether it is that the budget had no room; otherwise the file, or what was recorded, is to blame.
    pub room: bool,
}

impl Unwritten {
    fn room(why: &str) -> Self {
        Unwritten { why: why.into(), room: true }
    }
}

impl From<String> for Unwritten {
    fn from(why: String) -> Self {
        Unwritten { why, room: false }
    }
}

impl From<FileError> for Unwritten {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Stopped(Stop::Memory) => Self::room("the memory limit leaves no room for checking the graph"),
            error => error.to_string().into(),
        }
    }
}

/// Records a graph.
pub struct Recording {
    part: Option<RecordSink>,
    path: Option<PathBuf>,
    order: Order,
    budget: Arc<Budget>,
    control: Control,
    edges: u64,
    ends: u64,
    actions: u32,
    last: u64,
    record: Vec<u8>,
    refused: bool,
}

/// Where records are kept until the end of the search.
enum RecordSink {
    File(BufWriter<File>, Unfinished),
    Memory(Vec<Vec<u8>>, u64),
}

/// Appends a varint (LEB128). Most take one or two bytes.
#[inline]
fn put(out: &mut Vec<u8>, mut number: u64) {
    if (0x80..0x4000).contains(&number) {
        out.extend_from_slice(&[number as u8 | 0x80, (number >> 7) as u8]);
        return;
    }
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Zigzag: numbers near zero of either sign as small numbers.
fn fold(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

fn unfold(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// A temporary name beside the file.
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
    /// Why no file can be written there.
    pub fn to_file(path: &Path, budget: Arc<Budget>) -> Result<Self, Unwritten> {
        if path.is_dir() {
            return Err(cannot_write(path, &io::ErrorKind::IsADirectory.into()).into());
        }
        // The file is renamed when it is complete, which would replace a device or a pipe.
        if path.exists() && !path.is_file() {
            return Err(cannot_write(path, &io::Error::other("it is no regular file")).into());
        }
        if !budget.request(2 * BUFFER as u64) {
            return Err(Unwritten::room("the memory limit leaves no room for writing a graph"));
        }
        let beside = Unfinished::new(beside(path, "part"));
        let options = File::options().read(true).write(true).create(true).truncate(true).open(beside.path());
        let file = options.map_err(|error| {
            budget.release(2 * BUFFER as u64);
            cannot_write(path, &error)
        })?;
        let part = RecordSink::File(BufWriter::with_capacity(BUFFER, file), beside);
        Ok(Self::new(Some(part), Some(path.into()), budget))
    }

    /// A graph that stays in memory.
    pub fn in_memory(budget: Arc<Budget>) -> Self {
        Self::new(Some(RecordSink::Memory(Vec::new(), 0)), None, budget)
    }

    fn new(part: Option<RecordSink>, path: Option<PathBuf>, budget: Arc<Budget>) -> Self {
        let order = Order::new(&budget);
        let control = Control::new();
        Recording {
            part,
            path,
            order,
            budget,
            control,
            edges: 0,
            ends: 0,
            actions: 0,
            last: 0,
            record: Vec::new(),
            refused: false,
        }
    }

    /// The same, whose file is not written if `control` stops the run before.
    pub fn under(mut self, control: &Control) -> Self {
        self.control = control.clone();
        self
    }

    /// The number of recorded states.
    pub fn states(&self) -> u64 {
        self.order.recorded()
    }

    /// The number of recorded edges.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// Whether a record failed because the budget had no room for it.
    pub fn is_refused(&self) -> bool {
        self.refused || self.order.is_refused()
    }

    /// One more than the largest recorded action.
    pub fn actions(&self) -> u32 {
        self.actions
    }

    /// Writes the file, and opens it.
    ///
    /// # Errors
    /// Why there is no file. There is none either when this is never called.
    pub fn finish(mut self, about: About) -> Result<(Graph, Written), Unwritten> {
        let part = self.part.take().ok_or_else(|| "a graph is written once".to_string())?;
        match part {
            RecordSink::Memory(pieces, granted) => {
                // Everything three times for a moment: pieces, contiguous records, and the graph, which is smaller
                // than both.
                let _pieces = Granted(Arc::clone(&self.budget), granted);
                if !self.budget.request(2 * granted) {
                    return Err(Unwritten::room("the memory limit leaves no room for the graph"));
                }
                let mut held = Granted(Arc::clone(&self.budget), 2 * granted);
                let records = pieces.concat();
                drop(pieces);
                let mut out = Vec::new();
                let written = self.write(&records, &mut io::Cursor::new(&mut out), about);
                let written = written.map_err(|why| why.to_string())?;
                out.shrink_to_fit();
                let keep = (out.len() as u64).min(held.1);
                self.budget.release(held.1 - keep);
                held.1 = keep;
                let graph = Graph::from_bytes(Mapped::Memory(out), &self.control)?;
                Ok((graph.granted(held), written))
            }
            RecordSink::File(writer, part) => {
                let path = self.path.clone().ok_or_else(|| "a graph in a file has a path".to_string())?;
                let wrong = |error: io::Error| cannot_write(&path, &error);
                drop(writer.into_inner().map_err(|error| wrong(error.into_error()))?);
                let records = Mapped::open(part.path()).map_err(wrong)?;
                let new = Unfinished::new(beside(&path, "new"));
                let written = File::create(new.path()).and_then(|file| {
                    let mut out = BufWriter::with_capacity(BUFFER, file);
                    let written = self.write(&records, &mut out, about)?;
                    out.flush()?;
                    Ok(written)
                });
                let written = written.map_err(wrong)?;
                // Before the rename: if the run must stop now, there is no file.
                let graph = Graph::open(new.path(), &self.control)?;
                fs::rename(new.path(), &path).map_err(wrong)?;
                Ok((graph, written))
            }
        }
    }

    /// The second pass: records in, file out.
    fn write(&self, records: &[u8], out: &mut (impl Write + Seek), about: About) -> io::Result<Written> {
        let states = self.order.recorded();
        // Numbers have no gaps, so a position for each below the count is a position for all.
        let missing = |number: u64| io::Error::other(format!("state {number} was never recorded"));
        for number in 0..states {
            if number.is_multiple_of(ASKED) {
                goes_on(&self.control)?;
            }
            if self.order.place(number).is_none() {
                return Err(missing(number));
            }
        }
        let actions = self.actions.max(about.actions.as_ref().map_or(0, |table| table.len() as u32));
        let meta = Meta {
            states,
            edges: self.edges,
            actions,
            ends: self.ends,
            faulty: about.faulty,
            depth: None,
            initial: about.initial,
            unfolding: about.unfolding,
            levels: about.levels,
            model: about.model,
        };
        let places = Places { table: about.actions.is_some().then_some(0), ..Places::default() };
        let mut file = GraphWriter::begin(out, meta, places, &self.control)?;
        match Renumbered::new(states, records, &file.meta.initial, &self.budget, &self.control)? {
            Some(renumbered) => renumbered.write(records, &mut file)?,
            None => self.write_as_recorded(records, &mut file)?,
        }
        file.end(about.actions.as_deref())
    }

    fn write_as_recorded(&self, records: &[u8], file: &mut GraphWriter<'_, impl Write + Seek>) -> io::Result<()> {
        let place = |number: u64| {
            self.order.place(number).ok_or_else(|| io::Error::other(format!("state {number} was never recorded")))
        };
        for number in &mut file.meta.initial {
            *number = place(*number)?;
        }
        let mut reader = Records { bytes: records, at: 0, last: 0 };
        let mut row = Vec::new();
        for _ in 0..self.order.recorded() {
            reader.next(&mut row)?;
            for edge in &mut row {
                edge.target = place(edge.target)?;
            }
            row.sort_unstable();
            file.push(&row)?;
        }
        Ok(())
    }
}

/// States of a fast pass between two polls of the clock.
const ASKED: u64 = 1024;

/// An error if the run must stop.
fn goes_on(control: &Control) -> io::Result<()> {
    match control.stop_without_memory() {
        Some(stop) => Err(io::Error::other(format!("writing was ended ({})", stop.word()))),
        None => Ok(()),
    }
}

/// A file that is being written.
struct GraphWriter<'a, W: Write + Seek> {
    out: &'a mut W,
    control: &'a Control,
    meta: Meta,
    places: Places,
    head: u64,
    at: u64,
    index: Vec<u64>,
    encoder: Encoder,
    edges: Vec<Edge>,
    ends: Vec<u32>,
    block: Vec<u8>,
}

impl<'a, W: Write + Seek> GraphWriter<'a, W> {
    fn begin(out: &'a mut W, meta: Meta, places: Places, control: &'a Control) -> io::Result<Self> {
        let head = meta.encode(&places);
        out.write_all(&head)?;
        let head = head.len() as u64;
        Ok(GraphWriter {
            out,
            control,
            meta,
            places,
            head,
            at: head,
            index: Vec::new(),
            encoder: Encoder::default(),
            edges: Vec::new(),
            ends: Vec::new(),
            block: Vec::new(),
        })
    }

    /// Appends the edges of the next state, sorted by action.
    fn push(&mut self, row: &[Edge]) -> io::Result<()> {
        if row.windows(2).any(|pair| pair[0].action == pair[1].action) {
            return Err(io::Error::other("a state has two edges of one action"));
        }
        self.edges.extend_from_slice(row);
        self.ends.push(self.edges.len() as u32);
        if self.ends.len() == STATES { self.block() } else { Ok(()) }
    }

    fn block(&mut self) -> io::Result<()> {
        goes_on(self.control)?;
        self.block.clear();
        let bounds = Bounds { states: self.meta.states, actions: self.meta.actions };
        self.encoder.encode(bounds, &self.edges, &self.ends, &mut self.block);
        self.block.extend(crc32fast::hash(&self.block).to_le_bytes());
        self.index.push(self.at);
        self.out.write_all(&self.block)?;
        self.at += self.block.len() as u64;
        self.edges.clear();
        self.ends.clear();
        Ok(())
    }

    fn end(mut self, table: Option<&[Vec<u8>]>) -> io::Result<Written> {
        if !self.ends.is_empty() {
            self.block()?;
        }
        self.places.index = self.at;
        let section = crate::index::encode(&self.index, self.head, self.at);
        self.out.write_all(&section)?;
        self.at += section.len() as u64;
        let packed = self.at - self.head;
        if let Some(table) = table {
            self.places.table = Some(self.at);
            let section = crate::table::encode(table);
            self.out.write_all(&section)?;
            self.at += section.len() as u64;
        }
        self.places.end = self.at;
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&self.meta.encode(&self.places))?;
        let Meta { states, edges, actions, .. } = self.meta;
        Ok(Written { states, edges, actions, bytes: self.at, packed })
    }
}

/// Breadth-first numbering.
struct Renumbered {
    /// The position of the record of each state, by the number it was found under.
    records: Packed,
    /// The new numbers, plus one.
    numbers: Packed,
    /// The old numbers, by the new ones.
    queue: Packed,
    queued: u64,
}

impl Renumbered {
    /// Prepares a new numbering, if there is memory for it.
    fn new(
        states: u64,
        bytes: &[u8],
        initial: &[u64],
        budget: &Arc<Budget>,
        control: &Control,
    ) -> io::Result<Option<Self>> {
        let rows = [bytes.len() as u64, states, states].map(|largest| Packed::new(states, largest, budget));
        let [Some(mut records), Some(numbers), Some(queue)] = rows else { return Ok(None) };
        let mut reader = Records { bytes, at: 0, last: 0 };
        for read in 0..states {
            if read.is_multiple_of(ASKED) {
                goes_on(control)?;
            }
            let at = reader.at;
            let number = reader.skip()?;
            // A record begins with its number; the position after it is kept.
            records.set(number, (at + reader.lead(at)) as u64);
        }
        let mut renumbered = Renumbered { records, numbers, queue, queued: 0 };
        for &number in initial {
            if number >= states {
                return Err(io::Error::other("an initial state was never recorded"));
            }
            renumbered.number(number);
        }
        Ok(Some(renumbered))
    }

    /// The new number of a state, assigned now unless it has one.
    #[inline]
    fn number(&mut self, old: u64) -> u64 {
        match self.numbers.get(old) {
            0 => {
                self.numbers.set(old, self.queued + 1);
                self.queue.set(self.queued, old);
                self.queued += 1;
                self.queued - 1
            }
            number => number - 1,
        }
    }

    fn write(mut self, bytes: &[u8], file: &mut GraphWriter<'_, impl Write + Seek>) -> io::Result<()> {
        let states = file.meta.states;
        for index in 0..file.meta.initial.len() {
            file.meta.initial[index] = self.number(file.meta.initial[index]);
        }
        let (mut next, mut level, mut end) = (0, 0, self.queued);
        let mut row = Vec::new();
        while next < self.queued {
            if next == end {
                level += 1;
                end = self.queued;
            }
            let old = self.queue.get(next);
            next += 1;
            let mut reader = Records { bytes, at: self.records.get(old) as usize, last: 0 };
            reader.edges(old, &mut row)?;
            row.sort_unstable_by_key(|edge| edge.action);
            for edge in &mut row {
                if edge.target >= states {
                    return Err(io::Error::other(format!("state {} was never recorded", edge.target)));
                }
                edge.target = self.number(edge.target);
            }
            file.push(&row)?;
        }
        if self.queued != states {
            return Err(io::Error::other("a state was recorded that cannot be reached"));
        }
        file.meta.levels = true;
        file.meta.depth = Some(level);
        Ok(())
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
            Some(RecordSink::File(out, _)) => {
                let path = self.path.as_deref().unwrap_or(Path::new("?"));
                out.write_all(&self.record).map_err(|error| cannot_write(path, &error))
            }
            Some(RecordSink::Memory(pieces, granted)) => {
                let room = pieces.last().map_or(0, |piece| piece.capacity() - piece.len());
                if room < self.record.len() {
                    let size = BUFFER.max(self.record.len());
                    if !self.budget.request(size as u64) {
                        self.refused = true;
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
            Some(RecordSink::File(..)) | None => {}
            Some(RecordSink::Memory(_, granted)) => self.budget.release(granted),
        }
        if self.path.is_some() {
            self.budget.release(2 * BUFFER as u64);
        }
    }
}

/// Reads records.
struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    last: u64,
}

impl Records<'_> {
    #[inline]
    fn number(&mut self) -> io::Result<u64> {
        // Nearly all numbers take four bytes or fewer, and nearly always four bytes remain.
        let Some(&[one, two, three, four]) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) else {
            return self.long_number();
        };
        let [low, next, third, fourth] = [one, two, three, four].map(|byte| u64::from(byte & 0x7f));
        if one < 0x80 {
            self.at += 1;
            return Ok(low);
        }
        if two < 0x80 {
            self.at += 2;
            return Ok(low | next << 7);
        }
        if three < 0x80 {
            self.at += 3;
            return Ok(low | next << 7 | third << 14);
        }
        if four < 0x80 {
            self.at += 4;
            return Ok(low | next << 7 | third << 14 | fourth << 21);
        }
        self.long_number()
    }

    fn long_number(&mut self) -> io::Result<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = *self.bytes.get(self.at).ok_or(io::ErrorKind::UnexpectedEof)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    /// The size in bytes of the number at a position.
    fn lead(&self, at: usize) -> usize {
        self.bytes[at..].iter().take_while(|&&byte| byte >= 0x80).count() + 1
    }

    /// The number of the state whose record comes next.
    fn head(&mut self) -> io::Result<u64> {
        let number = self.last.wrapping_add(unfold(self.number()?) as u64);
        self.last = number + 1;
        Ok(number)
    }

    /// Skips a record and returns its number.
    fn skip(&mut self) -> io::Result<u64> {
        let number = self.head()?;
        let mut left = 2 * self.number()?;
        // Every varint ends in a byte below 0x80: eight bytes are examined together.
        while left >= 8
            && let Some(&word) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>())
        {
            left -= u64::from((!u64::from_le_bytes(word) & 0x8080_8080_8080_8080).count_ones());
            self.at += 8;
        }
        for _ in 0..left {
            self.at += self.lead(self.at);
        }
        Ok(number)
    }

    /// The edges of the state of this number, whose own number was read.
    fn edges(&mut self, number: u64, row: &mut Vec<Edge>) -> io::Result<()> {
        row.clear();
        for _ in 0..self.number()? {
            let action = Action(self.number()? as u32);
            let target = number.wrapping_add(unfold(self.number()?) as u64);
            row.push(Edge { action, target });
        }
        Ok(())
    }

    /// The edges of the next state.
    fn next(&mut self, row: &mut Vec<Edge>) -> io::Result<()> {
        let number = self.head()?;
        self.edges(number, row)
    }
}
