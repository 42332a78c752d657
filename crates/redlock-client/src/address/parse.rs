//! Takes an address apart: scheme, credentials, host and port or path, database and query.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use redlock_proto::Login;

use super::{Endpoint, NodeAddress, Place};

/// A sentence that says what is wrong and what to write instead, without a word of what was read
/// except the name of a query key.
pub(super) type Problem = Cow<'static, str>;

pub(super) fn parse(text: &str) -> Result<NodeAddress, Problem> {
    if text.is_empty() {
        return Err(HOST_MISSING.into());
    }
    if text.len() > ADDRESS_BYTES_MAX {
        return Err(format!("is longer than {ADDRESS_BYTES_MAX} bytes").into());
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(BLANK.into());
    }
    // A path as a shell user writes it: no escapes, no query.
    if text.starts_with('/') {
        return Parts::default().address(unix_endpoint(text.as_bytes().to_vec())?, false);
    }
    let (scheme, rest) = split_scheme(text)?;
    if rest.contains('#') {
        return Err("holds a '#'; write it as %23".into());
    }
    match scheme {
        Scheme::Tcp => tcp(rest, false),
        Scheme::Tls if cfg!(feature = "tls") => tcp(rest, true),
        Scheme::Tls => Err(NO_TLS.into()),
        Scheme::Unix => unix(rest),
        Scheme::Sentinel => sentinel(rest),
        Scheme::Cluster => cluster(rest),
    }
}

enum Scheme {
    Tcp,
    Tls,
    Unix,
    Sentinel,
    Cluster,
}

/// An address without a scheme is a TCP one, but `unix:/path` is common too.
fn split_scheme(text: &str) -> Result<(Scheme, &str), Problem> {
    let is_unix = |scheme: &str| {
        let known = ["unix", "redis+unix", "valkey+unix", "redis+socket"];
        known.iter().any(|known| scheme.eq_ignore_ascii_case(known))
    };
    let Some((scheme, rest)) = text.split_once("://") else {
        return Ok(match text.split_once(':') {
            Some((scheme, rest)) if is_unix(scheme) => (Scheme::Unix, rest),
            _ => (Scheme::Tcp, text),
        });
    };
    match scheme.to_ascii_lowercase().as_str() {
        "redis" | "valkey" => Ok((Scheme::Tcp, rest)),
        "rediss" | "valkeys" => Ok((Scheme::Tls, rest)),
        "cluster" => Ok((Scheme::Cluster, rest)),
        "sentinel" => Ok((Scheme::Sentinel, rest)),
        scheme if is_unix(scheme) => Ok((Scheme::Unix, rest)),
        _ => Err(UNKNOWN_SCHEME.into()),
    }
}

fn tcp(rest: &str, tls: bool) -> Result<NodeAddress, Problem> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    // An '@' behind the authority is most often that of a password with a bare '/' or '?'.
    let at_behind = tail.contains('@') && !authority.contains('@');
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    if at_behind && path.contains('@') {
        return Err(UNESCAPED_CREDENTIALS.into());
    }
    let mut parts = Parts::default();
    let place = parts.read_credentials(authority)?;
    let endpoint = tcp_endpoint(place, PORT_DEFAULT);
    let endpoint = endpoint.map_err(|problem| {
        if at_behind {
            UNESCAPED_CREDENTIALS
        } else {
            problem
        }
    })?;
    let database = path.strip_prefix('/').filter(|text| !text.is_empty());
    parts.database = database.map(str::to_owned);
    parts.read_query(query)?;
    parts.address(endpoint, tls)
}

/// Sentinels, the name of their group, and the database there.
fn sentinel(rest: &str) -> Result<NodeAddress, Problem> {
    let (front, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = front.split_once('/').ok_or(GROUP_MISSING)?;
    let (group, database) = path.split_once('/').unwrap_or((path, ""));
    if group.is_empty() {
        return Err(GROUP_MISSING.into());
    }
    let mut parts = Parts::default();
    let sentinels = places(parts.read_credentials(authority)?, SENTINEL_PORT)?;
    parts.database = Some(database.to_owned()).filter(|text| !text.is_empty());
    parts.read_query(query)?;
    let group = decode_text(group)?;
    parts.address(Endpoint::Sentinel { sentinels, group }, false)
}

/// Some nodes of a cluster, which has one database.
fn cluster(rest: &str) -> Result<NodeAddress, Problem> {
    let (front, query) = rest.split_once('?').unwrap_or((rest, ""));
    let front = front.strip_suffix('/').unwrap_or(front);
    let mut parts = Parts::default();
    let seeds = places(parts.read_credentials(front)?, PORT_DEFAULT)?;
    parts.read_query(query)?;
    let address = parts.address(Endpoint::Cluster { seeds }, false)?;
    match address.database() {
        0 => Ok(address),
        _ => Err("a cluster has database 0 only".into()),
    }
}

/// Hosts and ports with commas between, in an order of their own: the order says nothing.
fn places(text: &str, port: u16) -> Result<Vec<Place>, Problem> {
    let mut places = Vec::new();
    for place in text.split(',') {
        if let Endpoint::Tcp { host, port } = tcp_endpoint(place, port)? {
            places.push((host, port));
        }
    }
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

fn unix(rest: &str) -> Result<NodeAddress, Problem> {
    let (front, query) = rest.split_once('?').unwrap_or((rest, ""));
    // Without a path, the whole is a relative one, or credentials alone.
    let path_start = front.find('/').ok_or(PATH_RELATIVE)?;
    let (authority, path) = front.split_at(path_start);
    let mut parts = Parts::default();
    match authority.strip_suffix('@') {
        Some(_) => _ = parts.read_credentials(authority)?,
        None if authority.is_empty() => {}
        None if path.contains('@') => return Err(UNESCAPED_CREDENTIALS.into()),
        None => return Err(PATH_RELATIVE.into()),
    }
    parts.read_query(query)?;
    parts.address(unix_endpoint(decode(path)?)?, false)
}

/// What an address says besides its endpoint, as far as it has been read.
#[derive(Default)]
struct Parts {
    username: Option<String>,
    password: Option<String>,
    database: Option<String>,
}

impl Parts {
    /// Reads `user@`, `user:password@` or `:password@`, each with %-escapes, and returns what
    /// follows.
    fn read_credentials<'a>(&mut self, authority: &'a str) -> Result<&'a str, Problem> {
        let Some((credentials, place)) = authority.rsplit_once('@') else {
            return Ok(authority);
        };
        let (username, password) = match credentials.split_once(':') {
            Some((username, password)) => (username, Some(password)),
            None => (credentials, None),
        };
        self.username = Some(decode_text(username)?);
        self.password = password.map(decode_text).transpose()?;
        self.forget_empty();
        Ok(place)
    }

    /// Reads `key=value` pairs; nothing may be given twice.
    fn read_query(&mut self, query: &str) -> Result<(), Problem> {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or(QUERY_NOT_PAIRS)?;
            let (slot, what) = match key {
                "db" => (&mut self.database, "database"),
                "user" | "username" => (&mut self.username, "user"),
                "pass" | "password" => (&mut self.password, "password"),
                // It may be part of a password that was written without escapes.
                _ if query.contains('@') || !is_plain(key, KEY_SHOWN_BYTES_MAX) => {
                    return Err(format!("a query key {QUERY_KEY_UNKNOWN}").into());
                }
                _ => return Err(format!("the query key \"{key}\" {QUERY_KEY_UNKNOWN}").into()),
            };
            if value.contains('+') {
                return Err(QUERY_PLUS.into());
            }
            if slot.replace(decode_text(value)?).is_some() {
                return Err(format!("the {what} is given twice; write it once").into());
            }
        }
        self.forget_empty();
        Ok(())
    }

    /// An empty user is none. An empty password counts only beside a user: a user may have one,
    /// while `redis://:@host` is what a template with nothing to fill in leaves behind.
    fn forget_empty(&mut self) {
        self.username.take_if(|user| user.is_empty());
        let has_user = self.username.is_some();
        self.password
            .take_if(|password| password.is_empty() && !has_user);
    }

    fn address(self, endpoint: Endpoint, tls: bool) -> Result<NodeAddress, Problem> {
        let database = self.database.map_or(Some(0), |text| number(&text));
        let database = database.filter(|&database| database <= DATABASE_MAX);
        let login = Login {
            username: self.username.map(Into::into),
            password: self.password.map(Into::into),
            database: database.ok_or(DATABASE_INVALID)?,
        };
        Ok(NodeAddress {
            endpoint,
            tls,
            login,
        })
    }
}

/// Reads `host`, `host:port`, `[ipv6]`, `[ipv6]:port` or an IPv6 address without brackets, which has no port.
fn tcp_endpoint(place: &str, port_default: u16) -> Result<Endpoint, &'static str> {
    let (host, port) = if let Some(rest) = place.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or(IPV6_INVALID)?;
        (ipv6_host(host)?, port)
    } else if let Ok(host) = ipv6_host(place) {
        // The last group may be meant as a port: `::1:6379` is hardly ever the host that is meant.
        let last = place.rsplit(':').next().unwrap_or_default();
        if last.len() >= PORT_DIGITS_LIKELY && number::<NonZeroU16>(last).is_some() {
            return Err(IPV6_BARE);
        }
        (host, "")
    } else {
        let (host, port) = place.split_at(place.find(':').unwrap_or(place.len()));
        if port.matches(':').count() > 1 {
            return Err(IPV6_BARE);
        }
        (named_host(host)?, port)
    };
    let port = match port {
        "" => Some(port_default),
        port => port.strip_prefix(':').and_then(number).map(NonZeroU16::get),
    };
    let port = port.ok_or(PORT_INVALID)?;
    Ok(Endpoint::Tcp { host, port })
}

fn named_host(host: &str) -> Result<String, &'static str> {
    if host.is_empty() {
        return Err(HOST_MISSING);
    }
    // What looks like an IPv4 address is one: a name of four numbers cannot exist.
    let is_numbers = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let is_host = is_plain(host, HOST_BYTES_MAX) && !host.starts_with('.') && !host.contains("..");
    if !is_host || (is_numbers && host.parse::<Ipv4Addr>().is_err()) {
        return Err(HOST_INVALID);
    }
    Ok(host.to_ascii_lowercase())
}

/// The canonical form, so that two spellings of one address are found equal. The zone of a
/// link-local address is written `%25eth0`, or `%eth0` as other tools print it.
fn ipv6_host(text: &str) -> Result<String, &'static str> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone.strip_prefix("25").unwrap_or(zone))),
        None => (text, None),
    };
    let address: Ipv6Addr = address.parse().map_err(|_| IPV6_INVALID)?;
    match zone {
        None => Ok(address.to_string()),
        Some(zone) if is_plain(zone, ZONE_BYTES_MAX) => Ok(format!("{address}%{zone}")),
        Some(_) => Err(IPV6_INVALID),
    }
}

#[cfg(unix)]
fn unix_endpoint(path: Vec<u8>) -> Result<Endpoint, Problem> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::net::SocketAddr;
    use std::path::PathBuf;

    let path = PathBuf::from(OsString::from_vec(path));
    // The system's own limit, which differs from one system to the next.
    SocketAddr::from_pathname(&path).map_err(|_| PATH_INVALID)?;
    Ok(Endpoint::Unix(path))
}

#[cfg(not(unix))]
fn unix_endpoint(_path: Vec<u8>) -> Result<Endpoint, Problem> {
    Err("this system has no Unix sockets; use redis://host:port".into())
}

/// A number without a sign; `FromStr` takes a '+' too.
fn number<N: FromStr>(text: &str) -> Option<N> {
    let is_digits = text.bytes().all(|b| b.is_ascii_digit());
    is_digits.then(|| text.parse().ok()).flatten()
}

/// Whether `text` has 1 to `bytes_max` bytes, all of them letters, digits, '-', '_' and '.'.
fn is_plain(text: &str, bytes_max: usize) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (1..=bytes_max).contains(&text.len()) && text.bytes().all(plain)
}

fn decode_text(text: &str) -> Result<String, Problem> {
    String::from_utf8(decode(text)?).map_err(|_| NOT_UTF8.into())
}

/// Undoes %-escapes. A '+' is itself, as it is outside of web forms.
fn decode(text: &str) -> Result<Vec<u8>, Problem> {
    let is_escape = |after: &str| {
        let digits = after.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    // The library leaves a '%' that begins no escape as it is.
    if !text.split('%').skip(1).all(is_escape) {
        return Err(
            "a '%' is not followed by two hexadecimal digits; write %25 for a '%' itself".into(),
        );
    }
    Ok(percent_decode_str(text).collect())
}

const GROUP_MISSING: &str = "the name of the Sentinel group is missing; write for example \
    sentinel://host-1,host-2,host-3/name";

const BLANK: &str =
    "holds a space or a control character; write it as %20 and the like, or remove it";

const UNKNOWN_SCHEME: &str = "the scheme is not one of redis://, rediss://, valkey://, valkeys://, \
    unix://, redis+unix://, valkey+unix://, redis+socket://, sentinel:// and cluster://";

const NO_TLS: &str = "this build of redlock-client speaks no TLS; enable its feature \"tls\", or \
    use redis:// on a network that is trusted";

const UNESCAPED_CREDENTIALS: &str = "there is a '/' or '?' before the '@'; inside a user or a \
    password write them as %2F and %3F";

const NOT_UTF8: &str = "the user or the password is not UTF-8 once its %-escapes are undone";

const HOST_MISSING: &str = "the host is missing; write for example redis://localhost:6379";

const HOST_INVALID: &str = "the host may hold only letters, digits, '-', '_' and single '.', 253 \
    in all, and an IPv4 address has four numbers; write an international name in its xn-- form";

const IPV6_BARE: &str = "there is more than one ':' in the host and port; write an IPv6 address \
    in brackets, as in [::1]:6379";

const IPV6_INVALID: &str =
    "what is in the brackets is not an IPv6 address; write for example [::1]:6379";

const PORT_INVALID: &str =
    "the port must be a number from 1 to 65535, or be left out with its ':' for 6379";

const DATABASE_INVALID: &str = "the database must be a number from 0 to 2147483647, as in \
    redis://localhost:6379/2 or unix:///path?db=2";

const QUERY_NOT_PAIRS: &str =
    "the query must be key=value pairs with '&' between; keys are db, user and password";

const QUERY_KEY_UNKNOWN: &str = "is unknown; remove it, the known ones are db, user (or username) \
    and password (or pass)";

const QUERY_PLUS: &str = "a '+' in the query means a space to some clients; write %2B for a '+' or \
    %20 for a space";

const PATH_RELATIVE: &str = "the path of a Unix socket must be absolute; write three slashes, as \
    in unix:///run/node.sock";

#[cfg(unix)]
const PATH_INVALID: &str =
    "the path is too long for a Unix socket or holds a NUL byte; use a shorter path";

/// The port of Redis and of everything that speaks its protocol.
const PORT_DEFAULT: u16 = 6379;

/// The port of a Sentinel.
const SENTINEL_PORT: u16 = 26_379;

/// Ports of lock nodes have four digits or five; a group of an address has as many seldom, and then mostly letters.
const PORT_DIGITS_LIKELY: usize = 4;

/// The longest address: room for an access token of a few KiB used as the password.
pub(super) const ADDRESS_BYTES_MAX: usize = 8192;

/// The longest host name that the domain name system can hold.
const HOST_BYTES_MAX: usize = 253;

/// The longest name of a network interface on Linux is 15 bytes; other systems have longer ones.
const ZONE_BYTES_MAX: usize = 64;

/// The highest database number that `SELECT` of a Redis server can take.
const DATABASE_MAX: u32 = i32::MAX.unsigned_abs();

/// Every key that some client knows is shorter; what is longer may be anything.
const KEY_SHOWN_BYTES_MAX: usize = 32;
