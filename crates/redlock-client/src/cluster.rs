//! A Redis Cluster as one node: each request goes to the master that has its key.
//!
//! ```text
//!   link --requests--> Router --+--> master of slots 0..5461
//!        <--replies---          +--> master of slots ...     MOVED: learned; ASK: followed once
//! ```
//!
//! The link sees one connection whose replies come in the order of its requests. When the connection to
//! one master breaks, the whole breaks, and the link opens another. A cluster has one vote, however many
//! masters it has: it is one failure domain, and what one of its masters forgets in a failover is
//! forgotten.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use redlock_proto::Login;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf, duplex,
};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::address::Place;
use crate::tcp::connect_tcp;

/// Connects to a cluster through the first of these nodes that takes the connection.
///
/// # Errors
/// Those of the system, of the last node.
pub(crate) async fn connect(seeds: &[Place], login: &Login) -> io::Result<Routed> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for seed in seeds {
        match connect_tcp(&seed.0, seed.1).await {
            Ok(stream) => {
                let (near, far) = duplex(BUFFER);
                let router = Router {
                    masters: vec![Master::new(seed.clone(), stream)],
                    slots: HashMap::new(),
                    login: login.clone(),
                };
                let task = tokio::spawn(async move {
                    // The link sees that the connection is closed, and nobody else asks why.
                    let _ = router.run(far).await;
                });
                return Ok(Routed { near, task });
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The connection as the link sees it.
#[derive(Debug)]
pub(crate) struct Routed {
    near: DuplexStream,
    task: JoinHandle<()>,
}

impl Drop for Routed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What goes where.
#[derive(Debug)]
struct Router {
    /// The first one gets what has no key.
    masters: Vec<Master>,
    /// Where slots are that are not with the first one.
    slots: HashMap<u16, usize>,
    login: Login,
}

/// A connection to one master.
#[derive(Debug)]
struct Master {
    place: Place,
    stream: TcpStream,
    received: Vec<u8>,
}

/// Where a server says that a key is.
#[derive(Debug, PartialEq, Eq)]
enum Redirect {
    /// For good.
    Moved(u16, Place),
    /// For this request.
    Ask(Place),
}

impl Router {
    async fn run(mut self, mut link: DuplexStream) -> io::Result<()> {
        let mut input = Vec::new();
        loop {
            if link.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
            let mut requests = Vec::new();
            let mut end = 0;
            while let Some(len) = value_len(&input[end..], 0)? {
                requests.push(end..end + len);
                end += len;
            }
            let requests: Vec<&[u8]> = requests.into_iter().map(|at| &input[at]).collect();
            let replies = self.answer(&requests).await?;
            link.write_all(&replies.concat()).await?;
            input.drain(..end);
        }
    }

    /// The replies to some requests, in their order.
    async fn answer(&mut self, requests: &[&[u8]]) -> io::Result<Vec<Vec<u8>>> {
        let homes: Vec<usize> = requests.iter().map(|request| self.home(request)).collect();
        for (place, master) in self.masters.iter_mut().enumerate() {
            let mine = requests
                .iter()
                .zip(&homes)
                .filter(|(_, home)| **home == place);
            let bytes: Vec<u8> = mine
                .flat_map(|(request, _)| request.iter().copied())
                .collect();
            master.stream.write_all(&bytes).await?;
        }
        let mut replies = Vec::with_capacity(requests.len());
        for home in homes {
            let Some(master) = self.masters.get_mut(home) else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            replies.push(master.reply().await?);
        }
        // No reply is outstanding, so what is sent again meets no other.
        for (request, reply) in requests.iter().zip(&mut replies) {
            for _ in 0..REDIRECTS_MAX {
                let Some(redirect) = Redirect::of(reply) else {
                    break;
                };
                *reply = self.follow(redirect, request).await?;
            }
        }
        Ok(replies)
    }

    /// The master to which a request goes first.
    fn home(&self, request: &[u8]) -> usize {
        let slot = key_of(request).map(slot);
        slot.and_then(|slot| self.slots.get(&slot))
            .copied()
            .unwrap_or(0)
    }

    /// Sends a request that was not executed to where it belongs.
    async fn follow(&mut self, redirect: Redirect, request: &[u8]) -> io::Result<Vec<u8>> {
        let (place, asking) = match &redirect {
            Redirect::Moved(_, place) => (place, false),
            Redirect::Ask(place) => (place, true),
        };
        let home = self.connected(place).await?;
        if let Redirect::Moved(slot, _) = redirect {
            self.slots.insert(slot, home);
        }
        let Some(master) = self.masters.get_mut(home) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if asking {
            master.ask(b"*1\r\n$6\r\nASKING\r\n").await?;
        }
        master.ask(request).await
    }

    /// The connection to a master, opened if there is none.
    async fn connected(&mut self, place: &Place) -> io::Result<usize> {
        let known = self.masters.iter().position(|it| it.place == *place);
        if let Some(known) = known {
            return Ok(known);
        }
        if self.masters.len() >= MASTERS_MAX {
            return Err(io::Error::other("the cluster has too many masters"));
        }
        let mut place = place.clone();
        if place.0.is_empty() {
            // The server does not know its own name: it is on the host that we asked.
            place.0.clone_from(&self.masters[0].place.0);
        }
        let stream = connect_tcp(&place.0, place.1).await?;
        let mut master = Master::new(place, stream);
        if let Some(password) = &self.login.password {
            let mut words = vec!["AUTH"];
            words.extend(self.login.username.as_deref());
            words.push(password);
            let reply = master.ask(&encode(&words)).await?;
            if reply.first() == Some(&b'-') {
                return Err(io::Error::other(
                    "a master of the cluster refused the login",
                ));
            }
        }
        self.masters.push(master);
        Ok(self.masters.len() - 1)
    }
}

impl Master {
    fn new(place: Place, stream: TcpStream) -> Self {
        Self {
            place,
            stream,
            received: Vec::new(),
        }
    }

    async fn ask(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.stream.write_all(request).await?;
        self.reply().await
    }

    /// The next reply, all of it.
    async fn reply(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(len) = value_len(&self.received, 0)? {
                let rest = self.received.split_off(len);
                return Ok(std::mem::replace(&mut self.received, rest));
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl Redirect {
    fn of(reply: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(reply).ok()?.trim_end();
        let mut words = text.split(' ');
        let kind = words.next()?;
        let slot = words.next()?.parse().ok()?;
        let (host, port) = words.next()?.rsplit_once(':')?;
        let place = (host.to_owned(), port.parse().ok()?);
        match kind {
            "-MOVED" => Some(Self::Moved(slot, place)),
            "-ASK" => Some(Self::Ask(place)),
            _ => None,
        }
    }
}

/// The length of the first value in these bytes; `None` while it is not complete.
fn value_len(bytes: &[u8], depth: usize) -> io::Result<Option<usize>> {
    let Some(line_end) = bytes.windows(2).position(|two| two == b"\r\n") else {
        return Ok(None);
    };
    let (head, line) = bytes[..line_end].split_first().ok_or_else(invalid)?;
    let mut end = line_end + 2;
    let number = || -> io::Result<i64> {
        let text = std::str::from_utf8(line).map_err(|_| invalid())?;
        text.parse().map_err(|_| invalid())
    };
    match head {
        b'+' | b'-' | b':' => {}
        b'$' => {
            if let Ok(len) = usize::try_from(number()?) {
                end += len + 2;
            }
        }
        b'*' if depth < DEPTH_MAX => {
            for _ in 0..number()? {
                match value_len(bytes.get(end..).unwrap_or_default(), depth + 1)? {
                    Some(len) => end += len,
                    None => return Ok(None),
                }
            }
        }
        _ => return Err(invalid()),
    }
    if end > VALUE_LEN_MAX {
        return Err(invalid());
    }
    Ok((end <= bytes.len()).then_some(end))
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not the Redis protocol")
}

fn encode(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    bytes.into_bytes()
}

/// The key of a request, as the client writes them; `None` for what goes to any master.
fn key_of(request: &[u8]) -> Option<&[u8]> {
    let name = word(request, 0)?;
    let keyless: [&[u8]; 5] = [b"AUTH", b"CLIENT", b"COMMAND", b"INFO", b"PING"];
    if keyless.contains(&name) {
        return None;
    }
    let place = if name.starts_with(b"EVAL") { 3 } else { 1 };
    word(request, place)
}

/// A word of a request, which is an array of texts.
fn word(request: &[u8], place: usize) -> Option<&[u8]> {
    let mut rest = request.get(line_len(request)?..)?;
    for _ in 0..place {
        rest = rest.get(value_len(rest, 0).ok()??..)?;
    }
    let len = value_len(rest, 0).ok()??;
    rest.get(line_len(rest)?..len.checked_sub(2)?)
}

fn line_len(bytes: &[u8]) -> Option<usize> {
    Some(bytes.windows(2).position(|two| two == b"\r\n")? + 2)
}

/// The slot of a key: CRC-16 (XMODEM) of the part in braces if there is one, or of all of it.
fn slot(key: &[u8]) -> u16 {
    let open = key.iter().position(|byte| *byte == b'{');
    let tag = open.and_then(|open| {
        let rest = key.get(open + 1..)?;
        let close = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    });
    let crc = tag.unwrap_or(key).iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    });
    crc % 16_384
}

impl AsyncRead for Routed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.near).poll_read(context, buffer)
    }
}

impl AsyncWrite for Routed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.near).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.near).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.near).poll_shutdown(context)
    }
}

/// Requests are some dozens of bytes: hundreds fit.
const BUFFER: usize = 1 << 16;

/// A cluster that is being rebuilt may send a request on more than once, and one with a mistake for ever.
const REDIRECTS_MAX: usize = 5;

/// Redis recommends at most a thousand nodes.
const MASTERS_MAX: usize = 1_000;

/// COMMAND INFO has the deepest reply.
const DEPTH_MAX: usize = 8;

/// The longest reply that is read: COMMAND INFO and INFO have some KiB.
const VALUE_LEN_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        for (key, expected) in [
            ("123456789", 0x31c3),
            ("foo", 12_182),
            ("{user1000}.following", 3_443),
            ("{user1000}.followers", 3_443),
            ("", 0),
        ] {
            assert_eq!(slot(key.as_bytes()), expected % 16_384, "{key}");
        }
        assert_eq!(slot(b"a{}b"), slot(b"a{}b"));
        assert_ne!(slot(b"{}foo"), slot(b"foo"));
        assert_eq!(slot(b"a{foo}b{bar}"), slot(b"foo"));
    }

    #[test]
    fn keys_are_found_where_the_client_writes_them() {
        let rows: [(&[&str], Option<&str>); 6] = [
            (&["SET", "k", "t", "NX", "PX", "10"], Some("k")),
            (&["EVALSHA", "b70c", "1", "k", "t"], Some("k")),
            (&["GET", "k"], Some("k")),
            (&["AUTH", "k"], None),
            (&["PING"], None),
            (&["INFO", "server"], None),
        ];
        for (words, expected) in rows {
            let request = encode(words);
            assert_eq!(key_of(&request), expected.map(str::as_bytes), "{words:?}");
        }
    }

    #[test]
    fn a_value_is_complete_when_all_of_it_is_there() {
        for value in [
            "+OK\r\n",
            "$-1\r\n",
            "*-1\r\n",
            "$3\r\na\r\n\r\n",
            "*2\r\n*1\r\n:1\r\n$-1\r\n",
        ] {
            let bytes = value.as_bytes();
            for end in 0..bytes.len() {
                assert_eq!(
                    value_len(&bytes[..end], 0).unwrap(),
                    None,
                    "{value:?} {end}"
                );
            }
            assert_eq!(value_len(bytes, 0).unwrap(), Some(bytes.len()), "{value:?}");
        }
        for bad in [
            "x\r\n",
            "\r\n",
            "$x\r\n",
            "$9999999999\r\n",
            &"*1\r\n".repeat(99),
        ] {
            assert!(value_len(bad.as_bytes(), 0).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn redirections_are_read() {
        let place = |host: &str| (host.to_owned(), 6381);
        for (reply, expected) in [
            (
                "-MOVED 3999 127.0.0.1:6381\r\n",
                Some(Redirect::Moved(3999, place("127.0.0.1"))),
            ),
            (
                "-MOVED 3999 :6381\r\n",
                Some(Redirect::Moved(3999, place(""))),
            ),
            ("-ASK 3999 ::1:6381\r\n", Some(Redirect::Ask(place("::1")))),
            ("-ERR no\r\n", None),
            ("+OK\r\n", None),
        ] {
            assert_eq!(Redirect::of(reply.as_bytes()), expected, "{reply:?}");
        }
    }
}
