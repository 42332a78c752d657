//! SLOWLOG and LATENCY of a build without the feature `metrics`: they answer as a Redis in which
//! nothing was slow.

use locknode_resp::{Encoder, parse_integer};

use super::context::Context;
use super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use super::{refusal, subcommand};

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

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Reports an empty slow log; this build keeps none.
    "slowlog", subcommands: SLOWLOG_COMMANDS, ..SLOWLOG;

    /// Reports no latency samples; this build takes none.
    "latency", subcommands: LATENCY_COMMANDS, ..LATENCY;
};

const SLOWLOG_COMMANDS: &[Spec] = specs! {
    /// List the slow commands (this build keeps none).
    "get" "[<count>]", call: least!(slow_commands), ..SLOWLOG;

    /// Return the number of entries: 0.
    "len", call: Call::any(2, |_, _, reply| reply.integer(0)), ..SLOWLOG;

    /// Remove all entries (this build keeps none).
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

    /// List the samples of an event (this build keeps none).
    "history" "<event>", call: Call::any(3, |_, _, reply| reply.array(0)), ..LATENCY;

    /// List the latest samples (this build keeps none).
    "latest", call: Call::any(2, |_, _, reply| reply.array(0)), ..LATENCY;

    /// Remove samples (this build keeps none).
    "reset" "[<event> ...]", call: Call::any(-2, |_, _, reply| reply.integer(0)), ..LATENCY;
};
