//! The disk as the store sees it: a directory of named files, without anything that POSIX does not promise.

use std::fmt::Debug;
use std::io;

/// A directory of files. What was written is durable only after [`Disk::sync`] of the file returned, and a file's
/// creation, renaming or removal only after [`Disk::sync_dir`]; until then a crash may keep any part of it.
///
/// Implementations report errors as they come and never try again: after a failed sync nothing is known of what was
/// written before it. [`io::ErrorKind::StaleNetworkFileHandle`] means that the directory may be another process's by now
/// `[S1]`: nothing in it may be changed any more.
pub trait Disk: Debug + Send {
    /// The names of all files.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says; so do all other methods.
    fn list(&mut self) -> io::Result<Vec<String>>;

    /// A file's whole content; `None` when there is no such file.
    ///
    /// # Errors
    ///
    /// See [`Disk::list`].
    fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Creates a file of `len` zero bytes, whose blocks are allocated, or empties and fills one that is there.
    ///
    /// # Errors
    ///
    /// See [`Disk::list`]. When the disk is full: [`io::ErrorKind::StorageFull`].
    fn create(&mut self, name: &str, len: u64) -> io::Result<()>;

    /// Overwrites bytes of a file that exists, or appends to it when `offset` is its length.
    ///
    /// # Errors
    ///
    /// See [`Disk::create`].
    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes a file's content and length durable. When it returns, the directory was still this process's after that.
    ///
    /// # Errors
    ///
    /// See [`Disk::list`].
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// Removes a file; removing one that is not there is no error.
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
