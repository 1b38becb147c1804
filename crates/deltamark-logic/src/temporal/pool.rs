//! Formulas of temporal logic, hash-consed.
//!
//! In: operators over formulas. Out: [`FormulaId`]s into a [`Pool`]. What stays true: a formula is in negation normal
//! form, equal formulas have equal ids, and children have smaller ids than their parents. Every rewriting is an
//! equivalence on infinite words.
//!
//! # Rules
//! Only conjunction and until are simplified; disjunction and release are their duals, so each rule is written once:
//! `a or b = not (not a and not b)`, `a R b = not (not a U not b)`. `F a` is `true U a`, `G a` is `false R a`,
//! `a W b = b R (a or b)`, `a M b = b U (a and b)`.
//!
//! A formula is *eventual* if `f = F f`, and *universal* if `f = G f` (K. Etessami, G. Holzmann, *Optimizing Büchi
//! Automata*, CONCUR 2000); what is both does not depend on finite prefixes. [`Pool::implies`] is a syntactic
//! sufficient test.

use std::collections::HashMap;

/// A formula of a [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FormulaId(pub(crate) u32);

/// What a formula is. Children are formulas of the same pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Formula {
    /// `true` or `false`.
    Truth(bool),
    /// An atom, or its negation if the flag is false.
    Literal(u32, bool),
    /// All of them; at least two, sorted.
    And(Box<[FormulaId]>),
    /// Some of them; at least two, sorted.
    Or(Box<[FormulaId]>),
    /// `X a`.
    Next(FormulaId),
    /// `a U b`.
    Until(FormulaId, FormulaId),
    /// `a R b`.
    Release(FormulaId, FormulaId),
    /// Some path from here.
    Exists(FormulaId),
    /// All paths from here.
    All(FormulaId),
}

#[derive(Clone, Copy)]
struct Traits {
    /// Whether its value depends on the first state alone.
    state: bool,
    eventual: bool,
    universal: bool,
}

/// What takes the place of a part of a formula that is copied, if anything does.
pub type Replacement<'a, E> = &'a mut dyn FnMut(&mut Pool, FormulaId) -> Result<Option<FormulaId>, E>;

/// The formulas of one or several properties.
#[derive(Clone, Default)]
pub struct Pool {
    nodes: Vec<Formula>,
    traits: Vec<Traits>,
    negations: Vec<Option<FormulaId>>,
    index: HashMap<Formula, FormulaId>,
    implied: HashMap<(FormulaId, FormulaId), bool>,
}

/// Conjunctions with more members are not compared pairwise.
const PAIRWISE: usize = 40;
/// The most pairs of formulas for which a pool finds out whether one implies the other.
const MOST_PAIRS: usize = 1 << 16;

impl Pool {
    /// The number of formulas. Each keeps its id; new ones come after them.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a formula is.
    pub fn get(&self, id: FormulaId) -> &Formula {
        &self.nodes[id.0 as usize]
    }

    /// The number of parts of a formula, each counted as often as it occurs.
    pub fn length(&self, id: FormulaId) -> u64 {
        let mut lengths: Vec<u64> = Vec::with_capacity(id.0 as usize + 1);
        for node in &self.nodes[..=id.0 as usize] {
            let of = |one: &FormulaId| lengths[one.0 as usize];
            lengths.push(match node {
                Formula::Truth(_) | Formula::Literal(..) => 1,
                Formula::And(list) | Formula::Or(list) => list.iter().map(of).fold(1, u64::saturating_add),
                Formula::Next(one) | Formula::Exists(one) | Formula::All(one) => of(one).saturating_add(1),
                Formula::Until(one, two) | Formula::Release(one, two) => {
                    of(one).saturating_add(of(two)).saturating_add(1)
                }
            });
        }
        lengths[id.0 as usize]
    }

    /// Whether the value of a formula depends on the first state alone.
    pub fn is_state(&self, id: FormulaId) -> bool {
        self.traits[id.0 as usize].state
    }

    fn is_eventual(&self, id: FormulaId) -> bool {
        self.traits[id.0 as usize].eventual
    }

    fn is_universal(&self, id: FormulaId) -> bool {
        self.traits[id.0 as usize].universal
    }

    fn node(&mut self, node: Formula) -> FormulaId {
        if let Some(&known) = self.index.get(&node) {
            return known;
        }
        let all = |list: &[FormulaId], of: fn(&Traits) -> bool| list.iter().all(|id| of(&self.traits[id.0 as usize]));
        let of = |id: FormulaId| self.traits[id.0 as usize];
        let is_truth = |id: FormulaId, truth: bool| self.nodes[id.0 as usize] == Formula::Truth(truth);
        let traits = match &node {
            Formula::Truth(_) => Traits { state: true, eventual: true, universal: true },
            Formula::Literal(..) | Formula::Exists(_) | Formula::All(_) => {
                Traits { state: true, eventual: false, universal: false }
            }
            Formula::And(list) | Formula::Or(list) => Traits {
                state: all(list, |one| one.state),
                eventual: all(list, |one| one.eventual),
                universal: all(list, |one| one.universal),
            },
            Formula::Next(inner) => Traits { state: false, ..of(*inner) },
            Formula::Until(left, right) => Traits {
                state: false,
                eventual: is_truth(*left, true) || of(*right).eventual,
                universal: of(*left).universal && of(*right).universal,
            },
            Formula::Release(left, right) => Traits {
                state: false,
                eventual: of(*left).eventual && of(*right).eventual,
                universal: is_truth(*left, false) || of(*right).universal,
            },
        };
        let id = FormulaId(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.traits.push(traits);
        self.negations.push(None);
        self.index.insert(node, id);
        id
    }

    /// `true` or `false`.
    pub fn truth(&mut self, truth: bool) -> FormulaId {
        self.node(Formula::Truth(truth))
    }

    /// An atom.
    pub fn atom(&mut self, atom: u32) -> FormulaId {
        self.node(Formula::Literal(atom, true))
    }

    /// `not a`.
    pub fn not(&mut self, id: FormulaId) -> FormulaId {
        if let Some(known) = self.negations[id.0 as usize] {
            return known;
        }
        let negation = match self.get(id).clone() {
            Formula::Truth(truth) => Formula::Truth(!truth),
            Formula::Literal(atom, positive) => Formula::Literal(atom, !positive),
            Formula::And(list) => Formula::Or(self.negated(&list)),
            Formula::Or(list) => Formula::And(self.negated(&list)),
            Formula::Next(inner) => Formula::Next(self.not(inner)),
            Formula::Until(left, right) => Formula::Release(self.not(left), self.not(right)),
            Formula::Release(left, right) => Formula::Until(self.not(left), self.not(right)),
            Formula::Exists(inner) => Formula::All(self.not(inner)),
            Formula::All(inner) => Formula::Exists(self.not(inner)),
        };
        let negation = self.node(negation);
        self.negations[id.0 as usize] = Some(negation);
        self.negations[negation.0 as usize] = Some(id);
        negation
    }

    fn negated(&mut self, list: &[FormulaId]) -> Box<[FormulaId]> {
        let mut list: Vec<FormulaId> = list.iter().map(|&one| self.not(one)).collect();
        list.sort_unstable();
        list.into()
    }

    /// All of these.
    pub fn and(&mut self, list: impl IntoIterator<Item = FormulaId>) -> FormulaId {
        let mut parts: Vec<FormulaId> = Vec::new();
        for one in list {
            match self.get(one) {
                Formula::And(inner) => parts.extend_from_slice(inner),
                _ => parts.push(one),
            }
        }
        self.join_always(&mut parts);
        parts.sort_unstable();
        parts.dedup();
        let (yes, no) = (self.truth(true), self.truth(false));
        parts.retain(|&one| one != yes);
        if parts.contains(&no) {
            return no;
        }
        for index in 0..parts.len() {
            let negation = self.not(parts[index]);
            if parts.binary_search(&negation).is_ok() {
                return no;
            }
        }
        if parts.len() <= PAIRWISE {
            let mut kept: Vec<FormulaId> = Vec::new();
            for (index, &one) in parts.iter().enumerate() {
                let rest = kept.clone().into_iter().chain(parts[index + 1..].iter().copied());
                let negation = self.not(one);
                let mut needless = false;
                for other in rest {
                    if self.implies(other, negation) {
                        return no;
                    }
                    needless |= self.implies(other, one);
                }
                if !needless {
                    kept.push(one);
                }
            }
            parts = kept;
        }
        match parts[..] {
            [] => yes,
            [one] => one,
            _ => self.node(Formula::And(parts.into())),
        }
    }

    /// `G a and G b = G (a and b)`, and the same for `FG`.
    fn join_always(&mut self, parts: &mut Vec<FormulaId>) {
        let (yes, no) = (self.truth(true), self.truth(false));
        let (mut always, mut finally_always) = (Vec::new(), Vec::new());
        for &one in parts.iter() {
            match *self.get(one) {
                Formula::Release(left, right) if left == no && !self.is_eventual(one) => always.push((one, right)),
                Formula::Until(left, right) if left == yes => {
                    if let Formula::Release(never, inner) = *self.get(right)
                        && never == no
                        && !self.is_eventual(right)
                    {
                        finally_always.push((one, inner));
                    }
                }
                _ => {}
            }
        }
        for (list, finally) in [(always, false), (finally_always, true)] {
            if list.len() < 2 {
                continue;
            }
            parts.retain(|one| !list.iter().any(|(whole, _)| whole == one));
            let inner = self.and(list.iter().map(|&(_, inner)| inner));
            let mut joined = self.always(inner);
            if finally {
                joined = self.finally(joined);
            }
            match self.get(joined) {
                Formula::And(inner) => parts.extend_from_slice(inner),
                _ => parts.push(joined),
            }
        }
    }

    /// Some of these.
    pub fn or(&mut self, list: impl IntoIterator<Item = FormulaId>) -> FormulaId {
        let list: Vec<FormulaId> = list.into_iter().map(|one| self.not(one)).collect();
        let neither = self.and(list);
        self.not(neither)
    }

    /// `X a`.
    pub fn next(&mut self, inner: FormulaId) -> FormulaId {
        if matches!(self.get(inner), Formula::Truth(_)) || (self.is_eventual(inner) && self.is_universal(inner)) {
            return inner;
        }
        self.node(Formula::Next(inner))
    }

    /// `a U b`.
    pub fn until(&mut self, left: FormulaId, right: FormulaId) -> FormulaId {
        let (yes, no) = (self.truth(true), self.truth(false));
        if right == yes || right == no || left == no || self.is_eventual(right) || self.implies(left, right) {
            return right;
        }
        if left != yes {
            let absent = self.not(right);
            if self.implies(absent, left) {
                return self.until(yes, right);
            }
            // a U (a U b), more generally a U (c U b) with a ⟹ c.
            if let Formula::Until(inner, _) = *self.get(right)
                && self.implies(left, inner)
            {
                return right;
            }
        } else {
            match self.get(right).clone() {
                // F (a U b) = F b.
                Formula::Until(_, goal) => return self.until(yes, goal),
                // F (a and s) = F a and s, where s does not depend on prefixes.
                Formula::And(list) => {
                    let (tail, rest): (Vec<_>, Vec<_>) =
                        list.iter().partition(|&&one| self.is_eventual(one) && self.is_universal(one));
                    if !tail.is_empty() {
                        let rest = self.and(rest);
                        let rest = self.until(yes, rest);
                        return self.and(tail.into_iter().chain([rest]));
                    }
                }
                // F (a or b) = F a or b, where b is eventual.
                Formula::Or(list) => {
                    let (eventual, rest): (Vec<_>, Vec<_>) = list.iter().partition(|&&one| self.is_eventual(one));
                    if !eventual.is_empty() && eventual.iter().all(|&one| !self.is_finally(one)) {
                        let rest = self.or(rest);
                        let rest = self.until(yes, rest);
                        return self.or(eventual.into_iter().chain([rest]));
                    }
                    if !eventual.is_empty() {
                        // F (a or F b) = F (a or b).
                        let inner: Vec<FormulaId> = list
                            .iter()
                            .map(|&one| match *self.get(one) {
                                Formula::Until(left, right) if left == yes => right,
                                _ => one,
                            })
                            .collect();
                        let inner = self.or(inner);
                        return self.until(yes, inner);
                    }
                }
                _ => {}
            }
        }
        self.node(Formula::Until(left, right))
    }

    fn is_finally(&self, id: FormulaId) -> bool {
        matches!(*self.get(id), Formula::Until(left, _) if *self.get(left) == Formula::Truth(true))
    }

    /// `a R b`.
    pub fn release(&mut self, left: FormulaId, right: FormulaId) -> FormulaId {
        let (left, right) = (self.not(left), self.not(right));
        let until = self.until(left, right);
        self.not(until)
    }

    /// `F a`.
    pub fn finally(&mut self, inner: FormulaId) -> FormulaId {
        let yes = self.truth(true);
        self.until(yes, inner)
    }

    /// `G a`.
    pub fn always(&mut self, inner: FormulaId) -> FormulaId {
        let no = self.truth(false);
        self.release(no, inner)
    }

    /// `E a`: a formula of states is its own value.
    pub fn exists(&mut self, inner: FormulaId) -> FormulaId {
        if self.is_state(inner) { inner } else { self.node(Formula::Exists(inner)) }
    }

    /// `A a`.
    pub fn all(&mut self, inner: FormulaId) -> FormulaId {
        if self.is_state(inner) { inner } else { self.node(Formula::All(inner)) }
    }

    /// The same formula in another pool, with some parts replaced: `part` is asked once of every part, outermost first,
    /// and returns what takes its place, if anything does.
    pub fn copy<E>(&mut self, from: &Pool, id: FormulaId, part: Replacement<'_, E>) -> Result<FormulaId, E> {
        self.copy_once(from, id, part, &mut HashMap::new())
    }

    /// The same; `copies` are those of parts that were met before. As a tree a formula may be exponentially larger.
    fn copy_once<E>(
        &mut self,
        from: &Pool,
        id: FormulaId,
        part: Replacement<'_, E>,
        copies: &mut HashMap<FormulaId, FormulaId>,
    ) -> Result<FormulaId, E> {
        if let Some(&known) = copies.get(&id) {
            return Ok(known);
        }
        let copy = match part(self, id)? {
            Some(copy) => copy,
            None => self.copy_whole(from, id, part, copies)?,
        };
        copies.insert(id, copy);
        Ok(copy)
    }

    fn copy_whole<E>(
        &mut self,
        from: &Pool,
        id: FormulaId,
        part: Replacement<'_, E>,
        copies: &mut HashMap<FormulaId, FormulaId>,
    ) -> Result<FormulaId, E> {
        Ok(match from.get(id) {
            Formula::Truth(truth) => self.truth(*truth),
            Formula::Literal(atom, positive) => {
                let atom = self.atom(*atom);
                if *positive { atom } else { self.not(atom) }
            }
            Formula::And(list) | Formula::Or(list) => {
                let list =
                    list.iter().map(|&one| self.copy_once(from, one, part, copies)).collect::<Result<Vec<_>, E>>()?;
                if matches!(from.get(id), Formula::And(_)) { self.and(list) } else { self.or(list) }
            }
            Formula::Next(inner) => {
                let inner = self.copy_once(from, *inner, part, copies)?;
                self.next(inner)
            }
            Formula::Until(left, right) | Formula::Release(left, right) => {
                let (left, right) =
                    (self.copy_once(from, *left, part, copies)?, self.copy_once(from, *right, part, copies)?);
                if matches!(from.get(id), Formula::Until(..)) {
                    self.until(left, right)
                } else {
                    self.release(left, right)
                }
            }
            Formula::Exists(inner) => {
                let inner = self.copy_once(from, *inner, part, copies)?;
                self.exists(inner)
            }
            Formula::All(inner) => {
                let inner = self.copy_once(from, *inner, part, copies)?;
                self.all(inner)
            }
        })
    }

    /// Whether `one` implies `two` for a syntactic reason. `false` means that none was found.
    pub fn implies(&mut self, one: FormulaId, two: FormulaId) -> bool {
        if one == two {
            return true;
        }
        match (self.get(one), self.get(two)) {
            (Formula::Truth(false), _) | (_, Formula::Truth(true)) => return true,
            (Formula::Literal(..), Formula::Literal(..)) => return false,
            _ => {}
        }
        if let Some(&known) = self.implied.get(&(one, two)) {
            return known;
        }
        // Of a large formula there are too many pairs.
        if self.implied.len() >= MOST_PAIRS {
            return false;
        }
        let found = self.derive(one, two);
        self.implied.insert((one, two), found);
        found
    }

    fn derive(&mut self, one: FormulaId, two: FormulaId) -> bool {
        let (left, right) = (self.get(one).clone(), self.get(two).clone());
        if let Formula::Or(list) = &left {
            return list.iter().all(|&part| self.implies(part, two));
        }
        if let Formula::And(list) = &right {
            return list.iter().all(|&part| self.implies(one, part));
        }
        if let Formula::And(list) = &left
            && list.iter().any(|&part| self.implies(part, two))
        {
            return true;
        }
        if let Formula::Or(list) = &right
            && list.iter().any(|&part| self.implies(one, part))
        {
            return true;
        }
        match (&left, &right) {
            (&Formula::Until(a, b), &Formula::Until(c, d)) if self.implies(a, c) && self.implies(b, d) => return true,
            (&Formula::Release(a, b), &Formula::Release(c, d)) if self.implies(a, c) && self.implies(b, d) => {
                return true;
            }
            (&Formula::Next(a), &Formula::Next(b)) if self.implies(a, b) => return true,
            (_, &Formula::Next(b)) if self.is_universal(one) && self.implies(one, b) => return true,
            (&Formula::Next(a), _) if self.is_eventual(two) && self.implies(a, two) => return true,
            _ => {}
        }
        let from_left = match left {
            Formula::Until(a, b) => self.implies(a, two) && self.implies(b, two),
            Formula::Release(_, b) => self.implies(b, two),
            _ => false,
        };
        from_left
            || match right {
                Formula::Until(_, d) => self.implies(one, d),
                Formula::Release(c, d) => self.implies(one, c) && self.implies(one, d),
                _ => false,
            }
    }

    /// The same formula with every maximal part that `replace` answers for replaced. Rebuilt bottom-up, so simplified
    /// again.
    pub fn rebuilt(
        &self,
        root: FormulaId,
        into: &mut Pool,
        replace: &mut dyn FnMut(&mut Pool, FormulaId) -> Option<FormulaId>,
    ) -> FormulaId {
        // Top-down: which nodes are needed; a replaced one needs no children.
        let mut done: HashMap<FormulaId, FormulaId> = HashMap::new();
        let mut stack = vec![(root, false)];
        while let Some((id, ready)) = stack.pop() {
            if done.contains_key(&id) {
                continue;
            }
            if !ready {
                if let Some(given) = replace(into, id) {
                    done.insert(id, given);
                    continue;
                }
                stack.push((id, true));
                match self.get(id) {
                    Formula::Truth(_) | Formula::Literal(..) => {}
                    Formula::And(list) | Formula::Or(list) => stack.extend(list.iter().map(|&one| (one, false))),
                    Formula::Next(one) | Formula::Exists(one) | Formula::All(one) => stack.push((*one, false)),
                    Formula::Until(one, two) | Formula::Release(one, two) => {
                        stack.extend([(*one, false), (*two, false)]);
                    }
                }
                continue;
            }
            let of = |one: &FormulaId| done[one];
            let made = match self.get(id) {
                Formula::Truth(truth) => into.truth(*truth),
                Formula::Literal(atom, positive) => into.node(Formula::Literal(*atom, *positive)),
                Formula::And(list) => into.and(list.iter().map(of).collect::<Vec<_>>()),
                Formula::Or(list) => into.or(list.iter().map(of).collect::<Vec<_>>()),
                Formula::Next(one) => into.next(of(one)),
                Formula::Exists(one) => into.exists(of(one)),
                Formula::All(one) => into.all(of(one)),
                Formula::Until(one, two) => into.until(of(one), of(two)),
                Formula::Release(one, two) => into.release(of(one), of(two)),
            };
            done.insert(id, made);
        }
        done[&root]
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
