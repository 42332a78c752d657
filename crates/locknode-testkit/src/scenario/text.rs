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
    Action, ClientAction, ClientKind, Dialect, Ending, GuardMode, Hook, LockAction, Scenario,
    Setup, Step, Trigger,
};
use crate::span::Span;

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
        if !has_header {
            let text = "expected `locknode-scenario 1` as the first line";
            return Err(ParseError::because(text));
        }
        Ok(scenario)
    }
}

impl Step {
    /// Whether the nodes and clients are there that a step names, and can do it.
    fn check(&self, setup: &Setup) -> Result<(), ParseError> {
        if let Action::Client(_, ClientAction::Lock(lock)) = &self.what {
            lock.check(setup)?;
        }
        let mut named = Vec::new();
        if let Trigger::On { hook, .. } = &self.when {
            named.push(hook.name().1);
        }
        match &self.what {
            Action::Client(client, ClientAction::Ask { node, .. }) => {
                named.extend([Who::Client(*client), Who::Node(*node)]);
            }
            Action::Client(client, _) => named.push(Who::Client(*client)),
            Action::Fault(fault) => named.extend(fault.who()),
        }
        let is_there = |who: &Who| match who {
            Who::Node(node) => *node < setup.nodes,
            Who::Client(client) => *client < setup.clients,
        };
        let Some(who) = named.into_iter().find(|who| !is_there(who)) else {
            return Ok(());
        };
        Err(ParseError::because(format!(
            "there is no {who}: nodes are 0 to {}, clients 0 to {}",
            setup.nodes.saturating_sub(1),
            setup.clients.saturating_sub(1)
        )))
    }
}

impl LockAction {
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
                "the plain client, which also runs with hashes or with a bug of a client, extends a lock by its own TTL and renews none, \
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

impl Display for Scenario {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        writeln!(f, "locknode-scenario 1")?;
        write_settings(f, &self.setup)?;
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
            Trigger::On { hook, nth, after } => {
                write!(f, "on {hook} nth {nth} after {} ", Span(*after))?;
            }
        }
        match &self.what {
            Action::Fault(fault) => write!(f, "do {fault}"),
            Action::Client(client, act) => write!(f, "client {client} {act}"),
        }
    }
}

impl Display for Hook {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let (name, who) = self.name();
        write!(f, "{name} {who}")
    }
}

impl Display for ClientAction {
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

impl Display for LockAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let Self { key, tries, .. } = self;
        write!(f, "lock {key} ttl {} tries {tries}", Span(self.ttl))?;
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
        write!(f, " then {}", self.ending)
    }
}

/// Makes the writer and the reader of settings of one row for each: its name, what is written of it, if anything, and how it
/// is read. They are written in this order and read in any.
macro_rules! settings {
    ($setup:ident, $words:ident: $($name:literal $written:expr => $read:expr,)+) => {
        fn write_settings(f: &mut Formatter<'_>, $setup: &Setup) -> FmtResult {
            $(if let Some(written) = $written {
                writeln!(f, concat!($name, " {}"), written)?;
            })+
            Ok(())
        }

        fn parse_setting($words: &mut Words<'_>, $setup: &mut Setup) -> Result<(), ParseError> {
            const WHAT: &str = "a setting, or a step that begins with at or on";
            match $words.need(WHAT)? {
                $($name => $read,)+
                word => return Err(ParseError::unexpected(WHAT, word, word)),
            }
            Ok(())
        }
    };
}

settings! { setup, words:
    "seed" Some(setup.seed) => setup.seed = words.number("a number")?,
    "nodes" Some(setup.nodes) => setup.nodes = parse_count(words)?,
    "clients" Some(setup.clients) => setup.clients = parse_count(words)?,
    "guard" Some(setup.guard) => setup.guard = words.one_of(&GuardMode::ALL, GuardMode::name)?,
    "max-ttl" Some(Span(setup.max_ttl)) => setup.max_ttl = words.span()?,
    "delay" Some(written_range(setup.delay)) => setup.delay = parse_range(words)?,
    "sync" Some(written_range(setup.sync)) => setup.sync = parse_range(words)?,
    "drift" Some(format!("{}ppm {}", setup.drift_ppm, Span(setup.drift_constant))) => {
        setup.drift_ppm = words.one("millionths such as 10000ppm", parse_ppm)?;
        setup.drift_constant = words.span()?;
    },
    "replica" setup.replica_lag.map(Span) => setup.replica_lag = Some(words.span()?),
    "client" Some(setup.client) => setup.client = words.one_of(&ClientKind::ALL, ClientKind::name)?,
    "shards" (setup.shards != 1).then_some(setup.shards) => {
        setup.shards = words.one("1, 2, 4, 8 or 16", parse_shards)?;
    },
    "dialect" (setup.dialect != Dialect::Lock).then_some(setup.dialect) => {
        setup.dialect = words.one_of(&Dialect::ALL, Dialect::name)?;
    },
    "bug" setup.bug => setup.bug = Some(words.one("the name of a bug", Bug::named)?),
    "watch" setup.watches_half.then_some("half") => {
        words.expect("half")?;
        setup.watches_half = true;
    },
    "run" Some(Span(setup.run_for)) => setup.run_for = words.span()?,
    "liveness-from" setup.liveness_from => setup.liveness_from = Some(words.span()?.into()),
}

fn parse_ppm(word: &str) -> Option<u32> {
    word.strip_suffix("ppm")?.parse().ok()
}

fn parse_shards(word: &str) -> Option<u8> {
    let shards = word.parse().ok();
    shards.filter(|it: &u8| it.is_power_of_two() && *it <= 16)
}

fn parse_count(words: &mut Words<'_>) -> Result<u8, ParseError> {
    const WHAT: &str = "a number from 1 to 16";
    words.one(WHAT, |word| {
        let count = word.parse().ok();
        count.filter(|count| (1..=16).contains(count))
    })
}

fn written_range((low, high): (Duration, Duration)) -> String {
    format!("{} {}", Span(low), Span(high))
}

fn parse_range(words: &mut Words<'_>) -> Result<(Duration, Duration), ParseError> {
    let (low, high) = (words.span()?, words.span()?);
    if low > high {
        let (low, high) = (Span(low), Span(high));
        let text = format!("expected the lesser time first, found {low} {high}");
        return Err(ParseError::because(text));
    }
    Ok((low, high))
}

fn parse_step(words: &mut Words<'_>) -> Result<Step, ParseError> {
    let when = match words.next() {
        Some("at") => Trigger::At(words.span()?.into()),
        _ => {
            let hook = parse_cue(words)?;
            words.expect("nth")?;
            let nth = words.number("a number from 1 on")?;
            words.expect("after")?;
            let after = words.span()?;
            Trigger::On { hook, nth, after }
        }
    };
    let what = match words.need("do or client")? {
        "do" => Action::Fault(Fault::parse_words(words)?),
        "client" => {
            let client = words.number("a number from 0 to 15")?;
            Action::Client(client, parse_act(words)?)
        }
        word => return Err(ParseError::unexpected("do or client", word, "a step")),
    };
    Ok(Step { when, what })
}

fn parse_cue(words: &mut Words<'_>) -> Result<Hook, ParseError> {
    let (_, who, hook) = words.one_of(Hook::FORMS, |(name, ..)| name)?;
    words.expect(who)?;
    Ok(hook(words.member()?))
}

fn parse_act(words: &mut Words<'_>) -> Result<ClientAction, ParseError> {
    const WHAT: &str = "lock, extend, release, give-up, look, write or ask";
    let verb = words.need(WHAT)?;
    if verb == "ask" {
        return parse_ask(words);
    }
    let key: Box<str> = words.need("a key")?.into();
    Ok(match verb {
        "lock" => ClientAction::Lock(parse_lock(words, &key)?),
        "extend" => {
            words.expect("ttl")?;
            let ttl = words.span()?;
            ClientAction::Extend { key, ttl }
        }
        "release" => ClientAction::Release { key },
        "give-up" => ClientAction::GiveUp { key },
        "look" => ClientAction::Look { key },
        "write" => {
            words.expect("takes")?;
            let takes = words.span()?;
            ClientAction::Write { key, takes }
        }
        _ => return Err(ParseError::unexpected(WHAT, verb, "a step")),
    })
}

fn parse_ask(words: &mut Words<'_>) -> Result<ClientAction, ParseError> {
    words.expect("node")?;
    let node = words.member()?;
    words.expect("line")?;
    let line = words.number("the number of a connection")?;
    let mut request = words.need("the words of a request")?.to_owned();
    while let Some(word) = words.next() {
        request.extend([" ", word]);
    }
    let words = request.into();
    Ok(ClientAction::Ask { node, line, words })
}

fn parse_lock(words: &mut Words<'_>, key: &str) -> Result<LockAction, ParseError> {
    words.expect("ttl")?;
    let mut lock = LockAction::new(key, words.span()?);
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
            (_, "then") => lock.ending = words.one_of(&Ending::ALL, Ending::name)?,
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
