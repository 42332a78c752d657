//! Keyspace events: changes of keys as messages on `__keyspace@<db>__:<key>` and
//! `__keyevent@<db>__:<event>`.

use std::sync::atomic::{AtomicU16, Ordering};

use parking_lot::Mutex;

use crate::channels::Channels;
use crate::client::Clients;
use crate::event_classes::EventClasses;
use crate::key_change::{Cause, ChangeKind, KeyChange};

/// The subscriptions, and which events are published.
#[derive(Debug, Default)]
pub(crate) struct Notifications {
    pub(crate) channels: Channels,
    classes: AtomicU16,
    /// Whether this is counted among those who want to know of changes.
    pub(super) is_counted: Mutex<bool>,
}

/// What the writes of a command are called: Redis's name is not always the command's.
struct Row {
    command: &'static str,
    class: EventClasses,
    event: &'static str,
}

impl Notifications {
    /// Sets which events are published.
    pub(crate) fn set_classes(&self, classes: EventClasses) {
        self.classes.store(classes.to_bits(), Ordering::Relaxed);
    }

    fn classes(&self) -> EventClasses {
        EventClasses::from_bits(self.classes.load(Ordering::Relaxed))
    }

    /// Returns whether events are published and somebody may be subscribed to them.
    pub(crate) fn wants_changes(&self) -> bool {
        !self.classes().is_silent() && self.channels.may_want_events()
    }

    /// Returns whether the events of so many changes are more messages than others can wait for.
    pub(crate) fn is_storm(&self, changes: usize) -> bool {
        let classes = self.classes();
        if changes <= FEW_CHANGES || classes.is_silent() {
            return false;
        }
        let spaces = [EventClasses::KEYSPACE, EventClasses::KEYEVENT];
        let spaces = spaces.into_iter().filter(|it| classes.has(*it)).count();
        let per_change = self.channels.broad_subscriptions() * spaces;
        changes.saturating_mul(per_change) > DELIVERIES_MAX
    }

    /// Publishes the events of a change, in Redis's order.
    pub(crate) fn report(&self, change: &KeyChange, cause: Cause, clients: &Clients) {
        let publish = |class, event| self.publish(class, event, change, clients);
        let written = || EVENTS.iter().find(|row| Some(row.command) == cause.command);
        match change.kind {
            ChangeKind::Created | ChangeKind::Written => {
                if change.kind == ChangeKind::Created {
                    publish(EventClasses::NEW, "new");
                }
                let row = written().unwrap_or(&SET);
                publish(row.class, row.event);
            }
            ChangeKind::DeadlineMoved => publish(EventClasses::GENERIC, "expire"),
            ChangeKind::DeadlineRemoved => publish(EventClasses::GENERIC, "persist"),
            ChangeKind::Removed => {
                // The command that takes the last element of a collection has an event of its own.
                if let Some(row) = written().filter(|row| row.class != EventClasses::STRING) {
                    publish(row.class, row.event);
                }
                publish(EventClasses::GENERIC, "del");
            }
            ChangeKind::Expired => publish(EventClasses::EXPIRED, "expired"),
            ChangeKind::Missed => publish(EventClasses::MISS, "keymiss"),
            // As in Redis, FLUSHALL and FLUSHDB have no events.
            ChangeKind::Cleared { .. } | ChangeKind::Read => {}
        }
    }

    fn publish(&self, class: EventClasses, event: &str, change: &KeyChange, clients: &Clients) {
        let classes = self.classes();
        if !classes.publish(class) {
            return;
        }
        let (db, key) = (change.db, &*change.key);
        let send = |space: &str, channel: &[u8], text: &[u8]| {
            let channel = [format!("__{space}@{db}__:").as_bytes(), channel].concat();
            self.channels.publish_about(key, &channel, text, clients);
        };
        if classes.has(EventClasses::KEYSPACE) {
            send("keyspace", key, event.as_bytes());
        }
        if classes.has(EventClasses::KEYEVENT) {
            send("keyevent", event.as_bytes(), key);
        }
    }
}

/// How often the messages of a command, a script or a transaction are sent: each takes a tenth of a
/// microsecond, and nobody else is served meanwhile.
pub(crate) const DELIVERIES_MAX: usize = 200_000;

/// A lock's script or transaction changes fewer keys, and is never refused for its events.
const FEW_CHANGES: usize = 16;

/// What a write of a command without a row is called.
const SET: Row = string("set", "set");

/// The commands whose writes have another name than SET's. Each family of values has its rows here.
const EVENTS: &[Row] = &[
    string("incr", "incrby"),
    string("incrby", "incrby"),
    string("decr", "incrby"),
    string("decrby", "incrby"),
    row(EventClasses::HASH, "hset", "hset"),
    row(EventClasses::HASH, "hsetnx", "hset"),
    row(EventClasses::HASH, "hincrby", "hincrby"),
    row(EventClasses::HASH, "hdel", "hdel"),
    row(EventClasses::LIST, "lpush", "lpush"),
    row(EventClasses::LIST, "rpush", "rpush"),
    row(EventClasses::LIST, "lpop", "lpop"),
    row(EventClasses::LIST, "blpop", "lpop"),
    row(EventClasses::LIST, "lrem", "lrem"),
    row(EventClasses::LIST, "ltrim", "ltrim"),
    row(EventClasses::SET, "sadd", "sadd"),
    row(EventClasses::SET, "srem", "srem"),
    row(EventClasses::SORTED_SET, "zadd", "zadd"),
    row(EventClasses::SORTED_SET, "zincrby", "zincr"),
    row(EventClasses::SORTED_SET, "zrem", "zrem"),
    row(
        EventClasses::SORTED_SET,
        "zremrangebyscore",
        "zremrangebyscore",
    ),
];

const fn string(command: &'static str, event: &'static str) -> Row {
    row(EventClasses::STRING, command, event)
}

const fn row(class: EventClasses, command: &'static str, event: &'static str) -> Row {
    Row {
        command,
        class,
        event,
    }
}
