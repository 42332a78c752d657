//! A build without the feature `systemd` tells nobody what the node does.

use std::time::Duration;

use locknode::Node;

use crate::failure::Failure;
use crate::log::Log;
use crate::pulse::Pulse;

#[derive(Clone, Debug, Default)]
pub(super) struct ServiceManager;

impl ServiceManager {
    pub(super) const fn of_environment(_: &Log) -> Self {
        Self
    }

    pub(super) const fn beat(&self) -> Option<Duration> {
        None
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "with systemd, threads can run out"
    )]
    pub(super) const fn watch(&self, _: Option<&Pulse>) -> Result<(), Failure> {
        Ok(())
    }

    pub(super) const fn ready(&self, _: &Node) {}

    pub(super) const fn not_yet(&self, _: &Node, _: Duration) {}

    pub(super) fn reloading(&self, reload: impl FnOnce()) {
        reload();
    }

    pub(super) const fn goes_on_in(&self, _: u32) {}

    pub(super) const fn stopping(&self) {}

    pub(super) async fn follow(&self, _: &Node) {}
}
