//! Buckets of an index: 16 entries of 32 bits, one cache line, compared at once.
//!
//! In: a bucket and a tag. Out: which entries have the tag. Invariant: entries of a bucket are
//! filled in order and never cleared, so the empty ones are at its end.
//!
//! The instructions are selected at run time, once per batch: AVX-512 or AVX2 if the processor has
//! them, SSE2 on every other x86-64, plain loads elsewhere (and under Miri, which then sees only
//! atomic accesses).

use std::sync::atomic::AtomicU32;
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
use std::sync::atomic::Ordering::Acquire;

/// Entries in a bucket.
pub(crate) const LANES: usize = 16;

/// A bucket: one cache line.
#[repr(C, align(64))]
pub(crate) struct Bucket(pub [AtomicU32; LANES]);

/// A way to compare all entries of a bucket with a tag.
///
/// Entries may be written by others meanwhile. Each is read as it was or as it is, and once:
/// what a [`scan`](Self::scan) says of hits and of empty entries holds for one moment of each
/// entry. A hit is read again, as an atomic, before it is used.
pub(crate) trait Lanes: Copy {
    /// A bucket as it was read.
    type Line: Copy;

    /// Reads every entry once.
    fn load(self, bucket: &Bucket) -> Self::Line;

    /// Compares `entry & mask` with `tag` for every entry: a bit each.
    fn compare(self, line: Self::Line, tag: u32, mask: u32) -> u32;

    /// The entries that carry the tag, a bit each. Tags are never 0, so an empty entry is
    /// no hit.
    #[inline(always)]
    fn hits(self, bucket: &Bucket, tag: u32, mask: u32) -> u32 {
        self.compare(self.load(bucket), tag, mask)
    }

    /// The empty entries, a bit each.
    #[inline(always)]
    fn empty(self, bucket: &Bucket) -> u32 {
        self.compare(self.load(bucket), 0, u32::MAX)
    }

    /// The entries that carry the tag, and the empty ones, out of one reading.
    #[inline(always)]
    fn scan(self, bucket: &Bucket, tag: u32, mask: u32) -> (u32, u32) {
        let line = self.load(bucket);
        (self.compare(line, tag, mask), self.compare(line, 0, u32::MAX))
    }
}

/// Entry by entry.
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

#[cfg(any(test, miri, not(target_arch = "x86_64")))]
impl Lanes for Scalar {
    type Line = [u32; LANES];

    #[inline(always)]
    fn load(self, bucket: &Bucket) -> [u32; LANES] {
        std::array::from_fn(|lane| bucket.0[lane].load(Acquire))
    }

    #[inline(always)]
    fn compare(self, line: [u32; LANES], tag: u32, mask: u32) -> u32 {
        line.iter().enumerate().fold(0, |hits, (lane, entry)| hits | u32::from(entry & mask == tag) << lane)
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) mod x86 {
    //! The same with vector instructions. Lines are read by volatile loads, which the
    //! compiler neither repeats nor splits; the processor reads aligned words whole.
    use super::{Bucket, Lanes};
    use std::arch::x86_64::*;

    /// Four comparisons of four entries; every x86-64 processor can.
    #[derive(Clone, Copy)]
    pub(crate) struct Sse2;

    impl Lanes for Sse2 {
        type Line = [__m128i; 4];

        #[inline(always)]
        fn load(self, bucket: &Bucket) -> [__m128i; 4] {
            let line = bucket.0.as_ptr().cast::<__m128i>();
            // SAFETY: a bucket is 64 aligned bytes.
            std::array::from_fn(|part| unsafe { line.add(part).read_volatile() })
        }

        #[inline(always)]
        fn compare(self, line: [__m128i; 4], tag: u32, mask: u32) -> u32 {
            // SAFETY: SSE2 is part of x86-64.
            unsafe {
                let tag = _mm_set1_epi32(tag as i32);
                let mask = _mm_set1_epi32(mask as i32);
                let part = |part: usize| _mm_cmpeq_epi32(_mm_and_si128(line[part], mask), tag);
                let low = _mm_packs_epi32(part(0), part(1));
                let high = _mm_packs_epi32(part(2), part(3));
                _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
            }
        }
    }

    /// One comparison of sixteen entries. Only made where the processor has AVX-512.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(());

    impl Avx512 {
        /// Whether the processor has the instructions.
        pub(crate) fn detect() -> Option<Avx512> {
            (Avx2::detect().is_some()
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt"))
            .then_some(Avx512(()))
        }
    }

    impl Lanes for Avx512 {
        type Line = __m512i;

        #[inline(always)]
        fn load(self, bucket: &Bucket) -> __m512i {
            // SAFETY: a bucket is 64 aligned bytes.
            unsafe { bucket.0.as_ptr().cast::<__m512i>().read_volatile() }
        }

        #[inline(always)]
        fn compare(self, line: __m512i, tag: u32, mask: u32) -> u32 {
            // SAFETY: an `Avx512` exists only where the processor has AVX-512.
            unsafe {
                let tags = _mm512_and_si512(line, _mm512_set1_epi32(mask as i32));
                u32::from(_mm512_cmpeq_epi32_mask(tags, _mm512_set1_epi32(tag as i32)))
            }
        }
    }

    /// Two comparisons of eight entries. Only made where the processor has AVX2.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(());

    impl Avx2 {
        /// Whether the processor has the instructions.
        pub(crate) fn detect() -> Option<Avx2> {
            (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2"))
                .then_some(Avx2(()))
        }
    }

    impl Lanes for Avx2 {
        type Line = [__m256i; 2];

        #[inline(always)]
        fn load(self, bucket: &Bucket) -> [__m256i; 2] {
            let line = bucket.0.as_ptr().cast::<__m256i>();
            // SAFETY: a bucket is 64 aligned bytes.
            std::array::from_fn(|half| unsafe { line.add(half).read_volatile() })
        }

        #[inline(always)]
        fn compare(self, line: [__m256i; 2], tag: u32, mask: u32) -> u32 {
            // SAFETY: an `Avx2` exists only where the processor has AVX2.
            unsafe {
                let tag = _mm256_set1_epi32(tag as i32);
                let mask = _mm256_set1_epi32(mask as i32);
                let half = |half: usize| {
                    let tags = _mm256_cmpeq_epi32(_mm256_and_si256(line[half], mask), tag);
                    _mm256_movemask_ps(_mm256_castsi256_ps(tags)) as u32
                };
                half(0) | half(1) << 8
            }
        }
    }
}

/// Asks the processor to fetch a cache line that will be needed soon.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint; it may be given any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// The same for a line that will be written to: it is taken away from other processors too, so
/// that the write does not have to wait for that.
#[inline(always)]
pub(crate) fn prefetch_to_write<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint; it may be given any address. Processors of this kind that do
    // not know the instruction do nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// One of the two, as it is expected to be needed. Only where there are several threads is it worth
/// expecting a write: a line that nobody else has is written to at once anyhow.
#[inline(always)]
pub(crate) fn prefetch_as<T>(address: *const T, to_write: bool) {
    if to_write {
        prefetch_to_write(address);
    } else {
        prefetch(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lanes: impl Lanes) {
        for filled in 0..=LANES {
            let bucket = Bucket(std::array::from_fn(|lane| {
                AtomicU32::new(if lane < filled { ((lane as u32 % 5 + 1) << 24) | (lane as u32 + 1) } else { 0 })
            }));
            for tag in 1..6u32 {
                let hits = lanes.hits(&bucket, tag << 24, 0xff00_0000);
                let empty = lanes.empty(&bucket);
                assert_eq!(lanes.scan(&bucket, tag << 24, 0xff00_0000), (hits, empty));
                for lane in 0..LANES {
                    assert_eq!(hits >> lane & 1 == 1, lane < filled && lane as u32 % 5 + 1 == tag);
                    assert_eq!(empty >> lane & 1 == 1, lane >= filled);
                }
            }
        }
    }

    #[test]
    fn all_ways_of_scanning_agree() {
        check(Scalar);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            check(x86::Sse2);
            if let Some(avx2) = x86::Avx2::detect() {
                check(avx2);
            }
            if let Some(avx512) = x86::Avx512::detect() {
                check(avx512);
            }
        }
    }
}
