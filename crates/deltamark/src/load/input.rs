//! Reading files, standard input and pipes under a control.
//!
//! In: something to read from. Out: a reader that ends with an error when the run must end. What stays true: a file that gives
//! nothing (a pipe, a terminal) keeps nobody waiting beyond the deadline; whatever wraps such a reader (a decoder, say)
//! ends with it.

use super::LoadError;
use deltamark_core::diagnostic::did_you_mean;
use deltamark_core::{Control, Stop};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Bytes that are read before it is asked whether to go on.
const PIECE: usize = 1 << 18;
/// How long nothing may come before it is asked whether to wait on.
const PATIENCE: Duration = Duration::from_millis(20);

/// Why reading ended, as the inside of an [`io::Error`].
#[derive(Debug)]
pub(crate) struct Stopped(pub Stop);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reading was ended ({})", self.0.word())
    }
}

impl std::error::Error for Stopped {}

impl From<Stopped> for io::Error {
    fn from(stopped: Stopped) -> Self {
        io::Error::other(stopped)
    }
}

/// Why the run must end, if that is what an error says.
pub(crate) fn stop_of(error: &io::Error) -> Option<Stop> {
    error.get_ref()?.downcast_ref::<Stopped>().map(|stopped| stopped.0)
}

/// A reader that never waits long, a regular file for instance.
pub(crate) struct Watched<'a, R> {
    inner: R,
    control: &'a Control,
}

impl<'a, R: Read> Watched<'a, R> {
    pub fn new(inner: R, control: &'a Control) -> Self {
        Watched { inner, control }
    }
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(PIECE);
        self.control.ask_for(most as u64).map_err(Stopped)?;
        self.inner.read(&mut buffer[..most])
    }
}

/// A reader that may wait for ever: somebody else waits for it. When the run ends first, that thread is left to its wait.
pub(crate) struct Patient<'a> {
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// What has come and was not read yet.
    rest: io::Cursor<Vec<u8>>,
    control: &'a Control,
}

impl<'a> Patient<'a> {
    /// Reads from what `open` opens, which may wait too.
    pub fn new<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static, control: &'a Control) -> Self {
        let (sender, pieces) = sync_channel(1);
        let read = move || {
            let mut inner = match open() {
                Ok(inner) => inner,
                Err(error) => return drop(sender.send(Err(error))),
            };
            loop {
                let mut piece = vec![0; PIECE];
                let read = inner.read(&mut piece);
                let last = match &read {
                    Ok(0) => true,
                    Ok(_) => false,
                    Err(error) => error.kind() != io::ErrorKind::Interrupted,
                };
                let sent = sender.send(read.map(|length| {
                    piece.truncate(length);
                    piece
                }));
                if last || sent.is_err() {
                    return;
                }
            }
        };
        // Without a thread the channel is closed at once, and reading says so.
        drop(std::thread::Builder::new().name("input".into()).spawn(read));
        Patient { pieces, rest: io::Cursor::default(), control }
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.control.ask_for(0).map_err(Stopped)?;
            let read = self.rest.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            match self.pieces.recv_timeout(PATIENCE) {
                Ok(Ok(piece)) if piece.is_empty() => return Ok(0),
                Ok(Ok(piece)) => self.rest = io::Cursor::new(piece),
                Ok(Err(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("no thread could be started to read it"));
                }
            }
        }
    }
}

/// Reads a file of at most `limit` bytes; `-` is the standard input.
pub fn read(path: &str, limit: u64) -> Result<Vec<u8>, LoadError> {
    read_under(path, limit, &Control::new())
}

/// The same, as far as `control` lets it.
pub fn read_under(path: &str, limit: u64, control: &Control) -> Result<Vec<u8>, LoadError> {
    let unreadable = |error: std::io::Error| {
        if let Some(stop) = stop_of(&error) {
            return LoadError::Stopped { path: path.into(), format: None, phase: "loading", stop };
        }
        use std::io::ErrorKind::{IsADirectory, NotFound, PermissionDenied};
        let (reason, help) = match error.kind() {
            NotFound => ("there is no such file".into(), similar_file(path)),
            IsADirectory => ("it is a folder".into(), Some("give the path of a file in it".into())),
            PermissionDenied => ("you have no permission to read it".into(), None),
            _ => (error.to_string(), None),
        };
        LoadError::Unreadable { path: path.into(), reason, help }
    };
    let read_all = |reader: &mut dyn Read| {
        let mut bytes = Vec::new();
        reader.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > limit {
            Err(LoadError::TooBig { path: path.into(), limit, unpacked: false })
        } else {
            Ok(bytes)
        }
    };
    if path == "-" {
        return read_all(&mut Patient::new(|| Ok(std::io::stdin()), control));
    }
    // Opening a pipe waits for somebody who writes to it.
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if about.is_dir() {
        return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
    }
    if !about.is_file() {
        let path = path.to_string();
        return read_all(&mut Patient::new(move || File::open(path), control));
    }
    let file = File::open(path).map_err(unreadable)?;
    // Told by its size before a byte is read; pipes and devices have none and are
    // caught while reading.
    if about.len() > limit {
        return Err(LoadError::TooBig { path: path.into(), limit, unpacked: false });
    }
    control.ask_for(about.len()).map_err(|stop| unreadable(Stopped(stop).into()))?;
    read_all(&mut Watched::new(file, control))
}

/// A file beside the missing one whose name is close to it.
fn similar_file(path: &str) -> Option<String> {
    let path = Path::new(path);
    let wrong = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let listing = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let names: Vec<String> =
        listing.take(10_000).filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let close = close_name(wrong, &names)?;
    let close = folder.map_or_else(|| close.into(), |folder| folder.join(close).display().to_string());
    Some(format!("did you mean `{close}`?"))
}

/// The name that is close to a wrong one. An ending that both share says nothing about
/// what was meant, so that it does not count as likeness.
fn close_name<'a>(wrong: &str, names: &'a [String]) -> Option<&'a str> {
    let stem = |name: &str| Path::new(name).file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let ending = Path::new(wrong).extension();
    let same_ending = |name: &&String| Path::new(name).extension() == ending;
    let stems: Vec<(String, &str)> =
        names.iter().filter(same_ending).filter_map(|name| Some((stem(name)?, name.as_str()))).collect();
    let wrong_stem = stem(wrong)?;
    if let Some(close) = did_you_mean(&wrong_stem, stems.iter().map(|(stem, _)| stem.as_str())) {
        return stems.iter().find(|(stem, _)| stem == close).map(|&(_, name)| name);
    }
    // The same name with another ending: `ring.pnml` for `ring.net`, or none at all.
    names.iter().map(String::as_str).find(|name| stem(name).as_ref() == Some(&wrong_stem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Gives its bytes in small pieces, then an end.
    struct Drops(Vec<u8>);

    impl Read for Drops {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.0.len().min(buffer.len()).min(3);
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0.drain(..length);
            Ok(length)
        }
    }

    /// Gives nothing, for a long time.
    struct Silence;

    impl Read for Silence {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            std::thread::sleep(Duration::from_secs(600));
            Ok(0)
        }
    }

    #[test]
    fn all_bytes_come_in_order() {
        let bytes: Vec<u8> = (0..100).collect();
        let control = Control::new();
        for round in 0..2 {
            let mut read = Vec::new();
            let drops = Drops(bytes.clone());
            match round {
                0 => Watched::new(drops, &control).read_to_end(&mut read),
                _ => Patient::new(move || Ok(drops), &control).read_to_end(&mut read),
            }
            .unwrap();
            assert_eq!(read, bytes);
        }
        let missing = Patient::new(|| Err::<Silence, _>(io::ErrorKind::NotFound.into()), &control).read(&mut [0]);
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn nobody_waits_for_silence_beyond_the_deadline() {
        let began = Instant::now();
        let deadline = Some(began + Duration::from_millis(50));
        let control = Control { deadline, clock: || Some(Instant::now()), ..Control::new() };
        let error = Patient::new(|| Ok(Silence), &control).read(&mut [0]).unwrap_err();
        assert_eq!(stop_of(&error), Some(Stop::Time));
        assert!(began.elapsed() < Duration::from_secs(60));
        control.cancel.cancel();
        let error = Watched::new(&b"text"[..], &control).read(&mut [0]).unwrap_err();
        assert_eq!(stop_of(&error), Some(Stop::Cancelled));
    }

    #[test]
    fn a_close_name_is_close_in_its_stem() {
        let names: Vec<String> = ["ok.net", "handover.net", "ring.pnml"].map(String::from).into();
        let cases = [
            ("nope.net", None),
            ("handovr.net", Some("handover.net")),
            ("ring.net", Some("ring.pnml")),
            ("handover", Some("handover.net")),
            ("x.net", None),
        ];
        for (wrong, expected) in cases {
            assert_eq!(close_name(wrong, &names), expected, "{wrong}");
        }
    }
}
