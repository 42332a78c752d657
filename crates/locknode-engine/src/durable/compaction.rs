//! Compaction: a snapshot of the locks on the log, taken in slices while they change `[L7]`.
//!
//! The log first moves on to a new segment. Any lock that changes during the snapshot has a record
//! in that segment or a later one, and records are read on top of the snapshot; so it does not
//! matter whether a slice contains the lock before or after its change.

use crate::durable::disk::Disk;
use crate::durable::frame::Batch;
use crate::durable::log::Segment;
use crate::durable::machine::Reading;
use crate::durable::snapshot::{self, SnapshotWriter};
use crate::durable::store::{Compaction, Store};
use crate::durable::store_error::StoreError;
use crate::durable::work::{Table, Which};

impl<D: Disk> Store<D> {
    /// Returns whether [`Store::compact`] has work to do.
    pub fn is_due(&self) -> bool {
        self.compaction.is_some() || self.is_long() || self.wants_spare()
    }

    /// Does a bounded amount of compaction, and returns whether more is due soon.
    ///
    /// # Errors
    ///
    /// With [`StoreError::is_full`] nothing is lost, and the store continues as before; compaction
    /// is tried again once the log has grown by a segment. Other errors are those of
    /// [`Store::perform`].
    pub fn compact(&mut self, table: &mut dyn Table, reading: Reading) -> Result<bool, StoreError> {
        self.volume.check()?;
        let result = if self.compaction.is_some() {
            self.slice(table, reading)
        } else if self.is_long() {
            self.begin(reading)
        } else if self.wants_spare() {
            let spare = self.add_segment(0, reading);
            self.has_no_spare = spare.is_err();
            return spare.map(|spare| {
                self.log.spare = Some(spare);
                false
            });
        } else {
            Ok(())
        };
        if result.is_err() {
            self.abandon();
            self.compact_from = self.log.used_bytes().saturating_add(self.sizes.segment);
        }
        result.map(|()| self.is_due())
    }

    /// Gives up the compaction in progress, if any.
    pub(super) fn abandon(&mut self) {
        if let Some(compaction) = self.compaction.take() {
            self.leftovers.push(compaction.writer.name);
            self.discard_leftovers();
        }
    }

    fn is_long(&self) -> bool {
        let len = self.log.used_bytes();
        len >= self.compact_from && len >= self.sizes.log.max(self.snapshot_len)
    }

    fn wants_spare(&self) -> bool {
        !self.has_no_spare && self.log.wants_spare()
    }

    fn begin(&mut self, reading: Reading) -> Result<(), StoreError> {
        if !self.log.current.as_ref().is_some_and(Segment::is_empty) {
            self.roll(0, reading)?;
        }
        let number = self.state.state().snapshot + 1;
        let header = self
            .state
            .state()
            .header(snapshot::MAGIC, number, self.salt);
        let name = snapshot::name(number);
        let writer = SnapshotWriter::create(&mut self.volume, &header);
        if writer.is_err() {
            self.volume.discard(&name);
        }
        let log_first = self.log.current.as_ref().map_or(0, |it| it.number);
        self.compaction = Some(Compaction {
            writer: writer?,
            cursor: 0,
            log_first,
            log_batch: self.log.next_batch,
        });
        Ok(())
    }

    fn slice(&mut self, table: &mut dyn Table, reading: Reading) -> Result<(), StoreError> {
        let Some(compaction) = &mut self.compaction else {
            return Ok(());
        };
        Batch::begin(&mut self.buffer);
        let is_more = table.records(Which::Logged, &mut compaction.cursor, &mut self.buffer);
        let (writer, volume) = (&mut compaction.writer, &mut self.volume);
        if self.buffer.len() > Batch::HEADER_LEN {
            writer.append(volume, &mut self.buffer, reading)?;
        }
        if is_more {
            return Ok(());
        }
        writer.finish(volume, &mut self.buffer, reading)?;
        if let Some(done) = self.compaction.take() {
            let state = *self.state.state();
            self.name_snapshot(&done.writer, state, done.log_first, done.log_batch, reading)?;
            self.compact_from = 0;
            self.figures.compactions += 1;
        }
        Ok(())
    }
}
