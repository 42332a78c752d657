//! Opens a TCP connection, by name or by address.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::thread;

use tokio::net::TcpStream;
use tokio::sync::oneshot;

pub(crate) async fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = None;
    for address in resolve(host, port, look_up).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Requests are a few dozen bytes, and callers wait for each.
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("the host name {host} has no address"),
        )
    }))
}

/// The addresses of a host name.
///
/// The system's resolver can hang, and a runtime cannot shut down while one of its threads waits for it.
/// So the resolver runs on a thread of its own, which is abandoned when nobody waits for it.
pub(crate) async fn resolve(host: &str, port: u16, look_up: LookUp) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (answer, answered) = oneshot::channel();
    let host = host.to_owned();
    let run = move || drop(answer.send(look_up(&host, port)));
    let thread = thread::Builder::new().name("redlock-resolve".to_owned());
    thread.stack_size(RESOLVER_STACK).spawn(run)?;
    answered
        .await
        .unwrap_or_else(|_| Err(io::Error::other("the resolver panicked")))
}

pub(crate) type LookUp = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// Enough for a resolver; the system's default may be eight times that. A look-up that hangs is repeated
/// every few seconds, so several such threads may exist at a time.
const RESOLVER_STACK: usize = 1 << 20;
