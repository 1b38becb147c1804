//! The file of a certificate.
//!
//! In: bytes, which may be arbitrary. Out: what they claim, or why they are no certificate. What stays true: reading
//! never leaves the bytes; there are no more texts than a fixed number, of no more bytes than a fixed number, and a line
//! that shows one shows nothing else; what is claimed is not believed here.
//!
//! ```text
//! DMCERT 0 VERSION        8 bytes
//! language, length and hash of the text of the model, options (name, value)…, number of variables
//! states                  each: number of changes + 1, changes (gap, difference)… against the state before; then 0
//! claims                  each: 1, kind, name, text, ends…, evidence; then 0
//! CRC-32                  4 bytes, of all bytes before
//! ```
//! Numbers are varints (LEB128), differences zigzag; a text is its length and its bytes. The first state differs from
//! one of zeros. Evidence is 0: the states; or 1 and 2: a path that ends in a state, in a step that is a fault; the number
//! of its states and its states follow.

/// How every certificate begins.
pub const MAGIC: &[u8; 7] = b"DMCERT\0";
/// The version of the format.
pub const VERSION: u8 = 1;
/// The most bytes that the names and texts of all claims have together.
const MOST_BYTES: usize = 1 << 20;
/// The most claims, and expressions of where a run may end, together.
const MOST_CLAIMS: usize = 10_000;
/// The most bytes that all texts of the head have together, and the most options.
const MOST_OF_HEAD: (usize, u64) = (1 << 10, 16);

/// What a certificate says of itself.
pub(crate) struct Head<'a> {
    pub language: &'a str,
    /// The length of the model's text, and its hash.
    pub text: (u64, u64),
    pub options: Vec<(&'a str, &'a str)>,
    pub variables: u64,
}

/// What is claimed of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    DeadlockFree,
    FaultFree,
    Invariant,
    Reachable,
}

/// What a claim rests on.
pub(crate) enum Evidence<'a> {
    /// All states of the set.
    States,
    /// A path, and whether it ends in a step that is a fault; its states are still to be read.
    Path { states: u64, fault: bool, bytes: Bytes<'a> },
}

/// A claim.
pub(crate) struct Claim<'a> {
    pub kind: Kind,
    pub name: &'a str,
    pub text: &'a str,
    /// Expressions of which one is true where a run may end.
    pub ends: Vec<&'a str>,
    pub evidence: Evidence<'a>,
}

/// Bytes that are read from the front.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a>(pub &'a [u8]);

const SHORT: &str = "it ends early";

impl<'a> Bytes<'a> {
    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let (taken, rest) =
            usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length)).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn number(&mut self) -> Result<u64, String> {
        let mut value = 0u64;
        for place in 0..10 {
            let byte = self.take(1)?[0];
            let bits = u64::from(byte & 0x7f);
            if place == 9 && bits > 1 {
                break;
            }
            value |= bits << (7 * place);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("it holds a number of more than 64 bits".into())
    }

    /// A text that can be shown on a line, of at most `left` bytes, which become fewer.
    fn text(&mut self, left: &mut usize) -> Result<&'a str, String> {
        let length = self.number()?;
        let taken = self.take(length)?;
        *left = left.checked_sub(taken.len()).ok_or("its names and texts have more bytes than are read (1 MiB)")?;
        let text = std::str::from_utf8(taken).map_err(|_| "it holds a text that is not UTF-8")?;
        match text.chars().find(|&c| disguises(c)) {
            None => Ok(text),
            Some(c) => {
                Err(format!("it holds a name or a text with U+{:04X}, which can disguise what is shown", c as u32))
            }
        }
    }

    /// Changes a state to the next one, and calls `see` with each value that it changed. `false` at the end of the states.
    pub fn next_state(&mut self, state: &mut [i64], mut see: impl FnMut(i64)) -> Result<bool, String> {
        let Some(changes) = self.number()?.checked_sub(1) else { return Ok(false) };
        let mut cell = 0u64;
        for _ in 0..changes {
            cell = cell.checked_add(self.number()?).ok_or("it names a variable that is not there")?;
            let place = usize::try_from(cell).ok().and_then(|cell| state.get_mut(cell));
            let value = place.ok_or("it names a variable that is not there")?;
            let word = self.number()?;
            let difference = (word >> 1) as i64 ^ -((word & 1) as i64);
            *value = value.checked_add(difference).ok_or("it holds a value of more than 64 bits")?;
            see(*value);
            cell += 1;
        }
        Ok(true)
    }
}

/// Whether a character can make a terminal show something else than a text: one that controls, parts lines, or turns the
/// direction of writing.
pub(crate) fn disguises(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// The body of a certificate, if its checksum is right.
pub(crate) fn body(file: &[u8]) -> Result<Bytes<'_>, Unread> {
    let Some(rest) = file.strip_prefix(MAGIC) else { return Err(Unread::Other("it does not begin as one".into())) };
    match rest.first() {
        Some(&VERSION) => {}
        Some(version) => return Err(Unread::Other(format!("it is of version {version}, and {VERSION} is read"))),
        None => return Err(Unread::Damaged(SHORT.into())),
    }
    let Some((covered, checksum)) = file.split_last_chunk::<4>().filter(|(covered, _)| covered.len() > MAGIC.len())
    else {
        return Err(Unread::Damaged(SHORT.into()));
    };
    if crc32fast::hash(covered) != u32::from_le_bytes(*checksum) {
        return Err(Unread::Damaged("its checksum is wrong".into()));
    }
    Ok(Bytes(&covered[MAGIC.len() + 1..]))
}

/// Why a file is not read as a certificate.
pub(crate) enum Unread {
    /// It is something else.
    Other(String),
    /// It was one.
    Damaged(String),
}

/// Reads the head.
pub(crate) fn head<'a>(bytes: &mut Bytes<'a>) -> Result<Head<'a>, String> {
    let (mut left, most) = MOST_OF_HEAD;
    let language = bytes.text(&mut left)?;
    let length = bytes.number()?;
    let mut hash = [0; 8];
    hash.copy_from_slice(bytes.take(8)?);
    let mut options = Vec::new();
    let count = bytes.number()?;
    if count > most {
        return Err(format!("it names more options than are read ({most})"));
    }
    for _ in 0..count {
        options.push((bytes.text(&mut left)?, bytes.text(&mut left)?));
    }
    Ok(Head { language, text: (length, u64::from_le_bytes(hash)), options, variables: bytes.number()? })
}

/// Reads the claims, to the end of the bytes. `state` is one of zeros, of the width of the model. `ask` is called often,
/// and what it gives ends it.
pub(crate) fn claims<'a, E>(
    bytes: &mut Bytes<'a>,
    state: &mut [i64],
    wrong: impl Fn(String) -> E,
    ask: impl Fn() -> Result<(), E>,
) -> Result<Vec<Claim<'a>>, E> {
    let mut claims = Vec::new();
    let (mut left, mut count) = (MOST_BYTES, 0);
    while let Some((claim, states)) = claim(bytes, &mut left, &mut count).map_err(&wrong)? {
        for number in 0..states {
            if number.is_multiple_of(256) {
                ask()?;
            }
            if !bytes.next_state(state, |_| {}).map_err(&wrong)? {
                return Err(wrong("a path in it ends early".into()));
            }
        }
        state.fill(0);
        claims.push(claim);
        ask()?;
    }
    if bytes.0.is_empty() { Ok(claims) } else { Err(wrong("something follows after its end".into())) }
}

/// Reads a claim up to the states of its path, and their number.
fn claim<'a>(bytes: &mut Bytes<'a>, left: &mut usize, count: &mut usize) -> Result<Option<(Claim<'a>, u64)>, String> {
    let mut another = || {
        *count += 1;
        if *count > MOST_CLAIMS { Err(format!("it holds more claims than are read ({MOST_CLAIMS})")) } else { Ok(()) }
    };
    match bytes.number()? {
        0 => return Ok(None),
        1 => another()?,
        other => return Err(format!("it holds a claim of unknown kind {other}")),
    }
    let kind = match bytes.number()? {
        0 => Kind::DeadlockFree,
        1 => Kind::FaultFree,
        2 => Kind::Invariant,
        3 => Kind::Reachable,
        other => return Err(format!("it claims a property of unknown kind {other}")),
    };
    let (name, text) = (bytes.text(left)?, bytes.text(left)?);
    let mut ends = Vec::new();
    for _ in 0..bytes.number()? {
        another()?;
        ends.push(bytes.text(left)?);
    }
    let (evidence, states) = match bytes.number()? {
        0 => (Evidence::States, 0),
        ending @ (1 | 2) => {
            let states = bytes.number()?;
            (Evidence::Path { states, fault: ending == 2, bytes: *bytes }, states)
        }
        other => return Err(format!("it holds evidence of unknown kind {other}")),
    };
    Ok(Some((Claim { kind, name, text, ends, evidence }, states)))
}
