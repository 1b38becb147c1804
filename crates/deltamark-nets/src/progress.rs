//! Progress measures of nets, from what their transitions do.
//!
//! In: a net. Out: weights of places such that firing few transitions lowers the weighted sum of
//! tokens. What stays true: a transition adds the same to the sum wherever it fires, its *gain*; the gains are worked out
//! from the weights, exactly, so a measure is what it says it is, however it was found.
//!
//! # The idea
//! A linear measure is a weight `w` for each place; the gain of a transition is `w · Δ`, where `Δ` is what it
//! adds to each place. K. Schmidt (*Automated generation of a progress measure for the sweep-line method*,
//! TACAS 2004) gives a gain to each transition of a basis of the `Δ`, and lets the others have what follows from
//! that. We ask for weights under which *all* transitions gain, and give up on as few as
//! needed:
//!
//! * The *perceptron*: as long as some transition `t` does not gain, add `Δ(t)` to the weights. If there are weights under which
//!   all gain, this ends and has found some; they are integers from the first to the last step.
//! * If there are none, then by Gordan's theorem some sum of transitions, each taken at least
//!   as often as not at all, has no effect: the net has a cycle, as far as effects tell. The perceptron then turns round
//!   and round such a cycle, and counts how often it came by each transition. One of those that it came by most often is given up:
//!   it may regress. Which one, is a matter of taste, and there are a few: the one that fires least often in a sample, the
//!   one that fires last, the last of the file.
//! * Instead of letting one transition of a cycle regress, all of them may be asked to have no gain at
//!   all. Weights under which they have none are found by elimination, and among these the perceptron looks for such under
//!   which the others gain. That is a measure that never regresses.
//!
//! Which of the measures is best is for a [trial](Progress) to find out.

use crate::{Net, NetSystem};
use deltamark_core::{BLOCK, Block, Kind, Measure, Observable, Progress, Rank, Scratch, System};

/// How many elementary steps the search for one measure may take: a second or so.
const MOST_WORK: u64 = 100_000_000;
/// How often the perceptron may add each transition, on average, before one is given up.
const ROUNDS: u64 = 40;
/// Weights beyond this are no use: ranks could overflow.
const LARGEST: i64 = 1 << 24;
/// Nets with more places or transitions get the simplest measures only.
const MOST_NODES: usize = 6000;

/// A weighted sum of tokens.
struct Linear {
    /// Places with a weight.
    weights: Vec<(u32, i64)>,
    gains: Vec<i64>,
    text: String,
}

impl Linear {
    /// The measure of these weights; nothing, if no transition gains under it.
    fn new(net: &Net, effects: &[Vec<(u32, i64)>], mut weights: Vec<i64>) -> Option<Self> {
        let divisor = weights.iter().fold(0, |divisor, &weight| gcd(divisor, weight.unsigned_abs()));
        if divisor == 0 {
            return None;
        }
        weights.iter_mut().for_each(|weight| *weight /= divisor as i64);
        let gain = |effect: &Vec<(u32, i64)>| {
            effect
                .iter()
                .try_fold(0i64, |sum, &(place, count)| sum.checked_add(weights[place as usize].checked_mul(count)?))
        };
        let gains: Vec<i64> = effects.iter().map(gain).collect::<Option<_>>()?;
        if gains.iter().all(|&gain| gain == 0) || weights.iter().any(|weight| weight.abs() > LARGEST) {
            return None;
        }
        let weights: Vec<(u32, i64)> = (0..).zip(weights).filter(|&(_, weight)| weight != 0).collect();
        let text = text(net, &weights);
        Some(Linear { weights, gains, text })
    }
}

/// The sum as an expression of the property language.
fn text(net: &Net, weights: &[(u32, i64)]) -> String {
    let mut text = String::new();
    for &(place, weight) in weights {
        let sign = match (weight < 0, text.is_empty()) {
            (true, true) => "-",
            (true, false) => " - ",
            (false, true) => "",
            (false, false) => " + ",
        };
        text.push_str(sign);
        if weight.abs() != 1 {
            text.push_str(&format!("{} * ", weight.abs()));
        }
        text.push_str(&quoted(&net.places[place as usize].name));
    }
    text
}

/// A name as the property language writes it.
fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !["true", "false", "deadlock", "and", "or", "not", "implies", "iff", "fireable", "tokens"].contains(&name);
    if plain { name.into() } else { format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")) }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Measure for Linear {
    fn text(&self) -> String {
        self.text.clone()
    }

    fn ranks(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, out: &mut Vec<Rank>) {
        let start = out.len();
        out.resize(start + block.len(), 0);
        let Some(observe) = system.observe() else { return };
        let mut counts = [0; BLOCK];
        for &(place, weight) in &self.weights {
            observe.read_block(scratch, block, Observable { index: place, kind: Kind::Int }, &mut counts);
            for (rank, &count) in out[start..].iter_mut().zip(&counts) {
                *rank += Rank::from(weight) * Rank::from(count);
            }
        }
    }

    fn gains(&self) -> Option<&[i64]> {
        Some(&self.gains)
    }
}

impl Progress for NetSystem {
    fn measures(&self) -> Vec<Box<dyn Measure>> {
        let (net, effects) = (self.net(), self.effects());
        let mut candidates: Vec<Vec<i64>> = Vec::new();
        let mut add = |weights: Option<Vec<i64>>| {
            if let Some(weights) = weights
                && !candidates.contains(&weights)
            {
                candidates.push(weights);
            }
        };
        let count = effects.len();
        let model: Vec<u64> = (0..count as u64).collect();
        let reversed: Vec<u64> = (0..count as u64).rev().collect();
        let (often, late) = fired(self);
        for taste in [&often, &late, &model, &reversed] {
            let mut search = Search::new(net.places.len(), effects);
            let (weights, cyclic) = search.separate(taste);
            add(weights);
            if std::ptr::eq(taste, &often) && cyclic.iter().any(|&cyclic| cyclic) {
                add(monotone(net.places.len(), effects, cyclic));
            }
            if net.places.len() + count > MOST_NODES {
                break;
            }
        }
        let made = candidates.into_iter().filter_map(|weights| Linear::new(net, effects, weights));
        made.map(|linear| Box::new(linear) as Box<dyn Measure>).collect()
    }

    fn linear(&self, terms: &[(Observable, i64)]) -> Option<Box<dyn Measure>> {
        let mut weights = vec![0i64; self.net().places.len()];
        for &(observable, factor) in terms {
            // Whether a transition can fire is no count of tokens.
            let weight = weights.get_mut(observable.index as usize).filter(|_| observable.kind == Kind::Int)?;
            *weight = weight.checked_add(factor)?;
        }
        Linear::new(self.net(), self.effects(), weights).map(|linear| Box::new(linear) as Box<dyn Measure>)
    }
}

/// For each transition how often it fires in short walks, and when it first does: the smaller, the sooner it is given up.
fn fired(system: &NetSystem) -> (Vec<u64>, Vec<u64>) {
    let (net, effects) = (system.net(), system.effects());
    let count = net.transitions.len();
    let (mut often, mut first) = (vec![0u64; count], vec![u64::MAX; count]);
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let work = (count + 1) as u64;
    let walks = (20_000_000 / work / 100).clamp(2, 200);
    for _ in 0..walks {
        let mut marking: Vec<u64> = net.places.iter().map(|place| u64::from(place.initial)).collect();
        for step in 0..100u64 {
            let enabled: Vec<usize> =
                (0..count).filter(|&t| net.transitions[t].enabled(|place| marking[place as usize])).collect();
            if enabled.is_empty() {
                break;
            }
            seed = deltamark_core::hash::mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
            let chosen = enabled[(seed % enabled.len() as u64) as usize];
            for &t in &enabled {
                often[t] += 1;
                first[t] = first[t].min(step);
            }
            for &(place, gain) in &effects[chosen] {
                marking[place as usize] = marking[place as usize].saturating_add_signed(gain);
            }
        }
    }
    // Those that fire late are given up first.
    (often, first.iter().map(|&step| u64::MAX - step).collect())
}

/// The search for weights.
struct Search<'e> {
    effects: &'e [Vec<(u32, i64)>],
    /// For each place which transitions change it, and by how much.
    by_place: Vec<Vec<(u32, i64)>>,
    weights: Vec<i64>,
    gains: Vec<i64>,
    work: u64,
}

impl<'e> Search<'e> {
    fn new(places: usize, effects: &'e [Vec<(u32, i64)>]) -> Self {
        let mut by_place = vec![Vec::new(); places];
        for (number, effect) in (0u32..).zip(effects) {
            effect.iter().for_each(|&(place, gain)| by_place[place as usize].push((number, gain)));
        }
        Search { effects, by_place, weights: vec![0; places], gains: vec![0; effects.len()], work: 0 }
    }

    /// Adds the effect of a transition to the weights.
    fn add(&mut self, transition: usize) {
        for &(place, count) in &self.effects[transition] {
            self.weights[place as usize] += count;
            for &(other, change) in &self.by_place[place as usize] {
                self.gains[other as usize] += count * change;
            }
            self.work += self.by_place[place as usize].len() as u64 + 1;
        }
    }

    /// Weights under which all transitions gain but those given up, and which were met on cycles. Of those that are to
    /// blame, the one with the least `keep` is given up. No weights, if they would not do.
    fn separate(&mut self, keep: &[u64]) -> (Option<Vec<i64>>, Vec<bool>) {
        let count = self.effects.len();
        // Transitions without effect cannot gain.
        let mut wanted: Vec<bool> = self.effects.iter().map(|effect| !effect.is_empty()).collect();
        let mut cyclic = vec![false; count];
        let mut blame = vec![0u64; count];
        let mut left = wanted.iter().filter(|&&wanted| wanted).count() as u64;
        let mut updates = 0;
        loop {
            let mut quiet = true;
            for transition in 0..count {
                if wanted[transition] && self.gains[transition] <= 0 {
                    quiet = false;
                    blame[transition] += 1;
                    updates += 1;
                    self.add(transition);
                }
            }
            self.work += count as u64;
            if quiet {
                return (Some(self.weights.clone()), cyclic);
            }
            if self.work > MOST_WORK || self.weights.iter().any(|weight| weight.abs() > LARGEST) {
                return (None, cyclic);
            }
            if updates >= ROUNDS * left {
                // What comes round again and again is to blame.
                let most = blame.iter().copied().max().unwrap_or(0);
                let guilty = (0..count).filter(|&t| wanted[t] && 2 * blame[t] >= most);
                let given_up = guilty.min_by_key(|&t| (keep[t], std::cmp::Reverse(blame[t])));
                (0..count).filter(|&t| 20 * blame[t] >= most).for_each(|t| cyclic[t] = true);
                let Some(given_up) = given_up else { return (None, cyclic) };
                wanted[given_up] = false;
                left -= 1;
                updates = 0;
                blame.fill(0);
            }
        }
    }
}

/// Weights under which no transition regresses: those on cycles have no gain, and as many others as possible gain.
fn monotone(places: usize, effects: &[Vec<(u32, i64)>], mut cyclic: Vec<bool>) -> Option<Vec<i64>> {
    if places > 1500 {
        return None;
    }
    for _ in 0..8 {
        let vectors = annihilators(places, effects, &cyclic)?;
        // The gain of each transition under each vector: the net as the perceptron sees it now.
        let mapped: Vec<Vec<(u32, i64)>> = (0..effects.len())
            .map(|transition| {
                if cyclic[transition] {
                    return Vec::new();
                }
                let gain = |vector: &Vec<i64>| {
                    effects[transition].iter().map(|&(place, count)| vector[place as usize] * count).sum::<i64>()
                };
                (0u32..).zip(vectors.iter().map(gain)).filter(|&(_, gain)| gain != 0).collect()
            })
            .collect();
        let stuck = (0..effects.len()).filter(|&t| !cyclic[t] && mapped[t].is_empty()).count();
        if mapped.iter().all(Vec::is_empty) {
            return None;
        }
        let mut search = Search::new(vectors.len(), &mapped);
        let keep = vec![0; effects.len()];
        let (found, more) = search.separate(&keep);
        if more.iter().zip(&mapped).any(|(&more, mapped)| more && !mapped.is_empty()) {
            cyclic.iter_mut().zip(more).for_each(|(cyclic, more)| *cyclic |= more);
            continue;
        }
        let _ = stuck;
        let found = found?;
        let mut weights = vec![0i64; places];
        for (vector, &factor) in vectors.iter().zip(&found) {
            for (weight, &part) in weights.iter_mut().zip(vector) {
                *weight = weight.checked_add(part.checked_mul(factor)?)?;
            }
        }
        return Some(weights);
    }
    None
}

/// Integer vectors that span all weights under which these transitions have no gain; by
/// elimination without fractions.
fn annihilators(places: usize, effects: &[Vec<(u32, i64)>], which: &[bool]) -> Option<Vec<Vec<i64>>> {
    let mut rows: Vec<(usize, Vec<i64>)> = Vec::new();
    for effect in effects.iter().zip(which).filter(|(_, which)| **which).map(|(effect, _)| effect) {
        let mut row = vec![0i64; places];
        effect.iter().for_each(|&(place, count)| row[place as usize] = count);
        for (pivot, other) in &rows {
            eliminate(&mut row, other, *pivot)?;
        }
        // A pivot of 1 keeps numbers small.
        let Some(pivot) = (0..places).filter(|&place| row[place] != 0).min_by_key(|&place| row[place].abs()) else {
            continue;
        };
        for (_, other) in &mut rows {
            eliminate(other, &row, pivot)?;
        }
        rows.push((pivot, row));
    }
    let mut pivots = vec![false; places];
    rows.iter().for_each(|&(pivot, _)| pivots[pivot] = true);
    let free: Vec<usize> = (0..places).filter(|&place| !pivots[place]).collect();
    if free.len() * places > 4_000_000 {
        return None;
    }
    free.into_iter()
        .map(|place| {
            let mut scale = 1i64;
            for (pivot, row) in rows.iter().filter(|(_, row)| row[place] != 0) {
                let step = row[*pivot] / gcd(row[*pivot].unsigned_abs(), row[place].unsigned_abs()) as i64;
                scale = scale.checked_mul(step.abs() / gcd(scale.unsigned_abs(), step.unsigned_abs()) as i64)?;
            }
            let mut vector = vec![0; places];
            vector[place] = scale;
            for (pivot, row) in rows.iter().filter(|(_, row)| row[place] != 0) {
                vector[*pivot] = -(scale.checked_mul(row[place])? / row[*pivot]);
            }
            (vector.iter().all(|part| part.abs() < LARGEST)).then_some(vector)
        })
        .collect()
}

/// Makes `row` zero at the pivot, by a multiple of `other`.
fn eliminate(row: &mut [i64], other: &[i64], pivot: usize) -> Option<()> {
    if row[pivot] == 0 {
        return Some(());
    }
    let divisor = gcd(row[pivot].unsigned_abs(), other[pivot].unsigned_abs()) as i64;
    let (mine, others) = (other[pivot] / divisor, row[pivot] / divisor);
    let mut common = 0;
    for (part, &from) in row.iter_mut().zip(other) {
        *part = part.checked_mul(mine)?.checked_sub(from.checked_mul(others)?)?;
        common = gcd(common, part.unsigned_abs());
    }
    if common > 1 {
        row.iter_mut().for_each(|part| *part /= common as i64);
    }
    Some(())
}
