//! The optional first line of a script: `#!lua flags=no-writes,allow-oom`.

use crate::script::error::CompileError;

/// The content of a script's first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags {
    /// There is a `#!` line. Redis is stricter with such scripts, for instance when memory is
    /// short.
    pub(crate) shebang: bool,
    /// `no-writes`: write commands are refused while it runs.
    pub(crate) no_writes: bool,
    /// `allow-oom`: it may run when memory is short.
    pub(crate) allow_oom: bool,
}

/// Splits off the first line. The remainder still begins with the line end, so that line numbers
/// are correct.
///
/// # Errors
/// The line names another engine, an unknown option or an unknown flag.
pub(super) fn split(source: &[u8]) -> Result<(Flags, &[u8]), CompileError> {
    let mut flags = Flags::default();
    if !source.starts_with(b"#!") {
        return Ok((flags, source));
    }
    let refuse = |text: &[u8], what: &[u8]| Err(CompileError::shebang(text, what));
    let Some(end) = source.iter().position(|&byte| byte == b'\n') else {
        return refuse(b"Invalid script shebang", b"");
    };
    let (line, rest) = source.split_at(end);
    flags.shebang = true;
    let mut words = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    match words.next() {
        Some(b"#!lua") => {}
        engine => {
            let engine = engine.unwrap_or_default();
            return refuse(b"Unexpected engine in script shebang: ", engine);
        }
    }
    for word in words {
        let Some(list) = word.strip_prefix(b"flags=") else {
            return refuse(b"Unknown lua shebang option: ", word);
        };
        for flag in list
            .split(|&byte| byte == b',')
            .filter(|flag| !flag.is_empty())
        {
            match flag {
                b"no-writes" => flags.no_writes = true,
                b"allow-oom" => flags.allow_oom = true,
                // These concern replicas and clusters, which a node does not have.
                b"allow-stale" | b"no-cluster" | b"allow-cross-slot-keys" => {}
                _ => {
                    return refuse(b"Unexpected flag in script shebang: ", flag);
                }
            }
        }
    }
    Ok((flags, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_and_the_line_end_stays() {
        let rows: [(&[u8], Flags, &[u8]); 3] = [
            (b"return 1", Flags::default(), b"return 1"),
            (
                b"#!lua\nx",
                Flags {
                    shebang: true,
                    ..Flags::default()
                },
                b"\nx",
            ),
            (
                b"#!lua  flags=no-writes,allow-oom \nx",
                Flags {
                    shebang: true,
                    no_writes: true,
                    allow_oom: true,
                },
                b"\nx",
            ),
        ];
        for (source, flags, rest) in rows {
            assert_eq!(split(source), Ok((flags, rest)));
        }
    }

    #[test]
    fn a_wrong_first_line_has_the_text_of_redis() {
        let rows: [(&[u8], &[u8]); 6] = [
            (b"#!lua", b"ERR Invalid script shebang"),
            (
                b"#!foo\n",
                b"ERR Unexpected engine in script shebang: #!foo",
            ),
            (b"#! lua\n", b"ERR Unexpected engine in script shebang: #!"),
            (
                b"#!LUA\n",
                b"ERR Unexpected engine in script shebang: #!LUA",
            ),
            (
                b"#!lua name=lib\n",
                b"ERR Unknown lua shebang option: name=lib",
            ),
            (
                b"#!lua flags=bad\n",
                b"ERR Unexpected flag in script shebang: bad",
            ),
        ];
        for (source, want) in rows {
            assert_eq!(split(source).unwrap_err().into_reply(), want);
        }
    }
}
