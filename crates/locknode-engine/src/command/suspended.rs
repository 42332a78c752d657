//! A script that takes long, between two turns of its connection.
//!
//! ```text
//!  EVAL, 5 ms --slow--> undone, begins again on a thread of its own; KEYS are held
//!    +--> turn: its changes into the table, its commands, its changes out --> Flow::Paused, and again
//!    +--> end: commit or undo, reply, and wake those who wait
//! ```
//!
//! The connection offers its command again whenever the script needs it. Between turns the table is
//! as before the script. Each key that the script has used is held until its end, so that what it
//! did is as if done at once at that moment. When the connection is closed, the script is ended and
//! has done nothing.

use std::sync::Arc;
use std::time::Duration;

use locknode_resp::Encoder;

use super::changes::Journal;
use super::context::{Context, Flow};
use super::inputs::Inputs;
use super::scripting::{Work, conclude, wait};
use crate::client::Clients;
use crate::guard::Need;
use crate::holds::{Hold, Holds, LongScript};
use crate::script::{Caller, Event, Running};
use crate::scripts::{Script, Sha};
use crate::time::Time;

/// See the module docs.
#[derive(Debug)]
pub(crate) struct Suspended {
    running: Running,
    sha: Sha,
    work: Work,
    /// While it is suspended.
    journal: Option<Box<Journal>>,
    /// What the replies of its commands depend on.
    need: Need,
    hold: Arc<Hold>,
    holds: Arc<Holds>,
    clients: Arc<Clients>,
}

impl Suspended {
    /// Lets a script that was undone begin again; returns `false` when it cannot.
    pub(super) fn begin(
        context: &mut Context<'_, '_>,
        script: &Arc<Script>,
        call: &Inputs<'_, '_>,
        work: Work,
    ) -> bool {
        let (services, now) = (context.services, context.moment.time);
        if context.journal.is_some() {
            return false;
        }
        context.session.begin_waiting(now);
        context.flow = Flow::Paused;
        if services.holds.is_full() {
            context.session.wait_for_scripts(&services.holds, None, now);
            return true;
        }
        let limit_ms = services.settings.read(|options| options.script_time_limit);
        let time_max = (limit_ms != 0).then(|| Duration::from_millis(limit_ms));
        let client = Arc::clone(&context.session.client);
        let machine = services.scripts.machine();
        let wake = Box::new(move || client.wake());
        let program = &script.program;
        let running = program.start(machine, call.keys, call.argv, time_max, wake);
        let Some(running) = running else {
            context.flow = Flow::Continue;
            return false;
        };
        let (id, db) = (context.session.client.id, context.session.db);
        let hold = services.holds.add(id, running.signal());
        call.keys.iter().for_each(|key| hold.take(db, key));
        context.session.script = Some(Box::new(Self {
            running,
            sha: script.sha,
            work: work.restart(db, Arc::clone(&hold)),
            journal: Some(Journal::suspended()),
            need: Need::NONE,
            hold,
            holds: Arc::clone(&services.holds),
            clients: Arc::clone(&services.clients),
        }));
        true
    }

    /// Takes a turn.
    pub(super) fn go_on(
        mut self: Box<Self>,
        context: &mut Context<'_, '_>,
        reply: &mut Encoder<'_>,
    ) {
        if let Some(event) = self.running.next_event(Duration::ZERO)
            && let Some(journal) = self.journal.take()
        {
            context.space.lock_all();
            journal.resume(context);
            if self.serve(event, context, reply) {
                return;
            }
            self.journal = Journal::suspend(context);
            context.needs.end_command();
            self.need = self.need.and(context.needs.need);
        }
        context.session.begin_waiting(context.moment.time);
        context.session.script = Some(self);
        context.flow = Flow::Paused;
    }

    /// Serves the script until it does not need its connection for a while; returns whether it has
    /// ended.
    fn serve(
        &mut self,
        mut event: Event,
        context: &mut Context<'_, '_>,
        reply: &mut Encoder<'_>,
    ) -> bool {
        let now = context.services.scripts.machine().stopwatch();
        let begin = now.map(|now| now());
        loop {
            match event {
                Event::Call(words, protocol) => {
                    let words: Vec<&[u8]> = words.iter().map(|word| &**word).collect();
                    let mut bytes = Vec::new();
                    self.work
                        .with(context, |caller| caller.call(&words, protocol, &mut bytes));
                    if self.work.is_blocked {
                        wait(context, reply);
                        return true;
                    }
                    self.running.reply(bytes);
                }
                Event::Done(result) => {
                    context.needs.need = context.needs.need.and(self.need);
                    conclude(context, self.sha, &self.work, result, reply);
                    return true;
                }
            }
            let is_over = now
                .zip(begin)
                .is_none_or(|(now, begin)| now() - begin > TURN_MAX);
            let next = if is_over {
                None
            } else {
                self.running.next_event(PATIENCE)
            };
            match next {
                Some(next) => event = next,
                None => return false,
            }
        }
    }
}

impl LongScript for Suspended {
    /// Ends the script at its next look at the limits.
    fn stop(&self) {
        self.running.signal().stop();
    }

    /// Returns until when the connection need not offer its command again.
    fn wait_end(&self, now: Time) -> Option<Time> {
        let is_due = self.running.signal().has_event();
        (!is_due).then(|| now.saturating_add(AGAIN))
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        self.holds.remove(&self.hold);
        self.clients.wake_waiting();
    }
}

/// How long a turn takes at most, with others waiting. The script may wake its connection for some
/// sixty turns before the runtime looks for input on others.
const TURN_MAX: Duration = Duration::from_micros(300);

/// How long a turn waits for the script's next command: a script with many of them would otherwise
/// wait for a turn each time.
const PATIENCE: Duration = Duration::from_micros(100);

/// When the connection looks again; the script wakes it.
const AGAIN: Duration = Duration::from_secs(1);
