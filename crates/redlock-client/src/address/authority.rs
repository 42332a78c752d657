//! The `user:password@host:port` part of an address.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::error::Problem;
use super::{Endpoint, HOST_BYTES_MAX, PORT_DEFAULT, percent};

/// A user and a password as far as they were given.
#[derive(Default)]
pub(super) struct Credentials {
    pub(super) username: Option<String>,
    pub(super) password: Option<String>,
}

impl Credentials {
    /// Reads `user`, `user:password` or `:password`, each with %-escapes.
    ///
    /// An empty user is none. An empty password counts only beside a user: a user may have one,
    /// while `redis://:@host` is what a template with nothing to fill in leaves behind.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let (username, password) = match text.split_once(':') {
            Some((username, password)) => (username, Some(password)),
            None => (text, None),
        };
        let username = percent::decode_str(username)?;
        let password = password.map(percent::decode_str).transpose()?;
        Ok(Self::from_parts(Some(username), password))
    }

    pub(super) fn from_parts(username: Option<String>, password: Option<String>) -> Self {
        let username = username.filter(|user| !user.is_empty());
        let password = password.filter(|password| username.is_some() || !password.is_empty());
        Self { username, password }
    }
}

/// Splits the credentials off: everything before the last `@`.
pub(super) fn split_credentials(authority: &str) -> Result<(Credentials, &str), Problem> {
    match authority.rsplit_once('@') {
        Some((credentials, place)) => Ok((Credentials::parse(credentials)?, place)),
        None => Ok((Credentials::default(), authority)),
    }
}

/// Reads `host`, `host:port`, `[ipv6]`, `[ipv6]:port` or an IPv6 address without brackets, which has no port.
pub(super) fn tcp_endpoint(place: &str) -> Result<Endpoint, Problem> {
    if let Some(host) = bare_ipv6(place)? {
        let port = PORT_DEFAULT;
        return Ok(Endpoint::Tcp { host, port });
    }
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(Problem::Ipv6Invalid)?;
            let port = match after.strip_prefix(':') {
                Some(port) => Some(port),
                None if after.is_empty() => None,
                None => return Err(Problem::PortInvalid),
            };
            (ipv6_host(host)?, port)
        }
        None => {
            let (host, port) = match place.split_once(':') {
                Some((_, port)) if port.contains(':') => return Err(Problem::Ipv6Bare),
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            };
            (named_host(host)?, port)
        }
    };
    let port = port.map_or(Ok(PORT_DEFAULT), parse_port)?;
    Ok(Endpoint::Tcp { host, port })
}

/// An IPv6 address without brackets. One whose last group may be meant as a port is refused: `::1:6379` is a host of
/// its own, and hardly ever the one that is meant.
fn bare_ipv6(place: &str) -> Result<Option<String>, Problem> {
    let address = place.split('%').next().unwrap_or_default();
    if place.starts_with('[') || address.parse::<Ipv6Addr>().is_err() {
        return Ok(None);
    }
    let last = place.rsplit(':').next().unwrap_or_default();
    match last.len() >= PORT_DIGITS_LIKELY && parse_port(last).is_ok() {
        true => Err(Problem::Ipv6Bare),
        false => ipv6_host(place).map(Some),
    }
}

fn parse_port(text: &str) -> Result<u16, Problem> {
    // `u16::from_str` takes a '+' too, which no port has.
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Problem::PortInvalid);
    }
    text.parse()
        .ok()
        .filter(|&port| port != 0)
        .ok_or(Problem::PortInvalid)
}

fn named_host(host: &str) -> Result<String, Problem> {
    if host.is_empty() {
        return Err(Problem::HostMissing);
    }
    if host.len() > HOST_BYTES_MAX {
        return Err(Problem::HostTooLong);
    }
    let plain = host
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if !plain || host.starts_with('.') || host.contains("..") {
        return Err(Problem::HostInvalid);
    }
    // What looks like an IPv4 address is one: a name of four numbers cannot exist.
    if host.bytes().all(|b| b.is_ascii_digit() || b == b'.') && host.parse::<Ipv4Addr>().is_err() {
        return Err(Problem::HostInvalid);
    }
    Ok(host.to_ascii_lowercase())
}

/// The canonical form, so that two spellings of one address are found equal. The zone of a
/// link-local address is written `%25eth0`, or `%eth0` as other tools print it.
fn ipv6_host(text: &str) -> Result<String, Problem> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone.strip_prefix("25").unwrap_or(zone))),
        None => (text, None),
    };
    let address: Ipv6Addr = address.parse().map_err(|_| Problem::Ipv6Invalid)?;
    match zone {
        None => Ok(address.to_string()),
        Some(zone) if is_zone(zone) => Ok(format!("{address}%{zone}")),
        Some(_) => Err(Problem::Ipv6Invalid),
    }
}

fn is_zone(text: &str) -> bool {
    (1..=ZONE_BYTES_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

/// Ports of lock nodes have four digits or five; a group of an address has as many seldom, and then mostly letters.
const PORT_DIGITS_LIKELY: usize = 4;

/// The longest name of a network interface on Linux is 15 bytes; other systems have longer ones.
const ZONE_BYTES_MAX: usize = 64;
