//! Directories for what servers keep: made empty for one run, gone afterwards.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// An empty directory that is removed with all that is in it when it is dropped.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
}

/// What is in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Files, at any depth.
    pub files: u64,
    /// The sum of their lengths.
    pub bytes: u64,
    /// What they take on the disk, in bytes.
    pub allocated: u64,
}

impl DataDirectory {
    /// Makes an empty directory in `parent`, which is made too.
    ///
    /// # Errors
    ///
    /// The file system's.
    pub fn new(parent: &Path) -> io::Result<Self> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("locknode-peers-{}-{number}", process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self { path })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it now. Files that vanish meanwhile are left out.
    #[must_use]
    pub fn extent(&self) -> Extent {
        let mut extent = Extent::default();
        add(&self.path, &mut extent);
        extent
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        // What cannot be removed stays; the figures are right all the same.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn add(directory: &Path, extent: &mut Extent) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(data) if data.is_dir() => add(&entry.path(), extent),
            Ok(data) => {
                extent.files += 1;
                extent.bytes += data.len();
                extent.allocated += data.blocks() * BLOCK;
            }
            Err(_) => {}
        }
    }
}

/// What `stat` counts in.
const BLOCK: u64 = 512;

static NUMBER: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_measured_and_removed() {
        let parent = std::env::temp_dir();
        let directory = DataDirectory::new(&parent).expect("a directory");
        let path = directory.path().to_owned();
        fs::create_dir(path.join("inner")).expect("a directory");
        fs::write(path.join("inner/file"), [0; 1000]).expect("a file");
        let extent = directory.extent();
        assert_eq!((extent.files, extent.bytes), (1, 1000));
        drop(directory);
        assert!(!path.exists());
    }
}
