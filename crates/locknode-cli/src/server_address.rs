//! Where a server is and how to log in there, as people write it.

use std::fmt;
use std::path::PathBuf;

use crate::failure::Failure;

/// A server's address, with the password for it if one is needed. Shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    pub(crate) endpoint: Endpoint,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
}

/// What to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl ServerAddress {
    /// Reads `host`, `host:port`, `[::1]:port`, `unix:PATH` or `redis://user:password@host:port`, the value of `flag`.
    ///
    /// # Errors
    ///
    /// A sentence about what is not an address. It does not repeat a text that may hold a password.
    pub(crate) fn read(text: &str, flag: &str) -> Result<Self, Failure> {
        let shown = if text.contains('@') {
            "an address with a login"
        } else {
            text
        };
        Self::parse(text).map_err(|problem| Failure::usage(format!("{flag}: {shown:?}: {problem}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text
            .strip_prefix("unix://")
            .or_else(|| text.strip_prefix("unix:"))
        {
            if path.is_empty() {
                return Err("a path belongs behind unix:".to_owned());
            }
            return Ok(Endpoint::Unix(path.into()).into());
        }
        if let Some(rest) = text.strip_prefix("redis://") {
            return parse_url(rest);
        }
        if text.starts_with("rediss://") {
            return Err("TLS (rediss://) is not supported yet".to_owned());
        }
        if text.contains("://") {
            return Err(
                "an address is host:port, unix:PATH or redis://:password@host:port".to_owned(),
            );
        }
        Ok(parse_host_port(text)?.into())
    }
}

impl From<Endpoint> for ServerAddress {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            username: None,
            password: None,
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Endpoint::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Endpoint::Tcp { host, port } => write!(f, "{host}:{port}"),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerAddress({self})")
    }
}

/// `[[user]:password@]host[:port][/database]`
fn parse_url(rest: &str) -> Result<ServerAddress, String> {
    let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // A password may hold an @ that was not escaped; a host cannot.
    let (login, host_port) = match rest.rsplit_once('@') {
        Some((login, host_port)) => (Some(login), host_port),
        None => (None, rest),
    };
    let mut address = ServerAddress::from(parse_host_port(host_port)?);
    if let Some(login) = login {
        // A lone word would be a user's name for some clients and a password for others.
        let Some((username, password)) = login.split_once(':') else {
            return Err("a login is user:password@ or :password@".to_owned());
        };
        address.username = Some(unescape(username)?).filter(|name| !name.is_empty());
        address.password = Some(unescape(password)?);
    }
    Ok(address)
}

fn parse_host_port(text: &str) -> Result<Endpoint, String> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("a [ without its ]")?;
        (
            host,
            rest.strip_prefix(':')
                .or_else(|| rest.is_empty().then_some(""))
                .ok_or("a : and the port belong behind ]")?,
        )
    } else if text.matches(':').count() > 1 {
        // An IPv6 address without brackets has no port.
        (text, "")
    } else {
        text.split_once(':').unwrap_or((text, ""))
    };
    let port = if port.is_empty() {
        Ok(PORT)
    } else {
        port.parse()
    };
    match port {
        Ok(port) if port != 0 && !host.is_empty() => Ok(Endpoint::Tcp {
            host: host.to_owned(),
            port,
        }),
        _ => Err(
            "an address is host:port with a port from 1 to 65535, such as 127.0.0.1:6379"
                .to_owned(),
        ),
    }
}

/// Undoes the percent escapes of a URL.
fn unescape(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            rest.next()
                .and_then(|byte| char::from(byte).to_digit(16))
                .and_then(|digit| u8::try_from(digit).ok())
        };
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(
                "a % in a login needs two hexadecimal digits behind it (write % as %25)".to_owned(),
            );
        };
        bytes.push(high * 16 + low);
    }
    String::from_utf8(bytes).map_err(|_| "the login is not UTF-8".to_owned())
}

/// Redis' port.
const PORT: u16 = 6379;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_usual_form() {
        for (text, shown, username, password) in [
            ("10.0.0.5", "10.0.0.5:6379", None, None),
            ("node-1:7101", "node-1:7101", None, None),
            ("::1", "[::1]:6379", None, None),
            ("[::1]:7101", "[::1]:7101", None, None),
            ("unix:/run/n.sock", "unix:/run/n.sock", None, None),
            ("unix:///run/n.sock", "unix:/run/n.sock", None, None),
            ("redis://h", "h:6379", None, None),
            ("redis://:secret@h:1/0", "h:1", None, Some("secret")),
            (
                "redis://u:p%40%25@[::1]:2",
                "[::1]:2",
                Some("u"),
                Some("p@%"),
            ),
            ("redis://u:p@q@h:3?x=y", "h:3", Some("u"), Some("p@q")),
        ] {
            let address = ServerAddress::parse(text).expect(text);
            assert_eq!(address.to_string(), shown, "{text}");
            assert_eq!(address.username.as_deref(), username, "{text}");
            assert_eq!(address.password.as_deref(), password, "{text}");
            assert!(!format!("{address:?}").contains("secret"));
        }
    }

    #[test]
    fn a_password_is_not_repeated_in_an_error() {
        let error = ServerAddress::read("redis://:secret@h:x", "--nodes").expect_err("no port");
        assert!(!error.to_string().contains("secret"), "{error}");
        let error = ServerAddress::read("h:x", "--nodes").expect_err("no port");
        assert!(error.to_string().starts_with("--nodes: \"h:x\""), "{error}");
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_sentence() {
        for text in [
            "",
            ":7101",
            "h:",
            "h:0",
            "h:70000",
            "h:x",
            "[::1",
            "[::1]7",
            "unix:",
            "http://h",
            "rediss://h",
            "redis://u@h",
            "redis://:%4@h",
        ] {
            match ServerAddress::parse(text) {
                Ok(address) if text == "h:" => assert_eq!(address.to_string(), "h:6379"),
                Ok(address) => panic!("{text} was read as {address}"),
                Err(error) => assert!(error.len() > 10, "{text}: {error}"),
            }
        }
    }
}
