//! A look at a key, or at the nodes; and a release by force, which asks them in the same way.

use std::sync::Arc;
use std::time::Duration;

use locknode_resp::Reply;

use crate::cause::Cause;
use crate::core::answers::Heard;
use crate::core::question::{Ask, fencing_token};
use crate::core::{Core, LockTerms, Notice, OpId, Operation, State};
use crate::entropy::Entropy;
use crate::fencing_token::FencingToken;
use crate::quorum::{NodeId, NodeSet};
use crate::time::Time;
use crate::token::{TOKEN_RANDOM_BYTES, Token};

/// A look under way.
#[derive(Clone, Debug)]
pub(crate) struct Looking {
    until: Time,
    /// One per node.
    looks: Vec<Look>,
}

/// What one node says of a key, as far as it has answered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Look {
    /// The token there, if any.
    pub token: Option<Vec<u8>>,
    /// How long it lives; `None` without end.
    pub remaining: Option<Duration>,
    /// What its holder said of itself.
    pub label: Option<String>,
    /// For how long a lock with a label has been held; `None` since before the node started.
    pub held_for: Option<Duration>,
    /// Whether the key was released by force.
    pub was_freed: bool,
    /// The key's counter after that.
    pub counter: Option<FencingToken>,
    /// Why the node did not say.
    pub cause: Option<Cause>,
    /// How many questions it has not answered.
    missing: u8,
}

impl Looking {
    /// The node will not say.
    pub(crate) fn failed(&mut self, node: NodeId, cause: &Cause) {
        if let Some(look) = self.looks.get_mut(node.index())
            && std::mem::take(&mut look.missing) > 0
        {
            look.cause = Some(cause.clone());
        }
    }

    /// Nodes that have not replied by the end of their time have failed.
    pub(crate) fn on_time(&mut self, now: Time) -> NodeSet {
        let mut late = NodeSet::NONE;
        if now >= self.until {
            let nodes = (0..).map_while(NodeId::new);
            for (node, look) in nodes.zip(&mut self.looks) {
                if std::mem::take(&mut look.missing) > 0 {
                    look.cause = Some(Cause::TimedOut);
                    late.insert(node);
                }
            }
        }
        late
    }
}

impl Look {
    /// Takes `token, left, grant ...`, and what `LOCK.GET` and `LOCK.FORCE` tell of a label behind it.
    fn describe(&mut self, entries: &[Reply]) {
        if let [Reply::Bulk(token), ..] = entries {
            self.token = Some(token.clone());
        }
        if let [_, .., Reply::Bulk(label), Reply::Integer(held_ms)] = entries {
            self.label = Some(String::from_utf8_lossy(label).into_owned());
            self.held_for = u64::try_from(*held_ms).ok().map(Duration::from_millis);
        }
    }
}

impl<E: Entropy> Core<E> {
    /// Begins to ask every node what it holds under a key; without a key, whether it is there. Ends in
    /// [`Notice::Looked`].
    pub fn look(&mut self, now: Time, key: Option<Box<[u8]>>, timeout: Duration) -> OpId {
        let asks: &[Ask] = match key {
            Some(_) => &[Ask::Describe, Ask::Remaining],
            None => &[Ask::Ping],
        };
        self.ask_for_looks(now, key, asks, timeout)
    }

    /// Begins to release a key on every node, no matter who holds it. Ends in [`Notice::Looked`].
    pub fn force(&mut self, now: Time, key: Box<[u8]>, timeout: Duration) -> OpId {
        self.ask_for_looks(now, Some(key), &[Ask::Force], timeout)
    }

    fn ask_for_looks(
        &mut self,
        now: Time,
        key: Option<Box<[u8]>>,
        asks: &[Ask],
        timeout: Duration,
    ) -> OpId {
        let missing = u8::try_from(asks.len()).unwrap_or(u8::MAX);
        let look = Look {
            missing,
            ..Look::default()
        };
        let terms = Arc::new(LockTerms::looking(key.unwrap_or_default(), timeout));
        let nobodys = Token::from_random([0; TOKEN_RANDOM_BYTES]);
        let mut operation = Operation::new(terms, nobodys);
        operation.state = State::Looking(Looking {
            until: now + timeout,
            looks: vec![look; self.quorum.nodes()],
        });
        self.begin(operation, |core, operation| {
            for ask in asks {
                core.ask(now, operation, *ask, core.quorum.all());
            }
            core.judge(now, operation);
        })
    }

    /// Looks at what has been answered.
    pub(super) fn judge_look(&mut self, operation: &mut Operation) {
        let State::Looking(Looking { until, looks }) = &mut operation.state else {
            return;
        };
        if looks.iter().any(|look| look.missing > 0) {
            let until = *until;
            return self.set_alarm(operation, until);
        }
        self.notices.push_back(Notice::Looked {
            op: operation.id,
            looks: std::mem::take(looks),
        });
        operation.state = State::Ended;
    }
}

impl Operation {
    pub(super) fn look_answered(&mut self, node: NodeId, ask: Ask, heard: &Heard) -> bool {
        let State::Looking(looking) = &mut self.state else {
            return false;
        };
        let look = looking.looks.get_mut(node.index());
        let Some(look) = look.filter(|look| look.missing > 0) else {
            return false;
        };
        look.missing -= 1;
        match (ask, heard) {
            (_, Heard::Other(Reply::Error(_))) => {
                look.cause.get_or_insert_with(|| heard.cause(ask.name()));
            }
            (Ask::Describe, Heard::Other(Reply::Bulk(token))) => look.token = Some(token.clone()),
            (Ask::Describe, Heard::Other(Reply::Array(entries))) => look.describe(entries),
            (Ask::Force, Heard::Other(Reply::Bulk(token))) => {
                look.was_freed = true;
                look.token = Some(token.clone());
            }
            (Ask::Force, Heard::Other(Reply::Array(entries))) => {
                if let [Reply::Integer(freed), Reply::Integer(counter), entries @ ..] = &entries[..]
                {
                    look.was_freed = *freed == 1;
                    look.counter = fencing_token(*counter);
                    look.describe(entries);
                }
            }
            (Ask::Remaining, Heard::Integer(ms)) => {
                look.remaining = u64::try_from(*ms).ok().map(Duration::from_millis);
            }
            _ => {}
        }
        true
    }
}
