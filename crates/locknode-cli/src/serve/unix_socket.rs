//! The Unix socket of a node: a file that must not be stolen from a node that lives.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::failure::Failure;

/// A socket file that is removed when this is dropped, unless another server has put its own there meanwhile.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: Identity,
}

/// Tells a file from one that replaced it: device, inode and the time it was made. A file system soon gives the inode
/// of a removed file to the next one.
type Identity = (u64, u64, i64, i64);

fn identity(path: &Path) -> io::Result<Identity> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino(), file.mtime(), file.mtime_nsec()))
}

impl SocketFile {
    /// The file of a socket that another process has made.
    ///
    /// # Errors
    ///
    /// When it is not there.
    pub(super) fn found_at(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            identity: identity(path)?,
        })
    }

    /// Leaves the file to another process.
    pub(super) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // If somebody removed it already, that is what was wanted.
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on a Unix socket at `path`; a socket file left by a process that ended is replaced.
///
/// # Errors
///
/// When somebody listens there, when something else has that name, and what the operating system says.
pub(super) fn listen(
    path: &Path,
    mode: Option<u32>,
    backlog: i32,
    flag: &str,
) -> Result<(UnixListener, SocketFile), Failure> {
    clear(path, flag).map_err(Failure::unavailable)?;
    bind(path, mode, backlog).map_err(|error| {
        let path = path.display();
        Failure::unavailable(format!("cannot listen on {path} ({flag}): {error}"))
    })
}

fn bind(path: &Path, mode: Option<u32>, backlog: i32) -> io::Result<(UnixListener, SocketFile)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile {
        path: path.to_owned(),
        identity: identity(path)?,
    };
    if let Some(mode) = mode {
        // Before listen(), so that nobody connects while the permissions are still the default ones.
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    socket.set_nonblocking(true)?;
    socket.listen(backlog)?;
    Ok((socket.into(), file))
}

/// Removes a socket file that nobody listens on.
fn clear(path: &Path, flag: &str) -> Result<(), String> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    let shown = path.display();
    if !metadata.file_type().is_socket() {
        return Err(format!(
            "{shown} exists and is not a socket: choose another {flag}"
        ));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)
            .map_err(|error| format!("cannot replace the old socket {shown}: {error}")),
        Ok(_) => Err(format!(
            "{shown} is taken by another server: stop that one, or choose another {flag}"
        )),
        Err(error) => Err(format!(
            "{shown} exists and cannot be inspected ({error}): choose another {flag}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let dir = std::env::temp_dir().join(format!("locknode-unix-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let path = dir.join("node.sock");

        let (listener, file) =
            listen(&path, Some(0o600), 16, "--unixsocket").expect("a new socket");
        assert_eq!(
            fs::metadata(&path).expect("a file").permissions().mode() & 0o777,
            0o600
        );
        let error = listen(&path, None, 16, "--unixsocket").expect_err("somebody listens");
        assert!(error.to_string().contains("--unixsocket"), "{error}");

        drop(listener);
        std::mem::forget(file);
        let (_listener, file) =
            listen(&path, None, 16, "--unixsocket").expect("the old file is replaced");
        drop(file);
        assert!(!path.exists());

        // A node drains, its successor starts on the path, and only then the first one ends.
        let (draining, old) = listen(&path, Some(0o600), 16, "--unixsocket").expect("a new socket");
        drop(draining);
        let (_successor, new) =
            listen(&path, None, 16, "--unixsocket").expect("the old file is replaced");
        drop(old);
        assert!(path.exists(), "the successor's socket stays");
        drop(new);
        assert!(!path.exists());

        fs::write(&path, "not a socket").expect("a file");
        listen(&path, None, 16, "--unixsocket").expect_err("a file that is no socket stays");
        assert!(path.exists());
        fs::remove_dir_all(&dir).expect("removed");
    }
}
