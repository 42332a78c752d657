//! What a checker found: a rule that was broken, by whom, when, and what led to it.

use std::fmt::{Display, Formatter, Result as FmtResult};

use crate::history::KeyNo;
use crate::named::named;
use crate::span::SimTime;

/// A broken rule.
///
/// Its text is for people: who and what first, then a line per lock with the nodes that granted it, then what went wrong
/// in between. Lines after the first are indented by two spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub kind: ViolationKind,
    /// Since when it was broken.
    pub from: SimTime,
    /// Until when, the same as `from` when it was in a moment.
    pub until: SimTime,
    /// The clients that were in it, in order.
    pub clients: Vec<u8>,
    /// The nodes that were in it, in order.
    pub nodes: Vec<u8>,
    /// The key it was about.
    pub key: Option<KeyNo>,
    /// What happened, for people.
    pub text: String,
}

named! {
    /// The rules, in the order of their weight.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum ViolationKind {
        /// Two clients believed at one time that they held one key.
        Exclusion = "exclusion",
        /// A resource that does not check fencing tokens took a write of a lock after one of a later lock. Nothing but fencing
        /// prevents that; it is never promised.
        Resource = "resource",
        /// A resource that checks fencing tokens took such a write.
        FencedResource = "fenced-resource",
        /// Two locks of one key had the same fencing token.
        FencingDuplicate = "fencing-duplicate",
        /// A lock had a lower fencing token than one that was held before it was called for.
        FencingOrder = "fencing-order",
        /// A lock was extended although another one of the key had been acquired since, or although it had expired.
        Continuity = "continuity",
        /// A client extended or released the lock of another one.
        Robbery = "robbery",
        /// A lock was handed out after its validity had ended.
        Expired = "expired",
        /// A client believed that it held a lock while no majority of the nodes stood behind it.
        Majority = "majority",
        /// The end of a lock was reported to its holder only after it.
        LateLoss = "late-loss",
        /// Somebody waited although nothing was in the way.
        Liveness = "liveness",
        /// A node granted a key although a grant that it had reported had not ended.
        NodeGrant = "node-grant",
        /// The fence counter of a key on a node did not rise from one grant to the next.
        NodeCounter = "node-counter",
        /// A node granted or extended a lock in its quarantine.
        NodeQuarantine = "node-quarantine",
        /// A node reported a lock or a counter that it would forget in a crash, without a wait that makes up for it; or it came
        /// back without one that it had reported, or with one that it had deleted; or its disk rested while something was to become
        /// durable; or it used up fence counters for nothing.
        NodeDurability = "node-durability",
        /// A node answered a request otherwise than a naive model of a node does.
        NodeAnswer = "node-answer",
        /// A client said or did something that is not borne out by what it had asked and heard.
        ClientConduct = "client-conduct",
        /// A node refused to start on files that nothing but itself had touched.
        NodeFiles = "node-files",
        /// Somebody did something again and again, and no time passed.
        Stuck = "stuck",
    }
}

impl ViolationKind {
    /// A bit of its own.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl Violation {
    /// A rule that was broken from one moment to another. Who and what it was about is still to be said.
    pub(super) const fn new(
        kind: ViolationKind,
        from: SimTime,
        until: SimTime,
        text: String,
    ) -> Self {
        Self {
            kind,
            from,
            until,
            clients: Vec::new(),
            nodes: Vec::new(),
            key: None,
            text,
        }
    }

    /// What was broken, in a line that does not say when.
    pub fn headline(&self) -> String {
        let first = self.text.lines().next().unwrap_or_default();
        format!("{}: {first}", self.kind)
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        if self.from == self.until {
            write!(f, "{}", self.from)?
        } else {
            write!(f, "{}..{}", self.from, self.until)?
        }
        write!(f, " {}: {}", self.kind, self.text)
    }
}

/// A checker that has found this many stops looking: the first ones show what is wrong, and a broken world has thousands.
pub(super) const FINDINGS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_bit_of_its_own_and_they_are_in_order() {
        let mut bits = 0;
        for kind in ViolationKind::ALL {
            assert_eq!(bits & kind.bit(), 0);
            assert!(kind.bit() > bits, "{kind}");
            bits |= kind.bit();
        }
        assert!(ViolationKind::ALL.is_sorted());
    }

    #[test]
    fn a_violation_says_when_what_and_who() {
        let mut violation = Violation {
            kind: ViolationKind::Exclusion,
            from: SimTime::from_nanos(1_500_000_000),
            until: SimTime::from_nanos(2_000_000_000),
            clients: vec![0, 1],
            nodes: vec![2],
            key: Some(0),
            text: "clients 0 and 1 held `k`".into(),
        };
        let text = "1.5s..2s exclusion: clients 0 and 1 held `k`";
        assert_eq!(violation.to_string(), text);
        violation.until = violation.from;
        let text = "1.5s exclusion: clients 0 and 1 held `k`";
        assert_eq!(violation.to_string(), text);
    }
}
