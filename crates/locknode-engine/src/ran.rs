//! A command that has run, for those who took its time.

use std::ops::Range;

use crate::client::Client;
use crate::command_id::CommandId;
use crate::flags::Flags;
use crate::time::WallTime;

/// See the module docs.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "read where commands are timed")
)]
pub(crate) struct Ran<'r> {
    pub(crate) id: CommandId,
    pub(crate) flags: Flags,
    pub(crate) args: &'r [&'r [u8]],
    /// The places of passwords in it.
    pub(crate) secrets: Range<usize>,
    pub(crate) client: &'r Client,
    pub(crate) wall: WallTime,
    /// How many commands it stands for.
    pub(crate) weight: u64,
}
