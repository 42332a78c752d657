//! Why something could not be made durable.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::sync::Arc;

/// Something did not become durable.
#[derive(Clone, Debug)]
pub struct StoreError {
    is_retryable: bool,
    action: Action,
    file: Box<str>,
    cause: Arc<io::Error>,
}

/// What was done to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Write,
    Sync,
}

impl StoreError {
    pub(super) fn new(action: Action, file: &str, cause: io::Error) -> Self {
        Self {
            // Nothing is known of what was written before a sync that failed; trying it again would hide that. And nothing may
            // be written where another process may write [S1].
            is_retryable: action != Action::Sync
                && cause.kind() != io::ErrorKind::StaleNetworkFileHandle,
            action,
            file: file.into(),
            cause: Arc::new(cause),
        }
    }

    /// Whether the disk refused to take the bytes, being full or for another reason, before anything was synced: the
    /// same work may be given again later `[G14]`. Otherwise the store does nothing any more `[G13]`.
    pub fn is_full(&self) -> bool {
        self.is_retryable
    }

    /// The file that it is about.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What the operating system said.
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
