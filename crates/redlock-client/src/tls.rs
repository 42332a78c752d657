//! TLS settings for `rediss://` nodes: which certificates to trust, and the client's own.
//!
//! `rustls` does the handshake, with its `ring` provider. Certificates are always checked; a program
//! that must not check them can pass its own `rustls` configuration.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// TLS settings for the connections to nodes; cheap to clone.
///
/// A node is trusted if its certificate is signed by one of the roots, is in date, and names the host
/// of its address: a DNS name, or an IP address if the address has one.
///
/// # Examples
///
/// ```no_run
/// use redlock_client::Tls;
///
/// let tls = Tls::with_root_certificates(&std::fs::read("ca.pem")?)?
///     .with_client_certificate(&std::fs::read("me.pem")?, &std::fs::read("me.key")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Trusts the system's certificate store, or the files in the environment variables
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR`. Reads files, so call it once.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if the system has no usable root certificate. Unusable ones among others are
    /// ignored.
    pub fn with_native_roots() -> Result<Self, TlsError> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        let (usable, _) = roots.add_parsable_certificates(found.certs);
        if usable == 0 {
            let detail = found.errors.first().map(|error| format!(": {error}"));
            return Err(TlsError::new(format!(
                "the system has no usable root certificate{}; install its ca-certificates or name \
                 a PEM file in SSL_CERT_FILE",
                detail.unwrap_or_default()
            )));
        }
        Self::with_roots(roots)
    }

    /// Trusts only the certificates in `pem`, for example of a private authority.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if `pem` has no certificate or a broken one.
    pub fn with_root_certificates(pem: &[u8]) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(pem, "root certificates")? {
            roots.add(certificate).map_err(|error| {
                TlsError::caused("a root certificate cannot be used".to_owned(), error)
            })?;
        }
        Self::with_roots(roots)
    }

    /// Uses a `rustls` configuration unchanged, for settings that the other constructors lack.
    #[cfg(any(test, feature = "unstable-rustls-0_23"))]
    #[must_use]
    pub fn from_client_config(config: Arc<ClientConfig>) -> Self {
        Self { config }
    }

    /// Presents a client certificate to nodes that request one (mutual TLS).
    ///
    /// `chain` is PEM: the client's certificate, then those between it and the root. `key` is PEM: its
    /// private key in PKCS #8, PKCS #1 or SEC 1 form, not encrypted.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if one of the two is missing or broken, or they do not match.
    pub fn with_client_certificate(self, chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates(chain, "client certificate chain")?;
        // The cause is dropped because it could have bytes of the key.
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            TlsError::new("the client key holds no unencrypted private key in PEM form".to_owned())
        })?;
        let provider = self.config.crypto_provider();
        let identity = CertifiedKey::from_der(chain, key, provider).map_err(|error| {
            TlsError::caused(
                "the client certificate and key cannot be used".to_owned(),
                error,
            )
        })?;
        let mut config = ClientConfig::clone(&self.config);
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(identity));
        Ok(Self {
            config: Arc::new(config),
        })
    }

    /// What `rustls` needs for a connection to a host that a program makes itself: these settings, and
    /// the name that the certificate must have.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if no certificate can name the host.
    #[cfg(feature = "unstable-rustls-0_23")]
    pub fn client_config_for(
        &self,
        host: &str,
    ) -> io::Result<(Arc<ClientConfig>, ServerName<'static>)> {
        Ok((Arc::clone(&self.config), self.server_name(host)?))
    }

    pub(crate) fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.config))
    }

    /// The name that the certificate must have: without the zone of a link-local address, which only
    /// this machine knows, and without the final dot of a complete DNS name.
    pub(crate) fn server_name(&self, host: &str) -> io::Result<ServerName<'static>> {
        let name = match host.split_once('%') {
            Some((address, _)) => address,
            None => host.strip_suffix('.').unwrap_or(host),
        };
        ServerName::try_from(name.to_owned()).map_err(|_| {
            let text = format!("no TLS certificate can name the host {host}");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })
    }

    fn with_roots(roots: RootCertStore) -> Result<Self, TlsError> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::caused("TLS cannot be set up".to_owned(), error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            config: Arc::new(config),
        })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Why TLS settings are invalid. `source` has the details.
#[derive(Clone, Debug)]
pub struct TlsError {
    text: String,
    cause: Option<rustls::Error>,
}

impl TlsError {
    fn new(text: String) -> Self {
        Self { text, cause: None }
    }

    fn caused(text: String, cause: rustls::Error) -> Self {
        Self {
            text: format!("{text}: {cause}"),
            cause: Some(cause),
        }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for TlsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

/// An explicit provider, because the process-wide one may be unset or set by other code.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(TlsError::new(format!(
            "the {what} hold no certificate in PEM form"
        ))),
        Err(error) => Err(TlsError::new(format!("the {what} are not PEM: {error}"))),
    }
}

#[cfg(test)]
mod tests;
