//! Ids from before a layout change.
//!
//! In: the old tree, and the recoding to the new layout. Out: the state of an old id. Invariant:
//! ids from before the change stay valid, and no new id equals any of them.
//!
//! ```text
//! ids kept      by id    (id, code) (id, code) …        sorted, 16 bytes a state each
//!               by code  (code, id) (code, id) …
//! not kept      the halves of before, without roots ── decode ── translate ──▶ a state of the new layout
//! ```
//! A state inserted after the change has the id `base + code`. Most layout changes happen while
//! there are few states; then all duplicates are reported with their old id. So they are if values
//! are attached to ids. Otherwise, if there are many, two numbers per state would be several times
//! the tree: then only the halves are kept, and duplicates are nameless. Frontier states keep their
//! old ids, and the halves suffice to decode them; in a level-by-level search they are freed after
//! two levels.

use super::tables::CompactTables;
use deltamark_core::{Budget, Recoding, Slot, StateId, States};
use std::sync::Arc;

/// Up to this many states all ids are kept.
const FEW: u64 = 1 << 14;

/// Ids from before.
#[derive(Default)]
pub(crate) struct Past {
    kind: PastKind,
    /// New ids begin here.
    base: u64,
    /// Levels that have ended since.
    levels: u32,
}

#[derive(Default)]
enum PastKind {
    /// The layout never changed.
    #[default]
    None,
    Kept(Kept),
    Former(Box<Former>),
    /// Ids were not kept, and nobody waits under an old id any more.
    Gone,
}

struct Kept {
    by_id: Vec<(u64, u64)>,
    by_code: Vec<(u64, u64)>,
}

/// A tree whose roots are gone, and how its states read now.
struct Former {
    tables: CompactTables,
    recoding: Recoding,
}

impl Past {
    /// Whether `states` are few enough for their ids to be kept.
    pub fn keeps_ids(states: u64) -> bool {
        states <= FEW
    }

    /// The bytes of the ids of `states` states.
    pub fn cost(states: u64) -> u64 {
        states * 2 * size_of::<(u64, u64)>() as u64
    }

    /// That of states whose ids are kept, by pairs of id and code; new ids begin behind all old ones. The budget has
    /// granted what it [costs](Self::cost).
    pub fn kept(mut by_id: Vec<(u64, u64)>, base: u64) -> Self {
        let mut by_code: Vec<(u64, u64)> = by_id.iter().map(|&(id, code)| (code, id)).collect();
        by_id.sort_unstable();
        by_code.sort_unstable();
        Past { kind: PastKind::Kept(Kept { by_id, by_code }), base, levels: 0 }
    }

    /// That of a tree whose roots are gone.
    pub fn former(tables: CompactTables, recoding: Recoding) -> Self {
        let base = tables.past.base + tables.reach(0).limit();
        Past { kind: PastKind::Former(Box::new(Former { tables, recoding })), base, levels: 0 }
    }

    /// The bytes it holds.
    pub fn bytes(&self) -> u64 {
        match &self.kind {
            PastKind::None | PastKind::Gone => 0,
            PastKind::Kept(kept) => Self::cost(kept.by_id.len() as u64),
            PastKind::Former(former) => former.tables.bytes().total(),
        }
    }

    /// Gives its bytes back.
    pub fn release(&mut self, budget: &Arc<Budget>) {
        match &mut self.kind {
            PastKind::None | PastKind::Gone => {}
            PastKind::Kept(_) => budget.release(self.bytes()),
            PastKind::Former(former) => former.tables.release(budget),
        }
        *self = Past::default();
    }

    /// Notes that a level has ended. States of the level in which the layout changed and of the next one wait under old ids;
    /// after that nobody does.
    pub fn end_level(&mut self, budget: &Arc<Budget>) {
        self.levels += 1;
        if self.levels == 2
            && let PastKind::Former(former) = &mut self.kind
        {
            former.tables.release(budget);
            self.kind = PastKind::Gone;
        }
    }

    /// Whether every state is reported with its id.
    pub fn names_all(&self) -> bool {
        matches!(self.kind, PastKind::None | PastKind::Kept(_))
    }

    /// Whether old ids may be forgotten one day.
    pub fn is_waiting(&self) -> bool {
        matches!(self.kind, PastKind::Former(_))
    }

    /// The id of a state that has just been entered under this code.
    #[inline(always)]
    pub fn new_id(&self, code: u64) -> StateId {
        match &self.kind {
            // One that was there before is entered again when the tree is made anew.
            PastKind::Kept(kept) => StateId::new(kept.id(code).unwrap_or(self.base + code)),
            _ => StateId::new(self.base + code),
        }
    }

    /// The id of a state that was there under this code, if that is known.
    #[inline(always)]
    pub fn seen_id(&self, code: u64) -> StateId {
        match &self.kind {
            PastKind::Former(_) | PastKind::Gone => StateId::NAMELESS,
            _ => self.new_id(code),
        }
    }

    /// The code that goes with an id, if that is known.
    #[inline(always)]
    pub fn code(&self, id: StateId) -> Option<u64> {
        match &self.kind {
            _ if id.get() >= self.base => Some(id.get() - self.base),
            PastKind::Kept(kept) => Some(kept.code(id.get())),
            _ => None,
        }
    }

    /// The state of an id whose code is not known, in the new layout.
    #[cold]
    pub fn state(&self, id: StateId) -> Vec<Slot> {
        let PastKind::Former(former) = &self.kind else { panic!("no state has the id {id:?}") };
        let (mut old, mut new) = (States::new(former.recoding.from), Vec::new());
        former.tables.state_of(id, &mut old);
        former.recoding.translate(old.get(0), &mut new);
        new
    }
}

impl Kept {
    fn id(&self, code: u64) -> Option<u64> {
        // Codes of early states are small: most are beyond the last.
        if self.by_code.last().is_none_or(|&(last, _)| code > last) {
            return None;
        }
        let at = self.by_code.binary_search_by_key(&code, |&(code, _)| code).ok()?;
        Some(self.by_code[at].1)
    }

    fn code(&self, id: u64) -> u64 {
        match self.by_id.binary_search_by_key(&id, |&(id, _)| id) {
            Ok(at) => self.by_id[at].1,
            Err(_) => panic!("no state has the id {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_codes_that_are_kept_lead_to_each_other() {
        let past = Past::kept(vec![(7, 3), (2, 90), (5, 0)], 8);
        for (id, code) in [(7, 3), (2, 90), (5, 0), (9, 1), (12, 4), (8 + 1000, 1000)] {
            assert_eq!((past.seen_id(code).get(), past.code(StateId::new(id))), (id, Some(code)));
        }
        let none = Past::default();
        assert_eq!((none.seen_id(5).get(), none.code(StateId::new(5))), (5, Some(5)));
    }
}
