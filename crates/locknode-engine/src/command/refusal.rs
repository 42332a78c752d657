//! Error texts that several commands share, byte for byte as in Redis.

use std::time::Duration;

use locknode_resp::Encoder;

use crate::slab::{KEY_LEN_MAX, VALUE_LEN_MAX};

pub(crate) const SYNTAX: &str = "ERR syntax error";
pub(crate) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
pub(crate) const WRONG_TYPE: &str =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(crate) const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";
pub(crate) const DEBUG_DISABLED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is \
    set to \"local\", you can run it from a local connection, otherwise you need to set this option in the \
    configuration file, and then restart the server.";
pub(crate) const ABORTED_BECAUSE: &str = "EXECABORT Transaction discarded because of: ";
pub(crate) const BUSY: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
pub(crate) const NO_AUTH: &str = "NOAUTH Authentication required.";

/// `ERR syntax error`.
#[cold]
pub(crate) fn syntax(reply: &mut Encoder<'_>) {
    reply.error(SYNTAX);
}

/// Refuses a command on a key of another type.
#[cold]
pub(crate) fn wrong_type(reply: &mut Encoder<'_>) {
    reply.error(WRONG_TYPE);
}

/// Refuses to let a hash, a list or a set grow further.
#[cfg(feature = "compat")]
#[cold]
pub(crate) fn value_too_large(reply: &mut Encoder<'_>) {
    unsupported(
        reply,
        &format!(
            "a value of more than {} bytes: this node holds locks",
            crate::values::BYTES_MAX
        ),
    );
}

/// Refuses a key or a value that the table cannot hold, and returns whether it did. This takes a
/// raised `proto-max-bulk-len`.
#[inline]
pub(crate) fn too_long(reply: &mut Encoder<'_>, key: &[u8], value: &[u8]) -> bool {
    let is_too_long = key.len() > KEY_LEN_MAX || value.len() > VALUE_LEN_MAX;
    if is_too_long {
        refuse_too_long(reply);
    }
    is_too_long
}

#[cold]
fn refuse_too_long(reply: &mut Encoder<'_>) {
    reply.error(&format!(
        "ERR a key is at most {KEY_LEN_MAX} bytes long and a value at most {VALUE_LEN_MAX} bytes"
    ));
}

/// Replaces a reply that began at `mark` with the error that it is too long.
#[cold]
pub(crate) fn reply_too_long(reply: &mut Encoder<'_>, mark: usize) {
    reply.truncate(mark);
    reply.error("ERR the reply is longer than client-output-buffer-limit");
}

/// Replaces a reply that began at `mark`: to find what matches a pattern takes too long.
#[cold]
pub(crate) fn hard_pattern(reply: &mut Encoder<'_>, mark: usize) {
    reply.truncate(mark);
    unsupported(
        reply,
        "a pattern that takes so long to compare: make it, or the names, shorter",
    );
}

/// `LOADING locknode is in its restart quarantine, <ms> ms left` `[G2]`.
#[cold]
pub(crate) fn quarantined(reply: &mut Encoder<'_>, left: Duration) {
    let left_ms = left.as_nanos().div_ceil(1_000_000);
    reply.error(&format!(
        "LOADING locknode is in its restart quarantine, {left_ms} ms left"
    ));
}

/// `UNSUPPORTED ...`: Redis would do it, but this node does not, through no fault of the client.
/// Redis does not use this prefix: drivers that turn every `ERR` into "false", which for SET means
/// "held", raise it with its text.
#[cold]
pub(crate) fn unsupported(reply: &mut Encoder<'_>, text: &str) {
    reply.error(&format!("UNSUPPORTED {text}"));
}

/// Replaces the refusal of an EXEC, which begins at `start`, with that of its transaction.
#[cold]
pub(crate) fn exec(out: &mut Vec<u8>, start: usize) {
    let cause = out.split_off(start);
    let cause = cause.strip_prefix(b"-").unwrap_or(&cause);
    let cause = cause.strip_prefix(b"ERR ").unwrap_or(cause);
    out.push(b'-');
    out.extend_from_slice(ABORTED_BECAUSE.as_bytes());
    out.extend_from_slice(cause);
}

/// `ERR wrong number of arguments for 'name' command`.
#[cold]
pub(crate) fn wrong_arity(reply: &mut Encoder<'_>, name: &str) {
    reply.error(&format!(
        "ERR wrong number of arguments for '{name}' command"
    ));
}

/// `ERR invalid expire time in 'name' command`.
#[cold]
pub(crate) fn invalid_expire(reply: &mut Encoder<'_>, name: &str) {
    reply.error(&format!("ERR invalid expire time in '{name}' command"));
}

/// `ERR unknown command 'name', with args beginning with: ...`, with Redis's limit of 128 bytes on
/// the name and on the quoted arguments.
#[cold]
pub(crate) fn unknown_command(reply: &mut Encoder<'_>, args: &[&[u8]]) {
    let Some((name, rest)) = args.split_first() else {
        return;
    };
    let mut message = b"ERR unknown command '".to_vec();
    message.extend_from_slice(quoted(name, QUOTED_MAX));
    message.extend_from_slice(b"', with args beginning with: ");
    let start = message.len();
    for arg in rest {
        let used = message.len() - start;
        if used >= QUOTED_MAX {
            break;
        }
        message.push(b'\'');
        message.extend_from_slice(quoted(arg, QUOTED_MAX - used));
        message.extend_from_slice(b"' ");
    }
    reply.error_bytes(&message);
}

/// `ERR unknown subcommand 'x'. Try CLIENT HELP.`
#[cold]
pub(crate) fn unknown_subcommand(reply: &mut Encoder<'_>, container: &str, sub: &[u8]) {
    let advice = format!("'. Try {} HELP.", container.to_ascii_uppercase());
    quoting(reply, "ERR unknown subcommand '", sub, &advice);
}

/// `ERR unknown subcommand or wrong number of arguments for 'x'. Try CLIENT HELP.`
#[cold]
pub(crate) fn subcommand_syntax(reply: &mut Encoder<'_>, container: &[u8], sub: &[u8]) {
    let container = container.to_ascii_uppercase();
    let advice = format!("'. Try {} HELP.", container.escape_ascii());
    quoting(
        reply,
        "ERR unknown subcommand or wrong number of arguments for '",
        sub,
        &advice,
    );
}

/// An error that quotes what the client sent.
#[cold]
pub(crate) fn quoting(reply: &mut Encoder<'_>, before: &str, arg: &[u8], after: &str) {
    reply.error_bytes(&[before.as_bytes(), quoted(arg, QUOTED_MAX), after.as_bytes()].concat());
}

/// The part of an argument that an error quotes: at most `len` bytes, up to the first zero byte,
/// where a C string ends.
pub(crate) fn quoted(arg: &[u8], len: usize) -> &[u8] {
    let cut = arg.get(..len).unwrap_or(arg);
    cut.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Redis quotes at most this many bytes of what it did not understand.
const QUOTED_MAX: usize = 128;
