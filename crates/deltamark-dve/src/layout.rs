//! The position of each cell in the state.
//!
//! In: how many bits each cell needs. Out: its field, the number of slots, and the slots at which components
//! begin. What stays true: no field crosses a slot (one load reads it); fields do not overlap (I5); the elements of an
//! array are alike (I6).
//!
//! A *component* is a process with its variables, a buffer, a large array, or all other globals: what changes
//! together. Components are packed whole, large ones into slots of their own, small ones several to a
//! slot, best fit first. That packing is given up for one that goes field by field (in the order of the
//! components, or else the widest first) when the latter takes fewer slots: width comes before cuts. A state may then
//! be cut at any slot.

use crate::ir::{CellId, Owner, Program};
use deltamark_core::layout::{Field, FirstFit, bits_for};
use deltamark_core::{Control, Stop};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits in a slot.
const SLOT: u32 = 32;

/// How a cell is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    pub bits: u8,
    pub least: i32,
    pub wraps: bool,
}

/// How numbers from `least` to `most` are stored.
pub(crate) fn plain(least: i32, most: i32) -> Code {
    let count = most.wrapping_sub(least) as u32;
    Code { bits: bits_for(count.into()), least, wraps: false }
}

/// Gives every cell its field, unless `control` stops it.
pub(crate) fn layout(program: &mut Program, codes: &[Code], control: &Control) -> Result<(), Stop> {
    let state = program.state_cells().len();
    let components = components(program, state);
    control.check()?;
    let (mut places, mut slots) = whole(&components, codes, state);
    let mut cuts = boundaries(&components, &places, slots, codes);
    control.check()?;
    let in_order = components.iter().flatten().copied().filter(|&cell| codes[cell].bits > 0);
    let ordered = fields(in_order, codes, state);
    control.check()?;
    let widest = fields(widest_first(0..state, codes).into_iter(), codes, state);
    let single = if ordered.1 <= widest.1 { ordered } else { widest };
    if single.1 < slots {
        (places, slots) = single;
        cuts = (0..slots).collect();
    }
    control.check()?;
    program.slots = slots;
    program.boundaries = cuts;
    // The monitor's own cells follow, one component.
    let monitor: Vec<usize> = (state..program.cells.len()).collect();
    let mut bins = FirstFit::default();
    let mut behind = vec![(0, 0); program.cells.len() - state];
    for &cell in &monitor {
        behind[cell - state] = put(&mut bins, codes[cell].bits);
    }
    places.extend(behind.iter().map(|&(slot, shift)| (slot + slots as u32, shift)));
    if let Some(monitor) = &mut program.monitor {
        monitor.slots = bins.slots();
    }
    for ((cell, code), (slot, shift)) in program.cells.iter_mut().zip(codes).zip(places) {
        let least = code.least.into();
        cell.field = if code.bits == 0 { Field::constant(least) } else { Field::new(slot, shift, code.bits, least) };
        cell.wraps = code.wraps;
    }
    Ok(())
}

/// The slot and the lowest bit.
type SlotBits = (u32, u8);

/// Where the next field of this size goes.
fn put(bins: &mut FirstFit, bits: u8) -> SlotBits {
    let field = bins.put(bits, 0);
    (field.slot(), field.shift())
}

/// Cells that belong together.
fn components(program: &Program, state: usize) -> Vec<Vec<usize>> {
    /// Larger arrays are components of their own.
    const LARGE: u32 = 8;
    #[derive(Clone, Copy, PartialEq)]
    enum Key {
        Globals,
        Array(u32),
        Buffer(u32),
        Process(u32),
    }
    let key = |cell: usize| match program.cells[cell].owner {
        Owner::Location(process) => Key::Process(process.0),
        Owner::Length(channel) | Owner::Item(channel, ..) => Key::Buffer(channel.0),
        Owner::Variable(number, _) => {
            let variable = &program.variables[number as usize];
            match (variable.process, variable.length) {
                (Some(process), _) => Key::Process(process.0),
                (None, Some(LARGE..)) => Key::Array(number),
                _ => Key::Globals,
            }
        }
        Owner::Monitor => Key::Globals,
    };
    let mut found: Vec<(Key, Vec<usize>)> = Vec::new();
    let mut globals = None;
    for cell in 0..state {
        let key = key(cell);
        // The cells of all but the globals are neighbours.
        let known = match key {
            Key::Globals => globals.map(|place: usize| &mut found[place]),
            _ => found.last_mut().filter(|(other, _)| *other == key),
        };
        match known {
            Some((_, cells)) => cells.push(cell),
            None => {
                if key == Key::Globals {
                    globals = Some(found.len());
                }
                found.push((key, vec![cell]));
            }
        }
    }
    found.into_iter().map(|(_, cells)| cells).collect()
}

/// Wide fields first; among equals the order of the model.
fn widest_first(cells: impl Iterator<Item = usize>, codes: &[Code]) -> Vec<usize> {
    let mut cells: Vec<usize> = cells.filter(|&cell| codes[cell].bits > 0).collect();
    cells.sort_by_key(|&cell| Reverse(codes[cell].bits));
    cells
}

/// Packs component by component.
fn whole(components: &[Vec<usize>], codes: &[Code], state: usize) -> (Vec<SlotBits>, usize) {
    let mut places = vec![(0, 0); state];
    let bits = |cells: &[usize]| cells.iter().map(|&cell| u32::from(codes[cell].bits)).sum::<u32>();
    let (large, mut small): (Vec<_>, Vec<_>) = components.iter().partition(|cells| bits(cells) > SLOT);
    let mut used: Vec<u32> = Vec::new();
    for cells in large {
        let mut bins = FirstFit::default();
        for cell in widest_first(cells.iter().copied(), codes) {
            let (slot, shift) = put(&mut bins, codes[cell].bits);
            places[cell] = (slot + used.len() as u32, shift);
        }
        used.extend(bins.used().iter().copied().map(u32::from));
    }
    small.sort_by_key(|cells| Reverse(bits(cells)));
    // The slots by the number of their used bits, lowest first.
    let mut by_use: [BinaryHeap<Reverse<usize>>; SLOT as usize + 1] = std::array::from_fn(|_| BinaryHeap::new());
    for (slot, &used) in used.iter().enumerate() {
        by_use[used as usize].push(Reverse(slot));
    }
    for cells in small {
        let needed = bits(cells);
        if needed == 0 {
            continue;
        }
        let fullest = by_use[..=(SLOT - needed) as usize].iter_mut().rev().find_map(BinaryHeap::pop);
        let slot = fullest.map_or(used.len(), |Reverse(slot)| slot);
        if slot == used.len() {
            used.push(0);
        }
        for &cell in cells {
            places[cell] = (slot as u32, used[slot] as u8);
            used[slot] += u32::from(codes[cell].bits);
        }
        by_use[used[slot] as usize].push(Reverse(slot));
    }
    (places, used.len())
}

/// Packs field by field.
fn fields(cells: impl Iterator<Item = usize>, codes: &[Code], state: usize) -> (Vec<SlotBits>, usize) {
    let mut places = vec![(0, 0); state];
    let mut bins = FirstFit::default();
    for cell in cells {
        places[cell] = put(&mut bins, codes[cell].bits);
    }
    (places, bins.slots())
}

/// The slots at which a state may be cut: no component is on both sides of one.
fn boundaries(components: &[Vec<usize>], places: &[SlotBits], slots: usize, codes: &[Code]) -> Vec<usize> {
    let mut inside = vec![false; slots];
    for cells in components {
        let spots = cells.iter().filter(|&&cell| codes[cell].bits > 0).map(|&cell| places[cell].0 as usize);
        let (first, last) = spots.fold((usize::MAX, 0), |(first, last), slot| (first.min(slot), last.max(slot)));
        if first < last {
            inside[first + 1..=last].fill(true);
        }
    }
    (0..slots).filter(|&slot| !inside[slot]).collect()
}

/// The cells of an array or of a variable, for those who code them alike.
pub(crate) fn cells(first: CellId, length: u32) -> std::ops::Range<usize> {
    first.0 as usize..(first.0 + length) as usize
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    #[test]
    fn very_many_fields_are_packed_in_time_proportional_to_their_number() {
        // Four fields of seven bits leave four bits over, so no slot is ever full.
        let text = "byte x[65535]; byte y[65535]; process P { byte i; state a; init a; trans
              a -> a { guard i < 100; effect x[i] = i, y[i] = i + 1, i = i + 1; }; } system async;";
        let began = Instant::now();
        let program = crate::parse(text.as_bytes()).expect("a model");
        assert!(program.slots <= 2 * 65535 / 4 + 2, "{}", program.slots);
        // It took many seconds when each field looked at every slot before.
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    }
}
