//! A request for a lock.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use redlock_proto::{ErrorKind, LockTerms, RenewPolicy, RetryPolicy, Time, Token};

use crate::error::Error;
use crate::guard::Guard;
use crate::handle::Handle;
use crate::inbox::Command;
use crate::label;
use crate::limits;
use crate::lock_state::LockState;

/// A request for a lock: its TTL, how long to try, and how to keep it.
///
/// ```no_run
/// use std::time::Duration;
/// use redlock_client::RenewPolicy;
///
/// # async fn example(redlock: redlock_client::Redlock) -> Result<(), redlock_client::Error> {
/// let request = redlock
///     .lock("import")
///     .ttl(Duration::from_secs(10))
///     .wait_for(Duration::from_secs(30))
///     .renew(RenewPolicy::until(Duration::from_secs(3600)));
/// let guard = request.acquire().await?;
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until `acquire` or `try_acquire`"]
pub struct LockRequest {
    pub(crate) handle: Arc<Handle>,
    /// Not checked yet, and without a timeout. Boxed because futures move requests a lot.
    pub(crate) terms: Box<LockTerms>,
    node_timeout: Option<Duration>,
    adopt: Option<Box<Token>>,
}

impl LockRequest {
    pub(crate) fn new(handle: Arc<Handle>, key: &[u8], adopt: Option<Token>) -> Self {
        let terms = LockTerms {
            key: limits::whole_key(&handle.config.key_prefix, key),
            ttl: TTL,
            timeout: Duration::ZERO,
            retry: handle.config.retry,
            renew: None,
            hold_at_least: Duration::ZERO,
            label: handle.config.label.clone(),
        };
        Self {
            node_timeout: handle.config.node_timeout,
            handle,
            terms: Box::new(terms),
            adopt: adopt.map(Box::new),
        }
    }

    /// Sets how long the nodes keep the lock if it is neither extended nor released. Default: 10 s.
    /// Whole milliseconds, longer than the drift.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.terms.ttl = ttl;
        self
    }

    /// Lets `acquire` retry until `wait` has passed.
    pub fn wait_for(self, wait: Duration) -> Self {
        self.retry(RetryPolicy::wait_for(wait))
    }

    /// Sets how `acquire` retries. Default: the client's policy.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.terms.retry = policy;
        self
    }

    /// Renews the lock while the guard lives, within the policy's bound. Default: no renewal.
    pub fn renew(mut self, policy: RenewPolicy) -> Self {
        self.terms.renew = Some(policy);
        self
    }

    /// Keeps the key for `time` after the acquisition, even if it is released sooner. So a host whose
    /// clock is behind does not repeat a short job.
    pub fn hold_at_least(mut self, time: Duration) -> Self {
        self.terms.hold_at_least = time;
        self
    }

    /// Sets what nodes are told of the holder, as [`Builder::label`](crate::Builder::label) does.
    /// Default: the client's.
    pub fn label(mut self, label: impl AsRef<str>) -> Self {
        self.terms.label = label::some(label.as_ref());
        self
    }

    /// Sets how long a node has to reply. Default: the client's.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.node_timeout = Some(timeout);
        self
    }

    /// The same request for another key.
    pub(crate) fn with_key(&self, key: &[u8]) -> Self {
        let mut request = self.clone();
        request.terms.key = limits::whole_key(&self.handle.config.key_prefix, key);
        request
    }

    /// The same request to another client's nodes.
    pub(crate) fn on(mut self, handle: &Arc<Handle>, key: &[u8]) -> Self {
        self.handle = Arc::clone(handle);
        self.with_key(key)
    }

    /// Whether the options are valid.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.clone().checked_terms().map(|_| ())
    }

    /// The key, without the client's prefix.
    pub fn key(&self) -> &[u8] {
        let prefix_len = self.handle.config.key_prefix.len();
        self.terms.key.get(prefix_len..).unwrap_or_default()
    }

    /// Tries once. `None` means that another client holds the lock.
    ///
    /// # Errors
    /// [`ErrorKind::NoQuorum`] if too few nodes took part, [`ErrorKind::Expired`] if they were too
    /// slow, [`ErrorKind::Contended`] if clients kept splitting the votes, [`ErrorKind::Config`] for a
    /// bad request, [`ErrorKind::Cancelled`] if the client is closed.
    ///
    /// # Cancel safety
    /// Some nodes may have granted the lock; it is released in the background.
    pub async fn try_acquire(self) -> Result<Option<Guard>, Error> {
        let acquired = self.retry(RetryPolicy::tries(1)).acquire().await;
        acquired.map(Some).or_else(Error::none_if_busy)
    }

    /// Tries until it acquires the lock or the retry policy ends.
    ///
    /// Attempts in which clients split the votes do not count, see
    /// [trying again](crate#trying-again).
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if another client holds the lock, [`ErrorKind::Timeout`] if the wait ended
    /// before the nodes had decided, and those of [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    /// Some nodes may have granted the lock; it is released in the background.
    pub async fn acquire(self) -> Result<Guard, Error> {
        #[cfg(feature = "tracing")]
        return self.acquire_in_span().await;
        #[cfg(not(feature = "tracing"))]
        self.acquire_now().await
    }

    /// Wraps the acquire in a span, which has neither the key nor the token.
    #[cfg(feature = "tracing")]
    async fn acquire_in_span(self) -> Result<Guard, Error> {
        use tracing::Instrument as _;
        let span = tracing::debug_span!(
            target: "redlock_client",
            "acquire",
            ttl = ?self.terms.ttl,
            tries = tracing::field::Empty,
            error = tracing::field::Empty,
        );
        let acquired = self.acquire_now().instrument(span.clone()).await;
        match &acquired {
            Ok(guard) => span.record("tries", guard.tries()),
            Err(error) => span.record("error", tracing::field::debug(error.kind())),
        };
        acquired
    }

    async fn acquire_now(mut self) -> Result<Guard, Error> {
        let terms = Arc::new(self.checked_terms()?);
        let retry = terms.retry;
        let config = &self.handle.config;
        let started = match config.observer {
            Some(_) => self.handle.now(),
            None => Time::ZERO,
        };
        let prefix_len = config.key_prefix.len();
        let state = LockState::new(
            Arc::clone(&terms),
            prefix_len,
            self.adopt.is_some(),
            started,
        );
        let state = Arc::new(state);
        let (answer, answered) = oneshot::channel();
        self.handle.submit(Command::Acquire {
            state: Arc::clone(&state),
            terms,
            adopt: self.adopt.as_deref().copied(),
            answer,
        })?;
        let mut pending = Pending {
            handle: &self.handle,
            state: &state,
            is_decided: false,
        };
        let patience = retry.wait().unwrap_or_default();
        let granted = self.handle.answer(answered, patience).await;
        // Without an answer the acquire stays pending, and dropping it takes it back.
        let granted = granted?;
        pending.is_decided = true;
        let granted = granted?;
        drop(pending);
        let guard = Guard::new(self.handle, state, granted);
        // The caller may have been woken late.
        if guard.is_valid() {
            Ok(guard)
        } else {
            Err(guard.error().unwrap_or_else(|| {
                Error::new(
                    ErrorKind::Expired,
                    "the lock was granted, but expired before it could be used: use a longer TTL",
                )
            }))
        }
    }

    /// The terms, valid and with a timeout. Takes the key.
    fn checked_terms(&mut self) -> Result<LockTerms, Error> {
        let (terms, drift) = (&mut self.terms, self.handle.config.drift);
        let ttl = limits::ttl(terms.ttl, drift)?;
        terms.retry.check()?;
        if let Some(renew) = &terms.renew {
            renew.check(ttl)?;
        }
        if terms.hold_at_least != Duration::ZERO {
            limits::ttl(terms.hold_at_least, drift)?;
        }
        Ok(LockTerms {
            key: limits::key(std::mem::take(&mut terms.key))?,
            ttl,
            timeout: limits::node_timeout(self.node_timeout, ttl),
            retry: terms.retry,
            renew: terms.renew,
            hold_at_least: terms.hold_at_least,
            label: terms.label.take().map(label::checked).transpose()?,
        })
    }
}

/// The options of a request that is made of requests for single locks, in the field `$each`.
macro_rules! options {
    ($each:ident) => {
        /// As [`LockRequest::ttl`](crate::LockRequest::ttl), for each lock.
        pub fn ttl(mut self, ttl: Duration) -> Self {
            self.$each = self.$each.ttl(ttl);
            self
        }

        /// As [`LockRequest::wait_for`](crate::LockRequest::wait_for), for all locks together.
        pub fn wait_for(mut self, wait: Duration) -> Self {
            self.$each = self.$each.wait_for(wait);
            self
        }

        /// As [`LockRequest::retry`](crate::LockRequest::retry): tries count for each lock, a wait
        /// for all together.
        pub fn retry(mut self, policy: RetryPolicy) -> Self {
            self.$each = self.$each.retry(policy);
            self
        }

        /// As [`LockRequest::renew`](crate::LockRequest::renew), for each lock.
        pub fn renew(mut self, policy: RenewPolicy) -> Self {
            self.$each = self.$each.renew(policy);
            self
        }

        /// As [`LockRequest::hold_at_least`](crate::LockRequest::hold_at_least), for each lock.
        pub fn hold_at_least(mut self, time: Duration) -> Self {
            self.$each = self.$each.hold_at_least(time);
            self
        }

        /// As [`LockRequest::label`](crate::LockRequest::label), for each lock.
        pub fn label(mut self, label: impl AsRef<str>) -> Self {
            self.$each = self.$each.label(label);
            self
        }

        /// As [`LockRequest::node_timeout`](crate::LockRequest::node_timeout), for each lock.
        pub fn node_timeout(mut self, timeout: Duration) -> Self {
            self.$each = self.$each.node_timeout(timeout);
            self
        }
    };
}
pub(crate) use options;

/// An acquire under way. Dropping it before it is decided takes it back.
struct Pending<'a> {
    handle: &'a Handle,
    state: &'a Arc<LockState>,
    is_decided: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.is_decided {
            // Without a driver there is nothing to take back.
            let _ = self.handle.submit_if_running(Command::Release {
                state: Arc::clone(self.state),
                token: None,
                answer: None,
            });
        }
    }
}

/// Long enough for most work, short enough to wait for after a crash.
const TTL: Duration = Duration::from_secs(10);
