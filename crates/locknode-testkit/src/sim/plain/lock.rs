//! One lock act: what is wanted, and how far it has come.

use std::time::Duration;

use locknode_resp::encode_command;
use redlock_proto::Time;

use crate::bug::Bug;
use crate::sim::notice::Handle;
use crate::sim::plain::PlainTerms;
use crate::sim::plain::request::{Change, Form, What};
use crate::sim::plain::round::Round;

/// One lock act.
#[derive(Clone, Debug)]
pub(super) struct Lock {
    pub(super) handle: Handle,
    pub(super) terms: PlainTerms,
    pub(super) token: String,
    pub(super) state: State,
    /// The round that runs, or ran last.
    pub(super) round: Round,
    /// How often it was extended.
    extensions: u32,
    /// The TTL that it asks for.
    pub(super) ttl: Duration,
    /// Attempts so far.
    pub(super) tries: u32,
    /// The moment from which on it is not held, once it is.
    pub(super) valid_until: Time,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The nodes were asked for the lock.
    Acquiring,
    /// A majority granted it; those behind were asked to accept the fencing token.
    WritingBack { fence: u64 },
    /// The attempt failed, and the nodes were asked to release what they may have granted.
    Undoing { why: &'static str },
    /// Another attempt is to come.
    Pausing { until: Time },
    /// It is held.
    Held { is_extending: bool },
    /// It was held, and is not any more.
    Lost,
    /// The nodes were asked to release it.
    Releasing,
    /// It failed or was released, and is to be forgotten.
    Over,
}

impl State {
    /// Whether the reply to such a request says something now.
    pub(super) fn awaits(self, what: What) -> bool {
        let is_step = matches!(what, What::Watch | What::See | What::Commit);
        match self {
            Self::Acquiring => is_step || matches!(what, What::Acquire | What::Look),
            Self::WritingBack { .. } => matches!(what, What::Acquire | What::Look | What::Fence(_)),
            Self::Held { is_extending } => {
                is_extending && (is_step || matches!(what, What::Extend | What::SetAgain))
            }
            Self::Undoing { .. } | Self::Releasing => is_step || what == What::Release,
            Self::Pausing { .. } | Self::Lost | Self::Over => false,
        }
    }
}

impl Lock {
    pub(super) fn new(handle: Handle, terms: PlainTerms) -> Self {
        Self {
            handle,
            ttl: whole_millis(terms.ttl),
            terms,
            token: String::new(),
            state: State::Acquiring,
            round: Round::default(),
            extensions: 0,
            tries: 0,
            valid_until: Time::ZERO,
        }
    }

    /// It is about to be extended.
    pub(super) fn count_extension(&mut self) {
        self.extensions += 1;
    }

    /// What its round is to do to a hash: a holder acquires it once more, renews it and releases the inner lock in turn.
    pub(super) fn change(&self) -> Change {
        match self.state {
            State::Undoing { .. } | State::Releasing => Change::Free,
            State::Held { .. } => match self.extensions % 3 {
                1 => Change::Enter,
                2 => Change::Renew,
                _ => Change::Leave,
            },
            _ => Change::Take,
        }
    }

    /// The request to a node.
    pub(super) fn request(&self, what: What, node: u8, form: Form, bug: Option<Bug>) -> Vec<u8> {
        let (key, token) = (&*self.terms.key, self.token.as_bytes());
        let ttl = self.ttl.as_millis().to_string();
        let ttl = ttl.as_bytes();
        let mut out = Vec::new();
        if form != Form::Token {
            self.hash_request(&mut out, what, node, bug);
            return out;
        }
        let mut write = |words: &[&[u8]]| encode_command(&mut out, words);
        match what {
            What::Acquire => write(&[b"LOCK.ACQUIRE", key, token, ttl]),
            What::Look => write(&[b"LOCK.GET", key]),
            What::Fence(fence) => {
                let (grant, fence) = (self.round.fence(node).to_string(), fence.to_string());
                let (grant, fence) = (grant.as_bytes(), fence.as_bytes());
                write(&[b"LOCK.FENCE", key, token, grant, fence]);
            }
            What::Extend if bug == Some(Bug::ExtendWithoutCompare) => {
                write(&[b"PEXPIRE", key, ttl]);
            }
            What::Extend => write(&[b"LOCK.EXTEND", key, token, ttl]),
            What::SetAgain => write(&[b"SET", key, token, b"NX", b"PX", ttl]),
            What::Release if bug == Some(Bug::ReleaseWithoutCompare) => write(&[b"DEL", key]),
            What::Release => write(&[b"LOCK.RELEASE", key, token]),
            // Of transactions, and those are of hashes.
            What::Watch | What::See | What::Commit | What::Queued | What::Unwatch => {}
        }
        out
    }
}

/// What the wire can say of a span.
pub(super) fn whole_millis(span: Duration) -> Duration {
    Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}
