//! A disk in memory that promises no more than POSIX does, and breaks on demand.
//!
//! Writes, creations and removals are seen at once and durable only after their sync. A crash keeps what the caller decides
//! of the rest: every sector of its own, torn at any byte, later writes without earlier ones, files without their
//! directory entries. Nothing here is random: the caller brings the decisions.

mod rot;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use locknode_engine::durable::Disk;

use crate::random::split_mix;

/// A directory of files in memory. Clones are handles to the same disk.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk {
    inner: Arc<Mutex<Inner>>,
}

/// All files of a directory with their content.
pub type Image = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Debug, Default)]
struct Inner {
    files: BTreeMap<u64, File>,
    next_file: u64,
    /// Names as processes see them.
    names: BTreeMap<String, u64>,
    /// Names as a crash leaves them.
    durable_names: BTreeMap<String, u64>,
    /// Names that were created, with their files, or removed.
    pending_names: Vec<(String, Option<u64>)>,
    syncs: BTreeMap<String, u64>,
    dir_syncs: u64,
    /// Operations that change something, or make a change durable.
    operations: u64,
    /// Grows whenever what a power loss would leave is another.
    generation: u64,
    /// A file has lost its end, and may be written beyond it.
    was_cut: bool,
    faults: Faults,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// As processes see it.
    content: Vec<u8>,
    /// As a crash leaves it.
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Empty,
    Zeros(usize),
    Write(usize, Vec<u8>),
}

#[derive(Clone, Debug, Default)]
struct Faults {
    /// Syncs that still succeed before one fails.
    sync_in: Option<(u64, ErrorKind)>,
    /// Writes that still succeed before one fails, how it fails and how many of its bytes are written.
    write_in: Option<(u64, (ErrorKind, usize))>,
    capacity: Option<u64>,
    /// Operations that still succeed before nothing does any more.
    stop_in: Option<u64>,
    /// An operation was refused for that.
    has_stopped: bool,
}

impl FaultyDisk {
    /// An empty disk without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Power is lost. `keep` is asked for every piece of what was not synced - a sector, a directory entry - how many
    /// of its bytes are kept, counted from its beginning. Faults are gone afterwards: somebody has seen to the disk.
    pub fn crash(&self, keep: &mut dyn FnMut(usize) -> usize) {
        self.crash_as_it_is(keep);
        self.lock().faults = Faults::default();
    }

    /// The same, and nobody has seen to the disk: it is as full as it was.
    pub fn crash_as_it_is(&self, keep: &mut dyn FnMut(usize) -> usize) {
        let mut inner = self.lock();
        inner.generation += 1;
        inner.faults = Faults {
            capacity: inner.faults.capacity,
            ..Faults::default()
        };
        let changes = std::mem::take(&mut inner.pending_names);
        for change in changes {
            if keep(1) > 0 {
                inner.change_durable_name(change);
            }
        }
        inner.names = inner.durable_names.clone();
        for file in inner.files.values_mut() {
            let changes = std::mem::take(&mut file.pending);
            for change in changes {
                change.apply(&mut file.durable, keep);
            }
            file.content.clone_from(&file.durable);
        }
        inner.forget_nameless();
    }

    /// The process dies and the machine goes on: all that was written is seen by the next one. Faults are gone: somebody has
    /// seen to the disk.
    pub fn kill(&self) {
        self.lock().faults = Faults::default();
    }

    /// The same, and nobody has seen to the disk: it is as full as it was, and a sync that is to fail still does.
    pub fn kill_as_it_is(&self) {
        let mut inner = self.lock();
        inner.faults = Faults {
            capacity: inner.faults.capacity,
            sync_in: inner.faults.sync_in,
            ..Faults::default()
        };
    }

    /// The sync after `after` further ones fails. What it should have made durable can still be read, is not durable, and
    /// later syncs do not make it so.
    pub fn fail_sync(&self, after: u64) {
        self.fail_sync_with(after, ErrorKind::Other);
    }

    /// The same, with this error.
    pub fn fail_sync_with(&self, after: u64, kind: ErrorKind) {
        self.lock().faults.sync_in = Some((after, kind));
    }

    /// The write after `after` further ones fails with `kind`, with its first `written` bytes written.
    pub fn fail_write(&self, after: u64, kind: ErrorKind, written: usize) {
        self.lock().faults.write_in = Some((after, (kind, written)));
    }

    /// Sets the disk's capacity in bytes; `None` for no limit.
    pub fn limit(&self, capacity: Option<u64>) {
        self.lock().faults.capacity = capacity;
    }

    /// After `after` further operations that change something all fail, as if the process had ended there.
    pub fn stop(&self, after: u64) {
        self.lock().faults.stop_in = Some(after);
    }

    /// The process that was to be stopped goes on; how many operations were left to it, or `None` when it had ended.
    pub fn go_on(&self) -> Option<u64> {
        let mut inner = self.lock();
        let left = inner.faults.stop_in.take();
        if std::mem::take(&mut inner.faults.has_stopped) {
            None
        } else {
            left
        }
    }

    /// Another disk, with what a power loss would leave of this one if nothing is kept that was not synced; or, with
    /// `is_as_written`, with what the next process would read.
    pub fn survivor(&self, is_as_written: bool) -> Self {
        let inner = self.lock();
        let (names, content): (_, fn(&File) -> &Vec<u8>) = if is_as_written {
            (&inner.names, |file| &file.content)
        } else {
            (&inner.durable_names, |file| &file.durable)
        };
        let files = names
            .values()
            .map(|id| (*id, File::new(content(&inner.files[id]))));
        let survivor = Inner {
            files: files.collect(),
            next_file: inner.next_file,
            names: names.clone(),
            durable_names: names.clone(),
            was_cut: inner.was_cut,
            ..Inner::default()
        };
        Self::from(survivor)
    }

    /// Another disk, with all that the next process would read, durable or not. Faults are gone.
    pub fn fork(&self) -> Self {
        let forked = Inner {
            faults: Faults::default(),
            ..self.lock().clone()
        };
        Self::from(forked)
    }

    /// Grows whenever what a power loss would leave is another.
    pub fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// All files are gone, durably.
    pub fn erase(&self) {
        self.restore(&Image::new());
    }

    /// All files as a process sees them.
    pub fn snapshot(&self) -> Image {
        let inner = self.lock();
        inner
            .names
            .iter()
            .map(|(name, id)| (name.clone(), inner.files[id].content.clone()))
            .collect()
    }

    /// Puts an old state of the whole directory back, durably.
    pub fn restore(&self, image: &Image) {
        let mut inner = self.lock();
        inner.generation += 1;
        inner.files.clear();
        inner.names.clear();
        inner.pending_names.clear();
        for (name, content) in image {
            let id = inner.next_file;
            inner.next_file += 1;
            inner.files.insert(id, File::new(content));
            inner.names.insert(name.clone(), id);
        }
        inner.durable_names = inner.names.clone();
    }

    /// Puts a file there, durably.
    pub fn put(&self, name: &str, content: &[u8]) {
        let mut image = self.snapshot();
        image.insert(name.to_owned(), content.to_vec());
        self.restore(&image);
    }

    /// Changes a byte, as rot does. The file and the byte must be there.
    pub fn flip(&self, name: &str, offset: usize) {
        let mut inner = self.lock();
        let id = inner.names[name];
        inner.generation += 1;
        if let Some(file) = inner.files.get_mut(&id) {
            file.content[offset] ^= 0x40;
            file.durable[offset] ^= 0x40;
        }
    }

    /// Operations so far that changed something or made a change durable.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Syncs of a file so far.
    pub fn syncs(&self, name: &str) -> u64 {
        self.lock().syncs.get(name).copied().unwrap_or(0)
    }

    /// Syncs so far, of all files and of the directory.
    pub fn syncs_total(&self) -> u64 {
        let inner = self.lock();
        inner.dir_syncs + inner.syncs.values().sum::<u64>()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decisions for [`FaultyDisk::crash`]: everything is kept.
pub fn keep_all(len: usize) -> usize {
    len
}

/// Decisions for [`FaultyDisk::crash`]: nothing is kept.
pub fn keep_none(_: usize) -> usize {
    0
}

/// Decisions for [`FaultyDisk::crash`]: the first `bytes` bytes that were not synced are kept.
pub fn keep_first(bytes: usize) -> impl FnMut(usize) -> usize {
    let mut left = bytes;
    move |len| {
        let kept = len.min(left);
        left -= kept;
        kept
    }
}

/// Decisions for [`FaultyDisk::crash`] from a seed: pieces are kept, lost or torn as the dice fall.
pub fn dice(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |len| {
        let bits = split_mix(&mut state);
        match bits % 8 {
            0..=2 => 0,
            3..=6 => len,
            _ => usize::try_from(bits >> 32).unwrap_or(0) % (len + 1),
        }
    }
}

impl Disk for FaultyDisk {
    fn list(&mut self) -> Result<Vec<String>> {
        Ok(self.lock().names.keys().cloned().collect())
    }

    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>> {
        let inner = self.lock();
        Ok(inner
            .names
            .get(name)
            .map(|id| inner.files[id].content.clone()))
    }

    fn create(&mut self, name: &str, len: u64) -> Result<()> {
        let mut inner = self.lock();
        inner.operate()?;
        let id = match inner.names.get(name) {
            Some(id) => *id,
            None => inner.create_name(name),
        };
        inner.change(id, Change::Empty);
        if inner.room() < len {
            return Err(ErrorKind::StorageFull.into());
        }
        inner.change(
            id,
            Change::Zeros(usize::try_from(len).unwrap_or(usize::MAX)),
        );
        Ok(())
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut inner = self.lock();
        inner.operate()?;
        let id = *inner.names.get(name).ok_or(ErrorKind::NotFound)?;
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let len = inner.files[&id].content.len();
        assert!(offset <= len || inner.was_cut, "a hole in {name}");
        let mut written = bytes.len();
        let mut result = Ok(());
        if let Some((kind, fault_written)) = take_due(&mut inner.faults.write_in) {
            result = Err(refusal(kind));
            written = written.min(fault_written);
        }
        let room = len.saturating_add(usize::try_from(inner.room()).unwrap_or(usize::MAX));
        if room < offset + written {
            written = room.saturating_sub(offset);
            result = Err(ErrorKind::StorageFull.into());
        }
        inner.change(id, Change::Write(offset, bytes[..written].to_vec()));
        result
    }

    fn sync(&mut self, name: &str) -> Result<()> {
        let mut inner = self.lock();
        inner.operate()?;
        *inner.syncs.entry(name.to_owned()).or_default() += 1;
        let result = inner.sync_fault();
        inner.generation += 1;
        let id = *inner.names.get(name).ok_or(ErrorKind::NotFound)?;
        let file = inner.files.get_mut(&id).ok_or(ErrorKind::NotFound)?;
        for change in std::mem::take(&mut file.pending) {
            if result.is_ok() {
                change.apply(&mut file.durable, &mut keep_all);
            }
        }
        result
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        let mut inner = self.lock();
        inner.operate()?;
        if inner.names.remove(name).is_some() {
            inner.pending_names.push((name.to_owned(), None));
        }
        inner.forget_nameless();
        Ok(())
    }

    fn sync_dir(&mut self) -> Result<()> {
        let mut inner = self.lock();
        inner.operate()?;
        inner.dir_syncs += 1;
        inner.sync_fault()?;
        inner.generation += 1;
        for change in std::mem::take(&mut inner.pending_names) {
            inner.change_durable_name(change);
        }
        inner.forget_nameless();
        Ok(())
    }
}

impl From<Inner> for FaultyDisk {
    fn from(inner: Inner) -> Self {
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }
}

impl Inner {
    fn operate(&mut self) -> Result<()> {
        match &mut self.faults.stop_in {
            Some(0) => {
                self.faults.has_stopped = true;
                return Err(Error::other("the process has ended"));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        self.operations += 1;
        Ok(())
    }

    fn sync_fault(&mut self) -> Result<()> {
        match take_due(&mut self.faults.sync_in) {
            Some(kind) => Err(refusal(kind)),
            None => Ok(()),
        }
    }

    fn create_name(&mut self, name: &str) -> u64 {
        let id = self.next_file;
        self.next_file += 1;
        self.files.insert(id, File::default());
        self.names.insert(name.to_owned(), id);
        self.pending_names.push((name.to_owned(), Some(id)));
        id
    }

    fn change(&mut self, id: u64, change: Change) {
        if let Some(file) = self.files.get_mut(&id) {
            change.apply(&mut file.content, &mut keep_all);
            file.pending.push(change);
        }
    }

    fn change_durable_name(&mut self, (name, id): (String, Option<u64>)) {
        match id {
            Some(id) => self.durable_names.insert(name, id),
            None => self.durable_names.remove(&name),
        };
    }

    /// Drops files that no name leads to, now or after a crash.
    fn forget_nameless(&mut self) {
        let names = self.names.values().chain(self.durable_names.values());
        let pending = self.pending_names.iter().filter_map(|(_, id)| id.as_ref());
        let named: BTreeSet<u64> = names.chain(pending).copied().collect();
        self.files.retain(|id, _| named.contains(id));
    }

    fn bytes(&self) -> u64 {
        self.names
            .values()
            .map(|id| self.files[id].content.len() as u64)
            .sum()
    }

    fn room(&self) -> u64 {
        self.faults
            .capacity
            .map_or(u64::MAX, |capacity| capacity.saturating_sub(self.bytes()))
    }
}

impl Change {
    /// Changes the content as far as `keep` says: it is asked for each piece.
    fn apply(&self, content: &mut Vec<u8>, keep: &mut dyn FnMut(usize) -> usize) {
        match self {
            Self::Empty => {
                if keep(1) > 0 {
                    content.clear();
                }
            }
            Self::Zeros(len) => zero(content, keep(*len)),
            Self::Write(offset, bytes) => {
                let (mut offset, mut rest) = (*offset, &bytes[..]);
                while !rest.is_empty() {
                    let len = (SECTOR - offset % SECTOR).min(rest.len());
                    let kept = keep(len);
                    if kept > 0 {
                        write(content, offset, &rest[..kept]);
                    }
                    offset += len;
                    rest = &rest[len..];
                }
            }
        }
    }
}

impl File {
    /// A file with this content, durably.
    fn new(content: &[u8]) -> Self {
        Self {
            content: content.to_vec(),
            durable: content.to_vec(),
            pending: Vec::new(),
        }
    }
}

/// Counts an operation, and takes the fault when its turn has come.
fn take_due<T: Copy>(fault: &mut Option<(u64, T)>) -> Option<T> {
    let (left, what) = fault.as_mut()?;
    if *left > 0 {
        *left -= 1;
        return None;
    }
    let what = *what;
    *fault = None;
    Some(what)
}

/// Overwrites with zeros, and extends.
fn zero(content: &mut Vec<u8>, len: usize) {
    let within = len.min(content.len());
    content[..within].fill(0);
    content.resize(len.max(content.len()), 0);
}

/// Overwrites and extends; a gap is filled with zeros.
fn write(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

/// What a disk writes as a whole, if it does.
const SECTOR: usize = 512;

/// An error of the disk, in words that a real one may have.
fn refusal(kind: ErrorKind) -> Error {
    match kind {
        ErrorKind::Other => Error::other("input/output error"),
        kind => kind.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> FaultyDisk {
        let mut disk = FaultyDisk::new();
        disk.create("a", 4).unwrap();
        disk.write("a", 0, b"abcd").unwrap();
        disk.sync("a").unwrap();
        disk.sync_dir().unwrap();
        disk
    }

    fn content(disk: &FaultyDisk, name: &str) -> Option<Vec<u8>> {
        disk.snapshot().get(name).cloned()
    }

    #[test]
    fn what_was_synced_survives_a_crash_and_the_rest_as_decided() {
        for (bytes, want) in [(0, &b"abcd"[..]), (2, b"xycd"), (6, b"xyzwv")] {
            let mut disk = disk();
            disk.write("a", 0, b"xyzwv").unwrap();
            disk.crash(&mut keep_first(bytes));
            assert_eq!(content(&disk, "a").unwrap(), want, "{bytes}");
        }
    }

    #[test]
    fn a_creation_or_removal_without_a_sync_of_the_directory_may_be_lost() {
        let mut disk = disk();
        disk.create("b", 1).unwrap();
        disk.sync("b").unwrap();
        disk.remove("a").unwrap();
        disk.crash(&mut keep_none);
        assert_eq!(disk.list().unwrap(), ["a"]);
        disk.create("b", 1).unwrap();
        disk.remove("a").unwrap();
        disk.kill();
        assert_eq!(disk.list().unwrap(), ["b"]);
        disk.crash(&mut keep_all);
        assert_eq!(disk.list().unwrap(), ["b"]);
    }

    #[test]
    fn what_a_failed_sync_left_is_read_but_never_durable() {
        let mut disk = disk();
        disk.write("a", 0, b"x").unwrap();
        disk.fail_sync(0);
        assert!(disk.sync("a").is_err());
        assert_eq!(content(&disk, "a").unwrap(), b"xbcd");
        disk.sync("a").unwrap();
        disk.crash(&mut keep_all);
        assert_eq!(content(&disk, "a").unwrap(), b"abcd");
    }

    #[test]
    fn a_full_disk_writes_what_fits() {
        let mut disk = disk();
        disk.limit(Some(6));
        let error = disk.write("a", 4, b"efgh").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(content(&disk, "a").unwrap(), b"abcdef");
        disk.write("a", 0, b"ABCDEF").unwrap();
        assert!(disk.create("b", 1).is_err());
        disk.limit(None);
        disk.create("b", 1).unwrap();
    }

    #[test]
    fn a_full_disk_stays_full_and_a_sync_that_fails_does_so_for_the_next_process() {
        let mut disk = disk();
        disk.limit(Some(4));
        disk.fail_sync(0);
        disk.fail_write(0, ErrorKind::Other, 0);
        disk.kill_as_it_is();
        disk.write("a", 0, b"x").unwrap();
        assert!(disk.create("b", 1).is_err());
        assert!(disk.sync("a").is_err());
        disk.fail_sync(0);
        disk.crash_as_it_is(&mut keep_all);
        assert!(disk.create("b", 1).is_err());
        disk.sync("a").unwrap();
        disk.erase();
        disk.create("b", 4).unwrap();
        assert!(disk.create("c", 1).is_err(), "another file takes its room");
        disk.fail_sync(0);
        disk.kill();
        disk.create("c", 1).unwrap();
        disk.sync("c").unwrap();
    }

    #[test]
    fn a_write_fails_when_asked_and_nothing_works_after_a_stop() {
        let mut disk = disk();
        disk.fail_write(1, ErrorKind::Other, 1);
        disk.write("a", 0, b"1").unwrap();
        assert!(disk.write("a", 1, b"22").is_err());
        assert_eq!(content(&disk, "a").unwrap(), b"12cd");
        disk.stop(1);
        disk.write("a", 2, b"3").unwrap();
        assert!(disk.sync("a").is_err());
        assert!(disk.remove("a").is_err());
        disk.kill();
        disk.remove("a").unwrap();
        assert_eq!(disk.bytes(), 0);
    }
}
