//! Commands while a script is suspended: they are run, wait for its end, or get -BUSY.

use locknode_resp::Encoder;

use super::{Batch, queueing};
use crate::command::{Flow, Keys, Spec, refusal};
use crate::command_id::CommandId;
use crate::flags::Flags;
use crate::holds::Holds;
use crate::session::Session;

impl Batch<'_> {
    /// Like [`Batch::run`], unless the command has to wait for a suspended script.
    pub(super) fn run_beside_scripts(
        &mut self,
        session: &mut Session,
        id: CommandId,
        spec: &'static Spec,
        args: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> (Flow, bool) {
        let (services, start) = (&self.engine.services, out.len());
        if !session.has_script() && must_wait(&services.holds, session, spec, args) {
            session.begin_waiting(self.moment.time);
            let threshold = services
                .settings
                .read(|options| options.busy_reply_threshold);
            if session.wait_for_scripts(
                &services.holds,
                may_be_busy(session, spec).then_some(threshold),
                self.moment.time,
            ) {
                session.place = None;
                return (Flow::Paused, false);
            }
            Encoder::new(out, session.protocol).error(refusal::BUSY);
            services.counters.note_rejected(id);
            queueing::note_refused(session, spec.name.as_bytes(), out, start);
            return (Flow::Continue, true);
        }
        self.run_apart(session, id, spec, args, out)
    }
}

/// Returns whether a command may touch what a suspended script of another client has seen.
fn must_wait(holds: &Holds, session: &Session, spec: &Spec, args: &[&[u8]]) -> bool {
    let keys = match spec.keys {
        // A script in it may use any key, and cannot wait.
        Keys::None if spec.name == EXEC => return true,
        // The changes of a suspended script are not in the table, so that reading it is fine.
        Keys::All => return spec.flags.has(Flags::WRITE),
        Keys::Own if spec.flags.has(Flags::NOSCRIPT) => Keys::Counted { at: 2, step: 1 },
        keys => keys,
    };
    let client = session.client.id();
    keys.of(args).any(|key| holds.has(client, session.db, key))
}

/// Returns whether a command gets -BUSY after a while. What ends or renews a lock does not: it
/// adds nothing, or it is a script, or a transaction of such commands.
fn may_be_busy(session: &Session, spec: &Spec) -> bool {
    let flags = match &session.transaction {
        Some(transaction) if spec.name == EXEC => transaction.flags(),
        _ => spec.flags,
    };
    let adds_nothing = flags.has(Flags::WRITE) && !flags.has(Flags::DENYOOM);
    !adds_nothing && !flags.has(Flags::MAY_WRITE)
}

const EXEC: &str = "exec";
