//! Memory-mapped files.
//!
//! In: a path. Out: bytes. What stays true: a large file is not copied; this is the only module of the crate that
//! holds `unsafe` code.

use memmap2::Mmap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

/// Files up to this size are read instead: a mapping would take longer to set up.
const SMALL: u64 = 1 << 16;

/// The bytes of a file, or bytes in memory.
pub(crate) enum Mapped {
    File(Mmap),
    Memory(Vec<u8>),
}

impl Mapped {
    /// The bytes of a file.
    pub fn open(path: &Path) -> io::Result<Self> {
        // To open a pipe would wait for whoever writes to it.
        let about = std::fs::metadata(path)?;
        if about.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !about.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let file = File::open(path)?;
        if about.len() <= SMALL {
            let mut bytes = Vec::new();
            file.take(SMALL).read_to_end(&mut bytes)?;
            return Ok(Mapped::Memory(bytes));
        }
        // SAFETY: the mapping is private to this process, and nothing here writes to the file: graphs are
        // written under another name and renamed when they are complete, so no run of this program changes
        // a file that is mapped. If another program does so all the same, bytes may change between two
        // reads. Every read takes any value for possible (numbers are checked against the header where they
        // are used, places against the length of the slice), and no reference to anything but plain bytes
        // is made. A file that another program cuts short ends the process by a signal, as
        // with every mapping.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Mapped::File(map))
    }
}

impl Deref for Mapped {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Mapped::File(map) => map,
            Mapped::Memory(bytes) => bytes,
        }
    }
}
