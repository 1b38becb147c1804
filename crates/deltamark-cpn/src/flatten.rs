//! Hierarchy and fusion: every page instance has its own places, ports are their sockets, fusion sets are one place.
//!
//! In: pages. Out: the instances of pages, and for each place of each instance its group. What stays true: the number of
//! instances is bounded, and a page that contains itself is refused.

use std::collections::{HashMap, HashSet};

use deltamark_core::Diagnostic;

use crate::file::{File, Page};

/// The most instances of pages.
const MOST_INSTANCES: usize = 10_000;

/// Ports and the place instances that are their sockets.
type Sockets = Vec<(String, usize)>;

/// A page instance.
pub(crate) struct Instance {
    /// Its page.
    pub page: usize,
    /// Its number among the instances of the page, from 1.
    pub number: usize,
    /// The first of its places among all place instances.
    pub first: usize,
}

/// The place instances, in groups that are one place each.
pub(crate) struct Flat {
    pub instances: Vec<Instance>,
    /// For each place instance: the page instance and the place on the page.
    pub places: Vec<(usize, usize)>,
    /// For each place instance, whether it is a port that is assigned.
    pub assigned: Vec<bool>,
    /// For each place instance the first of its group.
    pub group: Vec<usize>,
}

fn find(group: &mut [usize], mut one: usize) -> usize {
    while group[one] != one {
        group[one] = group[group[one]];
        one = group[one];
    }
    one
}

fn join(group: &mut [usize], one: usize, other: usize) {
    let (one, other) = (find(group, one), find(group, other));
    let (low, high) = (one.min(other), one.max(other));
    group[high] = low;
}

/// Makes the instances.
pub(crate) fn flatten(file: &File) -> Result<Flat, Diagnostic> {
    let by_id: HashMap<&str, usize> = file.pages.iter().enumerate().map(|(at, page)| (page.id.as_str(), at)).collect();
    let transitions = file.pages.iter().flat_map(|page| &page.transitions);
    let used: HashSet<&str> = transitions.filter_map(|trans| Some(trans.subst.as_ref()?.0.as_str())).collect();
    let on_page: Vec<HashMap<&str, usize>> = file.pages.iter().map(Page::place_numbers).collect();
    let mut flat = Flat { instances: Vec::new(), places: Vec::new(), assigned: Vec::new(), group: Vec::new() };
    let mut counts = vec![0; file.pages.len()];
    // The page, the depth, and for its ports the place instances that are their sockets.
    let mut waiting: Vec<(usize, u32, Sockets)> = Vec::new();
    let primes: Vec<usize> = (0..file.pages.len()).filter(|&at| !used.contains(file.pages[at].id.as_str())).collect();
    waiting.extend(primes.into_iter().rev().map(|page| (page, 0, Vec::new())));
    while let Some((page, depth, sockets)) = waiting.pop() {
        if flat.instances.len() >= MOST_INSTANCES || depth > 200 {
            return Err(Diagnostic::new(format!(
                "the pages have more than {MOST_INSTANCES} instances, or contain themselves"
            )));
        }
        counts[page] += 1;
        let of = &file.pages[page];
        let first = flat.places.len();
        let instance = flat.instances.len();
        flat.instances.push(Instance { page, number: counts[page], first });
        for at in 0..of.places.len() {
            flat.places.push((instance, at));
            flat.assigned.push(false);
            flat.group.push(first + at);
        }
        let place = |id: &str| on_page[page].get(id).map(|at| first + at);
        for (port, socket) in sockets {
            let Some(port) = place(&port) else {
                return Err(Diagnostic::new(format!("a port that has a socket is not on the page `{}`", of.name)));
            };
            // A port with several sockets makes them one place.
            flat.assigned[port] = true;
            join(&mut flat.group, port, socket);
        }
        for trans in of.transitions.iter().rev() {
            let Some((subpage, pairs)) = &trans.subst else { continue };
            let at = deltamark_core::Span::new(trans.span.0, trans.span.1);
            let Some(&subpage) = by_id.get(subpage.as_str()) else {
                let message = format!(
                    "the subpage of the substitution transition `{}'{}` is not in the file",
                    of.name, trans.name
                );
                return Err(Diagnostic::at(at, message));
            };
            let mut sockets = Vec::new();
            for (port, socket) in pairs {
                match place(socket) {
                    Some(socket) => sockets.push((port.clone(), socket)),
                    None => {
                        let message = format!(
                            "a socket of the substitution transition `{}'{}` is not on its page",
                            of.name, trans.name
                        );
                        return Err(Diagnostic::at(at, message));
                    }
                }
            }
            waiting.push((subpage, depth + 1, sockets));
        }
    }
    let mut sets: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, set) in file.fusions.iter().enumerate() {
        for id in set {
            sets.entry(id.as_str()).or_default().push(number);
        }
    }
    let mut by_name: HashMap<String, usize> = HashMap::new();
    for number in 0..flat.places.len() {
        let (instance, at) = flat.places[number];
        let place = &file.pages[flat.instances[instance].page].places[at];
        let sets = sets.get(place.id.as_str()).into_iter().flatten().map(|set| format!("set {set}"));
        for name in sets.chain(place.fusion.iter().map(|name| format!("name {name}"))) {
            let first = *by_name.entry(name).or_insert(number);
            join(&mut flat.group, first, number);
        }
    }
    for number in 0..flat.group.len() {
        flat.group[number] = find(&mut flat.group, number);
    }
    Ok(flat)
}
