//! Which language a text is in, by its words.
//!
//! In: the beginning of a file. Out: one of our formats, or the name of another well-known one with what to do about it. What stays
//! true: a guess only chooses who reads the file. Who reads it refuses what it does not understand, so that a wrong guess costs a
//! message, never an answer.

/// How much of a file is looked at.
const LOOKED_AT: usize = 4 << 20;

/// How a net of GreatSPN begins, whose files have the ending that TINA's have.
pub(crate) const GREATSPN: &[u8] = b"|0|";

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recognised {
    /// A format of ours, by its name.
    Ours(&'static str),
    /// Something else that people have.
    Foreign(&'static Foreign),
}

/// A format that is known, but not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    /// What a file of it is: `a model of …`.
    pub what: &'static str,
    /// Endings of its files' names, where they say enough.
    pub endings: &'static [&'static str],
    /// What to do.
    pub help: &'static str,
}

const EXPORT: &str = "if the tool can export PNML of P/T or symmetric nets, export that";
const REWRITE: &str =
    "there is no reader for it; DVE (docs/dve.md) or a shared library (`--format so`) can express such models";

/// The formats that are known, but not read.
static FOREIGN: &[Foreign] = &[
    Foreign { what: "a project of GreatSPN", endings: &["pnpro"], help: EXPORT },
    Foreign { what: "a net in the older format of GreatSPN", endings: &["def"], help: EXPORT },
    Foreign {
        what: "a system of timed automata for UPPAAL",
        endings: &["xta", "ta"],
        help: "models with time are not read; without its clocks it can be written in DVE (docs/dve.md)",
    },
    Foreign {
        what: "a model in Promela, the language of Spin",
        endings: &["pml", "prm", "promela", "spin"],
        help: REWRITE,
    },
    Foreign { what: "a specification in TLA+", endings: &["tla"], help: REWRITE },
    Foreign { what: "a program in LLVM's intermediate representation", endings: &["ll", "bc"], help: REWRITE },
    Foreign { what: "a model for NuSMV", endings: &["smv"], help: REWRITE },
    Foreign { what: "a model in Murphi", endings: &["mur"], help: REWRITE },
    Foreign { what: "a probabilistic model for PRISM", endings: &["prism"], help: REWRITE },
    Foreign { what: "a specification in mCRL2", endings: &["mcrl2"], help: REWRITE },
    Foreign { what: "a net in the language of LoLA", endings: &["lola"], help: EXPORT },
    Foreign { what: "a time Petri net of Romeo", endings: &["cts"], help: "nets with time are not read" },
    Foreign { what: "a net of Snoopy", endings: &["spn", "spped", "cpnet", "candl", "andl"], help: EXPORT },
    Foreign {
        what: "a process in BPMN",
        endings: &["bpmn"],
        help: "convert it to a Petri net in PNML, for instance with pm4py or ProM",
    },
    Foreign {
        what: "an event log (XES)",
        endings: &["xes"],
        help: "discover a net from it, for instance with pm4py or ProM, and save that as PNML",
    },
    Foreign {
        what: "a file of properties of the Model Checking Contest",
        endings: &[],
        help: "it has questions, not a model: give the `model.pnml` beside it",
    },
    Foreign {
        what: "a graph written by `deltamark check --graph`",
        endings: &["dmg"],
        help: "`deltamark graph FILE.dmg` reads it",
    },
    Foreign {
        what: "a shared library or another program",
        endings: &["so", "dylib", "dll"],
        help: "a shared library is code: add `--format so` to have it loaded and run",
    },
];

fn foreign(ending: &str) -> Option<Recognised> {
    FOREIGN.iter().find(|known| known.endings.contains(&ending)).map(Recognised::Foreign)
}

/// The foreign format whose files' names end so.
pub(crate) fn by_ending(ending: &str) -> Option<Recognised> {
    foreign(ending.to_ascii_lowercase().as_str())
}

/// What the words say.
pub(crate) fn recognise(bytes: &[u8]) -> Option<Recognised> {
    if bytes.starts_with(b"\x7FELF") || bytes.starts_with(b"MZ") || bytes.starts_with(b"\xCF\xFA\xED\xFE") {
        return foreign("so");
    }
    if bytes.starts_with(b"BC\xC0\xDE") {
        return foreign("bc");
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LOOKED_AT)]);
    match root(&text) {
        Some(root) => xml(root, &text),
        None => words(&text),
    }
}

/// The name of the outermost element, if the text is XML.
fn root(text: &str) -> Option<&str> {
    let mut rest = text.trim_start();
    loop {
        let end = match rest {
            _ if rest.starts_with("<?") => rest.find("?>")? + 2,
            _ if rest.starts_with("<!--") => rest.find("-->")? + 3,
            _ if rest.starts_with("<!") => rest.find('>')? + 1,
            _ => break,
        };
        rest = rest[end..].trim_start();
    }
    let name = rest.strip_prefix('<')?;
    let name = &name[..name.find(|c: char| c.is_whitespace() || matches!(c, '>' | '/')).unwrap_or(name.len())];
    Some(name.rsplit(':').next().unwrap_or(name)).filter(|name| name.starts_with(|c: char| c.is_alphabetic()))
}

fn xml(root: &str, text: &str) -> Option<Recognised> {
    match root {
        "pnml" => Some(Recognised::Ours("pnml")),
        "workspaceElements" => Some(Recognised::Ours("cpn")),
        "nta" => foreign("xta"),
        "project" if text.contains("<gspn") || text.contains("GreatSPN") => foreign("pnpro"),
        "TPN" | "romeo" => foreign("cts"),
        "Snoopy" => foreign("spn"),
        "definitions" if text.contains("BPMN") || text.contains("bpmn") => foreign("bpmn"),
        "log" => foreign("xes"),
        "property-set" => FOREIGN.iter().find(|known| known.what.contains("Contest")).map(Recognised::Foreign),
        _ => None,
    }
}

/// What a text that is no XML is. Each language is recognised by words that begin its lines, and more than one of them, because names in
/// one language are words of another.
fn words(text: &str) -> Option<Recognised> {
    if text.starts_with("|0|") || text.starts_with("|256") {
        return foreign("def");
    }
    let first = |line: &str| -> String {
        let line = line.trim_start();
        line.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '+')).collect()
    };
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let begin: std::collections::HashSet<String> = lines.iter().map(|line| first(line)).collect();
    let has = |word: &str| begin.contains(word);
    let any = |words: &[&str]| words.iter().any(|word| has(word));
    // TINA: every line is a declaration, a comment or goes on.
    let declares = |line: &&str| {
        line.starts_with(['#', ' ', '\t']) || matches!(first(line).as_str(), "tr" | "pl" | "net" | "lb" | "nt" | "pr")
    };
    let complete = if text.len() < LOOKED_AT { &lines[..] } else { &lines[..lines.len().saturating_sub(1)] };
    if any(&["tr", "pl"]) && complete.iter().all(declares) {
        return Some(Recognised::Ours("tina"));
    }
    let module = |line: &&str| line.starts_with("----") && line.contains(" MODULE ");
    if lines.iter().any(module) {
        return foreign("tla");
    }
    if text.contains("target triple = ") || text.starts_with("; ModuleID") {
        return foreign("ll");
    }
    let body = |(start, _): (usize, &str)| text[start + 5..].trim_start().starts_with('{');
    if any(&["proctype", "active"]) && text.contains("proctype")
        || text.match_indices("\ninit").any(body)
        || text.starts_with("init {")
    {
        return foreign("pml");
    }
    if text.contains("MODULE main") && any(&["VAR", "IVAR", "ASSIGN", "FROZENVAR"]) {
        return foreign("smv");
    }
    if any(&["dtmc", "ctmc", "mdp", "pta", "probabilistic", "nondeterministic", "stochastic"]) && has("endmodule") {
        return foreign("prism");
    }
    if any(&["PLACE", "SAFE"]) && has("TRANSITION") && has("MARKING") {
        return foreign("lola");
    }
    let lower = text.to_ascii_lowercase();
    if lower.contains("startstate") && (lower.contains("\nrule") || lower.contains("\nruleset")) {
        return foreign("mur");
    }
    if has("act") && has("init") && any(&["proc", "sort", "map"]) {
        return foreign("mcrl2");
    }
    // UPPAAL lists its processes behind `system`, DVE says how they go together.
    let together = |line: &&str| {
        let rest = line.trim_start().strip_prefix("system").unwrap_or_default().trim_start();
        rest.starts_with("async") || rest.starts_with("sync")
    };
    if lines.iter().any(together) && text.contains("process") {
        let macros = any(&["define", "default", "forloop", "divert", "include"]);
        return Some(Recognised::Ours(if macros { "mdve" } else { "dve" }));
    }
    if has("process") && has("system") {
        return foreign("xta");
    }
    if has("place") && has("transition") && (has("dom") || text.contains("dom ") || text.contains("dom:")) {
        return Some(Recognised::Ours("lna"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_known_by_their_words() {
        let ours: &[(&str, &str)] = &[
            ("<pnml/>", "pnml"),
            ("<?xml version='1.0'?>\n<!-- x -->\n<!DOCTYPE pnml>\n<n:pnml xmlns:n='x'>", "pnml"),
            ("<?xml version='1.0'?><!DOCTYPE workspaceElements PUBLIC 'x'><workspaceElements>", "cpn"),
            ("# a net\nnet n\ntr a p -> q\n   r\npl p (1)\n", "tina"),
            ("byte x;\nprocess P { state s; init s; }\nsystem async;\n", "dve"),
            ("define(N, 3)\nprocess P {\n}\nsystem async;\n", "mdve"),
            (
                "n (N := 2) {\n  type t : range 1 .. N;\n  place p { dom : t; }\n  transition x { in {} out {} }\n}\n",
                "lna",
            ),
        ];
        for (text, expected) in ours {
            assert_eq!(recognise(text.as_bytes()), Some(Recognised::Ours(expected)), "{text}");
        }
        let foreign: &[(&[u8], &str)] = &[
            (b"<nta><declaration>clock x;</declaration></nta>", "UPPAAL"),
            (b"clock x;\nprocess P() { state s; init s; }\nsystem P;\n", "UPPAAL"),
            (b"<project name='x'><gspn name='y'/></project>", "project of GreatSPN"),
            (b"|0|\n|\nf 3 0 4 0 1 0 0\n", "older format of GreatSPN"),
            (b"<TPN name='x'/>", "Romeo"),
            (b"mtype = {a}\nactive proctype P() { skip }\n", "Promela"),
            (b"---- MODULE Foo ----\nEXTENDS Naturals\n====", "TLA+"),
            (b"; ModuleID = 'x.c'\ntarget triple = \"x\"\n", "LLVM"),
            (b"BC\xC0\xDE\x01\x02", "LLVM"),
            (b"MODULE main\nVAR\n  x : boolean;\nASSIGN\n", "NuSMV"),
            (b"var x : 0..3;\nstartstate begin x := 0; end;\nrule x = 0 ==> begin x := 1; end;\n", "Murphi"),
            (b"dtmc\nmodule a\n x : [0..1];\nendmodule\n", "PRISM"),
            (b"act a, b;\nproc P = a.P;\ninit P;\n", "mCRL2"),
            (b"PLACE p, q;\nMARKING p:1;\nTRANSITION t CONSUME p:1; PRODUCE q:1;\n", "LoLA"),
            (b"<bpmn:definitions xmlns:bpmn='http://www.omg.org/spec/BPMN'>", "BPMN"),
            (b"<property-set xmlns='http://mcc.lip6.fr/'>", "Contest"),
            (b"\x7FELF\x02", "shared library"),
        ];
        for (text, expected) in foreign {
            match recognise(text) {
                Some(Recognised::Foreign(found)) => assert!(found.what.contains(expected), "{expected}: {found:?}"),
                other => panic!("{expected}: {other:?}"),
            }
        }
        for text in ["", "hello", "<html>", "fn main() {}\n", "pl", "tr\nxx y\n", "{\"a\": 1}"] {
            let found = recognise(text.as_bytes()).filter(|_| text != "pl");
            assert_eq!(found, None, "{text}");
        }
        assert!(by_ending("PNPRO").is_some() && by_ending("txt").is_none());
    }

    #[test]
    fn the_projects_own_models_are_known_by_their_words() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).expect("the folder of models") {
            let path = entry.expect("a file").path();
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(format) = crate::load::Format::by_name(ending).filter(|_| !name.ends_with(".prop.lna")) else {
                continue;
            };
            let bytes = std::fs::read(&path).expect("a readable file");
            assert_eq!(recognise(&bytes), Some(Recognised::Ours(format.name)), "{name}");
            seen += 1;
        }
        assert!(seen > 5, "{seen}");
    }

    #[test]
    fn models_from_outside_are_known_by_their_words() {
        let Some(corpus) = deltamark_testkit::Corpus::find("models_from_outside_are_known_by_their_words") else {
            return;
        };
        let cases = [
            ("dve", &["dve"][..], "dve"),
            ("lna", &["lna"], "lna"),
            ("cpn", &["cpn"], "cpn"),
            ("promela", &["pml", "prm", "prom", "spin", "pm"], "Promela"),
            ("llvm", &["ll"], "LLVM"),
            ("timed", &["xml", "xta"], "UPPAAL"),
        ];
        let mut wrong = Vec::new();
        for (folder, endings, expected) in cases {
            for entry in std::fs::read_dir(corpus.file(folder, "")).expect("a folder") {
                let path = entry.expect("a file").path();
                let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
                if !endings.contains(&ending) || path.to_string_lossy().ends_with(".prop.lna") {
                    continue;
                }
                let found = recognise(&std::fs::read(&path).expect("a readable file"));
                let known = match found {
                    Some(Recognised::Ours(name)) => name == expected,
                    Some(Recognised::Foreign(foreign)) => foreign.what.contains(expected),
                    None => false,
                };
                if !known {
                    wrong.push(format!("{}: {found:?}", path.display()));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
