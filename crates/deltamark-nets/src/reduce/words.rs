//! The words of transitions: which original transitions they stand for.
//!
//! In: transitions joined. Out: their words, spelt when a trace is shown. What stays true: a word refers to shorter ones only, and its length is bounded,
//! so words share their parts and spelling one ends.

use deltamark_core::{Action, Control, Stop};

/// The most letters of a word.
const LONGEST: u64 = 1 << 20;

/// A word, by its number.
pub(super) type Word = u32;

#[derive(Clone, Copy, Debug)]
enum Spelling {
    Letter(u32),
    /// A word repeated, then another one repeated.
    Both([(Word, u64); 2]),
}

/// All words.
#[derive(Clone, Debug)]
pub(super) struct Words {
    spellings: Vec<Spelling>,
    lengths: Vec<u64>,
}

impl Words {
    /// A word for each transition of a net, of the same number.
    pub fn of(transitions: usize) -> Self {
        Words { spellings: (0..transitions as u32).map(Spelling::Letter).collect(), lengths: vec![1; transitions] }
    }

    /// The concatenation of two words, each repeated; `None` if it is too long.
    pub fn join(&mut self, parts: [(Word, u64); 2]) -> Option<Word> {
        let lengths = parts.map(|(word, times)| self.lengths[word as usize].checked_mul(times));
        let length = lengths[0]?.checked_add(lengths[1]?).filter(|&length| length <= LONGEST)?;
        self.spellings.push(Spelling::Both(parts));
        self.lengths.push(length);
        Some(self.spellings.len() as u32 - 1)
    }

    /// Its first letter.
    pub fn first(&self, mut word: Word) -> u32 {
        loop {
            match self.spellings[word as usize] {
                Spelling::Letter(letter) => return letter,
                Spelling::Both([(first, _), _]) => word = first,
            }
        }
    }

    /// Appends its letters.
    pub fn spell(&self, word: Word, out: &mut Vec<Action>, control: &Control) -> Result<(), Stop> {
        let mut open = vec![(word, 1)];
        while let Some((word, times)) = open.pop() {
            if times > 1 {
                open.push((word, times - 1));
            }
            match self.spellings[word as usize] {
                Spelling::Letter(letter) => {
                    control.ask()?;
                    ask_for(out, control)?;
                    out.push(Action(letter));
                }
                Spelling::Both(parts) => open.extend(parts.into_iter().rev()),
            }
        }
        Ok(())
    }
}

/// Asks for the memory by which a path grows next.
pub(super) fn ask_for(path: &[Action], control: &Control) -> Result<(), Stop> {
    if path.len() >= 1 << 16 && path.len().is_power_of_two() { control.ask_for(8 * path.len() as u64) } else { Ok(()) }
}
