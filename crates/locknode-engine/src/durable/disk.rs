//! The disk as the store sees it: a directory of named files that promises no more than POSIX does.

use std::fmt::Debug;
use std::io;

/// A directory of files.
///
/// A write is durable only after [`Disk::sync`] of the file has returned, and the creation or
/// removal of a file only after [`Disk::sync_dir`]; until then a crash may keep any part of it.
///
/// Implementations report every error and never retry: after a failed sync nothing is known of the
/// writes before it. [`io::ErrorKind::StaleNetworkFileHandle`] means that another process may use
/// the directory `[S1]`: nothing in it may be changed any more.
pub trait Disk: Debug + Send {
    /// Returns the names of all files.
    ///
    /// # Errors
    ///
    /// Fails as the operating system reports, like all other methods.
    fn list(&mut self) -> io::Result<Vec<String>>;

    /// Reads a whole file; `None` when there is no such file.
    ///
    /// # Errors
    ///
    /// See [`Disk::list`].
    fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Creates a file of `len` zero bytes with allocated blocks, or empties and refills an existing
    /// one.
    ///
    /// # Errors
    ///
    /// See [`Disk::list`]. A full disk is [`io::ErrorKind::StorageFull`].
    fn create(&mut self, name: &str, len: u64) -> io::Result<()>;

    /// Overwrites bytes of an existing file, or appends to it when `offset` is its length.
    ///
    /// # Errors
    ///
    /// See [`Disk::create`].
    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes a file's content and length durable, and then checks that this process still owns the
    /// directory.
    ///
    /// # Errors
    ///
    /// See [`Disk::list`].
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// Removes a file; a missing file is not an error.
    ///
    /// # Errors
    ///
    /// See [`Disk::list`].
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Makes creations and removals durable.
    ///
    /// # Errors
    ///
    /// See [`Disk::list`].
    fn sync_dir(&mut self) -> io::Result<()>;
}
