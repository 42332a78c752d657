//! What COMMAND INFO and COMMAND DOCS tell about one command or subcommand, derived from its row in the table.

use locknode_resp::Encoder;

use super::argument::arguments;
use super::introspection::container;
use super::spec::{Flags, Keys, Spec};
use super::subcommand::{Container, HELP, Subcommand};

/// One command or subcommand as COMMAND tells it.
#[derive(Debug)]
pub(super) struct Entry {
    /// `get`, or `client|list`.
    pub(super) name: String,
    arity: i32,
    flags: Flags,
    keys: Keys,
    group: &'static str,
    syntax: &'static str,
    summary: &'static str,
    since: &'static str,
    subcommands: Vec<Self>,
}

/// Where a command's keys are, as far as COMMAND tells. Scripts find their own keys, after a count.
pub(super) fn key_positions(spec: &Spec) -> Keys {
    match spec.keys {
        Keys::Own if spec.name.starts_with("eval") => Keys::Counted { at: 2, step: 1 },
        Keys::Own => Keys::None,
        keys => keys,
    }
}

impl Entry {
    pub(super) fn of(spec: &Spec) -> Self {
        let subcommands = container(spec.name).map_or_else(Vec::new, |container| {
            let own = container.subcommands.iter();
            let own = own.map(|each| Self::of_subcommand(spec, container, each));
            own.chain([Self::of_help(spec, container)]).collect()
        });
        Self {
            name: spec.name.to_owned(),
            arity: spec.arity,
            flags: spec.flags,
            keys: key_positions(spec),
            group: spec.group,
            syntax: spec.syntax,
            summary: spec.summary,
            since: spec.since,
            subcommands,
        }
    }

    /// The subcommand that every container has beside those of its table.
    pub(super) fn of_help(spec: &Spec, container: &Container) -> Self {
        Self {
            name: container.full_name(HELP),
            arity: 2,
            flags: spec.flags,
            keys: Keys::None,
            group: spec.group,
            syntax: "",
            summary: "Print the subcommands.",
            since: "5.0.0",
            subcommands: Vec::new(),
        }
    }

    pub(super) fn of_subcommand(
        spec: &Spec,
        container: &Container,
        subcommand: &Subcommand,
    ) -> Self {
        Self {
            name: container.full_name(subcommand.name),
            arity: subcommand.arity,
            flags: spec.flags,
            keys: Keys::None,
            group: spec.group,
            syntax: subcommand.syntax,
            summary: subcommand.summary,
            since: subcommand.since,
            subcommands: Vec::new(),
        }
    }

    /// The command, then its subcommands.
    pub(super) fn with_subcommands(spec: &Spec) -> Vec<Self> {
        let mut command = Self::of(spec);
        let subcommands = std::mem::take(&mut command.subcommands);
        std::iter::once(command).chain(subcommands).collect()
    }

    /// The ten elements of COMMAND INFO.
    pub(super) fn write_info(&self, reply: &mut Encoder<'_>) {
        let (first, last, step) = match self.keys {
            Keys::One => (1, 1, 1),
            Keys::Each { step } => (1, -1, step),
            // Movable: Redis tells them only in the key specification.
            Keys::None | Keys::All | Keys::Own | Keys::Counted { .. } => (0, 0, 0),
        };
        reply.array(10);
        reply.bulk(self.name.as_bytes());
        reply.integer(i64::from(self.arity));
        write_words(reply, &self.flag_names());
        reply.integer(first);
        reply.integer(last);
        reply.integer(i64::try_from(step).unwrap_or(i64::MAX));
        write_words(reply, &self.categories());
        // No tips.
        reply.set(0);
        self.write_key_specification(reply);
        reply.array(self.subcommands.len());
        for subcommand in &self.subcommands {
            subcommand.write_info(reply);
        }
    }

    /// The map of COMMAND DOCS.
    pub(super) fn write_docs(&self, reply: &mut Encoder<'_>) {
        let has_subcommands = !self.subcommands.is_empty();
        let arguments = arguments(self.syntax);
        reply.map(3 + usize::from(has_subcommands) + usize::from(!arguments.is_empty()));
        for (field, text) in [
            ("summary", self.summary),
            ("since", self.since),
            ("group", self.group),
        ] {
            reply.bulk(field.as_bytes());
            reply.bulk(text.as_bytes());
        }
        if !arguments.is_empty() {
            reply.bulk(b"arguments");
            reply.array(arguments.len());
            arguments.iter().for_each(|argument| argument.write(reply));
        }
        if has_subcommands {
            reply.bulk(b"subcommands");
            reply.map(self.subcommands.len());
            for subcommand in &self.subcommands {
                reply.bulk(subcommand.name.as_bytes());
                subcommand.write_docs(reply);
            }
        }
    }

    /// Whether the category, named without its `@`, is one of the command's.
    pub(super) fn is_in_category(&self, name: &[u8]) -> bool {
        let is_it = |category: &&str| category.as_bytes().strip_prefix(b"@") == Some(name);
        self.categories().iter().any(is_it)
    }

    /// The ACL categories that Redis derives from the flags and the group.
    fn categories(&self) -> Vec<&'static str> {
        let is_admin = self.flags.has(Flags::ADMIN);
        let rows = [
            ("@write", self.flags.has(Flags::WRITE)),
            ("@read", self.flags.has(Flags::READONLY)),
            ("@keyspace", self.group == "generic"),
            ("@string", self.group == "string"),
            ("@scripting", self.group == "scripting"),
            ("@connection", self.group == "connection"),
            ("@admin", is_admin),
            ("@dangerous", is_admin),
            ("@fast", self.flags.has(Flags::FAST)),
            ("@slow", !self.flags.has(Flags::FAST)),
        ];
        rows.into_iter()
            .filter(|(_, applies)| *applies)
            .map(|(name, _)| name)
            .collect()
    }

    fn flag_names(&self) -> Vec<&'static str> {
        let rows = [
            ("write", self.flags.has(Flags::WRITE)),
            ("readonly", self.flags.has(Flags::READONLY)),
            ("denyoom", self.flags.has(Flags::DENYOOM)),
            ("admin", self.flags.has(Flags::ADMIN)),
            ("noscript", self.flags.has(Flags::NOSCRIPT)),
            ("loading", self.flags.has(Flags::LOADING)),
            ("fast", self.flags.has(Flags::FAST)),
            ("no_auth", self.flags.has(Flags::NO_AUTH)),
            ("movablekeys", matches!(self.keys, Keys::Counted { .. })),
        ];
        rows.into_iter()
            .filter(|(_, applies)| *applies)
            .map(|(name, _)| name)
            .collect()
    }

    fn write_key_specification(&self, reply: &mut Encoder<'_>) {
        let begin = match self.keys {
            Keys::None | Keys::All | Keys::Own => return reply.set(0),
            Keys::One | Keys::Each { .. } => 1,
            Keys::Counted { at, .. } => at,
        };
        reply.set(1);
        reply.map(3);
        reply.bulk(b"flags");
        write_words(
            reply,
            if self.flags.has(Flags::READONLY) {
                &["RO"]
            } else {
                &["RW"]
            },
        );
        write_search(reply, "begin_search", "index", &[("index", begin, 1)]);
        match self.keys {
            Keys::Counted { step, .. } => {
                let spec = [
                    ("keynumidx", 0, 1),
                    ("firstkey", 1, 1),
                    ("keystep", step, 1),
                ];
                write_search(reply, "find_keys", "keynum", &spec);
            }
            Keys::Each { step } => {
                let spec = [("lastkey", 1, -1), ("keystep", step, 1), ("limit", 0, 1)];
                write_search(reply, "find_keys", "range", &spec);
            }
            _ => {
                let spec = [("lastkey", 0, 1), ("keystep", 1, 1), ("limit", 0, 1)];
                write_search(reply, "find_keys", "range", &spec);
            }
        }
    }
}

fn write_words(reply: &mut Encoder<'_>, words: &[&str]) {
    reply.set(words.len());
    for word in words {
        reply.simple(word);
    }
}

/// One half of a key specification; each number comes with its sign.
fn write_search(reply: &mut Encoder<'_>, half: &str, kind: &str, spec: &[(&str, usize, i64)]) {
    reply.bulk(half.as_bytes());
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(spec.len());
    for (name, number, sign) in spec {
        reply.bulk(name.as_bytes());
        reply.integer(sign * i64::try_from(*number).unwrap_or(i64::MAX));
    }
}
