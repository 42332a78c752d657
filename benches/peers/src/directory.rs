//! Directories for what servers keep: made empty for one run, gone afterwards.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tempfile::TempDir;

/// What is in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The sum of the lengths of the files, at any depth.
    pub bytes: u64,
    /// What they take on the disk, in bytes.
    pub allocated: u64,
}

/// Makes an empty directory in `parent`, which is made too; it is removed when dropped.
///
/// # Errors
///
/// The file system's, with the name of `parent`.
pub fn empty(parent: &Path) -> Result<TempDir, String> {
    let directory = fs::create_dir_all(parent).and_then(|()| tempfile::tempdir_in(parent));
    directory.map_err(|error| format!("{}: {error}", parent.display()))
}

/// What is in a directory now. Files that vanish meanwhile are left out.
#[must_use]
pub fn extent(directory: &Path) -> Extent {
    let mut extent = Extent::default();
    add(directory, &mut extent);
    extent
}

fn add(directory: &Path, extent: &mut Extent) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(data) if data.is_dir() => add(&entry.path(), extent),
            Ok(data) => {
                extent.bytes += data.len();
                extent.allocated += data.blocks() * BLOCK;
            }
            Err(_) => {}
        }
    }
}

/// What `stat` counts in.
const BLOCK: u64 = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_at_any_depth_are_counted() {
        let directory = empty(&std::env::temp_dir()).expect("a directory");
        fs::create_dir(directory.path().join("inner")).expect("a directory");
        fs::write(directory.path().join("inner/file"), [0; 1000]).expect("a file");
        assert_eq!(extent(directory.path()).bytes, 1000);
    }
}
