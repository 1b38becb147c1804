//! Caches the enabled bindings of transitions by the markings of the places they read.
//!
//! In: the markings of a state. Out: its enabled actions. What stays true: a hit is what a search for
//! bindings would find; an evicted entry is computed again.
//!
//! # The idea
//! Which bindings of a transition are enabled depends on the markings of the places it reads, and on nothing
//! else: those of its inputs and inhibitors, and those in its guard. A step changes few places, so most
//! transitions find their places marked as in an earlier state. Transitions that read the same places form a
//! *group*; the actions of a group are cached under the numbers of its places' markings.
//!
//! # Layout in memory
//! ```text
//! entry   [ group:24 len:8 | marking … | action … ]        8 words; 16, 32 or 64 if lists are long
//! ```
//! A direct-mapped cache: group and markings determine the position of an entry, and a new entry evicts the
//! old. So a group costs one cache miss, and the entries of a whole block of states are prefetched together.
//!
//! # Bounds
//! The table grows with its misses up to a fixed size. A group with a low hit rate bypasses the table for a
//! while, and for longer each time.
//!
//! A group is not looked up if a place is empty whose tokens all its transitions need.

use deltamark_core::budget::{optional, ran_out};
use deltamark_core::hash::coefficient;

use crate::bindings::bind::Binder;
use crate::cache_room::CacheRoom;
use crate::engine::Engine;
use crate::net::Fault;

/// Words of a line.
const WORDS: usize = 8;
/// Log2 of the initial number of lines.
const SMALLEST: u32 = 6;
/// The maximum size of the table in bytes.
const MOST_BYTES: usize = 4 << 20;
/// The maximum number of lines of an entry.
const WIDEST: usize = 8;
/// The maximum number of places of a group: a list should fit beside them.
const MOST_PLACES: usize = 6;
/// The number of look-ups over which the hit rate of a group is measured.
const WINDOW: u32 = 2048;
/// The maximum number of times that a group's pause doubles.
const PATIENCE: u32 = 10;

#[derive(Clone, Copy)]
#[repr(align(32))]
struct BindingLine([u32; WORDS]);

/// What determines the entry of a group.
#[derive(Clone, Copy)]
struct Key {
    /// The first word of its entries, apart from the length.
    tag: u32,
    /// The number of places.
    len: u8,
    /// A bit for each place that must not be empty for anything to be enabled.
    needs: u8,
    /// Whether the table is used.
    used: bool,
    places: [u32; MOST_PLACES],
    coefficients: [u64; MOST_PLACES],
}

/// Transitions that read the same places.
struct ReadGroup {
    transitions: Vec<u32>,
    places: Vec<u32>,
    needs: Vec<u32>,
    tries: u32,
    hits: u32,
    /// The number of look-ups for which it still bypasses the table.
    pause: u32,
    strikes: u32,
}

impl Key {
    fn new(number: u32, group: &ReadGroup) -> Self {
        let places = group.places.get(..group.places.len().min(MOST_PLACES)).unwrap_or(&[]);
        let mut key = Key {
            tag: number << 8,
            len: places.len() as u8,
            needs: 0,
            used: group.pause == 0,
            places: [0; MOST_PLACES],
            coefficients: [0; MOST_PLACES],
        };
        for (at, &place) in places.iter().enumerate() {
            key.places[at] = place;
            key.coefficients[at] = coefficient(u64::from(number) << 8 | at as u64);
            key.needs |= u8::from(group.needs.contains(&place)) << at;
        }
        key
    }

    fn hash(&self, markings: impl Iterator<Item = u32>) -> u64 {
        let markings = self.coefficients[..usize::from(self.len)].iter().zip(markings);
        markings.fold(u64::from(self.tag), |hash, (factor, marking)| {
            hash.wrapping_add(factor.wrapping_mul(u64::from(marking)))
        })
    }
}

/// The position of a group's entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot(u32);

/// No action is enabled.
const NOTHING: Spot = Spot(u32::MAX);
/// The table is bypassed.
const ELSEWHERE: Spot = Spot(u32::MAX - 1);

/// The cache of a thread.
pub(crate) struct Reuse {
    groups: Vec<ReadGroup>,
    /// One for each group.
    keys: Vec<Key>,
    lines: Vec<BindingLine>,
    /// Lines in an entry.
    span: usize,
    shift: u32,
    misses: usize,
    too_long: usize,
    grown: usize,
}

impl Reuse {
    /// An empty cache.
    pub fn new(engine: &Engine) -> Self {
        let mut groups: Vec<ReadGroup> = Vec::new();
        for (number, plan) in (0..).zip(&engine.plans) {
            let known = groups.iter_mut().find(|group| group.places == plan.reads && group.needs == plan.needs);
            if let Some(group) = known {
                group.transitions.push(number);
                continue;
            }
            groups.push(ReadGroup {
                transitions: vec![number],
                places: plan.reads.clone(),
                needs: plan.needs.clone(),
                tries: 0,
                hits: 0,
                pause: if plan.reads.len() > MOST_PLACES || groups.len() >= 1 << 23 { u32::MAX } else { 0 },
                strikes: 0,
            });
        }
        let keys = (1..).zip(&groups).map(|(number, group)| Key::new(number, group)).collect();
        let lines = vec![BindingLine([0; WORDS]); 1 << SMALLEST];
        Reuse { groups, keys, lines, span: 1, shift: 64 - SMALLEST, misses: 0, too_long: 0, grown: 1 }
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Appends for each group the position of its entry for these markings, and prefetches it.
    #[inline]
    pub fn spots(&self, markings: &[u32], out: &mut Vec<Spot>) {
        let mut touched = 0;
        out.extend(self.keys.iter().map(|key| {
            let (mut hash, mut empty) = (u64::from(key.tag), 0);
            for at in 0..usize::from(key.len) {
                let marking = markings[key.places[at] as usize];
                empty |= u8::from(marking == 0) << at;
                hash = hash.wrapping_add(key.coefficients[at].wrapping_mul(u64::from(marking)));
            }
            if empty & key.needs != 0 {
                return NOTHING;
            }
            if !key.used {
                return ELSEWHERE;
            }
            let spot = self.spot(hash);
            touched ^= self.lines[spot * self.span].0[0];
            Spot(spot as u32)
        }));
        std::hint::black_box(touched);
    }

    #[inline]
    fn spot(&self, hash: u64) -> usize {
        ((hash ^ hash >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Whether a group currently bypasses the table; `places` is called with the places of each.
    pub fn searching(&self, mut places: impl FnMut(&[u32])) -> bool {
        let searching = self.groups.iter().filter(|group| group.pause > 0);
        searching.map(|group| places(&group.places)).count() > 0
    }

    /// Appends the enabled actions of a state, priorities aside, and the faults found on the way.
    pub fn enabled(
        &mut self,
        engine: &Engine,
        binder: &mut Binder,
        markings: &[u32],
        spots: &[Spot],
        found: &mut Vec<u32>,
        faults: &mut Vec<(u32, Fault)>,
    ) {
        for (number, &spot) in spots.iter().enumerate() {
            if spot == NOTHING {
                continue;
            }
            if spot != ELSEWHERE && self.recall(number, spot, markings, found) {
                continue;
            }
            if spot != ELSEWHERE {
                binder.view(engine, &self.groups[number].places, markings);
            }
            let (first, wrong) = (found.len(), faults.len());
            let group = &mut self.groups[number];
            for &transition in &group.transitions {
                binder.enabled_of(engine, transition as usize, markings, found, faults);
            }
            if spot == ELSEWHERE {
                group.pause = group.pause.saturating_sub(u32::from(group.pause != u32::MAX));
                self.keys[number].used = group.pause == 0;
            } else if faults.len() == wrong {
                self.keep(engine, number, markings, &found[first..]);
            }
        }
    }

    /// Appends the cached actions of a group for these markings; returns whether there was a hit.
    #[inline]
    fn recall(&mut self, number: usize, Spot(spot): Spot, markings: &[u32], found: &mut Vec<u32>) -> bool {
        let (group, key) = (&mut self.groups[number], &mut self.keys[number]);
        group.tries += 1;
        // If the table has grown since the position was computed, this misses.
        let Some((BindingLine(line), more)) =
            self.lines.get(spot as usize * self.span..).and_then(|lines| lines.split_first())
        else {
            return false;
        };
        let (head, body) = line.split_at(1 + usize::from(key.len));
        let same = head[0] & !255 == key.tag
            && head[1..].iter().zip(&key.places).all(|(&known, &place)| known == markings[place as usize]);
        if same {
            group.hits += 1;
            let len = (head[0] & 255) as usize;
            if len <= body.len() {
                found.extend_from_slice(&body[..len]);
            } else {
                found.extend_from_slice(body);
                let rest = more[..self.span - 1].iter().flat_map(|line| line.0);
                found.extend(rest.take(len - body.len()));
            }
        }
        if group.tries == WINDOW {
            if group.hits < WINDOW / 2 {
                group.pause = WINDOW << group.strikes;
                key.used = false;
                group.strikes = (group.strikes + 1).min(PATIENCE);
            } else {
                group.strikes = 0;
            }
            (group.tries, group.hits) = (0, 0);
        }
        same
    }

    #[inline(never)]
    fn keep(&mut self, engine: &Engine, number: usize, markings: &[u32], actions: &[u32]) {
        let group = &self.groups[number];
        if actions.len() > self.span * WORDS - 1 - group.places.len() {
            self.too_long += 1;
            if self.too_long > WINDOW as usize && self.span < WIDEST {
                self.resize(&engine.room, self.lines.len() * 2, self.span * 2);
            }
            return;
        }
        self.misses += 1;
        let most = MOST_BYTES / size_of::<BindingLine>();
        if self.misses > self.lines.len() / self.span / 2 && self.lines.len() < most {
            self.resize(&engine.room, self.lines.len() * 2, self.span);
        }
        let key = &self.keys[number];
        let wanted = self.groups[number].places.iter().map(|&place| markings[place as usize]);
        let first = self.spot(key.hash(wanted.clone())) * self.span;
        let head = std::iter::once(key.tag | actions.len() as u32).chain(wanted);
        let words = self.lines[first..first + self.span].iter_mut().flat_map(|line| &mut line.0);
        words.zip(head.chain(actions.iter().copied())).for_each(|(word, value)| *word = value);
    }

    /// Makes a table of `lines` lines with entries of `span` lines each, and moves the cached entries to it.
    #[cold]
    fn resize(&mut self, room: &CacheRoom, lines: usize, span: usize) {
        let lines = lines.min(MOST_BYTES / size_of::<BindingLine>());
        // If memory is exhausted, it keeps its size.
        let mut larger = Vec::new();
        let lent = room.lend(lines * size_of::<BindingLine>());
        if lent.is_none() || ran_out() || optional(|| larger.try_reserve_exact(lines)).is_err() {
            (self.misses, self.too_long) = (0, 0);
            return;
        }
        larger.resize(lines, BindingLine([0; WORDS]));
        let old = std::mem::replace(&mut self.lines, larger);
        let before = std::mem::replace(&mut self.span, span);
        self.shift = 64 - (lines / span).ilog2();
        (self.misses, self.too_long) = (0, 0);
        for entry in old.chunks_exact(before) {
            let head = &entry[0].0;
            let Some(key) = ((head[0] >> 8) as usize).checked_sub(1).map(|number| &self.keys[number]) else {
                continue;
            };
            let first = self.spot(key.hash(head[1..].iter().copied())) * span;
            self.lines[first..first + before].copy_from_slice(entry);
        }
        self.grown += self.bytes();
    }

    /// Bytes allocated since the last call.
    pub fn take_grown(&mut self) -> usize {
        std::mem::take(&mut self.grown)
    }

    /// The bytes held.
    pub fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<BindingLine>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::After;
    use deltamark_core::hash::mix;

    /// Transitions that read one place, two, and with an inhibitor three; lists of few and of very many
    /// actions.
    const NET: &str = "n {
       type id : mod 40;
       place a { dom : id; init : for (i in id) <( i )>; }
       place b { dom : id; }
       place c { dom : id * id; capacity : 9; }
       place d { dom : epsilon; init : 3 * epsilon; capacity : 9; }
       transition go { in { a : <( x )>; } out { b : <( x )>; } }
       transition back { in { b : <( x )>; } out { a : <( x )>; } }
       transition pair { in { a : <( x )>; b : <( succ x )>; d : epsilon; }
                         out { c : <( x, succ x )>; } }
       transition part { in { c : <( x, y )>; } out { a : <( x )>; b : <( y )>; d : epsilon; }
                         inhibit { b : <( 7 )>; } }
    }";

    #[test]
    fn what_is_reused_is_what_a_search_finds() {
        let net = crate::lna::parse(NET.as_bytes(), &[]).expect("a net");
        let engine = Engine::new(net, NET, &deltamark_core::Control::new()).expect("a system");
        let (mut binder, mut plain) = (Binder::new(&engine), Binder::new(&engine));
        let mut reuse = Reuse::new(&engine);
        let mut markings = engine.initial.clone();
        let (mut random, mut hits, mut pauses) = (1, 0, 0);
        for step in 0..30_000 {
            let (mut spots, mut found, mut faults) = (Vec::new(), Vec::new(), Vec::new());
            reuse.spots(&markings, &mut spots);
            reuse.searching(|places| binder.view(&engine, places, &markings));
            let before: u32 = reuse.groups.iter().map(|group| group.hits).sum();
            reuse.enabled(&engine, &mut binder, &markings, &spots, &mut found, &mut faults);
            hits += u32::from(reuse.groups.iter().map(|group| group.hits).sum::<u32>() > before);
            pauses += u32::from(reuse.keys.iter().any(|key| !key.used));
            let mut wanted = Vec::new();
            plain.enabled(&engine, &markings, &mut wanted, &mut faults);
            assert!(faults.is_empty());
            found.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "in step {step}");
            // Mostly back and forth between few markings, sometimes anywhere.
            random = mix(random + 1);
            let choices = if step / 5000 % 2 == 0 { found.len() } else { found.len().min(2) };
            let action = engine.actions.get(found[random as usize % choices]);
            for (place, effect) in action.changes() {
                match engine.after(place as usize, markings[place as usize], effect, false) {
                    After::Marking(after) => markings[place as usize] = after,
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(hits > 1000 && pauses > 1000 && reuse.span > 1, "{hits} {pauses} {}", reuse.span);
        assert!(reuse.bytes() <= MOST_BYTES);
    }

    /// Nobody had asked for the larger table while the old one was still there: runs exceeded their limit by both.
    #[test]
    fn it_grows_only_where_the_budget_has_room_for_both() {
        use deltamark_core::{Budget, Control};
        use std::sync::Arc;
        let net = crate::lna::parse(NET.as_bytes(), &[]).expect("a net");
        let engine = Engine::new(net, NET, &Control::new()).expect("a system");
        let mut reuse = Reuse::new(&engine);
        let (lines, bytes) = (reuse.lines.len(), reuse.bytes() as u64);
        for (room, grows) in [(4 * bytes - 1, false), (4 * bytes, true)] {
            let control = Control { budget: Arc::new(Budget::new(room)), ..Control::new() };
            engine.room.of(Some(&control));
            reuse.resize(&engine.room, 2 * lines, 1);
            assert_eq!(reuse.bytes() as u64, if grows { 2 * bytes } else { bytes });
            assert_eq!((control.budget.used(), control.budget.peak()), (0, if grows { 4 * bytes } else { 0 }));
        }
    }
}
