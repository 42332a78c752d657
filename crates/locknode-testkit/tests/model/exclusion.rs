//! Mutual exclusion, in discrete time.
//!
//! Time goes by in ticks, and a tick is an action like any other. A client believes that it holds the lock from the moment
//! at which the real round says so until the validity that the round tells has passed, in ticks. No two clients
//! may believe so at once.

mod client;
mod rounds;
mod rules;
mod state;

use redlock_proto::round;
use stateright::{Model, Property, Representative};

use crate::exclusion::client::Phase;
use crate::exclusion::rounds::{Heard, Reply, Rounds, Verdict};
use crate::exclusion::rules::{Bug, Rules};
use crate::exclusion::state::{Message, State};
use crate::node::{Answer, Engines, NOBODY, Node, Request};
use crate::search::Real;

/// The model; `CLIENTS` of them.
#[derive(Debug)]
pub(crate) struct Exclusion<const CLIENTS: usize> {
    rules: Rules,
    engines: Engines,
    rounds: Rounds,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The client asks all nodes for the lock.
    Begin { client: usize },
    /// One message arrives: a request at a node, or a reply at a client.
    Deliver {
        client: usize,
        attempt: u8,
        node: usize,
        message: Message,
    },
    /// The client stops trying and tells all nodes.
    GiveUp { client: usize },
    /// The holder asks all nodes for more time.
    Extend { client: usize },
    /// The holder stops believing, and tells all nodes.
    Release { client: usize },
    /// One tick for everybody.
    Tick,
    /// One tick for one node alone.
    FastTick { node: usize },
    /// A node forgets its table and starts again.
    Crash { node: usize },
}

impl<const CLIENTS: usize> Exclusion<CLIENTS> {
    pub(crate) fn new(rules: Rules) -> Self {
        let rules = rules.broken();
        Self {
            engines: Engines::new(rules.ttl),
            rounds: Rounds::new(rules),
            rules,
        }
    }

    fn request(&self, token: u8, message: Message) -> Request {
        match (message, self.rules.bug) {
            (Message::Acquire, _) => Request::Acquire { token },
            (Message::Extend, Some(Bug::ExtendWithoutCompare)) => Request::Prolong,
            (Message::Extend, _) => Request::Extend { token },
            (_, Some(Bug::ReleaseWithoutCompare)) => Request::Delete,
            (_, _) => Request::Release { token },
        }
    }

    /// A request arrives at a node. Unless clients hear of refusals, one changes nothing: by a refusal a client can only
    /// end earlier what it can end at any moment.
    fn serve(
        &self,
        state: &mut State<CLIENTS>,
        client: usize,
        attempt: u8,
        node: usize,
        message: Message,
    ) -> Option<()> {
        let lane = &mut state.lanes[node];
        let request = self.request(state::token(client, attempt), message);
        let (answer, after) = self.engines.ask(lane.node, request);
        let reply = match (message, answer) {
            (Message::Acquire, Answer::Yes) => Some(Message::Grant),
            (Message::Extend, Answer::Yes) => Some(Message::Extended),
            (_, Answer::Yes) => None,
            (_, answer) => {
                assert_eq!(lane.node, after.uncounted(), "a refusal changes nothing");
                match (message, answer) {
                    _ if !self.rules.refusals => return None,
                    (Message::Release, _) => return None,
                    (_, Answer::Quarantined) => Some(Message::Unable),
                    (Message::Acquire, _) => Some(Message::Refused),
                    (_, _) => Some(Message::NotHeld),
                }
            }
        };
        lane.node = after.uncounted();
        let mail = &mut lane.mail[client];
        mail.remove(attempt, message);
        if let Some(reply) = reply {
            mail.insert(attempt, reply);
        }
        Some(())
    }

    /// A reply arrives at its client.
    fn hear(
        &self,
        state: &mut State<CLIENTS>,
        client: usize,
        attempt: u8,
        node: usize,
        message: Message,
    ) -> Option<()> {
        state.lanes[node].mail[client].remove(attempt, message);
        let present = state.clients[client].attempt()?;
        let (votes, phase) = (state.votes(client), state.clients[client].phase);
        let is_present = attempt == present;
        let answer = message.answer()?;
        let reply = Some(Reply {
            node,
            answer,
            is_present,
        });
        let is_extended = matches!(message, Message::Extended | Message::NotHeld);
        let heard = match phase {
            Phase::Acquiring { age } if !is_extended => self.rounds.acquire(age, votes, reply),
            Phase::Held {
                extension: Some(age),
                ..
            } if message != Message::Grant => self.rounds.extend(age, votes, reply),
            _ => return Some(()),
        };
        if heard.counts {
            state.lanes[node].mail[client].count(answer);
            self.decided(state, client, &heard);
        }
        Some(())
    }

    /// What a client does with what a round has come to.
    fn decided(&self, state: &mut State<CLIENTS>, client: usize, heard: &Heard) {
        let is_holder = state.clients[client].is_holder();
        match heard.verdict {
            Verdict::Pending => {}
            Verdict::Won { left } => {
                state.clients[client].phase = Phase::Held {
                    left,
                    extension: None,
                };
                state.heal(client, heard.heals);
            }
            Verdict::Lost if is_holder => state.clients[client].end_extension(),
            Verdict::Lost | Verdict::Ended => state.release(client),
        }
    }

    fn tick(&self, state: &mut State<CLIENTS>) {
        for lane in &mut state.lanes {
            lane.node = self.engines.look(lane.node.later()).uncounted();
        }
        for client in 0..CLIENTS {
            let votes = state.votes(client);
            match &mut state.clients[client].phase {
                Phase::Idle => {}
                Phase::Acquiring { age } => {
                    *age += 1;
                    let waited = self.rounds.acquire(*age, votes, None);
                    self.decided(state, client, &waited);
                }
                Phase::Held { left: 1, .. } => state.release(client),
                Phase::Held { left, extension } => {
                    *left -= 1;
                    if let Some(age) = extension {
                        *age += 1;
                        let waited = self.rounds.extend(*age, votes, None);
                        self.decided(state, client, &waited);
                    }
                }
            }
        }
    }

    fn act(&self, state: &mut State<CLIENTS>, action: Action) -> Option<()> {
        match action {
            Action::Begin { client } => state.begin(client),
            Action::Deliver {
                client,
                attempt,
                node,
                message,
            } => match message.answer() {
                Some(_) => self.hear(state, client, attempt, node, message)?,
                None => self.serve(state, client, attempt, node, message)?,
            },
            Action::GiveUp { client } | Action::Release { client } => state.release(client),
            Action::Extend { client } => state.extend(client),
            Action::Tick => self.tick(state),
            Action::FastTick { node } => {
                let lane = &mut state.lanes[node];
                lane.node = self.engines.look(lane.node.later()).uncounted();
                state.fast_ticks -= 1;
            }
            Action::Crash { node } => {
                state.lanes[node].node = Node::restarted(self.rules.quarantine, 0);
                state.crashes -= 1;
            }
        }
        Some(())
    }
}

impl<const CLIENTS: usize> Model for Exclusion<CLIENTS> {
    type State = State<CLIENTS>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        vec![State::new(&self.rules)]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Action>) {
        for client in 0..CLIENTS {
            match state.clients[client].phase {
                Phase::Idle if state.clients[client].tries > 0 => {
                    actions.push(Action::Begin { client });
                }
                Phase::Idle => {}
                Phase::Acquiring { .. } => actions.push(Action::GiveUp { client }),
                Phase::Held { extension, .. } => {
                    actions.push(Action::Release { client });
                    if extension.is_none() && state.clients[client].extends > 0 {
                        actions.push(Action::Extend { client });
                    }
                }
            }
        }
        actions.push(Action::Tick);
        for (node, lane) in state.lanes.iter().enumerate() {
            // What happens to one of two equal nodes may as well happen to the other.
            if self.rules.symmetric && node > 0 && state.lanes[node - 1] == *lane {
                continue;
            }
            for (client, mail) in lane.mail.iter().enumerate() {
                for (attempt, message) in mail.messages() {
                    actions.push(Action::Deliver {
                        client,
                        attempt,
                        node,
                        message,
                    });
                }
            }
            // The crash of a node that holds nothing is one that grants nothing for a while: nothing happens there.
            if state.crashes > 0 && lane.node.holder != NOBODY {
                actions.push(Action::Crash { node });
            }
            let is_waiting = lane.node.left + lane.node.quarantine > 0;
            if state.fast_ticks > 0 && is_waiting {
                actions.push(Action::FastTick { node });
            }
        }
    }

    fn next_state(&self, last: &Self::State, action: Action) -> Option<Self::State> {
        let mut state = last.clone();
        self.act(&mut state, action)?;
        if self.rules.reduced {
            state.forget(&self.rules);
        }
        if self.rules.symmetric {
            state = state.representative();
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let exclusion = Property::always("exclusion", |_: &Self, state: &State<CLIENTS>| {
            state.holders() <= 1
        });
        if self.rules.bug.is_some() {
            return vec![exclusion];
        }
        let mut properties = vec![
            exclusion,
            Property::sometimes("acquired", |_, state: &State<CLIENTS>| state.holders() == 1),
            Property::sometimes("released", Self::is_being_released),
        ];
        if self.rules.crashes > 0 {
            properties.push(Property::sometimes("quarantine refusal", Self::is_refused));
        }
        if self.rules.extends.iter().any(|extends| *extends > 0) {
            properties.push(Property::sometimes("extended", Self::is_being_extended));
        }
        properties
    }
}

impl<const CLIENTS: usize> Exclusion<CLIENTS> {
    /// Whether there is a request that a node refuses because it restarted.
    fn is_refused(&self, state: &State<CLIENTS>) -> bool {
        let mut quarantined = state.lanes.iter().filter(|lane| lane.node.quarantine > 0);
        quarantined.any(|lane| {
            lane.mail.iter().enumerate().any(|(client, mail)| {
                (0..state.clients[client].begun).any(|attempt| {
                    let token = state::token(client, attempt);
                    mail.has(attempt, Message::Acquire)
                        && self.engines.ask(lane.node, Request::Acquire { token }).0
                            == Answer::Quarantined
                })
            })
        })
    }

    /// Whether there is a reply by which a holder has more time.
    fn is_being_extended(&self, state: &State<CLIENTS>) -> bool {
        state.clients.iter().enumerate().any(|(client, this)| {
            let Phase::Held {
                extension: Some(age),
                ..
            } = this.phase
            else {
                return false;
            };
            state.lanes.iter().enumerate().any(|(node, lane)| {
                let answer = round::Answer::Yes;
                let reply = Some(Reply {
                    node,
                    answer,
                    is_present: true,
                });
                lane.mail[client].has(this.begun - 1, Message::Extended) && {
                    let heard = self.rounds.extend(age, state.votes(client), reply);
                    matches!(heard.verdict, Verdict::Won { .. })
                }
            })
        })
    }

    /// Whether there are requests whose replies tell a client that a majority deleted its lock.
    fn is_being_released(&self, state: &State<CLIENTS>) -> bool {
        state.clients.iter().enumerate().any(|(client, this)| {
            if this.phase != Phase::Idle || this.begun == 0 {
                return false;
            }
            let attempt = this.begun - 1;
            let token = state::token(client, attempt);
            let answers = state.lanes.map(|lane| {
                lane.mail[client].has(attempt, Message::Release).then(|| {
                    match self.engines.ask(lane.node, Request::Release { token }).0 {
                        Answer::Yes => round::Answer::Yes,
                        Answer::Quarantined => round::Answer::Failed,
                        _ => round::Answer::No,
                    }
                })
            });
            self.rounds.is_released(answers)
        })
    }
}

impl<const CLIENTS: usize> Real for Exclusion<CLIENTS> {
    fn runs(&self) -> (usize, usize) {
        (self.engines.runs(), self.rounds.runs())
    }
}

#[cfg(test)]
mod tests;
