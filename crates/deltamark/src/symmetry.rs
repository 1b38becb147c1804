//! Alike processes: which of all states that differ by their numbers alone is their representative.
//!
//! In: a state that is [`Symmetric`]: it says what belongs to which process, and where numbers of processes are. Out: the same state with its
//! processes numbered anew ([`canonise`]), the same one for all states that differ by numbers alone, for a model's
//! [`canonical`](crate::Model::canonical). What stays true: a state is only ever replaced by itself with processes numbered anew.
//!
//! ```
//! use deltamark::{Pack, Symmetric};
//!
//! #[derive(Clone, Debug, PartialEq, Pack, Symmetric)]
//! #[symmetric(clients = 3)]
//! struct State {
//!     /// What each client does.
//!     #[symmetric(each = clients)]
//!     at: [u8; 3],
//!     /// Of each client, for whom it waits.
//!     #[symmetric(each = clients, name = clients)]
//!     waits: [Option<u8>; 3],
//!     /// Who holds the lock.
//!     #[symmetric(name = clients)]
//!     holder: Option<u8>,
//!     /// The same for all.
//!     rounds: u8,
//! }
//!
//! let mut one = State { at: [7, 0, 5], waits: [None, Some(0), None], holder: Some(0), rounds: 2 };
//! // Clients 0, 1, 2 of the one are clients 2, 0, 1 of the other.
//! let mut other = State { at: [0, 5, 7], waits: [Some(2), None, None], holder: Some(2), rounds: 2 };
//! one.canonise();
//! other.canonise();
//! assert_eq!(one, other);
//! ```
//!
//! # What a field is
//! `#[symmetric(…)]` on the state lists the groups of alike processes and how many there are: an expression, in which `self` is
//! the state. On a field it says, from the outside in, what the field is; a field without it has nothing to do with processes.
//!
//! | | the field is | types |
//! |---|---|---|
//! | `each = G` | a list with an element for each process of `G` | arrays, `Vec` |
//! | `bits = G` | an integer with a bit for each process of `G`, the lowest for number 0 | unsigned integers |
//! | `name = G` | the number of a process of `G`; larger numbers name nobody | integers, and `Option`, `Box`, arrays, `Vec`, `VecDeque`, `BTreeSet` of them; whatever implements [`Names`] |
//! | `inside` | something that is [`Symmetric`] itself | what derives it, and `Option`, `Box`, arrays, `Vec`, `VecDeque`, `BTreeSet` of it |
//!
//! `each` may be followed by any of these: `each = clients, each = servers, name = clients` is a table of names. Of enums the fields of variants have
//! attributes.
//!
//! # How
//! Every process gets a colour, a hash of what belongs to it, of all that names it, and of the colours of processes that
//! are named with it, until no more processes are distinguished (*colour refinement*, Weisfeiler and Leman 1968). Processes are then sorted by
//! colour. Where several have the same colour and are named together with others, each is tried as the first of them (*individualisation*,
//! as in McKay's *nauty*, Practical graph isomorphism, 1981), unless exchanging it with one that was tried changes nothing; of the
//! states this leads to the one that is packed least is taken. So colours that are equal by accident cost time, or another
//! representative, and never an answer. After [`MOST_TRIED`] states the state stays as it is: it is then not the same one for all, and still one of them: see
//! [`canonical`](crate::Model::canonical).

pub use deltamark_derive::Symmetric;

use crate::pack::{Pack, Packer};
use deltamark_core::hash::{mix, slots};
use std::collections::{BTreeSet, VecDeque};

/// The most numberings that are tried of one state.
pub const MOST_TRIED: usize = 720;

/// Something in which processes have numbers. Derive it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what belongs to which process",
    label = "not `Symmetric`",
    note = "derive it: `#[derive(Symmetric)]`; for what has nothing to do with processes leave `inside` out"
)]
pub trait Symmetric {
    /// The groups of alike processes, with their sizes; none for a part of a state.
    fn groups(&self) -> Vec<(&'static str, usize)> {
        Vec::new()
    }

    /// Numbers processes anew.
    fn renumber(&mut self, by: &Renumbering);

    /// Reports all that belongs to processes.
    fn report(&self, to: &mut Colours);

    /// Replaces the state by the representative of all that differ from it by the numbers of processes alone.
    fn canonise(&mut self)
    where
        Self: Pack + Clone,
    {
        canonise(self);
    }
}

/// Numbers of processes, or lists of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no number of a process",
    label = "does not name a process",
    note = "`name` applies to integers, and to `Option`, `Box`, arrays, `Vec`, `VecDeque` and `BTreeSet` of them"
)]
pub trait Names {
    /// Numbers the processes of this group anew.
    fn renumber(&mut self, group: &str, by: &Renumbering);

    /// Reports who is named.
    fn report(&self, group: &str, to: &mut Colours);
}

/// The groups of a state: of each its name, the place of its first process among all, and how many there are.
#[derive(Clone, Debug, Default)]
struct ProcessGroups(Vec<(&'static str, usize, usize)>);

impl ProcessGroups {
    fn new(sizes: Vec<(&'static str, usize)>) -> Self {
        let mut first = 0;
        let place = |(name, size)| {
            first += size;
            (name, first - size, size)
        };
        ProcessGroups(sizes.into_iter().map(place).collect())
    }

    /// The first process of a group, and how many there are.
    fn of(&self, name: &str) -> (usize, usize) {
        let found = self.0.iter().find(|group| group.0 == name);
        let found = found.unwrap_or_else(|| panic!("the state declares no group `{name}` of processes"));
        (found.1, found.2)
    }

    fn total(&self) -> usize {
        self.0.last().map_or(0, |&(_, first, size)| first + size)
    }
}

/// New numbers for processes.
#[derive(Clone, Debug)]
pub struct Renumbering {
    groups: ProcessGroups,
    /// For each process its new number in its group.
    to: Vec<usize>,
}

impl Renumbering {
    /// The new number of a process of a group; a number that names nobody stays.
    pub fn of(&self, group: &str, number: usize) -> usize {
        let (first, size) = self.groups.of(group);
        if number < size { self.to[first + number] } else { number }
    }

    /// Moves the element of each process to its new place, after `inside` was done to it.
    ///
    /// # Panics
    /// If the list has another length than the group.
    pub fn each<T>(&self, group: &str, list: &mut [T], mut inside: impl FnMut(&mut T)) {
        let (first, size) = self.groups.of(group);
        assert_eq!(list.len(), size, "the list of `{group}` is as long as there are processes");
        list.iter_mut().for_each(&mut inside);
        // Along the cycles of the permutation.
        let to = &self.to[first..first + size];
        let mut moved = [false; 64];
        let mut more = vec![false; size.saturating_sub(64)];
        for start in 0..size {
            let mut place = start;
            loop {
                let was = if place < 64 { &mut moved[place] } else { &mut more[place - 64] };
                if std::mem::replace(was, true) {
                    break;
                }
                // The element that belongs in `to[place]` is at `start` now.
                list.swap(start, to[place]);
                place = to[place];
            }
        }
    }

    /// The integer with the bit of each process at its new place.
    pub fn bits(&self, group: &str, word: u64) -> u64 {
        let (first, size) = self.groups.of(group);
        assert!(size <= 64, "the bits of `{group}` are those of a word");
        let to = &self.to[first..first + size];
        let known = u64::MAX.checked_shr(64 - to.len() as u32).unwrap_or(0);
        let moved = |(from, &to): (usize, &usize)| (word >> from & 1) << to;
        to.iter().enumerate().map(moved).fold(word & !known, |bits, bit| bits | bit)
    }
}

/// The colours of processes, while what belongs to them is reported.
#[derive(Debug)]
pub struct Colours {
    groups: ProcessGroups,
    colours: Vec<u64>,
    /// The colours that come next.
    next: Vec<u64>,
    /// The hash of where in the state we are, and of what belongs together there.
    path: u64,
    /// The processes it belongs to.
    who: Vec<usize>,
    /// Whether all that comes belongs together: an element of a set, which has no place.
    whole: bool,
    /// Whether something belongs to several processes.
    related: bool,
    packer: Packer,
}

impl Colours {
    fn new(groups: ProcessGroups) -> Self {
        let mut colours = Vec::with_capacity(groups.total());
        for (number, &(_, _, size)) in groups.0.iter().enumerate() {
            colours.extend(std::iter::repeat_n(mix(number as u64), size));
        }
        Colours {
            next: vec![0; colours.len()],
            colours,
            groups,
            path: 0,
            who: Vec::new(),
            whole: false,
            related: false,
            packer: Packer::default(),
        }
    }

    fn enter(&mut self, step: u64) {
        self.path = mix(self.path ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(step);
    }

    /// Does something at a place of its own, and returns.
    fn at(&mut self, step: u64, inside: impl FnOnce(&mut Self)) {
        let before = self.path;
        self.enter(step);
        inside(self);
        if !self.whole {
            self.path = before;
        }
    }

    /// Something belongs to the processes of now, together.
    fn emit(&mut self) {
        let Some(&first) = self.who.first() else { return };
        if self.who.iter().all(|&who| who == first) {
            // How often it is named counts.
            let all = mix(self.path ^ mix(self.who.len() as u64));
            self.next[first] = self.next[first].wrapping_add(mix(all));
            return;
        }
        self.related = true;
        let mut all = self.path;
        for (place, who) in self.who.iter().enumerate() {
            let first = self.who.iter().position(|other| other == who).unwrap_or(place);
            all = mix(all ^ self.colours[*who]).wrapping_add(first as u64);
        }
        for (place, &who) in self.who.iter().enumerate() {
            self.next[who] = self.next[who].wrapping_add(mix(all ^ mix(place as u64 + 1)));
        }
    }

    /// Field number `number` of a struct.
    pub fn field(&mut self, number: usize, inside: impl FnOnce(&mut Self)) {
        self.at(1 + number as u64, inside);
    }

    /// Variant number `number` of an enum.
    pub fn variant(&mut self, number: usize, inside: impl FnOnce(&mut Self)) {
        self.at(1 + number as u64, |to| {
            if !to.whole {
                to.emit();
            }
            inside(to);
        });
    }

    /// A value.
    pub fn value<T: Pack>(&mut self, value: &T) {
        if self.who.is_empty() && !self.whole {
            // It belongs to nobody.
            return;
        }
        self.packer.clear();
        value.pack(&mut self.packer);
        // What does not fit is reported where the state is packed.
        let hash = self.packer.finish().map_or(0, slots);
        self.number(hash);
    }

    fn number(&mut self, number: u64) {
        self.at(number, |to| {
            if !to.whole {
                to.emit();
            }
        });
    }

    /// The number of a process of a group; a number that names nobody is a value.
    pub fn name(&mut self, group: &str, number: usize) {
        let (first, size) = self.groups.of(group);
        if number >= size {
            return self.number(number as u64);
        }
        self.who.push(first + number);
        if !self.whole {
            self.emit();
            self.who.pop();
        }
    }

    /// A list with an element for each process of a group.
    pub fn each<T>(&mut self, group: &str, list: &[T], inside: impl Fn(&T, &mut Self)) {
        if self.whole {
            // Elements belong together only if they do so in an order, and this one is to be found.
            return;
        }
        let (first, size) = self.groups.of(group);
        for (number, element) in list.iter().enumerate().take(size) {
            self.who.push(first + number);
            inside(element, self);
            self.who.pop();
        }
    }

    /// An integer with a bit for each process of a group.
    pub fn bits(&mut self, group: &str, word: u64) {
        let (_, size) = self.groups.of(group);
        let bits: Vec<bool> = (0..size.min(64)).map(|number| word >> number & 1 == 1).collect();
        self.each(group, &bits, |&bit, to| to.number(bit.into()));
    }

    /// Elements with a place each.
    fn list<'t, T: 't>(&mut self, elements: impl Iterator<Item = &'t T>, inside: impl Fn(&T, &mut Self)) {
        for (place, element) in elements.enumerate() {
            self.at(place as u64, |to| inside(element, to));
        }
    }

    /// Elements without a place.
    fn set<'t, T: 't>(&mut self, elements: impl Iterator<Item = &'t T>, inside: impl Fn(&T, &mut Self)) {
        if self.whole {
            // A set within an element of a set: that has no order either.
            return;
        }
        for element in elements {
            let (path, who) = (self.path, self.who.len());
            self.whole = true;
            inside(element, self);
            self.emit();
            self.whole = false;
            self.path = path;
            self.who.truncate(who);
        }
    }

    /// Colours once more.
    fn round<S: Symmetric>(&mut self, state: &S) {
        for (next, &colour) in self.next.iter_mut().zip(&self.colours) {
            *next = mix(colour);
        }
        state.report(self);
        debug_assert!(self.who.is_empty() && !self.whole, "whoever reports comes back");
        std::mem::swap(&mut self.colours, &mut self.next);
    }

    /// How many colours there are.
    fn count(&self) -> usize {
        let mut sorted = self.colours.clone();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len()
    }

    /// Colours until no more processes are distinguished. Whether all are, or those that are not do not matter.
    fn refine<S: Symmetric>(&mut self, state: &S) -> bool {
        let mut count = self.count();
        loop {
            self.related = false;
            self.round(state);
            if !self.related {
                return true;
            }
            let now = self.count();
            if now == self.colours.len() {
                return true;
            }
            if now == count {
                return false;
            }
            count = now;
        }
    }

    /// The processes of one group by their colours.
    fn renumbering(&self) -> Renumbering {
        let mut to = vec![0; self.colours.len()];
        let mut order: Vec<usize> = Vec::new();
        for &(_, first, size) in &self.groups.0 {
            order.clear();
            order.extend(first..first + size);
            order.sort_by_key(|&process| self.colours[process]);
            order.iter().enumerate().for_each(|(number, &process)| to[process] = number);
        }
        Renumbering { groups: self.groups.clone(), to }
    }
}

/// Replaces a state by the representative of all that differ from it by the numbers of processes alone.
pub fn canonise<S: Symmetric + Pack + Clone>(state: &mut S) {
    let groups = ProcessGroups::new(state.groups());
    let mut colours = Colours::new(groups);
    if colours.refine(state) {
        return state.renumber(&colours.renumbering());
    }
    let mut search = NumberingSearch { state, packed: packed(state), tried: 0, best: None };
    search.branch(colours.colours.clone(), &mut colours);
    if let NumberingSearch { tried: ..=MOST_TRIED, best: Some((_, best)), .. } = search {
        *state = best;
    }
}

fn packed<S: Pack>(state: &S) -> Vec<u32> {
    let mut packer = Packer::of::<S>();
    state.pack(&mut packer);
    // A state that does not fit is reported by whoever packs it next.
    packer.finish().map_or_else(|_| Vec::new(), <[u32]>::to_vec)
}

/// A search among numberings of processes whose colours are the same.
struct NumberingSearch<'s, S> {
    state: &'s S,
    packed: Vec<u32>,
    tried: usize,
    /// The least state, and how it is packed.
    best: Option<(Vec<u32>, S)>,
}

impl<S: Symmetric + Pack + Clone> NumberingSearch<'_, S> {
    /// Tries all numberings that begin with these colours, which are refined.
    fn branch(&mut self, refined: Vec<u64>, colours: &mut Colours) {
        let Some(class) = smallest_class(&refined) else {
            self.tried += 1;
            colours.colours = refined;
            let mut state = self.state.clone();
            state.renumber(&colours.renumbering());
            let packed = packed(&state);
            if self.best.as_ref().is_none_or(|(best, _)| packed < *best) {
                self.best = Some((packed, state));
            }
            return;
        };
        for (place, &process) in class.iter().enumerate() {
            if self.tried > MOST_TRIED {
                return;
            }
            if class[..place].iter().any(|&tried| self.is_exchangeable(tried, process, &colours.groups)) {
                continue;
            }
            colours.colours.clone_from(&refined);
            colours.colours[process] = mix(refined[process] ^ 0x0dd);
            colours.refine(self.state);
            self.branch(colours.colours.clone(), colours);
        }
    }

    /// Whether exchanging two processes changes nothing.
    fn is_exchangeable(&self, one: usize, other: usize, groups: &ProcessGroups) -> bool {
        let mut to = Vec::with_capacity(groups.total());
        groups.0.iter().for_each(|&(_, _, size)| to.extend(0..size));
        to.swap(one, other);
        let mut state = self.state.clone();
        state.renumber(&Renumbering { groups: groups.clone(), to });
        packed(&state) == self.packed
    }
}

/// The processes of one colour of which there are several, as few as possible; `None` if there is none.
fn smallest_class(colours: &[u64]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..colours.len()).collect();
    order.sort_by_key(|&process| colours[process]);
    let classes = order.chunk_by(|&one, &other| colours[one] == colours[other]);
    classes.filter(|class| class.len() > 1).min_by_key(|class| class.len()).map(<[usize]>::to_vec)
}

macro_rules! numbers {
    ($($integer:ty),*) => {$(
        impl Names for $integer {
            fn renumber(&mut self, group: &str, by: &Renumbering) {
                // What was a number of the group fits, and so does every other one that is used.
                if *self as i128 >= 0 {
                    *self = by.of(group, *self as usize) as $integer;
                }
            }

            fn report(&self, group: &str, to: &mut Colours) {
                if *self as i128 >= 0 {
                    to.name(group, *self as usize);
                } else {
                    to.number(*self as u64);
                }
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

/// Integers with a bit for each process.
pub trait Bits: Copy {
    /// The bits.
    fn word(self) -> u64;
    /// An integer with these bits.
    fn of_word(word: u64) -> Self;
}

macro_rules! words {
    ($($integer:ty),*) => {$(
        impl Bits for $integer {
            fn word(self) -> u64 {
                self as u64
            }

            fn of_word(word: u64) -> Self {
                word as $integer
            }
        }
    )*};
}

words!(u8, u16, u32, u64, usize);

/// Containers: once for names and once for parts, which differ in what they are given.
macro_rules! containers {
    ($trait:ident, ($($name:ident: $type:ty),*)) => {
        impl<T: $trait> $trait for Option<T> {
            fn renumber(&mut self, $($name: $type,)* by: &Renumbering) {
                self.iter_mut().for_each(|element| element.renumber($($name,)* by));
            }

            fn report(&self, $($name: $type,)* to: &mut Colours) {
                to.variant(self.is_some().into(), |to| {
                    self.iter().for_each(|element| element.report($($name,)* to));
                });
            }
        }

        impl<T: $trait> $trait for Box<T> {
            fn renumber(&mut self, $($name: $type,)* by: &Renumbering) {
                (**self).renumber($($name,)* by);
            }

            fn report(&self, $($name: $type,)* to: &mut Colours) {
                (**self).report($($name,)* to);
            }
        }

        impl<T: $trait, const N: usize> $trait for [T; N] {
            fn renumber(&mut self, $($name: $type,)* by: &Renumbering) {
                self.iter_mut().for_each(|element| element.renumber($($name,)* by));
            }

            fn report(&self, $($name: $type,)* to: &mut Colours) {
                to.list(self.iter(), |element, to| element.report($($name,)* to));
            }
        }

        impl<T: $trait> $trait for Vec<T> {
            fn renumber(&mut self, $($name: $type,)* by: &Renumbering) {
                self.iter_mut().for_each(|element| element.renumber($($name,)* by));
            }

            fn report(&self, $($name: $type,)* to: &mut Colours) {
                to.list(self.iter(), |element, to| element.report($($name,)* to));
            }
        }

        impl<T: $trait> $trait for VecDeque<T> {
            fn renumber(&mut self, $($name: $type,)* by: &Renumbering) {
                self.iter_mut().for_each(|element| element.renumber($($name,)* by));
            }

            fn report(&self, $($name: $type,)* to: &mut Colours) {
                to.list(self.iter(), |element, to| element.report($($name,)* to));
            }
        }

        impl<T: $trait + Ord> $trait for BTreeSet<T> {
            fn renumber(&mut self, $($name: $type,)* by: &Renumbering) {
                let renumbered = |mut element: T| {
                    element.renumber($($name,)* by);
                    element
                };
                *self = std::mem::take(self).into_iter().map(renumbered).collect();
            }

            fn report(&self, $($name: $type,)* to: &mut Colours) {
                to.set(self.iter(), |element, to| element.report($($name,)* to));
            }
        }
    };
}

containers!(Names, (group: &str));
containers!(Symmetric, ());
