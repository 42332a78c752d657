//! One direction of a connection: reads, cuts into messages, asks for their verdicts, and delivers them in order.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::command_tap::words;
use super::framing::{Framer, MESSAGE_BYTES_MAX};
use super::net::{Direction, Verdict};
use super::relay::{ORPHAN_MAX, Passage, Recorded};
use super::wire::Told;

/// Moves the bytes of one direction.
#[derive(Debug)]
pub(crate) struct Pump<'p, R, W> {
    passage: &'p Passage,
    direction: Direction,
    /// `None` once the node that was there was killed.
    from: Option<R>,
    to: Option<W>,
    framer: Framer,
    /// What is on its way.
    queue: VecDeque<Entry>,
    queued_bytes: usize,
    last_due: Instant,
    /// When the source ended.
    ended_at: Option<Instant>,
    /// A message was lost, and nothing arrives any more.
    is_dead: bool,
    /// The node takes no more: the client's bytes are read only to see it leave.
    is_sink_gone: bool,
    /// Where answers to tapped commands are sent, and where they arrive.
    answers_to: Option<UnboundedSender<Vec<u8>>>,
    answers_from: Option<UnboundedReceiver<Vec<u8>>>,
    /// Answers that have come and wait for the replies before them.
    answers: VecDeque<Vec<u8>>,
}

/// Why a pump has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PumpEnd {
    /// The source ended and the sink knows.
    SourceEnded,
    /// The source broke, or its end is of no concern to the sink.
    SourceGone,
    /// The sink is gone.
    SinkGone,
    /// The node was killed, and all that it had sent before has arrived.
    Killed,
}

#[derive(Debug)]
struct Entry {
    due: Instant,
    bytes: Vec<u8>,
    is_counted: bool,
    is_doubled: bool,
    /// Its place in the history, if there is one.
    recorded: Option<Recorded>,
    /// What it tells of a lock, if somebody records.
    told: Option<Told>,
    /// Nothing follows.
    is_end: bool,
}

impl<'p, R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Pump<'p, R, W> {
    pub(crate) fn new(passage: &'p Passage, direction: Direction, from: R, to: W) -> Self {
        Self {
            passage,
            direction,
            from: Some(from),
            to: Some(to),
            framer: match direction {
                Direction::Requests => Framer::of_requests(),
                Direction::Replies => Framer::of_replies(),
            },
            queue: VecDeque::new(),
            queued_bytes: 0,
            last_due: Instant::now(),
            ended_at: None,
            is_dead: false,
            is_sink_gone: false,
            answers_to: None,
            answers_from: None,
            answers: VecDeque::new(),
        }
    }

    /// Answers to tapped commands are sent there.
    pub(crate) fn with_tap(mut self, answers: UnboundedSender<Vec<u8>>) -> Self {
        self.answers_to = Some(answers);
        self
    }

    /// Answers to tapped commands arrive there.
    pub(crate) fn with_answers(mut self, answers: UnboundedReceiver<Vec<u8>>) -> Self {
        self.answers_from = Some(answers);
        self
    }

    /// Works until an end of the direction is gone.
    pub(crate) async fn run(mut self) -> PumpEnd {
        let is_replies = self.direction == Direction::Replies;
        let mut changes = self.passage.net.changes();
        let mut killed = self.passage.incarnation.killed();
        loop {
            changes.borrow_and_update();
            let is_killed = *killed.borrow_and_update();
            if is_killed {
                self.leave_node();
            }
            // What waited for an answer.
            self.take();
            let now = Instant::now();
            let condition = self
                .passage
                .net
                .condition(self.passage.link, self.direction);
            let still_until = condition.still_until.filter(|until| *until > now);
            // A process that stands still reads nothing; what it has sent arrives.
            let is_stalled = condition.is_stalled || (!is_replies && still_until.is_some());
            let is_hopeless = is_stalled || is_killed || still_until.is_some();
            if is_replies && let Some(end) = self.tell(is_hopeless, &mut killed).await {
                return end;
            }
            if !is_stalled {
                if let Some(end) = self.deliver(now, &mut killed).await {
                    return end;
                }
                if is_killed && is_replies && self.queue.is_empty() {
                    return PumpEnd::Killed;
                }
                // What was delivered may have been what answers wait for, and they what the end waits for.
                if is_replies && !self.answers.is_empty() {
                    if let Some(end) = self.tell(is_hopeless, &mut killed).await {
                        return end;
                    }
                    if self.answers.is_empty() {
                        continue;
                    }
                }
            }
            // The last reply that an answer had to wait for has just been delivered.
            let is_behind = self.passage.is_open() || !self.queue.is_empty();
            if is_replies && !self.answers.is_empty() && !is_behind {
                continue;
            }
            let Some((wake, may_read)) = self.outlook(now, is_stalled, still_until) else {
                return PumpEnd::SourceGone;
            };
            let buffer = self.framer.buffer();
            buffer.reserve(READ_BYTES);
            tokio::select! {
                biased;
                changed = changes.changed() => if changed.is_err() {
                    return PumpEnd::SourceGone;
                },
                _ = killed.changed(), if !is_killed => {}
                Some(answer) = next(&mut self.answers_from), if is_replies => {
                    self.answers.push_back(answer);
                }
                () = sleep_until(wake.unwrap_or(now)), if wake.is_some() => {}
                read = read(&mut self.from, buffer), if may_read => match read {
                    Ok(0) => if let Some(end) = self.end() {
                        return end;
                    },
                    Ok(_) => self.take(),
                    Err(_) => return PumpEnd::SourceGone,
                },
            }
        }
    }

    /// When something is to be done next, and whether more may be read until then; `None` when the source has been gone for
    /// so long that what it has sent is of no concern any more.
    fn outlook(
        &self,
        now: Instant,
        is_stalled: bool,
        still_until: Option<Instant>,
    ) -> Option<(Option<Instant>, bool)> {
        let is_replies = self.direction == Direction::Replies;
        let orphaned_at = self.ended_at.map(|at| at + ORPHAN_MAX);
        if orphaned_at.is_some_and(|at| at <= now) && !is_replies {
            return None;
        }
        let due = self.queue.front().map(|entry| entry.due);
        let due = due.filter(|_| !is_stalled);
        let waits_for_owner = !is_replies && self.passage.open_commands() > 0;
        let glance = waits_for_owner.then(|| now + OWNER_GLANCE);
        let wakes = [due, still_until, orphaned_at, glance]
            .into_iter()
            .flatten();
        let wake = wakes.filter(|at| *at > now).min();
        let may_read = self.ended_at.is_none()
            && self.queued_bytes < HELD_BYTES_MAX
            && !waits_for_owner
            && self.from.is_some()
            && !(is_replies && still_until.is_some());
        Some((wake, may_read))
    }

    /// Judges the messages that have become whole. What follows a tapped command waits for its answer, so that
    /// replies keep the order of the requests.
    fn take(&mut self) {
        let is_replies = self.direction == Direction::Replies;
        while (is_replies || self.passage.open_commands() == 0)
            && let Some(message) = self.framer.next()
        {
            let mut told = None;
            if self.direction == Direction::Replies && message.is_counted {
                self.passage.answered();
                told = self.passage.record_reply(&message.bytes);
            }
            if message.is_counted
                && (self.is_tapped(&message.bytes) || self.is_refused(&message.bytes))
            {
                continue;
            }
            if self.is_dead || self.is_sink_gone {
                continue;
            }
            let now = Instant::now();
            let recorded = match message.is_counted {
                true => self.passage.record_sent(self.direction, &message.bytes),
                false => None,
            };
            let (due, is_doubled) = match message.is_counted {
                false => (now, false),
                true => match self.verdict(now) {
                    Verdict::Due { at, is_doubled } => (at, is_doubled),
                    Verdict::Skipped => continue,
                    Verdict::Lost => {
                        self.is_dead = true;
                        continue;
                    }
                },
            };
            if self.direction == Direction::Requests && message.is_counted {
                self.passage.opens();
            }
            self.enqueue(Entry {
                due,
                bytes: message.bytes,
                is_counted: message.is_counted,
                is_doubled,
                recorded,
                told,
                is_end: false,
            });
        }
    }

    fn verdict(&self, now: Instant) -> Verdict {
        let passage = self.passage;
        passage.net.verdict(passage.link, self.direction, now)
    }

    /// The source has ended.
    fn end(&mut self) -> Option<PumpEnd> {
        let now = Instant::now();
        self.ended_at = Some(now);
        let bytes = self.framer.rest();
        match self.direction {
            Direction::Requests if self.is_dead || self.is_sink_gone => {
                return Some(PumpEnd::SourceGone);
            }
            Direction::Requests if !self.passage.becomes_orphan() => {
                return Some(PumpEnd::SourceGone);
            }
            // The client is not told of anything any more.
            Direction::Replies if self.is_dead => {}
            _ => self.enqueue(Entry {
                due: now,
                bytes,
                is_counted: false,
                is_doubled: false,
                recorded: None,
                told: None,
                is_end: true,
            }),
        }
        None
    }

    /// Nothing overtakes what was sent before on the same connection.
    fn enqueue(&mut self, mut entry: Entry) {
        self.last_due = self.last_due.max(entry.due);
        entry.due = self.last_due;
        self.queued_bytes += entry.bytes.len();
        self.queue.push_back(entry);
    }

    /// Hands over what is due, all at once.
    async fn deliver(
        &mut self,
        now: Instant,
        killed: &mut watch::Receiver<bool>,
    ) -> Option<PumpEnd> {
        let (mut out, mut requests, mut is_end) = (Vec::new(), 0, false);
        // The end comes after the answers to tapped commands.
        let is_awaited = self.is_awaited();
        let is_due = |entry: &&mut Entry| entry.due <= now && !(entry.is_end && is_awaited);
        while let Some(entry) = self.queue.front_mut().filter(is_due) {
            if entry.is_doubled {
                self.passage.say_again(entry.bytes.clone());
            }
            if let Some(recorded) = entry.recorded.take() {
                self.passage.record_arrival(recorded);
            }
            if let Some(told) = entry.told.take() {
                self.passage.record_told(&told);
            }
            self.queued_bytes -= entry.bytes.len();
            out.append(&mut entry.bytes);
            requests += usize::from(entry.is_counted);
            is_end |= entry.is_end;
            self.queue.pop_front();
        }
        let is_replies = self.direction == Direction::Replies;
        if !is_replies {
            self.passage.asked(requests);
        }
        let Some(to) = &mut self.to else {
            return None;
        };
        if !out.is_empty() {
            let written = tokio::select! {
                biased;
                written = to.write_all(&out) => written,
                // The node was killed while the other end did not read: that ends now.
                Ok(()) = killed.changed() => {
                    self.leave_node();
                    return is_replies.then_some(PumpEnd::Killed);
                }
            };
            if written.is_err() {
                return self.lose_sink();
            }
        }
        if is_end {
            let _ = to.shutdown().await;
            return Some(PumpEnd::SourceEnded);
        }
        None
    }

    /// Whether the tap takes a request.
    fn is_tapped(&self, request: &[u8]) -> bool {
        let (Some(tap), Some(answers)) = (&self.passage.net.tap, &self.answers_to) else {
            return false;
        };
        let is_taken = tap.take(self.passage.link, request, answers);
        if is_taken {
            self.passage.begins_command();
        }
        is_taken
    }

    /// Refuses a request as a fault of the link has it, if it is refused.
    fn is_refused(&self, request: &[u8]) -> bool {
        let Some(answers) = &self.answers_to else {
            return false;
        };
        let refusal = self.passage.net.on_link(self.passage.link, |link| {
            // Most links refuse nothing, and a request for them is not read.
            link.state.refusals?;
            link.state.take_refusal(words(request)?.first()?)
        });
        let Some(refusal) = refusal.flatten() else {
            return false;
        };
        self.passage.begins_command();
        for answer in [refusal.reply(), &[]] {
            // A connection that is gone wants no answer.
            let _ = answers.send(answer.to_vec());
        }
        true
    }

    /// Whether answers to tapped commands are still to come or to be delivered.
    fn is_awaited(&self) -> bool {
        !self.answers.is_empty() || self.answers_from.is_some() && self.passage.open_commands() > 0
    }

    /// Delivers the answers to tapped commands, once earlier requests are answered or never will be.
    async fn tell(
        &mut self,
        is_hopeless: bool,
        killed: &mut watch::Receiver<bool>,
    ) -> Option<PumpEnd> {
        while let Some(Ok(answer)) = self.answers_from.as_mut().map(UnboundedReceiver::try_recv) {
            self.answers.push_back(answer);
        }
        let passage = self.passage;
        let has_more = self.queue.front().is_some_and(|entry| !entry.is_end);
        // A node that has ended the connection answers nothing more.
        let is_behind = has_more || (passage.is_open() && self.ended_at.is_none());
        let is_cut = passage
            .net
            .condition(passage.link, Direction::Requests)
            .is_stalled;
        let is_over = is_hopeless || is_cut || self.is_dead || self.ended_at.is_some();
        if is_behind && !is_over {
            return None;
        }
        let to = self.to.as_mut()?;
        while let Some(answer) = self.answers.pop_front() {
            // The owner is done with a command.
            if answer.is_empty() {
                passage.ends_command();
                continue;
            }
            let is_told = tokio::select! {
                biased;
                written = to.write_all(&answer) => written.is_ok(),
                Ok(()) = killed.changed() => return Some(PumpEnd::Killed),
            };
            if !is_told {
                return Some(PumpEnd::SinkGone);
            }
        }
        None
    }

    fn lose_sink(&mut self) -> Option<PumpEnd> {
        match self.direction {
            Direction::Replies => Some(PumpEnd::SinkGone),
            Direction::Requests if self.ended_at.is_some() => Some(PumpEnd::SourceGone),
            Direction::Requests => {
                self.leave_node();
                None
            }
        }
    }

    /// The node's end of the connection is closed; for the client that changes nothing yet.
    fn leave_node(&mut self) {
        match self.direction {
            Direction::Replies => self.from = None,
            Direction::Requests => {
                self.to = None;
                self.is_sink_gone = true;
                self.queued_bytes = 0;
                drop(mem::take(&mut self.queue));
            }
        }
    }
}

async fn read<R: AsyncRead + Unpin>(
    from: &mut Option<R>,
    buffer: &mut Vec<u8>,
) -> io::Result<usize> {
    match from {
        Some(from) => from.read_buf(buffer).await,
        None => std::future::pending().await,
    }
}

/// The next answer; never when there is no tap.
async fn next(answers: &mut Option<UnboundedReceiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match answers {
        Some(answers) => answers.recv().await,
        None => None,
    }
}

/// Between two looks for the answer to a command.
const OWNER_GLANCE: Duration = Duration::from_millis(1);

/// Read at once: the commands of some hundred locks.
const READ_BYTES: usize = 16 << 10;

/// More than this is not taken from a connection whose messages are held back or late: its sender has to wait, as when the
/// buffers of a network are full. Room for the largest message that is cut out whole.
const HELD_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX;
