//! INFO: the node's report on itself, in Redis's sections and under Redis's names.
//!
//! It reports only what is known. Fields of Redis that have no meaning here, or that the node does
//! not measure, are omitted; programs that read INFO skip what is missing. The exception is the
//! time of commands in Commandstats, whose fields are read by position: it is 0 where no command is
//! timed.

#[cfg(feature = "metrics")]
use std::cmp::Reverse;
use std::fmt::Display;
use std::fmt::Write as _;
use std::time::Duration;

use locknode_resp::Encoder;

use super::config_option::{durability, on_off};
use super::context::Context;
use super::spec::{Flags, Keys, Spec, least, specs};
use crate::byte_size::human;
#[cfg(feature = "compat")]
use crate::channels::TopicKind;
use crate::counters::Totals;
use crate::guard::{GuardMode, GuardState};
use crate::host::HostFacts;
use crate::key_hash::DATABASES;
#[cfg(feature = "metrics")]
use crate::metrics::first;
use crate::version::{NODE_VERSION, REDIS_VERSION};

/// A section of the report: its name as its heading writes it (clients may use any case), whether a
/// plain INFO includes it, and what writes it.
struct Section(&'static str, bool, fn(&mut Report<'_, '_, '_>));

/// The report being written.
struct Report<'r, 'c, 'k> {
    context: &'r mut Context<'c, 'k>,
    facts: HostFacts,
    text: String,
}

fn info(context: &mut Context<'_, '_>, _: &[&[u8]; 1], wanted: &[&[u8]], reply: &mut Encoder<'_>) {
    let names = |word: &str| {
        wanted
            .iter()
            .any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    };
    let has_all = names("all") || names("everything");
    let has_default = wanted.is_empty() || names("default");
    let facts = context.services.facts();
    let mut report = Report {
        context,
        facts,
        text: String::with_capacity(TEXT_LEN),
    };
    for Section(name, is_default, write) in SECTIONS {
        if has_all || names(name) || (has_default && *is_default) {
            report.heading(name);
            write(&mut report);
        }
    }
    reply.verbatim(*b"txt", report.text.as_bytes());
}

/// Returns the totals that CONFIG RESETSTAT stores to count from zero; all shards must be locked.
pub(crate) fn totals(context: &mut Context<'_, '_>, facts: &HostFacts) -> Totals {
    let mut totals = Totals {
        connections: context.services.clients.accepted(),
        evicted_clients: context.services.clients.evicted(),
        net_input_bytes: facts.net_input_bytes,
        net_output_bytes: facts.net_output_bytes,
        shard_waits: context.space.waits(),
        ..Totals::default()
    };
    for shard in context.space.shards() {
        let (hits, misses) = shard.read_counts();
        totals.hits += hits;
        totals.misses += misses;
        totals.expired += shard.expired_count();
    }
    totals
}

impl Report<'_, '_, '_> {
    fn heading(&mut self, name: &str) {
        if !self.text.is_empty() {
            self.text.push_str("\r\n");
        }
        let _ = write!(self.text, "# {name}\r\n");
    }

    fn field(&mut self, name: impl Display, value: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{name}:{value}\r\n");
    }

    /// A field that is omitted when its value is unknown.
    fn known(&mut self, name: &str, value: impl Display, is_known: bool) {
        if is_known {
            self.field(name, value);
        }
    }

    fn bytes(&mut self, name: &str, bytes: u64) {
        self.field(name, bytes);
        self.field(format_args!("{name}_human"), human(bytes));
    }
}

fn server(report: &mut Report<'_, '_, '_>) {
    let (services, moment) = (report.context.services, report.context.moment);
    let facts = report.facts.clone();
    let uptime = moment.time.since(services.started.time).as_secs();
    report.field("redis_version", REDIS_VERSION);
    report.field("locknode_version", NODE_VERSION);
    report.field("redis_mode", "standalone");
    report.known("os", &facts.os, !facts.os.is_empty());
    report.field("arch_bits", usize::BITS);
    report.known("process_id", facts.process_id, facts.process_id != 0);
    report.field("run_id", &services.run_id);
    // As in Redis, the only port there is.
    let port = Some(facts.tcp_port).filter(|port| *port != 0);
    report.field("tcp_port", port.unwrap_or(facts.tls_port));
    report.field(
        "server_time_usec",
        moment.wall.as_unix_nanos() / NANOS_PER_MICRO,
    );
    report.field("uptime_in_seconds", uptime);
    report.field("uptime_in_days", uptime / SECONDS_PER_DAY);
    report.known(
        "executable",
        &facts.executable,
        !facts.executable.is_empty(),
    );
    report.field("config_file", &facts.config_file);
}

fn clients(report: &mut Report<'_, '_, '_>) {
    let (services, now) = (report.context.services, report.context.moment.time);
    let pause_end = services.pause.end(now);
    let paused_ms = pause_end.map_or(0, |end| end.since(now).as_millis());
    let waiting = services.clients.waiting();
    let clients_max = services.settings.read(|options| options.maxclients);
    report.field("connected_clients", services.clients.count());
    report.field("maxclients", clients_max);
    report.field("blocked_clients", waiting);
    report.field(
        "tracking_clients",
        services.observers.tracking_totals().clients,
    );
    report.field("pubsub_clients", services.clients.subscribers());
    report.field("watching_clients", services.clients.watching());
    report.field("paused_timeout_milliseconds", paused_ms);
}

fn memory(report: &mut Report<'_, '_, '_>) {
    let services = report.context.services;
    let used = services.used_bytes(report.context.space);
    let resident = report.facts.resident_bytes;
    report.bytes("used_memory", used);
    if resident != 0 {
        report.bytes("used_memory_rss", resident);
    }
    report.field("mem_clients_normal", services.clients.buffered());
    report.bytes("maxmemory", services.settings.maxmemory());
    report.field("maxmemory_policy", "noeviction");
    let (scripts, script_bytes) = services.scripts.cached();
    report.field("number_of_cached_scripts", scripts);
    report.field("used_memory_scripts", script_bytes);
}

/// `loading` stays 0, because drivers that see a 1 queue their commands instead of using another
/// node. Dashboards show and alert on the two states: without the snapshot of a clean stop there is
/// a quarantine, and without writes to the log grants soon stop.
fn persistence(report: &mut Report<'_, '_, '_>) {
    let now = report.context.moment.time;
    let state = report.context.services.guard.report(now).state;
    let status = |is_ok: bool| if is_ok { "ok" } else { "err" };
    report.field("loading", 0);
    report.field("rdb_bgsave_in_progress", 0);
    report.field(
        "rdb_last_bgsave_status",
        status(state != GuardState::Quarantine),
    );
    report.field("aof_enabled", 0);
    let is_writing = !matches!(state, GuardState::Full | GuardState::Failed);
    report.field("aof_last_write_status", status(is_writing));
}

/// What a restart of the node did to its locks, and what the next one would do.
fn restart(report: &mut Report<'_, '_, '_>) {
    let now = report.context.moment.time;
    let guard = report.context.services.guard.report(now);
    report.field("restart_guard", on_off(guard.mode != GuardMode::Off));
    report.field("restart_state", guard.state.name());
    report.field("restart_reason", guard.reason.name());
    report.field("restart_wait_ms", millis_up(guard.quarantine));
    report.field("restart_left_ms", millis_up(guard.quarantine_left));
    report.field("restart_advice", guard.reason.advice());
    report.field("incarnation", guard.incarnation);
    if guard.mode != GuardMode::Off {
        report.field("max_ttl_ms", guard.max_ttl.as_millis());
    }
    report.field("durability", durability(guard.mode));
    if let GuardMode::Store(_) = guard.mode {
        report.field("ttl_in_use_ms", guard.ttl_in_use.as_millis());
        report.field("horizon_ahead_ms", guard.horizon_ahead.as_millis());
        report.field("fence_ceiling", guard.ceiling);
        report.field("log_records", guard.records);
        report.field("disk_syncs", report.facts.disk_syncs);
        report.field("disk_bytes", report.facts.disk_bytes);
        report.field("disk_error", guard.error.replace(['\r', '\n'], " "));
    }
}

/// Milliseconds, rounded up: zero appears only when the time is over.
const fn millis_up(time: Duration) -> u128 {
    time.as_nanos().div_ceil(1_000_000)
}

fn stats(report: &mut Report<'_, '_, '_>) {
    let now = report.context.moment.time;
    let counters = &report.context.services.counters;
    let totals = counters.since_reset(totals(report.context, &report.facts));
    report.field("total_connections_received", totals.connections);
    report.field("total_commands_processed", counters.total_calls());
    report.field("instantaneous_ops_per_sec", counters.calls_per_second(now));
    report.field("total_net_input_bytes", totals.net_input_bytes);
    report.field("total_net_output_bytes", totals.net_output_bytes);
    report.field("rejected_connections", counters.rejected_connections());
    report.field("expired_keys", totals.expired);
    report.field("evicted_keys", 0);
    report.field("evicted_clients", totals.evicted_clients);
    report.field("keyspace_hits", totals.hits);
    report.field("keyspace_misses", totals.misses);
    topics(report);
    let tracking = report.context.services.observers.tracking_totals();
    report.field("tracking_total_keys", tracking.keys);
    report.field("tracking_total_items", tracking.items);
    report.field("tracking_total_prefixes", tracking.prefixes);
    report.field(
        "total_error_replies",
        counters.errors().values().sum::<u64>(),
    );
    report.field("acl_access_denied_auth", counters.failed_auths());
    let [command, key, channel] = counters.denials();
    report.field("acl_access_denied_cmd", command);
    report.field("acl_access_denied_key", key);
    report.field("acl_access_denied_channel", channel);
    report.field("locknode_shard_waits", totals.shard_waits);
}

#[cfg(not(feature = "compat"))]
fn topics(report: &mut Report<'_, '_, '_>) {
    report.field("pubsub_channels", 0);
    report.field("pubsub_patterns", 0);
}

#[cfg(feature = "compat")]
fn topics(report: &mut Report<'_, '_, '_>) {
    let notifications = &report.context.services.observers.notifications;
    let count = |kind| notifications.channels.count(kind);
    report.field("pubsub_channels", count(TopicKind::Channel));
    report.field("pubsub_patterns", count(TopicKind::Pattern));
    report.field("pubsubshard_channels", count(TopicKind::ShardChannel));
}

fn replication(report: &mut Report<'_, '_, '_>) {
    report.field("role", "master");
    report.field("connected_slaves", 0);
    report.field("master_repl_offset", 0);
}

fn cpu(report: &mut Report<'_, '_, '_>) {
    let system = report.facts.cpu_system_seconds;
    let user = report.facts.cpu_user_seconds;
    let is_known = system + user > 0.0;
    report.known("used_cpu_sys", format_args!("{system:.6}"), is_known);
    report.known("used_cpu_user", format_args!("{user:.6}"), is_known);
}

fn command_stats(report: &mut Report<'_, '_, '_>) {
    let services = report.context.services;
    for (index, spec) in report.context.commands.all().iter().enumerate() {
        let (calls, failed, rejected) = services.counters.of(index);
        if calls + rejected == 0 {
            continue;
        }
        let (micros, mean) = time_of(report, index, calls);
        report.field(
            format_args!("cmdstat_{}", spec.name),
            format_args!("calls={calls},usec={micros},usec_per_call={mean:.2},rejected_calls={rejected},failed_calls={failed}"),
        );
    }
}

/// How many microseconds all calls of a command took, and one call on average, estimated from the
/// calls that were timed.
#[cfg(feature = "metrics")]
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn time_of(report: &Report<'_, '_, '_>, index: usize, calls: u64) -> (u64, f64) {
    let Some(times) = report.context.services.timings.of(index) else {
        return (0, 0.0);
    };
    let mean = times.sum().as_secs_f64() * 1e6 / times.count() as f64;
    let all = Duration::from_secs_f64(mean * calls as f64 / 1e6);
    (u64::try_from(all.as_micros()).unwrap_or(u64::MAX), mean)
}

#[cfg(not(feature = "metrics"))]
const fn time_of(_: &Report<'_, '_, '_>, _: usize, _: u64) -> (u64, f64) {
    (0, 0.0)
}

/// Percentiles are upper bounds: the power of two above them.
#[cfg(feature = "metrics")]
fn latency_stats(report: &mut Report<'_, '_, '_>) {
    let services = report.context.services;
    for (index, spec) in report.context.commands.all().iter().enumerate() {
        let Some(times) = services.timings.of(index) else {
            continue;
        };
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| times.quantile_us(share));
        report.field(
            format_args!("latency_percentiles_usec_{}", spec.name),
            format_args!("p50={p50}.000,p99={p99}.000,p99.9={p999}.000"),
        );
    }
}

/// This build times no command.
#[cfg(not(feature = "metrics"))]
const fn latency_stats(_: &mut Report<'_, '_, '_>) {}

/// The locks that are held longest, of those whose time is taken, and who holds them.
#[cfg(feature = "metrics")]
fn holders(report: &mut Report<'_, '_, '_>) {
    let now = report.context.moment.time;
    let settings = &report.context.services.settings;
    let shows_keys = settings.read(|options| options.metrics_keys);
    let mut longest = Vec::new();
    for shard in report.context.space.shards() {
        first(&mut longest, shard.tally.held_since(), |since| {
            Reverse(*since)
        });
    }
    for (rank, (since, name)) in longest.iter().enumerate() {
        let (db, key) = (name.db, &*name.key);
        let hash = report.context.space.hash(db, key);
        let shard = report.context.space.shard_of(hash);
        let probe = shard.probe(now, db, hash, key);
        let label = shard.label(probe).map(|label| label.text.to_vec());
        let label = String::from_utf8(label.unwrap_or_default()).unwrap_or_default();
        // A comma ends the key's part of the line.
        let key = key.escape_ascii().to_string().replace(',', "\\x2c");
        let key = if shows_keys { &*key } else { "" };
        let held_ms = now.since(*since).as_millis();
        report.field(
            format_args!("holder{rank}"),
            format_args!("db={db},key={key},held_ms={held_ms},label={label}"),
        );
    }
}

/// This build takes no lock's time.
#[cfg(not(feature = "metrics"))]
const fn holders(_: &mut Report<'_, '_, '_>) {}

fn error_stats(report: &mut Report<'_, '_, '_>) {
    for (code, count) in report.context.services.counters.errors() {
        report.field(
            format_args!("errorstat_{code}"),
            format_args!("count={count}"),
        );
    }
}

fn cluster(report: &mut Report<'_, '_, '_>) {
    report.field("cluster_enabled", 0);
}

/// Expired keys not yet reclaimed are counted, as in Redis.
fn keyspace(report: &mut Report<'_, '_, '_>) {
    for db in 0..DATABASES {
        let Ok(db) = u8::try_from(db) else { break };
        let (mut keys, mut expires) = (0, 0);
        for shard in report.context.space.shards() {
            keys += shard.key_count(db);
            expires += shard.volatile_count(db);
        }
        if keys != 0 {
            report.field(
                format_args!("db{db}"),
                format_args!("keys={keys},expires={expires}"),
            );
        }
    }
}

/// In the order in which Redis writes them.
const SECTIONS: &[Section] = &[
    Section("Server", true, server),
    Section("Clients", true, clients),
    Section("Memory", true, memory),
    Section("Persistence", true, persistence),
    Section("Restart", true, restart),
    Section("Stats", true, stats),
    Section("Replication", true, replication),
    Section("CPU", true, cpu),
    Section("Commandstats", false, command_stats),
    Section("Errorstats", true, error_stats),
    Section("Latencystats", false, latency_stats),
    Section("Holders", false, holders),
    Section("Cluster", true, cluster),
    Section("Keyspace", true, keyspace),
];

const NANOS_PER_MICRO: u64 = 1000;
const SECONDS_PER_DAY: u64 = 86_400;

/// Room for the section that clients ask for when they connect.
const TEXT_LEN: usize = 512;

/// It counts the keys of all shards.
const INFO: Spec = Spec::of(least!(info), Flags::LOADING, Keys::All, "server");

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Reports on the node: everything, or the named sections.
    "info" "[section ...]" since "1.0.0", ..INFO;
};
