//! What is wrong with an address, said without repeating anything that may be a password.

use std::error::Error;
use std::fmt;

use super::parse::Problem;

/// Why an address could not be used.
///
/// `Display` says what was wrong and what to write instead. It names the address by what follows
/// its last `@`, so that it never shows a user or a password.
#[derive(Clone, PartialEq, Eq)]
pub struct AddressError {
    shown: Box<str>,
    problem: Problem,
}

impl AddressError {
    pub(super) fn new(text: &str, problem: impl Into<Problem>) -> Self {
        Self {
            shown: presentable(text).into(),
            problem: problem.into(),
        }
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
    let place = rest.rsplit('@').next().unwrap_or_default();
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
