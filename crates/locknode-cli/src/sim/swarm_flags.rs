//! The flags that all worlds of a swarm share.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use locknode_testkit::{Bug, ClientKind, FaultKinds, GuardMode, Swarm};

use crate::duration;
use crate::failure::Failure;

/// The settings of all worlds; their seeds decide the rest.
#[derive(Debug, clap::Args)]
pub(super) struct SwarmFlags {
    /// Number of clients in a world, 1 to 16
    #[arg(long, value_name = "N", default_value_t = CLIENTS)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=MEMBERS_MAX))]
    pub(super) clients: u8,

    /// Number of nodes in a world [default: 5]
    ///
    /// 1 to 16. With --bug the default is what shows the bug best.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=MEMBERS_MAX))]
    pub(super) nodes: Option<u8>,

    /// TTL of all locks [default: the seed decides]
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl)]
    pub(super) ttl: Option<Duration>,

    /// Restart guard of the nodes [default: the seed decides]
    ///
    ///   off     none, as in Redis: a crash forgets locks, and two clients may hold one
    ///   memory  no data directory; after a start a node waits for the longest TTL
    ///   long    a data directory, whose log has the locks longer than the longest TTL
    ///   always  a data directory, whose log has every lock
    #[arg(verbatim_doc_comment, long, value_name = "GUARD", value_parser = guards())]
    pub(super) guard: Option<GuardMode>,

    /// Faults that may occur: none, promised, fenced, all or a list [default: promised]
    ///
    /// Each seed picks some of them.
    ///
    ///   none      no faults
    ///   promised  all under which a lock must have at most one holder
    ///   fenced    all under which fencing tokens must rise: also clocks that stop or run wild
    ///   all       everything, also disks reset to an earlier state
    ///
    /// Or names separated by commas, with a minus to exclude one: crash,power-loss or
    /// promised,-pause. See --list-faults. With --bug the default is what shows the bug best.
    #[arg(long, value_name = "LIST", value_parser = parse_faults, allow_hyphen_values = true)]
    #[arg(verbatim_doc_comment)]
    pub(super) faults: Option<FaultKinds>,

    /// Client implementation [default: shipped, or the one that has the bug]
    ///
    ///   shipped  the core of redlock-client, as in locknode run and locknode lock
    ///   plain    a plain Redlock loop, as people write it
    ///   hash     the same over hashes, as Redisson keeps its locks, by scripts and transactions
    #[arg(verbatim_doc_comment, long, value_name = "CLIENT", value_parser = client_kinds())]
    pub(super) client: Option<ClientKind>,

    /// Plant a bug, to check that it is found
    ///
    /// It is in every world. A checker that never finds anything proves nothing. These are mistakes
    /// that lock services and their clients really made; the shipped node and client have none. See
    /// --list-bugs.
    #[arg(long, value_name = "NAME", value_parser = bugs(), hide_possible_values = true)]
    #[arg(verbatim_doc_comment)]
    pub(super) bug: Option<Bug>,

    /// Simulated time of a world, 10s to 1h
    #[arg(long = "for", value_name = "DURATION", default_value = "60s", value_parser = parse_run_for)]
    pub(super) run_for: Duration,
}

impl SwarmFlags {
    /// The swarm with these settings.
    ///
    /// # Errors
    ///
    /// If they contradict each other.
    pub(super) fn swarm(&self) -> Result<Swarm, Failure> {
        let swarm = self.bug.map_or_else(Swarm::default, Swarm::for_bug);
        let of_client = self.bug.filter(|bug| bug.is_clients());
        if let (Some(bug), Some(client)) = (of_client, self.client)
            && client != swarm.client_kind()
        {
            let (needed, given) = (swarm.client_kind().name(), client.name());
            return Err(Failure::usage(format!(
                "{bug} is a bug of the {needed} client, and the {given} one does not have it: leave out --client, \
                 or use --client {needed}"
            )));
        }
        let client = self.client.unwrap_or(swarm.client_kind());
        let mut swarm = swarm
            .clients(self.clients)
            .client(client)
            .run_for(self.run_for);
        if let Some(nodes) = self.nodes {
            swarm = swarm.nodes(nodes);
        }
        if let Some(faults) = self.faults {
            swarm = swarm.faults(faults);
        }
        if let Some(ttl) = self.ttl {
            swarm = swarm.ttl(ttl);
        }
        if let Some(guard) = self.guard {
            swarm = swarm.guard(guard);
        }
        Ok(swarm)
    }

    /// The command line that runs the world of a seed.
    pub(super) fn again(&self, seed: u64) -> String {
        let (are_others, is_other_run) = (self.clients != CLIENTS, self.run_for != RUN_FOR);
        let flags = [
            ("clients", are_others.then(|| self.clients.to_string())),
            ("nodes", self.nodes.map(|nodes| nodes.to_string())),
            ("ttl", self.ttl.map(duration::display)),
            ("guard", self.guard.map(|guard| guard.name().to_owned())),
            ("faults", self.faults.map(|faults| faults.to_string())),
            ("client", self.client.map(|client| client.name().to_owned())),
            ("bug", self.bug.map(|bug| bug.to_string())),
            ("for", is_other_run.then(|| duration::display(self.run_for))),
        ];
        let mut line = format!("locknode sim --seed {seed}");
        for (flag, value) in flags {
            if let Some(value) = value {
                line.extend([" --", flag, " ", &value]);
            }
        }
        line
    }
}

fn guards() -> impl TypedValueParser<Value = GuardMode> {
    named(GuardMode::ALL.map(|guard| (guard.name(), guard)))
}

fn client_kinds() -> impl TypedValueParser<Value = ClientKind> {
    named(ClientKind::ALL.map(|client| (client.name(), client)))
}

fn bugs() -> impl TypedValueParser<Value = Bug> {
    named(Bug::ALL.map(|bug| (bug.name(), bug)))
}

/// Values that have names: for help, completions and errors.
fn named<T, const N: usize>(values: [(&'static str, T); N]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let names = values.each_ref().map(|(name, _)| *name);
    PossibleValuesParser::new(names).try_map(move |word| {
        let found = values.iter().find(|(name, _)| *name == word);
        found.map(|(_, value)| *value).ok_or("not a known name")
    })
}

fn parse_faults(text: &str) -> Result<FaultKinds, String> {
    FaultKinds::parse(text).map_err(|error| error.to_string())
}

fn parse_ttl(text: &str) -> Result<Duration, String> {
    duration::parse_within(text, TTL_MIN..=TTL_MAX)
}

fn parse_run_for(text: &str) -> Result<Duration, String> {
    duration::parse_within(text, RUN_FOR_MIN..=RUN_FOR_MAX)
}

/// A world has room for this many of each.
const MEMBERS_MAX: i64 = 16;

/// The default of `--clients`.
const CLIENTS: u8 = 3;

/// The default of `--for`.
const RUN_FOR: Duration = Duration::from_secs(60);

/// The last third of a world is calm, and progress is demanded: that takes some seconds.
const RUN_FOR_MIN: Duration = Duration::from_secs(10);

/// All that happened in a world is in memory: half a gigabyte for an hour of many clients.
const RUN_FOR_MAX: Duration = Duration::from_secs(3600);

/// Round trips of up to 40 ms have to fit in.
const TTL_MIN: Duration = Duration::from_millis(50);

/// Nothing would end within a world.
const TTL_MAX: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_out_of_range_are_refused_with_the_range() {
        for (text, is_fine) in [("9s", false), ("10s", true), ("1h", true), ("2h", false)] {
            assert_eq!(parse_run_for(text).is_ok(), is_fine, "{text}");
        }
        let error = parse_ttl("1ms").expect_err("too short");
        assert!(error.contains("50ms") && error.contains("1h"), "{error}");
    }
}
