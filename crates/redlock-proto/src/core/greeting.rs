//! The first requests on a connection: log in, select the database, identify the server.

use locknode_resp::{Reply, encode_command};

use crate::cause::Cause;
use crate::core::answers::Heard;
use crate::core::dialect::Dialect;

/// Credentials and database of a node.
#[derive(Clone, Default)]
pub struct Login {
    /// User name, if it is not the default user.
    pub username: Option<Box<str>>,
    /// Password, if the server requires one.
    pub password: Option<Box<str>>,
    /// Database number.
    pub database: u32,
}

/// Hides the password.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("username", &self.username)
            .field("password", &self.password.as_ref().map(|_| ".."))
            .field("database", &self.database)
            .finish()
    }
}

/// What a server reports about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ServerInfo {
    /// `locknode`, `redis`, `valkey`, or another name.
    pub name: String,
    /// Its version; empty if unknown.
    pub version: String,
    /// The unique id of this run of the server, if known.
    pub run_id: Option<String>,
    /// The commands that it has.
    pub dialect: Dialect,
}

impl ServerInfo {
    /// A server with this name, version and dialect, without a run id.
    pub fn new(name: impl Into<String>, version: impl Into<String>, dialect: Dialect) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            run_id: None,
            dialect,
        }
    }

    /// Whether the server counts its grants. A lock has a fencing token if a majority of the nodes does.
    pub fn has_fences(&self) -> bool {
        self.dialect.has_fences()
    }
}

/// The parts of the greeting, all sent at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GreetingStep {
    Auth,
    Select,
    LibName,
    Commands,
    Info,
}

/// A greeting under way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Greeting {
    dialect: Dialect,
}

impl Default for Greeting {
    fn default() -> Self {
        Self {
            dialect: Dialect::Script,
        }
    }
}

impl Greeting {
    /// Appends the whole greeting to `out`. Returns the steps in the order of their replies; the last is
    /// always `Info`.
    pub(crate) fn write(out: &mut Vec<u8>, login: &Login) -> Vec<GreetingStep> {
        let mut steps = Vec::with_capacity(5);
        if let Some(password) = &login.password {
            match &login.username {
                Some(user) => {
                    encode_command(out, &[b"AUTH", user.as_bytes(), password.as_bytes()]);
                }
                None => encode_command(out, &[b"AUTH", password.as_bytes()]),
            }
            steps.push(GreetingStep::Auth);
        }
        if login.database != 0 {
            encode_command(out, &[b"SELECT", login.database.to_string().as_bytes()]);
            steps.push(GreetingStep::Select);
        }
        encode_command(
            out,
            &[b"CLIENT", b"SETINFO", b"LIB-NAME", b"redlock-client"],
        );
        steps.push(GreetingStep::LibName);
        encode_command(
            out,
            &[b"COMMAND", b"INFO", b"DELEX", b"DELIFEQ", b"LOCK.ACQUIRE"],
        );
        steps.push(GreetingStep::Commands);
        encode_command(out, &[b"INFO", b"server"]);
        steps.push(GreetingStep::Info);
        steps
    }

    /// Takes the reply to one step. Returns the server after the last one.
    pub(crate) fn hear(
        &mut self,
        step: GreetingStep,
        heard: Heard,
    ) -> Result<Option<ServerInfo>, Cause> {
        match (step, heard) {
            (GreetingStep::Auth | GreetingStep::Select, Heard::Ok) => Ok(None),
            (GreetingStep::Auth, other) => Err(other.cause("AUTH")),
            (GreetingStep::Select, other) => Err(other.cause("SELECT")),
            // Servers before 7.2 do not know it, and it is for people only.
            (GreetingStep::LibName, _) => Ok(None),
            (GreetingStep::Commands, heard) => {
                self.dialect = dialect(&heard);
                Ok(None)
            }
            (
                GreetingStep::Info,
                Heard::Other(Reply::Bulk(text) | Reply::Verbatim { text, .. }),
            ) => Ok(Some(self.server(&String::from_utf8_lossy(&text)))),
            // Not to be allowed to look at INFO is no reason not to lock; to be let in at all is one.
            (GreetingStep::Info, Heard::Other(Reply::Error(text)))
                if !text.starts_with(b"NOAUTH") && !text.starts_with(b"WRONGPASS") =>
            {
                Ok(Some(self.server("")))
            }
            (GreetingStep::Info, other) => Err(other.cause("INFO")),
        }
    }

    fn server(&self, info: &str) -> ServerInfo {
        let field = |name: &str| {
            info.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(str::trim)
                .filter(|value| !value.is_empty())
                .map(str::to_owned)
        };
        let (name, version) = ["locknode", "valkey", "redis"]
            .into_iter()
            .find_map(|name| Some((name, field(&format!("{name}_version"))?)))
            .unwrap_or(("unknown", String::new()));
        ServerInfo {
            run_id: field("run_id"),
            ..ServerInfo::new(name, version, self.dialect)
        }
    }
}

/// `COMMAND INFO` answers with one entry per name, null for those that the server does not have.
fn dialect(heard: &Heard) -> Dialect {
    let Heard::Other(Reply::Array(entries)) = heard else {
        return Dialect::Script;
    };
    let has = |i: usize| matches!(entries.get(i), Some(Reply::Array(entry)) if !entry.is_empty());
    match (has(2), has(0), has(1)) {
        (true, ..) => Dialect::Lock,
        (_, true, _) => Dialect::DelEx,
        (_, _, true) => Dialect::DelIfEq,
        _ => Dialect::Script,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(delex: bool, delifeq: bool, lock: bool) -> Heard {
        let entry = |has| {
            if has {
                Reply::Array(vec![Reply::Bulk(b"x".to_vec())])
            } else {
                Reply::Null
            }
        };
        Heard::Other(Reply::Array(vec![
            entry(delex),
            entry(delifeq),
            entry(lock),
        ]))
    }

    #[test]
    fn the_dialect_is_what_the_node_has() {
        let error = Heard::Other(Reply::Error(b"NOPERM".to_vec()));
        let rows = [
            (commands(true, true, true), Dialect::Lock),
            (commands(false, false, true), Dialect::Lock),
            (commands(true, true, false), Dialect::DelEx),
            (commands(true, false, false), Dialect::DelEx),
            (commands(false, true, false), Dialect::DelIfEq),
            (commands(false, false, false), Dialect::Script),
            (error, Dialect::Script),
            (Heard::Null, Dialect::Script),
        ];
        for (heard, expected) in rows {
            let mut greeting = Greeting::default();
            assert_eq!(greeting.hear(GreetingStep::Commands, heard), Ok(None));
            assert_eq!(greeting.server("").dialect, expected);
        }
    }

    #[test]
    fn a_server_is_known_by_its_most_particular_version() {
        let rows = [
            ("redis_version:7.0.15\r\nrun_id:ab\r\n", "redis", "7.0.15"),
            (
                "redis_version:7.2.4\r\nvalkey_version:9.1.2\r\n",
                "valkey",
                "9.1.2",
            ),
            (
                "redis_version:8.4.0\r\nlocknode_version:0.1.0\r\n",
                "locknode",
                "0.1.0",
            ),
            ("nothing", "unknown", ""),
        ];
        for (info, name, version) in rows {
            let server = Greeting::default().server(info);
            assert_eq!((&*server.name, &*server.version), (name, version));
        }
        let id = |info| Greeting::default().server(info).run_id;
        assert_eq!(id("run_id:ab\r\n").as_deref(), Some("ab"));
        assert_eq!(id("run_id:\r\n"), None);
    }

    #[test]
    fn to_be_refused_is_the_end_and_to_see_nothing_is_not() {
        let error = |text: &str| Heard::Other(Reply::Error(text.as_bytes().to_vec()));
        let mut greeting = Greeting::default();
        assert!(
            greeting
                .hear(GreetingStep::Auth, error("WRONGPASS x"))
                .is_err()
        );
        assert!(
            greeting
                .hear(GreetingStep::Select, error("ERR DB index"))
                .is_err()
        );
        assert!(
            greeting
                .hear(GreetingStep::Info, error("NOAUTH x"))
                .is_err()
        );
        assert!(
            greeting
                .hear(GreetingStep::Info, Heard::Integer(1))
                .is_err()
        );
        let server = greeting
            .hear(GreetingStep::Info, error("NOPERM x"))
            .unwrap()
            .unwrap();
        assert_eq!(server.run_id, None);
        assert_eq!(
            greeting.hear(GreetingStep::LibName, error("ERR unknown")),
            Ok(None)
        );
    }

    #[test]
    fn a_login_does_not_show_its_password() {
        let login = Login {
            password: Some("secret".into()),
            ..Login::default()
        };
        assert!(!format!("{login:?}").contains("secret"));
    }
}
