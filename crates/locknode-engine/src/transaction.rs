//! The commands that a connection has sent since MULTI, and whether EXEC may run them.

use locknode_resp::Encoder;
use smallvec::SmallVec;

use crate::command::Spec;
use crate::command_id::CommandId;
use crate::flags::Flags;

/// A transaction before its EXEC. Its arguments are kept in one piece, since they are many and short.
#[derive(Debug)]
pub(crate) struct Transaction {
    bytes: Vec<u8>,
    /// Where each argument ends in `bytes`.
    ends: Vec<usize>,
    commands: Vec<Queued>,
    /// What the commands have in common with the one that runs them: all their flags.
    flags: Flags,
    /// Some command was refused, so that EXEC runs none.
    is_aborted: bool,
}

/// A queued command. Its arguments follow those of the command before.
#[derive(Debug)]
struct Queued {
    id: CommandId,
    spec: &'static Spec,
    arg_count: usize,
}

impl Default for Transaction {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            ends: Vec::new(),
            commands: Vec::new(),
            flags: Flags::NONE,
            is_aborted: false,
        }
    }
}

impl Transaction {
    /// Adds a command and replies; an aborted transaction keeps none.
    pub(crate) fn queue(
        &mut self,
        (id, spec): (CommandId, &'static Spec),
        args: &[&[u8]],
        reply: &mut Encoder<'_>,
    ) {
        if self.is_aborted {
            return reply.simple(QUEUED);
        }
        let added = args.iter().map(|arg| arg.len() + ARG_BYTES).sum::<usize>();
        if self.size() + added + COMMAND_BYTES > QUEUE_MAX {
            self.abort();
            return reply.error(&format!(
                "ERR a transaction holds at most {QUEUE_MAX} bytes of commands"
            ));
        }
        for arg in args {
            self.bytes.extend_from_slice(arg);
            self.ends.push(self.bytes.len());
        }
        self.flags = self.flags.and(spec.flags);
        self.commands.push(Queued {
            id,
            spec,
            arg_count: args.len(),
        });
        reply.simple(QUEUED);
    }

    /// Makes EXEC refuse the transaction, and forgets its commands.
    pub(crate) fn abort(&mut self) {
        *self = Self {
            is_aborted: true,
            ..Self::default()
        };
    }

    pub(crate) const fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// Returns the flags of all its commands.
    pub(crate) const fn flags(&self) -> Flags {
        self.flags
    }

    pub(crate) const fn len(&self) -> usize {
        self.commands.len()
    }

    /// Returns about how many bytes it occupies.
    pub(crate) const fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * ARG_BYTES + self.commands.len() * COMMAND_BYTES
    }

    /// Calls `run` with each command in turn, until one fails.
    pub(crate) fn try_each<E>(
        &self,
        mut run: impl FnMut(CommandId, &'static Spec, &[&[u8]]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut ends = self.ends.iter();
        let mut start = 0;
        for &Queued {
            id,
            spec,
            arg_count,
        } in &self.commands
        {
            let args: SmallVec<[&[u8]; 8]> = ends
                .by_ref()
                .take(arg_count)
                .map(|&end| {
                    let arg = self.bytes.get(start..end).unwrap_or_default();
                    start = end;
                    arg
                })
                .collect();
            run(id, spec, &args)?;
        }
        Ok(())
    }
}

const QUEUED: &str = "QUEUED";

/// All shards are locked while EXEC runs, and other connections wait: this is about 20 ms of SET, and
/// a thousand times what a lock library queues.
const QUEUE_MAX: usize = 4 << 20;

const ARG_BYTES: usize = size_of::<usize>();

const COMMAND_BYTES: usize = size_of::<Queued>();
