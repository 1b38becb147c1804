//! Finds the enabled bindings of a state.
//!
//! In: the plans of the transitions, and the marking of each place. Out: actions. What stays true: whatever
//! depends on tokens alone is computed once and memoised in a trie, so that a state costs a walk along the
//! tokens that are present.
//!
//! ```text
//! sent: <(s,r)>   inactive: <(r)>
//!
//! root ──(0,1)──▶ [ inactive must hold 1 ] ▶ action 7
//!      ──(0,2)──▶ [ inactive must hold 2 ] ▶ action 8
//!      ──(1,1)──▶ dead: the guard is false
//! ```
//!
//! A node represents values of the first variables. From a node that binds by a place's tokens, each token
//! leads to a child, created when the token first occurs there. If components of the term are known at the
//! node, only tokens with these components are tried: they are listed by place, positions and values
//! ([`Postings`]), and the lists grow with the tokens of the place.
//!
//! A thread has its own tries. Their size depends on combinations of tokens, not of markings.
//!
//! An evaluation that fails on the way is a fault of the state only if the state has tokens for the other
//! inputs too ([`Doubt`]).

use std::sync::Arc;

use deltamark_core::{Control, Stop};

use crate::bindings::doubt::Doubt;
use crate::bindings::plan::{ComponentMatch, PlanStep};
use crate::bindings::postings::Postings;
use crate::engine::{Counts, Engine};
use crate::expressions::eval::Eval;
use crate::net::{Domain, Fault, FaultKind};
use crate::tables::actions::Claim;
use crate::tables::place::{PlaceTable, View};
use crate::tables::values::Code;

/// A child that has not been computed.
const UNKNOWN: u32 = u32::MAX;
/// A child without bindings.
const DEAD: u32 = u32::MAX - 1;
/// Lists of up to this many tokens are looked up in a marking one by one.
const FEW_MATCHES: usize = 4;
/// The maximum number of values of a pick.
const MOST_PICKED: usize = 1 << 20;
/// The maximum number of combinations of picked values tried for one combination of tokens.
const MOST_COMBINATIONS: usize = 1 << 20;

/// The tokens required to reach a node, and where it leads.
struct TrieNode {
    checks: (u32, u32),
    next: Next,
}

#[derive(Clone, Copy)]
enum Next {
    /// All variables are bound.
    Action(u32),
    /// All are bound, and the rest depends on the state.
    Late(u32),
    /// Evaluation failed: a fault if there are tokens for the other inputs.
    Fault(u32),
    /// The tokens of a place are tried.
    Bind(u32),
    /// All of these are tried.
    Pick(u32),
}

/// A node that binds by a token.
struct BindNode {
    step: u32,
    place: u32,
    frame: Box<[Code]>,
    claims: Box<[Claim]>,
    /// The candidate tokens: a list of the step's postings, or all.
    list: Option<(u32, u32)>,
    /// With a list: the number of tokens of the place when the list was last updated.
    seen: u32,
    /// Without a list: the child for each token of the place.
    children: Vec<u32>,
    /// With a list: its tokens in ascending order, each with its child.
    matches: Vec<(u32, u32)>,
    /// With a list: bit `k mod 64` for each of these tokens `k`; without one all bits.
    mask: u64,
    /// Tokens below 64 whose child is dead.
    dead: u64,
}

/// The trie of one transition.
#[derive(Default)]
struct Trie {
    nodes: Vec<TrieNode>,
    checks: Vec<Claim>,
    binds: Vec<BindNode>,
    picks: Vec<Vec<u32>>,
    faults: Vec<Doubt>,
    /// The postings of each step that binds with a key.
    postings: Vec<Option<u32>>,
    root: u32,
}

/// The tokens of a marking, decoded from its list.
#[derive(Default)]
struct Read {
    view: Option<View>,
    tokens: Vec<u32>,
}

impl Read {
    /// Decodes the tokens of a marking, unless it was decoded last: transitions often use the same place.
    #[inline]
    fn bring(&mut self, table: &PlaceTable, view: View) {
        if self.view != Some(view) {
            self.view = Some(view);
            self.tokens.clear();
            self.tokens.extend(table.tokens_of(view).map(|(token, _)| token));
        }
    }
}

/// The tries of one thread.
pub(crate) struct Binder {
    tries: Vec<Trie>,
    postings: Vec<Postings>,
    /// Bytes allocated since they were last counted exactly.
    grown: usize,
    counts: Counts,
    /// The [`View`]s of the current state's places; of those at least that are needed.
    views: Vec<View>,
    /// For each place the tokens decoded last.
    read: Vec<Read>,
    /// The number of picked values tried for the current tokens.
    combinations: usize,
    /// Whether to return bindings that only the state could rule out.
    pub candidates: bool,
    /// The number of nodes that may be visited before `control` is polled again; at 0 the result is
    /// incomplete.
    left: usize,
    /// The number of visits allowed after that.
    later: usize,
    /// Visits between two polls.
    slice: usize,
    control: Option<Arc<Control>>,
    stop: Option<Stop>,
}

/// Visits between two polls while a net is unfolded and most nodes are new.
const SLICE_OF_NEW: usize = 8;
/// The same in a search, where nearly all nodes exist.
const SLICE: usize = 256;

impl Binder {
    /// Empty tries.
    pub fn new(engine: &Engine) -> Self {
        let mut binder = Binder {
            tries: Vec::new(),
            postings: Vec::new(),
            grown: 0,
            counts: Counts::new(),
            views: vec![View::default(); engine.places.len()],
            read: engine.places.iter().map(|_| Read::default()).collect(),
            combinations: 0,
            candidates: false,
            left: usize::MAX,
            later: 0,
            slice: SLICE_OF_NEW,
            control: None,
            stop: None,
        };
        for plan in &engine.plans {
            let mut trie = Trie { root: UNKNOWN, ..Trie::default() };
            for step in &plan.steps {
                let PlanStep::Bind { place, parts, .. } = step else {
                    trie.postings.push(None);
                    continue;
                };
                let keyed = |(at, part): (usize, &ComponentMatch)| matches!(part, ComponentMatch::Key(_)).then_some(at);
                let positions: Vec<usize> = parts.iter().enumerate().filter_map(keyed).collect();
                let place = place.0 as usize;
                trie.postings.push((!positions.is_empty()).then(|| {
                    let known = |known: &Postings| known.place == place && known.positions == positions;
                    binder.postings.iter().position(known).unwrap_or_else(|| {
                        binder.postings.push(Postings::new(place, positions));
                        binder.postings.len() - 1
                    }) as u32
                }));
            }
            binder.tries.push(trie);
        }
        binder
    }

    /// Visits at most this many nodes from now on, and stops when `control` does.
    pub fn limit(&mut self, visits: usize, control: &Control) {
        (self.left, self.later, self.control) = (0, visits, Some(Arc::new(control.clone())));
    }

    /// Stops when `control` does. The bindings found by then are incomplete, and the binder must not be
    /// reused.
    pub fn watch(&mut self, control: &Control) {
        (self.left, self.later, self.slice) = (0, usize::MAX, SLICE);
        self.control = Some(Arc::new(control.clone()));
    }

    /// Whether the limit was reached, so that the bindings found are incomplete.
    pub fn is_spent(&self) -> bool {
        self.left + self.later == 0
    }

    /// Why the search for bindings was stopped, if it was.
    pub fn stopped(&self) -> Option<Stop> {
        self.stop
    }

    /// Whether more nodes may be visited.
    #[cold]
    fn goes_on(&mut self) -> bool {
        if self.stop.is_none()
            && let Some(control) = &self.control
        {
            self.stop = control.check().err();
        }
        if self.stop.is_some() {
            self.later = 0;
        }
        self.left = self.later.min(self.slice);
        self.later -= self.left;
        self.left > 0
    }

    /// Ends the search if the run ended while something was evaluated.
    fn mind(&mut self, fault: &Fault) {
        if fault.kind == FaultKind::Stopped {
            self.stop = self.control.as_ref().and_then(|control| control.stop_without_memory());
            (self.left, self.later) = (0, 0);
        }
    }

    /// Counts the bytes of a node. A node of a transition with thousands of arcs takes many, so that
    /// `control` is polled after a few of them: after [`SLICE`] pages.
    fn take(&mut self, bytes: usize) {
        const PAGE: usize = 4096;
        self.grown += bytes;
        let spent = self.left.min(bytes / PAGE);
        (self.left, self.later) = (self.left - spent, self.later + spent);
    }

    /// Appends the enabled actions of a state, priorities aside, and the faults found on the way.
    pub fn enabled(&mut self, engine: &Engine, markings: &[u32], found: &mut Vec<u32>, faults: &mut Vec<(u32, Fault)>) {
        for (view, (place, &marking)) in self.views.iter_mut().zip(engine.places.iter().zip(markings)) {
            *view = place.view(marking);
        }
        for transition in 0..self.tries.len() {
            self.enabled_of(engine, transition, markings, found, faults);
        }
    }

    /// Views the places that the transitions queried next depend on.
    pub fn view(&mut self, engine: &Engine, places: &[u32], markings: &[u32]) {
        for &place in places {
            self.views[place as usize] = engine.places[place as usize].view(markings[place as usize]);
        }
    }

    /// Sets the view of a place.
    #[inline]
    pub fn put_view(&mut self, place: u32, view: View) {
        self.views[place as usize] = view;
    }

    /// Appends the enabled actions of one transition, whose places have been viewed.
    pub fn enabled_of(
        &mut self,
        engine: &Engine,
        transition: usize,
        markings: &[u32],
        found: &mut Vec<u32>,
        faults: &mut Vec<(u32, Fault)>,
    ) {
        if self.tries[transition].root == UNKNOWN {
            let mut frame = vec![0; engine.plans[transition].frame];
            self.combinations = 0;
            let root = self.grow(engine, transition, 0, &mut frame, Vec::new(), &[], None);
            self.tries[transition].root = root;
        }
        let root = self.tries[transition].root;
        if root != DEAD {
            self.visit(engine, transition, root, markings, found, faults);
        }
    }

    /// Goes on from a node if its requirements are met.
    #[inline]
    fn visit(
        &mut self,
        engine: &Engine,
        transition: usize,
        node: u32,
        markings: &[u32],
        found: &mut Vec<u32>,
        faults: &mut Vec<(u32, Fault)>,
    ) {
        if self.left == 0 && !self.goes_on() {
            return;
        }
        self.left -= 1;
        let trie = &self.tries[transition];
        let TrieNode { checks: (from, to), next } = trie.nodes[node as usize];
        for &(place, token, count) in &trie.checks[from as usize..to as usize] {
            let view = self.views[place as usize];
            if view.set >> (token & 63) & 1 == 0
                || (count > 1 || !view.exact || token > 63)
                    && engine.places[place as usize].count_of(view, token) < count
            {
                return;
            }
        }
        match next {
            Next::Action(action) => found.push(action),
            next => self.walk(engine, transition, next, markings, found, faults),
        }
    }

    fn walk(
        &mut self,
        engine: &Engine,
        transition: usize,
        next: Next,
        markings: &[u32],
        found: &mut Vec<u32>,
        faults: &mut Vec<(u32, Fault)>,
    ) {
        let trie = &self.tries[transition];
        match next {
            Next::Action(action) => found.push(action),
            Next::Late(action) => {
                if !self.candidates {
                    match engine.allowed(action, markings, self.control.as_deref()) {
                        Ok(true) => {}
                        Ok(false) => return,
                        Err(fault) => {
                            self.mind(&fault);
                            return faults.push((transition as u32, fault));
                        }
                    }
                }
                found.push(action);
            }
            Next::Fault(number) => {
                let doubt = &trie.faults[number as usize];
                if doubt.counts(engine, transition, markings) {
                    faults.push((transition as u32, doubt.fault.clone()));
                }
            }
            Next::Pick(number) => {
                for at in 0..trie.picks[number as usize].len() {
                    let child = self.tries[transition].picks[number as usize][at];
                    self.visit(engine, transition, child, markings, found, faults);
                }
            }
            Next::Bind(number) => {
                let bind = &trie.binds[number as usize];
                let view = self.views[bind.place as usize];
                let table = &engine.places[bind.place as usize];
                if view.set == 0 {
                    return;
                }
                if let Some((postings, list)) = bind.list
                    && bind.seen != table.token_count()
                {
                    self.extend(engine, transition, number, postings, list);
                }
                let bind = &self.tries[transition].binds[number as usize];
                let (listed, mask) = (bind.list.is_some(), bind.mask);
                let mut rest = view.set & mask & !bind.dead;
                // Tokens may be added during the walk, so the list can be ahead of the set.
                if view.exact && bind.matches.last().is_none_or(|&(token, _)| token < 64) {
                    while rest != 0 {
                        let token = rest.trailing_zeros();
                        rest &= rest - 1;
                        let at = if listed { (mask & ((1 << token) - 1)).count_ones() } else { token } as usize;
                        self.follow(engine, transition, number, at, token, markings, found, faults);
                    }
                } else if !listed {
                    let place = bind.place as usize;
                    self.read[place].bring(table, view);
                    for at in 0..self.read[place].tokens.len() {
                        let token = self.read[place].tokens[at];
                        self.follow(engine, transition, number, token as usize, token, markings, found, faults);
                    }
                } else if view.set & mask != 0 {
                    let many = bind.matches.len();
                    if (FEW_MATCHES + 1..=2 * table.length_of(view)).contains(&many) {
                        // Both are ascending, so one merge finds their intersection.
                        let mut at = 0;
                        for (token, _) in table.tokens_of(view) {
                            let matches = &self.tries[transition].binds[number as usize].matches[at..];
                            let below = matches.iter().take_while(|&&(known, _)| known < token).count();
                            let Some(&(known, child)) = matches.get(below) else { break };
                            at += below;
                            if known == token && child != DEAD {
                                self.follow(engine, transition, number, at, token, markings, found, faults);
                            }
                        }
                    } else if many <= FEW_MATCHES {
                        for at in 0..many {
                            let (token, child) = self.tries[transition].binds[number as usize].matches[at];
                            if child != DEAD && view.set >> (token & 63) & 1 == 1 && table.count_of(view, token) > 0 {
                                self.follow(engine, transition, number, at, token, markings, found, faults);
                            }
                        }
                    } else {
                        for (token, _) in table.tokens_of(view) {
                            let matches = &self.tries[transition].binds[number as usize].matches;
                            if mask >> (token & 63) & 1 == 1
                                && let Ok(at) = matches.binary_search_by_key(&token, |&(token, _)| token)
                            {
                                self.follow(engine, transition, number, at, token, markings, found, faults);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Visits a child unless it is dead, creating it first if it is unknown. `at` is its position in the
    /// node.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn follow(
        &mut self,
        engine: &Engine,
        transition: usize,
        bind: u32,
        at: usize,
        token: u32,
        markings: &[u32],
        found: &mut Vec<u32>,
        faults: &mut Vec<(u32, Fault)>,
    ) {
        let node = &self.tries[transition].binds[bind as usize];
        let mut child =
            if node.list.is_some() { node.matches[at].1 } else { node.children.get(at).copied().unwrap_or(UNKNOWN) };
        if child == UNKNOWN {
            if self.left == 0 && !self.goes_on() {
                return;
            }
            child = self.make(engine, transition, bind, at, token);
        }
        if child != DEAD {
            self.visit(engine, transition, child, markings, found, faults);
        }
    }

    /// Creates an unknown child and stores it in the node.
    #[cold]
    #[inline(never)]
    fn make(&mut self, engine: &Engine, transition: usize, bind: u32, at: usize, token: u32) -> u32 {
        let child = self.child(engine, transition, bind, token);
        let node = &mut self.tries[transition].binds[bind as usize];
        if node.list.is_some() {
            node.matches[at].1 = child;
        } else {
            if at >= node.children.len() {
                self.grown += 4 * (at + 1 - node.children.len());
                node.children.resize(at + 1, UNKNOWN);
            }
            node.children[at] = child;
        }
        if child == DEAD && token < 64 {
            node.dead |= 1 << token;
        }
        child
    }

    /// Lists the tokens added since the node was last visited.
    #[inline(never)]
    fn extend(&mut self, engine: &Engine, transition: usize, bind: u32, postings: u32, list: u32) {
        let postings = &mut self.postings[postings as usize];
        if postings.covered < engine.places[postings.place].token_count() {
            postings.refresh(engine);
        }
        let tokens = &postings.tokens[list as usize];
        let bind = &mut self.tries[transition].binds[bind as usize];
        bind.seen = postings.covered;
        let known = bind.matches.len();
        if known < tokens.len() {
            self.grown += 8 * (tokens.len() - known);
            bind.matches.extend(tokens[known..].iter().map(|&token| (token, UNKNOWN)));
            bind.mask |= tokens[known..].iter().fold(0, |mask, &token| mask | 1 << (token & 63));
        }
    }

    /// The child of a binding node for a token.
    #[cold]
    fn child(&mut self, engine: &Engine, transition: usize, bind: u32, token: u32) -> u32 {
        let node = &self.tries[transition].binds[bind as usize];
        let PlanStep::Bind { place, factor, parts, given } = &engine.plans[transition].steps[node.step as usize] else {
            unreachable!("a node that binds stands for a step that binds")
        };
        let step = node.step as usize;
        let mut frame = node.frame.to_vec();
        let before = node.claims.to_vec();
        let table = &engine.places[place.0 as usize];
        let mut equal = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let code = table.component(token, at);
            match part {
                ComponentMatch::Bind(var) => frame[var.0 as usize] = code,
                ComponentMatch::Parts(pattern) => {
                    if !pattern.take(&engine.values, code, &mut frame, &mut equal) {
                        return DEAD;
                    }
                }
                ComponentMatch::Back { variable, low, high, by } => {
                    if !(Code::from(*low)..=Code::from(*high)).contains(&code) {
                        return DEAD;
                    }
                    let size = Code::from(*high) - Code::from(*low) + 1;
                    frame[variable.0 as usize] =
                        Code::from(*low) + (code - Code::from(*low) - Code::from(*by)).rem_euclid(size);
                }
                ComponentMatch::Key(_) | ComponentMatch::Match(_) => {}
            }
        }
        for &(var, value) in given {
            frame[var.0 as usize] = value;
        }
        let control = self.control.clone();
        let mut eval = Eval::new(&engine.net.functions, &engine.values, None).under(control.as_deref());
        let mut wrong = None;
        for (at, part) in parts.iter().enumerate() {
            if let ComponentMatch::Match(expression) = part {
                equal.push((expression, table.component(token, at)));
            }
        }
        for (expression, expected) in equal {
            match eval.eval(expression, &mut frame) {
                Ok(code) if code == expected => {}
                Ok(_) => return DEAD,
                Err(fault) => wrong = wrong.or(Some(fault)),
            }
        }
        let mut claims = before.clone();
        claim(&mut claims, place.0, token, *factor);
        if let Some(fault) = wrong {
            let doubt = Doubt::new(fault, step + 1, &frame, &claims);
            return self.fault_after(transition, doubt, &before, Some((place.0, token)));
        }
        self.combinations = 0;
        self.grow(engine, transition, step + 1, &mut frame, claims, &before, Some((place.0, token)))
    }

    /// Creates the node reached by the steps from `step` on. `present` is known to be in its place; `before`
    /// was checked on the way.
    #[allow(clippy::too_many_arguments)]
    fn grow(
        &mut self,
        engine: &Engine,
        transition: usize,
        mut step: usize,
        frame: &mut [Code],
        mut claims: Vec<Claim>,
        before: &[Claim],
        present: Option<(u32, u32)>,
    ) -> u32 {
        let plan = &engine.plans[transition];
        let control = self.control.clone();
        let mut eval = Eval::new(&engine.net.functions, &engine.values, None).under(control.as_deref());
        let next = loop {
            match plan.steps.get(step) {
                None => {
                    let action = match engine.action(transition as u32, frame, &claims, control.as_deref()) {
                        Ok(action) => action,
                        Err(fault) => return self.fault_at(transition, fault, step, frame, &claims, before, present),
                    };
                    let known = engine.actions.get(action);
                    let late = known.inhibited() || known.is_late();
                    break if late { Next::Late(action) } else { Next::Action(action) };
                }
                Some(PlanStep::Test(test)) => match eval.truth(test, frame) {
                    Ok(true) => {}
                    Ok(false) => return DEAD,
                    Err(fault) => {
                        let doubt = Doubt::new(fault, step + 1, frame, &claims).of_guard();
                        return self.fault_after(transition, doubt, before, present);
                    }
                },
                Some(PlanStep::Let(var, value)) => match eval.eval(value, frame) {
                    Ok(value) => frame[var.0 as usize] = value,
                    Err(fault) => return self.fault_at(transition, fault, step, frame, &claims, before, present),
                },
                Some(PlanStep::Require(terms)) => {
                    let known = claims.clone();
                    let mut counts = std::mem::take(&mut self.counts);
                    counts.clear();
                    let count = |term| engine.count(term, frame, &mut counts, control.as_deref());
                    let mut wrong = terms.iter().map(count).find_map(Result::err);
                    // Factor 0 requires the token to be present; `x - x` does not.
                    let subtracts = terms.iter().any(|term| term.factor < 0);
                    for (&(place, token), &count) in counts.iter().filter(|&(_, &count)| count != 0 || !subtracts) {
                        match u32::try_from(count) {
                            Ok(count) => claim(&mut claims, place, token, count),
                            Err(_) => {
                                let kind = FaultKind::NegativeCount;
                                wrong = wrong.or(terms.first().map(|term| Fault { kind, span: term.span }));
                            }
                        }
                    }
                    self.counts = counts;
                    if let Some(fault) = wrong {
                        return self.fault_at(transition, fault, step, frame, &known, before, present);
                    }
                }
                Some(PlanStep::Bind { place, parts, given, .. }) => {
                    let list = match self.tries[transition].postings[step] {
                        None => None,
                        Some(postings) => {
                            for &(var, value) in given {
                                frame[var.0 as usize] = value;
                            }
                            let mut key = Vec::new();
                            for part in parts {
                                if let ComponentMatch::Key(expression) = part {
                                    match eval.eval(expression, frame) {
                                        Ok(code) => key.push(code),
                                        Err(fault) => {
                                            return self
                                                .fault_at(transition, fault, step, frame, &claims, before, present);
                                        }
                                    }
                                }
                            }
                            Some((postings, self.postings[postings as usize].list(key.into())))
                        }
                    };
                    self.take(size_of::<BindNode>() + frame.len() * 8 + claims.len() * 12);
                    let node = BindNode {
                        step: step as u32,
                        place: place.0,
                        frame: frame.into(),
                        claims: claims.clone().into(),
                        list,
                        seen: u32::MAX,
                        children: Vec::new(),
                        matches: Vec::new(),
                        mask: if list.is_some() { 0 } else { u64::MAX },
                        dead: 0,
                    };
                    self.tries[transition].binds.push(node);
                    break Next::Bind(self.tries[transition].binds.len() as u32 - 1);
                }
                Some(PlanStep::Pick(var, domain)) => {
                    let mut children = Vec::new();
                    let values = match picked(engine, &mut eval, domain, frame) {
                        Ok(values) => values,
                        Err(fault) => return self.fault_at(transition, fault, step, frame, &claims, before, present),
                    };
                    for value in values {
                        self.combinations += 1;
                        // The limit on nodes also limits the values.
                        if self.combinations > self.left.saturating_add(self.later) {
                            (self.left, self.later) = (0, 0);
                            return DEAD;
                        }
                        if let Some(control) = &self.control
                            && let Err(stop) = control.ask()
                        {
                            (self.left, self.later, self.stop) = (0, 0, Some(stop));
                            return DEAD;
                        }
                        if self.combinations > MOST_COMBINATIONS {
                            let fault =
                                Fault { kind: FaultKind::Untried, span: engine.net.transitions[transition].span };
                            return self.fault_at(transition, fault, step, frame, &claims, before, present);
                        }
                        let mut inner = frame.to_vec();
                        inner[var.0 as usize] = value;
                        // The claims so far are checked at this node, not again at each child.
                        let child = self.grow(engine, transition, step + 1, &mut inner, claims.clone(), &claims, None);
                        if child != DEAD {
                            children.push(child);
                        }
                    }
                    self.grown += 4 * children.len() + 24;
                    let trie = &mut self.tries[transition];
                    trie.picks.push(children);
                    break Next::Pick(trie.picks.len() as u32 - 1);
                }
            }
            step += 1;
        };
        self.node(transition, next, &claims, before, present)
    }

    /// The node of a step whose evaluation fails.
    #[allow(clippy::too_many_arguments)]
    fn fault_at(
        &mut self,
        transition: usize,
        fault: Fault,
        step: usize,
        frame: &[Code],
        claims: &[Claim],
        before: &[Claim],
        present: Option<(u32, u32)>,
    ) -> u32 {
        self.fault_after(transition, Doubt::new(fault, step, frame, claims), before, present)
    }

    fn fault_after(&mut self, transition: usize, doubt: Doubt, before: &[Claim], present: Option<(u32, u32)>) -> u32 {
        self.mind(&doubt.fault);
        self.grown += doubt.bytes();
        let claims = doubt.claims.clone();
        let trie = &mut self.tries[transition];
        trie.faults.push(doubt);
        let next = Next::Fault(trie.faults.len() as u32 - 1);
        self.node(transition, next, &claims, before, present)
    }

    fn node(
        &mut self,
        transition: usize,
        next: Next,
        claims: &[Claim],
        before: &[Claim],
        present: Option<(u32, u32)>,
    ) -> u32 {
        let trie = &mut self.tries[transition];
        let from = trie.checks.len() as u32;
        for (number, &(place, token, count)) in claims.iter().enumerate() {
            let count = count.max(1);
            let checked = before.get(number).is_some_and(|&(_, _, known)| known.max(1) >= count);
            let implied = count == 1 && present == Some((place, token));
            if !checked && !implied {
                trie.checks.push((place, token, count));
            }
        }
        trie.nodes.push(TrieNode { checks: (from, trie.checks.len() as u32), next });
        self.grown += size_of::<TrieNode>() + 12 * (trie.checks.len() - from as usize);
        trie.nodes.len() as u32 - 1
    }

    /// Bytes allocated since the last call.
    pub fn take_grown(&mut self) -> usize {
        std::mem::take(&mut self.grown)
    }

    /// The bytes currently held.
    pub fn bytes(&self) -> usize {
        let trie = |trie: &Trie| {
            let binds: usize = trie
                .binds
                .iter()
                .map(|bind| {
                    bind.frame.len() * 8
                        + bind.claims.len() * 12
                        + bind.children.capacity() * 4
                        + bind.matches.capacity() * 8
                })
                .sum();
            let picks: usize = trie.picks.iter().map(|pick| pick.capacity() * 4).sum();
            binds
                + picks
                + trie.binds.capacity() * size_of::<BindNode>()
                + trie.picks.capacity() * size_of::<Vec<u32>>()
                + trie.nodes.capacity() * size_of::<TrieNode>()
                + trie.checks.capacity() * size_of::<Claim>()
                + trie.faults.iter().map(Doubt::bytes).sum::<usize>()
        };
        self.tries.iter().map(trie).sum::<usize>() + self.postings.iter().map(Postings::bytes).sum::<usize>()
    }
}

/// Adds to the claims on a token.
pub(crate) fn claim(claims: &mut Vec<Claim>, place: u32, token: u32, count: u32) {
    match claims.iter_mut().find(|known| (known.0, known.1) == (place, token)) {
        Some(known) => known.2 = known.2.saturating_add(count),
        None => claims.push((place, token, count)),
    }
}

/// The values of a pick, each once.
pub(crate) fn picked(
    engine: &Engine,
    eval: &mut Eval<'_>,
    domain: &Domain,
    frame: &mut [Code],
) -> Result<Vec<Code>, Fault> {
    let (mut values, span) = match domain {
        Domain::Range(low, high) => {
            let (from, to) = (eval.eval(low, frame)?, eval.eval(high, frame)?);
            ((from..=to).take(MOST_PICKED + 1).collect::<Vec<_>>(), low.span)
        }
        Domain::Elements(of) => {
            let container = eval.eval(of, frame)?;
            (engine.values.elements(container).collect(), of.span)
        }
        Domain::Place(_) => (Vec::new(), deltamark_core::Span::at(0)),
    };
    if values.len() > MOST_PICKED {
        return Err(Fault { kind: FaultKind::Untried, span });
    }
    let mut seen = std::collections::HashSet::new();
    values.retain(|value| seen.insert(*value));
    Ok(values)
}
