//! The cluster that `run`, `lock`, `extend`, `release` and `status NAME` use.

use std::time::Duration;

use redlock_client::{Builder, Error, ErrorKind, NodeAddress, Redlock, ReleaseAnswer, Released};

use crate::connect_flags::ConnectFlags;
use crate::failure::{Exit, Failure};

/// The nodes of the cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterFlags {
    /// Addresses of the nodes, separated by commas
    ///
    /// As for Redis: host:port, redis://user:password@host:port/database, rediss:// for TLS,
    /// unix:///path, sentinel://host,host/group or cluster://host,host/. List all nodes of the cluster, the same on every client: a lock needs a majority
    /// of these. Other users of this machine can read command lines but not your environment, so put
    /// passwords into the variable.
    #[arg(long, value_name = "URL,...", env = "LOCKNODE_NODES")]
    #[arg(required = true, value_delimiter = ',', verbatim_doc_comment)]
    nodes: Vec<String>,

    #[command(flatten)]
    connect: ConnectFlags,
}

impl ClusterFlags {
    /// A client for these nodes.
    ///
    /// # Errors
    ///
    /// If an address is wrong or given twice, or there are too many.
    pub(crate) fn client(&self) -> Result<Redlock, Failure> {
        connect(&self.nodes, &self.connect, None)
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
        let builder = builder(&self.nodes, &self.connect)?.observer(observer);
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
        let urls = urls(&self.nodes);
        let nodes = urls.iter().zip(released.nodes());
        let answers: Vec<String> = nodes.filter_map(answer).collect();
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
    flags: &ConnectFlags,
    timeout: Option<Duration>,
) -> Result<Redlock, Failure> {
    let mut builder = builder(nodes, flags)?;
    if let Some(timeout) = timeout {
        builder = builder.node_timeout(timeout).connect_timeout(timeout);
    }
    build(builder)
}

fn builder(nodes: &[String], flags: &ConnectFlags) -> Result<Builder, Failure> {
    flags.apply(Redlock::builder().nodes(urls(nodes)))
}

/// The nodes of a list that was split at its commas. A group of servers has commas of its own, up to the
/// `/` after its hosts.
fn urls(parts: &[String]) -> Vec<String> {
    let is_open = |url: &str| {
        let hosts = GROUPS.iter().find_map(|scheme| url.strip_prefix(scheme));
        hosts.is_some_and(|hosts| !hosts.contains('/'))
    };
    let mut urls: Vec<String> = Vec::new();
    for part in parts.iter().map(|part| part.trim()) {
        match urls.last_mut() {
            Some(url) if is_open(url) && !part.contains("://") => {
                url.push(',');
                url.push_str(part);
            }
            _ => urls.push(part.to_owned()),
        }
    }
    urls
}

/// The schemes of groups of servers.
const GROUPS: [&str; 2] = ["sentinel://", "cluster://"];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_servers_has_commas_of_its_own() {
        let all = |list: &str| {
            let parts: Vec<String> = list.split(',').map(str::to_owned).collect();
            urls(&parts)
        };
        assert_eq!(all("a,b, c"), ["a", "b", "c"]);
        assert_eq!(
            all("a,sentinel://s1,s2:7,s3/g,b,cluster://s4,s5/,s6,cluster://s7,redis://c/1"),
            [
                "a",
                "sentinel://s1,s2:7,s3/g",
                "b",
                "cluster://s4,s5/",
                "s6",
                "cluster://s7",
                "redis://c/1"
            ]
        );
    }
}
