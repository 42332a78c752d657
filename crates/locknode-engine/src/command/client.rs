//! CLIENT, the small subcommands: a connection's names, modes and replies, and the pause.
//!
//! Listing, killing and tracking have files of their own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use locknode_resp::{Encoder, parse_integer};

use super::client_kill::kill;
use super::client_list::{info, list};
use super::context::{Context, Flow};
use super::refusal;
use super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use super::subcommand;
use super::{client_name, timeout, tracking};
use crate::client::{Client, NameKind};
use crate::session::ReplyMode;

/// A pause of all commands also holds back CLIENT, except CLIENT UNPAUSE: an operator must be able
/// to end it. Redis holds even that back.
fn client(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let is_end = |sub: &&[u8]| sub.eq_ignore_ascii_case(b"unpause");
    let pause = &context.services.pause;
    let may_wait = context.journal.is_none() && !args.get(1).is_some_and(is_end);
    if may_wait && pause.holds(context.moment.time, Flags::NONE) {
        context.session.client.note_waiting();
        context.flow = Flow::Paused;
        return;
    }
    subcommand::run(context, args, reply);
}

fn id(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    reply.integer(i64::try_from(context.session.client.id).unwrap_or(i64::MAX));
}

fn name(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    match &*context.session.client.name(NameKind::Connection) {
        [] => reply.null(),
        name => reply.bulk(name),
    }
}

fn set_name(context: &mut Context<'_, '_>, [_, _, name]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    match client_name::refusal(name) {
        Some(refusal) => reply.error(refusal),
        None => {
            context.session.client.rename(NameKind::Connection, name);
            reply.ok();
        }
    }
}

fn set_info(
    context: &mut Context<'_, '_>,
    [_, _, option, value]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let kind = if option.eq_ignore_ascii_case(b"lib-name") {
        NameKind::Library
    } else if option.eq_ignore_ascii_case(b"lib-ver") {
        NameKind::LibraryVersion
    } else {
        return refusal::quoting(reply, "ERR Unrecognized option '", option, "'");
    };
    if !client_name::is_printable(value) {
        let text = " cannot contain spaces, newlines or special characters.";
        return refusal::quoting(reply, "ERR ", option, text);
    }
    if context.session.client.rename(kind, value) {
        reply.ok()
    } else {
        reply.error(client_name::NAME_TOO_LONG)
    }
}

fn switch(
    context: &mut Context<'_, '_>,
    flag: fn(&Client) -> &AtomicBool,
    [_, _, word]: &[&[u8]; 3],
    reply: &mut Encoder<'_>,
) {
    let is_on = word.eq_ignore_ascii_case(b"on");
    if !is_on && !word.eq_ignore_ascii_case(b"off") {
        return refusal::syntax(reply);
    }
    flag(&context.session.client).store(is_on, Ordering::Relaxed);
    reply.ok();
}

/// Sets the mode, by which the engine drops replies, and answers if that reply is wanted.
fn set_reply_mode(
    context: &mut Context<'_, '_>,
    [_, _, word]: &[&[u8]; 3],
    reply: &mut Encoder<'_>,
) {
    let mode = &mut context.session.reply_mode;
    if word.eq_ignore_ascii_case(b"on") {
        *mode = ReplyMode::On;
        reply.ok();
    } else if word.eq_ignore_ascii_case(b"off") {
        *mode = ReplyMode::Off;
    } else if word.eq_ignore_ascii_case(b"skip") {
        if *mode != ReplyMode::Off {
            *mode = ReplyMode::Armed;
        }
    } else {
        refusal::syntax(reply);
    }
}

fn pause(
    context: &mut Context<'_, '_>,
    [container, sub, timeout]: &[&[u8]; 3],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let is_all = match words {
        [] => true,
        [mode] if mode.eq_ignore_ascii_case(b"all") => true,
        [mode] if mode.eq_ignore_ascii_case(b"write") => false,
        [_] => return reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL"),
        _ => return refusal::subcommand_syntax(reply, container, sub),
    };
    let Some(timeout_ms) = timeout::parse(context, timeout, reply) else {
        return;
    };
    let until = context
        .moment
        .time
        .saturating_add(Duration::from_millis(timeout_ms));
    context.services.pause.begin(until, is_all);
    reply.ok();
}

fn unpause(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    context.services.pause.clear();
    context.services.clients.wake_all();
    reply.ok();
}

/// Ends the wait of a client in BLPOP, as its timeout would or with an error.
fn unblock(
    context: &mut Context<'_, '_>,
    [container, sub, id]: &[&[u8]; 3],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let with_error = match words {
        [] => false,
        [reason] if reason.eq_ignore_ascii_case(b"timeout") => false,
        [reason] if reason.eq_ignore_ascii_case(b"error") => true,
        [_] => return reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
        _ => return refusal::subcommand_syntax(reply, container, sub),
    };
    match parse_integer(id) {
        Some(id) => reply.integer(i64::from(end_wait(context, id, with_error))),
        None => reply.error(refusal::NOT_AN_INTEGER),
    }
}

#[cfg(feature = "compat")]
fn end_wait(context: &Context<'_, '_>, id: i64, with_error: bool) -> bool {
    let answer = |reply: &mut Encoder<'_>| {
        if with_error {
            reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
        } else {
            reply.null_array();
        }
    };
    u64::try_from(id).is_ok_and(|id| context.services.waiters.end(id, answer))
}

/// Nobody waits in a command.
#[cfg(not(feature = "compat"))]
fn end_wait(_: &Context<'_, '_>, _: i64, _: bool) -> bool {
    false
}

const CLIENT: Spec = Spec::of(
    Call::any(-2, client),
    Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::NO_PAUSE),
    Keys::None,
    "connection",
);

/// For operators. MONITOR does not show these.
const ADMIN: Spec = Spec {
    flags: CLIENT.flags.and(Flags::ADMIN),
    ..CLIENT
};

/// The commands of this family. CLIENT checks for a pause itself.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Manages connections.
    "client" since "2.4.0", subcommands: SUBCOMMANDS, ..CLIENT;
};

const SUBCOMMANDS: &[Spec] = specs! {
    /// Track, or do not track, the keys that the next command reads.
    "caching" "(YES|NO)" since "6.0.0", call: tracking::CACHING, ..CLIENT;

    /// Accept the client's capabilities; nothing here depends on them.
    "capa" "<capability> [<capability> ...]" since "8.1.0",
        call: Call::any(-3, |_, _, reply| reply.ok()), ..CLIENT;

    /// Return the name of the connection.
    "getname" since "2.6.9", call: exact!(name), ..CLIENT;

    /// Return where invalidation messages go: -1 for nowhere.
    "getredir" since "6.0.0", call: tracking::REDIRECTION, ..CLIENT;

    /// Return the number of the connection.
    "id" since "5.0.0", call: exact!(id), ..CLIENT;

    /// Return the line of CLIENT LIST for this connection.
    "info" since "6.2.0", call: exact!(info), ..CLIENT;

    /// Close connections by ID, ADDR, LADDR, TYPE, USER or MAXAGE; SKIPME no closes this one too.
    "kill" "(<ip:port> | <filter> <value> [<filter> <value> ...])" since "2.4.0",
        call: Call::any(-3, kill), ..ADMIN;

    /// List all connections, or some.
    "list" "[TYPE (NORMAL|MASTER|REPLICA|PUBSUB) | ID <id> [<id> ...]]" since "2.4.0",
        call: Call::any(-2, list), ..ADMIN;

    /// Exempt the connection from maxmemory-clients.
    "no-evict" "(ON|OFF)" since "7.0.0", call: exact!(switch, |client| &client.is_no_evict), ..ADMIN;

    /// Keep the connection's reads from refreshing keys; no read does.
    "no-touch" "(ON|OFF)" since "7.2.0", call: exact!(switch, |client| &client.is_no_touch), ..CLIENT;

    /// Hold back all commands, or only writes, of all connections for a time.
    "pause" "<milliseconds> [WRITE|ALL]" since "3.0.0", call: least!(pause), ..ADMIN;

    /// Choose whether to send replies; SKIP drops the next one.
    "reply" "(ON|OFF|SKIP)" since "3.2.0", call: exact!(set_reply_mode), ..CLIENT;

    /// Name the client library or its version.
    "setinfo" "(LIB-NAME|LIB-VER) <value>" since "7.2.0", call: exact!(set_info), ..CLIENT;

    /// Name the connection.
    "setname" "<name>" since "2.6.9", call: exact!(set_name), ..CLIENT;

    /// Send invalidations of the keys that the connection has read, or of those with a prefix.
    "tracking" "(ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]] [OPTIN] [OPTOUT] [NOLOOP]"
        since "6.0.0", call: tracking::TRACKING, ..CLIENT;

    /// Report how the connection tracks keys.
    "trackinginfo" since "6.2.0", call: tracking::TRACKING_INFO, ..CLIENT;

    /// End the wait of a client for an element of a list.
    "unblock" "<id> [TIMEOUT|ERROR]" since "5.0.0", call: least!(unblock), ..ADMIN;

    /// End the pause.
    "unpause" since "6.2.0", call: exact!(unpause), ..ADMIN;
};
