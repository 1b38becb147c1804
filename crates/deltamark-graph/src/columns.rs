//! The edges of a block, action by action.
//!
//! In: the edges of up to 64 consecutive states. Out: a bit string, and the edges again. What stays true: actions
//! ascend, and no column is empty; decoding stays within the string and terminates whatever it holds.
//!
//! # Layout
//! `n` and *action* as in [`block`](crate::block). `rice(k)` is the Rice code of a number `x`: `x >> k` zeros, a
//! one, and the low `k` bits of `x` (R.F. Rice, *Some practical universal noiseless coding techniques*, JPL 1979):
//! small numbers take few bits, and an outlier costs only itself.
//!
//! ```text
//! [n columns] [action: that of the first] [6: gap bits] [n least base] [6: base bits] [3: width bits]
//! head    [gap] [base] [width] [1: stepping] [1: sloping] [1: listed]       one a column; the first has no gap
//! body    its states     64 bits, one a state;  or, if listed, [4: states - 1] [3: k], then gaps by rice(k)
//!         its targets    an offset of `width` bits for each state;  or, if stepping, the low bits of a step by rice(width) for each but the first
//! tail    zeros and ones of all steps, column after column, from the last bit of the block backwards
//! ```
//! So the size of a column is known from its header and its states, and skipping its steps means counting ones, a
//! word at a time.
//!
//! A column holds all edges of one action. A gap is the difference between an action, or the index of a state, and
//! the one before. The value of an edge is *least base + base + offset*; in a stepping column the first has the
//! value *least base + base*, and a step is the difference to the previous value, zigzag-encoded (0, -1, 1, -2, …
//! as 0, 1, 2, 3, …). Its target is the value, plus the index of the source in the block if the column is sloping.
//!
//! If states are numbered as a search finds them, one action leads from neighbours to states that are close to
//! each other: steps are small even if offsets from a common base are not. They save a tenth to a quarter of the
//! whole file, and cost some time to decode: a column is stepping only if that saves an eighth of its targets.

use crate::bits::{BitReader, BitWriter, MOST_BITS, read};
use crate::block::{Bounds, STATES, WIDTH, get_n, get_width, n, odd, put_n, span};
use crate::meta::FileError;
use deltamark_core::Edge;
use deltamark_core::packed::bits_of;

/// Columns of at most this many states may list them.
const LISTED: usize = 16;
/// Bits of the number of listed states, and of the parameter of their gaps.
const LIST_HEAD: u32 = 4 + 3;
/// The maximum number of zeros of a Rice code.
const MOST_ZEROS: u32 = 30;
/// The largest `k` of `rice`: a code is then read as one word.
const MOST_LOW: u32 = MOST_BITS - MOST_ZEROS - 1;
/// Graphs of at most this many actions use counting sort; others sort by comparison.
const FEW_ACTIONS: u32 = 1 << 16;

/// The encoding of a column.
#[derive(Clone, Copy)]
struct ColumnPlan {
    start: usize,
    end: usize,
    base: u64,
    width: u32,
    stepping: bool,
    sloping: bool,
    /// The Rice parameter of the gaps, if states are listed.
    list: Option<u32>,
    /// Bits of the body.
    size: u32,
}

/// Encodes columns.
#[derive(Default)]
pub(crate) struct Columns {
    /// The actions of the block, ascending.
    pub actions: Vec<u32>,
    /// The position of the next edge of each action.
    next: Vec<u32>,
    sources: Vec<u8>,
    targets: Vec<u64>,
    plans: Vec<ColumnPlan>,
    base: (u64, u32),
    gap_bits: u32,
    width_bits: u32,
    tail: BitWriter,
    tail_bytes: Vec<u8>,
}

/// The size of these numbers by the best Rice code, and its parameter.
fn rice(numbers: &[u32]) -> Option<(u32, u32)> {
    let count = numbers.len() as u32;
    let (sum, most) =
        numbers.iter().fold((0u64, 0), |(sum, most), &number| (sum + u64::from(number), most.max(number)));
    let near = bits_of(sum / u64::from(count.max(1)));
    let least = bits_of(u64::from(most) / u64::from(MOST_ZEROS + 1));
    let best = |k: u32| (numbers.iter().map(|&number| number >> k).sum::<u32>() + count * (1 + k), k);
    (near.saturating_sub(2)..=near).map(|k| k.max(least)).filter(|&k| k <= MOST_LOW).map(best).min()
}

/// Writes the unary part of a Rice code; the low bits are written apart.
fn put_high(out: &mut BitWriter, number: u32, k: u32) {
    out.push(1 << (number >> k), (number >> k) + 1);
}

fn put_low(out: &mut BitWriter, number: u32, k: u32) {
    out.push(u64::from(number) & ((1 << k) - 1), k);
}

/// Zigzag: differences near zero of either sign as small numbers.
fn fold(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

/// The size of a column's targets, with or without a slope.
struct Fit {
    base: u64,
    width: u32,
    stepping: bool,
    size: u32,
}

impl Fit {
    fn new(values: &[u64]) -> Self {
        let (base, width) = span(values.iter().copied());
        let level = Fit { base, width, stepping: false, size: width * values.len() as u32 };
        let mut steps = [0; STATES];
        let mut wide = 0;
        for (step, pair) in steps.iter_mut().zip(values.windows(2)) {
            let folded = fold(pair[1].wrapping_sub(pair[0]) as i64);
            wide |= folded;
            *step = folded as u32;
        }
        // Sums of 64 such numbers fit in a word.
        if wide >= 1 << 25 {
            return level;
        }
        match rice(&steps[..values.len() - 1]) {
            Some((size, width)) if size + level.size / 8 < level.size => {
                Fit { base: values[0], width, stepping: true, size }
            }
            _ => level,
        }
    }
}

impl Columns {
    /// Takes the edges of a block: of all states, sorted by action within each, and where those of each state end.
    pub fn gather(&mut self, bounds: Bounds, edges: &[Edge], ends: &[u32]) {
        let Columns { actions, next, sources, targets, plans, .. } = self;
        let few = bounds.actions <= FEW_ACTIONS;
        actions.clear();
        if few {
            // It holds zeros between blocks.
            next.resize(bounds.actions as usize, 0);
            for edge in edges {
                let count = &mut next[edge.action.0 as usize];
                if *count == 0 {
                    actions.push(edge.action.0);
                }
                *count += 1;
            }
            actions.sort_unstable();
        } else {
            actions.extend(edges.iter().map(|edge| edge.action.0));
            actions.sort_unstable();
            actions.dedup();
            next.clear();
            next.resize(actions.len(), 0);
            for edge in edges {
                next[actions.partition_point(|&action| action < edge.action.0)] += 1;
            }
        }
        plans.clear();
        let mut start = 0;
        for (place, &action) in actions.iter().enumerate() {
            let next = &mut next[if few { action as usize } else { place }];
            let end = start + *next as usize;
            *next = start as u32;
            let (stepping, sloping) = (false, false);
            plans.push(ColumnPlan { start, end, base: 0, width: 0, stepping, sloping, list: None, size: 0 });
            start = end;
        }
        sources.resize(edges.len(), 0);
        targets.resize(edges.len(), 0);
        let mut start = 0;
        for (source, &end) in ends.iter().enumerate() {
            for edge in &edges[start..end as usize] {
                let action = edge.action.0;
                let slot = if few { action as usize } else { actions.partition_point(|&other| other < action) };
                let place = next[slot] as usize;
                next[slot] += 1;
                sources[place] = source as u8;
                targets[place] = edge.target;
            }
            start = end as usize;
        }
        // Zeros again, or none.
        match few {
            true => actions.iter().for_each(|&action| next[action as usize] = 0),
            false => next.clear(),
        }
    }

    /// Chooses the encoding of the columns. Returns their size in bits.
    pub fn plan(&mut self, bounds: Bounds) -> u32 {
        let Columns { actions, sources, targets, plans, .. } = self;
        for plan in plans.iter_mut() {
            let (sources, targets) = (&sources[plan.start..plan.end], &targets[plan.start..plan.end]);
            let mut fit = Fit::new(targets);
            plan.sloping = false;
            if sources.iter().zip(targets).all(|(&source, &target)| target >= u64::from(source)) {
                let mut values = [0; STATES];
                for (value, (&source, &target)) in values.iter_mut().zip(sources.iter().zip(targets)) {
                    *value = target - u64::from(source);
                }
                let sloped = Fit::new(&values[..targets.len()]);
                if sloped.size < fit.size {
                    (fit, plan.sloping) = (sloped, true);
                }
            }
            (plan.base, plan.width, plan.stepping) = (fit.base, fit.width, fit.stepping);
            let mut states = STATES as u32;
            if sources.len() <= LISTED {
                let mut gaps = [0; LISTED];
                gaps_of(sources, &mut gaps);
                if let Some((size, k)) = rice(&gaps[..sources.len()])
                    && LIST_HEAD + size < states
                {
                    states = LIST_HEAD + size;
                    plan.list = Some(k);
                }
            }
            plan.size = states + fit.size;
        }
        self.base = span(plans.iter().map(|plan| plan.base));
        self.gap_bits = span(actions.windows(2).map(|pair| u64::from(pair[1] - pair[0] - 1)).chain([0])).1;
        self.width_bits = bits_of(plans.iter().map(|plan| plan.width).max().unwrap_or(0));
        let count = plans.len() as u32;
        if count == 0 {
            return n(0);
        }
        let block = n(count.into()) + bounds.action_bits() + 2 * WIDTH + n(self.base.0) + 3;
        let head = self.gap_bits + self.base.1 + self.width_bits + 3;
        block + count * head - self.gap_bits + plans.iter().map(|plan| plan.size).sum::<u32>()
    }

    /// Encodes them as planned, after the contents of `start`, and appends everything.
    pub fn write(&mut self, bounds: Bounds, start: &mut BitWriter, out: &mut Vec<u8>) {
        self.write_front(bounds, start);
        let (begin, front, back) = (out.len(), start.bits(), self.tail.bits());
        start.finish(out);
        self.tail_bytes.clear();
        self.tail.finish(&mut self.tail_bytes);
        // The tail is written from the end, and may share a byte with the front.
        out.resize(begin + (front + back).div_ceil(8) as usize, 0);
        for (byte, tail) in out[begin..].iter_mut().rev().zip(&self.tail_bytes) {
            *byte |= tail.reverse_bits();
        }
    }

    fn write_front(&mut self, bounds: Bounds, out: &mut BitWriter) {
        put_n(out, self.plans.len() as u64);
        let Some(&first) = self.actions.first() else { return };
        out.push(first.into(), bounds.action_bits());
        out.push(self.gap_bits.into(), WIDTH);
        put_n(out, self.base.0);
        out.push(self.base.1.into(), WIDTH);
        out.push(self.width_bits.into(), 3);
        let mut before = None;
        for (plan, &action) in self.plans.iter().zip(&self.actions) {
            if let Some(before) = before.replace(action) {
                out.push(u64::from(action - before - 1), self.gap_bits);
            }
            out.push(plan.base - self.base.0, self.base.1);
            out.push(plan.width.into(), self.width_bits);
            out.push(plan.stepping.into(), 1);
            out.push(plan.sloping.into(), 1);
            out.push(plan.list.is_some().into(), 1);
        }
        for place in 0..self.plans.len() {
            self.write_body(self.plans[place], out);
        }
    }

    fn write_body(&mut self, plan: ColumnPlan, out: &mut BitWriter) {
        let (sources, targets) = (&self.sources[plan.start..plan.end], &self.targets[plan.start..plan.end]);
        match plan.list {
            Some(k) => {
                out.push(sources.len() as u64 - 1, 4);
                out.push(k.into(), 3);
                let mut gaps = [0; LISTED];
                gaps_of(sources, &mut gaps);
                for &gap in &gaps[..sources.len()] {
                    put_high(out, gap, k);
                    put_low(out, gap, k);
                }
            }
            None => {
                let mask = sources.iter().fold(0u64, |mask, &source| mask | 1 << source);
                out.push(mask & 0xffff_ffff, 32);
                out.push(mask >> 32, 32);
            }
        }
        let slope = u64::from(plan.sloping);
        let mut before = plan.base;
        for (&source, &target) in sources.iter().zip(targets) {
            let value = target - slope * u64::from(source);
            if !plan.stepping {
                out.push(value - plan.base, plan.width);
            } else if source != sources[0] {
                let step = fold(value.wrapping_sub(before) as i64) as u32;
                put_high(&mut self.tail, step, plan.width);
                put_low(out, step, plan.width);
            }
            before = value;
        }
    }
}

/// The gaps between the indices of a column's states.
fn gaps_of(sources: &[u8], gaps: &mut [u32; LISTED]) {
    let mut free = 0;
    for (gap, &source) in gaps.iter_mut().zip(sources) {
        *gap = u32::from(source) - free;
        free = u32::from(source) + 1;
    }
}

/// Rice-coded gaps, in sequence.
struct Gaps<'a> {
    bytes: &'a [u8],
    at: u64,
    k: u32,
}

impl Gaps<'_> {
    #[inline]
    fn next(&mut self) -> Result<u64, FileError> {
        let window = read(self.bytes, self.at, MOST_BITS);
        let zeros = window.trailing_zeros();
        if zeros > MOST_ZEROS {
            return Err(odd());
        }
        self.at += u64::from(zeros + 1 + self.k);
        Ok(u64::from(zeros) << self.k | (window >> (zeros + 1)) & ((1 << self.k) - 1))
    }
}

/// The unary parts of steps, from the end of a block backwards.
struct Tail<'a> {
    bytes: &'a [u8],
    /// Bits that were read, including those in the window.
    at: u64,
    /// The next bits, the first one on top; followed by zeros.
    window: u64,
    /// The number of bits in the window.
    left: u32,
}

impl<'a> Tail<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Tail { bytes, at: 0, window: 0, left: 0 }
    }

    /// Refills the window to at least 56 bits, beginning with the first not consumed; zeros at the end of the
    /// block.
    #[inline]
    fn fill(&mut self) {
        let at = self.at - u64::from(self.left);
        let end = self.bytes.len().saturating_sub((at / 8) as usize);
        let word = match self.bytes[..end].last_chunk::<8>() {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => near_start(&self.bytes[..end]),
        };
        self.window = word << (at % 8);
        self.left = 64 - (at % 8) as u32;
        self.at = at + u64::from(self.left);
    }

    /// The number of zeros before the next one bit.
    #[inline]
    fn zeros(&mut self) -> Result<u32, FileError> {
        let mut zeros = self.window.leading_zeros();
        if zeros >= self.left {
            self.fill();
            zeros = self.window.leading_zeros();
        }
        if zeros > MOST_ZEROS {
            return Err(odd());
        }
        self.window <<= zeros + 1;
        self.left -= zeros + 1;
        Ok(zeros)
    }

    /// Skips the bits up to and including the given number of ones.
    #[inline]
    fn skip(&mut self, mut ones: u32) -> Result<(), FileError> {
        while self.window.count_ones() < ones {
            ones -= self.window.count_ones();
            if self.at > 8 * self.bytes.len() as u64 {
                return Err(odd());
            }
            self.left = 0;
            self.fill();
        }
        if ones > 0 {
            // Halves with fewer ones are skipped; the rest begins with the one that is searched.
            for half in [32, 16, 8, 4, 2, 1] {
                let held = (self.window >> (64 - half)).count_ones();
                if held < ones {
                    ones -= held;
                    self.window <<= half;
                    self.left -= half;
                }
            }
            self.window <<= 1;
            self.left -= 1;
        }
        Ok(())
    }
}

#[cold]
fn near_start(bytes: &[u8]) -> u64 {
    let mut chunk = [0; 8];
    chunk[8 - bytes.len()..].copy_from_slice(bytes);
    u64::from_le_bytes(chunk)
}

/// A block of columns to be decoded.
pub(crate) struct Reading<'a> {
    pub bytes: &'a [u8],
    pub bounds: Bounds,
    /// The number of states in it.
    pub states: usize,
}

impl Reading<'_> {
    /// Calls `each` with every edge and the index of its source: of all states, or of one.
    #[inline]
    pub fn visit(
        &self,
        mut reader: BitReader<'_>,
        one: Option<usize>,
        each: &mut impl FnMut(u8, Edge),
    ) -> Result<(), FileError> {
        let all = 8 * self.bytes.len() as u64;
        let count = get_n(&mut reader)?;
        if count == 0 {
            return Ok(());
        }
        let mut action = reader.next(self.bounds.action_bits());
        let gap_bits = get_width(&mut reader)?;
        let least = get_n(&mut reader)?;
        let base_bits = get_width(&mut reader)?;
        let width_bits = reader.next(3) as u32;
        // Every column takes some bits, so that this bounds the work.
        if count > all || width_bits > WIDTH {
            return Err(odd());
        }
        let head = u64::from(gap_bits + base_bits + width_bits + 3);
        let mut body = reader.at() + count * head - u64::from(gap_bits);
        let mut tail = Tail::new(self.bytes);
        for place in 0..count {
            if place > 0 {
                action += 1 + reader.next(gap_bits);
            }
            if action >= self.bounds.actions.into() {
                return Err(odd());
            }
            let base = least + reader.next(base_bits);
            let width = reader.next(width_bits) as u32;
            let stepping = reader.next(1) == 1;
            let slope = reader.next(1);
            let mask;
            (mask, body) = self.column_states(body, reader.next(1) == 1)?;
            if width > if stepping { MOST_LOW } else { MOST_BITS } {
                return Err(odd());
            }
            let mut each = |source: u32, value: u64| {
                let target = value.wrapping_add(slope * u64::from(source));
                each(source as u8, self.bounds.edge(action, target)?);
                Ok(())
            };
            body = match stepping {
                true => self.stepping(body, &mut tail, mask, base, width, one, &mut each)?,
                false => self.level(body, mask, base, width, one, &mut each)?,
            };
            if body > all {
                return Err(odd());
            }
        }
        Ok(())
    }

    /// The states of the column whose body begins here, a bit each; and where its targets begin.
    #[inline]
    fn column_states(&self, body: u64, listed: bool) -> Result<(u64, u64), FileError> {
        let (mut mask, mut at) = (0u64, body + STATES as u64);
        if listed {
            let count = read(self.bytes, body, 4) + 1;
            let k = read(self.bytes, body + 4, 3) as u32;
            let mut gaps = Gaps { bytes: self.bytes, at: body + u64::from(LIST_HEAD), k };
            let mut free = 0;
            for _ in 0..count {
                let source = free + gaps.next()?;
                if source >= STATES as u64 {
                    return Err(odd());
                }
                mask |= 1 << source;
                free = source + 1;
            }
            at = gaps.at;
        } else {
            mask = read(self.bytes, body, 32) | read(self.bytes, body + 32, 32) << 32;
        }
        let beyond = self.states < STATES && mask >> self.states != 0;
        if mask == 0 || beyond { Err(odd()) } else { Ok((mask, at)) }
    }

    /// Decodes targets that are offsets, and returns the position after them.
    #[inline]
    fn level(
        &self,
        at: u64,
        mask: u64,
        base: u64,
        width: u32,
        one: Option<usize>,
        each: &mut impl FnMut(u32, u64) -> Result<(), FileError>,
    ) -> Result<u64, FileError> {
        let value = |place: u32| base + read(self.bytes, at + u64::from(place * width), width);
        match one {
            Some(one) if mask >> one & 1 == 0 => {}
            Some(one) => each(one as u32, value((mask & ((1 << one) - 1)).count_ones()))?,
            None => {
                let mut rest = mask;
                for place in 0..mask.count_ones() {
                    each(rest.trailing_zeros(), value(place))?;
                    rest &= rest.wrapping_sub(1);
                }
            }
        }
        Ok(at + u64::from(mask.count_ones() * width))
    }

    /// Decodes targets that are steps, and returns the position after their low bits.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "a head, taken apart")]
    fn stepping(
        &self,
        at: u64,
        tail: &mut Tail<'_>,
        mask: u64,
        base: u64,
        width: u32,
        one: Option<usize>,
        each: &mut impl FnMut(u32, u64) -> Result<(), FileError>,
    ) -> Result<u64, FileError> {
        let steps = mask.count_ones() - 1;
        let mut value = base;
        let step = |place: u32, tail: &mut Tail<'_>| {
            let high = u64::from(tail.zeros()?) << width;
            let folded = high | read(self.bytes, at + u64::from(place * width), width);
            Ok::<u64, FileError>(folded >> 1 ^ (folded & 1).wrapping_neg())
        };
        match one {
            Some(one) if mask >> one & 1 == 0 => tail.skip(steps)?,
            Some(one) => {
                let place = (mask & ((1 << one) - 1)).count_ones();
                for before in 0..place {
                    value = value.wrapping_add(step(before, tail)?);
                }
                each(one as u32, value)?;
                tail.skip(steps - place)?;
            }
            None => {
                let mut rest = mask;
                for place in 0..=steps {
                    each(rest.trailing_zeros(), value)?;
                    rest &= rest.wrapping_sub(1);
                    if place < steps {
                        value = value.wrapping_add(step(place, tail)?);
                    }
                }
            }
        }
        Ok(at + u64::from(steps * width))
    }
}
