//! The state space as a report, with the sections of CPN Tools' own.
//!
//! In: a whole [`Graph`]. Out: a [`SpaceReport`]: statistics, bounds, home and dead markings, dead and live transitions,
//! fairness. What stays true: the graph is complete, so all that is said holds of all reachable markings.
//!
//! K. Jensen, L. M. Kristensen, *Coloured Petri Nets*, 2009, chapter 7, defines the properties. They are decided by
//! strongly connected components (Tarjan's algorithm, without recursion):
//!
//! | property | holds if |
//! |---|---|
//! | home marking | it is in the one component that no edge leaves |
//! | live transition | it occurs in each component that no edge leaves |
//! | impartial | without the edges of the transition there is no cycle |
//! | fair | without them no marking that enables it is on a cycle |
//! | just | without them there is no cycle of markings that all enable it |

use crate::graph::Graph;
use deltamark_coloured::{TokenBounds, token_survey};
use deltamark_core::{BLOCK, Block, Bound, Control, Observable, Observe, StateId, Stop};
use std::fmt::Write;

/// How fair a transition is; the first that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// Every infinite run has infinitely many occurrences of it.
    Impartial,
    /// Every run in which it is enabled infinitely often has.
    Fair,
    /// Every run in which it is enabled for ever from some point on has.
    Just,
    /// None of these.
    No,
}

impl Fairness {
    /// As CPN Tools calls it.
    pub fn word(self) -> &'static str {
        match self {
            Fairness::Impartial => "Impartial",
            Fairness::Fair => "Fair",
            Fairness::Just => "Just",
            Fairness::No => "No Fairness",
        }
    }
}

/// What is known of a state space. Markings have numbers from 1, in breadth-first order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceReport {
    /// The name of the model's file.
    pub model: String,
    /// The number of markings.
    pub nodes: u64,
    /// The number of steps.
    pub arcs: u64,
    /// The number of strongly connected components.
    pub components: u64,
    /// The number of steps between different components.
    pub component_arcs: u64,
    /// The bounds of the number of tokens in each place.
    pub bounds: Vec<(String, Bound)>,
    /// The largest count of each token, by place.
    pub upper: Vec<TokenBounds>,
    /// The smallest count of each token, where it is not 0.
    pub lower: Vec<TokenBounds>,
    /// Markings that can be reached from everywhere.
    pub home: Vec<u32>,
    /// Markings without steps.
    pub dead: Vec<u32>,
    /// All transitions, in the order of the model.
    pub transitions: Vec<String>,
    /// Those that never occur.
    pub dead_transitions: Vec<usize>,
    /// Those that can always occur again.
    pub live_transitions: Vec<usize>,
    /// For each transition; `None` if all runs end.
    pub fairness: Option<Vec<Fairness>>,
}

/// Edges by their source: `targets[starts[s]..starts[s + 1]]`, and the transition of each.
struct EdgeRows {
    starts: Vec<u32>,
    targets: Vec<u32>,
    labels: Vec<u32>,
}

/// Steps between two polls of the control.
const SLICE: u32 = 1 << 16;

impl EdgeRows {
    fn states(&self) -> usize {
        self.starts.len() - 1
    }

    fn row(&self, state: u32) -> std::ops::Range<usize> {
        self.starts[state as usize] as usize..self.starts[state as usize + 1] as usize
    }

    /// The component of each state, and how many there are, over the edges and states that count. A component gets its
    /// number after those that it leads to.
    fn components(
        &self,
        state_counts: impl Fn(u32) -> bool,
        edge_counts: impl Fn(usize) -> bool,
        control: &Control,
    ) -> Result<(Vec<u32>, u32), Stop> {
        const NONE: u32 = u32::MAX;
        let states = self.states();
        control.ask_for(16 * states as u64)?;
        let mut component = vec![NONE; states];
        let mut rank = vec![0u32; states];
        let mut next_rank = 1;
        let mut count = 0;
        // Tarjan's stack, and the path with the next edge of each state.
        let (mut waiting, mut path): (Vec<u32>, Vec<(u32, usize, u32)>) = (Vec::new(), Vec::new());
        let mut left = SLICE;
        for root in 0..states as u32 {
            if rank[root as usize] != 0 || !state_counts(root) {
                continue;
            }
            rank[root as usize] = next_rank;
            path.push((root, self.row(root).start, next_rank));
            waiting.push(root);
            next_rank += 1;
            while let Some((state, edge, low)) = path.last_mut() {
                left -= 1;
                if left == 0 {
                    control.check()?;
                    left = SLICE;
                }
                let (state, at) = (*state, *edge);
                if at < self.row(state).end {
                    *edge += 1;
                    let target = self.targets[at];
                    if !edge_counts(at) || !state_counts(target) {
                        continue;
                    }
                    if rank[target as usize] == 0 {
                        rank[target as usize] = next_rank;
                        path.push((target, self.row(target).start, next_rank));
                        waiting.push(target);
                        next_rank += 1;
                    } else if component[target as usize] == NONE {
                        *low = (*low).min(rank[target as usize]);
                    }
                    continue;
                }
                let low = *low;
                path.pop();
                if let Some(parent) = path.last_mut() {
                    parent.2 = parent.2.min(low);
                }
                if low == rank[state as usize] {
                    while let Some(member) = waiting.pop() {
                        component[member as usize] = count;
                        if member == state {
                            break;
                        }
                    }
                    count += 1;
                }
            }
        }
        Ok((component, count))
    }

    /// The states that are on cycles of the edges and states that count.
    fn cyclic(
        &self,
        state_counts: impl Fn(u32) -> bool + Copy,
        edge_counts: impl Fn(usize) -> bool + Copy,
        control: &Control,
    ) -> Result<Vec<bool>, Stop> {
        let (component, _) = self.components(state_counts, edge_counts, control)?;
        let mut cyclic = vec![false; self.states()];
        for state in (0..self.states() as u32).filter(|&state| state_counts(state)) {
            for at in self.row(state).filter(|&at| edge_counts(at)) {
                let target = self.targets[at];
                // An edge inside a component is on a cycle.
                if state_counts(target) && component[state as usize] == component[target as usize] {
                    cyclic[state as usize] = true;
                    cyclic[target as usize] = true;
                }
            }
        }
        Ok(cyclic)
    }
}

impl SpaceReport {
    /// Derives a report from a graph; `None` if the model has no names for its transitions.
    pub fn new(graph: &Graph<'_>, control: &Control) -> Result<Option<SpaceReport>, Stop> {
        let system = graph.model.system.as_ref();
        let Some(observe) = system.observe() else { return Ok(None) };
        let transitions = observe.action_names();
        if transitions.is_empty() {
            return Ok(None);
        }
        let states = graph.states();
        control.ask_for(20 * states as u64 + 8 * graph.edges.len() as u64)?;
        let mut starts = vec![0u32; states + 1];
        graph.edges.iter().for_each(|edge| starts[edge.from as usize + 1] += 1);
        (1..=states).for_each(|state| starts[state] += starts[state - 1]);
        let mut free = starts.clone();
        let (mut targets, mut labels) = (vec![0; graph.edges.len()], vec![0; graph.edges.len()]);
        for edge in &graph.edges {
            let at = &mut free[edge.from as usize];
            targets[*at as usize] = edge.to;
            labels[*at as usize] = observe.name_of_action(edge.action) as u32;
            *at += 1;
        }
        drop(free);
        let rows = EdgeRows { starts, targets, labels };
        let (component, components) = rows.components(|_| true, |_| true, control)?;
        let crosses = |state: u32, at: usize| component[state as usize] != component[rows.targets[at] as usize];
        let mut leaves = vec![false; components as usize];
        let (mut component_arcs, mut happened) = (0, vec![false; transitions.len()]);
        let mut inside = vec![false; rows.targets.len()];
        for state in 0..states as u32 {
            for at in rows.row(state) {
                happened[rows.labels[at] as usize] = true;
                if crosses(state, at) {
                    component_arcs += 1;
                    leaves[component[state as usize] as usize] = true;
                } else {
                    inside[at] = true;
                }
            }
        }
        let bottom: Vec<u32> = (0..components).filter(|&one| !leaves[one as usize]).collect();
        let home = match bottom.as_slice() {
            [only] => numbered(states, |state| component[state] == *only),
            _ => Vec::new(),
        };
        let live_transitions = live(&rows, &component, &bottom, &inside, transitions.len());
        let fairness =
            if inside.contains(&true) { Some(fairness(&rows, &inside, &transitions, control)?) } else { None };
        let (bounds, upper, lower) = bounds(graph, observe, control)?;
        Ok(Some(SpaceReport {
            model: graph.model.info.path.clone().unwrap_or_default(),
            nodes: states as u64,
            arcs: graph.edges.len() as u64,
            components: components.into(),
            component_arcs,
            bounds,
            upper,
            lower,
            home,
            dead: numbered(states, |state| rows.row(state as u32).is_empty()),
            dead_transitions: (0..transitions.len()).filter(|&at| !happened[at]).collect(),
            live_transitions,
            fairness,
            transitions,
        }))
    }
}

/// The numbers, from 1, of the states for which this is true.
fn numbered(states: usize, is: impl Fn(usize) -> bool) -> Vec<u32> {
    (0..states).filter(|&state| is(state)).map(|state| state as u32 + 1).collect()
}

/// The transitions that occur in every bottom component.
fn live(rows: &EdgeRows, component: &[u32], bottom: &[u32], inside: &[bool], transitions: usize) -> Vec<usize> {
    let place = |of: u32| bottom.binary_search(&of).ok();
    let mut seen = vec![vec![false; transitions]; bottom.len()];
    for state in 0..rows.states() as u32 {
        let Some(place) = place(component[state as usize]) else { continue };
        for at in rows.row(state).filter(|&at| inside[at]) {
            seen[place][rows.labels[at] as usize] = true;
        }
    }
    (0..transitions).filter(|&one| seen.iter().all(|seen| seen[one])).collect()
}

fn fairness(
    rows: &EdgeRows,
    inside: &[bool],
    transitions: &[String],
    control: &Control,
) -> Result<Vec<Fairness>, Stop> {
    let mut all = Vec::with_capacity(transitions.len());
    for one in 0..transitions.len() as u32 {
        let mut enabled = vec![false; rows.states()];
        for state in 0..rows.states() as u32 {
            enabled[state as usize] = rows.row(state).any(|at| rows.labels[at] == one);
        }
        // A cycle is inside a component of the whole graph.
        let others = |at: usize| inside[at] && rows.labels[at] != one;
        let cyclic = rows.cyclic(|_| true, others, control)?;
        let on = |state: u32| enabled[state as usize];
        all.push(if !cyclic.contains(&true) {
            Fairness::Impartial
        } else if !cyclic.iter().zip(&enabled).any(|(cyclic, enabled)| *cyclic && *enabled) {
            Fairness::Fair
        } else if !rows.cyclic(on, others, control)?.contains(&true) {
            Fairness::Just
        } else {
            Fairness::No
        });
    }
    Ok(all)
}

type Bounds = (Vec<(String, Bound)>, Vec<TokenBounds>, Vec<TokenBounds>);

fn bounds(graph: &Graph<'_>, observe: &dyn Observe, control: &Control) -> Result<Bounds, Stop> {
    let system = graph.model.system.as_ref();
    let (names, watched): (Vec<String>, Vec<Observable>) =
        observe.names().into_iter().filter_map(|name| observe.resolve(&name).map(|found| (name, found))).unzip();
    let mut bounds = vec![Bound::NONE; watched.len()];
    let mut scratch = system.scratch();
    let survey = token_survey(system);
    let numbers: Vec<usize> = (0..graph.states()).collect();
    for piece in numbers.chunks(BLOCK) {
        control.check()?;
        let mut block = Block::new(system.width());
        for &number in piece {
            block.push(StateId::new(number as u64), graph.states.get(number));
        }
        observe.survey_block(&mut scratch, &block, &watched, &mut bounds);
        if let Some(survey) = survey {
            survey.note_tokens(&mut scratch, &block);
        }
    }
    let upper = survey.map(|survey| survey.token_bounds()).unwrap_or_default();
    let lower = survey.and_then(|survey| survey.token_floors()).unwrap_or_default();
    Ok((names.into_iter().zip(bounds).collect(), upper, lower))
}

/// The most markings that are listed.
const LISTED: usize = 20;

fn listed(markings: &[u32]) -> String {
    let some: Vec<String> = markings.iter().take(LISTED).map(u32::to_string).collect();
    match markings.len() {
        0 => "None".into(),
        many if many > LISTED => format!("{many} [{},...]", some.join(",")),
        many => format!("{many} [{}]", some.join(",")),
    }
}

impl SpaceReport {
    /// The report as text, in the order and under the headings of CPN Tools.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let rule = "-".repeat(72);
        let heading = |out: &mut String, title: &str| writeln!(out, "\n\n {title}\n{rule}");
        writeln!(out, "State space report for:\n{}", self.model)?;
        heading(out, "Statistics")?;
        writeln!(out, "\n  State Space\n     Nodes:  {}\n     Arcs:   {}\n     Status: Full", self.nodes, self.arcs)?;
        writeln!(out, "\n  Scc Graph\n     Nodes:  {}\n     Arcs:   {}", self.components, self.component_arcs)?;
        let names = self.bounds.iter().map(|bound| bound.0.as_str()).chain(self.transitions.iter().map(String::as_str));
        let width = names.map(|name| name.chars().count()).max().unwrap_or(0).clamp(18, 60);
        heading(out, "Boundedness Properties")?;
        writeln!(out, "\n  Best Integer Bounds\n     {:width$}  {:<11}Lower", "", "Upper")?;
        for (name, bound) in &self.bounds {
            writeln!(out, "     {name:width$}  {:<11}{}", bound.most, bound.least)?;
        }
        for (title, all) in [("Best Upper Multi-set Bounds", &self.upper), ("Best Lower Multi-set Bounds", &self.lower)]
        {
            if all.is_empty() {
                continue;
            }
            writeln!(out, "\n  {title}")?;
            for (name, tokens) in all {
                let parts: Vec<String> = tokens.iter().map(|(token, count)| format!("{count}`{token}")).collect();
                let value = if parts.is_empty() { "empty".into() } else { parts.join("++\n") };
                writeln!(out, "     {name:width$}  {}", value.replace('\n', &format!("\n{}", " ".repeat(width + 7))))?;
            }
        }
        heading(out, "Home Properties")?;
        let home = if self.home.len() as u64 == self.nodes { "All".into() } else { listed(&self.home) };
        writeln!(out, "\n  Home Markings\n     {home}")?;
        heading(out, "Liveness Properties")?;
        writeln!(out, "\n  Dead Markings\n     {}", listed(&self.dead))?;
        for (title, some) in [
            ("Dead Transition Instances", &self.dead_transitions),
            ("Live Transition Instances", &self.live_transitions),
        ] {
            writeln!(out, "\n  {title}")?;
            match some.as_slice() {
                [] => writeln!(out, "     None")?,
                all if all.len() == self.transitions.len() => writeln!(out, "     All")?,
                some => some.iter().try_for_each(|&at| writeln!(out, "     {}", self.transitions[at]))?,
            }
        }
        heading(out, "Fairness Properties")?;
        match &self.fairness {
            None => writeln!(out, "\n     No infinite occurrence sequences.")?,
            Some(all) => {
                writeln!(out)?;
                for (name, fairness) in self.transitions.iter().zip(all) {
                    writeln!(out, "     {name:width$}  {}", fairness.word())?;
                }
            }
        }
        Ok(())
    }
}
