//! Posting lists: the tokens of a place with given values in given components.
//!
//! In: a place, positions of components, and the tokens added to the place over time. Out: for each
//! combination of values the tokens that have it, ascending. What stays true: a list is append-only, and
//! keeps its number.

use std::collections::HashMap;

use crate::engine::Engine;
use crate::tables::values::Code;

/// Tokens of a place by the values of some components.
pub(crate) struct Postings {
    pub place: usize,
    pub positions: Vec<usize>,
    /// The number of tokens of the place that are listed.
    pub covered: u32,
    lists: HashMap<Box<[Code]>, u32>,
    /// The tokens of each list, ascending.
    pub tokens: Vec<Vec<u32>>,
}

impl Postings {
    /// No tokens listed.
    pub fn new(place: usize, positions: Vec<usize>) -> Self {
        Postings { place, positions, covered: 0, lists: HashMap::new(), tokens: Vec::new() }
    }

    /// Lists the tokens added since the last call.
    pub fn refresh(&mut self, engine: &Engine) {
        let table = &engine.places[self.place];
        while self.covered < table.token_count() {
            let key: Box<[Code]> = self.positions.iter().map(|&at| table.component(self.covered, at)).collect();
            let list = self.list(key);
            self.tokens[list as usize].push(self.covered);
            self.covered += 1;
        }
    }

    /// The list of a key.
    pub fn list(&mut self, key: Box<[Code]>) -> u32 {
        let next = self.tokens.len() as u32;
        let list = *self.lists.entry(key).or_insert(next);
        if list == next {
            self.tokens.push(Vec::new());
        }
        list
    }

    /// The bytes currently held.
    pub fn bytes(&self) -> usize {
        let tokens: usize = self.tokens.iter().map(|list| list.capacity() * size_of::<u32>()).sum();
        tokens
            + self.tokens.capacity() * size_of::<Vec<u32>>()
            + self.lists.capacity() * (24 + 8 * self.positions.len())
    }
}
