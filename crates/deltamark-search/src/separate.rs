//! Weights under which vectors have a positive gain.
//!
//! In: vectors, each the effect of a step on a number of counts. Out: a weight for each count such
//! that the weighted sums of most vectors are positive. Invariant: weights are integers, found
//! within bounded time; users recompute the gains.
//!
//! * The *perceptron* (F. Rosenblatt, 1958): as long as some vector does not gain, add it to the
//!   weights. If there are weights under which all gain, this terminates with such weights; all
//!   intermediate weights are integers.
//! * Otherwise, by Gordan's theorem, a non-negative combination of the vectors is zero: a cycle.
//!   The perceptron then does not terminate. One of the vectors that it added most often is given
//!   up: it may regress.
//! * Alternatively, all vectors of a cycle may be required to have gain zero. Weights with that
//!   property are found by elimination, and among these the perceptron searches for weights under
//!   which the others gain.

use deltamark_core::{Control, Stop};

/// Elementary steps from one look at the clock to the next.
const ASKED: u64 = 1 << 12;
/// How many elementary steps one search may take: a fraction of a second.
const MOST_WORK: u64 = 100_000_000;
/// How often the perceptron may add each vector, on average, before one is given up.
const ROUNDS: u64 = 40;
/// Larger weights are useless: ranks could overflow.
pub const LARGEST: i64 = 1 << 24;

/// The greatest common divisor.
fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Divides weights by their greatest common divisor; `false` if all are zero.
pub fn divide(weights: &mut [i64]) -> bool {
    let divisor = weights.iter().fold(0, |divisor, &weight| gcd(divisor, weight.unsigned_abs()));
    weights.iter_mut().for_each(|weight| *weight /= (divisor as i64).max(1));
    divisor != 0
}

/// A vector: the counts it changes, ascending, and by how much.
pub type Vector = Vec<(u32, i64)>;

/// The result of the search for weights.
pub struct Separation {
    /// Weights under which all vectors gain except those given up; `None` if none were found in
    /// time.
    pub weights: Option<Vec<i64>>,
    /// Vectors found on cycles, approximately.
    pub cyclic: Vec<bool>,
}

/// Looks for weights of `counts` counts. Of vectors that are to blame, one with the least `keep` is given up.
pub fn separate(counts: usize, vectors: &[Vector], keep: &[u64], control: &Control) -> Result<Separation, Stop> {
    let (weights, cyclic) = WeightSearch::new(counts, &reduced(vectors), control).separate(keep)?;
    Ok(Separation { weights, cyclic })
}

/// The vectors over the greatest common divisor of their parts: they gain under the same weights, and heavy ones count no more than
/// light ones.
fn reduced(vectors: &[Vector]) -> Vec<Vector> {
    let reduce = |vector: &Vector| {
        let divisor = vector.iter().fold(0, |divisor, &(_, part)| gcd(divisor, part.unsigned_abs()));
        let divisor = i64::try_from(divisor).unwrap_or(1).max(1);
        vector.iter().map(|&(at, part)| (at, part / divisor)).collect()
    };
    vectors.iter().map(reduce).collect()
}

/// Weights, if they do, and which vectors were met on cycles.
type Weights = (Option<Vec<i64>>, Vec<bool>);

/// The search for weights.
struct WeightSearch<'e> {
    effects: &'e [Vector],
    /// For each place which transitions change it, and by how much.
    by_place: Vec<Vector>,
    weights: Vec<i64>,
    /// Exact as long as no weight has passed [`LARGEST`], after which the search is given up.
    gains: Vec<i128>,
    work: u64,
    /// The work after which it is asked again whether to go on.
    asked: u64,
    control: &'e Control,
}

impl<'e> WeightSearch<'e> {
    fn new(places: usize, effects: &'e [Vector], control: &'e Control) -> Self {
        let mut by_place = vec![Vec::new(); places];
        for (number, effect) in (0u32..).zip(effects) {
            effect.iter().for_each(|&(place, gain)| by_place[place as usize].push((number, gain)));
        }
        WeightSearch {
            effects,
            by_place,
            weights: vec![0; places],
            gains: vec![0; effects.len()],
            work: 0,
            asked: 0,
            control,
        }
    }

    /// Adds the effect of a transition to the weights.
    fn add(&mut self, transition: usize) -> Result<(), Stop> {
        for &(place, count) in &self.effects[transition] {
            let weight = &mut self.weights[place as usize];
            *weight = weight.saturating_add(count);
            for &(other, change) in &self.by_place[place as usize] {
                let gain = &mut self.gains[other as usize];
                *gain = gain.saturating_add(i128::from(count) * i128::from(change));
            }
            self.work += self.by_place[place as usize].len() as u64 + 1;
            if self.work >= self.asked {
                self.asked = self.work + ASKED;
                self.control.check()?;
            }
        }
        Ok(())
    }

    /// Weights under which all transitions gain but those given up, and which were met on cycles. Of those that are to
    /// blame, the one with the least `keep` is given up. No weights, if they would not do.
    fn separate(&mut self, keep: &[u64]) -> Result<Weights, Stop> {
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
                    self.add(transition)?;
                }
            }
            self.work += count as u64;
            if quiet {
                return Ok((Some(self.weights.clone()), cyclic));
            }
            if self.work > MOST_WORK || self.weights.iter().any(|weight| weight.unsigned_abs() > LARGEST as u64) {
                return Ok((None, cyclic));
            }
            if updates >= ROUNDS * left {
                // What comes round again and again is to blame.
                let most = blame.iter().copied().max().unwrap_or(0);
                let guilty = (0..count).filter(|&t| wanted[t] && 2 * blame[t] >= most);
                let given_up = guilty.min_by_key(|&t| (keep[t], std::cmp::Reverse(blame[t])));
                (0..count).filter(|&t| 20 * blame[t] >= most).for_each(|t| cyclic[t] = true);
                let Some(given_up) = given_up else { return Ok((None, cyclic)) };
                wanted[given_up] = false;
                left -= 1;
                updates = 0;
                blame.fill(0);
            }
        }
    }
}

/// Weights under which no vector regresses: those on cycles have no gain, and of the others as many as possible gain.
pub fn monotone(
    places: usize,
    effects: &[Vector],
    mut cyclic: Vec<bool>,
    control: &Control,
) -> Result<Option<Vec<i64>>, Stop> {
    if places > 1500 {
        return Ok(None);
    }
    let effects = &reduced(effects);
    for _ in 0..8 {
        let Some(vectors) = annihilators(places, effects, &cyclic, control)? else { return Ok(None) };
        // The gain of each transition under each vector: the net as the perceptron sees it now.
        let mut mapped: Vec<Vector> = Vec::with_capacity(effects.len());
        for (effect, &cyclic) in effects.iter().zip(&cyclic) {
            control.ask()?;
            let gain = |vector: &Vec<i64>| {
                effect
                    .iter()
                    .try_fold(0i64, |sum, &(place, count)| sum.checked_add(vector[place as usize].checked_mul(count)?))
            };
            let gains: Option<Vec<i64>> = if cyclic { Some(Vec::new()) } else { vectors.iter().map(gain).collect() };
            let Some(gains) = gains else { return Ok(None) };
            mapped.push((0u32..).zip(gains).filter(|&(_, gain)| gain != 0).collect());
        }
        let mapped = reduced(&mapped);
        if mapped.iter().all(Vec::is_empty) {
            return Ok(None);
        }
        let mut search = WeightSearch::new(vectors.len(), &mapped, control);
        let keep = vec![0; effects.len()];
        let (found, more) = search.separate(&keep)?;
        if more.iter().zip(&mapped).any(|(&more, mapped)| more && !mapped.is_empty()) {
            cyclic.iter_mut().zip(more).for_each(|(cyclic, more)| *cyclic |= more);
            continue;
        }
        return Ok(found.and_then(|found| combined(places, &vectors, &found)));
    }
    Ok(None)
}

/// The sum of these vectors, each times its factor, as far as numbers reach.
fn combined(places: usize, vectors: &[Vec<i64>], factors: &[i64]) -> Option<Vec<i64>> {
    let mut weights = vec![0i64; places];
    for (vector, &factor) in vectors.iter().zip(factors) {
        for (weight, &part) in weights.iter_mut().zip(vector) {
            *weight = weight.checked_add(part.checked_mul(factor)?)?;
        }
    }
    Some(weights)
}

/// Integer vectors that span all weights under which these transitions have no gain; by
/// elimination without fractions. `None` if they are too many or their numbers too large.
fn annihilators(
    places: usize,
    effects: &[Vector],
    which: &[bool],
    control: &Control,
) -> Result<Option<Vec<Vec<i64>>>, Stop> {
    let mut rows: Vec<(usize, Vec<i64>)> = Vec::new();
    for effect in effects.iter().zip(which).filter(|(_, which)| **which).map(|(effect, _)| effect) {
        control.check()?;
        if extend_basis(places, &mut rows, effect).is_none() {
            return Ok(None);
        }
    }
    let mut pivots = vec![false; places];
    rows.iter().for_each(|&(pivot, _)| pivots[pivot] = true);
    let free: Vec<usize> = (0..places).filter(|&place| !pivots[place]).collect();
    if free.len() * places > 4_000_000 {
        return Ok(None);
    }
    let mut vectors = Vec::with_capacity(free.len());
    for place in free {
        control.check()?;
        let Some(vector) = free_vector(places, &rows, place) else { return Ok(None) };
        vectors.push(vector);
    }
    Ok(Some(vectors))
}

/// Adds an effect to rows of which each is zero at the pivots of all others, unless it depends on them.
fn extend_basis(places: usize, rows: &mut Vec<(usize, Vec<i64>)>, effect: &Vector) -> Option<()> {
    let mut row = vec![0i64; places];
    effect.iter().for_each(|&(place, count)| row[place as usize] = count);
    for (pivot, other) in rows.iter() {
        eliminate(&mut row, other, *pivot)?;
    }
    // A pivot of 1 keeps numbers small.
    let pivot = (0..places).filter(|&place| row[place] != 0).min_by_key(|&place| row[place].unsigned_abs());
    let Some(pivot) = pivot else { return Some(()) };
    for (_, other) in rows.iter_mut() {
        eliminate(other, &row, pivot)?;
    }
    rows.push((pivot, row));
    Some(())
}

/// The smallest integer vector without gain under all rows that has, of the places that are no pivots, this one alone.
fn free_vector(places: usize, rows: &[(usize, Vec<i64>)], place: usize) -> Option<Vec<i64>> {
    let mut scale = 1i64;
    for (pivot, row) in rows.iter().filter(|(_, row)| row[place] != 0) {
        let step = row[*pivot] / gcd(row[*pivot].unsigned_abs(), row[place].unsigned_abs()) as i64;
        scale = scale.checked_mul(step.checked_abs()? / gcd(scale.unsigned_abs(), step.unsigned_abs()) as i64)?;
    }
    let mut vector = vec![0; places];
    vector[place] = scale;
    for (pivot, row) in rows.iter().filter(|(_, row)| row[place] != 0) {
        vector[*pivot] = scale.checked_mul(row[place])?.checked_div(row[*pivot])?.checked_neg()?;
    }
    vector.iter().all(|part| part.unsigned_abs() < LARGEST as u64).then_some(vector)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_for_weights_ends_when_the_run_must() {
        let control = Control::new();
        control.cancel.cancel();
        let vectors: Vec<Vector> = vec![vec![(0, -1), (1, 1)], vec![(0, 1), (1, -1)]];
        assert_eq!(separate(2, &vectors, &[0, 0], &control).err(), Some(Stop::Cancelled));
        assert_eq!(monotone(2, &vectors, vec![true, false], &control), Err(Stop::Cancelled));
    }

    #[test]
    fn heavy_vectors_are_separated_as_light_ones_are() {
        let most = i64::from(u32::MAX);
        let light: Vec<Vector> = vec![vec![(0, -1), (1, 1)], vec![(1, -1), (2, 1)]];
        let heavy = light.iter().map(|vector| vector.iter().map(|&(at, part)| (at, part * most)).collect()).collect();
        let cases: [Vec<Vector>; 5] = [
            light,
            heavy,
            vec![vec![(0, -most), (1, most), (2, most - 1)], vec![(0, most - 2), (1, -most)]],
            vec![vec![(0, i64::MIN), (1, i64::MAX)], vec![(0, i64::MAX), (1, i64::MIN)]],
            vec![vec![(0, i64::MIN)], vec![(0, i64::MIN), (1, i64::MAX), (2, i64::MIN)]],
        ];
        let control = Control::new();
        let found =
            cases.clone().map(|vectors| separate(3, &vectors, &vec![0; vectors.len()], &control).unwrap().weights);
        assert!(found[0].is_some() && found[0] == found[1], "{found:?}");
        for vectors in cases {
            for which in [vec![true; vectors.len()], vec![false; vectors.len()]] {
                let Some(weights) = monotone(3, &vectors, which, &control).unwrap() else { continue };
                let gain = |vector: &Vector| {
                    vector.iter().map(|&(at, part)| i128::from(weights[at as usize]) * i128::from(part)).sum::<i128>()
                };
                assert!(vectors.iter().all(|vector| gain(vector) >= 0), "{vectors:?}: {weights:?}");
            }
        }
    }
}
