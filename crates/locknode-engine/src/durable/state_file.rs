//! The file `state`: two slots, each with a whole state, a sequence number and a checksum `[S2]`.
//!
//! The content of a slot is 512 bytes long and begins at a multiple of 4,096: a disk that writes
//! whole sectors does not tear it, and writing one slot never touches the other.

use std::time::Duration;

use crate::durable::disk::Disk;
use crate::durable::frame::{Defect, FORMAT_OF_TOKENS, Fields, Header, len_u64, sealed, unsealed};
use crate::durable::machine::{Machine, MachineTime};
use crate::durable::record::format_with;
use crate::durable::store_error::StoreError;
use crate::durable::volume::Volume;
use crate::durable::work::Durability;
use crate::time::WallTime;

/// Everything that a node knows of its earlier incarnations, except locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// Never lowered: a record of the newer format may be in any file that it names `[S4]`.
    pub(super) format: u32,
    /// Its lowest bit selects the slot.
    pub(super) seq: u64,
    pub(super) node_id: [u8; 16],
    /// One above the last incarnation `[S5]`.
    pub(super) incarnation: u64,
    pub(super) machine: Machine,
    /// The machine's clocks when it was written `[G7]`.
    pub(super) written: MachineTime,
    /// For people who read a dump; decides nothing `[G12]`.
    pub(super) wall: WallTime,
    /// No lock that relies on the guard expires later `[G6]`.
    pub(super) horizon: MachineTime,
    /// No lock that relies on the guard has a longer TTL; zero when there is none `[G5]`.
    pub(super) ttl_in_use: Duration,
    /// No reply contained, and no client was acknowledged, a counter above this `[F2]`.
    pub(super) ceiling: u64,
    /// Whether the incarnation ended in a clean stop, so that the snapshot holds all its locks
    /// `[G10]`.
    pub(super) is_clean: bool,
    pub(super) durability: Durability,
    /// The snapshot's number; zero when there is none.
    pub(super) snapshot: u64,
    /// The first segment; above `log_last` when there is none.
    pub(super) log_first: u64,
    /// The highest number that a segment ever had.
    pub(super) log_last: u64,
    /// The number of the first batch in `log_first`.
    pub(super) log_batch: u64,
    /// The number of the last batch that was durable when this was written: the log ends no earlier
    /// `[L5]`.
    pub(super) log_durable: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            format: FORMAT_OF_TOKENS,
            seq: 0,
            node_id: [0; 16],
            incarnation: 0,
            machine: Machine::default(),
            written: MachineTime::default(),
            wall: WallTime::default(),
            horizon: MachineTime::default(),
            ttl_in_use: Duration::ZERO,
            ceiling: 0,
            is_clean: false,
            durability: Durability::default(),
            snapshot: 0,
            log_first: 0,
            log_last: 0,
            log_batch: 0,
            log_durable: 0,
        }
    }
}

/// What was read from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No state was ever used: there is no file, or its creation was never completed.
    Nothing,
    /// Both slots are valid.
    Whole(State),
    /// The other slot is invalid `[S3]`.
    Half(State),
}

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct StateFile {
    state: State,
    /// Whether the slots differ in more than bounds, because writing both was interrupted.
    is_uneven: bool,
}

impl State {
    pub(super) fn encode(&self) -> [u8; CONTENT_LEN] {
        let mut bytes = Vec::with_capacity(CONTENT_LEN);
        let durability = match self.durability {
            Durability::Long => LONG,
            Durability::Always => ALWAYS,
        };
        let ttl_ns = u64::try_from(self.ttl_in_use.as_nanos()).unwrap_or(u64::MAX);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.format.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.seq.to_le_bytes());
        bytes.extend_from_slice(&self.node_id);
        bytes.extend_from_slice(&self.incarnation.to_le_bytes());
        bytes.extend_from_slice(&self.machine.boot_id);
        bytes.extend_from_slice(&self.machine.machine_id);
        for number in [
            self.machine.time_namespace,
            self.written.boottime_ns,
            self.written.raw_ns,
            self.wall.as_unix_nanos(),
            self.horizon.boottime_ns,
            self.horizon.raw_ns,
            ttl_ns,
            self.ceiling,
            self.snapshot,
            self.log_first,
            self.log_last,
            self.log_batch,
            self.log_durable,
        ] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&[u8::from(self.is_clean), durability]);
        sealed(&bytes)
    }

    /// Returns the state of a directory that will also hold these records.
    pub(super) fn of_records(&self, records: &[u8]) -> Self {
        Self {
            format: format_with(self.format, records),
            ..*self
        }
    }

    /// Returns the header of a file of this incarnation.
    pub(super) fn header(&self, magic: [u8; 8], number: u64, salt: u64) -> Header {
        Header {
            magic,
            format: self.format,
            number,
            salt,
            node_id: self.node_id,
            incarnation: self.incarnation,
            machine: self.machine,
            file_len: 0,
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Defect> {
        let (format, rest) = unsealed::<CONTENT_LEN>(MAGIC, bytes)?;
        let mut fields = Fields(rest);
        Ok(Self {
            format,
            seq: fields.u64(),
            node_id: fields.array(),
            incarnation: fields.u64(),
            machine: fields.machine(),
            written: fields.machine_time(),
            wall: WallTime::from_unix_nanos(fields.u64()),
            horizon: fields.machine_time(),
            ttl_in_use: Duration::from_nanos(fields.u64()),
            ceiling: fields.u64(),
            snapshot: fields.u64(),
            log_first: fields.u64(),
            log_last: fields.u64(),
            log_batch: fields.u64(),
            log_durable: fields.u64(),
            is_clean: match fields.array() {
                [0] => false,
                [1] => true,
                _ => return Err(Defect::Damaged),
            },
            durability: match fields.array() {
                [LONG] => Durability::Long,
                [ALWAYS] => Durability::Always,
                _ => return Err(Defect::Damaged),
            },
        })
    }
}

/// Reads the file's content; `is_alone` means that the node has no other file.
pub(super) fn read(content: Option<&[u8]>, is_alone: bool) -> Result<Found, Defect> {
    let content = content.unwrap_or_default();
    let mut bytes = content.to_vec();
    bytes.resize(FILE_LEN, 0);
    let (first, second) = bytes.split_at(SLOT_LEN);
    let slots = [slot(first, 0), slot(second, 1)];
    for defect in [Defect::Newer, Defect::NeedsCompat] {
        if slots.contains(&Err(defect)) {
            return Err(defect);
        }
    }
    match slots {
        [Ok(a), Ok(b)] if a.node_id != b.node_id => Err(Defect::Damaged),
        [Ok(a), Ok(b)] => Ok(Found::Whole(if a.seq > b.seq { a } else { b })),
        [Err(_), Ok(state)] if is_alone && state.seq == FIRST_SEQ => Ok(Found::Nothing),
        [Ok(state), _] | [_, Ok(state)] => Ok(Found::Half(state)),
        [Err(_), Err(_)]
            if is_alone && content.len() <= FILE_LEN && is_unfinished(first, second) =>
        {
            Ok(Found::Nothing)
        }
        [Err(_), Err(_)]
            if is_alone && ![first, second].iter().any(|it| it.starts_with(&MAGIC)) =>
        {
            Err(Defect::Foreign)
        }
        [Err(_), Err(_)] => Err(Defect::Damaged),
    }
}

impl StateFile {
    /// Creates the file, with the same state in both slots.
    pub(super) fn create<D: Disk>(
        volume: &mut Volume<D>,
        state: State,
    ) -> Result<Self, StoreError> {
        let made = volume.create(NAME, len_u64(FILE_LEN)).and_then(|()| {
            let mut file = Self {
                state,
                is_uneven: true,
            };
            file.write(volume, state)?;
            volume.sync_dir()?;
            Ok(file)
        });
        if made.is_err() {
            Self::remove(volume);
        }
        made
    }

    /// Removes the file of a node that has not started yet, so that its first start can be repeated
    /// `[G4]`.
    pub(super) fn remove<D: Disk>(volume: &mut Volume<D>) {
        volume.discard(NAME);
    }

    /// Takes over the file as read, and makes what was read durable. A process that died, or whose
    /// sync failed, may have left content, or the file's name, that can be read but is not on the
    /// disk. A truncated file gets its length back.
    pub(super) fn adopt<D: Disk>(
        volume: &mut Volume<D>,
        state: State,
        len: usize,
    ) -> Result<Self, StoreError> {
        if len < FILE_LEN {
            volume.write(NAME, len_u64(len), &vec![0; FILE_LEN - len])?;
        }
        volume.write(NAME, offset(state.seq), &state.encode())?;
        volume.sync(NAME)?;
        volume.sync_dir()?;
        Ok(Self {
            state,
            is_uneven: true,
        })
    }

    /// `[S2]` Writes and syncs the older slot. Writes the other as well, unless only the horizon,
    /// the clocks and the last durable batch have changed: their earlier values remain true.
    pub(super) fn write<D: Disk>(
        &mut self,
        volume: &mut Volume<D>,
        state: State,
    ) -> Result<(), StoreError> {
        let is_one_enough = self.is_like(&state) && !self.is_uneven;
        self.write_slot(volume, state)?;
        if is_one_enough {
            return Ok(());
        }
        self.is_uneven = true;
        self.write_slot(volume, state)?;
        self.is_uneven = false;
        Ok(())
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    fn write_slot<D: Disk>(
        &mut self,
        volume: &mut Volume<D>,
        mut state: State,
    ) -> Result<(), StoreError> {
        state.seq = self.state.seq + 1;
        volume.write(NAME, offset(state.seq), &state.encode())?;
        volume.sync(NAME)?;
        self.state = state;
        Ok(())
    }

    fn is_like(&self, state: &State) -> bool {
        let State {
            seq,
            written,
            wall,
            horizon,
            log_durable,
            ..
        } = self.state;
        self.state
            == State {
                seq,
                written,
                wall,
                horizon,
                log_durable,
                ..*state
            }
    }
}

fn slot(bytes: &[u8], parity: u64) -> Result<State, Defect> {
    let state = State::decode(bytes)?;
    if state.seq % 2 == parity {
        Ok(state)
    } else {
        Err(Defect::Damaged)
    }
}

/// Returns whether creating the file was interrupted. Both slots are written before anything relies
/// on them, the second one first, into zeros; an interrupted write leaves the beginning of a slot.
fn is_unfinished(first: &[u8], second: &[u8]) -> bool {
    let (state, rest) = second.split_at(CONTENT_LEN);
    let begun = state
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
    let is_ours = state.iter().take(begun).zip(MAGIC).all(|(a, b)| *a == b);
    is_zero(first) && is_ours && is_zero(rest)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn offset(seq: u64) -> u64 {
    if seq.is_multiple_of(2) {
        0
    } else {
        SLOT_LEN as u64
    }
}

/// The file's name.
pub(super) const NAME: &str = "state";

/// The sequence number of the first state ever written.
const FIRST_SEQ: u64 = 1;

/// Two slots.
pub(super) const FILE_LEN: usize = 2 * SLOT_LEN;

/// A page of every common file system, so that writing one slot neither reads nor writes the other.
const SLOT_LEN: usize = 4096;

/// The smallest sector of a disk.
const CONTENT_LEN: usize = 512;

const MAGIC: [u8; 8] = *b"LOCKNODS";

const LONG: u8 = 0;
const ALWAYS: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn state(seq: u64) -> State {
        State {
            format: FORMAT_OF_TOKENS,
            seq,
            node_id: [1; 16],
            incarnation: 2,
            machine: Machine {
                boot_id: [3; 16],
                machine_id: [4; 16],
                time_namespace: 5,
            },
            written: MachineTime {
                boottime_ns: 6,
                raw_ns: 7,
            },
            wall: WallTime::from_unix_nanos(8),
            horizon: MachineTime {
                boottime_ns: 9,
                raw_ns: 10,
            },
            ttl_in_use: Duration::from_nanos(11),
            ceiling: 12,
            is_clean: true,
            durability: Durability::Always,
            snapshot: 13,
            log_first: 14,
            log_last: 15,
            log_batch: 16,
            log_durable: 17,
        }
    }

    fn file(first: &[u8], second: &[u8]) -> Vec<u8> {
        let mut bytes = first.to_vec();
        bytes.resize(SLOT_LEN, 0);
        bytes.extend_from_slice(second);
        bytes
    }

    /// `[S2]` `[S3]`
    #[test]
    fn the_slot_with_the_higher_number_counts_and_a_bad_one_is_noticed() {
        let (a, b) = (state(4).encode(), state(5).encode());
        let read = |first: &[u8], second: &[u8]| read(Some(&file(first, second)), false);
        assert_eq!(read(&a, &b), Ok(Found::Whole(state(5))));
        let newer = state(6).encode();
        assert_eq!(read(&newer, &b), Ok(Found::Whole(state(6))));
        for at in 0..CONTENT_LEN {
            let mut bad = b;
            bad[at] ^= 1;
            assert_eq!(read(&a, &bad), Ok(Found::Half(state(4))), "{at}");
        }
        assert_eq!(read(&a, &[]), Ok(Found::Half(state(4))));
        // A slot in the other's place is invalid.
        assert_eq!(read(&b, &a), Err(Defect::Damaged));
        let mut other_node = state(5);
        other_node.node_id = [9; 16];
        assert_eq!(read(&a, &other_node.encode()), Err(Defect::Damaged));
    }

    /// `[S3]` `[S4]`
    #[test]
    fn two_bad_slots_are_damage_unless_the_file_was_never_completed() {
        let torn = &state(5).encode()[..100];
        let torn_file = file(&[], torn);
        assert_eq!(read(None, true), Ok(Found::Nothing));
        assert_eq!(read(Some(&[]), true), Ok(Found::Nothing));
        assert_eq!(read(Some(&torn_file), true), Ok(Found::Nothing));
        assert_eq!(read(Some(&torn_file), false), Err(Defect::Damaged));
        assert_eq!(read(Some(&file(torn, torn)), true), Err(Defect::Damaged));
        let newer: [u8; CONTENT_LEN] = sealed(&[&MAGIC[..], &5_u32.to_le_bytes()].concat());
        let mixed = file(&newer, &state(5).encode());
        assert_eq!(read(Some(&mixed), true), Err(Defect::Newer));
    }
}
