//! Reply bytes cut into replies, for RESP2 and RESP3, without regard to what they mean.

/// The complete replies at the start of the bytes, and how many bytes they take.
pub(crate) fn split(bytes: &[u8]) -> (Vec<Vec<u8>>, usize) {
    let (mut replies, mut start) = (Vec::new(), 0);
    while let Some(len) = len_of_first(&bytes[start..]) {
        replies.push(bytes[start..start + len].to_vec());
        start += len;
    }
    (replies, start)
}

/// The elements of an array or a push; the reply itself when it is none.
pub(crate) fn elements(reply: &[u8]) -> Vec<Vec<u8>> {
    match (reply.first(), line_len(reply)) {
        (Some(b'*' | b'>'), Some(len)) => split(&reply[len..]).0,
        _ => vec![reply.to_vec()],
    }
}

/// The number in an integer reply.
pub(crate) fn integer(reply: &[u8]) -> Option<i64> {
    std::str::from_utf8(reply)
        .ok()?
        .strip_prefix(':')?
        .trim_end()
        .parse()
        .ok()
}

fn len_of_first(bytes: &[u8]) -> Option<usize> {
    let mut len = line_len(bytes)?;
    let count = || -> i64 {
        let text = std::str::from_utf8(&bytes[1..len - 2]).expect("a length in digits");
        text.parse().expect("a length")
    };
    match bytes[0] {
        b'$' | b'=' | b'!' if count() >= 0 => {
            len += usize::try_from(count()).expect("a length") + 2;
            (bytes.len() >= len).then_some(len)
        }
        b'*' | b'~' | b'>' | b'%' => {
            let per_entry = if bytes[0] == b'%' { 2 } else { 1 };
            for _ in 0..count() * per_entry {
                len += len_of_first(&bytes[len..])?;
            }
            Some(len)
        }
        _ => Some(len),
    }
}

fn line_len(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(2)
        .position(|pair| pair == b"\r\n")
        .map(|at| at + 2)
}
