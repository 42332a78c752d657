//! ACL: who may log in and what each user may do.
//!
//! LOAD and SAVE read and write the file on a thread of their own, so that nobody else waits for the
//! disk; the command is offered again when it is done.

use std::sync::Arc;

use locknode_resp::{Encoder, parse_integer};

use super::category::Category;
use super::command_entry::Entry;
use super::context::{Context, Flow};
use super::numbers::names;
use super::refusal;
use super::spec::{Call, Flags, Keys, Spec, exact, least, specs};
use super::subcommand;
use crate::file_task::FileTask;
use crate::users::{Account, DEFAULT_USER, RuleError, SetUserRefusal, UserList, UserListError};

fn who_am_i(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    reply.bulk(&context.session.client.user().name);
}

fn categories(
    context: &mut Context<'_, '_>,
    [container, sub]: &[&[u8]; 2],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    match words {
        [] => {
            reply.array(Category::ALL.len());
            for category in Category::ALL {
                reply.bulk(category.name().trim_start_matches('@').as_bytes());
            }
        }
        [word] => {
            let name = format!("@{}", String::from_utf8_lossy(word).to_ascii_lowercase());
            let Some(category) = Category::ALL.into_iter().find(|it| it.name() == name) else {
                return refusal::quoting(reply, "ERR Unknown category '", word, "'");
            };
            let all = context.commands.all().iter();
            let entries = all.flat_map(|spec| Entry::with_subcommands(spec));
            let is_in = |entry: &Entry| category.has(&entry.name, &entry.spec);
            let names: Vec<String> = entries.filter(is_in).map(|it| it.name).collect();
            reply.array(names.len());
            names.iter().for_each(|name| reply.bulk(name.as_bytes()));
        }
        _ => refusal::subcommand_syntax(reply, container, sub),
    }
}

fn list(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let users = context.services.users.all();
    let lines: Vec<Vec<u8>> = users.iter().map(|user| user.describe()).collect();
    write_all(context, &lines, reply);
}

fn user_names(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let users = context.services.users.all();
    let names: Vec<Vec<u8>> = users.iter().map(|user| user.name.to_vec()).collect();
    write_all(context, &names, reply);
}

fn write_all(context: &Context<'_, '_>, lines: &[Vec<u8>], reply: &mut Encoder<'_>) {
    let (mark, output_max) = (reply.out_len(), context.services.settings.output_max());
    reply.array(lines.len());
    for line in lines {
        reply.bulk(line);
        if reply.out_len() - mark > output_max {
            return refusal::reply_too_long(reply, mark);
        }
    }
}

fn get(context: &mut Context<'_, '_>, [_, _, name]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    let Some(account) = context.services.users.find(name) else {
        return reply.null();
    };
    let user = account.user();
    reply.map(6);
    reply.bulk(b"flags");
    let flags = user.flags();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(user.passwords().len());
    for password in user.passwords() {
        reply.bulk(password.to_hex().as_bytes());
    }
    reply.bulk(b"commands");
    reply.bulk(user.command_rules().as_bytes());
    reply.bulk(b"keys");
    reply.bulk(&user.key_rules());
    reply.bulk(b"channels");
    reply.bulk(&user.channel_rules());
    reply.bulk(b"selectors");
    reply.array(0);
}

/// Applies all rules or none.
fn set(
    context: &mut Context<'_, '_>,
    [_, _, name]: &[&[u8]; 3],
    rules: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    match context.services.users.set(name, rules) {
        Ok(account) => {
            close_unwelcome_subscribers(context, &account);
            context.session.look_at_user();
            reply.ok();
        }
        Err(SetUserRefusal::Name) => {
            reply.error("ERR Usernames can't contain spaces or null characters");
        }
        Err(SetUserRefusal::TooManyUsers) => reply.error("ERR a node has at most 10000 users"),
        Err(SetUserRefusal::Rule(_, error @ (RuleError::Selector | RuleError::TooLong))) => {
            refusal::unsupported(reply, error.text());
        }
        Err(SetUserRefusal::Rule(rule, error)) => {
            let rule = refusal::quoted(&rule, usize::MAX);
            let text = ["'".as_bytes(), b": ", error.text().as_bytes()];
            reply.error_bytes(
                &[b"ERR Error in ACL SETUSER modifier '", rule, &text.concat()].concat(),
            );
        }
    }
}

fn delete(context: &mut Context<'_, '_>, args: &[&[u8]], reply: &mut Encoder<'_>) {
    let mut removed = 0;
    for name in args.iter().skip(2) {
        if *name == DEFAULT_USER {
            return reply.error("ERR The 'default' user cannot be removed");
        }
        if let Some(account) = context.services.users.remove(name) {
            close_all(context, &account);
            removed += 1;
        }
    }
    reply.integer(removed);
}

/// Closes the connections of a user that is gone; the caller's own after its reply.
fn close_all(context: &mut Context<'_, '_>, account: &Arc<Account>) {
    for client in context.services.clients.all() {
        if !Arc::ptr_eq(&client.account(), account) {
            continue;
        }
        if client.id == context.session.client.id {
            context.flow = Flow::Close;
        } else {
            client.kill();
        }
    }
}

/// Closes the connections of a user that are subscribed to what it may not be any more.
fn close_unwelcome_subscribers(context: &mut Context<'_, '_>, account: &Arc<Account>) {
    #[cfg(feature = "compat")]
    {
        let channels = &context.services.observers.notifications.channels;
        for client in channels.unwelcome(account) {
            if client.id == context.session.client.id {
                context.flow = Flow::Close;
            } else {
                client.kill();
            }
        }
    }
    let _ = (context, account);
}

fn generate_password(
    context: &mut Context<'_, '_>,
    [container, sub]: &[&[u8]; 2],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let bits = match words {
        [] => Some(256),
        [bits] => parse_integer(bits),
        _ => return refusal::subcommand_syntax(reply, container, sub),
    };
    let Some(bits) = bits else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    let bits = usize::try_from(bits)
        .ok()
        .filter(|bits| (1..=4096).contains(bits));
    let Some(bits) = bits else {
        return reply.error(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096",
        );
    };
    let digits = bits.div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    if !context.services.host.fill_random(&mut bytes) {
        return refusal::unsupported(reply, "random numbers: the host of this node has none");
    }
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    reply.bulk(text.get(..digits).unwrap_or_default().as_bytes());
}

fn load(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let Some(file) = file_name(context, reply) else {
        return;
    };
    let host = Arc::clone(&context.services.host);
    let Some(read) = run_file_task(context, reply, move || host.read_users()) else {
        return;
    };
    let text = match read {
        Ok(text) => text,
        Err(reason) => {
            return reply.error(&format!(
                "ERR Error loading ACLs, opening file '{file}': {reason}"
            ));
        }
    };
    match UserList::parse(&file, &text) {
        Ok(list) => {
            for account in context.services.users.replace_all(list) {
                close_all(context, &account);
            }
            for user in context.services.users.all() {
                if let Some(account) = context.services.users.find(&user.name) {
                    close_unwelcome_subscribers(context, &account);
                }
            }
            context.session.look_at_user();
            reply.ok();
        }
        Err(error) => reply.error(&format!(
            "ERR {error} WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
        )),
    }
}

fn save(context: &mut Context<'_, '_>, _: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    if file_name(context, reply).is_none() {
        return;
    }
    let host = Arc::clone(&context.services.host);
    let text = context.services.users.to_file();
    let write = move || host.write_users(&text).map(|()| Vec::new());
    match run_file_task(context, reply, write) {
        None => {}
        Some(Ok(_)) => reply.ok(),
        Some(Err(reason)) => reply.error(&format!(
            "ERR There was an error trying to save the ACLs: {reason}"
        )),
    }
}

impl UserList {
    /// Reads the users of a file; `file` is its name, for the error.
    ///
    /// # Errors
    ///
    /// Returns what is wrong in which line. A last line without an end is refused, too: the file may have
    /// been cut off there, and what is missing may be what is forbidden.
    pub fn parse(file: &str, text: &[u8]) -> Result<Self, UserListError> {
        Self::parse_with(names(), file, text)
    }
}

/// Returns the name of the file; refuses the command without one.
fn file_name(context: &Context<'_, '_>, reply: &mut Encoder<'_>) -> Option<String> {
    let name = context
        .services
        .settings
        .read(|options| options.aclfile.clone());
    if name.is_empty() {
        reply.error(NO_FILE);
        return None;
    }
    if context.journal.is_some() {
        reply.error("ERR Command not allowed inside a transaction");
        return None;
    }
    Some(name)
}

/// Runs something that waits for the disk, and returns its outcome when the command is offered again.
fn run_file_task(
    context: &mut Context<'_, '_>,
    reply: &mut Encoder<'_>,
    work: impl FnOnce() -> Result<Vec<u8>, String> + Send + 'static,
) -> Option<Result<Vec<u8>, String>> {
    let now = context.moment.time;
    if let Some(task) = context.session.file_task.take() {
        let outcome = task.outcome();
        if outcome.is_none() {
            context.session.file_task = Some(task);
            context.session.begin_waiting(now);
            context.flow = Flow::Paused;
        }
        return outcome;
    }
    let Some(start_thread) = context.services.start_thread else {
        // A simulation, whose host has its file in memory.
        return Some(work());
    };
    let task = FileTask::new(&context.session.client);
    if !start_thread(task.job(work)) {
        reply.error("ERR no thread is left for the file: try again");
        return None;
    }
    context.session.file_task = Some(task);
    context.session.begin_waiting(now);
    context.flow = Flow::Paused;
    None
}

fn absent(_: &mut Context<'_, '_>, [_, sub]: &[&[u8]; 2], _: &[&[u8]], reply: &mut Encoder<'_>) {
    let sub = sub.to_ascii_uppercase();
    refusal::unsupported(
        reply,
        &format!(
            "ACL {}: the node counts what it denied in INFO, and a refused command says why",
            sub.escape_ascii()
        ),
    );
}

const NO_FILE: &str = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users \
    via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in \
    order to store users in the Redis configuration.";

const ACL: Spec = Spec {
    since: "6.0.0",
    ..Spec::of(
        Call::any(-2, subcommand::run),
        Flags::NOSCRIPT.and(Flags::LOADING),
        Keys::None,
        "server",
    )
};

/// For operators. MONITOR does not show these.
const ADMIN: Spec = Spec {
    flags: ACL.flags.and(Flags::ADMIN),
    ..ACL
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Manages users.
    "acl", subcommands: SUBCOMMANDS, ..ACL;
};

const SUBCOMMANDS: &[Spec] = specs! {
    /// List all commands of a category, or all categories.
    "cat" "[<category>]", call: least!(categories), ..ACL;

    /// Remove users and close their connections.
    "deluser" "<username> [<username> ...]", call: Call::any(-3, delete), ..ADMIN;

    /// Refused: the node only counts what it denied.
    "dryrun" "<username> <command> [<arg> ...]" since "7.0.0",
        call: least!(absent).with_least(4), ..ADMIN;

    /// Return a password of random hexadecimal digits.
    "genpass" "[<bits>]", call: least!(generate_password), ..ACL;

    /// Return the rules of a user.
    "getuser" "<username>", call: exact!(get), ..ADMIN;

    /// Return the rules of all users, as the file has them.
    "list", call: exact!(list), ..ADMIN;

    /// Replace all users by those of the file.
    "load", call: exact!(load), ..ADMIN;

    /// Refused: the node only counts what it denied.
    "log" "[<count>|RESET]", call: least!(absent), ..ADMIN;

    /// Write all users to the file.
    "save", call: exact!(save), ..ADMIN;

    /// Create or change a user.
    "setuser" "<username> [<rule> [<rule> ...]]", call: least!(set), ..ADMIN;

    /// Return the names of all users.
    "users", call: exact!(user_names), ..ADMIN;

    /// Return the name of the connection's user.
    "whoami", call: exact!(who_am_i), ..ACL;
};
