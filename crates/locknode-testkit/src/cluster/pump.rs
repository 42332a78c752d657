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
use super::framing::{Framer, MESSAGE_BYTES_MAX, Message};
use super::net::{Direction, Verdict};
use super::relay::{ORPHAN_MAX, Passage, Recorded};

/// Moves the bytes of one direction.
#[derive(Debug)]
pub(crate) struct Pump<'p, R, W> {
    passage: &'p Passage,
    direction: Direction,
    /// `None` once the node that was there was killed.
    from: Option<R>,
    /// `None` once the node takes no more: the client's bytes are read only to see it leave.
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
    killed: watch::Receiver<bool>,
    /// Where answers to tapped commands are sent, and where they arrive.
    pub(crate) answers_to: Option<UnboundedSender<Vec<u8>>>,
    pub(crate) answers_from: Option<UnboundedReceiver<Vec<u8>>>,
    /// Answers that have come and wait for the replies before them.
    answers: VecDeque<Vec<u8>>,
}

/// Why a pump has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PumpEnd {
    /// The source ended and the sink knows.
    SourceEnded,
    /// The source broke or its end is of no concern to the sink, or the sink is gone.
    Gone,
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
}

impl Entry {
    /// Due at once.
    fn of(message: Message) -> Self {
        Self {
            due: Instant::now(),
            bytes: message.bytes,
            is_counted: message.is_counted,
            is_doubled: false,
            recorded: None,
        }
    }
}

impl<'p, R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Pump<'p, R, W> {
    pub(crate) fn new(passage: &'p Passage, direction: Direction, from: R, to: W) -> Self {
        Self {
            passage,
            direction,
            from: Some(from),
            to: Some(to),
            framer: Framer::of(direction),
            queue: VecDeque::new(),
            queued_bytes: 0,
            last_due: Instant::now(),
            ended_at: None,
            is_dead: false,
            killed: passage.incarnation.killed.subscribe(),
            answers_to: None,
            answers_from: None,
            answers: VecDeque::new(),
        }
    }

    /// Works until an end of the direction is gone.
    pub(crate) async fn run(mut self) -> PumpEnd {
        let (passage, is_replies) = (self.passage, self.is_replies());
        let mut changes = passage.net.changed.subscribe();
        loop {
            changes.borrow_and_update();
            let is_killed = *self.killed.borrow_and_update();
            if is_killed {
                self.leave_node();
            }
            // What waited for an answer.
            self.take();
            let now = Instant::now();
            let condition = passage.net.condition(passage.link, self.direction);
            let still_until = condition.still_until.filter(|until| *until > now);
            // A process that stands still reads nothing; what it has sent arrives.
            let is_stalled = condition.is_stalled || (!is_replies && still_until.is_some());
            let is_hopeless = is_stalled || is_killed || still_until.is_some();
            if is_replies && let Some(end) = self.deliver_answers(is_hopeless).await {
                return end;
            }
            if !is_stalled {
                if let Some(end) = self.deliver(now).await {
                    return end;
                }
                if is_killed && is_replies && self.queue.is_empty() {
                    return PumpEnd::Killed;
                }
                // What was delivered may have been what answers wait for, and they what the end waits for.
                if !self.answers.is_empty() {
                    if let Some(end) = self.deliver_answers(is_hopeless).await {
                        return end;
                    }
                    if self.answers.is_empty() {
                        continue;
                    }
                }
            }
            // The last reply that an answer had to wait for has just been delivered.
            let is_behind = passage.account().open > 0 || !self.queue.is_empty();
            if !self.answers.is_empty() && !is_behind {
                continue;
            }
            let Some((wake, may_read)) = self.outlook(now, is_stalled, still_until) else {
                return PumpEnd::Gone;
            };
            let buffer = self.framer.buffer();
            buffer.reserve(READ_BYTES);
            tokio::select! {
                biased;
                changed = changes.changed() => if changed.is_err() {
                    return PumpEnd::Gone;
                },
                _ = self.killed.changed(), if !is_killed => {}
                Some(answer) = next(&mut self.answers_from), if is_replies => {
                    self.answers.push_back(answer);
                }
                () = sleep_until(wake.unwrap_or(now)), if wake.is_some() => {}
                read = read(&mut self.from, buffer), if may_read => match read {
                    Ok(0) => if let Some(end) = self.end() {
                        return end;
                    },
                    Ok(_) => self.take(),
                    Err(_) => return PumpEnd::Gone,
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
        let is_replies = self.is_replies();
        let orphaned_at = self.ended_at.map(|at| at + ORPHAN_MAX);
        if orphaned_at.is_some_and(|at| at <= now) && !is_replies {
            return None;
        }
        let due = self.queue.front().map(|entry| entry.due);
        let due = due.filter(|_| !is_stalled);
        let waits_for_owner = !is_replies && self.passage.account().open_commands > 0;
        let glance = waits_for_owner.then(|| now + OWNER_GLANCE);
        let wakes = [due, still_until, orphaned_at, glance];
        let wake = wakes.into_iter().flatten().filter(|at| *at > now).min();
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
        while (self.is_replies() || self.passage.account().open_commands == 0)
            && let Some(message) = self.framer.next()
        {
            let mut entry = Entry::of(message);
            if (!entry.is_counted || self.is_sent(&mut entry)) && !self.is_closed() {
                self.enqueue(entry);
            }
        }
    }

    /// Whether a request or reply enters the link and is neither lost nor skipped there; if so, when it is due.
    fn is_sent(&mut self, entry: &mut Entry) -> bool {
        let (passage, is_replies) = (self.passage, self.is_replies());
        let learned = is_replies.then(|| passage.answered(&entry.bytes));
        if self.is_taken(&entry.bytes) || self.is_closed() {
            return false;
        }
        entry.recorded = passage.record_sent(self.direction, &entry.bytes, learned.flatten());
        match passage.net.verdict(passage.link, self.direction, entry.due) {
            Verdict::Due { at, is_doubled } => (entry.due, entry.is_doubled) = (at, is_doubled),
            Verdict::Skipped => return false,
            Verdict::Lost => self.is_dead = true,
        }
        passage.account().open += usize::from(!is_replies && !self.is_dead);
        !self.is_dead
    }

    /// Whether a request does not reach the link: the tap takes it, or a fault has it refused.
    fn is_taken(&self, request: &[u8]) -> bool {
        let (passage, Some(answers)) = (self.passage, &self.answers_to) else {
            return false;
        };
        let tap = passage.net.tap.as_ref();
        let is_tapped = tap.is_some_and(|tap| tap.take(passage.link, request, answers));
        let refusal = passage.net.on_link(passage.link, |link| {
            // Most links refuse nothing, and a request for them is not read.
            link.state.refusals.filter(|_| !is_tapped)?;
            link.state.take_refusal(words(request)?.first()?)
        });
        let refusal = refusal.flatten();
        for answer in refusal.iter().flat_map(|it| [it.reply(), &[]]) {
            // A connection that is gone wants no answer.
            let _ = answers.send(answer.to_vec());
        }
        let is_taken = is_tapped || refusal.is_some();
        passage.account().open_commands += usize::from(is_taken);
        is_taken
    }

    /// The source has ended.
    fn end(&mut self) -> Option<PumpEnd> {
        self.ended_at = Some(Instant::now());
        if !self.is_replies() && (self.is_closed() || !self.passage.becomes_orphan()) {
            return Some(PumpEnd::Gone);
        }
        if !self.is_closed() {
            let rest = self.framer.rest();
            self.enqueue(Entry::of(rest));
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

    /// Hands over what is due, all at once, and then the end if the source has ended.
    async fn deliver(&mut self, now: Instant) -> Option<PumpEnd> {
        let (mut out, mut requests) = (Vec::new(), 0);
        while self.queue.front().is_some_and(|entry| entry.due <= now)
            && let Some(mut entry) = self.queue.pop_front()
        {
            if entry.is_doubled {
                self.passage.send_again(entry.bytes.clone());
            }
            if let Some(recorded) = entry.recorded {
                self.passage.record_arrival(recorded);
            }
            self.queued_bytes -= entry.bytes.len();
            out.append(&mut entry.bytes);
            requests += usize::from(entry.is_counted);
        }
        if !self.is_replies() {
            self.passage.delivers(requests);
        }
        if let Some(end) = self.write(&out).await {
            return Some(end);
        }
        // Behind a lost message the client does not notice the end; otherwise it comes after the answers to the client's commands.
        let is_over = self.ended_at.is_some() && self.queue.is_empty();
        if is_over
            && !self.is_dead
            && !self.is_awaited()
            && let Some(to) = &mut self.to
        {
            let _ = to.shutdown().await;
            return Some(PumpEnd::SourceEnded);
        }
        None
    }

    /// Whether answers to tapped commands are still to come or to be delivered.
    fn is_awaited(&self) -> bool {
        let is_open = || self.passage.account().open_commands > 0;
        !self.answers.is_empty() || self.answers_from.is_some() && is_open()
    }

    /// Delivers the answers to tapped commands, once earlier requests are answered or never will be.
    async fn deliver_answers(&mut self, is_hopeless: bool) -> Option<PumpEnd> {
        while let Some(Ok(answer)) = self.answers_from.as_mut().map(UnboundedReceiver::try_recv) {
            self.answers.push_back(answer);
        }
        let (passage, has_ended) = (self.passage, self.ended_at.is_some());
        // A node that has ended the connection answers nothing more.
        let is_behind = !self.queue.is_empty() || (passage.account().open > 0 && !has_ended);
        let requests = passage.net.condition(passage.link, Direction::Requests);
        let is_over = is_hopeless || requests.is_stalled || self.is_dead || has_ended;
        if is_behind && !is_over {
            return None;
        }
        while let Some(answer) = self.answers.pop_front() {
            if answer.is_empty() {
                // The owner is done with a command.
                let mut account = passage.account();
                account.open_commands = account.open_commands.saturating_sub(1);
            } else if let Some(end) = self.write(&answer).await {
                return Some(end);
            }
        }
        None
    }

    async fn write(&mut self, bytes: &[u8]) -> Option<PumpEnd> {
        let to = self.to.as_mut()?;
        let is_written = tokio::select! {
            biased;
            written = to.write_all(bytes) => written.is_ok(),
            // The node was killed while the other end did not read: that ends now.
            Ok(()) = self.killed.changed() => {
                self.leave_node();
                return self.is_replies().then_some(PumpEnd::Killed);
            }
        };
        match self.direction {
            _ if is_written => None,
            Direction::Requests if self.ended_at.is_none() => {
                self.leave_node();
                None
            }
            _ => Some(PumpEnd::Gone),
        }
    }

    /// The node's end of the connection is closed; for the client that changes nothing yet.
    fn leave_node(&mut self) {
        match self.direction {
            Direction::Replies => self.from = None,
            Direction::Requests => {
                self.to = None;
                self.queued_bytes = 0;
                drop(mem::take(&mut self.queue));
            }
        }
    }

    fn is_replies(&self) -> bool {
        self.direction == Direction::Replies
    }

    /// Whether nothing that comes now is delivered any more.
    const fn is_closed(&self) -> bool {
        self.is_dead || self.to.is_none()
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
