//! A command whose time is taken, that may take long, or that runs while others look on or a script is
//! suspended.

#[cfg(feature = "compat")]
use locknode_resp::Encoder;

use super::Batch;
#[cfg(feature = "compat")]
use crate::command::refusal;
use crate::command::{Flow, Spec, secrets};
use crate::command_id::CommandId;
#[cfg(feature = "compat")]
use crate::flags::Flags;
#[cfg(feature = "compat")]
use crate::notifications::DELIVERIES_MAX;
use crate::ran::Ran;
use crate::session::Session;

impl Batch<'_> {
    /// Returns whether a command is not simply run. One condition for all reasons, so that most
    /// commands pay for one branch.
    #[inline]
    pub(super) fn is_watched(&self, spec: &Spec) -> bool {
        let services = &self.engine.services;
        services.timings.times(self.weight, spec.flags)
            | !spec.is_quick()
            | services.observers.are_there()
            | services.holds.are_there()
    }

    /// Like [`Batch::run`], and takes its time.
    #[cold]
    pub(super) fn run_watched(
        &mut self,
        session: &mut Session,
        id: CommandId,
        spec: &'static Spec,
        args: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> (Flow, bool) {
        let services = &self.engine.services;
        // A suspended script goes on.
        if session.began.is_none() {
            session.began = services.timings.begin(self.weight, spec.flags);
        }
        let outcome = if services.holds.are_there() {
            self.run_beside_scripts(session, id, spec, args, out)
        } else {
            self.run_apart(session, id, spec, args, out)
        };
        if outcome.0 != Flow::Paused
            && let Some(began) = session.began.take()
        {
            let is_timed_always = std::mem::take(&mut session.is_timed_always);
            let ran = Ran {
                id,
                flags: spec.flags,
                args,
                secrets: secrets::of(spec, args),
                client: session.client(),
                wall: self.moment.wall,
                weight: if is_timed_always { 1 } else { self.weight },
            };
            services.timings.end(began, &ran, &services.settings);
        }
        outcome
    }

    /// [`Batch::run`] for those who watch the command; one that may take long runs when its turn comes.
    #[cold]
    #[inline(never)]
    pub(super) fn run_apart(
        &mut self,
        session: &mut Session,
        id: CommandId,
        spec: &'static Spec,
        args: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> (Flow, bool) {
        let services = &self.engine.services;
        #[cfg(feature = "compat")]
        if spec.flags.has(Flags::WRITE)
            && services.observers.notifications.is_storm(args.len())
            && services
                .observers
                .notifications
                .is_storm(spec.keys.of(args).count())
        {
            too_many_events(&mut Encoder::new(out, session.protocol));
            services.counters.note_rejected(id);
            return (Flow::Continue, true);
        }
        let turn = if !spec.is_quick() {
            let turn = services.turns.begin(&mut session.place);
            if turn.is_none() {
                session.begin_waiting_for_turn();
                return (Flow::Paused, false);
            }
            turn
        } else if services.observers.are_there() {
            services.turns.begin_short()
        } else {
            None
        };
        let (flow, has_failed) = self.run(session, id, spec, args, out);
        if session.search.is_some()
            && let Some(turn) = turn
        {
            services.turns.end_part(turn, &mut session.place);
        } else if flow != Flow::Paused && turn.is_some_and(|turn| services.turns.end(turn)) {
            let is_done = flow == Flow::Continue;
            return (if is_done { Flow::Yield } else { flow }, has_failed);
        }
        (flow, has_failed)
    }
}

/// Refuses a command whose keyspace events are more messages than others can wait for.
#[cfg(feature = "compat")]
#[cold]
fn too_many_events(reply: &mut Encoder<'_>) {
    let max = DELIVERIES_MAX;
    refusal::unsupported(
        reply,
        &format!("a command whose keyspace events are sent more than {max} times: send several"),
    );
}
