//! A coloured net that runs unfolded and is described as coloured.
//!
//! In: a coloured net. Out: a [`System`] that runs the P/T net it unfolds to. What stays true: names,
//! markings, actions and properties are those of the coloured net; and a token that exceeds the place's
//! capacity is a fault, as it is for the coloured net.
//!
//! # Capacities
//! The P/T net has none. While the fields of all places with a capacity can hold no more than it allows (one
//! bit for the usual capacity of 1), a count above it shows as a field overflow. So only places whose field
//! could hold more are checked at each step; usually there are none.

use std::any::Any;
use std::sync::atomic::AtomicU64;
use std::sync::{PoisonError, RwLock};

use deltamark_core::facts::{Form, joined};
use deltamark_core::{
    Action, ActionFacts, BLOCK, Batch, Block, Bound, Bytes, Change, Control, Diagnostic, Effects, Facts, Fired, Layer,
    NoValue, Observable, Observe, Portable, Progress, Recoding, Scratch, Slot, Stop, System, UNDEFINED, Value, Widen,
    survey_by_reading,
};
use deltamark_nets::NetSystem;

use crate::engine::Engine;
use crate::expressions::eval::{Eval, Look};
use crate::net::{Fault, FaultKind, Net, OverMarkings, PlaceId, Value as Tree};
use crate::observe::describe::{features, names_of_the_net, total};
use crate::observe::observables::Observed;
use crate::tables::values::{Code, Room};
use crate::unfolding::unfold::{UnfoldLimits, UnfoldedParts, unfold};

/// The most tokens that an expression of the front end is given.
const MOST_LISTED: u64 = 1 << 20;

/// A coloured net that runs as the P/T net it unfolds to.
pub struct UnfoldedSystem {
    pub(crate) engine: Engine,
    pub(crate) inner: NetSystem,
    parts: UnfoldedParts,
    /// For each coloured place its P/T places, each with its token.
    pub(crate) of_place: Vec<Vec<(u32, u32)>>,
    /// For each coloured place its constant tokens.
    pub(crate) constants: Vec<Vec<(u32, u32)>>,
    /// Capacities of P/T places; `u64::MAX` for none.
    capacities: Vec<u64>,
    /// P/T places whose field could hold more than their capacity.
    watched: RwLock<Vec<u32>>,
    /// The largest count that a survey has seen in each P/T place.
    pub(crate) most: Vec<AtomicU64>,
    /// And the smallest.
    pub(crate) least: Vec<AtomicU64>,
}

/// Why a net was not unfolded.
pub enum NotUnfolded {
    /// The net cannot be run at all.
    Wrong(Vec<Diagnostic>),
    /// A clause without a full stop.
    Refused(String),
    /// The run was stopped.
    Stopped(Stop),
}

/// The diagnostics of a net; or that the run was stopped, which is reported the same way.
impl From<Vec<Diagnostic>> for NotUnfolded {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        let stop = diagnostics.iter().find_map(|diagnostic| diagnostic.stop);
        stop.map_or(NotUnfolded::Wrong(diagnostics), NotUnfolded::Stopped)
    }
}

impl From<String> for NotUnfolded {
    fn from(why: String) -> Self {
        NotUnfolded::Refused(why)
    }
}

impl From<Stop> for NotUnfolded {
    fn from(stop: Stop) -> Self {
        NotUnfolded::Stopped(stop)
    }
}

impl UnfoldedSystem {
    /// Unfolds a net; `text` is what its spans point into.
    pub fn new(net: Net, text: &str, limits: UnfoldLimits) -> Result<Self, NotUnfolded> {
        Self::under(net, text, limits, &Control::new())
    }

    /// The same, unless `control` stops it.
    pub fn under(net: Net, text: &str, limits: UnfoldLimits, control: &Control) -> Result<Self, NotUnfolded> {
        let engine = Engine::new(net, text, control)?;
        let mut parts = unfold(&engine, limits, control)?;
        let inner = NetSystem::under(std::mem::take(&mut parts.net), control)?;
        let mut of_place = vec![Vec::new(); engine.net.places.len()];
        for (number, &(place, token)) in (0..).zip(&parts.places) {
            of_place[place as usize].push((number, token));
        }
        let mut constants = vec![Vec::new(); engine.net.places.len()];
        for &(place, token, count) in parts.constants.iter().filter(|(_, _, count)| *count > 0) {
            constants[place as usize].push((token, count));
        }
        let capacity =
            |&(place, _): &(u32, u32)| engine.net.places[place as usize].capacity.map_or(u64::MAX, u64::from);
        let capacities = parts.places.iter().map(capacity).collect();
        let most = parts.places.iter().map(|_| AtomicU64::new(0)).collect();
        let least = parts.places.iter().map(|_| AtomicU64::new(u64::MAX)).collect();
        let watched = RwLock::default();
        let system = UnfoldedSystem { engine, inner, parts, of_place, constants, capacities, watched, most, least };
        system.watch();
        Ok(system)
    }

    /// The P/T net.
    pub fn net(&self) -> &deltamark_nets::Net {
        self.inner.net()
    }

    /// Determines which places must be watched in the current layout.
    fn watch(&self) {
        let mut watched = self.watched.write().unwrap_or_else(PoisonError::into_inner);
        watched.clear();
        for (place, (bits, &capacity)) in (0..).zip(self.inner.field_bits().into_iter().zip(&self.capacities)) {
            if bits > 0 && (bits >= 63 || (1u64 << bits) - 1 > capacity) {
                watched.push(place);
            }
        }
    }

    /// The first watched place above its capacity.
    fn exceeded(&self, watched: &[u32], scratch: &mut Scratch, state: &[Slot]) -> Option<u32> {
        watched.iter().copied().find(|&place| {
            let count = self.inner.read(scratch, state, NetSystem::tokens(place));
            count as u64 > self.capacities[place as usize]
        })
    }

    /// Whether a place of a state holds more than it may.
    pub(crate) fn is_exceeded(&self, scratch: &mut Scratch, state: &[Slot]) -> bool {
        let watched = self.watched.read().unwrap_or_else(PoisonError::into_inner);
        self.exceeded(&watched, scratch, state).is_some()
    }

    fn message(&self, place: u32) -> String {
        self.engine.exceeded(self.parts.places[place as usize].0)
    }

    /// Lets the inner net append to `out`, and turns targets above a capacity into faults.
    fn checked(
        &self,
        scratch: &mut Scratch,
        out: &mut Batch,
        append: impl FnOnce(&mut Scratch, &mut Batch) -> Result<(), Widen>,
    ) -> Result<(), Widen> {
        let watched = self.watched.read().unwrap_or_else(PoisonError::into_inner);
        if watched.is_empty() {
            return append(scratch, out);
        }
        let mut inner = Batch::new(self.inner.width());
        if let Some(control) = out.control() {
            inner = inner.under(control);
        }
        append(scratch, &mut inner)?;
        if let Some(stop) = inner.stop() {
            out.halt(stop);
            return Ok(());
        }
        out.cut_off(inner.cut_off_sources());
        for index in 0..inner.len() {
            if out.is_stopped() {
                return Ok(());
            }
            out.begin(inner.source(index));
            let (action, target) = (inner.action(index), inner.target(index));
            match self.exceeded(&watched, scratch, target) {
                None => out.push_hashed(action, target, inner.hash(index)),
                Some(place) => out.fault(Some(action), self.message(place)),
            }
        }
        Ok(())
    }
}

impl Layer for UnfoldedSystem {
    fn inner(&self) -> &dyn System {
        &self.inner
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let current = out.current();
        self.checked(scratch, out, |scratch, out| {
            out.begin(current);
            self.inner.successors(scratch, source, out)
        })
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        self.checked(scratch, out, |scratch, out| self.inner.expand(scratch, block, out))
    }

    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        let fired = self.inner.fire(scratch, source, action, target)?;
        let watched = self.watched.read().unwrap_or_else(PoisonError::into_inner);
        if fired == Fired::Done
            && let Some(place) = self.exceeded(&watched, scratch, target)
        {
            return Ok(Fired::Fault(self.message(place)));
        }
        Ok(fired)
    }

    fn widen(&self) -> Recoding {
        let recoding = self.inner.widen();
        self.watch();
        recoding
    }

    fn tables(&self) -> Bytes {
        self.engine.bytes()
    }

    fn facts(&self, control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        // The P/T net has no capacities, and so no faults.
        if self.capacities.iter().any(|&capacity| capacity != u64::MAX) {
            return Ok(None);
        }
        let inner = self.inner.facts(control)?;
        Ok(inner.map(|inner| Box::new(UnfoldedFacts { system: self, inner }) as Box<dyn Facts + '_>))
    }

    fn portable(&self) -> Option<&dyn Portable> {
        Some(self)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn describe_state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let counts = self.inner.marking(state);
        self.engine.tell_all(&Unfolded { system: self, counts: &counts })
    }

    fn describe_action(&self, _source: &[Slot], action: Action) -> String {
        self.engine.tell_action(self.parts.actions[action.0 as usize])
    }

    names_of_the_net!();

    fn groups_actions(&self) -> bool {
        true
    }

    fn name_of_action(&self, action: Action) -> usize {
        self.engine.actions.get(self.parts.actions[action.0 as usize]).transition() as usize
    }

    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        let observed = Observed::of(observable);
        if let Some((place, weight)) = self.weighed(observed) {
            return self.sum(place, &weight, |at| self.inner.read(scratch, state, NetSystem::tokens(at)));
        }
        match observed {
            Observed::Unfolded(place) => self.inner.read(scratch, state, NetSystem::tokens(place)),
            Observed::Fireable(transition) => {
                let of = |&(_, action): &(u32, &u32)| self.engine.actions.get(*action).transition() == transition;
                let bindings = (0..).zip(&self.parts.actions).filter(of);
                let fires = |at: u32| self.inner.read(scratch, state, self.inner.fires(at)) != 0;
                i64::from(bindings.map(|(at, _)| at).any(fires))
            }
            other => {
                let counts = self.inner.marking(state);
                self.engine.read(other, &Unfolded { system: self, counts: &counts })
            }
        }
    }

    fn read_block(&self, scratch: &mut Scratch, block: &Block, observable: Observable, out: &mut [i64; BLOCK]) {
        let Some((place, weight)) = self.weighed(Observed::of(observable)) else {
            for (index, state) in block.states().iter().enumerate() {
                out[index] = Layer::read(self, scratch, state, observable);
            }
            return;
        };
        // A P/T place at a time, over all states.
        out.fill(self.constant(place, &weight));
        let mut counts = [0; BLOCK];
        for &(at, token) in &self.of_place[place] {
            self.inner.read_block(scratch, block, NetSystem::tokens(at), &mut counts);
            let weight = weight(token);
            out.iter_mut().zip(&counts).for_each(|(sum, count)| *sum += weight * count);
        }
    }

    fn why_undefined(&self, _scratch: &mut Scratch, state: &[Slot], observable: Observable) -> NoValue {
        let counts = self.inner.marking(state);
        self.engine.why_undefined(Observed::of(observable), &Unfolded { system: self, counts: &counts })
    }

    fn survey_block(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        observables: &[Observable],
        bounds: &mut [Bound],
    ) -> i64 {
        let read = |observable, values: &mut _| Layer::read_block(self, scratch, block, observable, values);
        survey_by_reading(block.len(), observables, bounds, read)
    }

    fn effects(&self, control: &Control) -> Result<Option<Effects<'_>>, Stop> {
        let mut effects = self.inner.effects(control)?;
        for (place, (_, observable)) in (0..).zip(effects.iter_mut().flat_map(|effects| &mut effects.counts)) {
            *observable = Observed::Unfolded(place).observable();
        }
        Ok(effects)
    }

    fn features(&self) -> Vec<(String, Observable)> {
        features(&self.engine)
    }

    fn gains_of(&self, terms: &[(Observable, i64)]) -> Option<Vec<i64>> {
        let mut inner = Vec::new();
        for &(observable, factor) in terms {
            let observed = Observed::of(observable);
            if let Observed::Unfolded(place) = observed {
                inner.push((NetSystem::tokens(place), factor));
                continue;
            }
            let (place, weight) = self.weighed(observed)?;
            for &(at, token) in &self.of_place[place] {
                inner.push((NetSystem::tokens(at), factor.checked_mul(weight(token))?));
            }
        }
        self.inner.gains_of(&inner)
    }
}

/// The facts of the P/T net, with the coloured net's observables.
struct UnfoldedFacts<'s> {
    system: &'s UnfoldedSystem,
    inner: Box<dyn Facts + 's>,
}

impl Facts for UnfoldedFacts<'_> {
    fn actions(&self) -> &ActionFacts {
        self.inner.actions()
    }

    fn holds(&self, scratch: &mut Scratch, state: &[Slot], condition: u32) -> bool {
        self.inner.holds(scratch, state, condition)
    }

    fn truths(&self, scratch: &mut Scratch, block: &Block, out: &mut Vec<u64>) {
        self.inner.truths(scratch, block, out);
    }

    fn adds(&self) -> bool {
        self.inner.adds()
    }

    fn may_be_undefined(&self, observable: Observable) -> bool {
        // Propositions come after places and transitions.
        let net = &self.system.engine.net;
        observable.index as usize >= net.places.len() + net.transitions.len()
    }

    fn changes(&self, observable: Observable) -> Option<Vec<(Action, Change)>> {
        let UnfoldedSystem { engine, parts, .. } = self.system;
        let transition = (observable.index as usize).wrapping_sub(engine.net.places.len());
        if transition < engine.net.transitions.len() {
            let is_binding =
                |(_, action): &(u32, &u32)| engine.actions.get(**action).transition() as usize == transition;
            let bindings = (0..).zip(&parts.actions).filter(is_binding);
            let changes = |(binding, _)| self.inner.actions().changes_of_enabled(Action(binding));
            return Some(joined(bindings.flat_map(changes).collect()));
        }
        let gains = (0..).map(Action).zip(Layer::gains_of(self.system, &[(observable, 1)])?);
        let change = |gain: i64| if gain > 0 { Change::Increases } else { Change::Decreases };
        Some(gains.filter(|&(_, gain)| gain != 0).map(|(action, gain)| (action, change(gain))).collect())
    }

    fn form(&self) -> Form {
        self.inner.form()
    }
}

/// An unfolded marking that expressions can read.
struct Unfolded<'a> {
    system: &'a UnfoldedSystem,
    counts: &'a [u64],
}

impl Look for Unfolded<'_> {
    fn tokens(&self, place: PlaceId) -> Vec<(u32, u64)> {
        let place = place.0 as usize;
        let changing = self.system.of_place[place].iter().map(|&(at, token)| (token, self.counts[at as usize]));
        let constant = self.system.constants[place].iter().map(|&(token, count)| (token, u64::from(count)));
        let mut tokens: Vec<(u32, u64)> = changing.chain(constant).filter(|&(_, count)| count > 0).collect();
        tokens.sort_unstable();
        tokens
    }

    fn distinct(&self, place: PlaceId) -> u64 {
        self.tokens(place).len() as u64
    }

    fn total(&self, place: PlaceId) -> u64 {
        self.tokens(place).iter().map(|&(_, count)| count).sum()
    }

    fn component(&self, place: PlaceId, token: u32, index: u32) -> Code {
        self.system.engine.places[place.0 as usize].component(token, index as usize)
    }
}

impl UnfoldedSystem {
    /// The coloured place and the weight of each of its tokens, if an observable is such a sum.
    fn weighed(&self, observed: Observed) -> Option<(usize, impl Fn(u32) -> i64)> {
        let (place, component) = match observed {
            Observed::Tokens(place) => (place as usize, None),
            Observed::Sum { place, component } => (place as usize, Some(component as usize)),
            _ => return None,
        };
        let table = &self.engine.places[place];
        Some((place, move |token| component.map_or(1, |component| table.component(token, component))))
    }

    /// The weighted sum over the tokens of a place; `read` returns their counts.
    fn sum(&self, place: usize, weight: &impl Fn(u32) -> i64, read: impl FnMut(u32) -> i64) -> i64 {
        let tokens = self.of_place[place].iter().map(|&(_, token)| weight(token));
        let counts = self.of_place[place].iter().map(|&(at, _)| at).map(read);
        total(tokens.zip(counts).chain([(1, self.constant(place, weight))]))
    }

    /// The weighted sum of the constant tokens.
    fn constant(&self, place: usize, weight: &impl Fn(u32) -> i64) -> i64 {
        total(self.constants[place].iter().map(|&(token, count)| (weight(token), i64::from(count))))
    }
}

impl Engine {
    /// Why a proposition has no value in a marking.
    pub fn why_undefined(&self, observed: Observed, look: &dyn Look) -> NoValue {
        if let Observed::OverMarkings(number, _) = observed {
            return match self.over_markings(number, look) {
                Err(fault) => NoValue { message: self.message(&fault, None), limit: fault.kind.is_limit() },
                Ok(_) => NoValue::default(),
            };
        }
        let Observed::Proposition(number) = observed else { return NoValue::default() };
        let proposition = &self.net.propositions[number as usize];
        let mut frame = vec![0; proposition.frame as usize];
        match Eval::new(&self.net.functions, &self.values, Some(look)).truth(&proposition.holds, &mut frame) {
            Ok(_) => NoValue::default(),
            Err(fault) => NoValue { message: self.message(&fault, None), limit: fault.kind.is_limit() },
        }
    }

    /// The value of an expression of the front end in a marking.
    fn over_markings(&self, number: u32, look: &dyn Look) -> Result<i64, Fault> {
        let known = self.over_markings.lock().unwrap_or_else(PoisonError::into_inner);
        let OverMarkings { number, places, .. } = known[number as usize].clone();
        drop(known);
        let Some(host) = &self.net.host else { return Ok(UNDEFINED) };
        let mut arguments = Vec::with_capacity(places.len());
        let span = deltamark_core::Span::at(usize::MAX);
        let mut total = 0u64;
        for place in places {
            let mut tokens = Vec::new();
            for (token, count) in look.tokens(place) {
                // As many as an evaluation may make.
                total = total.saturating_add(count);
                if total > MOST_LISTED {
                    return Err(Fault { kind: FaultKind::Endless, span });
                }
                if !self.values.allows(count * size_of::<Tree>() as u64) {
                    return Err(Fault { kind: FaultKind::Memory, span });
                }
                let value = self.values.value(self.places[place.0 as usize].component(token, 0));
                tokens.extend(std::iter::repeat_n(value, count as usize));
            }
            arguments.push(Tree::Seq(tokens));
        }
        let room = Room::of(&self.values, None);
        match host.0.eval(number, &arguments, &|bytes| room.grants(bytes)) {
            Ok(value) => Ok(value.int().map_or(UNDEFINED, i64::from)),
            Err(number) => Err(Fault { kind: room.why(host, number), span }),
        }
    }

    /// The value in a marking of an observable that both forms read alike.
    pub fn read(&self, observed: Observed, look: &dyn Look) -> i64 {
        match observed {
            Observed::Proposition(number) => {
                let proposition = &self.net.propositions[number as usize];
                let mut frame = vec![0; proposition.frame as usize];
                let mut eval = Eval::new(&self.net.functions, &self.values, Some(look));
                eval.truth(&proposition.holds, &mut frame).map_or(UNDEFINED, i64::from)
            }
            Observed::OverMarkings(number, _) => self.over_markings(number, look).unwrap_or(UNDEFINED),
            Observed::Distinct(place) => look.distinct(PlaceId(place)) as i64,
            Observed::Matching(pattern) => {
                let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
                let (place, pattern) = &named[pattern as usize];
                let place = PlaceId(*place);
                let fits = |&&(token, _): &&(u32, u64)| {
                    let components = (0..).zip(pattern);
                    components
                        .map(|(at, wanted)| (look.component(place, token, at), wanted))
                        .all(|(code, wanted)| wanted.is_none_or(|wanted| wanted == code))
                };
                look.tokens(place).iter().filter(fits).map(|&(_, count)| count as i64).sum()
            }
            other => unreachable!("each form reads {other:?} in its own way"),
        }
    }
}
