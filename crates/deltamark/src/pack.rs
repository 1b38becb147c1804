//! Rust values as slots: how the state of a model written in Rust is stored.
//!
//! In: a value of a type that is [`Pack`]. Out: its bits, fields contiguous, in slots. What stays true: unpacking what was packed
//! gives the value back, so different values have different slots; a type with
//! [`BITS`](Pack::BITS) takes exactly that many, whatever its value; and a value that
//! does not fit is reported, never cut short.
//!
//! | type | bits |
//! |---|---|
//! | `()`, unit structs | 0 |
//! | `bool` | 1 |
//! | `u8` … `i64` | as many as the type has; `#[pack(bits = N)]` in a struct makes it fewer |
//! | `usize`, `isize` | 64 |
//! | structs, tuples, arrays | the sum |
//! | enums, `Option` | ⌈log2 variants⌉ and the largest variant, padded |
//! | `Vec`, `VecDeque`, `String`, `BTreeSet`, `BTreeMap` | varies: a length (4 bits below 8, 8 bits below 64 …) and the elements |
//! | `Box` | varies, so that recursive types have an end |
//!
//! Where the state as a whole varies, nothing in it has to keep to a width: integers of 32 and 64 bits without
//! `#[pack(bits = N)]` take 6 bits below 16, 10 bits below 256, and at most two more than their type has; variants
//! of enums are not padded.
//!
//! ```
//! # use deltamark::Pack;
//! #[derive(Clone, Debug, PartialEq, Pack)]
//! struct Process<T> {
//!     #[pack(bits = 3)]
//!     level: u8,
//!     holds: Option<T>,
//! }
//! assert_eq!(Process::<bool>::BITS, Some(3 + 1 + 1));
//! let slots = deltamark::pack::pack(&Process { level: 5, holds: Some(true) }).unwrap();
//! assert_eq!(slots, [0b11_101]);
//! assert!(deltamark::pack::pack(&Process { level: 8, holds: None::<bool> }).is_err());
//! ```
//!
//! What cannot be packed does not compile: more bits than the type has,
//!
//! ```compile_fail,E0080
//! # use deltamark::Pack;
//! #[derive(Debug, Pack)]
//! struct Process {
//!     #[pack(bits = 9)]
//!     level: u8,
//! }
//! ```
//!
//! types without an order of their own,
//!
//! ```compile_fail,E0277
//! # use deltamark::Pack;
//! #[derive(Debug, Pack)]
//! struct Process {
//!     locks: std::collections::HashSet<u8>,
//! }
//! ```
//!
//! and bits of what is no integer.
//!
//! ```compile_fail,E0277
//! # use deltamark::Pack;
//! #[derive(Debug, Pack)]
//! struct Process {
//!     #[pack(bits = 3)]
//!     level: bool,
//! }
//! ```

pub use deltamark_core::Value;
pub use deltamark_derive::Pack;

use deltamark_core::Slot;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{Debug, Display};

/// A value that goes into slots and comes back out of them. Derive it.
///
/// Hash sets and hash maps are left out on purpose: their order differs between equal
/// values, so one state would count as several.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be packed into a state",
    label = "not `Pack`",
    note = "derive it: `#[derive(Debug, Pack)]`; instead of HashMap and HashSet use BTreeMap and BTreeSet, whose order is part of their value"
)]
pub trait Pack: Debug + Sized {
    /// The number of bits of every value; `None` if it varies.
    const BITS: Option<u32>;

    /// Writes the value.
    fn pack(&self, packer: &mut Packer);

    /// Reads a value back. Only what [`pack`](Self::pack) wrote may be read.
    fn unpack(unpacker: &mut Unpacker<'_>) -> Self;

    /// The value's parts by name, for traces: the fields of a struct.
    fn fields(&self) -> Vec<(String, Value)> {
        vec![("state".into(), value(self))]
    }
}

/// Integers whose bits can be chosen, and arrays, options, vectors and boxes of them.
#[diagnostic::on_unimplemented(
    message = "`#[pack(bits = …)]` does not apply to `{Self}`",
    label = "holds no integers whose bits could be chosen",
    note = "it applies to integers, and to arrays, `Option`, `Vec` and `Box` of them"
)]
pub trait PackBits: Sized {
    /// How many bits the integer type has: more cannot be asked for.
    const MOST: u32;
    /// The number of integers; `None` if it varies.
    const INTEGERS: Option<u32>;
    /// How many bits there are besides the integers.
    const OTHER: u32;

    /// Writes the value, `bits` for each integer. `name` is for the message when a
    /// value does not fit.
    fn pack_bits(&self, bits: u32, name: &'static str, packer: &mut Packer);

    /// Reads a value back.
    fn unpack_bits(bits: u32, unpacker: &mut Unpacker<'_>) -> Self;
}

/// Writes bits into slots.
#[derive(Debug, Default)]
pub struct Packer {
    slots: Vec<Slot>,
    /// Bits not yet in a slot, lowest first, and how many: fewer than 32.
    pending: u64,
    pending_bits: u32,
    /// Whether the width of the whole varies: then parts take as few bits as they need.
    varies: bool,
    misfit: Option<String>,
}

/// The numbers of bits that an integer may take where the width varies; two bits say which. The last one is that of its
/// type.
const CLASSES: [u32; 3] = [4, 8, 16];

impl Packer {
    /// A packer for values of this type that has written nothing.
    pub fn of<T: Pack>() -> Self {
        Packer { varies: T::BITS.is_none(), ..Self::default() }
    }

    /// Forgets what was written and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.slots.clear();
        self.pending = 0;
        self.pending_bits = 0;
        self.misfit = None;
    }

    /// Writes the lowest `bits` bits of `value`, which has no others.
    #[inline]
    pub fn write(&mut self, value: u64, bits: u32) {
        debug_assert!(bits <= 64 && (bits == 64 || value >> bits == 0), "{value} has more than {bits} bits");
        if bits > 32 {
            self.write(value & 0xffff_ffff, 32);
            return self.write(value >> 32, bits - 32);
        }
        self.pending |= value << self.pending_bits;
        self.pending_bits += bits;
        if self.pending_bits >= Slot::BITS {
            self.slots.push(self.pending as Slot);
            self.pending >>= Slot::BITS;
            self.pending_bits -= Slot::BITS;
        }
    }

    /// Writes a number that is usually small: groups of three bits, each behind a bit
    /// that is set if another group follows.
    pub fn write_length(&mut self, mut length: usize) {
        loop {
            let rest = length >> 3;
            self.write((length as u64 & 7) << 1 | u64::from(rest > 0), 4);
            if rest == 0 {
                return;
            }
            length = rest;
        }
    }

    /// Writes an integer whose type has `bits` bits, of 32 and more.
    #[inline]
    pub fn write_integer(&mut self, value: u64, bits: u32) {
        if !self.varies {
            return self.write(value, bits);
        }
        let class = CLASSES.iter().take_while(|&&bits| value >> bits != 0).count();
        self.write(class as u64, 2);
        self.write(value, CLASSES.get(class).copied().unwrap_or(bits));
    }

    /// Writes `bits` zeros, unless the width varies: what is as wide as its widest variant has the same width always.
    #[inline]
    pub fn fill(&mut self, bits: u32) {
        if bits > 0 && !self.varies {
            for _ in 0..bits / 32 {
                self.write(0, 32);
            }
            self.write(0, bits % 32);
        }
    }

    /// How many bits were written.
    pub fn position(&self) -> u64 {
        self.slots.len() as u64 * u64::from(Slot::BITS) + u64::from(self.pending_bits)
    }

    /// Remembers that a value does not fit. The first one counts.
    #[cold]
    pub fn misfit(&mut self, name: &str, value: impl Display, bits: u32) {
        let unit = if bits == 1 { "bit" } else { "bits" };
        self.misfit.get_or_insert_with(|| format!("{name} is {value}, which does not fit into {bits} {unit}"));
    }

    /// The slots written, the last one filled up with zeros, or why there are none.
    #[inline]
    pub fn finish(&mut self) -> Result<&[Slot], String> {
        if let Some(misfit) = self.misfit.take() {
            return Err(misfit);
        }
        if self.pending_bits > 0 {
            self.slots.push(self.pending as Slot);
            (self.pending, self.pending_bits) = (0, 0);
        }
        Ok(&self.slots)
    }
}

/// Reads bits from slots. Behind the end there are zeros.
#[derive(Clone, Debug)]
pub struct Unpacker<'a> {
    slots: &'a [Slot],
    position: u64,
    /// Whether the width of the whole varies.
    varies: bool,
    checked: bool,
    /// The number of boxes that are being unpacked, each inside the one before.
    depth: u32,
}

/// The most elements that a value may have which takes no bits for them, where slots may be arbitrary.
const MOST_ELEMENTS: u64 = 1 << 16;
/// The most boxes inside each other there: the stack must hold them.
const DEEPEST: u32 = 2_000;

impl<'a> Unpacker<'a> {
    /// Reads these slots, of a value of this type, from the beginning.
    pub fn of<T: Pack>(slots: &'a [Slot]) -> Self {
        Unpacker { slots, position: 0, varies: T::BITS.is_none(), checked: false, depth: 0 }
    }

    /// Reads slots that may be arbitrary: what cannot be is a panic, so that it is not believed.
    fn checked<T: Pack>(slots: &'a [Slot]) -> Self {
        Unpacker { checked: true, ..Unpacker::of::<T>(slots) }
    }

    /// The next `bits` bits, at most 64.
    #[inline]
    pub fn read(&mut self, bits: u32) -> u64 {
        debug_assert!(bits <= 64);
        if bits > 32 {
            let low = self.read(32);
            return low | self.read(bits - 32) << 32;
        }
        let (index, shift) = ((self.position / 32) as usize, (self.position % 32) as u32);
        let slot = |index: usize| u64::from(self.slots.get(index).copied().unwrap_or(0));
        let mut pair = slot(index);
        if shift + bits > 32 {
            pair |= slot(index + 1) << 32;
        }
        self.position += u64::from(bits);
        if self.checked {
            assert!(self.position <= self.end(), "only what was packed is unpacked: it ends early");
        }
        (pair >> shift) & ((1 << bits) - 1)
    }

    /// A number written by [`Packer::write_length`].
    pub fn read_length(&mut self) -> usize {
        let (mut length, mut shift) = (0, 0);
        loop {
            let group = self.read(4);
            length |= (group as usize >> 1) << shift;
            shift += 3;
            if group & 1 == 0 || shift >= usize::BITS {
                break;
            }
        }
        if self.checked {
            let left = self.end().saturating_sub(self.position);
            assert!(length as u64 <= left + MOST_ELEMENTS, "only what was packed is unpacked: {length} elements");
        }
        length
    }

    /// The number of bits that there are.
    fn end(&self) -> u64 {
        self.slots.len() as u64 * u64::from(Slot::BITS)
    }

    /// What is in a box.
    fn inside<T>(&mut self, unpack: impl FnOnce(&mut Self) -> T) -> Box<T> {
        self.depth += 1;
        assert!(!self.checked || self.depth <= DEEPEST, "only what was packed is unpacked: it is nested too deeply");
        let value = Box::new(unpack(self));
        self.depth -= 1;
        value
    }

    /// What [`Packer::write_integer`] wrote.
    #[inline]
    pub fn read_integer(&mut self, bits: u32) -> u64 {
        if !self.varies {
            return self.read(bits);
        }
        let class = self.read(2) as usize;
        self.read(CLASSES.get(class).copied().unwrap_or(bits))
    }

    /// How many bits were read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Passes over what [`Packer::fill`] wrote.
    #[inline]
    pub fn skip(&mut self, bits: u32) {
        if !self.varies {
            self.position += u64::from(bits);
        }
    }
}

/// Packs a value.
pub fn pack<T: Pack>(value: &T) -> Result<Vec<Slot>, String> {
    let mut packer = Packer::of::<T>();
    value.pack(&mut packer);
    packer.finish().map(<[Slot]>::to_vec)
}

/// Unpacks what [`pack()`] wrote.
pub fn unpack<T: Pack>(slots: &[Slot]) -> T {
    T::unpack(&mut Unpacker::of::<T>(slots))
}

/// Unpacks slots that may be arbitrary, in bounded time.
///
/// # Panics
/// If no value can have been packed like this.
pub(crate) fn unpack_checked<T: Pack>(slots: &[Slot]) -> T {
    T::unpack(&mut Unpacker::checked::<T>(slots))
}

/// A value for traces: a number if it prints as one.
pub fn value<T: Debug + ?Sized>(value: &T) -> Value {
    let text = format!("{value:?}");
    match text.parse() {
        Ok(number) => Value::Int(number),
        Err(_) => Value::Text(text),
    }
}

/// The bits of several parts together; `None` if one of them varies.
pub const fn sum(parts: &[Option<u32>]) -> Option<u32> {
    let (mut total, mut index) = (0, 0);
    while index < parts.len() {
        match parts[index] {
            Some(bits) => total += bits,
            None => return None,
        }
        index += 1;
    }
    Some(total)
}

/// The bits of a choice between several parts, `tag` bits saying which it is.
pub const fn widest(tag: u32, parts: &[Option<u32>]) -> Option<u32> {
    let (mut most, mut index) = (0, 0);
    while index < parts.len() {
        match parts[index] {
            Some(bits) if bits > most => most = bits,
            Some(_) => {}
            None => return None,
        }
        index += 1;
    }
    Some(tag + most)
}

/// How many bits a variant of `part` bits lacks to a choice of `whole` bits with `tag` bits for which it is; 0 if they vary.
pub const fn padding(whole: Option<u32>, tag: u32, part: Option<u32>) -> u32 {
    match (whole, part) {
        (Some(whole), Some(part)) => whole - tag - part,
        _ => 0,
    }
}

/// The bits of a value whose integers take `bits` each.
pub const fn bits_of<T: PackBits>(bits: u32) -> Option<u32> {
    assert!(bits <= T::MOST, "`#[pack(bits = …)]` asks for more bits than the type has");
    match T::INTEGERS {
        Some(count) => Some(count * bits + T::OTHER),
        None => None,
    }
}

/// Says that slots hold something that no value packs to.
///
/// # Panics
/// Always: slots that [`Pack::pack`] did not write are a bug of the caller.
#[cold]
pub fn no_such_variant(name: &str, number: u64) -> ! {
    panic!("only what was packed is unpacked: `{name}` has no variant {number}")
}

macro_rules! unsigned {
    ($($integer:ty),*) => {$(
        impl Pack for $integer {
            const BITS: Option<u32> = Some(<$integer>::BITS);

            #[inline]
            fn pack(&self, packer: &mut Packer) {
                if <$integer>::BITS < 32 {
                    packer.write(*self as u64, <$integer>::BITS);
                } else {
                    packer.write_integer(*self as u64, <$integer>::BITS);
                }
            }

            #[inline]
            fn unpack(unpacker: &mut Unpacker<'_>) -> Self {
                if <$integer>::BITS < 32 {
                    unpacker.read(<$integer>::BITS) as $integer
                } else {
                    unpacker.read_integer(<$integer>::BITS) as $integer
                }
            }
        }

        impl PackBits for $integer {
            const MOST: u32 = <$integer>::BITS;
            const INTEGERS: Option<u32> = Some(1);
            const OTHER: u32 = 0;

            #[inline]
            fn pack_bits(&self, bits: u32, name: &'static str, packer: &mut Packer) {
                if bits < <$integer>::BITS && *self >> bits != 0 {
                    return packer.misfit(name, self, bits);
                }
                packer.write(*self as u64, bits);
            }

            #[inline]
            fn unpack_bits(bits: u32, unpacker: &mut Unpacker<'_>) -> Self {
                unpacker.read(bits) as $integer
            }
        }
    )*};
}

macro_rules! signed {
    ($($integer:ty as $unsigned:ty),*) => {$(
        impl Pack for $integer {
            const BITS: Option<u32> = Some(<$integer>::BITS);

            // Zigzag: small numbers of both signs are small.
            #[inline]
            fn pack(&self, packer: &mut Packer) {
                (((*self << 1) ^ (*self >> (<$integer>::BITS - 1))) as $unsigned).pack(packer);
            }

            #[inline]
            fn unpack(unpacker: &mut Unpacker<'_>) -> Self {
                let zigzag = <$unsigned>::unpack(unpacker);
                let number = (zigzag >> 1) as $integer;
                if zigzag & 1 == 0 { number } else { !number }
            }
        }

        impl PackBits for $integer {
            const MOST: u32 = <$integer>::BITS;
            const INTEGERS: Option<u32> = Some(1);
            const OTHER: u32 = 0;

            #[inline]
            fn pack_bits(&self, bits: u32, name: &'static str, packer: &mut Packer) {
                // In two's complement a value fits when all bits from the sign upwards
                // are the same.
                let above = *self >> (bits - 1);
                if above != 0 && above != -1 {
                    return packer.misfit(name, self, bits);
                }
                packer.write(*self as u64 & (u64::MAX >> (64 - bits)), bits);
            }

            #[inline]
            fn unpack_bits(bits: u32, unpacker: &mut Unpacker<'_>) -> Self {
                let shift = 64 - bits;
                ((unpacker.read(bits) << shift) as i64 >> shift) as $integer
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64);
signed!(i8 as u8, i16 as u16, i32 as u32, i64 as u64);

// `usize` and `isize` always take 64 bits, so that states are the same on every machine.
macro_rules! machine_sized {
    ($($integer:ty as $wide:ty),*) => {$(
        impl Pack for $integer {
            const BITS: Option<u32> = Some(64);

            fn pack(&self, packer: &mut Packer) {
                (*self as $wide).pack(packer);
            }

            fn unpack(unpacker: &mut Unpacker<'_>) -> Self {
                <$wide>::unpack(unpacker) as $integer
            }
        }

        impl PackBits for $integer {
            const MOST: u32 = 64;
            const INTEGERS: Option<u32> = Some(1);
            const OTHER: u32 = 0;

            fn pack_bits(&self, bits: u32, name: &'static str, packer: &mut Packer) {
                (*self as $wide).pack_bits(bits, name, packer);
            }

            fn unpack_bits(bits: u32, unpacker: &mut Unpacker<'_>) -> Self {
                <$wide>::unpack_bits(bits, unpacker) as $integer
            }
        }
    )*};
}

machine_sized!(usize as u64, isize as i64);

impl Pack for bool {
    const BITS: Option<u32> = Some(1);

    #[inline]
    fn pack(&self, packer: &mut Packer) {
        packer.write(u64::from(*self), 1);
    }

    #[inline]
    fn unpack(unpacker: &mut Unpacker<'_>) -> Self {
        unpacker.read(1) == 1
    }
}

impl Pack for () {
    const BITS: Option<u32> = Some(0);

    fn pack(&self, _packer: &mut Packer) {}

    fn unpack(_unpacker: &mut Unpacker<'_>) -> Self {}

    fn fields(&self) -> Vec<(String, Value)> {
        Vec::new()
    }
}

impl Pack for char {
    const BITS: Option<u32> = Some(21);

    fn pack(&self, packer: &mut Packer) {
        packer.write(u64::from(*self), 21);
    }

    fn unpack(unpacker: &mut Unpacker<'_>) -> Self {
        let number = unpacker.read(21);
        char::from_u32(number as u32).unwrap_or_else(|| no_such_variant("char", number))
    }
}

impl<T: Pack> Pack for Option<T> {
    const BITS: Option<u32> = widest(1, &[T::BITS]);

    fn pack(&self, packer: &mut Packer) {
        packer.write(u64::from(self.is_some()), 1);
        match self {
            Some(value) => value.pack(packer),
            None => packer.fill(padding(Self::BITS, 1, Some(0))),
        }
    }

    fn unpack(unpacker: &mut Unpacker<'_>) -> Self {
        if unpacker.read(1) == 1 {
            Some(T::unpack(unpacker))
        } else {
            unpacker.skip(padding(Self::BITS, 1, Some(0)));
            None
        }
    }
}

impl<T: PackBits> PackBits for Option<T> {
    const MOST: u32 = T::MOST;
    const INTEGERS: Option<u32> = T::INTEGERS;
    const OTHER: u32 = T::OTHER + 1;

    fn pack_bits(&self, bits: u32, name: &'static str, packer: &mut Packer) {
        packer.write(u64::from(self.is_some()), 1);
        match self {
            Some(value) => value.pack_bits(bits, name, packer),
            None => packer.fill(padding(bits_of::<Self>(bits), 1, Some(0))),
        }
    }

    fn unpack_bits(bits: u32, unpacker: &mut Unpacker<'_>) -> Self {
        if unpacker.read(1) == 1 {
            Some(T::unpack_bits(bits, unpacker))
        } else {
            unpacker.skip(padding(bits_of::<Self>(bits), 1, Some(0)));
            None
        }
    }
}

impl<T: Pack, const N: usize> Pack for [T; N] {
    const BITS: Option<u32> = match T::BITS {
        Some(bits) => Some(bits * N as u32),
        None => None,
    };

    fn pack(&self, packer: &mut Packer) {
        self.iter().for_each(|value| value.pack(packer));
    }

    fn unpack(unpacker: &mut Unpacker<'_>) -> Self {
        std::array::from_fn(|_| T::unpack(unpacker))
    }
}

impl<T: PackBits, const N: usize> PackBits for [T; N] {
    const MOST: u32 = T::MOST;
    const INTEGERS: Option<u32> = match T::INTEGERS {
        Some(count) => Some(count * N as u32),
        None => None,
    };
    const OTHER: u32 = T::OTHER * N as u32;

    fn pack_bits(&self, bits: u32, name: &'static str, packer: &mut Packer) {
        self.iter().for_each(|value| value.pack_bits(bits, name, packer));
    }

    fn unpack_bits(bits: u32, unpacker: &mut Unpacker<'_>) -> Self {
        std::array::from_fn(|_| T::unpack_bits(bits, unpacker))
    }
}

impl<T: Pack> Pack for Box<T> {
    const BITS: Option<u32> = None;

    fn pack(&self, packer: &mut Packer) {
        (**self).pack(packer);
    }

    fn unpack(unpacker: &mut Unpacker<'_>) -> Self {
        unpacker.inside(T::unpack)
    }
}

impl<T: PackBits> PackBits for Box<T> {
    const MOST: u32 = T::MOST;
    const INTEGERS: Option<u32> = None;
    const OTHER: u32 = 0;

    fn pack_bits(&self, bits: u32, name: &'static str, packer: &mut Packer) {
        (**self).pack_bits(bits, name, packer);
    }

    fn unpack_bits(bits: u32, unpacker: &mut Unpacker<'_>) -> Self {
        unpacker.inside(|unpacker| T::unpack_bits(bits, unpacker))
    }
}

impl<T: PackBits> PackBits for Vec<T> {
    const MOST: u32 = T::MOST;
    const INTEGERS: Option<u32> = None;
    const OTHER: u32 = 0;

    fn pack_bits(&self, bits: u32, name: &'static str, packer: &mut Packer) {
        packer.write_length(self.len());
        self.iter().for_each(|value| value.pack_bits(bits, name, packer));
    }

    fn unpack_bits(bits: u32, unpacker: &mut Unpacker<'_>) -> Self {
        (0..unpacker.read_length()).map(|_| T::unpack_bits(bits, unpacker)).collect()
    }
}

macro_rules! collections {
    ($($collection:ty, $($parameter:ident: $bound:path),*;)*) => {$(
        impl<$($parameter: Pack + $bound),*> Pack for $collection {
            const BITS: Option<u32> = None;

            fn pack(&self, packer: &mut Packer) {
                packer.write_length(self.len());
                for element in self {
                    Element::pack_element(&element, packer);
                }
            }

            fn unpack(unpacker: &mut Unpacker<'_>) -> Self {
                (0..unpacker.read_length()).map(|_| Pack::unpack(unpacker)).collect()
            }
        }
    )*};
}

/// What iterating over a collection by reference gives: an element, or a key and a value.
trait Element {
    fn pack_element(&self, packer: &mut Packer);
}

impl<T: Pack> Element for &T {
    fn pack_element(&self, packer: &mut Packer) {
        (**self).pack(packer);
    }
}

impl<K: Pack, V: Pack> Element for (&K, &V) {
    fn pack_element(&self, packer: &mut Packer) {
        self.0.pack(packer);
        self.1.pack(packer);
    }
}

collections! {
    Vec<T>, T: Debug;
    VecDeque<T>, T: Debug;
    BTreeSet<T>, T: Ord;
    BTreeMap<K, V>, K: Ord, V: Debug;
}

impl Pack for String {
    const BITS: Option<u32> = None;

    fn pack(&self, packer: &mut Packer) {
        packer.write_length(self.len());
        self.bytes().for_each(|byte| byte.pack(packer));
    }

    fn unpack(unpacker: &mut Unpacker<'_>) -> Self {
        let bytes: Vec<u8> = (0..unpacker.read_length()).map(|_| u8::unpack(unpacker)).collect();
        String::from_utf8(bytes).expect("only what was packed is unpacked, and a string is UTF-8")
    }
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*);)*) => {$(
        impl<$($name: Pack),*> Pack for ($($name,)*) {
            const BITS: Option<u32> = sum(&[$($name::BITS),*]);

            fn pack(&self, packer: &mut Packer) {
                $(self.$index.pack(packer);)*
            }

            fn unpack(unpacker: &mut Unpacker<'_>) -> Self {
                ($($name::unpack(unpacker),)*)
            }

            fn fields(&self) -> Vec<(String, Value)> {
                vec![$((stringify!($index).into(), value(&self.$index))),*]
            }
        }
    )*};
}

tuples! {
    (A 0);
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
}
