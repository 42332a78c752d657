//! What nodes are told of the holder of a lock, so that a person can find it.

use std::sync::Arc;

use crate::error::Error;

/// The label as given; `None` for an empty one.
pub(crate) fn some(label: &str) -> Option<Arc<str>> {
    (!label.is_empty()).then(|| label.into())
}

/// The label, unless nodes would refuse it.
pub(crate) fn checked(label: Arc<str>) -> Result<Arc<str>, Error> {
    if label.len() > LEN_MAX {
        return Err(Error::config(format!(
            "a label has at most {LEN_MAX} bytes, got {}",
            label.len()
        )));
    }
    if !label.chars().all(is_printable) {
        return Err(Error::config("a label is printable ASCII"));
    }
    Ok(label)
}

/// `host:process id:program` of this process.
pub(crate) fn of_this_process() -> Arc<str> {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default();
    of_program(&program.to_string_lossy())
}

/// The same with the name of another program, cut and changed where a node would refuse it.
pub(crate) fn of_program(program: &str) -> Arc<str> {
    let host: String = host().chars().take(HOST_CHARS_MAX).collect();
    let label = format!("{host}:{}:{program}", std::process::id());
    let printable = label.chars().map(|c| if is_printable(c) { c } else { '?' });
    printable.take(LEN_MAX).collect::<String>().into()
}

#[cfg(unix)]
fn host() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~')
}

/// What nodes take.
const LEN_MAX: usize = 64;

/// What is left for process and program is enough to tell them apart.
const HOST_CHARS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_takes_every_default_label() {
        for program in ["job", "", "\u{e9}\n\u{1b}[31m", &"x".repeat(100)] {
            let label = of_program(program);
            assert!(checked(label.clone()).is_ok(), "{label:?}");
            assert!(label.contains(&format!(":{}:", std::process::id())));
        }
        assert!(of_this_process().len() > 4);
    }

    #[test]
    fn what_a_node_would_refuse_is_refused_first() {
        for label in ["a\nb", "\u{202e}", "\u{7f}", &"x".repeat(65)] {
            assert!(checked(label.into()).is_err(), "{label:?}");
        }
        assert!(checked("x".repeat(64).into()).is_ok());
        assert_eq!(some(""), None);
    }
}
