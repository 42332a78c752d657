//! What a node's replies tell of its table, for history and checks.

use std::time::Duration;

use locknode_engine::durable::MachineTime;

use crate::history::{AttemptNo, Event as Told, KeyNo};
use crate::lock_effect::LockEffect;
use crate::scenario::Hook;
use crate::sim::link::{Cover, Covers};
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
        covers: &mut Covers,
    ) {
        let db = manner.db;
        let mut judged = Judged::default();
        self.judge(node, manner, (args, reply), &mut judged);
        if let Some(text) = &judged.deviation {
            let text = text.as_str().into();
            self.recorder
                .push(self.now, Told::Deviated { node, client, text });
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
        if judged.is_known && judged.deviation.is_none() {
            for effect in &judged.effects {
                covers.extend(self.effect(client, node, by, db, effect));
            }
        } else {
            covers.extend(self.lock_effect((client, node), by, db, args, reply))
        }
        for shown in &judged.shown {
            covers.extend(self.shown(node, db, shown));
        }
    }

    fn judge(
        &mut self,
        node: u8,
        manner: &mut Manner,
        (args, reply): (&[&[u8]], &[u8]),
        judged: &mut Judged,
    ) {
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        let condition = at.condition();
        let reference = at.run.as_mut().and_then(|run| run.reference.as_mut());
        if let (Some(condition), Some(reference)) = (condition, reference) {
            reference.judge(condition, manner, args, reply, judged);
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
                let told = Told::Refused { node, client, why };
                self.recorder.push(self.now, told);
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

    /// What the model says that a request has done.
    fn effect(
        &mut self,
        client: u8,
        node: u8,
        by: Option<u8>,
        db: u8,
        effect: &Effect,
    ) -> Option<Cover> {
        match effect {
            Effect::Granted {
                key,
                token,
                counter,
                ttl,
            } => {
                let key = self.key_no(db, key);
                let attempt = self.recorder.attempt(key, token);
                let ttl = Duration::from_nanos(*ttl);
                self.granted(client, node, key, attempt, (*counter, ttl))
            }
            Effect::Moved { key, ttl } => {
                let key = self.key_no(db, key);
                self.prolonged(node, key, by, Duration::from_nanos(*ttl))
            }
            Effect::Freed { db, key, for_good } => {
                let key = self.key_no(*db, key);
                let attempt = self.freed(node, key, by)?;
                let gone = self.gone(node, key, attempt);
                gone.filter(|_| *for_good)
            }
        }
    }

    /// What a reply says that a request has done.
    fn lock_effect(
        &mut self,
        (client, node): (u8, u8),
        by: Option<u8>,
        db: u8,
        args: &[&[u8]],
        reply: &[u8],
    ) -> Option<Cover> {
        match LockEffect::of(args, reply) {
            LockEffect::Grant {
                key,
                token,
                counter,
                ttl,
            } => {
                let key = self.key_no(db, key);
                let attempt = self.recorder.attempt(key, token);
                self.granted(client, node, key, attempt, (counter, ttl))
            }
            LockEffect::Extension { key, ttl } => {
                let key = self.key_no(db, key);
                self.prolonged(node, key, by, ttl)
            }
            LockEffect::Release { key } => {
                let key = self.key_no(db, key);
                self.freed(node, key, by);
                None
            }
            LockEffect::Nothing | LockEffect::Refusal(_) | LockEffect::WriteBack { .. } => None,
        }
    }

    /// A reply tells of a lock: it binds the node as its grant does.
    fn shown(&mut self, node: u8, db: u8, shown: &Shown) -> Option<Cover> {
        let key = self.key_no(db, &shown.key);
        let attempt = self.recorder.attempt(key, &shown.token);
        self.recorder.counters.bump("lock-shown");
        let holding = self.holding(node, key, false);
        let at = self.nodes.get(usize::from(node))?;
        let left = shown.ends.saturating_sub(at.executed_at);
        let ends_true = match shown.ends {
            u64::MAX => SimTime::NEVER,
            _ => at.clocks.ends(self.now, left),
        };
        Some(Cover {
            key,
            attempt,
            holding,
            counter: shown.counter,
            until: at
                .oracle
                .ends(key, attempt, until(at.clocks.machine(self.now), left)),
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
        (counter, ttl): (u64, Duration),
    ) -> Option<Cover> {
        self.look_again_whether_serving(node);
        let (until, ends_true, is_logged) = self.ends(node, ttl)?;
        let before = self.mirror(node, key)?.replace(attempt);
        let holding = self.holding(node, key, before != Some(attempt));
        self.nodes
            .get_mut(usize::from(node))?
            .oracle
            .moves(key, attempt, until);
        let told = Told::Granted {
            node,
            key,
            attempt,
            client,
            counter,
            ends: ends_true,
        };
        self.recorder.push(self.now, told);
        if self.recorder.owner(attempt) == Some(client) {
            self.recorder.counters.bump("healed");
        }
        if is_logged {
            self.recorder.counters.bump("lock-on-the-log");
        }
        if ttl == Duration::from_nanos(u64::MAX) {
            self.recorder.counters.bump("lock-without-end");
        }
        self.recorder.owns(client, attempt);
        self.hook(Hook::Granted(node));
        Some(Cover {
            key,
            attempt,
            holding,
            counter,
            until,
            is_logged,
            shown: None,
            is_gone: false,
        })
    }

    fn prolonged(&mut self, node: u8, key: KeyNo, by: Option<u8>, ttl: Duration) -> Option<Cover> {
        self.look_again_whether_serving(node);
        let attempt = (*self.mirror(node, key)?)?;
        self.note_robbery(node, key, attempt, by);
        let (until, ends_true, is_logged) = self.ends(node, ttl)?;
        let told = Told::Extended {
            node,
            key,
            attempt,
            ends: ends_true,
        };
        self.recorder.push(self.now, told);
        self.nodes
            .get_mut(usize::from(node))?
            .oracle
            .moves(key, attempt, until);
        self.hook(Hook::Extended(node));
        Some(Cover {
            key,
            attempt,
            holding: self.holding(node, key, false),
            counter: 0,
            until,
            is_logged,
            shown: None,
            is_gone: false,
        })
    }

    fn freed(&mut self, node: u8, key: KeyNo, by: Option<u8>) -> Option<AttemptNo> {
        let attempt = self.mirror(node, key)?.take()?;
        self.holding(node, key, true);
        self.note_robbery(node, key, attempt, by);
        let told = Told::Freed { node, key, attempt };
        self.recorder.push(self.now, told);
        self.hook(Hook::Freed(node));
        Some(attempt)
    }

    /// A reply tells that a lock is gone for good.
    fn gone(&mut self, node: u8, key: KeyNo, attempt: AttemptNo) -> Option<Cover> {
        let at = self.nodes.get(usize::from(node))?;
        Some(Cover {
            key,
            attempt,
            holding: at.oracle.holding(key),
            counter: 0,
            until: at.clocks.machine(self.now),
            is_logged: true,
            shown: None,
            is_gone: true,
        })
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
                self.holding(node, key, true);
                let told = Told::Forgotten { node, key, attempt };
                self.recorder.push(self.now, told);
            }
        }
    }

    /// Whoever extends or releases a lock compares first, and so never does that to another's.
    fn note_robbery(&mut self, node: u8, key: KeyNo, attempt: AttemptNo, by: Option<u8>) {
        let Some(client) = by else { return };
        if self
            .recorder
            .owner(attempt)
            .is_some_and(|owner| owner != client)
        {
            let told = Told::Robbed {
                node,
                client,
                key,
                attempt,
            };
            self.recorder.push(self.now, told);
        }
    }

    /// The number of a key's holding on a node, of the next one when it changes hands.
    fn holding(&mut self, node: u8, key: KeyNo, changes_hands: bool) -> u32 {
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return 0;
        };
        if changes_hands {
            at.oracle.changes_hands(key)
        } else {
            at.oracle.holding(key)
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

    /// When a lock ends that is granted now, by the machine's clocks and in true time; and whether it is on the log.
    fn ends(&self, node: u8, ttl: Duration) -> Option<(MachineTime, SimTime, bool)> {
        let at = self.nodes.get(usize::from(node))?;
        let ends = until(at.clocks.machine(self.now), nanos(ttl));
        let ends_true = at.clocks.ends(self.now, nanos(ttl));
        Some((ends, ends_true, at.logs(ttl)))
    }
}
