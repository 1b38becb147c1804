//! A P/T net as data: what parsers and generators produce and the compiler takes.
//!
//! What stays true of a net that [`Net::validate`] accepts: every arc names an existing place; no place occurs
//! twice in the same arc list of a transition; weights are at least 1; names are unique among places and unique
//! among transitions, not empty, and contain no control characters, so that a name always fits on a line.

use std::collections::{BTreeMap, HashMap, HashSet};

/// A place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its id in the file.
    pub id: String,
    /// Its display name, unique among places; the id if the file's name is not unique.
    pub name: String,
    /// Its initial tokens.
    pub initial: u32,
}

/// An arc of a transition: a place and a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arc {
    /// The index of the place.
    pub place: u32,
    /// The weight, at least 1.
    pub weight: u32,
}

/// A transition. It is enabled if every input and every read place holds at least the weight and every inhibitor
/// place holds less than the weight; firing removes the inputs and adds the outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transition {
    /// Its id in the file.
    pub id: String,
    /// Its display name, unique among transitions; the id if the file's name is not unique.
    pub name: String,
    /// A label, if the format has one.
    pub label: Option<String>,
    /// Tokens it takes.
    pub inputs: Vec<Arc>,
    /// Tokens it adds.
    pub outputs: Vec<Arc>,
    /// Tokens that must be present and stay.
    pub reads: Vec<Arc>,
    /// Places that must hold less than the weight.
    pub inhibitors: Vec<Arc>,
    /// Its priority: while it is enabled, no transition of a lower one can fire.
    pub priority: u32,
}

impl Transition {
    /// Whether it is enabled with these counts, priorities aside.
    #[inline]
    pub fn enabled(&self, count: impl Fn(u32) -> u64) -> bool {
        self.inputs.iter().chain(&self.reads).all(|arc| count(arc.place) >= u64::from(arc.weight))
            && self.inhibitors.iter().all(|arc| count(arc.place) < u64::from(arc.weight))
    }
}

/// A P/T net.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Net {
    /// Its name.
    pub name: String,
    /// Its places.
    pub places: Vec<Place>,
    /// Its transitions.
    pub transitions: Vec<Transition>,
    /// Whether the file declares that no place ever holds more than one token. A hint for packing; nothing relies
    /// on it.
    pub declared_safe: bool,
    /// Markings in which the file declares termination to be correct, each as (place, tokens) with the places that
    /// hold tokens, ascending.
    pub final_markings: Vec<Vec<(u32, u32)>>,
    /// Names or ids that the file gives to several places, and which; properties must not use them.
    pub place_namesakes: BTreeMap<String, Vec<u32>>,
    /// The same for transitions.
    pub transition_namesakes: BTreeMap<String, Vec<u32>>,
    /// Notes for the report on how the file was read: clauses without a full stop.
    pub notes: Vec<String>,
}

impl Net {
    /// The effect of a transition: what firing adds to each place it changes, ascending by place.
    pub fn effect(&self, transition: &Transition) -> Vec<(u32, i64)> {
        let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
        for arc in &transition.outputs {
            *sums.entry(arc.place).or_default() += i64::from(arc.weight);
        }
        for arc in &transition.inputs {
            *sums.entry(arc.place).or_default() -= i64::from(arc.weight);
        }
        sums.into_iter().filter(|&(_, gain)| gain != 0).collect()
    }

    /// Whether some transitions have priority over others.
    pub fn has_priorities(&self) -> bool {
        self.transitions.windows(2).any(|pair| pair[0].priority != pair[1].priority)
    }

    /// Checks that the net is well-formed; the error is a sentence.
    pub fn validate(&self) -> Result<(), String> {
        if self.places.is_empty() {
            return Err("the net has no places".into());
        }
        unique("place", self.places.iter().map(|place| place.name.as_str()))?;
        unique("transition", self.transitions.iter().map(|transition| transition.name.as_str()))?;
        for transition in &self.transitions {
            for arcs in [&transition.inputs, &transition.outputs, &transition.reads, &transition.inhibitors] {
                let mut seen = HashSet::new();
                for arc in arcs {
                    if arc.place as usize >= self.places.len() {
                        return Err(format!("an arc of transition `{}` leads nowhere", transition.name));
                    }
                    if arc.weight == 0 {
                        return Err(format!("an arc of transition `{}` has weight 0", transition.name));
                    }
                    if !seen.insert(arc.place) {
                        return Err(format!("transition `{}` names a place twice", transition.name));
                    }
                }
            }
        }
        for &(place, tokens) in self.final_markings.iter().flatten() {
            if place as usize >= self.places.len() || tokens == 0 {
                return Err("a final marking gives no tokens, or gives them to a place that is not there".into());
            }
        }
        Ok(())
    }
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() {
            return Err(format!("a {kind} has no name"));
        }
        if name.contains(char::is_control) {
            return Err(format!("the name of {kind} `{}` holds control characters", name.escape_debug()));
        }
        if !seen.insert(name) {
            return Err(format!("two {kind}s are called `{name}`"));
        }
    }
    Ok(())
}

/// Settles the names of nodes given as (id, name in the file). A name is kept if it identifies the node; it
/// becomes the id if it is empty, shared, or the id of another node. Ids being unique, so are the results. Returns
/// the ambiguous names and ids, with their nodes.
pub fn unique_names<'a>(nodes: impl Iterator<Item = (&'a str, &'a mut String)>) -> BTreeMap<String, Vec<u32>> {
    let nodes: Vec<_> = nodes.collect();
    let mut uses: HashMap<String, usize> = HashMap::new();
    for (id, name) in &nodes {
        *uses.entry((*name).clone()).or_default() += 1;
        if *id != name.as_str() {
            *uses.entry((*id).into()).or_default() += 1;
        }
    }
    let mut namesakes: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (index, (id, name)) in (0..).zip(nodes) {
        let shared = |text: &&str| !text.is_empty() && uses[*text] > 1;
        let other = Some(id).filter(|id| *id != name.as_str());
        for text in [name.as_str()].into_iter().chain(other).filter(shared) {
            namesakes.entry(text.into()).or_default().push(index);
        }
        if name.is_empty() || uses[name.as_str()] > 1 {
            *name = id.into();
        }
    }
    namesakes
}
