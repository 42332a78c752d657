//! The requests of one step for a whole pipeline, built once and only renumbered after that, and the check of the
//! replies to them.
//!
//! The load generator shares the machine with the server it measures. So nothing is formatted or parsed per command:
//! sixteen digits are written in place, and replies are compared with the bytes they must be.

use super::workload::{NUMBER_LEN, Step};
use crate::server_connection::printable;

/// A pipeline's worth of one command.
#[derive(Debug)]
pub(super) struct Batch {
    requests: Vec<u8>,
    request_len: usize,
    number_at: Option<usize>,
    replies: Vec<u8>,
    reply_len: usize,
}

/// The replies of one batch as they come in.
#[derive(Debug)]
pub(super) struct Replies<'b> {
    expected: &'b [u8],
    reply_len: usize,
    /// Bytes that came and were right.
    received: usize,
}

impl Batch {
    pub(super) fn new(step: &Step, pipeline: usize) -> Self {
        Self {
            requests: step.request.repeat(pipeline),
            request_len: step.request.len(),
            number_at: step.number_at,
            replies: step.reply.repeat(pipeline),
            reply_len: step.reply.len(),
        }
    }

    /// Puts the numbers of the keys into the requests, and returns as many requests as there are numbers.
    pub(super) fn number(&mut self, numbers: &[u64]) -> &[u8] {
        if let Some(at) = self.number_at {
            for (request, number) in self
                .requests
                .chunks_exact_mut(self.request_len)
                .zip(numbers)
            {
                write_number(&mut request[at..at + NUMBER_LEN], *number);
            }
        }
        &self.requests[..self.request_len * numbers.len()]
    }

    /// What must come back for `count` requests.
    pub(super) fn replies(&self, count: usize) -> Replies<'_> {
        Replies {
            expected: &self.replies[..self.reply_len * count],
            reply_len: self.reply_len,
            received: 0,
        }
    }
}

impl Replies<'_> {
    /// Checks bytes that came, and returns how many replies they completed.
    ///
    /// # Errors
    ///
    /// What came instead.
    pub(super) fn check(&mut self, bytes: &[u8]) -> Result<u64, String> {
        let end = self.received + bytes.len();
        match self.expected.get(self.received..end) {
            Some(expected) if expected == bytes => {
                let completed = end / self.reply_len - self.received / self.reply_len;
                self.received = end;
                Ok(u64::try_from(completed).unwrap_or(u64::MAX))
            }
            _ => Err(self.explain(bytes)),
        }
    }

    pub(super) const fn are_complete(&self) -> bool {
        self.received == self.expected.len()
    }

    #[cold]
    fn explain(&self, bytes: &[u8]) -> String {
        let expected = self.expected.get(self.received..).unwrap_or_default();
        let right = bytes
            .iter()
            .zip(expected)
            .take_while(|(came, expected)| came == expected)
            .count();
        if self.received + right == self.expected.len() {
            return format!(
                "more replies than requests came: {:?}",
                printable(&bytes[right..])
            );
        }
        // The wrong reply begins at a multiple of the right one's length; its beginning may have come earlier.
        let within = (self.received + right) % self.reply_len;
        let known = &self.expected[..within];
        let rest = bytes[right..]
            .split(|byte| *byte == b'\r')
            .next()
            .unwrap_or_default();
        let wanted = &self.expected[..self.reply_len];
        format!(
            "the reply was {:?} instead of {:?}",
            printable(&[known, rest].concat()),
            printable(wanted.trim_ascii_end())
        )
    }
}

/// Writes a number as hexadecimal digits that fill `place`.
fn write_number(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = DIGITS[usize::from(number.to_le_bytes()[0] & 0xf)];
        number >>= 4;
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Batch {
        let step = Step {
            name: "acquire",
            request: [b"<", [b'0'; NUMBER_LEN].as_slice(), b">"].concat(),
            number_at: Some(1),
            reply: b"+OK\r\n",
        };
        Batch::new(&step, 3)
    }

    #[test]
    fn requests_are_numbered_in_place() {
        let mut batch = batch();
        assert_eq!(
            batch.number(&[1, u64::MAX]),
            b"<0000000000000001><ffffffffffffffff>"
        );
        assert_eq!(
            batch.number(&[0xabc, 0, 2]),
            b"<0000000000000abc><0000000000000000><0000000000000002>"
        );
    }

    #[test]
    fn replies_are_counted_at_every_split() {
        let batch = batch();
        let all = b"+OK\r\n+OK\r\n+OK\r\n";
        for split in 0..=all.len() {
            let mut replies = batch.replies(3);
            let first = replies.check(&all[..split]).expect("right so far");
            let second = replies.check(&all[split..]).expect("right to the end");
            assert_eq!(first, u64::try_from(split / 5).expect("small"));
            assert_eq!(first + second, 3);
            assert!(replies.are_complete());
        }
    }

    #[test]
    fn a_wrong_reply_is_told_whole() {
        let batch = batch();
        for (first, second, part) in [
            ("$-1\r\n", "", "\"$-1\" instead of \"+OK\""),
            ("+OK\r\n-ERR no\r\n", "", "\"-ERR no\""),
            ("+O", "NO\r\n", "\"+ONO\""),
            ("+OK\r\n", "+OK\r\n+OK\r\n+OK\r\n", "more replies"),
        ] {
            let mut replies = batch.replies(3);
            let error = replies
                .check(first.as_bytes())
                .and_then(|_| replies.check(second.as_bytes()));
            let error = error.expect_err(first);
            assert!(error.contains(part), "{error}");
        }
    }
}
