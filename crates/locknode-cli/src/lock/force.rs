//! `locknode release --force`: releases a lock no matter who holds it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use redlock_client::{Forced, NodeForced, Redlock};

use crate::cluster;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::server_connection::printable;
use crate::status::key::holder;

/// Releases a lock on all nodes and prints who held it.
///
/// # Errors
///
/// If no majority of the nodes replies.
pub(super) async fn release(client: &Redlock, name: &OsStr) -> Result<Exit, Failure> {
    let forced = client.force_release(name.as_bytes()).await;
    let forced = forced.map_err(|error| cluster::failure(&error, Exit::Unavailable))?;
    output::write(&report(&forced, client.quorum()))?;
    let free = forced.iter().filter(|node| node.answer.is_ok()).count();
    if free >= client.quorum() {
        return Ok(Exit::Success);
    }
    Err(Failure::unavailable(format!(
        "the lock {}: {free} of {} nodes are free of it, a majority is {}; try again, or wait until it expires",
        name.display(),
        forced.len(),
        client.quorum()
    )))
}

/// A line for each node, and the fencing token that turns former holders away.
fn report(forced: &[NodeForced], majority: usize) -> String {
    let mut text = String::new();
    for NodeForced {
        address, answer, ..
    } in forced
    {
        let _ = match answer {
            Ok(forced) => writeln!(text, "{address}: {}", former(forced)),
            Err(cause) => writeln!(text, "{address}: unknown: {cause}"),
        };
    }
    let counted = forced.iter().flat_map(|node| &node.answer);
    let counters: Vec<_> = counted.filter_map(|forced| forced.fencing).collect();
    // Each fencing token is on a majority, and so below one of these.
    if counters.len() >= majority
        && let Some(highest) = counters.iter().max()
    {
        let _ = writeln!(
            text,
            "fencing token {highest}: a resource that has seen it turns the former holder away"
        );
    }
    text
}

fn former(forced: &Forced) -> String {
    let Some(held) = &forced.holder else {
        return match forced.was_held {
            true => "released; it was held without a token".to_owned(),
            false => "was free".to_owned(),
        };
    };
    let token = printable(held.token.as_ref());
    match holder(held) {
        Some(holder) => format!("released; it was held by {token} ({holder})"),
        None => format!("released; it was held by {token}"),
    }
}
