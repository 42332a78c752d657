//! Where one node is and how to log in to it, read from the URL forms that users of Redis write.
//!
//! A [`NodeAddress`] is checked when it is read, so that a typing error is reported before any
//! byte is sent; the rest of the crate never checks it again. Nothing here prints a password:
//! `Display`, `Debug` and [`AddressError`] leave the credentials out, even of addresses that could
//! not be read. It is not a general URL parser: what a lock node has no use for is refused, not
//! skipped.

mod error;
mod parse;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use redlock_proto::Login;

pub use self::error::AddressError;

/// The address of one node: its endpoint, credentials, database and whether TLS is spoken.
///
/// | written | meaning |
/// |---|---|
/// | `redis://host:6380/2` | TCP, database 2 |
/// | `redis://user:password@host` | TCP, port 6379, `AUTH user password` |
/// | `redis://:password@host` | TCP, `AUTH password` |
/// | `rediss://host` | TLS over TCP (feature `tls`) |
/// | `unix:///run/node.sock?db=2&password=secret` | Unix socket |
/// | `sentinel://a,b:26380,c/name/2` | the master of a Sentinel group, database 2 |
/// | `cluster://a,b:6380` | a whole Redis Cluster, by some of its nodes |
/// | `host`, `host:6380`, `[::1]:6380` | as with `redis://` before it |
/// | `/run/node.sock` | as with `unix://` before it |
///
/// `valkey://` and `valkeys://` are other names of `redis://` and `rediss://`; `redis+unix://`,
/// `valkey+unix://` and `redis+socket://` are other names of `unix://`. The query takes `db`,
/// `user` or `username`, and `password` or `pass`, for TCP too; any other key is an error. In the
/// user, the password and a `unix://` path, write `%40` for `@`, `%2F` for `/`, `%25` for `%` and
/// so on.
///
/// Limits: an address is at most 8192 bytes, a host name 253, a port 1 to 65535, a database 0 to
/// 2147483647, and the path of a Unix socket what the system allows (107 bytes on Linux).
///
/// # Examples
///
/// ```
/// use redlock_client::NodeAddress;
///
/// let address = NodeAddress::parse("redis://alice:s3cret@Node-1.example:6380/2")?;
/// assert_eq!(address.username(), Some("alice"));
/// assert_eq!(address.database(), 2);
/// assert_eq!(address.to_string(), "redis://node-1.example:6380/2");
/// # Ok::<(), redlock_client::AddressError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct NodeAddress {
    endpoint: Endpoint,
    tls: bool,
    pub(crate) login: Login,
}

/// What a connection is made to. Two addresses with equal endpoints are the same server.
///
/// The other way round does not hold: one server may be reached by several names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Endpoint {
    /// A TCP host and port.
    Tcp {
        /// A host name in lower case, or an IP address in its canonical form, without brackets.
        host: String,
        /// The port, never 0.
        port: u16,
    },
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// A Redis Cluster, all of it.
    Cluster {
        /// Some of its nodes.
        seeds: Vec<Place>,
    },
    /// The master of a Sentinel group, looked up for each connection.
    Sentinel {
        /// The hosts and ports of the Sentinels.
        sentinels: Vec<Place>,
        /// The name of the group.
        group: String,
    },
}

/// A host, written as in [`Endpoint::Tcp`], and a port.
pub type Place = (String, u16);

impl NodeAddress {
    /// Reads an address in one of the forms above.
    ///
    /// # Errors
    ///
    /// [`AddressError`] says what is wrong and what to write instead. `rediss://` is an error in a
    /// build without the feature `tls`, and a Unix socket is one where the system has none.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        parse::parse(text).map_err(|problem| AddressError::new(text, problem))
    }

    /// What to connect to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The user to log in as; `None` stands for the server's default user.
    #[must_use]
    pub fn username(&self) -> Option<&str> {
        self.login.username.as_deref()
    }

    /// The password to log in with; without one no login is made.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.login.password.as_deref()
    }

    /// The number of the database that the keys are in, 0 unless the address says otherwise.
    #[must_use]
    pub fn database(&self) -> u32 {
        self.login.database
    }

    /// Whether TLS is spoken on the connection.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// Speaks TLS, if this is a TCP address.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(mut self) -> Self {
        self.tls |= matches!(self.endpoint, Endpoint::Tcp { .. });
        self
    }

    /// Fills in the credentials that the address lacks.
    ///
    /// An address with a password is left as it is. One with a user and no password gets the
    /// password; one with neither gets both.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_client::NodeAddress;
    ///
    /// let address = NodeAddress::parse("redis://alice@host")?.with_credentials(None, "s3cret");
    /// assert_eq!(address.username(), Some("alice"));
    /// assert_eq!(address.password(), Some("s3cret"));
    /// # Ok::<(), redlock_client::AddressError>(())
    /// ```
    #[must_use]
    pub fn with_credentials(mut self, username: Option<&str>, password: &str) -> Self {
        let login = &mut self.login;
        if login.password.is_none() {
            login.password = Some(password.into());
            login.username = login.username.take().or(username.map(Into::into));
        }
        self
    }

    /// Refuses a user without a password, once everything that may bring the password was asked.
    ///
    /// Such an address would log in as nobody. It is nearly always `redis://PASSWORD@host`, where
    /// `redis://:PASSWORD@host` was meant, so the user is not shown either.
    ///
    /// # Errors
    ///
    /// When there is a user and no password.
    pub fn check_credentials(&self) -> Result<(), AddressError> {
        if self.login.username.is_some() && self.login.password.is_none() {
            let problem = "there is a user but no password; if the part before the '@' is the \
                           password, write a ':' before it, as in redis://:PASSWORD@host";
            return Err(AddressError::new(&self.to_string(), problem));
        }
        Ok(())
    }
}

impl FromStr for NodeAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

/// The address as a URL without the credentials; it can be read back.
impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before_database = match &self.endpoint {
            Endpoint::Tcp { .. } => {
                let scheme = if self.tls { "rediss" } else { "redis" };
                write!(f, "{scheme}://{}", self.endpoint)?;
                "/"
            }
            Endpoint::Cluster { .. } => {
                write!(f, "cluster://{}", self.endpoint)?;
                "/"
            }
            Endpoint::Sentinel { .. } => {
                write!(f, "sentinel://{}", self.endpoint)?;
                "/"
            }
            Endpoint::Unix(path) => {
                let path = path.as_os_str().as_encoded_bytes();
                write!(f, "unix://{}", percent_encode(path, ESCAPED))?;
                "?db="
            }
        };
        match self.database() {
            0 => Ok(()),
            database => write!(f, "{before_database}{database}"),
        }
    }
}

impl fmt::Debug for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeAddress")
            .field("address", &format_args!("{self}"))
            .field("has_username", &self.login.username.is_some())
            .field("has_password", &self.login.password.is_some())
            .finish()
    }
}

/// `host:port` with brackets around an IPv6 address, or the path.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write_place(f, host, *port),
            Self::Cluster { seeds } => write_places(f, seeds),
            Self::Sentinel { sentinels, group } => {
                write_places(f, sentinels)?;
                write!(f, "/{}", percent_encode(group.as_bytes(), ESCAPED))
            }
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Places with commas between.
fn write_places(f: &mut fmt::Formatter<'_>, places: &[Place]) -> fmt::Result {
    for (index, (host, port)) in places.iter().enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        write_place(f, host, *port)?;
    }
    Ok(())
}

fn write_place(f: &mut fmt::Formatter<'_>, host: &str, port: u16) -> fmt::Result {
    if host.contains(':') {
        return write!(f, "[{}]:{port}", percent_encode(host.as_bytes(), ESCAPED));
    }
    write!(f, "{host}:{port}")
}

/// What would end a path or an IPv6 zone, beside everything that is not ASCII.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'?').add(b'#').add(b'@');
