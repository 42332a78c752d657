//! What COMMAND INFO and COMMAND DOCS return for one command or subcommand, derived from its row in
//! the table.

use locknode_resp::Encoder;

use super::argument::arguments;
use super::category::Category;
use super::spec::{Call, Flags, Keys, Spec};
use super::subcommand::{self, HELP};

/// One command or subcommand as COMMAND describes it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// `get`, or `client|list`.
    pub(crate) name: String,
    pub(crate) spec: Spec,
    subcommands: Vec<Self>,
}

/// The positions of a command's keys that COMMAND shows. Scripts locate their own keys, after a
/// count.
pub(crate) fn key_positions(spec: &Spec) -> Keys {
    match spec.keys {
        Keys::Own if spec.name.starts_with("eval") => Keys::Counted { at: 2, step: 1 },
        Keys::Own => Keys::None,
        keys => keys,
    }
}

impl Entry {
    pub(super) fn of(spec: &Spec) -> Self {
        let help = Spec {
            name: HELP,
            call: Call::any(2, subcommand::run),
            flags: spec.flags.without(Flags::ADMIN),
            summary: "Print the subcommands.",
            since: "5.0.0",
            subcommands: &[],
            ..*spec
        };
        let has_help = !spec.subcommands.is_empty();
        let subcommands = spec.subcommands.iter().chain(has_help.then_some(&help));
        let entry = |each: &Spec| Self {
            name: spec.full_name(each.name),
            spec: *each,
            subcommands: Vec::new(),
        };
        Self {
            name: spec.name.to_owned(),
            spec: *spec,
            subcommands: subcommands.map(entry).collect(),
        }
    }

    /// The command, then its subcommands.
    pub(crate) fn with_subcommands(spec: &Spec) -> impl Iterator<Item = Self> {
        let command = Self::of(spec);
        let subcommands = command.subcommands.clone();
        std::iter::once(command).chain(subcommands)
    }

    /// The ten elements of COMMAND INFO.
    pub(super) fn write_info(&self, reply: &mut Encoder<'_>) {
        let (first, last, step) = match key_positions(&self.spec) {
            Keys::One => (1, 1, 1),
            Keys::Each { step } => (1, -1, step),
            #[cfg(feature = "compat")]
            Keys::ButLast => (1, -2, 1),
            // Movable: Redis lists them only in the key specification.
            Keys::None | Keys::All | Keys::Own | Keys::Counted { .. } => (0, 0, 0),
        };
        reply.array(10);
        reply.bulk(self.name.as_bytes());
        reply.integer(i64::from(self.spec.call.arity()));
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
        let arguments = arguments(self.spec.syntax);
        reply.map(3 + usize::from(has_subcommands) + usize::from(!arguments.is_empty()));
        for (field, text) in [
            ("summary", self.spec.summary),
            ("since", self.spec.since),
            ("group", self.spec.group),
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

    /// Returns whether the category, named without its `@`, is one of the command's.
    pub(super) fn is_in_category(&self, name: &[u8]) -> bool {
        let is_it = |it: &Category| it.name().as_bytes().strip_prefix(b"@") == Some(name);
        let category = Category::ALL.into_iter().find(is_it);
        category.is_some_and(|category| category.has(&self.name, &self.spec))
    }

    fn categories(&self) -> Vec<&'static str> {
        let of_redis = |category: &Category| *category != Category::Lock;
        let categories = Category::ALL.into_iter().filter(of_redis);
        let its = categories.filter(|category| category.has(&self.name, &self.spec));
        its.map(Category::name).collect()
    }

    fn flag_names(&self) -> Vec<&'static str> {
        let rows = [
            ("write", self.spec.flags.has(Flags::WRITE)),
            ("readonly", self.spec.flags.has(Flags::READONLY)),
            ("denyoom", self.spec.flags.has(Flags::DENYOOM)),
            ("admin", self.spec.flags.has(Flags::ADMIN)),
            ("pubsub", self.spec.group == "pubsub"),
            ("noscript", self.spec.flags.has(Flags::NOSCRIPT)),
            ("loading", self.spec.flags.has(Flags::LOADING)),
            ("fast", self.spec.flags.has(Flags::FAST)),
            ("no_auth", self.spec.flags.has(Flags::NO_AUTH)),
            ("no_multi", self.spec.flags.has(Flags::NO_MULTI)),
            (
                "movablekeys",
                matches!(key_positions(&self.spec), Keys::Counted { .. }),
            ),
        ];
        rows.into_iter()
            .filter(|(_, applies)| *applies)
            .map(|(name, _)| name)
            .collect()
    }

    fn write_key_specification(&self, reply: &mut Encoder<'_>) {
        let keys = key_positions(&self.spec);
        let begin = match keys {
            Keys::None | Keys::All | Keys::Own => return reply.set(0),
            Keys::One | Keys::Each { .. } => 1,
            #[cfg(feature = "compat")]
            Keys::ButLast => 1,
            Keys::Counted { at, .. } => at,
        };
        reply.set(1);
        reply.map(3);
        reply.bulk(b"flags");
        write_words(
            reply,
            if self.spec.flags.has(Flags::READONLY) {
                &["RO"]
            } else {
                &["RW"]
            },
        );
        write_search(reply, "begin_search", "index", &[("index", begin, 1)]);
        match keys {
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
            #[cfg(feature = "compat")]
            Keys::ButLast => {
                let spec = [("lastkey", 2, -1), ("keystep", 1, 1), ("limit", 0, 1)];
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

/// Writes one half of a key specification; each number comes with its sign.
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
