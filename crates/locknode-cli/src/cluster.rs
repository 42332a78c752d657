//! The cluster that `run`, `lock`, `extend`, `release` and `status NAME` talk to.

use std::time::Duration;

use redlock_client::{Error, ErrorKind, Redlock};

use crate::failure::{Exit, Failure};

/// Which nodes there are.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterFlags {
    /// Addresses of the nodes, with commas between them
    #[arg(
        long,
        value_name = "URL,...",
        env = "LOCKNODE_NODES",
        hide_env_values = true
    )]
    #[arg(required = true, value_delimiter = ',')]
    #[arg(long_help = "Addresses of the nodes, with commas between them.\n\n\
        As Redis users write them: host:port, redis://user:password@host:port/database,\n\
        rediss:// for TLS (in builds with it) or unix:///path. Give all nodes of the cluster, the same ones to everybody: a lock is held by\n\
        whoever has the majority of these. Others on this machine can read a command line and not\n\
        your environment, so a password belongs into the variable.")]
    nodes: Vec<String>,
}

impl ClusterFlags {
    /// A client for these nodes.
    ///
    /// # Errors
    ///
    /// When an address is wrong or given twice, or there are too many.
    pub(crate) fn client(&self) -> Result<Redlock, Failure> {
        connect(&self.nodes, None)
    }
}

/// A client for these nodes that gives each of them that long to answer.
///
/// # Errors
///
/// When an address is wrong or given twice, or there are too many.
pub(crate) fn connect(nodes: &[String], timeout: Option<Duration>) -> Result<Redlock, Failure> {
    let nodes = nodes.iter().map(|node| node.trim());
    let mut builder = Redlock::builder().nodes(nodes);
    if let Some(timeout) = timeout {
        builder = builder.node_timeout(timeout).connect_timeout(timeout);
    }
    builder
        .build()
        .map_err(|error| Failure::usage(format!("--nodes: {error}")))
}

/// What an error of the client is as the end of a command. A lock that is held by somebody else, or that nobody got of
/// those who wanted it, ends it with `busy`: trying again later may help.
pub(crate) fn failure(error: &Error, busy: Exit) -> Failure {
    let exit = match error.kind() {
        ErrorKind::Busy | ErrorKind::Contended => busy,
        ErrorKind::Config => Exit::Usage,
        _ => Exit::Unavailable,
    };
    Failure::new(exit, error.to_string())
}
