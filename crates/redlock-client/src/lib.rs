//! Distributed locks: a Redlock client for locknode, Redis and Valkey nodes.
//!
//! # What it is
//!
//! A client holds a lock if it has set the lock's key on a majority of independent nodes. This crate
//! sends to all nodes at once, counts their votes, and reports the loss of a lock in time.
//!
//! * One connection per node, shared by all locks of a client; one background task; no I/O before
//!   the first use.
//! * A lock is a [`Guard`]: check [`is_valid`](Guard::is_valid) between two steps, or await
//!   [`lost`](Guard::lost) next to the work.
//! * Renewal is off by default. Renewal, waiting and memory are bounded.
//! * Errors are grouped by what a caller does about them, and carry each node's reply.
//! * The rules are a state machine without sockets, clock or randomness, in a crate of its own:
//!   `redlock-proto`.
//!
//! # What it is not
//!
//! * Not a consensus system. While the assumptions below hold, no two clients hold the same lock;
//!   when one fails, two may.
//! * Not for Redis Cluster, Sentinel or replicas: each node is an independent server. A single node
//!   works too, but its locks do not survive it.
//! * Not fair: waiting clients do not queue. No read-write locks, no semaphores.
//! * Not a general Redis client.
//!
//! # Example
//!
//! ```no_run
//! use std::time::Duration;
//! use redlock_client::{Error, Redlock, RenewPolicy};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Error> {
//!     let redlock = Redlock::builder()
//!         .nodes(["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"])
//!         .build()?;
//!     let guard = redlock
//!         .lock("invoice/42")
//!         .ttl(Duration::from_secs(10))
//!         .wait_for(Duration::from_secs(30))
//!         .renew(RenewPolicy::until(Duration::from_secs(600)))
//!         .acquire()
//!         .await?;
//!     tokio::select! {
//!         () = send_invoice() => println!("sent, and nobody else sent it meanwhile"),
//!         error = guard.lost() => println!("given up: {error}"),
//!     }
//!     let _ = guard.release().await;
//!     redlock.close().await;
//!     Ok(())
//! }
//! # async fn send_invoice() {}
//! ```
//!
//! The crate's `examples` directory has more. They run against `locknode lab` or any five servers.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | adds |
//! |---|---|
//! | `blocking` | module `blocking`: the same interface without async, on a thread of its own |
//! | `tls` | nodes behind TLS, `rediss://`; `Tls` sets which certificates to trust |
//! | `tracing` | a span around each acquire; `TracingObserver` logs events |
//! | `metrics` | `MetricsObserver`: counters, a gauge and a histogram for the `metrics` facade |
//! | `unstable-rustls-0_23` | `Tls::from_client_config` and `Tls::client_config_for`, which have types of rustls 0.23; removed when rustls moves on |
//!
//! Your own [`Observer`] needs no feature.
//!
//! # What it guarantees
//!
//! * **A majority of the configured nodes.** The quorum is `n / 2 + 1` of all nodes in the list,
//!   reachable or not. A node has one vote: two addresses of one server are an error, or the later
//!   one is ignored.
//! * **Validity counts from before the first byte.** A lock is valid until `start + ttl - drift`,
//!   where `start` is read before the attempt sends anything. The client checks it against the clock
//!   again after the last reply, and again when it hands out the guard. No guard is handed out
//!   expired.
//! * **A token per attempt**, 20 random bytes. A node releases or extends a key only for the token
//!   that it holds.
//! * **Nothing is left behind.** Whatever a failed, cancelled or late attempt may have set is released
//!   on every node. A node that is down gets the release when it is back, unless the TTL has expired
//!   by then. (The client remembers at most 4096 such releases per node; the TTL does the rest.)
//! * **An extension never creates a lock.** It counts only where the key still has the token. A node
//!   that lost the key while a majority kept it gets it back, but has no vote in that extension.
//! * **A failed extension changes nothing.** The lock stays valid until its old validity ends or the
//!   holder releases it.
//! * **Fencing tokens grow**, where a majority of the nodes counts its grants: see
//!   [below](#fencing-tokens).
//! * **A loss is reported in time.** [`Guard::lost`] and [`Guard::cancellation`] fire before the
//!   validity ends, whatever the network does, as long as the process gets to run. The cancellation
//!   also fires on release, drop, [`leak`](Guard::leak) and when the client is closed.
//! * **`Busy` means that another client holds the lock.** A majority of the nodes refused, and a
//!   majority has the same token under the key. Refusals alone are not enough: clients that start at
//!   the same moment can split the votes, and then nobody holds the lock. In that case the client
//!   retries after a random pause. Only when the time to wait ends before the nodes have said whose
//!   token they have do the refusals of a majority count as `Busy`.
//!
//! Two clients do not hold the same lock at the same time if
//!
//! * all clients have the same list of nodes,
//! * the clocks of nodes and clients run equally fast, within the [`Drift`] allowance,
//! * no node drops a key before its TTL expires: it does not evict (`maxmemory-policy noeviction`),
//!   its clock is not set, nobody deletes foreign keys,
//! * a node that lost its keys stays away for the longest TTL in use (see below), and
//! * a client does the protected work only while [`Guard::is_valid`] returns true.
//!
//! # What it does not guarantee
//!
//! * **Pauses.** A process can be paused between its check of [`is_valid`](Guard::is_valid) and its
//!   next write: by the scheduler, a debugger, swapping, or a hypervisor that freezes the machine. When
//!   it resumes, another client may hold the lock. A freeze that the guest's clocks do not count
//!   cannot even be detected afterwards. No lock with a TTL can prevent this; a resource that compares
//!   [fencing tokens](#fencing-tokens) can.
//! * **Restarted nodes.** A node that restarts without its keys votes again at once, so a lock that is
//!   held can be granted a second time. This applies to Redis and Valkey without persistence (or with
//!   `appendfsync everysec` after a power failure), and to a locknode whose restart guard is off. Keep
//!   such a node away from the clients for the longest TTL in use plus about 2 %: start it late, or
//!   bind its port late. Renewal does not make that time longer. A locknode does this by itself and
//!   replies `LOADING` meanwhile.
//! * **Servers whose TTLs follow the wall clock**, as in Redis and Valkey: setting the clock forward
//!   makes locks expire early. locknode uses a monotonic clock.
//! * **Losses that nobody checks for.** The client learns that the nodes lost a lock when it extends
//!   the lock. Without renewal it considers the lock held until its validity ends.
//! * **Liveness.** While a majority of the nodes is down, nothing can be locked. Competing clients can
//!   split the votes; usually one or two retries settle it. After ten the caller gets `Contended`,
//!   which also happens when a few nodes keep keys without a holder and others are down.
//!
//! ## Fencing tokens
//!
//! If something must never happen twice, the resource has to reject a late holder.
//! [`Guard::fencing`] is the number for that: of two locks of a key, acquired one after the other, the
//! later has the higher [`FencingToken`], and no two are equal. The resource accepts a token at least
//! as high as the highest it has seen for that name, stores the highest durably with its data, and
//! rejects lower ones. [`FenceCheck`] does that, or `WHERE fence <= ?` in the statement that writes. A
//! [`Token`] is something else: a random secret that proves to the nodes who holds the lock.
//!
//! Nodes with `LOCK.ACQUIRE`, that is locknodes, count the grants of each key and send the count with
//! their vote. The highest count of a majority is the fencing token, and the client hands out the lock
//! once a majority holds that token. Usually all counts are equal, and this takes no extra time. When
//! they differ, after a restart or contention, the client asks the nodes that are behind to accept the
//! token. That takes a second round trip, within the validity, which still counts from before the
//! first. A node accepts only while this very grant stands. Without a majority the attempt fails, and
//! is retried as any other.
//!
//! * **The order does not depend on time.** It holds when clocks jump, messages are late, processes are
//!   paused, locks expire too early, or two clients consider the same lock theirs.
//! * **It depends on counters that never go back.** A locknode keeps an upper bound of its own on disk.
//!   A node that is new or lost its disk counts from its wall clock, above all earlier tokens unless
//!   that clock is behind. So the order may not survive a lost disk together with a wall clock that is
//!   behind, and the risk grows with the number of such nodes.
//! * **It depends on majorities that overlap.** Change the list of nodes one node at a time. If several
//!   change at once, or clients have different lists, two majorities may share no node.
//! * **There is no token** where fewer than a majority of the nodes count: `fencing()` is `None` with
//!   Redis and Valkey. In a mixed cluster it depends on which nodes grant; the client then waits, at
//!   most for the node timeout, for nodes that could still make a token possible. An
//!   [adopted](Redlock::adopt) lock has no token.
//! * An extension keeps the token.
//!
//! ## Clocks
//!
//! The client's own clock decides validity, never the wall clock. On Linux the client reads two clocks:
//! `CLOCK_BOOTTIME`, which counts the time that the machine sleeps, and `CLOCK_MONOTONIC_RAW`, which
//! time synchronisation cannot slow down. The one that advanced more counts. Other systems use the
//! monotonic clock, which may stop while the machine sleeps. Timers of the runtime only wake the client
//! up. [`Guard::valid_until`] is for such timers, not for decisions.
//!
//! The allowance for clocks that run at different speeds is 1 % of the TTL plus 2 ms, see [`Drift`].
//!
//! # Times and their defaults
//!
//! | what | default | limits |
//! |---|---|---|
//! | TTL | 10 s | whole milliseconds, longer than the drift, at most 2^53 - 1 ms |
//! | drift | TTL / 100 + 2 ms | [`Builder::drift`] |
//! | validity | TTL - drift - time since `start` | 9.898 s of 10 s, less the round trip |
//! | warning: [`lost`](Guard::lost) resolves before the validity ends by | 1/20 of the validity left after the grant or extension | 2 ms to 100 ms |
//! | node timeout: time for a reply | TTL / 10, 5 ms to 250 ms | if set, 1 ms to TTL / 2 |
//! | time to connect, and again for the greeting | 1 s | at least 1 ms |
//! | attempts of [`acquire`](LockRequest::acquire) | 3 | always bounded, by count or by time |
//! | pause before attempt `k + 1` | random, 10 ms to 40 ms x 2^k | at most 500 ms; [`RetryPolicy::backoff`] |
//! | extra attempts after split votes | 10 | not beyond a wait |
//! | pause before an extra attempt | random, 0 to 20 ms or two attempt durations, doubled each time | at most 500 ms or two durations |
//! | unanswered requests before new attempts wait | 1024 per node | 10 s for an attempt that waits |
//! | renewal, after the last extension | TTL / 3 | at most TTL / 2; after a failure, a quarter of that |
//! | reconnection | 50 ms, doubled up to 3 s, random in the upper half | at once if the connection was good for 1 s |
//! | connection without replies: unused after, closed after | 500 ms, 1 s more | the connect timeout |
//! | [`close`](Redlock::close) | returns when all releases are done, at the latest after the node timeout | 2 s |
//! | a call from a runtime other than the client's first | as above | 2 s more if that runtime no longer runs |
//!
//! So [`try_acquire`](LockRequest::try_acquire) returns within the node timeout if the lock is free or
//! nodes are silent, and within twice that if it is held. An [`acquire`](LockRequest::acquire) of 10 s
//! with three attempts takes at most 3 x 250 ms and two pauses, about a second, plus 250 ms to ask who
//! holds the lock. An attempt that has to write its fencing token back may take the node timeout twice.
//! Extra attempts after split votes come on top: usually one or two, each a pause and one or two round
//! trips.
//!
//! # Nodes that are down or silent
//!
//! The client sends to all nodes at once, and a round ends as soon as it is decided: by a majority, or
//! when a majority is no longer possible. A node that refuses connections, or was silent before, counts
//! as failed at once. A node that goes silent costs at most the node timeout, and only while its vote
//! could decide. The client sends it nothing more until it replies or reconnects.
//!
//! A late reply has no vote; if it was a grant, the client releases it. A reply through an old
//! connection has no vote. A command that may have been executed is never sent again. A node that
//! replies `LOADING` has failed; that does not count as held by another client.
//!
//! The first attempt of a client includes connecting. [`Redlock::nodes`] connects beforehand and returns
//! who is there.
//!
//! # Trying again
//!
//! [`try_acquire`](LockRequest::try_acquire) is one attempt. `None` means that another client holds the
//! lock: a majority of the nodes refused, and on a second request a majority reports the same token. If
//! not, clients that tried at the same moment split the votes, and the attempt is repeated at most ten
//! times.
//!
//! [`acquire`](LockRequest::acquire) follows a [`RetryPolicy`]. Between two attempts the client releases
//! whatever was granted and pauses for a random time. It asks the nodes that refused for the remaining
//! TTL of their key, and pauses no longer than until a majority becomes free. Nodes do not report
//! releases, so waiting clients poll.
//!
//! # Keeping a lock
//!
//! [`Guard::extend`] gives the lock a new TTL from now on. [`LockRequest::renew`] does so in the
//! background until a [`RenewPolicy`] ends, by time or by count. Renewal is never endless, because a
//! holder that hangs would keep everyone else out. A failed renewal is retried while the lock is valid.
//! After the last one the lock expires, and [`lost`](Guard::lost) reports it.
//!
//! The client's task must get to run: work that blocks the only thread of the runtime stops renewal too.
//! [`is_valid`](Guard::is_valid) reads the clock itself and is right even then.
//!
//! # Releasing a lock
//!
//! * [`Guard::release`] sends the release to every node and returns once a majority is known not to hold
//!   the lock. The rest happens in the background. [`Released`] has each node's reply, and
//!   [`Released::is_free`] returns whether others can acquire the lock now. A release does not fail: the
//!   TTL takes care of what is left.
//! * Dropping a guard does the same in the background. It never blocks, and may happen on any thread.
//! * [`Guard::leak`] leaves the lock to its TTL and returns its token. Another process can
//!   [`adopt`](Redlock::adopt) or [`release`](Redlock::release) the lock with it.
//! * [`LockRequest::hold_at_least`] makes a release or drop keep the key until that time has passed
//!   since the acquisition. If the process dies, the TTL counts.
//! * After the last clone of a client and its last guard are dropped, the client's task finishes the
//!   releases under way, within 2 s, and ends. That needs a running runtime: call [`Redlock::close`]
//!   before `main` returns.
//!
//! A client belongs to the runtime that it was first used on. When that runtime shuts down, the client's
//! locks are reported as lost with [`ErrorKind::Cancelled`]; the next use starts afresh on the caller's
//! runtime. If the first runtime still exists but does not run, because nobody drives it or a task
//! blocks it, then calls from other runtimes time out by their own clock with [`ErrorKind::Timeout`],
//! locks are not renewed, and [`Guard::lost`] still resolves in time while [`Guard::cancellation`]
//! cannot. A forked process must build a client of its own. The runtime needs timers and I/O
//! (`enable_all`).
//!
//! # Cancel safety
//!
//! Every future may be dropped at any time.
//!
//! | dropped | what may have happened, and what follows |
//! |---|---|
//! | an acquire | nodes may have granted the lock; it is released in the background |
//! | an acquire of an [`adopt`](Redlock::adopt) | the lock may have a new TTL; it is left alone |
//! | an [`extend`](Guard::extend) | it goes on and takes effect if it succeeds |
//! | a [`release`](Guard::release) | it goes on |
//! | [`lost`](Guard::lost) | nothing; call it again |
//! | [`with_lock`](Redlock::with_lock) | the work is dropped, the lock released in the background |
//! | [`lock_all`](Redlock::lock_all) | the locks acquired so far are released in the background |
//!
//! # Several locks, nested locks, scopes
//!
//! * [`Redlock::lock_all`] acquires up to 1000 locks, all or none, one after the other in the order of
//!   their keys, so two clients cannot deadlock. The shortest validity counts.
//! * [`Redlock::reentrant`] makes an owner that can enter a lock again while it holds it. Clones are the
//!   same owner. The count lives in this process; the nodes see one lock.
//! * [`Redlock::with_lock`] acquires the lock, does the work and releases. If the lock is lost, the work
//!   is dropped at its next `await`. The result of finished work is always returned.
//!
//! # Errors
//!
//! | [`ErrorKind`] | what happened | what to do |
//! |---|---|---|
//! | `Busy` | another client holds the lock | try later, or skip |
//! | `Contended` | no holder found, and ten more attempts failed | try later |
//! | `NoQuorum` | too few nodes took part: no reply, or an error | check each node's reply, try later |
//! | `Timeout` | the wait ended before the nodes had their time | wait longer |
//! | `Expired` | the lock expired, perhaps before it could be used | stop the work; longer TTL |
//! | `Lost` | a majority no longer holds the lock | stop the work |
//! | `Cancelled` | released, or the client was closed | |
//! | `Config` | a bad argument; nothing was sent | correct it |
//!
//! ```
//! # #[cfg(unix)]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), redlock_client::Error> {
//! use redlock_client::{Cause, Redlock};
//!
//! let redlock = Redlock::builder().nodes(["/nowhere/1", "/nowhere/2", "/nowhere/3"]).build()?;
//! let error = redlock.lock("invoice/42").try_acquire().await.unwrap_err();
//! assert!(error.is_no_quorum() && error.is_retryable());
//! assert!(matches!(error.nodes()[0].cause, Cause::Unreachable(_)));
//!
//! let twice = Redlock::builder().nodes(["node-1", "node-2", "redis://node-1:6379"]).build();
//! assert!(twice.unwrap_err().is_config());
//! # Ok(())
//! # }
//! # #[cfg(not(unix))]
//! # fn main() {}
//! ```
//!
//! # What the nodes need
//!
//! Redis 2.6.12 or later (tested with 7.0 and 8.0), Valkey (9.1), or locknode; 1 to 16 nodes, best five
//! or three on machines that fail independently. An even number survives no more failures than the odd
//! number below it. The client uses `LOCK.ACQUIRE` and its family where a node has them; otherwise
//! `DELEX` or `DELIFEQ` and `SET ... IFEQ`; otherwise `EVALSHA` of two scripts, and `EVAL` if the node
//! does not know them. All of these see each other's locks.
//!
//! A user with limited rights needs `SET`, `GET`, `PTTL` and, depending on the server, `LOCK.*`, `DELEX`,
//! `DELIFEQ`, or `EVAL`, `EVALSHA`, `DEL` and `PEXPIRE`; for [`nodes`](Redlock::nodes) also `PING`.
//! `CLIENT SETINFO`, `COMMAND INFO` and `INFO` may be refused: then the client uses scripts and does not
//! notice two addresses of one server.

mod address;
#[cfg(feature = "blocking")]
pub mod blocking;
mod builder;
mod cancellation;
mod clock;
mod cluster;
mod connector;
mod driver;
mod entropy;
mod error;
mod fence_check;
mod guard;
mod handle;
mod inbox;
mod label;
mod limits;
mod lock_state;
mod multi;
mod node_view;
#[cfg(any(feature = "metrics", feature = "tracing"))]
mod observe;
mod observer;
mod redlock;
mod reentrant;
mod released;
mod request;
mod scope;
mod sentinel;
mod shards;
mod socket;
mod tcp;
#[cfg(feature = "tls")]
mod tls;

pub use crate::address::{AddressError, Endpoint, NodeAddress, Place};
pub use crate::builder::Builder;
pub use crate::cancellation::Cancellation;
pub use crate::clock::{Clock, SystemClock};
pub use crate::connector::{Connecting, Connection, Connector};
pub use crate::error::{Error, NodeFailure};
pub use crate::fence_check::{FenceCheck, FenceStore, MemoryFences, Rejected};
pub use crate::guard::Guard;
pub use crate::multi::{MultiGuard, MultiLockRequest};
pub use crate::node_view::{Forced, HeldKey, NodeForced, NodeStatus, NodeView};
#[cfg(feature = "metrics")]
pub use crate::observe::MetricsObserver;
#[cfg(feature = "tracing")]
pub use crate::observe::TracingObserver;
pub use crate::observer::{Event, Observer};
pub use crate::redlock::Redlock;
pub use crate::reentrant::{Reentrant, ReentrantGuard};
pub use crate::released::{ReleaseAnswer, Released};
pub use crate::request::LockRequest;
pub use crate::scope::Scope;
pub use crate::shards::{Shards, ShardsGuard, ShardsRequest};
#[cfg(feature = "tls")]
pub use crate::tls::{Tls, TlsError};
pub use redlock_proto::{
    ArgumentError, Cause, Dialect, Drift, ErrorKind, FencingToken, NODES_MAX, NodeId, RenewPolicy,
    RetryPolicy, ServerInfo, TOKEN_LEN_MAX, Time, Token, Unreachable,
};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
