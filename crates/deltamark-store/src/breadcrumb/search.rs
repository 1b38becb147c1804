//! Which states of a batch were visited: walks back to levels in full, all of a batch together.
//!
//! In: states. Out: for each the smallest level that was proved. Invariant: a level is proved by steps of the system
//! that lead from a state kept in full.

use super::walks::{NOWHERE, StepBack, UNPROVED};
use super::{ANCHOR, Breadcrumb, BreadcrumbScratch, BreadcrumbTables, code, level_of, unpack};
use crate::plain::NONE;
use deltamark_core::{States, Width, hash::mix};

impl BreadcrumbTables<'_> {
    /// Finds out which of these states were visited: afterwards `leaders` are those that are not
    /// in the level under construction, and for those of them that are in an earlier one the
    /// walks have proved a level.
    pub fn search(&mut self, store: &Breadcrumb<'_>, states: &States, hashes: &[u64]) {
        self.work.found.clear();
        self.next.states.find_each(states, hashes, &mut self.work.found);
        self.work.list_leaders(states, hashes);
        if self.ended > 0 {
            self.first_steps(store.system.width());
            self.walk(store);
        }
    }

    /// Looks the leaders up among the recent ones and in the table, compares with the current
    /// level, and collects the first steps of walks.
    fn first_steps(&mut self, width: Width) {
        let now = self.ended - 1;
        let BreadcrumbScratch { steps, asked, walks, numbers, probes, .. } = &mut self.work;
        probes.reset();
        for &hash in &walks.hashes {
            self.recent.prefetch(mix(hash));
        }
        for (place, &hash) in walks.hashes.iter().enumerate() {
            let mixed = mix(hash);
            let level = self.recent.level(walks.states.get(place), mixed);
            if level <= now {
                walks.proved[place] = level;
            } else {
                probes.push(mixed, place as u32);
            }
        }
        steps.reset();
        for table in &self.tables {
            table.probe_each(&probes.mixed, |index, payload| {
                let (code, action) = unpack(payload);
                steps.push(probes.places[index], action, code);
            });
        }
        // Those that may be in a level that is there in full are compared with it.
        for (back, level) in std::iter::once(&self.now).chain(&self.near).enumerate() {
            let code = code(&self.anchor_levels, now - back as u64);
            asked.reset(width);
            let mut last = NOWHERE;
            for &StepBack { place, .. } in steps.list.iter().filter(|step| step.code == code) {
                if place != last && walks.proved[place as usize] == UNPROVED {
                    last = place;
                    asked.places.push(place);
                }
            }
            asked.fetch(walks);
            numbers.clear();
            level.states.find_each(&asked.states, &asked.hashes, numbers);
            for (&place, &number) in asked.places.iter().zip(numbers.iter()) {
                if number != NONE {
                    walks.proved[place as usize] = now - back as u64;
                }
            }
        }
        steps.list.retain(|step| walks.proved[step.place as usize] == UNPROVED);
    }

    /// Walks all steps down until they reach an anchor or lead nowhere. All walks take a step
    /// at a time; those that meet go on as one.
    fn walk(&mut self, store: &Breadcrumb<'_>) {
        let now = self.ended - 1;
        let width = store.system.width();
        let BreadcrumbScratch { scratch, visited, steps, undone, asked, actions, walks, numbers, probes, .. } =
            &mut self.work;
        for taken in 0..=self.longest {
            // Places with an anchor's crumb are asked for in full.
            asked.reset(width);
            asked.places.extend(steps.list.iter().filter(|step| step.code == ANCHOR).map(|step| step.place));
            asked.fetch(walks);
            numbers.clear();
            self.anchors.find_each(&asked.states, &asked.hashes, numbers);
            for (&place, &number) in asked.places.iter().zip(numbers.iter()) {
                if number != NONE {
                    let level = level_of(&self.anchor_levels, number);
                    if level + taken <= now {
                        walks.prove(place, level, &mut self.recent);
                    }
                }
            }
            if taken == self.longest {
                return;
            }
            // The others take a step back.
            steps.list.retain(|step| step.code != ANCHOR && walks.proved[step.place as usize] == UNPROVED);
            if steps.list.is_empty() {
                return;
            }
            asked.reset(width);
            asked.places.extend(steps.list.iter().map(|step| step.place));
            asked.fetch(walks);
            self.steps += steps.list.len() as u64;
            actions.clear();
            actions.extend(steps.list.iter().map(|step| step.action));
            undone.reset(width);
            store.reversible.unfire_each(scratch, &asked.states, &asked.hashes, actions, undone);
            for &hash in &undone.hashes {
                self.recent.prefetch(mix(hash));
            }
            visited.reset(undone.from.len());
            probes.reset();
            for (index, &from) in undone.from.iter().enumerate() {
                let StepBack { place: origin, code, .. } = steps.list[from as usize];
                let before = (code + 2) % 3;
                let (state, hash) = (undone.states.get(index), undone.hashes[index]);
                let (new, mixed) = (walks.hashes.len() as u32, mix(hash));
                let place = visited.claim(mixed, new, |earlier| walks.is(earlier, state, hash, before));
                if place != new {
                    match walks.proved[place as usize] {
                        UNPROVED => walks.link(place, origin),
                        level => walks.prove(origin, level + 1, &mut self.recent),
                    }
                    continue;
                }
                walks.add(state, hash, before);
                walks.link(place, origin);
                let level = self.recent.level(state, mixed);
                if level != UNPROVED && level + taken < now {
                    walks.prove(place, level, &mut self.recent);
                } else {
                    probes.push(mixed, place);
                }
            }
            steps.reset();
            for table in &self.tables {
                table.probe_each(&probes.mixed, |index, payload| {
                    let (code, action) = unpack(payload);
                    let place = probes.places[index];
                    if code == walks.codes[place as usize] || code == ANCHOR {
                        steps.push(place, action, code);
                    }
                });
            }
        }
    }
}
