//! Errors, grouped by what a caller does about them.

use std::fmt;
use std::sync::Arc;

use redlock_proto::{ArgumentError, Cause, ErrorKind};

/// Why a lock was not acquired, not extended or is no longer held.
///
/// Match on [`kind`](Self::kind) or use the predicates; [`nodes`](Self::nodes) has each node's failure.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
    nodes: Arc<[NodeFailure]>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// One node's part in an error.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeFailure {
    /// The node's address, without a password.
    pub address: Arc<str>,
    /// Why it failed.
    pub cause: Cause,
}

impl NodeFailure {
    /// A failure of the node at this address.
    pub fn new(address: impl Into<Arc<str>>, cause: Cause) -> Self {
        Self {
            address: address.into(),
            cause,
        }
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            nodes: Arc::new([]),
            source: None,
        }
    }

    pub(crate) fn config(message: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// A mistake in an argument, caused by another error.
    pub(crate) fn config_by(
        message: impl Into<Arc<str>>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self {
            source: Some(Arc::new(source)),
            ..Self::config(message)
        }
    }

    /// For those who use a lock after its validity.
    pub(crate) fn expired() -> Self {
        let message = "the lock has expired: stop the work it protects, or use a longer TTL";
        Self::new(ErrorKind::Expired, message)
    }

    /// The outcome of a single try: a lock that another client holds is no error.
    pub(crate) fn none_if_busy<T>(self) -> Result<Option<T>, Self> {
        if self.is_busy() { Ok(None) } else { Err(self) }
    }

    pub(crate) fn with_nodes(self, nodes: Vec<NodeFailure>) -> Self {
        Self {
            nodes: nodes.into(),
            ..self
        }
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The failures of nodes, in their configured order.
    pub fn nodes(&self) -> &[NodeFailure] {
        &self.nodes
    }

    /// Another client holds the lock.
    pub fn is_busy(&self) -> bool {
        self.kind == ErrorKind::Busy
    }

    /// Nobody is known to hold the lock, but it could not be acquired.
    pub fn is_contended(&self) -> bool {
        self.kind == ErrorKind::Contended
    }

    /// No majority of the nodes could be reached or took part.
    pub fn is_no_quorum(&self) -> bool {
        self.kind == ErrorKind::NoQuorum
    }

    /// A majority of the nodes no longer holds the lock.
    pub fn is_lost(&self) -> bool {
        self.kind == ErrorKind::Lost
    }

    /// The lock expired.
    pub fn is_expired(&self) -> bool {
        self.kind == ErrorKind::Expired
    }

    /// The lock was released or its client closed.
    pub fn is_cancelled(&self) -> bool {
        self.kind == ErrorKind::Cancelled
    }

    /// The wait ended before the nodes had decided.
    pub fn is_timeout(&self) -> bool {
        self.kind == ErrorKind::Timeout
    }

    /// The configuration or an argument is wrong.
    pub fn is_config(&self) -> bool {
        self.kind == ErrorKind::Config
    }

    /// Whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Busy | ErrorKind::Contended | ErrorKind::NoQuorum | ErrorKind::Timeout
        )
    }
}

impl From<ArgumentError> for Error {
    fn from(error: ArgumentError) -> Self {
        Self::config_by(error.to_string(), error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.nodes.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", Failures(&self.nodes))
        }
    }
}

/// The failures of nodes on one line.
pub(crate) struct Failures<'a>(pub(crate) &'a [NodeFailure]);

impl fmt::Display for Failures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, node) in self.0.iter().enumerate() {
            let between = if i == 0 { "" } else { "; " };
            write!(f, "{between}{}: {}", node.address, node.cause)?;
        }
        Ok(())
    }
}

/// The kind and the message: a program that returns the error from `main` prints this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind)
    }
}

/// The source of a bad argument's error is an [`AddressError`](crate::AddressError) or an
/// [`ArgumentError`]. The source of a node's failure belongs to its [cause](NodeFailure::cause).
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_failure_of_each_node() {
        let failure = |address: &str, cause| NodeFailure {
            address: address.into(),
            cause,
        };
        let error = Error::new(
            ErrorKind::NoQuorum,
            "no quorum: 1 of 3 nodes granted the lock, 2 are needed",
        )
        .with_nodes(vec![
            failure("a:1", Cause::TimedOut),
            failure("b:1", Cause::ServerError("OOM".into())),
        ]);
        assert_eq!(
            error.to_string(),
            "no quorum: 1 of 3 nodes granted the lock, 2 are needed (a:1: no reply in time; b:1: replied -OOM)"
        );
        assert!(error.is_no_quorum() && error.is_retryable());
        assert!(!Error::config("x").is_retryable());
    }
}
