//! The port on which a node speaks TLS, whose certificates it reads again at SIGHUP.

use std::net::{SocketAddr, TcpListener};

use locknode::{Node, Options, Tls, TlsClients};

use super::flags::ServeFlags;
use crate::failure::Failure;
use crate::log::Log;
use crate::serving::Socket;

/// What `--tls-port` and the options of TLS say.
#[derive(Debug)]
pub(super) struct TlsPort {
    port: u16,
    tls: Tls,
    options: Options,
}

impl TlsPort {
    /// Reads the files; `None` if TLS is not asked for.
    ///
    /// # Errors
    ///
    /// When a file is missing or unusable.
    pub(super) fn of(setup: &ServeFlags) -> Result<Option<Self>, Failure> {
        if setup.tls_port == 0 {
            return Ok(None);
        }
        let options = setup.node.options.clone();
        let tls = Tls::load(&options);
        let tls = tls.map_err(|error| Failure::usage(format!("--tls-port: {error}")))?;
        Ok(Some(Self {
            port: setup.tls_port,
            tls,
            options,
        }))
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Whether every client must have a certificate.
    pub(super) fn checks_certificates(&self) -> bool {
        self.options.tls_auth_clients == TlsClients::Yes
    }

    pub(super) fn socket(&self, listener: TcpListener) -> Socket {
        Socket::Tls(listener, self.tls.clone())
    }

    /// Reads the files again, as SIGHUP asks for.
    pub(super) fn reload(&self, log: &Log) {
        match self.tls.reload(&self.options) {
            Ok(()) => log.info("SIGHUP: new connections get the TLS files as they are now"),
            Err(error) => log.warn(format_args!(
                "SIGHUP: {error}; what was in use before stays in use"
            )),
        }
    }
}

/// Has INFO and CONFIG report an address.
pub(super) fn announce(node: &Node, address: SocketAddr) {
    node.listens_with_tls_on(address);
}
