//! From the syntax of a definition to the few facts that packing needs.
//!
//! In: the syntax tree of a struct or an enum. Out: an [`Definition`], or errors with their spans. What stays true:
//! every `pack` attribute has been read, so one that would have no effect is an error.

use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, LitInt, Member, Type};

/// A struct or an enum.
pub enum Definition {
    /// A struct: its fields.
    Struct(Vec<Field>),
    /// An enum: its variants, at least one.
    Enum(Vec<Variant>),
}

/// A variant of an enum.
pub struct Variant {
    /// Its name.
    pub name: Ident,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// A field.
pub struct Field {
    /// Its name, or its number.
    pub member: Member,
    /// Its type.
    pub ty: Type,
    /// The number of bits of each integer in it, if given.
    pub bits: Option<u32>,
}

/// Parses a definition. All errors of all fields are returned together.
pub fn item(input: &DeriveInput) -> Result<Definition, Error> {
    nothing_said("a type", &input.attrs)?;
    match &input.data {
        Data::Struct(data) => Ok(Definition::Struct(fields(&data.fields)?)),
        Data::Enum(data) if data.variants.is_empty() => {
            Err(Error::new(input.ident.span(), "an enum without variants has no value that could be packed"))
        }
        Data::Enum(data) => collect(data.variants.iter().map(|variant| {
            nothing_said("a variant", &variant.attrs)?;
            Ok(Variant { name: variant.ident.clone(), fields: fields(&variant.fields)? })
        }))
        .map(Definition::Enum),
        Data::Union(data) => Err(Error::new(
            data.union_token.span(),
            "a union cannot be packed, because nothing says which of its fields is in use; write an enum",
        )),
    }
}

fn fields(fields: &Fields) -> Result<Vec<Field>, Error> {
    collect(
        fields
            .iter()
            .zip(fields.members())
            .map(|(field, member)| Ok(Field { member, ty: field.ty.clone(), bits: bits(&field.attrs)? })),
    )
}

/// The argument of `#[pack(bits = N)]`, if it is present.
fn bits(attributes: &[Attribute]) -> Result<Option<u32>, Error> {
    let mut bits = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("pack")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("bits") {
                return Err(meta.error("`pack` knows one option: `bits = N`"));
            }
            let literal: LitInt = meta.value()?.parse()?;
            let count: u32 = literal.base10_parse()?;
            if !(1..=64).contains(&count) {
                return Err(Error::new(literal.span(), "the number of bits lies between 1 and 64"));
            }
            if bits.replace(count).is_some() {
                return Err(meta.error("the number of bits is given twice"));
            }
            Ok(())
        })?;
    }
    Ok(bits)
}

/// Refuses `pack` attributes where they would have no effect.
fn nothing_said(place: &str, attributes: &[Attribute]) -> Result<(), Error> {
    match attributes.iter().find(|attribute| attribute.path().is_ident("pack")) {
        Some(attribute) => Err(Error::new(
            attribute.span(),
            format!("`pack` means nothing on {place}; write `#[pack(bits = N)]` on a field of integers"),
        )),
        None => Ok(()),
    }
}

/// All values, or all errors as one.
pub fn collect<T>(results: impl Iterator<Item = Result<T, Error>>) -> Result<Vec<T>, Error> {
    let mut values = Vec::new();
    let mut errors: Option<Error> = None;
    for result in results {
        match (result, &mut errors) {
            (Ok(value), _) => values.push(value),
            (Err(error), Some(errors)) => errors.combine(error),
            (Err(error), None) => errors = Some(error),
        }
    }
    match errors {
        None => Ok(values),
        Some(errors) => Err(errors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(definition: &str) -> String {
        let input: DeriveInput = syn::parse_str(definition).expect("the definition is Rust");
        match item(&input) {
            Ok(_) => "fine".into(),
            Err(errors) => errors.into_iter().map(|error| error.to_string()).collect::<Vec<_>>().join(" | "),
        }
    }

    #[test]
    fn what_cannot_be_packed_is_named() {
        let cases = [
            ("struct S;", "fine"),
            ("struct S(#[pack(bits = 3)] u8, bool);", "fine"),
            ("enum E { A, B { #[pack(bits = 64)] x: u64 } }", "fine"),
            (
                "union U { a: u8, b: i8 }",
                "a union cannot be packed, because nothing says which of its fields is in use; write an enum",
            ),
            ("enum E {}", "an enum without variants has no value that could be packed"),
            ("struct S { #[pack(bits = 0)] x: u8 }", "the number of bits lies between 1 and 64"),
            ("struct S { #[pack(bits = 65)] x: u64 }", "the number of bits lies between 1 and 64"),
            ("struct S { #[pack(bit = 3)] x: u64 }", "`pack` knows one option: `bits = N`"),
            ("struct S { #[pack(bits = 3, bits = 4)] x: u64 }", "the number of bits is given twice"),
            (
                "#[pack(bits = 3)] struct S;",
                "`pack` means nothing on a type; write `#[pack(bits = N)]` on a field of integers",
            ),
            (
                "enum E { #[pack(bits = 3)] A, B(#[pack(bits = 0)] u8) }",
                "`pack` means nothing on a variant; write `#[pack(bits = N)]` on a field of integers \
                 | the number of bits lies between 1 and 64",
            ),
        ];
        for (definition, expected) in cases {
            assert_eq!(message(definition), expected, "{definition}");
        }
    }
}
