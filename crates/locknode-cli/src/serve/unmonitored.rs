//! A build without the feature `metrics`: there is no port for monitoring.

use std::convert::Infallible;
use std::time::Duration;

use locknode::Node;

use super::hand_over::{Offer, Passed};
use crate::failure::Failure;
use crate::log::Log;
use crate::pulse::Pulse;

/// No flags.
#[derive(Debug, clap::Args)]
pub(super) struct MonitoringFlags {}

/// No port.
#[derive(Debug)]
pub(super) struct Monitoring;

impl Monitoring {
    pub(super) const fn open(_: &MonitoringFlags, _: &mut Offer) -> Result<Self, Failure> {
        Ok(Self)
    }

    pub(super) const fn passed(&self) -> Result<Option<Passed>, Failure> {
        Ok(None)
    }

    pub(super) const fn beat(&self) -> Option<Duration> {
        None
    }

    pub(super) fn start(
        self,
        _: &Node,
        _: Option<&Pulse>,
        _: &Log,
    ) -> Result<impl Future<Output = Infallible> + use<>, Failure> {
        Ok(std::future::pending())
    }
}
