//! Output streams, files and their appearance.
//!
//! In: texts and files to write. Out: bytes on standard output or whole files. What stays true: colours and
//! ticks appear only on terminals that show them; a reader that went away (`| head`) gets no message, and the
//! exit code records that not all was written; a slow reader (`| less`) is waited for until the run must end; a
//! file is complete or does not exist.

use crate::exit::Failure;
use deltamark::condensed::unfinished::Unfinished;
use deltamark::control::Control;
use deltamark::load::FORMATS;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The appearance of text.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    colour: bool,
    /// Whether ticks and crosses can be shown.
    pub ticks: bool,
    /// Between an old and a new value.
    pub arrow: &'static str,
    /// Before removed tokens.
    pub minus: &'static str,
    /// The width to wrap at.
    pub width: usize,
    /// Whether a person reads this in a terminal. Elsewhere lines are not wrapped, because programs may read
    /// them.
    pub terminal: bool,
}

/// A colour of the terminal.
#[derive(Clone, Copy, Debug)]
pub enum Colour {
    /// For success.
    Green,
    /// For failure.
    Red,
    /// For no answer.
    Yellow,
    /// For headings.
    Bold,
}

impl Look {
    /// For standard output.
    pub fn stdout() -> Self {
        let stream = io::stdout();
        Self::on(stream.is_terminal(), terminal_size::terminal_size_of(stream))
    }

    /// For standard error.
    pub fn stderr() -> Self {
        let stream = io::stderr();
        Self::on(stream.is_terminal(), terminal_size::terminal_size_of(stream))
    }

    /// For a file.
    #[cfg(test)]
    pub fn plain() -> Self {
        Self::on(false, None)
    }

    fn on(terminal: bool, size: Option<(terminal_size::Width, terminal_size::Height)>) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        let unicode = locale.contains("utf-8") || locale.contains("utf8") || cfg!(windows) || cfg!(target_os = "macos");
        let given = set("COLUMNS").and_then(|columns| columns.to_str()?.parse().ok());
        Look {
            colour: terminal && !dumb && set("NO_COLOR").is_none(),
            ticks: terminal && !dumb && unicode,
            arrow: if terminal && !unicode { "->" } else { "→" },
            minus: if terminal && !unicode { "-" } else { "−" },
            width: width(terminal, given, size.map(|(width, _)| width.0.into())),
            terminal,
        }
    }

    /// Whether colours may be used.
    pub fn colour(&self) -> bool {
        self.colour
    }

    /// The text in a colour, if colours may be used.
    pub fn paint(&self, colour: Colour, text: &str) -> String {
        if !self.colour {
            return text.into();
        }
        let code = match colour {
            Colour::Green => "32",
            Colour::Red => "31",
            Colour::Yellow => "33",
            Colour::Bold => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// The width to wrap at: `COLUMNS` if the user sets it, or that of the terminal. Other outputs have no width;
/// texts are wrapped there at the width of a page.
fn width(terminal: bool, given: Option<usize>, asked: Option<usize>) -> usize {
    const PAGE: usize = 100;
    const UNKNOWN: usize = 80;
    if !terminal {
        return PAGE;
    }
    let sensible = |width: &usize| *width > 0;
    given.filter(sensible).or(asked.filter(sensible)).unwrap_or(UNKNOWN).clamp(40, 200)
}

/// Writes to standard output. A slow reader is waited for, and a second longer than `control` lets the run go on.
pub fn print(control: &Control, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    #[cfg(unix)]
    if let Ok(stream) = Stream::new(io::stdout()) {
        return print_to(Patient::new(stream, control), "output", write);
    }
    print_to(io::stdout().lock(), "output", write)
}

/// Writes a line to standard error. If that fails nothing can be reported; the exit code remains.
pub fn tell(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The same on standard error, for a report whose place on standard output is taken.
pub fn print_aside(control: &Control, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    #[cfg(unix)]
    if let Ok(stream) = Stream::new(io::stderr()) {
        return print_to(Patient::new(stream, control), "error", write);
    }
    print_to(io::stderr().lock(), "error", write)
}

fn print_to(
    stream: impl Write,
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    match fill(stream, write) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Unread),
        Err(error) => {
            let failure = Failure::new(format!("cannot write to standard {name}: {error}"));
            Err(if error.kind() == io::ErrorKind::TimedOut { failure.no_answer() } else { failure })
        }
        Ok(()) => Ok(()),
    }
}

/// Writes a file under a temporary name first, so that it is complete or does not exist. `-` is standard
/// output; what is no regular file (a pipe, `/dev/null`) is written in place, without waiting for its reader
/// when `control` stops the run.
pub fn write_file(
    path: &str,
    control: &Control,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    if path == "-" {
        return print(control, write);
    }
    let target = Path::new(path);
    let failed = |error: io::Error| unwritable(path, &error);
    let mut once = Some(write);
    let mut write = |out: &mut dyn Write| once.take().map_or(Ok(()), |write| write(out));
    if let Ok(about) = fs::metadata(target) {
        if about.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        if !about.is_file() {
            return open_pipe(target, control).and_then(|pipe| fill(pipe, &mut write)).map_err(failed);
        }
    }
    let beside = Unfinished::new(beside(target));
    let done = File::create(beside.path()).and_then(|file| fill(file, &mut write));
    done.and_then(|()| fs::rename(beside.path(), target)).map_err(failed)
}

fn fill(file: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()
}

/// A pipe or a device, opened so that nobody waits in it for a reader.
fn open_pipe<'a>(path: &Path, control: &'a Control) -> io::Result<Patient<'a, File>> {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = patiently(control, || options.open(path))?;
    Ok(Patient::new(file, control))
}

/// What may have nobody who reads it. It does not wait itself: it says [`WouldBlock`](io::ErrorKind::WouldBlock).
struct Patient<'a, W> {
    stream: W,
    control: &'a Control,
    /// Whether it was blocked for too long. It is not waited for again.
    given_up: bool,
}

impl<'a, W> Patient<'a, W> {
    fn new(stream: W, control: &'a Control) -> Self {
        Patient { stream, control, given_up: false }
    }
}

impl<W: Write> Write for Patient<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.given_up {
            return Err(unread());
        }
        let written = patiently(self.control, || self.stream.write(bytes));
        self.given_up = written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Standard output or standard error, which others may share: so it stays as it is, and is asked before each page
/// whether it takes one.
#[cfg(unix)]
struct Stream(File);

#[cfg(unix)]
impl Stream {
    /// What a pipe takes as a whole or not at all, wherever it is ready for writing.
    const PAGE: usize = 4096;
    /// What a pipe may hold: enough for most reports, so that who reads slowly keeps nobody waiting.
    #[cfg(target_os = "linux")]
    const ROOM: usize = 1 << 20;

    fn new(stream: impl std::os::fd::AsFd) -> io::Result<Self> {
        let file = File::from(stream.as_fd().try_clone_to_owned()?);
        // Where it is no pipe, or may hold no more, it stays as it is.
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&file, Self::ROOM);
        Ok(Stream(file))
    }

    /// Whether it takes a page now, or soon.
    fn is_ready(&self) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        const SOON: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        match poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], Some(&SOON)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(unix)]
impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_ready()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.0.write(&bytes[..bytes.len().min(Self::PAGE)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Retries while there is no reader, or a slow one; a second longer than `control` allows, so that the output
/// is not lost.
fn patiently<T>(control: &Control, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    const PAUSE: Duration = Duration::from_millis(5);
    const GRACE: Duration = Duration::from_secs(1);
    let mut since = None;
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || has_no_reader(&error) => {}
            done => return done,
        }
        if control.stop_without_memory().is_some() && since.get_or_insert_with(Instant::now).elapsed() > GRACE {
            return Err(unread());
        }
        std::thread::sleep(PAUSE);
    }
}

fn unread() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "nobody reads it")
}

#[cfg(unix)]
fn has_no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENXIO)
}

#[cfg(not(unix))]
fn has_no_reader(_: &io::Error) -> bool {
    false
}

/// Refuses, before anything runs, outputs that would overwrite one of the inputs, each with its description,
/// or one another. `-` is standard output.
pub fn keep_inputs(outputs: &[Option<&str>], inputs: &[(&str, &str)]) -> Result<(), Failure> {
    let outputs: Vec<&str> = outputs.iter().flatten().copied().filter(|output| *output != "-").collect();
    for (number, output) in outputs.iter().enumerate() {
        let Some(target) = resolved(output) else { continue };
        let same = |path: &str| path != "-" && resolved(path).as_ref() == Some(&target);
        if let Some((what, _)) = inputs.iter().find(|(_, path)| same(path)) {
            return Err(Failure::new(format!("`{output}` is {what} itself and would be overwritten"))
                .help("give the output another name"));
        }
        if outputs[..number].iter().any(|other| same(other)) {
            return Err(Failure::new(format!("two outputs would be written to `{output}`"))
                .help("give each of them a name of its own"));
        }
    }
    Ok(())
}

/// The path of a regular file, or of one that can be created, with links resolved. What is no regular file,
/// `/dev/null` say, can be written to by many.
fn resolved(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    match fs::canonicalize(path) {
        Ok(path) => Some(path).filter(|path| path.is_file()),
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
        }
    }
}

/// The file beside a model that is loaded with it, if there is one.
pub fn companion(model: &str) -> Option<String> {
    let endings = FORMATS.iter().filter_map(|format| format.companion);
    let mut paths = endings.map(|ending| Path::new(model).with_extension(ending));
    paths.find(|path| model != "-" && path.is_file()).map(|path| path.display().to_string())
}

/// Refuses a file that cannot be written, before anything runs whose result would be lost. What is no regular
/// file is not touched.
pub fn try_output(path: &str) -> Result<(), Failure> {
    let target = Path::new(path);
    let failed = |error: io::Error| unwritable(path, &error);
    match fs::metadata(target) {
        _ if path == "-" => Ok(()),
        Ok(about) if about.is_dir() => Err(failed(io::ErrorKind::IsADirectory.into())),
        Ok(about) if !about.is_file() => Ok(()),
        _ => {
            let beside = Unfinished::new(beside(target));
            File::create(beside.path()).map(drop).map_err(failed)
        }
    }
}

fn unwritable(path: &str, error: &io::Error) -> Failure {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "its folder does not exist".into(),
        io::ErrorKind::PermissionDenied => "you have no permission to write there".into(),
        io::ErrorKind::IsADirectory => "it is a folder".into(),
        _ => error.to_string(),
    };
    let failure = Failure::new(format!("cannot write `{path}`: {reason}"));
    if error.kind() == io::ErrorKind::TimedOut { failure.no_answer() } else { failure }
}

fn beside(target: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    target.with_file_name(name)
}

/// Wraps text at blanks so that lines stay within `width`, each begun by `indent`.
pub fn wrap(text: &str, indent: &str, width: usize) -> String {
    let mut out = String::new();
    let mut line = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if line > 0 && line + 1 + length > width {
            out.push('\n');
            line = 0;
        }
        if line == 0 {
            out.push_str(indent);
            line = indent.chars().count();
        } else {
            out.push(' ');
            line += 1;
        }
        out.push_str(word);
        line += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_that_of_the_terminal() {
        let cases = [
            (true, None, Some(72), 72),
            (true, Some(60), Some(72), 60),
            (true, Some(0), Some(72), 72),
            (true, None, None, 80),
            (true, None, Some(0), 80),
            (true, None, Some(7), 40),
            (true, None, Some(4000), 200),
            (false, Some(60), None, 100),
            (false, None, Some(72), 100),
        ];
        for (terminal, given, asked, expected) in cases {
            assert_eq!(width(terminal, given, asked), expected, "{terminal} {given:?} {asked:?}");
        }
    }

    #[test]
    fn text_wraps_at_blanks_and_long_words_stay_whole() {
        assert_eq!(wrap("a bb ccc dddd", "  ", 8), "  a bb\n  ccc\n  dddd");
        assert_eq!(wrap("abcdefghijkl m", "", 5), "abcdefghijkl\nm");
        assert_eq!(wrap("", "  ", 5), "");
    }
}
