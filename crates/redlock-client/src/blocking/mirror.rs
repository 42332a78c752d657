//! Macros for the blocking form of an async type, which adds the client whose thread does the work.

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

            crate::request::options!(inner);

            /// Tries once. `None` means that another client holds a requested lock; the caller then
            /// holds none.
            ///
            /// # Errors
            ///
            #[doc = concat!("Those of the async [`try_acquire`](crate::", stringify!($name), "::try_acquire).")]
            pub fn try_acquire(self) -> Result<Option<$guard>, Error> {
                let Self { inner, client } = self;
                let guard = client.wait(inner.try_acquire())??;
                Ok(guard.map(|guard| $guard::new(guard, client)))
            }

            /// Tries until it acquires the lock or the retry policy ends.
            ///
            /// # Errors
            ///
            #[doc = concat!("Those of the async [`acquire`](crate::", stringify!($name), "::acquire).")]
            pub fn acquire(self) -> Result<$guard, Error> {
                let Self { inner, client } = self;
                let guard = client.wait(inner.acquire())??;
                Ok($guard::new(guard, client))
            }
        }
    };
}

/// A guard with the methods of the async guard of the same name.
macro_rules! guard {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[derive(Debug)]
        pub struct $name {
            /// Shared with calls while they run on the client's thread. Declared before `client`: its
            /// drop must send the release before the thread ends.
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

            /// How long everything in the guard is certain to be held, by the local clock; zero if a
            /// lock is lost or expired.
            pub fn validity(&self) -> Duration {
                self.inner.validity()
            }

            /// Whether everything in the guard is held now.
            pub fn is_valid(&self) -> bool {
                self.inner.is_valid()
            }

            /// Extends to `ttl` from now on, if a majority of the nodes still holds the lock.
            ///
            /// # Errors
            ///
            /// Those of the async [`extend`](crate::Guard::extend).
            pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
                let guard = Arc::clone(&self.inner);
                self.client.wait(async move {
                    let result = guard.extend(ttl).await;
                    // Dropped before the caller continues, because it may release next.
                    drop(guard);
                    result
                })?
            }

            /// Waits up to `timeout` until the lock is lost or about to expire; `None` if it is
            /// still held then. A timeout of zero only checks.
            pub fn lost(&self, timeout: Duration) -> Option<Error> {
                let guard = Arc::clone(&self.inner);
                let outcome = self.client.wait(async move {
                    let outcome = tokio::time::timeout(timeout, guard.lost()).await.ok();
                    drop(guard);
                    outcome
                });
                // Without its thread the client renews nothing, which is a loss too.
                outcome.unwrap_or_else(Some)
            }
        }
    };
}

/// What a guard of one lock has besides the methods of [`guard`].
macro_rules! single_lock {
    ($name:ident) => {
        impl $name {
            /// The key, without the client's prefix.
            pub fn key(&self) -> &[u8] {
                self.inner.key()
            }

            /// The secret that proves who holds the lock. Do not log it.
            pub fn token(&self) -> &Token {
                self.inner.token()
            }

            /// As the async [`fencing`](crate::Guard::fencing).
            pub fn fencing(&self) -> Option<FencingToken> {
                self.inner.fencing()
            }
        }
    };
}

pub(super) use {guard, request, single_lock};
