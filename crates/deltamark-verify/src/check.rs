//! The checks.
//!
//! In: a certificate whose head was read, and the model. Out: what was checked, or the first thing that is wrong. What
//! stays true: every claim was checked state by state, by the steps of the model and by the expression itself.

use crate::certificate::{self, Bytes, Claim, Evidence, Head, Kind};
use crate::model::{Model, Step};
use crate::property::{self, Moment, Truth};
use crate::states::StateSet;
use crate::{Accepted, CheckedClaim, Failure, Limits};
use std::cell::Cell;

/// How often limits are asked about, in states.
const PERIOD: usize = 256;

/// Bytes that a claim takes, without its expressions.
const CLAIM: u64 = 2048;
/// Bytes that an expression and its copies take at most for each byte of its text: a `!` is a node.
const TREE: u64 = 96;
/// Bytes that reading one takes beside, for each byte: a byte can be a token, and lists grow by doubling.
const READING: u64 = 128;
/// The most characters of a text that a message quotes.
const QUOTED: usize = 60;

/// A claim with its expressions read.
struct Question<'a> {
    claim: &'a Claim<'a>,
    /// The invariant or the goal.
    truth: Option<Truth>,
    ends: Vec<Truth>,
}

/// That a certificate does not have the form of one, or more of something than is read.
pub(crate) fn unreadable(why: String) -> Failure {
    Failure::Rejected(format!("the certificate cannot be read: {why}"))
}

/// Checks everything.
pub(crate) fn check(
    head: &Head<'_>,
    mut bytes: Bytes<'_>,
    model: &dyn Model,
    limits: &Limits<'_>,
) -> Result<Accepted, Failure> {
    let variables = model.variables();
    if head.variables != variables as u64 {
        let why = format!("its states have {} variables, and those of the model {variables}", head.variables);
        return Err(Failure::Rejected(why));
    }
    let states = bytes;
    let shape = measure(&mut bytes, model, limits)?;
    let claims = certificate::claims(&mut bytes, &mut vec![0; variables], unreadable, || ask(limits))?;
    if claims.is_empty() {
        return Err(Failure::Rejected("the certificate claims nothing".into()));
    }
    let (texts, kept) = room(&claims, limits)?;
    let limits = &Limits { memory: limits.memory - kept, ..*limits };
    let mut questions = Vec::new();
    for claim in &claims {
        let read = |text: &&str| {
            let wrong = |why| Failure::Rejected(format!("the property `{}` cannot be read: {why}", short(text)));
            ask(limits)?;
            property::read(text, model).map_err(wrong)
        };
        let truth = match claim.kind {
            Kind::Invariant | Kind::Reachable => Some(read(&claim.text)?),
            Kind::DeadlockFree | Kind::FaultFree => None,
        };
        questions.push(Question { claim, truth, ends: claim.ends.iter().map(read).collect::<Result<_, _>>()? });
    }
    let steps = Cell::new(0);
    let rests_on_states = claims.iter().any(|claim| matches!(claim.evidence, Evidence::States));
    let mut set = None;
    if rests_on_states {
        let filled = fill(states, &shape, model, limits)?;
        // The longer the questions, the fewer states between two looks at the limits.
        let period = PERIOD / (1 + (texts as usize >> 10) + (questions.len() >> 6)).min(PERIOD);
        closed(&filled, model, &questions, period, &steps, limits)?;
        set = Some(filled.len() as u64);
    } else if shape.states > 0 {
        return Err(Failure::Rejected("the certificate holds states, and no claim rests on them".into()));
    }
    let mut checked = Vec::new();
    for question in &questions {
        let claim = question.claim;
        let path = match claim.evidence {
            Evidence::States => None,
            Evidence::Path { states, fault, bytes } => {
                follow(states, fault, bytes, question, model, &steps, limits)?;
                Some(states - u64::from(!fault))
            }
        };
        let kind = match claim.kind {
            Kind::DeadlockFree => "deadlock-free",
            Kind::FaultFree => "fault-free",
            Kind::Invariant => "invariant",
            Kind::Reachable => "reachable",
        };
        let holds = path.is_some() == (claim.kind == Kind::Reachable);
        let text = if question.truth.is_some() { claim.text.into() } else { String::new() };
        let ends = claim.ends.iter().map(|&end| end.into()).collect();
        checked.push(CheckedClaim { holds, kind, name: claim.name.into(), text, ends, path });
    }
    Ok(Accepted { language: head.language.into(), states: set, steps: steps.get(), claims: checked })
}

/// The bytes of all texts, and what they may take from now on; fails if there is not as much.
fn room(claims: &[Claim<'_>], limits: &Limits<'_>) -> Result<(u64, u64), Failure> {
    let (mut count, mut all, mut longest) = (0, 0, 0);
    for claim in claims {
        let lengths = claim.ends.iter().chain([&claim.text, &claim.name]).map(|text| text.len() as u64);
        count += 1 + claim.ends.len() as u64;
        all += lengths.clone().sum::<u64>();
        longest = longest.max(lengths.max().unwrap_or(0));
    }
    let kept = CLAIM * count + TREE * all;
    let need = kept + READING * longest;
    if need > limits.memory {
        return Err(no_room(&format!("{count} claims with {all} bytes of text"), Some(need), limits));
    }
    Ok((all, kept))
}

/// That something takes more than is left.
fn no_room(what: &str, need: Option<u64>, limits: &Limits<'_>) -> Failure {
    let size = |bytes: u64| match bytes {
        0..0x10_0000 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    };
    let need = need.map_or("too much".into(), size);
    let (left, whole) = (size(limits.memory), size(limits.whole));
    Failure::Limit(format!("{what} take {need}, and of the memory limit of {whole} there are {left} left"))
}

/// The beginning of a text.
fn short(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

fn ask(limits: &Limits<'_>) -> Result<(), Failure> {
    (limits.stop)().map_or(Ok(()), |why| Err(Failure::Limit(why)))
}

/// How many states there are, and the bounds of their values.
struct Shape {
    states: usize,
    least: i64,
    most: i64,
}

/// Reads the states once, to know what they take.
fn measure(bytes: &mut Bytes<'_>, model: &dyn Model, limits: &Limits<'_>) -> Result<Shape, Failure> {
    let mut shape = Shape { states: 0, least: 0, most: 0 };
    let mut state = vec![0; model.variables()];
    loop {
        let see = |value: i64| {
            shape.least = shape.least.min(value);
            shape.most = shape.most.max(value);
        };
        match bytes.next_state(&mut state, see) {
            Ok(true) => shape.states += 1,
            Ok(false) => return Ok(shape),
            Err(why) => {
                return Err(unreadable(format!("{why}, at state {}", shape.states)));
            }
        }
        if !model.can_hold(shape.least) {
            let why =
                format!("state {} holds {}, which no variable of the model can hold", shape.states - 1, shape.least);
            return Err(Failure::Rejected(why));
        }
        if shape.states.is_multiple_of(PERIOD) {
            ask(limits)?;
        }
    }
}

/// The set of the states.
fn fill(mut bytes: Bytes<'_>, shape: &Shape, model: &dyn Model, limits: &Limits<'_>) -> Result<StateSet, Failure> {
    let width = StateSet::width_of(shape.least, shape.most);
    let need = StateSet::bytes(model.variables(), width, shape.states);
    if need.is_none_or(|need| need > limits.memory) {
        return Err(no_room(&format!("{} states", shape.states), need, limits));
    }
    let mut set = StateSet::new(model.variables(), width, shape.states);
    let mut state = vec![0; model.variables()];
    let mut row = set.row(&state).unwrap_or_default();
    let mut number = 0;
    while bytes.next_state(&mut state, |_| {}).map_err(Failure::Rejected)? {
        for (cell, &value) in state.iter().enumerate() {
            set.put(&mut row, cell, value);
        }
        let hash = set.hash(&state);
        set.insert(&row, hash);
        number += 1;
        if usize::is_multiple_of(number, PERIOD) {
            ask(limits)?;
        }
    }
    Ok(set)
}

/// Checks that the set holds the initial state and all successors, and that each claim about all states is true in each.
fn closed(
    set: &StateSet,
    model: &dyn Model,
    questions: &[Question<'_>],
    period: usize,
    steps: &Cell<u64>,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let initial = model.initial();
    if !set.row(&initial).is_some_and(|row| set.has(&row, set.hash(&initial))) {
        return Err(Failure::Rejected("the initial state is not in the set".into()));
    }
    let mut state = Vec::new();
    let mut row = Vec::new();
    for number in 0..set.len() {
        if usize::is_multiple_of(number, period) {
            ask(limits)?;
        }
        set.read(number, &mut state);
        let hash = set.hash(&state);
        row.clear();
        row.extend_from_slice(set.row_of(number));
        let (mut dead, mut fault) = (true, None);
        let mut see = |step: Step<'_>| {
            steps.set(steps.get() + 1);
            dead = false;
            let changes = match step.changes {
                Ok(changes) => changes,
                Err(what) => {
                    fault = Some(format!("`{}` is a fault: {what}", model.step_name(step.number)));
                    return Ok(());
                }
            };
            let (mut target, mut fit) = (hash, true);
            for &(cell, value) in changes {
                let cell = cell as usize;
                target = target.wrapping_add(set.hash_change(cell, state[cell], value));
                fit &= set.put(&mut row, cell, value);
            }
            let known = fit && set.has(&row, target);
            for &(cell, _) in changes {
                set.put(&mut row, cell as usize, state[cell as usize]);
            }
            match known {
                true => Ok(()),
                false => Err(format!("`{}` leads to a state that is not in the set", model.step_name(step.number))),
            }
        };
        let here = |why: String| Failure::Rejected(format!("in state {number}, {}: {why}", shown(model, &state)));
        model.steps(&state, &mut see).map_err(here)?;
        let now = Moment { model, state: &state, dead };
        for question in questions {
            if let Evidence::States = question.claim.evidence {
                refuted(question, &now, fault.as_deref()).map_or(Ok(()), |why| Err(here(why)))?;
            }
        }
    }
    Ok(())
}

/// Why a claim about all states is not true in one of them, if it is not.
fn refuted(question: &Question<'_>, now: &Moment<'_>, fault: Option<&str>) -> Option<String> {
    let text = short(question.claim.text);
    match question.claim.kind {
        Kind::DeadlockFree => wrong_end(question, now).then(|| "it is a deadlock".into()),
        Kind::FaultFree => fault.map(Into::into),
        Kind::Invariant => (!is_true(question, now)).then(|| format!("the invariant `{text}` is not true")),
        Kind::Reachable => is_true(question, now).then(|| format!("the goal `{text}` is true")),
    }
}

fn is_true(question: &Question<'_>, now: &Moment<'_>) -> bool {
    question.truth.as_ref().and_then(|truth| truth.value(now)) == Some(true)
}

/// Whether it is a deadlock where none is a right end. An expression without a value makes it none.
fn wrong_end(question: &Question<'_>, now: &Moment<'_>) -> bool {
    if !now.dead {
        return false;
    }
    for end in &question.ends {
        match end.value(now) {
            Some(true) => return false,
            Some(false) => {}
            None => return true,
        }
    }
    true
}

/// Follows a path and checks its end.
fn follow(
    count: u64,
    faulty: bool,
    mut bytes: Bytes<'_>,
    question: &Question<'_>,
    model: &dyn Model,
    steps: &Cell<u64>,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let name = short(question.claim.name);
    let mut state = vec![0; model.variables()];
    let mut before = model.initial();
    for number in 0..count {
        if number.is_multiple_of(PERIOD as u64) {
            ask(limits)?;
        }
        bytes.next_state(&mut state, |_| {}).map_err(Failure::Rejected)?;
        if number == 0 {
            if state != before {
                return Err(Failure::Rejected(format!("the path for `{name}` does not begin in the initial state")));
            }
            continue;
        }
        let differing: Vec<usize> = (0..state.len()).filter(|&cell| state[cell] != before[cell]).collect();
        let mut found = false;
        let mut see = |step: Step<'_>| {
            let Ok(changes) = step.changes else { return Ok(()) };
            // Cells that it does not change must be equal, and those that it changes as it says.
            let made = changes.iter().all(|&(cell, value)| state[cell as usize] == value);
            found |= made && differing.iter().all(|&cell| changes.iter().any(|&(changed, _)| changed as usize == cell));
            Ok(())
        };
        let here = |why: String| Failure::Rejected(format!("step {number} of the path for `{name}`: {why}"));
        model.steps(&before, &mut see).map_err(here)?;
        steps.set(steps.get() + 1);
        if !found {
            return Err(here(format!("no step leads to {}", shown(model, &state))));
        }
        before.copy_from_slice(&state);
    }
    let (mut dead, mut fault) = (true, false);
    let mut see = |step: Step<'_>| {
        dead = false;
        fault |= step.changes.is_err();
        Ok(())
    };
    let wrong = |why: &str| Err(Failure::Rejected(format!("the path for `{name}` {why}")));
    if count == 0 {
        return wrong("has no states");
    }
    model.steps(&before, &mut see).map_err(Failure::Rejected)?;
    let now = Moment { model, state: &before, dead };
    let shows = match (question.claim.kind, faulty) {
        (Kind::FaultFree, true) => fault,
        (Kind::DeadlockFree, false) => wrong_end(question, &now),
        (Kind::Invariant, false) => !is_true(question, &now),
        (Kind::Reachable, false) => is_true(question, &now),
        _ => false,
    };
    if shows {
        Ok(())
    } else {
        wrong(&format!("ends in {}, which does not show what is claimed", shown(model, &before)))
    }
}

/// A state in words, shortened: the variables that are not 0.
fn shown(model: &dyn Model, state: &[i64]) -> String {
    const MOST: usize = 12;
    let set: Vec<usize> = (0..state.len()).filter(|&cell| state[cell] != 0).collect();
    let word = |&cell: &usize| format!("{}={}", model.variable_name(cell), state[cell]);
    let words: Vec<String> = set.iter().take(MOST).map(word).collect();
    let more = if set.len() > MOST { format!(" and {} more", set.len() - MOST) } else { String::new() };
    format!("({}{more})", words.join(" "))
}
