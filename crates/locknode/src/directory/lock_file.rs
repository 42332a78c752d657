//! The file `lock`, which limits a directory to one process at a time `[S1]`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use super::directory_error::Problem;
use super::{FILE_MODE, LOCK, full, regular};

/// The exclusive lock on a directory, for as long as the value lives.
#[derive(Debug)]
pub(super) struct LockFile {
    path: PathBuf,
    /// Keeps the lock, and keeps the inode number from being reused.
    _file: File,
    identity: (u64, u64),
    /// Whether this process created the file.
    is_new: bool,
    /// Whether the file was ever found missing. Its return proves nothing: another process may have
    /// used the directory in between.
    is_lost: bool,
}

impl LockFile {
    /// Takes the lock and writes this process's number into the file, for the error message of the
    /// next one.
    pub(super) fn take(path: PathBuf) -> Result<Self, Problem> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let unusable = |error| Problem::Io("use the lock file in", error);
        let unwritable = |error| Problem::Io("write the lock file in", error);
        let found = fs::symlink_metadata(&path);
        let is_new = found.is_err();
        if let Ok(metadata) = found {
            regular(metadata).map_err(unusable)?;
        }
        let opened = options.mode(FILE_MODE).open(&path);
        let mut file = opened.map_err(unwritable)?;
        let mut holder = String::new();
        let locked = file.try_lock();
        let read = (&file).take(HOLDER_LEN_MAX).read_to_string(&mut holder);
        let process = holder.strip_suffix('\n').and_then(|pid| pid.parse().ok());
        match locked {
            Err(TryLockError::WouldBlock) => return Err(Problem::Locked(process)),
            Err(TryLockError::Error(error)) => {
                return Err(Problem::Io("lock the lock file in", error));
            }
            Ok(()) => {}
        }
        // A process or machine that crashed may have left a part of the line, or zeros.
        let is_ours = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'\n' | 0);
        if read.is_err() || !holder.as_bytes().iter().all(is_ours) {
            return Err(Problem::Foreign(LOCK.to_owned()));
        }
        let written = file
            .set_len(0)
            .and_then(|()| io::Seek::rewind(&mut file))
            .and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()))
            .and_then(|()| file.metadata());
        let metadata = written.map_err(full).map_err(unwritable)?;
        let mut lock = Self {
            path,
            _file: file,
            identity: identity(&metadata),
            is_new,
            is_lost: false,
        };
        // A file that was removed while it was being locked locks nothing.
        lock.check().map_err(unusable)?;
        Ok(lock)
    }

    /// Checks that the file of that name is still the locked one. If it was removed or replaced, a
    /// second process can take the directory.
    pub(super) fn check(&mut self) -> io::Result<()> {
        let is_there = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| identity(&metadata) == self.identity);
        self.is_lost |= !is_there;
        if self.is_lost {
            return Err(io::Error::new(io::ErrorKind::StaleNetworkFileHandle, LOST));
        }
        Ok(())
    }

    /// Removes the file if this process created it.
    pub(super) fn remove_if_new(&mut self) {
        if self.is_new && self.check().is_ok() {
            // A file that stays does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The device and inode number, which no two files share at a time.
fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

const LOST: &str = "the lock file was removed or replaced while the node ran, so another process may be using the directory; \
    make sure that none does, then start the node again";

/// A process number has at most ten digits.
const HOLDER_LEN_MAX: u64 = 12;
