//! The quotient of a system by a symmetry: states that are alike but for a symmetry are one.
//!
//! In: a system, and a [`Symmetry`] of it, which names a representative of each state. Out: a [layer](crate::layer) whose states are
//! representatives, [traces](Quotient::lift) of the system for traces of the layer, and a [search for counterexamples](probe) to the
//! claim that it is a symmetry. What stays true: a trace that is lifted is a path of the system itself.
//!
//! From Ip, Dill, *Better verification through symmetry*, FMSD 1996; Emerson, Sistla, *Symmetry and model checking*, FMSD 1996. That a
//! function names representatives is theirs, and Stateright's `Representative`.
//!
//! # What a symmetry is
//! Let `G` be a group of permutations of the states such that for every `g` of `G`
//!
//! * S1: there is a step from `s` to `t` if and only if there is one from `g(s)` to `g(t)`, and as many steps of `s` are faults as of `g(s)`;
//! * S2: a property is true, false or undefined in `s` as in `g(s)`.
//!
//! The *orbit* of `s` is the set of all `g(s)`. A symmetry gives a function `r` with `r(s)` in the orbit of `s`. Actions may be
//! renamed by `g` in any way; in particular, S1 does not say which step of `g(s)` it is.
//!
//! # Why the quotient decides the same
//! Its initial states are `r(i)` for the initial states `i`, and from `q` it goes by `a` to `r(t)` where the system goes from `q` by `a` to `t`.
//!
//! *Lemma 1.* If the system has a path of `n` steps from an initial state to `s`, the quotient has one of `n` steps to a state of the orbit of `s`. Proof: by
//! induction on `n`. Let the path without its last step lead to `s'`, and that of the quotient to `q = g(s')`. By S1 a step leads from `q` to `g(s)`, so
//! one of the quotient leads to `r(g(s))`, which is in the orbit of `g(s)` and so of `s`. ∎
//!
//! *Lemma 2.* If the quotient has a path of `n` steps to `q`, the system has one of `n` steps from an initial state to a state of the orbit of `q`: by the
//! same induction in the other direction. ∎
//!
//! Where `r` is the same for all of an orbit, [`Quotient::lift`] is this proof as a program: from `s` it takes any step whose target has
//! the representative that comes next. Where it is not, there may be none, though the verdict is right: then lifting fails, and whoever
//! needs the trace has an error instead of it.
//!
//! *Theorem.* The quotient has a state (a deadlock, a fault) that decides a property if and only if the system has one, and at the same
//! distance: by both lemmas, S2, and S1 for deadlocks and faults. Where `r` is the same for all of an orbit, the quotient has as many states
//! as there are orbits of reachable states; otherwise more, at most as many as `G` times that. No representative need be reachable. ∎
//!
//! The number of states, edges and deadlocks is that of the quotient. The set of initial states need not be symmetric.
//!
//! # What is checked
//! Nobody can prove S1 of a program, so [`probe`] compares states of random paths with their representatives before a run,
//! and the suite `check_symmetry` of the test kit all states of a small instance. A trace that cannot be lifted shows that S1 is wrong, and one
//! whose last state does not decide its property that S2 is; callers look.
//!
//! # What does not go with it
//! Steps are not undone (`breadcrumb` needs that): a state of the quotient has predecessors by steps that end in any member of its orbit. Facts
//! about actions, exchanges, progress and components are those of single states, and are not handed on.

use crate::{
    Action, BLOCK, Batch, Block, Components, Control, Exchange, Facts, Fired, Goal, Layer, Portable, Progress,
    Property, ReplayError, Reversible, Scratch, Slot, StateId, States, Stop, System, Trace, Widen, Width,
};
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// Names a representative of the orbit of each state of one system.
pub trait Symmetry: Send + Sync {
    /// Replaces a state by a representative of its orbit. The scratch is one of the system.
    fn canonise(&self, scratch: &mut Scratch, state: &mut Vec<Slot>) -> Result<(), Unnamed>;
}

/// Why a state has no representative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// It has one, which the layout in use cannot hold.
    Widen,
    /// What is called a symmetry is wrong: how, as a clause.
    Wrong(String),
}

impl From<Widen> for Unnamed {
    fn from(Widen: Widen) -> Self {
        Unnamed::Widen
    }
}

/// Why a trace of the quotient is none of the system, or a state not like its representative: what is called a symmetry is none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asymmetry(pub String);

impl fmt::Display for Asymmetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Asymmetry {}

/// A system whose states are representatives of orbits.
pub struct Quotient<'s> {
    inner: &'s dyn System,
    symmetry: &'s dyn Symmetry,
    /// What went wrong first while a representative was named.
    trouble: OnceLock<String>,
}

impl<'s> Quotient<'s> {
    /// The quotient of a system by a symmetry of it.
    pub fn new(inner: &'s dyn System, symmetry: &'s dyn Symmetry) -> Self {
        Quotient { inner, symmetry, trouble: OnceLock::new() }
    }

    /// Why some representative could not be named, if so: the run was then cancelled.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }

    fn canonise(&self, scratch: &mut Scratch, state: &mut Vec<Slot>) -> Result<Result<(), String>, Widen> {
        match self.symmetry.canonise(scratch, state) {
            Ok(()) => Ok(Ok(())),
            Err(Unnamed::Widen) => Err(Widen),
            Err(Unnamed::Wrong(why)) => Ok(Err(why)),
        }
    }

    /// Appends the representatives of what `append` finds in the system below. `place` is the source of each in the block of `out`.
    fn represented(
        &self,
        scratch: &mut Scratch,
        out: &mut Batch,
        append: impl FnOnce(&mut Scratch, &mut Batch) -> Result<(), Widen>,
        place: impl Fn(usize) -> usize,
    ) -> Result<(), Widen> {
        let mut below = Batch::new(self.inner.width());
        if let Some(control) = out.control() {
            below = below.under(control);
        }
        append(scratch, &mut below)?;
        if let Some(stop) = below.stop() {
            out.halt(stop);
            return Ok(());
        }
        let mut state = Vec::new();
        for index in 0..below.len() {
            state.clear();
            state.extend_from_slice(below.target(index));
            if let Err(why) = self.canonise(scratch, &mut state)? {
                let _ = self.trouble.set(why);
                out.halt(Stop::Cancelled);
                return Ok(());
            }
            out.begin(place(below.source(index)));
            out.push_hashed(below.action(index), &state, self.inner.hash(scratch, &state));
        }
        for fault in below.faults() {
            out.begin(place(fault.source.into()));
            out.fault(fault.action, fault.message.clone());
        }
        let words = |word: u64| (0..BLOCK).filter(move |source| word >> source & 1 == 1).map(&place);
        out.cut_off(words(below.cut_off_sources()).fold(0, |word, source| word | 1 << source));
        out.leave_away(words(below.moved()).fold(0, |word, source| word | 1 << source));
        Ok(())
    }

    /// A trace of the system that passes through the orbits of the states of a trace of the quotient, and ends as it does. A lasso
    /// goes round its cycle until it returns to the same state, so it may get longer.
    pub fn lift(&self, trace: &Trace, control: &Control) -> Result<Result<Trace, Asymmetry>, Stop> {
        loop {
            match self.attempt(trace, control) {
                Ok(lifted) => return lifted,
                Err(Widen) => drop(self.inner.widen()),
            }
        }
    }

    fn attempt(&self, trace: &Trace, control: &Control) -> Result<Result<Result<Trace, Asymmetry>, Stop>, Widen> {
        let mut scratch = self.inner.scratch();
        let mut batch = Batch::new(self.inner.width());
        self.inner.initial(&mut scratch, &mut batch)?;
        if trace.initial as usize >= batch.len() {
            return Ok(Ok(Err(Asymmetry(ReplayError::NoSuchInitial(trace.initial).to_string()))));
        }
        let mut walk = Lifting {
            quotient: self,
            state: batch.target(trace.initial as usize).to_vec(),
            representative: Vec::new(),
            next: Vec::new(),
            batch: Batch::new(self.inner.width()).under(control),
            candidate: Vec::new(),
            actions: Vec::new(),
        };
        walk.representative.clone_from(&walk.state);
        if let Err(why) = self.canonise(&mut scratch, &mut walk.representative)? {
            return Ok(Ok(Err(Asymmetry(why))));
        }
        let faulty = trace.ends_in_fault();
        let steps = &trace.actions[..trace.len() - usize::from(faulty)];
        let start = trace.cycle().filter(|&start| start < steps.len());
        // The states in which the path was at the beginning of the cycle, and after how many steps.
        let mut heads: HashMap<Vec<Slot>, usize> = HashMap::new();
        let mut from = 0;
        loop {
            for (number, &action) in steps.iter().enumerate().skip(from) {
                if let Err(stop) = control.ask() {
                    return Ok(Err(stop));
                }
                if Some(number) == start
                    && let Some(first) = heads.insert(walk.state.clone(), walk.actions.len())
                {
                    return Ok(Ok(Ok(Trace::lasso(trace.initial, walk.actions, first))));
                }
                match walk.step(&mut scratch, action)? {
                    Ok(Ok(())) => {}
                    Ok(Err(wrong)) => return Ok(Ok(Err(wrong))),
                    Err(stop) => return Ok(Err(stop)),
                }
            }
            match start {
                Some(start) => from = start,
                None => break,
            }
        }
        if !faulty {
            return Ok(Ok(Ok(Trace::path(trace.initial, walk.actions))));
        }
        let wanted = trace.actions.last().copied();
        Ok(match walk.fault(&mut scratch, wanted)? {
            Ok(Some(action)) => Ok(Ok(Trace::path(trace.initial, walk.actions).with_fault(action))),
            Ok(None) => Ok(Err(walk.asymmetry("a state has no fault, and its representative has one"))),
            Err(stop) => Err(stop),
        })
    }
}

/// A path of the system beside one of the quotient.
struct Lifting<'q, 's> {
    quotient: &'q Quotient<'s>,
    state: Vec<Slot>,
    representative: Vec<Slot>,
    next: Vec<Slot>,
    batch: Batch,
    candidate: Vec<Slot>,
    actions: Vec<Action>,
}

impl Lifting<'_, '_> {
    fn asymmetry(&self, what: &str) -> Asymmetry {
        let inner = self.quotient.inner;
        Asymmetry(format!("{what}: {}; {}", shown(inner, &self.state), shown(inner, &self.representative)))
    }

    /// Takes a step of the quotient, and one of the system into the same orbit: the same action, if that leads there.
    fn step(&mut self, scratch: &mut Scratch, action: Action) -> Result<Result<Result<(), Asymmetry>, Stop>, Widen> {
        let quotient = self.quotient;
        if Layer::fire(quotient, scratch, &self.representative, action, &mut self.next)? != Fired::Done {
            return Ok(Ok(Err(self.asymmetry("a step of the quotient cannot be taken again"))));
        }
        self.batch.reset(quotient.inner.width());
        quotient.inner.successors(scratch, &self.state, &mut self.batch)?;
        if let Some(stop) = self.batch.stop() {
            return Ok(Err(stop));
        }
        let same = self.batch.actions().iter().position(|&found| found == action);
        for index in same.into_iter().chain(0..self.batch.len()) {
            self.candidate.clear();
            self.candidate.extend_from_slice(self.batch.target(index));
            if let Err(why) = quotient.canonise(scratch, &mut self.candidate)? {
                return Ok(Ok(Err(Asymmetry(why))));
            }
            if self.candidate == self.next {
                self.actions.push(self.batch.action(index));
                self.state.clear();
                self.state.extend_from_slice(self.batch.target(index));
                std::mem::swap(&mut self.representative, &mut self.next);
                return Ok(Ok(Ok(())));
            }
        }
        Ok(Ok(Err(self.asymmetry("a state has no step like one of its representative"))))
    }

    /// An action that is a fault of the state: this one, if it is.
    fn fault(&mut self, scratch: &mut Scratch, wanted: Option<Action>) -> Result<Result<Option<Action>, Stop>, Widen> {
        self.batch.reset(self.quotient.inner.width());
        self.quotient.inner.successors(scratch, &self.state, &mut self.batch)?;
        if let Some(stop) = self.batch.stop() {
            return Ok(Err(stop));
        }
        let faults = || self.batch.faults().iter().filter_map(|fault| fault.action);
        Ok(Ok(faults().find(|&action| Some(action) == wanted).or(faults().next())))
    }
}

impl Layer for Quotient<'_> {
    fn inner(&self) -> &dyn System {
        self.inner
    }

    fn initial(&self, scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        let current = out.current();
        self.represented(scratch, out, |scratch, below| self.inner.initial(scratch, below), |_| current)
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let current = out.current();
        self.represented(scratch, out, |scratch, below| self.inner.successors(scratch, source, below), |_| current)
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        self.represented(scratch, out, |scratch, below| self.inner.expand(scratch, block, below), |source| source)
    }

    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        let fired = self.inner.fire(scratch, source, action, target)?;
        if fired == Fired::Done
            && let Err(why) = self.canonise(scratch, target)?
        {
            let _ = self.trouble.set(why.clone());
            return Ok(Fired::Fault(why));
        }
        Ok(fired)
    }

    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        let mut target = Vec::new();
        for (source, &action) in sources.iter().zip(actions) {
            let fired = Layer::fire(self, scratch, source, action, &mut target);
            assert_eq!(fired, Ok(Fired::Done), "a step that was taken can be taken again");
            targets.push(&target);
        }
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        None
    }

    fn portable(&self) -> Option<&dyn Portable> {
        None
    }

    fn facts(&self, _: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Ok(None)
    }

    fn exchange(&self) -> Option<&dyn Exchange> {
        None
    }

    fn progress(&self) -> Option<&dyn Progress> {
        None
    }

    fn components(&self) -> Option<&dyn Components> {
        None
    }

    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// How many steps random paths of [`probe`] have.
const PATH: usize = 200;

/// Compares states on random paths of a system with their representatives, and looks at this many. Returns what is wrong with the
/// symmetry, or that nothing was found to be.
pub fn probe(
    system: &dyn System,
    symmetry: &dyn Symmetry,
    properties: &[Property],
    states: usize,
    control: &Control,
) -> Result<Result<(), Asymmetry>, Stop> {
    loop {
        match Probe::new(system, symmetry, properties, control).run(states) {
            Ok(found) => return found,
            Err(Widen) => drop(system.widen()),
        }
    }
}

struct Probe<'p> {
    system: &'p dyn System,
    symmetry: &'p dyn Symmetry,
    properties: &'p [Property],
    control: &'p Control,
    scratch: Scratch,
    /// Where random numbers are.
    random: u64,
}

/// What can be seen of a state but for a symmetry.
struct Seen {
    successors: Vec<Vec<Slot>>,
    /// Their representatives, sorted.
    representatives: Vec<Vec<Slot>>,
    /// How many of its steps are faults, and whether it is one itself.
    faults: (usize, usize),
    /// Of each property whether the state decides it, and whether it is undefined there.
    decided: Vec<(bool, bool)>,
}

/// What can be seen of a successor.
type Prospect = (usize, (usize, usize), Vec<(bool, bool)>);

/// Why a comparison was not made.
enum Unseen {
    Widen,
    Stopped(Stop),
    Wrong(String),
}

impl From<Widen> for Unseen {
    fn from(Widen: Widen) -> Self {
        Unseen::Widen
    }
}

impl From<Unnamed> for Unseen {
    fn from(why: Unnamed) -> Self {
        match why {
            Unnamed::Widen => Unseen::Widen,
            Unnamed::Wrong(why) => Unseen::Wrong(why),
        }
    }
}

impl<'p> Probe<'p> {
    fn new(
        system: &'p dyn System,
        symmetry: &'p dyn Symmetry,
        properties: &'p [Property],
        control: &'p Control,
    ) -> Self {
        Probe { system, symmetry, properties, control, scratch: system.scratch(), random: 0x5eed }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (crate::hash::mix(self.random) % end.max(1) as u64) as usize
    }

    fn run(mut self, states: usize) -> Result<Result<Result<(), Asymmetry>, Stop>, Widen> {
        let mut batch = Batch::new(self.system.width()).under(self.control);
        let mut state = Vec::new();
        let mut left = 0;
        for _ in 0..states {
            if let Err(stop) = self.control.ask() {
                return Ok(Err(stop));
            }
            batch.reset(self.system.width());
            if left == 0 {
                self.system.initial(&mut self.scratch, &mut batch)?;
                left = PATH;
            } else {
                self.system.successors(&mut self.scratch, &state, &mut batch)?;
                left -= 1;
            }
            if let Some(stop) = batch.stop() {
                return Ok(Err(stop));
            }
            if batch.is_empty() {
                left = 0;
                continue;
            }
            let chosen = self.below(batch.len());
            state.clear();
            state.extend_from_slice(batch.target(chosen));
            match self.compare(&state) {
                Ok(()) => {}
                Err(Unseen::Widen) => return Err(Widen),
                Err(Unseen::Stopped(stop)) => return Ok(Err(stop)),
                Err(Unseen::Wrong(why)) => return Ok(Ok(Err(Asymmetry(why)))),
            }
        }
        Ok(Ok(Ok(())))
    }

    fn compare(&mut self, state: &[Slot]) -> Result<(), Unseen> {
        let mut representative = state.to_vec();
        self.symmetry.canonise(&mut self.scratch, &mut representative)?;
        if representative == state {
            return Ok(());
        }
        let mut again = representative.clone();
        self.symmetry.canonise(&mut self.scratch, &mut again)?;
        let system = self.system;
        let both = |one: &[Slot], other: &[Slot]| format!("{}; {}", shown(system, one), shown(system, other));
        if again != representative {
            let what = "a representative is not its own representative";
            return Err(Unseen::Wrong(format!("{what}: {}", both(&representative, &again))));
        }
        let (one, other) = (self.look(state)?, self.look(&representative)?);
        let wrong = |what: &str| Err(Unseen::Wrong(format!("{what}: {}", both(state, &representative))));
        if one.successors.len() != other.successors.len() {
            return wrong("a state has another number of successors than its representative");
        }
        // Where an orbit has several representatives, they differ though nothing is wrong: what comes next is compared then.
        if one.representatives != other.representatives {
            let [first, second] = [&one, &other].map(|seen| self.prospects(&seen.successors));
            if first? != second? {
                return wrong("the successors of a state are not like those of its representative");
            }
        }
        if one.faults != other.faults {
            return wrong("a state has other faults than its representative");
        }
        match one.decided.iter().zip(&other.decided).position(|(one, other)| one != other) {
            None => Ok(()),
            Some(index) => wrong(&format!(
                "`{}` is not the same in a state and in its representative",
                self.properties[index].name
            )),
        }
    }

    /// Of each of these states how many successors and faults it has, and which properties it decides; sorted.
    fn prospects(&mut self, states: &[Vec<Slot>]) -> Result<Vec<Prospect>, Unseen> {
        let mut found = Vec::with_capacity(states.len());
        for state in states {
            let seen = self.look(state)?;
            found.push((seen.successors.len(), seen.faults, seen.decided));
        }
        found.sort_unstable();
        Ok(found)
    }

    fn look(&mut self, state: &[Slot]) -> Result<Seen, Unseen> {
        let width: Width = self.system.width();
        let (mut block, mut batch) = (Block::new(width), Batch::new(width).under(self.control));
        block.push(StateId::NAMELESS, state);
        self.system.expand(&mut self.scratch, &block, &mut batch)?;
        if let Some(stop) = batch.stop() {
            return Err(Unseen::Stopped(stop));
        }
        let successors: Vec<Vec<Slot>> = batch.targets().iter().map(<[Slot]>::to_vec).collect();
        let mut representatives = successors.clone();
        for state in &mut representatives {
            self.symmetry.canonise(&mut self.scratch, state)?;
        }
        representatives.sort_unstable();
        let of_steps = batch.faults().iter().filter(|fault| fault.action.is_some()).count();
        let dead = block.mask() & !batch.moved();
        let look = |property: &Property| {
            // Faults have been counted, and what reaches a bound is not compared.
            if matches!(property.goal, Goal::FaultFree) {
                return (false, false);
            }
            let found = property.goal.look(self.system, &mut self.scratch, &block, dead, batch.faults());
            (found.states & 1 == 1, found.undefined & 1 == 1 || found.unknown)
        };
        let decided = self.properties.iter().map(look).collect();
        Ok(Seen { successors, representatives, faults: (of_steps, batch.faults().len() - of_steps), decided })
    }
}

/// A state in words.
fn shown(system: &dyn System, state: &[Slot]) -> String {
    let values = system.describe().state(state);
    let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    values.join(", ")
}
