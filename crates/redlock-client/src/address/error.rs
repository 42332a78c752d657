//! What is wrong with an address, said without repeating anything that may be a password.

use std::error::Error;
use std::fmt;

use super::{ADDRESS_BYTES_MAX, DATABASE_MAX, HOST_BYTES_MAX};

/// Why an address could not be used.
///
/// `Display` says what was wrong and what to write instead. It names the address by what follows
/// its last `@`, so that it never shows a user or a password.
#[derive(Clone, PartialEq, Eq)]
pub struct AddressError {
    shown: Box<str>,
    problem: Problem,
}

/// The closed list of things that can be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    Empty,
    TooLong,
    Blank,
    Fragment,
    UnknownScheme,
    UnescapedCredentials,
    BadPercent,
    NotUtf8,
    HostMissing,
    HostInvalid,
    HostTooLong,
    Ipv6Bare,
    Ipv6Invalid,
    PortInvalid,
    DatabaseInvalid,
    QueryNotPairs,
    QueryPlus,
    QueryUnknown(Option<Box<str>>),
    GivenTwice(&'static str),
    UserWithoutPassword,
    PathRelative,
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "only systems with Unix sockets give it")
    )]
    PathInvalid,
    #[cfg_attr(
        unix,
        expect(dead_code, reason = "systems without Unix sockets give it")
    )]
    NoUnixSockets,
    NoTls,
}

impl AddressError {
    pub(super) fn new(text: &str, problem: Problem) -> Self {
        Self {
            shown: presentable(text).into(),
            problem,
        }
    }

    #[cfg(test)]
    pub(super) fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl Error for AddressError {}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node address \"{}\": {}", self.shown, self.problem)
    }
}

impl fmt::Debug for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AddressError({self})")
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Empty => "is empty; write for example redis://localhost:6379",
            Self::TooLong => return write!(f, "is longer than {ADDRESS_BYTES_MAX} bytes"),
            Self::Blank => {
                "holds a space or a control character; write it as %20 and the like, \
                 or remove it"
            }
            Self::Fragment => "holds a '#'; write it as %23",
            Self::UnknownScheme => {
                "the scheme is not one of redis://, rediss://, valkey://, valkeys://, \
                 unix://, redis+unix://, valkey+unix:// and redis+socket://"
            }
            Self::UnescapedCredentials => {
                "there is a '/' or '?' before the '@'; inside a user or a password write them \
                 as %2F and %3F"
            }
            Self::BadPercent => {
                "a '%' is not followed by two hexadecimal digits; write %25 for a '%' itself"
            }
            Self::NotUtf8 => "the user or the password is not UTF-8 once its %-escapes are undone",
            Self::HostMissing => "the host is missing; write for example redis://localhost:6379",
            Self::HostInvalid => {
                "the host may hold only letters, digits, '-', '_' and single '.', and an IPv4 \
                 address has four numbers; write an international name in its xn-- form"
            }
            Self::HostTooLong => {
                return write!(f, "the host is longer than {HOST_BYTES_MAX} bytes");
            }
            Self::Ipv6Bare => {
                "there is more than one ':' in the host and port; write an IPv6 address in \
                 brackets, as in [::1]:6379"
            }
            Self::Ipv6Invalid => {
                "what is in the brackets is not an IPv6 address; write for example [::1]:6379"
            }
            Self::PortInvalid => {
                "the port must be a number from 1 to 65535, or be left out with its ':' for 6379"
            }
            Self::DatabaseInvalid => {
                return write!(
                    f,
                    "the database must be a number from 0 to {DATABASE_MAX}, as in \
                     redis://localhost:6379/2 or unix:///path?db=2"
                );
            }
            Self::QueryNotPairs => {
                "the query must be key=value pairs with '&' between; keys are db, user and password"
            }
            Self::QueryPlus => {
                "a '+' in the query means a space to some clients; write %2B for a '+' or %20 for \
                 a space"
            }
            Self::QueryUnknown(key) => {
                match key {
                    Some(key) => write!(f, "the query key \"{key}\" is unknown")?,
                    None => f.write_str("a query key is unknown")?,
                }
                "; remove it, the known ones are db, user (or username) and password (or pass)"
            }
            Self::GivenTwice(what) => return write!(f, "the {what} is given twice; write it once"),
            Self::UserWithoutPassword => {
                "there is a user but no password; if the part before the '@' is the password, \
                 write a ':' before it, as in redis://:PASSWORD@host"
            }
            Self::PathRelative => {
                "the path of a Unix socket must be absolute; write three slashes, as in \
                 unix:///run/node.sock"
            }
            Self::PathInvalid => {
                "the path is too long for a Unix socket or holds a NUL byte; use a shorter path"
            }
            Self::NoUnixSockets => "this system has no Unix sockets; use redis://host:port",
            Self::NoTls => {
                "this build of redlock-client speaks no TLS; enable its feature \"tls\", or use \
                 redis:// on a network that is trusted"
            }
        };
        f.write_str(text)
    }
}

/// The part of `text` that cannot be a credential, in plain characters and not too long.
///
/// It works on text that is no address at all, so it takes the cautious side: everything up to the
/// last `@` goes, the query goes, and so does a port that is not a short number.
fn presentable(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.len() <= SCHEME_SHOWN_BYTES_MAX && is_scheme(scheme) => {
            (Some(scheme), rest)
        }
        _ => (None, text),
    };
    let place = match rest.rsplit_once('@') {
        Some((_, after)) => after,
        None => rest,
    };
    let place = place.split(['?', '#']).next().unwrap_or_default();
    let (place, port_hidden) = match place.rsplit_once(':') {
        Some((before, port)) if !is_portlike(port) => (before, true),
        _ => (place, false),
    };
    let mut shown = String::new();
    if let Some(scheme) = scheme {
        shown.push_str(scheme);
        shown.push_str("://");
    }
    let cut = place.chars().nth(PLACE_SHOWN_CHARS_MAX).is_some();
    shown.extend(place.chars().take(PLACE_SHOWN_CHARS_MAX).map(|c| {
        let plain = c.is_ascii_alphanumeric() || "-._~:/[]%,".contains(c);
        if plain { c } else { '?' }
    }));
    if cut || port_hidden {
        shown.push_str("...");
    }
    shown
}

/// A port with perhaps a database behind it, or the tail of an IPv6 address in brackets.
fn is_portlike(text: &str) -> bool {
    let (port, database) = text.split_once('/').unwrap_or((text, ""));
    let numbers = port.strip_suffix(']').unwrap_or(port);
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    numbers.len() <= PORT_SHOWN_BYTES_MAX && digits(numbers) && digits(database)
}

fn is_scheme(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// The longest known scheme is `valkey+unix`; anything much longer is no scheme.
const SCHEME_SHOWN_BYTES_MAX: usize = 16;

/// Enough to tell the nodes of one cluster apart in a line of a log.
const PLACE_SHOWN_CHARS_MAX: usize = 64;

/// As many digits as a port has; a longer number may be a password whose host is missing.
const PORT_SHOWN_BYTES_MAX: usize = 5;
