use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::address::NodeAddress;
use crate::connector::Connection;
use crate::socket::connect;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for `names` and its key, both as PEM.
fn issue(authority: &Authority, names: &[&str]) -> (String, String) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(names).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// A server with a certificate for `names` that echoes two bytes; with `clients`, one that lets in
/// only who has a certificate of that authority. Gives its port.
async fn serve(authority: &Authority, names: &[&str], clients: Option<&Authority>) -> u16 {
    let (chain, key) = issue(authority, names);
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            roots.add(clients.der().clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        }
    };
    let chain = certificates(chain.as_bytes(), "chain").unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let config = builder.with_single_cert(chain, key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        if let Ok(mut stream) = TlsAcceptor::from(Arc::new(config)).accept(stream).await {
            let mut bytes = [0; 2];
            stream.read_exact(&mut bytes).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    port
}

fn trusting(authority: &Authority) -> Tls {
    Tls::with_root_certificates(authority.pem().as_bytes()).unwrap()
}

async fn dial(host: &str, port: u16, tls: &Tls) -> io::Result<Box<dyn Connection>> {
    let address = NodeAddress::parse(&format!("rediss://{host}:{port}")).unwrap();
    connect(&address, Some(tls)).await
}

async fn echo(mut socket: Box<dyn Connection>) -> io::Result<[u8; 2]> {
    let mut back = [0; 2];
    socket.write_all(b"ab").await?;
    socket.flush().await?;
    socket.read_exact(&mut back).await?;
    Ok(back)
}

#[tokio::test]
async fn a_node_signed_by_the_root_is_trusted_under_each_of_its_names() {
    let authority = authority("ours");
    for host in ["localhost", "127.0.0.1"] {
        let port = serve(&authority, &["localhost", "127.0.0.1"], None).await;
        let socket = dial(host, port, &trusting(&authority)).await.unwrap();
        assert_eq!(&echo(socket).await.unwrap(), b"ab", "{host}");
    }
}

#[tokio::test]
async fn a_node_signed_by_another_root_or_under_another_name_is_refused() {
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let rows = [
        (&theirs, &["localhost"], "localhost", "UnknownIssuer"),
        (&ours, &["node.example"], "localhost", "not valid for"),
        (&ours, &["localhost"], "127.0.0.1", "not valid for"),
    ];
    for (signer, names, host, reason) in rows {
        let port = serve(signer, names, None).await;
        let error = dial(host, port, &trusting(&ours)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_node_that_asks_for_a_client_certificate_gets_it() {
    let (nodes, clients) = (authority("ours"), authority("theirs"));
    let (chain, key) = issue(&clients, &["me"]);
    let tls = trusting(&nodes)
        .with_client_certificate(chain.as_bytes(), key.as_bytes())
        .unwrap();
    let port = serve(&nodes, &["localhost"], Some(&clients)).await;
    let socket = dial("localhost", port, &tls).await.unwrap();
    assert_eq!(&echo(socket).await.unwrap(), b"ab");

    // With TLS 1.3 the refusal arrives after the handshake, with the first bytes.
    let port = serve(&nodes, &["localhost"], Some(&clients)).await;
    let refused = match dial("localhost", port, &trusting(&nodes)).await {
        Ok(socket) => echo(socket).await.err(),
        Err(error) => Some(error),
    };
    assert!(refused.is_some());
}

#[tokio::test]
async fn a_node_that_speaks_no_tls_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"-ERR unknown command\r\n").await.unwrap();
    });
    let error = dial("localhost", port, &trusting(&authority("ours")))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
}

#[tokio::test]
async fn a_configuration_of_the_users_own_is_used_as_it_is() {
    let authority = authority("ours");
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let port = serve(&authority, &["localhost"], None).await;
    let tls = Tls::from_client_config(Arc::new(config));
    assert_eq!(
        &echo(dial("localhost", port, &tls).await.unwrap())
            .await
            .unwrap(),
        b"ab"
    );
}

#[test]
fn bad_pem_is_refused_with_the_reason() {
    let authority = authority("ours");
    let (chain, key) = issue(&authority, &["me"]);
    let other_key = KeyPair::generate().unwrap().serialize_pem();
    let cut = &chain[..chain.len() / 2];
    let rows = [
        ("", "hold no certificate"),
        ("\0\u{fffd} not pem", "hold no certificate"),
        (&key, "hold no certificate"),
        (cut, "are not PEM"),
        (
            "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n",
            "are not PEM",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "cannot be used",
        ),
    ];
    for (pem, reason) in rows {
        let error = Tls::with_root_certificates(pem.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
    let rows: [(&str, &str, &str); 5] = [
        ("", &key, "hold no certificate"),
        (&chain, "", "holds no unencrypted private key"),
        (&chain, &chain, "holds no unencrypted private key"),
        (&chain, &other_key, "cannot be used"),
        (
            &chain,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "cannot be used",
        ),
    ];
    for (chain, key, reason) in rows {
        let tls = trusting(&authority);
        let error = tls
            .with_client_certificate(chain.as_bytes(), key.as_bytes())
            .unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn the_name_to_check_is_the_host_without_zone_and_last_dot() {
    let tls = trusting(&authority("ours"));
    let rows = [
        ("node.example", Some("node.example")),
        ("node.example.", Some("node.example")),
        ("127.0.0.1", Some("127.0.0.1")),
        ("fe80::1%eth0", Some("fe80::1")),
        ("-", None),
    ];
    for (host, expected) in rows {
        let name = tls.server_name(host).ok();
        assert_eq!(
            name.as_ref().map(|name| name.to_str()).as_deref(),
            expected,
            "{host}"
        );
    }
}

#[test]
fn debug_shows_no_key() {
    assert_eq!(format!("{:?}", trusting(&authority("ours"))), "Tls { .. }");
}
