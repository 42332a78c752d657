//! Features of Redis that the node lacks. It answers as a Redis that does not use them: cluster
//! mode, the slow log, latency samples and functions.

use locknode_resp::{Encoder, parse_integer};

use super::context::Context;
use super::flush::is_flush_mode;
use super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use super::{refusal, subcommand};

/// Clients send this to find out that there is no cluster. Without cluster mode Redis refuses even
/// HELP.
fn cluster(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    match args {
        [_, sub] if sub.eq_ignore_ascii_case(b"help") => reply.error(NO_CLUSTER),
        _ => subcommand::run(context, args, reply),
    }
}

fn slow_commands(
    _: &mut Context<'_, '_>,
    [container, sub]: &[&[u8]; 2],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    match words {
        [] => reply.array(0),
        [count] if parse_integer(count).is_some_and(|count| count >= -1) => reply.array(0),
        [_] => reply.error("ERR count should be greater than or equal to -1"),
        _ => refusal::subcommand_syntax(reply, container, sub),
    }
}

fn latency_doctor(_: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    reply.verbatim(*b"txt", b"This node does not sample its latency.\n");
}

fn latency_graph(_: &mut Context<'_, '_>, [_, _, event]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    refusal::quoting(reply, "ERR No samples available for event '", event, "'");
}

/// Test suites flush functions between tests; flushing none succeeds.
fn flush_functions(
    _: &mut Context<'_, '_>,
    [container, sub]: &[&[u8]; 2],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    match words {
        _ if is_flush_mode(words) => reply.ok(),
        [_] => reply.error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"),
        _ => refusal::subcommand_syntax(reply, container, sub),
    }
}

fn functions(
    _: &mut Context<'_, '_>,
    _: &[&[u8]; 2],
    mut words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    while let Some((word, rest)) = words.split_first() {
        words = match rest {
            _ if word.eq_ignore_ascii_case(b"withcode") => rest,
            [_, rest @ ..] if word.eq_ignore_ascii_case(b"libraryname") => rest,
            [] if word.eq_ignore_ascii_case(b"libraryname") => {
                return reply.error("ERR library name argument was not given");
            }
            _ => return refusal::quoting(reply, "ERR Unknown argument ", word, ""),
        };
    }
    reply.array(0);
}

const NO_CLUSTER: &str = "ERR This instance has cluster support disabled";

const CLUSTER: Spec = Spec {
    since: "3.0.0",
    ..Spec::of(Call::any(-2, cluster), Flags::LOADING, Keys::None, "server")
};

const READONLY: Spec = Spec {
    call: refused(1),
    flags: Flags::FAST.and(Flags::LOADING),
    group: "connection",
    ..CLUSTER
};

const SLOWLOG: Spec = Spec {
    since: "2.2.12",
    ..Spec::of(
        Call::any(-2, subcommand::run),
        Flags::ADMIN.and(Flags::LOADING),
        Keys::None,
        "server",
    )
};

const LATENCY: Spec = Spec {
    since: "2.8.13",
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING),
    ..SLOWLOG
};

const FUNCTION: Spec = Spec {
    since: "7.0.0",
    flags: Flags::NOSCRIPT.and(Flags::LOADING),
    group: "scripting",
    ..SLOWLOG
};

const fn refused(arity: i32) -> Call {
    Call::any(arity, |_, _, reply| reply.error(NO_CLUSTER))
}

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Refused: there is no cluster mode.
    "readonly", ..READONLY;

    /// Refused: there is no cluster mode.
    "readwrite", ..READONLY;

    /// Refused: there is no cluster mode.
    "asking", ..READONLY;

    /// Refused: there is no cluster mode.
    "cluster", subcommands: CLUSTER_COMMANDS, ..CLUSTER;

    /// Reports an empty slow log; the node keeps none.
    "slowlog", subcommands: SLOWLOG_COMMANDS, ..SLOWLOG;

    /// Reports no latency samples; the node takes none.
    "latency", subcommands: LATENCY_COMMANDS, ..LATENCY;

    /// Reports no functions; EVAL runs scripts.
    "function", subcommands: FUNCTION_COMMANDS, ..FUNCTION;
};

const CLUSTER_COMMANDS: &[Spec] = specs! {
    /// Refused: there is no cluster mode.
    "countkeysinslot", call: refused(3), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "getkeysinslot", call: refused(4), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "info", call: refused(2), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "keyslot", call: refused(3), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "links" since "7.0.0", call: refused(2), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "meet", call: refused(-4), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "myid", call: refused(2), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "myshardid" since "7.2.0", call: refused(2), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "nodes", call: refused(2), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "replicas" since "5.0.0", call: refused(3), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "reset", call: refused(-2), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "shards" since "7.0.0", call: refused(2), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "slaves", call: refused(3), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "slots", call: refused(2), ..CLUSTER;
};

const SLOWLOG_COMMANDS: &[Spec] = specs! {
    /// List the slow commands (this node keeps none).
    "get" "[<count>]", call: least!(slow_commands), ..SLOWLOG;

    /// Return the number of entries: 0.
    "len", call: Call::any(2, |_, _, reply| reply.integer(0)), ..SLOWLOG;

    /// Remove all entries (this node keeps none).
    "reset", call: Call::any(2, |_, _, reply| reply.ok()), ..SLOWLOG;
};

const LATENCY_COMMANDS: &[Spec] = specs! {
    /// Report that latency is not sampled.
    "doctor", call: exact!(latency_doctor), ..LATENCY;

    /// Refused: there are no samples.
    "graph" "<event>", call: exact!(latency_graph), ..LATENCY;

    /// Report the latencies of commands: none are measured.
    "histogram" "[<command> ...]" since "7.0.0",
        call: Call::any(-2, |_, _, reply| reply.map(0)), ..LATENCY;

    /// List the samples of an event (this node keeps none).
    "history" "<event>", call: Call::any(3, |_, _, reply| reply.array(0)), ..LATENCY;

    /// List the latest samples (this node keeps none).
    "latest", call: Call::any(2, |_, _, reply| reply.array(0)), ..LATENCY;

    /// Remove samples (this node keeps none).
    "reset" "[<event> ...]", call: Call::any(-2, |_, _, reply| reply.integer(0)), ..LATENCY;
};

const FUNCTION_COMMANDS: &[Spec] = specs! {
    /// Remove all functions (this node keeps none).
    "flush" "[ASYNC|SYNC]", call: least!(flush_functions), ..FUNCTION;

    /// List the functions (this node keeps none).
    "list" "[LIBRARYNAME <pattern>] [WITHCODE]", call: least!(functions), ..FUNCTION;
};
