//! Scenarios as text.
//!
//! ```text
//! locknode-scenario 1
//! seed 42
//! nodes 5
//! clients 3
//! guard long                          # off, memory, long or always
//! max-ttl 10s
//! delay 500us 3ms
//! sync 200us 2ms
//! drift 10000ppm 2ms
//! client shipped                      # or plain
//! shards 4                            # only if it is not 1
//! dialect delex                       # or delifeq, script, mixed; only if it is not lock
//! replica 5ms                         # only if nodes have one
//! bug quarantine-off                  # only if there is one
//! watch half                          # only if every second client and disk is watched, as in a swarm
//! run 60s
//! liveness-from 45s                   # only if progress is demanded
//! at 1s client 0 lock k ttl 3s tries 3 hold 2s extend 1s write 500ms then release
//! at 1s client 1 lock k ttl 3s extend 1s to 2s      # every second extension to 2s
//! at 1s client 1 lock k ttl 3s renew every 1s for 9s # by the client core
//! at 1s client 2 lock k ttl 3s within 2s             # tried for so long, however often
//! at 1s client 2 lock k ttl 3s hold 1ms at-least 2s # released, and taken until then
//! at 2s client 0 extend k ttl 3s
//! at 2s client 0 write k takes 1ms
//! at 3s client 0 release k
//! at 3s client 0 give-up k
//! at 3s client 0 look k
//! at 3s client 0 ask node 2 line 1 GET k ; PTTL k   # by a connection of its own
//! at 4s do crash node 2 power-loss
//! on granted node 2 nth 1 after 0s do restart node 2
//! ```

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::time::Duration;

use crate::bug::Bug;
use crate::fault::text::Words;
use crate::fault::{Fault, Who};
use crate::parse_error::ParseError;
use crate::scenario::{
    Act, ClientKind, Cue, Deed, Dialect, Ending, Guarding, LockAct, Scenario, Setup, Step, Trigger,
};
use crate::span::{SimTime, Span};

impl Scenario {
    /// Reads the text that `to_string` writes. Empty lines and what follows a `#` are skipped; lines that are left out
    /// are as in [`Setup::default`].
    ///
    /// # Errors
    ///
    /// Which line is wrong, and what was expected. Scenarios of more than a million steps are refused.
    ///
    /// ```
    /// use locknode_testkit::Scenario;
    ///
    /// let text = "locknode-scenario 1\nseed 7\nat 1s client 0 lock k ttl 3s\nat 2s do crash node 2 kill\n";
    /// let scenario = Scenario::parse(text)?;
    /// assert_eq!(scenario.steps.len(), 2);
    /// assert_eq!(Scenario::parse(&scenario.to_string())?, scenario);
    /// # Ok::<(), locknode_testkit::ParseError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut scenario = Self::new(Setup::default());
        let (mut has_header, mut places) = (false, Vec::new());
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let on_line = |error: ParseError| error.on(number + 1);
            let mut words = Words::of(line);
            if !has_header {
                words.expect("locknode-scenario").map_err(on_line)?;
                words.expect("1").map_err(on_line)?;
                has_header = true;
            } else if line.starts_with("at ") || line.starts_with("on ") {
                if scenario.steps.len() >= STEPS_MAX {
                    return Err(on_line(ParseError::because("more than a million steps")));
                }
                scenario
                    .steps
                    .push(parse_step(&mut words).map_err(on_line)?);
                places.push(number + 1);
            } else {
                parse_setting(&mut words, &mut scenario.setup).map_err(on_line)?;
            }
            words.end().map_err(on_line)?;
        }
        for (number, step) in places.into_iter().zip(&scenario.steps) {
            step.check(&scenario.setup)
                .map_err(|error| error.on(number))?;
        }
        match has_header {
            true => Ok(scenario),
            false => Err(ParseError::because(
                "expected `locknode-scenario 1` as the first line",
            )),
        }
    }
}

impl Step {
    /// Whether the nodes and clients are there that a step names, and can do it.
    fn check(&self, setup: &Setup) -> Result<(), ParseError> {
        if let Deed::Act(_, Act::Lock(lock)) = &self.what {
            lock.check(setup)?;
        }
        let mut named = Vec::new();
        if let Trigger::On { cue, .. } = &self.when {
            named.push(cue.who());
        }
        match &self.what {
            Deed::Act(client, Act::Ask { node, .. }) => {
                named.extend([Who::Client(*client), Who::Node(*node)]);
            }
            Deed::Act(client, _) => named.push(Who::Client(*client)),
            Deed::Fault(fault) => named.extend(fault.who()),
        }
        let is_there = |who: &Who| match who {
            Who::Node(node) => *node < setup.nodes,
            Who::Client(client) => *client < setup.clients,
        };
        match named.into_iter().find(|who| !is_there(who)) {
            None => Ok(()),
            Some(who) => Err(ParseError::because(format!(
                "there is no {who}: nodes are 0 to {}, clients 0 to {}",
                setup.nodes.saturating_sub(1),
                setup.clients.saturating_sub(1)
            ))),
        }
    }
}

impl LockAct {
    /// Whether there is a client that works so: the shipped one refuses such terms, the plain one does not know them.
    fn check(&self, setup: &Setup) -> Result<(), ParseError> {
        let is_other = self.extend_to.is_some() || self.renew_every.is_some();
        if self.within.is_some_and(|time| time.is_zero()) {
            return Err(ParseError::because(
                "`within 0s` leaves no time to try; give a longer time",
            ));
        }
        if (is_other || self.within.is_some()) && setup.is_plain() {
            return Err(ParseError::because(
                "the plain client, which also runs with a bug of a client, extends a lock by its own TTL and renews none, \
                 and counts its tries: leave out `to`, `renew` and `within`",
            ));
        }
        if self.extend_to.is_some_and(|ttl| ttl < LEAST) {
            return Err(ParseError::because("an extension to at least 1ms"));
        }
        match self.renew_every {
            Some(every) if every < LEAST || every > self.ttl / 2 => {
                Err(ParseError::because(format!(
                    "a renewal every 1ms to {}, which is half of the TTL, not every {}",
                    Span(self.ttl / 2),
                    Span(every)
                )))
            }
            Some(_) if self.renew_for.is_some_and(|bound| bound.is_zero()) => Err(
                ParseError::because("a renewal for 0s is none: leave it out"),
            ),
            _ => Ok(()),
        }
    }
}

impl Cue {
    /// Whose doing it is.
    const fn who(self) -> Who {
        match self {
            Self::Started(node)
            | Self::Serving(node)
            | Self::Down(node)
            | Self::Stops(node)
            | Self::Asked(node)
            | Self::Granted(node)
            | Self::Extended(node)
            | Self::Freed(node)
            | Self::Lowers(node) => Who::Node(node),
            Self::Calls(client)
            | Self::Acquired(client)
            | Self::Renewed(client)
            | Self::Shortens(client)
            | Self::Failed(client)
            | Self::Lost(client)
            | Self::Releases(client)
            | Self::Checked(client) => Who::Client(client),
        }
    }
}

impl Display for Scenario {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let setup = &self.setup;
        writeln!(f, "locknode-scenario 1")?;
        writeln!(f, "seed {}", setup.seed)?;
        writeln!(f, "nodes {}", setup.nodes)?;
        writeln!(f, "clients {}", setup.clients)?;
        writeln!(f, "guard {}", setup.guard.name())?;
        writeln!(f, "max-ttl {}", Span(setup.max_ttl))?;
        writeln!(f, "delay {} {}", Span(setup.delay.0), Span(setup.delay.1))?;
        writeln!(f, "sync {} {}", Span(setup.sync.0), Span(setup.sync.1))?;
        writeln!(
            f,
            "drift {}ppm {}",
            setup.drift_ppm,
            Span(setup.drift_constant)
        )?;
        if let Some(lag) = setup.replica_lag {
            writeln!(f, "replica {}", Span(lag))?;
        }
        writeln!(f, "client {}", setup.client.name())?;
        if setup.shards != 1 {
            writeln!(f, "shards {}", setup.shards)?;
        }
        if setup.dialect != Dialect::Lock {
            writeln!(f, "dialect {}", setup.dialect.name())?;
        }
        if let Some(bug) = setup.bug {
            writeln!(f, "bug {bug}")?;
        }
        if setup.watches_half {
            writeln!(f, "watch half")?;
        }
        writeln!(f, "run {}", Span(setup.run_for))?;
        if let Some(from) = setup.liveness_from {
            writeln!(f, "liveness-from {from}")?;
        }
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        Ok(())
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        match &self.when {
            Trigger::At(at) => write!(f, "at {at} ")?,
            Trigger::On { cue, nth, after } => {
                write!(f, "on {cue} nth {nth} after {} ", Span(*after))?;
            }
        }
        match &self.what {
            Deed::Fault(fault) => write!(f, "do {fault}"),
            Deed::Act(client, act) => write!(f, "client {client} {act}"),
        }
    }
}

impl Display for Cue {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let (name, who) = match self {
            Self::Started(node) => ("started node", node),
            Self::Serving(node) => ("serving node", node),
            Self::Down(node) => ("down node", node),
            Self::Stops(node) => ("stops node", node),
            Self::Asked(node) => ("asked node", node),
            Self::Granted(node) => ("granted node", node),
            Self::Extended(node) => ("extended node", node),
            Self::Freed(node) => ("freed node", node),
            Self::Lowers(node) => ("lowers node", node),
            Self::Calls(client) => ("calls client", client),
            Self::Acquired(client) => ("acquired client", client),
            Self::Renewed(client) => ("renewed client", client),
            Self::Shortens(client) => ("shortens client", client),
            Self::Failed(client) => ("failed client", client),
            Self::Lost(client) => ("lost client", client),
            Self::Releases(client) => ("releases client", client),
            Self::Checked(client) => ("checked client", client),
        };
        write!(f, "{name} {who}")
    }
}

impl Display for Act {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        match self {
            Self::Lock(lock) => lock.fmt(f),
            Self::Extend { key, ttl } => write!(f, "extend {key} ttl {}", Span(*ttl)),
            Self::Release { key } => write!(f, "release {key}"),
            Self::GiveUp { key } => write!(f, "give-up {key}"),
            Self::Look { key } => write!(f, "look {key}"),
            Self::Ask { node, line, words } => write!(f, "ask node {node} line {line} {words}"),
            Self::Write { key, takes } => write!(f, "write {key} takes {}", Span(*takes)),
        }
    }
}

impl Display for LockAct {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        write!(
            f,
            "lock {} ttl {} tries {}",
            self.key,
            Span(self.ttl),
            self.tries
        )?;
        let spans = [
            ("within", self.within),
            ("hold", self.hold),
            ("extend", self.extend_every),
            ("to", self.extend_every.and(self.extend_to)),
            ("renew every", self.renew_every),
            ("for", self.renew_every.and(self.renew_for)),
            ("write", self.write_every),
            ("at-least", self.at_least),
        ];
        for (name, span) in spans {
            if let Some(span) = span {
                write!(f, " {name} {}", Span(span))?;
            }
        }
        write!(f, " then {}", self.ending.name())
    }
}

impl Guarding {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Off, Self::Memory, Self::Long, Self::Always];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Memory => "memory",
            Self::Long => "long",
            Self::Always => "always",
        }
    }
}

impl ClientKind {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::Plain => "plain",
        }
    }
}

fn parse_setting(words: &mut Words<'_>, setup: &mut Setup) -> Result<(), ParseError> {
    match words.need("a setting, or a step that begins with at or on")? {
        "seed" => setup.seed = words.number("a number")?,
        "nodes" => setup.nodes = parse_count(words)?,
        "clients" => setup.clients = parse_count(words)?,
        "guard" => {
            setup.guard = words.one("off, memory, long or always", |word| {
                Guarding::ALL.into_iter().find(|it| it.name() == word)
            })?;
        }
        "max-ttl" => setup.max_ttl = words.span()?,
        "delay" => setup.delay = parse_range(words)?,
        "sync" => setup.sync = parse_range(words)?,
        "drift" => {
            setup.drift_ppm = words.one("millionths such as 10000ppm", |word| {
                word.strip_suffix("ppm")?.parse().ok()
            })?;
            setup.drift_constant = words.span()?;
        }
        "client" => {
            setup.client = words.one("shipped or plain", |word| {
                let all = [ClientKind::Shipped, ClientKind::Plain];
                all.into_iter().find(|it| it.name() == word)
            })?;
        }
        "shards" => {
            setup.shards = words.one("1, 2, 4, 8 or 16", |word| {
                [1, 2, 4, 8, 16]
                    .into_iter()
                    .find(|it: &u8| it.to_string() == word)
            })?;
        }
        "dialect" => {
            setup.dialect = words.one("lock, delex, delifeq, script or mixed", |word| {
                Dialect::ALL.into_iter().find(|it| it.name() == word)
            })?;
        }
        "bug" => setup.bug = Some(words.one("the name of a bug", Bug::named)?),
        "watch" => {
            setup.watches_half = words.one("half", |word| (word == "half").then_some(true))?;
        }
        "replica" => setup.replica_lag = Some(words.span()?),
        "run" => setup.run_for = words.span()?,
        "liveness-from" => setup.liveness_from = Some(SimTime::from(words.span()?)),
        word => {
            return Err(ParseError::unexpected(
                "a setting, or a step that begins with at or on",
                word,
                word,
            ));
        }
    }
    Ok(())
}

fn parse_count(words: &mut Words<'_>) -> Result<u8, ParseError> {
    const WHAT: &str = "a number from 1 to 16";
    match words.number(WHAT)? {
        count @ 1..=16 => Ok(count),
        count => Err(ParseError::unexpected(
            WHAT,
            &u8::to_string(&count),
            "how many",
        )),
    }
}

fn parse_range(words: &mut Words<'_>) -> Result<(Duration, Duration), ParseError> {
    let (low, high) = (words.span()?, words.span()?);
    match low <= high {
        true => Ok((low, high)),
        false => Err(ParseError::because(format!(
            "expected the lesser time first, found {} {}",
            Span(low),
            Span(high)
        ))),
    }
}

fn parse_step(words: &mut Words<'_>) -> Result<Step, ParseError> {
    let when = match words.next() {
        Some("at") => Trigger::At(words.span()?.into()),
        _ => {
            let cue = parse_cue(words)?;
            words.expect("nth")?;
            let nth = words.number("a number from 1 on")?;
            words.expect("after")?;
            let after = words.span()?;
            Trigger::On { cue, nth, after }
        }
    };
    let what = match words.need("do or client")? {
        "do" => Deed::Fault(Fault::parse_words(words)?),
        "client" => {
            let client = words.number("a number from 0 to 15")?;
            Deed::Act(client, parse_act(words)?)
        }
        word => return Err(ParseError::unexpected("do or client", word, "a step")),
    };
    Ok(Step { when, what })
}

fn parse_cue(words: &mut Words<'_>) -> Result<Cue, ParseError> {
    let word = words.need("what to wait for")?;
    Ok(match word {
        "started" => Cue::Started(words.named_node()?),
        "serving" => Cue::Serving(words.named_node()?),
        "down" => Cue::Down(words.named_node()?),
        "stops" => Cue::Stops(words.named_node()?),
        "asked" => Cue::Asked(words.named_node()?),
        "granted" => Cue::Granted(words.named_node()?),
        "extended" => Cue::Extended(words.named_node()?),
        "freed" => Cue::Freed(words.named_node()?),
        "lowers" => Cue::Lowers(words.named_node()?),
        "calls" => Cue::Calls(words.named_client()?),
        "acquired" => Cue::Acquired(words.named_client()?),
        "renewed" => Cue::Renewed(words.named_client()?),
        "shortens" => Cue::Shortens(words.named_client()?),
        "failed" => Cue::Failed(words.named_client()?),
        "lost" => Cue::Lost(words.named_client()?),
        "releases" => Cue::Releases(words.named_client()?),
        "checked" => Cue::Checked(words.named_client()?),
        _ => {
            const WHAT: &str = "started, serving, down, stops, asked, granted, extended, freed or lowers of a node, or calls, acquired, \
                 renewed, shortens, failed, lost, releases or checked of a client";
            return Err(ParseError::unexpected(WHAT, word, "on"));
        }
    })
}

fn parse_act(words: &mut Words<'_>) -> Result<Act, ParseError> {
    const WHAT: &str = "lock, extend, release, give-up, look, write or ask";
    let verb = words.need(WHAT)?;
    if verb == "ask" {
        return parse_ask(words);
    }
    let key: Box<str> = words.need("a key")?.into();
    Ok(match verb {
        "lock" => Act::Lock(parse_lock(words, &key)?),
        "extend" => {
            words.expect("ttl")?;
            let ttl = words.span()?;
            Act::Extend { key, ttl }
        }
        "release" => Act::Release { key },
        "give-up" => Act::GiveUp { key },
        "look" => Act::Look { key },
        "write" => {
            words.expect("takes")?;
            let takes = words.span()?;
            Act::Write { key, takes }
        }
        _ => return Err(ParseError::unexpected(WHAT, verb, "a step")),
    })
}

fn parse_ask(words: &mut Words<'_>) -> Result<Act, ParseError> {
    let node = words.named_node()?;
    words.expect("line")?;
    let line = words.number("the number of a connection")?;
    let mut request = words.need("the words of a request")?.to_owned();
    while let Some(word) = words.next() {
        request.extend([" ", word]);
    }
    let words = request.into();
    Ok(Act::Ask { node, line, words })
}

fn parse_lock(words: &mut Words<'_>, key: &str) -> Result<LockAct, ParseError> {
    words.expect("ttl")?;
    let mut lock = LockAct::new(key, words.span()?);
    let mut before = "";
    while let Some(word) = words.next() {
        match (before, word) {
            ("extend", "to") => lock.extend_to = Some(words.span()?),
            ("renew", "for") => lock.renew_for = Some(words.span()?),
            (_, "tries") => lock.tries = words.number("how often")?,
            (_, "within") => lock.within = Some(words.span()?),
            (_, "hold") => lock.hold = Some(words.span()?),
            (_, "extend") => lock.extend_every = Some(words.span()?),
            (_, "renew") => {
                words.expect("every")?;
                lock.renew_every = Some(words.span()?);
            }
            (_, "write") => lock.write_every = Some(words.span()?),
            (_, "at-least") => lock.at_least = Some(words.span()?),
            (_, "then") => {
                const WHAT: &str = "release, drop, leave, hand-over, release-by-next or crash";
                let word = words.need(WHAT)?;
                let found = Ending::ALL.into_iter().find(|it| it.name() == word);
                lock.ending = found.ok_or_else(|| ParseError::unexpected(WHAT, word, "then"))?;
            }
            _ => {
                return Err(ParseError::unexpected(
                    "tries, within, hold, extend, to behind extend, renew, for behind renew, write, at-least or then",
                    word,
                    "a lock",
                ));
            }
        }
        before = word;
    }
    Ok(lock)
}

/// What nodes count in.
const LEAST: Duration = Duration::from_millis(1);

/// A million: some gigabyte of work, and more than any seed makes.
const STEPS_MAX: usize = 1_000_000;
