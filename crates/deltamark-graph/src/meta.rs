//! The header of a file.
//!
//! In: what is known of a complete graph. Out: bytes, and the same from bytes. What stays true: the first 16 bytes
//! never change their meaning, so that any version can recognise what it cannot read; all the rest is covered by a
//! checksum. The fields are listed in `docs/graph-file.md`.

use crate::bits::MOST_BITS;
use deltamark_core::{Control, Stop};
use std::fmt;

/// The first bytes of every file.
pub const MAGIC: [u8; 8] = *b"DMGRAPH\n";
/// The version of the format that is written and read.
pub const VERSION: u32 = 2;
/// Bytes before the version-specific part: magic, version, length of the header.
const FIXED: usize = 16;
/// The maximum length of a header: more than any model needs.
const LONGEST: usize = 1 << 26;

const UNFOLDING: u32 = 1;
const LEVELS: u32 = 2;
const TABLE: u32 = 4;

/// The model a graph belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelId {
    /// The path of its file, as it was given.
    pub path: String,
    /// The name of its format.
    pub format: String,
    /// Further options needed to load it the same way: names and values, in order.
    pub options: Vec<(String, String)>,
    /// The bytes of its text.
    pub length: u64,
    /// A [checksum](text_hash) of its text.
    pub hash: u64,
}

/// A checksum of texts: 64-bit FNV-1a over their concatenation.
pub fn text_hash<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let bytes = texts.into_iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The properties of a whole graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The number of states.
    pub states: u64,
    /// The number of edges.
    pub edges: u64,
    /// One more than its largest action.
    pub actions: u32,
    /// The number of states without edges.
    pub ends: u64,
    /// The number of states in which the model declares a fault, if the recorder knew.
    pub faulty: Option<u64>,
    /// The largest distance of a state from the initial ones, if the writer knew.
    pub depth: Option<u64>,
    /// The numbers of its initial states, in the order of the system.
    pub initial: Vec<u64>,
    /// Whether some states of the model may be several states of the graph, which then is an unfolding of the real
    /// one, bisimilar to it.
    pub unfolding: bool,
    /// Whether states are numbered level by level, as breadth-first search finds them.
    pub levels: bool,
    /// The model of the graph.
    pub model: ModelId,
}

/// The positions of the parts of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// The start of the index, which is the end of the blocks.
    pub index: u64,
    /// The start of the table of actions, if there is one.
    pub table: Option<u64>,
    /// The end of the file.
    pub end: u64,
}

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be read, with the operating system's message.
    Unreadable(String),
    /// It is no graph.
    NoGraph,
    /// It is a graph in an unsupported version of the format.
    Version(u32),
    /// It is damaged: what was found, as a clause.
    Damaged(String),
    /// Reading was stopped: for lack of memory, at the deadline, or on request.
    Stopped(Stop),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Unreadable(reason) => write!(f, "it cannot be read: {reason}"),
            FileError::NoGraph => f.write_str("it is no graph written by Deltamark"),
            FileError::Version(version) => {
                write!(f, "it is written in version {version} of the format; this program reads version {VERSION}")
            }
            FileError::Damaged(what) => write!(f, "the file is damaged: {what}"),
            FileError::Stopped(Stop::Memory) => f.write_str("the memory limit leaves no room for it"),
            FileError::Stopped(Stop::Time) => f.write_str("the time limit was reached"),
            FileError::Stopped(_) => f.write_str("the run was ended"),
        }
    }
}

impl std::error::Error for FileError {}

impl From<Stop> for FileError {
    fn from(stop: Stop) -> Self {
        FileError::Stopped(stop)
    }
}

/// An error if the run must stop. The memory of these passes was granted by the budget, and pages of a mapped file
/// are not allocated, so the memory of the process is not checked.
pub(crate) fn go_on(control: &Control) -> Result<(), Stop> {
    control.stop_without_memory().map_or(Ok(()), Err)
}

/// The error of a damaged file.
pub(crate) fn damaged(what: impl Into<String>) -> FileError {
    FileError::Damaged(what.into())
}

impl Meta {
    /// Encodes the header, whose length does not depend on the positions.
    pub(crate) fn encode(&self, places: &Places) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend([0; 4]);
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(self.unfolding, UNFOLDING) | flag(self.levels, LEVELS) | flag(places.table.is_some(), TABLE);
        out.extend(flags.to_le_bytes());
        out.extend(self.actions.to_le_bytes());
        let table = places.table.unwrap_or(0);
        let unknown = |number: Option<u64>| number.unwrap_or(u64::MAX);
        for number in [self.states, self.edges, self.ends, unknown(self.faulty), unknown(self.depth)] {
            out.extend(number.to_le_bytes());
        }
        for number in [places.index, table, places.end] {
            out.extend(number.to_le_bytes());
        }
        out.extend((self.initial.len() as u32).to_le_bytes());
        self.initial.iter().for_each(|number| out.extend(number.to_le_bytes()));
        out.extend(self.model.length.to_le_bytes());
        out.extend(self.model.hash.to_le_bytes());
        put_text(&mut out, &self.model.path);
        put_text(&mut out, &self.model.format);
        out.extend((self.model.options.len() as u32).to_le_bytes());
        for (name, value) in &self.model.options {
            put_text(&mut out, name);
            put_text(&mut out, value);
        }
        let length = out.len() as u32 + 4;
        out[12..16].copy_from_slice(&length.to_le_bytes());
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    /// Decodes the header of a file, and returns its length.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Meta, Places, usize), FileError> {
        let Some(fixed) = bytes.get(..FIXED).filter(|fixed| fixed[..8] == MAGIC) else {
            let short = bytes.len() >= 4 && bytes.len() < FIXED && MAGIC.starts_with(&bytes[..bytes.len().min(8)]);
            return Err(if short { damaged("it ends in its head") } else { FileError::NoGraph });
        };
        let word = |at: usize| u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let (version, length) = (word(8), word(12) as usize);
        if version != VERSION {
            return Err(FileError::Version(version));
        }
        let head = bytes.get(..length).filter(|_| (FIXED + 4..=LONGEST).contains(&length));
        let head = head.ok_or_else(|| damaged("it ends in its head"))?;
        let (body, sum) = head.split_at(length - 4);
        if crc32fast::hash(body).to_le_bytes() != *sum {
            return Err(damaged("the checksum of its head is wrong"));
        }
        let mut cursor = Cursor { bytes: &body[FIXED..] };
        let flags = cursor.u32()?;
        let actions = cursor.u32()?;
        let [states, edges, ends] = [cursor.u64()?, cursor.u64()?, cursor.u64()?];
        let [faulty, depth] = [cursor.u64()?, cursor.u64()?];
        let [index, table, end] = [cursor.u64()?, cursor.u64()?, cursor.u64()?];
        let count = cursor.u32()? as usize;
        let initial = (0..count).map(|_| cursor.u64()).collect::<Result<Vec<_>, _>>()?;
        let (length_of_text, hash) = (cursor.u64()?, cursor.u64()?);
        let (path, format) = (cursor.text()?, cursor.text()?);
        let count = cursor.u32()?;
        let options =
            (0..count).map(|_| Ok((cursor.text()?, cursor.text()?))).collect::<Result<Vec<_>, FileError>>()?;
        if !cursor.bytes.is_empty() || flags & !(UNFOLDING | LEVELS | TABLE) != 0 {
            return Err(damaged("its head holds what nobody knows"));
        }
        let sound = states < 1 << MOST_BITS
            && edges < 1 << MOST_BITS
            && ends <= states
            && initial.iter().all(|&number| number < states)
            && initial.is_empty() == (states == 0)
            && (faulty <= states || faulty == u64::MAX)
            && (depth < states || depth == u64::MAX);
        if !sound {
            return Err(damaged("the numbers in its head do not fit together"));
        }
        let meta = Meta {
            states,
            edges,
            actions,
            ends,
            faulty: Some(faulty).filter(|&faulty| faulty != u64::MAX),
            depth: Some(depth).filter(|&depth| depth != u64::MAX),
            initial,
            unfolding: flags & UNFOLDING != 0,
            levels: flags & LEVELS != 0,
            model: ModelId { path, format, options, length: length_of_text, hash },
        };
        Ok((meta, Places { index, table: (flags & TABLE != 0).then_some(table), end }, length))
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Reads plain numbers and texts.
pub(crate) struct Cursor<'a> {
    pub bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], FileError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or_else(|| damaged("a part of it is too short"))?;
        self.bytes = rest;
        Ok(taken)
    }

    pub fn u32(&mut self) -> Result<u32, FileError> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub fn u64(&mut self) -> Result<u64, FileError> {
        let (low, high) = (self.u32()?, self.u32()?);
        Ok(u64::from(low) | u64::from(high) << 32)
    }

    fn text(&mut self) -> Result<String, FileError> {
        let length = self.u32()? as usize;
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| damaged("its head holds what is no text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Meta, Places) {
        let model = ModelId {
            path: "models/ring.net".into(),
            format: "tina".into(),
            options: vec![("param".into(), "N=3".into())],
            length: 77,
            hash: text_hash([&b"net ring"[..]]),
        };
        let meta = Meta {
            states: 10,
            edges: 12,
            actions: 4,
            ends: 1,
            faulty: None,
            depth: Some(7),
            initial: vec![0, 3],
            unfolding: true,
            levels: false,
            model,
        };
        (meta, Places { index: 500, table: Some(600), end: 700 })
    }

    #[test]
    fn a_head_comes_back() {
        let (meta, places) = sample();
        let bytes = meta.encode(&places);
        assert_eq!(Meta::decode(&bytes), Ok((meta.clone(), places, bytes.len())));
        assert_eq!(meta.encode(&Places::default()).len(), bytes.len());
    }

    #[test]
    fn every_change_of_a_head_is_noticed() {
        let (meta, places) = sample();
        let bytes = meta.encode(&places);
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut wrong = bytes.clone();
                wrong[at] ^= flip;
                assert!(Meta::decode(&wrong).is_err(), "byte {at}");
            }
            assert!(Meta::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
