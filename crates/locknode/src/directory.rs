//! A node's data directory: [`Disk`] over a real one, used by one process at a time.
//!
//! Nothing is tried again here and no error is swallowed: what an error means for the node is decided by whoever
//! called. Files that are written stay open, so that a sync is one system call and reports every error since.

mod directory_error;
mod lock_file;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use locknode_engine::durable::Disk;

use self::directory_error::Problem;

pub use self::directory_error::DirectoryError;
use self::lock_file::LockFile;

/// A directory that this process uses alone, for as long as the value lives.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// The directory itself, to sync it.
    handle: File,
    /// The exclusive lock; it ends with the process, however that ends.
    lock: LockFile,
    /// Files that were written, the most recent last.
    open: Vec<OpenFile>,
    /// Whether there is anything of this process in the directory but the lock.
    has_written: bool,
}

#[derive(Debug)]
struct OpenFile {
    name: String,
    file: File,
    len: u64,
    /// Whether the file was written to, or grew, since it was synced.
    is_written: bool,
    is_grown: bool,
}

impl Directory {
    /// Opens the directory, which is created when only it is missing, and locks it `[S1]`.
    ///
    /// # Errors
    ///
    /// When another process uses the directory, or something else than a node does, or the system refuses. Nothing that
    /// was there is changed.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, DirectoryError> {
        let path = path.into();
        let failed = |problem: Problem| DirectoryError::new(path.clone(), problem);
        let (handle, is_new) = open_or_create(&path).map_err(failed)?;
        refuse_foreign(&path).map_err(failed)?;
        let lock = LockFile::take(path.join(LOCK)).map_err(failed)?;
        let mut directory = Self {
            path: path.clone(),
            handle,
            lock,
            open: Vec::new(),
            has_written: false,
        };
        directory.make_durable(is_new).map_err(failed)?;
        Ok(directory)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory has to be there after a crash. The sync also shows whether the file system can do it at all.
    fn make_durable(&mut self, is_new: bool) -> Result<(), Problem> {
        if is_new {
            let parent = match self.path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            sync_directory(parent)
                .map_err(|error| Problem::io("sync the directory above", error))?;
        }
        self.sync_dir()
            .map_err(|error| Problem::io("sync the directory", error))
    }

    fn file(&mut self, name: &str) -> io::Result<&mut OpenFile> {
        let position = self.open.iter().position(|open| open.name == name);
        let file = match position {
            Some(position) => self.open.remove(position),
            None => {
                let path = self.file_path(name)?;
                let file = open_regular(&path, OpenOptions::new().read(true).write(true))?;
                let len = file.metadata()?.len();
                OpenFile::new(name, file, len)
            }
        };
        Ok(self.keep(file))
    }

    /// Keeps a file open, and closes the one that was used longest ago. A file with writes that are not synced stays: a
    /// file that is opened anew need not report what failed before.
    fn keep(&mut self, file: OpenFile) -> &mut OpenFile {
        if self.open.len() >= OPEN_MAX
            && let Some(oldest) = self.open.iter().position(|open| !open.is_written)
        {
            self.open.remove(oldest);
        }
        let last = self.open.len();
        self.open.push(file);
        &mut self.open[last]
    }

    /// Names come from what is written in files, so they are looked at.
    fn file_path(&self, name: &str) -> io::Result<PathBuf> {
        if name.is_empty() || name.contains(['/', '\0']) || name == "." || name == ".." {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} is no file name"),
            ));
        }
        Ok(self.path.join(name))
    }
}

impl Disk for Directory {
    fn list(&mut self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.path)?.map(|entry| {
            let name = entry?.file_name();
            // A name that is no text is nobody's we know, which the replacement shows as well.
            Ok(name.to_string_lossy().into_owned())
        });
        names.collect()
    }

    fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let path = self.file_path(name)?;
        let mut file = match open_regular(&path, OpenOptions::new().read(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        Ok(Some(content))
    }

    fn create(&mut self, name: &str, len: u64) -> io::Result<()> {
        self.lock.check()?;
        self.has_written = true;
        let path = self.file_path(name)?;
        self.open.retain(|open| open.name != name);
        if let Err(error) = fs::symlink_metadata(&path).and_then(regular)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.mode(FILE_MODE).open(&path).map_err(full)?;
        if let Err(error) = fill(&file, len) {
            // The room is of more use to others. If this fails too, the error is the same.
            let _ = file.set_len(0);
            return Err(full(error));
        }
        let open = self.keep(OpenFile::new(name, file, len));
        (open.is_written, open.is_grown) = (true, true);
        Ok(())
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.lock.check()?;
        self.has_written = true;
        let open = self.file(name)?;
        // Said before it is done: of a write that fails halfway something is there.
        open.is_written = true;
        let end = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if end > open.len {
            open.is_grown = true;
        }
        open.file.write_all_at(bytes, offset).map_err(full)?;
        open.len = open.len.max(end);
        Ok(())
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let open = self.file(name)?;
        if open.is_grown {
            open.file.sync_all().map_err(full)?;
        } else {
            open.file.sync_data().map_err(full)?;
        }
        (open.is_written, open.is_grown) = (false, false);
        // After the sync: a process that took the directory before has to be noticed, and one that takes it later reads what
        // is durable now.
        self.lock.check()
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.lock.check()?;
        let path = self.file_path(name)?;
        self.open.retain(|open| open.name != name);
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn sync_dir(&mut self) -> io::Result<()> {
        self.handle.sync_all().map_err(full)
    }
}

impl Drop for Directory {
    /// A directory that turned out to be somebody else's is left as it was `[S4]`.
    fn drop(&mut self) {
        if !self.has_written {
            self.lock.unmake();
        }
    }
}

impl OpenFile {
    fn new(name: &str, file: File, len: u64) -> Self {
        Self {
            name: name.to_owned(),
            file,
            len,
            is_written: false,
            is_grown: false,
        }
    }
}

/// The directory, and whether it was created.
fn open_or_create(path: &Path) -> Result<(File, bool), Problem> {
    let created = DirBuilder::new().mode(DIRECTORY_MODE).create(path);
    let is_new = match created {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(Problem::io("create the directory", error)),
    };
    let handle = File::open(path).map_err(|error| Problem::io("open the directory", error))?;
    let metadata = handle
        .metadata()
        .map_err(|error| Problem::io("look at the directory", error))?;
    if !metadata.is_dir() {
        return Err(Problem::NotADirectory);
    }
    Ok((handle, is_new))
}

/// Makes creations in a directory durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Whoever gives the wrong directory finds no file of ours in it afterwards. What a directory with a node's files has to
/// hold is the store's to say.
fn refuse_foreign(path: &Path) -> Result<(), Problem> {
    let failed = |error| Problem::io("list the directory", error);
    let mut foreign = None;
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        if OURS.iter().any(|prefix| name.starts_with(prefix)) {
            return Ok(());
        }
        if name != LOST_AND_FOUND {
            foreign = foreign.or(Some(name.into_owned()));
        }
    }
    foreign.map_or(Ok(()), |name| Err(Problem::Foreign(name)))
}

/// A pipe or a device would block, or never end.
fn open_regular(path: &Path, options: &OpenOptions) -> io::Result<File> {
    fs::symlink_metadata(path).and_then(regular)?;
    options.open(path)
}

fn regular(metadata: fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is no regular file",
    ))
}

/// Zeros are written, because a file with holes may find the disk full when it is too late.
fn fill(file: &File, len: u64) -> io::Result<()> {
    let zeros = vec![0; CHUNK_LEN];
    let mut offset = 0;
    while offset < len {
        let chunk = usize::try_from(len - offset).map_or(CHUNK_LEN, |left| left.min(CHUNK_LEN));
        file.write_all_at(&zeros[..chunk], offset)?;
        offset += u64::try_from(chunk).unwrap_or(u64::MAX);
    }
    Ok(())
}

/// A quota that is used up is a full disk to whoever wants to write.
fn full(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::QuotaExceeded {
        return io::Error::new(io::ErrorKind::StorageFull, error);
    }
    error
}

const LOCK: &str = "lock";

/// How the names of a node's files begin.
const OURS: [&str; 4] = [LOCK, "state", "log-", "snapshot-"];

/// Many file systems have it at their root.
const LOST_AND_FOUND: &str = "lost+found";

/// What a node writes down tells who holds which lock: it is its user's only.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The state, the current segment and the next one, and a snapshot.
const OPEN_MAX: usize = 4;

/// Larger writes are not faster.
const CHUNK_LEN: usize = 1 << 18;

#[cfg(test)]
mod tests;
