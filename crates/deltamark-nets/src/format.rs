//! From the bytes of a file to a net.
//!
//! In: a format and untrusted bytes. Out: a [`Net`] that [`Net::validate`] accepts, or diagnostics. What stays
//! true: nothing here panics, and memory stays within a small multiple of the input, which is capped at
//! [`LARGEST_FILE`].

use std::path::Path;

use deltamark_core::{Control, Diagnostic, text::utf8};

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

    /// The format by the extension of a file name: `.pnml` and `.xml`, or `.net`.
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

/// Reads a net. Spans are offsets into `bytes`; if the bytes are not UTF-8, everything before the span is.
pub fn parse_bytes(format: Format, bytes: &[u8]) -> Result<Net, Vec<Diagnostic>> {
    parse_bytes_under(format, bytes, &Control::new())
}

/// The same, unless `control` stops it: then the only diagnostic is the stop.
pub fn parse_bytes_under(format: Format, bytes: &[u8], control: &Control) -> Result<Net, Vec<Diagnostic>> {
    let text = text_of(bytes).map_err(|diagnostic| vec![diagnostic])?;
    match format {
        Format::Pnml => pnml::parse_under(text, control),
        Format::Tina => tina::parse_under(text, control),
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
    utf8(bytes)
}
