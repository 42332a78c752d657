//! The store over a disk that loses, tears and refuses.
//!
//! * `rig` - a node with its machine's clocks, and what of it was acknowledged
//! * `waits` - how long a node waits after a start, and why
//! * `stop` - the clean stop and its marker
//! * `refusals` - directories that a node does not start with, and does not touch
//! * `tearing` - writes cut at every byte, sectors lost, damage
//! * `log_end` - the end of the log: a last batch that is dropped, a log that is cut short
//! * `cut_short` - an opening, a compaction and a stop that end at each of their operations, and all that a crash can leave of it
//! * `damage` - every file cut to every length, every byte flipped
//! * `faults` - failed syncs, full disks
//! * `replay` - the table that a log amounts to
//! * `compaction` - snapshots of a table that changes, bytes on disk
//! * `steps` - a crash after every single operation
//! * `random` - random lives of a node

#![cfg(test)]

mod compaction;
mod cut_short;
mod damage;
mod faults;
mod log_end;
mod random;
mod refusals;
mod replay;
mod rig;
mod steps;
mod stop;
mod tearing;
mod waits;
