//! From the bytes of a file to a net, whatever is in them.
//!
//! In: a format and bytes from outside. Out: a [`Net`] that [`Net::validate`] accepts, or
//! diagnostics. What stays true: nothing here panics, and memory stays within a small
//! multiple of the input, which is capped at [`LARGEST_FILE`].

use std::path::Path;

use deltamark_core::{Diagnostic, Span};

use crate::{Net, pnml, tina};

/// Files larger than this are refused: 256 MiB.
pub const LARGEST_FILE: usize = 256 << 20;

/// A file format for P/T nets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// PNML, the XML format of ISO 15909-2.
    Pnml,
    /// TINA's textual format.
    Tina,
}

impl Format {
    /// Every format, for lists and help texts.
    pub const ALL: [Format; 2] = [Format::Pnml, Format::Tina];

    /// The format a file name's ending speaks of: `.pnml` and `.xml`, or `.net`.
    pub fn from_path(path: impl AsRef<Path>) -> Option<Format> {
        let extension = path.as_ref().extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "pnml" | "xml" => Some(Format::Pnml),
            "net" => Some(Format::Tina),
            _ => None,
        }
    }

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Format::Pnml => "pnml",
            Format::Tina => "net",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Reads a net. Spans are offsets into `bytes`; where the bytes are no text, everything
/// before the span still is.
pub fn parse_bytes(format: Format, bytes: &[u8]) -> Result<Net, Vec<Diagnostic>> {
    let text = text_of(bytes).map_err(|diagnostic| vec![diagnostic])?;
    match format {
        Format::Pnml => pnml::parse(text),
        Format::Tina => tina::parse(text),
    }
}

/// The bytes as text, or why they are none.
fn text_of(bytes: &[u8]) -> Result<&str, Diagnostic> {
    if bytes.len() > LARGEST_FILE {
        let size = bytes.len() >> 20;
        return Err(Diagnostic::new(format!(
            "the file is too large: {size} MiB, where at most {} are read",
            LARGEST_FILE >> 20
        )));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Diagnostic::at(Span::at(0), "the file is empty"));
    }
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

fn looks_wide(four: &[u8]) -> bool {
    (four[0] == 0) != (four[1] == 0) && (four[0] == 0) == (four[2] == 0) && (four[1] == 0) == (four[3] == 0)
}
