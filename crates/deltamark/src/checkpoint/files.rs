//! The files of a checkpoint.
//!
//! In: bytes, or a directory. Out: files that are complete or not there, or the bytes again. What stays true:
//!
//! * I1: a file gets its name when all of it is on the disk: it is written as `NAME.part`, synchronised and renamed. The file
//!   that names the others, the manifest, is written last.
//! * I2: nothing that was read is used before its length and its checksum are those of the manifest, which has a checksum of its own.
//! * I3: a part is at most [`PART`] bytes, and at most a buffer of it is in memory.
//!
//! ```text
//! DIR/lock               held while a run uses the directory
//!     model/NAME         the model's file, and the one beside it, as they were
//!     properties/NAME    the property file
//!     7.checkpoint       manifest: magic, form, payload, CRC-32 of all before
//!     7-0.image          what it holds, in parts
//!     7-1.image
//! ```

use deltamark_core::varint::{self, Reader};
use deltamark_core::{Control, Stop};
use deltamark_search::Kept;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Component, Path, PathBuf};

/// The most bytes of a part.
pub(super) const PART: u64 = 64 << 20;
/// The most bytes of a manifest.
const LONGEST: u64 = 64 << 20;
/// Bytes that are read or written together.
const BUFFER: usize = 1 << 18;
const MAGIC: &[u8; 20] = b"deltamark checkpoint";
/// The form of the files that this version writes, and the only one that it reads.
const FORM: u32 = 1;
const MANIFEST: &str = "checkpoint";
const IMAGE: &str = "image";

/// Length and checksum of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal {
    pub length: u64,
    pub crc: u32,
}

/// What a checkpoint is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The version of the tool.
    pub tool: String,
    /// The command line.
    pub words: Vec<String>,
    /// The store to go on in.
    pub store: String,
    /// Files that the run has read, by their names in the directory.
    pub inputs: Vec<(String, Seal)>,
    pub kept: Kept,
    pub parts: Vec<Seal>,
}

/// A writer that knows what it has written.
struct Sealing<W> {
    inner: W,
    length: u64,
    crc: crc32fast::Hasher,
}

impl<W> Sealing<W> {
    fn new(inner: W) -> Self {
        Sealing { inner, length: 0, crc: crc32fast::Hasher::new() }
    }

    fn seal(&self) -> Seal {
        Seal { length: self.length, crc: self.crc.clone().finalize() }
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.crc.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A file that has no name yet.
struct Unnamed {
    file: Sealing<BufWriter<File>>,
    path: PathBuf,
}

fn unnamed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

impl Unnamed {
    fn new(path: PathBuf) -> io::Result<Self> {
        let file = File::create(unnamed(&path))?;
        Ok(Unnamed { file: Sealing::new(BufWriter::with_capacity(BUFFER, file)), path })
    }

    /// Names it (I1).
    fn finish(self) -> io::Result<Seal> {
        let seal = self.file.seal();
        let file = self.file.inner.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(unnamed(&self.path), &self.path)?;
        Ok(seal)
    }
}

/// Writes a whole file.
pub(super) fn write(path: PathBuf, bytes: &[u8]) -> io::Result<Seal> {
    let mut file = Unnamed::new(path)?;
    file.file.write_all(bytes)?;
    file.finish()
}

/// Has names of files survive a loss of power.
pub(super) fn sync(directory: &Path) -> io::Result<()> {
    // Elsewhere a directory cannot be opened as a file.
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

pub(super) fn manifest_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number}.{MANIFEST}"))
}

fn part_path(directory: &Path, number: u64, part: usize) -> PathBuf {
    directory.join(format!("{number}-{part}.{IMAGE}"))
}

/// Writes a checkpoint; `manifest` lacks its parts. On an error nothing of it stays.
pub(super) fn keep(
    directory: &Path,
    number: u64,
    manifest: &mut Manifest,
    write_image: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut parts = Parts { directory, number, sealed: Vec::new(), current: None };
    let kept = write_image(&mut parts).and_then(|()| parts.finish()).and_then(|sealed| {
        manifest.parts = sealed;
        write_manifest(directory, number, manifest)
    });
    if kept.is_err() {
        remove(directory, |other| other == number);
    }
    kept
}

/// Writes the manifest of a checkpoint whose other files are there; one that is there already is replaced as a whole.
pub(super) fn write_manifest(directory: &Path, number: u64, manifest: &Manifest) -> io::Result<()> {
    write(manifest_path(directory, number), &manifest.encode())?;
    sync(directory)
}

/// Bytes that are written in parts.
struct Parts<'d> {
    directory: &'d Path,
    number: u64,
    sealed: Vec<Seal>,
    current: Option<Unnamed>,
}

impl Parts<'_> {
    fn finish(&mut self) -> io::Result<Vec<Seal>> {
        if let Some(current) = self.current.take() {
            self.sealed.push(current.finish()?);
        }
        Ok(std::mem::take(&mut self.sealed))
    }
}

impl Write for Parts<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.current.as_ref().is_some_and(|current| current.file.length == PART)
            && let Some(full) = self.current.take()
        {
            self.sealed.push(full.finish()?);
        }
        let current = match &mut self.current {
            Some(current) => current,
            none => none.insert(Unnamed::new(part_path(self.directory, self.number, self.sealed.len()))?),
        };
        let room = usize::try_from(PART - current.file.length).unwrap_or(usize::MAX);
        current.file.write(&bytes[..bytes.len().min(room)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a checkpoint again; an error where they are not those that were written.
pub(super) struct Image {
    directory: PathBuf,
    number: u64,
    parts: Vec<Seal>,
    next: usize,
    current: Option<(Sealing<File>, Seal)>,
}

impl Image {
    pub fn new(directory: &Path, number: u64, manifest: &Manifest) -> Self {
        let (directory, parts) = (directory.to_path_buf(), manifest.parts.clone());
        Image { directory, number, parts, next: 0, current: None }
    }
}

impl Read for Image {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let (file, seal) = match &mut self.current {
                Some(current) => current,
                none => {
                    let Some(&seal) = self.parts.get(self.next) else { return Ok(0) };
                    let file = File::open(part_path(&self.directory, self.number, self.next))?;
                    none.insert((Sealing::new(file), seal))
                }
            };
            let read = file.inner.read(bytes)?;
            file.crc.update(&bytes[..read]);
            file.length += read as u64;
            if read > 0 || bytes.is_empty() {
                return Ok(read);
            }
            if file.seal() != *seal {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it changed while it was read"));
            }
            (self.current, self.next) = (None, self.next + 1);
        }
    }
}

/// Why something cannot be used: a clause; or why that was not found out.
pub(super) enum Unusable {
    Because(String),
    Stopped(Stop),
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Unusable::Because(why)
    }
}

/// Compares a file with its seal (I2).
pub(super) fn verify(path: &Path, seal: Seal, control: &Control) -> Result<(), Unusable> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let unread = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("its file `{name}` is not there"),
        _ => format!("its file `{name}` cannot be read: {error}"),
    };
    let mut file = File::open(path).map_err(unread)?;
    let length = file.metadata().map_err(unread)?.len();
    if length != seal.length {
        let cut = if length < seal.length { "is cut" } else { "is too long" };
        return Err(format!("its file `{name}` {cut}: it has {length} bytes, and had {}", seal.length).into());
    }
    let mut all = Sealing::new(io::sink());
    let mut buffer = vec![0; BUFFER];
    loop {
        control.check().map_err(Unusable::Stopped)?;
        let read = file.read(&mut buffer).map_err(unread)?;
        if read == 0 {
            break;
        }
        all.write_all(&buffer[..read]).map_err(unread)?;
    }
    if all.seal() == seal { Ok(()) } else { Err(format!("its file `{name}` is damaged: its checksum is wrong").into()) }
}

impl Manifest {
    /// Reads the manifest of a checkpoint and compares all files with it (I2).
    pub fn read(directory: &Path, number: u64, control: &Control) -> Result<Self, Unusable> {
        let path = manifest_path(directory, number);
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
        read.map_err(|error| format!("it cannot be read: {error}"))?;
        let manifest = Manifest::decode(&bytes)?;
        for (name, seal) in &manifest.inputs {
            verify(&directory.join(name), *seal, control)?;
        }
        for (part, seal) in manifest.parts.iter().enumerate() {
            verify(&part_path(directory, number, part), *seal, control)?;
        }
        Ok(manifest)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(FORM.to_le_bytes());
        let text = |text: &str, out: &mut Vec<u8>| {
            varint::write(text.len() as u64, out);
            out.extend_from_slice(text.as_bytes());
        };
        let seal = |seal: &Seal, out: &mut Vec<u8>| {
            varint::write(seal.length, out);
            out.extend(seal.crc.to_le_bytes());
        };
        text(&self.tool, &mut out);
        varint::write(self.words.len() as u64, &mut out);
        self.words.iter().for_each(|word| text(word, &mut out));
        text(&self.store, &mut out);
        varint::write(self.inputs.len() as u64, &mut out);
        for (name, of_input) in &self.inputs {
            text(name, &mut out);
            seal(of_input, &mut out);
        }
        let Kept { states, expanded, depth } = self.kept;
        [states, expanded, depth].into_iter().for_each(|number| varint::write(number, &mut out));
        varint::write(self.parts.len() as u64, &mut out);
        self.parts.iter().for_each(|part| seal(part, &mut out));
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) {
            return Err("it is no checkpoint of Deltamark".into());
        }
        let Some((all, crc)) = bytes.split_last_chunk().filter(|(all, _)| all.len() >= MAGIC.len() + 4) else {
            return Err("it is cut".into());
        };
        if crc32fast::hash(all) != u32::from_le_bytes(*crc) {
            return Err("it is cut or damaged: its checksum is wrong".into());
        }
        let (form, payload) = all[MAGIC.len()..].split_first_chunk().ok_or("it is cut")?;
        let form = u32::from_le_bytes(*form);
        if form != FORM {
            return Err(format!("another version of Deltamark wrote it (form {form}, and this one reads {FORM})"));
        }
        let mut reader = Reader::new(payload);
        Self::payload(&mut reader).filter(|_| reader.is_empty()).ok_or_else(|| "it holds what it should not".into())
    }

    fn payload(bytes: &mut Reader<'_>) -> Option<Self> {
        fn count(bytes: &mut Reader<'_>) -> Option<usize> {
            bytes.at_most(bytes.rest().len() as u64).map(|count| count as usize)
        }
        fn text(bytes: &mut Reader<'_>) -> Option<String> {
            let length = count(bytes)?;
            String::from_utf8(bytes.take(length)?.to_vec()).ok()
        }
        fn seal(bytes: &mut Reader<'_>) -> Option<Seal> {
            let length = bytes.number()?;
            Some(Seal { length, crc: u32::from_le_bytes(bytes.take(4)?.try_into().ok()?) })
        }
        let tool = text(bytes)?;
        let words = (0..count(bytes)?).map(|_| text(bytes)).collect::<Option<_>>()?;
        let store = text(bytes)?;
        let input = |bytes: &mut Reader<'_>| Some((text(bytes).filter(|name| is_input(name))?, seal(bytes)?));
        let inputs = (0..count(bytes)?).map(|_| input(bytes)).collect::<Option<_>>()?;
        let kept = Kept { states: bytes.number()?, expanded: bytes.number()?, depth: bytes.number()? };
        let parts = (0..count(bytes)?).map(|_| seal(bytes)).collect::<Option<_>>()?;
        Some(Manifest { tool, words, store, inputs, kept, parts })
    }
}

/// Whether this is the name of a file below the directory.
fn is_input(name: &str) -> bool {
    let parts: Vec<Component<'_>> = Path::new(name).components().collect();
    parts.len() == 2 && parts.iter().all(|part| matches!(part, Component::Normal(_)))
}

/// The number in the name of a file that belongs to a checkpoint, complete or not.
fn number_of(name: &str) -> Option<u64> {
    let name = name.strip_suffix(".part").unwrap_or(name);
    let (stem, ending) = name.rsplit_once('.')?;
    let number = match ending {
        MANIFEST => stem,
        IMAGE => stem.split_once('-')?.0,
        _ => return None,
    };
    number.parse().ok()
}

/// The numbers of checkpoints that have manifests, the newest first.
pub(super) fn list(directory: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let manifest = name.to_str().filter(|name| name.ends_with(&format!(".{MANIFEST}")));
        found.extend(manifest.and_then(number_of));
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(found)
}

/// Removes the files of some checkpoints, manifests first. What cannot be removed stays.
pub(super) fn remove(directory: &Path, which: impl Fn(u64) -> bool) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| number_of(name).is_some_and(&which)).collect();
    names.sort_by_key(|name| !name.ends_with(MANIFEST));
    for name in names {
        let _ = fs::remove_file(directory.join(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let seal = |number: u64| Seal { length: number << 20, crc: number as u32 * 77 };
        Manifest {
            tool: "0.1.0".into(),
            words: ["check", "net.pnml", "--checkpoint", "kept"].map(String::from).into(),
            store: "compact".into(),
            inputs: vec![("model/net.pnml".into(), seal(3))],
            kept: Kept { states: 1 << 40, expanded: 7, depth: 300 },
            parts: (0..9).map(seal).collect(),
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_no_other_bytes_are() {
        let bytes = manifest().encode();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest()));
        for cut in 0..bytes.len() {
            Manifest::decode(&bytes[..cut]).expect_err("it is cut");
        }
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            Manifest::decode(&flipped).expect_err("a bit is another one");
        }
        assert_eq!(Manifest::decode(b"\x7fELF and more"), Err("it is no checkpoint of Deltamark".into()));
        let mut other = bytes[..bytes.len() - 4].to_vec();
        other[MAGIC.len()] = 2;
        other.extend(crc32fast::hash(&other).to_le_bytes());
        let why = Manifest::decode(&other).expect_err("another form");
        assert!(why.contains("another version"), "{why}");
        for name in ["model", "../x", "/x", "model/../x", "a/b/c", ""] {
            assert!(!is_input(name), "{name}");
        }
    }

    #[test]
    fn names_tell_which_checkpoint_a_file_belongs_to() {
        let cases = [
            ("7.checkpoint", Some(7)),
            ("7.checkpoint.part", Some(7)),
            ("12-3.image", Some(12)),
            ("12-3.image.part", Some(12)),
            ("lock", None),
            ("x.checkpoint", None),
            ("7.pnml", None),
        ];
        for (name, expected) in cases {
            assert_eq!(number_of(name), expected, "{name}");
        }
    }
}
