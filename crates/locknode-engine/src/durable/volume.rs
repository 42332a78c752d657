//! The disk, with its failures classified: refused before any sync, or failed for good.

use std::io;

use super::disk::Disk;
use super::store_error::{Action, StoreError};

/// A disk that writes nothing more once a sync has failed `[G13]`, or once another process may use
/// the directory `[S1]`.
#[derive(Debug)]
pub(super) struct Volume<D> {
    disk: D,
    failure: Option<StoreError>,
    syncs: u64,
}

impl<D: Disk> Volume<D> {
    pub(super) fn new(disk: D) -> Self {
        Self {
            disk,
            failure: None,
            syncs: 0,
        }
    }

    /// Returns the failure after which nothing is written.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    pub(super) fn syncs(&self) -> u64 {
        self.syncs
    }

    pub(super) fn list(&mut self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    pub(super) fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.disk.read(name)
    }

    pub(super) fn create(&mut self, name: &str, len: u64) -> Result<(), StoreError> {
        self.attempt(Action::Create, name, |disk| disk.create(name, len))
    }

    pub(super) fn write(
        &mut self,
        name: &str,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        self.attempt(Action::Write, name, |disk| disk.write(name, offset, bytes))
    }

    pub(super) fn sync(&mut self, name: &str) -> Result<(), StoreError> {
        self.attempt(Action::Sync, name, |disk| disk.sync(name))
    }

    pub(super) fn sync_dir(&mut self) -> Result<(), StoreError> {
        self.attempt(Action::Sync, "the directory", D::sync_dir)
    }

    /// Removes a file that is no longer named, and returns whether it is gone. A file that stays
    /// takes space until the next start removes it.
    pub(super) fn discard(&mut self, name: &str) -> bool {
        self.check().is_ok() && self.disk.remove(name).is_ok()
    }

    fn attempt(
        &mut self,
        action: Action,
        name: &str,
        run: impl FnOnce(&mut D) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        self.check()?;
        self.syncs += u64::from(action == Action::Sync);
        run(&mut self.disk).map_err(|cause| {
            let error = StoreError::new(action, name, cause);
            if !error.is_full() {
                self.failure = Some(error.clone());
            }
            error
        })
    }
}
