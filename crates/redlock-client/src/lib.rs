//! Distributed locks: a Redlock client for locknode, Redis and Valkey nodes.
//!
//! # What it is
//!
//! A lock is held by whoever set its key on a majority of independent nodes. This crate asks all nodes at the same
//! time, counts their votes, knows by its own clock how long the lock is still held, and says so when it no longer
//! is.
//!
//! * One connection per node, shared by all locks of a client; one background task; no I/O before the first use.
//! * A lock is a [`Guard`]: [`is_valid`](Guard::is_valid) between two steps, [`lost`](Guard::lost) next to the
//!   work.
//! * Renewal is asked for and bounded. Waiting is bounded. Memory is bounded.
//! * Errors are told apart by what a caller does about them, with what each node said.
//! * The rules are a state machine without sockets, clock and randomness, a crate of its own: `redlock-proto`.
//!
//! # What it is not
//!
//! * Not a consensus system. Under the assumptions below no two clients hold a lock; when one of them fails, two
//!   may.
//! * Not for Redis Cluster, Sentinel or replicas: each node is one independent server. One node alone works as
//!   well, and its end is the end of its locks.
//! * Not fair: who waits does not queue. No read-write locks, no semaphores.
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
//! More in the crate's `examples` directory; they run against `locknode lab` or any five servers.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | adds |
//! |---|---|
//! | `blocking` | module `blocking`: the same interface for code without async, on a thread of its own |
//! | `tls` | nodes behind TLS, `rediss://`; `Tls` says whom to trust |
//! | `tracing` | a span around each acquire; `TracingObserver`: what happens, as events |
//! | `metrics` | `MetricsObserver`: counters, a gauge and a histogram for the `metrics` facade |
//! | `unstable-rustls-0_23` | `Tls::from_client_config` with a type of rustls 0.23; goes when rustls moves on |
//!
//! An [`Observer`] of one's own needs no feature.
//!
//! # What it guarantees
//!
//! * **A majority of the configured nodes.** Quorum is `n / 2 + 1` of all nodes in the list, whichever of them can
//!   be reached. A node has one vote: two addresses of one server are an error, or the later one is left out.
//! * **Validity from before the first byte.** A lock is believed in until `start + ttl - drift`, where `start` is
//!   read before anything is sent in this attempt. It is compared with the clock again after the last reply, and
//!   when the caller is handed the guard. No guard is handed out without validity.
//! * **A token per attempt**, 20 random bytes. Nodes release and extend only for the token that they hold.
//! * **Nothing is left behind.** What an attempt that failed, was given up or came too late may have set is
//!   released again on every node; on a node that is away, when it is back, until the TTL has done it. (At most
//!   4096 such releases are remembered per node; the TTL takes care of the rest.)
//! * **An extension never makes a lock anew.** It counts only where the key still has the token. A node that lost
//!   the key while a majority kept it gets it back, and that has no vote in the extension that found it missing.
//! * **A failed extension changes nothing.** The lock is what it was until its validity ends or the holder releases
//!   it.
//! * **Fencing tokens grow.** Where a majority of the nodes counts its grants, see [below](#fencing-tokens).
//! * **A loss is told in time.** [`Guard::lost`] and [`Guard::cancellation`] fire before the validity ends,
//!   whatever the network does, as long as the process gets to run. The cancellation fires at every other end as well:
//!   release, drop, [`leak`](Guard::leak), the closing of the client.
//! * **`Busy` means a holder.** A majority of the nodes refused, and a majority has one and the same token under the
//!   key. A refusal alone is not enough: clients that start at the same moment, each near other nodes, split the votes,
//!   and nobody holds the lock. Then the attempt is made again after a random pause.
//!
//! Two clients do not hold the same lock at the same time if
//!
//! * all clients have the same list of nodes,
//! * clocks of nodes and clients run equally fast within the [`Drift`] allowance,
//! * no node gives up a key before its TTL is over: it does not evict (`maxmemory-policy noeviction`), its clock is
//!   not set, nobody deletes foreign keys,
//! * a node that lost its keys stays away for the longest TTL in use (see below), and
//! * a client does what the lock protects only while [`Guard::is_valid`] says so.
//!
//! # What it does not guarantee
//!
//! * **Pauses.** Between the look at [`is_valid`](Guard::is_valid) and the next write, a process can stand still:
//!   its scheduler, a debugger, swapping, a hypervisor that freezes the machine. When it goes on, another may hold
//!   the lock. A freeze that the guest's clocks do not count cannot even be noticed afterwards. No lock with a TTL
//!   can help here; a resource that compares [fencing tokens](#fencing-tokens) can.
//! * **Restarted nodes.** A node that restarts without its keys votes again at once, and the majority of a lock
//!   that is held can be granted a second time. This is so for Redis and Valkey without persistence (or with
//!   `appendfsync everysec` after a power failure), and for a locknode whose restart guard is off. Keep such a node
//!   away from the clients for the longest TTL in use and a bit more, say 2 %: start it late, or bind its port late.
//!   Renewal does not make that time longer. A locknode takes no part in locks for as long as it has to by itself,
//!   and answers `LOADING`.
//! * **Servers whose TTLs follow the wall clock**, as those of Redis and Valkey do: a clock that is set forward
//!   ends locks early. locknode counts on a monotonic clock.
//! * **Loss that nobody looked for.** That the nodes lost a lock is noticed when it is extended. Without renewal a
//!   client believes in it until its validity ends.
//! * **Liveness.** When a majority of the nodes is away nothing can be locked. Clients that compete can split the
//!   votes; a random pause and another attempt settle it, as a rule after one or two. After ten the caller hears
//!   `Contended`: so it is as well where keys without a holder are left on a few nodes and others are down.
//!
//! ## Fencing tokens
//!
//! What must never happen twice needs a resource that turns a late holder away. [`Guard::fencing`] is the number for
//! that: of two locks of a key, one acquired after the other was, the later has the higher [`FencingToken`], and no two
//! have the same. The resource accepts a token at least as high as the highest it has seen under that name, remembers
//! the highest durably with its data, and rejects others; [`FenceCheck`] does that, or `WHERE fence <= ?` in the
//! statement that writes. A [`Token`] is something else: it proves to the nodes who holds the lock, is random, and
//! secret.
//!
//! Nodes with `LOCK.ACQUIRE`, that is locknodes, count the grants of each key and tell the counter with the vote. The
//! highest of a majority is the token, and the lock is handed out when a majority holds it: as a rule because all told
//! the same, and it takes no longer than without. When they differ, after a node restarted or a lock was contended,
//! those that are behind are asked to accept it in a second round trip, within the validity, which counts from before the
//! first. A node accepts it only while this very grant stands. If no majority does, the attempt is lost, and tried again
//! as any other.
//!
//! * **The order does not rest on time.** It holds when clocks jump, messages are late, processes are paused, locks end
//!   too soon and two clients believe in the same one.
//! * **It rests on counters that never go back.** A locknode keeps an upper bound of its own on disk. One that lost its
//!   disk, or is new, counts from its wall clock, above whatever was told before unless that clock is behind. So what may
//!   not survive is the loss of a disk together with a wall clock that is behind; the more nodes it happens to, the less
//!   likely that another knows better.
//! * **It rests on majorities that overlap.** Change the list of nodes one node at a time; several at a time, or clients
//!   with different lists, and two majorities may share no node.
//! * **There is none** where fewer than a majority of the nodes count: `fencing()` is `None` with Redis and Valkey. In a
//!   mixed cluster it depends on who grants; a client then waits for nodes that could still make a token possible, for
//!   the time of a node at most. A lock that was [adopted](Redlock::adopt) has none of its own.
//! * An extension keeps the token.
//!
//! ## Clocks
//!
//! Validity is decided by the client's own clock and never by the wall clock. On Linux two clocks are read,
//! `CLOCK_BOOTTIME`, which counts the time that the machine sleeps, and `CLOCK_MONOTONIC_RAW`, which time
//! synchronisation cannot slow down; the one that advanced more counts. On other systems it is the monotonic clock,
//! which may stand still while the machine sleeps. Timers of the runtime only wake the client up.
//! [`Guard::valid_until`] is for such timers, not for decisions.
//!
//! The allowance for clocks that run at different speeds is 1 % of the TTL and 2 ms, see [`Drift`].
//!
//! # Times and their defaults
//!
//! | what | default | limits |
//! |---|---|---|
//! | TTL | 10 s | whole milliseconds, longer than the drift, at most 2^53 - 1 ms |
//! | drift | TTL / 100 + 2 ms | [`Builder::drift`] |
//! | validity | TTL - drift - time since `start` | 9.898 s of 10 s, less the round trip |
//! | warning: [`lost`](Guard::lost) resolves before the validity ends by | 1/20 of what was left when the lock was granted or extended | 2 ms to 100 ms |
//! | time of a node for a reply | TTL / 10 | 5 ms to 250 ms; one that is given, 1 ms to TTL / 2 |
//! | time to connect, and again to greet | 1 s | at least 1 ms |
//! | attempts of [`acquire`](LockRequest::acquire) | 3 | by count or by time, never without end |
//! | pause before attempt `k + 1` | random, 10 ms to 40 ms x 2^k | at most 500 ms; [`RetryPolicy::backoff`] |
//! | attempts after split votes, beyond those above | 10 | not beyond a wait |
//! | pause before such an attempt | random, 0 to 20 ms or two of its durations, doubled each time | at most 500 ms or two durations |
//! | requests that nodes have to answer before more attempts begin | 1024 per node | 10 s for an attempt that waits |
//! | renewal after the last extension | TTL / 3 | at most TTL / 2; after a failure, a quarter of that |
//! | reconnection | 50 ms, doubled up to 3 s, random in the upper half | at once after a connection that was good for 1 s |
//! | connection without reply: not used after, closed after | 500 ms, 1 s more | the connect timeout |
//! | [`close`](Redlock::close) | returns when all is said, at the latest after the time of a node | 2 s |
//! | a call on another runtime than the client's first | as above | 2 s more when that runtime no longer runs |
//!
//! So [`try_acquire`](LockRequest::try_acquire) ends within the time of a node when the lock is free or nodes are
//! silent, and within twice that when it is held; an [`acquire`](LockRequest::acquire) with three attempts of 10 s
//! within 3 x 250 ms and two pauses, a second in all, and 250 ms for the question who holds it. An attempt whose fencing
//! token has to be written back gives nodes that time twice. Attempts after split votes come on top: mostly one or two,
//! each a round trip or two and a pause.
//!
//! # Nodes that are down or silent
//!
//! All nodes are asked at the same time, and a round ends as soon as it is decided: by a majority, or when none is
//! possible any more. A node that refuses connections or was found silent before is not waited for; it has failed.
//! A node that swallows what it is sent costs at most its time for a reply, and only while its vote could decide.
//! It is then not asked any more until it is heard again or connected anew.
//!
//! A reply that comes too late has no vote; if it was a grant, it is released. A reply through an old connection
//! has no vote. No command that may have been executed is sent a second time. A node that answers `LOADING` has
//! failed, it does not count as holding the lock for somebody else.
//!
//! The first attempt of a client includes the connecting. [`Redlock::nodes`] connects beforehand and says who is
//! there.
//!
//! # Trying again
//!
//! [`try_acquire`](LockRequest::try_acquire) is one attempt, and `None` means that another client holds the lock: a
//! majority of the nodes has refused, and says, asked once more, that it is one and the same token that has the key.
//! Otherwise the votes were split among clients that tried at the same moment, and the attempt is made again, at most
//! ten times.
//! [`acquire`](LockRequest::acquire) follows a [`RetryPolicy`]. Between two attempts everything granted is released
//! and the client pauses for a random time. It asks the nodes that refused how long their key still lives and does
//! not sleep longer than a majority needs to become free. There is no notification when a lock is released: who
//! waits, polls.
//!
//! # Keeping a lock
//!
//! [`Guard::extend`] gives the lock a new TTL from now on. [`LockRequest::renew`] does so in the background until a
//! [`RenewPolicy`] ends: by time, or by count. There is no endless renewal, since a holder that hangs would keep
//! everyone else out. A renewal that fails is tried again while the lock is valid. After the last one the lock runs
//! out, and [`lost`](Guard::lost) reports that.
//!
//! The client's task must have its turn: work that blocks the only thread of the runtime stops the renewal too.
//! [`is_valid`](Guard::is_valid) reads the clock itself and is right even then.
//!
//! # Letting go
//!
//! * [`Guard::release`] tells every node and returns once a majority is known not to hold the lock; [`Released`]
//!   says what each node answered, and [`Released::is_free`] whether others can have it now. The others are told in
//!   the background. It does not fail: the TTL releases what is left.
//! * Dropping a guard does the same in the background. It never blocks, and may happen on any thread.
//! * [`Guard::leak`] leaves the lock to its TTL and gives its token, with which another process can
//!   [`adopt`](Redlock::adopt) or [`release`](Redlock::release) it.
//! * [`LockRequest::hold_at_least`] makes a release or drop keep the key until that time has passed since it was
//!   acquired. If the process dies, the TTL counts.
//! * When the last clone of a client and its last guard are gone, its task ends after the releases under way, in 2
//!   s at most. Background work needs its runtime: call [`Redlock::close`] before `main` ends.
//!
//! A client belongs to the runtime that it was first used on. When that ends, its locks are reported as lost with
//! [`ErrorKind::Cancelled`]; the next use starts afresh on the runtime it is made from. When that is still there and
//! does not run, because nobody drives it or a task blocks it, calls from other runtimes end with
//! [`ErrorKind::Timeout`] by their own clock, locks are not renewed, and [`Guard::lost`] resolves in time while
//! [`Guard::cancellation`] cannot. A process that was forked builds a client of its own. The runtime needs timers and
//! I/O (`enable_all`).
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
//! | [`lock_all`](Redlock::lock_all) | what was acquired is released in the background |
//!
//! # Several locks, locks in locks, scopes
//!
//! * [`Redlock::lock_all`] acquires up to 1000 locks, all or none, one after the other in the order of their keys:
//!   two clients never wait for each other in a circle. The validity is that of the shortest.
//! * [`Redlock::reentrant`] makes an owner that can enter a lock again while it holds it. Clones are the same
//!   owner. The count is in this process; the nodes know of one lock.
//! * [`Redlock::with_lock`] acquires, does the work and releases. When the lock is lost the work is dropped at its
//!   next `await`. The result of work that is done is always returned.
//!
//! # Errors
//!
//! | [`ErrorKind`] | what happened | what to do |
//! |---|---|---|
//! | `Busy` | another client holds the lock | try later, or skip |
//! | `Contended` | nobody is known to hold it, and ten more attempts did not get it | try later |
//! | `NoQuorum` | too few nodes took part: no answer, or an error | look at what each node says, try later |
//! | `Timeout` | the wait ended before the nodes had their time | wait longer |
//! | `Expired` | the validity is over, or was before the lock could be used | stop the work; longer TTL |
//! | `Lost` | a majority does not hold the lock any more | stop the work |
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
//! Any Redis from 2.6.12 on (tried with 7.0 and 8.0), Valkey (9.1), or locknode; 1 to 16 of them, best 5 or 3 on
//! machines that fail independently. An even number survives no more failures than the odd one below it. Where a
//! node has `LOCK.ACQUIRE`, it and its like are used; where it has `DELEX` or `DELIFEQ`, these and `SET ... IFEQ`;
//! otherwise `EVALSHA` of two scripts, `EVAL` when the node does not know them. All of them see each other's locks.
//!
//! A user with limited rights needs `SET`, `GET`, `PTTL` and, depending on the server, `LOCK.*`, `DELEX`, `DELIFEQ`, or
//! `EVAL`, `EVALSHA`, `DEL` and `PEXPIRE`; for [`nodes`](Redlock::nodes) also `PING`. `CLIENT SETINFO`, `COMMAND
//! INFO` and `INFO` may be refused: then scripts are used and two addresses of one server are not noticed.

mod address;
#[cfg(feature = "blocking")]
pub mod blocking;
mod builder;
mod cancellation;
mod clock;
mod connector;
mod driver;
mod entropy;
mod error;
mod fence_check;
mod guard;
mod handle;
mod inbox;
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
mod socket;
#[cfg(feature = "tls")]
mod tls;

pub use crate::address::{AddressError, Endpoint, NodeAddress};
pub use crate::builder::Builder;
pub use crate::cancellation::Cancellation;
pub use crate::clock::{Clock, SystemClock};
pub use crate::connector::{Connecting, Connection, Connector};
pub use crate::error::{Error, NodeFailure};
pub use crate::fence_check::{FenceCheck, FenceStore, MemoryFences, Rejected};
pub use crate::guard::Guard;
pub use crate::multi::{MultiGuard, MultiLockRequest};
pub use crate::node_view::{HeldKey, NodeStatus, NodeView};
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
