//! Named patterns against what they mean: on random lassos, by looking at the segments that a scope names.

use deltamark_logic::temporal::{holds_on_lasso, path_formula};
use deltamark_testkit::random::Rng;

/// A random word over `p s q r`, after whose last letter one of its letters follows.
struct Word {
    letters: Vec<u8>,
    back: usize,
}

const P: u8 = 0;
const S: u8 = 1;
const Q: u8 = 2;
const R: u8 = 3;

impl Word {
    fn random(random: &mut Rng) -> Word {
        let length = 1 + random.below(7);
        // Some atoms are rare in some words, so that segments get long.
        let rare: [usize; 4] = std::array::from_fn(|_| 1 + random.below(4));
        let letter =
            |random: &mut Rng| (0..4).fold(0, |all, atom| all | u8::from(random.below(rare[atom] + 1) == 0) << atom);
        let letters = (0..length).map(|_| letter(random)).collect();
        Word { letters, back: random.below(length) }
    }

    /// The letters from the first one on, as far as anything new can come: once round after each place.
    fn unrolled(&self) -> Vec<u8> {
        let cycle = &self.letters[self.back..];
        let mut all = self.letters.clone();
        (0..3).for_each(|_| all.extend(cycle));
        all
    }
}

fn is(letter: u8, atom: u8) -> bool {
    letter >> atom & 1 == 1
}

/// Whether a pattern is true in a segment; of an endless one, a prefix in which all letters that can follow one of the
/// first `shown` do follow it.
fn in_segment(pattern: &str, segment: &[u8], shown: usize) -> bool {
    let place = |atom: u8| segment.iter().position(|&letter| is(letter, atom));
    match pattern {
        "absence(p)" => place(P).is_none(),
        "existence(p)" => place(P).is_some(),
        "universality(p)" => segment.iter().all(|&letter| is(letter, P)),
        "precedence(s, p)" => place(P).is_none_or(|at| segment[..=at].iter().any(|&letter| is(letter, S))),
        "response(p, s)" => (0..segment.len().min(shown))
            .all(|at| !is(segment[at], P) || segment[at..].iter().any(|&letter| is(letter, S))),
        other => panic!("there is no pattern `{other}`"),
    }
}

/// The segments that a scope names, by their places in the unrolled word; an endless one ends where it does.
fn segments(scope: &str, word: &Word) -> Vec<(usize, usize)> {
    let all = word.unrolled();
    let next = |from: usize, atom: u8| (from..all.len()).find(|&at| is(all[at], atom));
    // A place after the first round of the cycle is like one before.
    let begins = (0..word.letters.len()).filter(|&at| is(all[at], Q) && !is(all[at], R));
    match scope {
        "" | " globally" => vec![(0, all.len())],
        " before r" => next(0, R).map(|end| (0, end)).into_iter().collect(),
        " after q" => next(0, Q).map(|begin| (begin, all.len())).into_iter().collect(),
        " between q and r" => begins.filter_map(|begin| Some((begin, next(begin, R)?))).collect(),
        " after q until r" => begins.map(|begin| (begin, next(begin, R).unwrap_or(all.len()))).collect(),
        other => panic!("there is no scope `{other}`"),
    }
}

#[test]
fn patterns_mean_what_their_scopes_and_segments_say() {
    let mut random = Rng::new(7);
    for pattern in ["absence(p)", "existence(p)", "universality(p)", "precedence(s, p)", "response(p, s)"] {
        for scope in ["", " globally", " before r", " after q", " between q and r", " after q until r"] {
            let text = format!("{pattern}{scope}");
            let (pool, root, atoms) = path_formula(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
            let mut values = [0; 2];
            for _ in 0..3000 {
                let word = Word::random(&mut random);
                let all = word.unrolled();
                // Two rounds of the cycle follow.
                let shown = 2 * word.letters.len() - word.back;
                let expected = segments(scope, &word)
                    .iter()
                    .all(|&(begin, end)| in_segment(pattern, &all[begin..end], shown - begin));
                let holds = |atom: u32, at: usize| {
                    let atom = ["p", "s", "q", "r"].iter().position(|name| *name == atoms[atom as usize]);
                    is(word.letters[at], atom.expect("an atom") as u8)
                };
                let found = holds_on_lasso(&pool, root, word.letters.len(), word.back, &holds);
                assert_eq!(found, Some(expected), "{text} on {:?} back to {}", word.letters, word.back);
                values[usize::from(expected)] += 1;
            }
            assert!(values.iter().all(|&count| count > 100), "{text}: {values:?}");
        }
    }
}

#[test]
fn what_is_no_pattern_is_refused_with_advice() {
    let rows = [
        ("response(p)", "the pattern has 1 of 2 formulas", "write `response(p, s)`"),
        ("absence(p, q)", "the pattern has 2 of 1 formulas", "write `absence(p)`"),
        ("absence(p) between q", "expected `and`, as in `between q and r`, found the end", ""),
        (
            "absence(existence(p))",
            "patterns cannot be part of patterns",
            "write the inner one as a formula, or ask for each",
        ),
        ("respons(p, q)", "there is no function `respons`", "did you mean `response`?"),
        ("absence(p) after", "expected a name, a number, `not` or `(`, found the end", ""),
    ];
    for (text, message, help) in rows {
        let wrong = path_formula(text).map(|_| ()).expect_err(text);
        assert_eq!((wrong[0].message.as_str(), wrong[0].help.as_deref().unwrap_or("")), (message, help), "{text}");
    }
    for text in
        ["A response(p, s) before r", "not absence(p) after q and existence(s)", "G (p -> existence(s) before r)"]
    {
        assert!(deltamark_logic::parse_temporal(text).is_ok(), "{text}");
    }
    // Outside of temporal logic these are names.
    assert!(deltamark_logic::parse("absence = 1 and response = 2").is_ok());
}
