//! Fencing tokens, without time.
//!
//! There are no clocks here and no ticks: any lock may end on any node at any moment, any node may crash, and any message may
//! come late or never. Whatever happens, no two attempts that succeed have the same token, and one that began when another
//! had succeeded has a higher one.

mod rounds;
mod state;

use stateright::{Model, Property, Representative};

use crate::fencing::rounds::Rounds;
use crate::fencing::state::{Cut, Phase, Stage, State};
use crate::node::{Answer, Engines, NOBODY, Node, Request};
use crate::search::Real;

/// The scope of a search, and what is wrong in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// What the nodes counted before.
    pub(crate) counters: [u8; 3],
    /// How many times a node crashes.
    pub(crate) crashes: u8,
    /// How many connections break.
    pub(crate) cuts: u8,
    /// Whether clients hear of refusals. Off, a refusal is as good as no reply.
    pub(crate) refusals: bool,
    /// Whether all attempts use one value, which the client never does.
    pub(crate) shared_value: bool,
    /// Whether what can make no difference any more is dropped.
    pub(crate) reduced: bool,
    /// Whether states that differ by names alone count as one. Off, a trace keeps the names that it began with.
    pub(crate) symmetric: bool,
    pub(crate) bug: Option<Bug>,
}

impl Rules {
    pub(crate) fn counters(self, counters: [u8; 3]) -> Self {
        Self { counters, ..self }
    }

    pub(crate) fn crashes(self, crashes: u8) -> Self {
        Self { crashes, ..self }
    }

    pub(crate) fn cuts(self, cuts: u8) -> Self {
        Self { cuts, ..self }
    }

    pub(crate) fn refusals(self) -> Self {
        Self {
            refusals: true,
            ..self
        }
    }

    pub(crate) fn shared_value(self) -> Self {
        Self {
            shared_value: true,
            ..self
        }
    }
}

/// What can be wrong where the model hands something to the real code, or takes it back: the designs that were
/// dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// R1: the token is the maximum that was told, and no node hears of it.
    NoWriteBack,
    /// R2: a node accepts a token whoever holds the key.
    UnconditionalWriteBack,
    /// R3: a node that crashed counts from the start again.
    VolatileCounters,
    /// R4: a node counts within the number of its start, which it keeps, and keeps nothing else.
    EpochOnly,
    /// R5: a node accepts a token for the value that holds the key, by whatever grant.
    OwnerByValue,
}

/// The model; `ATTEMPTS` of them, each by a client of its own or one after the other.
#[derive(Debug)]
pub(crate) struct Fencing<const ATTEMPTS: usize> {
    rules: Rules,
    engines: Engines,
    rounds: Rounds,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// All nodes are asked for the lock.
    Begin { attempt: usize },
    /// The one message that is under way between an attempt and a node arrives.
    Deliver {
        attempt: usize,
        node: usize,
        message: Stage,
    },
    /// The connection between an attempt and a node breaks.
    Cut { attempt: usize, node: usize },
    /// The lock ends on a node, by its deadline or by a release.
    End { node: usize },
    /// A node forgets its table and starts again.
    Crash { node: usize },
}

impl<const ATTEMPTS: usize> Fencing<ATTEMPTS> {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            engines: Engines::new(1),
            rounds: Rounds::new(rules.bug),
        }
    }

    /// The value by which an attempt holds the key.
    fn value(&self, attempt: usize) -> u8 {
        if self.rules.shared_value {
            SHARED
        } else {
            NOBODY + 1 + u8::try_from(attempt).expect("a few attempts")
        }
    }

    /// A request arrives at its node.
    fn serve(&self, state: &mut State<ATTEMPTS>, attempt: usize, node: usize) -> Option<()> {
        let phase = state.attempts[attempt].phase;
        let lane = &mut state.lanes[node];
        let ask = &mut lane.asks[attempt];
        let token = self.value(attempt);
        match ask.stage {
            Stage::Sent => {
                let (answer, after) = self
                    .engines
                    .ask(lane.node, Request::AcquireFenced { token });
                match answer {
                    Answer::Granted(counter) => {
                        (ask.stage, ask.counter) = (Stage::Granted, counter)
                    }
                    Answer::Refused(counter) if self.rules.refusals => {
                        (ask.stage, ask.counter) = (Stage::Refused, counter);
                    }
                    Answer::Refused(_) => return None,
                    other => panic!("LOCK.ACQUIRE is answered by {other:?}"),
                }
                lane.node = after;
            }
            Stage::Asked => {
                let fence = phase
                    .token()
                    .expect("it is fixed when nodes are asked to accept it");
                let (answer, after) = self.write_back(lane.node, token, ask.counter, fence);
                match answer {
                    Answer::Yes => ask.stage = Stage::Accepted,
                    Answer::No if self.rules.refusals => ask.stage = Stage::Rejected,
                    Answer::No => return None,
                    other => panic!("LOCK.FENCE is answered by {other:?}"),
                }
                lane.node = after;
            }
            other => panic!("{other:?} is no request under way"),
        }
        Some(())
    }

    fn write_back(&self, node: Node, token: u8, grant: u8, fence: u8) -> (Answer, Node) {
        let grant = match self.rules.bug {
            Some(Bug::OwnerByValue) => node.grant,
            Some(Bug::UnconditionalWriteBack) => {
                let raised = Node {
                    counter: node.counter.max(fence),
                    ..node
                };
                return (Answer::Yes, self.engines.look(raised));
            }
            _ => grant,
        };
        self.engines.ask(
            node,
            Request::Fence {
                token,
                grant,
                fence,
            },
        )
    }

    /// A reply arrives at its client, or the end of its connection.
    fn hear(&self, state: &mut State<ATTEMPTS>, attempt: usize, node: usize) {
        let asks = state.lanes.map(|lane| lane.asks[attempt]);
        let this = &mut state.attempts[attempt];
        let heard = self.rounds.heard(this.phase, asks, node);
        this.phase = heard.phase;
        for (lane, ask) in state.lanes.iter_mut().zip(heard.asks) {
            lane.asks[attempt] = ask;
        }
    }

    /// What a node that crashed counts from. `[F2]` `[F3]` It is at least all that it ever told; the durable
    /// ceiling is higher than that most of the time, here by one or not at all.
    fn fence_base(&self, node: Node, starts: u8) -> u8 {
        match self.rules.bug {
            Some(Bug::VolatileCounters) => 0,
            Some(Bug::EpochOnly) => starts * EPOCH,
            _ => node.counter.next_multiple_of(2),
        }
    }

    fn act(&self, state: &mut State<ATTEMPTS>, action: Action) -> Option<()> {
        match action {
            Action::Begin { attempt } => state.begin(attempt),
            Action::Deliver {
                attempt,
                node,
                message: Stage::Sent | Stage::Asked,
            } => {
                self.serve(state, attempt, node)?;
            }
            Action::Deliver { attempt, node, .. } => self.hear(state, attempt, node),
            Action::Cut { attempt, node } => {
                state.lanes[node].asks[attempt].cut = Cut::at(state.attempts[attempt].phase);
                state.cuts -= 1;
                self.hear(state, attempt, node);
            }
            Action::End { node } => {
                let lane = &mut state.lanes[node];
                // The deadline has come; the engine sees it.
                lane.node = self.engines.look(Node {
                    left: 0,
                    ..lane.node
                });
            }
            Action::Crash { node } => {
                let lane = &mut state.lanes[node];
                if self.rules.bug == Some(Bug::EpochOnly) {
                    lane.starts += 1;
                }
                lane.node = Node::restarted(0, self.fence_base(lane.node, lane.starts));
                state.crashes -= 1;
            }
        }
        Some(())
    }
}

impl<const ATTEMPTS: usize> Model for Fencing<ATTEMPTS> {
    type State = State<ATTEMPTS>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        let mut first = State::new(&self.rules);
        if self.rules.bug == Some(Bug::EpochOnly) {
            for lane in &mut first.lanes {
                lane.starts = lane.node.counter;
                lane.node.counter *= EPOCH;
            }
        }
        vec![if self.rules.symmetric {
            first.representative()
        } else {
            first
        }]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Action>) {
        for (attempt, this) in state.attempts.iter().enumerate() {
            if this.phase == Phase::Fresh {
                actions.push(Action::Begin { attempt });
            }
        }
        for (node, lane) in state.lanes.iter().enumerate() {
            // What happens to one of two equal nodes may as well happen to the other.
            if self.rules.symmetric && node > 0 && state.lanes[node - 1] == *lane {
                continue;
            }
            for (attempt, ask) in lane.asks.iter().enumerate() {
                if ask.is_under_way() {
                    actions.push(Action::Deliver {
                        attempt,
                        node,
                        message: ask.stage,
                    });
                }
                let is_at_it = matches!(
                    state.attempts[attempt].phase,
                    Phase::Asking | Phase::Fixed { .. }
                );
                if state.cuts > 0 && is_at_it && ask.cut == Cut::Never {
                    actions.push(Action::Cut { attempt, node });
                }
            }
            if lane.node.holder != NOBODY {
                actions.push(Action::End { node });
            }
            if state.crashes > 0 {
                actions.push(Action::Crash { node });
            }
        }
    }

    fn next_state(&self, last: &Self::State, action: Action) -> Option<Self::State> {
        let mut state = last.clone();
        self.act(&mut state, action)?;
        if self.rules.reduced {
            state.forget(&self.rules, |attempt| self.value(attempt));
        }
        if self.rules.symmetric {
            state = state.representative();
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let fence = Property::always("fence", |_: &Self, state: &State<ATTEMPTS>| {
            state.is_in_order()
        });
        if self.rules.bug.is_some() {
            return vec![fence];
        }
        vec![
            fence,
            Property::sometimes("fast path", |_, state: &State<ATTEMPTS>| {
                state.has_won(false)
            }),
            Property::sometimes("write-back", |_, state: &State<ATTEMPTS>| {
                state.has_won(true)
            }),
        ]
    }
}

impl<const ATTEMPTS: usize> Real for Fencing<ATTEMPTS> {
    fn runs(&self) -> (usize, usize) {
        (self.engines.runs(), self.rounds.runs())
    }
}

/// The value that all attempts use.
const SHARED: u8 = 15;

/// R4: grants within one start of a node.
const EPOCH: u8 = 16;

#[cfg(test)]
mod tests;
