//! Putting questions to nodes.

use std::time::Duration;

use crate::cause::Cause;
use crate::core::Core;
use crate::core::dialect::{self, Dialect, ScriptForm};
use crate::core::ledger::Ticket;
use crate::core::link::{Link, Phase, Question, Unanswered};
use crate::core::operation::{Ask, OpId, Operation, State};
use crate::entropy::Entropy;
use crate::quorum::{NodeId, NodeSet};
use crate::time::Time;

impl<E: Entropy> Core<E> {
    /// Asks every node: those that are ready at once, those that are being connected when they are ready. The
    /// others have failed.
    pub(in crate::core) fn ask_all(&mut self, now: Time, op: OpId, ask: Ask) {
        self.ask_some(now, op, ask, self.quorum.all());
    }

    pub(in crate::core) fn ask_some(&mut self, now: Time, op: OpId, ask: Ask, nodes: NodeSet) {
        let idle: Vec<NodeId> = self
            .links
            .iter()
            .filter(|link| matches!(link.phase, Phase::Idle))
            .map(|link| link.node)
            .collect();
        for node in idle {
            self.open_link(now, node);
        }
        let Some(operation) = self.operations.get(op) else {
            return;
        };
        let question = Question {
            op,
            round: operation.round,
            ask,
            form: ScriptForm::Sha,
        };
        self.hasten_links(now, ask);
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        let mut encoded = None;
        for node in nodes.iter() {
            let Some(link) = self.links.get_mut(node.index()) else {
                continue;
            };
            if link.is_ready() {
                let form = link.script_form(ask);
                let question = Question { form, ..question };
                // The nodes that speak the same way get the same bytes.
                if encoded != Some((link.dialect, form)) {
                    self.scratch.clear();
                    encode(&mut self.scratch, operation, ask, link.dialect, form);
                    encoded = Some((link.dialect, form));
                }
                link.out.extend_from_slice(&self.scratch);
                note_asked(now, operation, link, question, self.config.connect_timeout);
            } else if link.is_hopeful() {
                link.waiting.push(question);
                note_waiting(operation, node);
            } else {
                note_unreachable(operation, link, link.cause());
            }
        }
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

    /// Puts one question to one node that is ready.
    pub(in crate::core) fn ask_again(&mut self, now: Time, node: NodeId, question: Question) {
        let Some(operation) = self.operations.get_mut(question.op) else {
            return;
        };
        let Some(link) = self.links.get_mut(node.index()) else {
            return;
        };
        if link.is_ready() {
            encode(
                &mut link.out,
                operation,
                question.ask,
                link.dialect,
                question.form,
            );
            link.asked(now, Unanswered::Question(question));
        }
    }

    /// The node is ready: what waited for that is asked now, if it is still of interest.
    pub(in crate::core) fn ask_waiting(&mut self, now: Time, node: NodeId) {
        let patience = self.config.connect_timeout;
        let Some(link) = self.links.get_mut(node.index()) else {
            return;
        };
        for question in std::mem::take(&mut link.waiting) {
            if let Some(operation) = self.operations.get_mut(question.op)
                && operation.round == question.round
                && operation.wants(question.ask)
            {
                let form = link.script_form(question.ask);
                let question = Question { form, ..question };
                encode(
                    &mut link.out,
                    operation,
                    question.ask,
                    link.dialect,
                    question.form,
                );
                note_asked(now, operation, link, question, patience);
            }
        }
    }

    /// A node that is ready gets the releases that it missed.
    pub(in crate::core) fn flush_tickets(&mut self, now: Time, node: NodeId) {
        let Some(link) = self.links.get_mut(node.index()) else {
            return;
        };
        if !link.is_ready() || link.ledger.is_empty() {
            return;
        }
        while let Some(ticket) = link.ledger.pop(now) {
            let (key, token) = (&ticket.key, ticket.token.as_ref());
            dialect::release(&mut link.out, link.dialect, ScriptForm::Sha, key, token);
            link.asked(now, Unanswered::Ticket(Box::new(ticket)));
        }
    }

    /// A node that does not know the release script gets a ticket in full.
    pub(in crate::core) fn send_ticket_text(
        &mut self,
        now: Time,
        node: NodeId,
        ticket: Box<Ticket>,
    ) {
        let Some(link) = self.links.get_mut(node.index()) else {
            return;
        };
        // The connection may have broken over what came with this.
        if !link.is_ready() {
            return link.ledger.push(*ticket);
        }
        let (key, token) = (&ticket.key, ticket.token.as_ref());
        dialect::release(&mut link.out, link.dialect, ScriptForm::Text, key, token);
        link.asked(now, Unanswered::TicketText(ticket));
    }
}

/// Appends a question in the node's dialect.
fn encode(out: &mut Vec<u8>, operation: &Operation, ask: Ask, dialect: Dialect, form: ScriptForm) {
    let (key, token) = (&operation.terms.key[..], operation.token.as_ref());
    match ask {
        Ask::Acquire => {
            let (ttl, floor) = (operation.terms.ttl, operation.floor());
            dialect::acquire(out, dialect, key, token, ttl, floor);
        }
        Ask::Heal { ttl } => dialect::acquire(out, dialect, key, token, ttl, operation.floor()),
        Ask::Extend { ttl } | Ask::Shrink { ttl } => {
            dialect::extend(out, dialect, form, key, token, ttl);
        }
        Ask::Release => dialect::release(out, dialect, form, key, token),
        Ask::Remaining | Ask::LookRemaining => locknode_resp::encode_command(out, &[b"PTTL", key]),
        Ask::LookToken | Ask::Holder => locknode_resp::encode_command(out, &[b"GET", key]),
        Ask::Ping => locknode_resp::encode_command(out, &[b"PING"]),
        // Each node is asked in words of its own: see `ask_lagging`.
        Ask::Fence => {}
    }
}

/// The question is on its way.
fn note_asked(
    now: Time,
    operation: &mut Operation,
    link: &mut Link,
    question: Question,
    slack: Duration,
) {
    link.asked(now, Unanswered::Question(question));
    let (node, incarnation) = (link.node, link.incarnation);
    let granted_for = match question.ask {
        Ask::Acquire => Some(operation.terms.ttl),
        Ask::Heal { ttl } | Ask::Extend { ttl } => Some(ttl),
        _ => None,
    };
    if let Some(ttl) = granted_for {
        operation.may_be_held(node, now, ttl, slack);
    }
    match (&mut operation.state, question.ask) {
        (State::Acquiring { round, .. }, Ask::Acquire) => match link.dialect.has_fences() {
            true => round.asked(node, incarnation),
            false => round.asked_plainly(node, incarnation),
        },
        (State::Adopting { round }, Ask::Extend { .. }) => round.asked(node, incarnation),
        (
            State::Held {
                extension: Some(extension),
                ..
            },
            Ask::Extend { .. },
        ) => {
            extension.round.asked(node, incarnation);
        }
        (State::Releasing { round, awaited, .. }, Ask::Release | Ask::Shrink { .. }) => {
            round.asked(node, incarnation);
            awaited.insert(node);
        }
        _ => {}
    }
}

/// The question waits for the node to be ready.
fn note_waiting(operation: &mut Operation, node: NodeId) {
    if let State::Releasing { awaited, .. } = &mut operation.state {
        awaited.insert(node);
    }
}

/// The node cannot be asked, or will not answer what it was asked.
pub(in crate::core) fn note_unreachable(operation: &mut Operation, link: &mut Link, cause: Cause) {
    let node = link.node;
    let is_failure = match &mut operation.state {
        State::Acquiring { round, .. } => round.on_unreachable(node),
        State::Adopting { round } => round.on_unreachable(node),
        State::Held { extension, .. } => extension
            .as_mut()
            .is_some_and(|extension| extension.round.on_unreachable(node)),
        State::Releasing { round, awaited, .. } => {
            awaited.remove(node);
            let is_settled = round.confirmed().contains(node) || round.not_held().contains(node);
            if !is_settled && operation.may_hold.contains(node) {
                link.ledger.push(Ticket {
                    key: operation.terms.key.clone(),
                    token: operation.token,
                    until: operation.may_hold_until,
                });
            }
            round.on_unreachable(node)
        }
        State::Looking { looks, .. } => {
            if let Some(look) = looks.get_mut(node.index())
                && look.missing > 0
            {
                look.missing = 0;
                look.cause = Some(cause.clone());
            }
            false
        }
        State::Confirming { holders, .. } => {
            holders.failed(node);
            false
        }
        State::Waiting { .. } | State::Queued { .. } | State::Leaving { .. } | State::Over => false,
    };
    if is_failure {
        operation.blame(node, cause);
    }
}

impl Operation {
    /// Whether the answer to this question is still of interest.
    pub(in crate::core) fn wants(&self, ask: Ask) -> bool {
        match (&self.state, ask) {
            // A lock that a majority granted while this node was being connected is wanted here as well: one node
            // that restarts must not cost it the majority.
            (
                State::Acquiring { .. } | State::Held { .. } | State::Leaving { .. },
                Ask::Acquire,
            )
            | (State::Leaving { .. }, Ask::Extend { .. })
            | (State::Confirming { .. }, Ask::Holder)
            | (State::Adopting { .. }, Ask::Extend { .. })
            | (State::Looking { .. }, Ask::LookToken | Ask::LookRemaining | Ask::Ping)
            | (State::Releasing { .. }, Ask::Release | Ask::Shrink { .. }) => true,
            // Decided or not: it is the last one that the holder asked for.
            (
                State::Held {
                    extension,
                    confirmed,
                    ..
                },
                Ask::Extend { .. },
            ) => {
                let is_confirmed = confirmed.is_some_and(|(round, _)| round == self.round);
                extension.is_some() || is_confirmed
            }
            _ => false,
        }
    }
}
