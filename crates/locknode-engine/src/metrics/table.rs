//! The rows of the table of metrics.

use super::{Metric, MetricKind};
use crate::guard::{GuardMode, GuardState};
use crate::version::{NODE_VERSION, REDIS_VERSION};

/// A row is the help, the name, the type, the labels, and what writes the samples.
macro_rules! metrics {
    ($(
        #[doc = $help:literal]
        $name:literal $kind:ident $([$($label:literal),+])? = $write:expr;
    )+) => {
        /// All metrics of a node, in the order in which they are written.
        pub const METRICS: &[Metric] = &[$(Metric {
            name: $name,
            kind: MetricKind::$kind,
            labels: &[$($($label),+)?],
            help: $help,
            write: $write,
        }),+];
    };
}

metrics! {
    /// 1, with the version of the node and the version of Redis that it resembles.
    "locknode_build_info" Gauge ["version", "redis_version"] = |_, out| {
        out.labelled(&[("version", NODE_VERSION), ("redis_version", REDIS_VERSION)], 1);
    };

    /// Seconds since the node started.
    "locknode_uptime_seconds" Gauge = |look, out| {
        out.value(look.moment.time.since(look.services.started.time).as_secs_f64());
    };

    /// 1 for the state that the node is in: serving, quarantine, full, failed or closed; 0 for the others.
    "locknode_state" Gauge ["state"] = |look, out| {
        for state in GuardState::ALL {
            out.labelled(&[("state", state.name())], u8::from(look.guard.state == state));
        }
    };

    /// 1, with the reason why the node started with or without a quarantine.
    "locknode_start_info" Gauge ["reason"] = |look, out| {
        out.labelled(&[("reason", look.guard.reason.name())], 1);
    };

    /// Length of the quarantine at the start.
    "locknode_quarantine_seconds" Gauge = |look, out| out.value(look.guard.quarantine.as_secs_f64());

    /// Seconds until the quarantine ends; 0 outside of one.
    "locknode_quarantine_left_seconds" Gauge = |look, out| {
        out.value(look.guard.quarantine_left.as_secs_f64());
    };

    /// Longest TTL that is granted without the disk.
    "locknode_max_ttl_seconds" Gauge = |look, out| {
        out.known(look.guard.max_ttl.as_secs_f64(), look.guard.mode != GuardMode::Off);
    };

    /// Longest TTL of a lock that is not on the log and has not expired; with a data directory.
    "locknode_ttl_in_use_seconds" Gauge = |look, out| {
        out.known(look.guard.ttl_in_use.as_secs_f64(), look.services.guard.has_log());
    };

    /// How far the durable horizon is ahead of now; with a data directory.
    "locknode_horizon_ahead_seconds" Gauge = |look, out| {
        out.known(look.guard.horizon_ahead.as_secs_f64(), look.services.guard.has_log());
    };

    /// No fencing token above this was replied; with a data directory.
    "locknode_fence_ceiling" Gauge = |look, out| {
        out.known(look.guard.ceiling, look.services.guard.has_log());
    };

    /// Number of this run of the node in its data directory.
    "locknode_incarnation" Gauge = |look, out| {
        out.known(look.guard.incarnation, look.services.guard.has_log());
    };

    /// Records written to the log.
    "locknode_log_records_total" Counter = |look, out| {
        out.known(look.guard.records, look.services.guard.has_log());
    };

    /// Syncs of files in the data directory.
    "locknode_disk_syncs_total" Counter = |look, out| {
        out.known(look.facts.disk_syncs, look.services.guard.has_log());
    };

    /// How long a sync of the data directory took.
    "locknode_disk_sync_seconds" Histogram = |look, out| {
        if look.services.guard.has_log() {
            out.histogram(&[], &look.services.timings.syncs, 4);
        }
    };

    /// Bytes of the files in the data directory.
    "locknode_disk_bytes" Gauge = |look, out| {
        out.known(look.facts.disk_bytes, look.services.guard.has_log());
    };

    /// Keys held, by database, with expired ones whose memory is not reclaimed yet.
    "locknode_locks" Gauge ["db"] = |look, out| {
        for (db, (keys, _)) in look.table.keys.iter().enumerate() {
            if db == 0 || *keys > 0 {
                out.labelled(&[("db", &db.to_string())], keys);
            }
        }
    };

    /// Keys held that have a deadline, in all databases.
    "locknode_locks_with_ttl" Gauge = |look, out| {
        out.value(look.table.keys.iter().map(|(_, volatile)| volatile).sum::<u64>());
    };

    /// Keys granted: free before, held now.
    "locknode_grants_total" Counter = |look, out| out.value(look.table.locks.grants);

    /// Attempts to acquire a key that were refused because it is held; a script in Lua that looks itself does not count.
    "locknode_refusals_total" Counter = |look, out| out.value(look.table.locks.refusals);

    /// Deadlines moved, and held keys set again.
    "locknode_extensions_total" Counter = |look, out| out.value(look.table.locks.extensions);

    /// Keys released before their deadline.
    "locknode_releases_total" Counter = |look, out| out.value(look.table.locks.releases);

    /// Releases and extensions refused because another token holds the key: their lock has expired, and others have it.
    "locknode_foreign_attempts_total" Counter ["operation"] = |look, out| {
        out.labelled(&[("operation", "release")], look.table.locks.foreign_releases);
        out.labelled(&[("operation", "extend")], look.table.locks.foreign_extensions);
    };

    /// How long released locks were held, estimated from about 16 a second.
    "locknode_lock_held_seconds" Histogram = |look, out| out.histogram(&[], &look.table.held, 10);

    /// How long a key was wanted until it was granted again, from the first refusal on; of about 16 refusals a second.
    "locknode_lock_wait_seconds" Histogram = |look, out| out.histogram(&[], &look.table.waited, 10);

    /// How long the keys have been held that are held longest, of those whose time is taken; their names with metrics-keys.
    "locknode_longest_held_seconds" Gauge ["rank", "db", "key"] = |look, out| {
        let now = look.moment.time;
        out.ranked(look, &look.table.longest_held, |since| {
            now.since(*since).as_secs_f64().to_string()
        });
    };

    /// How often the keys were refused that were refused most, estimated; their names with metrics-keys.
    "locknode_most_refused" Gauge ["rank", "db", "key"] = |look, out| {
        out.ranked(look, &look.table.most_refused, u64::to_string);
    };

    /// Locks reclaimed after their deadline.
    "locknode_expired_total" Counter = |look, out| out.value(look.table.expired);

    /// Reads of a key, by whether it was held.
    "locknode_reads_total" Counter ["result"] = |look, out| {
        out.labelled(&[("result", "hit")], look.table.hits);
        out.labelled(&[("result", "miss")], look.table.misses);
    };

    /// Commands by name and result: ok, error, or rejected before they ran.
    "locknode_commands_total" Counter ["command", "result"] = |look, out| {
        for (index, spec) in look.commands.all().iter().enumerate() {
            let (calls, failed, rejected) = look.services.counters.of(index);
            if calls + rejected == 0 {
                continue;
            }
            let ok = calls.saturating_sub(failed);
            for (result, count) in [("ok", ok), ("error", failed), ("rejected", rejected)] {
                out.labelled(&[("command", spec.name), ("result", result)], count);
            }
        }
    };

    /// How long commands took to execute, without their way over the network; estimated from some of those that take little time.
    "locknode_command_seconds" Histogram ["command"] = |look, out| {
        for (index, spec) in look.commands.all().iter().enumerate() {
            if let Some(times) = look.services.timings.of(index) {
                out.histogram(&[("command", spec.name)], times, 0);
            }
        }
    };

    /// Commands that took longer than slowlog-log-slower-than; SLOWLOG GET has the last ones.
    "locknode_slow_commands_total" Counter = |look, out| {
        out.value(look.services.timings.slow_log.count());
    };

    /// Error replies by their code; at most 128 codes are told apart.
    "locknode_errors_total" Counter ["code"] = |look, out| {
        for (code, count) in look.services.counters.errors() {
            out.labelled(&[("code", &code)], count);
        }
    };

    /// Logins with a wrong user or password.
    "locknode_auth_failures_total" Counter = |look, out| out.value(look.services.counters.failed_auths());

    /// Bytes that the locks occupy, with their index.
    "locknode_memory_bytes" Gauge = |look, out| out.value(look.table.used_bytes);

    /// The option maxmemory; 0 for no limit.
    "locknode_memory_limit_bytes" Gauge = |look, out| out.value(look.services.settings.maxmemory());

    /// Bytes in buffers of clients that exceed 4 KiB, and in their mailboxes.
    "locknode_memory_clients_bytes" Gauge = |look, out| out.value(look.services.clients.buffered());

    /// Scripts in the cache.
    "locknode_scripts" Gauge = |look, out| out.value(look.services.scripts.cached().0);

    /// Bytes of the scripts in the cache.
    "locknode_scripts_bytes" Gauge = |look, out| out.value(look.services.scripts.cached().1);

    /// Clients connected.
    "locknode_connections" Gauge = |look, out| out.value(look.services.clients.count());

    /// The option maxclients.
    "locknode_connections_limit" Gauge = |look, out| {
        out.value(look.services.settings.read(|options| options.maxclients));
    };

    /// Connections accepted.
    "locknode_connections_accepted_total" Counter = |look, out| {
        out.value(look.services.clients.accepted());
    };

    /// Connections refused beyond maxclients.
    "locknode_connections_rejected_total" Counter = |look, out| {
        out.value(look.services.counters.rejected_connections());
    };

    /// Connections closed for maxmemory-clients.
    "locknode_connections_evicted_total" Counter = |look, out| {
        out.value(look.services.clients.evicted());
    };

    /// Clients whose command waits: for an element of a list, a pause or a script.
    "locknode_blocked_clients" Gauge = |look, out| out.value(look.services.clients.waiting());

    /// Clients subscribed to a channel.
    "locknode_subscribers" Gauge = |look, out| out.value(look.services.clients.subscribers());

    /// Clients that are told when keys change that they have cached.
    "locknode_tracking_clients" Gauge = |look, out| {
        out.value(look.services.observers.tracking_totals().clients);
    };

    /// Bytes read from clients.
    "locknode_received_bytes_total" Counter = |look, out| out.value(look.facts.net_input_bytes);

    /// Bytes written to clients.
    "locknode_sent_bytes_total" Counter = |look, out| out.value(look.facts.net_output_bytes);

    /// How often a thread has waited for part of the table that another one used.
    "locknode_shard_waits_total" Counter = |look, out| out.value(look.table.waits);

    /// User and system CPU time of the process.
    "process_cpu_seconds_total" Counter = |look, out| {
        let seconds = look.facts.cpu_user_seconds + look.facts.cpu_system_seconds;
        out.known(format_args!("{seconds:.2}"), look.facts.resident_bytes != 0);
    };

    /// Resident memory of the process.
    "process_resident_memory_bytes" Gauge = |look, out| {
        out.known(look.facts.resident_bytes, look.facts.resident_bytes != 0);
    };

    /// Virtual memory of the process.
    "process_virtual_memory_bytes" Gauge = |look, out| {
        out.known(look.facts.virtual_bytes, look.facts.virtual_bytes != 0);
    };

    /// When the node started, by the machine's clock, in seconds since 1970.
    "process_start_time_seconds" Gauge = |look, out| {
        let nanos = look.services.started.wall.as_unix_nanos();
        out.value(std::time::Duration::from_nanos(nanos).as_secs_f64());
    };

    /// File descriptors open.
    "process_open_fds" Gauge = |look, out| {
        out.known(look.descriptors.0, look.descriptors.0 != 0);
    };

    /// File descriptors that may be open.
    "process_max_fds" Gauge = |look, out| {
        out.known(look.descriptors.1, look.descriptors.1 != 0);
    };
}
