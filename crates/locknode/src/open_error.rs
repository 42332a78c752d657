//! Why a node with a data directory could not be opened.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use locknode_engine::durable::{OpenError, OpenErrorKind};

use crate::directory::DirectoryError;

/// The error of a node that could not be opened on its data directory. Nothing in the directory was
/// changed.
#[derive(Clone, Debug)]
pub struct OpenNodeError {
    /// What was attempted, where the cause does not say so.
    attempt: &'static str,
    cause: Arc<dyn Error + Send + Sync>,
    is_in_use: bool,
    kind: Option<OpenErrorKind>,
}

impl OpenNodeError {
    pub(crate) fn thread(error: io::Error) -> Self {
        Self {
            attempt: "cannot start the thread that writes to disk: ",
            ..Self::new(error)
        }
    }

    fn new(cause: impl Error + Send + Sync + 'static) -> Self {
        Self {
            attempt: "",
            cause: Arc::new(cause),
            is_in_use: false,
            kind: None,
        }
    }

    /// Returns whether another process, or another node of this one, uses the directory.
    pub const fn is_in_use(&self) -> bool {
        self.is_in_use
    }

    /// Returns what is wrong with the files, if they are the reason.
    pub const fn kind(&self) -> Option<OpenErrorKind> {
        self.kind
    }
}

impl From<DirectoryError> for OpenNodeError {
    fn from(error: DirectoryError) -> Self {
        Self {
            is_in_use: error.is_locked(),
            ..Self::new(error)
        }
    }
}

impl From<OpenError> for OpenNodeError {
    fn from(error: OpenError) -> Self {
        Self {
            kind: Some(error.kind()),
            ..Self::new(error)
        }
    }
}

impl fmt::Display for OpenNodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.attempt, self.cause)
    }
}

impl Error for OpenNodeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}
