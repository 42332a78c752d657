//! Who and what a fault is about, in words for people who have not read what its line means.

use crate::fault::{Links, Members, Way};

/// How many nodes and clients there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) nodes: u8,
    pub(super) clients: u8,
}

impl Ends {
    /// `between clients 0,2 and node 1`.
    pub(super) fn between(self, links: Links) -> String {
        let (clients, nodes) = self.named(links);
        format!("between {clients} and {nodes}")
    }

    /// `replies from node 1 to every client`, with the words for either way.
    pub(super) fn along(self, links: Links, way: Way, requests: &str, replies: &str) -> String {
        let (clients, nodes) = self.named(links);
        match way {
            Way::Requests => format!("{requests} from {clients} to {nodes}"),
            Way::Replies => format!("{replies} from {nodes} to {clients}"),
            Way::Both => format!("{requests} and {replies} between {clients} and {nodes}"),
        }
    }

    fn named(self, links: Links) -> (String, String) {
        (
            named(links.clients, self.clients, "client"),
            named(links.nodes, self.nodes, "node"),
        )
    }
}

/// `node 1`, `clients 0,2`, `every node`.
fn named(members: Members, of: u8, what: &str) -> String {
    let among: Members = members.iter().filter(|member| *member < of).collect();
    match among.iter().count() {
        1 => format!("{what} {among}"),
        count if count == usize::from(of) => format!("every {what}"),
        _ => format!("{what}s {among}"),
    }
}

/// Millionths as hundredths.
pub(super) fn percent(ppm: i32) -> String {
    let ppm = ppm.unsigned_abs();
    format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)
}
