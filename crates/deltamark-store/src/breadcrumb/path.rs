//! The path to a state: a walk down to level 0.
//!
//! In: a state of the current level. Out: the actions that lead to it from an initial state. Invariant: every step was
//! undone in the system, and the walk ends at a state of level 0 kept in full.

use super::{ANCHOR, Breadcrumb, BreadcrumbTables, code, level_of, unpack};
use deltamark_core::{Action, Control, Recall, Scratch, Slot, States, Stop, Store, Trace, hash::mix};

impl BreadcrumbTables<'_> {
    /// A path to a state of the current level: a walk down to level 0, unless the run must end.
    pub fn path(&self, store: &Breadcrumb<'_>, number: u64, control: &Control) -> Result<Option<Trace>, Stop> {
        /// A state on the walk, and the actions that are still to be tried.
        struct OnWalk {
            state: Vec<Slot>,
            actions: Vec<Action>,
        }
        let mut scratch = store.system.scratch();
        let mut states = States::new(store.system.width());
        self.now.states.recall_range(&mut Scratch::none(), number..number + 1, &mut states);
        let mut level = self.ended - 1;
        let own = Action(self.now.actions[number as usize]);
        if level == 0 {
            return Ok(Some(Trace::path(own.0, Vec::new())));
        }
        let mut walk = vec![OnWalk { state: states.get(0).to_vec(), actions: vec![own] }];
        let mut taken: Vec<Action> = Vec::new();
        let mut source = Vec::new();
        loop {
            if let Some(stop) = control.stop_without_memory() {
                return Err(stop);
            }
            let Some(place) = walk.last_mut() else { return Ok(None) };
            let Some(action) = place.actions.pop() else {
                walk.pop();
                taken.pop();
                level += 1;
                continue;
            };
            if !store.reversible.unfire(&mut scratch, &place.state, action, &mut source) {
                continue;
            }
            let hash = store.system.hash(&mut scratch, &source);
            let code = code(&self.anchor_levels, level - 1);
            if code == ANCHOR {
                let anchor = self.anchors.find(&mut Scratch::none(), &source, hash);
                let there = anchor.filter(|id| level_of(&self.anchor_levels, id.get()) == level - 1);
                let Some(anchor) = there else { continue };
                if level == 1 {
                    taken.push(action);
                    taken.reverse();
                    let initial = self.roots[anchor.index()];
                    return Ok(Some(Trace::path(initial, taken)));
                }
            }
            let mut actions = Vec::new();
            for table in &self.tables {
                table.probe(mix(hash), |payload| {
                    let (found, action) = unpack(payload);
                    if found == code {
                        actions.push(action);
                    }
                });
            }
            taken.push(action);
            walk.push(OnWalk { state: source.clone(), actions });
            level -= 1;
        }
    }
}
