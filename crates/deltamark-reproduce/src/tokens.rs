//! Tokens that move at random: the nets of the paper on difference states.
//!
//! In: places, tokens. Out: a system. All tokens begin in place 0. In each state a few moves are possible, chosen
//! at random; here the state itself is the seed, so that it has the same moves whenever it is revisited. What
//! stays true: a step changes one token; an action is the token and its new place.
//!
//! ```text
//! slots   | token 0 | token 1 | token 2 … |     as many bits a token as the places need
//! ```

use deltamark_core::hash::{coefficient, mix};
use deltamark_core::packed::bits_of;
use deltamark_core::{Action, Batch, Describe, Fired, Scratch, Slot, System, Value, Widen, Width};

/// The maximum number of moves of a state.
const MOVES: u64 = 4;

/// Tokens that move at random.
#[derive(Clone, Copy, Debug)]
pub struct Tokens {
    places: u32,
    tokens: u32,
    /// Bits of a place.
    bits: u32,
    /// Tokens of a slot.
    in_slot: u32,
}

impl Tokens {
    /// `tokens` tokens on `places` places; at least one and two.
    pub fn new(places: u32, tokens: u32) -> Self {
        assert!(places > 1 && tokens > 0, "something can move");
        let bits = bits_of(places - 1);
        Tokens { places, tokens, bits, in_slot: Slot::BITS / bits }
    }

    /// The number of slots of a state.
    pub fn slots_of_a_state(&self) -> usize {
        self.tokens.div_ceil(self.in_slot) as usize
    }

    fn place(&self, state: &[Slot], token: u32) -> u32 {
        state[(token / self.in_slot) as usize] >> (token % self.in_slot * self.bits) & ((1 << self.bits) - 1)
    }

    fn put(&self, state: &mut [Slot], token: u32, place: u32) {
        let (slot, shift) = ((token / self.in_slot) as usize, token % self.in_slot * self.bits);
        state[slot] = state[slot] & !(((1 << self.bits) - 1) << shift) | place << shift;
    }

    fn term(&self, token: u32, place: u32) -> u64 {
        coefficient(u64::from(token) * u64::from(self.places) + u64::from(place))
    }

    fn hash_of(&self, state: &[Slot]) -> u64 {
        (0..self.tokens).fold(0u64, |sum, token| sum.wrapping_add(self.term(token, self.place(state, token))))
    }

    /// The moves of a state of this hash, each once.
    fn moves(&self, state: &[Slot], hash: u64) -> impl Iterator<Item = Action> {
        let mut found = [Action::NONE; MOVES as usize];
        for turn in 0..MOVES {
            let dice = mix(hash ^ mix(turn));
            let token = (dice % u64::from(self.tokens)) as u32;
            let place = ((dice >> 32) % u64::from(self.places)) as u32;
            let action = Action(token * self.places + place);
            if place != self.place(state, token) && !found.contains(&action) {
                found[turn as usize] = action;
            }
        }
        found.into_iter().filter(|&action| action != Action::NONE)
    }
}

impl System for Tokens {
    fn width(&self) -> Width {
        Width::Fixed(self.slots_of_a_state())
    }

    fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        let state = vec![0; self.slots_of_a_state()];
        out.push_hashed(Action(0), &state, self.hash_of(&state));
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let target: &mut Vec<Slot> = scratch.get();
        target.clear();
        target.extend_from_slice(source);
        let hash = self.hash_of(source);
        for action in self.moves(source, hash) {
            let (token, to) = (action.0 / self.places, action.0 % self.places);
            let from = self.place(source, token);
            self.put(target, token, to);
            let moved = hash.wrapping_sub(self.term(token, from)).wrapping_add(self.term(token, to));
            out.push_hashed(action, target, moved);
            self.put(target, token, from);
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
        if self.moves(source, self.hash_of(source)).all(|possible| possible != action) {
            return Ok(Fired::Disabled);
        }
        self.put(target, action.0 / self.places, action.0 % self.places);
        Ok(Fired::Done)
    }

    fn hash(&self, _scratch: &mut Scratch, state: &[Slot]) -> u64 {
        self.hash_of(state)
    }

    fn scratch(&self) -> Scratch {
        Scratch::new(Vec::<Slot>::new())
    }

    fn action_count(&self) -> Option<u32> {
        self.tokens.checked_mul(self.places)
    }

    fn describe(&self) -> &dyn Describe {
        self
    }
}

impl Describe for Tokens {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        (0..self.tokens).map(|token| (format!("token {token}"), Value::Int(self.place(state, token).into()))).collect()
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        format!("token {} to {}", action.0 / self.places, action.0 % self.places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_testkit::check_system;

    #[test]
    fn it_is_a_system() {
        for (places, tokens) in [(2, 1), (4, 5), (3, 7), (60, 3)] {
            check_system(&Tokens::new(places, tokens));
        }
    }
}
