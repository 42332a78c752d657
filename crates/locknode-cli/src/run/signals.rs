//! The signals that `locknode run` takes, and those it leaves alone because whoever started it ignores them.

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::failure::Failure;

/// A stream of signals for this process.
#[derive(Debug)]
pub(super) struct Signals {
    taken: Vec<(Signal, unix::Signal)>,
    child: unix::Signal,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Signal(Signal),
    /// A child process changed its state.
    Child,
}

impl Signals {
    /// Takes the signals from now on. With `stops`, also those that stop a process and let it go on.
    ///
    /// # Errors
    ///
    /// When the operating system refuses.
    pub(super) fn take(stops: bool) -> Result<Self, Failure> {
        let refused = |error| Failure::internal(format!("cannot wait for signals: {error}"));
        let ignored = ignored();
        let stops: &[_] = if stops { &STOPS } else { &[] };
        let mut taken = Vec::new();
        for (name, number) in PASSED.iter().chain(stops).copied() {
            // `nohup` and the shell's `&` say with this what must not end the command. A handler here would undo
            // it for the command too.
            if ignored & bit(number) == 0 {
                let stream = signal(SignalKind::from_raw(number)).map_err(refused)?;
                taken.push((name, stream));
            }
        }
        let child = signal(SignalKind::child()).map_err(refused)?;
        Ok(Self { taken, child })
    }

    /// The next one.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: a signal that came stays until it is returned.
    pub(super) async fn next(&mut self) -> Taken {
        std::future::poll_fn(|context| {
            for (name, stream) in &mut self.taken {
                if stream.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(Taken::Signal(*name));
                }
            }
            self.child.poll_recv(context).map(|_| Taken::Child)
        })
        .await
    }
}

/// The signals that are ignored, a bit each. Only Linux tells without a system call that needs unsafe code; elsewhere
/// none is.
fn ignored() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| ignored_in(&status))
        .unwrap_or(0)
}

fn ignored_in(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

const fn bit(number: i32) -> u64 {
    match number {
        1..=64 => 1 << (number - 1),
        _ => 0,
    }
}

/// What is passed on to the command.
const PASSED: [(Signal, i32); 6] = [
    (Signal::HUP, Signal::HUP.as_raw()),
    (Signal::INT, Signal::INT.as_raw()),
    (Signal::QUIT, Signal::QUIT.as_raw()),
    (Signal::TERM, Signal::TERM.as_raw()),
    (Signal::USR1, Signal::USR1.as_raw()),
    (Signal::USR2, Signal::USR2.as_raw()),
];

/// What a terminal's Ctrl-Z and a shell's `fg` send.
const STOPS: [(Signal, i32); 2] = [
    (Signal::TSTP, Signal::TSTP.as_raw()),
    (Signal::CONT, Signal::CONT.as_raw()),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status_of_the_process() {
        for (status, expected) in [
            ("Name:\tx\nSigIgn:\t0000000000000003\nSigCgt:\t0\n", Some(3)),
            ("SigIgn:\tx\n", None),
            ("", None),
        ] {
            assert_eq!(ignored_in(status), expected);
        }
        assert_eq!(bit(Signal::HUP.as_raw()), 1);
        assert_eq!(bit(Signal::INT.as_raw()), 2);
        assert_eq!(bit(0), 0);
    }
}
