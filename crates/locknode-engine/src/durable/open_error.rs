//! Why a node does not start with the files it found. None of these overwrites anything `[S3]`
//! `[S4]`.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::sync::Arc;

use super::store_error::StoreError;

/// The error of a node that refuses to start with its data directory.
#[derive(Clone, Debug)]
pub struct OpenError {
    kind: OpenErrorKind,
    file: Box<str>,
    detail: &'static str,
    cause: Option<Arc<io::Error>>,
}

/// What is wrong with the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// It holds files that are not a lock node's.
    NotOurs,
    /// A newer version wrote it.
    Newer,
    /// A file is damaged.
    Damaged,
    /// A file that the state names is missing.
    Missing,
    /// The operator stated that this is the first start, but there is state.
    StateExists,
    /// There is no state, and the operator must decide what that means `[G3]`.
    NoState,
    /// The operating system reported an error.
    Io,
}

impl OpenError {
    pub(super) fn new(kind: OpenErrorKind, file: &str, detail: &'static str) -> Self {
        Self {
            kind,
            file: file.into(),
            detail,
            cause: None,
        }
    }

    pub(super) fn damaged(file: &str, detail: &'static str) -> Self {
        Self::new(OpenErrorKind::Damaged, file, detail)
    }

    pub(super) fn io(file: &str, cause: io::Error) -> Self {
        Self {
            cause: Some(Arc::new(cause)),
            ..Self::new(OpenErrorKind::Io, file, "cannot read it")
        }
    }

    /// Returns what is wrong with the directory.
    pub fn kind(&self) -> OpenErrorKind {
        self.kind
    }

    /// Returns the file in question, relative to the directory.
    pub fn file(&self) -> &str {
        &self.file
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        let file = error.file().into();
        Self {
            kind: OpenErrorKind::Io,
            file,
            detail: "cannot write it",
            cause: Some(error.into_cause()),
        }
    }
}

impl Display for OpenError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.detail)?;
        if let Some(cause) = &self.cause {
            write!(f, ": {cause}")?;
        }
        f.write_str(match self.kind {
            OpenErrorKind::NotOurs => "; give the node an empty directory of its own",
            OpenErrorKind::Newer => "; start the version that wrote it, or a newer one",
            OpenErrorKind::Damaged | OpenErrorKind::Missing => {
                "; restore the file from a copy made while the node was stopped. If there is none, make sure that nobody relies on \
                 a lock that this node granted, then start it with an empty directory"
            }
            OpenErrorKind::StateExists => "; this is not the first start: remove the flag",
            OpenErrorKind::NoState => {
                "; locks with a TTL above --max-ttl, or none, that a node in this place of the clients' list granted may still be \
                 held. When all of them have expired, start it once with --empty-dir wait; if no node in this place ever \
                 granted a lock, with --first-start"
            }
            OpenErrorKind::Io => "; check the disk and its permissions, then start the node again",
        })
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause
            .as_deref()
            .map(|cause| cause as &(dyn std::error::Error + 'static))
    }
}
