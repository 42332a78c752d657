//! Why something could not be made durable.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::sync::Arc;

/// The error of a change that did not become durable.
#[derive(Clone, Debug)]
pub struct StoreError {
    is_retryable: bool,
    action: Action,
    file: Box<str>,
    cause: Arc<io::Error>,
}

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Write,
    Sync,
}

impl StoreError {
    pub(super) fn new(action: Action, file: &str, cause: io::Error) -> Self {
        Self {
            // After a failed sync nothing is known of the writes before it, and a retry would hide
            // that. And nothing may be written where another process may write [S1].
            is_retryable: action != Action::Sync
                && cause.kind() != io::ErrorKind::StaleNetworkFileHandle,
            action,
            file: file.into(),
            cause: Arc::new(cause),
        }
    }

    /// Returns whether the disk refused the bytes before any sync, usually because it is full. Then
    /// the same work may be given again later `[G14]`; otherwise the store does nothing more
    /// `[G13]`.
    pub fn is_full(&self) -> bool {
        self.is_retryable
    }

    /// Returns the file in question.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the kind of the operating system's error.
    pub fn io_kind(&self) -> io::ErrorKind {
        self.cause.kind()
    }

    pub(super) fn into_cause(self) -> Arc<io::Error> {
        self.cause
    }
}

impl Display for StoreError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            Action::Create => "create",
            Action::Write => "write",
            Action::Sync => "sync",
        };
        let file = &self.file;
        write!(f, "cannot {action} {file}: {}", self.cause)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.cause)
    }
}
