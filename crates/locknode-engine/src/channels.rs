//! Who is subscribed to which channels and patterns, and what they are sent.
//!
//! ```text
//!  PUBLISH, an event --> Channels::publish --> the mailbox of every subscriber --> its connection
//! ```
//!
//! One mutex orders all messages, so that every subscriber gets them in the same order. It is held
//! for about a tenth of a microsecond per subscriber.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::client::{Client, Clients};
use crate::glob::{LOOKS_MAX, Pattern};
use crate::message::Message;
#[cfg(feature = "acl")]
use crate::users::{Account, ChannelUse};

/// The subscriptions of all clients.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    topics: Mutex<[Topics; TopicKind::ALL.len()]>,
    /// How often a byte of a channel is compared with all patterns together, at most.
    looks_per_byte: AtomicUsize,
    /// Subscriptions that may match the channels of keyspace events.
    event_subscriptions: AtomicUsize,
    /// Those of them that may match the events of more than one key.
    broad_subscriptions: AtomicUsize,
}

/// What can be subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopicKind {
    Channel,
    Pattern,
    /// A channel of SSUBSCRIBE and SPUBLISH: without a cluster, just another kind of channel.
    ShardChannel,
}

/// The name of a channel or pattern, shared by the registry and its subscribers.
pub(crate) type TopicName = Arc<[u8]>;

/// Sorted by name: a tree needs no secret against names that are chosen to collide.
type Topics = BTreeMap<TopicName, Topic>;

/// One channel or pattern that somebody is subscribed to.
#[derive(Debug)]
struct Topic {
    /// `None` for a channel.
    pattern: Option<Pattern>,
    /// By ascending id.
    subscribers: Vec<Arc<Client>>,
}

impl Channels {
    /// Subscribes a client. Returns `false` without a change when there are as many patterns as the
    /// node checks for each message.
    pub(crate) fn subscribe(
        &self,
        kind: TopicKind,
        name: &TopicName,
        client: &Arc<Client>,
    ) -> bool {
        let mut topics = self.topics.lock();
        let topics = &mut topics[kind as usize];
        let is_pattern = kind == TopicKind::Pattern;
        if is_pattern && topics.len() >= PATTERNS_MAX && !topics.contains_key(name) {
            return false;
        }
        let topic = topics.entry(Arc::clone(name)).or_insert_with(|| {
            let pattern = is_pattern.then(|| Pattern::of(name));
            let looks = pattern.as_ref().map_or(0, Pattern::looks_per_byte);
            self.looks_per_byte.fetch_add(looks, Ordering::Relaxed);
            Topic {
                pattern,
                subscribers: Vec::new(),
            }
        });
        if let Err(at) = topic.place_of(client) {
            topic.subscribers.insert(at, Arc::clone(client));
            if may_match_events(kind, name) {
                self.event_subscriptions.fetch_add(1, Ordering::Relaxed);
            }
            if may_match_keys(kind, name) {
                self.broad_subscriptions.fetch_add(1, Ordering::Relaxed);
            }
        }
        true
    }

    /// Ends a subscription.
    pub(crate) fn unsubscribe(&self, kind: TopicKind, name: &[u8], client: &Arc<Client>) {
        let mut topics = self.topics.lock();
        let topics = &mut topics[kind as usize];
        let Some(topic) = topics.get_mut(name) else {
            return;
        };
        if let Ok(at) = topic.place_of(client) {
            topic.subscribers.remove(at);
            if may_match_events(kind, name) {
                self.event_subscriptions.fetch_sub(1, Ordering::Relaxed);
            }
            if may_match_keys(kind, name) {
                self.broad_subscriptions.fetch_sub(1, Ordering::Relaxed);
            }
        }
        if topic.subscribers.is_empty() {
            let looks = topic.pattern.as_ref().map_or(0, Pattern::looks_per_byte);
            self.looks_per_byte.fetch_sub(looks, Ordering::Relaxed);
            topics.remove(name);
        }
    }

    /// Returns whether anybody may be subscribed to keyspace events.
    pub(crate) fn may_want_events(&self) -> bool {
        self.event_subscriptions.load(Ordering::Relaxed) != 0
    }

    /// Returns how many subscriptions may match the events of more than one key.
    pub(crate) fn broad_subscriptions(&self) -> usize {
        self.broad_subscriptions.load(Ordering::Relaxed)
    }

    /// Returns whether comparing a channel with all patterns would take long: none matches it.
    pub(crate) fn is_too_long(&self, channel: &[u8]) -> bool {
        let looks = self.looks_per_byte.load(Ordering::Relaxed);
        looks.saturating_mul(channel.len()) > LOOKS_MAX
    }

    /// Sends a message to the subscribers of a channel, and of the patterns that match it; returns
    /// how often it was sent.
    pub(crate) fn publish(
        &self,
        kind: TopicKind,
        channel: &[u8],
        text: &[u8],
        clients: &Clients,
    ) -> usize {
        self.publish_to(kind, channel, text, clients, |_| true)
    }

    /// Sends an event of a key to those subscribers of a channel who may read the key.
    pub(crate) fn publish_about(&self, key: &[u8], channel: &[u8], text: &[u8], clients: &Clients) {
        let may_know = |client: &Client| client.may_read(key);
        self.publish_to(TopicKind::Channel, channel, text, clients, may_know);
    }

    fn publish_to(
        &self,
        kind: TopicKind,
        channel: &[u8],
        text: &[u8],
        clients: &Clients,
        may_know: impl Fn(&Client) -> bool,
    ) -> usize {
        let topics = self.topics.lock();
        let mut to_wake = Vec::new();
        let mut receivers = 0;
        for (name, topic) in self.matching(&topics, kind, channel) {
            let elements: [&[u8]; 4] = match topic.pattern {
                None => [kind.message(), channel, text, b""],
                Some(_) => [TopicKind::Pattern.message(), name, channel, text],
            };
            let len = elements.len() - usize::from(topic.pattern.is_none());
            let message = Message::new(elements.get(..len).unwrap_or_default());
            receivers += topic.subscribers.len();
            let sleepers = topic.subscribers.iter();
            let sleepers = sleepers.filter(|it| may_know(it) && it.post(&message));
            to_wake.extend(sleepers.map(Arc::clone));
        }
        drop(topics);
        if receivers != 0 {
            clients.wake_in_turn(to_wake);
        }
        receivers
    }

    /// Returns how often a message to a channel would be sent.
    pub(crate) fn receivers(&self, kind: TopicKind, channel: &[u8]) -> usize {
        let topics = self.topics.lock();
        let matching = self.matching(&topics, kind, channel);
        matching.map(|(_, topic)| topic.subscribers.len()).sum()
    }

    /// Returns the clients of a user that are subscribed to what it may not use.
    #[cfg(feature = "acl")]
    pub(crate) fn unwelcome(&self, account: &Arc<Account>) -> Vec<Arc<Client>> {
        let user = account.user();
        let mut found = Vec::new();
        let topics = self.topics.lock();
        for (kind, topics) in TopicKind::ALL.into_iter().zip(&*topics) {
            let channel_use = match kind {
                TopicKind::Pattern => ChannelUse::Pattern,
                TopicKind::Channel | TopicKind::ShardChannel => ChannelUse::Name,
            };
            let forbidden = topics
                .iter()
                .filter(|(name, _)| !user.may_use_channel(channel_use, name));
            let subscribers = forbidden.flat_map(|(_, topic)| &topic.subscribers);
            let its = subscribers.filter(|client| Arc::ptr_eq(&client.account(), account));
            found.extend(its.cloned());
        }
        found
    }

    /// Returns the names that anybody is subscribed to, by ascending name.
    pub(crate) fn names(&self, kind: TopicKind) -> Vec<TopicName> {
        self.topics.lock()[kind as usize].keys().cloned().collect()
    }

    /// Returns the number of names that anybody is subscribed to.
    pub(crate) fn count(&self, kind: TopicKind) -> usize {
        self.topics.lock()[kind as usize].len()
    }

    /// The channel, if it has subscribers, then the patterns that match it.
    fn matching<'t>(
        &self,
        topics: &'t [Topics; TopicKind::ALL.len()],
        kind: TopicKind,
        channel: &[u8],
    ) -> impl Iterator<Item = (&'t TopicName, &'t Topic)> {
        let [channels, patterns, shard_channels] = topics;
        let (named, patterns) = match kind {
            TopicKind::ShardChannel => (shard_channels.get_key_value(channel), None),
            _ => (channels.get_key_value(channel), Some(patterns)),
        };
        let patterns = patterns.filter(|_| !self.is_too_long(channel));
        let fits = |topic: &Topic| topic.pattern.as_ref().is_some_and(|it| it.matches(channel));
        let fitting = patterns.into_iter().flatten();
        named
            .into_iter()
            .chain(fitting.filter(move |(_, topic)| fits(topic)))
    }

    /// Returns the number of a channel's subscribers.
    pub(crate) fn subscriber_count(&self, kind: TopicKind, name: &[u8]) -> usize {
        let topics = self.topics.lock();
        let topic = topics[kind as usize].get(name);
        topic.map_or(0, |topic| topic.subscribers.len())
    }
}

impl Topic {
    /// The client's place among the subscribers, or where it would be.
    fn place_of(&self, client: &Client) -> Result<usize, usize> {
        let subscribers = &self.subscribers;
        subscribers.binary_search_by_key(&client.id, |subscriber| subscriber.id)
    }
}

impl TopicKind {
    pub(crate) const ALL: [Self; 3] = [Self::Channel, Self::Pattern, Self::ShardChannel];

    /// The first element of a message.
    const fn message(self) -> &'static [u8] {
        match self {
            Self::Channel => b"message",
            Self::Pattern => b"pmessage",
            Self::ShardChannel => b"smessage",
        }
    }
}

/// Returns whether a channel or pattern may match a channel of keyspace events; `true` in doubt.
fn may_match_events(kind: TopicKind, name: &[u8]) -> bool {
    match kind {
        TopicKind::Channel => name.starts_with(b"__key"),
        TopicKind::Pattern => matches!(name.first(), Some(b'_' | b'*' | b'?' | b'[' | b'\\')),
        TopicKind::ShardChannel => false,
    }
}

/// Returns whether a channel or pattern may match the events of more than one key; `true` in doubt.
fn may_match_keys(kind: TopicKind, name: &[u8]) -> bool {
    may_match_events(kind, name) && !name.starts_with(b"__keyspace@") | (kind == TopicKind::Pattern)
}

/// The patterns of a node. Every message is compared with each: this many take about a millisecond.
const PATTERNS_MAX: usize = 10_000;
