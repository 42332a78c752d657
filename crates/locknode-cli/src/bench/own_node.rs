//! The node that is measured when no server is named: a process of its own, so that its CPU time can be counted and it
//! shares no more with the load generator than another server would. It ends when its standard input does, and so with
//! the load generator, however that ends.

use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use locknode::{Node, Options};

use crate::connect_flags::ConnectFlags;
use crate::failure::{Exit, Failure};
use crate::listening::{self, BACKLOG};
use crate::server_address::ServerAddress;
use crate::{output, serving};

/// A node in a process of its own; ended when dropped.
#[derive(Debug)]
pub(super) struct OwnNode {
    process: Child,
    pub(super) address: ServerAddress,
}

impl OwnNode {
    /// Starts a node for that many connections and locks of that TTL.
    ///
    /// # Errors
    ///
    /// When the process cannot be started or does not say where it listens.
    pub(super) fn start(connections: u64, ttl: Duration) -> Result<Self, Failure> {
        let failed = |error| Failure::internal(format!("cannot start a node: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command
            .args(["bench", "--as-node", "--connections"])
            .arg(connections.to_string())
            .arg("--ttl")
            .arg(format!("{}ms", ttl.as_millis()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            // What cannot be read is no address.
            let _ = BufReader::new(output).read_line(&mut line);
        }
        match ServerAddress::read(line.trim(), "--addr", &ConnectFlags::default()) {
            Ok(address) if !line.is_empty() => Ok(Self { process, address }),
            _ => {
                end(&mut process);
                Err(Failure::unavailable(
                    "the node to be measured did not start",
                ))
            }
        }
    }
}

impl Drop for OwnNode {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// It may have ended by itself; either way it is gone afterwards.
fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

/// Is that node: prints its address, and serves until standard input ends.
///
/// # Errors
///
/// When it cannot listen.
pub(super) fn serve(connections: u64, ttl: Duration) -> Result<Exit, Failure> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let opened = listening::listen(any, BACKLOG, 1).and_then(|sockets| {
        let socket = sockets.into_iter().next().ok_or(io::ErrorKind::NotFound)?;
        Ok((socket.local_addr()?, socket))
    });
    let (addr, socket) = opened.map_err(|error| listening::explain(any, "--port", &error))?;
    let runtime = serving::runtime()?;
    let mut options = Options::default();
    // One more asks for the version.
    options.maxclients = options.maxclients.max(connections + 1);
    // Nobody can know of locks of a node that begins and ends with this process.
    let node = Node::builder()
        .options(options)
        .first_start(true)
        .max_ttl(ttl)
        .build();
    let body = move || {
        runtime.block_on(async {
            if let Ok(listener) = tokio::net::TcpListener::from_std(socket) {
                // A node that ends early shows as connections that break, which makes the run void.
                let _ = node.serve(listener, std::future::pending()).await;
            }
        });
    };
    serving::spawn("node".to_owned(), body)?;
    output::write(&format!("{addr}\n"))?;
    // Nothing comes: the end does, or a failure, which is an end too.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    Ok(Exit::Success)
}
