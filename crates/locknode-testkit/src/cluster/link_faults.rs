//! What can be done to the links of a cluster. Nothing here waits.

use std::time::Duration;

use super::Cluster;
use super::error::ClusterError;
use crate::fault::{Links, Members, Way};

impl Cluster {
    /// Cuts the links between these clients and these nodes, both ways: what is sent arrives when they are healed.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn partition(
        &self,
        clients: impl Into<Members>,
        nodes: impl Into<Members>,
    ) -> Result<(), ClusterError> {
        self.cut(Links::between(clients, nodes), Way::Both)
    }

    /// Cuts links, one way or both: what is sent arrives when they are healed.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn cut(&self, links: Links, way: Way) -> Result<(), ClusterError> {
        self.check_links(links)?;
        self.inner.net.cut(links, way);
        Ok(())
    }

    /// Heals all links that were cut.
    pub fn heal(&self) {
        self.inner.net.heal(Links::ALL);
    }

    /// Heals these links.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn heal_links(&self, links: Links) -> Result<(), ClusterError> {
        self.check_links(links)?;
        self.inner.net.heal(links);
        Ok(())
    }

    /// The next so many replies of a node to each client are lost, and with each its connection.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn drop_replies(&self, node: u8, count: u8) -> Result<(), ClusterError> {
        self.drop_messages(Links::between(Members::ALL, node), Way::Replies, count)
    }

    /// The next so many requests of each client to a node are lost, and with each its connection.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn drop_requests(&self, node: u8, count: u8) -> Result<(), ClusterError> {
        self.drop_messages(Links::between(Members::ALL, node), Way::Requests, count)
    }

    /// The next so many messages of each of these links are lost, and with each its connection.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn drop_messages(&self, links: Links, way: Way, count: u8) -> Result<(), ClusterError> {
        self.check_links(links)?;
        self.inner.net.lose(links, way, count);
        Ok(())
    }

    /// The next so many replies on each of these links are missing, and the connection goes on: the client takes the next
    /// reply for the one it waits for. No network does so, but a proxy with a bug might.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn skip_replies(&self, links: Links, count: u8) -> Result<(), ClusterError> {
        self.check_links(links)?;
        self.inner.net.skip(links, Way::Replies, count);
        Ok(())
    }

    /// Messages take so much longer from now on, each way.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn delay(&self, links: Links, span: Duration) -> Result<(), ClusterError> {
        self.check_links(links)?;
        self.inner.net.delay(links, span);
        Ok(())
    }

    /// What is sent is held back until it is [released](Self::release).
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn hold(&self, links: Links, way: Way) -> Result<(), ClusterError> {
        self.check_links(links)?;
        self.inner.net.hold(links, way, true);
        Ok(())
    }

    /// What was held back is let go, and nothing is held any more.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn release(&self, links: Links, way: Way) -> Result<(), ClusterError> {
        self.check_links(links)?;
        self.inner.net.hold(links, way, false);
        Ok(())
    }

    /// The next so many messages of each of these links come so much later, and what follows them on their connections
    /// after them.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn late(
        &self,
        links: Links,
        way: Way,
        count: u8,
        span: Duration,
    ) -> Result<(), ClusterError> {
        self.check_links(links)?;
        self.inner.net.late(links, way, count, span);
        Ok(())
    }

    /// The next so many requests on each of these links arrive twice, the second time through a connection whose replies
    /// nobody reads, and on which nobody has logged in.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn duplicate(&self, links: Links, count: u8) -> Result<(), ClusterError> {
        self.check_links(links)?;
        self.inner.net.double(links, count);
        Ok(())
    }

    /// The connections break, and both ends notice.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn reset(&self, links: Links) -> Result<(), ClusterError> {
        self.check_links(links)?;
        self.inner.net.reset(links);
        Ok(())
    }
}
