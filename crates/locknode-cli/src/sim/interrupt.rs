//! Ctrl-C, while threads compute.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::serving;

/// From now on Ctrl-C does not end the process: it sets the flag.
///
/// # Errors
///
/// When the operating system refuses.
pub(super) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let runtime = serving::runtime()?;
    let listening = {
        let _inside = runtime.enter();
        signal(SignalKind::interrupt())
    };
    let mut interrupts = listening
        .map_err(|error| Failure::internal(format!("cannot wait for signals: {error}")))?;
    let flag = Arc::new(AtomicBool::new(false));
    let is_set = Arc::clone(&flag);
    let body = move || {
        runtime.block_on(async {
            while interrupts.recv().await.is_some() {
                is_set.store(true, Ordering::Relaxed);
            }
        });
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(body)
        .map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))?;
    Ok(flag)
}
