//! Workflow nets: one source place, one sink place, and every node on a path from one to the other.
//!
//! From W. van der Aalst, *The Application of Petri Nets to Workflow Management*, 1998. In: a net. Out: its source
//! and its sink, or why it is no workflow net. A read arc counts as an arc in either direction, as the loop that
//! it abbreviates; an inhibitor arc moves no tokens and counts as none (Van der Aalst et al., *Soundness of
//! workflow nets*, 2011).

use crate::net::Net;

/// The two ends of a workflow net, by the indices of their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workflow {
    /// The place that no transition adds to.
    pub source: usize,
    /// The place that no transition takes from.
    pub sink: usize,
}

/// The maximum number of names in a sentence.
const NAMES: usize = 8;

impl Workflow {
    /// The ends of a workflow net.
    ///
    /// # Errors
    /// Why it is no workflow net: one sentence or more, without full stops.
    pub fn of(net: &Net) -> Result<Self, Vec<String>> {
        let places = net.places.len();
        // Nodes are places, then transitions.
        let nodes = places + net.transitions.len();
        let (mut after, mut before) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        let mut join = |from: usize, to: usize| {
            after[from].push(to);
            before[to].push(from);
        };
        for (number, transition) in net.transitions.iter().enumerate() {
            let inputs = transition.inputs.iter().chain(&transition.reads);
            inputs.for_each(|arc| join(arc.place as usize, places + number));
            let outputs = transition.outputs.iter().chain(&transition.reads);
            outputs.for_each(|arc| join(places + number, arc.place as usize));
        }
        let names = |nodes: &[usize]| {
            let name = |&node: &usize| match node.checked_sub(places) {
                None => format!("`{}`", net.places[node].name),
                Some(number) => format!("`{}`", net.transitions[number].name),
            };
            let mut list: Vec<String> = nodes.iter().take(NAMES).map(name).collect();
            if nodes.len() > NAMES {
                list.push(format!("and {} more", nodes.len() - NAMES));
            }
            list.join(", ")
        };
        let sources: Vec<usize> = (0..places).filter(|&place| before[place].is_empty()).collect();
        let sinks: Vec<usize> = (0..places).filter(|&place| after[place].is_empty()).collect();
        let (source, sink) = match (sources.as_slice(), sinks.as_slice()) {
            (&[source], &[sink]) if source != sink => (source, sink),
            (&[only], &[_]) => {
                return Err(vec![format!("`{}` is both its beginning and its end", net.places[only].name)]);
            }
            _ => {
                let mut wrong = Vec::new();
                for (nodes, arcs) in [(&sources, "incoming"), (&sinks, "outgoing")] {
                    match nodes.as_slice() {
                        [_] => {}
                        [] => wrong.push(format!("one place must be without {arcs} arcs, and none is")),
                        several => wrong.push(format!(
                            "one place must be without {arcs} arcs, and several are: {}",
                            names(several)
                        )),
                    }
                }
                return Err(wrong);
            }
        };
        let (ahead, behind) = (reached(source, &after), reached(sink, &before));
        let astray: Vec<usize> = (0..nodes).filter(|&node| !(ahead[node] && behind[node])).collect();
        if astray.is_empty() {
            return Ok(Workflow { source, sink });
        }
        let ends = (&net.places[source].name, &net.places[sink].name);
        Err(vec![format!("these are on no path from `{}` to `{}`: {}", ends.0, ends.1, names(&astray))])
    }
}

/// The nodes reachable from one along these edges.
fn reached(from: usize, edges: &[Vec<usize>]) -> Vec<bool> {
    let mut known = vec![false; edges.len()];
    known[from] = true;
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for &next in &edges[node] {
            if !known[next] {
                known[next] = true;
                open.push(next);
            }
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_checked() {
        type Ends<'a> = Result<(&'a str, &'a str), &'a [&'a str]>;
        let cases: &[(&str, Ends)] = &[
            ("tr a i -> p\ntr b p -> o", Ok(("i", "o"))),
            ("tr a i -> p q\ntr b p q -> o", Ok(("i", "o"))),
            ("tr a i -> p\ntr b p -> o\ntr c p -> p", Ok(("i", "o"))),
            ("tr a i p?1 -> o p\ntr b i -> p\ntr c p -> o", Ok(("i", "o"))),
            // An inhibitor arc is no path from place to transition, and so does not matter for sinks.
            ("tr a i -> p\ntr b p o?-2 -> o", Ok(("i", "o"))),
            (
                "tr a i -> p\ntr b p -> i",
                Err(&[
                    "one place must be without incoming arcs, and none is",
                    "one place must be without outgoing arcs, and none is",
                ]),
            ),
            ("tr a i j -> o", Err(&["one place must be without incoming arcs, and several are: `i`, `j`"])),
            ("tr a i -> o\ntr b i -> e", Err(&["one place must be without outgoing arcs, and several are: `o`, `e`"])),
            ("pl i", Err(&["`i` is both its beginning and its end"])),
            (
                "tr a i -> o\ntr b p -> q\ntr c q -> p",
                Err(&["these are on no path from `i` to `o`: `p`, `q`, `b`, `c`"]),
            ),
            ("tr a i -> o\ntr b -> o", Err(&["these are on no path from `i` to `o`: `b`"])),
            // A read arc abbreviates a loop, so the place it reads is no sink.
            ("tr a i -> p\ntr b p o?1 -> o", Err(&["one place must be without outgoing arcs, and none is"])),
        ];
        for (text, expected) in cases {
            let net = crate::tina::parse(text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
            let found = Workflow::of(&net);
            let found =
                found.as_ref().map(|ends| (net.places[ends.source].name.as_str(), net.places[ends.sink].name.as_str()));
            let found = found.map_err(|wrong| wrong.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(found, expected.map_err(<[&str]>::to_vec), "{text}");
        }
    }
}
