//! From the bytes of a file to the text of a model: archives and encodings.
//!
//! In: bytes as they were read, the file's name, the most bytes to make of them. Out: UTF-8 text without byte order mark, and
//! the name that gives its format, or what is wrong. What stays true: what is packed is counted while it is unpacked, so that a small
//! archive cannot become more than the limit; names in an archive give formats only, nothing is written; what does not decode is
//! refused, never replaced; places in messages are those of the decoded text.

use super::input::{Watched, stop_of};
use deltamark_core::{Control, Diagnostic, Stop, text};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::borrow::Cow;
use std::io::{Cursor, ErrorKind, Read};
use std::path::Path;
use zip::CompressionMethod;
use zip::result::ZipError;

/// What came out of a file.
pub(crate) struct Unpacked<'a> {
    /// The text, or whatever it is where nothing says that it is text.
    pub bytes: Cow<'a, [u8]>,
    /// The name whose ending gives the format: that of the file, or of the file in the archive.
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
    if bytes.starts_with(GZIP) {
        unpacked = Unpacked { bytes: Cow::Owned(gunzipped(bytes, limit, control)?), name: without_gz(name) };
    } else if bytes.starts_with(ZIP) || bytes.starts_with(EMPTY_ZIP) {
        unpacked = only_file(bytes, limit, control)?;
    } else if bytes.starts_with(PART_OF_ZIP) {
        let message = "the file is one part of a zip archive of several, which is not read";
        return Err(Diagnostic::new(message).help(UNPACK).into());
    }
    let outer = matches!(unpacked.bytes, Cow::Owned(_));
    if let Some(kind) = packed_as(&unpacked.bytes) {
        let message = match outer {
            true => format!("there is {kind} in the archive, where a model is expected"),
            false => format!("the file is {kind}, which is not read"),
        };
        return Err(Diagnostic::new(message).help(UNPACK).into());
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

/// How a file in each format begins.
const GZIP: &[u8] = &[0x1F, 0x8B];
const ZIP: &[u8] = b"PK\x03\x04";
const EMPTY_ZIP: &[u8] = b"PK\x05\x06";
const PART_OF_ZIP: &[u8] = b"PK\x07\x08";

const UNPACK: &str = "unpack it, and give the model itself; gzip and zip are read, each with one model in it";
const AGAIN: &str = "it may have been cut off or changed on its way: fetch or pack it again";

/// What bytes are packed as, in a few words.
fn packed_as(bytes: &[u8]) -> Option<&'static str> {
    const KINDS: &[(&[u8], &str)] = &[
        (GZIP, "a gzip file"),
        (ZIP, "a zip archive"),
        (EMPTY_ZIP, "a zip archive"),
        (b"\xFD7zXZ\0", "packed by xz"),
        (b"BZh", "packed by bzip2"),
        (b"\x28\xB5\x2F\xFD", "packed by zstd"),
        (b"7z\xBC\xAF\x27\x1C", "a 7-Zip archive"),
        (b"Rar!\x1A\x07", "a RAR archive"),
    ];
    let tar = bytes.get(257..262) == Some(b"ustar");
    KINDS.iter().find(|(start, _)| bytes.starts_with(start)).map(|&(_, kind)| kind).or(tar.then_some("a tar archive"))
}

/// The name of what is in a gzip file of this name.
fn without_gz(name: &str) -> String {
    let path = Path::new(name);
    let packed = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    if packed { path.with_extension("").display().to_string() } else { name.into() }
}

/// What the members of a gzip file hold. Zeros may follow, with which some tools pad.
fn gunzipped(bytes: &[u8], limit: u64, control: &Control) -> Result<Vec<u8>, Failed> {
    let (mut inner, mut rest) = (Vec::new(), bytes);
    while rest.starts_with(GZIP) {
        let mut member = flate2::bufread::GzDecoder::new(rest);
        let found = bounded(Watched::new(&mut member, control), limit - inner.len() as u64, "gzip file")?;
        rest = member.into_inner();
        if inner.is_empty() { inner = found } else { inner.extend(found) }
    }
    if rest.iter().all(|&byte| byte == 0) {
        return Ok(inner);
    }
    Err(Diagnostic::new("the gzip file is followed by other bytes").help(AGAIN).into())
}

/// All that comes out of a reader, if it is not too much.
fn bounded(reader: impl Read, limit: u64, kind: &str) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    let mut reader = reader.take(limit + 1);
    reader.read_to_end(&mut bytes).map_err(|error| {
        if let Some(stop) = stop_of(&error) {
            return Failed::Stopped(stop);
        }
        let message = match error.kind() {
            ErrorKind::UnexpectedEof => format!("the {kind} ends too early"),
            _ if error.to_string().contains("checksum") => format!("the {kind} is damaged: its checksum is wrong"),
            _ => format!("the {kind} is damaged ({error})"),
        };
        Diagnostic::new(message).help(AGAIN).into()
    })?;
    if bytes.len() as u64 > limit { Err(Failed::TooBig) } else { Ok(bytes) }
}

/// The one file of a zip archive.
fn only_file<'a>(bytes: &[u8], limit: u64, control: &Control) -> Result<Unpacked<'a>, Failed> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(not_opened)?;
    // What some systems add to every archive is no model.
    let added = |name: &str| name.starts_with("__MACOSX/") || name.rsplit('/').next().unwrap_or(name).starts_with('.');
    let mut names = Vec::new();
    for name in archive.file_names() {
        let name = name.map_err(not_opened)?.into_owned();
        if !name.ends_with('/') && !added(&name) {
            names.push(name);
        }
    }
    let [name] = names.as_slice() else {
        let message = match names.len() {
            0 => "the zip archive is empty, where one model is expected".to_string(),
            count => format!("the zip archive holds {count} files, where one model is expected"),
        };
        let some = names.iter().take(5).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let help = match names.len() {
            0 => "give the model itself".to_string(),
            1..=5 => format!("unpack it, and give the model itself; it holds {some}"),
            _ => format!("unpack it, and give the model itself; it holds {some} and others"),
        };
        return Err(Diagnostic::new(message).help(help).into());
    };
    // Which of them is meant nobody can say, and the library shows the last.
    if archive.has_duplicate_names() {
        let message = "the zip archive holds several files of the same name, where one model is expected";
        return Err(Diagnostic::new(message).help(UNPACK).into());
    }
    let file = archive.by_name(name).map_err(not_opened)?;
    // Others are reported by the library when the first byte is read, as if the archive were damaged.
    if !matches!(file.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
        let message = "the file in the zip archive is packed by a method that is not read";
        return Err(Diagnostic::new(message).help("pack it again by deflate, or give the model itself").into());
    }
    let bytes = bounded(Watched::new(file, control), limit, "zip archive")?;
    Ok(Unpacked { bytes: Cow::Owned(bytes), name: name.clone() })
}

/// Why a zip archive, or a file in it, cannot be read.
fn not_opened(error: ZipError) -> Diagnostic {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) | ZipError::InvalidPassword => {
            Diagnostic::new("the file in the zip archive is encrypted").help("unpack it with its password")
        }
        ZipError::UnsupportedArchive(what) => {
            Diagnostic::new(format!("the zip archive is of a kind that is not read ({what})")).help(UNPACK)
        }
        ZipError::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Diagnostic::new("the zip archive ends too early").help(AGAIN)
        }
        ZipError::InvalidArchive(why) if why.contains("EOCD") => {
            Diagnostic::new("the zip archive ends too early: its table of contents is missing").help(AGAIN)
        }
        error => Diagnostic::new(format!("the zip archive is damaged ({error})")).help(AGAIN),
    }
}

/// The text, where the bytes are not UTF-8 without a byte order mark already: as their mark says, or their XML declaration.
fn decode(bytes: &[u8]) -> Result<Option<String>, Diagnostic> {
    text::refuse_utf32(bytes)?;
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
        // Invalid UTF-8 is reported with its place by the reader.
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
            (zip(&[("../../etc/y.net", b"plain")]), "x.zip", ("plain", "../../etc/y.net")),
            (zip(&[("/etc/y.net", b"plain")]), "x.zip", ("plain", "/etc/y.net")),
            ([gzip(b"pl"), gzip(b"ain")].concat(), "x.net.gz", ("plain", "x.net")),
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
        let packed = gzip(b"some words");
        let archive = zip(&[("x.net", b"pl a (1)")]);
        let changed = |bytes: &[u8], at: usize| {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 1;
            bytes
        };
        let mut tar = vec![b'x'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        // The headers of the file, at its start and in the table of contents, and their fields: flags, method, checksum.
        let central = archive.windows(4).position(|bytes| bytes == b"PK\x01\x02").expect("a table of contents");
        let mut encrypted = archive.clone();
        (encrypted[6], encrypted[central + 8]) = (encrypted[6] | 1, encrypted[central + 8] | 1);
        let mut foreign = archive.clone();
        (foreign[8], foreign[central + 10]) = (97, 97);
        let stored_wrong = changed(&changed(&archive, 14), central + 16);
        let mut twice = zip(&[("a.net", b"1"), ("b.net", b"2")]);
        for at in 0..twice.len() - 5 {
            if &twice[at..at + 5] == b"b.net" {
                twice[at] = b'a';
            }
        }
        let cases: Vec<(Vec<u8>, &str)> = vec![
            (bomb, "too big"),
            (zip(&[("x", &[0; 100_000])]), "too big"),
            (gzip(&zip(&[("x", b"1")])), "there is a zip archive in the archive, where a model is expected"),
            (zip(&[("x", &gzip(b"1"))]), "there is a gzip file in the archive, where a model is expected"),
            (gzip(&tar), "there is a tar archive in the archive, where a model is expected"),
            (tar, "the file is a tar archive, which is not read"),
            (b"\xFD7zXZ\0".to_vec(), "the file is packed by xz, which is not read"),
            (b"BZh91AY".to_vec(), "the file is packed by bzip2, which is not read"),
            (packed[..20].to_vec(), "the gzip file ends too early"),
            (packed[..5].to_vec(), "the gzip file ends too early"),
            (changed(&packed, packed.len() - 6), "the gzip file is damaged: its checksum is wrong"),
            ([&packed[..], b"some more words"].concat(), "the gzip file is followed by other bytes"),
            ([&packed[..], b"x"].concat(), "the gzip file is followed by other bytes"),
            ([&packed[..], b"\x1F\x8B"].concat(), "the gzip file ends too early"),
            (b"PK\x03\x04 and no more".to_vec(), "the zip archive ends too early: its table of contents is missing"),
            (archive[..archive.len() / 2].to_vec(), "the zip archive ends too early: its table of contents is missing"),
            (stored_wrong, "the zip archive is damaged: its checksum is wrong"),
            (encrypted, "the file in the zip archive is encrypted"),
            (foreign, "the file in the zip archive is packed by a method that is not read"),
            (twice, "the zip archive holds several files of the same name, where one model is expected"),
            (zip(&[]), "the zip archive is empty, where one model is expected"),
            (zip(&[("a/", b"")]), "the zip archive is empty, where one model is expected"),
            (zip(&[("a", b"1"), ("b", b"2")]), "the zip archive holds 2 files, where one model is expected"),
            (b"PK\x07\x08 more".to_vec(), "the file is one part of a zip archive of several, which is not read"),
            (
                b"<?xml encoding='EBCDIC-X'?>".to_vec(),
                "the file says that its encoding is `EBCDIC-X`, which is not known",
            ),
            (
                b"<?xml encoding='UTF-16'?>".to_vec(),
                "the file says that its encoding is `UTF-16`, but a character takes one byte in it",
            ),
            (b"\xFF\xFE\x00\xD8".to_vec(), "the file is not text in UTF-16LE, as it says"),
            (b"\xFF\xFE\0\0<\0\0\0".to_vec(), "the file is in UTF-32"),
            (b"<\0\0\0?\0\0\0".to_vec(), "the file is in UTF-32"),
            (b"<?xml encoding='Shift_JIS'?>\xFF".to_vec(), "the file is not text in Shift_JIS, as it says"),
        ];
        for (bytes, expected) in cases {
            let wrong = out(&bytes, "x", 10_000).expect_err(expected);
            assert!(wrong.starts_with(expected), "{wrong}");
        }
    }
}
