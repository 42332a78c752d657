//! Where our decoder and `redis-protocol` both accept an array of bulk strings, they read the same.
//!
//! They need not accept the same: the crate takes other types and refuses inline commands, ours skips what
//! Redis skips and does not look at the byte after a carriage return.
#![no_main]

use libfuzzer_sys::fuzz_target;
use locknode_resp::{Decoder, Limits, encode_command};
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;

fuzz_target!(|data: &[u8]| {
    compare(data);
    // The same bytes as the arguments of a valid request, so that there is always one that both accept.
    let args: Vec<&[u8]> = data.split(|&byte| byte == b' ').collect();
    let mut request = Vec::new();
    encode_command(&mut request, &args);
    compare(&request);
});

fn compare(data: &[u8]) {
    if !data.starts_with(b"*") || nesting(data) > NESTING_MAX {
        return;
    }
    let mut decoder = Decoder::new();
    let Ok(Some(frame)) = decoder.decode(data, &Limits::default(), true) else {
        return;
    };
    let Ok(Some((OwnedFrame::Array(theirs), taken))) = decode(data) else {
        return;
    };
    let theirs: Option<Vec<Vec<u8>>> = theirs
        .into_iter()
        .map(|element| match element {
            OwnedFrame::BulkString(bytes) => Some(bytes),
            _ => None,
        })
        .collect();
    let Some(theirs) = theirs else { return };
    assert_eq!(frame.args().collect::<Vec<_>>(), theirs);
    assert_eq!(frame.consumed(), taken);
}

/// An upper bound of how deep the crate will recurse.
fn nesting(data: &[u8]) -> usize {
    data.iter().filter(|&&byte| byte == b'*').count()
}

/// The crate recurses once per array and has no limit of its own.
const NESTING_MAX: usize = 200;
