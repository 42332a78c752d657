//! Files with scenarios, for `sim --replay` and `lab --script`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use locknode_testkit::Scenario;

use crate::failure::Failure;

/// Reads a scenario from a file, or from standard input for `-`.
///
/// # Errors
///
/// When that does not work, or it is not a scenario.
pub(crate) fn read(file: &Path) -> Result<Scenario, Failure> {
    let (name, opened): (_, io::Result<Box<dyn Read>>) = if file == Path::new("-") {
        ("standard input".to_owned(), Ok(Box::new(io::stdin())))
    } else {
        let opened = File::open(file);
        (
            file.display().to_string(),
            opened.map(|file| Box::new(file) as _),
        )
    };
    let mut bytes = Vec::new();
    let read = opened.and_then(|input| input.take(FILE_LEN_MAX + 1).read_to_end(&mut bytes));
    let len = read.map_err(|error| Failure::unavailable(format!("cannot read {name}: {error}")))?;
    if u64::try_from(len).is_ok_and(|len| len > FILE_LEN_MAX) {
        return Err(Failure::usage(format!(
            "{name} is not a scenario: it has more than 64 MiB"
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{name} is not a scenario: it is not UTF-8")))?;
    Scenario::parse(&text).map_err(|error| {
        Failure::usage(format!(
            "{name}: {error}; `locknode sim --print 0` shows a scenario"
        ))
    })
}

/// A million steps, which is what a scenario has at most, of a generous length.
const FILE_LEN_MAX: u64 = 64 << 20;
