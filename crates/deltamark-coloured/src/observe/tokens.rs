//! The largest and the smallest count of each token value in each place.
//!
//! In: markings. Out: for each place with coloured tokens these counts of each token. What stays
//! true: coloured and unfolded nets report alike.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use deltamark_core::{Block, Bound, Observe, Scratch, System};
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

    /// The smallest count of each token over all recorded states, where it is not 0; `None` if it was not kept.
    fn token_floors(&self) -> Option<Vec<TokenBounds>> {
        None
    }
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
            for marking in self.surveyed_markings(&surveyed, place) {
                for (token, count) in self.engine.places[place].tokens(marking) {
                    let known: &mut u64 = most.entry(token).or_default();
                    *known = u64::from(count).max(*known);
                }
            }
            most
        })
    }

    fn token_floors(&self) -> Option<Vec<TokenBounds>> {
        let surveyed = self.surveyed.lock().unwrap_or_else(PoisonError::into_inner);
        Some(self.engine.tell_bounds(|place| {
            let mut least: Option<BTreeMap<u32, u64>> = None;
            for marking in self.surveyed_markings(&surveyed, place) {
                let here: BTreeMap<u32, u64> =
                    self.engine.places[place].tokens(marking).map(|(token, count)| (token, u64::from(count))).collect();
                least = Some(match least {
                    None => here,
                    // A token that is missing once has the bound 0.
                    Some(known) => known
                        .into_iter()
                        .filter_map(|(token, count)| Some((token, count.min(*here.get(&token)?))))
                        .collect(),
                });
            }
            least.unwrap_or_default()
        }))
    }
}

impl ColouredSystem {
    /// The markings of a place in the recorded states.
    fn surveyed_markings<'a>(&self, surveyed: &'a [Vec<u64>], place: usize) -> impl Iterator<Item = u32> + 'a {
        let words = surveyed.get(place).map(Vec::as_slice).unwrap_or_default().iter().enumerate();
        words.flat_map(|(number, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| number as u32 * 64 + bit)
        })
    }
}

impl TokenSurvey for UnfoldedSystem {
    fn note_tokens(&self, scratch: &mut Scratch, block: &Block) {
        let counts: Vec<_> = (0..self.most.len() as u32).map(NetSystem::tokens).collect();
        let mut bounds = vec![Bound::NONE; counts.len()];
        self.inner.survey_block(scratch, block, &counts, &mut bounds);
        for ((bound, most), least) in bounds.iter().zip(&self.most).zip(&self.least) {
            // Without a state there is no bound.
            if let (Ok(high), Ok(low)) = (u64::try_from(bound.most), u64::try_from(bound.least)) {
                most.fetch_max(high, Relaxed);
                least.fetch_min(low, Relaxed);
            }
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

    fn token_floors(&self) -> Option<Vec<TokenBounds>> {
        Some(self.engine.tell_bounds(|place| {
            let changing =
                self.of_place[place].iter().map(|&(at, token)| (token, self.least[at as usize].load(Relaxed)));
            let constant = self.constants[place].iter().map(|&(token, count)| (token, u64::from(count)));
            changing.chain(constant).filter(|&(_, least)| least > 0 && least < u64::MAX).collect()
        }))
    }
}
