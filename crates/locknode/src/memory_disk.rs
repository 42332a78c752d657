//! A disk in memory: on it a node that keeps nothing writes what its successor gets, in the files of a clean stop.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use locknode_engine::durable::Disk;

use crate::sync_waiters::lock;

/// Files by their names.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Clones are handles to the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryDisk(Arc<Mutex<Files>>);

impl MemoryDisk {
    pub(crate) fn with(files: Files) -> Self {
        Self(Arc::new(Mutex::new(files)))
    }

    /// Takes all files away.
    pub(crate) fn take(&self) -> Files {
        std::mem::take(&mut lock(&self.0))
    }
}

impl Disk for MemoryDisk {
    fn list(&mut self) -> io::Result<Vec<String>> {
        Ok(lock(&self.0).keys().cloned().collect())
    }

    fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(lock(&self.0).get(name).cloned())
    }

    fn create(&mut self, name: &str, len: u64) -> io::Result<()> {
        let zeros = vec![0; length(len)?];
        lock(&self.0).insert(name.to_owned(), zeros);
        Ok(())
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut files = lock(&self.0);
        let file = files.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        let offset = length(offset)?;
        let end = offset.saturating_add(bytes.len());
        if file.len() < end {
            file.resize(end, 0);
        }
        file[offset..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        lock(&self.0).remove(name);
        Ok(())
    }

    fn sync_dir(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn length(len: u64) -> io::Result<usize> {
    usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge.into())
}
