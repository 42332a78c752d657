//! `locknode bench`: a closed-loop load generator that checks every reply.
//!
//! Closed loop: a connection sends its next pipeline when it has all replies to the last, as clients that wait for
//! their locks do. The latencies are those of the replies, from the moment the pipeline was sent. It is not an open
//! loop: a server that stalls is sent less, and the latencies that other clients would have seen are not made up.

mod batch;
mod client;
mod key_walk;
mod load;
mod recorder;
mod report;
mod workload;

use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use locknode::{Node, Options};
use locknode_resp::Reply;
use redlock_client::NodeAddress;

use self::load::{Extent, Load};
use self::report::Report;
use self::workload::{Material, NUMBER_LEN, RELEASE_SCRIPT, Workload};
use crate::duration;
use crate::failure::{Exit, Failure};
use crate::json::Object;
use crate::listening::{self, BACKLOG};
use crate::output;
use crate::server_address::ServerAddress;
use crate::server_connection::{ServerConnection, printable};
use crate::server_info::ServerInfo;
use crate::{descriptors, serving};

/// The flags of `locknode bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchFlags {
    /// The server: host:port, unix:PATH or redis://:password@host:port
    #[arg(
        long,
        long_help = "The server: host:port, unix:PATH or redis://user:password@host:port.\n\n\
        Without it a node is started in this process; it then shares the CPU with the load\n\
        generator, and the numbers say less."
    )]
    addr: Option<String>,

    /// What to send
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Workload::CycleEvalsha)]
    workload: Workload,

    /// Connections; each waits for its replies before it sends more
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX))]
    connections: u64,

    /// Commands that a connection sends before it waits
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=PIPELINE_MAX))]
    #[arg(
        long_help = "Commands that a connection sends before it waits, 1 to 1000.\n\n\
        The acquires of a pipeline are sent together, and when all are granted their releases."
    )]
    pipeline: u64,

    /// Different keys that the cycles use
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX))]
    #[arg(
        long_help = "Different keys that the cycles use, at least connections x pipeline.\n\n\
        Each connection has its own share, so that every lock is free when it is asked for. The\n\
        workload set always uses new keys."
    )]
    keys: u64,

    /// Length of a key in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(KEY_LEN_MIN..=LEN_MAX))]
    key_size: u64,

    /// Length of a token in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 32)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=LEN_MAX))]
    token_size: u64,

    /// TTL of a lock
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_positive)]
    ttl: Duration,

    /// Commands to send and count
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,

    /// Time to send and count
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_positive)]
    duration: Duration,

    /// Time to send before counting [default: 1s, with --requests 0s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    warmup: Option<Duration>,

    /// Threads of the load generator
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=THREADS_MAX))]
    threads: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures a server and prints the result.
///
/// # Errors
///
/// If the server cannot be reached, the flags contradict each other or the run is void.
pub(crate) fn run(flags: &BenchFlags) -> Result<Exit, Failure> {
    check(flags)?;
    let address = match &flags.addr {
        Some(address) => ServerAddress::read(address, "--addr")?,
        None => start_node(flags.connections, flags.ttl)?,
    };
    let prepared = prepare(flags, &address)?;
    let load = Load {
        address: address.clone(),
        workload: flags.workload,
        material: prepared.material,
        connections: flags.connections,
        pipeline: usize::try_from(flags.pipeline).unwrap_or(usize::MAX),
        keys: flags.keys,
        threads: flags.threads.min(flags.connections),
        warm_up: flags.warmup.unwrap_or(if flags.requests.is_some() {
            Duration::ZERO
        } else {
            WARM_UP
        }),
        extent: Extent::Time(flags.duration),
    };
    let steps: Vec<&'static str> = load
        .workload
        .steps(&load.material)
        .iter()
        .map(|step| step.name)
        .collect();
    let step_count = u64::try_from(steps.len()).unwrap_or(u64::MAX);
    let extent = flags
        .requests
        .map(|requests| Extent::Operations(requests.div_ceil(step_count)));
    let load = Load {
        extent: extent.unwrap_or(load.extent),
        ..load
    };
    let recorder = load.conduct().inspect_err(|failure| {
        if flags.json && failure.exit() == Exit::Void {
            // The exit code and standard error say it too, should this not be readable.
            let object = Object::default()
                .number("errors", 1)
                .text("void", &failure.to_string());
            let _ = output::write(&(object.finish() + "\n"));
        }
    })?;
    let report = Report {
        server: prepared.server,
        version: prepared.version,
        address: address.to_string(),
        is_in_process: flags.addr.is_none(),
        workload: flags.workload.name(),
        connections: flags.connections,
        pipeline: flags.pipeline,
        threads: load.threads,
        keys: flags.keys,
        key_len: flags.key_size,
        token_len: flags.token_size,
        ttl_ms: load.material.ttl_ms,
        steps,
        recorder: &recorder,
    };
    output::write(&if flags.json {
        report.json()
    } else {
        report.table()
    })?;
    Ok(Exit::Success)
}

fn check(flags: &BenchFlags) -> Result<(), Failure> {
    let needed = flags.connections * flags.pipeline;
    if needed > flags.keys && !flags.workload.needs_fresh_keys() {
        return Err(Failure::usage(format!(
            "{} connections with pipeline {} hold {needed} locks at a time: use --keys {needed} or more",
            flags.connections, flags.pipeline
        )));
    }
    // A node in this process has the other end of every connection.
    let ends = if flags.addr.is_none() { 2 } else { 1 };
    let room = descriptors::make_room(flags.connections * ends, THREADS_RESERVE) / ends;
    if room < flags.connections {
        return Err(Failure::unavailable(format!(
            "the system allows {room} connections: raise the limit (ulimit -n) or lower --connections"
        )));
    }
    Ok(())
}

/// Starts a node on a thread of its own; it ends with the process.
fn start_node(connections: u64, ttl: Duration) -> Result<ServerAddress, Failure> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let opened = listening::listen(any, BACKLOG, 1).and_then(|sockets| {
        let socket = sockets
            .into_iter()
            .next()
            .ok_or(std::io::ErrorKind::NotFound)?;
        Ok((socket.local_addr()?, socket))
    });
    let (addr, socket) = opened.map_err(|error| listening::explain(any, &error))?;
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
    thread::Builder::new()
        .name("node".to_owned())
        .spawn(body)
        .map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))?;
    let address = NodeAddress::parse(&addr.to_string());
    let address = address.map_err(|error| Failure::internal(error.to_string()))?;
    Ok(address.into())
}

/// What is known of the server before the run.
struct Prepared {
    server: String,
    version: String,
    material: Material,
}

/// Asks the server who it is and loads the script.
fn prepare(flags: &BenchFlags, address: &ServerAddress) -> Result<Prepared, Failure> {
    let unreachable = |reason: String| Failure::unavailable(format!("{address}: {reason}"));
    let deadline = Instant::now() + PREPARATION_MAX;
    let mut connection = ServerConnection::open(address, deadline).map_err(unreachable)?;
    let info = ServerInfo::ask(&mut connection).map_err(unreachable)?;
    if let Some(seconds) = info.quarantine_seconds() {
        return Err(unreachable(format!(
            "it is in its restart quarantine, {seconds} s left: wait, or, if no node in its place has ever granted a lock, start it \
             with --first-start"
        )));
    }
    let (server, version) = info.server();
    let mut release_sha = String::new();
    if flags.workload == Workload::CycleEvalsha {
        let load = connection.call(&[b"SCRIPT", b"LOAD", RELEASE_SCRIPT.as_bytes()]);
        release_sha = match load.map_err(unreachable)? {
            Reply::Bulk(sha) if sha.len() == SHA_LEN => String::from_utf8_lossy(&sha).into_owned(),
            Reply::Error(error) => {
                let error = printable(&error);
                return Err(unreachable(format!(
                    "it does not answer SCRIPT LOAD: {error}"
                )));
            }
            _ => return Err(unreachable("it does not answer SCRIPT LOAD".to_owned())),
        };
    }
    let run = random_digits();
    let prefix_len = usize::try_from(flags.key_size)
        .unwrap_or(0)
        .saturating_sub(NUMBER_LEN);
    let pad_len = prefix_len.saturating_sub(RUN_LEN);
    let mut key_prefix: Vec<u8> = b"lock::".iter().copied().cycle().take(pad_len).collect();
    // Keys of an earlier run may still be held: each run has its own.
    key_prefix.extend_from_slice(&run.as_bytes()[..RUN_LEN]);
    let token_len = usize::try_from(flags.token_size).unwrap_or(usize::MAX);
    let token = run.bytes().cycle().take(token_len).collect();
    let ttl_ms = u64::try_from(flags.ttl.as_millis()).unwrap_or(u64::MAX);
    Ok(Prepared {
        server: server.to_owned(),
        version: version.to_owned(),
        material: Material {
            key_prefix,
            token,
            ttl_ms,
            release_sha,
        },
    })
}

/// Sixteen hexadecimal digits that differ from run to run; the standard library seeds its hash tables with them.
fn random_digits() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

fn parse_positive(text: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    if duration.is_zero() || duration > DURATION_MAX {
        return Err("must be within 1ms and 24h".to_owned());
    }
    Ok(duration)
}

/// Enough for the server's caches and the kernel's buffers to be as they stay.
const WARM_UP: Duration = Duration::from_secs(1);

/// Connecting, INFO and SCRIPT LOAD together.
const PREPARATION_MAX: Duration = Duration::from_secs(5);

/// More than the ephemeral ports towards one address allow.
const CONNECTIONS_MAX: u64 = 100_000;

/// The replies to that many commands fit into a socket's buffers, so that neither side waits for the other for ever.
const PIPELINE_MAX: u64 = 1000;

/// The walk over the keys has a step above that.
const KEYS_MAX: u64 = 1 << 32;

/// The digits of the run and of the key.
const KEY_LEN_MIN: u64 = 24;

/// Longer keys and tokens measure only the copying of bytes.
const LEN_MAX: u64 = 4096;

/// More than the cores that one server can keep busy.
const THREADS_MAX: u64 = 256;

/// A day: nothing is learnt from longer runs or TTLs.
const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);

/// The descriptors of as many threads are kept free for what is no connection.
const THREADS_RESERVE: u16 = 16;

/// Digits that tell the keys of this run from those of others.
const RUN_LEN: usize = 8;

/// Hexadecimal digits of a SHA1.
const SHA_LEN: usize = 40;

pub(crate) const LONG_ABOUT: &str = "\
Measure a lock node, or a Redis or Valkey server, and check every reply.

Each connection sends a pipeline of commands, waits for all replies, and sends the next one. An
error or a wrong reply makes the run void: exit code 1, and the reply is shown.

The load generator costs about as much CPU as the server. Put them on different cores (taskset),
and compare the CPU time of the servers rather than the throughput.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  locknode bench                                         a node in this process, acquire and release
  locknode bench --addr 127.0.0.1:6379 --workload cycle-delex --pipeline 16
  locknode bench --addr unix:/run/locknode.sock --requests 1000000 --json

Locks that `set` leaves behind expire after --ttl.

Exit codes: 0 the run counts; 1 it is void; 64 wrong usage; 69 the server cannot be reached.";
