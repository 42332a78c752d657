//! Steps that wait for something to happen.

use std::sync::Arc;

use super::{Waiting, World};
use crate::scenario::{Action, Hook, Trigger};
use crate::sim::event::Event;

impl World {
    /// Something happened that a step may wait for: what is to come at once comes before anything else does.
    #[inline]
    pub(crate) fn hook(&mut self, hook: Hook) {
        match &mut self.held_hooks {
            _ if self.waiting.iter().all(|waiting| waiting.hook != hook) => {}
            Some(held) => held.push(hook),
            None => self.run_waiting(hook),
        }
    }

    pub(super) fn run_waiting(&mut self, hook: Hook) {
        let mut ready = Vec::new();
        self.waiting.retain_mut(|waiting| {
            if waiting.hook != hook {
                return true;
            }
            waiting.left = waiting.left.saturating_sub(1);
            if waiting.left == 0 {
                ready.push((waiting.step, waiting.after));
            }
            waiting.left > 0
        });
        for (step, after) in ready {
            if after.is_zero() {
                self.take_step(step)
            } else {
                self.push(self.now + after, Event::Step(step))
            }
        }
    }

    pub(super) fn plan(&mut self, step: usize, when: &Trigger) {
        match *when {
            Trigger::At(at) => self.push(at, Event::Step(step)),
            Trigger::On { hook, nth, after } => self.waiting.push(Waiting {
                hook,
                left: nth.max(1),
                after,
                step,
            }),
        }
    }

    pub(super) fn take_step(&mut self, step: usize) {
        let scenario = Arc::clone(&self.scenario);
        match &scenario.steps[step].what {
            Action::Fault(fault) => self.apply(*fault),
            Action::Client(client, act) => self.client_acts(*client, act),
        }
    }
}
