//! The connection itself: HELLO, AUTH, SELECT, PING, ECHO, RESET and QUIT.

use std::sync::atomic::Ordering;

use locknode_resp::{Encoder, Protocol, parse_integer};

use super::client_name;
use super::context::{Context, Flow};
use super::refusal;
use super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use crate::client::NameKind;
use crate::key_hash::DATABASES;
use crate::logins::Logins;
use crate::session::ReplyMode;
use crate::users::DEFAULT_USER;
use crate::version::REDIS_VERSION;

/// The options of a HELLO.
#[derive(Debug, Default)]
struct Greeting<'a> {
    protocol: Option<Protocol>,
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

/// Changes nothing unless it can change everything.
fn hello(context: &mut Context<'_, '_>, _: &[&[u8]; 1], words: &[&[u8]], reply: &mut Encoder<'_>) {
    let Some(greeting) = parse_hello(words, reply) else {
        return;
    };
    if let Some((user, password)) = greeting.login
        && !log_in(context, user, password)
    {
        return refuse_login(context, reply);
    }
    if needs_login(context) {
        return reply.error(HELLO_NO_AUTH);
    }
    if let Some(name) = greeting.name {
        // The length was checked with the others.
        context.session.client.rename(NameKind::Connection, name);
    }
    if let Some(protocol) = greeting.protocol {
        speak(context, protocol);
    }
    greet(context, reply);
}

fn parse_hello<'a>(words: &[&'a [u8]], reply: &mut Encoder<'_>) -> Option<Greeting<'a>> {
    let mut greeting = Greeting::default();
    let Some((version, mut rest)) = words.split_first() else {
        return Some(greeting);
    };
    greeting.protocol = match parse_integer(version) {
        Some(2) => Some(Protocol::Resp2),
        Some(3) => Some(Protocol::Resp3),
        Some(_) => {
            reply.error("NOPROTO unsupported protocol version");
            return None;
        }
        None => {
            reply.error("ERR Protocol version is not an integer or out of range");
            return None;
        }
    };
    while let [word, after @ ..] = rest {
        rest = match after {
            [user, password, after @ ..] if word.eq_ignore_ascii_case(b"auth") => {
                greeting.login = Some((user, password));
                after
            }
            [name, after @ ..] if word.eq_ignore_ascii_case(b"setname") => {
                if let Some(refusal) = client_name::refusal(name) {
                    reply.error(refusal);
                    return None;
                }
                greeting.name = Some(name);
                after
            }
            _ => {
                refuse_hello_option(reply, word);
                return None;
            }
        };
    }
    Some(greeting)
}

fn refuse_hello_option(reply: &mut Encoder<'_>, word: &[u8]) {
    refusal::quoting(reply, "ERR Syntax error in HELLO option '", word, "'");
}

/// Writes the greeting. `server` and `version` name the behaviour that clients can expect: both are
/// Redis's. INFO identifies the node itself.
fn greet(context: &Context<'_, '_>, reply: &mut Encoder<'_>) {
    let protocol = context.session.protocol;
    // The greeting uses the protocol that it agrees on; `reply` uses the one before.
    let mut bytes = Vec::new();
    let mut greeting = Encoder::new(&mut bytes, protocol);
    greeting.map(7);
    greeting.bulk(b"server");
    greeting.bulk(b"redis");
    greeting.bulk(b"version");
    greeting.bulk(REDIS_VERSION.as_bytes());
    greeting.bulk(b"proto");
    greeting.integer(i64::from(protocol_number(protocol)));
    greeting.bulk(b"id");
    greeting.integer(i64::try_from(context.session.client.id).unwrap_or(i64::MAX));
    greeting.bulk(b"mode");
    greeting.bulk(b"standalone");
    greeting.bulk(b"role");
    greeting.bulk(b"master");
    greeting.bulk(b"modules");
    greeting.array(0);
    reply.raw(&bytes);
}

fn auth(
    context: &mut Context<'_, '_>,
    [_, first]: &[&[u8]; 2],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let is_welcome = match words {
        [] if context.services.users.is_open() => {
            return reply.error(AUTH_WITHOUT_PASSWORD);
        }
        [] => log_in(context, DEFAULT_USER, first),
        [password] => log_in(context, first, password),
        _ => return refusal::syntax(reply),
    };
    if is_welcome {
        reply.ok()
    } else {
        refuse_login(context, reply)
    }
}

/// Authenticates the session if the password is correct; a wrong one changes nothing.
fn log_in(context: &mut Context<'_, '_>, user: &[u8], password: &[u8]) -> bool {
    let (services, now) = (context.services, context.moment.time);
    // A transaction is no way to try many passwords at once.
    if context.session.logins.wait_end(now).is_some() {
        return false;
    }
    let account = services.users.log_in(user, password, &services.settings);
    let Some(account) = account else {
        return false;
    };
    let session = &mut *context.session;
    session.is_authenticated = true;
    session.logins = Logins::default();
    session.log_in(account);
    true
}

/// Refuses a login, after a while outside of a transaction.
fn refuse_login(context: &mut Context<'_, '_>, reply: &mut Encoder<'_>) {
    let (session, now) = (&mut *context.session, context.moment.time);
    let is_in_transaction = context.journal.is_some();
    let is_due = session.logins.fail(now, is_in_transaction);
    session.note_state();
    if is_due {
        context.services.counters.note_failed_auth();
        return reply.error(WRONG_PASSWORD);
    }
    session.begin_waiting(now);
    context.flow = Flow::Paused;
}

fn needs_login(context: &Context<'_, '_>) -> bool {
    !context.session.is_authenticated && context.services.users.needs_login()
}

fn select(context: &mut Context<'_, '_>, [_, index]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let Some(index) = parse_integer(index) else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    if i32::try_from(index).is_err() {
        return reply
            .error("ERR value is out of range, value must between -2147483648 and 2147483647");
    }
    match u8::try_from(index) {
        Ok(db) if usize::from(db) < DATABASES => {
            use_database(context, db);
            reply.ok();
        }
        _ => reply.error("ERR DB index is out of range"),
    }
}

fn ping(context: &mut Context<'_, '_>, _: &[&[u8]; 1], words: &[&[u8]], reply: &mut Encoder<'_>) {
    #[cfg(feature = "compat")]
    if context.session.is_only_subscriber() && words.len() <= 1 {
        reply.array(2);
        reply.bulk(b"pong");
        return reply.bulk(words.first().unwrap_or(&b"".as_slice()));
    }
    let _ = context;
    match words {
        [] => reply.simple("PONG"),
        [message] => reply.bulk(message),
        _ => refusal::wrong_arity(reply, "ping"),
    }
}

fn echo(_: &mut Context<'_, '_>, [_, message]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    reply.bulk(message);
}

fn quit(context: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    reply.ok();
    context.flow = Flow::Close;
}

/// Resets the connection, except for its library's name, which Redis keeps too.
fn reset(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    speak(context, Protocol::Resp2);
    use_database(context, 0);
    let session = &mut *context.session;
    session.reply_mode = ReplyMode::On;
    session.discard();
    #[cfg(feature = "compat")]
    {
        session.subscriptions = None;
    }
    session.is_authenticated = !context.services.users.needs_login();
    session.log_out();
    #[cfg(feature = "compat")]
    {
        session.monitor = None;
        session.tracker = None;
    }
    session.client.rename(NameKind::Connection, b"");
    session.client.is_no_evict.store(false, Ordering::Relaxed);
    session.client.is_no_touch.store(false, Ordering::Relaxed);
    reply.simple("RESET");
}

fn speak(context: &mut Context<'_, '_>, protocol: Protocol) {
    context.session.protocol = protocol;
    context
        .session
        .client
        .protocol
        .store(protocol_number(protocol), Ordering::Relaxed);
}

fn use_database(context: &mut Context<'_, '_>, db: u8) {
    context.session.db = db;
    context.session.client.db.store(db, Ordering::Relaxed);
}

const fn protocol_number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    }
}

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

const AUTH_WITHOUT_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the default \
    user. Are you sure your configuration is correct?";

const HELLO_NO_AUTH: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
    <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version \
    at the same time";

/// Served before authentication and during a pause: otherwise no new client could end the pause.
const OPENING: Flags = Flags::FAST
    .and(Flags::NOSCRIPT)
    .and(Flags::LOADING)
    .and(Flags::NO_AUTH)
    .and(Flags::NO_PAUSE);

const CONNECTION: Spec = Spec {
    since: "1.0.0",
    ..Spec::of(least!(ping), Flags::FAST, Keys::None, "connection")
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Returns PONG, or the given message.
    "ping" "[message]", ..CONNECTION;

    /// Chooses the protocol, authenticates and names the connection.
    "hello" "[protover] [AUTH username password] [SETNAME clientname]" since "6.0.0",
        call: least!(hello), flags: OPENING, ..CONNECTION;

    /// Authenticates the connection.
    "auth" "[username] password", call: least!(auth), flags: OPENING, ..CONNECTION;

    /// Chooses the database of the connection, 0 to 15.
    "select" "index", call: exact!(select), flags: Flags::FAST.and(Flags::LOADING), ..CONNECTION;

    /// Returns the given message.
    "echo" "message", call: exact!(echo), flags: Flags::FAST.and(Flags::LOADING), ..CONNECTION;

    /// Resets the connection.
    "reset" since "6.2.0",
        call: exact!(reset), flags: OPENING.and(Flags::TRANSACTION), ..CONNECTION;

    /// Closes the connection.
    "quit", call: Call::any(-1, quit), flags: OPENING.and(Flags::TRANSACTION), ..CONNECTION;
};
