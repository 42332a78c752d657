//! What a node's replies tell of its table, for history and checks.

use std::time::Duration;

use crate::bug::Bug;
use crate::history::{AttemptNo, Event, KeyNo};
use crate::lock_effect::LockEffect;
use crate::scenario::Hook;
use crate::sim::link::{Claim, Claims};
use crate::sim::oracle::until;
use crate::sim::recorder::name_in;
use crate::sim::reference::{Effect, Judged, Manner, Shown};
use crate::sim::world::World;
use crate::span::{SimTime, nanos};

impl World {
    /// Looks at a request and its reply; adds what has to be durable when it leaves. Where the reply is what the model of a
    /// node says, the model tells what it did, also to several keys or without a word; otherwise the reply does.
    pub(crate) fn observe(
        &mut self,
        (client, node, is_aside): (u8, u8, bool),
        manner: &mut Manner,
        (args, reply): (&[&[u8]], &[u8]),
        covers: &mut Claims,
    ) {
        let db = manner.db;
        let mut judged = Judged::default();
        if let Some(at) = self.nodes.get_mut(usize::from(node))
            && let Some(condition) = at.condition()
            && let Some(run) = &mut at.run
            && let Some(reference) = &mut run.reference
        {
            reference.judge(condition, manner, args, reply, &mut judged);
        }
        if let Some(text) = &judged.deviation {
            let text = text.as_str().into();
            self.note(Event::Deviated { node, client, text });
        }
        self.count(client, node, args, reply);
        let states = [
            (reply.is_empty(), "silent-request"),
            (db > 0, "other-database"),
            (judged.is_refused, "refused-without-log"),
            (judged.effects.len() > 1, "several-locks-at-once"),
        ];
        for (_, name) in states.iter().filter(|(is_so, _)| *is_so) {
            self.recorder.counters.bump(name);
        }
        // Other threads of a client do with their own keys what they like.
        let by = (!is_aside).then_some(client);
        if judged.is_unsure && is_aside {
            self.unsure(node, db, args);
        }
        if !judged.is_known || judged.deviation.is_some() {
            judged.effects = Effect::seen(db, args, reply).into_iter().collect();
        }
        if let Some(name) = judged.reached {
            self.recorder.counters.bump(name);
        }
        for effect in &judged.effects {
            covers.extend(self.effect(client, node, by, db, effect));
            self.note_token_ttl(node, db, effect);
        }
        for shown in &judged.shown {
            covers.extend(self.shown(node, db, shown));
        }
    }

    /// Counts what tells of states worth reaching.
    fn count(&mut self, client: u8, node: u8, args: &[&[u8]], reply: &[u8]) {
        let is_fence = |name: &&[u8]| name.eq_ignore_ascii_case(b"lock.fence");
        if reply.first() != Some(&b'-') && !args.first().is_some_and(is_fence) {
            return;
        }
        match LockEffect::of(args, reply) {
            LockEffect::Refusal(why) => {
                self.recorder.counters.bump(match why {
                    "LOADING" => "quarantine-refusal",
                    "MISCONF" => "refused-by-failed-disk",
                    _ => "refused",
                });
                self.note(Event::Refused { node, client, why });
            }
            LockEffect::WriteBack { is_taken } => {
                self.recorder.counters.bump(if is_taken {
                    "write-back"
                } else {
                    "write-back-refused"
                });
            }
            _ => {}
        }
    }

    /// A request has changed a lock: what its reply says of that.
    fn effect(
        &mut self,
        client: u8,
        node: u8,
        by: Option<u8>,
        db: u8,
        effect: &Effect,
    ) -> Option<Claim> {
        match effect {
            Effect::Granted {
                key,
                token,
                counter,
                ttl,
            } => {
                let key = self.key_no(db, key);
                let attempt = self.recorder.attempt(key, token);
                self.granted(client, node, key, attempt, (*counter, *ttl))
            }
            Effect::Moved { key, ttl } => {
                let key = self.key_no(db, key);
                self.prolonged(node, key, by, *ttl)
            }
            Effect::Freed { db, key, for_good } => {
                let key = self.key_no(*db, key);
                let attempt = self.freed(node, key, by)?;
                let at = self.nodes.get(usize::from(node))?;
                for_good.then(|| Claim {
                    key,
                    attempt,
                    holding: at.oracle.holding(key),
                    until: at.clocks.machine(self.now),
                    is_logged: true,
                    is_gone: true,
                    ..Claim::default()
                })
            }
        }
    }

    /// Keeps the longest TTL of a token, for the bug that leaves the others off the guard.
    fn note_token_ttl(&mut self, node: u8, db: u8, effect: &Effect) {
        if self.scenario.setup.bug == Some(Bug::HashTtlOffGuard)
            && let Effect::Granted { key, ttl, .. } | Effect::Moved { key, ttl } = effect
            && let Some(at) = self.nodes.get_mut(usize::from(node))
            && let Some(run) = &at.run
            && run
                .reference
                .as_ref()
                .is_some_and(|it| !it.is_hash(db, key))
        {
            at.token_ttl = at.token_ttl.max(*ttl);
        }
    }

    /// A reply tells of a lock: it binds the node as its grant does.
    fn shown(&mut self, node: u8, db: u8, shown: &Shown) -> Option<Claim> {
        let key = self.key_no(db, &shown.key);
        let attempt = self.recorder.attempt(key, &shown.token);
        self.recorder.counters.bump("lock-shown");
        let at = self.nodes.get(usize::from(node))?;
        let left = shown.ends.saturating_sub(at.executed_at);
        let until = until(at.clocks.machine(self.now), left);
        let ends_true = match shown.ends {
            u64::MAX => SimTime::NEVER,
            _ => at.clocks.ends(self.now, left),
        };
        Some(Claim {
            key,
            attempt,
            holding: at.oracle.holding(key),
            counter: shown.counter,
            until: at.oracle.ends(key, attempt, until),
            is_logged: shown.is_logged,
            shown: Some(ends_true),
            is_gone: false,
        })
    }

    /// The number of a key: those of other databases than the first have names of their own.
    pub(crate) fn key_no(&mut self, db: u8, key: &[u8]) -> KeyNo {
        match db {
            0 => self.recorder.key(key),
            _ => self.recorder.key(&name_in(db, key)),
        }
    }

    fn granted(
        &mut self,
        client: u8,
        node: u8,
        key: KeyNo,
        attempt: AttemptNo,
        (counter, ttl): (u64, u64),
    ) -> Option<Claim> {
        self.look_again_whether_serving(node);
        let before = self.mirror(node, key)?.replace(attempt);
        if before != Some(attempt) {
            self.changes_hands(node, key);
        }
        let (cover, ends) = self.binds(node, key, attempt, (counter, ttl))?;
        self.note(Event::Granted {
            node,
            key,
            attempt,
            client,
            counter,
            ends,
        });
        if self.recorder.owner(attempt) == Some(client) {
            self.recorder.counters.bump("healed");
        }
        if cover.is_logged {
            self.recorder.counters.bump("lock-on-the-log");
        }
        if ttl == u64::MAX {
            self.recorder.counters.bump("lock-without-end");
        }
        self.recorder.owns(client, attempt);
        self.hook(Hook::Granted(node));
        Some(cover)
    }

    fn prolonged(&mut self, node: u8, key: KeyNo, by: Option<u8>, ttl: u64) -> Option<Claim> {
        self.look_again_whether_serving(node);
        let attempt = (*self.mirror(node, key)?)?;
        self.note_robbery(node, key, attempt, by);
        let (cover, ends) = self.binds(node, key, attempt, (0, ttl))?;
        self.note(Event::Extended {
            node,
            key,
            attempt,
            ends,
        });
        self.hook(Hook::Extended(node));
        Some(cover)
    }

    fn freed(&mut self, node: u8, key: KeyNo, by: Option<u8>) -> Option<AttemptNo> {
        let attempt = self.mirror(node, key)?.take()?;
        self.changes_hands(node, key);
        self.note_robbery(node, key, attempt, by);
        self.note(Event::Freed { node, key, attempt });
        self.hook(Hook::Freed(node));
        Some(attempt)
    }

    /// A node holds a lock for this TTL from now on: what its reply tells of that, and when the lock ends in true time.
    fn binds(
        &mut self,
        node: u8,
        key: KeyNo,
        attempt: AttemptNo,
        (counter, ttl): (u64, u64),
    ) -> Option<(Claim, SimTime)> {
        let now = self.now;
        let at = self.nodes.get_mut(usize::from(node))?;
        let until = until(at.clocks.machine(now), ttl);
        at.oracle.moves(key, attempt, until);
        let cover = Claim {
            key,
            attempt,
            holding: at.oracle.holding(key),
            counter,
            until,
            is_logged: at.logs(Duration::from_nanos(ttl)),
            ..Claim::default()
        };
        Some((cover, at.clocks.ends(now, ttl)))
    }

    /// Nobody knows what a request has done: the locks that it names bind the node no more.
    fn unsure(&mut self, node: u8, db: u8, args: &[&[u8]]) {
        let is_all = args.first().is_some_and(|name| {
            name.get(..5)
                .is_some_and(|it| it.eq_ignore_ascii_case(b"flush"))
        });
        let held = self.mirrors.get(usize::from(node)).map_or(0, Vec::len);
        let keys: Vec<KeyNo> = if is_all {
            (0..held).filter_map(|key| key.try_into().ok()).collect()
        } else {
            args.iter()
                .skip(1)
                .filter_map(|word| self.recorder.known_key(db, word))
                .collect()
        };
        for key in keys {
            if let Some(attempt) = self.mirror(node, key).and_then(Option::take) {
                self.changes_hands(node, key);
                self.note(Event::Forgotten { node, key, attempt });
            }
        }
    }

    /// Whoever extends or releases a lock compares first, and so never does that to another's.
    fn note_robbery(&mut self, node: u8, key: KeyNo, attempt: AttemptNo, by: Option<u8>) {
        if let Some(client) = by
            && let Some(owner) = self.recorder.owner(attempt)
            && owner != client
        {
            self.note(Event::Robbed {
                node,
                client,
                key,
                attempt,
            });
        }
    }

    /// What a node told of a key binds it no more: the key is another attempt's now, or nobody's.
    fn changes_hands(&mut self, node: u8, key: KeyNo) {
        if let Some(at) = self.nodes.get_mut(usize::from(node)) {
            at.oracle.changes_hands(key);
        }
    }

    /// Whose attempt a node holds under a key.
    pub(crate) fn mirror(&mut self, node: u8, key: KeyNo) -> Option<&mut Option<AttemptNo>> {
        let mirror = self.mirrors.get_mut(usize::from(node))?;
        let place = usize::from(key);
        if mirror.len() <= place {
            mirror.resize(place + 1, None);
        }
        mirror.get_mut(place)
    }
}

impl Effect {
    /// What a request has done, by its words and its reply alone.
    fn seen(db: u8, args: &[&[u8]], reply: &[u8]) -> Option<Self> {
        match LockEffect::of(args, reply) {
            LockEffect::Grant {
                key,
                token,
                counter,
                ttl,
            } => Some(Self::Granted {
                key: key.into(),
                token: token.into(),
                counter,
                ttl: nanos(ttl),
            }),
            LockEffect::Extension { key, ttl } => Some(Self::Moved {
                key: key.into(),
                ttl: nanos(ttl),
            }),
            LockEffect::Release { key } => Some(Self::Freed {
                db,
                key: key.into(),
                for_good: false,
            }),
            LockEffect::Nothing | LockEffect::Refusal(_) | LockEffect::WriteBack { .. } => None,
        }
    }
}
