//! Why a node with a data directory could not be opened.

use std::fmt;
use std::io;
use std::sync::Arc;

use locknode_engine::durable::{OpenError, OpenErrorKind};

use crate::directory::DirectoryError;

/// The error of a node that could not be opened on its data directory. Nothing in the directory was
/// changed.
#[derive(Clone, Debug)]
pub struct OpenNodeError {
    cause: Cause,
}

#[derive(Clone, Debug)]
enum Cause {
    Directory(Arc<DirectoryError>),
    Files(Arc<OpenError>),
    Thread(Arc<io::Error>),
}

impl OpenNodeError {
    pub(crate) fn thread(error: io::Error) -> Self {
        Self {
            cause: Cause::Thread(Arc::new(error)),
        }
    }

    /// Returns whether another process, or another node of this one, uses the directory.
    pub fn is_in_use(&self) -> bool {
        matches!(&self.cause, Cause::Directory(error) if error.is_locked())
    }

    /// Returns what is wrong with the files, if they are the reason.
    pub fn kind(&self) -> Option<OpenErrorKind> {
        match &self.cause {
            Cause::Files(error) => Some(error.kind()),
            Cause::Directory(_) | Cause::Thread(_) => None,
        }
    }
}

impl From<DirectoryError> for OpenNodeError {
    fn from(error: DirectoryError) -> Self {
        Self {
            cause: Cause::Directory(Arc::new(error)),
        }
    }
}

impl From<OpenError> for OpenNodeError {
    fn from(error: OpenError) -> Self {
        Self {
            cause: Cause::Files(Arc::new(error)),
        }
    }
}

impl fmt::Display for OpenNodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Directory(error) => error.fmt(f),
            Cause::Files(error) => error.fmt(f),
            Cause::Thread(error) => {
                write!(f, "cannot start the thread that writes to disk: {error}")
            }
        }
    }
}

impl std::error::Error for OpenNodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Directory(error) => Some(&**error),
            Cause::Files(error) => Some(&**error),
            Cause::Thread(error) => Some(&**error),
        }
    }
}
