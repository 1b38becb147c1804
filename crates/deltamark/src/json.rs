//! Reports for scripts.
//!
//! In: a [`Report`], perhaps with a [`Survey`]. Out: one JSON object, the contract that
//! `docs/json.md` describes field by field. What stays true: fields come in the order
//! of the contract; a field is added, never renamed or dropped, while `schema` is 1;
//! states are written one after the other and never all held at once.

use crate::auto::{Trial, TrialCost};
use crate::certificate::CertificateFile;
use crate::load::ModelInfo;
use crate::report::{Answer, GraphFile, Report};
use crate::stats::{Bound, Survey};
use crate::story::{Change, StateWords, Story};
use crate::sweep::SweepReport;
use deltamark_core::{Again, Guarantee, Value, Verdict};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::io::{self, Write};

/// The number of the contract.
pub const SCHEMA: u32 = 1;

/// In traces of more steps than this only the first and the last element carry their
/// whole state; the others carry what changed.
pub const FULL_STATES: usize = 10_000;

impl Report {
    /// Writes the report as one JSON object.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        Ok(serde_json::to_writer(out, &Contract::new(self, None))?)
    }

    /// The report as one JSON object.
    pub fn to_json(&self) -> String {
        text(|out| self.write_json(out))
    }

    /// Writes the traces alone, for `--trace FILE`.
    pub fn write_traces(&self, out: &mut dyn Write) -> io::Result<()> {
        let told = self.answers.iter().filter(|answer| answer.story.is_some()).map(AnswerJson::new).collect();
        let traces = Traces { schema: SCHEMA, tool: ToolJson::new(), model: ModelJson(&self.model), traces: told };
        serde_json::to_writer_pretty(&mut *out, &traces)?;
        out.write_all(b"\n")
    }
}

/// Writes a report and a survey as one JSON object.
pub(crate) fn write_with_survey(report: &Report, survey: &Survey, out: &mut dyn Write) -> io::Result<()> {
    Ok(serde_json::to_writer(out, &Contract::new(report, Some(survey)))?)
}

pub(crate) fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    // Writing to memory does not fail, and what serde_json writes is UTF-8.
    let written = write(&mut bytes);
    debug_assert!(written.is_ok());
    String::from_utf8(bytes).unwrap_or_default()
}

#[derive(serde::Serialize)]
struct Contract<'a> {
    schema: u32,
    tool: ToolJson,
    model: ModelJson<'a>,
    states: u64,
    edges: u64,
    /// Not known of a product with an automaton, nor of a reduced system, unless its deadlocks are those of the model.
    deadlocks: Option<u64>,
    /// Not known of a reduced system, nor of a product.
    depth: Option<u64>,
    complete: bool,
    stopped_by: Option<&'static str>,
    properties: Vec<AnswerJson<'a>>,
    store: StoreJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<TablesJson<'a>>,
    frontier: FrontierJson,
    peak_rss_bytes: Option<u64>,
    seconds: Seconds,
    states_per_second: u64,
    search: &'static str,
    expanded: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    explored_again: Option<Option<u64>>,
    widenings: u64,
    memory_limit_bytes: Option<u64>,
    notes: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_while: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    graph: Option<GraphJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<CertificateJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<SweepJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reduction: Option<ReductionJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<RouteJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<ResumedJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<CheckpointJson<'a>>,
    #[serde(flatten)]
    survey: Option<SurveyJson<'a>>,
}

/// Which checkpoint the run went on from.
#[derive(serde::Serialize)]
struct ResumedJson<'a> {
    from: &'a str,
    states: u64,
}

/// What became of checkpoints.
#[derive(serde::Serialize)]
struct CheckpointJson<'a> {
    directory: &'a str,
    written: u64,
    /// What is in the newest one.
    states: Option<u64>,
    trouble: Option<&'a str>,
}

/// How formulas of temporal logic were answered.
#[derive(serde::Serialize)]
struct RouteJson<'a> {
    kind: &'static str,
    why: &'a str,
}

/// What was left away. Places and transitions are those that are left, where some are not.
#[derive(serde::Serialize)]
struct ReductionJson<'a> {
    kind: &'static str,
    rules: Vec<&'static str>,
    places: Option<u64>,
    transitions: Option<u64>,
    decided_by: &'a str,
}

impl<'a> Contract<'a> {
    fn new(report: &'a Report, survey: Option<&'a Survey>) -> Self {
        let statistics = &report.statistics;
        let reduction = report.reduction.as_ref();
        Contract {
            schema: SCHEMA,
            tool: ToolJson::new(),
            model: ModelJson(&report.model),
            states: statistics.states,
            edges: statistics.edges,
            deadlocks: (reduction.is_none_or(|reduction| reduction.keeps_deadlocks) && !report.is_of_products())
                .then_some(statistics.deadlocks),
            depth: (reduction.is_none() && !report.is_of_products()).then_some(statistics.depth),
            complete: report.stopped_by.is_none(),
            stopped_by: report.stopped_by.map(deltamark_core::Stop::word),
            properties: report.answers.iter().map(AnswerJson::new).collect(),
            store: StoreJson::new(report),
            tables: (report.tables.total() > 0).then(|| TablesJson::new(report)),
            frontier: FrontierJson { peak_bytes: statistics.frontier_peak_bytes },
            peak_rss_bytes: report.peak_resident,
            seconds: Seconds {
                total: micros(report.total_time.as_secs_f64()),
                search: micros(statistics.search_time.as_secs_f64()),
            },
            states_per_second: report.states_per_second().round() as u64,
            search: report.search_name(),
            expanded: statistics.expanded,
            explored_again: match statistics.again {
                Again::Counted(0) => None,
                Again::Counted(again) => Some(Some(again)),
                Again::Unknown => Some(None),
            },
            widenings: statistics.widenings,
            memory_limit_bytes: report.memory_limit,
            notes: report
                .growth
                .iter()
                .map(|growth| growth.sentence.as_str())
                .chain(report.warning.as_deref())
                .chain(report.model.note.as_deref())
                .chain(report.notes.iter().map(String::as_str))
                .collect(),
            stopped_while: report.stopped_while,
            graph: report.graph.as_ref().map(GraphJson::new),
            certificate: report.certificate.as_ref().map(CertificateJson::new),
            sweep: report.sweep.as_ref().map(SweepJson::new),
            reduction: reduction.map(|reduction| ReductionJson {
                kind: reduction.kind,
                rules: reduction.rules.iter().map(|(rule, _)| *rule).collect(),
                places: reduction.places.map(|(_, after)| after as u64),
                transitions: reduction.transitions.map(|(_, after)| after as u64),
                decided_by: &reduction.decided_by,
            }),
            route: report.route.as_ref().map(|route| RouteJson { kind: route.kind.name(), why: &route.why }),
            resumed: report.resumed.as_ref().map(|resumed| ResumedJson { from: &resumed.from, states: resumed.states }),
            checkpoint: report.checkpoint.as_ref().map(|checkpoint| CheckpointJson {
                directory: &checkpoint.directory,
                written: checkpoint.written,
                states: checkpoint.newest.map(|newest| newest.states),
                trouble: checkpoint.trouble.as_deref(),
            }),
            survey: survey.map(SurveyJson::new),
        }
    }
}

/// A certificate.
#[derive(serde::Serialize)]
struct CertificateJson<'a> {
    path: &'a str,
    written: bool,
    bytes: Option<u64>,
    states: Option<u64>,
    properties: Option<u64>,
    uncertified: Vec<UncertifiedJson<'a>>,
    why: Option<&'a str>,
}

/// An answer that is not in the certificate.
#[derive(serde::Serialize)]
struct UncertifiedJson<'a> {
    name: &'a str,
    why: &'a str,
}

impl<'a> CertificateJson<'a> {
    fn new(certificate: &'a CertificateFile) -> Self {
        let contents = certificate.contents;
        let uncertified = certificate.uncertified.iter().map(|(name, why)| UncertifiedJson { name, why });
        CertificateJson {
            path: &certificate.path,
            written: contents.is_some(),
            bytes: contents.map(|contents| contents.bytes),
            states: contents.and_then(|contents| contents.states),
            properties: contents.map(|contents| contents.claims),
            uncertified: uncertified.collect(),
            why: certificate.failed.as_deref(),
        }
    }
}

/// The file of a graph.
#[derive(serde::Serialize)]
struct GraphJson<'a> {
    path: &'a str,
    written: bool,
    bytes: Option<u64>,
    bits_per_edge: Option<f64>,
    unfolding: Option<bool>,
    why: Option<&'a str>,
}

impl<'a> GraphJson<'a> {
    fn new(graph: &'a GraphFile) -> Self {
        GraphJson {
            path: &graph.path,
            written: !graph.walked && graph.contents.is_some(),
            bytes: graph.contents.map(|contents| contents.bytes),
            bits_per_edge: graph.contents.map(|contents| (contents.bits_per_edge() * 1e3).round() / 1e3),
            unfolding: graph.contents.map(|contents| contents.unfolding),
            why: graph.unwritten.as_ref().map(|unwritten| unwritten.why.as_str()),
        }
    }
}

/// A sweep, or a measure that was tried.
#[derive(serde::Serialize)]
pub(crate) struct SweepJson<'a> {
    measure: &'a str,
    automatic: bool,
    transitions: Option<DirectionsJson>,
    trial: Option<TrialJson>,
    #[serde(flatten)]
    swept: Option<SweptJson>,
}

#[derive(serde::Serialize)]
struct DirectionsJson {
    advance: usize,
    stay: usize,
    regress: usize,
}

#[derive(serde::Serialize)]
struct TrialJson {
    states: u64,
    complete: bool,
    peak_states: u64,
    sweeps: u64,
    regress_edges: u64,
    edges: u64,
    useful: bool,
}

#[derive(serde::Serialize)]
struct SweptJson {
    sweeps: u64,
    ranks: u64,
    regress_edges: u64,
    persistent: u64,
    peak_states: u64,
    peak_bytes: u64,
    unfolding: bool,
}

impl<'a> SweepJson<'a> {
    pub(crate) fn new(report: &'a SweepReport) -> Self {
        SweepJson {
            measure: &report.measure,
            automatic: report.automatic,
            transitions: report.directions.map(|directions| DirectionsJson {
                advance: directions.advance,
                stay: directions.stay,
                regress: directions.regress,
            }),
            trial: report.trial.map(|trial| TrialJson {
                states: trial.states,
                complete: trial.complete,
                peak_states: trial.peak,
                sweeps: trial.sweeps,
                regress_edges: trial.regress_edges,
                edges: trial.edges,
                useful: trial.is_useful(),
            }),
            swept: report.swept.as_ref().map(|swept| SweptJson {
                sweeps: swept.sweeps,
                ranks: swept.ranks,
                regress_edges: swept.regress_edges,
                persistent: swept.persistent,
                peak_states: swept.peak_states,
                peak_bytes: swept.peak_bytes,
                unfolding: swept.unfolding,
            }),
        }
    }
}

/// Writes what is known of a measure before a run.
pub fn write_measure(model: &ModelInfo, report: &SweepReport, out: &mut dyn Write) -> io::Result<()> {
    #[derive(serde::Serialize)]
    struct Measured<'a> {
        schema: u32,
        tool: ToolJson,
        model: ModelJson<'a>,
        progress: SweepJson<'a>,
    }
    let measured =
        Measured { schema: SCHEMA, tool: ToolJson::new(), model: ModelJson(model), progress: SweepJson::new(report) };
    Ok(serde_json::to_writer(out, &measured)?)
}

/// Rounded to millionths: more digits are noise.
fn micros(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

#[derive(serde::Serialize)]
struct ToolJson {
    name: &'static str,
    version: &'static str,
}

impl ToolJson {
    fn new() -> Self {
        ToolJson { name: "deltamark", version: env!("CARGO_PKG_VERSION") }
    }
}

/// The model: path, format, and its sizes under their own names.
pub(crate) struct ModelJson<'a>(pub &'a ModelInfo);

impl Serialize for ModelJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("path", &self.0.path)?;
        map.serialize_entry("format", self.0.format)?;
        for (what, count) in &self.0.sizes {
            map.serialize_entry(what, count)?;
        }
        map.end()
    }
}

/// Tables of the model itself.
#[derive(serde::Serialize)]
struct TablesJson<'a> {
    bytes: u64,
    parts: Pairs<Vec<(&'a str, u64)>>,
}

impl<'a> TablesJson<'a> {
    fn new(report: &'a Report) -> Self {
        TablesJson { bytes: report.tables.total(), parts: Pairs(report.tables.parts().to_vec()) }
    }
}

#[derive(serde::Serialize)]
struct StoreJson<'a> {
    name: &'a str,
    options: Pairs<Vec<(&'a str, Literal<'a>)>>,
    guarantee: &'static str,
    bytes: u64,
    bytes_per_state: f64,
    parts: Pairs<Vec<(&'a str, u64)>>,
    omission_probability: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    chosen: Option<Chosen<'a>>,
}

/// Why the store is the one it is.
#[derive(serde::Serialize)]
struct Chosen<'a> {
    why: &'a str,
    trials: Vec<CandidateJson<'a>>,
}

/// A store on the first states: figures, or why there are none.
#[derive(serde::Serialize)]
struct CandidateJson<'a> {
    store: String,
    states: Option<u64>,
    bytes_per_state: Option<f64>,
    states_per_second: Option<u64>,
    room_states: Option<u64>,
    memory_lasts_seconds: Option<f64>,
    reason: Option<&'a str>,
}

impl<'a> CandidateJson<'a> {
    fn new(trial: &'a Trial) -> Self {
        let taken = trial.taken.as_ref().ok();
        CandidateJson {
            store: trial.store.to_string(),
            states: taken.map(|taken| taken.states),
            bytes_per_state: taken.map(|taken| (taken.bytes_per_state * 1e3).round() / 1e3),
            states_per_second: taken.map(|taken| taken.states_per_second.round() as u64),
            room_states: taken.and_then(|taken| taken.room).map(|room| room as u64),
            memory_lasts_seconds: taken.and_then(TrialCost::lasts).map(|lasts| micros(lasts.as_secs_f64())),
            reason: trial.taken.as_ref().err().map(String::as_str),
        }
    }
}

impl<'a> StoreJson<'a> {
    fn new(report: &'a Report) -> Self {
        let (guarantee, omission_probability) = match report.guarantee {
            Guarantee::Exact => ("exact", 0.0),
            Guarantee::Omission(probability) => ("omission", probability),
        };
        let options = report.store_options().into_iter().map(|(name, value)| (name, Literal(value))).collect();
        StoreJson {
            name: &report.store.name,
            options: Pairs(options),
            guarantee,
            bytes: report.store_bytes.total(),
            bytes_per_state: (report.bytes_per_state() * 1e3).round() / 1e3,
            parts: Pairs(report.store_bytes.parts().to_vec()),
            omission_probability,
            chosen: report.choice.as_ref().map(|choice| Chosen {
                why: &choice.why,
                trials: choice.trials.iter().map(CandidateJson::new).collect(),
            }),
        }
    }
}

/// The value of an option: a number where it reads as one.
struct Literal<'a>(&'a str);

impl Serialize for Literal<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.parse::<i64>() {
            Ok(number) => serializer.serialize_i64(number),
            Err(_) => serializer.serialize_str(self.0),
        }
    }
}

/// A list of pairs as an object.
struct Pairs<T>(T);

impl<K: Serialize, V: Serialize> Serialize for Pairs<Vec<(K, V)>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[derive(serde::Serialize)]
struct FrontierJson {
    peak_bytes: u64,
}

#[derive(serde::Serialize)]
struct Seconds {
    total: f64,
    search: f64,
}

#[derive(serde::Serialize)]
struct Traces<'a> {
    schema: u32,
    tool: ToolJson,
    model: ModelJson<'a>,
    traces: Vec<AnswerJson<'a>>,
}

#[derive(serde::Serialize)]
struct AnswerJson<'a> {
    name: &'a str,
    text: &'a str,
    verdict: &'static str,
    trace: Option<TraceJson<'a>>,
    kind: &'static str,
    message: Option<&'a str>,
    omission_probability: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untraced_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loop_at: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    probed: bool,
}

impl<'a> AnswerJson<'a> {
    fn new(answer: &'a Answer) -> Self {
        AnswerJson {
            name: &answer.name,
            text: &answer.text,
            verdict: answer.verdict.word(),
            trace: answer.story.as_ref().map(TraceJson),
            kind: answer.kind.word(),
            message: answer.message(),
            omission_probability: match answer.verdict {
                Verdict::NoViolationFound(probability) => Some(probability),
                _ => None,
            },
            untraced_by: answer.untraced.map(deltamark_core::Stop::word),
            loop_at: answer.story.as_ref().and_then(Story::cycle),
            probed: answer.probed,
        }
    }
}

struct TraceJson<'a>(&'a Story);

impl Serialize for TraceJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let story = self.0;
        let full = story.len() <= FULL_STATES;
        let mut walk = story.walk();
        let mut list = serializer.serialize_seq(Some(story.len() + 1))?;
        list.serialize_element(&Element { state: Some(StateJson(walk.state())), ..Element::default() })?;
        for number in 1..=story.len() {
            let Some(step) = walk.next() else { break };
            let mut element = Element { action: Some(step.action), fault: step.fault, ..Element::default() };
            if !full && number < story.len() {
                element.changes = Some(Changes(story, step.changes));
            } else if step.fault.is_none() {
                element.state = Some(StateJson(walk.state()));
            }
            list.serialize_element(&element)?;
        }
        list.end()
    }
}

/// One element of a trace: the first state has no action, a fault has no state.
#[derive(Default)]
struct Element<'a> {
    action: Option<&'a str>,
    state: Option<StateJson<'a>>,
    changes: Option<Changes<'a>>,
    fault: Option<&'a str>,
}

impl Serialize for Element<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("action", &self.action)?;
        match &self.changes {
            Some(changes) => map.serialize_entry("changes", changes)?,
            None => map.serialize_entry("state", &self.state)?,
        }
        if let Some(fault) = self.fault {
            map.serialize_entry("fault", fault)?;
        }
        map.end()
    }
}

/// A state: its variables and values, those at rest omitted.
pub(crate) struct StateJson<'a>(pub StateWords<'a>);

impl Serialize for StateJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, ValueJson(value))))
    }
}

struct Changes<'a>(&'a Story, Vec<Change<'a>>);

impl Serialize for Changes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rest = self.0.rest();
        serializer.collect_map(self.1.iter().map(|change| (change.name, ValueJson(change.after.unwrap_or(rest)))))
    }
}

#[derive(Clone, Copy)]
struct ValueJson<'a>(&'a Value);

impl Serialize for ValueJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// Tokens, and how many of each.
type TokensJson<'a> = Pairs<Vec<(&'a str, u64)>>;

#[derive(serde::Serialize)]
struct SurveyJson<'a> {
    bounds: Pairs<Vec<(&'a str, BoundJson)>>,
    token_bounds: Pairs<Vec<(&'a str, TokensJson<'a>)>>,
    max_tokens_in_place: Option<i64>,
    max_tokens_in_marking: Option<i64>,
    dead_transitions: Option<&'a [String]>,
}

impl<'a> SurveyJson<'a> {
    fn new(survey: &'a Survey) -> Self {
        let bound = |(name, bound): &'a (String, Bound)| (&**name, BoundJson { min: bound.least, max: bound.most });
        let token = |(token, most): &'a (String, u64)| (&**token, *most);
        let tokens = |(name, bounds): &'a (String, Vec<(String, u64)>)| {
            (&**name, Pairs(bounds.iter().map(token).collect::<Vec<_>>()))
        };
        SurveyJson {
            bounds: Pairs(survey.bounds.iter().map(bound).collect()),
            token_bounds: Pairs(survey.token_bounds.iter().map(tokens).collect()),
            max_tokens_in_place: survey.max_tokens_in_place,
            max_tokens_in_marking: survey.max_tokens_in_marking,
            dead_transitions: survey.dead_transitions.as_deref(),
        }
    }
}

#[derive(serde::Serialize)]
struct BoundJson {
    min: i64,
    max: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;
    use deltamark_core::Stop;

    #[test]
    fn the_contract_has_its_fields_in_order() {
        let json = sample(&[Verdict::Unknown], Some(Stop::Time)).to_json();
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let fields: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
        let contract = [
            "schema",
            "tool",
            "model",
            "states",
            "edges",
            "deadlocks",
            "depth",
            "complete",
            "stopped_by",
            "properties",
            "store",
            "frontier",
            "peak_rss_bytes",
            "seconds",
            "states_per_second",
        ];
        assert_eq!(&fields[..contract.len()], contract);
        assert_eq!(value["stopped_by"], "time");
        assert_eq!(value["complete"], false);
        assert_eq!(value["store"]["parts"]["table"], 25);
        assert_eq!(value["properties"][0]["verdict"], "unknown");
    }
}
