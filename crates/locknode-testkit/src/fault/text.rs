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
//! refuse client all node 2 readonly|oom|misconf|noreplicas|busy 3
//! ```

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::time::Duration;

use crate::fault::{Crash, DiskFault, Fault, Links, Members, Phase, Refusal, Way, Who};
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
    pub(crate) fn need(&mut self, what: &str) -> Result<&'t str, ParseError> {
        self.rest
            .next()
            .ok_or_else(|| ParseError::missing(what, self.line))
    }

    /// The next word, which has to be one that has a meaning here.
    pub(crate) fn one<T>(
        &mut self,
        what: &str,
        meaning: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ParseError> {
        let word = self.need(what)?;
        meaning(word).ok_or_else(|| ParseError::unexpected(what, word, self.line))
    }

    /// The next word, which has to be this one.
    pub(crate) fn expect(&mut self, word: &'static str) -> Result<(), ParseError> {
        self.one(word, |found| (found == word).then_some(()))
    }

    pub(crate) fn span(&mut self) -> Result<Duration, ParseError> {
        self.one("a time such as 1.5s or 20ms", parse_span)
    }

    pub(crate) fn number<N: std::str::FromStr>(&mut self, what: &str) -> Result<N, ParseError> {
        self.one(what, |word| word.parse().ok())
    }

    /// `node` or `client`, and a number below 16.
    pub(crate) fn who(&mut self) -> Result<Who, ParseError> {
        let word = self.need("node or client")?;
        match word {
            "node" => Ok(Who::Node(self.node()?)),
            "client" => Ok(Who::Client(self.client()?)),
            _ => Err(self.error("node or client", word)),
        }
    }

    pub(super) fn node(&mut self) -> Result<u8, ParseError> {
        self.member()
    }

    pub(super) fn client(&mut self) -> Result<u8, ParseError> {
        self.member()
    }

    /// A number below 16.
    pub(crate) fn member(&mut self) -> Result<u8, ParseError> {
        const WHAT: &str = "a number from 0 to 15";
        self.one(WHAT, parse_member)
    }

    fn members(&mut self) -> Result<Members, ParseError> {
        const WHAT: &str = "numbers from 0 to 15 such as 0,2, or all";
        let word = self.need(WHAT)?;
        if word == "all" {
            return Ok(Members::ALL);
        }
        let members = word.split(',').map(parse_member);
        let members = members.collect::<Option<Members>>();
        members.ok_or_else(|| self.error(WHAT, word))
    }

    pub(super) fn links(&mut self) -> Result<Links, ParseError> {
        self.expect("client")?;
        let clients = self.members()?;
        self.expect("node")?;
        let nodes = self.members()?;
        Ok(Links { clients, nodes })
    }

    pub(super) fn way(&mut self) -> Result<Way, ParseError> {
        self.one_of(&Way::ALL, Way::name)
    }

    pub(super) fn count(&mut self) -> Result<u8, ParseError> {
        self.number("how many")
    }

    pub(super) fn time(&mut self) -> Result<Duration, ParseError> {
        self.span()
    }

    pub(super) fn how(&mut self) -> Result<Crash, ParseError> {
        self.one_of(&Crash::ALL, Crash::name)
    }

    pub(super) fn phase(&mut self) -> Result<Phase, ParseError> {
        self.one_of(&Phase::ALL, Phase::name)
    }

    pub(super) fn refusal(&mut self) -> Result<Refusal, ParseError> {
        self.one_of(&Refusal::ALL, Refusal::name)
    }

    pub(super) fn after(&mut self) -> Result<u16, ParseError> {
        self.number("how many operations before it")
    }

    pub(super) fn ppm(&mut self) -> Result<i32, ParseError> {
        const WHAT: &str = "a rate such as +9000ppm or -500ppm, from -900000ppm to +900000ppm";
        self.one(WHAT, |word| {
            let ppm = word.strip_suffix("ppm")?.parse().ok();
            ppm.filter(|ppm| (-900_000..=900_000).contains(ppm))
        })
    }

    pub(super) fn jump(&mut self) -> Result<i64, ParseError> {
        const WHAT: &str = "milliseconds such as +3600000ms or -500ms, a year at most";
        self.one(WHAT, |word| {
            let ms = word.strip_suffix("ms")?.parse().ok();
            ms.filter(|ms: &i64| ms.unsigned_abs() <= JUMP_MS_MAX)
        })
    }

    pub(super) fn disk(&mut self) -> Result<DiskFault, ParseError> {
        match self.one_of(&DiskFault::ALL, DiskFault::name)? {
            DiskFault::Slow(_) => Ok(DiskFault::Slow(self.span()?)),
            disk => Ok(disk),
        }
    }

    /// One of a list, by its name.
    pub(crate) fn one_of<T: Copy>(
        &mut self,
        list: &[T],
        name: fn(T) -> &'static str,
    ) -> Result<T, ParseError> {
        let what = any_of(list.iter().map(|one| name(*one)));
        let word = self.need(&what)?;
        let found = list.iter().find(|one| name(**one) == word);
        found.copied().ok_or_else(|| self.error(&what, word))
    }

    /// Takes these words if they are the next.
    pub(super) fn take(&mut self, words: &str) -> bool {
        let mut rest = self.rest.clone();
        let is_next = words.split(' ').all(|word| rest.next() == Some(word));
        if is_next {
            self.rest = rest;
        }
        is_next
    }

    /// The next words are how no fault begins.
    pub(super) fn no_fault(&mut self) -> ParseError {
        let names = || Fault::FORMS.iter().map(|form| form.name);
        let mut missing = || {
            let word = self.need("a fault")?;
            let seconds: Vec<&str> = names()
                .filter_map(|name| name.strip_prefix(word)?.strip_prefix(' '))
                .collect();
            if seconds.is_empty() {
                let mut firsts: Vec<&str> =
                    names().filter_map(|name| name.split(' ').next()).collect();
                firsts.dedup();
                Ok((any_of(firsts.into_iter()), word))
            } else {
                let what = any_of(seconds.into_iter());
                let word = self.need(&what)?;
                Ok((what, word))
            }
        };
        match missing() {
            Ok((what, word)) => self.error(&what, word),
            Err(error) => error,
        }
    }

    /// Nothing may follow.
    pub(crate) fn end(&mut self) -> Result<(), ParseError> {
        let next = self.rest.next();
        next.map_or(Ok(()), |word| Err(self.error("the end of the line", word)))
    }

    fn error(&self, what: &str, found: &str) -> ParseError {
        ParseError::unexpected(what, found, self.line)
    }
}

fn parse_member(word: &str) -> Option<u8> {
    word.parse().ok().filter(|number| *number < 16)
}

/// `open, compact or close`.
fn any_of<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => names.concat(),
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
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        self.write(f)
    }
}

/// How a part of a fault is written.
pub(super) trait Written {
    fn written(&self) -> impl Display;
}

macro_rules! written {
    ($($type:ty: |$part:ident| $written:expr;)+) => {$(
        impl Written for $type {
            fn written(&self) -> impl Display {
                let $part = *self;
                $written
            }
        }
    )+};
}

written! {
    u8: |number| number;
    u16: |number| number;
    i32: |ppm| format!("{ppm:+}ppm");
    i64: |ms| format!("{ms:+}ms");
    Duration: |time| Span(time);
    Who: |who| who;
    Links: |links| links;
    Way: |way| way;
    Crash: |how| how;
    Phase: |phase| phase;
    Refusal: |refusal| refusal;
    DiskFault: |disk| match disk {
        DiskFault::Slow(time) => format!("slow {}", Span(time)),
        disk => disk.name().to_owned(),
    };
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

const JUMP_MS_MAX: u64 = 365 * 24 * 3_600_000;
