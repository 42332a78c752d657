//! What INFO says about a server, be it locknode, Redis or Valkey.

use std::collections::HashMap;

use locknode_resp::Reply;

use crate::server_connection::{ServerConnection, printable};

/// The fields of INFO.
#[derive(Clone, Debug)]
pub(crate) struct ServerInfo {
    fields: HashMap<String, String>,
}

impl ServerInfo {
    /// Asks a server.
    ///
    /// # Errors
    ///
    /// A reason for a person.
    pub(crate) fn ask(connection: &mut ServerConnection) -> Result<Self, String> {
        match connection.call(&[b"INFO"])? {
            Reply::Bulk(text) => Ok(Self::parse(&text)),
            Reply::Error(error) if error.starts_with(b"NOAUTH") => {
                Err("it wants a password: write redis://:password@host:port".to_owned())
            }
            // A server that is no Redis at heart may not have INFO; it is then an unknown one.
            Reply::Error(error) if error.starts_with(b"ERR unknown command") => {
                Ok(Self::parse(b""))
            }
            Reply::Error(error) => Err(format!("it does not answer INFO: {}", printable(&error))),
            _ => Err("it does not answer INFO".to_owned()),
        }
    }

    pub(crate) fn parse(text: &[u8]) -> Self {
        let lines = text.split(|byte| *byte == b'\n');
        let fields = lines.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let value = line[colon + 1..].trim_ascii();
            Some((printable(&line[..colon]), printable(value)))
        });
        Self {
            fields: fields.collect(),
        }
    }

    /// The server's name and version. Servers other than Redis name a Redis version too, so theirs are looked for
    /// first.
    pub(crate) fn server(&self) -> (&str, &str) {
        for (field, name) in SERVERS {
            if let Some(version) = self.text(field) {
                return (name, version);
            }
        }
        ("unknown", "")
    }

    /// A field as it is.
    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).map(String::as_str)
    }

    /// How long a lock node stays in its restart quarantine, in seconds, rounded up; `None` when it is in none.
    pub(crate) fn quarantine_seconds(&self) -> Option<u64> {
        if self.text("restart_state") != Some("quarantine") {
            return None;
        }
        let left_ms: u64 = self.text("restart_left_ms")?.parse().ok()?;
        Some(left_ms.div_ceil(1000))
    }

    /// A field that is a number; zero when it is missing.
    pub(crate) fn number(&self, field: &str) -> u64 {
        let number = self.text(field).and_then(|number| number.parse().ok());
        number.unwrap_or(0)
    }

    /// Keys in all databases.
    pub(crate) fn keys(&self) -> u64 {
        let keys = self.fields.iter().filter_map(|(field, value)| {
            let _database: u32 = field.strip_prefix("db")?.parse().ok()?;
            let mut parts = value.split(',');
            let keys = parts.find_map(|part| part.strip_prefix("keys="))?;
            keys.parse::<u64>().ok()
        });
        keys.fold(0, u64::saturating_add)
    }
}

const SERVERS: &[(&str, &str)] = &[
    ("locknode_version", "locknode"),
    ("valkey_version", "Valkey"),
    ("dragonfly_version", "Dragonfly"),
    ("redis_version", "Redis"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_apart() {
        for (text, expected) in [
            ("# Server\r\nredis_version:7.0.15\r\n", ("Redis", "7.0.15")),
            (
                "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n",
                ("Valkey", "9.1.2"),
            ),
            (
                "redis_version:8.4.0\r\nlocknode_version:0.1.0\r\n",
                ("locknode", "0.1.0"),
            ),
            ("nonsense", ("unknown", "")),
        ] {
            assert_eq!(
                ServerInfo::parse(text.as_bytes()).server(),
                expected,
                "{text}"
            );
        }
    }

    /// `[G2]`
    #[test]
    fn a_quarantine_is_shown_in_whole_seconds() {
        for (text, expected) in [
            (
                "restart_state:quarantine\r\nrestart_left_ms:22001\r\n",
                Some(23),
            ),
            ("restart_state:quarantine\r\nrestart_left_ms:1\r\n", Some(1)),
            ("restart_state:serving\r\nrestart_left_ms:0\r\n", None),
            ("restart_state:quarantine\r\n", None),
            ("redis_version:7.0.15\r\n", None),
        ] {
            let info = ServerInfo::parse(text.as_bytes());
            assert_eq!(info.quarantine_seconds(), expected, "{text}");
        }
    }

    #[test]
    fn keys_of_all_databases_are_added() {
        let info =
            ServerInfo::parse(b"db0:keys=5,expires=1\r\ndb11:keys=7,expires=0\r\ndbx:keys=9\r\n");
        assert_eq!(info.keys(), 12);
        assert_eq!(info.number("missing"), 0);
    }
}
