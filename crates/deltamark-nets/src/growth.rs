//! Unbounded places.
//!
//! In: a net whose search was stopped by a limit. Out: sentences that name the places that grew. What stays true:
//! a place is called unbounded only if that is proved.
//!
//! The proof is that of Karp and Miller (*Parallel program schemata*, 1969): a walk that reaches a marking which
//! strictly covers an earlier one can repeat the steps in between for ever. Inhibitor arcs and priorities
//! invalidate it, because more tokens may then disable a step.

use crate::Net;
use crate::walk::MarkingWalk;
use deltamark_core::Growth;

/// Steps of a walk; each marking is compared with all earlier ones, by the sum of the effects in between.
const STEPS: usize = 600;
const WALKS: u64 = 8;
/// The maximum work of all walks: well below a second.
const EFFORT: usize = 100_000_000;
/// The maximum number of places named.
const NAMED: usize = 8;

/// The report on growth; `bits` are the widths of the fields at the end of the run.
pub(crate) fn growth(net: &Net, effects: &[Vec<(u32, i64)>], bits: &[u8]) -> Option<Growth> {
    let inhibited = net.transitions.iter().any(|transition| !transition.inhibitors.is_empty());
    let proved = if inhibited || net.has_priorities() { None } else { pump(net, effects) };
    if let Some(Pump { places, cycle, by_cycle }) = proved {
        let cycle: Vec<&str> = cycle.iter().map(|&number| net.transitions[number].name.as_str()).collect();
        let how = if cycle.len() <= NAMED {
            format!("firing {} again and again adds tokens each time", cycle.join(", "))
        } else {
            format!("a cycle of {} firings adds tokens each time", cycle.len())
        };
        let one = if by_cycle < places.len() { "for one, " } else { "" };
        let sentence = format!("the net is unbounded: {} without end ({one}{how})", grow(net, &places));
        return Some(Growth { sentence, proved: true });
    }
    // No proof: name the places that hold far more than initially.
    let mut grown: Vec<usize> = (0..net.places.len())
        .filter(|&place| bits[place] >= 8 && u64::from(net.places[place].initial) >> (bits[place] - 1) == 0)
        .collect();
    grown.sort_by_key(|&place| std::cmp::Reverse(bits[place]));
    // Of the counts themselves only the widths of fields are known, and some are widened ahead.
    let room = |place: usize| u64::MAX >> (64 - bits[place]);
    let (&first, others) = grown.split_first()?;
    let mut list = vec![format!("{} tokens in `{}`", room(first), net.places[first].name)];
    list.extend(others.iter().take(NAMED - 1).map(|&place| format!("{} in `{}`", room(place), net.places[place].name)));
    if grown.len() > NAMED {
        list.push(format!("less in {} more", grown.len() - NAMED));
    }
    let sentence = format!("the net may be unbounded: there is room by now for {}", list.join(", "));
    Some(Growth { sentence, proved: false })
}

fn grow(net: &Net, places: &[usize]) -> String {
    let mut names: Vec<String> =
        places.iter().take(NAMED).map(|&place| format!("`{}`", net.places[place].name)).collect();
    if places.len() > NAMED {
        names.push(format!("{} more", places.len() - NAMED));
    }
    match names.as_slice() {
        [one] => format!("place {one} grows"),
        several => format!("places {} grow", several.join(", ")),
    }
}

/// Places that can be pumped, and how.
struct Pump {
    /// The places, in the order of the net.
    places: Vec<usize>,
    /// The transitions of the cycle that was found first.
    cycle: Vec<usize>,
    /// The number of the places that this cycle alone pumps.
    by_cycle: usize,
}

/// Searches for places that can be pumped: the union over all walks.
fn pump(net: &Net, effects: &[Vec<(u32, i64)>]) -> Option<Pump> {
    let mut effort = 0;
    let mut pumped = vec![false; net.places.len()];
    let mut first = None;
    let mut sums = EffectSums { of: vec![0; net.places.len()], touched: Vec::new() };
    for number in 0..WALKS {
        let mut walk = MarkingWalk::new(net, effects, number);
        let mut fired = Vec::new();
        while fired.len() < STEPS && effort + walk.effort < EFFORT {
            let Some(chosen) = walk.step() else { break };
            fired.push(chosen);
            if let Some(start) = sums.covered(effects, &fired, &mut effort) {
                sums.touched.iter().for_each(|&place| pumped[place as usize] |= sums.of[place as usize] > 0);
                first.get_or_insert_with(|| (fired[start..].to_vec(), count(&pumped)));
            }
        }
        effort += net.places.len() + walk.effort;
    }
    let (cycle, by_cycle) = first?;
    let places = (0..net.places.len()).filter(|&place| pumped[place]).collect();
    Some(Pump { places, cycle, by_cycle })
}

/// The sum of effects, by place.
struct EffectSums {
    of: Vec<i64>,
    /// Places whose sums may be non-zero, possibly with duplicates.
    touched: Vec<u32>,
}

impl EffectSums {
    /// The latest step from which on the sum of effects is non-negative everywhere and positive somewhere, which
    /// gives the shortest cycle. The sums are then those of its steps.
    fn covered(&mut self, effects: &[Vec<(u32, i64)>], fired: &[usize], effort: &mut usize) -> Option<usize> {
        self.touched.drain(..).for_each(|place| self.of[place as usize] = 0);
        let (mut less, mut more) = (0_i64, 0_i64);
        fired.iter().rposition(|&step| {
            *effort += 1 + effects[step].len();
            for &(place, gain) in &effects[step] {
                let sum = &mut self.of[place as usize];
                let before = *sum;
                *sum += gain;
                less += i64::from(*sum < 0) - i64::from(before < 0);
                more += i64::from(*sum > 0) - i64::from(before > 0);
                self.touched.push(place);
            }
            less == 0 && more > 0
        })
    }
}

fn count(truths: &[bool]) -> usize {
    truths.iter().filter(|&&truth| truth).count()
}

#[cfg(test)]
mod tests {
    use crate::{NetSystem, tina};
    use deltamark_core::System;

    /// The report on a net, and whether it is proved.
    fn growth(text: &str) -> Option<(String, bool)> {
        let growth = NetSystem::new(tina::parse(text).expect("a valid net")).describe().growth();
        growth.map(|growth| (growth.sentence, growth.proved))
    }

    #[test]
    fn without_a_proof_each_place_is_named_with_the_width_of_its_own_field() {
        let system = NetSystem::new(tina::parse("tr t a -> d\ntr s a?-3 -> o\npl a (1000)\n").expect("a valid net"));
        let growth = super::growth(system.net(), &[], &[10, 10, 15]).expect("two places have grown");
        let places: Vec<&str> = system.net().places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(places, ["a", "d", "o"]);
        let expected = "the net may be unbounded: there is room by now for 32767 tokens in `o`, 1023 in `d`";
        assert_eq!((growth.sentence.as_str(), growth.proved), (expected, false));
    }

    #[test]
    fn all_places_that_are_pumped_are_named() {
        let expected =
            "the net is unbounded: place `heap` grows without end (firing add again and again adds tokens each time)";
        assert_eq!(growth("tr add go -> go heap\npl go (1)\n"), Some((expected.into(), true)));
        let told = growth("tr produce idle -> idle buffer\ntr consume buffer*2 -> gone\npl idle (1)\n");
        let expected =
            "the net is unbounded: places `buffer`, `gone` grow without end (for one, firing produce again and again";
        assert!(told.as_ref().is_some_and(|(told, proved)| told.starts_with(expected) && *proved), "{told:?}");
    }

    #[test]
    fn bounded_nets_are_not_accused() {
        assert_eq!(growth("tr a p -> q\ntr b q -> p\npl p (3)\n"), None);
        // An inhibitor arc keeps this one bounded, though each walk covers earlier markings.
        assert_eq!(growth("tr a p q?-5 -> p q\npl p (1)\n"), None);
        // So does a transition of higher priority, which removes what the other one adds.
        let mut net = tina::parse("tr add p -> p q\ntr take q*3 -> \npl p (1)\n").expect("a valid net");
        net.transitions[1].priority = 1;
        assert!(NetSystem::new(net).describe().growth().is_none());
    }
}
