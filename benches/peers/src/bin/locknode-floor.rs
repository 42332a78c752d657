//! The floor under every lock node on tokio: a server that reads, finds the requests, answers each with the bytes that a
//! granted lock has, and writes once per read. It holds nothing. What a node costs above this is the node's own.
//!
//! Its decoder is that of locknode on 2026-11-29, copied and not called: a floor that moves measures nothing.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that answers --version and says why it ends"
)]

use std::cell::RefCell;
use std::io;
use std::process::ExitCode;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

/// Takes the arguments of a Redis: `--version`, or `--bind` and `--port` among others that it has no use for.
fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if args.iter().any(|arg| arg == "--version") {
        println!("bare tokio server, decoder of 2026-11-29");
        return ExitCode::SUCCESS;
    }
    let value = |flag| {
        args.windows(2)
            .find(|pair| pair[0] == flag)
            .map(|pair| &pair[1])
    };
    let (Some(host), Some(port)) = (value("--bind"), value("--port")) else {
        eprintln!("locknode-floor: give --bind and --port");
        return ExitCode::FAILURE;
    };
    match serve(&format!("{host}:{port}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("locknode-floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(address: &str) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(answer(stream));
        }
    })
}

/// The buffers that the connections share: only one of them runs at a time.
struct Scratch {
    input: Vec<u8>,
    output: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        input: vec![0; READ_LEN],
        output: Vec::new(),
    });
}

/// Serves a connection until it ends.
async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut rest = Vec::new();
    loop {
        stream.readable().await?;
        let turn = SCRATCH.with_borrow_mut(|scratch| turn(&stream, scratch, &mut rest));
        match turn {
            Ok(None) => return Ok(()),
            Ok(Some(unsent)) => stream.write_all(&unsent).await?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads once, answers what is complete and writes once; what could not be written is returned, and `None` at the end.
fn turn(
    stream: &TcpStream,
    scratch: &mut Scratch,
    rest: &mut Vec<u8>,
) -> io::Result<Option<Vec<u8>>> {
    let Scratch { input, output } = scratch;
    let (before, free) = input.split_at_mut(rest.len());
    let len = stream.try_read(free)?;
    if len == 0 {
        return Ok(None);
    }
    before.copy_from_slice(rest);
    let received = &input[..rest.len() + len];
    output.clear();
    let done = reply(received, output);
    rest.clear();
    rest.extend_from_slice(&received[done..]);
    match stream.try_write(output) {
        Ok(sent) => Ok(Some(output[sent..].to_vec())),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Some(output.clone())),
        Err(error) => Err(error),
    }
}

/// Appends the replies to all complete requests, and returns how many bytes those took.
fn reply(input: &[u8], output: &mut Vec<u8>) -> usize {
    let mut done = 0;
    while let Some(left @ [_, ..]) = input.get(done..) {
        let mut args = [&[][..]; SHORT_ARGS_MAX];
        let Some((_, len)) = short_request(left, &mut args) else {
            // A script is the only long argument that is sent here, and it comes alone.
            if left.starts_with(SCRIPT) && left.ends_with(b"end\r\n") {
                output.extend_from_slice(b"$40\r\nffffffffffffffffffffffffffffffffffffffff\r\n");
                return input.len();
            }
            break;
        };
        output.extend_from_slice(match args[0] {
            b"SET" => b"+OK\r\n",
            b"EVALSHA" | b"DELEX" | b"DELIFEQ" => b":1\r\n",
            b"PING" => b"+PONG\r\n",
            b"INFO" => b"$17\r\nredis_version:0\r\n\r\n",
            _ => b"-ERR unknown command\r\n",
        });
        done += len;
    }
    done
}

/// Decodes a complete request of one to nine short arguments into slices; returns the number of arguments and of bytes.
#[inline]
fn short_request<'b>(
    input: &'b [u8],
    args: &mut [&'b [u8]; SHORT_ARGS_MAX],
) -> Option<(usize, usize)> {
    let [b'*', digit @ b'1'..=b'9', b'\r', _, rest @ ..] = input else {
        return None;
    };
    let count = usize::from(digit - b'0');
    let mut rest = rest;
    for slot in args.get_mut(..count)? {
        let head = u32::from_le_bytes(*rest.first_chunk()?);
        let first = ((head >> 8) & 0xff).wrapping_sub(u32::from(b'0'));
        let (header_len, len) = if head & 0xff00_00ff == HEAD_2 {
            let second = ((head >> 16) & 0xff).wrapping_sub(u32::from(b'0'));
            if first.wrapping_sub(1) > 8 || second > 9 {
                return None;
            }
            (5, (first * 10 + second) as usize)
        } else if head & 0x00ff_00ff == HEAD_1 && first <= 9 {
            (4, first as usize)
        } else {
            return None;
        };
        let (arg, next) = rest.split_at_checked(header_len + len + TERMINATOR_LEN)?;
        *slot = arg.get(header_len..header_len + len)?;
        rest = next;
    }
    // The general path checks for a browser's first words.
    if matches!(args.first()?, [b'P' | b'p' | b'H' | b'h', b'O' | b'o', ..]) {
        return None;
    }
    Some((count, input.len() - rest.len()))
}

/// The most arguments that a count of one digit can announce.
const SHORT_ARGS_MAX: usize = 9;

/// `$`, a digit and CR, the digit and the fourth byte masked out.
const HEAD_1: u32 = u32::from_le_bytes([b'$', 0, b'\r', 0]);

/// `$`, two digits and CR, the digits masked out.
const HEAD_2: u32 = u32::from_le_bytes([b'$', 0, 0, b'\r']);

/// Length of CR LF.
const TERMINATOR_LEN: usize = 2;

/// How SCRIPT LOAD begins.
const SCRIPT: &[u8] = b"*3\r\n$6\r\nSCRIPT\r\n";

/// As much as a node reads at once.
const READ_LEN: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_complete_is_answered() {
        let script = "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$103\r\n".to_owned()
            + &"x".repeat(100)
            + "end\r\n";
        let all = "*2\r\n$3\r\nSET\r\n$1\r\nk\r\n*1\r\n$7\r\nDELIFEQ\r\n*1\r\n$4\r\nPING\r\n"
            .to_owned()
            + &script;
        let (mut output, mut answered) = (Vec::new(), 0);
        for len in 0..=all.len() {
            answered += reply(&all.as_bytes()[answered..len], &mut output);
        }
        assert_eq!(answered, all.len());
        let sha = "$40\r\n".to_owned() + &"f".repeat(40) + "\r\n";
        assert_eq!(
            output,
            ("+OK\r\n:1\r\n+PONG\r\n".to_owned() + &sha).as_bytes()
        );
    }
}
