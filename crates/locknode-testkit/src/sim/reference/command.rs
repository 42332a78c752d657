//! The commands, one after the other, as they are described and not as they are built.

use std::sync::Arc;

use locknode_resp::{Encoder, Protocol};

use super::words::{Lower, Replies, SetOptions, left, millis, number, seconds};
use super::{Condition, Effect, Judged, Kept, Label, Manner, NEVER, Reference, Shown, Word};
use crate::scenario::GuardMode;

/// One request under way.
pub(super) struct Turn<'a> {
    pub(super) at: Condition,
    pub(super) db: u8,
    /// It will be refused: nothing changes.
    pub(super) is_refused: bool,
    /// The guard has refused what it would leave.
    pub(super) is_denied: bool,
    /// The reply; of an error the first word.
    pub(super) out: Vec<u8>,
    pub(super) judged: &'a mut Judged,
}

impl Reference {
    /// Executes a request and compares the reply, all of it. `judged` is the default.
    pub(crate) fn judge(
        &mut self,
        at: Condition,
        manner: &mut Manner,
        args: &[&[u8]],
        reply: &[u8],
        judged: &mut Judged,
    ) {
        let mut room = Lower::default();
        let Some(name) = args.first().map(|name| room.of(name)) else {
            return;
        };
        let before = manner.replies;
        if manner.replies == Replies::SkipNext {
            manner.replies = Replies::All;
        }
        if name == b"client"
            && let [_, word, rest @ ..] = args
            && word.eq_ignore_ascii_case(b"reply")
        {
            manner.replies = match rest
                .first()
                .map(|word| word.to_ascii_lowercase())
                .as_deref()
            {
                Some(b"off") => Replies::None,
                Some(b"skip") if before == Replies::None => Replies::None,
                Some(b"skip") => Replies::SkipNext,
                _ => Replies::All,
            };
            return;
        }
        if let Some(db) = selected(name, args) {
            manner.db = db;
        }
        judged.is_unsure = self.is_lost;
        if self.is_lost {
            return;
        }
        let is_error = reply.first() == Some(&b'-');
        let mut turn = Turn {
            at,
            db: manner.db,
            is_refused: is_error || at.is_quarantined,
            is_denied: reply.starts_with(b"-MISCONF") || reply.starts_with(b"-UNSUPPORTED"),
            out: std::mem::take(&mut self.expected),
            judged: &mut *judged,
        };
        turn.out.clear();
        let is_known = self.answer_in(&mut turn, manner, name, args).is_some();
        let (expected, is_refused) = (std::mem::take(&mut turn.out), turn.is_refused);
        judged.is_known = is_known;
        let wanted = if !is_known {
            None
        } else if before != Replies::All {
            judged.shown.clear();
            // Whether it was refused cannot be seen.
            if at.is_troubled && !judged.effects.is_empty() {
                judged.effects.clear();
                (judged.is_unsure, self.is_lost) = (true, true);
            }
            (!reply.is_empty()).then_some("nothing")
        } else if judged.is_refused {
            (!is_error).then_some("a refusal")
        } else if at.is_quarantined && !IN_QUARANTINE.contains(&name) {
            let is_right = reply.starts_with(b"-LOADING");
            (!is_right).then_some("LOADING, which it does in its quarantine")
        } else if at.has_failed && !is_error && takes_hold(&judged.effects) {
            Some("a refusal, because its disk has failed")
        } else if is_error {
            let is_expected = expected.first() == Some(&b'-') && reply.starts_with(&expected);
            (!is_expected && !is_right(name, reply, at)).then_some("no error")
        } else {
            (!is_same(name, &expected, reply)).then_some("")
        };
        if let Some(wanted) = wanted {
            let shown = |reply: &[u8]| String::from_utf8_lossy(reply).replace("\r\n", " ");
            let wanted = match wanted {
                "" => shown(&expected),
                wanted => wanted.to_owned(),
            };
            judged.deviation = Some(format!(
                "answered `{}` with `{}`, and has to answer {}",
                String::from_utf8_lossy(&args.join(&b' ')),
                shown(reply).trim_end(),
                wanted.trim_end()
            ));
        }
        if is_refused {
            judged.shown.clear();
        }
        self.expected = expected;
    }

    /// Answers a request; `None` when the model does not know it.
    pub(super) fn answer(
        &mut self,
        turn: &mut Turn<'_>,
        name: &[u8],
        args: &[&[u8]],
    ) -> Option<()> {
        if self.answer_hash(turn, name, args).is_some() {
            return Some(());
        }
        match (name, args) {
            (b"lock.acquire", [_, key, token, ttl, options @ ..]) => {
                let (mut floor, mut label) = (0, None);
                for option in options.chunks(2) {
                    match option {
                        [word, text] if word.eq_ignore_ascii_case(b"label") => label = Some(*text),
                        [_, text] => floor = number(text).unwrap_or(0),
                        _ => return None,
                    }
                }
                self.acquire(turn, (key, token), millis(ttl)?, floor, label);
            }
            (b"lock.force", [_, key]) => self.force(turn, key),
            (b"lock.extend", [_, key, token, ttl])
            // The scripts that everybody uses: a key and a token, and a TTL when it is extended.
            | (b"eval" | b"evalsha", [_, _, b"1", key, token, ttl]) => {
                let place = self.held_by(turn, key, token);
                self.move_end(turn, place, millis(ttl)?);
            }
            (b"lock.release" | b"delifeq", [_, key, token])
            | (b"eval" | b"evalsha", [_, _, b"1", key, token]) => self.release(turn, key, token),
            (b"delex", [_, key, condition, token])
                if condition.eq_ignore_ascii_case(b"ifeq") =>
            {
                self.release(turn, key, token);
            }
            (b"lock.fence", [_, key, token, grant, wanted]) => {
                let (grant, wanted) = (number(grant)?, number(wanted)?);
                self.write_back(turn, key, token, grant, wanted);
            }
            (b"lock.get", [_, key]) => self.look(turn, key),
            (b"set", [_, key, value, options @ ..]) => {
                self.set(turn, key, value, SetOptions::of(options)?);
            }
            (b"setnx", [_, key, value]) => {
                let place = self.find_shown(turn, key);
                turn.integer(i64::from(place.is_none()));
                if place.is_none() {
                    self.grant(turn, key, value, NEVER, None);
                }
            }
            (b"get", [_, key]) => self.value(turn, key),
            (b"mget", [_, keys @ ..]) if !keys.is_empty() => {
                turn.reply().array(keys.len());
                for key in keys {
                    self.value(turn, key);
                }
            }
            (b"exists", [_, keys @ ..]) if !keys.is_empty() => {
                let found = keys.iter().filter_map(|key| self.find_shown(turn, key));
                let count = found.count();
                turn.integer(as_integer(count as u64));
            }
            (b"del" | b"unlink", [_, keys @ ..]) if !keys.is_empty() => {
                let mut count = 0;
                for key in keys {
                    if let Some(place) = self.find(turn, key) {
                        self.free(turn, place, false);
                        count += 1;
                    }
                }
                turn.integer(count);
            }
            (b"getdel", [_, key]) => {
                self.value(turn, key);
                // What it tells of is gone.
                turn.judged.shown.clear();
                if let Some(place) = self.find(turn, key) {
                    self.free(turn, place, false);
                }
            }
            (b"pttl", [_, key]) => self.time_left(turn, key, |left| left),
            (b"ttl", [_, key]) => self.time_left(turn, key, |left| (left + 500).div_euclid(1_000)),
            (b"pexpire", [_, key, ttl]) => {
                let place = self.find(turn, key);
                self.move_end(turn, place, millis(ttl)?);
            }
            (b"expire", [_, key, ttl]) => {
                let place = self.find(turn, key);
                self.move_end(turn, place, seconds(ttl)?);
            }
            (b"persist", [_, key]) => {
                let place = self.find(turn, key);
                let place = place.filter(|place| self.kept[*place].ends != NEVER);
                self.move_end(turn, place, NEVER);
            }
            (b"scan", [_, b"0"]) => {
                turn.reply().array(2);
                turn.reply().bulk(b"0");
                self.names(turn);
            }
            (b"keys", [_, b"*"]) => self.names(turn),
            (b"flushdb", [_]) => self.flush(turn, Some(turn.db)),
            (b"flushall", [_]) => self.flush(turn, None),
            (b"select", _) if selected(name, args).is_some() => turn.reply().ok(),
            _ => return None,
        }
        Some(())
    }

    fn acquire(
        &mut self,
        turn: &mut Turn<'_>,
        (key, token): (&[u8], &[u8]),
        ttl: u64,
        floor: u64,
        label: Option<&[u8]>,
    ) {
        let place = self.find(turn, key);
        let counter = *self.counter(turn.db, key);
        let (counter, left) = match place {
            Some(place) => {
                self.show(turn, place, counter);
                (counter, left(turn.at.now, self.kept[place].ends))
            }
            None => ((counter + 1).max(floor + 1), left(0, ttl)),
        };
        turn.reply().array(3);
        turn.integer(i64::from(place.is_none()));
        turn.integer(as_integer(counter));
        turn.integer(left);
        if place.is_none() {
            self.grant(turn, key, token, ttl, Some(floor));
            if let Some(label) = label
                && !turn.is_refused
                && let Some(kept) = self.kept.last_mut()
            {
                kept.label = Some(Label {
                    text: label.into(),
                    since: Some(turn.at.now),
                });
            }
        }
    }

    /// Frees a key, whoever has it, and raises its counter.
    fn force(&mut self, turn: &mut Turn<'_>, key: &[u8]) {
        let counter = *self.counter(turn.db, key) + 1;
        let place = self.find(turn, key);
        let kept = place.map(|place| self.kept[place].clone());
        let label = kept.as_ref().and_then(|kept| kept.label.clone());
        let parts = kept.as_ref().map_or(2, |_| 5) + label.as_ref().map_or(0, |_| 2);
        turn.reply().array(parts);
        turn.integer(i64::from(kept.is_some()));
        turn.integer(as_integer(counter));
        if let Some(kept) = kept {
            match kept.levels {
                0 => turn.reply().bulk(&kept.token),
                _ => turn.reply().null(),
            }
            turn.integer(left(turn.at.now, kept.ends));
            turn.integer(as_integer(kept.grant));
        }
        turn.label(label);
        if !turn.is_refused {
            *self.counter(turn.db, key) = counter;
        }
        if let Some(place) = place {
            self.free(turn, place, false);
        }
    }

    /// Says whether there is a lock, and gives it another time from now.
    fn move_end(&mut self, turn: &mut Turn<'_>, place: Option<usize>, ttl: u64) {
        turn.integer(i64::from(place.is_some()));
        if let Some(place) = place {
            self.set_end(turn, place, ttl);
        }
    }

    fn release(&mut self, turn: &mut Turn<'_>, key: &[u8], token: &[u8]) {
        let place = self.held_by(turn, key, token);
        turn.integer(i64::from(place.is_some()));
        if let Some(place) = place {
            self.free(turn, place, false);
        }
    }

    fn write_back(
        &mut self,
        turn: &mut Turn<'_>,
        key: &[u8],
        token: &[u8],
        grant: u64,
        wanted: u64,
    ) {
        let place = self.held_by(turn, key, token);
        let place = place.filter(|place| self.kept[*place].grant == grant);
        turn.integer(i64::from(place.is_some()));
        if let Some(place) = place
            && !turn.is_refused
        {
            let counter = self.counter(turn.db, key);
            *counter = (*counter).max(wanted);
            let counter = *counter;
            self.show(turn, place, counter);
        }
    }

    fn look(&mut self, turn: &mut Turn<'_>, key: &[u8]) {
        let counter = *self.counter(turn.db, key);
        let Some(place) = self.find(turn, key) else {
            return turn.reply().null();
        };
        self.show(turn, place, counter);
        let kept = self.kept[place].clone();
        turn.reply().array(kept.label.as_ref().map_or(4, |_| 6));
        turn.reply().bulk(&kept.token);
        turn.integer(left(turn.at.now, kept.ends));
        turn.integer(as_integer(kept.grant));
        turn.integer(as_integer(counter));
        turn.label(kept.label);
    }

    fn set(&mut self, turn: &mut Turn<'_>, key: &[u8], value: &[u8], options: SetOptions<'_>) {
        let place = self.find(turn, key);
        let old = place.map(|place| self.kept[place].clone());
        let is_allowed = match (&old, options.if_equal) {
            (Some(old), Some(wanted)) => *old.token == *wanted,
            (None, Some(_)) => false,
            (Some(_), None) => !options.is_new,
            (None, None) => !options.is_old,
        };
        match &old {
            Some(old) if options.wants_old => turn.reply().bulk(&old.token),
            _ if is_allowed && !options.wants_old => turn.reply().ok(),
            _ => turn.reply().null(),
        }
        if !is_allowed {
            if let Some(place) = place {
                self.show(turn, place, 0);
            }
            return;
        }
        let kept_ttl = old.as_ref().filter(|_| options.keeps_ttl);
        let kept_ttl = kept_ttl.map(|old| match old.ends {
            NEVER => NEVER,
            ends => ends - turn.at.now,
        });
        let ttl = options.ttl.or(kept_ttl).unwrap_or(NEVER);
        match place {
            Some(place) if *self.kept[place].token == *value => self.set_end(turn, place, ttl),
            _ => self.grant(turn, key, value, ttl, None),
        }
    }

    fn time_left(&mut self, turn: &mut Turn<'_>, key: &[u8], unit: fn(i64) -> i64) {
        let left = match self.find_shown(turn, key) {
            Some(place) => left(turn.at.now, self.kept[place].ends),
            None => -2,
        };
        turn.integer(if left < 0 { left } else { unit(left) });
    }

    fn value(&mut self, turn: &mut Turn<'_>, key: &[u8]) {
        match self.find_shown(turn, key) {
            Some(place) if self.kept[place].levels == 0 => {
                turn.reply().bulk(&self.kept[place].token);
            }
            _ => turn.reply().null(),
        }
    }

    /// The names of all keys.
    fn names(&mut self, turn: &mut Turn<'_>) {
        self.kept.retain(|kept| kept.ends >= turn.at.now);
        let mut places: Vec<usize> = (0..self.kept.len()).collect();
        places.retain(|place| self.kept[*place].db == turn.db);
        turn.reply().array(places.len());
        for place in places {
            self.show(turn, place, 0);
            turn.reply().bulk(&self.kept[place].key);
        }
    }

    fn flush(&mut self, turn: &mut Turn<'_>, db: Option<u8>) {
        turn.reply().ok();
        let now = turn.at.now;
        let is_meant = |kept: &Kept| db.is_none_or(|db| kept.db == db) && kept.ends >= now;
        while !turn.is_refused
            && let Some(place) = self.kept.iter().position(is_meant)
        {
            self.free(turn, place, true);
        }
    }

    pub(super) fn find(&mut self, turn: &Turn<'_>, key: &[u8]) -> Option<usize> {
        self.alive(turn.at.now, turn.db, key)
    }

    /// A lock of which the reply tells.
    pub(super) fn find_shown(&mut self, turn: &mut Turn<'_>, key: &[u8]) -> Option<usize> {
        let place = self.find(turn, key)?;
        self.show(turn, place, 0);
        Some(place)
    }

    fn held_by(&mut self, turn: &Turn<'_>, key: &[u8], token: &[u8]) -> Option<usize> {
        let place = self.find(turn, key)?;
        (*self.kept[place].token == *token).then_some(place)
    }

    /// The reply tells of a lock.
    pub(super) fn show(&self, turn: &mut Turn<'_>, place: usize, counter: u64) {
        let kept = &self.kept[place];
        turn.judged.shown.push(Shown {
            key: Arc::clone(&kept.key),
            token: Arc::clone(&kept.token),
            ends: kept.ends,
            counter,
            is_logged: kept.is_logged,
        });
    }

    /// A new holder; the key's counter rises, and is told where there may be a floor.
    pub(super) fn grant(
        &mut self,
        turn: &mut Turn<'_>,
        key: &[u8],
        token: &[u8],
        ttl: u64,
        floor: Option<u64>,
    ) {
        if self.refuses(turn, ttl) {
            return;
        }
        let old = self.find(turn, key).map(|place| self.kept.remove(place));
        let was_logged = old.as_ref().is_some_and(|old| old.is_logged);
        if let Some(Kept { db, key, .. }) = old {
            turn.judged.effects.push(Effect::Freed {
                db,
                key,
                for_good: false,
            });
        }
        let counter = self.counter(turn.db, key);
        *counter = (*counter + 1).max(floor.unwrap_or(0) + 1);
        let grant = *counter;
        let (key, token) = (Word::from(key), Word::from(token));
        self.kept.push(Kept {
            db: turn.db,
            key: Arc::clone(&key),
            token: Arc::clone(&token),
            levels: 0,
            label: None,
            ends: turn.at.now.saturating_add(ttl),
            grant,
            is_logged: was_logged || self.logs(ttl),
        });
        self.touch(turn.db, &key);
        turn.judged.effects.push(Effect::Granted {
            key,
            token,
            counter: floor.map_or(0, |_| grant),
            ttl,
        });
    }

    pub(super) fn set_end(&mut self, turn: &mut Turn<'_>, place: usize, ttl: u64) {
        if self.refuses(turn, ttl) {
            return;
        }
        let logs = self.logs(ttl);
        let kept = &mut self.kept[place];
        kept.ends = turn.at.now.saturating_add(ttl);
        kept.is_logged |= logs;
        let key = Arc::clone(&kept.key);
        self.touch(turn.db, &key);
        turn.judged.effects.push(Effect::Moved { key, ttl });
    }

    pub(super) fn free(&mut self, turn: &mut Turn<'_>, place: usize, is_flush: bool) {
        if !turn.is_refused {
            let Kept { db, key, ends, .. } = self.kept.remove(place);
            let for_good = is_flush || ends == NEVER;
            self.touch(db, &key);
            let freed = Effect::Freed { db, key, for_good };
            turn.judged.effects.push(freed);
        }
    }

    /// Whether nothing may come of it: where nothing is kept, locks above the longest TTL are refused.
    fn refuses(&self, turn: &mut Turn<'_>, ttl: u64) -> bool {
        let must_refuse = self.guard == GuardMode::Memory && ttl > self.max_ttl_ns;
        turn.judged.is_refused |= must_refuse;
        must_refuse || turn.is_refused
    }
}

impl Turn<'_> {
    pub(super) fn reply(&mut self) -> Encoder<'_> {
        Encoder::new(&mut self.out, Protocol::Resp2)
    }

    /// A label, and how long its lock has been held.
    fn label(&mut self, label: Option<Label>) {
        if let Some(Label { text, since }) = label {
            self.reply().bulk(&text);
            self.integer(since.map_or(-1, |since| as_integer((self.at.now - since) / 1_000_000)));
        }
    }

    /// It will be an error that begins so.
    pub(super) fn error(&mut self, begin: &[u8]) {
        self.is_refused = true;
        self.out.clear();
        self.out.extend_from_slice(begin);
    }

    pub(super) fn integer(&mut self, number: i64) {
        self.reply().integer(number);
    }
}

/// What is answered in a quarantine as at any time.
const IN_QUARANTINE: [&[u8]; 5] = [b"select", b"multi", b"exec", b"watch", b"unwatch"];

/// A counter as a reply tells it.
fn as_integer(counter: u64) -> i64 {
    i64::try_from(counter).unwrap_or(i64::MAX)
}

/// The database that a connection chooses.
fn selected(name: &[u8], args: &[&[u8]]) -> Option<u8> {
    let (b"select", [_, db]) = (name, args) else {
        return None;
    };
    let db = u8::try_from(number(db)?).ok()?;
    (db < 16).then_some(db)
}

/// Whether two replies are the same. Nodes tell the names of keys in an order of their own.
fn is_same(name: &[u8], expected: &[u8], reply: &[u8]) -> bool {
    let sorted = |bytes: &[u8]| {
        let lines = bytes.split(|byte| *byte == b'\n');
        let mut lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
        lines.sort_unstable();
        lines
    };
    expected == reply || (matches!(name, b"scan" | b"keys") && sorted(expected) == sorted(reply))
}

/// Whether something is granted or extended, or gone for good.
fn takes_hold(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| {
        !matches!(
            effect,
            Effect::Freed {
                for_good: false,
                ..
            }
        )
    })
}

/// Whether a node may refuse so.
fn is_right(name: &[u8], reply: &[u8], at: Condition) -> bool {
    reply.starts_with(b"-LOADING locknode is shutting down")
        || (reply.starts_with(b"-MISCONF") && at.is_troubled)
        || (reply.starts_with(b"-NOSCRIPT") && name == b"evalsha")
}
