//! The file of `--aclfile`.

use locknode::NodeBuilder;
pub(super) use locknode::UsersFile;

use super::flags::ServeFlags;
use crate::failure::Failure;

/// Reads the file; `None` if there is none.
///
/// # Errors
///
/// When it is unusable, or a password is given beside it.
pub(super) fn read(setup: &ServeFlags) -> Result<Option<UsersFile>, Failure> {
    let options = &setup.node.options;
    if options.aclfile.is_empty() {
        return Ok(None);
    }
    if !options.requirepass.is_empty() {
        return Err(Failure::usage(
            "--aclfile has all passwords: give that of --requirepass to the user default there",
        ));
    }
    let file = UsersFile::read(&options.aclfile);
    file.map(Some)
        .map_err(|error| Failure::usage(format!("--aclfile: {error}")))
}

/// Gives the users to a node.
pub(super) fn give(builder: NodeBuilder, users: Option<UsersFile>) -> NodeBuilder {
    match users {
        Some(users) => builder.users_file(users),
        None => builder,
    }
}
