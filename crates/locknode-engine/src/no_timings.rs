//! A build without the feature `metrics`: no command is timed.

use std::ops::Range;
use std::time::Duration;

use crate::client::Client;
use crate::command_id::CommandId;
use crate::flags::Flags;
use crate::settings::Settings;
use crate::time::{Time, WallTime};

/// Nothing.
#[derive(Debug)]
pub(crate) struct Timings;

/// No command begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Began {}

/// A command that has run.
#[derive(Debug)]
#[expect(dead_code, reason = "read where commands are timed")]
pub(crate) struct Ran<'r> {
    pub(crate) id: CommandId,
    pub(crate) flags: Flags,
    pub(crate) args: &'r [&'r [u8]],
    /// The places of passwords in it.
    pub(crate) secrets: Range<usize>,
    pub(crate) client: &'r Client,
    pub(crate) wall: WallTime,
    pub(crate) weight: u64,
}

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
