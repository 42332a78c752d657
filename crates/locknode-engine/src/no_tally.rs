//! A build without the feature `metrics`: nothing is counted about locks.

use crate::key_hash::KeyHash;
use crate::time::Time;

/// Nothing.
#[derive(Debug, Default)]
pub(crate) struct Tally(());

impl Tally {
    #[inline]
    pub(crate) const fn granted(&self, _: Time, _: KeyHash, _: u64, _: u8, _: &[u8]) {}

    #[inline]
    pub(crate) const fn released(&self, _: Time, _: KeyHash, _: u64) {}

    #[inline]
    pub(crate) const fn ended(&self, _: KeyHash, _: u64) {}

    #[inline]
    pub(crate) const fn refused(&self, _: Time, _: KeyHash, _: u8, _: &[u8]) {}

    #[inline]
    pub(crate) const fn extended(&self) {}

    pub(crate) const fn foreign_release(&self) {}

    pub(crate) const fn foreign_extension(&self) {}

    pub(crate) const fn forget_locks(&self) {}
}
