//! Large zeroed memory mapped from the operating system.
//!
//! In: a size. Out: zeroed memory that does not move. Pages are resident only once they are
//! written; large regions request huge pages, which avoids most TLB misses (16 to 27 per cent of
//! the time of look-ups in large tables).
//!
//! # Address space
//! Growing tables reserve addresses in chunks, much larger than what they fill at first: addresses
//! are free. If a process has few of them (`ulimit -v`), a chunk is a small part of its limit, see
//! [`chunk_bytes`].

use std::ptr::NonNull;
use std::sync::OnceLock;

/// From this size on large pages are asked for.
#[cfg(not(miri))]
const LARGE: usize = 4 << 20;

/// A cache line, for its alignment.
#[repr(C, align(64))]
struct CacheLine([u64; 8]);

/// The fewest bytes of a chunk.
const LEAST_CHUNK: usize = 256 << 10;
/// A chunk is at most this part of the addresses that the process may take.
const CHUNK_PART: u64 = 128;

/// The bytes of a chunk of addresses: `most`, a power of two, or less where the process may take few.
pub(crate) fn chunk_bytes(most: usize) -> usize {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    chunk_under(*LIMIT.get_or_init(address_limit), most)
}

fn chunk_under(limit: Option<u64>, most: usize) -> usize {
    let Some(limit) = limit else { return most };
    let part = usize::try_from(limit / CHUNK_PART).unwrap_or(usize::MAX).max(LEAST_CHUNK);
    most.min(1 << part.ilog2())
}

/// The bytes of address space that the process may take, where that is limited.
fn address_limit() -> Option<u64> {
    let limits = if cfg!(miri) { None } else { std::fs::read_to_string("/proc/self/limits").ok() };
    limits?
        .lines()
        .find_map(|line| line.strip_prefix("Max address space")?.split_ascii_whitespace().next()?.parse().ok())
}

/// Where the memory of a region comes from.
#[allow(dead_code, reason = "lines are held until they are dropped; not all systems take pages back early")]
enum Memory {
    /// Pages of its own.
    #[cfg(not(miri))]
    Pages(memmap2::MmapMut),
    /// The allocator. (A vector and not a box: a box that moves makes its pointers invalid.)
    Lines(Vec<std::mem::MaybeUninit<CacheLine>>),
}

/// Zeroed memory that does not move, aligned to 64 bytes at least.
pub(crate) struct Region {
    memory: Memory,
    pointer: NonNull<u32>,
}

// SAFETY: a region owns its memory; who writes where is up to the table that owns the region.
unsafe impl Send for Region {}
// SAFETY: as above; the region itself has no method that writes through `&self`.
unsafe impl Sync for Region {}

#[cfg(all(test, not(miri)))]
thread_local! {
    /// How many regions this thread had mapped.
    pub(crate) static MAPPED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(not(miri))]
fn mapped(bytes: usize) -> Option<memmap2::MmapMut> {
    #[cfg(test)]
    MAPPED.with(|count| count.set(count.get() + 1));
    memmap2::MmapOptions::new().len(bytes.max(1)).no_reserve_swap().map_anon().ok()
}

impl Region {
    /// `bytes` of zeroed memory, or nothing if the system has none to give.
    #[cfg(not(miri))]
    pub fn zeroed(bytes: usize) -> Option<Region> {
        let mut map = mapped(bytes)?;
        #[cfg(target_os = "linux")]
        if bytes >= LARGE {
            // Only a wish: without large pages everything works, slower.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        let pointer = NonNull::new(map.as_mut_ptr().cast())?;
        Some(Region { memory: Memory::Pages(map), pointer })
    }

    /// The same for memory that is filled from its first byte on: its beginning does without
    /// large pages, so that a little of it takes a little memory.
    #[cfg(not(miri))]
    pub fn filled_slowly(bytes: usize) -> Option<Region> {
        let mut map = mapped(bytes)?;
        #[cfg(target_os = "linux")]
        if bytes > LARGE {
            let _ = map.advise_range(memmap2::Advice::HugePage, LARGE, bytes - LARGE);
        }
        let pointer = NonNull::new(map.as_mut_ptr().cast())?;
        Some(Region { memory: Memory::Pages(map), pointer })
    }

    /// The same: Miri knows no pages.
    #[cfg(miri)]
    pub fn filled_slowly(bytes: usize) -> Option<Region> {
        Self::zeroed(bytes)
    }

    /// `bytes` of zeroed memory. Miri knows no memory maps.
    #[cfg(miri)]
    pub fn zeroed(bytes: usize) -> Option<Region> {
        Some(Self::lines(bytes))
    }

    /// A little zeroed memory that cannot be done without: of the allocator, if the system has no
    /// page to give. What is to be done when that has none either is up to the allocator; that of the command
    /// keeps something back for it.
    pub fn indispensable(bytes: usize) -> Region {
        Self::zeroed(bytes).unwrap_or_else(|| Self::lines(bytes))
    }

    fn lines(bytes: usize) -> Region {
        let mut memory = Box::<[CacheLine]>::new_zeroed_slice(bytes.div_ceil(size_of::<CacheLine>()).max(1)).into_vec();
        let pointer = NonNull::new(memory.as_mut_ptr().cast()).expect("a vector's pointer is not null");
        Region { memory: Memory::Lines(memory), pointer }
    }

    /// The first word.
    #[inline]
    pub fn as_ptr(&self) -> *mut u32 {
        self.pointer.as_ptr()
    }

    /// Has everything from this byte on read as zero, and gives whole pages of it back to the system.
    pub fn clear_from(&mut self, start: usize) {
        let kept = self.give_back_from(start.next_multiple_of(GRANULE));
        if start < kept {
            // SAFETY: the bytes are within the region, and `&mut self`: nobody reads or writes them meanwhile.
            unsafe { self.as_ptr().cast::<u8>().add(start).write_bytes(0, kept - start) };
        }
    }

    /// Gives pages from this byte on back, if there are any; returns the end of those that are kept.
    fn give_back_from(&mut self, start: usize) -> usize {
        let end = match &self.memory {
            #[cfg(not(miri))]
            Memory::Pages(map) => map.len(),
            Memory::Lines(lines) => size_of_val(&**lines),
        };
        #[cfg(all(not(miri), target_os = "linux"))]
        if let Memory::Pages(map) = &self.memory
            && start < end
        {
            // SAFETY: `&mut self`: nobody reads or writes the region meanwhile, and its owner says that these bytes are to be
            // zero, as pages of a private map are that were given back.
            let given = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start) };
            if given.is_ok() {
                return start;
            }
        }
        let _ = start;
        end
    }

    /// Gives the first `bytes` back to the system; they read as zero (or as they were)
    /// from now on.
    pub fn release_front(&mut self, bytes: usize) {
        #[cfg(all(not(miri), target_os = "linux"))]
        {
            let whole = bytes / GRANULE * GRANULE;
            if let Memory::Pages(map) = &self.memory
                && whole > 0
            {
                // SAFETY: `&mut self`: nobody reads or writes the region meanwhile, and its
                // owner says that it no longer needs these bytes.
                let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, 0, whole) };
            }
        }
        #[cfg(any(miri, not(target_os = "linux")))]
        let _ = bytes;
    }
}

/// Memory is given back in pieces of this size, a multiple of every page size in use.
#[cfg(all(not(miri), target_os = "linux"))]
const GRANULE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_smaller_where_addresses_are_few() {
        const MIB: u64 = 1 << 20;
        let cases = [
            (None, 64 * MIB, 64 * MIB),
            (Some(u64::MAX), 64 * MIB, 64 * MIB),
            (Some(8192 * MIB), 64 * MIB, 64 * MIB),
            (Some(8191 * MIB), 64 * MIB, 32 * MIB),
            (Some(8191 * MIB), 16 * MIB, 16 * MIB),
            (Some(90 * MIB), 64 * MIB, MIB / 2),
            (Some(0), 64 * MIB, MIB / 4),
        ];
        for (limit, most, expected) in cases {
            assert_eq!(chunk_under(limit, most as usize), expected as usize, "{limit:?} {most}");
        }
    }

    #[test]
    fn memory_of_the_allocator_is_as_good() {
        let mut region = Region::lines(100);
        // SAFETY: the region has two lines, and nobody else knows of them.
        let words = unsafe { std::slice::from_raw_parts(region.as_ptr(), 32) };
        assert!(words.iter().all(|&word| word == 0) && region.as_ptr().addr().is_multiple_of(64));
        region.release_front(100);
        assert_eq!(Region::indispensable(1).as_ptr().addr() % 64, 0);
    }
}
