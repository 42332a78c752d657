//! How the lab's own clients reach its nodes: over sockets as others do, whose addresses are known, so that what these clients
//! note themselves is not read off the wire a second time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use locknode_testkit::cluster::Recorder;
use redlock_client::{Connecting, Connection, Connector, NodeAddress, NodeId};
use tokio::net::TcpStream;

/// Connections of a client that notes what it believes.
#[derive(Debug)]
pub(super) struct Noting {
    recorder: Arc<Recorder>,
    nodes: Vec<SocketAddr>,
}

impl Noting {
    /// To the nodes at these addresses.
    pub(super) fn new(recorder: Arc<Recorder>, nodes: Vec<SocketAddr>) -> Self {
        Self { recorder, nodes }
    }
}

impl Connector for Noting {
    fn connect(&self, node: NodeId, _: &NodeAddress) -> Connecting {
        let (recorder, address) = (
            Arc::clone(&self.recorder),
            self.nodes.get(node.index()).copied(),
        );
        Box::pin(async move {
            let address = address.ok_or(io::ErrorKind::InvalidInput)?;
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            recorder.notes_itself(stream.local_addr()?);
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}
