//! CLIENT LIST and CLIENT INFO: one line per connection in Redis's format.
//!
//! The fields have Redis's order and names. Those that the node does not know, such as the sizes of
//! buffers, are omitted.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use locknode_resp::{Encoder, parse_integer};

use super::Commands;
use super::context::Context;
use super::refusal;
use crate::client::{Client, NameKind};
use crate::observers::Tracked;

/// The kinds of clients that Redis distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientType {
    Normal,
    /// Subscribers.
    Pubsub,
    /// Masters and replicas; a node has none.
    Absent,
}

impl ClientType {
    /// Returns the type of that name, in any case.
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        match word.to_ascii_lowercase().as_slice() {
            b"normal" => Some(Self::Normal),
            b"pubsub" => Some(Self::Pubsub),
            b"master" | b"slave" | b"replica" => Some(Self::Absent),
            _ => None,
        }
    }

    /// Returns whether the client is of this type.
    pub(crate) fn includes(self, client: &Client) -> bool {
        match self {
            Self::Normal => !client.is_subscriber(),
            Self::Pubsub => client.is_subscriber(),
            Self::Absent => false,
        }
    }
}

/// `ERR Unknown client type 'x'`.
pub(crate) fn refuse_type(reply: &mut Encoder<'_>, word: &[u8]) {
    refusal::quoting(reply, "ERR Unknown client type '", word, "'");
}

pub(super) fn info(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let mut text = String::new();
    describe(&mut text, context, &context.session.client);
    reply.verbatim(*b"txt", text.as_bytes());
}

pub(super) fn list(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let clients = &context.services.clients;
    let listed = match args {
        [_, _] => clients.all(),
        [_, _, option, word] if option.eq_ignore_ascii_case(b"type") => {
            let Some(kind) = ClientType::of(word) else {
                return refuse_type(reply, word);
            };
            let mut all = clients.all();
            all.retain(|client| kind.includes(client));
            all
        }
        [_, _, option, ids @ ..] if option.eq_ignore_ascii_case(b"id") && !ids.is_empty() => {
            // Each client is listed once, so that a reply is never longer than the list of all.
            let mut seen = HashSet::new();
            let mut found = Vec::new();
            for id in ids {
                let Some(id) = parse_integer(id) else {
                    return reply.error("ERR Invalid client ID");
                };
                let client = u64::try_from(id).ok().and_then(|id| clients.find(id));
                found.extend(client.filter(|client| seen.insert(client.id)));
            }
            found
        }
        _ => return refusal::syntax(reply),
    };
    let mut text = String::new();
    for client in listed {
        describe(&mut text, context, &client);
    }
    reply.verbatim(*b"txt", text.as_bytes());
}

/// Appends the line of a client.
fn describe(text: &mut String, context: &Context<'_, '_>, client: &Client) {
    let now = context.moment.time;
    // The record of the calling client is updated when its batch ends.
    let is_asking = client.id == context.session.client.id;
    let idle = if is_asking {
        0
    } else {
        client.idle(now).as_secs()
    };
    let subscriptions = client.subscriptions.each_ref();
    let [sub, psub, ssub] = subscriptions.map(|count| count.load(Ordering::Relaxed));
    let tracked = context.services.observers.tracked(client.id);
    let redirect = tracked.as_ref().map_or(-1, |it| it.redirect.cast_signed());
    // Names have only printable characters.
    let name = |kind| String::from_utf8_lossy(&client.name(kind)).into_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "id={} addr={} laddr={} fd={} name={} age={} idle={idle} flags={} db={} sub={sub} psub={psub} ssub={ssub} \
         multi={} watch={} cmd={} user={} redir={redirect} resp={} lib-name={} lib-ver={} tot-cmds={}",
        client.id,
        client.addr,
        client.laddr,
        client.fd,
        name(NameKind::Connection),
        now.since(client.connected).as_secs(),
        flags(context, client, tracked),
        client.db.load(Ordering::Relaxed),
        client.queued().map_or(-1, i64::from),
        client.watched(),
        command(context.commands, client),
        client.user_name().escape_ascii(),
        client.protocol.load(Ordering::Relaxed),
        name(NameKind::Library),
        name(NameKind::LibraryVersion),
        client.commands.load(Ordering::Relaxed),
    );
}

/// Redis's letters for a client's properties; `N` for none.
fn flags(context: &Context<'_, '_>, client: &Client, tracked: Option<Tracked>) -> String {
    let letters = [
        ('P', client.is_subscriber()),
        ('x', client.queued().is_some()),
        ('O', context.services.observers.has_monitor(client.id)),
        ('b', client.is_waiting()),
        ('d', client.is_touched.load(Ordering::Relaxed)),
        ('t', tracked.is_some()),
        ('R', tracked.is_some_and(|it| it.is_broken)),
        ('B', tracked.is_some_and(|it| it.is_broadcast)),
        ('A', client.is_killed()),
        ('U', client.addr.starts_with('/')),
        ('e', client.is_no_evict.load(Ordering::Relaxed)),
        ('T', client.is_no_touch.load(Ordering::Relaxed)),
    ];
    let flags: String = letters
        .iter()
        .filter(|(_, is_set)| *is_set)
        .map(|(letter, _)| letter)
        .collect();
    if flags.is_empty() {
        "N".to_owned()
    } else {
        flags
    }
}

/// Returns the client's last command, such as `client|list`; `NULL` before the first.
fn command(commands: &Commands, client: &Client) -> String {
    let last = client.last_command();
    let spec = last.and_then(|last| commands.all().get(last.command));
    let Some((last, spec)) = last.zip(spec) else {
        return "NULL".to_owned();
    };
    let place = last.subcommand;
    match place.and_then(|place| spec.subcommands.get(place)) {
        Some(subcommand) => spec.full_name(subcommand.name),
        None => spec.name.to_owned(),
    }
}
