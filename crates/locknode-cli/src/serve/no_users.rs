//! A build without users: there is no `--aclfile`.

use locknode::NodeBuilder;

use super::flags::ServeFlags;
use crate::failure::Failure;

/// There is none.
#[derive(Debug)]
pub(super) enum UsersFile {}

#[expect(
    clippy::unnecessary_wraps,
    reason = "with users, the file can be unusable"
)]
pub(super) const fn read(_: &ServeFlags) -> Result<Option<UsersFile>, Failure> {
    Ok(None)
}

pub(super) fn give(builder: NodeBuilder, _: Option<UsersFile>) -> NodeBuilder {
    builder
}
