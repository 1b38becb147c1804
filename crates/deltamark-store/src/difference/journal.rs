//! Numbered records of some bytes each, append-only.
//!
//! In: records. Out: record number `i`, for about one and a half bytes per record beyond its own.
//! Invariant: a record never moves, and growing copies nothing.
//!
//! # Layout in memory
//! ```text
//! places   where | base | 22 lengths            5 + 5 + 22 bytes for 22 records
//!            │
//! records    ▼[ record ][ record ][ record ] …  contiguous
//! long     [ length | record ] …                those of more than 120 bytes; a record of
//!                                               eight bytes says where
//! ```
//! A length has seven bits; the eighth is a mark of the caller's.
//!
//! The position of a record is that of the first of its share plus the lengths of those in between.
//! The base is a number chosen by the caller, the same for all of a share.

use crate::difference::patch::{SLACK, read_number, write_number};
use crate::memory::region::{Region, chunk_bytes};
use deltamark_core::Budget;

/// Records that share a place.
const SHARE: u64 = 22;
/// Longer records are elsewhere.
const LONGEST: usize = 120;
/// The bit of a length that is the mark.
const MARK: u8 = 128;
/// The first byte of a record that is elsewhere. Other records do not begin with it.
pub(crate) const ELSEWHERE: u8 = 1;
/// The bytes of a place.
const PLACE: u64 = 32;
/// Where its lengths begin.
const LENGTHS: usize = 10;

/// A chunk has two to the power of this many bytes.
#[cfg(not(miri))]
const CHUNK: u32 = 26;
#[cfg(miri)]
const CHUNK: u32 = 13;

/// Bytes that never move, in chunks whose pages are resident once they are written.
struct Log {
    /// A chunk has two to the power of this many bytes.
    shift: u32,
    chunks: Vec<Region>,
    /// Where the next byte goes.
    end: u64,
    /// Bytes that the budget granted.
    granted: u64,
}

impl Log {
    fn new(shift: u32) -> Self {
        Log { shift, chunks: Vec::new(), end: 0, granted: 0 }
    }

    /// The bytes of a chunk.
    #[inline(always)]
    fn chunk(&self) -> u64 {
        1 << self.shift
    }

    /// The number of the chunk of a byte, and its position there.
    #[inline(always)]
    fn split(&self, at: u64) -> (usize, usize) {
        ((at >> self.shift) as usize, (at & (self.chunk() - 1)) as usize)
    }

    /// Makes sure that `bytes` can be appended in one piece with room for `room` behind `end`
    /// in the same chunk; returns whether the budget and the system have the memory.
    #[must_use]
    fn reserve(&mut self, bytes: u64, room: u64, budget: &Budget) -> bool {
        let left = self.chunk() - self.split(self.end).1 as u64;
        let start = if left < room + SLACK as u64 { self.end + left } else { self.end };
        let wanted = start + bytes;
        if wanted <= self.granted && self.split(start).0 < self.chunks.len() {
            self.end = start;
            return true;
        }
        self.extend(start, wanted, room, budget)
    }

    #[cold]
    fn extend(&mut self, start: u64, wanted: u64, room: u64, budget: &Budget) -> bool {
        if room + SLACK as u64 > self.chunk() {
            return false;
        }
        if wanted > self.granted {
            // In steps of a 32nd while there is plenty, by the byte when there is not.
            let missing = wanted - self.granted;
            let step = (wanted / 32).clamp(1 << 10, 256 << 10);
            let asked = [missing.next_multiple_of(step), missing].into_iter().find(|&bytes| budget.request(bytes));
            let Some(asked) = asked else { return false };
            self.granted += asked;
        }
        while self.chunks.len() <= self.split(start).0 {
            let Some(region) = Region::zeroed(self.chunk() as usize) else { return false };
            self.chunks.push(region);
        }
        self.end = start;
        true
    }

    /// The bytes from `at` on, `len` and [`SLACK`] more.
    #[inline(always)]
    fn bytes(&self, at: u64, len: usize) -> &[u8] {
        let (chunk, within) = self.split(at);
        assert!(within + len + SLACK <= self.chunk() as usize, "bytes of one chunk");
        let chunk = &self.chunks[chunk];
        // SAFETY: a region has as many bytes as a chunk, all of them initialised with zero or
        // written since; `&self` means that nobody writes now.
        unsafe { std::slice::from_raw_parts(chunk.as_ptr().cast::<u8>().add(within), len + SLACK) }
    }

    /// The address of a byte, to prefetch it.
    #[inline(always)]
    fn address(&self, at: u64) -> *const u8 {
        let (chunk, within) = self.split(at);
        match self.chunks.get(chunk) {
            Some(chunk) => chunk.as_ptr().cast::<u8>().wrapping_add(within),
            None => std::ptr::null(),
        }
    }

    /// Writes bytes within one chunk, below what was [reserved](Self::reserve).
    #[inline(always)]
    fn write(&mut self, at: u64, bytes: &[u8]) {
        let (chunk, within) = self.split(at);
        assert!(within + bytes.len() <= self.chunk() as usize, "bytes of one chunk");
        let chunk = &self.chunks[chunk];
        // SAFETY: the bytes lie within the region, and `&mut self` means that nobody else reads
        // or writes.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), chunk.as_ptr().cast::<u8>().add(within), bytes.len());
        }
    }
}

/// Where a record is, and the base of its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournalSpot {
    at: u64,
    len: usize,
    marked: bool,
    /// The number that belongs to the share.
    pub base: u64,
}

/// A record, and [`SLACK`] bytes behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    /// Its bytes and the slack.
    pub bytes: &'a [u8],
    /// How many of the bytes are its own.
    pub len: usize,
    /// The mark it was given.
    pub marked: bool,
    /// The number that belongs to the share.
    pub base: u64,
}

/// Numbered records.
pub(crate) struct Journal {
    places: Log,
    records: Log,
    long: Log,
    len: u64,
}

impl Journal {
    /// No records.
    pub fn new() -> Self {
        // A record may be as long as the longest state of four bytes a slot.
        let chunk = |shift: u32| chunk_bytes(1 << shift).ilog2();
        let log = |shift| Log::new(chunk(shift));
        Journal { places: log(CHUNK), records: log(CHUNK), long: log(CHUNK + 2), len: 0 }
    }

    /// How many records there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The base of the record that comes next, unless it is the first of its share and may choose.
    #[inline]
    pub fn base(&self) -> Option<u64> {
        (!self.len.is_multiple_of(SHARE)).then(|| self.spot(self.len).base)
    }

    /// Makes sure that a record of this many bytes can be [pushed](Self::push). `false` means
    /// that the budget has no room, and nothing has changed.
    #[must_use]
    #[inline]
    pub fn reserve(&mut self, bytes: usize, budget: &Budget) -> bool {
        let first = self.len.is_multiple_of(SHARE);
        let mut short = bytes;
        if bytes > LONGEST {
            short = 8;
            let bytes = bytes as u64 + 5;
            if !self.long.reserve(bytes, bytes, budget) {
                return false;
            }
        }
        // Places have 40 bits for where records are.
        if self.records.end >> 39 != 0 {
            return false;
        }
        let together = if first { SHARE * LONGEST as u64 } else { 0 };
        // Places fill a chunk to its end: what leads to them is their number.
        let place = PLACE - SLACK as u64;
        (!first || self.places.reserve(PLACE, place, budget)) && self.records.reserve(short as u64, together, budget)
    }

    /// Appends a record, for which room was [reserved](Self::reserve). The first of a share
    /// settles its base. A record of more than 120 bytes has no mark; none begins with
    /// [`ELSEWHERE`] or is empty.
    #[inline]
    pub fn push(&mut self, record: &[u8], marked: bool, base: u64) {
        debug_assert!(!record.is_empty() && record[0] != ELSEWHERE);
        let place = self.len / SHARE * PLACE;
        if self.len.is_multiple_of(SHARE) {
            let mut bytes = [0; PLACE as usize];
            bytes[..8].copy_from_slice(&self.records.end.to_le_bytes());
            bytes[5..13].copy_from_slice(&base.to_le_bytes());
            debug_assert!(self.records.end | base < 1 << 40);
            self.places.write(place, &bytes);
            self.places.end = place + PLACE;
        }
        let mut short = record;
        let stub: [u8; 8];
        if record.len() > LONGEST {
            debug_assert!(!marked);
            stub = (self.long.end << 8 | u64::from(ELSEWHERE)).to_le_bytes();
            short = &stub;
            let mut length = Vec::with_capacity(5);
            write_number(record.len() as u64, &mut length);
            self.long.write(self.long.end, &length);
            self.long.write(self.long.end + length.len() as u64, record);
            self.long.end += (length.len() + record.len()) as u64;
        }
        self.records.write(self.records.end, short);
        self.records.end += short.len() as u64;
        self.places
            .write(place + LENGTHS as u64 + self.len % SHARE, &[short.len() as u8 | if marked { MARK } else { 0 }]);
        self.len += 1;
    }

    /// Asks for the place of a record to be fetched.
    #[inline(always)]
    pub fn place_address(&self, number: u64) -> *const u8 {
        self.places.address(number / SHARE * PLACE)
    }

    /// The address of the record itself, to prefetch it.
    #[inline(always)]
    pub fn record_address(&self, spot: JournalSpot) -> *const u8 {
        self.records.address(spot.at)
    }

    /// Where a record is.
    #[inline(always)]
    pub fn spot(&self, number: u64) -> JournalSpot {
        let place = self.places.bytes(number / SHARE * PLACE, PLACE as usize - SLACK);
        let word = |at: usize| u64::from_le_bytes(place[at..at + 8].try_into().expect("eight bytes"));
        let before = (number % SHARE) as u32;
        // The sum of the first `count` of eight bytes.
        let sum = |at: usize, count: u32| {
            let lengths = word(at) & 0x7f7f_7f7f_7f7f_7f7f;
            let lengths = if count >= 8 { lengths } else { lengths & ((1 << (8 * count)) - 1) };
            let pairs = (lengths & 0x00ff_00ff_00ff_00ff) + (lengths >> 8 & 0x00ff_00ff_00ff_00ff);
            pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48
        };
        let lengths = sum(LENGTHS, before)
            + sum(LENGTHS + 8, before.saturating_sub(8))
            + sum(LENGTHS + 14, before.saturating_sub(16) + 2)
            - u64::from(place[LENGTHS + 14] & !MARK)
            - u64::from(place[LENGTHS + 15] & !MARK);
        let low = (1 << 40) - 1;
        let length = place[LENGTHS + before as usize];
        JournalSpot {
            at: (word(0) & low) + lengths,
            len: usize::from(length & !MARK),
            marked: length & MARK != 0,
            base: word(5) & low,
        }
    }

    /// The record at a spot.
    #[inline(always)]
    pub fn at(&self, spot: JournalSpot) -> Record<'_> {
        let JournalSpot { at, len, marked, base } = spot;
        let bytes = self.records.bytes(at, len);
        if bytes[0] != ELSEWHERE {
            return Record { bytes, len, marked, base };
        }
        self.elsewhere(bytes, base)
    }

    #[cold]
    fn elsewhere(&self, stub: &[u8], base: u64) -> Record<'_> {
        let at = u64::from_le_bytes(stub[..8].try_into().expect("eight bytes")) >> 8;
        let (len, skip) = read_number(self.long.bytes(at, 5));
        let bytes = self.long.bytes(at + skip as u64, len as usize);
        Record { bytes, len: len as usize, marked: false, base }
    }

    /// Record number `number`.
    #[inline(always)]
    pub fn get(&self, number: u64) -> Record<'_> {
        debug_assert!(number < self.len);
        self.at(self.spot(number))
    }

    /// The bytes of records, of what leads to them, and of what is granted and not in use.
    pub fn bytes(&self) -> [u64; 3] {
        let used = self.records.end + self.long.end;
        [used, self.places.end, self.granted() - used - self.places.end]
    }

    /// The bytes that the budget granted.
    pub fn granted(&self) -> u64 {
        self.places.granted + self.records.granted + self.long.granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_testkit::Rng;

    #[test]
    fn records_of_all_lengths_come_back_across_chunks() {
        let budget = Budget::unlimited();
        let mut journal = Journal::new();
        journal.records.shift = 13;
        journal.places.shift = 13;
        journal.long.shift = 15;
        let mut rng = Rng::new(1);
        let marked = |record: &[u8]| record.len() <= LONGEST && record[0] & 4 != 0;
        let mut written: Vec<(Vec<u8>, u64)> = Vec::new();
        // Places fill more than a chunk.
        for number in 0..if cfg!(miri) { 400 } else { 12_000 } {
            let longest = [4, 30, LONGEST, 2000][rng.below(4)];
            let mut record: Vec<u8> = (0..1 + rng.below(longest)).map(|_| rng.number() as u8).collect();
            record[0] |= 2;
            let base = if number % SHARE == 0 { rng.number() >> 24 } else { written[written.len() - 1].1 };
            assert_eq!(journal.base(), (number % SHARE != 0).then_some(base));
            assert!(journal.reserve(record.len(), &budget));
            journal.push(&record, marked(&record), base);
            written.push((record, base));
        }
        for (number, (record, base)) in written.iter().enumerate() {
            let found = journal.get(number as u64);
            assert_eq!((&found.bytes[..found.len], found.base), (&record[..], *base), "{number}");
            assert_eq!(found.marked, marked(record));
        }
        assert_eq!(journal.bytes().iter().sum::<u64>(), budget.used());
        assert_eq!(journal.granted(), budget.used());
    }

    #[test]
    fn what_the_budget_refuses_is_not_taken() {
        let budget = Budget::new(200);
        let mut journal = Journal::new();
        let mut pushed = 0;
        while journal.reserve(9, &budget) {
            journal.push(&[3; 9], true, 0);
            pushed += 1;
        }
        assert_eq!((pushed, journal.granted()), (18, budget.used()));
        assert!(!journal.reserve(1 << 40, &Budget::unlimited()));
    }
}
