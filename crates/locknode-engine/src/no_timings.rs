//! A build without the feature `metrics`: no command is timed.

use std::time::Duration;

use crate::flags::Flags;
use crate::ran::Ran;
use crate::settings::Settings;
use crate::time::Time;

/// Nothing.
#[derive(Debug)]
pub(crate) struct Timings;

/// No command begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Began {}

impl Timings {
    pub(crate) const fn new(_: usize, _: Option<fn() -> Duration>) -> Self {
        Self
    }

    #[inline]
    pub(crate) const fn begin_batch(&self, _: Time) -> u64 {
        0
    }

    #[inline]
    pub(crate) const fn times(&self, _: u64, _: Flags) -> bool {
        false
    }

    pub(crate) const fn begin(&self, _: u64, _: Flags) -> Option<Began> {
        None
    }

    #[inline]
    pub(crate) const fn begin_always(&self) -> Option<Began> {
        None
    }

    pub(crate) const fn end(&self, began: Began, _: &Ran<'_>, _: &Settings) {
        match began {}
    }

    pub(crate) const fn relax(&self, _: Time) {}

    pub(crate) const fn reset(&self) {}
}
