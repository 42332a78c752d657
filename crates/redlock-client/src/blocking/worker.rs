//! The thread of a blocking client, with a small tokio runtime.
//!
//! A caller hands over a future and waits on a std channel. So the caller may be any thread, even one
//! inside another tokio runtime, where waiting through tokio would panic.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Dropping it makes the thread end, without waiting for it.
#[derive(Debug)]
pub(super) struct Worker {
    handle: Handle,
    /// The process that the thread belongs to: a fork copies the client without it.
    process: u32,
    /// Never sent on: dropping it is the message.
    _stop: oneshot::Sender<Infallible>,
}

impl Worker {
    /// Starts the thread. At its end it runs `farewell`, for `farewell_time_max` at most.
    ///
    /// # Errors
    ///
    /// Those of the system, if it has no thread or file descriptor left.
    pub(super) fn start<F>(farewell: F, farewell_time_max: Duration) -> io::Result<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel::<Infallible>();
        let (report, started) = mpsc::sync_channel(1);
        // The runtime is built and dropped on the thread: dropping one inside another panics.
        let run = move || {
            let runtime = match Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .build()
            {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = report.send(Err(error));
                    return;
                }
            };
            let _ = report.send(Ok(runtime.handle().clone()));
            runtime.block_on(async {
                let _ = stopped.await;
                let _ = timeout(farewell_time_max, farewell).await;
            });
            // Does not wait for host name look-ups on other threads.
            runtime.shutdown_background();
        };
        thread::Builder::new()
            .name(THREAD_NAME.to_owned())
            .spawn(run)?;
        let handle = started
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("the thread ended")))?;
        Ok(Self {
            handle,
            process: std::process::id(),
            _stop: stop,
        })
    }

    /// Whether the thread runs in this process. It does not in one that was forked from it.
    pub(super) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Runs `future` on the thread and waits for its result. `None` if it panicked, which the thread
    /// survives, or if the thread [is not here](Self::is_here).
    pub(super) fn run<F>(&self, future: F) -> Option<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        if !self.is_here() {
            return None;
        }
        let (report, result) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // The channel has room for one, so this never blocks.
            let _ = report.send(future.await);
        });
        result.recv().ok()
    }
}

/// For tools that list the threads of a process.
const THREAD_NAME: &str = "redlock-client";

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    /// Never reached by a test that passes.
    const LONG: Duration = Duration::from_secs(20);

    fn start(farewell: impl Future<Output = ()> + Send + 'static) -> io::Result<Worker> {
        Worker::start(farewell, LONG)
    }

    #[test]
    fn work_is_done_on_the_thread_and_its_result_comes_back() {
        let worker = start(ready(())).unwrap();
        let name = worker.run(async { thread::current().name().map(str::to_owned) });
        assert_eq!(name.flatten().as_deref(), Some(THREAD_NAME));
        let slow = worker.run(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            5
        });
        assert_eq!(slow, Some(5));
    }

    #[test]
    fn a_forked_process_is_not_kept_waiting_for_a_thread_that_it_lacks() {
        let mut worker = start(ready(())).unwrap();
        worker.process = worker.process.wrapping_add(1);
        assert_eq!(worker.run(pending::<()>()), None);
        assert!(!worker.is_here());
    }

    #[tokio::test]
    async fn a_caller_inside_a_runtime_may_start_use_and_drop_it() {
        let worker = start(ready(())).unwrap();
        assert_eq!(
            worker.run(async { tokio::task::yield_now().await }),
            Some(())
        );
        drop(worker);
    }

    #[test]
    fn many_threads_share_it_and_a_panic_harms_only_its_own_call() {
        let worker = start(ready(())).unwrap();
        thread::scope(|scope| {
            for n in 0..8_u32 {
                let worker = &worker;
                scope.spawn(move || {
                    let result = worker.run(async move {
                        assert!(n % 2 == 0, "intended by the test");
                        n
                    });
                    assert_eq!(result, (n % 2 == 0).then_some(n));
                });
            }
        });
        assert_eq!(worker.run(ready(1)), Some(1));
    }

    #[test]
    fn dropping_it_runs_the_farewell_and_ends_the_thread() {
        let (sender, receiver) = mpsc::channel();
        let worker = start(async move { sender.send(()).unwrap() }).unwrap();
        // The end of the thread drops its side of the channel.
        let (held, ended) = mpsc::channel::<Infallible>();
        worker.handle.spawn(async move {
            let _held = held;
            pending::<()>().await;
        });
        drop(worker);
        assert_eq!(receiver.recv_timeout(LONG), Ok(()));
        let end = ended.recv_timeout(LONG);
        assert_eq!(end, Err(mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_farewell_that_hangs_is_cut_off() {
        let (held, ended) = mpsc::channel::<Infallible>();
        let farewell = async move {
            let _held = held;
            pending().await
        };
        drop(Worker::start(farewell, Duration::from_millis(1)).unwrap());
        let end = ended.recv_timeout(LONG);
        assert_eq!(end, Err(mpsc::RecvTimeoutError::Disconnected));
    }
}
