//! A check of a model, step by step: what is asked, how to look for it, and the limits.
//!
//! In: a [`Model`] and questions about it. Out: a [`ModelReport`]. Invariant: it is a
//! [`Check`](crate::Check) of the model as a system, with predicates over its own states.

use super::{Model, ModelError, ModelReport, ModelSystem, predicate};
use crate::check::{Check, CheckError};
use crate::control::OnProgress;
use crate::ends::FinalStates;
use deltamark_core::{Cancel, Goal, Limits, Listener, Property, Snapshot};
use deltamark_search::Search;
use deltamark_store::StoreSpec;
use std::sync::Arc;
use std::time::Duration;

/// Starts a check of a model: state what is asked, then [`run`](ModelCheck::run).
///
/// ```
/// use deltamark::{Model, Pack, Step};
///
/// /// Two lamps and a switch for each; the second works only while the first lamp is on.
/// struct Lamps;
///
/// #[derive(Clone, Debug, PartialEq, Pack)]
/// struct State {
///     first: bool,
///     second: bool,
/// }
///
/// #[derive(Debug, PartialEq)]
/// enum Press {
///     First,
///     Second,
/// }
///
/// impl Model for Lamps {
///     type State = State;
///     type Action = Press;
///
///     fn initial(&self) -> Vec<State> {
///         vec![State { first: false, second: false }]
///     }
///
///     fn actions(&self, _: &State, actions: &mut Vec<Press>) {
///         actions.extend([Press::First, Press::Second]);
///     }
///
///     fn next(&self, state: &mut State, press: Press) -> Step {
///         match press {
///             Press::First => state.first = !state.first,
///             Press::Second if state.first => state.second = !state.second,
///             Press::Second => return Step::Disabled,
///         }
///         Step::Taken
///     }
/// }
///
/// let report = deltamark::check(Lamps).reachable("only the second", |s| !s.first && s.second).run()?;
/// report.assert_holds();
/// let path = report.trace("only the second").expect("a goal that is reached has a trace");
/// assert!(path.actions().eq(&[Press::First, Press::Second, Press::First]));
/// assert_eq!(report.states(), 4);
/// # Ok::<(), deltamark::ModelError>(())
/// ```
pub fn check<M: Model>(model: M) -> ModelCheck<M> {
    ModelCheck {
        model,
        properties: Vec::new(),
        finals: Vec::new(),
        store: StoreSpec::default().name,
        search: Search::default(),
        threads: None,
        explore_all: false,
        limits: Limits::default(),
        cancel: Cancel::new(),
        listener: Arc::new(deltamark_core::Silent),
    }
}

/// A model and what is asked of it. Made by [`check`].
///
/// Whatever else is asked, the model is checked for faults too, because a step that
/// faults leads to no state and could hide others. With nothing asked, it is checked
/// for deadlocks and faults.
///
/// ```
/// # use deltamark::{Model, Step};
/// # struct Counter;
/// # impl Model for Counter {
/// #     type State = (u32,);
/// #     type Action = &'static str;
/// #     fn initial(&self) -> Vec<(u32,)> { vec![(0,)] }
/// #     fn actions(&self, _: &(u32,), actions: &mut Vec<&'static str>) { actions.push("tick"); }
/// #     fn next(&self, state: &mut (u32,), _: &'static str) -> Step {
/// #         state.0 += 1;
/// #         (state.0 < 1000).into()
/// #     }
/// # }
/// use std::time::Duration;
///
/// let report = deltamark::check(Counter)
///     .deadlock_free()
///     .ends_in(|state| state.0 == 999)
///     .store("tree")
///     .threads(2)
///     .memory(256 << 20)
///     .time(Duration::from_secs(60))
///     .on_progress(|now| println!("{} states in {:?}", now.states, now.elapsed))
///     .run()?;
/// report.assert_holds();
/// assert_eq!((report.states(), report.deadlocks()), (1000, 1));
/// # Ok::<(), deltamark::ModelError>(())
/// ```
#[must_use = "nothing happens before `run`"]
pub struct ModelCheck<M> {
    model: M,
    properties: Vec<Property>,
    finals: Vec<FinalStates>,
    store: String,
    search: Search,
    threads: Option<usize>,
    explore_all: bool,
    limits: Limits,
    cancel: Cancel,
    listener: Arc<dyn Listener>,
}

impl<M: Model> ModelCheck<M>
where
    M::State: 'static,
{
    /// Asks that `holds` is true in every reachable state.
    pub fn invariant(self, name: &str, holds: impl Fn(&M::State) -> bool + Send + Sync + 'static) -> Self {
        self.property(name, Goal::Invariant(predicate(holds)))
    }

    /// Asks that `holds` is true in some reachable state.
    pub fn reachable(self, name: &str, holds: impl Fn(&M::State) -> bool + Send + Sync + 'static) -> Self {
        self.property(name, Goal::Reachable(predicate(holds)))
    }

    /// Asks that every reachable state has a successor. Its name is `deadlock-free`.
    pub fn deadlock_free(mut self) -> Self {
        self.properties.push(Property::deadlock_free());
        self
    }

    /// Allows a run to end in states for which `is_final` is true: a deadlock there does not violate
    /// deadlock freedom. May be given several times.
    pub fn ends_in(mut self, is_final: impl Fn(&M::State) -> bool + Send + Sync + 'static) -> Self {
        self.finals.push(FinalStates { text: "it is final".into(), predicate: predicate(is_final) });
        self
    }

    fn property(mut self, name: &str, goal: Goal) -> Self {
        self.properties.push(Property { name: name.into(), text: name.into(), goal });
        self
    }

    /// Uses this store, by its name on the command line, with options if need be:
    /// `NAME[:option=value,…]`. The default is `auto`, which chooses one.
    pub fn store(mut self, spec: &str) -> Self {
        self.store = spec.into();
        self
    }

    /// Uses this search; the default is breadth-first. A sweep needs a progress measure, which
    /// models in Rust do not have:
    ///
    /// ```compile_fail
    /// # use deltamark::Strategy;
    /// # fn sweep(check: deltamark::ModelCheck<impl deltamark::Model>) {
    /// check.search(Strategy::Sweep).run();
    /// # }
    /// ```
    pub fn search(mut self, search: Search) -> Self {
        self.search = search;
        self
    }

    /// Searches with this number of threads. The default is as many as the machine runs at once,
    /// where store and search allow it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Goes on when every property has its answer, so that the counts are of the whole
    /// state space.
    pub fn explore_all(mut self) -> Self {
        self.explore_all = true;
        self
    }

    /// Lets the process hold at most this many bytes. The default is nine tenths of what the machine
    /// has available.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.limits.memory = Some(bytes);
        self
    }

    /// Stops after this time.
    pub fn time(mut self, time: Duration) -> Self {
        self.limits.time = Some(time);
        self
    }

    /// Stops at this many states.
    pub fn max_states(mut self, states: u64) -> Self {
        self.limits.states = Some(states);
        self
    }

    /// Looks no further than this from the initial states.
    pub fn depth(mut self, depth: u64) -> Self {
        self.limits.depth = Some(depth);
        self
    }

    /// Stops when this flag is set.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Sends this listener the events of the run: progress, answers, changes of the layout.
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = listener;
        self
    }

    /// Calls this function several times a second with the progress of the run: a
    /// [`listener`](Self::listener) for progress alone, which it replaces.
    pub fn on_progress(self, show: impl Fn(&Snapshot) + Send + Sync + 'static) -> Self {
        self.listener(Arc::new(OnProgress(show)))
    }

    /// Runs the check.
    pub fn run(mut self) -> Result<ModelReport<M>, ModelError> {
        if self.properties.is_empty() {
            self.properties.push(Property::deadlock_free());
        }
        self.properties.push(Property::fault_free());
        for (index, property) in self.properties.iter().enumerate() {
            if self.properties[..index].iter().any(|earlier| earlier.name == property.name) {
                return Err(ModelError::SameName(property.name.clone()));
            }
        }
        let spec: StoreSpec = self.store.parse().map_err(ModelError::Store)?;
        // Final states are of no concern to whoever does not ask for deadlock freedom.
        if !self.properties.iter().any(|property| matches!(property.goal, Goal::DeadlockFree)) {
            self.finals.clear();
        }
        let system = ModelSystem::new(self.model)?;
        let mut check = Check::new(&system);
        (check.properties, check.finals, check.threads) = (self.properties, self.finals, self.threads);
        let check = check.store(spec).search(self.search).explore_all(self.explore_all);
        let check = check.limits(self.limits).cancel(self.cancel).listener(self.listener);
        let report = check.make(None).map_err(|error| match error {
            CheckError::Store(error) => ModelError::Store(error),
            error => ModelError::Limit(error),
        })?;
        Ok(ModelReport::new(system, report))
    }
}
