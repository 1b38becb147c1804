//! Choosing the cut of `compact`: two halves that take few values each.
//!
//! In: a sample of states. Out: the bits of each leaf of a tree. Invariant: every bit of a state is
//! in exactly one leaf, of at most 64 bits, so the tree represents the whole state regardless of
//! the sample; a poor sample costs memory, never correctness.
//!
//! # The idea
//! Let the left halves take `L` values over the whole run and the right halves `R`. Then the roots
//! are pairs out of `L·R`, and a smaller product means fewer bits per pair; and the tables of
//! halves take `L + R` entries. A store does not know which bits belong together (a slot holds many
//! places of a net), so it learns this:
//!
//! 1. Bits that are equal, or opposite, in the whole sample form one *atom*.
//! 2. Atoms with the highest mutual information are merged into clusters, and clusters into larger
//!    ones, until there are few.
//! 3. All cuts between these few are evaluated for the least estimated size.
//! 4. Clusters, then smaller ones, then atoms change sides as long as that helps (local search).
//!    The same from some arbitrary initial cuts, and the best of all.
//!
//! `L` is estimated from the number of distinct left halves in the sample, and of those that occur
//! once or twice. Ordering atoms by an eigenvector of their relations (Fiedler), and cutting that
//! order, was tried first: it cuts database managers by who is active, so that a half determines
//! all or nothing, and no local move leads out of that.
//!
//! A half with more than 64 changing bits is cut again in the same way. Bits that never changed in
//! the sample are distributed over the leaves with room.

use deltamark_core::{Slot, States, Width, hash};

/// The most bits of a leaf.
const LEAF: usize = 64;
/// The number of states of a run that is worth the trouble.
const STATES: f64 = (1 << 24) as f64;
/// The bytes that an entry of a table of halves takes, about.
const ENTRY: f64 = 256.0;
/// The most states that relations of bits are worked out from, in words of 64.
const RELATED: usize = 32;
/// Atoms up to which their relations are worked out.
const RELATED_ATOMS: usize = 1024;
/// Clusters of which all cuts are tried.
const TRY_ALL: usize = 9;
/// Beginnings that mean nothing.
const RANDOM: u64 = 3;
/// States of the sample by which beginnings are compared.
const FEW: usize = 2048;
/// Moves that are tried at each level, with few states and with all.
const TRIES: usize = 2000;
const WHOLE_TRIES: usize = 800;

/// A tree over the bits of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// These bits, ascending.
    Leaf(Vec<usize>),
    /// Two sub-trees.
    Node(Box<Cut>, Box<Cut>),
}

/// A tree whose root is a node, and how many times more values its left half takes than its
/// right one, as a power of two.
pub(crate) struct Cuts {
    pub left: Cut,
    pub right: Cut,
    pub skew: u32,
}

/// Cuts states of `slots` slots by what a sample of them shows.
pub(crate) fn cuts(sample: &States, slots: usize) -> Cuts {
    cuts_while(sample, slots, &|| true)
}

/// The same, as well as can be done while `goes_on`. Wide states take seconds, and a run that has to end gains nothing
/// by a good cut.
pub(crate) fn cuts_while(sample: &States, slots: usize, goes_on: &dyn Fn() -> bool) -> Cuts {
    let columns = Columns::new(sample, slots, goes_on);
    let (atoms, still) = columns.atoms();
    let (mut left, mut right) = bisect(&columns, &atoms);
    // The larger half is the left one.
    let (mut many, mut few) = (columns.estimate(&atoms, &left), columns.estimate(&atoms, &right));
    if many < few {
        (left, right) = (right, left);
        (many, few) = (few, many);
    }
    let skew = (many / few).max(1.0).log2() as u32;
    let mut halves = [columns.tree(&atoms, &left), columns.tree(&atoms, &right)];
    let rest = spread(still, &mut halves);
    let [left, right] = halves;
    let right = match balanced(&rest) {
        Some(rest) => Cut::Node(Box::new(right), Box::new(rest)),
        None => right,
    };
    Cuts { left, right, skew: skew.min(16) }
}

/// A tree of these leaves whose depth is logarithmic, because trees are walked and dropped by recursion; `None` if there are none.
fn balanced(leaves: &[Vec<usize>]) -> Option<Cut> {
    match leaves {
        [] => None,
        [leaf] => Some(Cut::Leaf(leaf.clone())),
        leaves => {
            let (left, right) = leaves.split_at(leaves.len() / 2);
            Some(Cut::Node(Box::new(balanced(left)?), Box::new(balanced(right)?)))
        }
    }
}

/// Of the cuts that samples have led to those that take the fewest bytes, by the sample to which they look worse. What one of
/// them shows by chance, another does not.
pub(crate) fn best_cuts(looks: Vec<(States, Cuts)>, slots: usize) -> Cuts {
    let price = |(_, cuts): &(States, Cuts)| {
        looks.iter().map(|(sample, _)| cuts.price(sample, slots)).fold(f64::NEG_INFINITY, f64::max)
    };
    let prices = looks.iter().map(price).enumerate().filter(|&(look, _)| !looks[look].0.is_empty());
    let best = prices.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(look, _)| look);
    match best {
        Some(look) => looks.into_iter().nth(look).expect("it is one of them").1,
        None => cuts(&States::new(Width::Fixed(slots)), slots),
    }
}

impl Cuts {
    /// The bytes that roots and halves take, by what a sample shows, as a power of two.
    fn price(&self, sample: &States, slots: usize) -> f64 {
        let values = |half: &Cut| {
            let mut mask = vec![0; slots];
            half.mask(&mut mask);
            let hash = |state: &[Slot]| {
                let parts = state.iter().zip(&mask).zip(0..);
                parts.fold(0u64, |sum, ((&slot, &mask), at)| sum ^ hash::mix(u64::from(slot & mask) | at << 32))
            };
            let hashes: Vec<u64> = sample.iter().map(hash).collect();
            Counter::new(hashes.len()).estimate(&hashes)
        };
        price(values(&self.left), values(&self.right))
    }
}

/// Spreads bits over leaves that have room, and gives back leaves of what is left.
fn spread(still: Vec<usize>, halves: &mut [Cut; 2]) -> Vec<Vec<usize>> {
    let mut still = still.into_iter().peekable();
    for half in halves {
        half.each_leaf(&mut |leaf| {
            while leaf.len() < LEAF
                && let Some(bit) = still.next()
            {
                leaf.push(bit);
            }
            leaf.sort_unstable();
        });
    }
    let rest: Vec<usize> = still.collect();
    rest.chunks(LEAF).map(<[usize]>::to_vec).collect()
}

impl Cut {
    /// Sets the bits of all leaves.
    fn mask(&self, mask: &mut [Slot]) {
        match self {
            Cut::Leaf(bits) => bits.iter().for_each(|bit| mask[bit / 32] |= 1 << (bit % 32)),
            Cut::Node(left, right) => {
                left.mask(mask);
                right.mask(mask);
            }
        }
    }

    fn each_leaf(&mut self, visit: &mut impl FnMut(&mut Vec<usize>)) {
        match self {
            Cut::Leaf(bits) => visit(bits),
            Cut::Node(left, right) => {
                left.each_leaf(visit);
                right.each_leaf(visit);
            }
        }
    }
}

/// A bit of all states of the sample, and the bits of a state that say the same.
struct Atom {
    bits: Vec<usize>,
}

/// The sample, bit by bit.
struct Columns<'a> {
    len: usize,
    /// Words of a column.
    words: usize,
    bits: usize,
    /// One column behind the other.
    columns: Vec<u64>,
    /// Whether a better cut is still worth looking for.
    goes_on: &'a dyn Fn() -> bool,
}

impl<'a> Columns<'a> {
    fn new(sample: &States, slots: usize, goes_on: &'a dyn Fn() -> bool) -> Self {
        let (len, bits) = (sample.len(), slots * 32);
        let words = len.div_ceil(64);
        let mut columns = vec![0; words * bits];
        for (number, state) in sample.iter().enumerate() {
            for (slot, &value) in state.iter().enumerate() {
                let mut rest = value;
                while rest != 0 {
                    let bit = slot * 32 + rest.trailing_zeros() as usize;
                    columns[bit * words + number / 64] |= 1 << (number % 64);
                    rest &= rest - 1;
                }
            }
        }
        Columns { len, words, bits, columns, goes_on }
    }

    /// Whether a better cut is still worth looking for.
    fn goes_on(&self) -> bool {
        (self.goes_on)()
    }

    /// A sample of its states at equal distances, about `len` in all.
    fn thinned(&self, len: usize) -> Columns<'a> {
        let every = self.len.div_ceil(len).max(1);
        let (len, bits) = (self.len.div_ceil(every), self.bits);
        let words = len.div_ceil(64);
        let mut columns = vec![0; words * bits];
        for bit in (0..bits).take_while(|_| self.goes_on()) {
            let from = self.column(bit);
            for number in 0..len {
                let old = number * every;
                columns[bit * words + number / 64] |= (from[old / 64] >> (old % 64) & 1) << (number % 64);
            }
        }
        Columns { len, words, bits, columns, goes_on: self.goes_on }
    }

    fn column(&self, bit: usize) -> &[u64] {
        &self.columns[bit * self.words..(bit + 1) * self.words]
    }

    /// Bits that change, put together where they say the same; and bits that never change.
    fn atoms(&self) -> (Vec<Atom>, Vec<usize>) {
        let mut atoms: Vec<Atom> = Vec::new();
        let mut still = Vec::new();
        let mut known = std::collections::HashMap::new();
        let last = if self.len.is_multiple_of(64) { u64::MAX } else { (1 << (self.len % 64)) - 1 };
        let mut normal = Vec::new();
        for bit in 0..self.bits {
            if !self.goes_on() {
                still.extend(bit..self.bits);
                break;
            }
            // The first state's bit is 0 in the normal form: a column and its opposite are one.
            normal.clear();
            normal.extend_from_slice(self.column(bit));
            if normal.first().is_some_and(|word| word & 1 == 1) {
                normal.iter_mut().for_each(|word| *word = !*word);
                if let Some(word) = normal.last_mut() {
                    *word &= last;
                }
            }
            if normal.iter().all(|&word| word == 0) {
                still.push(bit);
                continue;
            }
            let atom = *known.entry(normal.clone()).or_insert(atoms.len());
            match atoms.get_mut(atom) {
                Some(atom) if atom.bits.len() < LEAF => atom.bits.push(bit),
                // One that has no room begins another.
                Some(_) => {
                    known.insert(normal.clone(), atoms.len());
                    atoms.push(Atom { bits: vec![bit] });
                }
                None => atoms.push(Atom { bits: vec![bit] }),
            }
        }
        (atoms, still)
    }

    /// For each state the hash of these atoms.
    fn hashes(&self, atoms: &[Atom], of: &[usize]) -> Vec<u64> {
        let mut hashes = vec![0; self.len];
        for &atom in of.iter().take_while(|_| self.goes_on()) {
            self.flip(atoms, atom, &mut hashes);
        }
        hashes
    }

    /// Takes an atom into the hashes, or out of them.
    fn flip(&self, atoms: &[Atom], atom: usize, hashes: &mut [u64]) {
        let bit = atoms[atom].bits[0];
        let key = hash::coefficient(bit as u64);
        for (word, hashes) in self.column(bit).iter().zip(hashes.chunks_mut(64)) {
            for (number, hash) in hashes.iter_mut().enumerate() {
                *hash ^= key & (word >> number & 1).wrapping_neg();
            }
        }
    }

    /// How many values these atoms take over a whole run, about.
    fn estimate(&self, atoms: &[Atom], of: &[usize]) -> f64 {
        Counter::new(self.len).estimate(&self.hashes(atoms, of))
    }

    /// A tree over these atoms, none of whose leaves is too large. Its depth is logarithmic: the larger part of a cut
    /// exceeds half of the bits by at most half an atom.
    fn tree(&self, atoms: &[Atom], of: &[usize]) -> Cut {
        let bits: usize = of.iter().map(|&atom| atoms[atom].bits.len()).sum();
        if bits <= LEAF {
            return Cut::Leaf(of.iter().flat_map(|&atom| atoms[atom].bits.iter().copied()).collect());
        }
        // Related atoms side by side, and a cut in the middle.
        let inner: Vec<Atom> = of.iter().map(|&atom| Atom { bits: atoms[atom].bits.clone() }).collect();
        let line = if self.goes_on() {
            clusters(self, &inner).pop().unwrap_or_default().concat()
        } else {
            (0..inner.len()).collect()
        };
        // Atoms have at most `LEAF` bits, so there are several, and no part is empty.
        let mut taken = 0;
        let sizes = line.iter().map(|&atom| inner[atom].bits.len());
        let ends = sizes.map(|size| {
            taken += size;
            (2 * taken).abs_diff(bits)
        });
        let nearest = ends.zip(1..line.len()).min().map_or(0, |(_, end)| end);
        let (left, right) = line.split_at(nearest);
        Cut::Node(Box::new(self.tree(&inner, left)), Box::new(self.tree(&inner, right)))
    }
}

/// Counts different hashes.
struct Counter {
    /// Open addressing, 0 = empty; the lowest two bits count up to three.
    table: Vec<u64>,
}

impl Counter {
    fn new(len: usize) -> Self {
        Counter { table: vec![0; (2 * len).next_power_of_two().max(2)] }
    }

    /// How large the set is that these were drawn from, about.
    ///
    /// By Chao (1984): the numbers of values seen once and seen twice estimate how many were not seen at all.
    /// Unlike estimates that take all values as equally likely, it is not fooled by one value
    /// that takes half of the draws.
    fn estimate(&mut self, hashes: &[u64]) -> f64 {
        self.table.fill(0);
        let mask = self.table.len() - 1;
        let (mut different, mut once, mut twice) = (0i64, 0i64, 0i64);
        for &hash in hashes {
            let hash = hash | 3;
            let mut at = (hash >> 20) as usize & mask;
            loop {
                let held = self.table[at];
                if held == 0 {
                    self.table[at] = hash & !3 | 1;
                    different += 1;
                    once += 1;
                    break;
                }
                if held | 3 == hash {
                    let count = held & 3;
                    once -= i64::from(count == 1);
                    twice += i64::from(count == 1) - i64::from(count == 2);
                    self.table[at] = held + u64::from(count < 3);
                    break;
                }
                at = (at + 1) & mask;
            }
        }
        unseen(different as f64, once as f64, twice as f64)
    }
}

/// The size of a set of which `different` values were met, some of them once or twice.
fn unseen(different: f64, once: f64, twice: f64) -> f64 {
    different + once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0))
}

/// The bytes that roots and halves take where the halves have `2^left` and `2^right` values.
fn price(left: f64, right: f64) -> f64 {
    let bitmap = left * right / 8.0;
    let quotiented = STATES * ((left * right / STATES).log2().max(0.0) + 6.0) / 8.0;
    (bitmap.min(quotiented) + ENTRY * (left + right)).log2()
}

/// The atoms of both halves of the best cut found.
fn bisect(columns: &Columns<'_>, atoms: &[Atom]) -> (Vec<usize>, Vec<usize>) {
    if atoms.len() < 2 {
        return ((0..atoms.len()).collect(), Vec::new());
    }
    let levels = clusters(columns, atoms);
    // A part of the sample is enough to choose among beginnings.
    let few = columns.thinned(FEW);
    let mut whole = Bisection::new(columns, atoms);
    let mut best: Option<(f64, Vec<bool>)> = None;
    for beginning in (0..=RANDOM).take_while(|_| columns.goes_on()) {
        let mut search = Bisection::new(&few, atoms);
        let first = match beginning {
            0 => {
                search.try_all(&levels[levels.len() - 1]);
                levels.len() - 1
            }
            // At the level of the most clusters that is not that of the atoms.
            seed => {
                let level = 1.min(levels.len() - 1);
                search.scatter(&levels[level], seed);
                level
            }
        };
        for level in levels[..=first].iter().rev() {
            search.improve(level, TRIES);
        }
        whole.set(&search.right);
        let price = whole.price();
        if best.as_ref().is_none_or(|(least, _)| price < *least) {
            best = Some((price, search.right));
        }
    }
    if let Some((_, right)) = best {
        whole.set(&right);
    }
    for level in levels.iter().rev() {
        whole.improve(level, WHOLE_TRIES / levels.len());
    }
    let side = |right: bool| (0..atoms.len()).filter(|&atom| whole.right[atom] == right).collect();
    (side(false), side(true))
}

/// The search for one cut.
struct Bisection<'a> {
    columns: &'a Columns<'a>,
    atoms: &'a [Atom],
    counter: Counter,
    /// For each atom whether it is on the right.
    right: Vec<bool>,
    /// The hashes of both halves of each state.
    hashes: [Vec<u64>; 2],
}

impl<'a> Bisection<'a> {
    /// With everything on the left.
    fn new(columns: &'a Columns<'a>, atoms: &'a [Atom]) -> Self {
        let all: Vec<usize> = (0..atoms.len()).collect();
        let hashes = [columns.hashes(atoms, &all), vec![0; columns.len]];
        let counter = Counter::new(columns.len);
        Bisection { columns, atoms, counter, right: vec![false; atoms.len()], hashes }
    }

    /// Moves atoms so that these are on the right.
    fn set(&mut self, right: &[bool]) {
        for (atom, &right) in right.iter().enumerate() {
            if self.right[atom] != right {
                self.flip(atom);
            }
        }
    }

    /// Moves an atom to the other side.
    fn flip(&mut self, atom: usize) {
        self.right[atom] = !self.right[atom];
        for hashes in &mut self.hashes {
            self.columns.flip(self.atoms, atom, hashes);
        }
    }

    /// The bytes that roots and halves take with this cut, as a power of two.
    fn price(&mut self) -> f64 {
        let [left, right] = [0, 1].map(|side: usize| self.counter.estimate(&self.hashes[side]));
        price(left, right)
    }

    /// Takes the best of all ways to put these clusters, which are few, on two sides.
    fn try_all(&mut self, clusters: &[Vec<usize>]) {
        let mut best = (self.price(), self.right.clone());
        // In the order of a Gray code one cluster moves at a time. The last one stays.
        for step in 1u32..1 << (clusters.len() - 1) {
            if !self.columns.goes_on() {
                break;
            }
            clusters[step.trailing_zeros() as usize].iter().for_each(|&atom| self.flip(atom));
            let price = self.price();
            if price < best.0 {
                best = (price, self.right.clone());
            }
        }
        self.set(&best.1);
    }

    /// Puts clusters on a side each, without any meaning.
    fn scatter(&mut self, clusters: &[Vec<usize>], seed: u64) {
        for (number, cluster) in clusters.iter().enumerate() {
            if hash::mix(number as u64 ^ seed << 32) & 1 == 1 {
                cluster.iter().for_each(|&atom| self.flip(atom));
            }
        }
    }

    /// Moves clusters as long as that helps, in `tries` tries at most.
    fn improve(&mut self, clusters: &[Vec<usize>], mut tries: usize) {
        let mut best = self.price();
        loop {
            let before = best;
            for cluster in clusters {
                if tries == 0 || !self.columns.goes_on() {
                    return;
                }
                tries -= 1;
                cluster.iter().for_each(|&atom| self.flip(atom));
                let price = self.price();
                if price < best - 1e-9 {
                    best = price;
                } else {
                    cluster.iter().for_each(|&atom| self.flip(atom));
                }
            }
            if best > before - 0.01 {
                return;
            }
        }
    }
}

/// Atoms in clusters of related ones: first each alone, then ever larger clusters, until there
/// are few enough to try all cuts between them.
///
/// From level to level clusters are merged in pairs, those that know most about each other
/// first: as in the multi-level partitioning of graphs (Karypis and Kumar, 1998).
fn clusters(columns: &Columns<'_>, atoms: &[Atom]) -> Vec<Vec<Vec<usize>>> {
    let mut levels: Vec<Vec<Vec<usize>>> = vec![(0..atoms.len()).map(|atom| vec![atom]).collect()];
    let mut relations = relations(columns, atoms);
    loop {
        let level = &levels[levels.len() - 1];
        if level.len() <= TRY_ALL {
            return levels;
        }
        relations = relations.filter(|_| columns.goes_on());
        let pairs = matching(level, relations.as_deref());
        let next: Vec<Vec<usize>> = pairs
            .iter()
            .map(|pair| pair.iter().flat_map(|&cluster| level[cluster].iter().copied()).collect())
            .collect();
        relations = relations.map(|old| {
            let sum = |one: &[usize], other: &[usize]| {
                one.iter().map(|&a| other.iter().map(|&b| old[a * level.len() + b]).sum::<f32>()).sum::<f32>()
            };
            pairs.iter().flat_map(|one| pairs.iter().map(move |other| sum(one, other))).collect()
        });
        levels.push(next);
    }
}

/// How close two clusters are, and their numbers.
type Related = (f32, u16, u16);

/// The bytes that relations of atoms take beside the sample.
pub(super) fn bytes_of_relations(slots: usize) -> u64 {
    let atoms = (slots * Slot::BITS as usize).min(RELATED_ATOMS) as u64;
    // A matrix, a quarter of one for the next level, and a list of pairs.
    atoms * atoms * (size_of::<f32>() as u64 * 5 / 4 + size_of::<Related>() as u64 / 2)
}

/// Clusters in pairs; some may stay alone.
fn matching(level: &[Vec<usize>], relations: Option<&[f32]>) -> Vec<Vec<usize>> {
    let count = level.len();
    let mut pairs = Vec::new();
    let mut taken = vec![false; count];
    let Some(relations) = relations else {
        // Neighbours, for want of better knowledge.
        return (0..count).collect::<Vec<_>>().chunks(2).map(<[usize]>::to_vec).collect();
    };
    // By size too: otherwise the largest would take everything.
    let close =
        |one: usize, other: usize| relations[one * count + other] / ((level[one].len() * level[other].len()) as f32);
    let mut edges: Vec<Related> = Vec::with_capacity(count * count.saturating_sub(1) / 2);
    edges.extend((0..count).flat_map(|one| (0..one).map(move |other| (close(one, other), one as u16, other as u16))));
    // In place: where some are equally close, their numbers decide.
    edges.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    for (_, one, other) in edges {
        let [one, other] = [one, other].map(usize::from);
        if !taken[one] && !taken[other] {
            taken[one] = true;
            taken[other] = true;
            pairs.push(vec![other, one]);
        }
    }
    pairs.extend((0..count).filter(|&cluster| !taken[cluster]).map(|cluster| vec![cluster]));
    pairs
}

/// The mutual information of every two atoms; `None` if there are too many, or no time.
fn relations(columns: &Columns<'_>, atoms: &[Atom]) -> Option<Vec<f32>> {
    let count = atoms.len();
    if count > RELATED_ATOMS {
        return None;
    }
    let words = columns.words.min(RELATED);
    let states = columns.len.min(words * 64) as f32;
    let mut strength = vec![0.0; count * count];
    let column = |atom: usize| &columns.column(atoms[atom].bits[0])[..words];
    let ones: Vec<f32> =
        (0..count).map(|atom| column(atom).iter().map(|word| word.count_ones()).sum::<u32>() as f32).collect();
    for one in 0..count {
        if !columns.goes_on() {
            return None;
        }
        for other in 0..one {
            let both: u32 = column(one).iter().zip(column(other)).map(|(a, b)| (a & b).count_ones()).sum();
            let information = mutual(states, ones[one], ones[other], both as f32);
            strength[one * count + other] = information;
            strength[other * count + one] = information;
        }
    }
    Some(strength)
}

/// The mutual information of two bits, in bits: how often each is set, and both are.
fn mutual(states: f32, one: f32, other: f32, both: f32) -> f32 {
    let term = |joint: f32, first: f32, second: f32| {
        if joint <= 0.0 { 0.0 } else { joint / states * (joint * states / (first * second)).log2() }
    };
    (term(both, one, other)
        + term(one - both, one, states - other)
        + term(other - both, states - one, other)
        + term(states - one - other + both, states - one, states - other))
    .max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_core::Width;

    /// All bits of a tree, leaf by leaf.
    fn leaves(cuts: &mut Cuts) -> Vec<Vec<usize>> {
        let mut leaves = Vec::new();
        cuts.left.each_leaf(&mut |leaf| leaves.push(leaf.clone()));
        cuts.right.each_leaf(&mut |leaf| leaves.push(leaf.clone()));
        leaves
    }

    /// Two counters of five bits, their bits interleaved.
    fn interleaved(one: u32, other: u32) -> u32 {
        (0..5).fold(0, |word, bit| word | (one >> bit & 1) << (2 * bit) | (other >> bit & 1) << (2 * bit + 1))
    }

    #[test]
    fn every_bit_is_in_one_leaf_whatever_the_sample() {
        let samples: &[_] = if cfg!(miri) {
            &[(0, 1), (1, 1), (1, 9)]
        } else {
            &[(0, 1), (1, 1), (1, 300), (3, 200), (9, 500), (20, 30)]
        };
        for &(slots, count) in samples {
            let mut sample = States::new(Width::Fixed(slots));
            for number in 0..count {
                let state: Vec<u32> = (0..slots).map(|slot| hash::mix((number * 64 + slot) as u64) as u32).collect();
                sample.push(&state);
            }
            let leaves = leaves(&mut cuts(&sample, slots));
            assert!(leaves.iter().all(|leaf| leaf.len() <= LEAF && leaf.is_sorted()));
            let mut bits = leaves.concat();
            bits.sort_unstable();
            assert_eq!(bits, (0..slots * 32).collect::<Vec<_>>());
        }
    }

    /// Whenever the run has to end: the cut is one, and what is done after that is little.
    #[test]
    fn every_bit_is_in_one_leaf_whenever_looking_ends() {
        let slots = 40;
        let mut sample = States::new(Width::Fixed(slots));
        for state in 0..300u64 {
            let slot = |at: u64| hash::mix(state << 8 | at) as Slot;
            sample.push(&(0..slots as u64).map(slot).collect::<Vec<_>>());
        }
        let asked = std::cell::Cell::new(0);
        for most in [0, 1, 100, slots * 32, slots * 32 + 40, 4000, 8000] {
            asked.set(0);
            let mut cuts = cuts_while(&sample, slots, &|| {
                asked.set(asked.get() + 1);
                asked.get() <= most
            });
            assert!(depth(&cuts.left).max(depth(&cuts.right)) <= 16, "{most}");
            let mut bits = leaves(&mut cuts).concat();
            bits.sort_unstable();
            assert_eq!(bits, (0..slots * 32).collect::<Vec<_>>(), "{most}");
            assert!(asked.get() > most && asked.get() <= most + 200, "{most}: {}", asked.get());
        }
    }

    fn depth(cut: &Cut) -> usize {
        match cut {
            Cut::Leaf(_) => 0,
            Cut::Node(left, right) => 1 + depth(left).max(depth(right)),
        }
    }

    #[test]
    fn bits_that_change_together_are_cut_and_trees_stay_shallow() {
        // (bits of each group, slots): all bits of a group are equal in every state of the sample.
        let cases: &[(&[usize], usize)] =
            &[(&[80], 3), (&[65], 3), (&[64, 16], 3), (&[16, 64], 3), (&[63, 2], 3), (&[40, 40, 40], 4), (&[3000], 94)];
        for &(groups, slots) in cases {
            let mut sample = States::new(Width::Fixed(slots));
            for number in 0..1 << groups.len() {
                let bits: Vec<bool> =
                    groups.iter().enumerate().flat_map(|(at, &size)| vec![number >> at & 1 == 1; size]).collect();
                let mut state = vec![0u32; slots];
                for (bit, _) in bits.iter().enumerate().filter(|(_, set)| **set) {
                    state[bit / 32] |= 1 << (bit % 32);
                }
                sample.push(&state);
            }
            let mut cuts = cuts(&sample, slots);
            let (depths, mut bits) = ([&cuts.left, &cuts.right].map(depth), leaves(&mut cuts).concat());
            bits.sort_unstable();
            assert_eq!(bits, (0..slots * 32).collect::<Vec<_>>(), "{groups:?}");
            assert!(depths.iter().all(|&depth| depth <= 10), "{groups:?}: depths {depths:?}");
        }
    }

    #[test]
    fn trees_over_bits_that_never_change_are_shallow() {
        // A million bits and no sample: 16,384 leaves.
        let slots = if cfg!(miri) { 100 } else { 1 << 15 };
        let cuts = cuts(&States::new(Width::Fixed(slots)), slots);
        assert!(depth(&cuts.left).max(depth(&cuts.right)) <= 16);
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code that takes a hundred states at least")]
    fn independent_parts_are_told_apart() {
        // Each part takes 12 of its 32 values; a cut between them has 12 · 12 pairs.
        let values: Vec<u32> = (0..12).map(|value| value * value % 31).collect();
        let mut sample = States::new(Width::Fixed(1));
        for &one in &values {
            for &other in &values {
                sample.push(&[interleaved(one, other)]);
            }
        }
        let cuts = &mut cuts(&sample, 1);
        let mut left = Vec::new();
        cuts.left.each_leaf(&mut |leaf| left.extend(leaf.iter().copied().filter(|&bit| bit < 10)));
        let even = left.iter().filter(|&&bit| bit % 2 == 0).count();
        assert!(even == 0 || even == left.len(), "one part is whole on the left: {left:?}");
    }

    #[test]
    fn sizes_are_estimated_from_draws() {
        for &size in if cfg!(miri) { &[10u64][..] } else { &[10, 1000, 20_000] } {
            let draws: Vec<u64> =
                (0..if cfg!(miri) { 100 } else { 4000 }).map(|draw| hash::mix(hash::mix(draw) % size)).collect();
            let estimate = Counter::new(draws.len()).estimate(&draws) / size as f64;
            assert!((0.8..1.25).contains(&estimate), "{size}: {estimate}");
            // One value more that takes half of the draws changes little.
            let skewed: Vec<u64> = draws.iter().flat_map(|&draw| [draw, 77]).collect();
            let estimate = Counter::new(skewed.len()).estimate(&skewed) / size as f64;
            assert!((0.8..1.25).contains(&estimate), "{size}: {estimate}");
        }
    }
}
