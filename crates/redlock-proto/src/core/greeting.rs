//! The first requests on a connection: log in, select the database, identify the server.

use locknode_resp::{Reply, encode_command};

use crate::cause::Cause;
use crate::core::answers::Heard;
use crate::core::dialect::Dialect;

/// Credentials and database of a node.
#[derive(Clone, PartialEq, Eq, Default)]
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

impl GreetingStep {
    /// Appends the whole greeting to `out`. Returns the steps in the order of their replies; the last is
    /// always `Info`.
    pub(crate) fn write_all(out: &mut Vec<u8>, login: &Login) -> Vec<Self> {
        let mut steps = Vec::with_capacity(5);
        let mut ask = |step, command: &[&[u8]]| {
            encode_command(out, command);
            steps.push(step);
        };
        let username = login.username.as_ref().map(|user| user.as_bytes());
        let password = login.password.as_ref().map(|password| password.as_bytes());
        match (username, password) {
            (Some(username), Some(password)) => ask(Self::Auth, &[b"AUTH", username, password]),
            (None, Some(password)) => ask(Self::Auth, &[b"AUTH", password]),
            (_, None) => {}
        }
        if login.database != 0 {
            let database = login.database.to_string();
            ask(Self::Select, &[b"SELECT", database.as_bytes()]);
        }
        let name: [&[u8]; 4] = [b"CLIENT", b"SETINFO", b"LIB-NAME", b"redlock-client"];
        ask(Self::LibName, &name);
        ask(Self::Commands, &COMMANDS);
        ask(Self::Info, &[b"INFO", b"server"]);
        steps
    }

    /// Takes the reply to this step, which may show the node's dialect. Returns the server after the last one.
    pub(crate) fn hear(
        self,
        heard: Heard,
        dialect: &mut Dialect,
    ) -> Result<Option<ServerInfo>, Cause> {
        match (self, heard) {
            (Self::Auth | Self::Select, Heard::Ok) => Ok(None),
            (Self::Auth, other) => Err(other.cause("AUTH")),
            (Self::Select, other) => Err(other.cause("SELECT")),
            // Servers before 7.2 do not know it, and it is for people only.
            (Self::LibName, _) => Ok(None),
            (Self::Commands, heard) => {
                *dialect = dialect_of(&heard);
                Ok(None)
            }
            (Self::Info, Heard::Other(Reply::Bulk(text) | Reply::Verbatim { text, .. })) => {
                Ok(Some(server(&String::from_utf8_lossy(&text), *dialect)))
            }
            // Not to be allowed to look at INFO is no reason not to lock; to be let in at all is one.
            (Self::Info, Heard::Other(Reply::Error(text)))
                if !text.starts_with(b"NOAUTH") && !text.starts_with(b"WRONGPASS") =>
            {
                Ok(Some(server("", *dialect)))
            }
            (Self::Info, other) => Err(other.cause("INFO")),
        }
    }
}

/// What the text of `INFO` says of the server.
fn server(info: &str, dialect: Dialect) -> ServerInfo {
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
        ..ServerInfo::new(name, version, dialect)
    }
}

/// `COMMAND INFO` answers with one entry per name, null for those that the server does not have.
fn dialect_of(heard: &Heard) -> Dialect {
    let Heard::Other(Reply::Array(entries)) = heard else {
        return Dialect::Script;
    };
    let has = |i: usize| matches!(entries.get(i), Some(Reply::Array(entry)) if !entry.is_empty());
    match [has(3), has(2), has(0), has(1)] {
        [true, true, ..] => Dialect::Lock,
        [_, true, ..] => Dialect::EarlyLock,
        [_, _, true, _] => Dialect::DelEx,
        [.., true] => Dialect::DelIfEq,
        _ => Dialect::Script,
    }
}

/// The question which commands a node has that tell its dialect.
const COMMANDS: [&[u8]; 6] = [
    b"COMMAND",
    b"INFO",
    b"DELEX",
    b"DELIFEQ",
    b"LOCK.ACQUIRE",
    b"LOCK.FORCE",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(delex: bool, delifeq: bool, lock: bool, force: bool) -> Heard {
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
            entry(force),
        ]))
    }

    #[test]
    fn the_dialect_is_what_the_node_has() {
        let error = Heard::Other(Reply::Error(b"NOPERM".to_vec()));
        let rows = [
            (commands(true, true, true, true), Dialect::Lock),
            (commands(false, false, true, true), Dialect::Lock),
            (commands(true, true, true, false), Dialect::EarlyLock),
            (commands(true, true, false, false), Dialect::DelEx),
            (commands(true, false, false, true), Dialect::DelEx),
            (commands(false, true, false, false), Dialect::DelIfEq),
            (commands(false, false, false, false), Dialect::Script),
            (error, Dialect::Script),
            (Heard::Null, Dialect::Script),
        ];
        for (heard, expected) in rows {
            let mut dialect = Dialect::Script;
            assert_eq!(GreetingStep::Commands.hear(heard, &mut dialect), Ok(None));
            assert_eq!(server("", dialect).dialect, expected);
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
            let server = server(info, Dialect::Script);
            assert_eq!((&*server.name, &*server.version), (name, version));
        }
        let id = |info| server(info, Dialect::Script).run_id;
        assert_eq!(id("run_id:ab\r\n").as_deref(), Some("ab"));
        assert_eq!(id("run_id:\r\n"), None);
    }

    #[test]
    fn to_be_refused_is_the_end_and_to_see_nothing_is_not() {
        let error = |text: &str| Heard::Other(Reply::Error(text.as_bytes().to_vec()));
        let hear = |step: GreetingStep, heard| step.hear(heard, &mut { Dialect::Script });
        for (step, heard) in [
            (GreetingStep::Auth, error("WRONGPASS x")),
            (GreetingStep::Select, error("ERR DB index")),
            (GreetingStep::Info, error("NOAUTH x")),
            (GreetingStep::Info, Heard::Integer(1)),
        ] {
            assert!(hear(step, heard.clone()).is_err(), "{step:?}: {heard:?}");
        }
        let server = hear(GreetingStep::Info, error("NOPERM x"));
        assert_eq!(server.unwrap().unwrap().run_id, None);
        let named = hear(GreetingStep::LibName, error("ERR unknown"));
        assert_eq!(named, Ok(None));
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
