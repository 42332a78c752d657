//! A command whose time is taken, that may take long, or that runs while others look on or a script is
//! suspended.

use super::Batch;
use crate::command::{Flow, Spec, secrets};
use crate::command_id::CommandId;
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
}
