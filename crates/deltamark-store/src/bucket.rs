//! Buckets of an index: 16 entries of 32 bits, one cache line, compared at once.
//!
//! In: a bucket and a tag. Out: which entries carry the tag and which are empty. What
//! stays true: entries of a bucket are filled from the first on and never emptied, so
//! the empty ones are at its end.
//!
//! The instructions are chosen at run time, once per batch: AVX2 where the processor has
//! it, SSE2 on every other x86-64, plain loads elsewhere (and under Miri, which then sees
//! nothing but atomic accesses).

#[cfg(any(test, miri, not(target_arch = "x86_64")))]
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::AtomicU32;

/// Entries in a bucket.
pub(crate) const LANES: usize = 16;

/// A bucket: one cache line.
#[repr(C, align(64))]
pub(crate) struct Bucket(pub [AtomicU32; LANES]);

/// Which entries of a bucket carry the tag, and which are empty: a bit each.
#[derive(Clone, Copy)]
pub(crate) struct Scan {
    pub hits: u32,
    pub empty: u32,
}

/// A way to compare all entries of a bucket with a tag.
pub(crate) trait Lanes: Copy {
    /// Compares `entry & mask` with `tag` for every entry. An empty entry is no hit.
    ///
    /// Entries may be written by others meanwhile; a hit is read again, as an atomic,
    /// before it is used.
    fn scan(self, bucket: &Bucket, tag: u32, mask: u32) -> Scan;
}

/// Entry by entry.
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

#[cfg(any(test, miri, not(target_arch = "x86_64")))]
impl Lanes for Scalar {
    #[inline(always)]
    fn scan(self, bucket: &Bucket, tag: u32, mask: u32) -> Scan {
        let (mut hits, mut empty) = (0, 0);
        for (lane, entry) in bucket.0.iter().enumerate() {
            let entry = entry.load(Acquire);
            hits |= u32::from(entry & mask == tag) << lane;
            empty |= u32::from(entry == 0) << lane;
        }
        Scan { hits: hits & !empty, empty }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) mod x86 {
    //! The same with vector instructions.
    use super::{Bucket, Lanes, Scan};
    use std::arch::x86_64::*;

    /// Four comparisons of four entries; every x86-64 processor can.
    #[derive(Clone, Copy)]
    pub(crate) struct Sse2;

    impl Lanes for Sse2 {
        #[inline(always)]
        fn scan(self, bucket: &Bucket, tag: u32, mask: u32) -> Scan {
            let line = bucket.0.as_ptr().cast::<__m128i>();
            // SAFETY: a bucket is 64 aligned bytes; SSE2 is part of x86-64. An entry that is
            // written meanwhile is read as it was or as it is: entries are aligned words.
            unsafe {
                let tag = _mm_set1_epi32(tag as i32);
                let mask = _mm_set1_epi32(mask as i32);
                let zero = _mm_setzero_si128();
                let parts: [__m128i; 4] = std::array::from_fn(|part| _mm_load_si128(line.add(part)));
                let hits = parts.map(|part| _mm_cmpeq_epi32(_mm_and_si128(part, mask), tag));
                let empty = parts.map(|part| _mm_cmpeq_epi32(part, zero));
                let join = |parts: [__m128i; 4]| {
                    let low = _mm_packs_epi32(parts[0], parts[1]);
                    let high = _mm_packs_epi32(parts[2], parts[3]);
                    _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
                };
                let empty = join(empty);
                Scan { hits: join(hits) & !empty, empty }
            }
        }
    }

    /// Two comparisons of eight entries. Only made where the processor has AVX2.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(());

    impl Avx2 {
        /// Says whether the processor has what is needed.
        pub(crate) fn detect() -> Option<Avx2> {
            (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2"))
                .then_some(Avx2(()))
        }
    }

    impl Lanes for Avx2 {
        #[inline(always)]
        fn scan(self, bucket: &Bucket, tag: u32, mask: u32) -> Scan {
            let line = bucket.0.as_ptr().cast::<__m256i>();
            // SAFETY: a bucket is 64 aligned bytes; an `Avx2` exists only where the processor
            // has AVX2. For entries written meanwhile see `Sse2`.
            unsafe {
                let tag = _mm256_set1_epi32(tag as i32);
                let mask = _mm256_set1_epi32(mask as i32);
                let zero = _mm256_setzero_si256();
                let (low, high) = (_mm256_load_si256(line), _mm256_load_si256(line.add(1)));
                let bits = |part: __m256i| _mm256_movemask_ps(_mm256_castsi256_ps(part)) as u32;
                let hits = bits(_mm256_cmpeq_epi32(_mm256_and_si256(low, mask), tag))
                    | bits(_mm256_cmpeq_epi32(_mm256_and_si256(high, mask), tag)) << 8;
                let empty = bits(_mm256_cmpeq_epi32(low, zero)) | bits(_mm256_cmpeq_epi32(high, zero)) << 8;
                Scan { hits: hits & !empty, empty }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lanes: impl Lanes) {
        for filled in 0..=LANES {
            let bucket = Bucket(std::array::from_fn(|lane| {
                AtomicU32::new(if lane < filled { ((lane as u32 % 5) << 24) | (lane as u32 + 1) } else { 0 })
            }));
            for tag in 0..5u32 {
                let scan = lanes.scan(&bucket, tag << 24, 0xff00_0000);
                for lane in 0..LANES {
                    assert_eq!(scan.hits >> lane & 1 == 1, lane < filled && lane as u32 % 5 == tag);
                    assert_eq!(scan.empty >> lane & 1 == 1, lane >= filled);
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
        }
    }
}
