//! The largest count of each token value in each place.
//!
//! In: markings. Out: for each place with coloured tokens the largest count of each token. What stays
//! true: coloured and unfolded nets report alike.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use deltamark_core::{BLOCK, Block, Observe, Scratch, System};
use deltamark_nets::NetSystem;

use crate::system::ColouredSystem;
use crate::unfolding::unfolded::UnfoldedSystem;

/// A place, and the largest count of each of its tokens.
pub type TokenBounds = (String, Vec<(String, u64)>);

/// A coloured net that keeps the largest count of each token.
pub trait TokenSurvey {
    /// Records the states of a block.
    fn note_tokens(&self, scratch: &mut Scratch, block: &Block);

    /// The bounds over all recorded states, for every place whose tokens have values.
    fn token_bounds(&self) -> Vec<TokenBounds>;
}

/// The system as a token survey, if it is a coloured net.
pub fn token_survey(system: &dyn System) -> Option<&dyn TokenSurvey> {
    let any = system.as_any()?;
    let coloured = any.downcast_ref::<ColouredSystem>().map(|system| system as &dyn TokenSurvey);
    coloured.or_else(|| any.downcast_ref::<UnfoldedSystem>().map(|system| system as _))
}

impl TokenSurvey for ColouredSystem {
    fn note_tokens(&self, scratch: &mut Scratch, block: &Block) {
        let work = self.work(scratch);
        let mut surveyed = self.surveyed.lock().unwrap_or_else(PoisonError::into_inner);
        surveyed.resize(self.engine.places.len(), Vec::new());
        for state in block.states().iter() {
            work.markings.clear();
            work.current.markings(state, &mut work.markings);
            for (seen, &marking) in surveyed.iter_mut().zip(&work.markings) {
                let word = marking as usize / 64;
                if seen.len() <= word {
                    seen.resize((word + 1).next_power_of_two(), 0);
                }
                seen[word] |= 1 << (marking % 64);
            }
        }
    }

    fn token_bounds(&self) -> Vec<TokenBounds> {
        let surveyed = self.surveyed.lock().unwrap_or_else(PoisonError::into_inner);
        self.engine.tell_bounds(|place| {
            let mut most = BTreeMap::new();
            for (number, word) in surveyed.get(place).into_iter().flatten().enumerate() {
                for bit in (0..64).filter(|bit| word >> bit & 1 == 1) {
                    for (token, count) in self.engine.places[place].tokens(number as u32 * 64 + bit) {
                        let known: &mut u64 = most.entry(token).or_default();
                        *known = u64::from(count).max(*known);
                    }
                }
            }
            most
        })
    }
}

impl TokenSurvey for UnfoldedSystem {
    fn note_tokens(&self, scratch: &mut Scratch, block: &Block) {
        let mut counts = [0; BLOCK];
        for (place, most) in (0..).zip(&self.most) {
            self.inner.read_block(scratch, block, NetSystem::tokens(place), &mut counts);
            let here = counts[..block.len()].iter().copied().max().unwrap_or(0);
            most.fetch_max(here as u64, Relaxed);
        }
    }

    fn token_bounds(&self) -> Vec<TokenBounds> {
        self.engine.tell_bounds(|place| {
            let changing =
                self.of_place[place].iter().map(|&(at, token)| (token, self.most[at as usize].load(Relaxed)));
            let constant = self.constants[place].iter().map(|&(token, count)| (token, u64::from(count)));
            changing.chain(constant).filter(|&(_, most)| most > 0).collect()
        })
    }
}
