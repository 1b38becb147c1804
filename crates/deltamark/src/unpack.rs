//! From the bytes of a file to the text of a model: archives and encodings.
//!
//! In: bytes as they were read, the file's name, the most bytes to make of them. Out: UTF-8 text without byte order mark, and
//! the name that tells its format, or what is wrong. What stays true: what is packed is counted while it is unpacked, so that a small
//! archive cannot become more than the limit; what does not decode is refused, never replaced; places in messages are those of the
//! decoded text.

use crate::input::{Watched, stop_of};
use deltamark_core::{Control, Diagnostic, Stop};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::borrow::Cow;
use std::io::{Cursor, Read};
use std::path::Path;

/// What came out of a file.
pub(crate) struct Unpacked<'a> {
    /// The text, or whatever it is where nothing says that it is text.
    pub bytes: Cow<'a, [u8]>,
    /// The name whose ending tells the format: that of the file, or of the file in the archive.
    pub name: String,
}

/// Why nothing came out.
pub(crate) enum Failed {
    /// It is larger than the limit.
    TooBig,
    /// The run must end.
    Stopped(Stop),
    /// Something is wrong with it.
    Wrong(Diagnostic),
}

impl From<Diagnostic> for Failed {
    fn from(diagnostic: Diagnostic) -> Self {
        Failed::Wrong(diagnostic)
    }
}

/// Takes bytes out of gzip or a zip archive, if they are in one, and decodes them.
pub(crate) fn unpack<'a>(bytes: &'a [u8], name: &str, limit: u64, control: &Control) -> Result<Unpacked<'a>, Failed> {
    let mut unpacked = Unpacked { bytes: Cow::Borrowed(bytes), name: name.into() };
    if bytes.starts_with(&[0x1F, 0x8B]) {
        let reader = Watched::new(flate2::read::MultiGzDecoder::new(bytes), control);
        let inner = bounded(reader, limit, "the file is damaged: it is no sound gzip file")?;
        let path = Path::new(name);
        let packed = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
        let name = if packed { path.with_extension("").display().to_string() } else { name.into() };
        unpacked = Unpacked { bytes: Cow::Owned(inner), name };
    } else if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        unpacked = only_file(bytes, limit, control)?;
    }
    if unpacked.bytes.starts_with(&[0x1F, 0x8B]) || unpacked.bytes.starts_with(b"PK\x03\x04") {
        return Err(Diagnostic::new("there is an archive in the archive").help("unpack the outer one").into());
    }
    control.ask_for(unpacked.bytes.len() as u64).map_err(Failed::Stopped)?;
    if let Some(decoded) = decode(&unpacked.bytes)? {
        if decoded.len() as u64 > limit {
            return Err(Failed::TooBig);
        }
        unpacked.bytes = Cow::Owned(decoded.into_bytes());
    }
    Ok(unpacked)
}

/// All that comes out of a reader, if it is not too much.
fn bounded(reader: impl Read, limit: u64, wrong: &str) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    let mut reader = reader.take(limit + 1);
    reader.read_to_end(&mut bytes).map_err(|error| match stop_of(&error) {
        Some(stop) => Failed::Stopped(stop),
        None => Diagnostic::new(format!("{wrong} ({error})")).into(),
    })?;
    if bytes.len() as u64 > limit { Err(Failed::TooBig) } else { Ok(bytes) }
}

/// The one file of a zip archive.
fn only_file<'a>(bytes: &[u8], limit: u64, control: &Control) -> Result<Unpacked<'a>, Failed> {
    const DAMAGED: &str = "the file is damaged: it is no sound zip archive";
    let damaged = |error: zip::result::ZipError| Diagnostic::new(format!("{DAMAGED} ({error})"));
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    // What some systems add to every archive is no model.
    let added = |name: &str| name.starts_with("__MACOSX/") || name.rsplit('/').next().unwrap_or(name).starts_with('.');
    let mut names = Vec::new();
    for name in archive.file_names() {
        let name = name.map_err(damaged)?.into_owned();
        if !name.ends_with('/') && !added(&name) {
            names.push(name);
        }
    }
    let [name] = names.as_slice() else {
        let message = format!("the archive holds {} files, where one model is expected", names.len());
        let some = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        return Err(Diagnostic::new(message).help(format!("unpack it and give the model itself ({some})")).into());
    };
    let file = archive.by_name(name).map_err(damaged)?;
    let bytes = bounded(Watched::new(file, control), limit, DAMAGED)?;
    Ok(Unpacked { bytes: Cow::Owned(bytes), name: name.clone() })
}

/// The text, where the bytes are not UTF-8 without a byte order mark already: as their mark says, or their XML declaration.
fn decode(bytes: &[u8]) -> Result<Option<String>, Diagnostic> {
    let marked = Encoding::for_bom(bytes);
    let declared = declared(bytes);
    let (encoding, mark) = match marked {
        Some((encoding, length)) => (encoding, length),
        // Two bytes a character, by the `<` that XML begins with.
        None if bytes.starts_with(b"<\0") => (UTF_16LE, 0),
        None if bytes.starts_with(b"\0<") => (UTF_16BE, 0),
        None => {
            let Some(label) = declared else { return Ok(None) };
            let Some(encoding) = Encoding::for_label(label.as_bytes()) else {
                let message = format!("the file says that its encoding is `{label}`, which is not known");
                return Err(Diagnostic::new(message).help("save it as UTF-8"));
            };
            if encoding == UTF_16LE || encoding == UTF_16BE {
                let message =
                    format!("the file says that its encoding is `{label}`, but a character takes one byte in it");
                return Err(Diagnostic::new(message).help("correct the first line, or save the file as UTF-8"));
            }
            (encoding, 0)
        }
    };
    if encoding == UTF_8 && mark == 0 {
        return Ok(None);
    }
    match encoding.decode_without_bom_handling_and_without_replacement(&bytes[mark..]) {
        Some(text) => Ok(Some(text.into_owned())),
        // What is wrong with UTF-8 is told with its place by whoever reads it.
        None if encoding == UTF_8 => Ok(None),
        None => {
            let message = format!("the file is not text in {}, as it says", encoding.name());
            Err(Diagnostic::new(message).help("save it as UTF-8"))
        }
    }
}

/// The encoding that an XML declaration names.
fn declared(bytes: &[u8]) -> Option<&str> {
    let start = &bytes[..bytes.len().min(300)];
    let declaration = start.strip_prefix(b"<?xml")?;
    let end = declaration.windows(2).position(|pair| pair == b"?>")?;
    let declaration = std::str::from_utf8(&declaration[..end]).ok()?;
    let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value[1..].split_once(quote).map(|(label, _)| label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory takes everything");
        encoder.finish().expect("memory takes everything")
    }

    fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            let options = zip::write::SimpleFileOptions::default();
            archive.start_file(*name, options).expect("memory takes everything");
            archive.write_all(bytes).expect("memory takes everything");
        }
        archive.finish().expect("memory takes everything").into_inner()
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    /// What comes out, with the name; or what is wrong.
    fn out(bytes: &[u8], name: &str, limit: u64) -> Result<(String, String), String> {
        match unpack(bytes, name, limit, &Control::new()) {
            Ok(found) => Ok((String::from_utf8_lossy(&found.bytes).into_owned(), found.name)),
            Err(Failed::TooBig) => Err("too big".into()),
            Err(Failed::Stopped(stop)) => Err(stop.word().into()),
            Err(Failed::Wrong(diagnostic)) => Err(diagnostic.message),
        }
    }

    #[test]
    fn archives_and_encodings_are_undone() {
        let latin = b"<?xml version='1.0' encoding=\"ISO-8859-1\"?><a>\xE9</a>";
        let latin_text = "<?xml version='1.0' encoding=\"ISO-8859-1\"?><a>é</a>";
        let cases: Vec<(Vec<u8>, &str, (&str, &str))> = vec![
            (b"plain".to_vec(), "x.net", ("plain", "x.net")),
            (gzip(b"plain"), "x.net.gz", ("plain", "x.net")),
            (gzip(b"plain"), "x.GZ", ("plain", "x")),
            (gzip(b"plain"), "-", ("plain", "-")),
            (zip(&[("dir/y.pnml", b"plain")]), "x.zip", ("plain", "dir/y.pnml")),
            (zip(&[("__MACOSX/y", b"1"), ("y.net", b"plain"), (".DS_Store", b"2")]), "x.zip", ("plain", "y.net")),
            (b"\xEF\xBB\xBFplain".to_vec(), "x", ("plain", "x")),
            (utf16("\u{FEFF}größer", u16::to_le_bytes), "x", ("größer", "x")),
            (utf16("\u{FEFF}größer", u16::to_be_bytes), "x", ("größer", "x")),
            (utf16("<a>ß</a>", u16::to_le_bytes), "x", ("<a>ß</a>", "x")),
            (utf16("<a>ß</a>", u16::to_be_bytes), "x", ("<a>ß</a>", "x")),
            (latin.to_vec(), "x", (latin_text, "x")),
            (gzip(latin), "x", (latin_text, "x")),
            (b"<?xml encoding='windows-1252'?>\x80".to_vec(), "x", ("<?xml encoding='windows-1252'?>€", "x")),
            (b"<?xml encoding='utf-8'?>\xC3\xA9".to_vec(), "x", ("<?xml encoding='utf-8'?>é", "x")),
        ];
        for (bytes, name, (text, inner)) in cases {
            assert_eq!(out(&bytes, name, 1 << 20), Ok((text.to_string(), inner.to_string())), "{name}");
        }
    }

    #[test]
    fn what_does_not_come_out_is_told() {
        let bomb = gzip(&vec![0; 1 << 20]);
        let cases: Vec<(Vec<u8>, &str)> = vec![
            (bomb, "too big"),
            (zip(&[("x", &[0; 100_000])]), "too big"),
            (gzip(&zip(&[("x", b"1")])), "there is an archive in the archive"),
            (gzip(b"some words")[..20].to_vec(), "the file is damaged: it is no sound gzip file"),
            (b"PK\x03\x04 and no more".to_vec(), "the file is damaged: it is no sound zip archive"),
            (zip(&[]), "the archive holds 0 files, where one model is expected"),
            (zip(&[("a", b"1"), ("b", b"2")]), "the archive holds 2 files, where one model is expected"),
            (
                b"<?xml encoding='EBCDIC-X'?>".to_vec(),
                "the file says that its encoding is `EBCDIC-X`, which is not known",
            ),
            (
                b"<?xml encoding='UTF-16'?>".to_vec(),
                "the file says that its encoding is `UTF-16`, but a character takes one byte in it",
            ),
            (b"\xFF\xFE\x00\xD8".to_vec(), "the file is not text in UTF-16LE, as it says"),
            (b"<?xml encoding='Shift_JIS'?>\xFF".to_vec(), "the file is not text in Shift_JIS, as it says"),
        ];
        for (bytes, expected) in cases {
            let wrong = out(&bytes, "x", 10_000).expect_err(expected);
            assert!(wrong.starts_with(expected), "{wrong}");
        }
    }
}
