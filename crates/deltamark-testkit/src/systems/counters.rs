//! Counters whose fields widen.
//!
//! In: a number of counters, and a bound on their sum or none. Out: a system that starts with one bit a
//! counter and returns `Widen` when a count outgrows its field; all fields then get one bit more. Every step
//! can be undone, counters can be observed, and the hash is linear in the counts, so it survives a recoding.
//! What stays true: a layout is identified by its bits per counter; a bounded system has C(sum + n, n) states
//! and no deadlock.

use deltamark_core::hash::coefficient;
use deltamark_core::varint::{self, Reader};
use deltamark_core::{
    Action, Batch, Describe, Field, Fired, Misread, Observable, ObservableKind, Observe, Portable, Recoding,
    Reversible, Scratch, Slot, System, Value, Widen, Width,
};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Counters with a bounded sum. Action `2i` raises counter `i`, action `2i + 1` lowers
/// it, action `2n + i` moves one from counter `i` to the next one.
pub struct Counters {
    count: usize,
    sum: u64,
    bits: AtomicU32,
}

impl Counters {
    /// `count` counters whose sum is at most `sum`.
    pub fn new(count: usize, sum: u32) -> Self {
        assert!(count > 0, "a system has at least one counter");
        Counters { count, sum: u64::from(sum), bits: AtomicU32::new(1) }
    }

    /// `count` unbounded counters.
    pub fn endless(count: usize) -> Self {
        Counters { sum: u64::MAX, ..Self::new(count, 0) }
    }

    /// The state with these counts, in the current layout.
    pub fn encode(&self, counts: &[u32]) -> Result<Vec<Slot>, Widen> {
        encode(counts, self.bits.load(Relaxed))
    }

    /// The counts of a state.
    pub fn decode(&self, state: &[Slot]) -> Vec<u32> {
        decode(state, self.count, self.bits.load(Relaxed))
    }

    /// The counts after the action, if it is enabled.
    fn step(&self, counts: &[u32], action: Action, direction: Direction) -> Option<Vec<u32>> {
        let mut next = counts.to_vec();
        let (number, count) = (action.0 as usize, self.count);
        let (raise, lower) = match number {
            _ if number >= 3 * count => return None,
            _ if number >= 2 * count => (Some((number - 2 * count + 1) % count), Some(number - 2 * count)),
            _ if number % 2 == 0 => (Some(number / 2), None),
            _ => (None, Some(number / 2)),
        };
        let (raise, lower) = if direction == Direction::Forward { (raise, lower) } else { (lower, raise) };
        if let Some(lower) = lower {
            next[lower] = next[lower].checked_sub(1)?;
        }
        if let Some(raise) = raise {
            next[raise] = next[raise].checked_add(1)?;
        }
        (next.iter().map(|&count| u64::from(count)).sum::<u64>() <= self.sum).then_some(next)
    }

    fn all_actions(&self) -> impl Iterator<Item = Action> {
        (0..3 * self.count as u32).map(Action)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Forward,
    Backward,
}

fn slots_needed(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(32)
}

/// The field of one counter.
fn field(index: usize, bits: u32) -> Field {
    let first = index as u32 * bits;
    Field::new(first / 32, (first % 32) as u8, bits as u8, 0)
}

fn encode(counts: &[u32], bits: u32) -> Result<Vec<Slot>, Widen> {
    let mut state = vec![0; slots_needed(counts.len(), bits)];
    for (index, &count) in counts.iter().enumerate() {
        if u64::from(count) >> bits != 0 {
            return Err(Widen);
        }
        // Bit by bit: slow, and right across slot boundaries.
        for bit in 0..bits as usize {
            let position = index * bits as usize + bit;
            state[position / 32] |= (count >> bit & 1) << (position % 32);
        }
    }
    Ok(state)
}

fn decode(state: &[Slot], count: usize, bits: u32) -> Vec<u32> {
    let bit = |position: usize| state[position / 32] >> (position % 32) & 1;
    (0..count)
        .map(|index| (0..bits as usize).map(|offset| bit(index * bits as usize + offset) << offset).sum())
        .collect()
}

fn hash(counts: &[u32]) -> u64 {
    let terms = counts.iter().enumerate().map(|(index, &count)| coefficient(index as u64).wrapping_mul(count.into()));
    terms.fold(0, u64::wrapping_add)
}

impl System for Counters {
    fn width(&self) -> Width {
        Width::Fixed(slots_needed(self.count, self.bits.load(Relaxed)))
    }

    fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        let zeros = vec![0; self.count];
        out.push_hashed(Action(0), &self.encode(&zeros)?, hash(&zeros));
        Ok(())
    }

    fn successors(&self, _scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let counts = self.decode(source);
        for action in self.all_actions() {
            if let Some(next) = self.step(&counts, action, Direction::Forward) {
                out.push_hashed(action, &self.encode(&next)?, hash(&next));
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
        target.clear();
        match self.step(&self.decode(source), action, Direction::Forward) {
            Some(next) => {
                target.extend(self.encode(&next)?);
                Ok(Fired::Done)
            }
            None => Ok(Fired::Disabled),
        }
    }

    fn hash(&self, _scratch: &mut Scratch, state: &[Slot]) -> u64 {
        hash(&self.decode(state))
    }

    fn widen(&self) -> Recoding {
        let (count, old) = (self.count, self.bits.fetch_add(1, Relaxed));
        let new = old + 1;
        let reason = format!("counters now have {new} bits");
        let pairs = (0..count).map(|index| (field(index, old), field(index, new)));
        Recoding::new(slots_needed(count, old), slots_needed(count, new), reason, pairs)
    }

    fn action_count(&self) -> Option<u32> {
        Some(3 * self.count as u32)
    }

    fn portable(&self) -> Option<&dyn Portable> {
        Some(self)
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        Some(self)
    }

    fn observe(&self) -> Option<&dyn Observe> {
        Some(self)
    }
}

impl Portable for Counters {
    fn write_state(&self, _scratch: &mut Scratch, state: &[Slot], out: &mut Vec<u8>) {
        self.decode(state).into_iter().for_each(|count| varint::write(count.into(), out));
    }

    fn read_state(&self, _scratch: &mut Scratch, bytes: &mut Reader<'_>, out: &mut Vec<Slot>) -> Result<(), Misread> {
        let count = |_| bytes.at_most(u32::MAX.into()).map(|count| count as u32);
        let counts: Vec<u32> = (0..self.count).map(count).collect::<Option<_>>().ok_or(Misread::SHORT)?;
        if counts.iter().map(|&count| u64::from(count)).sum::<u64>() > self.sum {
            return Err(Misread::Wrong("the counters come to more than their sum"));
        }
        *out = self.encode(&counts)?;
        Ok(())
    }
}

impl Reversible for Counters {
    fn unfire(&self, _scratch: &mut Scratch, target: &[Slot], action: Action, source: &mut Vec<Slot>) -> bool {
        source.clear();
        let before = self.step(&self.decode(target), action, Direction::Backward);
        match before.and_then(|before| self.encode(&before).ok()) {
            Some(state) => {
                source.extend(state);
                true
            }
            None => false,
        }
    }

    fn predecessors(&self, scratch: &mut Scratch, target: &[Slot], out: &mut Batch) {
        let mut source = Vec::new();
        for action in self.all_actions() {
            if self.unfire(scratch, target, action, &mut source) {
                out.push_hashed(action, &source, hash(&self.decode(&source)));
            }
        }
    }
}

impl Describe for Counters {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let counts = self.decode(state).into_iter().enumerate().filter(|&(_, count)| count > 0);
        counts.map(|(index, count)| (format!("c{index}"), Value::Int(count.into()))).collect()
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        let (number, count) = (action.0 as usize, self.count);
        match number {
            _ if number >= 2 * count => format!("move{}", number - 2 * count),
            _ if number % 2 == 0 => format!("raise{}", number / 2),
            _ => format!("lower{}", number / 2),
        }
    }
}

impl Observe for Counters {
    fn resolve(&self, name: &str) -> Option<Observable> {
        let index = self.names().iter().position(|known| known == name)?;
        Some(Observable { index: index as u32, kind: ObservableKind::Int })
    }

    fn fireable(&self, name: &str) -> Option<Observable> {
        let index = self.action_names().iter().position(|known| known == name)?;
        Some(Observable { index: (self.count + index) as u32, kind: ObservableKind::Bool })
    }

    fn names(&self) -> Vec<String> {
        (0..self.count).map(|index| format!("c{index}")).collect()
    }

    fn action_names(&self) -> Vec<String> {
        self.all_actions().map(|action| self.describe().action(&[], action)).collect()
    }

    fn read(&self, _scratch: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        let (counts, index) = (self.decode(state), observable.index as usize);
        match index.checked_sub(self.count) {
            None => i64::from(counts[index]),
            Some(action) => i64::from(self.step(&counts, Action(action as u32), Direction::Forward).is_some()),
        }
    }
}
