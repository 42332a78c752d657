//! Transactions: what is queued, what is watched, and the transactions of the kit's client.

use std::sync::Arc;

use super::command::Turn;
use super::hash::Whose;
use super::words::millis;
use super::{Manner, Reference, Word};

/// What a connection has queued since MULTI.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    requests: Vec<Vec<Vec<u8>>>,
    /// One of them was refused.
    is_aborted: bool,
}

/// A key as it was when a connection began to watch it.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    db: u8,
    key: Word,
    was_alive: bool,
    changes: u64,
}

impl Manner {
    /// Whether requests are queued.
    pub(crate) const fn is_in_transaction(&self) -> bool {
        self.queue.is_some()
    }
}

impl Reference {
    /// Answers a request of a connection, or queues it; `None` when the model does not know it.
    pub(super) fn answer_in(
        &mut self,
        turn: &mut Turn<'_>,
        manner: &mut Manner,
        name: &[u8],
        args: &[&[u8]],
    ) -> Option<()> {
        match (name, &mut manner.queue) {
            (b"exec", Some(_)) => return self.exec(turn, manner),
            (_, Some(queue)) => {
                queue.is_aborted |= turn.is_refused;
                queue
                    .requests
                    .push(args.iter().map(|word| word.to_vec()).collect());
                turn.reply().simple("QUEUED");
            }
            (b"multi", None) => {
                manner.queue = Some(Queue::default());
                turn.reply().ok();
            }
            (b"watch", None) => {
                for key in args.iter().skip(1) {
                    let watched = self.watch(turn, key);
                    manner.watched.push(watched);
                }
                turn.reply().ok();
            }
            (b"unwatch", None) => {
                manner.watched.clear();
                turn.reply().ok();
            }
            _ => return self.answer(turn, name, args),
        }
        Some(())
    }

    fn watch(&mut self, turn: &Turn<'_>, key: &[u8]) -> Watched {
        let key = Word::from(key);
        Watched {
            db: turn.db,
            was_alive: self.alive(turn.at.now, turn.db, &key).is_some(),
            changes: self.changes_of(turn.db, &key),
            key,
        }
    }

    fn changes_of(&self, db: u8, key: &Word) -> u64 {
        let changes = self.changes.get(&(db, Arc::clone(key)));
        changes.copied().unwrap_or(0)
    }

    fn exec(&mut self, turn: &mut Turn<'_>, manner: &mut Manner) -> Option<()> {
        let queue = manner.queue.take()?;
        let watched = std::mem::take(&mut manner.watched);
        if queue.is_aborted {
            turn.error(b"-EXECABORT ");
            return Some(());
        }
        let is_touched = |watched: &Watched| {
            self.alive(turn.at.now, watched.db, &watched.key).is_some() != watched.was_alive
                || self.changes_of(watched.db, &watched.key) != watched.changes
        };
        if watched.iter().any(is_touched) {
            turn.judged.reached = Some("exec-tripped");
            turn.out.extend_from_slice(b"*-1\r\n");
            return Some(());
        }
        let [first, second] = &queue.requests[..] else {
            return None;
        };
        turn.reply().array(2);
        match (&words(first)[..], &words(second)[..]) {
            ([b"HINCRBY", key, field, by], [b"PEXPIRE", same, ttl]) if key == same => {
                let by = if *by == b"-1" { -1 } else { 1 };
                self.count_in(turn, key, field, by, millis(ttl)?);
            }
            ([b"HEXISTS", key, field], [b"PEXPIRE", same, ttl]) if key == same => {
                let Whose::Own(place) = self.whose(turn, key, field) else {
                    return None;
                };
                turn.integer(1);
                turn.integer(1);
                self.count_up(turn, place, 0, millis(ttl)?);
            }
            ([b"DEL", key], [b"PUBLISH", ..]) => {
                let place = self.find(turn, key);
                turn.integer(i64::from(place.is_some()));
                turn.integer(0);
                if let Some(place) = place {
                    self.free(turn, place, false);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// HINCRBY and PEXPIRE. Where another holds the key, nobody has watched it, and there are two holders.
    fn count_in(&mut self, turn: &mut Turn<'_>, key: &[u8], field: &[u8], by: i64, ttl: u64) {
        if let Whose::Own(place) = self.whose(turn, key, field) {
            self.count_up(turn, place, by, ttl);
            turn.integer(self.kept[place].levels.cast_signed());
        } else {
            turn.judged.shown.clear();
            self.take_hash(turn, key, field, ttl);
            turn.integer(by);
        }
        turn.integer(1);
    }
}

fn words(request: &[Vec<u8>]) -> Vec<&[u8]> {
    request.iter().map(Vec::as_slice).collect()
}
