//! Reads the commands `FAULT ...`, which people type into any Redis client, as faults. Pure: words in, faults out.
//!
//! The words are those of scenario files, with less to type: without a node the fault strikes the one that receives the
//! command, without a client it strikes all of them, and `FOR 5s` at the end undoes it after that.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use locknode_testkit::{Fault, Form, Members, parse_span};

/// What a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FaultCommand {
    Help,
    Status,
    /// All nodes that are down start.
    RestartAll,
    /// These faults, and after a time others, which undo them.
    Faults(Vec<Fault>, Option<(Duration, Vec<Fault>)>),
}

/// Which node received the command, and who else there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) node: u8,
    /// How many nodes there are.
    pub(super) nodes: u8,
    /// The ports of the nodes, which name them as their numbers do: for each client those of all nodes, in order.
    pub(super) ports: &'a [u16],
    /// How many clients have links of their own.
    pub(super) clients: u8,
}

/// The words of a command, sorted.
#[derive(Debug, Default)]
struct Words {
    verb: String,
    nodes: Option<String>,
    clients: Option<String>,
    lasts: Option<Duration>,
    way: Option<String>,
    count: Option<String>,
    /// The other words, in order.
    rest: VecDeque<String>,
}

impl FaultCommand {
    /// Reads the words that follow `FAULT`.
    ///
    /// # Errors
    ///
    /// What was expected instead.
    pub(super) fn read(words: &[String], asked: Asked<'_>) -> Result<Self, String> {
        if words.len() > WORDS_MAX || words.iter().any(|word| word.len() > WORD_LEN_MAX) {
            return Err(format!(
                "expected at most {WORDS_MAX} words of {WORD_LEN_MAX} letters"
            ));
        }
        let mut words = Words::sort(words, asked)?;
        let order = match &*words.verb {
            "help" => Self::Help,
            "status" => Self::Status,
            "restart" if words.nodes.is_none() => Self::RestartAll,
            _ => {
                let faults = words.faults(asked)?;
                let lasts = words.lasts.take();
                let undone = || {
                    faults
                        .iter()
                        .map(Fault::undo)
                        .collect::<Option<Vec<Fault>>>()
                };
                let later = match lasts {
                    None => None,
                    Some(lasts) => Some((lasts, undone().ok_or_else(|| no_undo(&words.verb))?)),
                };
                Self::Faults(faults, later)
            }
        };
        words.nothing_is_left()?;
        Ok(order)
    }
}

impl Words {
    fn sort(words: &[String], asked: Asked<'_>) -> Result<Self, String> {
        let mut sorted = Self::default();
        let mut words = words.iter().map(|word| word.to_ascii_lowercase());
        sorted.verb = words.next().unwrap_or_else(|| "help".to_owned());
        if sorted.verb == "clock" {
            const WHAT: &str = "RATE, SLEW, NOISE or JUMP after CLOCK";
            let word = words.next().ok_or_else(|| format!("expected {WHAT}"))?;
            sorted.verb = format!("clock {word}");
            if ALIASES.iter().all(|(alias, _)| *alias != sorted.verb) {
                return Err(format!("expected {WHAT}, found `{word}`"));
            }
        }
        while let Some(word) = words.next() {
            let mut after = |what: &str| {
                let found = words.next();
                found.ok_or_else(|| format!("expected {what} after {}", word.to_uppercase()))
            };
            match &*word {
                "node" | "nodes" => {
                    sorted.nodes = Some(numbers(&after("the number of a node")?, asked));
                }
                "client" | "clients" => {
                    sorted.clients = Some(after("the number of a client")?);
                }
                "for" => {
                    let span = after("a time such as 5s")?;
                    let lasts = parse_span(&span).filter(|span| *span <= LASTS_MAX);
                    sorted.lasts = Some(lasts.ok_or_else(|| {
                        format!("expected a time such as 5s, an hour at most, found `{span}`")
                    })?);
                }
                "requests" | "replies" | "both" if sorted.way.is_none() => sorted.way = Some(word),
                _ if sorted.count.is_none() && word.bytes().all(|byte| byte.is_ascii_digit()) => {
                    sorted.count = Some(word);
                }
                _ => sorted.rest.push_back(word),
            }
        }
        Ok(sorted)
    }

    fn faults(&mut self, asked: Asked<'_>) -> Result<Vec<Fault>, String> {
        let verb = match ALIASES.iter().find(|(alias, _)| *alias == self.verb) {
            Some((_, verb)) => (*verb).to_owned(),
            None => self.verb.clone(),
        };
        let forms = || Fault::FORMS.iter().filter(|form| first(form) == verb);
        let Some(form) = forms().next() else {
            return Err(format!("expected {}, found `{verb}`", verbs()));
        };
        match form.parts.first() {
            None => Ok(vec![parse(&verb)?]),
            Some(&"links") => {
                let line = self.of_links(&verb, asked);
                Ok(vec![parse(&format!("{line}{}", self.tail(form)))?])
            }
            Some(_) => {
                let (kind, members) = self.members(&verb, asked)?;
                let form = forms()
                    .find(|form| form.name.ends_with(kind))
                    .unwrap_or(form);
                let tail = self.tail(form);
                let of = |member| parse(&format!("{verb} {kind} {member}{tail}"));
                members.iter().map(of).collect()
            }
        }
    }

    /// The links of a fault, as a scenario writes them.
    fn of_links(&mut self, verb: &str, asked: Asked<'_>) -> String {
        let is_repair = matches!(verb, "heal" | "release");
        let is_everywhere = is_repair && self.nodes.is_none() && self.clients.is_none();
        let clients = self.clients.take().unwrap_or_else(|| "all".to_owned());
        let nodes = self.nodes.take().unwrap_or_else(|| match is_everywhere {
            true => "all".to_owned(),
            false => asked.node.to_string(),
        });
        format!("{verb} client {clients} node {nodes}")
    }

    /// What follows in a scenario, with defaults for what is left out.
    fn tail(&mut self, form: &Form) -> String {
        let mut tail = String::new();
        for part in form.parts.iter().skip(1) {
            let word = match *part {
                "way" => Some(self.way.take().unwrap_or("both".to_owned())),
                "count" => Some(self.count.take().unwrap_or("1".to_owned())),
                "after" => self.count.take(),
                "how" if self.rest.is_empty() => Some("kill".to_owned()),
                "disk" => Some(Vec::from(mem::take(&mut self.rest)).join(" ")),
                "jump" => self.rest.pop_front().map(|word| jump(&word)),
                _ => self.rest.pop_front(),
            };
            if let Some(word) = word {
                tail.push(' ');
                tail.push_str(&word);
            }
        }
        tail
    }

    /// The nodes or the clients that a fault strikes.
    fn members(&mut self, verb: &str, asked: Asked<'_>) -> Result<(&'static str, Members), String> {
        let (kind, members) = match (self.clients.take(), self.nodes.take()) {
            (Some(clients), None) => ("client", clients),
            (None, Some(nodes)) => ("node", nodes),
            (None, None) => ("node", asked.node.to_string()),
            (Some(_), Some(_)) => {
                return Err(format!(
                    "expected either NODE or CLIENT with {}",
                    verb.to_uppercase()
                ));
            }
        };
        // All are those that exist, and not all that could.
        if members == "all" {
            let count = if kind == "client" {
                asked.clients
            } else {
                asked.nodes
            };
            return Ok((kind, (0..count).collect()));
        }
        // The list is read as scenarios are read, by way of a fault that takes one.
        let probe = parse(&format!("heal client {members} node all"))?;
        let members = probe.links().map_or(Members::NONE, |links| links.clients);
        Ok((kind, members))
    }

    fn nothing_is_left(self) -> Result<(), String> {
        let lasts = self.lasts.map(|_| "for".to_owned());
        let rest = self.rest.into_iter().next();
        let left = [self.way, self.count, self.nodes, self.clients, lasts, rest];
        match left.into_iter().flatten().next() {
            None => Ok(()),
            Some(word) => Err(format!(
                "expected nothing more after {}, found `{word}`",
                self.verb.to_uppercase()
            )),
        }
    }
}

/// The reply to `FAULT HELP`.
pub(super) fn help() -> Vec<String> {
    let mut lines = Vec::from(HELP.map(str::to_owned));
    for form in here() {
        let verb = first(form);
        let alias = ALIASES.iter().find(|(_, name)| *name == verb);
        let alias = alias.map_or_else(String::new, |(alias, _)| format!(", or {alias}"));
        let parts = form.parts.iter().filter_map(|part| {
            Some(match *part {
                "node" | "who" | "links" => return None,
                "client" => "CLIENT n".to_owned(),
                "way" => "[requests|replies|both]".to_owned(),
                "count" => "[count]".to_owned(),
                "how" => "[kill|clean-stop|disk-lost|rollback|moved]".to_owned(),
                "jump" => "time".to_owned(),
                "refusal" => "readonly|oom|misconf|noreplicas|busy".to_owned(),
                part => part.to_owned(),
            })
        });
        let words: Vec<String> = [format!("{verb}{alias}").to_uppercase()]
            .into_iter()
            .chain(parts)
            .collect();
        lines.push(words.join(" "));
        lines.push(format!("    {}", form.what));
    }
    lines
}

const HELP: [&str; 9] = [
    "FAULT <what> [NODE n,n|ALL] [CLIENT n,n|ALL] [FOR time] injects a fault into this cluster.",
    "Without NODE the fault strikes the node that receives the command; without CLIENT it strikes all clients.",
    "Nodes are numbered from 0, and can be named by their ports. Any running node takes faults for the others:",
    "FAULT RESTART NODE 7103. Write times as 30ms, 2s, 1m. FOR undoes the fault after this time: FAULT CRASH FOR 5s.",
    "Examples: FAULT DROP REPLIES 2, FAULT DELAY 30ms FOR 10s, FAULT CLOCK RATE +20000ppm, FAULT CLOCK JUMP -1h.",
    "RESTART without NODE starts all nodes that are down; HEAL and RELEASE without NODE and CLIENT repair all links.",
    "STATUS",
    "    Shows the nodes and the latest faults.",
    "The faults:",
];

/// Other names of faults.
const ALIASES: [(&str, &str); 5] = [
    ("partition", "cut"),
    ("clock rate", "rate"),
    ("clock slew", "slew"),
    ("clock noise", "noise"),
    ("clock jump", "wall"),
];

/// The faults of real nodes.
fn here() -> impl Iterator<Item = &'static Form> {
    Fault::FORMS
        .iter()
        .filter(|form| form.why_simulated.is_none())
}

/// The verb of a fault.
fn first(form: &Form) -> &'static str {
    form.name.split(' ').next().unwrap_or(form.name)
}

/// What may follow `FAULT`.
fn verbs() -> String {
    let mut verbs: Vec<String> = here().map(|form| first(form).to_uppercase()).collect();
    verbs.dedup();
    format!("{}, CLOCK, PARTITION, STATUS or HELP", verbs.join(", "))
}

/// `0,2,7103` with ports as numbers of nodes.
fn numbers(list: &str, asked: Asked<'_>) -> String {
    let number = |part: &str| {
        let port = part.parse::<u16>().ok();
        let place = port.and_then(|port| asked.ports.iter().position(|known| *known == port));
        let node = place.and_then(|place| place.checked_rem(usize::from(asked.nodes)));
        node.map_or_else(|| part.to_owned(), |node| node.to_string())
    };
    list.split(',').map(number).collect::<Vec<_>>().join(",")
}

/// `+1h` as scenarios write it: `+3600000ms`. Anything else is refused later, with what was expected.
fn jump(word: &str) -> String {
    let (sign, span) = match word.strip_prefix('-') {
        Some(span) => ('-', span),
        None => ('+', word.strip_prefix('+').unwrap_or(word)),
    };
    match parse_span(span) {
        Some(span) => format!("{sign}{}ms", span.as_millis()),
        None => word.to_owned(),
    }
}

fn parse(line: &str) -> Result<Fault, String> {
    Fault::parse(line.trim_end()).map_err(|error| error.to_string())
}

fn no_undo(verb: &str) -> String {
    format!(
        "FOR needs a fault that can be undone, such as CRASH, CUT, DELAY, HOLD or CLOCK RATE; {} cannot",
        verb.to_uppercase()
    )
}

/// Twice as many as the longest command has.
const WORDS_MAX: usize = 16;

/// A list of all nodes, by their ports.
const WORD_LEN_MAX: usize = 96;

/// Longer than anybody watches a lab.
const LASTS_MAX: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use locknode_testkit::{Crash, Links, Refusal, Way, Who};

    use super::*;

    fn read(line: &str) -> Result<FaultCommand, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let ports = [7101, 7102, 7103, 7201, 7202, 7203];
        FaultCommand::read(
            &words,
            Asked {
                node: 1,
                nodes: 3,
                ports: &ports,
                clients: 2,
            },
        )
    }

    #[test]
    fn short_commands_strike_the_node_that_receives_them() {
        let here = Links::between(Members::ALL, 1);
        let s = Duration::from_secs;
        for (line, want) in [
            ("CRASH", vec![Fault::Crash(1, Crash::Kill)]),
            ("crash clean-stop", vec![Fault::Crash(1, Crash::CleanStop)]),
            (
                "crash node 0,2",
                vec![Fault::Crash(0, Crash::Kill), Fault::Crash(2, Crash::Kill)],
            ),
            ("CRASH NODE 7103", vec![Fault::Crash(2, Crash::Kill)]),
            // By the ports of the second client.
            ("CRASH NODE 7203", vec![Fault::Crash(2, Crash::Kill)]),
            (
                "restart node all",
                vec![Fault::Restart(0), Fault::Restart(1), Fault::Restart(2)],
            ),
            (
                "pause client all 2s",
                vec![
                    Fault::Pause(Who::Client(0), s(2)),
                    Fault::Pause(Who::Client(1), s(2)),
                ],
            ),
            ("PARTITION", vec![Fault::Cut(here, Way::Both)]),
            ("cut replies", vec![Fault::Cut(here, Way::Replies)]),
            (
                "cut client 2 node 0,1 requests",
                vec![Fault::Cut(Links::between(2, [0, 1]), Way::Requests)],
            ),
            ("HEAL", vec![Fault::Heal(Links::ALL)]),
            (
                "heal node 2",
                vec![Fault::Heal(Links::between(Members::ALL, 2))],
            ),
            ("DROP REPLIES 2", vec![Fault::Drop(here, Way::Replies, 2)]),
            ("drop requests", vec![Fault::Drop(here, Way::Requests, 1)]),
            ("DELAY 30ms", vec![Fault::Delay(here, s(30) / 1000)]),
            (
                "late replies 3 2s",
                vec![Fault::Late(here, Way::Replies, 3, s(2))],
            ),
            ("hold", vec![Fault::Hold(here, Way::Both)]),
            ("release", vec![Fault::Release(Links::ALL, Way::Both)]),
            ("duplicate", vec![Fault::Duplicate(here, 1)]),
            ("refuse oom 2", vec![Fault::Refuse(here, Refusal::Oom, 2)]),
            ("reset", vec![Fault::Reset(here)]),
            ("PAUSE 2s", vec![Fault::Pause(Who::Node(1), s(2))]),
            ("CLOCK RATE +5000ppm", vec![Fault::Rate(Who::Node(1), 5000)]),
            (
                "clock rate client 0 -100ppm",
                vec![Fault::Rate(Who::Client(0), -100)],
            ),
            (
                "clock jump -1h",
                vec![Fault::WallJump(Who::Node(1), -3_600_000)],
            ),
            ("clock jump 500ms", vec![Fault::WallJump(Who::Node(1), 500)]),
            ("max-ttl 10s", vec![Fault::MaxTtl(1, s(10))]),
            ("calm", vec![Fault::Calm]),
        ] {
            assert_eq!(read(line), Ok(FaultCommand::Faults(want, None)), "{line}");
        }
        assert_eq!(read("RESTART"), Ok(FaultCommand::RestartAll));
        assert_eq!(read("status"), Ok(FaultCommand::Status));
        assert_eq!(read("HELP"), Ok(FaultCommand::Help));
        assert_eq!(
            FaultCommand::read(
                &[],
                Asked {
                    node: 0,
                    nodes: 1,
                    ports: &[7101],
                    clients: 1,
                }
            ),
            Ok(FaultCommand::Help)
        );
    }

    #[test]
    fn a_fault_can_be_undone_after_a_time() {
        let s = Duration::from_secs;
        let here = Links::between(Members::ALL, 1);
        for (line, fault, undone) in [
            (
                "crash for 5s",
                Fault::Crash(1, Crash::Kill),
                Fault::Restart(1),
            ),
            ("cut for 5s", Fault::Cut(here, Way::Both), Fault::Heal(here)),
            (
                "delay 30ms for 5s",
                Fault::Delay(here, Duration::from_millis(30)),
                Fault::Delay(here, Duration::ZERO),
            ),
        ] {
            let want = FaultCommand::Faults(vec![fault], Some((s(5), vec![undone])));
            assert_eq!(read(line), Ok(want), "{line}");
        }
    }

    #[test]
    fn an_error_says_what_was_expected() {
        for (line, expected) in [
            ("explode", "expected CRASH, RESTART"),
            ("crash node", "expected the number of a node after NODE"),
            ("crash node 99", "expected numbers from 0 to 15"),
            ("crash node x", "expected numbers from 0 to 15"),
            ("crash softly", "expected kill, power-loss"),
            (
                "crash kill kill",
                "expected nothing more after CRASH, found `kill`",
            ),
            ("crash node 1 client 1", "expected either NODE or CLIENT"),
            ("drop sometimes", "expected nothing more after DROP"),
            ("drop replies 999", "expected how many"),
            (
                "drop replies 2 3",
                "expected nothing more after DROP, found `3`",
            ),
            ("delay", "expected a time such as"),
            ("delay 30", "expected a time such as"),
            ("pause", "expected a time such as"),
            ("pause 2s for 3s", "FOR needs a fault that can be undone"),
            ("cut for soon", "expected a time such as 5s"),
            ("cut for 2h", "an hour at most"),
            ("clock", "expected RATE, SLEW, NOISE or JUMP"),
            ("clock backwards", "expected RATE, SLEW, NOISE or JUMP"),
            ("clock rate 5", "expected a rate such as"),
            ("clock jump soon", "expected milliseconds such as"),
            ("status replies", "expected nothing more after STATUS"),
            ("restart for 5s", "expected nothing more after RESTART"),
            ("a b c d e f g h i j k l m n o p q", "at most 16 words"),
        ] {
            match read(line) {
                Err(error) => assert!(error.contains(expected), "{line}: {error}"),
                Ok(order) => panic!("{line}: {order:?}"),
            }
        }
    }

    #[test]
    fn help_fits_on_a_screen() {
        let help = help();
        assert!(help.iter().all(|line| line.len() <= 120 && line.is_ascii()));
        assert!(help.len() <= 64, "{help:?}");
    }
}
