//! Features of Redis that the node lacks. It answers as a Redis that does not use them: cluster
//! mode and functions.

use locknode_resp::Encoder;

use super::context::Context;
use super::flush::is_flush_mode;
use super::spec::{Call, Flags, Keys, Spec, least, specs};
use super::{refusal, subcommand};

/// Clients send this to find out that there is no cluster. Without cluster mode Redis refuses even
/// HELP.
fn cluster(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    match args {
        [_, sub] if sub.eq_ignore_ascii_case(b"help") => reply.error(NO_CLUSTER),
        _ => subcommand::run(context, args, reply),
    }
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

const CLUSTER_ADMIN: Flags = Flags::LOADING.and(Flags::ADMIN);

const READONLY: Spec = Spec {
    call: refused(1),
    flags: Flags::FAST.and(Flags::LOADING),
    group: "connection",
    ..CLUSTER
};

const FUNCTION: Spec = Spec {
    since: "7.0.0",
    ..Spec::of(
        Call::any(-2, subcommand::run),
        Flags::NOSCRIPT.and(Flags::LOADING),
        Keys::None,
        "scripting",
    )
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
    "meet", call: refused(-4), flags: CLUSTER_ADMIN, ..CLUSTER;

    /// Refused: there is no cluster mode.
    "myid", call: refused(2), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "myshardid" since "7.2.0", call: refused(2), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "nodes", call: refused(2), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "replicas" since "5.0.0", call: refused(3), flags: CLUSTER_ADMIN, ..CLUSTER;

    /// Refused: there is no cluster mode.
    "reset", call: refused(-2), flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "shards" since "7.0.0", call: refused(2), ..CLUSTER;

    /// Refused: there is no cluster mode.
    "slaves", call: refused(3), flags: CLUSTER_ADMIN, ..CLUSTER;

    /// Refused: there is no cluster mode.
    "slots", call: refused(2), ..CLUSTER;
};

const FUNCTION_COMMANDS: &[Spec] = specs! {
    /// Remove all functions (this node keeps none).
    "flush" "[ASYNC|SYNC]", call: least!(flush_functions), ..FUNCTION;

    /// List the functions (this node keeps none).
    "list" "[LIBRARYNAME <pattern>] [WITHCODE]", call: least!(functions), ..FUNCTION;
};
