//! Groups the places of an unfolded net by owner: a site, a process, a station of a ring.
//!
//! In: the tokens that places represent, and for each transition those it concerns. Out: a permutation in
//! which the places of one owner are adjacent. What stays true: every place occurs once.
//!
//! # The idea
//! One component of a place's tokens identifies the owner: `idle(x)`, `sent(to, from)`. Most transitions
//! concern tokens of one owner only. So each place gets the component that maximises the number of pairs of
//! tokens of one transition that agree, or none; a local search over the places, repeated while it improves.
//!
//! ```text
//! receive(s,r)    inactive(r) sent(s,r) performing(r) received(s,r)
//!                          ▲         ▲             ▲             ▲      owner: 1st, 2nd, 1st, 2nd
//! ```

/// The input of the grouping.
pub(crate) struct Belongings<'a> {
    /// For each place of the unfolded net: the coloured place, and the components of the token.
    pub tokens: &'a [(u32, Vec<i64>)],
    /// For each transition the places of the unfolded net it concerns.
    pub transitions: &'a [Vec<u32>],
}

/// Larger transitions carry little information about owners, and cost much.
const MOST_PLACES: usize = 24;
/// The maximum number of rounds of the local search.
const ROUNDS: usize = 4;

impl Belongings<'_> {
    /// The places in their new order, those without an owner first.
    pub fn order(&self) -> Vec<u32> {
        let coloured = self.tokens.iter().map(|(place, _)| *place as usize + 1).max().unwrap_or(0);
        let mut arity = vec![0; coloured];
        for (place, components) in self.tokens {
            arity[*place as usize] = components.len();
        }
        let mut of: Vec<Vec<u32>> = vec![Vec::new(); coloured];
        for (number, places) in (0..).zip(self.transitions) {
            if !(2..=MOST_PLACES).contains(&places.len()) {
                continue;
            }
            for &place in places {
                let list = &mut of[self.tokens[place as usize].0 as usize];
                if list.last() != Some(&number) {
                    list.push(number);
                }
            }
        }
        let first: Vec<usize> = arity.iter().map(|_| 0).collect();
        let last: Vec<usize> = arity.iter().map(|arity| arity.saturating_sub(1)).collect();
        let better = [first, last].into_iter().map(|choice| self.improve(choice, &arity, &of));
        let choice = better.max_by_key(|(score, _)| *score).map(|(_, choice)| choice).unwrap_or_default();
        let mut order: Vec<u32> = (0..self.tokens.len() as u32).collect();
        order.sort_by_key(|&place| self.owner(place, &choice));
        order
    }

    /// The owner of a place: the value of the chosen component.
    fn owner(&self, place: u32, choice: &[usize]) -> Option<i64> {
        let (of, components) = &self.tokens[place as usize];
        components.get(choice[*of as usize]).copied()
    }

    /// Improves the choice of one place after the other; also returns its score.
    fn improve(&self, mut choice: Vec<usize>, arity: &[usize], of: &[Vec<u32>]) -> (u64, Vec<usize>) {
        let score = |place: usize, choice: &[usize]| -> u64 {
            of[place].iter().map(|&transition| self.agree(transition, choice)).sum()
        };
        for _ in 0..ROUNDS {
            let mut changed = false;
            for place in 0..choice.len() {
                let before = choice[place];
                let mut best = (score(place, &choice), before);
                // The last choice is no component.
                for component in (0..=arity[place]).filter(|&component| component != before) {
                    choice[place] = component;
                    let score = score(place, &choice);
                    if score > best.0 {
                        best = (score, component);
                    }
                }
                choice[place] = best.1;
                changed |= best.1 != before;
            }
            if !changed {
                break;
            }
        }
        let all = (0..self.transitions.len() as u32).filter(|&number| {
            let len = self.transitions[number as usize].len();
            (2..=MOST_PLACES).contains(&len)
        });
        (all.map(|transition| self.agree(transition, &choice)).sum(), choice)
    }

    /// The fraction of pairs of places of a transition that have the same owner.
    fn agree(&self, transition: u32, choice: &[usize]) -> u64 {
        let places = &self.transitions[transition as usize];
        let owner = |at: usize| self.owner(places[at], choice);
        let pairs = (1..places.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        let (mut same, mut all) = (0, 0);
        for (one, other) in pairs {
            all += 1;
            same += u64::from(owner(one).is_some() && owner(one) == owner(other));
        }
        same * 1000 / all.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_belong_to_who_receives_them() {
        // idle(r), sent(s,r), done(r): receiving is about r alone.
        let sites = 5;
        let mut tokens = Vec::new();
        tokens.extend((0..sites).map(|r| (0, vec![r])));
        tokens.extend((0..sites * sites).map(|pair| (1, vec![pair / sites, pair % sites])));
        tokens.extend((0..sites).map(|r| (2, vec![r])));
        tokens.push((3, vec![]));
        let at = |token: &(u32, Vec<i64>)| tokens.iter().position(|known| known == token).expect("a token") as u32;
        let mut transitions = Vec::new();
        for s in 0..sites {
            transitions.extend((0..sites).map(|r| vec![at(&(0, vec![r])), at(&(1, vec![s, r])), at(&(2, vec![r]))]));
            let mut all = vec![at(&(3, vec![]))];
            all.extend((0..sites).map(|r| at(&(1, vec![s, r]))));
            transitions.push(all);
        }
        let order = Belongings { tokens: &tokens, transitions: &transitions }.order();
        assert_eq!(order[0], at(&(3, vec![])));
        for (owner, places) in (0..).zip(order[1..].chunks(2 + sites as usize)) {
            assert!(places.iter().all(|&place| tokens[place as usize].1.last() == Some(&owner)), "{places:?}");
        }
    }
}
