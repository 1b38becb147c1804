//! The allocator of the command: the system's, with a reserve for when memory is exhausted.
//!
//! In: requests to the system's allocator. Out: memory, always, unless it is [optional](is_optional). What
//! stays true: a failed allocation never ends the process without a message. The first failure releases a
//! reserve and is retried; budgets are notified ([`run_out`]), so that the search ends within a block or so,
//! and the rest of the reserve is enough for its report. If even that is not enough, the process reports it
//! in a line and ends with the exit code for "no answer".
//!
//! Whatever grows with the model or the run is requested from a budget before it is allocated, and most runs
//! end there. This is for what a budget cannot know: the limit of `ulimit -v`, say, memory taken by another
//! process, or countless small allocations.
//!
//! Alternatives that were tried: mimalloc was no faster but kept 8 to 10 MiB more resident, in large pages
//! that no budget can count.

use crate::exit::{Exit, Failure};
use crate::units::show_bytes;
use deltamark::memory::{AddressSpace, is_optional, run_out};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};

/// The size of the reserve, if there is plenty; pages that are not written to are not resident.
const MOST: usize = 16 << 20;
/// The minimum size of the reserve.
const LEAST: usize = 1 << 20;

/// The system's allocator, and the reserve.
pub struct Reserving {
    reserve: AtomicPtr<u8>,
    size: AtomicUsize,
}

impl Reserving {
    /// Without a reserve yet.
    pub const fn new() -> Self {
        Reserving { reserve: AtomicPtr::new(null_mut()), size: AtomicUsize::new(0) }
    }

    /// Allocates the reserve: a quarter of the remaining address space, if that is limited.
    pub fn keep_back(&self) {
        map_large();
        let space = AddressSpace::of_this_process();
        if space.is_some() {
            one_arena();
        }
        let left = space.map_or(usize::MAX, |space| usize::try_from(space.left()).unwrap_or(usize::MAX));
        let size = (left / 4).clamp(LEAST, MOST);
        // SAFETY: the size is not zero.
        let reserve = unsafe { System.alloc(Self::layout(size)) };
        self.size.store(size, SeqCst);
        self.reserve.store(reserve, SeqCst);
    }

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 16).expect("a few megabytes, aligned as everything is")
    }

    /// Releases the reserve; returns whether it was still there.
    fn give_back(&self) -> bool {
        let reserve = self.reserve.swap(null_mut(), SeqCst);
        if !reserve.is_null() {
            // SAFETY: `keep_back` took it from this allocator with this layout, and the exchange above says that nobody
            // else gives it back.
            unsafe { System.dealloc(reserve, Self::layout(self.size.load(SeqCst))) };
        }
        !reserve.is_null()
    }

    /// Calls `take`, again after releasing the reserve if it fails.
    #[inline(always)]
    fn insist(&self, size: usize, take: impl Fn() -> *mut u8) -> *mut u8 {
        let taken = take();
        if taken.is_null() { self.insist_without(size, &take) } else { taken }
    }

    #[cold]
    #[inline(never)]
    fn insist_without(&self, size: usize, take: &dyn Fn() -> *mut u8) -> *mut u8 {
        if is_optional() {
            return null_mut();
        }
        run_out();
        loop {
            let given_back = self.give_back();
            let taken = take();
            if !taken.is_null() {
                return taken;
            }
            if !given_back {
                end(size);
            }
        }
    }
}

// SAFETY: memory comes from the system's allocator and goes back there, each with the layout it was asked for with; a call that
// fails is repeated with the same arguments, which it has not touched.
unsafe impl GlobalAlloc for Reserving {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.insist(layout.size(), || unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.insist(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise; what could not be moved is where it was.
        self.insist(size, || unsafe { System.realloc(memory, layout, size) })
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Why the process cannot start, if the remaining address space does not suffice for the signal thread and
/// the reserve. A thread that finds no room for the stack of its signal handler would abort the process.
pub fn cramped() -> Option<Failure> {
    const NEEDED: u64 = 4 << 20;
    let space = AddressSpace::of_this_process().filter(|space| space.left() < NEEDED)?;
    let failure = Failure::new(format!(
        "an address space of {} leaves no room to run: {} are in use before anything is read",
        show_bytes(space.limit),
        show_bytes(space.mapped)
    ));
    // Enough to search a small model.
    let enough = (space.mapped + 3 * NEEDED).div_ceil(1 << 20) << 10;
    Some(failure.help(format!("give more, `ulimit -v {enough}` at the least")))
}

/// Ends the process: without memory for `size` bytes nothing else can be done.
#[cold]
fn end(size: usize) -> ! {
    // Nothing here allocates: the line is assembled on the stack, and standard error is unbuffered.
    let mut line = [0; 160];
    let room = line.len();
    let mut rest = &mut line[..];
    let _ = writeln!(
        rest,
        "error: the system has no memory for {size} bytes more, not even to say how far the run has come"
    );
    let left = rest.len();
    let _ = std::io::stderr().write_all(&line[..room - left]);
    leave(Exit::NoAnswer.number().into())
}

/// Ends the process at once: other threads may be in any state.
#[cfg(unix)]
fn leave(code: i32) -> ! {
    unsafe extern "C" {
        fn _exit(code: i32) -> !;
    }
    // SAFETY: the function of the C library that ends the process and touches nothing of it.
    unsafe { _exit(code) }
}

#[cfg(not(unix))]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}

/// Makes all threads share one heap: glibc would take 64 MiB of address space for that of every other thread,
/// and free memory in one is of no use to the others. Eight threads under 18 MiB held 3 to 5 MiB more with
/// heaps of their own.
pub fn one_arena() {
    const M_ARENA_MAX: i32 = -8;
    set(M_ARENA_MAX, 1);
}

/// Makes glibc map large allocations separately: they grow in place, and are released when they are dropped.
/// By default glibc puts allocations of up to 32 MiB into the heap once one of that size was freed; there a
/// vector that grows causes fragmentation, which no budget counts. A DVE model of 10,000 processes, two
/// threads and a batch of 50 MiB for each, held 5 to 9 MiB more.
fn map_large() {
    const M_MMAP_THRESHOLD: i32 = -3;
    const LARGE: i32 = 1 << 20;
    set(M_MMAP_THRESHOLD, LARGE);
}

#[cfg(target_env = "gnu")]
fn set(parameter: i32, value: i32) {
    unsafe extern "C" {
        fn mallopt(parameter: i32, value: i32) -> i32;
    }
    // SAFETY: a function of glibc that takes two numbers, whatever else the process does.
    unsafe { mallopt(parameter, value) };
}

#[cfg(not(target_env = "gnu"))]
fn set(_: i32, _: i32) {}
