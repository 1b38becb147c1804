//! The file of a certificate.
//!
//! In: bytes, which may be arbitrary. Out: what they claim, or why they are no certificate. What stays true: reading
//! never leaves the bytes, and takes no more memory than a few times their length; what is claimed is not believed here.
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

/// What a certificate says of itself.
pub(crate) struct Head {
    pub language: String,
    /// The length of the model's text, and its hash.
    pub text: (u64, u64),
    pub options: Vec<(String, String)>,
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
    pub name: String,
    pub text: String,
    /// Expressions of which one is true where a run may end.
    pub ends: Vec<String>,
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

    fn text(&mut self) -> Result<String, String> {
        let length = self.number()?;
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| "it holds a text that is not UTF-8".into())
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
pub(crate) fn head(bytes: &mut Bytes<'_>) -> Result<Head, String> {
    let language = bytes.text()?;
    let length = bytes.number()?;
    let mut hash = [0; 8];
    hash.copy_from_slice(bytes.take(8)?);
    let mut options = Vec::new();
    for _ in 0..bytes.number()? {
        options.push((bytes.text()?, bytes.text()?));
    }
    Ok(Head { language, text: (length, u64::from_le_bytes(hash)), options, variables: bytes.number()? })
}

/// Reads the claims, to the end of the bytes. `state` is one of zeros, of the width of the model.
pub(crate) fn claims<'a>(bytes: &mut Bytes<'a>, state: &mut [i64]) -> Result<Vec<Claim<'a>>, String> {
    let mut claims = Vec::new();
    loop {
        match bytes.number()? {
            0 => break,
            1 => {}
            other => return Err(format!("it holds a claim of unknown kind {other}")),
        }
        let kind = match bytes.number()? {
            0 => Kind::DeadlockFree,
            1 => Kind::FaultFree,
            2 => Kind::Invariant,
            3 => Kind::Reachable,
            other => return Err(format!("it claims a property of unknown kind {other}")),
        };
        let (name, text) = (bytes.text()?, bytes.text()?);
        let mut ends = Vec::new();
        for _ in 0..bytes.number()? {
            ends.push(bytes.text()?);
        }
        let evidence = match bytes.number()? {
            0 => Evidence::States,
            ending @ (1 | 2) => {
                let states = bytes.number()?;
                let path = *bytes;
                for _ in 0..states {
                    if !bytes.next_state(state, |_| {})? {
                        return Err("a path in it ends early".into());
                    }
                }
                state.fill(0);
                Evidence::Path { states, fault: ending == 2, bytes: path }
            }
            other => return Err(format!("it holds evidence of unknown kind {other}")),
        };
        claims.push(Claim { kind, name, text, ends, evidence });
    }
    if bytes.0.is_empty() { Ok(claims) } else { Err("something follows after its end".into()) }
}
