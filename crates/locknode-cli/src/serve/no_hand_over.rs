//! A build that hands nothing over: it lacks the feature, or the system does.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use locknode::{Node, NodeBuilder};

use super::restart::RestartFlags;
use crate::failure::Failure;
use crate::log::Log;
use crate::serving::{Service, Serving};

/// No flag.
#[derive(Debug, clap::Args)]
pub(super) struct HandOverFlags {}

#[derive(Debug)]
pub(super) struct Passed;

#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Tcp,
    Tls,
    Unix,
    #[cfg(feature = "metrics")]
    Metrics,
}

#[derive(Debug, Default)]
pub(super) struct Offer {}

#[derive(Debug, Default)]
pub(super) struct Inheritance {}

#[derive(Debug)]
pub(super) enum Waiting {}

#[derive(Debug)]
pub(super) enum Successor {}

pub(super) struct Again;

pub(super) fn wait(
    _: &HandOverFlags,
    _: &RestartFlags,
    _: Duration,
    _: &Node,
    _: impl Iterator<Item = Passed>,
    _: &Log,
) -> Result<Option<Waiting>, Failure> {
    Ok(None)
}

pub(super) fn insist<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    attempt()
}

pub(super) fn absolute(path: &Path) -> PathBuf {
    path.to_owned()
}

impl Offer {
    pub(super) fn ask(_: &HandOverFlags, _: &RestartFlags, _: &Log) -> Result<Self, Failure> {
        Ok(Self {})
    }

    pub(super) const fn is_there(&self) -> bool {
        false
    }

    pub(super) const fn tcp(&mut self, _: Purpose, _: SocketAddr) -> Vec<TcpListener> {
        Vec::new()
    }

    pub(super) const fn unix(&mut self, _: &Path) -> Option<UnixListener> {
        None
    }

    pub(super) const fn accept(self, _: &Log) -> Option<Inheritance> {
        Some(Inheritance {})
    }
}

impl Inheritance {
    pub(super) const fn is_some(&self) -> bool {
        false
    }

    pub(super) const fn left_to(&mut self, builder: NodeBuilder) -> NodeBuilder {
        builder
    }

    pub(super) const fn announce(&self, _: &Log) {}

    pub(super) const fn spread(self, _: &mut [Vec<Service>]) {}
}

impl Waiting {
    pub(super) const fn is_over(&self) -> bool {
        match *self {}
    }

    pub(super) const fn successor(self) -> Option<Successor> {
        match self {}
    }
}

impl Successor {
    pub(super) const fn id(&self) -> u32 {
        match *self {}
    }

    pub(super) const fn inherit(&self, _: &Node, _: &Log) -> Result<(), Failure> {
        match *self {}
    }
}

impl Again {
    pub(super) const fn listen(_: &HandOverFlags, _: &Serving) -> Result<Self, Failure> {
        Ok(Self)
    }

    pub(super) async fn start(&mut self, _: &Log) {}
}

impl Passed {
    pub(super) fn of(_: Purpose, _: String, _: BorrowedFd<'_>) -> Result<Self, Failure> {
        Ok(Self)
    }
}
