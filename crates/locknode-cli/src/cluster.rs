//! The cluster that `run`, `lock`, `extend`, `release` and `status NAME` talk to.

#[cfg(feature = "lock")]
use std::time::Duration;

use redlock_client::{Builder, Error, ErrorKind, NodeAddress, Redlock, ReleaseAnswer, Released};

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
    #[cfg(feature = "lock")]
    pub(crate) fn client(&self) -> Result<Redlock, Failure> {
        connect(&self.nodes, None)
    }

    /// The same, whose observer is told what the client does.
    ///
    /// # Errors
    ///
    /// When an address is wrong or given twice, or there are too many.
    #[cfg(feature = "run")]
    pub(crate) fn observed_client(
        &self,
        observer: std::sync::Arc<dyn redlock_client::Observer>,
    ) -> Result<Redlock, Failure> {
        build(builder(&self.nodes).observer(observer))
    }

    /// What the nodes said to a release that did not let the lock go.
    pub(crate) fn answers(&self, released: &Released) -> String {
        let answer = |(node, answer): (&String, ReleaseAnswer)| {
            let said = match answer {
                ReleaseAnswer::Confirmed => return None,
                ReleaseAnswer::NotHeld => "not held there".to_owned(),
                ReleaseAnswer::Unknown(cause) => cause.to_string(),
                _ => "no answer yet".to_owned(),
            };
            let address: NodeAddress = node.trim().parse().ok()?;
            Some(format!("{address}: {said}"))
        };
        let answers: Vec<String> = self
            .nodes
            .iter()
            .zip(released.nodes())
            .filter_map(answer)
            .collect();
        answers.join("; ")
    }
}

/// A client for these nodes that gives each of them that long to answer.
///
/// # Errors
///
/// When an address is wrong or given twice, or there are too many.
#[cfg(feature = "lock")]
pub(crate) fn connect(nodes: &[String], timeout: Option<Duration>) -> Result<Redlock, Failure> {
    let mut builder = builder(nodes);
    if let Some(timeout) = timeout {
        builder = builder.node_timeout(timeout).connect_timeout(timeout);
    }
    build(builder)
}

fn builder(nodes: &[String]) -> Builder {
    Redlock::builder().nodes(nodes.iter().map(|node| node.trim()))
}

fn build(builder: Builder) -> Result<Redlock, Failure> {
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
