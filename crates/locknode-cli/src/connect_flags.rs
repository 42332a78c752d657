//! How to connect to servers: the flags of every command that does, named as those of redis-cli.

use std::fmt;

use redlock_client::Builder;
#[cfg(any(feature = "bench", feature = "status"))]
use redlock_client::NodeAddress;

use crate::failure::Failure;
use crate::tls_flags::TlsFlags;

/// See the module docs.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ConnectFlags {
    /// User to log in as where an address names none; without it the user default
    #[arg(long, value_name = "NAME", env = "LOCKNODE_USER", requires = "pass")]
    user: Option<String>,

    /// Password to log in with where an address has none
    ///
    /// Other users of this machine can read command lines but not your environment: use the variable.
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "LOCKNODE_PASS",
        hide_env_values = true
    )]
    #[arg(verbatim_doc_comment)]
    pass: Option<Secret>,

    #[command(flatten)]
    pub(crate) tls: TlsFlags,
}

/// A password, which is shown to nobody.
#[derive(Clone)]
struct Secret(String);

impl ConnectFlags {
    /// Sets a client up.
    ///
    /// # Errors
    ///
    /// If a file is unusable.
    pub(crate) fn apply(&self, builder: Builder) -> Result<Builder, Failure> {
        let builder = match &self.pass {
            Some(Secret(pass)) => builder.credentials(self.user.as_deref(), pass),
            None => builder,
        };
        self.tls.apply(builder)
    }

    /// Completes an address with user and password.
    #[cfg(any(feature = "bench", feature = "status"))]
    pub(crate) fn log_in(&self, address: NodeAddress) -> NodeAddress {
        match &self.pass {
            Some(Secret(pass)) => address.with_credentials(self.user.as_deref(), pass),
            None => address,
        }
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
