//! Writes nets as files.
//!
//! In: a [`Net`] that [`Net::validate`] accepts. Out: text that the parsers of this crate read back as the same
//! net up to ids; TINA's format cannot express [`declared_safe`](Net::declared_safe) and final markings, and PNML
//! no name that is all spaces or has one of the two code points that XML excludes. What stays true: other names
//! round-trip whatever they contain, and equal nets yield equal texts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use crate::net::{Arc, Net};
use crate::tina;

/// The net as PNML. Ids are kept if they are valid as XML ids and cannot be taken for another node's name.
/// Inhibitor and read arcs, which the standard does not have, are written as TINA writes them: `<type
/// value="inhibitor"/>`, `<type value="test"/>`; priorities as PIPE writes them, where 0 is a timed transition and
/// more an immediate one.
pub fn to_pnml(net: &Net) -> String {
    let mut ids = Ids::of(net);
    let places: Vec<String> = net.places.iter().map(|place| ids.of_node(&place.id, "p")).collect();
    let transitions: Vec<String> = net.transitions.iter().map(|transition| ids.of_node(&transition.id, "t")).collect();
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\">\n",
    );
    let id = ids.of_net(&net.name);
    put(&mut out, format_args!("  <net id=\"{id}\" type=\"http://www.pnml.org/version-2009/grammar/ptnet\">\n"));
    if !net.name.is_empty() {
        put(&mut out, format_args!("    <name><text>{}</text></name>\n", escape(&net.name)));
    }
    put(&mut out, format_args!("    <page id=\"{}\">\n", ids.fresh("page")));
    for (place, id) in net.places.iter().zip(&places) {
        put(&mut out, format_args!("      <place id=\"{id}\"><name><text>{}</text></name>", escape(&place.name)));
        if place.initial > 0 {
            put(&mut out, format_args!("<initialMarking><text>{}</text></initialMarking>", place.initial));
        }
        out.push_str("</place>\n");
    }
    let ranked = net.has_priorities();
    for (transition, id) in net.transitions.iter().zip(&transitions) {
        let name = escape(&transition.name);
        put(&mut out, format_args!("      <transition id=\"{id}\"><name><text>{name}</text></name>"));
        if let Some(label) = &transition.label {
            put(&mut out, format_args!("<label><text>{}</text></label>", escape(label)));
        }
        match transition.priority.checked_sub(1).filter(|_| ranked) {
            None if ranked => out.push_str("<timed><value>true</value></timed>"),
            None => {}
            Some(rank) => {
                out.push_str("<timed><value>false</value></timed>");
                put(&mut out, format_args!("<priority><value>{rank}</value></priority>"));
            }
        }
        out.push_str("</transition>\n");
        let lists = [("", &transition.inputs), ("test", &transition.reads), ("inhibitor", &transition.inhibitors)];
        for (kind, arcs) in lists {
            for arc in arcs {
                let arc_id = ids.fresh("a");
                pnml_arc(&mut out, &arc_id, &places[arc.place as usize], id, kind, arc);
            }
        }
        for arc in &transition.outputs {
            let arc_id = ids.fresh("a");
            pnml_arc(&mut out, &arc_id, id, &places[arc.place as usize], "", arc);
        }
    }
    out.push_str("    </page>\n");
    final_markings(&mut out, net, &places);
    if net.declared_safe {
        units(&mut out, &mut ids, &places);
    }
    out.push_str("  </net>\n</pnml>\n");
    out
}

fn pnml_arc(out: &mut String, id: &str, source: &str, target: &str, kind: &str, arc: &Arc) {
    put(out, format_args!("      <arc id=\"{id}\" source=\"{source}\" target=\"{target}\""));
    if arc.weight == 1 && kind.is_empty() {
        out.push_str("/>\n");
        return;
    }
    out.push('>');
    if arc.weight > 1 {
        put(out, format_args!("<inscription><text>{}</text></inscription>", arc.weight));
    }
    if !kind.is_empty() {
        put(out, format_args!("<type value=\"{kind}\"/>"));
    }
    out.push_str("</arc>\n");
}

/// Final markings as process mining tools write them.
fn final_markings(out: &mut String, net: &Net, places: &[String]) {
    if net.final_markings.is_empty() {
        return;
    }
    out.push_str("    <finalmarkings>\n");
    for marking in &net.final_markings {
        out.push_str("      <marking>");
        for &(place, tokens) in marking {
            let id = &places[place as usize];
            put(out, format_args!("<place idref=\"{id}\"><text>{tokens}</text></place>"));
        }
        out.push_str("</marking>\n");
    }
    out.push_str("    </finalmarkings>\n");
}

/// The declaration of safety in NUPN's form: one unit for each place, none with two tokens.
fn units(out: &mut String, ids: &mut Ids, places: &[String]) {
    let root = ids.fresh("u");
    let units: Vec<String> = places.iter().map(|_| ids.fresh("u")).collect();
    let count = units.len() + 1;
    put(
        out,
        format_args!(
            "    <toolspecific tool=\"nupn\" version=\"1.1\">\n      <structure units=\"{count}\" root=\"{root}\" safe=\"true\">\n        \
             <unit id=\"{root}\"><places/><subunits>{}</subunits></unit>\n",
            units.join(" ")
        ),
    );
    for (unit, place) in units.iter().zip(places) {
        put(out, format_args!("        <unit id=\"{unit}\"><places>{place}</places><subunits/></unit>\n"));
    }
    out.push_str("      </structure>\n    </toolspecific>\n");
}

/// Chooses ids that are unique in the file.
struct Ids<'a> {
    /// The number of nodes each text is the id or the name of. An id that is another node's name would make that
    /// name ambiguous.
    claims: HashMap<&'a str, usize>,
    used: HashSet<String>,
    next: usize,
}

impl<'a> Ids<'a> {
    fn of(net: &'a Net) -> Self {
        let mut claims = HashMap::new();
        let places = net.places.iter().map(|place| (place.id.as_str(), place.name.as_str()));
        let transitions = net.transitions.iter().map(|transition| (transition.id.as_str(), transition.name.as_str()));
        for (id, name) in places.chain(transitions) {
            *claims.entry(id).or_default() += 1;
            if name != id {
                *claims.entry(name).or_default() += 1;
            }
        }
        Ids { claims, used: HashSet::new(), next: 0 }
    }

    /// The node's own id if it is usable, otherwise a new one.
    fn of_node(&mut self, id: &str, prefix: &str) -> String {
        if self.claims[id] == 1 && is_xml_name(id) && self.used.insert(id.into()) {
            id.into()
        } else {
            self.fresh(prefix)
        }
    }

    /// The name of the net as its id if it is usable, otherwise a new one.
    fn of_net(&mut self, name: &str) -> String {
        let free = is_xml_name(name) && !self.claims.contains_key(name);
        if free && self.used.insert(name.into()) { name.into() } else { self.fresh("net") }
    }

    /// A new id that is no node's name.
    fn fresh(&mut self, prefix: &str) -> String {
        loop {
            let id = format!("{prefix}{}", self.next);
            self.next += 1;
            if !self.claims.contains_key(id.as_str()) && self.used.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// Whether a text can be an XML id, conservatively.
fn is_xml_name(id: &str) -> bool {
    id.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Text as XML content.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            // Not characters in XML, not even as a character reference.
            '\u{FFFE}' | '\u{FFFF}' => escaped.push('\u{FFFD}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The net in TINA's textual format.
pub fn to_tina(net: &Net) -> String {
    let mut out = String::new();
    if !net.name.is_empty() {
        put(&mut out, format_args!("net {}\n", tina_name(&net.name)));
    }
    for place in &net.places {
        put(&mut out, format_args!("pl {}", tina_name(&place.name)));
        if place.initial > 0 {
            put(&mut out, format_args!(" ({})", place.initial));
        }
        out.push('\n');
    }
    for transition in &net.transitions {
        put(&mut out, format_args!("tr {}", tina_name(&transition.name)));
        if let Some(label) = &transition.label {
            put(&mut out, format_args!(" : {}", tina_name(label)));
        }
        let arc = |out: &mut String, sign: &str, arc: &Arc| {
            put(out, format_args!(" {}", tina_name(&net.places[arc.place as usize].name)));
            if arc.weight > 1 || sign != "*" {
                put(out, format_args!("{sign}{}", arc.weight));
            }
        };
        for (sign, arcs) in [("*", &transition.inputs), ("?", &transition.reads), ("?-", &transition.inhibitors)] {
            arcs.iter().for_each(|input| arc(&mut out, sign, input));
        }
        out.push_str(" ->");
        transition.outputs.iter().for_each(|output| arc(&mut out, "*", output));
        out.push('\n');
    }
    tina_priorities(&mut out, net);
    out
}

/// Each priority over the next lower one, which suffices: `pr` is transitive.
fn tina_priorities(out: &mut String, net: &Net) {
    let mut ranks: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for transition in &net.transitions {
        ranks.entry(transition.priority).or_default().push(tina_name(&transition.name));
    }
    let ranks: Vec<String> = ranks.into_values().map(|names| names.join(" ")).collect();
    for pair in ranks.windows(2) {
        put(out, format_args!("pr {} > {}\n", pair[1], pair[0]));
    }
}

/// A name in TINA's syntax: in braces unless it is a plain word.
fn tina_name(name: &str) -> String {
    if tina::is_plain(name) {
        return name.into();
    }
    let mut quoted = String::from("{");
    for c in name.chars() {
        if matches!(c, '{' | '}' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('}');
    quoted
}

/// Writing to a string cannot fail.
fn put(out: &mut String, arguments: std::fmt::Arguments) {
    out.write_fmt(arguments).expect("a string takes everything");
}
