//! Certificates: files from which a separate program checks the answers of a run.
//!
//! In: the expanded blocks of a run, then its answers. Out: a file with all reachable states, if an answer rests on them,
//! and with the path of every answer that has one; for each answer without a certificate, why. What stays true: a set is
//! written only of a run that was complete, over a store that misses no state; the file is complete or absent; what it
//! takes is asked of the budget, whatever the number of states.
//!
//! The form of the file is in `docs/certificates.md`; `deltamark-verify` reads it, with code of its own.
//!
//! # Why all states are written
//! Every state is expanded, and a block is shown once it was inserted as a whole. So the states of the blocks of a
//! complete run are all that were inserted, and these are closed under steps. They are written as they come, whatever the
//! store can give back. A store that forgets states shows some twice, which does no harm.

use crate::load::ModelInfo;
use crate::report::{PropertyKind, Report};
use crate::run::Watcher;
use crate::{CheckError, Verdict};
use deltamark_core::varint::write as put;
use deltamark_core::{
    BLOCK, Batch, Block, Budget, Control, Guarantee, Insert, Observable, Outcome, Scratch, Store, System, Trace,
};
use deltamark_graph::unfinished::Unfinished;
use deltamark_nets::NetSystem;
use deltamark_search::Observer;
use deltamark_store::StoreSpec;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

/// How a certificate begins, its version included.
const MAGIC: &[u8; 8] = b"DMCERT\0\x01";
/// The most that `verify` reads of names and texts: bytes of all together, and claims and ends.
const ROOM: Room = Room { bytes: 1 << 20, claims: 10_000 };
/// Bytes that are collected before they are written.
const BUFFER: usize = 1 << 16;

/// What became of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFile {
    /// Its path.
    pub path: String,
    /// What is in it; `None` if it was not written.
    pub contents: Option<CertificateContents>,
    /// The properties whose answers are not in it, and why: clauses without a full stop.
    pub uncertified: Vec<(String, String)>,
    /// Why the file could not be written, if that is the reason.
    pub failed: Option<String>,
}

/// What is in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateContents {
    /// Bytes of the file.
    pub bytes: u64,
    /// The number of states that were written; `None` if no answer rests on all of them.
    pub states: Option<u64>,
    /// The answers that it certifies.
    pub claims: u64,
}

/// The file of a certificate, as it is written.
pub(crate) struct CertificateLog {
    path: String,
    out: Option<CertificateOut>,
    /// What a state is made of.
    variables: Vec<Observable>,
    /// The state that was written last.
    last: Vec<i64>,
    /// The values of a block, variable by variable.
    values: Vec<[i64; BLOCK]>,
    record: Vec<u8>,
    states: u64,
    /// Whether all reachable states were written.
    complete: bool,
    /// Why no answer can be certified.
    why_not: Option<String>,
    /// Why no answer can that rests on all states.
    why_no_states: Option<String>,
    failed: Option<String>,
    granted: u64,
    budget: Arc<Budget>,
}

/// A file with a checksum of all that was written.
struct CertificateOut {
    file: BufWriter<File>,
    checksum: crc32fast::Hasher,
    bytes: u64,
    /// The end of the head, and the checksum there.
    head: (u64, crc32fast::Hasher),
    beside: Unfinished,
}

impl CertificateOut {
    fn create(path: &Path) -> io::Result<Self> {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.certificate.part", std::process::id()));
        let beside = Unfinished::new(path.with_file_name(name));
        let file = File::options().write(true).create(true).truncate(true).open(beside.path())?;
        let file = BufWriter::with_capacity(BUFFER, file);
        let checksum = crc32fast::Hasher::new();
        Ok(CertificateOut { file, head: (0, checksum.clone()), checksum, bytes: 0, beside })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Drops all states.
    fn rewind(&mut self) -> io::Result<()> {
        self.file.flush()?;
        let file = self.file.get_mut();
        file.set_len(self.head.0)?;
        file.seek(SeekFrom::Start(self.head.0))?;
        (self.bytes, self.checksum) = self.head.clone();
        Ok(())
    }

    /// Gives the file its name, once it is on the disk.
    fn finish(mut self, path: &Path) -> io::Result<u64> {
        let checksum = self.checksum.clone().finalize().to_le_bytes();
        self.write(&checksum)?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(self.beside.path(), path)?;
        // The name is there; that the folder is on the disk too cannot be had everywhere.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
        Ok(self.bytes)
    }
}

/// What a certificate may still hold of names and texts.
#[derive(Clone, Copy)]
struct Room {
    bytes: usize,
    claims: usize,
}

/// The text of an expression on one line: comments left out, and white space but in quotes made single blanks.
fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let (mut quote, mut comment, mut escaped) = (None, false, false);
    for c in text.chars() {
        match quote {
            Some(open) => {
                line.push(c);
                quote = quote.filter(|_| escaped || c != open);
                escaped = c == '\\' && !escaped;
            }
            None if comment => comment = c != '\n',
            None if c == '#' => comment = true,
            None if c.is_whitespace() => {}
            None => {
                line.push(c);
                quote = Some(c).filter(|c| matches!(c, '"' | '\''));
            }
        }
        if quote.is_none() && (comment || c.is_whitespace()) && !line.is_empty() && !line.ends_with(' ') {
            line.push(' ');
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Whether a character can make a terminal show something else than a text; `verify` refuses such.
fn disguises(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// Appends a text.
fn put_text(text: &str, out: &mut Vec<u8>) {
    put(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a state as what differs from the one before, which it then is.
fn put_state(state: impl Iterator<Item = i64>, last: &mut [i64], changes: &mut Vec<(usize, i64)>, out: &mut Vec<u8>) {
    changes.clear();
    for (number, (value, before)) in state.zip(last).enumerate() {
        if value != *before {
            changes.push((number, value.wrapping_sub(*before)));
            *before = value;
        }
    }
    put(changes.len() as u64 + 1, out);
    let mut next = 0;
    for &(number, difference) in changes.iter() {
        put((number - next) as u64, out);
        put((difference << 1 ^ difference >> 63) as u64, out);
        next = number + 1;
    }
}

impl CertificateLog {
    /// Prepares a certificate.
    pub fn new(target: CertificateTarget, model: &ModelInfo, system: &dyn System, control: &Control) -> Self {
        let CertificateTarget { path, unread } = target;
        let budget = Arc::clone(&control.budget);
        let mut log = CertificateLog {
            path,
            out: None,
            variables: Vec::new(),
            last: Vec::new(),
            values: Vec::new(),
            record: Vec::new(),
            states: 0,
            complete: false,
            why_not: unread.or_else(|| refused(system, model)),
            why_no_states: None,
            failed: None,
            granted: 0,
            budget,
        };
        if log.why_not.is_some() {
            return log;
        }
        let names = system.observe().map(|observe| observe.names()).unwrap_or_default();
        let need = BUFFER as u64 + (names.len() * (size_of::<[i64; BLOCK]>() + 64)) as u64;
        if !log.budget.request(need) {
            log.why_not = Some("the memory limit leaves no room for it".into());
            return log;
        }
        log.granted = need;
        log.variables = names.iter().filter_map(|name| system.observe()?.resolve(name)).collect();
        log.last = vec![0; log.variables.len()];
        log.values = vec![[0; BLOCK]; log.variables.len()];
        match CertificateOut::create(Path::new(&log.path)) {
            Ok(out) => log.out = Some(out),
            Err(error) => log.fail(&error),
        }
        let mut head = MAGIC.to_vec();
        put_text(model.format, &mut head);
        let (length, hash) = model.text.unwrap_or_default();
        put(length, &mut head);
        head.extend_from_slice(&hash.to_le_bytes());
        put(0, &mut head);
        put(log.variables.len() as u64, &mut head);
        log.put(&head);
        if let Some(out) = &mut log.out {
            out.head = (out.bytes, out.checksum.clone());
        }
        log
    }

    /// Says why no set of states can be written.
    pub fn without_states(&mut self, why: &str) {
        self.why_no_states = Some(why.into());
    }

    fn fail(&mut self, error: &io::Error) {
        self.failed = Some(format!("cannot write `{}`: {error}", self.path));
        self.out = None;
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some(out) = &mut self.out
            && let Err(error) = out.write(bytes)
        {
            self.fail(&error);
        }
    }

    /// Forgets the states that were written.
    fn restart(&mut self) {
        self.last.fill(0);
        (self.states, self.complete) = (0, false);
        if let Some(out) = &mut self.out
            && let Err(error) = out.rewind()
        {
            self.fail(&error);
        }
    }

    /// Adds the answers of a report, and gives the file its name. `ends` are expressions of which one is true where a
    /// deadlock is a right end.
    pub fn finish(mut self, report: &Report, ends: &[String], system: &dyn System) -> CertificateFile {
        let mut uncertified = Vec::new();
        let mut claims = Vec::new();
        let mut count = 0;
        let mut rests_on_states = false;
        let ends: Vec<String> = ends.iter().map(|end| on_one_line(end)).collect();
        let mut room = ROOM;
        for answer in &report.answers {
            let (mut claim, mut left) = (Vec::new(), room);
            match self.claim(answer, &ends, system, &mut left, &mut claim) {
                Ok(on_states) => {
                    room = left;
                    rests_on_states |= on_states;
                    claims.extend(claim);
                    count += 1;
                }
                Err(why) => uncertified.push((answer.name.clone(), why)),
            }
        }
        let path = std::mem::take(&mut self.path);
        let nothing = |uncertified, failed| CertificateFile { path: path.clone(), contents: None, uncertified, failed };
        if count == 0 {
            return nothing(uncertified, self.failed.take());
        }
        if !rests_on_states {
            self.restart();
        }
        let states = rests_on_states.then_some(self.states);
        // The end of the states, and the end of the claims.
        claims.insert(0, 0);
        claims.push(0);
        self.put(&claims);
        let written = self.out.take().map(|out| out.finish(Path::new(&path)));
        match written {
            Some(Ok(bytes)) => {
                let contents = CertificateContents { bytes, states, claims: count };
                CertificateFile { path, contents: Some(contents), uncertified, failed: None }
            }
            Some(Err(error)) => nothing(uncertified, Some(format!("cannot write `{path}`: {error}"))),
            None => nothing(uncertified, self.failed.take()),
        }
    }

    /// Appends the claim of an answer. Gives whether it rests on all states; or why it cannot be certified.
    fn claim(
        &self,
        answer: &crate::Answer,
        ends: &[String],
        system: &dyn System,
        left: &mut Room,
        out: &mut Vec<u8>,
    ) -> Result<bool, String> {
        if let Some(why) = self.why_not.as_ref().or(self.failed.as_ref()) {
            return Err(why.clone());
        }
        let kind = match answer.kind {
            PropertyKind::DeadlockFree => 0,
            PropertyKind::FaultFree => 1,
            PropertyKind::Invariant => 2,
            PropertyKind::Reachable => 3,
            _ => return Err("it asks for more than single states show".into()),
        };
        let trace = match &answer.verdict {
            Verdict::Unknown => return Err("it has no answer".into()),
            Verdict::NoViolationFound(_) => return Err("the store may have missed states".into()),
            Verdict::Holds(trace) if kind == 3 => trace.as_ref(),
            Verdict::Violated(trace, _) if kind != 3 => trace.as_ref(),
            Verdict::Holds(_) | Verdict::Violated(..) => {
                if let (false, why) = (self.complete, &self.why_no_states) {
                    return Err(why.clone().unwrap_or_else(|| "the run ended before it had seen all states".into()));
                }
                put_claim(kind, answer, ends, left, out)?;
                out.push(0);
                return Ok(true);
            }
            _ => return Err("its verdict is not known here".into()),
        };
        let trace = trace.ok_or("there is no path to show it")?;
        if (kind == 1) != trace.ends_in_fault() || trace.cycle().is_some() {
            return Err("its path does not end as a certificate can say".into());
        }
        put_claim(kind, answer, ends, left, out)?;
        self.put_path(trace, system, out)?;
        Ok(false)
    }

    /// Appends the states of a trace.
    fn put_path(&self, trace: &Trace, system: &dyn System, out: &mut Vec<u8>) -> Result<(), String> {
        let observe = system.observe().ok_or("its states cannot be written")?;
        let mut scratch = system.scratch();
        let (mut last, mut changes) = (vec![0; self.variables.len()], Vec::new());
        let (mut states, mut path) = (0, Vec::new());
        let followed = trace.follow(system, |number, state| {
            if number == 0 {
                last.fill(0);
                path.clear();
            }
            states = number as u64 + 1;
            let values = self.variables.iter().map(|&variable| observe.read(&mut scratch, state, variable));
            put_state(values, &mut last, &mut changes, &mut path);
            Ok(())
        });
        if !matches!(followed, Ok(Ok(_))) {
            return Err("its path cannot be replayed".into());
        }
        out.push(if trace.ends_in_fault() { 2 } else { 1 });
        put(states, out);
        out.extend(path);
        Ok(())
    }
}

/// Appends all of a claim but its evidence, if there is room for it and nothing in it that `verify` refuses.
fn put_claim(
    kind: u64,
    answer: &crate::Answer,
    ends: &[String],
    left: &mut Room,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let text = if kind < 2 { String::new() } else { on_one_line(&answer.text) };
    // A property without a name of its own is called by its text.
    let name = if answer.name == answer.text { on_one_line(&answer.name) } else { answer.name.clone() };
    let ends = if kind == 0 { ends } else { &[] };
    let texts = || [&name, &text].into_iter().chain(ends);
    if let Some(c) = texts().flat_map(|text| text.chars()).find(|&c| disguises(c)) {
        let what = "its name or its text holds the character";
        return Err(format!("{what} U+{:04X}, which can disguise what `verify` shows", u32::from(c)));
    }
    let bytes = left.bytes.checked_sub(texts().map(String::len).sum());
    let claims = left.claims.checked_sub(1 + ends.len());
    let (Some(bytes), Some(claims)) = (bytes, claims) else {
        let size = ROOM.bytes >> 20;
        return Err(format!("a certificate holds at most {} claims, with {size} MiB of names and texts", ROOM.claims));
    };
    *left = Room { bytes, claims };
    put(1, out);
    put(kind, out);
    put_text(&name, out);
    put_text(&text, out);
    put(ends.len() as u64, out);
    ends.iter().for_each(|end| put_text(end, out));
    Ok(())
}

impl Drop for CertificateLog {
    fn drop(&mut self) {
        self.budget.release(self.granted);
    }
}

/// Why nothing about a model can be certified.
fn refused(system: &dyn System, model: &ModelInfo) -> Option<String> {
    let net = system.as_any().and_then(|system| system.downcast_ref::<NetSystem>());
    match net {
        _ if model.text.is_none() => Some("the model does not come from a file".into()),
        None => Some("certificates are for P/T nets, and this model is none".into()),
        Some(_) if !matches!(model.format, "pnml" | "tina") || !model.options.is_empty() => {
            Some("certificates are for P/T nets in PNML and in TINA's format".into())
        }
        Some(net) if net.net().has_priorities() => Some("the net has priorities, which `verify` does not read".into()),
        Some(_) => None,
    }
}

impl Observer for CertificateLog {
    fn expanded(&mut self, system: &dyn System, scratch: &mut Scratch, block: &Block, _: &Batch, _: &[Insert]) {
        let Some(observe) = system.observe().filter(|_| self.out.is_some() && self.why_no_states.is_none()) else {
            return;
        };
        for (&variable, values) in self.variables.iter().zip(&mut self.values) {
            observe.read_block(scratch, block, variable, values);
        }
        let (mut record, mut changes) = (std::mem::take(&mut self.record), Vec::new());
        record.clear();
        for index in 0..block.len() {
            put_state(self.values.iter().map(|values| values[index]), &mut self.last, &mut changes, &mut record);
        }
        self.states += block.len() as u64;
        self.put(&record);
        self.record = record;
    }
}

impl Watcher for CertificateLog {
    fn begin(&mut self, _: &dyn System, spec: &StoreSpec, store: &dyn Store, _: &Control) -> Result<(), CheckError> {
        self.restart();
        // A lossy store is one from the start.
        if store.guarantee() != Guarantee::Exact {
            self.why_no_states = Some(format!("the store `{}` may miss states", spec.name));
        }
        Ok(())
    }

    fn end(&mut self, _: &dyn System, _: &dyn Store, outcome: &Outcome) {
        let exact = outcome.guarantee == Guarantee::Exact;
        self.complete = outcome.complete() && exact && self.why_no_states.is_none() && self.states > 0;
        if !exact {
            self.why_no_states.get_or_insert("the store may have missed states".into());
        }
    }

    /// A state that is written twice is one state.
    fn sees_each_once(&self) -> bool {
        false
    }
}

/// Where a certificate goes.
#[derive(Clone, Debug)]
pub(crate) struct CertificateTarget {
    pub path: String,
    /// Why the model cannot be read by whoever checks it.
    pub unread: Option<String>,
}
