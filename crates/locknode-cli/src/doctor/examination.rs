//! What one node shows: INFO, a few settings, and its clock and its round trips over some seconds.

use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use locknode_resp::Reply;

use super::clock_rate::{ClockRate, ClockReading, quickest};
use crate::server_address::ServerAddress;
use crate::server_connection::{ServerConnection, printable};
use crate::server_info::ServerInfo;

/// A node and what it shows.
#[derive(Clone, Debug)]
pub(super) struct Examined {
    pub(super) address: String,
    /// Or why it does not reply.
    pub(super) shown: Result<Shown, String>,
}

/// What a node that replies shows.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) info: ServerInfo,
    /// The reply to CONFIG GET appendfsync, if it may be asked.
    pub(super) appendfsync: Option<String>,
    pub(super) rate: Option<ClockRate>,
    /// How far its wall clock is ahead of the origin of our clock, in seconds.
    pub(super) ahead: Option<f64>,
    pub(super) round_trips: RoundTrips,
    /// The machine it is on, unless it is this one.
    pub(super) machine: Option<IpAddr>,
    /// Whether anyone who can reach it may use it.
    pub(super) is_open: bool,
}

/// How long replies take.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrips {
    pub(super) count: usize,
    pub(super) median: Duration,
    pub(super) longest: Duration,
}

/// Looks at a node for `time`. `origin` is where our clock begins, the same for all nodes.
pub(super) fn examine(
    address: &ServerAddress,
    origin: Instant,
    time: Duration,
    patience: Duration,
) -> Result<Shown, String> {
    let begin = Instant::now();
    let mut connection = ServerConnection::open(address, begin + patience)?;
    let info = ServerInfo::ask(&mut connection)?;
    let appendfsync = setting(&mut connection, b"appendfsync")?;
    let machine = connection.machine();
    connection.extend(begin + time + patience);
    let mut readings = Vec::new();
    let mut round_trips = Vec::new();
    let mut look = |connection: &mut ServerConnection| -> Result<(), String> {
        let asked = Instant::now();
        let reply = connection.call(&[b"TIME"])?;
        let round_trip = asked.elapsed();
        round_trips.push(round_trip);
        // A server that has no TIME, or does not let us ask, still shows how fast it replies.
        readings.extend(time_of(&reply).map(|shown| ClockReading {
            asked: asked.duration_since(origin),
            round_trip,
            shown,
        }));
        Ok(())
    };
    let end = begin + time;
    let mut left = time;
    for _ in 0..BURST {
        look(&mut connection)?;
    }
    while !left.is_zero() {
        sleep(left.min(PAUSE));
        look(&mut connection)?;
        left = end.saturating_duration_since(Instant::now());
    }
    for _ in 0..BURST {
        look(&mut connection)?;
    }
    let first = readings.get(..BURST).unwrap_or_default();
    let last = readings.len().saturating_sub(BURST);
    let last = readings.get(last..).unwrap_or_default();
    Ok(Shown {
        rate: ClockRate::of(first, last),
        ahead: quickest(last).map(ClockReading::ahead),
        round_trips: RoundTrips::of(round_trips),
        is_open: machine.is_some() && address.node.password().is_none(),
        info,
        appendfsync,
        machine,
    })
}

impl RoundTrips {
    fn of(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        Self {
            count: all.len(),
            median: all.get(all.len() / 2).copied().unwrap_or_default(),
            longest: all.last().copied().unwrap_or_default(),
        }
    }
}

/// A setting; `None` when it is unknown or may not be asked for.
fn setting(connection: &mut ServerConnection, name: &[u8]) -> Result<Option<String>, String> {
    Ok(match connection.call(&[b"CONFIG", b"GET", name])? {
        Reply::Array(pair) => match &pair[..] {
            [_, Reply::Bulk(value)] => Some(printable(value)),
            _ => None,
        },
        _ => None,
    })
}

/// Seconds and microseconds.
fn time_of(reply: &Reply) -> Option<Duration> {
    let Reply::Array(parts) = reply else {
        return None;
    };
    let number = |part: &Reply| -> Option<u64> {
        let Reply::Bulk(text) = part else { return None };
        std::str::from_utf8(text).ok()?.parse().ok()
    };
    let [seconds, micros] = &parts[..] else {
        return None;
    };
    let micros = number(micros)?.checked_add(number(seconds)?.checked_mul(1_000_000)?)?;
    Some(Duration::from_micros(micros))
}

/// Readings at the beginning and at the end: the quickest of them counts.
const BURST: usize = 10;

/// The pause between two readings in between.
const PAUSE: Duration = Duration::from_millis(50);
