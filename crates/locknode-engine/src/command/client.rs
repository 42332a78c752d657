//! CLIENT, the small subcommands: a connection's names, modes and replies, and the pause of all.
//!
//! Listing, killing and tracking have files of their own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use locknode_resp::Encoder;

use super::client_kill::kill;
use super::client_list::{info, list};
use super::client_tracking::{caching, redirection, tracking, tracking_info};
use super::integer;
use super::refusal;
use super::spec::{Flags, Keys, Spec};
use super::subcommand::{Container, Subcommand};
use crate::client::{NAME_LEN_MAX, NameKind};
use crate::context::{Context, Flow};
use crate::session::ReplyMode;

/// A pause of all commands holds CLIENT back too, all but CLIENT UNPAUSE: an operator must be able to end it. Redis
/// holds even that back.
fn client(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let ends_pause = args
        .get(1)
        .is_some_and(|sub| sub.eq_ignore_ascii_case(b"unpause"));
    if !ends_pause && context.engine.pause.holds(context.moment.time, Flags::NONE) {
        context.session.client.note_waiting();
        context.flow = Flow::Paused;
        return;
    }
    CLIENT.run(context, args, reply);
}

fn id(context: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.integer(i64::try_from(context.session.client.id).unwrap_or(i64::MAX));
}

fn name(context: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    match &*context.session.client.name(NameKind::Connection) {
        [] => reply.null(),
        name => reply.bulk(name),
    }
}

fn set_name(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let Some(&name) = args.get(2) else { return };
    match rename_refusal(name) {
        Some(refusal) => reply.error(refusal),
        None => {
            context.session.client.rename(NameKind::Connection, name);
            reply.ok();
        }
    }
}

fn set_info(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let &[_, _, option, value] = args else { return };
    let kind = if option.eq_ignore_ascii_case(b"lib-name") {
        NameKind::Library
    } else if option.eq_ignore_ascii_case(b"lib-ver") {
        NameKind::LibraryVersion
    } else {
        return refusal::quoting(reply, "ERR Unrecognized option '", option, "'");
    };
    if !is_printable(value) {
        let text = " cannot contain spaces, newlines or special characters.";
        return refusal::quoting(reply, "ERR ", option, text);
    }
    if context.session.client.rename(kind, value) {
        reply.ok()
    } else {
        reply.error(NAME_TOO_LONG)
    }
}

/// Why a connection cannot have that name; `None` if it can.
pub(crate) fn rename_refusal(name: &[u8]) -> Option<&'static str> {
    if !is_printable(name) {
        return Some("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    (name.len() > NAME_LEN_MAX).then_some(NAME_TOO_LONG)
}

/// CLIENT LIST separates its fields by spaces and its lines by line feeds.
fn is_printable(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

fn no_evict(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    switch(&context.session.client.is_no_evict, args, reply);
}

fn no_touch(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    switch(&context.session.client.is_no_touch, args, reply);
}

fn switch(flag: &AtomicBool, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let is_on = match args.get(2) {
        Some(word) if word.eq_ignore_ascii_case(b"on") => true,
        Some(word) if word.eq_ignore_ascii_case(b"off") => false,
        _ => return refusal::syntax(reply),
    };
    flag.store(is_on, Ordering::Relaxed);
    reply.ok();
}

/// The engine drops the replies that the mode says; this only sets it, and answers if that reply is wanted.
fn set_reply_mode(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let Some(&word) = args.get(2) else { return };
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

fn pause(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let is_all = match args {
        [_, _, _] => true,
        [_, _, _, mode] if mode.eq_ignore_ascii_case(b"all") => true,
        [_, _, _, mode] if mode.eq_ignore_ascii_case(b"write") => false,
        [_, _, _, _] => return reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL"),
        _ => {
            return refusal::subcommand_syntax(
                reply,
                CLIENT.name,
                args.get(1).copied().unwrap_or_default(),
            );
        }
    };
    let Some(timeout_ms) = args
        .get(2)
        .and_then(|arg| parse_timeout(context, arg, reply))
    else {
        return;
    };
    let until = context
        .moment
        .time
        .saturating_add(Duration::from_millis(timeout_ms));
    context.engine.pause.begin(until, is_all);
    reply.ok();
}

/// A timeout in milliseconds as PAUSE and WAIT take it, or the refusal that is in the reply then.
pub(crate) fn parse_timeout(
    context: &Context<'_, '_>,
    arg: &[u8],
    reply: &mut Encoder<'_>,
) -> Option<u64> {
    let Some(timeout_ms) = integer::parse(arg) else {
        reply.error("ERR timeout is not an integer or out of range");
        return None;
    };
    let Ok(positive_ms) = u64::try_from(timeout_ms) else {
        reply.error("ERR timeout is negative");
        return None;
    };
    if context
        .moment
        .wall
        .as_unix_millis()
        .checked_add(timeout_ms)
        .is_none()
    {
        reply.error("ERR timeout is out of range");
        return None;
    }
    Some(positive_ms)
}

fn unpause(context: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    context.engine.pause.clear();
    context.engine.clients.wake_all();
    reply.ok();
}

/// Nobody waits in a blocking command, so nobody can be unblocked.
fn unblock(_: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    match args {
        [_, _, _] => {}
        [_, _, _, reason]
            if reason.eq_ignore_ascii_case(b"timeout") || reason.eq_ignore_ascii_case(b"error") => {
        }
        [_, _, _, _] => return reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
        _ => {
            return refusal::subcommand_syntax(
                reply,
                CLIENT.name,
                args.get(1).copied().unwrap_or_default(),
            );
        }
    }
    match args.get(2).and_then(|id| integer::parse(id)) {
        Some(_) => reply.integer(0),
        None => reply.error(refusal::NOT_AN_INTEGER),
    }
}

/// What a client can do that the node never asks of it is of no consequence.
fn capabilities(_: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.ok();
}

const NAME_TOO_LONG: &str = "ERR Client names cannot be longer than 1024 bytes.";

const _: () = assert!(NAME_LEN_MAX == 1024, "the text above names the limit");

/// CLIENT and its subcommands.
pub(crate) const CLIENT: Container = Container {
    name: "client",
    subcommands: SUBCOMMANDS,
};

/// The commands of this family. CLIENT looks at a pause itself.
pub(crate) const SPECS: &[Spec] = &[Spec {
    name: CLIENT.name,
    syntax: "",
    arity: -2,
    flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::NO_PAUSE),
    keys: Keys::None,
    run: client,
    summary: "Looks after connections.",
    group: "connection",
    since: "2.4.0",
}];

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "caching",
        arity: 3,
        run: caching,
        syntax: "(YES|NO)",
        summary: "Refused: there is no client side caching.",
        since: "6.0.0",
    },
    Subcommand {
        name: "capa",
        arity: -3,
        run: capabilities,
        syntax: "<capability> [<capability> ...]",
        summary: "Accept what the client says it can do; nothing here depends on it.",
        since: "8.1.0",
    },
    Subcommand {
        name: "getname",
        arity: 2,
        run: name,
        syntax: "",
        summary: "Tell the name of the connection.",
        since: "2.6.9",
    },
    Subcommand {
        name: "getredir",
        arity: 2,
        run: redirection,
        syntax: "",
        summary: "Tell where invalidation messages go: -1 for nowhere.",
        since: "6.0.0",
    },
    Subcommand {
        name: "id",
        arity: 2,
        run: id,
        syntax: "",
        summary: "Tell the number of the connection.",
        since: "5.0.0",
    },
    Subcommand {
        name: "info",
        arity: 2,
        run: info,
        syntax: "",
        summary: "Tell what CLIENT LIST tells about this connection.",
        since: "6.2.0",
    },
    Subcommand {
        name: "kill",
        arity: -3,
        run: kill,
        syntax: "(<ip:port> | <filter> <value> [<filter> <value> ...])",
        summary: "Close connections by ID, ADDR, LADDR, TYPE, USER or MAXAGE; SKIPME no closes this one too.",
        since: "2.4.0",
    },
    Subcommand {
        name: "list",
        arity: -2,
        run: list,
        syntax: "[TYPE (NORMAL|MASTER|REPLICA|PUBSUB) | ID <id> [<id> ...]]",
        summary: "Tell about all connections, or some.",
        since: "2.4.0",
    },
    Subcommand {
        name: "no-evict",
        arity: 3,
        run: no_evict,
        syntax: "(ON|OFF)",
        summary: "Note that the connection is not to be closed for want of memory; none ever is.",
        since: "7.0.0",
    },
    Subcommand {
        name: "no-touch",
        arity: 3,
        run: no_touch,
        syntax: "(ON|OFF)",
        summary: "Note that the connection's reads are not to keep keys fresh; none does.",
        since: "7.2.0",
    },
    Subcommand {
        name: "pause",
        arity: -3,
        run: pause,
        syntax: "<milliseconds> [WRITE|ALL]",
        summary: "Hold back all commands, or only writes, of all connections for a time.",
        since: "3.0.0",
    },
    Subcommand {
        name: "reply",
        arity: 3,
        run: set_reply_mode,
        syntax: "(ON|OFF|SKIP)",
        summary: "Choose whether commands are answered; SKIP leaves out the next answer.",
        since: "3.2.0",
    },
    Subcommand {
        name: "setinfo",
        arity: 4,
        run: set_info,
        syntax: "(LIB-NAME|LIB-VER) <value>",
        summary: "Name the client library or its version.",
        since: "7.2.0",
    },
    Subcommand {
        name: "setname",
        arity: 3,
        run: set_name,
        syntax: "<name>",
        summary: "Name the connection.",
        since: "2.6.9",
    },
    Subcommand {
        name: "tracking",
        arity: -3,
        run: tracking,
        syntax: "(ON|OFF) [<option> ...]",
        summary: "OFF is accepted; ON is refused, because there is no client side caching.",
        since: "6.0.0",
    },
    Subcommand {
        name: "trackinginfo",
        arity: 2,
        run: tracking_info,
        syntax: "",
        summary: "Tell that the connection is not tracked.",
        since: "6.2.0",
    },
    Subcommand {
        name: "unblock",
        arity: -3,
        run: unblock,
        syntax: "<id> [TIMEOUT|ERROR]",
        summary: "Answer 0: no connection waits in a blocking command.",
        since: "5.0.0",
    },
    Subcommand {
        name: "unpause",
        arity: 2,
        run: unpause,
        syntax: "",
        summary: "End the pause.",
        since: "6.2.0",
    },
];
