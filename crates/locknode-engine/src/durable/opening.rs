//! Opens a store: inspects, decides, reads, and only then writes. The new incarnation is durable
//! before any lock is granted.

use std::time::Duration;

use crate::durable::disk::Disk;
use crate::durable::frame::{Batch, Fields, Header};
use crate::durable::log::{self, Log};
use crate::durable::machine::{Machine, Reading};
use crate::durable::open_error::{OpenError, OpenErrorKind};
use crate::durable::record::Record;
use crate::durable::recovery::{Recovery, bad};
use crate::durable::replay::Translation;
use crate::durable::snapshot::{self, SnapshotWriter};
use crate::durable::start::{Locks, Start, wall_floor};
use crate::durable::start_reason::StartReason;
use crate::durable::state_file::{self, Found, State, StateFile};
use crate::durable::store::{Store, StoreFigures, StoreSettings, StoreSizes};
use crate::durable::store_error::StoreError;
use crate::durable::verdict::{Verdict, judge, on_machine};
use crate::durable::volume::Volume;
use crate::durable::work::{Durability, Durable};
use crate::fence::{FENCE_END, FENCE_STEP};
use crate::time::Time;

/// The content of the directory.
struct Survey {
    found: Found,
    /// The length of the state file.
    state_len: usize,
    /// The log segments and snapshots.
    files: Vec<String>,
}

/// The state with which the incarnation begins, and what the engine gets from it.
struct NewIncarnation {
    state: State,
    durable: Durable,
}

impl<D: Disk> Store<D> {
    /// Reads the directory, decides how long to wait, and makes the new incarnation durable before
    /// it returns: the clean marker is gone `[G11]`, the incarnation has its number `[S5]`, and the
    /// ceiling is the base of the counters `[F2]`.
    ///
    /// `entropy` is sixteen bytes for the node's id, used at its first start, and sixteen secret
    /// bytes.
    ///
    /// # Errors
    ///
    /// [`OpenError`] states what is wrong with the directory and what to do. Nothing in it was
    /// changed, except possibly with [`OpenErrorKind::Io`].
    pub fn open(
        disk: D,
        settings: &StoreSettings,
        machine: Machine,
        reading: Reading,
        entropy: [u8; 32],
    ) -> Result<(Self, Start), OpenError> {
        Self::open_sized(
            disk,
            settings,
            StoreSizes::default(),
            machine,
            reading,
            entropy,
        )
    }

    /// Does [`Store::open`] with files of other sizes.
    ///
    /// # Errors
    ///
    /// See [`Store::open`].
    pub fn open_sized(
        disk: D,
        settings: &StoreSettings,
        sizes: StoreSizes,
        machine: Machine,
        reading: Reading,
        entropy: [u8; 32],
    ) -> Result<(Self, Start), OpenError> {
        let mut volume = Volume::new(disk);
        let survey = survey(&mut volume, settings)?;
        let mut entropy = Fields(&entropy);
        let (node_id, salt, seed) = (entropy.array(), entropy.u64(), entropy.u64());
        let mut verdict = judge(&survey.found, settings.max_ttl, &machine, reading);
        if settings.is_first_start {
            verdict = verdict.first_start(reading.moment.time);
        }
        let clock = Translation {
            machine,
            reading,
            is_same_boot: verdict.is_same_boot,
        };
        let is_clean = verdict.reason == StartReason::CleanStop;
        let mut recovery = match &survey.found {
            Found::Nothing => Recovery::nothing(),
            Found::Whole(state) | Found::Half(state) => {
                Recovery::read(&mut volume, state, clock, is_clean, seed)?
            }
        };
        let old = survey.found.state_or_new(node_id);
        if recovery.has_dropped {
            verdict = verdict.dropped(settings.max_ttl.max(old.ttl_in_use), reading);
        }
        let mut new = begin(&old, &verdict, &recovery, settings, machine, reading);

        // From here on it writes.
        let state = new.write(&mut volume, &survey, &mut recovery, sizes, salt, reading)?;
        let start = Start {
            reason: verdict.reason,
            quarantine_end: verdict.quarantine_end,
            incarnation: new.state.incarnation,
            fence_base: new.durable.ceiling,
            durable: new.durable,
            records: recovery.locks.records,
        };
        let mut store = Self {
            volume,
            sizes,
            salt,
            state,
            durable: new.durable,
            quarantine_end: Some(verdict.quarantine_end).filter(|&end| end > reading.moment.time),
            log: Log {
                current: None,
                spare: None,
                next_batch: recovery.next_batch,
                segments: recovery.segments,
            },
            snapshot_len: recovery.snapshot_len,
            compaction: None,
            compact_from: 0,
            has_no_spare: false,
            leftovers: survey.files,
            buffer: Vec::new(),
            figures: StoreFigures::default(),
        };
        if settings.durability == Durability::Always
            && let Err(error) = store.roll(0, reading)
        {
            if matches!(survey.found, Found::Nothing) {
                StateFile::remove(&mut store.volume);
            }
            return Err(error.into());
        }
        let named = store.state.state().file_names();
        store.leftovers.retain(|name| !named.contains(name));
        store.discard_leftovers();
        Ok((store, start))
    }
}

impl Recovery {
    /// Drops a log without batches, or replaces a long log with a snapshot. Otherwise a node that
    /// crashes again and again would leave a segment each time `[L7]`.
    fn shorten<D: Disk>(
        &mut self,
        volume: &mut Volume<D>,
        state: &mut State,
        header: Header,
        sizes: StoreSizes,
        reading: Reading,
    ) -> Result<(), StoreError> {
        let bytes: u64 = self.segments.iter().map(|(_, len)| len).sum();
        if !self.is_log_empty {
            if bytes < sizes.log.max(self.snapshot_len) {
                return Ok(());
            }
            match write_snapshot(volume, &header, &self.locks.records, reading) {
                Ok(writer) => {
                    state.snapshot = writer.number;
                    self.snapshot_len = writer.len;
                }
                // There is no room now, and the log serves as well.
                Err(error) if error.is_full() => {
                    volume.discard(&snapshot::name(header.number));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        state.log_first = state.log_last + 1;
        state.log_batch = self.next_batch;
        self.segments.clear();
        Ok(())
    }
}

impl NewIncarnation {
    /// Makes the new incarnation durable.
    fn write<D: Disk>(
        &mut self,
        volume: &mut Volume<D>,
        survey: &Survey,
        recovery: &mut Recovery,
        sizes: StoreSizes,
        salt: u64,
        reading: Reading,
    ) -> Result<StateFile, StoreError> {
        let (Found::Whole(old) | Found::Half(old)) = &survey.found else {
            return StateFile::create(volume, self.state);
        };
        let mut file = StateFile::adopt(volume, *old, survey.state_len)?;
        recovery.sync_tail(volume)?;
        let number = self.state.snapshot + 1;
        let header = self.state.header(snapshot::MAGIC, number, salt);
        recovery.shorten(volume, &mut self.state, header, sizes, reading)?;
        file.write(volume, self.state)?;
        Ok(file)
    }
}

impl Verdict {
    /// `[G4]`
    fn first_start(self, now: Time) -> Self {
        Self {
            reason: StartReason::FirstStart,
            quarantine_end: now,
            ttl_in_use: Duration::ZERO,
            ..self
        }
    }
}

impl Found {
    fn state_or_new(&self, node_id: [u8; 16]) -> State {
        match *self {
            Self::Whole(state) | Self::Half(state) => state,
            Self::Nothing => State {
                node_id,
                log_first: 1,
                log_batch: 1,
                ..State::default()
            },
        }
    }
}

impl State {
    /// Returns the names of all other files that should exist.
    fn file_names(&self) -> Vec<String> {
        let snapshot = (self.snapshot != 0).then(|| snapshot::name(self.snapshot));
        (self.log_first..=self.log_last)
            .map(log::name)
            .chain(snapshot)
            .collect()
    }
}

/// Inspects the directory.
fn survey<D: Disk>(volume: &mut Volume<D>, settings: &StoreSettings) -> Result<Survey, OpenError> {
    let io = |cause| OpenError::io(state_file::NAME, cause);
    let names = volume.list().map_err(io)?;
    let content = volume.read(state_file::NAME).map_err(io)?;
    let (files, others): (Vec<_>, Vec<_>) = names
        .into_iter()
        .filter(|name| name != state_file::NAME && !NEUTRAL.contains(&&name[..]))
        .partition(|name| is_ours(name));
    let not_ours = |name: &str| {
        let detail = "this is not a lock node's file, and there is no state file";
        OpenError::new(OpenErrorKind::NotOurs, name, detail)
    };
    if content.is_none()
        && let Some(name) = others.first()
    {
        return Err(not_ours(name));
    }
    if content.is_none() && !files.is_empty() {
        let detail = "the file is missing, but other files of the node exist";
        let kind = OpenErrorKind::Missing;
        return Err(OpenError::new(kind, state_file::NAME, detail));
    }
    let found = state_file::read(content.as_deref(), files.is_empty())
        .map_err(|defect| bad(defect, state_file::NAME, "both slots are damaged"))?;
    match (&found, others.first()) {
        (Found::Nothing, Some(name)) => Err(not_ours(name)),
        (Found::Whole(_) | Found::Half(_), _) if settings.is_first_start => {
            let detail = "the node has been started before";
            let kind = OpenErrorKind::StateExists;
            Err(OpenError::new(kind, state_file::NAME, detail))
        }
        (Found::Nothing, _) if settings.needs_state && !settings.is_first_start => {
            let detail =
                "there is no state: the disk was lost or replaced, or this is the first start";
            let kind = OpenErrorKind::NoState;
            Err(OpenError::new(kind, state_file::NAME, detail))
        }
        _ => Ok(Survey {
            found,
            state_len: content.map_or(0, |content| content.len()),
            files,
        }),
    }
}

/// Returns the state that the incarnation begins with, and what the engine gets from it.
fn begin(
    old: &State,
    verdict: &Verdict,
    recovery: &Recovery,
    settings: &StoreSettings,
    machine: Machine,
    reading: Reading,
) -> NewIncarnation {
    let now = reading.moment.time;
    // Restored locks of a clean stop that rely on the guard must be covered from the start.
    let restored = recovery.locks.unlogged.map_or(now, |deadline| {
        deadline.as_time().unwrap_or(Time::from_nanos(u64::MAX))
    });
    let horizon = verdict.quarantine_end.max(restored).max(now);
    let ttl_in_use = verdict.ttl_in_use.max(restored.since(now));
    let jump = if verdict.is_state_damaged {
        CEILING_JUMP
    } else {
        0
    };
    // [F2] [F4]
    let fence_base = old
        .ceiling
        .saturating_add(jump)
        .max(wall_floor(reading.moment.wall))
        .min(FENCE_END);
    let state = State {
        incarnation: old.incarnation + 1,
        machine,
        written: reading.machine,
        wall: reading.moment.wall,
        // [G9] The remaining wait is stored by the clocks of this boot.
        horizon: on_machine(horizon, reading),
        ttl_in_use,
        // The first grant raises it, so a run that grants nothing uses nothing up.
        ceiling: fence_base,
        is_clean: false,
        durability: settings.durability,
        log_durable: recovery.next_batch - 1,
        ..*old
    };
    NewIncarnation {
        state,
        durable: Durable {
            horizon,
            ttl_in_use,
            ceiling: fence_base,
            records: 0,
        },
    }
}

fn write_snapshot<D: Disk>(
    volume: &mut Volume<D>,
    header: &Header,
    locks: &[u8],
    reading: Reading,
) -> Result<SnapshotWriter, StoreError> {
    let buffer = &mut Vec::new();
    let mut writer = SnapshotWriter::create(volume, header)?;
    let mut rest = Locks::of(locks).peekable();
    while rest.peek().is_some() {
        Batch::begin(buffer);
        while buffer.len() < SLICE
            && let Some(lock) = rest.next()
        {
            Record::Put(lock).encode(buffer);
        }
        writer.append(volume, buffer, reading)?;
    }
    writer.finish(volume, buffer, reading)?;
    Ok(writer)
}

/// Returns whether a file name is that of a log segment or a snapshot.
fn is_ours(name: &str) -> bool {
    name.strip_prefix(log::PREFIX)
        .or_else(|| name.strip_prefix(snapshot::PREFIX))
        .is_some_and(|number| {
            number.len() == 16
                && number
                    .bytes()
                    .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
        })
}

/// What an otherwise empty directory may hold: the lock file `[S1]`, and what file systems put
/// there.
const NEUTRAL: [&str; 2] = ["lock", "lost+found"];

/// `[F4]` More than a damaged slot may have recorded of the ceiling.
const CEILING_JUMP: u64 = 8 * FENCE_STEP;

/// Approximate bytes of a batch.
const SLICE: usize = 1 << 20;
