//! The versions that the node reports to clients.

/// The Redis version whose behaviour the node follows. Clients choose their commands by it: from
/// 8.4 on, StackExchange.Redis releases with DELEX and extends with SET IFEQ instead of MULTI and
/// WATCH.
pub(crate) const REDIS_VERSION: &str = "8.4.0";

/// The version of the node itself.
pub(crate) const NODE_VERSION: &str = env!("CARGO_PKG_VERSION");
