//! Valid files, damaged at random: the parsers return a valid net or diagnostics that point into the text. The
//! damage is deterministic; the long random search is in `fuzz/`.

mod common;

use deltamark_nets::{generate::generate, pnml, tina, write};

/// A simple deterministic generator of numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Tokens that are meaningful in one of the formats.
const PIECES: &[&str] = &[
    "<",
    ">",
    "/>",
    "</",
    "&",
    "\"",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?",
    "?>",
    "<!DOCTYPE",
    "[",
    "]",
    "xmlns:a=\"\"",
    "<page id=\"x\">",
    "<arc source=\"a\"/>",
    "id=\"\"",
    "-1",
    "99999999999999999999",
    "{",
    "}",
    "\\",
    "->",
    "*",
    "?",
    "?-",
    "!",
    ":",
    "(",
    ")",
    "[0,w[",
    "tr ",
    "pl ",
    "\n",
    "\r",
    " ",
    "#",
    "K",
    "\u{FEFF}",
    "é",
    "\u{0}",
    "\u{85}",
    "net",
    "pr a > b",
];

fn damage(dice: &mut Dice, bytes: &mut Vec<u8>) {
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + dice.below(12)).min(bytes.len());
        match dice.below(6) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..end, PIECES[dice.below(PIECES.len())].bytes())),
            2 => drop(bytes.splice(at..at, PIECES[dice.below(PIECES.len())].bytes())),
            3 => {
                let other = dice.below(bytes.len());
                let copy = bytes[other..(other + dice.below(60)).min(bytes.len())].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            4 => bytes.truncate(at.max(bytes.len() / 2)),
            _ if at < bytes.len() => bytes[at] = dice.below(256) as u8,
            _ => {}
        }
    }
}

#[test]
fn damaged_files_never_surprise() {
    let read = |name: &str| std::fs::read(common::root().join("models").join(name)).expect("an example model");
    let small = write::to_pnml(&generate("philosophers", 2).expect("a known family")).into_bytes();
    let mut fancy = generate("kanban", 1).expect("a known family");
    fancy.declared_safe = true;
    fancy.transitions[0].label = Some("{ <&> }".into());
    let fancy = write::to_pnml(&fancy).into_bytes();
    let sources = [
        (pnml::parse_bytes as fn(&[u8]) -> _, small),
        (pnml::parse_bytes, fancy),
        (tina::parse_bytes, read("mutex.net")),
        (tina::parse_bytes, read("producer-consumer.net")),
    ];
    let mut dice = Dice(1);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..20_000 {
        let (parse, source) = &sources[round % sources.len()];
        let mut bytes = source.clone();
        damage(&mut dice, &mut bytes);
        match parse(&bytes) {
            Ok(net) => {
                assert_eq!(net.validate(), Ok(()), "{}", String::from_utf8_lossy(&bytes));
                accepted += 1;
            }
            Err(diagnostics) => {
                assert!((1..=20).contains(&diagnostics.len()));
                let text = String::from_utf8_lossy(&bytes);
                diagnostics.iter().filter(|d| d.span.is_some()).for_each(|d| drop(common::shown(&text, d)));
                refused += 1;
            }
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} accepted, {refused} refused");
}
