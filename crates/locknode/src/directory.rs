//! A node's data directory: the [`Disk`] of the store on a real file system, used by one process at
//! a time.
//!
//! Nothing is retried here and no error is swallowed: the caller decides what an error means for
//! the node. Files that were written stay open, so a sync is one system call and reports every
//! error since the last one.

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

/// A directory that only this process uses, for as long as the value lives.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// The directory itself, to sync it.
    handle: File,
    /// The exclusive lock; the system drops it when the process ends, however it ends.
    lock: LockFile,
    /// Files that were written, the most recent last.
    open: Vec<OpenFile>,
    /// Whether this process has put anything but the lock into the directory.
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
    /// Opens and locks the directory, creating it if only its last component is missing `[S1]`.
    ///
    /// # Errors
    ///
    /// Fails when another process uses the directory, when it holds files that are not a node's, or
    /// when the system refuses. Existing files are never changed.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, DirectoryError> {
        let path = path.into();
        Self::open_at(&path).map_err(|problem| DirectoryError { path, problem })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_at(path: &Path) -> Result<Self, Problem> {
        let (handle, is_new) = open_or_create(path)?;
        refuse_foreign(path)?;
        let mut directory = Self {
            path: path.to_owned(),
            handle,
            lock: LockFile::take(path.join(LOCK))?,
            open: Vec::new(),
            has_written: false,
        };
        if is_new {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            sync_directory(parent.unwrap_or(Path::new(".")))
                .map_err(|error| Problem::Io("sync the parent directory of", error))?;
        }
        // This also shows whether the file system supports it at all.
        let synced = directory.sync_dir();
        synced.map_err(|error| Problem::Io("sync the directory", error))?;
        Ok(directory)
    }

    fn file(&mut self, name: &str) -> io::Result<&mut OpenFile> {
        if let Some(position) = self.open.iter().position(|open| open.name == name) {
            let file = self.open.remove(position);
            return Ok(self.keep(file));
        }
        let path = self.file_path(name)?;
        let file = open_regular(&path, OpenOptions::new().read(true).write(true))?;
        let len = file.metadata()?.len();
        Ok(self.keep(OpenFile::new(name, file, len)))
    }

    /// Keeps a file open, and closes the least recently used one. A file with unsynced writes stays
    /// open, because a file that is opened again need not report earlier failures.
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

    /// Checks a name, because names are read from files.
    fn file_path(&self, name: &str) -> io::Result<PathBuf> {
        if name.is_empty() || name.contains(['/', '\0']) || name == "." || name == ".." {
            return Err(invalid(format!("{name:?} is not a file name")));
        }
        Ok(self.path.join(name))
    }
}

impl Disk for Directory {
    fn list(&mut self) -> io::Result<Vec<String>> {
        // No file of a node has a name that is not UTF-8, so the replacement character is good
        // enough.
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let entries = fs::read_dir(&self.path)?;
        entries.map(|entry| Ok(name(entry?))).collect()
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
            // Frees the space for others. If this fails too, the first error still says it all.
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
        // Set before the write, because a write that fails halfway may leave something behind.
        open.is_written = true;
        let end = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        open.is_grown |= end > open.len;
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
        // Checked after the sync: a process that took over the directory before it must be noticed,
        // and one that takes over later reads what is durable now.
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
    /// Leaves a directory that turned out not to be a node's as it was `[S4]`.
    fn drop(&mut self) {
        if !self.has_written {
            self.lock.remove_if_new();
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

/// Returns the directory, and whether it was created.
fn open_or_create(path: &Path) -> Result<(File, bool), Problem> {
    let failed = |attempt| move |error| Problem::Io(attempt, error);
    let created = DirBuilder::new().mode(DIRECTORY_MODE).create(path);
    let is_new = created.is_ok();
    if let Err(error) = created
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(Problem::Io("create the directory", error));
    }
    let handle = File::open(path).map_err(failed("open the directory"))?;
    let metadata = handle.metadata().map_err(failed("inspect the directory"))?;
    if metadata.is_dir() {
        Ok((handle, is_new))
    } else {
        Err(Problem::NotADirectory)
    }
}

/// Makes new entries in a directory durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Refuses a directory with files that are not a node's, so that a mistyped path leaves no lock
/// file behind. The store decides what a node's directory must contain.
fn refuse_foreign(path: &Path) -> Result<(), Problem> {
    let failed = |error| Problem::Io("list the directory", error);
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

/// Refuses pipes and devices, which could block or never end.
fn open_regular(path: &Path, options: &OpenOptions) -> io::Result<File> {
    fs::symlink_metadata(path).and_then(regular)?;
    options.open(path)
}

fn regular(metadata: fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(invalid("not a regular file".to_owned()))
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// Writes zeros, because a file with holes could find the disk full when it is too late.
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

/// Reports an exhausted quota as a full disk, which it is to the node.
fn full(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::QuotaExceeded {
        return io::Error::new(io::ErrorKind::StorageFull, error);
    }
    error
}

const LOCK: &str = "lock";

/// The prefixes of the names of a node's files.
const OURS: [&str; 4] = [LOCK, "state", "log-", "snapshot-"];

/// Many file systems have it at their root.
const LOST_AND_FOUND: &str = "lost+found";

/// The files show who holds which lock, so only the node's user may read them.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The state, the current and the next segment, and a snapshot.
const OPEN_MAX: usize = 4;

/// Larger writes are no faster.
const CHUNK_LEN: usize = 1 << 18;

#[cfg(test)]
mod tests;
