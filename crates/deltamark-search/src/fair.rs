//! Fair cycles in a component of a product.
//!
//! E. A. Emerson, C.-L. Lei, *Modalities for Model Checking: Branching Time Logic Strikes Back*, 1987, and O. Lichtenstein,
//! A. Pnueli, POPL 1985, for strong fairness: components of components. In: a strongly connected component with the
//! acceptance sets and groups of its edges. Out: a path inside it to a cycle that is accepting and fair, if there is
//! one. What stays true: all memory in proportion to the component was granted by the budget.
//!
//! A *group* of actions is a transition of a net, or a process. An infinite path is
//!
//! * *weakly fair* to a group if the group is disabled in infinitely many of its states, or infinitely many of its steps
//!   are of the group;
//! * *strongly fair* if the group is enabled in finitely many of its states only, or infinitely many of its steps are of
//!   it.
//!
//! A finite path is fair, and every path can be extended to a fair one, since there are finitely many groups.
//!
//! # Proof
//! The states and edges that a path takes infinitely often are strongly connected, so they are part of one component
//! *S*. *Weakly:* if a group is enabled everywhere in *S* and has no edge in it, the same is true of each part, so *S*
//! has no fair cycle; if there is no such group, a cycle through all edges of *S* is fair. *Strongly:* if a group is
//! enabled somewhere in *S* and has no edge in it, no fair path stays in *S* and visits such a state infinitely often.
//! So these states can be removed, and components of the rest be looked at; each has fewer states. If there is no such
//! group, a cycle through all edges of *S* is fair. In both cases it is accepting if and only if *S* has an edge of each
//! acceptance set. The cycle that is returned takes only as many edges as it needs.

use crate::accepting::Acceptance;
use deltamark_core::{Action, Control, Grant, Stop};
use std::collections::{HashMap, VecDeque};

/// How much a fair path must do for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// A group that is always enabled from some point on takes infinitely many steps.
    Weak,
    /// A group that is enabled infinitely often takes infinitely many steps.
    Strong,
}

/// Which paths are fair.
pub struct Fairness<'a> {
    /// How much is asked for.
    pub strength: Strength,
    /// The number of groups.
    pub groups: usize,
    /// Appends the groups that an action is of.
    pub of: &'a dyn Fn(Action, &mut Vec<u32>),
}

/// An edge inside a component.
#[derive(Clone, Copy)]
struct InnerEdge {
    to: u32,
    action: Action,
    sets: u64,
}

/// A set of groups.
type GroupSet = Box<[u64]>;

/// A component, its states numbered from the one that was found first.
pub(crate) struct Component {
    /// Of each state where its edges begin, and where the last ones end.
    begins: Vec<usize>,
    edges: Vec<InnerEdge>,
    /// Of each state the groups that are enabled, in as many words as they need.
    enabled: Vec<u64>,
    words: usize,
    grant: Grant,
}

/// A path from the first state of a component to a cycle, and the cycle.
pub(crate) type FairPath = (Vec<Action>, Vec<Action>);

impl Component {
    pub fn new(fairness: &Fairness<'_>, control: &Control) -> Self {
        let words = fairness.groups.div_ceil(64).max(1);
        let grant = Grant::new(&control.budget);
        Component { begins: vec![0], edges: Vec::new(), enabled: Vec::new(), words, grant }
    }

    /// Appends a state: all its actions, and those that stay inside, with their targets and acceptance sets.
    pub fn push(
        &mut self,
        fairness: &Fairness<'_>,
        actions: &[Action],
        inside: impl Iterator<Item = (u32, Action, u64)>,
    ) -> Result<(), Stop> {
        let before = self.edges.len();
        self.edges.extend(inside.map(|(to, action, sets)| InnerEdge { to, action, sets }));
        // Vectors that grow hold up to twice of what is in them.
        let bytes = (self.edges.len() - before) * 2 * size_of::<InnerEdge>() + self.words * 16 + 64;
        if !self.grant.ask(bytes as u64) {
            return Err(Stop::Memory);
        }
        self.begins.push(self.edges.len());
        let begin = self.enabled.len();
        self.enabled.resize(begin + self.words, 0);
        let mut groups = Vec::new();
        actions.iter().for_each(|&action| (fairness.of)(action, &mut groups));
        for group in groups {
            self.enabled[begin + group as usize / 64] |= 1 << (group % 64);
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.begins.len() - 1
    }

    fn edges(&self, state: u32) -> &[InnerEdge] {
        &self.edges[self.begins[state as usize]..self.begins[state as usize + 1]]
    }

    fn enabled(&self, state: u32) -> &[u64] {
        &self.enabled[state as usize * self.words..][..self.words]
    }

    /// The groups of an action, as a set.
    fn groups(&self, fairness: &Fairness<'_>, action: Action) -> GroupSet {
        let (mut list, mut set) = (Vec::new(), vec![0u64; self.words]);
        (fairness.of)(action, &mut list);
        list.into_iter().for_each(|group| set[group as usize / 64] |= 1 << (group % 64));
        set.into()
    }

    /// A fair accepting cycle.
    pub fn fair_cycle(&self, acceptance: &Acceptance<'_>, control: &Control) -> Result<Option<FairPath>, Stop> {
        let Some(fairness) = &acceptance.fairness else { return Ok(None) };
        let count = self.len();
        let mut scratch = Grant::new(&control.budget);
        if !scratch.ask(40 * count as u64) {
            return Err(Stop::Memory);
        }
        // Of each state the part it is in; parts are numbered as they are made, and 0 is none.
        let mut part = vec![1u32; count];
        let mut next = 2;
        let mut waiting: Vec<(u32, Vec<u32>)> = vec![(1, (0..count as u32).collect())];
        while let Some((number, states)) = waiting.pop() {
            for members in self.components(&states, number, &part, control)? {
                control.ask()?;
                for &state in &members {
                    part[state as usize] = next;
                }
                let own = next;
                next += 1;
                let mut sets = 0;
                let (mut somewhere, mut everywhere) = (vec![0u64; self.words], vec![u64::MAX; self.words]);
                let mut taken = vec![0u64; self.words];
                let mut cyclic = false;
                for &state in &members {
                    for (word, &enabled) in self.enabled(state).iter().enumerate() {
                        somewhere[word] |= enabled;
                        everywhere[word] &= enabled;
                    }
                    for edge in self.edges(state).iter().filter(|edge| part[edge.to as usize] == own) {
                        cyclic = true;
                        sets |= edge.sets;
                        let groups = self.groups(fairness, edge.action);
                        taken.iter_mut().zip(&groups).for_each(|(taken, groups)| *taken |= groups);
                    }
                }
                if !cyclic || sets & acceptance.all != acceptance.all {
                    continue;
                }
                let owed = if fairness.strength == Strength::Weak { &everywhere } else { &somewhere };
                let missed: Vec<u64> = owed.iter().zip(&taken).map(|(owed, taken)| owed & !taken).collect();
                if missed.iter().all(|&word| word == 0) {
                    return self.walk(acceptance, fairness, &members, own, &part, &somewhere, control).map(Some);
                }
                if fairness.strength == Strength::Strong {
                    let stays = |&state: &u32| {
                        self.enabled(state).iter().zip(&missed).all(|(enabled, missed)| enabled & missed == 0)
                    };
                    let rest: Vec<u32> = members.iter().copied().filter(stays).collect();
                    rest.iter().for_each(|&state| part[state as usize] = next);
                    waiting.push((next, rest));
                    next += 1;
                }
            }
        }
        Ok(None)
    }

    /// The strongly connected components of the states of a part (Tarjan's algorithm).
    fn components(&self, states: &[u32], number: u32, part: &[u32], control: &Control) -> Result<Vec<Vec<u32>>, Stop> {
        const CLOSED: u32 = u32::MAX;
        let mut low: HashMap<u32, u32> = HashMap::with_capacity(states.len());
        let (mut live, mut calls): (Vec<u32>, Vec<(u32, usize, u32)>) = (Vec::new(), Vec::new());
        let mut found = Vec::new();
        let mut place = 1;
        for &root in states {
            if low.contains_key(&root) {
                continue;
            }
            control.ask()?;
            low.insert(root, place);
            live.push(root);
            calls.push((root, 0, place));
            place += 1;
            while let Some(call) = calls.last_mut() {
                let (state, own) = (call.0, call.2);
                if let Some(edge) = self.edges(state).get(call.1) {
                    call.1 += 1;
                    let to = edge.to;
                    if part[to as usize] != number {
                        continue;
                    }
                    match low.get(&to).copied() {
                        None => {
                            low.insert(to, place);
                            live.push(to);
                            calls.push((to, 0, place));
                            place += 1;
                        }
                        Some(CLOSED) => {}
                        Some(other) => {
                            low.entry(state).and_modify(|least| *least = (*least).min(other));
                        }
                    }
                    continue;
                }
                calls.pop();
                let least = low[&state];
                if let Some(&(caller, ..)) = calls.last() {
                    low.entry(caller).and_modify(|known| *known = (*known).min(least));
                }
                if least == own {
                    let mut members = Vec::new();
                    while let Some(member) = live.pop() {
                        low.insert(member, CLOSED);
                        members.push(member);
                        if member == state {
                            break;
                        }
                    }
                    found.push(members);
                }
            }
        }
        Ok(found)
    }

    /// A cycle inside a part that does for every group what it must, and takes an edge of each acceptance set.
    #[allow(clippy::too_many_arguments, reason = "all of it is known where the part was found to be fair")]
    fn walk(
        &self,
        acceptance: &Acceptance<'_>,
        fairness: &Fairness<'_>,
        members: &[u32],
        own: u32,
        part: &[u32],
        somewhere: &[u64],
        control: &Control,
    ) -> Result<FairPath, Stop> {
        let Some(&start) = members.iter().min() else { unreachable!("a component has states") };
        let everywhere = vec![1; part.len()];
        let to_start = self.path(0, &everywhere, 1, &mut |state, _| state == start, control)?;
        // What is still to be done. A group that is enabled nowhere needs nothing.
        let (mut sets, mut groups) = (acceptance.all, somewhere.to_vec());
        let weak = fairness.strength == Strength::Weak;
        let disabled = |groups: &mut [u64], state: u32| {
            if weak {
                groups.iter_mut().zip(self.enabled(state)).for_each(|(group, enabled)| *group &= enabled);
            }
        };
        disabled(&mut groups, start);
        let (mut cycle, mut current): (Vec<InnerEdge>, u32) = (Vec::new(), start);
        loop {
            let open = sets != 0 || groups.iter().any(|&word| word != 0);
            if !open && current == start && !cycle.is_empty() {
                break;
            }
            let mut helps = |to: u32, edge: &InnerEdge| {
                if !open {
                    return to == start;
                }
                let taken = self.groups(fairness, edge.action);
                let serves = |((&group, &taken), &enabled): ((&u64, &u64), &u64)| {
                    group & taken != 0 || (weak && group & !enabled != 0)
                };
                edge.sets & sets != 0 || groups.iter().zip(&taken).zip(self.enabled(to)).any(serves)
            };
            let path = self.path(current, part, own, &mut helps, control)?;
            for edge in &path {
                sets &= !edge.sets;
                let taken = self.groups(fairness, edge.action);
                groups.iter_mut().zip(&taken).for_each(|(group, taken)| *group &= !taken);
                disabled(&mut groups, edge.to);
                current = edge.to;
            }
            cycle.extend(path);
        }
        let actions = |path: Vec<InnerEdge>| path.into_iter().map(|edge| edge.action).collect();
        let to_start = if start == 0 { Vec::new() } else { to_start };
        Ok((actions(to_start), actions(cycle)))
    }

    /// A shortest path of one edge or more, inside a part, whose last edge satisfies `ends`.
    fn path(
        &self,
        from: u32,
        part: &[u32],
        own: u32,
        ends: &mut dyn FnMut(u32, &InnerEdge) -> bool,
        control: &Control,
    ) -> Result<Vec<InnerEdge>, Stop> {
        let mut came: HashMap<u32, (u32, InnerEdge)> = HashMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(source) = queue.pop_front() {
            control.stop_without_memory().map_or(Ok(()), Err)?;
            for edge in self.edges(source).iter().filter(|edge| part[edge.to as usize] == own) {
                if ends(edge.to, edge) {
                    let (mut path, mut at) = (vec![*edge], source);
                    while at != from {
                        let (before, edge) = came[&at];
                        path.push(edge);
                        at = before;
                    }
                    path.reverse();
                    return Ok(path);
                }
                if edge.to != from && !came.contains_key(&edge.to) {
                    came.insert(edge.to, (source, *edge));
                    queue.push_back(edge.to);
                }
            }
        }
        unreachable!("inside a component every state leads to every edge")
    }
}
