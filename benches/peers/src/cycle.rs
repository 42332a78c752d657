//! A load generator for cycles whose replies hold a fencing token, which `locknode bench` does not send.
//!
//! It runs as a process of its own on the second core, and reports as `locknode bench --json` does. A connection sends
//! the acquires of a pipeline together, and when all are granted their releases.

use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cycle {
    SetDelifeq,
    SetEvalsha,
    Lock,
    LockFloor,
}

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) port: u16,
    pub(crate) connections: u32,
    pub(crate) pipeline: u32,
    /// Commands, two for each cycle.
    pub(crate) commands: u64,
    pub(crate) keys: u64,
}

/// A command, and the right reply to it: these bytes, with a number between them if there are two parts.
#[derive(Clone, Debug)]
struct Step {
    request: Vec<u8>,
    reply: &'static [&'static [u8]],
}

impl Cycle {
    /// The first is what the others are compared with.
    pub(crate) const ALL: [Self; 4] = [
        Self::SetDelifeq,
        Self::SetEvalsha,
        Self::Lock,
        Self::LockFloor,
    ];

    /// The line's name in the table.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::SetDelifeq => "SET, DELIFEQ",
            Self::SetEvalsha => "SET, EVALSHA",
            Self::Lock => "LOCK.*",
            Self::LockFloor => "LOCK.* FLOOR",
        }
    }

    /// The one with this label.
    pub(crate) fn from_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cycle| cycle.label() == label)
    }

    fn steps(self, script: &str) -> [Step; 2] {
        let (key, token) = (KEY, TOKEN);
        let ok: &[&[u8]] = &[b"+OK\r\n"];
        let granted: &[&[u8]] = &[b"*3\r\n:1\r\n:", b"\r\n:30000\r\n"];
        let one: &[&[u8]] = &[b":1\r\n"];
        let set = step(&["SET", key, token, "NX", "PX", "30000"], ok);
        match self {
            Self::SetDelifeq => [set, step(&["DELIFEQ", key, token], one)],
            Self::SetEvalsha => [set, step(&["EVALSHA", script, "1", key, token], one)],
            Self::Lock => [
                step(&["LOCK.ACQUIRE", key, token, "30000"], granted),
                step(&["LOCK.RELEASE", key, token], one),
            ],
            Self::LockFloor => [
                step(
                    &["LOCK.ACQUIRE", key, token, "30000", "FLOOR", FLOOR],
                    granted,
                ),
                step(&["LOCK.RELEASE", key, token], one),
            ],
        }
    }
}

/// Runs the load, and reports.
///
/// # Errors
///
/// A wrong reply, or a connection that fails.
pub(crate) fn run(cycle: Cycle, size: Size) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(load(cycle, size))
}

async fn load(cycle: Cycle, size: Size) -> Result<Value, String> {
    let mut first = connect(size.port).await?;
    let script = load_script(&mut first).await?;
    let connections = u64::from(size.connections);
    let mut tasks = JoinSet::new();
    let mut streams = Vec::new();
    for _ in 0..connections {
        streams.push(connect(size.port).await?);
    }
    let started = Instant::now();
    for (index, stream) in (0..).zip(streams) {
        let steps = cycle.steps(&script);
        tasks.spawn(drive(stream, steps, size, index));
    }
    let mut latencies = Vec::new();
    while let Some(result) = tasks.join_next().await {
        latencies.extend(result.map_err(|error| error.to_string())??);
    }
    let seconds = started.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at = |part: usize| {
        let place = (latencies.len() * part / 100).min(latencies.len().saturating_sub(1));
        latencies.get(place).copied().unwrap_or(0)
    };
    let commands = u32::try_from(latencies.len()).map_err(|_| "too many commands")?;
    Ok(json!({
        "commands": commands,
        "commands_per_second": f64::from(commands) / seconds,
        "latency_us": { "all": { "p50": at(50), "p99": at(99) } },
    }))
}

/// Sends a connection's share; the latencies of its commands in microseconds.
async fn drive(
    mut stream: TcpStream,
    steps: [Step; 2],
    size: Size,
    index: u64,
) -> Result<Vec<u32>, String> {
    let pipeline = usize::try_from(size.pipeline).map_err(|error| error.to_string())?;
    let connections = u64::from(size.connections);
    let batches = size.commands / (2 * connections * u64::from(size.pipeline));
    let keys = (size.keys / connections).max(u64::from(size.pipeline));
    let mut key = 0;
    let mut latencies = Vec::new();
    let (mut requests, mut replies) = (Vec::new(), Vec::with_capacity(16 << 10));
    for _ in 0..batches.max(1) {
        let first = key;
        for step in &steps {
            requests.clear();
            key = first;
            for _ in 0..pipeline {
                step.append(&mut requests, index * keys + key);
                key = (key + 1) % keys;
            }
            let sent = Instant::now();
            let write = stream.write_all(&requests).await;
            write.map_err(|error| format!("sending failed: {error}"))?;
            let mut left = pipeline;
            replies.clear();
            while left > 0 {
                let read = stream.read_buf(&mut replies).await;
                if read.map_err(|error| format!("receiving failed: {error}"))? == 0 {
                    return Err("the server closed a connection".to_owned());
                }
                let waited = u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX);
                while let Some(len) = step.reply_len(&replies)? {
                    replies.drain(..len);
                    latencies.push(waited);
                    left = left.checked_sub(1).ok_or("more replies than requests")?;
                }
            }
        }
    }
    Ok(latencies)
}

impl Step {
    /// Appends the request for a key.
    fn append(&self, out: &mut Vec<u8>, key: u64) {
        let start = out.len();
        out.extend_from_slice(&self.request);
        // The key's last digits stand before the token, wherever the key is.
        let place = self
            .request
            .windows(KEY.len())
            .position(|window| window == KEY.as_bytes())
            .map_or(start, |at| start + at + KEY.len() - DIGITS);
        let digits = format!("{key:0DIGITS$x}");
        if let Some(place) = out.get_mut(place..place + DIGITS) {
            place.copy_from_slice(digits.as_bytes());
        }
    }

    /// The length of the reply that `bytes` begin with; `None` when there is more to come.
    fn reply_len(&self, bytes: &[u8]) -> Result<Option<usize>, String> {
        let mut rest = bytes;
        for (number, part) in self.reply.iter().enumerate() {
            if number > 0 {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                rest = rest.get(digits..).unwrap_or_default();
            }
            if rest.len() < part.len() && part.starts_with(rest) {
                return Ok(None);
            }
            rest = rest.strip_prefix(*part).ok_or_else(|| {
                let bytes = bytes.get(..bytes.len().min(80)).unwrap_or_default();
                format!("the reply was {:?}", String::from_utf8_lossy(bytes))
            })?;
        }
        Ok(Some(bytes.len() - rest.len()))
    }
}

async fn connect(port: u16) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await;
    let stream = stream.map_err(|error| format!("no connection: {error}"))?;
    stream
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    Ok(stream)
}

async fn load_script(stream: &mut TcpStream) -> Result<String, String> {
    let request = encode(&["SCRIPT", "LOAD", RELEASE]);
    let write = stream.write_all(&request).await;
    write.map_err(|error| error.to_string())?;
    let mut reply = Vec::new();
    while reply.len() < SCRIPT_REPLY_LEN && !reply.starts_with(b"-") {
        let read = stream.read_buf(&mut reply).await;
        if read.map_err(|error| error.to_string())? == 0 {
            break;
        }
    }
    let reply = String::from_utf8_lossy(&reply);
    let sha = reply.lines().nth(1);
    Ok(sha
        .ok_or_else(|| format!("SCRIPT LOAD: {reply}"))?
        .to_owned())
}

fn step(words: &[&str], reply: &'static [&'static [u8]]) -> Step {
    Step {
        request: encode(words),
        reply,
    }
}

fn encode(words: &[&str]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    request.into_bytes()
}

const KEY: &str = "lock:0000000000000000000000000";
const DIGITS: usize = 16;
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// As long as a counter is, and below all of them.
const FLOOR: &str = "1000000000000000";

/// The release that the Redis documentation gives and most lock libraries send.
const RELEASE: &str = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n    return redis.call(\"del\",KEYS[1])\nelse\n    return 0\nend";

/// `$40`, a SHA-1 in hexadecimal, and two line ends.
const SCRIPT_REPLY_LEN: usize = 47;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_with_a_number_are_told_from_wrong_ones() {
        let [acquire, _] = Cycle::Lock.steps("");
        for (bytes, expected) in [
            ("*3\r\n:1\r\n:1887436800000001\r\n:30000\r\n", Ok(Some(35))),
            ("*3\r\n:1\r\n:7\r\n:30000\r\n*3\r\n", Ok(Some(20))),
            ("*3\r\n:1\r\n:18874", Ok(None)),
            ("*3\r\n", Ok(None)),
            ("", Ok(None)),
            ("*3\r\n:0\r\n:7\r\n:30000\r\n", Err(())),
            ("*3\r\n:1\r\n:7\r\n:29999\r\n", Err(())),
            ("-LOADING\r\n", Err(())),
        ] {
            let found = acquire.reply_len(bytes.as_bytes()).map_err(|_| ());
            assert_eq!(found, expected, "{bytes:?}");
        }
    }

    #[test]
    fn every_request_is_for_the_key_it_is_numbered_for() {
        for cycle in Cycle::ALL {
            for step in cycle.steps(&"a".repeat(40)) {
                let mut out = b"before".to_vec();
                step.append(&mut out, 0xabc);
                let text = String::from_utf8(out).expect("ASCII");
                assert!(
                    text.contains("\r\nlock:0000000000000000000000abc\r\n"),
                    "{text}"
                );
                assert_eq!(text.len(), "before".len() + step.request.len());
            }
        }
    }
}
