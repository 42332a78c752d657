//! Requests as a client writes them.

use crate::decimal;

/// Appends a request: an array of bulk strings, the form that every server takes.
///
/// ```
/// let mut out = Vec::new();
/// locknode_resp::encode_command(&mut out, &[b"GET", b"jobs"]);
/// assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$4\r\njobs\r\n");
/// ```
pub fn encode_command(out: &mut Vec<u8>, args: &[&[u8]]) {
    let len: usize = args.iter().map(|arg| arg.len() + FRAME_LEN).sum();
    out.reserve(FRAME_LEN + len);
    decimal::append_line(out, b'*', args.len() as u64);
    for arg in args {
        decimal::append_line(out, b'$', arg.len() as u64);
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

/// What is around a word: its mark, its length and two ends of lines.
const FRAME_LEN: usize = 8;
