//! Reads what an earlier incarnation left, without writing: the locks, and where the log goes on.

use crate::durable::disk::Disk;
use crate::durable::frame::{Batch, Fault, Header};
use crate::durable::log::{self, HEADER_LEN, has_batch};
use crate::durable::open_error::{OpenError, OpenErrorKind};
use crate::durable::replay::{Recovered, Replay, Translation};
use crate::durable::snapshot;
use crate::durable::state_file::State;
use crate::durable::store_error::StoreError;
use crate::durable::volume::Volume;

/// What was left.
#[derive(Debug)]
pub(super) struct Recovery {
    pub(super) locks: Recovered,
    /// Number and length of all segments that the state names.
    pub(super) segments: Vec<(u64, u64)>,
    pub(super) snapshot_len: u64,
    /// The number of the batch that comes next.
    pub(super) next_batch: u64,
    /// No segment holds a batch.
    pub(super) is_log_empty: bool,
    /// Something comes after the last batch: another that is torn, or damaged `[L5]`.
    pub(super) has_dropped: bool,
    /// The last batch of the log, and where it is.
    tail: Option<Tail>,
}

#[derive(Debug)]
struct Tail {
    name: String,
    offset: u64,
    bytes: Vec<u8>,
}

/// A segment as read.
struct SegmentFile {
    number: u64,
    bytes: Vec<u8>,
}

/// Goes through the segments in order and sees to it that no batch is missing.
struct Chain {
    expected: u64,
    /// The segment in which the expected batch is, if it is anywhere.
    suspect: u64,
    /// Segment and place of the last batch.
    last: Option<(usize, usize, usize)>,
    /// The salt of its segment: another one is another incarnation's.
    salt: u64,
    /// Whether bytes that are no batch come after it.
    has_dropped: bool,
}

impl Recovery {
    /// Reads the files that `state` names. Locks that are not on the log are kept after a clean stop only.
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
                .map_err(|fault| bad(fault, &snapshot_name, "the snapshot is damaged"))?;
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
                .map(|it| (it.number, len_of(&it.bytes)))
                .collect(),
            snapshot_len: snapshot.as_deref().map_or(0, len_of),
            next_batch: chain.expected,
            is_log_empty: tail.is_none(),
            has_dropped: chain.has_dropped,
            tail,
        })
    }

    /// The recovery of a node that left nothing.
    pub(super) fn nothing() -> Self {
        Self {
            locks: Recovered::default(),
            segments: Vec::new(),
            snapshot_len: 0,
            next_batch: 1,
            is_log_empty: true,
            has_dropped: false,
            tail: None,
        }
    }

    /// Makes durable what was read. A process that died, or whose sync failed, may have left a last batch that can be read but
    /// is not on the disk; batches that come after it would then make its loss look like damage.
    pub(super) fn settle<D: Disk>(&mut self, volume: &mut Volume<D>) -> Result<(), StoreError> {
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
            .map_err(|fault| bad(fault, &name, "the header of the log segment is damaged"))?;
        check_identity(&header, state, segment.number, &name)?;
        if header.file_len != len_of(bytes) {
            let detail = "the log segment has not the length that it was made with";
            return Err(OpenError::damaged(&name, detail));
        }
        let mut offset = Header::LEN;
        let mut rest = bytes.get(offset..).unwrap_or_default();
        while let Some(batch) = Batch::decode(rest, header.salt) {
            if batch.number != self.expected && !self.is_again(offset, &header, &batch) {
                // What should come before it is in an earlier segment, and torn only if nothing came after [L5].
                return Err(self.damaged("a batch of the log is damaged"));
            }
            replay
                .log(&header, &batch)
                .ok_or_else(|| OpenError::damaged(&name, "a record of the log is malformed"))?;
            self.expected = batch.number + 1;
            self.suspect = segment.number;
            self.salt = header.salt;
            self.last = Some((index, offset, batch.len));
            // What was torn before it was tried again, in this segment.
            self.has_dropped = false;
            offset += batch.len;
            rest = rest.get(batch.len..).unwrap_or_default();
        }
        let is_blank = is_blank(rest);
        if !is_blank && has_batch(rest, header.salt) {
            return Err(OpenError::damaged(&name, "a batch of the log is damaged"));
        }
        // What an incarnation before the last one left was dropped by the start after it, which noted its wait [G9].
        let is_news = header.incarnation == state.incarnation;
        self.has_dropped |= is_news && !is_blank;
        Ok(())
    }

    /// Whether a batch is the last one once more: a write that failed may have left all of it, and what was tried again had more
    /// records and no room in that segment any more. It begins with the records of the first try, so that both can be read.
    fn is_again(&self, offset: usize, header: &Header, batch: &Batch<'_>) -> bool {
        let is_first = offset == Header::LEN && self.last.is_some();
        is_first && header.salt == self.salt && batch.number + 1 == self.expected
    }

    fn damaged(&self, detail: &'static str) -> OpenError {
        OpenError::damaged(&log::name(self.suspect), detail)
    }
}

/// Whether nothing was written here. Most of a segment is like that, so it is looked at in large pieces.
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
        return Err(OpenError::damaged(name, "the file belongs elsewhere"));
    }
    Ok(())
}

/// The error for a file that cannot be used.
pub(super) fn bad(fault: Fault, name: &str, detail: &'static str) -> OpenError {
    match fault {
        Fault::Damaged => OpenError::damaged(name, detail),
        Fault::Foreign => {
            let detail = "no lock node made this file";
            OpenError::new(OpenErrorKind::NotOurs, name, detail)
        }
        Fault::Newer => OpenError::new(
            OpenErrorKind::Newer,
            name,
            "the format is newer than this version knows",
        ),
    }
}

fn len_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

const _: () = assert!(HEADER_LEN == 128);
