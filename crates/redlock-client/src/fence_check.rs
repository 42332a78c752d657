//! The resource's side of fencing tokens: accept the current holder, reject earlier ones.
//!
//! The rule is one comparison `[F9]`: a token at least as high as the highest seen for the name is
//! accepted and becomes the highest; a lower one is rejected. The highest token must be as durable as
//! the data. Comparing, raising and writing must be one step, or a late write slips in between.
//!
//! * A database does all of it in the transaction of the write:
//!   `UPDATE account SET balance = ?, fence = ?token WHERE id = ? AND fence <= ?token`. If no row
//!   changed, the token is too old.
//! * [`FenceCheck`] does the same for a resource written in Rust, on top of a [`FenceStore`].

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;

use parking_lot::Mutex;
use redlock_proto::FencingToken;

/// Stores the highest tokens next to the data: in the same file or the same transaction.
pub trait FenceStore {
    /// The error of the store.
    type Error;

    /// The highest token remembered for the name.
    ///
    /// # Errors
    /// If it cannot be read. Nothing is written then.
    fn highest(&mut self, name: &[u8]) -> Result<Option<FencingToken>, Self::Error>;

    /// Remembers a token for the name.
    ///
    /// The token must be durable no later than the data written after it. If data outlive their token, a
    /// late holder's write is accepted.
    ///
    /// # Errors
    /// If it cannot be stored. Nothing is written then.
    fn remember(&mut self, name: &[u8], token: FencingToken) -> Result<(), Self::Error>;
}

/// Keeps the highest tokens in memory, for a resource whose data are in memory too. Entries are never
/// removed.
#[derive(Clone, Debug, Default)]
pub struct MemoryFences {
    highest: HashMap<Box<[u8]>, FencingToken>,
}

/// Rejects writes with stale fencing tokens.
///
/// ```
/// use redlock_client::{FenceCheck, FencingToken, Rejected};
///
/// let accounts = FenceCheck::in_memory();
/// let [first, second] = [41, 42].map(|n| FencingToken::new(n).unwrap());
/// assert_eq!(accounts.write("account/7", second, |_| Ok("written")), Ok("written"));
/// let late = accounts.write("account/7", first, |_| Ok("written"));
/// assert_eq!(late, Err(Rejected::Stale { token: first, highest: second }));
/// ```
#[derive(Debug, Default)]
pub struct FenceCheck<S = MemoryFences> {
    store: Mutex<S>,
}

/// Why a write was rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejected<E = Infallible> {
    /// A later holder has written: stop.
    Stale {
        /// The token of the write.
        token: FencingToken,
        /// The highest token that the resource has seen.
        highest: FencingToken,
    },
    /// The store failed.
    Store(E),
}

impl FenceCheck {
    /// A check with its tokens in memory.
    pub fn in_memory() -> Self {
        Self::default()
    }
}

impl<S: FenceStore> FenceCheck<S> {
    /// A check with its tokens in `store`.
    pub fn new(store: S) -> Self {
        Self {
            store: Mutex::new(store),
        }
    }

    /// Calls `write` if the token is not stale.
    ///
    /// Writes exclude each other, so none is under way when a later token is accepted. `write` should
    /// wait for nothing but the store.
    ///
    /// # Errors
    /// [`Rejected::Stale`] if a higher token was seen for this name, [`Rejected::Store`] with the error
    /// of the store or of `write`.
    pub fn write<T>(
        &self,
        name: impl AsRef<[u8]>,
        token: FencingToken,
        write: impl FnOnce(&mut S) -> Result<T, S::Error>,
    ) -> Result<T, Rejected<S::Error>> {
        let name = name.as_ref();
        let mut store = self.store.lock();
        let highest = store.highest(name).map_err(Rejected::Store)?;
        match highest {
            // [F9] An equal token is the same holder.
            Some(highest) if token < highest => return Err(Rejected::Stale { token, highest }),
            Some(highest) if token == highest => {}
            _ => store.remember(name, token).map_err(Rejected::Store)?,
        }
        write(&mut store).map_err(Rejected::Store)
    }

    /// Accepts and remembers the token if it is not stale. The resource itself must ensure that an
    /// accepted write ends before one with a later token begins.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn check(
        &self,
        name: impl AsRef<[u8]>,
        token: FencingToken,
    ) -> Result<(), Rejected<S::Error>> {
        self.write(name, token, |_| Ok(()))
    }

    /// The store.
    pub fn into_inner(self) -> S {
        self.store.into_inner()
    }
}

impl FenceStore for MemoryFences {
    type Error = Infallible;

    fn highest(&mut self, name: &[u8]) -> Result<Option<FencingToken>, Infallible> {
        Ok(self.highest.get(name).copied())
    }

    fn remember(&mut self, name: &[u8], token: FencingToken) -> Result<(), Infallible> {
        self.highest.insert(name.into(), token);
        Ok(())
    }
}

impl<E: fmt::Display> fmt::Display for Rejected<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { token, highest } => write!(
                f,
                "fencing token {token} is stale, {highest} was seen: there has been a later holder, stop"
            ),
            Self::Store(error) => write!(f, "cannot check the fencing token: {error}"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Rejected<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Stale { .. } => None,
            Self::Store(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(n: u64) -> FencingToken {
        FencingToken::new(n).unwrap()
    }

    /// `[F9]`
    #[test]
    fn the_highest_token_and_higher_ones_may_write_and_lower_ones_never() {
        let check = FenceCheck::in_memory();
        let mut written = Vec::new();
        for n in [3, 3, 7, 5, 3, 7, 6, 8, 7] {
            let outcome = check.write("a", token(n), |_| {
                written.push(n);
                Ok(())
            });
            assert_eq!(outcome.is_ok(), written.last() == Some(&n), "{n}");
        }
        assert_eq!(written, [3, 3, 7, 7, 8]);
        assert_eq!(check.check("b", token(1)), Ok(()), "another name");
        let stale = check.check("a", token(7)).unwrap_err().to_string();
        assert!(
            stale.starts_with("fencing token 7 is stale, 8 was seen"),
            "{stale}"
        );
    }

    /// A store that can be full.
    #[derive(Debug, Default)]
    struct Disk {
        fences: MemoryFences,
        is_full: bool,
    }

    impl FenceStore for Disk {
        type Error = &'static str;

        fn highest(&mut self, name: &[u8]) -> Result<Option<FencingToken>, &'static str> {
            Ok(self.fences.highest.get(name).copied())
        }

        fn remember(&mut self, name: &[u8], token: FencingToken) -> Result<(), &'static str> {
            if self.is_full {
                Err("full")
            } else {
                self.fences.remember(name, token).map_err(|_| "never")
            }
        }
    }

    /// `[F9]`
    #[test]
    fn nothing_is_written_unless_its_token_is_remembered() {
        let disk = Disk {
            is_full: true,
            ..Disk::default()
        };
        let check = FenceCheck::new(disk);
        let outcome = check.write("a", token(2), |_| -> Result<(), _> {
            unreachable!("the token is not remembered")
        });
        assert_eq!(outcome, Err(Rejected::Store("full")));
        let disk = check.into_inner();
        assert!(disk.fences.highest.is_empty());
        // A write that fails was accepted before: its token counts.
        let check = FenceCheck::new(Disk::default());
        let outcome: Result<(), _> = check.write("a", token(2), |_| Err("no room"));
        assert_eq!(outcome, Err(Rejected::Store("no room")));
        assert!(matches!(
            check.check("a", token(1)),
            Err(Rejected::Stale { .. })
        ));
    }
}
