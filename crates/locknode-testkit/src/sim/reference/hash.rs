//! Locks held as hashes: the scripts of the kit's client, and what other commands say to a key of another type.

use super::Reference;
use super::command::Turn;
use super::words::{millis, number};
use crate::sim::hash_lock::{FREE, KEEP, TAKE};

/// Whose a hash is.
#[derive(Clone, Copy)]
pub(super) enum Whose {
    Nobodys,
    Own(usize),
    Others,
    /// The key holds something else, and the reply is the error.
    OfAnotherType,
}

impl Reference {
    /// Whether a key is held as a hash.
    pub(crate) fn is_hash(&self, db: u8, key: &[u8]) -> bool {
        let mut kept = self.kept.iter();
        kept.any(|kept| kept.levels > 0 && kept.db == db && *kept.key == *key)
    }

    /// Answers a request about a hash; `None` when it is about something else.
    pub(super) fn answer_hash(
        &mut self,
        turn: &mut Turn<'_>,
        name: &[u8],
        args: &[&[u8]],
    ) -> Option<()> {
        match (name, args) {
            (b"get" | b"getdel" | b"lock.get" | b"lock.extend" | b"lock.release", [_, key, ..]) => {
                let place = self.find(turn, key)?;
                if self.kept[place].levels == 0 {
                    return None;
                }
                turn.error(WRONG_TYPE);
            }
            (b"eval", [_, text, b"1", key, field, ttl]) if *text == TAKE.as_bytes() => {
                let whose = self.whose(turn, key, field);
                match whose {
                    Whose::Nobodys => self.take_hash(turn, key, field, millis(ttl)?),
                    Whose::Own(place) => self.count_up(turn, place, 1, millis(ttl)?),
                    Whose::Others => {}
                    Whose::OfAnotherType => return Some(()),
                }
                turn.integer(i64::from(!matches!(whose, Whose::Others)));
            }
            (b"eval", [_, text, b"1", key, field, ttl, by]) if *text == KEEP.as_bytes() => {
                let by = if *by == b"-1" {
                    -1
                } else {
                    number(by)?.cast_signed()
                };
                let ttl = millis(ttl)?;
                let keep =
                    |it: &mut Self, turn: &mut Turn<'_>, place| it.count_up(turn, place, by, ttl);
                self.for_holder(turn, key, field, keep);
            }
            (b"eval", [_, text, b"1", key, field]) if *text == FREE.as_bytes() => {
                let free = |it: &mut Self, turn: &mut Turn<'_>, place| it.free(turn, place, false);
                self.for_holder(turn, key, field, free);
            }
            (b"hgetall", [_, key]) => match self.find(turn, key) {
                None => turn.reply().array(0),
                Some(place) if self.kept[place].levels == 0 => turn.error(WRONG_TYPE),
                Some(place) => {
                    self.show(turn, place, 0);
                    let kept = &self.kept[place];
                    turn.reply().array(2);
                    turn.reply().bulk(&kept.token);
                    turn.reply().bulk(kept.levels.to_string().as_bytes());
                }
            },
            _ => return None,
        }
        Some(())
    }

    /// Does something with the holder's hash, and says whether there is one.
    fn for_holder(
        &mut self,
        turn: &mut Turn<'_>,
        key: &[u8],
        field: &[u8],
        work: impl FnOnce(&mut Self, &mut Turn<'_>, usize),
    ) {
        match self.whose(turn, key, field) {
            Whose::Own(place) => {
                work(self, turn, place);
                turn.integer(1);
            }
            Whose::OfAnotherType => {}
            Whose::Nobodys | Whose::Others => turn.integer(0),
        }
    }

    /// Looks whose a hash is, which the reply tells.
    pub(super) fn whose(&mut self, turn: &mut Turn<'_>, key: &[u8], field: &[u8]) -> Whose {
        let Some(place) = self.find(turn, key) else {
            return Whose::Nobodys;
        };
        let kept = &self.kept[place];
        if kept.levels == 0 {
            turn.error(WRONG_TYPE);
            return Whose::OfAnotherType;
        }
        if *kept.token == *field {
            return Whose::Own(place);
        }
        self.show(turn, place, 0);
        Whose::Others
    }

    /// The key is held from now on, once by this field.
    pub(super) fn take_hash(&mut self, turn: &mut Turn<'_>, key: &[u8], field: &[u8], ttl: u64) {
        if turn.is_denied {
            // It was granted and taken back, and counters never go back.
            *self.counter(turn.db, key) += 1;
        }
        let before = turn.judged.effects.len();
        self.grant(turn, key, field, ttl, None);
        let is_granted = turn.judged.effects.len() > before;
        if let Some(kept) = self.kept.last_mut().filter(|_| is_granted) {
            kept.levels = 1;
            turn.judged.reached = Some("hash-taken");
        }
    }

    /// The holder's count changes, to no less than one, and its lock ends at another time.
    pub(super) fn count_up(&mut self, turn: &mut Turn<'_>, place: usize, by: i64, ttl: u64) {
        self.set_end(turn, place, ttl);
        if turn.is_refused || turn.judged.is_refused {
            return;
        }
        let levels = &mut self.kept[place].levels;
        *levels = levels.saturating_add_signed(by).max(1);
        turn.judged.reached = match by {
            0 => Some("hash-renewed"),
            1.. => Some("hash-entered-again"),
            _ => Some("hash-left"),
        };
    }
}

/// How the error begins.
const WRONG_TYPE: &[u8] = b"-WRONGTYPE ";
