//! Temporary files, removed unless they are renamed.
//!
//! In: their paths, while they are written. Out: none of them is left, whether the writer fails, panics, or the
//! process is about to exit without returning to the writer. What stays true: a path is registered before the file
//! exists, and as long as it may.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The temporary files of this process.
static PATHS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that is being written. It is removed on drop, unless it has been renamed by then.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// A file at this path, which must not be created before.
    pub fn new(path: PathBuf) -> Self {
        PATHS.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        Unfinished(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // A leftover that cannot be removed either is ignored.
        let _ = fs::remove_file(&self.0);
        PATHS.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

/// Removes all of them, before the process exits.
pub fn remove_all() {
    for path in PATHS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_file_goes_with_its_writer_or_with_all_others() {
        let folder = std::env::temp_dir().join(format!("deltamark-unfinished-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [one, other] = ["one", "other"].map(|name| Unfinished::new(folder.join(name)));
        for file in [&one, &other] {
            fs::write(file.path(), "half").unwrap();
        }
        drop(one);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        remove_all();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        drop(other);
        fs::remove_dir_all(&folder).unwrap();
    }
}
