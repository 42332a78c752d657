//! What a node has besides its locks: options, clients, counters, scripts, the restart guard.

use std::sync::Arc;

use crate::client::Clients;
use crate::counters::Counters;
use crate::guard::Guard;
use crate::holds::Holds;
use crate::host::{Host, HostFacts};
use crate::keyspace::Space;
use crate::observers::Observers;
use crate::pause::Pause;
#[cfg(feature = "acl")]
use crate::script::StartThread;
use crate::scripts::Scripts;
use crate::settings::Settings;
use crate::time::Moment;
use crate::timings::Timings;
use crate::turns::Turns;
use crate::users::Users;
#[cfg(feature = "compat")]
use crate::waiters::Waiters;

/// What commands use besides the keyspace.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) settings: Arc<Settings>,
    pub(crate) users: Arc<Users>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) counters: Counters,
    pub(crate) observers: Arc<Observers>,
    pub(crate) pause: Pause,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) scripts: Scripts,
    #[cfg(feature = "acl")]
    pub(crate) start_thread: Option<StartThread>,
    pub(crate) holds: Arc<Holds>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) guard: Guard,
    pub(crate) run_id: String,
    pub(crate) started: Moment,
    pub(crate) timings: Timings,
    #[cfg(feature = "compat")]
    pub(crate) waiters: Arc<Waiters>,
}

impl Services {
    /// Returns the host's facts, completed with those it cannot know.
    pub(crate) fn facts(&self) -> HostFacts {
        let mut facts = self.host.facts();
        facts.guard = self.guard.mode();
        facts.max_ttl = self.guard.max_ttl();
        facts
    }

    /// Does what the options say, where something else than a command has to know.
    pub(crate) fn obey_options(&self) {
        self.settings
            .read(|options| self.users.obey_requirepass(&options.requirepass));
        #[cfg(feature = "metrics")]
        self.settings.read(|options| self.timings.obey(options));
        #[cfg(feature = "compat")]
        {
            let classes = self.settings.read(|it| it.notify_keyspace_events);
            self.observers.notifications.set_classes(classes);
            self.observers.settle_notifications();
        }
    }

    /// Returns whether commands that may add locks are refused: `maxmemory` is reached, or the
    /// table has no slot address left.
    #[inline]
    pub(crate) fn is_out_of_memory(&self, space: &Space<'_>) -> bool {
        let maxmemory = self.settings.maxmemory();
        (maxmemory != 0 && self.used_bytes(space) > maxmemory) || space.is_full()
    }

    /// Returns the memory that `maxmemory` bounds: that of the table and of scripts that take long.
    pub(crate) fn used_bytes(&self, space: &Space<'_>) -> u64 {
        space.used_bytes() + self.holds.used_bytes()
    }
}
