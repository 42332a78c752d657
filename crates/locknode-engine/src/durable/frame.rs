//! The framing of records in log segments and snapshots: a file header, then batches, each with a
//! checksum.
//!
//! Every batch begins with the salt of its file: eight random bytes that no client ever sees. So
//! neither bytes chosen by a client nor the remains of an earlier file look like the beginning of a
//! batch.

use std::fmt::Write as _;

use crate::durable::machine::{Machine, MachineTime, Reading};
use crate::time::Time;

/// Returns the name of the file of this kind with this number.
pub(super) fn numbered(kind: &str, number: u64) -> String {
    let mut name = String::with_capacity(kind.len() + 16);
    // Writing to a string cannot fail.
    let _ = write!(name, "{kind}{number:016x}");
    name
}

/// The header of a log segment or a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) magic: [u8; 8],
    /// That of the state when the file was created.
    pub(super) format: u32,
    pub(super) number: u64,
    pub(super) salt: u64,
    pub(super) node_id: [u8; 16],
    pub(super) incarnation: u64,
    /// The machine whose clock readings the batches contain.
    pub(super) machine: Machine,
    /// The initial length of a segment; zero in a snapshot, which ends with its last batch.
    pub(super) file_len: u64,
}

/// A batch read from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch<'a> {
    pub(super) number: u64,
    /// The node's time when it was written.
    pub(super) time: Time,
    pub(super) machine: MachineTime,
    pub(super) records: &'a [u8],
    /// The number of bytes it takes in the file.
    pub(super) len: usize,
}

/// Why bytes are not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    Damaged,
    Newer,
    /// It holds values other than tokens, and this build has none.
    NeedsCompat,
    /// Not written by a lock node.
    Foreign,
}

/// Reads numbers off the front of a slice. Past its end it reads zeros, so the caller checks the
/// length.
#[derive(Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Header {
    pub(super) const LEN: usize = 128;

    pub(super) fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = Vec::with_capacity(Self::LEN);
        bytes.extend_from_slice(&self.magic);
        bytes.extend_from_slice(&self.format.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.salt.to_le_bytes());
        bytes.extend_from_slice(&self.node_id);
        bytes.extend_from_slice(&self.incarnation.to_le_bytes());
        bytes.extend_from_slice(&self.machine.boot_id);
        bytes.extend_from_slice(&self.machine.machine_id);
        bytes.extend_from_slice(&self.machine.time_namespace.to_le_bytes());
        bytes.extend_from_slice(&self.file_len.to_le_bytes());
        sealed(&bytes)
    }

    /// Decodes a header. `[S4]` With a correct checksum, an unknown format means that a newer
    /// version wrote it.
    pub(super) fn decode(magic: [u8; 8], bytes: &[u8]) -> Result<Self, Defect> {
        let (format, rest) = unsealed::<{ Self::LEN }>(magic, bytes)?;
        let mut fields = Fields(rest);
        Ok(Self {
            magic,
            format,
            number: fields.u64(),
            salt: fields.u64(),
            node_id: fields.array(),
            incarnation: fields.u64(),
            machine: fields.machine(),
            file_len: fields.u64(),
        })
    }
}

impl<'a> Batch<'a> {
    /// The length of a batch's header; the records follow it.
    pub(super) const HEADER_LEN: usize = 56;

    /// Batches begin at multiples of this.
    pub(super) const ALIGN: usize = 8;

    /// Returns the length in the file of a batch with `records_len` bytes of records.
    pub(super) fn framed_len(records_len: usize) -> usize {
        (Self::HEADER_LEN + records_len).next_multiple_of(Self::ALIGN)
    }

    /// Empties a buffer and reserves room for the header that [`Batch::seal`] fills in.
    pub(super) fn begin(buffer: &mut Vec<u8>) {
        buffer.clear();
        // One large batch must not keep its memory as long as the node runs.
        buffer.shrink_to(BUFFER_KEPT);
        buffer.resize(Self::HEADER_LEN, 0);
    }

    /// Turns a buffer with the records appended since [`Batch::begin`] into a whole batch.
    pub(super) fn seal(buffer: &mut Vec<u8>, salt: u64, number: u64, reading: Reading) {
        let records_len = buffer.len().saturating_sub(Self::HEADER_LEN);
        let mut header = Vec::with_capacity(Self::HEADER_LEN);
        header.extend_from_slice(&salt.to_le_bytes());
        header.extend_from_slice(&number.to_le_bytes());
        header.extend_from_slice(&reading.moment.time.as_nanos().to_le_bytes());
        header.extend_from_slice(&reading.machine.boottime_ns.to_le_bytes());
        header.extend_from_slice(&reading.machine.raw_ns.to_le_bytes());
        header.extend_from_slice(&len_u64(records_len).to_le_bytes());
        let (_, records) = buffer.split_at(Self::HEADER_LEN);
        let checksum = batch_checksum(&header, records);
        header.extend_from_slice(&checksum.to_le_bytes());
        header.extend_from_slice(&[0; 4]);
        for (to, from) in buffer.iter_mut().zip(header) {
            *to = from;
        }
        buffer.resize(Self::framed_len(records_len), 0);
    }

    /// Decodes the batch at the beginning of `bytes`; `None` if there is none.
    pub(super) fn decode(bytes: &'a [u8], salt: u64) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(Self::HEADER_LEN)?;
        let mut fields = Fields(header);
        if fields.u64() != salt {
            return None;
        }
        let number = fields.u64();
        let time = Time::from_nanos(fields.u64());
        let machine = fields.machine_time();
        let records_len = usize::try_from(fields.u64()).ok()?;
        let records = rest.get(..records_len)?;
        let checksum = fields.u32();
        let (checked, _) = header.split_at(CHECKED_LEN);
        (checksum == batch_checksum(checked, records)).then_some(Self {
            number,
            time,
            machine,
            records,
            len: Self::framed_len(records_len),
        })
    }
}

impl Fields<'_> {
    pub(super) fn array<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk::<N>().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *field
    }

    pub(super) fn machine_time(&mut self) -> MachineTime {
        MachineTime {
            boottime_ns: self.u64(),
            raw_ns: self.u64(),
        }
    }

    pub(super) fn machine(&mut self) -> Machine {
        Machine {
            boot_id: self.array(),
            machine_id: self.array(),
            time_namespace: self.u64(),
        }
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }
}

/// Pads content with zeros to `N` bytes, of which the last four are the checksum of all before
/// them.
pub(super) fn sealed<const N: usize>(content: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().zip(content) {
        *to = *from;
    }
    let checksum = crc32fast::hash(bytes.split_at(N - 4).0);
    if let Some(end) = bytes.last_chunk_mut::<4>() {
        *end = checksum.to_le_bytes();
    }
    bytes
}

/// The inverse of [`sealed`]: returns the format, and what follows it and four zero bytes. Magic,
/// format and checksum keep their places in every future format.
pub(super) fn unsealed<const N: usize>(
    magic: [u8; 8],
    bytes: &[u8],
) -> Result<(u32, &[u8]), Defect> {
    let bytes: &[u8; N] = bytes.first_chunk().ok_or(Defect::Damaged)?;
    let (content, checksum) = bytes.split_at(N - 4);
    let mut fields = Fields(content);
    if fields.array::<8>() != magic || checksum != crc32fast::hash(content).to_le_bytes() {
        return Err(Defect::Damaged);
    }
    let format = fields.u32();
    let has_values = (format.wrapping_sub(FORMAT_OF_TOKENS)) & OF_VALUES != 0;
    match format {
        FORMAT_OF_TOKENS..=FORMAT_OF_ALL if has_values && !cfg!(feature = "compat") => {
            return Err(Defect::NeedsCompat);
        }
        FORMAT_OF_TOKENS..=FORMAT_OF_ALL => {}
        _ => return Err(Defect::Newer),
    }
    fields.u32();
    Ok((format, fields.0))
}

/// Returns a length as files hold it: `usize` is at most 64 bits wide on every target.
pub(super) fn len_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

fn batch_checksum(header: &[u8], records: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(records);
    hasher.finalize()
}

/// The format of a directory in which keys have only ever held tokens. What else it holds is added
/// to it.
pub(super) const FORMAT_OF_TOKENS: u32 = 1;

/// From the first hash, list or set on.
pub(super) const OF_VALUES: u32 = 1;

/// From the first lock with a label on.
pub(super) const OF_LABELS: u32 = 2;

/// The format of a directory that holds everything there is.
pub(super) const FORMAT_OF_ALL: u32 = FORMAT_OF_TOKENS + (OF_VALUES | OF_LABELS);

/// The part of a batch's header that the checksum covers.
const CHECKED_LEN: usize = 48;

/// More than thousands of waiting grants need.
const BUFFER_KEPT: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: [u8; 8] = *b"MAGICNUM";

    fn header() -> Header {
        Header {
            magic: MAGIC,
            format: FORMAT_OF_TOKENS,
            number: 7,
            salt: 0x1122_3344_5566_7788,
            node_id: [3; 16],
            incarnation: 9,
            machine: Machine {
                boot_id: [4; 16],
                machine_id: [5; 16],
                time_namespace: 6,
            },
            file_len: 10,
        }
    }

    fn batch(records: &[u8]) -> Vec<u8> {
        let mut buffer = vec![1, 2, 3];
        Batch::begin(&mut buffer);
        buffer.extend_from_slice(records);
        Batch::seal(&mut buffer, 5, 6, Reading::default());
        buffer
    }

    /// `[S4]`
    #[test]
    fn a_header_reads_back_and_every_flipped_byte_is_seen() {
        let bytes = header().encode();
        assert_eq!(Header::decode(MAGIC, &bytes), Ok(header()));
        assert_eq!(Header::decode(*b"OTHERNUM", &bytes), Err(Defect::Damaged));
        for at in 0..bytes.len() {
            let mut bytes = bytes;
            bytes[at] ^= 0x10;
            assert_eq!(Header::decode(MAGIC, &bytes), Err(Defect::Damaged), "{at}");
            assert_eq!(Header::decode(MAGIC, &bytes[..at]), Err(Defect::Damaged));
        }
        let of_format = |format: u32| -> [u8; Header::LEN] {
            sealed(&[&MAGIC[..], &format.to_le_bytes()].concat())
        };
        for format in [0, 5, u32::MAX] {
            let header = Header::decode(MAGIC, &of_format(format));
            assert_eq!(header, Err(Defect::Newer), "{format}");
        }
        for format in FORMAT_OF_TOKENS..=FORMAT_OF_ALL {
            let read = Header::decode(MAGIC, &of_format(format)).map(|it| it.format);
            let is_readable = cfg!(feature = "compat") || [1, 3].contains(&format);
            let expected = is_readable.then_some(format).ok_or(Defect::NeedsCompat);
            assert_eq!(read, expected);
        }
    }

    /// `[L5]`
    #[test]
    fn a_batch_reads_back_and_every_flipped_or_missing_byte_is_seen() {
        for records in [&b""[..], b"x", b"12345678", b"123456789"] {
            let bytes = batch(records);
            assert_eq!(bytes.len() % Batch::ALIGN, 0);
            let read = Batch::decode(&bytes, 5).unwrap();
            assert_eq!((read.records, read.number), (records, 6));
            assert_eq!(read.len, bytes.len());
            assert_eq!(Batch::decode(&bytes, 4), None);
            for at in (0..Batch::HEADER_LEN - 4)
                .chain(Batch::HEADER_LEN..Batch::HEADER_LEN + records.len())
            {
                let mut bytes = bytes.clone();
                bytes[at] ^= 0x80;
                assert_eq!(Batch::decode(&bytes, 5), None, "{at}");
                assert_eq!(Batch::decode(&bytes[..at], 5), None, "{at}");
            }
        }
    }
}
