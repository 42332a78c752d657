//! Releases that could not be sent to a node yet.

use std::collections::VecDeque;

use crate::time::Time;
use crate::token::Token;

/// A token that a node may still hold although its lock was released or has expired.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ticket {
    pub(crate) key: Box<[u8]>,
    pub(crate) token: Token,
    /// When the node has let it go on its own at the latest.
    pub(crate) until: Time,
}

/// The tickets for one node, kept until it can be reached again or they are moot. Bounded: a node that is away
/// for long costs [`TICKETS_MAX`] tickets, and the TTL frees what those beyond would have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    tickets: VecDeque<Ticket>,
}

impl Ledger {
    pub(crate) fn push(&mut self, ticket: Ticket) {
        if self.tickets.len() >= TICKETS_MAX {
            self.tickets.pop_front();
        }
        self.tickets.push_back(ticket);
    }

    /// Takes over the tickets of another node.
    pub(crate) fn append(&mut self, other: Self) {
        for ticket in other.tickets {
            self.push(ticket);
        }
    }

    /// The next ticket that is not moot yet at `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Ticket> {
        loop {
            let ticket = self.tickets.pop_front()?;
            if ticket.until > now {
                return Some(ticket);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }
}

/// Most tickets per node: about 1 MB with keys of a hundred bytes.
const TICKETS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(n: u64) -> Ticket {
        Ticket {
            key: n.to_string().into_bytes().into(),
            token: Token::new("t").unwrap(),
            until: Time::from_nanos(n),
        }
    }

    #[test]
    fn moot_tickets_are_dropped_and_the_number_is_bounded() {
        let mut ledger = Ledger::default();
        for n in 1..=3 {
            ledger.push(ticket(n));
        }
        assert_eq!(ledger.pop(Time::from_nanos(1)), Some(ticket(2)));
        assert_eq!(ledger.pop(Time::from_nanos(3)), None, "over at that moment");
        for n in 0..5000 {
            ledger.push(ticket(n));
        }
        assert_eq!(ledger.pop(Time::ZERO), Some(ticket(5000 - 4096)));
    }
}
