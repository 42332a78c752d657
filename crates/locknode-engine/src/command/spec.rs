//! What a command declares: the row from which dispatch, COMMAND and the pause rules are derived.

use locknode_resp::Encoder;

use super::context::Context;
pub(super) use super::keys::Keys;
pub(super) use crate::flags::Flags;

/// The function behind a command. `args[0]` is the name as the client wrote it, and for a
/// subcommand `args[1]` is its own. The arity has been checked, and the shards of the keys are
/// locked.
pub(crate) type Run = fn(&mut Context<'_, '_>, &[&[u8]], &mut Encoder<'_>);

/// One command or subcommand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    /// Lower case.
    pub(crate) name: &'static str,
    /// Its arguments as people write them: `key value [NX|XX] [key ...]`. Empty for containers,
    /// whose subcommands have their own.
    pub(crate) syntax: &'static str,
    pub(crate) call: Call,
    pub(crate) flags: Flags,
    pub(crate) keys: Keys,
    /// For COMMAND DOCS: a summary of one sentence.
    pub(crate) summary: &'static str,
    /// For COMMAND DOCS: `string`, `generic`, `connection`, `server`, `scripting`, `pubsub`
    /// or `transactions`.
    pub(crate) group: &'static str,
    /// For COMMAND DOCS: the version of Redis (or Valkey) that introduced it.
    pub(crate) since: &'static str,
    /// The subcommands of a container, except HELP, which every container has.
    pub(crate) subcommands: &'static [Self],
}

/// How many arguments a command takes, and its function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// The least number of arguments, including names, and how many more there may be.
    least: usize,
    more: usize,
    pub(crate) run: Run,
}

impl Call {
    /// The call of a function that accepts any number of arguments; [`exact`] and [`least`] are for
    /// functions that name theirs.
    pub(super) const fn any(arity: i32, run: Run) -> Self {
        Self {
            least: arity.unsigned_abs() as usize,
            more: if arity < 0 { MORE_ARGS_MAX } else { 0 },
            run,
        }
    }

    /// The same call, which is refused with fewer arguments than this, including names.
    #[cfg(any(feature = "acl", feature = "compat"))]
    pub(super) const fn with_least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// Redis's convention: the exact number of arguments including names, or the negated minimum.
    pub(crate) const fn arity(&self) -> i32 {
        if self.more == 0 {
            number(self.least)
        } else {
            -number(self.least)
        }
    }
}

/// The call of a function that takes exactly the arguments that it names: `[_, key]: &[&[u8]; 2]`.
/// Further parameters come second.
macro_rules! exact {
    ($run:path $(, $with:expr)?) => {
        $crate::command::spec::Call::any(
            $crate::command::spec::exact_arity(|context, args, reply| {
                $run(context, $($with,)? args, reply)
            }),
            |context, args, reply| match args.try_into() {
                Ok(args) => $run(context, $($with,)? args, reply),
                Err(_) => $crate::command::spec::unchecked(),
            },
        )
    };
}
pub(super) use exact;

/// Like [`exact`], for a function that takes its named arguments and a slice of the following ones.
macro_rules! least {
    ($run:path $(, $with:expr)?) => {
        $crate::command::spec::Call::any(
            $crate::command::spec::least_arity(|context, args, rest, reply| {
                $run(context, $($with,)? args, rest, reply)
            }),
            |context, args, reply| match args.split_first_chunk() {
                Some((args, rest)) => $run(context, $($with,)? args, rest, reply),
                None => $crate::command::spec::unchecked(),
            },
        )
    };
}
pub(super) use least;

/// A table of commands, or of the subcommands of a container. A row is the summary, the name, the
/// syntax if there are arguments, the version that introduced it, and the fields that differ from a
/// base.
macro_rules! specs {
    ($(
        #[doc = $summary:literal]
        $name:literal $($syntax:literal)? $(since $since:literal)?
        $(, $field:ident: $value:expr)*, ..$base:ident;
    )+) => {
        &[$($crate::command::spec::Spec {
            name: $name,
            $(syntax: $syntax,)?
            summary: $summary.trim_ascii_start(),
            $(since: $since,)?
            $($field: $value,)*
            ..$base
        }),+]
    };
}
pub(super) use specs;

/// The arity in a function's signature.
pub(super) const fn exact_arity<const N: usize>(
    _: fn(&mut Context<'_, '_>, &[&[u8]; N], &mut Encoder<'_>),
) -> i32 {
    number(N)
}

/// The arity in a function's signature.
pub(super) const fn least_arity<const N: usize>(_: RunLeast<N>) -> i32 {
    -number(N)
}

type RunLeast<const N: usize> = fn(&mut Context<'_, '_>, &[&[u8]; N], &[&[u8]], &mut Encoder<'_>);

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a function names a few arguments"
)]
const fn number(arguments: usize) -> i32 {
    arguments as i32
}

#[cold]
pub(super) fn unchecked() {
    unreachable!("the arity that the call declares is checked before it runs");
}

impl Spec {
    /// A row without name and texts, as a base for others.
    pub(super) const fn of(call: Call, flags: Flags, keys: Keys, group: &'static str) -> Self {
        Self {
            name: "",
            syntax: "",
            call,
            flags,
            keys,
            summary: "",
            group,
            since: "",
            subcommands: &[],
        }
    }

    /// Returns whether this many arguments, including names, are allowed.
    #[inline]
    pub(crate) fn accepts(&self, args: usize) -> bool {
        args.wrapping_sub(self.call.least) <= self.call.more
    }

    /// Returns whether there are too many of them for a command that takes any number.
    pub(crate) const fn is_too_long(&self, args: usize) -> bool {
        self.call.more > 0 && args > self.call.least + self.call.more
    }

    /// Returns whether one command takes little time for its length: Redis calls PUBLISH fast however
    /// many subscribers there are.
    #[inline]
    pub(crate) const fn is_quick(&self) -> bool {
        let is_fast = self.flags.has(Flags::FAST) && !self.flags.has(Flags::MAY_WRITE);
        is_fast || self.flags.has(Flags::QUICK)
    }

    /// Finds the subcommand of that name, in any case, and its place.
    pub(crate) fn subcommand(&self, name: &[u8]) -> Option<(usize, &'static Self)> {
        let is_it = |(_, each): &(usize, &Self)| each.name.as_bytes().eq_ignore_ascii_case(name);
        self.subcommands.iter().enumerate().find(is_it)
    }

    /// Returns the row that a call with these arguments has: that of its subcommand, or this one; `None`
    /// for a subcommand that does not exist. HELP has no row of its own.
    pub(super) fn row(&self, args: &[&[u8]]) -> Option<&Self> {
        match args.get(1) {
            Some(name) if !self.subcommands.is_empty() && !name.eq_ignore_ascii_case(b"help") => {
                self.subcommand(name).map(|(_, row)| row)
            }
            _ => Some(self),
        }
    }

    /// Returns `client|setname`, as Redis writes it in errors, CLIENT LIST and COMMAND.
    pub(crate) fn full_name(&self, subcommand: &str) -> String {
        format!("{}|{subcommand}", self.name)
    }
}

/// How many arguments a command takes besides those that its syntax demands. All of them are worked
/// on while others wait: more than 30 ms for so many keys, on a machine that is not busy.
pub(crate) const MORE_ARGS_MAX: usize = 32_768;
