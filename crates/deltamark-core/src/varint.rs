//! Numbers as bytes: varints (LEB128), seven bits a byte, lowest first; the eighth bit says that more follow.
//!
//! In: numbers, or bytes that may be arbitrary. Out: bytes, or numbers. Invariant: every number has one form, so
//! equal data have equal bytes; reading never reads beyond the end and never panics.

/// Appends a number.
#[inline]
pub fn write(mut number: u64, out: &mut Vec<u8>) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number: 0, -1, 1, -2 … as 0, 1, 2, 3 … (zigzag), so numbers near zero are short.
#[inline]
pub fn write_signed(number: i64, out: &mut Vec<u8>) {
    write((number << 1 ^ number >> 63) as u64, out);
}

/// Bytes that are read from the front.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether all has been read.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next byte; `None` at the end.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    /// The next `length` bytes; `None` if there are fewer.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    /// The next number; `None` if the bytes end before it does, or if they are not the one form of a number.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 127);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte < 128 {
                // A last byte of zero would be a second form.
                return (byte != 0 || shift == 0).then_some(number);
            }
            shift += 7;
            if shift > 63 {
                return None;
            }
        }
    }

    /// The next number, if it is at most `most`.
    #[inline]
    pub fn at_most(&mut self, most: u64) -> Option<u64> {
        self.number().filter(|&number| number <= most)
    }

    /// The next signed number.
    #[inline]
    pub fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let near = |number: u64| [number.wrapping_sub(1), number, number.wrapping_add(1)];
        let numbers: Vec<u64> = (0..64).flat_map(|bit| near(1 << bit)).chain([u64::MAX]).collect();
        let mut bytes = Vec::new();
        for &number in &numbers {
            write(number, &mut bytes);
            write_signed(number as i64, &mut bytes);
        }
        let mut reader = Reader::new(&bytes);
        for &number in &numbers {
            assert_eq!((reader.number(), reader.signed()), (Some(number), Some(number as i64)));
        }
        assert!(reader.is_empty() && reader.number().is_none());
        let mut short = Vec::new();
        write_signed(-64, &mut short);
        assert_eq!(short, [127]);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let cases: [&[u8]; 6] =
            [&[], &[128], &[128, 0], &[255; 10], &[128, 128, 128, 128, 128, 128, 128, 128, 128, 2], &[255; 9]];
        for bytes in cases {
            assert_eq!(Reader::new(bytes).number(), None, "{bytes:?}");
        }
        assert_eq!(Reader::new(&[5]).at_most(4), None);
        assert_eq!(Reader::new(&[1, 2]).take(3), None);
    }
}
