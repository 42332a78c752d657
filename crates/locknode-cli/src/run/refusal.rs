//! A signal that the system refused to deliver, because the process became another user's.

use rustix::io::Errno;
use rustix::process::Pid;

/// Why one process did not get a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) id: Pid,
    pub(super) error: Errno,
}

impl Refusal {
    /// A process that has ended needs no signal.
    pub(super) fn unless_gone(id: Pid, sent: Result<(), Errno>) -> Result<(), Self> {
        match sent {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(Self { id, error }),
        }
    }
}
