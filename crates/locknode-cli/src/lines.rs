//! Lines on standard error that nobody ever waits for: a thread of their own writes them, and when it cannot keep up,
//! because a pipe is full or a terminal was stopped with Ctrl-S, further lines are dropped.

use std::io::Write as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};

use crate::failure::Failure;
use crate::serving;

/// Where lines for standard error go.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    sender: SyncSender<Job>,
}

#[derive(Debug)]
enum Job {
    Line(String),
    /// Answer when all before this is written.
    Answer(SyncSender<()>),
}

impl Lines {
    /// Starts the thread that writes.
    ///
    /// # Errors
    ///
    /// When the operating system has no thread left.
    pub(crate) fn start() -> Result<Self, Failure> {
        let (sender, jobs) = sync_channel(LINES_MAX);
        serving::spawn("locknode-stderr".to_owned(), move || write(&jobs))?;
        Ok(Self { sender })
    }

    /// Has a line written some time, or drops it.
    pub(crate) fn say(&self, mut line: String) {
        line.push('\n');
        let _ = self.sender.try_send(Job::Line(line));
    }

    /// Waits a moment until what was said is written. For the end, when nothing depends on it any more.
    pub(crate) fn finish(&self) {
        let (answer, answered) = sync_channel(1);
        if self.sender.try_send(Job::Answer(answer)).is_ok() {
            let _ = answered.recv_timeout(LINGER);
        }
    }
}

/// One write per line, so that it does not mix with what others write. A failed write cannot be reported anywhere.
fn write(jobs: &Receiver<Job>) {
    for job in jobs {
        match job {
            Job::Line(line) if may_write() => {
                let _ = std::io::stderr().lock().write_all(line.as_bytes());
            }
            Job::Line(_) => {}
            Job::Answer(answer) => {
                let _ = answer.try_send(());
            }
        }
    }
}

/// Whether writing does not stop the whole process: a terminal with `tostop` does that to who is in the background.
fn may_write() -> bool {
    let stderr = std::io::stderr();
    let stops =
        tcgetattr(&stderr).is_ok_and(|modes| modes.local_modes.contains(LocalModes::TOSTOP));
    !stops || tcgetpgrp(&stderr).is_ok_and(|group| group == getpgrp())
}

/// Everything that one run says, many times over.
const LINES_MAX: usize = 256;

/// Enough for a reader that is merely busy.
const LINGER: Duration = Duration::from_millis(500);
