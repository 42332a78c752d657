//! The options that a node obeys, under Redis's names where Redis has them: one table, one row each.
//!
//! ```text
//!              +--> a field of Options, and its default
//!  options! ---+--> CONFIG GET, CONFIG SET
//!      row     +--> a flag of `locknode serve`, its environment variable, its key in the file
//! ```
//!
//! The text of a row documents the field, and it is the flag's help.

use std::fmt;
use std::ops::RangeInclusive;

use locknode_resp::parse_integer;

use crate::byte_size;
#[cfg(feature = "compat")]
use crate::event_classes::EventClasses;
use crate::host::HostFacts;
use crate::log_level::LogLevel;
use crate::output_limit::OutputLimits;
#[cfg(feature = "tls")]
use crate::tls_clients::TlsClients;

/// A row is the text, the field with its default, the name, the kind with its range, and whether
/// CONFIG SET may change it.
macro_rules! options {
    ($(
        $(#[doc = $text:literal])+
        $(#[cfg(feature = $feature:literal)])?
        $field:ident: $type:ty = $default:expr, $name:literal $kind:ident($($range:expr)?) $change:ident;
    )+) => {
        /// The options as set at the start or by CONFIG SET. Sizes are in bytes, times in seconds.
        #[derive(Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Options {
            $($(#[doc = $text])+ $(#[cfg(feature = $feature)])? pub $field: $type,)+
        }

        impl Default for Options {
            fn default() -> Self {
                Self { $($(#[cfg(feature = $feature)])? $field: $default,)+ }
            }
        }

        impl Options {
            /// How each option is read and written.
            pub const TABLE: &[ConfigOption] = &[$($(#[cfg(feature = $feature)])? ConfigOption {
                name: $name,
                text: &[$($text),+],
                kind: Kind::$kind(
                    Place { read: |options| &options.$field, write: |options| &mut options.$field }
                    $(, $range)?
                ),
                change: Change::$change,
            }),+];
        }
    };
}

options! {
    /// Password that clients must give (AUTH); empty for none.
    ///
    /// Protects the locks from anyone who reaches the port. A flag is visible in the process list:
    /// the environment variable and the file keep it to this user.
    requirepass: String = String::new(), "requirepass" Text() Live;

    /// File with users and what each may do (ACL), in Redis's format; empty for none.
    ///
    /// Read at the start, by ACL LOAD, and written by ACL SAVE. With it, the password of those who
    /// log in without a name is in the file, too, not in requirepass.
    #[cfg(feature = "acl")]
    aclfile: String = String::new(), "aclfile" Text() AtStart;

    /// Without a password, serve only clients that connect by loopback or by the Unix socket.
    ///
    /// Loopback is 127.0.0.1 and ::1. A client on this machine that connects to another of its
    /// addresses is refused like one from elsewhere, as in Redis.
    protected_mode: bool = true, "protected-mode" Switch() Live;

    /// Most connections at a time; further ones get an error.
    ///
    /// Each needs a file descriptor: where the system allows fewer, the number is lowered and a
    /// warning says so.
    // As in Redis; zero would lock everybody out.
    maxclients: u64 = 10_000, "maxclients" Count(1..=u32::MAX as u64) Live;

    /// Most memory for locks, such as 100mb; 0 for no limit.
    ///
    /// Protects the machine. Beyond it new locks are refused (-OOM); locks are still released,
    /// extended and expired, and no lock is ever evicted.
    maxmemory: u64 = 0, "maxmemory" Size(0..=u64::MAX) Live;

    /// Most memory for unfinished requests and unread replies, such as 100mb, or 5% of maxmemory; 0
    /// for no limit.
    ///
    /// Protects the machine from many clients that each stay within their own limits. Beyond it the
    /// connections that use most are closed, except those with CLIENT NO-EVICT on. Buffers of up to
    /// 4 KiB do not count: maxclients bounds them. A limit below 128kb counts as 128kb.
    // Redis's range; a percentage is below zero, as in Redis. 0 is Redis's default: what a client
    // holds is bounded, and which sum is too much depends on the machine.
    maxmemory_clients: i64 = 0, "maxmemory-clients" SizeOrPercent() Live;

    /// Close connections that are idle for this many seconds; 0 for never.
    // As in Redis.
    timeout: u64 = 0, "timeout" Seconds(0..=i32::MAX as u64) Live;

    /// Probe silent peers after this many seconds, to find dead ones; 0 for never.
    // As in Redis.
    tcp_keepalive: u64 = 300, "tcp-keepalive" Seconds(0..=i32::MAX as u64) Live;

    /// Longest argument of a command (key, token, script).
    ///
    /// 1mb or more. Protects memory: a client that announces more gets an error and is
    /// disconnected.
    // Redis's range: less would refuse ordinary requests. Redis has 512 MB by default, but a lock's
    // token takes tens of bytes.
    proto_max_bulk_len: u64 = 1 << 20,
        "proto-max-bulk-len" Size(1 << 20..=i64::MAX as u64) Live;

    /// Longest command that is still being received.
    ///
    /// 1mb or more. Protects memory: a client that exceeds it is disconnected.
    // Redis's range. Redis has 1 GB by default; 64 MiB fits a script on a million keys.
    client_query_buffer_limit: u64 = 64 << 20,
        "client-query-buffer-limit" Size(1 << 20..=i64::MAX as u64) Live;

    /// Longest reply (hard limit of class normal), and how much may wait for a subscriber (pubsub).
    ///
    /// Protects memory from clients that ask for much, or are sent much, and read nothing. A
    /// subscriber is closed at the first number, or after so many seconds beyond the second. 0 is
    /// no limit. Replies are not kept long enough for a soft limit.
    client_output_buffer_limit: OutputLimits = OutputLimits::default(),
        "client-output-buffer-limit" OutputLimit() Live;

    /// Events to publish when keys change, such as KEA or Ex; empty for none.
    ///
    /// The letters are Redis's: K and E choose the channels, g, $, l, s, h, z, x, n, m and A the
    /// events.
    // As in Redis.
    #[cfg(feature = "compat")]
    notify_keyspace_events: EventClasses = EventClasses::default(),
        "notify-keyspace-events" Events() Live;

    /// Most keys that are remembered for clients that cache them (CLIENT TRACKING); 0 for no limit.
    ///
    /// Protects memory. Beyond it a key is forgotten, and its clients are told that they may no
    /// longer use what they have cached.
    // As in Redis.
    tracking_table_max_keys: u64 = 1_000_000,
        "tracking-table-max-keys" Count(0..=i64::MAX as u64) Live;

    /// How long a script may take, in milliseconds; 0 for any time.
    ///
    /// A script that takes longer is ended, and nothing of it is kept. Beyond some milliseconds it
    /// holds up only commands on the keys that it uses.
    // As long as Redis is silent before it answers -BUSY, so that nobody gets that by default.
    script_time_limit: u64 = 5_000, "script-time-limit" Count(0..=u32::MAX as u64) Live;

    /// Answer -BUSY to a command that has waited this many milliseconds for a script.
    ///
    /// Commands that end or renew a lock wait on.
    // As in Redis.
    busy_reply_threshold: u64 = 5_000, "busy-reply-threshold" Count(0..=u32::MAX as u64) Live;

    /// Shortest time, in microseconds, of commands that the slow log keeps; -1 turns it off.
    ///
    /// Commands that are known to take little time are only watched one by one if this is below
    /// 1000; that costs a tenth of their time.
    // As in Redis.
    #[cfg(feature = "metrics")]
    slowlog_log_slower_than: i64 = 10_000,
        "slowlog-log-slower-than" Integer(-1..=i64::MAX) Live;

    /// Most commands in the slow log.
    // As in Redis by default; an entry takes 4 KiB at most.
    #[cfg(feature = "metrics")]
    slowlog_max_len: u64 = 128, "slowlog-max-len" Count(0..=100_000) Live;

    /// Shortest time, in milliseconds, of what LATENCY keeps; 0 turns it off.
    // As in Redis.
    #[cfg(feature = "metrics")]
    latency_monitor_threshold: u64 = 0,
        "latency-monitor-threshold" Count(0..=i64::MAX as u64) Live;

    /// Name keys in the metrics of the keys held longest and refused most.
    ///
    /// Everyone who can read the metrics then sees the names of keys, and every new name is a new time
    /// series: the collector has more to keep the more keys there are.
    #[cfg(feature = "metrics")]
    metrics_keys: bool = false, "metrics-keys" Switch() Live;

    /// How much to say on standard error: debug, verbose, notice, warning or nothing.
    ///
    /// notice is starting, stopping and quarantines, warning what is risky. Why a node could not go on
    /// is always said.
    // As in Redis.
    loglevel: LogLevel = LogLevel::Notice, "loglevel" LogLevel() Live;

    /// Certificate to present to TLS clients: a PEM file, and after it those up to the root.
    ///
    /// It and the other files are read at the start and again at SIGHUP.
    #[cfg(feature = "tls")]
    tls_cert_file: String = String::new(), "tls-cert-file" Text() AtStart;

    /// Private key of the certificate: a PEM file, not encrypted, which only this user can read.
    #[cfg(feature = "tls")]
    tls_key_file: String = String::new(), "tls-key-file" Text() AtStart;

    /// Certificates of the authorities that sign those of clients: a PEM file.
    #[cfg(feature = "tls")]
    tls_ca_cert_file: String = String::new(), "tls-ca-cert-file" Text() AtStart;

    /// Whether TLS clients must have a certificate: yes, no, or optional, to check those that come.
    // As in Redis.
    #[cfg(feature = "tls")]
    tls_auth_clients: TlsClients = TlsClients::Yes, "tls-auth-clients" TlsClients() AtStart;

    /// Allow DEBUG, for tests.
    enable_debug_command: bool = false, "enable-debug-command" Switch() AtStart;
}

/// Hides the password.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = HostFacts::default();
        let shown = Self::TABLE.iter().filter(|it| it.name != "requirepass");
        f.debug_map()
            .entries(shown.map(|it| (it.name, it.show(self, &facts))))
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Returns the bytes that the buffers of all connections may use; `None` for no limit.
    pub(crate) fn client_memory_max(&self) -> Option<u64> {
        let max = match self.maxmemory_clients {
            0 => return None,
            size @ 1.. => size.unsigned_abs(),
            _ if self.maxmemory == 0 => return None,
            percent => self.maxmemory / 100 * percent.unsigned_abs(),
        };
        Some(max.max(CLIENT_MEMORY_MIN))
    }
}

/// As in Redis: with less, a wrong configuration could let no client work.
const CLIENT_MEMORY_MIN: u64 = 128 << 10;

/// The older name of `busy-reply-threshold`, which CONFIG knows too.
pub(crate) const LUA_TIME_LIMIT: ConfigOption = ConfigOption {
    name: "lua-time-limit",
    text: &[],
    kind: Kind::Count(
        Place {
            read: |options| &options.busy_reply_threshold,
            write: |options| &mut options.busy_reply_threshold,
        },
        0..=u32::MAX as u64,
    ),
    change: Change::Live,
};

/// One option: its name, its values, how it is shown and set.
#[derive(Debug)]
pub struct ConfigOption {
    pub(crate) name: &'static str,
    /// The lines of its help.
    pub(crate) text: &'static [&'static str],
    pub(crate) kind: Kind,
    pub(crate) change: Change,
}

/// The values that an option can have, and where its value is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A number.
    Count(Place<u64>, RangeInclusive<u64>),
    /// A number that may be below zero.
    #[cfg(feature = "metrics")]
    Integer(Place<i64>, RangeInclusive<i64>),
    /// A number of seconds.
    Seconds(Place<u64>, RangeInclusive<u64>),
    /// A number of bytes, also written with a unit.
    Size(Place<u64>, RangeInclusive<u64>),
    /// A number of bytes, or a percentage, which is kept below zero.
    SizeOrPercent(Place<i64>),
    /// Groups of `class hard soft seconds`.
    OutputLimit(Place<OutputLimits>),
    /// Letters for classes of events.
    #[cfg(feature = "compat")]
    Events(Place<EventClasses>),
    /// The name of a level.
    LogLevel(Place<LogLevel>),
    /// `yes` or `no`.
    Switch(Place<bool>),
    /// One of three words.
    #[cfg(feature = "tls")]
    TlsClients(Place<TlsClients>),
    /// Any text.
    Text(Place<String>),
    /// One value, in any case, and the refusal of any other.
    Only(&'static str, &'static str),
    /// What the process or the guard decided.
    Fact(fn(&HostFacts) -> String),
}

/// Where the value of an option is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<T> {
    read: fn(&Options) -> &T,
    write: fn(&mut Options) -> &mut T,
}

/// Whether CONFIG SET changes an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Yes, and the new value is in force at once.
    Live,
    /// No: it is set at the start.
    AtStart,
    /// No, although Redis can; setting it to its current value succeeds.
    OnlyAsIs,
}

impl ConfigOption {
    /// Returns its name: Redis's, if Redis has it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its help: a sentence, and what else there is to say after an empty line.
    pub fn help(&self) -> String {
        let lines: Vec<&str> = self.text.iter().map(|line| line.trim()).collect();
        lines.join("\n")
    }

    /// Returns a word for its values, and one of them.
    pub const fn example(&self) -> (&'static str, &'static str) {
        match self.kind {
            Kind::Count(..) => ("N", "10000"),
            #[cfg(feature = "metrics")]
            Kind::Integer(..) => ("N", "10000"),
            Kind::Seconds(..) => ("SECONDS", "300"),
            Kind::Size(..) => ("SIZE", "100mb"),
            Kind::SizeOrPercent(_) => ("SIZE|PERCENT", "5%"),
            Kind::OutputLimit(_) => ("LIMITS", "normal 64mb 0 0"),
            #[cfg(feature = "compat")]
            Kind::Events(_) => ("LETTERS", "Ex"),
            Kind::LogLevel(_) => ("LEVEL", "notice"),
            Kind::Switch(_) => ("yes|no", "yes"),
            #[cfg(feature = "tls")]
            Kind::TlsClients(_) => ("yes|no|optional", "yes"),
            Kind::Text(_) | Kind::Only(..) | Kind::Fact(_) => ("TEXT", ""),
        }
    }

    /// Returns its default as people write it.
    pub fn default_text(&self) -> String {
        self.write(&Options::default(), &HostFacts::default(), byte_size::exact)
    }

    /// Returns its value as CONFIG GET shows it.
    pub(crate) fn show(&self, options: &Options, facts: &HostFacts) -> String {
        self.write(options, facts, |bytes| bytes.to_string())
    }

    fn write(&self, options: &Options, facts: &HostFacts, size: fn(u64) -> String) -> String {
        match &self.kind {
            Kind::Count(place, _) | Kind::Seconds(place, _) => (place.read)(options).to_string(),
            #[cfg(feature = "metrics")]
            Kind::Integer(place, _) => (place.read)(options).to_string(),
            Kind::Size(place, _) => size(*(place.read)(options)),
            Kind::SizeOrPercent(place) => match *(place.read)(options) {
                percent @ ..0 => format!("{}%", percent.unsigned_abs()),
                bytes => size(bytes.unsigned_abs()),
            },
            Kind::OutputLimit(place) => (place.read)(options).show(size),
            #[cfg(feature = "compat")]
            Kind::Events(place) => (place.read)(options).to_string(),
            Kind::LogLevel(place) => (place.read)(options).name().to_owned(),
            Kind::Switch(place) => if *(place.read)(options) { "yes" } else { "no" }.to_owned(),
            #[cfg(feature = "tls")]
            Kind::TlsClients(place) => (place.read)(options).word().to_owned(),
            Kind::Text(place) => (place.read)(options).clone(),
            Kind::Only(value, _) => (*value).to_owned(),
            Kind::Fact(show) => show(facts),
        }
    }

    /// Sets it to what a text says.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the text, in Redis's words; nothing is changed.
    pub fn set(&self, options: &mut Options, text: &[u8]) -> Result<(), String> {
        match &self.kind {
            Kind::Count(place, range) | Kind::Seconds(place, range) => {
                let number = parse_integer(text);
                let number = number.ok_or("argument couldn't be parsed into an integer")?;
                *(place.write)(options) = within(u64::try_from(number).ok(), range)?;
            }
            #[cfg(feature = "metrics")]
            Kind::Integer(place, range) => {
                let number = parse_integer(text);
                let number = number.ok_or("argument couldn't be parsed into an integer")?;
                *(place.write)(options) = within(Some(number), range)?;
            }
            Kind::Size(place, range) => {
                let size = byte_size::parse(text).ok_or("argument must be a memory value")?;
                *(place.write)(options) = within(Some(size), range)?;
            }
            Kind::SizeOrPercent(place) => *(place.write)(options) = size_or_percent(text)?,
            Kind::OutputLimit(place) => (place.write)(options).set(text)?,
            #[cfg(feature = "compat")]
            Kind::Events(place) => {
                let classes = EventClasses::parse(text);
                *(place.write)(options) =
                    classes.ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?;
            }
            Kind::LogLevel(place) => {
                let level = LogLevel::parse(text);
                *(place.write)(options) = level.ok_or_else(|| {
                    let names = LogLevel::ALL.map(LogLevel::name).join(", ");
                    format!("argument(s) must be one of the following: {names}")
                })?;
            }
            Kind::Switch(place) => {
                *(place.write)(options) = match text.to_ascii_lowercase().as_slice() {
                    b"yes" => true,
                    b"no" => false,
                    _ => return Err("argument must be 'yes' or 'no'".to_owned()),
                }
            }
            #[cfg(feature = "tls")]
            Kind::TlsClients(place) => *(place.write)(options) = TlsClients::read(text)?,
            Kind::Text(place) => {
                let text = str::from_utf8(text).map_err(|_| "argument must be valid UTF-8")?;
                text.clone_into((place.write)(options));
            }
            Kind::Only(value, refusal) if !text.eq_ignore_ascii_case(value.as_bytes()) => {
                return Err((*refusal).to_owned());
            }
            Kind::Only(..) | Kind::Fact(_) => {}
        }
        Ok(())
    }
}

fn size_or_percent(text: &[u8]) -> Result<i64, String> {
    if let Some(size) = byte_size::parse(text) {
        let size = within(Some(size), &(0..=i64::MAX as u64))?;
        return Ok(size.cast_signed());
    }
    match text.strip_suffix(b"%").and_then(parse_integer) {
        Some(percent @ 0..=100) => Ok(-percent),
        Some(101..) => Err("percentage argument must be less or equal to 100".to_owned()),
        _ => Err("argument must be a memory or percent value".to_owned()),
    }
}

/// Returns the number if the option can have it; `None` stands for a number below zero.
fn within<N: PartialOrd + fmt::Display>(
    number: Option<N>,
    range: &RangeInclusive<N>,
) -> Result<N, String> {
    let number = number.filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!(
            "argument must be between {} and {} inclusive",
            range.start(),
            range.end()
        )
    })
}
