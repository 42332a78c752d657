//! CLIENT KILL: closes connections by address or by filters.

use std::time::Duration;

use locknode_resp::{Encoder, parse_integer};

use super::client_list::{ClientType, refuse_type};
use super::context::{Context, Flow};
use super::refusal;
use crate::client::Client;
use crate::time::Time;
use crate::users::Users;

/// The connections to close: those that pass every filter. If a filter appears twice, the last one
/// counts.
#[derive(Debug, Default)]
struct Filter<'a> {
    id: Option<u64>,
    addr: Option<&'a [u8]>,
    laddr: Option<&'a [u8]>,
    client_type: Option<ClientType>,
    user: Option<&'a [u8]>,
    age_min: Option<Duration>,
    includes_me: bool,
}

pub(super) fn kill(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    // The old form: one address, which may be the caller's.
    if let &[_, _, addr] = args {
        let filter = Filter {
            addr: Some(addr),
            includes_me: true,
            ..Filter::default()
        };
        return match close(context, &filter) {
            0 => reply.error("ERR No such client"),
            _ => reply.ok(),
        };
    }
    let words = args.get(2..).unwrap_or_default();
    if let Some(filter) = parse(words, &context.services.users, reply) {
        reply.integer(close(context, &filter));
    }
}

/// Parses the filters; replies with the refusal and returns `None` if they are invalid.
fn parse<'a>(mut words: &[&'a [u8]], users: &Users, reply: &mut Encoder<'_>) -> Option<Filter<'a>> {
    let mut filter = Filter::default();
    while let &[option, value, ref rest @ ..] = words {
        words = rest;
        if option.eq_ignore_ascii_case(b"id") {
            filter.id = Some(positive(value).or_else(|| {
                reply.error("ERR client-id should be greater than 0");
                None
            })?);
        } else if option.eq_ignore_ascii_case(b"maxage") {
            filter.age_min = Some(parse_age(value, reply)?);
        } else if option.eq_ignore_ascii_case(b"type") {
            filter.client_type = Some(ClientType::of(value).or_else(|| {
                refuse_type(reply, value);
                None
            })?);
        } else if option.eq_ignore_ascii_case(b"addr") {
            filter.addr = Some(value);
        } else if option.eq_ignore_ascii_case(b"laddr") {
            filter.laddr = Some(value);
        } else if option.eq_ignore_ascii_case(b"user") {
            if !users.has(value) {
                refusal::quoting(reply, "ERR No such user '", value, "'");
                return None;
            }
            filter.user = Some(value);
        } else if option.eq_ignore_ascii_case(b"skipme") && value.eq_ignore_ascii_case(b"yes") {
            filter.includes_me = false;
        } else if option.eq_ignore_ascii_case(b"skipme") && value.eq_ignore_ascii_case(b"no") {
            filter.includes_me = true;
        } else {
            refusal::syntax(reply);
            return None;
        }
    }
    if !words.is_empty() {
        refusal::syntax(reply);
        return None;
    }
    Some(filter)
}

fn parse_age(value: &[u8], reply: &mut Encoder<'_>) -> Option<Duration> {
    if parse_integer(value).is_none() {
        reply.error("ERR maxage is not an integer or out of range");
        return None;
    }
    let age = positive(value);
    if age.is_none() {
        reply.error("ERR maxage should be greater than 0");
    }
    age.map(Duration::from_secs)
}

fn positive(value: &[u8]) -> Option<u64> {
    parse_integer(value)
        .and_then(|number| u64::try_from(number).ok())
        .filter(|&number| number > 0)
}

/// Closes the connections that pass the filter, and returns their number. The caller's own is
/// closed after its reply.
fn close(context: &mut Context<'_, '_>, filter: &Filter<'_>) -> i64 {
    let clients = &context.services.clients;
    let candidates = match filter.id {
        Some(id) => clients.find(id).into_iter().collect(),
        None => clients.all(),
    };
    let mut closed = 0;
    for client in candidates {
        if !filter.passes(&client, context.moment.time) {
            continue;
        }
        if client.id != context.session.client.id {
            client.kill();
        } else if filter.includes_me {
            context.flow = Flow::Close;
        } else {
            continue;
        }
        closed += 1;
    }
    closed
}

impl Filter<'_> {
    fn passes(&self, client: &Client, now: Time) -> bool {
        self.addr.is_none_or(|addr| addr == client.addr.as_bytes())
            && self
                .laddr
                .is_none_or(|laddr| laddr == client.laddr.as_bytes())
            && self.client_type.is_none_or(|kind| kind.includes(client))
            && self.user.is_none_or(|user| user == client.user_name())
            && self
                .age_min
                .is_none_or(|age| now.since(client.connected).as_secs() >= age.as_secs())
    }
}
