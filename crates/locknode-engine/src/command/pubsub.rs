//! Publish and subscribe: SUBSCRIBE and its relatives, PUBLISH, SPUBLISH and PUBSUB.
//!
//! Locks wait by it: Redisson and redlock4j subscribe to a channel per lock, Spring Integration's
//! registry to a pattern, portalocker and simple-redis-mutex to a channel, and their unlock scripts
//! publish. Redisson sends SPUBLISH and SSUBSCRIBE where the server knows PUBSUB SHARDNUMSUB.

use locknode_resp::{Encoder, Protocol};

use super::context::Context;
use super::refusal;
use super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use super::subcommand;
use crate::channels::TopicKind;
use crate::glob::{Filter, Pattern};
use crate::session::Session;
use crate::subscriptions::Subscriptions;

fn subscribe(
    context: &mut Context<'_, '_>,
    kind: TopicKind,
    [word]: &[&[u8]; 1],
    names: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let session = &mut *context.session;
    for name in names {
        let subscriptions = session.subscriptions.get_or_insert_with(|| {
            let subscriptions = Subscriptions::new(&session.client, &context.services.observers);
            Box::new(subscriptions)
        });
        if let Err(refusal) = subscriptions.add(kind, name) {
            reply.error(refusal);
            break;
        }
        acknowledge(session, kind, word, Some(name), reply);
    }
    settle(session);
}

/// Ends the subscriptions with these names, or all of a kind.
fn unsubscribe(
    context: &mut Context<'_, '_>,
    kind: TopicKind,
    [word]: &[&[u8]; 1],
    names: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let is_in_transaction = context.journal.is_some();
    let session = &mut *context.session;
    let all = match (names, &session.subscriptions) {
        ([], Some(subscriptions)) => subscriptions.names(kind),
        _ => Vec::new(),
    };
    if names.is_empty() && all.is_empty() {
        return acknowledge(session, kind, word, None, reply);
    }
    let all = all.iter().map(|name| &**name);
    for name in names.iter().copied().chain(all) {
        if let Some(subscriptions) = &mut session.subscriptions {
            subscriptions.remove(kind, name);
        }
        // No message follows the reply that ends its subscription.
        if session.client.has_mail() && !is_in_transaction {
            let mut mail = Vec::new();
            session.client.take_mail(&mut mail, usize::MAX);
            reply.raw(&mail);
        }
        acknowledge(session, kind, word, Some(name), reply);
    }
    settle(session);
}

fn acknowledge(
    session: &Session,
    kind: TopicKind,
    word: &[u8],
    name: Option<&[u8]>,
    reply: &mut Encoder<'_>,
) {
    let subscriptions = session.subscriptions.as_ref();
    let count = subscriptions.map_or(0, |it| it.count(kind));
    reply.push(3);
    reply.bulk(&word.to_ascii_lowercase());
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
}

/// Forgets subscriptions of which none is left.
fn settle(session: &mut Session) {
    if session
        .subscriptions
        .as_ref()
        .is_some_and(|it| it.is_empty())
    {
        session.subscriptions = None;
    }
    session.note_state();
}

fn publish(
    context: &mut Context<'_, '_>,
    kind: TopicKind,
    [_, channel, text]: &[&[u8]; 3],
    reply: &mut Encoder<'_>,
) {
    match context.publish(kind, channel, text) {
        Ok(receivers) => reply.integer(i64::try_from(receivers).unwrap_or(i64::MAX)),
        Err(refusal) => reply.error(refusal),
    }
}

fn names(
    context: &mut Context<'_, '_>,
    kind: TopicKind,
    [container, sub]: &[&[u8]; 2],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let mut filter = match words {
        [] => None,
        [pattern] => Some(Filter::from(Pattern::of(pattern))),
        _ => return refusal::subcommand_syntax(reply, container, sub),
    };
    let mut names = context
        .services
        .observers
        .notifications
        .channels
        .names(kind);
    names.retain(|name| filter.as_mut().is_none_or(|it| it.passes(name)));
    let (mark, output_max) = (reply.out_len(), context.services.settings.output_max());
    if filter.is_some_and(|it| it.is_spent()) {
        return refusal::hard_pattern(reply, mark);
    }
    reply.array(names.len());
    for name in names {
        reply.bulk(&name);
        if reply.out_len() - mark > output_max {
            return refusal::reply_too_long(reply, mark);
        }
    }
}

fn subscriber_counts(
    context: &mut Context<'_, '_>,
    kind: TopicKind,
    _: &[&[u8]; 2],
    names: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let channels = &context.services.observers.notifications.channels;
    // Also in RESP3 it is no map.
    reply.array(names.len() * 2);
    for name in names {
        reply.bulk(name);
        let count = channels.subscriber_count(kind, name);
        reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

fn pattern_count(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let channels = &context.services.observers.notifications.channels;
    let count = channels.count(TopicKind::Pattern);
    reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
}

impl Session {
    /// Returns whether the connection only receives messages: in RESP2 they look like replies.
    pub(crate) const fn is_only_subscriber(&self) -> bool {
        self.subscriptions.is_some() && matches!(self.protocol, Protocol::Resp2)
    }
}

/// Returns whether a connection that only receives messages may send this command.
pub(crate) fn is_for_subscribers(spec: &Spec) -> bool {
    is_answered_by_pushes(spec) || matches!(spec.name, "ping" | "quit" | "reset")
}

/// Returns whether the replies are messages, which CLIENT REPLY does not turn off.
pub(crate) fn is_answered_by_pushes(spec: &Spec) -> bool {
    spec.group == "pubsub" && spec.flags.has(Flags::NOSCRIPT)
}

const SUBSCRIBE: Spec = Spec::of(
    Call::any(-2, subcommand::run),
    Flags::NOSCRIPT.and(Flags::LOADING),
    Keys::None,
    "pubsub",
);

/// Held back with writes, and not callable from a read-only script, as in Redis.
const PUBLISH: Spec = Spec {
    flags: Flags::FAST.and(Flags::LOADING).and(Flags::MAY_WRITE),
    ..SUBSCRIBE
};

const PUBSUB: Spec = Spec {
    flags: Flags::LOADING,
    ..SUBSCRIBE
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Subscribes to channels.
    "subscribe" "channel [channel ...]" since "2.0.0",
        call: least!(subscribe, TopicKind::Channel).with_least(2), ..SUBSCRIBE;

    /// Subscribes to the channels that match patterns.
    "psubscribe" "pattern [pattern ...]" since "2.0.0",
        call: least!(subscribe, TopicKind::Pattern).with_least(2), ..SUBSCRIBE;

    /// Subscribes to shard channels.
    "ssubscribe" "shardchannel [shardchannel ...]" since "7.0.0",
        call: least!(subscribe, TopicKind::ShardChannel).with_least(2), ..SUBSCRIBE;

    /// Ends the subscriptions to some channels, or to all.
    "unsubscribe" "[channel ...]" since "2.0.0",
        call: least!(unsubscribe, TopicKind::Channel), ..SUBSCRIBE;

    /// Ends the subscriptions to some patterns, or to all.
    "punsubscribe" "[pattern ...]" since "2.0.0",
        call: least!(unsubscribe, TopicKind::Pattern), ..SUBSCRIBE;

    /// Ends the subscriptions to some shard channels, or to all.
    "sunsubscribe" "[shardchannel ...]" since "7.0.0",
        call: least!(unsubscribe, TopicKind::ShardChannel), ..SUBSCRIBE;

    /// Sends a message to the subscribers of a channel; returns how often it was sent.
    "publish" "channel message" since "2.0.0",
        call: exact!(publish, TopicKind::Channel), ..PUBLISH;

    /// Sends a message to the subscribers of a shard channel; returns how often it was sent.
    "spublish" "shardchannel message" since "7.0.0",
        call: exact!(publish, TopicKind::ShardChannel), ..PUBLISH;

    /// Reports on subscriptions.
    "pubsub" since "2.8.0", subcommands: SUBCOMMANDS, ..PUBSUB;
};

const SUBCOMMANDS: &[Spec] = specs! {
    /// Return the channels that anybody is subscribed to, or those that match a pattern.
    "channels" "[<pattern>]" since "2.8.0", call: least!(names, TopicKind::Channel), ..PUBSUB;

    /// Return the number of patterns that anybody is subscribed to.
    "numpat" since "2.8.0", call: exact!(pattern_count), ..PUBSUB;

    /// Return the numbers of subscribers of channels, without those of patterns.
    "numsub" "[<channel> ...]" since "2.8.0",
        call: least!(subscriber_counts, TopicKind::Channel), ..PUBSUB;

    /// Return the shard channels that anybody is subscribed to, or those that match a pattern.
    "shardchannels" "[<pattern>]" since "7.0.0",
        call: least!(names, TopicKind::ShardChannel), ..PUBSUB;

    /// Return the numbers of subscribers of shard channels.
    "shardnumsub" "[<shardchannel> ...]" since "7.0.0",
        call: least!(subscriber_counts, TopicKind::ShardChannel), ..PUBSUB;
};
