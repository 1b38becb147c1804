//! Markings as bytes that mean the same in every layout.
//!
//! In: a packed marking, or bytes. Out: bytes, or the marking in the layout in use. What stays true: places that no
//! transition changes are not written, for the net says what they hold; a marking has one form.
//!
//! ```text
//! marking  [ marked places ] [ gap·2 ] or [ gap·2+1 | count ] …      varints
//! ```
//! Places are those that change, ascending; a gap is the number of empty ones since the last, and a count that is not
//! written is 1. A marked place of a safe net so takes a byte, and an empty one nothing.

use deltamark_core::varint::{self, Reader};
use deltamark_core::{Misread, Portable, Scratch, Slot};

use crate::NetSystem;

impl Portable for NetSystem {
    fn write_state(&self, scratch: &mut Scratch, state: &[Slot], out: &mut Vec<u8>) {
        let layout = &self.compiled_of(scratch).layout;
        let counts = layout.fields.iter().filter(|field| field.bits() > 0).map(|field| field.read(state) as u64);
        let marked: Vec<(u64, u64)> = (0..).zip(counts).filter(|&(_, count)| count > 0).collect();
        varint::write(marked.len() as u64, out);
        let mut next = 0;
        for (place, count) in marked {
            varint::write((place - next) << 1 | u64::from(count > 1), out);
            if count > 1 {
                varint::write(count, out);
            }
            next = place + 1;
        }
    }

    fn read_state(&self, scratch: &mut Scratch, bytes: &mut Reader<'_>, out: &mut Vec<Slot>) -> Result<(), Misread> {
        let compiled = self.compiled_of(scratch);
        let mut changing = (0u32..).zip(&compiled.layout.fields).filter(|(_, field)| field.bits() > 0);
        out.clear();
        out.resize(compiled.layout.slots, 0);
        let mut overflows = Vec::new();
        for _ in 0..bytes.number().ok_or(Misread::SHORT)? {
            let word = bytes.number().ok_or(Misread::SHORT)?;
            let count = match word & 1 {
                0 => 1,
                _ => bytes.number().ok_or(Misread::SHORT)?,
            };
            if count > i64::MAX as u64 || (count < 2 && word & 1 == 1) {
                return Err(Misread::Wrong("a place holds what no place can hold"));
            }
            let skipped = usize::try_from(word >> 1).map_err(|_| Misread::SHORT)?;
            let (place, field) = changing.nth(skipped).ok_or(Misread::Wrong("the net has no such place"))?;
            if count > field.mask() {
                overflows.push((place, count));
            } else {
                field.put(out, count);
            }
        }
        if overflows.is_empty() {
            return Ok(());
        }
        self.note(overflows);
        Err(Misread::Widen)
    }
}
