//! The requests of one step for a whole pipeline, built once and only renumbered after that, and the check of the
//! replies to them.
//!
//! The load generator shares the machine with the server it measures. So nothing is formatted or parsed per command:
//! sixteen digits are written in place, and replies are compared with the bytes they must be. Only where a reply holds
//! a number that the server chooses are its digits passed over.

use super::workload::{NUMBER, NUMBER_LEN, Step};
use crate::server_connection::printable;

/// A pipeline's worth of one command.
#[derive(Debug)]
pub(super) struct Batch {
    requests: Vec<u8>,
    pub(super) step: Step,
}

/// The replies of one batch as they come in.
#[derive(Debug)]
pub(super) struct Replies<'b> {
    /// What each must be.
    reply: &'b [u8],
    /// The number of bytes of the next one that have come.
    at: usize,
    /// Whether the number at that place has begun.
    has_digit: bool,
    /// Replies that are to come.
    left: usize,
}

impl Batch {
    pub(super) fn new(step: Step, pipeline: usize) -> Self {
        Self {
            requests: step.request.repeat(pipeline),
            step,
        }
    }

    /// How often it is sent for the pipeline with that number.
    pub(super) const fn times(&self, pipeline: usize) -> usize {
        let per_ten = self.step.per_ten;
        (pipeline + 1) * per_ten / 10 - pipeline * per_ten / 10
    }

    /// Puts the numbers of the keys into the requests, and returns as many requests as there are numbers.
    pub(super) fn number(&mut self, numbers: &[u64]) -> &[u8] {
        let request_len = self.step.request.len();
        let requests = self.requests.chunks_exact_mut(request_len);
        for (request, number) in requests.zip(numbers) {
            for &at in &self.step.numbers_at {
                write_number(&mut request[at..at + NUMBER_LEN], *number);
            }
        }
        &self.requests[..request_len * numbers.len()]
    }

    /// What must come back for `count` requests.
    pub(super) fn replies(&self, count: usize) -> Replies<'_> {
        Replies {
            reply: &self.step.reply,
            at: 0,
            has_digit: false,
            left: count,
        }
    }
}

impl Replies<'_> {
    /// Checks bytes that came, and returns how many replies they completed.
    ///
    /// # Errors
    ///
    /// The reply that came instead.
    pub(super) fn check(&mut self, bytes: &[u8]) -> Result<u64, String> {
        let mut completed = 0;
        for (index, &byte) in bytes.iter().enumerate() {
            if self.left == 0 {
                let more = printable(&bytes[index..]);
                return Err(format!("more replies than requests came: {more:?}"));
            }
            if self.reply[self.at] == NUMBER {
                if byte.is_ascii_digit() {
                    self.has_digit = true;
                    continue;
                }
                self.at += usize::from(self.has_digit);
                self.has_digit = false;
            }
            if self.reply[self.at] != byte || byte == NUMBER {
                return Err(self.explain(&bytes[index..]));
            }
            self.at += 1;
            if self.at == self.reply.len() {
                self.at = 0;
                self.left -= 1;
                completed += 1;
            }
        }
        Ok(completed)
    }

    pub(super) const fn are_complete(&self) -> bool {
        self.left == 0
    }

    #[cold]
    fn explain(&self, wrong: &[u8]) -> String {
        let rest = wrong.split(|byte| *byte == b'\r').next();
        let reply = printable(&[&self.reply[..self.at], rest.unwrap_or_default()].concat());
        let hint = HINTS.iter().find(|(begin, _)| reply.starts_with(begin));
        format!(
            "the reply was {reply:?} instead of {:?}{}",
            printable(self.reply.trim_ascii_end()),
            hint.map_or("", |(_, hint)| hint)
        )
    }
}

/// How errors begin, and what to do about them.
const HINTS: &[(&str, &str)] = &[
    (
        "-MOVED",
        ": it is a node of a Redis Cluster, which has only some of the keys: measure a server that is not part of one",
    ),
    (
        "-CLUSTERDOWN",
        ": it is a node of a Redis Cluster: measure a server that is not part of one",
    ),
    (
        "-LOADING",
        ": it loads its data or is in its restart quarantine: wait until it serves",
    ),
    (
        "-NOAUTH",
        ": it wants a password: write redis://:password@host:port",
    ),
    ("-READONLY", ": it is a replica: measure its primary"),
    (
        "-ERR unknown command",
        ": it does not know this command: choose another --workload",
    ),
    (
        "-ERR syntax error",
        ": it does not know this form of the command: choose another --workload",
    ),
];

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

    fn step(reply: &str) -> Step {
        Step {
            name: "acquire",
            request: [b"<", [b'0'; NUMBER_LEN].as_slice(), b">"].concat(),
            numbers_at: vec![1],
            reply: reply.into(),
            per_ten: 10,
            after: 0,
        }
    }

    fn batch(reply: &str) -> Batch {
        Batch::new(step(reply), 3)
    }

    #[test]
    fn requests_are_numbered_in_place() {
        let mut batch = batch("+OK\r\n");
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
    fn a_step_is_sent_as_often_in_ten_pipelines_as_it_says() {
        for per_ten in [1, 3, 10, 80] {
            let batch = Batch::new(step("+OK\r\n").sent(per_ten, 0), 3);
            let times: usize = (0..10).map(|pipeline| batch.times(pipeline)).sum();
            assert_eq!(times, per_ten);
            assert_eq!(batch.times(7), batch.times(17));
        }
    }

    #[test]
    fn replies_are_counted_at_every_split() {
        for (reply, came) in [
            ("+OK\r\n", ["+OK\r\n"; 3]),
            (
                ":#\r\n:30\r\n",
                [
                    ":7\r\n:30\r\n",
                    ":1887436800000001\r\n:30\r\n",
                    ":8\r\n:30\r\n",
                ],
            ),
        ] {
            let (batch, all) = (batch(reply), came.concat());
            for split in 0..=all.len() {
                let mut replies = batch.replies(3);
                let first = replies.check(&all.as_bytes()[..split]);
                assert!(split == all.len() || !replies.are_complete());
                let second = replies.check(&all.as_bytes()[split..]);
                let ends = [1, 2, 3].map(|count| came[..count].concat().len());
                let before = ends.iter().filter(|&&end| end <= split).count();
                assert_eq!(first, Ok(u64::try_from(before).expect("small")));
                assert_eq!(second, Ok(u64::try_from(3 - before).expect("small")));
                assert!(replies.are_complete());
            }
        }
    }

    #[test]
    fn a_wrong_reply_is_told_whole() {
        for (reply, first, second, part) in [
            ("+OK\r\n", "$-1\r\n", "", "\"$-1\" instead of \"+OK\""),
            ("+OK\r\n", "+OK\r\n-ERR no\r\n", "", "\"-ERR no\""),
            ("+OK\r\n", "-MOVED 7 h:1\r\n", "", "a Redis Cluster"),
            (":1\r\n", "-LOADING wait\r\n", "", "restart quarantine"),
            ("+OK\r\n", "+O", "NO\r\n", "\"+ONO\""),
            (
                "+OK\r\n",
                "+OK\r\n",
                "+OK\r\n+OK\r\n+OK\r\n",
                "more replies",
            ),
            (":#\r\n:30\r\n", ":7\r\n", ":29\r\n", ":29\" instead"),
            (":#\r\n", ":\r\n", "", "\":\" instead"),
            (":#\r\n", ":#\r\n", "", "\":#\" instead"),
            (":#\r\n", ":1", "x\r\n", "x\" instead"),
        ] {
            let batch = batch(reply);
            let mut replies = batch.replies(3);
            let error = replies
                .check(first.as_bytes())
                .and_then(|_| replies.check(second.as_bytes()));
            let error = error.expect_err(first);
            assert!(error.contains(part), "{error}");
        }
    }
}
