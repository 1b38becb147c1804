//! Systems over systems.
//!
//! In: a system, and a layer's changes to it. Out: a system. Invariant: whatever a layer does not
//! override is inherited from the system below, including methods that are added later.
//!
//! The idea is LTSmin's (Blom, van de Pol, Weber, *LTSmin: distributed and symbolic reachability*,
//! CAV 2010): a wrapper has the type that it wraps and inherits what it does not override, so
//! reductions, products and renamings compose in any order.
//!
//! ```text
//! trait Layer            inner() is required, everything else is forwarded to it
//!   └─ System            by the one implementation in this file, for every layer
//!      Describe, Observe, Reversible, Progress      likewise
//! ```
//!
//! A layer overrides methods of [`Layer`], never of [`System`]. The implementations in this file
//! forward every method, including provided ones; `clippy::missing_trait_methods` is denied for
//! them, so a method that is added to one of the traits but not to [`Layer`] is rejected.
//!
//! # Methods that must be overridden together
//! Inheritance cannot know which methods a change affects. A layer that changes
//!
//! * *hashes* overrides whatever hands them out: `initial`, `successors`, `expand`, `hash`,
//!   `hashes`, `predecessors`, `unfire_each`, `expand_awake`, `expand_chosen`;
//! * *which steps there are* overrides `successors`, `expand`, `fire`, `predecessors`, `unfire` and
//!   `unfire_each`, `expand_awake` and `expand_chosen`, and hides `facts` and `exchange` unless they still hold;
//! * *the layout of states* overrides whatever takes or gives a state: `width`, `initial`, `successors`, `expand`,
//!   `expand_awake`, `expand_chosen`, `fire`, `fire_each`, `hash`, `hashes`, `widen` (see
//!   [`Recoding::with_tail`]), `describe_state`, `describe_action`, `read`, `why_undefined`, `read_block` and
//!   `survey_block`; `unfire`, `predecessors` and `unfire_each`; `portable` and `components`; and hides
//!   `exchange` unless it still holds, and `as_any`. `facts` are hidden, or wrapped in a [`Facts`] of the layer that
//!   passes on the states of the system below, if all that they state still holds: `UnfoldedFacts` in the crate
//!   `deltamark-coloured` wraps them for other observables;
//! * *which states there are* overrides `portable`, which must refuse all others;
//! * *observables* overrides `facts`, which states what changes them;
//! * anything *by the number of an action* overrides `portable`, and hides it where [`Portable::actions`] says that numbers
//!   differ between runs.
//!
//! The methods of a capability that the layer hides need no override: whoever hides `reversible`, `observe` or
//! `progress` leaves those of [`Reversible`], [`Observe`] or [`Progress`] as they are, and nobody calls
//! `expand_awake` or `expand_chosen` of a layer without `facts` and `exchange`.
//!
//! The suite `check_system` of the test kit compares all of these with each other.

use crate::{
    Action, BLOCK, Batch, Block, Bound, Bytes, Components, Control, Describe, Diagnostic, Effects, Exchange, Facts,
    Fired, Growth, NoValue, Observable, Observe, Portable, Progress, Recoding, Reversible, Scratch, Sleep, Slot,
    States, Stop, System, Undone, Value, Widen, Width,
};
use std::any::Any;

/// A system over another one, from which it inherits everything that it does not override.
///
/// ```
/// use deltamark_core::{Action, Layer, Slot, System};
///
/// /// The same system, whose actions are written in capitals.
/// struct Capitals<'s> {
///     inner: &'s dyn System,
/// }
///
/// impl Layer for Capitals<'_> {
///     fn inner(&self) -> &dyn System {
///         self.inner
///     }
///
///     fn describe_action(&self, source: &[Slot], action: Action) -> String {
///         self.inner.describe().action(source, action).to_uppercase()
///     }
/// }
///
/// fn is_a_system(system: &dyn System) -> Capitals<'_> {
///     Capitals { inner: system }
/// }
/// fn stacks<'s>(layer: &'s Capitals<'s>) -> Capitals<'s> {
///     is_a_system(layer)
/// }
/// ```
pub trait Layer: Send + Sync {
    /// The system below.
    fn inner(&self) -> &dyn System;

    /// See [`System::width`].
    fn width(&self) -> Width {
        self.inner().width()
    }

    /// See [`System::scratch`]: all layers share the scratch of the lowest system, unless a layer
    /// needs its own.
    fn scratch(&self) -> Scratch {
        self.inner().scratch()
    }

    /// See [`System::initial`].
    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        self.inner().initial(scratch, out)
    }

    /// See [`System::successors`].
    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        self.inner().successors(scratch, source, out)
    }

    /// See [`System::expand`].
    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        self.inner().expand(scratch, block, out)
    }

    /// See [`System::expand_awake`].
    fn expand_awake(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        sleep: &Sleep,
        arrivals: &[Action],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        self.inner().expand_awake(scratch, block, sleep, arrivals, out)
    }

    /// See [`System::expand_chosen`].
    fn expand_chosen(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        chosen: &[u64],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        self.inner().expand_chosen(scratch, block, chosen, out)
    }

    /// See [`System::fire`].
    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        self.inner().fire(scratch, source, action, target)
    }

    /// See [`System::fire_each`].
    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        self.inner().fire_each(scratch, sources, actions, targets);
    }

    /// See [`System::hash`].
    fn hash(&self, scratch: &mut Scratch, state: &[Slot]) -> u64 {
        self.inner().hash(scratch, state)
    }

    /// See [`System::hashes`].
    fn hashes(&self, scratch: &mut Scratch, states: &States, out: &mut Vec<u64>) {
        self.inner().hashes(scratch, states, out);
    }

    /// See [`System::widen`].
    fn widen(&self) -> Recoding {
        self.inner().widen()
    }

    /// See [`System::widening_bytes`].
    fn widening_bytes(&self) -> u64 {
        self.inner().widening_bytes()
    }

    /// See [`System::tables`].
    fn tables(&self) -> Bytes {
        self.inner().tables()
    }

    /// See [`System::table_bytes`].
    fn table_bytes(&self) -> u64 {
        self.inner().table_bytes()
    }

    /// See [`System::dump`].
    fn dump(&self) -> Option<String> {
        self.inner().dump()
    }

    /// See [`System::action_count`].
    fn action_count(&self) -> Option<u32> {
        self.inner().action_count()
    }

    /// See [`System::reversible`]. A layer is reversible if the system below is.
    fn reversible(&self) -> Option<&dyn Reversible>
    where
        Self: Sized,
    {
        self.inner().reversible().map(|_| self as &dyn Reversible)
    }

    /// See [`System::portable`].
    fn portable(&self) -> Option<&dyn Portable> {
        self.inner().portable()
    }

    /// See [`System::facts`].
    fn facts(&self, control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        self.inner().facts(control)
    }

    /// See [`System::refined_facts`]. By default those of the layer, which may not be those of the system below.
    fn refined_facts(&self, control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Layer::facts(self, control)
    }

    /// See [`System::exchange`].
    fn exchange(&self) -> Option<&dyn Exchange> {
        self.inner().exchange()
    }

    /// See [`System::progress`].
    fn progress(&self) -> Option<&dyn Progress>
    where
        Self: Sized,
    {
        self.inner().progress().map(|_| self as &dyn Progress)
    }

    /// See [`System::components`].
    fn components(&self) -> Option<&dyn Components> {
        self.inner().components()
    }

    /// See [`System::observe`].
    fn observe(&self) -> Option<&dyn Observe>
    where
        Self: Sized,
    {
        self.inner().observe().map(|_| self as &dyn Observe)
    }

    /// See [`System::as_any`]: language-specific queries go to the lowest system.
    fn as_any(&self) -> Option<&dyn Any> {
        self.inner().as_any()
    }

    /// See [`Describe::state`].
    fn describe_state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        self.inner().describe().state(state)
    }

    /// See [`Describe::action`].
    fn describe_action(&self, source: &[Slot], action: Action) -> String {
        self.inner().describe().action(source, action)
    }

    /// See [`Describe::rest`].
    fn rest(&self) -> Value {
        self.inner().describe().rest()
    }

    /// See [`Describe::growth`].
    fn growth(&self) -> Option<Growth> {
        self.inner().describe().growth()
    }

    /// See [`Observe::resolve`].
    fn resolve(&self, name: &str) -> Option<Observable> {
        self.inner().observe()?.resolve(name)
    }

    /// See [`Observe::own_expression`].
    fn own_expression(&self, text: &str) -> Option<Result<Observable, Vec<Diagnostic>>> {
        self.inner().observe()?.own_expression(text)
    }

    /// See [`Observe::fireable`].
    fn fireable(&self, name: &str) -> Option<Observable> {
        self.inner().observe()?.fireable(name)
    }

    /// See [`Observe::resolve_id`].
    fn resolve_id(&self, id: &str) -> Option<Observable> {
        self.inner().observe()?.resolve_id(id)
    }

    /// See [`Observe::fireable_id`].
    fn fireable_id(&self, id: &str) -> Option<Observable> {
        self.inner().observe()?.fireable_id(id)
    }

    /// See [`Observe::namesakes`].
    fn namesakes(&self, name: &str) -> Vec<String> {
        self.inner().observe().map_or_else(Vec::new, |below| below.namesakes(name))
    }

    /// See [`Observe::action_namesakes`].
    fn action_namesakes(&self, name: &str) -> Vec<String> {
        self.inner().observe().map_or_else(Vec::new, |below| below.action_namesakes(name))
    }

    /// See [`Observe::names`].
    fn names(&self) -> Vec<String> {
        self.inner().observe().map_or_else(Vec::new, |below| below.names())
    }

    /// See [`Observe::action_names`].
    fn action_names(&self) -> Vec<String> {
        self.inner().observe().map_or_else(Vec::new, |below| below.action_names())
    }

    /// See [`Observe::groups_actions`].
    fn groups_actions(&self) -> bool {
        self.inner().observe().is_some_and(|below| below.groups_actions())
    }

    /// See [`Observe::name_of_action`].
    fn name_of_action(&self, action: Action) -> usize {
        observed(self.inner()).name_of_action(action)
    }

    /// See [`Observe::read`].
    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        observed(self.inner()).read(scratch, state, observable)
    }

    /// See [`Observe::why_undefined`].
    fn why_undefined(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> NoValue {
        observed(self.inner()).why_undefined(scratch, state, observable)
    }

    /// See [`Observe::read_block`].
    fn read_block(&self, scratch: &mut Scratch, block: &Block, observable: Observable, out: &mut [i64; BLOCK]) {
        observed(self.inner()).read_block(scratch, block, observable, out);
    }

    /// See [`Observe::survey_block`].
    fn survey_block(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        observables: &[Observable],
        bounds: &mut [Bound],
    ) -> i64 {
        observed(self.inner()).survey_block(scratch, block, observables, bounds)
    }

    /// See [`Reversible::unfire`].
    fn unfire(&self, scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool {
        undoing(self.inner()).unfire(scratch, target, action, source)
    }

    /// See [`Reversible::predecessors`].
    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        undoing(self.inner()).predecessors(scratch, target, out);
    }

    /// See [`Reversible::unfire_each`].
    fn unfire_each(
        &self,
        scratch: &mut Scratch,
        targets: &States,
        hashes: &[u64],
        actions: &[Action],
        out: &mut Undone,
    ) {
        undoing(self.inner()).unfire_each(scratch, targets, hashes, actions, out);
    }

    /// See [`Progress::effects`].
    fn effects(&self, control: &Control) -> Result<Option<Effects<'_>>, Stop> {
        self.inner().progress().map_or(Ok(None), |below| below.effects(control))
    }

    /// See [`Progress::features`].
    fn features(&self) -> Vec<(String, Observable)> {
        self.inner().progress().map_or_else(Vec::new, |below| below.features())
    }

    /// See [`Progress::gains_of`].
    fn gains_of(&self, terms: &[(Observable, i64)]) -> Option<Vec<i64>> {
        self.inner().progress()?.gains_of(terms)
    }
}

fn observed(inner: &dyn System) -> &dyn Observe {
    inner.observe().expect("observables are read where the system below has them, or the layer reads its own")
}

fn undoing(inner: &dyn System) -> &dyn Reversible {
    inner.reversible().expect("steps are undone where the system below can, or the layer undoes its own")
}

#[deny(clippy::missing_trait_methods)]
impl<L: Layer> System for L {
    fn width(&self) -> Width {
        Layer::width(self)
    }

    fn scratch(&self) -> Scratch {
        Layer::scratch(self)
    }

    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        Layer::initial(self, scratch, out)
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        Layer::successors(self, scratch, source, out)
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        Layer::expand(self, scratch, block, out)
    }

    fn expand_awake(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        sleep: &Sleep,
        arrivals: &[Action],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        Layer::expand_awake(self, scratch, block, sleep, arrivals, out)
    }

    fn expand_chosen(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        chosen: &[u64],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        Layer::expand_chosen(self, scratch, block, chosen, out)
    }

    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        Layer::fire(self, scratch, source, action, target)
    }

    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        Layer::fire_each(self, scratch, sources, actions, targets);
    }

    fn hash(&self, scratch: &mut Scratch, state: &[Slot]) -> u64 {
        Layer::hash(self, scratch, state)
    }

    fn hashes(&self, scratch: &mut Scratch, states: &States, out: &mut Vec<u64>) {
        Layer::hashes(self, scratch, states, out);
    }

    fn widen(&self) -> Recoding {
        Layer::widen(self)
    }

    fn widening_bytes(&self) -> u64 {
        Layer::widening_bytes(self)
    }

    fn tables(&self) -> Bytes {
        Layer::tables(self)
    }

    fn table_bytes(&self) -> u64 {
        Layer::table_bytes(self)
    }

    fn dump(&self) -> Option<String> {
        Layer::dump(self)
    }

    fn action_count(&self) -> Option<u32> {
        Layer::action_count(self)
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        Layer::reversible(self)
    }

    fn portable(&self) -> Option<&dyn Portable> {
        Layer::portable(self)
    }

    fn facts(&self, control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Layer::facts(self, control)
    }

    fn refined_facts(&self, control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Layer::refined_facts(self, control)
    }

    fn exchange(&self) -> Option<&dyn Exchange> {
        Layer::exchange(self)
    }

    fn progress(&self) -> Option<&dyn Progress> {
        Layer::progress(self)
    }

    fn components(&self) -> Option<&dyn Components> {
        Layer::components(self)
    }

    fn observe(&self) -> Option<&dyn Observe> {
        Layer::observe(self)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Layer::as_any(self)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<L: Layer> Describe for L {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        self.describe_state(state)
    }

    fn rest(&self) -> Value {
        Layer::rest(self)
    }

    fn growth(&self) -> Option<Growth> {
        Layer::growth(self)
    }

    fn action(&self, source: &[Slot], action: Action) -> String {
        self.describe_action(source, action)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<L: Layer> Observe for L {
    fn resolve(&self, name: &str) -> Option<Observable> {
        Layer::resolve(self, name)
    }

    fn own_expression(&self, text: &str) -> Option<Result<Observable, Vec<Diagnostic>>> {
        Layer::own_expression(self, text)
    }

    fn fireable(&self, name: &str) -> Option<Observable> {
        Layer::fireable(self, name)
    }

    fn resolve_id(&self, id: &str) -> Option<Observable> {
        Layer::resolve_id(self, id)
    }

    fn fireable_id(&self, id: &str) -> Option<Observable> {
        Layer::fireable_id(self, id)
    }

    fn namesakes(&self, name: &str) -> Vec<String> {
        Layer::namesakes(self, name)
    }

    fn action_namesakes(&self, name: &str) -> Vec<String> {
        Layer::action_namesakes(self, name)
    }

    fn names(&self) -> Vec<String> {
        Layer::names(self)
    }

    fn action_names(&self) -> Vec<String> {
        Layer::action_names(self)
    }

    fn groups_actions(&self) -> bool {
        Layer::groups_actions(self)
    }

    fn name_of_action(&self, action: Action) -> usize {
        Layer::name_of_action(self, action)
    }

    fn read(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        Layer::read(self, scratch, state, observable)
    }

    fn why_undefined(&self, scratch: &mut Scratch, state: &[Slot], observable: Observable) -> NoValue {
        Layer::why_undefined(self, scratch, state, observable)
    }

    fn read_block(&self, scratch: &mut Scratch, block: &Block, observable: Observable, out: &mut [i64; BLOCK]) {
        Layer::read_block(self, scratch, block, observable, out);
    }

    fn survey_block(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        observables: &[Observable],
        bounds: &mut [Bound],
    ) -> i64 {
        Layer::survey_block(self, scratch, block, observables, bounds)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<L: Layer> Reversible for L {
    fn unfire(&self, scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool {
        Layer::unfire(self, scratch, target, action, source)
    }

    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        Layer::predecessors(self, scratch, target, out);
    }

    fn unfire_each(
        &self,
        scratch: &mut Scratch,
        targets: &States,
        hashes: &[u64],
        actions: &[Action],
        out: &mut Undone,
    ) {
        Layer::unfire_each(self, scratch, targets, hashes, actions, out);
    }
}

#[deny(clippy::missing_trait_methods)]
impl<L: Layer> Progress for L {
    fn effects(&self, control: &Control) -> Result<Option<Effects<'_>>, Stop> {
        Layer::effects(self, control)
    }

    fn features(&self) -> Vec<(String, Observable)> {
        Layer::features(self)
    }

    fn gains_of(&self, terms: &[(Observable, i64)]) -> Option<Vec<i64>> {
        Layer::gains_of(self, terms)
    }
}
