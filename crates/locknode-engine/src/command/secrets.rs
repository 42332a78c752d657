//! Which words of a command are passwords, and are shown to nobody.

use std::ops::Range;

use super::spec::Spec;

/// Returns the places of the secret words.
pub(crate) fn of(spec: &Spec, args: &[&[u8]]) -> Range<usize> {
    let is_word = |at: usize, word: &str| {
        let found = args.get(at);
        found.is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes()))
    };
    match spec.name {
        "auth" => 1..args.len(),
        "hello" => (1..args.len())
            .find(|at| is_word(*at, "auth"))
            .map_or(0..0, |at| at + 1..at + 3),
        // Any of the options may be a password.
        "config" if is_word(1, "set") => 2..args.len(),
        "acl" if is_word(1, "setuser") => 2..args.len(),
        _ => 0..0,
    }
}
