//! Where a command's keys are among its arguments.

use locknode_resp::parse_integer;

/// Where a command's keys are among its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// It has no keys.
    None,
    /// The first argument.
    One,
    /// From the first argument to the end, every `step` arguments.
    Each { step: usize },
    /// From the first argument to the last but one.
    #[cfg(feature = "compat")]
    ButLast,
    /// A count at this argument, then as many groups of `step` arguments, each beginning with a
    /// key.
    Counted { at: usize, step: usize },
    /// The whole database.
    All,
    /// The command locks its own keys (scripts).
    Own,
}

impl Keys {
    /// Returns the keys among the arguments. If the count is invalid or too large, returns the keys
    /// that are there; the command itself refuses it.
    pub(crate) fn of<'a>(self, args: &[&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
        let (first, step, groups) = match self {
            Self::None | Self::Own | Self::All => (0, 1, 0),
            Self::One => (1, 1, 1),
            Self::Each { step } => (1, step, usize::MAX),
            #[cfg(feature = "compat")]
            Self::ButLast => (1, 1, args.len().saturating_sub(2)),
            Self::Counted { at, step } => (at + 1, step, counted(args, at)),
        };
        args.get(first..)
            .unwrap_or_default()
            .iter()
            .step_by(step)
            .take(groups)
            .copied()
    }
}

/// Returns the count at an argument; 0 when it is invalid.
pub(super) fn counted(args: &[&[u8]], at: usize) -> usize {
    let count = args.get(at).and_then(|count| parse_integer(count));
    count.map_or(0, |count| usize::try_from(count).unwrap_or(0))
}
