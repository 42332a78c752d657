//! Where the nodes' data directories are.

use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};

/// A directory with one data directory for each node. One of the cluster's own is removed when the last handle and the
/// last node are gone.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    is_own: bool,
}

impl Folder {
    /// A new one among the system's temporary files.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn temporary() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        for attempt in 0..ATTEMPTS_MAX {
            let name = format!(
                "locknode-cluster-{}-{:016x}",
                std::process::id(),
                unpredictable(attempt)
            );
            let path = parent.join(name);
            match private().create(&path) {
                Ok(()) => return Ok(Self { path, is_own: true }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The user's, which stays.
    pub(crate) fn given(path: PathBuf) -> io::Result<Self> {
        if !path.is_dir() {
            private().recursive(true).create(&path)?;
        }
        Ok(Self {
            path,
            is_own: false,
        })
    }

    /// A node's data directory.
    pub fn of_node(&self, node: u8) -> PathBuf {
        self.path.join(format!("node-{node}"))
    }

    /// Whether the node has been there before.
    pub(crate) fn has_node(&self, node: u8) -> bool {
        fs::read_dir(self.of_node(node)).is_ok_and(|mut entries| entries.next().is_some())
    }

    /// Keeps what the node's disk holds now.
    pub(crate) fn keep(&self, node: u8) -> io::Result<()> {
        replace(&self.of_node(node), &self.kept(node))
    }

    /// Whether something was kept.
    pub(crate) fn has_kept(&self, node: u8) -> bool {
        self.kept(node).is_dir()
    }

    /// Takes the node's disk back to what was kept.
    pub(crate) fn roll_back(&self, node: u8) -> io::Result<()> {
        replace(&self.kept(node), &self.of_node(node))
    }

    /// The node's disk is gone.
    pub(crate) fn lose(&self, node: u8) -> io::Result<()> {
        remove(&self.of_node(node))
    }

    fn kept(&self, node: u8) -> PathBuf {
        self.path.join(format!("node-{node}-kept"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_own {
            // What cannot be removed is left to whoever cleans the temporary files.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// A number that differs from call to call, from process to process and from boot to boot.
pub(crate) fn unpredictable(number: u64) -> u64 {
    RandomState::new().hash_one(number)
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Node directories hold files only.
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    remove(to)?;
    private().create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Names are random: two in a row that are taken are somebody's joke.
const ATTEMPTS_MAX: u64 = 16;
