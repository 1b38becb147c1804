//! A trace in the modeller's words.
//!
//! In: a trace and its system. Out: a [`Story`]: the first state, then for each step
//! the action and what it changed, and where a cycle begins. What stays true: a story comes only from a replay
//! and owns its words; each word is kept once and a step refers to them by number, so
//! that a path of a million steps takes tens of megabytes, however large its states.

use deltamark_core::{Control, Describe, ReplayError, Slot, Stop, System, Trace, Value};
use std::collections::{BTreeMap, HashMap};

/// What a step did to one variable. A variable at rest (an empty place) has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// The variable's name.
    pub name: &'a str,
    /// Its value before, unless it was at rest.
    pub before: Option<&'a Value>,
    /// Its value after, unless it is at rest.
    pub after: Option<&'a Value>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryStep<'a> {
    /// The action's name.
    pub action: &'a str,
    /// What it changed, in the order of the model.
    pub changes: Vec<Change<'a>>,
    /// What the model says of it, when it is a fault. It then leads to no state.
    pub fault: Option<&'a str>,
}

/// A state in words: variables and values, those at rest omitted.
pub type StateWords<'a> = Vec<(&'a str, &'a Value)>;

/// A trace in words.
#[derive(Clone, Debug)]
pub struct Story {
    variables: InternedWords<String>,
    values: InternedWords<Value>,
    actions: InternedWords<String>,
    /// Variable and value, for each variable that is not at rest.
    first: Vec<(u32, u32)>,
    /// The action of each step, and where its changes end.
    steps: Vec<(u32, u32)>,
    /// The changes of all steps: variable and new value, [`REST`] for none.
    changes: Vec<(u32, u32)>,
    fault: Option<String>,
    cycle: Option<usize>,
    rest: Value,
}

/// Stands for the value of a variable at rest.
const REST: u32 = u32::MAX;

impl Story {
    /// Replays a trace and puts it into words.
    pub fn tell(system: &dyn System, trace: &Trace) -> Result<Story, ReplayError> {
        let told = Story::tell_under(system, trace, &Control::new())?;
        Ok(told.unwrap_or_else(|_| unreachable!("nobody asks it to stop")))
    }

    /// The same, unless `control` has it end before.
    pub fn tell_under(
        system: &dyn System,
        trace: &Trace,
        control: &Control,
    ) -> Result<Result<Story, Stop>, ReplayError> {
        let describe = system.describe();
        let mut story = Story::nothing(system);
        let mut before: (Vec<Slot>, BTreeMap<u32, u32>) = Default::default();
        let followed = trace.follow(system, |number, state| {
            control.ask()?;
            if number == 0 {
                story = Story::nothing(system);
                before = (state.to_vec(), story.state(describe, state));
                story.first = before.1.iter().map(|(&variable, &value)| (variable, value)).collect();
                return Ok(());
            }
            let action = story.actions.number(describe.action(&before.0, trace.actions[number - 1]));
            let next = story.state(describe, state);
            story.changes.extend(differences(&before.1, &next));
            before = (state.to_vec(), next);
            story.steps.push((action, story.changes.len() as u32));
            Ok(())
        })?;
        story.fault = match followed {
            Ok(fault) => fault,
            Err(stop) => return Ok(Err(stop)),
        };
        story.cycle = trace.cycle();
        if let (true, Some(&last)) = (trace.ends_in_fault(), trace.actions.last()) {
            let action = story.actions.number(describe.action(&before.0, last));
            story.steps.push((action, story.changes.len() as u32));
        }
        Ok(Ok(story))
    }

    /// A story before its first state.
    fn nothing(system: &dyn System) -> Self {
        let mut story = Story {
            variables: InternedWords::default(),
            values: InternedWords::default(),
            actions: InternedWords::default(),
            first: Vec::new(),
            steps: Vec::new(),
            changes: Vec::new(),
            fault: None,
            cycle: None,
            rest: system.describe().rest(),
        };
        // Numbered in the order of the model, so that whatever is listed by number comes
        // in that order.
        for name in system.observe().map(|observe| observe.names()).unwrap_or_default() {
            story.variables.number(name);
        }
        story
    }

    fn state(&mut self, describe: &dyn Describe, state: &[Slot]) -> BTreeMap<u32, u32> {
        let words = describe.state(state).into_iter();
        words.map(|(name, value)| (self.variables.number(name), self.values.number(value))).collect()
    }

    /// How many steps it has.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether it is an initial state alone.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// What the model says of the last step, when that is a fault.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// The number of steps before the cycle, when it is a lasso: the steps after these lead back to the state before
    /// them.
    pub fn cycle(&self) -> Option<usize> {
        self.cycle
    }

    /// The value of a variable at rest.
    pub fn rest(&self) -> &Value {
        &self.rest
    }

    /// Walks along the story, from its first state.
    pub fn walk(&self) -> Walk<'_> {
        Walk { story: self, taken: 0, now: self.first.iter().copied().collect() }
    }
}

/// A walk along a story: a current state, and the steps that follow.
pub struct Walk<'a> {
    story: &'a Story,
    taken: usize,
    now: BTreeMap<u32, u32>,
}

impl<'a> Walk<'a> {
    /// The present state.
    pub fn state(&self) -> StateWords<'a> {
        let word = |(&variable, &value): (&u32, &u32)| {
            (self.story.variables.list[variable as usize].as_str(), &self.story.values.list[value as usize])
        };
        self.now.iter().map(word).collect()
    }

    fn value(&self, number: u32) -> Option<&'a Value> {
        self.story.values.list.get(number as usize)
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = StoryStep<'a>;

    /// Takes the next step. One that is a fault leaves the state as it is.
    fn next(&mut self) -> Option<StoryStep<'a>> {
        let story = self.story;
        let &(action, end) = story.steps.get(self.taken)?;
        let start = self.taken.checked_sub(1).map_or(0, |before| story.steps[before].1);
        self.taken += 1;
        let mut changes = Vec::with_capacity((end - start) as usize);
        for &(variable, after) in &story.changes[start as usize..end as usize] {
            let before = match after {
                REST => self.now.remove(&variable),
                value => self.now.insert(variable, value),
            };
            changes.push(Change {
                name: &story.variables.list[variable as usize],
                before: before.and_then(|value| self.value(value)),
                after: self.value(after),
            });
        }
        let last = self.taken == story.steps.len();
        let fault = story.fault.as_deref().filter(|_| last);
        Some(StoryStep { action: &story.actions.list[action as usize], changes, fault })
    }
}

/// Words, each kept once and known by its number.
#[derive(Clone, Debug)]
struct InternedWords<T> {
    list: Vec<T>,
    /// By what they look like: numbers and texts that look the same are found under the same key.
    known: HashMap<String, u32>,
}

impl<T> Default for InternedWords<T> {
    fn default() -> Self {
        InternedWords { list: Vec::new(), known: HashMap::new() }
    }
}

impl<T: ToString + PartialEq> InternedWords<T> {
    fn number(&mut self, word: T) -> u32 {
        let text = word.to_string();
        if let Some(&number) = self.known.get(&text)
            && self.list[number as usize] == word
        {
            return number;
        }
        let number = self.list.len() as u32;
        self.known.insert(text, number);
        self.list.push(word);
        number
    }
}

/// What differs between two states: variable and new value, by number of the variable.
fn differences(before: &BTreeMap<u32, u32>, after: &BTreeMap<u32, u32>) -> Vec<(u32, u32)> {
    let new = after.iter().filter(|(variable, value)| before.get(variable) != Some(value));
    let gone = before.keys().filter(|variable| !after.contains_key(variable));
    let new = new.map(|(&variable, &value)| (variable, value));
    let mut all: Vec<(u32, u32)> = new.chain(gone.map(|&variable| (variable, REST))).collect();
    all.sort_unstable();
    all
}

/// What differs between two states of a system, in words: name, before, after. For
/// where states are shown one by one.
pub(crate) fn changes(system: &dyn System, before: &[Slot], after: &[Slot]) -> Vec<(String, Value, Value)> {
    let describe = system.describe();
    let rest = describe.rest();
    let mut variables = InternedWords::default();
    for name in system.observe().map(|observe| observe.names()).unwrap_or_default() {
        variables.number(name);
    }
    let mut both: BTreeMap<u32, (Value, Value)> = BTreeMap::new();
    for (name, value) in describe.state(before) {
        both.entry(variables.number(name)).or_insert_with(|| (rest.clone(), rest.clone())).0 = value;
    }
    for (name, value) in describe.state(after) {
        both.entry(variables.number(name)).or_insert_with(|| (rest.clone(), rest.clone())).1 = value;
    }
    let changed = both.into_iter().filter(|(_, (before, after))| before != after);
    changed.map(|(name, (before, after))| (variables.list[name as usize].clone(), before, after)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(text: &str) -> BTreeMap<u32, u32> {
        let pair = |word: &str| {
            let (name, value) = word.split_once('=').expect("name=value");
            (name.parse().expect("a number"), value.parse().expect("a number"))
        };
        text.split_whitespace().map(pair).collect()
    }

    #[test]
    fn differences_come_in_the_order_of_the_variables() {
        let cases = [
            ("", "", ""),
            ("1=1 2=1", "1=1 2=1", ""),
            ("1=1 2=1 3=1", "1=1 3=2", "2 rests, 3=2"),
            ("2=1", "1=5 2=1 3=7", "1=5, 3=7"),
            ("1=1 2=2", "3=3", "1 rests, 2 rests, 3=3"),
            ("1=1 2=2 4=4", "2=3 4=4", "1 rests, 2=3"),
        ];
        let word = |&(variable, value): &(u32, u32)| match value {
            REST => format!("{variable} rests"),
            value => format!("{variable}={value}"),
        };
        for (before, after, expected) in cases {
            let found: Vec<String> = differences(&state(before), &state(after)).iter().map(word).collect();
            assert_eq!(found.join(", "), expected, "{before:?} to {after:?}");
        }
    }

    #[test]
    fn a_number_and_a_text_that_look_the_same_stay_two_words() {
        let mut words = InternedWords::default();
        let number = words.number(Value::Int(1));
        let text = words.number(Value::Text("1".into()));
        assert_ne!(number, text);
        assert_eq!(
            (&words.list[number as usize], &words.list[text as usize]),
            (&Value::Int(1), &Value::Text("1".into()))
        );
        assert_eq!(words.number(Value::Text("1".into())), text);
    }
}
