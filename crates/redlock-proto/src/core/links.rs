//! The connections to all nodes: what is put to them, what they answer, and how they come and go.

use std::sync::Arc;

use crate::cause::Cause;
use crate::core::answers::Heard;
use crate::core::dialect::ScriptForm;
use crate::core::ledger::Ticket;
use crate::core::link::{Incoming, Phase, Unanswered};
use crate::core::question::{Ask, Question};
use crate::core::{Core, Notice, Operation, ServerInfo, State};
use crate::entropy::Entropy;
use crate::quorum::{NodeId, NodeSet};
use crate::round::Vote;
use crate::time::Time;

impl<E: Entropy> Core<E> {
    /// Puts a question to nodes: to those that are ready at once, to those that are being connected when they are ready.
    /// The others have failed.
    pub(super) fn ask(&mut self, now: Time, operation: &mut Operation, ask: Ask, nodes: NodeSet) {
        let idle = self.links.iter().filter(|link| link.phase == Phase::Idle);
        let idle: NodeSet = idle.map(|link| link.node).collect();
        for node in idle.iter() {
            self.open_link(now, node);
        }
        self.hasten_links(now, ask);
        let mut encoded = None;
        for link in &mut self.links {
            if !nodes.contains(link.node) {
                continue;
            }
            let mut question = Question {
                op: operation.id,
                round: operation.round,
                ask,
                form: ScriptForm::Sha,
            };
            if link.is_ready() {
                question.form = link.script_form(ask);
                // The nodes that speak the same way get the same bytes.
                if encoded != Some((link.dialect, question.form)) {
                    self.scratch.clear();
                    operation.encode(&mut self.scratch, ask, link.dialect, question.form);
                    encoded = Some((link.dialect, question.form));
                }
                link.out.extend_from_slice(&self.scratch);
                link.asked(now, Unanswered::Question(question));
                operation.asked(now, link, ask, self.config.connect_timeout);
            } else if link.is_hopeful() {
                link.waiting.push(question);
                operation.awaits(link.node);
            } else {
                let cause = link.cause();
                operation.unreachable(link, cause);
            }
        }
    }

    /// Puts a question to those of the nodes that are ready.
    pub(super) fn ask_ready(
        &mut self,
        now: Time,
        operation: &mut Operation,
        ask: Ask,
        mut nodes: NodeSet,
    ) {
        for link in self.links.iter().filter(|link| !link.is_ready()) {
            nodes.remove(link.node);
        }
        self.ask(now, operation, ask, nodes);
    }

    /// A lock is wanted and too few nodes are there: those that are down are tried again sooner.
    fn hasten_links(&mut self, now: Time, ask: Ask) {
        let ready = self.links.iter().filter(|link| link.is_ready()).count();
        if ask != Ask::Acquire || ready >= self.quorum.needed() {
            return;
        }
        for link in &mut self.links {
            link.hasten(now);
        }
    }

    /// The node is ready: what waited for that is asked now, if it is still of interest.
    fn ask_waiting(&mut self, now: Time, node: NodeId) {
        let patience = self.config.connect_timeout;
        let Some(link) = self.links.get_mut(node.index()) else {
            return;
        };
        for mut question in std::mem::take(&mut link.waiting) {
            if let Some(operation) = self.operations.get_mut(question.op)
                && operation.wants(&question)
            {
                question.form = link.script_form(question.ask);
                operation.encode(&mut link.out, question.ask, link.dialect, question.form);
                link.asked(now, Unanswered::Question(question));
                operation.asked(now, link, question.ask, patience);
            }
        }
    }

    /// A node that is ready gets the releases that it missed.
    pub(super) fn flush_tickets(&mut self, now: Time, node: NodeId) {
        let Some(link) = self.links.get_mut(node.index()) else {
            return;
        };
        if !link.is_ready() || link.ledger.is_empty() {
            return;
        }
        while let Some(ticket) = link.ledger.pop(now) {
            link.send_ticket(now, Box::new(ticket), ScriptForm::Sha);
        }
    }

    /// A node that does not know the release script gets a ticket in full.
    fn send_ticket_text(&mut self, now: Time, node: NodeId, ticket: Box<Ticket>) {
        let Some(link) = self.links.get_mut(node.index()) else {
            return;
        };
        // The connection may have broken over what came with this.
        if link.is_ready() {
            link.send_ticket(now, ticket, ScriptForm::Text);
        } else {
            link.ledger.push(*ticket);
        }
    }

    /// Takes one thing that came in.
    pub(super) fn take(&mut self, now: Time, node: NodeId, incoming: Incoming) {
        match incoming {
            Incoming::Answer(question, heard) => self.answer(now, node, question, &heard),
            Incoming::TicketNeedsText(ticket) => self.send_ticket_text(now, node, ticket),
            Incoming::Identified(server) => self.identified(now, node, server),
            Incoming::Broken(cause) => self.break_link(now, node, cause),
        }
    }

    fn answer(&mut self, now: Time, node: NodeId, mut question: Question, heard: &Heard) {
        let Some(link) = self.links.get_mut(node.index()) else {
            return;
        };
        if heard.is_noscript() && question.form == ScriptForm::Sha {
            link.forgot_script(question.ask);
            // Not if the operation wants something else by now: an extension from before would undo a later one.
            if let Some(operation) = self.operations.get_mut(question.op)
                && operation.wants(&question)
                && link.is_ready()
            {
                question.form = ScriptForm::Text;
                operation.encode(&mut link.out, question.ask, link.dialect, question.form);
                link.asked(now, Unanswered::Question(question));
            }
            return;
        }
        // Before it counts for anything: when order is in doubt, no reply of this connection is an answer.
        if question.ask.cannot_be_answered_by(heard, link.dialect) {
            let cause = heard.cause(question.ask.name());
            return self.break_link(now, node, cause);
        }
        let vote = Vote {
            round: question.round,
            node,
            incarnation: link.incarnation,
        };
        self.with(question.op, |core, operation| {
            let late = operation.heals_late(question, heard);
            let counts = match question.ask {
                Ask::Acquire => operation.acquire_answered(vote, heard),
                Ask::Fence => operation.fence_answered(vote, heard),
                Ask::Extend { .. } => operation.extend_answered(vote, heard),
                Ask::Release | Ask::Shrink { .. } => operation.release_answered(vote, heard),
                Ask::Remaining | Ask::Holder | Ask::Describe | Ask::Force | Ask::Ping => {
                    match operation.state {
                        State::Waiting(_) => operation.remaining_answered(now, vote, heard),
                        State::Confirming(_) => operation.holder_answered(vote, heard),
                        _ => operation.look_answered(node, question.ask, heard),
                    }
                }
                Ask::Heal { .. } => false,
            } || matches!(operation.state, State::Leaving { .. });
            // Several answers in one batch are judged together, once.
            if counts && core.changed.last() != Some(&question.op) {
                core.changed.push(question.op);
            }
            if let Some(ttl) = late {
                let mut nodes = NodeSet::default();
                nodes.insert(node);
                core.heal(now, operation, nodes, ttl);
            }
        });
    }

    /// Has the driver open a connection.
    pub(super) fn open_link(&mut self, now: Time, node: NodeId) {
        let timeout = self.config.connect_timeout;
        if let Some(link) = self.links.get_mut(node.index()) {
            link.connect(now, timeout);
            self.notices.push_back(Notice::Connect(node));
        }
    }

    /// The driver opened the connection it was asked for: greets the node.
    pub fn connected(&mut self, now: Time, node: NodeId) {
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
    fn identified(&mut self, now: Time, node: NodeId, server: Arc<ServerInfo>) {
        if let Some(other) = self.same_server(node, &server.run_id) {
            let (first, second) = (node.min(other), node.max(other));
            let of = first.index();
            self.break_link(now, second, Cause::Duplicate { of });
            self.move_tickets(second, first);
            if second == node {
                return self.flush_tickets(now, first);
            }
        }
        if let Some(link) = self.links.get_mut(node.index()) {
            link.ready(now);
            self.notices.push_back(Notice::NodeUp(node, server));
        }
        self.flush_tickets(now, node);
        self.ask_waiting(now, node);
    }

    /// A server gets the releases of an address that is not used through the one that is.
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

    /// The connection broke, or could not be opened.
    pub(super) fn break_link(&mut self, now: Time, node: NodeId, cause: Cause) {
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
                Unanswered::Ticket(ticket, _) => link.ledger.push(*ticket),
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
        for operation in self.operations.iter_mut() {
            operation.disconnected(link, incarnation, &cause);
            self.changed.push(operation.id);
        }
        if link.next_deadline() <= now {
            self.open_link(now, node);
        }
    }

    pub(super) fn link_on_time(&mut self, now: Time, node: NodeId) {
        let patience = self.config.connect_timeout;
        let Some(link) = self.links.get_mut(node.index()) else {
            return;
        };
        if link.is_due(now) {
            self.open_link(now, node);
        } else if let Some(cause) = link.on_time(now, patience) {
            self.break_link(now, node, cause);
        }
    }
}
