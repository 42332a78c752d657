//! Ports that stay ours while nobody listens on them.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// A free loopback port, kept by a socket that is bound and never listens: connecting to it is refused, no other
/// process gets it, and a listener of ours, or of a child, may come and go on it.
#[derive(Debug)]
pub struct LoopbackPort {
    address: SocketAddr,
    _holder: TcpSocket,
}

impl LoopbackPort {
    /// Reserves a port.
    pub fn reserve() -> Self {
        let holder = reusable_socket();
        holder
            .bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .expect("a free port");
        let address = holder.local_addr().expect("an address");
        Self {
            address,
            _holder: holder,
        }
    }

    /// The address that the port is reserved on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens on the port, with room for `backlog` connections that nobody has accepted.
    pub fn listen(&self, backlog: u32) -> TcpListener {
        let socket = reusable_socket();
        socket.bind(self.address).expect("a port of ours");
        socket.listen(backlog).expect("a listener")
    }
}

fn reusable_socket() -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("an address of ours");
    socket
}
