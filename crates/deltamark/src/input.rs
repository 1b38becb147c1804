//! Reading under a control.
//!
//! In: something to read from. Out: a reader that ends with an error when the run must end. What stays true: a file that gives
//! nothing (a pipe, a terminal) keeps nobody waiting beyond the deadline; whatever is laid over such a reader (a decoder, say)
//! ends with it.

use deltamark_core::{Control, Stop};
use std::fmt;
use std::io::{self, Read};
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
}
