//! A Redlock client.

mod address;
#[cfg(feature = "blocking")]
pub mod blocking;
mod builder;
mod cause;
mod clock;
pub mod core;
mod drift;
mod driver;
mod entropy;
mod error;
mod guard;
mod handle;
mod limits;
mod lock_state;
mod multi;
mod node_view;
#[cfg(any(feature = "metrics", feature = "tracing"))]
mod observe;
mod observer;
mod policy;
mod quorum;
mod redlock;
mod reentrant;
mod released;
mod request;
pub mod round;
mod scope;
mod socket;
mod time;
#[cfg(feature = "tls")]
mod tls;
mod token;

pub use crate::address::{AddressError, Endpoint, NodeAddress};
pub use crate::builder::Builder;
pub use crate::cause::Cause;
pub use crate::clock::{Clock, SystemClock};
pub use crate::core::ServerInfo;
pub use crate::drift::Drift;
pub use crate::entropy::{Entropy, SystemEntropy};
pub use crate::error::{Error, ErrorKind, NodeFailure};
pub use crate::guard::Guard;
pub use crate::multi::{MultiGuard, MultiLockRequest};
pub use crate::node_view::{HeldKey, NodeStatus, NodeView};
#[cfg(feature = "metrics")]
pub use crate::observe::MetricsObserver;
#[cfg(feature = "tracing")]
pub use crate::observe::TracingObserver;
pub use crate::observer::{Event, Observer};
pub use crate::policy::{RenewPolicy, RetryPolicy};
pub use crate::quorum::{NODES_MAX, NodeId, NodeSet, Quorum};
pub use crate::redlock::Redlock;
pub use crate::reentrant::{Reentrant, ReentrantGuard};
pub use crate::released::{ReleaseAnswer, Released};
pub use crate::request::LockRequest;
pub use crate::scope::Scope;
pub use crate::time::Time;
#[cfg(feature = "tls")]
pub use crate::tls::{Tls, TlsError};
pub use crate::token::{TOKEN_LEN_MAX, TOKEN_RANDOM_BYTES, Token};
pub use tokio_util::sync::CancellationToken;
