//! A P/T net as a [`System`].
//!
//! In: a [`Net`]. Out: packed markings and their successors. What stays true: fields are exact; a count that
//! outgrows its field makes the system request a wider layout instead of being truncated. Threads see a new layout
//! at their next call, through a version number.

use crate::ahead::Ahead;
use crate::compile::Compiled;
use crate::facts::NetFacts;
use crate::fire::{Overflow, Workspace};
use crate::step::Verdict;
use crate::survey::{Sums, extremes};
use crate::{Net, Place, Transition, growth, sample};
use deltamark_core::layout;
use deltamark_core::{
    Action, BLOCK, Batch, Block, Bound, Control, Describe, Facts, Field, Fired, Growth, Layout, Observable,
    ObservableKind, Observe, Portable, Progress, Recoding, Reversible, Scratch, Sleep, Slot, States, Stop, System,
    Undone, Value, Widen, Width, sleep,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The most bits of a count. By adding weights of 32 bits it takes 2^31 steps to get there; a run ends then.
const MAX_BITS: u8 = Field::MAX_BITS;
/// Bytes of a name in a table, about.
const NAME_BYTES: u64 = 40;

/// A P/T net that can be run.
pub struct NetSystem {
    net: Net,
    effects: Vec<Vec<(u32, i64)>>,
    /// The transitions by decreasing priority; empty if all have the same.
    ranked: Vec<u32>,
    place_names: HashMap<String, u32>,
    transition_names: HashMap<String, u32>,
    current: RwLock<Arc<Compiled>>,
    /// The slots of a state, and the version of the layout: outside the lock, because all threads read them all
    /// the time, and locking `current` writes to its cache line.
    slots: AtomicUsize,
    version: AtomicU64,
    /// Of each place the largest count that did not fit, since the last widening: a sample of a store meets the same
    /// ones over and over and never widens.
    overflows: Mutex<BTreeMap<u32, u64>>,
    ahead: Mutex<Ahead>,
}

impl NetSystem {
    /// Prepares a net to run.
    ///
    /// Fields get the width that a short sample of the net's behaviour needs; they widen later if that is too
    /// little.
    ///
    /// # Panics
    /// When the net is not [valid](Net::validate).
    pub fn new(net: Net) -> Self {
        Self::under(net, &Control::new()).unwrap_or_else(|_| unreachable!("nobody asks it to stop"))
    }

    /// The same, unless `control` stops it.
    ///
    /// # Panics
    /// When the net is not [valid](Net::validate).
    pub fn under(net: Net, control: &Control) -> Result<Self, Stop> {
        let nodes = net.places.len().max(net.transitions.len()) as u64;
        control.ask_for(nodes * NAME_BYTES)?;
        if let Err(problem) = net.validate() {
            panic!("the net is valid: {problem}");
        }
        let effect = |transition| control.ask().map(|()| net.effect(transition));
        let effects = net.transitions.iter().map(effect).collect::<Result<Vec<_>, Stop>>()?;
        let mut changed = vec![false; net.places.len()];
        for &(place, _) in effects.iter().flatten() {
            changed[place as usize] = true;
        }
        let bits: Vec<u8> = sample::largest_counts(&net, &effects)
            .iter()
            .zip(&changed)
            .map(|(&count, &changed)| if changed { bits_for(count) } else { 0 })
            .collect();
        let compiled = Compiled::under(&net, layout_of(&net, &bits), 0, control)?;
        // Both the name and the id stand for a place; where they clash, the name wins.
        let names = |pairs: Vec<(&String, &String)>| -> Result<HashMap<String, u32>, Stop> {
            let mut numbers = HashMap::new();
            let ids = pairs.iter().enumerate().map(|(index, (id, _))| (*id, index as u32));
            for (name, number) in ids.chain(pairs.iter().enumerate().map(|(index, (_, name))| (*name, index as u32))) {
                if numbers.len() == numbers.capacity() {
                    control.ask_for(2 * numbers.capacity() as u64 * NAME_BYTES)?;
                }
                control.ask()?;
                numbers.insert(name.clone(), number);
            }
            Ok(numbers)
        };
        let place_names = names(net.places.iter().map(|place| (&place.id, &place.name)).collect())?;
        let transition_names = names(net.transitions.iter().map(|t| (&t.id, &t.name)).collect())?;
        let mut ranked: Vec<u32> = Vec::new();
        if net.has_priorities() {
            ranked.extend(0..net.transitions.len() as u32);
            ranked.sort_by_key(|&number| std::cmp::Reverse(net.transitions[number as usize].priority));
        }
        Ok(NetSystem {
            ranked,
            place_names,
            transition_names,
            effects,
            slots: AtomicUsize::new(compiled.layout.slots),
            current: RwLock::new(Arc::new(compiled)),
            version: AtomicU64::new(0),
            overflows: Mutex::default(),
            ahead: Mutex::default(),
            net,
        })
    }

    /// The net.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// The current number of bits of each place.
    pub fn field_bits(&self) -> Vec<u8> {
        self.compiled().layout.fields.iter().map(|field| field.bits()).collect()
    }

    /// The counts of a state, place by place.
    pub fn marking(&self, state: &[Slot]) -> Vec<u64> {
        self.compiled().layout.unpack(state).map(|count| count as u64).collect()
    }

    /// The effects of all transitions: what firing adds to each place it changes, ascending by place.
    pub(crate) fn changes(&self) -> &[Vec<(u32, i64)>] {
        &self.effects
    }

    /// The tokens of a place in a state.
    pub(crate) fn count(&self, scratch: &mut Scratch, state: &[Slot], place: u32) -> u64 {
        self.workspace(scratch).compiled.layout.fields[place as usize].read(state) as u64
    }

    /// The net as this thread fires it.
    pub(crate) fn compiled_of<'s>(&self, scratch: &'s mut Scratch) -> &'s Compiled {
        &self.workspace(scratch).compiled
    }

    /// Remembers counts that do not fit their fields, and that a wider field can hold.
    pub(crate) fn note(&self, overflows: Vec<Overflow>) {
        self.overflows.lock().unwrap_or_else(PoisonError::into_inner).extend(overflows);
    }

    fn compiled(&self) -> Arc<Compiled> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// This thread's working memory, updated to the current layout.
    #[inline]
    fn workspace<'s>(&self, scratch: &'s mut Scratch) -> &'s mut Workspace {
        let workspace: &mut Workspace = scratch.get();
        if workspace.compiled.version != self.version.load(Acquire) {
            workspace.refresh(self.compiled());
        }
        workspace
    }

    fn enabled(&self, layout: &Layout, state: &[Slot], transition: &Transition) -> bool {
        let count = |place: u32| layout.fields[place as usize].read(state) as u64;
        let ranked = self.ranked.iter().map(|&number| &self.net.transitions[number as usize]);
        transition.enabled(count)
            && !ranked.take_while(|above| above.priority > transition.priority).any(|above| above.enabled(count))
    }

    /// The counts of places whose fields would overflow.
    fn overflow_of(&self, layout: &Layout, state: &[Slot], transition: usize, found: &mut Vec<Overflow>) {
        for &(place, gain) in &self.effects[transition] {
            let field = layout.fields[place as usize];
            let count = (field.read(state) as u64).saturating_add_signed(gain);
            if gain > 0 && count > field.most() as u64 {
                found.push((place, count));
            }
        }
    }

    /// Records which counts did not fit, for [`widen`](System::widen): all that these states lead to, or, if the run must
    /// end meanwhile, some.
    #[cold]
    fn note_overflows<'a>(
        &self,
        layout: &Layout,
        states: impl Iterator<Item = &'a [Slot]>,
        mut is_stopped: impl FnMut() -> bool,
    ) -> Widen {
        let mut noted = self.overflows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for state in states {
            for (number, transition) in self.net.transitions.iter().enumerate() {
                if !noted.is_empty() && is_stopped() {
                    return Widen;
                }
                if self.enabled(layout, state, transition) {
                    self.overflow_of(layout, state, number, &mut found);
                }
                for (place, count) in found.drain(..).filter(|&(_, count)| bits_for(count) <= MAX_BITS) {
                    let largest = noted.entry(place).or_default();
                    *largest = count.max(*largest);
                }
            }
        }
        Widen
    }

    /// Appends the successors of the states of a block state by state, where counts may be cut off.
    #[cold]
    fn expand_singly(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        chosen: Option<&[u64]>,
        out: &mut Batch,
    ) -> Result<(), Widen> {
        for (number, state) in block.states().iter().enumerate() {
            out.begin(number);
            let is_chosen = |transition: u32| chosen.is_none_or(|words| words[transition as usize] >> number & 1 == 1);
            self.successors_by(scratch, state, is_chosen, out)?;
        }
        Ok(())
    }

    /// Appends the successors of a state by the transitions that are chosen.
    fn successors_by(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        is_chosen: impl Fn(u32) -> bool,
        out: &mut Batch,
    ) -> Result<(), Widen> {
        let compiled = Arc::clone(&self.workspace(scratch).compiled);
        let layout = &compiled.layout;
        let hash = compiled.hash(source);
        let mut overflow = Vec::new();
        let mut target = source.to_vec();
        for step in &compiled.steps {
            if out.is_stopped() {
                break;
            }
            let number = step.transition as usize;
            if self.enabled(layout, source, &self.net.transitions[number]) {
                if !is_chosen(step.transition) {
                    out.leave_away(1 << out.current());
                    continue;
                }
                self.overflow_of(layout, source, number, &mut overflow);
                if counts_end(&overflow) {
                    out.cut_off(1 << out.current());
                    overflow.clear();
                    continue;
                }
                if !overflow.is_empty() {
                    return Err(self.note_overflows(layout, std::iter::once(source), || out.is_stopped()));
                }
                target.copy_from_slice(source);
                compiled.single.do_in(&mut target, number);
                out.push_hashed(Action(step.transition), &target, hash.wrapping_add(step.hash));
            }
        }
        Ok(())
    }

    /// The layout of states, and a block as bit planes.
    pub(crate) fn planes_of<'s>(&self, scratch: &'s mut Scratch, block: &Block) -> (Arc<Compiled>, &'s [u64]) {
        let workspace = self.workspace(scratch);
        (Arc::clone(&workspace.compiled), workspace.planes(block))
    }
}

/// How many bits a count needs; a place that changes has at least one.
fn bits_for(count: u64) -> u8 {
    layout::bits_for(count).max(1)
}

/// Whether one of these counts is beyond what the widest field holds.
fn counts_end(overflow: &[Overflow]) -> bool {
    overflow.iter().any(|&(_, count)| bits_for(count) > MAX_BITS)
}

fn layout_of(net: &Net, bits: &[u8]) -> Layout {
    let constant = |bits: u8, place: &Place| if bits == 0 { i64::from(place.initial) } else { 0 };
    Layout::in_words(bits.iter().zip(&net.places).map(|(&bits, place)| (bits, constant(bits, place))))
}

impl System for NetSystem {
    fn width(&self) -> Width {
        Width::Fixed(self.slots.load(Acquire))
    }

    fn scratch(&self) -> Scratch {
        Scratch::new(Workspace::new(self.compiled()))
    }

    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        let compiled = Arc::clone(&self.workspace(scratch).compiled);
        let mut state = Vec::new();
        compiled.layout.pack(self.net.places.iter().map(|place| i64::from(place.initial)), &mut state);
        out.push_hashed(Action(0), &state, compiled.hash(&state));
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        self.successors_by(scratch, source, |_| true, out)
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        if self.workspace(scratch).compiled.widest {
            return self.expand_singly(scratch, block, None, out);
        }
        let workspace = self.workspace(scratch);
        workspace.expand(block, out).map_err(|Widen| {
            let compiled = Arc::clone(&workspace.compiled);
            self.note_overflows(&compiled.layout, block.states().iter(), || out.is_stopped())
        })
    }

    fn expand_awake(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        sleep: &Sleep,
        arrivals: &[Action],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        let Sleep::Lists(lists) = sleep else {
            return sleep::expand_then_skip(self, scratch, block, sleep, arrivals, out);
        };
        if self.workspace(scratch).compiled.widest {
            return self.expand_singly(scratch, block, None, out);
        }
        let workspace = self.workspace(scratch);
        workspace.expand_awake(lists, block, arrivals, out).map_err(|Widen| {
            let compiled = Arc::clone(&workspace.compiled);
            self.note_overflows(&compiled.layout, block.states().iter(), || out.is_stopped())
        })
    }

    fn expand_chosen(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        chosen: &[u64],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        if self.workspace(scratch).compiled.widest {
            return self.expand_singly(scratch, block, Some(chosen), out);
        }
        let workspace = self.workspace(scratch);
        workspace.expand_chosen(block, chosen, out).map_err(|Widen| {
            let compiled = Arc::clone(&workspace.compiled);
            self.note_overflows(&compiled.layout, block.states().iter(), || out.is_stopped())
        })
    }

    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        let compiled = &self.workspace(scratch).compiled;
        let number = action.0 as usize;
        match compiled.single.can_do(source, number) {
            Verdict::Fits => {}
            Verdict::Disabled => return Ok(Fired::Disabled),
            Verdict::Open => {
                let layout = &compiled.layout;
                if !self.enabled(layout, source, &self.net.transitions[number]) {
                    return Ok(Fired::Disabled);
                }
                let mut overflow = Vec::new();
                self.overflow_of(layout, source, number, &mut overflow);
                // Beyond the counting range: see `Batch::cut_off`.
                if counts_end(&overflow) {
                    return Ok(Fired::Disabled);
                }
                if !overflow.is_empty() {
                    return Err(self.note_overflows(layout, std::iter::once(source), || false));
                }
            }
        }
        target.clear();
        target.extend_from_slice(source);
        compiled.single.do_in(target, number);
        Ok(Fired::Done)
    }

    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        let compiled = &*self.workspace(scratch).compiled;
        let enabled = |number: usize, state: &[Slot]| {
            self.net.transitions.get(number).is_some_and(|found| self.enabled(&compiled.layout, state, found))
        };
        compiled.single.do_each(sources, actions, targets, enabled);
    }

    fn hash(&self, scratch: &mut Scratch, state: &[Slot]) -> u64 {
        self.workspace(scratch).compiled.hash(state)
    }

    fn hashes(&self, scratch: &mut Scratch, states: &States, out: &mut Vec<u64>) {
        let compiled = &self.workspace(scratch).compiled;
        compiled.hash_all(states.slots(), out);
    }

    fn widen(&self) -> Recoding {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let old = Arc::clone(&current);
        let mut bits: Vec<u8> = old.layout.fields.iter().map(|field| field.bits()).collect();
        let (mut widened, mut outgrown) = (Vec::new(), Vec::new());
        let noted = std::mem::take(&mut *self.overflows.lock().unwrap_or_else(PoisonError::into_inner));
        for (place, count) in noted {
            let place = place as usize;
            let needed = bits_for(count);
            assert!(needed <= MAX_BITS, "what no field holds is cut off and not noted");
            if needed > bits[place] {
                outgrown.push((place, old.layout.fields[place].bits()));
                bits[place] = needed;
                widened.push(self.net.places[place].name.as_str());
            }
        }
        let reason = match widened.as_slice() {
            [one] => format!("place `{one}` outgrew its field"),
            [first, rest @ ..] => format!("place `{first}` and {} others outgrew their fields", rest.len()),
            [] => "nothing outgrew its field".into(),
        };
        // If a field has the maximum width, states are expanded one by one: no field gets there before it must.
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).widen(&mut bits, &outgrown, MAX_BITS - 1);
        let new = Arc::new(Compiled::new(&self.net, layout_of(&self.net, &bits), old.version + 1));
        *current = Arc::clone(&new);
        self.slots.store(new.layout.slots, Release);
        self.version.store(new.version, Release);
        Recoding::between(&old.layout, &new.layout, reason)
    }

    fn widening_bytes(&self) -> u64 {
        self.current.read().unwrap_or_else(PoisonError::into_inner).bytes_to_compile()
    }

    fn action_count(&self) -> Option<u32> {
        Some(self.net.transitions.len() as u32)
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        Some(self)
    }

    fn portable(&self) -> Option<&dyn Portable> {
        Some(self)
    }

    fn progress(&self) -> Option<&dyn Progress> {
        Some(self)
    }

    fn facts(&self, control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Ok(NetFacts::new(self, control)?.map(|facts| Box::new(facts) as Box<dyn Facts + '_>))
    }

    fn observe(&self) -> Option<&dyn Observe> {
        Some(self)
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

impl Reversible for NetSystem {
    fn unfire(&self, scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool {
        let compiled = &*self.workspace(scratch).compiled;
        let number = action.0 as usize;
        if !compiled.single.can_undo(target, number) {
            return false;
        }
        source.clear();
        source.extend_from_slice(target);
        compiled.single.undo_in(source, number);
        !compiled.single.special(number) || self.enabled(&compiled.layout, source, &self.net.transitions[number])
    }

    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        let compiled = &*self.workspace(scratch).compiled;
        let single = &compiled.single;
        let hash = compiled.hash(target);
        let mut source = target.to_vec();
        for (number, transition) in self.net.transitions.iter().enumerate() {
            if out.is_stopped() {
                return;
            }
            if single.can_undo(target, number) {
                source.copy_from_slice(target);
                single.undo_in(&mut source, number);
                if !single.special(number) || self.enabled(&compiled.layout, &source, transition) {
                    out.push_hashed(Action(number as u32), &source, hash.wrapping_sub(single.hash(number)));
                }
            }
        }
    }

    fn unfire_each(
        &self,
        scratch: &mut Scratch,
        targets: &States,
        hashes: &[u64],
        actions: &[Action],
        out: &mut Undone,
    ) {
        let compiled = &*self.workspace(scratch).compiled;
        let enabled =
            |number: usize, state: &[Slot]| self.enabled(&compiled.layout, state, &self.net.transitions[number]);
        compiled.single.undo_each(targets, hashes, actions, out, enabled);
    }
}

impl Describe for NetSystem {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let compiled = self.compiled();
        let counts = compiled.layout.unpack(state);
        let marked = self.net.places.iter().zip(counts).filter(|&(_, count)| count > 0);
        marked.map(|(place, count)| (place.name.clone(), Value::Int(count))).collect()
    }

    fn growth(&self) -> Option<Growth> {
        growth::growth(&self.net, &self.effects, &self.field_bits())
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        self.net.transitions[action.0 as usize].name.clone()
    }
}

impl NetSystem {
    /// Observables are numbered places first, then transitions.
    pub(crate) fn transition_of(&self, observable: Observable) -> Option<u32> {
        observable.index.checked_sub(self.net.places.len() as u32)
    }
}

impl NetSystem {
    /// The number of tokens in a place, as an observable.
    pub fn tokens(place: u32) -> Observable {
        Observable { index: place, kind: ObservableKind::Int }
    }

    /// The places whose counts decide the value of an observable, where no transition has priority over others.
    pub fn places_of(&self, observable: Observable) -> Vec<u32> {
        match self.transition_of(observable) {
            None => vec![observable.index],
            Some(number) => {
                let Transition { inputs, reads, inhibitors, .. } = &self.net.transitions[number as usize];
                inputs.iter().chain(reads).chain(inhibitors).map(|arc| arc.place).collect()
            }
        }
    }

    /// Whether a transition can fire, as an observable.
    pub fn fires(&self, transition: u32) -> Observable {
        Observable { index: self.net.places.len() as u32 + transition, kind: ObservableKind::Bool }
    }
}

impl Observe for NetSystem {
    fn resolve(&self, name: &str) -> Option<Observable> {
        self.place_names.get(name).map(|&place| NetSystem::tokens(place))
    }

    fn fireable(&self, name: &str) -> Option<Observable> {
        self.transition_names.get(name).map(|&transition| self.fires(transition))
    }

    fn resolve_id(&self, id: &str) -> Option<Observable> {
        let place = self.net.places.iter().position(|place| place.id == id)?;
        Some(NetSystem::tokens(place as u32))
    }

    fn fireable_id(&self, id: &str) -> Option<Observable> {
        let transition = self.net.transitions.iter().position(|transition| transition.id == id)?;
        Some(self.fires(transition as u32))
    }

    fn namesakes(&self, name: &str) -> Vec<String> {
        let places = self.net.place_namesakes.get(name).into_iter().flatten();
        places.map(|&place| self.net.places[place as usize].name.clone()).collect()
    }

    fn action_namesakes(&self, name: &str) -> Vec<String> {
        let transitions = self.net.transition_namesakes.get(name).into_iter().flatten();
        transitions.map(|&number| self.net.transitions[number as usize].name.clone()).collect()
    }

    fn names(&self) -> Vec<String> {
        self.net.places.iter().map(|place| place.name.clone()).collect()
    }

    fn action_names(&self) -> Vec<String> {
        self.net.transitions.iter().map(|transition| transition.name.clone()).collect()
    }

    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        let layout = &self.workspace(scratch).compiled.layout;
        match self.transition_of(observable) {
            None => layout.fields[observable.index as usize].read(state),
            Some(number) => i64::from(self.enabled(layout, state, &self.net.transitions[number as usize])),
        }
    }

    fn read_block(&self, scratch: &mut Scratch, block: &Block, observable: Observable, out: &mut [i64; BLOCK]) {
        let workspace = self.workspace(scratch);
        match self.transition_of(observable) {
            None => {
                let layout = &workspace.compiled.layout;
                let field = layout.fields[observable.index as usize];
                let slots = block.states().slots();
                if field.bits() == 0 {
                    out[..block.len()].fill(field.least());
                } else if u32::from(field.shift() + field.bits()) <= Slot::BITS {
                    // The common case: one slot of each state.
                    let (shift, mask) = (field.shift(), field.mask() as Slot);
                    let column = slots.get(field.slot() as usize..).unwrap_or_default().iter().step_by(layout.slots);
                    for (value, slot) in out.iter_mut().zip(column) {
                        *value = field.least().wrapping_add(i64::from(slot >> shift & mask));
                    }
                } else {
                    for (value, state) in out.iter_mut().zip(slots.chunks_exact(layout.slots)) {
                        *value = field.read(state);
                    }
                }
            }
            Some(number) => {
                let mask = workspace.fireable(block, number);
                for (index, value) in out.iter_mut().enumerate().take(block.len()) {
                    *value = (mask >> index & 1) as i64;
                }
            }
        }
    }

    fn survey_block(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        observables: &[Observable],
        bounds: &mut [Bound],
    ) -> i64 {
        let workspace = self.workspace(scratch);
        let compiled = Arc::clone(&workspace.compiled);
        let live = block.mask();
        let mut sums = Sums::new();
        for (observable, bound) in observables.iter().zip(bounds) {
            let fireable;
            let planes = match self.transition_of(*observable) {
                Some(number) => {
                    fireable = [workspace.fireable(block, number)];
                    &fireable[..]
                }
                None => {
                    let field = compiled.layout.fields[observable.index as usize];
                    if field.bits() == 0 {
                        bound.widen(field.least());
                        sums.add_to_all(field.least() as u64);
                        continue;
                    }
                    let first = 64 * field.word() as usize + usize::from(field.word_shift());
                    &workspace.planes(block)[first..first + usize::from(field.bits())]
                }
            };
            let (least, most) = extremes(planes, live);
            bound.widen(least as i64);
            bound.widen(most as i64);
            sums.add(planes);
        }
        sums.most(live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store's sample meets the same counts over and over, and nobody widens meanwhile.
    #[test]
    fn counts_that_do_not_fit_are_noted_once_a_place() {
        const PLACES: u64 = 50;
        let text: String = (0..PLACES).map(|number| format!("tr t{number} p -> p q{number}\n")).collect();
        let system = NetSystem::new(crate::tina::parse(&format!("pl p (1)\n{text}")).expect("a valid net"));
        let layout = &system.compiled().layout;
        let mut state = Vec::new();
        let full = |(place, field): (usize, &Field)| if place == 0 { 1 } else { field.most() };
        layout.pack(layout.fields.iter().enumerate().map(full), &mut state);
        let (mut scratch, mut batch) = (system.scratch(), Batch::new(system.width()));
        for _ in 0..100 {
            batch.reset(system.width());
            assert_eq!(system.successors(&mut scratch, &state, &mut batch), Err(Widen));
        }
        assert_eq!(system.overflows.lock().unwrap().len() as u64, PLACES);
    }

    /// A run that adds as much as it can gets there after 2^31 steps; here it begins just before.
    #[test]
    fn counts_end_and_do_not_wrap() {
        for weight in [1, 7, u32::MAX] {
            let text = format!("pl p (1)\ntr add p -> p q*{weight}\ntr move q -> r\n");
            let system = NetSystem::new(crate::tina::parse(&text).expect("a valid net"));
            let largest = (1u64 << MAX_BITS) - 1;
            for (q, fits) in [(largest - u64::from(weight), true), (largest - u64::from(weight) + 1, false)] {
                system.overflows.lock().unwrap().insert(1, q);
                system.widen();
                let compiled = system.compiled();
                let mut state = Vec::new();
                compiled.layout.pack([1, q as i64, 0].into_iter(), &mut state);
                let mut block = Block::new(system.width());
                block.push(deltamark_core::StateId::NAMELESS, &state);
                let mut scratch = system.scratch();
                let mut batch = Batch::new(system.width());
                system.expand(&mut scratch, &block, &mut batch).expect("a layout that fits");
                let found: Vec<_> = (0..batch.len()).map(|at| system.marking(batch.target(at))[1]).collect();
                let expected = if fits { vec![q + u64::from(weight), q - 1] } else { vec![q - 1] };
                assert_eq!(found, expected, "weight {weight}, {q} tokens");
                assert_eq!(batch.cut_off_sources(), u64::from(!fits));
                let fired = system.fire(&mut scratch, &state, Action(0), &mut Vec::new());
                assert_eq!(fired, Ok(if fits { Fired::Done } else { Fired::Disabled }));
            }
        }
    }
}
