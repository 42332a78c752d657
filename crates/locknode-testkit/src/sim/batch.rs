//! What one connection has sent, executed in one go as the server does: at one moment, with one write of all replies, after
//! one wait for the disk.

use locknode_engine::Session;
use locknode_resp::{Decoder, Limits};
use smallvec::SmallVec;

use crate::bug::Bug;
use crate::history::Event as Told;
use crate::sim::link::{Covers, Withheld};
use crate::sim::node::{Fate, SimNode};
use crate::sim::reference::Manner;
use crate::sim::world::{Event, World};

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
    pub(crate) fn refuses(
        &mut self,
        conn: u32,
        client: u8,
        node: u8,
        requests: &Requests<'_>,
    ) -> bool {
        let link = self.link_mut(client, node);
        let Some(link) = link.filter(|link| link.conn == Some(conn)) else {
            return false;
        };
        let name = |args: &[&[u8]]| args.first().and_then(|name| link.state.take_refusal(name));
        let Some(refusal) = requests.first().and_then(|request| request.with(name)) else {
            return false;
        };
        let why = refusal.name();
        self.recorder.counters.bump("refused-by-fault");
        let told = Told::Refused { node, client, why };
        self.recorder.push(self.now, told);
        self.send_reply(conn, refusal.reply().to_vec());
        true
    }

    /// Executes requests in one go; what is withheld then, unless this end of the connection is gone.
    pub(crate) fn execute(
        &mut self,
        conn: u32,
        (client, node): (u8, u8),
        (session, manner): (&mut Session, &mut Manner),
        requests: &[Request<'_>],
    ) -> Result<Option<Withheld>, Gone> {
        let is_aside = self.conn(conn).is_some_and(|conn| conn.is_aside);
        let now = self.now;
        let mut out = std::mem::take(&mut self.out);
        let mut ends = std::mem::take(&mut self.ends);
        out.clear();
        ends.clear();
        let Some(at) = self.nodes.get_mut(usize::from(node)) else {
            return Err(Gone);
        };
        let incarnation = at.incarnation;
        let need = at.execute(now, (session, is_aside), requests, &mut out, &mut ends);
        if let Some(lag) = self.scenario.setup.replica_lag {
            for request in requests {
                let args = request.with(|args| args.iter().map(|arg| arg.to_vec()).collect());
                self.push(now + lag, Event::Replicated { node, args });
            }
        }
        let (mut covers, mut begin) = (Covers::new(), 0);
        self.held_hooks = Some(Vec::new());
        for (request, end) in requests.iter().zip(&ends) {
            let reply = out.get(begin..*end).unwrap_or_default();
            begin = *end;
            let who = (client, node, is_aside);
            request.with(|args| self.observe(who, manner, (args, reply), &mut covers));
        }
        let is_read = !covers.is_empty() && covers.iter().all(|cover| cover.shown.is_some());
        let is_hasty = is_read && self.scenario.setup.bug == Some(Bug::ReadsNotAwaited);
        let is_logged = covers
            .iter()
            .any(|cover| cover.is_logged && cover.shown.is_none());
        // Steps that waited for this come when all is done. One may end the process, and another start it again.
        for hook in self.held_hooks.take().unwrap_or_default() {
            self.hook(hook);
        }
        let is_same = |at: &&SimNode| at.run.is_some() && at.incarnation == incarnation;
        let mut bytes = self.buffers.take();
        bytes.extend_from_slice(&out);
        (self.out, self.ends) = (out, ends);
        let Some(at) = self.nodes.get(usize::from(node)).filter(is_same) else {
            return Err(Gone);
        };
        // A process that was stopped by what waited for the grant says nothing until it goes on.
        let fate = match self.is_stopped(node) {
            true => Fate::Wait,
            false if is_hasty => Fate::Leave,
            false => at.fate(&need, is_logged),
        };
        match fate {
            Fate::Leave => {
                for cover in &covers {
                    self.leaves(node, client, false, cover);
                }
                self.send_reply(conn, bytes);
                Ok(None)
            }
            Fate::Wait => {
                self.recorder.counters.bump("reply-waits-for-disk");
                if requests.len() > 1 {
                    self.recorder.counters.bump("replies-wait-together");
                }
                Ok(Some(Withheld {
                    need,
                    is_logged,
                    bytes,
                    covers,
                }))
            }
            Fate::Lost => {
                self.recorder.counters.bump("reply-lost-to-disk");
                for cover in &covers {
                    self.never_leaves(node, client, cover);
                }
                self.hang_up(conn);
                Err(Gone)
            }
        }
    }
}

/// This end of the connection is gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone;

/// The words of all requests that clients usually send.
const SHORT: usize = 9;
