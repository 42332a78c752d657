//! A build without TLS has no port for it.

use std::net::{SocketAddr, TcpListener};

use locknode::Node;

use super::flags::ServeFlags;
use crate::failure::Failure;
use crate::log::Log;
use crate::serving::Socket;

#[derive(Debug)]
pub(super) enum TlsPort {}

impl TlsPort {
    #[expect(clippy::unnecessary_wraps, reason = "with TLS, files can be missing")]
    pub(super) fn of(_: &ServeFlags) -> Result<Option<Self>, Failure> {
        Ok(None)
    }

    pub(super) const fn port(&self) -> u16 {
        match *self {}
    }

    pub(super) const fn checks_certificates(&self) -> bool {
        match *self {}
    }

    pub(super) fn socket(&self, _: TcpListener) -> Socket {
        match *self {}
    }

    pub(super) const fn reload(&self, _: &Log) {
        match *self {}
    }
}

pub(super) const fn announce(_: &Node, _: SocketAddr) {}
