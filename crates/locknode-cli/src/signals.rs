//! The signals that `locknode run` and `lock` take, and those they leave alone because the program that started them
//! ignores them.

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{self, SignalKind, signal};

use crate::failure::{Exit, Failure};

/// A stream of signals for this process.
#[derive(Debug)]
pub(crate) struct Signals {
    taken: Vec<(Signal, unix::Signal)>,
    child: unix::Signal,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Signal(Signal),
    /// A child process changed its state.
    Child,
}

impl Taken {
    /// The signal, if it is one for us.
    pub(crate) const fn signal(self) -> Option<Signal> {
        match self {
            Self::Signal(signal) => Some(signal),
            Self::Child => None,
        }
    }
}

impl Signals {
    /// Takes the signals from now on.
    ///
    /// # Errors
    ///
    /// When the operating system refuses.
    pub(crate) fn take() -> Result<Self, Failure> {
        let refused = |error| Failure::internal(format!("cannot wait for signals: {error}"));
        let ignored = ignored();
        let mut taken = Vec::new();
        for name in PASSED.into_iter().chain(STOPS) {
            let number = name.as_raw();
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
    pub(crate) async fn next(&mut self) -> Taken {
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

    /// Waits for a signal that ends a process that has no command yet. Returns the exit code that a shell shows then.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub(crate) async fn end(&mut self) -> Exit {
        loop {
            match self.next().await.signal() {
                None | Some(Signal::CONT) => {}
                Some(Signal::TSTP) => stop_self(),
                Some(signal) => {
                    let number = u8::try_from(signal.as_raw()).unwrap_or(u8::MAX);
                    return Exit::Code(SIGNAL_CODE_BASE.saturating_add(number));
                }
            }
        }
    }
}

/// Stops this process, as Ctrl-Z does.
pub(crate) fn stop_self() {
    let _ = kill_process(getpid(), Signal::STOP);
}

/// The signals that are ignored, a bit each. Only Linux reports them without a system call that needs unsafe code;
/// elsewhere none counts as ignored.
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

/// Shells add the number of the signal to this.
pub(crate) const SIGNAL_CODE_BASE: u8 = 128;

/// What is passed on to the command.
const PASSED: [Signal; 6] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
];

/// What a terminal's Ctrl-Z and a shell's `fg` send.
const STOPS: [Signal; 2] = [Signal::TSTP, Signal::CONT];

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
