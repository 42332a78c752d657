//! Work with a file for a command, on a thread of its own: the connection waits, others do not.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::client::Client;

/// What the file has, or why it could not be read or written.
type Outcome = Result<Vec<u8>, String>;

/// See the module docs.
#[derive(Debug)]
pub(crate) struct FileTask {
    client: Arc<Client>,
    outcome: Mutex<Option<Outcome>>,
}

impl FileTask {
    pub(crate) fn new(client: &Arc<Client>) -> Arc<Self> {
        Arc::new(Self {
            client: Arc::clone(client),
            outcome: Mutex::new(None),
        })
    }

    /// Returns what the thread has to do: the work, and to wake the connection.
    pub(crate) fn job(
        self: &Arc<Self>,
        work: impl FnOnce() -> Outcome + Send + 'static,
    ) -> Box<dyn FnOnce() + Send> {
        let task = Arc::clone(self);
        Box::new(move || {
            let outcome = work();
            *task.outcome.lock() = Some(outcome);
            task.client.wake();
        })
    }

    /// Takes the outcome, once the work is done.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.outcome.lock().take()
    }

    /// Returns whether the work is not done yet.
    pub(crate) fn is_running(&self) -> bool {
        self.outcome.lock().is_none()
    }
}
