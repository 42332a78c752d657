//! The blocking form of an async type: the same type, and the client whose thread does its work.

/// A request with the options of the async request of the same name.
macro_rules! request {
    ($(#[$attribute:meta])* $name:ident gives $guard:ident) => {
        $(#[$attribute])*
        #[derive(Clone, Debug)]
        #[must_use = "a request does nothing until it is acquired"]
        pub struct $name {
            inner: crate::$name,
            client: Arc<Client>,
        }

        impl $name {
            pub(super) fn new(inner: crate::$name, client: &Arc<Client>) -> Self {
                Self {
                    inner,
                    client: Arc::clone(client),
                }
            }

            /// How long the nodes keep a lock that is neither extended nor released. Default 10 s.
            pub fn ttl(self, ttl: Duration) -> Self {
                self.map(|inner| inner.ttl(ttl))
            }

            /// Lets [`acquire`](Self::acquire) try until this much time has passed.
            pub fn wait_for(self, wait: Duration) -> Self {
                self.map(|inner| inner.wait_for(wait))
            }

            /// How [`acquire`](Self::acquire) tries again. Default: the client's policy.
            pub fn retry(self, policy: RetryPolicy) -> Self {
                self.map(|inner| inner.retry(policy))
            }

            /// Extends what is held automatically while the guard lives, within the policy's bound.
            /// Default: never.
            pub fn renew(self, policy: RenewPolicy) -> Self {
                self.map(|inner| inner.renew(policy))
            }

            /// Keeps the key this long from the acquisition on, even if it is released sooner.
            pub fn hold_at_least(self, time: Duration) -> Self {
                self.map(|inner| inner.hold_at_least(time))
            }

            /// How long a node has for a reply. Default: the client's timeout.
            pub fn node_timeout(self, timeout: Duration) -> Self {
                self.map(|inner| inner.node_timeout(timeout))
            }

            /// Tries once. `None` means that another client holds a lock that is wanted; none is
            /// held then.
            ///
            /// # Errors
            ///
            #[doc = concat!("Those of the async [`try_acquire`](crate::", stringify!($name), "::try_acquire).")]
            pub fn try_acquire(self) -> Result<Option<$guard>, Error> {
                let Self { inner, client } = self;
                let guard = client.wait(inner.try_acquire())??;
                Ok(guard.map(|guard| $guard::new(guard, client)))
            }

            /// Tries as often and as long as the retry policy says.
            ///
            /// # Errors
            ///
            #[doc = concat!("Those of the async [`acquire`](crate::", stringify!($name), "::acquire).")]
            pub fn acquire(self) -> Result<$guard, Error> {
                let Self { inner, client } = self;
                let guard = client.wait(inner.acquire())??;
                Ok($guard::new(guard, client))
            }

            fn map(self, change: impl FnOnce(crate::$name) -> crate::$name) -> Self {
                Self {
                    inner: change(self.inner),
                    client: self.client,
                }
            }
        }
    };
}

/// A guard that is extended, looked at and waited for as the async guard of the same name.
macro_rules! guard {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[derive(Debug)]
        pub struct $name {
            /// Shared with the calls that run on the client's thread, for no longer than they take.
            /// It goes before the client, whose thread must hear of the release before it ends.
            inner: Arc<crate::$name>,
            client: Arc<Client>,
        }

        impl $name {
            pub(super) fn new(inner: crate::$name, client: Arc<Client>) -> Self {
                Self {
                    inner: Arc::new(inner),
                    client,
                }
            }

            /// How long all that it stands for is still held for certain, by the local clock; zero
            /// when the lock is lost or has expired.
            pub fn validity(&self) -> Duration {
                self.inner.validity()
            }

            /// Whether all that it stands for is held now.
            pub fn is_valid(&self) -> bool {
                self.inner.is_valid()
            }

            /// Lets the lock live for `ttl` from now on, if a majority of the nodes still holds it.
            ///
            /// # Errors
            ///
            #[doc = concat!("Those of the async [`extend`](crate::", stringify!($name), "::extend).")]
            pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
                let guard = Arc::clone(&self.inner);
                self.client.wait(async move {
                    let result = guard.extend(ttl).await;
                    // Given back before the caller goes on, who may release next.
                    drop(guard);
                    result
                })?
            }

            /// Waits up to `timeout` for the moment at which the lock is lost, or about to expire;
            /// `None` when that did not come. With a timeout of zero it only looks.
            pub fn lost(&self, timeout: Duration) -> Option<Error> {
                let guard = Arc::clone(&self.inner);
                let outcome = self.client.wait(async move {
                    let outcome = tokio::time::timeout(timeout, guard.lost()).await.ok();
                    drop(guard);
                    outcome
                });
                // Without its thread the client renews nothing, which is a loss as well.
                outcome.unwrap_or_else(Some)
            }
        }
    };
}

pub(super) use {guard, request};
