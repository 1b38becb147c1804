//! States in which a run may end.
//!
//! In: expressions that are true in final states. Out: deadlock freedom that is violated only by deadlocks elsewhere. What stays
//! true: every deadlock is counted, final or not; where an expression has no value in a deadlock, that is a violation with its reason.

use deltamark_core::property::Undefined;
use deltamark_core::{Block, Formula, Goal, Predicate, Property, Scratch, System};
use std::sync::Arc;

/// The most characters of an expression that are shown.
const SHOWN: usize = 120;

/// An expression that is true in final states.
pub(crate) struct FinalStates {
    pub text: String,
    pub predicate: Box<dyn Predicate>,
}

/// Expressions of which one must be true in a state without successors.
#[derive(Clone)]
pub(crate) struct Ends(pub Arc<[FinalStates]>);

impl Ends {
    /// Deadlock freedom but for these states.
    pub fn property(&self, of: Property) -> Property {
        let text = format!("{}, unless {}", of.text, self.text());
        Property { text, goal: Goal::Invariant(Box::new(self.clone())), ..of }
    }

    /// Where one of the expressions is true, among the states of `asked`.
    pub fn true_in(
        &self,
        system: &dyn System,
        scratch: &mut Scratch,
        block: &Block,
        dead: u64,
        asked: u64,
    ) -> Result<u64, Undefined> {
        let mut open = asked;
        for one in self.0.iter() {
            if open != 0 {
                open &= !true_in(&*one.predicate, system, scratch, block, dead, open)?;
            }
        }
        Ok(asked & !open)
    }

    /// The expressions, as one.
    pub fn text(&self) -> String {
        match &*self.0 {
            [one] => shortened(&one.text),
            several => several.iter().map(|one| format!("({})", shortened(&one.text))).collect::<Vec<_>>().join(" or "),
        }
    }

    /// What reports say beside the verdict.
    pub fn note(&self) -> String {
        format!("a deadlock where {} is a right end: it is counted as a deadlock, and violates nothing", self.text())
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

impl Predicate for Ends {
    fn evaluate(&self, system: &dyn System, scratch: &mut Scratch, block: &Block, dead: u64) -> Result<u64, Undefined> {
        let stuck = dead & block.mask();
        Ok(block.mask() & !(stuck & !self.true_in(system, scratch, block, dead, stuck)?))
    }

    /// It is false in deadlocks that are not final.
    fn formula(&self, wanted: bool) -> Option<Formula> {
        if wanted {
            return None;
        }
        let mut parts = vec![Formula::Deadlock(true)];
        for one in self.0.iter() {
            parts.push(one.predicate.formula(false)?);
        }
        Some(Formula::All(parts))
    }
}

/// Where a predicate is true among the states of `asked`. That it has no value elsewhere does not matter.
fn true_in(
    predicate: &dyn Predicate,
    system: &dyn System,
    scratch: &mut Scratch,
    block: &Block,
    dead: u64,
    asked: u64,
) -> Result<u64, Undefined> {
    if let Ok(mask) = predicate.evaluate(system, scratch, block, dead) {
        return Ok(mask & asked);
    }
    let mut single = Block::new(system.width());
    let mut truths = 0;
    for (index, state) in block.states().iter().enumerate().filter(|(index, _)| asked >> index & 1 == 1) {
        single.reset(system.width());
        single.push(block.id(index), state);
        let mask = predicate
            .evaluate(system, scratch, &single, dead >> index & 1)
            .map_err(|undefined| Undefined { state: index, ..undefined })?;
        truths |= (mask & 1) << index;
    }
    Ok(truths)
}
