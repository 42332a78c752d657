//! The cluster that `run`, `lock`, `extend`, `release` and `status NAME` use.

use std::time::Duration;

use redlock_client::{Builder, Error, ErrorKind, NodeAddress, Redlock, ReleaseAnswer, Released};

use crate::failure::{Exit, Failure};
use crate::tls_flags::TlsFlags;

/// The nodes of the cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterFlags {
    /// Addresses of the nodes, separated by commas
    ///
    /// As for Redis: host:port, redis://user:password@host:port/database, rediss:// for TLS or
    /// unix:///path. List all nodes of the cluster, the same on every client: a lock needs a majority
    /// of these. Other users of this machine can read command lines but not your environment, so put
    /// passwords into the variable.
    #[arg(long, value_name = "URL,...", env = "LOCKNODE_NODES")]
    #[arg(required = true, value_delimiter = ',', verbatim_doc_comment)]
    nodes: Vec<String>,

    #[command(flatten)]
    tls: TlsFlags,
}

impl ClusterFlags {
    /// A client for these nodes.
    ///
    /// # Errors
    ///
    /// If an address is wrong or given twice, or there are too many.
    pub(crate) fn client(&self) -> Result<Redlock, Failure> {
        connect(&self.nodes, &self.tls, None)
    }

    /// The same with an observer, for the locks of a program.
    ///
    /// # Errors
    ///
    /// If an address is wrong or given twice, or there are too many.
    pub(crate) fn observed_client(
        &self,
        observer: std::sync::Arc<dyn redlock_client::Observer>,
        program: &str,
    ) -> Result<Redlock, Failure> {
        let builder = builder(&self.nodes, &self.tls)?.observer(observer);
        build(builder.label_of_program(program))
    }

    /// The replies of the nodes that did not confirm a release.
    pub(crate) fn answers(&self, released: &Released) -> String {
        let answer = |(node, answer): (&String, ReleaseAnswer)| {
            let text = match answer {
                ReleaseAnswer::Confirmed => return None,
                ReleaseAnswer::NotHeld => "not held there".to_owned(),
                ReleaseAnswer::Unknown(cause) => cause.to_string(),
                _ => "no reply yet".to_owned(),
            };
            let address: NodeAddress = node.trim().parse().ok()?;
            Some(format!("{address}: {text}"))
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

/// A client for these nodes that gives each of them `timeout` to reply.
///
/// # Errors
///
/// If an address is wrong or given twice, or there are too many.
pub(crate) fn connect(
    nodes: &[String],
    tls: &TlsFlags,
    timeout: Option<Duration>,
) -> Result<Redlock, Failure> {
    let mut builder = builder(nodes, tls)?;
    if let Some(timeout) = timeout {
        builder = builder.node_timeout(timeout).connect_timeout(timeout);
    }
    build(builder)
}

fn builder(nodes: &[String], tls: &TlsFlags) -> Result<Builder, Failure> {
    tls.apply(Redlock::builder().nodes(nodes.iter().map(|node| node.trim())))
}

fn build(builder: Builder) -> Result<Redlock, Failure> {
    builder
        .build()
        .map_err(|error| Failure::usage(format!("--nodes: {error}")))
}

/// The client's error as a failure of a command. The exit is `busy` if another client holds the lock or
/// competing clients kept each other out: a later retry may help.
pub(crate) fn failure(error: &Error, busy: Exit) -> Failure {
    let exit = match error.kind() {
        ErrorKind::Busy | ErrorKind::Contended => busy,
        ErrorKind::Config => Exit::Usage,
        _ => Exit::Unavailable,
    };
    Failure::new(exit, error.to_string())
}
