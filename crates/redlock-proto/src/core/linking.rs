//! Connections that come and go.

use std::sync::Arc;
use std::time::Duration;

use crate::cause::Cause;
use crate::core::asking::note_unreachable;
use crate::core::link::{LinkAlarm, Phase, Unanswered};
use crate::core::operation::{Ask, Operation, State};
use crate::core::{Core, Notice};
use crate::entropy::Entropy;
use crate::quorum::NodeId;
use crate::time::Time;

impl<E: Entropy> Core<E> {
    /// Has the driver open a connection.
    pub(in crate::core) fn open_link(&mut self, now: Time, node: NodeId) {
        let timeout = self.config.connect_timeout;
        if let Some(link) = self.links.get_mut(node.index()) {
            link.connect(now, timeout);
            self.notices.push_back(Notice::Connect(node));
        }
    }

    /// A connection is open: the node is greeted.
    pub(in crate::core) fn greet(&mut self, now: Time, node: NodeId) {
        let (Some(link), Some(login)) = (
            self.links.get_mut(node.index()),
            self.config.logins.get(node.index()),
        ) else {
            return;
        };
        if matches!(link.phase, Phase::Connecting { .. }) {
            link.greet(now, self.config.connect_timeout, login);
        }
    }

    /// The node said who it is.
    ///
    /// Invariant: two addresses of one server never both have a vote: the later one in the list is not used.
    pub(in crate::core) fn identified(&mut self, now: Time, node: NodeId) {
        let server = self
            .links
            .get(node.index())
            .and_then(|link| link.server.clone());
        let Some(server) = server else {
            return;
        };
        if let Some(other) = self.same_server(node, &server.run_id) {
            let (first, second) = (node.min(other), node.max(other));
            let index = first.index();
            self.break_link(now, second, Cause::Duplicate(index));
            self.move_tickets(second, first);
            if second == node {
                return self.flush_tickets(now, first);
            }
        }
        if let Some(link) = self.links.get_mut(node.index()) {
            link.ready(now);
            self.notices
                .push_back(Notice::NodeUp(node, Arc::clone(&server)));
        }
        self.flush_tickets(now, node);
        self.ask_waiting(now, node);
    }

    /// What a server was to release by an address that is not used is told to it by the one that is.
    fn move_tickets(&mut self, from: NodeId, to: NodeId) {
        let ledger = self.links.get_mut(from.index());
        let ledger = ledger.map(|link| std::mem::take(&mut link.ledger));
        if let (Some(ledger), Some(link)) = (ledger, self.links.get_mut(to.index())) {
            link.ledger.append(ledger);
        }
    }

    /// Another node of the list that is connected and turns out to be the same run of the same server.
    fn same_server(&self, node: NodeId, run_id: &Option<String>) -> Option<NodeId> {
        let run_id = run_id.as_ref()?;
        self.links
            .iter()
            .filter(|link| link.node != node)
            .filter(|link| matches!(link.phase, Phase::Ready | Phase::Suspect { .. }))
            .find(|link| {
                link.server.as_ref().and_then(|other| other.run_id.as_ref()) == Some(run_id)
            })
            .map(|link| link.node)
    }

    /// The connection is over, or came to nothing.
    pub(in crate::core) fn break_link(&mut self, now: Time, node: NodeId, cause: Cause) {
        let random = self.random();
        let Some(link) = self.links.get_mut(node.index()) else {
            return;
        };
        if matches!(link.phase, Phase::Idle | Phase::Down { .. }) {
            return;
        }
        let was_up = matches!(link.phase, Phase::Ready | Phase::Suspect { .. });
        let incarnation = link.incarnation;
        for request in link.fail(now, cause.clone(), random) {
            match request {
                Unanswered::Ticket(ticket) | Unanswered::TicketText(ticket) => {
                    link.ledger.push(*ticket);
                }
                Unanswered::Question(question) => {
                    if let Ask::Extend { ttl } = question.ask
                        && let Some(operation) = self.operations.get_mut(question.op)
                    {
                        operation.doubt(node, ttl);
                    }
                }
                Unanswered::Greeting(_) => {}
            }
        }
        link.waiting.clear();
        self.notices.push_back(Notice::Disconnect(node));
        if was_up || !matches!(cause, Cause::Disconnected) {
            self.notices
                .push_back(Notice::NodeDown(node, cause.clone()));
        }
        for op in self.operations.ids() {
            let (Some(operation), Some(link)) = (
                self.operations.get_mut(op),
                self.links.get_mut(node.index()),
            ) else {
                continue;
            };
            if operation.revoke(node, incarnation) {
                operation.blame(node, cause.clone());
            }
            note_unreachable(operation, link, cause.clone());
            self.changed.push(op);
        }
        let is_due = self
            .links
            .get(node.index())
            .is_some_and(|link| link.next_deadline() <= now);
        if is_due {
            self.open_link(now, node);
        }
    }

    pub(in crate::core) fn link_on_time(&mut self, now: Time, node: NodeId) {
        let patience = self.config.connect_timeout;
        let Some(link) = self.links.get_mut(node.index()) else {
            return;
        };
        match link.on_time(now, patience) {
            None => {}
            Some(LinkAlarm::Connect) => self.open_link(now, node),
            Some(LinkAlarm::GiveUp(cause)) => self.break_link(now, node, cause),
        }
    }
}

impl Operation {
    /// An extension was not answered when its connection broke. Whether its round is decided by now, or was long ago, makes
    /// no difference: the node may hear of it at any time.
    fn doubt(&mut self, node: NodeId, ttl: Duration) {
        self.doubtful.insert(node);
        self.doubtful_ttl = self.doubtful_ttl.min(ttl);
    }

    /// A node's connection is gone: its vote goes with it. Whether it had one, or owed one.
    fn revoke(&mut self, node: NodeId, incarnation: u32) -> bool {
        match &mut self.state {
            State::Acquiring { round, .. } => round.on_disconnected(node, incarnation),
            State::Adopting { round } => round.on_disconnected(node, incarnation),
            State::Held { extension, .. } => {
                let Some(extension) = extension else {
                    return false;
                };
                extension.round.on_disconnected(node, incarnation)
            }
            State::Releasing { round, .. } => round.on_disconnected(node, incarnation),
            State::Confirming { .. }
            | State::Waiting { .. }
            | State::Queued { .. }
            | State::Leaving { .. }
            | State::Looking { .. }
            | State::Over => false,
        }
    }
}
