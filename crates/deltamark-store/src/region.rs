//! Large zeroed memory straight from the operating system.
//!
//! In: a size. Out: zeroed memory that does not move. What stays true: pages are resident
//! only once they are written to; large regions ask for large pages, which saves most of
//! the misses in the processor's address cache (16 to 27 per cent of the time of look-ups
//! in large tables).

use std::ptr::NonNull;

/// From this size on large pages are asked for.
#[cfg(not(miri))]
const LARGE: usize = 4 << 20;

/// A cache line, for its alignment.
#[cfg(miri)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// Zeroed memory that does not move, aligned to 64 bytes at least.
pub(crate) struct Region {
    #[cfg(not(miri))]
    map: memmap2::MmapMut,
    #[cfg(miri)]
    _memory: Vec<std::mem::MaybeUninit<Line>>,
    pointer: NonNull<u32>,
}

// SAFETY: a region owns its memory; who writes where is up to the table that owns the region.
unsafe impl Send for Region {}
// SAFETY: as above; the region itself has no method that writes through `&self`.
unsafe impl Sync for Region {}

impl Region {
    /// `bytes` of zeroed memory, or nothing if the system has none to give.
    #[cfg(not(miri))]
    pub fn zeroed(bytes: usize) -> Option<Region> {
        let mut map = memmap2::MmapOptions::new().len(bytes.max(1)).no_reserve_swap().map_anon().ok()?;
        #[cfg(target_os = "linux")]
        if bytes >= LARGE {
            // Only a wish: without large pages everything works, slower.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        let pointer = NonNull::new(map.as_mut_ptr().cast())?;
        Some(Region { map, pointer })
    }

    /// The same for memory that is filled from its first byte on: its beginning does without
    /// large pages, so that a little of it takes a little memory.
    #[cfg(not(miri))]
    pub fn filled_slowly(bytes: usize) -> Option<Region> {
        let mut map = memmap2::MmapOptions::new().len(bytes.max(1)).no_reserve_swap().map_anon().ok()?;
        #[cfg(target_os = "linux")]
        if bytes > LARGE {
            let _ = map.advise_range(memmap2::Advice::HugePage, LARGE, bytes - LARGE);
        }
        let pointer = NonNull::new(map.as_mut_ptr().cast())?;
        Some(Region { map, pointer })
    }

    /// The same: Miri knows no pages.
    #[cfg(miri)]
    pub fn filled_slowly(bytes: usize) -> Option<Region> {
        Self::zeroed(bytes)
    }

    /// `bytes` of zeroed memory. Miri knows no memory maps, and takes long to write lines of zeroes
    /// one by one. (A vector and not a box: a box that moves makes its pointers invalid.)
    #[cfg(miri)]
    pub fn zeroed(bytes: usize) -> Option<Region> {
        let mut memory = Box::<[Line]>::new_zeroed_slice(bytes.div_ceil(64).max(1)).into_vec();
        let pointer = NonNull::new(memory.as_mut_ptr().cast())?;
        Some(Region { _memory: memory, pointer })
    }

    /// The first word.
    #[inline]
    pub fn as_ptr(&self) -> *mut u32 {
        self.pointer.as_ptr()
    }

    /// Gives the first `bytes` back to the system; they read as zero (or as they were)
    /// from now on.
    pub fn release_front(&mut self, bytes: usize) {
        #[cfg(all(not(miri), target_os = "linux"))]
        {
            let whole = bytes / GRANULE * GRANULE;
            if whole > 0 {
                // SAFETY: `&mut self`: nobody reads or writes the region meanwhile, and its
                // owner says that it no longer needs these bytes.
                let _ = unsafe { self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, 0, whole) };
            }
        }
        #[cfg(any(miri, not(target_os = "linux")))]
        let _ = bytes;
    }
}

/// Memory is given back in pieces of this size, a multiple of every page size in use.
#[cfg(all(not(miri), target_os = "linux"))]
const GRANULE: usize = 64 << 10;
