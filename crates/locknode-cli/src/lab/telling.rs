//! Faults in a sentence, for people who have not read what the words mean.

use std::time::Duration;

use locknode_testkit::{Crash, Fault, Links, Members, Span, Way};

/// What a fault does, as it happens. `nodes` and `clients` are how many there are.
pub(super) fn tell(fault: &Fault, nodes: u8, clients: u8) -> String {
    let of = |links: &Links| Ends::of(links, nodes, clients);
    match fault {
        Fault::Crash(node, Crash::Kill) => format!("node {node} is killed"),
        Fault::Crash(node, Crash::CleanStop) => format!("node {node} is stopped in order"),
        Fault::Crash(node, Crash::DiskLost) => {
            format!("node {node} is killed and its disk is lost")
        }
        Fault::Crash(node, how) => format!("node {node} is killed ({})", how.name()),
        Fault::Restart(node) => format!("node {node} starts again"),
        Fault::CrashClient(client) => format!("client {client} dies and releases nothing"),
        Fault::Pause(who, span) => format!("{who} stands still for {}", Span(*span)),
        Fault::Cut(links, Way::Both) => format!("cut: {}", of(links).between()),
        Fault::Cut(links, Way::Requests) => format!("cut: requests {}", of(links).forth()),
        Fault::Cut(links, Way::Replies) => format!("cut: replies {}", of(links).back()),
        Fault::Heal(links) if *links == Links::ALL => "healed: every link".to_owned(),
        Fault::Heal(links) => format!("healed: {}", of(links).between()),
        Fault::Delay(links, Duration::ZERO) => {
            format!("on time again: messages {}", of(links).between())
        }
        Fault::Delay(links, span) => {
            format!("{} later: messages {}", Span(*span), of(links).between())
        }
        Fault::Drop(links, way, count) => {
            let (what, ends) = match way {
                Way::Requests => ("request", of(links).forth()),
                Way::Replies => ("reply", of(links).back()),
                Way::Both => ("message", of(links).between()),
            };
            format!("lost: the next {} {ends}", counted(*count, what))
        }
        Fault::Reset(links) => format!("broken: connections {}", of(links).between()),
        Fault::Rate(who, 0) => format!("the clock of {who} runs right again"),
        Fault::Rate(who, ppm) if *ppm > 0 => {
            format!("the clock of {who} runs {} too fast", percent(*ppm))
        }
        Fault::Rate(who, ppm) => format!("the clock of {who} runs {} too slow", percent(*ppm)),
        Fault::WallJump(who, by_ms) => {
            let span = Span(Duration::from_millis(by_ms.unsigned_abs()));
            let way = if *by_ms < 0 { "back" } else { "ahead" };
            format!("the calendar of {who} is set {way} by {span}")
        }
        Fault::Calm => "everything is put right, and nodes that are down start".to_owned(),
        fault => fault.to_string(),
    }
}

/// The ends of links, in words.
struct Ends {
    clients: String,
    nodes: String,
}

impl Ends {
    fn of(links: &Links, nodes: u8, clients: u8) -> Self {
        Self {
            clients: named(links.clients, clients, "client"),
            nodes: named(links.nodes, nodes, "node"),
        }
    }

    fn between(&self) -> String {
        format!("between {} and {}", self.clients, self.nodes)
    }

    fn forth(&self) -> String {
        format!("from {} to {}", self.clients, self.nodes)
    }

    fn back(&self) -> String {
        format!("from {} to {}", self.nodes, self.clients)
    }
}

/// `node 1`, `clients 0,2`, `every node`.
fn named(members: Members, of: u8, what: &str) -> String {
    let numbers: Vec<String> = members
        .iter()
        .filter(|member| *member < of)
        .map(|member| member.to_string())
        .collect();
    match numbers.len() {
        1 => format!("{what} {}", numbers.concat()),
        len if len == usize::from(of) => format!("every {what}"),
        _ => format!("{what}s {}", numbers.join(",")),
    }
}

/// `1 reply`, `2 replies`.
pub(super) fn counted(count: impl Into<u64>, what: &str) -> String {
    let count = count.into();
    match (count, what.strip_suffix("ly")) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}lies"),
        (_, None) => format!("{count} {what}s"),
    }
}

/// Millionths as hundredths.
fn percent(ppm: i32) -> String {
    let ppm = ppm.unsigned_abs();
    format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_sentences() {
        for (fault, want) in [
            ("crash node 2 kill", "node 2 is killed"),
            ("crash node 2 moved", "node 2 is killed (moved)"),
            ("restart node 2", "node 2 starts again"),
            ("pause client 1 300ms", "client 1 stands still for 300ms"),
            (
                "cut client 0,2 node 1 both",
                "cut: between clients 0,2 and node 1",
            ),
            (
                "cut client all node 1,3 replies",
                "cut: replies from nodes 1,3 to every client",
            ),
            ("heal client all node all", "healed: every link"),
            (
                "delay client all node 0 80ms",
                "80ms later: messages between every client and node 0",
            ),
            (
                "drop client 1 node 0 replies 2",
                "lost: the next 2 replies from node 0 to client 1",
            ),
            (
                "drop client all node 0 requests 1",
                "lost: the next 1 request from every client to node 0",
            ),
            (
                "rate node 1 -4000ppm",
                "the clock of node 1 runs 0.40 % too slow",
            ),
            (
                "wall node 1 -3600000ms",
                "the calendar of node 1 is set back by 3600s",
            ),
            ("hold client 0 node 1 both", "hold client 0 node 1 both"),
        ] {
            let fault = Fault::parse(fault).unwrap();
            assert_eq!(tell(&fault, 5, 3), want);
        }
    }
}
