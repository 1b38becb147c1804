//! Certificates that were tampered with are rejected.
//!
//! In: certificates of small nets, changed in one place and given a right checksum again. Out: none of them is accepted, or
//! else what it then claims is true. Nothing panics.

mod common;

use common::{Claim, Parts, certified, loaded, parts, resealed, sealed, verified};
use deltamark::{Check, Verdict};
use deltamark_testkit::random::Rng;
use deltamark_verify::{Accepted, Failure, text_hash};

const MUTEX: &str = "pl off (1)\npl idle_1 (1)\npl idle_2 (1)\ntr in_1 idle_1 off -> busy_1\ntr in_2 idle_2 off -> busy_2\n\
                     tr out_1 busy_1 -> idle_1 off\ntr out_2 busy_2 -> idle_2 off\n";
const STORE: &str = "pl empty (4)\npl hand (1)\ntr make empty*2 -> full\ntr take full hand -> held\ntr eat held -> hand empty*2\n\
                     tr look full?1 empty?-4 -> seen\ntr drop seen -> \n";
const QUEUE: &str = "pl start (3)\ntr a start -> middle\ntr b middle -> last*2\ntr c last*3 -> over\n";

/// A net with questions: invariants, and goals.
struct Case {
    text: &'static str,
    invariants: &'static [&'static str],
    goals: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        text: MUTEX,
        invariants: &["busy_1 + busy_2 <= 1", "off = 0 implies not deadlock", "busy_1 = 0"],
        goals: &["busy_2 = 1", "busy_1 = 1 and busy_2 = 1", "fireable(in_1, out_2)"],
    },
    Case {
        text: QUEUE,
        invariants: &["start + middle <= 3", "last < 6", "over <= 1"],
        goals: &["over = 2", "over = 7"],
    },
    Case {
        text: STORE,
        invariants: &["empty + 2 * full + 2 * held = 4", "hand + held = 1", "seen = 0"],
        goals: &["seen = 2", "held = 3"],
    },
];

impl Case {
    fn asked<'a>(&self, check: Check<'a>) -> Check<'a> {
        let mut check = check.deadlock_free();
        for text in self.invariants {
            check = check.invariant(text).expect("an invariant");
        }
        for text in self.goals {
            check = check.reachable(text).expect("a goal");
        }
        check
    }
}

/// A net without end is asked only what a few of its states answer.
fn certificate(case: &Case) -> Option<Vec<u8>> {
    let model = loaded(case.text, "tina");
    let limits = deltamark::Limits { states: Some(5000), ..Default::default() };
    let (report, certificate) = certified(case.asked(Check::loaded(&model)).limits(limits));
    assert!(report.certificate.expect("it was asked for").contents.is_some());
    verified(&certificate, case.text).expect("it is right");
    Some(certificate)
}

/// The answer of a run to a claim that was accepted.
fn is_true(case: &Case, accepted: &Accepted) -> bool {
    let model = loaded(case.text, "tina");
    accepted.claims.iter().all(|claim| {
        let check = Check::loaded(&model).limits(deltamark::Limits { states: Some(5000), ..Default::default() });
        let check = match claim.kind {
            "deadlock-free" => claim.ends.iter().try_fold(check.deadlock_free(), |check, end| check.ends_in(end)),
            "fault-free" => return claim.holds,
            "invariant" => check.invariant(&claim.text),
            _ => check.reachable(&claim.text),
        };
        let report = check.expect("what was evaluated there can be read here").run().expect("a report");
        match report.answers[0].verdict {
            Verdict::Holds(_) => claim.holds,
            Verdict::Violated(..) => !claim.holds,
            _ => false,
        }
    })
}

fn rejected(case: &Case, changed: &Parts, what: &str) {
    match verified(&sealed(changed), case.text) {
        Err(Failure::Rejected(_)) => {}
        other => panic!("{what} is not rejected: {other:?}\n{changed:?}\n{}", case.text),
    }
}

/// Mutations each of which makes a certificate wrong, by number.
fn mutate(parts: &Parts, rng: &mut Rng) -> Option<(Parts, &'static str)> {
    let mut changed = parts.clone();
    let count = parts.states.len();
    let on_states = parts.claims.iter().any(|claim| claim.path.is_none());
    let paths: Vec<usize> = (0..parts.claims.len()).filter(|&claim| parts.claims[claim].path.is_some()).collect();
    let path = paths.get(rng.below(paths.len().max(1))).copied();
    let claim = rng.below(parts.claims.len());
    let what = match rng.below(14) {
        0 if on_states => {
            changed.states.remove(rng.below(count));
            "a set without a state"
        }
        1 if on_states => {
            let (state, cell) = (rng.below(count), rng.below(parts.variables as usize));
            changed.states[state][cell] += 1 + rng.below(300) as i64;
            "a set with a state changed"
        }
        2 if on_states => {
            // More tokens everywhere enable something, and lead out of the set.
            let mut state = parts.states[rng.below(count)].clone();
            state.iter_mut().for_each(|cell| *cell += 100);
            changed.states.insert(rng.below(count + 1), state);
            "a set with a state that leads out of it"
        }
        3 if on_states => {
            let cell = rng.below(parts.variables as usize);
            changed.states.iter_mut().for_each(|state| state[cell] = (state[cell] - 1).max(0));
            if changed.states == parts.states {
                return None;
            }
            "a set of other states"
        }
        4 if on_states => {
            changed.states.truncate(rng.below(count));
            "half a set"
        }
        5 => {
            let claim = &mut changed.claims[claim];
            if claim.text.is_empty() {
                return None;
            }
            claim.text = format!("not ({})", claim.text);
            "a property negated"
        }
        6 => {
            let claim = &mut changed.claims[claim];
            match (claim.kind, &claim.path) {
                // True in all, or false in the last; now it is claimed false in all, or true in the last.
                (2, _) => claim.kind = 3,
                (3, _) => claim.kind = 2,
                _ => return None,
            }
            "a property of the other kind"
        }
        7 => {
            let claim = &mut changed.claims[claim];
            claim.path = match claim.path {
                Some(_) => None,
                None => Some((vec![parts.states[0].clone()], false)),
            };
            "evidence of the other kind"
        }
        8 => {
            let states = &mut changed.claims[path?].path.as_mut()?.0;
            states.remove(rng.below(states.len()));
            "a path without a state"
        }
        9 => {
            let states = &mut changed.claims[path?].path.as_mut()?.0;
            let (state, cell) = (rng.below(states.len()), rng.below(parts.variables as usize));
            states[state][cell] += 10 + rng.below(300) as i64;
            "a path with a state changed"
        }
        10 => {
            let states = &mut changed.claims[path?].path.as_mut()?.0;
            if states.len() < 2 {
                return None;
            }
            let state = rng.below(states.len() - 1);
            states.swap(state, state + 1);
            "a path in another order"
        }
        11 => {
            let claim = &mut changed.claims[path?];
            claim.path.as_mut()?.1 = true;
            "a fault where there is none"
        }
        12 => {
            changed.variables += 1;
            changed.states.iter_mut().for_each(|state| state.push(0));
            let paths = changed.claims.iter_mut().filter_map(|claim| claim.path.as_mut());
            paths.flat_map(|path| &mut path.0).for_each(|state| state.push(0));
            "states with one variable more"
        }
        13 => {
            let claim = &mut changed.claims[claim];
            claim.text = ["", "nobody = 1", "1 +", "busy_1", "((((", "fireable(nothing)"][rng.below(6)].into();
            if claim.kind < 2 {
                return None;
            }
            "a property that is none"
        }
        _ => return None,
    };
    Some((changed, what))
}

#[test]
fn of_a_thousand_wrong_certificates_none_is_accepted() {
    let mut rng = Rng::new(7);
    let certificates: Vec<Parts> = CASES.iter().filter_map(certificate).map(|bytes| parts(&bytes)).collect();
    let mut kinds = std::collections::BTreeMap::new();
    let mut made = 0;
    while made < 1200 {
        let case = rng.below(CASES.len());
        let Some((changed, what)) = mutate(&certificates[case], &mut rng) else { continue };
        rejected(&CASES[case], &changed, what);
        *kinds.entry(what).or_insert(0) += 1;
        made += 1;
    }
    assert_eq!(kinds.len(), 14, "{kinds:?}");
}

#[test]
fn whatever_bytes_are_flipped_what_is_accepted_is_true() {
    let mut rng = Rng::new(11);
    let (mut wrong, mut right) = (0, 0);
    for case in CASES {
        let Some(bytes) = certificate(case) else { continue };
        let body = &bytes[..bytes.len() - 4];
        for _ in 0..700 {
            let mut changed = body.to_vec();
            for _ in 0..=rng.below(2) {
                let place = 8 + rng.below(changed.len() - 8);
                changed[place] ^= 1 << rng.below(8);
            }
            match verified(&resealed(changed), case.text) {
                Ok(accepted) => {
                    assert!(is_true(case, &accepted), "{accepted:?}");
                    right += 1;
                }
                Err(_) => wrong += 1,
            }
            // Without a new checksum nothing gets that far.
            let mut changed = bytes.clone();
            let place = rng.below(changed.len());
            changed[place] ^= 1 << rng.below(8);
            assert!(verified(&changed, case.text).is_err());
        }
    }
    // Names and the like can be changed without harm.
    assert!(wrong > 1000, "{wrong} rejected, {right} accepted");
}

#[test]
fn a_certificate_that_was_cut_off_is_rejected() {
    for case in CASES {
        let Some(bytes) = certificate(case) else { continue };
        for length in 0..bytes.len() {
            assert!(verified(&bytes[..length], case.text).is_err(), "{length} bytes");
            if length < bytes.len() - 4 {
                assert!(verified(&resealed(bytes[..length].to_vec()), case.text).is_err(), "{length} bytes");
            }
        }
        let mut longer = bytes[..bytes.len() - 4].to_vec();
        longer.push(0);
        assert!(verified(&resealed(longer), case.text).is_err());
    }
}

#[test]
fn a_forged_hash_does_not_make_it_a_certificate_of_another_net() {
    let others = [
        (MUTEX, MUTEX.replace("pl off (1)", "pl off (2)")),
        (MUTEX, MUTEX.replace("in_2 idle_2 off", "in_2 idle_2 off?1")),
        (QUEUE, QUEUE.replace("last*2", "last*3")),
        (QUEUE, QUEUE.replace("(3)", "(4)")),
        (STORE, STORE.replace("empty*2 -> full", "empty -> full")),
    ];
    for (text, other) in others {
        let case = CASES.iter().find(|case| case.text == text).expect("a case");
        let Some(bytes) = certificate(case) else { continue };
        let failure = verified(&bytes, &other).expect_err("it is of another text");
        assert!(failure.to_string().contains("another model"), "{failure}");
        let mut forged = parts(&bytes);
        forged.text = (other.len() as u64, text_hash(other.as_bytes()));
        assert!(matches!(verified(&sealed(&forged), &other), Err(Failure::Rejected(_))), "{other}");
    }
}

#[test]
fn states_that_cannot_be_reached_do_no_harm() {
    let case = &CASES[0];
    let mut more = parts(&certificate(case).expect("a certificate"));
    // No tokens at all: nothing can fire, but deadlock freedom is not claimed then.
    more.claims.retain(|claim| claim.kind == 3 && claim.path.is_none());
    more.states.push(vec![0; more.variables as usize]);
    let states = more.states.len() as u64;
    assert_eq!(verified(&sealed(&more), case.text).expect("accepted").states, Some(states));
    // Nor does one that is there twice.
    more.states.push(more.states[0].clone());
    assert_eq!(verified(&sealed(&more), case.text).expect("accepted").states, Some(states));
    // A claim that rests on nothing is none.
    more.claims.push(Claim { kind: 0, name: "x".into(), text: String::new(), ends: Vec::new(), path: None });
    rejected(case, &more, "a deadlock among states that cannot be reached");
    more.claims.clear();
    rejected(case, &more, "a certificate without claims");
}

#[test]
fn limits_end_a_check_without_an_answer() {
    use deltamark_verify::{Limits, verify};
    let case = &CASES[0];
    let bytes = certificate(case).expect("a certificate");
    let small = verify(&bytes, case.text.as_bytes(), &Limits { memory: 100, whole: 200, stop: &|| None });
    assert!(matches!(small, Err(Failure::Limit(_))), "{small:?}");
    let short = verify(
        &bytes,
        case.text.as_bytes(),
        &Limits { memory: 1 << 20, whole: 1 << 20, stop: &|| Some("time".into()) },
    );
    assert_eq!(short, Err(Failure::Limit("time".into())));
}

/// A right certificate of a case that claims its first invariant, with this name and this text in place of its own.
fn renamed(name: &str, text: &str) -> Vec<u8> {
    let mut changed = parts(&certificate(&CASES[0]).expect("a certificate"));
    changed.claims.retain(|claim| claim.kind == 2 && claim.path.is_none());
    changed.claims.truncate(1);
    (changed.claims[0].name, changed.claims[0].text) = (name.into(), text.into());
    sealed(&changed)
}

#[test]
fn names_and_texts_that_disguise_what_is_shown_are_rejected() {
    let text = CASES[0].text;
    verified(&renamed("a name: \u{e9} \u{4e2d}", "true # with a word"), text).expect("nothing is wrong with it");
    let characters =
        ['\n', '\r', '\t', '\0', '\u{1b}', '\u{7f}', '\u{85}', '\u{9b}', '\u{2028}', '\u{202e}', '\u{2066}'];
    for c in characters {
        let name = format!("x`): in every state of the set{c}  holds  deadlock-free");
        let comment = format!("true #{c}[2K  holds  deadlock-free");
        for bytes in [renamed(&name, "true"), renamed("x", &comment)] {
            let Err(Failure::Rejected(why)) = verified(&bytes, text) else { panic!("{c:?} is accepted") };
            assert!(why.contains(&format!("U+{:04X}", c as u32)) && !why.contains(c), "{why:?}");
        }
    }
    // As an expression where a run may end, and in the head.
    let mut changed = parts(&certificate(&CASES[0]).expect("a certificate"));
    changed.claims[0].ends = vec!["true #\n".into()];
    rejected(&CASES[0], &changed, "an end of two lines");
    changed.claims[0].ends.clear();
    changed.language = "tina\u{1b}[2K".into();
    rejected(&CASES[0], &changed, "a language that controls the terminal");
}

#[test]
fn a_certificate_that_claims_too_much_is_rejected_in_few_words() {
    let text = CASES[0].text;
    let wide = |length: usize| "true && ".repeat(length / 8) + "true";
    let why = |bytes: Vec<u8>| match verified(&bytes, text) {
        Err(Failure::Rejected(why)) => why,
        other => panic!("it is not rejected: {other:?}"),
    };
    verified(&renamed("x", &wide(1000)), text).expect("that is not much");
    assert!(why(renamed("x", &wide(2 << 20))).contains("more bytes than are read (1 MiB)"));
    assert!(why(renamed(&"x".repeat(2 << 20), "true")).contains("more bytes than are read (1 MiB)"));
    let mut many = parts(&renamed("x", "true"));
    many.claims = vec![many.claims[0].clone(); 10_001];
    assert!(why(sealed(&many)).contains("more claims than are read (10000)"));
    many.claims.truncate(1);
    (many.claims[0].kind, many.claims[0].ends) = (0, vec![String::new(); 10_000]);
    assert!(why(sealed(&many)).contains("more claims than are read (10000)"));
    // What is quoted is shortened.
    for wrong in ["x".repeat(100_000), "(".repeat(100_000), format!("0 = {}", "9".repeat(100_000))] {
        let said = why(renamed("x", &wrong));
        assert!(said.len() < 1200 && said.contains('…'), "{} bytes: {said}", said.len());
    }
    let said = why(renamed("x", &format!("false && {}", wide(100_000))));
    assert!(said.len() < 400 && said.contains("…` is not true"), "{said}");
}

#[test]
fn what_claims_take_is_within_the_limits() {
    use deltamark_verify::{Limits, verify};
    let text = CASES[0].text;
    let bytes = renamed("x", &("true && ".repeat(10_000) + "true"));
    let checked = |memory, stop: &dyn Fn() -> Option<String>| {
        verify(&bytes, text.as_bytes(), &Limits { memory, whole: 64 << 20, stop })
    };
    checked(64 << 20, &|| None).expect("there is room");
    let Err(Failure::Limit(why)) = checked(5 << 20, &|| None) else { panic!("there is no room") };
    assert!(why.contains("1 claims with 80005 bytes") && why.contains("limit of 64 MiB there are 5 MiB left"), "{why}");
    // Before anything was evaluated the limits were asked about.
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        (asked.get() > 1).then(|| "time".into())
    };
    assert_eq!(checked(64 << 20, &stop), Err(Failure::Limit("time".into())));
    // The states: what is left, and the whole.
    let few = renamed("x", "true");
    let Err(Failure::Limit(why)) =
        verify(&few, text.as_bytes(), &Limits { memory: 6 << 10, whole: 4 << 20, stop: &|| None })
    else {
        panic!("there is no room")
    };
    assert!(why.contains("3 states take 5 KiB, and of the memory limit of 4 MiB there are 4 KiB left"), "{why}");
}
