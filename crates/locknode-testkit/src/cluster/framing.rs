//! Bytes of one direction of a connection, cut into whole requests or whole replies.

use locknode_resp::{Decoder, Limits, Reply, ReplyDecoder, ReplyLimits};

use super::net::Direction;

/// Cuts a stream of bytes into messages.
#[derive(Debug)]
pub(crate) struct Framer {
    decoder: AnyDecoder,
    /// Bytes that are no whole message yet, behind those that were taken.
    buffer: Vec<u8>,
    taken: usize,
}

/// A whole message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    /// Whether it is a request or the reply to one, and not an empty line or a push.
    pub(crate) is_counted: bool,
}

#[derive(Debug)]
enum AnyDecoder {
    Requests(Decoder),
    Replies(ReplyDecoder),
    /// What arrives is not the protocol, or larger than lock messages are: it passes in the pieces that it comes in.
    Pieces,
}

impl Framer {
    pub(crate) fn of(direction: Direction) -> Self {
        let limits = ReplyLimits {
            bytes_max: MESSAGE_BYTES_MAX,
            ..ReplyLimits::default()
        };
        Self {
            decoder: match direction {
                Direction::Requests => AnyDecoder::Requests(Decoder::new()),
                Direction::Replies => AnyDecoder::Replies(ReplyDecoder::new(limits)),
            },
            buffer: Vec::new(),
            taken: 0,
        }
    }

    /// Where the bytes that arrive are put.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        &mut self.buffer
    }

    /// The next message that is whole.
    pub(crate) fn next(&mut self) -> Option<Message> {
        let unread = self.buffer.get(self.taken..).unwrap_or_default();
        let decoded = match &mut self.decoder {
            // Between two messages the decoders give back what a large one took.
            AnyDecoder::Requests(decoder) => decoder
                .decode(unread, &LIMITS, true)
                .map(|frame| frame.map(|frame| (frame.consumed(), !frame.is_empty())))
                .map_err(drop),
            AnyDecoder::Replies(decoder) => decoder
                .decode(unread)
                .map(|reply| reply.map(|(reply, len)| (len, !matches!(reply, Reply::Push(_)))))
                .map_err(drop),
            AnyDecoder::Pieces => Err(()),
        };
        let (len, is_counted) = match decoded {
            Ok(message) => message?,
            Err(()) => {
                self.decoder = AnyDecoder::Pieces;
                (unread.len(), true)
            }
        };
        let bytes = unread.get(..len).unwrap_or_default().to_vec();
        self.taken += bytes.len();
        (!bytes.is_empty()).then_some(Message { bytes, is_counted })
    }

    /// What is left when the stream has ended.
    pub(crate) fn rest(&mut self) -> Message {
        Message {
            bytes: std::mem::take(self.buffer()),
            is_counted: false,
        }
    }
}

/// A thousand times what a lock's messages have. What is larger passes in pieces, so a connection costs no more.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 20;

const LIMITS: Limits = Limits {
    bulk_len_max: MESSAGE_BYTES_MAX,
    args_max: 1 << 16,
    inline_len_max: 64 << 10,
    request_len_max: MESSAGE_BYTES_MAX,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(mut framer: Framer, input: &[u8], piece: usize) -> Vec<(String, bool)> {
        let mut messages = Vec::new();
        for bytes in input.chunks(piece) {
            framer.buffer().extend_from_slice(bytes);
            while let Some(message) = framer.next() {
                let text = String::from_utf8(message.bytes).unwrap();
                messages.push((text, message.is_counted));
            }
        }
        messages
    }

    #[test]
    fn streams_are_cut_at_messages_whatever_pieces_they_come_in() {
        let requests = b"*1\r\n$4\r\nPING\r\n\r\nGET k\r\n";
        let replies = b"+OK\r\n>2\r\n+invalidate\r\n:1\r\n*2\r\n:1\r\n$-1\r\n";
        for piece in 1..requests.len() {
            let got = cut(Framer::of(Direction::Requests), requests, piece);
            let want = [
                ("*1\r\n$4\r\nPING\r\n", true),
                ("\r\n", false),
                ("GET k\r\n", true),
            ];
            assert_eq!(got, want.map(|(text, counted)| (text.to_owned(), counted)));
            let got = cut(Framer::of(Direction::Replies), replies, piece);
            let want = [
                ("+OK\r\n", true),
                (">2\r\n+invalidate\r\n:1\r\n", false),
                ("*2\r\n:1\r\n$-1\r\n", true),
            ];
            assert_eq!(got, want.map(|(text, counted)| (text.to_owned(), counted)));
        }
    }

    #[test]
    fn what_is_not_the_protocol_passes_in_pieces() {
        let got = cut(
            Framer::of(Direction::Replies),
            b"+OK\r\nnonsense\r\nand more",
            14,
        );
        assert_eq!(got[0], ("+OK\r\n".to_owned(), true));
        let all: String = got.into_iter().map(|(text, _)| text).collect();
        assert_eq!(all, "+OK\r\nnonsense\r\nand more");
    }

    #[test]
    fn a_message_that_is_too_large_takes_bounded_memory() {
        let mut framer = Framer::of(Direction::Requests);
        framer
            .buffer()
            .extend_from_slice(b"*2\r\n$3\r\nGET\r\n$9999999\r\n");
        let first = framer.next().unwrap();
        assert_eq!(first.bytes.len(), 23);
        framer.buffer().extend_from_slice(&[b'x'; 100]);
        assert_eq!(framer.next().unwrap().bytes.len(), 100);
        assert_eq!(framer.next(), None);
    }
}
