//! SCRIPT KILL.

use locknode_resp::Encoder;

use super::context::Context;
use crate::holds::Killing;

/// Ends the oldest script that takes long and has not written.
pub(super) fn kill(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    match context.services.holds.kill() {
        Killing::Done => reply.ok(),
        Killing::Nothing => reply.error(NOTHING_RUNS),
        Killing::Unkillable => reply.error(UNKILLABLE),
    }
}

const NOTHING_RUNS: &str = "NOTBUSY No scripts in execution right now.";

const UNKILLABLE: &str = "UNKILLABLE Sorry the script already executed write commands against the dataset. \
    You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.";
