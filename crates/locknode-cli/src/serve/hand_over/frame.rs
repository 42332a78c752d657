//! What two processes send each other: a kind, some bytes, and perhaps a socket.

use std::io::{self, IoSlice, IoSliceMut, Read, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// One message.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) bytes: Vec<u8>,
    pub(super) socket: Option<OwnedFd>,
}

/// What a message is. The numbers are part of the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A listening socket, with what it is for.
    Listener = 1,
    /// No more of them.
    ListenersEnd = 2,
    /// From the successor: it has all that it needs, and the predecessor is to stop.
    Ready = 3,
    /// What the node leaves.
    Legacy = 4,
    /// A connection.
    Connection = 5,
    /// The end: the predecessor grants nothing any more. When it stopped executing commands, on the system's clock.
    Done = 6,
}

impl Kind {
    fn of(number: u8) -> io::Result<Self> {
        let all = [
            Self::Listener,
            Self::ListenersEnd,
            Self::Ready,
            Self::Legacy,
            Self::Connection,
            Self::Done,
        ];
        let known = all.into_iter().find(|kind| *kind as u8 == number);
        known.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "an unknown message"))
    }
}

/// Sends a message.
///
/// # Errors
///
/// What the operating system says.
pub(super) fn send(
    stream: &UnixStream,
    kind: Kind,
    bytes: &[u8],
    socket: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let [l0, l1, l2, l3, l4, l5, l6, l7] = (bytes.len() as u64).to_le_bytes();
    let head = [kind as u8, l0, l1, l2, l3, l4, l5, l6, l7];
    let sockets: Vec<_> = socket.into_iter().collect();
    let began = Instant::now();
    let sent = loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !sockets.is_empty() {
            beside.push(SendAncillaryMessage::ScmRights(&sockets));
        }
        match sendmsg(
            stream,
            &[IoSlice::new(&head)],
            &mut beside,
            SendFlags::NOSIGNAL,
        ) {
            // The system limits how many sockets may be under way; the other process takes them meanwhile.
            Err(Errno::TOOMANYREFS) if began.elapsed() < PATIENCE => sleep(PAUSE),
            Err(Errno::INTR) => {}
            sent => break sent?,
        }
    };
    let mut stream = stream;
    stream.write_all(&head[sent..])?;
    stream.write_all(bytes)
}

/// Waits for the next message.
///
/// # Errors
///
/// When the other process is gone, takes too long or sends something else.
pub(super) fn receive(stream: &UnixStream) -> io::Result<Frame> {
    let mut head = [0; 9];
    let mut filled = 0;
    let mut socket = None;
    while filled < head.len() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let room = &mut [IoSliceMut::new(&mut head[filled..])];
        let received = match recvmsg(stream, room, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => continue,
            received => received?,
        };
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(sockets) = message {
                socket = sockets.last();
            }
        }
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += received.bytes;
    }
    let [kind, len @ ..] = head;
    let len = u64::from_le_bytes(len);
    let mut bytes = Vec::new();
    let mut stream = stream;
    if Read::take(&mut stream, len).read_to_end(&mut bytes)? as u64 != len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Frame {
        kind: Kind::of(kind)?,
        bytes,
        socket,
    })
}

/// Reads a line of at most [`LINE_LEN_MAX`] bytes, and nothing behind it.
///
/// # Errors
///
/// As [`receive`].
pub(super) fn line(mut stream: &UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte)?;
        match byte {
            [b'\n'] => break,
            _ if line.len() >= LINE_LEN_MAX => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "an endless line",
                ));
            }
            [byte] => line.push(byte),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// The longest path of a data directory, and some words.
const LINE_LEN_MAX: usize = 8192;

/// One that takes nothing for so long takes nothing any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// The other process needs microseconds for a socket.
const PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_socket_goes_with_its_message() {
        let (here, there) = UnixStream::pair().expect("two ends");
        let (mut passed, mut kept) = UnixStream::pair().expect("two ends");
        let large = vec![7; 100_000];
        let sender = std::thread::spawn(move || {
            send(&here, Kind::Listener, b"tcp", Some(passed.as_fd())).expect("sent");
            send(&here, Kind::Legacy, &large, None).expect("sent");
            passed.write_all(b"x").expect("sent");
        });
        let frame = receive(&there).expect("a message");
        assert_eq!((frame.kind, &*frame.bytes), (Kind::Listener, &b"tcp"[..]));
        let socket = frame.socket.expect("a socket");
        let frame = receive(&there).expect("a message");
        assert_eq!((frame.kind, frame.bytes.len()), (Kind::Legacy, 100_000));
        assert!(frame.socket.is_none());
        sender.join().expect("it ends");
        // The sender's own descriptor is closed by now.
        kept.write_all(b"y").expect("sent");
        let mut byte = [0];
        UnixStream::from(socket)
            .read_exact(&mut byte)
            .expect("read");
        assert_eq!(byte, *b"y");
        let ended = receive(&there).expect_err("nobody is there");
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_no_message_is_told() {
        let (mut here, there) = UnixStream::pair().expect("two ends");
        here.write_all(&[99, 0, 0, 0, 0, 0, 0, 0, 0]).expect("sent");
        let unknown = receive(&there).expect_err("unknown");
        assert_eq!(unknown.kind(), io::ErrorKind::InvalidData);
        here.write_all(&[b'a'; LINE_LEN_MAX + 1]).expect("sent");
        assert!(line(&there).is_err());
    }
}
