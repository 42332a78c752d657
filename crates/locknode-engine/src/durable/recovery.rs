//! Reads what an earlier incarnation left, without writing: its locks, and where the log continues.

use crate::durable::disk::Disk;
use crate::durable::frame::{Batch, Defect, Header, len_u64};
use crate::durable::log::{self, HEADER_LEN, has_batch};
use crate::durable::open_error::{OpenError, OpenErrorKind};
use crate::durable::replay::{Recovered, Replay, Translation};
use crate::durable::snapshot;
use crate::durable::state_file::State;
use crate::durable::store_error::StoreError;
use crate::durable::volume::Volume;

/// What an earlier incarnation left.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    pub(super) locks: Recovered,
    /// The number and length of every segment that the state names.
    pub(super) segments: Vec<(u64, u64)>,
    pub(super) snapshot_len: u64,
    /// The number of the next batch.
    pub(super) next_batch: u64,
    /// Whether no segment holds a batch.
    pub(super) is_log_empty: bool,
    /// Whether the last batch is followed by one that is torn or damaged `[L5]`.
    pub(super) has_dropped: bool,
    /// The last batch of the log and its place.
    tail: Option<Tail>,
}

#[derive(Debug)]
struct Tail {
    name: String,
    offset: u64,
    bytes: Vec<u8>,
}

/// A segment read from disk.
struct SegmentFile {
    number: u64,
    bytes: Vec<u8>,
}

/// Follows the segments in order and checks that no batch is missing.
struct Chain {
    expected: u64,
    /// The segment that holds the expected batch, if any does.
    suspect: u64,
    /// The segment, offset and length of the last batch.
    last: Option<(usize, usize, usize)>,
    /// The salt of its segment: another incarnation has another salt.
    salt: u64,
    /// Whether the last batch is followed by bytes that are not a batch.
    has_dropped: bool,
}

impl Recovery {
    /// Reads the files that `state` names. Locks that are not on the log are kept only after a
    /// clean stop.
    pub(super) fn read<D: Disk>(
        volume: &mut Volume<D>,
        state: &State,
        clock: Translation,
        is_clean: bool,
        seed: u64,
    ) -> Result<Self, OpenError> {
        let snapshot_name = snapshot::name(state.snapshot);
        let snapshot = match state.snapshot {
            0 => None,
            _ => Some(read_named(volume, &snapshot_name)?),
        };
        let mut segments = Vec::new();
        for number in state.log_first..=state.log_last {
            let bytes = read_named(volume, &log::name(number))?;
            segments.push(SegmentFile { number, bytes });
        }
        let mut replay = Replay::new(clock, is_clean, seed);
        let mut chain = Chain {
            expected: state.log_batch,
            suspect: state.log_first,
            last: None,
            salt: 0,
            has_dropped: false,
        };
        for (index, segment) in segments.iter().enumerate() {
            chain.read(index, segment, state, &mut replay)?;
        }
        if chain.expected <= state.log_durable {
            return Err(chain.damaged("the end of the log is missing"));
        }
        if let Some(bytes) = &snapshot {
            replay.reserve(bytes.len());
            let header = snapshot::read(bytes, |header, batch| replay.snapshot(header, batch))
                .map_err(|defect| bad(defect, &snapshot_name, "the snapshot is damaged"))?;
            check_identity(&header, state, state.snapshot, &snapshot_name)?;
        }
        let tail = chain.last.and_then(|(index, offset, len)| {
            let segment = segments.get(index)?;
            Some(Tail {
                name: log::name(segment.number),
                offset: u64::try_from(offset).ok()?,
                bytes: segment.bytes.get(offset..offset + len)?.to_vec(),
            })
        });
        Ok(Self {
            locks: replay.finish(),
            segments: segments
                .iter()
                .map(|it| (it.number, len_u64(it.bytes.len())))
                .collect(),
            snapshot_len: snapshot.map_or(0, |bytes| len_u64(bytes.len())),
            next_batch: chain.expected,
            is_log_empty: tail.is_none(),
            has_dropped: chain.has_dropped,
            tail,
        })
    }

    /// Returns the recovery of a node without files.
    pub(super) fn nothing() -> Self {
        Self {
            next_batch: 1,
            is_log_empty: true,
            ..Self::default()
        }
    }

    /// Makes durable what was read. A process that died, or whose sync failed, may have left a last
    /// batch that can be read but is not on the disk; with later batches after it, its loss would
    /// look like damage.
    pub(super) fn sync_tail<D: Disk>(&mut self, volume: &mut Volume<D>) -> Result<(), StoreError> {
        if let Some(Tail {
            name,
            offset,
            bytes,
        }) = self.tail.take()
        {
            volume.write(&name, offset, &bytes)?;
            volume.sync(&name)?;
        }
        Ok(())
    }
}

impl Chain {
    fn read<'a>(
        &mut self,
        index: usize,
        segment: &'a SegmentFile,
        state: &State,
        replay: &mut Replay<'a>,
    ) -> Result<(), OpenError> {
        let name = log::name(segment.number);
        let bytes = &segment.bytes[..];
        let header = Header::decode(log::MAGIC, bytes)
            .map_err(|defect| bad(defect, &name, "the header of the log segment is damaged"))?;
        check_identity(&header, state, segment.number, &name)?;
        if header.file_len != len_u64(bytes.len()) {
            let detail = "the log segment has changed its length";
            return Err(OpenError::damaged(&name, detail));
        }
        let mut offset = Header::LEN;
        let mut rest = bytes.get(offset..).unwrap_or_default();
        while let Some(batch) = Batch::decode(rest, header.salt) {
            if batch.number != self.expected && !self.is_again(offset, &header, &batch) {
                // The expected batch is in an earlier segment, and it could be torn only if nothing
                // followed it [L5].
                return Err(self.damaged("a batch of the log is damaged"));
            }
            replay
                .log(&header, &batch)
                .ok_or_else(|| OpenError::damaged(&name, "a record of the log is malformed"))?;
            self.expected = batch.number + 1;
            self.suspect = segment.number;
            self.salt = header.salt;
            self.last = Some((index, offset, batch.len));
            // A torn attempt was repeated in this segment.
            self.has_dropped = false;
            offset += batch.len;
            rest = rest.get(batch.len..).unwrap_or_default();
        }
        let is_blank = is_blank(rest);
        if !is_blank && has_batch(rest, header.salt) {
            return Err(OpenError::damaged(&name, "a batch of the log is damaged"));
        }
        // What an earlier incarnation left torn was dropped by the start after it, which recorded
        // its wait [G9].
        let is_news = header.incarnation == state.incarnation;
        self.has_dropped |= is_news && !is_blank;
        Ok(())
    }

    /// Returns whether a batch repeats the last one. A failed write may have left all of its batch,
    /// and the retry had more records, which no longer fitted into that segment. It begins with the
    /// records of the first attempt, so reading both is harmless.
    fn is_again(&self, offset: usize, header: &Header, batch: &Batch<'_>) -> bool {
        let is_first = offset == Header::LEN && self.last.is_some();
        is_first && header.salt == self.salt && batch.number + 1 == self.expected
    }

    fn damaged(&self, detail: &'static str) -> OpenError {
        OpenError::damaged(&log::name(self.suspect), detail)
    }
}

/// Returns whether nothing was written here. Most of a segment is blank, so it is compared in large
/// pieces.
fn is_blank(bytes: &[u8]) -> bool {
    let (pieces, rest) = bytes.as_chunks::<64>();
    pieces.iter().all(|piece| *piece == [0; 64]) && rest.iter().all(|byte| *byte == 0)
}

fn read_named<D: Disk>(volume: &mut Volume<D>, name: &str) -> Result<Vec<u8>, OpenError> {
    let missing = || OpenError::new(OpenErrorKind::Missing, name, "the file is missing");
    volume
        .read(name)
        .map_err(|cause| OpenError::io(name, cause))?
        .ok_or_else(missing)
}

fn check_identity(
    header: &Header,
    state: &State,
    number: u64,
    name: &str,
) -> Result<(), OpenError> {
    if header.node_id != state.node_id || header.number != number {
        return Err(OpenError::damaged(name, "the file belongs to another node"));
    }
    Ok(())
}

/// Returns the error for an unusable file.
pub(super) fn bad(defect: Defect, name: &str, detail: &'static str) -> OpenError {
    match defect {
        Defect::Damaged => OpenError::damaged(name, detail),
        Defect::Foreign => {
            let detail = "this is not a lock node's file";
            OpenError::new(OpenErrorKind::NotOurs, name, detail)
        }
        Defect::NeedsCompat => {
            let detail = "it holds hashes, lists or sets, and this version was built \
                          without the feature `compat`, which reads them";
            OpenError::new(OpenErrorKind::Newer, name, detail)
        }
        Defect::Newer => {
            let detail = "the format is newer than this version supports";
            OpenError::new(OpenErrorKind::Newer, name, detail)
        }
    }
}

const _: () = assert!(HEADER_LEN == 128);
