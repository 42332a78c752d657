//! The Redis commands that a native script may call.
//!
//! A script whose text names another command is refused before it runs, so that it never stops
//! halfway because of it; a name known only at run time is refused then. Commands whose cost
//! depends on the number of keys on the node are excluded, because a script could repeat them
//! endlessly.

/// What a script needs to know about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Writes,
}

/// Looks up a command by name, in any case; `None` when native scripts do not have it.
pub(super) fn effect(name: &[u8]) -> Option<Effect> {
    COMMANDS
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()))
        .map(|&(_, effect)| effect)
}

const COMMANDS: [(&str, Effect); 38] = [
    ("get", Effect::Reads),
    ("set", Effect::Writes),
    ("del", Effect::Writes),
    ("unlink", Effect::Writes),
    ("exists", Effect::Reads),
    ("pexpire", Effect::Writes),
    ("expire", Effect::Writes),
    ("pexpireat", Effect::Writes),
    ("expireat", Effect::Writes),
    ("persist", Effect::Writes),
    ("ttl", Effect::Reads),
    ("pttl", Effect::Reads),
    ("expiretime", Effect::Reads),
    ("pexpiretime", Effect::Reads),
    ("setnx", Effect::Writes),
    ("setex", Effect::Writes),
    ("psetex", Effect::Writes),
    ("getset", Effect::Writes),
    ("getdel", Effect::Writes),
    ("getex", Effect::Writes),
    ("mget", Effect::Reads),
    ("mset", Effect::Writes),
    ("msetnx", Effect::Writes),
    ("msetex", Effect::Writes),
    ("getrange", Effect::Reads),
    ("strlen", Effect::Reads),
    ("digest", Effect::Reads),
    ("incr", Effect::Writes),
    ("incrby", Effect::Writes),
    ("decr", Effect::Writes),
    ("decrby", Effect::Writes),
    ("type", Effect::Reads),
    ("touch", Effect::Reads),
    ("delex", Effect::Writes),
    ("delifeq", Effect::Writes),
    ("time", Effect::Reads),
    ("echo", Effect::Reads),
    ("ping", Effect::Reads),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_any_case() {
        let rows: [(&[u8], Option<Effect>); 4] = [
            (b"GET", Some(Effect::Reads)),
            (b"pExpire", Some(Effect::Writes)),
            (b"zadd", None),
            (b"", None),
        ];
        for (name, want) in rows {
            assert_eq!(effect(name), want);
        }
    }
}
