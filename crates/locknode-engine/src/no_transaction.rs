//! A transaction of a node without transactions: all its commands are refused.

use locknode_resp::Encoder;

use crate::command::Spec;
use crate::command_id::CommandId;
use crate::flags::Flags;

/// MULTI was refused, and so is each command up to EXEC or DISCARD.
#[derive(Debug, Default)]
pub(crate) struct Transaction;

#[expect(
    clippy::unused_self,
    reason = "the same calls as on a node with transactions"
)]
impl Transaction {
    pub(crate) fn queue(
        &self,
        _: (CommandId, &'static Spec),
        _: &[&[u8]],
        reply: &mut Encoder<'_>,
    ) {
        reply.error("EXECABORT not executed: this node has refused MULTI");
    }

    pub(crate) const fn abort(&self) {}

    pub(crate) const fn flags(&self) -> Flags {
        Flags::NONE
    }

    pub(crate) const fn len(&self) -> usize {
        0
    }

    pub(crate) const fn size(&self) -> usize {
        0
    }
}
