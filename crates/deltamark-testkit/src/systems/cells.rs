//! Walkers on wide states.
//!
//! In: the number of cells, and the length of the tracks. Out: a system whose states take one slot a cell and
//! whose steps change three of them, with the same number of states whatever the width. What stays true: five
//! walkers, each on a track of its own with `positions` places, are independent, so all combinations occur:
//! `positions`⁵ states. Steps of different walkers commute. All walk forwards; the first two also walk back,
//! and the third jumps from the end to the start, so that states are revisited, about two times each. The
//! hash is linear in the slots.
//!
//! ```text
//! track    position | . 3 . 1 . 2 . . 0 .     cells at places passed hold one more than at first,
//!                         ▲                   that of the walker two more; others never change
//! ```

use deltamark_core::hash::coefficient;
use deltamark_core::{Action, Batch, Describe, Fired, Scratch, Slot, System, Value, Widen, Width};

/// The number of walkers.
const WALKERS: usize = 5;
const KINDS: [&str; 3] = ["forward", "back", "home"];

/// Walkers on wide states. An action is `walker + 5 · kind`.
pub struct Cells {
    width: usize,
    positions: Slot,
    /// The state with every walker at its start.
    initial: Vec<Slot>,
    coefficients: Vec<u64>,
}

impl Cells {
    /// `width` cells, and tracks of `positions` places. A track needs a slot a place and one more.
    pub fn new(width: usize, positions: usize) -> Self {
        assert!(positions > 0 && width / WALKERS > positions, "there are cells for all places");
        // The initial values of cells: mostly small, here and there larger.
        let background = |cell: usize| {
            let chance = coefficient(cell as u64) >> 32;
            (if chance.is_multiple_of(4) { chance / 4 % 1000 } else { chance / 4 % 8 }) as Slot
        };
        let mut cells = Cells {
            width,
            positions: positions as Slot,
            initial: (0..width).map(background).collect(),
            coefficients: (0..width as u64).map(coefficient).collect(),
        };
        for walker in 0..WALKERS {
            let (register, start) = (cells.register(walker), cells.cell(walker, 0));
            cells.initial[register] = 0;
            cells.initial[start] += 2;
        }
        cells
    }

    /// States and edges.
    pub fn counts(&self) -> (u64, u64) {
        let places = u64::from(self.positions);
        let moves = if places > 1 { 7 * (places - 1) + 1 } else { 0 };
        (places.pow(5), places.pow(4) * moves)
    }

    /// The slot of a walker's position.
    fn register(&self, walker: usize) -> usize {
        self.width / WALKERS * walker
    }

    /// The cell at a place of a walker's track.
    fn cell(&self, walker: usize, place: Slot) -> usize {
        let stride = (self.width / WALKERS - 1) / self.positions as usize;
        self.register(walker) + 1 + place as usize * stride
    }

    fn hash_of(&self, state: &[Slot]) -> u64 {
        let terms = state.iter().zip(&self.coefficients).map(|(&slot, factor)| factor.wrapping_mul(slot.into()));
        terms.fold(0, u64::wrapping_add)
    }

    /// Takes a step, if it is enabled, and returns what it adds to the hash.
    fn step(&self, state: &mut [Slot], action: Action) -> Option<u64> {
        let (walker, kind) = (action.0 as usize % WALKERS, action.0 as usize / WALKERS);
        let register = self.register(walker);
        let (from, last) = (state[register], self.positions - 1);
        let to = match kind {
            0 if from < last => from + 1,
            1 if from > 0 && walker < 2 => from - 1,
            2 if from == last && from > 0 && walker == 2 => 0,
            _ => return None,
        };
        let mut added = 0u64;
        let mut change = |slot: usize, value: Slot| {
            let difference = i64::from(value) - i64::from(state[slot]);
            added = added.wrapping_add(self.coefficients[slot].wrapping_mul(difference as u64));
            state[slot] = value;
        };
        change(register, to);
        for place in from.min(to)..=from.max(to) {
            let cell = self.cell(walker, place);
            let first = self.initial[cell] - if place == 0 { 2 } else { 0 };
            change(cell, first + if place < to { 1 } else { 0 } + if place == to { 2 } else { 0 });
        }
        Some(added)
    }

    fn all_actions() -> impl Iterator<Item = Action> {
        (0..(WALKERS * KINDS.len()) as u32).map(Action)
    }
}

impl System for Cells {
    fn width(&self) -> Width {
        Width::Fixed(self.width)
    }

    fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        out.push_hashed(Action(0), &self.initial, self.hash_of(&self.initial));
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let target: &mut Vec<Slot> = scratch.get();
        target.clear();
        target.extend_from_slice(source);
        let hash = self.hash_of(source);
        for action in Self::all_actions() {
            if let Some(added) = self.step(target, action) {
                out.push_hashed(action, target, hash.wrapping_add(added));
                target.copy_from_slice(source);
            }
        }
        Ok(())
    }

    fn fire(
        &self,
        _scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        target.clear();
        target.extend_from_slice(source);
        let known = (action.0 as usize) < WALKERS * KINDS.len();
        Ok(if known && self.step(target, action).is_some() { Fired::Done } else { Fired::Disabled })
    }

    fn hash(&self, _scratch: &mut Scratch, state: &[Slot]) -> u64 {
        self.hash_of(state)
    }

    fn scratch(&self) -> Scratch {
        Scratch::new(Vec::<Slot>::new())
    }

    fn action_count(&self) -> Option<u32> {
        Some((WALKERS * KINDS.len()) as u32)
    }

    fn describe(&self) -> &dyn Describe {
        self
    }
}

impl Describe for Cells {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let position = |walker| Value::Int(state[self.register(walker)].into());
        (0..WALKERS).map(|walker| (format!("walker {walker}"), position(walker))).collect()
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        format!("{} {}", KINDS[action.0 as usize / WALKERS], action.0 as usize % WALKERS)
    }
}
