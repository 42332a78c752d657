//! Reads and writes the token of a lock. Anyone with the token can release the lock, and every user of
//! the machine can read command lines, so it may also come from a file or standard input.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use redlock_client::Token;

use crate::failure::Failure;

/// Where to find a token.
#[derive(Debug, clap::Args)]
pub(super) struct TokenFlags {
    /// Token of the lock, as locknode lock printed it, or - to read it from standard input
    ///
    /// Other users of this machine can read your command lines, and release the lock with the token:
    /// prefer - or --token-file.
    #[arg(verbatim_doc_comment)]
    token: Option<OsString>,

    /// Read the token from this file
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
}

impl TokenFlags {
    /// Reads the token.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is not a token.
    pub(super) fn read(&self) -> Result<Token, Failure> {
        let bytes = match (&self.token_file, &self.token) {
            (Some(path), _) => {
                let opened = File::open(path).and_then(read_some);
                opened.map_err(|error| {
                    Failure::usage(format!("--token-file: {}: {error}", path.display()))
                })?
            }
            (None, Some(token)) if token == "-" => {
                read_some(io::stdin().lock()).map_err(|error| {
                    Failure::usage(format!(
                        "cannot read the token from standard input: {error}"
                    ))
                })?
            }
            (None, Some(token)) => token.as_bytes().to_vec(),
            (None, None) => {
                return Err(Failure::usage(
                    "the token of the lock is missing: give it after the name, or in a file with --token-file",
                ));
            }
        };
        Token::new(trim_line_end(&bytes)).map_err(|error| Failure::usage(error.to_string()))
    }
}

/// Writes a token to a file that only its owner can read. An existing file is replaced, not written to:
/// another user may own it or have it open.
///
/// # Errors
///
/// If the file cannot be written.
pub(super) fn write(path: &Path, token: &Token) -> Result<(), Failure> {
    let line = format!("{token}\n");
    let is_file = fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    let written = if is_file {
        replace(path, &line)
    } else {
        OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut device| device.write_all(line.as_bytes()))
    };
    written.map_err(|error| {
        Failure::unavailable(format!(
            "--token-file: {}: {error}; the lock was released",
            path.display()
        ))
    })
}

fn replace(path: &Path, line: &str) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = Path::new(&name);
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(fresh)?;
    let written = file.write_all(line.as_bytes());
    let written = written.and_then(|()| fs::rename(fresh, path));
    if written.is_err() {
        let _ = fs::remove_file(fresh);
    }
    written
}

fn read_some(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LEN_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Removes a line end, which programs often write after a token.
fn trim_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// More than any token has, so that a wrong file is refused without reading it all.
const LEN_MAX: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_end_is_not_part_of_a_token() {
        for (bytes, expected) in [
            (&b"token"[..], &b"token"[..]),
            (b"token\n", b"token"),
            (b"token\r\n", b"token"),
            (b"token\n\n", b"token\n"),
            (b"\n", b""),
        ] {
            assert_eq!(trim_line_end(bytes), expected);
        }
    }
}
