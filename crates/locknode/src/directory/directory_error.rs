//! Why a data directory cannot be used, and what to do about it.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// A data directory that cannot be used. The message names the directory or file and says what to
/// do.
#[derive(Debug)]
pub struct DirectoryError {
    pub(super) path: PathBuf,
    pub(super) problem: Problem,
}

/// What is wrong.
#[derive(Debug)]
pub(super) enum Problem {
    /// Another process uses it, with this number if it could be read.
    Locked(Option<u32>),
    NotADirectory,
    /// It holds this file, which is not a node's.
    Foreign(String),
    /// What was attempted, and how it failed.
    Io(&'static str, io::Error),
}

impl DirectoryError {
    /// Returns whether another process uses the directory. Trying again may work once that process
    /// has ended.
    pub const fn is_locked(&self) -> bool {
        matches!(self.problem, Problem::Locked(_))
    }
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.problem {
            Problem::Locked(process) => {
                let process =
                    process.map_or("another process".to_owned(), |it| format!("process {it}"));
                write!(
                    f,
                    "the directory {path} is in use by {process}, which has locked {path}/lock: \
                     every node needs a directory of its own"
                )
            }
            Problem::NotADirectory => write!(
                f,
                "{path} is not a directory: name a directory, or a path that does not exist yet"
            ),
            Problem::Foreign(name) => write!(
                f,
                "the directory {path} does not belong to a lock node: {path}/{name} is not one of its files. \
                 Nothing was changed; name an empty directory, or a path that does not exist yet"
            ),
            Problem::Io(attempt, error) => {
                write!(f, "cannot {attempt} {path}: {error}")?;
                advice(error.kind()).map_or(Ok(()), |advice| write!(f, "; {advice}"))
            }
        }
    }
}

impl Error for DirectoryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.problem {
            Problem::Io(_, error) => Some(error),
            _ => None,
        }
    }
}

/// What to do about it, where that is known.
fn advice(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::PermissionDenied => {
            "let the user that runs the node read, write and enter the directory, and create it if it is missing"
        }
        io::ErrorKind::NotFound => "create its parent directory first",
        io::ErrorKind::ReadOnlyFilesystem => {
            "the file system is mounted read-only: choose another one"
        }
        io::ErrorKind::StorageFull => "the disk is full: make room, or choose another one",
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => {
            "choose a directory on a local file system, which can lock and sync files"
        }
        _ => return None,
    })
}
