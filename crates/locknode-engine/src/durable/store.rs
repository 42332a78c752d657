//! The store: makes durable what the engine requests, one piece of work at a time.
//!
//! One piece of work is at most one batch of the log with one sync `[L4]`, and at most one write of
//! the state. In steady state it is one sync, because the horizon, the ceiling and the next segment
//! are all raised before they are needed.

use std::time::Duration;

use crate::durable::disk::Disk;
use crate::durable::frame::{Batch, len_u64};
use crate::durable::log::{self, HEADER_LEN, Log, Segment};
use crate::durable::machine::Reading;
use crate::durable::snapshot::{self, SnapshotWriter};
use crate::durable::state_file::{self, State, StateFile};
use crate::durable::store_error::StoreError;
use crate::durable::verdict::{later, on_machine};
use crate::durable::volume::Volume;
use crate::durable::work::{Durability, Durable, Table, Which, Work};
use crate::time::Time;

/// What a store must know about the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The longest TTL of a lock that relies on the restart guard.
    pub max_ttl: Duration,
    /// Which locks are on the log.
    pub durability: Durability,
    /// Whether no node in this place of the clients' list has ever granted a lock `[G4]`.
    pub is_first_start: bool,
    /// Whether a directory without a state is refused, except at the first start `[G3]`.
    pub needs_state: bool,
}

/// How large files get. The default suits servers; small sizes speed up tests of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSizes {
    /// Bytes of a log segment; a larger batch gets a segment of its size.
    pub segment: u64,
    /// The log is compacted once it is this long and longer than the snapshot.
    pub log: u64,
}

/// Figures about a store, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Syncs of files and of the directory since the start.
    pub syncs: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Segments of the log.
    pub segments: u64,
    /// Batches written since the start.
    pub batches: u64,
    /// Compactions finished since the start.
    pub compactions: u64,
}

/// What a node stores, open for writing.
#[derive(Debug)]
pub struct Store<D> {
    pub(super) volume: Volume<D>,
    pub(super) sizes: StoreSizes,
    pub(super) salt: u64,
    pub(super) state: StateFile,
    pub(super) durable: Durable,
    /// A stop before this is not clean: locks of earlier incarnations that this one does not know
    /// may be held `[G9]`.
    pub(super) quarantine_end: Option<Time>,
    pub(super) log: Log,
    pub(super) snapshot_len: u64,
    pub(super) compaction: Option<Compaction>,
    /// The length of the log from which another compaction is tried.
    pub(super) compact_from: u64,
    /// Whether the next segment could not be created in advance; it will be created when it is
    /// needed.
    pub(super) has_no_spare: bool,
    /// Files that could not be removed.
    pub(super) leftovers: Vec<String>,
    pub(super) buffer: Vec<u8>,
    pub(super) figures: StoreFigures,
}

/// A snapshot in progress.
#[derive(Debug)]
pub(super) struct Compaction {
    pub(super) writer: SnapshotWriter,
    /// The table's cursor.
    pub(super) cursor: u64,
    /// The segment that was begun before it, and its first batch.
    pub(super) log_first: u64,
    pub(super) log_batch: u64,
}

impl<D: Disk> Store<D> {
    /// Does one piece of work. When it succeeds, all of `work.goal` is durable.
    ///
    /// # Errors
    ///
    /// With [`StoreError::is_full`] the same work may be given again later `[G14]`; otherwise a
    /// sync has failed, and every later call fails in the same way `[G13]`.
    pub fn perform(&mut self, work: &Work, reading: Reading) -> Result<(), StoreError> {
        self.volume.check()?;
        // The state comes first: if only the log fails, repeating the work appends to the log once.
        self.raise(&work.goal, reading)?;
        if !work.log.is_empty() {
            self.append(&work.log, reading)?;
        }
        self.durable.records = self.durable.records.max(work.goal.records);
        Ok(())
    }

    /// Ends the incarnation in a clean stop: writes a snapshot of all locks, then the clean marker
    /// `[G10]`. The table must not change any more.
    ///
    /// During quarantine it writes no marker, and the next start continues the wait `[G9]`.
    ///
    /// # Errors
    ///
    /// Without the marker, the next start is treated as one after a crash; nothing that was durable
    /// is lost.
    pub fn close(mut self, table: &mut dyn Table, reading: Reading) -> Result<(), StoreError> {
        self.volume.check()?;
        self.abandon();
        let number = self.state.state().snapshot + 1;
        let result = self.write_last_snapshot(number, table, reading);
        if result.is_err() && self.state.state().snapshot != number {
            // No state names it, and its space may be what the disk lacks.
            self.volume.discard(&snapshot::name(number));
        }
        result
    }

    fn write_last_snapshot(
        &mut self,
        number: u64,
        table: &mut dyn Table,
        reading: Reading,
    ) -> Result<(), StoreError> {
        let header = self
            .state
            .state()
            .header(snapshot::MAGIC, number, self.salt);
        let mut writer = SnapshotWriter::create(&mut self.volume, &header)?;
        let mut cursor = 0;
        let mut is_more = true;
        let mut state = *self.state.state();
        while is_more {
            Batch::begin(&mut self.buffer);
            while is_more && self.buffer.len() < CLOSE_SLICE {
                is_more = table.records(Which::All, &mut cursor, &mut self.buffer);
            }
            if self.buffer.len() > Batch::HEADER_LEN {
                state = state.of_records(&self.buffer[Batch::HEADER_LEN..]);
                writer.append(&mut self.volume, &mut self.buffer, reading)?;
            }
        }
        writer.finish(&mut self.volume, &mut self.buffer, reading)?;
        let state = State {
            is_clean: self
                .quarantine_end
                .is_none_or(|end| reading.moment.time > end),
            ..state
        };
        let next_segment = state.log_last + 1;
        self.name_snapshot(&writer, state, next_segment, self.log.next_batch, reading)
    }

    /// Returns figures about the store.
    pub fn figures(&self) -> StoreFigures {
        let compaction = self.compaction.as_ref().map_or(0, |it| it.writer.len);
        StoreFigures {
            syncs: self.volume.syncs(),
            bytes: state_file::FILE_LEN as u64 + self.log.bytes() + self.snapshot_len + compaction,
            segments: len_u64(self.log.segments.len()),
            ..self.figures
        }
    }

    /// Returns what is durable.
    pub fn durable(&self) -> Durable {
        self.durable
    }

    /// Writes the state if the goal exceeds what is durable.
    fn raise(&mut self, goal: &Durable, reading: Reading) -> Result<(), StoreError> {
        let durable = self.durable;
        if goal.horizon <= durable.horizon
            && goal.ceiling <= durable.ceiling
            && goal.ttl_in_use == durable.ttl_in_use
        {
            return Ok(());
        }
        let horizon = goal.horizon.max(durable.horizon);
        let state = self.state.state();
        let state = State {
            // Translated again to the machine's clocks, since the node's time may have fallen
            // behind them.
            horizon: later(state.horizon, on_machine(horizon, reading)),
            ttl_in_use: goal.ttl_in_use,
            ceiling: goal.ceiling.max(state.ceiling),
            ..*state
        };
        self.write_state(state, reading)?;
        self.durable = Durable {
            horizon,
            ttl_in_use: goal.ttl_in_use,
            ceiling: state.ceiling,
            ..durable
        };
        Ok(())
    }

    fn append(&mut self, records: &[u8], reading: Reading) -> Result<(), StoreError> {
        let state = self.state.state().of_records(records);
        if state != *self.state.state() {
            self.write_state(state, reading)?;
        }
        let len = len_u64(Batch::framed_len(records.len()));
        let has_room = |segment: &Segment| segment.has_room(len);
        if !self.log.current.as_ref().is_some_and(has_room) {
            self.roll(len, reading)?;
        }
        let Some(segment) = &mut self.log.current else {
            return Ok(());
        };
        Batch::begin(&mut self.buffer);
        self.buffer.extend_from_slice(records);
        Batch::seal(&mut self.buffer, self.salt, self.log.next_batch, reading);
        segment.append(&mut self.volume, &self.buffer)?;
        self.log.next_batch += 1;
        self.figures.batches += 1;
        Ok(())
    }

    /// Moves on to a segment with room for a batch of `len` bytes.
    pub(super) fn roll(&mut self, len: u64, reading: Reading) -> Result<(), StoreError> {
        // Segments are read in the order of their numbers, so a spare that is too small stays
        // empty.
        let spare = self.log.spare.take().filter(|spare| spare.has_room(len));
        let next = match spare {
            Some(spare) => spare,
            None => self.add_segment(len, reading)?,
        };
        self.log.current = Some(next);
        self.has_no_spare = false;
        Ok(())
    }

    /// Creates a segment and names it in the state.
    pub(super) fn add_segment(
        &mut self,
        len: u64,
        reading: Reading,
    ) -> Result<Segment, StoreError> {
        let state = *self.state.state();
        let number = state.log_last + 1;
        let len = self.sizes.segment.max(HEADER_LEN + len);
        let header = state.header(log::MAGIC, number, self.salt);
        let segment = Segment::create(&mut self.volume, header, len)?;
        let is_first = state.log_first > state.log_last;
        let state = State {
            log_last: number,
            log_batch: if is_first {
                self.log.next_batch
            } else {
                state.log_batch
            },
            ..state
        };
        let written = self.write_state(state, reading);
        // One slot may name it even if the other could not be written.
        if self.state.state().log_last == number {
            self.log.segments.push((number, len));
        }
        written.map(|()| segment)
    }

    /// Makes the state name a durable snapshot and the segments from `log_first` on; then removes
    /// the files that it no longer names `[L7]`.
    pub(super) fn name_snapshot(
        &mut self,
        writer: &SnapshotWriter,
        state: State,
        log_first: u64,
        log_batch: u64,
        reading: Reading,
    ) -> Result<(), StoreError> {
        let old = state;
        let state = State {
            snapshot: writer.number,
            log_first,
            log_batch,
            ..state
        };
        self.write_state(state, reading)?;
        self.snapshot_len = writer.len;
        if old.snapshot != 0 {
            self.leftovers.push(snapshot::name(old.snapshot));
        }
        self.leftovers
            .extend((old.log_first..log_first).map(log::name));
        self.log.segments.retain(|(number, _)| *number >= log_first);
        self.discard_leftovers();
        Ok(())
    }

    pub(super) fn discard_leftovers(&mut self) {
        let volume = &mut self.volume;
        self.leftovers.retain(|name| !volume.discard(name));
    }

    pub(super) fn write_state(&mut self, state: State, reading: Reading) -> Result<(), StoreError> {
        let state = State {
            written: reading.machine,
            wall: reading.moment.wall,
            // A batch gets its number once it is synced.
            log_durable: self.log.next_batch - 1,
            ..state
        };
        self.state.write(&mut self.volume, state)
    }
}

impl Default for StoreSizes {
    fn default() -> Self {
        Self {
            // About 30,000 grants; writing its zeros takes milliseconds.
            segment: 4 << 20,
            // Read in well under a second.
            log: 16 << 20,
        }
    }
}

/// Approximate bytes of a batch in the snapshot of a clean stop.
const CLOSE_SLICE: usize = 1 << 20;
