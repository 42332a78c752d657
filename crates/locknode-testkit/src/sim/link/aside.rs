//! Connections whose replies nobody looks at: requests that come twice, and what clients ask beside their locks.

use locknode_resp::encode_command;

use super::{LINES, NO_MESSAGE};
use crate::fault::Who;
use crate::sim::world::World;

impl World {
    /// Sends by a connection of which nobody reads the replies.
    pub(super) fn send_shadow(&mut self, client: u8, node: u8, place: usize, bytes: Vec<u8>) {
        let shadow = self.links[client][node].shadows[place];
        let is_usable = |conn: &u32| self.conns[*conn].end.is_some();
        let conn = match shadow.filter(is_usable) {
            Some(conn) => conn,
            None => {
                let Some(session) = self.nodes[node].connect(self.now) else {
                    return;
                };
                let conn = self.new_conn(client, node, true);
                self.new_end(conn, session);
                self.conns[conn].is_aside = place > 0;
                self.links[client][node].shadows[place] = Some(conn);
                conn
            }
        };
        self.send(conn, true, NO_MESSAGE, bytes);
    }

    /// Another thread of a client asks a node something, by one of its own connections.
    pub(crate) fn ask_aside(&mut self, client: u8, node: u8, line: u8, words: &str) {
        if !self.has(Who::Node(node)) {
            return;
        }
        let mut bytes = Vec::new();
        for request in words.split(" ; ") {
            let words: Vec<&[u8]> = request
                .split_ascii_whitespace()
                .map(str::as_bytes)
                .collect();
            encode_command(&mut bytes, &words);
        }
        self.recorder.counters.bump("asked-aside");
        self.send_shadow(client, node, 1 + usize::from(line) % LINES, bytes);
    }
}
