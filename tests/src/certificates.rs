//! Certificate authorities of a test's own, what they sign, and files of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use locknode::{Options, TlsClients};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

/// Who signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key, both as PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// A new one.
    pub fn new(name: &str) -> Self {
        let mut params = params(&[]);
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let signed = CertifiedIssuer::self_signed(params, key());
        Self(signed.expect("an authority"))
    }

    /// Its own certificate as PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Signs a certificate for the loopback address.
    pub fn issue(&self) -> Identity {
        self.sign(params(&LOOPBACK))
    }

    /// The same, but no longer valid.
    pub fn issue_expired(&self) -> Identity {
        let mut params = params(&LOOPBACK);
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        self.sign(params)
    }

    /// The settings of a client that trusts it, with a certificate of its own or none.
    pub fn client(
        &self,
        identity: Option<&Identity>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a root");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(roots);
        Arc::new(match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = CertificateDer::pem_slice_iter(identity.certificate.as_bytes());
                let chain = chain.collect::<Result<_, _>>().expect("certificates");
                let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("a key");
                let built = builder.with_client_auth_cert(chain, key);
                built.expect("a certificate and its key")
            }
        })
    }

    fn sign(&self, params: CertificateParams) -> Identity {
        let key = key();
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Identity {
    /// Writes it where [`options`] expects it.
    pub fn write(&self, directory: &Path) {
        write(directory, CERTIFICATE, &self.certificate);
        write(directory, KEY, &self.key);
    }
}

/// Options whose files are in a directory: the identity of the node, and who signs those of clients.
pub fn options(directory: &Path, identity: &Identity, clients: Option<&Authority>) -> Options {
    identity.write(directory);
    let mut options = Options::default();
    options.tls_cert_file = path(directory, CERTIFICATE);
    options.tls_key_file = path(directory, KEY);
    options.tls_auth_clients = TlsClients::No;
    if let Some(clients) = clients {
        write(directory, AUTHORITY, &clients.pem());
        options.tls_ca_cert_file = path(directory, AUTHORITY);
        options.tls_auth_clients = TlsClients::Yes;
    }
    options
}

fn path(directory: &Path, name: &str) -> String {
    let path: PathBuf = directory.join(name);
    path.display().to_string()
}

fn write(directory: &Path, name: &str, text: &str) {
    std::fs::write(directory.join(name), text).expect("a file");
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).expect("names")
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

const LOOPBACK: [&str; 2] = ["localhost", "127.0.0.1"];
const CERTIFICATE: &str = "node.pem";
const KEY: &str = "node.key";
const AUTHORITY: &str = "ca.pem";
