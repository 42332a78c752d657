//! A loopback port of the cluster: one for each client and node, the same over all runs of the node.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use locknode::Peer;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::incarnation::Incarnation;
use super::net::{LinkId, Net};
use super::relay::Passage;

/// A port that stays the cluster's while its node is down: it is bound and does not listen, so connections are refused, and
/// the system gives it to nobody who asks for any free one.
///
/// Whoever asks for this very one with `SO_REUSEADDR`, as most servers do, gets it all the same while nobody listens: without
/// that option on ours the node could not come back to it. Then the node does not start again, and says which port it is.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
    link: LinkId,
    _holder: TcpSocket,
}

impl Gate {
    /// Reserves a port; any free one when it is 0.
    ///
    /// # Errors
    ///
    /// When the system has none, or somebody has this one.
    pub(crate) fn reserve(link: LinkId, port: u16) -> io::Result<Self> {
        let holder = socket()?;
        holder.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        Ok(Self {
            address: holder.local_addr()?,
            link,
            _holder: holder,
        })
    }

    /// Listens for as long as the node runs: the task has to be spawned, and has let the port go when it ends.
    ///
    /// # Errors
    ///
    /// When the system does not listen.
    pub(crate) fn open(
        &self,
        net: &Arc<Net>,
        incarnation: &Arc<Incarnation>,
    ) -> io::Result<impl Future<Output = ()> + Send + 'static> {
        let socket = socket()?;
        socket.bind(self.address)?;
        let listener = socket.listen(BACKLOG)?;
        let (net, incarnation, link) = (Arc::clone(net), Arc::clone(incarnation), self.link);
        Ok(accept(listener, net, link, incarnation))
    }
}

async fn accept(listener: TcpListener, net: Arc<Net>, link: LinkId, incarnation: Arc<Incarnation>) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = incarnation.door.closed() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, address)) = accepted else {
            // Out of descriptors: some come free when clients leave.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let laddr = listener.local_addr().map(|laddr| laddr.to_string());
        let peer = Peer {
            addr: address.to_string(),
            laddr: laddr.unwrap_or_default(),
            fd: 0,
        };
        // Messages are passed on as they come; a system that refuses this is only slower.
        let _ = stream.set_nodelay(true);
        let passage = Passage::new(Arc::clone(&net), link, Arc::clone(&incarnation), peer);
        let break_off = |stream: &TcpStream| {
            // If the system refuses, the connection ends instead of breaking.
            let _ = stream.set_zero_linger();
        };
        drop(tokio::spawn(passage.relay(stream, break_off)));
    }
}

fn socket() -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // Two sockets of ours share the port, of which one at most listens.
    socket.set_reuseaddr(true)?;
    Ok(socket)
}

/// Connections that nobody has accepted: as many as a node's server has by default.
const BACKLOG: u32 = 511;

const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
