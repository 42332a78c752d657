//! What is asked of a node, how that is written, and what its reply says.

use locknode_resp::{Reply, encode_command};
use redlock_proto::Time;

use crate::bug::Bug;
use crate::sim::notice::Handle;
use crate::sim::plain::lock::Lock;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Acquire,
    /// Whose the key is, after a refusal.
    Look,
    /// To accept this fencing token.
    Fence(u64),
    Extend,
    /// To set a key that could not be extended.
    SetAgain,
    Release,
}

/// A request without reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) lock: Handle,
    pub(super) round: u32,
    pub(super) what: What,
    /// Until when the node has time to reply.
    pub(super) deadline: Time,
}

/// A request to be written.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) what: What,
    pub(super) lock: &'a Lock,
    /// The counter that this node told with its grant.
    pub(super) grant: u64,
    pub(super) bug: Option<Bug>,
}

/// What a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Done; with the counter, where there is one.
    Yes(u64),
    No,
    /// The node takes no part: `LOADING` and other errors, or what is no reply to this request.
    Failed,
}

impl Request<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (key, token) = (&*self.lock.terms.key, &self.lock.token[..]);
        let ttl = u64::try_from(self.lock.ttl.as_millis()).unwrap_or(u64::MAX);
        let [mut digits, mut grant, mut counter] = [itoa::Buffer::new(); 3];
        let ttl = digits.format(ttl).as_bytes();
        match self.what {
            What::Acquire => encode_command(out, &[b"LOCK.ACQUIRE", key, token, ttl]),
            What::Look => encode_command(out, &[b"LOCK.GET", key]),
            What::Fence(fence) => {
                let (grant, fence) = (grant.format(self.grant), counter.format(fence));
                let words = [
                    b"LOCK.FENCE",
                    key,
                    token,
                    grant.as_bytes(),
                    fence.as_bytes(),
                ];
                encode_command(out, &words);
            }
            What::Extend if self.bug == Some(Bug::ExtendWithoutCompare) => {
                encode_command(out, &[b"PEXPIRE", key, ttl]);
            }
            What::Extend => encode_command(out, &[b"LOCK.EXTEND", key, token, ttl]),
            What::SetAgain => encode_command(out, &[b"SET", key, token, b"NX", b"PX", ttl]),
            What::Release if self.bug == Some(Bug::ReleaseWithoutCompare) => {
                encode_command(out, &[b"DEL", key]);
            }
            What::Release => encode_command(out, &[b"LOCK.RELEASE", key, token]),
        }
    }
}

impl Answer {
    /// What the reply to a request says to the holder of this token.
    pub(super) fn of(what: What, reply: &Reply, own: &[u8]) -> Self {
        match (what, reply) {
            (What::Acquire, Reply::Array(parts)) => match parts[..] {
                [Reply::Integer(1), Reply::Integer(fence), _] => Self::counted(fence),
                [Reply::Integer(0), _, _] => Self::No,
                _ => Self::Failed,
            },
            (What::Look, Reply::Array(parts)) => match &parts[..] {
                [Reply::Bulk(token), _, Reply::Integer(grant), _] if token == own => {
                    Self::counted(*grant)
                }
                _ => Self::No,
            },
            (What::Look, Reply::Null) => Self::No,
            (What::Fence(_) | What::Extend | What::Release, Reply::Integer(1)) => Self::Yes(0),
            (What::Fence(_) | What::Extend | What::Release, Reply::Integer(0)) => Self::No,
            (What::SetAgain, Reply::Simple(_)) => Self::Yes(0),
            (What::SetAgain, Reply::Null) => Self::No,
            _ => Self::Failed,
        }
    }

    fn counted(fence: i64) -> Self {
        u64::try_from(fence).map_or(Self::Failed, Self::Yes)
    }
}

/// 20 hexadecimal digits: 80 random bits are unique among all attempts of any number of runs, and still readable in a
/// timeline.
pub(super) const TOKEN_LEN: usize = 20;
