//! Faults as text, one per line, and back.
//!
//! ```text
//! crash node 2 power-loss          restart node 2                 crash client 1
//! pause client 1 40s               suspend node 0 3s              freeze client 1 2s
//! cut client 0 node 1,2 both       heal client all node all       reset client 0 node 2
//! delay client 0 node 2 30ms       hold client 0 node 2 replies   release client 0 node 2 replies
//! drop client 0 node 2 replies 1   late client 0 node 2 requests 2 500ms
//! duplicate client 0 node 2 1      max-ttl node 2 10s             calm
//! promote node 0                   crash-in node 2 open|compact|close 7 power-loss
//! rate node 3 +9000ppm             slew node 3 +83333ppm          noise client 0 2ms
//! wall node 3 -3600000ms           disk node 1 sync-error|sync-full|write-error|write-full
//! disk node 1 rot|cut              disk node 1 full|room|stall|go|slow 20ms
//! ```

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::time::Duration;

use crate::fault::{Crash, DiskFault, Fault, Links, Members, Phase, Way, Who};
use crate::parse_error::ParseError;
use crate::span::{Span, parse_span};

/// The words of a line, taken one after the other.
#[derive(Debug)]
pub(crate) struct Words<'t> {
    rest: std::str::SplitWhitespace<'t>,
    line: &'t str,
}

impl<'t> Words<'t> {
    pub(crate) fn of(line: &'t str) -> Self {
        Self {
            rest: line.split_whitespace(),
            line,
        }
    }

    /// The next word, if there is one.
    pub(crate) fn next(&mut self) -> Option<&'t str> {
        self.rest.next()
    }

    /// The next word, which has to be there.
    pub(crate) fn need(&mut self, what: &'static str) -> Result<&'t str, ParseError> {
        self.rest
            .next()
            .ok_or_else(|| ParseError::missing(what, self.line))
    }

    /// The next word, which has to be this one.
    pub(crate) fn expect(&mut self, word: &'static str) -> Result<(), ParseError> {
        match self.need(word)? {
            found if found == word => Ok(()),
            found => Err(ParseError::unexpected(word, found, self.line)),
        }
    }

    pub(crate) fn span(&mut self) -> Result<Duration, ParseError> {
        let word = self.need("a time such as 1.5s or 20ms")?;
        parse_span(word)
            .ok_or_else(|| ParseError::unexpected("a time such as 1.5s or 20ms", word, self.line))
    }

    pub(crate) fn number<N: std::str::FromStr>(
        &mut self,
        what: &'static str,
    ) -> Result<N, ParseError> {
        let word = self.need(what)?;
        word.parse()
            .map_err(|_| ParseError::unexpected(what, word, self.line))
    }

    /// `node` or `client`, and a number below 16.
    pub(crate) fn who(&mut self) -> Result<Who, ParseError> {
        let word = self.need("node or client")?;
        match word {
            "node" => Ok(Who::Node(self.member()?)),
            "client" => Ok(Who::Client(self.member()?)),
            _ => Err(ParseError::unexpected("node or client", word, self.line)),
        }
    }

    pub(crate) fn node(&mut self) -> Result<u8, ParseError> {
        self.expect("node")?;
        self.member()
    }

    pub(crate) fn client(&mut self) -> Result<u8, ParseError> {
        self.expect("client")?;
        self.member()
    }

    fn member(&mut self) -> Result<u8, ParseError> {
        const WHAT: &str = "a number from 0 to 15";
        match self.number(WHAT)? {
            number @ 0..16 => Ok(number),
            number => Err(ParseError::unexpected(
                WHAT,
                &u8::to_string(&number),
                self.line,
            )),
        }
    }

    fn members(&mut self) -> Result<Members, ParseError> {
        const WHAT: &str = "numbers from 0 to 15 such as 0,2, or all";
        let word = self.need(WHAT)?;
        if word == "all" {
            return Ok(Members::ALL);
        }
        let parse = |part: &str| part.parse::<u8>().ok().filter(|number| *number < 16);
        let members = word.split(',').map(parse).collect::<Option<Members>>();
        members.ok_or_else(|| ParseError::unexpected(WHAT, word, self.line))
    }

    fn links(&mut self) -> Result<Links, ParseError> {
        self.expect("client")?;
        let clients = self.members()?;
        self.expect("node")?;
        let nodes = self.members()?;
        Ok(Links { clients, nodes })
    }

    fn way(&mut self) -> Result<Way, ParseError> {
        match self.need("requests, replies or both")? {
            "requests" => Ok(Way::Requests),
            "replies" => Ok(Way::Replies),
            "both" => Ok(Way::Both),
            word => Err(ParseError::unexpected(
                "requests, replies or both",
                word,
                self.line,
            )),
        }
    }

    fn ppm(&mut self) -> Result<i32, ParseError> {
        const WHAT: &str = "a rate such as +9000ppm or -500ppm, from -900000ppm to +900000ppm";
        let word = self.need(WHAT)?;
        let parsed = word
            .strip_suffix("ppm")
            .and_then(|digits| digits.parse().ok());
        parsed
            .filter(|ppm| (-900_000..=900_000).contains(ppm))
            .ok_or_else(|| ParseError::unexpected(WHAT, word, self.line))
    }

    /// Nothing may follow.
    pub(crate) fn end(&mut self) -> Result<(), ParseError> {
        match self.rest.next() {
            None => Ok(()),
            Some(word) => Err(ParseError::unexpected(
                "the end of the line",
                word,
                self.line,
            )),
        }
    }

    fn error(&self, what: &'static str, found: &str) -> ParseError {
        ParseError::unexpected(what, found, self.line)
    }
}

impl Fault {
    /// Reads one line of the form that `to_string` writes.
    ///
    /// # Errors
    ///
    /// What is wrong with the line, and what was expected in its place.
    ///
    /// ```
    /// use locknode_testkit::{Crash, Fault};
    ///
    /// let fault = Fault::parse("crash node 2 power-loss")?;
    /// assert_eq!(fault, Fault::Crash(2, Crash::PowerLoss));
    /// assert_eq!(fault.to_string(), "crash node 2 power-loss");
    /// # Ok::<(), locknode_testkit::ParseError>(())
    /// ```
    pub fn parse(line: &str) -> Result<Self, ParseError> {
        let mut words = Words::of(line);
        let fault = Self::parse_words(&mut words)?;
        words.end()?;
        Ok(fault)
    }

    pub(crate) fn parse_words(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let word = words.need("a fault")?;
        Ok(match word {
            "crash" => match words.who()? {
                Who::Client(client) => Self::CrashClient(client),
                Who::Node(node) => Self::Crash(node, parse_crash(words)?),
            },
            "crash-in" => Self::CrashIn(
                words.node()?,
                parse_phase(words)?,
                words.number("how many operations before it")?,
                parse_crash(words)?,
            ),
            "restart" => Self::Restart(words.node()?),
            "promote" => Self::Promote(words.node()?),
            "pause" => Self::Pause(words.who()?, words.span()?),
            "suspend" => Self::Suspend(words.who()?, words.span()?),
            "freeze" => Self::Freeze(words.who()?, words.span()?),
            "cut" => Self::Cut(words.links()?, words.way()?),
            "heal" => Self::Heal(words.links()?),
            "delay" => Self::Delay(words.links()?, words.span()?),
            "hold" => Self::Hold(words.links()?, words.way()?),
            "release" => Self::Release(words.links()?, words.way()?),
            "drop" => Self::Drop(words.links()?, words.way()?, words.number("how many")?),
            "late" => Self::Late(
                words.links()?,
                words.way()?,
                words.number("how many")?,
                words.span()?,
            ),
            "duplicate" => Self::Duplicate(words.links()?, words.number("how many")?),
            "reset" => Self::Reset(words.links()?),
            "rate" => Self::Rate(words.who()?, words.ppm()?),
            "slew" => Self::Slew(words.who()?, words.ppm()?),
            "noise" => Self::Noise(words.who()?, words.span()?),
            "wall" => Self::WallJump(words.who()?, parse_jump(words)?),
            "disk" => Self::Disk(words.node()?, parse_disk(words)?),
            "max-ttl" => Self::MaxTtl(words.node()?, words.span()?),
            "calm" => Self::Calm,
            _ => return Err(words.error(FAULTS, word)),
        })
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        match self {
            Self::Crash(node, how) => write!(f, "crash node {node} {}", how.name()),
            Self::CrashIn(node, phase, after, how) => {
                write!(
                    f,
                    "crash-in node {node} {} {after} {}",
                    phase.name(),
                    how.name()
                )
            }
            Self::Restart(node) => write!(f, "restart node {node}"),
            Self::Promote(node) => write!(f, "promote node {node}"),
            Self::CrashClient(client) => write!(f, "crash client {client}"),
            Self::Pause(who, span) => write!(f, "pause {who} {}", Span(*span)),
            Self::Suspend(who, span) => write!(f, "suspend {who} {}", Span(*span)),
            Self::Freeze(who, span) => write!(f, "freeze {who} {}", Span(*span)),
            Self::Cut(links, way) => write!(f, "cut {links} {way}"),
            Self::Heal(links) => write!(f, "heal {links}"),
            Self::Delay(links, span) => write!(f, "delay {links} {}", Span(*span)),
            Self::Hold(links, way) => write!(f, "hold {links} {way}"),
            Self::Release(links, way) => write!(f, "release {links} {way}"),
            Self::Drop(links, way, count) => write!(f, "drop {links} {way} {count}"),
            Self::Late(links, way, count, span) => {
                write!(f, "late {links} {way} {count} {}", Span(*span))
            }
            Self::Duplicate(links, count) => write!(f, "duplicate {links} {count}"),
            Self::Reset(links) => write!(f, "reset {links}"),
            Self::Rate(who, ppm) => write!(f, "rate {who} {ppm:+}ppm"),
            Self::Slew(who, ppm) => write!(f, "slew {who} {ppm:+}ppm"),
            Self::Noise(who, span) => write!(f, "noise {who} {}", Span(*span)),
            Self::WallJump(who, ms) => write!(f, "wall {who} {ms:+}ms"),
            Self::Disk(node, DiskFault::Slow(span)) => {
                write!(f, "disk node {node} slow {}", Span(*span))
            }
            Self::Disk(node, fault) => write!(f, "disk node {node} {}", disk_name(*fault)),
            Self::MaxTtl(node, span) => write!(f, "max-ttl node {node} {}", Span(*span)),
            Self::Calm => f.write_str("calm"),
        }
    }
}

impl Display for Who {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        match self {
            Self::Node(node) => write!(f, "node {node}"),
            Self::Client(client) => write!(f, "client {client}"),
        }
    }
}

impl Display for Links {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        write!(f, "client {} node {}", self.clients, self.nodes)
    }
}

impl Display for Members {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        if *self == Self::ALL {
            return f.write_str("all");
        }
        for (place, number) in self.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{number}")?;
        }
        Ok(())
    }
}

impl Display for Way {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Replies => "replies",
            Self::Both => "both",
        })
    }
}

fn parse_crash(words: &mut Words<'_>) -> Result<Crash, ParseError> {
    const WHAT: &str = "kill, power-loss, power-loss-all, torn-write, disk-lost, rollback, moved, clean-stop, \
         contained or clocks-back";
    let word = words.need(WHAT)?;
    let found = Crash::ALL.into_iter().find(|crash| crash.name() == word);
    found.ok_or_else(|| words.error(WHAT, word))
}

fn parse_phase(words: &mut Words<'_>) -> Result<Phase, ParseError> {
    const WHAT: &str = "open, compact or close";
    let word = words.need(WHAT)?;
    let found = Phase::ALL.into_iter().find(|phase| phase.name() == word);
    found.ok_or_else(|| words.error(WHAT, word))
}

fn parse_jump(words: &mut Words<'_>) -> Result<i64, ParseError> {
    const WHAT: &str = "milliseconds such as +3600000ms or -500ms, a year at most";
    let word = words.need(WHAT)?;
    let parsed = word
        .strip_suffix("ms")
        .and_then(|digits| digits.parse::<i64>().ok());
    parsed
        .filter(|ms| ms.unsigned_abs() <= JUMP_MS_MAX)
        .ok_or_else(|| words.error(WHAT, word))
}

fn parse_disk(words: &mut Words<'_>) -> Result<DiskFault, ParseError> {
    const WHAT: &str =
        "sync-error, sync-full, write-error, write-full, rot, cut, full, room, stall, go or slow";
    Ok(match words.need(WHAT)? {
        "sync-error" => DiskFault::SyncError,
        "sync-full" => DiskFault::SyncFull,
        "write-error" => DiskFault::WriteError,
        "write-full" => DiskFault::WriteFull,
        "rot" => DiskFault::Rot,
        "cut" => DiskFault::Cut,
        "full" => DiskFault::Full,
        "room" => DiskFault::Room,
        "stall" => DiskFault::Stall,
        "go" => DiskFault::Go,
        "slow" => DiskFault::Slow(words.span()?),
        word => return Err(words.error(WHAT, word)),
    })
}

const fn disk_name(fault: DiskFault) -> &'static str {
    match fault {
        DiskFault::SyncError => "sync-error",
        DiskFault::SyncFull => "sync-full",
        DiskFault::WriteError => "write-error",
        DiskFault::WriteFull => "write-full",
        DiskFault::Rot => "rot",
        DiskFault::Cut => "cut",
        DiskFault::Full => "full",
        DiskFault::Room => "room",
        DiskFault::Slow(_) => "slow",
        DiskFault::Stall => "stall",
        DiskFault::Go => "go",
    }
}

const JUMP_MS_MAX: u64 = 365 * 24 * 3_600_000;

const FAULTS: &str = "crash, crash-in, restart, promote, pause, suspend, freeze, cut, heal, delay, hold, release, drop, late, duplicate, \
     reset, rate, slew, noise, wall, disk, max-ttl or calm";
