//! No text makes the crate panic, and every finding points into its text.

mod common;

use std::time::{Duration, Instant};

use common::{Fake, Random, all_rendered};
use deltamark_logic::{compile, parse, parse_file};

const SEEDS: [&str; 6] = [
    "1 <= p and p <= 3 implies not (deadlock or fireable(t, 'go \"on\"'))",
    "tokens(p, q, P_0.CS) * -2 / r % 7 != a[0] - P->x <-> b",
    "\"odd name-1\" >= 1 || 'it\\'s' == 2 # comment\n && !c",
    "# file\ninvariant mutex: p + q <= 1\nreach both: p = 1\n   and q = 1\ndeadlock-free\n",
    "invariant: p >= 0\r\n\r\nreach x y: b\r\ndeadlock-free live # yes\r\nltl: G b\n",
    "\u{feff}invariant ü: \"ß\\n\" = 1\n\tor 3é > 𝒳.y[0]",
];

const PIECES: [&str; 24] = [
    "(",
    ")",
    "\"",
    "'",
    "\\",
    "\n",
    "\n ",
    "#",
    ":",
    "->",
    "<->",
    "=>",
    "[0]",
    ".",
    "- ",
    "not ",
    "and",
    "0.5",
    "99999999999999999999",
    "é",
    "\u{0}",
    "invariant ",
    "deadlock-free",
    "𝒳",
];

fn feed(text: &str) {
    if let Ok(expr) = parse(text) {
        assert_eq!(parse(&expr.to_string()).as_ref(), Ok(&expr), "{text:?}");
    }
    for findings in [compile(text, &Fake).err(), parse_file(text, &Fake).err()].into_iter().flatten() {
        assert!(!findings.is_empty(), "{text:?} is refused without a word");
        assert!(findings.len() <= 20);
        // Rendering asserts that spans are within the text and between characters.
        all_rendered(text, &findings);
    }
}

/// Runs for a second or two, but at least a thousand times, however slow the machine is.
fn repeatedly(mut step: impl FnMut(usize)) {
    let start = Instant::now();
    let mut round = 0;
    while round < 1000 || start.elapsed() < Duration::from_millis(1500) {
        step(round);
        round += 1;
    }
}

#[test]
fn random_bytes_do_no_harm() {
    let mut random = Random(3);
    repeatedly(|_| {
        let bytes: Vec<u8> = (0..random.below(80)).map(|_| random.next() as u8 & random.pick(&[0x7f, 0xff])).collect();
        feed(&String::from_utf8_lossy(&bytes));
    });
}

#[test]
fn mutated_texts_do_no_harm() {
    let mut random = Random(4);
    SEEDS.into_iter().for_each(feed);
    repeatedly(|round| {
        let mut text: Vec<char> = SEEDS[round % SEEDS.len()].chars().collect();
        for _ in 0..1 + random.below(4) {
            let at = random.below(text.len() + 1);
            match random.below(4) {
                0 => text.truncate(at),
                1 if at < text.len() => drop(text.remove(at)),
                2 => {
                    let piece = random.pick(&SEEDS).chars().skip(random.below(60)).take(random.below(20));
                    text.splice(at..at, piece.collect::<Vec<_>>()).for_each(drop);
                }
                _ => {
                    let piece = random.pick(&PIECES).chars();
                    text.splice(at..at, piece.collect::<Vec<_>>()).for_each(drop);
                }
            }
        }
        feed(&text.into_iter().collect::<String>());
    });
}

/// Found by fuzzing: signs were printed in parentheses, which nest.
#[test]
fn what_nests_as_deep_as_is_allowed_prints_no_deeper() {
    for (one, end) in [("-", "p"), ("-", "5"), ("- ", "p"), ("not ", "b"), ("(", "p")] {
        let nested =
            |depth| format!("{}{end}{}", one.repeat(depth), if one == "(" { ")".repeat(depth) } else { "".into() });
        let deepest = (0..1000).rev().find(|&depth| parse(&nested(depth)).is_ok()).expect("some depth is allowed");
        assert!((200..300).contains(&deepest), "{one} {deepest}");
        for depth in 0..=deepest {
            let expr = parse(&nested(depth)).expect("less deep than the deepest");
            assert_eq!(parse(&expr.to_string()).as_ref(), Ok(&expr), "{one} {depth}");
        }
    }
}
