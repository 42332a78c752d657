//! The port for monitoring: metrics for Prometheus, and whether the node is up and ready.
//!
//! ```text
//!  GET /metrics  200 and the metrics
//!  GET /healthz  200; 503 when the thread that serves clients hangs
//!  GET /readyz   200 when the node grants locks; 503 and the reason when not
//! ```
//!
//! It has a thread of its own, so that whatever comes here delays no client of the node. One request is answered on a
//! connection, within limits on its size and its time; a new connection takes the place of the oldest one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use locknode::{GuardState, Node};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::condition::condition;
use super::hand_over::{Offer, Passed, Purpose};
use crate::failure::Failure;
use crate::listening;
use crate::log::Log;
use crate::pulse::{Felt, Pulse};
use crate::serving;

/// The flags about monitoring.
#[derive(Debug, clap::Args)]
pub(super) struct MonitoringFlags {
    /// Serve metrics for Prometheus, and probes, by HTTP at this address, such as 127.0.0.1:9121
    ///
    /// /metrics has the metrics; /healthz is 200 while the node is up, /readyz while it grants locks.
    /// There is no password and no encryption: anyone who reaches the address can read them. Every IPv4
    /// address is *:9121; a port alone is on 127.0.0.1, and port 0 picks a free one and prints it.
    #[arg(long, value_name = "ADDR", value_parser = parse_address, verbatim_doc_comment)]
    metrics_bind: Option<SocketAddr>,
}

/// The open port, if there is one.
#[derive(Debug)]
pub(super) struct Monitoring(Option<TcpListener>);

/// Dropped when the node begins to stop.
struct StopMark(Arc<AtomicBool>);

/// What is asked for.
struct Site {
    node: Node,
    pulse: Pulse,
    is_stopping: Arc<AtomicBool>,
    /// For how many seconds the pulse has not been felt.
    silence: AtomicU64,
}

/// An answer before it is written.
struct Answer {
    status: &'static str,
    text: String,
}

/// Reads `9121`, `127.0.0.1:9121`, `[::1]:9121` or `*:9121`.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let on = |host: Ipv4Addr, port: &str| {
        let port = port.parse().ok()?;
        Some(SocketAddr::new(IpAddr::V4(host), port))
    };
    let address = match text.strip_prefix("*:") {
        Some(port) => on(Ipv4Addr::UNSPECIFIED, port),
        None => text.parse().ok().or_else(|| on(Ipv4Addr::LOCALHOST, text)),
    };
    address.ok_or_else(|| "write an address such as 127.0.0.1:9121, *:9121 or 9121".to_owned())
}

impl Monitoring {
    /// Opens the port.
    ///
    /// # Errors
    ///
    /// When it is taken, or the address is not this machine's.
    pub(super) fn open(flags: &MonitoringFlags, offer: &mut Offer) -> Result<Self, Failure> {
        let Some(address) = flags.metrics_bind else {
            return Ok(Self(None));
        };
        if let Some(given) = offer.tcp(Purpose::Metrics, address).pop() {
            return Ok(Self(Some(given)));
        }
        let opened = listening::listen(address, BACKLOG, 1).map_err(|error| {
            Failure::unavailable(format!(
                "cannot listen on {address} for metrics: {error}: change --metrics-bind"
            ))
        });
        Ok(Self(opened?.pop()))
    }

    /// The socket for another process.
    ///
    /// # Errors
    ///
    /// When there are no descriptors left.
    pub(super) fn passed(&self) -> Result<Option<Passed>, Failure> {
        let Some(listener) = &self.0 else {
            return Ok(None);
        };
        let address = listener.local_addr().map(|address| address.to_string());
        let address = address.unwrap_or_default();
        Passed::of(Purpose::Metrics, address, listener.as_fd()).map(Some)
    }

    /// How often each thread that serves has to show that it runs.
    pub(super) fn beat(&self) -> Option<Duration> {
        self.0.as_ref().map(|_| BEAT)
    }

    /// Answers, on a thread of its own, until the process ends. The future that this returns is to be dropped when the
    /// node begins to stop.
    ///
    /// # Errors
    ///
    /// When the thread cannot be started.
    pub(super) fn start(
        self,
        node: &Node,
        pulse: Option<&Pulse>,
        log: &Log,
    ) -> Result<impl Future<Output = Infallible> + use<>, Failure> {
        let mark = StopMark(Arc::default());
        if let (Self(Some(listener)), Some(pulse)) = (self, pulse) {
            if let Ok(address) = listener.local_addr() {
                log.info(format_args!("metrics at http://{address}/metrics"));
            }
            let runtime = serving::runtime()?;
            let site = Arc::new(Site {
                node: node.clone(),
                pulse: pulse.clone(),
                is_stopping: Arc::clone(&mark.0),
                silence: AtomicU64::new(0),
            });
            serving::spawn("locknode-metrics".to_owned(), move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = accept(listener, &site) => {}
                        () = site.feel_pulse() => {}
                    }
                });
            })?;
        }
        Ok(async move {
            let _mark = mark;
            std::future::pending().await
        })
    }
}

impl Drop for StopMark {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Accepts connections until the process ends, or the listener is of no use.
async fn accept(listener: TcpListener, site: &Arc<Site>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let mut open = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        open.retain(|task: &tokio::task::JoinHandle<_>| !task.is_finished());
        if open.len() >= CONNECTIONS_MAX
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let site = Arc::clone(site);
        open.push_back(tokio::spawn(async move {
            // A peer that takes longer has its connection closed.
            let _ = timeout(TIME_MAX, serve(stream, &site)).await;
        }));
    }
}

/// Answers the one request of a connection.
async fn serve(mut stream: TcpStream, site: &Site) -> std::io::Result<()> {
    let mut head = Vec::new();
    let answer = loop {
        if head.len() >= HEAD_LEN_MAX {
            break Answer::refusal("431 Request Header Fields Too Large");
        }
        let before = head.len();
        let room = (HEAD_LEN_MAX - before) as u64;
        if (&mut stream).take(room).read_buf(&mut head).await? == 0 {
            return Ok(());
        }
        if has_blank_line(head.get(before.saturating_sub(3)..).unwrap_or_default()) {
            break site.answer(&head);
        }
    };
    let Answer { status, text } = answer;
    let len = text.len();
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {len}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{text}"
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await?;
    // Closing a socket with unread input would make the kernel reset the connection, and the peer could lose the
    // answer.
    let mut rest = [0; 4096];
    let mut late = 0;
    while late < LATE_INPUT_MAX {
        match stream.read(&mut rest).await? {
            0 => break,
            len => late += len,
        }
    }
    Ok(())
}

/// Whether a head ends in these bytes. What follows it is not looked at.
fn has_blank_line(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|it| it == b"\n\n") || bytes.windows(4).any(|it| it == b"\r\n\r\n")
}

impl Site {
    async fn feel_pulse(&self) {
        let mut felt = Felt::default();
        loop {
            sleep(BEAT).await;
            self.feel_once(&mut felt);
        }
    }

    /// Counts for how long not every thread shows that it runs.
    fn feel_once(&self, felt: &mut Felt) {
        if self.pulse.feel(felt) || self.is_stopping() {
            self.silence.store(0, Ordering::Relaxed);
        } else {
            self.silence.fetch_add(BEAT.as_secs(), Ordering::Relaxed);
        }
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed) || self.node.is_stopping()
    }

    fn answer(&self, head: &[u8]) -> Answer {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let mut words = line.trim_ascii_end().split(|byte| *byte == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Answer::refusal("400 Bad Request");
        };
        if !version.starts_with(b"HTTP/1.") {
            return Answer::refusal("400 Bad Request");
        }
        if method != b"GET" {
            return Answer::refusal("405 Method Not Allowed\r\nAllow: GET");
        }
        let path = target.split(|byte| *byte == b'?').next();
        match path.unwrap_or_default() {
            b"/metrics" => Answer::ok(self.node.metrics()),
            b"/healthz" => self.health(),
            b"/readyz" => self.readiness(),
            _ => Answer::refusal("404 Not Found"),
        }
    }

    fn health(&self) -> Answer {
        match self.silence.load(Ordering::Relaxed) {
            silence if silence < SILENCE_MAX => Answer::ok("up\n".to_owned()),
            silence => Answer::unavailable(format!(
                "a thread that serves clients has done nothing for {silence} s\n"
            )),
        }
    }

    fn readiness(&self) -> Answer {
        let guard = self.node.guard();
        if self.is_stopping() {
            return Answer::unavailable("stopping\n".to_owned());
        }
        let text = condition(&guard) + "\n";
        match guard.state {
            GuardState::Serving => Answer::ok(text),
            _ => Answer::unavailable(text),
        }
    }
}

impl Answer {
    const fn ok(text: String) -> Self {
        Self {
            status: "200 OK",
            text,
        }
    }

    const fn unavailable(text: String) -> Self {
        Self {
            status: "503 Service Unavailable",
            text,
        }
    }

    fn refusal(status: &'static str) -> Self {
        let text = status.lines().next().unwrap_or_default();
        Self {
            status,
            text: format!("{text}; there are /metrics, /healthz and /readyz\n"),
        }
    }
}

/// Connections at a time: a few collectors, and probes.
const CONNECTIONS_MAX: usize = 16;

/// Connections that may wait to be accepted. In a burst of more, the system lets a collector wait for a second.
const BACKLOG: i32 = 128;

/// The longest request line with all header fields: those of collectors have some hundred bytes.
const HEAD_LEN_MAX: usize = 8 << 10;

/// How long a connection may take from its beginning to its end: collectors wait for ten seconds.
const TIME_MAX: Duration = Duration::from_secs(5);

/// Input taken after the answer, so that the peer gets it.
const LATE_INPUT_MAX: usize = 256 << 10;

/// The pause after a failed accept: descriptors become free when clients leave.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often the serving thread shows that it is alive.
const BEAT: Duration = Duration::from_secs(1);

/// Seconds without a pulse after which the node does not count as up: no command takes so long.
const SILENCE_MAX: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_whose_serving_thread_hangs_is_not_up() {
        let pulse = Pulse::of(1, Duration::ZERO);
        let mark = StopMark(Arc::default());
        let site = Site {
            node: Node::builder().first_start(true).build(),
            pulse: pulse.clone(),
            is_stopping: Arc::clone(&mark.0),
            silence: AtomicU64::new(0),
        };
        let mut felt = Felt::default();
        let mut feel = |times| (0..times).for_each(|_| site.feel_once(&mut felt));
        let is_up = || site.health().status.starts_with("200");
        feel(SILENCE_MAX);
        assert!(is_up(), "it has not begun");
        pulse.count(0);
        feel(SILENCE_MAX);
        assert!(is_up(), "it has missed less than {SILENCE_MAX}");
        feel(1);
        assert!(!is_up());
        pulse.count(0);
        feel(1);
        assert!(is_up());
        drop(mark);
        feel(SILENCE_MAX + 1);
        assert!(is_up(), "it stops");
        assert_eq!(site.readiness().text, "stopping\n");
    }

    #[test]
    fn an_address_may_be_a_port_alone() {
        for (text, expected) in [
            ("9121", Some("127.0.0.1:9121")),
            ("*:9121", Some("0.0.0.0:9121")),
            ("10.0.0.1:80", Some("10.0.0.1:80")),
            ("[::1]:0", Some("[::1]:0")),
            ("localhost:9121", None),
            ("*", None),
            ("65536", None),
            ("", None),
        ] {
            let found = parse_address(text).ok().map(|it| it.to_string());
            assert_eq!(found.as_deref(), expected, "{text:?}");
        }
    }
}
