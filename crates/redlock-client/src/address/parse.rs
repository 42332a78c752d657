//! Takes an address apart: scheme, authority, path and query.

use super::authority::{split_credentials, tcp_endpoint};
use super::error::Problem;
use super::query::{Query, join, parse_database};
use super::{ADDRESS_BYTES_MAX, Endpoint, NodeAddress, percent};

pub(super) fn parse(text: &str) -> Result<NodeAddress, Problem> {
    if text.is_empty() {
        return Err(Problem::Empty);
    }
    if text.len() > ADDRESS_BYTES_MAX {
        return Err(Problem::TooLong);
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Problem::Blank);
    }
    if text.starts_with('/') {
        return plain_path(text);
    }
    let (scheme, rest) = split_scheme(text)?;
    if rest.contains('#') {
        return Err(Problem::Fragment);
    }
    match scheme {
        Scheme::Tcp => tcp(rest, false),
        Scheme::Tls if cfg!(feature = "tls") => tcp(rest, true),
        Scheme::Tls => Err(Problem::NoTls),
        Scheme::Unix => unix(rest),
    }
}

enum Scheme {
    Tcp,
    Tls,
    Unix,
}

/// An address without a scheme is a TCP one. `unix:/path` with a single slash is common too.
fn split_scheme(text: &str) -> Result<(Scheme, &str), Problem> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Ok(match text.split_once(":/") {
            Some((scheme, _)) if is_unix(scheme) => (Scheme::Unix, &text[scheme.len() + 1..]),
            // A path that does not begin with a slash: it is told what is wrong with it.
            _ => match text.split_once(':') {
                Some((scheme, rest)) if is_unix(scheme) => (Scheme::Unix, rest),
                _ => (Scheme::Tcp, text),
            },
        });
    };
    match scheme.to_ascii_lowercase().as_str() {
        "redis" | "valkey" => Ok((Scheme::Tcp, rest)),
        "rediss" | "valkeys" => Ok((Scheme::Tls, rest)),
        scheme if is_unix(scheme) => Ok((Scheme::Unix, rest)),
        _ => Err(Problem::UnknownScheme),
    }
}

fn is_unix(scheme: &str) -> bool {
    ["unix", "redis+unix", "valkey+unix", "redis+socket"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
}

fn tcp(rest: &str, tls: bool) -> Result<NodeAddress, Problem> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    // An '@' behind the authority is most often that of a password with a bare '/' or '?'.
    let at_behind = tail.contains('@') && !authority.contains('@');
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    if at_behind && path.contains('@') {
        return Err(Problem::UnescapedCredentials);
    }
    let (credentials, place) = split_credentials(authority)?;
    let endpoint = tcp_endpoint(place).map_err(|problem| {
        if at_behind {
            Problem::UnescapedCredentials
        } else {
            problem
        }
    })?;
    let query = Query::parse(query, !at_behind)?;
    let database = match path.strip_prefix('/') {
        None | Some("") => None,
        Some(database) => Some(parse_database(database)?),
    };
    let (credentials, database) = join(credentials, database, query)?;
    let (username, password) = (credentials.username, credentials.password);
    Ok(NodeAddress {
        endpoint,
        tls,
        username,
        password,
        database,
    })
}

fn unix(rest: &str) -> Result<NodeAddress, Problem> {
    let (front, query) = rest.split_once('?').unwrap_or((rest, ""));
    // Without a path the whole is a relative one, or credentials alone.
    let path_start = front.find('/').ok_or(Problem::PathRelative)?;
    let (authority, path) = front.split_at(path_start);
    let credentials = match authority.strip_suffix('@') {
        Some(_) => split_credentials(authority)?.0,
        None if authority.is_empty() => Default::default(),
        None if path.contains('@') => return Err(Problem::UnescapedCredentials),
        None => return Err(Problem::PathRelative),
    };
    let query = Query::parse(query, !query.contains('@'))?;
    let endpoint = unix_endpoint(percent::decode(path)?)?;
    let (credentials, database) = join(credentials, None, query)?;
    let (username, password) = (credentials.username, credentials.password);
    Ok(NodeAddress {
        endpoint,
        tls: false,
        username,
        password,
        database,
    })
}

/// A path as a shell user writes it: no escapes, no query.
fn plain_path(text: &str) -> Result<NodeAddress, Problem> {
    let endpoint = unix_endpoint(text.as_bytes().to_vec())?;
    Ok(NodeAddress {
        endpoint,
        tls: false,
        username: None,
        password: None,
        database: 0,
    })
}

#[cfg(unix)]
fn unix_endpoint(path: Vec<u8>) -> Result<Endpoint, Problem> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::net::SocketAddr;
    use std::path::PathBuf;

    let path = PathBuf::from(OsString::from_vec(path));
    // The system's own limit, which differs from one system to the next.
    SocketAddr::from_pathname(&path).map_err(|_| Problem::PathInvalid)?;
    Ok(Endpoint::Unix(path))
}

#[cfg(not(unix))]
fn unix_endpoint(_path: Vec<u8>) -> Result<Endpoint, Problem> {
    Err(Problem::NoUnixSockets)
}
