//! What is wrong with nodes, how bad it is, and what to do. Pure: from what they show to findings.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use super::examination::{Examined, Shown};

/// Something that somebody should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// A word for scripts, which stays the same.
    pub(super) name: &'static str,
    /// The nodes it is about; none when it is about all.
    pub(super) nodes: Vec<String>,
    pub(super) text: String,
    pub(super) advice: &'static str,
}

/// How bad it is. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Two clients may hold one lock, or none can acquire one.
    Problem,
    /// It works, as long as nothing else goes wrong.
    Warning,
    /// Good to know.
    Note,
}

impl Severity {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// All findings, the worst first.
pub(super) fn diagnose(nodes: &[Examined]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for node in nodes {
        let mut found = Found {
            findings: &mut findings,
            nodes: vec![node.address.clone()],
        };
        match &node.shown {
            Err(reason) => found.warning(
                "away",
                format_args!("it does not reply: {reason}"),
                "Start it, or mend the way to it. If it is gone for good, replace it as docs/replacing-a-node.md says.",
            ),
            Ok(shown) => one(shown, &mut found),
        }
    }
    together(nodes, &mut findings);
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// Where findings about some nodes go.
struct Found<'f> {
    findings: &'f mut Vec<Finding>,
    nodes: Vec<String>,
}

impl Found<'_> {
    fn problem(&mut self, name: &'static str, text: impl Display, advice: &'static str) {
        self.add(Severity::Problem, name, text, advice);
    }

    fn warning(&mut self, name: &'static str, text: impl Display, advice: &'static str) {
        self.add(Severity::Warning, name, text, advice);
    }

    fn note(&mut self, name: &'static str, text: impl Display, advice: &'static str) {
        self.add(Severity::Note, name, text, advice);
    }

    fn add(
        &mut self,
        severity: Severity,
        name: &'static str,
        text: impl Display,
        advice: &'static str,
    ) {
        self.findings.push(Finding {
            severity,
            name,
            nodes: self.nodes.clone(),
            text: text.to_string(),
            advice,
        });
    }
}

/// What is wrong with one node.
fn one(shown: &Shown, found: &mut Found<'_>) {
    clock(shown, found);
    round_trips(shown, found);
    if shown.is_open {
        found.warning(
            "open",
            "it asks for no password: anyone who can reach it can release every lock",
            "Set requirepass (and let only lock clients reach the port), then write redis://:password@host.",
        );
    }
    match shown.info.server() {
        ("locknode", _) => lock_node(shown, found),
        ("unknown", _) => found.warning(
            "unknown",
            "it does not say what it is: nothing is known of its restarts",
            "Let the user of these commands ask INFO.",
        ),
        _ => redis(shown, found),
    }
}

fn clock(shown: &Shown, found: &mut Found<'_>) {
    let Some(rate) = shown.rate else {
        found.note(
            "no-clock",
            "it does not tell the time",
            "Let the user of these commands ask TIME.",
        );
        return;
    };
    let way = if rate.ppm > 0.0 { "faster" } else { "slower" };
    let percent = rate.ppm.abs() / 1e4;
    let text = format!(
        "its clock runs {percent:.2} % {way} than this machine's, or somebody set it meanwhile"
    );
    if rate.certain_ppm() > DRIFT_PPM {
        found.problem(
            "clock-rate",
            text,
            "Clients allow for 1 %: look after the time synchronisation of both machines, and ask again.",
        );
    } else if rate.certain_ppm() > SLEW_PPM {
        found.warning(
            "clock-rate",
            text,
            "Clients allow for 1 %, but no healthy clock is as far off: look after the time synchronisation.",
        );
    }
}

fn round_trips(shown: &Shown, found: &mut Found<'_>) {
    let trips = shown.round_trips;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    if trips.median > SLOW {
        found.warning(
            "slow",
            format_args!("half of its replies take more than {:.1} ms", ms(trips.median)),
            "Every lock waits for a majority: put the nodes nearer, or give clients a longer node timeout and TTL.",
        );
    } else if trips.longest > VERY_SLOW {
        found.warning(
            "pauses",
            format_args!(
                "one of {} replies took {:.0} ms, and half of them less than {:.1} ms",
                trips.count,
                ms(trips.longest),
                ms(trips.median)
            ),
            "Clients go on without a node that takes 250 ms: look for what holds it up (a full processor, swapping, slow scripts).",
        );
    }
}

fn lock_node(shown: &Shown, found: &mut Found<'_>) {
    let info = &shown.info;
    if info.text("restart_guard") == Some("off") {
        found.problem(
            "no-guard",
            "its restart guard is off: after a restart it grants locks that others still hold",
            "Start it without --restart-guard off.",
        );
    } else if info.text("durability") == Some("none") {
        found.note(
            "no-directory",
            "it has no data directory: after every restart it refuses locks for max-ttl, and locks without a TTL always",
            "Start it with --dir, then a clean stop costs no wait.",
        );
    }
    match info.text("restart_state") {
        Some("quarantine") => found.warning(
            "quarantine",
            format_args!(
                "it refuses locks for another {} s ({})",
                info.quarantine_seconds().unwrap_or(0),
                info.text("restart_reason").unwrap_or_default().replace('_', " ")
            ),
            "Do not restart another node until this is over. With --dir, a node that SIGTERM stopped does not wait.",
        ),
        Some("full") => found.warning(
            "disk-full",
            "its disk is full: it refuses locks that need it",
            "Free some space; the node tries again every second.",
        ),
        Some("failed") => found.warning(
            "disk-failed",
            format_args!(
                "its disk failed, and it grants nothing more: {}",
                info.text("disk_error").unwrap_or_default()
            ),
            "Repair the disk, then restart the node.",
        ),
        Some("closed") => found.warning("stopping", "it is stopping", "Wait, and ask again."),
        _ => {}
    }
}

fn redis(shown: &Shown, found: &mut Found<'_>) {
    let info = &shown.info;
    if matches!(info.text("role"), Some("slave" | "replica")) {
        found.problem(
            "replica",
            "it is a replica: it grants nothing, and what it knows comes late",
            "Name independent masters, each with nobody behind it.",
        );
        return;
    }
    if info.text("redis_mode") == Some("sentinel") {
        found.problem(
            "sentinel",
            "it is a Sentinel, which holds no keys",
            "Name independent masters.",
        );
        return;
    }
    let policy = info.text("maxmemory_policy").unwrap_or("noeviction");
    if policy != "noeviction" {
        let advice =
            "CONFIG SET maxmemory-policy noeviction, and the same in its configuration file.";
        if info.number("maxmemory") > 0 {
            let text = format!(
                "it evicts keys when its memory is full ({policy}): a lock that is held can vanish"
            );
            found.problem("evicts", text, advice);
        } else {
            let text = format!(
                "it would evict keys ({policy}), had it a limit of memory (maxmemory is 0)"
            );
            found.note("evicts", text, advice);
        }
    }
    persistence(shown, found);
    match info.number("connected_slaves") {
        0 => {}
        replicas => found.warning(
            "replicas",
            format_args!("it has {replicas} replicas: one that takes over lacks the locks that were just acquired"),
            "Let no replica take over: a lock needs independent masters.",
        ),
    }
    if info.text("cluster_enabled") == Some("1") {
        found.warning(
            "cluster",
            "it is part of a Redis Cluster: other masters have some of the keys, and all of the Cluster is one node of a Redlock",
            "Name servers that run alone.",
        );
    }
    if info.text("loading") == Some("1") {
        found.warning("loading", "it still loads its data", "Wait, and ask again.");
    }
}

/// What a Redis forgets when it crashes: it then grants locks again that clients still hold.
fn persistence(shown: &Shown, found: &mut Found<'_>) {
    let info = &shown.info;
    let delay = "Start it again only after the longest TTL, or use appendonly yes and appendfsync always, or a locknode, \
                 which waits by itself.";
    if info.text("aof_enabled") != Some("1") {
        found.warning(
            "forgets",
            "it writes no log (appendonly no): after a crash it grants locks that others still hold",
            delay,
        );
    } else if let Some(fsync) = shown.appendfsync.as_deref().filter(|it| *it != "always") {
        let text = format!(
            "its log reaches the disk late (appendfsync {fsync}): after a crash of the machine it grants locks that others still hold"
        );
        found.warning("forgets-some", text, delay);
    }
    if info.text("aof_last_write_status") == Some("err")
        || info.text("rdb_last_bgsave_status") == Some("err")
    {
        found.warning(
            "disk-failed",
            "its last write to the disk failed: it may refuse locks, and forget them",
            "Look at its log, and repair the disk.",
        );
    }
}

/// What is wrong with nodes beside one another.
fn together(nodes: &[Examined], findings: &mut Vec<Finding>) {
    let shown: Vec<(&str, &Shown)> = nodes
        .iter()
        .filter_map(|node| Some((node.address.as_str(), node.shown.as_ref().ok()?)))
        .collect();
    let info = |field: &'static str| {
        groups(&shown, move |shown| {
            shown.info.text(field).map(str::to_owned)
        })
    };
    for (_, nodes) in info("run_id")
        .into_iter()
        .filter(|(_, nodes)| nodes.len() > 1)
    {
        Found { findings, nodes }.problem(
            "twice",
            "these are one server: it would vote more than once",
            "Name each server once.",
        );
    }
    let machines = groups(&shown, |shown| {
        shown.machine.map(|machine| machine.to_string())
    });
    for (machine, nodes) in machines.into_iter().filter(|(_, nodes)| nodes.len() > 1) {
        Found { findings, nodes }.warning(
            "one-machine",
            format_args!("these are on one machine ({machine}): they fail together"),
            "Give each node a machine of its own.",
        );
    }
    let ttls = groups(&shown, |shown| {
        let is_guarded = shown.info.text("restart_guard") == Some("on");
        is_guarded.then(|| shown.info.text("max_ttl_ms").map(str::to_owned))?
    });
    differ(
        findings,
        &ttls,
        "max-ttl",
        "max-ttl differs",
        " ms",
        "Give all nodes the same --max-ttl: the smallest one decides which locks a majority grants.",
    );
    for server in ["locknode", "Redis", "Valkey"] {
        let versions = groups(&shown, |shown| match shown.info.server() {
            (name, version) if name == server => Some(version.to_owned()),
            _ => None,
        });
        let text = format!("the versions of {server} differ");
        differ(
            findings,
            &versions,
            "versions",
            &text,
            "",
            "Finish the upgrade: one node after the other.",
        );
    }
    wall_clocks(&shown, findings);
    count(nodes, findings);
}

/// A warning when there is more than one group.
fn differ(
    findings: &mut Vec<Finding>,
    groups: &BTreeMap<String, Vec<String>>,
    name: &'static str,
    text: &str,
    unit: &str,
    advice: &'static str,
) {
    if groups.len() < 2 {
        return;
    }
    let groups: Vec<_> = groups
        .iter()
        .map(|(value, nodes)| format!("{value}{unit} ({})", nodes.join(", ")))
        .collect();
    let nodes = Vec::new();
    Found { findings, nodes }.warning(name, format_args!("{text}: {}", groups.join(", ")), advice);
}

fn wall_clocks(shown: &[(&str, &Shown)], findings: &mut Vec<Finding>) {
    let ahead =
        |of: fn(f64, f64) -> f64| shown.iter().filter_map(|(_, shown)| shown.ahead).reduce(of);
    let (Some(least), Some(most)) = (ahead(f64::min), ahead(f64::max)) else {
        return;
    };
    if most - least > APART {
        let nodes = Vec::new();
        Found { findings, nodes }.note(
            "wall-clocks",
            format_args!("the nodes' wall clocks differ by {:.1} s", most - least),
            "No TTL depends on them, but a clock that nobody sets may also run at a wrong rate: look after the time synchronisation.",
        );
    }
}

fn count(nodes: &[Examined], findings: &mut Vec<Finding>) {
    let (all, majority) = (nodes.len(), nodes.len() / 2 + 1);
    let granting = nodes.iter().filter(|node| node.grants()).count();
    let mut found = Found {
        findings,
        nodes: Vec::new(),
    };
    if granting < majority {
        found.problem(
            "no-majority",
            format_args!("{granting} of {all} nodes grant locks, and a majority is {majority}: nobody gets a lock"),
            "See what is said of the others.",
        );
    } else if granting == majority && granting < all {
        found.warning(
            "bare-majority",
            format_args!(
                "{granting} of {all} nodes grant locks: when one more is away, nobody gets a lock"
            ),
            "See what is said of the others.",
        );
    }
    match all {
        0 => {}
        1 => found.note(
            "one-node",
            "one node: while it is away, nobody gets a lock",
            "Use three or five.",
        ),
        _ if all.is_multiple_of(2) => found.note(
            "even",
            format_args!("{all} nodes survive as many failures as {}", all - 1),
            "Use an odd number.",
        ),
        _ => {}
    }
}

impl Examined {
    /// Whether the node grants locks.
    fn grants(&self) -> bool {
        let Ok(shown) = &self.shown else {
            return false;
        };
        let info = &shown.info;
        info.text("restart_state")
            .is_none_or(|state| state == "serving")
            && info.text("loading") != Some("1")
            && !matches!(info.text("role"), Some("slave" | "replica"))
            && info.text("redis_mode") != Some("sentinel")
    }
}

/// The nodes that show the same.
fn groups(
    shown: &[(&str, &Shown)],
    of: impl Fn(&Shown) -> Option<String>,
) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (address, shown) in shown {
        if let Some(value) = of(shown) {
            groups.entry(value).or_default().push((*address).to_owned());
        }
    }
    groups
}

/// What clients allow for: see `Drift`.
const DRIFT_PPM: f64 = 10_000.0;

/// Time synchronisation changes the rate of a clock by 500 ppm at most, and that of two clocks by twice as much.
const SLEW_PPM: f64 = 1000.0;

/// A fifth of what a client waits for a node at most.
const SLOW: Duration = Duration::from_millis(50);

/// Close to the time after which a client gives up on a node.
const VERY_SLOW: Duration = Duration::from_millis(200);

/// Time synchronisation keeps clocks within milliseconds of one another, in seconds.
const APART: f64 = 1.0;

#[cfg(test)]
mod tests;
