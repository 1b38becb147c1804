//! The structures of `include/deltamark.h` in Rust.
//!
//! In: the header. Out: the same structures, field by field. What stays true: the two agree; a change
//! of either changes [`VERSION`].

use std::ffi::{c_char, c_void};

/// `DELTAMARK_VERSION`
pub(crate) const VERSION: u32 = 1;
/// `DELTAMARK_VARIES`
pub(crate) const VARIES: u32 = u32::MAX;
/// `DELTAMARK_ONE_THREAD`
pub(crate) const ONE_THREAD: u32 = 1;
/// The maximum number of slots of a state.
pub(crate) const WIDEST: u32 = 1 << 16;
/// The maximum number of variables.
pub(crate) const MOST_VARIABLES: u32 = 1 << 20;
/// The name of the one function that a library exports.
pub(crate) const ENTRY: &str = "deltamark_model";

/// `deltamark_out`
#[repr(C)]
pub(crate) struct Out {
    pub step: extern "C" fn(*mut Out, *const u32, usize, *const c_char),
    pub fault: extern "C" fn(*mut Out, *const c_char),
}

/// `deltamark_parameter`
#[repr(C)]
pub(crate) struct Parameter {
    pub name: *const c_char,
    pub value: *const c_char,
}

/// `deltamark_description`
#[repr(C)]
pub(crate) struct Description {
    pub version: u32,
    pub width: u32,
    pub flags: u32,
    pub variables: u32,
    pub names: *const *const c_char,
    pub self_: *mut c_void,
    pub initial: Option<unsafe extern "C" fn(*mut c_void, *mut Out)>,
    pub successors: Option<unsafe extern "C" fn(*mut c_void, *const u32, usize, *mut Out)>,
    pub show: Option<unsafe extern "C" fn(*mut c_void, *const u32, usize, *mut c_char, usize) -> usize>,
    pub value: Option<unsafe extern "C" fn(*mut c_void, *const u32, usize, u32) -> i64>,
}

/// `deltamark_model`
pub(crate) type Entry = unsafe extern "C" fn(*const Parameter, usize, *mut *const c_char) -> *const Description;
