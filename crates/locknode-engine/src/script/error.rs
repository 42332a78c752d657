//! What can go wrong with a script, before and while it runs.
//!
//! The texts are those of Redis and Lua wherever they exist, because scripts and users match on
//! them. Only limits that Redis does not have have texts of our own.

/// Why a script could not be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompileError {
    reply: Vec<u8>,
}

impl CompileError {
    /// Lua's error: where it is and what it is.
    #[cfg(feature = "compat")]
    pub(super) fn syntax(text: &str) -> Self {
        let what = b"ERR Error compiling script (new function): ";
        Self::new(&[what, text.as_bytes()])
    }

    /// The `#!` line is wrong.
    pub(super) fn shebang(text: &[u8], what: &[u8]) -> Self {
        Self::new(&[b"ERR ", text, what])
    }

    /// This node does not run the script.
    pub(super) fn unsupported(what: &str) -> Self {
        Self::new(&[b"UNSUPPORTED this node does not run ", what.as_bytes()])
    }

    fn new(parts: &[&[u8]]) -> Self {
        Self {
            reply: one_line(&parts.concat()),
        }
    }

    /// The text of the error reply, with its code and without the leading `-`.
    pub(crate) fn into_reply(self) -> Vec<u8> {
        self.reply
    }
}

/// Why a running script stopped without a result. After an error of its own, what it wrote before
/// stays, as in Redis; after a limit that Redis does not have, nothing stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptError {
    /// The error's code and text.
    pub(super) message: Vec<u8>,
    /// The line of the script that raised the error, counted from 1; 0 for the script as a whole.
    pub(super) line: u32,
    end: End,
}

/// How a script ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It raised an error of its own.
    Raised,
    /// A limit or a client ended it.
    Stopped,
    /// It takes so long that it goes on where it holds up nobody, from its beginning.
    #[cfg(feature = "compat")]
    Slow,
}

impl ScriptError {
    /// `message` starts with an error code; `line` is counted from 1.
    #[must_use]
    pub(crate) fn new(message: Vec<u8>, line: u32) -> Self {
        Self {
            message: one_line(until_zero(&message)),
            line,
            end: End::Raised,
        }
    }

    /// Stops the script where Redis would have continued: `why`, which may begin with its place.
    #[must_use]
    pub(crate) fn stopped(line: u32, why: &str) -> Self {
        let text = format!("UNSUPPORTED script stopped, nothing of it is kept: {why}");
        Self {
            end: End::Stopped,
            ..Self::new(text.into_bytes(), line)
        }
    }

    /// The script was compiled where it was to run, in vain.
    #[cfg(feature = "compat")]
    pub(super) fn not_compiled(error: CompileError) -> Self {
        Self::new(error.into_reply(), 0)
    }

    /// A client has ended the script: Redis's words.
    #[cfg(feature = "compat")]
    pub(super) fn killed(line: u32) -> Self {
        Self {
            end: End::Stopped,
            ..Self::new(
                b"ERR Script killed by user with SCRIPT KILL...".into(),
                line,
            )
        }
    }

    /// The script takes long; see [`ScriptError::is_slow`].
    #[cfg(feature = "compat")]
    pub(super) fn slow() -> Self {
        Self {
            end: End::Slow,
            ..Self::stopped(1, "it takes long")
        }
    }

    /// Returns whether the script is to run again from its beginning, where it holds up nobody.
    #[cfg(feature = "compat")]
    #[must_use]
    pub(crate) fn is_slow(&self) -> bool {
        self.end == End::Slow
    }

    /// Returns whether everything that the script wrote must be undone.
    #[must_use]
    pub(crate) fn was_stopped(&self) -> bool {
        self.end != End::Raised
    }

    /// An error that Lua itself raises, with the position in its text.
    pub(super) fn lua(line: u32, what: &[u8]) -> Self {
        let place = format!("ERR user_script:{line}: ");
        Self::new([place.as_bytes(), what].concat(), line)
    }

    /// The text of the error reply without the leading `-`: the message, then which script and
    /// line.
    #[must_use]
    pub(crate) fn reply(&self, sha1_hex: &[u8]) -> Vec<u8> {
        let mut text = self.message.clone();
        if self.line == 0 {
            return text;
        }
        text.extend_from_slice(b" script: ");
        text.extend_from_slice(sha1_hex);
        text.extend_from_slice(format!(", on @user_script:{}.", self.line).as_bytes());
        text
    }
}

/// A text up to its first zero byte, where C ends it.
pub(super) fn until_zero(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The text of an error reply: one line, without line ends around it.
#[cfg(feature = "compat")]
pub(super) fn error_line(text: &[u8]) -> Vec<u8> {
    let is_text = |byte: &u8| !matches!(byte, b'\r' | b'\n');
    let text = until_zero(text);
    let begin = text.iter().position(is_text).unwrap_or(text.len());
    let end = text
        .iter()
        .rposition(is_text)
        .map_or(begin, |last| last + 1);
    one_line(text.get(begin..end).unwrap_or_default())
}

/// Error and status replies are single lines, so each byte of a line end becomes a space.
pub(super) fn one_line(text: &[u8]) -> Vec<u8> {
    text.iter()
        .map(|&byte| {
            if matches!(byte, b'\r' | b'\n') {
                b' '
            } else {
                byte
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_time_error_names_the_script_and_the_line() {
        let error = ScriptError::lua(3, b"attempt to index a nil value");
        assert_eq!(
            error.reply(b"abc"),
            b"ERR user_script:3: attempt to index a nil value script: abc, on @user_script:3."
        );
    }

    #[test]
    fn error_replies_stay_on_one_line() {
        assert_eq!(
            ScriptError::new(b"ERR a\r\nb".to_vec(), 1).message,
            b"ERR a  b"
        );
    }
}
