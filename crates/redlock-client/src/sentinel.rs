//! A Sentinel group as one node: the master is looked up anew for each connection.
//!
//! It is the master of one group, so it has one vote. When Sentinel makes a replica the master, it closes
//! the clients' connections to the old one, and the next connection goes to the new one.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::address::Place;
use crate::tcp::connect_tcp;

/// Connects to the master of a group.
///
/// # Errors
/// Those of the system; `NotFound` if no Sentinel knows the group, `Other` if its answer is out of date.
pub(crate) async fn connect(sentinels: &[Place], group: &str) -> io::Result<TcpStream> {
    let (host, port) = master(sentinels, group).await?;
    let mut stream = connect_tcp(&host, port).await?;
    // A Sentinel that was cut off may name a master that is none any more.
    let role = ask(&mut stream, b"*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n").await?;
    if role.iter().any(|line| line == "role:slave") {
        return Err(io::Error::other(format!(
            "{host}:{port} is a replica by now: the Sentinel that named it is out of date"
        )));
    }
    Ok(stream)
}

/// The first answer of any Sentinel: one that is down or silent delays nothing.
async fn master(sentinels: &[Place], group: &str) -> io::Result<(String, u16)> {
    let mut looks = JoinSet::new();
    for (host, port) in sentinels.iter().cloned() {
        let group = group.to_owned();
        looks.spawn(async move { look_up(&host, port, &group).await });
    }
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    while let Some(look) = looks.join_next().await {
        match look {
            Ok(Ok(master)) => return Ok(master),
            Ok(Err(error)) => failure = error,
            Err(error) => failure = io::Error::other(error),
        }
    }
    Err(failure)
}

async fn look_up(host: &str, port: u16, group: &str) -> io::Result<(String, u16)> {
    let mut stream = connect_tcp(host, port).await?;
    let request = format!(
        "*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n${}\r\n{group}\r\n",
        group.len()
    );
    let lines = ask(&mut stream, request.as_bytes()).await?;
    match &lines[..] {
        [array, _, master, _, port] if array == "*2" => match port.parse() {
            Ok(port) => Ok((master.clone(), port)),
            Err(_) => Err(unexpected(&lines)),
        },
        [null] if null == "*-1" || null == "$-1" => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("the Sentinel {host}:{port} knows no group {group}"),
        )),
        _ => Err(unexpected(&lines)),
    }
}

fn unexpected(lines: &[String]) -> io::Error {
    let first = lines.first().map_or("", String::as_str);
    let text = format!("a Sentinel answered {first:?}");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Sends one request, and returns the lines of its reply: an error, a null, a text or an array of two.
async fn ask(stream: &mut TcpStream, request: &[u8]) -> io::Result<Vec<String>> {
    stream.write_all(request).await?;
    let mut reply = Vec::new();
    loop {
        if let Some(lines) = complete(&reply) {
            return Ok(lines);
        }
        if reply.len() > REPLY_LEN_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if stream.read_buf(&mut reply).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// The lines of a reply, once all of it is there.
fn complete(reply: &[u8]) -> Option<Vec<String>> {
    let text = String::from_utf8_lossy(reply);
    let lines: Vec<String> = text.split("\r\n").map(str::to_owned).collect();
    let (last, whole) = lines.split_last()?;
    let first = whole.first()?;
    let is_complete = match first.split_at_checked(1)? {
        ("*", "2") => whole.len() >= 5,
        ("$", len) if len != "-1" => {
            let len: usize = len.parse().ok()?;
            reply.len() >= first.len() + 2 + len + 2
        }
        _ => true,
    };
    (is_complete && last.is_empty()).then(|| whole.to_vec())
}

/// INFO of the replication of some hundred replicas.
const REPLY_LEN_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_complete_when_all_of_it_is_there() {
        let master = "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n7101\r\n";
        for reply in [
            "*-1\r\n",
            "$-1\r\n",
            "-ERR no\r\n",
            "$4\r\na\r\nb\r\n",
            master,
        ] {
            for end in 0..reply.len() {
                assert_eq!(complete(&reply.as_bytes()[..end]), None, "{reply:?} {end}");
            }
            assert!(complete(reply.as_bytes()).is_some(), "{reply:?}");
        }
        assert_eq!(complete(master.as_bytes()).unwrap()[2], "127.0.0.1");
    }
}
