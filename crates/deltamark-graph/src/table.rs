//! The meaning of actions, for models that number them in order of discovery.
//!
//! In: for each action the bytes by which its system identifies it. Out: bytes, and the same from them.
//!
//! ```text
//! [ actions: 4 ] [ length: 4 | bytes ]… [ crc: 4 ]
//! ```

use crate::meta::{Cursor, FileError, damaged};

/// The table of these actions.
pub(crate) fn encode(actions: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend((actions.len() as u32).to_le_bytes());
    for action in actions {
        out.extend((action.len() as u32).to_le_bytes());
        out.extend(action);
    }
    out.extend(crc32fast::hash(&out).to_le_bytes());
    out
}

/// The table in these bytes, which hold nothing else.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<&[u8]>, FileError> {
    let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(|| damaged("its table of actions is too short"))?;
    if crc32fast::hash(body).to_le_bytes() != *sum {
        return Err(damaged("the checksum of its table of actions is wrong"));
    }
    let mut cursor = Cursor { bytes: body };
    let count = cursor.u32()?;
    let mut actions = Vec::new();
    for _ in 0..count {
        let length = cursor.u32()? as usize;
        actions.push(cursor.take(length)?);
    }
    if cursor.bytes.is_empty() { Ok(actions) } else { Err(damaged("its table of actions is too long")) }
}
