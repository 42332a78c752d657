//! Passes the core's notices on to callers, observers and connections.

use std::sync::Arc;

use redlock_proto::{Cause, ErrorKind, NodeId, Notice, OpId, Time};

use crate::driver::Driver;
use crate::driver::port::Port;
use crate::driver::waiter::Waiter;
use crate::error::{Error, NodeFailure};
use crate::inbox::Granted;
use crate::lock_state::LockState;
use crate::observer::Event;
use crate::released::Released;

impl Driver {
    /// Passes on all notices. Returns whether there were any.
    pub(super) fn report(&mut self) -> bool {
        let mut any = false;
        while let Some(notice) = self.core.poll_notice() {
            any = true;
            self.report_one(notice);
        }
        any
    }

    fn report_one(&mut self, notice: Notice) {
        match notice {
            Notice::Connect(node) => self.set_port(node, Port::open(&self.config, node)),
            Notice::Disconnect(node) => self.set_port(node, Port::Closed),
            Notice::NodeUp(node, server) => self.config.observe(&Event::NodeUp {
                address: self.name(node),
                server: &server,
            }),
            Notice::NodeDown(node, cause) => self.config.observe(&Event::NodeDown {
                address: self.name(node),
                cause: &cause,
            }),
            Notice::Acquired {
                op,
                token,
                fencing,
                valid_until,
                tries,
            } => {
                let granted = Granted {
                    token,
                    fencing,
                    tries,
                };
                self.acquired(op, granted, valid_until);
            }
            Notice::NotAcquired { op, kind, causes } => self.not_acquired(op, kind, causes),
            Notice::Validity {
                op,
                valid_until,
                is_renewal,
            } => {
                if let Some(state) = self.state(op) {
                    state.set_valid_until(valid_until);
                    if is_renewal {
                        let validity = valid_until.since(self.config.clock.now());
                        let key = state.key();
                        self.config.observe(&Event::Renewed { key, validity });
                    }
                }
            }
            Notice::RenewalFailed { op, causes } => {
                if let Some(state) = self.state(op) {
                    let error = self.error(ErrorKind::NoQuorum, causes);
                    self.observe_failures(&error);
                    self.config.observe(&Event::RenewFailed {
                        key: state.key(),
                        error: &error,
                    });
                }
            }
            Notice::Extended { op, result, causes } => self.extended(op, result, causes),
            Notice::Lost { op, kind, causes } => {
                if let Some(state) = self.state(op) {
                    let error = self.error(kind, causes);
                    self.config.observe(&Event::Lost {
                        key: state.key(),
                        error: &error,
                    });
                    state.end(error);
                }
            }
            Notice::Released {
                op,
                confirmed,
                not_held,
                pending,
                is_kept,
                causes,
            } => {
                let released = Released {
                    quorum: self.config.quorum,
                    confirmed,
                    not_held,
                    pending,
                    causes,
                    is_kept,
                };
                let answer = match self.waiters.remove(op) {
                    Some(Waiter::Lock(lock)) => lock.release,
                    Some(Waiter::Token(answer)) => answer,
                    _ => None,
                };
                drop(answer.map(|answer| answer.send(released)));
            }
            Notice::Looked { op, looks } => {
                if let Some(Waiter::Look(answer)) = self.waiters.remove(op) {
                    let nodes = self.core.quorum().all();
                    let servers = nodes.iter().map(|node| self.core.server(node));
                    drop(answer.send(looks.into_iter().zip(servers).collect()));
                }
            }
        }
    }

    fn acquired(&mut self, op: OpId, granted: Granted, valid_until: Time) {
        let Some(lock) = self.waiters.lock(op) else {
            return;
        };
        let (state, acquire) = (Arc::clone(&lock.state), lock.acquire.take());
        state.set_valid_until(valid_until);
        let (tries, fencing) = (granted.tries, granted.fencing);
        let is_taken = acquire.is_some_and(|answer| answer.send(Ok(granted)).is_ok());
        if !is_taken {
            // The caller dropped the request: nobody holds this lock.
            self.abandon(self.config.clock.now(), op, &state);
            self.waiters.remove(op);
        } else if self.config.observer.is_some() {
            let now = self.config.clock.now();
            self.config.observe(&Event::Acquired {
                key: state.key(),
                took: now.since(state.started),
                validity: valid_until.since(now),
                tries,
                fencing,
            });
        }
    }

    fn not_acquired(&mut self, op: OpId, kind: ErrorKind, causes: Vec<(NodeId, Cause)>) {
        let error = self.error(kind, causes);
        if let Some(Waiter::Lock(lock)) = self.waiters.remove(op)
            && let Some(answer) = lock.acquire
        {
            self.observe_failures(&error);
            self.config.observe(&Event::AcquireFailed {
                key: lock.state.key(),
                took: self.config.clock.now().since(lock.state.started),
                error: &error,
            });
            drop(answer.send(Err(error)));
        }
    }

    fn extended(
        &mut self,
        op: OpId,
        result: Result<Time, ErrorKind>,
        causes: Vec<(NodeId, Cause)>,
    ) {
        let result = result.map_err(|kind| self.error(kind, causes));
        if let Err(error) = &result {
            self.observe_failures(error);
        }
        if let Some(lock) = self.waiters.lock(op) {
            if let Ok(valid_until) = result {
                lock.state.set_valid_until(valid_until);
            }
            if let Some(answer) = lock.extend.take() {
                drop(answer.send(result));
            }
        }
    }

    /// Reports the nodes that had no vote.
    fn observe_failures(&self, error: &Error) {
        for failure in error.nodes().iter().filter(|node| !is_answer(&node.cause)) {
            self.config.observe(&Event::NodeFailed {
                address: &failure.address,
                cause: &failure.cause,
            });
        }
    }

    fn state(&mut self, op: OpId) -> Option<Arc<LockState>> {
        self.waiters.lock(op).map(|lock| Arc::clone(&lock.state))
    }

    fn set_port(&mut self, node: NodeId, new: Port) {
        if let Some(port) = self.ports.get_mut(node.index()) {
            *port = new;
        }
    }

    fn name(&self, node: NodeId) -> &str {
        self.config
            .names
            .get(node.index())
            .map_or("unknown node", |name| name)
    }

    fn error(&self, kind: ErrorKind, causes: Vec<(NodeId, Cause)>) -> Error {
        let (nodes, needed) = (self.config.quorum.nodes(), self.config.quorum.needed());
        let message = match kind {
            ErrorKind::Busy => "held by another client: try again later, or wait longer".to_owned(),
            ErrorKind::Contended => format!(
                "no holder found, and no attempt got {needed} of {nodes} nodes: other clients try at the same moment, \
                 or a few nodes still have an old key; try again later"
            ),
            ErrorKind::NoQuorum => no_quorum(&causes, nodes, needed),
            ErrorKind::Timeout if causes.is_empty() => format!(
                "the wait ended before {needed} of {nodes} nodes had replied: they may have more requests than they \
                 can handle"
            ),
            ErrorKind::Timeout => {
                format!("the wait ended before {needed} of {nodes} nodes had replied")
            }
            ErrorKind::Expired if !causes.is_empty() => format!(
                "the lock could not be renewed before it expired, {} of {nodes} nodes did not extend it: stop the work \
                 it protects, and check the nodes",
                causes.len()
            ),
            ErrorKind::Expired => return Error::expired(),
            ErrorKind::Lost => format!(
                "the lock is lost: {needed} of {nodes} nodes must hold it, and too many do not; stop the work it \
                 protects"
            ),
            ErrorKind::Cancelled => "the client was closed".to_owned(),
            // The core reports no others.
            _ => "wrong configuration".to_owned(),
        };
        let failure = |(node, cause): (NodeId, Cause)| NodeFailure {
            address: self.name(node).into(),
            cause,
        };
        Error::new(kind, message).with_nodes(causes.into_iter().map(failure).collect())
    }
}

/// Why too few nodes took part: they replied with errors, or did not reply.
fn no_quorum(causes: &[(NodeId, Cause)], nodes: usize, needed: usize) -> String {
    let is_error = |cause: &Cause| matches!(cause, Cause::ServerError(_));
    let errors = causes.iter().filter(|(_, cause)| is_error(cause)).count();
    if errors > nodes - needed {
        format!(
            "refused by error: {errors} of {nodes} nodes replied with an error, and {needed} must take part; see their \
         replies"
        )
    } else {
        format!(
            "no quorum: {needed} of {nodes} nodes must take part, and too many did not; check the nodes"
        )
    }
}

/// Whether the node took part, so that the cause is no failure of the node.
fn is_answer(cause: &Cause) -> bool {
    matches!(cause, Cause::Granted | Cause::HeldByOther | Cause::NotHeld)
}
