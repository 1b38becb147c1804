//! Checkpoints of a breadth-first search.
//!
//! In: a search between two levels, or bytes. Out: bytes, or a search between two levels. What stays true:
//!
//! * I1: a checkpoint is of one moment: a level is about to be expanded, and nothing of it was. What a search that ends
//!   within a level has counted and answered there is left out. States that it has found there are left out too, or
//!   else, where a store does not tell them apart, they are there as found: when the level is expanded again, they are
//!   duplicates, and they wait for the next one, as if they had just been found.
//! * I2: bytes depend neither on the layout, nor on the number of threads, nor on numbers that were
//!   assigned in the course of a run: states are written by what they hold ([`Portable`](deltamark_core::Portable)).
//!   So a run can go on with other threads, in another process, and in another store: one that numbers states needs to know
//!   their levels, which one that lists them does not; any other change is possible.
//! * I3: bytes may be arbitrary. What is read without an error is a search that can go on; that it is the one that
//!   was interrupted is for a checksum to say. The initial states are compared, so that bytes of another model are refused.
//! * I4: nothing is held twice: states are written and read some kilobytes at a time.
//! * I5: what was decided is there with its trace. A search that is kept from finding one, by a limit or the user, ends before
//!   the next level begins; by I1 its checkpoint then knows nothing of the answer, and who goes on finds it again.
//!
//! # Layout in bytes
//! ```text
//! frame    [ length: u32, little endian | bytes ]
//! file     head, frames of states, frames of arrivals, an empty frame, frames of states found since
//! head     form; initial states; statistics; of each property what was found; and one of these:
//!          0, lengths of all levels          1, numbers of states: before the level, of it, found since
//! states   0: in the order of their ids, level by level; a frame holds whole states of one level
//!          1: all of them in any order, then those of the level once more
//! arrivals of the states of the current level the smallest action that reached them, plus one
//! ```
//! Numbers are varints. What a search of other threads needs beyond this, it makes anew: an index, where levels begin in
//! logs, how a level is divided.
//!
//! # The loss
//! Of a level that was begun nothing is kept, so a run that is interrupted repeats that much. On the other hand nobody waits
//! within a level, and no block is half done.

use crate::bfs::Frontier;
use crate::frontier::{Later, Level};
use crate::run::Run;
use deltamark_core::varint::{self, Reader};
use deltamark_core::{
    Action, Arrival, Batch, Ending, Evidence, Image, Insert, Misread, Numbers, Portable, Slot, StateId, States,
    Statistics, Stop, Store, System, Trace, Widen, Witness,
};
use std::fmt;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::time::Duration;

/// The form of the bytes that this version writes, and the only one that it reads.
const FORM: u64 = 1;
/// Bytes of a frame, about: a state is whole.
const FRAME: usize = 1 << 16;
/// The most bytes of a frame that is read: more than any state takes.
const LONGEST: usize = 1 << 28;
/// States that are recalled together.
const TOGETHER: u64 = 1 << 10;

/// What takes the checkpoints of a search.
pub trait Keeper {
    /// Whether one should be taken. Asked between two levels.
    fn is_due(&mut self) -> bool;

    /// Takes one. `write` writes it, as a whole or up to the first error, which is returned. What becomes of an error is
    /// for the keeper to say: the search goes on.
    fn keep(&mut self, kept: Kept, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>);
}

/// What is in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// States that were found.
    pub states: u64,
    /// Those among them that were expanded.
    pub expanded: u64,
    /// The distance of the others from an initial state.
    pub depth: u64,
}

/// Where checkpoints go, and which one to go on from.
///
/// The system must write its [states as bytes](deltamark_core::System::portable), the store have an
/// [image](deltamark_core::Store::image), and nobody observe the search.
#[derive(Default)]
pub struct Keeping<'a> {
    /// Takes a checkpoint between levels where one is due, and of every run that a limit or the user ends.
    pub keeper: Option<&'a mut dyn Keeper>,
    /// The checkpoint to go on from.
    pub from: Option<&'a mut dyn Read>,
}

impl Keeping<'_> {
    /// Why a search over this system and store cannot keep checkpoints: a clause; `None` if it can.
    pub fn unfit(system: &dyn System, store: &dyn Store) -> Option<&'static str> {
        match (store.image(), system.portable()) {
            (Image::None, _) => Some("it cannot be written to a checkpoint and read again yet"),
            (_, None) => Some("the states of this model cannot be written to a file"),
            _ => None,
        }
    }
}

/// Why a search did not go on from a checkpoint.
#[derive(Debug)]
pub enum Unresumed {
    /// A limit was reached, or the user asked for it, before all was read.
    Stopped(Stop),
    /// It could not be read.
    Unread(io::Error),
    /// It is none of this model and these properties: why, as a sentence without a full stop.
    Wrong(&'static str),
}

impl fmt::Display for Unresumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unresumed::Stopped(stop) => write!(f, "the run had to end before it was read ({})", stop.word()),
            Unresumed::Unread(error) => error.fmt(f),
            Unresumed::Wrong(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Unresumed {}

impl From<Stop> for Unresumed {
    fn from(stop: Stop) -> Self {
        Unresumed::Stopped(stop)
    }
}

const SHORT: Unresumed = Unresumed::Wrong("it ends early, or holds what is no number");

fn number(bytes: &mut Reader<'_>) -> Result<u64, Unresumed> {
    bytes.number().ok_or(SHORT)
}

/// A number of things of which each takes a byte at least.
fn count(bytes: &mut Reader<'_>) -> Result<usize, Unresumed> {
    bytes.at_most(bytes.rest().len() as u64).map(|count| count as usize).ok_or(SHORT)
}

fn flag(bytes: &mut Reader<'_>) -> Result<bool, Unresumed> {
    bytes.at_most(1).map(|flag| flag == 1).ok_or(SHORT)
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    varint::write(text.len() as u64, out);
    out.extend_from_slice(text);
}

fn text<'b>(bytes: &mut Reader<'b>) -> Result<&'b [u8], Unresumed> {
    let length = count(bytes)?;
    bytes.take(length).ok_or(SHORT)
}

/// Bytes in frames, written.
struct Frames<'w> {
    out: &'w mut dyn Write,
    bytes: Vec<u8>,
}

impl Frames<'_> {
    /// Ends the frame.
    fn end(&mut self) -> io::Result<()> {
        let length = u32::try_from(self.bytes.len()).map_err(|_| io::Error::other("a state is too long for a file"))?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    /// Ends it if it is not empty, and large or the last of its kind.
    fn end_if(&mut self, last: bool) -> io::Result<()> {
        if self.bytes.len() >= FRAME || (last && !self.bytes.is_empty()) { self.end() } else { Ok(()) }
    }
}

/// The next frame.
fn frame<'b>(from: &mut dyn Read, bytes: &'b mut Vec<u8>) -> Result<Reader<'b>, Unresumed> {
    let mut length = [0; 4];
    from.read_exact(&mut length).map_err(Unresumed::Unread)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(Unresumed::Wrong("a part of it is longer than any"));
    }
    bytes.resize(length, 0);
    from.read_exact(bytes).map_err(Unresumed::Unread)?;
    Ok(Reader::new(bytes))
}

/// What a search had counted and found when a level began.
pub(crate) struct LevelStart {
    /// Of all threads.
    statistics: Statistics,
    /// Of each property whether it was decided, and whether it had no value somewhere.
    found: Vec<(bool, bool)>,
}

impl LevelStart {
    /// Of a run, with what its threads have counted together.
    pub fn new(run: &Run<'_>, statistics: Statistics) -> Self {
        let found = |evidence: &Evidence| (evidence.decided.is_some(), evidence.undefined.is_some());
        LevelStart { statistics, found: run.evidence().iter().map(found).collect() }
    }

    /// What is in a checkpoint of this moment.
    pub fn kept(&self, level: &Level) -> Kept {
        let Statistics { expanded, depth, .. } = self.statistics;
        Kept { states: level.numbers().end, expanded, depth }
    }
}

/// The initial states as bytes, by which a model is recognised.
fn initial_states(run: &mut Run<'_>, portable: &dyn Portable) -> Result<Vec<u8>, Widen> {
    let mut batch = Batch::new(run.system.width());
    run.system.initial(&mut run.system_scratch, &mut batch)?;
    let mut bytes = Vec::new();
    varint::write(batch.len() as u64, &mut bytes);
    (0..batch.len()).for_each(|index| portable.write_state(&mut run.system_scratch, batch.target(index), &mut bytes));
    Ok(bytes)
}

fn portable<'a>(run: &Run<'a>) -> &'a dyn Portable {
    run.system.portable().expect("who keeps checkpoints has asked whether states can be written")
}

/// Levels are told apart.
const BY_LEVELS: u64 = 0;
/// Only the current level is.
const LISTED: u64 = 1;

/// Writes a search that has begun a level. `found` is what each thread has found since.
pub(crate) fn write(
    out: &mut dyn Write,
    run: &mut Run<'_>,
    level: &Level,
    found: &[Option<&mut Later>],
    start: &LevelStart,
) -> io::Result<()> {
    let portable = portable(run);
    let mut frames = Frames { out, bytes: Vec::with_capacity(FRAME + (FRAME >> 2)) };
    let head = &mut frames.bytes;
    varint::write(FORM, head);
    let initial = initial_states(run, portable);
    write_text(&initial.map_err(|Widen| io::Error::other("the layout got narrower"))?, head);
    write_statistics(&start.statistics, run, head);
    write_evidence(run, &start.found, portable, head);
    let (starts, numbers) = (level.starts(), level.numbers());
    match run.store.image() {
        Image::Listed(listed) => {
            varint::write(LISTED, head);
            let since: u64 = found.iter().flatten().map(|later| later.len()).sum();
            for count in [numbers.start, numbers.end - numbers.start, since] {
                varint::write(count, head);
            }
            frames.end()?;
            let mut written = Ok(());
            listed.list(&mut |state| {
                portable.write_state(&mut run.system_scratch, state, &mut frames.bytes);
                written = frames.end_if(false);
                written.is_ok()
            });
            written.and_then(|()| frames.end_if(true))?;
            write_states(&mut frames, run, numbers.clone(), |run, range, states| level.recall(run, range, states))?;
        }
        _ => {
            varint::write(BY_LEVELS, head);
            varint::write(starts.len() as u64, head);
            let first = |index: usize| if index < starts.len() { starts.get(index) } else { numbers.end };
            (0..starts.len()).for_each(|index| varint::write(first(index + 1) - first(index), head));
            frames.end()?;
            for index in 0..starts.len() {
                let range = first(index)..first(index + 1);
                write_states(&mut frames, run, range, |run, range, states| level.recall(run, range, states))?;
            }
        }
    }
    // Actions that are numbered in the course of a run are other ones elsewhere. Without them no edge is skipped, which
    // is always right.
    if portable.actions().is_none() {
        let (mut actions, mut next) = (Vec::new(), numbers.start);
        while next < numbers.end {
            let to = numbers.end.min(next + TOGETHER);
            actions.clear();
            level.arrivals(next..to, &mut actions);
            for action in &actions {
                varint::write(if *action == Action::NONE { 0 } else { u64::from(action.0) + 1 }, &mut frames.bytes);
                frames.end_if(false)?;
            }
            next = to;
        }
        frames.end_if(true)?;
    }
    frames.end()?;
    if let Image::Listed(_) = run.store.image() {
        for later in found.iter().flatten() {
            write_states(&mut frames, run, 0..later.len(), |run, range, states| later.recall(run, range, states))?;
        }
    }
    Ok(())
}

/// Writes states that `recall` appends to a list.
fn write_states<'a>(
    frames: &mut Frames<'_>,
    run: &mut Run<'a>,
    range: Range<u64>,
    recall: impl Fn(&mut Run<'a>, Range<u64>, &mut States),
) -> io::Result<()> {
    let portable = portable(run);
    let mut states = States::new(run.system.width());
    let mut next = range.start;
    while next < range.end {
        let to = range.end.min(next + TOGETHER);
        states.reset(run.system.width());
        recall(run, next..to, &mut states);
        for state in states.iter() {
            portable.write_state(&mut run.system_scratch, state, &mut frames.bytes);
            frames.end_if(false)?;
        }
        next = to;
    }
    frames.end_if(true)
}

fn write_statistics(statistics: &Statistics, run: &Run<'_>, out: &mut Vec<u8>) {
    let Statistics { edges, left_out, deadlocks, depth, expanded, widenings, frontier_peak_bytes, .. } = *statistics;
    let time = (statistics.search_time + run.elapsed()).as_micros() as u64;
    for number in [edges, left_out, deadlocks, depth, expanded, widenings, frontier_peak_bytes, time] {
        varint::write(number, out);
    }
}

fn read_statistics(bytes: &mut Reader<'_>) -> Result<Statistics, Unresumed> {
    let mut next = || number(bytes);
    Ok(Statistics {
        edges: next()?,
        left_out: next()?,
        deadlocks: next()?,
        depth: next()?,
        expanded: next()?,
        widenings: next()?,
        frontier_peak_bytes: next()?,
        search_time: Duration::from_micros(next()?),
        ..Statistics::default()
    })
}

fn write_evidence(run: &Run<'_>, found: &[(bool, bool)], portable: &dyn Portable, out: &mut Vec<u8>) {
    varint::write(found.len() as u64, out);
    for ((property, evidence), &(decided, undefined)) in run.properties().iter().zip(run.evidence()).zip(found) {
        write_text(property.goal.word().as_bytes(), out);
        write_text(property.text.as_bytes(), out);
        write_witness(evidence.decided.as_ref().filter(|_| decided), portable, out);
        write_witness(evidence.undefined.as_ref().filter(|_| undefined), portable, out);
        varint::write(evidence.probed.into(), out);
    }
}

fn read_evidence(run: &Run<'_>, bytes: &mut Reader<'_>) -> Result<Vec<Evidence>, Unresumed> {
    const OTHERS: Unresumed = Unresumed::Wrong("it is of other properties");
    let (portable, properties) = (portable(run), run.properties());
    if count(bytes)? != properties.len() {
        return Err(OTHERS);
    }
    let read = |property: &deltamark_core::Property| {
        if text(bytes)? != property.goal.word().as_bytes() || text(bytes)? != property.text.as_bytes() {
            return Err(OTHERS);
        }
        let decided = read_witness(portable, bytes)?;
        let undefined = read_witness(portable, bytes)?;
        Ok(Evidence { decided, undefined, probed: flag(bytes)? })
    };
    properties.iter().map(read).collect()
}

/// A state that says something about a property, by the path to it (I5).
fn write_witness(witness: Option<&Witness>, portable: &dyn Portable, out: &mut Vec<u8>) {
    let Some(Witness { trace, message }) = witness else { return varint::write(0, out) };
    let trace = trace.as_ref().expect("a search that keeps checkpoints ends in the level where it finds no trace");
    varint::write(1, out);
    write_trace(trace, portable, out);
    varint::write(message.is_some().into(), out);
    write_text(message.as_deref().unwrap_or_default().as_bytes(), out);
}

fn read_witness(portable: &dyn Portable, bytes: &mut Reader<'_>) -> Result<Option<Witness>, Unresumed> {
    let trace = match number(bytes)? {
        0 => return Ok(None),
        1 => Ok(read_trace(portable, bytes)?),
        _ => return Err(Unresumed::Wrong("it tells that a property was decided, and has no trace that shows it")),
    };
    let has_message = flag(bytes)?;
    let message = String::from_utf8_lossy(text(bytes)?).into_owned();
    Ok(Some(Witness { trace, message: has_message.then_some(message) }))
}

fn write_trace(trace: &Trace, portable: &dyn Portable, out: &mut Vec<u8>) {
    varint::write(trace.initial.into(), out);
    varint::write(u64::from(trace.ending == Ending::Fault), out);
    varint::write(trace.actions.len() as u64, out);
    for &action in &trace.actions {
        match portable.actions() {
            Some(actions) => write_text(&actions.carry(action), out),
            None => varint::write(action.0.into(), out),
        }
    }
}

fn read_trace(portable: &dyn Portable, bytes: &mut Reader<'_>) -> Result<Trace, Unresumed> {
    let initial = bytes.at_most(u32::MAX.into()).ok_or(SHORT)? as u32;
    let ending = if flag(bytes)? { Ending::Fault } else { Ending::State };
    let length = count(bytes)?;
    let mut actions = Vec::new();
    for _ in 0..length {
        actions.push(match portable.actions() {
            Some(all) => all.receive(text(bytes)?).ok_or(Unresumed::Wrong("a step of a trace is no action"))?,
            None => Action(bytes.at_most(u32::MAX.into()).ok_or(SHORT)? as u32),
        });
    }
    Ok(Trace { initial, actions, ending })
}

/// What is left to read of a checkpoint once its level has begun.
pub(crate) struct Rest {
    /// The number of the level.
    pub depth: u64,
    /// States that were found since it began.
    since: u64,
}

/// A search that has not begun, into which a checkpoint is read.
struct Reading<'r, 'a, 'l, 'f> {
    from: &'r mut dyn Read,
    run: &'r mut Run<'a>,
    level: &'r mut Level,
    found: &'r mut [Option<&'l mut Later>],
    portable: &'a dyn Portable,
    /// States that were entered, and the memory of one.
    entered: u64,
    state: &'f mut Vec<Slot>,
}

/// Reads a search that has begun a level into one that has not begun at all. When this returns, the search is about to go on to
/// that level.
pub(crate) fn read(
    from: &mut dyn Read,
    run: &mut Run<'_>,
    level: &mut Level,
    found: &mut [Option<&mut Later>],
) -> Result<Rest, Unresumed> {
    let portable = portable(run);
    let mut bytes = Vec::new();
    let mut head = frame(from, &mut bytes)?;
    if number(&mut head)? != FORM {
        return Err(Unresumed::Wrong("it has a form of another version"));
    }
    let initial = loop {
        match initial_states(run, portable) {
            Ok(initial) => break initial,
            Err(Widen) => run.widen(&mut Frontier { level, found })?,
        }
    };
    if text(&mut head)? != initial {
        return Err(Unresumed::Wrong("it is of another model: the initial states differ"));
    }
    let statistics = read_statistics(&mut head)?;
    let evidence = read_evidence(run, &mut head)?;
    let by_number = matches!(run.store.image(), Image::Numbered);
    let reading = &mut Reading { from, run, level, found, portable, entered: 0, state: &mut Vec::new() };
    let (length, since) = match number(&mut head)? {
        BY_LEVELS => {
            let mut lengths = Vec::new();
            for _ in 0..count(&mut head)? {
                lengths.push(number(&mut head)?);
            }
            if lengths.contains(&0) || lengths.len() as u64 != statistics.depth.saturating_add(1) || !head.is_empty() {
                return Err(Unresumed::Wrong("its levels do not agree with its depth"));
            }
            (reading.levels(&lengths)?, 0)
        }
        LISTED if by_number => {
            return Err(Unresumed::Wrong(
                "the store that kept it does not tell levels apart, and this one needs them: go on in `compact`",
            ));
        }
        LISTED => {
            let [before, length, since] = [number(&mut head)?, number(&mut head)?, number(&mut head)?];
            let all = before.checked_add(length).and_then(|sum| sum.checked_add(since)).ok_or(SHORT)?;
            reading.level.resume(before, Numbers::new());
            reading.states(all, Reading::enter)?;
            reading.states(length, Reading::find)?;
            (length, since)
        }
        _ => return Err(SHORT),
    };
    reading.arrivals(length)?;
    let depth = statistics.depth;
    run.go_on(statistics, evidence);
    Ok(Rest { depth, since })
}

/// Reads what was found since the level began, once the search has gone on to it.
pub(crate) fn read_rest(
    rest: &Rest,
    from: &mut dyn Read,
    run: &mut Run<'_>,
    level: &mut Level,
    found: &mut [Option<&mut Later>],
) -> Result<(), Unresumed> {
    let (portable, block) = (portable(run), level.numbers().start);
    let mut reading = Reading { from, run, level, found, portable, entered: 0, state: &mut Vec::new() };
    reading.states(rest.since, Reading::find)?;
    let later = first(reading.found);
    (0..rest.since).for_each(|_| later.arrive(Action::NONE));
    later.mark(block);
    Ok(())
}

/// What the first thread has found.
fn first<'s>(found: &'s mut [Option<&mut Later>]) -> &'s mut Later {
    found[0].as_mut().expect("the first thread is there")
}

impl Reading<'_, '_, '_, '_> {
    /// Reads states of all levels. Returns how many the last one has.
    fn levels(&mut self, lengths: &[u64]) -> Result<u64, Unresumed> {
        let (&last, before) = lengths.split_last().expect("there is a level at least");
        let (mut starts, mut next) = (Numbers::new(), 0u64);
        for length in before {
            starts.push(next);
            next = next.checked_add(*length).ok_or(SHORT)?;
        }
        self.level.resume(next, starts);
        for &length in before {
            self.states(length, Self::enter)?;
            if !self.run.store.end_level() {
                return Err(self.run.control().stop_when_full().into());
            }
        }
        // The search itself ends this one.
        self.states(last, Self::enter_and_list)?;
        Ok(last)
    }

    /// Reads this many states, and does the same with each.
    fn states(
        &mut self,
        mut left: u64,
        take: impl Fn(&mut Self, &[Slot], u64) -> Result<(), Unresumed>,
    ) -> Result<(), Unresumed> {
        let (mut bytes, mut state) = (Vec::new(), std::mem::take(self.state));
        while left > 0 {
            self.run.control().check()?;
            let mut frame = frame(self.from, &mut bytes)?;
            if frame.is_empty() {
                return Err(SHORT);
            }
            while !frame.is_empty() {
                left = left.checked_sub(1).ok_or(Unresumed::Wrong("there are more states than there should be"))?;
                self.state(&mut frame, &mut state)?;
                let hash = self.run.system.hash(&mut self.run.system_scratch, &state);
                take(self, &state, hash)?;
            }
            // What the process holds is looked at here, as a search does once a block.
            if !self.run.control().budget.tables(self.run.system.table_bytes()) {
                return Err(Stop::Memory.into());
            }
            let held: u64 = self.found.iter().flatten().map(|later| later.held_bytes()).sum();
            if !self.run.holds(held + self.level.shared_bytes() + (bytes.capacity() as u64)) {
                return Err(Stop::Memory.into());
            }
        }
        *self.state = state;
        Ok(())
    }

    /// Reads one state, in a layout that is wide enough.
    fn state(&mut self, bytes: &mut Reader<'_>, state: &mut Vec<Slot>) -> Result<(), Unresumed> {
        loop {
            let mut again = bytes.clone();
            match self.portable.read_state(&mut self.run.system_scratch, &mut again, state) {
                Ok(()) => {
                    *bytes = again;
                    return Ok(());
                }
                Err(Misread::Widen) => self.run.widen(&mut Frontier { level: self.level, found: self.found })?,
                Err(Misread::Wrong(why)) => return Err(Unresumed::Wrong(why)),
                Err(_) => return Err(Unresumed::Wrong("the bytes of a state cannot be read")),
            }
        }
    }

    fn insert(&mut self, state: &[Slot], hash: u64) -> Result<StateId, Unresumed> {
        let Run { store, store_scratch, .. } = &mut *self.run;
        match store.insert(store_scratch, state, hash, &Arrival { parent: None, action: Action::NONE }) {
            Insert::New(id) => {
                if let Image::Numbered = store.image() {
                    assert_eq!(id.get(), self.entered, "a store with numbered states numbers them as they come");
                }
                self.entered += 1;
                Ok(id)
            }
            Insert::Seen(_) => Err(Unresumed::Wrong("a state is there twice")),
            Insert::Full => Err(self.run.control().stop_when_full().into()),
        }
    }

    fn enter(&mut self, state: &[Slot], hash: u64) -> Result<(), Unresumed> {
        self.insert(state, hash).map(|_| ())
    }

    fn enter_and_list(&mut self, state: &[Slot], hash: u64) -> Result<(), Unresumed> {
        let id = self.insert(state, hash)?;
        first(self.found).push(id, state, 0, Action::NONE);
        Ok(())
    }

    /// Lists a state that was entered before.
    fn find(&mut self, state: &[Slot], hash: u64) -> Result<(), Unresumed> {
        let id = self.run.store.find(&mut self.run.store_scratch, state, hash);
        first(self.found).push(id.ok_or(Unresumed::Wrong("a state waits that was not found"))?, state, 0, Action::NONE);
        Ok(())
    }

    /// Reads the actions that led to the states of the level to come, as far as they are there.
    fn arrivals(&mut self, length: u64) -> Result<(), Unresumed> {
        let most = self.run.system.action_count().unwrap_or(u32::MAX);
        let mut bytes = Vec::new();
        let mut place = 0;
        let mut note = |place, action| {
            self.level.note_arrival(place, action);
            first(self.found).arrive(action);
        };
        loop {
            let mut actions = frame(self.from, &mut bytes)?;
            if actions.is_empty() {
                break;
            }
            while !actions.is_empty() {
                let action = actions.at_most(most.into()).filter(|_| place < length).ok_or(SHORT)?;
                note(place, action.checked_sub(1).map_or(Action::NONE, |action| Action(action as u32)));
                place += 1;
            }
        }
        (place..length).for_each(|place| note(place, Action::NONE));
        first(self.found).mark(0);
        Ok(())
    }
}
