//! What a node's replies tell of its table, for history and checks.

use std::time::Duration;

use crate::history::{AttemptNo, Event as Told, KeyNo};
use crate::scenario::Cue;
use crate::sight::Sight;
use crate::sim::link::Cover;
use crate::sim::world::World;
use crate::span::{SimTime, nanos};

impl World {
    /// Looks at a request and its reply; what has to be durable when it leaves, and whether that is on the log.
    pub(crate) fn observe(
        &mut self,
        client: u8,
        node: u8,
        args: &[&[u8]],
        reply: &[u8],
    ) -> Option<(Cover, bool)> {
        match Sight::of(args, reply) {
            Sight::Nothing => None,
            Sight::Refusal(why) => {
                self.recorder.counters.bump(match why {
                    "LOADING" => "quarantine-refusal",
                    "MISCONF" => "refused-by-failed-disk",
                    _ => "refused",
                });
                let told = Told::Refused { node, client, why };
                self.recorder.push(self.now, told);
                None
            }
            Sight::WriteBack { is_taken } => {
                self.recorder.counters.bump(match is_taken {
                    true => "write-back",
                    false => "write-back-refused",
                });
                None
            }
            Sight::Grant {
                key,
                token,
                counter,
                ttl,
            } => {
                let key = self.recorder.key(key);
                let attempt = self.recorder.attempt(key, token);
                self.granted(client, node, key, attempt, (counter, ttl))
            }
            Sight::Extension { key, ttl } => {
                let key = self.recorder.key(key);
                self.prolonged(node, key, ttl)
            }
            Sight::Release { key } => {
                let key = self.recorder.key(key);
                let attempt = self.mirror(node, key)?.take()?;
                let told = Told::Freed { node, key, attempt };
                self.recorder.push(self.now, told);
                self.cue(Cue::Freed(node));
                None
            }
        }
    }

    fn granted(
        &mut self,
        client: u8,
        node: u8,
        key: KeyNo,
        attempt: AttemptNo,
        (counter, ttl): (u64, Duration),
    ) -> Option<(Cover, bool)> {
        self.look_again_whether_serving(node);
        let (ends, ends_true, is_logged) = self.ends(node, ttl)?;
        *self.mirror(node, key)? = Some(attempt);
        let told = Told::Granted {
            node,
            key,
            attempt,
            client,
            counter,
            ends: ends_true,
        };
        self.recorder.push(self.now, told);
        self.cue(Cue::Granted(node));
        let cover = Cover {
            attempt,
            counter,
            ends,
            ttl,
        };
        Some((cover, is_logged))
    }

    fn prolonged(&mut self, node: u8, key: KeyNo, ttl: Duration) -> Option<(Cover, bool)> {
        self.look_again_whether_serving(node);
        let attempt = (*self.mirror(node, key)?)?;
        let (ends, ends_true, is_logged) = self.ends(node, ttl)?;
        let told = Told::Extended {
            node,
            key,
            attempt,
            ends: ends_true,
        };
        self.recorder.push(self.now, told);
        self.cue(Cue::Extended(node));
        let cover = Cover {
            attempt,
            counter: 0,
            ends,
            ttl,
        };
        Some((cover, is_logged))
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

    /// When a lock ends that is granted now, in the node's time and in true time; and whether it is on the log.
    fn ends(&self, node: u8, ttl: Duration) -> Option<(u64, SimTime, bool)> {
        let at = self.nodes.get(usize::from(node))?;
        let ends = at.executed_at.saturating_add(nanos(ttl));
        let ends_true = at.clocks.ends(self.now, nanos(ttl));
        Some((ends, ends_true, at.logs(ttl)))
    }
}
