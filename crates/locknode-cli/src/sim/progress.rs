//! How far a long run is: a line that is redrawn on a terminal, a line every ten seconds elsewhere. On standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Shows lines, and removes the last one when it is dropped.
#[derive(Debug)]
pub(super) struct Progress {
    is_terminal: bool,
    shown_at: Instant,
    /// A line is on the terminal.
    is_shown: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            is_terminal: io::stderr().is_terminal(),
            shown_at: Instant::now(),
            is_shown: false,
        }
    }

    /// Shows a line if it is time for one.
    pub(super) fn show(&mut self, line: impl FnOnce() -> String) {
        let every = if self.is_terminal { REDRAW } else { REPORT };
        if self.shown_at.elapsed() < every {
            return;
        }
        self.shown_at = Instant::now();
        let mut line = line();
        // With standard error gone there is nobody to show it to; the result is what counts.
        if self.is_terminal {
            line.truncate(WIDTH);
            let _ = write!(io::stderr(), "\r{line}{CLEAR_REST}");
            self.is_shown = true;
        } else {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r{CLEAR_REST}");
        }
    }
}

/// Quick enough to look alive.
pub(super) const REDRAW: Duration = Duration::from_millis(100);

/// A log of a long run should stay short.
const REPORT: Duration = Duration::from_secs(10);

/// A line that is wrapped could not be redrawn; narrower terminals are rare. The line is ASCII.
const WIDTH: usize = 79;

const CLEAR_REST: &str = "\x1b[K";
