//! Decoding the bytes of a file.
//!
//! In: untrusted bytes. Out: text, or a diagnostic with the reason and a fix. Invariant: a text is
//! not blank and has no zero byte.

use crate::{Diagnostic, Span};

/// The bytes as text, or why they are not text. Every front end that reads text starts here.
pub fn utf8(bytes: &[u8]) -> Result<&str, Diagnostic> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Diagnostic::at(Span::at(0), "the file is empty"));
    }
    refuse_utf32(bytes)?;
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err(Diagnostic::at(Span::at(0), "the file is in UTF-16").help("save it as UTF-8"));
    }
    let invalid = std::str::from_utf8(bytes).err().map(|error| error.valid_up_to());
    let zero = bytes.iter().position(|&byte| byte == 0);
    match (zero, invalid) {
        (Some(zero), invalid) if invalid.is_none_or(|invalid| zero < invalid) => {
            let diagnostic = Diagnostic::at(Span::at(zero), "the file is not a text file: it has a zero byte");
            // Text in UTF-16 without a mark has a zero in every other byte.
            let utf16 =
                bytes.len() >= 4 && [&bytes[..4], &bytes[bytes.len() - 4..]].iter().all(|four| looks_wide(four));
            Err(if utf16 { diagnostic.help("it looks like UTF-16; save it as UTF-8") } else { diagnostic })
        }
        (_, Some(invalid)) => Err(Diagnostic::at(
            Span::at(invalid),
            format!("the file is not UTF-8 text: byte 0x{:02X} makes no sense here", bytes[invalid]),
        )
        .help("a model is a text file; if it is in another encoding, save it as UTF-8")),
        _ => std::str::from_utf8(bytes).map_err(|_| Diagnostic::new("the file is not UTF-8 text")),
    }
}

/// Refuses text in UTF-32, by its mark, or by a first character that takes one byte of four. Its beginning could be taken
/// for UTF-16.
pub fn refuse_utf32(bytes: &[u8]) -> Result<(), Diagnostic> {
    match bytes {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] | [(1..), 0, 0, 0, ..] | [0, 0, 0, (1..), ..] => {
            Err(Diagnostic::at(Span::at(0), "the file is in UTF-32").help("save it as UTF-8"))
        }
        _ => Ok(()),
    }
}

fn looks_wide(four: &[u8]) -> bool {
    (four[0] == 0) != (four[1] == 0) && (four[0] == 0) == (four[2] == 0) && (four[1] == 0) == (four[3] == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_told_with_its_place() {
        let cases: &[(&[u8], usize, &str)] = &[
            (b"", 0, "the file is empty"),
            (b" \n\t", 0, "the file is empty"),
            (b"\xFF\xFEn\0", 0, "the file is in UTF-16"),
            (b"\xFF\xFE\0\0n\0\0\0", 0, "the file is in UTF-32"),
            (b"\0\0\xFE\xFF\0\0\0n", 0, "the file is in UTF-32"),
            (b"n\0\0\0e\0\0\0", 0, "the file is in UTF-32"),
            (b"\0\0\0n\0\0\0e", 0, "the file is in UTF-32"),
            (b"ab\0c", 2, "the file is not a text file: it has a zero byte"),
            (b"ab\xFFc", 2, "the file is not UTF-8 text: byte 0xFF makes no sense here"),
        ];
        for &(bytes, place, message) in cases {
            let diagnostic = utf8(bytes).expect_err(message);
            assert_eq!((diagnostic.span.map(|span| span.start), diagnostic.message.as_str()), (Some(place), message));
        }
        assert_eq!(utf8("größer".as_bytes()), Ok("größer"));
    }
}
