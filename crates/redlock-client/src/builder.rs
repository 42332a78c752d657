//! Builds a client. All mistakes are found before the first byte is sent.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redlock_proto::{Drift, Login, NODES_MAX, Quorum, RetryPolicy};

use crate::address::NodeAddress;
use crate::clock::{Clock, SystemClock};
use crate::connector::Connector;
use crate::error::Error;
use crate::handle::Handle;
use crate::inbox::Config;
use crate::label;
use crate::observer::Observer;
use crate::redlock::Redlock;
use crate::socket::Tls;

/// Builds a [`Redlock`].
///
/// ```
/// use std::time::Duration;
/// use redlock_client::Redlock;
///
/// # fn main() -> Result<(), redlock_client::Error> {
/// let redlock = Redlock::builder()
///     .nodes(["10.0.0.1", "10.0.0.2:6380", "redis://:secret@10.0.0.3/2"])
///     .key_prefix("billing:")
///     .node_timeout(Duration::from_millis(50))
///     .build()?;
/// assert_eq!(redlock.quorum(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    nodes: Vec<String>,
    credentials: Login,
    key_prefix: Vec<u8>,
    /// `None` for the default.
    label: Option<String>,
    drift: Drift,
    node_timeout: Option<Duration>,
    connect_timeout: Duration,
    retry: RetryPolicy,
    clock: Option<Arc<dyn Clock>>,
    connector: Option<Arc<dyn Connector>>,
    observer: Option<Arc<dyn Observer>>,
    tls: Option<Tls>,
    #[cfg(feature = "tls")]
    needs_tls: bool,
}

impl Redlock {
    /// A builder without nodes and with the defaults.
    pub fn builder() -> Builder {
        Builder {
            nodes: Vec::new(),
            credentials: Login::default(),
            key_prefix: Vec::new(),
            label: None,
            drift: Drift::default(),
            node_timeout: None,
            connect_timeout: CONNECT_TIMEOUT,
            retry: RetryPolicy::default(),
            clock: None,
            connector: None,
            observer: None,
            tls: None,
            #[cfg(feature = "tls")]
            needs_tls: false,
        }
    }
}

impl Builder {
    /// Adds a node: `host`, `host:port`, `redis://[[user]:password@]host[:port][/database]`,
    /// `rediss://...` for TLS, or `unix:///path/to/socket`.
    pub fn node(mut self, url: impl AsRef<str>) -> Self {
        self.nodes.push(url.as_ref().to_owned());
        self
    }

    /// Adds several nodes. Every client of a lock must have the same list.
    pub fn nodes<S: AsRef<str>>(mut self, urls: impl IntoIterator<Item = S>) -> Self {
        self.nodes
            .extend(urls.into_iter().map(|url| url.as_ref().to_owned()));
        self
    }

    /// Sets user and password for nodes whose URL has none.
    pub fn credentials(mut self, username: Option<&str>, password: &str) -> Self {
        self.credentials.username = username.map(Into::into);
        self.credentials.password = Some(password.into());
        self
    }

    /// Sets a prefix for all keys on the nodes.
    pub fn key_prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.key_prefix = prefix.as_ref().to_vec();
        self
    }

    /// Sets what nodes are told of the holders of this client's locks, for people: `locknode status
    /// NAME` shows it, and how long the lock has been held. At most 64 bytes of printable ASCII; empty
    /// for nothing. Default: `host:process id:program`. Only nodes that know labels are told.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets the default label with the name of another program than this one.
    pub fn label_of_program(self, program: &str) -> Self {
        self.label(&*label::of_program(program))
    }

    /// Sets how much clocks may disagree. Default: 1 % of the TTL plus 2 ms.
    pub fn drift(mut self, drift: Drift) -> Self {
        self.drift = drift;
        self
    }

    /// Sets how long a node has to reply, between 1 ms and half of the TTL. Default: a tenth of the
    /// TTL, at most 250 ms.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.node_timeout = Some(timeout);
        self
    }

    /// Sets how long a connection may take to open, and how long a silent one is kept. Default: 1 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// Sets how `acquire` retries unless the request sets its own policy. Default: three attempts.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Replaces the system's clock, for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Replaces the network, for example by streams in a test. The nodes' addresses then provide only
    /// their names, credentials and databases.
    pub fn connector(mut self, connector: Arc<dyn Connector>) -> Self {
        self.connector = Some(connector);
        self
    }

    /// Reports the client's events to `observer`.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets the TLS settings for `rediss://`. Default: trust the system's certificates.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Speaks TLS to every node on TCP, whatever its URL says. Default: to those with `rediss://`.
    #[cfg(feature = "tls")]
    pub fn require_tls(mut self, needs_tls: bool) -> Self {
        self.needs_tls = needs_tls;
        self
    }

    /// Builds the client. It does not connect yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for no nodes or too many, a malformed URL, two
    /// URLs of one node, a label that is none, or a retry policy that never tries.
    pub fn build(self) -> Result<Redlock, Error> {
        let addresses = self.addresses()?;
        let Some(quorum) = Quorum::of(addresses.len()) else {
            return Err(Error::config(match addresses.len() {
                0 => "no nodes: configure at least one, best five".to_owned(),
                n => format!("{n} nodes are too many: configure at most {NODES_MAX}, best five"),
            }));
        };
        self.retry.check()?;
        let label = match self.label {
            None => Some(label::of_this_process()),
            Some(label) => label::some(&label).map(label::checked).transpose()?,
        };
        let tls = self.tls;
        #[cfg(feature = "tls")]
        let tls = match tls {
            None if addresses.iter().any(NodeAddress::is_tls) => {
                let system = Tls::with_native_roots();
                Some(system.map_err(|error| Error::config_by(error.to_string(), error))?)
            }
            given => given,
        };
        let config = Config {
            names: addresses
                .iter()
                .map(|address| address.to_string().into())
                .collect(),
            addresses,
            quorum,
            tls,
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock::start())),
            connector: self.connector,
            drift: self.drift,
            connect_timeout: self.connect_timeout,
            node_timeout: self.node_timeout,
            retry: self.retry,
            key_prefix: self.key_prefix.into(),
            label,
            observer: self.observer,
        };
        Ok(Redlock::new(Handle::new(config)))
    }

    /// The nodes' addresses. Two of one node are an error, since each would have a vote.
    fn addresses(&self) -> Result<Vec<NodeAddress>, Error> {
        let mut addresses = Vec::with_capacity(self.nodes.len());
        let mut seen = HashMap::new();
        for (index, url) in self.nodes.iter().enumerate() {
            let config = |error: crate::address::AddressError| {
                Error::config_by(format!("node {index} of the list: {error}"), error)
            };
            let mut address = NodeAddress::parse(url).map_err(config)?;
            #[cfg(feature = "tls")]
            if self.needs_tls {
                address = address.with_tls();
            }
            if let Some(password) = &self.credentials.password {
                address = address.with_credentials(self.credentials.username.as_deref(), password);
            }
            address.check_credentials().map_err(config)?;
            if let Some(first) = seen.insert(address.endpoint().clone(), index) {
                return Err(Error::config(format!(
                    "nodes {first} and {index} of the list are both {address}: a node has one vote"
                )));
            }
            addresses.push(address);
        }
        Ok(addresses)
    }
}

/// Opening a connection takes three round trips; a second is enough around the world.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
