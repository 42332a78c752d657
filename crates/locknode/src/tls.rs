//! What a node presents to TLS clients, and which of their certificates it accepts: read from PEM
//! files, and read again when they have changed.
//!
//! `rustls` does the rest, with its `ring` provider: TLS 1.2 and 1.3, and no other ciphers than it
//! has by default.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use locknode_engine::{Options, TlsClients};
use tokio::sync::Semaphore;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{self, InconsistentKeys, RootCertStore, ServerConfig};

use crate::sync_waiters::lock;

/// The TLS side of a node: certificate, key, and whom it trusts. Cloning returns another handle to
/// the same.
///
/// # Examples
///
/// ```no_run
/// use locknode::{Node, Tls};
/// use tokio::net::TcpListener;
///
/// # async fn serve(options: locknode::Options) -> Result<(), Box<dyn std::error::Error>> {
/// let tls = Tls::load(&options)?;
/// let node = Node::builder().options(options).build();
/// let listener = TcpListener::bind("127.0.0.1:6380").await?;
/// node.serve(tls.listener(listener), std::future::pending()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls {
    /// What new connections get.
    config: Arc<Mutex<Arc<ServerConfig>>>,
    /// Places for handshakes that are not done.
    handshakes: Arc<Semaphore>,
}

impl Tls {
    /// Reads the files that the options name: `tls-cert-file`, `tls-key-file`, and, unless
    /// `tls-auth-clients` is `no`, `tls-ca-cert-file`.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if a file is not given, cannot be read or holds nothing usable, or if the key is
    /// not that of the certificate.
    pub fn load(options: &Options) -> Result<Self, TlsError> {
        Ok(Self {
            config: Arc::new(Mutex::new(read(options)?)),
            handshakes: Arc::new(Semaphore::new(HANDSHAKES_MAX)),
        })
    }

    /// Reads the files again. Connections that are made from now on get what they hold; those that
    /// are open go on.
    ///
    /// # Errors
    ///
    /// As for [`load`](Self::load). What was in use then stays in use.
    pub fn reload(&self, options: &Options) -> Result<(), TlsError> {
        // Sessions are resumed only within one configuration: nobody whose certificate is no longer
        // accepted gets in by an earlier one.
        *lock(&self.config) = read(options)?;
        Ok(())
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&lock(&self.config))
    }

    pub(crate) fn handshakes(&self) -> Arc<Semaphore> {
        Arc::clone(&self.handshakes)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Why the files cannot be used. It names the file and its option.
#[derive(Clone, Debug)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for TlsError {}

/// One of the files.
struct File<'o> {
    option: &'static str,
    path: &'o str,
}

impl File<'_> {
    fn read(&self) -> Result<Vec<u8>, TlsError> {
        let Self { option, path } = self;
        if path.is_empty() {
            return Err(TlsError(format!("TLS needs a PEM file: give {option}")));
        }
        let bytes = std::fs::read(Path::new(path));
        bytes.map_err(|error| TlsError(format!("cannot read {path} ({option}): {error}")))
    }

    fn unusable(&self, reason: impl fmt::Display) -> TlsError {
        TlsError(format!("{} ({}) {reason}", self.path, self.option))
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let pem = self.read()?;
        let found = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|error| self.unusable(format_args!("is not PEM: {error}")))?;
        if found.is_empty() {
            return Err(self.unusable("holds no certificate in PEM form"));
        }
        Ok(found)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        // Without the cause, which could have bytes of the key.
        PrivateKeyDer::from_pem_slice(&self.read()?)
            .map_err(|_| self.unusable("holds no unencrypted private key in PEM form"))
    }
}

fn read(options: &Options) -> Result<Arc<ServerConfig>, TlsError> {
    let file = |option, path| File { option, path };
    let certificate = file("tls-cert-file", &options.tls_cert_file);
    let key = file("tls-key-file", &options.tls_key_file);
    let authority = file("tls-ca-cert-file", &options.tls_ca_cert_file);

    let provider = Arc::new(ring::default_provider());
    let identity = identity(&certificate, &key, &provider)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError(format!("TLS cannot be set up: {error}")))?;
    let builder = match options.tls_auth_clients {
        TlsClients::No => builder.with_no_client_auth(),
        _ if authority.path.is_empty() => {
            return Err(TlsError(
                "TLS needs to know who signs the certificates of clients: give tls-ca-cert-file, or \
                 set tls-auth-clients to no"
                    .to_owned(),
            ));
        }
        asked => {
            let unusable = |error: &dyn fmt::Display| {
                authority.unusable(format_args!("cannot be used: {error}"))
            };
            let mut roots = RootCertStore::empty();
            for root in authority.certificates()? {
                roots.add(root).map_err(|error| unusable(&error))?;
            }
            let mut verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            if asked == TlsClients::Optional {
                verifier = verifier.allow_unauthenticated();
            }
            let verifier = verifier.build().map_err(|error| unusable(&error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    Ok(Arc::new(builder.with_cert_resolver(Arc::new(identity))))
}

fn identity(
    certificate: &File<'_>,
    key: &File<'_>,
    provider: &CryptoProvider,
) -> Result<SingleCertAndKey, TlsError> {
    let identity = CertifiedKey::from_der(certificate.certificates()?, key.key()?, provider);
    let identity = identity.map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            key.unusable(format_args!("is not the key of {}", certificate.path))
        }
        error => certificate.unusable(format_args!("cannot be used: {error}")),
    })?;
    Ok(SingleCertAndKey::from(identity))
}

/// Handshakes that may be going on at a time, all listeners together: each can have some 64 KiB
/// buffered, and they need a few round trips. Further clients wait to be accepted.
const HANDSHAKES_MAX: usize = 256;
