//! `client-output-buffer-limit`, whose value consists of groups of four words.

use locknode_resp::parse_integer;

use crate::byte_size;

/// Returns the hard limit of class `normal`; `None` when the text has none.
pub(crate) fn parse(text: &[u8]) -> Result<Option<u64>, &'static str> {
    let words: Vec<&[u8]> = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    let groups = words.chunks_exact(4);
    if !groups.remainder().is_empty() {
        return Err("Wrong number of arguments in buffer limit configuration.");
    }
    let mut normal = None;
    for group in groups {
        let &[class, hard, soft, seconds] = group else {
            continue;
        };
        let is_normal = class.eq_ignore_ascii_case(b"normal");
        let others: [&[u8]; 3] = [b"slave", b"replica", b"pubsub"];
        if !is_normal && !others.iter().any(|other| class.eq_ignore_ascii_case(other)) {
            return Err("Invalid client class specified in buffer limit configuration.");
        }
        let limits = (
            byte_size::parse(hard),
            byte_size::parse(soft),
            parse_integer(seconds),
        );
        let (Some(hard), Some(soft), Some(seconds @ 0..)) = limits else {
            return Err(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
            );
        };
        if is_normal && soft != 0 && seconds != 0 {
            return Err("Soft limits are not supported, use 0 0.");
        }
        if is_normal {
            normal = Some(hard);
        }
    }
    Ok(normal)
}
