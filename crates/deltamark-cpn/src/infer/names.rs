//! The names in scope, innermost last.
//!
//! In: names with what they stand for, in the order of declaration. Out: the innermost of a name. What stays true: a look-up
//! takes the same time however many names there are, since files may declare very many.

use std::collections::HashMap;

use super::Entry;

#[derive(Default)]
pub(crate) struct Names {
    list: Vec<(String, Entry)>,
    /// For each name where it is in the list, ascending.
    places: HashMap<String, Vec<usize>>,
}

impl Names {
    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn push(&mut self, name: String, entry: Entry) {
        self.places.entry(name.clone()).or_default().push(self.list.len());
        self.list.push((name, entry));
    }

    /// The innermost of this name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        let last = *self.places.get(name)?.last()?;
        Some(&self.list[last].1)
    }

    pub fn at_mut(&mut self, at: usize) -> &mut Entry {
        &mut self.list[at].1
    }

    /// All names; one that is declared twice occurs twice.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|known| known.0.as_str())
    }

    /// Takes away all but the first `len` names, and returns them.
    pub fn split_off(&mut self, len: usize) -> Vec<(String, Entry)> {
        let taken = if len < self.list.len() { self.list.split_off(len) } else { Vec::new() };
        for (name, _) in taken.iter().rev() {
            if let Some(places) = self.places.get_mut(name) {
                places.pop();
                if places.is_empty() {
                    self.places.remove(name);
                }
            }
        }
        taken
    }

    pub fn truncate(&mut self, len: usize) {
        drop(self.split_off(len));
    }

    /// Takes away the names from `first` up to `end`; those behind them stay.
    pub fn remove(&mut self, first: usize, end: usize) {
        let behind = self.split_off(end);
        self.truncate(first);
        for (name, entry) in behind {
            self.push(name, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::Meaning;
    use crate::types::Scheme;

    #[test]
    fn the_innermost_name_is_found_after_any_removal() {
        let entry = |number| Entry { scheme: Scheme { any: Vec::new(), ty: 0 }, meaning: Meaning::Global(number) };
        let found = |names: &Names, name: &str| match names.get(name).map(|entry| &entry.meaning) {
            Some(Meaning::Global(number)) => Some(*number),
            _ => None,
        };
        let mut names = Names::default();
        for (number, name) in ["a", "b", "a", "c", "b"].into_iter().enumerate() {
            names.push(name.into(), entry(number));
        }
        assert_eq!((found(&names, "a"), found(&names, "b"), found(&names, "c")), (Some(2), Some(4), Some(3)));
        // The inner `a` and `c` were local.
        names.remove(2, 4);
        assert_eq!((found(&names, "a"), found(&names, "b"), found(&names, "c")), (Some(0), Some(4), None));
        names.truncate(2);
        assert_eq!((found(&names, "a"), found(&names, "b"), names.len()), (Some(0), Some(1), 2));
        assert_eq!(names.split_off(0).len(), 2);
        assert_eq!(found(&names, "a"), None);
    }
}
