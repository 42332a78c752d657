//! The file with a node's users: read as a whole, and replaced as a whole or not at all.

use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use locknode_engine::{UserList, UserListError};

/// A file with users, one a line in Redis's format, that could be read.
///
/// See [`NodeBuilder::users_file`](crate::NodeBuilder::users_file).
#[derive(Clone, Debug)]
pub struct UsersFile {
    pub(crate) path: PathBuf,
    pub(crate) list: UserList,
}

/// Why a file with users cannot be used. It names the file and the line, and no password.
#[derive(Debug)]
pub struct UsersFileError {
    path: PathBuf,
    problem: Problem,
}

#[derive(Debug)]
enum Problem {
    Io(io::Error),
    List(UserListError),
}

impl UsersFile {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or a line of it is wrong.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, UsersFileError> {
        let path = path.into();
        let read = read(&path).map_err(Problem::Io).and_then(|text| {
            let name = path.display().to_string();
            UserList::parse(&name, &text).map_err(Problem::List)
        });
        match read {
            Ok(list) => Ok(Self { path, list }),
            Err(problem) => Err(UsersFileError { path, problem }),
        }
    }
}

impl fmt::Display for UsersFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::Io(error) => write!(f, "cannot read {}: {error}", self.path.display()),
            // It names the file.
            Problem::List(error) => error.fmt(f),
        }
    }
}

impl Error for UsersFileError {}

/// Reads a regular file that is not too long.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // To open a named pipe would wait for somebody who writes to it.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = Vec::new();
    let len = File::open(path)?.take(LEN_MAX + 1).read_to_end(&mut text)?;
    if len as u64 > LEN_MAX {
        return Err(io::Error::other(format!("longer than {LEN_MAX} bytes")));
    }
    Ok(text)
}

/// Replaces the file: a new one is written beside it, synced, and takes its name, with its
/// permissions or, if there is none, for this user alone.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    // What a symbolic link leads to is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::other("no name of a file"))?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let suffix = format!(".{}-{number}.new", std::process::id());
    let mut beside = name.to_owned();
    beside.push(suffix);
    let beside = directory.join(beside);
    let written = write_new(&path, &beside, text);
    let replaced = written.and_then(|()| fs::rename(&beside, &path));
    if replaced.is_err() {
        // It may not even be there.
        let _ = fs::remove_file(&beside);
        return replaced;
    }
    File::open(directory)?.sync_all()
}

fn write_new(path: &Path, beside: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(beside)?;
    match fs::metadata(path) {
        Ok(before) if before.is_file() => file.set_permissions(before.permissions())?,
        Ok(_) => return Err(io::Error::other("not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    file.write_all(text)?;
    file.sync_all()
}

/// Numbers the new files of this process, because two clients may save at once.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A hundred thousand users with short rules.
const LEN_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("users.acl");
        replace(&path, b"user a on\n").expect("a new file");
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("permissions");
        let link = directory.path().join("link");
        symlink(&path, &link).expect("a link");
        replace(&link, b"user b on\n").expect("a replaced file");
        assert_eq!(read(&path).expect("a file"), b"user b on\n");
        assert_eq!(mode(&path), 0o640);
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(fs::read_dir(directory.path()).expect("files").count(), 2);
    }

    #[test]
    fn what_cannot_be_replaced_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("users.acl");
        fs::create_dir(&path).expect("a directory in its place");
        assert!(replace(&path, b"user a on\n").is_err());
        assert!(read(&path).is_err());
        assert_eq!(fs::read_dir(directory.path()).expect("files").count(), 1);
        let gone = directory.path().join("none").join("users.acl");
        assert!(replace(&gone, b"").is_err());
    }

    #[test]
    fn an_unusable_file_is_named_with_its_line_and_without_its_passwords() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("users.acl");
        let error = UsersFile::read(&path).expect_err("no file").to_string();
        assert!(error.contains("users.acl: No such file"), "{error}");
        for (text, part) in [
            (
                "user a on >secret +nosuch\n",
                "users.acl:1: Error in applying operation '+nosuch'",
            ),
            (
                "user a on\nuser a on >secret\n",
                "Duplicate user 'a' found on line 2",
            ),
            (
                "user a on >secret +@all -@dang",
                "users.acl:1: the line does not end",
            ),
            ("\n# secret\n", "users.acl:2 should start with user keyword"),
            ("user a #secret\n", "users.acl:1: The password hash must be"),
        ] {
            fs::write(&path, text).expect("a file");
            let error = UsersFile::read(&path).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
