//! The names that a connection and its library may have.

use crate::client::NAME_LEN_MAX;

/// Returns why a connection cannot have that name; `None` if it can.
pub(crate) fn refusal(name: &[u8]) -> Option<&'static str> {
    if !is_printable(name) {
        return Some("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    (name.len() > NAME_LEN_MAX).then_some(NAME_TOO_LONG)
}

/// CLIENT LIST separates its fields with spaces and its lines with line feeds.
pub(crate) fn is_printable(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

pub(crate) const NAME_TOO_LONG: &str = "ERR Client names cannot be longer than 1024 bytes.";

const _: () = assert!(NAME_LEN_MAX == 1024, "the text above names the limit");
