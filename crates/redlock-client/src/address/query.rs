//! The `?db=2&password=secret` part of an address.

use super::authority::Credentials;
use super::error::Problem;
use super::{DATABASE_MAX, percent};

/// What the query says, as far as it says it.
#[derive(Default)]
pub(super) struct Query {
    pub(super) credentials: Credentials,
    pub(super) database: Option<u32>,
}

impl Query {
    /// Reads `key=value` pairs. With `names_shown` false, an unknown key is not named in the
    /// error, because it may be part of a password that was written without escapes.
    pub(super) fn parse(text: &str, names_shown: bool) -> Result<Self, Problem> {
        let mut username = None;
        let mut password = None;
        let mut database = None;
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or(Problem::QueryNotPairs)?;
            let (slot, what) = match key {
                "db" => (&mut database, DATABASE),
                "user" | "username" => (&mut username, USER),
                "pass" | "password" => (&mut password, PASSWORD),
                _ => {
                    return Err(Problem::QueryUnknown(
                        names_shown.then(|| nameable(key)).flatten(),
                    ));
                }
            };
            if value.contains('+') {
                return Err(Problem::QueryPlus);
            }
            if slot.replace(percent::decode_str(value)?).is_some() {
                return Err(Problem::GivenTwice(what));
            }
        }
        Ok(Self {
            credentials: Credentials { username, password },
            database: database.as_deref().map(parse_database).transpose()?,
        })
    }
}

/// Joins what the query says with what the rest of the address says; nothing may be said twice.
pub(super) fn join(
    credentials: Credentials,
    database: Option<u32>,
    query: Query,
) -> Result<(Credentials, u32), Problem> {
    let asked = query.credentials;
    let username = one_of(credentials.username, asked.username, USER)?;
    let password = one_of(credentials.password, asked.password, PASSWORD)?;
    let database = one_of(database, query.database, DATABASE)?;
    Ok((
        Credentials::from_parts(username, password),
        database.unwrap_or(0),
    ))
}

pub(super) fn parse_database(text: &str) -> Result<u32, Problem> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Problem::DatabaseInvalid);
    }
    let number = text.parse().ok().filter(|&number| number <= DATABASE_MAX);
    number.ok_or(Problem::DatabaseInvalid)
}

fn one_of<T>(a: Option<T>, b: Option<T>, what: &'static str) -> Result<Option<T>, Problem> {
    if a.is_some() && b.is_some() {
        return Err(Problem::GivenTwice(what));
    }
    Ok(a.or(b))
}

fn nameable(key: &str) -> Option<Box<str>> {
    let plain = key
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    ((1..=KEY_SHOWN_BYTES_MAX).contains(&key.len()) && plain).then(|| key.into())
}

const DATABASE: &str = "database";
const USER: &str = "user";
const PASSWORD: &str = "password";

/// Every key that some client knows is shorter; what is longer may be anything.
const KEY_SHOWN_BYTES_MAX: usize = 32;
