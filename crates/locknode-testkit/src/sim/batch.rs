//! What one connection has sent, executed in one go as the server does: at one moment, with one write of all replies, after
//! one wait for the disk.

use locknode_resp::{Decoder, Limits};
use smallvec::SmallVec;

use crate::bug::Bug;
use crate::history::Event as Told;
use crate::sim::event::Event;
use crate::sim::link::{Claims, Conn, NodeEnd, PendingReplies};
use crate::sim::node::Delivery;
use crate::sim::world::World;

/// The words of a request.
#[derive(Debug)]
pub(crate) enum Request<'i> {
    Short([&'i [u8]; SHORT], usize),
    Long(Vec<Vec<u8>>),
}

/// Whole requests, in order.
pub(crate) type Requests<'i> = SmallVec<[Request<'i>; 1]>;

impl<'i> Request<'i> {
    /// Reads whole requests, `most` at most, and returns how many bytes they are; `None` when the
    /// input is not the protocol.
    pub(crate) fn read(
        decoder: &mut Decoder,
        input: &'i [u8],
        most: usize,
        requests: &mut Requests<'i>,
    ) -> Option<usize> {
        let limits = Limits::default();
        let mut consumed = 0;
        while requests.len() < most {
            let rest = input.get(consumed..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            requests.push(Self::Short([&[]; SHORT], 0));
            if let Some(Self::Short(words, count)) = requests.last_mut()
                && let Some((short, len)) = decoder.decode_short(rest, words)
            {
                *count = short.len();
                consumed += len;
                continue;
            }
            requests.pop();
            let Some(frame) = decoder.decode(rest, &limits, true).ok()? else {
                break;
            };
            let words = frame.args().map(<[u8]>::to_vec).collect();
            consumed += frame.consumed();
            requests.push(Self::Long(words));
        }
        Some(consumed)
    }
}

impl Request<'_> {
    /// Does something with the words.
    pub(crate) fn with<T>(&self, what: impl FnOnce(&[&[u8]]) -> T) -> T {
        match self {
            Self::Short(words, count) => what(words.get(..*count).unwrap_or_default()),
            Self::Long(words) => {
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                what(&words)
            }
        }
    }
}

impl World {
    /// Refuses the request that was read, if a fault of the link says so. Only one is read then.
    pub(crate) fn refuses(&mut self, conn: u32, requests: &Requests<'_>) -> bool {
        let Conn { client, node, .. } = self.conns[conn];
        let link = &mut self.links[client][node];
        if link.conn != Some(conn) {
            return false;
        }
        let name = |args: &[&[u8]]| args.first().and_then(|name| link.state.take_refusal(name));
        let Some(refusal) = requests.first().and_then(|request| request.with(name)) else {
            return false;
        };
        let why = refusal.name();
        self.recorder.counters.bump("refused-by-fault");
        self.tell(Told::Refused { node, client, why });
        self.send_reply(conn, refusal.reply().to_vec());
        true
    }

    /// Executes requests in one go. The replies are sent, or wait at this end of the connection; false when the end is
    /// gone.
    pub(crate) fn execute(
        &mut self,
        conn: u32,
        end: &mut NodeEnd,
        requests: &[Request<'_>],
    ) -> bool {
        let Conn {
            client,
            node,
            is_aside,
            ..
        } = self.conns[conn];
        let mut out = std::mem::take(&mut self.out);
        let mut ends = std::mem::take(&mut self.ends);
        out.clear();
        ends.clear();
        let at = &mut self.nodes[node];
        let incarnation = at.incarnation;
        let session = (&mut end.session, is_aside);
        let need = at.execute(self.now, session, requests, &mut out, &mut ends);
        if let Some(lag) = self.scenario.setup.replica_lag {
            for request in requests {
                let args = request.with(|args| args.iter().map(|arg| arg.to_vec()).collect());
                self.push(self.now + lag, Event::Replicated { node, args });
            }
        }
        let (mut claims, mut begin) = (Claims::new(), 0);
        self.held_hooks = Some(Vec::new());
        for (request, reply_end) in requests.iter().zip(&ends) {
            let reply = out.get(begin..*reply_end).unwrap_or_default();
            begin = *reply_end;
            let who = (client, node, is_aside);
            let manner = &mut end.manner;
            request.with(|args| self.observe(who, manner, (args, reply), &mut claims));
        }
        let is_read = !claims.is_empty() && claims.iter().all(|claim| claim.shown.is_some());
        let is_hasty = is_read && self.scenario.setup.bug == Some(Bug::ReadsNotAwaited);
        let is_logged = claims
            .iter()
            .any(|claim| claim.is_logged && claim.shown.is_none());
        // Steps that waited for this come when all is done. One may end the process, and another start it again.
        for hook in self.held_hooks.take().unwrap_or_default() {
            self.hook(hook);
        }
        let mut bytes = self.buffers.take();
        bytes.extend_from_slice(&out);
        (self.out, self.ends) = (out, ends);
        let at = &self.nodes[node];
        if !at.is_up() || at.incarnation != incarnation {
            return false;
        }
        // A process that was stopped by what waited for the grant says nothing until it goes on.
        let delivery = if self.is_stopped(node) {
            Delivery::Later
        } else if is_hasty {
            Delivery::Now
        } else {
            at.delivery(&need, is_logged)
        };
        match delivery {
            Delivery::Now => {
                for claim in &claims {
                    self.leaves(node, client, false, claim);
                }
                self.send_reply(conn, bytes);
            }
            Delivery::Later => {
                self.recorder.counters.bump("reply-waits-for-disk");
                if requests.len() > 1 {
                    self.recorder.counters.bump("replies-wait-together");
                }
                end.pending.push_back(PendingReplies {
                    need,
                    is_logged,
                    bytes,
                    claims,
                });
            }
            Delivery::Never => {
                self.recorder.counters.bump("reply-lost-to-disk");
                for claim in &claims {
                    self.never_leaves(node, client, claim);
                }
                self.hang_up(conn);
            }
        }
        delivery != Delivery::Never
    }
}

/// The words of all requests that clients usually send.
const SHORT: usize = 9;
