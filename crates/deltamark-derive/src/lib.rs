//! `#[derive(Pack)]`: how a struct or an enum goes into the slots of a state; and `#[derive(Symmetric)]`: what in it
//! belongs to which of several alike processes.
//!
//! In: the definition of a struct or an enum, with `#[pack(bits = N)]` on fields that need fewer bits than
//! their type has. Out: an implementation of `deltamark::Pack`. What stays true: fields are packed in the
//! order they are written, without padding; an enum starts with its discriminant in as few bits as the number
//! of variants allows; what cannot be packed is a compile error with its span. The other derive is in `symmetric.rs`.

mod expand;
mod parse;
mod symmetric;

use proc_macro::TokenStream;

/// Derives `deltamark::Pack` for a struct or an enum.
///
/// `#[pack(bits = N)]` on a field gives each integer in it `N` bits: on `u8`, `i32`, `usize` and so on, and
/// on arrays, options, vectors and boxes of them. A value that does not fit is a fault of the model, found
/// with its trace, and never truncated.
///
/// The type must also be `Debug`: that is how traces show it. Type parameters are
/// bounded by `Pack`.
#[proc_macro_derive(Pack, attributes(pack))]
pub fn derive_pack(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    match parse::item(&input) {
        Ok(item) => expand::implementation(&input, &item).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Derives `deltamark::Symmetric` for a state in which alike processes have numbers, or for a part of one.
///
/// `#[symmetric(GROUP = SIZE, …)]` on the type declares groups of alike processes; on a field, `each = GROUP`, `bits = GROUP`,
/// `name = GROUP` and `inside` say what it is, from the outside in. See the module `deltamark::symmetry`. Type parameters are
/// bounded by `Pack`.
#[proc_macro_derive(Symmetric, attributes(symmetric))]
pub fn derive_symmetric(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    symmetric::implementation(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
