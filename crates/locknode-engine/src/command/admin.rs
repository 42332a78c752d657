//! The node as a whole: TIME, ROLE, WAIT, WAITAOF and SHUTDOWN.

use locknode_resp::{Encoder, parse_integer};

use super::context::{Context, Flow};
use super::refusal;
use super::spec::{Flags, Keys, Spec, exact, least, specs};
use super::timeout;

/// Replies with the wall clock, which decides nothing here.
fn time(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    let micros = context.moment.wall.as_unix_nanos() / NANOS_PER_MICRO;
    reply.array(2);
    reply.bulk((micros / MICROS_PER_SECOND).to_string().as_bytes());
    reply.bulk((micros % MICROS_PER_SECOND).to_string().as_bytes());
}

/// Reports a primary without replicas: the lock nodes of a cluster know nothing of each other.
fn role(_: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(0);
    reply.array(0);
}

/// No replica will ever acknowledge, so the answer is known at once; Redis waits for the timeout.
fn wait(
    context: &mut Context<'_, '_>,
    [_, replicas, timeout]: &[&[u8]; 3],
    reply: &mut Encoder<'_>,
) {
    if parse_integer(replicas).is_none() {
        return reply.error(refusal::NOT_AN_INTEGER);
    }
    if timeout::parse(context, timeout, reply).is_some() {
        reply.integer(0);
    }
}

fn wait_for_file(
    context: &mut Context<'_, '_>,
    [_, local, replicas, timeout]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let is_local = match parse_integer(local) {
        Some(0) => false,
        Some(1) => true,
        Some(_) => return reply.error("ERR value is out of range, value must between 0 and 1"),
        None => return reply.error(refusal::NOT_AN_INTEGER),
    };
    if parse_integer(replicas).is_none_or(|replicas| replicas < 0) {
        return reply.error("ERR value is out of range, must be positive");
    }
    if timeout::parse(context, timeout, reply).is_none() {
        return;
    }
    if is_local {
        return reply
            .error("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
    }
    reply.array(2);
    reply.integer(0);
    reply.integer(0);
}

/// A shutdown that begins gets no reply. Without a data directory there is nowhere to save to: a
/// client that insists on saving gets an error unless it adds FORCE, as in Redis when it cannot
/// save. NOSAVE leaves no snapshot, so the next start of the node is one after a crash.
fn shutdown(
    context: &mut Context<'_, '_>,
    _: &[&[u8]; 1],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let (mut saves, mut never_saves, mut is_forced, mut is_now, mut aborts) =
        (false, false, false, false, false);
    for word in words {
        let flag = match word.to_ascii_lowercase().as_slice() {
            b"save" => &mut saves,
            b"nosave" => &mut never_saves,
            b"force" => &mut is_forced,
            b"now" => &mut is_now,
            b"abort" => &mut aborts,
            _ => return refusal::syntax(reply),
        };
        *flag = true;
    }
    if (saves && never_saves) || (aborts && (saves || never_saves || is_forced || is_now)) {
        return refusal::syntax(reply);
    }
    if aborts {
        return reply.error("ERR No shutdown in progress.");
    }
    if saves && !is_forced && !context.services.guard.has_log() {
        return reply
            .error("ERR the node has no data directory to save its locks to, use SHUTDOWN NOSAVE");
    }
    context.flow = if never_saves {
        Flow::ShutdownNoSave
    } else {
        Flow::Shutdown
    };
}

const NANOS_PER_MICRO: u64 = 1000;
const MICROS_PER_SECOND: u64 = 1_000_000;

const SERVER: Spec = Spec::of(exact!(time), Flags::LOADING, Keys::None, "server");

/// The commands of this family. SHUTDOWN is served during a pause: an operator must be able to stop
/// the node.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Replies with the wall clock in seconds and microseconds.
    "time" since "2.6.0", call: exact!(time), flags: Flags::FAST.and(Flags::LOADING), ..SERVER;

    /// Reports that the node is a primary without replicas.
    "role" since "2.8.12",
        call: exact!(role),
        flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::FAST).and(Flags::LOADING), ..SERVER;

    /// Returns 0, the number of replicas that have acknowledged.
    "wait" "numreplicas timeout" since "3.0.0", call: exact!(wait), group: "generic", ..SERVER;

    /// Returns 0 and 0: there is no append-only file, here or on replicas.
    "waitaof" "numlocal numreplicas timeout" since "7.2.0",
        call: exact!(wait_for_file), group: "generic", ..SERVER;

    /// Stops the node.
    "shutdown" "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]" since "1.0.0",
        call: least!(shutdown),
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::NO_PAUSE)
            .and(Flags::NO_MULTI), ..SERVER;
};
