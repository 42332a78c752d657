//! What one client is subscribed to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::channels::{TopicKind, TopicName};
use crate::client::Client;
use crate::observers::Observers;

/// One client's subscriptions, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    client: Arc<Client>,
    observers: Arc<Observers>,
    names: [BTreeSet<TopicName>; TopicKind::ALL.len()],
    /// What they take, roughly.
    size: usize,
}

impl Subscriptions {
    pub(crate) fn new(client: &Arc<Client>, observers: &Arc<Observers>) -> Self {
        Self {
            client: Arc::clone(client),
            observers: Arc::clone(observers),
            names: Default::default(),
            size: 0,
        }
    }

    /// Subscribes to a channel or pattern; does nothing if the client is subscribed to it.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be.
    pub(crate) fn add(&mut self, kind: TopicKind, name: &[u8]) -> Result<(), &'static str> {
        if self.names[kind as usize].contains(name) {
            return Ok(());
        }
        if kind == TopicKind::Pattern && name.len() > PATTERN_LEN_MAX {
            return Err(PATTERN_TOO_LONG);
        }
        let size = self.size + name.len() + NAME_SIZE;
        if size > SIZE_MAX {
            return Err(TOO_MANY);
        }
        let name: TopicName = name.into();
        let channels = &self.observers.notifications.channels;
        if !channels.subscribe(kind, &name, &self.client) {
            return Err(TOO_MANY_PATTERNS);
        }
        self.size = size;
        self.names[kind as usize].insert(name);
        self.note_counts();
        Ok(())
    }

    /// Ends a subscription, if there is one.
    pub(crate) fn remove(&mut self, kind: TopicKind, name: &[u8]) {
        if self.names[kind as usize].remove(name) {
            let channels = &self.observers.notifications.channels;
            channels.unsubscribe(kind, name, &self.client);
            self.size -= name.len() + NAME_SIZE;
            self.note_counts();
        }
    }

    /// Returns the names of a kind, by ascending name.
    pub(crate) fn names(&self, kind: TopicKind) -> Vec<TopicName> {
        self.names[kind as usize].iter().cloned().collect()
    }

    /// Returns the number that replies to a subscription of a kind show: channels and patterns count
    /// together.
    pub(crate) fn count(&self, kind: TopicKind) -> usize {
        let [channels, patterns, shard_channels] = &self.names;
        match kind {
            TopicKind::Channel | TopicKind::Pattern => channels.len() + patterns.len(),
            TopicKind::ShardChannel => shard_channels.len(),
        }
    }

    /// Returns about how many bytes they take.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.iter().all(BTreeSet::is_empty)
    }

    /// Shows the numbers in CLIENT LIST.
    fn note_counts(&self) {
        for (names, count) in self.names.iter().zip(&self.client.subscriptions) {
            let len = u32::try_from(names.len()).unwrap_or(u32::MAX);
            count.store(len, Ordering::Relaxed);
        }
        self.observers.settle_notifications();
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        for kind in TopicKind::ALL {
            let names = std::mem::take(&mut self.names[kind as usize]);
            for name in names {
                let channels = &self.observers.notifications.channels;
                channels.unsubscribe(kind, &name, &self.client);
            }
        }
        self.note_counts();
    }
}

/// What the subscriptions of one client may take: as much as a script, or a hundred thousand
/// channels with short names.
const SIZE_MAX: usize = 16 << 20;

/// What a subscription takes besides its name: its places in two trees and two counts.
const NAME_SIZE: usize = 128;

/// The time of a match is bounded by the product of the lengths of pattern and channel.
const PATTERN_LEN_MAX: usize = 1024;

const TOO_MANY: &str = "ERR the subscriptions of a connection take at most 16777216 bytes";
const PATTERN_TOO_LONG: &str = "ERR a pattern has at most 1024 bytes";
const TOO_MANY_PATTERNS: &str = "ERR the node compares messages with at most 10000 patterns";
