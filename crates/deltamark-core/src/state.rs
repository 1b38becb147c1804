//! States as slices of slots, and reusable lists of them.
//!
//! In: packed slots from a front end. Out: [`States`], the flat list that blocks, batches and
//! queues consist of. Invariant: the states of a list are contiguous in one allocation, which is
//! kept when the list is cleared.

use std::fmt;

/// The unit a state is made of. A front end packs many small fields into one slot.
///
/// 32 bits rather than 64: a net whose fields need 65 to 96 bits then takes 12 bytes instead of 16.
/// The compiler still compares narrow states 64 bits at a time.
pub type Slot = u32;

/// The number of a state in its store, stable for the whole run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(u64);

impl StateId {
    /// Returned by a store that recognises a state but cannot return its id.
    pub const NAMELESS: StateId = StateId(u64::MAX);

    /// The id with this number.
    #[inline]
    pub const fn new(number: u64) -> Self {
        StateId(number)
    }

    /// The number, for arithmetic.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number as an index into a side table.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NAMELESS { f.write_str("#?") } else { write!(f, "#{}", self.0) }
    }
}

/// The label of an edge. An action and its source state determine exactly one successor, so a path
/// can be stored as actions and replayed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Action(pub u32);

impl Action {
    /// No action: how an initial state is reached. No system numbers an action like this.
    pub const NONE: Action = Action(u32::MAX);
}

/// The number of slots of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// Every state has this number of slots.
    Fixed(usize),
    /// States of one system differ in length.
    Varies,
}

/// A list of this many slots, 1 MiB, is large.
const LARGE: usize = 1 << 18;

/// States of up to this many slots are copied and compared slot by slot: a call of the
/// library's function would take longer.
const SHORT: usize = 4;

/// Whether two states are equal; faster than `==` for short ones.
#[inline]
pub fn same(one: &[Slot], other: &[Slot]) -> bool {
    if one.len() != other.len() || one.len() > SHORT {
        return one == other;
    }
    one.iter().zip(other).fold(0, |differing, (one, other)| differing | (one ^ other)) == 0
}

/// A reusable flat list of states.
///
/// Clearing keeps the memory, and pushing into existing memory neither allocates nor zeroes: there
/// may be stale slots past the end of the list. A clone has none.
#[derive(Debug)]
pub struct States {
    width: Width,
    len: usize,
    /// Slots in use; `slots` may be longer.
    used: usize,
    slots: Vec<Slot>,
    /// Where each state ends, kept only when the width varies.
    ends: Vec<usize>,
}

impl Clone for States {
    fn clone(&self) -> Self {
        let States { width, len, used, slots, ends } = self;
        States { width: *width, len: *len, used: *used, slots: slots[..*used].to_vec(), ends: ends.clone() }
    }
}

impl States {
    /// An empty list for states of this width.
    pub fn new(width: Width) -> Self {
        States { width, len: 0, used: 0, slots: Vec::new(), ends: Vec::new() }
    }

    /// Empties the list, keeps its memory, and sets the width of the states to come.
    pub fn reset(&mut self, width: Width) {
        self.width = width;
        self.clear();
    }

    /// Empties the list and keeps its memory.
    pub fn clear(&mut self) {
        self.len = 0;
        self.used = 0;
        self.ends.clear();
    }

    /// Keeps the first `len` states.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.len = len;
        self.used = match self.width {
            Width::Fixed(width) => len * width,
            Width::Varies => {
                self.ends.truncate(len);
                self.ends.last().copied().unwrap_or(0)
            }
        };
    }

    /// Keeps the states whose indices satisfy `stays`, in order.
    pub fn retain(&mut self, mut stays: impl FnMut(usize) -> bool) {
        let (mut kept, mut used, mut start) = (0, 0, 0);
        for index in 0..self.len {
            let end = match self.width {
                Width::Fixed(width) => start + width,
                Width::Varies => self.ends[index],
            };
            if stays(index) {
                if used != start {
                    self.slots.copy_within(start..end, used);
                }
                used += end - start;
                if self.width == Width::Varies {
                    self.ends[kept] = used;
                }
                kept += 1;
            }
            start = end;
        }
        self.truncate(kept);
    }

    /// The number of states.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list holds no state.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The width its states have.
    #[inline]
    pub fn width(&self) -> Width {
        self.width
    }

    /// All slots of all states, contiguous.
    #[inline]
    pub fn slots(&self) -> &[Slot] {
        &self.slots[..self.used]
    }

    /// The bytes allocated by this list, used or not.
    pub fn held_bytes(&self) -> u64 {
        (self.slots.capacity() * size_of::<Slot>() + self.ends.capacity() * size_of::<usize>()) as u64
    }

    /// The additional bytes it may temporarily allocate when `states` more states of `slots` slots
    /// in total are pushed: growth copies to a larger allocation, and both exist meanwhile.
    pub fn growth(&self, states: usize, slots: usize) -> u64 {
        let mut bytes = 0;
        if self.used + slots > self.slots.len() {
            bytes += Self::enlarged(self.used + slots) * size_of::<Slot>();
        }
        if self.width == Width::Varies && self.ends.len() + states > self.ends.capacity() {
            // One by one, so doubled as often as needed.
            bytes += 2 * (self.ends.len() + states).max(4) * size_of::<usize>();
        }
        bytes as u64
    }

    /// State number `index`.
    #[inline]
    pub fn get(&self, index: usize) -> &[Slot] {
        match self.width {
            Width::Fixed(width) => {
                assert!(index < self.len, "state {index} of {}", self.len);
                &self.slots[index * width..(index + 1) * width]
            }
            Width::Varies => {
                let start = if index == 0 { 0 } else { self.ends[index - 1] };
                &self.slots[start..self.ends[index]]
            }
        }
    }

    /// Appends a state.
    #[inline]
    pub fn push(&mut self, state: &[Slot]) {
        let slots = self.push_with(state.len());
        if state.len() > SHORT {
            slots.copy_from_slice(state);
        } else {
            slots.iter_mut().zip(state).for_each(|(slot, &value)| *slot = value);
        }
    }

    /// Appends a state of `width` slots and returns them for the caller to fill; they contain stale
    /// values until then.
    #[inline]
    pub fn push_with(&mut self, width: usize) -> &mut [Slot] {
        match self.width {
            Width::Fixed(fixed) => assert_eq!(fixed, width, "a state of a fixed-width system has its width"),
            Width::Varies => self.ends.push(self.used + width),
        }
        self.len += 1;
        self.extend_slots(width)
    }

    /// Appends the states of another list with these indices, in order.
    pub fn gather(&mut self, from: &States, numbers: &[u32]) {
        debug_assert_eq!(self.width, from.width);
        match self.width {
            Width::Fixed(1) => self.gather_narrow::<1>(from, numbers),
            Width::Fixed(2) => self.gather_narrow::<2>(from, numbers),
            Width::Fixed(3) => self.gather_narrow::<3>(from, numbers),
            Width::Fixed(4) => self.gather_narrow::<4>(from, numbers),
            _ => numbers.iter().for_each(|&number| self.push(from.get(number as usize))),
        }
    }

    /// [`gather`](Self::gather) for states of `W` slots.
    fn gather_narrow<const W: usize>(&mut self, from: &States, numbers: &[u32]) {
        let (source, _) = from.slots().as_chunks::<W>();
        let (target, _) = self.grow(numbers.len()).as_chunks_mut::<W>();
        for (target, &number) in target.iter_mut().zip(numbers) {
            *target = source[number as usize];
        }
    }

    /// Appends `count` states of a fixed-width list at once and returns their slots for the caller
    /// to fill; they contain stale values until then.
    #[inline]
    pub fn grow(&mut self, count: usize) -> &mut [Slot] {
        let Width::Fixed(width) = self.width else {
            panic!("grow needs a fixed width");
        };
        self.len += count;
        self.extend_slots(count * width)
    }

    #[inline]
    fn extend_slots(&mut self, count: usize) -> &mut [Slot] {
        let start = self.used;
        self.used += count;
        if self.used > self.slots.len() {
            self.enlarge();
        }
        &mut self.slots[start..start + count]
    }

    #[cold]
    fn enlarge(&mut self) {
        let enlarged = Self::enlarged(self.used);
        self.slots.reserve_exact(enlarged - self.slots.len());
        self.slots.resize(enlarged, 0);
    }

    /// How many slots are made when this many are needed: twice as many each time, and an eighth more where that is much memory.
    fn enlarged(needed: usize) -> usize {
        match needed {
            0..LARGE => needed.next_power_of_two().max(64),
            _ => needed + needed / 8,
        }
    }

    /// Whether a state of `width` slots can be appended without an allocation for its slots.
    #[inline]
    pub(crate) fn has_room(&self, width: usize) -> bool {
        self.used + width <= self.slots.len()
    }

    /// The same for this many states of a fixed width.
    #[inline]
    pub(crate) fn has_room_for(&self, states: usize) -> bool {
        match self.width {
            Width::Fixed(width) => self.has_room(states * width),
            Width::Varies => true,
        }
    }

    /// The bytes held once there is room for `states` states, or in a list of varying width for one of `slots` slots more.
    pub(crate) fn bytes_with(&self, states: usize, slots: usize) -> u64 {
        let (wanted, ends) = match self.width {
            Width::Fixed(width) => (states * width, 0),
            Width::Varies if self.has_room(slots) => (0, (self.ends.len() + 1).next_power_of_two()),
            Width::Varies => (Self::enlarged(self.used + slots), (self.ends.len() + 1).next_power_of_two()),
        };
        let ends = ends.max(self.ends.capacity());
        (wanted.max(self.slots.len()) * size_of::<Slot>() + ends * size_of::<usize>()) as u64
    }

    /// Makes room in a list of varying width for a state of this number of slots.
    pub(crate) fn make_room_for_slots(&mut self, slots: usize) {
        if self.width == Width::Varies && !self.has_room(slots) {
            let enlarged = Self::enlarged(self.used + slots);
            self.slots.reserve_exact(enlarged - self.slots.len());
            self.slots.resize(enlarged, 0);
        }
    }

    /// Makes room for `states` states in all, and no more, so that a list of fixed width does not grow by itself before there are as many.
    pub(crate) fn make_room(&mut self, states: usize) {
        let Width::Fixed(width) = self.width else { return };
        if states * width > self.slots.len() {
            self.slots.reserve_exact(states * width - self.slots.len());
            self.slots.resize(states * width, 0);
        }
    }

    /// The states, first to last.
    pub fn iter(&self) -> impl Iterator<Item = &[Slot]> {
        (0..self.len).map(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_holds_no_more_than_its_states() {
        for width in [Width::Fixed(3), Width::Varies] {
            let mut states = States::new(width);
            (0..100_000).for_each(|number| states.push(&[number; 3]));
            states.clear();
            states.push(&[1, 2, 3]);
            let mut clone = states.clone();
            assert!(clone.held_bytes() < 1000, "{} bytes", clone.held_bytes());
            clone.push(&[4, 5, 6]);
            assert_eq!((clone.len(), clone.get(0), clone.get(1)), (2, &[1, 2, 3][..], &[4, 5, 6][..]));
        }
    }

    #[test]
    fn a_list_of_varying_width_gives_back_what_was_pushed() {
        let mut states = States::new(Width::Varies);
        for round in 0..3 {
            states.clear();
            let pushed: Vec<Vec<Slot>> = vec![vec![], vec![round], vec![1, 2, round], vec![]];
            for state in &pushed {
                states.push(state);
            }
            assert_eq!(states.iter().map(<[Slot]>::to_vec).collect::<Vec<_>>(), pushed);
        }
    }

    #[test]
    fn a_list_of_fixed_width_grows_by_several() {
        let mut states = States::new(Width::Fixed(2));
        states.push(&[1, 2]);
        states.grow(2).copy_from_slice(&[3, 4, 5, 6]);
        assert_eq!(states.len(), 3);
        assert_eq!(states.get(2), [5, 6]);
        assert_eq!(states.slots(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn growth_is_foreseen() {
        for width in [Width::Fixed(3), Width::Varies] {
            let mut states = States::new(width);
            for round in 0..200 {
                let (before, growth) = (states.held_bytes(), states.growth(round, 3 * round));
                (0..round).for_each(|slot| states.push(&[slot as Slot; 3]));
                assert!(states.held_bytes() <= before + growth, "{width:?}, round {round}");
                assert_eq!(states.held_bytes() > before, growth > 0, "{width:?}, round {round}");
            }
        }
    }

    #[test]
    fn states_are_gathered_in_any_order() {
        for width in (0..7).map(Width::Fixed).chain([Width::Varies]) {
            let mut from = States::new(width);
            for number in 0..9 {
                let slots = if let Width::Fixed(slots) = width { slots } else { number as usize % 4 };
                from.push(&vec![number; slots]);
            }
            let mut to = States::new(width);
            to.push(from.get(3));
            to.gather(&from, &[8, 0, 0, 5]);
            let expected = [3, 8, 0, 0, 5].map(|number| from.get(number).to_vec());
            assert_eq!(to.iter().map(<[Slot]>::to_vec).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn some_states_are_kept() {
        for width in (0..7).map(Width::Fixed).chain([Width::Varies]) {
            for pattern in [0u32, 0x1ff, 0b1_0110_0101, 0b0_1101_1010, 1, 0x100] {
                let mut states = States::new(width);
                for number in 0..9 {
                    let slots = if let Width::Fixed(slots) = width { slots } else { number as usize % 4 };
                    states.push(&vec![number; slots]);
                }
                let stays = |number: usize| pattern >> number & 1 == 1;
                let expected: Vec<_> = (0..9).filter(|&n| stays(n)).map(|n| states.get(n).to_vec()).collect();
                states.retain(stays);
                states.push(&vec![7; if let Width::Fixed(slots) = width { slots } else { 2 }]);
                let last = states.len() - 1;
                assert_eq!(states.iter().take(last).map(<[Slot]>::to_vec).collect::<Vec<_>>(), expected);
                assert!(states.get(last).iter().all(|&slot| slot == 7));
            }
        }
    }

    #[test]
    fn states_of_width_zero_are_counted() {
        let mut states = States::new(Width::Fixed(0));
        states.push(&[]);
        states.push(&[]);
        assert_eq!(states.len(), 2);
        assert_eq!(states.get(1), []);
    }
}
