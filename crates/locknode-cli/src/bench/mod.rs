//! `locknode bench`: a closed-loop load generator that checks every reply, and a comparison of servers under it.
//!
//! Closed loop: a connection sends its next pipeline when it has all replies to the last, as clients that wait for
//! their locks do. The latencies are those of the replies, from the moment the pipeline was sent. It is not an open
//! loop: a server that stalls is sent less, and the latencies that other clients would have seen are not made up.

mod batch;
mod client;
mod comparison;
mod comparison_report;
mod flags;
mod key_walk;
mod load;
mod own_node;
mod picture;
mod process;
mod recorder;
mod report;
mod statistics;
mod target;
mod workload;

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use self::comparison::Comparison;
pub(crate) use self::flags::BenchFlags;
use self::load::Load;
use self::own_node::OwnNode;
use self::report::Report;
use self::target::Target;
use crate::descriptors;
use crate::failure::{Exit, Failure};
use crate::json::Object;
use crate::output;
use crate::server_address::ServerAddress;

/// Measures servers and prints the result.
///
/// # Errors
///
/// If a server cannot be measured, the flags contradict each other or the run is void.
pub(crate) fn run(flags: &BenchFlags) -> Result<Exit, Failure> {
    check(flags)?;
    if flags.as_node {
        return own_node::serve(flags.connections, flags.ttl);
    }
    let read = |address: &String, flag| ServerAddress::read(address, flag, &flags.connect);
    let against = (flags.against.iter()).map(|address| read(address, "--against"));
    let against: Vec<ServerAddress> = against.collect::<Result<_, _>>()?;
    let given = (flags.addr.as_ref()).map(|address| read(address, "--addr"));
    let (own_node, first) = match given {
        Some(address) => (None, address?),
        None => {
            let node = OwnNode::start(flags.connections, flags.ttl)?;
            let address = node.address.clone();
            (Some(node), address)
        }
    };
    let measured = measure(flags, first, against).inspect_err(|failure| {
        if flags.json && failure.exit() == Exit::Void {
            // The exit code and standard error say it too, should this not be readable.
            let object = Object::default()
                .number("errors", 1)
                .text("void", &failure.to_string());
            let _ = output::write(&(object.finish() + "\n"));
        }
    });
    drop(own_node);
    measured.map(|()| Exit::Success)
}

fn measure(
    flags: &BenchFlags,
    first: ServerAddress,
    against: Vec<ServerAddress>,
) -> Result<(), Failure> {
    let first = Target::prepare(first, flags.workload)?;
    if against.is_empty() {
        let load = Load::new(flags, &first, WARM_UP, DURATION);
        let (load, measured) = (&load, &load.conduct()?);
        let report = Report { load, measured };
        return output::write_as(flags.json, || report.json(), || report.table());
    }
    let mut targets = vec![first];
    for address in against {
        let target = Target::prepare(address, flags.workload)?;
        if let Some(same) = targets.iter().find(|other| target.is_same_as(other)) {
            return Err(Failure::usage(format!(
                "{} and {} are the same server: give --against another one",
                same.address, target.address
            )));
        }
        targets.push(target);
    }
    if let Some(path) = &flags.svg {
        // Before a minute is spent on a picture that cannot be written.
        let opened = fs::OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|error| unwritable(path, &error))?;
    }
    let (count, rounds) = (targets.len(), flags.rounds);
    // Only for a person who waits: the run goes on where it cannot be written.
    let _ = writeln!(io::stderr(), "measuring {count} servers, {rounds} rounds");
    let comparison = Comparison::measure(flags, targets)?;
    output::write_as(flags.json, || comparison.json(), || comparison.table())?;
    if let Some(path) = &flags.svg {
        fs::write(path, picture::svg(&comparison)).map_err(|error| unwritable(path, &error))?;
    }
    Ok(())
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::unavailable(format!("cannot write {path}: {error}; change --svg"))
}

fn check(flags: &BenchFlags) -> Result<(), Failure> {
    let needed = flags.connections * flags.pipeline * flags.workload.pipelines_held();
    if needed > flags.keys && !flags.workload.needs_fresh_keys() && !flags.as_node {
        return Err(Failure::usage(format!(
            "{} connections with pipeline {} hold {needed} locks at a time: use --keys {needed} or more",
            flags.connections, flags.pipeline
        )));
    }
    if flags.against.len() >= SERVERS_MAX {
        return Err(Failure::usage(format!(
            "--against takes {} servers at most",
            SERVERS_MAX - 1
        )));
    }
    let room = descriptors::make_room(flags.connections, THREADS_RESERVE);
    if room < flags.connections {
        return Err(Failure::unavailable(format!(
            "the system allows {room} connections: raise the limit (ulimit -n) or lower --connections"
        )));
    }
    Ok(())
}

/// Enough for the server's caches and the kernel's buffers to be as they stay.
const WARM_UP: Duration = Duration::from_secs(1);

/// Long enough for a percentile of rare events.
const DURATION: Duration = Duration::from_secs(10);

/// As many colours can be told apart in a picture.
const SERVERS_MAX: usize = 8;

/// The descriptors of as many threads are kept free for what is no connection.
const THREADS_RESERVE: u16 = 16;
