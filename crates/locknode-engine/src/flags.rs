//! What a command may do, and when it is served.

/// A set of flags with Redis's meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    /// Changes keys; held back by CLIENT PAUSE WRITE; refused in read-only scripts.
    pub(crate) const WRITE: Self = Self(1);
    /// Reads keys.
    pub(crate) const READONLY: Self = Self(1 << 1);
    /// Refused when `maxmemory` is reached.
    pub(crate) const DENYOOM: Self = Self(1 << 2);
    /// Takes constant or logarithmic time.
    pub(crate) const FAST: Self = Self(1 << 3);
    /// Concerns the server, not its data.
    pub(crate) const ADMIN: Self = Self(1 << 4);
    /// Not callable from a script.
    pub(crate) const NOSCRIPT: Self = Self(1 << 5);
    /// Served before authentication.
    pub(crate) const NO_AUTH: Self = Self(1 << 6);
    /// Served in quarantine, because it touches no key `[G2]`.
    pub(crate) const LOADING: Self = Self(1 << 7);
    /// May write although it is not a write command itself (scripts); held back by CLIENT PAUSE
    /// WRITE.
    pub(crate) const MAY_WRITE: Self = Self(1 << 8);
    /// Never held back by CLIENT PAUSE.
    pub(crate) const NO_PAUSE: Self = Self(1 << 9);
    /// Needs `enable-debug-command`.
    pub(crate) const PROTECTED: Self = Self(1 << 10);
    /// Begins, ends or leaves a transaction; executed after MULTI, not queued.
    pub(crate) const TRANSACTION: Self = Self(1 << 11);
    /// Refused in a transaction.
    pub(crate) const NO_MULTI: Self = Self(1 << 12);
    /// Takes little time although Redis does not say so, and so is not timed each time.
    pub(crate) const QUICK: Self = Self(1 << 13);

    /// Returns the union of both sets.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns this set without `other`.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether any of `other` is in this set.
    pub(crate) const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether all of `other` are in this set.
    #[inline]
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
