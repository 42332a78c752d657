//! The arguments of a command in COMMAND DOCS, parsed from its syntax: redis-cli shows them as
//! hints and in HELP.

use locknode_resp::Encoder;

/// One argument, or one group in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Argument<'a> {
    /// As it is written, without the brackets of an optional one.
    text: &'a str,
    is_optional: bool,
}

/// Parses the arguments of a syntax such as `key value [NX|XX] [key ...]`.
pub(super) fn arguments(syntax: &str) -> Vec<Argument<'_>> {
    let mut rest = syntax.trim_start();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let is_optional = rest.starts_with('[');
        let end = if is_optional {
            group_len(rest)
        } else {
            rest.find(' ').unwrap_or(rest.len())
        };
        let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let inner = word.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        found.push(Argument {
            text: inner.unwrap_or(word),
            is_optional,
        });
        rest = after.trim_start();
    }
    found
}

/// Returns the length of a group in brackets, including inner groups.
fn group_len(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return at + 1,
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text.len()
}

impl Argument<'_> {
    /// Writes the argument's map.
    pub(super) fn write(self, reply: &mut Encoder<'_>) {
        reply.map(if self.is_optional { 4 } else { 3 });
        let kind = if self.text == "key" { "key" } else { "string" };
        for (field, text) in [
            ("name", self.text),
            ("type", kind),
            ("display_text", self.text),
        ] {
            reply.bulk(field.as_bytes());
            reply.bulk(text.as_bytes());
        }
        if self.is_optional {
            reply.bulk(b"flags");
            reply.set(1);
            reply.simple("optional");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syntax_is_split_into_its_arguments() {
        let rows: [(&str, &[(&str, bool)]); 5] = [
            ("", &[]),
            ("key value", &[("key", false), ("value", false)]),
            (
                "key [NX|EX seconds] [GET]",
                &[("key", false), ("NX|EX seconds", true), ("GET", true)],
            ),
            ("key [key ...]", &[("key", false), ("key ...", true)]),
            (
                "[LIBRARYNAME <pattern> [x]] [y",
                &[("LIBRARYNAME <pattern> [x]", true), ("[y", true)],
            ),
        ];
        for (syntax, want) in rows {
            let found: Vec<_> = arguments(syntax)
                .iter()
                .map(|it| (it.text, it.is_optional))
                .collect();
            assert_eq!(found, want, "{syntax}");
        }
    }

    #[test]
    fn every_syntax_has_as_many_arguments_as_the_arity() {
        for spec in crate::command::Commands::new().all() {
            let arguments = arguments(spec.syntax);
            let needed = arguments.iter().filter(|it| !it.is_optional).count();
            let is_container = !spec.subcommands.is_empty();
            let arity = usize::try_from(spec.call.arity().unsigned_abs()).unwrap_or(0);
            let may_have_more = spec.call.arity() < 0 || needed == arguments.len();
            assert!(
                is_container || (needed + 1 == arity && may_have_more),
                "{}: {} has {needed}",
                spec.name,
                spec.syntax
            );
        }
    }
}
