//! Passes over states that are in a store, with the ids of their successors.
//!
//! In: a system, and a store that holds all its reachable states and recalls them by id. Out: blocks of them, expanded,
//! each successor with its id; lists of ids; a shortest path to one of them. What stays true: nothing is inserted; all
//! memory in proportion to the states was granted by the budget.

use crate::path::{initial_number, leading_to};
use deltamark_core::{
    BLOCK, Batch, Block, Control, Grant, Insert, Numbers, Scratch, StateId, States, Stop, Store, System, Trace,
};

/// Ids, in as few bits as they need.
pub(crate) struct IdList {
    ids: Numbers,
    grant: Grant,
}

impl IdList {
    pub fn new(control: &Control) -> Self {
        IdList { ids: Numbers::new(), grant: Grant::new(&control.budget) }
    }

    pub fn push(&mut self, id: StateId) -> Result<(), Stop> {
        let growth = self.ids.growth(1, id.get());
        if growth > 0 && !self.grant.ask(growth) {
            return Err(Stop::Memory);
        }
        self.ids.push(id.get());
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub fn get(&self, place: usize) -> StateId {
        StateId::new(self.ids.get(place))
    }

    pub fn iter(&self) -> impl Iterator<Item = StateId> + '_ {
        (0..self.len()).map(|place| self.get(place))
    }
}

/// Expands states of a store, for one thread.
pub(crate) struct Expander<'a> {
    system: &'a dyn System,
    store: &'a dyn Store,
    control: &'a Control,
    system_scratch: Scratch,
    store_scratch: Scratch,
    pub block: Block,
    pub batch: Batch,
    answers: Vec<Insert>,
    /// Of each successor its id.
    pub targets: Vec<StateId>,
}

impl<'a> Expander<'a> {
    pub fn new(system: &'a dyn System, store: &'a dyn Store, control: &'a Control) -> Self {
        Expander {
            system,
            store,
            control,
            system_scratch: system.scratch(),
            store_scratch: store.scratch(),
            block: Block::new(system.width()),
            batch: Batch::new(system.width()).under(control),
            answers: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// The ids of the initial states.
    pub fn initial(&mut self) -> Result<Vec<StateId>, Stop> {
        self.batch.reset(self.system.width());
        self.system.initial(&mut self.system_scratch, &mut self.batch).expect("initial states that were stored fit");
        self.batch.stop().map_or(Ok(()), Err)?;
        let Expander { store, store_scratch, batch, .. } = self;
        let find = |index| store.find(store_scratch, batch.target(index), batch.hash(index));
        Ok((0..batch.len()).map(find).map(|found| found.expect("every initial state was stored")).collect())
    }

    /// Expands the states with these ids, at most [`BLOCK`].
    pub fn expand(&mut self, ids: impl IntoIterator<Item = StateId>) -> Result<(), Stop> {
        let Expander { system, store, control, system_scratch, store_scratch, block, batch, .. } = self;
        let recall = store.recall().expect("passes are over states that are recalled");
        block.reset(system.width());
        block.fill(ids, |ids, states| recall.recall(store_scratch, ids, states));
        batch.reset(system.width());
        system.expand(system_scratch, block, batch).expect("successors that were stored fit the layout");
        batch.stop().map_or(Ok(()), Err)?;
        // Every successor is in the store. To insert them again is how a store finds many at once.
        self.answers.clear();
        store.insert_batch(store_scratch, block, batch, &mut self.answers);
        self.targets.clear();
        for answer in &self.answers {
            match answer {
                Insert::Seen(id) => self.targets.push(*id),
                Insert::New(_) => unreachable!("every successor of a state was stored"),
                // A store may make room before it looks.
                Insert::Full => return Err(control.stop_when_full()),
            }
        }
        assert_eq!(self.targets.len(), self.batch.len(), "a store answers for every successor");
        Ok(())
    }
}

/// How many blocks of a list there are.
pub(crate) fn blocks(list: &IdList) -> usize {
    list.len().div_ceil(BLOCK)
}

/// The ids of one of them.
pub(crate) fn block(list: &IdList, number: usize) -> impl Iterator<Item = StateId> + '_ {
    (number * BLOCK..list.len().min((number + 1) * BLOCK)).map(|place| list.get(place))
}

/// A shortest path to a state that can be reached, by a breadth-first search that marks states with a bit, and then
/// backwards through its levels: each is expanded again until it leads on.
pub(crate) fn path_to(
    target: StateId,
    system: &dyn System,
    store: &dyn Store,
    control: &Control,
) -> Result<Trace, Stop> {
    let attached = store.attached().expect("passes are over states that have ids");
    let seen = attached.values(1);
    let mut expander = Expander::new(system, store, control);
    let mut levels = vec![IdList::new(control)];
    let see = |id: StateId, list: &mut IdList| match seen.update(id, |seen| (seen == 0).then_some(1)) {
        None => Err(Stop::Memory),
        Some(0) => list.push(id),
        Some(_) => Ok(()),
    };
    for id in expander.initial()? {
        see(id, &mut levels[0])?;
    }
    while seen.get(target) == 0 {
        let mut next = IdList::new(control);
        let level = &levels[levels.len() - 1];
        assert!(!level.is_empty(), "a stored state can be reached");
        for number in 0..blocks(level) {
            control.ask()?;
            expander.expand(block(level, number))?;
            for &id in &expander.targets {
                see(id, &mut next)?;
            }
        }
        levels.push(next);
    }
    drop(seen);
    let mut states = States::new(system.width());
    let recall = store.recall().expect("passes are over states that are recalled");
    let mut scratch = store.scratch();
    recall.recall(&mut scratch, &[target], &mut states);
    let mut actions = Vec::with_capacity(levels.len());
    levels.pop();
    while let Some(level) = levels.pop() {
        let leading = (0..blocks(&level)).find_map(|number| {
            if let Err(stop) = control.ask().and_then(|()| expander.expand(block(&level, number))) {
                return Some(Err(stop));
            }
            let found = leading_to(&expander.batch, states.get(0));
            found.map(|(source, action)| Ok((expander.block.id(source), action)))
        });
        let (parent, action) = leading.expect("a state of a level has a predecessor in the level before")?;
        actions.push(action);
        states.clear();
        recall.recall(&mut scratch, &[parent], &mut states);
    }
    actions.reverse();
    Ok(Trace::path(initial_number(system, &mut system.scratch(), states.get(0)), actions))
}
