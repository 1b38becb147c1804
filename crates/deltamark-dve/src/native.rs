//! Native code: the fast engine.
//!
//! In: a program. Out: successors, by machine code that Cranelift generates in this process; no compiler need be
//! installed. What stays true: the steps are the interpreter's, fault for fault; a step costs no allocation and no
//! call.
//!
//! # How a block is expanded
//! ```text
//! block ─ where is each process? ─▶ one mask of states a location ─▶ function of that location ─▶ batch
//!
//!           P: a b                 a: 1101
//!   states  s0 s1 s2 s3            b: 0010      expand_P_a(1101), expand_P_b(0010), expand_Q_…
//! ```
//!
//! Each function (see `function.rs`) loops over the states of its mask, tries the transitions of its location, and
//! writes targets straight into the memory of the batch. So the dispatch over locations is paid once for a block
//! and not for each state, and the processor runs the same code for many states in sequence.
//!
//! # What is not recomputed
//! Common subexpressions of the guards of a location are evaluated once for a state. A step in the sleep set of
//! its source (see `deltamark_core::sleep`) is found enabled and counted, but neither hashed nor looked up. Guards
//! are not cached from a state to its successors: that could save 2 to 10 % of a run, before its own cost
//! (`docs/dve.md`, *What was tried and dropped*).
//!
//! # When code is generated
//! A location's function is compiled when the location is first reached, so that a large model pays for what it
//! reaches. With `auto` the interpreter runs the first [`WARM_UP`] states: most models in tests and examples are
//! done by then. Locations with very many transitions are split into several functions: compile time grows faster
//! than linearly.
//!
//! # Memory safety
//! Functions trust their arguments: `Context` has room for every step of the sources (`most`), sources and targets
//! have the width of states. They do *not* trust the bits of states: see `facts.rs`.
//!
//! # What only the interpreter runs
//! Synchronous systems, channels with very large buffers or very many receives, models of very many steps,
//! expressions that are nested very deeply; [`Native::new`] returns why.

mod compiler;
mod emitter;
mod expression;
mod facts;
mod function;
mod step;

use crate::engine::{Engine, Taken, add_faults};
use crate::facts::words;
use crate::interpreter::Interpreter;
use crate::ir::{Channel, Effect, Program, Step, Sync, Target, Timing, TransitionId};
use compiler::Compiler;
use deltamark_core::{Action, BLOCK, Batch, Block, Room, Scratch, Slot};
use facts::NativeFacts;
use function::{Context, DISABLED, DONE, Expand, Fire, LocationPart, Starts};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// With `auto` the interpreter expands this many states first.
pub const WARM_UP: u64 = 2048;
/// The maximum number of steps in one function, unless a single transition has more.
const PART: usize = 64;
/// A block is expanded in pieces whose states have at most this many steps.
const PIECE: usize = 8192;
/// The approximate bytes allocated for targets at a time: their number is not known beforehand, only a bound.
const ROOM: usize = 1 << 20;
/// The maximum number of steps of a model, and of receives of a channel, that are compiled: compiling takes about
/// a tenth of a millisecond for each step, and a send with all its partners is one function, which is compiled
/// without interruption.
const MOST_STEPS: usize = 1 << 17;
const MOST_RECEIVES: usize = 256;
/// In locations of more parts the interpreter fires single steps, which is faster than compiling all of their
/// code.
const MOST_FIRING_PARTS: usize = 16;
/// The largest buffer that is compiled, in values: there is code for each possible length.
const LARGEST_BUFFER: u32 = 64;
/// The deepest expression that is compiled.
const DEEPEST: u16 = 400;

/// Native code for a program.
pub struct Native {
    facts: NativeFacts,
    processes: Vec<Process>,
    /// All locations of all processes.
    spots: Vec<NativeLocation>,
    /// For each step the spot and the part of it that can fire it.
    fired_by: Vec<(u32, u32)>,
    /// An empty set of steps.
    nothing: Vec<u64>,
    /// The maximum number of steps of one state.
    most: usize,
    /// The number of steps for which room is made at a time.
    room: usize,
    commits: bool,
    interpreter: Interpreter,
    /// The number of states that the interpreter still has to expand.
    warm_up: AtomicU64,
    compiler: Mutex<Compiler>,
}

/// The position of a process's location in a state.
struct Process {
    slot: usize,
    shift: u8,
    mask: u32,
    least: i32,
    /// Its first spot.
    first: u32,
    /// The number of its locations.
    count: u32,
}

/// A location of a process.
struct NativeLocation {
    parts: Vec<LocationPart>,
    /// The maximum number of steps of a state from here, including faults.
    most: usize,
    committed: bool,
    expand: OnceLock<Vec<Expand>>,
    fire: OnceLock<Vec<Fire>>,
}

/// Working memory of one thread.
struct NativeWorkspace {
    /// For each spot, the states of the block that are in it.
    masks: Vec<u64>,
    /// The spots with a non-empty mask, in order of occurrence.
    met: Vec<u32>,
    /// Faults as written by native code, and the same for Rust.
    faults: Vec<u64>,
    found: Vec<(usize, Action)>,
    interpreter: Scratch,
}

/// How the batch numbers the sources.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sources {
    /// By their index in the list.
    Numbered,
    /// There is one, and the batch has its number.
    Current,
}

/// States to expand.
struct StateRange<'a> {
    /// A list of states, contiguous.
    states: &'a [Slot],
    /// The range of them to expand.
    range: Range<usize>,
    /// For each of the list its sleep set, a bit a step; `None` if nothing is skipped.
    asleep: Option<&'a [&'a [u64]]>,
    sources: Sources,
}

/// The cost of compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The time.
    pub time: Duration,
    /// The number of functions.
    pub functions: u32,
}

impl Native {
    /// Native code for a program, from the first state on; or why that is impossible.
    pub fn new(program: &Program) -> Result<Self, String> {
        Self::after(program, 0)
    }

    /// Native code for a program once `warm_up` states have been expanded.
    pub fn after(program: &Program, warm_up: u64) -> Result<Self, String> {
        if program.timing == Timing::Synchronous {
            return Err("there is no native code for `system sync`".into());
        }
        let cells =
            |channel: &Channel| channel.buffer.map_or(0, |buffer| buffer.capacity.saturating_mul(channel.arity + 1));
        if let Some(channel) = program.channels.iter().find(|channel| cells(channel) > LARGEST_BUFFER) {
            return Err(format!("the buffer of channel `{}` is too large for native code", channel.name));
        }
        if program.steps.len() > MOST_STEPS {
            return Err(format!("there is no native code for models of more than {MOST_STEPS} steps"));
        }
        let many = |channel: &&Channel| channel.buffer.is_none() && channel.receives.len() > MOST_RECEIVES;
        if let Some(channel) = program.channels.iter().find(many) {
            return Err(format!(
                "there is no native code for more than {MOST_RECEIVES} receives of one channel, as `{}` has",
                channel.name
            ));
        }
        let facts = NativeFacts::new(program);
        let too_deep = |id: crate::ir::ExprId| facts.depth(id) > DEEPEST;
        let too_deep_place = |target: &Target| matches!(*target, Target::Element { index, .. } if too_deep(index));
        let deep = program.transitions.iter().any(|transition| {
            let sync = match &transition.sync {
                Sync::None => false,
                Sync::Send(_, values) => values.iter().any(|&id| too_deep(id)),
                Sync::Receive(_, targets) => targets.iter().any(too_deep_place),
            };
            let effect = |effect: &Effect| too_deep(effect.value) || too_deep_place(&effect.target);
            sync || too_deep(transition.guard) || transition.effects.iter().any(effect)
        });
        if deep {
            return Err("an expression is nested too deeply for native code".into());
        }
        let mut spots = Vec::new();
        let mut processes = Vec::new();
        for (number, process) in program.processes.iter().enumerate() {
            let cell = program.cells[process.location.0 as usize];
            processes.push(Process {
                slot: cell.field.slot() as usize,
                shift: cell.field.shift(),
                mask: cell.mask(),
                least: cell.least(),
                first: spots.len() as u32,
                count: process.locations.len() as u32,
            });
            for (location, place) in process.locations.iter().enumerate() {
                let parts = parts(program, number as u32, location as u32, place.transitions.clone());
                spots.push(NativeLocation {
                    parts,
                    most: most_steps(program, place.transitions.clone()),
                    committed: place.committed,
                    expand: OnceLock::new(),
                    fire: OnceLock::new(),
                });
            }
        }
        let mut part_of = vec![(u32::MAX, 0); program.transitions.len()];
        for (spot, place) in spots.iter().enumerate() {
            for (number, part) in place.parts.iter().enumerate() {
                for transition in part.transitions.0..part.transitions.1 {
                    part_of[transition as usize] = (spot as u32, number as u32);
                }
            }
        }
        let first = |step: &Step| match *step {
            Step::Alone(TransitionId(id)) | Step::Pair { send: TransitionId(id), .. } => part_of[id as usize],
        };
        Ok(Native {
            fired_by: program.steps.iter().map(first).collect(),
            nothing: vec![0; words(program).max(1)],
            // Each process is in one location.
            most: processes
                .iter()
                .map(|process| {
                    let spots = &spots[process.first as usize..(process.first + process.count) as usize];
                    spots.iter().map(|spot| spot.most).max().unwrap_or(0)
                })
                .sum(),
            room: (ROOM / (program.slots * size_of::<Slot>()).max(1)).clamp(PART, PIECE),
            commits: program.has_commit,
            interpreter: Interpreter::new(program),
            warm_up: AtomicU64::new(warm_up),
            compiler: Mutex::new(Compiler::new()?),
            facts,
            processes,
            spots,
        })
    }

    /// The cost of compilation so far.
    pub fn made(&self) -> Made {
        let compiler = self.compiler();
        Made { time: compiler.spent, functions: compiler.functions }
    }

    /// Compiles all locations now, for measurements.
    pub fn make_all(&self, program: &Program) -> Made {
        let all: Vec<u32> = (0..self.spots.len() as u32).collect();
        self.make(program, &all, &mut || false);
        self.made()
    }

    fn compiler(&self) -> MutexGuard<'_, Compiler> {
        self.compiler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles the missing expanding functions of these spots. Returns whether all exist: if memory is exhausted
    /// or the run is `stopped` they may not, and the interpreter continues.
    #[cold]
    fn make(&self, program: &Program, spots: &[u32], stopped: &mut dyn FnMut() -> bool) -> bool {
        let mut compiler = self.compiler();
        if compiler.failed {
            return false;
        }
        let missing: Vec<&NativeLocation> =
            spots.iter().map(|&spot| &self.spots[spot as usize]).filter(|spot| spot.expand.get().is_none()).collect();
        let parts: Vec<LocationPart> = missing.iter().flat_map(|spot| spot.parts.iter().copied()).collect();
        let Ok(Some(made)) = compiler.expand(program, &self.facts, &parts, stopped) else { return false };
        let mut made = made.into_iter();
        for spot in missing {
            // No other thread sets them: the compiler is locked.
            let _ = spot.expand.set(made.by_ref().take(spot.parts.len()).collect());
        }
        true
    }

    /// The same for the firing functions of one spot.
    #[cold]
    fn make_fire(&self, program: &Program, spot: &NativeLocation) -> bool {
        let mut compiler = self.compiler();
        if spot.fire.get().is_none() {
            if compiler.failed {
                return false;
            }
            if spot.parts.len() > MOST_FIRING_PARTS {
                return false;
            }
            let Ok(made) = compiler.fire(program, &self.facts, &spot.parts) else { return false };
            let _ = spot.fire.set(made);
        }
        true
    }

    /// Whether the interpreter still has to expand these states.
    #[inline]
    fn warming_up(&self, states: usize) -> bool {
        let left = self.warm_up.load(Relaxed);
        if left > 0 {
            // Threads may subtract concurrently and lose an update: then warm-up ends a little later.
            self.warm_up.store(left.saturating_sub(states as u64), Relaxed);
        }
        left > 0
    }

    /// Appends the successors of a block, without those skipped.
    fn expand_block(
        &self,
        program: &Program,
        scratch: &mut Scratch,
        block: &Block,
        asleep: Option<&[&[u64]]>,
        out: &mut Batch,
        faults: &mut Vec<(usize, Action)>,
    ) {
        let work = scratch.get::<NativeWorkspace>();
        if self.warming_up(block.len()) {
            let (interpreter, scratch) = (&self.interpreter, &mut work.interpreter);
            return match asleep {
                Some(asleep) => interpreter.expand_awake(program, scratch, block, asleep, out, faults),
                None => interpreter.expand(program, scratch, block, out, faults),
            };
        }
        let piece = (self.room / self.most.max(1)).clamp(1, BLOCK);
        let states = block.states().slots();
        let mut start = 0;
        while start < block.len() && !out.is_stopped() {
            let end = (start + piece).min(block.len());
            let piece = StateRange { states, range: start..end, asleep, sources: Sources::Numbered };
            if !self.expand_piece(program, work, &piece, out) {
                // Nothing is skipped here: skipping is optional.
                let mut wrong = Vec::new();
                for number in start..end {
                    out.begin(number);
                    self.interpreter.successors(program, &mut work.interpreter, block.state(number), out, &mut wrong);
                    add_faults(&mut work.found, wrong.drain(..).map(|action| (number, action)), out);
                }
            }
            start = end;
        }
        add_faults(faults, work.found.drain(..), out);
    }

    /// Appends the successors of some states; faults are left in `work.found`. Returns whether there is code for
    /// them: if not, nothing was appended.
    fn expand_piece(
        &self,
        program: &Program,
        work: &mut NativeWorkspace,
        piece: &StateRange<'_>,
        out: &mut Batch,
    ) -> bool {
        let StateRange { states, range, asleep, sources } = piece;
        let width = program.slots;
        let mut left_out = [0; BLOCK];
        let mut rows = [self.nothing.as_ptr(); BLOCK];
        for (row, set) in rows.iter_mut().zip(asleep.unwrap_or_default()) {
            assert!(set.len() >= words(program), "there is a bit for each step");
            *row = set.as_ptr();
        }
        assert!(states.len() >= range.end * width && range.end <= BLOCK, "there are as many states as are asked for");
        for number in range.clone() {
            let state = &states[number * width..(number + 1) * width];
            for process in &self.processes {
                let raw = if process.mask == 0 { 0 } else { state[process.slot] >> process.shift & process.mask };
                let location = process.least.wrapping_add(raw as i32) as u32;
                // No reachable state has such a location, but arbitrary bits may.
                if location < process.count {
                    let spot = process.first + location;
                    let mask = &mut work.masks[spot as usize];
                    if *mask == 0 {
                        work.met.push(spot);
                    }
                    *mask |= 1 << number;
                }
            }
        }
        let mut committed = 0;
        if self.commits {
            for &spot in work.met.iter().filter(|&&spot| self.spots[spot as usize].committed) {
                committed |= work.masks[spot as usize];
            }
        }
        let missing = work.met.iter().any(|&spot| self.spots[spot as usize].expand.get().is_none());
        if missing && !self.make(program, &work.met, &mut || out.is_stopped()) {
            work.met.drain(..).for_each(|spot| work.masks[spot as usize] = 0);
            return false;
        }
        let mut met = std::mem::take(&mut work.met);
        let all = self.most * range.len();
        let mut rest = &met[..];
        while !rest.is_empty() {
            // All of them if there is room for all their steps, as in most models.
            let (spots, most) = if all <= self.room { (rest, all) } else { self.fitting(rest, &work.masks) };
            rest = &rest[spots.len()..];
            work.faults.resize(most, 0);
            let mut fault_count = 0;
            out.write(most, |room: Room<'_>| {
                let mut context = Context {
                    sources: states.as_ptr(),
                    targets: room.targets.as_mut_ptr(),
                    actions: room.actions.as_mut_ptr().cast(),
                    origins: room.sources.as_mut_ptr(),
                    faults: work.faults.as_mut_ptr(),
                    fault_count: 0,
                    asleep: rows.as_ptr(),
                    left_out: left_out.as_mut_ptr(),
                };
                let mut count = 0;
                for &spot in spots {
                    let mut mask = std::mem::take(&mut work.masks[spot as usize]);
                    let spot = &self.spots[spot as usize];
                    if !spot.committed {
                        mask &= !committed;
                    }
                    if mask == 0 {
                        continue;
                    }
                    for expand in spot.expand.get().map(Vec::as_slice).unwrap_or_default() {
                        // SAFETY: the code was made for this program. The mask has a bit for states of `range` only, all of
                        // which are in `states` (asserted above). Each step of each of them is written at most once, by
                        // the one part that has it; there are at most `most` of them from these spots (see `most_steps` and
                        // `fitting`), which is what all four lists have room for. Sets of steps have a bit for each
                        // (asserted above, or made so), and there is a set and a number for each state of a block.
                        count = unsafe { expand(&mut context, mask, count) };
                    }
                }
                fault_count = context.fault_count as usize;
                if *sources == Sources::Current {
                    room.sources[..count as usize].fill(room.current);
                }
                count as usize
            });
            let found = work.faults[..fault_count].iter();
            add_faults(&mut work.found, found.map(|&fault| ((fault >> 32) as usize, Action(fault as u32))), out);
            if !rest.is_empty() && out.is_stopped() {
                break;
            }
        }
        if out.stop().is_some() {
            // Spots that were not expanded still have their masks.
            met.iter().for_each(|&spot| work.masks[spot as usize] = 0);
        }
        met.clear();
        work.met = met;
        for number in range.clone().filter(|&number| left_out[number] > 0) {
            out.leave_out_of(number, left_out[number].into());
        }
        true
    }

    /// The longest prefix of these spots, at least one, whose steps fit, and a bound on the number of their steps.
    fn fitting<'s>(&self, spots: &'s [u32], masks: &[u64]) -> (&'s [u32], usize) {
        let (mut count, mut sum) = (0, 0);
        for &spot in spots {
            let steps = self.spots[spot as usize].most * masks[spot as usize].count_ones() as usize;
            if count > 0 && sum + steps > self.room {
                break;
            }
            (count, sum) = (count + 1, sum + steps);
        }
        (&spots[..count], sum)
    }
}

/// The steps of a location, split into functions of a bearable length.
fn parts(program: &Program, process: u32, location: u32, transitions: Range<u32>) -> Vec<LocationPart> {
    let mut parts: Vec<LocationPart> = Vec::new();
    let mut length = usize::MAX;
    for number in transitions {
        let steps = function::steps(program, &program.transitions[number as usize]);
        if steps == 0 {
            continue;
        }
        // Receives in between belong to no step of this location and do no harm.
        match parts.last_mut() {
            Some(part) if length.saturating_add(steps) <= PART => {
                part.transitions.1 = number + 1;
                length += steps;
            }
            _ => {
                parts.push(LocationPart { process, location, transitions: (number, number + 1) });
                length = steps;
            }
        }
    }
    parts
}

/// The maximum number of steps, including faults, that one state can have from a location with these transitions;
/// a send counts once for each receive that can be ready at the same time.
fn most_steps(program: &Program, transitions: Range<u32>) -> usize {
    let steps = |number: u32| {
        let transition = &program.transitions[number as usize];
        match function::starts(program, transition) {
            Starts::Pairs(channel) => {
                let partners = function::partners(program, transition, channel);
                let richest = |locations: &Vec<(u32, Vec<TransitionId>)>| locations.iter().map(|one| one.1.len()).max();
                partners.iter().map(|(_, locations)| richest(locations).unwrap_or(0)).sum()
            }
            _ => function::steps(program, transition),
        }
    };
    transitions.map(steps).sum()
}

impl Engine for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn scratch(&self, program: &Program) -> Scratch {
        Scratch::new(NativeWorkspace {
            masks: vec![0; self.spots.len()],
            met: Vec::new(),
            faults: Vec::new(),
            found: Vec::new(),
            interpreter: self.interpreter.scratch(program),
        })
    }

    fn successors(
        &self,
        program: &Program,
        scratch: &mut Scratch,
        source: &[Slot],
        out: &mut Batch,
        faults: &mut Vec<Action>,
    ) {
        let work = scratch.get::<NativeWorkspace>();
        if self.warming_up(1) {
            return self.interpreter.successors(program, &mut work.interpreter, source, out, faults);
        }
        let piece = StateRange { states: source, range: 0..1, asleep: None, sources: Sources::Current };
        if self.expand_piece(program, work, &piece, out) {
            add_faults(faults, work.found.drain(..).map(|(_, action)| action), out);
        } else {
            self.interpreter.successors(program, &mut work.interpreter, source, out, faults);
        }
    }

    fn expand(
        &self,
        program: &Program,
        scratch: &mut Scratch,
        block: &Block,
        out: &mut Batch,
        faults: &mut Vec<(usize, Action)>,
    ) {
        self.expand_block(program, scratch, block, None, out, faults);
    }

    fn expand_awake(
        &self,
        program: &Program,
        scratch: &mut Scratch,
        block: &Block,
        asleep: &[&[u64]],
        out: &mut Batch,
        faults: &mut Vec<(usize, Action)>,
    ) {
        self.expand_block(program, scratch, block, Some(asleep), out, faults);
    }

    fn fire(
        &self,
        program: &Program,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut [Slot],
    ) -> Taken {
        // Committed locations concern all processes; they are rare, and left to the interpreter.
        if self.commits {
            let work = scratch.get::<NativeWorkspace>();
            return self.interpreter.fire(program, &mut work.interpreter, source, action, target);
        }
        let Some(&(spot, part)) = self.fired_by.get(action.0 as usize) else { return Taken::Disabled };
        let Some(spot) = self.spots.get(spot as usize) else { return Taken::Disabled };
        if spot.fire.get().is_none() && !self.make_fire(program, spot) {
            let work = scratch.get::<NativeWorkspace>();
            return self.interpreter.fire(program, &mut work.interpreter, source, action, target);
        }
        let Some(&fire) = spot.fire.get().and_then(|fire| fire.get(part as usize)) else { return Taken::Disabled };
        assert!(source.len() == program.slots && target.len() == program.slots, "states have the width of states");
        // SAFETY: the code was made for this program, and both states have its width.
        match unsafe { fire(source.as_ptr(), target.as_mut_ptr(), action.0) } {
            DONE => Taken::Done,
            DISABLED => Taken::Disabled,
            _ => Taken::Fault,
        }
    }
}
