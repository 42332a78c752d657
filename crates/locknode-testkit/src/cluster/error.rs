//! What can be wrong with what a cluster is asked to do.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use locknode::OpenNodeError;

/// A cluster could not be built, or not do what it was asked to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClusterError {
    /// The builder's settings make no sense; the text says which and why.
    Config(String),
    /// The cluster has no node of this number.
    NoSuchNode(u8),
    /// The cluster has no client of this number.
    NoSuchClient(u8),
    /// None of the links is one of the cluster's.
    NoSuchLink,
    /// A node could not be opened on its data directory.
    Open(u8, OpenNodeError),
    /// This port cannot be bound, or no port at all when it is 0.
    Port(u16, Arc<io::Error>),
    /// The operating system refused to listen, or to work on the nodes' directories.
    Io(&'static str, Arc<io::Error>),
    /// The fault or the scenario makes no sense here.
    NotHere(NotHere),
    /// The cluster was shut down.
    Ended,
}

/// A fault that a cluster of real servers cannot have, or a scenario that it cannot play, and why. Simulated worlds can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotHere {
    what: String,
    why: &'static str,
}

impl ClusterError {
    pub(crate) fn io(what: &'static str, error: io::Error) -> Self {
        Self::Io(what, Arc::new(error))
    }

    pub(crate) fn port(port: u16, error: io::Error) -> Self {
        Self::Port(port, Arc::new(error))
    }

    /// Whether the fault or the scenario makes no sense on a cluster of real servers.
    pub const fn is_not_here(&self) -> bool {
        matches!(self, Self::NotHere(_))
    }
}

impl NotHere {
    pub(crate) fn new(what: &impl ToString, why: &'static str) -> Self {
        let what = what.to_string();
        Self { what, why }
    }

    /// Why it makes no sense here.
    pub const fn why(&self) -> &'static str {
        self.why
    }
}

impl From<NotHere> for ClusterError {
    fn from(not_here: NotHere) -> Self {
        Self::NotHere(not_here)
    }
}

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` cannot be done here: {}", self.what, self.why)
    }
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(text) => f.write_str(text),
            Self::NoSuchNode(node) => write!(f, "the cluster has no node {node}"),
            Self::NoSuchClient(client) => write!(f, "the cluster has no client {client}"),
            Self::NoSuchLink => f.write_str("the cluster has none of these links"),
            Self::Open(node, error) => write!(f, "node {node} does not start: {error}"),
            Self::Port(0, error) => write!(f, "cannot have a loopback port: {error}"),
            Self::Port(port, error) => write!(f, "cannot have port {port} of 127.0.0.1: {error}"),
            Self::Io(what, error) => write!(f, "cannot {what}: {error}"),
            Self::NotHere(not_here) => not_here.fmt(f),
            Self::Ended => f.write_str("the cluster was shut down"),
        }
    }
}

impl Error for NotHere {}

impl Error for ClusterError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Open(_, error) => Some(error),
            Self::Port(_, error) | Self::Io(_, error) => Some(&**error),
            _ => None,
        }
    }
}
