//! Stacks of letters: states of varying width whose steps can be undone.
//!
//! In: the number of stacks, their height, the number of letters. Out: a system in which a letter is pushed
//! on a stack, popped, or moved to another one. What stays true: an action names the letter it removes, so it
//! can be undone; a state is one component a stack, each a slot with its height followed by one slot a
//! letter. With `w = 1 + letters + … + letters^height` words there are `w^stacks` states.

use crate::random::Rng;
use deltamark_core::{
    Action, Batch, Components, Describe, Fired, Reversible, Scratch, Slot, System, Value, Widen, Width,
};

/// Stacks of letters. With `l` letters and `n` stacks, stack `i` has the actions from
/// `i · (2l + n)` on: put each letter, take each letter, move the top to each stack.
pub struct Stacks {
    stacks: usize,
    height: usize,
    letters: Slot,
}

/// The effect of an action.
enum Deed {
    Put(usize, Slot),
    Take(usize, Slot),
    Move(usize, usize),
}

impl Stacks {
    /// This many stacks, with at most `height` of `letters` different letters each.
    pub fn new(stacks: usize, height: usize, letters: Slot) -> Self {
        assert!(stacks > 0 && height > 0 && letters > 0, "each part has a size");
        Stacks { stacks, height, letters }
    }

    /// One to three stacks with up to `most` states in all, but at least two.
    pub fn random(seed: u64, most: usize) -> Self {
        let mut rng = Rng::new(seed);
        loop {
            let found = Self::new(1 + rng.below(3), 1 + rng.below(8), 1 + rng.below(3) as Slot);
            if found.states() <= most.max(2) {
                return found;
            }
        }
    }

    /// The number of states.
    pub fn states(&self) -> usize {
        let words: usize = (0..=self.height as u32).map(|height| (self.letters as usize).pow(height)).sum();
        words.pow(self.stacks as u32)
    }

    fn deed(&self, action: Action) -> Option<Deed> {
        let each = 2 * self.letters + self.stacks as u32;
        let (stack, kind) = ((action.0 / each) as usize, action.0 % each);
        let deed = match kind {
            _ if kind < self.letters => Deed::Put(stack, kind),
            _ if kind < 2 * self.letters => Deed::Take(stack, kind - self.letters),
            _ => Deed::Move(stack, (kind - 2 * self.letters) as usize),
        };
        (stack < self.stacks).then_some(deed)
    }

    fn decode(&self, state: &[Slot]) -> Vec<Vec<Slot>> {
        let mut rest = state;
        let mut stack = || {
            let (letters, behind) = rest[1..].split_at(rest[0] as usize);
            rest = behind;
            letters.to_vec()
        };
        (0..self.stacks).map(|_| stack()).collect()
    }

    /// Writes the state after the deed, if it is enabled.
    fn apply(&self, state: &[Slot], deed: &Deed, out: &mut Vec<Slot>) -> bool {
        let mut stacks = self.decode(state);
        let possible = match *deed {
            Deed::Put(stack, letter) => self.put(&mut stacks[stack], Some(letter)),
            Deed::Take(stack, letter) => stacks[stack].pop() == Some(letter),
            Deed::Move(from, to) => {
                let letter = stacks[from].pop();
                from != to && self.put(&mut stacks[to], letter)
            }
        };
        if possible {
            out.clear();
            for stack in &stacks {
                out.push(stack.len() as Slot);
                out.extend(stack);
            }
        }
        possible
    }

    fn put(&self, stack: &mut Vec<Slot>, letter: Option<Slot>) -> bool {
        stack.extend(letter);
        letter.is_some() && stack.len() <= self.height
    }

    fn all_actions(&self) -> impl Iterator<Item = Action> {
        (0..self.stacks as u32 * (2 * self.letters + self.stacks as u32)).map(Action)
    }
}

impl System for Stacks {
    fn width(&self) -> Width {
        Width::Varies
    }

    /// All stacks empty, and one letter on the first.
    fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        let empty = vec![0; self.stacks];
        out.push(Action(0), &empty);
        let mut one = vec![1, 0];
        one.extend(&empty[1..]);
        out.push(Action(1), &one);
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let mut target = Vec::new();
        for action in self.all_actions() {
            if self.fire(scratch, source, action, &mut target)? == Fired::Done {
                out.push(action, &target);
            }
        }
        Ok(())
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn fire(
        &self,
        _scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        let done = self.deed(action).is_some_and(|deed| self.apply(source, &deed, target));
        Ok(if done { Fired::Done } else { Fired::Disabled })
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        Some(self)
    }

    fn components(&self) -> Option<&dyn Components> {
        Some(self)
    }
}

impl Reversible for Stacks {
    fn unfire(&self, _scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool {
        let opposite = self.deed(action).map(|deed| match deed {
            Deed::Put(stack, letter) => Deed::Take(stack, letter),
            Deed::Take(stack, letter) => Deed::Put(stack, letter),
            Deed::Move(from, to) => Deed::Move(to, from),
        });
        opposite.is_some_and(|deed| self.apply(target, &deed, source))
    }

    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        let mut source = Vec::new();
        for action in self.all_actions() {
            if self.unfire(scratch, target, action, &mut source) {
                out.push(action, &source);
            }
        }
    }
}

impl Components for Stacks {
    fn boundaries(&self, state: &[Slot], out: &mut Vec<usize>) {
        let mut start = 0;
        while start < state.len() {
            out.push(start);
            start += 1 + state[start] as usize;
        }
    }
}

impl Describe for Stacks {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let text =
            |stack: Vec<Slot>| Value::Text(stack.iter().map(|&letter| char::from(b'a' + letter as u8)).collect());
        let stacks = self.decode(state).into_iter().enumerate();
        stacks.map(|(index, stack)| (format!("stack{index}"), text(stack))).collect()
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        match self.deed(action) {
            Some(Deed::Put(stack, letter)) => format!("put {letter} on {stack}"),
            Some(Deed::Take(stack, letter)) => format!("take {letter} off {stack}"),
            Some(Deed::Move(from, to)) => format!("move from {from} to {to}"),
            None => "nothing".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore;

    #[test]
    fn all_words_are_reachable() {
        for seed in 0..20 {
            let system = Stacks::random(seed, 700);
            assert_eq!(explore(&system).states.len(), system.states(), "seed {seed}");
        }
        assert_eq!(explore(&Stacks::new(2, 3, 2)).states.len(), 15 * 15);
    }
}
