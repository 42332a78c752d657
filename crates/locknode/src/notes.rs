//! Lines for the log: what operators did through commands, as the engine tells it.

use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::sync::Notify;

use crate::sync_waiters::lock;

/// Lines that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    lines: Mutex<VecDeque<String>>,
    added: Notify,
}

impl Notes {
    /// Adds a line; drops it while too many wait.
    pub(crate) fn add(&self, line: &str) {
        let mut lines = lock(&self.lines);
        if lines.len() < LINES_MAX {
            lines.push_back(line.to_owned());
            drop(lines);
            self.added.notify_one();
        }
    }

    /// Waits for a line and takes it.
    pub(crate) async fn next(&self) -> String {
        loop {
            let line = lock(&self.lines).pop_front();
            match line {
                Some(line) => return line,
                None => self.added.notified().await,
            }
        }
    }
}

/// A program that takes no lines, or cannot write them, loses no more memory than this.
const LINES_MAX: usize = 64;
