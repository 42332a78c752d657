//! What a transaction does to the commands of its connection: they are queued, or end it.

use locknode_resp::Encoder;

use super::{Batch, lock_keys};
use crate::command::{Spec, refusal, subcommand};
use crate::command_id::CommandId;
use crate::flags::Flags;
use crate::session::Session;

impl Batch<'_> {
    /// Queues a command of a transaction; returns whether it was refused.
    #[cold]
    pub(super) fn queue(
        &mut self,
        session: &mut Session,
        (id, spec): (CommandId, &'static Spec),
        args: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        let mut reply = Encoder::new(out, session.protocol);
        session.client.note_command(id);
        let Some(transaction) = &mut session.transaction else {
            return false;
        };
        lock_keys(&mut self.space, session.db, spec.keys, args);
        let is_full = self.engine.services.is_out_of_memory(&self.space);
        self.space.unlock();
        if !spec.subcommands.is_empty() && subcommand::is_refused(spec, args, &mut reply) {
            transaction.abort();
        } else if is_full && spec.flags.has(Flags::DENYOOM) {
            transaction.abort();
            reply.error(refusal::OOM);
        } else {
            transaction.queue((id, spec.flags), args, &mut reply);
        }
        session.note_queued();
        let is_refused = out.get(start) == Some(&b'-');
        if is_refused {
            self.engine.services.counters.note_rejected(id);
        }
        is_refused
    }
}

/// Notes that a command was refused, which a transaction does not survive.
#[cold]
pub(super) fn note_refused(session: &mut Session, name: &[u8], out: &mut Vec<u8>, start: usize) {
    if name.eq_ignore_ascii_case(b"exec") {
        session.discard();
        refusal::exec(out, start);
    } else if let Some(transaction) = &mut session.transaction {
        transaction.abort();
    }
}
