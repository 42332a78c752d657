//! Nodes and commands that speak TLS.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::process::Signal;
use socket2::{Domain, Socket, Type};

use crate::program::{Directory, Program, command, ended, ends, outcome, shows};

/// An authority, and files of what it signs.
struct Files {
    directory: Directory,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Files {
    /// An authority, with a certificate for a node and one for a client.
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params
            .distinguished_name
            .push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let files = Self {
            directory: Directory::new(&format!("tls-{name}")),
            authority,
        };
        files.directory.file("ca.pem", &files.authority.pem());
        files.issue("node");
        files.issue("client");
        files
    }

    fn issue(&self, name: &str) {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("names");
        // A certificate with the name of its authority counts as signed by itself in OpenSSL.
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.authority);
        let certificate = signed.expect("a certificate").pem();
        self.directory.file(&format!("{name}.pem"), &certificate);
        self.directory
            .file(&format!("{name}.key"), &key.serialize_pem());
    }

    fn path(&self, name: &str) -> String {
        self.directory.path_of(name)
    }

    /// A node that speaks only TLS, at that address.
    fn serve(&self, address: SocketAddr, more: &str) -> Program {
        let (port, path) = (address.port(), |name| self.path(name));
        let (cert, key, ca) = (path("node.pem"), path("node.key"), path("ca.pem"));
        let flags = format!(
            "serve --first-start --port 0 --tls-port {port} --tls-cert-file {cert} --tls-key-file {key} \
             --tls-ca-cert-file {ca} {more}"
        );
        Program::start(command(flags.split_whitespace()))
    }

    /// The flags of a client with a certificate.
    fn flags(&self) -> [String; 6] {
        let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|name| self.path(name));
        ["--cacert", &ca, "--cert", &cert, "--key", &key].map(str::to_owned)
    }
}

/// A port that stays ours while nobody listens on it.
fn reserve() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let bound = socket.set_reuse_address(true);
    bound
        .and_then(|()| socket.bind(&any.into()))
        .expect("a free port");
    let address = socket.local_addr().expect("an address").as_socket();
    (socket, address.expect("an address"))
}

#[test]
fn every_command_that_connects_speaks_tls() {
    let files = Files::new("commands");
    let (port, address) = reserve();
    let mut node = files.serve(address, "--threads 2");
    node.line_with(&format!("listening on {address} with TLS"));
    let url = format!("rediss://{address}");
    let flags = files.flags();
    let with_flags = |line: &str| {
        let words = line.split(' ').map(str::to_owned);
        words.chain(flags.clone()).collect::<Vec<_>>()
    };
    let (out, _) = ends(0, with_flags(&format!("status --nodes {url}")));
    shows(&out, &["all nodes serve"]);
    // Without the scheme, but with the flag.
    let (out, _) = ends(0, with_flags(&format!("status --tls --nodes {address}")));
    shows(&out, &["all nodes serve"]);
    let (token, _) = ends(0, with_flags(&format!("lock deploy --nodes {url}")));
    let (out, _) = ends(0, with_flags(&format!("status deploy --nodes {url}")));
    shows(&out, &["deploy is held by", token.trim()]);
    let release = format!("release deploy {} --tls --nodes {address}", token.trim());
    ends(0, with_flags(&release));
    let bench = format!("bench --addr {url} --requests 200 --connections 2 --pipeline 4");
    let (out, _) = ends(0, with_flags(&bench));
    shows(&out, &["locknode"]);

    // The same from the environment.
    let mut run = command(["run", "deploy", "--", "true"]);
    run.env("LOCKNODE_NODES", &url);
    for (name, value) in [("CACERT", 1), ("CERT", 3), ("KEY", 5)] {
        run.env(format!("LOCKNODE_{name}"), &flags[value]);
    }
    ended(0, &run.output().expect("it runs"));

    // Without a certificate, without trust, without TLS.
    let nobody = ["status", "--nodes", &url, "--cacert", &flags[1]];
    let (out, _) = ends(69, nobody);
    shows(&out, &["ertificate"]);
    let other = Files::new("others");
    let (out, _) = ends(
        69,
        ["status", "--nodes", &url, "--cacert", &other.path("ca.pem")],
    );
    shows(&out, &["invalid peer certificate"]);
    let plain = format!("status --nodes {address} --timeout 500ms");
    ends(69, plain.split(' '));
    let (_, err) = ends(
        64,
        ["status", "--nodes", &url, "--cacert", "/nonexistent.pem"],
    );
    shows(&err, &["/nonexistent.pem (--cacert)"]);

    if Command::new("redis-cli").arg("-v").output().is_err() {
        println!("skipped: there is no redis-cli");
        return;
    }
    let asked = |words: &[&str]| {
        let mut cli = Command::new("redis-cli");
        cli.args(["--tls", "-p", &address.port().to_string()])
            .args(&flags);
        outcome(&cli.args(words).output().expect("it runs"))
    };
    if asked(&["PING"]).2.contains("nrecognized option") {
        println!("skipped: this redis-cli speaks no TLS");
        return;
    }
    assert_eq!(asked(&["SET", "k", "t", "NX", "PX", "30000"]).1, "OK\n");
    let (_, info, _) = asked(&["INFO", "server"]);
    shows(&info, &[&format!("tcp_port:{}", address.port())]);
    let (_, config, _) = asked(&["CONFIG", "GET", "tls-*"]);
    shows(&config, &["tls-port", "node.key", "tls-auth-clients\nyes"]);
    assert_eq!(node.end(Signal::TERM).code(), Some(0));
    drop(port);
}

#[test]
fn hang_ups_have_the_files_read_again() {
    let files = Files::new("hang-ups");
    let (_port, address) = reserve();
    let mut node = files.serve(address, "--tls-auth-clients optional");
    node.line_with("with TLS");
    let url = format!("rediss://{address}");
    let status = |files: &Files| {
        let path = files.path("ca.pem");
        outcome(&crate::program::run([
            "status", "--nodes", &url, "--cacert", &path,
        ]))
        .0
    };
    assert_eq!(status(&files), Some(0));

    // Half of a renewal: what was there stays.
    let renewed = Files::new("renewed");
    let renew = |name: &str| {
        std::fs::copy(renewed.path(name), files.path(name)).expect("a file");
    };
    renew("node.key");
    node.signal(Signal::HUP);
    let line = node.line_with("SIGHUP");
    shows(
        &line,
        &["node.key (tls-key-file) is not the key of", "stays in use"],
    );
    assert_eq!(status(&files), Some(0));

    renew("node.pem");
    node.signal(Signal::HUP);
    node.line_with("SIGHUP: new connections");
    assert_eq!(status(&renewed), Some(0));
    assert_eq!(status(&files), Some(69));
}

#[test]
fn files_that_cannot_be_used_end_the_start() {
    let files = Files::new("unusable");
    let [cert, key] = ["node.pem", "node.key"].map(|name| files.path(name));
    for (flags, part) in [
        ("".to_owned(), "give tls-cert-file"),
        (format!("--tls-cert-file {cert}"), "give tls-key-file"),
        (
            format!("--tls-cert-file {cert} --tls-key-file {cert}"),
            "node.pem (tls-key-file) holds no unencrypted private key",
        ),
        (
            format!(
                "--tls-cert-file {cert} --tls-key-file {}",
                files.path("client.key")
            ),
            "is not the key of",
        ),
        (
            format!("--tls-cert-file {cert} --tls-key-file {key}"),
            "give tls-ca-cert-file",
        ),
        (
            format!("--tls-cert-file {cert} --tls-key-file {key}.absent"),
            "cannot read",
        ),
    ] {
        let line = format!("serve --tls-port 1 --port 0 {flags}");
        let (_, err) = ends(64, line.split_whitespace());
        shows(&err, &["--tls-port", part]);
    }
}
