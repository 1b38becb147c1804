//! A plan: one or several runs whose outcomes make one report.
//!
//! In: runs, each over a system and with some of the properties that were asked. Out: a [`Report`].
//! What stays true: answers come in the order in which they were asked, whichever run gave them; every
//! trace was replayed and put into words after the store of its run was gone; and where runs differ,
//! the report says what is worth less.
//!
//! ```text
//! properties ─┬─▶ run over the model ───────────────▶ Ran ─┐
//!             ├─▶ run over a layer of the model ────▶ Ran ─┼─▶ Report
//!             └─▶ …                                        ┘
//! ```
//!
//! State properties share one run. A property that needs another system (a product with an automaton,
//! say) gets a run of its own, over a [layer](deltamark_core::Layer).
//!
//! # How outcomes merge
//! | | |
//! |---|---|
//! | counts of work: states, edges, expanded, widenings, time, bytes of stores | added: what two runs visit was visited twice |
//! | extents: depth, deadlocks, the peak of the frontier, tables | the largest |
//! | why the run ended | the worst: the user, then limits, then having all answers, then having seen all |
//! | what a store may have missed | that any of them missed one, at most |
//! | the search | one that finds no shortest paths, if there is one |
//!
//! What all answers come to is worked out from them ([`Report::overall`]): one that is violated
//! outweighs all, and one without a certain answer all that hold.

use crate::check::CheckError;
use crate::load::ModelInfo;
use crate::report::{Answer, PropertyKind, Report};
use crate::run::{Ran, Run};
use crate::story::Story;
use deltamark_core::{Bytes, Control, Guarantee, PropertyOutcome, Statistics, Stop, System};
use std::time::{Duration, Instant};

/// Runs to be made.
pub(crate) struct Plan<'r> {
    runs: Vec<Planned<'r>>,
}

/// One run of a plan.
struct Planned<'r> {
    system: &'r dyn System,
    /// Of each property of the run its place among all that were asked, and what it asks for.
    asked: Vec<(usize, PropertyKind)>,
    run: Box<dyn Run + 'r>,
}

/// What is known beside the runs.
pub(crate) struct Setting {
    pub model: ModelInfo,
    pub control: Control,
    /// The memory limit, given or not.
    pub memory_limit: Option<u64>,
    /// When it all began.
    pub since: Instant,
    pub notes: Vec<String>,
}

impl<'r> Plan<'r> {
    /// A plan without runs.
    pub fn new() -> Self {
        Plan { runs: Vec::new() }
    }

    /// A plan of one run, which answers all that was asked.
    pub fn single(system: &'r dyn System, kinds: Vec<PropertyKind>, run: impl Run + 'r) -> Self {
        Plan::new().and(system, kinds.into_iter().enumerate().collect(), run)
    }

    /// The same and one more run, over this system. `asked` lists for each of its properties the place among all that were
    /// asked, and what it asks for.
    pub fn and(mut self, system: &'r dyn System, asked: Vec<(usize, PropertyKind)>, run: impl Run + 'r) -> Self {
        self.runs.push(Planned { system, asked, run: Box::new(run) });
        self
    }

    /// Makes all runs, one after the other. One whose limits leave it no time ends at once, and says so.
    pub fn make(self, setting: Setting) -> Result<Report, CheckError> {
        let Setting { model, control, memory_limit, since, notes } = setting;
        let mut answers: Vec<(usize, Answer)> = Vec::new();
        let mut all: Option<Ran> = None;
        let mut tables = Bytes::new();
        let mut telling = None;
        for Planned { system, asked, run } in self.runs {
            let mut ran = run.make(system, &control)?;
            let telling = telling.get_or_insert_with(|| with_grace(&control));
            let held = system.tables();
            if held.total() > tables.total() {
                tables = held;
            }
            let found = std::mem::take(&mut ran.outcome.properties);
            assert_eq!(found.len(), asked.len(), "a run answers every property that it was given");
            for ((place, kind), found) in asked.into_iter().zip(found) {
                answers.push((place, answer(system, kind, found, telling)?));
            }
            all = Some(match all {
                Some(before) => merged(before, ran),
                None => ran,
            });
        }
        answers.sort_by_key(|(place, _)| *place);
        let blank = Report::blank(model, memory_limit, since);
        let Some(Ran { outcome, store, choice, search, growth, sweep, reduction, graph, route }) = all else {
            return Ok(Report { notes, ..blank });
        };
        Ok(Report {
            answers: answers.into_iter().map(|(_, answer)| answer).collect(),
            stopped_by: outcome.stopped_by,
            statistics: outcome.statistics,
            store,
            choice,
            guarantee: outcome.guarantee,
            warning: outcome.warning,
            store_bytes: outcome.store_bytes,
            tables,
            search,
            growth,
            sweep,
            reduction,
            graph,
            route,
            notes,
            ..blank
        })
    }
}

/// How long traces that were found are put into words once the time is over, all of them together.
const GRACE: Duration = Duration::from_millis(500);

/// The same control with some time left: a run that ends by its limit on time has just used it up.
fn with_grace(control: &Control) -> Control {
    let until = control.deadline.map(|end| (control.clock)().map_or(end, |now| now.max(end)));
    Control { deadline: until.and_then(|until| until.checked_add(GRACE)), ..control.clone() }
}

/// An answer, its trace replayed and put into words, if there is time for that.
fn answer(
    system: &dyn System,
    kind: PropertyKind,
    found: PropertyOutcome,
    control: &Control,
) -> Result<Answer, CheckError> {
    let PropertyOutcome { name, text, verdict, untraced, probed } = found;
    let story = match verdict.trace().map(|trace| Story::tell_under(system, trace, control)).transpose() {
        Ok(story) => story.transpose(),
        Err(error) => return Err(CheckError::Replay { property: name, error }),
    };
    let (story, untold) = match story {
        Ok(story) => (story, None),
        Err(stop) => (None, Some(stop)),
    };
    Ok(Answer { kind, name, text, verdict, story, untraced: untraced.or(untold), probed })
}

/// Two runs as one, but for their answers.
pub(crate) fn merged(one: Ran, two: Ran) -> Ran {
    let (mut outcome, other) = (one.outcome, two.outcome);
    outcome.stopped_by = worse(outcome.stopped_by, other.stopped_by);
    outcome.statistics = sum(outcome.statistics, &other.statistics);
    outcome.store_bytes.merge(&other.store_bytes);
    outcome.guarantee = weaker(outcome.guarantee, other.guarantee);
    outcome.warning = match (outcome.warning, other.warning) {
        (Some(one), Some(two)) if one != two => Some(format!("{one}; {two}")),
        (one, two) => one.or(two),
    };
    Ran {
        outcome,
        store: one.store,
        choice: one.choice.or(two.choice),
        search: if two.search.is_shortest() { one.search } else { two.search },
        growth: one.growth.or(two.growth),
        sweep: one.sweep.or(two.sweep),
        reduction: one.reduction.or(two.reduction),
        graph: one.graph.or(two.graph),
        route: two.route.or(one.route),
    }
}

/// The worse of two reasons; of two that are alike, the first.
fn worse(one: Option<Stop>, two: Option<Stop>) -> Option<Stop> {
    let rank = |stop: Option<Stop>| match stop {
        None => 0,
        Some(Stop::Answered) => 1,
        Some(Stop::Cancelled) => 3,
        // Limits, those that are yet to come among them.
        Some(_) => 2,
    };
    if rank(two) > rank(one) { two } else { one }
}

/// What both together may have missed.
fn weaker(one: Guarantee, two: Guarantee) -> Guarantee {
    match (one, two) {
        (Guarantee::Exact, other) | (other, Guarantee::Exact) => other,
        (Guarantee::Omission(one), Guarantee::Omission(two)) => Guarantee::Omission((one + two).min(1.0)),
    }
}

fn sum(one: Statistics, two: &Statistics) -> Statistics {
    Statistics {
        states: one.states + two.states,
        edges: one.edges + two.edges,
        left_out: one.left_out + two.left_out,
        deadlocks: one.deadlocks.max(two.deadlocks),
        depth: one.depth.max(two.depth),
        expanded: one.expanded + two.expanded,
        again: one.again + two.again,
        widenings: one.widenings + two.widenings,
        frontier_peak_bytes: one.frontier_peak_bytes.max(two.frontier_peak_bytes),
        search_time: one.search_time + two.search_time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Check, compiled};
    use crate::control::control;
    use crate::report::Overall;
    use crate::run::store::OverStore;
    use deltamark_core::{
        Action, Again, Cancel, Layer, Limits, Outcome, Property, Scratch, Silent, Slot, Trace, Verdict,
    };
    use deltamark_nets::NetSystem;
    use deltamark_search::{Search, Strategy};
    use deltamark_store::StoreSpec;
    use std::sync::Arc;
    use std::time::Duration;

    fn net(text: &str) -> NetSystem {
        NetSystem::new(deltamark_nets::tina::parse(text).expect("a net"))
    }

    /// Goes round for ever, until it is left.
    fn ring() -> NetSystem {
        net("pl a (1)\ntr t0 a -> b\ntr t1 b -> a\ntr leave b -> c\n")
    }

    fn setting(limits: Limits) -> Setting {
        let since = Instant::now();
        let (control, memory_limit) = control(limits, Cancel::new(), Arc::new(Silent), since).expect("limits");
        Setting { model: ModelInfo::code(), control, memory_limit, since, notes: vec!["a note".into()] }
    }

    fn over<'r>(system: &dyn System, properties: &[(bool, &str)]) -> OverStore<'r> {
        let property = |&(reachable, text): &(bool, &str)| {
            let goal = Box::new(compiled("test", text, system).expect("an expression"));
            let goal =
                if reachable { deltamark_core::Goal::Reachable(goal) } else { deltamark_core::Goal::Invariant(goal) };
            Property { name: text.into(), text: text.into(), goal }
        };
        OverStore {
            properties: properties.iter().map(property).collect(),
            explore_all: true,
            ..OverStore::new(StoreSpec::named("plain"), Search::Bfs)
        }
    }

    /// A run whose end is known.
    struct Known(Ran);

    impl Run for Known {
        fn make(self: Box<Self>, _: &dyn System, _: &Control) -> Result<Ran, CheckError> {
            Ok(self.0)
        }
    }

    fn known(verdicts: &[Verdict], stopped_by: Option<Stop>) -> Ran {
        let found = |(number, verdict): (usize, &Verdict)| PropertyOutcome {
            name: number.to_string(),
            text: String::new(),
            verdict: verdict.clone(),
            untraced: None,
            probed: false,
        };
        Ran {
            outcome: Outcome {
                properties: verdicts.iter().enumerate().map(found).collect(),
                stopped_by,
                statistics: Statistics::default(),
                store_bytes: Bytes::new(),
                guarantee: Guarantee::Exact,
                warning: None,
            },
            store: StoreSpec::named("plain"),
            choice: None,
            search: Strategy::default(),
            growth: None,
            sweep: None,
            reduction: None,
            graph: None,
            route: None,
        }
    }

    /// The same net, in which one transition cannot fire.
    struct Without<'s>(&'s dyn System, Action);

    impl Layer for Without<'_> {
        fn inner(&self) -> &dyn System {
            self.0
        }

        fn successors(
            &self,
            scratch: &mut Scratch,
            source: &[Slot],
            out: &mut deltamark_core::Batch,
        ) -> Result<(), deltamark_core::Widen> {
            self.0.successors(scratch, source, out)?;
            out.retain(|action| action != self.1);
            Ok(())
        }

        fn expand(
            &self,
            scratch: &mut Scratch,
            block: &deltamark_core::Block,
            out: &mut deltamark_core::Batch,
        ) -> Result<(), deltamark_core::Widen> {
            self.0.expand(scratch, block, out)?;
            out.retain(|action| action != self.1);
            Ok(())
        }

        fn facts(&self, _: &Control) -> Result<Option<Box<dyn deltamark_core::Facts + '_>>, Stop> {
            Ok(None)
        }

        fn exchange(&self) -> Option<&dyn deltamark_core::Exchange> {
            None
        }

        fn reversible(&self) -> Option<&dyn deltamark_core::Reversible> {
            None
        }
    }

    #[test]
    fn runs_over_a_model_and_over_a_layer_make_one_report() {
        let model = ring();
        let layer = Without(&model, Action(2));
        let run = |system: &dyn System, asked: &[(bool, &str)]| {
            let kinds = vec![PropertyKind::Invariant; asked.len()];
            Plan::single(system, kinds, over(system, asked)).make(setting(Limits::default())).expect("a report")
        };
        let [of_model, of_layer] = [&[(true, "c == 1"), (false, "a + b == 1")][..], &[(true, "c == 1")][..]];
        let (one, two) = (run(&model, of_model), run(&layer, of_layer));
        let both = Plan::new()
            .and(&model, vec![(2, PropertyKind::Reachable), (0, PropertyKind::Invariant)], over(&model, of_model))
            .and(&layer, vec![(1, PropertyKind::Reachable)], over(&layer, of_layer))
            .make(setting(Limits::default()))
            .expect("a report");
        let told: Vec<(PropertyKind, &str, &str, usize)> = both
            .answers
            .iter()
            .map(|answer| {
                let steps = answer.story.as_ref().map_or(0, Story::len);
                (answer.kind, answer.name.as_str(), answer.verdict.word(), steps)
            })
            .collect();
        let expected = [
            (PropertyKind::Invariant, "a + b == 1", "violated", 2),
            (PropertyKind::Reachable, "c == 1", "violated", 0),
            (PropertyKind::Reachable, "c == 1", "holds", 2),
        ];
        assert_eq!(told, expected);
        let counts = |report: &Report| (report.statistics.states, report.statistics.edges, report.statistics.expanded);
        assert_eq!((counts(&one), counts(&two), counts(&both)), ((3, 3, 3), (2, 2, 2), (5, 5, 5)));
        assert_eq!((both.statistics.deadlocks, both.statistics.depth), (1, 2));
        assert_eq!(both.store_bytes.total(), one.store_bytes.total() + two.store_bytes.total());
        assert_eq!((both.stopped_by, both.overall()), (None, Overall::Violated));
        assert_eq!(both.notes, ["a note"]);
    }

    #[test]
    fn a_limit_of_one_run_shows_in_the_whole_and_leaves_the_answers_of_others() {
        let (large, small) = (net("tr more -> a\n"), ring());
        let plan = Plan::new().and(&large, vec![(1, PropertyKind::Invariant)], over(&large, &[(false, "a >= 0")])).and(
            &small,
            vec![(0, PropertyKind::Invariant)],
            over(&small, &[(false, "a <= 1")]),
        );
        let report = plan.make(setting(Limits { states: Some(10), ..Limits::default() })).expect("a report");
        let words: Vec<&str> = report.answers.iter().map(|answer| answer.verdict.word()).collect();
        assert_eq!((words, report.stopped_by), (vec!["holds", "unknown"], Some(Stop::States)));
        assert_eq!((report.statistics.states, report.overall()), (13, Overall::NoAnswer));
        assert!(report.growth.is_some(), "what grows in one of the runs is named");
    }

    #[test]
    fn a_user_who_interrupts_the_first_run_ends_all() {
        let (one, two) = (ring(), ring());
        let plan = Plan::new().and(&one, vec![(0, PropertyKind::Invariant)], over(&one, &[(false, "a <= 1")])).and(
            &two,
            vec![(1, PropertyKind::Invariant)],
            over(&two, &[(false, "a <= 1")]),
        );
        let setting = setting(Limits::default());
        setting.control.cancel.cancel();
        let report = plan.make(setting).expect("a report");
        assert!(report.answers.iter().all(|answer| matches!(answer.verdict, Verdict::Unknown)));
        assert_eq!((report.answers.len(), report.stopped_by), (2, Some(Stop::Cancelled)));
        assert_eq!(report.overall(), Overall::NoAnswer);
    }

    #[test]
    fn the_worst_honest_answer_wins() {
        use Verdict::{Holds, NoViolationFound, Unknown, Violated};
        const ALL: Option<Stop> = None;
        const ANSWERED: Option<Stop> = Some(Stop::Answered);
        const TIME: Option<Stop> = Some(Stop::Time);
        const MEMORY: Option<Stop> = Some(Stop::Memory);
        const USER: Option<Stop> = Some(Stop::Cancelled);
        type Case = ((Verdict, Option<Stop>), (Verdict, Option<Stop>), Option<Stop>, Overall);
        let cases: [Case; 11] = [
            ((Holds(None), ALL), (Holds(None), ALL), ALL, Overall::Hold),
            ((Holds(None), ALL), (Holds(None), ANSWERED), ANSWERED, Overall::Hold),
            ((Holds(None), ANSWERED), (Holds(None), ALL), ANSWERED, Overall::Hold),
            ((Unknown, TIME), (Holds(None), ALL), TIME, Overall::NoAnswer),
            ((Holds(None), ALL), (Unknown, TIME), TIME, Overall::NoAnswer),
            ((Unknown, TIME), (Unknown, MEMORY), TIME, Overall::NoAnswer),
            ((Unknown, MEMORY), (Unknown, USER), USER, Overall::NoAnswer),
            ((Unknown, USER), (Unknown, TIME), USER, Overall::NoAnswer),
            ((NoViolationFound(0.1), ALL), (Holds(None), ALL), ALL, Overall::NoAnswer),
            ((Violated(None, None), ANSWERED), (Unknown, TIME), TIME, Overall::Violated),
            ((Unknown, MEMORY), (Violated(None, None), ALL), MEMORY, Overall::Violated),
        ];
        let system = ring();
        for ((one, first), (two, second), stopped_by, overall) in cases {
            let report = Plan::new()
                .and(&system, vec![(0, PropertyKind::Invariant)], Known(known(std::slice::from_ref(&one), first)))
                .and(&system, vec![(1, PropertyKind::Invariant)], Known(known(std::slice::from_ref(&two), second)))
                .make(setting(Limits::default()))
                .expect("a report");
            assert_eq!((report.stopped_by, report.overall()), (stopped_by, overall), "{one:?} and {two:?}");
        }
    }

    #[test]
    fn figures_are_added_and_extents_are_not() {
        let figures = |number: u64, search: Strategy, probability: Option<f64>| {
            let mut ran = known(&[], None);
            ran.outcome.statistics = Statistics {
                states: number,
                edges: 10 * number,
                left_out: number,
                deadlocks: number,
                depth: number,
                expanded: number,
                again: Again::Counted(number),
                widenings: number,
                frontier_peak_bytes: number,
                search_time: Duration::from_secs(number),
            };
            ran.outcome.store_bytes = Bytes::new().with("table", number);
            ran.outcome.guarantee = probability.map_or(Guarantee::Exact, Guarantee::Omission);
            ran.outcome.warning = probability.map(|_| format!("warning {number}"));
            ran.search = search;
            ran
        };
        let cases = [
            (
                (3, Strategy::from(Search::Bfs), None),
                (4, Strategy::from(Search::Bfs), None),
                "bfs",
                Guarantee::Exact,
                None,
            ),
            (
                (4, Search::Bfs.into(), Some(0.25)),
                (3, Search::Dfs.into(), None),
                "dfs",
                Guarantee::Omission(0.25),
                Some("warning 4"),
            ),
            (
                (3, Search::Dfs.into(), Some(0.75)),
                (4, Search::Bfs.into(), Some(0.5)),
                "dfs",
                Guarantee::Omission(1.0),
                Some("warning 3; warning 4"),
            ),
        ];
        for ((one, first, p), (two, second, q), search, guarantee, warning) in cases {
            let Ran { outcome, search: found, .. } = merged(figures(one, first, p), figures(two, second, q));
            let Statistics { states, edges, left_out, expanded, widenings, again, .. } = outcome.statistics;
            assert_eq!((states, edges, left_out, expanded, widenings), (7, 70, 7, 7, 7));
            assert_eq!(again, Again::Counted(7));
            let Statistics { deadlocks, depth, frontier_peak_bytes, search_time, .. } = outcome.statistics;
            assert_eq!((deadlocks, depth, frontier_peak_bytes, search_time.as_secs()), (4, 4, 4, 7));
            assert_eq!((outcome.store_bytes.total(), found.name(), outcome.guarantee), (7, search, guarantee));
            assert_eq!(outcome.warning.as_deref(), warning);
        }
    }

    #[test]
    fn a_lasso_is_replayed_and_shown_and_one_that_does_not_close_is_refused() {
        let system = ring();
        let report = |start: usize| {
            let lasso = Trace::lasso(0, [0, 1, 0, 1].map(Action).to_vec(), start);
            let ran = known(&[Verdict::Violated(Some(lasso), None)], Some(Stop::Answered));
            Plan::single(&system, vec![PropertyKind::Other("test")], Known(ran)).make(setting(Limits::default()))
        };
        let json = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).expect("JSON");
        let good = report(2).expect("it closes");
        let (whole, mut traces) = (json(good.to_json().as_bytes()), Vec::new());
        good.write_traces(&mut traces).expect("memory takes all");
        for property in [&whole["properties"][0], &json(&traces)["traces"][0]] {
            let (steps, start) = (&property["trace"], property["loop_at"].as_u64().expect("a number") as usize);
            assert_eq!((start, steps.as_array().map(Vec::len)), (2, Some(5)));
            assert_eq!(steps[start]["state"], steps[4]["state"]);
        }
        for start in [1, 3, 4] {
            let error = report(start).map(|_| ()).expect_err("it does not close");
            assert!(matches!(error, CheckError::Replay { .. }), "{error}");
        }
        let path = Check::new(&system).run().expect("a run").to_json();
        assert!(!path.contains("loop_at"), "a path has no cycle");
    }

    #[test]
    fn a_trace_that_was_found_in_time_is_told_once_the_time_is_over() {
        /// Shown by a clock that stands still.
        static MOMENT: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        let system = NetSystem::new(deltamark_nets::generate::generate("philosophers", 4).expect("a net"));
        let budget = Arc::new(deltamark_core::Budget::unlimited());
        let store = deltamark_store::build(&StoreSpec::named("plain"), &system, Search::Bfs.order(), budget);
        let (store, properties, control) = (store.expect("a store"), [Property::deadlock_free()], Control::new());
        let (store, properties) = (store.as_ref(), &properties[..]);
        let task = deltamark_search::Task {
            system: &system,
            store,
            properties,
            control: &control,
            explore_all: false,
            observer: None,
        };
        let found = deltamark_search::run_on(deltamark_search::Threads::ONE, Search::Bfs, task).properties.remove(0);
        let deadline = Some(*MOMENT.get_or_init(Instant::now));
        let over = Control { deadline, clock: || MOMENT.get().copied(), ..Control::new() };
        let told = |control: &Control| {
            let told = answer(&system, PropertyKind::DeadlockFree, found.clone(), control).expect("it replays");
            (told.story.is_some(), told.untraced)
        };
        assert_eq!(told(&over), (false, Some(Stop::Time)));
        assert_eq!(told(&with_grace(&over)), (true, None));
        over.cancel.cancel();
        assert_eq!(told(&with_grace(&over)), (false, Some(Stop::Cancelled)));
    }
}
