//! Connections whose replies nobody looks at: requests that come twice, and what clients ask beside their locks.

use locknode_resp::encode_command;

use super::{LINES, NO_MESSAGE};
use crate::sim::world::World;

impl World {
    /// Sends by a connection of which nobody reads the replies.
    pub(super) fn send_shadow(&mut self, client: u8, node: u8, place: usize, bytes: Vec<u8>) {
        let Some(link) = self.link_mut(client, node) else {
            return;
        };
        let shadow = link.shadows.get(place).copied().flatten();
        let usable = shadow.filter(|conn| self.conn(*conn).is_some_and(|it| it.end.is_some()));
        let conn = match usable {
            Some(conn) => conn,
            None => {
                let now = self.now;
                let Some(at) = self.nodes.get_mut(usize::from(node)) else {
                    return;
                };
                let Some(session) = at.connect(now) else {
                    return;
                };
                let conn = self.new_conn(client, node, true);
                self.new_end(conn, node, session);
                if let Some(it) = self.conn_mut(conn) {
                    it.is_aside = place > 0;
                }
                let link = self.link_mut(client, node);
                if let Some(shadow) = link.and_then(|link| link.shadows.get_mut(place)) {
                    *shadow = Some(conn);
                }
                conn
            }
        };
        self.send(conn, true, NO_MESSAGE, bytes);
    }

    /// Another thread of a client asks a node something, by one of its own connections.
    pub(crate) fn ask_aside(&mut self, client: u8, node: u8, line: u8, words: &str) {
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
