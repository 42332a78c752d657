//! How to speak TLS to servers: the flags of every command that connects to some, named as those of redis-cli.

#[cfg(feature = "tls")]
use std::path::{Path, PathBuf};

use redlock_client::Builder;
#[cfg(feature = "tls")]
use redlock_client::Tls;

use crate::failure::Failure;

/// A build without TLS has none of the flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TlsFlags {
    /// Speak TLS to every server that is not on a Unix socket, as rediss:// in its address does
    #[cfg(feature = "tls")]
    #[arg(long, env = "LOCKNODE_TLS", value_parser = clap::builder::FalseyValueParser::new())]
    tls: bool,

    /// PEM file of who signs the servers' certificates, in place of those that this system trusts
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", env = "LOCKNODE_CACERT")]
    cacert: Option<PathBuf>,

    /// PEM file of the certificate to present to servers that ask for one
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", env = "LOCKNODE_CERT", requires = "key")]
    cert: Option<PathBuf>,

    /// PEM file of its private key, not encrypted
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", env = "LOCKNODE_KEY", requires = "cert")]
    key: Option<PathBuf>,
}

#[cfg(feature = "tls")]
impl TlsFlags {
    /// Sets a client up.
    ///
    /// # Errors
    ///
    /// If a file is unusable.
    pub(crate) fn apply(&self, builder: Builder) -> Result<Builder, Failure> {
        let builder = builder.require_tls(self.tls);
        // Without these flags the client reads the system's certificates when it needs them.
        if self.cacert.is_none() && self.cert.is_none() {
            return Ok(builder);
        }
        Ok(builder.tls(self.settings()?))
    }

    /// Whether all servers speak TLS.
    #[cfg(any(feature = "bench", feature = "status"))]
    pub(crate) const fn is_required(&self) -> bool {
        self.tls
    }

    /// The settings of a connection.
    ///
    /// # Errors
    ///
    /// If a file is unusable, or none is given and the system trusts nobody.
    pub(crate) fn settings(&self) -> Result<Tls, Failure> {
        let usable = |tls: Result<Tls, redlock_client::TlsError>, flag: &str| {
            tls.map_err(|error| Failure::usage(format!("{flag}: {error}")))
        };
        let tls = match &self.cacert {
            Some(path) => Tls::with_root_certificates(&read(path, "--cacert")?),
            None => Tls::with_native_roots(),
        };
        let tls = usable(tls, "--cacert")?;
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let (cert, key) = (read(cert, "--cert")?, read(key, "--key")?);
                usable(tls.with_client_certificate(&cert, &key), "--cert")
            }
            _ => Ok(tls),
        }
    }
}

#[cfg(not(feature = "tls"))]
impl TlsFlags {
    #[expect(clippy::unnecessary_wraps, reason = "with TLS, files can be unusable")]
    pub(crate) const fn apply(&self, builder: Builder) -> Result<Builder, Failure> {
        Ok(builder)
    }
}

#[cfg(feature = "tls")]
fn read(path: &Path, flag: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        Failure::usage(format!("cannot read {} ({flag}): {error}", path.display()))
    })
}
