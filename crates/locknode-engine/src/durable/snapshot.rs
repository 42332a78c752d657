//! Snapshots: files `snapshot-<16 hex digits>` with a header, batches of locks, and an empty batch
//! at the end.
//!
//! The empty batch distinguishes a complete snapshot from a truncated one. A snapshot never changes
//! once the state names it.

use crate::durable::disk::Disk;
use crate::durable::frame::{Batch, Defect, Header, len_u64, numbered};
use crate::durable::machine::Reading;
use crate::durable::store_error::StoreError;
use crate::durable::volume::Volume;

/// A snapshot that is being written.
#[derive(Debug)]
pub(super) struct SnapshotWriter {
    pub(super) name: String,
    pub(super) number: u64,
    salt: u64,
    pub(super) len: u64,
    batches: u64,
    unsynced: u64,
}

impl SnapshotWriter {
    pub(super) fn create<D: Disk>(
        volume: &mut Volume<D>,
        header: &Header,
    ) -> Result<Self, StoreError> {
        let name = name(header.number);
        let bytes = header.encode();
        volume.create(&name, 0)?;
        volume.write(&name, 0, &bytes)?;
        Ok(Self {
            name,
            number: header.number,
            salt: header.salt,
            len: len_u64(bytes.len()),
            batches: 0,
            unsynced: 0,
        })
    }

    /// Appends what was put into `buffer` since [`Batch::begin`].
    pub(super) fn append<D: Disk>(
        &mut self,
        volume: &mut Volume<D>,
        buffer: &mut Vec<u8>,
        reading: Reading,
    ) -> Result<(), StoreError> {
        Batch::seal(buffer, self.salt, self.batches, reading);
        volume.write(&self.name, self.len, buffer)?;
        self.len += len_u64(buffer.len());
        self.batches += 1;
        self.unsynced += len_u64(buffer.len());
        if self.unsynced >= SYNC_EVERY {
            volume.sync(&self.name)?;
            self.unsynced = 0;
        }
        Ok(())
    }

    /// Writes the final batch and makes the file durable.
    pub(super) fn finish<D: Disk>(
        &mut self,
        volume: &mut Volume<D>,
        buffer: &mut Vec<u8>,
        reading: Reading,
    ) -> Result<(), StoreError> {
        Batch::begin(buffer);
        self.append(volume, buffer, reading)?;
        volume.sync(&self.name)?;
        volume.sync_dir()
    }
}

/// `[L6]` Passes all batches of a snapshot to `each`, and checks that none is missing.
pub(super) fn read<'a>(
    bytes: &'a [u8],
    mut each: impl FnMut(&Header, &Batch<'a>) -> Option<()>,
) -> Result<Header, Defect> {
    let header = Header::decode(MAGIC, bytes)?;
    let mut rest = bytes.get(Header::LEN..).unwrap_or_default();
    let mut number = 0;
    while let Some(batch) = Batch::decode(rest, header.salt).filter(|it| it.number == number) {
        rest = rest.get(batch.len..).ok_or(Defect::Damaged)?;
        if batch.records.is_empty() {
            return if rest.is_empty() {
                Ok(header)
            } else {
                Err(Defect::Damaged)
            };
        }
        each(&header, &batch).ok_or(Defect::Damaged)?;
        number += 1;
    }
    Err(Defect::Damaged)
}

/// Returns the name of the snapshot with this number.
pub(super) fn name(number: u64) -> String {
    numbered(PREFIX, number)
}

/// The prefix of snapshot names.
pub(super) const PREFIX: &str = "snapshot-";

/// The first bytes of a header.
pub(super) const MAGIC: [u8; 8] = *b"LOCKNODP";

/// Keeps the final sync, for which grants wait, short.
const SYNC_EVERY: u64 = 4 << 20;
