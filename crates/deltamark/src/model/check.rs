//! A check of a model, step by step: what is asked, how to look for it, and the limits.
//!
//! In: a [`Model`] and questions about it. Out: a [`ModelReport`]. Invariant: it is a
//! [`Check`](crate::Check) of the model as a system, with predicates over its own states.

use super::{Model, ModelError, ModelReport, ModelSystem, predicate};
use crate::check::{Check, CheckError};
use crate::control::OnProgress;
use crate::ends::FinalStates;
use crate::temporal::atoms::Atom;
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
        atoms: Vec::new(),
        formulas: Vec::new(),
        finals: Vec::new(),
        store: StoreSpec::default().name,
        search: Search::default(),
        threads: None,
        explore_all: false,
        symmetry: false,
        limits: Limits::default(),
        cancel: Cancel::new(),
        listener: Arc::new(deltamark_core::Silent),
    }
}

/// What an atom of formulas is true of.
type Closure<S> = Arc<dyn Fn(&S) -> bool + Send + Sync>;

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
pub struct ModelCheck<M: Model> {
    model: M,
    properties: Vec<Property>,
    /// What formulas may speak of, by name.
    atoms: Vec<(String, Closure<M::State>)>,
    /// Names and formulas of LTL.
    formulas: Vec<(String, String)>,
    finals: Vec<FinalStates>,
    store: String,
    search: Search,
    threads: Option<usize>,
    explore_all: bool,
    symmetry: bool,
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

    /// Gives a statement about states a name, for the formulas of [`ltl`](Self::ltl).
    pub fn atom(mut self, name: &str, holds: impl Fn(&M::State) -> bool + Send + Sync + 'static) -> Self {
        self.atoms.push((name.into(), Arc::new(holds)));
        self
    }

    /// Asks that a formula of linear temporal logic is true on every infinite path; the last state of a path that ends
    /// repeats. It speaks of [atoms](Self::atom), given before or after, and of `deadlock` and `initial`; the operators
    /// are those of the command line (docs/temporal.md). A violation is shown by a path into a cycle, cycles included
    /// that a search for states alone would miss.
    ///
    /// ```
    /// # use deltamark::{Model, Pack, Step};
    /// /// A customer who may be served, and may be passed over.
    /// struct Counter;
    ///
    /// #[derive(Clone, Debug, PartialEq, Pack)]
    /// enum Customer {
    ///     Away,
    ///     Waiting,
    ///     Served,
    /// }
    ///
    /// impl Model for Counter {
    ///     type State = (Customer,);
    ///     type Action = &'static str;
    ///
    ///     fn initial(&self) -> Vec<(Customer,)> {
    ///         vec![(Customer::Away,)]
    ///     }
    ///
    ///     fn actions(&self, _: &(Customer,), actions: &mut Vec<&'static str>) {
    ///         actions.extend(["come", "serve", "serve another", "leave"]);
    ///     }
    ///
    ///     fn next(&self, state: &mut (Customer,), action: &'static str) -> Step {
    ///         state.0 = match (&state.0, action) {
    ///             (Customer::Away, "come") => Customer::Waiting,
    ///             (Customer::Waiting, "serve") => Customer::Served,
    ///             (Customer::Waiting, "serve another") => Customer::Waiting,
    ///             (Customer::Served, "leave") => Customer::Away,
    ///             _ => return Step::Disabled,
    ///         };
    ///         Step::Taken
    ///     }
    /// }
    ///
    /// let report = deltamark::check(Counter)
    ///     .atom("waiting", |state| state.0 == Customer::Waiting)
    ///     .atom("served", |state| state.0 == Customer::Served)
    ///     .ltl("whoever waits is served", "G (waiting -> F served)")
    ///     .ltl("unless passed over for ever", "F G waiting or G (waiting -> F served)")
    ///     .eventually("somebody waits", |state| state.0 == Customer::Waiting)
    ///     .always_eventually("somebody waits again", |state| state.0 == Customer::Waiting)
    ///     .always_eventually("somebody leaves again", |state| state.0 == Customer::Away)
    ///     .run()?;
    /// assert_eq!(report.verdict("whoever waits is served").expect("it was asked").word(), "violated");
    /// let path = report.trace("whoever waits is served").expect("a violation has a trace");
    /// assert_eq!(path.actions().last(), Some(&"serve another"));
    /// assert_eq!(report.verdict("unless passed over for ever").expect("it was asked").word(), "holds");
    /// assert_eq!(report.verdict("somebody waits").expect("it was asked").word(), "holds");
    /// assert_eq!(report.verdict("somebody waits again").expect("it was asked").word(), "holds");
    /// assert_eq!(report.verdict("somebody leaves again").expect("it was asked").word(), "violated");
    /// # Ok::<(), deltamark::ModelError>(())
    /// ```
    pub fn ltl(mut self, name: &str, formula: &str) -> Self {
        self.formulas.push((name.into(), formula.into()));
        self
    }

    /// Asks that on every path `holds` is true some day.
    pub fn eventually(self, name: &str, holds: impl Fn(&M::State) -> bool + Send + Sync + 'static) -> Self {
        let atom = format!("eventually {name}");
        let formula = format!("F {}", deltamark_logic::quote(&atom));
        self.atom(&atom, holds).ltl(name, &formula)
    }

    /// Asks that on every path `holds` is true again and again, or in the last state of a path that ends.
    pub fn always_eventually(self, name: &str, holds: impl Fn(&M::State) -> bool + Send + Sync + 'static) -> Self {
        let atom = format!("always eventually {name}");
        let formula = format!("G F {}", deltamark_logic::quote(&atom));
        self.atom(&atom, holds).ltl(name, &formula)
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

    /// Explores, of all states that differ by a symmetry of the model alone, the one that
    /// [`Model::canonical`] names: the *quotient*. Verdicts stay the same, traces are those of the model and as short as before, and the
    /// counts of the [report](ModelReport::states) are those of the quotient.
    ///
    /// Properties must be symmetric too: `s.at[0] != Critical` is not, and may get a wrong answer. States of random paths are compared
    /// with those that stand for them before the run, and where they differ in a property or in what follows, the run ends with
    /// [`ModelError::Asymmetric`]. That finds coarse mistakes and proves nothing; the suite `check_symmetry` of the crate
    /// `deltamark-testkit` compares all states of a small instance.
    ///
    /// ```
    /// use deltamark::{Model, Pack, Step, Symmetric};
    ///
    /// /// Ten alike workers take jobs from a pile of fifteen.
    /// struct Workers;
    ///
    /// #[derive(Clone, Debug, Pack, Symmetric)]
    /// #[symmetric(workers = 10)]
    /// struct State {
    ///     pile: u8,
    ///     #[symmetric(each = workers)]
    ///     busy: [bool; 10],
    /// }
    ///
    /// impl Model for Workers {
    ///     type State = State;
    ///     type Action = usize; // the worker who begins or ends
    ///
    ///     fn initial(&self) -> Vec<State> {
    ///         vec![State { pile: 15, busy: [false; 10] }]
    ///     }
    ///
    ///     fn actions(&self, _: &State, actions: &mut Vec<usize>) {
    ///         actions.extend(0..10);
    ///     }
    ///
    ///     fn next(&self, s: &mut State, who: usize) -> Step {
    ///         match (s.busy[who], s.pile) {
    ///             (false, 0) => return Step::Disabled,
    ///             (false, _) => s.pile -= 1,
    ///             (true, _) => {}
    ///         }
    ///         s.busy[who] = !s.busy[who];
    ///         Step::Taken
    ///     }
    ///
    ///     fn canonical(&self, state: &mut State) {
    ///         state.canonise();
    ///     }
    /// }
    ///
    /// let check = || deltamark::check(Workers).reachable("all at work", |s| s.busy == [true; 10]).explore_all();
    /// let (full, quotient) = (check().run()?, check().symmetry().run()?);
    /// assert_eq!((full.states(), quotient.states()), (11_264, 121));
    /// let steps = |report: &deltamark::ModelReport<_>| report.trace("all at work").map(|path| path.steps.len());
    /// assert_eq!((steps(&full), steps(&quotient)), (Some(10), Some(10)));
    /// # Ok::<(), deltamark::ModelError>(())
    /// ```
    pub fn symmetry(mut self) -> Self {
        self.symmetry = true;
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
        if self.properties.is_empty() && self.formulas.is_empty() {
            self.properties.push(Property::deadlock_free());
        }
        self.properties.push(Property::fault_free());
        let formulas = self.formulas.iter().map(|(name, _)| name.as_str());
        let names: Vec<&str> = self.properties.iter().map(|property| property.name.as_str()).chain(formulas).collect();
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(ModelError::SameName((*name).into()));
            }
        }
        let spec: StoreSpec = self.store.parse().map_err(ModelError::Store)?;
        // Final states are of no concern to whoever does not ask for deadlock freedom.
        if !self.properties.iter().any(|property| matches!(property.goal, Goal::DeadlockFree)) {
            self.finals.clear();
        }
        let system = ModelSystem::new(self.model)?;
        let mut check = Check::new(&system);
        for (name, text) in self.formulas {
            let wrong = |message: String| ModelError::Formula { name: name.clone(), message };
            let (pool, path, atoms) = deltamark_logic::temporal::path_formula(&text)
                .map_err(|found| wrong(found.first().map_or(String::new(), |first| first.message.clone())))?;
            let mut list = Vec::with_capacity(atoms.len());
            for atom in atoms {
                let known =
                    self.atoms.iter().find(|(known, _)| *known == atom || deltamark_logic::quote(known) == atom);
                list.push(match known {
                    Some((known, holds)) => {
                        let holds = Arc::clone(holds);
                        let predicate = predicate(move |state: &M::State| holds(state));
                        // It may panic.
                        Atom::Predicate { name: known.clone(), predicate, may_fail: true }
                    }
                    None if atom == "deadlock" => Atom::Deadlock,
                    None => return Err(wrong(format!("there is no atom `{atom}`"))),
                });
            }
            check = check.path_formula(name, text, (&pool, path), list);
        }
        let formulas = std::mem::take(&mut check.formulas);
        // Formulas come after all others.
        let states = self.properties.len();
        (check.properties, check.finals, check.threads) = (self.properties, self.finals, self.threads);
        check.formulas = (formulas.0, formulas.1.into_iter().map(|place| place + states).collect());
        let check = check.store(spec).search(self.search).explore_all(self.explore_all);
        let mut check = check.limits(self.limits).cancel(self.cancel).listener(self.listener);
        if self.symmetry {
            check = check.symmetry(&system);
        }
        let report = check.make(None).map_err(|error| match error {
            CheckError::Store(error) => ModelError::Store(error),
            CheckError::Asymmetric(why) => ModelError::Asymmetric(why),
            error => ModelError::Limit(error),
        })?;
        Ok(ModelReport::new(system, report))
    }
}
