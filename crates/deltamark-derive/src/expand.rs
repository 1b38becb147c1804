//! From the facts about a definition to the implementation of `Pack`.
//!
//! In: an [`Definition`]. Out: tokens. What stays true: the code names everything by its full
//! path, so it works whatever the user's module imports; and it reads fields in exactly
//! the order and width in which it writes them.

use crate::parse::{Definition, Field, Variant};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{DeriveInput, Generics, Ident, Member, parse_quote};

/// The implementation of `Pack` for a definition.
pub fn implementation(input: &DeriveInput, item: &Definition) -> TokenStream {
    let name = &input.ident;
    let generics = bounded(input, item);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let body = match item {
        Definition::Struct(fields) => struct_body(name, fields),
        Definition::Enum(variants) => enum_body(name, variants),
    };
    // Constants are evaluated when they are used. Using this one at once makes a wrong number of bits an
    // error here; with generic parameters the error is deferred to instantiation.
    let at_once = input
        .generics
        .params
        .is_empty()
        .then(|| quote!(const _: ::core::option::Option<u32> = <#name as ::deltamark::pack::Pack>::BITS;));
    quote! {
        #[automatically_derived]
        impl #impl_generics ::deltamark::pack::Pack for #name #type_generics #where_clause {
            #body
        }
        #at_once
    }
}

/// The type's generics, with every type parameter bounded by `Pack`, and by `PackBits` if a field made of it
/// has a number of bits.
fn bounded(input: &DeriveInput, item: &Definition) -> Generics {
    let mut generics = input.generics.clone();
    let parameters: Vec<Ident> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    if parameters.is_empty() {
        return generics;
    }
    let fields: Vec<&Field> = match item {
        Definition::Struct(fields) => fields.iter().collect(),
        Definition::Enum(variants) => variants.iter().flat_map(|variant| &variant.fields).collect(),
    };
    let clause = generics.make_where_clause();
    for parameter in parameters {
        clause.predicates.push(parse_quote!(#parameter: ::deltamark::pack::Pack));
    }
    for field in fields.iter().filter(|field| field.bits.is_some()) {
        let ty = &field.ty;
        clause.predicates.push(parse_quote!(#ty: ::deltamark::pack::PackBits));
    }
    generics
}

fn struct_body(name: &Ident, fields: &[Field]) -> TokenStream {
    let total = sum(fields);
    let (members, locals) = (members(fields), locals(fields));
    let pack = pack_fields(&name.to_string(), fields);
    let unpack = unpack_fields(fields);
    let names = fields.iter().map(shown_name);
    quote! {
        const BITS: ::core::option::Option<u32> = #total;

        #[inline]
        fn pack(&self, packer: &mut ::deltamark::pack::Packer) {
            let Self { #(#members: #locals),* } = self;
            let _ = &packer;
            #pack
        }

        fn unpack(unpacker: &mut ::deltamark::pack::Unpacker<'_>) -> Self {
            let _ = &unpacker;
            Self { #unpack }
        }

        fn fields(&self) -> ::std::vec::Vec<(::std::string::String, ::deltamark::pack::Value)> {
            let Self { #(#members: #locals),* } = self;
            ::std::vec![#((::std::string::String::from(#names), ::deltamark::pack::value(#locals))),*]
        }
    }
}

fn enum_body(name: &Ident, variants: &[Variant]) -> TokenStream {
    // ceil(log2 n): the bits of the largest variant number.
    let tag_bits = usize::BITS - (variants.len() - 1).leading_zeros();
    let sums = variants.iter().map(|variant| sum(&variant.fields));
    let pack = variants.iter().map(|variant| {
        let variant_name = &variant.name;
        let (members, locals) = (members(&variant.fields), locals(&variant.fields));
        let pack = pack_fields(&format!("{name}::{variant_name}"), &variant.fields);
        let padding = padding(tag_bits, &variant.fields);
        quote! {
            Self::#variant_name { #(#members: #locals),* } => {
                #pack
                packer.fill(#padding);
            }
        }
    });
    // Apart from the fields: the compiler reads off the number then, without a jump that depends on the value.
    let numbers = variants.iter().enumerate().map(|(number, variant)| {
        let (number, variant_name) = (number as u64, &variant.name);
        quote!(Self::#variant_name { .. } => #number)
    });
    let pack_fields =
        variants.iter().any(|variant| !variant.fields.is_empty()).then(|| quote!(match self { #(#pack)* }));
    let unpack = variants.iter().enumerate().map(|(number, variant)| {
        let (number, name, fields) = (number as u64, &variant.name, unpack_fields(&variant.fields));
        let padding = padding(tag_bits, &variant.fields);
        quote!(#number => {
            let value = Self::#name { #fields };
            unpacker.skip(#padding);
            value
        })
    });
    let type_name = name.to_string();
    quote! {
        const BITS: ::core::option::Option<u32> = ::deltamark::pack::widest(#tag_bits, &[#(#sums),*]);

        #[inline]
        fn pack(&self, packer: &mut ::deltamark::pack::Packer) {
            let number: u64 = match self { #(#numbers),* };
            packer.write(number, #tag_bits);
            #pack_fields
        }

        fn unpack(unpacker: &mut ::deltamark::pack::Unpacker<'_>) -> Self {
            match unpacker.read(#tag_bits) {
                #(#unpack)*
                number => ::deltamark::pack::no_such_variant(#type_name, number),
            }
        }
    }
}

/// An expression for the bits that all these fields take together.
fn sum(fields: &[Field]) -> TokenStream {
    let bits = fields.iter().map(|Field { ty, bits, .. }| match bits {
        None => quote!(<#ty as ::deltamark::pack::Pack>::BITS),
        Some(bits) => quote!(::deltamark::pack::bits_of::<#ty>(#bits)),
    });
    quote!(::deltamark::pack::sum(&[#(#bits),*]))
}

/// An expression for the zeros behind a variant with these fields, which make all variants equally wide.
fn padding(tag_bits: u32, fields: &[Field]) -> TokenStream {
    let part = sum(fields);
    quote!(const { ::deltamark::pack::padding(<Self as ::deltamark::pack::Pack>::BITS, #tag_bits, #part) })
}

/// Statements that pack the locals of these fields.
fn pack_fields(owner: &str, fields: &[Field]) -> TokenStream {
    fields
        .iter()
        .zip(locals(fields))
        .map(|(field, local)| match field.bits {
            None => quote!(::deltamark::pack::Pack::pack(#local, packer);),
            Some(bits) => {
                let member = format!("{owner}.{}", shown_name(field));
                quote!(::deltamark::pack::PackBits::pack_bits(#local, #bits, #member, packer);)
            }
        })
        .collect()
}

/// Initialisers that unpack these fields. They run in the order they are written.
fn unpack_fields(fields: &[Field]) -> TokenStream {
    let fields = fields.iter().map(|Field { member, bits, .. }| match bits {
        None => quote!(#member: ::deltamark::pack::Pack::unpack(unpacker)),
        Some(bits) => quote!(#member: ::deltamark::pack::PackBits::unpack_bits(#bits, unpacker)),
    });
    quote!(#(#fields),*)
}

/// A field's name as people write it.
fn shown_name(field: &Field) -> String {
    match &field.member {
        Member::Named(name) => name.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

fn members(fields: &[Field]) -> Vec<&Member> {
    fields.iter().map(|field| &field.member).collect()
}

fn locals(fields: &[Field]) -> Vec<Ident> {
    (0..fields.len()).map(|number| format_ident!("field_{number}")).collect()
}
