//! The log: segments `log-<16 hex digits>`, each with a header and batches, one batch per sync
//! `[L4]`.
//!
//! Segments are filled with zeros in advance, so that a sync need not write a new length or new
//! blocks. Batches are numbered across all segments and incarnations, so a missing number means a
//! lost batch. The state names a segment before the first record is written to it.

use crate::durable::disk::Disk;
use crate::durable::frame::{Batch, Header, len_u64, numbered};
use crate::durable::store_error::StoreError;
use crate::durable::volume::Volume;

/// A segment that batches are written to.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) name: String,
    pub(super) number: u64,
    pub(super) len: u64,
    /// Where the next batch goes.
    pub(super) end: u64,
}

/// The segments, as far as this incarnation writes them.
#[derive(Debug)]
pub(super) struct Log {
    /// The segment being written.
    pub(super) current: Option<Segment>,
    /// The next segment, created before it is needed.
    pub(super) spare: Option<Segment>,
    /// The number of the next batch.
    pub(super) next_batch: u64,
    /// The number and length of every segment that the state names.
    pub(super) segments: Vec<(u64, u64)>,
}

impl Segment {
    /// Durably creates a segment of zeros and a header. No state names it yet, so a segment that a
    /// state names has its full length after any crash.
    pub(super) fn create<D: Disk>(
        volume: &mut Volume<D>,
        header: Header,
        len: u64,
    ) -> Result<Self, StoreError> {
        let header = Header {
            file_len: len,
            ..header
        };
        let name = name(header.number);
        let filled = volume
            .create(&name, len)
            .and_then(|()| volume.write(&name, 0, &header.encode()));
        if let Err(error) = filled {
            // Frees what it took of a full disk.
            volume.discard(&name);
            return Err(error);
        }
        volume.sync(&name)?;
        volume.sync_dir()?;
        Ok(Self {
            name,
            number: header.number,
            len,
            end: HEADER_LEN,
        })
    }

    /// Returns whether `len` bytes fit.
    pub(super) fn has_room(&self, len: u64) -> bool {
        self.len.saturating_sub(self.end) >= len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end == HEADER_LEN
    }

    /// Writes a sealed batch. Its place is taken only once the sync has returned: a retry
    /// overwrites what the first attempt left.
    pub(super) fn append<D: Disk>(
        &mut self,
        volume: &mut Volume<D>,
        batch: &[u8],
    ) -> Result<(), StoreError> {
        volume.write(&self.name, self.end, batch)?;
        volume.sync(&self.name)?;
        self.end += len_u64(batch.len());
        Ok(())
    }
}

impl Log {
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|(_, len)| len).sum()
    }

    /// Returns the bytes of segments that hold or held batches.
    pub(super) fn used_bytes(&self) -> u64 {
        self.bytes() - self.spare.as_ref().map_or(0, |spare| spare.len)
    }

    /// Returns whether to create the next segment now, because the current one is more than half
    /// full.
    pub(super) fn wants_spare(&self) -> bool {
        self.spare.is_none()
            && self
                .current
                .as_ref()
                .is_some_and(|current| current.end > current.len / 2)
    }
}

/// Returns the name of the segment with this number.
pub(super) fn name(number: u64) -> String {
    numbered(PREFIX, number)
}

/// Returns whether a whole batch begins anywhere in `bytes`; what precedes it is then not the torn
/// end of the log `[L5]`.
pub(super) fn has_batch(bytes: &[u8], salt: u64) -> bool {
    let salt_bytes = salt.to_le_bytes();
    let (places, _) = bytes.as_chunks::<{ Batch::ALIGN }>();
    let is_batch = |place: usize| {
        let rest = bytes.get(place * Batch::ALIGN..).unwrap_or_default();
        Batch::decode(rest, salt).is_some()
    };
    let mut places = places.iter().enumerate();
    places.any(|(place, begin)| *begin == salt_bytes && is_batch(place))
}

/// The prefix of segment names.
pub(super) const PREFIX: &str = "log-";

/// The first bytes of a header.
pub(super) const MAGIC: [u8; 8] = *b"LOCKNODL";

/// Where the first batch begins.
pub(super) const HEADER_LEN: u64 = Header::LEN as u64;
