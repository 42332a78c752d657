//! The thread on which the client works: connections, names, renewals. The thread that watches the lock and the
//! command has another, so that neither waits for the other.

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::serving;

/// Ends when dropped.
#[derive(Debug)]
pub(super) struct ClientThread {
    runtime: Handle,
    /// Its end ends the thread.
    _alive: oneshot::Sender<()>,
}

/// Work on that thread; given up when dropped.
#[derive(Debug)]
pub(super) struct Work<T> {
    tasks: JoinSet<T>,
}

impl ClientThread {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When the operating system refuses.
    pub(super) fn start() -> Result<Self, Failure> {
        let runtime = serving::runtime()?;
        let handle = runtime.handle().clone();
        let (alive, ended) = oneshot::channel();
        serving::spawn("locknode-client".to_owned(), move || {
            let _ = runtime.block_on(ended);
            // A resolver that hangs must not delay the end.
            runtime.shutdown_background();
        })?;
        Ok(Self {
            runtime: handle,
            _alive: alive,
        })
    }

    /// Starts work there.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Work<T> {
        let mut tasks = JoinSet::new();
        tasks.spawn_on(work, &self.runtime);
        Work { tasks }
    }
}

impl<T: 'static> Work<T> {
    /// The result of the work.
    ///
    /// # Errors
    ///
    /// When the work ended without a result.
    ///
    /// # Cancel safety
    ///
    /// The work goes on, and can be waited for again.
    pub(super) async fn result(&mut self) -> Result<T, Failure> {
        let ended = || Failure::internal("the client's thread ended unexpectedly");
        let result = self.tasks.join_next().await;
        result.ok_or_else(ended)?.map_err(|_| ended())
    }

    /// Gives the work up, and waits until it is: what it had begun is known to the client then.
    pub(super) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}
