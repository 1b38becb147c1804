//! From a definition to the implementation of `Symmetric`: what belongs to which process.
//!
//! In: the definition of a struct or an enum, with `#[symmetric(…)]` on it and on its fields. Out: an implementation of
//! `deltamark::Symmetric`, or errors with their spans. What stays true: both methods of it go the same way through every field, from the
//! outside in, as the attribute is written; a group that a field names is declared, where the definition declares some.

use crate::parse::collect;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, Ident, Member, parse_quote};

/// One step into a field.
enum Shape {
    /// A list with an element for each process of a group.
    Each(Ident),
    /// An integer with a bit for each.
    Bits(Ident),
    /// The number of one.
    Name(Ident),
    /// Something that is symmetric itself.
    Inside,
}

/// A field, and what it is from the outside in.
struct Field {
    member: Member,
    local: Ident,
    shapes: Vec<Shape>,
}

/// The implementation of `Symmetric` for a definition.
pub fn implementation(input: &DeriveInput) -> Result<TokenStream, Error> {
    let groups = groups(&input.attrs)?;
    let (renumber, report) = match &input.data {
        Data::Struct(data) => {
            let fields = fields(&data.fields, &groups)?;
            let (members, locals) = (members(&fields), locals(&fields));
            let (renumber, report) = (renumbering(&fields), reports(&fields));
            (
                quote!(let Self { #(#members: #locals),* } = self; #renumber),
                quote!(let Self { #(#members: #locals),* } = self; #report),
            )
        }
        Data::Enum(data) => {
            let variants = collect(data.variants.iter().enumerate().map(|(number, variant)| {
                let name = &variant.ident;
                let fields = fields(&variant.fields, &groups)?;
                let (members, locals) = (members(&fields), locals(&fields));
                let (renumber, report) = (renumbering(&fields), reports(&fields));
                Ok((
                    quote!(Self::#name { #(#members: #locals),* } => { #renumber }),
                    quote!(Self::#name { #(#members: #locals),* } => to.variant(#number, |to| { let _ = &to; #report }),),
                ))
            }))?;
            let (renumber, report): (Vec<_>, Vec<_>) = variants.into_iter().unzip();
            (quote!(match self { #(#renumber)* }), quote!(match self { #(#report)* }))
        }
        Data::Union(data) => {
            let message = "nothing says which field of a union is in use; write an enum";
            return Err(Error::new(data.union_token.span(), message));
        }
    };
    let (names, sizes): (Vec<String>, Vec<&Expr>) = groups.iter().map(|(name, size)| (name.to_string(), size)).unzip();
    let groups = (!names.is_empty()).then(|| {
        quote! {
            fn groups(&self) -> ::std::vec::Vec<(&'static str, usize)> {
                ::std::vec![#((#names, #sizes)),*]
            }
        }
    });
    let name = &input.ident;
    let mut generics = input.generics.clone();
    let parameters: Vec<Ident> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    for parameter in parameters {
        generics.make_where_clause().predicates.push(parse_quote!(#parameter: ::deltamark::pack::Pack));
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::deltamark::symmetry::Symmetric for #name #type_generics #where_clause {
            #groups

            fn renumber(&mut self, by: &::deltamark::symmetry::Renumbering) {
                let _ = &by;
                #renumber
            }

            fn report(&self, to: &mut ::deltamark::symmetry::Colours) {
                let _ = &to;
                #report
            }
        }
    })
}

/// The groups that a definition declares, with their sizes.
fn groups(attributes: &[Attribute]) -> Result<Vec<(Ident, Expr)>, Error> {
    let mut groups: Vec<(Ident, Expr)> = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("symmetric")) {
        attribute.parse_nested_meta(|meta| {
            let name = meta.path.require_ident()?.clone();
            if groups.iter().any(|group| group.0 == name) {
                return Err(meta.error("this group is declared twice"));
            }
            let size = meta.value().map_err(|_| meta.error("write how many there are: `GROUP = NUMBER`"))?.parse()?;
            groups.push((name, size));
            Ok(())
        })?;
    }
    Ok(groups)
}

fn fields(fields: &Fields, groups: &[(Ident, Expr)]) -> Result<Vec<Field>, Error> {
    collect(fields.iter().zip(fields.members()).enumerate().map(|(number, (field, member))| {
        Ok(Field { member, local: format_ident!("field_{number}"), shapes: shapes(&field.attrs, groups)? })
    }))
}

/// What an attribute says of a field.
fn shapes(attributes: &[Attribute], groups: &[(Ident, Expr)]) -> Result<Vec<Shape>, Error> {
    let mut shapes: Vec<Shape> = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("symmetric")) {
        attribute.parse_nested_meta(|meta| {
            if shapes.last().is_some_and(|shape| !matches!(shape, Shape::Each(_))) {
                return Err(meta.error("only `each` may be followed by something: it says what the elements are"));
            }
            let group = || -> Result<Ident, Error> {
                let group: Ident = meta.value()?.parse()?;
                if groups.is_empty() || groups.iter().any(|(name, _)| *name == group) {
                    return Ok(group);
                }
                Err(Error::new(group.span(), format!("no group `{group}` is declared above")))
            };
            shapes.push(match meta.path.get_ident().map(Ident::to_string).as_deref() {
                Some("each") => Shape::Each(group()?),
                Some("bits") => Shape::Bits(group()?),
                Some("name") => Shape::Name(group()?),
                Some("inside") => Shape::Inside,
                _ => {
                    let known = "`symmetric` knows `each = GROUP`, `bits = GROUP`, `name = GROUP` and `inside`";
                    return Err(meta.error(known));
                }
            });
            Ok(())
        })?;
        if shapes.is_empty() {
            return Err(Error::new(attribute.span(), "write what the field is: `#[symmetric(each = GROUP)]`"));
        }
    }
    Ok(shapes)
}

/// Statements that number processes anew in these fields.
fn renumbering(fields: &[Field]) -> TokenStream {
    fields.iter().map(|Field { local, shapes, .. }| renumbered(&quote!(#local), shapes)).collect()
}

fn renumbered(place: &TokenStream, shapes: &[Shape]) -> TokenStream {
    match shapes.split_first() {
        None => quote!(let _ = #place;),
        Some((Shape::Each(group), rest)) => {
            let (group, inside) = (group.to_string(), renumbered(&quote!(element), rest));
            quote!(by.each(#group, &mut #place[..], |element| { #inside });)
        }
        Some((Shape::Bits(group), _)) => {
            let group = group.to_string();
            quote! {
                *#place = ::deltamark::symmetry::Bits::of_word(
                    by.bits(#group, ::deltamark::symmetry::Bits::word(*#place)),
                );
            }
        }
        Some((Shape::Name(group), _)) => {
            let group = group.to_string();
            quote!(::deltamark::symmetry::Names::renumber(#place, #group, by);)
        }
        Some((Shape::Inside, _)) => quote!(::deltamark::symmetry::Symmetric::renumber(#place, by);),
    }
}

/// Statements that report these fields.
fn reports(fields: &[Field]) -> TokenStream {
    let report = |(number, Field { local, shapes, .. }): (usize, &Field)| {
        let report = reported(&quote!(#local), shapes);
        quote!(to.field(#number, |to| { #report });)
    };
    fields.iter().enumerate().map(report).collect()
}

fn reported(place: &TokenStream, shapes: &[Shape]) -> TokenStream {
    match shapes.split_first() {
        None => quote!(to.value(#place);),
        Some((Shape::Each(group), rest)) => {
            let (group, inside) = (group.to_string(), reported(&quote!(element), rest));
            quote!(to.each(#group, &#place[..], |element, to| { #inside });)
        }
        Some((Shape::Bits(group), _)) => {
            let group = group.to_string();
            quote!(to.bits(#group, ::deltamark::symmetry::Bits::word(*#place));)
        }
        Some((Shape::Name(group), _)) => {
            let group = group.to_string();
            quote!(::deltamark::symmetry::Names::report(#place, #group, to);)
        }
        Some((Shape::Inside, _)) => quote!(::deltamark::symmetry::Symmetric::report(#place, to);),
    }
}

fn members(fields: &[Field]) -> Vec<&Member> {
    fields.iter().map(|field| &field.member).collect()
}

fn locals(fields: &[Field]) -> Vec<&Ident> {
    fields.iter().map(|field| &field.local).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_named() {
        let cases = [
            ("struct S;", "fine"),
            ("#[symmetric(p = 3)] struct S { #[symmetric(each = p, name = p)] x: [u8; 3], y: bool }", "fine"),
            ("enum E { A, B(#[symmetric(name = anything)] u8), C { #[symmetric(inside)] x: Vec<E> } }", "fine"),
            ("#[symmetric(p = self.x.len(), q = N + 1)] struct S { x: Vec<u8> }", "fine"),
            ("union U { a: u8, b: i8 }", "nothing says which field of a union is in use; write an enum"),
            ("#[symmetric(p)] struct S;", "write how many there are: `GROUP = NUMBER`"),
            ("#[symmetric(p = 1, p = 2)] struct S;", "this group is declared twice"),
            (
                "struct S { #[symmetric(every = p)] x: u8 }",
                "`symmetric` knows `each = GROUP`, `bits = GROUP`, `name = GROUP` and `inside`",
            ),
            ("struct S { #[symmetric()] x: u8 }", "write what the field is: `#[symmetric(each = GROUP)]`"),
            (
                "#[symmetric(p = 3)] struct S { #[symmetric(each = q)] x: u8, #[symmetric(name = r)] y: u8 }",
                "no group `q` is declared above | no group `r` is declared above",
            ),
            (
                "struct S { #[symmetric(name = p, each = p)] x: u8 }",
                "only `each` may be followed by something: it says what the elements are",
            ),
        ];
        for (definition, expected) in cases {
            let input: DeriveInput = syn::parse_str(definition).expect("the definition is Rust");
            let message = match implementation(&input) {
                Ok(_) => "fine".into(),
                Err(errors) => errors.into_iter().map(|error| error.to_string()).collect::<Vec<_>>().join(" | "),
            };
            assert_eq!(message, expected, "{definition}");
        }
    }
}
