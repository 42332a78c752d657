//! MONITOR: the commands of all clients, as they run, sent to those who watch.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::client::Client;
use crate::observers::Observers;
use crate::time::WallTime;

/// The clients that watch. One that does not read is closed when its mailbox is full.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
}

/// A connection's watch, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Monitor {
    observers: Arc<Observers>,
    id: u64,
}

impl Monitor {
    pub(crate) fn start(observers: &Arc<Observers>, client: &Arc<Client>) -> Self {
        observers.add_interest();
        let monitors = &observers.monitors;
        monitors.count.fetch_add(1, Ordering::Relaxed);
        let mut clients = monitors.clients.lock();
        clients.insert(client.id(), Arc::clone(client));
        Self {
            observers: Arc::clone(observers),
            id: client.id(),
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let monitors = &self.observers.monitors;
        monitors.clients.lock().remove(&self.id);
        monitors.count.fetch_sub(1, Ordering::Relaxed);
        self.observers.remove_interest();
    }
}

impl Monitors {
    pub(crate) fn are_there(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Returns whether the client watches.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.clients.lock().contains_key(&id)
    }

    /// Sends a command to those who watch; `words` with `None` for what must stay secret.
    pub(crate) fn show<'a>(
        &self,
        at: WallTime,
        db: u8,
        client: &Client,
        words: impl Iterator<Item = Option<&'a [u8]>>,
    ) {
        let micros = at.as_unix_nanos() / 1_000;
        let (secs, micros) = (micros / MICROS_PER_SEC, micros % MICROS_PER_SEC);
        let unix = if client.addr.starts_with('/') {
            "unix:"
        } else {
            ""
        };
        let addr = client.addr.strip_suffix(":0").unwrap_or(&client.addr);
        // Writing to a string cannot fail.
        let mut line = format!("{secs}.{micros:06} [{db} {unix}{addr}]");
        for word in words {
            line.push_str(" \"");
            match word {
                None => line.push_str("(redacted)"),
                Some(word) => word.iter().for_each(|byte| quote(*byte, &mut line)),
            }
            line.push('"');
        }
        for monitor in self.clients.lock().values() {
            monitor.send(|push| push.simple(&line));
        }
    }
}

/// Appends a byte of an argument as Redis does.
fn quote(byte: u8, line: &mut String) {
    match byte {
        b'\\' | b'"' => line.extend(['\\', char::from(byte)]),
        b'\n' => line.push_str("\\n"),
        b'\r' => line.push_str("\\r"),
        b'\t' => line.push_str("\\t"),
        0x07 => line.push_str("\\a"),
        0x08 => line.push_str("\\b"),
        b' '..=b'~' => line.push(char::from(byte)),
        _ => {
            let _ = write!(line, "\\x{byte:02x}");
        }
    }
}

const MICROS_PER_SEC: u64 = 1_000_000;
