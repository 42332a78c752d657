//! The commands, one after the other, as they are described and not as they are built.

use super::words::{
    Lower, NULL, OK, Replies, SetOptions, left, millis, number, put_array, put_bulk, put_counter,
    put_integer, seconds,
};
use std::sync::Arc;

use crate::scenario::GuardMode;

use super::{Condition, Effect, Judged, Kept, Manner, NEVER, Reference, Shown, Word};

/// One request under way.
struct Turn<'a> {
    at: Condition,
    db: u8,
    /// It will be refused: nothing changes.
    is_refused: bool,
    out: Vec<u8>,
    judged: &'a mut Judged,
}

/// How the model answers.
enum Answer {
    /// With what was written.
    Told,
    /// The node has to refuse it.
    Refused,
    /// Of this command the model knows nothing.
    Unknown,
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
            && args
                .get(1)
                .is_some_and(|word| word.eq_ignore_ascii_case(b"reply"))
        {
            manner.replies = match args.get(2).map(|word| word.to_ascii_lowercase()).as_deref() {
                Some(b"off") => Replies::None,
                Some(b"skip") if before == Replies::None => Replies::None,
                Some(b"skip") => Replies::SkipNext,
                _ => Replies::All,
            };
            return;
        }
        let is_silent = before != Replies::All;
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
            out: std::mem::take(&mut self.expected),
            judged: &mut *judged,
        };
        turn.out.clear();
        let answer = self.answer(&mut turn, name, args);
        let (expected, is_refused) = (std::mem::take(&mut turn.out), turn.is_refused);
        judged.is_known = !matches!(answer, Answer::Unknown);
        judged.is_refused = matches!(answer, Answer::Refused);
        let wrong = match answer {
            Answer::Unknown => None,
            _ if is_silent => {
                judged.shown.clear();
                // Whether it was refused cannot be seen.
                if at.is_troubled && !judged.effects.is_empty() {
                    judged.effects.clear();
                    (judged.is_unsure, self.is_lost) = (true, true);
                }
                (!reply.is_empty()).then_some("nothing")
            }
            Answer::Refused => (!is_error).then_some("a refusal"),
            Answer::Told if at.is_quarantined && name != b"select" => (!reply
                .starts_with(b"-LOADING"))
            .then_some("LOADING, which it does in its quarantine"),
            Answer::Told if at.has_failed && !is_error && takes_hold(&judged.effects) => {
                Some("a refusal, because its disk has failed")
            }
            Answer::Told if is_error => {
                if is_right(name, reply, at) {
                    None
                } else {
                    Some("no error")
                }
            }
            Answer::Told => (!is_same(name, &expected, reply)).then_some(""),
        };
        if let Some(wanted) = wrong {
            let wanted = match wanted {
                "" => String::from_utf8_lossy(&expected).replace("\r\n", " "),
                wanted => wanted.to_owned(),
            };
            let asked: Vec<_> = args
                .iter()
                .map(|word| String::from_utf8_lossy(word))
                .collect();
            let told = String::from_utf8_lossy(reply).replace("\r\n", " ");
            judged.deviation = Some(format!(
                "answered `{}` with `{}`, and has to answer {}",
                asked.join(" "),
                told.trim_end(),
                wanted.trim_end()
            ));
        }
        if is_refused || is_error {
            judged.shown.clear();
        }
        self.expected = expected;
    }

    fn answer(&mut self, turn: &mut Turn<'_>, name: &[u8], args: &[&[u8]]) -> Answer {
        let key = args.get(1).copied().unwrap_or_default();
        let word = |place: usize| args.get(place).copied().unwrap_or_default();
        match (name, args.len()) {
            (b"lock.acquire", 4 | 6) => {
                let (Some(ttl), floor) = (millis(word(3)), number(word(5)).unwrap_or(0)) else {
                    return Answer::Unknown;
                };
                self.acquire(turn, key, word(2), ttl, floor)
            }
            (b"lock.extend", 4) => self.extend(turn, key, word(2), millis(word(3))),
            (b"lock.release" | b"delifeq", 3) => self.release(turn, key, word(2)),
            (b"delex", 4) if word(2).eq_ignore_ascii_case(b"ifeq") => {
                self.release(turn, key, word(3))
            }
            // The scripts that everybody uses: a key and a token, and a TTL when it is extended.
            (b"eval" | b"evalsha", 5) if word(2) == b"1" => self.release(turn, word(3), word(4)),
            (b"eval" | b"evalsha", 6) if word(2) == b"1" => {
                self.extend(turn, word(3), word(4), millis(word(5)))
            }
            (b"lock.fence", 5) => self.write_back(turn, args),
            (b"lock.get", 2) => self.look(turn, key),
            (b"set", 3..) => match SetOptions::of(args.get(3..).unwrap_or_default()) {
                Some(options) => self.set(turn, key, word(2), options),
                None => Answer::Unknown,
            },
            (b"setnx", 3) => match self.find(turn.at.now, turn.db, key) {
                Some(place) => {
                    self.show(turn, place, 0);
                    turn.integer(0)
                }
                None => {
                    turn.integer(1);
                    self.grant(turn, key, word(2), NEVER, None)
                }
            },
            (b"get", 2) => {
                self.value(turn, key);
                Answer::Told
            }
            (b"mget", 2..) => {
                put_array(&mut turn.out, args.len() - 1);
                for key in args.iter().skip(1) {
                    self.value(turn, key);
                }
                Answer::Told
            }
            (b"exists", 2..) => {
                let mut count = 0;
                for key in args.iter().skip(1) {
                    if let Some(place) = self.find(turn.at.now, turn.db, key) {
                        self.show(turn, place, 0);
                        count += 1;
                    }
                }
                turn.integer(count)
            }
            (b"pttl", 2) => self.time_left(turn, key, |left| left),
            (b"ttl", 2) => self.time_left(turn, key, |left| (left + 500).div_euclid(1_000)),
            (b"pexpire", 3) => self.expire(turn, key, millis(word(2))),
            (b"expire", 3) => self.expire(turn, key, seconds(word(2))),
            (b"persist", 2) => {
                let place = self.find(turn.at.now, turn.db, key);
                match place.filter(|place| self.kept.get(*place).is_some_and(|it| it.ends != NEVER))
                {
                    Some(place) => {
                        turn.integer(1);
                        self.set_end(turn, place, NEVER)
                    }
                    None => turn.integer(0),
                }
            }
            (b"del" | b"unlink", 2..) => {
                let mut count = 0;
                for key in args.iter().skip(1) {
                    if let Some(place) = self.find(turn.at.now, turn.db, key) {
                        self.free(turn, place, false);
                        count += 1;
                    }
                }
                turn.integer(count)
            }
            (b"getdel", 2) => {
                self.value(turn, key);
                // What it tells of is gone.
                turn.judged.shown.clear();
                if let Some(place) = self.find(turn.at.now, turn.db, key) {
                    self.free(turn, place, false);
                }
                Answer::Told
            }
            (b"scan", 2) if key == b"0" => {
                self.names(turn, &[b"*2\r\n$1\r\n0\r\n"]);
                Answer::Told
            }
            (b"keys", 2) if key == b"*" => {
                self.names(turn, &[]);
                Answer::Told
            }
            (b"flushdb", 1) => self.flush(turn, Some(turn.db)),
            (b"flushall", 1) => self.flush(turn, None),
            (b"select", _) if selected(name, args).is_some() => {
                turn.out.extend_from_slice(OK);
                Answer::Told
            }
            _ => Answer::Unknown,
        }
    }

    fn acquire(
        &mut self,
        turn: &mut Turn<'_>,
        key: &[u8],
        token: &[u8],
        ttl: u64,
        floor: u64,
    ) -> Answer {
        put_array(&mut turn.out, 3);
        if let Some(place) = self.find(turn.at.now, turn.db, key) {
            let counter = *self.counter(turn.db, key);
            self.show(turn, place, counter);
            let ends = self.kept.get(place).map_or(0, |kept| kept.ends);
            put_integer(&mut turn.out, 0);
            put_counter(&mut turn.out, counter);
            return turn.integer(left(turn.at.now, ends));
        }
        let counter = (*self.counter(turn.db, key) + 1).max(floor + 1);
        put_integer(&mut turn.out, 1);
        put_counter(&mut turn.out, counter);
        put_integer(&mut turn.out, left(0, ttl));
        self.grant(turn, key, token, ttl, Some(floor))
    }

    fn extend(
        &mut self,
        turn: &mut Turn<'_>,
        key: &[u8],
        token: &[u8],
        ttl: Option<u64>,
    ) -> Answer {
        let Some(ttl) = ttl else {
            return Answer::Unknown;
        };
        match self.held_by(turn, key, token) {
            Some(place) => {
                turn.integer(1);
                self.set_end(turn, place, ttl)
            }
            None => turn.integer(0),
        }
    }

    fn release(&mut self, turn: &mut Turn<'_>, key: &[u8], token: &[u8]) -> Answer {
        match self.held_by(turn, key, token) {
            Some(place) => {
                self.free(turn, place, false);
                turn.integer(1)
            }
            None => turn.integer(0),
        }
    }

    fn write_back(&mut self, turn: &mut Turn<'_>, args: &[&[u8]]) -> Answer {
        let [_, key, token, grant, wanted] = *args else {
            return Answer::Unknown;
        };
        let (Some(grant), Some(wanted)) = (number(grant), number(wanted)) else {
            return Answer::Unknown;
        };
        let place = self.held_by(turn, key, token);
        let is_it =
            place.is_some_and(|place| self.kept.get(place).is_some_and(|it| it.grant == grant));
        if is_it && !turn.is_refused {
            let counter = self.counter(turn.db, key);
            *counter = (*counter).max(wanted);
            let counter = *counter;
            if let Some(place) = place {
                self.show(turn, place, counter);
            }
        }
        turn.integer(i64::from(is_it))
    }

    fn look(&mut self, turn: &mut Turn<'_>, key: &[u8]) -> Answer {
        let counter = *self.counter(turn.db, key);
        let Some(place) = self.find(turn.at.now, turn.db, key) else {
            turn.out.extend_from_slice(NULL);
            return Answer::Told;
        };
        self.show(turn, place, counter);
        if let Some(kept) = self.kept.get(place) {
            put_array(&mut turn.out, 4);
            put_bulk(&mut turn.out, &kept.token);
            put_integer(&mut turn.out, left(turn.at.now, kept.ends));
            put_counter(&mut turn.out, kept.grant);
            put_counter(&mut turn.out, counter);
        }
        Answer::Told
    }

    fn set(
        &mut self,
        turn: &mut Turn<'_>,
        key: &[u8],
        value: &[u8],
        options: SetOptions<'_>,
    ) -> Answer {
        let place = self.find(turn.at.now, turn.db, key);
        let old = place.and_then(|place| self.kept.get(place)).cloned();
        let is_allowed = match (&old, options.if_equal) {
            (Some(old), Some(wanted)) => *old.token == *wanted,
            (None, Some(_)) => false,
            (Some(_), None) => !options.is_new,
            (None, None) => !options.is_old,
        };
        match (&old, options.wants_old) {
            (Some(old), true) => put_bulk(&mut turn.out, &old.token),
            (None, true) => turn.out.extend_from_slice(NULL),
            (_, false) if is_allowed => turn.out.extend_from_slice(OK),
            (_, false) => turn.out.extend_from_slice(NULL),
        }
        if !is_allowed {
            if let Some(place) = place {
                self.show(turn, place, 0);
            }
            return Answer::Told;
        }
        let kept_ttl = old
            .as_ref()
            .filter(|_| options.keeps_ttl)
            .map(|old| match old.ends {
                NEVER => NEVER,
                ends => ends - turn.at.now,
            });
        let ttl = options.ttl.or(kept_ttl).unwrap_or(NEVER);
        match place {
            Some(place) if old.is_some_and(|old| *old.token == *value) => {
                self.set_end(turn, place, ttl)
            }
            _ => self.grant(turn, key, value, ttl, None),
        }
    }

    fn time_left(&mut self, turn: &mut Turn<'_>, key: &[u8], unit: fn(i64) -> i64) -> Answer {
        let Some(place) = self.find(turn.at.now, turn.db, key) else {
            return turn.integer(-2);
        };
        self.show(turn, place, 0);
        let ends = self.kept.get(place).map_or(0, |kept| kept.ends);
        match left(turn.at.now, ends) {
            -1 => turn.integer(-1),
            left => turn.integer(unit(left)),
        }
    }

    fn expire(&mut self, turn: &mut Turn<'_>, key: &[u8], ttl: Option<u64>) -> Answer {
        let Some(ttl) = ttl else {
            return Answer::Unknown;
        };
        match self.find(turn.at.now, turn.db, key) {
            Some(place) => {
                turn.integer(1);
                self.set_end(turn, place, ttl)
            }
            None => turn.integer(0),
        }
    }

    fn value(&mut self, turn: &mut Turn<'_>, key: &[u8]) {
        match self.find(turn.at.now, turn.db, key) {
            Some(place) => {
                self.show(turn, place, 0);
                let token = self.kept.get(place).map(|kept| &*kept.token);
                put_bulk(&mut turn.out, token.unwrap_or_default());
            }
            None => turn.out.extend_from_slice(NULL),
        }
    }

    /// The names of all keys.
    fn names(&mut self, turn: &mut Turn<'_>, head: &[&[u8]]) {
        let now = turn.at.now;
        self.kept.retain(|kept| kept.ends >= now);
        let places: Vec<usize> = (0..self.kept.len())
            .filter(|place| self.kept.get(*place).is_some_and(|it| it.db == turn.db))
            .collect();
        for part in head {
            turn.out.extend_from_slice(part);
        }
        put_array(&mut turn.out, places.len());
        for place in places {
            self.show(turn, place, 0);
            if let Some(kept) = self.kept.get(place) {
                put_bulk(&mut turn.out, &kept.key);
            }
        }
    }

    fn flush(&mut self, turn: &mut Turn<'_>, db: Option<u8>) -> Answer {
        turn.out.extend_from_slice(OK);
        let now = turn.at.now;
        while !turn.is_refused
            && let Some(place) = self
                .kept
                .iter()
                .position(|kept| db.is_none_or(|db| kept.db == db) && kept.ends >= now)
        {
            self.free(turn, place, true);
        }
        Answer::Told
    }

    fn held_by(&mut self, turn: &Turn<'_>, key: &[u8], token: &[u8]) -> Option<usize> {
        let place = self.find(turn.at.now, turn.db, key)?;
        self.kept
            .get(place)
            .filter(|kept| *kept.token == *token)
            .map(|_| place)
    }

    /// The reply tells of a lock.
    fn show(&self, turn: &mut Turn<'_>, place: usize, counter: u64) {
        if let Some(kept) = self.kept.get(place) {
            turn.judged.shown.push(Shown {
                key: Arc::clone(&kept.key),
                token: Arc::clone(&kept.token),
                ends: kept.ends,
                counter,
                is_logged: kept.is_logged,
            });
        }
    }

    /// A new holder; the key's counter rises, and is told where there may be a floor.
    fn grant(
        &mut self,
        turn: &mut Turn<'_>,
        key: &[u8],
        token: &[u8],
        ttl: u64,
        floor: Option<u64>,
    ) -> Answer {
        if let Some(answer) = self.refuses(turn, ttl) {
            return answer;
        }
        let old = self.find(turn.at.now, turn.db, key);
        let old = old.map(|place| self.kept.remove(place));
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
            ends: turn.at.now.saturating_add(ttl),
            grant,
            is_logged: was_logged || self.logs(ttl),
        });
        turn.judged.effects.push(Effect::Granted {
            key,
            token,
            counter: floor.map_or(0, |_| grant),
            ttl,
        });
        Answer::Told
    }

    fn set_end(&mut self, turn: &mut Turn<'_>, place: usize, ttl: u64) -> Answer {
        if let Some(answer) = self.refuses(turn, ttl) {
            return answer;
        }
        let logs = self.logs(ttl);
        if let Some(kept) = self.kept.get_mut(place) {
            kept.ends = turn.at.now.saturating_add(ttl);
            kept.is_logged |= logs;
            let key = Arc::clone(&kept.key);
            turn.judged.effects.push(Effect::Moved { key, ttl });
        }
        Answer::Told
    }

    fn free(&mut self, turn: &mut Turn<'_>, place: usize, is_flush: bool) {
        if !turn.is_refused && place < self.kept.len() {
            let Kept { db, key, ends, .. } = self.kept.remove(place);
            let for_good = is_flush || ends == NEVER;
            turn.judged
                .effects
                .push(Effect::Freed { db, key, for_good });
        }
    }

    /// Whether nothing may come of it: where nothing is kept, locks above the longest TTL are refused.
    fn refuses(&self, turn: &Turn<'_>, ttl: u64) -> Option<Answer> {
        if self.guard == GuardMode::Memory && ttl > self.max_ttl_ns {
            return Some(Answer::Refused);
        }
        turn.is_refused.then_some(Answer::Told)
    }
}

impl Turn<'_> {
    fn integer(&mut self, number: i64) -> Answer {
        put_integer(&mut self.out, number);
        Answer::Told
    }
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
    expected == reply
        || (matches!(name, b"scan" | b"keys") && {
            let sorted = |bytes: &[u8]| {
                let mut lines: Vec<Vec<u8>> = bytes
                    .split(|byte| *byte == b'\n')
                    .map(<[u8]>::to_vec)
                    .collect();
                lines.sort_unstable();
                lines
            };
            sorted(expected) == sorted(reply)
        })
}

/// Whether a node may refuse so.
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

fn is_right(name: &[u8], reply: &[u8], at: Condition) -> bool {
    reply.starts_with(b"-LOADING locknode is shutting down")
        || (reply.starts_with(b"-MISCONF") && at.is_troubled)
        || (reply.starts_with(b"-NOSCRIPT") && name == b"evalsha")
}
