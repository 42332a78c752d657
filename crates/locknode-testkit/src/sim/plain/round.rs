//! One question to all nodes, and who answered what.

use std::collections::{BTreeMap, BTreeSet};

use redlock_proto::Time;

use crate::sim::plain::request::{Answer, Seen, What};

/// The votes of the round that runs. Replies carry the number of their round, so that none counts in another.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    pub(super) number: u32,
    pub(super) started: Time,
    pub(super) acks: BTreeSet<u8>,
    pub(super) refused: BTreeSet<u8>,
    pub(super) outstanding: BTreeSet<u8>,
    /// How many nodes have released the lock.
    pub(super) released: usize,
    /// The counter that each node told, or accepted since.
    pub(super) fences: BTreeMap<u8, u64>,
    /// Since when each node watches the key: the link's number then.
    pub(super) watched: BTreeMap<u8, u32>,
    /// What the key was held by on each node when it was watched.
    pub(super) seen: BTreeMap<u8, Seen>,
}

impl Round {
    /// The next round. `now` is before the first byte.
    pub(super) fn begin(&mut self, now: Time, keeps_votes: bool) {
        self.number += 1;
        self.started = now;
        if !keeps_votes {
            self.acks.clear();
        }
        self.refused.clear();
        self.outstanding.clear();
    }

    /// The next round, in which all nodes are asked to release the lock.
    pub(super) fn begin_release(&mut self) {
        self.number += 1;
        self.released = 0;
        self.outstanding.clear();
    }

    /// A node's answer to a request of this round.
    pub(super) fn answered(&mut self, node: u8, what: What, answer: Answer) {
        self.outstanding.remove(&node);
        match (answer, what) {
            (Answer::Yes(_), What::Release) => self.released += 1,
            (Answer::Yes(_), What::Fence(fence)) | (Answer::Yes(fence), _) => {
                self.acks.insert(node);
                self.fences.insert(node, fence);
            }
            (Answer::No, _) => {
                self.refused.insert(node);
            }
            (Answer::Failed | Answer::Sees(_), _) => {}
        }
    }

    /// Takes the votes of the nodes behind `fence` back; they are to be asked anew.
    pub(super) fn take_lagging(&mut self, fence: u64) -> BTreeSet<u8> {
        let fences = &self.fences;
        let is_behind = |node: &u8| fences.get(node).is_none_or(|it| *it < fence);
        let lagging = self.acks.iter().copied().filter(is_behind).collect();
        self.acks = &self.acks - &lagging;
        lagging
    }

    /// Whether every node has answered or had its time.
    pub(super) fn is_complete(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// The highest counter of those that granted.
    pub(super) fn highest_fence(&self) -> u64 {
        let fences = self.acks.iter().map(|node| self.fence(*node));
        fences.max().unwrap_or(0)
    }

    /// How many of those that granted have exactly this counter.
    pub(super) fn acks_at(&self, fence: u64) -> usize {
        let acks = self.acks.iter();
        acks.filter(|node| self.fence(**node) == fence).count()
    }

    /// The counter of one node.
    pub(super) fn fence(&self, node: u8) -> u64 {
        self.fences.get(&node).copied().unwrap_or(0)
    }
}
